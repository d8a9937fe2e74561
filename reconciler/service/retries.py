"""Which failures are worth another try, which may have been carried out all the same, and how long to wait."""

from random import Random

from reconciler.errors import AnswerLost, BadAnswer, RateLimited, ServiceError, Unreachable, Untrusted
from reconciler.service.policy import Policy

PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
"""Statuses that a later try may not meet."""

CONFLICT = 409
"""A lock on the object, which passes (deployed behaviour, section 7.2), or a conflict, which stays (spec section 7)."""

TRIES_OF_CONFLICTS = 2
"""A lock is gone by the second try; a conflict is there for good."""


def is_in_doubt(error: ServiceError, pause: float | None) -> bool:
    """Whether a write that failed like this may have been carried out.

    Args:
        pause: what the answer's `Retry-After` asked for; with a 503, it says that nothing was carried out.
    """
    if isinstance(error, (AnswerLost, BadAnswer)):
        return True
    return error.status is not None and error.status >= 500 and not (error.status == 503 and pause is not None)


def is_passing(method: str, error: ServiceError, *, in_doubt: bool) -> bool:
    """Whether the same request may be sent again, and may then succeed.

    A POST that may have been carried out is not sent again: there would be two of what it creates. One that meets 409
    or 425 is not either, since only the specification knows what it means there.
    """
    if isinstance(error, Unreachable):
        return not isinstance(error, Untrusted)
    if method == "POST":
        return not in_doubt and (isinstance(error, RateLimited) or error.status == 503)
    return isinstance(error, AnswerLost) or error.status in PASSING


def most_tries(policy: Policy, error: ServiceError, *, heard: bool) -> int:
    """Return how often a request is sent at most that fails like this.

    Args:
        policy: how patient the client is.
        error: the failure.
        heard: whether the service has answered anything in this run.
    """
    if error.status == CONFLICT:
        return min(policy.tries, TRIES_OF_CONFLICTS)
    return min(policy.tries, policy.tries_unheard) if isinstance(error, Unreachable) and not heard else policy.tries


def backoff(policy: Policy, tries: int, random: Random) -> float:
    """Return how many seconds to wait after so many tries: any number up to a bound that doubles each time."""
    return random.uniform(0, min(policy.longest_backoff, policy.first_backoff * 2 ** (tries - 1)))
