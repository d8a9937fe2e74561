"""One thread's line to the service: one request out, one whole answer back, or one of our own errors."""

import re
import ssl
from collections.abc import Callable, Iterator, Mapping
from socket import gaierror
from types import MappingProxyType
from typing import cast
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx

from reconciler.errors import AnswerLost, BadAnswer, Hindrance, ServiceError, Unreachable, Unsendable, Untrusted
from reconciler.model.protocols import Json
from reconciler.service.deadlines import Transport
from reconciler.service.paths import is_loopback, is_plain
from reconciler.service.policy import Clock, Policy
from reconciler.service.responses import Answer, plain

PACKINGS = ("", "identity", "gzip")
"""The content encodings that are unpacked. 64 KiB of gzip are 64 MiB at most; of others, any number."""

FAULTS = (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, httpx.CookieConflict, OSError, ValueError)
"""Whatever httpx and what lies beneath it raise; their errors stop here."""

UNSENDABLE = (httpx.InvalidURL, httpx.UnsupportedProtocol, httpx.LocalProtocolError, ValueError)
"""Those that no second try will be rid of."""

NEVER_CONNECTED = (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError)
"""Those that come up before a request is sent, even if a proxy was sent something by then."""

HINDRANCES: Mapping[type[BaseException], Hindrance] = MappingProxyType(
    {
        httpx.ProxyError: Hindrance.PROXY,
        gaierror: Hindrance.NAME,
        ConnectionRefusedError: Hindrance.REFUSED,
        ssl.SSLError: Hindrance.TLS,
        httpx.TimeoutException: Hindrance.SILENT,
    }
)
"""By the exception that tells; the first that fits counts."""

ERROR_NUMBER = re.compile(r"^\[Errno -?[0-9]+\] ")
ADVICE = "an authority that this machine does not know is named with --ca-file"

Connect = Callable[[ssl.SSLContext, str | None, Clock], Transport]
"""What opens a thread's connections, by TLS context, the URL of a proxy, and the clock."""


class Line:
    """The connections of one thread. A request on it knows nothing of retries, of rates and of redirects."""

    def __init__(self, api_url: str, policy: Policy, transport: Transport) -> None:
        self._api_url = api_url
        self._policy = policy
        self._transport = transport
        timeouts = {"connect": policy.connect_timeout, "read": policy.read_timeout, "write": policy.read_timeout}
        self._extensions = {"timeout": timeouts | {"pool": None}}

    def exchange(self, method: str, path: str, headers: Mapping[str, str], body: Json) -> Answer:
        """Send one request to `{api_url}/{path}` and return its answer.

        Raises:
            Unreachable: nothing was sent.
            Unsendable: nothing ever will be.
            AnswerLost: something was sent, and no whole answer came back.
            BadAnswer: the answer is larger than it may be, or packed in a way nobody asked for.
        """
        request = f"{method} {path.partition('?')[0]}"
        if not is_plain(path):
            raise Unsendable(plain(request), "it cannot be sent: its path leads elsewhere")
        self._transport.deadline.begin(self._policy.total_timeout)
        try:
            url = f"{self._api_url}/{path}"
            sent = httpx.Request(method, url, headers=headers, json=body, extensions=self._extensions)
            response = self._transport.handle_request(sent)
            try:
                return self._receive(request, response)
            finally:
                response.close()
        except FAULTS as error:
            raise self._named(request, error) from None

    def close(self) -> None:
        """Close all connections."""
        self._transport.close()

    def _receive(self, request: str, response: httpx.Response) -> Answer:
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers.raw}
        packing = response.headers["content-encoding"].strip().lower() if "content-encoding" in headers else ""
        if packing not in PACKINGS:
            reason = f"the answer is packed in a way nobody asked for: {plain(packing)}"
            raise BadAnswer(request, reason, response.status_code)
        body = bytearray()
        # Where there is nothing to unpack, httpx would take a while to find that out.
        plain_stream = cast("httpx.SyncByteStream", response.stream)
        for chunk in response.iter_bytes() if packing == "gzip" else plain_stream:
            body += chunk
            if len(body) > self._policy.largest_answer:
                largest = f"{self._policy.largest_answer / 2**20:g} MiB"
                raise BadAnswer(request, f"the answer is larger than {largest}", response.status_code)
        return Answer(response.status_code, response.reason_phrase, headers, bytes(body))

    def _named(self, request: str, error: Exception) -> ServiceError:
        """Turn an error of httpx into our own, by whether anything was sent."""
        reason = plain(ERROR_NUMBER.sub("", str(error))) or type(error).__name__
        refusal = _refused_certificate(error)
        if refusal is not None:
            return Untrusted(request, f"{self._api_url} cannot be trusted: {plain(refusal.verify_message)}; {ADVICE}")
        if self._transport.deadline.sent and not isinstance(error, NEVER_CONNECTED):
            return AnswerLost(request, f"the answer was lost: {reason}")
        if isinstance(error, UNSENDABLE):
            return Unsendable(request, f"it cannot be sent: {reason}")
        unreachable = Unreachable(request, f"{self._api_url} cannot be reached: {reason}")
        unreachable.hindrance = _hindrance(error)
        return unreachable


def proxy_for(api_url: str) -> str | None:
    """Return the proxy that the environment names for a URL (`https_proxy`, `no_proxy` and so on), or None.

    A URL of this machine has none: a proxy would get the token, unprotected, and ask itself.
    """
    url = urlsplit(api_url)
    if is_loopback(api_url) or proxy_bypass(url.netloc):
        return None
    proxies = getproxies()
    proxy = proxies.get(url.scheme) or proxies.get("all")
    return f"http://{proxy}" if proxy and "://" not in proxy else proxy


def _refused_certificate(error: BaseException) -> ssl.SSLCertVerificationError | None:
    return next((each for each in _causes(error) if isinstance(each, ssl.SSLCertVerificationError)), None)


def _hindrance(error: BaseException) -> Hindrance:
    """Return what lay beneath an error of httpx."""
    causes = tuple(_causes(error))
    known = (found for kind, found in HINDRANCES.items() if any(isinstance(each, kind) for each in causes))
    return next(known, Hindrance.OTHER)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error, what it came from, and so on."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
