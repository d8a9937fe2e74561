"""HTML for people: one file with everything in it, which loads nothing from anywhere and runs no script but its own.

Numbers, problems and unfinished changes stand in the page as they are; the changes stand in it as JSON, from which
`page.js` builds the list.
"""

import json
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from hashlib import sha256
from importlib import resources
from itertools import accumulate, takewhile

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from reconciler.apply import Outcome
from reconciler.documents.groups import Entry, Group, grouped, is_done
from reconciler.documents.plan_file import SavedPlan, utc
from reconciler.documents.report import Report
from reconciler.model.plan import Change, Create, Delete, Excepted, Problem
from reconciler.model.protocols import Json
from reconciler.model.wording import counted
from reconciler.render import Style
from reconciler.render.wording import (
    BECAME,
    PLANNED,
    UNFINISHED,
    WHOLE,
    Counts,
    access_notes,
    became,
    excepted_subject,
    excepted_text,
    expiry_notes,
    guard_notes,
    headline,
    least,
    left_alone,
    plan_cost,
    plan_in_a_line,
    planned,
    problem_reason,
    rename_notes,
    report_in_a_line,
    requests_made,
    status_text,
    subject,
    unused_names,
    waits,
)
from reconciler.system.terminal import escaped, escaped_lines

SIGNS = {"create": "+", "update": "~", "delete": "\u2212", "problems": "!", "unfinished": "\u00d7"}
"""These repeat what colour says."""

SHOWN_AS = {"created": "create", "updated": "update", "deleted": "delete"}

LONGEST = 10_000
"""How many characters of a value are shown."""

CONTEXT = 100
"""How many of them stand before the first difference of two longer ones."""

Trouble = tuple[str, str, str]
"""A target, an object, and what is wrong with it."""

Field = tuple[str, str | None, str | None]
"""A field's name, its value before, and its value after; None for nothing."""


def plan(saved: SavedPlan, style: Style) -> str:
    """Return a page about what would be changed and what cannot be."""
    facts = [
        *rename_notes(saved),
        *guard_notes(saved),
        *expiry_notes(saved),
        *access_notes(saved.plan),
        f"Read from {saved.service} at {utc(saved.created_at)}.",
        f"{plan_cost(saved)} {counted(saved.summary.unmanaged, 'unmanaged object')}{left_alone(saved.summary)}.",
    ]
    problems = grouped(saved.plan.problems, least(style))
    excepted = grouped(saved.plan.excepted, least(style))
    return _page(
        plan_in_a_line(saved),
        facts,
        troubles={
            counted(saved.summary.problems, "problem"): [_problem(each) for each in problems.groups],
            counted(saved.summary.excepted, "excepted change"): [_excepted(each) for each in excepted.groups],
        },
        columns=PLANNED,
        counts=planned(saved.plan),
        data=_data(grouped(saved.plan.changes, least(style)).groups),
    )


def report(done: Report, style: Style) -> str:
    """Return a page about what became of the changes."""
    waited = ", ".join(waits(done.requests.waited))
    facts = [
        f"Written to {done.service} from {utc(done.started_at)} to {utc(done.finished_at)}.",
        f"{requests_made(done)} made.{waited and f' Waited {waited}.'}",
    ]
    unfinished = [each for each in done.outcomes if not is_done(each)]
    problems = grouped(done.problems, least(style))
    return _page(
        report_in_a_line(done),
        facts,
        troubles={
            counted(len(unfinished), f"{UNFINISHED} change"): [
                _unfinished(each) for each in grouped(unfinished, least(style)).groups
            ],
            counted(done.counts.problems, "problem"): [_problem(each) for each in problems.groups],
        },
        columns=BECAME,
        counts=became(done),
        data=_data(grouped(done.outcomes, least(style)).groups),
    )


def _problem(group: Group[Problem]) -> Trouble:
    return _which(group), subject(group), problem_reason(group.sample) + _origin(group)


def _excepted(group: Group[Excepted]) -> Trouble:
    return _which(group), excepted_subject(group.sample), excepted_text(group.sample) + _origin(group)


def _unfinished(group: Group[Outcome]) -> Trouble:
    return _which(group), f"{group.sample.change.action} {subject(group)}", status_text(group.sample)


def _which(group: Group[Entry]) -> str:
    """Return the target of a group, or the number of its targets and some of them."""
    targets = group.targets
    return str(targets[0]) if len(targets) == 1 else "{} ({})".format(*headline(targets))


def _origin(group: Group[Entry]) -> str:
    return group.origin and f" ({group.origin})"


