"""Locks and minimums: values of profiles and sets that no later layer may change, or only make stricter.

Begin with `broken_locks`, which yields the errors of a stack, and `lock_on`, which returns the lock of a value. Lists
of names are united across layers; to a locked list, no other layer may add a name.
"""

import json
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, dropwhile
from operator import itemgetter
from typing import Any

from reconciler.manifests.diagnostics import Diagnostic
from reconciler.manifests.layers import (
    ALL,
    AT_LEAST,
    LOCKS,
    PRUNE,
    UNMANAGED,
    Layer,
    LetGo,
    Placeholders,
    Restriction,
    SectionSpec,
    SectionSpecs,
    Stack,
    unknown_section,
)
from reconciler.manifests.minimums import AS_STRICT, Breach, compare
from reconciler.manifests.sources import Steps
from reconciler.manifests.trace import declarations, field_path, traced
from reconciler.model.protocols import Json
from reconciler.model.resource import POLICIES

AS_EXCEPTION = "make it an exception: reconciler accept --until DAY --reason TEXT --only-locks"
HAS: Mapping[Restriction, str] = {LOCKS: "is locked", AT_LEAST: "has a minimum"}
UNDECLARED = object()
"""Marks a value that is not declared: null is a value too."""


@dataclass(frozen=True, slots=True)
class Lock:
    """A field, an item, or the pruning of a section that a layer locks; or a field or an item that is a minimum.

    Attributes:
        layer: the profile or the set.
        steps: to the value in the merged spec; to the section's name below `prune` for its pruning.
        entry: the steps to its entry in `metadata.locks`, or in `metadata.at_least`.
        value: the value, as that layer declares it.
    """

    layer: Layer
    steps: Steps
    entry: Steps
    value: Any

    def __str__(self) -> str:
        """`profile baseline (manifests/baseline.yaml:5:31)`."""
        is_all = len(self.entry) == len(("metadata", "locks", "section"))
        return f"{self.layer.title} ({self.layer.document.find(self.entry, at_key=is_all)})"

    @property
    def is_minimum(self) -> bool:
        """Whether a later layer may declare a stricter value."""
        return self.entry[:2] == ("metadata", AT_LEAST)

    @property
    def words(self) -> str:
        """`locked by profile baseline (...)`, or `a minimum in profile baseline (...)`."""
        return f"{'a minimum in' if self.is_minimum else 'locked by'} {self}"


@lru_cache(maxsize=16)
def locks_of(stack: Stack) -> tuple[Lock, ...]:
    """Return the locks of all layers, the lowest first, then their minimums.

    The result is cached, since callers look up many fields of one target.
    """
    # a profile may be merged twice: by a set, and by the target's own document
    layers = dict.fromkeys(stack.layers)
    return tuple(
        lock for restriction in (LOCKS, AT_LEAST) for layer in layers for lock in _locks(layer, stack, restriction)
    )


@lru_cache(maxsize=16)
def _by_steps(stack: Stack) -> Mapping[Steps, list[tuple[int, Lock]]]:
    """Return the locks of values by their steps, each with its position in `locks_of`."""
    placed: dict[Steps, list[tuple[int, Lock]]] = {}
    for place, lock in enumerate(locks_of(stack)):
        if lock.steps[0] != PRUNE:
            placed.setdefault(lock.steps, []).append((place, lock))
    return placed


def locks_at(stack: Stack, steps: Steps) -> list[Lock]:
    """Return the locks of exactly the value at some steps of the merged spec, the lowest first."""
    return [lock for _, lock in _by_steps(stack).get(steps, ())]


def lock_on(stack: Stack, steps: Steps) -> Lock | None:
    """Return the lock of a field, an item, or a list of the merged spec; without one, its strictest minimum; else None.

    The lock of an item covers the fields that its layer declares.
    """
    locks = [*_locks_on(stack, steps)]
    if not locks or not locks[0].is_minimum:
        return locks[0] if locks else None
    strictest = stack.winners.get(steps[: 2 if stack.specs[steps[0]].items is None else 3])
    return next((lock for lock in locks if lock.layer is strictest), locks[-1])


def _locks_on(stack: Stack, steps: Steps) -> Iterator[Lock]:
    """Yield the locks on a value or on an item that contains the value, then its minimums, the lowest first."""
    by_steps = _by_steps(stack)
    placed_locks = [placed for length in range(1, len(steps) + 1) for placed in by_steps.get(steps[:length], ())]
    for _, lock in sorted(placed_locks, key=itemgetter(0)):
        length = len(lock.steps)
        is_whole = length == len(steps) or not isinstance(lock.value, Mapping)
        if is_whole or _at(lock.value, steps[length:]) is not UNDECLARED:
            yield lock


