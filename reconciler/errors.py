"""Everything that can go wrong, as one tree; the exit code of a failure lives on its class.

```
ReconcilerError                 1
├── ManifestErrors              1   every error of every manifest, each with its place
├── ConfigurationError          1   a setting is missing or senseless: no URL, no token, a bad reconciler.yaml
├── UsageError                 64   the command line itself is wrong
├── PlanRefused                 1   a plan that must not be applied: other service, too old, guarded, unreadable
├── OutputFailed                1   a report, a plan or a token could not be written where it was to go
└── ServiceError                1   a request was not answered as it should be; names the request
    ├── Unreachable                 no connection: refused, no such host, no secure channel; ends a run
    │   └── Untrusted               the certificate of the service cannot be verified
    ├── Unsendable                  the request has no URL, header or path fit to be sent, so that it was not sent
    ├── AnswerLost                  the connection broke or timed out; whether a write was carried out is unknown
    ├── BadAnswer                   an answer that is not what the service's contract promises: HTML, broken JSON
    ├── Moved                       3xx: a redirect that is not followed, or a write to a project that has moved
    ├── Unauthorized                401: the token is missing, wrong, expired or revoked
    ├── Forbidden                   403: the token may not do this
    │   └── ScopeMissing                the token has not the scope that this takes; ends a run
    ├── NotFound                    404: not there, or not visible to the token
    ├── Refused                     400, 405, 409, 412, 422: the service will not carry this out
    ├── RateLimited                 429: too many requests
    ├── WaitTooLong                 the service asks for a longer wait than the run may take; ends a run
    ├── Stopped                     the run was ended while the request waited for its turn
    └── ServerFailure               5xx
```
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import ClassVar


class ReconcilerError(Exception):
    """The root: whatever this library raises on purpose."""

    exit_code: ClassVar[int] = 1


@dataclass(frozen=True, slots=True, order=True)
class LocatedDiagnostic:
    """One error or warning about the manifests, at its place.

    Attributes:
        path: the file, as the user named it.
        line: from 1; 0 where the file as a whole is meant.
        column: from 1, in characters; 0 where the file as a whole is meant.
        message: what is wrong, and what would be right.
        source: the text of that line, without its line break; empty where there is none to show.
        severity: `error` or `warning`.
    """

    path: str
    line: int
    column: int
    message: str
    source: str = ""
    severity: str = "error"

    def __str__(self) -> str:
        """`path:line:column: message`, then the line with a caret beneath the column."""
        place = f"{self.path}:{self.line}:{self.column}" if self.line else self.path
        text = f"{place}: {'warning: ' if self.severity == 'warning' else ''}{self.message}"
        if not self.source:
            return text
        return f"{text}\n    {self.source}\n    {' ' * (self.column - 1)}^"


class ManifestErrors(ReconcilerError):
    """Everything that is wrong with the manifests, sorted by place.

    Attributes:
        diagnostics: the errors and warnings, at least one of them an error.
    """

    def __init__(self, diagnostics: Iterable[LocatedDiagnostic]) -> None:
        self.diagnostics = tuple(sorted(diagnostics))
        super().__init__("\n".join(str(each) for each in self.diagnostics))


class ConfigurationError(ReconcilerError):
    """A setting is missing or senseless."""


class UsageError(ReconcilerError):
    """The command line itself is wrong."""

    exit_code = 64


class PlanRefused(ReconcilerError):
    """A plan that must not be applied."""


class OutputFailed(ReconcilerError):
    """A result could not be written where it was to go."""


class ServiceError(ReconcilerError):
    """A request was not answered as it should be.

    Attributes:
        request: method and path, such as `GET projects/acme%2Fapi/milestones`; never a query or a body.
        reason: what the service said, or what kept it from answering.
        status: the HTTP status, or None where none came.
        ambiguous: whether the request, if it was a write, may have been carried out nevertheless, by this or by an
            earlier try.
    """

    ambiguous: bool = False

    def __init__(self, request: str, reason: str, status: int | None = None) -> None:
        self.request = request
        self.reason = reason
        self.status = status
        super().__init__(request, reason)

    @property
    def remedy(self) -> str:
        """What to do about it, where that is the same whatever was asked for; else empty."""
        return ""

    def __str__(self) -> str:
        """The request and the reason."""
        return f"{self.request}: {self.reason}"


class Hindrance(StrEnum):
    """What kept a connection from being made."""

    NAME = "no such host"
    REFUSED = "connection refused"
    SILENT = "no answer in time"
    TLS = "no secure channel"
    PROXY = "proxy"
    OTHER = "no connection"


REMEDIES = MappingProxyType(
    {
        Hindrance.NAME: "look for a slip in the host's name, or see whether this machine can resolve it",
        Hindrance.REFUSED: "nothing listens at that host and port; look for a slip in the port",
        Hindrance.SILENT: "a firewall may be in between, or the host be down",
        Hindrance.TLS: "see whether it speaks https at that port at all",
        Hindrance.PROXY: "see HTTPS_PROXY, HTTP_PROXY and NO_PROXY in the environment",
        Hindrance.OTHER: "see whether this machine can reach the host at all",
    }
)
"""What to do about a service that cannot be reached."""


class Unreachable(ServiceError):
    """No connection to the service could be made, so nothing was carried out.

    Attributes:
        hindrance: why, as far as that is known.
    """

    hindrance = Hindrance.OTHER

    @property
    def remedy(self) -> str:
        """What to do about it."""
        return REMEDIES[self.hindrance]


class Untrusted(Unreachable):
    """The certificate of the service cannot be verified."""

    hindrance = Hindrance.TLS

    @property
    def remedy(self) -> str:
        """The reason says it."""
        return ""


class Unsendable(ServiceError):
    """The request cannot be put on the wire, so nothing was carried out."""


class AnswerLost(ServiceError):
    """The connection broke or timed out before the answer was complete; a write may have been carried out."""

    ambiguous = True


class BadAnswer(ServiceError):
    """The answer is not what the service's contract promises."""

    ambiguous = True


class Moved(ServiceError):
    """The service answered with a redirect that is not followed, or a write is meant for what has moved."""


NEW_TOKEN = "make a new one with the scope api, and set RECONCILER_TOKEN or --token-file"  # noqa: S105 - it is none


class Unauthorized(ServiceError):
    """401."""

    @property
    def remedy(self) -> str:
        """What to do about it."""
        return f"the token is wrong, expired or revoked: {NEW_TOKEN}"


class Forbidden(ServiceError):
    """403."""


class ScopeMissing(Forbidden):
    """403, because of the token's scopes."""

    @property
    def remedy(self) -> str:
        """What to do about it."""
        return f"the token's scopes do not suffice (plan and drift take read_api, apply takes api): {NEW_TOKEN}"


class NotFound(ServiceError):
    """404."""


class Refused(ServiceError):
    """The service understood and will not carry this out: 400, 405, 409, 412, 422."""


class RateLimited(ServiceError):
    """429."""


class WaitTooLong(ServiceError):
    """The service asks for a longer wait than the run may take; nothing is sent any more.

    Attributes:
        come_back: when it is worth trying again, with a time zone.
    """

    def __init__(self, request: str, reason: str, come_back: datetime) -> None:
        self.come_back = come_back
        super().__init__(request, reason)


class Stopped(ServiceError):
    """The run was ended while the request waited for its turn."""


class ServerFailure(ServiceError):
    """5xx."""

    ambiguous = True
