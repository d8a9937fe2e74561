"""Protected branches of projects and of top-level groups.

The spec does not define these endpoints; they follow production servers. A group's rule is found by a part of its name;
a project's list shows the rules of its group too, which belong to the group. No index keeps names unique. The service
itself makes the rule of a default branch.
"""

import json
import re
from collections.abc import Sequence
from typing import Any

from pydantic import Field

from ..answers import Answer, refused
from ..call import Call
from ..collection import PAGE, RouteCollection, page_of
from ..parameters import boolean, integer, read, text
from ..records import DatedItem, Record
from ..ref_access import (
    LEVELS,
    AccessLevel,
    Entry,
    belongs,
    changed_entry,
    entry_faults,
    exists,
    number_entries,
    read_entries,
    show_entry,
    taken,
    unprocessable,
)
from ..state import DEVELOPER, MAINTAINER, OWNER, PLANNER, Group, GroupOrProject, Project, SandboxState, StateSection
from .audit_events import note_event


class PushEntry(Entry):
    """A user, group, role or key that may push."""


class MergeEntry(Entry):
    """A user, group or role that may merge."""


class UnprotectEntry(Entry):
    """A user, group or role that may change and delete the rule."""


_SORTS: dict[str, type[Entry]] = {"push": PushEntry, "merge": MergeEntry, "unprotect": UnprotectEntry}
_LEVELS_OF = {"push": LEVELS, "merge": LEVELS, "unprotect": LEVELS[1:]}
_NEW = tuple(integer(f"{sort}_access_level", values=levels) for sort, levels in _LEVELS_OF.items())
_OWNERS_KEY = "code_owner_approval_required"


class ProtectedBranchRecord(DatedItem):
    """A rule; without entries to unprotect, every Maintainer may."""

    name: str
    push_access_levels: list[PushEntry] = Field(default_factory=lambda: [PushEntry()])
    merge_access_levels: list[MergeEntry] = Field(default_factory=lambda: [MergeEntry()])
    unprotect_access_levels: list[UnprotectEntry] = Field(default_factory=list)
    allow_force_push: bool = False
    code_owner_approval_required: bool = False

    def entries(self, sort: str) -> list[Any]:
        """Return the entries of one of the lists."""
        entries: list[Any] = getattr(self, f"{sort}_access_levels")
        return entries

    def matches(self, branch: str) -> bool:
        """Whether the name, in which `*` stands for any characters, is that of the branch."""
        return re.fullmatch(".*".join(map(re.escape, self.name.split("*"))), branch, re.DOTALL) is not None


class _Level(Record):
    access_level: AccessLevel


class BranchDefaults(Record):
    """The protection of the default branches of new projects in a group."""

    allowed_to_push: list[_Level] = Field(default_factory=lambda: [_Level(access_level=40)])
    allowed_to_merge: list[_Level] = Field(default_factory=lambda: [_Level(access_level=40)])
    allow_force_push: bool = False
    code_owner_approval_required: bool = False
    developer_can_initial_push: bool = False

    @property
    def protects(self) -> bool:
        """Whether they restrict anybody at all."""
        both = (*self.allowed_to_push, *self.allowed_to_merge)
        return not (self.allow_force_push and all(entry.access_level == DEVELOPER for entry in both))


DEFAULTS: StateSection[BranchDefaults] = StateSection(
    "default_branch_protection_defaults", ("group",), BranchDefaults, BranchDefaults()
)
LOOKS: StateSection[int] = StateSection("default_branch_protection_looks", ("instance",), int, 0)
"""How often one looks at the rules of a new project before that of its default branch is there."""


