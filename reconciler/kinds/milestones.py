"""Milestones of a project or a group, each known by its title (spec 4.11)."""

import re
from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field

from reconciler.model.endpoints import (
    Collection,
    Deletion,
    Existing,
    Listing,
    Names,
    Reading,
    Requests,
    Writes,
    as_json,
    stripped,
)
from reconciler.model.foreign_keys import Alias, ForeignKeys
from reconciler.model.kind import Archived, Day, Kind, Needs, Role
from reconciler.model.protocols import Json, Request
from reconciler.model.resource import NOT_HERE, Holder, Item, LiveRecord, Promoted, recognized
from reconciler.model.targets import Level


class Milestone(Item):
    """A milestone of a project."""

    foreign_keys: ClassVar[ForeignKeys] = {
        **dict.fromkeys(("title", "name"), "the title of a milestone is its key"),
        "state_event": Alias("state", {"activate": "state: active", "close": "state: closed"}),
        **dict.fromkeys(("expired", "milestone_id"), "the service sets this: leave it out"),
    }

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


class GroupMilestone(Milestone, Promoted):
    """A milestone of a group."""


ADDRESSES = {
    "group_id": re.compile(r"/groups/([^?#]+)/-/milestones/"),
    "project_id": re.compile(r"//[^/]+/([^?#]+)/-/milestones/"),
}
"""By the field that says whose a milestone is, its address, which holds the path of the group or project."""

HOLDER = "holder"
"""The key of an entry, which no service sends, for the `Holder` of a milestone that is not the group's own."""

FIELDS = ("description", "start_date", "due_date")


def decode(entry: Json) -> LiveRecord:
    """Read one milestone: a description or date that is missing is null."""
    shown = {name: entry.get(name) for name in FIELDS}
    shown |= {"state": entry["state"]} if "state" in entry else {}
    milestone, unknown = recognized(Milestone, shown)
    return LiveRecord(milestone, read_only={} if "state" in entry else {"state": NOT_HERE}, unknown=unknown)


def losses(_old: Existing) -> Iterator[str]:
    """Yield the loss without numbers: the list does not show the issues and merge requests of a milestone."""
    yield "its issues and merge requests lose it; the service does not report how many these are"


class _Tree:
    """The groups and projects above and below a group, by the addresses of their milestones.

    An address that is missing, or does not begin as it should, is asked for: servers may be below a path of their own.
    """

    def __init__(self, reading: Reading) -> None:
        self._reading, self._target, self._asked = reading, reading.target, dict[str, str]()

    def is_own(self, entry: Json) -> bool:
        """Return whether a milestone is the group's own."""
        number = entry.get("group_id")
        if number is None or isinstance(self._target.ref, int):
            return bool(number == self._target.ref)
        return self._path(entry).casefold() == self._home

    def holder(self, entry: Json) -> Holder | None:
        """Return the owner of a milestone that the group does not own.

        None for a project that is only shared with the group.
        """
        if entry.get("group_id") is not None:
            path = self._path(entry)
            return Holder(f"group {path}", is_below=self._is_inside(path))
        path = shown_path(entry)
        if not self._is_inside(path):
            path = self._ask(f"projects/{entry['project_id']}", "path_with_namespace")
        if not self._is_inside(path):
            return None
        is_direct = "/" not in path[len(self._home) + 1 :]
        return Holder(f"project {path}", is_below=True, promotes=entry["project_id"] if is_direct else None)

    def _is_inside(self, path: str) -> bool:
        return path.casefold().startswith(f"{self._home}/")

    @property
    def _home(self) -> str:
        ref = self._target.ref
        return (ref if isinstance(ref, str) else self._ask(f"groups/{ref}", "full_path")).casefold()

    def _path(self, entry: Json) -> str:
        return shown_path(entry) or self._ask(f"groups/{entry['group_id']}", "full_path")

    def _ask(self, path: str, name: str) -> str:
        if path not in self._asked:
            self._asked[path] = self._reading.reader.get(path)[name]
        return self._asked[path]


