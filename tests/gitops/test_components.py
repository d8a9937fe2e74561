"""What every component must be: documented, safe with tokens, and usable with others in one pipeline."""

import re
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.gitops.component import ROOT, child_jobs, read_component

NAMES = sorted(file.stem for file in (ROOT / "templates").glob("*.yml"))
COMPONENTS = pytest.mark.parametrize("name", NAMES)
README = (ROOT / "templates" / "README.md").read_text()
JOB_KEYWORDS = {
    "after_script",
    "allow_failure",
    "artifacts",
    "before_script",
    "cache",
    "environment",
    "image",
    "interruptible",
    "needs",
    "pages",
    "parallel",
    "resource_group",
    "rules",
    "script",
    "stage",
    "tags",
    "trigger",
    "variables",
}


CHILD = "cat >> .reconciler/apply.yml <<'END'\n"
"""The beginning of the line that writes a child pipeline."""


def lines_of(job: dict[str, Any]) -> list[str]:
    """Return the lines of a job, without the pipeline that it writes."""
    lines = [*job.get("before_script", []), *job.get("script", []), *job.get("after_script", [])]
    return [line for line in lines if not line.startswith(CHILD)]


def jobs_of(name: str, **inputs: Any) -> dict[str, dict[str, Any]]:
    """Return the jobs of a component, and those of the pipelines that it writes."""
    jobs = read_component(name).jobs(image="i:1", **inputs)
    written = [line for job in jobs.values() for line in job.get("script", []) if line.startswith(CHILD)]
    for text in written:
        child = child_jobs(text.removeprefix(CHILD).removesuffix("END\n"))
        jobs |= {f"{job} in the child": each for job, each in child.items()}
    return jobs


