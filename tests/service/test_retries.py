"""Failures that are tried again, how often and when; and writes that may have been carried out."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.errors import (
    AnswerLost,
    BadAnswer,
    Moved,
    NotFound,
    RateLimited,
    Refused,
    ServerFailure,
    ServiceError,
    Stopped,
    Unreachable,
    WaitTooLong,
)
from reconciler.model.protocols import Method, Request
from reconciler.sandbox import Sandbox
from reconciler.service import Client, Policy, Wait
from reconciler.service.policy import LONGEST_PAUSE, backoff, retry_after
from reconciler.service.responses import parse_date
from tests.canned import Canned, answer, canned
from tests.service.clock import NOON, SwiftClock, patiently
from tests.service.connecting import connected
from tests.states import a_small_service

FINE = answer("200 OK", '{"id": 1}')
BODIES: dict[str, dict[str, Any] | None] = {"POST": {"a": 1}, "PUT": {"a": 1}, "PATCH": {"a": 1}, "DELETE": None}
IDEMPOTENT = ("GET", "PUT", "PATCH", "DELETE")


def ask(client: Client, method: Any) -> Any:
    return client.get("x") if method == "GET" else client.send(Request(method, "x", BODIES[method]))


def sent(server: Canned) -> list[str]:
    return [request.split(" ")[0] for request in server.requests]


@pytest.mark.untraced
@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504])
@pytest.mark.parametrize("method", IDEMPOTENT)
def test_what_may_pass_is_tried_again(method: str, status: int) -> None:
    with canned(answer(f"{status} Odd"), FINE) as server, connected(server.api_url) as client:
        assert ask(client, method) == {"id": 1}
        assert client.traffic.retries == 1
        assert client.traffic.reads + client.traffic.writes == 2
    assert sent(server) == [method, method]


@pytest.mark.parametrize("method", IDEMPOTENT)
def test_a_conflict_that_lasts_is_tried_again_once(method: str) -> None:
    conflict = answer("409 Conflict", '{"message": "A rule of this name exists"}')
    with canned(conflict) as server, connected(server.api_url) as client, pytest.raises(Refused) as raised:
        ask(client, method)
    assert sent(server) == [method, method]
    assert str(raised.value) == f"{method} x: 409 A rule of this name exists"


@pytest.mark.untraced
@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 412, 422, 501, 505])
@pytest.mark.parametrize("method", [*IDEMPOTENT, "POST"])
def test_what_will_not_pass_is_tried_once(method: str, status: int) -> None:
    with canned(answer(f"{status} Odd")) as server, connected(server.api_url) as client:
        with pytest.raises(ServiceError) as raised:
            ask(client, method)
    assert sent(server) == [method]
    assert raised.value.status == status
    assert raised.value.ambiguous == (status >= 500 and method != "GET")


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("raw", "error", "ambiguous"),
    [
        (answer("408 Odd"), AnswerLost, True),
        (answer("409 Odd"), Refused, False),
        (answer("425 Odd"), Refused, False),
        (answer("500 Odd"), ServerFailure, True),
        (answer("500 Odd", retry_after="1"), ServerFailure, True),
        (answer("502 Odd"), ServerFailure, True),
        (answer("503 Odd"), ServerFailure, True),
        (answer("504 Odd", retry_after="1"), ServerFailure, True),
        (answer("302 Odd", location="https://elsewhere.example/"), Moved, False),
        (answer("201 Created", "<html>"), BadAnswer, True),
        (answer("201 Created"), BadAnswer, True),
        (answer("201 Created", '{"id": 1}')[:-1], AnswerLost, True),
        (b"", AnswerLost, True),
        (b"SSH-2.0-OpenSSH_9.2\r\n", AnswerLost, True),
    ],
    ids=str,
)
def test_a_creation_that_may_have_been_carried_out_is_not_sent_again(
    raw: bytes, error: type[ServiceError], ambiguous: bool
) -> None:
    with canned(raw) as server, connected(server.api_url) as client, pytest.raises(error) as raised:
        ask(client, "POST")
    assert sent(server) == ["POST"]
    assert type(raised.value) is error
    assert raised.value.ambiguous is ambiguous


@pytest.mark.parametrize("raw", [answer("429 Odd"), answer("503 Odd", retry_after="7")], ids=str)
def test_a_creation_that_was_not_carried_out_is_sent_again(raw: bytes) -> None:
    with canned(raw, FINE) as server, connected(server.api_url) as client:
        assert ask(client, "POST") == {"id": 1}
    assert sent(server) == ["POST", "POST"]


def test_a_creation_that_was_refused_for_a_while_was_certainly_not_carried_out() -> None:
    busy = answer("503 Odd", retry_after="1")
    with canned(busy) as server, connected(server.api_url) as client, pytest.raises(ServerFailure) as raised:
        ask(client, "POST")
    assert sent(server) == ["POST"] * 6
    assert not raised.value.ambiguous


def test_pauses_double_up_to_a_bound_and_tries_end() -> None:
    clock = SwiftClock()
    with canned(answer("502 Bad Gateway")) as server:
        with connected(server.api_url, clock=clock, tries=9, first_backoff=1) as client:
            with pytest.raises(ServerFailure):
                client.get("x")
            assert client.traffic.waited == {Wait.RETRY: 121.0}
    assert len(server.requests) == 9
    assert clock.waits == [1, 2, 4, 8, 16, 30, 30, 30]


@pytest.mark.untraced
@patiently
@given(st.integers(1, 1000), st.randoms())
def test_a_pause_lies_between_nothing_and_its_bound(tries: int, random: Random) -> None:
    assert 0 <= backoff(Policy(), tries, random) <= min(30, 2 ** (tries - 2))


def test_a_run_makes_only_so_many_retries() -> None:
    failure = answer("500 Internal Server Error")
    with canned(failure) as server, connected(server.api_url, retry_share=0.25, retry_allowance=3) as client:
        for _ in range(5):
            with pytest.raises(ServerFailure):
                client.get("x")
        assert (client.traffic.reads, client.traffic.retries) == (11, 6)
    assert len(server.requests) == 11


@pytest.mark.parametrize(
    ("asked_for", "seconds"),
    [
        ("7", 7),
        (format_datetime(NOON + timedelta(seconds=9), usegmt=True), 9),
        ("Saturday, 10-Oct-26 12:00:20 GMT", 20),
        ("Sat Oct 10 12:00:30 2026", 30),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
def test_everybody_waits_for_as_long_as_the_service_asks(status: int, asked_for: str, seconds: float) -> None:
    clock = SwiftClock()
    busy = answer(f"{status} Odd", retry_after=asked_for)
    with canned(busy, FINE) as server, connected(server.api_url, clock=clock) as client:
        client.get("x")
        reason = Wait.RATE_LIMIT if status == 429 else Wait.UNAVAILABLE
        assert client.traffic.waited == {reason: seconds}
    assert clock.waits == [seconds]


@pytest.mark.parametrize("asked_for", ["0", "-1", "soon", "", "1e3", "٣", "Fri, 09 Oct 2026 12:00:00 GMT"])
def test_a_pause_that_makes_no_sense_is_one_of_our_own(asked_for: str) -> None:
    clock = SwiftClock()
    busy = answer("503 Odd", retry_after=asked_for)
    with canned(busy, FINE) as server, connected(server.api_url, clock=clock) as client:
        client.get("x")
    assert clock.waits == [0.5]


def test_a_date_is_taken_by_the_clock_of_the_service() -> None:
    clock = SwiftClock()
    hours_ahead = format_datetime(NOON + timedelta(hours=5, seconds=12), usegmt=True)
    there = format_datetime(NOON + timedelta(hours=5), usegmt=True)
    busy = answer("503 Odd", retry_after=hours_ahead, date=there)
    with canned(busy, FINE) as server, connected(server.api_url, clock=clock) as client:
        client.get("x")
    assert clock.waits == [12]


def test_a_pause_that_comes_with_another_answer_is_none() -> None:
    clock = SwiftClock()
    refusal = answer("403 Forbidden", retry_after="900")
    with canned(refusal, FINE) as server, connected(server.api_url, clock=clock) as client:
        with pytest.raises(ServiceError):
            client.get("x")
        assert client.get("x") == {"id": 1}
    assert clock.waits == []


def test_too_long_a_wait_ends_the_run_with_the_time_to_come_back_and_the_reason_that_the_service_gives() -> None:
    busy = answer("503 Odd", '{"message": "GitLab is undergoing maintenance"}', retry_after="900")
    with canned(busy) as server, connected(server.api_url) as client:
        with pytest.raises(WaitTooLong) as raised:
            ask(client, "POST")
        assert raised.value.come_back == NOON + timedelta(seconds=900)
        assert not raised.value.ambiguous
        assert str(raised.value) == (
            'POST x: service unavailable ("GitLab is undergoing maintenance"): retry at '
            "2026-10-10 12:15:00 UTC, in 900 s; --max-wait is 300 s"
        )
        with pytest.raises(WaitTooLong) as again:
            client.get("y")
        assert again.value.come_back == raised.value.come_back
        assert str(again.value) == str(raised.value).replace("POST x", "GET y")
        assert client.stop.is_set()
    assert sent(server) == ["POST"]


@pytest.mark.parametrize("asked_for", ["9" * 400, "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_never_is_a_time_to_come_back_too(asked_for: str) -> None:
    with canned(answer("429 Odd", retry_after=asked_for)) as server, connected(server.api_url) as client:
        with pytest.raises(WaitTooLong) as raised:
            client.get("x")
    assert raised.value.come_back == NOON + timedelta(days=366)


def test_a_write_that_was_in_doubt_before_a_long_wait_stays_in_doubt() -> None:
    busy = answer("503 Service Unavailable", retry_after="900")
    with canned(b"", busy) as server, connected(server.api_url) as client, pytest.raises(WaitTooLong) as raised:
        ask(client, "PUT")
    assert raised.value.ambiguous
    assert sent(server) == ["PUT", "PUT"]


def test_a_write_that_was_in_doubt_is_so_whatever_comes_after() -> None:
    with canned(b"", answer("403 Forbidden")) as server, connected(server.api_url) as client:
        with pytest.raises(ServiceError) as raised:
            ask(client, "PATCH")
    assert raised.value.status == 403
    assert raised.value.ambiguous


@pytest.mark.parametrize("status", [400, 404])
def test_a_removal_that_meets_nothing_after_one_that_was_in_doubt_is_done(status: int) -> None:
    with canned(b"", answer(f"{status} Odd")) as server, connected(server.api_url) as client:
        assert ask(client, "DELETE") is None
    assert sent(server) == ["DELETE", "DELETE"]


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_a_change_to_what_is_not_there_is_never_done(method: str) -> None:
    with canned(b"", answer("404 Not Found")) as server, connected(server.api_url) as client:
        with pytest.raises(NotFound):
            ask(client, method)


def test_a_removal_of_what_is_not_there_is_not_done() -> None:
    with canned(answer("429 Odd"), answer("404 Not Found")) as server, connected(server.api_url) as client:
        with pytest.raises(NotFound) as raised:
            ask(client, "DELETE")
    assert not raised.value.ambiguous


@pytest.mark.parametrize("method", [*IDEMPOTENT, "POST"])
def test_what_never_connects_is_tried_again_whatever_it_is(method: str) -> None:
    clock = SwiftClock()
    with canned(FINE) as server:
        client = connected(server.api_url, clock=clock)
        assert client.get("x") == {"id": 1}
    with client, pytest.raises(Unreachable) as raised:
        ask(client, method)
    assert clock.waits == [0.5, 1, 2, 4, 8]
    assert not raised.value.ambiguous


def test_a_service_that_was_never_reached_is_given_up_sooner() -> None:
    clock = SwiftClock()
    with canned() as server:
        pass
    with connected(server.api_url, clock=clock) as client, pytest.raises(Unreachable):
        client.get("x")
    assert clock.waits == [0.5, 1]


def test_whoever_stops_ends_what_waits_and_nothing_else() -> None:
    with canned(FINE, answer("500 Odd"), answer("429 Odd", retry_after="9"), FINE) as server:
        with connected(server.api_url) as client:
            client.stop.set()
            assert client.get("x") == {"id": 1}
            with pytest.raises(Stopped) as raised:
                ask(client, "PUT")
            assert str(raised.value) == "PUT x: the run was stopped before the request could be sent"
            assert raised.value.ambiguous
            with pytest.raises(Stopped) as raised:
                ask(client, "POST")
            assert not raised.value.ambiguous
    assert sent(server) == ["GET", "PUT", "POST"]


METHODS: dict[Method, tuple[str, dict[str, Any] | None]] = {
    "POST": ("projects/100/milestones", {"title": "new"}),
    "PUT": ("projects/100/milestones/7", {"title": "new"}),
    "PATCH": ("projects/100/job_token_scope", {"enabled": False}),
    "DELETE": ("projects/100/milestones/7", None),
}


@pytest.fixture
def service(sandbox: Sandbox) -> Iterator[Sandbox]:
    state = a_small_service("deployed")
    state["projects"][0]["milestones"] = [{"id": 7, "title": "old"}]
    sandbox.replace_state(state)
    yield sandbox
    sandbox.set_faults([])


@pytest.mark.untraced
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("fault", ["reset-before", "reset-after", "truncate", "hang-after,seconds=0.01"])
def test_a_write_whose_answer_is_lost_is_repeated_unless_it_creates(
    service: Sandbox, method: Method, fault: str
) -> None:
    service.set_faults([f"{fault},method={method},nth=1"])
    with connected(service.api_url, token="ada-token") as client:
        request = Request(method, *METHODS[method])
        if method == "POST":
            with pytest.raises(AnswerLost) as raised:
                client.send(request)
            assert raised.value.ambiguous
        else:
            client.send(request)
    assert [entry["method"] for entry in service.log()] == [method] * (1 if method == "POST" else 2)
    titles = [milestone["title"] for milestone in service.state()["projects"][0]["milestones"]]
    created = ["old"] if fault == "reset-before" else ["old", "new"]
    assert titles == {"POST": created, "PUT": ["new"], "PATCH": ["old"], "DELETE": []}[method]


@pytest.mark.untraced
@pytest.mark.parametrize("fault", ["reset-before", "reset-after", "truncate", "hang-after,seconds=0.01", "html"])
def test_a_read_is_repeated(service: Sandbox, fault: str) -> None:
    service.set_faults([f"{fault},times=5"])
    with connected(service.api_url, token="ada-token") as client:
        assert [each["title"] for each in client.pages("projects/acme%2Fapi/milestones")] == ["old"]
        assert client.traffic.reads == 6


def test_a_rate_limit_of_the_service_is_met_once_and_obeyed_by_all(service: Sandbox) -> None:
    service.set_faults(["status=429,retry_after=30,nth=1"])
    clock = SwiftClock()
    with connected(service.api_url, token="ada-token", clock=clock) as client:
        client.get("version")
        client.get("version")
        assert client.traffic.waited == {Wait.RATE_LIMIT: 30}
    assert [entry["status"] for entry in service.log()] == [429, 200, 200]
    assert clock.waits == [30]


def test_every_try_fails_with_the_last_words() -> None:
    with canned(answer("429 Odd", '{"message": "no"}')) as server, connected(server.api_url, tries=2) as client:
        with pytest.raises(RateLimited) as raised:
            client.get("x")
    assert str(raised.value) == "GET x: 429 no"
    assert len(server.requests) == 2


ANY_TIME = st.datetimes(datetime(1900, 1, 1), datetime(9999, 12, 31), timezones=st.just(UTC)).map(  # noqa: DTZ001 - above
    lambda time: time.replace(microsecond=0)
)


@pytest.mark.untraced
@patiently
@given(st.text() | st.text("0123456789 :,+-GMTJanFebSat/", max_size=40))
def test_anything_is_a_pause_or_none(text: str) -> None:
    pause = retry_after({"retry-after": text, "date": text}, NOON)
    assert pause is None or 0 <= pause <= LONGEST_PAUSE


@patiently
@given(st.integers(0, 10**30))
def test_seconds_are_seconds_up_to_a_year(seconds: int) -> None:
    assert retry_after({"retry-after": f" {seconds} "}, NOON) == min(seconds, LONGEST_PAUSE)


@pytest.mark.untraced
@patiently
@given(ANY_TIME, ANY_TIME)
def test_a_date_is_how_far_away_it_is(then: datetime, here: datetime) -> None:
    asked = {"retry-after": format_datetime(then, usegmt=True), "date": format_datetime(here, usegmt=True)}
    assert retry_after(asked, NOON) == min(max((then - here).total_seconds(), 0), LONGEST_PAUSE)
    del asked["date"]
    assert retry_after(asked, NOON) == min(max((then - NOON).total_seconds(), 0), LONGEST_PAUSE)


def test_no_pause_is_none() -> None:
    assert retry_after({}, NOON) is None


def test_a_date_without_a_time_zone_is_in_that_of_the_service() -> None:
    assert parse_date("Sat, 10 Oct 2026 12:00:00 -0000") == NOON
    assert parse_date("Sat, 10 Oct 2026 12:00:00 +0200") == NOON - timedelta(hours=2)
