"""A plan to and from disk.

Reading trusts no file: the checksum shows edits, and every request must lead to the target and part it stands under.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache, cached_property
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

from pydantic import (
    AwareDatetime,
    Field,
    NonNegativeInt,
    PlainSerializer,
    PlainValidator,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    computed_field,
)

from reconciler.documents.chapters import Chapter, chapters_since, totals
from reconciler.documents.checksum import DOCUMENT, Omissions, read_checked, with_checksum
from reconciler.documents.groups import SavedGroup
from reconciler.documents.prospect import SavedProspect
from reconciler.errors import PlanRefused
from reconciler.gitops.apply_log import Apply
from reconciler.model.creation import Namespace
from reconciler.model.diff import Fields
from reconciler.model.endpoints import Collection
from reconciler.model.kind import Kinds, Part
from reconciler.model.plan import ACTIONS, Change, Create, Plan, TargetPlan, Update
from reconciler.model.protocols import Json
from reconciler.model.state import Section
from reconciler.model.targets import PATHLESS, Address, Key, Level, Target
from reconciler.model.wording import counted
from reconciler.planning.creation import creation_in, creation_of
from reconciler.planning.guard import NO_LIMITS, Limits, refusals
from reconciler.planning.renames import RenameHint
from reconciler.planning.selection import Shard

FORMAT: Final = "reconciler.plan/v3"

OMISSIONS = Omissions(section=("outcomes",))
"""The attributes that only reports have."""

CLOCK_SKEW = timedelta(minutes=5)
"""How far the clocks of two machines may be apart."""


@dataclass(frozen=True, slots=True)
class Dependent:
    """Settings that are read and planned again after the groups above them were changed."""

    level: Level
    """The level of the target."""
    ref: Key | None
    """The full path or the numeric ID; null for the instance and for the user behind the token."""
    section: str
    """The section's name."""
    prune: bool
    """Whether the section is authoritative."""
    wanted: Fields
    """Its declared fields."""


def _as_dependent(section: Section) -> Dependent:
    """Return settings as a manifest holds them: the declared fields of all their parts."""
    fields: dict[str, Json] = {}
    for wanted in section.wanted.values():
        if isinstance(wanted, Mapping):
            raise TypeError(f"{section.kind} holds objects, and only settings can be planned again")
        fields |= wanted.model_dump(mode="json", include=wanted.model_fields_set)
    return Dependent(section.target.level, section.target.ref, section.kind, section.prune, fields)


def _from_dependent(content: Json, info: ValidationInfo) -> Section:
    """Return the settings that `_as_dependent` turned into JSON; the context of the validation is all kinds."""
    read = TypeAdapter(Dependent).validate_python(content)
    target = Target(read.level, read.ref)
    kinds: Kinds = info.context or {}
    if read.section not in kinds or read.level not in kinds[read.section].models:
        raise PlanRefused(f"the saved plan is damaged: no {read.level} has a section {read.section!r}")
    try:
        value = TypeAdapter(kinds[read.section].models[read.level]).validate_python(read.wanted)
    except ValidationError as error:
        raise PlanRefused(f"the saved plan is damaged: the {read.section} of {str(target)!r} are not valid") from error
    return Section(target, read.section, kinds[read.section].wanted(value, prune=read.prune), read.prune)


KeptSection = Annotated[Section, PlainValidator(_from_dependent), PlainSerializer(_as_dependent, return_type=Dependent)]


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
        """Return an apply of the log as plans have it."""
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
class Summary:
    """A plan in numbers. With `--since REV`, it counts the changes that are of the change."""

    create: int
    """How many objects are created."""
    update: int
    """How many objects and settings sections are changed."""
    delete: int
    """How many objects are deleted."""
    problems: int
    """Number of problems."""
    unmanaged: int
    """How many live objects no manifest mentions, in sections that are declared."""
    not_applicable: int
    """How many sections are left out because their target cannot have them."""
    excepted: int
    """How many changes exceptions hold back."""
    hidden: int
    """How many lists hold entries that the token cannot see, which stay."""
    archived: int
    """How many archived projects the sets left out, as far as the lists of projects show them."""
    requests: int
    """How many requests the changes take."""
    not_of_change: Mapping[str, int] | None = None
    """The same numbers of the changes that are not of the change, and of nothing else; null without `--since REV`."""


@dataclass(frozen=True, slots=True)
class BaselineShare:
    """How much of a plan a baseline has too, and how much of the baseline is gone."""

    changes: int
    """Number of changes."""
    problems: int
    """Number of problems."""
    changed: frozenset[tuple[Target, str]] = frozenset()
    """The targets and sections of these changes."""
    troubled: frozenset[tuple[Target, str]] = frozenset()
    """Those of these problems."""
    unmanaged: int = 0
    """Number of unmanaged objects, which are no drift."""
    gone: int = 0
    """How many changes and problems of the baseline the plan has no more."""

    @property
    def total(self) -> int:
        """Number of changes and problems."""
        return self.changes + self.problems


