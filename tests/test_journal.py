"""The journal on disk, and what is read from one that breaks off."""

import json
import os
from pathlib import Path

import pytest

from reconciler.address import Address
from reconciler.errors import OutputFailed
from reconciler.journal import Intent, Interrupted, Journal, read_interrupted, settle
from reconciler.plan import Create, Plan, SectionPlan, TargetPlan
from reconciler.wire import Request
from tests.building import API, USER

A = Address(API, "milestones", "milestones", "milestone", "a")
SETTINGS = Address(USER, "notification_settings", "notification_settings", "notification settings")
POST = Request("POST", "projects/acme%2Fapi/milestones", {"title": "a"})
PUT = Request("PUT", "notification_settings", {"level": "watch"})

INTENT_A = Intent(API, "milestones", "milestones", "a", "POST projects/acme%2Fapi/milestones")
INTENT_SETTINGS = Intent(USER, "notification_settings", "notification_settings", None, "PUT notification_settings")


def test_a_run_that_ended_left_nothing_in_doubt(tmp_path: Path) -> None:
    file = tmp_path / "journal"
    with Journal(file, "https://h/api/v4", "digest") as journal:
        journal.result(journal.intend(A, POST), "done")
    assert read_interrupted(file.read_text()) is None
    assert [json.loads(line)["event"] for line in file.read_text().splitlines()] == ["begin", "intent", "result", "end"]


def test_a_run_that_broke_off_tells_what_was_done_and_what_is_in_doubt(tmp_path: Path) -> None:
    file = tmp_path / "journal"
    with pytest.raises(KeyboardInterrupt), Journal(file, "https://h/api/v4", "digest") as journal:
        journal.result(journal.intend(A, POST), "done")
        journal.result(journal.intend(A, POST), "failed", "why")
        journal.result(journal.intend(A, POST), "in doubt", "why")
        journal.intend(SETTINGS, PUT)
        raise KeyboardInterrupt
    interrupted = read_interrupted(file.read_text())
    assert interrupted is not None
    assert (interrupted.done, interrupted.doubtful) == (1, (INTENT_A, INTENT_SETTINGS))
    assert [str(each) for each in interrupted.doubtful] == [
        "POST projects/acme%2Fapi/milestones (project acme/api, 'a')",
        "PUT notification_settings (user)",
    ]


def test_a_line_that_was_cut_in_two_swallows_no_other(tmp_path: Path) -> None:
    file = tmp_path / "journal"
    with pytest.raises(KeyboardInterrupt), Journal(file, "https://h/api/v4", "digest") as journal:
        journal.intend(A, POST)
        raise KeyboardInterrupt
    os.truncate(file, file.stat().st_size - 5)
    assert read_interrupted(file.read_text()) is not None
    with Journal(file, "https://h/api/v4", "digest"):
        pass
    assert read_interrupted(file.read_text()) is None


def test_a_file_that_is_no_journal_holds_no_run() -> None:
    assert read_interrupted("") is None
    assert read_interrupted('nonsense\n[1]\n{"event": "result", "number": 9, "status": "done"}\n') is None


def test_doubt_is_settled_by_what_is_planned_again() -> None:
    plan = Plan((TargetPlan(API, (SectionPlan("milestones", changes=(Create(A, {}, (POST,)),)),)),))
    interrupted = Interrupted("2026-11-21", 0, (INTENT_A, INTENT_SETTINGS))
    assert settle(interrupted, plan) == [(INTENT_A, False), (INTENT_SETTINGS, True)]


def test_a_disk_that_is_full_is_an_error_that_names_the_file() -> None:
    with pytest.raises(OutputFailed, match="/dev/full: No space left on device"):
        Journal(Path("/dev/full"), "https://h/api/v4", "digest")
