"""The manifests of another git revision, for `--since`: read, and compared with those of now.

As few files as possible are read, for most are the same in both revisions.
"""

import hashlib
import json
import logging
import os
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from reconciler.errors import ManifestErrors, NeverApplied
from reconciler.gitops.compare import Comparison, Identity, Loss, compare, is_declared, removed
from reconciler.gitops.snapshot import APPLIED_REF, Snapshot, is_as_then, object_id, snapshot
from reconciler.live.discovery import Discovery
from reconciler.live.records import current_names
from reconciler.manifests import Inputs, Manifests, Part, UnlistedSet, read_contents, read_elsewhere, read_found
from reconciler.manifests.creation import HERE, Surroundings
from reconciler.manifests.mentions import may_name_archive
from reconciler.manifests.project_sets import NO_SUCH_GROUP, Discovered
from reconciler.manifests.sources import MANIFEST, read_all, search
from reconciler.model.obstacle import Obstacle
from reconciler.model.protocols import Concurrency, Reader
from reconciler.model.targets import Target
from reconciler.system.terminal import escaped

LOG = logging.getLogger("reconciler")

TEMPLATE = ".j2"


@dataclass(frozen=True, slots=True)
class Past:
    """The manifests of a revision.

    Attributes:
        inputs: what the manifests are read from, then and now.
        then: the revision.
        manifests: as they were; those that are the same now only as far as others depend on them.
        touched: the targets, by `Target.identity`, that can have changed; None if any can.
        with_discovered: returns the manifests once groups are listed and paths are known.
    """

    inputs: Inputs
    then: Snapshot
    manifests: Manifests
    touched: frozenset[Hashable] | None
    with_discovered: Callable[[Discovered, Mapping[Target, str]], Manifests]


@dataclass(frozen=True, slots=True)
class Revisions:
    """The manifests now and at another revision.

    Attributes:
        now: the manifests; maybe without targets that have not changed.
        past: the manifests of the revision; None if nothing was ever applied.
        objects: by file that git had at the revision, the ID of its present content as an object of the repository.
        digest: SHA-256 (hex) of all files, values and variables.
    """

    now: Manifests
    past: Past | None
    objects: Mapping[str, str]
    digest: str


def read_revisions(
    inputs: Inputs, revision: str, *, partly: bool = False, secrets: Collection[str] = (), warn: Callable[..., None]
) -> Revisions:
    """Read the manifests now and of a revision, and warn of what cannot be compared.

    Args:
        inputs: what the manifests are read from.
        revision: as the user names it.
        partly: whether unchanged files may be left out where nothing that has changed depends on them.
        secrets: texts that no message shows.
        warn: logs the warnings about the manifests of now.

    Raises:
        ManifestErrors: with all errors of the files that are read.
        ConfigurationError: the revision cannot be read.
    """
    found = search(inputs.paths)
    contents = read_all(found.files)
    values = inputs.values()
    reading: dict[str, Any] = {"values": values, "env_names": inputs.env_names, "secrets": secrets}
    digest = _digest(contents, values, inputs.env_names)

    @cache
    def whole() -> Manifests:
        manifests = read_found(found, inputs.kinds, contents, **reading)
        warn(manifests.warnings)
        return manifests

    try:
        then = snapshot(revision, inputs.paths[0])
    except NeverApplied as error:
        now = whole()
        LOG.warning(
            "%s: everything is planned, and nothing deleted; if another clone has it, `git fetch` it first: %s",
            error,
            f"git fetch origin +{APPLIED_REF}:{APPLIED_REF}",
        )
        return Revisions(now, None, {}, digest)
    objects = then.manifests(inputs.paths)
    present_objects = {name: object_id(content, objects[name]) for name, content in contents.items() if name in objects}
    same = {
        name for name, id_ in present_objects.items() if id_ == objects[name] and not may_name_archive(contents[name])
    }
    new, old = {*found.files} - same, {name: id_ for name, id_ in objects.items() if name not in same}
    present = Part(found, contents, new, inputs.kinds, **reading) if partly else whole()
    _warn_unless_ancestor(then)
    _warn_of_moved_manifests(inputs, then, objects)
    files = _Files(inputs, then)
    if present.shared_files <= same and files.values == values:
        few = old | {name: objects[name] for name in present.shared_files}
        declared = present.declared_in(new)
        before = files.read(few, among=declared)
        names = {f"{revision}:{name}" for name in old}
        if not files.left_out and not before.shared_files & names:
            former = before.declared_in(names)
            part = present.manifests(former) if isinstance(present, Part) else None
            if part is not None:
                warn(part.warnings)
            past = Past(inputs, then, before, frozenset(former | declared), partial(files.read, few, among=declared))
            return Revisions(part or whole(), past, present_objects, digest)
    past = Past(inputs, then, files.read(objects), None, partial(files.read, objects))
    return Revisions(whole(), past, present_objects, digest)


