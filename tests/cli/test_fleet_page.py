"""`--report fleet=FILE`: a page about the fleet, and beside it a history that no run spoils."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from typing import Any

import pytest

from reconciler.document.checksum import with_checksum
from reconciler.document.document import utc
from reconciler.reports import fleet
from reconciler.reports.history import History, load_history, save_history
from tests.cli_runner import CliRunner

PAGE, HISTORY = Path("public/index.html"), Path("public/index.history.json")
REPORT = f"--report fleet={PAGE}"


@pytest.fixture(autouse=True)
def _service(cli_runner: CliRunner) -> None:
    cli_runner.service(milestones=[])
    cli_runner.project("{milestones: {a: {}, b: {}}, trigger_tokens: {}}")
    cli_runner.project("{milestones: {a: {}}}", "acme/lib", "manifests/lib.yaml")


def history(cli_runner: CliRunner) -> History:
    return load_history(HISTORY.read_text(), cli_runner.sandbox.api_url)


def wait(cli_runner: CliRunner, days: int) -> None:
    """Let the history become some days older."""
    past, age = history(cli_runner), timedelta(days=days)
    runs = (replace(each, at=each.at - age) for each in past.runs)
    found = (replace(each, since=each.since - age, seen=each.seen - age) for each in past.differences)
    HISTORY.write_text(save_history(replace(past, runs=tuple(runs), differences=tuple(found))))


def data() -> Mapping[str, Any]:
    found = re.search(r'id="data">(.*?)</script>', PAGE.read_text())
    assert found
    content: Mapping[str, Any] = json.loads(found[1])
    return content


def ages() -> list[tuple[str, str, list[str]]]:
    """Return the differences that the page lists: age, what, where."""
    page = data()
    return [(row[2], row[7], [page["targets"][each] for each in row[10]]) for row in page["rows"]]


@pytest.mark.untraced
def test_each_difference_keeps_its_age_whatever_later_runs_look_at(cli_runner: CliRunner) -> None:
    done = cli_runner(f"drift {REPORT}")
    assert (done.code, done.err) == (2, "")
    assert ages() == [
        ("new", 'milestone "a"', ["project acme/api", "project acme/lib"]),
        ("new", 'milestone "b"', ["project acme/api"]),
    ]
    assert data()["matrix"] == {
        "targets": ["project acme/api", "project acme/lib"],
        "sections": ["milestones", "trigger_tokens"],
        "states": [
            "deletions",
            "problem",
            "changes",
            "excepted",
            "not applicable",
            "unmanaged",
            "in order",
            "not declared",
        ],
        "cells": "2627",
        "pages": [None, None],
    }
    assert sorted(each.name for each in PAGE.parent.iterdir()) == [HISTORY.name, PAGE.name]
    page = PAGE.read_text()
    assert (
        '<h1><strong>0\u00a0%</strong> of 2 projects in order</h1>\n<p class="reach">3 changes in 2 of 2 targets</p>'
        in page
    )
    assert "The trend begins with the next run of the whole fleet." in page

    wait(cli_runner, 40)
    assert cli_runner("apply --target acme/lib --yes").code == 0
    cli_runner.project("{milestones: {a: {}, b: {due_date: 2027-01-29}}}")
    assert cli_runner(f"drift --target acme/api --baseline nothing.json {REPORT}").code == 2
    assert ages() == [
        ("40 days old", 'milestone "a"', ["project acme/api"]),
        ("40 days old", "1 difference", ["project acme/lib"]),
        ("new", 'milestone "b"', ["project acme/api"]),
    ]
    page = PAGE.read_text()
    assert (
        "This run looked at some targets or sections: the numbers, the matrix and the coverage are about these 1"
        in page
    )
    assert "1 new and 1 gone since the run before, " in page

    wait(cli_runner, 2)
    assert cli_runner("drift --shard 1/1 --report json=today.json").code == 2
    before = cli_runner(f"show today.json {REPORT}")
    assert before.code == 0
    assert ages() == [
        ("42 days old", 'milestone "a"', ["project acme/api"]),
        ("2 days old", 'milestone "b"', ["project acme/api"]),
    ]
    assert [(each.targets, each.whole, each.changes) for each in history(cli_runner).runs] == [
        (2, True, 3),
        (1, False, 3),
        (2, True, 2),
    ]
    assert "Up from 0\u00a0% on " in PAGE.read_text()

    assert cli_runner("apply --yes").code == 0
    wait(cli_runner, 1)
    assert cli_runner(f"drift {REPORT}").code == 0
    assert "<h1><strong>100\u00a0%</strong> of 2 projects in order</h1>" in PAGE.read_text()
    assert history(cli_runner).differences == ()


def test_a_machine_whose_clock_is_ahead_spoils_no_history(cli_runner: CliRunner) -> None:
    assert cli_runner(f"drift --report json=drift.json {REPORT}").code == 2
    wait(cli_runner, -4000)
    ahead = history(cli_runner).runs[-1].at
    done = cli_runner(f"drift {REPORT}")
    dropped = f"{HISTORY} is dated in the future, up to {utc(ahead)}: later entries were dropped"
    assert (done.code, done.err) == (2, f"{dropped}; the clock of a machine is, or was, wrong\n")
    assert [each.at < ahead for each in history(cli_runner).runs] == [True]
    assert {age for age, _, _ in ages()} == {"new"}
    kept = HISTORY.read_text()

    content = json.loads(Path("drift.json").read_text()) | {"created_at": utc(ahead)}
    content.pop("checksum")
    Path("drift.json").write_text(with_checksum(content))
    said = (
        f"this run is dated in the future, {utc(ahead)}: {PAGE} shows it, and its history does not keep it; set the clock "
        "right\n"
    )
    for before in (kept, None):
        done = cli_runner(f"show drift.json {REPORT}")
        assert (done.code, done.err) == (0, said)
        assert HISTORY.read_text() == before or history(cli_runner).runs == ()
        assert len(ages()) == 2
        HISTORY.unlink()


def test_what_is_no_history_of_this_service_stays_as_it_is(cli_runner: CliRunner) -> None:
    assert cli_runner(f"drift {REPORT}").code == 2
    good, page = HISTORY.read_text(), PAGE.read_text()
    elsewhere = save_history(replace(history(cli_runner), service="https://gitlab.example.com/api/v4"))
    for spoilt, why in {
        good[:-9]: "not a history of drift: line ",
        "[]": "not a history of drift: the JSON is not an object",
        elsewhere: "the history is about 'https://gitlab.example.com/api/v4', and this is 'http://127",
        '{"format": "reconciler.history/v9"}': "the history of drift was made by a newer reconciler",
    }.items():
        HISTORY.write_text(spoilt)
        done = cli_runner(f"drift --quiet {REPORT} --report json=drift.json")
        assert (done.code, Path("drift.json").exists()) == (1, True)
        assert done.out.startswith("Plan: 3 to create")
        assert done.err.startswith(f"reconciler: {HISTORY}: {why}")
        assert done.err.endswith(f"; {PAGE} was not written; move the file away to begin a new history\n")
        assert (HISTORY.read_text(), PAGE.read_text()) == (spoilt, page)
    HISTORY.unlink()
    HISTORY.mkdir()
    done = cli_runner(f"drift --quiet {REPORT}")
    assert (done.code, done.err) == (
        1,
        f"reconciler: {HISTORY}: Is a directory; name a file in it; {PAGE} was not written\n",
    )
    Path("file").touch()
    done = cli_runner("drift --quiet --report fleet=file/index.html")
    assert (done.code, done.err) == (1, "reconciler: file: File exists\n")


def test_nobody_else_writes_a_history_while_a_run_does(cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    locked = []

    def page(*_: object) -> str:
        folder = os.open("public", os.O_RDONLY)
        with pytest.raises(BlockingIOError):
            flock(folder, LOCK_EX | LOCK_NB)
        os.close(folder)
        locked.append(True)
        return "page"

    monkeypatch.setattr(fleet, "page", page)
    assert cli_runner(f"drift {REPORT}").code == 2
    assert (locked, PAGE.read_text()) == ([True], "page")
    folder = os.open("public", os.O_RDONLY)
    flock(folder, LOCK_EX | LOCK_NB)
    os.close(folder)


def test_a_page_on_stdout_or_in_a_device_is_about_one_run(cli_runner: CliRunner) -> None:
    done = cli_runner("drift --format fleet")
    assert done.code == 2
    assert done.out.startswith("<!doctype html>")
    done = cli_runner("drift --quiet --report fleet=/dev/null")
    assert (done.code, done.err) == (2, "")
    assert sorted(each.name for each in Path().iterdir() if each.name != "manifests") == []


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            f"apply --yes {REPORT}",
            "fleet is a format of plan and drift, not of apply and revert, which has html, json, junit, markdown, prometheus, text",
        ),
        (f"revert report.json {REPORT}", "the format fleet is not for the way back"),
        ("revert report.json --format fleet", "the format fleet is not for the way back"),
        (
            f"validate {REPORT}",
            "fleet is a format of plan and drift, not of validate, which has codequality, json, markdown, text",
        ),
        (
            "plan --report fleet=a.html --report json=a.history.json",
            "--report json and the history beside a.html name the same file: a.history.json",
        ),
        (
            "drift --report fleet=a.html --report fleet=a.htm",
            "the history beside a.html and the history beside a.htm name the same file: a.history.json",
        ),
    ],
)
def test_where_a_page_does_not_fit_it_is_refused_first(cli_runner: CliRunner, line: str, said: str) -> None:
    cli_runner.sandbox.clear_log()
    done = cli_runner(line)
    assert (done.code, done.err) == (64, f"reconciler: {said}\n")
    assert cli_runner.sandbox.log() == []