def broken_locks(stack: Stack) -> Iterator[tuple[Layer, Diagnostic]]:
    """Yield an error for each value by which a layer breaks a lock or a minimum of another layer.

    The steps of an error are those in the spec of the layer that breaks the lock. Lists of names are united whatever
    the order of the layers: a lower layer that adds an entry to a locked list breaks the lock too.
    """
    yield from ((stack.layers[-1], error) for error in _unmanaged(stack))
    errors: dict[Layer, list[Diagnostic]] = {}
    for layer, error in chain(_broken_locks(stack), _broken_minimums(stack)):
        errors.setdefault(layer, []).append(error)
    for layer in dict.fromkeys(stack.layers):
        yield from ((layer, error) for error in errors.get(layer, ()))


def deviations(stack: Stack) -> Iterator[tuple[Layer, Steps]]:
    """Yield each value that breaks a lock, by its layer and its steps in this layer, as written.

    Errors are omitted that removing one value cannot fix: a value that drops a locked one, `prune`, and `unmanaged`.
    """
    for layer, error in broken_locks(stack):
        if not error.at_key and error.steps[0] != UNMANAGED:
            yield layer, error.steps


def restriction_errors(layer: Layer, specs: SectionSpecs) -> Iterator[Diagnostic]:
    """Yield an error for each invalid entry of `locks` and `at_least` of a layer.

    Invalid are values that the layer does not declare, minimums of values of which none is stricter than another, and
    values that are both locked and a minimum.
    """
    for restriction, entries_by_section in ((LOCKS, layer.locks), (AT_LEAST, layer.at_least)):
        for name, entries in entries_by_section.items():
            names = _names(specs[name], layer.sections.get(name)) if name in specs else frozenset()
            above: Steps = ("metadata", restriction, name)
            if name not in specs:
                yield Diagnostic(above, unknown_section(name, specs, specs), at_key=True)
            elif entries == ALL and name not in layer.sections:
                yield Diagnostic(
                    above, f"{name} {HAS[restriction]}, and this document does not declare it", at_key=True
                )
            elif restriction == AT_LEAST and not specs[name].directed:
                yield Diagnostic(
                    above, f"nothing in {name} is stricter or looser than something else: lock it", at_key=True
                )
            elif entries == ALL:
                own = layer.sections[name]
                messages = (
                    [_fault(layer, specs[name], restriction, entry, names) for entry in own]
                    if isinstance(own, dict)
                    else ()
                )
                yield from (Diagnostic(above, message, at_key=True) for message in messages if message)
            else:
                messages = [_fault(layer, specs[name], restriction, entry, names) for entry in entries]
                places = (((*above, number), message) for number, message in enumerate(messages))
                yield from (Diagnostic(at, message) for at, message in places if message)


def _fault(layer: Layer, spec: SectionSpec, restriction: Restriction, entry_name: str, item_names: Set[Any]) -> str:
    """Return the error of an entry of `locks` or `at_least`; empty if the entry is valid."""
    name, is_minimum = spec.kind.name, restriction == AT_LEAST
    section, locked = layer.sections.get(name), layer.locks.get(name, ()) if is_minimum else ()
    steps = None if entry_name == PRUNE else _steps(spec, entry_name, section, item_names)
    undirected = _undirected(spec, entry_name, steps, section) if is_minimum else ""
    if undirected:
        return undirected
    if steps is None and (entry_name != PRUNE or layer.prune is None):
        where = "" if entry_name == PRUNE else f" under {name}"
        return f"`{entry_name}` {HAS[restriction]}, and this document does not declare it{where}"
    if locked == ALL or steps in [_steps(spec, own, section, item_names) for own in locked if own != PRUNE]:
        place = layer.document.find(("metadata", LOCKS, name), at_key=True)
        return f"`{entry_name}` is locked too, at {place}: one of the two has to go"
    return ""


