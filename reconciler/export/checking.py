"""Whether manifests agree with what was read: the plan that would come of them, without another request."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from reconciler.diff import Fields
from reconciler.export.sections import quoted
from reconciler.export.targets import Known
from reconciler.kind import Kinds
from reconciler.manifests import read_contents
from reconciler.plan import Create, Delete, TargetPlan, Update
from reconciler.planner import plan_target
from reconciler.resource import Wanted
from reconciler.state import LiveState, Section, Target, Unreadable


def disagreements(texts: Mapping[Path, str], targets: Sequence[Known], live: LiveState, kinds: Kinds) -> Iterator[str]:
    """Yield what a plan would change, or have a problem with, in what was read of some targets.

    Raises:
        ManifestErrors: the manifests are not in order.
    """
    desired = read_contents({str(path): text.encode() for path, text in texts.items()}, kinds).desired
    by_identity = {target.scope.identity: target for target in desired.targets}
    for known in targets:
        for identity in (known.scope.identity, (known.scope.level, known.number)):
            if identity in by_identity:
                target = _as_read(by_identity[identity], known, live)
                yield from _told(plan_target(target, live, kinds, timedelta())[0])


def _as_read(target: Target, known: Known, live: LiveState) -> Target:
    """Return a target as it was called when it was read, with what could be read of it."""
    sections = []
    for section in target.sections:
        wanted: dict[str, Wanted] = {}
        for name, value in section.wanted.items():
            part = live.parts.get((known.scope, section.kind, name), Unreadable(""))
            if not isinstance(part, Unreadable):
                wanted[name] = value
        sections.append(Section(known.scope, section.kind, wanted, section.prune))
    return replace(target, scope=known.scope, sections=tuple(sections))


def _told(plan: TargetPlan) -> Iterator[str]:
    for section in plan.sections:
        for change in section.changes:
            address = change.address
            what = f"{address.title} {quoted(address.name)}" if address.name is not None else address.title
            match change:
                case Create():
                    yield f"{plan.scope}: a plan would still create {what}"
                case Delete():
                    yield f"{plan.scope}: a plan would still delete {what}"
                case Update(after=after):
                    yield f"{plan.scope}: a plan would still change {what}{_fields(after)}"
        for problem in section.problems:
            yield f"{plan.scope}: a plan would still have a problem with {problem.address.title}: {problem.reason}"


def _fields(after: Fields) -> str:
    return f" ({', '.join(sorted(after))})" if after else ""
