"""Equal changes, problems and outcomes of several targets, put together: one decision is shown once. Pure.

Two changes are equal if they do the same to objects of the same name. What depends on the target's own path counts as
equal: it is shown as `<path>`, `<namespace>` and `<name>`.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import isinf
from typing import Generic, TypeVar, cast
from urllib.parse import quote

from pydantic import NonNegativeInt

from reconciler.apply import Outcome, Status
from reconciler.model.diff import Fields
from reconciler.model.plan import ACTIONS, Action, Change, Create, Delete, Excepted, Problem, Update
from reconciler.model.protocols import Json
from reconciler.model.targets import Address, Key, Level, Target
from reconciler.model.wording import counted

FEW = 3
"""Equal changes of so many targets are shown once, unless something else is asked for."""
FEW_PROBLEMS = 2
"""The same for problems, whose texts are long."""

PLACEHOLDERS = ("<path>", "<namespace>", "<name>")

VARIES = "<varies>"
"""Stands for a value that is lost and that is not the same everywhere."""

DEPTHS = (0, 1, 2)
"""How much of an entry is replaced by placeholders: nothing, the path, or its two parts as well."""

NUMBER = re.compile(r"(?<=/)[0-9]+(?=/|$)|\{id\}")
"""The ID of an object in the path of a request, known or not yet."""

REQUEST = re.compile(r"\b((?:GET|POST|PUT|PATCH|DELETE) (?:group|project)s/)([^/\s:]+)((?:/[^\s:]*)?)(?=:|$)")
"""A request to a group or a project, as errors name it."""

Entry = Change | Problem | Excepted | Outcome
One_co = TypeVar("One_co", bound=Entry, covariant=True)


@dataclass(frozen=True, slots=True)
class Group(Generic[One_co]):
    """Entries of several targets that are equal, or that have the same reason.

    Attributes:
        entries: at least one of each target, in the order of the plan.
        sample: the first of them, with placeholders for what depends on its target.
        others: how many objects of other names have the same reason.
    """

    entries: tuple[One_co, ...]
    sample: One_co
    others: int = 0

    @property
    def targets(self) -> tuple[Target, ...]:
        """The targets, in the order of the plan."""
        return tuple(dict.fromkeys(target_of(entry) for entry in self.entries))

    @property
    def origin(self) -> str:
        """Where the manifests declare the entries: the place of all, or the first and how many more there are."""
        origins = list(dict.fromkeys(origin for entry in self.entries if (origin := subject_of(entry).origin)))
        return f"{origins[0]} and {len(origins) - 1} more" if len(origins) > 1 else "".join(origins)


@dataclass(frozen=True, slots=True)
class Block(Generic[One_co]):
    """Groups that have the same targets: creations, updates, deletions, problems."""

    targets: tuple[Target, ...]
    groups: tuple[Group[One_co], ...]


@dataclass(frozen=True, slots=True)
class Grouped(Generic[One_co]):
    """Entries by what they have in common.

    Attributes:
        blocks: the largest first, then by their targets.
        rest: what is in none of them, by target, in the order of the plan.
    """

    blocks: tuple[Block[One_co], ...]
    rest: Mapping[Target, Sequence[One_co]]

    @property
    def groups(self) -> Iterator[Group[One_co]]:
        """All groups, then each entry that is in none, as a group of its own."""
        yield from (group for block in self.blocks for group in block.groups)
        yield from (Group((entry,), entry) for own in self.rest.values() for entry in own)


@dataclass(frozen=True, slots=True)
class SavedGroup:
    """Equal changes of several targets, or their problems or failures of one reason.

    Placeholders stand for what depends on the target: `<path>`, `<namespace>`, `<name>`.
    """

    level: Level
    """The level of the targets."""
    targets: tuple[Key | None, ...]
    """Their full paths or numeric IDs."""
    section: str
    """The section's name; empty for the targets themselves: their creation, or why nothing of them can be read."""
    part: str
    """Which of the section's endpoints; the section's name if there is only one."""
    title: str
    """The word for such an object, such as `milestone`."""
    name: Key | None
    """The object's name; null for a settings section."""
    others: NonNegativeInt
    """How many objects of other names have the same problem or failure."""
    action: Action | None
    """The action; null for a problem."""
    before: Fields
    """The fields that are changed or lost, as they were read; `<varies>` if they are not the same everywhere."""
    after: Fields
    """The fields as they will be."""
    renamed_from: Key | None
    """The name before, or null if the name stays."""
    losses: tuple[str, ...]
    """The losses that come with a deletion; a loss that is not the same everywhere has its number of objects."""
    field: str | None
    """The field that a problem is about; null for the whole object."""
    status: Status | None
    """The outcome; null in a plan and for a problem."""
    reason: str
    """Why it cannot be planned, or is not done; else empty."""
    remedy: str
    """The fix of a problem; empty if the reason contains it."""


