"""Checkouts that are behind, or of another branch: none deletes by absence what newer manifests declare again."""

import pytest

from tests.inventory.checkout import Checkout

NEWER = "newer manifests were applied, <third>: run `git pull`, or a new pipeline"
SET_BACK = "; this apply may set back what they changed"
DELETION = '  - milestone "b"     removed from the manifests since <first>'
STALE = '  - milestone "b"                             stale: '
DONE = ["project acme/api", '  - milestone "b"                             done']


def pushed(clone: Checkout, name: str, *titles: str) -> None:
    """Declare some milestones, commit and push."""
    clone.milestones(*titles)
    clone.commit(name)
    clone.git.git("push", "--quiet", "origin", "HEAD:main")


@pytest.fixture
def behind(clone: Checkout) -> Checkout:
    """A clone made where `b` was not declared, and never fetched: newer manifests have declared and applied it again."""
    return stale_clone(clone, "bob")


def stale_clone(clone: Checkout, name: str, *options: str) -> Checkout:
    pushed(clone, "first", "a", "b")
    assert clone.apply()[0] == 0
    pushed(clone, "second", "a")
    behind = clone.clone(name, *options)
    pushed(clone, "third", "a", "b")
    assert clone.apply() == (0, [])
    return behind


@pytest.mark.untraced
@pytest.mark.parametrize(("options", "saved"), [((), True), (("--depth=2",), False)])
def test_a_checkout_that_is_behind_never_deletes_what_newer_manifests_declare(
    clone: Checkout, options: tuple[str, ...], *, saved: bool
) -> None:
    """A retried old job, or a mirror that is stuck: its second run knows no more than the first."""
    behind = stale_clone(clone, "bob", *options)
    told = ["project acme/api", DELETION, f"apply will not delete 1 object no longer declared: {NEWER}"]
    refused = (3, ["project acme/api", STALE + NEWER, NEWER + SET_BACK])
    for _ in range(2):
        assert behind.plan("--out ../plan.json") == (0, told)
        assert behind.apply("--plan ../plan.json" if saved else "") == refused
        assert (behind.live(), behind.listed()) == (["a", "b"], ["project 100 a <first>", "project 100 b <first>"])
        assert behind.applied() == "<third>"
    behind.git.git("pull", "--quiet")
    assert behind.plan() == (0, [])
    pushed(behind, "fourth", "a")
    assert behind.apply() == (0, DONE)
    assert behind.applied() == "<fourth>"


@pytest.mark.untraced
def test_a_shallow_clone_that_lacks_what_was_applied_says_so_and_keeps_it(clone: Checkout) -> None:
    behind = stale_clone(clone, "bob", "--depth=1")
    told = [
        f"apply will not delete what is no longer declared: {NEWER}",
        "1 object no longer declared stays: declared at <first>, which is not in this clone: fetch the history",
    ]
    for _ in range(2):
        assert behind.plan() == (0, told)
        assert behind.apply() == (0, [told[1], NEWER + SET_BACK])
        assert (behind.live(), behind.applied()) == (["a", "b"], "<third>")


@pytest.mark.untraced
def test_a_commit_that_only_another_clone_has_is_kept_until_it_is_pushed(clone: Checkout) -> None:
    """Nobody but that clone knows whether it is newer; once it can be fetched, it is a side branch like any other."""
    pushed(clone, "first", "a", "b")
    assert clone.apply()[0] == 0
    other = clone.clone("bob")
    other.milestones("a", "b", "c")
    other.commit("side")
    assert other.apply()[0] == 0
    pushed(clone, "second", "a")
    lacking = (
        "manifests that this clone lacks were applied, <side>: run `git fetch origin <side>`, once they are pushed"
    )
    stays = "1 object no longer declared stays: declared at <side>, which this branch does not contain"
    for _ in range(2):
        assert clone.apply() == (3, ["project acme/api", STALE + lacking, stays, lacking + SET_BACK])
        assert (clone.live(), clone.applied()) == (["a", "b", "c"], "<side>")
    other.git.git("push", "--quiet", "origin", "main:side")
    branch = "manifests of another branch were applied, <side>: apply these, then plan again"
    assert clone.plan() == (
        0,
        ["project acme/api", DELETION, f"apply will not delete 1 object no longer declared: {branch}", stays],
    )
    assert clone.apply() == (3, ["project acme/api", STALE + branch, stays])
    assert clone.applied() == "<second>"
    assert clone.apply() == (0, [*DONE, stays])
    assert (clone.live(), clone.listed()) == (["a", "c"], ["project 100 a <first>", "project 100 c <side>"])


