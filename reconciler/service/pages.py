"""Lists, page by page, and lists that change while they are read (deployed behaviour, section 7.3)."""

from collections.abc import Callable

from reconciler.errors import BadAnswer
from reconciler.service.answers import Answer, plain
from reconciler.wire import Json

PER_PAGE = 100
"""The largest page the service sends."""

MOST_PAGES = 1000
"""A list that is longer has no end."""

READINGS = 3
"""How often a list is read that will not hold still."""

Fetch = Callable[[str], tuple[Json, Answer]]
"""Gets a relative path: the JSON value, and the answer it came in."""


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
    former: list[list[Json]] = []
    for _ in range(READINGS):
        pages, totals = _read_pages(fetch, path)
        items = [item for page in pages for item in page]
        if (not counted or _is_complete(items, totals)) and (pages == former or not _overlap(pages)):
            return items
        former = pages
    raise BadAnswer(_request(path), "the list kept changing while it was read")


def _read_pages(fetch: Fetch, path: str) -> tuple[list[list[Json]], set[str]]:
    """Go by `x-next-page`; where a server sends no page headers, by the length of pages."""
    pages: list[list[Json]] = []
    totals: set[str] = set()
    request, page = _request(path), 1
    query = f"{path}{'&' if '?' in path else '?'}per_page={PER_PAGE}"
    while page:
        entries, answer = fetch(f"{query}&page={page}")
        if not isinstance(entries, list):
            raise BadAnswer(request, "the answer is not a list", answer.status)
        if pages and entries == pages[-1] and "x-next-page" not in answer.headers:
            break  # a server that knows no pages sends the same one again
        pages.append(entries)
        totals.add(answer.headers.get("x-total", ""))
        page = _next_page(request, answer, page, len(entries))
    return pages, totals


def _request(path: str) -> str:
    return f"GET {path.partition('?')[0]}"


def _next_page(request: str, answer: Answer, page: int, length: int) -> int:
    """The number of the next page, or 0 at the end."""
    following = answer.headers.get("x-next-page")
    if following is None:
        return page + 1 if length == PER_PAGE else 0
    if not following:
        return 0
    if following == str(page + 1) and page < MOST_PAGES:
        return page + 1
    reason = f"the next page after page {page} cannot be {plain(following)!r}"
    raise BadAnswer(request, reason, answer.status)


def _is_complete(items: list[Json], totals: set[str]) -> bool:
    return all(total == str(len(items)) for total in totals if total.isascii() and total.isdigit())


def _overlap(pages: list[list[Json]]) -> bool:
    """Whether an object is on more than one page."""
    numbers = [
        {str(item["id"]) for item in page if isinstance(item, dict) and isinstance(item.get("id"), int | str)}
        for page in pages
    ]
    return len(set().union(*numbers)) < sum(map(len, numbers))
