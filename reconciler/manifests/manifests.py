"""The manifests as the rest of the tool sees them: the desired state, and where it comes from."""

import gc
from collections import Counter
from collections.abc import Collection, Container, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from reconciler.errors import Fault, ManifestErrors
from reconciler.manifests.assembly import Assembled, assemble, desired_state
from reconciler.manifests.catalogue import Catalogue
from reconciler.manifests.complaints import Complaints
from reconciler.manifests.contributions import contributions
from reconciler.manifests.explain import path_within, sayings, steps
from reconciler.manifests.placeholders import literal
from reconciler.manifests.reading import Reader
from reconciler.manifests.sets import Discovered
from reconciler.manifests.shapes import shapes_of
from reconciler.model.kind import Kinds
from reconciler.model.state import DesiredState
from reconciler.model.targets import LEVELS, Address, Target

Identity = Hashable
"""See `Target.identity`."""

NO_VALUES: Mapping[str, Any] = MappingProxyType({})
NO_PATHS: Mapping[Target, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Manifests:
    """What the manifests declare, merged and free of faults.

    Attributes:
        desired: all targets. As long as groups are to be discovered, the sets that name them have a say only in
            projects with documents of their own.
        warnings: what is doubtful, sorted by place.
        advice: what only `validate` warns of, sorted by place.
        files: those read, as the user named them.
    """

    desired: DesiredState
    warnings: tuple[Fault, ...]
    advice: tuple[Fault, ...]
    files: tuple[str, ...]
    _catalogue: Catalogue = field(repr=False, compare=False)
    _assembled: Mapping[Any, Assembled] = field(repr=False, compare=False)

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups whose projects are to be discovered, sorted, as the sets name them."""
        selected = (declared.declared.select.group for declared in self._catalogue.sets.values())
        return tuple(sorted({group for group in selected if group}))

    @property
    def groups_with_archived(self) -> frozenset[str]:
        """Those of `groups` of which a set asks for archived projects too."""
        selected = (declared.declared.select for declared in self._catalogue.sets.values())
        return frozenset(select.group for select in selected if select.group and select.archived)

    @property
    def documents(self) -> dict[str, int]:
        """How many documents there are of each sort, those left out of which there are none."""
        numbers = dict(Counter(str(declared.target.level) for declared in self._catalogue.targets.values()))
        ordered = {level.value: numbers.get(level.value, 0) for level in LEVELS}
        ordered |= {"set": len(self._catalogue.sets), "profile": len(self._catalogue.profiles)}
        return {sort: number for sort, number in ordered.items() if number}

    @property
    def shared_files(self) -> frozenset[str]:
        """Those of `files` that have a say in more than the targets they declare: they hold profiles or sets."""
        layers = [*self._catalogue.profiles.values(), *(each.layer for each in self._catalogue.sets.values())]
        return frozenset(layer.document.source.path for layer in layers)

    def declared_in(self, files: Container[str]) -> frozenset[Identity]:
        """Return the targets that have documents in some files, by `Target.identity`."""
        declared = self._catalogue.targets.items()
        return frozenset(identity for identity, each in declared if each.layer.document.source.path in files)

    @property
    def pathless(self) -> tuple[Target, ...]:
        """The targets given by ID whose placeholders wait for their paths."""
        return tuple(each.target.target for each in self._assembled.values() if each.effective.values is None)

    def with_discovered(self, discovered: Discovered | None, paths: Mapping[Target, str] = NO_PATHS) -> "Manifests":
        """Return the manifests with the sets in force, and with placeholders filled in wherever a path is known.

        Args:
            discovered: for each of `groups` the projects below it; None if nobody has asked the service yet.
            paths: the full paths of targets that are given by ID, as far as they are known.

        Raises:
            ManifestErrors: what is wrong shows only now, such as two sets that disagree on a project, or a group whose
                projects cannot be listed.
            KeyError: a group is missing.
        """
        with _collector_paused():
            return _assembled_manifests(self._catalogue, Complaints(), self.files, discovered, paths)

    def effective(self, target: Target) -> dict[str, Any]:
        """Return the merged spec of a target as plain data of its own.

        Raises:
            KeyError: no such target.
        """
        whole = self._assembled[target.identity].effective
        spec: dict[str, Any] = _copied({**({"prune": whole.prune} if whole.prune else {}), **whole.sections})
        return spec

    def as_written(self, target: Target) -> dict[str, Any]:
        """Return the merged spec of a target as a manifest of its own has to write it to come to the same.

        Raises:
            KeyError: no such target.
        """
        spec = self.effective(target)
        written: dict[str, Any] = spec if target in self.pathless else literal(spec)
        return written

    def origin(self, address: Address, field: str | None = None) -> str:
        """Return where an object, or a field of it, is asked for, as `path:line`; empty where no manifest does.

        Nothing is kept for it beforehand: only where something is wrong is anybody asked where it stands.
        """
        whole = self._assembled.get(address.target.identity)
        if whole is None or address.section not in whole.effective.sections:
            return ""
        section = whole.effective.sections[address.section]
        path = path_within(section, () if address.part == address.section else (address.part,), address.name, field)
        _, place = whole.effective.find((address.section, *path), key=True)
        return place.line

    def explain(self, target: Target, path: str | Sequence[str | int]) -> list[tuple[str, Any]]:
        """Return who has a say in a field of a target's spec, lowest layer first, as `path:line` and value.

        Args:
            target: the target.
            path: the keys from the spec downwards, as a sequence or joined by dots (keys may hold dots themselves).

        Returns:
            Nothing if the merged spec has no such field.

        Raises:
            KeyError: no such target.
        """
        found = steps(path, self.effective(target)) if isinstance(path, str) else tuple(path)
        return list(sayings(self._assembled[target.identity].effective, found)) if found else []


def read_manifests(
    paths: Sequence[Path],
    kinds: Kinds,
    *,
    values: Mapping[str, Any] = NO_VALUES,
    env_names: Sequence[str] = (),
    secrets: Collection[str] = (),
) -> Manifests:
    """Read, render, merge and check manifests.

    Args:
        paths: files, and folders to search.
        kinds: the sections there are.
        values: for templates.
        env_names: the environment variables that templates may read, as `env.NAME`.
        secrets: what is kept out of messages, wherever it comes from.

    Raises:
        ManifestErrors: with all faults of all files.
        ConfigurationError: a value is called `env` beside environment variables.
    """
    with _collector_paused(), Reader(Catalogue(shapes_of(kinds)), values, env_names, secrets) as reader:
        reader.search(paths)
        return _assembled_manifests(reader.catalogue, reader.complaints, tuple(reader.files))


def read_contents(
    contents: Mapping[str, bytes], kinds: Kinds, *, values: Mapping[str, Any] = NO_VALUES, env_names: Sequence[str] = ()
) -> Manifests:
    """Do as `read_manifests` does, with files that are not on disk, such as those of another git revision.

    Args:
        contents: what is in each file, by its path; see `is_manifest`.
        kinds: the sections there are.
        values: for templates.
        env_names: the environment variables that templates may read, as `env.NAME`.

    Raises:
        ManifestErrors: with all faults of all files.
        ConfigurationError: a value is called `env` beside environment variables.
    """
    with _collector_paused(), Reader(Catalogue(shapes_of(kinds)), values, env_names) as reader:
        for path, content in contents.items():
            reader.read(path, content)
        return _assembled_manifests(reader.catalogue, reader.complaints, tuple(reader.files))


def _assembled_manifests(
    catalogue: Catalogue,
    complaints: Complaints,
    files: tuple[str, ...],
    discovered: Discovered | None = None,
    paths: Mapping[Target, str] = NO_PATHS,
) -> Manifests:
    """Return the manifests that a catalogue comes to.

    Raises:
        ManifestErrors: with all faults.
    """
    targets = assemble(contributions(catalogue, discovered, paths, complaints), catalogue, complaints)
    if complaints.errors:
        raise ManifestErrors(complaints.faults)
    by_identity = {each.target.target.identity: each for each in targets}
    return Manifests(desired_state(targets), complaints.warnings, complaints.advice, files, catalogue, by_identity)


def _copied(value: Any) -> Any:
    """Copy a value; what aliases share is no longer shared."""
    if isinstance(value, dict):
        return {key: _copied(inner) for key, inner in value.items()}
    return [_copied(inner) for inner in value] if isinstance(value, list) else value


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Keep Python from looking for garbage: of a fleet's manifests nearly all stays, and to look costs a third more.

    What is there by then is not looked at later either; what nobody refers to any more is given back all the same.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if enabled:
            gc.enable()
