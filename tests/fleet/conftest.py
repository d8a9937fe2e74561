"""Fixtures: a desk in a git repository."""

import pytest

from tests.desk import Desk
from tests.fleet.repository import Repository, repository


@pytest.fixture
def git(desk: Desk) -> Repository:
    """The desk's folder as a git repository without a commit."""
    return repository(desk.folder)
