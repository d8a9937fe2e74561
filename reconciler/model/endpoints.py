"""The two shapes of the service: a `Singleton` (one settings record) and a `Collection` (objects with identities).

A kind declares its parts as one or the other. The defaults are those of a plain collection; a kind whose endpoint
differs overrides them with small pure functions. Requests are values; nothing here talks to the service.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, ClassVar, Literal, Self
from urllib.parse import quote

from reconciler.model import entries
from reconciler.model.creation import ID_OF
from reconciler.model.protocols import Json, Reader, Request
from reconciler.model.resource import (
    NOT_HERE,
    POLICIES,
    Holder,
    LiveRecord,
    Objects,
    Resource,
    name_shown,
    number_shown,
    recognized,
)
from reconciler.model.targets import Key, Level, Target

Requests = tuple[Request, ...]

LONGEST_NAME = 255
STATE = "state"

ANOTHERS = "the {} belongs to another user, and only its owner or an administrator may rename it"


@dataclass(frozen=True, slots=True)
class Reading:
    """A response that may lack what the comparison with the manifest needs.

    Attributes:
        reader: fetches what is lacking.
        target: whose response it is.
        answer: the settings record, or the list with all its pages.
        wanted: the declared fields as JSON: of a settings record, or by name of each item, as far as they matter.
    """

    reader: Reader
    target: Target
    answer: Json
    wanted: Mapping[Any, Any]


@dataclass(frozen=True, slots=True)
class Siblings:
    """The objects of a collection whose fields refer to one another.

    Attributes:
        live: the objects that are there, by ID and by the identity of each name that they will have.
        created: by identity, the names of those that this run creates before.
        deleted: the `id()` of each that this run deletes.
        above: by field and identity, to what each object will refer; empty where only a part of a plan is known.
        below: by field and identity, how many will refer to each.
        circular: the keys of `above` from which it leads back to themselves.
        words: by field of `Relations.vocabularies`, the names that any object has there.
        covers: by identity of an object, the cover that an earlier run has left for it: see `Cover`.
        identity: see `Collection.identity`.
    """

    live: Mapping[Key, Sequence[LiveRecord]] = field(default_factory=dict)
    created: Mapping[Key, Key] = field(default_factory=dict)
    deleted: frozenset[int] = frozenset()
    above: Mapping[tuple[str, Key], Key] = field(default_factory=dict)
    below: Mapping[tuple[str, Key], int] = field(default_factory=dict)
    circular: frozenset[tuple[str, Key]] = frozenset()
    words: Mapping[str, frozenset[str]] = field(default_factory=dict)
    covers: Mapping[Key, LiveRecord] = field(default_factory=dict)
    identity: Callable[[Key], Key] = lambda name: name

    @classmethod
    def of(cls, part: "Collection", live: Sequence[LiveRecord], renamed: Mapping[int | None, Key]) -> Self:
        """Return the siblings of a collection, some of them by ID renamed."""
        by_name: dict[Key, list[LiveRecord]] = {}
        words: dict[str, set[str]] = {name: set() for name in part.relations.vocabularies}
        for record in live:
            names = {part.identity(renamed[record.id])} if record.id in renamed else {*map(part.identity, record.names)}
            for name in names | ({record.id} if record.id is not None else set()):
                by_name.setdefault(name, []).append(record)
            for name, known in words.items():
                known.update(getattr(record.resource, name))
        return cls(by_name, words={name: frozenset(known) for name, known in words.items()}, identity=part.identity)

    def named(self, name: Key) -> Sequence[LiveRecord]:
        """Return the live objects of a name, or of an ID."""
        return self.live.get(name if isinstance(name, int) else self.identity(name), ())

    def id_of(self, name: Key) -> Json:
        """Return the ID of an object, or what a body holds for the ID of one that this run creates."""
        if isinstance(name, int):
            return name
        return next((record.id for record in self.named(name)), {CREATED: self.created.get(self.identity(name))})


CREATED = "created"
"""The key of the object that stands in a request's body for the ID of an object that the same run creates."""

SECTION = "section"
"""The key that stands beside it where the object is one of another section of the target."""

OWNER = "of"
"""The key beside those, of the target above whose object it is, where it is not of the target itself."""

NO_SIBLINGS = Siblings()


@dataclass(frozen=True, slots=True)
class FieldIds:
    """The IDs of the subjects that the fields of an object name.

    Attributes:
        numbers: of the users, groups and keys that entries name; see `Relations.entries`.
        named: by field and name, of those whom other fields name, or what stands for them; see `Relations.named`.
        remarks: hints about some of them.
    """

    numbers: entries.Numbers = field(default_factory=dict)
    named: Mapping[tuple[str, str], Sequence[Json]] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()


