"""The transport of bytes to the service: one connection for one request at a time, and only complete responses.

Begin with `open_transport`. The transport is one of httpx, with its requests, responses and errors; any other can
replace it. Its errors separate requests that were certainly not sent from those that may have been carried out.

httpcore's network backend connects, does TLS and names the errors; httptools parses the responses. If it is uncertain
that a response is complete, or that it belongs to the request, it counts as lost: a connection is reused only if its
last response ended with the last byte that was received, and if nothing has arrived since.
"""

import ssl
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from importlib.util import find_spec
from threading import current_thread, main_thread
from typing import Any, cast

import httpcore
import httptools
import httpx

from reconciler.service.policy import Clock, Policy
from reconciler.system.clock import GLANCE

Headers = Sequence[tuple[bytes, bytes]]

IDLE = 5
"""Seconds after which an unused connection is not used again."""

READ_BYTES = 2**16
"""The most that is read at once; more than a record of TLS, so that no byte remains in the TLS layer."""

LARGEST_HEAD = 100 * 1024
"""Bytes that may arrive without one of a body: as head, interim responses, or between and after chunks."""

LEAST_BYTES = 2**16
"""The bytes of a file that must be sent or received within the time of a request, so that a slow one ends."""

FAILURES = (
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.ProxyError,
    httpcore.TimeoutException,
    httpcore.UnsupportedProtocol,
    OSError,
    ValueError,
)
"""The errors of httpcore and of the layers below; callers get those of httpx instead."""

BODILESS = (204, 304)
"""The statuses whose responses end with the head, whatever its headers say."""

PORTS = {b"http": 80, b"https": 443}

CUT = "the connection was closed before the response was complete"
SILENT = "Server disconnected without sending a response."

IS_LARGE = "is_large"
"""The extension of a request whose response may be a file of any size, with the time that a file needs."""

Connect = Callable[[ssl.SSLContext, str | None, Policy, Clock], httpx.BaseTransport]
"""Opens a transport of one request at a time, as `open_transport` does."""


def open_transport(tls: ssl.SSLContext, proxy_url: str | None, policy: Policy, clock: Clock) -> httpx.BaseTransport:
    """Return the transport of one request at a time.

    Args:
        tls: verifies the service.
        proxy_url: the URL of the proxy, or None.
        policy: its timeouts.
        clock: measures them.

    Raises:
        httpx.InvalidURL, ValueError: the proxy cannot be used.
    """
    checked = None if proxy_url is None else httpx.Proxy(proxy_url)
    deadline = Deadline(clock, policy)
    if checked is not None and checked.url.scheme.startswith("socks"):
        return SocksTransport(tls, checked, deadline)
    return DirectTransport(tls, checked, deadline)


class Deadline(httpcore.NetworkBackend):
    """Opens connections on which a request ends in time, however slowly bytes arrive.

    Args:
        clock: see the attribute.
        policy: has the seconds.
        network: opens connections without a deadline.

    Attributes:
        clock: measures the time.
        connect_timeout: seconds for connecting, and for the TLS handshake.
        read_timeout: seconds for every other step.
        sent: whether any byte of the current request was sent; until then, it was not carried out.
    """

    def __init__(self, clock: Clock, policy: Policy, network: httpcore.NetworkBackend | None = None) -> None:
        self.clock = clock
        self.connect_timeout = policy.connect_timeout
        self.read_timeout = policy.read_timeout
        self.sent = False
        self._network = network or httpcore.SyncBackend()
        self._at = 0.0
        self._seconds = policy.total_timeout
        self._is_large, self._moved = False, 0

    def begin(self, http_request: httpx.Request) -> None:
        """Begin a request; one with a file gets its time again for each `LEAST_BYTES` that are sent or received."""
        is_file = not isinstance(http_request.stream, httpx.ByteStream)
        self._is_large, self._moved = is_file or IS_LARGE in http_request.extensions, 0
        self._at = self.clock.monotonic() + self._seconds
        self.sent = False

    @contextmanager
    def classified_errors(self, http_request: httpx.Request) -> Iterator[None]:
        """Raise each error as one of httpx that shows whether the service may have received the request.

        Raises:
            httpx.LocalProtocolError: nothing was sent, and a retry cannot help.
            httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError: nothing was sent to the service.
            httpx.ReadError, httpx.ReadTimeout: something was sent.
        """
        try:
            yield
        except FAILURES as error:
            kind = _kind(error, is_sent=self.sent)
            raise kind(str(error) or type(error).__name__, request=http_request) from error

    def moved(self, number: int) -> None:
        """Record the number of bytes that were sent or received."""
        self._moved += number
        if self._is_large and self._moved >= LEAST_BYTES:
            self._moved = 0
            self._at = self.clock.monotonic() + self._seconds

    def within(self, timeout: float | None) -> float:
        """Return the seconds that one step may take.

        Raises:
            httpcore.ReadTimeout: the deadline has passed.
        """
        remaining = self._at - self.clock.monotonic()
        if remaining <= 0:
            raise httpcore.ReadTimeout("the whole request took too long")
        return remaining if timeout is None else min(timeout, remaining)

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """See `httpcore.NetworkBackend`."""
        timeout = self.within(timeout)
        return _Stream(self._network.connect_tcp(host, port, timeout, local_address, socket_options), self)


