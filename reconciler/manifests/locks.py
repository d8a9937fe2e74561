"""Locks: values of profiles and sets that no later layer may change, and lists to which no other layer may add."""

import json
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import Any

from reconciler.manifests.diagnostics import Diagnostic
from reconciler.manifests.layers import PRUNE, UNMANAGED, Effective, Layer, SectionSpec, SectionSpecs, field_path
from reconciler.manifests.sources import Location, Steps
from reconciler.model.protocols import Json
from reconciler.model.wording import unknown

ALL = "all"
AS_EXCEPTION = "make it an exception: reconciler accept --until DAY --reason TEXT"
ABSENT = object()
"""Stands for a value that is not declared."""


@dataclass(frozen=True, slots=True)
class Lock:
    """A field, an item, or the pruning of a section that a layer locks.

    Attributes:
        layer: the profile or the set.
        steps: to the value in the merged spec; to the section's name below `prune` for its pruning.
        entry: the steps to its entry in `metadata.locks`.
        value: the locked value, as that layer declares it.
    """

    layer: Layer
    steps: Steps
    entry: Steps
    value: Any

    @property
    def location(self) -> Location:
        """The place of its entry in `metadata.locks`."""
        return self.layer.document.find(self.entry, key=len(self.entry) == len(("metadata", "locks", "section")))

    def __str__(self) -> str:
        """`profile baseline (manifests/baseline.yaml:5:31)`."""
        return f"{self.layer.title} ({self.location})"


@lru_cache(maxsize=16)
def locks_of(whole: Effective) -> tuple[Lock, ...]:
    """Return the locks of all layers, the lowest first. Whoever asks about a target asks about many of its fields."""
    found: list[Lock] = []
    merged = whole.of()
    for layer in whole.layers if whole.has_locks else ():
        merged = merged.under(layer)
        found += _locks(layer, merged)
    return tuple(found)


@lru_cache(maxsize=16)
def _by_steps(whole: Effective) -> Mapping[Steps, list[tuple[int, Lock]]]:
    """Return the locks of values by their steps, each with its place among all."""
    found: dict[Steps, list[tuple[int, Lock]]] = {}
    for place, lock in enumerate(locks_of(whole)):
        if lock.steps[0] != PRUNE:
            found.setdefault(lock.steps, []).append((place, lock))
    return found


def lock_on(whole: Effective, steps: Steps) -> Lock | None:
    """Return the lock that holds a field, an item, or a list of the merged spec; None if none does.

    An item's lock holds the fields that its layer declares.
    """
    by_steps = _by_steps(whole)
    around = [each for length in range(1, len(steps) + 1) for each in by_steps.get(steps[:length], ())]
    for _, lock in sorted(around, key=itemgetter(0)):
        length = len(lock.steps)
        if length == len(steps) or not isinstance(lock.value, Mapping):
            return lock
        if _at(lock.value, steps[length:]) is not ABSENT:
            return lock
    return None


def broken_locks(whole: Effective) -> Iterator[tuple[Effective, Diagnostic]]:
    """Yield an error for each value by which a layer breaks the lock of another, with the layers up to there.

    Lists of names unite, whatever their order: an entry that a lower layer adds to a locked one breaks the lock too.
    """
    yield from ((whole, found) for found in _unmanaged(whole))
    locks: list[Lock] = []
    lower: list[Effective] = []
    merged = whole.of()
    for layer in whole.layers:
        below, merged = merged, merged.under(layer)
        for lock in locks:
            yield from ((merged, found) for found in _broken(lock, layer, below, merged))
        own = [*_locks(layer, merged)]
        for lock in own:
            yield from ((each, found) for each in lower for found in _added(lock, each.layers[-1], each))
        locks += own
        lower.append(merged)


def deviations(whole: Effective) -> Iterator[tuple[Layer, Steps]]:
    """Yield each value that breaks a lock, by its layer and its steps there, as written.

    Left out is what cannot be mended by taking out one value: what drops a locked one, `prune`, and `unmanaged`.
    """
    for merged, found in broken_locks(whole):
        if not found.at_key and found.steps[0] != UNMANAGED:
            layer = merged.layers[-1]
            yield from ((each, steps) for each, steps in merged.declarations(found.steps) if each is layer)


def idle_locks(
    locks: Mapping[str, Any], sections: Mapping[str, Any], prune: list[str] | None, specs: SectionSpecs
) -> Iterator[Diagnostic]:
    """Yield an error for each lock of a document on something that the document does not declare."""
    for name, entries in locks.items():
        above: Steps = ("metadata", "locks", name)
        if name not in specs:
            yield Diagnostic(above, unknown("section", name, specs), at_key=True)
        elif entries == ALL and name not in sections:
            yield Diagnostic(above, f"{name} is locked, and this document does not declare it", at_key=True)
        names = _names(specs[name], sections.get(name)) if name in specs else set()
        for number, entry in enumerate(entries if name in specs and entries != ALL else ()):
            declared = prune is not None if entry == PRUNE else _steps(specs[name], entry, sections.get(name), names)
            if not declared:
                where = "" if entry == PRUNE else f" under {name}"
                message = f"`{entry}` is locked, and this document does not declare it{where}"
                yield Diagnostic((*above, number), message)


