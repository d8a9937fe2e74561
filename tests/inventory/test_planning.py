"""What a plan does with the inventory: deletions by absence, what stays and why, and what an apply will write down."""

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest

from reconciler.document.document import RunDocument
from reconciler.document.stored import load_plan
from reconciler.memory.apply_log import Apply
from reconciler.memory.inventory import Inventory, ObjectLine, TargetLine, inventory_text
from reconciler.memory.projection import Basis
from reconciler.memory.store import DEFAULT_COMMITTER, INVENTORY_BRANCH, Local, Store
from tests.building import KINDS
from tests.cli_runner import CliRunner
from tests.fleet.repository import Repository, repository
from tests.items import said

NO_LIST = "There is no inventory yet. Until the first apply, removing an object from the manifests does not delete it."


@pytest.fixture
def git(cli_runner: CliRunner) -> Repository:
    """The user's folder as a git repository without a commit."""
    return repository(cli_runner.folder)


def store(cli_runner: CliRunner) -> Store:
    service = cli_runner.sandbox.api_url.removesuffix("/api/v4")
    return Store(Local(cli_runner.folder, INVENTORY_BRANCH, DEFAULT_COMMITTER), service, [*KINDS])


def put(cli_runner: CliRunner, *lines: ObjectLine, paths: Mapping[str, str] | None = None, service: str = "") -> None:
    """Store a list with some lines, as if an apply had written them."""
    place = store(cli_runner)
    place = replace(place, service=service or place.service)
    paths = {"project 100": "acme/api"} if paths is None else paths

    def change(_: Inventory) -> Inventory:
        targets = {name: TargetLine(name, path) for name, path in paths.items()}
        return Inventory(place.service, targets=targets, objects={line.key: line for line in lines})

    place.write(place.read(), change, Apply(service=place.service, result=0))


def milestone(title: str, number: int, at: str) -> ObjectLine:
    return ObjectLine("project 100", "milestones", "milestones", title, number, at)


def saved_plan(cli_runner: CliRunner, *options: str) -> tuple[RunDocument, Basis]:
    """Return a saved plan, and what it says of the inventory."""
    cli_runner("plan --out plan.json", *options)
    saved = load_plan((cli_runner.folder / "plan.json").read_text(), KINDS)
    (cli_runner.folder / "plan.json").unlink()
    assert saved.inventory is not None
    return saved, saved.inventory


def live(cli_runner: CliRunner) -> dict[str, int]:
    entries = cli_runner.sandbox.state()["projects"][0]["milestones"]
    return {entry["title"]: entry["id"] for entry in entries}


@pytest.mark.untraced
def test_what_is_no_longer_declared_is_deleted_if_history_agrees(cli_runner: CliRunner, git: Repository) -> None:
    """Also before the removal is committed; the list costs no request, and the guard counts such a deletion."""
    cli_runner.project("{milestones: {one: {}, two: {}}}")
    first = git.commit()
    planned = cli_runner("plan")
    assert planned.out.splitlines()[-2:] == [
        NO_LIST,
        "Plan: 2 to create. 2 writes to apply; 2 requests were made to plan.",
    ]
    assert "There is no inventory yet" not in cli_runner("plan --no-inventory").out
    cli_runner("apply --yes")
    numbers = live(cli_runner)
    put(cli_runner, milestone("one", numbers["one"], first), milestone("two", numbers["two"], first))
    cli_runner.project("{milestones: {one: {}}}")
    cli_runner.sandbox.clear_log()
    planned = cli_runner("plan")
    assert planned.out == (
        "project acme/api\n"
        f'  - milestone "two"     removed from the manifests since {first[:7]}\n'
        "Plan: 1 to delete. 1 write to apply; 2 requests were "
        "made to plan.\n"
    )
    assert len(cli_runner.sandbox.log()) == 2
    ignored = cli_runner("plan --no-inventory").out
    assert ignored == "No changes: 1 target is in order, 1 unmanaged. 1 request was made to plan.\n"
    second = git.commit()
    saved, basis = saved_plan(cli_runner)
    assert basis.absent == (milestone("two", numbers["two"], first).key,)
    assert (basis.commit, basis.whole, basis.missing) == (second, True, ())
    assert basis.declared == {"project 100": ("milestones/milestones",)}
    assert [(str(target.target), target.id, target.done) for target in saved.targets] == [
        ("project acme/api", 100, True)
    ]
    assert cli_runner("drift").code == 2
    assert not saved_plan(cli_runner, "--target", "acme/*")[1].whole


@pytest.mark.untraced
def test_what_is_declared_is_not_called_undeclared_where_it_cannot_be_read(
    cli_runner: CliRunner, git: Repository
) -> None:
    cli_runner.project("{milestones: {one: {}, two: {}}}")
    git.commit()
    cli_runner("apply --yes")
    cli_runner.sandbox.set_faults(["status=403,method=GET,match=/milestones"])
    assert "no longer declared" not in cli_runner("plan").out
    cli_runner.project("{milestones: {one: {}}}")
    planned = cli_runner("plan")
    assert planned.out.splitlines()[-2:] == [
        "1 object no longer declared stays: the section could not be listed whole",
        "Plan: 1 problem. 2 requests were made to plan.",
    ]


