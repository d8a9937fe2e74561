"""The projects that sets select.

`targets` asks for the `candidates` of a set and for the `chosen` among them. `Discovered` and `Shown` have the facts
that the service has shown; `engine.discovery` reads them.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from reconciler.manifests.diagnostics import Diagnostic
from reconciler.manifests.documents import Selection
from reconciler.manifests.layers import DeclaredSet, Layer
from reconciler.model.globs import Globs
from reconciler.model.obstacle import Obstacle
from reconciler.model.state import DesiredTarget
from reconciler.model.targets import Identity, Level, Target

Placed = TypeVar("Placed")

SOME = 3
"""Projects that a message names as examples."""


@dataclass(frozen=True, slots=True)
class Member:
    """A project of a group: its full path, and the fields that the service has shown.

    Attributes:
        path: the full path.
        archived: whether the project is archived.
        id: the numeric ID.
        off: the keys of the features that are switched off.
        is_empty: whether nothing was pushed into the repository yet.
        default_branch: the name of the default branch; None where the list does not show it. An empty repository has no
            such branch, although the service shows a name.
    """

    path: str
    archived: bool = False
    id: int | None = None
    off: frozenset[str] = frozenset()
    is_empty: bool = False
    default_branch: str | None = None


REPOSITORY = "repository_access_level"
"""The key of a project's record that shows whether it has a repository, and so a default branch."""


def no_default_branch(target: Target, *, is_off: bool) -> Obstacle:
    """Return the obstacle that the service shows no default branch of a project.

    Args:
        target: the project.
        is_off: whether its repository is switched off.
    """
    if is_off:
        reason, remedy = "it has no default branch: its repository is switched off", "switch it on"
        return Obstacle(target.address, reason, remedy, effect="not applicable")
    reason = "its default branch is not shown to this token: that takes the role Reporter there"
    return Obstacle(target.address, reason, "use the token of a Reporter or more")


NO_SUCH_GROUP = "no such group"
"""The cause of an obstacle to listing the projects of a group that does not exist, or that the token cannot see."""

Discovered = Mapping[str, Iterable[Member] | Obstacle]
"""By group, as sets name it: the projects of the group and its subgroups, or the obstacle to listing them."""


Branches = Mapping[Identity, str | Obstacle]
"""By `Target.identity` of each project whose record was read: the default branch, or the obstacle to knowing it."""

NO_PATHS: Mapping[Target, str] = MappingProxyType({})
NO_BRANCHES: Branches = MappingProxyType({})


class Shown(NamedTuple):
    """Facts about the targets of manifests that the service has shown.

    Attributes:
        discovered: the projects of groups; None before the discovery.
        paths: the known full paths of targets named by ID.
        branches: the default branches of projects that no list shows.
    """

    discovered: Discovered | None = None
    paths: Mapping[Target, str] = NO_PATHS
    branches: Branches = NO_BRANCHES


NOTHING_SHOWN = Shown()


def projects_by_path(discovered: Discovered | None) -> dict[str, Member]:
    """Return each discovered project with an ID, by its path in lower case."""
    groups = [() if isinstance(projects, Obstacle) else projects for projects in (discovered or {}).values()]
    return {each.path.casefold(): each for members in groups for each in members if each.id is not None}


def archived_left_out(select: Selection, discovered: Discovered) -> Iterator[str]:
    """Yield the paths of the archived projects that a set would select if they were not archived."""
    projects = discovered[select.group] if select.group and not select.archived else ()
    archived = () if isinstance(projects, Obstacle) else [each.path for each in projects if each.archived]
    yield from chosen(select, archived)


def by_group(placed_projects: Iterable[Placed], path_of: Callable[[Placed], str]) -> dict[str, list[Placed]]:
    """Return the projects inside of each group and its subgroups, by the group's path in lower case.

    Args:
        placed_projects: projects, or their paths.
        path_of: returns the path of a project.
    """
    groups: dict[str, list[Placed]] = {}
    for project in placed_projects:
        *above, _ = path_of(project).casefold().split("/")
        for group in accumulate(above, "{}/{}".format):
            groups.setdefault(group, []).append(project)
    return groups


