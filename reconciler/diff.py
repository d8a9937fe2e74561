"""Comparing resources: what differs, what an object would become, and what it was when it was read. Pure."""

import json
from collections.abc import Collection, Mapping
from hashlib import sha256

from reconciler.resource import POLICIES, Found, Resource
from reconciler.wire import Json

Fields = Mapping[str, Json]
"""Field values as JSON; a key of a mapping field as `field.key`."""


def fields_of(resource: Resource) -> Fields:
    """Return the set fields as JSON, former names aside, mapping fields taken apart into `field.key`."""
    fields: dict[str, Json] = {}
    for name, value in resource.model_dump(mode="json", include=resource.model_fields_set - POLICIES).items():
        if isinstance(value, dict):
            fields |= {f"{name}.{key}": inner for key, inner in value.items()}
        else:
            fields[name] = value
    return fields


def differences(wanted: Resource, found: Resource) -> tuple[Fields, Fields]:
    """Return the declared fields that differ, as they are and as they are wanted; None for what is not shown."""
    if _agree(wanted, found):
        return {}, {}
    before = fields_of(found)
    after = {name: value for name, value in fields_of(wanted).items() if name not in before or before[name] != value}
    return {name: before.get(name) for name in after}, after


def _agree(wanted: Resource, found: Resource) -> bool:
    """Whether nothing differs: so it is with nearly all, and this tells without writing them as JSON."""
    return all(
        name in found.model_fields_set and _holds(getattr(found, name), getattr(wanted, name))
        for name in wanted.model_fields_set - POLICIES
    )


def _holds(found: object, wanted: object) -> bool:
    if isinstance(found, dict) and isinstance(wanted, dict):
        return found.items() >= wanted.items()
    return found == wanted


def without(wanted: Resource, names: Collection[str]) -> Resource:
    """Return what is wanted less some fields, which are named as in `fields_of`."""
    if not names:
        return wanted
    kept: dict[str, Json] = {}
    for name in wanted.model_fields_set:
        value = getattr(wanted, name)
        if isinstance(value, dict):
            kept[name] = {key: inner for key, inner in value.items() if f"{name}.{key}" not in names}
        elif name not in names:
            kept[name] = value
    return type(wanted).model_construct(set(kept), **kept)


def become(found: Resource, wanted: Resource) -> Resource:
    """Return what an object would be with the wanted fields: all its fields set, of mappings what is wanted of them."""
    whole = {name: value for name in type(found).model_fields if not isinstance(value := getattr(found, name), dict)}
    whole |= {name: getattr(wanted, name) for name in wanted.model_fields_set}
    return type(found).model_construct(set(whole), **whole)


def fingerprint(found: Found) -> str:
    """Return a short digest of all that was read of an object."""
    shown = fields_of(found.resource) if found.shown is None else found.shown
    read = [found.id, sorted(map(str, found.names)), shown, sorted(found.locked.items())]
    return sha256(json.dumps(read, sort_keys=True).encode()).hexdigest()[:16]
