"""What the names stand for that objects hold: targets, members, other objects, words of a list. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from reconciler.model.diff import fields_of, quoted
from reconciler.model.endpoints import Collection, Siblings
from reconciler.model.entries import Numbers
from reconciler.model.obstacle import Obstacle
from reconciler.model.plan import Problem
from reconciler.model.resource import LiveRecord, Resource
from reconciler.model.state import Known, Lookup, Reference, Vocabulary
from reconciler.model.targets import Key, Level, Target
from reconciler.planning.creation import archive_around
from reconciler.planning.exceptions import is_held
from reconciler.planning.matching import Matches, crowd
from reconciler.planning.order import references
from reconciler.planning.part import DeclaredPart

MYSELF = Reference(Level.USER, "")
"""The user behind the token."""

NO_OBJECT = 0
"""The ID of no object."""


def resolve(
    at: DeclaredPart[Collection], declared: Mapping[Key, Resource | None], live: Iterable[LiveRecord]
) -> tuple[dict[Key, int], dict[Key, Problem | Reference]]:
    """Return the numeric IDs of the targets that names refer to; for names without one, the problem or the lookup.

    Both are empty where names are just names. A name that must not exist is looked up only where the service shows some
    objects by their IDs alone.
    """
    ids: dict[Key, int] = {}
    unresolved: dict[Key, Problem | Reference] = {}
    shown = {at.part.identity(name): record.id for record in live for name in record.names}
    hidden = any(not isinstance(record.names[0], str) for record in live)
    level = at.part.names.level
    if level is None:
        return ids, unresolved
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
            created = resource is not None and not is_held(at.exceptions, at.part, (name,))
            if created or hidden:
                unresolved[name] = number
    return ids, unresolved


def numbers_of(
    at: DeclaredPart[Collection], name: Key, wanted: Resource, record: LiveRecord | None = None
) -> tuple[Numbers, list[tuple[str, Problem | Lookup]]]:
    """Return the IDs of the users, groups and keys that entries name; and by field, why some have none, or lookups.

    Args:
        at: the collection.
        name: the object's name.
        wanted: the fields that are sent.
        record: the object as it was read; None if it is to be created.
    """
    rows = [row for listed in record.entries.values() for row in listed] if record else []
    numbers: dict[tuple[str, str | int], int] = {row.identity: row.number for row in rows if row.number is not None}
    unknown: list[tuple[str, Problem | Lookup]] = []
    for field, listed in at.part.entries_of(wanted):
        for subject in listed:
            who, called = ("role", subject) if isinstance(subject, str) else subject.identity
            if who == "role" or (who, called) in numbers or isinstance(called, int):
                continue
            answer = _number(at, who, called)
            if isinstance(answer, int):
                numbers[who, called] = answer
            elif isinstance(answer, Obstacle):
                unknown.append((field, at.problem(name, answer.reason, answer.remedy, field=field)))
            else:
                unknown.append((field, answer))
    return numbers, unknown


def _number(at: DeclaredPart[Collection], who: str, name: str) -> int | Obstacle | Lookup:
    """Return the ID of a user, a group or a deploy key; or why there is none; or the lookup to make."""
    if who != "deploy_key":
        reference = Reference(Level(who), name)
        return at.live.ids.get(reference, reference)
    keys = names_in(at, "deploy_keys", "title", is_inherited=False)
    if isinstance(keys, Obstacle | Vocabulary):
        return keys
    numbers = keys.get(name, ()) if keys else ()
    if len(numbers) == 1:
        return numbers[0]
    reason = f"{len(numbers)} deploy keys have this title" if numbers else "no such deploy key is enabled"
    return Obstacle(
        at.address(), f'{reason}: "{name}"', "rename one of them" if numbers else "enable it, or correct the title"
    )


def barred(
    at: DeclaredPart[Collection], name: Key, keepers: Mapping[str | int, int] | None
) -> Problem | Reference | None:
    """Return why the user behind the token may not write an object, or the lookup that tells; None if nothing is known.

    Args:
        at: the collection.
        name: the object's name.
        keepers: the users who alone may write it, with their IDs; None where roles and groups may too.
    """
    if not keepers:
        return None
    me = at.live.ids.get(MYSELF, MYSELF)
    if isinstance(me, Reference):
        return me
    if isinstance(me, Obstacle) or me in keepers.values():
        return None
    those = ", ".join(sorted(map(str, keepers)))
    reason = f"only {those} may change this rule, by {at.part.writes.keepers}: not even an owner or an administrator"
    remedy = "use their token, or let them add you; make those who have left Maintainer again, or nobody can"
    return at.problem(name, reason, remedy)


def keepers_of(
    at: DeclaredPart[Collection], record: LiveRecord | None, wanted: Resource, numbers: Numbers
) -> Mapping[str | int, int] | None:
    """Return the users who alone may write an object: as it is, or as it is to be created; None if others may too."""
    field = at.part.writes.keepers
    if not field:
        return None
    if record is not None:
        rows = [row for row in record.entries.get(field, ()) if row.shown is not None]
        users = {row.identity[1]: row.number for row in rows if row.identity[0] == "user" and row.number is not None}
        return users if len(users) == len(rows) else None
    listed = getattr(wanted, field) if field in wanted.model_fields_set else ()
    users = {}
    for entry in listed:
        who, called = ("role", entry) if isinstance(entry, str) else entry.identity
        if who != "user":
            return None
        users[called] = called if isinstance(called, int) else numbers[who, called]
    return users


def with_siblings(
    at: DeclaredPart[Collection],
    present: Mapping[Key, Resource],
    matches: Matches,
    live: Sequence[LiveRecord],
) -> tuple[DeclaredPart[Collection], Mapping[Key, Resource], Matches]:
    """Return the collection with its siblings, the wanted objects and the matches, all under their future names."""
    part = at.part
    renamed = {pair.record.id: pair.name for pair in matches.pairs if pair.former is not None}
    names = part.unique_name_of(live) | {number: name for number, name in renamed.items() if number is not None}
    former = {pair.record.names[0]: pair.name for pair in matches.pairs if pair.former is not None}

    def called_now(record: LiveRecord) -> LiveRecord:
        resource = part.referring(record.resource, former)
        unchanged = resource is record.resource
        return record if unchanged else replace(record, resource=resource, shown=fields_of(record.resource))

    wanted = {name: part.referring(resource, names) for name, resource in present.items()}
    pairs = (replace(pair, wanted=wanted[pair.name], record=called_now(pair.record)) for pair in matches.pairs)
    as_they_are = [(renamed.get(record.id, record.names[0]), called_now(record).resource) for record in live]
    above: dict[tuple[str, Key], Key] = {}
    for name, resource in (*as_they_are, *wanted.items()):
        refers = references(part, resource)
        for field in resource.model_fields_set.intersection(part.relations.refers):
            above[field, part.identity(name)] = refers.get(field, NO_OBJECT)
    below = Counter((field, other) for (field, _), other in above.items())
    siblings = replace(Siblings.of(part, live, renamed), above=above, below=below, circular=_circular(above))
    return replace(at, siblings=siblings), wanted, replace(matches, pairs=tuple(pairs))


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


def unresolved_fields(
    at: DeclaredPart[Collection], name: Key, wanted: Resource
) -> Iterator[tuple[str, Problem | Lookup]]:
    """Yield each field that refers to a name that cannot be resolved, with the problem, or the lookup to make."""
    yield from _unlisted(at, name, wanted)
    part = at.part
    for field, key in references(part, wanted).items():
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


def _unlisted(at: DeclaredPart[Collection], name: Key, wanted: Resource) -> Iterator[tuple[str, Problem | Lookup]]:
    """Yield each field with a name that its vocabulary lacks, with the problem, or the lookup to make."""
    for field, path in at.part.relations.vocabularies.items():
        words = {*getattr(wanted, field)} if field in wanted.model_fields_set else set()
        strange = words - at.siblings.words.get(field, frozenset())
        if not strange:
            continue
        names = names_in(at, path)
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


def names_in(
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
