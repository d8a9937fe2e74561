"""The client: the token, threads, tries. One line a thread, one governor and one TLS context for all of them."""

import logging
import ssl
from collections.abc import Mapping
from datetime import datetime
from random import Random
from threading import Event, Lock, local
from types import TracebackType
from typing import Self

import httpx

from reconciler import __version__
from reconciler.errors import ConfigurationError, Moved, RateLimited, ServiceError
from reconciler.model.protocols import Json, Request
from reconciler.model.targets import Level
from reconciler.service.connection import Connect, Line, proxy_for
from reconciler.service.dates import parse_date, pause_asked_for
from reconciler.service.deadlines import Transport
from reconciler.service.governor import ConcurrencyLimit
from reconciler.service.pagination import read_list
from reconciler.service.policy import DEFAULT_POLICY, Clock, Policy, SystemClock
from reconciler.service.redirects import FOLLOWED, Moves, target_of
from reconciler.service.responses import Answer, plain, read_answer, sentence
from reconciler.service.retries import PASSING, backoff, is_in_doubt, is_passing, most_tries
from reconciler.service.traffic import Traffic, Wait

LOG = logging.getLogger(__name__)

LONGEST_ID = 64
"""Characters of the service's own number of a request that are logged."""

NO_ANSWER = Answer(0, "", {}, b"")


