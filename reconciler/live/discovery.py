"""Discovery: the groups that sets name to the projects below them, and the paths of targets that are given by ID.

Each group is listed once a run. What comes of it goes to the manifests, and the IDs that come along go to the planner.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from reconciler.errors import BadAnswer, NotFound, ServiceError
from reconciler.live.read import UNEXPECTED, answer_or_error, ask_each
from reconciler.live.records import is_the_other, look_up_paths
from reconciler.manifests import Hidden, Member
from reconciler.model.protocols import Json, Reader
from reconciler.model.state import Reference, Unknown
from reconciler.model.targets import Level, Target

QUERY = "include_subgroups=true&with_shared=false{archived}&order_by=id&sort=asc"


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


def discover(
    groups: Mapping[str, bool], reader: Reader, concurrency: int, pathless: Iterable[Target] = ()
) -> Discovery:
    """List the projects of some groups (deployed behaviour, section 7.8), side by side, each group once.

    Args:
        groups: full paths, and whether archived projects are to be among what is found.
        reader: the service.
        concurrency: how many requests at once.
        pathless: targets given by ID whose paths are needed; each that no list shows is asked for.

    Raises:
        ServiceError: one that `ENDS_A_RUN`. Any other failure makes a group `Hidden`.
    """
    archived: dict[str, bool] = {}
    for group, wanted in groups.items():
        archived[group.casefold()] = archived.get(group.casefold(), False) or wanted

    def ask(group: str) -> tuple[Member, ...] | Hidden:
        return _list(group, reader, archived=archived[group])

    found = ask_each(ask, archived, concurrency)
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


def _list(group: str, reader: Reader, *, archived: bool) -> tuple[Member, ...] | Hidden:
    target = Target(Level.GROUP, group)
    path = f"{target.url}projects"
    query = QUERY.format(archived="" if archived else "&archived=false")
    answer = answer_or_error(lambda: tuple(_member(entry, path) for entry in reader.pages(f"{path}?{query}")))
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


def _member(entry: Json, path: str) -> Member:
    match entry:
        case {"path_with_namespace": str(full_path), "id": int(number)}:
            return Member(full_path, bool(entry.get("archived")), number)
    raise BadAnswer(f"GET {path}", UNEXPECTED)
