"""Groups and projects as such: their IDs, their paths, whether they are there at all, and the projects of a group.

Each group that a set names is listed once a run. What comes of it goes to the manifests, and the IDs that come along
go to the planner.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from reconciler.errors import BadAnswer, Moved, NotFound, ServiceError
from reconciler.live.read import UNEXPECTED, answer_or_error, ask_each, side_by_side
from reconciler.manifests import Hidden, Member
from reconciler.model.protocols import Concurrency, Json, Lister, Reader, Spread
from reconciler.model.state import LiveState, Lookup, Reference, Unknown, Vocabulary
from reconciler.model.targets import Identity, Level, Target

OTHER = {Level.GROUP: Level.PROJECT, Level.PROJECT: Level.GROUP}
"""For which each is easily taken."""

QUERY = "include_subgroups=true&with_shared=false{more}&order_by=id&sort=asc"
"""Of the list of a group's projects."""
UNARCHIVED = "&archived=false"
SIMPLE = "&simple=true"
"""Asks for records without what is switched off and archived: a tenth of the size, for half the work."""

Value = TypeVar("Value", int, str)
DOOMED = re.compile(r"-deletion_scheduled-[0-9]+$")
"""The end of the path of a project whose deletion is scheduled: the service renames it, and shows it in lists."""

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
        return self._field("full_path" if self.target.level is Level.GROUP else "path_with_namespace", str)

    def _field(self, name: str, kind: type[Value]) -> Value:
        value = self.fields.get(name)
        if type(value) is not kind:
            raise BadAnswer(_request(self.target), UNEXPECTED)
        return value


@dataclass(frozen=True, slots=True)
class Discovery:
    """The projects of groups, and IDs and paths that came along.

    Attributes:
        groups: by group, as it was asked for, its projects and those of its subgroups; or why these are unknown.
        ids: the numeric ID of each target, by its path in lower case.
        paths: the full paths of the targets that were asked for by ID.
        unknown: those whose paths are unknown, each with the reason.
    """

    groups: Mapping[str, tuple[Member, ...] | Hidden]
    ids: Mapping[Reference, int]
    paths: Mapping[Target, str] = field(default_factory=dict)
    unknown: Mapping[Target, str] = field(default_factory=dict)


def fetch_record(target: Target, reader: Reader) -> TargetRecord:
    """Ask for the record of a group or a project; of a group, without its projects.

    Raises:
        ServiceError: there is no such record, or none that the token may see.
    """
    record = reader.get(target.url.rstrip("/") + ("?with_projects=false" if target.level is Level.GROUP else ""))
    if not isinstance(record, dict):
        raise BadAnswer(_request(target), UNEXPECTED)
    return TargetRecord(target, record)


def is_the_other(target: Target, reader: Reader) -> bool:
    """Return whether a project that is not found is a group, or a group that is not found a project.

    Raises:
        ServiceError: one that `ENDS_A_RUN`.
    """
    other = Target(OTHER[target.level], target.ref)
    if isinstance(target.ref, str) and other.level is Level.PROJECT and "/" not in target.ref:
        return False
    return isinstance(answer_or_error(lambda: fetch_record(other, reader)), TargetRecord)


def look_up_id(reference: Reference, reader: Reader) -> int | Unknown:
    """Ask for the numeric ID of a path.

    Raises:
        ServiceError: one that `ENDS_A_RUN`.
    """
    target = Target(reference.level, reference.path)
    answer = answer_or_error(lambda: fetch_record(target, reader).id)
    if isinstance(answer, NotFound):
        if is_the_other(target, reader):
            other = OTHER[target.level]
            return Unknown(f"this is a {other}, not a {target.level}", f"list it under `{other}s`")
        return Unknown(_reason(answer), "correct the path, or use a token that can see it")
    return Unknown(_reason(answer)) if isinstance(answer, ServiceError) else answer