class _ProtectedBranches(RouteCollection[ProtectedBranchRecord]):
    """The rules of a project, with those of its top-level group, or of a group."""

    def list_items(self, call: Call) -> Answer:
        """Answer with rules by ID; `search` is a part of the name."""
        sent = read(call, text("search"), *PAGE)
        owner = self.owner(call)
        rules = [(owner, item) for item in self.items(call, owner)]
        root = root_of(call.state, owner) if isinstance(owner, Project) else None
        if root is not None:
            rules += [(root, item) for item in self.section.of(root)]
        wanted = sent.get("search")
        rules = [pair for pair in rules if not wanted or has_part(pair[1].name, wanted)]
        rules.sort(key=lambda pair: pair[1].id)
        return page_of(call, rules, lambda pair: self.show_in(call, owner, *pair))

    def owner(self, call: Call) -> GroupOrProject:
        """Return the group for its owners, or the project for whoever may read its code."""
        if call.level == "group":
            return call.group(OWNER)
        project = call.visible_project()
        if project.visibility == "private":
            call.require(project, PLANNER)
        if not project.repository_enabled:
            raise refused(403, "403 Forbidden")
        _look(call.state, project)
        return project

    def owner_to_write(self, call: Call) -> GroupOrProject:
        """Return the group for its owners, or the project for its maintainers."""
        return call.group(OWNER) if call.level == "group" else call.project(MAINTAINER)

    def items(self, call: Call, owner: GroupOrProject) -> Sequence[ProtectedBranchRecord]:
        """Return the rules, without entries of removed subjects; entries to unprotect keep users who left."""
        state = call.state
        for rule in self.section.of(owner):
            for sort in _SORTS:
                kept = rule.entries(sort)
                kept[:] = [
                    entry
                    for entry in kept
                    if exists(state, owner, entry) and (sort == "unprotect" or belongs(state, owner, entry))
                ]
        return sorted(self.section.of(owner), key=lambda rule: rule.id)

    def find(self, call: Call, owner: GroupOrProject, key: str) -> ProtectedBranchRecord:
        """Return the rule of that name with the lowest ID; in a group, the name may be a part of the rule's name."""
        rule = self._named(call, owner, key)
        if rule is None:
            raise refused(404, "404 ProtectedBranch Not Found" if call.level == "group" else "404 Not found")
        return rule

    def read_new(self, call: Call) -> dict[str, Any]:
        """Return the attributes and the entries sent for a new rule."""
        sent = read(call, text("name", required=True), *_NEW, boolean("allow_force_push"), boolean(_OWNERS_KEY))
        return sent | self._read_lists(call, ())

    def make(self, call: Call, owner: GroupOrProject, sent: dict[str, Any]) -> ProtectedBranchRecord:
        """Return a new rule: a list without entries gets an entry for Maintainers."""
        lists: dict[str, Any] = {}
        for sort, entry in _SORTS.items():
            role = sent.get(f"{sort}_access_level")
            given = [{"access_level": role}] if role is not None else []
            given += sent.get(f"allowed_to_{sort}") or []
            lists[f"{sort}_access_levels"] = [changed_entry(call.state, entry(), sent) for sent in given or [{}]]
        return ProtectedBranchRecord.model_construct(
            name=sent["name"] or "",
            allow_force_push=bool(sent.get("allow_force_push")),
            code_owner_approval_required=bool(sent.get(_OWNERS_KEY)) and call.state.instance.licensed,
            **lists,
        )

    def check(
        self, call: Call, owner: GroupOrProject, wanted: ProtectedBranchRecord, before: ProtectedBranchRecord | None
    ) -> None:
        """Refuse a name that is known, a rule that its creator may not change, and invalid entries."""
        if before is None:
            if wanted.name and self._named(call, owner, wanted.name) is not None:
                raise refused(409, f"Protected branch '{wanted.name}' already exists")
            self.require_right(call, owner, wanted)
        nested = "cannot be associated with a subgroup" if isinstance(owner, Group) and owner.parent_path else ""
        blank = "" if wanted.name.strip() else "Name can't be blank"
        faults: list[str] = []
        for sort in _SORTS:
            known = before.entries(sort) if before else []
            new = [new_entry for new_entry in wanted.entries(sort) if new_entry not in known]
            faults += entry_faults(call.state, owner, new, f"{sort.capitalize()} access levels")
        unprocessable([nested, blank, *faults])

    def require_right(self, call: Call, owner: GroupOrProject, item: ProtectedBranchRecord) -> None:
        """Refuse with 403 a user whom a project's rule does not let change it; the free edition does not check that."""
        entries = item.unprotect_access_levels
        if isinstance(owner, Project) and entries and call.state.instance.licensed:
            user = call.caller()
            if not any(new_entry.allows(call.state, user, owner) for new_entry in entries):
                raise refused(403, "403 Forbidden")

    def update(self, call: Call) -> Answer:
        """Change a rule; entries are added; an entry with an ID is changed or removed.

        A group's rule takes the name.
        """
        name = self.key(call)
        sent = self.read_changes(call)
        owner = self.owner_to_write(call)
        rule = self.find(call, owner, name)
        self.require_right(call, owner, rule)
        wanted = rule.model_copy(update={key: sent[key] for key in ("allow_force_push", _OWNERS_KEY) if key in sent})
        if not call.state.instance.licensed:
            wanted.code_owner_approval_required = rule.code_owner_approval_required
        if call.level == "group":
            wanted.name = name
        before = _audit_words(call.state, owner, rule)
        lists = {sort: _merged(call, rule, sort, sent.get(f"allowed_to_{sort}") or []) for sort in _SORTS}
        for sort, (entries, _) in lists.items():
            setattr(wanted, f"{sort}_access_levels", entries)
        unprocessable(fault for _, faults in lists.values() for fault in faults)
        self.check(call, owner, wanted, rule)
        if wanted != rule:
            number_entries(call.state, wanted)
            self.save(call, rule, wanted)
            for change, (event, value) in _audit_words(call.state, owner, rule).items():
                if value != before[change][1]:
                    both = {"from": _text(before[change][1]), "to": _text(value)}
                    message = f"Changed {change} from {both['from']} to {both['to']}"
                    note_event(call, owner, event, message, _about(rule), change=change, **both)
        return Answer(200, self.show(call, owner, rule))

    def read_changes(self, call: Call) -> dict[str, Any]:
        """Return the attributes and the entries sent for a change; a null that no column takes is an error."""
        whole = call.level == "group"
        force = boolean("allow_force_push", blank=whole)
        sent = read(call, force, boolean(_OWNERS_KEY), integer("unprotect_access_level", values=LEVELS[1:]))
        sent |= self._read_lists(call, ("id", "_destroy"))
        if any(name in sent and sent[name] is None for name in ("allow_force_push", _OWNERS_KEY)):
            raise refused(500, "500 Internal Server Error")
        role = sent.get("unprotect_access_level")
        if role is not None:
            sent["allowed_to_unprotect"] = [*(sent.get("allowed_to_unprotect") or []), {"access_level": role}]
        return sent

    def delete(self, call: Call) -> Answer:
        """Delete a rule; a group answers with the rule without its entries."""
        return super().delete(call) if call.level == "project" else self._delete(call)

    def show(self, call: Call, owner: GroupOrProject, item: ProtectedBranchRecord) -> dict[str, Any]:
        """Return the record of a rule for its own project or group."""
        return self.show_in(call, owner, owner, item)

    def show_in(
        self, call: Call, place: GroupOrProject, owner: GroupOrProject, item: ProtectedBranchRecord
    ) -> dict[str, Any]:
        """Return the record of a rule in the form of a project, or of the group."""
        return show_rule(call.state, place, owner, item)

    def add(self, call: Call, owner: GroupOrProject, item: ProtectedBranchRecord) -> None:
        """Keep a new rule, and number its entries."""
        number_entries(call.state, item)
        super().add(call, owner, item)
        words = _audit_words(call.state, owner, item)
        levels = {"push_access_levels": words[_PUSHERS][1], "merge_access_levels": words[_MERGERS][1]}
        flags = {"allow_force_push": item.allow_force_push, _OWNERS_KEY: item.code_owner_approval_required}
        shown = ", ".join(
            f"{name}: {_text(words[change][1])}"
            for name, change in (("allowed to push", _PUSHERS), (_MERGERS, _MERGERS), (_FORCE, _FORCE), (_CODE, _CODE))
        )
        message = f"Added protected branch with [{shown}]"
        note_event(call, owner, "protected_branch_created", message, _about(item), **levels, **flags)

    def remove(self, call: Call, owner: GroupOrProject, item: ProtectedBranchRecord) -> None:
        """Remove a rule."""
        super().remove(call, owner, item)
        empty: dict[str, Any] = {"push_access_levels": [], "merge_access_levels": []}
        flags = {"allow_force_push": item.allow_force_push, _OWNERS_KEY: item.code_owner_approval_required}
        note_event(call, owner, "protected_branch_removed", "Unprotected branch", _about(item), **empty, **flags)

    def _read_lists(self, call: Call, more: Sequence[str]) -> dict[str, Any]:
        """Return the lists of entries that were sent; only the list of pushers takes deploy keys."""
        keys = ("access_level", "user_id", "group_id", *more)
        return {
            name: entries
            for sort, levels in _LEVELS_OF.items()
            if (name := f"allowed_to_{sort}")
            and (entries := read_entries(call, name, levels, (*keys, *(["deploy_key_id"] if sort == "push" else ()))))
            is not None
        }

    def _named(self, call: Call, owner: GroupOrProject, name: str) -> ProtectedBranchRecord | None:
        def is_it(rule: ProtectedBranchRecord) -> bool:
            return has_part(rule.name, name) if call.level == "group" else rule.name == name

        return next(filter(is_it, self.items(call, owner)), None)

    def _delete(self, call: Call) -> Answer:
        owner = self.owner_to_write(call)
        rule = self.find(call, owner, self.key(call))
        self.remove(call, owner, rule)
        emptied: dict[str, Any] = {f"{sort}_access_levels": [] for sort in _SORTS}
        return Answer(200, self.show(call, owner, rule.model_copy(update=emptied)))


