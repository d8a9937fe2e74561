"""The stage that waits for what the service does after it has answered: imports of projects, archives of groups.

An import says when it has finished. An archive says nothing: it has arrived once two looks at the group agree.
"""

import logging
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from threading import Lock

from reconciler.engine.apply.new_targets import NewTarget
from reconciler.engine.apply.options import Fate
from reconciler.engine.apply.targets import Targets, targets_in
from reconciler.engine.crew import side_by_side
from reconciler.engine.imports import ImportState, import_state
from reconciler.errors import AnswerLost, NotFound, RateLimited, ServerFailure, ServiceError, Stopped
from reconciler.model.item import RUN_ENDED, Status
from reconciler.model.kind import Kinds
from reconciler.model.obstacle import Obstacle
from reconciler.model.plan import TargetPlan
from reconciler.model.protocols import Reader, Service
from reconciler.model.targets import Identity, Level, Target
from reconciler.model.wording import advised

LOG = logging.getLogger(__name__)

LISTS = ("descendant_groups", "labels?include_ancestor_groups=false&include_descendant_groups=true")
"""Lists of a group, with all below it, that an archive fills, besides those of kinds."""

EMPTY_LOOKS = 5
"""After so many looks at a group that is still empty, its archive is taken to hold nothing."""

ROUND = 60
"""Seconds after which the service takes further imports, where it took too many."""

NOT_YET = (AnswerLost, NotFound, RateLimited, ServerFailure)
"""After these, one looks again."""


