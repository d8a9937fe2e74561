"""A run that meets the service's rate limit, several times."""

import time

from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.fleet import PARTS
from benchmarks.running import RECONCILER, run, sandbox

WINDOWS = 3
USED = 0.98
"""The share of the windows that the requests fill: who leaves more of them unused needs another window."""

LATE = 0.85
"""The share of a window after which no run begins, for it could not fill the rest."""


def rate(bench: Bench) -> list[Figure]:
    """Plan as many projects as nearly fill three windows of the limit."""
    limit, seconds = bench.sizes.rate
    projects = int(WINDOWS * limit * USED / PARTS) // 10 * 10
    state, work = bench.state(projects)
    plan = [*RECONCILER, "plan", str(bench.manifests(projects)), "--quiet", "--concurrency", "16"]
    with sandbox(state) as server:
        unlimited = run(plan, bench.folder, server.variables).wall
    with sandbox(state, "--rate-limit", f"{limit}/{seconds}") as server:
        if time.time() % seconds > LATE * seconds:
            time.sleep(seconds - time.time() % seconds)
        began = time.time()
        wall = run(plan, bench.folder, server.variables).wall
        statuses = [entry["status"] for entry in server.log()]
    waited = (WINDOWS - 1) * seconds - began % seconds
    share = (work.plan - (WINDOWS - 1) * limit) / work.plan
    least = waited + unlimited * share
    refused = statuses.count(429)
    about = (
        f"the sandbox, whose windows begin with the clock's minutes; {work.plan:,} requests in {wall:.1f} s, "
        f"where {least:.1f} s are the least: {waited:.1f} s until the last window begins, then "
        f"{unlimited * share:.1f} s for its requests; {refused} answers were 429"
    )
    return [
        Figure(f"wall ÷ least wall at a rate limit of {limit}/{seconds} s", (wall / least,), "", 1.03, about=about),
        Figure("answers that were 429", (float(refused),), "", 1, about=about),
    ]
