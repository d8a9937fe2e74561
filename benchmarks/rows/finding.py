"""A plan at a service with few workers: the number in flight that finds itself, compared with the best fixed one."""

import re
from dataclasses import dataclass
from statistics import median

from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.fleet import tens
from benchmarks.running import RECONCILER, Failed, Server, run, sandbox

BEST = {4: 8, 16: 24, 64: 32}
"""By the number of workers, the fixed number in flight that was best."""

ALONE = 8
"""With one request in flight, so many times fewer projects are planned."""

ANSWERED = re.compile(r" 200, ([0-9]+) ms, ")


@dataclass(frozen=True, slots=True)
class Planned:
    """One plan.

    Attributes:
        rate: answers per second, of the whole process.
        answer: milliseconds, the median.
    """

    rate: float
    answer: float


def auto(bench: Bench) -> list[Figure]:
    """Compare answers per second, and the median answer with that of one request in flight."""
    count = tens(bench.sizes.projects // 5)
    state, _ = bench.state(count)
    figures = []
    for workers in bench.sizes.workers:
        with sandbox(state, "--workers", str(workers), "--cost", str(bench.sizes.cost)) as server:
            fixed = _plan(bench, server, count, str(BEST[workers]))
            found = _plan(bench, server, count, "auto")
            alone = _plan(bench, server, tens(count // ALONE), "1")
        about = (
            f"the sandbox, {workers} workers, {bench.sizes.cost} ms for a small read, {count:,} projects: "
            + "; ".join(
                f"{name} in flight {each.rate:.0f} answers per second, median {each.answer:.0f} ms"
                for name, each in (("1", alone), (str(BEST[workers]), fixed), ("auto", found))
            )
        )
        work = f"{workers} workers, auto"
        figures += [
            Figure(f"{work}: seconds ÷ those of {BEST[workers]} in flight", (fixed.rate / found.rate,), "", 1.11),
            Figure(
                f"{work}: median answer ÷ that of 1 in flight",
                (found.answer / alone.answer,),
                "",
                2.5 if workers < 16 else 1.5,
                about=about,
            ),
        ]
    return figures


def _plan(bench: Bench, server: Server, count: int, number: str) -> Planned:
    plan = [*RECONCILER, "plan", str(bench.manifests(count)), "-v", "--concurrency", number]
    wall = run(plan, bench.folder, server.variables).wall
    answers = [int(taken) for taken in ANSWERED.findall((bench.folder / "stderr.txt").read_text())]
    if not answers:
        raise Failed("the log of the plan shows no answer")
    return Planned(len(answers) / wall, median(answers))
