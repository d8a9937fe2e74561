"""What it takes to start."""

import sys

from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.running import console_script, run


def start(bench: Bench) -> list[Figure]:
    """Start the tool and bare Python in turn, so that both meet the same noise."""
    version, bare = [*console_script(), "--version"], [sys.executable, "-c", "pass"]
    run(version, bench.folder)
    pairs = [(run(version, bench.folder).wall, run(bare, bench.folder).wall) for _ in range(bench.sizes.starts)]
    about = (
        f"{1000 * min(ours for ours, _ in pairs):.0f} ms and {1000 * min(python for _, python in pairs):.0f} ms at best"
    )
    samples = tuple(ours / python for ours, python in pairs)
    return [Figure("`reconciler --version` ÷ `python -c pass`", samples, "", 5, about=about)]
