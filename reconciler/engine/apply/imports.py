"""Waiting for background jobs of the service: imports of projects, and archives of groups. Begin with `Imports`.

An import has a status. An archive has none: it has arrived once two looks at the group show the same content.
"""

import logging
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from threading import Lock

from reconciler.engine.apply.new_targets import NewTarget
from reconciler.engine.apply.options import NotAttempted
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
"""Lists of a group and its subgroups that an archive fills, besides the lists of kinds."""

# A job of the service unpacks the archive: until it has run, the group looks as empty as one from an empty archive.
EMPTY_LOOKS = 5
"""The number of looks at an empty group after which its archive counts as empty."""

ROUND = 60
"""Seconds after which the service accepts further imports, after it has refused one as too many."""

NOT_YET = (AnswerLost, NotFound, RateLimited, ServerFailure)
"""Errors after which the state of an import is read again."""


class Imports:
    """Waits for imports and archives, and holds back targets whose import or archive has not succeeded.

    Attributes:
        unfinished: a sentence for each import that was still running when the time was over.
        omissions: a sentence for each import that has finished without some objects.
    """

    def __init__(self, run_targets: Targets, kinds: Kinds) -> None:
        self.targets, self.service, self.options = run_targets, run_targets.service, run_targets.options
        self.lists = (*LISTS, *(kind.arrives_in for kind in kinds.values() if kind.arrives_in))
        self.unfinished: list[str] = []
        self.omissions: list[str] = []
        self._lock = Lock()
        self._full: set[str] = set()
        self._creations: dict[Identity, NewTarget] = {}
        self._are_rounds_logged = False

    def create(self, creation: NewTarget) -> None:
        """Create a target; an import that the service refuses as one too many is postponed to the next round."""
        self._creations[creation.target.identity] = creation
        if self._full.isdisjoint(creation.sources):
            creation.run()
            if not creation.refusal:
                return
        with self._lock:
            self._full |= set(creation.sources)
            # Several threads create targets: the message is logged once.
            are_rounds_logged, self._are_rounds_logged = self._are_rounds_logged, True
        if not are_rounds_logged:
            LOG.info("The service takes only some imports a minute; the others are asked for again every %d s", ROUND)

    def fill(self, new_targets: Iterable[NewTarget]) -> None:
        """Wait for the archives of new groups, and compare the groups once these have arrived."""
        filled = [creation for creation in new_targets if creation.is_filled]
        self.arrive(str(creation.target.ref) for creation in filled)
        for creation in filled:
            creation.look_again()

    def is_postponed(self, plan: TargetPlan) -> bool:
        """Return whether a target, or one that its changes refer to, is an import not accepted yet."""
        targets = chain([plan.target], *map(targets_in, plan.changes))
        creations = (self._creations.get(target.identity) for target in targets)
        return any(creation is not None and not creation.is_begun for creation in creations)

    @property
    def _postponed(self) -> list[NewTarget]:
        """The creations that the service has not accepted yet; only valid while no other thread creates targets."""
        return [creation for creation in self._creations.values() if not creation.is_begun]

    def ended(self, plans: Iterable[TargetPlan]) -> Iterator[list[TargetPlan]]:
        """Yield targets as their imports end; when the time is over, also those whose imports are running.

        Imports that were refused as too many are requested again in the meantime.
        """
        running, next_round, time = list(plans), ROUND, in_words(self.options.wait)
        looks = pauses(self.service, "GET projects/:id/import", 2, longest=30, wait=self.options.wait)
        try:
            for waited in chain([0], looks):
                if not running or self.options.stop.reason:
                    return
                if waited >= next_round:
                    next_round += ROUND
                    self._ask_again()
                states = side_by_side(self._state, running, self.service.concurrency)
                for plan, state in zip(running, states, strict=True):
                    self._take(plan.target, state)
                yield [plan for plan, state in zip(running, states, strict=True) if not state.is_running]
                running = [plan for plan, state in zip(running, states, strict=True) if state.is_running]
                if not running:
                    return
                if not waited:
                    others = f" and {len(running) - 1} more" if len(running) > 1 else ""
                    LOG.info("Waiting for the import of %s%s, %s at most", running[0].target, others, time)
        except Stopped:
            return
        self._give_up(running, time)
        yield running

    def _ask_again(self) -> None:
        """Request postponed imports again, until the service accepts no further one."""
        self._full.clear()
        for creation in self._postponed:
            self.create(creation)

    def _give_up(self, unfinished: Iterable[TargetPlan], time: str) -> None:
        """Give up the targets whose imports are running, or not accepted, when the time is over."""
        postponed = [plan.target for plan in unfinished if self.is_postponed(plan)]
        for creation in self._postponed:
            if creation.refusal:
                reason = advised(creation.refusal, f"the service has refused it for {time}: apply again later")
                creation.refuse(NotAttempted(Status.FAILED, reason))
            else:
                reason = f"the service has taken no further import for {time}; apply again later"
                creation.refuse(NotAttempted(Status.SKIPPED, reason))
        for plan in unfinished:
            state = self._state(plan) if plan.target in postponed else ImportState(is_running=True)
            self._take(plan.target, state)
            if state.is_running:
                self._leave(plan.target, f"the import of {plan.target} still runs after {time}")

    def arrive(self, paths: Iterable[str]) -> None:
        """Wait until the archives of groups have arrived; give up the groups whose archive has not."""
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
        """Skip this target: the service is still importing it."""
        self.unfinished.append(f"{reason}; the service goes on with it, and the same command goes on from there")
        self.targets.give_up(target, self.unfinished[-1])

    def _arrives(self, group: Target) -> bool | None:
        """Return whether the archive of a group has arrived in time; None if the run was ended."""
        LOG.info("Waiting until the archive of %s has arrived, %s at most", group, in_words(self.options.wait))
        before, empty = self._content(group), 0
        try:
            for _ in pauses(self.service, f"GET {group.url}import", 1, longest=30, wait=self.options.wait):
                now = self._content(group)
                empty += not any(now.values())
                # No endpoint shows the end of a group's import (GitLab 18.9).
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
                # All pages are read: above 10,000 entries, no header has the length (deployed behaviour, section 7.3).
                return len(self.service.pages(f"{group.url}{path}"))
            except ServiceError:
                return None

        return {path: count(path) for path in self.lists}

    def _state(self, plan: TargetPlan) -> ImportState:
        """Return the state of a project's import; an import that cannot be watched has failed."""
        if self.targets.not_attempted(plan.target) is not None:
            return ImportState()
        if self.is_postponed(plan):
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

    def _take(self, project: Target, shown_state: ImportState) -> None:
        """Record the end of an import, if it has ended."""
        if shown_state.obstacle:
            if self.targets[project].is_ours:
                self._creations[project.identity].fail(
                    advised(shown_state.obstacle.reason, shown_state.obstacle.remedy)
                )
            self.targets.give_up(project, f"the import of {project} did not succeed")
        if shown_state.omissions:
            self.omissions.append(
                f"the import of {project} has left out {shown_state.omissions}; compare the project with its source"
            )


