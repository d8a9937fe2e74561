"""What the rows `cpu` and `latency` are made of: the same request, made by less and less of the client."""

import json
import sys

from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.fleet import path_of
from benchmarks.rows.waiting import CONCURRENCY, LATENCY
from benchmarks.running import quick_server, run

REQUESTS = 4
"""For each project of `Sizes.projects`."""


def layers(bench: Bench) -> list[Figure]:
    """Tell the CPU time of a request at each layer; nothing is to be reached."""
    count = CONCURRENCY * max(bench.sizes.projects * REQUESTS // CONCURRENCY, 1)
    state, _ = bench.state(bench.sizes.projects)
    path = f"projects/{path_of(0).replace('/', '%2F')}/milestones?per_page=100&page=1"
    command = [sys.executable, "-m", "benchmarks.layers"]
    with quick_server(state, LATENCY) as server:
        found = json.loads(run([*command, server.api_url, path, str(CONCURRENCY), str(count)], bench.folder).output)
    least = LATENCY / CONCURRENCY
    told = "; ".join(f"{name} {wall / least:.2f}" for name, (_, wall) in found.items())
    about = f"quick server, {CONCURRENCY} threads, {count:,} requests for 5 milestones; wall ÷ least wall: {told}"
    return [Figure(f"CPU per request, {name}", (cpu,), "ms", about=about) for name, (cpu, _) in found.items()]