def _digest(contents: Mapping[str, bytes], values: Mapping[str, Any], env_names: Iterable[str]) -> str:
    """Return a SHA-256 (hex) of all that manifests are made from, in whatever order the files are found."""
    files = {path: hashlib.sha256(content).hexdigest() for path, content in contents.items()}
    variables = {name: os.environ.get(name) for name in env_names}
    return hashlib.sha256(json.dumps([files, values, variables], sort_keys=True, default=str).encode()).hexdigest()


def compare_with_past(
    now: Manifests, past: Past, discovery: Discovery, reader: Reader, concurrency: Concurrency
) -> tuple[Comparison, tuple[Obstacle, ...], tuple[UnlistedSet, ...]]:
    """Compare now with then, without targets that no longer exist, and following those that were renamed.

    A group that no longer exists counts as one without projects. Lost objects that manifests outside the named paths
    still declare are kept: the second value has an obstacle for each target, which says where they are declared. The
    third value are the sets of then whose groups cannot be listed for another reason: objects that only they declared
    stay.
    """
    before, touched = _with_discovered(past, discovery), past.touched
    then = replace(
        before.desired,
        targets=tuple(
            each
            for each in before.desired.targets
            if each.target not in before.pathless and (touched is None or each.target.identity in touched)
        ),
    )
    names = current_names([each.target for each in removed(now.desired, then)], reader, concurrency, discovery.ids)
    present = {target.target.identity for target in now.desired.targets}
    successors = {target.identity: name for target, found in names.items() for name in found if name in present}
    gone = {target.identity for target, found in names.items() if not found}
    then = replace(then, targets=tuple(each for each in then.targets if each.target.identity not in gone))
    if touched is not None:
        touched |= frozenset(successors.values())
    comparing = partial(compare, now.desired, then, past.inputs.kinds, successors, touched)
    comparison = comparing()
    if not comparison.losses:
        return comparison, (), before.unlisted
    kept = _declared_elsewhere(past.inputs, now, past.then.top, comparison.losses, names)
    return comparing(kept=frozenset(kept)), tuple(_still_declared(kept)), before.unlisted


def _with_discovered(past: Past, discovery: Discovery) -> Manifests:
    found = {group: discovery.groups[group] for group in past.manifests.groups}
    shown = {
        group: () if isinstance(members, Obstacle) and members.cause == NO_SUCH_GROUP else members
        for group, members in found.items()
    }
    return past.with_discovered(shown, discovery.paths) if shown or past.manifests.pathless else past.manifests


def _declared_elsewhere(
    inputs: Inputs, now: Manifests, top: Path, losses: Iterable[Loss], names: Mapping[Target, Iterable[Identity]]
) -> dict[Loss, str]:
    """Return the losses that other manifests of the repository still declare, and where."""
    called = {loss.target: [loss.target, *(Target(*name) for name in names.get(loss.target, ()))] for loss in losses}
    elsewhere = read_elsewhere(
        top, now.files, called.values(), inputs.kinds, values=inputs.values(), env_names=inputs.env_names
    )
    present = {target.target for target in now.desired.targets}
    kept: dict[Loss, str] = {}
    for loss in losses:
        for target in called[loss.target]:
            if is_declared(loss, elsewhere.declared(target), inputs.kinds):
                kept[loss] = elsewhere.place(target, loss.section)
            elif target not in present and (file := elsewhere.mentioned(target)) is not None:
                kept[loss] = file
    return kept


