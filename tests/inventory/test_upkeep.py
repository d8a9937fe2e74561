"""What an apply adds to the list, removes from it and keeps; and the same on top of what others did meanwhile."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import date
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconciler.model.inventory import Inventory, TargetLine, UnknownLine
from reconciler.model.targets import Key
from reconciler.model.upkeep import Applied, PartAfter, TargetAfter, changes_of, undone, with_changes
from tests.inventory.test_absence import listed, milestone, token
from tests.inventory.test_text import FIRST, SECOND, SERVICE, THIRD

DAY = date(2027, 3, 2)
PROJECT = TargetLine("project 7", "acme/api", "1:old", DAY)
DONE = TargetAfter("project 7", "acme/api", "1:new", None, done=True, wrote=True)
MILESTONES = ("project 7", "milestones", "milestones")


def contains(commit: str) -> bool:
    return commit in {"", FIRST, SECOND}


def part(wanted: Mapping[Key, Collection[int]], section: str = "milestones", **more: Any) -> PartAfter:
    return PartAfter("project 7", section, section, wanted, **more)


def after(run: Applied, inventory: Inventory) -> Inventory:
    return with_changes(inventory, changes_of(run, inventory, contains), contains)


def applied(*parts: PartAfter, targets: tuple[TargetAfter, ...] = (DONE,), **more: Any) -> Applied:
    declared = {(each.target, each.section, each.part) for each in parts}
    return Applied(**{"commit": SECOND, "parts": parts, "targets": targets, "declared": declared, **more})


def lines(inventory: Inventory) -> list[str]:
    """Return the objects of a list, briefly."""
    return [f"{line.name} {line.id} {line.at[:1]}" for line in sorted(inventory.objects.values(), key=lambda x: x.id)]


def test_a_first_apply_lists_what_is_wanted_and_live() -> None:
    """Created, updated, or in order already; of two objects of one name it is not known which one is meant."""
    run = applied(part({"a": [1], "b": [2], "two": [3, 4], "failed": []}, listed=[1, 2, 3, 4, 5]))
    result = after(run, Inventory(SERVICE))
    assert lines(result) == ["a 1 b", "b 2 b"]
    assert result.targets == {"project 7": TargetLine("project 7", "acme/api", "1:new")}
    assert result.applied == SECOND
    assert after(run, result) == result


def test_a_line_keeps_its_commit_while_head_contains_it() -> None:
    before = replace(
        listed(milestone(1, "a"), milestone(2, "b", THIRD), milestone(3, "c", "")), targets={"project 7": PROJECT}
    )
    wanted = part({"a": [1], "b": [2], "c": [3]})
    assert lines(after(applied(wanted), before)) == ["a 1 a", "b 2 b", "c 3 b"]
    assert lines(after(applied(wanted, commit=""), before)) == ["a 1 a", "b 2 c", "c 3 "]
    moved = replace(DONE, path="acme/renamed")
    assert lines(after(applied(wanted, targets=(moved,)), before)) == ["a 1 b", "b 2 b", "c 3 b"]


def test_a_renamed_object_is_listed_at_the_commit_that_has_its_new_name() -> None:
    before = listed(milestone(1, "old"))
    assert lines(after(applied(part({"new": [1]})), before)) == ["new 1 b"]
    assert lines(after(applied(part({"new": [1]}), commit=""), before)) == ["new 1 "]


def test_a_rotation_lists_both_tokens_until_the_older_one_is_deleted() -> None:
    """Else the successor would stay for ever if its declaration were removed meanwhile."""
    before = listed(token(1, "t"))
    during = after(applied(part({"t": [1, 2]}, "trigger_tokens", created=[2], listed=[1, 2])), before)
    assert lines(during) == ["t 1 a", "t 2 b"]
    done = after(applied(part({"t": [1, 2]}, "trigger_tokens", deleted=[1], listed=[1, 2])), during)
    assert lines(done) == ["t 2 b"]


def test_what_was_deleted_or_is_gone_is_removed_and_what_failed_stays() -> None:
    before = listed(*(milestone(number, f"m{number}") for number in range(1, 5)))
    result = after(applied(part({"m4": [4]}, deleted=[1], listed=[3, 4])), before)
    assert lines(result) == ["m3 3 a", "m4 4 a"]
    unlisted = after(applied(part({"m4": [4]}, deleted=[1])), before)
    assert lines(unlisted) == ["m2 2 a", "m3 3 a", "m4 4 a"]


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
    run = applied(part({"a": [1]}), unknown={"project 9"})
    result = after(run, before)
    assert lines(result) == ["a 1 a", "newer 4 c", "uncommitted 5 ", "archived 6 a"]
    assert sorted(result.targets) == ["project 5", "project 7", "project 8", "project 9"]
    assert result.unknown == (unknown,)
    narrowed = after(replace(run, whole=False), before)
    assert (narrowed.objects, sorted(narrowed.targets)) == (before.objects, sorted(before.targets))


def test_what_is_unmanaged_is_released() -> None:
    before = listed(milestone(1, "a"), milestone(2, "b", THIRD), token(3, "t"))
    run = applied(part({"t": [3]}, "trigger_tokens"), released={("project 7", "milestones")})
    run = replace(run, declared={*run.declared, MILESTONES})
    assert lines(after(run, before)) == ["b 2 c", "t 3 a"]
    assert lines(after(replace(run, whole=False), before)) == ["a 1 a", "b 2 c", "t 3 a"]


def test_a_target_that_is_not_done_has_no_digest_once_something_was_written() -> None:
    """Its spec may go back to the older one: then a digest would hide what was written."""
    before = replace(listed(), targets={"project 7": PROJECT})
    failed = replace(DONE, done=False)
    assert after(applied(targets=(failed,)), before).targets["project 7"] == TargetLine("project 7", "acme/api")
    unwritten = replace(failed, wrote=False, path="acme/moved")
    assert after(applied(targets=(unwritten,)), before).targets["project 7"] == replace(PROJECT, path="acme/moved")
    same = replace(failed, digest="1:old")
    assert after(applied(targets=(same,)), before) == before


def test_a_new_target_that_is_not_done_is_listed_for_its_objects_alone() -> None:
    failed = replace(DONE, done=False)
    assert after(applied(targets=(failed,)), listed()) == listed()
    assert after(applied(part({"a": [1]}), targets=(failed,)), listed()).targets == {
        "project 7": TargetLine("project 7", "acme/api")
    }


def test_an_older_checkout_does_not_take_back_what_was_applied_last() -> None:
    before = listed(applied=THIRD)
    assert after(applied(), before).applied == SECOND
    assert after(applied(backwards=True), before).applied == THIRD
    assert after(applied(commit=""), before).applied == THIRD


def test_a_revert_removes_what_it_deleted_and_the_digests_of_what_it_touched() -> None:
    before = replace(
        listed(milestone(1, "a"), milestone(2, "b")),
        targets={
            "project 7": PROJECT,
            "project 8": replace(PROJECT, target="project 8"),
            "project 9": TargetLine("project 9"),
        },
    )
    gone = milestone(5, "never listed").key
    changes = undone(before, [milestone(1, "a").key, gone], ["project 7", "project 9", "project 10"])
    result = with_changes(before, changes, contains)
    assert lines(result) == ["b 2 a"]
    assert result.targets == {**before.targets, "project 7": TargetLine("project 7", "acme/api")}
    assert result.applied == SECOND


def test_a_target_that_both_touched_has_no_digest() -> None:
    base = replace(listed(milestone(1, "a")), targets={"project 7": PROJECT})
    ours = changes_of(applied(part({"a": [1], "b": [2]})), base, contains)
    theirs = after(applied(part({"a": [1], "c": [3]}), targets=(replace(DONE, digest="1:theirs"),)), base)
    merged = with_changes(theirs, ours, contains)
    assert lines(merged) == ["a 1 a", "b 2 b", "c 3 b"]
    assert merged.targets["project 7"] == TargetLine("project 7", "acme/api")
    without = replace(theirs, targets={})
    assert with_changes(without, ours, contains).targets["project 7"] == TargetLine("project 7", "acme/api")


def test_what_newer_manifests_may_have_made_again_is_not_missing() -> None:
    """An entry of an allowlist has the same ID whenever it is made."""
    base = listed(milestone(1, "a"), milestone(2, "b"), milestone(3, "c"))
    ours = changes_of(applied(part({"a": [1]}, listed=[1], deleted=[3])), base, contains)
    assert lines(with_changes(base, ours, contains)) == ["a 1 a"]
    assert lines(with_changes(replace(base, applied=THIRD), ours, contains)) == ["a 1 a", "b 2 a"]


def test_a_line_that_others_changed_stays_as_they_left_it() -> None:
    base = replace(listed(milestone(1, "a"), milestone(2, "b")), targets={"project 7": PROJECT})
    theirs = replace(base, objects={milestone(1, "a").key: milestone(1, "a", THIRD)}, applied=THIRD)
    renamed = changes_of(applied(part({"new": [1], "other": [2]})), base, contains)
    assert lines(with_changes(theirs, renamed, contains)) == ["a 1 c"]
    left = changes_of(Applied(SECOND), base, contains)
    assert lines(with_changes(theirs, left, contains)) == ["a 1 c"]
    assert with_changes(theirs, left, contains).targets == {"project 7": PROJECT}
    assert with_changes(theirs, left, contains).applied == THIRD
    assert with_changes(replace(theirs, applied=FIRST), left, contains).applied == SECOND
    assert with_changes(base, left, contains).targets == {}


keys = st.integers(1, 6)
some_lines = st.builds(
    milestone,
    keys,
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
parts_after = st.builds(
    lambda target, wanted, created, deleted, all_: PartAfter(
        target,
        "milestones",
        "milestones",
        {name: ids - deleted for name, ids in wanted.items()},
        created,
        deleted,
        all_,
    ),
    st.sampled_from(["project 7", "project 8"]),
    st.fixed_dictionaries({"a": st.frozensets(st.integers(1, 3), max_size=2), "b": st.frozensets(st.integers(4, 6))}),
    st.frozensets(keys),
    st.frozensets(keys, max_size=2),
    st.none() | st.just(frozenset(range(1, 7))),
)
runs = st.builds(
    lambda part, whole, done: applied(
        part, whole=whole, targets=(replace(DONE, target=part.target, path="x", done=done),)
    ),
    parts_after,
    st.booleans(),
    st.booleans(),
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(lists, runs)
def test_nobody_else_and_the_same_run_again(base: Inventory, run: Applied) -> None:
    """An apply that finds the list as it left it changes no line; our changes made twice are made once."""
    changes = changes_of(run, base, contains)
    result = with_changes(base, changes, contains)
    rest = replace(run, parts=tuple(replace(each, created=(), deleted=()) for each in run.parts))
    assert not changes_of(rest, result, contains).added
    for line in changes.added:
        assert line.at == SECOND
        assert result.objects[line.key] == line


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(lists, runs, runs)
def test_two_runs_at_once(base: Inventory, mine: Applied, other: Applied) -> None:
    """Whoever comes second, no line of the other's is lost that was not deleted, and no line comes back that was."""
    my, their = changes_of(mine, base, contains), changes_of(other, base, contains)
    theirs = with_changes(base, their, contains)
    merged = with_changes(theirs, my, contains)
    removed = my.gone | my.missing
    assert merged.objects.keys() >= {line.key for line in their.added} - removed
    assert merged.objects.keys().isdisjoint(removed)
    assert not merged.objects.keys() & (their.gone | their.missing) - {line.key for line in my.added}
    untouched = theirs.objects.keys() - removed - my.left.keys() - {line.key for line in my.added}
    assert {key: merged.objects[key] for key in untouched} == {key: theirs.objects[key] for key in untouched}
    for name in my.targets.keys() & their.targets.keys():
        if my.targets[name] and their.targets[name]:
            assert not merged.targets[name].digest
    if not mine.whole and not other.whole and mine.parts[0].target != other.parts[0].target:
        assert merged == with_changes(with_changes(base, my, contains), their, contains)
