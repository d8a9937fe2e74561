"""Fixtures: a user's folder in a git repository."""

import pytest

from tests.cli_runner import CliRunner
from tests.fleet.repository import Repository, repository


@pytest.fixture
def git(cli_runner: CliRunner) -> Repository:
    """The user's folder as a git repository without a commit."""
    return repository(cli_runner.folder)