def _locks(layer: Layer, merged: Effective) -> Iterator[Lock]:
    """Yield the locks of a layer, given all layers up to it."""
    for name, entries in layer.locks.items():
        if name in merged.unmanaged:
            continue
        spec = merged.specs[name]
        above: Steps = ("metadata", "locks", name)
        if entries == ALL or PRUNE in entries:
            entry = above if entries == ALL else (*above, entries.index(PRUNE))
            if layer.prune is not None:
                yield Lock(layer, (PRUNE, name), entry, name in layer.prune)
        if name not in layer.sections or name not in merged.sections:
            continue
        own = layer.section(spec, merged.values)
        if not isinstance(own, dict):  # an error of its own
            continue
        names = _names(spec, own, merged.values)
        for number, written in enumerate(own if entries == ALL else entries):
            steps = (written,) if entries == ALL else _steps(spec, written, own, names, merged.values)
            if steps is not None:
                entry = above if entries == ALL else (*above, number)
                yield Lock(layer, (name, *steps), entry, _at(own, steps))


def _unmanaged(whole: Effective) -> Iterator[Diagnostic]:
    """Yield an error for each section that a document leaves alone, and a profile or set locks."""
    for layer in whole.layers if whole.unmanaged else ():
        for name in sorted(whole.unmanaged & layer.locks.keys()):
            lock = f"{layer.title} ({layer.document.find(('metadata', 'locks', name), key=True)})"
            message = f"{name} is locked by {lock}: take it out here, or accept a deviation by an exception"
            written = whole.layers[-1].document.value["spec"][UNMANAGED]
            yield Diagnostic((UNMANAGED, *(() if written == ALL else (written.index(name),))), message)


def _names(spec: SectionSpec, section: Any, values: Mapping[str, str] | None = None) -> Set[Any]:
    """Return the canonical names of the items of a section."""
    is_named = spec.items is not None and isinstance(section, dict)
    return {spec.normalize_key(key, values) for key in section} if is_named else set()


def _steps(
    spec: SectionSpec, written: str, section: Any, names: Set[Any], values: Mapping[str, str] | None = None
) -> Steps | None:
    """Return the steps to a named field or item of a section; None if the section does not declare it."""
    if spec.items is None:
        return field_path(written, section)
    name = spec.normalize_key(written, values)
    return (name,) if name in names else None


def _broken(lock: Lock, layer: Layer, below: Effective, merged: Effective) -> Iterator[Diagnostic]:
    """Yield each value by which a layer changes a locked one."""
    if lock.steps[0] == PRUNE:
        name = lock.steps[1]
        if layer.prune is not None and (name in layer.prune) != lock.value:
            words = "list it here too" if lock.value else "take it out here"
            yield Diagnostic((PRUNE,), f"the pruning of {name} is locked by {lock}: {words}", at_key=True)
        return
    name, inner = lock.steps[0], lock.steps[1:]
    if name not in layer.sections:
        return
    spec = merged.specs[name]
    own = layer.section(spec, merged.values)
    are_mappings = isinstance(own, dict) and isinstance(below.sections[name], dict)
    kept = spec.kind.beneath(below.sections[name], own) if are_mappings else own
    if _at(kept, inner) != _at(below.sections[name], inner):
        message = f"{'.'.join(map(str, lock.steps))} is locked by {lock}, and this drops it"
        yield Diagnostic((name,), message, at_key=True)
        return
    here: Any = own
    for depth, step in enumerate(inner):
        if not isinstance(here, dict):
            yield _contradiction(lock, lock.steps[: depth + 1], layer)
            return
        if step not in here:
            return
        here = here[step]
    if isinstance(lock.value, list) and isinstance(here, list) and spec.merges_as_set(inner[0]):
        yield from _added(lock, layer, merged)
        return
    for steps in _differences(lock.steps, lock.value, here):
        yield _contradiction(lock, steps, layer)


def _added(lock: Lock, layer: Layer, merged: Effective) -> Iterator[Diagnostic]:
    """Yield each entry that a layer has in a locked list of names, and the locking layer has not."""
    name, *inner = lock.steps
    spec = merged.specs.get(name)
    if spec is None or name not in layer.sections or not spec.merges_as_set(inner[0]):
        return
    here = _at(layer.section(spec, merged.values), tuple(inner))
    if isinstance(lock.value, list) and isinstance(here, list):
        for entry in here:
            if entry not in lock.value:
                # The place of an entry is looked up by its number in the merged list.
                yield _contradiction(lock, (*lock.steps, merged.sections[name][inner[0]].index(entry)), layer)


def _differences(steps: Steps, locked: Any, here: Any) -> Iterator[Steps]:
    """Yield the steps to each value that is not as locked."""
    if isinstance(locked, dict) and isinstance(here, dict):
        for key in here:
            if key in locked:
                yield from _differences((*steps, key), locked[key], here[key])
    elif locked != here or isinstance(locked, bool) != isinstance(here, bool):
        yield steps


def _contradiction(lock: Lock, steps: Steps, layer: Layer) -> Diagnostic:
    what = ".".join(map(str, lock.steps))
    value = "" if isinstance(lock.value, dict | list) else f" to {json.dumps(lock.value, default=str)}"
    remedy = "or leave it out" if layer.title else f"leave it out, or {AS_EXCEPTION}"
    return Diagnostic(steps, f"{what} is locked{value} by {lock}: repeat its value, {remedy}")


def _at(value: Any, steps: Steps) -> Json:
    """Return the value at some steps; `ABSENT` if there is none."""
    for step in steps:
        if not isinstance(value, Mapping) or step not in value:
            return ABSENT
        value = value[step]
    return value
