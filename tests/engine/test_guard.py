"""The guard against losing much at once."""

from dataclasses import replace

from reconciler.document.guard import NO_LIMITS, Limits
from reconciler.model.item import Create, Delete
from reconciler.model.plan import Plan
from reconciler.model.shards import Shard
from reconciler.model.targets import Address
from tests.building import API, READ, SectionPlan, sections_of, target_plan, with_sections
from tests.render.samples import saved_plan


def refused(plan: Plan, limits: Limits = NO_LIMITS, shards: int = 1) -> tuple[str, ...]:
    return replace(saved_plan(plan), limits=limits, shard=Shard(1, shards)).refusals


def losing(lost: int, found: int, created: int = 0, sections: int = 1) -> Plan:
    return Plan((target_plan(API, tuple(_losing(f"s{number}", lost, found, created) for number in range(sections))),))


def _losing(name: str, lost: int, found: int, created: int = 0) -> SectionPlan:
    address = Address(API, name, name, "milestone", "a")
    changes = (Create(address, {}, ()),) * created + (Delete(address, {}, (), READ),) * lost
    return SectionPlan(name, found, changes)


def test_three_of_ten_may_go_and_four_may_not() -> None:
    assert refused(losing(3, 10), Limits()) == ()
    assert refused(losing(4, 10), Limits()) == (
        "it deletes 4 of 10 entries of s0 of project acme/api; add --allow-deletes 4",
    )


def test_a_small_section_may_go_whole() -> None:
    assert refused(losing(9, 9), Limits()) == ()


def test_twenty_in_all_may_go_and_more_may_not() -> None:
    assert refused(losing(20, 100), Limits()) == ()
    assert refused(losing(21, 100), Limits()) == ("it deletes 21 objects, more than 20; add --allow-deletes 21",)


def test_many_sections_that_lose_much_are_one_reason() -> None:
    assert refused(losing(4, 10, sections=3)) == (
        "it deletes 4 of 10 entries of s0 of project acme/api, more than 30 % of 2 more sections; "
        "add --allow-deletes 12",
    )
    (target,) = losing(4, 10, sections=11).targets
    plan = Plan((with_sections(target, (_losing("all", 121, 121), *sections_of(target))),))
    assert refused(plan) == (
        "it deletes 121 of 121 entries of all of project acme/api, more than 30 % of 11 more sections; "
        "add --allow-deletes 165",
    )


def test_a_shard_that_knows_nothing_of_the_others_may_delete_its_part() -> None:
    assert refused(losing(4, 100), shards=5) == ()
    assert refused(losing(5, 100), shards=5) == (
        "it deletes 5 objects, more than 4, which is this shard's part of 20; merge all plans, or add --allow-deletes 5",
    )
    assert refused(losing(5, 100), Limits(allow_deletes=5), shards=5) == ()
    assert refused(losing(1, 100), shards=21) == (
        "it deletes 1 object, more than 0, which is this shard's part of 20; merge all plans, or add --allow-deletes 1",
    )


def test_deletions_that_are_meant_may_happen_but_no_more_than_that() -> None:
    assert refused(losing(30, 30), Limits(allow_deletes=30)) == ()
    assert refused(losing(31, 31), Limits(allow_deletes=30)) == (
        "it deletes 31 objects, more than --allow-deletes 30; add --allow-deletes 31",
    )
    assert refused(losing(1, 100), Limits(allow_deletes=0)) == (
        "it deletes 1 object, more than --allow-deletes 0; add --allow-deletes 1",
    )


def test_the_number_of_changes_can_be_bounded() -> None:
    assert refused(losing(1, 100, created=2), Limits(max_changes=3)) == ()
    assert refused(losing(1, 100, created=2), Limits(max_changes=2)) == (
        "it makes 3 changes, more than --max-changes 2",
    )


def test_secrets_of_two_sorts_are_counted_apart() -> None:
    titles = ("trigger token", "error tracking client key", "trigger token")
    created = tuple(Create(Address(API, "s", "s", title, "a"), {}, (), delivers=True) for title in titles)
    plan = Plan((target_plan(API, (SectionPlan("s", 0, created),)),))
    assert refused(plan) == (
        "it creates 2 trigger tokens and 1 error tracking client key, whose value is shown only once; "
        "add --tokens-to FILE or --tokens-command CMD",
    )
