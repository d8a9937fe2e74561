"""The resolution of names in declared fields to IDs: of targets, members, other objects and words of lists. Pure.

A name without an ID is a problem, or a lookup to make before its object can be planned. Begin with `ids_in`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from reconciler.engine.compare.creation import archive_containing
from reconciler.engine.compare.matching import Matches, too_many_objects
from reconciler.engine.compare.part import DeclaredPart
from reconciler.model.creation import ID_OF
from reconciler.model.diff import fields_of, numbers_of, quoted, with_rows
from reconciler.model.endpoints import CREATED, OWNER, SECTION, Collection, FieldIds, Named, Siblings
from reconciler.model.entries import INVITED, ROSTERS, Numbers, Who, named_by
from reconciler.model.item import Change, Create, Delete, Finding, Update, makes, makes_anew
from reconciler.model.obstacle import Obstacle
from reconciler.model.protocols import Json
from reconciler.model.resource import LiveRecord, Objects, Resource
from reconciler.model.state import CALLER, Known, Lookup, Reference, Vocabulary
from reconciler.model.targets import Key, Level, Target

USERS = ROSTERS["user"].suffix
"""The list of the users that fields may name."""

NO_OBJECT = 0
"""An ID that no object has."""

Unanswered = tuple[str, Finding | Lookup]
"""A field with an unknown name, and the problem or the lookup to make."""


def resolve(
    at: DeclaredPart[Collection], wanted: Mapping[Key, Resource | None], live: Sequence[LiveRecord]
) -> tuple[dict[Key, int], dict[Key, Finding | Reference]]:
    """Return the numeric IDs of the targets that names refer to; for other names, the problem or the lookup.

    Both are empty if the collection's names refer to no targets. A name that must not exist is looked up only where the
    service shows some objects by their IDs alone.
    """
    ids: dict[Key, int] = {}
    unresolved: dict[Key, Finding | Reference] = {}
    level = at.part.names.level
    if level is None:
        return ids, unresolved
    shown = {at.part.identity(name): record.id for record in live for name in record.names}
    # An entry shown by ID alone may be the one that must not exist: only then its ID is needed.
    hidden = any(not isinstance(record.names[0], str) for record in live)
    for name, resource in wanted.items():
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
    """Return the objects of a collection and its matches, all under their future names."""
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


def _circular(parents: Mapping[tuple[str, Key], Key]) -> frozenset[tuple[str, Key]]:
    """Return the fields and identities that refer to themselves, directly or through other objects.

    See `Siblings.above`.
    """
    circular: set[tuple[str, Key]] = set()
    passed: set[tuple[str, Key]] = set()
    for start in parents:
        way: dict[tuple[str, Key], int] = {}
        place = start
        while place in parents and place not in passed:
            passed.add(place)
            way[place] = len(way)
            place = place[0], parents[place]
        if place in way:
            circular.update([*way][way[place] :])
    return frozenset(circular)


def unresolved_references(at: DeclaredPart[Collection], name: Key, wanted: Resource) -> Iterator[Unanswered]:
    """Yield each field that names an object of the collection, or a word of a list, that does not exist."""
    yield from _unlisted(at, name, wanted)
    part = at.part
    for field, key in part.references(wanted).items():
        namesakes = at.siblings.named(key)
        circle = _circle(at.siblings, field, part.identity(name))
        if circle:
            yield field, at.problem(name, f"would refer to itself: {circle}", "break the circle", field=field)
        elif len(namesakes) > 1:
            yield (
                field,
                at.problem(name, too_many_objects(namesakes, f'the name "{key}"'), "write its ID instead", field=field),
            )
        elif any(id(record) in at.siblings.deleted for record in namesakes):
            yield field, at.problem(name, f'this plan deletes the {part.title} "{key}"', "declare it", field=field)
        elif not namesakes and key not in at.siblings.created:
            reason = f'no {part.title} "{key}" exists, and this plan does not create one first'
            yield field, at.problem(name, reason, "correct the name, or declare it", field=field)


def ended_subjects(at: DeclaredPart[Collection], name: Key, wanted: Resource) -> Iterator[tuple[str, Finding]]:
    """Yield a problem for each field that names a user whom the plan deletes or renames."""
    ended = at.earlier.ended
    for field, listed in _subjects_in(at.part, wanted):
        for obstacle in (ended[one] for one in listed if one in ended):
            yield field, at.problem(name, obstacle.reason, obstacle.remedy, field=field)


def _subjects_in(part: Collection, wanted: Resource) -> Iterator[tuple[str, Sequence[tuple[str, Key]]]]:
    """Yield each set field that names users, groups or keys, with their identities; see `Subject.identity`."""
    for field, listed in part.entries_of(wanted):
        yield field, [one.identity for one in listed if not isinstance(one, str)]
    for field, named, names in part.named_in(wanted):
        if named.within == USERS:
            yield field, [("user", called) for called in names]


def _circle(siblings: Siblings, field: str, name: Key) -> str:
    """Return the names through which an object would refer to itself; empty if it would not."""
    if (field, name) not in siblings.circular:
        return ""
    passed = [name]
    while (above := siblings.above[field, passed[-1]]) != name:
        passed.append(above)
    return " > ".join(map(str, (*passed, name)))


def _unlisted(at: DeclaredPart[Collection], name: Key, wanted: Resource) -> Iterator[Unanswered]:
    """Yield each field with a name that its vocabulary lacks."""
    for field, path in at.part.relations.vocabularies.items():
        words = {*getattr(wanted, field)} if field in wanted.model_fields_set else set()
        strange = words - at.siblings.words.get(field, frozenset())
        if not strange:
            continue
        names = _names_in(at, Vocabulary(at.section.target, path))
        if names is None:
            continue
        if isinstance(names, Vocabulary):
            yield field, names
        elif isinstance(names, Obstacle):
            yield field, at.problem(name, f"cannot be checked: {names.reason}", names.remedy, field=field)
        elif not strange <= names.keys():
            unknown = sorted(strange - names.keys())
            reason = f"unknown name{'s' * (len(unknown) > 1)} {', '.join(map(quoted, unknown))}"
            group = archive_containing(at.section.target, at.live.archives)
            remedy = f"or plan again once the archive of group {group} has arrived" if group else "or create it first"
            yield field, at.problem(name, reason, f"correct it, {remedy}", field=field)


def ids_in(
    at: DeclaredPart[Collection],
    name: Key,
    wanted: Resource,
    record: LiveRecord | None = None,
    *,
    anew: bool = False,
) -> tuple[FieldIds, list[Unanswered]]:
    """Return the IDs of the subjects that the fields of an object name, and the fields with a name without an ID.

    A field with such a name is not sent at all, since a partial list would mean something else. An existing entry is
    kept, even if its user has left the project; a new entry must name a subject that the service accepts.

    Args:
        at: the collection.
        name: the object's name.
        wanted: the fields that are sent.
        record: the object as it was read, whose entries show their IDs; None if it is to be created.
        anew: whether a new object replaces it, so that all its entries are new.
    """
    shown = record.entries if record else {}
    rows = [row for listed in shown.values() for row in listed]
    numbers: dict[tuple[str, str | int], int] = {row.identity: row.number for row in rows if row.number is not None}
    named_ids: dict[tuple[str, str], Sequence[Json]] = {}
    unanswered: list[Unanswered] = []
    remarks: list[str] = []
    for field, listed in at.part.entries_of(wanted):
        own_entries = set() if anew else {key for row in shown.get(field, ()) for key in row.spellings}
        for subject in listed:
            if isinstance(subject, str) or subject.identity in own_entries:
                continue
            who, called = subject.identity
            number = _number(at, who, called, called if isinstance(called, int) else numbers.get((who, called)))
            if isinstance(number, int):
                numbers[who, called] = number
                remarks += _remarks(at, who, called, number, field)
            else:
                unanswered.append((field, _problem_or_lookup(at, name, field, number)))
    for field, named, names in at.part.named_in(wanted):
        for called in names:
            own = [row.id for row in shown.get(field, ()) if row.shown == called]
            ids = _ids_for(at, named, called, own)
            if isinstance(ids, Obstacle | Reference | Vocabulary):
                unanswered.append((field, _problem_or_lookup(at, name, field, ids)))
                continue
            named_ids[field, called] = ids
            if named.within == USERS:
                remarks += (line for number in ids for line in _remarks(at, "user", called, number, field))
    return FieldIds(numbers, named_ids, tuple(dict.fromkeys(remarks))), unanswered


def with_names(record: LiveRecord, numbers: Numbers) -> LiveRecord:
    """Return an object whose entries have their known names, where the service shows only IDs."""
    rows = {field: named_by(listed, numbers) for field, listed in record.entries.items()}
    return (
        record
        if rows == record.entries
        else replace(with_rows(record, rows), shown=record.shown or fields_of(record.resource))
    )


def with_sent_names(record: LiveRecord, change: Create | Update) -> LiveRecord:
    """Return an object whose entries have the names that a change has sent by ID.

    A subject that is hidden from the token is read as an ID alone: if the number of such entries that were sent equals
    the number of missing names, the names are matched to them.
    """
    record = with_names(record, numbers_of(change.read)) if isinstance(change, Update) else record
    bodies = [value for request in change.requests for value in (request.body or {}).values()]
    sent = {str(entry) for value in bodies if isinstance(value, list) for entry in value}
    names: dict[tuple[str, str | int], int] = {}
    for field, rows in record.entries.items():
        wanted = change.after.get(field)
        words = (
            [word for entry in wanted if isinstance(entry, dict) for word in entry.items()]
            if isinstance(wanted, list)
            else []
        )
        lacking = sorted(word for word in words if all(word not in row.spellings for row in rows))
        hidden = {row.identity for row in rows if row.identity[1] == row.number and row.identity not in words}
        bare = sorted((who, number) for who, number in hidden if str({f"{who}_id": number}) in sent)
        if [who for who, _ in lacking] == [who for who, _ in bare]:
            names |= {word: number for word, (_, number) in zip(lacking, bare, strict=True)}
    return with_names(record, names)


def _remarks(at: DeclaredPart[Collection], who: Who, called: str | int, subject_id: Json, field: str) -> Iterator[str]:
    """Yield a remark if a new entry names a user without access: the service accepts blocked users."""
    known = _nameable_subjects(at, who)
    if who == "user" and isinstance(known, Known) and subject_id in known.unfit:
        yield f"{field}: {called} is {known.unfit[subject_id]}, and counts for nothing until that ends"


def _problem_or_lookup(
    at: DeclaredPart[Collection], name: Key, field: str, obstacle_or_lookup: Obstacle | Lookup
) -> Finding | Lookup:
    if isinstance(obstacle_or_lookup, Obstacle):
        return at.problem(name, obstacle_or_lookup.reason, obstacle_or_lookup.remedy, field=field)
    return obstacle_or_lookup


def _number(at: DeclaredPart[Collection], who: Who, called: str | int, number: int | None) -> int | Obstacle | Lookup:
    """Return the ID of a new user, group or deploy key; or the obstacle to naming it; or the lookup to make.

    Args:
        at: the collection.
        who: the kind of subject.
        called: its name or ID, as the entry has it.
        number: its ID, if it is known.
    """
    known = _nameable_subjects(at, who)
    match known:
        case Vocabulary():
            return known
        case Obstacle():
            return Obstacle(known.where, f"cannot be checked: {known.reason}", known.remedy)
        case None:
            reference = Reference(Level.USER, str(called))
            return at.live.ids.get(reference, reference) if number is None else number
    numbers = known.get(str(called), ()) if number is None else (number,) * known.has(number)
    if numbers:
        return _usable_id(at, who, called, numbers, known)
    reason = ROSTERS[who].unknown.format(_quoted(called))
    return _unlisted_subject_id(at, who, called, number) or Obstacle(at.address(), reason, ROSTERS[who].remedy)


def _usable_id(
    at: DeclaredPart[Collection], who: Who, called: str | int, numbers: Sequence[int], known_subjects: Known
) -> int | Obstacle:
    """Return the ID of a listed subject, or the obstacle to naming it in a rule."""
    roster, reason = ROSTERS[who], known_subjects.unfit.get(numbers[0], "")
    if len(numbers) > 1:
        several = f"{len(numbers)} deploy keys have this title: {_quoted(called)}"
        return Obstacle(at.address(), several, "rename one of them")
    if roster.unfit and reason:
        return Obstacle(at.address(), roster.unfit.format(_quoted(called), reason), roster.cure)
    return numbers[0]


def _quoted(called: str | int) -> str:
    return f'"{called}"' if isinstance(called, str) else f"with the ID {called}"


def _nameable_subjects(at: DeclaredPart[Collection], who: Who) -> Known | Obstacle | Vocabulary | None:
    """Return all subjects of a kind that an entry may name; see `_names_in`."""
    roster = ROSTERS[who]
    vocabulary = Vocabulary(at.section.target, roster.suffix, roster.key, roster.id_key, roster.within)
    return _names_in(at, vocabulary, is_inherited=roster.is_inherited)


def _unlisted_subject_id(
    at: DeclaredPart[Collection], who: Who, called: str | int, number: int | None
) -> int | Lookup | None:
    """Return the ID of a subject that is in no list but that the service accepts, or the lookup to make.

    This is an invited group that the token cannot see, and the creator of a new project.
    """
    target = at.section.target
    is_new = isinstance(target.ref, str) and bool(at.live.created(target.level, target.ref))
    asked = {("user", True): CALLER, ("group", False): Vocabulary(target, INVITED, "full_path")}.get((who, is_new))
    listed = at.live.names.get(asked, asked) if asked else None
    if isinstance(listed, Vocabulary):
        return listed
    for name, ids in listed.items() if isinstance(listed, Known) else ():
        # The groups above are in the list too, and cannot stand in a rule.
        if (name == called or number in ids) and name not in target.groups_above:
            return ids[0]
    return None


def _ids_for(
    at: DeclaredPart[Collection], named: Named, name: str, shown_ids: Sequence[int]
) -> Sequence[Json] | Obstacle | Lookup:
    """Return the IDs for a name, or placeholders for them; or the obstacle, or the lookup to make.

    Args:
        at: the collection.
        named: the relation of the field.
        name: in canonical form.
        shown_ids: the IDs that the object itself shows.
    """
    changes, above = _changes_of_named(at, named)
    gone = deleted_ids(changes) | deleted_ids(above)
    shows = [number for number in shown_ids if number not in gone]
    if any(change.address.name == name for change in changes if makes(change)):
        return ({CREATED: name, SECTION: named.section},)
    if not named.within and at.live.created(Level.GROUP, name):
        return ({ID_OF: f"group {name}"},)
    if shows:
        return shows
    known = _ids_by_name(at, named, name)
    if not isinstance(known, Mapping):
        return known
    numbers = known.get(name, ())
    owners = [
        str(change.address.target).casefold() for change in above if change.address.name == name and makes(change)
    ]
    # A name that the target and a group above it both have stands for both.
    ids: list[Json] = [
        *(number for number in numbers if number not in gone),
        *({CREATED: name, SECTION: named.section, OWNER: owner} for owner in owners),
    ]
    return ids or _unknown_object(at, named, name, is_gone=bool(numbers))


def _changes_of_named(at: DeclaredPart[Collection], named: Named) -> tuple[Sequence[Change], Sequence[Change]]:
    """Return the plan's changes to the objects that a field names: in the same target, and in the top-level group."""
    here = at.earlier.changes.get(named.section, ()) if named.section else ()
    return here, at.earlier.in_top_group.get(named.section, ())


