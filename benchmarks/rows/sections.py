"""Many changes in one section: applying a saved plan must not compare each change with all objects."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.fleet import TOKEN
from benchmarks.running import RECONCILER, run, sandbox

PATH = "acme/api"

Plain = dict[str, Any]

SORTS: Mapping[str, tuple[bool, Callable[[], Plain | None]]] = {
    "updates": (True, lambda: {"description": "new"}),
    "deletions": (True, lambda: None),
    "creations": (False, dict),
}
"""Whether the milestones are there, and what is wanted of each."""


def section(bench: Bench) -> list[Figure]:
    """The CPU time of `apply --plan` where all changes are in one section of one project."""
    return [_figure(bench, sort) for sort in SORTS]


def _figure(bench: Bench, sort: str) -> Figure:
    many = bench.sizes.section
    manifests, state = _written(bench.folder, sort, many)
    plan, apply = [*RECONCILER, "plan", str(manifests), "--quiet"], [*RECONCILER, "apply", "--yes", "--quiet"]
    samples = []
    for _ in range(bench.sizes.repeat):
        with sandbox(state) as server:
            run([*plan, "--out", "plan.json"], bench.folder, server.variables)
            limit = ["--allow-deletes", str(many)]
            samples.append(run([*apply, *limit, "--plan", "plan.json"], bench.folder, server.variables).cpu)
    work = f"CPU of `apply --plan`, {many:,} {sort} in one section"
    return Figure(work, tuple(samples), "s", 5, about="the sandbox; milestones; the whole process, with its requests")


def _written(folder: Path, sort: str, many: int) -> tuple[Path, Path]:
    """Write manifests and a state in which so many changes of one sort are to be made."""
    there, wanted = SORTS[sort]
    titles = [f"m{number:05d}" for number in range(many)]
    document = {
        "apiVersion": "reconciler/v1",
        "kind": "Project",
        "metadata": {"path": PATH},
        "spec": {"milestones": {title: wanted() for title in titles}},
    }
    milestones = [{"title": title} for title in titles if there]
    world = {
        "users": [{"id": 2, "username": "ada", "tokens": [TOKEN], "emails": ["ada@example.com"]}],
        "groups": [{"id": 10, "path": "acme", "members": [{"user": "ada", "role": "owner"}]}],
        "projects": [{"id": 100, "path": PATH, "milestones": milestones}],
    }
    manifests, state = folder / f"section-{sort}.yaml", folder / f"section-{sort}.json"
    manifests.write_text(json.dumps(document), encoding="utf-8")
    state.write_text(json.dumps(world), encoding="utf-8")
    return manifests, state