@pytest.mark.untraced
def test_what_history_does_not_show_stays_and_one_line_says_why(cli_runner: CliRunner, git: Repository) -> None:
    cli_runner.project("{milestones: {one: {}, two: {}, three: {}, four: {}, five: {}}}")
    cli_runner("apply --yes")
    ids = live(cli_runner)
    cli_runner.project("{milestones: {one: {}, two: {}}}")
    first = git.commit()
    git.git("checkout", "-q", "-b", "other")
    elsewhere = git.commit()
    git.git("checkout", "-q", "main")
    put(
        cli_runner,
        milestone("one", ids["one"], ""),
        milestone("two", ids["two"], elsewhere),
        milestone("three", ids["three"], first),
        milestone("quattro", ids["four"], first),
        milestone("gone", 999, first),
        ObjectLine("project 100", "trigger_tokens", "trigger_tokens", "deploy", 5, first),
        ObjectLine("project 101", "milestones", "milestones", "x", 6, first),
        paths={"project 100": "acme/api", "project 101": "acme/web"},
    )
    cli_runner.project("{milestones: {five: {}}}")
    remarks = [
        f"1 object no longer declared stays: declared at {elsewhere[:7]}, which this branch does not contain",
        "1 object no longer declared stays: the manifests at " + first[:7] + " do not declare it",
        "1 object no longer declared stays: the manifests that declared it were never committed",
        "1 object no longer declared stays: the service shows the object by another name",
        "1 project is no longer declared; its 1 object stays",
        "trigger_tokens of 1 project is no longer declared; its 1 object stays (`trigger_tokens: {}` deletes it)",
    ]
    planned = cli_runner("plan --quiet --report json=plan.json --report markdown=plan.md --report html=plan.html")
    assert planned.out.splitlines()[:-1] == remarks
    assert said(json.loads((cli_runner.folder / "plan.json").read_text()), "stays") == remarks
    for name in ("plan.md", "plan.html"):
        assert "were never committed" in (cli_runner.folder / name).read_text()
        (cli_runner.folder / name).unlink()
    (cli_runner.folder / "plan.json").unlink()
    assert [target.done for target in saved_plan(cli_runner)[0].targets] == [False]


