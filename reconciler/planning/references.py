"""What the names stand for that objects hold: targets, members, other objects, words of a list. Pure.

A name without an answer is a problem, or a lookup to make before its object can be planned.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from reconciler.model.diff import fields_of, quoted
from reconciler.model.endpoints import CREATED, OWNER, SECTION, Collection, FieldIds, Named, Siblings
from reconciler.model.item import Change, Delete, Update, makes, makes_anew
from reconciler.model.obstacle import Obstacle
from reconciler.model.plan import Problem
from reconciler.model.protocols import Json
from reconciler.model.resource import LiveRecord, Objects, Resource
from reconciler.model.state import Known, Lookup, Reference, Vocabulary
from reconciler.model.targets import Key, Level, Target
from reconciler.planning.creation import archive_around
from reconciler.planning.matching import Matches, crowd
from reconciler.planning.part import DeclaredPart

NO_OBJECT = 0
"""The ID of no object."""

Unanswered = tuple[str, Problem | Lookup]
"""A field with a name that is not known, and why, or the lookup to make."""


def resolve(
    at: DeclaredPart[Collection], declared: Mapping[Key, Resource | None], live: Iterable[LiveRecord]
) -> tuple[dict[Key, int], dict[Key, Problem | Reference]]:
    """Return the numeric IDs of the targets that names refer to; for names without one, the problem or the lookup.

    Both are empty where names are just names. A name that must not exist is looked up only where the service shows some
    objects by their IDs alone.
    """
    ids: dict[Key, int] = {}
    unresolved: dict[Key, Problem | Reference] = {}
    level = at.part.names.level
    if level is None:
        return ids, unresolved
    shown = {at.part.identity(name): record.id for record in live for name in record.names}
    hidden = any(not isinstance(record.names[0], str) for record in live)
    for name, resource in declared.items():
        key = at.part.identity(name)
        key = shown.get(key) or key
        reference = Reference(level, str(key))
        number = key if isinstance(key, int) else at.live.ids.get(reference, reference)
        if isinstance(number, int):
            ids[name] = number
        elif isinstance(number, Obstacle) and resource is not None:
            unresolved[name] = at.problem(name, number.reason, number.remedy)
        elif isinstance(number, Reference) and not at.live.created(level, number.path):
            created = resource is not None and not at.exceptions.whole((name,))
            if created or hidden:
                unresolved[name] = number
    return ids, unresolved


def with_siblings(
    at: DeclaredPart[Collection], matches: Matches, live: Sequence[LiveRecord]
) -> tuple[Siblings, Matches]:
    """Return the objects of a collection, and the matches, all under their future names."""
    part = at.part
    renames = [pair for pair in matches.pairs if pair.former is not None]
    renamed = {pair.record.id: pair.name for pair in renames}
    former = {pair.record.names[0]: pair.name for pair in renames}
    names = part.unique_name_of(live) | {number: name for number, name in renamed.items() if number is not None}

    def called_now(record: LiveRecord) -> LiveRecord:
        resource = part.referring(record.resource, former)
        unchanged = resource is record.resource
        return record if unchanged else replace(record, resource=resource, shown=fields_of(record.resource))

    matches = matches.mapped(lambda wanted: part.referring(wanted, names), called_now)
    as_they_are = [(renamed.get(record.id, record.names[0]), called_now(record).resource) for record in live]
    above: dict[tuple[str, Key], Key] = {}
    for name, resource in (*as_they_are, *matches.wanted):
        refers = part.references(resource)
        for field in resource.model_fields_set.intersection(part.relations.refers):
            above[field, part.identity(name)] = refers.get(field, NO_OBJECT)
    below = Counter((field, other) for (field, _), other in above.items())
    siblings = replace(Siblings.of(part, live, renamed), above=above, below=below, circular=_circular(above))
    return siblings, matches


def _circular(above: Mapping[tuple[str, Key], Key]) -> frozenset[tuple[str, Key]]:
    """Return the fields and identities that refer to themselves, through others or not; see `Siblings.above`."""
    circular: set[tuple[str, Key]] = set()
    passed: set[tuple[str, Key]] = set()
    for start in above:
        way: dict[tuple[str, Key], int] = {}
        place = start
        while place in above and place not in passed:
            passed.add(place)
            way[place] = len(way)
            place = place[0], above[place]
        if place in way:
            circular.update([*way][way[place] :])
    return frozenset(circular)


def unrelated_fields(at: DeclaredPart[Collection], name: Key, wanted: Resource) -> Iterator[Unanswered]:
    """Yield each field with the name of an object of the collection, or a word of a list, that is not there."""
    yield from _unlisted(at, name, wanted)
    part = at.part
    for field, key in part.references(wanted).items():
        namesakes = at.siblings.named(key)
        circle = _circle(at.siblings, field, part.identity(name))
        if circle:
            yield field, at.problem(name, f"would refer to itself: {circle}", "break the circle", field=field)
        elif len(namesakes) > 1:
            yield field, at.problem(name, crowd(namesakes, f'the name "{key}"'), "write its ID instead", field=field)
        elif any(id(record) in at.siblings.deleted for record in namesakes):
            yield field, at.problem(name, f'this plan deletes the {part.title} "{key}"', "declare it", field=field)
        elif not namesakes and key not in at.siblings.created:
            reason = f'no {part.title} "{key}" is there, and this plan creates none before this one'
            yield field, at.problem(name, reason, "correct the name, or declare it", field=field)


def _circle(siblings: Siblings, field: str, start: Key) -> str:
    """Return the names through which an object would refer to itself; empty if it would not."""
    if (field, start) not in siblings.circular:
        return ""
    passed = [start]
    while (above := siblings.above[field, passed[-1]]) != start:
        passed.append(above)
    return " > ".join(map(str, (*passed, start)))


def _unlisted(at: DeclaredPart[Collection], name: Key, wanted: Resource) -> Iterator[Unanswered]:
    """Yield each field with a name that its vocabulary lacks."""
    for field, path in at.part.relations.vocabularies.items():
        words = {*getattr(wanted, field)} if field in wanted.model_fields_set else set()
        strange = words - at.siblings.words.get(field, frozenset())
        if not strange:
            continue
        names = _names_in(at, path)
        if names is None:
            continue
        if isinstance(names, Vocabulary):
            yield field, names
        elif isinstance(names, Obstacle):
            yield field, at.problem(name, f"cannot be checked: {names.reason}", names.remedy, field=field)
        elif not strange <= names.keys():
            unknown = sorted(strange - names.keys())
            reason = f"unknown name{'s' * (len(unknown) > 1)} {', '.join(map(quoted, unknown))}"
            group = archive_around(at.section.target, at.live.archives)
            remedy = f"or plan again once the archive of group {group} has arrived" if group else "or create it first"
            yield field, at.problem(name, reason, f"correct it, {remedy}", field=field)


def ids_in(
    at: DeclaredPart[Collection], name: Key, wanted: Resource, record: LiveRecord | None = None
) -> tuple[FieldIds, list[Unanswered]]:
    """Return the IDs of those whom the fields of an object name, and the fields with a name that has none.

    A field with such a name is not sent at all: with a part of its list, the object would be another one.

    Args:
        at: the collection.
        name: the object's name.
        wanted: the fields that are sent.
        record: the object as it was read, whose entries show their IDs; None if it is to be created.
    """
    shown = record.entries if record else {}
    rows = [row for listed in shown.values() for row in listed]
    numbers: dict[tuple[str, str | int], int] = {row.identity: row.number for row in rows if row.number is not None}
    named_ids: dict[tuple[str, str], Sequence[Json]] = {}
    unanswered: list[Unanswered] = []
    for field, listed in at.part.entries_of(wanted):
        for subject in listed:
            who, called = ("role", subject) if isinstance(subject, str) else subject.identity
            if who == "role" or (who, called) in numbers or isinstance(called, int):
                continue
            number = _number(at, who, called)
            if isinstance(number, int):
                numbers[who, called] = number
            else:
                unanswered.append((field, _step(at, name, field, number)))
    for field, named, names in at.part.named_in(wanted):
        for called in names:
            left = _ids_for(at, named, called, [row.id for row in shown.get(field, ()) if row.shown == called])
            if isinstance(left, Obstacle | Reference | Vocabulary):
                unanswered.append((field, _step(at, name, field, left)))
            else:
                named_ids[field, called] = left
    return FieldIds(numbers, named_ids), unanswered


def _step(at: DeclaredPart[Collection], name: Key, field: str, answer: Obstacle | Lookup) -> Problem | Lookup:
    if isinstance(answer, Obstacle):
        return at.problem(name, answer.reason, answer.remedy, field=field)
    return answer


def _number(at: DeclaredPart[Collection], who: str, name: str) -> int | Obstacle | Lookup:
    """Return the ID of a user, a group or a deploy key; or why there is none; or the lookup to make."""
    if who != "deploy_key":
        reference = Reference(Level(who), name)
        return at.live.ids.get(reference, reference)
    keys = _names_in(at, "deploy_keys", "title", is_inherited=False)
    if isinstance(keys, Obstacle | Vocabulary):
        return keys
    numbers = keys.get(name, ()) if keys else ()
    if len(numbers) == 1:
        return numbers[0]
    reason = f"{len(numbers)} deploy keys have this title" if numbers else "no such deploy key is enabled"
    return Obstacle(
        at.address(), f'{reason}: "{name}"', "rename one of them" if numbers else "enable it, or correct the title"
    )


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
    changes = at.earlier.here.get(named.section, ()) if named.section else ()
    if any(change.address.name == name for change in changes if makes(change)):
        return ({CREATED: name, SECTION: named.section},)
    above = at.earlier.at_the_top.get(named.section, ())
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
        names = _names_in(at, named.within, named.key)
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


def _names_in(
    at: DeclaredPart[Collection], path: str, key: str = "name", *, is_inherited: bool = True
) -> Known | Obstacle | Vocabulary | None:
    """Return the names in a list, or the lookup to make; None if an archive is yet to bring some of them.

    A target that does not exist yet has the names of the groups above it, where these are inherited.
    """
    target = at.section.target
    while isinstance(target.ref, str) and (new := at.live.created(target.level, target.ref)):
        if new.creation.archive is not None:
            return None
        if not (new.namespace.path and is_inherited):
            return {}
        target = Target(Level.GROUP, new.namespace.path)
    vocabulary = Vocabulary(target, path, key)
    return at.live.names.get(vocabulary, vocabulary)