class Client:
    """A `wire.Service` over HTTP. Safe to use from any thread.

    Args:
        connect: opens the connections of one thread.

    Attributes:
        api_url: without a slash at its end.
        traffic: what was asked of the service so far, and what was waited for.
        stop: set it to end a run that waits: whoever waits because the service asked for it, or before another try,
            gets `Stopped`. What need not wait is still sent, so that what was begun can be finished.

    Raises:
        ConfigurationError: the token, the certificates, the URL, or the proxy that the environment names is no good.
    """

    def __init__(
        self,
        api_url: str,
        token: str,
        *,
        ca_file: str | None = None,
        policy: Policy = DEFAULT_POLICY,
        clock: Clock | None = None,
        random: Random | None = None,
        connect: Connect = Transport,
    ) -> None:
        if not (token and token.isascii() and token.isprintable() and " " not in token):
            raise ConfigurationError("the token is empty, or holds blanks or characters that no token has")
        self.api_url = api_url.rstrip("/")
        self.traffic = Traffic()
        self.stop = Event()
        self._token = token
        self._policy = policy
        self._clock = clock or SystemClock()
        self._random = random or Random()  # noqa: S311 - spreads retries, keeps no secret
        self._governor = ConcurrencyLimit(policy, self._clock, self.traffic, self.stop)
        self._moves = Moves()
        self._heard = False
        self._date = "", self._clock.now()
        self._headers = {
            "PRIVATE-TOKEN": token,
            "User-Agent": f"reconciler/{__version__}",
            "Accept": "application/json",
            "Accept-Encoding": "gzip",
        }
        # A write without a JSON content type is redirected by a service in maintenance, and would look carried out.
        self._write_headers = self._headers | {"Content-Type": "application/json"}
        self._tls = (
            _tls_context(ca_file) if self.api_url.startswith("https:") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        )
        self._connect = connect
        self._thread = local()
        self._lines: list[Line] = []
        self._lock = Lock()
        try:
            self._line()
        except (httpx.InvalidURL, ValueError, ImportError) as error:
            raise ConfigurationError(f"{self.api_url} or its proxy cannot be used: {plain(str(error))}") from None

    def __enter__(self) -> Self:
        """Return the client itself."""
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        """Close all connections."""
        for line in self._lines:
            line.close()

    @property
    def moved(self) -> Mapping[tuple[Level, str], int]:
        """The groups and projects that turned out to have moved: their numeric IDs by level and requested path."""
        return self._moves.found

    def get(self, path: str) -> Json:
        """See `wire.Reader`. A redirect within the API is followed once."""
        value, _ = self._carry_out("GET", path)
        return value

    def pages(self, path: str) -> list[Json]:
        """See `wire.Reader`. A list that changes while it is read is read again."""
        return read_list(lambda page: self._carry_out("GET", page), path)

    def visible(self, path: str) -> list[Json]:
        """See `note.Board`: all items of all pages, where the service's count of them takes in what is hidden."""
        return read_list(lambda page: self._carry_out("GET", page), path, counted=False)

    def now(self) -> datetime:
        """See `wire.TimedReader`: the local clock, set right by the latest answer."""
        date, received_at = self._date
        now = self._clock.now()
        return now + ((parse_date(date) or received_at) - received_at)

    def send(self, request: Request) -> Json:
        """See `wire.Service`. Redirects are not followed; a DELETE is done if an earlier try of it may have been.

        Raises:
            ServiceError: ambiguous, if it may have been carried out all the same.
        """
        place = self._moves.place(request.path)
        if place is not None and not self._policy.follow_moved:
            reason = f"the {place.level} has moved, and is {place} now; it is written to only with --follow-moved"
            raise Moved(str(request), reason)
        value, _ = self._carry_out(request.method, request.path, request.body)
        return value

    def _carry_out(self, method: str, path: str, body: Json = None) -> tuple[Json, Answer]:
        """Send a request, again where that is safe and may help, and read its answer."""
        request = f"{method} {path.partition('?')[0]}"
        in_doubt, tries, rest = False, 0, 0.0
        while True:
            answer = NO_ANSWER
            try:
                if rest:
                    self._governor.pause(request, Wait.RETRY, rest)
                tries += 1
                answer = self._ask(request, method, path, body, tries)
                return read_answer(request, answer), answer
            except ServiceError as error:
                if in_doubt and method == "DELETE" and error.status in (400, 404):
                    return None, answer
                pause = pause_asked_for(answer.headers, self._clock.now())
                doubtful = method != "GET" and is_in_doubt(error, pause)
                in_doubt = in_doubt or doubtful
                error.ambiguous = in_doubt
                error.reason = error.reason.replace(self._token, "[the token]")
                rest = self._rest(error, pause, tries, sentence(answer).replace(self._token, "[the token]"))
                if not is_passing(method, error, in_doubt=doubtful) or not self._may_retry(error, tries):
                    raise

    def _may_retry(self, error: ServiceError, tries: int) -> bool:
        policy = self._policy
        may = tries < most_tries(policy, error, heard=self._heard)
        return may and self.traffic.allows_retry(policy.retry_share, policy.retry_allowance)

    def _rest(self, error: ServiceError, pause: float | None, tries: int, words: str) -> float:
        """Return the seconds to rest before another try; what the service asks for, everybody waits for instead."""
        seconds = backoff(self._policy, tries, self._random)
        everybody = isinstance(error, RateLimited)
        if not everybody and not (pause and error.status in PASSING):
            return seconds
        asked = pause or min(seconds, self._policy.max_wait)
        self._governor.hold(asked, Wait.RATE_LIMIT if everybody else Wait.UNAVAILABLE, words)
        return 0.0

    def _ask(self, request: str, method: str, path: str, body: Json, tries: int) -> Answer:
        """Try once. A read that is redirected within the API is sent there."""
        path = self._moves.present(path)
        answer = self._exchange(request, method, path, body, tries)
        if method == "GET" and answer.status in FOLLOWED and "location" in answer.headers:
            target = target_of(self.api_url, path, answer.headers["location"])
            if target is not None:
                self._moves.learn(path, target)
                return self._exchange(request, method, target, body, tries)
        return answer

    def _exchange(self, request: str, method: str, path: str, body: Json, tries: int) -> Answer:
        """Send one request once it may be sent: the one place where requests are counted and logged."""
        line = self._line()
        headers = self._headers if method == "GET" else self._write_headers
        answer = NO_ANSWER
        started = self._governor.enter(request)
        try:
            self.traffic.count(method, again=tries > 1)
            answer = line.exchange(method, path, headers, body)
            self._heard = True
            self._date = answer.headers.get("date", ""), self._clock.now()
            self.traffic.answered(self._clock.monotonic() - started)
        finally:
            self._governor.leave(started, answer.status or None, answer.headers)
            if LOG.isEnabledFor(logging.DEBUG):
                milliseconds = 1000 * (self._clock.monotonic() - started)
                number = plain(answer.headers.get("x-request-id", ""))[:LONGEST_ID]
                said = answer.status or "not answered"
                LOG.debug("%s %s, %.0f ms, try %d, request %s", request, said, milliseconds, tries, number or "unknown")
        return answer

    def _line(self) -> Line:
        line: Line | None = getattr(self._thread, "line", None)
        if line is None:
            line = Line(self.api_url, self._policy, self._connect(self._tls, proxy_for(self.api_url), self._clock))
            self._thread.line = line
            with self._lock:
                self._lines.append(line)
        return line


def _tls_context(ca_file: str | None) -> ssl.SSLContext:
    if ca_file is None:
        return httpx.create_ssl_context()
    try:
        return ssl.create_default_context(cafile=ca_file)
    except ssl.SSLError:
        raise ConfigurationError(f"{ca_file}: holds no certificates") from None
    except OSError as error:
        raise ConfigurationError(f"{ca_file}: {error.strerror}") from None
