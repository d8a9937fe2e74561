"""Redirects of reads, and projects that have moved (deployed behaviour, section 7.6).

The token goes to the service it is for and nowhere else; nothing is written to a place that nobody named.
"""

import re
from collections.abc import Mapping
from threading import Lock
from urllib.parse import SplitResult, unquote, urljoin, urlsplit

from reconciler.address import Level
from reconciler.service.paths import is_plain

FOLLOWED = frozenset({301, 302, 307, 308})

PORTS = {"http": 80, "https": 443}

_PROJECT = re.compile(r"projects/([^/?]+)([^?]*)")


def target_of(api_url: str, path: str, location: str) -> str | None:
    """Return where a redirect leads, as a path relative to `{api_url}/`; None where it leads out of the API.

    Args:
        path: of the request, relative as well.
    """
    try:
        here, there = urlsplit(f"{api_url}/{path}"), urlsplit(urljoin(f"{api_url}/{path}", location))
        if _origin(here) != _origin(there) or there.username is not None:
            return None
    except ValueError:
        return None
    root = urlsplit(api_url).path + "/"
    query = f"?{there.query}" if there.query else ""
    target = there.path + query
    return target.removeprefix(root) if target.startswith(root) and is_plain(target) else None


class Moves:
    """The projects that turned out to have moved, and their numbers. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._numbers: dict[str, int] = {}

    @property
    def found(self) -> Mapping[tuple[Level, str], int]:
        """The numeric ID by the level and the path that was asked for, without percent-encoding."""
        with self._lock:
            return {(Level.PROJECT, unquote(path)): number for path, number in self._numbers.items()}

    def learn(self, path: str, target: str) -> None:
        """Take note of a redirect from one relative path to another, if it is that of a project that has moved."""
        old, new = _PROJECT.match(path), _PROJECT.match(target)
        if old and new and old[2] == new[2] and not old[1].isdigit() and re.fullmatch("[0-9]{1,18}", new[1]):
            with self._lock:
                self._numbers[old[1]] = int(new[1])

    def number(self, path: str) -> int | None:
        """Return the numeric ID of the project that a relative path lies in, if it is known to have moved."""
        if not self._numbers:
            return None
        project = _PROJECT.match(path)
        return self._numbers.get(project[1]) if project else None

    def present(self, path: str) -> str:
        """Return a relative path as it is now."""
        number = self.number(path)
        return path if number is None else _PROJECT.sub(rf"projects/{number}\2", path, count=1)


def _origin(url: SplitResult) -> tuple[str, str | None, int | None]:
    return url.scheme, url.hostname, url.port or PORTS.get(url.scheme)
