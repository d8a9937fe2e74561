"""`show --since`: what has changed between two plans, or between two reports."""

import json
import re

import pytest
from jsonschema import Draft202012Validator

from reconciler.kinds import all_kinds
from reconciler.schema import schema_of, schema_text
from tests.cli_runner import CliRunner

SPEC = '{milestones: {"1": {due_date: 2026-12-31}, "2": {state: closed}, gone: null}, trigger_tokens: {t: {}}}'
TOKENS = "--tokens-to tokens.jsonl"


@pytest.fixture(autouse=True)
def _plans(cli_runner: CliRunner) -> None:
    """Two plans of a project that somebody changes in between."""
    cli_runner.service(milestones=[{"title": "2"}, {"title": "gone"}])
    cli_runner.project(SPEC)
    cli_runner("plan --out old.json")
    state = cli_runner.sandbox.state()
    state["projects"][0]["milestones"] = [{"title": "2"}, {"title": "1", "due_date": "2027-01-01"}]
    state["projects"][0]["builds_enabled"] = False
    cli_runner.sandbox.replace_state(state)
    cli_runner("plan --out new.json")


def dated(cli_runner: CliRunner, command: str) -> tuple[int, str]:
    """Run a command; return its exit code, and its output with TIME for each time."""
    done = cli_runner(command)
    assert done.err == ""
    return done.code, re.sub("20[0-9T:-]{17}Z", "TIME", done.out)


UNREADABLE = "cannot be read: switched off in the project: CI/CD; switch CI/CD on, or leave the section out"


def test_what_is_new_gone_and_different_between_two_plans(cli_runner: CliRunner) -> None:
    cli_runner.sandbox.clear_log()
    last = "The plan of TIME, compared with that of TIME: 1 new, 2 gone, 1 different, 1 the same.\n"
    assert dated(cli_runner, "show new.json --since old.json") == (
        0,
        "project acme/api\n"
        '  different ~ milestone "1"  action: create -> update, live.due_date: none -> 2027-01-01\n'
        f"  new       ! trigger_tokens  {UNREADABLE}\n"
        '  gone      - milestone "gone"  state: active\n'
        '  gone      + trigger token "t"  loosens\n'
        f"{last}",
    )
    assert cli_runner.sandbox.log() == []
    assert dated(cli_runner, "show new.json --since old.json --quiet") == (0, last)
    cli_runner.write("copy.json", (cli_runner.folder / "new.json").read_text())
    assert dated(cli_runner, "show new.json --since copy.json") == (
        0,
        "The plan of TIME, compared with that of TIME: 0 new, 0 gone, 0 different, 3 the same.\n",
    )


def test_the_same_as_markdown_and_as_json(cli_runner: CliRunner) -> None:
    assert dated(cli_runner, "show new.json --since old.json --format markdown") == (
        0,
        f"""\
## 1 new, 2 gone, 1 different, 1 the same

The plan of TIME, compared with that of TIME.

<details open>
<summary><code>project acme/api</code>: 1 new, 2 gone, 1 different</summary>

```text
different ~ milestone "1"
    action: create -> update
    live.due_date: none -> 2027-01-01
new ! trigger_tokens
    {UNREADABLE}
gone - milestone "gone"
    state: active
gone + trigger token "t"
    loosens
```

</details>
""",
    )
    done = cli_runner("show new.json --since old.json --format json --report markdown=new.md")
    content = json.loads(done.out)
    assert [each["news"] for each in content["differences"]] == ["different", "new", "gone", "gone"]
    assert content["summary"] == {"new": 1, "gone": 2, "different": 1, "same": 1}
    assert content["differences"][0] == {
        "news": "different",
        "level": "project",
        "ref": "acme/api",
        "section": "milestones",
        "part": "milestones",
        "title": "milestone",
        "name": "1",
        "before": {"action": "create", "declared.due_date": "2026-12-31"},
        "after": {"action": "update", "live.due_date": "2027-01-01", "declared.due_date": "2026-12-31"},
        "places": [
            {"path": "action", "before": "create", "after": "update"},
            {"path": "live.due_date", "before": None, "after": "2027-01-01"},
        ],
    }
    schema = json.loads(schema_text(schema_of("comparison", all_kinds())))
    Draft202012Validator(schema).validate(content)


def test_the_outcomes_of_two_reports(cli_runner: CliRunner) -> None:
    """A refused change succeeds in the next run; a list that differs is described from the inside."""
    cli_runner.service(milestones=[{"title": "gone"}])
    cli_runner.project(SPEC)
    cli_runner.sandbox.set_faults(["status=403,method=DELETE,times=1"])
    assert cli_runner(f"apply --yes --report json=old.json {TOKENS}").code == 3
    assert cli_runner(f"apply --yes --report json=new.json {TOKENS}").code == 0
    refused = 'reason: "DELETE projects/acme%2Fapi/milestones/1: 403 Forbidden; the tok…" -> none'
    assert dated(cli_runner, "show new.json --since old.json")[1].splitlines() == [
        "project acme/api",
        f'  different - milestone "gone"  status: failed -> done, {refused}',
        '  gone      + milestone "1"  done',
        '  gone      + milestone "2"  done',
        '  gone      + trigger token "t"  done',
        "The report of TIME, compared with that of TIME: 0 new, 3 gone, 1 different, 0 the same.",
    ]


