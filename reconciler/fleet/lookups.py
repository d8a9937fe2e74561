"""The stage that plans, looks up what planning lacks, and plans again until nothing is missing."""

import logging
from collections.abc import Mapping
from dataclasses import replace

from reconciler.fleet.missing_targets import look_up_absent
from reconciler.fleet.survey import Added, Survey
from reconciler.live.records import with_lookups
from reconciler.model.plan import Plan
from reconciler.model.resource import LiveRecord, Resource
from reconciler.model.state import DesiredState, LivePart, LiveState, PartAddress
from reconciler.model.targets import Identity, Target
from reconciler.planning.creation import from_archives, with_arrivals
from reconciler.planning.planner import NO_PLAN

LOG = logging.getLogger("reconciler")


def look_up(run: Survey) -> Added:
    """Plan what was read, and look up the IDs and names that are missing."""
    creates = any(target.creation is not None for target in run.whole.targets)
    archives = from_archives(run.whole.targets, run.live.absent) if creates else {}
    parts = _forced(run.live) if run.desired.forced else run.live.parts
    live = replace(run.live, parts=parts, archives=archives)
    _warn_of_unshown(run.desired, live)
    plan = run.make(run.desired, live, run.kinds, NO_PLAN)
    while missing := plan.lookups:
        absent = look_up_absent(run, live, missing)
        live = replace(live, ids={**live.ids, **absent})
        live = with_lookups(live, [lookup for lookup in missing if lookup not in live.ids], run.reader)
        plan = run.make(run.desired, live, run.kinds, plan)
    return {"live": live, "planned": _arriving(plan, run.importing, archives)}


def _arriving(plan: Plan, importing: frozenset[Target], archives: Mapping[Identity, str]) -> Plan:
    """Return a plan that says which targets imports are filling, and which groups the archives of earlier runs."""
    if importing:
        targets = (replace(target, importing=True) if target.target in importing else target for target in plan.targets)
        plan = replace(plan, targets=tuple(targets))
    return with_arrivals(plan, archives) if archives else plan


def _forced(live: LiveState) -> dict[PartAddress, LivePart]:
    """Return the parts that were read, with fields that the service does not show as if they were there and empty."""
    return {
        address: replace(part, unshown={}) if isinstance(part, LiveRecord) else part
        for address, part in live.parts.items()
    }


def _warn_of_unshown(desired: DesiredState, live: LiveState) -> None:
    """Warn once of each field that is declared and that the service does not show."""
    places: dict[tuple[str, str, str], list[Target]] = {}
    for target in desired.targets:
        for section in target.sections:
            for part, wanted in section.wanted.items():
                record = live.parts[target.target, section.kind, part]
                if isinstance(record, LiveRecord) and isinstance(wanted, Resource):
                    for name in wanted.model_fields_set & record.unshown.keys():
                        places.setdefault((section.kind, name, record.unshown[name]), []).append(target.target)
    for (kind, name, other), unshown in places.items():
        more = f" and {len(unshown) - 1} more" if len(unshown) > 1 else ""
        LOG.warning(
            "%s.%s of %s%s cannot be compared: this server does not show them; they are written when %s changes, or "
            "with --force-events",
            kind,
            name,
            unshown[0],
            more,
            other,
        )
