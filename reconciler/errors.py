"""All errors as one tree; each class has the exit code of its failure.

```
ReconcilerError                 1
├── ManifestErrors              1   every error of every manifest, each with its place
├── ConfigurationError          1   a setting is missing or invalid: no URL, no token, a bad reconciler.yaml
├── UsageError                 64   the command line itself is wrong
├── NothingSelected             1   a --target or --selector matches nobody
├── PlanRefused                 1   a plan that must not be applied: other service, too old, guarded, unreadable
│   └── Outdated                    a plan or a report of an older format
├── OutputFailed                1   a report, a plan or a token could not be written
├── InventoryUnreadable         1   the list of what was applied cannot be read: no network, no right, malformed
├── InventoryNotStored          3   what an apply did could not be added to that list
└── ServiceError                1   a request did not get a usable response; names the request
    ├── Unreachable                 no connection: refused, no such host, no TLS; ends a run
    │   └── Untrusted               the certificate of the service cannot be verified
    ├── Unsendable                  the URL, a header or the path is invalid; the request was not sent
    ├── AnswerLost                  the connection broke or timed out; whether a write was carried out is unknown
    ├── BadAnswer                   a response that breaks the service's contract: HTML, broken JSON
    ├── Moved                       3xx: a redirect that is not followed, or a write to a project that has moved
    ├── Unauthorized                401: the token is missing, wrong, expired or revoked; ends a run
    │   └── AccountClosed               403 to every request: the account of the token's owner is blocked
    ├── Forbidden                   403: the token may not do this
    │   └── ScopeMissing                the token lacks a scope; ends a run
    ├── NotFound                    404: it does not exist, or is not visible to the token
    ├── Refused                     400, 405, 409, 412, 422: the service refuses the request as such
    ├── RateLimited                 429: too many requests
    ├── WaitTooLong                 the service asks for a longer wait than the run allows; ends a run
    ├── Stopped                     the run was ended while the request waited for its turn
    └── ServerFailure               5xx
```
"""

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from typing import ClassVar, Self


class ReconcilerError(Exception):
    """The root of all errors that this library raises on purpose."""

    exit_code: ClassVar[int] = 1


@dataclass(frozen=True, slots=True, order=True)
class LocatedDiagnostic:
    """An error or a warning about the manifests, at its place.

    Attributes:
        path: the file, as the user named it.
        line: from 1; 0 for the whole file.
        column: from 1, in characters; 0 for the whole file.
        message: the fault and its fix.
        source: the text of that line, without its line break; empty if there is none to show.
        severity: `error` or `warning`.
    """

    path: str
    line: int
    column: int
    message: str
    source: str = ""
    severity: str = "error"

    @property
    def place(self) -> str:
        """`path:line:column`, or the file alone."""
        return f"{self.path}:{self.line}:{self.column}" if self.line else self.path

    def __str__(self) -> str:
        """`path:line:column: message`, then the line with a caret beneath the column."""
        text = f"{self.place}: {'warning: ' if self.severity == 'warning' else ''}{self.message}"
        if not self.source:
            return text
        return f"{text}\n    {self.source}\n    {' ' * (self.column - 1)}^"


WARNINGS_BESIDE_ERRORS = 3
"""The most warnings that are shown below the errors of manifests."""


class ManifestErrors(ReconcilerError):
    """All errors and warnings of the manifests, sorted by place.

    Attributes:
        diagnostics: the errors and warnings, at least one error among them.
    """

    def __init__(self, diagnostics: Sequence[LocatedDiagnostic]) -> None:
        self.diagnostics = tuple(sorted(diagnostics))
        errors = [str(diagnostic) for diagnostic in self.diagnostics if diagnostic.severity == "error"]
        super().__init__("\n".join((*errors, *self._warnings())))

    def _warnings(self) -> Iterator[str]:
        """Yield the first warnings, each sentence once: more warnings would push the errors off the screen."""
        first: dict[str, list[LocatedDiagnostic]] = {}
        for diagnostic in self.diagnostics:
            if diagnostic.severity == "warning":
                first.setdefault(diagnostic.message, []).append(diagnostic)
        for diagnostic, *others in [*first.values()][:WARNINGS_BESIDE_ERRORS]:
            more = f"; the same at {len(others):,} other place{'s' * (len(others) > 1)}" if others else ""
            yield str(replace(diagnostic, message=f"{diagnostic.message}{more}"))
        if len(first) > WARNINGS_BESIDE_ERRORS:
            yield f"{len(first) - WARNINGS_BESIDE_ERRORS:,} more; reconciler validate shows all warnings"


class ConfigurationError(ReconcilerError):
    """A setting is missing or invalid."""


class UsageError(ReconcilerError):
    """The command line itself is wrong."""

    exit_code = 64


class NothingSelected(ReconcilerError):
    """A selection that matches no target."""


class PlanRefused(ReconcilerError):
    """A plan that must not be applied."""


