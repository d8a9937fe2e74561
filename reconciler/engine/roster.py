"""The `Roster`: the records of groups and projects. Each record is read once a run, and only when a rule needs it."""

import re
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TypeVar
from urllib.parse import quote, unquote

from reconciler.engine.crew import ask_each
from reconciler.engine.read import UNEXPECTED, answer_or_error
from reconciler.errors import BadAnswer, NotFound, ServiceError
from reconciler.model.creation import VISIBILITIES, Visibility
from reconciler.model.protocols import Concurrency, FleetReader, Json, KeepPage, Kept, Reader, Spread
from reconciler.model.state import Reference
from reconciler.model.targets import Identity, Level, Target

OTHER_LEVEL = {Level.GROUP: Level.PROJECT, Level.PROJECT: Level.GROUP}
"""The level that a manifest may declare by mistake."""

PATH_FIELDS = {Level.GROUP: "full_path", Level.PROJECT: "path_with_namespace"}
"""The field of a record that has the full path."""

RECORD = re.compile(r"(group|project)s/([^/?]+)(\?with_projects=false)?")
"""The path of a group's or a project's own record."""

_DOOMED = re.compile(r"-deletion_scheduled-[0-9]+(/|$)")

Value = TypeVar("Value", int, str)


@dataclass(frozen=True, slots=True)
class TargetRecord:
    """The service's response about a group or a project as such.

    Attributes:
        target: the requested target.
        fields: the JSON object of the response.
    """

    target: Target
    fields: Mapping[str, Json]

    @property
    def id(self) -> int:
        """The numeric ID.

        Raises:
            BadAnswer: the record has none.
        """
        return self._field("id", int)

    @property
    def path(self) -> str:
        """The full path, in the service's own spelling.

        Raises:
            BadAnswer: the record has none.
        """
        return self._field(PATH_FIELDS[self.target.level], str)

    def _field(self, name: str, value_type: type[Value]) -> Value:
        value = self.fields.get(name)
        if type(value) is not value_type:
            raise BadAnswer(_request(self.target), UNEXPECTED)
        return value


@dataclass(frozen=True, slots=True)
class ExistingTarget:
    """A group or project that exists, or the namespace of a user.

    Attributes:
        id: numeric ID.
        visibility: None if unknown.
        personal: whether it is the namespace of a user.
        archived: whether it is an archived project; false if only a list was read.
        moved_to: its present full path, if the requested path redirected; else empty.
    """

    id: int
    visibility: Visibility | None = None
    personal: bool = False
    archived: bool = False
    moved_to: str = ""


Answer = ExistingTarget | ServiceError | None
"""The group or project; None if it is missing; the error if the service did not say."""

Answers = Mapping[Identity, Answer]
"""By `Target.identity`."""


@dataclass(frozen=True, slots=True)
class Move:
    """The place of a group or project that has moved.

    Attributes:
        number: its numeric ID.
        path: its full path; None if unknown.
        day: the day on which its own deletion was scheduled, which renames it; empty if it is not, or only with its
            group.
    """

    number: int
    path: str | None = None
    day: str = ""

    @property
    def doomed(self) -> bool:
        """Whether its deletion is scheduled, or that of a group above it."""
        return bool(self.day) or is_scheduled_for_deletion(self.path or "")

    def __str__(self) -> str:
        """`acme/api (ID 100)`."""
        return f"ID {self.number}" if self.path is None else f"{self.path} (ID {self.number})"


