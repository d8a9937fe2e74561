"""Sections that a target cannot have, as is known before it is read: left out, or a problem. Pure.

Of a project, the list that discovers it shows them; of a group that is to be created, its place.

Nothing is read for them. Only an archived project whose section can still be read is planned, since a problem there is
one only if something would change.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import date

from reconciler.engine.causes import (
    ARCHIVED,
    AT_THE_TOP,
    UNARCHIVE,
    ProjectRecord,
    address_of,
    other_way_out,
    together,
    unfit,
)
from reconciler.engine.compare.exceptions import about_section
from reconciler.engine.compare.obstacles import without
from reconciler.engine.survey import Added, Survey
from reconciler.model.creation import ToCreate
from reconciler.model.kind import Archived, Kinds
from reconciler.model.obstacle import Effect, Obstacle
from reconciler.model.state import DesiredState, DesiredTarget, Section
from reconciler.model.targets import Level


def lacking_sections(run: Survey) -> Added:
    """Leave out the sections that targets cannot have, and tell of them."""
    today = run.reader.now().date()
    lacking = (*find_lacking(run.desired, run.kinds, today), *_below_the_top(run, today))
    return {"desired": without(run.desired, lacking), "obstacles": (*run.obstacles, *lacking)}


def inapplicable_sections(run: Survey) -> Added:
    """Leave out only the sections that may be left out without a problem."""
    lacking = find_lacking(run.desired, run.kinds, run.reader.now().date())
    return {"desired": without(run.desired, (obstacle for obstacle in lacking if obstacle.effect != "problem"))}


def find_lacking(desired: DesiredState, kinds: Kinds, today: date) -> tuple[Obstacle, ...]:
    """Return an obstacle for each section that its project cannot have, as far as lists of projects show that."""
    return tuple(obstacle for target in desired.targets for obstacle in _lacking(target, kinds, today))


def _below_the_top(run: Survey, today: date) -> Iterator[Obstacle]:
    """Yield an obstacle for each section that no subgroup has; of those that exist, the service says so itself."""
    for target in run.desired.targets:
        if isinstance(run.live.absent.get(target.target.identity), ToCreate) and "/" in str(target.target.ref):
            for section in target.sections:
                if run.kinds[section.kind].needs.top_level and target.target.level is Level.GROUP:
                    about = about_section(section, target.excepts(section.kind, today), run.kinds[section.kind])
                    effect: Effect = "excepted" if about else "problem"
                    yield Obstacle(address_of(section, run.kinds), *AT_THE_TOP, effect=effect, exceptions=about)


def _lacking(target: DesiredTarget, kinds: Kinds, today: date) -> Iterator[Obstacle]:
    listed = target.listed
    if listed is None:
        return
    record = ProjectRecord(archived=listed.archived, off=listed.off)
    for section in target.sections:
        kind, is_skipped = kinds[section.kind], section.kind in target.skipped
        where = address_of(section, kinds)
        obstacles = list(unfit(where, kind.needs, record, other_way_out(section)))
        if obstacles:
            about = () if is_skipped else about_section(section, target.excepts(section.kind, today), kind)
            effect: Effect = "not applicable" if is_skipped else "excepted" if about else "problem"
            yield replace(together(obstacles), effect=effect, exceptions=about)
        elif listed.archived and kind.needs.archived is Archived.READ_ONLY:
            yield replace(unchangeable(section, kinds), effect="not applicable" if is_skipped else "read only")


def unchangeable(section: Section, kinds: Kinds) -> Obstacle:
    """Return that a section of an archived project cannot be changed."""
    remedy = UNARCHIVE.format(other_way_out(section))
    return Obstacle(address_of(section, kinds), ARCHIVED, remedy, effect="read only")
