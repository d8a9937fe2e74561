"""The sandbox on a socket: uvicorn's protocol on a loop of its own, in a thread or in the foreground."""

import asyncio
import copy
import signal
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from .answers import Receive, Scope, Send
from .app import Application
from .errors import FaultError, SandboxError
from .faults import Fault, Faults, read_fault
from .rate import parse_rate_limit
from .state import Dialect, State
from .state_file import dump, load, read_state

AnyFault = Fault | str | Mapping[str, Any]
_IDLE_SECONDS = 300


class Sandbox:
    """A running sandbox, and the ways to look at it and change it without a request.

    Attributes:
        base_url: `http://HOST:PORT`.
        api_url: the same with `/api/v4`.
    """

    def __init__(self, application: Application, base_url: str) -> None:
        self._application = application
        self.base_url = base_url
        self.api_url = f"{base_url}/api/v4"

    def log(self) -> list[dict[str, Any]]:
        """The requests so far: `method`, `target`, `body`, `status`, `changed`, `in_flight`; never a token."""
        with self._application.lock:
            return copy.deepcopy(self._application.log)

    def clear_log(self) -> None:
        """Forget the requests so far, and how many were in flight at once."""
        with self._application.lock:
            self._application.clear_log()

    def peak_in_flight(self) -> int:
        """The most requests that were in flight at once."""
        return self._application.peak

    def state(self) -> dict[str, Any]:
        """The whole present state, as a state file holds it."""
        with self._application.lock:
            return dump(self._application.state)

    def replace_state(self, state: Mapping[str, Any]) -> None:
        """Begin again with this state: log, faults, clock and IDs too; latency and rate limit stay.

        Raises:
            StateError: the state cannot be loaded; nothing has changed.
        """
        fresh = load(state)
        with self._application.lock:
            self._application.begin_again(fresh)

    def set_latency(self, milliseconds: float) -> None:
        """From now on every answer takes that long."""
        self._application.latency = milliseconds / 1000

    def set_faults(self, faults: Iterable[AnyFault]) -> None:
        """From now on these befall requests, and no others. Raises `FaultError` and changes nothing."""
        armed = Faults([read_fault(fault) for fault in faults])
        with self._application.lock:
            self._application.faults = armed

    def set_rate_limit(self, rate_limit: str | None) -> None:
        """From now on `N/SECONDS`, or no limit. Raises `FaultError` and changes nothing."""
        limit = None if rate_limit is None else parse_rate_limit(rate_limit)
        with self._application.lock:
            self._application.rate_limit = limit


@contextmanager
def running(
    state: Mapping[str, Any] | Path,
    latency_ms: float = 0,
    rate_limit: str | None = None,
    faults: Iterable[AnyFault] = (),
    port: int = 0,
) -> Iterator[Sandbox]:
    """A sandbox in a thread of its own on a loopback port, a free one for 0, until the block ends.

    Raises:
        StateError: the state cannot be loaded.
        FaultError: a fault or the rate limit cannot be understood.
    """
    listener = _Listener(_application(read_state(state), latency_ms, rate_limit, faults), "127.0.0.1", port)
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
    rate_limit: str | None = None,
    faults: Iterable[AnyFault] = (),
    dialect: Dialect | None = None,
    ready: Callable[[str], None],
) -> None:
    """Serve in the foreground until interrupted; `ready` is told the `api_url` once it answers.

    A dialect given here wins over the state's own.

    Raises:
        StateError: the state cannot be loaded.
        FaultError: a fault or the rate limit cannot be understood.
        OSError: the port is taken.
    """
    application = _application(read_state(state, dialect), latency_ms, rate_limit, faults)
    listener = _Listener(application, host, port)
    asyncio.run(_until_signalled(listener, lambda: ready(listener.sandbox.api_url)))


async def _until_signalled(listener: "_Listener", ready: Callable[[], None]) -> None:
    """Serve until a signal comes; those that are ignored, as in the background, stay so.

    The loop takes the signals: an exception out of a handler could end up in whatever answers a request just then.
    """
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            asyncio.get_running_loop().add_signal_handler(number, listener.stop)
    await listener.serve(ready)


def _application(state: State, latency_ms: float, rate_limit: str | None, faults: Iterable[AnyFault]) -> Application:
    application = Application(state)
    application.latency = latency_ms / 1000
    application.rate_limit = None if rate_limit is None else parse_rate_limit(rate_limit)
    application.faults = Faults([read_fault(fault) for fault in faults])
    return application


class _Connection(H11Protocol):
    """A connection that the requests on it know, so that they can break it."""

    def __init__(self, config: uvicorn.Config, connections: ServerState) -> None:
        super().__init__(config, connections, {"connection": self})


class _Listener:
    """One socket and the connections made to it."""

    def __init__(self, application: Application, host: str, port: int) -> None:
        self._application = application
        self._socket = _open_socket(host, port)
        self._connections = ServerState()
        self._stopping: asyncio.Event
        self._loop: asyncio.AbstractEventLoop
        self.sandbox = Sandbox(application, f"http://{host}:{self._socket.getsockname()[1]}")
        self._control = _control_app(self.sandbox)

    async def serve(self, ready: Callable[[], None]) -> None:
        """Answer until `stop`."""
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        config = uvicorn.Config(
            self._dispatch,
            log_config=None,
            log_level="error",
            access_log=False,
            http="h11",
            lifespan="off",
            interface="asgi3",
            proxy_headers=False,
            ws="none",
            server_header=False,
            date_header=False,
            timeout_keep_alive=_IDLE_SECONDS,
        )
        config.load()
        server = await self._loop.create_server(lambda: _Connection(config, self._connections), sock=self._socket)
        try:
            ready()
            await self._stopping.wait()
        finally:
            server.close()
            await self._hang_up()

    def stop(self) -> None:
        """End `serve`, from another thread too, once it is ready."""
        self._loop.call_soon_threadsafe(self._stopping.set)

    async def _hang_up(self) -> None:
        """Close idle connections, and break off what is still being answered."""
        for connection in list(self._connections.connections):
            connection.transport.abort()
        for task in list(self._connections.tasks):
            task.cancel()
        await asyncio.gather(*self._connections.tasks, return_exceptions=True)
        await asyncio.sleep(0)

    async def _dispatch(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["raw_path"].startswith(b"/-/"):
            await self._control(scope, receive, send)
        else:
            await self._application(scope, receive, send)


def _control_app(sandbox: Sandbox) -> Starlette:
    """The `/-/` endpoints, beside the service: its state, its log and its faults, for tests and rehearsals.

    They need no token, are not logged, and neither latency, faults nor rate limit touch them.
    """

    async def get_state(_: Request) -> Response:
        return JSONResponse(sandbox.state())

    async def put_state(request: Request) -> Response:
        return await _replace(request, sandbox.replace_state)

    async def get_log(_: Request) -> Response:
        return JSONResponse(sandbox.log())

    async def delete_log(_: Request) -> Response:
        sandbox.clear_log()
        return Response(status_code=204)

    async def put_faults(request: Request) -> Response:
        return await _replace(request, lambda given: sandbox.set_faults(_listed(given)))

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


def _open_socket(host: str, port: int) -> socket.socket:
    """A bound socket that says it is TCP, since only then asyncio sends small packets at once."""
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
    except OSError:
        found.close()
        raise
    return found
