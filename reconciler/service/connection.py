"""The connection of one request at a time: one request is sent; one complete response or one of our errors returned.

httpx builds the requests, and a transport of httpx carries them: that of `transport`, or one of a test. Begin with
`Connection.exchange`.
"""

import re
import ssl
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from ipaddress import ip_address
from socket import gaierror
from types import MappingProxyType
from typing import BinaryIO, cast
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx

from reconciler.errors import (
    AnswerLost,
    BadAnswer,
    ConfigurationError,
    ConnectionFailure,
    ServiceError,
    Unreachable,
    Unsendable,
    Untrusted,
)
from reconciler.model.protocols import Begin, Json
from reconciler.service.policy import Clock, Policy
from reconciler.service.responses import Response, plain
from reconciler.service.transport import IS_LARGE, Connect

ENCODINGS = ("", "identity", "gzip")
"""The content encodings that are decoded. 64 KiB of gzip are 64 MiB at most; of others, any number."""

GZIP = 16 + zlib.MAX_WBITS
"""The `wbits` with which zlib reads gzip."""

FAILURES = (httpx.HTTPError, OSError, ValueError, zlib.error)
"""The errors of transports, and of unpacking: callers get a `ServiceError` instead."""

NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)
"""Errors of transports from before a request is sent, even if a proxy was sent something by then."""

UNSENDABLE = (httpx.UnsupportedProtocol, httpx.LocalProtocolError)
"""Errors of transports that a retry cannot avoid; no complete request was sent."""

CAUSES: Mapping[type[BaseException], ConnectionFailure] = MappingProxyType(
    {
        httpx.ProxyError: ConnectionFailure.PROXY,
        gaierror: ConnectionFailure.NAME,
        ConnectionRefusedError: ConnectionFailure.REFUSED,
        ssl.SSLError: ConnectionFailure.TLS,
        httpx.TimeoutException: ConnectionFailure.TIMEOUT,
    }
)
"""The cause of a failure, by the error that shows it; the first match counts."""

FILE_NAME = "archive.tar.gz"
"""The name of every uploaded file, whatever its local name is."""

NO_CONTENT = httpx.ByteStream(b"")

FRAMING = frozenset({"content-length", "transfer-encoding"})
"""The headers that define the end of a body. Without them, a body that was cut off looks complete."""

NO_BODY = "the connection was closed before a body arrived"

ERROR_NUMBER = re.compile(r"^\[Errno -?[0-9]+\] ")
ADVICE = "name the certificate of a private authority with --ca-file"


@dataclass(frozen=True, slots=True)
class Form:
    """A body of the type multipart/form-data; the file, of any size, is its part `file`."""

    fields: Mapping[str, str]
    file: BinaryIO


