"""Groups and projects as such: their IDs, their paths, and whether they are there at all."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar
from urllib.parse import quote

from reconciler.engine.caller import ADMIN_MODE, ask_caller
from reconciler.engine.crew import ask_each
from reconciler.engine.read import UNEXPECTED, answer_or_error
from reconciler.errors import BadAnswer, Moved, NotFound, ServiceError
from reconciler.model.obstacle import Obstacle
from reconciler.model.protocols import Json, Reader
from reconciler.model.state import CALLER, Known, LiveState, Lookup, Reference, Vocabulary
from reconciler.model.targets import Level, Target
from reconciler.model.wording import closest

OTHER = {Level.GROUP: Level.PROJECT, Level.PROJECT: Level.GROUP}
"""For which each is easily taken."""

PATH_FIELDS = {Level.GROUP: "full_path", Level.PROJECT: "path_with_namespace"}
"""Where a record has the full path."""

CASELESS = frozenset({"username", "full_path", "group_full_path"})
"""The fields that hold names of users and groups, which ignore case."""

LEAST_INVITED = 30
"""The access level with which a group is invited at least that may stand in a rule."""

_DOOMED = re.compile(r"-deletion_scheduled-[0-9]+(/|$)")

Value = TypeVar("Value", int, str)

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class TargetRecord:
    """The service's response about a group or a project as such.

    Attributes:
        target: as it was asked for.
        fields: the answer.
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

    def _field(self, name: str, kind: type[Value]) -> Value:
        value = self.fields.get(name)
        if type(value) is not kind:
            raise BadAnswer(_request(self.target), UNEXPECTED)
        return value


def fetch_record(target: Target, reader: Reader) -> TargetRecord:
    """Ask for the record of a group or a project; of a group, without its projects.

    Raises:
        ServiceError: there is no such record, or none that the token may see.
    """
    record = reader.get(target.url.rstrip("/") + ("?with_projects=false" if target.level is Level.GROUP else ""))
    if not isinstance(record, dict):
        raise BadAnswer(_request(target), UNEXPECTED)
    return TargetRecord(target, record)


def is_doomed(path: str) -> bool:
    """Return whether the deletion of a group or project, or of a group above it, is scheduled.

    The service renames what it will delete, and nothing else tells: what is in such a group shows no date of its own,
    and lists have it.
    """
    return _DOOMED.search(path) is not None


def is_the_other(target: Target, reader: Reader) -> bool:
    """Return whether a project that is not found is a group, or a group that is not found a project.

    Raises:
        ServiceError: one that `ENDS_A_RUN`.
    """
    other = Target(OTHER[target.level], target.ref)
    if isinstance(target.ref, str) and other.level is Level.PROJECT and "/" not in target.ref:
        return False
    return isinstance(answer_or_error(lambda: fetch_record(other, reader)), TargetRecord)


def correction(target: Target, reader: Reader) -> str:
    """Return what to do about a path that is not found: the most similar one beside it, if one is.

    It is looked for in the first page of what is there.

    Raises:
        ServiceError: one that `ENDS_A_RUN`.
    """
    group = Target(Level.GROUP, target.parent).url if target.parent else ""
    listing = {
        Level.GROUP: f"{group}subgroups?per_page=100" if group else "groups?top_level_only=true&per_page=100",
        Level.PROJECT: f"{group}projects?simple=true&per_page=100",
    }[target.level]
    answer = answer_or_error(lambda: reader.get(listing))
    records = answer if isinstance(answer, list) else ()
    paths = [record.get(PATH_FIELDS[target.level]) for record in records if isinstance(record, dict)]
    beside = {path.rpartition("/")[2]: path for path in paths if isinstance(path, str) and not is_doomed(path)}
    similar = closest(str(target.ref).rpartition("/")[2], beside)
    return f"the most similar path is {beside[similar]}" if similar else way_to_see(reader)


def way_to_see(reader: Reader, what: str = "path") -> str:
    """Return what to do about what is not found: it may be there, and hidden from the token.

    Raises:
        ServiceError: one that `ENDS_A_RUN`.
    """
    shortfall = ask_caller(reader).shortfall
    if shortfall:
        return f"{shortfall}: {ADMIN_MODE}, or correct the {what}"
    return f"correct the {what}, or use a token that can see it"


def look_up_id(reference: Reference, reader: Reader) -> int | Obstacle:
    """Ask for the numeric ID of a path.

    Raises:
        ServiceError: one that `ENDS_A_RUN`.
    """
    target = reference.target
    if target.level is Level.USER:
        return look_up_user(target, reader)
    answer = answer_or_error(lambda: _living(fetch_record(target, reader)))
    if isinstance(answer, NotFound):
        if is_the_other(target, reader):
            other = OTHER[target.level]
            return Obstacle(target.address, f"this is a {other}, not a {target.level}", f"list it under `{other}s`")
        return Obstacle(target.address, _reason(answer, target), way_to_see(reader))
    return Obstacle(target.address, _reason(answer, target)) if isinstance(answer, ServiceError) else answer


