"""Reading live state: from what is wanted to the reads it needs, side by side, to what was found.

Only declared parts are read. Nothing here can write: it is handed a `Reader`.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from operator import index
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

from reconciler.errors import (
    BadAnswer,
    Moved,
    NotFound,
    ScopeMissing,
    ServiceError,
    Stopped,
    Unauthorized,
    Unreachable,
    WaitTooLong,
)
from reconciler.model.diff import fields_of
from reconciler.model.endpoints import Collection
from reconciler.model.kind import Kinds, Part
from reconciler.model.progress import Progress
from reconciler.model.protocols import Json, Reader, TimedReader
from reconciler.model.resource import Found, Resource, Wanted
from reconciler.model.state import DesiredState, LivePart, LiveState, PartAddress, Reference, Unknown, Unreadable
from reconciler.model.targets import Level, Target

ENDS_A_RUN = (ScopeMissing, Stopped, Unauthorized, Unreachable, WaitTooLong)
"""After these nothing else can be read either."""

OTHER = {Level.GROUP: Level.PROJECT, Level.PROJECT: Level.GROUP}
"""For which each is easily taken."""

Task = TypeVar("Task")
Result = TypeVar("Result")


def read_live(
    desired: DesiredState, reader: TimedReader, kinds: Kinds, concurrency: int, progress: Progress | None = None
) -> LiveState:
    """Read every declared part of every target.

    Raises:
        ServiceError: one that `ENDS_A_RUN`. Any other failure is an `Unreadable`.
    """
    wanted = list(_declared_parts(desired))
    progress = progress or Progress()
    progress.begin("reading", (target for (target, _, _), _ in wanted))

    def read(task: tuple[PartAddress, Wanted]) -> LivePart:
        (target, section, part), declared = task
        found = read_part(reader, kinds[section].part(part), target, declared)
        progress.step(target)
        return found

    parts = dict(zip((address for address, _ in wanted), side_by_side(read, wanted, concurrency), strict=True))
    return LiveState(parts, learn_ids(parts, kinds), reader.now())


def read_part(reader: Reader, part: Part, target: Target, wanted: Resource | Mapping[Any, Any]) -> LivePart:
    """Read one part of one target.

    Args:
        wanted: what is declared of it, or of a singleton the declared fields as JSON.

    Raises:
        ServiceError: see `read_live`.
    """
    path = target.url + part.suffix
    try:
        if isinstance(part, Collection):
            return tuple(decode(part, target, entry) for entry in reader.pages(path))
        answer = reader.get(path)
        if part.complete is not None:
            answer = part.complete(reader, answer, fields_of(wanted) if isinstance(wanted, Resource) else wanted)
        return decode(part, target, answer)
    except ENDS_A_RUN:
        raise
    except ServiceError as error:
        return Unreadable(str(error), isinstance(error, NotFound), error.status)


def look_up(references: Iterable[Reference], reader: Reader, concurrency: int) -> dict[Reference, int | Unknown]:
    """Ask for the numeric ID of each path, once each.

    Raises:
        ServiceError: see `read_live`.
    """
    ordered = sorted(references, key=lambda reference: (reference.level, reference.path))

    def ask(reference: Reference) -> int | Unknown:
        return ask_for_id(reference, reader)

    return dict(zip(ordered, side_by_side(ask, ordered, concurrency), strict=True))


def look_up_paths(scopes: Iterable[Target], reader: Reader, concurrency: int) -> dict[Target, str | Unknown]:
    """Ask for the full path of each target that is given by ID, once each.

    Raises:
        ServiceError: see `read_live`.
    """
    ordered = sorted(scopes, key=lambda target: target.order)

    def ask(target: Target) -> str | Unknown:
        try:
            return _ask(target, reader, lambda record: path_in(record, target.level))
        except NotFound as error:
            return Unknown(_not_found(error))

    return dict(zip(ordered, side_by_side(ask, ordered, concurrency), strict=True))


def ask_for_record(target: Target, reader: Reader) -> Json:
    """Return the service's record of a group or a project, without a group's projects.

    Raises:
        ServiceError: see `read_live`, and any other.
    """
    return reader.get(target.url.rstrip("/") + ("?with_projects=false" if target.level is Level.GROUP else ""))


def path_in(record: Json, level: Level) -> str:
    """Return the full path that a record holds.

    Raises:
        LookupError, TypeError: it holds none.
    """
    path = record["full_path" if level is Level.GROUP else "path_with_namespace"]
    if not isinstance(path, str):
        raise TypeError(path)
    return path


def learn_ids(parts: Mapping[PartAddress, LivePart], kinds: Kinds) -> dict[Reference, int | Unknown]:
    """Collect the numeric IDs that came along with what was read, so that none has to be asked for."""
    ids: dict[Reference, int | Unknown] = {}
    for (target, section, name), live in parts.items():
        part = kinds[section].part(name)
        for found in live if isinstance(live, tuple) else ():
            if found.owner_id is not None and isinstance(target.ref, str):
                ids[Reference(target.level, target.ref.casefold())] = found.owner_id
            if isinstance(part, Collection) and part.key_level and found.id is not None:
                ids |= {Reference(part.key_level, n.casefold()): found.id for n in found.names if isinstance(n, str)}
    return ids


def record_or_error(target: Target, reader: Reader) -> Json | ServiceError:
    """Return the record of a group or a project, or why there is none.

    Raises:
        ServiceError: see `read_live`.
    """
    try:
        return ask_for_record(target, reader)
    except ENDS_A_RUN:
        raise
    except ServiceError as error:
        return error


def is_the_other(target: Target, reader: Reader) -> bool:
    """Tell whether what is not there as a project is there as a group, or the other way round.

    Raises:
        ServiceError: see `read_live`.
    """
    other = Target(OTHER[target.level], target.ref)
    if isinstance(target.ref, str) and other.level is Level.PROJECT and "/" not in target.ref:
        return False
    return isinstance(record_or_error(other, reader), dict)


def side_by_side(work: Callable[[Task], Result], tasks: Iterable[Task], concurrency: int) -> list[Result]:
    """Do the same work for all tasks, at most `concurrency` at once; results in the order of the tasks.

    The first exception ends it: tasks that have not begun are dropped, and those that have are waited for. A
    `KeyboardInterrupt` waits for nothing: the threads are daemons, so that an answer that never comes cannot keep the
    process. Workers take one task after the other, since a future for each of a fleet's tasks would weigh more than its
    result.
    """
    todo = deque(enumerate(tasks))
    results: dict[int, Result] = {}
    ended = SimpleQueue[BaseException | None]()

    def work_on() -> None:
        try:
            for number, task in _taken(todo):
                results[number] = work(task)
        except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
            todo.clear()
            ended.put(error)
        else:
            ended.put(None)

    workers = [Thread(target=work_on, daemon=True) for _ in range(min(concurrency, len(todo)))]
    try:
        for worker in workers:
            worker.start()
        errors = [error for _ in workers if (error := ended.get()) is not None]
        for worker in workers:
            worker.join()
    finally:
        todo.clear()
    if errors:
        raise errors[0]
    return [results[number] for number in range(len(results))]


def _taken(todo: deque[Task]) -> Iterator[Task]:
    """Take one after the other, as other threads do too."""
    with suppress(IndexError):
        while True:
            yield todo.popleft()


def _declared_parts(desired: DesiredState) -> Iterator[tuple[PartAddress, Wanted]]:
    for target in desired.targets:
        for section in target.sections:
            for part, wanted in section.wanted.items():
                yield (target.target, section.kind, part), wanted


def decode(part: Part, target: Target, answer: Json) -> Found:
    """Let the kind read an answer, whatever it is.

    Raises:
        BadAnswer: the kind tripped over it, which is the answer's fault.
    """
    try:
        return part.decode(target, answer)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        reason = "the answer is not what the specification promises: " + _what_is_odd(error)
        raise BadAnswer(f"GET {target.url}{part.suffix}", reason) from error


def _what_is_odd(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"{error} is missing"
    return "it has another shape"


def ask_for_id(reference: Reference, reader: Reader) -> int | Unknown:
    """Ask for the numeric ID of a path.

    Raises:
        ServiceError: see `read_live`.
    """
    target = Target(reference.level, reference.path)
    try:
        return _ask(target, reader, lambda record: index(record["id"]))
    except NotFound as error:
        if not is_the_other(target, reader):
            return Unknown(_not_found(error), "correct the path, or use a token that can see it")
        other = OTHER[target.level]
        return Unknown(f"this is a {other}, not a {target.level}", f"list it under `{other}s`")


def _ask(target: Target, reader: Reader, read: Callable[[Json], Result]) -> Result | Unknown:
    """Ask for a target's record and read something from it; say why where that fails.

    Raises:
        NotFound: there is none.
        ServiceError: see `read_live`.
    """
    try:
        return read(ask_for_record(target, reader))
    except (*ENDS_A_RUN, NotFound):
        raise
    except Moved as error:
        return Unknown(f"moved: {error.reason}")
    except ServiceError as error:
        return Unknown(str(error))
    except (LookupError, TypeError, ValueError):
        return Unknown(
            f"GET {target.url.rstrip('/')}: unexpected response: the body does not have the documented structure"
        )


def _not_found(error: NotFound) -> str:
    return f"not found, not visible to this token, or not served by this server ({error})"
