"""The stage of the audit, for `drift --who` and `--restored`: it reads the events of targets, each target's once.

An administrator's token reads those of all targets as one list. Any other one is refused that, and asks for each.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from reconciler.engine.authors import Former, with_authors
from reconciler.engine.compare.creation import existing
from reconciler.engine.crew import ask_each
from reconciler.engine.inventory import names
from reconciler.engine.restored import find_restored
from reconciler.engine.survey import Added, FleetSurvey
from reconciler.errors import Forbidden, ServiceError
from reconciler.model.audit import AuditEvent, read_event
from reconciler.model.protocols import FleetReader, Json
from reconciler.model.state import Reference
from reconciler.model.targets import Identity, Key, Level, Target
from reconciler.model.wording import counted

LOG = logging.getLogger("reconciler")

EVENTS_PER_TARGET = 100
"""How many of the newest events are read of a target: one page."""

LEVELS = {"Group": Level.GROUP, "Project": Level.PROJECT}
"""By the type of an event's entity."""


def audit(run: FleetSurvey) -> Added:
    """Return the plan with who made its differences, and with what was changed and put back, if that is asked."""
    who, back = run.scope.who_after, run.scope.restored_after
    if who is None and back is None:
        return {}
    told = {kind.name for kind in run.kinds.values() if kind.trace}
    declared = {target.target: target for target in existing(run.desired, run.live.absent).targets}
    asked = [
        target.target
        for target in run.plan.targets
        if who and any(change.address.section in told for change in target.changes)
    ]
    if back:
        asked += [name for name, target in declared.items() if any(section.kind in told for section in target.sections)]
    after = min(moment for moment in (who, back) if moment)
    events = _read(run, [*dict.fromkeys(asked)], after, as_one=back is not None)

    def since(moment: datetime, target: Target) -> list[AuditEvent]:
        return [event for event in events.get(target, ()) if event.time >= moment]

    plan = run.plan
    if who:
        former = _former(run)
        targets = (
            with_authors(target, since(who, target.target), run.kinds, former.get(target.target, {}))
            for target in plan.targets
        )
        plan = replace(plan, targets=tuple(targets))
    if back:
        differing = {target.target: target for target in run.planned.targets}
        plan = plan.with_findings(
            finding
            for target in run.plan.targets
            if target.target in declared
            for finding in find_restored(
                target,
                differing[target.target],
                declared[target.target],
                live=run.live,
                events=since(back, target.target),
                kinds=run.kinds,
            )
        )
    return {"plan": plan}


def _former(run: FleetSurvey) -> Mapping[Target, Former]:
    """Return the IDs that the inventory has of the objects of targets."""
    stored = run.inventory.stored
    if stored is None:
        return {}
    called = names(run)
    targets = {called(target): target.target for target in run.desired.targets}
    former: dict[Target, dict[tuple[str, str, Key], list[int]]] = {}
    for line in stored.inventory.objects.values():
        if line.target in targets:
            ids = former.setdefault(targets[line.target], {})
            ids.setdefault((line.section, line.part, line.name), []).append(line.id)
    return former


Events = Mapping[Target, Sequence[AuditEvent]]
"""The events of targets, the newest first."""


def _read(run: FleetSurvey, targets: Sequence[Target], after: datetime, *, as_one: bool) -> Events:
    """Return the events of targets since some moment, and warn of those that cannot be read.

    Args:
        run: all that is known.
        targets: whose events are wanted.
        after: the moment.
        as_one: whether a list of the events of all targets is worth a request.
    """
    since = after.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    if as_one and len(targets) > 1:
        try:
            return _by_target(run, targets, run.reader.pages(f"audit_events?created_after={since}"))
        except Forbidden:
            LOG.debug("this token does not see the audit events of the whole service")
        except ServiceError as error:
            _warn_of_unread({error.reason: len(targets)})
            return {}

    def ask(target: Target, reader: FleetReader) -> Sequence[AuditEvent] | str:
        try:
            answer = reader.get(f"{target.url}audit_events?per_page={EVENTS_PER_TARGET}&created_after={since}")
        except ServiceError as error:
            return error.reason
        return _newest_first(answer if isinstance(answer, list) else ())

    answers = ask_each(ask, targets, run.reader)
    _warn_of_unread(Counter(answer for answer in answers.values() if isinstance(answer, str)))
    events = {target: answer for target, answer in answers.items() if not isinstance(answer, str)}
    cut = [target for target, answer in events.items() if len(answer) >= EVENTS_PER_TARGET]
    if cut:
        number = counted(len(cut), "target")
        LOG.warning("only the newest %d audit events count of %s, such as %s", EVENTS_PER_TARGET, number, cut[0])
    return events


def _by_target(run: FleetSurvey, targets: Sequence[Target], answer: Sequence[Json]) -> Events:
    """Return the events of targets, out of those of all; by ID where that is known, else by path."""
    ids = run.live.ids
    known: dict[Identity, Target] = {}
    for target in targets:
        number = ids.get(Reference(target.level, target.ref.casefold())) if isinstance(target.ref, str) else target.ref
        known[(target.level, number) if isinstance(number, int) else target.identity] = target
    events: dict[Target, list[AuditEvent]] = {}
    for event in _newest_first(answer):
        sort, number = event.entity
        level = LEVELS.get(sort)
        places = () if level is None else ((level, number), (level, event.path.casefold()))
        for target in [known[place] for place in places if place in known][:1]:
            events.setdefault(target, []).append(event)
    return events


def _newest_first(answer: Iterable[Json]) -> tuple[AuditEvent, ...]:
    return tuple(sorted(filter(None, map(read_event, answer)), key=lambda event: event.time, reverse=True))


def _warn_of_unread(reasons: Mapping[str, int]) -> None:
    """Warn once of each reason why events cannot be read."""
    for reason, number in reasons.items():
        LOG.warning(
            "who changed %s is not known: %s; audit events need a licence (Premium or Ultimate) and the role "
            "Maintainer in a project, Owner in a group",
            counted(number, "target"),
            reason,
        )