NO_IDS = FieldIds()


@dataclass(frozen=True, slots=True)
class New:
    """An object to be created.

    Attributes:
        part: the collection.
        target: the target that will hold the object.
        path: of the collection, for writes.
        name: the object's name.
        wanted: the declared fields.
        target_id: the numeric ID of the target that the name refers to; None where names are just names, or where the
            same run creates that target.
        siblings: the other objects, where some refer to others.
        ids: of those whom its fields name.
    """

    part: "Collection"
    target: Target
    path: str
    name: Key
    wanted: Resource
    target_id: int | None = None
    siblings: Siblings = NO_SIBLINGS
    ids: FieldIds = NO_IDS

    @property
    def fields(self) -> dict[str, Json]:
        """The declared fields as JSON, without nulls, since a new object has no value to clear; see `then`."""
        lists = {name: entries.created(listed, self.ids.numbers) for name, listed in self.part.entries_of(self.wanted)}
        shown = self.part.with_ids({**as_json(self.wanted), **lists}, self.ids).items()
        return {
            name: value
            for name, value in shown
            if value is not None and not (name == STATE and self.part.writes.events)
        }

    @property
    def then(self) -> Requests:
        """The second request of a creation: it leads to the wanted state, if that is not the state of new objects."""
        writes = self.part.writes
        initial, *others = writes.events or (None,)
        state = getattr(self.wanted, STATE, initial)
        return (Request(writes.method, f"{self.path}/{{id}}", writes.event(state)),) if state in others else ()

    @property
    def new_name(self) -> dict[str, Json]:
        """The name under its field; or the ID of the target that it refers to, or what stands for that ID."""
        level = self.part.names.level
        if level is not None and self.target_id is None:
            return {self.part.key: {ID_OF: f"{level} {self.name}"}}
        return {self.part.key: _as_sent(self.name) if self.target_id is None else self.target_id}

    def post(self, body: Mapping[str, Json]) -> Request:
        """Return the request that creates the object."""
        return Request("POST", self.path, body)


@dataclass(frozen=True, slots=True)
class Existing:
    """An object to be updated or deleted.

    Attributes:
        part: the collection.
        target: the target that holds the object.
        path: of the collection, for writes.
        name: the wanted name.
        wanted: the declared fields that differ; none where the object is to be deleted.
        found: the object as it was read.
        siblings, ids: see `New`.
    """

    part: "Collection"
    target: Target
    path: str
    name: Key
    wanted: Resource
    found: LiveRecord
    siblings: Siblings = NO_SIBLINGS
    ids: FieldIds = NO_IDS

    @property
    def fields(self) -> dict[str, Json]:
        """The fields that differ, as JSON; a state as its event."""
        fields, writes = as_json(self.wanted), self.part.writes
        for name, listed in self.part.entries_of(self.wanted):
            fields[name] = entries.merged(listed, self.found.entries[name], self.ids.numbers)
        fields = self.part.with_ids(fields, self.ids)
        return fields | writes.event(fields.pop(STATE)) if writes.events and STATE in fields else fields

    @property
    def new_name(self) -> dict[str, Json]:
        """The wanted name under its field; empty where the name stays."""
        canonical = self.part.names.canonical
        there = {canonical(name) for name in self.found.names}
        return {} if canonical(self.name) in there else {self.part.key: _as_sent(self.name)}

    def anew(self) -> New:
        """Return an object that is as this one will be: for services that cannot change it."""
        names = {*type(self.found.resource).model_fields} - {*self.found.read_only, *self.found.unknown} - POLICIES
        # An empty list of who may unprotect is live where every maintainer may, and refused where it is sent.
        refused = {name for name, _ in self.found.resource.errors()}
        given = {name: getattr(self.found.resource, name) for name in names - refused}
        given |= {name: getattr(self.wanted, name) for name in self.wanted.model_fields_set - POLICIES}
        whole = type(self.wanted).model_construct({*given}, **given)
        return New(self.part, self.target, self.path, self.name, whole, None, self.siblings, self.ids)

    @property
    def url(self) -> str:
        """The object's own path."""
        return f"{self.path}/{self.found.path_id or self.found.id}"

    def send(self, body: Mapping[str, Json]) -> Request:
        """Return the request that updates the object."""
        return Request(self.part.writes.method, self.url, body)