def groups_above(path: str, groups: Collection[str]) -> list[str]:
    """Return the groups, in lower case, that have a path or contain it."""
    return [above for above in accumulate(path.casefold().split("/"), "{}/{}".format) if above in groups]


def candidates(select: Selection, discovered: Discovered | None, others: Mapping[str, Sequence[str]]) -> Sequence[str]:
    """Return the paths of the projects among which the globs of a set select.

    Args:
        select: the `select` of the set.
        discovered: the projects of groups; None before the discovery.
        others: projects that no list needs to show, by the groups that contain them: see `by_group`. Before the
            discovery, these are the candidates.
    """
    if not select.group:
        return select.projects
    unlisted_paths = others.get(select.group.casefold(), ())
    if discovered is None:
        return unlisted_paths
    projects = discovered[select.group]
    # an unknown list selects nobody, not even projects with documents: see `UnlistedSet`
    if isinstance(projects, Obstacle):
        return ()
    shown = list(projects)
    shown_paths = {member.path.casefold() for member in shown}
    missing = [path for path in unlisted_paths if path.casefold() not in shown_paths]
    return [member.path for member in shown if select.archived or not member.archived] + missing


def chosen(select: Selection, paths: Iterable[str]) -> list[str]:
    """Return the paths that match the globs of a set."""
    included, excluded = Globs(select.include), Globs(select.exclude)
    return [path for path in paths if included.match(path) and not excluded.match(path)]


@dataclass(frozen=True, slots=True)
class UnlistedSet:
    """A set whose group cannot be listed, so that its projects are unknown.

    Attributes:
        obstacle: the obstacle to listing the projects, at the address of the group.
        origin: the place where the set names the group, as `path:line`.
        layers: the layers of the set.
        select: the `select` of the set.
    """

    obstacle: Obstacle
    origin: str
    layers: tuple[Layer, ...]
    select: Selection

    def may_select(self, target: DesiredTarget) -> bool:
        """Return whether the set may select a target."""
        path = target.path or f"{self.select.group}/"
        inside = path.casefold().startswith(f"{self.select.group.casefold()}/")
        is_chosen = target.path is None or bool(chosen(self.select, [path]))
        return target.target.level is Level.PROJECT and inside and is_chosen


def idle(
    declared_set: DeclaredSet, offered: Sequence[str], selected: Sequence[str], discovered: Discovered | None
) -> Iterator[Diagnostic]:
    """Yield a warning for each glob of a set that includes no project, or if the set selects none.

    Archived projects count as included although the set omits them: they may be restored.

    Args:
        declared_set: the set.
        offered: see `candidates`.
        selected: the candidates that match.
        discovered: the projects of groups; None before the discovery.
    """
    select = declared_set.select
    if discovered is None and select.group:
        return
    projects = (discovered or {}).get(select.group)
    # an archived project may be unarchived tomorrow: the glob is right
    archived = [] if discovered is None else [*archived_left_out(select, discovered)]
    known = [*offered, *archived]
    folded = {path.casefold() for path in known}
    some = ", ".join(offered[:SOME]) + (", ..." if len(offered) > SOME else "")
    unmatched = [
        Diagnostic(
            ("select", "include", index),
            f"`{glob}` includes no project: correct or remove it; there are {some}",
            "warning",
        )
        for index, glob in enumerate(select.include if offered else ())
        if not Globs([glob]).match_any(known, folded)
    ]
    yield from unmatched
    if not (unmatched or selected or archived or isinstance(projects, Obstacle)):
        message = f"{declared_set.title} matches no project: correct `select`, or remove the set"
        yield Diagnostic(("select",), message, "warning", at_key=True)
