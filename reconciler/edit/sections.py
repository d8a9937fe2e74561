"""From the live state of a target to the spec of a manifest, without the values that no manifest can declare.

Begin with `export_target`.
"""

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from reconciler.edit.left_out import LeftOut
from reconciler.edit.targets import ResolvedTarget
from reconciler.model.diff import fields_of, without
from reconciler.model.endpoints import Collection
from reconciler.model.kind import Kind, Kinds
from reconciler.model.resource import POLICIES, LiveRecord, Objects
from reconciler.model.state import LivePart, LiveState
from reconciler.model.targets import Key
from reconciler.system.terminal import escaped

Spec = dict[str, Any]
"""Sections by name, as plain data."""

Omitted = list[tuple[str, str, str, str, tuple[str, ...]]]
"""The omissions of a section: name, reason, sort, cause, and facts about the objects; see `LeftOut`."""

NOT_SHOWN = "this server does not show it"
CONTRADICTS = "it contradicts another field"
UNDECIDED = "the repository is empty: its first push decides what is protected; then declare it, or let unmanaged go"
SEVERAL = "several of one name, where a manifest declares one: rename or delete the others, then export again"


@dataclass(frozen=True, slots=True, eq=False)
class Exported:
    """A target as a manifest declares it.

    Attributes:
        resolved: the target.
        spec: the sections, in the order of the kinds.
        left_out: by section, the live objects and fields that no manifest can declare.
        undecided: the empty sections of an empty repository: they are not in the spec, since the first push decides
            what is protected.
    """

    resolved: ResolvedTarget
    spec: Spec
    left_out: Mapping[str, tuple[LeftOut, ...]]
    undecided: frozenset[str] = frozenset()

    def without(self, section_names: Container[str]) -> "Exported":
        """Return the export without some sections."""
        return replace(self, spec={name: section for name, section in self.spec.items() if name not in section_names})


def export_target(
    resolved: ResolvedTarget, live: LiveState, kinds: Kinds, *, all_fields: bool = True, empty_lists: bool = True
) -> Exported:
    """Return the live state of a target as a manifest whose plan is empty.

    Args:
        resolved: the target.
        live: the live state.
        kinds: all kinds.
        all_fields: whether the fields of items that have the service's default are declared too.
        empty_lists: whether empty lists are declared too: they have an effect only in a pruned section.
    """
    target = resolved.target
    spec: Spec = {}
    left_out: dict[str, tuple[LeftOut, ...]] = {}
    undecided: set[str] = set()
    for kind in kinds.values():
        omitted: Omitted = []
        parts = {part.name: live.parts.get((target, kind.name, part.name)) for part in kind.parts}
        section = _section(kind, parts, resolved, omitted)
        if section == {} and kind.in_repository and resolved.is_empty and not omitted:
            left_out[kind.name] = (LeftOut(kind.name, target, UNDECIDED),)
            undecided.add(kind.name)
        elif section is not None:
            spec[kind.name] = section
        if omitted:
            left_out[kind.name] = tuple(
                LeftOut(what, target, why, sort, cause, read) for what, why, sort, cause, read in omitted
            )
    spec = spec if all_fields else {name: _concise(kinds[name], section) for name, section in spec.items()}
    if not empty_lists:
        spec = {name: _without_empty_lists(kinds[name], section) for name, section in spec.items()}
    return Exported(resolved, spec, left_out, frozenset(undecided))


def _without_empty_lists(kind: Kind, section_spec: Spec) -> Spec:
    lists = {part.name for part in kind.parts if isinstance(part, Collection)}
    return {key: value for key, value in section_spec.items() if value != [] or key not in lists}


def entries_of(part: Collection, records: Iterable[LiveRecord], resolved: ResolvedTarget) -> list[LiveRecord]:
    """Return the objects of a collection by name, without the entry for the target itself in a list of targets."""
    itself = {resolved.target.identity[1], resolved.id} if part.names.level is resolved.target.level else set()
    return sorted(
        (record for record in records if itself.isdisjoint(part.identity(name) for name in record.names)),
        key=lambda record: (isinstance(record.names[0], int), record.names[0], record.id or 0),
    )


def quoted(name: Key) -> str:
    """Return a name as warnings show it."""
    return escaped(f'"{name}"' if isinstance(name, str) else str(name))


def declarable(record: LiveRecord) -> dict[str, Any]:
    """Return the fields that a manifest can declare, and read-only ones, named as by `fields_of`."""
    shown = fields_of(record.resource)
    flat: dict[str, Any] = {name: shown[name] for name in shown if name in record.read_only}
    for name, value in _fields("", "", record, []).items():
        flat |= {f"{name}.{key}": inner for key, inner in value.items()} if isinstance(value, dict) else {name: value}
    return {name: value for name, value in flat.items() if name in shown}


def undeclarable(record: LiveRecord) -> set[str]:
    """Return the live fields that contradict others, named as by `fields_of`."""
    return {*fields_of(record.resource)} - {*declarable(record)} - {*record.read_only, *record.unshown}


