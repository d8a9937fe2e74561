"""What an apply leaves for the inventory, also of a run that was narrowed after its plan was made."""

from reconciler.engine.apply.aftermath import aftermath, deleted_keys, names_of
from reconciler.model.diff import AsRead
from reconciler.model.inventory import Inventory
from reconciler.model.item import Create, Delete, Outcome, Status, Update
from reconciler.model.plan import TargetPlan
from reconciler.model.targets import Address, Level, Target
from reconciler.model.upkeep import Applied, PartAfter, TargetAfter
from tests.building import SectionPlan, target_plan
from tests.inventory.test_text import FIRST, SERVICE

ONE, TWO, THREE = (Target(Level.PROJECT, path) for path in ("acme/One", "acme/two", "acme/three"))
NAMES = {ONE: "project 1", TWO: "project 2", THREE: "project 3"}


def read(number: int) -> AsRead:
    return AsRead(number, (), {}, {})


def address(target: Target, name: str) -> Address:
    return Address(target, "milestones", "milestones", "milestone", name)


def part(name: str) -> PartAfter:
    return PartAfter(name, "milestones", "milestones", {"kept": (1,), "new": ()}, listed=(1, 2))


RUN = Applied(
    FIRST,
    (part("project 1"), part("project 2"), part("project 3")),
    tuple(TargetAfter(f"project {each}", f"acme/{each}", "1:abc", None, done=True) for each in (1, 2, 3)),
)


def became(target: Target, *outcomes: Outcome) -> TargetPlan:
    changes = tuple(outcome.change for outcome in outcomes)
    return target_plan(target, (SectionPlan("milestones", 2, changes, outcomes=outcomes),))


def outcomes() -> list[TargetPlan]:
    created = Outcome(Create(address(ONE, "new"), {}, ()), Status.DONE, created=read(3))
    deleted = Outcome(Delete(address(ONE, "old"), {}, (), read(2)), Status.DONE)
    updated = Outcome(Update(address(ONE, "kept"), {}, {}, (), read(1)), Status.DONE)
    unknown = Outcome(Create(address(ONE, "lost"), {}, ()), Status.FAILED, unconfirmed=True)
    skipped = Outcome(Delete(address(TWO, "old"), {}, (), read(2)), Status.SKIPPED)
    return [became(ONE, created, deleted, updated, unknown), became(TWO, skipped)]


def test_a_whole_run_leaves_what_it_read_and_did() -> None:
    after = aftermath(RUN, outcomes(), NAMES)
    assert after.parts[0] == PartAfter(
        "project 1",
        "milestones",
        "milestones",
        {"kept": {1}, "new": {3}},
        created=frozenset({3}),
        deleted=frozenset({2}),
        listed={1, 3},
    )
    assert [(target.done, target.wrote) for target in after.targets] == [(False, True), (False, False), (True, False)]
    assert deleted_keys(outcomes(), NAMES) == {("project 1", "milestones", "milestones", 2)}


def test_targets_of_other_shards_are_left_out() -> None:
    after = aftermath(RUN, [], {THREE: "project 3"})
    assert (after.whole, [part.target for part in after.parts]) == (True, ["project 3"])
    assert [target.target for target in after.targets] == ["project 3"]


def test_a_run_that_was_narrowed_leaves_the_other_targets_alone() -> None:
    after = aftermath(RUN, outcomes(), NAMES, narrowed={"project 3"})
    assert not after.whole
    assert [part.target for part in after.parts] == ["project 1", "project 3"]
    assert [(target.target, target.done) for target in after.targets] == [("project 1", False), ("project 3", True)]


def test_targets_are_named_by_what_is_known_of_them() -> None:
    user, numbered, unknown = Target(Level.USER, None), Target(Level.GROUP, 5), Target(Level.GROUP, "acme")
    read_now = [TargetAfter("project 1", "acme/one", "", None, done=False)]
    named = {user: "user", numbered: "group 5", ONE: "project 1"}
    assert names_of([user, numbered, ONE, unknown], read_now, None) == named
    assert names_of([unknown], (), Inventory(SERVICE)) == {}