def _unknown_object(at: DeclaredPart[Collection], named: Named, name: str, *, is_gone: bool) -> Obstacle:
    """Return the obstacle of a name without an object: it is deleted, has a problem, or is unknown."""
    if is_gone:
        return Obstacle(at.address(), f'this plan deletes "{name}"', "declare another one, or leave that one")
    if (named.section, name) in at.earlier.broken:
        reason = f'"{name}" cannot be created in {named.section}, because of a problem of its own'
        return Obstacle(at.address(), reason, "solve that one")
    narrowed = f"; if it is declared, include {named.section} in the run"
    is_left_out = bool(named.section) and named.section not in at.earlier.changes
    return Obstacle(at.address(), named.unknown.format(name=name), named.remedy + narrowed * is_left_out)


def lost_references(
    at: DeclaredPart[Collection], name: Key, wanted: Resource, record: LiveRecord
) -> dict[str, Finding]:
    """Return a problem for each unchanged field that names an object which the plan deletes."""
    problems: dict[str, Finding] = {}
    for field, named, names in at.part.named_in(wanted):
        gone = deleted_ids([change for changes in _changes_of_named(at, named) for change in changes])
        ending = (row for row in record.entries.get(field, ()) if row.id in gone and row.shown in names)
        for row in ending:
            missing = _unknown_object(at, named, row.shown, is_gone=True)
            problems[field] = at.problem(name, missing.reason, missing.remedy, field=field)
    return problems