@pytest.mark.untraced
@pytest.mark.parametrize(("where", "options"), [("here", ()), ("elsewhere", ("--depth=3",))])
def test_main_still_deletes_after_a_squash(clone: Checkout, where: str, options: tuple[str, ...]) -> None:
    """What was applied is a commit of the branch that was squashed; the first apply deletes nothing, the second does."""
    pushed(clone, "first", "a", "b")
    assert clone.apply()[0] == 0
    clone.git.git("switch", "--quiet", "--create", "feature")
    clone.milestones("a", "b", "c")
    clone.commit("feature")
    clone.git.git("push", "--quiet", "origin", "feature")
    assert clone.apply()[0] == 0
    clone.git.git("switch", "--quiet", "main")
    pushed(clone, "squash", "a", "b", "c")
    pushed(clone, "second", "a", "c")
    main = clone if where == "here" else clone.clone("bob", "--single-branch", *options)
    branch = "manifests of another branch were applied, <feature>: apply these, then plan again"
    assert main.apply() == (3, ["project acme/api", STALE + branch])
    assert (main.live(), main.applied()) == (["a", "b", "c"], "<second>")
    assert main.apply() == (0, DONE)
    assert (main.live(), main.applied()) == (["a", "c"], "<second>")


@pytest.mark.untraced
def test_main_still_deletes_after_a_force_push(clone: Checkout) -> None:
    pushed(clone, "first", "a", "b")
    assert clone.apply()[0] == 0
    pushed(clone, "lost", "a", "b")
    clone.declare("{milestones: {a: {}, b: {description: x}}}")
    clone.commit("lost")
    clone.git.git("push", "--quiet", "origin", "main")
    assert clone.apply()[0] == 0
    clone.git.git("reset", "--quiet", "--hard", "HEAD~")
    clone.milestones("a")
    clone.commit("second")
    clone.git.git("push", "--quiet", "--force", "origin", "main")
    main = clone.clone("bob")
    branch = "manifests of another branch were applied, <lost>: apply these, then plan again"
    assert main.apply()[1][:2] == ["project acme/api", STALE + branch]
    assert main.applied() == "<second>"
    assert main.apply() == (0, DONE)


def test_a_shallow_clone_does_not_know_what_its_own_commits_descend_from(clone: Checkout) -> None:
    pushed(clone, "first", "a", "b")
    assert clone.apply()[0] == 0
    pushed(clone, "second", "a", "b")
    shallow = clone.clone("bob", "--depth=1")
    shallow.milestones("a", "b", "c")
    shallow.commit("mine")
    lacking = "manifests that this clone lacks were applied, <first>: run `git fetch --unshallow origin`"
    assert shallow.apply()[1][-1] == lacking + SET_BACK
    assert shallow.applied() == "<first>"
    shallow.git.git("push", "--quiet", "origin", "main")
    shallow.declare("{milestones: {a: {}, b: {}, c: {description: x}}}")
    uncommitted = (
        "the manifests are not as committed: the log will not name a commit, and objects that this apply creates are "
        "not deleted by absence until an apply from a commit"
    )
    done = ["project acme/api", '  ~ milestone "c"                             done']
    assert shallow.apply() == (0, [*done, uncommitted])


def test_a_commit_that_was_given_up_and_is_gone_holds_up_no_list_of_this_clone_alone(user: Checkout) -> None:
    user.milestones("a", "b")
    user.commit("first")
    assert user.apply()[0] == 0
    user.milestones("a")
    user.commit("second")
    user.forge(lambda lines: lines[0].update(applied="1" * 40))
    assert user.apply()[0] == 3
    assert user.apply() == (0, DONE)
