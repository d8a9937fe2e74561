"""The limit of requests in flight: a `FixedLimit`, or an `AdaptiveLimit` that follows the service's response times.

`AdaptiveLimit` climbs and descends a ladder of numbers, and judges each number by a round of responses. The slowness of
a round is how many times as long its responses took as those of the same route take at the best of times. The number of
requests in flight, divided by the slowness, is the number that the service really worked on (Little's law). A step up
that does not raise this number by a tenth only makes requests queue, and is undone.

Other limiters that work by latency inspired it: TCP Vegas and BBR, Netflix's gradient limits and Envoy's adaptive
concurrency. Unlike them, it compares a route only with itself, and two numbers only with each other, so that neither
costly routes nor scattered times look like load.
"""

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import inf, sqrt

OVERLOADED = frozenset({429, 503})


@dataclass(frozen=True, slots=True)
class Sent:
    """A request in flight.

    Attributes:
        route: its method and path, with `*` for each part that names one object.
        at: the time at which it was sent, in seconds.
        integral: the sum over time of the requests in flight, up to that moment.
        round: the round of answers in which it was sent.
    """

    route: str
    at: float
    integral: float
    round: int


def route_of(request: str) -> str:
    """Return the route of a method and path: IDs, and the paths of groups and projects, become `*`."""
    return _OBJECT.sub("*", request)


_OBJECT = re.compile(r"(?<=[ /]groups/)[^/]+|(?<=[ /]projects/)[^/]+|(?<=/)[^/]*[0-9%][^/]*")


class ConcurrencyLimit(ABC):
    """The limit of requests in flight, adapted to responses. Not safe to use from several threads at once.

    Attributes:
        in_flight: the number of requests in flight.
    """

    def __init__(self) -> None:
        self.in_flight = 0
        self._integral = 0.0
        self._counted_at = 0.0
        self._cut_at = -inf
        self._round = 0

    @property
    @abstractmethod
    def requests(self) -> int:
        """The limit, at least 1."""

    def send(self, request: str, now: float) -> Sent:
        """Record that a request is sent; `answer` must follow.

        Args:
            request: its method and path.
            now: in seconds of the same clock each time.
        """
        self._count(now, 1)
        return Sent(route_of(request), now, self._integral, self._round)

    def answer(self, sent: Sent, now: float, status: int | None) -> None:
        """Adapt the limit to an answer.

        Args:
            sent: the request.
            now: see `send`.
            status: None if no answer came: then the limit does not change.
        """
        in_flight = self.in_flight
        self._count(now, -1)
        if status in OVERLOADED:
            if sent.at >= self._cut_at:  # a request sent before the last cut shows nothing of its effect
                self._cut_at = now
                self._refuse(in_flight)
        elif status is not None:
            self._learn(sent, now - sent.at)

    def _count(self, now: float, more: int) -> None:
        self._integral += self.in_flight * (now - self._counted_at)
        self._counted_at = now
        self.in_flight += more

    @abstractmethod
    def _refuse(self, in_flight: int) -> None:
        """Lower the limit after the service refused a request as one too many."""

    @abstractmethod
    def _learn(self, sent: Sent, seconds: float) -> None:
        """Adapt the limit to an answer, and the seconds that it took."""


