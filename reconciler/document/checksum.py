"""Documents that are kept and read again: JSON of a named format, with a checksum, so that an edited one is noticed.

A document is a dataclass, written and read by pydantic; the docstrings of its attributes are the descriptions in its
JSON schema.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from hashlib import sha256
from json.encoder import encode_basestring_ascii
from typing import TypeVar

from pydantic import ConfigDict, ValidationError

from reconciler.errors import Outdated, PlanRefused
from reconciler.model.protocols import Json
from reconciler.model.wording import advised

Shape = TypeVar("Shape")

DOCUMENT = ConfigDict(
    strict=True,
    extra="forbid",
    hide_input_in_errors=True,
)
"""The `__pydantic_config__` of a document; the dataclasses inside it share it.

`schema` adds the descriptions: reading them from the source takes a tenth of a second.
"""

CALLED = {
    "history": "a history of drift",
    "plan": "a saved plan",
    "report": "an apply report",
    "validation": "a validation",
}

WRITTEN_BY = {
    "plan": "plan --out FILE and drift --report json=FILE write one",
    "report": "apply --report json=FILE writes one",
}
"""The commands that write a document."""

ALTERNATIVES = frozenset({"create", "update", "delete", "keep", "said", "str", "int"})
"""Steps of pydantic's paths that tell which alternative it tried."""

MEANINGS = {
    "missing": "is missing",
    "unexpected_keyword_argument": "is not known here",
    "string_type": "should be a string",
    "int_type": "should be a number",
    "list_type": "should be a list",
    "tuple_type": "should be a list",
    "dict_type": "should be an object",
    "extra_forbidden": "is not known here",
    "dataclass_type": "should be an object",
}


def with_checksum(content: Mapping[str, Json]) -> str:
    """Return the text of a document: its content, and its checksum.

    It is ASCII, everything else escaped: safe to show on any terminal. Long lists stand below the rest.
    """
    ordered = dict(sorted(content.items(), key=lambda item: isinstance(item[1], list)))
    return f"{_indented({**ordered, 'checksum': _digest(content)})}\n"


def _indented(value: Json, start: str = "\n") -> str:
    """Return what `json.dumps` with an indent of 2 returns, in a fraction of its time and memory."""
    inner = f"{start}  "
    match value:
        case str():
            return encode_basestring_ascii(value)
        case dict() if value:
            members = [
                f"{inner}{encode_basestring_ascii(name)}: {_indented(item, inner)}" for name, item in value.items()
            ]
            return f"{{{','.join(members)}{start}}}"
        case list() if value:
            return f"[{','.join([inner + _indented(item, inner) for item in value])}{start}]"
    return json.dumps(value)


def read_checked(
    text: str,
    wanted: str,
    read: Callable[[dict[str, Json]], Shape],
    written: Callable[[Shape], Mapping[str, Json]],
    *,
    computed: Collection[str] = (),
    free: Collection[str] = (),
) -> Shape:
    """Return the document in a text with a checksum.

    Args:
        text: what `with_checksum` returned.
        wanted: its format, such as `reconciler.plan/v4`.
        read: takes the content without the checksum, and raises `ValidationError` where that is not as it should be.
        written: returns the content that a document would be written with.
        computed: the keys that are not read: they must be there, with the values that would be written.
        free: the keys that are not read, and may be anything.

    Raises:
        PlanRefused: it is no JSON, of another format or version, edited, or not as this reconciler would write it.
    """
    content = _read(text, wanted)
    _expect(wanted, content.get("format"))
    claimed = content.pop("checksum", None)
    if claimed != _digest(content):
        fault = "has no checksum" if claimed is None else "was edited after it was saved: its checksum does not match"
        raise PlanRefused(f"{_the(wanted)} {fault}; make it again")
    try:
        document = read({name: value for name, value in content.items() if name not in (*computed, *free)})
    except ValidationError as error:
        raise PlanRefused(f"{_the(wanted)} is damaged: {'; '.join(_faults(error))}") from error
    expected = {name: value for name, value in written(document).items() if name not in free}
    compared = {name: value for name, value in content.items() if name not in free}
    differences = [f"{name} is missing" for name in computed if name not in content]
    differences += _differences(compared, expected)
    if differences:
        raise PlanRefused(f"{_the(wanted)} is damaged: {'; '.join(differences)}")
    return document


