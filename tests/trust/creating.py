"""Targets that do not exist yet: what is declared, the plans for it, and what becomes of them."""

from collections.abc import Sequence
from typing import Any

from reconciler.engine.apply import ApplyOptions, Stop, apply_plan
from reconciler.engine.compare.selection import RunSelection
from reconciler.engine.plan import compared
from reconciler.engine.run import Run, Scope
from reconciler.manifests import Manifests
from reconciler.model.creation import Creation, Import
from reconciler.model.globs import Globs
from reconciler.model.plan import Plan, TargetPlan
from reconciler.model.state import DesiredState, DesiredTarget
from reconciler.model.targets import Level, Target
from tests.building import KINDS, section
from tests.engine_driver import EngineDriver

EMPTY = Creation("X", "private")


def from_github(repo_id: int = 42, **fields: Any) -> Creation:
    """Return the import of a repository of GitHub."""
    return Creation("X", source=Import("github", "GITHUB_TOKEN", {"repo_id": repo_id, **fields}))


def new(path: str, creation: Creation | None = EMPTY, **spec: Any) -> DesiredTarget:
    """Return a target with `create`: a group if its last part is in capital letters, else a project."""
    target = Target(Level.GROUP if path.rpartition("/")[2].isupper() else Level.PROJECT, path)
    sections = tuple(section(kind, value, target) for kind, value in spec.items())
    return DesiredTarget(target, sections, creation=creation)


def plan_of(engine: EngineDriver, *targets: DesiredTarget, besides: Sequence[DesiredTarget] = ()) -> Plan:
    """Make a plan, and forget the requests. Other targets may be declared that it leaves out."""
    ordered = sorted((*targets, *besides), key=lambda each: each.target.order)
    left_out = Globs([str(each.target.ref) for each in besides])
    scope = Scope(RunSelection(excluded=left_out))
    run = Run(engine.client, KINDS, Manifests(DesiredState(tuple(ordered), "digest")), scope=scope)
    plan = compared(run).plan
    engine.sandbox.clear_log()
    return plan


def applied(engine: EngineDriver, plan: Plan, **options: Any) -> list[TargetPlan]:
    """Apply a plan."""
    terms = ApplyOptions(deliver=engine.deliver, write_log=engine.write_log, **{"stop": Stop(), **options})
    return apply_plan(plan, engine.client, KINDS, terms)


def results(outcomes: list[TargetPlan]) -> list[str]:
    """Return what became of each change: of a creation with its ID, of others that were not made with the reason."""
    lines = []
    for each in (each for target in outcomes for each in target.outcomes):
        address = each.change.address
        number = f" ID {each.created.id}" if each.created and not address.section else ""
        what = str(address.target) if not address.section else f"{address.target} {address.title} {address.name or ''}"
        reason = f": {each.reason}" if each.reason else ""
        unsure = " (maybe done)" if each.unconfirmed else ""
        lines.append(f"{what.strip()} {each.status.words}{number}{unsure}{reason}")
    return lines