def strings(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        node = [*node.keys(), *node.values()]
    if isinstance(node, list):
        for inner in node:
            yield from strings(inner)
    elif isinstance(node, str):
        yield node


def test_these_are_the_components() -> None:
    assert NAMES == ["apply", "drift", "fleet", "gitops", "gitops-sharded", "plan", "validate"]


@COMPONENTS
def test_every_input_is_described_typed_and_used(name: str) -> None:
    component = read_component(name)
    for rules in component.inputs.values():
        assert "description" in rules
        assert set(rules) <= {"default", "description", "options", "regex", "type"}
    used = {found for text in strings(component.body) for found in re.findall(r"inputs\.([\w-]+)", text)}
    assert used == set(component.inputs)


@COMPONENTS
def test_a_component_holds_jobs_and_nothing_that_concerns_others(name: str) -> None:
    jobs = read_component(name).jobs(image="i:1", job_prefix="mine-")
    assert [job for job in jobs if not job.startswith("mine-")] == []
    for job in jobs.values():
        assert set(job) <= JOB_KEYWORDS
        assert {"needs", "rules", "stage"} <= set(job)
        assert "trigger" in job or {"image", "script", "tags"} <= set(job)
        assert name in {"apply", "fleet", "gitops"} or {
            each if isinstance(each, str) else each["job"] for each in job["needs"]
        } <= set(jobs)


@COMPONENTS
def test_no_job_keeps_a_token_or_gives_its_artifacts_to_everybody(name: str) -> None:
    for job in jobs_of(name).values():
        artifacts = job.get("artifacts", {})
        assert not artifacts.get("paths") or artifacts["access"] == "developer"
        assert [line for line in lines_of(job) if "--tokens-to" in line] == []
        kept = [*artifacts.get("paths", []), *artifacts.get("reports", {}).values()]
        assert [path for path in kept if not path.startswith(".reconciler/") and path != "public"] == []


@COMPONENTS
def test_only_apply_has_the_token_that_may_write(name: str) -> None:
    for job, content in jobs_of(name).items():
        text = "\n".join(lines_of(content))
        asks = re.search(r"reconciler (plan|drift|apply) ", text)
        if asks:
            assert ('export RECONCILER_TOKEN="${RECONCILER_READ_TOKEN:-$RECONCILER_TOKEN}"' in text) is (
                "apply" not in job
            )


@COMPONENTS
def test_scripts_need_no_more_than_the_shell_of_any_image(name: str) -> None:
    for job in jobs_of(name).values():
        script = "\n".join(lines_of(job)) + "\n"
        assert re.findall(r"\[\[|<<<|\bfunction\b|\$'|\w\(\)", script) == []
        done = subprocess.run(["sh", "-n"], input=script, text=True, capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")


@COMPONENTS
def test_the_table_of_the_inputs_is_what_the_component_says(name: str) -> None:
    rows = []
    for key, rules in read_component(name).inputs.items():
        default = rules.get("default")
        shown = (
            "must be given"
            if "default" not in rules
            else "none"
            if default in ("", [])
            else "see the file"
            if isinstance(default, list)
            else f"`{yaml.safe_dump(default).split(chr(10))[0]}`"
        )
        rows.append(f"| `{key}` | {shown} | {rules['description']} |")
    table = "\n".join(["| input | default | means |", "|---|---|---|", *rows])
    part = README.partition(f"## Inputs of {name}\n\n")[2].partition("\n\n")[0].rstrip("\n")
    assert part == table


@COMPONENTS
def test_two_of_them_fit_into_one_pipeline(name: str) -> None:
    component = read_component(name)
    one, other = (component.jobs(image="i:1", job_prefix=prefix) for prefix in ("one-", "other-"))
    assert not one.keys() & other.keys()
    assert len(one) == len(other)


def test_inputs_have_their_type_where_they_are_a_whole_value_and_are_text_elsewhere() -> None:
    jobs = read_component("gitops-sharded").jobs(image="i:1", shards=3, auto_apply=True)
    assert jobs["reconciler-plan"]["parallel"] == 3
    assert "--parts 3 " in "\n".join(jobs["reconciler-review"]["script"])
    assert "--parts 3 " in "\n".join(jobs_of("gitops-sharded", shards=3)["reconciler-report in the child"]["script"])
    assert 'test "true" != true || when=on_success' in jobs["reconciler-review"]["script"]


@COMPONENTS
def test_a_fork_gets_no_token_and_only_the_default_branch_applies(name: str) -> None:
    """The conditions as they stand; only the service can evaluate them."""
    jobs = read_component(name).jobs(image="i:1", job_prefix="")
    for job in jobs.keys() - {"validate"}:
        for rule in jobs[job]["rules"]:
            if "merge_request_event" in rule.get("if", ""):
                assert rule["if"].endswith("&& $CI_PROJECT_ID == $CI_MERGE_REQUEST_PROJECT_ID")
    if "apply" in jobs:
        [rule] = jobs["apply"]["rules"]
        assert rule["if"] == '$CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH && $CI_PIPELINE_SOURCE != "schedule"'
        assert rule.get("when") == (None if "trigger" in jobs["apply"] else "manual")


@COMPONENTS
def test_each_job_that_writes_waits_for_the_others(name: str) -> None:
    jobs = jobs_of(name)
    writing = {
        job: each.get("resource_group") for job, each in jobs.items() if "reconciler apply" in str(each.get("script"))
    }
    groups = [group for job, group in writing.items() if job != "reconciler-review"]
    assert groups == {
        "apply": ["reconciler"],
        "gitops": ["reconciler"],
        "gitops-sharded": ["reconciler-$CI_NODE_INDEX"],
    }.get(name, [])


def test_the_pipeline_that_gitops_writes_is_the_component_apply() -> None:
    alone = read_component("apply").jobs(image="i:1")["reconciler-apply"]
    child = jobs_of("gitops")["reconciler-apply in the child"]
    for key in ("artifacts", "before_script", "image", "resource_group", "script", "stage"):
        assert child[key] == alone[key]


def test_rules_of_ones_own_come_before_those_of_each_job() -> None:
    never = {"if": "$CI_COMMIT_TAG", "when": "never"}
    for name in ("gitops", "gitops-sharded"):
        jobs = read_component(name).jobs(image="i:1", rules=[never], tags=["docker"])
        assert [job["rules"][0] for job in jobs.values()] == [never] * len(jobs)
        assert {str(job["tags"]) for job in jobs.values() if "tags" in job} == {"['docker']"}


def test_the_example_uses_the_component_as_it_is() -> None:
    example = yaml.safe_load((ROOT / "examples" / "ci" / "fleet.gitlab-ci.yml").read_text())
    [included] = example.pop("include")
    path, _, version = included["component"].partition("@")
    assert re.fullmatch(r"\d+\.\d+\.\d+", version)
    jobs = read_component(path.rpartition("/")[2]).jobs(**included["inputs"])
    assert example.pop("workflow")["rules"][-1] == {"when": "always"}
    assert example == {"reconciler-drift": {"allow_failure": False}}
    assert example.keys() <= jobs.keys()


@pytest.mark.parametrize("text", re.findall(r"```yaml[^\n]*\n(include:.*?)```", README, re.DOTALL))
def test_what_the_readme_shows_can_be_included(text: str) -> None:
    for included in yaml.safe_load(text)["include"]:
        assert read_component(included["component"].partition("@")[0].rpartition("/")[2]).jobs(**included["inputs"])
