"""The cards of a page: equal changes, problems and outcomes put together, the biggest risk first. Pure.

A card is one decision. What is not done has one card for each reason, whatever it is about.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import chain, takewhile
from math import inf
from typing import Any, NamedTuple, cast

from reconciler.document.document import RunDocument
from reconciler.document.groups import REQUEST, Entry, EntryGroup, entries_of, equal, grouped, is_done, subject_of
from reconciler.document.links import Links
from reconciler.document.numbers import ALREADY, DocumentPart, parts_of
from reconciler.document.style import Style
from reconciler.document.wording import (
    excepted_subject,
    finding_subject,
    flat,
    label,
    losses,
    predicate,
    reason_of,
    restored_text,
    subject,
    who,
)
from reconciler.model.codes import code_of
from reconciler.model.item import (
    Change,
    Create,
    Delete,
    Finding,
    Outcome,
    Status,
    address_of,
    change_in,
    changes_in,
    sentences,
)
from reconciler.model.protocols import Json
from reconciler.model.targets import Address, Level, Target
from reconciler.model.values import empty_of, entry_words, value
from reconciler.model.wording import counted
from reconciler.reports.coverage import AFTER, State
from reconciler.reports.html.verdict import is_interrupted
from reconciler.system.terminal import escaped, escaped_lines

MAX_SHOWN_TEXT_LENGTH = 10_000
"""How many characters of a value are shown."""

TEXT_CONTEXT_LENGTH = 100
"""How many of them stand before the first difference of two longer ones."""

Field = tuple[str, str | None, str | None]
"""A field's name, its value before, and its value after; None for nothing."""


@dataclass(frozen=True, slots=True)
class CardKind:
    """A sort of card.

    Attributes:
        name: marks its cards, in style sheets and links too.
        sign: repeats what its colour says.
        heading: stands above its cards.
        state: of the cells of the matrix in which they are.
    """

    name: str
    sign: str
    heading: str
    state: State