def _kind(error: Exception, *, is_sent: bool) -> type[httpx.TransportError]:
    """Return the error of httpx for one of httpcore or of the layers below; see `Deadline.classified_errors`."""
    match error:
        case httpcore.ProxyError():
            return httpx.ProxyError
        case httpcore.ConnectError():  # also where a proxy alone was sent something
            return httpx.ConnectError
        case httpcore.ConnectTimeout():
            return httpx.ConnectTimeout
        case httpcore.TimeoutException():
            return httpx.ReadTimeout if is_sent else httpx.ConnectTimeout
        case httpcore.UnsupportedProtocol() | httpcore.LocalProtocolError() | ValueError() if not is_sent:
            return httpx.LocalProtocolError
    return httpx.ReadError if is_sent else httpx.ConnectError


class _Stream(httpcore.NetworkStream):
    """A connection that respects the deadline."""

    def __init__(self, stream: httpcore.NetworkStream, deadline: Deadline) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        remaining = self._deadline.within(timeout)
        # A signal that arrives right before the system call does not interrupt it: Python would handle the signal only
        # after the whole wait. Signals are handled by the main thread alone.
        while remaining > GLANCE and current_thread() is main_thread():
            with suppress(httpcore.ReadTimeout):
                return self._received(self._stream.read(max_bytes, GLANCE))
            remaining = self._deadline.within(remaining - GLANCE)
        return self._received(self._stream.read(max_bytes, remaining))

    def _received(self, received: bytes) -> bytes:
        self._deadline.moved(len(received))
        return received

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        timeout = self._deadline.within(timeout)
        # Before the write: if it fails halfway, the service may have received the request.
        self._deadline.sent = True
        self._stream.write(buffer, timeout)
        self._deadline.moved(len(buffer))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        timeout = self._deadline.within(timeout)
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, timeout), self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class _Body(httpx.SyncByteStream):
    """The body of a response as it arrives, and the action at its end."""

    def __init__(
        self, classified_errors: AbstractContextManager[None], pieces: Iterable[bytes], finish: Callable[[], None]
    ) -> None:
        self._classified_errors = classified_errors
        self._pieces = pieces
        self._finish = finish

    def __iter__(self) -> Iterator[bytes]:
        with self._classified_errors:
            yield from self._pieces

    def close(self) -> None:
        self._finish()