_PUSHERS, _MERGERS = "allowed to push and merge", "allowed to merge"
_FORCE, _CODE = "allow force push", "code owner approval required"


def _audit_words(state: SandboxState, owner: GroupOrProject, rule: ProtectedBranchRecord) -> dict[str, tuple[str, Any]]:
    """Return the audit's words about a rule, with the event of a change; the list to unprotect has no words."""
    pushers, mergers = (
        [show_entry(state, owner, shown, with_key=False)["access_level_description"] for shown in rule.entries(sort)]
        for sort in ("push", "merge")
    )
    return {
        _FORCE: ("protected_branch_allow_force_push_updated", rule.allow_force_push),
        _CODE: ("protected_branch_code_owner_approval_required_updated", rule.code_owner_approval_required),
        _PUSHERS: ("protected_branch_updated", pushers),
        _MERGERS: ("protected_branch_updated", mergers),
    }


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _about(rule: ProtectedBranchRecord) -> tuple[str, int, str]:
    return "ProtectedBranch", rule.id, rule.name


def show_rule(
    state: SandboxState, place: GroupOrProject, owner: GroupOrProject, rule: ProtectedBranchRecord
) -> dict[str, Any]:
    """Return the record of a rule of that owner in the form of that place."""
    record: dict[str, Any] = {"id": rule.id, "name": rule.name, "allow_force_push": rule.allow_force_push}
    for sort in _SORTS if state.instance.enterprise else ("push", "merge"):
        record[f"{sort}_access_levels"] = [
            show_entry(state, owner, shown, with_key=sort == "push") for shown in rule.entries(sort)
        ]
    if state.instance.enterprise:
        record[_OWNERS_KEY] = rule.code_owner_approval_required
        if isinstance(place, Project):
            record["inherited"] = isinstance(owner, Group)
    return record


