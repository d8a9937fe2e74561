"""A diagnosis, as a value: findings about the service, the token, and each section of each target.

The doctor makes a `Diagnosis`; it is shown as text, or as the JSON document that `reconciler.diagnosis/v1` names.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, NonNegativeInt, PlainSerializer, PositiveInt, TypeAdapter, computed_field

from reconciler.document.checksum import DOCUMENT
from reconciler.model.caller import UNKNOWN_CALLER, Caller
from reconciler.model.protocols import Json
from reconciler.model.targets import Key, Level, Target


class Verdict(StrEnum):
    """The verdict of a finding or a section."""

    OK = "ok"
    WARNING = "warning"
    UNKNOWN = "unknown"
    ERROR = "error"


class Permission(StrEnum):
    """Whether something may be done."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"
    UNASKED = "not asked"


class TokenKind(StrEnum):
    """The type of a token."""

    PERSONAL = "personal"
    PROJECT = "project"
    GROUP = "group"
    BOT = "bot"
    OAUTH = "oauth"
    JOB = "job"
    UNKNOWN = "unknown"


Seconds = Annotated[float, Field(ge=0), PlainSerializer(lambda seconds: round(seconds, 4), return_type=float)]


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    """One finding."""

    verdict: Verdict
    """The verdict."""
    about: str
    """The subject, in a word or two."""
    said: str
    """The finding, in a sentence."""
    remedy: str = ""
    """The fix; empty if none is needed."""


@dataclass(frozen=True, slots=True)
class Token:
    """The token, never its value."""

    kind: TokenKind = TokenKind.UNKNOWN
    """The token's type."""
    owner: str | None = None
    """Username of the token's owner; null if unknown."""
    caller: Annotated[Caller, Field(exclude=True)] = UNKNOWN_CALLER
    """The token's owner, as far as known."""
    scopes: tuple[str, ...] | None = None
    """The token's scopes; null if unknown."""
    expires_at: date | None = None
    """The first day on which the token is no longer valid; null if there is none, or it is unknown."""
    reads: Permission = Permission.UNKNOWN
    """Whether the scopes suffice to read."""
    writes: Permission = Permission.UNKNOWN
    """Whether the scopes suffice to write."""
    findings: tuple[DoctorFinding, ...] = ()
    """The findings about the token."""


@dataclass(frozen=True, slots=True)
class ServiceCheck:
    """The service."""

    url: str
    """The URL of its API."""
    version: str | None = None
    """The version it runs; null if unknown."""
    enterprise: Annotated[bool | None, Field(exclude=True)] = None
    """Whether it has the code of the paid editions, licensed or not; None if unknown."""
    token: Annotated[Token, Field(exclude=True)] = Token()
    """The token, as the service reports it."""
    findings: tuple[DoctorFinding, ...] = ()
    """The findings about the service."""

    @computed_field
    @property
    def edition(self) -> Literal["enterprise", "community"] | None:
        """Whether it has the code of the paid editions, licensed or not; null if unknown."""
        if self.enterprise is None:
            return None
        return "enterprise" if self.enterprise else "community"

    @property
    def usable(self) -> bool:
        """Whether further checks make sense."""
        return all(finding.verdict is not Verdict.ERROR for finding in (*self.findings, *self.token.findings))


@dataclass(frozen=True, slots=True)
class SectionState:
    """One declared section of one target."""

    section: str
    """The section's name."""
    read: Permission
    """Whether it was read."""
    write: Permission
    """Whether it could be written; nothing was."""
    said: str = ""
    """Why not, or why that is unknown; empty if the target's findings say it."""
    remedy: str = ""
    """The fix; empty if none is needed."""
    findings: tuple[DoctorFinding, ...] = ()
    """Problems that a plan would report."""

    @computed_field
    @property
    def verdict(self) -> Verdict:
        """The verdict, without that of its findings."""
        if Permission.NO in (self.read, self.write):
            return Verdict.ERROR
        return Verdict.UNKNOWN if self.write is Permission.UNKNOWN else Verdict.OK


