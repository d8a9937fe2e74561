"""`apply -i`: each group of equal changes is asked for, on a terminal; what is left out is not written."""

import json
import os
import pty
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from reconciler.documents.plan_file import save_plan
from tests.cli_runner import CliRunner
from tests.render.creations import creations
from tests.states import a_small_service

FLEET = """\
apiVersion: reconciler/v1
kind: ProjectSet
metadata: {name: all}
select: {projects: [acme/api, acme/lib, acme/web]}
spec: {milestones: {new: {due_date: 2027-01-29}, old: null}}
---
apiVersion: reconciler/v1
kind: Project
metadata: {path: acme/api}
spec: {milestones: {own: {}}, job_token_scope: {enabled: true}}
"""

SUMMARY = "4 to create, 1 to update, 3 to delete, 0 problems"
NAMES = "3 projects                                                           (acme/api, acme/lib and 1 more)"
ANSWERS = "(yes, no, all, quit or details): "


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A terminal as standard input; the value is the end a person types at."""
    person, program = pty.openpty()
    with os.fdopen(program, "r") as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        yield person
    os.close(person)


@pytest.fixture(autouse=True)
def _service(cli_runner: CliRunner) -> None:
    state = a_small_service("deployed")
    for project in state["projects"][:3]:
        project["milestones"] = [{"title": "old"}]
    state["projects"][0]["job_token_scope"] = {"inbound_enabled": False}
    cli_runner.sandbox.replace_state(state)
    cli_runner.write("manifests/all.yaml", FLEET)


def titles(cli_runner: CliRunner) -> list[list[str]]:
    """Return the titles of each project's milestones."""
    return [[each["title"] for each in project["milestones"]] for project in cli_runner.sandbox.state()["projects"][:3]]


def test_each_group_is_asked_for_and_only_what_is_chosen_is_written(cli_runner: CliRunner, terminal: int) -> None:
    os.write(terminal, b"maybe\nd\ny\nn\nNO\nyes\n")
    done = cli_runner("apply -i")
    assert done.code == 0
    asked = done.err.replace(ANSWERS, "? ").replace("answer yes, no, all, quit or details", "once more").splitlines()
    assert asked == [
        asked[0],
        "",
        NAMES,
        '  + milestone "new"                           due_date: 2027-01-29     manifests/all.yaml:5',
        "1 of 4: apply 3 changes? ? Error: once more",
        "1 of 4: apply 3 changes? ? project acme/api",
        '  + milestone "new"                           due_date: 2027-01-29     manifests/all.yaml:5',
        "      POST projects/acme%2Fapi/milestones",
        "project acme/lib",
        '  + milestone "new"                           due_date: 2027-01-29     manifests/all.yaml:5',
        "      POST projects/acme%2Flib/milestones",
        "project acme/web",
        '  + milestone "new"                           due_date: 2027-01-29     manifests/all.yaml:5',
        "      POST projects/acme%2Fweb/milestones",
        "1 of 4: apply 3 changes? ? ",
        NAMES,
        '  - milestone "old"     manifests/all.yaml:5',
        "2 of 4: apply 3 changes? ? ",
        "project acme/api",
        asked[19],
        "3 of 4: apply 1 change? ? ",
        "project acme/api",
        asked[22],
        "4 of 4: apply 1 change? ? ",
    ]
    assert asked[0].startswith(f"Plan: {SUMMARY}")
    assert "job token scope" in asked[19]
    assert titles(cli_runner) == [["old", "new", "own"], ["old", "new"], ["old", "new"]]
    assert "Applied: 4 created, 0 updated, 0 deleted; 0 failed, 0 stale, 0 skipped" in done.out


def test_all_takes_the_rest_and_quitting_leaves_it_out(cli_runner: CliRunner, terminal: int) -> None:
    os.write(terminal, b"n\na\n")
    assert cli_runner("apply -i").code == 0
    assert titles(cli_runner) == [["own"], [], []]
    os.write(terminal, b"q\n")
    quit_at_once = cli_runner("apply -i --report json=report.json")
    assert (quit_at_once.code, titles(cli_runner)) == (3, [["own"], [], []])
    assert '  + milestone "new"                           skipped: left out by quitting\n' in quit_at_once.out
    assert cli_runner("show report.json").code == 3
    os.write(terminal, b"y\n")
    assert cli_runner("apply --retry-failed report.json").code == 0
    assert titles(cli_runner) == [["own", "new"], ["new"], ["new"]]