def deleted_ids(changes: Iterable[Change]) -> set[int | None]:
    """Return the IDs of the deleted objects, including those that are recreated under another name."""
    renamed = {change.read.id for change in changes if isinstance(change, Update) and makes_anew(change)}
    return renamed | {change.read.id for change in changes if isinstance(change, Delete)}


def _ids_by_name(at: DeclaredPart[Collection], named: Named, name: str) -> Known | Obstacle | Lookup:
    """Return the IDs by name of all objects that a field may name; for a group, only its own ID."""
    target, section = at.section.target, named.section
    if not named.within:
        reference = Reference(Level.GROUP, name)
        answer = at.live.ids.get(reference, reference)
        return Known({name: (answer,)}) if isinstance(answer, int) else answer
    live = at.live.parts.get((target, section, section)) if section else None
    if section and isinstance(target.ref, str) and at.live.created(target.level, target.ref):
        names: Known | Obstacle | Vocabulary | None = _in_top_group(at, named, target.ref.partition("/")[0])
    elif isinstance(live, Objects):
        objects = (*live.own, *(record for record, _ in live.inherited))
        return _by_name((str(record.names[0]), (record.id or 0,)) for record in objects)
    else:
        names = _names_in(at, Vocabulary(target, named.within, named.key))
    if isinstance(names, Obstacle):
        return Obstacle(names.where, f"cannot be checked: {names.reason}", names.remedy or named.unlisted)
    if isinstance(names, Vocabulary):
        return names
    return _by_name((named.canonical(called), numbers) for called, numbers in (names or {}).items())


