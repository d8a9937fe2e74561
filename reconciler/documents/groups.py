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
from operator import itemgetter
from typing import Any, Generic, TypeVar, cast
from urllib.parse import quote

from pydantic import NonNegativeInt

from reconciler.model.diff import Fields
from reconciler.model.plan import ACTIONS, Action, Change, Create, Delete, Excepted, Outcome, Problem, Status, Update
from reconciler.model.protocols import Json
from reconciler.model.targets import Address, Key, Level, Target
from reconciler.model.wording import counted

GROUP_FROM_TARGETS = 3
"""Equal changes of so many targets are shown once, unless something else is asked for."""
GROUP_FROM_PROBLEMS = 2
"""The same for problems, whose texts are long."""

PLACEHOLDERS = ("<path>", "<namespace>", "<name>")

VARIES = "<varies>"
"""Stands for a value that is lost and that is not the same everywhere."""

SHOWN_LOSSES = 3
"""How many of the losses are told that only some of several deletions have."""

SHOWN_ATTRIBUTES = ("before", "after", "renamed_from", "former_names", "hint", "reason", "remedy")
"""The attributes of entries that people see, beside their names."""

ID_IN_PATH = re.compile(r"(?<=/)[0-9]+(?=/|$)|\{id\}")
"""The ID of an object in the path of a request, known or not yet."""

REQUEST = re.compile(r"\b((?:GET|POST|PUT|PATCH|DELETE) (?:group|project)s/)([^/\s:]+)((?:/[^\s:]*)?)(?=:|$)")
"""A request to a group or a project, as errors name it."""

Subject = Change | Problem | Excepted
"""What an entry is about."""

Entry = Subject | Outcome
One_co = TypeVar("One_co", bound=Entry, covariant=True)
One = TypeVar("One", bound=Entry)


@dataclass(frozen=True, slots=True)
class EntryGroup(Generic[One_co]):
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
    """The groups that some targets share, or those that one target has alone.

    Attributes:
        targets: several, or one.
        groups: of several targets, creations, then updates, deletions and problems; of one, in the order of the plan.
    """

    targets: tuple[Target, ...]
    groups: tuple[EntryGroup[One_co], ...]

    @property
    def ranked(self) -> list[EntryGroup[One_co]]:
        """The groups as people read them: creations first."""
        return sorted(self.groups, key=lambda group: rank(group.sample))


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


def grouped(entries: Iterable[One], least: float = GROUP_FROM_TARGETS) -> tuple[Block[One], ...]:
    """Put together the entries that are equal for at least so many targets; problems, for `GROUP_FROM_PROBLEMS`.

    Args:
        entries: in the order of the plan.
        least: how many targets make a group; infinity for no groups.
    """
    entries = tuple(entries)
    return arranged(entries, () if isinf(least) else equal(entries), least)


def arranged(
    entries: Iterable[One], groups: Iterable[EntryGroup[One]], least: float = GROUP_FROM_TARGETS
) -> tuple[Block[One], ...]:
    """Put groups with the same targets into blocks, the largest first; then the rest of each target into one.

    Args:
        entries: those of the groups, in the order of the plan.
        groups: see `equal`.
        least: how many targets make a group; problems take `GROUP_FROM_PROBLEMS`.
    """
    together: dict[tuple[Target, ...], list[EntryGroup[One]]] = {}
    shared: set[int] = set()
    for group in () if isinf(least) else groups:
        targets = group.targets
        fewest = min(least, GROUP_FROM_PROBLEMS) if isinstance(group.sample, Problem) else least
        if len(targets) >= fewest:
            together.setdefault(targets, []).append(group)
            shared.update(map(id, group.entries))
    blocks = [
        Block(targets, tuple(sorted(own, key=lambda group: rank(group.sample)))) for targets, own in together.items()
    ]
    blocks.sort(key=lambda block: (-len(block.targets), [str(target) for target in block.targets]))
    alone: dict[Target, list[EntryGroup[One]]] = {}
    for entry in entries:
        if id(entry) not in shared:
            alone.setdefault(target_of(entry), []).append(EntryGroup((entry,), entry))
    return *blocks, *(Block((target,), tuple(own)) for target, own in alone.items())


