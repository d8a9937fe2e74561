"""The cards of a page: groups of equal changes, problems and outcomes, the biggest risk first. Pure.

A card is one decision; `decisions` returns the cards, `data` turns them into JSON for `page.js`. Unfinished changes
have a card for each reason, whatever objects they are about.
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
from reconciler.document.groups import (
    REQUEST,
    Entry,
    EntryGroup,
    entries_of,
    equal_groups,
    grouped,
    is_done,
    subject_of,
)
from reconciler.document.links import Links
from reconciler.document.numbers import PART_OF_SOURCE, DocumentPart, loosening_name, parts_of
from reconciler.document.style import Style
from reconciler.document.wording import (
    author_text,
    excepted_subject,
    finding_subject,
    flat_fields,
    group_subject,
    object_label,
    predicate,
    reason_of,
    restored_text,
    verbose_notes,
)
from reconciler.model.codes import code_of
from reconciler.model.item import (
    ACTIONS,
    Change,
    Create,
    Delete,
    Finding,
    Outcome,
    Status,
    Update,
    address_of,
    change_in,
    changes_in,
    loosens,
    sentences,
)
from reconciler.model.protocols import Json
from reconciler.model.targets import Address, Level, Target
from reconciler.model.values import empty_of, entry_words, value
from reconciler.model.wording import counted
from reconciler.reports.coverage import STATE_AFTER, State
from reconciler.reports.html.verdict import is_interrupted
from reconciler.system.terminal import escaped, escaped_lines

MAX_SHOWN_TEXT_LENGTH = 10_000
"""How many characters of a value are shown."""

TEXT_CONTEXT_LENGTH = 100
"""How many characters before the first difference are shown of two longer values."""

Field = tuple[str, str | None, str | None]
"""A field's name, its value before, and its value after; None for nothing."""