@dataclass(frozen=True, kw_only=True)
class SavedPlan:
    """A saved plan."""

    __pydantic_config__ = DOCUMENT

    format: Literal["reconciler.plan/v3"] = FORMAT
    """The format of this document."""
    service: str
    """The URL of the service's API, whose state was read."""
    created_at: AwareDatetime
    """When the plan was made, UTC."""
    tool_version: str
    """The version of the reconciler that made it."""
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
    """Since when sections tell what was changed and put back, UTC; null if that was not asked for."""
    reverts: str = ""
    """The apply that the plan undoes: its full ID, or the name of its report; empty if the plan is no way back."""
    limits: Limits = NO_LIMITS
    """The limits that `apply` goes by, unless it is given others."""
    archived: NonNegativeInt = 0
    """How many archived projects the sets left out, as far as the lists of projects show them."""
    targets: tuple[TargetPlan, ...]
    """The instance, then the user, then groups, then projects."""
    dependent: tuple[KeptSection, ...] = ()
    """Settings that are read and planned again after the groups above them were changed."""
    hints: tuple[RenameHint, ...] = ()
    """Likely renames: an object is deleted, and a similar one created."""
    inventory: SavedProspect | None = None
    """The inventory lines that an apply of the plan writes; null where no inventory is used."""
    remarks: tuple[str, ...] = ()
    """Sentences on the inventory: objects that are no longer declared and stay, and why."""
    applies: tuple[PastApply, ...] | None = None
    """The last applies by the inventory, the latest first, in a JSON report and on a fleet page; null where there is no
    inventory, and in other documents."""
    whole: Annotated[tuple[KeptSection, ...], Field(exclude=True)] = field(default=(), compare=False)
    """See `Plan.whole`; no file has it."""
    known: Annotated[BaselineShare | None, Field(exclude=True)] = field(default=None, compare=False)
    """What was left out because a baseline has it too; null for a whole plan. No file has it."""

    @cached_property
    def plan(self) -> Plan:
        """The plan itself."""
        return Plan(self.targets, self.dependent, self.whole)

    @property
    def is_part(self) -> bool:
        """Whether other shards of the same run are about other targets."""
        return self.shard is not None and self.shard.total > 1

    @property
    def is_empty(self) -> bool:
        """Whether there are neither changes nor problems."""
        return not any(any(target.entries) for target in self.targets)

    @property
    def all_targets(self) -> Iterator[Target]:
        """All targets of the plan."""
        return (target.target for target in self.targets)

    @cached_property
    def chapters(self) -> tuple[Chapter, ...]:
        """The plan as people see it."""
        return tuple(chapters_since(self.targets)) if self.since else (Chapter("", self.targets),)

    @computed_field
    @cached_property
    def refusals(self) -> tuple[str, ...]:
        """Why `apply` will refuse the plan, unless it is given other limits."""
        return tuple(refusals(self.plan, self.limits, self.shard.total if self.shard else 1))

    @computed_field
    @cached_property
    def groups(self) -> tuple[SavedGroup, ...]:
        """The changes that three or more targets have in common, and problems of two; the largest groups first."""
        return tuple(group for chapter in self.chapters for group in chapter.saved_groups)

    @computed_field
    @cached_property
    def summary(self) -> Summary:
        """How much would happen, and how much cannot."""
        others = {**_counted(self.chapters[1:]), "archived": 0} if self.since else None
        return Summary(**_counted(self.chapters[:1]), archived=self.archived, not_of_change=others)


def _counted(chapters: Sequence[Chapter]) -> dict[str, int]:
    """Return what some chapters hold in numbers."""
    numbers = totals(chapters)
    words = *ACTIONS, "requests", "problems", "unmanaged", "not_applicable", "excepted", "hidden"
    return {word: numbers[word] for word in words}


@cache
def _adapter() -> TypeAdapter[SavedPlan]:
    """Return what writes and reads plans. It is built when first needed: most runs need none."""
    return TypeAdapter(SavedPlan)


def save_plan(saved: SavedPlan) -> str:
    """Return a plan as a document that `load_plan` reads."""
    return with_checksum(_adapter().dump_python(saved, mode="json", exclude=OMISSIONS.paths))


def load_plan(text: str, kinds: Kinds) -> SavedPlan:
    """Read what `save_plan` returned.

    Raises:
        PlanRefused: it is not a saved plan, was edited, or comes from another version.
    """
    saved = read_checked(
        text,
        _adapter(),
        FORMAT,
        computed={"refusals": False, "groups": False, "summary": True},
        omissions=OMISSIONS,
        context=kinds,
    )
    targets = []
    for target in saved.targets:
        check_target(target.target)
        sections = (
            replace(section, changes=tuple(checked_change(change, kinds) for change in section.changes))
            for section in target.sections
        )
        targets.append(replace(target, sections=tuple(sections)))
    return replace(saved, targets=tuple(targets), whole=())


