"""Groups of equal changes, findings and outcomes of several targets: one decision is shown once. Pure.

Text, notes and pages begin with `entries_of` and `grouped`. Two changes are equal if they do the same to objects of the
same name. Values that differ only by the path of their target are equal; `<path>`, `<namespace>` or `<name>` is shown.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby
from math import isinf
from operator import itemgetter
from typing import Any, Generic, TypeVar, cast
from urllib.parse import quote

from reconciler.model.codes import code_of
from reconciler.model.item import (
    ACTIONS,
    Change,
    Create,
    Delete,
    Finding,
    Item,
    Keep,
    Note,
    Outcome,
    Status,
    Update,
    address_of,
    change_in,
    changes_in,
    sentences,
)
from reconciler.model.protocols import Json
from reconciler.model.targets import Address, Target
from reconciler.model.wording import counted

GROUP_FROM_TARGETS = 3
"""Equal changes of so many targets are shown once, unless `--group-by` says otherwise."""
GROUP_FROM_PROBLEMS = 2
"""Equal problems of so many targets are shown once: their texts are long."""

PLACEHOLDERS = ("<path>", "<namespace>", "<name>")

VARIES = "<varies>"
"""Shown for a value that differs between equal entries, such as one that a deletion loses."""

SHOWN_LOSSES = 3
"""How many losses are shown that only some of several deletions have."""

SHOWN_ATTRIBUTES = ("before", "after", "renamed_from", "reason", "fix", "data")
"""The attributes of entries that people see, beside their names and notes."""

ID_IN_PATH = re.compile(r"(?<=/)[0-9]+(?=/|$)|\{id\}")
"""The ID of an object in the path of a request, known or not yet."""

REQUEST = re.compile(r"\b((?:GET|POST|PUT|PATCH|DELETE) (?:group|project)s/)([^/\s:]+)((?:/[^\s:]*)?)(?=:|$)")
"""A request to a group or a project, as errors name it."""

Subject = Change | Finding
"""A change, or a finding: an entry without its outcome."""

Entry = Subject | Outcome
One_co = TypeVar("One_co", bound=Entry, covariant=True)
One = TypeVar("One", bound=Entry)


@dataclass(frozen=True, slots=True)
class EntryGroup(Generic[One_co]):
    """Entries of several targets that are equal, or that have the same reason.

    Attributes:
        entries: at least one entry of each target, in the order of the plan.
        sample: the first entry, with placeholders for the path of its target.
        others: the number of objects of other names with the same reason.
    """

    entries: tuple[One_co, ...]
    sample: One_co
    others: int = 0

    @property
    def targets(self) -> tuple[Target, ...]:
        """The targets, in the order of the plan."""
        return tuple(dict.fromkeys(address_of(entry).target for entry in self.entries))

    @property
    def origin(self) -> str:
        """The line of the manifests that declares the entries.

        Of several lines, the first and the number of all others.
        """
        origins = list(dict.fromkeys(origin for entry in self.entries if (origin := subject_of(entry).origin)))
        return f"{origins[0]} and {len(origins) - 1} more" if len(origins) > 1 else "".join(origins)


@dataclass(frozen=True, slots=True)
class Block(Generic[One_co]):
    """The groups that the same targets share, or the groups of a single target.

    Attributes:
        targets: several targets, or a single one.
        groups: those of several targets by action, creations first; those of a single target in the order of the plan.
    """

    targets: tuple[Target, ...]
    groups: tuple[EntryGroup[One_co], ...]

    @property
    def ranked(self) -> list[EntryGroup[One_co]]:
        """The groups as people read them: creations first."""
        return sorted(self.groups, key=lambda group: rank(group.sample))


def grouped(entries: Iterable[One], min_targets: float = GROUP_FROM_TARGETS) -> tuple[Block[One], ...]:
    """Return the entries in blocks: equal entries of enough targets together, then the others of each target.

    Args:
        entries: in the order of the plan.
        min_targets: the number of targets that make a group; infinity for no groups. A group of problems, whose texts
            are long, takes `GROUP_FROM_PROBLEMS`.
    """
    entries = tuple(entries)
    return arranged(entries, () if isinf(min_targets) else equal_groups(entries), min_targets)


def arranged(
    entries: Iterable[One], entry_groups: Iterable[EntryGroup[One]], min_targets: float = GROUP_FROM_TARGETS
) -> tuple[Block[One], ...]:
    """Return blocks of groups that share their targets, the largest first; then a block for each single target.

    Args:
        entries: the entries of all groups, in the order of the plan.
        entry_groups: see `equal_groups`.
        min_targets: see `grouped`.
    """
    by_targets: dict[tuple[Target, ...], list[EntryGroup[One]]] = {}
    shared: set[int] = set()
    for group in () if isinf(min_targets) else entry_groups:
        targets = group.targets
        fewest = min(min_targets, GROUP_FROM_PROBLEMS) if _is_finding_by_reason(group.sample) else min_targets
        if len(targets) >= fewest:
            by_targets.setdefault(targets, []).append(group)
            shared.update(map(id, group.entries))
    blocks = [
        Block(targets, tuple(sorted(own, key=lambda group: rank(group.sample)))) for targets, own in by_targets.items()
    ]
    blocks.sort(key=lambda block: (-len(block.targets), [str(target) for target in block.targets]))
    by_target: dict[Target, list[EntryGroup[One]]] = {}
    for entry in entries:
        if id(entry) not in shared:
            by_target.setdefault(address_of(entry).target, []).append(EntryGroup((entry,), entry))
    return *blocks, *(Block((target,), tuple(own)) for target, own in by_target.items())


def equal_groups(entries: Iterable[One]) -> tuple[EntryGroup[One], ...]:
    """Return all entries in groups of equal ones, in the order of their first entries.

    Entries are equal if their canonical forms are: with placeholders for the path, the namespace and the name of their
    targets. If all entries of one form have the same values, entries of other forms with these values join them.
    """
    # a plan has thousands of entries of few targets: each target's words are prepared once
    placeholders_of = cache(_Placeholders)
    forms: dict[tuple[int, str], list[tuple[int, One]]] = {}
    spellings: dict[tuple[int, str], set[str]] = {}
    seen = Counter[tuple[Target, str]]()
    for position, entry in enumerate(entries):
        target, spelling = address_of(entry).target, _key(entry)
        form = placeholders_of(target).canonical_key(entry, spelling)
        # a group has one entry of each target: of two equal changes of one target, the second begins another group
        seen[target, form] += not _is_by_reason(entry)
        place = seen[target, form], form
        forms.setdefault(place, []).append((position, entry))
        spellings.setdefault(place, set()).add(spelling)
    together: dict[object, list[tuple[int, One]]] = {}
    for place, members in forms.items():
        spelling, *others = spellings[place]
        together.setdefault(place if others else (place[0], spelling, "everywhere"), []).extend(members)
    groups = sorted((sorted(members, key=itemgetter(0)) for members in together.values()), key=lambda own: own[0][0])
    return tuple(
        _group(
            [entry for _, entry in members], lambda entry: placeholders_of(address_of(entry).target).canonical(entry)
        )
        for members in groups
    )


def subject_of(entry: Entry) -> Subject:
    """Return the change or the finding of an entry."""
    return entry.change if isinstance(entry, Outcome) else entry


def is_done(entry: Entry) -> bool:
    """Return whether an entry is a change that was carried out."""
    return isinstance(entry, Outcome) and entry.status is Status.DONE


def sort_of(entry: Entry) -> str:
    """Return the sort of an entry, the same for equal ones: `change`, `unfinished`, or the code of a finding."""
    if isinstance(entry, Finding):
        return entry.code
    return "unfinished" if isinstance(entry, Outcome) and not is_done(entry) else "change"


def entries_of(items: Iterable[Item], *sorts: str) -> list[Entry]:
    """Return the changes and findings of some sorts by target; of each target changes come first.

    Args:
        items: in the order of a document.
        sorts: see `sort_of`.
    """
    rank = {sort: number for number, sort in enumerate(sorts)} | {"change": 0, "unfinished": 0}
    meant = (item for item in items if not isinstance(item, Keep) and sort_of(item) in sorts)
    entries: list[Entry] = []
    for _, own in groupby(meant, key=lambda entry: address_of(entry).target):
        entries += sorted(own, key=lambda entry: rank[sort_of(entry)])
    return entries


def rank(entry: Entry) -> int:
    """Return the sort key of an entry within its block: creations first, excepted changes last."""
    change = change_in(entry)
    if change is None:
        return len(ACTIONS) + (sort_of(entry) != "problem")
    return ACTIONS.index(change.action)


def _group(equal_entries: Sequence[One], canonical: Callable[[One], One]) -> EntryGroup[One]:
    first, *others = equal_entries
    if not others:
        return EntryGroup((first,), first)
    forms = [canonical(entry) for entry in equal_entries]
    names, canonical_names = {_name(entry) for entry in equal_entries}, {_name(form) for form in forms}
    # a common name is shown as it is; names that differ only by the path of their target get the placeholder; of names
    # that differ altogether, the first is shown with the number of others
    is_spelt = len(names) == 1 or len(canonical_names) > 1
    address = address_of((equal_entries if is_spelt else forms)[0])
    subjects, shapes = [*map(subject_of, equal_entries)], [*map(subject_of, forms)]
    sample = _with_values(forms[0], address, _common_values(subjects, shapes))
    if isinstance(sample, Outcome):
        sample = replace(sample, **_common_values(equal_entries, forms))
    return EntryGroup(tuple(equal_entries), sample, len(canonical_names) - 1 if len(names) > 1 else 0)


def _common_values(entries: Iterable[Entry], canonical_entries: Sequence[Entry]) -> dict[str, Any]:
    """Return the attributes that people see of equal entries: common values, or placeholders."""
    values: dict[str, Any] = {}
    for name in SHOWN_ATTRIBUTES:
        if hasattr(canonical_entries[0], name):
            own, canonical = ([getattr(entry, name) for entry in some] for some in (entries, canonical_entries))
            values[name] = _common_fields(own, canonical)
    if isinstance(canonical_entries[0], Create | Update | Delete):
        values["notes"] = _common_notes([*changes_in(entries)], [*changes_in(canonical_entries)])
    return values


def _common_fields(entry_values: Sequence[Any], forms: Sequence[Any]) -> Any:
    """Return the common value of each field; see `_common_value`."""
    if not all(isinstance(form, Mapping) for form in forms):
        return _common_value(entry_values, forms)
    return {
        field: _common_fields(*([fields.get(field, VARIES) for fields in some] for some in (entry_values, forms)))
        for field in forms[0]
    }


def _common_notes(changes: Iterable[Change], forms: Sequence[Change]) -> tuple[Note, ...]:
    """Return the notes of equal changes."""
    spelt, shaped = ([*map(_separating_notes, some)] for some in (changes, forms))
    others = (note for note in forms[0].notes if note.code != "loss" and not code_of(note.code).separates)
    losses = (Note("loss", loss) for loss in _common_losses(changes, forms))
    return (*(spelt[0] if all(own == spelt[0] for own in spelt) else shaped[0]), *losses, *others)


def _separating_notes(change: Change) -> tuple[Note, ...]:
    """Return the notes that equal changes must share."""
    return tuple(Note(note.code, note.reason, note.data) for note in change.notes if code_of(note.code).separates)


def _common_value(entry_values: Sequence[Any], forms: Sequence[Any]) -> Any:
    """Return the common value, else the common canonical form; `VARIES` if the forms differ too."""
    for some in (entry_values, forms):
        if all(value == some[0] for value in some):
            return some[0]
    return VARIES


def _is_finding_by_reason(entry: Entry) -> bool:
    """Return whether an entry is a finding that is grouped by its reason alone."""
    return isinstance(entry, Finding) and code_of(entry.code).by_reason


def _is_by_reason(entry: Entry) -> bool:
    """Return whether an entry is grouped by its reason alone, whatever object it is about."""
    return _is_finding_by_reason(entry) or (isinstance(entry, Outcome) and not is_done(entry))


def _name(entry: Entry) -> object:
    address, subject = address_of(entry), subject_of(entry)
    field = subject.field if isinstance(subject, Finding) else None
    return address.part, address.title, address.name, field


def _with_values(original: One, address: Address, values: Mapping[str, Any]) -> One:
    """Return an entry with another address and with other values of its change or finding."""
    match original:
        case Outcome():
            return cast("One", replace(original, change=replace(original.change, address=address, **values)))
        case Finding():
            return cast("One", replace(original, where=address, **values))
        case _:
            return cast("One", replace(original, address=address, **values))


def _common_losses(changes: Iterable[Change], forms: Sequence[Change]) -> list[str]:
    """Return the losses of equal deletions: common ones, then the most frequent others with their numbers."""
    spelt, shaped = ([sentences(change, "loss") for change in some] for some in (changes, forms))
    shared = dict.fromkeys(loss for loss in spelt[0] if all(loss in own for own in spelt))
    numbers = Counter(
        form
        for own, own_forms in zip(spelt, shaped, strict=True)
        for loss, form in zip(own, own_forms, strict=True)
        if loss not in shared
    ).most_common()
    losses = [*shared, *(loss for loss, number in numbers if number == len(forms))]
    some = [f"{loss} ({number:,} of {len(forms):,})" for loss, number in numbers if number < len(forms)]
    losses += some[:SHOWN_LOSSES]
    if len(some) > SHOWN_LOSSES:
        losses.append(f"and {counted(len(some) - SHOWN_LOSSES, 'other')}")
    return losses


class _Placeholders:
    """Replaces the parts of one target's path by placeholders."""

    def __init__(self, target: Target) -> None:
        path = target.ref if isinstance(target.ref, str) else ""
        namespace, _, name = path.rpartition("/")
        parts = [*_spellings(namespace, "<namespace>"), *_spellings(name, "<name>")]
        # the longest first: the path contains the namespace and the name
        self._words = sorted([*_spellings(path, "<path>"), *parts], key=lambda word: -len(word[0]))
        self._ref = quote(str(target.ref), safe="")
        self._marks = {f"{target.level}s/", *(word for word, _ in parts)}

    def canonical_key(self, entry: Entry, spelling: str) -> str:
        """Return text that is the same for equal entries.

        Args:
            entry: the entry.
            spelling: its key as it is, see `_key`.
        """
        # a value that has `<path>` in it would look like a replaced one
        if any(word in spelling for word in PLACEHOLDERS):
            return f"literal {spelling}"
        # replacing is slow: it is skipped where no mark of the target occurs in the text
        return _key(self.canonical(entry)) if any(mark in spelling for mark in self._marks) else spelling

    def canonical(self, original: One) -> One:
        """Return an entry with placeholders, unless they would hide the difference between before and after."""
        match original:
            case Outcome():
                reason = self._text(self._in_reason(original.reason))
                form: Entry = replace(original, change=self._change(original.change), reason=reason)
            case Finding():
                data = self._value(original.data)
                reason, fix = self._text(original.reason), self._text(original.fix)
                form = replace(original, where=self._address(address_of(original)), reason=reason, fix=fix, data=data)
                form = original if _hides(data.get("before"), data.get("after")) else form
            case _:
                form = self._change(original)
        return cast("One", form)

    def _change(self, change: Change) -> Change:
        """Return a change with placeholders, unless they would hide the difference between before and after."""
        address = self._address(change.address)
        notes = tuple(replace(note, reason=self._text(note.reason)) if note.reason else note for note in change.notes)
        match change:
            case Create():
                return replace(change, address=address, after=self._value(change.after), notes=notes)
            case Delete():
                return replace(change, address=address, before=self._value(change.before), notes=notes)
        before, after, name = map(self._value, (change.before, change.after, change.renamed_from))
        if _hides(before, after) or name == address.name is not None:
            return change
        return replace(change, address=address, before=before, after=after, renamed_from=name, notes=notes)

    def _address(self, address: Address) -> Address:
        return replace(address, name=self._value(address.name))

    def _value(self, value: Json) -> Json:
        match value:
            case str():
                return self._text(value)
            case Mapping():
                return {name: self._value(inner) for name, inner in value.items()}
            case list():
                return [self._value(inner) for inner in value]
        return value

    def _text(self, text: str) -> str:
        return _replaced(text, self._words)

    def _in_reason(self, reason: str) -> str:
        return REQUEST.sub(self._any_request, reason)

    def _any_request(self, match: re.Match[str]) -> str:
        start, ref, below = match.groups()
        # an error names a target by its path or by its number; IDs below it differ from target to target
        return f"{start}<path>{ID_IN_PATH.sub('<id>', below)}" if ref == self._ref or ref.isdecimal() else match[0]


