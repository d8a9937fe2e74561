"""Forms with files (`multipart/form-data`), read as they arrive. Begin with `read_form`.

Of a large file only the beginning is kept, so that a file of any size takes little memory: archives of the sandbox are
small.
"""

import re
from collections.abc import AsyncIterable
from dataclasses import dataclass
from typing import Any

TYPE = "multipart/form-data"
MAX_MEMORY_BYTES = 8_000_000
"""Bytes of a part that are kept."""
_BOUNDARY = re.compile(r'boundary="?([^";]+)')
_NAME = re.compile(rb'[; ]name="([^"]*)"')
_FILE_NAME = re.compile(rb'filename="([^"]*)"')


@dataclass(frozen=True, slots=True)
class Upload:
    """A file in a form.

    Attributes:
        name: the sender's name of the file.
        size: in bytes.
        content: its first `KEPT` bytes.
    """

    name: str
    size: int
    content: bytes

    def shown(self) -> dict[str, Any]:
        """Return the value as a log shows it."""
        return {"file": self.name, "bytes": self.size}


async def read_form(content_type: str, chunks: AsyncIterable[bytes]) -> dict[str, Any]:
    """Return the fields of a form, which are texts and `Upload`s; if a form breaks off, its complete fields."""
    boundary = _BOUNDARY.search(content_type)
    form = _Form(b"\r\n--" + (boundary.group(1).encode("latin-1") if boundary else b""))
    async for chunk in chunks:
        form.feed(chunk)
    return form.fields


class _Form:
    """A form while it arrives: either the head of a part comes next, or its content."""

    def __init__(self, boundary: bytes) -> None:
        self.fields: dict[str, Any] = {}
        self._boundary = boundary
        self._unread = b"\r\n"
        self._in_head = False
        self._head = b""
        self._content = bytearray()
        self._size = 0

    def feed(self, chunk: bytes) -> None:
        """Take the bytes that have arrived; keep bytes that may be the beginning of a boundary or of a head."""
        self._unread += chunk
        while True:
            if self._in_head:
                head, mark, after = self._unread.partition(b"\r\n\r\n")
                if not mark:
                    return
                self._head, self._unread, self._in_head = head, after, False
            content, mark, after = self._unread.partition(self._boundary)
            if not mark:
                sure = max(len(self._unread) - len(self._boundary), 0)
                self._keep(self._unread[:sure])
                self._unread = self._unread[sure:]
                return
            self._keep(content)
            self._finish()
            self._unread, self._in_head = after, True

    def _keep(self, content: bytes) -> None:
        self._size += len(content)
        self._content += content[: MAX_MEMORY_BYTES - len(self._content)]

    def _finish(self) -> None:
        """Keep a complete part, unless it is the text before the first part."""
        name, file = _NAME.search(self._head), _FILE_NAME.search(self._head)
        if name:
            value = (
                Upload(file.group(1).decode(), self._size, bytes(self._content))
                if file
                else self._content.decode(errors="replace")
            )
            self.fields[name.group(1).decode()] = value
        self._content, self._size = bytearray(), 0