def _page(
    title: str,
    facts: Sequence[str],
    *,
    troubles: dict[str, list[Trouble]],
    columns: Sequence[str],
    counts: Counts,
    data: dict[str, list[Json]],
) -> str:
    """Fill in the template.

    Args:
        title: the page in one line.
        facts: where it comes from, a sentence each.
        troubles: what needs attention, by how much there is of it; shown first.
        columns: what is counted.
        counts: by section and column.
        data: see `_data`.
    """
    files = {name: resources.files(__package__).joinpath(f"page.{name}").read_text("utf-8") for name in ("css", "js")}
    sections = sorted({section for section, _ in counts})
    rows = [(section, [counts[section, column] for column in columns]) for section in sections]
    names = [SHOWN_AS.get(column, column) for column in columns]
    return _template().render(
        digests={name: b64encode(sha256(text.encode()).digest()).decode() for name, text in files.items()},
        files=files,
        title=title,
        facts=facts,
        troubles=[(number, lines) for number, lines in troubles.items() if lines],
        columns=[(name, SIGNS[name], column) for name, column in zip(names, columns, strict=True)],
        rows=[(section, numbers, [*_bars(names, numbers, rows)]) for section, numbers in rows],
        totals=[sum(column) for column in zip(*(numbers for _, numbers in rows), strict=True)],
        whole=WHOLE,
        data=data,
    )


@cache
def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("reconciler.render", "html"),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "separators": (",", ":")}
    return environment.get_template("page.html")


def _shown(value: Json) -> Json:
    """Return what an expression of the template shows; jinja2 escapes it for HTML then."""
    return escaped(value) if type(value) is str else value


def _bars(names: Sequence[str], numbers: Sequence[int], rows: Sequence[tuple[str, list[int]]]) -> Iterator[Json]:
    """Yield the bars of a section, each with its name, its beginning and its width in percent of the longest."""
    longest = max(sum(others) for _, others in rows)
    widths = [100 * number / longest for number in numbers]
    for name, begin, width in zip(names, accumulate(widths, initial=0.0), widths, strict=False):
        if width:
            yield name, f"{begin:.2f}", f"{width:.2f}"


def _data(groups: Iterable[Group[Change] | Group[Outcome]]) -> dict[str, list[Json]]:
    """Return the changes for the page's script: rows of texts that are safe to show, and of numbers of texts."""
    targets: dict[str, int] = {}
    sections: dict[str, int] = {}
    rows: list[Json] = []
    for group in groups:
        change, status, reason = _outcome(group.sample)
        own = [targets.setdefault(escaped(str(target)), len(targets)) for target in group.targets]
        section = sections.setdefault(escaped(change.address.section), len(sections))
        requests = [escaped(str(request)) for each in group.entries for request in _outcome(each)[0].requests]
        if len(own) > 1 and requests:
            requests = [f"{counted(len(requests), 'request')}, such as {requests[0]}"]
        fields = [] if group.others else list(_fields(change))
        rows.append((own, section, change.action, subject(group), fields, requests, status, reason))
    return {"targets": list(targets), "sections": list(sections), "rows": rows}


def _outcome(entry: Change | Outcome) -> tuple[Change, str, str]:
    """Return a change, what became of it, and why."""
    if isinstance(entry, Outcome):
        return entry.change, str(entry.status), escaped(entry.reason)
    return entry, "", ""


def _fields(change: Change) -> Iterator[Field]:
    if isinstance(change, Create):
        shown = ((name, value) for name, value in change.after.items() if value is not None)
        yield from ((escaped(name), None, _clipped(_text(value), 0)) for name, value in shown)
        yield from (("renamed_from", None, _clipped(note, 0)) for note in unused_names(change))
        if change.hint:
            yield "hint", None, escaped(change.hint)
    elif isinstance(change, Delete):
        shown = ((name, value) for name, value in change.before.items() if value is not None)
        yield from ((escaped(name), _clipped(_text(value), 0), None) for name, value in shown)
    else:
        if change.renamed_from is not None:
            yield "name", escaped(str(change.renamed_from)), escaped(str(change.address.name))
        for name, after in change.after.items():
            yield escaped(name), *_both(_text(change.before.get(name)), _text(after))
        if change.hint:
            yield "hint", None, escaped(change.hint)


def _text(value: Json) -> str:
    """Return a value as text of one or more lines: null as `none`, JSON where it is neither that nor a text."""
    if value is None:
        return "none"
    return escaped_lines(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)) or '""'


def _both(before: str, after: str) -> tuple[str, str]:
    """Shorten two long texts so that what is shown of them differs."""
    start = 0
    if max(len(before), len(after)) > LONGEST:
        same = takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False))
        start = max(0, sum(1 for _ in same) - CONTEXT)
    return _clipped(before, start), _clipped(after, start)


def _clipped(text: str, start: int) -> str:
    rest = text[start : start + LONGEST]
    return f"{'…' if start else ''}{rest}{'…' if len(text) > start + LONGEST else ''}"