def _undirected(spec: SectionSpec, entry_name: str, steps: Steps | None, section_value: Any) -> str:
    """Return the reason for which a field or an item of a document cannot be a minimum; empty if it can."""
    value = None if steps is None else _at(section_value, steps)
    fields: list[str] = []
    if entry_name == PRUNE or (steps is None and entry_name in POLICIES):
        fields = [entry_name]
    elif steps is not None and spec.items is None:
        fields = [str(steps[0])]
    elif steps is not None and value is None:
        return f"`{entry_name}` must not exist, and whatever exists is stricter: lock it"
    elif isinstance(value, dict):
        fields = [name for name in value if name not in POLICIES]
    undirected = [name for name in fields if name not in spec.directed]
    of = "" if undirected[:1] == [entry_name] else f" of `{entry_name}`"
    return f"`{undirected[0]}`{of} is neither stricter nor looser than another value: lock it" if undirected else ""


def _locks(layer: Layer, stack: Stack, restriction: Restriction) -> Iterator[Lock]:
    """Yield the locks of a layer in sections of a target, or its minimums."""
    for name, entries in (layer.locks if restriction == LOCKS else layer.at_least).items():
        if name in stack.unmanaged or name not in stack.specs:
            continue
        spec = stack.specs[name]
        above: Steps = ("metadata", restriction, name)
        if restriction == LOCKS and (entries == ALL or PRUNE in entries):
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
        restricted = [(LOCKS, "is locked by", name) for name in sorted(stack.unmanaged & layer.locks.keys())]
        restricted += [(AT_LEAST, "has minimums in", name) for name in sorted(stack.unmanaged & layer.at_least.keys())]
        for restriction, words, name in restricted:
            lock = f"{layer.title} ({layer.document.find(('metadata', restriction, name), at_key=True)})"
            message = f"{name} {words} {lock}: take it out here, or accept a deviation by an exception"
            written = stack.layers[-1].document.value["spec"][UNMANAGED]
            yield Diagnostic((UNMANAGED, *(() if written == ALL else (written.index(name),))), message)
    for let_go in stack.let_go:
        keeping = next((each for each in locks_of(stack) if _keeps(each, let_go, stack)), None)
        if keeping is not None:
            is_pruning = keeping.steps[0] == PRUNE
            locked_name = f"the pruning of {let_go.section}" if is_pruning else ".".join(map(str, keeping.steps))
            message = f"{locked_name} is {keeping.words}: take this out here, or accept a deviation by an exception"
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


def _broken_locks(stack: Stack) -> Iterator[tuple[Layer, Diagnostic]]:
    for lock in locks_of(stack):
        yield from () if lock.is_minimum else _broken(lock, stack)


def _broken_minimums(stack: Stack) -> Iterator[tuple[Layer, Diagnostic]]:
    """Yield each value that conflicts with a minimum of another layer; and each minimum that conflicts with a lock."""
    for name in stack.sections:
        for key, joined in stack.joined(name):
            for breach in joined.breaches:
                above = (name,) if key is None else (name, key)
                yield breach.layer, _breach(breach, above, stack)


def _breach(breach: Breach, object_steps: Steps, stack: Stack) -> Diagnostic:
    """Return the error about a value; the item or the section is at `object_steps`."""
    own = traced(breach.layer, stack.specs[object_steps[0]], stack.values)
    other = traced(breach.against, stack.specs[object_steps[0]], stack.values)
    field = (*object_steps, *breach.steps[:1])
    holder = next((lock for lock in _locks_on(stack, field) if lock.layer is breach.against), other[field])
    value = other[field].value
    shown = "" if isinstance(value, dict | list) else f" {json.dumps(value, default=str)}"
    declared, remedy = (
        ".".join(map(str, field)),
        "or leave it out" if breach.layer.title else f"leave it out, or {AS_EXCEPTION}",
    )
    match breach.fault:
        case "looser":
            message = f"{declared} is not as strict as the minimum{shown and ' of'}{shown} in {holder}: declare that"
            message = f"{message} or a stricter value, {remedy}"
        case "incomparable":
            message = (
                f"{declared} cannot be compared with the minimum in {holder}: of two minimums, one has to be stricter"
            )
        case _:
            message = (
                f"{declared} is locked{shown and ' to'}{shown} by {holder}, which is not as strict as this minimum"
            )
    return Diagnostic(own[*object_steps, *breach.steps].steps, message)


def is_as_strict(stack: Stack, steps: Steps, value: Json) -> bool:
    """Return whether a value is as strict as all minimums of its field."""
    name, *inner = steps
    spec = stack.specs[name]
    *above, field = inner
    merged = _at(stack.sections, (name, *above))
    model = spec.model(stack.target.level)
    minimum_locks = (lock for lock in _locks_on(stack, steps) if lock.is_minimum)
    minimums = ({**merged, field: _at(lock.value, steps[len(lock.steps) :])} for lock in minimum_locks)
    return all(compare(model, field, {**merged, field: value}, minimum) in AS_STRICT for minimum in minimums)


