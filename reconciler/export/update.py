"""The spec of a target's own document such that, merged over its profiles and sets, it agrees with what was read.

It changes as little as possible: entries and fields keep their spelling, and undeclared fields stay undeclared.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from reconciler.export.sections import Exported, Spec, entries_of
from reconciler.export.targets import ResolvedTarget
from reconciler.manifests.stack.placeholders import Placeholders, literal
from reconciler.manifests.stack.sections import OLD_NAMES, PRUNE, SectionSpec, SectionSpecs
from reconciler.model.diff import differences, fields_of
from reconciler.model.endpoints import Collection
from reconciler.model.resource import LiveRecord, Objects, Resource
from reconciler.model.state import LivePart, LiveState, Unreadable
from reconciler.model.targets import Key


@dataclass(frozen=True, slots=True)
class Declared:
    """The declarations of a target before an export.

    Attributes:
        own: the spec of its own document, as written.
        beneath: the merged sections of the profiles and sets beneath it.
        prune: the sections that are pruned, by whichever layer.
        adding: names of sections to add where neither declares them.
        unmanaged: the sections that its own document leaves alone.
        complete: whether to add undeclared fields and items of declared sections too.
        values: of the placeholders in the document.
    """

    own: Spec
    beneath: Mapping[str, Any]
    prune: tuple[str, ...] = ()
    adding: Iterable[str] = ()
    complete: bool = False
    unmanaged: frozenset[str] = frozenset()
    values: Placeholders = field(default_factory=dict)


def update(declared: Declared, exported: Exported, live: LiveState, shapes: SectionSpecs) -> Spec:
    """Return the spec of the target's own document that agrees with what was read."""
    spec = dict(declared.own)
    for name, shape in shapes.items():
        parts = {part.name: live.parts.get((exported.resolved.target, name, part.name)) for part in shape.kind.parts}
        readable = {key: part for key, part in parts.items() if part is not None and not isinstance(part, Unreadable)}
        if not readable or name in declared.unmanaged:
            continue
        if name in spec or name in declared.beneath:
            section = _Section(
                shape,
                exported.resolved,
                readable,
                exported.spec.get(name, {}),
                exported.concise.get(name, {}),
                declared,
            )
            own = section.updated(declared.own.get(name, {}), declared.beneath.get(name, {}))
            if own or name in spec:
                spec[name] = own
        elif name in declared.adding and name in exported.spec:
            spec[name] = literal(exported.concise[name])
    if exported.left_out.keys() & set(declared.prune):
        spec[PRUNE] = [name for name in declared.prune if name not in exported.left_out]
    return spec


