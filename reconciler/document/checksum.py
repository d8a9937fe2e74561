"""Documents that are kept and read again: JSON of a named format, with a checksum that shows edits.

`with_checksum` writes the text of a document; `read_checked` refuses a text that was edited or comes from another
version. A document is a dataclass, written and read by pydantic; the docstrings of its attributes are the descriptions
in its JSON schema.
"""

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
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

DOCUMENT_NAMES = {
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

UNION_MEMBERS = frozenset({"create", "update", "delete", "keep", "said", "str", "int"})
"""Steps of pydantic's error paths that name a member of a union; the file has no such keys."""

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


def with_checksum(document_content: Mapping[str, Json]) -> str:
    """Return the text of a document: its content, and its checksum.

    The text is ASCII, all other characters are escaped: safe to show on any terminal.
    """
    # lists come last: whoever opens a plan of megabytes sees its head first
    ordered = dict(sorted(document_content.items(), key=lambda item: isinstance(item[1], list)))
    return f"{_indented_json({**ordered, 'checksum': _digest(document_content)})}\n"


def _indented_json(value: Json, line_start: str = "\n") -> str:
    """Return the same text as `json.dumps` with an indent of 2, in a fraction of its time and memory."""
    # `json` uses its encoder in C only without an indent
    inner = f"{line_start}  "
    match value:
        case str():
            return encode_basestring_ascii(value)
        case dict() if value:
            members = [
                f"{inner}{encode_basestring_ascii(name)}: {_indented_json(item, inner)}" for name, item in value.items()
            ]
            return f"{{{','.join(members)}{line_start}}}"
        case list() if value:
            return f"[{','.join([inner + _indented_json(item, inner) for item in value])}{line_start}]"
    return json.dumps(value)


def read_checked(
    text: str,
    format_: str,
    parse: Callable[[dict[str, Json]], Shape],
    content_of: Callable[[Shape], Mapping[str, Json]],
    *,
    computed: Collection[str] = (),
    ignored: Collection[str] = (),
) -> Shape:
    """Parse a text that `with_checksum` wrote, and return the document.

    Args:
        text: the text of the document.
        format_: the expected format, such as `reconciler.plan/v4`.
        parse: returns the document for its content without the checksum; raises `ValidationError` if it is invalid.
        content_of: returns the content that would be written for a document.
        computed: the keys that `parse` does not get; their values must be those that would be written.
        ignored: the keys that are neither parsed nor compared.

    Raises:
        PlanRefused: the text is not JSON, has another format or version, was edited, or differs from the text that
            this reconciler would write.
    """
    content = _read(text, format_)
    # the format first: a document of another version gets the error that names its version, whatever its checksum
    _check_format(format_, content.get("format"))
    claimed = content.pop("checksum", None)
    if claimed != _digest(content):
        fault = "has no checksum" if claimed is None else "was edited after it was saved: its checksum does not match"
        raise PlanRefused(f"{_definite_name(format_)} {fault}; make it again")
    try:
        # a checksum proves only that nobody edited by accident: anyone can compute one, so the content is checked too
        document = parse({name: value for name, value in content.items() if name not in (*computed, *ignored)})
    except ValidationError as error:
        raise PlanRefused(f"{_definite_name(format_)} is damaged: {'; '.join(_faults(error))}") from error
    # written again and compared: a key that reading ignored, or a summary that somebody made up, would else pass unseen
    expected = {name: value for name, value in content_of(document).items() if name not in ignored}
    compared = {name: value for name, value in content.items() if name not in ignored}
    differences = [f"{name} is missing" for name in computed if name not in content]
    differences += _differences(compared, expected)
    if differences:
        raise PlanRefused(f"{_definite_name(format_)} is damaged: {'; '.join(differences)}")
    return document


def _read(text: str, format_: str) -> dict[str, Json]:
    try:
        content = json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        kind_of_text = "HTML, not JSON" if text.lstrip().startswith("<") else "not JSON"
        raise _no_such_document(format_, f": line {error.lineno}, column {error.colno} is {kind_of_text}") from error
    # a hostile file nests lists by the thousand, or has a number of more digits than `int` takes
    except (ValueError, RecursionError) as error:
        raise _no_such_document(format_, ": not JSON that can be read") from error
    if not isinstance(content, dict):
        raise _no_such_document(format_, ": the JSON is not an object")
    return content


def _refuse(constant: str) -> None:
    """Raise for NaN and Infinity, which Python's parser accepts and JSON does not have."""
    raise ValueError(constant)


def _check_format(format_: str, actual: Json) -> None:
    """Raise unless a document names the expected format; the error names the format that it has."""
    if actual == format_:
        return
    stem, version = format_.split("/v")
    other = re.fullmatch(r"reconciler\.([a-z]+)/v([1-9][0-9]*)", actual) if isinstance(actual, str) else None
    if other is None:
        raise _no_such_document(format_, f": it does not say that its format is {format_}")
    if f"reconciler.{other[1]}" == stem:
        # compared as text, shorter first: `int` refuses digits by the thousand, which a hostile file may have
        newer = (len(other[2]), other[2]) > (len(version), version)
        maker, advice = ("a newer", "update this one") if newer else ("an older", "make it again")
        raise (PlanRefused if newer else Outdated)(
            f"{_definite_name(format_)} was made by {maker} reconciler: its format is {actual}, not {format_}; {advice}"
        )
    raise _no_such_document(format_, f" but {DOCUMENT_NAMES.get(other[1], 'something else')}: its format is {actual}")


def _no_such_document(format_: str, reason: str) -> PlanRefused:
    """Return the error for a text of another format, with the command that writes the expected document."""
    return PlanRefused(advised(f"not {_indefinite_name(format_)}{reason}", WRITTEN_BY.get(_stem(format_), "")))


def _faults(validation_error: ValidationError) -> Iterator[str]:
    """Yield each fault with its path in the file, such as `targets[0].sections[1].section is missing`."""
    for fault in validation_error.errors(include_url=False, include_input=False):
        meaning = MEANINGS.get(fault["type"]) or fault["msg"][:1].lower() + fault["msg"][1:]
        yield f"{_path_text([step for step in fault['loc'] if step not in UNION_MEMBERS])} {meaning}"


def _differences(content: Json, expected: Json, key_path: Sequence[str | int] = ()) -> Iterator[str]:
    """Yield each path at which a document differs from the text that would be written for it.

    A missing key is no difference: an older reconciler did not know the key, and reading took its default.
    """
    if content == expected:
        return
    if isinstance(content, dict) and isinstance(expected, dict):
        for name in {**expected, **content}:
            if name not in expected:
                yield f"{_path_text((*key_path, name))} is not known here"
            elif name in content:
                yield from _differences(content[name], expected[name], (*key_path, name))
    elif isinstance(content, list) and isinstance(expected, list) and len(content) == len(expected):
        pairs = enumerate(zip(content, expected, strict=True))
        yield from (difference for index, pair in pairs for difference in _differences(*pair, (*key_path, index)))
    else:
        yield f"{_path_text(key_path)} should be {json.dumps(expected)}"


def _path_text(key_path: Sequence[str | int]) -> str:
    steps = (f".{step}" if str(step).isidentifier() else f"[{step!r}]" for step in key_path)
    return "".join(steps).removeprefix(".")


def _indefinite_name(format_: str) -> str:
    return DOCUMENT_NAMES[_stem(format_)]


def _stem(format_: str) -> str:
    return format_.partition("/")[0].removeprefix("reconciler.")


def _definite_name(format_: str) -> str:
    return "the " + _indefinite_name(format_).partition(" ")[2]


def _digest(document_content: Mapping[str, Json]) -> str:
    # sorted and without spaces: a tool that formats the file anew does not change its checksum
    return sha256(json.dumps(document_content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
