"""Deletions and creations that look like renames."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from reconciler.engine.compare.renames import RenameHint, rename_hints
from reconciler.model.diff import AsRead, Fields
from reconciler.model.endpoints import Collection
from reconciler.model.item import Change, Create, Delete
from reconciler.model.plan import Plan
from reconciler.model.targets import Address, Key, Level, Target
from tests.building import API, KINDS, SectionPlan, noted, target_plan

Objects = Mapping[str, Fields]


def address(name: Key, section: str = "milestones", target: Target = API) -> Address:
    title = KINDS[section].parts[0].title
    return Address(target, section, section, title, name)


def changes(deleted: Objects, created: Objects, section: str, **read_only: str) -> list[Change]:
    return [
        *(Create(address(name, section), fields, ()) for name, fields in created.items()),
        *(
            Delete(address(name, section), fields, (), AsRead(1, (name,), fields, read_only))
            for name, fields in deleted.items()
        ),
    ]


def plan(*found: Change) -> Plan:
    sections = dict.fromkeys((each.address.target, each.address.section) for each in found)
    targets = dict.fromkeys(target for target, _ in sections)
    return Plan(
        tuple(
            target_plan(
                target,
                tuple(
                    SectionPlan(
                        section,
                        changes=tuple(
                            each for each in found if (each.address.target, each.address.section) == (target, section)
                        ),
                    )
                    for where, section in sections
                    if where == target
                ),
            )
            for target in targets
        )
    )


def declared(address: Address, others: Sequence[Key]) -> tuple[str, tuple[str, ...]] | None:
    """Everything is declared in one place, but for objects that are only live."""
    if address.name in {"gone", "lost"}:
        return None
    return "base.yaml:14", (str(address.name), *map(str, others))


def renamed(deleted: Objects, created: Objects, section: str = "milestones", **read_only: str) -> list[str]:
    hints = rename_hints(plan(*changes(deleted, created, section, **read_only)), KINDS, declared)
    return [f"{', '.join(hint.renamed_from)} -> {hint.name}" for hint in hints]


DUE: Fields = {"due_date": "2027-01-29"}
LIVE: Fields = {"description": "as ever", "due_date": "2027-01-29", "state": "active"}
OTHER: Fields = {"description": "something else", "due_date": "2027-02-28", "state": "active"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("2027.1", "2027.01"),
        ("Release 7", "release-7"),
        ("Payments", "Paymnts"),
        ("Payments", "Pyaments"),
        ("Payments 2027", "Payment 2027"),
        ("pay-ments", "payments"),
        ("acme/api/prod*", "ACME/api/prod/*"),
    ],
)
def test_names_that_differ_in_little_look_like_a_rename_whatever_the_fields(old: str, new: str) -> None:
    assert renamed({old: OTHER}, {new: DUE}) == [f"{old} -> {new}"]
    assert renamed({new: OTHER}, {old: DUE}) == [f"{new} -> {old}"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("2027.1", "2027.2"),
        ("Sprint 41", "Sprint 42"),
        ("1.1", "11"),
        ("a", "b"),
        ("api", "app"),
        ("Payments", "Billing"),
        ("acme/api/a*", "acme/api/b*"),
        ("*", "**"),
    ],
)
def test_other_names_do_only_if_all_declared_fields_agree(old: str, new: str) -> None:
    assert renamed({old: OTHER}, {new: DUE}) == []
    assert renamed({old: LIVE}, {new: DUE}) == [f"{old} -> {new}"]


@pytest.mark.parametrize("ref", ["acme/api", 2027])
def test_the_path_of_the_project_is_no_likeness(ref: Key) -> None:
    target = Target(Level.PROJECT, ref)

    def hints(old: str, new: str) -> int:
        read = AsRead(1, (old,), OTHER, {})
        created = Create(address(new, target=target), DUE, ())
        deleted = Delete(address(old, target=target), OTHER, (), read)
        return len(rename_hints(plan(created, deleted), KINDS, declared))

    assert hints("2027.1", "2027.01") == 1
    assert hints("acme/api/a*", "acme/api/b*") == (ref == 2027)


def test_it_must_be_one_to_one() -> None:
    assert renamed({"a": LIVE, "b": LIVE}, {"c": DUE}) == []
    assert renamed({"a": LIVE}, {"c": DUE, "d": DUE}) == []
    assert renamed({"a": LIVE, "Payments": LIVE}, {"Paymnts": DUE, "c": DUE}) == ["Payments -> Paymnts"]
    assert renamed({"a": LIVE, "b": OTHER}, {"c": OTHER, "d": DUE}) == ["b -> c", "a -> d"]
    assert renamed({"Release": LIVE, "release": OTHER}, {"RELEASE": DUE}) == ["Release -> RELEASE"]
    assert renamed({"a": LIVE}, {}) == renamed({}, {"a": DUE}) == []


def test_without_declared_fields_only_what_is_no_longer_declared_looks_like_it() -> None:
    assert renamed({"gone": LIVE}, {"new": {}}) == ["gone -> new"]
    assert renamed({"gone": LIVE}, {"new": {"due_date": None}}) == ["gone -> new"]
    assert renamed({"must not exist": LIVE}, {"new": {}}) == []
    assert renamed({"gone": LIVE, "lost": LIVE}, {"new": {}}) == []


def test_only_what_can_be_renamed_looks_like_it() -> None:
    projects = KINDS["job_token_scope"].part("projects")
    old_entry, new_entry = (
        Address(API, "job_token_scope", "projects", projects.title, f"acme/{name}") for name in "ab"
    )
    gone = Delete(old_entry, {}, (), AsRead(1, ("acme/a",), {}, {}))
    assert rename_hints(plan(Create(new_entry, {}, ()), gone), KINDS, lambda *_: None) == ()
    assert renamed({"gone": {}}, {"new": {}}, "trigger_tokens") == ["gone -> new"]
    assert renamed({"gone": {}}, {"new": {}}, "trigger_tokens", renamed_from="belongs to another user") == []
    rotated = Create(address("nightly", "trigger_tokens"), {}, (), replaces_ids=(3,))
    settled = Delete(address("nightly", "trigger_tokens"), {}, (), AsRead(3, ("nightly",), {}, {}), successor_id=4)
    old, new = changes({"gone": {}}, {"new": {}}, "trigger_tokens")[::-1]
    assert rename_hints(plan(rotated, old), KINDS, declared) == ()
    assert rename_hints(plan(new, settled), KINDS, declared) == ()


def test_what_no_update_can_change_rules_a_rename_out() -> None:
    kind = KINDS["milestones"]
    part = kind.part("milestones")
    assert isinstance(part, Collection)
    fixed = replace(part, writes=replace(part.writes, immutable=("due_date",)))
    kinds = {**KINDS, "milestones": replace(kind, parts=(fixed,))}
    for live, expected in ((OTHER, 0), (LIVE, 1)):
        found = changes({"2027.1": live}, {"2027.01": DUE}, "milestones")
        assert len(rename_hints(plan(*found), kinds, declared)) == expected


def test_a_place_is_named_once_with_all_former_names() -> None:
    targets = [Target(Level.PROJECT, f"acme/p{number}") for number in range(3)]
    olds = ["2026.12", "2026.12", "Dec 2026"]
    steps: list[Change] = []
    for target, old in zip(targets, olds, strict=True):
        steps.append(Create(address("2027.1", target=target), DUE, (), notes=noted(former=("never",))))
        steps.append(Delete(address(old, target=target), LIVE, (), AsRead(1, (old,), LIVE, {})))
    assert rename_hints(plan(*steps), KINDS, declared) == (
        RenameHint("milestones", "milestone", "2027.1", ("2026.12", "Dec 2026", "never"), "base.yaml:14", 3),
    )
    assert rename_hints(plan(*steps), KINDS, lambda *_: None) == ()


@pytest.mark.untraced
def test_a_section_of_thousands_is_compared_in_one_go() -> None:
    olds = {f"Milestone {number}": {"due_date": f"old {number}"} for number in range(3000)}
    news = {f"milestone-{number}": {"due_date": "new"} for number in range(3000)}
    assert len(renamed(olds, news)) == 3000
    alike = {f"of {number}": DUE for number in range(3000)}
    assert renamed({f"before {name}": LIVE for name in alike}, alike) == []
