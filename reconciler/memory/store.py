"""The place of the inventory: a branch of the local repository or of a remote.

`open_place` returns the place, `Store` reads the inventory and stores it by compare-and-swap, and `open_inventory`
returns the `OpenInventory` that a run works with.
"""

import logging
import os
import re
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Protocol

from reconciler.errors import ConfigurationError, InventoryNotStored, InventoryUnreadable
from reconciler.memory.ancestry import Ancestry
from reconciler.memory.apply_log import Apply
from reconciler.memory.branch import SHA_1, Repository, applies, content, tip, write_commit
from reconciler.memory.exchange import Exchange, exchange
from reconciler.memory.inventory import Inventory, inventory_text, read_inventory
from reconciler.memory.remotes import Login, Person, Remote
from reconciler.system.processes import git

if TYPE_CHECKING:
    import subprocess

LOG = logging.getLogger("reconciler")

BELOW = "reconciler/"
INVENTORY_BRANCH = "reconciler/applied"
BRANCH_NAME = re.compile(r"reconciler(?:/[A-Za-z0-9_](?:[A-Za-z0-9_-]|\.(?=[A-Za-z0-9_-]))*)+")

MAX_PUSH_ATTEMPTS = 10
MAX_WAIT_SECONDS = 120.0
"""Seconds after which no further attempt to store begins."""
MOST_PAUSE = 8.0
"""The longest pause between two attempts, in seconds."""

DEFAULT_COMMITTER = Person("reconciler", "")


@dataclass(frozen=True, slots=True)
class Stored:
    """The inventory at one moment.

    Attributes:
        commit: the last commit of the branch; empty if there is no branch yet.
        inventory: the inventory; an empty one if there is no branch, or the branch has that of another service.
        warnings: about malformed lines, which are ignored.
        other_service: the other service, if the branch has the inventory of one: it is neither used nor written. Empty
            otherwise.
    """

    commit: str
    inventory: Inventory
    warnings: tuple[str, ...] = ()
    other_service: str = ""


@dataclass(frozen=True, slots=True)
class OpenInventory:
    """The inventory of one run.

    Attributes:
        stored: the inventory as it was read before planning; None if none is used.
        store: reads it again and stores it; None if the run stores none.
        ancestry: the history of the checkout; None outside of a checkout, and before its first commit.
        obstacle: the reason for which this run deletes nothing by the inventory, such as other inputs than those of
            `reconciler.yaml`; empty without one.
        lines: lines of the plan about the inventory itself.
        error: the error of reading the inventory; None without one.
        applies: the last applies, the latest first, as many as were asked for; None if no inventory is used.
    """

    stored: Stored | None = None
    store: "Store | None" = None
    ancestry: Ancestry | None = None
    obstacle: str = ""
    lines: tuple[str, ...] = ()
    error: InventoryUnreadable | None = None
    applies: tuple[Apply, ...] | None = None

    def contains(self, commit: str) -> bool:
        """Return whether the checked-out commit contains another."""
        return self.ancestry is not None and self.ancestry.contains(commit)


NO_INVENTORY = OpenInventory()

NO_LIST = "There is no inventory yet. Until the first apply, removing an object from the manifests does not delete it."


class InventoryPlace(Protocol):
    """The repository that has the inventory's branch: `Local` or `Distant`."""

    @property
    def repository(self) -> Repository:
        """The repository in which git runs; commits of a remote are fetched into it."""

    @property
    def branch(self) -> str:
        """The branch's name."""

    def last(self) -> str:
        """Return the present last commit of the branch; empty if there is no branch.

        Raises:
            InventoryUnreadable: the branch cannot be read.
        """

    def put(self, text: str, parent: str, apply: Apply) -> tuple[str, str]:
        """Store an inventory as the next commit after `parent`, unless the branch has changed.

        Returns:
            The new commit and an empty text; or an empty text and the reason of the refusal.

        Raises:
            InventoryNotStored: no commit can be written.
        """