def item_fields(kind: Kind, record: LiveRecord, *, all_fields: bool = False) -> dict[str, Any]:
    """Return the fields of an object in a manifest; see `_concise`."""
    fields = _fields("", "", record, [], whole=kind.protects)
    return fields if all_fields else _concise(kind, {"": fields})[""]


def _section(kind: Kind, live_parts: Mapping[str, LivePart | None], resolved: ResolvedTarget, omitted: Omitted) -> Any:
    """Return a section, or None if it declares nothing."""
    section: dict[Any, Any] = {}
    for part in kind.parts:
        match part, live_parts[part.name]:
            case _, LiveRecord() as record:
                section |= _fields(part.title, "", record, omitted)
            case Collection(), Objects(own=live):
                named = _named(part, live, resolved, omitted)
                if not hasattr(kind.models[resolved.target.level], "model_fields"):
                    return {
                        name: _fields(part.title, f" {quoted(name)}", record, omitted, whole=kind.protects)
                        for name, record in named
                    }
                section[part.name] = [name for name, _ in named]
    if kind.join and any(section.values()):
        return kind.join(section)
    return None if kind.join else section or None


def _concise(kind: Kind, section_spec: Spec) -> Spec:
    """Return a section without the fields of items that have the service's default, and that are not needed.

    A creation needs some fields, which have no default there; and a kind that protects needs all, so that each is
    watched.
    """
    part = kind.parts[0]
    if kind.protects or not (
        isinstance(part, Collection) and all(isinstance(item, dict) for item in section_spec.values())
    ):
        return section_spec
    usual = part.model.model_construct().model_dump(mode="json")
    defaults = {field: value for field, value in usual.items() if field not in part.writes.required}
    return {
        name: {field: value for field, value in fields.items() if field not in defaults or defaults[field] != value}
        for name, fields in section_spec.items()
    }


def _named(
    part: Collection, records: tuple[LiveRecord, ...], resolved: ResolvedTarget, omitted: Omitted
) -> Iterator[tuple[Key, LiveRecord]]:
    """Yield the objects that a manifest can name, each with its name in canonical form."""
    by_name: dict[Key, list[LiveRecord]] = {}
    for record in entries_of(part, records, resolved):
        by_name.setdefault(part.identity(record.names[0]), []).append(record)
    for same in by_name.values():
        name = same[0].names[0]
        error = part.name_error(name)
        numbers = ", ".join(str(record.id) for record in same)
        read = tuple(filter(None, (_age_and_use(part, record) for record in same)))
        if error:
            omitted.append((f"{part.title} {quoted(name)} (ID {numbers})", error, part.title, error, read))
        elif len(same) > 1:
            why = f"{len(same)} objects have this name (IDs {numbers}); expected one; rename or delete the others"
            omitted.append((f"{part.title} {quoted(name)}", why, part.title, SEVERAL, read))
        else:
            yield name, same[0]


def _age_and_use(part: Collection, record: LiveRecord) -> str:
    """Return the ID, the owner, the age and the last use of an object, which distinguish it from its namesakes."""
    created = record.created_at and str(record.created_at.date())
    changed = (record.updated_at or "")[:10]
    known = {
        "of": record.owner,
        "created": created,
        "last changed": changed if changed != created else "",
        "last used": (record.last_used or "")[:10],
    }
    facts = [f"{word} {escaped(value)}" for word, value in known.items() if value]
    if part.secret_field and not record.last_used:
        facts.append("no use of it is recorded")
    return f"ID {record.id}: {', '.join(facts)}" if facts else ""


def _fields(title: str, name: str, record: LiveRecord, omitted: Omitted, *, whole: bool = False) -> dict[str, Any]:
    """Return the fields of a settings record or an object, without read-only ones and those that contradict others.

    With `whole`, a field that the service does not show is declared as null, so that a value is noticed once it is
    shown.
    """

    def omit(field: str, why: str, cause: str) -> None:
        omitted.append((f"{field} of {title}{name}", why, title, f"{field}: {cause}", ()))

    for field, value in record.unknown.items():
        omit(field, f"a manifest cannot declare its value {quoted(value)}", "a manifest cannot declare its value")
    resource = without(record.resource, [*record.read_only])
    if whole:
        shown = {**dict(resource), **dict.fromkeys(record.unshown)}
        # not validated: a null may contradict other fields, and then the field is left out
        nulled = type(resource).model_construct(resource.model_fields_set | record.unshown.keys(), **shown)
        resource = resource if any(nulled.errors()) else nulled
    else:
        for field in record.unshown:
            omit(field, NOT_SHOWN, NOT_SHOWN)
    # One field after the other: without the first, the others may be valid.
    while errors := list(resource.errors()):
        field, why = errors[0]
        omit(field, why, CONTRADICTS)
        resource = without(resource, [field])
    return resource.model_dump(mode="json", include=resource.model_fields_set - POLICIES)
