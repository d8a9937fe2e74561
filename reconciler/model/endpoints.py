"""The two shapes of endpoints: a `Singleton` (one settings record) and a `Collection` (objects with identities).

A kind declares each part as one of them. The defaults are those of a plain collection; a kind whose endpoint differs
overrides them with small pure functions. Requests are values; this module sends none.
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
    """A response that may lack values that the comparison with the manifest needs.

    Attributes:
        reader: reads the missing values.
        target: the target of the response.
        answer: the settings record, or the list with all its pages.
        wanted: the declared fields as JSON: of a settings record, or of each item by its name.
    """

    reader: Reader
    target: Target
    answer: Json
    wanted: Mapping[Any, Any]


@dataclass(frozen=True, slots=True)
class Siblings:
    """The objects of a collection whose fields refer to one another.

    Attributes:
        live: the live objects, by ID and by the identity of each name that they will have.
        created: by identity, the names of the objects that this run creates earlier.
        deleted: the `id()` of each record that this run deletes.
        above: by field and identity, the object to which each object will refer; empty if only a part of a plan is
            known.
        below: by field and identity, the number of objects that will refer to each object.
        circular: the keys of `above` from which references lead back to the same key.
        words: by field of `Relations.vocabularies`, the names that any object has in it.
        covers: by identity of an object, the cover that an earlier run has left behind: see `Cover`.
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
        """Return the siblings of a collection; `renamed` has new names by ID."""
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
        """Return the live objects with a name or an ID."""
        return self.live.get(name if isinstance(name, int) else self.identity(name), ())

    def id_of(self, name: Key) -> Json:
        """Return the ID of an object; for an object that this run creates, the placeholder for its ID in a body."""
        if isinstance(name, int):
            return name
        return next((record.id for record in self.named(name)), {CREATED: self.created.get(self.identity(name))})


CREATED = "created"
"""The key of a placeholder in a request's body: for the ID of an object that the same run creates, by its name."""

SECTION = "section"
"""A further key of the placeholder: the section, if the object is of another section of the target."""

OWNER = "of"
"""A further key of the placeholder: the target above, if the object is not of the target itself."""

NO_SIBLINGS = Siblings()


@dataclass(frozen=True, slots=True)
class FieldIds:
    """The IDs of the subjects that the fields of an object name.

    Attributes:
        numbers: the IDs of the users, groups and keys that entries name; see `Relations.entries`.
        named: by field and name, the IDs of the objects that other fields name, or placeholders; see `Relations.named`.
        remarks: hints about some of the subjects.
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
        target: the target that will have the object.
        path: of the collection, for writes.
        name: the object's name.
        wanted: the declared fields.
        target_id: the numeric ID of the target that the name refers to; None if names are just names, or if the same
            run creates that target.
        siblings: the other objects, if objects refer to one another.
        ids: the IDs of the subjects that its fields name.
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
        """The second request of a creation, for a state that a new object does not have at once."""
        writes = self.part.writes
        initial, *others = writes.events or (None,)
        state = getattr(self.wanted, STATE, initial)
        return (Request(writes.method, f"{self.path}/{{id}}", writes.event(state)),) if state in others else ()

    @property
    def new_name(self) -> dict[str, Json]:
        """The name under its field; for a name that refers to a target, the ID, or the placeholder for it."""
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
        target: the target that has the object.
        path: of the collection, for writes.
        name: the declared name.
        wanted: the declared fields that differ; none for an object to be deleted.
        found: the live object.
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
        """The declared name under its field; empty if the name does not change."""
        canonical = self.part.names.canonical
        live_names = {canonical(name) for name in self.found.names}
        return {} if canonical(self.name) in live_names else {self.part.key: _as_sent(self.name)}

    def anew(self) -> New:
        """Return a new object equal to the updated one, for services that cannot update it."""
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
    """Return the set fields as JSON, without policies, which no object has."""
    return wanted.model_dump(mode="json", include=wanted.model_fields_set - POLICIES)


BLANKS = " \t\n\v\f\r\0"
"""The characters that the service strips from the ends of a name (deployed behaviour, section 5)."""


def stripped(name: str) -> str:
    """Return a name as the service stores it."""
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
    """Return the requests that replace an object that cannot be updated, with a cover that protects meanwhile."""
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
    """Return a number for an object without an ID, computed from its name."""
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
    """One settings record of a target: it always exists, is read with one GET and updated with one request.

    Attributes:
        name: the part's name, unique within its kind.
        title: the word for the settings.
        suffix: the path below the target's.
        model: of the record, for the default of `decode`.
        shown_as: fields that the service shows under another name.
        decode: parses the service's response, if not field by field.
        body: returns the body of an update, given the declared fields that differ, and the live record; by default
            these fields.
        method: of the update.
        complete: reads missing values, and returns the response with them; None if no value is ever missing.
        whole: whether an update sends undeclared fields too, as they were read.
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
        """Parse the service's response.

        Raises:
            ArithmeticError, AttributeError, LookupError, TypeError, ValueError: the response has another structure.
        """
        return self.decode(target, answer) if self.decode else _by_fields(self.model, self.shown_as, answer)

    def update(self, target: Target, wanted: Resource, record: LiveRecord) -> Requests:
        """Return the request that updates a live record to the declared fields."""
        return (Request(self.method, self.path(target), self.body(wanted, record)),)


