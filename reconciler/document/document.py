"""The one type for plans and reports: a head, the targets of the run, and a flat list of items. Pure.

The engine ends where a document is written; text, pages, notes and metrics are made from the document. Begin with
`RunDocument`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from shlex import join
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

from pydantic import AwareDatetime, Field, NonNegativeInt

from reconciler.document.checksum import DOCUMENT
from reconciler.document.guard import NO_LIMITS, Limits, refusals
from reconciler.errors import PlanRefused
from reconciler.memory.apply_log import Apply, revert_words
from reconciler.memory.projection import Basis
from reconciler.model.codes import code_of
from reconciler.model.item import (
    Change,
    Finding,
    Item,
    Keep,
    Outcome,
    Status,
    changes_in,
    is_about_run,
    target_of,
)
from reconciler.model.plan import Seen
from reconciler.model.shards import Shard
from reconciler.model.targets import Target
from reconciler.model.wording import advised, counted

PLAN: Final = "reconciler.plan/v4"
REPORT: Final = "reconciler.report/v4"

CLOCK_SKEW = timedelta(minutes=5)
"""The clocks of two machines may differ by so much."""


@dataclass(frozen=True, slots=True)
class PastApply:
    """An apply of these manifests that ended before the plan was made."""

    id: str
    """The full ID of its commit on the inventory's branch; `revert` takes the beginning of it."""
    when: AwareDatetime
    """When it ended, UTC."""
    author: str
    """The name of who started it; empty if unknown."""
    counts: Mapping[str, NonNegativeInt]
    """How many objects were created, updated and deleted; without zeros."""
    manifests: str
    """The full ID of the manifests' commit; empty if they were not as committed."""
    result: int | None
    """The exit code; null if unknown."""
    job: str
    """The URL of the CI job; empty outside of one."""
    canary: str
    """The targets that were applied first, as a canary; empty without one."""
    reverts: str
    """The apply that this one undoes: its full ID, or the name of its report; empty if it is no revert."""

    @classmethod
    def of(cls, apply: Apply) -> "PastApply":
        """Return an entry of the apply log in the form of documents."""
        return cls(
            apply.id,
            apply.when,
            apply.author,
            apply.counts,
            apply.manifests,
            apply.result,
            apply.job,
            apply.canary,
            apply.reverts,
        )


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


@dataclass(frozen=True, slots=True)
class BaselineShare:
    """How much of a plan its baseline has too, and how much of the baseline is gone.

    Attributes:
        changes: number of changes that both have.
        problems: number of problems that both have.
        changed: the targets and sections all of whose changes the baseline has.
        troubled: the targets and sections all of whose problems the baseline has.
        unmanaged: number of unmanaged objects that both have, which are no drift.
        gone: how many changes and problems of the baseline the plan has no more.
    """

    changes: int
    problems: int
    changed: frozenset[tuple[Target, str]] = frozenset()
    troubled: frozenset[tuple[Target, str]] = frozenset()
    unmanaged: int = 0
    gone: int = 0

    @property
    def total(self) -> int:
        """Number of changes and problems that both have."""
        return self.changes + self.problems


