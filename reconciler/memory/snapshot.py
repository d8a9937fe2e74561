"""The files of a git revision, read from the repository without a checkout. Begin with `snapshot`.

`revision` reads manifests from a `Snapshot`, and `committed` compares the work tree with one.
"""

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import CompletedProcess

from reconciler import CONFIGURATION
from reconciler.errors import ConfigurationError, UsageError
from reconciler.manifests import is_manifest
from reconciler.system.processes import git, repository

BLOB, LINK = "blob", "120000"
SHA_1 = 40
"""Characters of an object ID in most repositories; the others use SHA-256."""
MOST_LINKS = 40
"""Symbolic links followed for one file, as by the operating system."""


@dataclass(frozen=True, slots=True)
class _BlobEntry:
    mode: str
    object: str


@dataclass(slots=True)
class Snapshot:
    """A git revision of the repository that holds the manifests.

    Attributes:
        revision: as the user named it.
        top: the top folder of the checkout.
        commit: the full ID of the commit.
    """

    revision: str
    top: Path
    commit: str
    _files: dict[str, _BlobEntry] = field(default_factory=dict, repr=False)

    def manifests(self, manifest_paths: Sequence[Path]) -> dict[str, str]:
        """Return the object ID of each manifest at and below some paths at that revision, by its path.

        A path may be missing from the revision.

        Raises:
            ConfigurationError: a path is outside the repository, or git fails.
        """
        names: dict[str, str] = {}
        seen = {self._within(Path(CONFIGURATION))}
        for path in manifest_paths:
            start = self._within(path)
            if start == ".." or start.startswith("../"):
                raise ConfigurationError(f"--since {self.revision}: {path} is not in the git repository {self.top}")
            for inner, name in self._below(start, str(path), set()):
                if inner in self._files and inner not in seen:
                    seen.add(inner)
                    names[name] = self._files[inner].object
        return names

    def contents(self, manifests: Mapping[str, str]) -> dict[str, bytes]:
        """Return the contents of manifests, each by `REVISION:path`."""
        names = (f"{self.revision}:{name}" for name in manifests)
        return dict(zip(names, self._contents(list(manifests.values())), strict=True))

    def file(self, path: Path) -> bytes | None:
        """Return the content of one file; None if the revision does not have it."""
        blob = self.object(path)
        return None if blob is None else self._contents([blob])[0]

    def object(self, path: Path) -> str | None:
        """Return the object ID of one file; None if the revision does not have it."""
        entry = self._files.get(self._target(self._within(path)))
        return None if entry is None else entry.object

    def parted(self) -> str | None:
        """Return the common ancestor with HEAD; None if this commit is an ancestor itself, empty if there is none."""
        base = _try(self.top, "merge-base", self.commit, "HEAD")
        return None if base == self.commit else base or ""

    def _within(self, path: Path) -> str:
        """Return a path relative to the repository; one outside begins with `..`."""
        return _relative(os.path.realpath(path), self.top)

    def _below(self, inner: str, shown_path: str, visited: set[str]) -> Iterator[tuple[str, str]]:
        """Yield the manifests at or below a path, relative to the repository, each with the path to show.

        No folder is visited twice, as on disk: a few links in each of a few folders would make millions of paths.
        """
        inner = self._target(inner)
        if inner in self._files:
            yield inner, shown_path
            return
        visited.add(inner)
        prefix = f"{inner}/" if inner else ""
        for name, entry in self._files.items():
            if not name.startswith(prefix):
                continue
            inner_name = name.removeprefix(prefix)
            below = os.path.normpath(f"{shown_path}/{inner_name}")
            if is_manifest(inner_name):
                yield self._target(name), below
            elif entry.mode == LINK and is_manifest(f"{inner_name}/any.yaml"):
                folder = self._target(name)
                if folder not in self._files and folder not in visited:
                    yield from self._below(folder, below, visited)

    def _target(self, inner: str) -> str:
        """Resolve symbolic links; the result may be outside the repository."""
        for _ in range(MOST_LINKS):
            entry = self._files.get(inner)
            if entry is None or entry.mode != LINK:
                return inner
            target = self._contents([entry.object])[0].decode(errors="surrogateescape")
            inner = _relative(self.top / Path(inner).parent / target, self.top)
        return ".."

    def _contents(self, object_ids: Sequence[str]) -> list[bytes]:
        """Read objects with one process."""
        if not object_ids:
            return []
        done = _git(self.top, ["cat-file", "--batch"], "\n".join(object_ids).encode() + b"\n")
        answer, contents, at = done.stdout, [], 0
        for _ in object_ids:
            end = answer.find(b"\n", at)
            if done.returncode or not (size := answer[at:end].split()[-1]).isdigit():
                raise ConfigurationError(
                    f"--since {self.revision}: some files of that revision are missing in this clone, and nothing is "
                    "fetched: use a clone made without --filter; if it was, `git fsck` lists the damage"
                )
            contents.append(answer[end + 1 : end + 1 + int(size)])
            at = end + int(size) + 2
        return contents


