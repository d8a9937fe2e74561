"""The story from manifests to a plan: the stages of a survey, in their order, each a function that is tested alone."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeVar

from reconciler.fleet.archived_targets import archived_targets
from reconciler.fleet.asked_once import AskedOnce
from reconciler.fleet.audit import audit
from reconciler.fleet.causes import causes
from reconciler.fleet.compare import compare
from reconciler.fleet.discover import discover
from reconciler.fleet.final_plan import hints, narrow_plan, obstructed, origins, unreadable_inventory
from reconciler.fleet.inventory import absences
from reconciler.fleet.lacking_sections import inapplicable_sections, lacking_sections
from reconciler.fleet.lookups import look_up
from reconciler.fleet.missing_targets import archived_projects, missing_targets
from reconciler.fleet.moved_targets import moved_targets
from reconciler.fleet.narrow import divide, select
from reconciler.fleet.reading import read
from reconciler.fleet.sources import sources
from reconciler.fleet.survey import Added, FleetSurvey, Survey
from reconciler.fleet.twins import twins
from reconciler.model.kind import Kinds
from reconciler.model.plan import Plan
from reconciler.model.protocols import FleetReader
from reconciler.model.state import DesiredState, Reference

Surveyed = TypeVar("Surveyed", bound=Survey)

Stage = Callable[[Surveyed], Added]
"""Takes what is known, and returns what it adds: nothing is filled in behind its back."""

DECLARED: tuple[Stage[FleetSurvey], ...] = (discover, compare, select, divide, missing_targets, archived_projects)
"""What is wanted."""

PLANNED: tuple[Stage[Survey], ...] = (look_up, moved_targets, twins, archived_targets, obstructed)
"""What becomes of what was read."""

COMPARED: tuple[Stage[FleetSurvey], ...] = (
    *DECLARED,
    lacking_sections,
    read,
    moved_targets,
    absences,
    causes,
    *PLANNED,
    unreadable_inventory,
)
"""From manifests to all that differs."""

STAGES: tuple[Stage[FleetSurvey], ...] = (
    *COMPARED,
    sources,
    audit,
    narrow_plan,
    origins,
    hints,
)
"""From manifests to the plan that is shown, and says of each difference where it comes from."""

CHECK_STAGES: tuple[Stage[FleetSurvey], ...] = (*DECLARED, inapplicable_sections, read, look_up, moved_targets, twins)
"""The stages of the doctor, who also checks sections that would not be read, and finds the causes itself."""

GIVEN: tuple[Stage[Survey], ...] = (read, moved_targets, causes, *PLANNED)
"""From a desired state that comes from no manifests."""


def survey(run: Surveyed, stages: Iterable[Stage[Surveyed]]) -> Surveyed:
    """Return what is known after some stages.

    Raises:
        ConfigurationError: nothing is found, because the URL is not that of an API, or the token's owner sees nothing.
        ServiceError: one that `live.ENDS_A_RUN`. Any other failure is a problem in the plan.
        NothingSelected: a path or a label that is selected is nobody's.
        UsageError: no target declares a section that is selected.
    """
    run = replace(run, reader=AskedOnce(run.reader))
    for stage in stages:
        run = replace(run, **stage(run))
    shown = {place: number for place, record in run.records.items() if type(number := record.get("id")) is int}
    ids = {**shown, **run.live.ids}
    places = (Reference(target.target.level, str(target.target.ref).casefold()) for target in run.plan.targets)
    known = {place: number for place in places if isinstance(number := ids.get(place), int)}
    return replace(run, live=replace(run.live, ids=ids), plan=replace(run.plan, ids=known))


def draw_plan(desired: DesiredState, reader: FleetReader, kinds: Kinds, **known: Any) -> Plan:
    """Return the plan that turns live state into a desired one that comes from no manifests; see `Survey`."""
    return survey(Survey(reader, kinds, desired, **known), GIVEN).plan
