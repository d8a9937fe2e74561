"""Operations, counted: how the work of each function of the package grows with what it is given.

An operation is a line that is carried out, or a call. They are counted for each function by itself, so that a loop
within a loop shows at 10 and 40 objects although all else takes a hundred times as many operations. They are the same
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

PACKAGE = Path(reconciler.__file__).parent
SANDBOX = PACKAGE / "sandbox"
GENERATED = "<string>"
"""The file of what a dataclass generates."""

SLACK = 100
"""So many operations of one function say nothing."""

Operations = Counter[str]
"""By function, as file, line and name."""


def count(work: Callable[[], object]) -> Operations:
    """Return the operations of the package, less those of the sandbox, in this thread and those that it starts."""
    counted = Counter[CodeType]()

    def in_function(frame: FrameType, event: str, _argument: Any) -> Any:
        if event == "line":
            counted[frame.f_code] += 1
        return in_function

    def called(frame: FrameType, _event: str, _argument: Any) -> Any:
        code = frame.f_code
        if code not in known:
            file = code.co_filename
            known[code] = file == GENERATED or (file.startswith(f"{PACKAGE}/") and not file.startswith(f"{SANDBOX}/"))
        if not known[code]:
            return None
        counted[code] += 1
        return in_function

    known: dict[CodeType, bool] = {}
    before, before_in_threads = sys.gettrace(), threading.gettrace()
    threading.settrace(called)
    sys.settrace(called)
    try:
        work()
    finally:
        sys.settrace(before)
        threading.settrace(before_in_threads)
    found = Operations()
    for code, number in counted.items():
        place = code.co_filename.removeprefix(f"{PACKAGE.parent}/")
        found[f"{place}:{code.co_firstlineno} {code.co_name}"] += number
    return found


def grown(few: Operations, many: Operations, times: int = 4) -> list[str]:
    """Return the functions whose operations have grown more than so many times, and by a tenth of that."""
    return sorted(
        f"{name}: {few[name]:,} operations became {number:,}"
        for name, number in many.items()
        if number > 1.1 * times * few[name] + SLACK
    )