def root_of(state: SandboxState, place: GroupOrProject) -> Group | None:
    """Return the top-level group of a place; None in a personal namespace."""
    return next(reversed([*state.groups_above(place)]), None)


def rules_for(state: SandboxState, project: Project, branch: str) -> list[ProtectedBranchRecord]:
    """Return the rules that protect a branch, including those of the top-level group."""
    return [rule for _, rule in all_rules(state, project) if rule.matches(branch)]


def all_rules(state: SandboxState, project: Project) -> list[tuple[GroupOrProject, ProtectedBranchRecord]]:
    """Return the rules of a project and of its top-level group, each with its owner."""
    owners = (project, root_of(state, project))
    return [(owner, rule) for owner in owners if owner for rule in BRANCHES.section.of(owner)]


def protect_default_branch(state: SandboxState, project: Project) -> None:
    """Begin the job that protects the default branch of a project, which has its first commit."""
    if LOOKS.of(state.instance):
        state.jobs["protection", 0, project.id] = LOOKS.of(state.instance)
    else:
        _protect(state, project)


def _look(state: SandboxState, project: Project) -> None:
    """Let the job go on that protects the default branch."""
    looks = state.jobs.pop(("protection", 0, project.id), None)
    if looks:
        state.jobs["protection", 0, project.id] = looks - 1
    elif looks == 0:
        _protect(state, project)


