"""Changing the service behind the client's back, by rewriting the sandbox's state, or as somebody else."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from reconciler.service import Client
from tests.engine_driver import EngineDriver


@contextmanager
def rewriting(engine: EngineDriver) -> Iterator[dict[str, Any]]:
    """Hand out the sandbox's whole state to be edited, and begin again with what became of it."""
    state = engine.sandbox.state()
    yield state
    engine.sandbox.replace_state(state)


@contextmanager
def speaking_with(engine: EngineDriver, token: str) -> Iterator[None]:
    """Let the story go on with another user's token."""
    usual = engine.client
    with Client(engine.sandbox.api_url, token) as engine.client:
        yield
    engine.client = usual


def user_in(state: dict[str, Any], name: str = "ada") -> dict[str, Any]:
    """The user of that name."""
    return next(each for each in state["users"] if each["username"] == name)


def group_in(state: dict[str, Any], path: str = "acme") -> dict[str, Any]:
    """The group of that path."""
    return next(each for each in state["groups"] if each["path"] == path)


def project_in(state: dict[str, Any], path: str = "acme/api") -> dict[str, Any]:
    """The project of that path."""
    return next(each for each in state["projects"] if each["path"] == path)