class FixedLimit(ConcurrencyLimit):
    """A limit that the user gave: halved when the service refuses a request, and raised again one by one.

    Args:
        most: the limit.
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most
        self._exact = float(most)

    @property
    def requests(self) -> int:
        """The limit."""
        return int(self._exact)

    def _refuse(self, in_flight: int) -> None:
        self._exact = max(min(self._exact, in_flight) / 2, 1)

    def _learn(self, _sent: Sent, _seconds: float) -> None:
        # One more after as many answers as the limit has requests, as in the congestion avoidance of TCP.
        self._exact = min(self._exact + 1 / self._exact, self._most)


LADDER = (1, 2, 3, 4, 6, 8, 11, 16, 23, 32)
"""The numbers that `AdaptiveLimit` tries, each about 1.4 times as large as the one below."""

START = LADDER.index(4)

LEAP = 3
"""The number of rungs that a starting run climbs at once."""

GAIN = 1.1
"""Keep a higher number only if the service works on this many times as many requests at once."""

FULL_GAIN = 0.65
"""Keep a leap to x times as many requests whole if the service works on x to this power as many at once."""

BUSY = 0.75
"""A round counts only if this share of the allowed requests was in flight: otherwise there was not enough to do."""

UNHURRIED = 1.5
"""Return from a higher number if answers take longer than before, and more than this many times their usual time."""

TOO_SLOW = 2.5
"""Above this slowness, keep a lower number that makes answers quicker, whatever the throughput."""

MIN_CHANGE_FACTOR = 1.4
"""If slowness changes by this factor, up or down, at the same number, the service has changed."""

FORGET = 0.25
"""If a lower number does not help, the service itself is slow: rebase the latency by this power of the slowness."""

PRECISION = 0.08
"""Standard error of a round's slowness, as a share of it."""

OUTLIER = 4
"""The most that one answer counts for, as a multiple of the slowness of the others."""

STEADY = 32
"""The number of answers over which the usual time of a route is averaged."""

RAREST = 32
"""The most rounds between two trials."""

BARRED = 16
"""The number of turns for which a refused number is not tried again; after the next refusal, four times as many."""


@dataclass(frozen=True, slots=True)
class Load:
    """The load that a round of answers shows.

    Attributes:
        in_flight: requests, on average.
        slowness: the average time of answers, as a multiple of their usual time.
    """

    in_flight: float
    slowness: float

    @property
    def worked_on(self) -> float:
        """The number of requests that the service really worked on at once; the others waited."""
        return self.in_flight / self.slowness

    def mixed(self, later: "Load") -> "Load":
        """Return the average with a later round, which counts a third."""
        return Load((2 * self.in_flight + later.in_flight) / 3, (2 * self.slowness + later.slowness) / 3)


class Round:
    """The answers at one number in flight.

    Attributes:
        answers: their number.
        routes: the slowness of each answer, by route.
        unknown: the seconds of other answers, of routes whose usual time is not known, by route.
        others: the number of these answers.
    """

    def __init__(self) -> None:
        self.answers = self.others = 0
        self.routes: dict[str, list[float]] = {}
        self.unknown: dict[str, list[float]] = {}
        self._in_flight = self._weighted = self._weight = self._sum = self._squares = 0.0

    def add(self, route: str, slowness: float, weight: float, in_flight: float) -> None:
        """Add an answer.

        Args:
            route: of its request.
            slowness: its time as a multiple of the usual time.
            weight: its weight in the average.
            in_flight: the average number of requests in flight meanwhile.
        """
        self.answers += 1
        self.routes.setdefault(route, []).append(slowness)
        self._in_flight += in_flight
        self._weighted += weight * slowness
        self._weight += weight
        self._sum += slowness
        self._squares += slowness * slowness

    @property
    def load(self) -> Load:
        """The load that the answers show."""
        return Load(self._in_flight / self.answers, self._weighted / self._weight)

    @property
    def enough(self) -> float:
        """The number of such answers that are needed for `PRECISION`."""
        mean = self._sum / self.answers
        return (self._squares / self.answers - mean * mean) / (mean * PRECISION) ** 2


@dataclass(slots=True)
class Trials:
    """The due time of the next trial of a higher or lower number: the more trials fail, the later it is.

    Attributes:
        due_in: rounds until the next trial.
        patience: rounds after the next failure.
    """

    due_in: float
    patience: float

    def failed(self) -> None:
        """Postpone the next trial."""
        self.due_in, self.patience = self.patience, min(2 * self.patience, RAREST)


