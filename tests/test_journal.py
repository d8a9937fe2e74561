"""The journal on disk, and what is read from one that breaks off."""

import json
import os
from pathlib import Path

import pytest

from reconciler.engine.apply.journal import Intent, Interrupted, Journal, read_interrupted
from reconciler.errors import OutputFailed
from reconciler.model.diff import AsRead
from reconciler.model.item import Change, Create, Delete, Update
from reconciler.model.protocols import Request
from reconciler.model.targets import Address
from tests.building import API, USER
from tests.limits import no_file_longer_than

SERVICE = "https://h/api/v4"
MILESTONES = "projects/acme%2Fapi/milestones"
A = Address(API, "milestones", "milestones", "milestone", "a")
SETTINGS = Address(USER, "notification_settings", "notification_settings", "notification settings")

POST = Request("POST", MILESTONES, {"title": "a"})
PUT = Request("PUT", "notification_settings", {"level": "watch"})
DELETE = Request("DELETE", f"{MILESTONES}/7")

CREATE = Create(A, {"state": "active"}, (POST,), target_id=3, replaces_ids=(4, 5))
UPDATE = Update(SETTINGS, {"level": "mute"}, {"level": "watch"}, (PUT,), AsRead(None, (), {"level": "mute"}, {}))
DELETION = Delete(A, {"state": "active"}, (DELETE,), AsRead(7, ("a",), {"state": "active"}, {}))


def left_by(*changes: tuple[Change, Request]) -> tuple[Intent, ...]:
    return tuple(Intent.of(change, request) for change, request in changes)


def left(file: Path) -> Interrupted | None:
    """What a journal holds that nobody uses."""
    with Journal(file) as journal:
        return journal.interrupted


def break_off(file: Path, *changes: tuple[Change, Request]) -> None:
    """Let a run begin to carry out changes and be killed."""
    with pytest.raises(KeyboardInterrupt), Journal(file) as journal, journal.run(SERVICE, "digest"):
        for change, request in changes:
            journal.intend(change, request)
        raise KeyboardInterrupt


def test_a_run_that_ended_left_nothing(tmp_path: Path) -> None:
    file = tmp_path / "journal"
    with Journal(file) as journal, journal.run(SERVICE, "digest"):
        journal.result(journal.intend(CREATE, POST), "done")
    assert left(file) is None
    events = [json.loads(line)["event"] for line in file.read_text().splitlines()]
    assert events == ["begin", "intent", "result", "end"]


def test_a_run_that_ended_left_what_was_in_doubt_to_the_end(tmp_path: Path) -> None:
    file = tmp_path / "journal"
    with Journal(file) as journal, journal.run(SERVICE, "digest"):
        journal.result(journal.intend(UPDATE, PUT), "done")
        journal.result(journal.intend(CREATE, POST), "in doubt", "the response was lost")
    assert left(file) == Interrupted(SERVICE, None, 0, left_by((CREATE, POST)))


def test_a_run_that_broke_off_tells_what_was_done_and_what_is_unconfirmed(tmp_path: Path) -> None:
    file = tmp_path / "journal"
    with pytest.raises(KeyboardInterrupt), Journal(file) as journal, journal.run(SERVICE, "digest"):
        journal.result(journal.intend(CREATE, POST), "done")
        journal.result(journal.intend(CREATE, POST), "failed", "why")
        journal.result(journal.intend(CREATE, POST), "in doubt", "why")
        journal.intend(UPDATE, PUT)
        raise KeyboardInterrupt
    found = left(file)
    assert found is not None
    assert found == Interrupted(SERVICE, found.began_at, 1, left_by((CREATE, POST), (UPDATE, PUT)))
    assert str(found) == (
        f"The run that began at {found.began_at} was cut off: 1 write certainly succeeded, 2 writes left unconfirmed."
    )
    assert [str(each) for each in found.unconfirmed] == [
        "POST projects/acme%2Fapi/milestones (project acme/api, 'a')",
        "PUT notification_settings (user)",
    ]


def test_an_intent_holds_what_it_takes_to_see_whether_it_was_carried_out(tmp_path: Path) -> None:
    file = tmp_path / "journal"
    break_off(file, (CREATE, POST), (UPDATE, PUT), (DELETION, DELETE))
    found = left(file)
    assert found is not None
    assert [each.change for each in found.unconfirmed] == [
        Create(A, {"state": "active"}, (), 3, (4, 5)),
        Update(SETTINGS, {}, {"level": "watch"}, (), AsRead(None, (), {}, {})),
        Delete(A, {}, (), AsRead(7, (), {}, {})),
    ]


