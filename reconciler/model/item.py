"""Items: a plan is a flat list of items. An item is a change, or a finding about the target, the run or an object.

A report is the same list with the outcomes of its changes. Sentences about a change are in its notes; sentences about
anything else are findings: both have a code of `model.codes`, so that formats need to know none of them by name. Begin
with `Create`, `Finding` and `Note`.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from datetime import date, datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, ClassVar, Literal, TypeGuard, cast, get_args

from pydantic import AfterValidator
from typing_extensions import TypedDict

from reconciler.model.diff import AsRead, Fields
from reconciler.model.protocols import Json, Request
from reconciler.model.targets import Address, Key, Target
from reconciler.model.values import empty_of, value

Action = Literal["create", "update", "delete"]

ACTIONS: tuple[Action, ...] = get_args(Action)
"""In the order in which the changes of a section are carried out."""

Source = Literal["change", "service", "pending"]
"""Why a difference is there: the manifests have changed since the revision of `--since`; somebody has changed the
service since the target was applied; or manifests were merged and not applied."""

Effect = Literal["loosens", "tightens", "both"]
"""What a change does to protection."""

EFFECT_WORDS: Mapping[Effect, str] = {"loosens": "loosens", "tightens": "tightens", "both": "loosens and tightens"}
"""By effect, the reason of its note."""

ON_SERVICE = "on the service"

BY_HAND_WORDS: Mapping[Effect, str] = {
    "loosens": f"tightened {ON_SERVICE}",
    "tightens": f"loosened {ON_SERVICE}",
    "both": f"loosened and tightened {ON_SERVICE}",
}
"""By the effect of undoing a change by hand, the reason of the note that says what that change did."""

EFFECT_VERBS = ("loosens", "tightens", "loosened", "tightened")
"""In the order in which they are said."""

RESULT_UNKNOWN = "the run was interrupted; the result is unknown"
RUN_ENDED = "the run ended before this change"
"""The reasons of the outcomes that a signal leaves."""

NOTHING: Mapping[str, Json] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence about a change, or a fact about it that programs read.

    Attributes:
        code: a row of `model.codes`; readers may meet codes that they do not know.
        reason: the sentence; empty if there are only data.
        data: see the `TypedDict` of the code below.
    """

    code: str
    reason: str = ""
    data: Mapping[str, Json] = dataclass_field(default_factory=lambda: NOTHING)


@dataclass(frozen=True, slots=True)
class Create:
    """An object that does not exist and will be created.

    Attributes:
        address: where, and the name it will have.
        after: the declared fields.
        requests: in the order in which they are sent.
        target_id: the numeric ID of the project or group that the name refers to, if any.
        replaces_ids: the IDs of live objects of the same name that this one succeeds.
        delivers: whether the response holds a secret, which goes to the token sink.
        notes: what is said about it.
        origin: where the manifests declare it, or its section, as path:line; empty if unknown.
    """

    action: ClassVar[Literal["create"]] = "create"
    address: Address
    after: Fields
    requests: tuple[Request, ...]
    target_id: int | None = None
    replaces_ids: tuple[int, ...] = ()
    delivers: bool = dataclass_field(default=False, compare=False)
    notes: tuple[Note, ...] = dataclass_field(default=(), compare=False)
    origin: str = dataclass_field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Update:
    """An object, or a settings section, some of whose fields will change.

    Attributes:
        address: where, and the name it will have.
        before: the fields that change, as they were read; without unknown ones, as in what does not exist yet.
        after: the same fields, as they will be.
        requests: in the order in which they are sent.
        read: the whole object, as it was read.
        renamed_from: the name before, or None if the name stays.
        notes: what is said about it.
        origin: where the manifests declare it, or its section, as path:line; empty if unknown.
        declared: of a record that is written whole, all fields that are declared; no file has it.
    """

    action: ClassVar[Literal["update"]] = "update"
    address: Address
    before: Fields
    after: Fields
    requests: tuple[Request, ...]
    read: AsRead
    renamed_from: Key | None = None
    notes: tuple[Note, ...] = dataclass_field(default=(), compare=False)
    origin: str = dataclass_field(default="", compare=False)
    declared: Fields = dataclass_field(default_factory=lambda: NOTHING, compare=False)


