"""The branch of the inventory as commits: one file each, read and written as objects, in whatever repository."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from reconciler.errors import InventoryNotStored, InventoryUnreadable
from reconciler.gitops.remotes import Person
from reconciler.model.absence import SHORT_SHA_LENGTH

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


@dataclass(frozen=True, slots=True)
class Message:
    """What the commit of an apply says.

    Attributes:
        counts: how many objects were changed, such as `{"created": 3, "updated": 1}`.
        manifests: the full ID of the manifests' commit; empty if there is none.
        service: its URL.
        result: the exit code.
        job: the URL of the CI job; empty outside of one.
        canary: what was applied first, where a canary stopped the run or led it.
        reverts: what this one undoes: the full ID of an apply, or the name of its report; empty if it is no revert.
        author: who started the job; None for the committer.
        when: the end of the apply.
    """

    counts: Mapping[str, int]
    manifests: str
    service: str
    result: int
    job: str = ""
    canary: str = ""
    reverts: str = ""
    author: Person | None = None
    when: datetime = datetime(1970, 1, 1, tzinfo=UTC)

    @property
    def text(self) -> str:
        """The subject, and the trailers."""
        done = ", ".join(f"{number} {verb}" for verb, number in self.counts.items() if number)
        commit = f" ({self.manifests[:SHORT_SHA_LENGTH]})" if self.manifests else ""
        trailers = {
            "Manifests": self.manifests,
            "Service": self.service,
            "Result": str(self.result),
            "Job": self.job,
            "Canary": self.canary,
            "Reverts": self.reverts,
        }
        lines = "".join(f"{name}: {_one_line(value)}\n" for name, value in trailers.items() if value)
        return f"apply: {done or 'nothing changed'}{commit}\n\n{lines}"


def tip(repository: Repository, branch: str) -> str:
    """Return the last commit of a branch; empty if there is no such branch.

    Raises:
        InventoryUnreadable: git does not read the repository, such as one that belongs to somebody else.
    """
    done = repository.run(["rev-parse", "--verify", "--quiet", f"refs/heads/{branch}^{{commit}}"])
    if done.returncode not in (0, EXIT_NO_REF):
        said = " ".join(done.stderr.decode(errors="replace").split())
        raise InventoryUnreadable(said.removeprefix("fatal: "))
    return done.stdout.decode().strip()


def content(repository: Repository, branch: str, commit: str) -> str:
    """Return the text of the list at a commit.

    Raises:
        InventoryUnreadable: the commit holds anything else than the list.
    """
    listing = repository.run(["ls-tree", "-z", commit])
    entry = INVENTORY_ENTRY.fullmatch(listing.stdout)
    if listing.returncode or entry is None:
        raise InventoryUnreadable(
            f"the branch {branch} holds something else than {FILE}",
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


def write_commit(repository: Repository, text: str, parent: str, message: Message, committer: Person) -> str:
    """Write a commit with nothing but a list, and return its ID.

    Args:
        repository: where the objects are written.
        text: of the list.
        parent: the commit before; empty for the first one.
        message: what it says.
        committer: who stores it.

    Raises:
        InventoryNotStored: git fails.
    """
    blob = _written(repository, ["hash-object", "-w", "--stdin"], text.encode())
    tree = _written(repository, ["mktree", "-z"], f"100644 blob {blob}\t{FILE}\0".encode())
    when = f"{int(message.when.timestamp())} +0000"
    lines = [
        f"tree {tree}",
        *([f"parent {parent}"] if parent else []),
        f"author {_identity(message.author or committer)} {when}",
        f"committer {_identity(committer)} {when}",
        "encoding UTF-8",
    ]
    commit = "\n".join((*lines, "", message.text)).encode()
    return _written(repository, ["hash-object", "-t", "commit", "-w", "--stdin"], commit)


def _written(repository: Repository, arguments: Sequence[str], sent: bytes) -> str:
    done = repository.run(arguments, sent)
    if done.returncode:
        said = " ".join(done.stderr.decode(errors="replace").split()).removeprefix("fatal: ")
        raise InventoryNotStored(f"git {arguments[0]} failed: {said}")
    return done.stdout.decode().strip()


def _identity(person: Person) -> str:
    """Return a person as a commit names them; git allows no brackets and no line breaks there."""
    name, email = (_one_line(re.sub(r"[<>\0-\x1f]", " ", text)) for text in (person.name, person.email))
    return f"{name or 'reconciler'} <{email}>"


def _one_line(text: str) -> str:
    return " ".join(text.split())
