"""The specs of own documents that, merged over profiles and sets, declare the live values. See `own_specs`.

The rules are those of `edit.place`, with profiles and sets that never change: an export writes own documents alone.
"""

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any

from reconciler.edit.completion import alone, checked, collected, drawn, joined, readable
from reconciler.edit.deltas import Deltas
from reconciler.edit.edits import Drop, Edit, Put, by_place, edited_value
from reconciler.edit.place import Delta, Membership, Placement, is_item, is_merged
from reconciler.edit.sections import CONTRADICTS, Exported, Spec, undeclarable
from reconciler.edit.targets import ResolvedTarget
from reconciler.engine.compare.planner import plan_target
from reconciler.manifests.documents import profile_document
from reconciler.manifests.layers import PRUNE, UNMANAGED, Layer, Stack, literal
from reconciler.manifests.sources import Document, Source, Steps
from reconciler.manifests.yaml_emitter import write_yaml
from reconciler.model.exceptions import DeclaredException
from reconciler.model.kind import Kinds
from reconciler.model.plan import Plan
from reconciler.model.resource import Objects
from reconciler.model.state import DesiredTarget, LiveState, Section, Unreadable
from reconciler.model.targets import Target


@dataclass(frozen=True)
class Addressee:
    """A target whose own document is written.

    Attributes:
        exported: its live state.
        stack: its layers, for the target as it was read; the last is its own document, if it has one.
        pruned: the sections to prune, if they are declared.
        adding: the sections to add if no layer declares them.
        complete: whether to add undeclared fields and lists of declared sections too.
        exceptions: of its document.
        lacking: the sections that a project without a document cannot have; None for a target with a document.
    """

    exported: Exported
    stack: Stack
    pruned: Collection[str]
    adding: Container[str] = ()
    complete: bool = False
    exceptions: tuple[DeclaredException, ...] = ()
    lacking: frozenset[str] | None = None

    @property
    def target(self) -> Target:
        """The target."""
        return self.exported.resolved.target

    @property
    def lower(self) -> tuple[Layer, ...]:
        """The profiles and sets below its own document."""
        layers = self.stack.layers
        return layers if layers[-1].title else layers[:-1]

    @property
    def alone(self) -> "Addressee":
        """The target without its profiles and sets: its own document declares all of its sections."""
        return replace(self, stack=self.stack.of(self.stack.layers[-1]), adding=self.stack.specs, complete=True)


def own_specs(
    addressees: Sequence[Addressee], live: LiveState, kinds: Kinds, all_fields: bool
) -> dict[ResolvedTarget, Spec]:
    """Return the spec of each own document that declares the live values, if a manifest can."""
    stacks = {addressee.target: addressee.stack for addressee in addressees}
    deltas = _deltas(addressees, stacks, live, kinds, all_fields)
    by_target: dict[Target, Mapping[Steps, Delta]] = {}
    for addressee in addressees:
        differing = deltas.get(addressee.target, Deltas()).by_steps
        by_target[addressee.target] = {**differing, **dict(_additions(addressee)), **_withdrawn(addressee, live)}
    # an export changes no profile and no set: targets that it has not read may share them
    shared = {layer for stack in stacks.values() for layer in stack.layers if layer.title}
    members = Membership.of(stacks.values(), by_target, (), (), shared)
    edits = by_place(Placement.of(stacks.values(), members, {}).edits.values())
    specs: dict[ResolvedTarget, Spec] = {}
    for addressee in addressees:
        target, stack = addressee.target, addressee.stack
        own = stack.layers[-1]
        place = target if own.title else own.document
        value = {"spec": {}} if own.title else own.document.value
        ordered = _in_order(edits.get(place, ()), addressee, kinds)
        specs[addressee.exported.resolved] = edited_value(value, ordered, kinds, stack.specs).get("spec", {})
    return specs


