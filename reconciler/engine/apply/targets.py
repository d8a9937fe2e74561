"""The state of all targets in an apply: `Targets` records created targets, their IDs, and blocked targets.

A creation that fails blocks the targets in a group, and those that refer to it.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

from reconciler.engine.apply.options import ApplyOptions, NotAttempted
from reconciler.engine.compare.creation import references
from reconciler.engine.lookups import look_up_id
from reconciler.errors import ServiceError
from reconciler.model.creation import ID_OF
from reconciler.model.endpoints import CREATED, OWNER, SECTION
from reconciler.model.item import Change, Create, Status
from reconciler.model.obstacle import Obstacle
from reconciler.model.plan import TargetPlan
from reconciler.model.protocols import Json, Reader, Service
from reconciler.model.state import Reference
from reconciler.model.targets import Address, Identity, Key, Level, Target

ABOVE = frozenset({CREATED, SECTION, OWNER})
"""The keys of a placeholder for an object of a group above that the same run creates."""


class Numbers:
    """The numeric IDs of paths, for all targets of a run: learned from live state, or requested once."""

    def __init__(self) -> None:
        self._known: dict[Reference, int | Obstacle] = {}
        self._asking: dict[Reference, Lock] = {}

    def learn(self, ids: Mapping[Reference, int | Obstacle]) -> None:
        """Add the IDs that live state has shown."""
        self._known.update(ids)

    def known(self, reference: Reference) -> int | None:
        """Return the ID of a path, if it is known."""
        number = self._known.get(replace(reference, path=reference.path.casefold()))
        return number if isinstance(number, int) else None

    def of(self, reference: Reference, reader: Reader) -> int | Obstacle:
        """Return the ID of a path; requested if it is not known."""
        # One lock for each path: targets in parallel that need the same ID share one request, and others do not wait
        # for it.
        with self._asking.setdefault(reference, Lock()):
            if reference not in self._known:
                self._known[reference] = look_up_id(reference, reader)
        return self._known[reference]


@dataclass(frozen=True, slots=True)
class KnownTarget:
    """The state of one target in a run.

    Attributes:
        not_attempted: the reason to attempt nothing in it; None without one.
        is_new: whether this run has created it, or has found it instead of creating it.
        is_ours: whether this run has created it.
        is_filled: whether an archive has arrived, or may have, in this group.
    """

    not_attempted: NotAttempted | None = None
    is_new: bool = False
    is_ours: bool = False
    is_filled: bool = False


UNTOUCHED = KnownTarget()


class Targets:
    """The state of all targets in a run. Safe to use from any thread.

    The run of the whole plan makes it. The run of a target records the state of that target alone.

    Attributes:
        service: the service.
        options: of the run.
        tokens: the tokens for other services, which no message may repeat.
        numbers: the known IDs of all targets.
    """

    def __init__(self, service: Service, options: ApplyOptions, tokens: Collection[str] = ()) -> None:
        self.service, self.options, self.tokens, self.numbers = service, options, tokens, Numbers()
        self._states: dict[Identity, KnownTarget] = {}
        self._made: dict[tuple[str, str, Key], int] = {}
        self._lock = Lock()

    def __getitem__(self, target: Target) -> KnownTarget:
        """Return the state of a target in this run."""
        return self._states.get(target.identity, UNTOUCHED)

    def not_attempted(self, target: Target) -> NotAttempted | None:
        """Return the reason to attempt nothing in a target: it, or a group above, was not created. None without one."""
        reasons = (self[needed].not_attempted for needed in [target, *parent_groups(target)])
        return next((not_attempted for not_attempted in reasons if not_attempted is not None), None)

    def is_in_archive(self, target: Target) -> bool:
        """Return whether an archive has arrived, or may have, in a group above a target."""
        return any(self[group].is_filled for group in parent_groups(target))

    def give_up(self, target: Target, reason: str, outcome_status: Status = Status.SKIPPED) -> None:
        """Record that nothing can be attempted in a target."""
        self._note(target, not_attempted=NotAttempted(outcome_status, reason))

    def learn(self, target: Target, number: int, *, is_ours: bool) -> None:
        """Record the ID of a new target."""
        self._note(target, is_new=True, is_ours=is_ours)
        self.numbers.learn({Reference(target.level, str(target.ref).casefold()): number})

    def fill(self, group: Target) -> None:
        """Record that an archive arrives, or may arrive, in a group."""
        self._note(group, is_filled=True)

    def _note(self, target: Target, **changes: Any) -> None:
        with self._lock:
            self._states[target.identity] = replace(self[target], **changes)

    def note_made(self, made_objects: Iterable[tuple[Address, int | None]]) -> None:
        """Record the IDs of group objects that this run has created, or has found instead of creating them."""
        for address, number in made_objects:
            if address.target.level is Level.GROUP and number is not None and address.name is not None:
                with self._lock:
                    self._made[str(address.target).casefold(), address.section, address.name] = number

    def with_made(self, change: Change) -> Change:
        """Return a change with the known IDs of the group objects that it refers to."""

        def number(placeholder: Mapping[str, Json]) -> Json:
            if placeholder.keys() != ABOVE:
                return placeholder
            return self._made.get(
                (str(placeholder[OWNER]), str(placeholder[SECTION]), str(placeholder[CREATED])), placeholder
            )

        return _with_ids(change, number) if refers_above(change) else change

    def completed(self, change: Change) -> Change | NotAttempted:
        """Return a change with the IDs of the targets that it refers to, or the reason not to attempt it."""
        ids: dict[str, int] = {}
        for target in targets_in(change):
            not_attempted = self.not_attempted(target)
            if not_attempted is not None:
                return not_attempted
            try:
                number = self.numbers.of(Reference(target.level, str(target.ref).casefold()), self.service)
            except ServiceError as error:
                self.options.stop.after(error)
                return NotAttempted(Status.SKIPPED, str(error))
            if isinstance(number, Obstacle):
                return NotAttempted(Status.SKIPPED, f"{target} does not exist yet; apply again once it was created")
            ids[str(target)] = number
        if not ids:
            return change
        body = change.requests[0].body or {}
        is_named_by_id = any(isinstance(value, dict) and ID_OF in value for value in body.values())
        change = _with_ids(change, lambda value: ids[value[ID_OF]] if value.keys() == {ID_OF} else value)
        # What is created stands for one of these targets, and does not just mention it.
        if isinstance(change, Create) and change.address.section and is_named_by_id:
            return replace(change, target_id=next(iter(ids.values())))
        return change


def parent_groups(target: Target) -> Iterator[Target]:
    """Yield the groups above a target that its path shows, the nearest first."""
    path = target.ref if isinstance(target.ref, str) else ""
    while path := path.rpartition("/")[0]:
        yield Target(Level.GROUP, path)


def targets_in(change: Change) -> Iterator[Target]:
    """Yield the targets whose IDs the requests of a change lack."""
    for name in {name for request in change.requests for name in references(request.body)}:
        level, _, path = name.partition(" ")
        yield Target(Level(level), path)


def waves(plans: Iterable[TargetPlan]) -> list[list[TargetPlan]]:
    """Return new targets in waves, each of which needs only earlier ones: groups by depth, then projects."""
    by_depth: dict[tuple[bool, int], list[TargetPlan]] = {}
    for plan in plans:
        is_project = plan.target.level is Level.PROJECT
        depth = 0 if is_project else str(plan.target.ref).count("/")
        by_depth.setdefault((is_project, depth), []).append(plan)
    return [by_depth[place] for place in sorted(by_depth)]


def split_creation(target_plan: TargetPlan) -> Iterator[TargetPlan]:
    """Yield the creation of a target that does not exist, and its declared sections, as separate plans."""
    declared = [name for name in target_plan.sections if name]
    yield target_plan.only([""])
    if declared or target_plan.importing:
        yield target_plan.only(declared)


def filled(value: Json, id_of: Callable[[Mapping[str, Json]], Json]) -> Json:
    """Return a value of a body with IDs instead of placeholders.

    Args:
        value: the value.
        id_of: returns the ID for a placeholder, or the mapping itself if it is none, or the ID is unknown.
    """
    match value:
        case dict():
            known = id_of(value)
            return {key: filled(inner, id_of) for key, inner in value.items()} if known is value else known
        case list():
            return [filled(inner, id_of) for inner in value]
    return value


def _with_ids(change: Change, id_of: Callable[[Mapping[str, Json]], Json]) -> Change:
    """Return a change with `filled` requests."""
    requests = (replace(request, body=filled(request.body, id_of)) for request in change.requests)
    return replace(change, requests=tuple(requests))


def refers_above(change: Change) -> str:
    """Return a group object whose ID the requests of a change lack, in words; empty if they lack none."""
    values = (value for request in change.requests for value in (request.body or {}).values())
    lacking = (one for value in values if isinstance(value, list) for one in value)
    return next(
        (f'"{one[CREATED]}" of {one[OWNER]}' for one in lacking if isinstance(one, dict) and one.keys() == ABOVE), ""
    )
