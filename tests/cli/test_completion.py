"""Completion, requested as shells do it, and in the shells that are installed."""

import os
import pty
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import BashComplete

from reconciler.cli import COMMANDS, cli
from tests.building import KINDS
from tests.cli.test_cold_start import HEAVY
from tests.cli_runner import CliRunner
from tests.fleet.repository import repository

RECONCILER = Path(sys.executable).with_name("reconciler")


@pytest.fixture(autouse=True)
def _manifests(cli_runner: CliRunner) -> None:
    cli_runner.write(
        "manifests/acme.yaml",
        """\
apiVersion: reconciler/v1
kind: Group
metadata: {path: acme}
---
apiVersion: reconciler/v1
kind: Project
metadata:   # the path comes last
  labels:
    team: payments

  path: "acme/payments/api"
spec:
  path: not/a/target
  unfinished: [
---
kind: Profile
metadata: {name: x}
---
kind: Instance
---
kind: Project
metadata:
  profiles: [x]
path: neither/is/this
""",
    )
    cli_runner.write("manifests/one.yaml.j2", "metadata: {path: 'acme/{{ name }}'}\n---\nmetadata: {path: other/web}\n")
    cli_runner.write("manifests/binary.yaml", "").write_bytes(b"\xff")


def asked(words: str, incomplete: str = "") -> list[str]:
    """Return what the tool offers for a word."""
    context = BashComplete(cli, {}, "reconciler", "_RECONCILER_COMPLETE")
    return [item.value for item in context.get_completions(shlex.split(words)[1:], incomplete)]


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("shell", "words", "number", "answer"),
    [
        ("bash", "reconciler plan --section mile", "3", "plain,milestones\n"),
        ("zsh", "reconciler plan --section mile", "3", "plain\nmilestones\n_\n"),
        ("fish", "reconciler plan --section mile", "mile", "plain,milestones\n"),
        ("bash", "reconciler apply --plan ", "3", "file,\n"),
    ],
)
def test_each_shell_is_answered_in_its_own_way(shell: str, words: str, number: str, answer: str) -> None:
    question = {"COMP_WORDS": words, "COMP_CWORD": number, "_RECONCILER_COMPLETE": f"{shell}_complete"}
    done = subprocess.run([RECONCILER], env=os.environ | question, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == (answer, "")


@pytest.mark.parametrize(
    ("words", "incomplete", "offered"),
    [
        ("reconciler", "", sorted(COMMANDS)),
        ("reconciler plan --section", "", sorted(KINDS)),
        ("reconciler", "mer", ["merge"]),
        ("reconciler plan", "--max", ["--max-changes", "--max-loosening", "--max-wait"]),
        ("reconciler plan --section", "not", ["notification_settings"]),
        ("reconciler export --section", "mil", ["milestones"]),
        ("reconciler plan --format", "mark", ["markdown"]),
        ("reconciler validate --format", "", ["codequality", "json", "markdown", "text"]),
        ("reconciler plan --concurrency", "a", ["auto"]),
        ("reconciler plan --concurrency", "1", []),
        ("reconciler plan --report", "j", ["json=report.json", "junit=junit.xml"]),
        ("reconciler plan --report", "terra", ["terraform-report=terraform-report.json"]),
        ("reconciler plan --target", "", ["acme", "acme/payments/api", "instance", "other/web"]),
        ("reconciler plan --target", "acme/", ["acme/payments/api"]),
        ("reconciler drift --exclude", "other", ["other/web"]),
        ("reconciler apply --canary", "acme/", ["acme/payments/api"]),
        ("reconciler apply", "--max-f", ["--max-failures"]),
        ("reconciler plan manifests/one.yaml.j2 --target", "", ["other/web"]),
        ("reconciler plan none --target", "", []),
        (
            "reconciler schema",
            "",
            ["manifest", "config", "plan", "report", "comparison", "validation", "diagnosis", "history", "log"],
        ),
        ("reconciler schema", "man", ["manifest"]),
        ("reconciler completion", "", ["bash", "zsh", "fish"]),
        ("reconciler plan --since", "", []),
    ],
)
def test_values_are_completed(words: str, incomplete: str, offered: list[str]) -> None:
    assert asked(words, incomplete) == offered


def test_files_are_left_to_the_shell() -> None:
    assert asked("reconciler plan", "mani") == ["mani"]
    assert asked("reconciler apply --plan") == [""]


@pytest.mark.parametrize(
    ("text", "offered"),
    [
        ("paths: manifests/one.yaml.j2\n", ["other/web"]),
        ("paths: [manifests/one.yaml.j2]\n", ["other/web"]),
        ("paths: []\n", ["acme", "acme/payments/api", "instance", "other/web"]),
        ("paths: 5\n", ["acme", "acme/payments/api", "instance", "other/web"]),
        ("paths: [\n", ["acme", "acme/payments/api", "instance", "other/web"]),
    ],
)
def test_targets_are_looked_for_where_the_configuration_says(
    cli_runner: CliRunner, text: str, offered: list[str]
) -> None:
    cli_runner.write("reconciler.yaml", text)
    assert asked("reconciler plan --target") == offered


def test_branches_and_tags_are_known_to_since(cli_runner: CliRunner) -> None:
    repo = repository(cli_runner.folder)
    repo.commit()
    repo.git("tag", "v1")
    assert asked("reconciler plan --since") == ["main", "v1", "applied"]
    assert asked("reconciler plan --since", "v") == ["v1"]


@pytest.mark.untraced
@pytest.mark.parametrize(
    "name",
    [
        "$(id)",
        "`id`",
        "a;id",
        "a|id",
        "a&id",
        "a>b",
        "${HOME}",
        "*",
        "a?",
        "[a]",
        "!id",
        "a\\b",
        "a(b",
        "~root",
    ],
)
def test_only_names_that_mean_nothing_to_a_shell_are_offered(cli_runner: CliRunner, name: str) -> None:
    """A shell inserts some of what it is offered as it is, and Enter runs it."""
    for number, path in enumerate((name, f"'{name}'", f"'acme/{name}'", "'acme/größe_1.0+x@y'")):
        cli_runner.write(
            f"offered/{number}.yaml",
            f"kind: Project\nmetadata: {{path: {path}}}\n---\nkind: Project\nmetadata:\n  path: {path}\n",
        )
    assert asked("reconciler plan offered --target") == ["acme/größe_1.0+x@y"]
    repo = repository(cli_runner.folder)
    repo.commit()
    refs = cli_runner.folder / ".git/packed-refs"
    head = repo.git("rev-parse", "HEAD").strip()
    named = [] if set(name) & set("*?[~\\") else [f"{head} refs/heads/{name}\n", f"{head} refs/tags/acme/{name}\n"]
    refs.write_text("".join([*named, f"{head} refs/tags/v1.0\n"]))
    assert asked("reconciler plan --since") == ["main", "v1.0", "applied"]


def test_without_git_since_has_no_suggestions(cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    repository(cli_runner.folder)
    monkeypatch.setenv("PATH", str(cli_runner.folder))
    assert asked("reconciler plan --since") == []


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("option", "heavy"),
    [("", ""), ("--section", " importlib.metadata"), ("--report", ""), ("--format", "")],
)
def test_nothing_heavy_is_imported_for_a_suggestion_but_what_finds_packages(option: str, heavy: str) -> None:
    script = f"""
import sys
from reconciler.cli import run
try:
    run([])
finally:
    print("HEAVY", *sorted(set(sys.modules) & {HEAVY!r}))
"""
    words = {"COMP_WORDS": f"reconciler plan {option} ", "COMP_CWORD": "3" if option else "2"}
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | words | {"_RECONCILER_COMPLETE": "bash_complete"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == f"HEAVY{heavy}"


def installed(shell: str) -> str:
    """Return the path of a shell; skip the test if it is not installed."""
    found = shutil.which(shell)
    if not found:
        pytest.skip(f"completion is tried in {shell} itself: apt-get install -y {shell}")
    return found


TYPED = """\
eval "$(reconciler completion {shell})"
reconciler plan --section mile\t\x01echo got: \n\
reconciler mer\t\x01echo got: \n\
reconciler plan --target acme/pay\t\x01echo got: \n\
reconciler plan --report mark\t\x01echo got: \n\
reconciler plan manifests/bin\t\x01echo got: \n\
exit
"""
"""After each tab, Ctrl-A and `echo got:`, so that the line as it was completed is printed instead of run."""


@pytest.mark.untraced
@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_the_tab_key_completes(shell: str, tmp_path: Path) -> None:
    (tmp_path / ".zshrc").write_text(
        "autoload -Uz compinit\ncompinit -D -u\nbindkey -e\nunsetopt zle_bracketed_paste\n"
    )
    flags = ["--norc", "--noprofile", "-i"] if shell == "bash" else ["-i", "-d"]
    said = typed([installed(shell), *flags], TYPED.format(shell=shell), tmp_path)
    assert [line for line in said.splitlines() if line.startswith("got: ")] == [
        "got: reconciler plan --section milestones",
        "got: reconciler merge",
        "got: reconciler plan --target acme/payments/api",
        "got: reconciler plan --report markdown=report.md",
        "got: reconciler plan manifests/binary.yaml",
    ], said


def typed(line: list[str], text: str, home: Path) -> str:
    """Return what a program prints on a terminal with all input typed ahead."""
    ours, its = pty.openpty()
    environment = {"HOME": str(home), "ZDOTDIR": str(home), "TERM": "dumb", "INPUTRC": "/dev/null", "PS1": "$ "}
    path = f"{RECONCILER.parent}{os.pathsep}{os.environ['PATH']}"
    process = subprocess.Popen(
        line, stdin=its, stdout=its, stderr=its, env={**environment, "PATH": path}, start_new_session=True
    )
    os.close(its)
    os.write(ours, text.encode())
    said = b""
    try:
        while more := os.read(ours, 4096):
            said += more
    except OSError:  # how a terminal says on Linux that nobody is left on its other side
        pass
    os.close(ours)
    assert process.wait() == 0, said
    return said.decode().replace("\r", "")


@pytest.mark.untraced
def test_fish_completes(monkeypatch: pytest.MonkeyPatch) -> None:
    fish = installed("fish")
    monkeypatch.setenv("PATH", f"{RECONCILER.parent}{os.pathsep}{os.environ['PATH']}")
    script = "reconciler completion fish | source; complete --do-complete 'reconciler plan --section mile'"
    done = subprocess.run([fish, "--no-config", "-c", script], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("milestones\n", "")
