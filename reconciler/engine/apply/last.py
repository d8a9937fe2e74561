"""What is deleted last: objects that others refer to, after all that refers to them was carried out.

A branch rule that goes while an approval rule still names it leaves that for all branches.
"""

from collections.abc import Iterable, Iterator

from reconciler.model.endpoints import Collection
from reconciler.model.item import Change, Delete, Outcome, Update, makes_anew
from reconciler.model.kind import Kinds
from reconciler.model.plan import SectionPlan, TargetPlan
from reconciler.model.targets import Level


class Referring:
    """The sections whose objects are named by changes of a plan.

    Args:
        targets: of the plan.
        kinds: all kinds.
    """

    def __init__(self, targets: Iterable[TargetPlan], kinds: Kinds) -> None:
        self._kinds = kinds
        self._below: dict[str, set[str]] = {}
        for target in targets:
            if target.target.level is Level.PROJECT:
                self._below.setdefault(_top(target), set()).update(self._named_by(target))

    def here(self, target: TargetPlan) -> set[str]:
        """Return the sections of a target that its own changes name."""
        return {*self._named_by(target)}

    def below(self, target: TargetPlan) -> set[str]:
        """Return the sections of a group that changes of projects below it name, or may name."""
        if target.target.level is not Level.GROUP:
            return set()
        top = _top(target)
        known = [self._below.get(top, set()), self._below.get("", set())] if top else self._below.values()
        return set[str]().union(*known)

    def _named_by(self, target: TargetPlan) -> Iterator[str]:
        changed = [section for section in target.sections if section.section and section.changes]
        return (named for section in changed for named in self._named_in(section))

    def _named_in(self, section: SectionPlan) -> Iterator[str]:
        for part in self._kinds[section.section].parts:
            if isinstance(part, Collection):
                yield from (named.section for named in part.relations.named.values() if named.section)


def naming(section: str, level: Level, kinds: Kinds) -> Iterator[tuple[Collection, str]]:
    """Yield the collections of targets of a level, and their fields, that name objects of a section."""
    for kind in kinds.values():
        for part in kind.parts if level in kind.models else ():
            if isinstance(part, Collection):
                named = part.relations.named.items()
                yield from ((part, field) for field, reference in named if reference.section == section)


def _top(target: TargetPlan) -> str:
    """Return the top-level group of a target; empty where its path is unknown."""
    path = target.path or (target.target.ref if isinstance(target.target.ref, str) else "")
    return path.partition("/")[0].casefold()


def late(change: Change) -> int:
    """Return how many requests of a change delete an object, all of them its last ones."""
    if isinstance(change, Delete):
        return len(change.requests)
    if not (isinstance(change, Update) and makes_anew(change)):
        return 0
    return next(place for place, request in enumerate(reversed(change.requests)) if request.method != "DELETE")


def still_naming(change: Change, undone: Iterable[Outcome], kinds: Kinds) -> str:
    """Return what still names the object that a change deletes, since it was not changed itself; empty if nothing.

    Args:
        change: the deletion, or the rename by a creation and a deletion.
        undone: the changes before that were not carried out.
        kinds: all kinds.
    """
    name = change.read.names[0] if isinstance(change, Update | Delete) else None
    for other in (outcome.change for outcome in undone if isinstance(outcome.change, Update | Delete)):
        part = kinds[other.address.section].part(other.address.part)
        relations = part.relations.named if isinstance(part, Collection) else {}
        for field, named in relations.items():
            listed = other.read.fields.get(field)
            if named.section == change.address.section and isinstance(listed, list) and name in listed:
                return f'the {part.title} "{other.address.name}" still names it, for it was not {other.action}d'
    return ""