def look_at_import(project: Target, reader: Reader, *, begun: bool, secrets: Collection[str]) -> ImportState:
    """Read the state of a project's import.

    Args:
        project: the project.
        reader: which.
        begun: whether this run has requested the import: then it may not have begun yet.
        secrets: texts that the reason of a failure must not hold.

    Raises:
        ServiceError: the state cannot be read.
    """
    try:
        answer = reader.get(f"{project.url}import")
    except NOT_YET:
        return ImportState(is_running=True)
    record = answer if isinstance(answer, dict) else {}
    # The import is scheduled by a background job, which may not have run yet.
    if begun and record.get("import_status") == "none":
        return ImportState(is_running=True)
    return import_state(project, record, secrets)


def pauses(service: Service, request: str, seconds: float, *, longest: float, wait: float) -> Iterator[float]:
    """Pause before each look, longer each time, until the time is over; yield the seconds waited so far.

    Args:
        service: pauses.
        request: the look, as messages name it.
        seconds: the first pause.
        longest: the longest.
        wait: the most seconds in total.

    Raises:
        Stopped: the run was ended.
    """
    remaining = wait
    while remaining > 0:
        pause = min(seconds, remaining)
        service.pause(request, pause)
        remaining -= pause
        seconds = min(2 * seconds, longest)
        yield wait - remaining


def in_words(seconds: float) -> str:
    """Return a number of seconds in the form of an option's value, such as `30m`."""
    for unit, size in (("h", 3600), ("m", 60)):
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:g}{unit}"
    return f"{seconds:g}s"