def check_target(target: Target) -> None:
    """Refuse a user with a path, and a group or a project without one."""
    if (target.ref is None) != (target.level in PATHLESS):
        raise PlanRefused(f"damaged: a target of the level {target.level} with the ref {target.ref!r}")


def checked_change(change: Change, kinds: Kinds) -> Change:
    """Return a change that was read, completed by what a document does not hold.

    Raises:
        PlanRefused: there is no such section or part, or a request leads elsewhere.
    """
    if not change.address.section:
        if change != _as_planned(change):
            raise PlanRefused(f"damaged: no creation of {str(change.address.target)!r} is planned like this")
        return change
    part = _part(change.address, kinds)
    for request in change.requests:
        if not (_leads_to(request.path, change.address.target, part) or _promotes(request.path, change, part)):
            raise PlanRefused(
                f"damaged: {request.method} {request.path!r} does not lead to {part.title} of "
                f"{str(change.address.target)!r}"
            )
    if isinstance(change, Create):
        return replace(change, delivers=isinstance(part, Collection) and bool(part.secret_field))
    return change


def _as_planned(change: Change) -> Create | None:
    """Return the creation of a target that would be planned for the fields of a change; None if there is none.

    Whether the number in its request is that of the namespace is known only to the service.
    """
    target = change.address.target
    if not (isinstance(change, Create) and change.requests and isinstance(target.ref, str)):
        return None
    is_group = target.level is Level.GROUP
    number = (change.requests[0].body or {}).get("parent_id" if is_group else "namespace_id")
    path, _, _ = target.ref.rpartition("/")
    try:
        creation = creation_in(change.after)
        if creation.source if is_group else (creation.archive or not path):
            return None
        return creation_of(target, creation, Namespace(path, number if isinstance(number, int) else None, None))
    except (KeyError, ValueError):
        return None


def refuse_unless_current(saved: SavedPlan, *, api_url: str, now: datetime, max_age: timedelta) -> None:
    """Refuse a plan that is for another service, or too old.

    Raises:
        PlanRefused: says what to do instead.
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


def refuse_future(document: str, made_at: datetime, now: datetime) -> None:
    """Refuse a document that was made later than the clocks of two machines may differ.

    Raises:
        PlanRefused: it was.
    """
    if made_at - now > CLOCK_SKEW:
        raise PlanRefused(
            f"the {document} was made in the future, at {utc(made_at)}, and it is {utc(now)}: set the clock right"
        )


def is_about(service: str, api_url: str) -> bool:
    """Whether two spellings of a URL are those of one service."""
    return _place(service) == _place(api_url)


def utc(time: datetime) -> str:
    """Return a moment as `2026-12-01T10:00:00Z`."""
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _part(address: Address, kinds: Kinds) -> Part:
    kind = kinds.get(address.section)
    for part in kind.parts if kind and address.target.level in kind.models else ():
        if part.name == address.part:
            return part
    raise PlanRefused(
        "damaged, or made by another reconciler, or with a package that is not installed here: "
        f"no section has the name {address.section!r} and a part {address.part!r}"
    )


def _leads_to(path: str, target: Target, part: Part) -> bool:
    """Return whether a path leads to a part: below the target, by path or by number, and then below the part."""
    below = _below(tuple(part.suffixes), by_path=bool(part.path_field))
    if path.startswith(target.url) and below.fullmatch(path, len(target.url)):
        return True
    numbered = re.match(rf"{target.level}s/[0-9]+/", path) if isinstance(target.ref, str) else None
    return numbered is not None and below.fullmatch(path, numbered.end()) is not None


def _promotes(path: str, change: Change, part: Part) -> bool:
    """Return whether a path makes the object of a change, which is a project's, one of the group's."""
    if not (
        isinstance(part, Collection) and isinstance(change, Update) and change.read.below and part.writes.promotion
    ):
        return False
    return re.fullmatch(part.writes.promotion.format(project="[0-9]+", id=change.read.id), path) is not None


@cache
def _below(suffixes: tuple[str, ...], *, by_path: bool) -> re.Pattern[str]:
    """Match what follows the target in the paths of a part.

    No step leads upwards: dots and escapes occur only where objects are named by them, and never alone.
    """
    step = r"(?!(?:\.|%2[Ee])+(?:/|$))[A-Za-z0-9_%.~-]+" if by_path else "[A-Za-z0-9_-]+"
    return re.compile(rf"(?:{'|'.join(map(re.escape, suffixes))})(?:/{step}|/\{{id\}})*")


def _place(api_url: str) -> tuple[str, str, str]:
    """Return what two spellings of one service's URL have in common."""
    parts = urlsplit(api_url)
    return parts.scheme.lower(), parts.netloc.lower(), parts.path.rstrip("/")


def _words(duration: timedelta) -> str:
    """Return a duration in whole hours, or, if it is shorter than one, in minutes."""
    minutes = int(duration.total_seconds() // 60)
    return counted(minutes // 60, "hour") if minutes >= 60 else counted(minutes, "minute")
