"""Runs that are killed: after any write, nothing else is sent or stored."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from reconciler.memory.store import Store
from reconciler.model.protocols import Json, Request
from reconciler.service import Client


class Killed(BaseException):
    """What nothing catches, as nothing catches SIGKILL."""


@contextmanager
def mortal(monkeypatch: pytest.MonkeyPatch, write: int, *, before: bool = False) -> Iterator[None]:
    """Kill the process right after so many writes, or right before the last of them; 0 for never."""
    if not write:
        yield
        return
    left = [write]
    send, store = Client.send, Store.write

    def sent(client: Client, request: Request) -> Json:
        if left[0] == before:
            raise Killed
        answer = send(client, request)
        left[0] -= 1
        if not left[0]:
            raise Killed
        return answer

    def stored(*arguments: Any) -> str:
        if not left[0]:
            raise Killed
        return store(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(Client, "send", sent)
        patched.setattr(Store, "write", stored)
        yield