def as_json(wanted: Resource) -> dict[str, Json]:
    """Return the set fields as JSON, without those that say how to get somewhere."""
    return wanted.model_dump(mode="json", include=wanted.model_fields_set - POLICIES)


BLANKS = " \t\n\v\f\r\0"
"""The service takes these off the ends of a name, and no others (deployed behaviour, section 5)."""


def stripped(name: str) -> str:
    """Return a name as the service keeps it."""
    return name.strip(BLANKS)


def _as_sent(name: Key) -> Key:
    return stripped(name) if isinstance(name, str) else name


def _create(new: New) -> Requests:
    cover = new.siblings.covers.get(new.part.identity(new.name))
    uncovered = () if cover is None else (Request("DELETE", f"{new.path}/{cover.path_id}"),)
    # The cover that an ended run has left goes last: its tags are never open.
    return (new.post(new.new_name | new.fields), *new.then, *uncovered)


def _update(old: Existing) -> Requests:
    if old.new_name and not old.part.writes.renames and old.part.writes.create is not None:
        # Created first, so that nothing is unprotected in between.
        return (*old.part.writes.create(old.anew()), *old.part.deletion.requests(old))
    if old.part.writes.cover:
        return _replaced(old, old.part.writes.cover)
    return (old.send(old.fields | old.new_name),)


def _replaced(old: Existing, cover: "Cover") -> Requests:
    """Return the requests that replace what cannot be changed, and that protect it meanwhile."""
    part, name = old.part, cover.name(old.name)
    # A rule of that name that is no cover is somebody's own.
    while (live := old.siblings.named(name)) and not any(map(cover.covered, live)):
        name = cover.name(name)
    new = old.anew()
    covering = New(part, old.target, old.path, name, cover.fields, siblings=old.siblings)
    first = () if live else (covering.post(covering.new_name | covering.fields),)
    is_ours = not live or part.identity(old.name) in old.siblings.covers
    last = (Request("DELETE", f"{old.path}/{quote(name, safe='')}"),) if is_ours else ()
    return (*first, *part.deletion.requests(old), new.post(new.new_name | new.fields), *last)


def number_of(listed_name: Json) -> int:
    """Return the number that stands for an object without an ID, made of its name."""
    # 48 bits: JSON readers keep integers exact up to 53.
    return int.from_bytes(sha256(str(listed_name).encode()).digest()[:6])


def _delete(old: Existing) -> Requests:
    suffix = old.part.deletion.suffix
    path = f"{old.target.url}{suffix}/{old.found.id}" if suffix else old.url
    return (Request("DELETE", path),)


def _losses(old: Existing) -> Iterable[str]:
    lost = old.part.deletion.lost
    return (f"cannot be restored: {lost}",) if lost else ()


@dataclass(frozen=True, slots=True)
class Singleton:
    """One settings record a target: it always exists, is read with one GET and updated with one request.

    Attributes:
        name: the part's name, unique within its kind.
        title: what people call it.
        suffix: the path below the target's.
        model: of the record, for `decode`'s default.
        shown_as: fields that the service shows under another name.
        decode: reads the service's response, if not field by field.
        body: what to send, given the wanted fields that differ, and what was found, if not these fields.
        method: of the update.
        complete: fetches what the response lacks, and returns the response with it; None where it always suffices.
        whole: whether an update sends fields that nobody declared, as they were read.
    """

    name: str
    title: str
    suffix: str
    model: type[Resource]
    shown_as: Mapping[str, str] = field(default_factory=dict)
    decode: Callable[[Target, Json], LiveRecord] | None = None
    body: Callable[[Resource, LiveRecord], Mapping[str, Json]] = lambda wanted, _found: as_json(wanted)
    method: Literal["PUT", "PATCH"] = "PUT"
    complete: Callable[[Reading], Json] | None = None
    whole: bool = False

    is_collection: ClassVar[bool] = False
    unique_names: ClassVar[bool] = True
    path_field: ClassVar[str] = ""

    @property
    def suffixes(self) -> tuple[str, ...]:
        """All paths of writes below the target's."""
        return (self.suffix,)

    def path(self, target: Target) -> str:
        """Return the path of a target's record."""
        return target.url + self.suffix

    def read(self, target: Target, answer: Json) -> LiveRecord:
        """Read the service's response.

        Raises:
            ArithmeticError, AttributeError, LookupError, TypeError, ValueError: it is not what it should be.
        """
        return self.decode(target, answer) if self.decode else _by_fields(self.model, self.shown_as, answer)

    def update(self, target: Target, wanted: Resource, record: LiveRecord) -> Requests:
        """Return the request that makes what was found what is wanted."""
        return (Request(self.method, self.path(target), self.body(wanted, record)),)


