"""What a target's own document has to say so that, with what lies beneath it, it comes to what was read.

As little as possible is changed: what a document says in its own way stays, and what it does not declare stays so.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from reconciler.export.sections import Exported, Spec, entries_of
from reconciler.export.targets import Known
from reconciler.manifests.layers import (
    OLD_NAMES,
    Placeholders,
    SectionSpec,
    SectionSpecs,
    literal,
    merge,
    normalize,
    normalize_entry,
    normalize_key,
)
from reconciler.model.diff import differences, fields_of
from reconciler.model.endpoints import Collection
from reconciler.model.resource import Found, Resource
from reconciler.model.state import LivePart, LiveState, Unreadable
from reconciler.model.targets import Key
from reconciler.planning.parts import identity

PRUNE = "prune"


@dataclass(frozen=True, slots=True)
class Written:
    """What manifests say of a target before an export.

    Attributes:
        own: the spec of its own document, as written.
        beneath: the merged sections of the profiles and sets beneath it.
        prune: the sections that are pruned, whoever says so.
        adding: names of sections that are to be added where neither has them.
        whole: whether what neither declares within a section is to be added too.
        values: of the placeholders in the document.
    """

    own: Spec
    beneath: Mapping[str, Any]
    prune: tuple[str, ...] = ()
    adding: Iterable[str] = ()
    whole: bool = False
    values: Placeholders = field(default_factory=dict)


def update(written: Written, exported: Exported, live: LiveState, shapes: SectionSpecs) -> Spec:
    """Return the spec of the target's own document that agrees with what was read."""
    spec = dict(written.own)
    known = exported.known
    for name, shape in shapes.items():
        parts = {part.name: live.parts.get((known.target, name, part.name)) for part in shape.kind.parts}
        readable = {key: part for key, part in parts.items() if part is not None and not isinstance(part, Unreadable)}
        if not readable:
            continue
        if name not in spec and name not in written.beneath:
            if name in written.adding and name in exported.spec:
                spec[name] = literal(exported.spec[name])
            continue
        section = _Section(shape, known, readable, exported.spec.get(name, {}), written)
        mine = section.updated(written.own.get(name, {}), written.beneath.get(name, {}))
        if mine or name in spec:
            spec[name] = mine
    if exported.incomplete & set(written.prune):
        spec[PRUNE] = [name for name in written.prune if name not in exported.incomplete]
    return spec


@dataclass(frozen=True, slots=True)
class _Section:
    """One section of one target: what was read of it, and what a manifest would say of that."""

    shape: SectionSpec
    known: Known
    parts: Mapping[str, LivePart]
    read: Mapping[str, Any]
    written: Written

    def updated(self, mine: Mapping[str, Any], lower: Mapping[str, Any]) -> dict[str, Any]:
        """Return the document's own section, given what it is and what lies beneath it."""
        merged = merge(self.shape, lower, normalize(self.shape, mine, self.written.values))
        checked = self.shape.check[self.known.target.level](merged)
        if self.shape.items:
            return self._items(self.shape.items, dict(mine), merged, lower, checked)
        wanted = self.shape.kind.wanted(checked, prune=self.shape.kind.name in self.written.prune)
        new = dict(mine)
        for part in self.shape.kind.parts:
            match self.parts.get(part.name), wanted.get(part.name):
                case Found() as found, Resource() | None as resource:
                    _bring(new, resource, found, self.read, whole=self.written.whole)
                case tuple() as live, entries if isinstance(part, Collection) and (
                    entries is not None or self.written.whole
                ):
                    own = self._entries(part, live, mine.get(part.name, ()), lower.get(part.name, ()))
                    if own or part.name in mine or part.name not in lower:
                        new[part.name] = own
        return {key: new[key] for key in (*mine, *self.read, *new) if key in new}

    def _entries(
        self, part: Collection, live: tuple[Found, ...], mine: Iterable[Key], lower: Iterable[Key]
    ) -> list[Key]:
        """Keep the entries that are live, in their order and spelling, and add those that nobody names yet."""
        found = [{identity(part, name) for name in each.names} for each in entries_of(part, live, self.known)]
        alive = set().union(*found)
        names = {
            entry: identity(part, normalize_entry(self.shape, part.name, entry, self.written.values)) for entry in mine
        }
        kept = [entry for entry in mine if names[entry] in alive]
        named = {names[entry] for entry in kept} | {identity(part, entry) for entry in lower}
        readable = {identity(part, entry): entry for entry in self.read.get(part.name, ())}
        missing = [each & readable.keys() for each in found if not each & named]
        return kept + [readable[name] for each in missing for name in each]

    def _items(
        self,
        part: Collection,
        mine: dict[str, Any],
        merged: Mapping[str, Any],
        lower: Mapping[str, Any],
        checked: Mapping[Key, Resource | None],
    ) -> dict[str, Any]:
        (live,) = self.parts.values()
        assert isinstance(live, tuple)  # noqa: S101 - a section of items has one part, which is a collection
        alive = {identity(part, found.names[0]): found for found in live}
        raw = {normalize_key(self.shape, key, self.written.values): key for key in mine}
        for name in merged:
            key, item = raw.get(name, literal(name)), checked[name]
            if name not in self.read:
                self._remove(mine, key, name, lower, gone=identity(part, name) not in alive)
            elif item is None:
                mine[key] = literal(self.read[name])
            else:
                fields = dict(mine.get(key) or {})
                _bring(fields, item, alive[identity(part, name)], self.read[name], whole=self.written.whole)
                if any(identity(part, old) in alive for old in getattr(item, OLD_NAMES, ())):
                    fields.pop(OLD_NAMES, None)
                if key in mine or fields:
                    mine[key] = fields
        return mine | {literal(name): literal(fields) for name, fields in self.read.items() if name not in merged}

    def _remove(self, mine: dict[str, Any], key: str, name: Key, lower: Mapping[str, Any], *, gone: bool) -> None:
        """Let an item no longer be declared; where what lies beneath declares it, that it must not exist."""
        if mine.get(key, "") is None and gone:
            return
        mine.pop(key, None)
        if gone and lower.get(str(name)) is not None:
            mine[key] = None


def _bring(
    fields: dict[str, Any], wanted: Resource | None, found: Found, read: Mapping[str, Any], *, whole: bool
) -> None:
    """Bring the fields that differ to what was read, and if asked to, those that are not declared."""
    shown = fields_of(found.resource)
    flat = _flat(read, shown)
    values = {name: literal(value) for name, value in shown.items() if name in found.read_only} | literal(flat)
    declared = {} if wanted is None else fields_of(wanted)
    differing = [] if wanted is None else [*differences(wanted, found)[1]]
    contradictory = [name for name in declared if name in shown and name not in values]
    added = [name for name in flat if name not in declared] if whole else []
    for name in dict.fromkeys((*differing, *contradictory, *added)):
        field, _, key = name.partition(".")
        if key:
            inner = {other: value for other, value in fields.get(field, {}).items() if other != key or name in values}
            fields[field] = inner | ({key: values[name]} if name in values else {})
        elif name in values:
            fields[field] = values[name]
        if fields.get(field) == {} or (not key and name not in values):
            fields.pop(field, None)


def _flat(read: Mapping[str, Any], shown: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields as `fields_of` does, of those that are shown."""
    flat: dict[str, Any] = {}
    for name, value in read.items():
        flat |= {f"{name}.{key}": inner for key, inner in value.items()} if isinstance(value, dict) else {name: value}
    return {name: value for name, value in flat.items() if name in shown}