def grouped(entries: Iterable[One_co], least: float = FEW) -> Grouped[One_co]:
    """Put together the entries that are equal for at least so many targets; problems, for `FEW_PROBLEMS`.

    An entry goes where most others go, and with its own values rather than placeholders if that makes no difference.

    Args:
        entries: in the order of the plan.
        least: how many targets make a group; infinity for no groups.
    """
    rest: dict[Target, list[One_co]] = {}
    for entry in entries:
        rest.setdefault(target_of(entry), []).append(entry)
    if len(rest) < min(least, FEW_PROBLEMS) or isinf(least):
        return Grouped((), rest)
    blocks: dict[tuple[Target, ...], list[Group[One_co]]] = {}
    held: set[int] = set()
    for group in cast("Iterator[Group[One_co]]", _groups(rest, least)):
        blocks.setdefault(group.targets, []).append(group)
        held.update(map(id, group.entries))
    ordered = sorted(blocks.items(), key=lambda block: (-len(block[0]), [str(target) for target in block[0]]))
    return Grouped(
        tuple(Block(targets, tuple(sorted(groups, key=lambda each: rank(each.sample)))) for targets, groups in ordered),
        {target: [entry for entry in own if id(entry) not in held] for target, own in rest.items()},
    )


def saved_groups(entries: Iterable[Entry]) -> tuple[SavedGroup, ...]:
    """Return the groups of a plan or a report, as its document holds them."""
    return tuple(_saved(group) for block in grouped(entries).blocks for group in block.groups)


def subject_of(entry: Entry) -> Change | Problem | Excepted:
    """Return the change or the problem that an entry is about."""
    return entry.change if isinstance(entry, Outcome) else entry


def target_of(entry: Entry) -> Target:
    """Return the target of an entry."""
    return subject_of(entry).address.target


def is_done(entry: Entry) -> bool:
    """Return whether an entry is a change that was carried out."""
    return isinstance(entry, Outcome) and entry.status is Status.DONE


def rank(entry: Entry) -> int:
    """Return the position of an entry among those of the same targets: creations first, what is excepted last."""
    subject = subject_of(entry)
    if isinstance(subject, Problem | Excepted):
        return len(ACTIONS) + isinstance(subject, Excepted)
    return ACTIONS.index(subject.action)


def _saved(group: Group[Entry]) -> SavedGroup:
    outcome = group.sample if isinstance(group.sample, Outcome) else None
    subject = subject_of(group.sample)
    problem = subject if isinstance(subject, Problem) else None
    address = subject.address
    return SavedGroup(
        level=address.target.level,
        targets=tuple(target.ref for target in group.targets),
        section=address.section,
        part=address.part,
        title=address.title,
        name=address.name,
        others=group.others,
        action=None if isinstance(subject, Problem) else subject.action,
        before=subject.before if isinstance(subject, Update | Delete) else {},
        after=subject.after if isinstance(subject, Create | Update) else {},
        renamed_from=subject.renamed_from if isinstance(subject, Update) else None,
        losses=subject.losses if isinstance(subject, Delete) else (),
        field=problem.field if problem else None,
        status=outcome.status if outcome else None,
        reason=(outcome or problem or Problem(address, "")).reason,
        remedy=problem.remedy if problem else "",
    )


def _groups(entries: Mapping[Target, Sequence[Entry]], least: float) -> Iterator[Group[Entry]]:
    """Yield the groups, in the order of their first entries."""
    owns = cache(_Own)
    numbers: dict[str, int] = {}
    keyed = [pair for target, own in entries.items() for pair in _keyed(own, owns(target), numbers)]
    sizes = Counter(key for _, keys in keyed for key in set(keys))
    found: dict[int, list[Entry]] = {}
    depths: dict[int, int] = {}
    for entry, keys in keyed:
        depth = max(range(len(keys)), key=lambda depth: (sizes[keys[depth]], -depth)) if len(keys) > 1 else 0
        found.setdefault(keys[depth], []).append(entry)
        depths.setdefault(keys[depth], depth)
    for key, members in found.items():
        fewest = min(least, FEW_PROBLEMS) if isinstance(members[0], Problem) else least
        if len({target_of(entry) for entry in members}) >= fewest:
            yield _group(members, lambda entry, depth: owns(target_of(entry)).shown(entry, depth), depths[key])