@dataclass(frozen=True, kw_only=True)
class Head:
    """The facts about a run: the service, time and options of its plan, and the apply that carried it out."""

    __pydantic_config__ = DOCUMENT

    format: Literal["reconciler.plan/v4", "reconciler.report/v4"] = PLAN
    """The format of this document: that of a plan, or of the report of an apply."""
    service: str
    """The URL of the service's API."""
    created_at: AwareDatetime
    """When the plan was made, UTC."""
    tool_version: str
    """The version of the reconciler that made the plan."""
    manifests_digest: str
    """SHA-256 of the effective desired state of all targets."""
    commit: Annotated[str, Field(pattern="^[0-9a-f]{40,64}$")] | None = None
    """The commit that holds the manifests just as they were read; null if none does, or the plan is narrowed. Of a way
    back, that of the apply that it undoes."""
    requests_made: NonNegativeInt
    """How many reads it took to make the plan."""
    shard: Shard | None = None
    """The part of the targets that the plan is about; null for all of them."""
    narrowed: bool | None = None
    """Whether only some targets, sections or changes were planned, apart from a shard; null if unknown."""
    since: str = ""
    """The revision of `--since`: changes whose `source` is not `change` are not of the change. Empty without one."""
    restored_since: AwareDatetime | None = None
    """Since when findings tell what was changed and put back, UTC; null if that was not asked for."""
    reverts: str = ""
    """The apply that is undone: its full ID, or the name of its report; empty if this is no way back."""
    limits: Limits = NO_LIMITS
    """The limits that `apply` goes by, unless it is given others."""
    archived: NonNegativeInt = 0
    """How many archived projects the sets left out, as far as the lists of projects show them."""
    inventory: Basis | None = None
    """The inventory that the plan was made from, and what holds for all targets; null where no inventory is used."""
    applies: tuple[PastApply, ...] | None = None
    """The last applies by the inventory, the latest first, in a JSON report and on a fleet page; null where there is no
    inventory, and in other documents."""
    started_at: AwareDatetime | None = None
    """When the first change could begin, UTC; null in a plan."""
    finished_at: AwareDatetime | None = None
    """When the last change had been verified, UTC; null in a plan."""
    requests: Requests | None = None
    """The number of requests that the apply made; null in a plan."""
    canary: Canary | None = None
    """How `--canary` went, whose targets come first; null without it, or where the run ended before."""


@dataclass(frozen=True, kw_only=True)
class RunDocument(Head):
    """A plan, or the report of an apply: its head, the targets of the run, and the items.

    Attributes:
        targets: the instance, then the user, then groups, then projects.
        items: by target and section, in the order of an apply; items about the run come last. A report has outcomes in
            place of changes.
        known: the number of items that were left out because a baseline has them too; None for a whole plan. No file
            has this number.
    """

    targets: tuple[Seen, ...] = ()
    items: tuple[Item, ...] = ()
    known: BaselineShare | None = field(default=None, compare=False)

    @property
    def is_plan(self) -> bool:
        """Whether the document is a plan, and no report."""
        return self.format == PLAN

    @property
    def is_part(self) -> bool:
        """Whether the document is about one of several shards."""
        return self.shard is not None and self.shard.total > 1

    @property
    def time(self) -> AwareDatetime:
        """When the plan was made, or the apply ended, UTC."""
        return self.finished_at or self.created_at

    @property
    def began_at(self) -> AwareDatetime:
        """When the plan was made, or the apply began, UTC."""
        return self.started_at or self.created_at

    @property
    def made(self) -> Requests:
        """The requests of an apply; none in a plan."""
        return self.requests or Requests(0, 0)

    @cached_property
    def by_target(self) -> Mapping[Target, Sequence[Item]]:
        """The items of each target; most targets have none."""
        own: dict[Target, list[Item]] = {seen.target: [] for seen in self.targets}
        for item in self.items:
            if not is_about_run(item):
                own[target_of(item)].append(item)
        return own

    @cached_property
    def eventful(self) -> frozenset[Target]:
        """The targets with an item that a report shows, which are those that were not merely in order."""
        return frozenset(target for target, items in self.by_target.items() if any(map(_is_event, items)))

    @property
    def changes(self) -> Iterator[Change]:
        """All changes, planned or carried out."""
        return changes_in(self.items)

    @property
    def outcomes(self) -> Iterator[Outcome]:
        """The outcomes of the changes; nothing in a plan."""
        return (item for item in self.items if isinstance(item, Outcome))

    @property
    def has_done(self) -> bool:
        """Whether an apply did at least one change."""
        return any(outcome.status is Status.DONE for outcome in self.outcomes)

    def findings(self, *codes: str) -> Iterator[Finding]:
        """Yield the findings that have one of these codes."""
        return (item for item in self.items if isinstance(item, Finding) and item.code in codes)

    @property
    def remarks(self) -> list[str]:
        """The sentences about the run, without possible renames."""
        return [
            advised(item.reason, item.fix)
            for item in self.items
            if isinstance(item, Finding) and not item.where and item.code != "rename"
        ]

    @cached_property
    def is_empty(self) -> bool:
        """Whether there are neither changes nor problems."""
        return not any(map(is_difference, self.items))

    @cached_property
    def differing(self) -> frozenset[Target]:
        """The targets that have changes or problems."""
        return frozenset(target_of(item) for item in self.items if is_difference(item))

    @cached_property
    def refusals(self) -> tuple[str, ...]:
        """The reasons for which `apply` refuses the plan, unless other limits are given; a report has no reasons."""
        if not self.is_plan:
            return ()
        object_counts = {
            (seen.target, section): number for seen in self.targets for section, number in seen.sections.items()
        }
        return tuple(refusals(self.changes, object_counts, self.limits, self.shard.total if self.shard else 1))

    @property
    def complete(self) -> bool:
        """Whether all changes are done and nothing is a problem."""
        return all(outcome.status is Status.DONE for outcome in self.outcomes) and not any(self.findings("problem"))

    @property
    def finish(self) -> str:
        """The command that does the unfinished changes; for an apply, `report.json` must be its report."""
        if self.reverts:
            return f"{join(revert_words(self.reverts))} --yes"
        return "reconciler apply --retry-failed report.json"


