"""Exports of a fleet: new documents, a profile, a set, and documents that exist."""

import shutil
from collections.abc import Mapping

from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.fleet import project, sections
from benchmarks.running import RECONCILER, Finished, Server, quick_server, run

WAYS: Mapping[str, list[str]] = {
    "new documents": [],
    "--hoist": ["--hoist"],
    "--as-set": ["--as-set"],
    "documents that exist": [],
}
"""By way to export, its options; the last one finds the manifests that the others would write."""

NEW, EXISTING = "new documents", "documents that exist"


def exporting(bench: Bench) -> list[Figure]:
    """Export all projects with their six sections in each way, in a process of its own."""
    count, new = bench.sizes.exported, bench.sizes.new
    with quick_server(bench.state(new)[0]) as server:
        few = [_exported(bench, server, NEW) for _ in range(bench.sizes.repeat)]
        requests = server.counts()["requests"] / len(few)
    least = min(each.cpu for each in few)
    each_request = f"quick server, without latency; {requests:,.0f} requests, {1000 * least / requests:.2f} ms each"
    with quick_server(bench.state(count)[0]) as server:
        done = {way: _exported(bench, server, way) for way in WAYS}
    told = ", ".join(f"{way} {each.cpu:.1f} s and {each.peak:.0f} MB" for way, each in done.items())
    slowest, largest = max(done, key=lambda way: done[way].cpu), max(done, key=lambda way: done[way].peak)
    about = f"quick server, without latency; the whole process, with its requests: {told}"
    return [
        Figure(f"CPU, export of {new:,} projects, {NEW}", tuple(each.cpu for each in few), "s", 15, about=each_request),
        Figure(f"CPU, export of {count:,} projects, {slowest}", (done[slowest].cpu,), "s", 60, about=about),
        Figure(f"peak memory, export of {count:,} projects, {largest}", (done[largest].peak,), "MB", 1000),
    ]


def _exported(bench: Bench, server: Server, way: str) -> Finished:
    folder = bench.folder / "exported"
    shutil.rmtree(folder, ignore_errors=True)
    if way == EXISTING:
        shutil.copytree(bench.manifests(bench.sizes.exported), folder)
    names = [option for name in sections(project(0)) for option in ("--section", name)]
    command = [*RECONCILER, "export", "--group", "fleet", "--output", str(folder), "--quiet", *names, *WAYS[way]]
    return run(command, bench.folder, server.variables)
