"""Lists, page by page, and lists that change while they are read."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.errors import BadAnswer, ServerFailure
from reconciler.service.answers import Answer
from reconciler.service.pages import read_list
from tests.canned import answer, canned
from tests.service.clock import patiently
from tests.service.connecting import connected


def pages_of(*pages: Sequence[Any], totals: Sequence[int] | None = None) -> list[bytes]:
    """One reading of a list: with page headers, and the total on each page if it is given."""
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
    [([0], 1), ([99], 1), ([100, 1], 2), ([100, 0], 2), ([150], 1)],
    ids=str,
)
def test_without_page_headers_a_page_that_is_not_full_is_the_last(sizes: list[int], requests: int) -> None:
    starts = [sum(sizes[:index]) for index in range(len(sizes))]
    pages = [list(range(start, start + size)) for start, size in zip(starts, sizes, strict=True)]
    with (
        canned(*(answer("200 OK", json.dumps(page)) for page in pages)) as server,
        connected(server.api_url) as client,
    ):
        assert client.pages("x") == list(range(sum(sizes)))
    assert len(server.requests) == requests


def test_a_server_that_knows_no_pages_is_not_read_twice() -> None:
    everything = answer("200 OK", json.dumps(list(range(100))))
    with canned(everything) as server, connected(server.api_url) as client:
        assert client.pages("x") == list(range(100))
    assert len(server.requests) == 2


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
    assert str(raised.value) == "GET x: the answer is not a list"


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
    def fetch(path: str) -> tuple[Any, Answer]:
        del path
        return [1], Answer(200, "OK", {"x-total": total}, b"")

    assert read_list(fetch, "x") == [1]


def test_a_page_that_fails_fails_the_list() -> None:
    first, _ = STEADY
    with canned(first, answer("500 Odd")) as server, connected(server.api_url, tries=2) as client:
        with pytest.raises(ServerFailure):
            client.pages("x")
    assert len(server.requests) == 3


def test_a_list_has_an_end() -> None:
    def fetch(path: str) -> tuple[Any, Answer]:
        page = int(path.rpartition("=")[2])
        return numbered(page), Answer(200, "OK", {"x-next-page": str(page + 1)}, b"")

    with pytest.raises(BadAnswer, match="the next page after page 1000 cannot be '1001'"):
        read_list(fetch, "x")


@patiently
@given(
    st.lists(st.lists(st.integers(1, 300), max_size=3), min_size=1, max_size=4),
    st.lists(st.booleans(), max_size=4),
)
def test_a_list_that_comes_out_whole_was_read_whole_at_once(pages: list[list[int]], totals: list[bool]) -> None:
    asked = []

    def fetch(path: str) -> tuple[Any, Answer]:
        page = int(path.rpartition("=")[2])
        asked.append(page)
        headers = {"x-next-page": str(page + 1) if page < len(pages) else ""}
        if totals[page - 1 : page] == [True]:
            headers["x-total"] = str(sum(map(len, pages)))
        return numbered(*pages[page - 1]), Answer(200, "OK", headers, b"")

    assert read_list(fetch, "x") == [{"id": number} for page in pages for number in page]
    assert len(asked) in (len(pages), 2 * len(pages))