def look_up(
    references: Iterable[Reference], reader: Reader, concurrency: Concurrency
) -> dict[Reference, int | Unknown]:
    """Ask for the numeric ID of each path, once each.

    Raises:
        ServiceError: one that `ENDS_A_RUN`.
    """
    ordered = sorted(set(references), key=lambda reference: (reference.level, reference.path))
    return ask_each(lambda reference: look_up_id(reference, reader), ordered, concurrency)


def look_up_names(vocabulary: Vocabulary, reader: Reader) -> frozenset[str] | Unknown:
    """Ask for the names in a list.

    Raises:
        ServiceError: one that `ENDS_A_RUN`.
    """

    def ask() -> frozenset[str]:
        entries = reader.pages(vocabulary.path)
        names = {entry.get("name") for entry in entries if isinstance(entry, dict)}
        return frozenset(name for name in names if isinstance(name, str))

    return _answer_or_unknown(ask)


def with_lookups(live: LiveState, missing: Iterable[Lookup], reader: Reader, concurrency: Concurrency) -> LiveState:
    """Return live state with what planning lacks, each asked for once.

    Raises:
        ServiceError: one that `ENDS_A_RUN`.
    """
    wanted = list(missing)
    ids = look_up([each for each in wanted if isinstance(each, Reference)], reader, concurrency)
    lists = sorted((each for each in wanted if isinstance(each, Vocabulary)), key=lambda each: each.path)
    names = ask_each(lambda vocabulary: look_up_names(vocabulary, reader), lists, concurrency)
    return replace(live, ids={**live.ids, **ids}, names={**live.names, **names})


def look_up_paths(targets: Iterable[Target], reader: Reader, concurrency: Concurrency) -> dict[Target, str | Unknown]:
    """Ask for the full path of each target that is given by ID, once each.

    Raises:
        ServiceError: one that `ENDS_A_RUN`.
    """
    ordered = sorted(targets, key=lambda target: target.order)
    return ask_each(lambda target: _answer_or_unknown(lambda: fetch_record(target, reader).path), ordered, concurrency)


def current_names(
    targets: Iterable[Target], reader: Reader, concurrency: Concurrency, known: Mapping[Reference, int]
) -> dict[Target, frozenset[Identity]]:
    """Return all that each target is called now; nothing for one that is not there, or not visible.

    A target that no manifest mentions any more may be gone, renamed, or given by ID instead of path now: a rename must
    not be taken for a removal.

    Args:
        targets: each is asked for once at most.
        reader: the service.
        concurrency: how many requests at once.
        known: the numeric IDs of projects that need not be asked for.

    Raises:
        ServiceError: one that `ENDS_A_RUN`. After any other failure a target is called what it was.
    """
    others: dict[Identity, str | int] = {
        (reference.level, number): reference.path for reference, number in known.items()
    }
    others |= {(reference.level, reference.path): number for reference, number in known.items()}

    def ask(target: Target) -> frozenset[Identity]:
        if target.ref is None:
            return frozenset({target.identity})
        if target.identity in others:
            return frozenset({target.identity, Target(target.level, others[target.identity]).identity})
        answer = answer_or_error(lambda: _names(fetch_record(target, reader)))
        if isinstance(answer, NotFound):
            return frozenset()
        return frozenset({target.identity}) if isinstance(answer, ServiceError) else answer

    return ask_each(ask, targets, concurrency)


@dataclass(frozen=True, slots=True)
class Listing:
    """What a run needs to know of the projects of a group.

    Attributes:
        archived: whether archived projects are to be among them.
        switches: the keys of a project's record that tell whether a feature is on.
    """

    archived: bool = False
    switches: frozenset[str] = frozenset()

    @property
    def query(self) -> str:
        """The query of the list: archived projects are told from others by whole records only."""
        return QUERY.format(more="" if self.archived else UNARCHIVED if self.switches else SIMPLE + UNARCHIVED)

    def __or__(self, other: "Listing") -> "Listing":
        """Return what serves both."""
        return Listing(self.archived or other.archived, self.switches | other.switches)


