"""Fixtures of the sandbox's own tests."""

from collections.abc import Iterator

import pytest

from reconciler.sandbox import running
from tests.sandbox_routes import ROUTES

from .sandbox_client import SandboxClient


@pytest.fixture(scope="session")
def sandbox_client() -> Iterator[SandboxClient]:
    """A client, and the sandbox of this process."""
    with running({}, routes=ROUTES) as sandbox, SandboxClient(sandbox) as sandbox_client:
        yield sandbox_client


@pytest.fixture
def service(sandbox_client: SandboxClient) -> SandboxClient:
    """An empty service without latency and without a rate limit."""
    sandbox_client.sandbox.set_latency(0)
    sandbox_client.sandbox.set_workers(None)
    sandbox_client.sandbox.set_rate_limit(None)
    return sandbox_client.given({})
