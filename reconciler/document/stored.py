"""Documents to and from JSON: `reconciler.plan/v4` and `reconciler.report/v4`, flat, with a checksum.

Reading trusts no file: the checksum shows edits, and every request must lead to the target and part that its item is
about. The types here are the shapes of the JSON; their docstrings describe its keys in the schema.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from functools import cache
from typing import Annotated, Any, Literal, NotRequired

from pydantic import Discriminator, NonNegativeInt, Tag, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from reconciler.document.checksum import read_checked, with_checksum
from reconciler.document.document import PLAN, REPORT, Head, RunDocument
from reconciler.document.numbers import summary_of
from reconciler.errors import PlanRefused
from reconciler.model.creation import Namespace, creation_in, creation_of
from reconciler.model.diff import AsRead
from reconciler.model.endpoints import Collection
from reconciler.model.exceptions import DeclaredException
from reconciler.model.item import (
    DATA,
    NOTHING,
    Change,
    Create,
    Delete,
    Effect,
    Finding,
    Item,
    Keep,
    Note,
    Outcome,
    Status,
    Update,
    change_in,
    effect_of,
    is_about_run,
    is_undoing,
    section_of,
    target_of,
    with_effect,
)
from reconciler.model.kind import Kinds, Part
from reconciler.model.plan import Seen
from reconciler.model.protocols import Json, Method, Request
from reconciler.model.targets import PATHLESS, Address, Key, Level, Target


class StoredRequest(TypedDict):
    """One write, ready to send."""

    method: Method
    """The HTTP method."""
    path: str
    """Below the service's URL, percent-encoded; `{id}` is the ID that the change's first request returns."""
    body: dict[str, Json] | None
    """The JSON body, or null. `{"created": NAME}` in it is the ID of the object that a change before has created."""


class StoredRead(TypedDict):
    """An object, as it was read."""

    names: list[Key]
    """All its names; none for a settings section."""
    fields: dict[str, Json]
    """All its fields, as the service showed them."""
    read_only: NotRequired[dict[str, str]]
    """Fields that cannot be changed, each with the reason."""
    below: NotRequired[list[str]]
    """The targets below, such as `project acme/api`, that have it: the one of the first is promoted."""
    numbers: NotRequired[dict[Literal["user", "group"], dict[str, int]]]
    """The IDs of the users and groups that its lists name: another token may see the IDs alone."""


class StoredCreated(StoredRead):
    """The object that a change has created."""

    id: int | None
    """Its numeric ID, if it has one."""


class StoredNote(TypedDict):
    """A sentence about a change, or a fact about it."""

    code: str
    """The code, such as `hint`, `loss`, `page`, `source` or `changed_by`; more may come."""
    reason: str
    """The sentence; empty if there are only data."""
    data: NotRequired[dict[str, Json]]
    """The facts, by the code."""


class StoredOutcome(TypedDict):
    """What became of a change."""

    status: Literal["done", "failed", "stale", "skipped", "dropped"]
    """The outcome."""
    reason: str
    """Why it is not done, or was not read again; empty if neither is so."""
    created: NotRequired[StoredCreated]
    """The created object, as it was read afterwards or, unverified, as it was sent."""
    unconfirmed: NotRequired[bool]
    """Whether a failed change may have been carried out, completely or in part."""


class StoredAddress(TypedDict):
    """What an item is about."""

    target: str | None
    """Such as `project acme/api`, as `targets` has it; null about the run."""
    section: str
    """The section's name; empty for the target itself: its creation, and problems of all of it."""
    part: NotRequired[str]
    """Which of the section's endpoints, where it has several."""
    title: str
    """The word for such an object, such as `milestone`."""
    name: Key | None
    """The object's name; null for a settings section."""


class StoredChange(StoredAddress):
    """What every change has."""

    requests: list[StoredRequest]
    """The requests, in the order in which they are sent."""
    effect: NotRequired[Effect]
    """Whether it loosens protection, tightens it, or both; absent if it does neither, or an earlier version made the
    document."""
    notes: NotRequired[list[StoredNote]]
    """Further sentences about it."""
    origin: str
    """Where the manifests declare it, or its section, as path:line; empty if unknown."""
    outcome: NotRequired[StoredOutcome]
    """Its outcome; in a report."""


