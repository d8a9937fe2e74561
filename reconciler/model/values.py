"""Values and their differences in words, for text, notes and pages: no JSON, no positions. Begin with `value`. Pure."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import takewhile
from math import inf

from reconciler.model.protocols import Json
from reconciler.system.terminal import escaped

SHOWN_VALUE_LENGTH = 64
"""How many characters of a value are shown: a SHA-256 is whole."""

VALUE_CONTEXT_LENGTH = 12
"""How many of them stand before the first difference of two long texts."""

NOBODY, NOTHING_LISTED = "nobody", "none"

MORE_THAN_TEXT = re.compile(
    r"""true|false|none|nobody|null|[-+]?[\d.]+(e[-+]?\d+)?|[\[{'+-].*|.*(["…]|, | -> ).*""", re.IGNORECASE
)
"""Strings that without quotation marks would look like another value, or like more than one."""


def quoted(text: str) -> str:
    """Return text as a JSON string, without special characters."""
    return escaped(json.dumps(text, ensure_ascii=False))


def value(content: Json, longest: float = SHOWN_VALUE_LENGTH, start: int = 0, *, empty: str = NOTHING_LISTED) -> str:
    """Return a value on one line: text without quotation marks if it can be nothing else, null as `none`.

    Args:
        content: the value.
        longest: the number of characters that are shown.
        start: the first shown character of a long text.
        empty: the word for an empty list; see `empty_of`.
    """
    match content:
        case None:
            return "none"
        case str():
            return _text(content, longest, start)
        case list() | tuple():
            return _shortened(", ".join(entry_words(own, longest) for own in content) or empty, longest, start)
        case Mapping():
            return _shortened(
                ", ".join(f"{escaped(name)}: {value(own, longest)}" for name, own in content.items()), longest, 0
            )
    return _shortened(escaped(json.dumps(content)), longest, start)


def entry_words(content: Json, longest: float = SHOWN_VALUE_LENGTH) -> str:
    """Return an entry of a list in words: a role as its word, others with their kind, as `user ivo`."""
    if isinstance(content, Mapping) and len(content) == 1:
        ((sort, name),) = content.items()
        return f"{escaped(str(sort)).replace('_', ' ')} {value(name, longest)}"
    return value(content, longest)


def empty_of(field: str) -> str:
    """Return the word for an empty list in a field: `nobody` for a list of subjects."""
    return NOBODY if field.startswith("allowed_to_") else NOTHING_LISTED


def differing(
    former_fields: Mapping[str, Json], new_fields: Mapping[str, Json], longest: float = SHOWN_VALUE_LENGTH
) -> Iterator[tuple[str, str | None, str]]:
    """Yield each place in which fields differ, the live value, None if it is unknown, and the future one, on one line.

    Of a list that has entries before and after, the second is None, and the third has the added and removed entries.
    """
    for field, now in new_fields.items():
        name, was = escaped(field), former_fields.get(field)
        if field not in former_fields:
            yield name, None, value(now, longest, empty=empty_of(field))
        elif isinstance(was, list) and isinstance(now, list):
            yield name, *_lists(field, was, now, longest)
        elif isinstance(was, dict) and isinstance(now, dict):
            for path, old, new in inside(was, now):
                yield escaped(field + path), value(old, longest), value(new, longest)
        else:
            start = _start(was, now, longest) if isinstance(was, str) and isinstance(now, str) else 0
            yield name, value(was, longest, start), value(now, longest, start)


def steps(
    former_fields: Mapping[str, Json], new_fields: Mapping[str, Json], longest: float = SHOWN_VALUE_LENGTH
) -> Iterator[str]:
    """Yield the differences of fields in words: `state: active -> closed`, `allowed_to_merge: + user ivo`."""
    for name, was, will_be in differing(former_fields, new_fields, longest):
        yield f"{name}: {will_be}" if was is None else f"{name}: {was} -> {will_be}"


def _lists(field: str, former_entries: list[Json], new_entries: list[Json], longest: float) -> tuple[str | None, str]:
    """Return the differences of two lists in words; at any length, also the new list."""
    if not (former_entries and new_entries):
        return value(former_entries, longest, empty=empty_of(field)), value(new_entries, longest, empty=empty_of(field))
    come, gone = _added_and_removed(_spellings(former_entries), _spellings(new_entries))
    signed = (*(("+", own) for own in come), *(("-", own) for own in gone))
    news = ", ".join(f"{sign} {entry_words(json.loads(own), longest)}" for sign, own in signed)
    whole = f"; then {value(new_entries, longest)}" if longest == inf else ""
    return None, f"{_shortened(news, longest, 0)}{whole}"


def _spellings(json_entries: list[Json]) -> tuple[str, ...]:
    return tuple(json.dumps(own, sort_keys=True) for own in json_entries)


@lru_cache(maxsize=1024)
def _added_and_removed(
    former_spellings: tuple[str, ...], new_spellings: tuple[str, ...]
) -> tuple[Sequence[str], Sequence[str]]:
    """Return the entries that only the second of two lists has, and those that only the first has, in their order."""
    from deepdiff import DeepDiff  # noqa: PLC0415 - 130 ms, and many plans need none

    difference = DeepDiff(set(former_spellings), set(new_spellings), view="tree")
    come = {level.t2 for level in difference.get("set_item_added", ())}
    gone = {level.t1 for level in difference.get("set_item_removed", ())}
    return [own for own in new_spellings if own in come], [own for own in former_spellings if own in gone]


def inside(former_value: Json, new_value: Json) -> Iterator[tuple[str, Json, Json]]:
    """Yield each place in which two nested values differ, with the live and the future value; None for no value."""
    from deepdiff import DeepDiff  # noqa: PLC0415 - as above
    from deepdiff.helper import notpresent  # noqa: PLC0415 - as above

    difference = DeepDiff(former_value, new_value, view="tree", threshold_to_diff_deeper=0)
    levels = [level for levels in difference.values() for level in levels]
    for level in sorted(levels, key=lambda level: str(level.path())):
        path = "".join(
            f"[{step}]" if isinstance(step, int) else f".{step}" for step in level.path(output_format="list")
        )
        was, will_be = (None if value is notpresent else value for value in (level.t1, level.t2))
        yield path, was, will_be


def _text(text: str, longest: float, start: int) -> str:
    shown = _shortened(text, longest, start)
    is_plain = text.isprintable() and escaped(text) == text == text.strip() != "" and not MORE_THAN_TEXT.fullmatch(text)
    return text if shown == text and is_plain else quoted(shown)


def _start(before: str, after: str, longest: float) -> int:
    """Return the position at which the shown parts of two texts begin, so that a difference is visible."""
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False)))
    return 0 if common < longest - VALUE_CONTEXT_LENGTH else common - VALUE_CONTEXT_LENGTH


def _shortened(text: str, longest: float, start: int) -> str:
    shown = f"…{text[start:]}" if start else text
    return shown if len(shown) <= longest else shown[: int(longest) - 1] + "…"