@dataclass(frozen=True, slots=True)
class Delete:
    """An object that exists and will be deleted.

    Attributes:
        address: where, and its name.
        before: all its fields, as they were read.
        requests: in the order in which they are sent.
        read: the whole object, as it was read.
        successor_id: the ID of the token that has succeeded it, whose value is delivered before this one is deleted.
        notes: what is said about it.
        origin: where the manifests declare it, or its section, as path:line; empty if unknown.
    """

    action: ClassVar[Literal["delete"]] = "delete"
    address: Address
    before: Fields
    requests: tuple[Request, ...]
    read: AsRead
    successor_id: int | None = None
    notes: tuple[Note, ...] = dataclass_field(default=(), compare=False)
    origin: str = dataclass_field(default="", compare=False)


Change = Create | Update | Delete


@dataclass(frozen=True, slots=True)
class Keep:
    """Something declared that is in order.

    Attributes:
        address: of an object; of a settings section below a group that the plan changes, that of the section.
        id: the ID of the object; None for a settings section.
        after: of such a section, its declared fields: it is planned again after the group was changed.
        prune: whether its section is authoritative.
        adopted: whether it is an object that the inventory has never listed: somebody else may have created it.
        owner: the username of its owner, if that is somebody else and the service shows it.
        at_least: the fields of such a section that may be stricter.
    """

    address: Address
    id: int | None = None
    after: Fields = dataclass_field(default_factory=lambda: NOTHING)
    prune: bool = False
    adopted: bool = False
    owner: str = ""
    at_least: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """Anything that a plan says and does not do.

    Attributes:
        where: the target, section or object that it is about; None for the run.
        code: a row of `model.codes`; readers may meet codes that they do not know.
        reason: a sentence, or the part of one that follows the object's name.
        fix: what to do; empty if the reason contains it, or there is nothing to do.
        field: the field that it is about; None for the whole object.
        data: see the `TypedDict` of the code below.
        origin: where the manifests declare it, as path:line; empty if unknown.
    """

    where: Address | None
    code: str
    reason: str
    fix: str = ""
    field: str | None = None
    data: Mapping[str, Json] = dataclass_field(default_factory=lambda: NOTHING)
    origin: str = ""

    @property
    def address(self) -> Address:
        """The address; a finding about the run has none."""
        return cast("Address", self.where)


class Status(StrEnum):
    """The outcome of a change, in a word."""

    DONE = "done"
    FAILED = "failed"
    STALE = "stale"
    SKIPPED = "skipped"
    DROPPED = "dropped"

    @property
    def words(self) -> str:
        """The outcome in words."""
        return "dropped by the service" if self is Status.DROPPED else str(self)


@dataclass(frozen=True, slots=True)
class Outcome:
    """A change and its result.

    Attributes:
        change: as in the plan.
        status: the outcome.
        reason: the reason if it is not done, was not verified, or was done by an earlier run; else empty.
        created: the object that it created, as it was read afterwards or, unverified, as it was sent; None if none or
            unknown.
        unconfirmed: whether a change that failed may have been carried out, wholly or in part.
    """

    change: Change
    status: Status
    reason: str = ""
    created: AsRead | None = None
    unconfirmed: bool = False

    @property
    def may_be_done(self) -> bool:
        """Whether the change was carried out, or may have been, wholly or in part."""
        return self.unconfirmed or self.status in (Status.DONE, Status.DROPPED)

    @property
    def word(self) -> str:
        """The outcome in a word: `created`, `updated`, `deleted`, or `failed` and the other statuses."""
        return f"{self.change.action}d" if self.status is Status.DONE else str(self.status)


Item = Change | Outcome | Keep | Finding


def _is_moment(text: str) -> str:
    if datetime.fromisoformat(text).tzinfo is None:
        raise ValueError("has no time zone")
    return text


