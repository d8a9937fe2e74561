"""The rate limit: deployed behaviour 7.4, its outermost layer."""

import pytest

from reconciler.sandbox import FaultError, parse_rate_limit
from reconciler.sandbox.answers import Answer
from reconciler.sandbox.faults import RateLimit

from .sandbox_client import SandboxClient, a_service


class Clock:
    """A clock that a test sets."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def test_so_many_requests_a_window_and_no_more() -> None:
    clock = Clock(1_000_005.5)
    limit = RateLimit(2, 10, clock)

    def headers(observed: int, remaining: int, reset: int) -> list[tuple[str, str]]:
        return [
            ("ratelimit-name", "throttle_authenticated_api"),
            ("ratelimit-limit", "12"),
            ("ratelimit-observed", str(observed)),
            ("ratelimit-remaining", str(remaining)),
            ("ratelimit-reset", str(reset)),
        ]

    assert limit.count("ada") == (headers(1, 1, 1_000_010), None)
    assert limit.count("ada") == (headers(2, 0, 1_000_010), None)
    refused = Answer(
        429,
        b"Retry later\n",
        [("ratelimit-resettime", "Mon, 12 Jan 1970 13:46:50 GMT"), ("retry-after", "5")],
        "text/plain",
    )
    assert limit.count("ada") == (headers(3, 0, 1_000_010), refused)
    assert limit.count("max") == (headers(1, 1, 1_000_010), None)
    clock.now += 5
    assert limit.count("ada") == (headers(1, 1, 1_000_020), None)


def test_a_request_too_many_is_not_carried_out(service: SandboxClient) -> None:
    service.given(a_service()).sandbox.set_rate_limit("1/1000000")
    first = service.response("GET /user")
    assert (first.status_code, first.headers["ratelimit-remaining"]) == (200, "0")
    second = service.response("PUT /notification_settings", {"level": "watch"})
    assert (second.status_code, second.text, second.headers["content-type"]) == (429, "Retry later\n", "text/plain")
    assert int(second.headers["retry-after"]) > 0
    assert [(entry["status"], entry["changed"]) for entry in service.sandbox.log()] == [(200, False), (429, False)]
    anonymous = service.response("GET /user", user=None)
    assert anonymous.headers["ratelimit-name"] == "throttle_unauthenticated_api"
    assert service.control("GET /-/log").status_code == 200
    service.sandbox.set_rate_limit(None)
    assert "ratelimit-name" not in service.response("GET /user").headers


@pytest.mark.parametrize("text", ["often", "10", "10/", "0/60", "10/0", "10/inf", "10/nan"])
def test_an_invalid_rate_limit_is_quoted(text: str) -> None:
    with pytest.raises(FaultError, match=f"rate limit '{text}'"):
        parse_rate_limit(text)