@dataclass(frozen=True, slots=True)
class Listing:
    """A list that shows more, or less, than the objects of its target.

    Attributes:
        query: of the list, without the question mark; by level if it differs.
        shown_as: fields that the service shows under another name.
        complete: reads missing values, and returns all entries with them; None if no value is ever missing.
        holder: takes an entry of the list; returns the group or project above or below the target that has the object;
            None for an object of the target itself.
        unique_below: whether a name in a group blocks the name in all groups and projects below it too.
        inherits: whether the objects of the groups above apply too, beside the target's own of the same name: the list
            shows them, and `holder` distinguishes them.
        has_pages: whether the service divides the list into pages; if not, one response without headers about pages is
            the whole list.
        needs_numeric_id: whether its path needs the target's own numeric ID.
        hides: a sentence about objects that count for `Writes.most` and that the list does not show: for a plan that
            reaches this number, and for a refusal of the service.
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
        canonical: returns the form in which two spellings of one name are equal.
        error: returns the fault of a name and the correction; None for a valid name. Blank names, and names longer than
            255 characters, are refused before.
        warning: returns the reason for which some servers refuse a name for this target; None without one.
        level: the level of the targets whose paths or IDs the names are, or None if names are just names.
        lowers_placeholders: whether placeholders such as `{path}` are filled in in lower case within names.
        taken: the remedy if a name is taken although no listed object has it; empty if that is impossible.
        fixed: the names of special objects, of which a target has one each: they are not renamed, and no other object
            gets such a name.
        rules: yields each declared field that is not allowed for the name, and the reason. The last argument is whether
            the fields are all that a new object will have.
        leads_to: returns whether a path with the first name may lead to an object of the second one, if the service
            does not compare whole names: of several, it takes the one with the lowest ID. None if it compares whole
            names.
        arrange: for objects that are named by their position, which changes as others are added or removed: returns the
            declared objects under the names of live ones. None if objects have names.
        exchangeable: whether objects can exchange their names, one of which has a name of ours meanwhile. These names
            are free text, and protect nothing.
        who: the kind of subject that the objects are in the lists of rules; None if no rule names them.
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
    """An object that protects in place of another one while that one is replaced.

    A run that is killed leaves the cover behind, and the next run removes it after the replacement; its name shows to
    which object it belongs.

    Attributes:
        suffix: the end of its name, after the name of the covered object: nobody else writes such a name.
        fields: the fields of the cover.
    """

    suffix: str
    fields: Resource

    def name(self, name: Key) -> str:
        """Return the name of the cover of an object."""
        return f"{name}{self.suffix}"

    def is_one(self, name: Key, resource: Resource) -> bool:
        """Return whether an object has the name and the fields of a cover."""
        fields = self.fields.model_fields_set
        is_alike = all(getattr(resource, field) == getattr(self.fields, field) for field in fields)
        return is_alike and str(name).endswith(self.suffix) and str(name) != self.suffix

    def covered(self, record: LiveRecord) -> str:
        """Return the name of the object that an object covers; empty if it is no cover."""
        name = record.names[0]
        return str(name).removesuffix(self.suffix) if self.is_one(name, record.resource) else ""


@dataclass(frozen=True, slots=True)
class Writes:
    """The requests that create and update the objects of a collection.

    Attributes:
        create: returns the requests that create an object, if not one POST of its name and fields; None if this API
            cannot create one.
        creation: the other way to create objects, if this API cannot.
        update: returns the requests that update an object, or promote it (see `LiveRecord.below`), if not one with the
            fields that differ; None if objects have no fields.
        method: of that request.
        suffix: the path of the objects below the target's, if it is not that of the list.
        needs_numeric_id: whether paths need the target's own numeric ID.
        required: the fields that a creation needs.
        immutable: the fields that no update can change.
        events: by value of the field `state`, the event that leads to it, if only events change the state; the first is
            the state of new objects.
        most: the number of objects that a target may have; 0 for any number. At the limit, an object to be deleted is
            updated to one to be created.
        promotion: the path of the request that turns an object of a project into one of the group, with `{project}` and
            `{id}`; empty if there is no such request.
        renames: whether an update can change the name; if not, a renamed object is created anew, and then deleted.
        once: whether a request must not be repeated after a lost response, since it may concern another object then.
        defaults: by field, the service's default for a creation without the field, in words.
        cover: protects while an object that no request can change is deleted and created again; None if requests can.
        keepers: the field with the entries that alone may change, delete or create an object; empty if only the role
            in the target counts.
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
        """Return whether an update creates another object in place of the present one."""
        return self.cover is not None or (renamed and not self.renames and self.create is not None)

    def event(self, new_state: str) -> dict[str, Json]:
        """Return the body that leads to a state."""
        return {"state_event": self.events[new_state]}