@dataclass(frozen=True, slots=True)
class CardKind:
    """A sort of card.

    Attributes:
        name: the name of the kind, also in style sheets and links.
        sign: a sign that repeats what the colour says.
        heading: the heading above its cards.
        state: the state of the matrix cells that such cards are about.
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
    CardKind("failed", "\u00d7", "Failed", STATE_AFTER[Status.FAILED]),
    CardKind("dropped", "\u00d7", "Dropped by the service", STATE_AFTER[Status.DROPPED]),
    CardKind("stale", "\u00d7", "Stale", STATE_AFTER[Status.STALE]),
    CardKind("skipped", "\u00bb", "Skipped", STATE_AFTER[Status.SKIPPED]),
)
PROBLEM_CARD = CardKind("problem", "!", "Problems", State.PROBLEM)
UNCHANGED_CARDS = (
    CardKind("unmanaged", "?", "Unmanaged", State.UNMANAGED),
    CardKind("excepted", "=", "Excepted", State.EXCEPTED),
    CardKind("unfit", "\u2013", "Not applicable", State.NOT_APPLICABLE),
)
OTHER_CHANGE_CARD = CardKind("already", "\u2260", "Not of this change", State.CHANGES)
RESTORED_CARD = CardKind("restored", "=", "Changed and put back", State.IN_ORDER)
LOOSENING_CARD = CardKind("loosens", "!", "Loosens protection", State.CHANGES)
PLAN_CARDS = (
    LOOSENING_CARD,
    CardKind("delete", "\u2212", "Deletions", State.DELETIONS),
    PROBLEM_CARD,
    CardKind("create", "+", "Creations", State.CHANGES),
    CardKind("update", "~", "Updates", State.CHANGES),
    OTHER_CHANGE_CARD,
    RESTORED_CARD,
    *UNCHANGED_CARDS,
)


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision.

    Attributes:
        kind: the name of its kind.
        title: the decision in a sentence.
        entries: its changes, outcomes or findings.
        subject: the object of all entries, with placeholders for the path of its target; empty if they differ.
        reason: the reason of an unfinished or excepted change.
        remedy: the fix of a problem.
        fields: the values, if they are the same for all entries.
        losses: the losses of a deletion, a clause each.
        place: the line of the manifests that causes all entries; empty if there are several lines.
        groups: the groups of equal changes, if there are several.
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


def decisions(document: RunDocument, card_kinds: Sequence[CardKind], style: Style) -> list[Decision]:
    """Return the cards of a plan or a report, in the order of their kinds."""
    # one decision is one card, for one target as for thousands
    min_targets = inf if style.group_by == "target" else 1
    object_counts = {
        (seen.target, section): number for seen in document.targets for section, number in seen.sections.items()
    }
    parts = (card for part in parts_of(document) for card in _part_cards(part, min_targets, object_counts))
    put_back = map(_restored_card, document.findings("restored") if document.restored_since else ())
    order = {kind.name: number for number, kind in enumerate(card_kinds)}
    return sorted(chain(parts, put_back), key=lambda card: (order[card.kind], -len(card.entries)))


def _restored_card(restored: Finding) -> Decision:
    title = f"{object_label(address_of(restored))}: {restored_text(restored)}"
    return Decision("restored", title, [restored], finding_subject(restored))


ObjectCounts = Mapping[tuple[Target, str], int | None]
"""The number of objects of each section; None for an unread one."""


def _part_cards(document_part: DocumentPart, min_targets: float, object_counts: ObjectCounts) -> Iterator[Decision]:
    """Yield the cards of a part; the name of the part begins their titles."""
    unfinished = cast("Iterator[EntryGroup[Outcome]]", _groups(document_part, min_targets, "unfinished"))
    cards = chain(
        (_unfinished_card(groups) for groups in _by_reason(unfinished, min_targets)),
        _change_cards(document_part, min_targets, object_counts),
        _finding_cards(document_part, min_targets),
    )
    for card in cards:
        kind = OTHER_CHANGE_CARD.name if document_part.name in PART_OF_SOURCE.values() else _kind_of(card)
        title = f"{document_part.name.capitalize()}: {card.title}" if document_part.name else card.title
        yield replace(card, kind=kind, title=title)


def _kind_of(card: Decision) -> str:
    """Return the kind of a card; planned changes that loosen protection have a kind of their own."""
    first = card.entries[0]
    return LOOSENING_CARD.name if isinstance(first, Create | Update | Delete) and loosens(first) else card.kind


def _groups(document_part: DocumentPart, min_targets: float, sort: str) -> Iterator[EntryGroup[Any]]:
    return (group for block in grouped(entries_of(document_part.items, sort), min_targets) for group in block.groups)


def kinds_of_plan(document: RunDocument) -> tuple[CardKind, ...]:
    """Return the kinds of a plan's cards in their order; beside what loosens protection, all else is other changes."""
    loosening = [change for change in document.changes if loosens(change)]
    if not loosening:
        return PLAN_CARDS
    headings: dict[str, str] = {
        kind.name: f"Other {kind.heading.lower()}" for kind in PLAN_CARDS if kind.name in ACTIONS
    }
    headings[LOOSENING_CARD.name] = loosening_name(loosening).capitalize()
    return tuple(replace(kind, heading=headings.get(kind.name, kind.heading)) for kind in PLAN_CARDS)


def kinds_of_report(document: RunDocument) -> tuple[CardKind, ...]:
    """Return the kinds of a report's cards in their order; after an interruption, done changes come first."""
    if is_interrupted(document):
        return *DONE_CARDS, *UNFINISHED_CARDS, PROBLEM_CARD, *UNCHANGED_CARDS
    return *UNFINISHED_CARDS, PROBLEM_CARD, *DONE_CARDS, *UNCHANGED_CARDS


