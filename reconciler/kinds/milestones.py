"""Milestones of a project, each known by its title (spec 4.11)."""

import re
from collections.abc import Iterator, Mapping
from datetime import date
from operator import index
from types import MappingProxyType
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field

from reconciler.model.endpoints import Collection
from reconciler.model.kind import Archived, Kind, Needs, Rehearsed, Role
from reconciler.model.protocols import Json, Request
from reconciler.model.resource import NOT_HERE, Found, Item, Resource, name_shown, number_shown, recognized
from reconciler.model.targets import Key, Level, Target

LONGEST_TITLE = 255
DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def _as_day(value: object) -> object:
    if not (isinstance(value, str) and DAY.fullmatch(value)):
        return value
    try:
        return date.fromisoformat(value)
    except ValueError as error:
        raise ValueError(f"not a day of the calendar: {value}") from error


Day = Annotated[date | None, BeforeValidator(_as_day, json_schema_input_type=str | None)]


class Milestone(Item):
    """A milestone of a project."""

    misplaced: ClassVar[Mapping[str, str]] = MappingProxyType({"title": "the title of a milestone is its key"})

    description: Annotated[str | None, BeforeValidator(lambda text: None if text == "" else text)] = Field(
        default=None, description="What it is about. Null, or empty, is none.", examples=["December release"]
    )
    start_date: Day = Field(default=None, description="First day, YYYY-MM-DD. Null is none.", examples=["2026-12-01"])
    due_date: Day = Field(
        default=None,
        description="Last day, YYYY-MM-DD, after `start_date`. Null is none.",
        examples=["2026-12-31"],
    )
    state: Literal["active", "closed"] = Field(
        default="active", description="Whether it is open for work.", examples=["active"]
    )

    def errors(self) -> Iterator[tuple[str, str]]:
        """A milestone ends on a later day than it starts."""
        if self.start_date and self.due_date and self.due_date <= self.start_date:
            yield "due_date", f"due_date must be after start_date, which is {self.start_date}"


FIELDS = ("description", "start_date", "due_date")


def fault_of_title(_scope: Target, title: Key) -> str | None:
    """Titles are not blank, and not longer than the service keeps."""
    if len(str(title).strip()) > LONGEST_TITLE:
        return f"a title has at most {LONGEST_TITLE} characters; this one has {len(str(title).strip())}"
    return None if str(title).strip() else "a title must not be blank"


def canonical_title(title: Key) -> Key:
    """The service strips blanks around a title."""
    return str(title).strip()


def decode(_scope: Target, entry: Json) -> Found:
    """Read one milestone of the project's own."""
    shown = {name: entry.get(name) for name in FIELDS}
    shown |= {"state": entry["state"]} if "state" in entry else {}
    milestone, unknown = recognized(Milestone, shown)
    return Found(
        milestone,
        names=(name_shown(entry["title"]),),
        id=index(entry["id"]),
        owner_id=number_shown(entry.get("project_id")),
        read_only={} if "state" in entry else {"state": NOT_HERE},
        unknown=unknown,
    )


def create(path: str, title: Key, wanted: Resource, _target_id: int | None) -> tuple[Request, ...]:
    """A milestone is created active; one that is to be closed takes a second request."""
    given = {name: value for name, value in _json(wanted).items() if value is not None and name in FIELDS}
    creation = Request("POST", path, {"title": canonical_title(title)} | given)
    if wanted.model_dump()["state"] == "active":
        return (creation,)
    return creation, Request("PUT", path + "/{id}", {"state_event": "close"})


def update(path: str, title: Key, wanted: Resource, found: Found) -> tuple[Request, ...]:
    """Dates and descriptions are cleared by null; the state is changed by an event."""
    changed = _json(wanted)
    if "state" in changed:
        changed["state_event"] = "close" if changed.pop("state") == "closed" else "activate"
    if canonical_title(title) not in found.names:
        changed["title"] = canonical_title(title)
    return (Request("PUT", f"{path}/{found.id}", changed),)


def _json(wanted: Resource) -> dict[str, Json]:
    return wanted.model_dump(mode="json", include=wanted.model_fields_set - {"renamed_from"})


MILESTONES = Collection(
    name="milestones",
    title="milestone",
    suffix="milestones",
    model=Milestone,
    decode=decode,
    create=create,
    update=update,
    key_error=fault_of_title,
    canonical_key=canonical_title,
)


def rehearsal(read: Rehearsed) -> Mapping[str, Json]:
    """The milestones, by their titles."""
    return {"milestones": read.items("milestones", "title")}


KIND = Kind(
    name="milestones",
    summary="Milestones of a project, by title.",
    spec="4.11",
    models=MappingProxyType({Level.PROJECT: dict[str, Milestone | None]}),
    parts=(MILESTONES,),
    split=lambda section, _prune: {"milestones": section},
    order=5,
    rehearsal=rehearsal,
    needs=Needs(
        roles=MappingProxyType({Level.PROJECT: Role.PLANNER}),
        same_to_read=False,
        archived=Archived.READ_ONLY,
        switches=MappingProxyType({"issues_enabled": "issues", "merge_requests_enabled": "merge requests"}),
    ),
)
