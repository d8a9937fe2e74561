"""The folder of an export: the documents of targets in it, their changes, and the resulting texts. See `Folder`."""

import os
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from glob import escape
from hashlib import sha256
from pathlib import Path
from typing import Any

from reconciler import CONFIGURATION
from reconciler.edit.own import Addressee
from reconciler.edit.sections import Exported, Spec
from reconciler.edit.targets import ResolvedTarget, branches_of, discovered_in, paths_of
from reconciler.edit.yaml_edit import same, written
from reconciler.manifests import Manifests, Member, read_contents
from reconciler.manifests.layers import DeclaredTarget
from reconciler.manifests.sources import TEMPLATE, Document, open_source, search
from reconciler.manifests.yaml_emitter import write_yaml
from reconciler.model.kind import Kinds
from reconciler.model.targets import Target

MANIFEST_SUFFIX = ".yaml"

LONGEST_NAME = 255
"""Bytes of a file's name, on most file systems."""

SCHEMA = Path("schemas/manifest.schema.json")
"""The copy of the schema, relative to the parent of the folder."""

_MODELINE = re.compile(r"^# yaml-language-server: \$schema=\S+", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Folder:
    """The manifests of a folder, and their changes.

    Attributes:
        path: the folder.
        texts: by file, as they are.
        manifests: the declarations in the files.
        templates: the files that are not read.
        compact: whether new documents have mappings and lists of plain values on one line.
    """

    path: Path
    texts: Mapping[Path, str]
    manifests: Manifests
    templates: tuple[Path, ...]
    compact: bool = False
    _changed: dict[Document, Any] = field(default_factory=dict)
    _added: list[tuple[str, Any]] = field(default_factory=list)
    _taken: dict[str, Path] = field(default_factory=dict)

    def with_discovered(
        self, resolved_targets: Iterable[ResolvedTarget], members: Mapping[str, Sequence[Member]]
    ) -> "Folder":
        """Return the folder as it was read, with all sets applied, and with placeholders filled in in documents by ID.

        Raises:
            ManifestErrors: such as two sets that disagree on a project.
        """
        discovered = discovered_in(self.manifests, members)
        manifests = self.manifests.with_discovered(
            discovered, paths_of(resolved_targets), branches_of(resolved_targets)
        )
        return Folder(self.path, self.texts, manifests, self.templates, self.compact)

    def find(self, resolved: ResolvedTarget) -> DeclaredTarget | None:
        """Return the document of a target, which may name it by path or by ID; None without one."""
        return next(filter(None, map(self.manifests.index.targets.get, resolved.identities)), None)

    def declared(self, declared_target: DeclaredTarget, exported: Exported, section_names: Container[str]) -> Addressee:
        """Return the addressee for a target that has a document.

        Args:
            declared_target: its document.
            exported: its live state.
            section_names: the names of sections to add.
        """
        merged = self.manifests.of(declared_target.target)
        stack = replace(merged.stack, target=exported.resolved.target)
        return Addressee(exported, stack, stack.prune, section_names, exceptions=merged.desired.exceptions)

    def update(self, document: Document, spec: Spec) -> None:
        """Change the spec of a document."""
        self._replace(document, document.value | ({"spec": spec} if spec or "spec" in document.value else {}))

    def exclude(self, document: Document, project_paths: Sequence[str]) -> None:
        """Exclude further projects in the document of a set."""
        select = document.value["select"]
        excluded = select.get("exclude", [])
        globs = [glob for glob in map(escape, project_paths) if glob not in excluded]
        if globs:
            self._replace(document, document.value | {"select": select | {"exclude": [*excluded, *globs]}})

    def _replace(self, document: Document, value: Any) -> None:
        if not same(document.value, value):
            self._changed[document] = value

    def add(self, path: Path, new_document: dict[str, Any]) -> None:
        """Add a document to a file, after those that the file has."""
        if not self._taken:
            self._taken.update((str(file).casefold(), file) for file in self.texts)
        path = distinct(path, self._taken)
        self._taken[str(path).casefold()] = path
        self._added.append((str(path), new_document))

    def changed_texts(self) -> dict[Path, str]:
        """Return the texts of the files that change.

        Raises:
            OutputFailed: see `written`.
        """

        def write(path: str, before: str, new_document: Any) -> str:
            return self._modeline(Path(path), before) + write_yaml([new_document], compact=self.compact)

        return written({str(path): text for path, text in self.texts.items()}, self._changed, self._added, write)

    def _modeline(self, path: Path, before: str) -> str:
        """Return the comment by which editors find the schema of a new document, which they look for in each document.

        It is the comment that the file has; in a new file, it leads to the schema beside the folder, if there is one.
        """
        modeline = _MODELINE.search(before)
        if modeline:
            return f"{modeline[0]}\n"
        schema = self.path.absolute().parent / SCHEMA
        if before or not schema.exists():
            return ""
        return f"# yaml-language-server: $schema={Path(os.path.relpath(schema, path.parent)).as_posix()}\n"


def document_path(folder: Path, target: Target) -> Path:
    """Return the path of a new document of a target in a folder: `acme/api.yaml`, `project-12.yaml`, `user.yaml`.

    Files that begin with a dot, or have the name of the tool's configuration, are not read as manifests: they get a `_`
    in front. A `_` after the name of a folder such as `api.yaml` distinguishes it from the file of `api`, and a name
    that is too long for a file ends in a digest.
    """
    return named_path(folder, target.ref if isinstance(target.ref, str) else str(target).replace(" ", "-"))


def named_path(folder: Path, name: str) -> Path:
    """Return the path of the document of a name in a folder; the name may have slashes. See `document_path`."""
    *folders, last = (f"_{part}" if part.startswith(".") else part for part in name.split("/"))
    above = (_fitting(f"{part}_" if part.lower().endswith(MANIFEST_SUFFIX) else part) for part in folders)
    path = folder.joinpath(*above, _fitting(last, MANIFEST_SUFFIX))
    return path.with_name(f"_{path.name}") if path.resolve() == Path(CONFIGURATION).resolve() else path


def distinct(path: Path, taken: Mapping[str, Path]) -> Path:
    """Return a path, with a digest if another path differs in case alone: some file systems ignore case.

    Args:
        path: of a new document.
        taken: other paths, by `str.casefold` of each.
    """
    if taken.get(str(path).casefold(), path) == path:
        return path
    return path.with_name(f"{path.stem}-{_digest(path.name)}{path.suffix}")


def _fitting(name: str, ending: str = "") -> str:
    """Return the name of a file or folder; one that is too long is cut and gets a digest."""
    if len(f"{name}{ending}".encode()) <= LONGEST_NAME:
        return f"{name}{ending}"
    digest = f"-{_digest(name)}{ending}"
    # the limit counts bytes, so that the cut may be within a character
    return name.encode()[: LONGEST_NAME - len(digest)].decode(errors="ignore") + digest


def _digest(name: str) -> str:
    return sha256(name.encode()).hexdigest()[:8]


def read_folder(path: Path, kinds: Kinds, *, compact: bool = False) -> Folder:
    """Read the manifests of a folder, which need not exist yet.

    Raises:
        ManifestErrors: the manifests have errors.
    """
    files = [Path(file) for file in search([path]).files] if path.exists() else []
    templates = tuple(file for file in files if file.name.endswith(TEMPLATE))
    texts = {file: open_source(str(file)).text for file in files if file not in templates}
    manifests = read_contents({str(file): text.encode() for file, text in texts.items()}, kinds)
    return Folder(path, texts, manifests, templates, compact)
