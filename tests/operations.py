"""Operations, counted: how the work of each function of the package grows with what it is given.

An operation is a line that is carried out, or a call. They are counted for each function by itself, so that a loop
within a loop shows at 5 and 20 objects although all else takes a hundred times as many operations. They are the same
on any machine, however busy. A search through a list by the interpreter itself shows only where the values are ours to
compare: the comparisons that dataclasses come with are counted too.
"""

import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import reconciler
from reconciler.service import transport

PACKAGE = Path(reconciler.__file__).parent
SANDBOX = PACKAGE / "sandbox"
GENERATED = "<string>", "__eq__"
"""Where the comparison is that a dataclass generates."""

BY_THE_NETWORK = {
    getattr(holder, name).__code__
    for holder, names in {
        transport.Deadline: ("within", "moved"),
        transport._Stream: ("read", "_received"),
        transport.DirectTransport: ("_read_head", "_read_body"),
        transport._ResponseReader: ("feed", "take", "on_body"),
    }.items()
    for name in names
}
"""The functions that are called for each piece in which an answer arrives: how many these are is not in our hands."""

SLACK = 120
"""So many operations of one function say nothing: a cache answers the first questions of few and of many alike not at all."""

Operations = Counter[str]
"""By function, as file, line and name."""


class _Counter:
    """Counts the operations of one function; `event` is what Python calls for each line."""

    def __init__(self) -> None:
        self.number = 0

    def event(self, _frame: FrameType, event: str, _argument: Any) -> Any:
        if event == "line":
            self.number += 1
        return self.event


def count(work: Callable[[], object]) -> Operations:
    """Return the operations of the package, less those of the sandbox, in this thread and those that it starts."""
    counters: dict[
        int, tuple[CodeType, _Counter | None]
    ] = {}  # with the code, whose number is its own while it is kept

    def called(frame: FrameType, _event: str, _argument: Any) -> Any:
        code = frame.f_code
        number = id(code)  # its hash would take its whole content
        if number not in counters:
            file = code.co_filename
            ours = file.startswith(f"{PACKAGE}/") and not file.startswith(f"{SANDBOX}/")
            ours = ours or (file, code.co_name) == GENERATED
            ours = ours and code not in BY_THE_NETWORK
            counters[number] = code, _Counter() if ours else None
        _, counter = counters[number]
        if counter is None:
            return None
        counter.number += 1
        return counter.event

    before, before_in_threads = sys.gettrace(), threading.gettrace()
    threading.settrace(called)
    sys.settrace(called)
    try:
        work()
    finally:
        sys.settrace(before)
        threading.settrace(before_in_threads)
    found = Operations()
    for code, counter in counters.values():
        if counter is not None:
            place = code.co_filename.removeprefix(f"{PACKAGE.parent}/")
            found[f"{place}:{code.co_firstlineno} {code.co_name}"] += counter.number
    return found


def grown(few: Operations, many: Operations, times: int = 4) -> list[str]:
    """Return the functions whose operations have become more than so many times as many, and a tenth of that.

    Args:
        few: of a work.
        many: of a work that is so many times as large.
        times: how many.
    """
    return sorted(
        f"{name}: {few[name]:,} operations became {number:,}"
        for name, number in many.items()
        if number > 1.1 * times * few[name] + SLACK
    )
