"""Offset pagination (spec sections 1 and 8): 20 results by default, never more than 100, with page headers."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlencode

from .attributes import integer, read
from .call import Answer, Call

T = TypeVar("T")
DEFAULT, MOST = 20, 100
PAGE = (integer("page"), integer("per_page", never=(0,)))
_SECRETS = ("private_token", "access_token")


def page_of(call: Call, found: Sequence[T], render: Callable[[T], Any]) -> Answer:
    """One page of what was found, each rendered, with the headers that lead to the others.

    The endpoint has read `PAGE` with its own parameters, before it looked who asks for what.
    """
    wanted = read(call, *PAGE)
    size = wanted.get("per_page")
    size = DEFAULT if size is None or size < 0 else min(size, MOST)
    page = max(wanted.get("page") or 1, 1)
    pages = max(-(-len(found) // size), 1)
    start = (page - 1) * size
    body = [render(item) for item in found[start : start + size]]
    return Answer(200, body, _headers(call, page, size, len(found), pages))


def _headers(call: Call, page: int, size: int, total: int, pages: int) -> list[tuple[str, str]]:
    following = str(page + 1) if page < pages else ""
    previous = str(page - 1) if 1 < page <= pages else ""
    links = [("prev", previous), ("next", following), ("first", "1"), ("last", str(pages))]
    path, _, query = call.target.partition("?")
    kept = [
        (name, value)
        for name, value in parse_qsl(query, keep_blank_values=True)
        if name not in ("page", "per_page", *_SECRETS)
    ]
    base = f"{call.url}{path}?" + (f"{urlencode(kept)}&" if kept else "")
    return [
        ("link", ", ".join(f'<{base}page={to}&per_page={size}>; rel="{rel}"' for rel, to in links if to)),
        ("x-next-page", following),
        ("x-page", str(page)),
        ("x-per-page", str(size)),
        ("x-prev-page", previous),
        ("x-total", str(total)),
        ("x-total-pages", str(pages)),
    ]