DONE_CARDS = (
    CardKind("deleted", "\u2212", "Deleted", State.IN_ORDER),
    CardKind("created", "+", "Created", State.IN_ORDER),
    CardKind("updated", "~", "Updated", State.IN_ORDER),
)
UNFINISHED_CARDS = (
    CardKind("failed", "\u00d7", "Failed", AFTER[Status.FAILED]),
    CardKind("dropped", "\u00d7", "Dropped by the service", AFTER[Status.DROPPED]),
    CardKind("stale", "\u00d7", "Stale", AFTER[Status.STALE]),
    CardKind("skipped", "\u00bb", "Skipped", AFTER[Status.SKIPPED]),
)
PROBLEM_CARD = CardKind("problem", "!", "Problems", State.PROBLEM)
LEFT_ALONE_CARDS = (
    CardKind("unmanaged", "?", "Unmanaged", State.UNMANAGED),
    CardKind("excepted", "=", "Excepted", State.EXCEPTED),
    CardKind("unfit", "\u2013", "Not applicable", State.NOT_APPLICABLE),
)
ALREADY_CARD = CardKind("already", "\u2260", "Not of this change", State.CHANGES)
RESTORED = CardKind("restored", "=", "Changed and put back", State.IN_ORDER)
PLAN_CARDS = (
    CardKind("delete", "\u2212", "Deletions", State.DELETIONS),
    PROBLEM_CARD,
    CardKind("create", "+", "Creations", State.CHANGES),
    CardKind("update", "~", "Updates", State.CHANGES),
    ALREADY_CARD,
    RESTORED,
    *LEFT_ALONE_CARDS,
)


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision.

    Attributes:
        kind: the name of its kind.
        title: says it in a sentence.
        entries: what it is about.
        subject: what each entry is about, if that is the same; placeholders stand for what depends on its target.
        reason: why something is not done, or held back.
        remedy: the fix of a problem.
        fields: the values, if these are the same for all entries.
        losses: what is lost by a deletion: a clause each.
        place: where the manifests ask for all of it; empty if that is not one place.
        groups: the equal changes that it consists of, if these differ.
    """

    kind: str
    title: str
    entries: Sequence[Entry]
    subject: str
    reason: str = ""
    remedy: str = ""
    fields: Sequence[Field] = ()
    losses: Sequence[str] = ()
    place: str = ""
    groups: Sequence["Decision"] = ()


def decisions(shown: RunDocument, kinds: Sequence[CardKind], style: Style) -> list[Decision]:
    """Return what a plan would do and what cannot be planned, or what became of it, in the order of the kinds."""
    # one decision is one card, however many targets it is about
    least = inf if style.group_by == "target" else 1
    held = {(seen.target, section): number for seen in shown.targets for section, number in seen.sections.items()}
    parts = (card for part in parts_of(shown) for card in _of_part(part, least, held))
    put_back = map(_put_back, shown.findings("restored") if shown.restored_since else ())
    order = {kind.name: number for number, kind in enumerate(kinds)}
    return sorted(chain(parts, put_back), key=lambda card: (order[card.kind], -len(card.entries)))


def _put_back(restored: Finding) -> Decision:
    title = f"{label(address_of(restored))}: {restored_text(restored)}"
    return Decision("restored", title, [restored], finding_subject(restored))


Held = Mapping[tuple[Target, str], int | None]
"""How many objects each section held."""


def _of_part(part: DocumentPart, least: float, held: Held) -> Iterator[Decision]:
    """Yield the cards of a part, those of one with a name with it."""
    unfinished = cast("Iterator[EntryGroup[Outcome]]", _groups(part, least, "unfinished"))
    cards = chain(
        (_unfinished(groups) for groups in _by_reason(unfinished, least)),
        _changes(part, least, held),
        _others(part, least),
    )
    for card in cards:
        kind = ALREADY_CARD.name if part.name in ALREADY.values() else card.kind
        title = f"{part.name.capitalize()}: {card.title}" if part.name else card.title
        yield replace(card, kind=kind, title=title)


def _groups(part: DocumentPart, least: float, sort: str) -> Iterator[EntryGroup[Any]]:
    return (group for block in grouped(entries_of(part.items, sort), least) for group in block.groups)


def kinds_of_report(shown: RunDocument) -> tuple[CardKind, ...]:
    """Return the kinds of a report's cards in their order. Where the run was interrupted, what is done comes first."""
    if is_interrupted(shown):
        return *DONE_CARDS, *UNFINISHED_CARDS, PROBLEM_CARD, *LEFT_ALONE_CARDS
    return *UNFINISHED_CARDS, PROBLEM_CARD, *DONE_CARDS, *LEFT_ALONE_CARDS


def data(cards: Iterable[Decision], links: Links) -> dict[str, Any]:
    """Return cards for the page's script.

    Texts are safe to show. Each row is about one entry: the numbers of its target, of its section, of what it is about
    where that is not what the title says, of the place that declares it, of losses that other entries do not have, of
    its page, and, on a card of several groups, of its group.
    """
    rows = _Rows(links)
    seen = Counter[str]()
    shown: list[dict[str, Any]] = []
    for card in cards:
        own = rows.of(card)
        told: dict[str, Any] = {
            "id": _id(card, seen),
            "kind": card.kind,
            "title": card.title,
            "sections": [*dict.fromkeys(row[1] for row in own)],
            "reason": card.reason,
            "remedy": card.remedy,
            "fields": card.fields,
            "losses": card.losses,
            "place": rows.texts[escaped(card.place)],
            "groups": [{"title": group.title, "fields": group.fields, "losses": group.losses} for group in card.groups],
            "requests": _requests(card.entries),
            "rows": own,
        }
        shown.append({key: value for key, value in told.items() if value})
    return {
        "targets": [*rows.targets],
        "sections": [*rows.sections],
        "texts": [*rows.texts],
        "pages": rows.pages,
        "lines": rows.lines,
        "cards": shown,
    }


