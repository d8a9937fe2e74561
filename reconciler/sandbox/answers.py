"""Answers, from an endpoint to the wire, and the sandbox's own errors."""

import json
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class SandboxError(Exception):
    """The root of every error that the sandbox raises on purpose: a tree of its own, as the sandbox shares no code."""


class StateError(SandboxError):
    """A state that cannot be loaded; the text names the place in it, as `projects[3].milestones[0].title`."""


class FaultError(SandboxError):
    """A fault or rate limit that cannot be understood; the text quotes it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A status, headers with names in lower case, and a body: a JSON value, bytes as they are, or None for nothing."""

    status: int
    body: Any = None
    headers: Sequence[tuple[str, str]] = ()
    content_type: str = "application/json"

    def encoded(self) -> bytes:
        """Return the body as bytes."""
        if self.body is None or isinstance(self.body, bytes):
            return self.body or b""
        return _encode(self.body).encode()

    async def send(self, send: Send, share: float = 1.0) -> None:
        """Send the answer; of its body only a share, although the headers promise all of it."""
        body = self.encoded()
        headers = [*self.headers]
        if body:
            headers.append(("content-type", self.content_type))
        if self.status != 204:
            headers.append(("content-length", str(len(body))))
        pairs = [(name.encode(), value.encode()) for name, value in headers]
        await send({"type": "http.response.start", "status": self.status, "headers": pairs})
        part = body[: int(len(body) * share)]
        await send({"type": "http.response.body", "body": part, "more_body": share < 1})


class Refusal(SandboxError):
    """A request answered with an error status."""

    def __init__(
        self,
        status: int,
        body: Any,
        headers: Sequence[tuple[str, str]] = (),
        content_type: str = "application/json",
    ) -> None:
        super().__init__(f"{status} {body}")
        self.answer = Answer(status, body, headers, content_type)


def refused(status: int, message: Any) -> Refusal:
    """The error shape of the service's own code: `{"message": ...}` (spec section 7)."""
    return Refusal(status, {"message": message})