def _is_day(text: str) -> str:
    date.fromisoformat(text)
    return text


Moment = Annotated[str, AfterValidator(_is_moment)]
"""Such as `2026-12-01T10:00:00Z`."""

LastDay = Annotated[str, AfterValidator(_is_day)]
"""Such as `2026-12-01`."""


class PageData(TypedDict):
    """The data of a note `page`."""

    page: str
    """The web page of the object, below that of the target, such as `-/milestones/3`."""


class SourceData(TypedDict):
    """The data of a note `source`."""

    source: Source
    """`change` if the manifests declare it otherwise than the revision of `--since`. Else `service` if that was
    applied as declared, and was changed on the service since; `pending` if it was merged and not applied."""


class ChangedByData(TypedDict):
    """The data of a note `changed_by`."""

    name: str
    """Who made what is live, as people see it; of the token of a project or a group, that of its bot."""
    time: Moment
    """When, UTC."""


class EffectData(TypedDict):
    """The data of a note `effect`."""

    effect: Effect
    """What the change does to protection."""
    by_hand: bool
    """Whether the sentence is about the change by hand that this one undoes, as in the report of `drift`."""


class UnusedNamesData(TypedDict):
    """The data of a note `unused_names`."""

    names: list[Key]
    """The declared former names, none of which is live."""


class AtLeastData(TypedDict):
    """The data of a note `at_least`."""

    fields: list[str]
    """The fields of the object that are minimums: what is stricter on the service stays as it is."""


class ExceptedData(TypedDict):
    """The data of a finding `excepted`."""

    action: Action | None
    """The change that is held back; null for something that could not be planned either."""
    before: dict[str, Json]
    """The excepted fields, as they were read; of a deletion, all fields."""
    after: dict[str, Json]
    """The excepted fields, as they are declared."""
    until: LastDay
    """The last day, UTC; of several exceptions, the first to end."""


class UnmanagedData(TypedDict):
    """The data of a finding `unmanaged`."""

    id: int | None
    """Its numeric ID, if it has one."""
    grants_access: bool
    """Whether somebody or something has access because of it."""
    owner: str | None
    """Username of its owner; null if unknown."""
    last_used: str | None
    """When it was last used, as the service reports it; null if unknown."""


class InheritedData(TypedDict):
    """The data of a finding `inherited`."""

    holder: str
    """Who has it, such as `a group above`."""


class RestoredData(TypedDict):
    """The data of a finding `restored`: something declared that was changed on the service and put back."""

    before: Json
    """The value before and after; of a whole object, whether it was there."""
    meanwhile: Json
    """The value in between; of a whole object, whether it was there."""
    changed_by: ChangedByData
    """Who changed it, and when."""
    restored_by: ChangedByData
    """Who put it back, and when."""


class RenameData(TypedDict):
    """The data of a finding `rename`: an item that looks like the new name of an object that is deleted."""

    section: str
    """The section's name."""
    title: str
    """The word for such an object, such as `milestone`."""
    name: str
    """The name of the item, as the manifest writes it."""
    renamed_from: list[str]
    """The name to declare as `renamed_from` of the item, as the manifest would write it."""
    targets: int
    """The number of targets in which the object is deleted and created."""


DATA: Mapping[str, type] = {
    "at_least": AtLeastData,
    "changed_by": ChangedByData,
    "effect": EffectData,
    "excepted": ExceptedData,
    "inherited": InheritedData,
    "page": PageData,
    "rename": RenameData,
    "restored": RestoredData,
    "source": SourceData,
    "unmanaged": UnmanagedData,
    "unused_names": UnusedNamesData,
}
"""The data of notes and findings, by their codes; those of other codes have none."""


@dataclass(frozen=True, slots=True)
class ChangedBy:
    """The author of a live value, according to the audit events of the service.

    Attributes:
        name: the display name; for the token of a project or a group, that of its bot.
        time: UTC.
    """

    name: str
    time: datetime

    @property
    def data(self) -> Mapping[str, Json]:
        """The data of a note; see `ChangedByData`."""
        return {"name": self.name, "time": self.time.isoformat().replace("+00:00", "Z")}

    @classmethod
    def of(cls, data: Mapping[str, Json]) -> "ChangedBy":
        """Read the data of a note."""
        return cls(data["name"], datetime.fromisoformat(data["time"]))