class Outdated(PlanRefused):
    """A document of an older format."""


class OutputFailed(ReconcilerError):
    """A result could not be written."""


class InventoryUnreadable(ReconcilerError):
    """The inventory cannot be read, so no object is deleted because of it.

    Attributes:
        reason: of the failure.
        remedy: the fix; empty if the reason contains it.
    """

    def __init__(self, reason: str, remedy: str = "") -> None:
        self.reason = reason
        self.remedy = remedy
        super().__init__("; ".join(filter(None, (f"the inventory cannot be read: {reason}", remedy))))


class InventoryNotStored(ReconcilerError):
    """An apply is done, and the inventory could not be updated."""

    exit_code = 3


class ServiceError(ReconcilerError):
    """A request did not get a usable response.

    Attributes:
        request: method and path, such as `GET projects/acme%2Fapi/milestones`; never a query or a body.
        reason: the service's message, or what prevented a response.
        status: the HTTP status, or None without a response.
        ambiguous: whether a write may have been carried out nevertheless, by this or by an earlier attempt.
        sent: whether the request was sent at all, as far as known.
        remedy: the fix, if it is the same for all requests; else empty.
    """

    ambiguous: bool = False
    sent: bool = True
    remedy: str = ""

    def __init__(self, request: str, reason: str, status: int | None = None) -> None:
        self.request = request
        self.reason = reason
        self.status = status
        super().__init__(request, reason)

    def __str__(self) -> str:
        """The request and the reason."""
        return f"{self.request}: {self.reason}"

    def about(self, request: str) -> Self:
        """Return the same error with another name of the request, such as a name without a secret."""
        error = copy(self)
        error.request = request
        error.args = (request, *self.args[1:])
        return error


class ConnectionFailure(Enum):
    """The reason why a connection failed, and the remedy."""

    NAME = "no such host", "check the host name for a typo, and whether this machine can resolve it"
    REFUSED = "connection refused", "nothing listens at that host and port: check the port"
    TIMEOUT = "no response in time", "check whether a firewall is in between, or the host is down"
    TLS = "no secure connection", "check whether the service speaks https at that port"
    PROXY = "proxy", "check HTTPS_PROXY, HTTP_PROXY and NO_PROXY in the environment"
    OTHER = "no connection", "check whether this machine can reach the host"

    def __init__(self, summary: str, remedy: str) -> None:
        self.summary = summary
        self.remedy = remedy


class Unreachable(ServiceError):
    """No connection to the service could be made, so nothing was carried out.

    Attributes:
        failure: why, as far as known.
    """

    def __init__(self, request: str, reason: str, failure: ConnectionFailure = ConnectionFailure.OTHER) -> None:
        super().__init__(request, reason)
        self.failure = failure
        self.remedy = failure.remedy


class Untrusted(Unreachable):
    """The certificate of the service cannot be verified; the reason says what to do."""

    def __init__(self, request: str, reason: str) -> None:
        super().__init__(request, reason, ConnectionFailure.TLS)
        self.remedy = ""


class Unsendable(ServiceError):
    """The request is not valid HTTP and was not sent."""


class AnswerLost(ServiceError):
    """The connection broke or timed out before the response was complete; a write may have been carried out."""

    ambiguous = True


class BadAnswer(ServiceError):
    """The response is not what the service's contract promises."""

    ambiguous = True


class Moved(ServiceError):
    """The service answered with a redirect that is not followed, or a write is meant for a project that has moved."""


NEW_TOKEN = "make a new one with the scope api, and set RECONCILER_TOKEN or --token-file"  # noqa: S105 - it is none


class Unauthorized(ServiceError):
    """401."""

    remedy = f"the token is wrong, expired or revoked: {NEW_TOKEN}"


class AccountClosed(Unauthorized):
    """403 to every request, with the service's explanation: a blocked account, or terms that must be accepted."""

    remedy = "every request of the token's owner is refused: ask an administrator, or use a token of another user"


class Forbidden(ServiceError):
    """403."""


LACKS_SCOPE = "the token's scopes do not suffice"


class ScopeMissing(Forbidden):
    """403, because of the token's scopes."""

    remedy = f"{LACKS_SCOPE} (plan and drift take read_api, apply takes api): {NEW_TOKEN}"


class NotFound(ServiceError):
    """404."""


class Refused(ServiceError):
    """400, 405, 409, 412 or 422: the service refuses the request as such."""


class RateLimited(ServiceError):
    """429."""


class WaitTooLong(ServiceError):
    """The service asks for a longer wait than the run allows; no further request is sent.

    Attributes:
        come_back: when to try again, with a time zone.
    """

    def __init__(self, request: str, reason: str, come_back: datetime) -> None:
        self.come_back = come_back
        super().__init__(request, reason)


class Stopped(ServiceError):
    """The run was ended while the request waited for its turn."""


class ServerFailure(ServiceError):
    """5xx."""

    ambiguous = True
