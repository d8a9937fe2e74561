"""A large plan in every format."""

import sys

from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.running import RECONCILER, run
from reconciler.reports import FORMATS


def rendering(bench: Bench) -> list[Figure]:
    """Render a plan in each format, in a process of its own; the slowest and the largest count."""
    count = bench.sizes.changes
    seconds, peaks = {}, {}
    for name in FORMATS:
        done = run([sys.executable, "-m", "benchmarks.large_plan", str(count), name], bench.folder)
        seconds[name], peaks[name] = float(done.output.split()[0]), done.peak
    told = ", ".join(f"{name} {seconds[name]:.1f} s and {peaks[name]:.0f} MB" for name in FORMATS)
    slowest, largest = max(seconds, key=seconds.__getitem__), max(peaks, key=peaks.__getitem__)
    return [
        Figure(f"CPU, a plan of {count:,} changes as {slowest}", (seconds[slowest],), "s", 10, about=told),
        Figure(f"peak memory, a plan of {count:,} changes as {largest}", (peaks[largest],), "MB", 500),
    ]


def showing(bench: Bench) -> list[Figure]:
    """Read a saved plan, check it, and show it as text."""
    count = bench.sizes.changes
    run([sys.executable, "-m", "benchmarks.large_plan", str(count), "json", "large.json"], bench.folder)
    done = run([*RECONCILER, "show", "large.json", "--quiet"], bench.folder, codes=(3,))
    return [
        Figure(f"CPU, `show` of a saved plan of {count:,} changes", (done.cpu,), "s", 10),
        Figure(f"peak memory, `show` of a saved plan of {count:,} changes", (done.peak,), "MB", 650),
    ]