def equal(entries: Iterable[One]) -> tuple[EntryGroup[One], ...]:
    """Return all entries, those that do the same in one group, in the order of their first entries.

    Entries do the same if their canonical forms are equal: with placeholders for the path, the namespace and the name
    of their targets. Where all entries of one form have the same values, these count: others with them belong to it.
    """
    owns = cache(_Placeholders)
    forms: dict[tuple[int, str], list[tuple[int, One]]] = {}
    spellings: dict[tuple[int, str], set[str]] = {}
    seen = Counter[tuple[Target, str]]()
    for position, entry in enumerate(entries):
        target, spelling = target_of(entry), _key(entry)
        form = owns(target).canonical_key(entry, spelling)
        # the second of two equal changes of one target is in another group than the first
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
        _group([entry for _, entry in members], lambda entry: owns(target_of(entry)).canonical(entry))
        for members in groups
    )


def subject_of(entry: Entry) -> Subject:
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


def saved_group(group: EntryGroup[Entry]) -> SavedGroup:
    """Return a group as a document holds it."""
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


def _group(entries: Sequence[One], canonical: Callable[[One], One]) -> EntryGroup[One]:
    first, *others = entries
    if not others:
        return EntryGroup((first,), first)
    forms = [canonical(entry) for entry in entries]
    subjects, shapes = [*map(subject_of, entries)], [*map(subject_of, forms)]
    names, canonical_names = {_name(subject) for subject in subjects}, {_name(subject) for subject in shapes}
    is_spelt = len(names) == 1 or len(canonical_names) > 1
    address = (subjects if is_spelt else shapes)[0].address
    sample = _with(forms[0], {**_agreed_values(subjects, shapes), "address": address})
    if isinstance(sample, Outcome):
        sample = replace(sample, **_agreed_values(entries, forms))
    return EntryGroup(tuple(entries), sample, len(canonical_names) - 1 if len(names) > 1 else 0)


def _agreed_values(entries: Sequence[Entry], forms: Sequence[Entry]) -> dict[str, Any]:
    """Return what people see of equal changes or problems, by attribute."""
    values: dict[str, Any] = {}
    for name in SHOWN_ATTRIBUTES:
        if not hasattr(forms[0], name):
            continue
        own, canonical = ([getattr(entry, name) for entry in some] for some in (entries, forms))
        if isinstance(canonical[0], Mapping):
            values[name] = {
                field: _agreed(*([fields.get(field, VARIES) for fields in some] for some in (own, canonical)))
                for field in canonical[0]
            }
        else:
            values[name] = _agreed(own, canonical)
    if isinstance(forms[0], Delete):
        values["losses"] = tuple(_losses(entries, forms))
    return values


def _agreed(values: Sequence[Any], forms: Sequence[Any]) -> Any:
    """Return a value that is the same everywhere, else its canonical form; `VARIES` where that differs as well."""
    for some in (values, forms):
        if all(value == some[0] for value in some):
            return some[0]
    return VARIES


def _is_by_reason(entry: Entry) -> bool:
    """Return whether the reason of an entry says all that matters, whatever it is about."""
    return isinstance(entry, Problem | Outcome) and not is_done(entry)


def _name(subject: Subject) -> object:
    field = subject.field if isinstance(subject, Problem) else None
    return subject.address.part, subject.address.title, subject.address.name, field


def _with(entry: One, values: Mapping[str, Any]) -> One:
    """Return an entry with other values of what it is about."""
    if isinstance(entry, Outcome):
        return cast("One", replace(entry, change=replace(entry.change, **values)))
    return cast("One", replace(entry, **values))


def _losses(entries: Iterable[Entry], forms: Sequence[Entry]) -> Iterator[str]:
    """Yield the losses of several deletions: first those of all, then the most frequent ones, and how many others."""
    spelt = [entry.losses for entry in entries if isinstance(entry, Delete)]
    shaped = [entry.losses for entry in forms if isinstance(entry, Delete)]
    shared = dict.fromkeys(loss for loss in spelt[0] if all(loss in own for own in spelt))
    numbers = Counter(
        form
        for own, own_forms in zip(spelt, shaped, strict=True)
        for loss, form in zip(own, own_forms, strict=True)
        if loss not in shared
    ).most_common()
    yield from shared
    yield from (loss for loss, number in numbers if number == len(forms))
    some = [f"{loss} ({number:,} of {len(forms):,})" for loss, number in numbers if number < len(forms)]
    yield from some[:SHOWN_LOSSES]
    if len(some) > SHOWN_LOSSES:
        yield f"and {counted(len(some) - SHOWN_LOSSES, 'other')}"


