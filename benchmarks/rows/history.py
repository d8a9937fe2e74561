"""A plan of what has changed since a revision."""

import shutil
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.fleet import PARTS, path_of
from benchmarks.running import RECONCILER, run, sandbox

CHANGED = 7
"""Which project."""


def since(bench: Bench) -> list[Figure]:
    """Change one manifest of many, commit it, and plan that."""
    count = bench.sizes.history
    repository = _repository(bench, count)
    state, _ = bench.state(count)
    walls, requests, elsewhere = [], [], 0
    plan = [*RECONCILER, "plan", "--since", "HEAD~1", "--quiet", "--detailed-exitcode"]
    path = path_of(CHANGED).replace("/", "%2F")
    with sandbox(state) as server:
        for _ in range(bench.sizes.repeat):
            server.clear_log()
            walls.append(run(plan, repository, server.variables, codes=(2,)).wall)
            log = server.log()
            requests.append(float(len(log)))
            elsewhere += sum(f"/projects/{path}/" not in entry["target"] for entry in log)
    reading = min(run([*RECONCILER, "validate", "--quiet"], repository).wall for _ in range(bench.sizes.repeat))
    about = (
        f"the sandbox; {elsewhere} requests were about anything else; `validate`, which reads all files, takes "
        f"{reading:.2f} s"
    )
    work = f"`plan --since` of one changed project among {count:,}"
    return [
        Figure(f"{work}: requests", tuple(requests), "", PARTS, exactly=True, about=about),
        Figure(f"{work}: wall", tuple(walls), "s", 1.5, about=about),
    ]


def _repository(bench: Bench, count: int) -> Path:
    """Make a repository of two commits, which differ in one manifest."""
    repository = bench.folder / "repository"
    repository.mkdir()
    shutil.copytree(bench.manifests(count), repository / "manifests")
    _git(repository, "init", "--quiet")
    _commit(repository)
    (file,) = repository.rglob(f"service-{CHANGED:05d}.yaml")
    file.write_text(file.read_text(encoding="utf-8").replace("start_date: 2026-01-01", "start_date: 2026-01-02"))
    _commit(repository)
    return repository


def _commit(repository: Path) -> None:
    _git(repository, "add", "manifests")
    who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "commit.gpgsign=false"]
    _git(repository, *who, "commit", "--quiet", "--message", "Change")


def _git(repository: Path, *arguments: str) -> None:
    run(["git", *arguments], repository)
