"""Lists, page by page, and lists that change while they are read (deployed behaviour, section 7.3)."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

from reconciler.errors import BadAnswer
from reconciler.model.protocols import Json
from reconciler.service.paths import is_plain
from reconciler.service.responses import Answer, plain

PER_PAGE = 100
"""The largest page deployed servers send. Others may send smaller ones, and need not say so."""

MOST_PAGES = 1000
"""A list that is longer has no end."""

READINGS = 3
"""How often a list is read that will not hold still."""

Fetch = Callable[[str], tuple[Json, Answer]]
"""Gets a relative path: the JSON value, and the answer it came in."""

END = ""
"""In place of the next page's path: the service says that there is none."""

PAGING = frozenset({"first", "prev", "next", "last"})
"""The relations of a `Link` header that is about pages."""

_LINK = re.compile(r"<([^<>]*)>([^<]*)")
_RELATION = re.compile(r';\s*rel\s*=\s*"?([^";,]*)', re.IGNORECASE)


@dataclass(slots=True)
class _Reading:
    """What one reading of a list brought.

    Attributes:
        pages: the entries, page by page.
        totals: each `x-total` that an answer had.
        odd_end: the page that brought nothing new, if it was another one than the page before it.
    """

    pages: list[list[Json]] = field(default_factory=list)
    totals: set[str] = field(default_factory=set)
    odd_end: list[Json] = field(default_factory=list)

    @property
    def items(self) -> list[Json]:
        return [item for page in self.pages for item in page]

    @property
    def is_complete(self) -> bool:
        """Whether there are as many entries as every total says."""
        count = sum(map(len, self.pages))
        return all(total in (None, count) for total in map(_number, self.totals))

    @property
    def has_shifted(self) -> bool:
        """Whether an object is on more than one page."""
        numbers = [{str(item["id"]) for item in page if _has_id(item)} for page in self.pages]
        return bool(self.odd_end) or len(set().union(*numbers)) < sum(map(len, numbers))


def read_list(fetch: Fetch, path: str, *, counted: bool = True) -> list[Json]:
    """Return all items of all pages of a list, as they were at one time.

    A total that changes or is not reached, or an object on two pages, means that the list has shifted under the reader,
    so that something may have been skipped; it is read again. (An object may be on a list twice: the allowlist of
    deployed servers shows the project itself once more than it was added. Then both readings are the same.)

    Args:
        fetch: gets a page.
        path: of the list.
        counted: whether the total counts what is listed; deployed servers take out of each page of notes what the token
            may not see, and count it all the same.

    Raises:
        ServiceError: whatever `fetch` raises; BadAnswer for what is no list, and for one that will not hold still.
    """
    former: _Reading | None = None
    for _ in range(READINGS):
        reading = _read_pages(fetch, path)
        if (not counted or reading.is_complete) and (reading == former or not reading.has_shifted):
            return reading.items
        former = reading
    raise BadAnswer(_request(path), "the list kept changing while it was read")


def _read_pages(fetch: Fetch, path: str) -> _Reading:
    """Go where the headers lead; without any, until a page is empty or brings only entries that were there before.

    The length of a page says nothing, for servers cap `per_page` as they like. A server without pages sends its one
    page again, and so may one whose last page is asked for its successor.
    """
    reading = _Reading()
    seen, former = set[str](), set[str]()
    asked = [_numbered(path, 1)]
    for page in range(1, MOST_PAGES + 1):
        entries, answer = fetch(asked[-1])
        if not isinstance(entries, list):
            raise BadAnswer(_request(path), "the answer is not a list", answer.status)
        names = set(map(_name, entries))
        reading.totals.add(answer.headers.get("x-total", ""))
        following = _following(path, answer, page, sum(map(len, reading.pages)) + len(entries))
        if following is None and names <= seen:
            reading.odd_end = [] if names in (former, set()) else entries
            return reading
        reading.pages.append(entries)
        if following is None and asked[-1] == _numbered(path, page):
            following = _numbered(path, page + 1)
        if not following:
            return reading
        if following in asked:
            raise _leads_nowhere(path, answer, page, following)
        asked.append(following)
        seen, former = seen | names, names
    raise BadAnswer(_request(path), f"the list has more than {MOST_PAGES} pages")


def _following(path: str, answer: Answer, page: int, count: int) -> str | None:
    """Return the path of the next page, `END`, or None where no header tells.

    Args:
        path: of the list.
        answer: a page of it.
        page: its number, from 1.
        count: how many entries there are up to its end.

    Raises:
        BadAnswer: what the service says leads nowhere.
    """
    headers = answer.headers
    number = headers.get("x-next-page")
    if number is not None:
        if number not in ("", str(page + 1)):
            raise _leads_nowhere(path, answer, page, number)
        return _numbered(path, page + 1) if number else END
    links = dict(_links(headers.get("link", "")))
    if not PAGING.isdisjoint(links):
        return _linked(path, answer, page, links["next"]) if "next" in links else END
    pages, total = _number(headers.get("x-total-pages")), _number(headers.get("x-total"))
    if pages is not None:
        return _numbered(path, page + 1) if page < pages else END
    return END if total is not None and count >= total else None


def _linked(path: str, answer: Answer, page: int, link: str) -> str:
    """Return the path of the page that a link leads to: the list's own, with the link's query.

    The host and the path of a link are the service's idea of where it is, which behind a proxy is another one.
    """
    try:
        query = urlsplit(link).query
        numbers = parse_qs(query).get("page")
    except ValueError:
        query, numbers = "", None
    following = f"{path.partition('?')[0]}?{query}"
    if not query or not is_plain(following):
        raise _leads_nowhere(path, answer, page, link)
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


def _leads_nowhere(path: str, answer: Answer, page: int, following: str) -> BadAnswer:
    reason = f"the next page after page {page} cannot be {plain(following)!r}"
    return BadAnswer(_request(path), reason, answer.status)


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER else None


LONGEST_NUMBER = 12
"""Digits of a number in a header that can be meant."""


def _has_id(entry: Json) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("id"), int | str)


def _name(entry: Json) -> str:
    """What an entry is known by: its ID, or all of it."""
    return f"ID {entry['id']}" if _has_id(entry) else json.dumps(entry, sort_keys=True)