def _protect(state: SandboxState, project: Project) -> None:
    group = state.group_of(project)
    defaults = DEFAULTS.of(group) if group else BranchDefaults()
    if not defaults.protects or rules_for(state, project, project.default_branch):
        return
    rule = ProtectedBranchRecord(
        name=project.default_branch,
        push_access_levels=[PushEntry(access_level=role.access_level) for role in defaults.allowed_to_push],
        merge_access_levels=[MergeEntry(access_level=role.access_level) for role in defaults.allowed_to_merge],
        allow_force_push=defaults.allow_force_push,
        code_owner_approval_required=defaults.code_owner_approval_required,
    )
    rule.id = state.numbers(ProtectedBranchRecord).give()
    rule.created_at = rule.updated_at = state.tick()
    number_entries(state, rule)
    BRANCHES.section.of(project).append(rule)


def has_part(name: str, wanted: str) -> bool:
    """Whether a name has all words of three or more characters; without such words, whether it is the same text.

    A quoted phrase is one word. Case does not count.
    """
    name, wanted = name.lower(), wanted.lower()
    parts = wanted.split('"')
    words = [word for part in parts[::2] for word in part.split()] + parts[1::2]
    words = [word for word in words if len(word) >= 3]
    return all(word in name for word in words) if words else name == wanted


def _merged(
    call: Call, rule: ProtectedBranchRecord, sort: str, sent: Sequence[dict[str, Any]]
) -> tuple[list[Entry], list[str]]:
    """Return the entries of a list after a change, and why they are refused; 404 for an unknown ID."""
    before, faults = rule.entries(sort), []
    label, after = f"{sort.capitalize()} access levels", list(before)
    for change in sent:
        old = next((entry for entry in before if entry.id == change["id"]), None) if change.get("id") else None
        if change.get("id") and old is None:
            raise refused(404, "404 Not found")
        if change.get("_destroy"):
            after = [entry for entry in after if entry is not old]
            continue
        wanted = changed_entry(call.state, old or _SORTS[sort](), change)
        faults.append(taken(before, wanted, label))
        after = [wanted if entry is old else entry for entry in after] if old else [*after, wanted]
    return after, faults


BRANCHES = _ProtectedBranches(
    "protected_branches",
    ProtectedBranchRecord,
    "/projects/:id/protected_branches",
    "/groups/:id/protected_branches",
    part="name",
    key="name",
)
SECTIONS = (BRANCHES.section, DEFAULTS, LOOKS)
ROUTES = BRANCHES.routes(update="PATCH", anonymous=True)
