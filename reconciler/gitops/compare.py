"""What manifests declare now compared with what they declared then: what has changed, and what is to go. Pure.

What was declared then and is not now is known to be ours: it is to be deleted. What no manifest declared stays.
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from reconciler.model.endpoints import Collection
from reconciler.model.kind import Kinds
from reconciler.model.resource import Resource
from reconciler.model.state import DesiredState, DesiredTarget, Section
from reconciler.model.targets import Key, Target
from reconciler.planning.parts import identity

Identity = tuple[Any, Any]
"""See `Target.identity`."""

Wishes = Mapping[Key, Resource | None]

NOBODY: Mapping[Identity, Identity] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Loss:
    """An object that was declared then and is not now.

    Attributes:
        target: its target, as it is called now.
        section: the section's name.
        part: which of the section's endpoints.
        name: what the object is called.
    """

    target: Target
    section: str
    part: str
    name: Key


NOTHING: frozenset[Loss] = frozenset()


@dataclass(frozen=True, slots=True)
class Comparison:
    """What is wanted now, what is to go, and where the two revisions differ.

    Attributes:
        desired: all targets of now, and those of then that lost all they had. Objects that were declared then and are
            not now must not exist. The digest is that of now.
        changed: the targets of which other things are true now than then.
        losses: what was declared then and is not now.
    """

    desired: DesiredState
    changed: frozenset[Target]
    losses: tuple[Loss, ...] = ()

    def narrowed(self, desired: DesiredState) -> DesiredState:
        """Return the part of a selection of the targets that has changed."""
        return replace(desired, targets=tuple(each for each in desired.targets if each.target in self.changed))


def removed(now: DesiredState, then: DesiredState) -> tuple[DesiredTarget, ...]:
    """Return the targets of then that are no targets now."""
    present = {target.target.identity for target in now.targets}
    return tuple(target for target in then.targets if target.target.identity not in present)


def compare(
    now: DesiredState,
    then: DesiredState,
    kinds: Kinds,
    successors: Mapping[Identity, Identity] = NOBODY,
    touched: Container[object] | None = None,
    *,
    kept: Container[Loss] = NOTHING,
) -> Comparison:
    """Compare two desired states.

    Args:
        now: what the manifests declare.
        then: what they declared; targets that are not there any more left out.
        kinds: all kinds.
        successors: what a target of then is called now, where it is called otherwise.
        touched: the targets of now that can have changed, the others being left out of `then`; None for any.
        kept: what is not to be deleted though it was lost. A target that lost all it had is among the others even so.
    """
    before: dict[Identity, list[DesiredTarget]] = {}
    for target in then.targets:
        before.setdefault(successors.get(target.target.identity, target.target.identity), []).append(target)
    targets, changed = [], set()
    losses: list[Loss] = []
    for target in now.targets:
        if touched is not None and target.target.identity not in touched:
            targets.append(target)
            continue
        former = before.pop(target.target.identity, [])
        lost = tuple(_losses(target, former, kinds))
        losses += lost
        sections = tuple(_with_losses(target, [each for each in lost if each not in kept], kinds))
        targets.append(replace(target, sections=sections))
        if len(former) != 1 or _content(former[0].sections) != _content(sections):
            changed.add(target.target)
    for former in before.values():
        target = replace(former[0], sections=())
        lost = tuple(_losses(target, former, kinds))
        losses += lost
        if lost:
            sections = tuple(_with_losses(target, [each for each in lost if each not in kept], kinds))
            targets.append(replace(target, sections=sections))
            changed.add(target.target)
    ordered = tuple(sorted(targets, key=lambda target: target.target.order))
    return Comparison(replace(now, targets=ordered), frozenset(changed), tuple(losses))


def is_declared(loss: Loss, target: DesiredTarget | None, kinds: Kinds) -> bool:
    """Whether a target declares an object."""
    part = _part(kinds, loss)
    names = {
        identity(part, name)
        for section in (target.sections if target else ())
        if section.kind == loss.section and isinstance(items := section.wanted.get(loss.part), Mapping)
        for name, item in items.items()
        if item is not None
    }
    return identity(part, loss.name) in names


def _content(sections: Iterable[Section]) -> list[tuple[str, Mapping[str, Any], bool]]:
    """What sections declare, whatever their target is called."""
    return [(section.kind, section.wanted, section.prune) for section in sections]


def _losses(target: DesiredTarget, former: Iterable[DesiredTarget], kinds: Kinds) -> Iterator[Loss]:
    """Yield what the target declared under its former names and does not now."""
    present = {section.kind: section for section in target.sections}
    past = [section for each in former for section in each.sections]
    for name, kind in kinds.items():
        for part in kind.parts:
            if isinstance(part, Collection):
                wanted: Any = present[name].wanted.get(part.name, {}) if name in present else {}
                for key in _lost(part, wanted, past, name):
                    yield Loss(target.target, name, part.name, key)


def _with_losses(target: DesiredTarget, losses: Sequence[Loss], kinds: Kinds) -> Iterator[Section]:
    """Yield the sections of a target, with what was lost as what must not exist."""
    present = {section.kind: section for section in target.sections}
    for name, kind in kinds.items():
        section = present.get(name)
        wanted: dict[str, Any] = dict(section.wanted) if section else {}
        apart: dict[str, Wishes] = {}
        for part in kind.parts:
            lost = {each.name: None for each in losses if (each.section, each.part) == (name, part.name)}
            if not lost:
                continue
            if section and section.prune and part.name not in wanted:
                apart[part.name] = lost
            else:
                wanted[part.name] = {**wanted.get(part.name, {}), **lost}
        if wanted or section:
            yield Section(target.target, name, wanted, section.prune if section else False)
        if apart:
            # Only declared parts are pruned, so that these, which are not, stand in a section of their own.
            yield Section(target.target, name, apart)


def _lost(part: Collection, wanted: Wishes, past: Iterable[Section], kind: str) -> Iterator[Key]:
    kept = {identity(part, name) for name in wanted}
    declared = (section.wanted.get(part.name, {}) for section in past if section.kind == kind)
    lost = {
        name: None
        for items in declared
        if isinstance(items, Mapping)
        for name, item in items.items()
        if item is not None and identity(part, name) not in kept
    }
    yield from lost


def _part(kinds: Kinds, loss: Loss) -> Collection:
    return next(part for part in kinds[loss.section].parts if isinstance(part, Collection) and part.name == loss.part)
