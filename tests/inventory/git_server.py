"""A git server, over TLS or not, for repositories in a folder: git's own backend, behind names and tokens."""

import os
import ssl
import subprocess
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from tests.fleet.repository import NOBODY
from tests.service.test_connection import LOOPBACK

REPOSITORY = "acme/settings.git"


@dataclass
class GitServer:
    """The server.

    Attributes:
        folder: of the repositories.
        url: of the server.
        tokens: those that are known.
        readers: those of them that may not push.
        asked: for each request, what it is about and the credentials that came with it.
        before_push: is called once before the next push is carried out.
        redirect: where every request is sent instead.
        api: host and port of the service that answers requests to the API; empty for none.
        canned: by path, what the API answers instead.
    """

    folder: Path
    url: str = ""
    tokens: set[str] = field(default_factory=lambda: {"push-token", "job-token"})
    readers: set[str] = field(default_factory=set)
    asked: list[tuple[str, str]] = field(default_factory=list)
    before_push: Callable[[], object] | None = None
    redirect: str = ""
    api: str = ""
    canned: dict[str, bytes] = field(default_factory=dict)

    @property
    def remote(self) -> str:
        """The URL of the repository."""
        return f"{self.url}/{REPOSITORY}"

    def git(self, *arguments: str) -> str:
        """Run git in the repository and return its output."""
        command = ["git", f"--git-dir={self.folder / REPOSITORY}", *arguments]
        return subprocess.run(
            command, env={**os.environ, **NOBODY}, capture_output=True, text=True, check=True
        ).stdout.strip()

    def last(self, branch: str = "reconciler/applied") -> str:
        """Return the last commit of a branch; empty if there is none."""
        return self.git("for-each-ref", "--format=%(objectname)", f"refs/heads/{branch}")

    def refusal(self, path: str, service: str, token: str) -> tuple[int, dict[str, str]]:
        """Return status and headers of the answer to a request that is not carried out; 0 for one that is."""
        if self.redirect:
            return 302, {"Location": self.redirect + path}
        if token not in self.tokens:
            return 401, {"WWW-Authenticate": 'Basic realm="git"'}
        return (403 if service == "push" and token in self.readers else 0), {}

    def is_api(self, path: str) -> bool:
        """Return whether the service of the API answers the requests for a path."""
        return bool(self.api) and path.startswith("/api/")

    def push_begins(self) -> None:
        """Do what is to be done right before a push."""
        action, self.before_push = self.before_push, None
        if action:
            action()

    def users(self) -> list[str]:
        """Return the pushes and fetches that carried credentials, each with those, and forget all requests."""
        asked = [f"{service} {login}" for service, login in self.asked if login]
        self.asked.clear()
        return list(dict.fromkeys(asked))


def _forwarded(server: GitServer, asked: BaseHTTPRequestHandler, body: bytes) -> tuple[int, dict[str, str], bytes]:
    """Return status, headers and content of what the service of the API answers."""
    if asked.path in server.canned:
        return 200, {"Content-Type": "application/json"}, server.canned[asked.path]
    with closing(HTTPConnection(server.api)) as connection:
        connection.request(asked.command, asked.path, body, dict(asked.headers))
        answer = connection.getresponse()
        kept = {"Content-Type", "Content-Encoding", "X-Next-Page"} & {*answer.headers}
        return answer.status, {name: answer.headers[name] for name in kept}, answer.read()


def _backend(
    server: GitServer, asked: BaseHTTPRequestHandler, path: str, query: str, body: bytes
) -> tuple[int, dict[str, str], bytes]:
    """Return status, headers and content of what git answers."""
    if path.endswith("git-receive-pack"):
        server.push_begins()
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_HTTP_EXPORT_ALL": "1",
        "GIT_PROJECT_ROOT": str(server.folder),
        "GIT_PROTOCOL": asked.headers.get("Git-Protocol", ""),
        "HTTP_CONTENT_ENCODING": asked.headers.get("Content-Encoding", ""),
        "PATH_INFO": path,
        "QUERY_STRING": query,
        "REQUEST_METHOD": asked.command,
        "CONTENT_TYPE": asked.headers.get("Content-Type", ""),
        "CONTENT_LENGTH": str(len(body)),
        "REMOTE_USER": "ada",
    }
    command = ["git", "-c", "safe.directory=*", "http-backend"]
    done = subprocess.run(command, input=body, env=environment, capture_output=True, check=False)
    head, _, content = done.stdout.partition(b"\r\n\r\n")
    headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
    return int(headers.pop("Status", "200").split()[0]), headers, content


def _handler(server: GitServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            return

        def handle_one_request(self) -> None:
            try:
                super().handle_one_request()
            except (ConnectionError, ssl.SSLError):
                self.close_connection = True

        def answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if server.is_api(path):
                self.answer(*_forwarded(server, self, body))
                return
            login = b64decode(self.headers.get("Authorization", "").removeprefix("Basic ")).decode()
            service = "push" if "receive-pack" in self.path else "fetch"
            server.asked.append((service, login))
            status, headers = server.refusal(self.path, service, login.partition(":")[2])
            if status:
                self.answer(status, headers, b"You are not allowed to do this.")
            else:
                self.answer(*_backend(server, self, path, query, body))

        do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815 - the names are the library's

    return Handler


@contextmanager
def git_server(folder: Path, *, push_options: bool = True, tls: bool = True) -> Iterator[GitServer]:
    """Serve a repository, which is an empty one unless it is there, and what else is in a folder."""
    server = GitServer(folder)
    bare = folder / REPOSITORY
    if not bare.exists():
        subprocess.run(["git", "init", "--quiet", "--bare", str(bare)], env={**os.environ, **NOBODY}, check=True)
    server.git("config", "receive.advertisePushOptions", str(push_options).lower())
    server.git("config", "http.receivepack", "true")
    listener = ThreadingHTTPServer(("127.0.0.1", 0), _handler(server))
    listener.daemon_threads = True
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(LOOPBACK)
        listener.socket = context.wrap_socket(listener.socket, server_side=True, do_handshake_on_connect=False)
    server.url = f"{'https' if tls else 'http'}://127.0.0.1:{listener.server_address[1]}"
    thread = Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        listener.shutdown()
        listener.server_close()
        thread.join()
