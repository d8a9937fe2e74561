"""The comparison of the declarations of two revisions. Pure.

An object that was declared then and is not now is known to be ours: it is deleted. What no manifest declared stays.
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from reconciler.model.endpoints import Collection
from reconciler.model.kind import Kind, Kinds
from reconciler.model.resource import Resource
from reconciler.model.state import DesiredState, DesiredTarget, Section
from reconciler.model.targets import Key, Target

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
        name: the object's name.
    """

    target: Target
    section: str
    part: str
    name: Key


NOTHING: frozenset[Loss] = frozenset()


@dataclass(frozen=True, slots=True)
class Comparison:
    """The present desired state, and where the two revisions differ.

    Attributes:
        desired: all targets of now, and those of then that lost all their objects. Objects that were declared then and
            are not now must not exist. The digest is that of now.
        changed: the targets that differ.
        losses: the objects that were declared then and are not now.
    """

    desired: DesiredState
    changed: frozenset[Target]
    losses: tuple[Loss, ...] = ()

    def narrowed(self, desired: DesiredState) -> DesiredState:
        """Return the targets of a selection that have changed."""
        return replace(desired, targets=tuple(each for each in desired.targets if each.target in self.changed))


def removed(now: DesiredState, then: DesiredState) -> tuple[DesiredTarget, ...]:
    """Return the targets of then that are not targets now, and of which anything was declared."""
    present = {target.target.identity for target in now.targets}
    return tuple(each for each in then.targets if each.sections and each.target.identity not in present)


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
        then: what they declared, without targets that no longer exist.
        kinds: all kinds.
        successors: the present identity of each target of then that was renamed.
        touched: the targets of now that can have changed, the others being left out of `then`; None for any.
        kept: the losses that are not deleted. A target that lost all its objects is among the targets even so.
    """
    before: dict[Identity, list[DesiredTarget]] = {}
    for target in then.targets:
        before.setdefault(successors.get(target.target.identity, target.target.identity), []).append(target)
    present = {target.target.identity for target in now.targets}
    gone = [
        replace(former[0], sections=(), exceptions=(), creation=None)
        for name, former in before.items()
        if name not in present
    ]
    targets, losses = [], list[Loss]()
    changed = set()
    for target in (*now.targets, *gone):
        name = target.target.identity
        if touched is not None and name in present and name not in touched:
            targets.append(target)
            continue
        former = before.get(name, [])
        lost = tuple(_losses(target, former, kinds))
        if lost or name in present:
            losses += lost
            sections = tuple(_with_losses(target, [each for each in lost if each not in kept], kinds))
            present_one = replace(target, sections=sections)
            targets.append(present_one)
            if len(former) != 1 or _content(former[0]) != _content(present_one):
                changed.add(target.target)
    ordered = tuple(sorted(targets, key=lambda target: target.target.order))
    return Comparison(replace(now, targets=ordered), frozenset(changed), tuple(losses))


def is_declared(loss: Loss, target: DesiredTarget | None, kinds: Kinds) -> bool:
    """Whether a target declares an object."""
    (part,) = (each for each in _collections(kinds[loss.section]) if each.name == loss.part)
    names = _declared(target.sections if target else (), loss.section, part)
    return part.identity(loss.name) in {part.identity(name) for name in names}


def _content(target: DesiredTarget) -> object:
    """Return what is declared of a target, whatever its name."""
    return (
        target.creation,
        target.exceptions,
        [(section.kind, section.wanted, section.prune) for section in target.sections],
    )


def _losses(target: DesiredTarget, former: Iterable[DesiredTarget], kinds: Kinds) -> Iterator[Loss]:
    """Yield the objects that the target declared, under any of its names, and does not declare now."""
    past = [section for each in former for section in each.sections]
    for kind in kinds.values():
        for part in _collections(kind):
            mentioned: Iterable[Any] = (
                section.wanted.get(part.name, {}) for section in target.sections if section.kind == kind.name
            )
            kept = {part.identity(name) for names in mentioned for name in names}
            for name in dict.fromkeys(_declared(past, kind.name, part)):
                if part.identity(name) not in kept:
                    yield Loss(target.target, kind.name, part.name, name)


def _collections(kind: Kind) -> list[Collection]:
    return [part for part in kind.parts if isinstance(part, Collection)]


def _declared(sections: Iterable[Section], kind: str, part: Collection) -> list[Key]:
    """Return the names of the objects that some sections want to exist."""
    wanted: Iterable[Any] = (section.wanted.get(part.name, {}) for section in sections if section.kind == kind)
    return [name for items in wanted for name, item in items.items() if item is not None]


def _with_losses(target: DesiredTarget, losses: Sequence[Loss], kinds: Kinds) -> Iterator[Section]:
    """Yield the sections of a target, with the losses as objects that must not exist."""
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
            # Only declared parts are pruned: these are not declared, and get a section of their own.
            yield Section(target.target, name, apart)
