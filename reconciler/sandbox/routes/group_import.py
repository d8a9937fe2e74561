"""The import of a group from an archive (spec section 4.14) that the sandbox itself has made.

The answer comes before the import: the group exists at once, and is empty. The content of the archive arrives in
pieces, without a clock: whenever a client asks again for something that it has asked for already. Nothing shows that
all has arrived, or that the import has failed.

Differences: in production the group takes on the visibility that it had, if that is not above its parent's.
"""

import zlib
from collections.abc import Sequence
from contextlib import suppress
from gzip import GzipFile
from io import BytesIO
from itertools import pairwise
from typing import Annotated, Any

from pydantic import Field

from ..answers import Answer, Refusal, refused
from ..call import Call, Insertion, Route
from ..multipart import Upload
from ..parameters import Attribute, integer, read, text
from ..records import Record
from ..state import Group, MemberRole, SandboxState, StateSection, User, Visibility
from .epics import EPICS, LABELS, EpicRecord, Label
from .milestones import MILESTONES, MilestoneRecord, title_faults
from .places import add_group, find_parent, lowered

MEGABYTE = 1_048_576
LARGEST = 64 * MEGABYTE
"""Bytes of an archive's content that the sandbox reads."""


class _Archived(Record):
    """A group in an archive; see `group_export.ARCHIVED`."""

    path: str
    name: str
    description: str | None = None
    visibility: Visibility
    members: list[MemberRole]
    labels: list[Label]
    milestones: list[MilestoneRecord]
    epics: list[EpicRecord]

    def things(self, whole: "_Archived") -> "list[tuple[str, _Thing]]":
        """Return the group, then what is in it, each with the path of its group, relative to the top of the archive."""
        path = self.path[len(whole.path) + 1 :]
        things: list[_Thing] = [self, *self.labels, *self.milestones, *self.epics]
        return [(path, thing) for thing in things]


_Thing = _Archived | Label | MilestoneRecord | EpicRecord


class _Archive(Record):
    groups: list[_Archived]


class GroupImports(Record):
    """How the instance imports groups.

    Attributes:
        looks: how many looks there are before all of an archive has arrived; each look brings a part.
        fails: whether nothing ever arrives.
    """

    looks: Annotated[int, Field(ge=0)] = 0
    fails: bool = False


IMPORTS = StateSection("group_imports", ("instance",), GroupImports, GroupImports())
LIMIT = StateSection("max_import_size", ("instance",), Annotated[int, Field(ge=0)], 0)


def _upload(value: Any) -> Upload:
    if not isinstance(value, Upload):
        raise ValueError  # noqa: TRY004 - the one error by which a coercion refuses
    return value


def import_group(call: Call) -> Insertion:
    """`POST /groups/import`, with a file whose name ends in `.gz`; the answer has no ID."""
    names = (text(name, required=True) for name in ("name", "path"))
    sent = read(call, *names, Attribute(_upload, "file", required=True), integer("parent_id"))
    state, limit, file = call.state, LIMIT.of(call.state.instance), sent["file"]
    parent = find_parent(call, sent.get("parent_id"))
    if limit and file.size > limit * MEGABYTE:
        raise Refusal(413, b"Request Entity Too Large\n", content_type="text/plain")
    if not file.name.endswith(".gz"):
        raise refused(422, {"error": "You need to upload a GitLab project export archive (ending in .gz)."})

    def insert() -> Answer:
        visibility = parent.visibility if parent else "private"
        group = add_group(state, call.caller(), parent, {**sent, "visibility": visibility})
        call.changed = True
        settings = IMPORTS.of(state.instance)
        arrival = _Arrival(group, call.caller(), [] if settings.fails else _read(file), settings.looks)
        state.arrivals[group.id] = arrival.look
        arrival.bring(call)
        return Answer(202, {"message": "202 Accepted"})

    return insert


def _read(file: Upload) -> list[_Archived]:
    """Return the groups in an archive, the top group first; no groups if the file is no archive, or is large."""
    with suppress(OSError, EOFError, ValueError, zlib.error):
        return _Archive.model_validate_json(GzipFile(fileobj=BytesIO(file.content)).read(LARGEST)).groups
    return []


class _Arrival:
    """The rest of an archive, which still has to arrive in a group."""

    def __init__(self, group: Group, owner: User, archived: Sequence[_Archived], looks: int) -> None:
        """Divide the content of an archive by the number of looks; without looks, all arrives at once."""
        things = [thing for group in archived for thing in group.things(archived[0])]
        bounds = [0, *(len(things) * look // looks if looks else len(things) for look in range(looks + 1))]
        self._shares = [things[start:end] for start, end in pairwise(bounds)]
        self._groups: dict[str, Group] = {"": group}
        self._owner = owner
        self._epics: dict[int, int] = {}
        self._asked: set[str] = set()

    def look(self, call: Call) -> None:
        """Bring the next share, if the same was requested since the last share."""
        asked = call.target.partition("?")[0]
        if asked in self._asked:
            self._asked.clear()
            self.bring(call)
            call.changed = False  # by the import, not by this request
        self._asked.add(asked)

    def bring(self, call: Call) -> None:
        """Bring the next share, if any is missing."""
        for path, thing in self._shares.pop(0) if self._shares else ():
            if isinstance(thing, _Archived):
                self._bring_group(call.state, path, thing)
            else:
                self._bring_item(call, path, thing)
        call.state.forget_access()

    def _bring_group(self, state: SandboxState, path: str, archived: _Archived) -> None:
        """Complete the top group, or make a group below it, unless its name is taken or its parent was not made."""
        above, _, slug = path.rpartition("/")
        parent = self._groups.get(above)
        if path and parent:
            values = {"path": slug, "name": archived.name, "visibility": lowered(archived.visibility, parent)}
            with suppress(Refusal):
                self._groups[path] = add_group(state, self._owner, parent, values)
        group = self._groups.get(path)
        if group is None:
            return
        group.description = archived.description
        if state.deployed and not path:
            group.visibility = lowered(archived.visibility, state.groups_by_path.get(group.parent_path.lower()))
        known = {member.user for member in group.members}
        group.members += [
            member
            for member in archived.members
            if member.user not in known and member.user.lower() in state.users_by_name
        ]

    def _bring_item(self, call: Call, path: str, item: Label | MilestoneRecord | EpicRecord) -> None:
        """Add an item, but no milestone of a title that is taken in the group, above it or below it."""
        group = self._groups.get(path)
        if group is None:
            return
        if isinstance(item, Label):
            LABELS.add(call, group, item)
        elif isinstance(item, MilestoneRecord):
            if not title_faults(call.state, item.title, group):
                MILESTONES.add(call, group, item)
        else:
            before = item.id
            item.parent_id = self._epics.get(item.parent_id or 0)
            EPICS.add(call, group, item)
            self._epics[before] = item.id


SECTIONS = (IMPORTS, LIMIT)
ROUTES = (Route("POST", "/groups/import", import_group),)
