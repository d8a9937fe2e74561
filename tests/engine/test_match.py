"""Matching wanted and live objects by name, on plain values."""

from typing import Any

from reconciler.engine.compare.matching import match, names_freed_first
from reconciler.model.resource import Item, LiveRecord, Resource
from reconciler.model.targets import Key


def found(number: int, *names: Key) -> LiveRecord:
    return LiveRecord(Item(), names=names, id=number)


def folded(name: Key) -> Key:
    return name.casefold() if isinstance(name, str) else name


def matched(wanted: dict[Key, Resource], *live: LiveRecord, in_chains: bool = False) -> dict[str, list[Any]]:
    matches = match(wanted, live, folded, in_chains=in_chains)
    return {
        "pairs": [(pair.name, pair.record.id, pair.former) for pair in names_freed_first(matches.pairs, folded)],
        "missing": list(matches.missing),
        "leftover": [each.id for each in matches.unmatched],
        "conflicts": [(name, each.reason, len(each.namesakes)) for name, each in matches.conflicts.items()],
    }


def test_names_and_former_names_find_live_objects_and_the_rest_is_missing_or_left_over() -> None:
    wanted: dict[Key, Resource] = {
        "A": Item(),
        "new": Item(renamed_from=("older", "Old")),
        "here": Item(renamed_from=("gone",)),
        "nowhere": Item(renamed_from=("gone",)),
        7: Item(),
    }
    live = [found(1, "a"), found(2, "old"), found(3, "here"), found(4, "other"), found(7, "acme/lib", 7)]
    assert matched(wanted, *live) == {
        "pairs": [("A", 1, None), ("new", 2, "old"), ("here", 3, None), (7, 7, None)],
        "missing": ["nowhere"],
        "leftover": [4],
        "conflicts": [],
    }


def test_an_object_that_several_may_be_is_a_conflict_and_none_of_them_is_left_over() -> None:
    wanted: dict[Key, Resource] = {"a": Item(), "b": Item(renamed_from=("x", "y")), "c": Item(renamed_from=("z",))}
    live = [found(1, "a"), found(2, "A"), found(3, "x"), found(4, "y"), found(5, "c"), found(6, "z"), found(7, "w")]
    assert matched(wanted, *live) == {
        "pairs": [],
        "missing": [],
        "leftover": [7],
        "conflicts": [
            ("a", "2 objects have this name (IDs 1, 2); expected one", 2),
            ("b", '2 objects have the former names "x", "y" (IDs 3, 4); expected one', 0),
            ("c", 'both this name and the former "z" are live; delete one of them', 0),
        ],
    }


def test_a_former_name_of_another_wanted_object_is_a_conflict_and_that_one_keeps_its_object() -> None:
    wanted: dict[Key, Resource] = {
        "A": Item(),
        "new": Item(renamed_from=("old", "a")),
        "here": Item(renamed_from=("a",)),
        "self": Item(renamed_from=("Self",)),
        "nowhere": Item(renamed_from=("new",)),
    }
    reason = 'the former name "A" is that of another declared one'
    assert matched(wanted, found(1, "a"), found(2, "here"), found(3, "old"), found(4, "other")) == {
        "pairs": [("A", 1, None), ("here", 2, None)],
        "missing": ["self", "nowhere"],
        "leftover": [4],
        "conflicts": [("new", reason, 0)],
    }


def test_each_object_of_a_chain_gets_the_name_that_another_gives_up_and_that_one_comes_first() -> None:
    wanted: dict[Key, Resource] = {
        "B": Item(renamed_from=("a",)),
        "C": Item(renamed_from=("B",)),
        "D": Item(renamed_from=("C",)),
        "other": Item(renamed_from=("old",)),
    }
    live = [found(1, "A"), found(2, "b"), found(3, "c"), found(4, "old")]
    chain = [("D", 3, "c"), ("C", 2, "b"), ("B", 1, "A"), ("other", 4, "old")]
    assert matched(wanted, *live, in_chains=True)["pairs"] == chain
    killed_after_the_first = [found(1, "A"), found(2, "b"), found(3, "D")]
    assert matched(wanted, *killed_after_the_first, in_chains=True)["pairs"] == [
        ("C", 2, "b"),
        ("B", 1, "A"),
        ("D", 3, None),
    ]
    done = [found(1, "B"), found(2, "C"), found(3, "D")]
    assert matched(wanted, *done, in_chains=True) == {
        "pairs": [("B", 1, None), ("C", 2, None), ("D", 3, None)],
        "missing": ["other"],
        "leftover": [],
        "conflicts": [],
    }
    assert [name for name, *_ in matched(wanted, *live)["conflicts"]] == ["B", "D"]


def test_what_may_be_one_of_two_objects_is_no_chain() -> None:
    chain: dict[Key, Resource] = {"B": Item(renamed_from=("A",)), "C": Item(renamed_from=("B",))}
    both = "both this name and the former {} are live; delete one of them"
    another = 'the former name "B" is that of another declared one'

    def conflicts(*live: LiveRecord, wanted: dict[Key, Resource] = chain) -> list[object]:
        return matched(wanted, *live, in_chains=True)["conflicts"]

    assert conflicts(found(2, "B")) == [("C", another, 0)]
    assert conflicts(found(1, "A"), found(2, "B"), found(3, "C")) == [("B", both.format('"A"'), 0)]
    shared: dict[Key, Resource] = {**chain, "D": Item(renamed_from=("B",))}
    assert conflicts(found(1, "A"), found(2, "B"), wanted=shared) == [
        ("B", both.format('"A"'), 0),
        ("C", another, 0),
        ("D", another, 0),
    ]
    joined: dict[Key, Resource] = {"B": Item(renamed_from=("A", "Z")), "C": Item(renamed_from=("B",))}
    assert conflicts(found(1, "A"), found(2, "B"), found(3, "Z"), wanted=joined) == [
        ("B", both.format('"A", "Z"'), 0),
        ("C", another, 0),
    ]


def test_one_object_of_several_names_is_one_object() -> None:
    assert matched({"Acme/Lib": Item()}, found(7, "acme/lib", "ACME/lib"))["pairs"] == [("Acme/Lib", 7, None)]
