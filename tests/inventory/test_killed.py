"""A run that was killed while it wrote: `log` tells of it, and `revert --last` finishes a revert."""

import json
import os
import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from reconciler.errors import OutputFailed
from reconciler.memory.apply_log import KilledRun
from reconciler.memory.clone import Clone
from reconciler.memory.store import INVENTORY_BRANCH as BRANCH
from tests.inventory.checkout import Checkout
from tests.inventory.killing import Killed, mortal

BEGAN = re.compile(" (that )?began at [0-9 :-]+ UTC,?")

RUN = KilledRun(datetime(2026, 12, 1, 10, tzinfo=UTC), "a" * 40, "b" * 40)


def killed(user: Checkout, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    """Run a command that is killed after its first write."""
    with mortal(monkeypatch, 1), suppress(Killed):
        user.run(line)


def told(user: Checkout) -> list[str]:
    """Return what the log tells of runs that were killed, without times."""
    code, lines = user.run("log")
    assert code == 0
    return [BEGAN.sub("", line) for line in lines if BEGAN.search(line)]


def test_the_log_tells_of_a_run_that_was_killed_until_another_ends(
    user: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    user.milestones("a", "b")
    killed(user, monkeypatch, "apply --yes")
    assert told(user) == ["An apply was killed; to see what is left: reconciler plan"]
    user.commit("first")
    killed(user, monkeypatch, "apply --yes")
    assert told(user) == [
        "An apply of <first> was killed; to see what is left: reconciler plan",
        "An apply was killed; to see what is left: reconciler plan",
    ]
    assert user.run("log")[1][-1] == "No apply is recorded yet."
    assert user.apply()[0] == 0
    assert told(user) == []


def test_what_a_killed_apply_did_is_undone_by_two_more(user: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    user.milestones("a", "b")
    user.commit("first")
    assert user.apply()[0] == 0
    user.milestones("a", "b", "c", "d")
    user.commit("second")
    killed(user, monkeypatch, "apply --yes")
    assert [BEGAN.sub("", line) for line in user.run("revert --last")[1] if "killed" in line] == [
        "a later apply, which was killed and has no report: to undo that, apply again, revert its commit, and apply"
    ]
    assert user.apply()[0] == 0
    user.milestones("a", "b")
    user.commit("back")
    assert (user.apply()[0], user.live()) == (0, ["a", "b"])


def test_a_revert_that_was_killed_is_finished_before_anything_else_is_undone(
    user: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    user.milestones("a", "b")
    user.commit("first")
    assert user.apply()[0] == 0
    first = user.git.git("rev-parse", BRANCH)
    user.milestones("a", "b", "c")
    user.commit("second")
    assert user.apply()[0] == 0
    killed(user, monkeypatch, f"revert {first} --yes")
    command = f"reconciler revert {first[:7]} --yes"
    assert told(user) == [f"A revert of the apply {first[:7]} was killed; to finish it: {command}"]
    code, lines = user.run("log --format json")
    (run,) = json.loads("\n".join(lines))["killed"]
    assert (code, run["reverts"]) == (0, first)
    assert user.run("revert")[1][0].startswith("A revert of the apply ")
    assert user.run("revert --format json")[1] == lines
    assert f"This is a revert of the apply {first[:7]}" in user.run("revert --last --yes")[1]
    assert (told(user), user.live()) == ([], ["c"])


def test_a_mark_is_of_a_killed_run_once_nobody_holds_it(tmp_path: Path) -> None:
    clone = Clone(tmp_path / "reconciler")
    with clone.marked(RUN):
        assert clone.killed == []
    assert clone.killed == []
    with suppress(Killed), clone.marked(RUN):
        raise Killed
    assert clone.killed == [RUN]
    with suppress(OutputFailed), clone.marked(KilledRun(RUN.began_at + timedelta(hours=1))):
        raise OutputFailed("the error tells of this run, and not of the one before")
    assert clone.killed == [RUN]
    (tmp_path / "reconciler/runs/broken").write_text("[")
    assert clone.killed == [RUN]
    with clone.marked(RUN):
        pass
    assert clone.killed == []


def test_the_latest_of_two_killed_runs_is_first_even_if_the_service_told_it_an_earlier_time(tmp_path: Path) -> None:
    clone = Clone(tmp_path / "reconciler")
    later = KilledRun(RUN.began_at - timedelta(seconds=1))
    for age, run in ((60, RUN), (0, later)):
        with suppress(Killed), clone.marked(run):
            raise Killed
        for mark in (tmp_path / "reconciler/runs").iterdir():
            os.utime(mark, ns=(mark.stat().st_atime_ns, mark.stat().st_mtime_ns - age * 10**9))
    assert clone.killed == [later, RUN]


def test_a_run_goes_on_where_no_mark_can_be_written(tmp_path: Path) -> None:
    clone = Clone(tmp_path / "reconciler")
    (tmp_path / "reconciler").touch()
    with clone.marked(RUN):
        assert clone.killed == []
