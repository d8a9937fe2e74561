"""The client: token, pages, connections. One `httpx.Client` a thread, one TLS context for all of them."""

import logging
import ssl
from dataclasses import dataclass, field
from threading import Lock, local
from time import monotonic
from types import TracebackType
from typing import Self

import httpx

from reconciler import __version__
from reconciler.errors import AnswerLost, BadAnswer, ConfigurationError, Unreachable
from reconciler.service.answers import plain, read_answer
from reconciler.wire import Json, Request

LOG = logging.getLogger(__name__)

PER_PAGE = 100
"""The largest page the service sends (deployed behaviour, section 7.3)."""

TIMEOUT = httpx.Timeout(connect=10, read=60, write=60, pool=None)
"""Seconds."""


@dataclass(slots=True)
class Traffic:
    """How many requests were made, counted by all threads."""

    reads: int = 0
    writes: int = 0
    _lock: Lock = field(default_factory=Lock)

    def count(self, method: str) -> None:
        """Count one request."""
        with self._lock:
            if method == "GET":
                self.reads += 1
            else:
                self.writes += 1


class Client:
    """A `wire.Service` over HTTP. Safe to use from any thread.

    Attributes:
        api_url: without a slash at its end.
        traffic: how many requests were made so far.

    Raises:
        ConfigurationError: the certificates cannot be used.
    """

    def __init__(self, api_url: str, token: str, *, ca_file: str | None = None) -> None:
        self.api_url = api_url.rstrip("/")
        self.traffic = Traffic()
        self._headers = {
            "PRIVATE-TOKEN": token,
            "User-Agent": f"reconciler/{__version__}",
            "Accept": "application/json",
        }
        self._tls = (
            _tls_context(ca_file) if self.api_url.startswith("https:") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        )
        self._thread = local()
        self._clients: list[httpx.Client] = []
        self._lock = Lock()

    def __enter__(self) -> Self:
        """Return the client itself."""
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        """Close all connections."""
        for client in self._clients:
            client.close()

    def get(self, path: str) -> Json:
        """See `wire.Reader`."""
        return read_answer(f"GET {path}", self._exchange("GET", path))

    def pages(self, path: str) -> list[Json]:
        """See `wire.Reader`. Goes by `x-next-page`; where a server sends no page headers, by the length of pages."""
        items: list[Json] = []
        page = "1"
        while page:
            request = f"GET {path}"
            response = self._exchange("GET", f"{path}?per_page={PER_PAGE}&page={page}")
            entries = read_answer(request, response)
            if not isinstance(entries, list):
                raise BadAnswer(request, "the answer is not a list", response.status_code)
            if entries and entries == items[-len(entries) :]:
                break
            items += entries
            following = _next_page(response, page, len(entries))
            if following and not (following.isdecimal() and int(following) > int(page)):
                reason = f"the next page after page {page} cannot be {following!r}"
                raise BadAnswer(request, reason, response.status_code)
            page = following
        return items

    def send(self, request: Request) -> Json:
        """See `wire.Service`."""
        return read_answer(str(request), self._exchange(request.method, request.path, request.body))

    def _exchange(self, method: str, path: str, body: Json = None) -> httpx.Response:
        client = self._client()
        # A write without a JSON content type is redirected by a service in maintenance, and would look carried out.
        headers = {} if method == "GET" else {"Content-Type": "application/json"}
        self.traffic.count(method)
        request = f"{method} {path.partition('?')[0]}"
        started = monotonic()
        try:
            response = client.request(method, f"{self.api_url}/{path}", json=body, headers=headers)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.UnsupportedProtocol, httpx.ProxyError) as error:
            raise Unreachable(request, f"{self.api_url} cannot be reached: {plain(str(error))}") from None
        except (httpx.HTTPError, httpx.StreamError) as error:
            reason = plain(str(error)) or type(error).__name__
            raise AnswerLost(request, f"the answer was lost: {reason}") from None
        LOG.debug("%s %d, %.0f ms", request, response.status_code, 1000 * (monotonic() - started))
        return response

    def _client(self) -> httpx.Client:
        client: httpx.Client | None = getattr(self._thread, "client", None)
        if client is None:
            client = httpx.Client(headers=self._headers, verify=self._tls, timeout=TIMEOUT, follow_redirects=False)
            self._thread.client = client
            with self._lock:
                self._clients.append(client)
        return client


def _tls_context(ca_file: str | None) -> ssl.SSLContext:
    if ca_file is None:
        return httpx.create_ssl_context()
    try:
        return ssl.create_default_context(cafile=ca_file)
    except ssl.SSLError:
        raise ConfigurationError(f"{ca_file}: holds no certificates") from None
    except OSError as error:
        raise ConfigurationError(f"{ca_file}: {error.strerror}") from None


def _next_page(response: httpx.Response, page: str, length: int) -> str:
    """The number of the next page, or an empty string at the end."""
    following = response.headers.get("x-next-page")
    if following is not None:
        return str(following)
    return str(int(page) + 1) if length == PER_PAGE else ""
