"""Protected tags of a project.

The spec does not define these endpoints; they follow production servers. A rule cannot be changed, an index keeps names
unique, and users who have left stay in it.
"""

from typing import Any

from pydantic import Field

from ..call import Call
from ..collection import RouteCollection
from ..parameters import integer, read, text
from ..records import DatedItem, each_once
from ..ref_access import (
    LEVELS,
    Entry,
    changed_entry,
    entry_faults,
    exists,
    invites,
    number_entries,
    read_entries,
    show_entry,
    unprocessable,
)
from ..state import Project

_LIST = "allowed_to_create"
_KEYS = ("access_level", "user_id", "group_id", "deploy_key_id")


class CreateEntry(Entry):
    """A user, group, role or key that may create tags."""


class ProtectedTagRecord(DatedItem):
    """A rule."""

    name: str
    create_access_levels: list[CreateEntry] = Field(default_factory=lambda: [CreateEntry()])


class _ProtectedTags(RouteCollection[ProtectedTagRecord]):
    """The rules of a project; an archived project has rules too."""

    def items(self, call: Call, owner: Project) -> list[ProtectedTagRecord]:
        """Return the rules, without entries of groups and keys that are gone, and of deleted users."""
        for rule in self.section.of(owner):
            kept = rule.create_access_levels
            kept[:] = [
                entry for entry in kept if exists(call.state, owner, entry) and invites(call.state, owner, entry)
            ]
        return self.section.of(owner)

    def read_new(self, call: Call) -> dict[str, Any]:
        """Return the attributes and the entries sent for a new rule."""
        sent = read(call, text("name", required=True), integer("create_access_level", values=LEVELS))
        return sent | {_LIST: read_entries(call, _LIST, LEVELS, _KEYS)}

    def make(self, call: Call, owner: Project, sent: dict[str, Any]) -> ProtectedTagRecord:
        """Return a new rule: without entries it gets an entry for Maintainers."""
        role = sent.get("create_access_level")
        given = [] if role is None else [{"access_level": role}]
        given += sent[_LIST] or []
        entries = [changed_entry(call.state, CreateEntry(), sent) for sent in given or [{}]]
        return ProtectedTagRecord.model_construct(name=sent["name"] or "", create_access_levels=entries)

    def check(self, call: Call, owner: Project, wanted: ProtectedTagRecord, before: ProtectedTagRecord | None) -> None:
        """Refuse a name that is blank or taken, and invalid entries."""
        blank = "" if wanted.name.strip() else "Name can't be blank"
        faults = entry_faults(call.state, owner, wanted.create_access_levels, "Create access levels")
        unprocessable([blank, self._taken(call, owner, wanted), *faults])

    def check_again(self, call: Call, owner: Project, wanted: ProtectedTagRecord) -> None:
        """Refuse the second of two rules with one name."""
        unprocessable([self._taken(call, owner, wanted)])

    def show(self, call: Call, owner: Project, item: ProtectedTagRecord) -> dict[str, Any]:
        """Return the record of a rule, which has no ID."""
        entries = [show_entry(call.state, owner, entry, with_key=True) for entry in item.create_access_levels]
        return {"name": item.name, "create_access_levels": entries}

    def add(self, call: Call, owner: Project, item: ProtectedTagRecord) -> None:
        """Keep a new rule, and number its entries."""
        number_entries(call.state, item)
        super().add(call, owner, item)

    def _taken(self, call: Call, owner: Project, wanted: ProtectedTagRecord) -> str:
        same = any(tag.name == wanted.name for tag in self.items(call, owner))
        return "Name has already been taken" if same else ""


TAGS = _ProtectedTags(
    "protected_tags",
    ProtectedTagRecord,
    "/projects/:id/protected_tags",
    part="name",
    key="name",
    validator=each_once("name"),
)
SECTIONS = (TAGS.section,)
ROUTES = TAGS.routes("list", "get", "create", "delete", anonymous=True)
