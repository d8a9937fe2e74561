"""The planning of a settings record. Pure."""

from collections.abc import Iterator
from functools import partial

from reconciler.model.diff import as_read, become, differences, fields_of, only, without
from reconciler.model.endpoints import Singleton
from reconciler.model.plan import Step, Update
from reconciler.model.resource import LiveRecord, Resource
from reconciler.planning.obstacles import as_problem
from reconciler.planning.part import DeclaredPart, applicable


def plan_settings(at: DeclaredPart[Singleton], wanted: Resource, record: LiveRecord) -> Iterator[Step]:
    """Plan a settings record."""
    return at.held_back((), wanted, partial(_plan_record, at, record))


def _plan_record(at: DeclaredPart[Singleton], record: LiveRecord, wanted: Resource) -> Iterator[Step]:
    declared = fields_of(wanted)
    for field, (value, lock) in at.locks.items():
        if field in declared and declared[field] != value:
            yield as_problem(lock.at(at.address()), field=field)
    possible, problems = applicable(at, None, without(wanted, at.locks.keys()), record)
    yield from problems
    if possible is None:
        return
    before, after = differences(possible, record)
    if after:
        requests = at.part.update(at.section.target, only(possible, after), record)
        hint = "; ".join(warning for _, warning in become(record.resource, possible, record.unknown).warnings())
        yield Update(at.address(), before, after, requests, as_read(record), hint=hint)
