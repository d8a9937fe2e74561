"""Repositories made to run a program when git reads them: `--since` and its completion run nothing of theirs.

Each trap is shown to work before it is shown to fail: plain git falls into it.
"""

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from reconciler.system.processes import git as run_git
from tests.cli.test_completion import asked
from tests.cli_runner import CliRunner
from tests.fleet.repository import NOBODY, Repository, repository

MISSING = "1" * 40
"""A missing object, which a partial clone would fetch."""


@dataclass(frozen=True)
class Trap:
    """A repository, and a program that leaves a trace when it is run."""

    git: Repository
    program: Path
    trace: Path

    def sprung(self) -> bool:
        """Whether the program has run since this was last asked."""
        ran = self.trace.exists()
        self.trace.unlink(missing_ok=True)
        return ran

    def plain_git(self, *arguments: str) -> None:
        """Run git as a careless tool does."""
        subprocess.run(
            ["git", *arguments], cwd=self.git.folder, env=os.environ | NOBODY, capture_output=True, check=False
        )

    def set(self, **settings: str) -> None:
        """Write the checkout's own configuration; `a__b` is `a.b`."""
        for name, value in settings.items():
            self.git.git("config", name.replace("__", "."), value)


@pytest.fixture
def trap(cli_runner: CliRunner, tmp_path_factory: pytest.TempPathFactory) -> Trap:
    """A repository with one manifest that has changed since its only commit; HEAD~1 has none."""
    outside = tmp_path_factory.mktemp("outside")
    program, trace = outside / "program", outside / "trace"
    program.write_text(f"#!/bin/sh\ntouch {trace}\n")
    program.chmod(0o755)
    made = repository(cli_runner.folder)
    cli_runner.project("{milestones: {a: {}}}")
    made.commit()
    cli_runner.project("{milestones: {a: {}, b: {}}}")
    return Trap(made, program, trace)


def promised(trap: Trap) -> None:
    """A partial clone whose missing objects are fetched by a program."""
    trap.set(
        core__repositoryformatversion="1",
        extensions__partialClone="origin",
        remote__origin__promisor="true",
        remote__origin__url="ssh://example.invalid/x",
        core__sshCommand=str(trap.program),
    )


def a_bare_folder(trap: Trap) -> None:
    folder = trap.git.folder / "manifests"
    for name in ("objects", "refs/heads"):
        (folder / name).mkdir(parents=True)
        (folder / name / "keep").write_text("")
    (folder / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / "refs/heads/main").write_text(f"{MISSING}\n")
    (folder / "config").write_text(
        "[core]\nrepositoryformatversion = 1\nbare = false\nworktree = .\n"
        f"sshCommand = {trap.program}\n[extensions]\npartialClone = origin\n"
        '[remote "origin"]\npromisor = true\nurl = ssh://example.invalid/x\n'
    )
    trap.git.commit()
    trap.plain_git("-C", "manifests", "rev-parse", "--verify", "HEAD^{commit}")


def a_promisor_over_ssh(trap: Trap) -> None:
    promised(trap)
    lose_a_manifest(trap)


def a_promisor_with_a_program_for_packs(trap: Trap) -> None:
    promised(trap)
    trap.set(remote__origin__url=str(trap.git.folder / ".git"), remote__origin__uploadpack=str(trap.program))
    lose_a_manifest(trap)


def a_promisor_with_a_helper_that_is_allowed(trap: Trap) -> None:
    promised(trap)
    trap.set(remote__origin__url=f"ext::{trap.program}", protocol__ext__allow="always", protocol__allow="always")
    lose_a_manifest(trap)


def lose_a_manifest(trap: Trap) -> None:
    object_ = trap.git.git("rev-parse", "HEAD:manifests/project.yaml")
    (trap.git.folder / ".git/objects" / object_[:2] / object_[2:]).unlink()
    trap.plain_git("cat-file", "-p", object_)


def a_file_system_monitor(trap: Trap) -> None:
    trap.set(core__fsmonitor=str(trap.program))
    trap.plain_git("status")


def hooks(trap: Trap) -> None:
    folder = trap.git.folder / "hooks"
    folder.mkdir()
    for name in ("post-checkout", "post-index-change", "reference-transaction", "pre-auto-gc", "fsmonitor-watchman"):
        (folder / name).symlink_to(trap.program)
    trap.set(core__hooksPath=str(folder))
    trap.plain_git("tag", "sprung")


