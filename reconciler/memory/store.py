"""The inventory's place: its branch in the local repository or on a remote, read, and stored by compare and swap."""

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
"""Seconds after which no further try begins."""
MOST_PAUSE = 8.0
"""Seconds between two tries, at most."""

DEFAULT_COMMITTER = Person("reconciler", "")


@dataclass(frozen=True, slots=True)
class Stored:
    """The list as it is at one moment.

    Attributes:
        commit: the branch's last commit; empty if there is no branch yet.
        inventory: the list; an empty one if there is no branch, or another service's.
        warnings: about lines that were left out.
        other_service: the service whose list it is instead; empty if it is ours, or there is none. Then it is neither
            used nor written.
    """

    commit: str
    inventory: Inventory
    warnings: tuple[str, ...] = ()
    other_service: str = ""


@dataclass(frozen=True, slots=True)
class OpenInventory:
    """The list, as one run has it.

    Attributes:
        stored: the list, as it was read before planning; None if none is used.
        store: reads it again and stores it; None where the run stores none.
        ancestry: the history of the checkout; None outside of one, and before its first commit.
        obstacle: why this run deletes nothing by the list, such as other inputs than those of `reconciler.yaml`; empty
            if it may.
        lines: what the plan says about the list itself.
        error: why the list cannot be read; None if it can, or need not be.
        applies: the last ones, the latest first, as many as were asked for; None where no list is used.
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
    """Where the branch is."""

    @property
    def repository(self) -> Repository:
        """The repository that has it, or has fetched it."""

    @property
    def branch(self) -> str:
        """The branch's name."""

    def last(self) -> str:
        """Return the branch's last commit, as it is now; empty if there is no branch.

        Raises:
            InventoryUnreadable: it cannot be asked for.
        """

    def put(self, text: str, parent: str, apply: Apply) -> tuple[str, str]:
        """Make a commit the branch's last one if another still is; return it, or else why that failed.

        Raises:
            InventoryNotStored: no commit can be written.
        """


@dataclass(frozen=True, slots=True)
class Store:
    """Reads and stores the list.

    Attributes:
        place: where the branch is.
        service: the URL of the service that is managed.
        sections: the names of the sections that this version knows.
        sleep, clock, random: for the pauses between tries.
    """

    place: InventoryPlace
    service: str
    sections: Collection[str]
    sleep: Callable[[float], object] = time.sleep
    clock: Callable[[], float] = time.monotonic
    random: Random = field(default_factory=Random)

    def read(self) -> Stored:
        """Return the list as it is now.

        Raises:
            InventoryUnreadable: it cannot be fetched, or is not a list.
        """
        commit = self.place.last()
        if not commit:
            return Stored("", Inventory(self.service))
        inventory, warnings = read_inventory(content(self.place.repository, self.place.branch, commit), self.sections)
        if not inventory.is_about(self.service):
            return Stored(commit, Inventory(self.service), other_service=inventory.service)
        return Stored(commit, inventory, warnings)

    def write(self, stored: Stored, amendment: Callable[[Inventory], Inventory], apply: Apply) -> str:
        """Change the list, whatever others have changed meanwhile, and return the commit.

        Args:
            stored: as it was read last.
            amendment: makes our changes on top of a list.
            apply: what the commit tells of.

        Raises:
            InventoryNotStored: it could not be stored; with the sentence of git or the server.
        """
        end = self.clock() + MAX_WAIT_SECONDS
        for number in range(1, MAX_PUSH_ATTEMPTS + 1):
            if stored.other_service:
                raise InventoryNotStored(_not_stored(f"the branch has the list of {stored.other_service}"))
            commit, refusal = self.place.put(inventory_text(amendment(stored.inventory)), stored.commit, apply)
            if commit:
                return commit
            try:
                newer = self.read()
            except InventoryUnreadable as error:
                raise InventoryNotStored(_not_stored(f"{refusal}; then {error}")) from None
            # Nobody was faster: the same push would be refused again.
            if newer.commit == stored.commit:
                raise InventoryNotStored(_not_stored(refusal))
            stored = newer
            # Random, so that applies that lost the same race do not meet again.
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
        committer: who stores.
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
        # git compares the former commit itself: of two applies at once, one is refused.
        done = self.run(["update-ref", f"refs/heads/{self.branch}", commit, parent or "0" * len(commit)])
        said = " ".join(done.stderr.decode(errors="replace").split())
        return ("", said.removeprefix("fatal: ")) if done.returncode else (commit, "")


@dataclass(frozen=True, slots=True)
class Distant:
    """A remote repository.

    Attributes:
        exchange: the temporary repository that fetches and pushes.
        branch: the branch's name.
        committer: who stores, where it is not known whose token it is.
        depth: how many of the last commits are fetched at once.
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
        if not commit or self.exchange.run(["cat-file", "-e", commit]).returncode == 0:
            return commit
        self.exchange.fetch(self.branch, self.depth)
        return tip(self.exchange, self.branch)

    def history(self, commit: str) -> Collection[str]:
        """Return the IDs of a commit of the manifests and of all that it descends from; none if it cannot be had."""
        try:
            return self.exchange.history(commit)
        except InventoryUnreadable as error:
            LOG.debug("%s", error)
            return ()

    def put(self, text: str, parent: str, apply: Apply) -> tuple[str, str]:
        """See `InventoryPlace`. A server that takes no options of a push gets it once more without any."""
        refusals, end = dict[Login | None, str](), time.monotonic() + self.exchange.seconds
        for skip_ci in (True, False):
            for login in self.exchange.remote.pushing:
                committer = (login and login.person()) or self.committer
                commit = write_commit(self.exchange, text, parent, apply, committer)
                refusal = self.exchange.push(commit, self.branch, login, skip_ci=skip_ci)
                if not refusal:
                    return commit, ""
                refusals[login] = refusal
                if time.monotonic() >= end:
                    return "", "; ".join(refusals.values())
            if self._has_moved(parent):
                break
        return "", "; ".join(refusals.values())

    def _has_moved(self, parent: str) -> bool:
        """Return whether the branch has another last commit now, so that another push is in vain."""
        try:
            return self.exchange.ask(self.branch) != parent
        except InventoryUnreadable:
            return False


def is_branch(name: str) -> bool:
    """Return whether a name is that of a branch which may hold the list."""
    return BRANCH_NAME.fullmatch(name) is not None and not name.endswith(".lock")


def checked_branch(name: str) -> str:
    """Return the name of a branch that may hold the list.

    Raises:
        ConfigurationError: it is not below `reconciler/`, or is no name of a branch.
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
    """Open the place of the list for a run.

    Args:
        top: the top folder of the checkout.
        branch: as of `checked_branch`.
        remote: where the list lives; None for the local repository.
        committer: who stores, where it is not known whose token it is.
        depth: how many of the last commits of a remote are fetched at once.
    """
    if remote is None:
        yield Local(top, branch, committer)
        return
    head = git(top, ["rev-parse", "--verify", "--quiet", "HEAD"]).stdout.decode().strip()
    with exchange(remote, "sha256" if len(head) > SHA_1 else "sha1") as made:
        yield Distant(made, branch, committer, depth)


def open_inventory(store: Store, ancestry: Ancestry | None, obstacle: str, most: int) -> OpenInventory:
    """Return the list, as it is now, for a run.

    Args:
        store: reads it, and stores it.
        ancestry: see `OpenInventory`.
        obstacle: likewise.
        most: how many of the last applies are read too.
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
        InventoryUnreadable: the branch cannot be fetched, or holds anything else.
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