class StoredCreate(StoredChange):
    """An object that does not exist and will be created."""

    action: Literal["create"]
    """The object is created."""
    after: dict[str, Json]
    """The declared fields."""
    target_id: NotRequired[int]
    """The numeric ID of the project or group that the name refers to."""
    replaces_ids: NotRequired[list[int]]
    """The IDs of live objects of the same name that this one succeeds."""


class StoredUpdate(StoredChange):
    """An object, or a settings section, some of whose fields will change."""

    action: Literal["update"]
    """The object, or the settings section, is changed."""
    before: dict[str, Json]
    """The fields that change, as they were read; without unknown ones, as in a target that does not exist yet."""
    after: dict[str, Json]
    """The same fields, as they will be."""
    id: int | None
    """Its numeric ID, if it has one."""
    renamed_from: Key | None
    """The name before, or null if the name stays."""
    read: StoredRead
    """The whole object, as it was read."""


class StoredDelete(StoredChange):
    """An object that exists and will be deleted."""

    action: Literal["delete"]
    """The object is deleted."""
    before: dict[str, Json]
    """All its fields, as they were read."""
    id: int | None
    """Its numeric ID, if it has one."""
    successor_id: NotRequired[int]
    """The ID of the token that has succeeded it, whose value is delivered before this one is deleted."""
    read: StoredRead
    """The whole object, as it was read."""


class StoredKeep(StoredAddress):
    """Something declared that is in order."""

    action: Literal["keep"]
    """Nothing is done."""
    id: NotRequired[int]
    """The ID of the object."""
    after: NotRequired[dict[str, Json]]
    """The declared fields of a settings section below a group that this plan changes, which is planned again then."""
    prune: NotRequired[bool]
    """Whether its section is authoritative."""
    adopted: NotRequired[bool]
    """Whether it is an object that the inventory has never listed: somebody else may have created it."""
    owner: NotRequired[str]
    """Username of its owner, if that is somebody else and the service shows it."""
    at_least: NotRequired[list[str]]
    """Of such a section, the fields that may be stricter."""


class StoredFinding(StoredAddress):
    """Anything that a plan says and does not do."""

    finding: str
    """The code, such as `problem`, `not_applicable`, `excepted`, `unmanaged`, `inherited`, `hidden`, `widened`,
    `restored`, `rename` or `stays`; more may come."""
    field: str | None
    """The field that it is about; null for the whole object."""
    reason: str
    """A sentence, or the part of one that follows the object's name."""
    fix: str
    """The remedy; empty if the reason contains it, or there is nothing to do."""
    data: NotRequired[dict[str, Json]]
    """The facts, by the code."""
    origin: str
    """Where the manifests declare it, as path:line; empty if unknown."""


FINDING_TAG = "said"
"""The tag of a finding; `finding` is a key, so that a path that names it is not read as a tag's."""


def _sort_of(json_item: object) -> object:
    if not isinstance(json_item, dict):
        return None
    return json_item.get("action", FINDING_TAG if "finding" in json_item else None)


StoredItem = Annotated[
    Annotated[StoredCreate, Tag("create")]
    | Annotated[StoredUpdate, Tag("update")]
    | Annotated[StoredDelete, Tag("delete")]
    | Annotated[StoredKeep, Tag("keep")]
    | Annotated[StoredFinding, Tag(FINDING_TAG)],
    Discriminator(_sort_of, "item", "has neither an action nor a finding"),
]


class StoredException(TypedDict):
    """An exception of a target's document."""

    section: str
    """The section's name."""
    item: Key | None
    """The name of an object; null for the whole section."""
    fields: list[str]
    """The excepted fields; none for all of them, and for creations and deletions."""
    until: date
    """The last day, UTC."""
    reason: str
    """Why the deviation is accepted."""
    origin: str
    """Where the manifests declare it, as path:line."""