def conversions_and_filters(trap: Trap) -> None:
    attributes = trap.git.folder / ".gitattributes"
    attributes.write_text("*.yaml diff=evil filter=evil\n")
    trap.git.commit()
    trap.set(
        diff__evil__textconv=str(trap.program),
        diff__external=str(trap.program),
        filter__evil__smudge=str(trap.program),
        filter__evil__clean=str(trap.program),
        filter__evil__process=str(trap.program),
    )
    trap.plain_git("cat-file", "--textconv", "HEAD:manifests/project.yaml")


def a_pager_an_alias_and_a_prompt(trap: Trap) -> None:
    said = str(trap.program)
    trap.set(core__pager=said, core__editor=said, core__askPass=said, credential__helper=said, alias__evil=f"!{said}")
    trap.plain_git("evil")


def a_submodule(trap: Trap) -> None:
    trap.git.git("update-index", "--add", "--cacheinfo", f"160000,{MISSING},manifests/sub")
    (trap.git.folder / ".gitmodules").write_text(
        f'[submodule "x"]\npath = manifests/sub\nurl = {trap.git.folder}\nupdate = !{trap.program}\n'
    )
    trap.set(submodule__x__update=f"!{trap.program}", submodule__x__url=str(trap.git.folder), submodule__recurse="true")
    trap.git.commit()
    (trap.git.folder / "manifests/sub").mkdir(exist_ok=True)
    a_file_system_monitor(trap)


def objects_of_another_repository(trap: Trap) -> None:
    other = repository(trap.program.parent / "other")
    other.commit()
    (trap.git.folder / ".git/objects/info/alternates").write_text(f"{other.folder}/.git/objects\n")
    trap.set(core__alternateRefsCommand=str(trap.program))
    a_file_system_monitor(trap)


def a_checkout_that_is_kept_elsewhere(trap: Trap) -> None:
    trap.set(core__fsmonitor=str(trap.program))
    (trap.git.folder / ".git").rename(trap.program.parent / "elsewhere")
    (trap.git.folder / ".git").write_text(f"gitdir: {trap.program.parent / 'elsewhere'}\n")
    trap.plain_git("status")


NO_LIST = (
    "There is no inventory yet. Until the first apply, removing an object from the manifests does not delete it.\n"
)
READ = (
    'project acme/api\n  + milestone "b"\nNot of this change: 1 project differs already\nproject acme/api\n'
    f'  + milestone "a"\n{NO_LIST}Plan: 1 to create, 1 not of this change. '
)
LACKING = "reconciler: --since HEAD: some files of that revision are missing in this clone, and nothing is fetched: "


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("lay", "out", "err"),
    [
        (a_bare_folder, f"{NO_LIST}Nothing to do: no target was looked at. ", ""),
        (a_promisor_over_ssh, "", LACKING),
        (a_promisor_with_a_program_for_packs, "", LACKING),
        (a_promisor_with_a_helper_that_is_allowed, "", LACKING),
        (a_file_system_monitor, READ, ""),
        (hooks, READ, ""),
        (conversions_and_filters, f"{NO_LIST}Nothing to do: no target was looked at. ", ""),
        (a_pager_an_alias_and_a_prompt, READ, ""),
        (a_submodule, f"{NO_LIST}Nothing to do: no target was looked at. ", ""),
        (objects_of_another_repository, READ, ""),
        (a_checkout_that_is_kept_elsewhere, READ, ""),
    ],
)
def test_nothing_of_a_repository_is_run(
    trap: Trap, cli_runner: CliRunner, lay: Callable[[Trap], None], out: str, err: str
) -> None:
    lay(trap)
    assert trap.sprung()
    done = cli_runner("plan --since HEAD")
    assert done.changes.startswith(out)
    assert done.err.startswith(err)
    assert asked("reconciler plan --since", "ma") == ["main"]
    assert not trap.sprung()


