"""Files that are written whole or not at all: reports, saved plans, manifests, schemas."""

import os
import stat
from pathlib import Path
from secrets import token_hex

from reconciler.system.line_file import naming

NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
"""An existing file of that name is never written to, and a link is never followed."""

HANDLES = ("/dev/", "/proc/")
"""Folders whose links lead to open files, such as `/dev/stdout`; they are written to, not replaced."""


def save(path: Path, text: str) -> None:
    """Write a file whole or not at all, and create its folders.

    An existing file keeps its mode. A device or a pipe is written to as it is.

    Raises:
        OutputFailed: it could not be written.
    """
    content = text.encode(errors="backslashreplace")
    with naming(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        if is_replaced(path):
            _replace(path, content)
        else:
            # Unbuffered: after a signal, closing must not wait for the reader of a pipe.
            with open(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOCTTY), "wb", buffering=0) as file:  # noqa: PTH123 - a handle
                while content:
                    content = content[file.write(content) :]


def is_replaced(path: Path) -> bool:
    """Whether `save` replaces what is at a path, instead of writing to it as it is."""
    if path.is_symlink() and f"{os.path.realpath(path.parent)}/".startswith(HANDLES):
        return False
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return True


def _replace(path: Path, content: bytes) -> None:
    partial = path.with_name(f".partial-{token_hex(8)}")
    handle = os.open(partial, NEW, 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            if path.is_file() and not path.is_symlink():
                os.fchmod(handle, stat.S_IMODE(path.stat().st_mode))
            file.write(content)
            file.flush()
            os.fsync(handle)
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
