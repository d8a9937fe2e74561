"""The branch of the inventory: each commit has one file, the inventory, and describes one apply.

`write_commit` writes such a commit, and `content` and `applies` read it, in the local repository or in an `exchange`.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from reconciler.errors import InventoryNotStored, InventoryUnreadable
from reconciler.memory.apply_log import Apply, read_apply
from reconciler.memory.remotes import Person

if TYPE_CHECKING:
    import subprocess

FILE = "inventory.jsonl"
INVENTORY_ENTRY = re.compile(rb"100644 blob ([0-9a-f]+)\t" + FILE.encode() + rb"\0")
EXIT_NO_REF = 1
"""The exit code of git where there is no such branch."""
SHA_1 = 40
"""Characters of an object ID in most repositories; the others use SHA-256."""


class Repository(Protocol):
    """Something that runs git in a repository."""

    def run(self, arguments: Sequence[str], sent: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
        """Run git, whatever its exit code."""


def tip(repository: Repository, branch: str) -> str:
    """Return the last commit of a branch; empty if there is no such branch.

    Raises:
        InventoryUnreadable: git does not read the repository, such as one that belongs to somebody else.
    """
    done = repository.run(["rev-parse", "--verify", "--quiet", f"refs/heads/{branch}^{{commit}}"])
    if done.returncode not in (0, EXIT_NO_REF):
        message = " ".join(done.stderr.decode(errors="replace").split())
        raise InventoryUnreadable(message.removeprefix("fatal: "))
    return done.stdout.decode().strip()


def content(repository: Repository, branch: str, commit: str) -> str:
    """Return the text of the inventory at a commit.

    Raises:
        InventoryUnreadable: the commit has another file than the inventory.
    """
    listing = repository.run(["ls-tree", "-z", commit])
    entry = INVENTORY_ENTRY.fullmatch(listing.stdout)
    if listing.returncode or entry is None:
        raise InventoryUnreadable(
            f"the branch {branch} contains other files than {FILE}",
            "name another `branch` under `inventory` in reconciler.yaml",
        )
    blob = repository.run(["cat-file", "blob", entry[1].decode()])
    try:
        return blob.stdout.decode()
    except UnicodeDecodeError:
        raise InventoryUnreadable(
            f"{FILE} on the branch {branch} is not UTF-8 text",
            "restore it from the branch's history, or delete the branch",
        ) from None


def write_commit(repository: Repository, text: str, parent: str, apply: Apply, committer: Person) -> str:
    """Write a commit with the inventory as its only file, and return the commit's ID.

    Args:
        repository: where the objects are written.
        text: of the inventory.
        parent: the commit before; empty for the first one.
        apply: the apply that the commit describes.
        committer: the person who stores the inventory.

    Raises:
        InventoryNotStored: git fails.
    """
    # The objects are written directly: neither the index nor the work tree of the checkout changes.
    blob = _written(repository, ["hash-object", "-w", "--stdin"], text.encode())
    tree = _written(repository, ["mktree", "-z"], f"100644 blob {blob}\t{FILE}\0".encode())
    # the time of the apply, not of now: a repeated push has the same commit
    when = f"{int(apply.when.timestamp())} +0000"
    author = Person(apply.author, apply.author_email) if apply.author else committer
    lines = [
        f"tree {tree}",
        *([f"parent {parent}"] if parent else []),
        f"author {_identity(author)} {when}",
        f"committer {_identity(committer)} {when}",
        "encoding UTF-8",
    ]
    commit = "\n".join((*lines, "", apply.message)).encode()
    return _written(repository, ["hash-object", "-t", "commit", "-w", "--stdin"], commit)


def applies(repository: Repository, commit: str, most: int) -> tuple[Apply, ...]:
    """Return the last applies, the latest first.

    Args:
        repository: one that has the branch, or has fetched as many of its commits.
        commit: the last commit of the branch.
        most: the maximum number of applies.

    Raises:
        InventoryUnreadable: a commit cannot be read.
    """
    # a merge that somebody made on the branch brings commits that are no applies
    listing = repository.run(["rev-list", "--first-parent", f"--max-count={most}", commit, "--"])
    names = listing.stdout.decode().split()
    return tuple(read_apply(name, _commit(repository, name)) for name in names)


def _commit(repository: Repository, name: str) -> str:
    done = repository.run(["cat-file", "commit", name])
    if done.returncode:
        raise InventoryUnreadable(f"commit {name} of its branch cannot be read", "check the repository with git fsck")
    return done.stdout.decode(errors="replace")


def _written(repository: Repository, arguments: Sequence[str], sent: bytes) -> str:
    done = repository.run(arguments, sent)
    if done.returncode:
        message = " ".join(done.stderr.decode(errors="replace").split()).removeprefix("fatal: ")
        raise InventoryNotStored(f"git {arguments[0]} failed: {message}")
    return done.stdout.decode().strip()


def _identity(person: Person) -> str:
    """Return a person as a commit names them; git allows no brackets and no line breaks there."""
    name, email = (" ".join(re.sub(r"[<>\0-\x1f]", " ", text).split()) for text in (person.name, person.email))
    return f"{name or 'reconciler'} <{email}>"