@dataclass(frozen=True, slots=True)
class Store:
    """Reads and stores the inventory.

    Attributes:
        place: the repository with the branch.
        service: the URL of the service that is managed.
        sections: the names of the sections that this version knows.
        sleep, clock, random: for the pauses between attempts.
    """

    place: InventoryPlace
    service: str
    sections: Collection[str]
    sleep: Callable[[float], object] = time.sleep
    clock: Callable[[], float] = time.monotonic
    random: Random = field(default_factory=Random)

    def read(self) -> Stored:
        """Return the present inventory.

        Raises:
            InventoryUnreadable: the inventory cannot be fetched, or is malformed.
        """
        commit = self.place.last()
        if not commit:
            return Stored("", Inventory(self.service))
        inventory, warnings = read_inventory(content(self.place.repository, self.place.branch, commit), self.sections)
        if not inventory.is_about(self.service):
            return Stored(commit, Inventory(self.service), other_service=inventory.service)
        return Stored(commit, inventory, warnings)

    def write(self, stored: Stored, amendment: Callable[[Inventory], Inventory], apply: Apply) -> str:
        """Change the inventory, safe against concurrent runs, and return the commit.

        Args:
            stored: the inventory as it was read last.
            amendment: returns an inventory with the changes of this run.
            apply: the apply that the commit describes.

        Raises:
            InventoryNotStored: the inventory could not be stored; with the message of git or of the server.
        """
        end = self.clock() + MAX_WAIT_SECONDS
        for number in range(1, MAX_PUSH_ATTEMPTS + 1):
            if stored.other_service:
                # read again below: another run may have replaced the branch meanwhile
                raise InventoryNotStored(_not_stored(f"the branch has the list of {stored.other_service}"))
            commit, refusal = self.place.put(inventory_text(amendment(stored.inventory)), stored.commit, apply)
            if commit:
                return commit
            try:
                newer = self.read()
            except InventoryUnreadable as error:
                raise InventoryNotStored(_not_stored(f"{refusal}; then {error}")) from None
            # No other run has changed the branch: the same push would be refused again.
            if newer.commit == stored.commit:
                raise InventoryNotStored(_not_stored(refusal))
            stored = newer
            # Random, so that runs that lost the same race do not collide again.
            pause = self.random.uniform(0, min(MOST_PAUSE, 0.25 * 2**number))
            if self.clock() + pause > end:
                break
            self.sleep(pause)
        raise InventoryNotStored(_not_stored("others changed the branch each time; the last refusal: " + refusal))