@dataclass(frozen=True, slots=True)
class Listing:
    """A list that shows more, or less, than the objects of its target.

    Attributes:
        query: of the list, without the question mark; by level where it is not the same at all.
        shown_as: fields that the service shows under another name.
        complete: fetches what the list lacks, and returns all entries with it; None where it always suffices.
        holder: takes an entry of the list; returns what above or below the target has that object; None for an object
            of the target itself.
        unique_below: whether a name that a group has is taken in all groups and projects below it too.
        inherits: whether the objects of the groups above hold too, beside the target's own of the same name: the list
            shows them, and `holder` tells them apart.
        has_pages: whether the service divides the list into pages; if not, one response without a word about pages is
            all of it.
        needs_numeric_id: whether its path needs the target's own numeric ID.
        hides: what else counts for `Writes.most` that the list does not show, to be told where the plan reaches that
            number, and where the service refuses one.
    """

    query: str | Mapping[Level, str] = ""
    shown_as: Mapping[str, str] = field(default_factory=dict)
    complete: Callable[[Reading], Json] | None = None
    holder: Callable[[Json], Holder | None] = lambda _entry: None
    unique_below: bool = False
    inherits: bool = False
    has_pages: bool = True
    needs_numeric_id: bool = False
    hides: str = ""


@dataclass(frozen=True, slots=True)
class Names:
    """The names of the objects of a collection.

    Attributes:
        unique: whether the service refuses a second object of the same name.
        canonical: the form in which two spellings of one name are equal.
        error: says what is wrong with a name and what would be right; None where it is fine. That names are not blank
            and not longer than 255 characters is checked before.
        warning: says why some servers may refuse a name for this target; None where all take it.
        level: the level of the targets whose paths or IDs the names are, or None where names are just names.
        lowers_placeholders: whether `{path}` and its like are filled in in lower case within names.
        taken: what to do if a name is taken although no object has it that is listed; empty where that cannot be.
        fixed: the names that stand for objects of another sort, of which a target has one each: they are not renamed,
            and no other object gets such a name.
        rules: yields a field and what is wrong with it, for each declared field that does not go with the name. The
            last argument says whether the fields are all that a new object will have.
        leads_to: whether a path with the first name may lead to an object of the second, where the service looks for
            names otherwise than as a whole: then it takes the one with the lowest ID. None where it does not.
        arrange: for objects that have no name but their place among all, which changes when others come and go: returns
            what is wanted as names of what is live. None where objects have names.
        exchangeable: whether objects can exchange their names, one of which has a name of ours meanwhile. These names
            are free text, and protect nothing.
        who: what the objects are in the lists of rules that name them; None where none does.
    """

    unique: bool = True
    canonical: Callable[[Any], Key] = lambda key: key
    error: Callable[[Key], str | None] = lambda _key: None
    warning: Callable[[Target, Key], str | None] = lambda _target, _key: None
    level: Level | None = None
    lowers_placeholders: bool = False
    taken: str = ""
    fixed: frozenset[str] = frozenset()
    rules: Callable[[Key, Resource, bool], Iterable[tuple[str, str]]] = lambda _key, _wanted, _is_new: ()
    leads_to: Callable[[Target, str, str], bool] | None = None
    arrange: Callable[[Mapping[Key, Resource | None], Sequence[LiveRecord]], Mapping[Key, Resource | None]] | None = (
        None
    )
    exchangeable: bool = False
    who: entries.Who | None = None


@dataclass(frozen=True, slots=True)
class Cover:
    """An object that takes over the protection of another one while that is replaced.

    A run that is killed leaves the cover behind, and the next one removes it, in the end: its name tells whose it is.

    Attributes:
        suffix: what follows the name of an object in that of its cover, so that nobody else writes such a name.
        fields: what the cover holds.
    """

    suffix: str
    fields: Resource

    def name(self, name: Key) -> str:
        """Return the name of the cover of an object."""
        return f"{name}{self.suffix}"

    def is_one(self, name: Key, resource: Resource) -> bool:
        """Return whether an object has a name like a cover, and holds what one does."""
        fields = self.fields.model_fields_set
        is_alike = all(getattr(resource, field) == getattr(self.fields, field) for field in fields)
        return is_alike and str(name).endswith(self.suffix) and str(name) != self.suffix

    def covered(self, record: LiveRecord) -> str:
        """Return the name of the object of which an object is the cover; empty where it is none."""
        name = record.names[0]
        return str(name).removesuffix(self.suffix) if self.is_one(name, record.resource) else ""


