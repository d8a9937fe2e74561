"""`--since applied`: only targets are planned that the inventory does not have as they are declared now."""

import json
import os
import subprocess
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from reconciler.manifests import Inputs, Member, read_manifests
from reconciler.memory.effective import digest_of
from reconciler.memory.inventory import Inventory, TargetLine, inventory_text
from reconciler.model.targets import Level
from tests.building import KINDS
from tests.cli_runner import CliRunner
from tests.fleet.repository import Repository

BRANCH = "refs/heads/reconciler/applied"
TODAY = datetime.now(UTC).date()
NUMBERS = {"acme/api": 100, "acme/lib": 101, "acme/web": 102, "acme/tools/cli": 103}
PLANNED = "plan --since applied --format json"


def store(git: Repository, service: str, again: date | None = None, discovered: tuple[str, ...] = ()) -> None:
    """Put a list into the repository, as if all that is declared now had been applied."""
    manifests = read_manifests(Inputs([Path("manifests")], KINDS))
    if manifests.index.groups:
        members = [Member(path, id=NUMBERS[path]) for path in discovered]
        manifests = manifests.with_discovered(dict.fromkeys(manifests.index.groups, members), {})
    lines = []
    for target in manifests.desired.targets:
        ref, level = target.target.ref, target.target.level
        if level is Level.USER:
            lines.append(TargetLine("user", "", digest_of(target), again))
        else:
            number = ref if isinstance(ref, int) else NUMBERS[str(ref)]
            lines.append(TargetLine(f"{level} {number}", str(ref), digest_of(target), again))
    (git.folder / ".git/list").write_text(
        inventory_text(Inventory(service, targets={line.target: line for line in lines}))
    )
    entry = f"100644 blob {git.git('hash-object', '-w', '.git/list')}\tinventory.jsonl\n"
    tree = subprocess.run(["git", "mktree"], cwd=git.folder, input=entry, capture_output=True, text=True, check=True)
    git.git("update-ref", BRANCH, git.git("commit-tree", tree.stdout.strip(), "-m", "apply: everything"))


@pytest.fixture
def service(cli_runner: CliRunner) -> str:  # noqa: ARG001 - it starts the service
    """The service's URL, as the list names it."""
    return os.environ["RECONCILER_API_URL"].removesuffix("/api/v4")


def planned(cli_runner: CliRunner, line: str = PLANNED) -> list[str]:
    done = cli_runner(line)
    assert done.code == 0, done.err
    return [str(each["ref"]) for each in json.loads(done.out)["targets"]]


@pytest.mark.untraced
def test_what_was_applied_as_it_is_declared_is_left_out(cli_runner: CliRunner, git: Repository, service: str) -> None:
    """By the path that the list knows, by ID, and the user; neither a commit nor other words for the same count."""
    cli_runner.project("{milestones: {a: {}, b: {}}}")
    text = (cli_runner.folder / "manifests/project.yaml").read_text()
    cli_runner.write("manifests/lib.yaml", text.replace("path: acme/api", "id: 101"))
    cli_runner.write("manifests/web.yaml", text.replace("path: acme/api", "path: acme/web"))
    cli_runner.write(
        "manifests/user.yaml", "apiVersion: reconciler/v1\nkind: User\nspec: {notification_settings: {level: watch}}\n"
    )
    git.commit()
    store(git, service)
    cli_runner.sandbox.clear_log()
    assert planned(cli_runner) == []
    assert cli_runner.sandbox.log() == []
    assert planned(cli_runner, f"{PLANNED} --all") == ["None", "acme/api", "acme/web", "101"]
    cli_runner.write(
        "manifests/project.yaml", text.replace("{a: {}, b: {}}", "{b: {}, a: {}}").replace("acme/api", "ACME/api")
    )
    assert planned(cli_runner) == []
    cli_runner.write("manifests/lib.yaml", text.replace("path: acme/api", "id: 101").replace("b: {}", "c: {}"))
    assert planned(cli_runner) == ["101"]
    cli_runner.write("manifests/web.yaml", text.replace("path: acme/api", "path: acme/tools/cli"))
    assert planned(cli_runner) == ["acme/tools/cli", "101"], "it was never applied"


@pytest.mark.untraced
@pytest.mark.parametrize(("days", "expected"), [(-1, ["acme/api"]), (0, ["acme/api"]), (2, [])])
def test_what_time_has_changed_comes_up(
    cli_runner: CliRunner, git: Repository, service: str, days: int, expected: list[str]
) -> None:
    cli_runner.project("{milestones: {a: {}}}")
    git.commit()
    store(git, service, TODAY + timedelta(days=days))
    assert planned(cli_runner) == expected


@pytest.mark.untraced
def test_whatever_changes_the_effective_spec_counts(cli_runner: CliRunner, git: Repository, service: str) -> None:
    cli_runner.write(
        "manifests/set.yaml",
        "apiVersion: reconciler/v1\nkind: ProjectSet\nmetadata: {name: all}\nselect: {group: acme}\n"
        "spec: {milestones: {'{name} 1': {}}}\n",
    )
    git.commit()
    store(git, service, discovered=("acme/api", "acme/lib", "acme/tools/cli"))
    assert planned(cli_runner) == ["acme/web"], "it has come to the group since then"
    text = "apiVersion: reconciler/v1\nkind: Project\nmetadata: {id: 101}\nspec: {milestones: {'{path}': {}}}\n"
    cli_runner.write("manifests/lib.yaml", text)
    assert planned(cli_runner) == ["acme/web", "101"]


@pytest.mark.untraced
def test_without_a_list_everything_is_planned(cli_runner: CliRunner, git: Repository, service: str) -> None:
    cli_runner.project("{milestones: {a: {}}}")
    git.commit()
    assert planned(cli_runner) == ["acme/api"]
    store(git, "https://elsewhere.example.com")
    assert planned(cli_runner) == ["acme/api"]
    store(git, service)
    assert planned(cli_runner) == []
    done = cli_runner("plan --since applied --no-inventory")
    assert '  + milestone "a"' in done.out
    assert done.err == (
        "--since applied: this run has no inventory, and plans all targets; an inventory takes a git repository, and "
        "neither --no-inventory nor `inventory: false`\n"
    )