def _still_declared(kept: Mapping[Loss, str]) -> Iterator[Obstacle]:
    """Yield for each target what it keeps, and where that is declared."""
    for target in {loss.target: None for loss in kept}:
        places = [place for loss, place in kept.items() if loss.target == target]
        what, them = ("1 object", "it") if len(places) == 1 else (f"{len(places)} objects", "them")
        where = " and ".join(dict.fromkeys(places))
        yield Obstacle(
            target.address,
            f"{what} no longer declared in PATHS, and not deleted because {where} may still declare {them}: add that "
            f"to PATHS, or remove {them} there too",
        )


class _Files:
    """The manifests of a revision, without those that were not valid then: nothing is known of them.

    Attributes:
        values: the values for templates then; None if they were not valid.
        left_out: the files that were not valid.
    """

    def __init__(self, inputs: Inputs, then: Snapshot) -> None:
        self._inputs, self._then = inputs, then
        self._around = Surroundings(f"{then.revision}:", partial(_archive_then, then))
        self.left_out: set[str] = set()
        self.values: dict[str, Any] | None = None
        try:
            self.values = inputs.values(then.file)
        except ManifestErrors as errors:
            self._warn("the values for templates are not valid at that revision; all templates are left out", errors)

    def read(
        self,
        objects: Mapping[str, str],
        discovered: Discovered | None = None,
        paths: Mapping[Target, str] | None = None,
        *,
        among: Collection[Hashable] | None = None,
    ) -> Manifests:
        """Read files, given the object of each; see `Manifests.with_discovered` and `read_contents`."""
        while True:
            names = [name for name in objects if name not in self.left_out and not self._lacks_values(name)]
            try:
                contents = self._then.contents({name: objects[name] for name in names})
                env_names = self._inputs.env_names
                kinds, values = self._inputs.kinds, self.values or {}
                found = read_contents(
                    contents, kinds, values=values, env_names=env_names, among=among, around=self._around
                )
                return found if discovered is None else found.with_discovered(discovered, paths or {})
            except ManifestErrors as errors:
                wrong = {diagnostic.path for diagnostic in errors.diagnostics if diagnostic.severity == "error"}
                broken = [name for name in names if escaped(f"{self._then.revision}:{name}") in wrong] or names
                self.left_out |= set(broken)
                self._warn(f"files with errors at that revision are left out: {', '.join(broken)}", errors)

    def _lacks_values(self, name: str) -> bool:
        return self.values is None and name.endswith(TEMPLATE)

    def _warn(self, what: str, errors: ManifestErrors) -> None:
        diagnostics = "\n".join(str(diagnostic) for diagnostic in errors.diagnostics if diagnostic.severity == "error")
        LOG.warning(
            "--since %s: %s; objects declared only there are not deleted\n%s", self._then.revision, what, diagnostics
        )


def _archive_then(then: Snapshot, archive: Path) -> str:
    """Return the digest of an archive as it was; another text if it was another, or if git does not keep it."""
    known = then.object(archive)
    return HERE.digest(archive) if known and is_as_then(str(archive), known) else f"then {known}"


def _warn_unless_ancestor(then: Snapshot) -> None:
    parted = then.parted()
    if parted is not None:
        remedy = f"; to keep it, use the common ancestor: --since {parted}" if parted else ""
        LOG.warning(
            "--since %s: this revision is not an ancestor of the checked-out commit; anything declared there since "
            "the two parted counts as removed%s",
            then.revision,
            remedy,
        )


def _warn_of_moved_manifests(inputs: Inputs, then: Snapshot, objects: Mapping[str, str]) -> None:
    """Warn of what is not compared because the manifests were in other folders then."""
    absent = [str(path) for path in inputs.paths if not then.manifests([path])]
    if not absent:
        return
    everything = then.manifests([*inputs.paths, Path(os.path.relpath(then.top))])
    moved = {name: id_ for name, id_ in everything.items() if name not in objects and not Path(name).exists()}
    found = [
        name
        for (name, id_), content in zip(moved.items(), then.contents(moved).values(), strict=True)
        if MANIFEST in content
    ]
    if found:
        LOG.warning(
            "--since %s: %s held no manifests at that revision, and these manifests no longer exist: %s; objects "
            "declared only there are not deleted; to compare both, name a folder that contains both places",
            then.revision,
            ", ".join(absent),
            ", ".join(found),
        )
