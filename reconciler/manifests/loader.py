"""Files to `Manifests`: searched, rendered, read, added to an index, and merged."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from reconciler.errors import ManifestErrors
from reconciler.manifests.creation import Surroundings
from reconciler.manifests.diagnostics import Diagnostics
from reconciler.manifests.index import Index, everywhere, nowhere
from reconciler.manifests.manifests import Manifests, merge_manifests
from reconciler.manifests.sources import (
    TEMPLATE,
    Document,
    Secrets,
    located,
    no_secrets,
    open_source,
    read_mapping,
    search,
    why_passed_over,
)
from reconciler.manifests.stack.sections import section_specs
from reconciler.manifests.templates import Templates
from reconciler.model.kind import Kinds
from reconciler.system import clock

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


def read_manifests(inputs: Inputs, *, locks_bind: bool = True, dated: bool = True) -> Manifests:
    """Read, render, merge and check the manifests in files and folders.

    Templates may read the values of `inputs`, and the environment variables in its `env_names` as `env.NAME`. Unless
    `locks_bind`, a broken lock is no error yet: see `Manifests.deviations`. Unless `dated`, nothing warns of exceptions
    that end: see `Manifests.ending`.

    Raises:
        ManifestErrors: with all errors of all files.
        ConfigurationError: a value is called `env` beside environment variables.
    """
    templates = Templates(inputs.values(), inputs.env_names, secrets=inputs.secrets)
    searched = search(inputs.paths)
    passed_over = [located(path, why_passed_over(path), "warning") for path in searched.passed_over]
    index = Index(
        section_specs(inputs.kinds),
        whole=not searched.errors,
        today=clock.today() if dated else None,
        around=Surroundings(secrets=inputs.secrets),
        binds=everywhere if locks_bind else nowhere,
    )
    diagnostics = Diagnostics(dict.fromkeys([*searched.errors, *passed_over]))
    return _read(dict.fromkeys(searched.files), templates, index, diagnostics)


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
        contents: of the files; of one that was read before, its documents, as of `Index.documents_by_file`.
        kinds: all kinds.
        values: of templates.
        env_names: see `Inputs`.
        around: what `create` refers to; without it, archives are not looked at.
    """
    return _read(contents, Templates(values, env_names), Index(section_specs(kinds), around=around), Diagnostics())


def _read(
    contents: Mapping[str, bytes | tuple[Document, ...] | None],
    templates: Templates,
    index: Index,
    diagnostics: Diagnostics,
) -> Manifests:
    """Add the documents of files to an index, and merge them; the content of what is on disk is None."""
    with closing(templates):
        for path, content in contents.items():
            if isinstance(content, tuple):
                index.extend(content, diagnostics)
                continue
            try:
                source = open_source(path, content, index.around.secrets)
                if path.endswith(TEMPLATE):
                    source = templates.source(path, source.text)
            except ManifestErrors as errors:
                diagnostics.extend(errors.diagnostics)
                index.whole = False
                continue
            reading = source.read()
            diagnostics.add_unreadable(reading.errors)
            index.whole &= reading.whole
            if not (reading.documents or reading.errors or source.own_line):
                diagnostics.extend([located(path, "holds no document", "warning")])
            index.extend(reading.documents, diagnostics)
    return merge_manifests(index, diagnostics, tuple(contents))
