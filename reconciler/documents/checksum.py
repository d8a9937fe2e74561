"""Documents that are kept and read again: JSON of a named format, with a checksum, so that an edited one is noticed."""

import json
import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from reconciler.errors import PlanRefused
from reconciler.model.protocols import Json


class Document(BaseModel):
    """The shape of a document, or of a piece of one. Most runs read none, so shapes are built when first needed."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, hide_input_in_errors=True, defer_build=True)


Shape = TypeVar("Shape", bound=Document)

CALLED = {"plan": "a saved plan", "report": "an apply report", "validation": "a validation"}

ALTERNATIVES = frozenset({"create", "update", "delete", "str", "int"})
"""What pydantic puts into a place to say which alternative it tried; no field is called so."""

MEANINGS = {
    "missing": "is missing",
    "extra_forbidden": "is not known here",
    "string_type": "should be a string",
    "int_type": "should be a number",
    "list_type": "should be a list",
    "dict_type": "should be an object",
    "model_type": "should be an object",
}


def with_checksum(content: Mapping[str, Json]) -> str:
    """Return the text of a document: its content, and its checksum.

    It is ASCII, everything else escaped: safe to show on any terminal.
    """
    return json.dumps({**content, "checksum": _digest(content)}, indent=2) + "\n"


def read_checked(text: str, shape: type[Shape], wanted: str) -> Shape:
    """Read a document with a checksum.

    Args:
        text: the document.
        shape: what it should look like, its `checksum` included.
        wanted: its format, such as `reconciler.plan/v2`.

    Raises:
        PlanRefused: it is no JSON, of another format or another version, edited, or not of that shape.
    """
    content = _read(text, wanted)
    _expect(wanted, content.get("format"))
    claimed = content.pop("checksum", None)
    if claimed != _digest(content):
        fault = "has no checksum" if claimed is None else "was edited after it was saved: its checksum does not match"
        raise PlanRefused(f"{_the(wanted)} {fault}; make it again")
    try:
        return shape.model_validate_json(json.dumps({**content, "checksum": claimed}))
    except ValidationError as error:
        raise PlanRefused(f"{_the(wanted)} is damaged: {'; '.join(_faults(error))}") from error


def _read(text: str, wanted: str) -> dict[str, Json]:
    try:
        content = json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise PlanRefused(f"not {_a(wanted)}: {where} is not JSON") from error
    except (ValueError, RecursionError) as error:
        raise PlanRefused(f"not {_a(wanted)}: not JSON that can be read") from error
    if not isinstance(content, dict):
        raise PlanRefused(f"not {_a(wanted)}: the JSON is not an object")
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
        raise PlanRefused(f"not {_a(wanted)}: it does not say that its format is {wanted}")
    if f"reconciler.{other[1]}" == stem:
        newer = (len(other[2]), other[2]) > (len(version), version)
        maker, advice = ("a newer", "update this one") if newer else ("an older", "make it again")
        raise PlanRefused(
            f"{_the(wanted)} was made by {maker} reconciler: its format is {named}, not {wanted}; {advice}"
        )
    raise PlanRefused(f"not {_a(wanted)} but {CALLED.get(other[1], 'something else')}: its format is {named}")


def _faults(error: ValidationError) -> Iterator[str]:
    """Say each fault with its place in the file, such as `targets[0].sections[1].section is missing`."""
    for fault in error.errors(include_url=False, include_input=False):
        place = ""
        for step in fault["loc"]:
            if step not in ALTERNATIVES:
                place += f".{step}" if str(step).isidentifier() else f"[{step!r}]"
        meaning = MEANINGS.get(fault["type"]) or fault["msg"][:1].lower() + fault["msg"][1:]
        yield f"{place.removeprefix('.')} {meaning}"


def _a(wanted: str) -> str:
    return CALLED[wanted.partition("/")[0].removeprefix("reconciler.")]


def _the(wanted: str) -> str:
    return "the " + _a(wanted).partition(" ")[2]


def _digest(content: Mapping[str, Json]) -> str:
    return sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