def test_a_saved_plan_is_asked_for_too_and_what_was_done_stands_beside_what_was_left_out(
    cli_runner: CliRunner, terminal: int
) -> None:
    assert cli_runner("plan --out plan.json").code == 0
    os.write(terminal, b"y\nq\n")
    done = cli_runner("apply -i --plan plan.json --report json=report.json --group-by change")
    assert (done.code, titles(cli_runner)) == (3, [["old", "new"], ["old", "new"], ["old", "new"]])
    assert done.out.splitlines()[:4] == [
        NAMES,
        '  + milestone "new"                           done',
        '  - milestone "old"                           skipped: left out by quitting',
        "project acme/api",
    ]
    assert json.loads(Path("report.json").read_text())["counts"]["skipped"] == 5


def test_what_needs_a_target_that_will_not_be_created_is_not_asked_for(cli_runner: CliRunner, terminal: int) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    saved = replace(creations(), service=cli_runner.sandbox.api_url, created_at=now)
    cli_runner.write("plan.json", save_plan(saved))
    cli_runner.sandbox.clear_log()
    os.write(terminal, b"n\n")
    done = cli_runner("apply -i --plan plan.json")
    assert (done.code, cli_runner.sandbox.log()) == (0, [])
    assert asked_for(done.err) == [("1 of 8", "group acme/new-team")]
    os.write(terminal, b"y\ny\nn\nn\n")
    done = cli_runner("apply -i --plan plan.json --max-changes 0")
    assert (done.code, cli_runner.sandbox.log()) == (1, [])
    assert asked_for(done.err) == [
        ("1 of 8", "group acme/new-team"),
        ("2 of 8", "group acme/new-team/tools"),
        ("3 of 8", "project acme/new-team/api"),
        ("4 of 5", "project acme/new-team/web"),
    ]


def asked_for(text: str) -> list[tuple[str, str]]:
    """Return the number of each question, and what it is about."""
    found = re.findall(r"\n  [+~-] (\w+ \S+).*\n(\d of \d): apply", text)
    return [(number, about) for about, number in found]


def test_the_guard_checks_what_is_left(cli_runner: CliRunner, terminal: int) -> None:
    os.write(terminal, b"a\n")
    refused = cli_runner("apply -i --max-changes 4")
    assert (refused.code, refused.out) == (1, "")
    assert "apply will refuse this plan: it makes 8 changes, more than --max-changes 4" in refused.err
    os.write(terminal, b"y\nn\ny\nn\n")
    assert cli_runner("apply -i --max-changes 4").code == 0
    os.write(terminal, b"y\n\x04")
    assert (cli_runner("apply -i").code, titles(cli_runner)[1]) == (1, ["old", "new"])


def test_a_section_of_which_a_change_was_left_out_is_not_planned_again(cli_runner: CliRunner, terminal: int) -> None:
    kinds = (("Group", "acme"), ("Project", "acme/api"))
    document = "apiVersion: reconciler/v1\nkind: {}\nmetadata: {{path: {}}}\nspec: {{approval_settings: {}}}\n"
    cli_runner.write(
        "manifests/all.yaml",
        "---\n".join(document.format(kind, path, "{allow_author_approval: false}") for kind, path in kinds),
    )
    cli_runner.sandbox.clear_log()
    os.write(terminal, b"y\nn\n")
    assert cli_runner("apply -i").code == 0
    written = [each["target"] for each in cli_runner.sandbox.log() if each["method"] != "GET"]
    assert [target.removeprefix("/api/v4/").partition("/merge")[0] for target in written] == ["groups/acme"]


def test_nothing_to_change_is_nothing_to_ask(cli_runner: CliRunner, terminal: int) -> None:
    cli_runner.write(
        "manifests/all.yaml", FLEET.partition("---")[0].replace("new: {due_date: 2027-01-29}, old: null", "")
    )
    assert cli_runner("apply -i").code == 0
    del terminal


def test_without_a_terminal_nothing_is_asked_and_nothing_requested(cli_runner: CliRunner) -> None:
    cli_runner.sandbox.clear_log()
    done = cli_runner("apply -i")
    assert (done.code, done.err) == (
        64,
        "reconciler: -i asks before each group of changes, and there is no terminal; leave it out, and add --yes\n",
    )
    assert cli_runner("apply -i --yes").err == "reconciler: apply takes -i or --yes, not both\n"
    assert cli_runner.sandbox.log() == []
