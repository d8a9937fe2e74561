"""Forms with files (`multipart/form-data`), read as they arrive.

Of a large file only the begin is kept, so that one of any size takes little memory: archives of the sandbox are small.
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
        name: as the sender calls it.
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
    """Return the fields of a form: texts and `Upload`s; of one that breaks off, those that are complete."""
    boundary = _BOUNDARY.search(content_type)
    form = _Form(b"\r\n--" + (boundary.group(1).encode("latin-1") if boundary else b""))
    async for chunk in chunks:
        form.feed(chunk)
    return form.fields


class _Form:
    """A form while it arrives: either the head of a part is next, or its content."""

    def __init__(self, boundary: bytes) -> None:
        self.fields: dict[str, Any] = {}
        self._boundary = boundary
        self._rest = b"\r\n"
        self._in_head = False
        self._head = b""
        self._content = bytearray()
        self._size = 0

    def feed(self, chunk: bytes) -> None:
        """Take what has arrived; keep what may be the begin of a boundary or of a head."""
        self._rest += chunk
        while True:
            if self._in_head:
                head, mark, rest = self._rest.partition(b"\r\n\r\n")
                if not mark:
                    return
                self._head, self._rest, self._in_head = head, rest, False
            content, mark, rest = self._rest.partition(self._boundary)
            if not mark:
                sure = max(len(self._rest) - len(self._boundary), 0)
                self._keep(self._rest[:sure])
                self._rest = self._rest[sure:]
                return
            self._keep(content)
            self._finish()
            self._rest, self._in_head = rest, True

    def _keep(self, content: bytes) -> None:
        self._size += len(content)
        self._content += content[: MAX_MEMORY_BYTES - len(self._content)]

    def _finish(self) -> None:
        """Keep the part that is complete, unless it is what comes before the first one."""
        name, file = _NAME.search(self._head), _FILE_NAME.search(self._head)
        if name:
            value = (
                Upload(file.group(1).decode(), self._size, bytes(self._content))
                if file
                else self._content.decode(errors="replace")
            )
            self.fields[name.group(1).decode()] = value
        self._content, self._size = bytearray(), 0
