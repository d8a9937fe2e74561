"""A plan at a service that takes its time: how much longer it takes than the service does, and what it computes."""

from dataclasses import dataclass

from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.running import RECONCILER, Failed, Finished, quick_server, run

LATENCY = 20
"""Milliseconds."""

CONCURRENCY = 16


@dataclass(frozen=True, slots=True)
class Runs:
    """Plans at a slow service.

    Attributes:
        plans: as measured.
        requests: of each.
        taken: seconds that the server took for one request, on average.
        validations: the same manifests only read.
    """

    plans: list[Finished]
    requests: int
    taken: float
    validations: list[Finished]


def latency(bench: Bench) -> list[Figure]:
    """The wall time of a plan, compared with what the requests alone must take."""
    runs = bench.once("waiting", lambda: _runs(bench))
    least = runs.requests * LATENCY / 1000 / CONCURRENCY
    work = f"wall ÷ (requests × {LATENCY} ms ÷ {CONCURRENCY}), {bench.sizes.projects:,} projects × six sections"
    about = (
        f"quick server (the sandbox's answers from memory); {runs.requests:,} requests, for which it took "
        f"{1000 * runs.taken:.1f} ms each; the whole process, with {_wall(runs.validations):.2f} s to read manifests"
    )
    return [Figure(work, tuple(plan.wall / least for plan in runs.plans), "", 1.15, about=about)]


def cpu(bench: Bench) -> list[Figure]:
    """The CPU time of the same plan, less that of reading the manifests, for each request."""
    runs = bench.once("waiting", lambda: _runs(bench))
    validation = min(each.cpu for each in runs.validations)
    samples = tuple(1000 * (plan.cpu - validation) / runs.requests for plan in runs.plans)
    about = (
        f"the plans of `latency`, less the {validation:.2f} s of CPU in which `validate` reads the same manifests; "
        "decoding answers and comparing them is in it"
    )
    return [Figure("CPU of the client per request", samples, "ms", 0.8, about=about)]


def _runs(bench: Bench) -> Runs:
    count = bench.sizes.projects
    manifests = str(bench.manifests(count))
    state, work = bench.state(count)
    validate = [*RECONCILER, "validate", manifests, "--quiet"]
    plan = [*RECONCILER, "plan", manifests, "--quiet", "--concurrency", str(CONCURRENCY)]
    validations = [run(validate, bench.folder) for _ in range(bench.sizes.repeat)]
    plans, requests, seconds = [], 0, 0.0
    with quick_server(state, LATENCY) as server:
        run(plan, bench.folder, server.variables)
        for _ in range(bench.sizes.repeat):
            server.forget_counts()
            plans.append(run(plan, bench.folder, server.variables))
            counts = server.counts()
            if counts["requests"] != work.plan or counts["peak"] > CONCURRENCY:
                raise Failed(f"{counts} where {work.plan} requests were to be made")
            requests, seconds = counts["requests"], seconds + counts["seconds"]
    return Runs(plans, requests, seconds / requests / bench.sizes.repeat, validations)


def _wall(finished: list[Finished]) -> float:
    return min(each.wall for each in finished)
