"""What strangers write, at the door of the command line: exit codes by the contract, and never an internal error.

Whoever can push to a branch, or fill an artifact or a cache, writes these: the inventory and its commits, saved plans,
reports, baselines, histories and journals, and `reconciler.yaml`.
"""

import subprocess
from collections.abc import Iterable, Iterator
from contextlib import chdir
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli_runner import CliRunner
from tests.fleet.repository import repository
from tests.fuzz.mutating import controls, draw, garbled, parsed, resealed
from tests.fuzz.strangers import (
    CONFIGURATION_SEEDS,
    IDENTITY_SEEDS,
    INVENTORY_SEEDS,
    JSON_SEEDS,
    LINE_SEEDS,
    MESSAGE_SEEDS,
)
from tests.fuzz.test_documents import Scene
from tests.inventory.checkout import Checkout

pytestmark = pytest.mark.untraced
"""Others cover the same lines; tracing would take as long as the tests."""

SEED = 20261127
SECRETS = ("ada-token", "bob-token", "root-token", "glptt-")


@pytest.fixture
def user(cli_runner: CliRunner, tmp_path: Path) -> Checkout:
    """A user who has applied two milestones, and then declares one of them no more."""
    folder = tmp_path / "home" / "fleet"  # two folders above it, there is nothing of other tests
    made = Checkout(replace(cli_runner, folder=folder), repository(folder))
    made.milestones("a", "b")
    made.commit("first")
    assert made.apply()[0] == 0
    made.milestones("a")
    made.commit("second")
    return made


def ends_well(user: Checkout, line: str, codes: Iterable[int]) -> None:
    """Run a command, which must end in one of some ways, and show nothing but text."""
    with chdir(user.git.folder):
        done = user.cli(line)
    assert done.code in codes, (line, done)
    assert "internal error" not in done.err, done.err
    assert "Traceback" not in done.err, done.err
    assert not controls(done.out + done.err), line
    assert not [secret for secret in SECRETS if secret in done.out + done.err], line


def git(user: Checkout, arguments: str, sent: bytes = b"") -> str:
    command = ["git", *arguments.split()]
    done = subprocess.run(command, cwd=user.git.folder, input=sent, capture_output=True, check=True)
    return done.stdout.decode().strip()


def put(user: Checkout, text: bytes, message: bytes = b"apply: 1 created\n", person: bytes = IDENTITY_SEEDS[0]) -> None:
    """Make a text the list of the inventory, by a commit with a message and an author."""
    blob = git(user, "hash-object -w --stdin", text)
    tree = git(user, "mktree", f"100644 blob {blob}\tinventory.jsonl\n".encode())
    commit = b"tree %b\nauthor %b\ncommitter %b\n\n%b" % (tree.encode(), person, person, message)
    name = git(user, "hash-object -t commit -w --stdin --literally", commit)
    git(user, f"update-ref refs/heads/reconciler/applied {name}")


def lists(text: str) -> Iterator[bytes]:
    """Yield what may stand in the branch of the inventory."""
    chance = draw(SEED)
    yield from INVENTORY_SEEDS
    yield text.encode() + "\n".join(LINE_SEEDS).encode("utf-8", "surrogatepass")
    for _ in range(8):
        mutant = garbled(text, chance).encode("utf-8", "surrogateescape")
        yield mutant + b"\n" + chance.choice(LINE_SEEDS).encode("utf-8", "surrogatepass")


def test_any_list_is_read_or_a_problem_and_deletes_nothing_that_was_not_declared(user: Checkout) -> None:
    text = git(user, "show reconciler/applied:inventory.jsonl") + "\n"
    chance = draw(SEED)
    for content in lists(text):
        put(user, content)
        ends_well(user, "plan", (0, 3))
        ends_well(user, chance.choice(["drift", "plan --since applied", "log", "revert"]), (0, 1, 2, 3))
        ends_well(user, "apply --yes", (0, 1, 3))
        assert "a" in user.live(), content
    put(user, text.encode())
    assert user.apply()[0] == 0
    assert user.live() == ["a"]


def test_any_commit_of_the_list_is_an_apply_of_which_little_is_known(user: Checkout) -> None:
    text = git(user, "show reconciler/applied:inventory.jsonl").encode()
    chance = draw(SEED)
    mutants = [garbled(MESSAGE_SEEDS[7].decode(), chance).encode("utf-8", "surrogateescape") for _ in range(6)]
    for message in (*MESSAGE_SEEDS, *mutants):
        put(user, text, message.replace(b"\0", b" "), chance.choice(IDENTITY_SEEDS))
        ends_well(user, chance.choice(["log", "log --format json", "revert"]), (0,))
        ends_well(user, chance.choice(["revert --last", "revert --last --yes", "revert 1a1a1a1"]), (0, 1, 3))
        ends_well(
            user, chance.choice(["drift --report fleet=x.html", "plan --report html=x.html", "drift --who"]), (0, 2)
        )
        (user.git.folder / "x.history.json").unlink(missing_ok=True)
    assert user.live() == ["a", "b"]


def test_any_document_is_shown_or_refused(cli_runner: CliRunner) -> None:
    scene = Scene(cli_runner)
    chance = draw(SEED)
    documents = [*JSON_SEEDS]
    for whole in (scene.plan, scene.report):
        documents += [resealed(whole, chance).encode("utf-8", "surrogatepass") for _ in range(5)]
    for text in documents:
        Path("mutant.json").write_bytes(text)
        scene.fresh()
        for line in (
            "show mutant.json",
            "show mutant.json --since plan.json",
            "apply --plan mutant.json --yes",
            "drift --baseline mutant.json",
            "issue mutant.json --project acme/api",
            "merge mutant.json part2.json",
            "revert mutant.json",
            "apply --retry-failed mutant.json --yes",
        ):
            scene.see(line)


def test_any_history_and_any_journal_is_told_of_and_stays(cli_runner: CliRunner) -> None:
    scene = Scene(cli_runner)
    scene.see("drift --report fleet=fleet.html")
    history = parsed(Path("fleet.history.json").read_text())
    chance = draw(SEED)
    for text in (*JSON_SEEDS, *(resealed(history, chance).encode("utf-8", "surrogatepass") for _ in range(5))):
        Path("fleet.history.json").write_bytes(text)
        scene.see("drift --report fleet=fleet.html", "fleet.html")
    for text in JSON_SEEDS:
        Path("journal").write_bytes(text)
        scene.see("apply --yes --journal journal --target acme/lib --section milestones")


def test_any_configuration_is_used_or_refused(user: Checkout) -> None:
    chance = draw(SEED)
    whole = "inventory: {branch: reconciler/staging}\npaths: [manifests]\nconcurrency: 4\nset: {a: b}\nenv: [HOME]\n"
    mutants = [garbled(whole, chance).encode("utf-8", "surrogateescape") for _ in range(8)]
    for text in (*CONFIGURATION_SEEDS, *mutants):
        (user.git.folder / "reconciler.yaml").write_bytes(text)
        for line in ("validate", "plan", "log"):
            ends_well(user, line, (0, 1, 2, 3, 64))
        git(user, "add reconciler.yaml")
        git(user, "-c user.name=x -c user.email=x commit --quiet --allow-empty -m then")
        (user.git.folder / "reconciler.yaml").unlink()
        ends_well(user, "plan --since HEAD", (0, 1, 3, 64))
    assert "a" in user.live()