@dataclass(frozen=True, slots=True)
class Writes:
    """The requests that create and update the objects of a collection.

    Attributes:
        create: the requests that create an object, if not one POST of its name and fields; None where this API creates
            none.
        creation: where else objects are created, if not here.
        update: the requests that update an object, or promote it (see `LiveRecord.below`), if not one with what
            differs; None where objects have no fields.
        method: of that one.
        suffix: the path of the objects below the target's, where it is not that of the list.
        needs_numeric_id: whether paths need the target's own numeric ID.
        required: the fields that a creation needs.
        immutable: the fields that no update can change.
        events: by value of the field `state`, the event that leads there, if only events change it; the first is the
            state of new objects.
        most: how many objects a target may have; 0 for any number. At the limit, an object that is to go becomes one
            that is to come, by an update.
        promotion: the path of the request that makes an object of a project the group's, with `{project}` and `{id}`;
            empty where there is none.
        renames: whether an update can change the name; else a renamed object is created anew, and then deleted.
        once: whether a request must not be sent again after a lost answer, since it may mean another object then.
        defaults: by field, what the service puts there where a creation does not say it, in words.
        cover: what protects while an object that no request can change is deleted and created again; None where
            requests can.
        keepers: the field of entries that name who alone may change or delete an object, and create it; empty where
            the role in the target is all that counts.
    """

    create: Callable[[New], Requests] | None = _create
    creation: str = ""
    update: Callable[[Existing], Requests] | None = _update
    method: Literal["PUT", "PATCH"] = "PUT"
    suffix: str = ""
    needs_numeric_id: bool = False
    required: tuple[str, ...] = ()
    immutable: tuple[str, ...] = ()
    events: Mapping[str, str] = field(default_factory=dict)
    most: int = 0
    promotion: str = ""
    renames: bool = True
    once: bool = False
    defaults: Mapping[str, str] = field(default_factory=dict)
    cover: Cover | None = None
    keepers: str = ""

    def makes_anew(self, *, renamed: bool) -> bool:
        """Return whether an update creates another object in the place of the one that is there."""
        return self.cover is not None or (renamed and not self.renames and self.create is not None)

    def event(self, new_state: str) -> dict[str, Json]:
        """Return the body that leads to a state."""
        return {"state_event": self.events[new_state]}


@dataclass(frozen=True, slots=True)
class Deletion:
    """The end of the objects of a collection.

    Attributes:
        requests: those that delete an object, if not one DELETE.
        suffix: the path below the target's at which objects are deleted, where it is not that of their updates.
        prunable: whether `prune` may delete what is not declared.
        fades: whether the service deletes objects by and by, so that one may be listed for a while.
        lost: what does not come back with an object that was deleted and is created again, such as its comments.
    """

    requests: Callable[[Existing], Requests] = _delete
    suffix: str = ""
    prunable: bool = True
    fades: bool = False
    lost: str = ""


@dataclass(frozen=True, slots=True)
class Named:
    """A field that holds names where requests hold IDs: of groups, of what a list has, or of another section's objects.

    A name without an ID is a problem before anything is written: services drop what they do not know without a word.

    Attributes:
        shown: the key of the list of records in the service's record of an object.
        sent: the key of the list of IDs in requests.
        key: the field of such a record that holds the name.
        within: the path below the target's of the list of all that may be named, which is read only for names that no
            object shows; empty for groups, each of which is looked up once a run.
        section: the section whose objects are named; empty where they are of none. Those that the same run creates
            count, and those that it deletes do not.
        unknown: why a name is not in the list, with `{name}`.
        remedy: what to do about that.
        unlisted: what to do where the list cannot be read.
        hides: the key that says that there are more than those shown, which this token cannot see; a list that is sent
            leaves them. Empty where all are shown.
        bare: what an object is without any of those named, if it does not become the same then; said of each that loses
            all of them by a deletion. Empty where that makes no difference.
    """

    shown: str
    sent: str
    key: str
    within: str = ""
    section: str = ""
    unknown: str = ""
    remedy: str = ""
    unlisted: str = ""
    hides: str = ""
    bare: str = ""

    def canonical(self, name: str) -> str:
        """Return the form in which two spellings of a name are equal: names of users and groups ignore case."""
        return name if self.section else name.casefold()

    def rows(self, json_records: Iterable[Json]) -> tuple[entries.EntryRow, ...]:
        """Read records of whom an object names.

        Raises:
            AttributeError, LookupError, TypeError: a record is not what it should be.
        """
        numbers = [(self.canonical(record[self.key]), record["id"]) for record in json_records]
        if not all(type(number) is int and isinstance(name, str) for name, number in numbers):
            raise TypeError(numbers)
        return tuple(entries.EntryRow(number, name) for name, number in numbers)


