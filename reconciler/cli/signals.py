"""Signals that end a run: SIGHUP (a closed terminal), SIGINT (Ctrl-C) and SIGTERM (a cancelled CI job)."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from threading import current_thread, main_thread
from types import FrameType

ENDING = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


class Ended(KeyboardInterrupt):
    """A signal that ends the run at once.

    Attributes:
        number: of the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Signals:
    """The signals received.

    Attributes:
        came: their numbers, in order.
        patience: how many more of them only call `react`. The next one raises `Ended`; later ones are ignored until the
            patience is set again.
    """

    def __init__(self, react: Callable[[], None], patience: float) -> None:
        self.came: list[int] = []
        self.patience = patience
        self._react = react

    def ignore(self) -> None:
        """Ignore all further signals."""
        self.patience = inf

    def handle(self, number: int, _frame: FrameType | None) -> None:
        """Handle a signal."""
        self.came.append(number)
        self.patience -= 1
        if self.patience < 0:
            self.ignore()
            raise Ended(number)
        self._react()


@contextmanager
def heeding(react: Callable[[], None] = lambda: None, patience: float = 0) -> Iterator[Signals]:
    """Handle signals while this block runs; those that are ignored, as under `nohup`, stay ignored.

    Args:
        react: called for each signal that does not end the run at once.
        patience: the number of such signals.
    """
    signals = Signals(react, patience)
    before = {}
    if current_thread() is main_thread():
        heeded = [number for number in ENDING if signal.getsignal(number) is not signal.SIG_IGN]
        before = {number: signal.signal(number, signals.handle) for number in heeded}
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def signal_of(error: BaseException | None) -> int | None:
    """Return the signal that caused an exception, directly or not; None if none did."""
    while error is not None:
        if isinstance(error, Ended):
            return error.number
        error = error.__cause__ or error.__context__
    return None
