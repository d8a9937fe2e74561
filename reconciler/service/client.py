"""The `Client`: authentication, threads, retries and redirects.

Each request in flight has its own connection; all share one limiter and one TLS context. The token is sent to its own
service only, and writes go only to targets that the manifests name: redirects of reads within the API are followed
(spec section 7; deployed behaviour, section 7.6).
"""

import logging
from collections.abc import Collection, Mapping
from contextlib import suppress
from datetime import datetime
from random import Random
from threading import Event, Lock
from types import TracebackType
from typing import BinaryIO, Self

import httpx

from reconciler import __version__
from reconciler.errors import (
    AccountClosed,
    ConfigurationError,
    Forbidden,
    Moved,
    NotFound,
    RateLimited,
    ServiceError,
    Stopped,
    Unreachable,
    WaitTooLong,
)
from reconciler.model.protocols import Begin, Json, KeepPage, Kept, Request, Spread
from reconciler.model.targets import Level
from reconciler.service.connection import Connection, Form, tls_context
from reconciler.service.limiter import Limiter
from reconciler.service.moves import Moves, is_about_content, redirect, target_of
from reconciler.service.pagination import read_list
from reconciler.service.policy import (
    DEFAULT_POLICY,
    TRANSIENT,
    Clock,
    Policy,
    backoff,
    has_own_limit,
    is_in_doubt,
    is_transient,
    max_tries,
    retry_after,
)
from reconciler.service.responses import (
    Response,
    explanation,
    hidden,
    parse_date,
    plain,
    read_response,
    without_secrets,
)
from reconciler.service.storage import fetch_redirected, read_download
from reconciler.service.traffic import Traffic, Wait
from reconciler.service.transport import Connect, open_transport

LOG = logging.getLogger(__name__)

LONGEST_ID = 64
"""Characters of the service's request ID that are logged."""

NO_RESPONSE = Response(0, "", {}, b"")

FORBIDDEN = 403

OWNER = "user"
"""The path of the record of the token's owner, which every token may read."""

HAS_MOVED = "its group or project has moved"


