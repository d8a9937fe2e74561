"""A plan to and from disk.

Reading trusts no file: the checksum shows edits, and every request must lead to the target and part it stands under.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal
from urllib.parse import urlsplit

from pydantic import AwareDatetime, Field, TypeAdapter, ValidationError

from reconciler.documents.checksum import Document, read_checked, with_checksum
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
from reconciler.model.plan import Create, Delete, Plan, TargetPlan, Update
from reconciler.model.protocols import Json
from reconciler.model.state import Section
from reconciler.planning.guard import NO_LIMITS, Limits, refusals
from reconciler.planning.shards import Shard

FORMAT = "reconciler.plan/v2"

CLOCK_SKEW = timedelta(minutes=5)
"""How far the clocks of two machines may be apart."""


@dataclass(frozen=True, slots=True)
class Header:
    """Where a plan comes from.

    Attributes:
        service: the `{api_url}` that was read.
        created_at: when, with a time zone.
        tool_version: of the reconciler that made it.
        manifests_digest: SHA-256 (hex) of the effective desired state.
        requests_made: how many reads it took.
        shard: which part of the targets it is about; None for all that were selected.
        limits: what was allowed when it was made.
    """

    service: str
    created_at: datetime
    tool_version: str
    manifests_digest: str
    requests_made: int
    shard: Shard | None = None
    limits: Limits = NO_LIMITS


@dataclass(frozen=True, slots=True)
class SavedPlan:
    """A plan and where it comes from."""

    header: Header
    plan: Plan

    @property
    def refusals(self) -> tuple[str, ...]:
        """Why `apply` refuses the plan, as far as it is not told more."""
        shard = self.header.shard
        return tuple(refusals(self.plan, self.header.limits, shard.total if shard else 1))


class SummaryShape(Document):
    """The plan in numbers."""

    create: int = Field(description="How many objects are created.")
    update: int = Field(description="How many objects and settings sections are changed.")
    delete: int = Field(description="How many objects are deleted.")
    problems: int = Field(description="How much of what is wanted cannot be planned.")
    unmanaged: int = Field(description="How many live objects no manifest mentions, in sections that are declared.")
    requests: int = Field(description="How many requests the changes take.")


class LimitsShape(Document):
    """The limits that were given when the plan was made."""

    allow_deletes: int | None = Field(ge=0, description="How many deletions; null for no word about it.")
    max_changes: int | None = Field(ge=0, description="How many changes at most; null for any number.")


class SectionPlanShape(SectionShape):
    """What will happen to one section of one target."""

    changes: list[ChangeShape] = Field(description="Creations, then updates, then deletions.")


class TargetPlanShape(TargetShape):
    """What will happen to one target."""

    origin: str = Field(description="Its manifest, as path:line.")
    sections: list[SectionPlanShape] = Field(description="Its declared sections, in the order of their application.")


class DependentShape(TargetShape):
    """Settings that are read and planned again after the groups above them were changed."""

    section: str = Field(description="The section's name.")
    prune: bool = Field(description="Whether the section is authoritative.")
    wanted: dict[str, Json] = Field(description="Its declared fields.")


class PlanDocument(Document):
    """A saved plan."""

    format: Literal["reconciler.plan/v2"] = Field(description="What this document is.")
    service: str = Field(description="The URL of the service's API, whose state was read.")
    created_at: AwareDatetime = Field(description="When the plan was made, UTC.")
    tool_version: str = Field(description="The version of the reconciler that made it.")
    manifests_digest: str = Field(description="SHA-256 of the effective desired state.")
    requests_made: int = Field(ge=0, description="How many reads it took to make the plan.")
    shard: ShardShape | None = Field(description="Which part of the targets this is about; null for all of them.")
    limits: LimitsShape = Field(description="The limits that `apply` goes by, unless it is given others.")
    refusals: list[str] = Field(description="Why `apply` will refuse the plan, unless it is told more.")
    summary: SummaryShape = Field(description="How much would happen, and how much cannot.")
    targets: list[TargetPlanShape] = Field(description="Users, then groups, then projects.")
    dependent: list[DependentShape] = Field(
        description="Settings that are read and planned again after the groups above them were changed."
    )
    checksum: str = Field(description="SHA-256 of all the rest; an edited plan is refused.")


def save_plan(saved: SavedPlan) -> str:
    """Return a plan as a document that `load_plan` reads."""
    return with_checksum(
        {
            "format": FORMAT,
            "service": saved.header.service,
            "created_at": utc(saved.header.created_at),
            "tool_version": saved.header.tool_version,
            "manifests_digest": saved.header.manifests_digest,
            "requests_made": saved.header.requests_made,
            "shard": shard_content(saved.header.shard),
            "limits": {"allow_deletes": saved.header.limits.deletes, "max_changes": saved.header.limits.changes},
            "refusals": list(saved.refusals),
            "summary": summary(saved.plan),
            "targets": [_target_content(target) for target in saved.plan.targets],
            "dependent": [_dependent_content(section) for section in saved.plan.dependent],
        }
    )


def load_plan(text: str, kinds: Kinds) -> SavedPlan:
    """Read what `save_plan` returned.

    Raises:
        PlanRefused: it is not that, it was edited, or a newer reconciler wrote it.
    """
    document = read_checked(text, PlanDocument, FORMAT)
    header = Header(
        service=document.service,
        created_at=document.created_at.astimezone(UTC),
        tool_version=document.tool_version,
        manifests_digest=document.manifests_digest,
        requests_made=document.requests_made,
        shard=read_shard(document.shard),
        limits=Limits(document.limits.allow_deletes, document.limits.max_changes),
    )
    targets = tuple(_read_target(target, kinds) for target in document.targets)
    plan = Plan(targets, tuple(_read_dependent(section, kinds) for section in document.dependent))
    if document.summary.model_dump() != summary(plan):
        raise PlanRefused("the saved plan is damaged: its summary is not that of its changes")
    return SavedPlan(header, plan)


def refuse_unless_current(saved: SavedPlan, *, api_url: str, now: datetime, max_age: timedelta) -> None:
    """Refuse a plan that is for another service, or too old.

    Raises:
        PlanRefused: says what to do instead.
    """
    made_at = saved.header.created_at
    if _place(saved.header.service) != _place(api_url):
        raise PlanRefused(
            f"the plan is for {saved.header.service!r}, and this is {api_url!r}: "
            "make a plan for this service, or apply it there"
        )
    if made_at - now > CLOCK_SKEW:
        raise PlanRefused(
            f"the plan was made in the future, at {utc(made_at)}, and it is {utc(now)}: set the clock right"
        )
    if now - made_at > max_age:
        raise PlanRefused(
            f"the plan was made at {utc(made_at)}, {_words(now - made_at)} ago, and plans older than {_words(max_age)} "
            "are refused: make a new one, or allow its age with --max-age"
        )


def summary(plan: Plan) -> dict[str, int]:
    """Return a plan in numbers, in the shape of `SummaryShape`."""
    changes = list(plan.changes)
    return {
        "create": sum(isinstance(change, Create) for change in changes),
        "update": sum(isinstance(change, Update) for change in changes),
        "delete": sum(isinstance(change, Delete) for change in changes),
        "problems": sum(1 for _ in plan.problems),
        "unmanaged": sum(1 for _ in plan.unmanaged),
        "requests": plan.cost,
    }


def utc(time: datetime) -> str:
    """Return a moment as `2026-12-01T10:00:00Z`."""
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _target_content(target: TargetPlan) -> Content:
    return target_content(
        target,
        (
            section_content(section, changes=[change_content(change) for change in section.changes])
            for section in target.sections
        ),
    )


def _read_target(shape: TargetPlanShape, kinds: Kinds) -> TargetPlan:
    target = read_scope(shape)
    sections = tuple(read_section(target, each, each.changes, kinds) for each in shape.sections)
    return TargetPlan(target, sections, shape.origin)


def _dependent_content(section: Section) -> Content:
    """Return settings that will be planned again, as a manifest holds them: the declared fields of all their parts."""
    fields: dict[str, Json] = {}
    for wanted in section.wanted.values():
        if isinstance(wanted, Mapping):
            raise TypeError(f"{section.kind} holds objects, and only settings can be planned again")
        fields |= wanted.model_dump(mode="json", include=wanted.model_fields_set)
    return {
        "level": section.target.level,
        "ref": section.target.ref,
        "section": section.kind,
        "prune": section.prune,
        "wanted": fields,
    }


def _read_dependent(shape: DependentShape, kinds: Kinds) -> Section:
    target = read_scope(shape)
    model = kinds[shape.section].models.get(target.level) if shape.section in kinds else None
    if model is None:
        raise PlanRefused(f"the saved plan is damaged: no {target.level} has a section {shape.section!r}")
    try:
        value = TypeAdapter(model).validate_python(shape.wanted)
    except ValidationError as error:
        raise PlanRefused(f"the saved plan is damaged: the {shape.section} of {str(target)!r} are not valid") from error
    return Section(target, shape.section, kinds[shape.section].wanted(value, prune=shape.prune), shape.prune)


def _place(api_url: str) -> tuple[str, str, str]:
    """What two spellings of one service's URL have in common."""
    parts = urlsplit(api_url)
    return parts.scheme.lower(), parts.netloc.lower(), parts.path.rstrip("/")


def _words(duration: timedelta) -> str:
    """A duration to the hour, or where it is shorter, to the minute."""
    minutes = int(duration.total_seconds() // 60)
    number, unit = (minutes // 60, "hour") if minutes >= 60 else (minutes, "minute")
    return f"{number} {unit}{'' if number == 1 else 's'}"
