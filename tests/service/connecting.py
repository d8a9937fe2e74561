"""Clients for tests: they wait on a clock of their own, always as long as they may."""

from random import Random
from typing import Any

from reconciler.service import Client, Policy
from reconciler.service.connection import Connect, connection_pool
from tests.service.clock import SwiftClock

TOKEN = "glpat-secret"


class Longest(Random):
    """Chance that always comes out at its upper bound."""

    def uniform(self, a: float, b: float) -> float:
        return max(a, b)


def connected(
    api_url: str,
    *,
    token: str = TOKEN,
    clock: SwiftClock | None = None,
    ca_file: str | None = None,
    connect: Connect = connection_pool,
    **policy: Any,
) -> Client:
    """Return a client with a policy of these fields."""
    return Client(
        api_url,
        token,
        ca_file=ca_file,
        policy=Policy(**policy),
        clock=clock or SwiftClock(),
        random=Longest(),
        connect=connect,
    )
