"""Whether manifests agree with what was read: the plan that would come of them, without another request."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from reconciler.export.sections import quoted
from reconciler.export.targets import Known, paths_of
from reconciler.manifests import read_contents
from reconciler.model.kind import Kinds
from reconciler.model.plan import Change, Create, Delete, TargetPlan, Update
from reconciler.model.state import DesiredTarget, LiveState, Section, Unreadable
from reconciler.planning.planner import plan_target

DOES: dict[type[Change], str] = {Create: "create", Delete: "delete", Update: "change"}


def disagreements(texts: Mapping[Path, str], targets: Sequence[Known], live: LiveState, kinds: Kinds) -> Iterator[str]:
    """Yield what a plan would change, or have a problem with, in what was read of some targets.

    Raises:
        ManifestErrors: the manifests are not in order.
    """
    manifests = read_contents({str(path): text.encode() for path, text in texts.items()}, kinds)
    desired = manifests.with_discovered(None, paths_of(targets)).desired
    by_identity = {target.target.identity: target for target in desired.targets}
    for known in targets:
        for identity in (known.target.identity, (known.target.level, known.number)):
            if identity in by_identity:
                target = _as_read(by_identity[identity], known, live)
                plan, unknown = plan_target(target, live, kinds, timedelta())
                yield from _told(plan)
                yield from (
                    f"{known.target}: a plan would still look up {each.level} {each.path}"
                    for each in sorted(unknown, key=str)
                )


def _as_read(target: DesiredTarget, known: Known, live: LiveState) -> DesiredTarget:
    """Return a target as it was called when it was read, with what could be read of it."""
    read = {address for address, part in live.parts.items() if not isinstance(part, Unreadable)}
    sections = tuple(
        Section(
            known.target,
            section.kind,
            {name: wanted for name, wanted in section.wanted.items() if (known.target, section.kind, name) in read},
            section.prune,
        )
        for section in target.sections
    )
    return replace(target, target=known.target, sections=sections)


def _told(plan: TargetPlan) -> Iterator[str]:
    for section in plan.sections:
        for change in section.changes:
            address = change.address
            what = f"{address.title} {quoted(address.name)}" if address.name is not None else address.title
            fields = f" ({', '.join(sorted(change.after))})" if isinstance(change, Update) else ""
            yield f"{plan.target}: a plan would still {DOES[type(change)]} {what}{fields}"
        for problem in section.problems:
            yield f"{plan.target}: a plan would still have a problem with {problem.address.title}: {problem.reason}"
