"""Locks: values of profiles and sets that no later layer may change, and lists to which no other layer may add."""

import json
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import lru_cache
from itertools import dropwhile
from operator import itemgetter
from typing import Any

from reconciler.manifests.diagnostics import Diagnostic
from reconciler.manifests.layers import (
    PRUNE,
    UNMANAGED,
    Layer,
    LetGo,
    Placeholders,
    SectionSpec,
    SectionSpecs,
    Stack,
    unknown_section,
)
from reconciler.manifests.sources import Steps
from reconciler.manifests.trace import declarations, field_path, traced
from reconciler.model.protocols import Json

ALL = "all"
AS_EXCEPTION = "make it an exception: reconciler accept --until DAY --reason TEXT --only-locks"
UNDECLARED = object()
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

    def __str__(self) -> str:
        """`profile baseline (manifests/baseline.yaml:5:31)`."""
        is_all = len(self.entry) == len(("metadata", "locks", "section"))
        return f"{self.layer.title} ({self.layer.document.find(self.entry, at_key=is_all)})"


@lru_cache(maxsize=16)
def locks_of(stack: Stack) -> tuple[Lock, ...]:
    """Return the locks of all layers, the lowest first. Whoever asks about a target asks about many of its fields."""
    locking = dict.fromkeys(layer for layer in stack.layers if layer.locks)
    return tuple(lock for layer in locking for lock in _locks(layer, stack))


@lru_cache(maxsize=16)
def _by_steps(stack: Stack) -> Mapping[Steps, list[tuple[int, Lock]]]:
    """Return the locks of values by their steps, each with its place among all."""
    placed: dict[Steps, list[tuple[int, Lock]]] = {}
    for place, lock in enumerate(locks_of(stack)):
        if lock.steps[0] != PRUNE:
            placed.setdefault(lock.steps, []).append((place, lock))
    return placed


def locks_at(stack: Stack, steps: Steps) -> list[Lock]:
    """Return the locks of exactly the value at some steps of the merged spec, the lowest first."""
    return [lock for _, lock in _by_steps(stack).get(steps, ())]


def lock_on(stack: Stack, steps: Steps) -> Lock | None:
    """Return the lock that holds a field, an item, or a list of the merged spec; None if none does.

    An item's lock holds the fields that its layer declares.
    """
    by_steps = _by_steps(stack)
    around = [placed for length in range(1, len(steps) + 1) for placed in by_steps.get(steps[:length], ())]
    for _, lock in sorted(around, key=itemgetter(0)):
        length = len(lock.steps)
        if length == len(steps) or not isinstance(lock.value, Mapping):
            return lock
        if _at(lock.value, steps[length:]) is not UNDECLARED:
            return lock
    return None


def broken_locks(stack: Stack) -> Iterator[tuple[Layer, Diagnostic]]:
    """Yield an error for each value by which a layer breaks the lock of another, with its steps in that layer's spec.

    Lists of names unite, whatever their order: an entry that a lower layer adds to a locked one breaks the lock too.
    """
    yield from ((stack.layers[-1], error) for error in _unmanaged(stack))
    errors: dict[Layer, list[Diagnostic]] = {}
    for lock in locks_of(stack):
        for layer, error in _broken(lock, stack):
            errors.setdefault(layer, []).append(error)
    for layer in dict.fromkeys(stack.layers):
        yield from ((layer, error) for error in errors.get(layer, ()))


def deviations(stack: Stack) -> Iterator[tuple[Layer, Steps]]:
    """Yield each value that breaks a lock, by its layer and its steps there, as written.

    Left out is what cannot be mended by taking out one value: what drops a locked one, `prune`, and `unmanaged`.
    """
    for layer, error in broken_locks(stack):
        if not error.at_key and error.steps[0] != UNMANAGED:
            yield layer, error.steps


def idle_locks(
    locks: Mapping[str, Any], section_values: Mapping[str, Any], pruned_names: list[str] | None, specs: SectionSpecs
) -> Iterator[Diagnostic]:
    """Yield an error for each lock of a document on something that the document does not declare."""
    for name, entries in locks.items():
        above: Steps = ("metadata", "locks", name)
        if name not in specs:
            yield Diagnostic(above, unknown_section(name, specs, specs), at_key=True)
        elif entries == ALL and name not in section_values:
            yield Diagnostic(above, f"{name} is locked, and this document does not declare it", at_key=True)
        names = _names(specs[name], section_values.get(name)) if name in specs else set()
        for number, entry in enumerate(entries if name in specs and entries != ALL else ()):
            declared = (
                pruned_names is not None
                if entry == PRUNE
                else _steps(specs[name], entry, section_values.get(name), names)
            )
            if not declared:
                where = "" if entry == PRUNE else f" under {name}"
                message = f"`{entry}` is locked, and this document does not declare it{where}"
                yield Diagnostic((*above, number), message)


def _locks(layer: Layer, stack: Stack) -> Iterator[Lock]:
    """Yield the locks of a layer in sections of a target."""
    for name, entries in layer.locks.items():
        if name in stack.unmanaged:
            continue
        spec = stack.specs[name]
        above: Steps = ("metadata", "locks", name)
        if entries == ALL or PRUNE in entries:
            entry = above if entries == ALL else (*above, entries.index(PRUNE))
            if layer.prune is not None:
                yield Lock(layer, (PRUNE, name), entry, name in layer.prune)
        if name not in layer.sections or name not in stack.sections:
            continue
        own = layer.section(spec, stack.values)
        if not isinstance(own, dict):  # an error of its own
            continue
        names = _names(spec, own, stack.values)
        for number, written in enumerate(own if entries == ALL else entries):
            steps = (written,) if entries == ALL else _steps(spec, written, own, names, stack.values)
            if steps is not None:
                entry = above if entries == ALL else (*above, number)
                yield Lock(layer, (name, *steps), entry, _at(own, steps))