class StoredTarget(TypedDict):
    """One target that the run looked at."""

    target: str
    """Level and path or numeric ID, such as `project acme/api`; items name it."""
    level: Level
    """Its level."""
    ref: Key | None
    """Its full path or numeric ID, as manifests name it; null for the instance and for the user behind the token."""
    id: int | None
    """Its numeric ID; null if it is not known."""
    labels: dict[str, str]
    """Its labels, from `metadata.labels` of its document and of the sets that select it."""
    origin: str
    """Its manifest, as path:line."""
    sections: dict[str, NonNegativeInt | None]
    """Its declared sections, each with the number of objects that it held; null if it was not read."""
    path: NotRequired[str]
    """Its full path, where its manifest gives the ID and the path is known."""
    exceptions: NotRequired[list[StoredException]]
    """The exceptions of its document, expired ones included."""
    importing: NotRequired[bool]
    """Whether an import fills it, running already or started by its creation: `apply` waits for the end."""
    arriving: NotRequired[str]
    """The group (this one, or one above it) that an archive may still fill: `apply` waits before it creates there."""
    digest: NotRequired[str]
    """The digest of everything that is declared for it, where an inventory is kept."""
    again: NotRequired[date]
    """The first day (UTC) on which time alone changes the desired state, such as the day after an exception ends."""
    done: NotRequired[bool]
    """Whether everything that is declared for it is in order once the changes of the plan are done."""


class StoredLists(TypedDict):
    """What a document is about."""

    targets: list[StoredTarget]
    """The instance, then the user, then groups by depth, then projects."""
    items: list[StoredItem]
    """By target and section, as they are carried out; those about the run come last."""


class StoredNumbers(TypedDict):
    """What a plan does and says, in numbers."""

    create: int
    """How many objects are created."""
    update: int
    """How many objects and settings sections are changed."""
    delete: int
    """How many objects are deleted."""
    loosens: int
    """How many changes loosen protection."""
    tightens: int
    """How many changes tighten it; one that does both counts in both."""
    problems: int
    """Number of problems."""
    unmanaged: int
    """How many live objects no manifest mentions, in sections that are declared."""
    not_applicable: int
    """How many sections are left out because their target cannot have them."""
    excepted: int
    """How many changes exceptions hold back."""


class StoredSummary(StoredNumbers):
    """A plan in numbers. With `--since REV`, it counts what is of the change."""

    not_of_change: StoredNumbers | None
    """The same numbers of the changes that are not of the change, and of nothing else; null without `--since REV`."""


class StoredResults(TypedDict):
    """The results of an apply in numbers."""

    created: int
    """How many objects were created."""
    updated: int
    """How many objects and settings sections were changed."""
    deleted: int
    """How many objects were deleted."""
    failed: int
    """How many changes failed."""
    stale: int
    """How many changes were refused because the live object had changed."""
    skipped: int
    """How many changes were not begun because the run was ended, or the project is archived."""
    dropped: int
    """How many changes the service accepted and did not carry out."""
    loosens: int
    """How many changes loosen protection, carried out or not."""
    tightens: int
    """How many changes tighten it; one that does both counts in both."""
    problems: int
    """Number of problems."""
    unmanaged: int
    """How many live objects no manifest mentions, in sections that are declared."""
    not_applicable: int
    """How many sections were left out because their target cannot have them."""
    excepted: int
    """How many changes exceptions hold back."""


class StoredPlan(StoredLists):
    """A saved plan."""

    summary: StoredSummary
    """The numbers of changes and problems."""
    refusals: list[str]
    """Why `apply` will refuse the plan, unless it is given other limits."""


class StoredReport(StoredLists):
    """The report of an apply."""

    summary: StoredResults
    """The numbers of changes that were done, and that were not."""
    refusals: list[str]
    """Empty: a refused plan has no report."""


@cache
def _heads() -> TypeAdapter[Head]:
    return TypeAdapter(Head)


@cache
def _lists() -> TypeAdapter[StoredLists]:
    return TypeAdapter(StoredLists)


