"""Any history of manifests, applied from any commit, in whole or in part, by many, on a service that others use too.

Nothing is deleted by absence unless HEAD descends from a commit whose manifests declared it for that target, with the
same inputs, and neither its name nor its ID is declared now.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconciler.memory.absence import CommitPosition, LastApplied, PartNow, absent, decide, stale_absences
from reconciler.memory.inventory import Inventory, ObjectKey, ObjectLine
from reconciler.memory.projection import Basis, Projection
from reconciler.model.item import Item, Keep
from reconciler.model.plan import Seen
from reconciler.model.targets import Address, Level, Target
from tests.building import KINDS
from tests.inventory.test_projection import Report, deleted
from tests.inventory.test_text import SERVICE

TARGETS = ("project 1", "project 2")
SECTION = "milestones"


@dataclass(frozen=True)
class Commit:
    """A commit: by target that has the section, the names that it declares."""

    parents: tuple[int, ...]
    declared: dict[str, frozenset[str]]


@dataclass
class World:
    """The service and the list, and all that ever happened."""

    history: tuple[Commit, ...]
    live: dict[str, dict[int, str]] = field(default_factory=lambda: {target: {} for target in TARGETS})
    inventory: Inventory = field(default_factory=lambda: Inventory(SERVICE))
    born: int = 0

    def commit(self, number: int) -> str:
        return f"{number:040x}"

    def contained(self, head: int) -> frozenset[int]:
        return frozenset({head}).union(*(self.contained(parent) for parent in self.history[head].parents))

    def standing(self, commit: str, head: int) -> CommitPosition:
        number = int(commit, 16)
        if number in self.contained(head):
            return CommitPosition.CONTAINED
        if number >= len(self.history):
            return CommitPosition.UNKNOWN
        return CommitPosition.AHEAD if head in self.contained(number) else CommitPosition.ELSEWHERE

    def positions(self, head: int) -> dict[str, CommitPosition]:
        commits = {line.at for line in self.inventory.objects.values()} | {self.inventory.applied}
        return {commit: self.standing(commit, head) for commit in commits if commit}

    def declares(self, line: ObjectLine) -> bool:
        return line.name in self.history[int(line.at, 16)].declared.get(line.target, ())

    def create(self, target: str, name: str) -> None:
        self.born += 1
        self.live[target][self.born] = name

    def last_applied(self, head: int) -> LastApplied:
        commit = self.inventory.applied
        return LastApplied(commit, self.positions(head)[commit] if commit else CommitPosition.CONTAINED)

    def planned(self, head: int, targets: Iterable[str], *, inputs: bool) -> tuple[ObjectLine, ...]:
        """Return what a plan deletes, having checked each of it."""
        declared = self.history[head].declared
        parts = []
        for target in targets:
            if target in declared:
                live = {number: frozenset([name]) for number, name in self.live[target].items()}
                claimed = frozenset(number for number, names in live.items() if names & declared[target])
                parts.append(PartNow(target, SECTION, SECTION, live, declared[target], declared=claimed))
        candidates, _ = absent(self.inventory, parts)
        verdict = decide(candidates, self.positions(head), self.declares, "" if inputs else "other inputs")
        for line in verdict.proved:
            shown = [self.history[number].declared.get(line.target, frozenset()) for number in self.contained(head)]
            assert inputs
            assert any(line.name in names for names in shown)
            assert line.name not in declared[line.target]
            assert self.live[line.target][line.id] == line.name
        return verdict.proved

    def apply(
        self, head: int, targets: tuple[str, ...], doing: int, *, committed: bool, inputs: bool, slow: int
    ) -> None:
        """Plan and apply, up to so many writes; meanwhile, another apply may take place of the commit `slow`."""
        deletions = self.planned(head, targets, inputs=inputs and committed)
        base = self.inventory
        if slow >= 0:
            self.apply(slow % len(self.history), TARGETS, 99, committed=True, inputs=True, slow=-1)
        stale = stale_absences([line.key for line in deletions], self.inventory, self.last_applied(head))
        base = self.inventory if stale else base
        declared, items, looked_at, missing = self.history[head].declared, list[Item](), list[Seen](), list[ObjectKey]()
        for name in targets:
            if name not in declared:
                continue
            target = Target(Level.PROJECT, int(name.partition(" ")[2]))
            wishes = [line for line in deletions if line.target == name]
            for line in wishes:
                if doing and line.key not in stale and self.live[name].get(line.id) == line.name:
                    doing -= 1
                    del self.live[name][line.id]
                    items.append(deleted(line.id, str(line.name), target=target))
            for wanted in sorted(declared[name] - {*self.live[name].values()}):
                if doing:
                    doing -= 1
                    self.create(name, wanted)
            for wanted in declared[name]:
                ids = [number for number, called in self.live[name].items() if called == wanted]
                known = [number for number in ids if (name, SECTION, SECTION, number) in base.objects]
                address = Address(target, SECTION, SECTION, "milestone", wanted)
                items += (Keep(address, number) for number in (ids if len(ids) == 1 else known))
            missing += (key for key in base.objects if key[0] == name and key[3] not in self.live[name])
            done = (
                declared[name] <= {*self.live[name].values()}
                and not {line.id for line in wishes} & self.live[name].keys()
            )
            looked_at.append(Seen(target, {SECTION: 0}, path=name, digest=f"1:{sorted(declared[name])}", done=done))
        basis = Basis(
            seen=base,
            commit=self.commit(head) if committed else "",
            whole=targets == TARGETS and inputs,
            missing=tuple(missing),
            declared=dict.fromkeys(declared, (f"{SECTION}/{SECTION}",)),
        )
        self.inventory = Projection(Report(looked_at, items), basis, Head(self, head), KINDS).onto(self.inventory)


@dataclass(frozen=True)
class Head:
    """The commits below one that is checked out."""

    world: World
    number: int

    def contains(self, commit: str) -> bool:
        return not commit or self.world.standing(commit, self.number) is CommitPosition.CONTAINED

    def last_applied(self, commit: str) -> LastApplied:
        return LastApplied(commit, self.world.standing(commit, self.number) if commit else CommitPosition.CONTAINED)


declarations = st.dictionaries(st.sampled_from(TARGETS), st.frozensets(st.sampled_from("abc")))


@st.composite
def histories(draw: st.DrawFn) -> tuple[Commit, ...]:
    """Return commits with one or two parents each, and so branches, merges, reverts and squashes."""
    commits = [Commit((), draw(declarations))]
    for number in range(1, draw(st.integers(2, 6))):
        parents = draw(st.frozensets(st.integers(max(0, number - 3), number - 1), min_size=1, max_size=2))
        commits.append(Commit(tuple(sorted(parents)), draw(declarations)))
    return tuple(commits)


numbers = st.integers(0, 5)
whole = st.tuples(
    st.just("apply"), numbers, st.just(TARGETS), st.just(99), st.just(True), st.just(True), st.integers(-3, 5)
)
steps = st.one_of(
    whole,
    st.tuples(
        st.just("apply"),
        numbers,
        st.sampled_from([TARGETS, TARGETS[:1], TARGETS[1:]]),
        st.integers(0, 3),
        st.booleans(),
        st.booleans(),
        st.integers(-3, 5),
    ),
    st.tuples(st.just("stranger"), st.sampled_from(TARGETS), st.sampled_from("abcd"), st.integers(0, 4)),
    st.tuples(st.just("forged"), st.sampled_from(TARGETS), st.integers(0, 9), st.integers(0, 7)),
)


def carry_out(world: World, steps: Iterable[tuple[object, ...]]) -> None:
    for step in steps:
        match step:
            case ("apply", int(head), tuple(targets), int(doing), bool(committed), bool(inputs), int(slow)):
                head %= len(world.history)
                world.apply(head, targets, doing, committed=committed, inputs=inputs, slow=slow)
            case ("stranger", str(target), str(name), int(which)):
                if which in world.live[target]:
                    world.live[target][which] = name
                else:
                    world.create(target, name)
            case ("forged", str(target), int(which), int(at)) if world.live[target]:
                number, name = [*world.live[target].items()][which % len(world.live[target])]
                line = ObjectLine(target, SECTION, SECTION, name, number, world.commit(at))
                world.inventory = replace(world.inventory, objects={**world.inventory.objects, line.key: line})


@pytest.mark.untraced
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(histories(), st.lists(steps, max_size=12))
def test_nothing_is_deleted_that_history_does_not_prove(
    history: tuple[Commit, ...], steps: list[tuple[object, ...]]
) -> None:
    carry_out(World(history), steps)


@pytest.mark.untraced
@settings(max_examples=70, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(histories(), st.lists(whole, max_size=10), st.lists(st.booleans(), max_size=6))
def test_after_the_last_whole_apply_nothing_is_left_of_what_a_line_of_commits_declared(
    history: tuple[Commit, ...], steps: list[tuple[object, ...]], skipped: list[bool]
) -> None:
    """Commits of one branch are applied in their order, some not at all; others' pipelines come in between."""
    world = World(history)
    line = sorted(world.contained(len(history) - 1))
    chosen = [number for number, skip in zip(line, [*skipped, *[False] * 6], strict=False) if not skip]
    for number in chosen:
        world.apply(number, TARGETS, 99, committed=True, inputs=True, slow=-1)
    head = line[-1]
    world.apply(head, TARGETS, 99, committed=True, inputs=True, slow=-1)
    world.apply(head, TARGETS, 99, committed=True, inputs=True, slow=-1)
    ever = {number for number in chosen if number in world.contained(head)}
    for target, names in history[head].declared.items():
        released = [number for number in ever if target not in history[number].declared]
        if not released:
            assert sorted(world.live[target].values()) == sorted(names)
    assert not world.planned(head, TARGETS, inputs=True)
    carry_out(world, steps)


def test_a_checkout_that_is_behind_never_deletes_what_others_have_just_applied() -> None:
    history = (Commit((), {"project 1": frozenset("a")}), Commit((0,), {"project 1": frozenset("ab")}))
    world = World(history)
    world.apply(1, TARGETS, 99, committed=True, inputs=True, slow=-1)
    assert world.planned(0, TARGETS, inputs=True) == ()
    world.apply(0, TARGETS, 99, committed=True, inputs=True, slow=-1)
    assert sorted(world.live["project 1"].values()) == ["a", "b"]


def test_an_old_plan_never_deletes_what_newer_manifests_declare_again() -> None:
    declared = [{"project 1": frozenset(names)} for names in ("ab", "a", "ab")]
    world = World(tuple(Commit((number - 1,) if number else (), each) for number, each in enumerate(declared)))
    world.apply(0, TARGETS, 99, committed=True, inputs=True, slow=-1)
    assert [line.name for line in world.planned(1, TARGETS, inputs=True)] == ["b"]
    world.apply(1, TARGETS, 99, committed=True, inputs=True, slow=2)
    assert sorted(world.live["project 1"].values()) == ["a", "b"]
