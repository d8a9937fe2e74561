"""Earlier changes of the same plan that decide what a section can have: `ChangesAbove` collects them. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TypeVar

from reconciler.model.diff import quoted
from reconciler.model.endpoints import Collection
from reconciler.model.item import Change, Create, Delete, Update
from reconciler.model.kind import Kinds
from reconciler.model.obstacle import Obstacle
from reconciler.model.plan import TargetPlan
from reconciler.model.protocols import Json
from reconciler.model.state import DesiredTarget, Section
from reconciler.model.targets import Key, Level, Target

TAKEN_ABOVE = "this plan uses the name in {}, and it must be unique in a group and everything below it"


ANOTHER_NAME = "leave it out here, or choose another name"


Above = TypeVar("Above")


Changes = Mapping[str, Sequence[Change]]
"""Changes by section."""


@dataclass(frozen=True, slots=True)
class Earlier:
    """The changes of a plan before a section.

    Attributes:
        locks: for each field that a group above locks, the locked value and the obstacle to any other value.
        taken: the obstacles to names that an object of a group above gets, by identity.
        freed: the identities of names that objects of groups above give up, so that they are free in the section.
        ended: the obstacles to naming subjects that are deleted or renamed, by subject, such as `("user", "bot")`.
        changes: those of earlier sections of the same target: see `Relations.named`.
        in_top_group: the changes of the top-level group, whose objects may be named too.
        broken: the objects of all these sections with a problem, by section and name.
    """

    locks: Mapping[str, tuple[Json, Obstacle]] = field(default_factory=dict)
    taken: Mapping[Key, Obstacle] = field(default_factory=dict)
    freed: frozenset[Key] = frozenset()
    ended: Mapping[tuple[str, Key], Obstacle] = field(default_factory=dict)
    changes: Changes = field(default_factory=dict)
    in_top_group: Changes = field(default_factory=dict)
    broken: frozenset[tuple[str, Key | None]] = frozenset()


NOTHING_EARLIER = Earlier()


def by_section(planned: TargetPlan) -> Changes:
    """Return the changes of a target by section, without its creation."""
    changes: dict[str, list[Change]] = {}
    for change in planned.changes:
        if change.address.section:
            changes.setdefault(change.address.section, []).append(change)
    return changes


class ChangesAbove:
    """The changes of a plan to groups that decide what their subgroups and projects can have."""

    def __init__(self, kinds: Kinds) -> None:
        self._kinds = kinds
        self._locks: dict[tuple[str, str], dict[str, tuple[Json, Obstacle]]] = {}
        self._changed: set[str] = set()
        self._anywhere: set[str] = set()
        self._taken: dict[tuple[str, str], dict[Key, Obstacle]] = {}
        self._freed: dict[tuple[str, str], set[Key]] = {}
        self._ended: dict[tuple[str, Key], Obstacle] = {}
        self._at_the_top: dict[str, Changes] = {}

    def add(self, planned: TargetPlan) -> None:
        """Add the changes of a target: all changes of a group, and changes to users of any target."""
        changes = by_section(planned)
        for change in chain.from_iterable(changes.values()):
            self._add_ended(change)
        if planned.target.level is not Level.GROUP:
            return
        group = planned.path or planned.target.ref
        if isinstance(group, str) and "/" not in group:
            self._at_the_top[group.casefold()] = changes
        for section, own in changes.items():
            if isinstance(group, str):
                self._add_names(group, section, own)
            inherits = self._kinds[section].inherits
            if inherits is None:
                continue
            self._changed.add(section)
            if isinstance(group, str):
                updates = (change.after.items() for change in own if isinstance(change, Update))
                # Only values that this plan sets lock: what a group locks already, the projects' own settings show.
                locks = inherits(dict(chain.from_iterable(updates)))
                self._locks[section, group.casefold()] = {
                    name: (value, _locked_by(planned.target, group, value)) for name, value in sorted(locks.items())
                }
            else:
                self._anywhere.add(section)

    def _add_ended(self, change: Change) -> None:
        """Add the obstacle to naming a subject that a change deletes or renames."""
        part = self._kinds[change.address.section].part(change.address.part)
        if not isinstance(part, Collection) or part.names.who is None or isinstance(change, Create):
            return
        old, new = change.read.names[0], change.address.name or ""
        if isinstance(change, Delete):
            obstacle = Obstacle(
                change.address, f'this plan deletes the {part.title} "{old}"', "leave it out, or keep it"
            )
            self._ended |= {(part.names.who, name): obstacle for name in (part.identity(old), change.read.id or 0)}
        elif change.renamed_from is not None:
            reason = f'this plan renames the {part.title} "{old}" to "{new}"'
            obstacle = Obstacle(change.address, reason, "apply that first, and name it by its new name then")
            self._ended |= {(part.names.who, part.identity(name)): obstacle for name in (old, new)}

    def _add_names(self, group: str, section: str, changes: Iterable[Change]) -> None:
        """Add the names that a section of a group takes or frees for the objects of its projects."""
        place = section, group.casefold()
        for change in changes:
            given, ended = self._unique_below(change)
            for name in given:
                obstacle = Obstacle(change.address, TAKEN_ABOVE.format(f"group {group}"), ANOTHER_NAME)
                self._taken.setdefault(place, {})[name] = obstacle
            self._freed.setdefault(place, set()).update(ended)

    def _unique_below(self, change: Change) -> tuple[set[Key], set[Key]]:
        """Return the identities that a change takes, and those that it frees; none where names need not be unique.

        A promotion gives its name to an object of the group.
        """
        part = self._kinds[change.address.section].part(change.address.part)
        if not (isinstance(part, Collection) and part.listing.unique_below and change.address.name is not None):
            return set(), set()
        name = part.identity(change.address.name)
        match change:
            case Create():
                return {name}, set()
            case Delete():
                return set(), {name}
            case Update() if change.renamed_from is not None:
                return {name}, {part.identity(change.renamed_from)}
        return {name} if change.read.below else set(), set()

    def groups_freeing_names(self, planned: TargetPlan) -> Iterator[str]:
        """Yield the groups above a project, such as `group acme`, that free names which its objects get."""
        for path in planned.target.groups_above if planned.target.level is Level.PROJECT else ():
            for section, changes in by_section(planned).items():
                freed = self._freed.get((section, path), set())
                if any(not freed.isdisjoint(self._unique_below(change)[0]) for change in changes if freed):
                    yield f"group {path}"

    def changes_before(self, section: Section, in_top_group: Changes, here: TargetPlan) -> Earlier:
        """Return the earlier changes for a section, given the earlier sections of its target."""
        locks = {name: lock for locks in self._of_groups_above(section, self._locks) for name, lock in locks.items()}
        taken = {
            name: reason for names in self._of_groups_above(section, self._taken) for name, reason in names.items()
        }
        # Groups are carried out side by side, and all of them before the projects.
        is_later = section.target.level is Level.PROJECT
        freed = frozenset(name for names in self._of_groups_above(section, self._freed) for name in names if is_later)
        broken = frozenset((problem.address.section, problem.address.name) for problem in here.problems)
        return Earlier(locks, taken, freed, self._ended, by_section(here), in_top_group, broken)

    @property
    def deletes_in_top_groups(self) -> bool:
        """Whether top-level groups delete or replace objects that objects of projects may name."""
        sections = chain.from_iterable(changes.values() for changes in self._at_the_top.values())
        return any(not isinstance(change, Create) for change in chain.from_iterable(sections))

    def in_top_group(self, target: DesiredTarget) -> Changes:
        """Return the changes of the top-level group of a target."""
        path = target.path if isinstance(target.target.ref, int) else target.target.ref
        top, _, below = (path or "").casefold().partition("/")
        return self._at_the_top.get(top, {}) if below else {}

    def may_affect(self, section: Section) -> bool:
        """Return whether a changed group may affect a section of a project; true if the path is unknown."""
        if section.target.level is not Level.PROJECT or section.kind not in self._changed:
            return False
        known = isinstance(section.target.ref, str) and section.kind not in self._anywhere
        return not known or any(True for _ in self._of_groups_above(section, self._locks))

    def _of_groups_above(self, section: Section, changes_by_group: Mapping[tuple[str, str], Above]) -> Iterator[Above]:
        """Yield the entries of all groups above a section, from the topmost group down."""
        if changes_by_group and isinstance(section.target.ref, str):
            names = section.target.ref.casefold().split("/")
            paths = ((section.kind, "/".join(names[:end])) for end in range(1, len(names)))
            yield from (changes_by_group[path] for path in paths if path in changes_by_group)


def _locked_by(target: Target, group: str, value: Json) -> Obstacle:
    reason = f"group {group} sets it to {quoted(value)} in this plan, which locks it here"
    return Obstacle(target.address, reason, "change it there or leave the field out")
