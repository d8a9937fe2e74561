"""Answers, from an endpoint to the wire, and the sandbox's own errors. Begin with `Answer` and `refused`."""

import json
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class SandboxError(Exception):
    """The root of every error that the sandbox raises on purpose; a separate tree, as the sandbox shares no code."""


class StateError(SandboxError):
    """A state that cannot be loaded; the text names the place in the state, as `projects[3].milestones[0].title`."""


class FaultError(SandboxError):
    """A fault or rate limit that cannot be understood; the text quotes the fault."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A status, headers with names in lower case, and a body: a JSON value, bytes, or None for nothing."""

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
        """Send the answer, with only a share of its body, although the headers promise the whole body."""
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
    """Return an answer in the error shape of the service's own code: `{"message": ...}` (spec section 7)."""
    return Refusal(status, {"message": message})