@dataclass(frozen=True, slots=True)
class _Section:
    """One section of one target: what was read of it, and what a manifest would declare of that."""

    shape: SectionSpec
    resolved: ResolvedTarget
    parts: Mapping[str, LivePart]
    read: Mapping[str, Any]
    concise: Mapping[str, Any]
    declared: Declared

    def updated(self, own: Mapping[str, Any], lower: Mapping[str, Any]) -> dict[str, Any]:
        """Return the document's own section, given what it is now and what lies beneath it."""
        merged = self.shape.merge(lower, self.shape.normalize(own, self.declared.values))
        checked = self.shape.check[self.resolved.target.level](merged)
        if self.shape.items:
            return self._items(self.shape.items, dict(own), merged, lower, checked)
        if self.shape.kind.join:
            shown = self.read or self.shape.kind.join({})
            return {**own, **{name: value for name, value in shown.items() if merged.get(name, value) != value}}
        wanted = self.shape.kind.wanted(checked, prune=self.shape.kind.name in self.declared.prune)
        new = dict(own)
        for part in self.shape.kind.parts:
            match self.parts.get(part.name), wanted.get(part.name):
                case LiveRecord() as record, Resource() | None as resource:
                    self._update_fields(new, resource, record, self.read, self.read)
                case Objects(own=live), entries if isinstance(part, Collection) and (
                    entries is not None or self.declared.complete
                ):
                    names = self._entries(part, live, own.get(part.name, ()), lower.get(part.name, ()))
                    if names or part.name in own or (part.name in self.concise and part.name not in lower):
                        new[part.name] = names
        return {key: new[key] for key in (*own, *self.read, *new) if key in new}

    def _entries(
        self, part: Collection, live: tuple[LiveRecord, ...], own: Iterable[Key], lower: Iterable[Key]
    ) -> list[Key]:
        """Keep the entries that are live, in their order and spelling, and add those that no layer names yet."""
        entries = entries_of(part, live, self.resolved)
        identities = [{part.identity(name) for name in record.names} for record in entries]
        alive = set().union(*identities)
        names = {
            entry: part.identity(self.shape.normalize_entry(part.name, entry, self.declared.values)) for entry in own
        }
        kept = [entry for entry in own if names[entry] in alive]
        named = {names[entry] for entry in kept} | {part.identity(entry) for entry in lower}
        readable = {part.identity(entry): entry for entry in self.read.get(part.name, ())}
        missing = [names & readable.keys() for names in identities if not names & named]
        return kept + [readable[name] for names in missing for name in names]

    def _items(
        self,
        part: Collection,
        own: dict[str, Any],
        merged: Mapping[str, Any],
        lower: Mapping[str, Any],
        checked: Mapping[Key, Resource | None],
    ) -> dict[str, Any]:
        """Update the declared items, remove those that are gone, and add those that no layer declares yet."""
        (live,) = self.parts.values()
        assert isinstance(live, Objects)  # noqa: S101 - a section of items has one part, which is a collection
        alive = {part.identity(record.names[0]): record for record in live.own}
        raw = {self.shape.normalize_key(key, self.declared.values): key for key in own}
        for name in merged:
            key, item = raw.get(name, literal(name)), checked[name]
            if name not in self.read:
                is_gone = part.identity(name) not in alive
                if own.get(key, "") is None and is_gone:
                    continue
                own.pop(key, None)
                if is_gone and lower.get(str(name)) is not None:
                    own[key] = None
            elif item is None:
                own[key] = literal(self.concise[name])
            else:
                fields = dict(own.get(key) or {})
                record = alive[part.identity(name)]
                self._update_fields(fields, item, record, self.read[name], self.concise[name])
                if any(part.identity(old) in alive for old in getattr(item, OLD_NAMES, ())):
                    fields.pop(OLD_NAMES, None)
                if key in own or fields:
                    own[key] = fields
        return own | {literal(name): literal(fields) for name, fields in self.concise.items() if name not in merged}

    def _update_fields(
        self,
        fields: dict[str, Any],
        wanted: Resource | None,
        record: LiveRecord,
        read: Mapping[str, Any],
        concise: Mapping[str, Any],
    ) -> None:
        """Set the declared fields that differ to what was read; for a complete export, add the concise ones."""
        shown = fields_of(record.resource)
        flat = _flat(read, shown)
        values = {name: literal(value) for name, value in shown.items() if name in record.read_only} | literal(flat)
        declared = {} if wanted is None else fields_of(wanted)
        differing = [] if wanted is None else [*differences(wanted, record)[1]]
        contradictory = [name for name in declared if name in shown and name not in values]
        added = [name for name in _flat(concise, shown) if name not in declared] if self.declared.complete else []
        for name in dict.fromkeys((*differing, *contradictory, *added)):
            field, dot, key = name.partition(".")
            holder = dict(fields.get(field, {})) if dot else fields
            if name in values:
                holder[key or field] = values[name]
            else:
                holder.pop(key or field, None)
            if dot:
                fields[field] = holder
                if not holder:
                    del fields[field]


def _flat(read: Mapping[str, Any], shown: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of the fields that are shown, named as `fields_of` names them."""
    flat: dict[str, Any] = {}
    for name, value in read.items():
        flat |= {f"{name}.{key}": inner for key, inner in value.items()} if isinstance(value, dict) else {name: value}
    return {name: value for name, value in flat.items() if name in shown}