def _keyed(entries: Iterable[Entry], own: "_Own", numbers: dict[str, int]) -> Iterator[tuple[Entry, list[int]]]:
    """Yield each entry of one target with its key at each depth; equal entries have equal keys.

    The second of two equal changes of one target has another key than the first.
    """
    seen = Counter[str]()
    for entry in entries:
        keys = own.keys(entry)
        if not _is_by_reason(entry):
            seen.update(set(keys))
            keys = [f"{seen[key]} {key}" for key in keys]
        yield entry, [numbers.setdefault(key, len(numbers)) for key in keys]


def _group(entries: Sequence[Entry], shown: Callable[[Entry, int], Entry], depth: int) -> Group[Entry]:
    sample = shown(entries[0], depth)
    if not _is_by_reason(sample):
        return Group(tuple(entries), _without_varying(sample, [shown(entry, depth) for entry in entries]))
    names: set[object] = set()
    for deep in DEPTHS:
        names = {_name(shown(entry, deep)) for entry in entries}
        if len(names) == 1:
            sample = _with_name(sample, subject_of(shown(entries[0], deep)).address.name)
            break
    return Group(tuple(entries), sample, len(names) - 1)


def _is_by_reason(entry: Entry) -> bool:
    """Return whether the reason of an entry says all that matters, whatever it is about."""
    return isinstance(entry, Problem | Outcome) and not is_done(entry)


def _name(entry: Entry) -> object:
    subject = subject_of(entry)
    field = subject.field if isinstance(subject, Problem) else None
    return subject.address.part, subject.address.title, subject.address.name, field


def _with_name(entry: Entry, name: Key | None) -> Entry:
    if isinstance(entry, Outcome):
        return replace(entry, change=replace(entry.change, address=replace(entry.change.address, name=name)))
    return replace(entry, address=replace(entry.address, name=name))


def _without_varying(sample: Entry, all_: Iterable[Entry]) -> Entry:
    """Return a deletion with those lost values that are the same everywhere; anything else as it is.

    Of a loss that is not the same everywhere, the number of deletions with it is told.
    """
    change = subject_of(sample)
    if not isinstance(change, Delete):
        return sample
    deleted = [subject for subject in map(subject_of, all_) if isinstance(subject, Delete)]
    before = {
        name: value if all(name in each.before and each.before[name] == value for each in deleted) else VARIES
        for name, value in change.before.items()
    }
    change = replace(change, before=before, losses=tuple(_losses(deleted)))
    return replace(sample, change=change) if isinstance(sample, Outcome) else change


def _losses(deleted: Sequence[Delete]) -> Iterator[str]:
    """Yield the losses of several deletions: first those of all, then the most frequent ones, and how many others."""
    numbers = Counter(loss for each in deleted for loss in each.losses).most_common()
    yield from (loss for loss, number in numbers if number == len(deleted))
    some = [f"{loss} ({number:,} of {len(deleted):,})" for loss, number in numbers if number < len(deleted)]
    yield from some[:FEW]
    if len(some) > FEW:
        yield f"and {counted(len(some) - FEW, 'other')}"


