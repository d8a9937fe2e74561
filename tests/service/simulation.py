"""A pure model of a service with few workers and of runs that make requests to it, on a clock of their own."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush, heapreplace
from itertools import cycle, islice
from random import Random
from statistics import median

from reconciler.service.concurrency import ConcurrencyLimit, FixedLimit, Sent

READS = {
    "GET milestones": 0.060,
    "GET triggers": 0.050,
    "GET rules": 0.071,
    "GET switch": 0.055,
    "GET groups allowlist": 0.060,
    "GET projects allowlist": 0.120,
}
"""Seconds that the real service computes for the reads of one project."""


class Unmoved(FixedLimit):
    """A number in flight that nothing changes: what others are compared with."""

    def _refuse(self, in_flight: int) -> None:
        pass


@dataclass
class Service:
    """A service that works on few requests at once; others wait in the order of their arrival.

    Attributes:
        workers: requests worked on at once.
        costs: seconds of a worker, by route.
        latency: seconds on the way, there and back.
        spread: standard deviation of the logarithm of the costs of one route.
        pace: by how much everything takes longer, at a moment.
        admits: requests in flight at most; others are refused at once with 429.
    """

    workers: int
    costs: Mapping[str, float]
    latency: float = 0.02
    spread: float = 0.3
    pace: Callable[[float], float] = lambda _: 1.0
    admits: int = 1000
    random: Random = field(default_factory=lambda: Random(7))  # noqa: S311 - repeatable
    _free: list[float] = field(init=False)
    _busy: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._free = [0.0] * self.workers
        heapify(self._free)

    def take(self, route: str, now: float) -> tuple[float, int]:
        """Return when the answer to a request arrives, and its status."""
        arrives = now + self.latency / 2
        while self._busy and self._busy[0] <= arrives:
            heappop(self._busy)
        if len(self._busy) >= self.admits:
            return now + self.latency, 429
        factor = self.random.lognormvariate(-(self.spread**2) / 2, self.spread)
        starts = max(arrives, self._free[0])
        ends = starts + self.costs[route] * factor * self.pace(starts)
        heapreplace(self._free, ends)
        heappush(self._busy, ends)
        return ends + self.latency / 2, 200


@dataclass
class Run:
    """One run's requests.

    Attributes:
        limit: asked before each request.
        requests: the routes, in their order.
        compute: seconds that the run's own interpreter is busy for each answer, one answer at a time.
        at_once: requests that it could send at once, if it were allowed to.
        answers: moment, route, seconds and status of each.
        limits: the limit after each answer.
    """

    limit: ConcurrencyLimit
    requests: Sequence[str]
    compute: float = 0.0
    at_once: int = 1000
    answers: list[tuple[float, str, float, int]] = field(default_factory=list)
    limits: list[int] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """Until the last answer."""
        return self.answers[-1][0]

    @property
    def rate(self) -> float:
        """Answers per second, without the end, when nothing is left to send."""
        kept = self.answers[: -max(len(self.answers) // 20, 1)]
        return len(kept) / kept[-1][0]

    def slowness(self, service: Service) -> float:
        """The median of how many times as long answers took as a worker takes for their route."""
        return median(seconds / (service.costs[route] + service.latency) for _, route, seconds, _ in self.answers)

    @property
    def refused(self) -> int:
        """Answers that were 429."""
        return sum(status == 429 for *_, status in self.answers)


def reads(count: int, costs: Mapping[str, float] = READS) -> list[str]:
    """So many requests, project by project."""
    return list(islice(cycle(costs), count))


def simulate(service: Service, *runs: Run) -> None:
    """Let all requests be answered. A refused request is sent again."""
    left = [deque(run.requests) for run in runs]
    flying = [0] * len(runs)
    idle = [0.0] * len(runs)
    events: list[tuple[float, int, int, Sent | None, int]] = []
    number = 0
    for index in range(len(runs)):
        heappush(events, (0.0, number := number + 1, index, None, 0))
    while events:
        now, _, index, sent, status = heappop(events)
        run = runs[index]
        if sent is not None and status < 0:  # it has arrived: the interpreter gets to it when it is free
            idle[index] = max(idle[index], now) + run.compute
            heappush(events, (idle[index], number := number + 1, index, sent, -status))
            continue
        if sent is not None:
            flying[index] -= 1
            run.limit.answer(sent, now, status)
            run.answers.append((now, sent.route, now - sent.at, status))
            run.limits.append(run.limit.requests)
            if status == 429:
                left[index].append(sent.route)
        while left[index] and flying[index] < min(run.limit.requests, run.at_once):
            route = left[index].popleft()
            sent = run.limit.send(route, now)
            flying[index] += 1
            at, status = service.take(route, now)
            heappush(events, (at, number := number + 1, index, sent, -status))
