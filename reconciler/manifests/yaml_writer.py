"""Effective manifests as YAML text."""

from collections.abc import Iterable, Mapping
from io import StringIO
from typing import Any


def write_yaml(documents: Iterable[Mapping[str, Any]]) -> str:
    """Return documents as one YAML text that the manifest reader reads back to the same values.

    What could steer a terminal or turn text around stands in it as an escape.
    """
    from ruamel.yaml import YAML  # noqa: PLC0415  # only what writes YAML needs it
    from ruamel.yaml.scalarstring import DoubleQuotedScalarString  # noqa: PLC0415  # likewise

    def quoted(value: Any) -> Any:
        match value:
            case dict():
                return {quoted(key): quoted(inner) for key, inner in value.items()}
            case list():
                return [quoted(inner) for inner in value]
            case str() if not value.isprintable():
                return DoubleQuotedScalarString(value)
        return value

    yaml = YAML(typ="rt")
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.width = 110
    text = StringIO()
    yaml.dump_all([quoted(document) for document in documents], text)
    return "".join(each if each == "\n" or each.isprintable() else _escape(each) for each in text.getvalue())


def _escape(character: str) -> str:
    """Return a character as text in double quotes may hold it."""
    return f"\\u{ord(character):04x}" if ord(character) < 0x10000 else f"\\U{ord(character):08x}"