def _read(text: str, wanted: str) -> dict[str, Json]:
    try:
        content = json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        what = "HTML, not JSON" if text.lstrip().startswith("<") else "not JSON"
        raise _no_such_document(wanted, f": line {error.lineno}, column {error.colno} is {what}") from error
    except (ValueError, RecursionError) as error:
        raise _no_such_document(wanted, ": not JSON that can be read") from error
    if not isinstance(content, dict):
        raise _no_such_document(wanted, ": the JSON is not an object")
    return content


def _refuse(constant: str) -> None:
    """Python reads NaN and Infinity; JSON has none."""
    raise ValueError(constant)


def _expect(wanted: str, named: Json) -> None:
    """Refuse any other format, and say what it is instead."""
    if named == wanted:
        return
    stem, version = wanted.split("/v")
    other = re.fullmatch(r"reconciler\.([a-z]+)/v([1-9][0-9]*)", named) if isinstance(named, str) else None
    if other is None:
        raise _no_such_document(wanted, f": it does not say that its format is {wanted}")
    if f"reconciler.{other[1]}" == stem:
        newer = (len(other[2]), other[2]) > (len(version), version)
        maker, advice = ("a newer", "update this one") if newer else ("an older", "make it again")
        raise (PlanRefused if newer else Outdated)(
            f"{_the(wanted)} was made by {maker} reconciler: its format is {named}, not {wanted}; {advice}"
        )
    raise _no_such_document(wanted, f" but {CALLED.get(other[1], 'something else')}: its format is {named}")


def _no_such_document(wanted: str, reason: str) -> PlanRefused:
    """Return the error for a text that is another document, or none, with the commands that write the right one."""
    return PlanRefused(advised(f"not {_a(wanted)}{reason}", WRITTEN_BY.get(_stem(wanted), "")))


def _faults(error: ValidationError) -> Iterator[str]:
    """Yield each fault with its place in the file, such as `targets[0].sections[1].section is missing`."""
    for fault in error.errors(include_url=False, include_input=False):
        meaning = MEANINGS.get(fault["type"]) or fault["msg"][:1].lower() + fault["msg"][1:]
        yield f"{_place(step for step in fault['loc'] if step not in ALTERNATIVES)} {meaning}"


def _differences(content: Json, written: Json, path: tuple[str | int, ...] = ()) -> Iterator[str]:
    """Yield each place at which a document differs from how it would be written.

    A key that is missing is none: an older reconciler did not know it, and its default was taken.
    """
    if content == written:
        return
    if isinstance(content, dict) and isinstance(written, dict):
        for name in {**written, **content}:
            if name not in written:
                yield f"{_place((*path, name))} is not known here"
            elif name in content:
                yield from _differences(content[name], written[name], (*path, name))
    elif isinstance(content, list) and isinstance(written, list) and len(content) == len(written):
        pairs = enumerate(zip(content, written, strict=True))
        yield from (difference for index, pair in pairs for difference in _differences(*pair, (*path, index)))
    else:
        yield f"{_place(path)} should be {json.dumps(written)}"


def _place(path: Iterable[str | int]) -> str:
    steps = (f".{step}" if str(step).isidentifier() else f"[{step!r}]" for step in path)
    return "".join(steps).removeprefix(".")


def _a(wanted: str) -> str:
    return CALLED[_stem(wanted)]


def _stem(wanted: str) -> str:
    return wanted.partition("/")[0].removeprefix("reconciler.")


def _the(wanted: str) -> str:
    return "the " + _a(wanted).partition(" ")[2]


def _digest(content: Mapping[str, Json]) -> str:
    return sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