@dataclass(frozen=True, slots=True)
class Relations:
    """The references of objects to others.

    Attributes:
        refers: the fields that refer to another object of the collection, by its name or its ID. Shown as an ID, they
            are read as the name, if no other object has it. Objects are written after those to which they refer.
        reversed: whether an object is written before the one to which it refers, and before all others.
        vocabularies: the fields that hold names of what must be in another list, each with the path of that list below
            the target's. It is read only where a name is wanted that no object of the collection has yet.
        entries: the fields that hold `Entries`, each with the key of the list in the service's record. An update adds
            and removes entries by their IDs.
        named: the fields that hold names where requests hold IDs. A list is sent whole.
        flaw: takes the name and the fields of an object as they will be, and its live object, if there is one; returns
            the reason why those whom it names leave it without effect; empty if there is none.
    """

    refers: tuple[str, ...] = ()
    reversed: Callable[[Resource], bool] = lambda _resource: False
    vocabularies: Mapping[str, str] = field(default_factory=dict)
    entries: Mapping[str, str] = field(default_factory=dict)
    named: Mapping[str, Named] = field(default_factory=dict)
    flaw: Callable[[Key, Mapping[str, Json], LiveRecord | None], str] = lambda _name, _fields, _live: ""


@dataclass(frozen=True, slots=True)
class Access:
    """Objects that grant access to somebody or something: plans report undeclared ones.

    Attributes:
        secret: the field of the answer to a creation that is a secret, to be delivered and never shown; empty where
            there is none.
        is_complete: whether that field's value is shown whole, as it is to those who may know it.
    """

    secret: str = ""
    is_complete: Callable[[str], bool] = bool


