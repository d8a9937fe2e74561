"""Fixtures of the sandbox's own tests."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache

import pytest

from reconciler.sandbox import Sandbox

from .sandbox_client import SandboxClient


def pytest_itemcollected(item: pytest.Item) -> None:
    """Trace the sandbox of these tests."""
    item.add_marker("sandbox_traced")


@pytest.fixture(scope="session")
def client_of() -> Iterator[Callable[[Sandbox], SandboxClient]]:
    """A client of each sandbox of this process."""
    with ExitStack() as stack:
        yield cache(lambda sandbox: stack.enter_context(SandboxClient(sandbox)))


@pytest.fixture
def service(sandbox: Sandbox, client_of: Callable[[Sandbox], SandboxClient]) -> SandboxClient:
    """An empty service without latency and without a rate limit."""
    return client_of(sandbox).given({})
