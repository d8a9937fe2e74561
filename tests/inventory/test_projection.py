"""What an apply adds to the list, removes from it and keeps; and the same on top of what others did meanwhile."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconciler.memory.absence import CommitPosition, LastApplied
from reconciler.memory.inventory import Inventory, ObjectKey, TargetLine, UnknownLine
from reconciler.memory.projection import Basis, Projection, undone
from reconciler.model.diff import AsRead
from reconciler.model.item import Change, Create, Delete, Item, Keep, Outcome, Status, Update, problem_at
from reconciler.model.plan import Seen
from reconciler.model.protocols import Request
from reconciler.model.resource import LiveRecord, Objects
from reconciler.model.state import LivePart, PartAddress
from reconciler.model.targets import Address, Level, Target
from tests.building import KINDS
from tests.inventory.test_absence import listed, milestone, token
from tests.inventory.test_text import FIRST, SECOND, SERVICE, THIRD

DAY = date(2027, 3, 2)
PROJECT = TargetLine("project 7", "acme/api", "1:old", DAY)
API, LIB = Target(Level.PROJECT, "acme/api"), Target(Level.PROJECT, "acme/lib")
SEEN = Seen(API, {"milestones": 3}, 7, digest="1:new", done=True)
MILESTONES = {"project 7": ("milestones/milestones",)}


@dataclass(frozen=True)
class Report:
    """What became of a plan."""

    targets: Sequence[Seen]
    items: Sequence[Item]


class Commits:
    """A history in which the third commit is ahead of the others."""

    def contains(self, commit: str) -> bool:
        return commit in {"", FIRST, SECOND}

    def last_applied(self, commit: str) -> LastApplied:
        return LastApplied(commit, CommitPosition.CONTAINED if self.contains(commit) else CommitPosition.AHEAD)


def where(name: str, target: Target = API, section: str = "milestones") -> Address:
    return Address(target, section, section, section, name)


def keep(number: int, name: str, target: Target = API, section: str = "milestones") -> Keep:
    return Keep(where(name, target, section), number)


def read(number: int) -> AsRead:
    return AsRead(number, (), {}, {})


def created(number: int, name: str, target: Target = API, section: str = "milestones") -> Outcome:
    return Outcome(Create(where(name, target, section), {}, ()), Status.DONE, created=read(number))


def updated(number: int, name: str, status: Status = Status.DONE, target: Target = API) -> Outcome:
    return Outcome(Update(where(name, target), {}, {}, (), read(number)), status)


def deleted(number: int, name: str = "", status: Status = Status.DONE, target: Target = API) -> Outcome:
    return Outcome(Delete(where(name, target), {}, (), read(number)), status)


def record(number: int, *names: str) -> LiveRecord:
    return LiveRecord(KINDS["milestones"].part("milestones").model(), names, number)


def projection(
    seen: Inventory,
    *items: Item,
    targets: Sequence[Seen] = (SEEN,),
    planned: Iterable[Change] = (),
    lists: Mapping[PartAddress, LivePart] | None = None,
    first: Sequence[Target] | None = None,
    **basis: Any,
) -> Projection:
    facts: dict[str, Any] = {"commit": SECOND, "whole": True, "declared": MILESTONES} | basis
    report = Report(targets, items)
    return Projection(report, Basis(seen=seen, **facts), Commits(), KINDS, tuple(planned), lists or {}, first)


def after(seen: Inventory, *items: Item, **more: Any) -> Inventory:
    return projection(seen, *items, **more).onto(seen)


def lines(inventory: Inventory) -> list[str]:
    """Return the objects of a list, briefly."""
    return [f"{line.name} {line.id} {line.at[:1]}" for line in sorted(inventory.objects.values(), key=lambda x: x.id)]


def keys(*numbers: int) -> tuple[ObjectKey, ...]:
    return tuple(milestone(number, "").key for number in numbers)


def test_a_first_apply_lists_what_is_wanted_and_live() -> None:
    """Created, updated or not, or in order already."""
    failed = Outcome(Create(where("failed"), {}, ()), Status.FAILED)
    items = (created(1, "a"), updated(2, "b"), updated(3, "c", Status.FAILED), failed, keep(4, "d"))
    result = after(Inventory(SERVICE), *items, targets=(replace(SEEN, done=False),))
    assert lines(result) == ["a 1 b", "b 2 b", "c 3 b", "d 4 b"]
    assert (result.targets, result.applied) == ({"project 7": TargetLine("project 7", "acme/api")}, SECOND)
    result = after(Inventory(SERVICE), created(1, "a"), keep(4, "d"))
    assert result.targets == {"project 7": TargetLine("project 7", "acme/api", "1:new")}
    assert after(result) == result


def test_settings_and_collections_without_lines_are_not_listed() -> None:
    settings_ = Outcome(
        Update(Address(API, "push_rules", "push_rules", "push rules"), {}, {}, (), read(1)), Status.DONE
    )
    target = Outcome(Create(API.address, {}, ()), Status.DONE, created=read(7))
    account = created(3, "x", Target(Level.GROUP, "acme"), "service_accounts")
    group = Seen(Target(Level.GROUP, "acme"), {"service_accounts": 0}, 5, digest="1:g", done=True)
    unnumbered = created(9, "y", LIB)
    items = (settings_, target, account, unnumbered)
    assert after(Inventory(SERVICE), *items, targets=(SEEN, group, Seen(LIB))).objects == {}


def test_a_line_keeps_its_commit_while_head_contains_it() -> None:
    before = replace(
        listed(milestone(1, "a"), milestone(2, "b", THIRD), milestone(3, "c", "")), targets={"project 7": PROJECT}
    )
    items = (updated(1, "a"), updated(2, "b"), updated(3, "c"))
    assert lines(after(before, *items)) == ["a 1 a", "b 2 b", "c 3 b"]
    assert lines(after(before, *items, commit="")) == ["a 1 a", "b 2 c", "c 3 "]
    moved = replace(SEEN, target=Target(Level.PROJECT, 7), path="acme/renamed")
    items = (
        updated(1, "a", target=moved.target),
        updated(2, "b", target=moved.target),
        updated(3, "c", target=moved.target),
    )
    assert lines(after(before, *items, targets=(moved,))) == ["a 1 b", "b 2 b", "c 3 b"]


def test_a_renamed_object_is_listed_at_the_commit_that_has_its_new_name() -> None:
    before = listed(milestone(1, "old"))
    assert lines(after(before, updated(1, "new"))) == ["new 1 b"]
    assert lines(after(before, updated(1, "new"), commit="")) == ["new 1 "]
    anew = Update(where("new"), {}, {}, (Request("POST", "", {}),), read(1), "old")
    assert lines(after(before, Outcome(anew, Status.FAILED))) == ["old 1 a"]
    assert lines(after(before, Outcome(anew, Status.DONE))) == []
    assert lines(after(before, Outcome(anew, Status.DONE, created=read(2)))) == ["new 2 b"]


def test_a_rotation_lists_both_tokens_until_the_older_one_is_deleted() -> None:
    """Else the successor would stay for ever if its declaration were removed meanwhile."""
    before, declared = listed(token(1, "t")), {"project 7": ("trigger_tokens/trigger_tokens",)}
    during = after(before, created(2, "t", section="trigger_tokens"), declared=declared)
    assert lines(during) == ["t 1 a", "t 2 b"]
    older = Outcome(Delete(where("t", section="trigger_tokens"), {}, (), read(1), 2), Status.DONE)
    assert lines(after(during, older, keep(1, "t", section="trigger_tokens"), declared=declared)) == ["t 2 b"]


def test_what_was_deleted_or_is_gone_is_removed_and_what_failed_stays() -> None:
    before = listed(*(milestone(number, f"m{number}") for number in range(1, 5)))
    done = (deleted(1), deleted(3, status=Status.FAILED))
    assert lines(after(before, *done, missing=keys(2))) == ["m3 3 a", "m4 4 a"]
    assert lines(after(before, *done)) == ["m2 2 a", "m3 3 a", "m4 4 a"]


def test_what_the_apply_has_read_last_counts() -> None:
    """Of several objects of one name it is not known which one is meant."""
    before = listed(milestone(1, "a"), milestone(2, "b"), milestone(6, "other"))
    lists = {
        (API, "milestones", "milestones"): Objects(
            (record(1, "a"), record(4, "new"), *map(record, (7, 8), ("two",) * 2))
        )
    }
    planned = [Create(where(name), {}, ()) for name in ("new", "two", "none")] + [Delete(where("x"), {}, (), read(9))]
    items = (keep(5, "lost"), Outcome(planned[1], Status.STALE), updated(2, "b", Status.STALE), created(9, "later"))
    result = after(before, *items, planned=planned, lists=lists, missing=keys(1))
    assert lines(result) == ["a 1 a", "new 4 b", "later 9 b"]
    lists |= {(LIB, "milestones", "milestones"): Objects(())}
    assert after(before, *items, planned=planned, lists=lists) == result


def test_a_whole_run_forgets_what_is_no_longer_declared() -> None:
    unknown = UnknownLine("project 5", "{}")
    before = replace(
        listed(
            milestone(1, "a"),
            token(2, "section"),
            token(3, "target", "project 8"),
            milestone(4, "newer", THIRD, "project 8"),
            milestone(5, "uncommitted", "", "project 8"),
            milestone(6, "archived", target="project 9"),
        ),
        targets={f"project {number}": TargetLine(f"project {number}") for number in (4, 5, 7, 8, 9)},
        unknown=(unknown,),
    )
    result = after(before, unknown=("project 9",))
    assert lines(result) == ["a 1 a", "newer 4 c", "uncommitted 5 ", "archived 6 a"]
    assert sorted(result.targets) == ["project 5", "project 7", "project 8", "project 9"]
    assert result.unknown == (unknown,)
    narrowed = after(before, unknown=("project 9",), whole=False)
    assert (narrowed.objects, sorted(narrowed.targets)) == (before.objects, sorted(before.targets))


def test_a_target_that_the_run_has_created_is_declared_by_the_name_that_it_has_by_now() -> None:
    before = listed(milestone(1, "a"), milestone(2, "b", target="project 8"))
    declared = {"project acme/api": MILESTONES["project 7"]}
    assert lines(after(before, declared=declared)) == ["a 1 a"]


def test_what_is_unmanaged_is_released() -> None:
    before = listed(milestone(1, "a"), milestone(2, "b", THIRD), token(3, "t"))
    more: dict[str, Any] = {"released": {"project 7": ("milestones",)}}
    more["declared"] = {"project 7": ("milestones/milestones", "trigger_tokens/trigger_tokens")}
    assert lines(after(before, **more)) == ["b 2 c", "t 3 a"]
    assert lines(after(before, **more, whole=False)) == ["a 1 a", "b 2 c", "t 3 a"]


def test_a_target_that_is_not_done_has_no_digest_once_something_was_written() -> None:
    """Its spec may go back to the older one: then a digest would hide what was written."""
    before = replace(listed(), targets={"project 7": PROJECT})
    failed = updated(1, "a", Status.FAILED)
    for items in ((failed,), (updated(1, "a"), problem_at(where("b"), "no"))):
        assert after(before, *items).targets["project 7"] == TargetLine("project 7", "acme/api")
    skipped = updated(1, "a", Status.SKIPPED)
    moved = replace(SEEN, target=Target(Level.PROJECT, 7), path="acme/moved", done=False)
    assert after(before, targets=(moved,)).targets["project 7"] == replace(PROJECT, path="acme/moved")
    assert after(before, skipped).targets["project 7"] == PROJECT
    same = replace(SEEN, digest="1:old")
    assert after(before, failed, targets=(same,)).targets["project 7"] == PROJECT


def test_a_new_target_that_is_not_done_is_listed_for_its_objects_alone() -> None:
    failed = replace(SEEN, done=False)
    assert after(listed(), targets=(failed,)) == listed()
    assert after(listed(), keep(1, "a"), targets=(failed,)).targets == {
        "project 7": TargetLine("project 7", "acme/api")
    }


def test_an_older_checkout_does_not_take_back_what_was_applied_last() -> None:
    assert after(listed(applied=FIRST)).applied == SECOND
    assert after(listed(applied=THIRD)).applied == THIRD
    assert after(listed(applied=FIRST), commit="").applied == FIRST


def test_a_revert_removes_what_it_deleted_and_the_digests_of_what_it_touched() -> None:
    before = replace(
        listed(milestone(1, "a"), milestone(2, "b")),
        targets={
            "project 7": PROJECT,
            "project 8": replace(PROJECT, target="project 8", path="acme/other"),
            "project 9": TargetLine("project 9"),
        },
    )
    targets = (Seen(API), Seen(Target(Level.PROJECT, 9)), Seen(LIB))
    items = (deleted(1, "a"), deleted(5), deleted(2, target=LIB), keep(2, "b"))
    result = undone(Report(targets, items), before)
    assert lines(result) == ["b 2 a"]
    assert result.targets == {**before.targets, "project 7": TargetLine("project 7", "acme/api")}
    assert result.applied == SECOND


def test_a_run_that_ended_early_leaves_the_other_targets_alone() -> None:
    before = replace(listed(milestone(1, "a"), milestone(2, "b", target="project 8")), targets={"project 9": PROJECT})
    lib = replace(SEEN, target=LIB, id=8, digest="1:lib")
    items = (keep(3, "c"), keep(4, "d", LIB), deleted(5, status=Status.SKIPPED, target=LIB), deleted(1))
    missing = (milestone(2, "b", target="project 8").key,)
    ended = after(before, *items, targets=(SEEN, lib), first=[API], missing=missing)
    assert lines(ended) == ["b 2 a", "c 3 b"]
    assert ended.targets == {"project 9": PROJECT, "project 7": TargetLine("project 7", "acme/api", "1:new")}
    begun = after(before, *items, updated(6, "e", target=LIB), targets=(SEEN, lib), first=[])
    assert lines(begun) == ["b 2 a", "c 3 b", "d 4 b", "e 6 b"]
    assert begun.targets["project 8"] == TargetLine("project 8", "acme/lib")


def test_a_target_that_both_touched_has_no_digest() -> None:
    base = replace(listed(milestone(1, "a")), targets={"project 7": PROJECT})
    ours = projection(base, keep(2, "b"))
    theirs = after(base, keep(3, "c"), targets=(replace(SEEN, digest="1:theirs"),))
    merged = ours.onto(theirs)
    assert lines(merged) == ["a 1 a", "b 2 b", "c 3 b"]
    assert merged.targets["project 7"] == TargetLine("project 7", "acme/api")
    assert ours.onto(replace(theirs, targets={})).targets["project 7"] == TargetLine("project 7", "acme/api")


def test_what_newer_manifests_may_have_made_again_is_not_missing() -> None:
    """An entry of an allowlist has the same ID whenever it is made."""
    base = listed(milestone(1, "a"), milestone(2, "b"), milestone(3, "c"))
    ours = projection(base, keep(2, "b"), deleted(3), missing=keys(2))
    assert lines(ours.onto(base)) == ["a 1 a"]
    assert lines(ours.onto(replace(base, applied=THIRD))) == ["a 1 a", "b 2 a"]


def test_a_line_that_others_changed_stays_as_they_left_it() -> None:
    base = replace(listed(milestone(1, "a"), milestone(2, "b")), targets={"project 7": PROJECT})
    theirs = replace(base, objects={milestone(1, "a").key: milestone(1, "a", THIRD)}, applied=THIRD)
    assert lines(projection(base, updated(1, "new"), updated(2, "other")).onto(theirs)) == ["a 1 c"]
    left = projection(base, targets=(), declared={})
    assert lines(left.onto(theirs)) == ["a 1 c"]
    assert (left.onto(theirs).targets, left.onto(theirs).applied) == ({"project 7": PROJECT}, THIRD)
    assert left.onto(replace(theirs, applied=FIRST)).applied == SECOND
    assert left.onto(base).targets == {}
    assert left.onto(replace(base, targets={"project 7": replace(PROJECT, digest="1:x")})).targets == {
        "project 7": replace(PROJECT, digest="1:x")
    }


numbers = st.integers(1, 6)
targets = st.sampled_from([API, LIB])
some_lines = st.builds(
    milestone,
    numbers,
    st.sampled_from("abc"),
    st.sampled_from(["", FIRST, SECOND, THIRD]),
    st.sampled_from(["project 7", "project 8"]),
)
some_targets = st.builds(
    TargetLine, st.sampled_from(["project 7", "project 8"]), st.just("x"), st.sampled_from(["", "1:a", "1:b"])
)
lists = st.builds(
    lambda objects, targets, last: replace(
        listed(*objects, applied=last), targets={target.target: target for target in targets}
    ),
    st.lists(some_lines),
    st.lists(some_targets),
    st.sampled_from(["", FIRST, SECOND, THIRD]),
)


@st.composite
def runs(draw: st.DrawFn) -> dict[str, Any]:
    """Return what a run does in one target."""
    target = draw(targets)
    names, number = st.sampled_from("abc"), st.integers(1, 6)
    some = st.one_of(
        st.builds(keep, number, names, st.just(target)),
        st.builds(created, number, names, st.just(target)),
        st.builds(updated, number, names, st.sampled_from([Status.DONE, Status.FAILED]), st.just(target)),
        st.builds(deleted, number, names, st.sampled_from([Status.DONE, Status.STALE]), st.just(target)),
    )
    seen = Seen(target, {"milestones": 0}, 7 if target is API else 8, digest="1:new", done=draw(st.booleans()))
    own = draw(st.lists(some, max_size=4))
    gone = draw(st.frozensets(number))
    missing = tuple(milestone(each, "", target=f"project {seen.id}").key for each in sorted(gone))
    return {"items": own, "targets": (seen,), "missing": missing, "whole": draw(st.booleans())}


def running(base: Inventory, run: Mapping[str, Any]) -> Projection:
    return projection(base, *run["items"], **{name: value for name, value in run.items() if name != "items"})


def removed_by(run: Mapping[str, Any]) -> set[ObjectKey]:
    (seen,) = run["targets"]
    items = (item for item in run["items"] if isinstance(item, Outcome) and item.status is Status.DONE)
    gone = {item.change.read.id or 0 for item in items if isinstance(item.change, Delete)}
    return {*run["missing"], *(milestone(number, "", target=f"project {seen.id}").key for number in gone)}


@pytest.mark.untraced
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(lists, runs())
def test_the_same_run_again_changes_nothing(base: Inventory, run: dict[str, Any]) -> None:
    result = running(base, run).onto(base)
    again = running(result, run).onto(result)
    assert (again.objects, again.applied) == (result.objects, result.applied)
    for key, line in result.objects.items():
        assert line.at == SECOND or line == base.objects.get(key)
    assert result.objects.keys().isdisjoint(removed_by(run))


@pytest.mark.untraced
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(lists, runs(), runs())
def test_two_runs_at_once(base: Inventory, mine: dict[str, Any], other: dict[str, Any]) -> None:
    """Whoever comes second, no line of the other's is lost that was not deleted, and no line comes back that was."""
    ours, theirs = running(base, mine).onto(base), running(base, other).onto(base)
    merged = running(base, mine).onto(theirs)
    removed = removed_by(mine)
    added = {key for key in ours.objects if base.objects.get(key) != ours.objects[key]}
    theirs_added = {key for key in theirs.objects if base.objects.get(key) != theirs.objects[key]}
    left = base.objects.keys() - ours.objects.keys()
    assert merged.objects.keys() >= theirs_added - removed
    assert merged.objects.keys().isdisjoint(removed)
    assert not merged.objects.keys() & removed_by(other) - added
    untouched = theirs.objects.keys() - removed - left - added
    assert {key: merged.objects[key] for key in untouched} == {key: theirs.objects[key] for key in untouched}
    for name in merged.targets:
        if ours.targets.get(name) != base.targets.get(name) != theirs.targets.get(name):
            assert not merged.targets[name].digest or name not in ours.targets
    if not mine["whole"] and not other["whole"] and mine["targets"][0].target != other["targets"][0].target:
        assert merged == running(base, other).onto(ours)