def equals_object(path: str, expected_id: str) -> bool:
    """Whether a file on disk, which is read in pieces, equals an object of the repository."""
    try:
        with Path(path).open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            return hashlib.file_digest(file, lambda: _begun(size, expected_id)).hexdigest() == expected_id
    except OSError:
        return False


def object_id(content: bytes, like: str) -> str:
    """Return the ID of a file's content as an object of the repository; `like` is an ID of the same repository."""
    digest = _begun(len(content), like)
    digest.update(content)
    return digest.hexdigest()


def _begun(size: int, like: str) -> "hashlib._Hash":
    digest = hashlib.new("sha1" if len(like) == SHA_1 else "sha256", usedforsecurity=False)
    digest.update(b"blob %d\0" % size)
    return digest


def snapshot(revision: str, path: Path) -> Snapshot:
    """Return a revision of the git repository that holds a path.

    Raises:
        ConfigurationError: git, the repository or the revision is missing.
        UsageError: the revision is not valid.
    """
    # Git would read such a revision as an option.
    if not revision or revision.startswith("-"):
        raise UsageError(f"--since takes a git revision, such as main or HEAD~1; not {revision!r}")
    # In the first pipeline of a branch, `CI_COMMIT_BEFORE_SHA` is all zeros.
    if not revision.strip("0"):
        raise UsageError(f"--since {revision}: all zeros means there is no previous commit; omit --since")
    folder = _folder(path)
    checkout = repository(folder)
    if checkout is None:
        raise ConfigurationError(
            f"--since {revision}: {folder} is not in a git checkout; run this in one, or omit --since"
        )
    shown = _git(checkout, ["rev-parse", "--show-toplevel"])
    if shown.returncode != 0:
        raise ConfigurationError(
            f"--since {revision}: {checkout} cannot be read as a git repository: {_message(shown)}"
        )
    top = Path(_line(shown))
    commit = _try(top, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    if commit is None:
        raise ConfigurationError(_why_missing(revision, top))
    # The name of a file may be any bytes, not UTF-8 alone.
    listing = _run(top, "ls-tree", "-r", "-z", "--full-tree", commit).decode(errors="surrogateescape")
    return Snapshot(revision, top, commit, dict(_entries(listing)))


def _relative(path: str | Path, top: Path) -> str:
    inner = os.path.relpath(os.path.normpath(path), top)
    return "" if inner == "." else inner


def _folder(path: Path) -> Path:
    """Return the nearest existing folder at or above a path."""
    path = Path(os.path.realpath(path))
    return path if path.is_dir() else _folder(path.parent)


def _entries(listing: str) -> Iterator[tuple[str, _BlobEntry]]:
    for line in listing.split("\0")[:-1]:
        described, _, name = line.partition("\t")
        mode, type_, object_ = described.split(" ")
        if type_ == BLOB:
            yield name, _BlobEntry(mode, object_)


def _why_missing(revision: str, top: Path) -> str:
    if _try(top, "rev-parse", "--is-shallow-repository") == "true":
        return (
            f"--since {revision}: this clone is shallow and does not contain it: fetch the history first, with "
            "`git fetch --unshallow` or, in a CI job, with GIT_DEPTH: 0"
        )
    return f"--since {revision}: there is no such commit in this repository; if it is elsewhere, `git fetch` it first"


def _try(top: Path, *arguments: str) -> str | None:
    """Return git's output, one line; None if git fails."""
    done = _git(top, arguments)
    return _line(done) if done.returncode == 0 else None


def _run(top: Path, *arguments: str, sent: bytes = b"") -> bytes:
    """Return git's output.

    Raises:
        ConfigurationError: git failed; with its message.
    """
    done = _git(top, arguments, sent)
    if done.returncode != 0:
        raise ConfigurationError(f"git {arguments[0]} failed: {_message(done)}")
    return done.stdout


def _git(top: Path, arguments: Sequence[str], sent: bytes = b"") -> "CompletedProcess[bytes]":
    try:
        return git(top, arguments, sent)
    except FileNotFoundError:
        raise ConfigurationError("--since needs git, which is not installed here") from None


def _line(done: "CompletedProcess[bytes]") -> str:
    return done.stdout.decode(errors="surrogateescape").strip("\n")


def _message(done: "CompletedProcess[bytes]") -> str:
    return " ".join(done.stderr.decode(errors="replace").split()).removeprefix("fatal: ")
