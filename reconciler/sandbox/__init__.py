"""An embedded hosting service for the demo, for tests, and for rehearsing an apply on a copy of real state.

The sandbox is written from the service's documents and shares no code with the client that it checks. Begin with
`server.running` and `app.Sandbox`; `routes` has the endpoints.
"""

from .answers import FaultError, SandboxError, StateError
from .app import Sandbox
from .faults import Fault, parse_fault, parse_rate_limit
from .generating import generate
from .server import running, serve

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