def look_up_user(user: Target, reader: Reader) -> int | Obstacle:
    """Ask for the numeric ID of a username.

    Raises:
        ServiceError: one that `ENDS_A_RUN`.
    """
    answer = answer_or_error(lambda: reader.get(f"users?username={quote(str(user.ref), safe='')}"))
    if isinstance(answer, ServiceError):
        return Obstacle(user.address, _reason(answer, user))
    entries = answer if isinstance(answer, list) else ()
    numbers = [entry.get("id") for entry in entries if isinstance(entry, dict)]
    known = next((number for number in numbers if type(number) is int), None)
    reason = f"no user has the username {user.ref}, or none that this token can see"
    return Obstacle(user.address, reason, "correct the username") if known is None else known


def _living(record: TargetRecord) -> int | Obstacle:
    """Return the ID of a group or project that stays.

    Raises:
        BadAnswer: the record has none.
    """
    path = str(record.fields.get("path_with_namespace", record.fields.get("full_path", "")))
    reason = f"scheduled for deletion, and called {path} (ID {record.id}) until then"
    is_leaving = is_doomed(path)
    return Obstacle(record.target.address, reason, "restore it, or remove the entry") if is_leaving else record.id


def look_up(references: Iterable[Reference], reader: Reader) -> dict[Reference, int | Obstacle]:
    """Ask for the numeric ID of each path, once each.

    Raises:
        ServiceError: one that `ENDS_A_RUN`.
    """
    ordered = sorted(set(references), key=lambda reference: (reference.level, reference.path))
    return ask_each(look_up_id, ordered, reader)


def look_up_names(vocabulary: Vocabulary, reader: Reader) -> Known | Obstacle:
    """Ask for the names in a list.

    Raises:
        ServiceError: one that `ENDS_A_RUN`.
    """

    def ask() -> Known:
        names: dict[str, tuple[int, ...]] = {}
        unfit: dict[int, str] = {}
        for entry in _listed(vocabulary, reader):
            name, number = entry.get(vocabulary.key), entry.get(vocabulary.id_key)
            if not isinstance(name, str):
                continue
            name = name.casefold() if vocabulary.key in CASELESS else name
            names[name] = (*names.get(name, ()), *([number] if type(number) is int else []))
            reason = _unfit(vocabulary, entry)
            if reason and type(number) is int:
                unfit[number] = reason
        return Known(names, unfit)

    return _answer_or_obstacle(vocabulary.target, ask)


def _listed(vocabulary: Vocabulary, reader: Reader) -> list[Mapping[str, Json]]:
    """Return the entries of a list, also of one within the record of its target.

    Raises:
        ServiceError: it cannot be read.
    """
    if vocabulary == CALLER:
        answer: Json = [reader.recall(vocabulary.path)]
    elif vocabulary.within:
        record = reader.get(vocabulary.path)
        answer = record.get(vocabulary.within) if isinstance(record, dict) else None
    else:
        answer = reader.pages(vocabulary.path)
    return [entry for entry in answer if isinstance(entry, dict)] if isinstance(answer, list) else []


def _unfit(vocabulary: Vocabulary, entry: Mapping[str, Json]) -> str:
    """Return what keeps an entry of a list from doing what it is named for; empty if nothing does."""
    if vocabulary == CALLER:
        return "" if entry.get("is_admin") is True else "no administrator"
    match vocabulary.key, entry:
        case "username", {"state": str(state)} if state != "active":
            return state.replace("_", " ")
        case "title", {"can_push": False}:
            return "read-only"
        case "group_full_path", {"group_access_level": int(level)} if level < LEAST_INVITED:
            return "invited with less than Developer"
    return ""


def with_lookups(live: LiveState, missing: Iterable[Lookup], reader: Reader) -> LiveState:
    """Return live state with what planning lacks, each asked for once.

    Raises:
        ServiceError: one that `ENDS_A_RUN`.
    """
    wanted = list(missing)
    ids = look_up([lookup for lookup in wanted if isinstance(lookup, Reference)], reader)
    lists = sorted((lookup for lookup in wanted if isinstance(lookup, Vocabulary)), key=lambda lookup: lookup.path)
    names = ask_each(look_up_names, lists, reader)
    return replace(live, ids={**live.ids, **ids}, names={**live.names, **names})


def look_up_paths(targets: Iterable[Target], reader: Reader) -> dict[Target, str | Obstacle]:
    """Ask for the full path of each target that is given by ID, once each.

    Raises:
        ServiceError: one that `ENDS_A_RUN`.
    """
    ordered = sorted(targets, key=lambda target: target.order)
    return ask_each(_look_up_path, ordered, reader)


def _look_up_path(target: Target, reader: Reader) -> str | Obstacle:
    return _answer_or_obstacle(target, lambda: fetch_record(target, reader).path)


def is_off(value: Json) -> bool:
    """Return whether a value in a project's record says that a feature is switched off."""
    return value is False or value == "disabled"


def _answer_or_obstacle(where: Target, ask: Callable[[], Result]) -> Result | Obstacle:
    answer = answer_or_error(ask)
    return Obstacle(where.address, _reason(answer, where)) if isinstance(answer, ServiceError) else answer


def _reason(error: ServiceError, target: Target) -> str:
    if isinstance(error, NotFound):
        return f"not found, not visible to this token, or not served by this server ({target}: {error.reason})"
    return f"moved: {error.reason}" if isinstance(error, Moved) else str(error)


def _request(target: Target) -> str:
    return f"GET {target.url.rstrip('/')}"
