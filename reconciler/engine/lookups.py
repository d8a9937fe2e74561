"""The stage that plans, looks up what planning lacks, and plans again until nothing is missing.

It also tells the entries whose group or project has a scheduled deletion.
"""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace

from reconciler.engine.compare.creation import from_archives, with_arrivals
from reconciler.engine.compare.planner import NO_PLAN
from reconciler.engine.missing_targets import look_up_absent
from reconciler.engine.records import PATH_FIELDS, is_doomed, with_lookups
from reconciler.engine.survey import Added, Survey
from reconciler.model.endpoints import Collection
from reconciler.model.item import Finding
from reconciler.model.plan import Plan
from reconciler.model.resource import LiveRecord, Resource
from reconciler.model.state import DesiredState, LivePart, LiveState, PartAddress, Reference
from reconciler.model.targets import Address, Identity, Key, Level, Target

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
    return {"live": live, "planned": _arriving(plan, run.importing, archives).with_findings(_doomed(run))}


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


def _doomed(run: Survey) -> Iterator[Finding]:
    """Yield the entries for groups and projects that were asked for anyway, and whose deletion is scheduled.

    A group that the service has renamed for that is found by no entry: each entry that comes has a problem.
    """
    days = {
        place: record["marked_for_deletion_on"]
        for place, record in run.records.items()
        if record.get("marked_for_deletion_on") and not is_doomed(str(record.get(PATH_FIELDS[place.level])))
    }
    for address, field, place in _named(run) if days else ():
        if place in days:
            about = f"{field}: {place} " if field else ""
            reason = f"{about}has been scheduled for deletion since {days[place]}"
            yield Finding(address, "doomed", reason, f"name another {place.level}, or restore it", field)


def _named(run: Survey) -> Iterator[tuple[Address, str | None, Reference]]:
    """Yield the groups and projects that declared objects name, each with the field; None for the object's name."""
    for section in (section for target in run.desired.targets for section in target.sections):
        for part in run.kinds[section.kind].parts:
            wanted = section.wanted.get(part.name)
            if isinstance(wanted, Mapping) and isinstance(part, Collection):
                for name, resource in wanted.items():
                    address = Address(section.target, section.kind, part.name, part.title, name)
                    yield from ((address, *place) for place in _places(part, name, resource))


def _places(part: Collection, name: Key, resource: Resource | None) -> Iterator[tuple[str | None, Reference]]:
    if resource is None:
        return
    if part.names.level is not None:
        yield None, Reference(part.names.level, str(part.identity(name)))
    for field, listed in part.entries_of(resource):
        subjects = (subject.identity for subject in listed if not isinstance(subject, str))
        yield from ((field, Reference(Level.GROUP, str(called))) for who, called in subjects if who == "group")
    for field, named, names in part.named_in(resource):
        yield from ((field, Reference(Level.GROUP, called)) for called in names if not named.within)


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
