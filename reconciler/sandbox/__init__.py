"""A pretend hosting service, embedded: for the demo, for tests, and to rehearse an apply on a copy of real state.

It is written from the service's documents and shares no code with the client it is there to check. Importing this
package is cheap: what it takes to serve is imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .errors import FaultError, SandboxError, StateError

if TYPE_CHECKING:
    from .faults import Fault, parse_fault
    from .generating import generate
    from .rate import parse_rate_limit
    from .server import Sandbox, running, serve

__all__ = [
    "Fault",
    "FaultError",
    "Sandbox",
    "SandboxError",
    "StateError",
    "generate",
    "parse_fault",
    "parse_rate_limit",
    "running",
    "serve",
]

_ON_FIRST_USE = {
    "Fault": "faults",
    "Sandbox": "server",
    "generate": "generating",
    "parse_fault": "faults",
    "parse_rate_limit": "rate",
    "running": "server",
    "serve": "server",
}


def __getattr__(name: str) -> Any:
    """The names that take more than a moment to import."""
    if name not in _ON_FIRST_USE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_ON_FIRST_USE[name]}"), name)