class _Own:
    """What depends on the path of one target."""

    def __init__(self, target: Target) -> None:
        path = target.ref if isinstance(target.ref, str) else ""
        namespace, _, name = path.rpartition("/")
        whole = _spellings(path, "<path>")
        parts = [*_spellings(namespace, "<namespace>"), *_spellings(name, "<name>")]
        self._words = (whole, sorted([*whole, *parts], key=lambda word: -len(word[0])))
        self._ref = quote(str(target.ref), safe="")
        self._marks = {f"{target.level}s/", *(word for word, _ in parts)}

    def keys(self, entry: Entry) -> list[str]:
        """Return text that is the same for equal entries, for each depth."""
        whole = _key(entry)
        if any(word in whole for word in PLACEHOLDERS):
            return [f"literal {whole}"]
        if not any(mark in whole for mark in self._marks):
            return [whole]
        return [whole, *(_key(self.shown(entry, depth)) for depth in DEPTHS[1:])]

    def shown(self, entry: Entry, depth: int) -> Entry:
        """Return an entry with placeholders."""
        if not depth:
            return entry
        if isinstance(entry, Outcome):
            reason = self._text(self._in_reason(entry.reason), depth)
            return replace(entry, change=self._change(entry.change, depth), reason=reason)
        if isinstance(entry, Problem):
            reason, remedy = self._text(entry.reason, depth), self._text(entry.remedy, depth)
            return replace(entry, address=self._address(entry, depth), reason=reason, remedy=remedy)
        if isinstance(entry, Excepted):
            before, after = self._value(entry.before, depth), self._value(entry.after, depth)
            reason = self._text(entry.reason, depth)
            hidden = replace(entry, address=self._address(entry, depth), before=before, after=after, reason=reason)
            return self.shown(entry, depth - 1) if _hides(before, after) else hidden
        return self._change(entry, depth)

    def _change(self, change: Change, depth: int) -> Change:
        """Return a change with placeholders, unless they would hide what changes."""
        if not depth:
            return change
        address = self._address(change, depth)
        if isinstance(change, Delete):
            losses = tuple(self._text(each, depth) for each in change.losses)
            return replace(change, address=address, before=self._value(change.before, depth), losses=losses)
        after, hint = self._value(change.after, depth), self._text(change.hint, depth)
        if isinstance(change, Create):
            former = tuple(self._value(name, depth) for name in change.former_names)
            return replace(change, address=address, after=after, former_names=former, hint=hint)
        before, name = self._value(change.before, depth), self._value(change.renamed_from, depth)
        if _hides(before, after) or name == address.name is not None:
            return self._change(change, depth - 1)
        return replace(change, address=address, before=before, after=after, renamed_from=name, hint=hint)

    def _address(self, entry: Change | Problem | Excepted, depth: int) -> Address:
        return replace(entry.address, name=self._value(entry.address.name, depth))

    def _value(self, value: Json, depth: int) -> Json:
        match value:
            case str():
                return self._text(value, depth)
            case Mapping():
                return {name: self._value(inner, depth) for name, inner in value.items()}
            case list():
                return [self._value(inner, depth) for inner in value]
        return value

    def _text(self, text: str, depth: int) -> str:
        return _replaced(text, self._words[depth - 1])

    def _in_reason(self, reason: str) -> str:
        return REQUEST.sub(self._any_request, reason)

    def _any_request(self, found: re.Match[str]) -> str:
        start, ref, rest = found.groups()
        return f"{start}<path>{NUMBER.sub('<id>', rest)}" if ref == self._ref or ref.isdecimal() else found[0]


def _hides(before: Fields, after: Fields) -> bool:
    return any(before.get(field) == value for field, value in after.items())


def _spellings(text: str, placeholder: str) -> list[tuple[str, str]]:
    """Return how something is spelt in values and URLs; patterns of protection rules have it in lower case."""
    spellings = dict.fromkeys(spelling for each in (text, text.lower()) for spelling in (each, quote(each, safe="")))
    return [(spelling, placeholder) for spelling in spellings if spelling]


def _replaced(text: str, words: Iterable[tuple[str, str]]) -> str:
    """Return text with placeholders for words that stand alone, the first ones first."""
    pieces = [text]  # every second one is a placeholder
    for word, placeholder in words:
        if word in text:
            split = [[piece] if index % 2 else _split(piece, word, placeholder) for index, piece in enumerate(pieces)]
            pieces = [piece for each in split for piece in each]
    return "".join(pieces)


def _split(text: str, word: str, placeholder: str) -> list[str]:
    """Return what lies between the places where a word stands alone, and its placeholder between any two."""
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
    subject = subject_of(entry)
    address = subject.address
    about: list[Json] = [address.target.level, address.section]
    if isinstance(subject, Problem):
        return json.dumps([*about, subject.reason, subject.remedy])
    about += [subject.action, address.part]
    if isinstance(entry, Outcome) and not is_done(entry):
        return json.dumps([*about, entry.status, entry.reason])
    about += [address.title, address.name]
    if isinstance(subject, Create):
        about += [subject.after, subject.former_names, subject.hint]
    elif isinstance(subject, Update):
        about += [subject.before, subject.after, subject.renamed_from, subject.hint]
    elif isinstance(subject, Excepted):
        about += [subject.before, subject.after, str(subject.until), subject.reason]
    return json.dumps(about, sort_keys=True)
