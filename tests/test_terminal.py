"""What is quoted in messages: it steers no terminal and commands no log of a CI job, wherever it comes from."""

import json
import re

import pytest

from tests.desk import Desk

COMMANDS = [
    "##vso[task.setvariable variable=x]y",
    "##teamcity[x]",
    "##[error]x",
    "::error::x",
    "  ::set-output name=x::y",
]
COMMANDING = re.compile(r"##\w*\[|^\s*::\w", re.MULTILINE)
"""How agents recognise a command: anywhere in a line, or at its beginning, blanks left aside."""


@pytest.mark.parametrize("command", COMMANDS)
def test_a_wrong_manifest_commands_nothing(desk: Desk, command: str) -> None:
    text = f'apiVersion: reconciler/v1\nkind: Project\nmetadata: {{path: acme/api}}\nspec:\n  "{command}": 1\n'
    desk.write("manifests/project.yaml", text)
    desk.write("manifests/plain.yaml", f"{command}\n")
    desk.write("manifests/::error::.yaml", "")
    for line in ("plan", "validate", "drift", "plan --log-format json"):
        done = desk(line)
        assert done.code == 1
        assert COMMANDING.search(done.out + done.err) is None
    assert "5:3: unknown section" in desk("plan").err


def test_what_is_shown_of_a_line_keeps_its_width(desk: Desk) -> None:
    desk.write("manifests/project.yaml", "kind: {'##vso[x] ::y': ]\n")
    assert desk("plan").err.endswith("\n    kind: {'# vso[x]  :y': ]\n                           ^\n")


def test_names_that_look_the_same_are_told_apart(desk: Desk) -> None:
    desk.service(milestones=[{"title": "Cafe\u0301 \u0438\u0306"}, {"title": "\u212b"}])
    desk.project('{prune: [milestones], milestones: {"Caf\u00e9 \u0439": {}, "\u00c5": {}}}')
    assert desk("plan").out == (
        "project acme/api\n"
        '  + milestone "Caf\u00e9 \u0439"\n'
        '  + milestone "\u00c5"\n'
        '  - milestone "Cafe\\u0301 \u0438\\u0306"\n'
        '  - milestone "\\u212b"\n'
        "Plan: 2 to create, 0 to update, 2 to delete, 0 problems, 0 unmanaged. 4 writes to apply; 1 request was made to plan.\n"
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_a_warning_commands_nothing(desk: Desk, command: str) -> None:
    desk.project("{milestones: {}}")
    spec = "apiVersion: reconciler/v1\nkind: ProjectSet\nmetadata: {name: %s}\nselect: {projects: []}\nspec: {}\n"
    desk.write("manifests/set.yaml", spec % json.dumps(command))
    for line in ("plan", "plan --log-format json", "validate"):
        done = desk(line)
        assert done.code == 0
        assert "matches no project" in done.out + done.err
        assert COMMANDING.search(done.out + done.err) is None
    logged = json.loads(desk("plan --log-format json").err)
    assert "matches no project" in logged["message"]


def test_an_error_that_quotes_a_file_commands_nothing(desk: Desk) -> None:
    desk.project("{milestones: {}}")
    done = desk("plan --retry-failed", "no\n::error::\u202e\x1b[2J")
    assert (done.code, done.err) == (1, "reconciler: no\n\\u003a:error::\\u202e\\u001b[2J: No such file or directory\n")