@pytest.mark.untraced
def test_what_reads_alike_for_three_targets_is_shown_once(cli_runner: CliRunner) -> None:
    (cli_runner.folder / "manifests/project.yaml").unlink()
    document = "apiVersion: reconciler/v1\nkind: Project\nmetadata: {path: acme/%s}\nspec: {milestones: {a: {}%s}}\n"
    for name in ("api", "lib", "web"):
        cli_runner.write(f"manifests/{name}.yaml", document % (name, ""))
    cli_runner("plan --out old.json")
    for name in ("api", "lib", "web"):
        cli_runner.write(f"manifests/{name}.yaml", document % (name, ", b: {}, c: {}" if name == "lib" else ", b: {}"))
    cli_runner("plan --out new.json")
    last = "The plan of TIME, compared with that of TIME: 4 new, 0 gone, 0 different, 3 the same."
    assert dated(cli_runner, "show new.json --since old.json")[1].splitlines() == [
        "3 projects                                                           (acme/api, acme/lib and 1 more)",
        '  new       + milestone "b"',
        "project acme/lib",
        '  new       + milestone "c"',
        last,
    ]
    each = dated(cli_runner, "show new.json --since old.json --group-by target")[1].splitlines()
    assert each == [
        "project acme/api",
        '  new       + milestone "b"',
        "project acme/lib",
        '  new       + milestone "b"',
        '  new       + milestone "c"',
        "project acme/web",
        '  new       + milestone "b"',
        last,
    ]
    note = dated(cli_runner, "show new.json --since old.json --format markdown")[1]
    assert "<summary>3 projects (<code>acme/api&#44; acme/lib and 1 more</code>), each: 1 new</summary>" in note


@pytest.mark.untraced
def test_two_objects_of_a_name_and_lists_within(cli_runner: CliRunner) -> None:
    epics = {
        "path": "acme",
        "epics": [{"title": "E", "labels": ["a", "b"]}],
        "labels": [{"name": each} for each in "abcd"],
    }
    token = {"description": "legacy", "owner": "ada"}
    state = cli_runner.sandbox.state()
    state["groups"][0] |= epics
    state["projects"][0] |= {"trigger_tokens": [token | {"id": 71}, token | {"id": 72}], "builds_enabled": True}
    cli_runner.sandbox.replace_state(state)
    group = "---\napiVersion: reconciler/v1\nkind: Group\nmetadata: {path: acme}\nspec: {epics: {E: {labels: [%s]}}}\n"
    cli_runner.project("{trigger_tokens: {legacy: null}}")
    cli_runner.write("manifests/group.yaml", group % "a, c")
    assert cli_runner("plan --out old.json").code == 0
    state = cli_runner.sandbox.state()
    state["projects"][0]["trigger_tokens"][1]["id"] = 73
    cli_runner.sandbox.replace_state(state)
    cli_runner.write("manifests/group.yaml", group % "a, d")
    assert cli_runner("plan --out new.json").code == 0
    assert dated(cli_runner, "show new.json --since old.json")[1].splitlines() == [
        "group acme",
        '  different ~ epic "E"  declared.labels: + d, - c',
        "project acme/api",
        '  different - trigger token "legacy"  id: 72 -> 73',
        "The plan of TIME, compared with that of TIME: 0 new, 0 gone, 2 different, 1 the same.",
    ]


def test_a_plan_and_a_report_are_not_compared(cli_runner: CliRunner) -> None:
    cli_runner("apply --section milestones --yes --report json=report.json")
    done = cli_runner("show new.json --since report.json")
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        "reconciler: report.json is an apply report, and new.json is a saved plan; compare two plans or two reports\n"
    )
    done = cli_runner("show new.json --since old.json --format html")
    assert done.code == 64
    assert "html is a format of plan and drift, apply and revert, not of show --since, which has json, " in done.err
    assert (
        cli_runner("show new.json --since none.json").err
        == "reconciler: none.json: No such file or directory; check the path\n"
    )
    assert cli_runner("show new.json --since old.json --report json=old.json").code == 64


def test_of_a_creation_that_is_another_the_fields_inside_are_told(
    cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "ghp_0123456789abcdef")
    (cli_runner.folder / "manifests/project.yaml").unlink()
    document = "apiVersion: reconciler/v1\nkind: Project\nmetadata: {path: acme/copy}\ncreate: {import: {github: %s}}\n"
    for name, number in (("old", 5), ("new", 6)):
        cli_runner.write("manifests/new.yaml", document % f"{{repo_id: {number}, token_env: GITHUB_TOKEN}}")
        assert cli_runner(f"plan --out {name}.json").code in (0, 3)
    assert dated(cli_runner, "show new.json --since old.json") == (
        0,
        """\
project acme/copy
  different + project acme/copy  declared.import.github.repo_id: 5 -> 6
The plan of TIME, compared with that of TIME: 0 new, 0 gone, 1 different, 0 the same.
""",
    )