def _changes(part: DocumentPart, least: float, held: Held) -> Iterator[Decision]:
    """Yield the cards of changes, planned or done: one for each place in the manifests that asks for some.

    A place counts if it asks something of more than one target. All else is a card of its own for each group.
    """
    if least == inf:
        yield from map(_change, _groups(part, least, "change"))
        return
    groups = cast("tuple[EntryGroup[Change | Outcome], ...]", equal(entries_of(part.items, "change")))
    asked: dict[_Cause, set[Target]] = {}
    for entry in (entry for group in groups for entry in group.entries):
        asked.setdefault(_cause(entry), set()).add(address_of(entry).target)
    cards: dict[object, list[EntryGroup[Change | Outcome]]] = {}
    for number, group in enumerate(groups):
        parts: dict[object, list[Change | Outcome]] = {}
        for entry in group.entries:
            cause = _cause(entry)
            is_shared = cause.place and len(asked[cause]) > 1
            parts.setdefault(cause if is_shared else number, []).append(entry)
        for key, entries in parts.items():
            cards.setdefault(key, []).extend([group] if len(parts) == 1 else equal(entries))
    for key, members in cards.items():
        place = key.place if isinstance(key, _Cause) else ""
        yield _asked([_change(group) for group in sorted(members, key=lambda own: -len(own.entries))], place, held)


def _asked(groups: Sequence[Decision], place: str, held: Held) -> Decision:
    """Return the card of what one place in the manifests asks for, or of equal changes.

    Args:
        groups: the cards of equal changes.
        place: where the manifests ask for all of them; empty if that is not one place.
        held: how many objects each section held.
    """
    first = groups[0]
    if len(groups) == 1:
        return replace(first, place=place)
    entries = [entry for group in groups for entry in group.entries]
    if len({group.title for group in groups}) == 1:
        return Decision(first.kind, first.title, entries, first.subject, place=place, groups=groups)
    title = _asked_title(first.kind, place, [*map(address_of, entries)], held)
    return Decision(
        first.kind, title, entries, first.subject if title == first.title else "", place=place, groups=groups
    )


def _asked_title(kind: str, place: str, addresses: Sequence[Address], held: Held) -> str:
    """Return what one place asks of objects of several names: `prune at sets.yaml:12 empties milestones of ...`."""
    titles = {address.title for address in addresses}
    what = counted(len(addresses), titles.pop() if len(titles) == 1 else "object")
    if not kind.startswith("delete"):
        return escaped(f"{kind.capitalize()} {what}")
    # one line names one object, so that one which deletes objects of several names prunes
    lost = Counter((address.target, address.section) for address in addresses)
    targets = {address.target for address in addresses}
    where = f"{addresses[0].section} of {counted(len(targets), addresses[0].target.level)}"
    is_done = kind == "deleted"
    if all(number == held.get(section) for section, number in lost.items()):
        return escaped(f"prune at {place} {'emptied' if is_done else 'empties'} {where}: {what}")
    return escaped(f"prune at {place} {'deleted' if is_done else 'deletes'} {what} in {where}")


class _Cause(NamedTuple):
    """What the changes of a card have in common."""

    kind: str
    level: Level
    section: str
    place: str


def _cause(entry: Change | Outcome) -> _Cause:
    change = entry.change if isinstance(entry, Outcome) else entry
    kind = entry.word if isinstance(entry, Outcome) else entry.action
    return _Cause(kind, change.address.target.level, change.address.section, change.origin)


def _change(group: EntryGroup[Any]) -> Decision:
    """Return the card of equal changes, planned or done."""
    about = subject(group)
    if isinstance(group.sample, Outcome):
        change, kind = group.sample.change, group.sample.word
    else:
        change, kind = group.sample, str(group.sample.action)
    title = f"{kind.capitalize()} {about}"
    author = who(group.entries)
    fields = [*_fields(change), *([("changed", None, author)] if author else [])]
    return Decision(kind, title, group.entries, about, fields=fields, losses=[*losses(change)])


def _others(part: DocumentPart, least: float) -> Iterator[Decision]:
    """Yield the cards of what cannot be planned, and of what is left alone."""
    for group in _groups(part, least, "problem"):
        about, reason = subject(group), escaped(group.sample.reason)
        yield Decision("problem", f"{about}: {reason}", group.entries, about, remedy=escaped(group.sample.fix))
    for held in _groups(part, least, "excepted"):
        title, about = excepted_subject(held.sample), subject(held)
        yield Decision("excepted", title, held.entries, about, reason=reason_of(held.sample))
    for left_out in _groups(part, least, "not_applicable"):
        about = subject(left_out)
        yield Decision("unfit", f"{about}: {escaped(left_out.sample.reason)}", left_out.entries, about)
    yield from _unmanaged(item for item in part.items if isinstance(item, Finding) and item.code == "unmanaged")


