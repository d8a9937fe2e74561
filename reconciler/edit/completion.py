"""The deltas of targets, completed by those that appear when the first ones are carried out. Pure."""

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from dataclasses import replace

from reconciler.edit.deltas import Deltas
from reconciler.edit.edits import Rename, by_place, edited_stack
from reconciler.edit.place import Membership, Placement
from reconciler.manifests.layers import Stack
from reconciler.manifests.validation import check_section
from reconciler.model.obstacle import Obstacle
from reconciler.model.plan import Plan
from reconciler.model.state import LiveState, Lookup, Reference, Section, Unreadable, Vocabulary
from reconciler.model.targets import Target

Place = tuple[Target, str]
"""A target, and a section of it."""


def collected(
    plan: Plan,
    declared_sections: Mapping[Place, Section],
    stacks: Mapping[Target, Stack],
    live: LiveState,
    blank: Callable[[], Deltas] = Deltas,
) -> dict[Target, Deltas]:
    """Return the deltas that make a plan empty.

    Args:
        plan: of targets.
        declared_sections: their sections.
        stacks: their layers.
        live: their live state.
        blank: makes an empty collection of deltas.
    """
    deltas: dict[Target, Deltas] = {}
    for target in plan.targets:
        for name in target.sections:
            section = target.only([name])
            if section.changes or section.problems:
                of_target = deltas.setdefault(target.target, blank())
                of_target.collect(section, declared_sections[target.target, name], stacks[target.target], live)
    return deltas


def alone(stack: Stack, deltas: Deltas, sections: Collection[str], kept: Container[str]) -> Stack:
    """Return some sections of a target after its deltas, as if its layers had no other targets."""
    members = Membership.of([stack], {stack.target: deltas.by_steps}, {(stack.target, section) for section in sections})
    placement = Placement.of([stack], members, {})
    return edited_stack(stack, by_place(placement.edits.values()), sections, kept)


def checked(stack: Stack, name: str) -> Iterator[Section]:
    """Yield a section of a target, unless it has errors."""
    spec, pruned = stack.specs[name], name in stack.prune
    checked, _ = check_section(stack, spec, stack.target)
    if checked is not None:
        wanted, released = spec.kind.wanted(checked, prune=pruned), stack.released.get(name, {})
        yield Section(stack.target, name, wanted, pruned, at_least=stack.minimums(name), released=released)


def readable(candidates: Iterable[Section], live: LiveState) -> Iterator[Section]:
    """Yield sections with the parts that could be read."""
    for section in candidates:
        wanted = {
            part: value
            for part, value in section.wanted.items()
            if not isinstance(live.parts.get((section.target, section.kind, part), Unreadable("")), Unreadable)
        }
        if wanted:
            yield replace(section, wanted=wanted)


def joined(deltas: Deltas, further: Deltas | None) -> Deltas:
    """Return the deltas of a target and further ones, in which a renamed item has its former name."""
    if further is None:
        return deltas
    former = {(steps[0], delta.name): steps for steps, delta in deltas.by_steps.items() if isinstance(delta, Rename)}
    return replace(
        deltas,
        by_steps={former.get(steps[:2], steps[:2]) + steps[2:]: delta for steps, delta in further.by_steps.items()}
        | deltas.by_steps,
        refused=further.refused | deltas.refused,
    )


def drawn(draw: Callable[[LiveState], Plan], live: LiveState) -> tuple[Plan, LiveState]:
    """Return the plan that a function makes of live state, and live state in which all lookups count as unknown."""
    plan = draw(live)
    # an unknown name may hide the lookup of another name
    while missing := plan.lookups:
        live = _unasked(live, missing)
        plan = draw(live)
    return plan, live


def _unasked(live: LiveState, missing: Iterable[Lookup]) -> LiveState:
    """Return the live state, with the missing lookups as unknown."""
    unknown = {lookup: Obstacle(lookup.target.address, "not looked up") for lookup in missing}
    references = {lookup: why for lookup, why in unknown.items() if isinstance(lookup, Reference)}
    lists = {lookup: why for lookup, why in unknown.items() if isinstance(lookup, Vocabulary)}
    return replace(live, ids={**live.ids, **references}, names={**live.names, **lists})
