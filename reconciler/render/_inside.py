"""What differs inside two values that are known to differ. Slow to import, so imported only then."""

from collections.abc import Iterator

from deepdiff import DeepDiff
from deepdiff.helper import notpresent

from reconciler.wire import Json


def inside(before: Json, after: Json) -> Iterator[tuple[str, Json, Json]]:
    """Yield each place where two nested values differ, with what is there and what will be; None for nothing."""
    difference = DeepDiff(before, after, view="tree", threshold_to_diff_deeper=0)
    found = [level for levels in difference.values() for level in levels]
    for level in sorted(found, key=lambda level: str(level.path())):
        path = "".join(
            f"[{step}]" if isinstance(step, int) else f".{step}" for step in level.path(output_format="list")
        )
        was, will_be = (None if each is notpresent else each for each in (level.t1, level.t2))
        yield path, was, will_be
