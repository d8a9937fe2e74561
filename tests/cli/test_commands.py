"""The commands as a whole: that each is explained, and what a wrong command line does."""

import importlib
import os
import subprocess
import sys

import click
import pytest

from reconciler import __version__
from reconciler.cli import COMMANDS, GROUPS, cli, main
from reconciler.cli.sandbox import _run
from reconciler.reports import FORMATS
from tests.cli_runner import CliRunner


@pytest.mark.untraced
@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_and_every_option_is_explained_with_an_example(name: str, cli_runner: CliRunner) -> None:
    done = cli_runner(f"{name} --help")
    assert done.code == 0
    assert "Example" in done.out
    assert "\\b" not in done.out
    assert f"reconciler {name}" in done.out.partition("Example")[2]
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    options = [each for each in command.params if isinstance(each, click.Option)]
    assert [each.name for each in options if not each.help] == []


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_the_short_help_of_every_command_fits_on_a_screen_with_one_example(name: str, cli_runner: CliRunner) -> None:
    done = cli_runner(f"{name} -h")
    lines = done.out.splitlines()
    assert (done.code, done.err, len(lines) <= 40) == (0, "", True)
    assert lines[-2].startswith(f"Example: reconciler {name}")
    assert lines[-1] == f"Everything: reconciler {name} --help"


@pytest.mark.untraced
@pytest.mark.parametrize("name", ["validate", "doctor", "apply", "plan"])
def test_help_offers_the_formats_that_the_command_takes(name: str, cli_runner: CliRunner) -> None:
    offered = cli_runner(f"{name} --help").out.partition("--format [")[2].partition("]")[0].split("|")
    refused = [each for each in FORMATS if f"{each} is a format of" in cli_runner(f"{name} --format {each}").err]
    assert sorted([*offered, *refused]) == sorted(FORMATS)


def test_without_a_command_the_everyday_ones_are_explained_and_the_others_named(cli_runner: CliRunner) -> None:
    asked, alone = cli_runner("-h"), cli_runner("")
    assert (asked.code, asked.err, alone.code, alone.out, alone.err) == (0, "", 64, "", asked.out)
    assert headings(asked.out) == ["Every day", "Setting up"]
    assert asked.out.splitlines()[-6:] == [
        "In pipelines:  show, note, issue, merge",
        "More:          render, backup, sandbox, schema, completion",
        "",
        "Begin with: reconciler demo",
        "A command's everyday options: reconciler COMMAND -h",
        "Everything: reconciler --help",
    ]


def headings(text: str) -> list[str]:
    return [line.removesuffix(":") for line in text.splitlines() if line.endswith(":") and not line.startswith(" ")]


def test_help_lists_commands_in_groups_and_the_shared_options_last(cli_runner: CliRunner) -> None:
    everything = cli_runner("--help").out
    assert headings(everything) == ["Options", *GROUPS]
    assert "..." not in everything.partition("Every day:")[2]
    of_plan = cli_runner("plan --help").out
    assert headings(of_plan) == ["Options", "Plan", "Manifests", "Selection", "Service", "Output", "Example"]
    assert cli_runner("show --help").out.splitlines()[-3:] == [
        "Examples:",
        "  reconciler show plan.json --format html",
        "  reconciler show new.json --since old.json",
    ]
    assert of_plan.index("--detailed-exitcode") < of_plan.index("--help") < of_plan.index("Plan:")


def test_what_is_completed_behind_a_command_that_is_not_there_is_no_error() -> None:
    half_typed = click.Context(cli, resilient_parsing=True)
    assert cli.resolve_command(half_typed, ["plam", "manifests"]) == (None, None, ["manifests"])


def test_the_package_can_be_run_and_imported() -> None:
    module = importlib.import_module("reconciler.__main__")
    assert module.main is main


def test_the_version_is_told(cli_runner: CliRunner) -> None:
    assert cli_runner("--version").out == f"reconciler, version {__version__} (a checkout)\n"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("plam", "unknown command `plam`; did you mean `plan`?"),
        ("xyzzy", "unknown command `xyzzy`; known are validate, plan, "),
        ("plan --concurrency 0", "invalid value for '--concurrency': 0 is not in the range 1<=x<=64"),
        ("plan --concurrency fast", "invalid value for '--concurrency': 'fast' is not a valid number, nor auto"),
        ("plan --token glpat-secret", "unknown option `--token`; a token is never an argument"),
        ("--token glpat-secret", "unknown option `--token`; a token is never an argument"),
        ("plan --rate often", "--rate takes N/SECONDS, such as 600/60; not often"),
        ("plan --max-wait 5", "--max-wait: a duration is a number followed by d, h, m or s, such as 24h; not 5"),
        ("plan --selector team", "invalid value for '--selector': takes KEY=VALUE"),
        ("plan --report text", "invalid value for '--report': takes FORMAT=FILE"),
        ("apply --plan p.json manifests", "apply takes PATHS or --plan, not both"),
        ("apply --tokens-to a --tokens-command b", "apply takes --tokens-to or --tokens-command, not both"),
        (
            "schema nonsense",
            "unknown schema `nonsense`; known are manifest, config, plan, report, comparison, validation, diagnosis, history and log",
        ),
    ],
)
def test_a_wrong_command_line_ends_with_64_and_says_what_is_wrong(cli_runner: CliRunner, line: str, said: str) -> None:
    done = cli_runner(line)
    assert (done.code, done.out) == (64, "")
    assert said in done.err
    assert "glpat-secret" not in done.err


@pytest.mark.processes
def test_a_reader_that_goes_away_is_no_error_of_ours() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    line = [sys.executable, "-m", "reconciler", "schema", "config"]
    done = subprocess.run(line, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


def test_the_demo_does_not_go_on_when_its_story_goes_wrong() -> None:
    with pytest.raises(AssertionError, match="reconciler --version ended with 0 instead of 3"):
        _run("--version", 3)


def test_a_bug_of_ours_is_one_line_and_a_traceback_only_when_asked_for(
    cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise ZeroDivisionError("-".join(("glpat", "secret")))

    monkeypatch.setattr("reconciler.kinds.all_kinds", broken)
    done = cli_runner("validate")
    assert (done.code, done.out) == (1, "")
    assert done.err == "reconciler: internal error: ZeroDivisionError; -vv shows where\n"
    loud = cli_runner("validate -vv")
    assert "in broken" in loud.err
    assert "glpat-secret" not in loud.err
