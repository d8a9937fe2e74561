"""Commands, options, roles and variables of other tools are answered by what to write, never by their spelling."""

import re
from pathlib import Path

import click
import pytest

from reconciler.cli import COMMANDS, cli
from reconciler.cli.foreign_words import FOREIGN_COMMANDS, FOREIGN_OPTIONS
from tests.cli_runner import CliRunner

TABLE = Path(__file__).with_name("foreign_words.txt")

OTHERS = """\
help plan
--yes apply
--target acme/api plan
apply -auto-approve
plan -target=acme/api
plan -out=plan.json
plan -x
plan -xyz
plan --dry-runn
plan --outpt
apply --auto-aprove
show --target acme/api
"""
"""Command lines in the order of other tools, two that no tool has, and misspelt options."""

ENTRIES = """\
40 | no one | No one | no access | 0 | Maintainer | maintainers | Developers + Maintainers | owner | guest | "@ada" | "@" | ada | 7 | true
{access_level: 0} | {access_level: no one} | {access_level: true}
"""


def test_each_word_of_another_tool_is_answered_in_one_sentence(cli_runner: CliRunner) -> None:
    lines = [*FOREIGN_COMMANDS, *(f"plan {option}" for option in FOREIGN_OPTIONS), *OTHERS.splitlines()]
    table = []
    for line in lines:
        done = cli_runner(line)
        assert (done.code, done.out) == (64, "")
        table.append(f"{line}\n    {done.err.splitlines()[0]}\n")
    for entry in re.split(r" \| |\n", ENTRIES.strip()):
        cli_runner.write(
            "manifests/a.yaml",
            "apiVersion: reconciler/v1\nkind: Project\nmetadata: {path: acme/api}\n"
            f"spec: {{protected_branches: {{main: {{allowed_to_push: [{entry}]}}}}}}\n",
        )
        table.append(f"[{entry}]\n    {cli_runner('validate').out.splitlines()[0].partition(': ')[2]}\n")
    assert "".join(table) == TABLE.read_text()


def test_the_answers_name_commands_and_options_that_exist() -> None:
    context = click.Context(cli)
    commands = [command for name in COMMANDS if (command := cli.get_command(context, name))]
    options = {option for command in (cli, *commands) for parameter in command.params for option in parameter.opts}
    answers = " ".join([*FOREIGN_COMMANDS.values(), *FOREIGN_OPTIONS.values()])
    assert {*re.findall(r"reconciler ([a-z]+)", answers)} <= {*COMMANDS}
    assert {*re.findall(r"(?<!\w)--[a-z-]+", answers)} <= options | {"--help"}


@pytest.mark.parametrize(
    ("variable", "foreign", "answer"),
    [
        ("RECONCILER_TOKEN", "GITLAB_TOKEN", "no token: set RECONCILER_TOKEN or --token-file"),
        (
            "RECONCILER_API_URL",
            "GITLAB_URL",
            "no service: set RECONCILER_API_URL or --api-url, such as https://host/api/v4",
        ),
    ],
)
def test_a_variable_of_another_tool_is_named_and_not_read(
    cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch, variable: str, foreign: str, answer: str
) -> None:
    monkeypatch.delenv(variable)
    monkeypatch.setenv(foreign, "glpat-secret")
    done = cli_runner("doctor")
    assert (done.code, done.out, done.err) == (1, "", f"reconciler: {answer}; {foreign} is set, and not read\n")