@dataclass(frozen=True, slots=True)
class Collection:
    """Objects of one target that are listed, created, updated and deleted one by one.

    Attributes:
        name: the part's name, unique within its kind.
        model: of one object.
        title: what people call one object.
        suffix: the path of the collection below the target's; by default the part's name.
        key: the field that holds an object's name; where names refer to targets, the field that a creation takes.
        id_field: the field that holds an object's ID; empty where objects have none.
        path_field: the field that holds what paths name an object by, if not the ID.
        decode: reads one entry of the list, if not field by field. ID, owner and, unless it has read names, the name
            are added.
        page: the web page of an object, below that of its target, with `{iid}` for its number there.
        listing: the list, where it does not show just the objects of the target.
        names: of the objects, where they are not just unique texts.
        writes: where a POST of the name and fields, and a PUT of those that differ, are not what the service takes.
        deletion: where a DELETE is not all that there is to it.
        relations: of the objects to others.
        access: that the objects grant; None where they grant none.
        losses: what is lost with an object that is deleted, as far as its entry tells: a clause each, in which "it" is
            the object. They do not name the object, so that they are alike for many; no request is made for them.
    """

    name: str
    model: type[Resource]
    title: str
    suffix: str = ""
    key: str = "title"
    id_field: str = "id"
    path_field: str = ""
    decode: Callable[[Json], LiveRecord] | None = None
    page: str = ""
    listing: Listing = Listing()
    names: Names = Names()
    writes: Writes = Writes()
    deletion: Deletion = Deletion()
    relations: Relations = Relations()
    access: Access | None = None
    losses: Callable[[Existing], Iterable[str]] = _losses

    is_collection: ClassVar[bool] = True
    whole: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Fill in the path."""
        object.__setattr__(self, "suffix", self.suffix or self.name)

    @property
    def suffixes(self) -> tuple[str, ...]:
        """All paths of writes below the target's."""
        paths = (self.suffix, self.writes.suffix, self.deletion.suffix)
        return tuple(dict.fromkeys(path for path in paths if path))

    @property
    def has_siblings(self) -> bool:
        """Whether planning one object takes knowing the others."""
        return bool(self.relations.refers or self.relations.vocabularies or self.writes.cover)

    @property
    def secret_field(self) -> str:
        """The field of the answer to a creation that is a secret; empty where there is none."""
        return self.access.secret if self.access else ""

    def path(self, target: Target) -> str:
        """Return the path of a target's list."""
        query = self.listing.query
        query = query if isinstance(query, str) else query[target.level]
        return target.url + self.suffix + (f"?{query}" if query else "")

    def read(self, target: Target, entry: Json) -> LiveRecord:
        """Read one entry of the list.

        Raises:
            ArithmeticError, AttributeError, LookupError, TypeError, ValueError: it is not what it should be.
        """
        rows = {name: entries.rows_of(entry[key]) for name, key in self.relations.entries.items() if key in entry}
        if rows:
            entry = {**entry, **{name: [row.shown for row in rows[name] if row.shown] for name in rows}}
        named = {name: reference.rows(entry[reference.shown]) for name, reference in self.relations.named.items()}
        if named:
            entry = {**entry, **{name: sorted({row.shown for row in listed}) for name, listed in named.items()}}
            rows |= named
        record = self.decode(entry) if self.decode else _by_fields(self.model, self.listing.shown_as, entry)
        number = self.number(entry)
        if type(number) is not int:
            raise TypeError(number)
        names = record.names or (name_shown(entry[self.key] if self.names.unique else entry[self.key] or ""),)
        path_id = quote(str(entry[self.path_field]), safe="") if self.path_field else None
        if path_id in {"", ".", ".."}:
            raise ValueError(path_id)
        owner_id = number_shown(entry.get(f"{target.level}_id"))
        more = self._ownership(record, self.access, entry) if self.access and self.access.secret else {}
        iid = number_shown(entry.get("iid")) if self.page else None
        return replace(
            record,
            id=number,
            names=names,
            path_id=path_id,
            iid=iid,
            owner_id=owner_id,
            created_at=_moment(entry.get("created_at")),
            updated_at=_text(entry.get("updated_at")),
            entries=rows or record.entries,
            **more,
        )

    def _ownership(self, record: LiveRecord, access: Access, fields: Mapping[str, Json]) -> dict[str, Any]:
        """Return to whom an object with a secret belongs: its owner and administrators see the secret whole."""
        secret = fields.get(access.secret)
        ours = isinstance(secret, str) and access.is_complete(secret)
        owner = fields.get("owner")
        username = owner.get("username") if isinstance(owner, dict) else None
        return {
            "ours": ours,
            "owner": _text(username),
            "last_used": _text(fields.get("last_used")),
            "read_only": record.read_only
            if ours
            else {**record.read_only, "renamed_from": ANOTHERS.format(self.title)},
        }

    def entries_of(self, resource: Resource) -> list[tuple[str, Sequence[entries.Role | entries.Subject]]]:
        """Return the set fields that hold entries, with these."""
        names = [name for name in self.relations.entries if name in resource.model_fields_set]
        return [(name, getattr(resource, name)) for name in names]

    def named_in(self, resource: Resource) -> Iterator[tuple[str, Named, tuple[str, ...]]]:
        """Yield the set fields that hold a list of names, with these; not those that hold a word for all."""
        for name, named in self.relations.named.items():
            value = getattr(resource, name) if name in resource.model_fields_set else None
            if isinstance(value, tuple):
                yield name, named, value

    def with_ids(self, fields: dict[str, Json], field_ids: FieldIds) -> dict[str, Json]:
        """Return fields as requests hold them: IDs under their key in the place of names."""
        lists = {name: fields.pop(name) for name in self.relations.named if isinstance(fields.get(name), list)}
        named = self.relations.named
        return fields | {
            named[field].sent: [number for name in names for number in field_ids.named[field, name]]
            for field, names in lists.items()
        }

    def number(self, fields: Mapping[str, Json]) -> Json:
        """Return the ID of an object, or what stands for it.

        Raises:
            KeyError: the service does not show it.
        """
        return fields[self.id_field] if self.id_field else number_of(fields[self.key])

    def page_of(self, record: LiveRecord) -> str:
        """Return the web page of an object, below that of its target; empty if it is unknown, or below another."""
        return "" if record.iid is None or record.below else self.page.format(iid=record.iid)

    def objects(self, target: Target, answer: Iterable[Json]) -> Objects:
        """Read a list.

        Raises:
            ArithmeticError, AttributeError, LookupError, TypeError, ValueError: an entry is not what it should be.
        """
        own: list[LiveRecord] = []
        taken: dict[Key, Holder] = {}
        below: dict[Key, list[tuple[int, int, str, LiveRecord]]] = {}
        inherited: list[tuple[LiveRecord, Holder]] = []
        hidden: list[tuple[LiveRecord, str]] = []
        hides = [(field, named.hides) for field, named in self.relations.named.items() if named.hides]
        for entry in answer:
            record, holder = self.read(target, entry), self.listing.holder(entry)
            if holder is None:
                own.append(record)
                hidden += ((record, field) for field, key in hides if entry.get(key))
                continue
            if self.listing.inherits:
                inherited.append((record, holder))
                continue
            for name in map(self.identity, record.names):
                if holder.promotes is None:
                    taken[name] = holder
                else:
                    below.setdefault(name, []).append((holder.promotes, record.id or 0, holder.name, record))
        others = taken.keys() | {self.identity(name) for record in own for name in record.names}
        promotable = {name: _promotable(those) for name, those in below.items() if name not in others}
        return Objects(self.with_names(tuple(own)), taken, promotable, tuple(inherited), tuple(hidden))

    def with_names(self, own_objects: tuple[LiveRecord, ...]) -> tuple[LiveRecord, ...]:
        """Return objects whose references are names instead of IDs, where only one object has that name."""
        if not self.relations.refers:
            return own_objects
        names = self.unique_name_of(own_objects)
        return tuple(replace(record, resource=self.referring(record.resource, names)) for record in own_objects)

    def unique_name_of(self, live: Sequence[LiveRecord]) -> dict[Key, Key]:
        """Return by ID the name of each object that shares it with no other."""
        by_name: dict[Key, list[LiveRecord]] = {}
        for record in live:
            by_name.setdefault(self.identity(record.names[0]), []).append(record)
        return {record.id: record.names[0] for record, *others in by_name.values() if record.id and not others}

    def referring(self, resource: Resource, replacements: Mapping[Key, Key]) -> Resource:
        """Return a resource whose references are replaced by others."""
        refers = [name for name in self.relations.refers if name in resource.model_fields_set]
        changed = {name: replacements[value] for name in refers if (value := getattr(resource, name)) in replacements}
        return resource.model_copy(update=changed) if changed else resource

    def references(self, resource: Resource) -> dict[str, Key]:
        """Return the identities of the objects to which a resource refers by name, by field."""
        refers = [name for name in self.relations.refers if name in resource.model_fields_set]
        given = {name: getattr(resource, name) for name in refers}
        return {name: self.identity(other) for name, other in given.items() if isinstance(other, str)}

    def identity(self, name: Key) -> Key:
        """Return the form in which two spellings of one object's name are equal; paths ignore case."""
        if not isinstance(name, str):
            return name  # that of a project or a group; a damaged plan may hold others
        return self.names.canonical(name) if self.names.level is None else name.casefold()

    def name_error(self, name: Key) -> str | None:
        """Return the fault of a name, with a correction; None if the name is valid."""
        if self.names.level is not None:
            return self.names.error(name)
        text = str(self.names.canonical(name))
        if text.strip() and len(text) <= LONGEST_NAME:
            return self.names.error(name)
        word = self.key.rpartition("_")[2]
        if text.strip():
            return f"a {word} has at most {LONGEST_NAME} characters; this one has {len(text)}"
        return f"a {word} must not be blank"