class DirectTransport(httpx.BaseTransport):
    """One connection: to the service, through the tunnel of a proxy, or to a proxy that forwards plain http."""

    def __init__(self, tls: ssl.SSLContext, proxy: httpx.Proxy | None, deadline: Deadline) -> None:
        self._tls = tls
        # The reader of responses understands HTTP/1.1 alone.
        self._tls.set_alpn_protocols(["http/1.1"])
        self._proxy = proxy
        self._deadline = deadline
        self._stream: httpcore.NetworkStream | None = None
        self._reader = _ResponseReader()
        self._origin = b"", b""
        self._again = False
        self._used = 0.0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request, and return its response, which must be closed before the next request.

        Raises:
            httpx.TransportError: see `Deadline.classified_errors`.
        """
        self._deadline.begin(request)
        with self._deadline.classified_errors(request):
            head = self._request_head(request)
            stream, reader = self._ready(request.url)
            try:
                reader.begin()
                taken = self._send(stream, head, request)
                self._read_head(stream, reader)
            except BaseException:
                self.close()
                raise
        pieces = self._read_body(stream, reader)
        body = _Body(
            self._deadline.classified_errors(request), pieces, lambda: self._finish(again=taken and reader.again)
        )
        phrase = {"reason_phrase": reader.phrase}
        return httpx.Response(reader.status, headers=reader.headers, stream=body, extensions=phrase)

    def close(self) -> None:
        """Close the connection, if there is one."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def _finish(self, *, again: bool) -> None:
        """Keep the connection for another request, or close it."""
        self._used = self._deadline.clock.monotonic()
        self._again = again
        if not again:
            self.close()

    def _request_head(self, http_request: httpx.Request) -> bytes:
        url, headers = http_request.url, http_request.headers.raw
        if self._proxy is None or url.scheme != "http":
            return _head(http_request.method, url.raw_path, headers)
        target = b"http://%b%b" % (url.netloc, url.raw_path)
        return _head(http_request.method, target, [*_credentials(self._proxy), *headers])

    def _ready(self, url: httpx.URL) -> tuple[httpcore.NetworkStream, "_ResponseReader"]:
        """Return the connection if it leads to the URL and its last response ended cleanly; else a new connection."""
        again, origin = self._again, (url.raw_scheme, url.netloc)
        self._again = False
        if self._stream is not None:
            rested = self._deadline.clock.monotonic() - self._used
            # A readable idle connection was closed by the service, or has a response that belongs to no request.
            if not again or origin != self._origin or rested > IDLE or self._stream.get_extra_info("is_readable"):
                self.close()
        if self._stream is None:
            self._stream, self._origin = self._connected(url), origin
            self._reader = _ResponseReader()
        return self._stream, self._reader

    def _connected(self, url: httpx.URL) -> httpcore.NetworkStream:
        if url.raw_scheme not in PORTS:
            raise httpcore.UnsupportedProtocol(f"a URL begins with http:// or https://, not {url.scheme}://")
        if self._proxy is None:
            return self._opened(url, self._tls if url.scheme == "https" else None)
        tls = httpcore.default_ssl_context() if self._proxy.url.scheme == "https" else None
        stream = self._opened(self._proxy.url, tls)
        return stream if url.scheme == "http" else self._tunnelled(stream, self._proxy, url)

    def _opened(self, url: httpx.URL, tls: ssl.SSLContext | None) -> httpcore.NetworkStream:
        timeout = self._deadline.connect_timeout
        host = url.raw_host.decode()
        stream = self._deadline.connect_tcp(host, url.port or PORTS[url.raw_scheme], timeout)
        return stream if tls is None else stream.start_tls(tls, host, timeout)

    def _tunnelled(self, stream: httpcore.NetworkStream, proxy: httpx.Proxy, url: httpx.URL) -> httpcore.NetworkStream:
        """Let a proxy connect to the service; the proxy sees the service's name, and nothing of the request."""
        reader = _ResponseReader()
        host = url.netloc if url.port else url.netloc + b":443"
        headers = [(b"Host", host), (b"Accept", b"*/*"), *_credentials(proxy)]
        try:
            stream.write(_head("CONNECT", host, headers), self._deadline.read_timeout)
            self._read_head(stream, reader)
            if not 200 <= reader.status < 300:
                raise httpcore.ProxyError(f"{reader.status} {reader.phrase.decode('ascii', 'ignore')}")
            if reader.pieces or reader.beyond:
                raise httpcore.ProxyError("the proxy sent more than the head of its answer")
            return stream.start_tls(self._tls, url.raw_host.decode(), self._deadline.connect_timeout)
        except BaseException:
            stream.close()
            raise
        finally:
            self._deadline.sent = False

    def _send(self, stream: httpcore.NetworkStream, head: bytes, http_request: httpx.Request) -> bool:
        """Send a request, and return whether the service has read all of it.

        The service may respond, and close, before it has read a body that it refuses.
        """
        timeout = self._deadline.read_timeout
        try:
            if isinstance(http_request.stream, httpx.ByteStream):
                stream.write(head + http_request.read(), timeout)
                return True
            stream.write(head, timeout)
            unsent = int(http_request.headers.get("content-length", 0))
            for piece in _pieces(http_request):
                unsent -= len(piece)
                if unsent < 0:
                    break
                stream.write(piece, timeout)
        # The response explains the refusal, such as 413 for an archive that is too large.
        except httpcore.WriteError:
            return False
        if unsent:
            raise httpcore.LocalProtocolError("the file changed while it was being sent")
        return True

    def _read_head(self, stream: httpcore.NetworkStream, response_reader: "_ResponseReader") -> None:
        received = bytearray()
        while not response_reader.headed:
            if len(received) > LARGEST_HEAD:
                raise httpcore.RemoteProtocolError("the head of the response is too large")
            data = stream.read(READ_BYTES, self._deadline.read_timeout)
            if not data:
                raise httpcore.RemoteProtocolError(CUT if received else SILENT)
            received += data
            response_reader.feed(data)
        response_reader.check(bytes(received))

    def _read_body(self, stream: httpcore.NetworkStream, response_reader: "_ResponseReader") -> Iterator[bytes]:
        bare = 0
        while True:
            if response_reader.pieces:
                bare = 0
                yield from response_reader.take()
            if response_reader.ended:
                return
            data = stream.read(READ_BYTES, self._deadline.read_timeout)
            if not data:
                if response_reader.until_close:
                    return
                raise httpcore.RemoteProtocolError(CUT)
            bare += len(data)
            if bare > LARGEST_HEAD + READ_BYTES:
                raise httpcore.RemoteProtocolError("the response has too much between the chunks of its body")
            response_reader.feed(data)


