"""The guard against losing much at once."""

from reconciler.address import Address
from reconciler.guard import Limits, objections
from reconciler.plan import Create, Delete, Plan, SectionPlan, TargetPlan
from tests.building import API, READ


def losing(lost: int, found: int, created: int = 0) -> Plan:
    address = Address(API, "milestones", "milestones", "milestone", "a")
    changes = (Create(address, {}, ()),) * created + (Delete(address, {}, (), READ),) * lost
    return Plan((TargetPlan(API, (SectionPlan("milestones", found, changes),)),))


def test_three_of_ten_may_go_and_four_may_not() -> None:
    assert list(objections(losing(3, 10), Limits())) == []
    assert list(objections(losing(4, 10), Limits())) == [
        "project acme/api would lose 4 of its 10 milestones; if that is meant, add --allow-deletes 4"
    ]


def test_a_small_section_may_go_whole() -> None:
    assert list(objections(losing(9, 9), Limits())) == []


def test_twenty_in_all_may_go_and_more_may_not() -> None:
    assert list(objections(losing(20, 100), Limits())) == []
    assert list(objections(losing(21, 100), Limits())) == [
        "the plan deletes 21 objects, more than 20 in all; if that is meant, add --allow-deletes 21"
    ]


def test_deletions_that_are_meant_may_happen_but_no_more_than_that() -> None:
    assert list(objections(losing(30, 30), Limits(deletes=30))) == []
    assert list(objections(losing(31, 31), Limits(deletes=30))) == [
        "the plan deletes 31 objects, more than --allow-deletes 30"
    ]
    assert list(objections(losing(1, 100), Limits(deletes=0))) == [
        "the plan deletes 1 objects, more than --allow-deletes 0"
    ]


def test_the_number_of_changes_can_be_bounded() -> None:
    assert list(objections(losing(1, 100, created=2), Limits(changes=3))) == []
    assert list(objections(losing(1, 100, created=2), Limits(changes=2))) == [
        "the plan makes 3 changes, more than --max-changes 2"
    ]