def discover(
    groups: Mapping[str, Listing], reader: Lister, concurrency: Concurrency, pathless: Iterable[Target] = ()
) -> Discovery:
    """List the projects of some groups (deployed behaviour, section 7.8), side by side, each group once.

    Args:
        groups: what is needed of each, by full path.
        reader: the service.
        concurrency: how many requests at once.
        pathless: targets given by ID whose paths are needed; each that no list shows is asked for.

    Raises:
        ServiceError: one that `ENDS_A_RUN`. Any other failure makes a group `Hidden`.
    """
    wanted: dict[str, Listing] = {}
    for group, listing in groups.items():
        wanted[group.casefold()] = wanted.get(group.casefold(), listing) | listing

    def spread(ask: Callable[[str], Result], pages: Sequence[str]) -> list[Result]:
        return side_by_side(ask, pages, concurrency)

    found = ask_each(lambda group: _list(group, wanted[group], reader, spread), wanted, concurrency)
    ids = {
        Reference(Level.PROJECT, each.path.casefold()): each.id
        for members in found.values()
        if not isinstance(members, Hidden)
        for each in members
        if each.id is not None
    }
    listed = {Target(Level.PROJECT, number) for number in ids.values()}
    asked = look_up_paths({*pathless} - listed, reader, concurrency)
    paths = {target: path for target, path in asked.items() if isinstance(path, str)}
    ids |= {
        Reference(each.level, path.casefold()): each.ref for each, path in paths.items() if isinstance(each.ref, int)
    }
    unknown = {target: path.reason for target, path in asked.items() if isinstance(path, Unknown)}
    return Discovery({group: found[group.casefold()] for group in groups}, ids, paths, unknown)


def _list(group: str, listing: Listing, reader: Lister, spread: Spread) -> tuple[Member, ...] | Hidden:
    target = Target(Level.GROUP, group)
    path = f"{target.url}projects"

    def ask() -> tuple[Member, ...]:
        members = reader.gather(f"{path}?{listing.query}", lambda entry: _member(entry, path, listing.switches), spread)
        return tuple(each for each in members if not DOOMED.search(each.path))

    answer = answer_or_error(ask)
    if not isinstance(answer, ServiceError):
        return answer
    reason = f"the projects of group {group} cannot be listed (GET {path}: {answer.reason})"
    if not isinstance(answer, NotFound):
        return Hidden(reason)
    if is_the_other(target, reader):
        return Hidden(f"{group} is a project, not a group: list it here, as `projects: [{group}]`", absent=True)
    return Hidden(
        f"{reason}: there is no such group, or none this token may see; if the service cannot list the projects of any "
        "group, list them here, as `projects` instead of `group`",
        absent=True,
    )


def is_off(value: Json) -> bool:
    """Return whether a value in a project's record says that a feature is switched off."""
    return value is False or value == "disabled"


def _member(entry: Json, path: str, switches: frozenset[str]) -> Member:
    match entry:
        case {"path_with_namespace": str(full_path), "id": int(number)}:
            off = frozenset(key for key in switches if is_off(entry.get(key)))
            return Member(full_path, bool(entry.get("archived")), number, off)
    raise BadAnswer(f"GET {path}", UNEXPECTED)


def _names(record: TargetRecord) -> frozenset[Identity]:
    level = record.target.level
    return frozenset({record.target.identity, Target(level, record.id).identity, Target(level, record.path).identity})


def _answer_or_unknown(ask: Callable[[], Result]) -> Result | Unknown:
    answer = answer_or_error(ask)
    return Unknown(_reason(answer)) if isinstance(answer, ServiceError) else answer


def _reason(error: ServiceError) -> str:
    if isinstance(error, NotFound):
        return f"not found, not visible to this token, or not served by this server ({error})"
    return f"moved: {error.reason}" if isinstance(error, Moved) else str(error)


def _request(target: Target) -> str:
    return f"GET {target.url.rstrip('/')}"
