"""Tables for an audit: exceptions, access that no manifest declares, adopted objects, and applies; as CSV in a folder.

Begin with `tables`. `--report audit=DIR` writes `csv_files`; the fleet page shows the same tables.
"""

import csv
from collections.abc import Iterable, Iterator, Mapping
from io import StringIO
from types import MappingProxyType
from typing import NamedTuple

from reconciler.document.document import RunDocument, utc
from reconciler.document.wording import object_label
from reconciler.model.item import Keep
from reconciler.model.targets import Address

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
"""A spreadsheet takes a cell that begins with one of these for a formula; names come from anybody."""

Cell = str | int | None

Authors = Mapping[str, tuple[str, str]]
"""By place in the manifests, as path:line, the author of the commit that wrote the line, and the day of that commit."""

NO_AUTHORS: Authors = MappingProxyType({})


class AuditTable(NamedTuple):
    """A table: its name, which is that of its file, its columns and its rows."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


def tables(saved: RunDocument, authors: Authors) -> tuple[AuditTable, ...]:
    """Return the tables of a plan.

    Args:
        saved: the plan.
        authors: of the exceptions; empty outside of a repository.
    """
    return (
        AuditTable(
            "exceptions",
            ("target", "section", "item", "fields", "until", "days left", "reason", "manifest", "committed by", "on"),
            tuple(_exceptions(saved, authors)),
        ),
        AuditTable("access", ("target", "section", "object", "id", "owner", "last used"), tuple(_access(saved))),
        AuditTable("adopted", ("target", "section", "object", "id", "owner"), tuple(_adopted(saved))),
        AuditTable(
            "applies",
            ("apply", "ended", "by", "created", "updated", "deleted", "exit code", "commit", "reverts", "job"),
            tuple(_applies(saved)),
        ),
    )


def csv_files(saved: RunDocument, authors: Authors) -> dict[str, str]:
    """Return the texts of the files by name, such as `exceptions.csv` (RFC 4180, UTF-8)."""
    return {f"{table.name}.csv": _csv(table) for table in tables(saved, authors)}


def _csv(table: AuditTable) -> str:
    text = StringIO()
    writer = csv.writer(text)
    writer.writerow(table.columns)
    writer.writerows([_as_text(cell) for cell in row] for row in table.rows)
    return text.getvalue()


def _as_text(cell: Cell) -> Cell:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA_STARTS) else cell


def _exceptions(saved: RunDocument, authors: Authors) -> Iterator[tuple[Cell, ...]]:
    today = saved.created_at.date()
    for seen in saved.targets:
        for exception in sorted(seen.exceptions, key=lambda exception: exception.until):
            yield (
                str(seen.target),
                exception.section,
                exception.item,
                " ".join(exception.fields),
                str(exception.until),
                (exception.until - today).days,
                exception.reason,
                exception.origin,
                *authors.get(exception.origin, ("", "")),
            )


def _access(saved: RunDocument) -> Iterator[tuple[Cell, ...]]:
    for finding in saved.findings("unmanaged"):
        if finding.data["grants_access"]:
            data = finding.data
            yield *_object(finding.address), data["id"], data["owner"], data["last_used"]


def _adopted(saved: RunDocument) -> Iterator[tuple[Cell, ...]]:
    for item in saved.items:
        if isinstance(item, Keep) and item.adopted:
            yield *_object(item.address), item.id, item.owner


def _object(address: Address) -> tuple[Cell, ...]:
    return str(address.target), address.section, object_label(address)


def _applies(saved: RunDocument) -> Iterator[tuple[Cell, ...]]:
    for apply in saved.applies or ():
        numbers = (apply.counts.get(verb, 0) for verb in ("created", "updated", "deleted"))
        yield (
            apply.id,
            utc(apply.when),
            apply.author,
            *numbers,
            apply.result,
            apply.manifests,
            apply.reverts,
            apply.job,
        )


def exception_places(saved: RunDocument) -> Iterable[str]:
    """Return the places of the exceptions, as path:line."""
    return {exception.origin for seen in saved.targets for exception in seen.exceptions if exception.origin}