class Client:
    """A `protocols.Service` over HTTP. Safe to use from any thread.

    Args:
        ca_file: certificates to trust; None for the system's.
        besides: whether the system's certificates are trusted too.
        connect: makes the transport of one request at a time.

    Attributes:
        api_url: without a slash at its end.
        traffic: the requests and waits so far.
        concurrency: returns the number of requests that may be in flight.
        follows_moved: whether groups and projects that have moved may be written to.
        stop: set it to end a run that waits: waits that the service asks for, and pauses before a retry, end in
            `Stopped`. Requests that need not wait are still sent, so that begun work can be finished.

    Raises:
        ConfigurationError: the token, the certificates, the URL, or the proxy of the environment is unusable.
    """

    def __init__(
        self,
        api_url: str,
        token: str,
        *,
        ca_file: str | None = None,
        besides: bool = False,
        policy: Policy = DEFAULT_POLICY,
        clock: Clock | None = None,
        random: Random | None = None,
        connect: Connect = open_transport,
    ) -> None:
        if not (token and token.isascii() and token.isprintable() and " " not in token):
            raise ConfigurationError("the token is empty, or holds blanks or characters that no token has")
        self.api_url = api_url.rstrip("/")
        self.traffic = Traffic()
        self.stop = Event()
        self._token = token
        self._policy = policy
        self.follows_moved = policy.follow_moved
        self._clock = clock or Clock()
        self._random = random or Random()  # noqa: S311 - spreads retries, keeps no secret
        self._limiter = Limiter(policy, self._clock, self.traffic, self.stop)
        self.concurrency = self._limiter.concurrency
        self._moves = Moves()
        self._closed: dict[str, bool] = {}
        self._refusing = Lock()
        self._recalled: dict[str, Json | ServiceError] = {}
        self._asking: dict[str, Lock] = {}
        self._secrets: frozenset[str] = frozenset()
        self._heard = False
        self._date = "", self._clock.now()
        self._headers = {
            "PRIVATE-TOKEN": token,
            "User-Agent": f"reconciler/{__version__}",
            "Accept": "application/json",
            "Accept-Encoding": "gzip",
        }
        # In maintenance, GitLab redirects writes without a JSON content type instead of refusing them (deployed
        # behaviour, section 7.2): a client that followed would report success.
        self._write_headers = self._headers | {"Content-Type": "application/json"}
        self._ca_file = ca_file
        self._tls = tls_context(self.api_url, ca_file, besides=besides)
        self._connect = connect
        self._connections: list[Connection] = []
        self._idle: list[Connection] = []
        try:
            self._idle.append(self._connection())
        except (httpx.InvalidURL, ValueError) as error:
            raise ConfigurationError(f"{self.api_url} or its proxy cannot be used: {plain(str(error))}") from None

    def __enter__(self) -> Self:
        """Return the client itself."""
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        """Close all connections."""
        for connection in self._connections:
            connection.close()

    @property
    def token(self) -> str:
        """The token, a secret: git pushes the inventory with it where the repository has the same origin."""
        return self._token

    @property
    def moved(self) -> Mapping[tuple[Level, str], int]:
        """The groups and projects that have moved: their numeric IDs by level and requested path."""
        return self._moves.found

    def get(self, path: str) -> Json:
        """See `protocols.Reader`. A redirect within the API is followed once."""
        value, _ = self._carry_out("GET", path)
        return value

    def recall(self, path: str) -> Json:
        """See `protocols.Reader`. A refusal is remembered too; after any other error, the record is requested again."""
        with self._refusing:
            # One lock for each path: threads that need the same record share one request.
            asking = self._asking.setdefault(path, Lock())
        with asking:
            if path not in self._recalled:
                try:
                    self._recalled[path] = self.get(path)
                except (Forbidden, NotFound) as refusal:
                    self._recalled[path] = refusal
            answer = self._recalled[path]
            if isinstance(answer, ServiceError):
                raise answer
            return answer

    def pages(self, path: str, *, whole: bool = False) -> list[Json]:
        """See `protocols.Reader`. A list that changes while it is read is read again."""
        return read_list(lambda page: self._carry_out("GET", page), path, list, whole=whole)

    def gather(self, path: str, keep: KeepPage[Kept], spread: Spread | None = None) -> list[Kept]:
        """See `protocols.FleetReader`."""
        return read_list(lambda page: self._carry_out("GET", page), path, keep, spread=spread)

    def visible(self, path: str) -> list[Json]:
        """See `notes.Board`: all items of all pages of a list whose total includes hidden items."""
        return read_list(lambda page: self._carry_out("GET", page), path, list, counted=False)

    def now(self) -> datetime:
        """See `protocols.FleetReader`: the local clock, corrected by the latest response."""
        date, received_at = self._date
        now = self._clock.now()
        return now + ((parse_date(date) or received_at) - received_at)

    def download(self, path: str, begin: Begin) -> None:
        """Fetch a file of any size, once. A redirect to another host is followed without the token.

        Args:
            path: of the file.
            begin: gets the headers of the response that has the file.

        Raises:
            ServiceError: the file does not exist, or is incomplete.
        """
        request = f"GET {path}"
        response = self._exchange(request, "GET", path, None, 1, begin=begin)
        location = redirect(response)
        if location is not None:
            fetch_redirected(f"{self.api_url}/{path}", location, begin, self._ca_file)
        else:
            read_download(request, response)

    def send(self, request: Request, *, secrets: Collection[str] = (), file: BinaryIO | None = None) -> Json:
        """See `protocols.Service`. Redirects are not followed; a DELETE is done if an earlier try may have been.

        Raises:
            ServiceError: ambiguous, if the write may have been carried out all the same.
        """
        target = self._moves.moved_target(request.path)
        if target is not None and not self._policy.follow_moved:
            reason = f"the {target.level} has moved, and is {target} now; writing to it needs --follow-moved"
            raise Moved(str(request), reason)
        body = request.body if file is None else Form({k: str(v) for k, v in (request.body or {}).items()}, file)
        with self._refusing:
            self._secrets |= set(secrets)
        value, _ = self._carry_out(request.method, request.path, body, once=request.once)
        return value

    def pause(self, request: str, seconds: float) -> None:
        """See `protocols.Service`."""
        self._limiter.pause(request, Wait.CREATION, seconds)

    def _carry_out(self, method: str, path: str, body: Json = None, *, once: bool = False) -> tuple[Json, Response]:
        """Send a request, with retries that are safe and may help, and read its response.

        A request that is sent `once` is retried only if it was certainly not carried out. A deletion of that kind is
        retried only if the service was not reached: a wrong `Retry-After` must not cost a second object.
        """
        request = f"{method} {path.partition('?')[0]}"
        in_doubt, sent, tries, pause_seconds = False, False, 0, 0.0
        while True:
            response = NO_RESPONSE
            try:
                if pause_seconds:
                    self._limiter.pause(request, Wait.RETRY, pause_seconds)
                tries += 1
                response = without_secrets(self._try(request, method, path, body, tries), self._secrets)
                return read_response(request, response), response
            except ServiceError as error:
                error.sent = sent = sent or not isinstance(error, Stopped | WaitTooLong)
                # An earlier try may have deleted the object: GitLab 18.9 answers 400 to a second deletion in an
                # allowlist, and 404 in other lists (deployed behaviour, section 2).
                if in_doubt and method == "DELETE" and error.status in (400, 404):
                    return None, response
                pause = retry_after(response.headers, self._clock.now())
                doubtful = method != "GET" and is_in_doubt(error, pause)
                error.ambiguous = in_doubt = in_doubt or doubtful
                error.reason = hidden(error.reason, self._secrets).replace(self._token, "[the token]")
                if type(error) is Forbidden and path != OWNER and self._is_closed(error.reason, response.phrase):
                    raise AccountClosed(request, error.reason, error.status) from error
                # The limit is that of imports alone, and the caller postpones these: a pause of all threads would
                # stop the whole run for a minute.
                if isinstance(error, RateLimited) and has_own_limit(method, path):
                    raise
                pause_seconds = self._pause_before_retry(
                    error, pause, tries, explanation(response).replace(self._token, "[the token]")
                )
                is_first = once and (in_doubt or (method == "DELETE" and not isinstance(error, Unreachable)))
                may_help = is_transient(method, error, in_doubt=doubtful) and not is_first
                if not may_help or not self._may_retry(error, tries):
                    raise

    def _is_closed(self, reason: str, phrase: str) -> bool:
        """Return whether the service refuses every request of the token's owner, with this explanation.

        It costs one request for each new explanation.
        """
        # Without an explanation, a 403 is about the endpoint: a blocked account has one (deployed behaviour, section
        # 12).
        if reason in {"403", "403 Forbidden", f"403 {plain(phrase)}"}:
            return False
        with self._refusing:
            if reason not in self._closed:
                try:
                    self._recalled[OWNER] = self.get(OWNER)
                    self._closed[reason] = False
                except ServiceError as error:
                    self._closed[reason] = error.status == FORBIDDEN and error.reason == reason
        return self._closed[reason]

    def _may_retry(self, error: ServiceError, tries: int) -> bool:
        policy = self._policy
        may = tries < max_tries(policy, error, heard=self._heard)
        return may and self.traffic.allows_retry(policy.retry_share, policy.retry_allowance)

    def _pause_before_retry(self, error: ServiceError, pause: float | None, tries: int, words: str) -> float:
        """Return the seconds to wait before a retry.

        If the service asks for a pause, all threads wait, and 0 is returned.
        """
        seconds = backoff(self._policy, tries, self._random)
        is_limit = isinstance(error, RateLimited)
        if not is_limit and not (pause and error.status in TRANSIENT):
            return seconds
        seconds = pause or min(seconds, self._policy.max_wait)
        self._limiter.block(seconds, Wait.RATE_LIMIT if is_limit else Wait.UNAVAILABLE, words)
        return 0.0

    def _try(self, request: str, method: str, path: str, body: Json, tries: int) -> Response:
        """Send a request once. A redirected read within the API is sent to its new path.

        Raises:
            Moved: the request is about the content of a target that has moved, and such reads are not followed.
        """
        # A project scheduled for deletion redirects too: without --follow-moved, its content is not read (deployed
        # behaviour, section 7.6).
        stays = method == "GET" and not self._policy.reads_moved and is_about_content(path)
        if stays and self._moves.moved_target(path) is not None:
            raise Moved(request, HAS_MOVED)
        path = self._moves.current(path)
        response = self._exchange(request, method, path, body, tries)
        location = redirect(response) if method == "GET" else None
        target = None if location is None else target_of(self.api_url, path, location)
        if target is None:
            return response
        self._moves.learn(path, target)
        if stays and self._moves.moved_target(path) is not None:
            raise Moved(request, HAS_MOVED, response.status)
        return self._exchange(request, method, target, body, tries)

    def _exchange(
        self, request: str, method: str, path: str, body: Json, tries: int, *, begin: Begin | None = None
    ) -> Response:
        """Send one request as soon as the limiter allows it: all requests are counted and logged here."""
        headers = self._headers if method == "GET" or isinstance(body, Form) else self._write_headers
        response = NO_RESPONSE
        sent = self._limiter.acquire(request)
        connection = self._connection()
        try:
            self.traffic.count(method, again=tries > 1)
            response = connection.exchange(method, path, headers, body, begin)
            self._heard = True
            self._date = response.headers.get("date", ""), self._clock.now()
            self.traffic.answered(self._clock.monotonic() - sent.at)
        finally:
            self._idle.append(connection)
            self._limiter.release(sent, response.status or None, response.headers)
            if LOG.isEnabledFor(logging.DEBUG):
                milliseconds = 1000 * (self._clock.monotonic() - sent.at)
                number = hidden(response.headers.get("x-request-id", ""), self._secrets)
                number = plain(number)[:LONGEST_ID] or "unknown"
                status = response.status or "not answered"
                LOG.debug("%s %s, %.0f ms, try %d, request %s", request, status, milliseconds, tries, number)
        return response

    def _connection(self) -> Connection:
        """Return the idle connection that was used last, or a new connection."""
        with suppress(IndexError):
            return self._idle.pop()
        connection = Connection(self.api_url, self._policy, self._clock, self._tls, self._connect)
        self._connections.append(connection)
        return connection