def _unmanaged(objects: Iterable[Finding]) -> Iterator[Decision]:
    """Yield a card for the unmanaged objects of each sort."""
    alike: dict[tuple[str, str, bool], list[Finding]] = {}
    for unmanaged in objects:
        address = address_of(unmanaged)
        alike.setdefault((address.section, address.title, unmanaged.data["grants_access"]), []).append(unmanaged)
    for (section, title, grants_access), own in alike.items():
        number = counted(len(own), f"unmanaged {title}")
        if grants_access:
            verb, them = ("grants", "it") if len(own) == 1 else ("grant", "them")
            remedy = f"declare {them}, or write prune: [{section}] to delete {them}"
            yield Decision("unmanaged", escaped(f"{number} {verb} access"), own, "", remedy=escaped(remedy))
        else:
            yield Decision("unmanaged", escaped(number), own, "")


def _by_reason(groups: Iterable[EntryGroup[Outcome]], least: float) -> Iterable[list[EntryGroup[Outcome]]]:
    """Put together the groups that are not done for the same reason, unless each target is to be shown.

    Which request failed makes no difference.
    """
    alike: dict[object, list[EntryGroup[Outcome]]] = {}
    for group in groups:
        alone = len(alike) if least == inf else None
        alike.setdefault((group.sample.status, _reason(group.sample), alone), []).append(group)
    return alike.values()


def _reason(outcome: Outcome) -> str:
    """Return a reason without the request that it begins with: `403 Forbidden`."""
    return REQUEST.sub("", outcome.reason).removeprefix(": ")


def _unfinished(groups: Sequence[EntryGroup[Outcome]]) -> Decision:
    """Return the card of changes that are not done for one reason."""
    first = groups[0].sample
    entries = [entry for group in groups for entry in group.entries]
    about = subject(groups[0]) if len(groups) == 1 else ""
    what = f"{first.change.action.capitalize()} {about}" if about else first.status.words.capitalize()
    reason = escaped(first.reason if about else _reason(first))
    alike = all(_values(entry.change) == _values(entries[0].change) for entry in entries)
    fields = [*_fields(first.change)] if alike and about and not groups[0].others else []
    return Decision(first.word, f"{what}: {reason}" if reason else what, entries, about, fields=fields)


def _values(change: Change) -> tuple[Json, Json]:
    return getattr(change, "before", None), getattr(change, "after", None)


class _Numbers(dict[str, int]):
    """Texts with their numbers, from 0."""

    def __missing__(self, text: str) -> int:
        return self.setdefault(text, len(self))


class _Rows:
    """The rows of cards, and the texts that they name by number."""

    def __init__(self, links: Links) -> None:
        self._links = links
        self._found: dict[Target, None] = {}
        self._origins: dict[str, None] = {}
        self.targets, self.sections, self.texts = _Numbers(), _Numbers(), _Numbers({"": 0})

    def of(self, card: Decision) -> list[list[int]]:
        """Return the rows of a card, one for each entry; those of several groups end with the number of theirs."""
        if card.groups:
            return [
                [*row, number]
                for number, group in enumerate(card.groups)
                for row in self.of(replace(group, subject=card.subject))
            ]
        lost = [_losses(entry) for entry in card.entries]
        shared = set.intersection(*map(set, lost))
        return [
            self._row(entry, card, [loss for loss in own if loss not in shared])
            for entry, own in zip(card.entries, lost, strict=True)
        ]

    @property
    def pages(self) -> dict[str, str]:
        """The pages of targets."""
        return {escaped(str(target)): page for target in self._found if (page := self._links.target(target))}

    @property
    def lines(self) -> dict[str, str]:
        """The pages of lines of manifests."""
        return {escaped(origin): page for origin in self._origins if (page := self._links.origin(origin))}

    def _row(self, entry: Entry, card: Decision, own_losses: Sequence[str]) -> list[int]:
        address, origin, page = address_of(entry), subject_of(entry).origin, self._links.object(entry)
        target, section = address.target, address.section
        self._found[target] = None
        self._origins[origin] = None
        return [
            self.targets[escaped(str(target))],
            self.sections[escaped(section)],
            self.texts[_about(entry, card)],
            self.texts[escaped(origin)],
            self.texts["; ".join(own_losses)],
            self.texts[page or self._links.settings(target, section) or ""],
        ]