@pytest.mark.untraced
def test_a_run_with_other_inputs_deletes_nothing_by_the_list(
    cli_runner: CliRunner, git: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli_runner.project("{milestones: {one: {}}}")
    first = git.commit()
    cli_runner("apply --yes")
    put(cli_runner, milestone("one", live(cli_runner)["one"], first))
    cli_runner.project("{milestones: {}}")
    cli_runner.write("values.yaml", "a: 1\n")
    cli_runner.write("others/empty.yaml", "")
    assert "1 to delete" in cli_runner("plan ./manifests").out
    for options, named in (
        ("manifests others", "PATHS"),
        ("--values values.yaml --set a=1", "--values, --set"),
        ("--env STAGE", "--env"),
    ):
        stays = f"1 object no longer declared stays: this run has other inputs than reconciler.yaml: {named}\n"
        assert stays in cli_runner("plan " + options).out
    _, basis = saved_plan(cli_runner, "--env", "STAGE")
    assert (basis.commit, basis.whole) == ("", False)
    cli_runner.write("reconciler.yaml", "values: values.yaml\nenv: STAGE\n")
    assert "1 to delete" in cli_runner("plan --values values.yaml").out
    cli_runner.write("reconciler.yaml", "values: values.yaml\n")
    monkeypatch.setenv("RECONCILER_ENV", "STAGE")  # of the CI/CD settings, which are as good as the file
    assert "1 to delete" in cli_runner("plan").out
    git.git("config", "core.sparseCheckout", "true")
    assert "this checkout is sparse" in cli_runner("plan").out


@pytest.mark.untraced
def test_a_list_that_cannot_be_read_is_a_problem_and_an_apply_writes_nothing(
    cli_runner: CliRunner, git: Repository
) -> None:
    cli_runner.project("{milestones: {one: {}}}")
    git.commit()
    git.git("branch", INVENTORY_BRANCH)
    reason = f"the branch {INVENTORY_BRANCH} contains other files than inventory.jsonl"
    planned = cli_runner("plan")
    assert planned.code == 3
    assert (
        f"the inventory cannot be read: {reason}; name another `branch` under `inventory` in reconciler.yaml"
        in planned.out
    )
    assert cli_runner("plan --shard 2/2").code == 0
    refused = cli_runner("apply --yes")
    assert (refused.code, refused.out, live(cli_runner)) == (1, "", {})
    assert refused.err == (
        f"reconciler: nothing was changed: the inventory cannot be read: {reason}; name another `branch` under "
        "`inventory` in reconciler.yaml; or go on without it: --no-inventory\n"
    )
    assert cli_runner("apply --yes --no-inventory").code == 0
    cli_runner.write("reconciler.yaml", "inventory: false\n")
    assert cli_runner("plan").code == 0
    cli_runner.write("reconciler.yaml", "inventory: {remote: origin}\n")
    git.git("remote", "add", "upstream", "../upstream.git")
    assert cli_runner("plan").code == 1
    assert "has no remote 'origin'" in cli_runner("plan").err


@pytest.mark.untraced
def test_the_list_of_another_service_is_not_used(cli_runner: CliRunner, git: Repository) -> None:
    cli_runner.project("{milestones: {}}")
    git.commit()
    put(cli_runner, service="https://gitlab.example.com")
    planned = cli_runner("plan")
    assert planned.code == 0
    assert "The inventory is of https://gitlab.example.com, and is neither used nor written for" in planned.out
    cli_runner("plan --out plan.json")
    assert load_plan((cli_runner.folder / "plan.json").read_text(), KINDS).inventory is None


def test_outside_of_a_git_repository_there_is_none(cli_runner: CliRunner) -> None:
    cli_runner.project("{milestones: {}}")
    assert "outside of a git repository there is no inventory" in cli_runner("plan -v").err
    assert "inventory" not in cli_runner("plan").err


def test_a_malformed_line_is_ignored_with_a_warning(cli_runner: CliRunner, git: Repository) -> None:
    cli_runner.project("{milestones: {}}")
    git.commit()
    put(cli_runner)
    place = store(cli_runner)
    stored = place.read()
    text = inventory_text(stored.inventory) + "nonsense\n"
    place.place.put(text, stored.commit, Apply(service=place.service, result=0))
    planned = cli_runner("plan")
    assert (planned.code, "line 3 of the inventory is malformed and is ignored" in planned.err) == (0, True)


@pytest.mark.usefixtures("git")
def test_without_git_there_is_none_and_the_rest_is_done(cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    cli_runner.project("{milestones: {one: {}}}")
    monkeypatch.setenv("PATH", "")
    planned = cli_runner("plan --out plan.json")
    assert (planned.code, planned.err) == (0, "")
    assert planned.out.splitlines()[-2] == "git is not installed here: there is no inventory."
    for line in ("apply --plan plan.json --yes", "apply --yes"):
        applied = cli_runner(line)
        assert (applied.code, applied.err) == (0, "")
    assert cli_runner("log").out == "No apply is recorded yet.\n"
    assert [*live(cli_runner)] == ["one"]


@pytest.mark.untraced
@pytest.mark.usefixtures("git")
def test_before_the_first_commit_nothing_is_proved(cli_runner: CliRunner) -> None:
    cli_runner.project("{milestones: {one: {}}}")
    cli_runner("apply --yes")
    put(cli_runner, milestone("one", live(cli_runner)["one"], "1a" * 20))
    cli_runner.project("{milestones: {}}")
    assert "declared at 1a1a1a1, which this branch does not contain" in cli_runner("plan").out


@pytest.mark.untraced
def test_an_older_checkout_says_that_newer_manifests_were_applied(cli_runner: CliRunner, git: Repository) -> None:
    cli_runner.project("{milestones: {one: {}}}")
    git.commit()
    newer = git.commit("newer")
    place = store(cli_runner)
    place.write(
        place.read(), lambda now: replace(now, applied=newer), Apply(manifests=newer, service=place.service, result=0)
    )
    git.git("checkout", "-q", "HEAD~")
    assert saved_plan(cli_runner)[1].seen.applied == newer
    assert cli_runner("apply --yes").err == (
        f"newer manifests were applied, {newer[:7]}: run `git pull`, or a new pipeline; this apply may set back what "
        "they changed\n"
    )
    assert place.read().inventory.applied == newer


def test_a_list_that_cannot_be_read_comes_before_all_headings(cli_runner: CliRunner, git: Repository) -> None:
    """Below the heading of a group of projects it would be read as a problem of theirs."""
    cli_runner.write(
        "manifests/all.yaml",
        "apiVersion: reconciler/v1\nkind: ProjectSet\nmetadata: {name: all}\nselect: {group: acme}\n"
        "spec: {milestones: {one: {}}}\n",
    )
    git.commit()
    git.git("branch", INVENTORY_BRANCH)
    assert cli_runner("plan").out == (
        f"  ! the inventory cannot be read: the branch {INVENTORY_BRANCH} contains other files than inventory.jsonl; "
        "name another `branch` under `inventory` in reconciler.yaml\n"
        "4 projects                                                           (acme/api, acme/lib and 2 more)\n"
        '  + milestone "one"     manifests/all.yaml:5\n'
        "Plan: 4 to create, 1 problem. 4 writes to apply; 5 requests were made to plan.\n"
    )


def test_a_repository_that_git_refuses_is_not_taken_for_one_without_a_list(
    cli_runner: CliRunner, git: Repository
) -> None:
    """Such as one that belongs to somebody else, or whose configuration is damaged."""
    cli_runner.project("{milestones: {one: {}}}")
    git.commit()
    cli_runner.write(".git/config", "[core\n")
    planned = cli_runner("plan")
    assert planned.code == 3
    assert "the inventory cannot be read: bad config line 1 in file .git/config" in planned.out
    assert (cli_runner("apply --yes").code, live(cli_runner)) == (1, {})
