"""Milestones of a project, each known by its title (spec 4.11)."""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field

from reconciler.model.endpoints import Collection, Existing, stripped
from reconciler.model.kind import Archived, Day, Kind, Needs, Role
from reconciler.model.protocols import Json
from reconciler.model.resource import NOT_HERE, Found, Item, recognized
from reconciler.model.targets import Level


class Milestone(Item):
    """A milestone of a project."""

    misplaced: ClassVar[Mapping[str, str]] = {"title": "the title of a milestone is its key"}

    description: Annotated[str | None, BeforeValidator(lambda text: None if text == "" else text)] = Field(
        default=None, description="Text of any length. Null or empty: none.", examples=["December release"]
    )
    start_date: Day = Field(default=None, description="First day, YYYY-MM-DD. Null: none.", examples=["2026-12-01"])
    due_date: Day = Field(
        default=None,
        description="Last day, YYYY-MM-DD, after `start_date`. Null: none.",
        examples=["2026-12-31"],
    )
    state: Literal["active", "closed"] = Field(
        default="active", description="Open for work (`active`), or `closed`.", examples=["active"]
    )

    def errors(self) -> Iterator[tuple[str, str]]:
        """A milestone ends on a later day than it starts."""
        if self.start_date and self.due_date and self.due_date <= self.start_date:
            yield "due_date", f"due_date must be after start_date, which is {self.start_date}"


GROUP = re.compile(r"/groups/([^?#]+)/-/milestones/")
"""The address of a group's milestone."""

FIELDS = ("description", "start_date", "due_date")


def decode(entry: Json) -> Found:
    """Read one milestone: a description or date that is missing is null."""
    shown = {name: entry.get(name) for name in FIELDS}
    shown |= {"state": entry["state"]} if "state" in entry else {}
    milestone, unknown = recognized(Milestone, shown)
    return Found(milestone, read_only={} if "state" in entry else {"state": NOT_HERE}, unknown=unknown)


def losses(_old: Existing) -> Iterator[str]:
    """The service's list does not tell what hangs on a milestone."""
    yield "its issues and merge requests lose it; the service does not report how many these are"


def holder(entry: Json) -> str | None:
    """Name the group that has a milestone, None for a project's own (deployed behaviour, section 12 j)."""
    number = entry.get("group_id")
    if number is None:
        return None
    path = GROUP.search(str(entry.get("web_url")))
    return f"group {path[1] if path else number}"


MILESTONES = Collection(
    name="milestones",
    title="milestone",
    suffix="milestones",
    query="include_ancestors=true",
    holder=holder,
    model=Milestone,
    decode=decode,
    events={"active": "activate", "closed": "close"},
    canonical_key=stripped,
    lost="its issues and merge requests",
    losses=losses,
    page="-/milestones/{iid}",
)

KIND = Kind(
    name="milestones",
    summary="Milestones of a project, by title.",
    spec="4.11",
    models={Level.PROJECT: dict[str, Milestone | None]},
    parts=(MILESTONES,),
    order=5,
    needs=Needs(
        roles={Level.PROJECT: Role.PLANNER},
        same_to_read=False,
        archived=Archived.READ_ONLY,
        switches={"issues_enabled": "issues", "merge_requests_enabled": "merge requests"},
    ),
    pages={Level.PROJECT: "{target}/-/milestones"},
)
