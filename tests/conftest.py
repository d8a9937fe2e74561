"""Fixtures: one sandbox for a whole test process, given a new state for each test."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.sandbox import Sandbox, running
from tests.story import Story

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.fixture(scope="session")
def shared_sandbox() -> Iterator[Sandbox]:
    """The sandbox of this process."""
    with running({}) as sandbox:
        yield sandbox


@pytest.fixture(params=["spec", "deployed"])
def dialect(request: pytest.FixtureRequest) -> str:
    """Which way the service goes where its specification and its deployed form differ."""
    return str(request.param)


@pytest.fixture
def sandbox(shared_sandbox: Sandbox) -> Sandbox:
    """The sandbox, empty, without faults and without latency."""
    shared_sandbox.replace_state({})
    shared_sandbox.set_latency(0)
    return shared_sandbox


@pytest.fixture
def story(sandbox: Sandbox, dialect: str) -> Iterator[Story]:
    """A story on a sandbox with one group and a few projects, once in each dialect."""
    with Story(sandbox, a_small_service(dialect)) as story:
        yield story


def a_small_service(dialect: str) -> dict[str, Any]:
    """Return a state: the owner ada, the maintainer bob, a group, a subgroup and four projects."""
    return {
        "instance": {"enforce_job_token_allowlist": False, "dialect": dialect},
        "users": [
            {"id": 1, "username": "root", "admin": True, "tokens": ["root-token"], "emails": ["root@example.com"]},
            {"id": 2, "username": "ada", "tokens": ["ada-token"], "emails": ["ada@example.com", "ops@example.com"]},
            {"id": 3, "username": "bob", "tokens": ["bob-token"], "emails": ["bob@example.com"]},
        ],
        "groups": [
            {
                "id": 10,
                "path": "acme",
                "members": [{"user": "ada", "role": "owner"}, {"user": "bob", "role": "maintainer"}],
            },
            {"id": 11, "path": "acme/tools"},
        ],
        "projects": [
            {"id": 100, "path": "acme/api"},
            {"id": 101, "path": "acme/lib"},
            {"id": 102, "path": "acme/web"},
            {"id": 103, "path": "acme/tools/cli"},
        ],
    }
