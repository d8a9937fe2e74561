"""Jobs, run as a runner does: each in a clone of its own, its script by bash in a runner's form, artifacts passed on."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from tests.gitops.component import child_jobs, child_workflow

PROJECT_DEPTH = "20"
"""How deep the service clones unless the job says otherwise."""

NO_FILES = "ERROR: No files to upload\n"
"""The runner's line about artifacts, or a report, of which there is no file."""

VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")


class Form(StrEnum):
    """How a runner hands a script to bash; the braces stand for the script, quoted."""

    PIPED = "set -eo pipefail\nset +o noclobber\n: | eval {}\nexit 0\n"
    """Before 18.11.4 and 19.0.2: if a command fails, bash ends with 1; only `exit N` keeps the code."""
    IN_SUBSHELL = "set -eo pipefail\nset +o noclobber\n(trap 'exit 1' TERM; eval {}) < /dev/null\nexit 0\n"
    """Later ones: bash ends with the code of the command that failed."""

    def script(self, lines: list[str]) -> str:
        """Return what bash reads."""
        text = "\n".join([*lines, ""]).replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
        return self.replace("{}", f"$'{text}'")


class Color(StrEnum):
    """How the service shows a job that has ended."""

    GREEN = "green"
    ORANGE = "orange"
    RED = "red"


@dataclass(frozen=True)
class Ran:
    """How a job ended.

    Attributes:
        code: of its script.
        log: what it printed.
        artifacts: files for later jobs, by path.
        reports: the file of each kind of report.
    """

    code: int
    log: str
    artifacts: Mapping[str, str]
    reports: Mapping[str, str]

    @property
    def everything(self) -> str:
        """All of it that people can read."""
        return "".join([self.log, *self.artifacts.values(), *self.reports.values()])


