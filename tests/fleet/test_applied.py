"""`--since applied` and `apply --mark-applied`: whatever was not applied comes up again."""

from pathlib import Path

import pytest

from tests.cli_runner import CliRunner
from tests.fleet.repository import Repository, repository

REF = "refs/reconciler/applied"

PROJECT = """\
apiVersion: reconciler/v1
kind: Project
metadata: {path: acme/api, labels: {team: a}}
spec: {milestones: {a: {description: new}}}
"""

FETCH = f"git fetch origin +{REF}:{REF}"


def marked(git: Repository) -> str:
    return git.git("for-each-ref", "--format=%(objectname)", REF)


def titles(cli_runner: CliRunner) -> list[str]:
    return sorted(each["title"] for each in cli_runner.sandbox.state()["projects"][0]["milestones"])


@pytest.fixture
def first(cli_runner: CliRunner, git: Repository) -> str:
    """The first commit, which was applied and marked."""
    cli_runner.project("{milestones: {a: {}, b: {}, c: {}}}")
    commit = git.commit()
    done = cli_runner("apply --yes --since applied --mark-applied")
    assert (done.code, done.err) == (
        0,
        f"--since applied: {REF} does not exist in this clone: everything is planned, and nothing deleted; if another "
        f"clone has it, `git fetch` it first: {FETCH}\nCommit {commit[:12]} is marked as applied.\n",
    )
    assert marked(git) == commit
    return commit


def test_a_deletion_that_failed_comes_up_again(cli_runner: CliRunner, git: Repository, first: str) -> None:
    cli_runner.project("{milestones: {a: {}, b: {}}}")
    git.commit()
    cli_runner.sandbox.set_faults(["status=403,method=DELETE,times=1"])
    done = cli_runner("apply --yes --since applied --mark-applied")
    assert (done.code, done.err) == (3, "This apply is not marked as applied: not everything was done.\n")
    assert (marked(git), titles(cli_runner)) == (first, ["a", "b", "c"])
    cli_runner.project("{milestones: {a: {}, b: {}, d: {}}}")
    commit = git.commit("Something else")
    planned = cli_runner("plan --since applied")
    assert planned.out.splitlines()[:3] == [
        "project acme/api",
        '  + milestone "d"     manifests/project.yaml:4',
        '  - milestone "c"     manifests/project.yaml:4',
    ]
    assert cli_runner("apply --yes --since applied --mark-applied").code == 0
    assert (marked(git), titles(cli_runner)) == (commit, ["a", "b", "d"])


@pytest.mark.usefixtures("first")
def test_an_apply_that_never_ran_comes_up_again(cli_runner: CliRunner, git: Repository) -> None:
    cli_runner.project("{milestones: {a: {}, b: {}}}")
    git.commit()
    assert cli_runner("plan --since applied --out never.json").code == 0
    cli_runner.project("{milestones: {a: {}}}")
    second = git.commit()
    assert cli_runner("plan --since applied --out plan.json").code == 0
    git.commit("Meanwhile, on main")
    done = cli_runner("apply --plan plan.json --yes --mark-applied")
    assert (done.code, done.err) == (0, f"Commit {second[:12]} is marked as applied.\n")
    assert (marked(git), titles(cli_runner)) == (second, ["a"])
    assert cli_runner("plan --since applied --detailed-exitcode").code == 0


@pytest.mark.untraced
@pytest.mark.parametrize(
    "options", ["--target acme/api", "--exclude acme/lib", "--section milestones", "--selector team=a", "--retry-failed r.json"]
)  # fmt: skip
def test_an_apply_that_is_narrowed_is_not_marked(
    cli_runner: CliRunner, git: Repository, first: str, options: str
) -> None:
    cli_runner("apply --yes --report json=r.json")
    cli_runner.write("manifests/project.yaml", PROJECT)
    git.commit()
    done = cli_runner(f"apply --yes --since applied --mark-applied {options}")
    assert (done.code, done.err.splitlines()[-1]) == (
        0,
        "This apply is not marked as applied: it is narrowed to some targets, sections or changes.",
    )
    assert marked(git) == first


def test_a_shard_alone_is_not_marked_and_the_merged_plan_is(cli_runner: CliRunner, git: Repository, first: str) -> None:
    cli_runner.project("{milestones: {a: {}, b: {}, c: {}, d: {}}}")
    second = git.commit()
    for number in (1, 2):
        assert cli_runner(f"plan --since applied --shard {number}/2 --out {number}.json").code == 0
    assert cli_runner("merge-plans 1.json 2.json --out whole.json").code == 0
    for number in (1, 2):
        done = cli_runner(f"apply --plan {number}.json --yes --mark-applied")
        assert done.err == f"This apply is not marked as applied: it is shard {number}/2 alone.\n"
    assert marked(git) == first
    state = cli_runner.sandbox.state()
    state["projects"][0]["milestones"].pop()
    cli_runner.sandbox.replace_state(state)
    done = cli_runner("apply --plan whole.json --yes --mark-applied")
    assert (done.code, done.err) == (0, f"Commit {second[:12]} is marked as applied.\n")
    assert marked(git) == second


