"""The journal: each write noted before it is sent and after it was answered, on disk before anything else happens.

Correctness does not need it, for the next plan reads what is true. It tells the person on call what a run that was
killed had certainly done and what was in doubt, and lets the next run settle the doubt.
"""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, Self

from reconciler.address import Address, Key, Level, Scope
from reconciler.errors import OutputFailed
from reconciler.plan import Plan
from reconciler.wire import Request


@dataclass(frozen=True, slots=True)
class Intent:
    """A write that was about to be sent.

    Attributes:
        request: method and path.
    """

    scope: Scope
    section: str
    part: str
    name: Key | None
    request: str

    def __str__(self) -> str:
        """What it was about, as a plan would name it."""
        return (
            f"{self.request} ({self.scope})" if self.name is None else f"{self.request} ({self.scope}, {self.name!r})"
        )


@dataclass(frozen=True, slots=True)
class Interrupted:
    """A run that did not come to its end.

    Attributes:
        began_at: ISO 8601.
        done: how many writes were certainly carried out.
        doubtful: the writes of which that is not certain, in the order in which they were to be sent.
    """

    began_at: str
    done: int
    doubtful: tuple[Intent, ...]


class Journal:
    """An `apply.Record` in a file of JSON lines, which only its owner can read.

    Raises:
        OutputFailed: from every method, if a line could not be brought to disk.
    """

    def __init__(self, path: Path, service: str, digest: str) -> None:
        self._path = path
        self._lock = Lock()
        self._number = 0
        try:
            self._handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
            # A line that a kill cut in two must not swallow the first of ours.
            size = os.fstat(self._handle).st_size
            torn = size > 0 and os.pread(self._handle, 1, size - 1) != b"\n"
        except OSError as error:
            raise OutputFailed(f"{path}: {error.strerror}") from error
        if torn:
            self._append("\n")
        self._write({"event": "begin", "service": service, "manifests_digest": digest})

    def __enter__(self) -> Self:
        """Return the journal itself."""
        return self

    def __exit__(self, error: type[BaseException] | None, *_: BaseException | TracebackType | None) -> None:
        """Note the end, unless the run broke off, and close the file."""
        try:
            if error is None:
                self._write({"event": "end"})
        finally:
            os.close(self._handle)

    def intend(self, address: Address, request: Request) -> int:
        """See `apply.Record`."""
        with self._lock:
            self._number += 1
            number = self._number
        scope = {"level": address.scope.level, "ref": address.scope.ref}
        place = {"section": address.section, "part": address.part, "name": address.name}
        self._write({"event": "intent", "number": number, **scope, **place, "request": str(request)})
        return number

    def result(self, number: int, status: str, reason: str = "") -> None:
        """See `apply.Record`."""
        self._write({"event": "result", "number": number, "status": status, "reason": reason})

    def _write(self, line: Mapping[str, Any]) -> None:
        time = datetime.now(UTC).isoformat(timespec="milliseconds")
        self._append(json.dumps({"time": time, **line}) + "\n")

    def _append(self, text: str) -> None:
        with self._lock:
            try:
                os.write(self._handle, text.encode())
                os.fsync(self._handle)
            except OSError as error:
                raise OutputFailed(f"{self._path}: {error.strerror}") from error


def read_interrupted(text: str) -> Interrupted | None:
    """Return the last run of a journal if it did not come to its end.

    Lines that are no JSON, as a kill leaves them, are passed over.
    """
    began_at, done, open_intents = None, 0, dict[int, Intent]()
    for line in _lines(text.splitlines()):
        match line:
            case {"event": "begin", "time": str(time)}:
                began_at, done, open_intents = time, 0, {}
            case {"event": "intent", "number": int(number)}:
                open_intents[number] = _intent(line)
            case {"event": "result", "number": int(number), "status": str(status)}:
                if status != "in doubt":
                    open_intents.pop(number, None)
                done += status == "done"
            case {"event": "end"}:
                began_at = None
    return None if began_at is None else Interrupted(began_at, done, tuple(open_intents.values()))


def settle(interrupted: Interrupted, plan: Plan) -> list[tuple[Intent, bool]]:
    """Tell, by a new plan, which doubtful writes were carried out: those whose change is not planned again."""
    planned = {
        (each.address.scope, each.address.section, each.address.part, each.address.name) for each in plan.changes
    }
    return [
        (intent, (intent.scope, intent.section, intent.part, intent.name) not in planned)
        for intent in interrupted.doubtful
    ]


def _lines(lines: Iterable[str]) -> Iterable[Any]:
    for line in lines:
        try:
            yield json.loads(line)
        except ValueError:
            continue


def _intent(line: Mapping[str, Any]) -> Intent:
    scope = Scope(Level(line["level"]), line["ref"])
    return Intent(scope, line["section"], line["part"], line["name"], line["request"])
