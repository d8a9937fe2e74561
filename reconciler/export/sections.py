"""From what was read of a section to what a manifest would say of it, less what no manifest can say."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.export.targets import Known
from reconciler.model.diff import without
from reconciler.model.endpoints import Collection
from reconciler.model.kind import Kind, Kinds
from reconciler.model.resource import POLICIES, Found
from reconciler.model.state import LivePart, LiveState
from reconciler.model.targets import Key, Target
from reconciler.planning.parts import identity
from reconciler.system.terminal import escaped

Spec = dict[str, Any]
"""Sections by name, as plain data."""


@dataclass(frozen=True, slots=True)
class Exported:
    """What was read of one target, as a manifest says it.

    Attributes:
        known: which.
        spec: the sections, in the order of the kinds.
        left_out: what exists and is not in it, because no manifest can say it, and why.
        incomplete: the sections of which something is left out.
    """

    known: Known
    spec: Spec
    left_out: tuple[str, ...]
    incomplete: frozenset[str]


@dataclass(slots=True)
class _Writing:
    """One section as it is written, and what had to be left out."""

    target: Target
    left_out: list[str]

    def leave_out(self, what: str, why: str) -> None:
        self.left_out.append(f"{what} of {self.target} is left out: {why}")


def export_target(known: Known, live: LiveState, kinds: Kinds) -> Exported:
    """Return what was read of a target as a manifest that plans empty."""
    spec: Spec = {}
    writing = _Writing(known.target, [])
    incomplete = set()
    for kind in kinds.values():
        before = len(writing.left_out)
        parts = {part.name: live.parts.get((known.target, kind.name, part.name)) for part in kind.parts}
        section = _section(kind, {name: part for name, part in parts.items() if part is not None}, known, writing)
        if section is not None:
            spec[kind.name] = section
        if len(writing.left_out) > before:
            incomplete.add(kind.name)
    return Exported(known, spec, tuple(writing.left_out), frozenset(incomplete))


def entries_of(part: Collection, live: Iterable[Found], known: Known) -> list[Found]:
    """Return what a collection holds, by name; a list of targets never holds the very target whose list it is."""
    itself = {part.key_level is known.target.level and each for each in (known.target.identity[1], known.number)}
    return sorted(
        (found for found in live if itself.isdisjoint(identity(part, name) for name in found.names)),
        key=lambda found: (isinstance(found.names[0], int), found.names[0], found.id or 0),
    )


def quoted(name: Key) -> str:
    """Return a name as warnings show it."""
    return escaped(f'"{name}"' if isinstance(name, str) else str(name))


def _section(kind: Kind, parts: Mapping[str, LivePart], known: Known, writing: _Writing) -> Any:
    """Return a section, or None where there is nothing to say."""
    section: dict[Any, Any] = {}
    for part in kind.parts:
        live = parts.get(part.name)
        if isinstance(live, Found):
            section |= _fields(part.title, live, writing)
        elif isinstance(part, Collection) and isinstance(live, tuple):
            named = _named(part, live, known, writing)
            if not hasattr(kind.models[known.target.level], "model_fields"):
                return {name: _fields(f"{part.title} {quoted(name)}", found, writing) for name, found in named}
            section[part.name] = [name for name, _ in named]
    return section or None


def _named(part: Collection, live: tuple[Found, ...], known: Known, writing: _Writing) -> Iterator[tuple[Key, Found]]:
    """Yield what a manifest can name, each with its name in canonical form."""
    by_name: dict[Key, list[Found]] = {}
    for found in entries_of(part, live, known):
        by_name.setdefault(identity(part, found.names[0]), []).append(found)
    for same in by_name.values():
        name = part.canonical_key(same[0].names[0])
        fault = part.name_error(name)
        numbers = ", ".join(str(found.id) for found in same)
        if fault:
            writing.leave_out(f"{part.title} {quoted(name)} (ID {numbers})", fault)
        elif len(same) > 1:
            writing.leave_out(f"{part.title} {quoted(name)} (IDs {numbers})", "a name in a manifest stands for one")
        else:
            yield name, same[0]


def _fields(what: str, found: Found, writing: _Writing) -> dict[str, Any]:
    """Return the fields of a settings record or an object, less those locked, and those that contradict others."""
    for field, value in found.unknown.items():
        writing.leave_out(f"{field} of {what}", f"no manifest can have its value {quoted(value)}")
    for field in found.unshown:
        writing.leave_out(f"{field} of {what}", "this server does not show it")
    resource = without(found.resource, [*found.read_only])
    while errors := list(resource.errors()):
        field, why = errors[0]
        writing.leave_out(f"{field} of {what}", why)
        resource = without(resource, [field])
    return resource.model_dump(mode="json", include=resource.model_fields_set - POLICIES)
