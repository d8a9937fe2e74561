"""The IDs of those whom fields name: members, groups, objects of other sections of the target. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from reconciler.model.endpoints import CREATED, OWNER, SECTION, Collection, Named, NamedIds
from reconciler.model.obstacle import Obstacle
from reconciler.model.plan import Change, Delete, Problem, Update, makes, makes_anew
from reconciler.model.protocols import Json
from reconciler.model.resource import LiveRecord, Objects, Resource
from reconciler.model.state import Known, Lookup, Reference, Vocabulary
from reconciler.model.targets import Key, Level, Target
from reconciler.planning.part import DeclaredPart
from reconciler.planning.relations import names_in


def named_ids(
    at: DeclaredPart[Collection], name: Key, wanted: Resource, record: LiveRecord | None = None
) -> tuple[NamedIds, list[tuple[str, Problem | Lookup]]]:
    """Return the IDs of those whom fields name, and for each that has none, the field, and why or what to look up.

    See `relations.numbers_of` for the arguments. A part of a list is never sent: the object would be another one.
    """
    shown = record.entries if record else {}
    ids: dict[tuple[str, str], Sequence[Json]] = {}
    unknown: list[tuple[str, Problem | Lookup]] = []
    for field, named, names in at.part.named_in(wanted):
        for called in names:
            answer = _ids_for(at, named, called, [row.id for row in shown.get(field, ()) if row.shown == called])
            if isinstance(answer, Obstacle):
                unknown.append((field, at.problem(name, answer.reason, answer.remedy, field=field)))
            elif isinstance(answer, Reference | Vocabulary):
                unknown.append((field, answer))
            else:
                ids[field, called] = answer
    return ids, unknown


def _ids_for(
    at: DeclaredPart[Collection], named: Named, name: str, shown: Sequence[int]
) -> Sequence[Json] | Obstacle | Lookup:
    """Return the IDs for a name, or what stands for them in a body, or why there is none, or what to look up.

    Args:
        at: the collection.
        named: what the field holds.
        name: in canonical form.
        shown: the IDs that the object itself shows.
    """
    changes = at.before.get(named.section, ()) if named.section else ()
    if any(change.address.name == name for change in changes if makes(change)):
        return ({CREATED: name, SECTION: named.section},)
    above = at.at_the_top.get(named.section, ())
    gone = gone_by(changes) | gone_by(above)
    left = [number for number in shown if number not in gone]
    if left:
        return left
    known = _known(at, named, name)
    if not isinstance(known, Mapping):
        return known
    numbers = known.get(name, ())
    left = [number for number in numbers if number not in gone]
    if numbers and not left:
        return Obstacle(at.address(), f'this plan deletes "{name}"', "declare another one, or leave that one")
    if not left and (new := next((change for change in above if change.address.name == name and makes(change)), None)):
        return ({CREATED: name, SECTION: named.section, OWNER: str(new.address.target).casefold()},)
    return left or Obstacle(at.address(), named.unknown.format(name=name), named.remedy)


def gone_by(changes: Iterable[Change]) -> set[int | None]:
    """Return the IDs of the objects that are deleted, also to come back under another name."""
    renamed = {change.read.id for change in changes if isinstance(change, Update) and makes_anew(change)}
    return renamed | {change.read.id for change in changes if isinstance(change, Delete)}


def _known(at: DeclaredPart[Collection], named: Named, name: str) -> Known | Obstacle | Lookup:
    """Return the IDs by name of all that a field may name; of groups, which are in no list, of that one."""
    target, section = at.section.target, named.section
    if not named.within:
        reference = Reference(Level.GROUP, name)
        answer = at.live.ids.get(reference, reference)
        return {name: (answer,)} if isinstance(answer, int) else answer
    live = at.live.parts.get((target, section, section)) if section else None
    if section and isinstance(target.ref, str) and at.live.created(target.level, target.ref):
        names: Known | Obstacle | Vocabulary | None = _in_top_group(at, named, target.ref.partition("/")[0])
    elif isinstance(live, Objects):
        objects = (*live.own, *(record for record, _ in live.inherited))
        return _by_name((str(record.names[0]), (record.id or 0,)) for record in objects)
    else:
        names = names_in(at, named.within, named.key)
    if isinstance(names, Obstacle):
        return Obstacle(names.where, f"cannot be checked: {names.reason}", names.remedy or named.unlisted)
    if isinstance(names, Vocabulary):
        return names
    return _by_name((named.canonical(called), numbers) for called, numbers in (names or {}).items())


def _by_name(named: Iterable[tuple[str, tuple[int, ...]]]) -> Known:
    known: dict[str, tuple[int, ...]] = {}
    for name, numbers in named:
        known[name] = (*known.get(name, ()), *numbers)
    return known


def _in_top_group(at: DeclaredPart[Collection], named: Named, path: str) -> Known | Obstacle | Vocabulary:
    """Return what a field of a project that does not exist yet may name: the objects of its top-level group."""
    vocabulary = Vocabulary(Target(Level.GROUP, path), named.within, named.key)
    return {} if at.live.created(Level.GROUP, path) else at.live.names.get(vocabulary, vocabulary)
