"""The comparison of resources: `differences`, the result of an update (`become`), and objects as read. Pure."""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from reconciler.model.direction import Strictness, compare_field
from reconciler.model.entries import EntryRow, called_as, called_before
from reconciler.model.protocols import Json
from reconciler.model.resource import A_LIST, AN_OBJECT, POLICIES, LiveRecord, Resource, recognized
from reconciler.model.targets import Key
from reconciler.model.values import steps
from reconciler.model.wording import short

Kept = TypeVar("Kept", bound=Resource)

Fields = Mapping[str, Json]
"""Field values as JSON; a key of a mapping field as `field.key`."""


@dataclass(frozen=True, slots=True)
class AsRead:
    """An object as it was read: a saved plan refuses to change an object that has changed since."""

    id: int | None
    """Its own numeric ID, if it has one."""
    names: tuple[Key, ...]
    """All its names; none for a settings section."""
    fields: Fields
    """All its fields, as the service showed them."""
    read_only: Mapping[str, str]
    """Fields that cannot be changed, each with the reason."""
    below: tuple[str, ...] = ()
    """The targets below, such as `project acme/api`, that have it: the one of the first is promoted. Else none."""
    numbers: Mapping[str, Mapping[str, int]] = field(default_factory=dict, compare=False)
    """The IDs of the users and groups that its lists name: another token may see the IDs alone."""


def fields_of(resource: Resource) -> Fields:
    """Return the set fields as JSON, without former names; a mapping field becomes `field.key`, one for each key."""
    fields: dict[str, Json] = {}
    for name, value in resource.model_dump(mode="json", include=resource.model_fields_set - POLICIES).items():
        if isinstance(value, dict):
            fields |= {f"{name}.{key}": inner for key, inner in value.items()}
        else:
            fields[name] = value
    return fields


def resource_of(resource_type: type[Kept], fields: Fields) -> Kept:
    """Return the resource of which `fields_of` returns these fields.

    Raises:
        ValidationError, TypeError: no resource has these fields.
    """
    return resource_type.model_validate(_nested(fields))


def restorable(model: type[Resource], fields: Fields) -> tuple[Resource, Fields]:
    """Return the resource of the fields that the model accepts, and the other fields."""
    given = {name: value for name, value in fields.items() if value not in (A_LIST, AN_OBJECT)}
    resource, _ = recognized(model, _nested(given))
    taken = fields_of(resource)
    return resource, {name: value for name, value in fields.items() if name not in taken}


def _nested(fields: Fields) -> dict[str, Json]:
    """Return fields with the keys of mapping fields in their mappings."""
    values: dict[str, Json] = {}
    for name, value in fields.items():
        outer, dot, key = name.partition(".")
        if dot:
            values.setdefault(outer, {})[key] = value
        else:
            values[name] = value
    return values


def differences(wanted: Resource, record: LiveRecord, at_least: Collection[str] = ()) -> tuple[Fields, Fields]:
    """Return the declared fields that differ, with live and with declared values; None for a value that is not shown.

    Fields that the service never shows count as different if the field that is written with them differs, unless their
    declared value is empty.

    Args:
        wanted: the declared fields.
        record: the live object.
        at_least: the fields that may be stricter.
    """
    if _equals_declared(wanted, record.resource):
        return {}, {}
    declared = fields_of(wanted)
    known = called_alike(declared, record) if record.entries else fields_of(record.resource)
    after = {name: value for name, value in declared.items() if name not in known or known[name] != value}
    for name in [name for name in after if name in at_least and name in known]:
        others = {other: value for other, value in after.items() if other != name}
        # judged among the other fields as the update leaves them: one field may decide what another means
        if is_in_order(type(wanted), name, {**known, **others}, {**known, **declared}):
            after = others
    after = {name: value for name, value in after.items() if not _is_unshown(name, value, record, after)}
    before = {**known, **record.unknown}
    return {name: before.get(name) for name in after}, after


def is_in_order(model: type[Resource], name: str, live_fields: Fields, minimum: Fields) -> bool:
    """Return whether a field of an object is at least as strict as in another one, or has no effect in the object."""
    if name not in model.directions:
        return False
    strictness = compare_field(model.directions, name, live_fields, minimum)
    return strictness in (Strictness.STRICTER, Strictness.EQUAL) or model.is_moot(name, live_fields)


def called_alike(declared_fields: Fields, record: LiveRecord) -> Fields:
    """Return the fields of an object, with its entries spelled as the declared ones: by ID or by name."""
    known = dict(fields_of(record.resource))
    for name, rows in record.entries.items():
        if name in known and isinstance(declared_fields.get(name), list):
            known[name] = called_as(declared_fields[name], rows, known[name])
    return known


def uncompared(wanted: Resource, record: LiveRecord, at_least: Collection[str] = ()) -> list[str]:
    """Return the declared fields that the service never shows and that do not differ: see `differences`."""
    if not record.unshown:
        return []
    _, after = differences(wanted, record, at_least)
    return [name for name, value in fields_of(wanted).items() if _is_unshown(name, value, record, after)]


