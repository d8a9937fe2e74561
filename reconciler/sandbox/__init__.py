"""A pretend hosting service, embedded: for the demo, for tests, and to rehearse an apply on a copy of real state.

It is written from the service's documents and shares no code with the client it is there to check. Importing this
package is cheap: the server is imported when it is first needed.
"""

from typing import TYPE_CHECKING, Any

from .errors import FaultError, SandboxError, StateError

if TYPE_CHECKING:
    from .server import Sandbox, running, serve

__all__ = ["FaultError", "Sandbox", "SandboxError", "StateError", "running", "serve"]


def __getattr__(name: str) -> Any:
    """The names of the server, imported on first use."""
    if name in ("Sandbox", "running", "serve"):
        from . import server  # noqa: PLC0415 - uvicorn and starlette cost 100 ms

        return getattr(server, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
