"""How imports of projects are going: the service's record of one, in words. Nothing here can write."""

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
    """How the import of a project is going.

    Attributes:
        is_running: whether it is to begin, or has begun and not ended.
        obstacle: that it has ended badly, and why; None if not.
        left_out: what the project did not get, although the import has finished; empty if nothing is known of that.
    """

    is_running: bool = False
    obstacle: Obstacle | None = None
    left_out: str = ""


ENDED_BADLY: Mapping[Json, str] = {"failed": "failed", "canceled": "was canceled"}
"""By status of an import, words for it."""

MOST_TOLD = 3
"""So many of the sorts and errors that an import has left out are told."""


def ask_import(project: Target, reader: Reader, secrets: Collection[str] = ()) -> ImportState | ServiceError:
    """Ask how the import of a project is going (deployed behaviour, section f 8).

    Args:
        project: the project.
        reader: the service.
        secrets: texts that the reason of a failure must not hold.

    Raises:
        ServiceError: one that `ENDS_A_RUN`.
    """
    record = answer_or_error(lambda: reader.get(f"{project.url}import"))
    if isinstance(record, ServiceError):
        return record
    return import_state(project, record if isinstance(record, dict) else {}, secrets)


def import_state(project: Target, record: Mapping[str, Json], secrets: Collection[str]) -> ImportState:
    """Return how an import is going, by the service's record of it, without secrets."""
    from reconciler.service.responses import hidden, shown  # noqa: PLC0415 - most commands start without HTTP

    def cleaned(text: Json) -> str:
        return shown(hidden(text, secrets)) if isinstance(text, str) else ""

    status = record.get("import_status")
    errors = [f"{where}: {cleaned(message)}" for where, message in _errors(record, cleaned)]
    if status in ENDED_BADLY:
        reason = cleaned(record.get("import_error")) or _first(errors)
        words = f"its import {ENDED_BADLY[status]}{reason and ': '}{reason}"
        return ImportState(obstacle=Obstacle(project.address, words, "delete it and apply again"))
    if status != "finished":
        return ImportState(is_running=status in ("scheduled", "started"))
    counts = [f"{cleaned(name).replace('_', ' ')} ({left} of {of})" for name, left, of in _left_out(record)]
    told = f"{counted(len(errors), 'error')}: {_first(errors)}" if errors else ""
    return ImportState(left_out="; ".join(filter(None, (_first(counts), told))))


def _errors(record: Mapping[str, Json], cleaned: Callable[[Json], str]) -> Iterator[tuple[str, Json]]:
    """Yield where errors of an import were, and which; GitHub's name no relation, but what has raised them."""
    relations = record.get("failed_relations")
    for relation in (entry for entry in (relations if isinstance(relations, list) else ()) if isinstance(entry, dict)):
        source = cleaned(relation.get("source")).rpartition("::")[2]
        where = cleaned(relation.get("relation_name")) or source or "unknown place"
        yield where, relation.get("exception_message") or relation.get("exception_class")


def _left_out(record: Mapping[str, Json]) -> Iterator[tuple[str, int, int]]:
    """Yield by sort of objects how many were not imported, and of how many. Only imports from GitHub count them."""
    match record.get("stats"):
        case {"fetched": dict() as fetched, "imported": dict() as imported}:
            for name, number in fetched.items():
                got = imported.get(name, 0)
                if type(number) is type(got) is int and got < number:
                    yield name, number - got, number


def _first(words: Sequence[str]) -> str:
    """Return the first words of many, and how many there are besides."""
    more = len(words) - MOST_TOLD
    return ", ".join(words[:MOST_TOLD]) + (f" and {more:,} more" if more > 0 else "")
