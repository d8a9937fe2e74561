"""A small service and a client of it: real requests over a real socket."""

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

import httpx

from reconciler.sandbox import Sandbox

WEB = "/projects/acme%2Fweb"
HOST = "https://host.test"
NOW = "2026-03-01T00:00:00Z"
CREATED = "2026-01-01T00:00:00Z"
Answer = tuple[int, Any]


def a_service(dialect: str = "spec", **projects: Mapping[str, Any]) -> dict[str, Any]:
    """One group with one subgroup, a project in each and one outside; keyword arguments add to `web`, `lib`, `far`."""
    return {
        "instance": {"dialect": dialect, "url": HOST, "now": NOW, "enforce_job_token_allowlist": False},
        "users": [
            {"id": 1, "username": "root", "admin": True, "tokens": ["root-token"]},
            {"id": 2, "username": "ada", "tokens": ["ada-token"], "emails": ["ada@example.com", "a@example.com"]},
            {"id": 3, "username": "max", "tokens": ["max-token"]},
            {"id": 4, "username": "dev", "tokens": ["dev-token"]},
            {"id": 5, "username": "pia", "tokens": ["pia-token"]},
            {"id": 6, "username": "gus", "tokens": ["gus-token"]},
            {"id": 7, "username": "eve", "tokens": ["eve-token"]},
        ],
        "groups": [
            {"id": 10, "path": "acme", "members": [{"user": "ada", "role": "owner"}], **projects.get("acme", {})},
            {"id": 11, "path": "acme/team", **projects.get("team", {})},
            {"id": 12, "path": "far", "members": [{"user": "eve", "role": "owner"}]},
        ],
        "projects": [
            {"id": 100, "path": "acme/web", "members": MEMBERS, **projects.get("web", {})},
            {"id": 101, "path": "acme/team/lib", **projects.get("lib", {})},
            {"id": 102, "path": "far/off", **projects.get("far", {})},
        ],
    }


MEMBERS = [
    {"user": "max", "role": "maintainer"},
    {"user": "dev", "role": "developer"},
    {"user": "pia", "role": "planner"},
    {"user": "gus", "role": "guest"},
]


class SandboxClient:
    """A client of a sandbox, with the token of ada by default."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self._client = httpx.Client(base_url=sandbox.base_url)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._client.close()

    def given(self, state: Mapping[str, Any]) -> "SandboxClient":
        """Start again with that state."""
        self.sandbox.replace_state(state)
        return self

    def ask(self, line: str, body: Any = None, *, user: str | None = "ada", **headers: str) -> Answer:
        """Send `METHOD /path` below `/api/v4`, with a JSON body; return the status, and the JSON value or None."""
        response = self.response(line, body, user=user, **headers)
        return response.status_code, response.json() if response.content else None

    def response(self, line: str, body: Any = None, *, user: str | None = "ada", **headers: str) -> httpx.Response:
        """Do the same, and return the whole response; `If_Match=` becomes the header `If-Match`."""
        method, path = line.split(" ", 1)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if user is not None:
            sent["PRIVATE-TOKEN"] = f"{user}-token"
        return self._client.request(method, f"/api/v4{path}", json=body, headers=sent)

    def post(
        self, path: str, user: str = "ada", headers: Mapping[str, str] | None = None, **sent: Any
    ) -> httpx.Response:
        """Send a form or raw content by `POST`; `sent` are arguments of httpx."""
        return self._client.post(
            f"/api/v4{path}", headers={"PRIVATE-TOKEN": f"{user}-token", **(headers or {})}, **sent
        )

    def control(self, line: str, body: Any = None) -> httpx.Response:
        """Send `METHOD /-/path` without a token."""
        method, path = line.split(" ", 1)
        return self._client.request(method, path, json=body)

    def changes(self) -> list[bool]:
        """Return for each request so far whether it changed the state."""
        return [entry["changed"] for entry in self.sandbox.log()]