class AdaptiveLimit(ConcurrencyLimit):
    """A limit on `LADDER` that adapts to the service.

    A run starts with leaps. Then it stays at a number for some rounds, tries the next higher or lower one for a round,
    and returns unless that was better. The slower answers are, the sooner a lower number is tried.
    """

    def __init__(self) -> None:
        super().__init__()
        self._rung = START
        self._from: int | None = None
        self._starting = True
        self._before: Load | None = None
        self._usual: dict[str, tuple[float, int]] = {}
        self._answers = Round()
        self._round = 0
        self._highest = len(LADDER) - 1
        self._bar = BARRED
        self._barred = 0.0
        self._lifted = False
        self._try_often()

    @property
    def requests(self) -> int:
        """The limit."""
        return LADDER[self._rung]

    def _try_often(self) -> None:
        self._higher, self._lower = Trials(2, 4), Trials(6, 8)

    def _refuse(self, in_flight: int) -> None:
        # The number that the bar has just released was refused again: it is barred four times as long.
        if self._lifted:
            self._bar *= 4
        self._lifted = self._starting = False
        self._barred = self._bar
        self._highest = max((rung for rung, number in enumerate(LADDER) if number < in_flight), default=0)
        if self._from is None or self._from > self._rung:
            self._from = max((rung for rung, number in enumerate(LADDER) if number <= in_flight / 2), default=0)
        self._move(min(self._from, self._highest))
        self._higher.due_in = 1
        self._begin()

    def _learn(self, sent: Sent, seconds: float) -> None:
        # Two readings of a coarse clock may be equal: no slowness follows from them.
        if seconds <= 0:
            return
        # Sent under another limit: it shows what is usual for a route that is new, and nothing about this limit.
        if self._before is None or sent.round < self._round:
            self._usual.setdefault(sent.route, (seconds / self._slowness, 1))
        if sent.round < self._round:
            return
        usual, _ = self._usual.get(sent.route, (0.0, 0))
        if usual:
            slowness = min(seconds / usual, OUTLIER * self._slowness)
            in_flight = (self._integral - sent.integral) / seconds
            # Costly routes count more, as they are more of the work, but not so much that one listing decides.
            self._answers.add(sent.route, slowness, sqrt(usual), in_flight)
        else:
            self._answers.unknown.setdefault(sent.route, []).append(seconds)
            self._answers.others += 1
        if self._answers.answers >= self._enough():
            load = self._answers.load
            self._correct_usual(load.slowness)
            self._lift_bar()
            self._compare(load)
            self._begin()
        elif self._answers.others >= 2 * self.requests:
            self._correct_usual(self._slowness)
            if self._from is not None and self._from < self._rung:
                # Nothing shows whether the higher number is better: now that routes are known, try the lower one.
                self._before, self._starting = Load(self.requests, self._slowness), False
                self._from, self._rung = self._rung, self._from
            self._begin()

    @property
    def _slowness(self) -> float:
        return self._before.slowness if self._before else 1.0

    def _begin(self) -> None:
        self._round += 1
        self._answers = Round()

    def _enough(self) -> float:
        """Return the number of answers that make a round."""
        if self._starting:
            return self.requests if self._before else self.requests / 2
        least = max(2 * self.requests, 10)
        return least if self._answers.answers < least else min(self._answers.enough, 10 * self.requests)

    def _correct_usual(self, slowness: float) -> None:
        """Correct the usual time of each route that was slower, or quicker, than all routes together."""
        for route, answers in self._answers.routes.items():
            usual, count = self._usual[route]
            count = min(count + len(answers), STEADY)
            share = min(len(answers) / count, 1)
            self._usual[route] = usual * (sum(answers) / len(answers) / slowness) ** share, count
        for route, seconds in self._answers.unknown.items():
            self._usual[route] = sum(seconds) / len(seconds) / slowness, len(seconds)

    def _lift_bar(self) -> None:
        if self._barred:
            self._barred = max(self._barred - self._answers.answers / self.requests, 0)
            if not self._barred:
                self._lifted = True
                self._highest += 1
                self._barred = self._bar if self._highest < len(LADDER) - 1 else 0

    def _compare(self, load: Load) -> None:
        if self._before is None:
            self._before = load
            self._try(LEAP)
        elif load.in_flight < BUSY * self.requests:
            return
        elif self._from is None:
            self._compare_same(self._before, load)
        elif self._from > self._rung:
            self._compare_lower(self._from, self._before, load)
        elif self._starting:
            self._compare_leap(self._from, self._before, load)
        else:
            self._compare_higher(self._from, self._before, load)
        if self._before.slowness < 1:
            self._rebase_latency(self._before, self._before.slowness)

    def _compare_leap(self, rung_below: int, former_load: Load, load: Load) -> None:
        gain = load.worked_on / former_load.worked_on
        if gain >= (load.in_flight / former_load.in_flight) ** FULL_GAIN:
            self._keep(load)
            self._try(LEAP)
            return
        # The service worked on fewer requests than were in flight, and the rest waited: the leap goes back to as many.
        worked_on = former_load.in_flight * gain
        enough = next((rung for rung in range(rung_below, self._rung) if LADDER[rung] >= worked_on), self._rung)
        self._move(enough)
        self._before = Load(self.requests, former_load.slowness * max(1, self.requests / worked_on))
        self._higher.due_in = self._higher.patience

    def _compare_higher(self, rung_below: int, former_load: Load, load: Load) -> None:
        gain = load.worked_on / former_load.worked_on
        if gain < GAIN or load.slowness > max(UNHURRIED, former_load.slowness):
            self._move(rung_below)
            self._higher.failed()
            return
        self._keep(load)
        if gain > sqrt(load.in_flight / former_load.in_flight):
            self._try(1)

    def _compare_lower(self, rung_above: int, former_load: Load, load: Load) -> None:
        # A service under strain is relieved even at the price of throughput, if its responses become quicker for that.
        quicker = load.slowness <= former_load.slowness * sqrt(load.in_flight / former_load.in_flight)
        if load.worked_on * GAIN >= former_load.worked_on or (former_load.slowness > TOO_SLOW and quicker):
            self._keep(load)
            self._higher.due_in = 4
            self._try(-1)
            return
        self._move(rung_above)
        self._lower.failed()
        if former_load.slowness > 1:
            self._rebase_latency(former_load, former_load.slowness**FORGET)

    def _compare_same(self, former_load: Load, load: Load) -> None:
        if former_load.slowness / MIN_CHANGE_FACTOR < load.slowness < former_load.slowness * MIN_CHANGE_FACTOR:
            self._before = load = former_load.mixed(load)
        else:
            self._keep(load)
            self._higher.due_in = self._lower.due_in = 0
        self._higher.due_in -= 1
        self._lower.due_in -= load.slowness**2
        if self._higher.due_in <= 0 and self._rung < self._highest:
            self._try(1)
        elif self._lower.due_in <= 0:
            self._try(-1)

    def _keep(self, load: Load) -> None:
        """Keep this number."""
        self._before, self._from = load, None
        self._try_often()

    def _move(self, rung: int) -> None:
        """End a trial, and the start of the run."""
        self._rung, self._from, self._starting = rung, None, False

    def _try(self, rungs: int) -> None:
        rung = max(min(self._rung + rungs, self._highest), 0)
        self._starting = self._starting and rung > self._rung
        self._from, self._rung = None if rung == self._rung else self._rung, rung

    def _rebase_latency(self, load: Load, slowness: float) -> None:
        """Treat the current latency as the new baseline."""
        self._usual = {route: (usual * slowness, count) for route, (usual, count) in self._usual.items()}
        self._before = Load(load.in_flight, load.slowness / slowness)