def problem_at(where: Address, reason: str, field: str | None = None, fix: str = "", origin: str = "") -> Finding:
    """Return the problem of a declaration that cannot be planned; see `Finding`."""
    return Finding(where, "problem", reason, fix, field, origin=origin)


def excepted_at(
    where: Address, action: Action | None, before: Fields, after: Fields, *, until: date, reason: str, origin: str = ""
) -> Finding:
    """Return a change that exceptions hold back: it is not made before they have expired. See `ExceptedData`.

    Args:
        where: the object.
        action, before, after, until: see `ExceptedData`.
        reason: why the deviation is accepted.
        origin: where the manifests declare the exception.
    """
    data = {"action": action, "before": dict(before), "after": dict(after), "until": str(until)}
    return Finding(where, "excepted", reason, data=data, origin=origin)


def unmanaged_at(
    where: Address,
    number: int | None = None,
    grants_access: bool = False,
    owner: str | None = None,
    last_used: str | None = None,
) -> Finding:
    """Return the finding about a live object that no manifest declares, and that is not changed."""
    known = {"ID": number, "owner": owner, "last used": last_used}
    facts = ", ".join(f"{name} {value}" for name, value in known.items() if value is not None)
    data = {"id": number, "grants_access": grants_access, "owner": owner, "last_used": last_used}
    return Finding(where, "unmanaged", f"is unmanaged{facts and f': {facts}'}", data=data)


def not_applicable_at(target: Target, section: str, reason: str) -> Finding:
    """Return a finding about a section that is left out, since its target cannot have it."""
    return Finding(Address(target, section, section, section), "not_applicable", reason)


def hints(*sentences: str) -> Iterator[Note]:
    """Yield a note for each sentence that is not empty: a doubt about a change, or where it comes from."""
    return (Note("hint", sentence) for sentence in sentences if sentence)


def pages(page_path: str) -> Iterator[Note]:
    """Yield a note with the web page of an object, below that of its target; none if it has none."""
    if page_path:
        yield Note("page", data={"page": page_path})


def unused_names(former_names: Sequence[Key]) -> Iterator[Note]:
    """Yield a note that nothing has one of the declared former names, if there are any."""
    if former_names:
        called = " or ".join(json.dumps(str(name), ensure_ascii=False) for name in former_names)
        yield Note("unused_names", f"nothing named {called} to rename", {"names": list(former_names)})


def minimum_notes(after: Fields, at_least: Collection[str]) -> Iterator[Note]:
    """Yield a note on a change of an object that has minimums.

    Args:
        after: the fields of the change.
        at_least: the minimums of the object, in the change or not.
    """
    changed = [name for name in after if name in at_least]
    words = ", ".join(changed)
    if len(changed) == len(after):
        words = "so" if len(after) > 1 else "".join(value(after[name], empty=empty_of(name)) for name in changed)
    if at_least:
        yield Note("at_least", f"at least {words}" if changed else "", {"fields": sorted(at_least)})


def minimums_of(change: Change) -> frozenset[str]:
    """Return the fields of an object that may be stricter than declared; see `AtLeastData`."""
    return frozenset(name for note in notes_of(change, "at_least") for name in note.data["fields"])


def with_note(change: Change, code: str, data: Mapping[str, Json] | None) -> Change:
    """Return a change whose only note of a code has these data; None for no such note."""
    others = tuple(note for note in change.notes if note.code != code)
    return replace(change, notes=others if data is None else (*others, Note(code, data=data)))


def with_effect(change: Change, effect: Effect | None, *, by_hand: bool = False) -> Change:
    """Return a change whose only note of its effect on protection is this one; None for no effect.

    Args:
        change: the change.
        effect: its effect.
        by_hand: whether the note is about the change by hand that this one undoes, which had the opposite effect.
    """
    others = tuple(note for note in change.notes if note.code != "effect")
    if effect is None:
        return replace(change, notes=others)
    words = (BY_HAND_WORDS if by_hand else EFFECT_WORDS)[effect]
    return replace(change, notes=(*others, Note("effect", words, {"effect": effect, "by_hand": by_hand})))


