"""The `Journal`: each write is recorded on disk before it is sent, and after its response. See `recorded`.

Correctness does not depend on the journal: the next plan reads live state. The journal shows the person on call which
writes of a killed run succeeded and which are unconfirmed, and the next run checks these.
"""

import fcntl
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Self, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from reconciler.engine.apply.options import ApplyOptions
from reconciler.errors import OutputFailed, ServiceError
from reconciler.model.diff import AsRead
from reconciler.model.item import Action, Change, Create, Delete, Update
from reconciler.model.protocols import Json, Request
from reconciler.model.targets import Address, Key, Level, Target
from reconciler.model.wording import counted
from reconciler.system import clock
from reconciler.system.files import append_line, naming, open_own, values_of

Answer = TypeVar("Answer")


class Intent(BaseModel):
    """A write that was about to be sent, with all facts that a later run needs to check its success.

    Attributes:
        action: of the change.
        after: the planned fields; none for a deletion.
        target_id: see `plan.Create`.
        replaces_ids: see `plan.Create`.
        id: of the object to be updated or deleted, if it has one.
        request: method and path.
    """

    model_config = ConfigDict(frozen=True)

    level: Level
    ref: Key | None
    section: str
    part: str
    title: str
    name: Key | None
    action: Action
    after: dict[str, Json] = {}
    target_id: int | None = None
    replaces_ids: tuple[int, ...] = ()
    id: int | None = None
    below: tuple[str, ...] = ()
    request: str

    @classmethod
    def of(cls, change: Change, request: Request) -> Self:
        """Return the intent to send one of a change's requests."""
        address = change.address
        # A promotion sets no field: the write after it does.
        promotes = isinstance(change, Update) and bool(change.read.below) and request.method == "POST"
        return cls(
            level=address.target.level,
            ref=address.target.ref,
            section=address.section,
            part=address.part,
            title=address.title,
            name=address.name,
            action=change.action,
            after={} if isinstance(change, Delete) or promotes else dict(change.after),
            target_id=change.target_id if isinstance(change, Create) else None,
            replaces_ids=change.replaces_ids if isinstance(change, Create) else (),
            id=None if isinstance(change, Create) else change.read.id,
            below=() if isinstance(change, Create) else change.read.below,
            request=str(request),
        )

    @property
    def change(self) -> Change:
        """The change, without the facts that the journal does not keep."""
        address = Address(Target(self.level, self.ref), self.section, self.part, self.title, self.name)
        if self.action == "create":
            return Create(address, self.after, (), self.target_id, self.replaces_ids)
        read = AsRead(self.id, (), {}, {}, self.below)
        return Update(address, {}, self.after, (), read) if self.action == "update" else Delete(address, {}, (), read)

    def __str__(self) -> str:
        """Return the request with its target and object, in a plan's words."""
        name = "" if self.name is None else f", {self.name!r}"
        return f"{self.request} ({Target(self.level, self.ref)}{name})"


@dataclass(frozen=True, slots=True)
class Interrupted:
    """The unconfirmed writes of earlier runs.

    Attributes:
        service: the `{api_url}` that was written to.
        began_at: ISO 8601, of the last run if it was cut off; else None.
        done: the number of writes of that run that certainly succeeded.
        unconfirmed: the writes with an unknown result, in the order of sending.
    """

    service: str
    began_at: str | None
    done: int
    unconfirmed: tuple[Intent, ...]

    def __str__(self) -> str:
        """Return a summary in one sentence."""
        unconfirmed = f"{counted(len(self.unconfirmed), 'write')} left unconfirmed."
        if self.began_at is None:
            return f"Earlier runs with this journal: {unconfirmed}"
        done = f"{counted(self.done, 'write')} certainly succeeded"
        return f"The run that began at {self.began_at} was cut off: {done}, {unconfirmed}"


