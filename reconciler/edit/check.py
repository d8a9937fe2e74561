"""The check that manifests equal the live state: the plan that they would lead to, without another request."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from reconciler.edit.completion import readable
from reconciler.edit.sections import quoted
from reconciler.edit.targets import ResolvedTarget, branches_of, discovered_in, paths_of
from reconciler.engine.compare.planner import plan_target
from reconciler.manifests import Member, read_contents
from reconciler.model.item import Update
from reconciler.model.kind import Kinds
from reconciler.model.plan import TargetPlan
from reconciler.model.state import LiveState


def disagreements(
    texts: Mapping[Path, str],
    resolved_targets: Sequence[ResolvedTarget],
    live: LiveState,
    kinds: Kinds,
    members: Mapping[str, Sequence[Member]],
) -> Iterator[str]:
    """Yield every change, problem and lookup that a plan of some targets would still have.

    Args:
        texts: the manifests, by path.
        resolved_targets: the targets to check.
        live: their live state.
        kinds: all kinds.
        members: by group, the projects below it; sets apply to these, and to projects with documents.

    Raises:
        ManifestErrors: the manifests have errors.
    """
    manifests = read_contents({str(path): text.encode() for path, text in texts.items()}, kinds)
    desired = manifests.with_discovered(
        discovered_in(manifests, members), paths_of(resolved_targets), branches_of(resolved_targets)
    ).desired
    by_identity = {target.target.identity: target for target in desired.targets}
    for resolved in resolved_targets:
        for identity in resolved.identities:
            if identity in by_identity:
                wanted = by_identity[identity]
                sections = (replace(section, target=resolved.target) for section in wanted.sections)
                wanted = replace(wanted, target=resolved.target, sections=tuple(readable(sections, live)))
                plan = plan_target(wanted, live, kinds, timedelta())
                yield from _differences(plan)
                for lookup in sorted(map(str, plan.lookups)):
                    yield f"{resolved.target}: a plan would still look up {lookup}"


def _differences(plan: TargetPlan) -> Iterator[str]:
    for section in map(plan.only, ([name] for name in plan.sections)):
        for change in section.changes:
            address = change.address
            changed_object = f"{address.title} {quoted(address.name)}" if address.name is not None else address.title
            fields = f" ({', '.join(sorted(change.after))})" if isinstance(change, Update) else ""
            yield f"{plan.target}: a plan would still {change.action} {changed_object}{fields}"
        for problem in section.problems:
            yield f"{plan.target}: a plan would still have a problem with {problem.address.title}: {problem.reason}"
