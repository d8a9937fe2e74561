"""Reading manifests: parsed, checked and merged; and finding the places of what profiles in many files declare."""

import json
import sys
from pathlib import Path
from statistics import median

from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.fleet import LINES, path_of, tens
from benchmarks.running import RECONCILER, quick_server, run

SCRIPT = """
import json, sys, time
from pathlib import Path
from reconciler.kinds import all_kinds
from reconciler.manifests import Inputs, read_manifests
warm_up, few, times = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
def read(folder):
    began = time.process_time()
    read_manifests(Inputs([folder], all_kinds()))
    return time.process_time() - began
read(warm_up)
print(json.dumps([read(few) for _ in range(times)]))
"""


PRUNE, GROUPS = "  prune: [milestones, job_token_scope]\n", "    groups:\n      - "
"""What is written otherwise in manifests with an empty list that removes nothing, which `validate` warns of."""

FILES = (15, 20)
"""Files of profiles."""

DECLARED = 60
"""Milestones that all profiles declare together, however many files they are in."""

RULES, LEVEL = 60, "{minimum_access_level_for_push: maintainer}"
"""Rules that another profile in each file declares."""


def reading(bench: Bench) -> list[Figure]:
    """Validate many files; compare what a file takes among many and among few, and with advice and without."""
    few, many = bench.sizes.files
    folder = str(bench.manifests(many))
    wholes = [run([*RECONCILER, "validate", folder, "--quiet"], bench.folder).wall for _ in range(bench.sizes.repeat)]
    among_few = _seconds(bench, few, 3 * bench.sizes.repeat)
    small = median(among_few) / few
    among_many = [_seconds(bench, many, 1)[0] / many for _ in range(bench.sizes.repeat)]
    about = (
        f"`reconciler validate`, the whole process; in a warm process, a file takes {1000 * small:.2f} ms among "
        f"{few:,}, and {1000 * median(among_many):.2f} ms among {many:,}"
    )
    advised = _advised(bench, few)
    with_advice = [_read(bench, advised, 3) for _ in range(bench.sizes.repeat)]
    apart = tuple(median(seconds) / few / small for seconds in with_advice)
    return [
        Figure(f"read, check and merge {many:,} manifests of {LINES} lines", tuple(wholes), "s", 6, about=about),
        Figure(f"per file, {many:,} ÷ {few:,} manifests", tuple(each / small for each in among_many), "", 1.1),
        Figure(f"CPU per file, {few:,} manifests, with advice that is not shown ÷ without", apart, "", 1.2),
    ]


def cliff(bench: Bench) -> list[Figure]:
    """Plan changes that profiles declare, in 15 and in 20 files: the plan names the place of each."""
    count = tens(min(bench.sizes.projects, 100))
    state, _ = bench.state(count)
    cpu: dict[int, list[float]] = {files: [] for files in FILES}
    with quick_server(state) as server:
        for _ in range(bench.sizes.repeat):
            for files in FILES:
                plan = [*RECONCILER, "plan", str(_profiles(bench, count, files)), "--quiet"]
                cpu[files].append(run(plan, bench.folder, server.variables).cpu)
    few, many = FILES
    ratios = tuple(each / median(cpu[few]) for each in cpu[many])
    about = (
        f"the same {DECLARED} milestones of each of {count} projects, all to create: {median(cpu[few]):.2f} s of CPU "
        f"with {few} files, {median(cpu[many]):.2f} s with {many}"
    )
    return [Figure(f"CPU of a plan, {many} ÷ {few} files of profiles", ratios, "", 1.3, about=about)]


def _profiles(bench: Bench, count: int, files: int) -> Path:
    """Return a folder with so many projects, and their profiles in so many files, each of which has another one."""

    def make() -> Path:
        folder = bench.folder / f"profiles-{files}"
        folder.mkdir()
        names = [f"profile-{number:02d}" for number in range(files)]
        for number, name in enumerate(names):
            titles = range(number, DECLARED, files)
            items = "".join(f'    "Milestone {title}": {{description: "Of {{name}}"}}\n' for title in titles)
            rules = "".join(f'    "{{path}}/{level}*": {LEVEL}\n' for level in range(RULES))
            file = folder / f"{name}.yaml"
            _write(file, "Profile", f"name: {name}", f"  milestones:\n{items}")
            _write(file, "Profile", f"name: {name}-rules", f"  container_repository_protection_rules:\n{rules}")
        for index in range(count):
            metadata = f"path: {path_of(index)}, profiles: [{', '.join(names)}]"
            _write(folder / f"service-{index:05d}.yaml", "Project", metadata, "  trigger_tokens: {nightly: {}}\n")
        return folder

    return bench.once(("profiles", count, files), make)


def _write(file: Path, kind: str, metadata: str, spec: str) -> None:
    with file.open("a", encoding="utf-8") as out:
        out.write(f"---\napiVersion: reconciler/v1\nkind: {kind}\nmetadata: {{{metadata}}}\nspec:\n{spec}")


def _advised(bench: Bench, count: int) -> Path:
    """Return a folder with the manifests of so many projects, each with an empty list that removes nothing."""

    def make() -> Path:
        folder = bench.folder / f"advised-{count}"
        folder.mkdir()
        for file in bench.manifests(count).rglob("*.yaml"):
            text = file.read_text(encoding="utf-8").replace(PRUNE, "  prune: [milestones]\n")
            before, after = text.split(GROUPS)
            _, rest = after.split("\n", 1)
            (folder / file.name).write_text(f"{before}    groups: []\n{rest}", encoding="utf-8")
        return folder

    return bench.once(("advised", count), make)


def _seconds(bench: Bench, count: int, times: int) -> list[float]:
    """Read so many manifests: see `_read`."""
    return _read(bench, bench.manifests(count), times)


def _read(bench: Bench, folder: Path, times: int) -> list[float]:
    """Return the seconds of CPU for a folder, in one process, after a few other files, so that all is imported."""
    folders = [str(bench.manifests(bench.sizes.files[0])), str(folder)]
    seconds: list[float] = json.loads(run([sys.executable, "-c", SCRIPT, *folders, str(times)], bench.folder).output)
    return seconds
