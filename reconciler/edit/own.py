"""The specs of targets' own documents that, merged over profiles and sets, agree with what was read.

The rules are those of `edit.place`, where profiles and sets agree to nothing: an export changes own
documents alone.
"""

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property, partial
from typing import Any

from reconciler.edit.completion import alone, checked, collected, drawn, joined
from reconciler.edit.edits import by_place, edited_value
from reconciler.edit.place import Drop, Membership, Put, Revive, Wish, is_merged
from reconciler.edit.placement import Edit, Placement
from reconciler.edit.sections import Exported, Spec
from reconciler.edit.targets import ResolvedTarget
from reconciler.edit.wishes import Wishes
from reconciler.engine.compare.planner import plan_target
from reconciler.manifests.sources import Steps
from reconciler.manifests.stack.layers import Stack
from reconciler.manifests.stack.placeholders import literal
from reconciler.manifests.stack.sections import PRUNE
from reconciler.model.exceptions import DeclaredException
from reconciler.model.kind import Kinds
from reconciler.model.plan import Plan
from reconciler.model.state import DesiredTarget, LiveState, Section, Unreadable
from reconciler.model.targets import Target


@dataclass(frozen=True)
class Addressee:
    """A target whose own document is written.

    Attributes:
        exported: what was read of it.
        stack: its layers, under the name it was read by; the last is its own document, if it has one.
        pruned: the sections that are pruned so far.
        adding: the sections to add where no layer declares them.
        complete: whether to add undeclared fields and lists of declared sections too.
        exceptions: of its document.
    """

    exported: Exported
    stack: Stack
    pruned: Collection[str]
    adding: Container[str] = ()
    complete: bool = False
    exceptions: tuple[DeclaredException, ...] = ()

    @property
    def target(self) -> Target:
        """The target."""
        return self.exported.resolved.target

    @cached_property
    def correct(self) -> list[Section]:
        """The declared sections that have no errors."""
        return [section for name in self.stack.sections for section in checked(self.stack, name)]

    @property
    def alone(self) -> "Addressee":
        """The same without its profiles and sets: its own document declares all of it."""
        return replace(self, stack=self.stack.of(self.stack.layers[-1]), adding=self.stack.specs, complete=True)


def own_specs(
    addressees: Sequence[Addressee], live: LiveState, kinds: Kinds, all_fields: bool
) -> dict[ResolvedTarget, Spec]:
    """Return the spec of each target's own document that agrees with what was read, as far as one can."""
    stacks = {addressee.target: addressee.stack for addressee in addressees}
    wishes = _wishes(addressees, stacks, live, kinds, all_fields)
    wished: dict[Target, Mapping[Steps, Wish]] = {}
    for addressee in addressees:
        differing = wishes.get(addressee.target, Wishes()).wishes
        wished[addressee.target] = {**differing, **dict(_additions(addressee))}
    shared = {layer for stack in stacks.values() for layer in stack.layers if layer.title}
    members = Membership.of(stacks.values(), wished, (), (), shared)
    edits = by_place(Placement.of(stacks.values(), members, {}).edits.values())
    specs: dict[ResolvedTarget, Spec] = {}
    for addressee in addressees:
        target, stack = addressee.target, addressee.stack
        own = stack.layers[-1]
        place = target if own.title else own.document
        value = {"spec": {}} if own.title else own.document.value
        ordered = _in_order(edits.get(place, ()), addressee, kinds)
        specs[addressee.exported.resolved] = edited_value(value, ordered, kinds, stack.specs)["spec"]
    return specs


