"""The names of the users and groups that entries show by ID: each is asked for once a run."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from reconciler.errors import Forbidden, NotFound
from reconciler.model.endpoints import Collection
from reconciler.model.entries import EntryRow
from reconciler.model.protocols import Json, Reader
from reconciler.model.resource import LiveRecord, Objects

RECORDS = {"user": ("users/{}", "username"), "group": ("groups/{}?with_projects=false", "full_path")}
"""By what an entry names, the path of its record, and the field that holds the name."""


def with_names(part: Collection, objects: Objects, reader: Reader) -> Objects:
    """Return objects whose entries have names, as far as the token can see them.

    Raises:
        ServiceError: a record cannot be read, for a reason that is not its own.
    """
    if not part.relations.entries:
        return objects
    own = (_named(part, record, reader.recall) for record in objects.own)
    return replace(objects, own=tuple(own))


def _named(part: Collection, record: LiveRecord, get: Callable[[str], Json]) -> LiveRecord:
    rows = {name: tuple(_row(row, get) for row in listed) for name, listed in record.entries.items()}
    if rows == record.entries:
        return record
    known = {name: _shown(rows[name]) for name in rows if name in record.resource.model_fields_set}
    fields = record.resource.model_dump(mode="json", include=record.resource.model_fields_set)
    return replace(record, entries=rows, resource=part.model.model_validate({**fields, **known}))


def _shown(rows: Iterable[EntryRow]) -> list[object]:
    return [row.shown for row in rows if row.shown is not None]


def _row(row: EntryRow, get: Callable[[str], Json]) -> EntryRow:
    who, _ = row.identity
    if row.number is None or who not in RECORDS:
        return row
    path, field = RECORDS[who]
    try:
        record = get(path.format(row.number))
    except (NotFound, Forbidden):
        return row
    name = record.get(field) if isinstance(record, dict) else None
    return replace(row, shown={who: name.casefold()}) if isinstance(name, str) else row