class _Unasked(Exception):
    """The begin of a response that belongs to no request."""


class _ResponseReader:
    """Reads the responses that arrive on one connection; the methods `on_...` are called by httptools.

    Attributes:
        headed: whether the head has been read; interim responses do not count.
        status: of the response.
        phrase: of its status.
        headers: as received.
        pieces: of the body; not yet taken.
        ended: whether the response is complete.
        beyond: whether any byte was received after its end.
        until_close: whether the response ends with the connection.
    """

    def __init__(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self.begin()

    def begin(self) -> None:
        """Expect another response."""
        self.headed = self.ended = self.beyond = self.until_close = self._lasts = False
        self._interim = self.status = 0
        self._version = ""
        self.phrase = b""
        self.headers: list[tuple[bytes, bytes]] = []
        self.pieces: list[bytes] = []

    @property
    def again(self) -> bool:
        """Whether the connection can take another request."""
        return self.ended and self._lasts and not self.beyond

    def take(self) -> list[bytes]:
        """Return the pieces of the body that have arrived since the last call."""
        pieces, self.pieces = self.pieces, []
        return pieces

    def feed(self, received: bytes) -> None:
        """Read received bytes, at least one.

        httptools does not show where a response ends. So the last byte is parsed alone, and must be the one that ends
        it.

        Raises:
            httpcore.RemoteProtocolError: the bytes belong to no response.
        """
        try:
            self._parser.feed_data(received[:-1])
            self.beyond = self.ended
            self._parser.feed_data(received[-1:])
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            if not self.ended:
                raise httpcore.RemoteProtocolError(f"the response is not HTTP/1.1: {error}") from None
            self.beyond = True

    def check(self, received: bytes) -> None:
        """Refuse a response whose head leaves a doubt about its begin or its end.

        Args:
            received: all bytes received so far, from the first byte of the response.

        Raises:
            httpcore.RemoteProtocolError: there is such a doubt.
        """
        # httptools skips blank lines before and between responses.
        if not all(head.startswith(b"HTTP/1.") for head in received.split(b"\r\n\r\n", self._interim)):
            raise httpcore.RemoteProtocolError("the response does not begin with its status")
        if self.status < 200:
            raise httpcore.RemoteProtocolError(f"the response has the status {self.status}")
        lengths = [value for name, value in self.headers if name.lower() == b"content-length"]
        codings = [value.lower() for name, value in self.headers if name.lower() == b"transfer-encoding"]
        if codings and (codings != [b"chunked"] or self._version != "1.1"):
            raise httpcore.RemoteProtocolError("the response has an unsupported transfer encoding")
        if self.status in BODILESS:
            self._lasts = self._lasts and not codings and lengths in ([], [b"0"])
        else:
            self.until_close = not (lengths or codings)

    def on_message_begin(self) -> None:
        """Begin a response: the expected one, or one after an interim response."""
        if self.ended:
            raise _Unasked
        self.phrase = b""
        self.headers = []

    def on_status(self, fragment: bytes) -> None:
        """Take a part of the status phrase."""
        self.phrase += fragment

    def on_header(self, header_name: bytes, header_value: bytes) -> None:
        """Take a header; trailers after the body are ignored."""
        if not self.headed:
            self.headers.append((header_name, header_value))

    def on_headers_complete(self) -> None:
        """Take the status, if the response is not interim."""
        self.status = self._parser.get_status_code()
        if 100 <= self.status < 200 and self.status != 101:
            self._interim += 1
            return
        self.headed = True
        self._version = self._parser.get_http_version()
        self._lasts = self._parser.should_keep_alive()

    def on_body(self, piece: bytes) -> None:
        """Take a piece of the body."""
        self.pieces.append(piece)

    def on_message_complete(self) -> None:
        """End the response, if it is not interim."""
        self.ended = self.headed


class SocksTransport(httpx.BaseTransport):
    """Connections through a SOCKS proxy, by httpcore's pool.

    The pool does not detect a response that belongs to no request, so each connection is used once.
    """

    def __init__(self, tls: ssl.SSLContext, proxy: httpx.Proxy, deadline: Deadline) -> None:
        if find_spec("socksio") is None:
            raise ValueError("a SOCKS proxy needs the package socksio")
        way = httpcore.Proxy(str(proxy.url), proxy.raw_auth)
        self._deadline = deadline
        self._pool = httpcore.ConnectionPool(tls, way, max_keepalive_connections=0, network_backend=deadline)
        read = deadline.read_timeout
        self._timeouts = {"connect": deadline.connect_timeout, "read": read, "write": read}

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """See `DirectTransport`."""
        url = request.url
        sent = httpcore.Request(
            request.method,
            httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
            headers=request.headers.raw,
            content=_pieces(request),
            extensions={"timeout": self._timeouts},
        )
        self._deadline.begin(request)
        with self._deadline.classified_errors(request):
            response = self._pool.handle_request(sent)
        body = _Body(self._deadline.classified_errors(request), response.iter_stream(), response.close)
        phrase = {"reason_phrase": response.extensions["reason_phrase"]}
        return httpx.Response(response.status, headers=response.headers, stream=body, extensions=phrase)

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()


def _head(method: str, request_target: bytes, headers: Headers) -> bytes:
    lines = [b"%b %b HTTP/1.1" % (method.encode(), request_target), *(b"%b: %b" % header for header in headers)]
    head = b"\r\n".join(lines)
    if {head.count(b"\r"), head.count(b"\n")} != {len(headers)} or b"\0" in head:
        raise httpcore.LocalProtocolError("a header has a line break")
    return head + b"\r\n\r\n"


def _pieces(http_request: httpx.Request) -> Iterator[bytes]:
    """Return the body of a request in pieces: a file may be larger than the memory."""
    return iter(cast("httpx.SyncByteStream", http_request.stream))


def _credentials(proxy: httpx.Proxy) -> Headers:
    """Return the header that has the user of a proxy, if there is one."""
    if proxy.raw_auth is None:
        return []
    return [(b"Proxy-Authorization", b"Basic " + b64encode(b":".join(proxy.raw_auth)))]
