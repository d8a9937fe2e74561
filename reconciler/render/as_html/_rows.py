"""The changes of a plan or a report as the data of the page: texts that are safe to show, and numbers of texts."""

import json
from collections.abc import Iterable, Iterator
from itertools import takewhile

from reconciler.apply import Outcome
from reconciler.model.plan import Change, Create, Delete
from reconciler.model.protocols import Json
from reconciler.render._wording import label, vain
from reconciler.system.terminal import escaped

LONGEST = 10_000
"""How many characters of a value are shown."""

CONTEXT = 100
"""How many of them stand before the first difference of two longer ones."""

Field = tuple[str, str | None, str | None]
"""A field's name, what is there, and what will be; None for nothing."""

Row = tuple[int, int, str, str, list[Field], list[str], str, str]
"""A change: number of its target, number of its section, action, label, fields, requests, status, reason."""

Data = dict[str, list[str] | list[Row]]


def changes_of(changes: Iterable[Change]) -> Data:
    """Return changes that are planned."""
    return _data((change, "", "") for change in changes)


def outcomes_of(outcomes: Iterable[Outcome]) -> Data:
    """Return changes with what became of them."""
    return _data((each.change, str(each.status), escaped(each.reason)) for each in outcomes)


def script_safe(data: Data) -> str:
    """Return data as JSON that ends no script and begins no comment."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _data(changes: Iterable[tuple[Change, str, str]]) -> Data:
    targets: dict[str, int] = {}
    sections: dict[str, int] = {}
    rows: list[Row] = []
    for change, status, reason in changes:
        target = targets.setdefault(escaped(str(change.address.target)), len(targets))
        section = sections.setdefault(escaped(change.address.section), len(sections))
        requests = [escaped(str(request)) for request in change.requests]
        action, subject = change.action, label(change.address)
        rows.append((target, section, action, subject, list(_fields(change)), requests, status, reason))
    return {"targets": list(targets), "sections": list(sections), "rows": rows}


def _fields(change: Change) -> Iterator[Field]:
    if isinstance(change, Create):
        shown = ((name, value) for name, value in change.after.items() if value is not None)
        yield from ((escaped(name), None, _clipped(_text(value), 0)) for name, value in shown)
        yield from (("renamed_from", None, _clipped(said, 0)) for said in vain(change))
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
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
    return "\n".join(map(escaped, text.split("\n"))) or '""'


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
