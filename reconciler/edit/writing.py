"""The files of manifests: which of them must not change, and how all others are written: all of them or none."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from reconciler.edit.differences import Acceptance
from reconciler.errors import OutputFailed
from reconciler.manifests.sources import UTF_8_MARK
from reconciler.system.files import A_LINK, is_linked, naming, save_all

BEHIND_A_LINK = "behind a symbolic link"


def linked_files(file_names: Iterable[str], roots: Sequence[Path]) -> dict[str, str]:
    """Return the files behind a link below the named files and folders, each with the reason not to change it."""
    return {file: BEHIND_A_LINK for file in file_names if is_linked(Path(file), roots)}


def write_texts(accepted: Acceptance, roots: Sequence[Path]) -> None:
    """Write all texts, or none.

    Args:
        accepted: the texts.
        roots: the files and folders in which manifests are searched; nothing is written outside of them.

    Raises:
        OutputFailed: a file has changed since it was read, exists where a new one would be created, or cannot be
            written.
    """
    texts = {}
    for path, text in accepted.texts.items():
        if is_linked(path, roots):
            raise OutputFailed(f"{path}: {A_LINK}; nothing was written")
        with naming(path):
            content = path.read_bytes() if os.path.lexists(path) else None
        before = accepted.before.get(path)
        mark = UTF_8_MARK if content is not None and content.startswith(UTF_8_MARK) else b""
        # Somebody may have edited the file while the service was being read.
        if content != (None if before is None else mark + before.encode()):
            reason = (
                "exists, where a new document would be created" if before is None else "has changed since it was read"
            )
            raise OutputFailed(f"{path} {reason}; nothing was written")
        texts[path] = mark.decode() + text
    save_all(texts)
