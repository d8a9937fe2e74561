"""The manifests of a git revision, read with the `reconciler.yaml` of that revision.

`--since REV` compares them with the present ones, and `proof` looks in them for deleted objects. Begin with
`read_revision`. Files that have not changed since are not parsed again: their documents are shared.
"""

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from reconciler import CONFIGURATION
from reconciler.errors import ManifestErrors
from reconciler.manifests import Inputs, Manifests, read_contents
from reconciler.manifests.creation import OWN_SURROUNDINGS, Surroundings
from reconciler.manifests.project_sets import NO_BRANCHES, Branches, Discovered
from reconciler.manifests.sources import Document, open_source, read_mapping
from reconciler.memory.snapshot import Snapshot, equals_object, object_id
from reconciler.model.state import DesiredTarget
from reconciler.model.targets import Identity, Target
from reconciler.system.checkout import in_ci
from reconciler.system.processes import own_tokens, reveals_token
from reconciler.system.terminal import escaped

DEFAULT_PATHS = ("manifests",)
TEMPLATE = ".j2"


@dataclass(frozen=True, slots=True)
class Revision:
    """The manifests of a revision.

    Attributes:
        then: the revision.
        inputs: the sources of its manifests, according to its own `reconciler.yaml`.
        manifests: the valid manifests.
        warnings: about invalid files, several lines each.
    """

    then: Snapshot
    inputs: Inputs
    manifests: Manifests
    warnings: tuple[str, ...]
    _files: Mapping[str, bytes | tuple[Document, ...]] = field(repr=False)
    _values: Mapping[str, Any] | None = field(repr=False)

    @property
    def declared(self) -> tuple[DesiredTarget, ...]:
        """The targets whose placeholders are filled in; for others, the path of an ID is not known yet."""
        pathless = {*self.manifests.pathless}
        return tuple(target for target in self.manifests.desired.targets if target.target not in pathless)

    def with_moved(self, present_paths: Mapping[Identity, str]) -> "Revision":
        """Return the revision with the present paths of moved groups and projects; see `Manifests.with_moved`."""
        return replace(self, manifests=self.manifests.with_moved(present_paths))

    def with_branches(self, branches: Branches) -> "Revision":
        """Return the revision with further default branches."""
        return replace(self, manifests=self.manifests.with_branches(branches)) if branches else self

    def with_discovered(
        self, discovered: Discovered, paths: Mapping[Target, str], branches: Branches = NO_BRANCHES
    ) -> "Revision":
        """Return the revision with all sets applied; see `Manifests.with_discovered`."""
        known = discovered, paths, branches
        manifests, files, warnings = _read(
            self.then, self.inputs, self._files, self._values, manifests=self.manifests, discovery=known
        )
        return replace(self, manifests=manifests, warnings=(*self.warnings, *warnings), _files=files)


def read_revision(
    then: Snapshot,
    current_inputs: Inputs,
    present: Manifests | None = None,
    *,
    given: Collection[str] = (),
) -> Revision:
    """Read the manifests of a revision.

    Args:
        then: the revision.
        current_inputs: the sources of the present manifests.
        present: the manifests of now, whose documents are shared; None to read all.
        given: which of `paths`, `values`, `set` and `env` are options of this run, instead of keys of
            `reconciler.yaml`: the options are used for the revision too.

    Raises:
        ManifestErrors: its `reconciler.yaml` is not valid, so that its manifests are unknown.
        ConfigurationError: a path is outside the repository, or objects of the revision are missing in this clone.
    """
    inputs = _inputs(then, current_inputs, given)
    objects = then.manifests(inputs.paths)
    warnings = []
    values: Mapping[str, Any] | None
    try:
        values = inputs.values(then.file)
    except ManifestErrors as errors:
        values = None
        warnings.append(_warning(then, "the values for templates are not valid there; no template is read", errors))
    shared = {} if present is None else _shared(present, objects)
    read = [name for name in objects if values is not None or not name.endswith(TEMPLATE)]
    others = {name: objects[name] for name in read if name not in shared}
    contents = dict(zip(others, then.contents(others).values(), strict=True))
    files = {name: shared.get(name) or contents[name] for name in read}
    manifests, kept, more = _read(then, inputs, files, values)
    return Revision(then, inputs, manifests, (*warnings, *more), kept, values)


