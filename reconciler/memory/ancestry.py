"""The commits of a checkout: which of them HEAD contains, and what a shallow or sparse checkout lacks.

Deletions by absence ask an `Ancestry`: what a commit declared may be deleted only by a commit that contains it.
"""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from reconciler.memory.absence import CommitPosition, LastApplied
from reconciler.system.processes import git

SUBMODULE = "160000"
"""The mode of a submodule in the index."""


Fetched = Callable[[str], Collection[str]]
"""Returns the IDs of a commit and its ancestors on the remote; none if the remote lacks it or cannot be reached."""


@dataclass(frozen=True)
class Ancestry:
    """The commits of a checkout.

    Attributes:
        top: the top folder of the checkout.
        head: the full ID of the commit whose manifests are applied.
        remote: the name of the remote that has the inventory; empty if this repository has it.
        fetched: reads from the remote the commits that this clone lacks.
    """

    top: Path
    head: str
    remote: str = ""
    fetched: Fetched = field(default=lambda _commit: (), compare=False)

    def contains(self, commit: str) -> bool:
        """Return whether the head is a commit or descends from it."""
        return commit == self.head or commit in self._ancestors

    def positions(self, commits: Iterable[str]) -> dict[str, CommitPosition]:
        """Return the position of each commit. The history is read once, and only for commits other than the head."""
        return {commit: self._position(commit) for commit in {*commits}}

    def last_applied(self, commit: str) -> LastApplied:
        """Return the position of the last apply's commit; a commit that this clone lacks is fetched first.

        A local inventory names commits that were made in this repository: one that is missing now was given up.
        """
        return LastApplied(
            commit, self._position_after_fetch(commit) if commit else CommitPosition.CONTAINED, self.remote
        )

    @cached_property
    def _ancestors(self) -> frozenset[str]:
        return frozenset(self._lines("rev-list", self.head, "--"))

    @cached_property
    def _is_shallow(self) -> bool:
        return self._lines("rev-parse", "--is-shallow-repository") == ["true"]

    def _position(self, commit: str) -> CommitPosition:
        if self.contains(commit):
            return CommitPosition.CONTAINED
        if git(self.top, ["merge-base", "--is-ancestor", self.head, commit]).returncode == 0:
            return CommitPosition.AHEAD
        if self._is_shallow:  # a commit that exists may be an ancestor beyond the fetched ones
            return CommitPosition.CUT_OFF
        known = git(self.top, ["cat-file", "-e", f"{commit}^{{commit}}"]).returncode == 0
        return CommitPosition.ELSEWHERE if known else CommitPosition.UNKNOWN

    def _position_after_fetch(self, commit: str) -> CommitPosition:
        position = self._position(commit)
        # Nothing can be fetched, and nothing needs to be: the commit was made here, and dropped by a rebase or an
        # amend.
        if position is CommitPosition.UNKNOWN and not self.remote:
            return CommitPosition.ELSEWHERE
        if position not in (CommitPosition.UNKNOWN, CommitPosition.CUT_OFF):
            return position
        # the clone may be shallow or old: the remote knows
        its = self.fetched(commit)
        if self.head in its:
            return CommitPosition.AHEAD
        if not its or position is CommitPosition.UNKNOWN:
            return CommitPosition.ELSEWHERE if its else position
        ours = self.fetched(self.head)  # a shallow clone does not know what its own commit descends from
        if not ours:
            return position
        return CommitPosition.CONTAINED if commit in ours else CommitPosition.ELSEWHERE

    def _lines(self, *arguments: str) -> list[str]:
        return git(self.top, arguments).stdout.decode().split()


def ancestry(top: Path) -> Ancestry | None:
    """Return the history of the checked-out commit; None in a repository without commits."""
    done = git(top, ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])
    return Ancestry(top, done.stdout.decode().strip()) if done.returncode == 0 else None


def incomplete(top: Path, manifest_paths: Sequence[Path]) -> str:
    """Return the reason for which a checkout may lack manifests of HEAD; empty if it is complete.

    Args:
        top: the top folder of the checkout.
        manifest_paths: the paths of the manifests.
    """
    # The manifests that a sparse checkout leaves out would look removed, and their objects would be deleted.
    if git(top, ["config", "--bool", "--get", "core.sparseCheckout"]).stdout.strip() == b"true":
        return "this checkout is sparse: run `git sparse-checkout disable` first"
    below = [os.path.relpath(os.path.realpath(path), top) for path in manifest_paths]
    submodule = next((name for name in _submodules(top) if _is_empty(top / name) and _within(name, below)), None)
    if submodule is not None:
        return f"the submodule {submodule} is empty: run `git submodule update --init` first"
    return ""


def _submodules(top: Path) -> Iterator[str]:
    for entry in os.fsdecode(git(top, ["ls-files", "-z", "--stage"]).stdout).split("\0")[:-1]:
        described, _, name = entry.partition("\t")
        if described.startswith(SUBMODULE):
            yield name


def _is_empty(folder: Path) -> bool:
    return not folder.is_dir() or not any(folder.iterdir())


def _within(name: str, folders: Collection[str]) -> bool:
    """Return whether one of some folders holds a path, or is below it."""
    return any(
        folder == "." or f"{name}/".startswith(f"{folder}/") or f"{folder}/".startswith(f"{name}/")
        for folder in folders
    )
