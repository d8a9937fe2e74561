"""Changing the service behind the client's back, by rewriting the sandbox's state."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.story import Story


@contextmanager
def rewriting(story: Story) -> Iterator[dict[str, Any]]:
    """Hand out the sandbox's whole state to be edited, and begin again with what became of it."""
    state = story.sandbox.state()
    yield state
    story.sandbox.replace_state(state)


def user_in(state: dict[str, Any], name: str = "ada") -> dict[str, Any]:
    """The user of that name."""
    return next(each for each in state["users"] if each["username"] == name)


def group_in(state: dict[str, Any], path: str = "acme") -> dict[str, Any]:
    """The group of that path."""
    return next(each for each in state["groups"] if each["path"] == path)


def project_in(state: dict[str, Any], path: str = "acme/api") -> dict[str, Any]:
    """The project of that path."""
    return next(each for each in state["projects"] if each["path"] == path)
