"""The progress of a run: the stages count, and a display reads. Nothing depends on it."""

from collections import Counter
from collections.abc import Callable, Iterable
from threading import Lock
from time import monotonic

from reconciler.model.targets import Target


class Progress:
    """The stage of a run and how much of it is done. Safe to use from any thread.

    Args:
        requests: returns how many requests were made so far.
        seconds_clock: returns seconds.

    Attributes:
        stage: what is being done, such as `reading`.
        targets: how many targets the stage is about; 0 where that is not known.
        done: how many of them are done with.
        changes: how many changes were carried out so far.
        planned: how many changes there are to carry out.
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
        self._left: Counter[Target] = Counter()
        self._lock = Lock()

    @property
    def seconds(self) -> float:
        """How long the stage takes already."""
        return self._clock() - self._began

    @property
    def requests_of_stage(self) -> int:
        """How many requests were made since it began."""
        return self.requests() - self._requests_before

    def begin(self, stage: str, step_targets: Iterable[Target] = (), planned_count: int = 0) -> None:
        """Begin a stage.

        Args:
            stage: what will be done.
            step_targets: the target of each step there will be.
            planned_count: how many changes it is to carry out.
        """
        with self._lock:
            self._left = Counter(step_targets)
            self._began, self._requests_before = self._clock(), self.requests()
            self.stage, self.targets, self.done, self.planned = stage, len(self._left), 0, planned_count

    def step(self, target: Target, change_count: int = 0) -> None:
        """Count a step of a target, and the changes it carried out; after its last step a target is done."""
        with self._lock:
            self.changes += change_count
            self._left[target] -= 1
            self.done += self._left[target] == 0
