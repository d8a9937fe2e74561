"""Lists, page by page, and lists that change while they are read (deployed behaviour, section 7.3). See `read_list`."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic
from urllib.parse import parse_qs, urlsplit

from reconciler.errors import BadAnswer
from reconciler.model.protocols import Json, KeepPage, Kept, Spread
from reconciler.service.connection import is_plain
from reconciler.service.responses import Response, parse_number, plain

PER_PAGE = 100
"""The largest page of deployed servers. Others may send smaller pages without saying so."""

MAX_PAGES = 1000
"""A longer list counts as endless."""

MAX_READINGS = 3
"""The most readings of a list that keeps changing."""

Fetch = Callable[[str], tuple[Json, Response]]
"""Requests a relative path; returns the JSON value and the response."""

END = ""
"""Instead of the next page's path: the service shows that this is the last page."""

ID = "ID "
"""The beginning of the name of an entry that has an ID."""

PAGING = frozenset({"first", "prev", "next", "last"})
"""The relations of a `Link` header about pages."""

_LINK = re.compile(r"<([^<>]*)>([^<]*)")
_RELATION = re.compile(r';\s*rel\s*=\s*"?([^";,]*)', re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Page(Generic[Kept]):
    """One page of a list.

    Attributes:
        items: the kept parts of the entries.
        names: the identities of the entries: see `_name`.
        status: of the response.
        headers: of the response.
    """

    items: list[Kept]
    names: frozenset[str]
    status: int = field(compare=False)
    headers: Mapping[str, str] = field(compare=False)


@dataclass(slots=True)
class _Reading(Generic[Kept]):
    """The result of reading a list once.

    Attributes:
        pages: the pages.
        totals: the `x-total` of each response.
        odd_end: the page without a new entry that ended the list, unless it repeats the page before it.
        names: of all entries.
    """

    pages: list[_Page[Kept]] = field(default_factory=list)
    totals: set[str] = field(default_factory=set)
    odd_end: list[Kept] = field(default_factory=list)
    names: set[str] = field(default_factory=set, compare=False)

    def add(self, next_page: _Page[Kept]) -> None:
        """Add the next page."""
        self.totals.add(next_page.headers.get("x-total", ""))
        self.names |= next_page.names
        self.pages.append(next_page)

    def end(self, last_page: _Page[Kept]) -> None:
        """Add a page without a new entry, after which there is no other page."""
        self.totals.add(last_page.headers.get("x-total", ""))
        repeated = {frozenset(), *(former.names for former in self.pages[-1:])}
        self.odd_end = [] if last_page.names in repeated else last_page.items

    @property
    def count(self) -> int:
        """The number of entries."""
        return sum(len(page.items) for page in self.pages)

    @property
    def items(self) -> list[Kept]:
        return [item for page in self.pages for item in page.items]

    @property
    def is_complete(self) -> bool:
        """Whether the number of entries is that of every total."""
        return all(total in (None, self.count) for total in map(parse_number, self.totals))

    @property
    def has_shifted(self) -> bool:
        """Whether an object is on more than one page."""
        numbers = [{name for name in page.names if name.startswith(ID)} for page in self.pages]
        return bool(self.odd_end) or len(set().union(*numbers)) < sum(map(len, numbers))


def read_list(
    fetch: Fetch,
    path: str,
    keep: KeepPage[Kept],
    *,
    counted: bool = True,
    whole: bool = False,
    spread: Spread | None = None,
) -> list[Kept]:
    """Return the kept parts of all entries of all pages of a list, as of one point in time.

    A total that changes or is not reached, or an object on two pages, means that the list has changed between two
    pages, so that an entry may be missing; it is read again. (An object may be on a list twice: the allowlist of
    deployed servers repeats the project itself. Then both readings are the same.)

    Args:
        fetch: gets a page.
        path: of the list.
        keep: returns the kept parts of the entries of a page.
        counted: whether the total counts the listed entries only; deployed servers count notes that they hide from
            the token.
        whole: see `protocols.Reader.pages`.
        spread: requests all further pages in parallel, if the first has their number; None for one after another.

    Raises:
        ServiceError: an error of `fetch` or `keep`; BadAnswer if the response is not a list, or the list keeps
            changing.
    """

    def page_of(url: str) -> _Page[Kept]:
        entries, response = fetch(url)
        if not isinstance(entries, list):
            raise BadAnswer(_request(path), "unexpected response: the body is not a list", response.status)
        return _Page(keep(entries), frozenset(map(_name, entries)), response.status, response.headers)

    former: _Reading[Kept] | None = None
    for _ in range(MAX_READINGS):
        reading = _read_pages(page_of, path, spread, whole=whole)
        if (not counted or reading.is_complete) and (reading == former or not reading.has_shifted):
            return reading.items
        former = reading
    raise BadAnswer(_request(path), "the list kept changing while it was read")


def _read_pages(
    fetch: Callable[[str], _Page[Kept]], path: str, spread: Spread | None, *, whole: bool
) -> _Reading[Kept]:
    """Follow the headers; without any, read until a page is empty or has only known entries.

    The length of a page shows nothing, since servers cap `per_page` as they like. A server without pages sends its one
    page again; it is asked once if that is known (`whole`). Other servers repeat the last page.
    """
    reading = _Reading[Kept]()
    asked = [_numbered(path, 1)]
    others: dict[str, _Page[Kept]] = {}
    while len(asked) <= MAX_PAGES:
        number, place = len(asked), asked[-1]
        page = others.pop(place, None) or fetch(place)
        following = _following(path, page, number, reading.count + len(page.items))
        may_go_on = following is None and not whole
        if may_go_on and page.names <= reading.names:
            reading.end(page)
            return reading
        reading.add(page)
        if may_go_on and place == _numbered(path, number):
            following = _numbered(path, number + 1)
        if not following:
            return reading
        if following in asked:
            raise _no_such_page(path, page, number, following)
        # Above 10,000 rows, GitLab sends no totals (deployed behaviour, section 7.3): pages are read one by one then.
        last = parse_number(page.headers.get("x-total-pages")) or 0
        if last > MAX_PAGES:
            break
        if spread and number == 1 and following == _numbered(path, 2):
            pages = [_numbered(path, page_number) for page_number in range(2, last + 1)]
            others = dict(zip(pages, spread(fetch, pages), strict=True))
        asked.append(following)
    raise BadAnswer(_request(path), f"the list has more than {MAX_PAGES} pages")


def _following(path: str, response: _Page[Kept], page: int, count: int) -> str | None:
    """Return the path of the next page, `END`, or None if no header is about it.

    Args:
        path: of the list.
        response: a page of the list.
        page: the number of that page, from 1.
        count: the number of entries up to the end of that page.

    Raises:
        BadAnswer: the headers contradict the page.
    """
    headers = response.headers
    number = headers.get("x-next-page")
    if number is not None:
        # A service or proxy that repeats or skips pages would end in an endless or an incomplete list.
        if number not in ("", str(page + 1)):
            raise _no_such_page(path, response, page, number)
        return _numbered(path, page + 1) if number else END
    links = dict(_links(headers.get("link", "")))
    if not PAGING.isdisjoint(links):
        return _linked(path, response, page, links["next"]) if "next" in links else END
    pages, total = parse_number(headers.get("x-total-pages")), parse_number(headers.get("x-total"))
    if pages is not None:
        return _numbered(path, page + 1) if page < pages else END
    return END if total is not None and count >= total else None


def _linked(path: str, response: _Page[Kept], page: int, link: str) -> str:
    """Return the path of the page that a link leads to: the list's own path, with the link's query.

    Behind a proxy, a service does not know its own host and path, so those of the link are not used.
    """
    try:
        query = urlsplit(link).query
        numbers = parse_qs(query).get("page")
    except ValueError:
        query, numbers = "", None
    following = f"{path.partition('?')[0]}?{query}"
    if not query or not is_plain(following):
        raise _no_such_page(path, response, page, link)
    return _numbered(path, page + 1) if numbers == [str(page + 1)] else following


def _links(header: str) -> Iterator[tuple[str, str]]:
    """Yield `(relation, URL)` for each link (RFC 8288)."""
    for link in _LINK.finditer(header):
        relation = _RELATION.search(link[2])
        for name in relation[1].lower().split() if relation else ():
            yield name, link[1]


def _numbered(path: str, page: int) -> str:
    return f"{path}{'&' if '?' in path else '?'}per_page={PER_PAGE}&page={page}"


def _request(path: str) -> str:
    return f"GET {path.partition('?')[0]}"


def _no_such_page(path: str, response: _Page[Kept], page: int, following: str) -> BadAnswer:
    reason = f"the next page after page {page} cannot be {plain(following)!r}"
    return BadAnswer(_request(path), reason, response.status)


def _has_id(entry: Json) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("id"), int | str)


def _name(entry: Json) -> str:
    """Return the ID of an entry, or the whole entry if it has no ID."""
    return f"{ID}{entry['id']}" if _has_id(entry) else json.dumps(entry, sort_keys=True)