def save(document: RunDocument) -> str:
    """Return a plan or a report as a document that `load_plan` or `load_report` reads."""
    return with_checksum(_content(document))


def _content(document: RunDocument) -> dict[str, Json]:
    head: dict[str, Json] = _heads().dump_python(document, mode="json")
    return {
        **head,
        "summary": dict(summary_of(document)),
        "refusals": list(document.refusals),
        "targets": [_stored_target(seen) for seen in document.targets],
        "items": [_stored(item) for item in document.items],
    }


def _stored_target(seen: Seen) -> dict[str, Json]:
    exceptions = [
        {
            "section": own.section,
            "item": own.item,
            "fields": list(own.fields),
            "until": str(own.until),
            "reason": own.reason,
            "origin": own.origin,
        }
        for own in seen.exceptions
    ]
    known = {
        "path": seen.path,
        "exceptions": exceptions,
        "importing": seen.importing,
        "arriving": seen.arriving,
        "digest": seen.digest,
        "again": seen.again and str(seen.again),
        "done": seen.done,
    }
    return {
        "target": str(seen.target),
        "level": str(seen.target.level),
        "ref": seen.target.ref,
        "id": seen.id,
        "labels": dict(seen.labels),
        "origin": seen.origin,
        "sections": dict(seen.sections),
        **{name: value for name, value in known.items() if value},
    }


def _stored(item: Item) -> dict[str, Json]:
    match item:
        case Outcome():
            return {**_stored_change(item.change), "outcome": _stored_outcome(item)}
        case Keep():
            known: dict[str, Json] = {
                "id": item.id,
                "after": dict(item.after) if item.id is None else None,
                "prune": item.prune or None,
                "adopted": item.adopted or None,
                "owner": item.owner or None,
                "at_least": [*item.at_least] or None,
            }
            return {**_stored_address(item.address), "action": "keep", **_given(known)}
        case Finding():
            return {
                **(
                    _stored_address(item.where)
                    if item.where
                    else {"target": None, "section": "", "title": "", "name": None}
                ),
                "finding": item.code,
                "field": item.field,
                "reason": item.reason,
                "fix": item.fix,
                **({"data": dict(item.data)} if item.data else {}),
                "origin": item.origin,
            }
    return _stored_change(item)


def _given(fields: Mapping[str, Json]) -> dict[str, Json]:
    return {name: value for name, value in fields.items() if value is not None}


def _stored_address(address: Address) -> dict[str, Json]:
    part = {} if address.part == address.section else {"part": address.part}
    return {
        "target": str(address.target),
        "section": address.section,
        **part,
        "title": address.title,
        "name": address.name,
    }


def _stored_change(change: Change) -> dict[str, Json]:
    stored = {**_stored_address(change.address), "action": str(change.action)}
    match change:
        case Create():
            stored["after"] = dict(change.after)
            stored |= _given({"target_id": change.target_id, "replaces_ids": [*change.replaces_ids] or None})
        case Update():
            stored |= {"before": dict(change.before), "after": dict(change.after), "id": change.read.id}
            stored |= {"renamed_from": change.renamed_from, "read": _stored_read(change.read)}
        case Delete():  # pragma: no branch - mypy would see a fourth
            stored |= {"before": dict(change.before), "id": change.read.id}
            stored |= {**_given({"successor_id": change.successor_id}), "read": _stored_read(change.read)}
    stored["requests"] = [
        {
            "method": request.method,
            "path": request.path,
            "body": None if request.body is None else dict(request.body),
        }
        for request in change.requests
    ]
    stored |= _given({"effect": effect_of(change)})
    # what an effect is in other words than those of a plan is a note too
    notes = [note for note in change.notes if note.code != "effect" or is_undoing(change)]
    if notes:
        stored["notes"] = [
            {"code": note.code, "reason": note.reason, **({"data": dict(note.data)} if note.data else {})}
            for note in notes
        ]
    stored["origin"] = change.origin
    return stored