class Imports:
    """Waits for imports and archives, and keeps back what is declared where one has not come to its end.

    Attributes:
        unfinished: a sentence for each import that went on when the time was over.
        left_out: a sentence for each import that has finished without some objects.
    """

    def __init__(self, targets: Targets, kinds: Kinds) -> None:
        self.targets, self.service, self.options = targets, targets.service, targets.options
        self.lists = (*LISTS, *(kind.arrives_in for kind in kinds.values() if kind.arrives_in))
        self.unfinished: list[str] = []
        self.left_out: list[str] = []
        self._lock = Lock()
        self._full: set[str] = set()
        self._creations: dict[Identity, NewTarget] = {}
        self._are_rounds_told = False

    def create(self, creation: NewTarget) -> None:
        """Create a target; an import is postponed to the next round where the service takes no further ones now."""
        self._creations[creation.target.identity] = creation
        if self._full.isdisjoint(creation.sources):
            creation.run()
            if not creation.refusal:
                return
        with self._lock:
            self._full |= set(creation.sources)
            are_rounds_told, self._are_rounds_told = self._are_rounds_told, True
        if not are_rounds_told:
            LOG.info("The service takes only some imports a minute; the others are asked for again every %d s", ROUND)

    def fill(self, creations: Iterable[NewTarget]) -> None:
        """Wait for the archives that new groups are made of, and compare the groups once these have arrived."""
        filled = [creation for creation in creations if creation.is_filled]
        self.arrive(str(creation.target.ref) for creation in filled)
        for creation in filled:
            creation.look_again()

    def holds_up(self, plan: TargetPlan) -> bool:
        """Return whether a target, or one that its changes refer to, is an import that the service has yet to take."""
        targets = chain([plan.target], *map(targets_in, plan.changes))
        creations = (self._creations.get(target.identity) for target in targets)
        return any(creation is not None and not creation.is_begun for creation in creations)

    @property
    def _postponed(self) -> list[NewTarget]:
        """The creations that the service has yet to take, while no other thread creates targets."""
        return [creation for creation in self._creations.values() if not creation.is_begun]

    def ended(self, plans: Iterable[TargetPlan]) -> Iterator[list[TargetPlan]]:
        """Yield targets as their imports end; when the time is over, also those whose imports go on.

        Imports that the service took too many of are asked for again in the meantime.
        """
        left, next_round, time = list(plans), ROUND, in_words(self.options.wait)
        looks = pauses(self.service, "GET projects/:id/import", 2, longest=30, wait=self.options.wait)
        try:
            for waited in chain([0], looks):
                if not left or self.options.stop.reason:
                    return
                if waited >= next_round:
                    next_round += ROUND
                    self._ask_again()
                states = side_by_side(self._state, left, self.service.concurrency)
                for plan, state in zip(left, states, strict=True):
                    self._take(plan.target, state)
                yield [plan for plan, state in zip(left, states, strict=True) if not state.is_running]
                left = [plan for plan, state in zip(left, states, strict=True) if state.is_running]
                if not left:
                    return
                if not waited:
                    others = f" and {len(left) - 1} more" if len(left) > 1 else ""
                    LOG.info("Waiting for the import of %s%s, %s at most", left[0].target, others, time)
        except Stopped:
            return
        self._give_up(left, time)
        yield left

    def _ask_again(self) -> None:
        """Ask for postponed imports again, until the service takes no further one."""
        self._full.clear()
        for creation in self._postponed:
            self.create(creation)

    def _give_up(self, left: Iterable[TargetPlan], time: str) -> None:
        """Do nothing where imports go on when the time is over, or were not taken in it."""
        held = [plan.target for plan in left if self.holds_up(plan)]
        for creation in self._postponed:
            if creation.refusal:
                reason = advised(creation.refusal, f"the service has refused it for {time}: apply again later")
                creation.refuse(Fate(Status.FAILED, reason))
            else:
                reason = f"the service has taken no further import for {time}; apply again later"
                creation.refuse(Fate(Status.SKIPPED, reason))
        for plan in left:
            state = self._state(plan) if plan.target in held else ImportState(is_running=True)
            self._take(plan.target, state)
            if state.is_running:
                self._leave(plan.target, f"the import of {plan.target} still runs after {time}")

    def arrive(self, paths: Iterable[str]) -> None:
        """Wait until the archives of groups have arrived; nothing is done where one has not."""
        groups = [Target(Level.GROUP, path) for path in sorted(paths)]
        for group in groups:
            self.targets.fill(group)
        arrived = side_by_side(self._arrives, groups, self.service.concurrency)
        for group, has_arrived in zip(groups, arrived, strict=True):
            if has_arrived is None:
                self.targets.give_up(group, RUN_ENDED)
            elif not has_arrived:
                self._leave(group, f"the archive of {group} is still arriving after {in_words(self.options.wait)}")

    def _leave(self, target: Target, reason: str) -> None:
        """Note that nothing can be done in a target before the service has ended what it does there."""
        self.unfinished.append(f"{reason}; the service goes on with it, and the same command goes on from there")
        self.targets.give_up(target, self.unfinished[-1])

    def _arrives(self, group: Target) -> bool | None:
        """Wait until the archive of a group has arrived; return whether it has in time, None if the run was ended."""
        LOG.info("Waiting until the archive of %s has arrived, %s at most", group, in_words(self.options.wait))
        before, empty = self._content(group), 0
        try:
            for _ in pauses(self.service, f"GET {group.url}import", 1, longest=30, wait=self.options.wait):
                now = self._content(group)
                empty += not any(now.values())
                if now == before and (any(now.values()) or empty >= EMPTY_LOOKS):
                    LOG.info("%s: the archive has arrived, as far as the service shows that", group)
                    return True
                before = now
        except Stopped:
            return None
        return False

    def _content(self, group: Target) -> dict[str, int | None]:
        """Return the length of each list of a group; None for a list that cannot be read."""

        def count(path: str) -> int | None:
            try:
                return len(self.service.pages(f"{group.url}{path}"))
            except ServiceError:
                return None

        return {path: count(path) for path in self.lists}

    def _state(self, plan: TargetPlan) -> ImportState:
        """Return the state of a project's import; an import that cannot be watched has failed."""
        if self.targets.fate(plan.target) is not None:
            return ImportState()
        if self.holds_up(plan):
            return ImportState(is_running=True)
        if not plan.importing:
            return ImportState()
        begun = self.targets[plan.target].is_ours
        try:
            state = look_at_import(plan.target, self.service, begun=begun, secrets=self.targets.tokens)
        except Stopped:
            return ImportState(is_running=True)
        except ServiceError as error:
            self.options.stop.after(error)
            return ImportState(obstacle=Obstacle(plan.target.address, f"its import cannot be watched: {error}"))
        obstacle = state.obstacle and replace(state.obstacle, remedy="delete the project, and apply again")
        return replace(state, obstacle=obstacle)

    def _take(self, project: Target, state: ImportState) -> None:
        """Note the end of an import, if it has ended."""
        if state.obstacle:
            if self.targets[project].is_ours:
                self._creations[project.identity].fail(advised(state.obstacle.reason, state.obstacle.remedy))
            self.targets.give_up(project, f"the import of {project} did not succeed")
        if state.left_out:
            self.left_out.append(
                f"the import of {project} has left out {state.left_out}; compare the project with its source"
            )


def look_at_import(project: Target, service: Reader, *, begun: bool, secrets: Collection[str]) -> ImportState:
    """Ask how the import of a project is going.

    Args:
        project: the project.
        service: which.
        begun: whether this run has asked for it: then it may not have begun yet.
        secrets: texts that the reason of a failure must not hold.

    Raises:
        ServiceError: it cannot be watched.
    """
    try:
        answer = service.get(f"{project.url}import")
    except NOT_YET:
        return ImportState(is_running=True)
    record = answer if isinstance(answer, dict) else {}
    if begun and record.get("import_status") == "none":
        return ImportState(is_running=True)
    return import_state(project, record, secrets)


def pauses(service: Service, request: str, seconds: float, *, longest: float, wait: float) -> Iterator[float]:
    """Pause before each look, longer each time, until the time is over; yield the seconds waited so far.

    Args:
        service: keeps the pauses.
        request: the look, as messages name it.
        seconds: the first pause.
        longest: the longest.
        wait: seconds to wait in all.

    Raises:
        Stopped: the run was ended.
    """
    left = wait
    while left > 0:
        pause = min(seconds, left)
        service.pause(request, pause)
        left -= pause
        seconds = min(2 * seconds, longest)
        yield wait - left


def in_words(seconds: float) -> str:
    """Return a number of seconds as an option takes it, such as `30m`."""
    for unit, size in (("h", 3600), ("m", 60)):
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:g}{unit}"
    return f"{seconds:g}s"
