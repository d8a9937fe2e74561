"""The inventory before and after an apply: read again before the first write, and stored after the result.

Begin with `checked` and `store`.
"""

import logging
import os
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path

from reconciler.cli.exit_codes import ExitCode, signals_handled
from reconciler.cli.outputs import report_error
from reconciler.document.document import RunDocument
from reconciler.document.numbers import DONE
from reconciler.document.stored import save
from reconciler.engine.apply import DONE_BEFORE, Application
from reconciler.engine.lookups import look_up
from reconciler.errors import InventoryNotStored, OutputFailed, ServiceError
from reconciler.kinds import all_kinds
from reconciler.memory.absence import WITHHELD, stale_absences
from reconciler.memory.ancestry import Ancestry
from reconciler.memory.apply_log import Apply, KilledRun
from reconciler.memory.clone import clone_of
from reconciler.memory.inventory import Inventory, target_names
from reconciler.memory.projection import Projection, by_name, undone
from reconciler.memory.remotes import Person, starter
from reconciler.memory.store import NO_LIST, OpenInventory
from reconciler.model.item import Status
from reconciler.model.plan import Seen
from reconciler.model.state import Reference
from reconciler.model.targets import Target
from reconciler.service import Client
from reconciler.system.processes import repository

LOG = logging.getLogger("reconciler")

NO_CHECKOUT = (
    "no longer declared, and deleted only in a checkout of the manifests' repository, where the inventory can be read"
)
NO_COMMIT = (
    "the manifests are not as committed: the log will not name a commit, and objects that this apply creates are not "
    "deleted by absence until an apply from a commit"
)
Stale = Mapping[tuple[Target, str, str, int | None], str]
"""Why deletions are not carried out any more, by target, section, part and ID."""


def checked(inventory: OpenInventory, saved: RunDocument) -> tuple[RunDocument, Stale]:
    """Read the list again before the first write, and return the plan, and which of its deletions are stale by now.

    The plan says whether there was a list before: the apply makes one.

    Raises:
        InventoryUnreadable: the list cannot be read.
    """
    passing = [
        finding
        for finding in saved.findings("stays")
        if finding.reason == NO_LIST or finding.reason.startswith(WITHHELD)
    ]
    saved = replace(saved, items=tuple(item for item in saved.items if item not in passing))
    history, basis, store = _history(inventory, saved), saved.inventory, inventory.store
    if history is not None and inventory.stored is not None and not saved.reverts:
        last = history.last_applied(inventory.stored.inventory.applied)
        if last.may_be_newer:
            LOG.warning("%s; this apply may set back what they changed", last.obstacle)
    if basis is None:
        return saved, {}
    if history is not None and not basis.commit and not inventory.obstacle and any(saved.changes):
        LOG.warning("%s", NO_COMMIT)
    if not basis.absent:
        return saved, {}
    if store is None or history is None:
        stale = dict.fromkeys(basis.absent, NO_CHECKOUT)
    else:
        now = store.read().inventory
        stale = stale_absences(basis.absent, now, history.last_applied(now.applied))
    targets = {name: target.target for name, target in by_name(saved.targets, basis.seen).items()}
    return saved, {(targets[key[0]], *key[1:]): reason for key, reason in stale.items() if key[0] in targets}


def marked(inventory: OpenInventory, saved: RunDocument, began_at: datetime) -> AbstractContextManager[None]:
    """Mark in this clone that a run writes, so that `log` can show it as killed."""
    if inventory.store is None:
        return nullcontext()
    commit = saved.inventory.commit if saved.inventory else saved.commit
    return clone_of(repository(Path()) or Path()).marked(KilledRun(began_at, commit or "", saved.reverts))


def store(
    inventory: OpenInventory,
    saved_plan: RunDocument,
    report: RunDocument,
    code: int,
    *,
    canary: str,
    canary_targets: Collection[Target] | None,
    application: Application,
    client: Client,
) -> int:
    """Store the results of an apply, and keep its report; return the exit code.

    The numeric ID of a target is requested, once in its life, if neither live state nor the list nor the response to
    its creation has it.

    Args:
        inventory: as it was opened for the run.
        saved_plan: the applied plan.
        report: of the run.
        code: the exit code so far.
        canary: the option.
        canary_targets: see `Projection`.
        application: the run.
        client: the service.
    """
    stored, place = inventory.stored, inventory.store
    if stored is None or place is None:
        return code
    change: Callable[[Inventory], Inventory] = _as_it_is
    basis, commit = report.inventory, ""
    if report.reverts:
        change, commit = partial(undone, report), report.commit or ""
    elif basis is not None:
        commit = basis.commit
        history = _history(inventory, saved_plan) or Ancestry(repository(Path()) or Path(), commit)
        numbered = replace(report, targets=_numbered(report.targets, basis.seen, application, client))
        planned = tuple(saved_plan.changes)
        change = Projection(numbered, basis, history, all_kinds(), planned, application.read, canary_targets).onto
    # an apply that changed nothing is no entry of the log
    if change(stored.inventory) == stored.inventory and not report.made.writes:
        return code
    apply = replace(_logged_apply(report), manifests=commit, service=place.service, result=code, canary=canary)
    try:
        # A first signal waits for the push: else what this run created would not be known as its own.
        with signals_handled(grace_signals=1):
            name = place.write(stored, change, apply)
            clone_of(repository(Path()) or Path()).keep_report(name, report.time, save(report))
    except (InventoryNotStored, OutputFailed) as error:
        report_error(error)
        return code or ExitCode.IN_PART
    return code


def _as_it_is(inventory: Inventory) -> Inventory:
    return inventory


def _history(inventory: OpenInventory, saved_plan: RunDocument) -> Ancestry | None:
    """Return the history of the plan's commit; for manifests that are not as committed, that of the checkout."""
    if inventory.ancestry is not None and saved_plan.inventory is not None and saved_plan.inventory.commit:
        return replace(inventory.ancestry, head=saved_plan.inventory.commit)
    return inventory.ancestry


def _numbered(
    seen_targets: Sequence[Seen], inventory: Inventory, application: Application, client: Client
) -> tuple[Seen, ...]:
    """Return targets with the IDs that the inventory needs for its names; some targets may wait for a later run."""
    names = target_names(inventory)
    lacking = {
        target.target: Reference(target.target.level, str(target.target.ref))
        for target in seen_targets
        if target.digest and not names(target.target, target.id)
    }
    learned = {target: application.numbers.known(place) for target, place in lacking.items()}
    asked = {place: target for target, place in lacking.items() if learned[target] is None}
    with suppress(ServiceError):
        learned |= {asked[place]: number for place, number in look_up(asked, client).items() if isinstance(number, int)}
    return tuple(replace(target, id=learned.get(target.target, target.id)) for target in seen_targets)


def _logged_apply(report: RunDocument) -> Apply:
    """Return the apply that a report and the CI job describe."""
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
