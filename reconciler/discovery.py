"""Discovery: the groups that sets name to the projects below them. Each group is listed once a run.

What comes of it goes to the manifests as `Members`, and the IDs that come along go to the planner.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import index

from reconciler.address import Level, Scope
from reconciler.errors import NotFound, ServiceError
from reconciler.live import ENDS_A_RUN, side_by_side
from reconciler.manifests import Hidden, Member
from reconciler.state import Reference
from reconciler.wire import Json, Reader

QUERY = "include_subgroups=true&with_shared=false{archived}&order_by=id&sort=asc"


@dataclass(frozen=True, slots=True)
class Discovery:
    """What the groups hold.

    Attributes:
        groups: by group, as it was asked for, its projects and those of its subgroups; or why nobody can tell.
        ids: the numeric ID of each project, by its path in lower case.
    """

    groups: Mapping[str, tuple[Member, ...] | Hidden]
    ids: Mapping[Reference, int]


def discover(groups: Mapping[str, bool], reader: Reader, concurrency: int) -> Discovery:
    """List the projects of some groups (deployed behaviour, section 7.8), side by side, each group once.

    Args:
        groups: full paths, and whether archived projects are to be among what is found.
        reader: the service.
        concurrency: how many requests at once.

    Raises:
        ServiceError: one that `ENDS_A_RUN`. Any other failure makes a group `Hidden`.
    """
    archived: dict[str, bool] = {}
    for group, wanted in groups.items():
        archived[group.casefold()] = archived.get(group.casefold(), False) or wanted

    def ask(group: str) -> "tuple[_Project, ...] | Hidden":
        return _list(group, reader, archived=archived[group])

    found = dict(zip(archived, side_by_side(ask, archived, concurrency), strict=True))
    ids = {Reference(Level.PROJECT, each.path.casefold()): each.id for each in _all(found.values())}
    return Discovery({group: _members(found[group.casefold()]) for group in groups}, ids)


@dataclass(frozen=True, slots=True)
class _Project:
    id: int
    path: str
    archived: bool


def _list(group: str, reader: Reader, *, archived: bool) -> tuple[_Project, ...] | Hidden:
    path = f"{Scope(Level.GROUP, group).url}projects"
    query = QUERY.format(archived="" if archived else "&archived=false")
    try:
        return tuple(_project(entry) for entry in reader.pages(f"{path}?{query}"))
    except ENDS_A_RUN:
        raise
    except NotFound as error:
        return Hidden(
            f"the projects of group {group} cannot be listed (GET {path}: {error.reason}): there is no such group, or "
            "none this token may see; if the service cannot list the projects of any group, list them here, as "
            "`projects` instead of `group`",
            absent=True,
        )
    except ServiceError as error:
        return Hidden(f"the projects of group {group} cannot be listed (GET {path}: {error.reason})")
    except (KeyError, TypeError, ValueError):
        return Hidden(
            f"the projects of group {group} cannot be listed (GET {path}: the answer is not what the specification "
            "promises)"
        )


def _project(entry: Json) -> _Project:
    path = entry["path_with_namespace"]
    if not isinstance(path, str):
        raise TypeError(path)
    return _Project(index(entry["id"]), path, bool(entry.get("archived")))


def _members(found: tuple[_Project, ...] | Hidden) -> tuple[Member, ...] | Hidden:
    return found if isinstance(found, Hidden) else tuple(Member(each.path, each.archived) for each in found)


def _all(found: Iterable[tuple[_Project, ...] | Hidden]) -> Iterable[_Project]:
    return (project for projects in found if not isinstance(projects, Hidden) for project in projects)