class _Placeholders:
    """What depends on the path of one target."""

    def __init__(self, target: Target) -> None:
        path = target.ref if isinstance(target.ref, str) else ""
        namespace, _, name = path.rpartition("/")
        parts = [*_spellings(namespace, "<namespace>"), *_spellings(name, "<name>")]
        self._words = sorted([*_spellings(path, "<path>"), *parts], key=lambda word: -len(word[0]))
        self._ref = quote(str(target.ref), safe="")
        self._marks = {f"{target.level}s/", *(word for word, _ in parts)}

    def canonical_key(self, entry: Entry, spelling: str) -> str:
        """Return text that is the same for equal entries.

        Args:
            entry: the entry.
            spelling: its key as it is, see `_key`.
        """
        if any(word in spelling for word in PLACEHOLDERS):
            return f"literal {spelling}"
        return _key(self.canonical(entry)) if any(mark in spelling for mark in self._marks) else spelling

    def canonical(self, entry: One) -> One:
        """Return an entry with placeholders, unless they would hide what changes."""
        match entry:
            case Outcome():
                reason = self._text(self._in_reason(entry.reason))
                form: Entry = replace(entry, change=self._change(entry.change), reason=reason)
            case Problem():
                reason, remedy = self._text(entry.reason), self._text(entry.remedy)
                form = replace(entry, address=self._address(entry), reason=reason, remedy=remedy)
            case Excepted():
                before, after = self._value(entry.before), self._value(entry.after)
                reason = self._text(entry.reason)
                form = replace(entry, address=self._address(entry), before=before, after=after, reason=reason)
                form = entry if _hides(before, after) else form
            case _:
                form = self._change(entry)
        return cast("One", form)

    def _change(self, change: Change) -> Change:
        """Return a change with placeholders, unless they would hide what changes."""
        address = self._address(change)
        if isinstance(change, Delete):
            losses = tuple(self._text(loss) for loss in change.losses)
            return replace(change, address=address, before=self._value(change.before), losses=losses)
        after, hint = self._value(change.after), self._text(change.hint)
        if isinstance(change, Create):
            former = tuple(self._value(name) for name in change.former_names)
            return replace(change, address=address, after=after, former_names=former, hint=hint)
        before, name = self._value(change.before), self._value(change.renamed_from)
        if _hides(before, after) or name == address.name is not None:
            return change
        return replace(change, address=address, before=before, after=after, renamed_from=name, hint=hint)

    def _address(self, entry: Change | Problem | Excepted) -> Address:
        return replace(entry.address, name=self._value(entry.address.name))

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

    def _any_request(self, request: re.Match[str]) -> str:
        start, ref, rest = request.groups()
        return f"{start}<path>{ID_IN_PATH.sub('<id>', rest)}" if ref == self._ref or ref.isdecimal() else request[0]


def _hides(before: Fields, after: Fields) -> bool:
    return any(before.get(field) == value for field, value in after.items())


def _spellings(text: str, placeholder: str) -> list[tuple[str, str]]:
    """Return how something is spelt in values and URLs; patterns of protection rules have it in lower case."""
    spellings = dict.fromkeys(spelling for case in (text, text.lower()) for spelling in (case, quote(case, safe="")))
    return [(spelling, placeholder) for spelling in spellings if spelling]


def _replaced(text: str, words: Iterable[tuple[str, str]]) -> str:
    """Return text with placeholders for words that stand alone, the first ones first."""
    pieces = [text]  # every second one is a placeholder
    for word, placeholder in words:
        if word in text:
            split = [[piece] if index % 2 else _split(piece, word, placeholder) for index, piece in enumerate(pieces)]
            pieces = [piece for parts in split for piece in parts]
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
