"""The report of an apply: the plan and what became of each change. Its counts are of results, not of plans."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache, cached_property
from shlex import join
from typing import Annotated, Any, Final, Literal, Protocol

from pydantic import AwareDatetime, Field, NonNegativeInt, TypeAdapter, computed_field

from reconciler.apply import RESULT_UNKNOWN, CanaryRun
from reconciler.documents.chapters import Chapter, totals
from reconciler.documents.checksum import DOCUMENT, Omissions, read_checked, with_checksum
from reconciler.documents.groups import SavedGroup
from reconciler.documents.plan_file import SavedPlan, check_target, checked_change
from reconciler.gitops.apply_log import revert_words
from reconciler.model.kind import Kinds
from reconciler.model.plan import Outcome, Plan, SectionPlan, Status, TargetPlan
from reconciler.model.targets import Key, Level, Target
from reconciler.planning.selection import Shard
from reconciler.system import clock

FORMAT: Final = "reconciler.report/v2"

OMISSIONS = Omissions(
    target=("exceptions", "path", "labels", "importing", "arriving"),
    section=("changes", "restored", "inherited", "hidden", "widened"),
)
"""The attributes that only plans have. The changes are in their outcomes."""


class RequestCounts(Protocol):
    """How many requests a run made."""

    reads: int
    writes: int

    @property
    def waited(self) -> Mapping[Any, float]:
        """Seconds in which the run waited, by reason."""


@dataclass(frozen=True, slots=True)
class Requests:
    """How many requests a run made."""

    reads: NonNegativeInt
    """GET requests."""
    writes: NonNegativeInt
    """All others."""
    waited: Mapping[str, float] = field(default_factory=dict)
    """Seconds in which the run waited, by reason; whole tenths."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Results in numbers."""

    created: int
    """How many objects were created."""
    updated: int
    """How many objects and settings sections were changed."""
    deleted: int
    """How many objects were deleted."""
    failed: int
    """How many changes failed."""
    stale: int
    """How many changes were refused because the live object had moved."""
    skipped: int
    """How many changes were not begun because the run was ended, or the project is archived."""
    dropped: int
    """How many changes the service accepted and did not carry out."""
    problems: int
    """Number of problems."""
    not_applicable: int
    """How many sections were left out because their target cannot have them."""
    excepted: int
    """How many changes exceptions hold back."""


@dataclass(frozen=True, slots=True)
class InOrder:
    """Targets that declare the same sections, of which nothing changed and nothing is a problem."""

    level: Level
    """The level of the targets."""
    sections: tuple[str, ...]
    """Their declared sections."""
    unmanaged: tuple[str, ...]
    """The sections that hold live objects that no manifest mentions."""
    targets: tuple[Key | None, ...]
    """Their full paths or numeric IDs; null for the instance and for the user behind the token."""


@dataclass(frozen=True, slots=True)
class Canary:
    """The targets that came before all others, and how they went."""

    selector: str
    """The value of `--canary`."""
    targets: tuple[str, ...]
    """Such as `project acme/api`, in the order of the plan."""
    changes: NonNegativeInt
    """How many changes they had."""
    result: Literal["verified", "not in order"]
    """`verified` if all was done and read again, and nothing was a problem; only then the other targets followed."""
    started_at: AwareDatetime
    """UTC."""
    finished_at: AwareDatetime
    """When the last change had been verified, UTC."""

    @property
    def seconds(self) -> int:
        """How long it took, in whole seconds from one."""
        return max(1, round((self.finished_at - self.started_at).total_seconds()))


