"""The proof of deletions by absence: whether the manifests of a commit declared what the inventory says they did.

`absence` asks `Proof.declares` before it deletes an object: everyone who can push to the branch can write the
inventory, and must not be able to delete an object that no manifest ever declared.
"""

import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from reconciler.errors import ConfigurationError, ManifestErrors
from reconciler.manifests import Inputs, Manifests
from reconciler.manifests.layers import DEFAULT_BRANCH
from reconciler.manifests.project_sets import Branches, Discovered, Member, by_group
from reconciler.memory.absence import SHORT_SHA_LENGTH, is_declared
from reconciler.memory.inventory import ObjectLine
from reconciler.memory.revision import Revision, read_revision
from reconciler.memory.snapshot import snapshot
from reconciler.model.state import DesiredState
from reconciler.model.targets import Identity, Key, Level, Target

LOG = logging.getLogger("reconciler")

EMPTY_STATE = DesiredState((), "")


@dataclass(frozen=True, slots=True)
class Proof:
    """The manifests of earlier commits, each read once, when the first deletion names the commit.

    Attributes:
        folder: the working directory, in the checkout.
        inputs: the sources of the present manifests.
        present: the present manifests.
        discovered: the members of groups. Of a group that no present set names, these are the present targets below it.
        paths: the known full paths of targets that are named by ID.
        called: returns the identities of a target of the inventory: its ID and its path; empty if it is gone.
        listed_as: returns the path that only the inventory gives a target, such as a former one; None without one.
        was_called: returns whether another source than the inventory confirms that a target had a path. It is called
            only if the path would prove a deletion.
        branches: the default branches of projects whose records were read.
        default_branch: returns the present default branch of a target; None if it is unknown. It is called only if the
            name would prove a deletion.
        asked: the paths that `was_called` was called with.
    """

    folder: Path
    inputs: Inputs
    present: Manifests
    discovered: Discovered
    paths: Mapping[Target, str]
    called: Callable[[str], Collection[Identity]]
    listed_as: Callable[[str], Target | None] = lambda _name: None
    was_called: Callable[[str, Target], bool] = lambda _name, _former: False
    branches: Branches = field(default_factory=dict)
    default_branch: Callable[[str], str | None] = lambda _name: None
    asked: set[Target] = field(default_factory=set, repr=False)
    _read: dict[str, DesiredState] = field(default_factory=dict, repr=False)

    def declares(self, object_line: ObjectLine) -> bool:
        """Return whether the manifests at the commit of a line declare its object for its target.

        Manifests that cannot be read declare nothing; a warning says so.
        """
        then, kinds = self._then(object_line), self.inputs.kinds
        if is_declared(object_line, self.called(object_line.target), then, kinds):
            return True
        if self.was_of_default_branch(object_line):
            return self.default_branch(object_line.target) == object_line.name
        former = self.listed_as(object_line.target)
        if former is None or not is_declared(object_line, {former.identity}, then, kinds):
            return False
        # only the inventory says that this was its path, and whoever can push can write there: the service has to
        # confirm it
        self.asked.add(former)
        return self.was_called(object_line.target, former)

    def renames(self, object_line: ObjectLine, former_name: Key) -> bool:
        """Return whether the manifests at the commit of a line declare its object by a former name as well."""
        listed = self.listed_as(object_line.target)
        called = {*self.called(object_line.target), *([listed.identity] if listed else ())}
        return is_declared(object_line, called, self._then(object_line), self.inputs.kinds, former_name=former_name)

    def was_of_default_branch(self, object_line: ObjectLine) -> bool:
        """Return whether the manifests at the commit of a line declare its object by `{default_branch}`."""
        called, then = self.called(object_line.target), self._then(object_line)
        named = replace(object_line, name=f"{{{DEFAULT_BRANCH}}}")
        return is_declared(named, called, then, self.inputs.kinds, as_written=True)

    def _then(self, object_line: ObjectLine) -> DesiredState:
        if object_line.at not in self._read:
            self._read[object_line.at] = self._declared_at(object_line.at)
        return self._read[object_line.at]

    def revision(self, commit: str) -> Revision:
        """Return the manifests of a commit, with the known groups and paths.

        Raises:
            ManifestErrors, ConfigurationError: see `read_revision`.
        """
        revision = read_revision(snapshot(commit, self.folder), self.inputs, self.present)
        listed = {group.casefold(): members for group, members in self.discovered.items()}
        below = by_group(self._present_projects, lambda member: member.path)
        groups = {
            group: listed.get(group.casefold(), below.get(group.casefold(), ()))
            for group in revision.manifests.index.groups
        }
        if groups or revision.manifests.pathless:
            return revision.with_discovered(groups, self.paths, self.branches)
        return revision.with_branches(self.branches)

    @property
    def _present_projects(self) -> Iterator[Member]:
        """The projects of the present manifests whose paths are known."""
        for declared in self.present.desired.targets:
            target = declared.target
            path = target.ref if isinstance(target.ref, str) else self.paths.get(target)
            if target.level is Level.PROJECT and path:
                yield Member(path, id=target.ref if isinstance(target.ref, int) else None)

    def _declared_at(self, commit: str) -> DesiredState:
        try:
            revision = self.revision(commit)
        except (ManifestErrors, ConfigurationError) as error:
            LOG.warning(
                "the manifests at %s cannot be read, and nothing is deleted that only they declared\n%s",
                commit[:SHORT_SHA_LENGTH],
                error,
            )
            return EMPTY_STATE
        for warning in revision.warnings:
            LOG.warning("%s", warning)
        return revision.manifests.desired
