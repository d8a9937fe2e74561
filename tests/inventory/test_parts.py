"""Applies of a part of what is declared, or that end early: each changes the lines of what it did, and no other.

And lists that are not what they should be: none is used or written.
"""

from typing import Any

import pytest

from tests.inventory.checkout import Checkout

LIB, WEB = "manifests/lib.yaml", "manifests/web.yaml"

SET = """\
apiVersion: reconciler/v1
kind: ProjectSet
metadata: {{name: all}}
select: {{group: acme}}
spec: {{milestones: {}}}
"""


@pytest.fixture
def merged(user: Checkout) -> Checkout:
    """A user who has applied three projects; then two were changed, and one is no longer declared."""
    user.milestones("a", "b")
    user.milestones("x", "y", path="acme/lib", name=LIB)
    user.milestones("w", path="acme/web", name=WEB)
    user.commit("first")
    assert user.apply()[0] == 0
    user.milestones("a", "c")
    user.milestones("x", "z", path="acme/lib", name=LIB)
    (user.git.folder / WEB).unlink()
    user.commit("second")
    return user


def others(user: Checkout) -> list[dict[str, Any]]:
    """Return the lines of all targets but the first project."""
    return [line for line in user.inventory()[1:] if line["target"] != "project 100"]


def own(user: Checkout) -> list[str]:
    """Return the listed objects of the first project."""
    return [line.removeprefix("project 100 ") for line in user.listed() if line.startswith("project 100 ")]


@pytest.mark.untraced
def test_a_part_of_an_apply_changes_no_line_of_the_rest(merged: Checkout) -> None:
    before, rest = merged.inventory(), others(merged)
    assert merged.apply("--no-inventory")[0] == 0
    assert (merged.live(), merged.inventory()) == (["a", "b", "c"], before)
    merged.cli.sandbox.set_faults(["status=403,method=DELETE,match=acme%2Fapi/milestones"])
    code, lines = merged.apply("--canary acme/api --report json=../report.json")
    skipped = '  - milestone "y"                             skipped: the canary is not in order: project acme/api'
    assert (code, skipped in lines) == (3, True)
    assert (own(merged), others(merged)) == (["a <first>", "b <first>", "c <second>"], rest)
    merged.cli.sandbox.set_faults([])
    assert merged.apply("--target acme/api --section milestones")[0] == 0
    assert (own(merged), others(merged)) == (["a <first>", "c <second>"], rest)
    assert merged.apply("--retry-failed ../report.json")[0] == 0
    assert [line["name"] for line in others(merged) if "section" in line] == ["x", "z", "w"]
    assert merged.apply()[0] == 0
    assert merged.listed() == [
        "project 100 a <first>",
        "project 100 c <second>",
        "project 101 x <first>",
        "project 101 z <second>",
    ]
    assert [merged.live(f"acme/{name}") for name in ("api", "lib", "web")] == [["a", "c"], ["x", "z"], ["w"]]


@pytest.mark.untraced
def test_an_apply_that_a_signal_ends_writes_down_what_it_did(user: Checkout) -> None:
    user.declare("{trigger_tokens: {t: {}, u: {}}}")
    user.commit("first")
    user.write("../end", "#!/bin/sh\nkill -TERM $PPID\nwhile ! test -s ../report.json; do sleep 0.01; done\n")
    (user.git.folder / "../end").chmod(0o755)
    assert user.apply("--concurrency 1 --tokens-command ../end --report json=../report.json") == (
        143,
        [
            "project acme/api",
            '  + trigger token "t"                         done',
            '  + trigger token "u"                         skipped: the run ended before this change',
            "Finishing the requests in flight; a second signal stops at once.",
            "To go on, run the same command again: what was done is not done again.",
        ],
    )
    assert user.listed() == ["project 100 t <first>"]
    user.declare("{trigger_tokens: {}}")
    user.commit("second")
    assert user.apply() == (0, ["project acme/api", '  - trigger token "t"                         done'])


@pytest.mark.untraced
def test_an_archived_member_of_a_set_has_not_left(user: Checkout) -> None:
    user.write("manifests/set.yaml", SET.format("{s: {}, t: {}}"))
    user.commit("first")
    assert user.apply()[0] == 0
    user.change(lambda project: project.update(archived=True), "acme/lib")
    user.write("manifests/set.yaml", SET.format("{s: {}}"))
    user.commit("second")
    code, lines = user.apply()
    assert (code, [line for line in lines if "declared" in line]) == (0, [])
    assert (user.live("acme/api"), user.live("acme/lib")) == (["s"], ["s", "t"])
    assert [line for line in user.listed() if line.startswith("project 101 ")] == [
        "project 101 s <first>",
        "project 101 t <first>",
    ]
    user.change(lambda project: project.update(archived=False), "acme/lib")
    assert user.apply() == (0, ["project acme/lib", '  - milestone "t"                             done'])


@pytest.mark.untraced
def test_the_list_of_another_service_is_left_alone_and_another_branch_is_used(merged: Checkout) -> None:
    merged.forge(lambda lines: lines[0].update(service="https://gitlab.example.com"))
    before = merged.inventory()
    code, lines = merged.apply()
    assert (code, merged.live(), merged.inventory()) == (0, ["a", "b", "c"], before)
    assert [line for line in lines if "neither used nor written" in line] == [
        "The inventory is of https://gitlab.example.com, and is neither used nor written for "
        f"{merged.cli.sandbox.api_url.removesuffix('/api/v4')}: name another `branch` under `inventory` in "
        "reconciler.yaml."
    ]
    merged.write("reconciler.yaml", "inventory: {branch: reconciler/staging}\n")
    merged.commit("third")
    assert merged.apply() == (0, [])
    assert (merged.inventory(), merged.git.git("show", "reconciler/staging:inventory.jsonl").count('"name"')) == (
        before,
        4,
    )


@pytest.mark.untraced
def test_a_list_without_its_first_line_is_not_used(merged: Checkout) -> None:
    merged.forge(lambda lines: lines.pop(0))
    before = merged.inventory()
    problem = (
        "  ! the inventory cannot be read: its first line is malformed; restore inventory.jsonl from the "
        "branch's history, or delete the branch"
    )
    code, lines = merged.plan()
    assert (code, lines[0]) == (3, problem)
    merged.cli.sandbox.clear_log()
    code, lines = merged.apply()
    assert (code, merged.cli.sandbox.log(), merged.inventory()) == (1, [], before)
    assert lines[0].endswith("or go on without it: --no-inventory")


@pytest.mark.untraced
def test_an_apply_and_its_revert_are_on_the_remote_for_all_clones(clone: Checkout) -> None:
    clone.milestones("a")
    clone.commit("first")
    clone.git.git("push", "--quiet", "origin", "main")
    assert clone.apply()[0] == 0
    assert clone.listed() == ["project 100 a <first>"]
    assert clone.run("revert --last --yes")[0] == 0
    assert (clone.listed(), clone.live()) == ([], [])
    shown = clone.clone("bob").run("log")[1]
    assert [line.split("  ")[3].strip() for line in shown[1:]] == ["1 deleted", "1 created"]