def _inputs(then: Snapshot, current_inputs: Inputs, given: Collection[str]) -> Inputs:
    """Return the sources of the manifests of a revision."""
    content = then.file(Path(CONFIGURATION))
    source = f"{then.revision}:{CONFIGURATION}"
    settings = {} if content is None else read_mapping(open_source(source, content))
    paths = (
        current_inputs.paths
        if "paths" in given
        else [Path(path) for path in _texts(settings, "paths") or DEFAULT_PATHS]
    )
    values = current_inputs.values_files if "values" in given else _texts(settings, "values")
    tokens = own_tokens(os.environ) | frozenset(current_inputs.secrets())
    # In a CI job, the repository does not decide which variables templates read.
    named = current_inputs.env_names if "env" in given or in_ci() else _texts(settings, "env")
    env_names = [name for name in named if not reveals_token(name, os.environ.get(name, ""), tokens)]
    pairs = current_inputs.settings if "set" in given else _pairs(settings, "set")
    return Inputs(paths, current_inputs.kinds, values, pairs, env_names, current_inputs.secrets)


def _texts(settings: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """Return the strings of a key that takes one or several.

    Values of other types were invalid then too, and are ignored.
    """
    value = settings.get(key)
    values = value if isinstance(value, list) else [value]
    return tuple(value for value in values if isinstance(value, str) and value)


def _pairs(settings: Mapping[str, Any], key: str) -> dict[str, str]:
    """Return the texts of a key that takes a mapping; values of other types were invalid then too, and are ignored."""
    value = settings.get(key)
    pairs = value.items() if isinstance(value, dict) else ()
    return {name: text for name, text in pairs if isinstance(text, str)}


def _shared(present: Manifests, object_ids: Mapping[str, str]) -> dict[str, tuple[Document, ...]]:
    """Return the documents of the files that have not changed since the revision."""
    return {
        name: documents
        for name, documents in present.index.documents_by_file.items()
        if name in object_ids and object_id(documents[0].source.text.encode(), object_ids[name]) == object_ids[name]
    }


def _read(
    then: Snapshot,
    inputs: Inputs,
    file_contents: Mapping[str, bytes | tuple[Document, ...]],
    template_values: Mapping[str, Any] | None,
    *,
    manifests: Manifests | None = None,
    discovery: tuple[Discovered, Mapping[Target, str], Branches] | None = None,
) -> tuple[Manifests, Mapping[str, bytes | tuple[Document, ...]], tuple[str, ...]]:
    """Return the manifests in some files, the valid files, and a warning about the invalid files."""
    surroundings = Surroundings(f"{then.revision}:", partial(_archive_then, then))
    warnings: list[str] = []
    while True:
        contents = {
            f"{then.revision}:{name}" if isinstance(content, bytes) else name: content
            for name, content in file_contents.items()
        }
        try:
            manifests = manifests or read_contents(
                contents,
                inputs.kinds,
                values=template_values or {},
                env_names=inputs.env_names,
                surroundings=surroundings,
            )
            return (manifests.with_discovered(*discovery) if discovery else manifests), file_contents, tuple(warnings)
        except ManifestErrors as errors:
            wrong = {diagnostic.path for diagnostic in errors.diagnostics if diagnostic.severity == "error"}
            shown = {name: {escaped(f"{then.revision}:{name}"), escaped(name)} for name in file_contents}
            # Each round drops at least one file, so the loop ends; an error without a file drops all.
            broken = [name for name, paths in shown.items() if paths & wrong] or [*file_contents]
            file_contents = {name: content for name, content in file_contents.items() if name not in broken}
            manifests = None
            warnings.append(_warning(then, f"files with errors there are left out: {', '.join(broken)}", errors))


def _warning(then: Snapshot, what: str, manifest_errors: ManifestErrors) -> str:
    diagnostics = "\n".join(
        str(diagnostic) for diagnostic in manifest_errors.diagnostics if diagnostic.severity == "error"
    )
    return f"{then.revision}: {what}\n{diagnostics}"


def _archive_then(then: Snapshot, archive: Path) -> str:
    """Return the digest of an archive in the revision.

    A text that is no digest if it has changed, or git does not track it.
    """
    known = then.object(archive)
    return OWN_SURROUNDINGS.digest(archive) if known and equals_object(str(archive), known) else f"then {known}"
