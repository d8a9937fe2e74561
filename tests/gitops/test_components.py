"""What every component must be: documented, safe with tokens, readable on one screen, and one line of script in each job."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from reconciler.cli.job import apply_pipeline
from tests.gitops.component import ROOT, child_jobs, read_component

NAMES = sorted(file.stem for file in (ROOT / "templates").glob("*.yml"))
COMPONENTS = pytest.mark.parametrize("name", NAMES)
README = (ROOT / "templates" / "README.md").read_text()
JOB_KEYWORDS = {
    "allow_failure",
    "artifacts",
    "cache",
    "image",
    "needs",
    "pages",
    "parallel",
    "resource_group",
    "rules",
    "script",
    "stage",
    "trigger",
    "variables",
}
ONE_LINE = re.compile(r"(?:RECONCILER_[A-Z]+=\S+ )*reconciler (?P<command>[a-z-]+)[\w .*/=-]* \|\| exit \$\?")
SCREEN = 72
"""Lines of a component, with its inputs."""


def jobs_of(name: str) -> dict[str, dict[str, Any]]:
    """Return the jobs of a component, and those of the pipeline that comes with a plan that has changes."""
    jobs = read_component(name).jobs(image="i:1")
    if "reconciler-apply" in jobs:
        parts = int(jobs["reconciler-plan"].get("parallel", 1))
        child = child_jobs(json.dumps(apply_pipeline("i:1", parts, is_empty=False)))
        jobs |= {f"{job} in the child": each for job, each in child.items()}
    return jobs


def commands_of(job: dict[str, Any]) -> list[str]:
    """Return the commands in the script of a job."""
    lines = [ONE_LINE.fullmatch(line) for line in job.get("script", [])]
    return [line["command"] if line else "more than a line" for line in lines]


def strings(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        node = [*node.keys(), *node.values()]
    if isinstance(node, list):
        for inner in node:
            yield from strings(inner)
    elif isinstance(node, str):
        yield node


def test_these_are_the_components() -> None:
    assert NAMES == ["fleet", "gitops", "gitops-sharded"]


@COMPONENTS
def test_a_component_fits_on_a_screen(name: str) -> None:
    assert len((ROOT / "templates" / f"{name}.yml").read_text().splitlines()) <= SCREEN


@COMPONENTS
def test_every_input_is_described_typed_and_used(name: str) -> None:
    component = read_component(name)
    for rules in component.inputs.values():
        assert "description" in rules
        assert set(rules) <= {"default", "description", "options", "regex", "type"}
    used = {input_ for text in strings(component.body) for input_ in re.findall(r"inputs\.([\w-]+)", text)}
    assert used == set(component.inputs)


@COMPONENTS
def test_a_component_holds_jobs_and_nothing_that_concerns_others(name: str) -> None:
    jobs = read_component(name).jobs(image="i:1")
    assert [job for job in jobs if not job.startswith("reconciler-")] == []
    for job in jobs.values():
        assert set(job) <= JOB_KEYWORDS
        assert {"needs", "rules", "stage"} <= set(job)
        assert "trigger" in job or {"image", "script"} <= set(job)
        assert name == "fleet" or set(job["needs"]) <= set(jobs)


@COMPONENTS
def test_each_job_is_one_line_with_an_explicit_exit_code(name: str) -> None:
    """Many runners turn the code of a command that fails into 1."""
    for job in jobs_of(name).values():
        assert "trigger" in job or len(commands_of(job)) == 1
        assert "more than a line" not in commands_of(job)
        assert {"before_script", "after_script"}.isdisjoint(job)


@COMPONENTS
def test_no_job_keeps_a_token_or_gives_its_artifacts_to_everybody(name: str) -> None:
    for job in jobs_of(name).values():
        artifacts = job.get("artifacts", {})
        assert not artifacts.get("paths") or artifacts["access"] == "developer"
        assert "--tokens-to" not in str(job.get("script"))
        kept = [*artifacts.get("paths", []), *artifacts.get("reports", {}).values()]
        assert [path for path in kept if path.split("/")[0] not in {".reconciler", "public"}] == []


@COMPONENTS
def test_the_table_of_the_inputs_is_what_the_component_says(name: str) -> None:
    rows = []
    for key, rules in read_component(name).inputs.items():
        shown = f"`{rules['default']}`" if "default" in rules else "must be given"
        rows.append(f"| `{key}` | {shown} | {rules['description']} |")
    table = "\n".join(["| input | default | means |", "|---|---|---|", *rows])
    part = README.partition(f"## Inputs of {name}\n\n")[2].partition("\n\n")[0].rstrip("\n")
    assert part == table


def test_the_shards_are_the_jobs_of_gitops_with_few_differences() -> None:
    jobs = {name: read_component(name).jobs(image="i:1") for name in ("gitops", "gitops-sharded")}
    same = ("reconciler-validate", "reconciler-apply")
    assert [job for job in same if jobs["gitops"][job] != jobs["gitops-sharded"][job]] == []
    assert jobs["gitops-sharded"].keys() - jobs["gitops"].keys() == {"reconciler-drift-report"}
    for job in ("reconciler-plan", "reconciler-drift"):
        assert jobs["gitops-sharded"][job]["script"] == jobs["gitops"][job]["script"]
        assert "reports" not in jobs["gitops-sharded"][job]["artifacts"]


def test_an_input_that_is_a_whole_value_has_its_type() -> None:
    jobs = read_component("gitops-sharded").jobs(image="i:1", shards=3, apply="auto")
    assert jobs["reconciler-plan"]["parallel"] == 3
    assert " RECONCILER_APPLY=auto reconciler merge " in jobs["reconciler-review"]["script"][0]


@COMPONENTS
def test_a_fork_gets_no_token_and_only_the_default_branch_applies(name: str) -> None:
    """The conditions as they stand; only the service can evaluate them."""
    jobs = read_component(name).jobs(image="i:1")
    for job in jobs.keys() - {"reconciler-validate"}:
        for rule in jobs[job]["rules"]:
            if "merge_request_event" in rule["if"]:
                assert rule["if"].endswith("&& $CI_PROJECT_ID == $CI_MERGE_REQUEST_PROJECT_ID")
    if "reconciler-apply" in jobs:
        [rule] = jobs["reconciler-apply"]["rules"]
        assert rule == {"if": '$CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH && $CI_PIPELINE_SOURCE != "schedule"'}


@COMPONENTS
def test_each_job_that_writes_waits_for_the_others(name: str) -> None:
    writing = [job.get("resource_group") for job in jobs_of(name).values() if "apply" in commands_of(job)]
    assert writing == {"gitops": ["reconciler"], "gitops-sharded": ["reconciler-$CI_NODE_INDEX"]}.get(name, [])


def test_the_example_uses_the_component_as_it_is() -> None:
    example = yaml.safe_load((ROOT / "examples" / "ci" / "fleet.gitlab-ci.yml").read_text())
    [included] = example.pop("include")
    path, _, version = included["component"].partition("@")
    assert re.fullmatch(r"v\d+\.\d+\.\d+", version)
    jobs = read_component(path.rpartition("/")[2]).jobs(**included["inputs"])
    assert example.pop("workflow")["rules"][-1] == {"when": "always"}
    assert example == {"reconciler-drift": {"allow_failure": False}}
    assert example.keys() <= jobs.keys()


@pytest.mark.parametrize("text", re.findall(r"```yaml[^\n]*\n(include:.*?)```", README, re.DOTALL))
def test_what_the_readme_shows_can_be_included(text: str) -> None:
    for included in yaml.safe_load(text)["include"]:
        assert read_component(included["component"].partition("@")[0].rpartition("/")[2]).jobs(**included["inputs"])
