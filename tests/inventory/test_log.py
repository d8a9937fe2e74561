"""The log of applies, and the reports that are kept beside it."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from reconciler.errors import InventoryUnreadable, OutputFailed
from reconciler.memory.apply_log import Apply, latest, named
from reconciler.memory.branch import applies
from reconciler.memory.clone import clone_of
from reconciler.memory.remotes import Person
from reconciler.memory.store import INVENTORY_BRANCH, Local, Store, open_place
from tests.fleet.repository import Repository, repository
from tests.inventory.test_text import FIRST, SECOND, SERVICE

ADA, BOT = Person("Ada", "ada@example.com"), Person("bot", "bot@example.com")
WHEN = datetime(2026, 12, 1, 10, tzinfo=UTC)


@pytest.fixture
def checkout(tmp_path: Path) -> Repository:
    made = repository(tmp_path / "checkout")
    made.commit()
    return made


def test_the_applies_are_read_from_the_branch(checkout: Repository) -> None:
    first = Apply(
        when=WHEN,
        author=ADA.name,
        author_email=ADA.email,
        counts={"created": 3, "updated": 1},
        manifests=FIRST,
        service=SERVICE,
        result=3,
        job="https://x/-/jobs/1",
        canary="acme/a",
    )
    with open_place(checkout.folder, INVENTORY_BRANCH, None, BOT) as place:
        assert isinstance(place, Local)
        store = Store(place, SERVICE, ())
        one = store.write(store.read(), lambda inventory: inventory, first)
        undoing = Apply(service=SERVICE, result=0, reverts=one, when=WHEN.replace(hour=11))
        two = store.write(store.read(), lambda inventory: replace(inventory, applied=SECOND), undoing)
        log = applies(place, store.read().commit, 10)
        assert applies(place, two, 1) == log[:1]
    assert log == (
        replace(undoing, id=two, author=BOT.name, author_email=BOT.email, committer=BOT.name),
        replace(first, id=one, committer=BOT.name),
    )
    assert latest(log) == one
    assert named(log, one[:7].upper()) == [log[1]]
    assert named(log, "") == []


def test_an_unfinished_revert_is_finished_first() -> None:
    old, new = (Apply(id=each * 40, result=0) for each in "ab")
    unfinished = Apply(id="c" * 40, result=3, reverts=old.id)
    assert latest([unfinished, new, old]) == old.id
    assert latest([replace(unfinished, result=0), new, old]) == new.id
    assert latest([replace(unfinished, reverts="applied.json"), new]) == "applied.json"
    assert latest([]) == ""


def test_commits_of_others_are_shown_as_far_as_they_say_anything(checkout: Repository) -> None:
    """Whoever can push can write anything there."""
    with open_place(checkout.folder, INVENTORY_BRANCH, None) as place:
        assert isinstance(place, Local)
        (theirs,) = applies(place, checkout.git("rev-parse", "HEAD"), 5)
        assert theirs == replace(theirs, author="Ada", author_email="ada@example.com", counts={}, result=None, job="")
        tree = checkout.git("rev-parse", "HEAD^{tree}")
        odd = f"tree {tree}\nauthor Ada 2026\ncommitter Eve <> 99999999999999 +0000\n\napply: 1 created\n\nResult: ²\n"
        (checkout.folder / "odd").write_text(odd)
        commit = checkout.git("hash-object", "-t", "commit", "-w", "--literally", "odd")
        assert applies(place, commit, 5) == (Apply(id=commit, counts={"created": 1}),)
        blob = checkout.git("hash-object", "-w", "odd")
        (checkout.folder / ".git" / "refs" / "heads" / "broken").write_text(f"{commit}\n")
        assert applies(place, blob, 5) == ()
        gone = checkout.folder / ".git" / "objects" / commit[:2] / commit[2:]
        local = place
        listing = local.run(["rev-list", commit])
        assert listing.stdout.decode().strip() == commit

    class Torn:
        def run(self, arguments: list[str], _sent: bytes = b"") -> object:
            gone.unlink(missing_ok=True)
            return listing if arguments[0] == "rev-list" else local.run(arguments)

    with pytest.raises(InventoryUnreadable, match=f"commit {commit} of its branch cannot be read"):
        applies(Torn(), commit, 5)  # type: ignore[arg-type]  # its answers are those of git


def test_the_last_ten_reports_are_kept_for_their_owner_alone(checkout: Repository) -> None:
    clone = clone_of(checkout.folder)
    assert clone.folder == checkout.folder / ".git" / "reconciler"
    assert clone.reports == {}
    names = [f"{number:02d}" * 20 for number in range(1, 13)]
    for number, name in enumerate(names, 1):
        path = clone.keep_report(name, WHEN.replace(second=number), f'{{"number": {number}}}\n')
        assert path.stat().st_mode & 0o777 == 0o600
    assert [*clone.reports] == names[:1:-1]
    latest_one = clone.report_of("1212")
    assert latest_one is not None
    assert latest_one.read_text() == '{"number": 12}\n'
    assert clone.report_of("01") is None
    assert clone.report_of("1") is None
    assert clone.report_of("") is None
    (clone.folder / "reports" / "notes.txt").write_text("x")
    assert len(clone.reports) == 10


def test_a_link_is_no_report(checkout: Repository, tmp_path: Path) -> None:
    clone = clone_of(checkout.folder)
    path = clone.keep_report(FIRST, WHEN, "{}")
    path.rename(tmp_path / "elsewhere.json")
    path.symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(OutputFailed, match="is not a file of yours: delete it"):
        clone.report_of(FIRST[:7])
