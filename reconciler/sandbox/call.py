"""A request within the sandbox: its endpoint, its user, and the groups and projects which that user can see.

An endpoint is a function of a `Call` that returns an `Answer` or raises `Refusal`. A creation returns an `Insertion`
after its checks: production does not check and insert at once, so other requests may be carried out in between.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import unquote

from .answers import Answer, Refusal, refused
from .records import moment
from .state import AccessToken, Group, GroupOrProject, Instance, Level, Project, SandboxState, User

_READING = ("GET", "HEAD")


Insertion = Callable[[], Answer]


@dataclass(frozen=True, slots=True)
class Route:
    """An endpoint.

    Attributes:
        method: the HTTP method.
        path: below `/api/v4`, as the spec writes it: `/projects/:id/milestones`.
        serve: the function that answers.
        anonymous: whether production servers look for the object before they ask for a token; public objects are shown.
        parameters_first: whether production servers check parameters before the token.
        credential: whether the endpoint needs an access token at all.
        scopes: token scopes that suffice beside `api` and, for reading, `read_api`.
    """

    method: str
    path: str
    serve: "Callable[[Call], Answer | Insertion]"
    anonymous: bool = False
    parameters_first: bool = False
    credential: bool = True
    scopes: tuple[str, ...] = ()


def level_of(path: str) -> Level:
    """Return the level of the record that `:id` in a path names; the instance, if the path has no `:id`."""
    levels: tuple[Level, ...] = ("project", "group")
    return next((level for level in levels if path.startswith(f"/{level}s/:id/")), "instance")


class Router:
    """Finds the endpoint of a method and a raw path; a literal segment takes precedence over a named part.

    The path is split before it is decoded, so `acme%2Fweb` is one segment.
    """

    def __init__(self, routes: Iterable[Route]) -> None:
        paths: dict[str, dict[str, Route]] = {}
        for route in sorted(routes, key=lambda route: route.path.replace(":", "~")):
            paths.setdefault(route.path, {})[route.method] = route
        self._paths = [
            (re.compile("/api/v4" + re.sub(r":(\w+)", r"(?P<\1>[^/]+)", path)), methods)
            for path, methods in paths.items()
        ]

    def find(self, method: str, path: str, *, deployed: bool) -> tuple[Route, Mapping[str, str]]:
        """Return the endpoint, and the decoded parts of the path by name. One slash at the end is ignored.

        Raises:
            Refusal: 404 for an unknown path; 405 for a method the path does not have, in production 404 too.
        """
        for pattern, methods in self._paths:
            match = pattern.fullmatch(path.removesuffix("/"))
            if match:
                route = methods.get("GET" if method == "HEAD" else method)
                if route is None and deployed:
                    break
                if route is None:
                    raise Refusal(405, {"error": "405 Not Allowed"}, [("allow", ", ".join(sorted(methods)))])
                return route, {name: unquote(part) for name, part in match.groupdict().items()}
        raise Refusal(404, {"error": "404 Not Found"})


@dataclass(slots=True)
class Call:
    """A request, parsed.

    Attributes:
        state: the state of the service.
        route: the requested endpoint.
        target: the path and query as received.
        parts: the named parts of the path, decoded.
        sent: parameters of query, form and JSON body, merged.
        headers: names in lower case.
        url: the address of the service in its answers, without `/api/v4`.
        changed: whether the endpoint has changed the state; set by the endpoint.
        cost: the duration on production servers, as a multiple of reading one small record; set by the endpoint.
        user: its user, once `authenticate` has been called.
        token: the token of that user.
    """

    state: SandboxState
    route: Route
    target: str
    parts: Mapping[str, str]
    sent: Mapping[str, Any]
    headers: Mapping[str, str]
    url: str
    changed: bool = False
    cost: float = 1.0
    user: User | None = None
    token: AccessToken | None = None
    _authenticated: bool = field(default=False, repr=False)

    @property
    def method(self) -> str:
        """The HTTP method of the endpoint."""
        return self.route.method

    @property
    def level(self) -> Level:
        """The level that `:id` in the path names; the instance, if the path has no `:id`."""
        return level_of(self.route.path)

    def authenticate(self) -> None:
        """Identify the user (spec section 5).

        Raises:
            Refusal: 401 where the token is missing, unknown, expired or revoked; 403 where its scope is too small.
        """
        if self._authenticated:
            return
        value = token_in(self.headers, self.sent)
        if value is None:
            if not (self.route.anonymous and self.state.deployed):
                raise refused(401, "401 Unauthorized")
        else:
            token = self.state.tokens.get(value)
            if token is None:
                raise refused(401, "401 Unauthorized")
            self._accept(self.state.users_by_token[value], token)
            if self.sent.get("sudo") or "sudo" in self.headers:
                self._impersonate(str(self.sent.get("sudo") or self.headers["sudo"]))
        self._authenticated = True

    def caller(self) -> User:
        """Return the user; only for endpoints that are not `anonymous`."""
        self.authenticate()
        assert self.user is not None  # noqa: S101 - only `anonymous` endpoints go on without one
        return self.user

    def visible_project(self) -> Project:
        """Return the project in the path, if the caller may see it.

        Raises:
            Refusal: 404 where it is unknown or invisible; 301 or 405 where it has moved (spec section 7).
        """
        self.authenticate()
        return find_project(self, self.parts["id"])

    def visible_place(self) -> GroupOrProject:
        """Return the group or project in the path, if the caller may see it."""
        return self.visible_group() if self.level == "group" else self.visible_project()

    def project(self, role: int) -> Project:
        """Return the project in the path, if the caller has at least that role there; else 404 or 403."""
        project = self.visible_project()
        self.require(project, role)
        return project

    def visible_group(self) -> Group:
        """Return the group in the path, if the caller may see it; else 404."""
        self.authenticate()
        if self.state.arrivals and self.method in _READING:
            self._let_arrive()
        group = self.state.find_group(self.parts["id"])
        if group is None or not self.state.visible(self.user, group):
            raise refused(404, "404 Group Not Found")
        return group

    def group(self, role: int) -> Group:
        """Return the group in the path, if the caller has at least that role there; else 404 or 403."""
        group = self.visible_group()
        self.require(group, role)
        return group

    def instance(self) -> Instance:
        """Return the service as a whole, if the caller is an administrator; else 403."""
        if not self.caller().admin:
            raise refused(403, "403 Forbidden")
        return self.state.instance

    def require(self, place: GroupOrProject, role: int, message: str = "403 Forbidden") -> None:
        """Refuse with 403 if the caller has a lesser role there."""
        if self.state.access(self.user, place) < role:
            raise refused(403, message)

    def require_open(self, place: GroupOrProject) -> None:
        """Refuse with 403 if the place or a group above is archived."""
        if self.state.is_archived(place):
            raise refused(403, "403 Forbidden")

    def number(self, part: str) -> int:
        """Return a part of the path that must be a whole number; else 400."""
        text = self.parts[part]
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdigit()):
            raise invalid(self.state, {part: "is invalid"})
        return int(text)

    def require_unmodified(self, updated_at: str) -> None:
        """Refuse with 412 when `If-Unmodified-Since` is before the last change (spec section 7)."""
        since = _point_in_time(self.headers.get("if-unmodified-since", ""))
        if since is not None and moment(updated_at).replace(microsecond=0) > since:
            raise refused(412, "412 Precondition Failed")

    def _let_arrive(self) -> None:
        """Bring more of an import into the group in the path, which may itself arrive now, and into those above."""
        group = self.state.find_group(self.parts["id"])
        path = f"{group.path if group else self.parts['id']}/".lower()
        for number, arrive in list(self.state.arrivals.items()):
            if number in self.state.groups and path.startswith(f"{self.state.groups[number].path}/".lower()):
                arrive(self)

    def _accept(self, user: User, token: AccessToken) -> None:
        if token.revoked:
            raise _bad_token("Token was revoked. You have to re-authorize from the user.")
        if token.expires_at is not None and token.expires_at <= self.state.today():
            raise _bad_token("Token is expired. You can either do re-authorization or token refresh.")
        if user.blocked:
            raise refused(403, "403 Forbidden - Your account has been blocked.")
        suffices = {"api", *self.route.scopes}
        if token.kind == "job" and "any" not in suffices:
            raise refused(401, "401 Unauthorized")
        if self.method in _READING:
            suffices.add("read_api")
        if "any" not in suffices and suffices.isdisjoint(token.scopes):
            if self.state.deployed:
                suffices.add("read_api")  # production lists the scopes of the endpoint, whatever the method
            raise _lacking_scope(" ".join(sorted(suffices)))
        lacks_mode = self.state.instance.admin_mode and "admin_mode" not in token.scopes
        self.user = user.model_copy(update={"admin": False}) if lacks_mode else user
        self.token = token

    def _impersonate(self, key: str) -> None:
        """Go on as another user, by ID or name; only administrators may, whose token has the scope for it."""
        user, token = self.user, self.token
        if user is None or token is None or not user.admin:
            raise refused(403, "403 Forbidden - Must be admin to use sudo")
        if "sudo" not in token.scopes:
            raise _lacking_scope("sudo")
        other = self.state.users.get(int(key)) if key.isdecimal() else self.state.users_by_name.get(key.lower())
        if other is None:
            raise refused(404, f"404 User with ID or username '{key}' Not Found")
        self.user = other


def _lacking_scope(scopes: str) -> Refusal:
    """Return the refusal (403) for a token whose scopes do not include those of the request."""
    return Refusal(
        403,
        {
            "error": "insufficient_scope",
            "error_description": "The request requires higher privileges than provided by the access token.",
            "scope": scopes,
        },
    )


def _point_in_time(text: str) -> datetime | None:
    """Return a date in the format of headers, or in ISO 8601; None for anything else."""
    for parse in (moment, parsedate_to_datetime):
        with suppress(ValueError):
            value = parse(text)
            return value if value.tzinfo else value.replace(tzinfo=UTC)
    return None


def token_in(headers: Mapping[str, str], sent: Mapping[str, Any]) -> str | None:
    """Return the access token of a request: from its headers or, failing that, its parameters (spec section 5)."""
    if "private-token" in headers:
        return headers["private-token"]
    bearer = headers.get("authorization", "")
    if bearer[:7].lower() == "bearer ":
        return bearer[7:].strip()
    token = sent.get("private_token") or sent.get("access_token")
    return token if isinstance(token, str) else None


def find_project(call: Call, key: str) -> Project:
    """Return the project of that ID or path, if the caller may see it, else 404; for a moved project, 301 or 405."""
    project = call.state.find_project(key)
    if project is not None and call.state.visible(call.user, project):
        return project
    moved = None if project else call.state.moved.get(key.lower())
    if moved is not None and call.state.visible(call.user, moved):
        raise _moved(call, moved)
    raise refused(404, "404 Project Not Found")


def invalid(state: SandboxState, reasons: Mapping[str, str]) -> Refusal:
    """Return the refusal (400) of invalid attributes: in the spec's shape (section 7), or as production's string."""
    if state.deployed:
        return Refusal(400, {"error": ", ".join(f"{name} {reason}" for name, reason in reasons.items())})
    return refused(400, {name: [reason] for name, reason in reasons.items()})


def _moved(call: Call, project: Project) -> Refusal:
    if call.method not in _READING:
        return refused(405, "Non GET methods are not allowed for moved projects")
    path, mark, query = call.target.removeprefix("/api/v4/projects/").partition("?")
    _, slash, rest = path.partition("/")
    location = f"{call.url}/api/v4/projects/{project.id}{slash}{rest}{mark}{query}"
    return Refusal(301, f"This resource has been moved permanently to {location}", [("location", location)])


def _bad_token(description: str) -> Refusal:
    return Refusal(401, {"error": "invalid_token", "error_description": description})