def effect_of(change: Change) -> Effect | None:
    """Return the effect of a change on protection; None for no effect, or where it is unknown."""
    return next((cast("EffectData", note.data)["effect"] for note in notes_of(change, "effect")), None)


def is_undoing(change: Change) -> bool:
    """Return whether the note of the effect of a change is about a change by hand that it undoes."""
    return any(cast("EffectData", note.data)["by_hand"] for note in notes_of(change, "effect"))


def effect_verbs(change: Change) -> frozenset[str]:
    """Return the verbs for the effect of a change: some of `EFFECT_VERBS`; those in the past are about one by hand."""
    words = (word for note in notes_of(change, "effect") for word in note.reason.split())
    return frozenset(words).intersection(EFFECT_VERBS)


def loosens(change: Change) -> bool:
    """Return whether a change loosens protection, whatever else it does; or the change by hand that it undoes did."""
    return not effect_verbs(change).isdisjoint(("loosens", "loosened"))


def notes_of(change: Change, code: str) -> Iterator[Note]:
    """Yield the notes of a change that have a code."""
    return (note for note in change.notes if note.code == code)


def sentences(change: Change, code: str) -> tuple[str, ...]:
    """Return the sentences of the notes of a change that have a code."""
    return tuple(note.reason for note in notes_of(change, code))


def page_of(change: Change) -> str:
    """Return the web page of the object of a change, below that of its target; empty if it has none or is unknown."""
    return "".join(cast("PageData", note.data)["page"] for note in notes_of(change, "page"))


def source_of(change: Change) -> Source | None:
    """Return the source of a difference; None if it is unknown."""
    return next((cast("SourceData", note.data)["source"] for note in notes_of(change, "source")), None)


def changed_by(change: Change) -> ChangedBy | None:
    """Return the author of the live value that differs; None if it was not looked up or not recorded."""
    return next((ChangedBy.of(note.data) for note in notes_of(change, "changed_by")), None)


def makes(change: Change) -> TypeGuard[Create | Update]:
    """Return whether a change makes an object with an ID of its own: a creation, a promotion, or a rename by both."""
    if isinstance(change, Update):
        return makes_anew(change) or bool(change.read.below)
    return isinstance(change, Create)


def makes_anew(update: Update) -> bool:
    """Return whether an update creates an object under another name, and deletes the old one."""
    return update.renamed_from is not None and update.requests[0].method == "POST"


def object_of(change: Change) -> tuple[str, str, int | None]:
    """Return the changed object, by section, part and ID; None if it does not exist yet, or has no ID."""
    address = change.address
    return address.section, address.part, None if isinstance(change, Create) else change.read.id


def is_about_run(item: Item) -> bool:
    """Return whether an item is about the run, and no target."""
    return isinstance(item, Finding) and item.where is None


def change_in(item: Item) -> Change | None:
    """Return the change of an item; None of anything else."""
    if isinstance(item, Outcome):
        return item.change
    return None if isinstance(item, Finding | Keep) else item


def changes_in(items: Iterable[Item]) -> Iterator[Change]:
    """Yield the changes among some items, planned or carried out."""
    for item in items:
        change = change_in(item)
        if change is not None:
            yield change


def target_of(item: Item) -> Target:
    """Return the target of an item, which is not about the run."""
    return address_of(item).target


def address_of(item: Item) -> Address:
    """Return the address of the subject of an item; an item about the run has none: see `is_about_run`."""
    return item.change.address if isinstance(item, Outcome) else item.address


def section_of(item: Item) -> str:
    """Return the section of an item; empty if it is about a target itself, or about the run."""
    if isinstance(item, Finding):
        return item.where.section if item.where else ""
    return item.change.address.section if isinstance(item, Outcome) else item.address.section
