"""The content of a plan or a report as lines, which are compared with those of another, or with remembered ones. Pure.

A line is about one object, or one problem of it, of one section of one target. It holds what a person would compare:
neither the requests, nor where the manifests declare it, nor fields that stay as they are.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256

from reconciler.model.diff import Fields
from reconciler.model.plan import Change, Create, Delete, Outcome, Problem, TargetPlan, Unmanaged, Update, WidenedObject
from reconciler.model.protocols import Json
from reconciler.model.targets import Address

Item = Change | Outcome | Problem
"""An entry of a plan or a report."""

LeftAlone = Unmanaged | WidenedObject
"""An object that a plan names and does not change: it is no drift."""

Subject = tuple[object, ...]
"""A value that two lines share if they are about the same object, or the same field that is a problem."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a ledger.

    Attributes:
        item: the change, its outcome, or the problem.
        subject: see `Subject`.
        facts: the values of an object now and as they will be, what became of it, or why there is a problem.
    """

    item: Item
    subject: Subject
    facts: Fields

    @property
    def address(self) -> Address:
        """The object or problem of the line."""
        return _address(self.item)

    @property
    def mark(self) -> str:
        """See `fingerprint`."""
        return _digest(self.subject, self.facts)


def ledger(targets: Iterable[TargetPlan]) -> Iterator[Line]:
    """Yield what a plan or a report says of its targets: of each the changes, or what became of them; then problems."""
    return (Line(item, _subject(item), _facts(item)) for target in targets for item in target.entries)


def marks(targets: Iterable[TargetPlan]) -> Counter[str]:
    """Return the fingerprints of the changes and problems of targets."""
    return Counter(line.mark for line in ledger(targets))


def fingerprint(item: Item | LeftAlone) -> str:
    """Return a short text that two items share if a person would call them equal."""
    return _digest(_subject(item), _facts(item))


def _digest(subject: Subject, facts: Fields) -> str:
    return sha256(json.dumps([subject, facts], sort_keys=True).encode()).hexdigest()[:16]


def _subject(item: Item | LeftAlone) -> Subject:
    address = _address(item)
    sort = ("problem", item.field) if isinstance(item, Problem) else ("change", None)
    return address.target.identity, address.section, address.part, address.name, *sort


def _facts(item: Item | LeftAlone) -> Fields:
    match item:
        case Outcome():
            return {**_facts(item.change), "status": str(item.status), **_known(reason=item.reason)}
        case Create():
            declared = _prefixed("declared", item.after)
            return {"action": item.action, **declared, **_known(replaces_ids=item.replaces_ids)}
        case Update():
            values = {**_prefixed("live", item.before), **_prefixed("declared", item.after)}
            return {"action": item.action, **values, **_known(renamed_from=item.renamed_from)}
        case Delete():
            return {"action": item.action, **_prefixed("live", item.before), **_known(id=item.read.id)}
        case Problem() | WidenedObject():
            return {"reason": item.reason}
        case _:
            return _known(id=item.id)


def _prefixed(word: str, fields: Fields) -> Fields:
    return {f"{word}.{name}": value for name, value in fields.items()}


def _known(**facts: Json) -> Fields:
    return {name: value for name, value in facts.items() if value}


def _address(item: Item | LeftAlone) -> Address:
    return item.change.address if isinstance(item, Outcome) else item.address
