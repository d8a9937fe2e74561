"""Files written with care: whole or not at all (reports, plans, manifests), or line by line (journal, token values).

Begin with `save`, `save_all` and `append_line`.
"""

import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from errno import EISDIR
from fcntl import LOCK_EX, flock
from pathlib import Path
from typing import Any

from reconciler.errors import OutputFailed

A_LINK = "a symbolic link leads there: change the file that it leads to"

NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
"""An existing file of that name is never written to, and a link is never followed."""

HANDLES = ("/dev/", "/proc/")
"""Folders whose links lead to open files, such as `/dev/stdout`; they are written to, not replaced."""

OWN_FILE = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NOCTTY | os.O_NONBLOCK
"""Without O_NONBLOCK, opening a pipe would wait for a process at its other end."""


def save(path: Path, text: str) -> None:
    """Write a file whole or not at all, and create its folders.

    An existing file keeps its mode. A device or a pipe is written to directly.

    Raises:
        OutputFailed: the file could not be written.
    """
    with naming(path):
        if is_replaced(path):
            save_all({path: text})
            return
        content = text.encode(errors="backslashreplace")
        # Unbuffered: after a signal, closing must not wait for the reader of a pipe.
        with open(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOCTTY), "wb", buffering=0) as file:  # noqa: PTH123 - a handle
            while content:
                content = content[file.write(content) :]


def save_all(texts: Mapping[Path, str]) -> None:
    """Write several files, or none: all new files are on disk before the first of them replaces an old file.

    Raises:
        OutputFailed: a file could not be written.
    """
    prepared: dict[Path, Path] = {}
    try:
        for path, text in texts.items():
            with naming(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                prepared[path] = _prepare(path, text.encode(errors="backslashreplace"))
        for path in prepared:
            if path.is_dir():
                raise OutputFailed(f"{path}: {os.strerror(EISDIR)}")
        for path, partial in prepared.items():
            with naming(path):
                partial.replace(path)
    finally:
        for partial in prepared.values():
            partial.unlink(missing_ok=True)


def save_inside(folder: Path, texts: Mapping[Path, str]) -> None:
    """Write several files of a folder, or none; see `save_all`.

    Raises:
        OutputFailed: a file could not be written, or is not in the folder, or a link leads there.
    """
    for path in texts:
        if is_linked(path, [folder]):
            raise OutputFailed(f"{path}: {A_LINK}; nothing was written")
    save_all(texts)


def is_linked(path: Path, roots: Sequence[Path]) -> bool:
    """Whether a file is a link, or a folder between it and its root; a file without a root counts as a link."""
    root = next((root for root in roots if path.is_relative_to(root)), None)
    if root is None:
        return True
    below = [path, *path.parents]
    return any(folder.is_symlink() for folder in below[: below.index(root)]) or (path == root and path.is_symlink())


def is_replaced(path: Path) -> bool:
    """Whether `save` replaces the file at a path; it writes to a device or a pipe directly."""
    if path.is_symlink() and f"{os.path.realpath(path.parent)}/".startswith(HANDLES):
        return False
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return True


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Create a folder and let others who ask for it wait while this block runs; without locks, nobody waits.

    Raises:
        OutputFailed: the folder cannot be created or opened.
    """
    with naming(folder):
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with suppress(OSError):
            flock(handle, LOCK_EX)
        yield
    finally:
        os.close(handle)


def _prepare(path: Path, content: bytes) -> Path:
    """Write the new content of a file beside it, and return the path of the new file."""
    partial = path.with_name(f".partial-{os.urandom(8).hex()}")
    handle = os.open(partial, NEW_FILE, 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            if path.is_file() and not path.is_symlink():
                os.fchmod(handle, stat.S_IMODE(path.stat().st_mode))
            file.write(content)
            file.flush()
            os.fsync(handle)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    return partial


@contextmanager
def replacing(path: Path) -> Iterator[Callable[[bytes], object]]:
    """Write a file piece by piece, mode 0600; it replaces the old file when the block ends without an error.

    Raises:
        OutputFailed: the file could not be written.
    """
    with naming(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f".partial-{os.urandom(8).hex()}")
        handle = os.open(partial, NEW_FILE, 0o600)

    def write(content: bytes) -> None:
        with naming(path):
            file.write(content)

    try:
        # Closing writes what is buffered, also after an error.
        with naming(path), os.fdopen(handle, "wb") as file:
            yield write
            file.flush()
            os.fsync(handle)
        with naming(path):
            partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def open_own(path: Path, *, instead: str = "") -> int:
    """Open a file for appending, created with mode 0600, and return its handle.

    Args:
        path: of the file.
        instead: the remedy if the file is not regular.

    Raises:
        OutputFailed: the file cannot be opened, or is a link, a device, a pipe, or a file of another user.
    """
    if path.is_symlink():
        raise OutputFailed(f"{path} is a symbolic link; name the file itself")
    with naming(path):
        handle = os.open(path, OWN_FILE, 0o600)
    status = os.fstat(handle)
    faults = {
        f"is not a regular file; name one{instead}": not stat.S_ISREG(status.st_mode),
        "belongs to another user; name a file of your own": status.st_uid != os.geteuid(),
    }
    fault = next((fault for fault, is_found in faults.items() if is_found), None)
    if fault is not None:
        os.close(handle)
        raise OutputFailed(f"{path} {fault}")
    return handle


def append_line(handle: int, line: str) -> None:
    """Append a line and sync it to disk, or leave the file unchanged.

    A last line that was cut off by a kill is ended first, so that the new line is a line of its own.

    Raises:
        OSError: the line is not in the file.
    """
    size = os.fstat(handle).st_size
    torn = size > 0 and os.pread(handle, 1, size - 1) != b"\n"
    unwritten = ("\n" * torn + line + "\n").encode()
    try:
        # a full disk or a signal may take a part only
        while unwritten:
            unwritten = unwritten[os.write(handle, unwritten) :]
        os.fsync(handle)
    except OSError:
        with suppress(OSError):
            os.ftruncate(handle, size)
        raise


def values_of(json_lines: str | bytes) -> Iterable[Any]:
    """Yield the JSON value of each line; a line that is not JSON, such as a line cut off by a kill, is skipped."""
    for line in json_lines.splitlines():
        with suppress(ValueError, RecursionError):
            yield json.loads(line)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Turn an error of the operating system into an error that names the file."""
    try:
        yield
    except OSError as error:
        raise OutputFailed(f"{path}: {error.strerror}") from error
