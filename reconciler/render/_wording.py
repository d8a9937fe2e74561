"""The words that people read of plans and reports, whatever the format: labels, values, counts.

What comes from the service or from manifests is shown so that it can neither steer a terminal nor turn text around.
"""

import json
import re
from collections.abc import Iterator, Mapping
from difflib import unified_diff
from itertools import islice, takewhile

from reconciler.model.diff import Fields, inside
from reconciler.model.plan import Change, Create, Delete, Problem, Unmanaged, Update
from reconciler.model.protocols import Json
from reconciler.model.targets import Address
from reconciler.system.terminal import escaped

LONGEST = 60
"""How many characters of a value are shown."""

CONTEXT = 12
"""How many of them stand before the first difference of two long texts."""

MORE_THAN_TEXT = re.compile(
    r"""true|false|none|null|[-+]?[\d.]+(e[-+]?\d+)?|[\[{'].*|.*(["…]|, | -> ).*""", re.IGNORECASE
)
"""Strings that without quotation marks would look like another value, or like more than one."""


def quoted(text: str) -> str:
    """Return text as a JSON string, without special characters."""
    return escaped(json.dumps(text, ensure_ascii=False))


def label(address: Address) -> str:
    """Return what an object is called: `milestone "2026.12"`, `approval settings`, `allowlisted project 1234`."""
    if address.name is None:
        return escaped(address.title)
    name = quoted(address.name) if isinstance(address.name, str) else str(address.name)
    return f"{escaped(address.title)} {name}"


def complaint(problem: Problem) -> str:
    """Return what is wrong with what, and what to do: `trigger tokens: the project is archived; unarchive it`."""
    return f"{subject(problem)}: {why(problem)}"


def known_of(each: Unmanaged) -> Iterator[str]:
    """Yield what is known of an object that no manifest mentions."""
    known = {"ID": each.id, "owner": each.owner, "last used": each.last_used}
    return (f"{name} {escaped(str(value))}" for name, value in known.items() if value is not None)


def subject(problem: Problem) -> str:
    """Return what a problem is about: `approval settings.retain_approvals_on_push`."""
    return label(problem.address) + (f".{escaped(problem.field)}" if problem.field else "")


def why(problem: Problem) -> str:
    """Return what is wrong, and what to do about it."""
    return escaped("; ".join(filter(None, (problem.reason, problem.remedy))))


def details(change: Change) -> Iterator[str]:
    """Yield what there is to say of a change, field by field: what will be, what was and will be, or what is lost."""
    match change:
        case Create():
            yield from _fields(change.after)
            yield from vain(change)
        case Update():
            if change.renamed_from is not None:
                yield f"renamed from {quoted(str(change.renamed_from))}"
            for name, was, will_be in differing(change):
                yield f"{name}: {was} -> {will_be}"
            if change.hint:
                yield escaped(change.hint)
        case Delete():  # pragma: no branch - mypy would see a fourth
            yield from _fields(change.before)


def vain(change: Create) -> Iterator[str]:
    """Say of an object with declared former names that nothing has one of them."""
    if change.former_names:
        yield f"nothing named {' or '.join(quoted(str(name)) for name in change.former_names)} to rename"


def differing(change: Update) -> Iterator[tuple[str, str, str]]:
    """Yield each place that an update changes, what is there and what will be, each on one line."""
    for field, after in change.after.items():
        before = change.before.get(field)
        if isinstance(before, list | dict) and isinstance(after, list | dict):
            for path, was, will_be in inside(before, after):
                yield escaped(field + path), value(was), value(will_be)
        else:
            start = _start(before, after) if isinstance(before, str) and isinstance(after, str) else 0
            yield escaped(field), value(before, start), value(after, start)


def rewritten(change: Change) -> Iterator[str]:
    """Yield, for each text of several lines that changes, which of its lines go and which come."""
    if not isinstance(change, Update):
        return
    for name, after in change.after.items():
        before = change.before.get(name)
        if isinstance(before, str) and isinstance(after, str) and "\n" in before + after:
            lines = unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
            for line in islice(lines, 2, None):
                if line[0] in "-+":
                    yield f"{escaped(name)} {line[0]} {escaped(line[1:])}"


def value(content: Json, start: int = 0) -> str:
    """Return a value on one line: text without quotation marks where it can be nothing else, null as `none`.

    Args:
        content: the value.
        start: where in a long text to begin.
    """
    if content is None:
        return "none"
    if not isinstance(content, str):
        return _shortened(escaped(json.dumps(content, ensure_ascii=False)), start)
    shown = _shortened(content, start)
    is_plain = (
        content.isprintable()
        and escaped(content) == content == content.strip() != ""
        and not MORE_THAN_TEXT.fullmatch(content)
    )
    return content if shown == content and is_plain else quoted(shown)


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `1 problem`, `2 problems`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def listed_documents(documents: Mapping[str, int]) -> str:
    """Say what was read: `5 documents: 1 group, 2 sets, 2 profiles`."""
    each = ", ".join(counted(number, sort) for sort, number in documents.items())
    return f"{counted(sum(documents.values()), 'document')}{each and f': {each}'}"


def waits(waited: Mapping[str, float]) -> Iterator[str]:
    """Yield for how long a run waited for what, where it was long enough to be felt."""
    return (f"{seconds:.1f} s for {escaped(reason)}" for reason, seconds in waited.items() if seconds >= 0.1)


def _fields(fields: Fields) -> Iterator[str]:
    return (f"{escaped(name)}: {value(content)}" for name, content in fields.items() if content is not None)


def _start(before: str, after: str) -> int:
    """Where to begin to show two texts, so that what is shown differs."""
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False)))
    return 0 if common < LONGEST - CONTEXT else common - CONTEXT


def _shortened(text: str, start: int) -> str:
    rest = f"…{text[start:]}" if start else text
    return rest if len(rest) <= LONGEST else rest[: LONGEST - 1] + "…"