@pytest.mark.usefixtures("first")
def test_only_manifests_as_committed_are_marked(cli_runner: CliRunner, git: Repository) -> None:
    cli_runner.write("values.yaml", "a: 1")
    git.commit("Nothing that is declared")
    again = git.git("rev-parse", "HEAD")
    changed = cli_runner.write("manifests/project.yaml", PROJECT)
    not_marked = "This apply is not marked as applied: {} is not as committed.\n"
    line = "apply --yes --since applied --mark-applied --values values.yaml"
    assert cli_runner(line).err == not_marked.format("manifests/project.yaml")
    assert cli_runner("plan --since applied --out plan.json").code == 0
    assert cli_runner("apply --yes --mark-applied --plan plan.json").err == (
        "This apply is not marked as applied: the plan was narrowed, or its manifests were not as committed.\n"
    )
    git.git("checkout", "--quiet", str(changed))
    other = cli_runner.write("manifests/other.yaml", PROJECT.replace("acme/api", "acme/lib"))
    assert cli_runner(line).err == not_marked.format("manifests/other.yaml")
    other.unlink()
    cli_runner.write("values.yaml", "a: 2")
    assert cli_runner(line).err == not_marked.format("values.yaml")
    git.git("checkout", "--quiet", "values.yaml")
    assert cli_runner(line).err == f"Commit {again[:12]} is marked as applied.\n"
    assert marked(git) == again


def test_a_manifest_that_is_gone_and_committed_is_not_as_committed(
    cli_runner: CliRunner, git: Repository, first: str
) -> None:
    cli_runner.project("{milestones: {x: {}}}", "acme/lib", "manifests/lib.yaml")
    git.commit()
    Path("manifests/lib.yaml").unlink()
    done = cli_runner("apply --yes --since applied --mark-applied")
    assert done.err == "This apply is not marked as applied: manifests/lib.yaml is not as committed.\n"
    assert marked(git) == first


def test_problems_are_not_marked_even_if_they_are_allowed(cli_runner: CliRunner, git: Repository, first: str) -> None:
    cli_runner.project("{milestones: {x: {}}}", "acme/none", "manifests/none.yaml")
    git.commit()
    done = cli_runner("apply --yes --since applied --mark-applied --allow-problems")
    assert (done.code, done.err) == (0, "This apply is not marked as applied: not everything was done.\n")
    assert marked(git) == first


@pytest.mark.usefixtures("first")
def test_marking_without_since_applied_is_warned_of_and_runs_no_hook(cli_runner: CliRunner, git: Repository) -> None:
    hook = cli_runner.write(".git/hooks/reference-transaction", "#!/bin/sh\ntouch hooked\n")
    hook.chmod(0o755)
    git.git("config", "core.hooksPath", ".git/hooks")
    second = git.commit()
    Path("hooked").unlink()
    done = cli_runner("apply --yes --mark-applied")
    assert (done.code, done.err) == (
        0,
        "--mark-applied without --since applied forgets what is no longer declared since the last mark: it is not "
        f"deleted now, and not later\nCommit {second[:12]} is marked as applied.\n",
    )
    assert (marked(git), Path("hooked").exists()) == (second, False)


def test_nothing_is_applied_where_it_cannot_be_marked(
    cli_runner: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli_runner.project("{milestones: {a: {}}}")
    assert cli_runner("apply --yes --mark-applied").err == (
        "reconciler: --mark-applied: manifests is not in a git checkout; run this in one, or omit it\n"
    )
    made = repository(tmp_path)
    assert "its manifests are in no commit" in cli_runner("apply --yes --mark-applied").err
    made.commit()
    (tmp_path / ".git/refs/reconciler").mkdir()
    (tmp_path / ".git/refs/reconciler/applied.lock").touch()
    done = cli_runner("apply --yes --mark-applied")
    assert done.code == 1
    assert "was applied, and could not be marked as applied: " in done.err
    monkeypatch.setenv("PATH", str(tmp_path))
    done = cli_runner("apply --yes --mark-applied")
    assert done.err == "reconciler: --mark-applied needs git, which is not installed here\n"


def test_a_configuration_that_is_not_committed_marks_no_commit(
    cli_runner: CliRunner, git: Repository, first: str
) -> None:
    """The commit would not lead to what was applied: it has other paths, or other values."""
    not_marked = "This apply is not marked as applied: reconciler.yaml is not as committed.\n"
    cli_runner.write("reconciler.yaml", "paths: manifests\n")
    assert marked(git) == first
    done = cli_runner("apply --yes --since applied --mark-applied")
    assert (done.code, done.err) == (0, not_marked)
    commit = git.commit()
    assert (
        cli_runner("apply --yes --since applied --mark-applied").err == f"Commit {commit[:12]} is marked as applied.\n"
    )
    cli_runner.write("reconciler.yaml", "paths: [manifests]\n")
    assert cli_runner("apply --yes --since applied --mark-applied").err == not_marked
    (cli_runner.folder / "reconciler.yaml").unlink()
    assert cli_runner("apply --yes --since applied --mark-applied").err == not_marked
    assert marked(git) == commit
