"""Plans of what does not exist yet, made by hand: the creations, and what is declared of it, planned against nothing."""

from collections.abc import Iterable
from typing import Any

from reconciler.model.creation import Creation, Import, Namespace
from reconciler.model.endpoints import Collection
from reconciler.model.plan import Plan, SectionPlan, TargetPlan
from reconciler.model.resource import Found
from reconciler.model.state import LivePart, LiveState, Reference, Section
from reconciler.model.targets import Level, Target
from reconciler.planning.creation import creation_of
from reconciler.planning.planner import plan_section
from tests.building import KINDS, section

PRIVATE = Creation("X", "private")


def from_github(token_env: str = "GITHUB_TOKEN", **fields: Any) -> Creation:
    """Return the import of a repository of GitHub."""
    return Creation("X", source=Import("github", token_env, {"repo_id": 42, **fields}))


def new(
    path: str, creation: Creation = PRIVATE, spec: dict[str, Any] | None = None, parent: int | None = None
) -> TargetPlan:
    """Return the plan of a target that does not exist: a group if its last part is in capital letters.

    Args:
        path: of the target.
        creation: how to create it.
        spec: what is declared of it.
        parent: the ID of the group above; None where the run creates that.
    """
    name = path.rpartition("/")[2]
    target = Target(Level.GROUP if name.isupper() else Level.PROJECT, path)
    create = creation_of(target, creation, Namespace(path.rpartition("/")[0], parent))
    sections = [SectionPlan("", changes=(create,))]
    sections += [_against_nothing(section(kind, value, target)) for kind, value in (spec or {}).items()]
    return TargetPlan(target, tuple(sections), importing=creation.source is not None)


def plan_of(*targets: TargetPlan) -> Plan:
    """Return a plan."""
    return Plan(tuple(sorted(targets, key=lambda each: each.target.order)))


def _against_nothing(declared: Section) -> SectionPlan:
    parts: dict[tuple[Target, str, str], LivePart] = {}
    for name in declared.wanted:
        part = KINDS[declared.kind].part(name)
        found: LivePart = () if isinstance(part, Collection) else Found(part.model())
        parts[declared.target, declared.kind, name] = found
    live, missing = LiveState(parts, {}), frozenset[Any]()
    planned, missing = plan_section(declared, live, KINDS)
    while missing:
        live = LiveState(parts, {each: 100 for each in missing if isinstance(each, Reference)})
        planned, missing = plan_section(declared, live, KINDS)
    return planned


def created(targets: Iterable[dict[str, Any]]) -> list[str]:
    """Return the paths of groups or projects of a state."""
    return [each["path"] for each in targets]
