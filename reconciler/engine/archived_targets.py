"""The stage that asks which projects are archived, where an archived project would refuse what is planned.

No list shows these projects, and what an archived project lets nobody change can be read there as anywhere.
"""

from collections.abc import Iterator
from dataclasses import replace

from reconciler.engine.asked_once import AskedOnce
from reconciler.engine.crew import ask_each
from reconciler.engine.lacking_sections import unchangeable
from reconciler.engine.read import answer_or_error
from reconciler.engine.records import TargetRecord, fetch_record
from reconciler.engine.survey import Added, Survey
from reconciler.errors import ServiceError
from reconciler.model.kind import Archived
from reconciler.model.protocols import FleetReader
from reconciler.model.state import DesiredTarget, Section, Unreadable
from reconciler.model.targets import Level, Target


def archived_targets(run: Survey) -> Added:
    """Ask for the record of each project that may be archived, and tell what cannot be changed there.

    Raises:
        ServiceError: one that `read.ENDS_A_RUN`.
    """
    doubtful = dict(_perhaps_archived(run))

    def ask(target: Target, reader: FleetReader) -> TargetRecord | ServiceError:
        move = run.moved.get(target)
        place = target if move is None else Target(target.level, move.number)
        return answer_or_error(lambda: fetch_record(place, reader))

    answers = ask_each(ask, doubtful, run.reader)
    records = {target: answer for target, answer in answers.items() if isinstance(answer, TargetRecord)}
    skipped = {declared.target: declared.skipped for declared in run.desired.targets}
    obstacles = (
        replace(
            unchangeable(section, run.kinds),
            effect="not applicable" if section.kind in skipped[target] else "read only",
        )
        for target, record in records.items()
        if record.fields.get("archived") is True
        for section in doubtful[target]
    )
    return {"obstacles": (*run.obstacles, *obstacles)}


def requests_left(run: Survey) -> int:
    """Return how many requests `archived_targets` takes."""
    reader, urls = run.reader, [target.url.rstrip("/") for target, _ in _perhaps_archived(run)]
    return sum(not (isinstance(reader, AskedOnce) and reader.remembers(url)) for url in urls)


def _perhaps_archived(run: Survey) -> Iterator[tuple[Target, tuple[Section, ...]]]:
    """Yield the projects that may be archived, each with the sections that could not be changed then."""
    changing = {
        (change.address.target, change.address.section)
        for change in run.planned.changes
        if change.address.section and run.kinds[change.address.section].needs.archived is not Archived.OPEN
    }
    told = {(obstacle.where.target, obstacle.where.section) for obstacle in run.obstacles}
    listed = run.listed if changing else frozenset()
    for declared in run.desired.targets:
        target = declared.target
        refused = tuple(
            section
            for section in declared.sections
            if (target, section.kind) in changing and told.isdisjoint(((target, section.kind), (target, "")))
        )
        is_known = target.identity in run.live.absent or target.identity[1] in listed or _is_active(declared, run)
        if target.level is Level.PROJECT and refused and not is_known:
            yield target, refused


def _is_active(declared: DesiredTarget, run: Survey) -> bool:
    """Return whether a section was read that archived projects do not show."""
    return any(
        not isinstance(run.live.parts[section.target, section.kind, part], Unreadable)
        for section in declared.sections
        if run.kinds[section.kind].needs.archived is Archived.CLOSED
        for part in section.wanted
    )
