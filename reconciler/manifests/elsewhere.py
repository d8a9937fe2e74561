"""The manifests of a repository that the user did not name: what has left the named ones may be declared there."""

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reconciler.manifests.assembly import Assembled, assemble
from reconciler.manifests.catalogue import Catalogue
from reconciler.manifests.contributions import contributions
from reconciler.manifests.explain import sayings
from reconciler.manifests.files import holds_manifest, search
from reconciler.manifests.reading import Reader
from reconciler.manifests.sets import Member
from reconciler.manifests.shapes import shapes_of
from reconciler.model.kind import Kinds
from reconciler.model.state import DesiredTarget
from reconciler.model.targets import Target
from reconciler.system.terminal import escaped


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """All manifests of a repository, also hidden and misnamed ones, as far as they can be read."""

    _assembled: Mapping[Any, Assembled]
    _others: frozenset[str]
    _broken: Mapping[str, str]

    def declared(self, target: Target) -> DesiredTarget | None:
        """Return a target with all that the repository declares of it."""
        found = self._assembled.get(target.identity)
        return None if found is None else found.target

    def place(self, target: Target, section: str) -> str:
        """Return where a section that is `declared` is declared outside of the named manifests, as `path:line`."""
        found = self._assembled[target.identity]
        places = [place for place, _ in sayings(found.effective, (section,))]
        return next((each for each in reversed(places) if each.rpartition(":")[0] in self._others), found.target.origin)

    def mentioned(self, target: Target) -> str | None:
        """Return a file that cannot be read as a manifest and may declare a target, for it mentions it."""
        mention = str(target.level if target.ref is None else target.ref).casefold()
        return next((path for path, text in self._broken.items() if mention in text), None)


def read_elsewhere(
    top: Path,
    named: Sequence[str],
    targets: Iterable[Collection[Target]],
    kinds: Kinds,
    *,
    values: Mapping[str, Any],
    env_names: Sequence[str],
) -> Elsewhere:
    """Read all manifests of a repository.

    Args:
        top: the folder of the checkout.
        named: the files that the user named, which can be read.
        targets: those of interest, each by all its names. A set is about those whose path is below the set's group.
        kinds: the sections there are.
        values: for templates.
        env_names: the environment variables that templates may read.
    """
    found = search([Path(os.path.relpath(top))])
    known = {os.path.realpath(path) for path in named}
    files = [*filter(holds_manifest, found.files), *found.passed_over]
    others = [path for path in files if os.path.realpath(path) not in known]
    with Reader(Catalogue(shapes_of(kinds)), values, env_names) as reader:
        for path in (*named, *others):
            reader.read(path)
    groups = {each.declared.select.group for each in reader.catalogue.sets.values()} - {""}
    named_by_path = [(names, target.ref) for names in targets for target in names if isinstance(target.ref, str)]
    paths = {target: path for names, path in named_by_path for target in names if isinstance(target.ref, int)}
    members = [Member(path) for _, path in named_by_path]
    below = {group: [each for each in members if _is_below(group, each.path)] for group in groups}
    composed = contributions(reader.catalogue, below, paths, reader.complaints)
    assembled = assemble(composed, reader.catalogue, reader.complaints)
    faulty = {fault.path for fault in reader.complaints.faults if fault.severity == "error"}
    broken = [path for path in others if escaped(path) in faulty]
    return Elsewhere(
        {each.target.target.identity: each for each in assembled},
        frozenset(escaped(path) for path in others),
        {path: Path(path).read_text(encoding="utf-8", errors="replace").casefold() for path in broken},
    )


def _is_below(group: str, path: str) -> bool:
    return path.casefold().startswith(f"{group.casefold()}/")