@dataclass(frozen=True, kw_only=True)
class Report:
    """The report of an apply."""

    __pydantic_config__ = DOCUMENT

    format: Literal["reconciler.report/v2"] = FORMAT
    """The format of this document."""
    service: str
    """The URL of the service's API."""
    started_at: AwareDatetime
    """When the first change could begin, UTC."""
    finished_at: AwareDatetime
    """When the last change had been verified, UTC."""
    tool_version: str
    """The version of the reconciler that made the plan."""
    manifests_digest: str
    """SHA-256 of the desired state that the plan leads to."""
    commit: Annotated[str, Field(pattern="^[0-9a-f]{40,64}$")] | None = None
    """The commit that holds the manifests of the plan; null if the plan has none."""
    reverts: str = ""
    """The apply that the run undid: its full ID, or the name of its report; empty if the run was no revert."""
    shard: Shard | None = None
    """The part of the targets that the plan was about; null for all of them."""
    remarks: tuple[str, ...] = ()
    """Sentences on objects that are no longer declared and stay, and on what imports have left out."""
    canary: Canary | None = None
    """How `--canary` went, whose targets come first; null without it, or where the run ended before."""
    requests: Requests
    """The number of requests that the run made."""
    targets: tuple[TargetPlan, ...]
    """Those with changes, problems, exceptions or sections that are not applicable, in the order of the plan."""
    in_order: tuple[InOrder, ...] = ()
    """The other targets of the plan, by what they declare."""

    @cached_property
    def chapters(self) -> tuple[Chapter, ...]:
        """The report as people see it: the targets of the canary, if there was one, and all others."""
        if self.canary is None:
            return (Chapter("", self.targets),)
        first = frozenset(self.canary.targets)
        return (
            Chapter("canary", tuple(target for target in self.targets if str(target.target) in first)),
            Chapter("", tuple(target for target in self.targets if str(target.target) not in first)),
        )

    @cached_property
    def plan(self) -> Plan:
        """The plan, as it was carried out."""
        return Plan(self.targets)

    @property
    def outcomes(self) -> Iterator[Outcome]:
        """The outcomes of all changes of all targets."""
        return self.plan.outcomes

    @property
    def all_targets(self) -> Iterator[Target]:
        """All targets of the plan, also those that were in order."""
        yield from (target.target for target in self.targets)
        yield from (Target(group.level, ref) for group in self.in_order for ref in group.targets)

    @computed_field
    @cached_property
    def counts(self) -> Counts:
        """How much was done, and how much was not."""
        numbers = totals(self.chapters)
        return Counts(*(numbers[word] for word in Counts.__slots__))

    @computed_field
    @cached_property
    def groups(self) -> tuple[SavedGroup, ...]:
        """The outcomes that three or more targets have in common, and problems of two; the largest groups first."""
        return tuple(group for chapter in self.chapters for group in chapter.saved_groups)

    @property
    def finish(self) -> str:
        """The command that does what this run did not do; an apply needs its report in the file `report.json`."""
        if self.reverts:
            return f"{join(revert_words(self.reverts))} --yes"
        return "reconciler apply --retry-failed report.json"

    @property
    def complete(self) -> bool:
        """Whether all changes are done and there are no problems."""
        return all(target.in_order for target in self.targets)


def canary_of(run: CanaryRun | None, selector: str | None, saved: SavedPlan) -> Canary | None:
    """Return how the canary of a run went, as the report tells it; None without one."""
    if run is None or selector is None:
        return None
    return Canary(
        selector,
        tuple(map(str, run.targets)),
        sum(1 for target in saved.targets if target.target in run.targets for _ in target.changes),
        "verified" if run.in_order else "not in order",
        run.started_at.replace(microsecond=0),
        run.finished_at.replace(microsecond=0),
    )


