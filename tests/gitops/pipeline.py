"""Pipelines, run the way a runner does: a clone for each job, its script by bash as it stands, artifacts carried on."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from tests.gitops.expressions import holds

PROJECT_DEPTH = "20"
"""How deep the service clones unless the job says otherwise."""


@dataclass(frozen=True)
class Ran:
    """How a job ended.

    Attributes:
        status: success, failed, warning (failed and allowed to), manual, waiting (for a manual one), or skipped.
        log: what it printed.
        artifacts: files kept, by path; those that later jobs get.
        reports: the file of each kind of report.
    """

    status: str
    code: int = 0
    log: str = ""
    artifacts: Mapping[str, str] = field(default_factory=dict)
    reports: Mapping[str, str] = field(default_factory=dict)

    @property
    def everything(self) -> str:
        """All that anybody may read of it."""
        return "".join([self.log, *self.artifacts.values(), *self.reports.values()])

    @property
    def lets_others_run(self) -> bool:
        """Whether jobs that need it are started."""
        return self.status in ("success", "warning")


@dataclass(frozen=True)
class Runner:
    """A machine that runs jobs."""

    folder: Path
    repository: Path

    def __post_init__(self) -> None:
        program = self.folder / "bin" / "reconciler"
        program.parent.mkdir(parents=True)
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -m reconciler "$@"\n')
        program.chmod(0o755)

    def run(self, job: Mapping[str, Any], variables: Mapping[str, str], needed: Mapping[str, str]) -> Ran:
        """Run a job.

        Args:
            job: as the configuration has it.
            variables: of its environment, and no others.
            needed: the artifacts it gets.
        """
        place = self._clone(variables)
        for path, text in needed.items():
            (place / path).parent.mkdir(parents=True, exist_ok=True)
            (place / path).write_text(text)
        lines = [*job.get("before_script", []), *job["script"]]
        done = self._shell(place, lines, variables)
        after = self._shell(place, job["after_script"], variables) if "after_script" in job else None
        log = done.stdout + (after.stdout if after else "")
        artifacts = job.get("artifacts", {})
        kept = done.returncode == 0 or artifacts.get("when") == "always"
        files = {path: sorted(place.glob(path)) for path in artifacts.get("paths", [])} if kept else {}
        if done.returncode == 0:
            assert [path for path, found in files.items() if not found] == [], log
        reports = {kind: place / path for kind, path in artifacts.get("reports", {}).items()} if kept else {}
        ran = Ran(
            _status(job, done.returncode),
            done.returncode,
            log,
            {str(file.relative_to(place)): file.read_text() for found in files.values() for file in found},
            {kind: file.read_text() for kind, file in reports.items() if file.exists()},
        )
        assert done.returncode or set(ran.reports) == set(reports)
        tokens = [value for name, value in variables.items() if name.endswith("_TOKEN")]
        assert [token for token in tokens if token in ran.everything] == []
        shutil.rmtree(place)
        return ran

    def _clone(self, variables: Mapping[str, str]) -> Path:
        place = Path(mkdtemp(dir=self.folder))
        depth = variables.get("GIT_DEPTH", PROJECT_DEPTH)
        shallow = [] if depth == "0" else ["--depth", depth]
        self._git("init", "--quiet", str(place))
        source = [f"file://{self.repository}", "+refs/heads/*:refs/remotes/origin/*"]
        self._git("-C", str(place), "fetch", "--quiet", *shallow, *source)
        self._git("-C", str(place), "checkout", "--quiet", "--detach", variables["CI_COMMIT_SHA"])
        return place

    def _git(self, *arguments: str) -> None:
        subprocess.run(["git", *arguments], check=True, env=self._environment({}), capture_output=True)

    def _shell(self, place: Path, lines: list[str], variables: Mapping[str, str]) -> "subprocess.CompletedProcess[str]":
        script = "\n".join(["set -eo pipefail", *lines]) + "\n"
        return subprocess.run(
            ["bash", "--noprofile", "--norc"],
            input=script,
            cwd=place,
            env=self._environment(variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    def _environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        path = f"{self.folder / 'bin'}:{os.defpath}:/usr/bin:/bin"
        settings = {"GIT_CONFIG_GLOBAL": os.devnull, "LC_ALL": "C.UTF-8"}
        return {"PATH": path, "HOME": str(self.folder), **settings, **variables}


@dataclass(frozen=True)
class Pipeline:
    """A pipeline: the jobs whose rules hold, and the variables they have in common."""

    runner: Runner
    jobs: Mapping[str, Mapping[str, Any]]
    predefined: Mapping[str, str]
    own: Mapping[str, str]
    ran: dict[str, list[Ran]] = field(default_factory=dict)

    def added(self) -> dict[str, str]:
        """Return the jobs that are in it, and when they run."""
        found = {name: self._when(job) for name, job in self.jobs.items()}
        return {name: when for name, when in found.items() if when != "never"}

    def run(self, *played: str) -> dict[str, str]:
        """Run it, and those of its manual jobs that somebody starts; return the status of each job.

        Jobs that wait for nothing that is still to run, run side by side.
        """
        left = self.added()
        with ThreadPoolExecutor() as pool:
            while left:
                ready = [name for name in left if not left.keys() & {need["job"] for need in self._needs(name)}]
                running = {name: pool.submit(self._run_job, name, left.pop(name), played) for name in ready}
                self.ran.update({name: each.result() for name, each in running.items()})
        return {name: " ".join(dict.fromkeys(each.status for each in self.ran[name])) for name in self.added()}

    def again(self, name: str, **variables: str) -> list[Ran]:
        """Start a job, perhaps with further variables, whatever the others do."""
        self.ran[name] = self._run_copies(name, variables)
        return self.ran[name]

    def _run_job(self, name: str, when: str, played: tuple[str, ...]) -> list[Ran]:
        before = [ran for need in self._needs(name) for ran in self.ran[need["job"]]]
        if any(each.status in ("manual", "waiting") for each in before):
            return [Ran("waiting")]
        if when != "always" and not all(each.lets_others_run for each in before):
            return [Ran("skipped")]
        if when == "manual" and name not in played:
            return [Ran("manual")]
        return self._run_copies(name, {})

    def _run_copies(self, name: str, given: Mapping[str, str]) -> list[Ran]:
        job, artifacts = self.jobs[name], dict[str, str]()
        for need in self._needs(name):
            for ran in self.ran[need["job"]] if need.get("artifacts", True) else ():
                artifacts |= ran.artifacts
        in_job = {key: str(value) for key, value in job.get("variables", {}).items()}
        copies = [{**in_job, **self.own, **self.predefined, **own, **given} for own in self._copies(name, job)]
        with ThreadPoolExecutor() as pool:
            return list(pool.map(lambda variables: self.runner.run(job, variables, artifacts), copies))

    def _needs(self, name: str) -> list[dict[str, Any]]:
        return [{"job": each} if isinstance(each, str) else each for each in self.jobs[name]["needs"]]

    def _copies(self, name: str, job: Mapping[str, Any]) -> Iterator[dict[str, str]]:
        total = job.get("parallel")
        if total is None:
            yield {"CI_JOB_NAME": name}
        for index in range(1, (total or 0) + 1):
            numbers = {"CI_NODE_INDEX": str(index), "CI_NODE_TOTAL": str(total)}
            yield {"CI_JOB_NAME": f"{name} {index}/{total}", **numbers}

    def _when(self, job: Mapping[str, Any]) -> str:
        for rule in job["rules"]:
            if "if" not in rule or holds(rule["if"], {**self.own, **self.predefined}):
                return str(rule.get("when", "on_success"))
        return "never"


def _status(job: Mapping[str, Any], code: int) -> str:
    if code == 0:
        return "success"
    allowed = job.get("allow_failure", {"exit_codes": []})["exit_codes"]
    return "warning" if code in (allowed if isinstance(allowed, list) else [allowed]) else "failed"