def test_what_cannot_be_confirmed_is_kept_until_it_can(tmp_path: Path) -> None:
    file = tmp_path / "journal"
    kept = left_by((CREATE, POST))
    with Journal(file) as journal, journal.run(SERVICE, "digest", kept):
        journal.result(journal.intend(UPDATE, PUT), "done")
    found = left(file)
    assert found == Interrupted(SERVICE, None, 0, kept)
    assert str(found) == "Earlier runs with this journal: 1 write left unconfirmed."
    with pytest.raises(KeyboardInterrupt), Journal(file) as journal, journal.run(SERVICE, "digest", kept):
        journal.intend(UPDATE, PUT)
        raise KeyboardInterrupt
    found = left(file)
    assert found is not None
    assert found.unconfirmed == (*kept, *left_by((UPDATE, PUT)))
    with Journal(file) as journal, journal.run(SERVICE, "digest"):
        pass
    assert left(file) is None


def test_a_line_that_was_cut_in_two_swallows_no_other(tmp_path: Path) -> None:
    file = tmp_path / "journal"
    break_off(file, (CREATE, POST))
    os.truncate(file, file.stat().st_size - 5)
    assert left(file) is not None
    with Journal(file) as journal, journal.run(SERVICE, "digest"):
        pass
    assert left(file) is None


def test_a_file_that_is_no_journal_holds_no_run() -> None:
    assert read_interrupted(b"") is None
    assert read_interrupted(b'nonsense\n[1]\n{"event": "result", "number": 9, "status": "done"}\n') is None


ODD = {
    "no object": "[]",
    "no number": '{"event": "intent"}',
    "nothing of a change": '{"event": "intent", "number": 1}',
    "an odd level": json.dumps(
        {"event": "intent", "number": 1} | left_by((CREATE, POST))[0].model_dump() | {"level": 7}
    ),
    "no text": "\ud800",
    "a deep one": "[" * 100_000,
}


@pytest.mark.parametrize("line", ODD.values(), ids=ODD)
def test_lines_that_are_not_as_expected_are_passed_over(tmp_path: Path, line: str) -> None:
    file = tmp_path / "journal"
    break_off(file, (CREATE, POST))
    file.write_bytes(file.read_bytes() + line.encode(errors="surrogatepass") + b"\n")
    found = left(file)
    assert found is not None
    assert found.unconfirmed == left_by((CREATE, POST))
    begin = {"event": "begin", "time": "now", "service": SERVICE, "unconfirmed": 7}
    assert read_interrupted(json.dumps(begin).encode()) == Interrupted(SERVICE, "now", 0, ())


def test_a_journal_is_of_one_run_at_a_time(tmp_path: Path) -> None:
    file = tmp_path / "journal"
    with Journal(file):
        with pytest.raises(OutputFailed) as raised:
            Journal(file)
    assert (
        str(raised.value)
        == f"{file} is in use by another run (Resource temporarily unavailable); wait for its end, or name another journal"
    )
    assert left(file) is None


def test_a_journal_is_a_regular_file() -> None:
    with pytest.raises(OutputFailed, match=r"^/dev/full is not a regular file; name one$"):
        Journal(Path("/dev/full"))


def test_a_disk_that_fills_up_keeps_writes_from_being_sent_and_loses_no_result(tmp_path: Path) -> None:
    file = tmp_path / "journal"
    with Journal(file) as journal, journal.run(SERVICE, "digest"):
        number = journal.intend(CREATE, POST)
        before = file.read_text()
        with no_file_longer_than(len(before) + 20):
            with pytest.raises(OutputFailed, match=f"{file}: File too large"):
                journal.intend(UPDATE, PUT)
            journal.result(number, "done")
        assert file.read_text() == before
        assert journal.failure == f"{file}: File too large"
    assert left(file) == Interrupted(SERVICE, None, 0, left_by((CREATE, POST)))
    with no_file_longer_than(1), Journal(file) as journal, pytest.raises(OutputFailed), journal.run(SERVICE, "digest"):
        raise AssertionError("no run begins without a journal")
