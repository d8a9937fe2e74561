"""`--since`: the manifests as they were at a revision, and what has become of them."""

import os
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reconciler.cli.settings import template_variables
from reconciler.errors import ManifestErrors

if TYPE_CHECKING:
    from reconciler.cli.session import Session
    from reconciler.gitops.compare import Comparison, Identity, Loss
    from reconciler.gitops.snapshot import Snapshot
    from reconciler.live.discovery import Discovery
    from reconciler.manifests import Manifests
    from reconciler.manifests.project_sets import Discovered
    from reconciler.model.protocols import Reader
    from reconciler.model.targets import Target

TEMPLATE = ".j2"


@dataclass(frozen=True, slots=True)
class Past:
    """The manifests of a revision.

    Attributes:
        then: the revision.
        manifests: as they were; those that are the same now only as far as others depend on them.
        touched: the targets, by `Target.identity`, that can have changed; None if any can.
        with_discovered: returns the manifests as they are once groups are listed and paths are known.
    """

    then: "Snapshot"
    manifests: "Manifests"
    touched: frozenset[Hashable] | None
    with_discovered: "Callable[[Discovered, Mapping[Target, str]], Manifests]"


def read_past(session: "Session", now: "Manifests", revision: str) -> Past:
    """Read the manifests of a revision: as few of them as it takes, for most will be the same as now.

    Raises:
        ConfigurationError: the revision cannot be read.
    """
    from reconciler.gitops.snapshot import is_as_then, snapshot

    then = snapshot(revision, session.paths[0])
    _warn_of_parting(session, then)
    objects = then.manifests(session.paths)
    _warn_of_absence(session, then, objects)
    files = _Files(session, then)
    same = {name for name in now.files if name in objects and is_as_then(name, objects[name])}
    shared = now.shared_files
    if shared <= same and files.values == session.template_values():
        changed = {name: id_ for name, id_ in objects.items() if name not in same}
        few = changed | {name: objects[name] for name in shared}
        past = files.read(few)
        names = {f"{revision}:{name}" for name in changed}
        if not files.left_out and not past.shared_files & names:
            touched = past.declared_in(names) | now.declared_in(set(now.files) - same)
            return Past(then, past, touched, partial(files.read, few))
    return Past(then, files.read(objects), None, partial(files.read, objects))


def compare_with_past(
    session: "Session", now: "Manifests", past: Past, discovery: "Discovery", reader: "Reader"
) -> "tuple[Comparison, Mapping[Target, str]]":
    """Compare now with then, less what is not there any more, and knowing what is only called otherwise.

    A group that is gone by now counts as one without projects. What was lost and is declared by manifests that the user
    did not name is not to be deleted: the second value says of each target where that is.

    Raises:
        ManifestErrors: a group cannot be listed for another reason.
    """
    from reconciler.gitops.compare import compare, removed
    from reconciler.live.records import current_names

    before = _with_discovered(past, discovery)
    then = replace(
        before.desired, targets=tuple(each for each in before.desired.targets if each.target not in before.pathless)
    )
    touched = past.touched
    if touched is not None:
        then = replace(then, targets=tuple(each for each in then.targets if each.target.identity in touched))
    lost = current_names(
        [each.target for each in removed(now.desired, then)], reader, session.given.concurrency, discovery.ids
    )
    present = {target.target.identity for target in now.desired.targets}
    successors = {scope.identity: name for scope, names in lost.items() for name in names if name in present}
    gone = {scope.identity for scope, names in lost.items() if not names}
    then = replace(then, targets=tuple(each for each in then.targets if each.target.identity not in gone))
    if touched is not None:
        touched |= frozenset(successors.values())
    comparing = partial(compare, now.desired, then, session.kinds, successors, touched)
    comparison = comparing()
    if not comparison.losses:
        return comparison, {}
    kept = _declared_elsewhere(session, now, past.then.top, comparison.losses, lost)
    return comparing(kept=frozenset(kept)), _reasons(kept)


def _with_discovered(past: Past, discovery: "Discovery") -> "Manifests":
    from reconciler.manifests import Hidden

    found = {group: discovery.groups[group] for group in past.manifests.groups}
    shown = {
        group: () if isinstance(members, Hidden) and members.absent else members for group, members in found.items()
    }
    return past.with_discovered(shown, discovery.paths) if shown or past.manifests.pathless else past.manifests


