"""Answers as bytes: what goes over the wire, whole."""

import json
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class Packet:
    """A status, headers and a body."""

    __slots__ = ("body", "headers", "status")

    def __init__(self, status: int, headers: Sequence[tuple[str, str]], body: bytes, content_type: str) -> None:
        self.status = status
        self.body = body
        self.headers = [(name.encode(), value.encode()) for name, value in headers]
        if body:
            self.headers.append((b"content-type", content_type.encode()))

    @classmethod
    def json(cls, status: int, headers: Sequence[tuple[str, str]], value: Any) -> "Packet":
        """With a JSON value for a body, or none where the value is None."""
        body = b"" if value is None else _encode(value).encode()
        return cls(status, headers, body, "application/json")

    def add(self, name: str, value: str) -> None:
        """Add a header."""
        self.headers.append((name.encode(), value.encode()))

    async def send(self, send: Send) -> None:
        """Send all of it."""
        await self.send_start(send)
        await send({"type": "http.response.body", "body": self.body})

    async def send_start(self, send: Send) -> None:
        """Send status and headers, which promise the whole body."""
        length = [] if self.status == 204 else [(b"content-length", str(len(self.body)).encode())]
        await send({"type": "http.response.start", "status": self.status, "headers": self.headers + length})