@dataclass(frozen=True, slots=True)
class Deletion:
    """The deletion of the objects of a collection.

    Attributes:
        requests: returns the requests that delete an object, if not one DELETE.
        suffix: the path below the target's at which objects are deleted, if it is not that of their updates.
        prunable: whether `prune` may delete undeclared objects.
        fades: whether the service deletes objects in the background, so that one may be listed for a while.
        lost: the data that an object loses if it is deleted and created again, such as its comments.
    """

    requests: Callable[[Existing], Requests] = _delete
    suffix: str = ""
    prunable: bool = True
    fades: bool = False
    lost: str = ""


@dataclass(frozen=True, slots=True)
class Named:
    """A field with names where requests have IDs: of groups, of the entries of a list, or of another section's objects.

    A name without an ID is a problem before anything is written, since services drop unknown names without a word.

    Attributes:
        shown: the key of the list of records in the service's record of an object.
        sent: the key of the list of IDs in requests.
        key: the field of such a record that has the name.
        within: the path below the target's of the list of all possible names, which is read only for names that no
            object shows; empty for groups, each of which is looked up once a run.
        section: the section whose objects are named; empty if they belong to none. Objects that the same run creates
            count, and objects that it deletes do not.
        unknown: the reason for which a name is not in the list, with `{name}`.
        remedy: the fix for an unknown name.
        unlisted: the fix if the list cannot be read.
        hides: the key that shows that there are further objects, which this token cannot see; an update of the list
            keeps them. Empty if all are shown.
        bare: the state of an object without any named objects, if that changes its meaning: a plan reports each object
            that loses all of them by a deletion. Empty if its meaning is the same.
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
        """Parse the records of the objects that an object names.

        Raises:
            AttributeError, LookupError, TypeError: a record has another structure.
        """
        numbers = [(self.canonical(record[self.key]), record["id"]) for record in json_records]
        if not all(type(number) is int and isinstance(name, str) for name, number in numbers):
            raise TypeError(numbers)
        return tuple(entries.EntryRow(number, name) for name, number in numbers)


@dataclass(frozen=True, slots=True)
class Relations:
    """The references of objects to others.

    Attributes:
        refers: the fields that refer to another object of the collection, by its name or its ID. An ID in a response
            becomes the name, if no other object has it. Objects are written after those to which they refer.
        reversed: returns whether an object is written before the one to which it refers, and before all others.
        vocabularies: the fields whose names must be in another list, each with the path of that list below the
            target's. The list is read only for a declared name that no object of the collection has yet.
        entries: the fields with `Entries`, each with the key of the list in the service's record. An update adds and
            removes entries by their IDs.
        named: the fields with names where requests have IDs. Such a list is sent whole.
        flaw: takes the name and the future fields of an object, and its live object, if there is one; returns the
            reason for which the object has no effect, since none of the named subjects can act; empty without one.
    """

    refers: tuple[str, ...] = ()
    reversed: Callable[[Resource], bool] = lambda _resource: False
    vocabularies: Mapping[str, str] = field(default_factory=dict)
    entries: Mapping[str, str] = field(default_factory=dict)
    named: Mapping[str, Named] = field(default_factory=dict)
    flaw: Callable[[Key, Mapping[str, Json], LiveRecord | None], str] = lambda _name, _fields, _live: ""


@dataclass(frozen=True, slots=True)
class Access:
    """Objects that grant access: plans report undeclared ones.

    Attributes:
        secret: the field of the response to a creation that has a secret, which is delivered and never shown; empty
            without a secret.
        is_complete: returns whether the value of that field is complete, as it is shown to its owner.
    """

    secret: str = ""
    is_complete: Callable[[str], bool] = bool


@dataclass(frozen=True, slots=True)
class Collection:
    """Objects of one target that are listed, created, updated and deleted one by one.

    Attributes:
        name: the part's name, unique within its kind.
        model: of one object.
        title: the word for one object.
        suffix: the path of the collection below the target's; by default the part's name.
        key: the field with an object's name; if names refer to targets, the field of a creation.
        id_field: the field with an object's ID; empty if objects have no IDs.
        path_field: the field that names an object in paths, if not the ID.
        decode: parses one entry of the list, if not field by field. ID, owner and, unless `decode` has set them, names
            are added.
        page: the web page of an object, below that of its target, with `{iid}` for its number in the target.
        listing: the list, if it does not show exactly the objects of the target.
        names: of the objects, if they are not just unique texts.
        writes: if the service needs other requests than a POST of the name and fields, and a PUT of those that differ.
        deletion: if the service needs more than a DELETE.
        relations: of the objects to others.
        access: that the objects grant; None if they grant none.
        losses: returns the data that are deleted with an object, according to its entry: a clause each, in which "it"
            is the object. They do not name the object, so that they are equal for many; no request is made for them.
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
        """Whether planning one object needs the others."""
        return bool(self.relations.refers or self.relations.vocabularies or self.writes.cover)

    @property
    def secret_field(self) -> str:
        """The field of the response to a creation that has a secret; empty without a secret."""
        return self.access.secret if self.access else ""

    def path(self, target: Target) -> str:
        """Return the path of a target's list."""
        query = self.listing.query
        query = query if isinstance(query, str) else query[target.level]
        return target.url + self.suffix + (f"?{query}" if query else "")

    def read(self, target: Target, entry: Json) -> LiveRecord:
        """Parse one entry of the list.

        Raises:
            ArithmeticError, AttributeError, LookupError, TypeError, ValueError: the entry has another structure.
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
        """Return the owner of an object with a secret: the owner and administrators see the complete secret."""
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
        """Return the set fields that have entries, with the entries."""
        names = [name for name in self.relations.entries if name in resource.model_fields_set]
        return [(name, getattr(resource, name)) for name in names]

    def named_in(self, resource: Resource) -> Iterator[tuple[str, Named, tuple[str, ...]]]:
        """Yield the set fields with a list of names, and the names; a field with a word for all objects is skipped."""
        for name, named in self.relations.named.items():
            value = getattr(resource, name) if name in resource.model_fields_set else None
            if isinstance(value, tuple):
                yield name, named, value

    def with_ids(self, fields: dict[str, Json], field_ids: FieldIds) -> dict[str, Json]:
        """Return fields as requests have them: IDs under their own key in place of names."""
        lists = {name: fields.pop(name) for name in self.relations.named if isinstance(fields.get(name), list)}
        named = self.relations.named
        return fields | {
            named[field].sent: [number for name in names for number in field_ids.named[field, name]]
            for field, names in lists.items()
        }

    def number(self, fields: Mapping[str, Json]) -> Json:
        """Return the ID of an object, or the number that replaces an ID.

        Raises:
            KeyError: the service does not show it.
        """
        return fields[self.id_field] if self.id_field else number_of(fields[self.key])

    def page_of(self, record: LiveRecord) -> str:
        """Return the web page of an object, below that of its target.

        Empty if it is unknown, or the object is below another one.
        """
        return "" if record.iid is None or record.below else self.page.format(iid=record.iid)

    def objects(self, target: Target, answer: Iterable[Json]) -> Objects:
        """Parse a list.

        Raises:
            ArithmeticError, AttributeError, LookupError, TypeError, ValueError: an entry has another structure.
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
        # the service refuses a title that the group or a group above it has
        promotable = {name: _promotable(candidates) for name, candidates in below.items() if name not in others}
        return Objects(self.with_names(tuple(own)), taken, promotable, tuple(inherited), tuple(hidden))

    def with_names(self, own_objects: tuple[LiveRecord, ...]) -> tuple[LiveRecord, ...]:
        """Return objects whose references are names instead of IDs, if only one object has the name."""
        if not self.relations.refers:
            return own_objects
        names = self.unique_name_of(own_objects)
        return tuple(replace(record, resource=self.referring(record.resource, names)) for record in own_objects)

    def unique_name_of(self, live: Sequence[LiveRecord]) -> dict[Key, Key]:
        """Return, by ID, the names that only one object has."""
        by_name: dict[Key, list[LiveRecord]] = {}
        for record in live:
            by_name.setdefault(self.identity(record.names[0]), []).append(record)
        return {record.id: record.names[0] for record, *others in by_name.values() if record.id and not others}

    def referring(self, resource: Resource, replacements: Mapping[Key, Key]) -> Resource:
        """Return a resource with some references replaced."""
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
    # by IDs, so that each run promotes the same object
    ordered = sorted(numbered_records, key=lambda namesake: namesake[:2])
    owner_id, _, _, record = ordered[0]
    return replace(record, owner_id=owner_id, below=tuple(dict.fromkeys(name for _, _, name, _ in ordered)))


def _by_fields(model: type[Resource], shown_as: Mapping[str, str], answer: Json) -> LiveRecord:
    """Parse a response field by field. Servers may be older or newer than this version: a field may be missing."""
    if not isinstance(answer, dict):
        raise TypeError(answer)
    names = {name: shown_as.get(name, name) for name in model.model_fields if name not in POLICIES}
    shown = {name: answer[alias] for name, alias in names.items() if alias in answer}
    # without a single known field, the response is no record at all
    if names and not shown:
        raise KeyError(next(iter(names.values())))
    resource, unknown = recognized(model, shown)
    return LiveRecord(resource, read_only={name: NOT_HERE for name in names if name not in shown}, unknown=unknown)


def _text(value: Json) -> str | None:
    """Return a value that is text; None for any other."""
    return value if isinstance(value, str) else None


def _moment(value: Json) -> datetime | None:
    """Parse a time, in UTC if it has no time zone; None without a time."""
    if not isinstance(value, str):
        return None
    try:
        when = datetime.fromisoformat(value)
    except ValueError:
        return None
    return when if when.tzinfo else when.replace(tzinfo=UTC)