def _declared_elsewhere(
    session: "Session",
    now: "Manifests",
    top: Path,
    losses: "Iterable[Loss]",
    names: "Mapping[Target, Iterable[Identity]]",
) -> "dict[Loss, str]":
    """Return what was lost and is declared by manifests of the repository that the user did not name, and where."""
    from reconciler.gitops.compare import is_declared
    from reconciler.manifests import read_elsewhere
    from reconciler.model.targets import Target

    called = {loss.target: [loss.target, *(Target(*name) for name in names.get(loss.target, ()))] for loss in losses}
    elsewhere = read_elsewhere(
        top,
        now.files,
        called.values(),
        session.kinds,
        values=session.template_values(),
        env_names=template_variables(session.given),
    )
    present = {target.target for target in now.desired.targets}
    kept: dict[Loss, str] = {}
    for loss in losses:
        for scope in called[loss.target]:
            if is_declared(loss, elsewhere.declared(scope), session.kinds):
                kept[loss] = elsewhere.place(scope, loss.section)
            elif scope not in present and (file := elsewhere.mentioned(scope)) is not None:
                kept[loss] = file
    return kept


def _reasons(kept: "Mapping[Loss, str]") -> "dict[Target, str]":
    """Say of each target what it keeps, and where that is declared."""
    reasons = {}
    for target in {loss.target: None for loss in kept}:
        places = [place for loss, place in kept.items() if loss.target == target]
        what, them = ("1 object", "it") if len(places) == 1 else (f"{len(places)} objects", "them")
        where = " and ".join(dict.fromkeys(places))
        reasons[target] = (
            f"{what} no longer declared in PATHS, and not deleted because {where} may still declare {them}: add that "
            f"to PATHS, or remove {them} there too"
        )
    return reasons


class _Files:
    """The manifests of a revision, less those that were not valid then: nothing is known of them.

    Attributes:
        values: what templates were given then; None if that was not valid.
        left_out: the files that were not valid.
    """

    def __init__(self, session: "Session", then: "Snapshot") -> None:
        self._session, self._then = session, then
        self.left_out: set[str] = set()
        self.values: dict[str, Any] | None = None
        try:
            self.values = session.template_values(then.file)
        except ManifestErrors as errors:
            self._warn("the values of templates were not valid then, and all templates are left out", errors)

    def read(
        self,
        objects: Mapping[str, str],
        discovered: "Discovered | None" = None,
        paths: "Mapping[Target, str] | None" = None,
    ) -> "Manifests":
        """Read files, given the object of each; see `Manifests.with_discovered`.

        Raises:
            ManifestErrors: something is wrong that leaving a file out does not mend.
        """
        from reconciler.manifests import Hidden, read_contents
        from reconciler.system.terminal import escaped

        while True:
            names = [name for name in objects if name not in self.left_out and not self._lacks_values(name)]
            try:
                contents = self._then.contents({name: objects[name] for name in names})
                variables = template_variables(self._session.given)
                found = read_contents(contents, self._session.kinds, values=self.values or {}, env_names=variables)
                return found if discovered is None else found.with_discovered(discovered, paths or {})
            except ManifestErrors as errors:
                wrong = {each.path for each in errors.diagnostics if each.severity == "error"}
                broken = [name for name in names if escaped(f"{self._then.revision}:{name}") in wrong]
                if not broken or any(isinstance(each, Hidden) for each in (discovered or {}).values()):
                    raise
                self.left_out |= set(broken)
                self._warn(f"files with errors at that revision are left out: {', '.join(broken)}", errors)

    def _lacks_values(self, name: str) -> bool:
        return self.values is None and name.endswith(TEMPLATE)

    def _warn(self, what: str, errors: ManifestErrors) -> None:
        found = "\n".join(str(each) for each in errors.diagnostics if each.severity == "error")
        warning = f"--since {self._then.revision}: {what}; nothing is deleted that was declared only there"
        self._session.warn([f"{warning}\n{found}"])


def _warn_of_parting(session: "Session", then: "Snapshot") -> None:
    parted = then.parted()
    if parted is not None:
        instead = f"; to leave that alone, give --since {parted}, where the two parted" if parted else ""
        session.warn(
            [
                f"--since {then.revision}: this is no ancestor of what is checked out: what was declared there since, "
                f"and is not here, counts as removed{instead}"
            ]
        )


def _warn_of_absence(session: "Session", then: "Snapshot", objects: Mapping[str, str]) -> None:
    """Tell what is not compared because the manifests stood elsewhere then."""
    from reconciler.manifests.sources import MANIFEST

    absent = [str(path) for path in session.paths if not then.manifests([path])]
    if not absent:
        return
    everything = then.manifests([*session.paths, Path(os.path.relpath(then.top))])
    moved = {name: id_ for name, id_ in everything.items() if name not in objects and not Path(name).exists()}
    found = [
        name
        for (name, id_), content in zip(moved.items(), then.contents(moved).values(), strict=True)
        if MANIFEST in content
    ]
    if found:
        session.warn(
            [
                f"--since {then.revision}: {', '.join(absent)} held no manifests then, and manifests elsewhere are "
                f"gone since: {', '.join(found)}; nothing is deleted that was declared only there; to compare them, "
                "name a folder that holds both places"
            ]
        )
