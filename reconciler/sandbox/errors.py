"""What goes wrong in the sandbox: a state that cannot be loaded, a request that is refused.

The tree is the sandbox's own: it shares no class with the client it is there to check.
"""

from collections.abc import Sequence
from typing import Any


class SandboxError(Exception):
    """The root: whatever the sandbox raises on purpose."""


class StateError(SandboxError):
    """A state that cannot be loaded; the text names the place in it, as `projects[3].milestones[0].title`."""


class FaultError(SandboxError):
    """A fault or rate limit that cannot be understood; the text quotes it."""


class Refusal(SandboxError):
    """A request answered with an error status.

    Attributes:
        status: the HTTP status.
        body: the JSON value of the answer.
        headers: further headers, names in lower case.
    """

    def __init__(self, status: int, body: Any, headers: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(f"{status} {body}")
        self.status = status
        self.body = body
        self.headers = headers


def refused(status: int, message: Any) -> Refusal:
    """The error shape of the service's own code: `{"message": ...}` (spec section 7)."""
    return Refusal(status, {"message": message})
