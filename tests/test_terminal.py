"""What is quoted in messages: it steers no terminal and commands no log of a CI job, wherever it comes from."""

import json
import re

import pytest

from tests.cli_runner import CliRunner

COMMANDS = [
    "##vso[task.setvariable variable=x]y",
    "##teamcity[x]",
    "##[error]x",
    "::error::x",
    "  ::set-output name=x::y",
]
COMMANDING = re.compile(r"##\w*\[|^\s*::\w", re.MULTILINE)
"""How agents recognise a command: anywhere in a line, or at its beginning, blanks left aside."""


@pytest.mark.untraced
@pytest.mark.parametrize("command", COMMANDS)
def test_a_wrong_manifest_commands_nothing(cli_runner: CliRunner, command: str) -> None:
    text = f'apiVersion: reconciler/v1\nkind: Project\nmetadata: {{path: acme/api}}\nspec:\n  "{command}": 1\n'
    cli_runner.write("manifests/project.yaml", text)
    cli_runner.write("manifests/plain.yaml", f"{command}\n")
    cli_runner.write("manifests/::error::.yaml", "")
    for line in ("plan", "validate", "drift", "plan --log-format json"):
        done = cli_runner(line)
        assert done.code == 1
        assert COMMANDING.search(done.out + done.err) is None
    assert "5:3: unknown section" in cli_runner("plan").err


def test_what_is_shown_of_a_line_keeps_its_width(cli_runner: CliRunner) -> None:
    cli_runner.write("manifests/project.yaml", "kind: {'##vso[x] ::y': ]\n")
    assert cli_runner("plan").err.endswith("\n    kind: {'# vso[x]  :y': ]\n                           ^\n")


def test_names_that_look_the_same_are_told_apart(cli_runner: CliRunner) -> None:
    cli_runner.service(milestones=[{"title": "Cafe\u0301 \u0438\u0306"}, {"title": "\u212b"}])
    cli_runner.project('{prune: [milestones], milestones: {"Caf\u00e9 \u0439": {}, "\u00c5": {}}}')
    assert cli_runner("plan").changes == (
        "project acme/api\n"
        '  + milestone "Caf\u00e9 \u0439"\n'
        '  + milestone "\u00c5"\n'
        '  - milestone "Cafe\\u0301 \u0438\\u0306"\n'
        '  - milestone "\\u212b"\n'
        'milestone "Caf\u00e9 \u0439" looks like a rename: add renamed_from: "Cafe\\u0301 \u0438\\u0306" at '
        "manifests/project.yaml:4\n"
        'milestone "\u00c5" looks like a rename: add renamed_from: "\\u212b" at manifests/project.yaml:4\n'
        "Plan: 2 to create, 2 to delete. 4 writes to apply; 2 requests were made to plan.\n"
    )


@pytest.mark.untraced
@pytest.mark.parametrize("command", COMMANDS)
def test_a_warning_commands_nothing(cli_runner: CliRunner, command: str) -> None:
    cli_runner.project("{milestones: {}}")
    spec = "apiVersion: reconciler/v1\nkind: ProjectSet\nmetadata: {name: %s}\nselect: {projects: []}\nspec: {}\n"
    cli_runner.write("manifests/set.yaml", spec % json.dumps(command))
    for line in ("plan", "plan --log-format json", "validate"):
        done = cli_runner(line)
        assert done.code == 0
        assert "matches no project" in done.out + done.err
        assert COMMANDING.search(done.out + done.err) is None
    logged = json.loads(cli_runner("plan --log-format json").err)
    assert "matches no project" in logged["message"]


def test_an_error_that_quotes_a_file_commands_nothing(cli_runner: CliRunner) -> None:
    cli_runner.project("{milestones: {}}")
    done = cli_runner("plan --retry-failed", "no\n::error::\u202e\x1b[2J")
    assert (done.code, done.err) == (
        1,
        "reconciler: no\n\\u003a:error::\\u202e\\u001b[2J: No such file or directory; check the path\n",
    )
