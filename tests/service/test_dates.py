"""Times in headers, by whoever may have written them."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

from hypothesis import given
from hypothesis import strategies as st

from reconciler.service.responses import parse_date
from reconciler.service.retries import LONGEST_PAUSE, retry_after
from tests.service.clock import NOON, patiently

ANY_TIME = st.datetimes(datetime(1900, 1, 1), datetime(9999, 12, 31), timezones=st.just(UTC)).map(  # noqa: DTZ001 - above
    lambda time: time.replace(microsecond=0)
)


@patiently
@given(st.text() | st.text("0123456789 :,+-GMTJanFebSat/", max_size=40))
def test_anything_is_a_pause_or_none(text: str) -> None:
    pause = retry_after({"retry-after": text, "date": text}, NOON)
    assert pause is None or 0 <= pause <= LONGEST_PAUSE


@patiently
@given(st.integers(0, 10**30))
def test_seconds_are_seconds_up_to_a_year(seconds: int) -> None:
    assert retry_after({"retry-after": f" {seconds} "}, NOON) == min(seconds, LONGEST_PAUSE)


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
