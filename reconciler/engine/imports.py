"""The state of project imports, from the service's record of an import. Nothing here can write. See `ask_import`."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from reconciler.engine.read import answer_or_error
from reconciler.errors import ServiceError
from reconciler.model.obstacle import Obstacle
from reconciler.model.protocols import Json, Reader
from reconciler.model.targets import Target
from reconciler.model.wording import counted


@dataclass(frozen=True, slots=True)
class ImportState:
    """The state of a project's import.

    Attributes:
        is_running: whether the import is scheduled or running.
        obstacle: the failure of the import; None if it has not failed.
        omissions: the objects that a finished import has left out, in words; empty if none are known.
    """

    is_running: bool = False
    obstacle: Obstacle | None = None
    omissions: str = ""


ENDED_BADLY: Mapping[Json, str] = {"failed": "failed", "canceled": "was canceled"}
"""The words for each status of a failed import."""

MOST_LISTED = 3
"""The number of sorts of objects, and of errors, that a message about an import lists."""


def ask_import(project: Target, reader: Reader, secrets: Collection[str] = ()) -> ImportState | ServiceError:
    """Read the state of a project's import (deployed behaviour, section f 8).

    Args:
        project: the project.
        reader: the service.
        secrets: texts that the reason of a failure must not hold.

    Raises:
        ServiceError: an error of `ENDS_A_RUN`.
    """
    record = answer_or_error(lambda: reader.get(f"{project.url}import"))
    if isinstance(record, ServiceError):
        return record
    return import_state(project, record if isinstance(record, dict) else {}, secrets)


def import_state(project: Target, record: Mapping[str, Json], secrets: Collection[str]) -> ImportState:
    """Return the state of an import by the service's record, without secrets."""
    from reconciler.service.responses import hidden, shown  # noqa: PLC0415 - most commands start without HTTP

    def cleaned(value: Json) -> str:
        return shown(hidden(value, secrets)) if isinstance(value, str) else ""

    status = record.get("import_status")
    errors = [f"{where}: {cleaned(message)}" for where, message in _errors(record, cleaned)]
    if status in ENDED_BADLY:
        reason = cleaned(record.get("import_error")) or _first(errors)
        words = f"its import {ENDED_BADLY[status]}{reason and ': '}{reason}"
        return ImportState(obstacle=Obstacle(project.address, words, "delete it and apply again"))
    if status != "finished":
        return ImportState(is_running=status in ("scheduled", "started"))
    counts = [f"{cleaned(name).replace('_', ' ')} ({lost} of {total})" for name, lost, total in _omissions(record)]
    summary = f"{counted(len(errors), 'error')}: {_first(errors)}" if errors else ""
    return ImportState(omissions="; ".join(filter(None, (_first(counts), summary))))


def _errors(record: Mapping[str, Json], cleaned: Callable[[Json], str]) -> Iterator[tuple[str, Json]]:
    """Yield the place and the message of each error of an import; errors of GitHub name a source alone."""
    relations = record.get("failed_relations")
    for relation in (entry for entry in (relations if isinstance(relations, list) else ()) if isinstance(entry, dict)):
        source = cleaned(relation.get("source")).rpartition("::")[2]
        where = cleaned(relation.get("relation_name")) or source or "unknown place"
        yield where, relation.get("exception_message") or relation.get("exception_class")


def _omissions(record: Mapping[str, Json]) -> Iterator[tuple[str, int, int]]:
    """Yield, for each sort of objects, the number not imported and the total. Only imports from GitHub count them."""
    match record.get("stats"):
        case {"fetched": dict() as fetched, "imported": dict() as imported}:
            for name, number in fetched.items():
                got = imported.get(name, 0)
                if type(number) is type(got) is int and got < number:
                    yield name, number - got, number


def _first(words: Sequence[str]) -> str:
    """Return the first words of many, and the number of further ones."""
    more = len(words) - MOST_LISTED
    return ", ".join(words[:MOST_LISTED]) + (f" and {more:,} more" if more > 0 else "")
