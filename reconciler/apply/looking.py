"""Looking again: before a change, whether it is out of date; after it, whether the service has carried it out."""

from collections.abc import Iterable, Mapping
from typing import Any

from reconciler.address import Address, Key, Scope
from reconciler.diff import fields_of, fingerprint
from reconciler.endpoints import Singleton
from reconciler.errors import ServiceError
from reconciler.kind import Kinds, Part
from reconciler.live import read_part
from reconciler.matching import identity
from reconciler.plan import Change, Create, Delete, Update
from reconciler.resource import Found, Resource
from reconciler.state import LivePart, Unreadable
from reconciler.wire import Json, Reader

Reread = Mapping[tuple[str, str], LivePart]
"""What was read again, by section and part."""


class Look:
    """Reads parts of one target again."""

    def __init__(self, reader: Reader, kinds: Kinds, scope: Scope) -> None:
        self.reader, self.kinds, self.scope = reader, kinds, scope

    def read(self, part: Part, wanted: Resource | Mapping[Any, Any]) -> LivePart:
        """Read one part; while writing, no failure to read is worth losing the rest of the run for."""
        try:
            return read_part(self.reader, part, self.scope, wanted)
        except ServiceError as error:
            return Unreadable(str(error))

    def again(self, changes: Iterable[Change]) -> Reread:
        """Read the parts that some changes are about, once each."""
        wanted: dict[tuple[str, str], Mapping[str, Json]] = {}
        for change in changes:
            after = {} if isinstance(change, Delete) else change.after
            wanted.setdefault((change.address.section, change.address.part), after)
        return {place: self.read(self._part(*place), after) for place, after in wanted.items()}

    def staleness(self, change: Change, live: Reread) -> str:
        """Say why a change is out of date; empty where it is not."""
        part = live[change.address.section, change.address.part]
        if isinstance(part, Unreadable):
            return f"cannot be read again: {part.reason}"
        now = self._now(change, part)
        if isinstance(change, Create):
            return "it exists by now" if now else ""
        former = change.renamed_from if isinstance(change, Update) else None
        if change.fingerprint not in {fingerprint(found) for found in _all(part)}:
            left = now or (former is not None and self._named(part, change.address, {former}))
            return "it has changed since the plan was made" if left else "it is gone by now"
        return "its new name is taken by now" if former is not None and now else ""

    def shortfall(self, change: Change, live: Reread) -> str:
        """Say what the service shows otherwise than a change wants it; empty where it is as wanted.

        Raises:
            LookupError: it cannot be told, for the part cannot be read.
        """
        part = live[change.address.section, change.address.part]
        if isinstance(part, Unreadable):
            raise LookupError(part.reason)  # noqa: TRY004  # nothing is of a wrong type here
        if isinstance(change, Delete):
            return "it is still there" if change.fingerprint in {fingerprint(found) for found in _all(part)} else ""
        shown = [fields_of(found.resource) for found in self._now(change, part)]
        if not shown:
            return "it is not there"
        lost = [name for name, value in change.after.items() if all(fields.get(name) != value for fields in shown)]
        return f"the service kept its own {', '.join(lost)}" if lost else ""

    def _now(self, change: Change, live: Found | tuple[Found, ...]) -> list[Found]:
        """The live objects of a change's name, or of the target it refers to."""
        if not isinstance(change, Create):
            return self._named(live, change.address, {change.address.name})
        found = self._named(live, change.address, {change.address.name, change.target_id})
        return [each for each in found if each.id not in change.beside]

    def _named(self, live: Found | tuple[Found, ...], address: Address, names: set[Key | None]) -> list[Found]:
        part = self._part(address.section, address.part)
        if isinstance(live, Found) or isinstance(part, Singleton):
            return _all(live)
        wanted = {identity(part, name) for name in names if name is not None}
        return [found for found in live if not wanted.isdisjoint(identity(part, name) for name in found.names)]

    def _part(self, section: str, part: str) -> Part:
        return self.kinds[section].part(part)


def _all(live: Found | tuple[Found, ...]) -> list[Found]:
    return [live] if isinstance(live, Found) else list(live)
