"""YAML that is no manifest: the configuration and template values to read, effective manifests to write."""

from collections.abc import Iterable, Mapping
from io import StringIO
from pathlib import Path
from typing import Any

from reconciler.errors import ManifestErrors
from reconciler.manifests.files import Unreadable, as_text, read_text
from reconciler.manifests.sources import Source, fault


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
        raise ManifestErrors([error.fault]) from None


def mapping_in(source: Source) -> dict[str, Any]:
    """Return the one mapping a text holds; an empty one if it holds nothing.

    Raises:
        ManifestErrors: it is not YAML, or holds something else.
    """
    reading = source.read()
    if reading.faults:
        raise ManifestErrors(list(reading.faults))
    values = [root.value for root in reading.roots] or [{}]
    if len(values) > 1 or not isinstance(values[0], dict):
        raise ManifestErrors([fault(source.path, 0, 0, "holds something else than one mapping of names to values")])
    return values[0]


def write_yaml(documents: Iterable[Mapping[str, Any]]) -> str:
    """Return documents as one YAML text that the manifest reader reads back to the same values."""
    from ruamel.yaml import YAML  # noqa: PLC0415  # only what writes YAML needs it

    yaml = YAML(typ="rt")
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.width = 110
    text = StringIO()
    yaml.dump_all(documents, text)
    return text.getvalue()
