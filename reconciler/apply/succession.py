"""Before a token is deleted that has been succeeded, the value of its successor is delivered.

The run that created the successor may have been killed before it could deliver it, and nobody remembers.
"""

from collections.abc import Iterable

from reconciler.apply.outcomes import ApplyOptions, Outcome, Status
from reconciler.errors import OutputFailed, ServiceError
from reconciler.live.read import decode
from reconciler.model.endpoints import Collection
from reconciler.model.kind import Kinds
from reconciler.model.plan import Delete
from reconciler.model.protocols import Json, Reader
from reconciler.model.resource import Found
from reconciler.model.targets import Address
from reconciler.planning.parts import by_birth, identity


class Lists:
    """A `Reader` that remembers each list as it was read last.

    Attributes:
        read: the items by path.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.read: dict[str, list[Json]] = {}

    def get(self, path: str) -> Json:
        """See `wire.Reader`."""
        return self._reader.get(path)

    def pages(self, path: str) -> list[Json]:
        """See `wire.Reader`."""
        self.read[path] = self._reader.pages(path)
        return self.read[path]


class Succession:
    """The successors of one target's tokens, each delivered once a run."""

    def __init__(self, lists: Lists, kinds: Kinds, terms: ApplyOptions) -> None:
        self._lists, self._kinds, self._terms = lists, kinds, terms
        self._delivered: set[Address] = set()

    def note(self, address: Address) -> None:
        """Remember that a new token of this name has been delivered."""
        self._delivered.add(address)

    def obstacle(self, change: Delete) -> Outcome | None:
        """Deliver what has succeeded an object; return what becomes of its deletion if that cannot be done."""
        if change.successor_id is None or change.address in self._delivered:
            return None
        try:
            ours = self._ours(change.address)
            if change.successor_id not in {found.id for found, _ in ours}:
                return Outcome(change, Status.STALE, f"its successor (ID {change.successor_id}) is gone by now")
            self._hand_over(change.address, ours[-1][1])
        except ServiceError as error:
            self._terms.stop.after(error)
            return Outcome(change, Status.FAILED, f"its successor could not be read, to be delivered first: {error}")
        except OutputFailed as error:
            self._terms.stop.cancel("a token could not be delivered, so that the run was ended")
            return Outcome(change, Status.FAILED, f"its successor could not be delivered first: {error}")
        return None

    def delivered_instead(self, address: Address, number: int) -> bool:
        """Deliver the value of a token that was created beside one that is gone again; False if that cannot be done."""
        values = {found.id: value for found, value in self._ours(address)}
        if number not in values:
            return False
        try:
            self._hand_over(address, values[number])
        except OutputFailed:
            return False
        return True

    def _ours(self, address: Address) -> list[tuple[Found, str]]:
        part = collection_of(address, self._kinds)
        path = part.path(address.target)
        entries = self._lists.read[path] if path in self._lists.read else self._lists.pages(path)
        return ours_of(part, address, entries)

    def _hand_over(self, address: Address, value: str) -> None:
        if self._terms.deliver is None:
            raise OutputFailed("there is nowhere to deliver its value to")
        self._terms.deliver(address, value)
        self._delivered.add(address)


def ours_of(part: Collection, address: Address, entries: Iterable[Json]) -> list[tuple[Found, str]]:
    """Return those objects of a list that are ours and of a name, each with the value of its secret, newest last.

    Raises:
        BadAnswer: an entry of the list is odd.
    """
    wanted = None if address.name is None else identity(part, address.name)
    read = ((decode(part, address.target, entry), entry) for entry in entries)
    ours = [
        (found, entry[part.secret_field])
        for found, entry in read
        if found.ours and wanted in {identity(part, name) for name in found.names}
    ]
    return sorted(ours, key=lambda each: by_birth(each[0]))


def collection_of(address: Address, kinds: Kinds) -> Collection:
    """Return the collection in which an object is created."""
    part = kinds[address.section].part(address.part)
    if not isinstance(part, Collection):
        raise TypeError(f"nothing can be created in {address.section}.{address.part}")
    return part
