"""Hints about deletions and creations that look like renames; `rename_hints` finds them. Pure.

A rename without `renamed_from` is a deletion and a creation: all references to the object are lost.
"""

import json
import re
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice

from pydantic import PositiveInt

from reconciler.engine.compare.earlier import by_section
from reconciler.model import endpoints
from reconciler.model.diff import Fields
from reconciler.model.item import Change, Create, Delete, notes_of
from reconciler.model.kind import Kinds
from reconciler.model.plan import Plan
from reconciler.model.resource import Item
from reconciler.model.targets import Address, Key

# Short names, such as those of levels, differ in one letter by chance.
MIN_NAME_LENGTH = 4
"""The fewest letters and digits of names that count as similar if one character differs."""

NAME_PART = re.compile(r"\d+|[^\W\d_]+")

Declared = Callable[[Address, Sequence[Key]], tuple[str, tuple[str, ...]] | None]
"""See `rename_hints`."""

Shape = tuple[str, ...]
"""Names of fields, sorted."""

Signs = tuple[Callable[[], Collection[Hashable]], ...]
"""Functions that return values which similar objects share, from the strongest sign of a rename to the weakest."""


@dataclass(frozen=True, slots=True)
class RenameHint:
    """An item that looks like the new name of an object that is deleted, in one target or in several."""

    section: str
    """The section's name."""
    title: str
    """The word for such an object, such as `milestone`."""
    name: str
    """The name of the item, as the manifest writes it."""
    renamed_from: tuple[str, ...]
    """The name to declare as `renamed_from` of the item, as the manifest would write it."""
    origin: str
    """Where the manifest declares the item, as path:line."""
    targets: PositiveInt
    """The number of targets in which the object is deleted and created."""


def rename_hints(plan: Plan, kinds: Kinds, declared: Declared) -> tuple[RenameHint, ...]:
    """Return one hint for each item of the manifests that looks like a rename, by file and line.

    A deletion and a creation look like one if their names are the same but for case, punctuation and leading zeros, or
    all declared fields agree, or the names differ in one letter; and if that is true of no other deletion or creation
    of the section. Names that differ in a number, such as those of two releases, count only if the fields agree.

    Args:
        plan: any.
        kinds: all kinds.
        declared: returns where an item is declared, and names as they would be written there, its own first; None if
            it is declared nowhere: see `Manifests.declaration`.
    """
    hints = []
    for section, changes in chain.from_iterable(by_section(target).items() for target in plan.targets):
        for deleted, created in _pairs(section, changes, kinds, declared):
            former_names = (name for note in notes_of(created, "unused_names") for name in note.data["names"])
            declared_at = declared(created.address, (*former_names, deleted.read.names[0]))
            if declared_at is not None:
                place, (name, *former) = declared_at
                hints.append(RenameHint(section, created.address.title, name, tuple(former), place, targets=1))
    return merged_hints(hints)


def merged_hints(hints: Iterable[RenameHint]) -> tuple[RenameHint, ...]:
    """Return one hint for each item of the manifests, by file and line."""
    items: dict[tuple[str, str, str], list[RenameHint]] = {}
    for hint in hints:
        items.setdefault((hint.origin, hint.section, hint.name), []).append(hint)
    whole = [
        replace(
            alike[0],
            renamed_from=tuple(sorted({name for hint in alike for name in hint.renamed_from})),
            targets=sum(hint.targets for hint in alike),
        )
        for alike in items.values()
    ]
    return tuple(sorted(whole, key=_place))


def _place(hint: RenameHint) -> tuple[str, int, str, str]:
    file, _, line = hint.origin.rpartition(":")
    # the length first: as text, line 10 would come before line 9
    return file, len(line), line, hint.name


