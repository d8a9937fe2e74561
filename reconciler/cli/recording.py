"""The inventory around an apply: read again before the first write, and stored after the result."""

import logging
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.cli.exit_codes import ExitCode, heeding
from reconciler.cli.outputs import report_error
from reconciler.errors import InventoryNotStored, OutputFailed, ServiceError
from reconciler.system.processes import repository

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from datetime import datetime

    from reconciler.document.document import RunDocument
    from reconciler.engine.apply import Application
    from reconciler.engine.apply.aftermath import Names
    from reconciler.gitops.ancestry import Ancestry
    from reconciler.gitops.apply_log import Apply
    from reconciler.gitops.inventory import OpenInventory
    from reconciler.model.inventory import Inventory
    from reconciler.model.plan import Plan, TargetPlan
    from reconciler.model.state import LivePart, PartAddress
    from reconciler.model.targets import Target
    from reconciler.model.upkeep import Changes
    from reconciler.service import Client

LOG = logging.getLogger("reconciler")

NO_CHECKOUT = (
    "no longer declared, and deleted only in a checkout of the manifests' repository, where the inventory can be read"
)
NO_COMMIT = (
    "the manifests are not as committed: the log will name no commit, and what this apply creates is not deleted by "
    "absence before it was applied from a commit"
)
STILL_DECLARED = "The manifests still declare what this revert undid: revert their commit too."