class Roster:
    """The service for planning: a `FleetReader` that reads the record of each group and project once.

    The records are not kept for an apply, which reads again whatever its writes depend on.

    Attributes:
        answers: the groups and projects that were looked up, with the answer for each.
        moves: the groups and projects that were found to have moved, by their former paths.
    """

    def __init__(self, reader: FleetReader) -> None:
        self._reader = reader
        self._records: dict[str, Json] = {}
        self.answers: dict[Identity, Answer] = {}
        self.moves: dict[Target, Move] = {}

    @property
    def ids(self) -> dict[Reference, int]:
        """The numeric IDs of the groups and projects whose records were asked for."""
        return {place: number for place, record in self.records.items() if type(number := record.get("id")) is int}

    @property
    def existing_ids(self) -> dict[Reference, int]:
        """The numeric IDs of the groups and projects that were found to exist."""
        existing = {place: answer for place, answer in self.answers.items() if isinstance(answer, ExistingTarget)}
        paths = self.present_paths
        moved = {
            Reference(target.level, paths[target.identity].casefold()): move.number
            for target, move in self.moves.items()
            if target.identity in paths
        }
        return moved | {
            Reference(level, str(path)): answer.id for (level, path), answer in existing.items() if not answer.personal
        }

    @property
    def present_paths(self) -> dict[Identity, str]:
        """The paths of the groups and projects that have moved, by `Target.identity` with the former path.

        Those whose deletion is scheduled are left out.
        """
        return {target.identity: move.path for target, move in self.moves.items() if move.path and not move.doomed}

    @property
    def records(self) -> dict[Reference, Mapping[str, Json]]:
        """The records of the groups and projects that were asked for by path, or that show their path."""
        records: dict[Reference, Mapping[str, Json]] = {}
        for path, answer in self._records.items():
            record = RECORD.fullmatch(path)
            if record and isinstance(answer, dict) and not record[2].isdigit():
                records[Reference(Level(record[1]), unquote(record[2]).casefold())] = answer
        return records

    def remembers(self, target: Target) -> bool:
        """Return whether the record of a project costs no request any more."""
        return target.url.rstrip("/") in self._records

    def find(
        self, targets: Iterable[Target], *, to_create: Container[Identity], known_answers: Answers | None = None
    ) -> dict[Identity, Answer]:
        """Look up which targets exist, and return all answers so far.

        It takes one request for each target, unless a group above it is missing; and one for the group right above
        missing targets, unless that is among the targets: its ID and its visibility are needed. As long as such a group
        may be missing itself, only one of the targets in it is asked for.

        Args:
            targets: by path.
            to_create: the targets that are created if they are missing; their groups are looked up too.
            known_answers: targets that a list has shown already, so that they cost no request.

        Raises:
            ServiceError: an error of `ENDS_A_RUN`.
        """
        existing = self.answers = {**(known_answers or {}), **self.answers}
        waiting = {target.identity: target for target in targets if target.identity not in existing}
        # Only projects can be in the namespace of a user, which is no group: see `_ask_namespace`.
        for_projects = {target.parent.casefold() for target in waiting.values() if target.level is Level.PROJECT}
        tried: set[str] = set()
        while waiting:
            for identity, target in [*waiting.items()]:
                # If a group does not exist, nothing in it does: no request is needed.
                above = missing_group(target, existing)
                if above is not None:
                    _, existing[identity] = above
                    del waiting[identity]
            asked = [*_ready_targets(waiting, existing, tried)]
            answers = ask_each(_ask, asked, self)
            for target, answer in answers.items():
                existing[target.identity] = answer
                del waiting[target.identity]
            inside = [target for target in asked if "/" in str(target.ref)]
            tried |= {target.groups_above[-1] for target in inside}
            missing = [target for target in inside if answers[target] is None and target.identity in to_create]
            parents = [Target(Level.GROUP, target.parent) for target in missing]
            needed = {group.identity: group for group in parents if group.identity not in existing}
            namespaces = ask_each(partial(_ask_namespace, for_projects=for_projects), needed.values(), self)
            existing |= {group.identity: answer for group, answer in namespaces.items()}
        return existing

    def follow_moves(self, but: Container[Target] = ()) -> dict[Target, Move]:
        """Look up the present place of each group and project whose path has redirected since the last call.

        Args:
            but: paths that no manifest declares, which are skipped.
        """
        new = {
            target: self._move(level, number)
            for (level, path), number in [*self.moved.items()]
            if (target := Target(level, path)) not in self.moves and target not in but
        }
        self.moves |= new
        return new

    def _move(self, level: Level, number: int) -> Move:
        try:
            record = fetch_record(Target(level, number), self)
            return Move(number, record.path, str(record.fields.get("marked_for_deletion_on") or ""))
        except ServiceError:
            return Move(number)

    @property
    def concurrency(self) -> Concurrency:
        """See `Reader`."""
        return self._reader.concurrency

    @property
    def moved(self) -> Mapping[tuple[Level, str], int]:
        """See `FleetReader`."""
        return self._reader.moved

    def get(self, path: str) -> Json:
        """See `Reader`. What could not be read is asked for again."""
        record = RECORD.fullmatch(path)
        if record is None:
            return self._reader.get(path)
        level, query = Level(record[1]), record[3] or ""
        # A redirect has shown the ID of a project that has moved: its record is kept under that, once for both paths.
        number = self._reader.moved.get((level, unquote(record[2])))
        path = path if number is None else f"{level}s/{number}{query}"
        if path not in self._records:
            self._remember(level, path, query, self._reader.get(path))
        return self._records[path]

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
        # A record is found by its number and by its path, whichever of them it was asked for by.
        names = (answer.get("id"), answer.get(PATH_FIELDS[level])) if isinstance(answer, dict) else ()
        urls = (f"{level}s/{quote(str(name), safe='')}{query}" for name in names if name is not None)
        self._records |= dict.fromkeys((path, *urls), answer)


