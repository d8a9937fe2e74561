"""The `/-/` endpoints, beside the service: its state, its log and its faults, for tests and rehearsals.

They need no token, are not logged, and neither latency, faults nor rate limit touch them.
"""

from collections.abc import Callable
from typing import Any, Protocol

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from .errors import FaultError, SandboxError


class Controls(Protocol):
    """What can be done from beside."""

    def state(self) -> dict[str, Any]:
        """The whole present state."""

    def replace_state(self, state: Any) -> None:
        """Begin again with another state."""

    def log(self) -> list[dict[str, Any]]:
        """The requests so far."""

    def clear_log(self) -> None:
        """Forget them."""

    def set_faults(self, faults: list[Any]) -> None:
        """Let these befall requests."""


def control_app(controls: Controls) -> Starlette:
    """The application that serves them."""

    async def get_state(_: Request) -> Response:
        return JSONResponse(controls.state())

    async def put_state(request: Request) -> Response:
        return await _replace(request, controls.replace_state)

    async def get_log(_: Request) -> Response:
        return JSONResponse(controls.log())

    async def delete_log(_: Request) -> Response:
        controls.clear_log()
        return Response(status_code=204)

    async def put_faults(request: Request) -> Response:
        return await _replace(request, lambda given: controls.set_faults(_listed(given)))

    return Starlette(
        routes=[
            Route("/-/state", get_state, methods=["GET"]),
            Route("/-/state", put_state, methods=["PUT"]),
            Route("/-/log", get_log, methods=["GET"]),
            Route("/-/log", delete_log, methods=["DELETE"]),
            Route("/-/faults", put_faults, methods=["PUT"]),
        ]
    )


async def _replace(request: Request, accept: Callable[[Any], None]) -> Response:
    try:
        accept(await request.json())
    except (ValueError, SandboxError) as error:
        return JSONResponse({"message": str(error)}, status_code=400)
    return Response(status_code=204)


def _listed(given: Any) -> list[Any]:
    if not isinstance(given, list):
        raise FaultError("faults must be a list")
    return given
