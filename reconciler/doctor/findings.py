"""A diagnosis, as a value: what was found of the service, of the token, and of each section of each target."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from enum import StrEnum

from reconciler.model.targets import Target


class Verdict(StrEnum):
    """What a finding comes to."""

    OK = "ok"
    WARNING = "warning"
    UNKNOWN = "unknown"
    ERROR = "error"


class Access(StrEnum):
    """Whether something may be done."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"
    UNASKED = "not asked"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was found.

    Attributes:
        about: what it is about, in a word or two.
        said: what was found.
        remedy: what to do about it; empty where nothing is to be done.
    """

    verdict: Verdict
    about: str
    said: str
    remedy: str = ""


class TokenKind(StrEnum):
    """What sort of token it is."""

    PERSONAL = "personal"
    PROJECT = "project"
    GROUP = "group"
    BOT = "bot"
    OAUTH = "oauth"
    JOB = "job"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Token:
    """What the service tells of the token.

    Attributes:
        kind: what sort it is.
        owner: the username of whose it is; None where that is not known.
        admin: whether that is an administrator; false where that is not told.
        scopes: what it may be used for; None where that is not told.
        expires_at: the first day on which it is not valid any more; None where there is none, or none is told.
        reads: whether its scopes suffice to read.
        writes: whether they suffice to write.
    """

    kind: TokenKind = TokenKind.UNKNOWN
    owner: str | None = None
    admin: bool = False
    scopes: tuple[str, ...] | None = None
    expires_at: date | None = None
    reads: Access = Access.UNKNOWN
    writes: Access = Access.UNKNOWN


@dataclass(frozen=True, slots=True)
class ServiceCheck:
    """What a run meets first: the service, and what it tells of the token.

    Attributes:
        url: of the API.
        version: of the service; None where it is not told.
        enterprise: whether it has the code of the paid editions, licensed or not; None where it is not told.
        of_service: what was found of the service.
        of_token: what was found of the token.
    """

    url: str
    version: str | None = None
    enterprise: bool | None = None
    token: Token = Token()
    of_service: tuple[Finding, ...] = ()
    of_token: tuple[Finding, ...] = ()

    @property
    def usable(self) -> bool:
        """Whether it is of any use to go on."""
        return all(finding.verdict is not Verdict.ERROR for finding in (*self.of_service, *self.of_token))


@dataclass(frozen=True, slots=True)
class SectionState:
    """Whether a section of a target can be read and written.

    Attributes:
        read: whether it was read.
        write: whether it could be written.
        said: why not, or why that is unknown; empty where there is nothing to say, or the target's findings say it.
        remedy: what to do about it.
        findings: what else is wrong with it: what a plan would call problems.
    """

    section: str
    read: Access
    write: Access
    said: str = ""
    remedy: str = ""
    findings: tuple[Finding, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """What it comes to, its findings aside."""
        if Access.NO in (self.read, self.write):
            return Verdict.ERROR
        return Verdict.UNKNOWN if self.write is Access.UNKNOWN else Verdict.OK


@dataclass(frozen=True, slots=True)
class TargetState:
    """What was found of one target.

    Attributes:
        origin: `path:line` of its manifest.
        findings: what is wrong with the target as a whole.
    """

    target: Target
    origin: str
    findings: tuple[Finding, ...]
    sections: tuple[SectionState, ...]


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a run costs, as far as can be told beforehand.

    Attributes:
        seconds: how long it takes.
    """

    requests: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Costs:
    """What a plan costs, and applying it.

    Attributes:
        plan: of reading and planning.
        apply: of the changes, and of looking at them afterwards.
        changes: how many there are.
        latency: seconds that an answer took, on average.
        concurrency: how many requests were in flight at once, at most.
    """

    plan: Estimate
    apply: Estimate
    changes: int
    latency: float
    concurrency: int


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All that was found.

    Attributes:
        of_manifests: what keeps the manifests from being looked at.
        costs: None where no target was looked at.
    """

    front: ServiceCheck
    of_manifests: tuple[Finding, ...] = ()
    targets: tuple[TargetState, ...] = ()
    costs: Costs | None = None

    @property
    def sections(self) -> tuple[SectionState, ...]:
        """Those of all targets."""
        return tuple(section for target in self.targets for section in target.sections)

    @property
    def counts(self) -> Counter[Verdict]:
        """How many findings and sections come to what."""
        return Counter(self._verdicts())

    @property
    def failed(self) -> bool:
        """Whether something wanted cannot be had."""
        return self.counts[Verdict.ERROR] > 0

    def _verdicts(self) -> Iterator[Verdict]:
        findings = [*self.front.of_service, *self.front.of_token, *self.of_manifests]
        findings += [finding for target in self.targets for finding in target.findings]
        findings += [finding for section in self.sections for finding in section.findings]
        yield from (finding.verdict for finding in findings)
        yield from (section.verdict for section in self.sections)