def shown_path(entry: Json) -> str:
    """Return the path of the group or project that has a milestone, as its address shows it; empty if it has none."""
    whose = "project_id" if entry.get("group_id") is None else "group_id"
    address = ADDRESSES[whose].search(str(entry.get("web_url")))
    return address[1] if address else ""


def complete(reading: Reading) -> Json:
    """Mark the owners of milestones with a wanted title that the group does not own, and remove all others.

    The list has the milestones of the groups above, and of all groups and projects below; also of projects that are
    only shared with one of these, which may have any title (deployed behaviour, section 12 j).
    """
    if reading.target.level is not Level.GROUP:
        return reading.answer
    tree = _Tree(reading)
    own = [entry for entry in reading.answer if tree.is_own(entry)]
    wanted = {stripped(str(name)) for name, fields in reading.wanted.items() if fields is not None}
    wanted.difference_update(entry["title"] for entry in own)
    others = [entry for entry in reading.answer if entry["title"] in wanted and not tree.is_own(entry)]
    holders = ((entry, tree.holder(entry)) for entry in others)
    return [{**entry, HOLDER: None} for entry in own] + [
        {**entry, HOLDER: holder} for entry, holder in holders if holder
    ]


def holder(entry: Json) -> Holder | None:
    """Return the group or project that owns a listed milestone; None for the target's own."""
    number = entry.get("group_id")
    if HOLDER in entry:
        holder: Holder | None = entry[HOLDER]
        return holder
    return None if number is None else Holder(f"group {shown_path(entry) or number}")


def update(old: Existing) -> Requests:
    """Return the requests of an update or a promotion; a promoted milestone is active, and has a new ID."""
    record = old.found
    if not record.below:
        return (old.send(old.fields | old.new_name),)
    promotion = Request("POST", old.part.writes.promotion.format(project=record.owner_id, id=record.id))
    fields = as_json(old.wanted)
    state = fields.pop("state", getattr(record.resource, "state", "active"))
    fields |= old.part.writes.event(state) if state != "active" else {}
    return (promotion, Request("PUT", f"{old.path}/{{id}}", fields)) if fields else (promotion,)


MILESTONES = Collection(
    "milestones",
    Milestone,
    title="milestone",
    decode=decode,
    page="-/milestones/{iid}",
    listing=Listing(
        query={
            # A title that a group above or a target below has is refused: the same request shows who has it.
            Level.GROUP: "include_ancestors=true&include_descendants=true",
            Level.PROJECT: "include_ancestors=true",
        },
        complete=complete,
        holder=holder,
        unique_below=True,
    ),
    # GitLab checks titles without a unique index: of 8 POSTs at once, 3 to 7 succeeded (18.9).
    names=Names(canonical=stripped, exchangeable=True),
    writes=Writes(
        update=update,
        # A POST takes no state: a milestone that is created closed takes a second request.
        events={"active": "activate", "closed": "close"},
        promotion="projects/{project}/milestones/{id}/promote",
    ),
    deletion=Deletion(lost="its issues and merge requests"),
    losses=losses,
)

KIND = Kind(
    name="milestones",
    foreign_names=("project_milestone", "project_milestones", "group_milestones"),
    summary="Milestones of a project or a group, by title.",
    spec="4.11",
    models={Level.GROUP: dict[str, GroupMilestone | None], Level.PROJECT: dict[str, Milestone | None]},
    parts=(MILESTONES,),
    order=5,
    needs=Needs(
        roles={Level.GROUP: Role.PLANNER, Level.PROJECT: Role.PLANNER},
        readers={Level.GROUP: Role.GUEST, Level.PROJECT: Role.GUEST},
        archived=Archived.READ_ONLY,
        switches={"issues_enabled": "issues", "merge_requests_enabled": "merge requests"},
    ),
    pages={Level.GROUP: "{target}/-/milestones", Level.PROJECT: "{target}/-/milestones"},
    arrives_in="milestones?include_descendants=true",
)
