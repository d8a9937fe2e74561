"""The sandbox on a socket: uvicorn's protocol on a loop of its own, in a thread or in the foreground.

Begin with `running`, for tests, and `serve`, for the command.
"""

import asyncio
import signal
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import uvicorn
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from .answers import FaultError, Receive, SandboxError, Scope, Send
from .app import AnyFault, Sandbox
from .call import Route
from .state import Dialect
from .state_file import read_state

_IDLE_SECONDS = 300


@contextmanager
def running(
    state: Mapping[str, Any] | Path,
    latency_ms: float = 0,
    rate_limit: str | None = None,
    faults: Iterable[AnyFault] = (),
    port: int = 0,
    *,
    routes: Iterable[Route] = (),
) -> Iterator[Sandbox]:
    """Run a sandbox in a thread of its own on a loopback port, a free one for 0, until the block ends.

    Raises:
        StateError: the state cannot be loaded.
        FaultError: a fault or the rate limit cannot be understood.
    """
    listener = _Listener(Sandbox(read_state(state), latency_ms, rate_limit, faults, routes=routes), "127.0.0.1", port)
    ready = Event()
    thread = Thread(target=lambda: asyncio.run(listener.serve(ready.set)), name="sandbox", daemon=True)
    thread.start()
    ready.wait()
    try:
        yield listener.sandbox
    finally:
        listener.stop()
        thread.join()


def serve(
    state: Mapping[str, Any] | Path,
    *,
    host: str = "127.0.0.1",
    port: int = 8080,
    latency_ms: float = 0,
    workers: int | None = None,
    cost_ms: float = 0,
    rate_limit: str | None = None,
    faults: Iterable[AnyFault] = (),
    dialect: Dialect | None = None,
    routes: Iterable[Route] = (),
    ready: Callable[[str], None],
) -> None:
    """Serve in the foreground until interrupted; `ready` is called with the `api_url` once the sandbox answers.

    A dialect given here overrides the state's own. `Sandbox.set_workers` explains `workers` and `cost_ms`.

    Raises:
        StateError: the state cannot be loaded.
        FaultError: a fault or the rate limit cannot be understood.
        OSError: the port is taken.
    """
    listener = _Listener(
        Sandbox(read_state(state, dialect), latency_ms, rate_limit, faults, dialect, routes=routes), host, port
    )
    listener.sandbox.set_workers(workers, cost_ms)
    asyncio.run(_until_signalled(listener, lambda: ready(listener.sandbox.api_url)))


async def _until_signalled(listener: "_Listener", ready: Callable[[], None]) -> None:
    """Serve until a signal arrives; signals that are ignored, as in the background, stay ignored.

    The loop handles the signals: an exception of a handler could be raised within the answer to a request.
    """
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            asyncio.get_running_loop().add_signal_handler(number, listener.stop)
    await listener.serve(ready)


class _Listener:
    """A socket and its connections."""

    def __init__(self, sandbox: Sandbox, host: str, port: int) -> None:
        self.sandbox = sandbox
        self._socket = _open_socket(host, port)
        self._stopping: asyncio.Event
        self._loop: asyncio.AbstractEventLoop
        sandbox.base_url = f"http://{host}:{self._socket.getsockname()[1]}"

    async def serve(self, ready: Callable[[], None]) -> None:
        """Answer until `stop`."""
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        config = uvicorn.Config(
            self._dispatch,
            log_config=None,
            log_level="error",
            access_log=False,
            http="httptools",
            lifespan="off",
            interface="asgi3",
            proxy_headers=False,
            ws="none",
            server_header=False,
            date_header=False,
            timeout_keep_alive=_IDLE_SECONDS,
        )
        config.load()
        connections = uvicorn.Server(config).server_state
        server = await self._loop.create_server(lambda: _connection(config, connections), sock=self._socket)
        try:
            ready()
            await self._stopping.wait()
        finally:
            server.close()
            await _hang_up(connections)

    def stop(self) -> None:
        """End `serve` once it is ready; other threads may call this."""
        self._loop.call_soon_threadsafe(self._stopping.set)

    async def _dispatch(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["raw_path"].startswith(b"/-/"):
            response = await _control(self.sandbox, Request(scope, receive))
            await response(scope, receive, send)
        else:
            await self.sandbox(scope, receive, send)


def _connection(config: uvicorn.Config, connections: Any) -> asyncio.Protocol:
    """Return the protocol of a new connection, which its requests know, so that a fault can break it."""
    known: dict[str, Any] = {}
    known["connection"] = config.http_protocol_class(config, connections, known)  # type: ignore[call-arg]  # as uvicorn itself calls it
    protocol: asyncio.Protocol = known["connection"]
    return protocol


async def _hang_up(connections: Any) -> None:
    """Close idle connections, and cancel requests that are still in flight."""
    for connection in list(connections.connections):
        connection.transport.abort()
    for task in list(connections.tasks):
        task.cancel()
    await asyncio.gather(*connections.tasks, return_exceptions=True)
    await asyncio.sleep(0)


async def _control(sandbox: Sandbox, request: Request) -> Response:
    """Answer at `/-/`, outside the service: its state, its log and its faults, for tests and rehearsals.

    These endpoints need no token and are not logged; latency, faults and rate limit do not affect them.
    """
    try:
        match request.method, request.url.path:
            case "GET", "/-/state":
                return JSONResponse(sandbox.state())
            case "GET", "/-/log":
                return JSONResponse(sandbox.log())
            case "PUT", "/-/state":
                sandbox.replace_state(await request.json())
            case "DELETE", "/-/log":
                sandbox.clear_log()
            case "PUT", "/-/faults":
                sandbox.set_faults(_listed(await request.json()))
            case _:
                return Response(status_code=404)
    except (ValueError, SandboxError) as error:
        return JSONResponse({"message": str(error)}, status_code=400)
    return Response(status_code=204)


def _listed(given: Any) -> list[Any]:
    if not isinstance(given, list):
        raise FaultError("faults must be a list")
    return given


def _open_socket(host: str, port: int) -> socket.socket:
    """Return a bound socket that declares TCP: asyncio sends small packets at once only then."""
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
    except OSError:
        listening.close()
        raise
    return listening
