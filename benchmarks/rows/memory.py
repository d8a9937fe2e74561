"""Memory at its peak, of plans with nothing to do."""

from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.running import RECONCILER, Failed, quick_server, run

CONCURRENCY = 16

LARGE = 50_000
"""A fleet for which memory is foretold: to plan it would take longer than all other rows."""


def memory(bench: Bench) -> list[Figure]:
    """Plan fleets of three sizes."""
    sizes = bench.sizes.memory
    peaks = [_peak(bench, count) for count in sizes]
    slopes = [(peaks[at + 1] - peaks[at]) / (sizes[at + 1] - sizes[at]) for at in range(2)]
    told = ", ".join(f"{count:,} projects {peak:.0f} MB" for count, peak in zip(sizes, peaks, strict=True))
    large = peaks[-1] + slopes[1] * (LARGE - sizes[-1])
    each = f"{1000 * slopes[1]:.1f} kB for each more"
    about = f"quick server, without latency; {told}; {each}"
    return [
        Figure(f"peak memory, plan with nothing to do, {sizes[-1]:,} projects", (peaks[-1],), "MB", 400, about=about),
        Figure(f"the same, {LARGE:,} projects, foretold", (large,), "MB", 1800),
        Figure("memory per project, second half ÷ first half", (slopes[1] / slopes[0] if slopes[0] else 1,), "", 1.1),
    ]


def _peak(bench: Bench, count: int) -> float:
    state, work = bench.state(count)
    plan = [*RECONCILER, "plan", str(bench.manifests(count)), "--quiet", "--concurrency", str(CONCURRENCY)]
    with quick_server(state) as server:
        finished = run(plan, bench.folder, server.variables)
        if server.counts()["requests"] != work.plan:
            raise Failed(f"{server.counts()} where {work.plan} requests were to be made")
    return finished.peak
