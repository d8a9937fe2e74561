"""The story from manifests to a plan: the stages of a survey, in their order, each a function that is tested alone."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeVar

from reconciler.engine.archived_targets import archived_targets
from reconciler.engine.asked_once import AskedOnce
from reconciler.engine.audit import audit
from reconciler.engine.causes import causes
from reconciler.engine.discover import discover
from reconciler.engine.final_plan import hints, narrow_plan, obstructed, origins, unreadable_inventory
from reconciler.engine.inventory import absences
from reconciler.engine.lacking_sections import inapplicable_sections, lacking_sections
from reconciler.engine.lookups import look_up
from reconciler.engine.missing_targets import archived_projects, missing_targets
from reconciler.engine.moved_targets import moved_targets
from reconciler.engine.narrow import divide, select
from reconciler.engine.reading import read
from reconciler.engine.since import compare
from reconciler.engine.sources import sources
from reconciler.engine.survey import Added, FleetSurvey, Survey
from reconciler.engine.twins import twins
from reconciler.model.kind import Kinds
from reconciler.model.plan import Plan
from reconciler.model.protocols import FleetReader
from reconciler.model.state import DesiredState

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
        ServiceError: one that `read.ENDS_A_RUN`. Any other failure is a problem in the plan.
        NothingSelected: a path or a label that is selected is nobody's.
        UsageError: no target declares a section that is selected.
    """
    run = replace(run, reader=AskedOnce(run.reader))
    for stage in stages:
        run = replace(run, **stage(run))
    shown = {place: number for place, record in run.records.items() if type(number := record.get("id")) is int}
    ids = {**shown, **run.live.ids}
    return replace(run, live=replace(run.live, ids=ids), plan=run.plan.numbered(ids))


def draw_plan(desired: DesiredState, reader: FleetReader, kinds: Kinds, **known: Any) -> Plan:
    """Return the plan that turns live state into a desired one that comes from no manifests; see `Survey`."""
    return survey(Survey(reader, kinds, desired, **known), GIVEN).plan
