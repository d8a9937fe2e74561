"""What a request is made of: the same one, made by less and less of the client, and over TLS."""

import json
import sys
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.fleet import path_of
from benchmarks.rows.waiting import CONCURRENCY, LATENCY
from benchmarks.running import HEADERS, ROOT, quick_server, run

CERTIFICATE = ROOT / "tests" / "service" / "loopback.pem"

REQUESTS = 4
"""For each project of `Sizes.projects`."""


def layers(bench: Bench) -> list[Figure]:
    """Tell the CPU time of a request at each layer; nothing is to be reached."""
    measured, count = _measured(bench, None)
    least = LATENCY / CONCURRENCY
    told = "; ".join(f"{name} {wall / least:.2f}" for name, (_, wall) in measured.items())
    about = f"quick server, {CONCURRENCY} threads, {count:,} requests for 5 milestones; wall ÷ least wall: {told}"
    return [Figure(f"CPU per request, {name}", (cpu,), "ms", about=about) for name, (cpu, _) in measured.items()]


def tls(bench: Bench) -> list[Figure]:
    """Tell the CPU time of a request over TLS whose answer has as many headers as GitLab's."""
    runs = [_measured(bench, CERTIFICATE) for _ in range(bench.sizes.repeat)]
    (own, client), count = runs[0][0], runs[0][1]
    samples = {name: tuple(run[name][0] for run, _ in runs) for name in (own, client)}
    about = (
        f"quick server over TLS, answers with {HEADERS} headers, {CONCURRENCY} threads, {count:,} requests for 5 "
        f"milestones; {client}: {min(samples[client]):.2f} ms at best"
    )
    return [Figure(f"CPU per request over TLS, {HEADERS} headers, {own}", samples[own], "ms", 0.5, about=about)]


def _measured(bench: Bench, certificate: Path | None) -> tuple[dict[str, tuple[float, float]], int]:
    """Return the milliseconds of CPU and of wall time by layer, and how many requests each made."""
    count = CONCURRENCY * max(bench.sizes.projects * REQUESTS // CONCURRENCY, 1)
    state, _ = bench.state(bench.sizes.projects)
    path = f"projects/{path_of(0).replace('/', '%2F')}/milestones?per_page=100&page=1"
    command = [sys.executable, "-m", "benchmarks.layers"]
    with quick_server(state, LATENCY, certificate) as server:
        line = [*command, server.api_url, path, str(CONCURRENCY), str(count)]
        line += [] if certificate is None else [str(certificate)]
        measured: dict[str, tuple[float, float]] = json.loads(run(line, bench.folder).output)
    return measured, count
