"""Metrics for the textfile collector of the node exporter.

Plans and applies have metrics of different names, so that the files of both can lie side by side. A series is 0 if
there is nothing to report, so that a fixed problem falls to 0 and does not vanish.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from reconciler.document.document import RunDocument
from reconciler.document.numbers import counts_by_section, effects_once
from reconciler.document.style import Style
from reconciler.model.item import ACTIONS, Outcome, Status, section_of
from reconciler.model.shards import Shard
from reconciler.model.targets import Target
from reconciler.system.terminal import escaped

Labels = tuple[tuple[str, str], ...]
"""Names and values of labels without special characters, in the order in which they are written."""

Metric = tuple[str, str, Mapping[Labels, float] | float]
"""Its name below the prefix, a description, and the samples."""


EFFECTS_HELP = "Differences by their effect on protection; loosened and tightened: by somebody, on the service."


def plan(saved: RunDocument, _style: Style) -> str:
    """Return the drift, the problems and the cost of a plan."""
    changes, problems, unmanaged = Counter[Labels](), Counter[Labels](), Counter[Labels]()
    excepted, not_applicable, exceptions = Counter[Labels](), Counter[Labels](), Counter[Labels]()
    effects = Counter[Labels]()
    today = saved.created_at.date()
    for seen in saved.targets:
        numbers = counts_by_section(saved.by_target[seen.target])
        for section in seen.sections:
            place = _section_labels(seen.target, section)
            changes.update({(*place, ("action", action)): numbers[section, action] for action in ACTIONS})
            own = Counter({word: number for (name, word), number in numbers.items() if name == section})
            effects.update({(*place, ("effect", verb)): number for verb, number in effects_once(own).items()})
            problems.update({place: numbers[section, "problems"]})
            unmanaged.update({place: numbers[section, "unmanaged"]})
            excepted.update({place: numbers[section, "excepted"]})
            not_applicable.update({place: numbers[section, "not_applicable"]})
        states = {
            "active": sum(not exception.is_over(today) for exception in seen.exceptions),
            "expiring": sum(exception.ends_soon(today) for exception in seen.exceptions),
            "expired": sum(exception.is_over(today) for exception in seen.exceptions),
        }
        exceptions.update(
            {(*_target_labels(seen.target), ("state", state)): number for state, number in states.items()}
        )
    metrics: list[Metric] = [
        ("changes", "Objects that differ from the manifests.", changes),
        ("protection_changes", EFFECTS_HELP, effects),
        ("problems", "Declared settings that cannot be planned.", problems),
        ("unmanaged_objects", "Live objects no manifest mentions.", unmanaged),
        ("excepted_changes", "Changes that exceptions hold back.", excepted),
        ("not_applicable_sections", "Sections left out because their target cannot have them.", not_applicable),
        ("exceptions", "Exceptions by state; expiring ones end within two weeks, and are active too.", exceptions),
        ("refusals", "Reasons why apply will refuse the plan.", len(saved.refusals)),
        ("targets", "Targets that were planned.", Counter(_target_labels(seen.target) for seen in saved.targets)),
        ("requests_to_apply", "Writes needed for the changes.", sum(len(change.requests) for change in saved.changes)),
        ("requests_made", "Reads made to plan.", saved.requests_made),
        *_run(saved.shard, saved.created_at, succeeded=not any(saved.findings("problem"))),
    ]
    return _written("reconciler_plan", metrics)


def report(report: RunDocument, _style: Style) -> str:
    """Return the outcomes of an apply, its requests and its duration."""
    outcomes, problems, waited = Counter[Labels](), Counter[Labels](), dict[Labels, float]()
    for seen in (seen for seen in report.targets if seen.target in report.eventful):
        own = report.by_target[seen.target]
        numbers = counts_by_section(own)
        for section in seen.sections:
            place = _section_labels(seen.target, section)
            statuses = [item.status for item in own if isinstance(item, Outcome) and section_of(item) == section]
            outcomes.update(
                {(*place, ("status", str(status))): statuses.count(status) for status in Status if statuses}
            )
            problems.update({place: numbers[section, "problems"]})
    for reason, seconds in report.made.waited.items():
        labels = (("reason", escaped(reason)),)
        waited[labels] = waited.get(labels, 0) + seconds
    requests: dict[Labels, float] = {
        (("kind", "read"),): report.made.reads,
        (("kind", "write"),): report.made.writes,
    }
    metrics: list[Metric] = [
        ("outcomes", "Changes by what became of them.", outcomes),
        ("problems", "Declared settings that could not be planned.", problems),
        ("requests_made", "Requests made by the apply.", requests),
        ("waited_seconds", "How long the apply waited, by reason.", waited),
        ("duration_seconds", "How long the apply took.", (report.time - report.began_at).total_seconds()),
        *_run(report.shard, report.time, succeeded=report.complete),
    ]
    return _written("reconciler_apply", metrics)


def _target_labels(target: Target) -> Labels:
    """Return the level of a target, and its top-level group; empty for the user and for numeric IDs."""
    group = target.ref.partition("/")[0] if isinstance(target.ref, str) else ""
    return ("level", str(target.level)), ("group", escaped(group))


def _section_labels(target: Target, section: str) -> Labels:
    return *_target_labels(target), ("section", escaped(section))


def _run(shard: Shard | None, time: datetime, *, succeeded: bool) -> Iterator[Metric]:
    """Yield the shard of a run, its time, its success, and the time of the last success; 0 if this run failed.

    Args:
        shard: the part of the targets, if the run was not about all of them.
        time: of the run.
        succeeded: whether there were no problems and no failures.
    """
    if shard is not None:
        yield "shard", "The shard of this run.", {(("shard", str(shard)),): 1}
    moment = time.timestamp()
    yield "timestamp_seconds", "When it was made, Unix time.", moment
    yield "success", "1 if there are no problems and nothing failed.", succeeded
    last = "When a run last succeeded, Unix time; 0 if this run did not: use max_over_time()."
    yield "last_success_timestamp_seconds", last, moment if succeeded else 0


def _written(prefix: str, metrics: Iterable[Metric]) -> str:
    lines = []
    for name, about, values in metrics:
        samples = values if isinstance(values, Mapping) else {(): values}
        lines += [f"# HELP {prefix}_{name} {about}", f"# TYPE {prefix}_{name} gauge"]
        lines += [f"{prefix}_{name}{_labels(labels)} {_number(sample)}" for labels, sample in sorted(samples.items())]
    return "".join(f"{line}\n" for line in lines)


def _labels(labels: Labels) -> str:
    inside = ",".join(f'{name}="{_quotable(text)}"' for name, text in labels)
    return f"{{{inside}}}" if inside else ""


def _quotable(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _number(figure: float) -> str:
    return str(int(figure)) if figure == int(figure) else repr(float(figure))