def _unmanaged(stack: Stack) -> Iterator[Diagnostic]:
    """Yield an error for each section that a document leaves alone, and a profile or set locks."""
    for layer in stack.layers if stack.unmanaged else ():
        for name in sorted(stack.unmanaged & layer.locks.keys()):
            lock = f"{layer.title} ({layer.document.find(('metadata', 'locks', name), at_key=True)})"
            message = f"{name} is locked by {lock}: take it out here, or accept a deviation by an exception"
            written = stack.layers[-1].document.value["spec"][UNMANAGED]
            yield Diagnostic((UNMANAGED, *(() if written == ALL else (written.index(name),))), message)
    for let_go in stack.let_go:
        keeping = next((each for each in locks_of(stack) if _keeps(each, let_go, stack)), None)
        if keeping is not None:
            is_pruning = keeping.steps[0] == PRUNE
            what = f"the pruning of {let_go.section}" if is_pruning else ".".join(map(str, keeping.steps))
            message = f"{what} is locked by {keeping}: take this out here, or accept a deviation by an exception"
            yield Diagnostic(let_go.steps, message)


def _keeps(lock: Lock, let_go: LetGo, stack: Stack) -> bool:
    """Return whether a lock forbids to leave an object alone: it locks the object, or that the section is pruned."""
    section, *inner = lock.steps
    if section == PRUNE:
        return bool(lock.value) and inner == [let_go.section]
    if section != let_go.section:
        return False
    spec = stack.specs[section]
    if spec.items is not None:
        return bool(inner[0] == stack.released[section][let_go.part][let_go.name])
    identity = spec.lists[let_go.part].identity
    return inner == [let_go.part] and let_go.name in map(identity, lock.value)


def _names(spec: SectionSpec, section_value: Any, values: Placeholders | None = None) -> Set[Any]:
    """Return the canonical names of the items of a section."""
    is_named = spec.items is not None and isinstance(section_value, dict)
    return {spec.normalize_key(key, values) for key in section_value} if is_named else set()


def _steps(
    spec: SectionSpec, written: str, section_value: Any, item_names: Set[Any], values: Placeholders | None = None
) -> Steps | None:
    """Return the steps to a named field or item of a section; None if the section does not declare it."""
    if spec.items is None:
        return field_path(written, section_value)
    name = spec.normalize_key(written, values)
    return (name,) if name in item_names else None


def _broken(lock: Lock, stack: Stack) -> Iterator[tuple[Layer, Diagnostic]]:
    """Yield each value by which a layer changes a locked one."""
    name, *inner = lock.steps
    if name == PRUNE:
        yield from _other_prunings(lock, stack)
        return
    yield from _drops(lock, stack)
    unites = isinstance(lock.value, list) and stack.specs[name].merges_as_set(inner[0])
    declared = declarations(stack, lock.steps[:2])
    above = dropwhile(lambda declaration: declaration.layer is not lock.layer, declared)
    for layer, _, value in declared if unites else above:
        steps, here = _against(lock, value)
        if layer is lock.layer or here is UNDECLARED:
            continue
        if unites and isinstance(here, list):
            changed = [(*steps, repr(entry)) for entry in here if entry not in lock.value]
        else:
            changed = [*differences(steps, lock.value if steps == lock.steps else UNDECLARED, here)]
        written = traced(layer, stack.specs[name], stack.values)
        yield from ((layer, _contradiction(lock, written[place].steps, layer)) for place in changed)


def _against(lock: Lock, value: Any) -> tuple[Steps, Any]:
    """Return a layer's value in the place of a locked one, given its field or item; or one around, if no mapping."""
    steps = lock.steps[:2]
    for step in lock.steps[2:]:
        if not isinstance(value, Mapping):
            break
        steps, value = (*steps, step), value.get(step, UNDECLARED)
    return steps, value


def _other_prunings(lock: Lock, stack: Stack) -> Iterator[tuple[Layer, Diagnostic]]:
    """Yield an error for each layer above a lock that prunes otherwise."""
    name = lock.steps[1]
    words = "list it here too" if lock.value else "take it out here"
    error = Diagnostic((PRUNE,), f"the pruning of {name} is locked by {lock}: {words}", at_key=True)
    for layer in dropwhile(lambda layer: layer is not lock.layer, stack.layers):
        if layer.prune is not None and (name in layer.prune) != lock.value:
            yield layer, error


def _drops(lock: Lock, stack: Stack) -> Iterator[tuple[Layer, Diagnostic]]:
    """Yield an error for the first layer above a lock that drops its value, whatever that is."""
    name, *inner = lock.steps
    spec = stack.specs[name]
    locked = traced(lock.layer, spec, stack.values)[name,].value
    for layer in dropwhile(lambda layer: layer is not lock.layer, stack.layers):
        own = traced(layer, spec, stack.values)[name,].value if name in layer.sections else None
        if isinstance(own, dict) and _at(spec.kind.remainder(locked, own), tuple(inner)) != _at(locked, tuple(inner)):
            message = f"{'.'.join(map(str, lock.steps))} is locked by {lock}, and this drops it"
            yield layer, Diagnostic((name,), message, at_key=True)
            return


def differences(steps: Steps, one: Any, other: Any) -> Iterator[Steps]:
    """Yield the steps to each value that is in both of two values, and not the same."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in other:
            if key in one:
                yield from differences((*steps, key), one[key], other[key])
    elif one != other or isinstance(one, bool) != isinstance(other, bool):
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
            return UNDECLARED
        value = value[step]
    return value
