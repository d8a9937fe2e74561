"""The service during a survey: each group and project is asked for itself once, whichever stage needs its record.

The memory ends with the survey, so that an apply asks again where it has to know what holds now.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from urllib.parse import quote, unquote

from reconciler.engine.records import PATH_FIELDS
from reconciler.model.protocols import FleetReader, Json, KeepPage, Kept, Spread
from reconciler.model.state import Reference
from reconciler.model.targets import Level

RECORD = re.compile(r"(group|project)s/([^/?]+)(\?with_projects=false)?")
"""The path of a group's or a project's own record."""


class AskedOnce:
    """A `FleetReader` that remembers the records of groups and projects, by number and by path."""

    def __init__(self, reader: FleetReader) -> None:
        self._reader, self.concurrency = reader, reader.concurrency
        self._records: dict[str, Json] = {}

    @property
    def moved(self) -> Mapping[tuple[Level, str], int]:
        """See `FleetReader`."""
        return self._reader.moved

    @property
    def records(self) -> dict[Reference, Mapping[str, Json]]:
        """The records of the groups and projects that were asked for by path, or that show their path."""
        records: dict[Reference, Mapping[str, Json]] = {}
        for path, answer in self._records.items():
            record = RECORD.fullmatch(path)
            if record and isinstance(answer, dict) and not record[2].isdigit():
                records[Reference(Level(record[1]), unquote(record[2]).casefold())] = answer
        return records

    def get(self, path: str) -> Json:
        """See `Reader`. What could not be read is asked for again."""
        record = RECORD.fullmatch(path)
        if record is None:
            return self._reader.get(path)
        level, query = Level(record[1]), record[3] or ""
        number = self._reader.moved.get((level, unquote(record[2])))
        path = path if number is None else f"{level}s/{number}{query}"
        if path not in self._records:
            self._remember(level, path, query, self._reader.get(path))
        return self._records[path]

    def remembers(self, path: str) -> bool:
        """Return whether a record costs no request any more."""
        return path in self._records

    def recall(self, path: str) -> Json:
        """See `Reader`."""
        record, answer = RECORD.fullmatch(path), self._reader.recall(path)
        if record is not None:
            self._remember(Level(record[1]), path, record[3] or "", answer)
        return answer

    def pages(self, path: str, *, whole: bool = False) -> list[Json]:
        """See `Reader`."""
        return self._reader.pages(path, whole=whole)

    def gather(self, path: str, keep: KeepPage[Kept], spread: Spread | None = None) -> list[Kept]:
        """See `FleetReader`."""
        return self._reader.gather(path, keep, spread)

    def now(self) -> datetime:
        """See `FleetReader`."""
        return self._reader.now()

    def _remember(self, level: Level, path: str, query: str, answer: Json) -> None:
        names = (answer.get("id"), answer.get(PATH_FIELDS[level])) if isinstance(answer, dict) else ()
        urls = (f"{level}s/{quote(str(name), safe='')}{query}" for name in names if name is not None)
        self._records |= dict.fromkeys((path, *urls), answer)
