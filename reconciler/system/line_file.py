"""Files of JSON lines that only we write and read: the journal, and the values of created tokens."""

import json
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from reconciler.errors import OutputFailed

FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NOCTTY | os.O_NONBLOCK
"""Without O_NONBLOCK, opening a pipe would wait for a process at its other end."""


def open_own(path: Path, *, instead: str = "") -> int:
    """Open a file for appending, created with mode 0600, and return its handle.

    Args:
        path: of the file.
        instead: the remedy if it is not a regular file.

    Raises:
        OutputFailed: it cannot be opened, or is a link, a device, a pipe, or a file of another user.
    """
    if path.is_symlink():
        raise OutputFailed(f"{path} is a symbolic link; name the file itself")
    with naming(path):
        handle = os.open(path, FLAGS, 0o600)
    found = os.fstat(handle)
    faults = {
        f"is not a regular file; name one{instead}": not stat.S_ISREG(found.st_mode),
        "belongs to another user; name a file of your own": found.st_uid != os.geteuid(),
    }
    fault = next((fault for fault, holds in faults.items() if holds), None)
    if fault is not None:
        os.close(handle)
        raise OutputFailed(f"{path} {fault}")
    return handle


def append_line(handle: int, line: str) -> None:
    """Append a line and sync it to disk, or leave the file as it was.

    A last line that was cut off by a kill is ended first, so that the new one stands alone.

    Raises:
        OSError: the line is not in the file.
    """
    size = os.fstat(handle).st_size
    torn = size > 0 and os.pread(handle, 1, size - 1) != b"\n"
    rest = ("\n" * torn + line + "\n").encode()
    try:
        while rest:
            rest = rest[os.write(handle, rest) :]
        os.fsync(handle)
    except OSError:
        with suppress(OSError):
            os.ftruncate(handle, size)
        raise


def values_of(text: str | bytes) -> Iterable[Any]:
    """Yield the JSON value of each line; a line that is not JSON, such as one cut off by a kill, is skipped."""
    for line in text.splitlines():
        with suppress(ValueError, RecursionError):
            yield json.loads(line)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Turn an error of the operating system into one that names the file."""
    try:
        yield
    except OSError as error:
        raise OutputFailed(f"{path}: {error.strerror}") from error
