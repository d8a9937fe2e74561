"""Metrics in Prometheus' text format, for the node exporter's textfile collector.

Plans and applies have metrics of different names, so that the files of both can lie side by side. A series is there
with 0 where there is nothing to tell, so that what has been mended falls to 0 and does not vanish.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from reconciler.apply import Status
from reconciler.documents.plan_file import SavedPlan
from reconciler.documents.report import Report, TargetReport
from reconciler.model.plan import ACTIONS, Plan, TargetPlan
from reconciler.model.targets import Target
from reconciler.planning.selection import Shard
from reconciler.render import Style
from reconciler.system.terminal import escaped

Labels = tuple[tuple[str, str], ...]
"""Names and values of labels without special characters, in the order in which they are written."""

Samples = Mapping[Labels, float]


def plan(saved: SavedPlan, _style: Style) -> str:
    """Return the drift, the problems and the cost of a plan."""
    problems = any(saved.plan.problems)
    return _written(
        _metric("reconciler_plan_changes", "Objects that differ from the manifests.", _drift(saved.plan)),
        _metric("reconciler_plan_problems", "What is wanted and cannot be planned.", _problems(saved.plan.targets)),
        _metric("reconciler_plan_unmanaged_objects", "Live objects no manifest mentions.", _unmanaged(saved.plan)),
        _metric("reconciler_plan_refusals", "Reasons why apply will refuse the plan.", _one(len(saved.refusals))),
        _metric("reconciler_plan_targets", "Targets that were planned.", _targets(saved.plan)),
        _metric("reconciler_plan_requests_to_apply", "Writes the changes take.", _one(saved.plan.cost)),
        _metric("reconciler_plan_requests_made", "Reads it took to plan.", _one(saved.requests_made)),
        *_shard("reconciler_plan", saved.shard),
        *_times("reconciler_plan", saved.created_at, succeeded=not problems),
    )


def report(done: Report, _style: Style) -> str:
    """Return what became of the changes of an apply, and what it took."""
    duration = (done.finished_at - done.started_at).total_seconds()
    requests: Samples = {(("kind", "read"),): done.requests.reads, (("kind", "write"),): done.requests.writes}
    return _written(
        _metric("reconciler_apply_outcomes", "Changes by what became of them.", _outcomes(done)),
        _metric("reconciler_apply_problems", "What is wanted and could not be planned.", _problems(done.targets)),
        _metric("reconciler_apply_requests_made", "Requests made by the apply.", requests),
        _metric("reconciler_apply_waited_seconds", "How long the apply waited, by reason.", _waited(done)),
        _metric("reconciler_apply_duration_seconds", "How long the apply took.", _one(duration)),
        *_shard("reconciler_apply", done.shard),
        *_times("reconciler_apply", done.finished_at, succeeded=done.complete),
    )


def _drift(plan: Plan) -> Counter[Labels]:
    counts = Counter[Labels]()
    for target in plan.targets:
        for section in target.sections:
            place = _place(target.target, section.section)
            counts.update({(*place, ("action", action)): 0 for action in ACTIONS})
            counts.update((*place, ("action", change.action)) for change in section.changes)
    return counts


def _problems(targets: Iterable[TargetPlan | TargetReport]) -> Counter[Labels]:
    counts = Counter[Labels]()
    for target in targets:
        for section in target.sections:
            counts[_place(target.target, section.section)] += len(section.problems)
    return counts


def _unmanaged(plan: Plan) -> Counter[Labels]:
    counts = Counter[Labels]()
    for target in plan.targets:
        for section in target.sections:
            counts[_place(target.target, section.section)] += len(section.unmanaged)
    return counts


def _targets(plan: Plan) -> Counter[Labels]:
    return Counter(_group(target.target) for target in plan.targets)


def _outcomes(done: Report) -> Counter[Labels]:
    counts = Counter[Labels]()
    for target in done.targets:
        for outcome in target.outcomes:
            place = _place(target.target, outcome.change.address.section)
            counts.update({(*place, ("status", _name(status))): 0 for status in Status})
            counts[*place, ("status", _name(outcome.status))] += 1
    return counts


def _waited(done: Report) -> Samples:
    seconds = dict[Labels, float]()
    for reason, each in done.requests.waited.items():
        labels = (("reason", escaped(reason)),)
        seconds[labels] = seconds.get(labels, 0) + each
    return seconds


def _name(status: Status) -> str:
    return status.name.lower()


def _one(number: float) -> Samples:
    return {(): number}


def _group(target: Target) -> Labels:
    """The level of a target, and the group at the top of its path; none for the user and for numeric IDs."""
    group = target.ref.partition("/")[0] if isinstance(target.ref, str) else ""
    return ("level", str(target.level)), ("group", escaped(group))


def _place(target: Target, section: str) -> Labels:
    return *_group(target), ("section", escaped(section))


def _shard(prefix: str, shard: Shard | None) -> Iterator[Sequence[str]]:
    """Which part of the targets this is about, where it is not about all of them."""
    if shard is not None:
        yield _metric(f"{prefix}_shard", "The part of the targets that this is about.", {(("shard", str(shard)),): 1})


def _times(prefix: str, at: datetime, *, succeeded: bool) -> Iterator[Sequence[str]]:
    """When it ran, whether all went well, and when it last did: the beginning of time where it did not now."""
    moment = at.timestamp()
    yield _metric(f"{prefix}_timestamp_seconds", "When it was made, Unix time.", _one(moment))
    yield _metric(f"{prefix}_success", "1 where there are no problems and nothing failed.", _one(succeeded))
    last = "When it last succeeded, Unix time; 0 where this run did not: take max_over_time()."
    yield _metric(f"{prefix}_last_success_timestamp_seconds", last, _one(moment if succeeded else 0))


def _metric(name: str, help_: str, samples: Samples) -> Sequence[str]:
    lines = (f"{name}{_labels(labels)} {_number(number)}" for labels, number in sorted(samples.items()))
    return f"# HELP {name} {help_}", f"# TYPE {name} gauge", *lines


def _labels(labels: Labels) -> str:
    inside = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels)
    return f"{{{inside}}}" if inside else ""


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _number(number: float) -> str:
    return str(int(number)) if number == int(number) else repr(float(number))


def _written(*metrics: Sequence[str]) -> str:
    return "".join(f"{line}\n" for metric in metrics for line in metric)