def data(cards: Iterable[Decision], links: Links) -> dict[str, Any]:
    """Return cards for the page's script.

    Texts are safe to show. Each entry has a row of indices into the lists of targets, sections and texts: its target,
    its section, its object (if the title does not name it), its place in the manifests, the losses that other entries
    do not have, its page, and, on a card of several groups, the number of its group.
    """
    rows = _Rows(links)
    seen = Counter[str]()
    contents: list[dict[str, Any]] = []
    for card in cards:
        own = rows.of(card)
        content: dict[str, Any] = {
            "id": _card_id(card, seen),
            "kind": card.kind,
            "state": State.DELETIONS
            if card.kind == LOOSENING_CARD.name and isinstance(card.entries[0], Delete)
            else "",
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
        contents.append({key: value for key, value in content.items() if value})
    return {
        "targets": [*rows.targets],
        "sections": [*rows.sections],
        "texts": [*rows.texts],
        "pages": rows.pages,
        "lines": rows.lines,
        "cards": contents,
    }


def _change_cards(document_part: DocumentPart, min_targets: float, object_counts: ObjectCounts) -> Iterator[Decision]:
    """Yield the cards of changes, planned or done: one card for each line of the manifests that causes several changes.

    A line has a card if it causes changes of more than one target; other changes have a card for each group.
    """
    if min_targets == inf:
        yield from map(_change_card, _groups(document_part, min_targets, "change"))
        return
    groups = cast("tuple[EntryGroup[Change | Outcome], ...]", equal_groups(entries_of(document_part.items, "change")))
    targets_of: dict[_Cause, set[Target]] = {}
    for entry in (entry for group in groups for entry in group.entries):
        targets_of.setdefault(_cause(entry), set()).add(address_of(entry).target)
    cards: dict[object, list[EntryGroup[Change | Outcome]]] = {}
    for number, group in enumerate(groups):
        parts: dict[object, list[Change | Outcome]] = {}
        for entry in group.entries:
            cause = _cause(entry)
            is_shared = cause.place and len(targets_of[cause]) > 1
            parts.setdefault(cause if is_shared else number, []).append(entry)
        for key, entries in parts.items():
            cards.setdefault(key, []).extend([group] if len(parts) == 1 else equal_groups(entries))
    for key, members in cards.items():
        place = key.place if isinstance(key, _Cause) else ""
        yield _card_of_place(
            [_change_card(group) for group in sorted(members, key=lambda own: -len(own.entries))], place, object_counts
        )


def _card_of_place(decisions: Sequence[Decision], place_text: str, object_counts: ObjectCounts) -> Decision:
    """Return the card of all changes that one line of the manifests causes, or of equal changes.

    Args:
        decisions: the cards of equal changes.
        place_text: the line of the manifests that causes all of them; empty if there are several lines.
        object_counts: the number of objects of each section.
    """
    first = decisions[0]
    if len(decisions) == 1:
        return replace(first, place=place_text)
    entries = [entry for group in decisions for entry in group.entries]
    if len({group.title for group in decisions}) == 1:
        return Decision(first.kind, first.title, entries, first.subject, place=place_text, groups=decisions)
    title = _title_of_place(first.kind, place_text, [*map(address_of, entries)], object_counts)
    return Decision(
        first.kind, title, entries, first.subject if title == first.title else "", place=place_text, groups=decisions
    )


def _title_of_place(kind: str, place_text: str, addresses: Sequence[Address], object_counts: ObjectCounts) -> str:
    """Return the title of a card with several objects: `prune at sets.yaml:12 empties milestones of ...`."""
    titles = {address.title for address in addresses}
    objects = counted(len(addresses), titles.pop() if len(titles) == 1 else "object")
    if not kind.startswith("delete"):
        return escaped(f"{kind.capitalize()} {objects}")
    # a line of a manifest declares one object: a line that deletes objects of several names is a `prune`
    lost = Counter((address.target, address.section) for address in addresses)
    targets = {address.target for address in addresses}
    where = f"{addresses[0].section} of {counted(len(targets), addresses[0].target.level)}"
    is_done = kind == "deleted"
    if all(number == object_counts.get(section) for section, number in lost.items()):
        return escaped(f"prune at {place_text} {'emptied' if is_done else 'empties'} {where}: {objects}")
    return escaped(f"prune at {place_text} {'deleted' if is_done else 'deletes'} {objects} in {where}")


class _Cause(NamedTuple):
    """The common properties of the changes of a card."""

    kind: str
    level: Level
    section: str
    place: str
    loosens: bool


def _cause(change_or_outcome: Change | Outcome) -> _Cause:
    change = change_or_outcome.change if isinstance(change_or_outcome, Outcome) else change_or_outcome
    kind = change_or_outcome.word if isinstance(change_or_outcome, Outcome) else change_or_outcome.action
    return _Cause(kind, change.address.target.level, change.address.section, change.origin, loosens(change))


def _change_card(entry_group: EntryGroup[Any]) -> Decision:
    """Return the card of equal changes, planned or done."""
    about = group_subject(entry_group)
    if isinstance(entry_group.sample, Outcome):
        change, kind = entry_group.sample.change, entry_group.sample.word
    else:
        change, kind = entry_group.sample, str(entry_group.sample.action)
    title = f"{kind.capitalize()} {about}"
    author = author_text(entry_group.entries)
    fields = [*_fields(change), *([("changed", None, author)] if author else [])]
    return Decision(kind, title, entry_group.entries, about, fields=fields, losses=[*verbose_notes(change)])


def _finding_cards(document_part: DocumentPart, min_targets: float) -> Iterator[Decision]:
    """Yield the cards of problems, and of excepted, inapplicable and unmanaged objects."""
    for group in _groups(document_part, min_targets, "problem"):
        about, reason = group_subject(group), escaped(group.sample.reason)
        yield Decision("problem", f"{about}: {reason}", group.entries, about, remedy=escaped(group.sample.fix))
    for excepted in _groups(document_part, min_targets, "excepted"):
        title, about = excepted_subject(excepted.sample), group_subject(excepted)
        yield Decision("excepted", title, excepted.entries, about, reason=reason_of(excepted.sample))
    for unfit in _groups(document_part, min_targets, "not_applicable"):
        about = group_subject(unfit)
        yield Decision("unfit", f"{about}: {escaped(unfit.sample.reason)}", unfit.entries, about)
    yield from _unmanaged_cards(
        item for item in document_part.items if isinstance(item, Finding) and item.code == "unmanaged"
    )


def _unmanaged_cards(unmanaged_objects: Iterable[Finding]) -> Iterator[Decision]:
    """Yield a card for the unmanaged objects of each section and title."""
    by_title: dict[tuple[str, str, bool], list[Finding]] = {}
    for unmanaged in unmanaged_objects:
        address = address_of(unmanaged)
        by_title.setdefault((address.section, address.title, unmanaged.data["grants_access"]), []).append(unmanaged)
    for (section, title, grants_access), own in by_title.items():
        number = counted(len(own), f"unmanaged {title}")
        if grants_access:
            verb, them = ("grants", "it") if len(own) == 1 else ("grant", "them")
            remedy = f"declare {them}, or write prune: [{section}] to delete {them}"
            yield Decision("unmanaged", escaped(f"{number} {verb} access"), own, "", remedy=escaped(remedy))
        else:
            yield Decision("unmanaged", escaped(number), own, "")


def _by_reason(
    outcome_groups: Iterable[EntryGroup[Outcome]], min_targets: float
) -> Iterable[list[EntryGroup[Outcome]]]:
    """Return the groups of unfinished changes with one reason together, unless each target is to be shown.

    The failed request makes no difference: reasons are compared without it.
    """
    by_reason: dict[object, list[EntryGroup[Outcome]]] = {}
    for group in outcome_groups:
        own_key = len(by_reason) if min_targets == inf else None
        by_reason.setdefault((group.sample.status, _reason(group.sample), own_key), []).append(group)
    return by_reason.values()


def _reason(outcome: Outcome) -> str:
    """Return a reason without the request that it begins with: `403 Forbidden`."""
    return REQUEST.sub("", outcome.reason).removeprefix(": ")


def _unfinished_card(outcome_groups: Sequence[EntryGroup[Outcome]]) -> Decision:
    """Return the card of changes that are not done for one reason."""
    first = outcome_groups[0].sample
    entries = [entry for group in outcome_groups for entry in group.entries]
    about = group_subject(outcome_groups[0]) if len(outcome_groups) == 1 else ""
    headline = f"{first.change.action.capitalize()} {about}" if about else first.status.words.capitalize()
    reason = escaped(first.reason if about else _reason(first))
    is_equal = all(_values(entry.change) == _values(entries[0].change) for entry in entries)
    fields = [*_fields(first.change)] if is_equal and about and not outcome_groups[0].others else []
    return Decision(first.word, f"{headline}: {reason}" if reason else headline, entries, about, fields=fields)


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
        """Return the rows of a card, one for each entry.

        On a card of several groups, a row ends with the number of its group.
        """
        if card.groups:
            return [
                [*row, number]
                for number, group in enumerate(card.groups)
                for row in self.of(replace(group, subject=card.subject))
            ]
        losses = [_losses(entry) for entry in card.entries]
        shared = set.intersection(*map(set, losses))
        return [
            self._row(entry, card, [loss for loss in own if loss not in shared])
            for entry, own in zip(card.entries, losses, strict=True)
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
            self.texts[_entry_subject(entry, card)],
            self.texts[escaped(origin)],
            self.texts["; ".join(own_losses)],
            self.texts[page or self._links.settings(target, section) or ""],
        ]


def _losses(entry: Entry) -> list[str]:
    change = change_in(entry)
    return [*verbose_notes(change)] if change is not None else []


def _entry_subject(entry: Entry, card: Decision) -> str:
    """Return the object of an entry; empty if the title of its card names it."""
    if isinstance(entry, Finding) and entry.code == "unmanaged":
        _, facts = predicate(entry)
        return ", ".join(filter(None, (object_label(address_of(entry)), facts)))
    about = group_subject(EntryGroup((entry,), entry))
    if isinstance(entry, Outcome) and not is_done(entry) and not card.subject:
        about = f"{entry.change.action} {about}"
    return "" if about == card.subject else about


def _requests(entries: Sequence[Entry]) -> str:
    """Return the requests of changes; of several targets, their number and the first."""
    changes = [*changes_in(entries)]
    requests = [escaped(str(request)) for change in changes for request in change.requests]
    if len(changes) > 1 and requests:
        return f"{counted(len(requests), 'request')}, such as {requests[0]}"
    return ", ".join(requests)


def _card_id(card: Decision, id_counts: Counter[str]) -> str:
    """Return the ID of a card in links: the same for the same decision, also on the page of another day."""
    target = str(address_of(card.entries[0]).target) if len(card.entries) == 1 else ""
    text = json.dumps([card.kind, card.title, card.reason, card.fields, target])
    id_counts[text] += 1
    return sha256(f"{id_counts[text]}{text}".encode()).hexdigest()[:12]


def _fields(change: Change) -> Iterator[Field]:
    if isinstance(change, Create):
        yield from (
            (escaped(name), None, _clipped(_text(name, content), 0)) for name, content in flat_fields(change.after)
        )
    elif isinstance(change, Delete):
        yield from (
            (escaped(name), _clipped(_text(name, content), 0), None) for name, content in flat_fields(change.before)
        )
    else:
        if change.renamed_from is not None:
            yield "name", escaped(str(change.renamed_from)), escaped(str(change.address.name))
        for name, after in change.after.items():
            if name in change.before:
                yield escaped(name), *_clipped_pair(_text(name, change.before[name]), _text(name, after))
            else:
                yield escaped(name), None, _clipped(_text(name, after), 0)
    yield from _note_fields(change)


FIELD_OF_NOTE = {"unused_names": "renamed_from", "at_least": "minimum", "hint": "note"}
"""The field names of notes on a card that differ from the code of the note."""


def _note_fields(change: Change) -> Iterator[Field]:
    """Yield the notes that are always shown, as a field for each code."""
    for code in dict.fromkeys(note.code for note in change.notes if note.reason):
        if code_of(code).shown == "always":
            yield FIELD_OF_NOTE.get(code, code), None, _clipped(escaped("; ".join(sentences(change, code))), 0)


def _text(field: str, content: Json) -> str:
    """Return a value as text; the entries of a list have a line each."""
    match content:
        case str():
            return escaped_lines(content) or '""'
        case [_, *_]:
            return "\n".join(entry_words(own, inf) for own in content)
    return value(content, inf, empty=empty_of(field))


def _clipped_pair(old_text: str, new_text: str) -> tuple[str, str]:
    """Return two long texts cut so that their first difference is shown."""
    start = 0
    if max(len(old_text), len(new_text)) > MAX_SHOWN_TEXT_LENGTH:
        same = takewhile(lambda pair: pair[0] == pair[1], zip(old_text, new_text, strict=False))
        start = max(0, sum(1 for _ in same) - TEXT_CONTEXT_LENGTH)
    return _clipped(old_text, start), _clipped(new_text, start)


def _clipped(text: str, start: int) -> str:
    rest = text[start : start + MAX_SHOWN_TEXT_LENGTH]
    return f"{'…' if start else ''}{rest}{'…' if len(text) > start + MAX_SHOWN_TEXT_LENGTH else ''}"
