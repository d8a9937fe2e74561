"""Connections that keep to a deadline, whatever trickles in on them, and know whether anything was sent.

httpx has a timeout for each single read; a service that sends a byte a minute never runs into it.
"""

import ssl
from collections.abc import Iterable
from typing import Any

import httpcore
import httpx

from reconciler.service.policy import Clock


class Deadline:
    """When the request of one thread must be over.

    Attributes:
        sent: whether any byte of it has left; as long as none has, it was not carried out.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._at = 0.0
        self.sent = False

    def begin(self, seconds: float) -> None:
        """Begin a request that may take so long."""
        self._at = self._clock.monotonic() + seconds
        self.sent = False

    def within(self, timeout: float | None) -> float:
        """Return the seconds that one step may take.

        Raises:
            httpcore.ReadTimeout: the time is up.
        """
        left = self._at - self._clock.monotonic()
        if left <= 0:
            raise httpcore.ReadTimeout("the whole exchange took too long")
        return left if timeout is None else min(timeout, left)


class Transport(httpx.HTTPTransport):
    """One thread's connections to the service, or to the proxy before it.

    Attributes:
        deadline: of the request on its way.
    """

    def __init__(self, tls: ssl.SSLContext, proxy: str | None, clock: Clock) -> None:
        super().__init__(verify=tls, proxy=proxy)
        self.deadline = Deadline(clock)
        backend = _Backend(httpcore.SyncBackend(), self.deadline)
        self._pool._network_backend = backend  # noqa: SLF001 - httpx hands no backend on to its pool


class _Backend(httpcore.NetworkBackend):
    """Opens connections that keep to the deadline."""

    def __init__(self, network: httpcore.NetworkBackend, deadline: Deadline) -> None:
        self._network = network
        self._deadline = deadline

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        timeout = self._deadline.within(timeout)
        return _Stream(
            self._network.connect_tcp(host, port, timeout, local_address, socket_options or ()), self._deadline
        )


class _Stream(httpcore.NetworkStream):
    """A connection that keeps to the deadline."""

    def __init__(self, stream: httpcore.NetworkStream, deadline: Deadline) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._deadline.within(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        timeout = self._deadline.within(timeout)
        self._deadline.sent = True
        self._stream.write(buffer, timeout)

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        timeout = self._deadline.within(timeout)
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, timeout), self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
