"""The report of an apply: what became of each change. Its counts are of results, not of plans.

Made of the plan and its outcomes; written, shown, and read again.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, Protocol

from pydantic import AwareDatetime, Field

from reconciler.apply import UNKNOWN, Outcome, Status, TargetOutcome
from reconciler.documents.checksum import Document, read_checked, with_checksum
from reconciler.documents.plan_file import SavedPlan, utc
from reconciler.documents.shapes import (
    ChangeShape,
    Content,
    SectionShape,
    ShardShape,
    TargetShape,
    change_content,
    read_scope,
    read_section,
    read_shard,
    section_content,
    shard_content,
    target_content,
)
from reconciler.errors import PlanRefused
from reconciler.model.kind import Kinds
from reconciler.model.plan import Change, Create, Delete, Problem, TargetPlan, Update
from reconciler.planning.shards import Shard

FORMAT = "reconciler.report/v2"

DONE: dict[type[Change], str] = {Create: "created", Update: "updated", Delete: "deleted"}

NOT_DONE = {
    Status.FAILED: "failed",
    Status.STALE: "stale",
    Status.SKIPPED: "skipped",
    Status.DROPPED: "dropped",
}


class Traffic(Protocol):
    """How many requests a run made."""

    reads: int
    writes: int

    @property
    def waited(self) -> Mapping[Any, float]:
        """Seconds in which the run waited, by reason."""


@dataclass(frozen=True, slots=True)
class Report:
    """What became of a plan.

    Attributes:
        service: the `{api_url}` that was written to.
        started_at: when the first change could begin, with a time zone.
        finished_at: when the last one had been verified.
        tool_version: of the reconciler that made the plan.
        manifests_digest: SHA-256 (hex) of the desired state the plan leads to.
        reads: how many reads the run made.
        writes: how many writes it made.
        waited: seconds in which the run waited, by reason; whole tenths.
        targets: those with changes or problems, in the order of the plan.
        shard: which part of the targets the plan was about; None for all that were selected.
    """

    service: str
    started_at: datetime
    finished_at: datetime
    tool_version: str
    manifests_digest: str
    reads: int
    writes: int
    targets: tuple[TargetOutcome, ...]
    waited: Mapping[str, float] = field(default_factory=dict)
    shard: Shard | None = None

    @property
    def outcomes(self) -> Iterator[Outcome]:
        """What became of all changes of all targets."""
        return (outcome for target in self.targets for outcome in target.outcomes)

    @property
    def problems(self) -> Iterator[Problem]:
        """What was wanted and could not be planned."""
        return (problem for target in self.targets for problem in target.plan.problems)

    @property
    def counts(self) -> dict[str, int]:
        """Results in numbers, in the shape of `CountsShape`."""
        counts = dict.fromkeys((*DONE.values(), *NOT_DONE.values()), 0)
        for outcome in self.outcomes:
            done = outcome.status is Status.DONE
            counts[DONE[type(outcome.change)] if done else NOT_DONE[outcome.status]] += 1
        return counts | {"problems": sum(1 for _ in self.problems)}

    @property
    def complete(self) -> bool:
        """Whether all changes are done and there are no problems."""
        return not any(self.problems) and all(outcome.status is Status.DONE for outcome in self.outcomes)


def make_report(
    saved: SavedPlan,
    outcomes: Iterable[TargetOutcome],
    started_at: datetime,
    traffic: Traffic,
    finished_at: datetime | None = None,
) -> Report:
    """Put together what became of a plan.

    Args:
        saved: the plan.
        outcomes: of the targets that had changes; a change without an outcome is reported as failed.
        started_at: with a time zone.
        traffic: the requests of the run.
        finished_at: with a time zone; now, if left out.
    """
    by_scope = {outcome.plan.target: outcome for outcome in outcomes}
    targets = [by_scope.get(target.target) or _without_outcome(target) for target in saved.plan.targets]
    return Report(
        service=saved.header.service,
        started_at=started_at,
        finished_at=finished_at or datetime.now(UTC).replace(microsecond=0),
        tool_version=saved.header.tool_version,
        manifests_digest=saved.header.manifests_digest,
        reads=traffic.reads,
        writes=traffic.writes,
        waited={str(reason): round(seconds, 1) for reason, seconds in sorted(traffic.waited.items())},
        targets=tuple(target for target in targets if target.outcomes or any(target.plan.problems)),
        shard=saved.header.shard,
    )


class CountsShape(Document):
    """Results in numbers."""

    created: int = Field(description="How many objects were created.")
    updated: int = Field(description="How many objects and settings sections were changed.")
    deleted: int = Field(description="How many objects were deleted.")
    failed: int = Field(description="How many changes failed.")
    stale: int = Field(description="How many changes were refused because the live object had moved.")
    skipped: int = Field(description="How many changes were not begun because the run was ended.")
    dropped: int = Field(description="How many changes the service took and did not carry out.")
    problems: int = Field(description="How much of what is wanted could not be planned.")


class RequestsShape(Document):
    """How many requests a run made."""

    reads: int = Field(ge=0, description="GET requests.")
    writes: int = Field(ge=0, description="All others.")
    waited: dict[str, float] = Field(description="Seconds in which the run waited, by reason.")


class OutcomeShape(Document):
    """A change and what became of it."""

    change: ChangeShape = Field(description="The change, as in a plan.")
    status: Status = Field(description="What became of it.")
    reason: str = Field(description="Why it is not done; empty where it is.")


class SectionOutcomeShape(SectionShape):
    """What became of one section of one target."""

    outcomes: list[OutcomeShape] = Field(description="One for each change, in the order of the plan.")


class TargetOutcomeShape(TargetShape):
    """What became of one target."""

    origin: str = Field(description="Its manifest, as path:line.")
    sections: list[SectionOutcomeShape] = Field(description="Its declared sections.")


class ReportDocument(Document):
    """The report of an apply."""

    format: Literal["reconciler.report/v2"] = Field(description="What this document is.")
    service: str = Field(description="The URL of the service's API.")
    started_at: AwareDatetime = Field(description="When the first change could begin, UTC.")
    finished_at: AwareDatetime = Field(description="When the last change was done with, UTC.")
    tool_version: str = Field(description="The version of the reconciler that made the plan.")
    manifests_digest: str = Field(description="SHA-256 of the desired state that the plan leads to.")
    shard: ShardShape | None = Field(description="Which part of the targets this is about; null for all of them.")
    requests: RequestsShape = Field(description="What the run cost, in requests.")
    counts: CountsShape = Field(description="How much was done, and how much was not.")
    targets: list[TargetOutcomeShape] = Field(description="Those with changes or problems, in the order of the plan.")
    checksum: str = Field(description="SHA-256 of all the rest; an edited report is refused.")


def save_report(report: Report) -> str:
    """Return a report as a document that `load_report` reads."""
    return with_checksum(
        {
            "format": FORMAT,
            "service": report.service,
            "started_at": utc(report.started_at),
            "finished_at": utc(report.finished_at),
            "tool_version": report.tool_version,
            "manifests_digest": report.manifests_digest,
            "shard": shard_content(report.shard),
            "requests": {"reads": report.reads, "writes": report.writes, "waited": dict(report.waited)},
            "counts": report.counts,
            "targets": [_target_content(target) for target in report.targets],
        }
    )


def load_report(text: str, kinds: Kinds) -> Report:
    """Read what `save_report` returned.

    Raises:
        PlanRefused: it is not that, it was edited, or a newer reconciler wrote it.
    """
    document = read_checked(text, ReportDocument, FORMAT)
    report = Report(
        service=document.service,
        started_at=document.started_at.astimezone(UTC),
        finished_at=document.finished_at.astimezone(UTC),
        tool_version=document.tool_version,
        manifests_digest=document.manifests_digest,
        reads=document.requests.reads,
        writes=document.requests.writes,
        waited=document.requests.waited,
        targets=tuple(_read_target(target, kinds) for target in document.targets),
        shard=read_shard(document.shard),
    )
    if document.counts.model_dump() != report.counts:
        raise PlanRefused("the apply report is damaged: its counts are not those of its outcomes")
    return report


def _without_outcome(target: TargetPlan) -> TargetOutcome:
    return TargetOutcome(target, tuple(Outcome(change, Status.FAILED, UNKNOWN) for change in target.changes))


def _target_content(target: TargetOutcome) -> Content:
    outcomes = iter(target.outcomes)
    return target_content(
        target.plan,
        (
            section_content(section, outcomes=[_outcome_content(next(outcomes)) for _ in section.changes])
            for section in target.plan.sections
        ),
    )


def _outcome_content(outcome: Outcome) -> Content:
    return {"change": change_content(outcome.change), "status": outcome.status, "reason": outcome.reason}


def _read_target(shape: TargetOutcomeShape, kinds: Kinds) -> TargetOutcome:
    target = read_scope(shape)
    sections = [
        read_section(target, each, (outcome.change for outcome in each.outcomes), kinds) for each in shape.sections
    ]
    plan = TargetPlan(target, tuple(sections), shape.origin)
    read = [outcome for each in shape.sections for outcome in each.outcomes]
    outcomes = [Outcome(change, each.status, each.reason) for change, each in zip(plan.changes, read, strict=True)]
    return TargetOutcome(plan, tuple(outcomes))