class Journal:
    """A file of JSON lines that one run at a time uses, and that only its owner can read.

    Attributes:
        interrupted: the unconfirmed writes of earlier runs; None if there are none.
        failure: the reason why a line could not be written to disk; empty if there is none.

    Raises:
        OutputFailed: the file cannot be opened, is not our own, or is in use by another run.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = Lock()
        self._number = 0
        self._handle = open_own(path)
        self.failure = ""
        try:
            # The lock ends with the process, so that a killed run leaves none behind.
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._handle)
            raise OutputFailed(
                f"{path} is in use by another run ({error.strerror}); wait for its end, or name another journal"
            ) from error
        self.interrupted = read_interrupted(os.pread(self._handle, os.fstat(self._handle).st_size, 0))

    def __enter__(self) -> Self:
        """Return the journal itself."""
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        """Close the file, for the next run."""
        os.close(self._handle)

    @contextmanager
    def run(self, service: str, digest: str, unconfirmed: Iterable[Intent] = ()) -> Iterator[Self]:
        """Record the begin of a run and, unless it is cut off, its end.

        Args:
            service: the `{api_url}`.
            digest: of the manifests.
            unconfirmed: writes of earlier runs that could not be confirmed.

        Raises:
            OutputFailed: the begin could not be recorded.
        """
        kept = [intent.model_dump(mode="json") for intent in unconfirmed]
        self._write({"event": "begin", "service": service, "manifests_digest": digest, "unconfirmed": kept})
        # No `finally`: a run that an exception cuts off has no end, and the next run reports its unconfirmed writes.
        yield self
        self._try_to_write({"event": "end"})

    def intend(self, change: Change, request: Request) -> int:
        """See `apply.WriteLog`.

        Raises:
            OutputFailed: the intent could not be recorded.
        """
        with self._lock:
            self._number += 1
            number = self._number
        intent = Intent.of(change, request).model_dump(mode="json")
        self._write({"event": "intent", "number": number, **intent})
        return number

    def result(self, number: int, status: str, reason: str = "") -> None:
        """See `apply.WriteLog`. A failure is not raised: the report of this run has the result."""
        self._try_to_write({"event": "result", "number": number, "status": status, "reason": reason})

    def canary(self, target_count: int, *, in_order: bool) -> None:
        """See `apply.WriteLog`."""
        self._try_to_write({"event": "canary", "targets": target_count, "in_order": in_order})

    def _write(self, fields: Mapping[str, Json]) -> None:
        time = clock.now().isoformat(timespec="milliseconds")
        try:
            with self._lock, naming(self._path):
                append_line(self._handle, json.dumps({"time": time, **fields}))
        except OutputFailed as error:
            # The first failure names the cause; later ones follow from it.
            self.failure = self.failure or str(error)
            raise

    def _try_to_write(self, fields: Mapping[str, Json]) -> None:
        with suppress(OutputFailed):
            self._write(fields)


def recorded(options: ApplyOptions, change: Change, request: Request, send: Callable[[], Answer]) -> Answer:
    """Send one request, and record it before and its result afterwards.

    Raises:
        OutputFailed: the request could not be recorded, or its token value could not be delivered.
        ServiceError: it failed.
    """
    try:
        # On disk before it is sent: a write that no journal knows could not be confirmed after a kill.
        number = options.write_log.intend(change, request)
    except OutputFailed:
        options.stop.cancel("the journal could not be written, so the run was ended")
        raise
    try:
        answer = send()
    except (ServiceError, OutputFailed) as error:
        doubtful = isinstance(error, ServiceError) and error.ambiguous
        options.write_log.result(number, "in doubt" if doubtful else "failed", str(error))
        raise
    options.write_log.result(number, "done")
    return answer


def read_interrupted(content: bytes) -> Interrupted | None:
    """Return the unconfirmed writes of the last run of a journal and of earlier runs; None if there are none.

    Invalid lines are skipped: a kill may leave an incomplete one.
    """
    service, began_at, done = "", None, 0
    earlier: list[Intent] = []
    own: dict[int, Intent] = {}
    for line in values_of(content):
        match line:
            case {"event": "begin", "time": str(time), "service": str(service)}:
                began_at, done, own = time, 0, {}
                earlier = _intents(line.get("unconfirmed"))
            case {"event": "intent", "number": int(number)}:
                own.update((number, intent) for intent in _intents([line]))
            case {"event": "result", "number": int(number), "status": str(status)}:
                if status != "in doubt":
                    own.pop(number, None)
                done += status == "done"
            case {"event": "end"}:
                began_at, done = None, 0
    unconfirmed = (*earlier, *own.values())
    return Interrupted(service, began_at, done, unconfirmed) if began_at or unconfirmed else None


def _intents(raw_lines: Json) -> list[Intent]:
    intents = []
    for line in raw_lines if isinstance(raw_lines, list) else ():
        with suppress(ValidationError):
            intents.append(Intent.model_validate(line))
    return intents
