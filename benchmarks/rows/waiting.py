"""A plan at a service that takes its time: how much longer it takes than the service does, and what it computes."""

from dataclasses import dataclass

from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.fleet import tens
from benchmarks.running import RECONCILER, Failed, Finished, quick_server, run

LATENCY = 20
"""Milliseconds: the latency with which the manifests of all projects are planned; with more, those of fewer."""

CONCURRENCY = 16

TARGETS = {20: 1.28, 50: 1.10, 100: 1.05}


@dataclass(frozen=True, slots=True)
class Runs:
    """Plans at a slow service.

    Attributes:
        plans: as measured.
        projects: planned by each.
        requests: of each.
        taken: seconds that the server took for one request, on average.
    """

    plans: list[Finished]
    projects: int
    requests: int
    taken: float


def latency(bench: Bench) -> list[Figure]:
    """The wall time of a plan, compared with what the requests alone must take with 16 in flight."""
    figures = []
    for milliseconds in bench.sizes.latencies:
        for number in (str(CONCURRENCY), "auto"):
            runs = _runs(bench, milliseconds, number)
            least = runs.requests * milliseconds / 1000 / CONCURRENCY
            work = (
                f"wall ÷ (requests × {milliseconds} ms ÷ {CONCURRENCY}), {number} in flight, "
                f"{runs.projects:,} projects × six sections"
            )
            about = (
                f"quick server (the sandbox's answers from memory), {number} in flight; {runs.requests:,} requests, "
                f"for which it took {1000 * runs.taken:.1f} ms each; the whole process"
            )
            samples = tuple(plan.wall / least for plan in runs.plans)
            figures.append(Figure(work, samples, "", TARGETS[milliseconds], about=about))
    return figures


def cpu(bench: Bench) -> list[Figure]:
    """The CPU time of the same plan, less that of reading the manifests, for each request."""
    runs = _runs(bench, LATENCY, str(CONCURRENCY))
    validate = [*RECONCILER, "validate", str(bench.manifests(runs.projects)), "--quiet"]
    validation = min(run(validate, bench.folder).cpu for _ in range(bench.sizes.repeat))
    samples = tuple(1000 * (plan.cpu - validation) / runs.requests for plan in runs.plans)
    about = (
        f"the plans of `latency`, less the {validation:.2f} s of CPU in which `validate` reads the same manifests; "
        "decoding answers and comparing them is in it"
    )
    return [Figure("CPU of the client per request", samples, "ms", 0.8, about=about)]


def order(bench: Bench) -> list[Figure]:
    """The CPU time of a plan with nothing to do, with that of reading the manifests, for each request."""
    count = bench.sizes.ordered
    state, work = bench.state(count)
    plan = [*RECONCILER, "plan", str(bench.manifests(count)), "--quiet", "--concurrency", str(CONCURRENCY)]
    with quick_server(state) as server:
        plans = [run(plan, bench.folder, server.variables) for _ in range(bench.sizes.repeat)]
    samples = tuple(1000 * plan.cpu / work.plan for plan in plans)
    about = f"quick server, without latency, {CONCURRENCY} in flight; {work.plan:,} requests; the whole process"
    return [Figure(f"CPU per request, plan of {count:,} projects in order", samples, "ms", 0.9, about=about)]


def _runs(bench: Bench, milliseconds: int, number: str) -> Runs:
    return bench.once(("waiting", milliseconds, number), lambda: _plans(bench, milliseconds, number))


def _plans(bench: Bench, milliseconds: int, number: str) -> Runs:
    count = tens(bench.sizes.projects * LATENCY // milliseconds)
    state, work = bench.state(count)
    plan = [*RECONCILER, "plan", str(bench.manifests(count)), "--quiet", "--concurrency", number]
    most = 32 if number == "auto" else int(number)
    plans, requests, seconds = [], 0, 0.0
    with quick_server(state, milliseconds) as server:
        run(plan, bench.folder, server.variables)
        for _ in range(bench.sizes.repeat):
            server.forget_counts()
            plans.append(run(plan, bench.folder, server.variables))
            counts = server.counts()
            if counts["requests"] != work.plan or counts["peak"] > most:
                raise Failed(f"{counts} where {work.plan} requests were to be made")
            requests, seconds = counts["requests"], seconds + counts["seconds"]
    return Runs(plans, count, requests, seconds / requests / bench.sizes.repeat)
