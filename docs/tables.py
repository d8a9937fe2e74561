"""Markdown tables of keys, from JSON Schemas."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

Schema = dict[str, Any]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table, without columns that are empty, and an empty line; nothing if there are no rows."""
    cells = [[_cell(text) for text in row] for row in rows]
    shown = [number for number in range(len(head)) if any(row[number] for row in cells)]
    lines = [f"| {' | '.join(row[number] for number in shown)} |" for row in [head, *cells]]
    lines.insert(1, "|---" * len(shown) + "|")
    return "\n".join([*lines, "", ""]) if cells else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def keys(schema: Schema, name: str = "key") -> str:
    """Return a table of the keys of an object: type, meaning, and example if there is one."""
    rows = [
        [f"`{key}`", type_words(inner), inner.get("description", ""), example(inner)]
        for key, inner in schema["properties"].items()
    ]
    return table([name, "takes", "means", "example"], rows)


def type_words(schema: Schema) -> str:
    """Return the types of a value in words."""
    return ", or ".join(dict.fromkeys(_types(schema)))


def _types(schema: Schema) -> Iterator[str]:
    match schema:
        case {"anyOf": choices} | {"oneOf": choices}:
            for choice in choices:
                yield from _types(choice)
        case {"$ref": reference}:
            name = reference.rpartition("/")[2].rpartition(".")[2]
            yield f"[{name}](#{name.lower()})"
        case {"type": "array", "items": item}:
            yield f"list of {_each(item)}"
        case {"type": "object", "additionalProperties": dict(value)} if value:
            yield f"mapping to {_each(value)}"
        case _:
            yield _plain(schema)


def _plain(schema: Schema) -> str:
    match schema:
        case {"const": value}:
            return f"`{value}`"
        case {"enum": values}:
            return "one of " + ", ".join(f"`{value}`" for value in values)
        case {"type": "string", "format": words}:
            return WORDS[words]
        case _:
            return WORDS[schema.get("type", "any")]


def _each(schema: Schema) -> str:
    words = type_words(schema)
    return f"({words})" if ", or " in words else words


WORDS = {
    "any": "any value",
    "boolean": "boolean",
    "date": "day",
    "date-time": "time",
    "integer": "integer",
    "null": "`null`",
    "number": "number",
    "object": "mapping",
    "string": "text",
}


def example(schema: Schema) -> str:
    """Return the first example of a value, as people write it; empty if there is none, or its type says it."""
    said = schema.get("type") == "boolean" or "enum" in schema
    return f"`{in_yaml(schema['examples'][0])}`" if schema.get("examples") and not said else ""


def in_yaml(value: object) -> str:
    """Return a value on one line, as people write it in YAML."""
    match value:
        case dict():
            return "{" + ", ".join(f"{key}: {in_yaml(inner)}" for key, inner in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(in_yaml, value)) + "]"
        case str():
            return json.dumps(value) if set(value) & set("*{}[],#&!|>%@`\"'") else value
        case _:
            return json.dumps(value)
