"""Redirects within the API, and the groups and projects that have moved, as redirects of reads show them.

Begin with `Moves`. See section 7 of the spec, and section 7.6 of the deployed behaviour.
"""

import re
from collections.abc import Mapping
from threading import Lock
from urllib.parse import SplitResult, unquote, urljoin, urlsplit

from reconciler.model.targets import Level, Target
from reconciler.service.connection import is_plain
from reconciler.service.responses import Response

FOLLOWED = frozenset({301, 302, 307, 308})

PORTS = {"http": 80, "https": 443}

_TARGET = re.compile(r"(group|project)s/([^/?]+)")


def redirect(response: Response) -> str | None:
    """Return the location of a redirect as the response has it; None for any other response."""
    return response.headers.get("location") if response.status in FOLLOWED else None


def target_of(api_url: str, path: str, redirect_url: str) -> str | None:
    """Return the path of a redirect's location relative to `{api_url}/`; None if it is not within the API.

    Args:
        path: the path of the request, relative to the same URL.
    """
    try:
        requested, redirected = urlsplit(f"{api_url}/{path}"), urlsplit(urljoin(f"{api_url}/{path}", redirect_url))
        if _origin(requested) != _origin(redirected) or redirected.username is not None:
            return None
    except ValueError:
        return None
    root = urlsplit(api_url).path + "/"
    query = f"?{redirected.query}" if redirected.query else ""
    target = redirected.path + query
    return target.removeprefix(root) if target.startswith(root) and is_plain(target) else None


class Moves:
    """The groups and projects that have moved, and their numeric IDs. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._numbers: dict[tuple[Level, str], int] = {}

    @property
    def found(self) -> Mapping[tuple[Level, str], int]:
        """The numeric ID by level and requested path, without percent-encoding."""
        with self._lock:
            return {(level, unquote(path)): number for (level, path), number in self._numbers.items()}

    def learn(self, path: str, new_path: str) -> None:
        """Record a redirect from one relative path to another, if it shows that a group or project has moved."""
        old, new = _TARGET.match(path), _TARGET.match(new_path)
        if not old or not new or old[1] != new[1] or old[2].isdigit() or not re.fullmatch("[0-9]{1,18}", new[2]):
            return
        # The paths must be equal after the target: a redirect to a login page, for example, is no move.
        if path[old.end() :].partition("?")[0] == new_path[new.end() :].partition("?")[0]:
            with self._lock:
                self._numbers[Level(old[1]), old[2]] = int(new[2])

    def moved_target(self, path: str) -> Target | None:
        """Return the target, by its ID, that a relative path belongs to, if the target is known to have moved."""
        old = _TARGET.match(path) if self._numbers else None
        number = self._numbers.get((Level(old[1]), old[2])) if old else None
        return Target(Level(old[1]), number) if old and number is not None else None

    def current(self, path: str) -> str:
        """Return the relative path that replaces `path`."""
        target = self.moved_target(path)
        return path if target is None else _TARGET.sub(target.url.rstrip("/"), path, count=1)


def is_about_content(path: str) -> bool:
    """Return whether a relative path is about the content of a group or project, not about its own record."""
    target = _TARGET.match(path)
    return target is not None and bool(path[target.end() :].partition("?")[0].strip("/"))


def _origin(split_url: SplitResult) -> tuple[str, str | None, int | None]:
    return split_url.scheme, split_url.hostname, split_url.port or PORTS.get(split_url.scheme)