def _broken(lock: Lock, stack: Stack) -> Iterator[tuple[Layer, Diagnostic]]:
    """Yield each value by which a layer changes a locked value; minimums are left to `_broken_minimums`."""
    name, *inner = lock.steps
    if name == PRUNE:
        yield from _other_prunings(lock, stack)
        return
    yield from _drops(lock, stack)
    unites = isinstance(lock.value, list) and stack.specs[name].merges_as_set(inner[0])
    declared = declarations(stack, lock.steps[:2])
    above = dropwhile(lambda declaration: declaration.layer is not lock.layer, declared)
    # A united list has the entries of all layers: an entry of a lower layer changes the locked list too.
    for layer, _, value in declared if unites else above:
        steps, here = _against(lock, value)
        if layer is lock.layer or here is UNDECLARED:
            continue
        if unites and isinstance(here, list):
            changed = [(*steps, repr(entry)) for entry in here if entry not in lock.value]
        else:
            changed = [*differences(steps, lock.value if steps == lock.steps else UNDECLARED, here)]
        written = traced(layer, stack.specs[name], stack.values)
        minimums = layer.restricted_fields(AT_LEAST, stack.specs[name], stack.values)
        for place in changed:
            key, *field = place[1:] if stack.specs[name].items else (None, *place[1:])
            if minimums.get(key, frozenset()).isdisjoint(field[:1]):
                yield layer, _contradiction(lock, written[place].steps, layer)


def _against(lock: Lock, value: Any) -> tuple[Steps, Any]:
    """Return the steps and the value that a layer has in place of a locked value.

    If an outer value is not a mapping, the steps end at this value. The given value is that of the field or item.
    """
    steps = lock.steps[:2]
    for step in lock.steps[2:]:
        if not isinstance(value, Mapping):
            break
        steps, value = (*steps, step), value.get(step, UNDECLARED)
    return steps, value


def _other_prunings(lock: Lock, stack: Stack) -> Iterator[tuple[Layer, Diagnostic]]:
    """Yield an error for each later layer whose `prune` differs from a lock."""
    name = lock.steps[1]
    words = "list it here too" if lock.value else "take it out here"
    error = Diagnostic((PRUNE,), f"the pruning of {name} is locked by {lock}: {words}", at_key=True)
    for layer in dropwhile(lambda layer: layer is not lock.layer, stack.layers):
        if layer.prune is not None and (name in layer.prune) != lock.value:
            yield layer, error


def _drops(lock: Lock, stack: Stack) -> Iterator[tuple[Layer, Diagnostic]]:
    """Yield an error for the first later layer that drops a locked value."""
    name, *inner = lock.steps
    spec = stack.specs[name]
    locked = traced(lock.layer, spec, stack.values)[name,].value
    for layer in dropwhile(lambda layer: layer is not lock.layer, stack.layers):
        own = traced(layer, spec, stack.values)[name,].value if name in layer.sections else None
        # a layer can drop a locked value without naming it: another level than `custom` drops all events
        if isinstance(own, dict) and _at(spec.kind.remainder(locked, own), tuple(inner)) != _at(locked, tuple(inner)):
            message = f"{'.'.join(map(str, lock.steps))} is locked by {lock}, and this drops it"
            yield layer, Diagnostic((name,), message, at_key=True)
            return


def differences(steps: Steps, one: Any, other: Any) -> Iterator[Steps]:
    """Yield the steps to each part that two values have in common and that differs."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in other:
            if key in one:
                yield from differences((*steps, key), one[key], other[key])
    # To Python, `True == 1`; to the service, they are two values.
    elif one != other or isinstance(one, bool) != isinstance(other, bool):
        yield steps


def _contradiction(lock: Lock, steps: Steps, layer: Layer) -> Diagnostic:
    locked_name = ".".join(map(str, lock.steps))
    value = "" if isinstance(lock.value, dict | list) else f" to {json.dumps(lock.value, default=str)}"
    remedy = "or leave it out" if layer.title else f"leave it out, or {AS_EXCEPTION}"
    return Diagnostic(steps, f"{locked_name} is locked{value} by {lock}: repeat its value, {remedy}")


def _at(value: Any, steps: Steps) -> Json:
    """Return the value at some steps; `UNDECLARED` if there is no such value."""
    for step in steps:
        if not isinstance(value, Mapping) or step not in value:
            return UNDECLARED
        value = value[step]
    return value
