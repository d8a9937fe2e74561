"""A server on a real socket that answers what a test tells it to, for answers that no sane service gives."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from socket import socket
from threading import Thread


@dataclass
class Canned:
    """What is answered, in turn, and what was asked.

    Attributes:
        answers: raw HTTP answers; the last one is repeated. An empty one closes the connection instead.
        requests: raw requests, head and body.
    """

    answers: list[bytes]
    api_url: str = ""
    requests: list[str] = field(default_factory=list)


def answer(status: str, body: bytes | str = b"", **headers: str) -> bytes:
    """Return a raw HTTP answer; header names are written with underscores for dashes."""
    content = body.encode() if isinstance(body, str) else body
    given = {"content-type": "application/json"} | {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in given.items())]
    lines += [f"content-length: {len(content)}", "connection: close"]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + content


@contextmanager
def canned(*answers: bytes) -> Iterator[Canned]:
    """Serve raw answers on a free loopback port."""
    with socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        server = Canned(list(answers), f"http://127.0.0.1:{listener.getsockname()[1]}/api/v4")
        thread = Thread(target=_serve, args=(listener, server), daemon=True)
        thread.start()
        yield server
        listener.shutdown(2)
        thread.join()


@contextmanager
def answering(act: Callable[[str], bytes | None]) -> Iterator[str]:
    """Serve what a function makes of each request; None keeps the connection open and never answers.

    The value is the URL of the API.
    """
    held = []

    def serve(listener: socket) -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                made = act(_read(connection))
                if made is None:
                    held.append(connection)
                else:
                    with connection:
                        connection.sendall(made)

    with socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        thread = Thread(target=serve, args=(listener,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/api/v4"
        listener.shutdown(2)
        thread.join()
    for connection in held:
        connection.close()


def _serve(listener: socket, server: Canned) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            server.requests.append(_read(connection))
            connection.sendall(server.answers[0] if len(server.answers) == 1 else server.answers.pop(0))


def _read(connection: socket) -> str:
    data = b""
    while b"\r\n\r\n" not in data and (more := connection.recv(65536)):
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    lengths = [line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    while len(body) < sum(map(int, lengths)) and (more := connection.recv(65536)):
        body += more
    return (head + b"\r\n\r\n" + body).decode()
