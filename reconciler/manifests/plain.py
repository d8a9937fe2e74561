"""YAML that is no manifest: the configuration and template values to read, effective manifests to write."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

from reconciler.errors import ManifestErrors
from reconciler.manifests.sources import Source, Unreadable, as_text, fault, read_text
from reconciler.model.kind import Kinds


@dataclass(frozen=True, slots=True)
class Inputs:
    """What manifests are read from, in any revision.

    Attributes:
        paths: the files and folders that the user named.
        kinds: all kinds.
        values_files: files of values for templates.
        settings: further values, which win.
        env_names: the environment variables that templates may read.
    """

    paths: Sequence[Path]
    kinds: Kinds
    values_files: Sequence[str] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    env_names: Sequence[str] = ()

    def values(self, content: Callable[[Path], bytes | None] = lambda _file: None) -> dict[str, Any]:
        """Return the values for templates.

        Args:
            content: returns what a file of values held then; None for the file on disk.

        Raises:
            ManifestErrors: a file of values is not valid.
        """
        values: dict[str, Any] = {}
        for file in map(Path, self.values_files):
            values |= read_mapping(file, content(file))
        return {**values, **self.settings}


def read_mapping(path: Path, content: bytes | None = None) -> dict[str, Any]:
    """Return the one mapping a YAML file holds; an empty one if the file holds nothing.

    Args:
        path: the file.
        content: what is in it, if it is not on disk.

    Raises:
        ManifestErrors: the file cannot be read, is not YAML, or holds something else.
    """
    return mapping_in(open_source(path, content))


def open_source(path: Path, content: bytes | None = None) -> Source:
    """Return the text of a file, or its content if that is given.

    Raises:
        ManifestErrors: the file cannot be read, or is not text.
    """
    try:
        return Source(str(path), read_text(str(path)) if content is None else as_text(str(path), content))
    except Unreadable as error:
        raise ManifestErrors([error.diagnostic]) from None


def mapping_in(source: Source) -> dict[str, Any]:
    """Return the one mapping a text holds; an empty one if it holds nothing.

    Raises:
        ManifestErrors: it is not YAML, or holds something else.
    """
    reading = source.read()
    if reading.errors:
        raise ManifestErrors(list(reading.errors))
    values = [root.value for root in reading.roots] or [{}]
    if len(values) > 1 or not isinstance(values[0], dict):
        raise ManifestErrors([fault(source.path, 0, 0, "holds something else than one mapping of names to values")])
    return values[0]


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