def is_difference(item: Item) -> bool:
    """Return whether an item is a change, an outcome, or a finding that `drift` counts."""
    return code_of(item.code).drifts if isinstance(item, Finding) else not isinstance(item, Keep)


def is_remark(finding: Finding) -> bool:
    """Return whether a finding has no layout of its own, and is always shown by its sentence."""
    code = code_of(finding.code)
    return not code.own_form and code.shown == "always"


def _is_event(item: Item) -> bool:
    return is_difference(item) or (
        isinstance(item, Finding) and (item.code in ("excepted", "not_applicable") or is_remark(item))
    )


def with_findings(document: RunDocument, *findings: Finding) -> RunDocument:
    """Return a document with further findings about its run."""
    return replace(document, items=(*document.items, *findings))


def refuse_unless_current(saved: RunDocument, *, api_url: str, now: datetime, max_age: timedelta) -> None:
    """Refuse a plan for another service, or a plan that is too old.

    Raises:
        PlanRefused: the plan is refused; the message has the fix.
    """
    made_at = saved.created_at
    if not is_about(saved.service, api_url):
        raise PlanRefused(
            f"the plan is for {saved.service!r}, and this is {api_url!r}: "
            "make a plan for this service, or apply it there"
        )
    refuse_future("plan", made_at, now)
    if now - made_at > max_age:
        raise PlanRefused(
            f"the plan was made at {utc(made_at)}, {_words(now - made_at)} ago, and plans older than {_words(max_age)} "
            "are refused: make a new one, or allow its age with --max-age"
        )


def refuse_future(document_name: str, made_at: datetime, now: datetime) -> None:
    """Refuse a document whose time lies further in the future than clocks may differ.

    Raises:
        PlanRefused: the time lies too far in the future.
    """
    if made_at - now > CLOCK_SKEW:
        raise PlanRefused(
            f"the {document_name} was made in the future, at {utc(made_at)}, and it is {utc(now)}: set the clock right"
        )


def is_about(service: str, api_url: str) -> bool:
    """Return whether two URLs are spellings of one service's URL."""
    return _normalised(service) == _normalised(api_url)


def utc(time: datetime) -> str:
    """Return a moment as `2026-12-01T10:00:00Z`."""
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _normalised(api_url: str) -> tuple[str, str, str]:
    """Return the parts of a URL that all spellings of one service have in common."""
    parts = urlsplit(api_url)
    return parts.scheme.lower(), parts.netloc.lower(), parts.path.rstrip("/")


def _words(duration: timedelta) -> str:
    """Return a duration in whole hours, or, if it is shorter than one, in minutes."""
    minutes = int(duration.total_seconds() // 60)
    return counted(minutes // 60, "hour") if minutes >= 60 else counted(minutes, "minute")