def _stored_read(read: AsRead) -> dict[str, Json]:
    return {
        "names": list(read.names),
        "fields": dict(read.fields),
        **({"read_only": dict(read.read_only)} if read.read_only else {}),
        **({"below": list(read.below)} if read.below else {}),
        **({"numbers": dict(read.numbers)} if read.numbers else {}),
    }


def _stored_outcome(outcome: Outcome) -> dict[str, Json]:
    stored: dict[str, Json] = {"status": str(outcome.status), "reason": outcome.reason}
    if outcome.created is not None:
        stored["created"] = {"id": outcome.created.id, **_stored_read(outcome.created)}
    return stored | ({"unconfirmed": True} if outcome.unconfirmed else {})


def is_report(text: str) -> bool:
    """Return whether a text claims to be the report of an apply."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(content, dict) and content.get("format") == REPORT


def load_plan(text: str, kinds: Kinds) -> RunDocument:
    """Read the plan that `save` returned.

    Raises:
        PlanRefused: it is not a saved plan, was edited, or comes from another version.
    """
    return _load(text, PLAN, kinds)


def load_report(text: str, kinds: Kinds) -> RunDocument:
    """Read the report that `save` returned; errors are as of `load_plan`."""
    return _load(text, REPORT, kinds)


def _load(text: str, format_name: str, kinds: Kinds) -> RunDocument:
    def read(document_content: dict[str, Json]) -> RunDocument:
        lists = {name: document_content.pop(name) for name in ("targets", "items") if name in document_content}
        # back to JSON: in strict mode, pydantic takes dates, enums and tuples only from JSON
        head = _heads().validate_json(json.dumps(document_content), context=kinds)
        listed = _lists().validate_json(json.dumps(lists), strict=True)
        targets = tuple(map(_seen, listed["targets"]))
        targets_by_name: dict[str, Target] = {}
        for seen in targets:
            # items name their target by its text: with two targets of one text, an item could be moved from one to the
            # other
            if targets_by_name.setdefault(str(seen.target), seen.target) is not seen.target:
                raise PlanRefused(f"damaged: two targets are {str(seen.target)!r}")
        items = tuple(_item(stored, targets_by_name, number) for number, stored in enumerate(listed["items"]))
        document = RunDocument(
            **{name: getattr(head, name) for name in Head.__dataclass_fields__}, targets=targets, items=items
        )
        _check(document, kinds)
        return replace(document, items=tuple(_with_delivery(item, kinds) for item in items))

    # `refusals` cannot be compared: they depend on options that are not saved, such as a sink for tokens, and on
    # whether the command that reads runs in a job
    return read_checked(text, format_name, read, _content, computed=("summary",), ignored=("refusals",))


def _seen(stored_target: StoredTarget) -> Seen:
    target = Target(stored_target["level"], stored_target["ref"])
    if (target.ref is None) != (target.level in PATHLESS) or str(target) != stored_target["target"]:
        raise PlanRefused(f"damaged: {stored_target['target']!r} is no target of the level {target.level}")
    return Seen(
        target,
        stored_target["sections"],
        stored_target["id"],
        stored_target["labels"],
        stored_target["origin"],
        stored_target.get("path"),
        tuple(
            DeclaredException(
                own["section"], own["until"], own["reason"], own["item"], tuple(own["fields"]), own["origin"]
            )
            for own in stored_target.get("exceptions", ())
        ),
        stored_target.get("importing", False),
        stored_target.get("arriving", ""),
        stored_target.get("digest", ""),
        stored_target.get("again"),
        stored_target.get("done", False),
    )


def _item(stored: Any, targets_by_name: Mapping[str, Target], number: int) -> Item:
    """Return an item of a document.

    Args:
        stored: the item; its type was checked.
        targets_by_name: the targets of the document by their names.
        number: its position.
    """
    where = _address(stored, targets_by_name, number)
    if "finding" in stored:
        data = _data(stored["finding"], stored.get("data", NOTHING), number)
        return Finding(
            where, stored["finding"], stored["reason"], stored["fix"], stored["field"], data, stored["origin"]
        )
    if where is None:
        raise PlanRefused(f"damaged: items[{number}] is about no target")
    if stored["action"] == "keep":
        return Keep(
            where,
            stored.get("id"),
            stored.get("after", NOTHING),
            stored.get("prune", False),
            stored.get("adopted", False),
            stored.get("owner", ""),
            tuple(stored.get("at_least", ())),
        )
    change = _change(stored, where, number)
    change = with_effect(change, stored.get("effect"), by_hand=is_undoing(change))
    if "outcome" not in stored:
        return change
    outcome = stored["outcome"]
    created = outcome.get("created")
    return Outcome(
        change,
        Status(outcome["status"]),
        outcome["reason"],
        created and _as_read(created, created["id"]),
        outcome.get("unconfirmed", False),
    )


def _address(stored: Any, targets_by_name: Mapping[str, Target], number: int) -> Address | None:
    if stored["target"] is None:
        return None
    target, section = targets_by_name.get(stored["target"]), stored["section"]
    if target is None:
        raise PlanRefused(f"damaged: items[{number}].target is not among the targets")
    return Address(target, section, stored.get("part", section), stored["title"], stored["name"])


def _change(stored: Any, where: Address, number: int) -> Change:
    requests = tuple(Request(made["method"], made["path"], made["body"]) for made in stored["requests"])
    notes = tuple(
        Note(note["code"], note["reason"], _data(note["code"], note.get("data", NOTHING), number))
        for note in stored.get("notes", ())
    )
    origin = stored["origin"]
    match stored["action"]:
        case "create":
            ids = stored.get("target_id"), tuple(stored.get("replaces_ids", ()))
            return Create(where, stored["after"], requests, *ids, notes=notes, origin=origin)
        case "update":
            read = _as_read(stored["read"], stored["id"])
            fields = stored["before"], stored["after"]
            return Update(where, *fields, requests, read, stored["renamed_from"], notes, origin)
    read = _as_read(stored["read"], stored["id"])
    return Delete(where, stored["before"], requests, read, stored.get("successor_id"), notes, origin)


def _as_read(stored: Any, number: int | None) -> AsRead:
    only_read, below = stored.get("read_only", {}), tuple(stored.get("below", ()))
    return AsRead(number, tuple(stored["names"]), stored["fields"], only_read, below, stored.get("numbers", {}))


@cache
def _data_of(code: str) -> TypeAdapter[Mapping[str, Json]] | None:
    shape = DATA.get(code)
    return None if shape is None else TypeAdapter(with_config({"strict": True, "extra": "forbid"})(shape))


def _data(code: str, data: Mapping[str, Json], number: int) -> Mapping[str, Json]:
    """Return the data of a note or a finding, checked by the type of its code; unknown codes are not checked."""
    shape = _data_of(code)
    if shape is None:
        return data
    try:
        return shape.validate_python(data)
    except ValidationError as error:
        raise PlanRefused(f"damaged: items[{number}]: the data of {code!r} are invalid") from error


def _check(document: RunDocument, kinds: Kinds) -> None:
    """Refuse items that no plan of this version has.

    Raises:
        PlanRefused: an item is damaged; the message has its position.
    """
    sections = {(seen.target, section) for seen in document.targets for section in seen.sections}
    for number, item in enumerate(document.items):
        change = change_in(item)
        if not is_about_run(item) and (target_of(item), section_of(item)) not in sections:
            raise PlanRefused(f"damaged: items[{number}].section is not among those of its target")
        if change is not None and document.is_plan is isinstance(item, Outcome):
            raise PlanRefused(f"damaged: items[{number}] {'has' if document.is_plan else 'lacks'} an outcome")
        if change is not None:
            _check_change(change, kinds)
        if isinstance(item, Keep):
            _check_kept(item, kinds)


def _with_delivery(item: Item, kinds: Kinds) -> Item:
    """Return an item whose creation knows whether its response has a secret.

    The kind knows that, and the file does not.
    """
    change = change_in(item)
    if not isinstance(change, Create) or not change.address.section:
        return item
    part = _part(change.address, kinds)
    if not (isinstance(part, Collection) and part.secret_field):
        return item
    delivering = replace(change, delivers=True)
    return replace(item, change=delivering) if isinstance(item, Outcome) else delivering


def _check_kept(keep: Keep, kinds: Kinds) -> None:
    """Refuse an object of an unknown part, and settings that apply will plan again, unless they are valid."""
    if keep.id is not None:
        _part(keep.address, kinds)
        return
    target, section = keep.address.target, keep.address.section
    if section not in kinds or target.level not in kinds[section].models:
        raise PlanRefused(f"damaged: no {target.level} has a section {section!r}")
    try:
        kinds[section].models[target.level].model_validate(keep.after)
    except ValidationError as error:
        raise PlanRefused(f"damaged: the {section} of {str(target)!r} are not valid") from error


def _check_change(change: Change, kinds: Kinds) -> None:
    """Refuse a change of an unknown section or part, or with a request to another path."""
    if not change.address.section:
        if change != _as_planned(change):
            raise PlanRefused(f"damaged: no creation of {str(change.address.target)!r} is planned like this")
        return
    part = _part(change.address, kinds)
    for request in change.requests:
        if not (_leads_to(request.path, change.address.target, part) or _promotes(request.path, change, part)):
            raise PlanRefused(
                f"damaged: {request.method} {request.path!r} does not lead to {part.title} of "
                f"{str(change.address.target)!r}"
            )


def _as_planned(change: Change) -> Create | None:
    """Return the creation that would be planned for the fields of a change; None if no target is created like this.

    Whether the number in its request is that of the namespace is known only to the service.
    """
    target = change.address.target
    if not (isinstance(change, Create) and change.requests and isinstance(target.ref, str)):
        return None
    is_group = target.level is Level.GROUP
    number = (change.requests[0].body or {}).get("parent_id" if is_group else "namespace_id")
    path, _, _ = target.ref.rpartition("/")
    try:
        creation = creation_in(change.after)
        if creation.source if is_group else (creation.archive or not path):
            return None
        return creation_of(target, creation, Namespace(path, number if isinstance(number, int) else None, None))
    except (KeyError, ValueError):
        return None


def _part(address: Address, kinds: Kinds) -> Part:
    kind = kinds.get(address.section)
    for part in kind.parts if kind and address.target.level in kind.models else ():
        if part.name == address.part:
            return part
    raise PlanRefused(
        "damaged, or made by another reconciler, or with a package that is not installed here: "
        f"no section has the name {address.section!r} and a part {address.part!r}"
    )


def _leads_to(path: str, target: Target, part: Part) -> bool:
    """Return whether a path leads to a part: below the target, by path or by number, and then below the part."""
    below = _path_pattern(tuple(part.suffixes), by_path=bool(part.path_field))
    if path.startswith(target.url) and below.fullmatch(path, len(target.url)):
        return True
    # some parts take a target's number only, see `needs_numeric_id`: a target that is declared by its path has the
    # number in their requests
    numbered = re.match(rf"{target.level}s/[0-9]+/", path) if isinstance(target.ref, str) else None
    return numbered is not None and below.fullmatch(path, numbered.end()) is not None


def _promotes(path: str, change: Change, part: Part) -> bool:
    """Return whether a path turns a project's object into one of its group."""
    if not (
        isinstance(part, Collection) and isinstance(change, Update) and change.read.below and part.writes.promotion
    ):
        return False
    return re.fullmatch(part.writes.promotion.format(project="[0-9]+", id=change.read.id), path) is not None


@cache
def _path_pattern(suffixes: tuple[str, ...], *, by_path: bool) -> re.Pattern[str]:
    """Return a pattern of the paths of a part, without the path of the target.

    No step leads upwards: dots and escapes occur only where objects are named by them, and never alone.
    """
    step = r"(?!(?:\.|%2[Ee])+(?:/|$))[A-Za-z0-9_%.~-]+" if by_path else "[A-Za-z0-9_-]+"
    return re.compile(rf"(?:{'|'.join(map(re.escape, suffixes))})(?:/{step}|/\{{id\}})*")
