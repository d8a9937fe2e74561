"""Lists, page by page, and lists that change while they are read."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.errors import BadAnswer, ServerFailure
from reconciler.model.protocols import Spread
from reconciler.service import Client
from reconciler.service.pagination import read_list
from reconciler.service.responses import Response
from tests.canned import answer, canned
from tests.service.clock import patiently
from tests.service.connecting import connected
from tests.service.listing import HEADERS, Listing, served


def backwards(ask: Callable[[str], Any], pages: Sequence[str]) -> list[Any]:
    """Ask for pages as threads may: in any order."""
    return [ask(page) for page in reversed(pages)][::-1]


SPREADS = (None, backwards)


def pages_of(*pages: Sequence[Any], totals: Sequence[int] | None = None) -> list[bytes]:
    """One reading of a list, with page headers, and with the total on each page if it is given."""
    raw = []
    for number, page in enumerate(pages, start=1):
        headers = {"x_next_page": str(number + 1) if number < len(pages) else ""}
        if totals:
            headers["x_total"] = str(totals[number - 1])
        raw.append(answer("200 OK", json.dumps(page), **headers))
    return raw


def numbered(*numbers: int) -> list[dict[str, int]]:
    return [{"id": number} for number in numbers]


def test_pages_are_followed_until_the_service_says_there_is_no_next_one() -> None:
    first, last = answer("200 OK", "[1, 2]", x_next_page="2"), answer("200 OK", "[3]", x_next_page="")
    with canned(first, last) as server, connected(server.api_url) as client:
        assert client.pages("projects/1/milestones") == [1, 2, 3]
    assert [request.split(" ")[1] for request in server.requests] == [
        "/api/v4/projects/1/milestones?per_page=100&page=1",
        "/api/v4/projects/1/milestones?per_page=100&page=2",
    ]


@pytest.mark.parametrize(
    ("sizes", "requests"),
    [([0], 1), ([99, 0], 2), ([100, 1, 0], 3), ([100, 0], 2), ([150, 0], 2), ([20, 20, 20, 0], 4)],
    ids=str,
)
def test_without_page_headers_only_an_empty_page_is_the_end(sizes: list[int], requests: int) -> None:
    starts = [sum(sizes[:index]) for index in range(len(sizes))]
    pages = [list(range(start, start + size)) for start, size in zip(starts, sizes, strict=True)]
    with (
        canned(*(answer("200 OK", json.dumps(page)) for page in pages)) as server,
        connected(server.api_url) as client,
    ):
        assert client.pages("x") == list(range(sum(sizes)))
    assert len(server.requests) == requests


@pytest.mark.parametrize("number", [1, 100, 150])
@pytest.mark.parametrize("with_ids", [True, False])
def test_a_list_without_pages_in_changing_order_is_read_twice_and_no_more(number: int, *, with_ids: bool) -> None:
    everything = numbered(*range(number)) if with_ids else list(range(number))
    turned = everything[number // 2 :] + everything[: number // 2]
    once, again = answer("200 OK", json.dumps(everything)), answer("200 OK", json.dumps(turned))
    with canned(once, again) as server, connected(server.api_url) as client:
        assert client.pages("x") == everything
    assert len(server.requests) == 2


def test_a_page_of_known_objects_that_is_not_the_one_before_shows_that_the_list_has_shifted() -> None:
    pages = [numbered(1, 2), numbered(2), numbered(1, 2), numbered(3), []]
    with canned(*(answer("200 OK", json.dumps(page)) for page in pages)) as server, connected(server.api_url) as client:
        assert client.pages("x") == numbered(1, 2, 3)
    assert len(server.requests) == 5


def test_a_server_that_always_ends_with_a_page_of_known_objects_is_believed() -> None:
    pages = [numbered(1, 2), numbered(2)] * 2
    with canned(*(answer("200 OK", json.dumps(page)) for page in pages)) as server, connected(server.api_url) as client:
        assert client.pages("x") == numbered(1, 2)
    assert len(server.requests) == 4


def test_links_are_followed_on_the_own_path_wherever_they_lead() -> None:
    pages = [
        answer("200 OK", "[1]", link='<https://elsewhere.example/api/v4/y?cursor=a%2Fb&page=1>; REL=next, <>; rel="x"'),
        answer("200 OK", "[2]", link='<http://internal:8080/z?page=3&a=1>; title="a"; rel="last next"'),
        answer("200 OK", "[3]", link="<https://elsewhere.example/y?page=1>; rel=first"),
    ]
    with canned(*pages) as server, connected(server.api_url) as client:
        assert client.pages("x?a=1") == [1, 2, 3]
    assert [request.split(" ")[1].removeprefix("/api/v4/") for request in server.requests] == [
        "x?a=1&per_page=100&page=1",
        "x?cursor=a%2Fb&page=1",
        "x?a=1&per_page=100&page=3",
    ]


def test_a_list_by_cursor_ends_with_the_first_page_that_has_no_link() -> None:
    pages = [answer("200 OK", "[1]", link="<x?cursor=a>; rel=next"), answer("200 OK", "[2]")]
    with canned(*pages) as server, connected(server.api_url) as client:
        assert client.pages("x") == [1, 2]
    assert len(server.requests) == 2


def test_a_link_that_is_not_about_pages_is_none() -> None:
    pages = [answer("200 OK", "[1]", link="<https://docs.example>; rel=help, <y?page=2>", x_total="1")]
    with canned(*pages) as server, connected(server.api_url) as client:
        assert client.pages("x") == [1]
    assert len(server.requests) == 1


@pytest.mark.parametrize("link", ["", "y", "?", "http://[/?a=1", "?a=é", "?a b", "?per_page=100&page=1"])
def test_a_link_that_leads_nowhere_is_a_bad_answer(link: str) -> None:
    def fetch(path: str) -> tuple[Any, Response]:
        del path
        return [1], Response(200, "OK", {"link": f"<{link}>; rel=next"}, b"")

    with pytest.raises(BadAnswer, match="GET x: the next page after page 1 cannot be "):
        read_list(fetch, "x", list)


@pytest.fixture(scope="module")
def service() -> Iterator[tuple[Client, list[Listing]]]:
    """A client, and a server that sends it a list."""
    with served() as (api_url, listings), connected(api_url) as client:
        yield client, listings


@pytest.mark.untraced
@patiently
@given(
    st.integers(0, 130),
    st.integers(7, 120),
    st.frozensets(st.sampled_from(HEADERS)),
    st.sampled_from(["pages", "pages, the last one for ever", "cursor", "whole", "whole, in changing order"]),
    st.booleans(),
    st.sampled_from(["", "https://elsewhere.example"]),
)
def test_a_list_is_complete_whichever_page_headers_there_are_and_however_short_pages_are(
    service: tuple[Client, list[Listing]],
    number: int,
    cap: int,
    headers: frozenset[str],
    way: str,
    ids: bool,
    base: str,
) -> None:
    entries: list[Any] = numbered(*range(number)) if ids else list(range(number))
    client, listings = service
    paginated, cursor = not way.startswith("whole"), way == "cursor"
    listing = listings[0] = Listing(
        lambda turn: entries[:: -1 if turn and way.endswith("order") else 1],
        cap=cap,
        headers=(headers | {"link"}) - {"x-next-page"} if cursor else headers,
        paginated=paginated,
        past_the_end="last" if way.endswith("ever") else "empty",
        cursor=cursor,
        base=base,
    )
    assert client.pages("x") == entries
    size = min(cap, 100) if paginated else max(number, 1)
    told = listing.headers - {"x-per-page"}
    assert len(listing.asked) == max(-(-number // size), 1) + (not told and number > 0)


@pytest.mark.untraced
@patiently
@given(
    st.integers(1, 60),
    st.integers(7, 30),
    st.frozensets(st.sampled_from(HEADERS)),
    st.lists(st.tuples(st.integers(0, 8), st.integers(0, 60)), max_size=4),
    st.sampled_from(SPREADS),
)
def test_a_list_that_changes_while_it_is_read_ends_and_brings_nothing_twice(
    service: tuple[Client, list[Listing]],
    number: int,
    cap: int,
    headers: frozenset[str],
    changes: list[tuple[int, int]],
    spread: Spread | None,
) -> None:
    client, listings = service

    def entries(turn: int) -> list[dict[str, int]]:
        made = {100 + other for when, other in changes if when <= turn and other % 2}
        gone = {other for when, other in changes if when <= turn and not other % 2}
        return numbered(*made, *(each for each in range(number) if each not in gone))

    listing = listings[0] = Listing(entries, cap=cap, headers=headers)
    found: list[Any] = []
    with suppress(BadAnswer):
        found = client.gather("x", list, spread)
    assert len(found) == len({entry["id"] for entry in found})
    if found and "x-total" in headers and len({other % 2 for _, other in changes}) < 2:
        assert found in map(entries, range(len(listing.asked)))
    assert len(listing.asked) < 50


@pytest.mark.parametrize("following", ["1", "0", "-1", "x", "2&private=1"])
def test_a_next_page_that_leads_nowhere_is_a_bad_answer(following: str) -> None:
    with canned(answer("200 OK", "[1]", x_next_page=following)) as server, connected(server.api_url) as client:
        with pytest.raises(BadAnswer) as raised:
            client.pages("x")
    assert str(raised.value) == f"GET x: the next page after page 1 cannot be {following!r}"


def test_a_list_that_is_none_is_a_bad_answer() -> None:
    with canned(answer("200 OK", "{}")) as server, connected(server.api_url) as client:
        with pytest.raises(BadAnswer) as raised:
            client.pages("x")
    assert str(raised.value) == "GET x: unexpected response: the body is not a list"


STEADY = pages_of(numbered(1, 2), numbered(3), totals=[3, 3])


@pytest.mark.parametrize(
    "shifted",
    [
        pages_of(numbered(1, 2), numbered(2, 3), totals=[4, 4]),
        pages_of(numbered(1, 2), numbered(2, 3)),
        pages_of(numbered(1, 2), numbered(4), totals=[4, 3]),
        pages_of(numbered(1, 2), numbered(4), totals=[4, 4]),
        pages_of(numbered(1, 2), [], totals=[3, 2]),
        pages_of(numbered(1, 2), totals=[3]),
    ],
    ids=["an object twice", "twice without totals", "one gone", "one skipped", "a page gone", "one page of less"],
)
def test_a_list_that_shifts_while_it_is_read_is_read_again(shifted: list[bytes]) -> None:
    with canned(*shifted, *STEADY) as server, connected(server.api_url) as client:
        assert client.pages("x") == numbered(1, 2, 3)
    assert len(server.requests) == len(shifted) + 2


def test_a_list_that_never_holds_still_is_a_bad_answer() -> None:
    shifting = pages_of(numbered(1, 2), numbered(2, 3)) + pages_of(numbered(4, 5), numbered(5)) + pages_of([], [])
    with canned(*shifting[:4], *pages_of(numbered(1), numbered(1))) as server, connected(server.api_url) as client:
        with pytest.raises(BadAnswer) as raised:
            client.pages("x")
    assert str(raised.value) == "GET x: the list kept changing while it was read"
    assert len(server.requests) == 6


def test_a_list_whose_total_is_never_reached_is_not_taken_for_whole() -> None:
    with canned(*pages_of(numbered(1), totals=[2])) as server, connected(server.api_url) as client:
        with pytest.raises(BadAnswer):
            client.pages("x")
    assert len(server.requests) == 3


def test_an_object_that_always_is_on_a_list_twice_belongs_there() -> None:
    twice = pages_of(numbered(1, 2), numbered(2), totals=[3, 3])
    with canned(*twice, *twice) as server, connected(server.api_url) as client:
        assert client.pages("x") == numbered(1, 2, 2)
    assert len(server.requests) == 4
    with canned(*pages_of(numbered(1, 1), totals=[2])) as server, connected(server.api_url) as client:
        assert client.pages("x") == numbered(1, 1)
    assert len(server.requests) == 1


@pytest.mark.parametrize("total", ["", "x", "-1", "٣"])
def test_a_total_that_makes_no_sense_is_none(total: str) -> None:
    def fetch(path: str) -> tuple[Any, Response]:
        del path
        return [1], Response(200, "OK", {"x-total": total}, b"")

    assert read_list(fetch, "x", list) == [1]


def test_a_page_that_fails_fails_the_list() -> None:
    first, _ = STEADY
    with canned(first, answer("500 Odd")) as server, connected(server.api_url, tries=2) as client:
        with pytest.raises(ServerFailure):
            client.pages("x")
    assert len(server.requests) == 3


@pytest.mark.parametrize("told", [True, False])
def test_a_list_has_an_end(*, told: bool) -> None:
    def fetch(path: str) -> tuple[Any, Response]:
        page = int(path.rpartition("=")[2])
        return numbered(page), Response(200, "OK", {"x-next-page": str(page + 1)} if told else {}, b"")

    with pytest.raises(BadAnswer, match="GET x: the list has more than 1000 pages"):
        read_list(fetch, "x", list)


@pytest.mark.untraced
@patiently
@given(
    st.lists(st.lists(st.integers(1, 300), max_size=3), min_size=1, max_size=4),
    st.lists(st.booleans(), max_size=4),
)
def test_a_list_that_comes_out_whole_was_read_whole_at_once(pages: list[list[int]], totals: list[bool]) -> None:
    asked = []

    def fetch(path: str) -> tuple[Any, Response]:
        page = int(path.rpartition("=")[2])
        asked.append(page)
        headers = {"x-next-page": str(page + 1) if page < len(pages) else ""}
        if totals[page - 1 : page] == [True]:
            headers["x-total"] = str(sum(map(len, pages)))
        return numbered(*pages[page - 1]), Response(200, "OK", headers, b"")

    assert read_list(fetch, "x", list) == [{"id": number} for page in pages for number in page]
    assert len(asked) in (len(pages), 2 * len(pages))


@pytest.mark.parametrize(
    ("headers", "known"),
    [
        ({"x-total-pages", "x-next-page"}, True),
        ({"x-total-pages", "x-total"}, True),
        ({"x-total-pages", "link"}, True),
        ({"x-next-page", "x-total"}, False),
        ({"link"}, False),
        (set(), False),
    ],
    ids=lambda each: "+".join(sorted(each)) if isinstance(each, set) else "",
)
def test_pages_are_asked_for_at_once_if_the_first_says_how_many_there_are(
    service: tuple[Client, list[Listing]], headers: set[str], *, known: bool
) -> None:
    client, listings = service
    asked: list[str] = []

    def spread(ask: Callable[[str], Any], pages: Sequence[str]) -> list[Any]:
        asked.extend(pages)
        return backwards(ask, pages)

    listing = listings[0] = Listing(lambda _: numbered(*range(950)), headers=frozenset(headers))
    assert client.gather("x", lambda page: [entry["id"] for entry in page], spread) == [*range(950)]
    assert asked == [f"x?per_page=100&page={page}" for page in range(2, 11)] * known
    assert len(listing.asked) == 10 + (not headers)
    listings[0] = Listing(lambda _: numbered(*range(150)), headers=frozenset({"x-total-pages", "link"}), cursor=True)
    assert client.gather("x", lambda page: [entry["id"] for entry in page], spread) == [*range(150)]
    assert len(asked) == 9 * known


def test_a_list_that_says_that_it_is_endless_is_not_read() -> None:
    asked = []

    def fetch(path: str) -> tuple[Any, Response]:
        asked.append(path)
        return numbered(1), Response(200, "OK", {"x-total-pages": "1001"}, b"")

    with pytest.raises(BadAnswer, match="GET x: the list has more than 1000 pages"):
        read_list(fetch, "x", list, spread=backwards)
    assert asked == ["x?per_page=100&page=1"]
