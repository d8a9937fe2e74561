"""Fixtures of the sandbox's own tests."""

from collections.abc import Iterator

import pytest

from reconciler.sandbox import Sandbox, running

from .asking import Asking


@pytest.fixture(scope="session")
def own_sandbox() -> Iterator[Sandbox]:
    with running({}) as sandbox:
        yield sandbox


@pytest.fixture
def service(own_sandbox: Sandbox) -> Iterator[Asking]:
    own_sandbox.replace_state({})
    own_sandbox.set_latency(0)
    own_sandbox.set_rate_limit(None)
    with Asking(own_sandbox) as asking:
        yield asking
