"""The progress of a run: the stages count, and a display reads. Nothing depends on it. See `Progress`."""

from collections import Counter
from collections.abc import Callable, Iterable
from threading import Lock
from time import monotonic

from reconciler.model.targets import Target


class Progress:
    """The stage of a run and its progress. Safe to use from any thread.

    Args:
        requests: returns the number of requests so far.
        seconds_clock: returns seconds.

    Attributes:
        stage: the name of the stage, such as `reading`.
        targets: the number of targets of the stage; 0 if unknown.
        done: the number of finished targets.
        changes: the number of changes carried out so far.
        planned: the number of changes to carry out.
    """

    def __init__(self, requests: Callable[[], int] = int, seconds_clock: Callable[[], float] = monotonic) -> None:
        self.requests = requests
        self.stage = ""
        self.targets = 0
        self.done = 0
        self.changes = self.planned = 0
        self._clock = seconds_clock
        self._began = seconds_clock()
        self._requests_before = 0
        self._remaining: Counter[Target] = Counter()
        self._lock = Lock()

    @property
    def seconds(self) -> float:
        """The seconds since the stage began."""
        return self._clock() - self._began

    @property
    def requests_of_stage(self) -> int:
        """The number of requests since the stage began."""
        return self.requests() - self._requests_before

    def begin(self, stage: str, step_targets: Iterable[Target] = (), planned_count: int = 0) -> None:
        """Begin a stage.

        Args:
            stage: its name.
            step_targets: the target of each future step.
            planned_count: the number of changes to carry out.
        """
        with self._lock:
            self._remaining = Counter(step_targets)
            self._began, self._requests_before = self._clock(), self.requests()
            self.stage, self.targets, self.done, self.planned = stage, len(self._remaining), 0, planned_count

    def step(self, target: Target, change_count: int = 0) -> None:
        """Count a step of a target, and the changes it carried out; after its last step a target is done."""
        with self._lock:
            self.changes += change_count
            self._remaining[target] -= 1
            self.done += self._remaining[target] == 0