def fitting(
    addressees: Sequence[Addressee], specs: Mapping[ResolvedTarget, Spec], live: LiveState, kinds: Kinds
) -> frozenset[ResolvedTarget]:
    """Return the targets whose plan is empty, with their own documents above profiles and sets."""
    sections: dict[Target, list[Section]] = {}
    for addressee in addressees:
        own = layer_of(specs[addressee.exported.resolved], "")
        stack = addressee.stack.of(*addressee.lower, own)
        correct = [section for name in stack.sections for section in checked(stack, name)]
        is_read = addressee.lacking is None or _is_read(stack, live, addressee.lacking, above=bool(own.sections))
        is_correct = len(correct) == len(stack.sections) and not any(_misfits(each, stack) for each in addressee.lower)
        if is_read and is_correct:
            sections[addressee.target] = [*readable(correct, live)]
    exceptions = {addressee.target: addressee.exceptions for addressee in addressees}
    plan, _ = _plan(sections, exceptions, live, kinds)
    matching = {planned.target for planned in plan.targets if not (planned.changes or planned.problems)}
    return frozenset(
        addressee.exported.resolved for addressee in addressees if addressee.target in matching & sections.keys()
    )


def layer_of(spec: Spec, title: str) -> Layer:
    """Return the layer of a document that is not written yet; without a title, that of a target's own document."""
    document = profile_document("unwritten", spec)
    sections = {name: section for name, section in spec.items() if name not in {PRUNE, UNMANAGED}}
    source = Source("unwritten", write_yaml([document]))
    return Layer(Document(source, 0, 1, document), title, sections, spec.get(PRUNE), {}, None)


def _is_read(stack: Stack, live: LiveState, lacking: Set[str], *, above: bool) -> bool:
    """Whether all sections of a project could be read that it can have.

    A set leaves out the sections that a project cannot have, but only if the project has no document.
    """
    parts = {name: [part.name for part in stack.specs[name].kind.parts] for name in stack.sections}
    unread = {
        name
        for name in stack.sections
        for part in parts[name]
        if isinstance(live.parts.get((stack.target, name, part), Unreadable("")), Unreadable)
    }
    return unread <= lacking and not (above and lacking & stack.sections.keys())


def _misfits(layer: Layer, stack: Stack) -> bool:
    """Whether a profile or set has sections that a target cannot have, or names that are equal for the target."""
    for name, section in layer.sections.items():
        spec = stack.specs[name]
        if stack.target.level not in spec.kind.models:
            return True
        if len({spec.normalize_key(key, stack.values) for key in section}) < len(section):
            return True
    return False


def _deltas(
    addressees: Sequence[Addressee],
    stacks: Mapping[Target, Stack],
    live: LiveState,
    kinds: Kinds,
    all_fields: bool,
) -> dict[Target, Deltas]:
    """Return the deltas that make each plan empty; targets with removals or problems are planned twice."""
    blank = partial(Deltas, all_fields)
    exceptions = {addressee.target: addressee.exceptions for addressee in addressees}
    sections = {target: [*_declared(stack, live)] for target, stack in stacks.items()}
    plan, live = _plan(sections, exceptions, live, kinds)
    deltas = collected(plan, _by_place(sections), stacks, live, blank)
    # a removed value uncovers that of a lower layer, and a problem hides differences: only a second plan shows these
    hiding = {problem.address.target for problem in plan.problems}
    edited = {
        target: alone(stacks[target], own, {steps[0] for steps in own.by_steps}, kinds)
        for target, own in deltas.items()
        if target in hiding
        or any(isinstance(delta, Drop) or is_item(stacks[target], at) for at, delta in own.by_steps.items())
    }
    sections = {target: [*_declared(stack, live)] for target, stack in edited.items()}
    plan, live = _plan(sections, exceptions, live, kinds)
    further = collected(plan, _by_place(sections), edited, live, blank)
    return {target: joined(own, further.get(target)) for target, own in deltas.items()}


def _by_place(sections_by_target: Mapping[Target, Sequence[Section]]) -> dict[tuple[Target, str], Section]:
    return {(target, section.kind): section for target, own in sections_by_target.items() for section in own}


