"""Fixtures of the sandbox's own tests."""

from collections.abc import Iterator

import pytest

from reconciler.sandbox import running

from .asking import Asking


@pytest.fixture(scope="session")
def asking() -> Iterator[Asking]:
    """The one who asks, and the sandbox of this process."""
    with running({}) as sandbox, Asking(sandbox) as asking:
        yield asking


@pytest.fixture
def service(asking: Asking) -> Asking:
    """An empty service without latency and without a rate limit."""
    asking.sandbox.set_latency(0)
    asking.sandbox.set_rate_limit(None)
    return asking.given({})
