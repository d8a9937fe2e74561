"""The files of an export: which change, to what text, and how they are written."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml.error import YAMLError

from reconciler.errors import OutputFailed
from reconciler.export.documents import parse, tree, write
from reconciler.export.edit import edit, same
from reconciler.export.existing import Existing, Place
from reconciler.export.layout import indents_of, keep_lines
from reconciler.manifests.sources import Source

NEXT = "---\n"
SCHEMA = Path("schemas/manifest.schema.json")
"""The copy of the schema, from where the folder of the manifests is."""

_MODELINE = re.compile(r"^# yaml-language-server: \$schema=\S+", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Folder:
    """What becomes of the manifests of a folder; nothing is written before `texts` are."""

    path: Path
    existing: Existing
    _changed: dict[Path, dict[int, Any]] = field(default_factory=dict)
    _added: dict[Path, list[dict[str, Any]]] = field(default_factory=dict)

    def change(self, place: Place, document: dict[str, Any]) -> None:
        """Let a document have another value; where that is the one it has, nothing happens."""
        if not same(self.existing.documents[place.path][place.number], document):
            self._changed.setdefault(place.path, {})[place.number] = document

    def add(self, path: Path, document: dict[str, Any]) -> None:
        """Put a document into a file, behind those it may have."""
        self._added.setdefault(path, []).append(document)

    def texts(self) -> dict[Path, str]:
        """Return the texts of the files that change.

        Raises:
            OutputFailed: a file is written in a way that does not survive being updated in place.
        """
        texts = {path: self._updated(path, changes) for path, changes in self._changed.items()}
        for path, documents in self._added.items():
            before = texts.get(path, self.existing.texts.get(path, ""))
            parts = [before.rstrip("\n") + "\n"] if before else []
            line = self._modeline(path, before)
            texts[path] = NEXT.join(parts + [line + write([tree(document)]) for document in documents])
        return texts

    def _modeline(self, path: Path, before: str) -> str:
        """Return the comment by which editors find the schema of a new document, which they look for in each one.

        It is the one that the file has, or in a new file leads to the schema beside the folder, if there is one.
        """
        found = _MODELINE.search(before)
        if found:
            return f"{found[0]}\n"
        schema = self.path.absolute().parent / SCHEMA
        if before or not schema.exists():
            return ""
        return f"# yaml-language-server: $schema={Path(os.path.relpath(schema, path.parent)).as_posix()}\n"

    def _updated(self, path: Path, changes: Mapping[int, Any]) -> str:
        before = self.existing.texts[path]
        stood = before.replace("\r\n", "\n")
        values = list(self.existing.documents[path])
        try:
            trees = [each for each in parse(stood) if each]
            indents = indents_of(trees)
            unchanged = write(trees, indents)
            for number, value in changes.items():
                edit(trees[number], values[number], value)
                values[number] = value
            changed = write(trees, indents)
        except (YAMLError, LookupError, TypeError, AttributeError) as error:
            raise _stubborn(path) from error
        for text in (keep_lines(stood, unchanged, changed), changed):
            if _says(path, text, values):
                return text.replace("\n", "\r\n") if stood != before else text
        raise _stubborn(path)


def _says(path: Path, text: str, values: list[Any]) -> bool:
    """Whether the documents of a text have these values."""
    reading = Source(str(path), text).read()
    return not reading.errors and [root.value for root in reading.roots] == values


def _stubborn(path: Path) -> OutputFailed:
    return OutputFailed(
        f"{path}: cannot be updated in place, for more than what has changed would become different; nothing was "
        "written: export into another folder and compare the two"
    )