class Connection:
    """The connection of one request at a time, without retries, rates and redirects.

    Args:
        connect: makes the transport.

    Raises:
        httpx.InvalidURL, ValueError: the proxy that the environment names cannot be used.
    """

    def __init__(self, api_url: str, policy: Policy, clock: Clock, tls: ssl.SSLContext, connect: Connect) -> None:
        self._api_url = api_url
        self._largest_response = policy.largest_response
        seconds = {"connect": policy.connect_timeout, "read": policy.read_timeout, "write": policy.read_timeout}
        self._extensions = {"timeout": seconds | {"pool": policy.connect_timeout}}
        # httpx checks and completes headers in 40 us; nearly all requests have the same.
        self._headers = cache(lambda method, headers: httpx.Request(method, api_url, headers=headers).headers)
        self._transport = connect(tls, proxy_for(api_url), policy, clock)

    def exchange(
        self, method: str, path: str, headers: Mapping[str, str], body: Json, begin: Begin | None = None
    ) -> Response:
        """Send one request to `{api_url}/{path}` and return the response.

        Args:
            method: GET, POST, ...
            path: with its query.
            headers: of the request.
            body: a form, however large; else it is sent as JSON; None for none.
            begin: takes a successful response without keeping its body, however large.

        Raises:
            Unreachable: nothing was sent.
            Unsendable: the request can never be sent.
            AnswerLost: something was sent, and no whole response came back.
            BadAnswer: the response is too large, or has a content encoding that was not accepted.
        """
        request = f"{method} {path.partition('?')[0]}"
        if not is_plain(path):
            raise Unsendable(plain(request), "the request cannot be sent: its path may lead elsewhere")
        try:
            sent = self._request(method, path, headers, body, begin)
        except (httpx.InvalidURL, ValueError) as error:
            raise Unsendable(request, f"the request cannot be sent: {_reason(error)}") from None
        try:
            with closing(self._transport.handle_request(sent)) as response:
                try:
                    return self._receive(request, response, begin)
                except BaseException:  # the connection may still carry bytes of a response that cannot be trusted
                    self._transport.close()
                    raise
        except FAILURES as error:
            raise self._own_error(request, error) from None

    def close(self) -> None:
        """Close the connection, if it is open."""
        self._transport.close()

    def _request(
        self, method: str, path: str, headers: Mapping[str, str], body: Json, begin: Begin | None
    ) -> httpx.Request:
        url = f"{self._api_url}/{path}"
        extensions = self._extensions if begin is None else self._extensions | {IS_LARGE: True}
        if isinstance(body, Form):
            # A retry sends the file from its beginning.
            body.file.seek(0)
            files = {"file": (FILE_NAME, body.file, "application/gzip")}
            return httpx.Request(method, url, headers=headers, data=body.fields, files=files, extensions=extensions)
        if body is None:
            complete = self._headers(method, tuple(headers.items()))
            return httpx.Request(method, url, headers=complete, stream=NO_CONTENT, extensions=extensions)
        return httpx.Request(method, url, headers=headers, json=body, extensions=extensions)

    def _receive(self, request: str, http_response: httpx.Response, begin: Begin | None) -> Response:
        status = http_response.status_code
        received = [
            (name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in http_response.headers.raw
        ]
        encoding = ", ".join(value for name, value in received if name == "content-encoding").strip().lower()
        if encoding not in ENCODINGS:
            reason = f"the response has an unsupported content encoding: {plain(encoding)}"
            raise BadAnswer(request, reason, status)
        stream = cast("httpx.SyncByteStream", http_response.stream)
        pieces = _unpacked(stream) if encoding == "gzip" else stream
        phrase, headers = http_response.reason_phrase, dict(received)
        if begin is not None and 200 <= status < 300:
            write = begin(headers)
            if write is not None:
                for piece in pieces:
                    write(piece)
            return Response(status, phrase, headers, b"")
        body = bytearray()
        for piece in pieces:
            body += piece
            if len(body) > self._largest_response:
                largest = f"{self._largest_response / 2**20:g} MiB"
                raise BadAnswer(request, f"the response is larger than {largest}", status)
        if not body and 200 <= status < 300 and status != 204 and FRAMING.isdisjoint(headers):
            raise httpx.RemoteProtocolError(NO_BODY)
        return Response(status, phrase, headers, bytes(body))

    def _own_error(self, request: str, error: Exception) -> ServiceError:
        """Return our error for one of a transport; its type depends on whether anything was sent."""
        causes = tuple(_causes(error))
        for cause in causes:
            if isinstance(cause, ssl.SSLCertVerificationError):
                reason = f"{self._api_url} cannot be trusted: {plain(cause.verify_message)}; {ADVICE}"
                return Untrusted(request, reason)
        if isinstance(error, UNSENDABLE):
            return Unsendable(request, f"the request cannot be sent: {_reason(error)}")
        if not isinstance(error, NEVER_SENT):
            return AnswerLost(request, f"the response was lost: {_reason(error)}")
        known = (cause_text for kind, cause_text in CAUSES.items() if any(isinstance(cause, kind) for cause in causes))
        failure = next(known, ConnectionFailure.OTHER)
        return Unreachable(request, f"{self._api_url} cannot be reached: {_reason(error)}", failure)


def _reason(error: Exception) -> str:
    return plain(ERROR_NUMBER.sub("", str(error))) or type(error).__name__


def tls_context(url: str, ca_file: str | None, *, besides: bool = False) -> ssl.SSLContext:
    """Return the TLS settings that verify the server of a URL, by the certificates of a file or of the system.

    Args:
        url: of the server; only https needs certificates.
        ca_file: the certificates of a private authority, or None.
        besides: whether the system's certificates are trusted besides those of the file.

    Raises:
        ConfigurationError: the file is unusable.
    """
    if not url.lower().startswith("https:"):
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        if ca_file is not None and not besides:
            return ssl.create_default_context(cafile=ca_file)
        context = httpx.create_ssl_context()
        if ca_file is not None:
            context.load_verify_locations(ca_file)
    except ssl.SSLError:
        raise ConfigurationError(f"{ca_file}: holds no certificates") from None
    except OSError as error:
        raise ConfigurationError(f"{ca_file}: {error.strerror}") from None
    return context


def _unpacked(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the content of a body that is packed with gzip, which may have several members.

    Raises:
        zlib.error: the body is not gzip, or incomplete.
    """
    member = None
    for piece in pieces:
        packed = piece
        while packed:
            if member is None or member.eof:
                member = zlib.decompressobj(GZIP)
            yield member.decompress(packed)
            packed = member.unused_data
    if member is not None and not member.eof:
        raise zlib.error("the packed response is cut")


def is_plain(path: str) -> bool:
    """Whether a percent-encoded path, with or without a query, means the same to every server and proxy.

    The path has no dot segments, in whatever encoding, no empty segments, no fragment, no backslashes, no blanks and
    only ASCII. Some servers resolve `%2e` and `%2F` before they route a request.
    """
    if not path.isascii() or not path.isprintable() or not {" ", "#", "\\"}.isdisjoint(path):
        return False
    path = path.partition("?")[0].lower()
    if "//" in path:
        return False
    return {".", ".."}.isdisjoint(path.replace("%2e", ".").replace("%2f", "/").replace("%5c", "/").split("/"))


def is_loopback(url: str) -> bool:
    """Whether a URL leads to this machine, so that requests need no protection on the way."""
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def proxy_for(api_url: str) -> str | None:
    """Return the proxy that the environment names for a URL (`https_proxy`, `no_proxy` and so on), or None.

    A URL of this machine has no proxy: the proxy would get the token, and send the request to itself.
    """
    url = urlsplit(api_url)
    if is_loopback(api_url) or proxy_bypass(url.netloc):
        return None
    proxies = getproxies()
    proxy = proxies.get(url.scheme) or proxies.get("all")
    return f"http://{proxy}" if proxy and "://" not in proxy else proxy


def _causes(outer_error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error, its cause, the cause of that and so on."""
    while outer_error is not None:
        yield outer_error
        outer_error = outer_error.__cause__ or outer_error.__context__
