"""The history of a checkout: which commits HEAD contains, in whole clones and shallow ones, and what a checkout lacks."""

from pathlib import Path

from reconciler.memory.absence import CommitPosition
from reconciler.memory.ancestry import Ancestry, ancestry, incomplete
from tests.fleet.repository import Repository, repository


def test_a_commit_is_contained_ahead_elsewhere_or_unknown(tmp_path: Path) -> None:
    made = repository(tmp_path / "a")
    assert ancestry(made.folder) is None
    first, second = made.commit(), made.commit()
    third = made.commit()
    made.git("switch", "--quiet", "--create", "other", first)
    other = made.commit("other")
    made.git("switch", "--quiet", "--detach", second)
    history = ancestry(made.folder)
    assert history == Ancestry(made.folder, second)
    unknown = "1" * 40
    assert history.positions([first, second, third, other, unknown]) == {
        first: CommitPosition.CONTAINED,
        second: CommitPosition.CONTAINED,
        third: CommitPosition.AHEAD,
        other: CommitPosition.ELSEWHERE,
        unknown: CommitPosition.UNKNOWN,
    }
    assert history.contains(first)
    assert not history.contains(third)


def test_a_shallow_clone_says_that_it_lacks_the_history(tmp_path: Path) -> None:
    made = repository(tmp_path / "a")
    first, second = made.commit(), made.commit()
    made.git("clone", "--quiet", "--depth=1", f"file://{made.folder}", str(tmp_path / "b"))
    history = ancestry(tmp_path / "b")
    assert history is not None
    assert history.positions([first, second]) == {first: CommitPosition.CUT_OFF, second: CommitPosition.CONTAINED}
    assert history.last_applied(second).obstacle == ""
    cut_off = f"manifests that this clone lacks were applied, {first[:7]}: run `git fetch --unshallow`"
    assert history.last_applied(first).obstacle == cut_off


def test_a_merge_contains_both_branches(tmp_path: Path) -> None:
    made = repository(tmp_path / "a")
    first = made.commit()
    made.git("switch", "--quiet", "--create", "other")
    other = made.commit("other")
    made.git("switch", "--quiet", "main")
    made.commit("main")
    made.git("merge", "--quiet", "--no-edit", "other")
    history = ancestry(made.folder)
    assert history is not None
    assert {*history.positions([first, other]).values()} == {CommitPosition.CONTAINED}


def test_a_sparse_checkout_may_lack_manifests(tmp_path: Path) -> None:
    made = repository(tmp_path / "a")
    (made.folder / "manifests").mkdir()
    (made.folder / "manifests" / "a.yaml").write_text("")
    made.commit()
    assert incomplete(made.folder, [made.folder / "manifests"]) == ""
    made.git("sparse-checkout", "set", "other")
    assert incomplete(made.folder, [made.folder / "manifests"]) == (
        "this checkout is sparse: run `git sparse-checkout disable` first"
    )


def test_so_may_one_with_an_empty_submodule_below_the_paths(tmp_path: Path) -> None:
    inner = repository(tmp_path / "inner")
    (inner.folder / "a.yaml").write_text("")
    inner.commit()
    made = repository(tmp_path / "a")
    made.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner.folder), "manifests/inner")
    made.commit()
    top = made.folder
    assert incomplete(top, [top / "manifests"]) == ""
    made.git("clone", "--quiet", str(top), str(tmp_path / "b"))
    clone = Repository(tmp_path / "b").folder
    said = "the submodule manifests/inner is empty: run `git submodule update --init` first"
    assert incomplete(clone, [clone / "manifests"]) == said
    assert incomplete(clone, [clone]) == said
    assert incomplete(clone, [clone / "manifests" / "inner" / "below"]) == said
    assert incomplete(clone, [clone / "manifests" / "inner2"]) == ""