def test_a_missing_commit_is_not_fetched(trap: Trap, cli_runner: CliRunner) -> None:
    promised(trap)
    done = cli_runner(f"plan --since {MISSING}")
    assert (done.code, done.out) == (1, "")
    assert "there is no such commit in this repository" in done.err
    assert not trap.sprung()


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GIT_DIR", ".git"),
        ("GIT_WORK_TREE", "manifests"),
        ("GIT_INDEX_FILE", "none"),
        ("GIT_OBJECT_DIRECTORY", "none"),
        ("GIT_ALTERNATE_OBJECT_DIRECTORIES", "none"),
        ("GIT_NAMESPACE", "other"),
        ("GIT_PREFIX", "manifests/"),
        ("GIT_EXEC_PATH", "none"),
        ("GIT_CONFIG_PARAMETERS", "'core.worktree=manifests'"),
        ("GIT_ALLOW_PROTOCOL", "ext:ssh"),
        ("GIT_TRACE", "trace"),
    ],
)
def test_variables_of_git_do_not_change_what_is_read(
    trap: Trap, cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    """Hooks and `git rebase --exec` set some of them."""
    cli_runner.write(
        "other/lib.yaml", (cli_runner.folder / "manifests/project.yaml").read_text().replace("acme/api", "acme/lib")
    )
    trap.git.commit()
    cli_runner.project("{milestones: {a: {}, c: {}}}")
    cli_runner.service(milestones=[{"title": "a"}, {"title": "b"}])
    stays = "1 object is no longer declared; no inventory knows it: it stays\n"
    expected = f'project acme/api\n  + milestone "c"\n{NO_LIST}{stays}Plan: 1 to create, 1 unmanaged. '
    monkeypatch.setenv(
        name, str(cli_runner.folder / value) if value in {".git", "manifests", "none", "trace"} else value
    )
    done = cli_runner("plan --since HEAD")
    assert done.changes.startswith(expected)
    assert done.err == ""
    assert asked("reconciler plan --since") == ["main", "applied"]
    assert not (cli_runner.folder / "trace").exists()


@pytest.mark.untraced
def test_a_commit_is_what_it_says_and_not_what_replaces_it(trap: Trap, cli_runner: CliRunner) -> None:
    first = trap.git.git("rev-parse", "HEAD")
    trap.git.git("replace", first, trap.git.commit())
    assert cli_runner(f"plan --since {first}").changes.startswith("project acme/api\n")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a folder to somebody else")
def test_a_repository_of_somebody_else_is_read_where_the_user_trusts_it(
    trap: Trap, cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in (cli_runner.folder, cli_runner.folder / ".git"):
        os.chown(path, 65534, 65534)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    assert "detected dubious ownership" in cli_runner("plan --since HEAD").err
    settings = {"KEY_0": "core.fsmonitor", "VALUE_0": str(trap.program), "KEY_1": "Safe.Directory"}
    for key, value in {"COUNT": "2", **settings, "VALUE_1": str(cli_runner.folder)}.items():
        monkeypatch.setenv(f"GIT_CONFIG_{key}", value)
    assert cli_runner("plan --since HEAD").changes.startswith(READ)
    assert not trap.sprung()


def test_git_gets_none_of_our_tokens(trap: Trap, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = {"RECONCILER_NOTE_TOKEN": "note-token", "COPY": " ada-token\n", "URL": "https://ada:note-token@host"}
    for name, value in tokens.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("SHORT", "ada")
    trap.set(alias__env="!env")
    seen = run_git(trap.git.folder, ["env"]).stdout.decode()
    assert "SHORT=ada\n" in seen
    assert [line for line in seen.splitlines() if "-token" in line] == []


@pytest.mark.untraced
def test_links_from_folder_to_folder_are_followed_once(cli_runner: CliRunner) -> None:
    """Eight folders, each with eight links to the next: sixteen million paths to one file."""
    made = repository(cli_runner.folder)
    for number in range(8):
        folder = cli_runner.folder / "manifests" / f"f{number}"
        folder.mkdir(parents=True)
        for link in range(8):
            (folder / f"l{link}").symlink_to(f"../f{number + 1}")
    cli_runner.project("{milestones: {a: {}}}", name="manifests/f8/project.yaml")
    made.commit()
    cli_runner.project("{milestones: {a: {}, b: {}}}", name="manifests/f8/project.yaml")
    planned = cli_runner("plan --since HEAD")
    assert (planned.code, planned.err) == (0, "")
    assert planned.out.splitlines()[1] == '  + milestone "b"     manifests/f0/l0/l0/l0/l0/l0/l0/l0/l0/project.yaml:4'
    commit = made.commit()
    assert cli_runner("plan --out plan.json").code == 0
    assert f'"commit": "{commit}"' in (cli_runner.folder / "plan.json").read_text()
