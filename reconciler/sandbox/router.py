"""From a method and a raw path to an endpoint.

Segments are told apart before they are decoded, so `acme%2Fweb` is one of them and never two.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote

from .call import Route
from .errors import Refusal

PREFIX = "/api/v4/"


@dataclass(slots=True)
class _Node:
    literal: "dict[str, _Node]" = field(default_factory=dict)
    part: "_Node | None" = None
    routes: dict[str, tuple[Route, tuple[str, ...]]] = field(default_factory=dict)


class Router:
    """A tree of path segments."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._root = _Node()
        for route in routes:
            self._add(route)

    def find(self, method: str, path: str) -> tuple[Route, Mapping[str, str]]:
        """The endpoint, and the decoded parts of the path by name.

        Raises:
            Refusal: 404 for a path that is none, 405 for a method the path does not have.
        """
        values: list[str] = []
        node: _Node | None = self._root if path.startswith(PREFIX) else None
        for segment in path.removeprefix(PREFIX).split("/"):
            if node is None:
                break
            following = node.literal.get(segment)
            if following is None and segment:
                following = node.part
                values.append(unquote(segment))
            node = following
        if node is None or not node.routes:
            raise Refusal(404, {"error": "404 Not Found"})
        found = node.routes.get("GET" if method == "HEAD" else method)
        if found is None:
            raise Refusal(405, {"error": "405 Not Allowed"}, [("allow", ", ".join(sorted(node.routes)))])
        route, names = found
        return route, dict(zip(names, values, strict=True))

    def _add(self, route: Route) -> None:
        node, names = self._root, []
        for segment in route.path.strip("/").split("/"):
            if segment.startswith(":"):
                names.append(segment[1:])
                node.part = node.part or _Node()
                node = node.part
            else:
                node = node.literal.setdefault(segment, _Node())
        node.routes[route.method] = (route, tuple(names))