def _pairs(
    section: str, of_section: Sequence[Change], kinds: Kinds, declared: Declared
) -> Iterator[tuple[Delete, Create]]:
    """Yield the deletions and creations that look like renames and that an update can replace."""
    for part in kinds[section].parts:
        if not (
            isinstance(part, endpoints.Collection) and issubclass(part.model, Item) and part.writes.update is not None
        ):
            continue
        changes = [change for change in of_section if change.address.part == part.name]
        created = [change for change in changes if isinstance(change, Create) and not change.replaces_ids]
        deleted = [
            change
            for change in changes
            if isinstance(change, Delete)
            and change.successor_id is None
            and "renamed_from" not in change.read.read_only
        ]
        shapes = {_shape(creation.after) for creation in created}
        new = [_signs(creation, creation.after, {_shape(creation.after)}) for creation in created] if deleted else []
        old = (
            [_signs(deletion, deletion.before, _compared(deletion, shapes, declared)) for deletion in deleted]
            if created
            else []
        )
        for went, came in _one_to_one(old, new):
            before, after = deleted[went].before, created[came].after
            # where a fixed field differs too, an update cannot replace deletion and creation
            if all(before.get(name) == after[name] for name in part.writes.immutable if name in after):
                yield deleted[went], created[came]


def _compared(deletion: Delete, shapes: Collection[Shape], declared: Declared) -> Iterator[Shape]:
    """Yield the forms in which a deleted object may equal new ones.

    A new object without declared fields equals any: that says nothing if a manifest says that the other must
    not exist.
    """
    return (shape for shape in shapes if shape or declared(deletion.address, ()) is None)


def _shape(fields: Fields) -> Shape:
    return tuple(sorted(fields)) if any(value is not None for value in fields.values()) else ()


def _signs(change: Change, fields: Fields, compared_shapes: Iterable[Shape]) -> Signs:
    """Return the signs by which a created or deleted object resembles other objects."""
    ref = change.address.target.ref
    name = str(change.address.name).casefold()
    # The patterns of a project begin with its path, and are not alike because of it.
    words = NAME_PART.findall(name.replace(ref.casefold(), "") if isinstance(ref, str) and "/" in ref else name)
    compared = list(compared_shapes)

    def spelling() -> set[Hashable]:
        return {tuple(int(word) if word.isdecimal() else word for word in words)} if words else set()

    def contents() -> set[Hashable]:
        shown = ((shape, [fields.get(name) for name in shape]) for shape in compared if shape)
        return {(shape, json.dumps(values, sort_keys=True)) for shape, values in shown}

    def less_a_letter() -> set[Hashable]:
        text, numbers = "".join(words), tuple(int(word) for word in words if word.isdecimal())
        shorter = (text[:at] + text[at + 1 :] for at in range(len(text)))
        return {(numbers, sign) for sign in (text, *shorter)} if len(text) >= MIN_NAME_LENGTH else set()

    def emptiness() -> set[Hashable]:
        return {()} if () in compared else set()

    return spelling, contents, less_a_letter, emptiness


def _one_to_one(former_signs: Sequence[Signs], new_signs: Sequence[Signs]) -> Iterator[tuple[int, int]]:
    """Yield the positions of old and new objects that share a sign only with each other, strongest sign first."""
    went, came = dict(enumerate(former_signs)), dict(enumerate(new_signs))
    # A pair found by a strong sign is gone before weaker signs are compared, so that it makes no other pair ambiguous.
    for strength in range(len(former_signs[0]) if former_signs else 0):
        by_sign: dict[Hashable, tuple[set[int], set[int]]] = {}
        for side, signs in enumerate((went, came)):
            for position, signs_of in signs.items():
                for sign in signs_of[strength]():
                    by_sign.setdefault(sign, (set(), set()))[side].add(position)
        to_new = _candidates(by_sign.values())
        to_old = _candidates((new, old) for old, new in by_sign.values())
        for one, (other, *more) in to_new.items():
            if not more and to_old[other] == {one}:
                del went[one], came[other]
                yield one, other


def _candidates(sides: Iterable[tuple[set[int], set[int]]]) -> Mapping[int, set[int]]:
    """Map each position to its candidates on the other side, at most two: one is a match, two are ambiguous."""
    partners: dict[int, set[int]] = {}
    for these, others in sides:
        few = set(islice(others, 2))
        for position in these if few else ():
            partners.setdefault(position, set()).update(few)
    return partners