@dataclass(slots=True)
class Recording:
    """The inventory of one apply.

    Attributes:
        inventory: as it was opened for the run.
        saved: the plan, without stale deletions once `check` has returned.
        left: the plans of stale deletions, by the reason.
    """

    inventory: "OpenInventory"
    saved: "RunDocument"
    left: "dict[str, Plan]" = field(default_factory=dict)

    def check(self) -> "RunDocument":
        """Read the list again before the first write, and return the plan without deletions that are stale by now.

        Whether there was a list before is said by the plan: the apply makes one.

        Raises:
            InventoryUnreadable: the list cannot be read.
        """
        from reconciler.document.plans import plan_of, with_plan
        from reconciler.engine.apply.aftermath import without
        from reconciler.gitops.inventory import NO_LIST
        from reconciler.model.absence import HELD_UP, stale_absences
        from reconciler.model.item import Finding

        passing = {
            finding.reason
            for finding in self.saved.findings("stays")
            if finding.reason == NO_LIST or finding.reason.startswith(HELD_UP)
        }
        said = (item for item in self.saved.items if not (isinstance(item, Finding) and item.reason in passing))
        self.saved = replace(self.saved, items=tuple(said))
        self._warn_of_newer()
        prospect = self.saved.inventory
        is_of_commit = prospect is None or bool(prospect.run.commit) or bool(self.inventory.obstacle)
        if self._ancestry is not None and not is_of_commit and any(self.saved.changes):
            LOG.warning("%s", NO_COMMIT)
        if prospect is None or not prospect.absences:
            return self.saved
        store, ancestry = self.inventory.store, self._ancestry
        if store is None or ancestry is None:
            stale = dict.fromkeys((line.key for line in prospect.absences), NO_CHECKOUT)
        else:
            now = store.read().inventory
            stale = stale_absences(prospect.absences, now, ancestry.last_applied(now.applied))
        if stale:
            plan, self.left = without(plan_of(self.saved), stale, self._names)
            self.saved = with_plan(self.saved, plan)
        return self.saved

    def _warn_of_newer(self) -> None:
        """Warn where manifests were applied that may be newer than the plan's: it may set back what they changed."""
        ancestry, stored = self._ancestry, self.inventory.stored
        if ancestry is None or stored is None or self.saved.reverts:
            return
        last = ancestry.last_applied(stored.inventory.applied)
        if last.may_be_newer:
            LOG.warning("%s; this apply may set back what they changed", last.obstacle)

    def marked(self, began_at: "datetime") -> "AbstractContextManager[None]":
        """Mark in this clone that the run writes, so that `log` can show it as killed."""
        if self.inventory.store is None:
            return nullcontext()
        from reconciler.gitops.apply_log import KilledRun
        from reconciler.gitops.clone import clone_of

        prospect = self.saved.inventory
        commit = prospect.run.commit if prospect else self.saved.commit
        run = KilledRun(began_at, commit or "", self.saved.reverts)
        return clone_of(repository(Path()) or Path()).marked(run)

    def outcomes(self, known: "Iterable[TargetPlan]") -> "list[TargetPlan]":
        """Return what became of the plan, the stale deletions included."""
        from reconciler.engine.apply import NotAttempted, with_left_out
        from reconciler.model.item import Status

        every = list(known)
        for reason, plan in self.left.items():
            every = with_left_out(every, plan, NotAttempted(Status.STALE, reason))
        return every

    def store(
        self,
        outcomes: "list[TargetPlan]",
        report: "RunDocument",
        code: int,
        canary: str,
        first: "Collection[Target] | None",
        *,
        application: "Application",
        client: "Client",
    ) -> int:
        """Store what the apply did, and keep its report; return the exit code.

        It asks for the numeric ID of each target that neither what was read nor the list nor its creation shows: once
        in its life.

        Args:
            outcomes: of all targets that had changes.
            report: of the run.
            code: the exit code so far.
            canary: the option.
            first: where the run was narrowed after its plan was made, the targets of its canary; None for all.
            application: the run.
            client: the service.
        """
        stored, store = self.inventory.stored, self.inventory.store
        if stored is None or store is None:
            return code
        self._number(application, client)
        names = self._names
        narrowed = None if first is None else {names[target] for target in first if target in names}
        from reconciler.model.upkeep import with_changes

        changes, commit = self._changes(stored.inventory, outcomes, application.read, narrowed)
        contains = self._contains
        if with_changes(stored.inventory, changes, contains) == stored.inventory and not report.made.writes:
            return code
        apply = replace(_told(report), manifests=commit, service=store.service, result=code, canary=canary)
        try:
            with heeding(patience=1):
                name = store.write(stored, lambda theirs: with_changes(theirs, changes, contains), apply)
                _keep(name, report)
        except (InventoryNotStored, OutputFailed) as error:
            report_error(error)
            return code or ExitCode.IN_PART
        return code

    def _number(self, application: "Application", client: "Client") -> None:
        """Name the targets as the inventory does; those whose ID cannot be read wait for a later run."""
        from reconciler.engine.apply.aftermath import unnumbered, with_numbers
        from reconciler.engine.lookups import look_up
        from reconciler.model.state import Reference

        prospect = self.saved.inventory
        if prospect is None:
            return
        lacking = {name: Reference(each.level, str(each.ref)) for name, each in unnumbered(prospect.run).items()}
        learned = {name: application.numbers.known(each) for name, each in lacking.items()}
        numbers = {name: number for name, number in learned.items() if number is not None}
        asked = {each: name for name, each in lacking.items() if name not in numbers}
        with suppress(ServiceError):
            answers = look_up(asked, client)
            numbers |= {asked[place]: number for place, number in answers.items() if isinstance(number, int)}
        self.saved = replace(self.saved, inventory=replace(prospect, run=with_numbers(prospect.run, numbers)))

    def _changes(
        self,
        inventory: "Inventory",
        outcomes: "list[TargetPlan]",
        read: "Mapping[PartAddress, LivePart]",
        narrowed: Collection[str] | None,
    ) -> "tuple[Changes, str]":
        """Return what changes in the list that the plan saw, and the commit whose manifests were applied."""
        from reconciler.engine.apply.aftermath import aftermath, as_read, deleted_keys
        from reconciler.kinds import all_kinds
        from reconciler.model.upkeep import Changes, changes_of, undone

        names = self._names
        prospect = self.saved.inventory
        if self.saved.reverts:
            # What an earlier run of the same revert has touched is in order here, and has no digest either.
            return undone(inventory, deleted_keys(outcomes, names), names.values()), self.saved.commit or ""
        if prospect is None:
            return Changes(inventory), ""
        run = as_read(prospect.run, read, names, all_kinds())
        after = aftermath(run, outcomes, names, narrowed=narrowed)
        return changes_of(after, prospect.seen, self._contains), prospect.run.commit

    @property
    def _names(self) -> "Names":
        from reconciler.engine.apply.aftermath import names_of

        prospect, stored = self.saved.inventory, self.inventory.stored
        targets = [target.target for target in self.saved.targets]
        return names_of(targets, prospect.run.targets if prospect else (), stored.inventory if stored else None)

    @property
    def _ancestry(self) -> "Ancestry | None":
        """Return the history of the plan's commit; that of the checkout for manifests that are not as committed."""
        ancestry, prospect = self.inventory.ancestry, self.saved.inventory
        if ancestry and prospect and prospect.run.commit:
            return replace(ancestry, head=prospect.run.commit)
        return ancestry

    @property
    def _contains(self) -> Callable[[str], bool]:
        ancestry = self._ancestry
        return ancestry.contains if ancestry else lambda _commit: False


def _told(report: "RunDocument") -> "Apply":
    """Return the apply that a report and the CI job describe."""
    from collections import Counter

    from reconciler.document.numbers import DONE
    from reconciler.engine.apply import DONE_BEFORE
    from reconciler.gitops.apply_log import Apply
    from reconciler.gitops.remotes import Person, starter
    from reconciler.model.item import Status

    person = starter(os.environ) or Person("", "")
    # A job that is retried finds done what it has done before: that is in the log already.
    words = Counter(each.word for each in report.outcomes if each.status is Status.DONE and each.reason != DONE_BEFORE)
    return Apply(
        when=report.time,
        author=person.name,
        author_email=person.email,
        counts={word: words[word] for word in DONE},
        job=os.environ.get("CI_JOB_URL", ""),
        reverts=report.reverts,
    )


def _keep(name: str, report: "RunDocument") -> None:
    """Keep the report of an apply for `revert`.

    Raises:
        OutputFailed: it cannot be written.
    """
    from reconciler.document.stored import save
    from reconciler.gitops.clone import clone_of

    clone_of(repository(Path()) or Path()).keep_report(name, report.time, save(report))