def _declared(stack: Stack, live: LiveState) -> Iterator[Section]:
    """Yield the sections of a target that have no errors, as if they were pruned."""
    sections = (section for name in stack.sections for section in checked(stack, name))
    # an undeclared object has to come up as a deletion, so that it gets declared
    yield from (replace(section, prune=True) for section in readable(sections, live))


def _plan(
    sections_by_target: Mapping[Target, Sequence[Section]],
    exceptions_by_target: Mapping[Target, tuple[DeclaredException, ...]],
    live: LiveState,
    kinds: Kinds,
) -> tuple[Plan, LiveState]:
    """Return the plan of each target by itself, and live state in which lookups count as unknown; sends nothing."""
    desired = [
        DesiredTarget(target, tuple(own), "", exceptions=exceptions_by_target[target])
        for target, own in sections_by_target.items()
    ]
    return drawn(lambda known: Plan(tuple(plan_target(wanted, known, kinds, timedelta()) for wanted in desired)), live)


def _additions(addressee: Addressee) -> Iterator[tuple[Steps, Delta]]:
    """Yield the deltas for live values that no layer declares yet, and for `prune`."""
    stack, exported = addressee.stack, addressee.exported
    for name, section in exported.spec.items():
        if name in stack.unmanaged:
            continue
        names = {part: released.keys() for part, released in stack.released.get(name, {}).items()}
        kept, _ = stack.specs[name].without(section, names)
        if name not in stack.sections:
            if name in addressee.adding:
                yield (name,), Put(literal(kept))
        elif addressee.complete and not stack.specs[name].kind.join:
            items = stack.specs[name].items
            declared = stack.sections[name]
            for steps, value in _fields((name,), kept, 2 if items else 1):
                if not is_merged(stack, steps) and (not items or declared.get(steps[1]) is not None):
                    yield steps, Put(literal(value))
    written = {*stack.sections, *(name for name in exported.spec if name in addressee.adding)}
    prune = [name for name in addressee.pruned if name in written and name not in exported.left_out]
    if prune != stack.prune:
        yield (PRUNE,), Put(prune)


def _withdrawn(addressee: Addressee, live: LiveState) -> dict[Steps, Delta]:
    """Return deltas that drop the values that the export omits, since they contradict other live values."""
    stack, deltas = addressee.stack, dict[Steps, Delta]()
    for name, left_out in addressee.exported.left_out.items():
        items = stack.specs[name].items
        read = live.parts.get((addressee.target, name, items.name)) if items else None
        if items and isinstance(read, Objects) and any(entry.cause.endswith(CONTRADICTS) for entry in left_out):
            for record in read.own:
                steps = [(name, items.identity(record.names[0]), field) for field in undeclarable(record)]
                deltas |= {at: Drop() for at in steps if is_merged(stack, at)}
    return deltas


def _fields(steps: Steps, mapping: Mapping[str, Any], depth: int) -> Iterator[tuple[Steps, Any]]:
    """Yield the fields of a section at a depth, and the values within them, each with its steps."""
    for key, inner in mapping.items():
        if isinstance(inner, dict) and (depth > 1 or inner):
            yield from _fields((*steps, key), inner, depth - 1)
        else:
            yield (*steps, key), inner


def _in_order(edits: Iterable[Edit], addressee: Addressee, kinds: Kinds) -> list[Edit]:
    """Return the edits of a target's own document in the order in which new sections and items are declared."""
    stack = addressee.stack
    places: dict[Steps, int] = {(PRUNE,): 0} | {(name,): number for number, name in enumerate(kinds)}
    for name, section in addressee.exported.spec.items():
        keys = (*stack.sections.get(name, ()), *section) if stack.specs[name].items else section
        for key in keys:
            places.setdefault((name, key), len(places))

    def place(edit: Edit) -> tuple[int, int]:
        (_, steps), *_ = edit.needed_by
        return places[steps[:1]], places.get(steps[:2], len(places))

    return sorted(edits, key=place)