@dataclass(frozen=True, slots=True)
class TargetState:
    """One target."""

    target: Annotated[Target, Field(exclude=True)]
    origin: str
    """Its manifest, as path:line."""
    findings: tuple[DoctorFinding, ...]
    """The findings about the target as a whole."""
    sections: tuple[SectionState, ...]
    """Its declared sections, in the order of a plan."""

    @computed_field
    @property
    def level(self) -> Level:
        """The level of the target."""
        return self.target.level

    @computed_field
    @property
    def ref(self) -> Key | None:
        """The full path or the numeric ID; null for the instance and for the user behind the token."""
        return self.target.ref

    def explains(self, section_state: SectionState) -> bool:
        """Return whether the findings about the target say why a section was not read."""
        return bool(self.findings) and section_state.read is Permission.NO and not section_state.said


@dataclass(frozen=True, slots=True)
class Estimate:
    """The estimated cost of a run."""

    requests: NonNegativeInt
    """Number of requests."""
    seconds: Seconds
    """How long it takes."""


@dataclass(frozen=True, slots=True)
class Costs:
    """The estimated cost of a plan and of its apply."""

    plan: Estimate
    """Reading and planning."""
    apply: Estimate
    """The changes, and verifying them afterwards."""
    changes: NonNegativeInt
    """Number of changes."""
    latency: Seconds
    """Average time of a response, in seconds."""
    concurrency: PositiveInt
    """Most requests in flight at once."""


@dataclass(frozen=True, slots=True)
class VerdictCounts:
    """The diagnosis in numbers."""

    ok: int
    """Number of findings and sections that are in order."""
    warning: int
    """Number of warnings: what will expire soon, or is not safe."""
    unknown: int
    """Number of unknowns: what the service does not report."""
    error: int
    """Number of errors."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A diagnosis."""

    __pydantic_config__ = DOCUMENT

    format: Literal["reconciler.diagnosis/v1"] = field(default="reconciler.diagnosis/v1", kw_only=True)
    """The format of this document."""
    service: ServiceCheck
    """The version and edition of the service, and the findings about it."""
    manifests: tuple[DoctorFinding, ...] = ()
    """Errors that prevent a check of the manifests, and a warning if the inventory's branch is not protected."""
    pipeline: tuple[DoctorFinding, ...] = ()
    """The findings about the pipelines, with `--pipeline`."""
    targets: tuple[TargetState, ...] = ()
    """The instance, then the user, then groups, then projects."""
    costs: Costs | None = None
    """The estimated cost of the runs; null if no target was checked."""
    archived: NonNegativeInt = 0
    """How many archived projects the sets left out, as far as the lists of projects show them."""

    @computed_field
    @property
    def token(self) -> Token:
        """The token's type, owner, scopes and expiry, and the findings about it."""
        return self.service.token

    @computed_field
    @property
    def counts(self) -> VerdictCounts:
        """How many findings and sections have which verdict; none for sections that their target's findings explain."""
        numbers = Counter(str(verdict) for verdict in self._verdicts())
        return VerdictCounts(**{verdict.value: numbers[verdict] for verdict in Verdict})

    @property
    def content(self) -> dict[str, Json]:
        """The diagnosis as JSON."""
        content: dict[str, Json] = TypeAdapter(Diagnosis).dump_python(self, mode="json")
        return content

    def _verdicts(self) -> Iterator[Verdict]:
        sections = [section for target in self.targets for section in target.sections]
        findings = [*self.service.findings, *self.token.findings, *self.manifests, *self.pipeline]
        findings += [finding for target in self.targets for finding in target.findings]
        findings += [finding for section in sections for finding in section.findings]
        yield from (finding.verdict for finding in findings)
        yield from (
            section.verdict for target in self.targets for section in target.sections if not target.explains(section)
        )
