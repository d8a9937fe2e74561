"""Fixtures: a user's folder in a git repository."""

import pytest

from reconciler.memory.apply_log import Apply
from reconciler.memory.inventory import Inventory
from reconciler.memory.store import DEFAULT_COMMITTER, INVENTORY_BRANCH, Local, Store
from tests.cli_runner import CliRunner
from tests.fleet.repository import Repository, repository


@pytest.fixture
def git(cli_runner: CliRunner) -> Repository:
    """The user's folder as a git repository without a commit, and with an empty inventory."""
    made = repository(cli_runner.folder)
    service = cli_runner.sandbox.api_url.removesuffix("/api/v4")
    store = Store(Local(made.folder, INVENTORY_BRANCH, DEFAULT_COMMITTER), service, ())
    store.write(store.read(), lambda _: Inventory(service), Apply(service=service, result=0))
    return made
