"""Requests made, as the sandbox counts them, compared with the fewest there can be."""

from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.running import RECONCILER, Failed, run, sandbox


def requests(bench: Bench) -> list[Figure]:
    """Plan a fleet that has drifted, apply, and see that nothing is left to do."""
    count = bench.sizes.projects
    manifests = bench.manifests(count)
    state, work = bench.state(count, drifted=True)
    plan = [*RECONCILER, "plan", str(manifests), "--quiet", "--detailed-exitcode"]
    apply = [*RECONCILER, "apply", str(manifests), "--yes", "--quiet", "--allow-deletes", str(count)]
    with sandbox(state) as server:
        run(plan, bench.folder, server.variables, codes=(2,))
        planned = len(server.log())
        server.clear_log()
        run([*apply, "--tokens-to", "tokens.jsonl"], bench.folder, server.variables)
        applied = len(server.log())
        server.clear_log()
        run(plan, bench.folder, server.variables)
        if len(server.log()) != work.reads:
            raise Failed(f"a plan with nothing to do made {len(server.log())} requests for {work.reads} parts")
    about = (
        f"the sandbox's log: {planned:,} requests for a plan; {applied:,} for an apply, of which {work.writes:,} are "
        f"writes and {work.looks:,} look at what is or was changed"
    )
    return [
        Figure(f"requests ÷ lower bound, plan, {count:,} projects", (planned / work.plan,), "", 1, True, about),
        Figure(f"requests ÷ lower bound, apply, {count:,} projects", (applied / work.apply,), "", 1, True, about),
    ]
