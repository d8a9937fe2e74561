"""Files to `Manifests`: searched, rendered, parsed, and added to an index."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from reconciler.errors import LocatedDiagnostic, ManifestErrors
from reconciler.manifests.creation import Surroundings
from reconciler.manifests.diagnostics import Diagnostics
from reconciler.manifests.index import Index
from reconciler.manifests.manifests import Manifests, merge_manifests
from reconciler.manifests.sources import (
    TEMPLATE,
    Document,
    Search,
    Secrets,
    Source,
    located,
    no_secrets,
    open_source,
    read_mapping,
    search,
    why_passed_over,
)
from reconciler.manifests.stack.sections import section_specs
from reconciler.model.kind import Kinds

if TYPE_CHECKING:
    from reconciler.manifests.templates import Templates


NO_VALUES: Mapping[str, Any] = MappingProxyType({})


NOT_HERE = Surroundings(digest=lambda _archive: "")
"""Archives are not looked at."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """The sources of manifests, in any revision: the user's paths, what templates may read, and what no message shows.

    `settings` win over the values in `values_files`.
    """

    paths: Sequence[Path]
    kinds: Kinds
    values_files: Sequence[str] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    env_names: Sequence[str] = ()
    secrets: Secrets = no_secrets

    def values(self, content: Callable[[Path], bytes | None] = lambda _file: None) -> dict[str, Any]:
        """Return the values for templates; `content` returns a file of values as it was then, None for that on disk.

        Raises:
            ManifestErrors: a file of values is not valid.
        """
        values: dict[str, Any] = {}
        for file in map(Path, self.values_files):
            values |= read_mapping(open_source(str(file), content(file)))
        return {**values, **self.settings}


def read_manifests(inputs: Inputs, *, locks_bind: bool = True) -> Manifests:
    """Read, render, merge and check the manifests in files and folders.

    Templates may read the values of `inputs`, and the environment variables in its `env_names` as `env.NAME`. Unless
    `locks_bind`, a broken lock is no error yet: see `Manifests.deviations`.

    Raises:
        ManifestErrors: with all errors of all files.
        ConfigurationError: a value is called `env` beside environment variables.
    """
    values, searched = inputs.values(), search(inputs.paths)
    around = Surroundings(secrets=inputs.secrets)
    index = Index(section_specs(inputs.kinds), around=around, locks_bind=locks_bind)
    with _IndexReader(index, values, inputs.env_names, inputs.secrets) as reader:
        reader.note(searched)
        for path in searched.files:
            reader.read(path)
        return merge_manifests(reader.index, reader.diagnostics, tuple(reader.parsed))


def read_contents(
    contents: Mapping[str, bytes | tuple[Document, ...]],
    kinds: Kinds,
    *,
    values: Mapping[str, Any] = NO_VALUES,
    env_names: Sequence[str] = (),
    around: Surroundings = NOT_HERE,
) -> Manifests:
    """Read manifests that are not on disk, such as those of another revision, by path; see `read_manifests`.

    Args:
        contents: of the files; of one that was read before, its documents, as of `Manifests.documents_by_file`.
        kinds: all kinds.
        values: of templates.
        env_names: see `Inputs`.
        around: what `create` refers to; without it, archives are not looked at.
    """
    index = Index(section_specs(kinds), around=around)
    with _IndexReader(index, values, env_names) as reader:
        for path, content in contents.items():
            if isinstance(content, bytes):
                reader.read(path, content)
            else:
                reader.share(path, content)
        return merge_manifests(reader.index, reader.diagnostics, tuple(reader.parsed))


@dataclass(frozen=True, slots=True)
class _Parsed:
    """The documents of a file, its errors and warnings, and whether all of it could be read."""

    documents: tuple[Document, ...]
    diagnostics: tuple[LocatedDiagnostic, ...]
    whole: bool


@dataclass(slots=True)
class _IndexReader:
    """Reads files into an index; as a context manager, it ends the process that renders templates."""

    index: Index
    values: Mapping[str, Any]
    env_names: Sequence[str]
    secrets: Secrets = no_secrets
    diagnostics: Diagnostics = field(default_factory=Diagnostics)
    parsed: dict[str, "_Parsed"] = field(default_factory=dict)
    _templates: "Templates | None" = None

    def __enter__(self) -> "_IndexReader":
        return self

    def __exit__(self, *_error: object) -> None:
        if self._templates is not None:
            self._templates.close()

    def note(self, searched: Search) -> None:
        """Take up what a search could not find, and what it passed over."""
        self.diagnostics.extend(searched.errors)
        self.index.whole &= not searched.errors
        self.diagnostics.extend(located(path, why_passed_over(path), "warning") for path in searched.passed_over)

    def read(self, path: str, content: bytes | None = None) -> None:
        """Read a file, or its content if that is given."""
        self.parsed[path] = parsed = self._parse(path, content)
        self._add(parsed)

    def share(self, path: str, documents: tuple[Document, ...]) -> None:
        """Take up the documents of a file that was read before, without errors."""
        self.parsed[path] = parsed = _Parsed(documents, (), whole=True)
        self._add(parsed)

    def _parse(self, path: str, content: bytes | None) -> "_Parsed":
        try:
            source = self._rendered(open_source(path, content, self.secrets))
        except ManifestErrors as errors:
            return _Parsed((), errors.diagnostics, whole=False)
        reading = source.read()
        empty = not reading.roots and not reading.errors and not source.own_line
        diagnostics = [*reading.errors, *([located(path, "holds no document", "warning")] if empty else ())]
        roots = enumerate(reading.roots)
        documents = tuple(Document(source, number, root.line, root.value) for number, root in roots)
        return _Parsed(documents, tuple(diagnostics), reading.whole)

    def _add(self, parsed: "_Parsed") -> None:
        self.diagnostics.extend(parsed.diagnostics)
        self.index.whole &= parsed.whole
        for document in parsed.documents:
            for diagnostic in self.index.add(document):
                self.diagnostics.add(document, diagnostic)

    def _rendered(self, source: Source) -> Source:
        if not source.path.endswith(TEMPLATE):
            return source
        if self._templates is None:
            from reconciler.manifests.templates import Templates  # noqa: PLC0415 - only templates need a process

            self._templates = Templates(self.values, self.env_names, secrets=self.secrets)
        return self._templates.source(source.path, source.text)