def _by_name(ids_by_name: Iterable[tuple[str, tuple[int, ...]]]) -> Known:
    known: dict[str, tuple[int, ...]] = {}
    for name, numbers in ids_by_name:
        known[name] = (*known.get(name, ()), *numbers)
    return Known(known)


def _in_top_group(at: DeclaredPart[Collection], named: Named, path: str) -> Known | Obstacle | Vocabulary:
    """Return the objects that a field of a project to be created may name: those of its top-level group."""
    vocabulary = Vocabulary(Target(Level.GROUP, path), named.within, named.key)
    return Known() if at.live.created(Level.GROUP, path) else at.live.names.get(vocabulary, vocabulary)


def _names_in(
    at: DeclaredPart[Collection], vocabulary: Vocabulary, *, is_inherited: bool = True
) -> Known | Obstacle | Vocabulary | None:
    """Return the names in a list, or the lookup to make; None if an archive is yet to bring some of them.

    A target that does not exist yet has the names of the groups above it, where these are inherited.
    """
    target = vocabulary.target
    while isinstance(target.ref, str) and (new := at.live.created(target.level, target.ref)):
        if new.creation.archive is not None:
            return None
        if not (new.namespace.path and is_inherited):
            return Known()
        target = Target(Level.GROUP, new.namespace.path)
    vocabulary = replace(vocabulary, target=target)
    return at.live.names.get(vocabulary, vocabulary)