def _wishes(
    addressees: Sequence[Addressee],
    stacks: Mapping[Target, Stack],
    live: LiveState,
    kinds: Kinds,
    all_fields: bool,
) -> dict[Target, Wishes]:
    """Return what makes the plan of each target empty; what drops may uncover, and problems hide, is planned again."""
    blank = partial(Wishes, all_fields)
    sections = {addressee.target: [*_readable(addressee.correct, live)] for addressee in addressees}
    exceptions = {addressee.target: addressee.exceptions for addressee in addressees}
    plan, live = _plan(sections, exceptions, live, kinds)
    wishes = collected(plan, _by_place(sections), stacks, live, blank)
    hiding = {problem.address.target for problem in plan.problems}
    edited = {
        target: alone(stacks[target], wished, {steps[0] for steps in wished.wishes}, kinds)
        for target, wished in wishes.items()
        if target in hiding or any(isinstance(wish, Drop | Revive) for wish in wished.wishes.values())
    }
    sections = {
        target: [*_readable((section for name in stack.sections for section in checked(stack, name)), live)]
        for target, stack in edited.items()
    }
    plan, live = _plan(sections, exceptions, live, kinds)
    further = collected(plan, _by_place(sections), edited, live, blank)
    return {target: joined(wished, further.get(target)) for target, wished in wishes.items()}


def _by_place(sections: Mapping[Target, Sequence[Section]]) -> dict[tuple[Target, str], Section]:
    return {(target, section.kind): section for target, own in sections.items() for section in own}


def _readable(sections: Iterable[Section], live: LiveState) -> Iterator[Section]:
    """Yield sections as if they were pruned, with the parts that could be read."""
    for section in sections:
        wanted = {
            part: value
            for part, value in section.wanted.items()
            if not isinstance(live.parts.get((section.target, section.kind, part), Unreadable("")), Unreadable)
        }
        if wanted:
            yield replace(section, wanted=wanted, prune=True)


def _plan(
    sections: Mapping[Target, Sequence[Section]],
    exceptions: Mapping[Target, tuple[DeclaredException, ...]],
    live: LiveState,
    kinds: Kinds,
) -> tuple[Plan, LiveState]:
    """Return the plan of each target by itself, and what was read with all lookups answered: nothing is asked for."""
    desired = [DesiredTarget(target, tuple(own), "", exceptions=exceptions[target]) for target, own in sections.items()]
    return drawn(lambda known: Plan(tuple(plan_target(wanted, known, kinds, timedelta()) for wanted in desired)), live)


def _additions(addressee: Addressee) -> Iterator[tuple[Steps, Wish]]:
    """Yield what is to be declared besides."""
    stack, exported = addressee.stack, addressee.exported
    for name, concise in exported.concise.items():
        if name in stack.unmanaged:
            continue
        if name not in stack.sections:
            if name in addressee.adding:
                yield (name,), Put(literal(concise))
        elif addressee.complete and not stack.specs[name].kind.join:
            items = stack.specs[name].items
            declared = stack.sections[name]
            for steps, value in _fields((name,), concise, 2 if items else 1):
                if not is_merged(stack, steps) and (not items or declared.get(steps[1]) is not None):
                    yield steps, Put(literal(value))
    written = {*stack.sections, *(name for name in exported.concise if name in addressee.adding)}
    prune = [name for name in addressee.pruned if name in written and name not in exported.left_out]
    if prune != stack.prune:
        yield (PRUNE,), Put(prune)


def _fields(steps: Steps, value: Mapping[str, Any], depth: int) -> Iterator[tuple[Steps, Any]]:
    """Yield the fields of a section, which are so many steps down, and what is within them; each with its steps."""
    for key, inner in value.items():
        if isinstance(inner, dict) and (depth > 1 or inner):
            yield from _fields((*steps, key), inner, depth - 1)
        else:
            yield (*steps, key), inner


def _in_order(edits: Iterable[Edit], addressee: Addressee, kinds: Kinds) -> list[Edit]:
    """Return the edits of a target's own document in the order in which it is to declare what is new."""
    stack = addressee.stack
    places: dict[Steps, int] = {(PRUNE,): 0} | {(name,): number for number, name in enumerate(kinds)}
    for name, section in addressee.exported.spec.items():
        keys = (*stack.sections.get(name, ()), *section) if stack.specs[name].items else section
        for key in keys:
            places.setdefault((name, key), len(places))

    def place(edit: Edit) -> tuple[int, int]:
        (_, steps), *_ = edit.wished
        return places[steps[:1]], places.get(steps[:2], len(places))

    return sorted(edits, key=place)