def fetch_record(target: Target, reader: Reader) -> TargetRecord:
    """Read the record of a group or project; that of a group without its projects.

    Raises:
        ServiceError: there is no such record, or none that the token may see.
    """
    # Without this parameter, a group's record has its projects, and counts to a throttle of its own (deployed
    # behaviour, section 7.4).
    record = reader.get(target.url.rstrip("/") + ("?with_projects=false" if target.level is Level.GROUP else ""))
    if not isinstance(record, dict):
        raise BadAnswer(_request(target), UNEXPECTED)
    return TargetRecord(target, record)


def is_scheduled_for_deletion(path: str) -> bool:
    """Return whether a group or project, or a group above it, is scheduled for deletion.

    Only the path shows it: the service renames the group, while the projects in it have no deletion date of their own
    and are still listed.
    """
    return _DOOMED.search(path) is not None


def is_off(value: Json) -> bool:
    """Return whether a value in a project's record says that a feature is switched off."""
    # The service has both: `issues_enabled: false`, and `builds_access_level: "disabled"`.
    return value is False or value == "disabled"


def has_other_level(target: Target, reader: Reader) -> bool:
    """Return whether a project that is not found is a group, or the reverse.

    Raises:
        ServiceError: an error of `ENDS_A_RUN`.
    """
    other = Target(OTHER_LEVEL[target.level], target.ref)
    # A project always has a namespace: a path without a slash needs no request.
    if isinstance(target.ref, str) and other.level is Level.PROJECT and "/" not in target.ref:
        return False
    return isinstance(answer_or_error(lambda: fetch_record(other, reader)), TargetRecord)


def missing_group(target: Target, answers: Answers) -> tuple[str, ServiceError | None] | None:
    """Return the nearest missing group above a target, with the error if its existence is unknown; None if all exist.

    Groups that were not looked up count as existing.
    """
    asked = (group for group in reversed(target.groups_above) if (Level.GROUP, group) in answers)
    nearest = next(asked, None)
    answer = None if nearest is None else answers[Level.GROUP, nearest]
    return None if nearest is None or isinstance(answer, ExistingTarget) else (nearest, answer)


def _ready_targets(waiting: Mapping[Identity, Target], answers: Answers, tried: Collection[str]) -> Iterator[Target]:
    """Yield the targets to look up now: no group above them is waiting, and no parent is in doubt."""
    doubtful: set[str] = set()
    for target in waiting.values():
        above = target.groups_above
        if any((Level.GROUP, group) in waiting for group in above):
            continue
        parent = above[-1] if above else ""
        if parent in doubtful:
            continue
        if parent and (Level.GROUP, parent) not in answers and parent not in tried:
            doubtful.add(parent)
        yield target


def _ask(target: Target, reader: Reader) -> Answer:
    answer = answer_or_error(lambda: _existing_target(target, reader))
    return None if isinstance(answer, NotFound) else answer


def _existing_target(target: Target, reader: Reader) -> ExistingTarget:
    record = fetch_record(target, reader)
    # Paths ignore case (deployed behaviour, section 7.6): only another path is a move.
    stays = record.path.casefold() == str(target.ref).casefold()
    is_archived = target.level is Level.PROJECT and record.fields.get("archived") is True
    return ExistingTarget(
        record.id, _visibility(record.fields), archived=is_archived, moved_to="" if stays else record.path
    )


def _visibility(record: Mapping[str, Json]) -> Visibility | None:
    shown = record.get("visibility")
    return next((visibility for visibility in VISIBILITIES if visibility == shown), None)


def _ask_namespace(group: Target, reader: Reader, for_projects: Collection[str]) -> Answer:
    """Look up a group; for a project, the namespace may also be that of a user."""
    answer = _ask(group, reader)
    path = str(group.ref)
    if answer is not None or "/" in path or path.casefold() not in for_projects:
        return answer
    namespace = answer_or_error(lambda: reader.get(f"namespaces/{quote(path, safe='')}"))
    match namespace:
        case {"id": int(number), "kind": "user"}:
            return ExistingTarget(number, "private", personal=True)
    return namespace if isinstance(namespace, ServiceError) and not isinstance(namespace, NotFound) else None


def _request(target: Target) -> str:
    return f"GET {target.url.rstrip('/')}"