@dataclass(frozen=True, slots=True)
class Local:
    """The repository of the working directory.

    Attributes:
        top: the top folder of the checkout.
        branch: the branch's name.
        committer: the committer of each commit.
    """

    top: Path
    branch: str
    committer: Person

    @property
    def repository(self) -> Repository:
        """See `InventoryPlace`."""
        return self

    def run(self, arguments: Sequence[str], sent: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
        """Run git; see `Repository`."""
        return git(self.top, arguments, sent)

    def last(self) -> str:
        """See `InventoryPlace`."""
        return tip(self, self.branch)

    def put(self, text: str, parent: str, apply: Apply) -> tuple[str, str]:
        """See `InventoryPlace`."""
        commit = write_commit(self, text, parent, apply, self.committer)
        # `update-ref` compares the old commit under its own lock: of two applies at once, one is refused.
        done = self.run(["update-ref", f"refs/heads/{self.branch}", commit, parent or "0" * len(commit)])
        message = " ".join(done.stderr.decode(errors="replace").split())
        return ("", message.removeprefix("fatal: ")) if done.returncode else (commit, "")


@dataclass(frozen=True, slots=True)
class Distant:
    """A remote repository.

    Attributes:
        exchange: the temporary repository that fetches and pushes.
        branch: the branch's name.
        committer: the committer if the owner of the token is unknown.
        depth: the number of last commits that are fetched at once.
    """

    exchange: Exchange
    branch: str
    committer: Person
    depth: int = 1

    @property
    def repository(self) -> Repository:
        """See `InventoryPlace`."""
        return self.exchange

    def last(self) -> str:
        """See `InventoryPlace`."""
        commit = self.exchange.ask(self.branch)
        # An apply reads the inventory again before it stores it: mostly, the branch has not changed.
        if not commit or self.exchange.run(["cat-file", "-e", commit]).returncode == 0:
            return commit
        self.exchange.fetch(self.branch, self.depth)
        return tip(self.exchange, self.branch)

    def history(self, commit: str) -> Collection[str]:
        """Return the IDs of a commit of the manifests and its ancestors.

        None if the remote lacks it or cannot be reached.
        """
        try:
            return self.exchange.history(commit)
        except InventoryUnreadable as error:
            LOG.debug("%s", error)
            return ()

    def put(self, text: str, parent: str, apply: Apply) -> tuple[str, str]:
        """See `InventoryPlace`. A server that refuses push options gets the push again without them."""
        refusals, end = dict[Login | None, str](), time.monotonic() + self.exchange.seconds
        for skip_ci in (True, False):
            for login in self.exchange.remote.pushing:
                committer = (login and login.person()) or self.committer
                commit = write_commit(self.exchange, text, parent, apply, committer)
                refusal = self.exchange.push(commit, self.branch, login, skip_ci=skip_ci)
                if not refusal:
                    return commit, ""
                refusals[login] = refusal
                # each credential may wait for the whole timeout of a push
                if time.monotonic() >= end:
                    return "", "; ".join(refusals.values())
            if self._has_moved(parent):
                break
        return "", "; ".join(refusals.values())

    def _has_moved(self, parent: str) -> bool:
        """Return whether the branch has another last commit now, so that another push would be refused too."""
        try:
            return self.exchange.ask(self.branch) != parent
        except InventoryUnreadable:
            return False


def is_branch(name: str) -> bool:
    """Return whether a branch of this name may have the inventory."""
    return BRANCH_NAME.fullmatch(name) is not None and not name.endswith(".lock")


def checked_branch(name: str) -> str:
    """Return the name of a branch that may have the inventory.

    Raises:
        ConfigurationError: the name is not below `reconciler/`, or is no name of a branch.
    """
    if not is_branch(name):
        raise ConfigurationError(
            f"inventory: branch: must be a name below {BELOW}, such as {INVENTORY_BRANCH}; not {name!r}"
        )
    return name


def own_identity(top: Path) -> Person:
    """Return the user's name and address by the git configuration of the checkout."""
    name, email = (
        os.fsdecode(git(top, ["config", "--get", f"user.{key}"]).stdout).strip() for key in ("name", "email")
    )
    return Person(name, email) if name else DEFAULT_COMMITTER


@contextmanager
def open_place(
    top: Path, branch: str, remote: Remote | None, committer: Person = DEFAULT_COMMITTER, depth: int = 1
) -> Iterator[InventoryPlace]:
    """Open the place of the inventory for a run.

    Args:
        top: the top folder of the checkout.
        branch: as of `checked_branch`.
        remote: the remote that has the inventory; None for the local repository.
        committer: the committer if the owner of the token is unknown.
        depth: the number of last commits of a remote that are fetched at once.
    """
    if remote is None:
        yield Local(top, branch, committer)
        return
    head = git(top, ["rev-parse", "--verify", "--quiet", "HEAD"]).stdout.decode().strip()
    # Git refuses to push between repositories whose object formats differ.
    with exchange(remote, "sha256" if len(head) > SHA_1 else "sha1") as made:
        yield Distant(made, branch, committer, depth)


def open_inventory(store: Store, ancestry: Ancestry | None, obstacle: str, most: int) -> OpenInventory:
    """Return the present inventory for a run.

    Args:
        store: reads and stores the inventory.
        ancestry: see `OpenInventory`.
        obstacle: see `OpenInventory`.
        most: the number of last applies that are read too.
    """
    try:
        stored = store.read()
        log = applies(store.place.repository, stored.commit, most) if stored.commit and most else ()
    except InventoryUnreadable as error:
        return OpenInventory(ancestry=ancestry, obstacle=obstacle, error=error)
    for warning in stored.warnings:
        LOG.warning("%s", warning)
    if stored.other_service:
        line = (
            f"The inventory is of {stored.other_service}, and is neither used nor written for {store.service}: name "
            "another `branch` under `inventory` in reconciler.yaml."
        )
        return OpenInventory(ancestry=ancestry, lines=(line,))
    lines = () if stored.commit else (NO_LIST,)
    return OpenInventory(stored, store, ancestry, obstacle, lines, applies=log if most else None)


def last_applies(inventory_place: InventoryPlace, most: int) -> tuple[Apply, ...]:
    """Return the last applies, the latest first; none if there is no branch.

    Raises:
        InventoryUnreadable: the branch cannot be fetched, or has other files than the inventory.
    """
    commit = inventory_place.last()
    if not commit:
        return ()
    content(inventory_place.repository, inventory_place.branch, commit)  # a branch with anything else is not read
    return applies(inventory_place.repository, commit, most)


def _not_stored(reason: str) -> str:
    return (
        f"the inventory could not be stored: {reason}; what this apply created is not known as ours: run apply again "
        "once that is fixed"
    )