def _is_unshown(name: str, value: Json, record: LiveRecord, after: Fields) -> bool:
    field = name.partition(".")[0]
    return field in record.unshown and (value is None or record.unshown[field] not in after)


def _equals_declared(wanted: Resource, resource: Resource) -> bool:
    """Return whether no field differs, without converting values to JSON: true for nearly all objects of a fleet."""
    return all(
        name in resource.model_fields_set and _equals(getattr(resource, name), getattr(wanted, name))
        for name in wanted.model_fields_set - POLICIES
    )


def _equals(live_value: object, wanted_value: object) -> bool:
    if isinstance(live_value, dict) and isinstance(wanted_value, dict):
        # of a mapping, only the declared keys are managed
        return live_value.items() >= wanted_value.items()
    return live_value == wanted_value


def without(wanted: Resource, names: Iterable[str]) -> Resource:
    """Return a declaration without some fields, which are named as in `fields_of`."""
    if not names:
        return wanted
    kept: dict[str, Json] = {}
    for name in wanted.model_fields_set:
        value = getattr(wanted, name)
        if isinstance(value, dict):
            inner = {key: inner for key, inner in value.items() if f"{name}.{key}" not in names}
            if inner or not value:
                kept[name] = inner
        elif name not in names:
            kept[name] = value
    return type(wanted).model_construct(set(kept), **kept)


def only(wanted: Resource, names: Iterable[str]) -> Resource:
    """Return some fields of a declaration, which are named as in `fields_of`."""
    return without(wanted, [name for name in fields_of(wanted) if name not in names])


def become(resource: Resource, wanted: Resource, unknown: Collection[str] = ()) -> Resource:
    """Return the result of an update: all fields set; for mapping fields, the declared keys alone.

    Args:
        resource: the live object.
        wanted: the declared fields.
        unknown: the fields with an unknown live value: they are set only if they are declared.
    """
    names = [name for name in type(resource).model_fields if name not in unknown]
    whole = {name: value for name in names if not isinstance(value := getattr(resource, name), dict)}
    whole |= {name: getattr(wanted, name) for name in wanted.model_fields_set}
    return type(resource).model_construct(set(whole), **whole)


def as_read(record: LiveRecord) -> AsRead:
    """Return the facts of a live object that a plan stores."""
    shown = fields_of(record.resource) if record.shown is None else record.shown
    numbers: dict[str, dict[str, int]] = {}
    for row in (row for listed in record.entries.values() for row in listed):
        who, name = row.identity
        if row.number is not None and isinstance(name, str) and who != "deploy_key":
            numbers.setdefault(who, {})[name] = row.number
    return AsRead(record.id, record.names, {**shown, **record.unknown}, record.read_only, record.below, numbers)


def with_rows(record: LiveRecord, rows_by_field: Mapping[str, tuple[EntryRow, ...]]) -> LiveRecord:
    """Return an object with other entry rows; a field without entries is unchanged."""
    if rows_by_field == record.entries:
        return record
    fields = dict(fields_of(record.resource))
    for name, listed in rows_by_field.items():
        if name in fields and listed != record.entries[name]:
            fields[name] = [row.shown for row in listed if row.shown is not None]
    return replace(record, entries=rows_by_field, resource=resource_of(type(record.resource), fields))


def as_before(record: LiveRecord, read: AsRead) -> LiveRecord:
    """Return an object with its entries spelled as in an earlier reading: by ID or by name."""
    numbers = numbers_of(read)
    rows = {name: called_before(listed, _list_in(read, name), numbers) for name, listed in record.entries.items()}
    return with_rows(record, rows)


def numbers_of(read: AsRead) -> dict[tuple[str, str | int], int]:
    """Return the IDs of the users and groups that an object named when it was read."""
    return {(who, name): number for who, names in read.numbers.items() for name, number in names.items()}


def _list_in(read: AsRead, name: str) -> list[Json]:
    value = read.fields.get(name)
    return value if isinstance(value, list) else []


def moved(earlier_read: AsRead, later_read: AsRead) -> str:
    """Return the changes since an object was read, as `state: active -> closed`; empty if there are none."""
    if earlier_read == later_read:
        return ""
    was, is_now = _plain(earlier_read), _plain(later_read)
    both = {**dict.fromkeys(was), **is_now}
    after = {name: both[name] for name in both if name not in was.keys() & is_now.keys() or was[name] != is_now[name]}
    return ", ".join(steps({name: was.get(name) for name in after}, after))


def _plain(read: AsRead) -> Fields:
    name, *others = read.names or (None,)
    # No field is called so.
    own = {"ID": read.id, "object name": name, "other names": others, "read-only": dict(read.read_only)}
    own["places below"] = list(read.below)
    return {**read.fields, **own}


def quoted(value: Json) -> str:
    """Return a value as JSON, shortened for a message."""
    return short(json.dumps(value))
