"""Reading manifests: parsed, checked and merged, without a service."""

import json
import sys
from statistics import median

from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.fleet import LINES
from benchmarks.running import RECONCILER, run

SCRIPT = """
import json, sys, time
from pathlib import Path
from reconciler.kinds import all_kinds
from reconciler.manifests import read_manifests
warm_up, few, times = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
def read(folder):
    began = time.perf_counter()
    read_manifests([folder], all_kinds())
    return time.perf_counter() - began
read(warm_up)
print(json.dumps([read(few) for _ in range(times)]))
"""


def reading(bench: Bench) -> list[Figure]:
    """Validate many files; and compare what a file takes among many and among few."""
    few, many = bench.sizes.files
    folder = str(bench.manifests(many))
    wholes = [run([*RECONCILER, "validate", folder, "--quiet"], bench.folder).wall for _ in range(bench.sizes.repeat)]
    among_few = _seconds(bench, few, 3 * bench.sizes.repeat)
    small = median(among_few) / few
    among_many = [_seconds(bench, many, 1)[0] / many for _ in range(bench.sizes.repeat)]
    about = (
        f"`reconciler validate`, the whole process; in a warm process, a file takes {1000 * small:.2f} ms among "
        f"{few:,}, and {1000 * median(among_many):.2f} ms among {many:,}"
    )
    return [
        Figure(f"read, check and merge {many:,} manifests of {LINES} lines", tuple(wholes), "s", 6, about=about),
        Figure(f"per file, {many:,} ÷ {few:,} manifests", tuple(each / small for each in among_many), "", 1.1),
    ]


def _seconds(bench: Bench, count: int, times: int) -> list[float]:
    """Read so many manifests in one process, after a few others, so that all is imported."""
    folders = [str(bench.manifests(bench.sizes.files[0])), str(bench.manifests(count))]
    seconds: list[float] = json.loads(run([sys.executable, "-c", SCRIPT, *folders, str(times)], bench.folder).output)
    return seconds