def _hides(old_value: Json, new_value: Json) -> bool:
    if not (isinstance(old_value, Mapping) and isinstance(new_value, Mapping)):
        return False
    # with placeholders, a value that moved from one target's path to another's would look unchanged
    return any(old_value.get(field) == value for field, value in new_value.items())


def _spellings(text: str, placeholder: str) -> list[tuple[str, str]]:
    """Return the spellings of a text in values and URLs, each with a placeholder."""
    # the registry's protection rules have the project's path in lower case; URLs have it percent-encoded
    spellings = dict.fromkeys(spelling for case in (text, text.lower()) for spelling in (case, quote(case, safe="")))
    return [(spelling, placeholder) for spelling in spellings if spelling]


def _replaced(text: str, placeholders: Iterable[tuple[str, str]]) -> str:
    """Return text with placeholders for whole words."""
    pieces = [text]  # every second one is a placeholder
    for word, placeholder in placeholders:
        if word in text:
            split = [
                [piece] if index % 2 else _split_at_words(piece, word, placeholder)
                for index, piece in enumerate(pieces)
            ]
            pieces = [piece for parts in split for piece in parts]
    return "".join(pieces)


def _split_at_words(text: str, word: str, placeholder: str) -> list[str]:
    """Return the text around each whole word, with a placeholder between every two pieces."""
    pieces, begin, start = [], 0, text.find(word)
    while start >= 0:
        end = start + len(word)
        if not (text[start - 1 : start].isalnum() or text[end : end + 1].isalnum()):
            pieces += [text[begin:start], placeholder]
            begin = end
        start = text.find(word, end)
    return [*pieces, text[begin:]]


def _key(entry: Entry) -> str:
    """Return text that is the same for equal entries."""
    subject, address = subject_of(entry), address_of(entry)
    about: list[Json] = [address.target.level, address.section]
    if isinstance(subject, Finding):
        about += [subject.code, subject.reason, subject.fix]
        # one reason such as an archived project is one decision, whichever objects it stops
        own = [] if _is_finding_by_reason(subject) else [address.part, address.title, address.name, dict(subject.data)]
        return json.dumps([*about, *own], sort_keys=True)
    about += [subject.action, address.part]
    if isinstance(entry, Outcome) and not is_done(entry):
        return json.dumps([*about, entry.status, entry.reason])
    about += [address.title, address.name]
    # without its values: equal deletions may lose different values, which `_common_losses` sums up
    if isinstance(subject, Delete):
        return json.dumps(about)
    if isinstance(subject, Update):
        about += [dict(subject.before), subject.renamed_from]
    about.append(dict(subject.after))
    about += [[note.code, note.reason] for note in _separating_notes(subject)]
    return json.dumps(about, sort_keys=True)