def make_report(
    saved: SavedPlan,
    outcomes: Iterable[TargetPlan],
    started_at: datetime,
    traffic: RequestCounts,
    finished_at: datetime | None = None,
    *,
    canary: Canary | None = None,
    remarks: Iterable[str] = (),
) -> Report:
    """Put together what became of a plan.

    Args:
        saved: the plan.
        outcomes: the targets that had changes, with what became of these; of others it is unknown.
        started_at: with a time zone.
        traffic: the requests of the run.
        finished_at: with a time zone; now, if left out.
        canary: what came first.
        remarks: sentences besides those of the plan.
    """
    known = {target.target: target for target in outcomes}
    targets = [_reported(known.get(target.target) or _unknown(target)) for target in saved.targets]
    waited = {str(reason): round(seconds, 1) for reason, seconds in sorted(traffic.waited.items())}
    return Report(
        service=saved.service,
        started_at=started_at.astimezone(UTC).replace(microsecond=0),
        finished_at=finished_at or clock.now().replace(microsecond=0),
        tool_version=saved.tool_version,
        manifests_digest=saved.manifests_digest,
        commit=saved.commit,
        reverts=saved.reverts,
        shard=saved.shard,
        remarks=(*saved.remarks, *remarks),
        canary=canary,
        requests=Requests(traffic.reads, traffic.writes, waited),
        targets=tuple(target for target in targets if _is_told(target)),
        in_order=alike(_in_order(target) for target in targets if not _is_told(target)),
    )


def alike(targets: Iterable[InOrder]) -> tuple[InOrder, ...]:
    """Return targets that are in order, put together where they declare the same and hold the same unmanaged."""
    together: dict[tuple[Level, tuple[str, ...], tuple[str, ...]], list[Target]] = {}
    for group in targets:
        members = together.setdefault((group.level, group.sections, group.unmanaged), [])
        members += (Target(group.level, ref) for ref in group.targets)
    groups = ((key, sorted(members, key=lambda target: target.order)) for key, members in together.items())
    return tuple(
        InOrder(*key, tuple(target.ref for target in members))
        for key, members in sorted(groups, key=lambda group: group[1][0].order)
    )


def _in_order(target: TargetPlan) -> InOrder:
    sections = tuple(section.section for section in target.sections)
    unmanaged = tuple(section.section for section in target.sections if section.unmanaged)
    return InOrder(target.level, sections, unmanaged, (target.ref,))


def _is_told(target: TargetPlan) -> bool:
    """Return whether there is more to say about a target than that it was in order."""
    return any(map(any, (target.changes, target.problems, target.excepted, target.not_applicable)))


def _unknown(target: TargetPlan) -> TargetPlan:
    """Return a target nothing of which is known any more."""
    return target.with_outcomes(
        Outcome(change, Status.FAILED, RESULT_UNKNOWN, unconfirmed=True) for change in target.changes
    )


def _reported(target: TargetPlan) -> TargetPlan:
    """Return a target with what a report says of it."""
    plan_alone: dict[str, Any] = dict.fromkeys({*OMISSIONS.section} - {"changes"}, ())
    sections = (replace(section, **plan_alone) for section in target.sections)
    return TargetPlan(target.target, tuple(sections), target.origin)


@cache
def _adapter() -> TypeAdapter[Report]:
    """Return what writes and reads reports. It is built when first needed: most runs need none."""
    return TypeAdapter(Report)


def save_report(report: Report) -> str:
    """Return a report as a document that `load_report` reads."""
    return with_checksum(_adapter().dump_python(report, mode="json", exclude=OMISSIONS.paths))


def load_report(text: str, kinds: Kinds) -> Report:
    """Read what `save_report` returned.

    Raises:
        PlanRefused: it is not a report, was edited, or comes from another version.
    """
    report = read_checked(text, _adapter(), FORMAT, computed={"counts": True, "groups": False}, omissions=OMISSIONS)
    for target in report.targets:
        check_target(target.target)
        for outcome in target.outcomes:
            checked_change(outcome.change, kinds)
    targets = tuple(
        replace(target, sections=tuple(_with_changes(section) for section in target.sections))
        for target in report.targets
    )
    for group in report.in_order:
        for ref in group.targets:
            check_target(Target(group.level, ref))
    return replace(report, targets=targets)


def _with_changes(section: SectionPlan) -> SectionPlan:
    return replace(section, changes=tuple(outcome.change for outcome in section.outcomes))
