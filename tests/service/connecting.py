"""Clients for tests, with a clock of their own and the longest backoff."""

from random import Random
from typing import Any

from reconciler.service import Client, Policy
from reconciler.service.transport import Connect, open_transport
from tests.service.clock import SwiftClock

TOKEN = "glpat-secret"


class Longest(Random):
    """Random numbers that are always the upper bound."""

    def uniform(self, a: float, b: float) -> float:
        return max(a, b)


def connected(
    api_url: str,
    *,
    token: str = TOKEN,
    clock: SwiftClock | None = None,
    ca_file: str | None = None,
    connect: Connect = open_transport,
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
