"""The same work by others, on the same sandbox: two tools from PyPI that know some of the sections, and a script."""

import json
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.fleet import TOKEN, Project, path_of, project
from benchmarks.running import RECONCILER, Failed, Server, run, sandbox

SCRIPT = Path(__file__).parent.parent / "plain_script.py"

LATENCY = 20
"""Milliseconds: without any, only CPU time would be compared."""


@dataclass(frozen=True, slots=True)
class Peer:
    """Another tool.

    Attributes:
        name: of its distribution and its command.
        version: that was tried.
        replaces_ids: what else must be installed in a version that it works with.
        section: which of ours it knows.
        configuration: its own, of some projects at a service.
        arguments: what follows the command, given the file that holds the configuration.
        command: of its environment, if not that of its name.
    """

    name: str
    version: str
    replaces_ids: tuple[str, ...]
    section: str
    configuration: Callable[[Iterable[Project], str], dict[str, Any]]
    arguments: Callable[[str], list[str]]
    command: str = ""


@dataclass(frozen=True, slots=True)
class Done:
    """What a tool made of one task: requests by the sandbox's log, and seconds."""

    requests: int
    wall: float


def milestones(projects: Iterable[Project], _url: str) -> dict[str, Any]:
    """Configure milestones for gitlabracadabra."""
    return {
        each.path: {
            "type": "project",
            "milestones": [{"title": title} | fields for title, fields in each.milestones().items()],
            "unknown_milestones": "delete",
        }
        for each in projects
    }


def job_token_scope(projects: Iterable[Project], url: str) -> dict[str, Any]:
    """Configure job token scopes for gitlabform."""
    return {
        "config_version": 3,
        "gitlab": {"url": url, "token": TOKEN},
        "projects_and_groups": {
            each.path: {
                "job_token_scope": {
                    "limit_access_to_this_project": True,
                    "allowlist": {
                        "enforce": True,
                        "projects": [path_of(each.neighbour), f"fleet/team-{each.team:04d}/library"],
                        "groups": [f"fleet/team-{each.team:04d}"],
                    },
                }
            }
            for each in projects
        },
    }


def for_script(section: str) -> Callable[[Iterable[Project], str], dict[str, Any]]:
    """Configure the plain script for one section."""

    def configure(projects: Iterable[Project], url: str) -> dict[str, Any]:
        wanted: dict[str, Any] = {
            each.path: each.milestones()
            if section == "milestones"
            else {
                "itself": each.path,
                "projects": [path_of(each.neighbour), f"fleet/team-{each.team:04d}/library"],
                "groups": [f"fleet/team-{each.team:04d}"],
            }
            for each in projects
        }
        return {"url": url, "token": TOKEN, "section": section, "projects": wanted}

    return configure


def script(section: str) -> Peer:
    """Return what many write themselves."""
    return Peer("python-gitlab", "8.6.0", (), section, for_script(section), lambda file: [str(SCRIPT), file], "python")


PEERS = (
    Peer(
        "gitlabform",
        "3.16.5",
        (),
        "job_token_scope",
        job_token_scope,
        lambda file: ["--config", file, "ALL_DEFINED"],
    ),
    Peer(
        "gitlabracadabra",
        "2.8.1",
        ("pygit2==1.17.0",),  # later ones lack a name that it imports
        "milestones",
        milestones,
        lambda file: ["--fail-on-errors", file],
    ),
    script("job_token_scope"),
    script("milestones"),
)


def peers(bench: Bench) -> list[Figure]:
    """Install each in an environment of its own, and let it and ours bring the same fleet into order, twice."""
    return [figure for peer in PEERS for figure in _figures(bench, peer, install(bench.folder, peer))]


def install(folder: Path, peer: Peer) -> Path:
    """Return the peer's command.

    Raises:
        Failed: it cannot be installed.
    """
    environment = folder / peer.name
    if environment.is_dir():
        return environment / "bin" / (peer.command or peer.name)
    run([sys.executable, "-m", "venv", str(environment)], folder)
    pip = [str(environment / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    run([*pip, f"{peer.name}=={peer.version}", *peer.replaces_ids], folder)
    return environment / "bin" / (peer.command or peer.name)


def _figures(bench: Bench, peer: Peer, command: Path) -> list[Figure]:
    count = bench.sizes.peers
    state, _ = bench.state(count, drifted=True)
    select = [str(bench.manifests(count)), "--section", peer.section, "--quiet"]
    ours = [*RECONCILER, "apply", *select, "--yes", "--allow-deletes", str(count)]
    file = bench.folder / f"{peer.name}.yml"

    def theirs(server: Server) -> list[str]:
        url = server.api_url.removesuffix("/api/v4")
        file.write_text(json.dumps(peer.configuration(map(project, range(count)), url)), encoding="utf-8")
        return [str(command), *peer.arguments(str(file))]

    check = [*RECONCILER, "plan", *select, "--detailed-exitcode"]
    their_runs = _two_runs(bench, state, theirs, check)
    our_runs = _two_runs(bench, state, lambda _server: ours, check)
    figures = []
    for task, their, our in zip(("bring into order", "nothing to do"), their_runs, our_runs, strict=True):
        work = f"{peer.section}, {count:,} projects, {task}"
        about = (
            f"{peer.name} {peer.version}, {work}: {their.requests:,} requests in {their.wall:.1f} s; ours: "
            f"{our.requests:,} in {our.wall:.1f} s (the sandbox, {LATENCY} ms latency; whole processes)"
        )
        name = f"ours ÷ {peer.name}'s, {work}"
        figures += [
            Figure(f"requests, {name}", (our.requests / their.requests,), "", 1, about=about),
            Figure(f"seconds, {name}", (our.wall / their.wall,), "", 0.1, about=about),
        ]
    return figures


def _two_runs(bench: Bench, state: Path, command: Callable[[Server], list[str]], check: list[str]) -> list[Done]:
    """Let a tool bring a fleet into order, see that it has, and let it look again."""
    done = []
    with sandbox(state, "--latency", str(LATENCY)) as server:
        where = {"GITLAB_URL": server.api_url.removesuffix("/api/v4"), "GITLAB_PRIVATE_TOKEN": TOKEN}
        for _ in range(2):
            server.clear_log()
            wall = run(command(server), bench.folder, {**server.variables, **where}).wall
            done.append(Done(len(server.log()), wall))
            run(check, bench.folder, server.variables)
        if any(entry["status"] is None or entry["status"] >= 500 for entry in server.log()):
            raise Failed("the sandbox failed on the way")
    return done