@dataclass(frozen=True)
class Runner:
    """A machine that runs jobs.

    Attributes:
        program: the command.
        form: in which it hands scripts to bash; unless a test is about it, the one that keeps less.
    """

    folder: Path
    repository: Path
    program: Path
    form: Form = Form.PIPED

    def __post_init__(self) -> None:
        (self.folder / "bin").mkdir(parents=True, exist_ok=True)
        shutil.copy(self.program, self.folder / "bin" / "reconciler")

    def command(self, folder: Path, line: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        """Run one of our commands in a folder, as a person does."""
        return self._shell(folder, [f"reconciler {line}"], variables)

    def run(self, job: Mapping[str, Any], variables: Mapping[str, str], needed: Mapping[str, str]) -> Ran:
        """Run a job.

        Args:
            job: as the configuration has it.
            variables: of its environment, and no others.
            needed: the artifacts it gets.
        """
        place = self._clone(variables)
        cache = job.get("cache", {"key": "none", "paths": []})
        kept = self.folder / "caches" / VARIABLE.sub(lambda match: variables[match[1]], cache["key"])
        if kept.exists():
            shutil.copytree(kept, place, dirs_exist_ok=True)
        for path, text in needed.items():
            (place / path).parent.mkdir(parents=True, exist_ok=True)
            (place / path).write_text(text)
        done = self._shell(place, [*job.get("before_script", []), *job["script"]], variables)
        after = self._shell(place, job.get("after_script", []), variables)
        for file in [file for path in cache["paths"] for file in place.glob(path)]:
            (kept / file.relative_to(place)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, kept / file.relative_to(place))
        artifacts = job.get("artifacts", {})
        is_kept = not done.returncode or artifacts.get("when") == "always"
        matching = {path: sorted(place.glob(path)) for path in artifacts.get("paths", [])} if is_kept else {}
        files = {path: [file for each in held for file in _files(each)] for path, held in matching.items()}
        named = artifacts.get("reports", {}) if is_kept else {}
        reports = {kind: place / path for kind, path in named.items() if (place / path).exists()}
        missing = (bool(files) and not any(files.values())) + len(named) - len(reports)
        ran = Ran(
            done.returncode,
            done.stdout + after.stdout + missing * NO_FILES,
            {str(file.relative_to(place)): file.read_text() for held in files.values() for file in held},
            {kind: file.read_text() for kind, file in reports.items()},
        )
        assert done.returncode or (all(files.values()) and not missing), ran
        assert "fatal: " not in ran.log
        tokens = [value for name, value in variables.items() if name.endswith("_TOKEN")]
        assert [token for token in tokens if token in ran.everything] == []
        shutil.rmtree(place)
        return ran

    def _clone(self, variables: Mapping[str, str]) -> Path:
        place = Path(mkdtemp(dir=self.folder))
        depth = variables.get("GIT_DEPTH", PROJECT_DEPTH)
        shallow = [] if depth == "0" else ["--depth", depth, "--no-single-branch"]
        self._git("clone", "--quiet", "--no-checkout", *shallow, f"file://{self.repository}", str(place))
        self._git("-C", str(place), "checkout", "--quiet", "--detach", variables["CI_COMMIT_SHA"])
        return place

    def _git(self, *arguments: str) -> None:
        subprocess.run(["git", *arguments], check=True, env=self._environment({}), capture_output=True)

    def _shell(self, place: Path, lines: list[str], variables: Mapping[str, str]) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            ["bash", "--noprofile", "--norc"],
            input=self.form.script(lines),
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


def expanded(variables: Mapping[str, Any], known: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a job as the service stores and hands them on: expanded, unless they forbid it."""
    values = {name: each if isinstance(each, dict) else {"value": str(each)} for name, each in variables.items()}
    return {
        name: VARIABLE.sub(lambda match: known.get(match[1] or match[2], ""), each["value"])
        if each.get("expand", True)
        else each["value"]
        for name, each in values.items()
    }


def starts_always(job: Mapping[str, Any]) -> bool:
    """Whether a job starts even after one that it needs has failed."""
    return "always" in {job.get("when"), *(rule.get("when") for rule in job.get("rules", []))}


def _files(path: Path) -> list[Path]:
    """Return a file, or the files of a folder."""
    return sorted(path.iterdir()) if path.is_dir() else [path]


@dataclass(frozen=True)
class Pipeline:
    """The jobs of a pipeline, run in the order in which a test names them.

    Attributes:
        jobs: of the configuration.
        variables: what all of them have in their environment.
        workflow: what the configuration says about the pipeline itself.
        ran: how each job ended, by name; a job with `parallel` ran that often.
        parent: the pipeline that triggered this one.
    """

    runner: Runner
    jobs: Mapping[str, Mapping[str, Any]]
    variables: Mapping[str, str]
    workflow: Mapping[str, Any] = field(default_factory=dict)
    ran: dict[str, list[Ran]] = field(default_factory=dict)
    parent: "Pipeline | None" = None

    def child(self, trigger: str) -> "Pipeline":
        """Return the pipeline that a job triggers, whose configuration is an artifact of another job."""
        job = self.jobs[trigger]
        [included] = job["trigger"]["include"]
        assert included["job"] in job["needs"]
        [wrote] = self.ran[included["job"]]
        assert wrote.code == 0, "only a green job's artifacts reach a child pipeline"
        variables = {**self.variables, **expanded(job["variables"], self.variables)}
        text = wrote.artifacts[included["artifact"]]
        more = {"CI_PIPELINE_SOURCE": "parent_pipeline"}
        return Pipeline(self.runner, child_jobs(text), variables | more, child_workflow(text), parent=self)

    def is_cancelled_by_a_push(self) -> bool:
        """Whether the next push to the branch cancels this pipeline, while nobody has started its manual jobs."""
        return bool(self.workflow.get("auto_cancel", {}).get("on_new_commit") != "none")

    def color(self, name: str) -> Color:
        """Return how the service shows a job that has run: the worst of its copies."""
        allowed = self.jobs[name].get("allow_failure", False)
        codes = allowed.get("exit_codes", []) if isinstance(allowed, dict) else []
        bad = {each.code for each in self.ran[name]} - {0}
        if not bad:
            return Color.GREEN
        return (
            Color.ORANGE if allowed is True or bad <= {*([codes] if isinstance(codes, int) else codes)} else Color.RED
        )

    def run(self, *names: str, **more: str) -> list[int]:
        """Run jobs, optionally with more variables; return their exit codes."""
        codes = []
        for name in names:
            self.ran[name] = [self._run(name, variables | more) for variables in self._copies(name)]
            codes += [each.code for each in self.ran[name]]
        return codes

    def _run(self, name: str, variables: Mapping[str, str]) -> Ran:
        job, artifacts = self.jobs[name], dict[str, str]()
        for need in [{"job": each} if isinstance(each, str) else each for each in job["needs"]]:
            whose = self.parent if need.get("pipeline") == "$PARENT_PIPELINE_ID" else self
            assert whose is not None
            assert starts_always(job) or whose.color(need["job"]) is not Color.RED, f"{name} would be skipped"
            for ran in whose.ran[need["job"]] if need.get("artifacts", True) else ():
                artifacts |= ran.artifacts
        return self.runner.run(job, {**self.variables_of(name), **variables}, artifacts)

    def variables_of(self, name: str) -> dict[str, str]:
        """Return the variables of a job: its own, and those of the pipeline, which come first."""
        return {**expanded(self.jobs[name].get("variables", {}), self.variables), **self.variables}

    def _copies(self, name: str) -> list[dict[str, str]]:
        if "parallel" not in self.jobs[name]:
            return [{"CI_JOB_NAME": name, "CI_JOB_NAME_SLUG": name}]
        total = int(self.jobs[name]["parallel"])
        numbers = [{"CI_NODE_INDEX": str(index), "CI_NODE_TOTAL": str(total)} for index in range(1, total + 1)]
        return [
            {
                "CI_JOB_NAME": f"{name} {each['CI_NODE_INDEX']}/{total}",
                "CI_JOB_NAME_SLUG": f"{name}-{each['CI_NODE_INDEX']}-{total}",
                **each,
            }
            for each in numbers
        ]
