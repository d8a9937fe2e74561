"""Exceptions: the changes that they hold back, and the planning of all other fields. See `PartExceptions`. Pure.

An object with an excepted field is planned with and without it, and the difference is held back: a field cannot be cut
from a request afterwards.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date
from typing import TypeGuard

from reconciler.model.diff import Fields, fields_of, without
from reconciler.model.endpoints import Collection
from reconciler.model.exceptions import DeclaredException
from reconciler.model.item import Action, Change, Create, Delete, Finding, Update, excepted_at
from reconciler.model.kind import Kind, Kinds, Part
from reconciler.model.plan import Step
from reconciler.model.resource import POLICIES, Resource, Wanted
from reconciler.model.state import DesiredState, Lookup, Section
from reconciler.model.targets import Key

Exceptions = Sequence[DeclaredException]


class PartExceptions:
    """The exceptions of a section, indexed for the objects of one part: a section may have thousands of both."""

    def __init__(self, exceptions: Exceptions = (), part: Part | None = None) -> None:
        self._part = part
        self._by_item: dict[Key | None, list[tuple[int, DeclaredException]]] = {}
        for place, exception in enumerate(exceptions):
            if exception.item is None:
                self._by_item.setdefault(None, []).append((place, exception))
            elif isinstance(part, Collection):
                self._by_item.setdefault(part.identity(exception.item), []).append((place, exception))

    def covering(self, names: Iterable[Key]) -> tuple[DeclaredException, ...]:
        """Return the exceptions for an object or for one of its fields, in their order.

        Args:
            names: all its names; none for a settings record.
        """
        if not self._by_item:
            return ()
        items: set[Key | None] = {None}
        if isinstance(self._part, Collection):
            items.update(map(self._part.identity, names))
        return tuple(
            exception for _, exception in sorted(pair for item in items for pair in self._by_item.get(item, ()))
        )

    def whole(self, names: Iterable[Key]) -> tuple[DeclaredException, ...]:
        """Return the exceptions for all of an object, which is then neither created nor changed nor deleted."""
        return tuple(exception for exception in self.covering(names) if self._is_whole(exception))

    def without_excepted(
        self, names: Iterable[Key], wanted: Resource, plan_object: Callable[[Resource], Sequence[Step]]
    ) -> Sequence[Step]:
        """Plan an object without its excepted fields; the changes that are held back become findings `excepted`.

        Args:
            names: see `covering`.
            wanted: the declared fields.
            plan_object: plans the object with any declared fields.
        """
        steps = plan_object(wanted)
        about = self.covering(names)
        whole = [exception for exception in about if self._is_whole(exception)]
        fields = _names(about, wanted) if about and not whole else []
        if not whole and not fields:
            return steps
        # An unanswered lookup hides steps: only the plan after its answer shows what the exception holds back.
        lookups = [step for step in steps if isinstance(step, Lookup)]
        kept = lookups if whole else [*lookups, *plan_object(without(wanted, fields))]
        remedy = f"an exception holds back {', '.join(fields)}: except the whole object, or end the exception"
        steps_with_fix = [
            replace(step, fix=remedy) if _is_problem(step) and step not in steps else step for step in kept
        ]
        return [*steps_with_fix, *_excepted(steps, kept, whole or [one for one in about if _names([one], wanted)])]

    def excepting_all(self, declaration: Wanted, *, prune: bool = False) -> tuple[DeclaredException, ...]:
        """Return the exceptions that hold back the whole declaration of the part; none if anything is planned.

        Args:
            declaration: the declaration of the part.
            prune: whether undeclared objects are deleted, so that the declaration has an effect on them.
        """
        whole = self.whole(())
        if whole:
            return whole
        if isinstance(declaration, Resource):
            about = self.covering(())
            declared = {*fields_of(declaration), *(POLICIES & declaration.model_fields_set)}
            return about if declared and declared.issubset(_names(about, declaration)) else ()
        excepting = [self.whole((name,)) for name in declaration]
        return (
            tuple(dict.fromkeys(exception for item in excepting for exception in item))
            if all(excepting) and not prune
            else ()
        )

    def _is_whole(self, exception: DeclaredException) -> bool:
        """Return whether an exception covers all of an object; a section of several parts has fields of their names."""
        name = self._part.name if self._part else ""
        return not exception.fields or (name in exception.fields and name != exception.section)


NO_EXCEPTIONS = PartExceptions()


def excepting_section(section: Section, exceptions: Exceptions, kind: Kind) -> tuple[DeclaredException, ...]:
    """Return the exceptions that hold back the whole declaration of a section; none if anything is planned."""
    excepting = []
    for name, wanted in section.wanted.items():
        part = kind.part(name)
        excepting.append(PartExceptions(exceptions, part).excepting_all(wanted, prune=section.prune))
    return tuple(dict.fromkeys(exception for part in excepting for exception in part)) if all(excepting) else ()


def excepted_problem(problem: Finding, about: Exceptions) -> Finding:
    """Return the finding `excepted` for a problem that exceptions cover."""
    return _excepted_finding(problem, None, {}, {problem.field: None} if problem.field else {}, about)


def without_excepted_settings(desired: DesiredState, today: date, kinds: Kinds) -> DesiredState:
    """Return the desired state without excepted settings, for sections that an apply plans again.

    Of a section with exceptions, objects are left out altogether: those of sections that are planned again are none.
    """
    targets = (
        replace(
            target,
            sections=tuple(_less(section, target.excepts(section.kind, today), kinds) for section in target.sections),
        )
        if target.exceptions
        else target
        for target in desired.targets
    )
    return replace(desired, targets=tuple(targets))


def _less(section: Section, exceptions: Exceptions, kinds: Kinds) -> Section:
    wanted: dict[str, Wanted] = dict(section.wanted)
    for name, declared in section.wanted.items() if exceptions else ():
        part = kinds[section.kind].part(name)
        about = PartExceptions(exceptions, part)
        if isinstance(declared, Resource) and not about.whole(()):
            wanted[name] = without(declared, _names(about.covering(()), declared))
        else:
            del wanted[name]
    return replace(section, wanted=wanted)


def _names(about: Exceptions, wanted: Resource) -> list[str]:
    """Return the declared fields that exceptions cover, as `fields_of` names them."""
    excepted = {field for exception in about for field in exception.fields}
    declared = [*fields_of(wanted), *sorted(POLICIES & wanted.model_fields_set)]
    return [name for name in declared if not excepted.isdisjoint((name, name.partition(".")[0]))]


def _is_problem(step: Step) -> TypeGuard[Finding]:
    return isinstance(step, Finding) and step.code == "problem"


def _excepted(steps: Sequence[Step], kept_steps: Sequence[Step], about: Exceptions) -> Iterator[Finding]:
    """Yield a finding for each step that the exceptions hold back."""
    made = {
        (change.action, change.address): change for change in kept_steps if isinstance(change, Create | Update | Delete)
    }
    for step in steps:
        if _is_problem(step) and step not in kept_steps:
            yield excepted_problem(step, about)
        elif isinstance(step, Create | Update | Delete):
            before, after = _fields(step)
            same = made.get((step.action, step.address))
            if same is None:
                yield _excepted_finding(step, step.action, before, after, about)
            elif lost := [name for name in after if name not in _fields(same)[1]]:
                was = {name: before.get(name) for name in lost}
                yield _excepted_finding(step, "update", was, {name: after[name] for name in lost}, about)


def _fields(change: Change) -> tuple[Fields, Fields]:
    """Return the fields of a change as they were read and as they will be."""
    return ({} if isinstance(change, Create) else change.before), ({} if isinstance(change, Delete) else change.after)


def _excepted_finding(
    planned_step: Change | Finding, action: Action | None, before: Fields, after: Fields, about: Exceptions
) -> Finding:
    reasons = dict.fromkeys(exception.reason for exception in about)
    until = min(exception.until for exception in about)
    return excepted_at(
        planned_step.address, action, before, after, until=until, reason="; ".join(reasons), origin=about[0].origin
    )
