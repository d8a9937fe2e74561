"""Three limits of requests: the service's quota, the run's own rate, and the number in flight."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from email.utils import format_datetime
from threading import Event, Thread
from time import sleep
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.errors import ServiceError, Stopped, WaitTooLong
from reconciler.sandbox import Sandbox
from reconciler.sandbox.faults import RateLimit
from reconciler.service import Clock, Policy, Rate, Traffic, Wait
from reconciler.service.concurrency import Sent
from reconciler.service.limiter import Limiter, Pacer, Quota
from tests.between import between
from tests.service.clock import NOON, SwiftClock, patiently
from tests.service.connecting import connected
from tests.states import a_small_service


def a_limiter(clock: SwiftClock, **policy: Any) -> Limiter:
    return Limiter(Policy(**policy), clock, Traffic(), Event())


def quota(left: int, ends: float, observed: int = 0, name: str = "api") -> dict[str, str]:
    return {
        "ratelimit-name": name,
        "ratelimit-limit": "1",
        "ratelimit-remaining": str(left),
        "ratelimit-observed": str(observed),
        "ratelimit-reset": f"{NOON.timestamp() + ends:.0f}",
    }


def test_nothing_goes_before_the_reset_once_nothing_remains() -> None:
    clock = SwiftClock()
    limiter = a_limiter(clock)
    limiter.release(limiter.acquire("GET x"), 200, quota(left=1, ends=40))
    limiter.release(limiter.acquire("GET x"), 200, quota(left=0, ends=40))
    assert clock.waits == []
    assert limiter.acquire("GET x").at == 40
    assert clock.waits == [40]


def test_a_reset_that_is_too_far_away_ends_the_run() -> None:
    limiter = a_limiter(SwiftClock())
    limiter.release(limiter.acquire("GET x"), 200, quota(left=0, ends=301))
    with pytest.raises(WaitTooLong) as raised:
        limiter.acquire("GET x")
    assert raised.value.come_back == NOON + timedelta(seconds=301)
    assert raised.value.reason.startswith("rate limit of the service: retry at 2026-10-10 12:05:01 UTC")


def test_the_clock_of_the_service_counts_where_it_tells_it() -> None:
    clock = SwiftClock()
    limiter = a_limiter(clock)
    there = {"date": format_datetime(NOON + timedelta(hours=2), usegmt=True)}
    limiter.release(limiter.acquire("GET x"), 200, quota(left=0, ends=7215) | there)
    assert limiter.acquire("GET x").at == 15


def test_requests_in_flight_are_taken_off_what_remains() -> None:
    left = Quota()
    left.record(quota(left=3, ends=10), 0, NOON)
    assert [left.wait(0, in_flight) for in_flight in range(5)] == [0, 0, 0, float("inf"), float("inf")]
    left.record(quota(left=0, ends=10), 0, NOON)
    left.record(quota(left=2, ends=10), 0, NOON)  # answered first, arrived last
    assert left.wait(1, 0) == 9


def test_a_new_window_begins_with_as_much_as_the_last() -> None:
    left = Quota()
    left.record(quota(left=0, observed=2, ends=10), 0, NOON)
    assert [left.wait(10, in_flight) for in_flight in range(4)] == [0, 0, float("inf"), float("inf")]
    left.record(quota(left=7, ends=20), 11, NOON + timedelta(seconds=11))
    left.record(quota(left=0, ends=10), 11, NOON + timedelta(seconds=11))  # of the window that is over
    assert left.wait(11, 6) == 0


def test_of_two_throttles_the_stricter_counts() -> None:
    left = Quota()
    left.record(quota(left=0, ends=10), 0, NOON)
    left.record(quota(left=0, ends=30, name="deprecated"), 0, NOON)
    left.record(quota(left=5, ends=50, name="more"), 0, NOON)
    assert left.wait(0, 0) == 30


@pytest.mark.parametrize("value", ["", "-1", "1.5", "many", "٣", "9" * 13])
@pytest.mark.parametrize("name", ["ratelimit-remaining", "ratelimit-reset"])
def test_a_quota_that_makes_no_sense_is_none(name: str, value: str) -> None:
    left = Quota()
    left.record(quota(left=0, ends=10) | {name: value}, 0, NOON)
    assert left.wait(0, 0) == 0


@pytest.mark.untraced
def test_no_request_is_too_many_for_a_service_that_says_what_remains(sandbox: Sandbox) -> None:
    clock = SwiftClock()
    sandbox.replace_state(a_small_service("deployed"))
    sandbox.set_rate_limit(RateLimit(10, 60, lambda: clock.now().timestamp()))
    try:
        with (
            between(sandbox.api_url) as dateless,  # the sandbox's `Date` is not of the clock of its rate limit here
            connected(dateless.api_url, token="ada-token", clock=clock) as client,
            ThreadPoolExecutor(4) as pool,
        ):
            list(pool.map(lambda _: client.get("version"), range(45)))
            assert client.traffic.waited[Wait.RATE_LIMIT] >= 4 * 60
    finally:
        sandbox.set_rate_limit(None)
    assert [entry["status"] for entry in sandbox.log()] == [200] * 45


@pytest.mark.untraced
@patiently
@given(st.integers(1, 1000), st.floats(0.1, 3600), st.integers(1, 50))
def test_requests_keep_to_the_rate_of_the_run(requests: int, seconds: float, most: int) -> None:
    pace, now, gone = Pacer(Rate(requests, seconds)), 0.0, []
    for _ in range(most):
        now += pace.wait(now)
        pace.take(now)
        gone.append(now)
    apart = 1.02 * seconds / requests
    late = min(apart, 0.01 * seconds)  # the first may have been late, so the second is early
    assert gone[-1] == pytest.approx(max((most - 1) * apart - late, 0), abs=1e-6)


@pytest.mark.untraced
@patiently
@given(st.integers(1, 60), st.lists(st.floats(0, 3), min_size=1, max_size=200))
def test_no_window_ever_holds_a_request_too_many(requests: int, delays: list[float]) -> None:
    pace, now, gone = Pacer(Rate(requests, 10)), 0.0, []
    for delay in delays:
        now += delay
        now += pace.wait(now)
        pace.take(now)
        gone.append(now)
    assert max(sum(start <= other < start + 10 for other in gone) for start in gone) <= requests


def test_a_run_at_its_own_rate_waits_for_it_and_says_so() -> None:
    clock = SwiftClock()
    traffic = Traffic()
    limiter = Limiter(Policy(rate=Rate(10, 10), max_wait=0.5), clock, traffic, Event())
    starts = []
    for _ in range(4):
        sent = limiter.acquire("GET x")
        limiter.release(sent, 200, {})
        starts.append(sent.at)
    assert starts == pytest.approx([0, 1.02, 2.04, 3.06], abs=0.11)
    assert traffic.waited[Wait.OWN_RATE] == starts[-1]


@pytest.mark.parametrize("text", ["600/60", "1/0.5"])
def test_a_rate_is_read(text: str) -> None:
    rate = Rate.parse(text)
    assert f"{rate.requests}/{rate.seconds:g}" == text


@pytest.mark.parametrize("text", ["", "600", "600/", "/60", "a/b", "0/60", "-1/60", "6/0", "6/-1", "6/nan", "6/1e9"])
def test_what_is_no_rate_is_told(text: str) -> None:
    with pytest.raises(ValueError, match=r"600/60|above zero"):
        Rate.parse(text)


@pytest.fixture
def crowded() -> Iterator[tuple[Limiter, Traffic, Thread, list[Sent | None]]]:
    """A limiter of one request at a time, with one in flight and a thread that waits to send another."""
    traffic, entered = Traffic(), list[Sent | None]()
    clock = SwiftClock()
    limiter = Limiter(Policy(concurrency=1), clock, traffic, Event())
    entered.append(limiter.acquire("GET a"))
    thread = Thread(target=lambda: _enter(limiter, entered), daemon=True)
    thread.start()
    yield limiter, traffic, thread, entered
    thread.join()


def _enter(limiter: Limiter, entered: list[Sent | None]) -> None:
    try:
        entered.append(limiter.acquire("GET b"))
    except ServiceError:
        entered.append(None)


def test_a_request_too_many_waits_for_another_to_end(
    crowded: tuple[Limiter, Traffic, Thread, list[Sent | None]],
) -> None:
    limiter, traffic, thread, entered = crowded
    first = entered[0]
    assert first is not None
    limiter.release(first, None, {})
    thread.join()
    assert [None not in entered, len(entered)] == [True, 2]
    assert set(traffic.waited) <= {Wait.CONCURRENCY}


def test_whoever_waits_for_a_turn_is_told_that_the_run_is_over(
    crowded: tuple[Limiter, Traffic, Thread, list[Sent | None]],
) -> None:
    limiter, _, thread, entered = crowded
    limiter.block(1000, Wait.UNAVAILABLE)
    with pytest.raises(WaitTooLong):
        limiter.acquire("GET c")
    first = entered[0]
    assert first is not None
    limiter.release(first, None, {})
    thread.join()
    assert entered == [first, None]


def test_a_number_that_finds_itself_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", "reconciler")
    clock = SwiftClock()
    limiter = a_limiter(clock, concurrency="auto")
    for status in (200, 200, 429):
        sent = limiter.acquire("GET x")
        clock.advance(0.1)
        limiter.release(sent, status, {})
    assert caplog.messages == ["up to 11 requests in flight", "up to 1 request in flight"]


def test_what_waits_for_the_own_rate_or_for_its_turn_is_not_sent_once_the_run_is_stopped() -> None:
    stop, clock, traffic = Event(), SwiftClock(), Traffic()
    slow = Limiter(Policy(rate=Rate(1, 60)), clock, Traffic(), stop)
    slow.release(slow.acquire("PUT x"), 200, {})
    stop.set()
    with pytest.raises(Stopped):
        slow.acquire("PUT x")
    assert clock.monotonic() == 0
    clock.advance(120)
    slow.release(slow.acquire("GET x"), 200, {})  # what need not wait is sent
    busy = Limiter(Policy(concurrency=1), clock, traffic, stop)
    sent = busy.acquire("PUT x")
    with pytest.raises(Stopped):
        busy.acquire("PUT x")
    busy.release(sent, 200, {})
    stop.clear()
    sent = busy.acquire("PUT x")
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(busy.acquire, "PUT y")
        while Wait.CONCURRENCY not in traffic.waiting_for:
            sleep(0.001)
        stop.set()
        busy.release(sent, 200, {})
        assert isinstance(waiting.exception(), Stopped)


def test_a_wait_is_cut_short_by_whoever_stops() -> None:
    stop = Event()
    limiter = Limiter(Policy(), SwiftClock(), Traffic(), stop)
    limiter.block(10, Wait.RATE_LIMIT)
    stop.set()
    with pytest.raises(Stopped):
        limiter.acquire("GET x")
    with pytest.raises(Stopped):
        limiter.pause("GET x", Wait.RETRY, 1)


def test_a_shorter_wait_does_not_shorten_a_longer_one(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "reconciler")
    clock = SwiftClock()
    limiter = a_limiter(clock)
    limiter.block(20, Wait.RATE_LIMIT)
    limiter.block(7, Wait.UNAVAILABLE)
    assert limiter.acquire("GET x").at == 20
    assert caplog.messages == ["waiting 20 s: rate limit of the service"]


def test_waits_side_by_side_count_once() -> None:
    clock, traffic = SwiftClock(), Traffic()
    with traffic.waiting(Wait.RETRY, clock):
        clock.advance(1)
        with traffic.waiting(Wait.RETRY, clock):
            clock.advance(2)
    assert traffic.waited == {Wait.RETRY: 3}


def test_the_real_clock_waits() -> None:
    clock, event = Clock(), Event()
    assert not clock.wait(0.001, event)
    event.set()
    assert clock.wait(1000, event)
    assert clock.now().tzinfo is not None
    assert clock.monotonic() <= clock.monotonic()