def _losses(entry: Entry) -> list[str]:
    change = change_in(entry)
    return [*losses(change)] if change is not None else []


def _about(entry: Entry, card: Decision) -> str:
    """Return what an entry is about; empty if the title of its card says it."""
    if isinstance(entry, Finding) and entry.code == "unmanaged":
        _, facts = predicate(entry)
        return ", ".join(filter(None, (label(address_of(entry)), facts)))
    about = subject(EntryGroup((entry,), entry))
    if isinstance(entry, Outcome) and not is_done(entry) and not card.subject:
        about = f"{entry.change.action} {about}"
    return "" if about == card.subject else about


def _requests(entries: Sequence[Entry]) -> str:
    """Return the requests of changes: one of them if there are several targets."""
    changes = [*changes_in(entries)]
    requests = [escaped(str(request)) for change in changes for request in change.requests]
    if len(changes) > 1 and requests:
        return f"{counted(len(requests), 'request')}, such as {requests[0]}"
    return ", ".join(requests)


def _id(card: Decision, seen: Counter[str]) -> str:
    """Return what names a card in links: the same for the same decision, also in the page of another day."""
    alone = str(address_of(card.entries[0]).target) if len(card.entries) == 1 else ""
    text = json.dumps([card.kind, card.title, card.reason, card.fields, alone])
    seen[text] += 1
    return sha256(f"{seen[text]}{text}".encode()).hexdigest()[:12]


def _fields(change: Change) -> Iterator[Field]:
    if isinstance(change, Create):
        yield from ((escaped(name), None, _clipped(_text(name, content), 0)) for name, content in flat(change.after))
    elif isinstance(change, Delete):
        yield from ((escaped(name), _clipped(_text(name, content), 0), None) for name, content in flat(change.before))
    else:
        if change.renamed_from is not None:
            yield "name", escaped(str(change.renamed_from)), escaped(str(change.address.name))
        for name, after in change.after.items():
            if name in change.before:
                yield escaped(name), *_both(_text(name, change.before[name]), _text(name, after))
            else:
                yield escaped(name), None, _clipped(_text(name, after), 0)
    yield from _said(change)


FIELD_OF_NOTE = {"unused_names": "renamed_from"}
"""The names under which notes stand among the fields of a card, where that is not their code."""


def _said(change: Change) -> Iterator[Field]:
    """Yield what is always said about a change, as if each code were a field."""
    for code in dict.fromkeys(note.code for note in change.notes if note.reason):
        if code_of(code).shown == "always":
            yield FIELD_OF_NOTE.get(code, code), None, _clipped(escaped("; ".join(sentences(change, code))), 0)


def _text(field: str, content: Json) -> str:
    """Return a value as text of one or more lines: of a list each entry has one."""
    match content:
        case str():
            return escaped_lines(content) or '""'
        case [_, *_]:
            return "\n".join(entry_words(own, inf) for own in content)
    return value(content, inf, empty=empty_of(field))


def _both(before: str, after: str) -> tuple[str, str]:
    """Shorten two long texts so that what is shown of them differs."""
    start = 0
    if max(len(before), len(after)) > MAX_SHOWN_TEXT_LENGTH:
        same = takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False))
        start = max(0, sum(1 for _ in same) - TEXT_CONTEXT_LENGTH)
    return _clipped(before, start), _clipped(after, start)


def _clipped(text: str, start: int) -> str:
    rest = text[start : start + MAX_SHOWN_TEXT_LENGTH]
    return f"{'…' if start else ''}{rest}{'…' if len(text) > start + MAX_SHOWN_TEXT_LENGTH else ''}"
