"""What manifests declare now compared with what they declared then: what has changed, and what is to go. Pure.

What was declared then and is not now is known to be ours: it is to be deleted. What no manifest declared stays.
"""

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from reconciler.address import Key, Scope
from reconciler.endpoints import Collection
from reconciler.kind import Kinds
from reconciler.matching import identity
from reconciler.resource import Resource
from reconciler.state import DesiredState, Section, Target

Identity = tuple[Any, Any]
"""See `Scope.identity`."""

Wishes = Mapping[Key, Resource | None]

NOBODY: Mapping[Identity, Identity] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Comparison:
    """What is wanted now, what is to go, and where the two revisions differ.

    Attributes:
        desired: all targets of now, and those of then that lost all they had. Objects that were declared then and are
            not now must not exist. The digest is that of now.
        changed: the targets of which other things are true now than then.
    """

    desired: DesiredState
    changed: frozenset[Scope]

    def narrowed(self, desired: DesiredState) -> DesiredState:
        """Return the part of a selection of the targets that has changed."""
        return replace(desired, targets=tuple(each for each in desired.targets if each.scope in self.changed))


def removed(now: DesiredState, then: DesiredState) -> tuple[Target, ...]:
    """Return the targets of then that are no targets now."""
    present = {target.scope.identity for target in now.targets}
    return tuple(target for target in then.targets if target.scope.identity not in present)


def compare(
    now: DesiredState,
    then: DesiredState,
    kinds: Kinds,
    successors: Mapping[Identity, Identity] = NOBODY,
    touched: Container[object] | None = None,
) -> Comparison:
    """Compare two desired states.

    Args:
        now: what the manifests declare.
        then: what they declared; targets that are not there any more left out.
        kinds: all kinds.
        successors: what a target of then is called now, where it is called otherwise.
        touched: the targets of now that can have changed, the others being left out of `then`; None for any.
    """
    before: dict[Identity, list[Target]] = {}
    for target in then.targets:
        before.setdefault(successors.get(target.scope.identity, target.scope.identity), []).append(target)
    targets, changed = [], set()
    for target in now.targets:
        if touched is not None and target.scope.identity not in touched:
            targets.append(target)
            continue
        former = before.pop(target.scope.identity, [])
        sections = tuple(_with_losses(target, former, kinds))
        targets.append(replace(target, sections=sections))
        if len(former) != 1 or _content(former[0].sections) != _content(sections):
            changed.add(target.scope)
    for former in before.values():
        target = replace(former[0], sections=())
        sections = tuple(_with_losses(target, former, kinds))
        if sections:
            targets.append(replace(target, sections=sections))
            changed.add(target.scope)
    ordered = tuple(sorted(targets, key=lambda target: target.scope.order))
    return Comparison(replace(now, targets=ordered), frozenset(changed))


def _content(sections: Iterable[Section]) -> list[tuple[str, Mapping[str, Any], bool]]:
    """What sections declare, whatever their target is called."""
    return [(section.kind, section.wanted, section.prune) for section in sections]


def _with_losses(target: Target, former: Iterable[Target], kinds: Kinds) -> Iterator[Section]:
    """Yield the sections of a target, with what was declared then and is not now as what must not exist."""
    present = {section.kind: section for section in target.sections}
    past = [section for each in former for section in each.sections]
    for name, kind in kinds.items():
        section = present.get(name)
        wanted: dict[str, Any] = dict(section.wanted) if section else {}
        apart: dict[str, Wishes] = {}
        for part in kind.parts:
            lost = _lost(part, wanted.get(part.name, {}), past, name) if isinstance(part, Collection) else {}
            if not lost:
                continue
            if section and section.prune and part.name not in wanted:
                apart[part.name] = lost
            else:
                wanted[part.name] = {**wanted.get(part.name, {}), **lost}
        if wanted or section:
            yield Section(target.scope, name, wanted, section.prune if section else False)
        if apart:
            # Only declared parts are pruned, so that these, which are not, stand in a section of their own.
            yield Section(target.scope, name, apart)


def _lost(part: Collection, wanted: Wishes, past: Iterable[Section], kind: str) -> dict[Key, None]:
    kept = {identity(part, name) for name in wanted}
    declared = (section.wanted.get(part.name, {}) for section in past if section.kind == kind)
    return {
        name: None
        for items in declared
        if isinstance(items, Mapping)
        for name, item in items.items()
        if item is not None and identity(part, name) not in kept
    }
