"""Transports for tests, which keep what they were to send."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import httpx

from reconciler.service.transport import Deadline, Headers, RawResponse


@dataclass(frozen=True)
class Sent:
    """A request as a transport gets it."""

    method: str
    url: httpx.URL
    target: bytes
    headers: Headers
    content: bytes | Iterator[bytes]


class TestTransport:
    """A transport that sends nothing.

    Attributes:
        deadline: of the requests.
        sent: the requests so far.
    """

    __test__ = False

    def __init__(self, _tls: ssl.SSLContext, _proxy: str | None, deadline: Deadline) -> None:
        self.deadline = deadline
        self.sent: list[Sent] = []

    def answer(self) -> RawResponse:
        """Return the answer to the latest request."""
        return RawResponse(200, b"OK", [], iter([b"{}"]))

    @contextmanager
    def exchange(
        self, method: str, url: httpx.URL, target: bytes, headers: Headers, content: bytes | Iterator[bytes]
    ) -> Iterator[RawResponse]:
        """Keep the request."""
        self.sent.append(Sent(method, url, target, headers, content))
        yield self.answer()

    def close(self) -> None:
        """Do nothing."""