def _promotable(numbered_records: Sequence[tuple[int, int, str, LiveRecord]]) -> LiveRecord:
    """Return the object to promote of several with one name: the oldest object of the oldest target.

    Args:
        numbered_records: of each object the target's ID, its own ID, the target's name, and the object.
    """
    ordered = sorted(numbered_records, key=lambda namesake: namesake[:2])
    owner_id, _, _, record = ordered[0]
    return replace(record, owner_id=owner_id, below=tuple(dict.fromkeys(name for _, _, name, _ in ordered)))


def _by_fields(model: type[Resource], shown_as: Mapping[str, str], answer: Json) -> LiveRecord:
    """Read what is shown field by field. Servers may be older or newer than this version: a field may be missing."""
    if not isinstance(answer, dict):
        raise TypeError(answer)
    names = {name: shown_as.get(name, name) for name in model.model_fields if name not in POLICIES}
    shown = {name: answer[alias] for name, alias in names.items() if alias in answer}
    if names and not shown:
        raise KeyError(next(iter(names.values())))
    resource, unknown = recognized(model, shown)
    return LiveRecord(resource, read_only={name: NOT_HERE for name in names if name not in shown}, unknown=unknown)


def _text(value: Json) -> str | None:
    """Return a value that is text; None for any other."""
    return value if isinstance(value, str) else None


def _moment(value: Json) -> datetime | None:
    """Read a time, which is UTC where it does not say otherwise; None where there is none."""
    if not isinstance(value, str):
        return None
    try:
        when = datetime.fromisoformat(value)
    except ValueError:
        return None
    return when if when.tzinfo else when.replace(tzinfo=UTC)
