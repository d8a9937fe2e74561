"""The two values that the planner compares: desired state, from the manifests, and live state, from the service.

Begin with `DesiredState` and `LiveState`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from types import MappingProxyType

from reconciler.model.creation import Creation, ToCreate
from reconciler.model.exceptions import DeclaredException
from reconciler.model.obstacle import Obstacle
from reconciler.model.resource import LiveRecord, Objects, Wanted
from reconciler.model.targets import Identity, Key, Level, Target
from reconciler.system import clock

NO_MINIMUMS: Mapping[Key | None, frozenset[str]] = {}


@dataclass(frozen=True, slots=True)
class Section:
    """One declared section of one target.

    Attributes:
        target: the target.
        kind: the section's name.
        wanted: by part, the declaration; undeclared parts are absent.
        prune: whether the section is authoritative: unlisted objects are deleted.
        own: whether the target's own document declares some of it, and not only its profiles and sets.
        at_least: by item, the fields that may be stricter on the service; of a section of fields, under None.
        written: the section before `{default_branch}` is filled in; None if that is the same.
        released: by part, the names of objects that its document leaves alone, whatever its profiles and sets declare;
            each with the name by which these declare the object, or None.
    """

    target: Target
    kind: str
    wanted: Mapping[str, Wanted]
    prune: bool = False
    own: bool = field(default=True, compare=False)
    at_least: Mapping[Key | None, frozenset[str]] = field(default_factory=lambda: NO_MINIMUMS)
    written: "Section | None" = field(default=None, compare=False)
    released: Mapping[str, Mapping[Key, Key | None]] = field(default_factory=dict)

    @property
    def minimums(self) -> list[list[str]]:
        """Each item that has minimums with these fields, sorted, so that digests are stable."""
        return sorted([str(name or ""), *sorted(fields)] for name, fields in self.at_least.items())


@dataclass(frozen=True, slots=True)
class Listed:
    """The state of a project in a list of projects.

    Attributes:
        archived: whether the project is archived.
        off: the keys of its record whose features are switched off.
    """

    archived: bool = False
    off: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class DesiredTarget:
    """One user, group or project and its declarations.

    Attributes:
        target: the target.
        sections: in the order of the kinds.
        origin: `path:line` of its document.
        labels: from `metadata.labels`.
        path: its full path, if known, also for a target that is declared by ID.
        former_paths: the paths by which documents still name it, since it has moved; by place, as `path:line`.
        exceptions: the accepted deviations, expired ones included.
        listed: its state in a list of projects; None if no list has it.
        creation: the declared creation, if it does not exist; None if that is a problem.
        unmanaged: the sections that its document leaves alone, whatever its profiles and sets declare.
        skipped: the sections that are left out if the project cannot have them; for others, that is a problem.
        unplannable: by section, the obstacle to planning it: its `{default_branch}` is not known, or contradicts a
            name.
    """

    target: Target
    sections: tuple[Section, ...]
    origin: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    path: str | None = field(default=None, compare=False)
    former_paths: Mapping[str, str] = field(default_factory=dict, compare=False)
    exceptions: tuple[DeclaredException, ...] = ()
    listed: Listed | None = field(default=None, compare=False)
    creation: Creation | None = None
    unmanaged: frozenset[str] = frozenset()
    skipped: frozenset[str] = field(default=frozenset(), compare=False)
    unplannable: Mapping[str, Obstacle] = field(default_factory=dict, compare=False)

    def excepts(self, section: str, today: date) -> tuple[DeclaredException, ...]:
        """Return the exceptions of a section that are not over."""
        return tuple(
            exception for exception in self.exceptions if exception.section == section and not exception.is_over(today)
        )


@dataclass(frozen=True, slots=True)
class DesiredState:
    """All targets, in `Target.order`.

    Attributes:
        targets: users, then groups, then projects.
        digest: SHA-256 (hex) of the effective desired state, independent of files and their order.
        grace: the age of a successor at which its predecessor is deleted.
        forced: whether fields that the service does not show are written too.
    """

    targets: tuple[DesiredTarget, ...]
    digest: str
    grace: timedelta = timedelta()
    forced: bool = False


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A part that could not be read.

    Attributes:
        reason: the request and the service's answer.
        absent: whether the answer was that it does not exist, or is hidden from the token.
        status: of the service's answer; None without an answer.
        cause: the obstacle that explains the refusal; None if it was not looked for.
    """

    reason: str
    absent: bool = False
    status: int | None = field(default=None, compare=False)
    cause: Obstacle | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Reference:
    """A path whose numeric ID a request needs; of a user the username."""

    level: Level
    path: str

    @property
    def target(self) -> Target:
        """The target of this path."""
        return Target(self.level, self.path)

    def __str__(self) -> str:
        """`group acme`."""
        return f"{self.level} {self.path}"


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """A list of a target, whose names are the possible values of a field.

    Attributes:
        target: the target.
        suffix: the path of the list below the target's; empty if the target's own record has the list.
        key: the field of its entries with the name.
        id_key: the field with the ID.
        within: the field of the record that has the list; empty if the response is the list.
    """

    target: Target
    suffix: str
    key: str = "name"
    id_key: str = "id"
    within: str = ""

    @property
    def path(self) -> str:
        """The path of the list."""
        return (self.target.url + self.suffix).rstrip("/")


CALLER = Vocabulary(Target(Level.USER, None), "user", "username")
"""The user behind the token, as a list of one."""


class Known(dict[str, tuple[int, ...]]):
    """The names in a list, each with the IDs of its entries; names of users and groups in lower case.

    Attributes:
        unfit: by ID, the reason for which an entry has no effect in a rule, in words such as `blocked`.
    """

    def __init__(
        self, ids_by_name: Mapping[str, tuple[int, ...]] = MappingProxyType({}), unfit: Mapping[int, str] | None = None
    ) -> None:
        super().__init__(ids_by_name)
        self.unfit = unfit or {}

    def has(self, number: int) -> bool:
        """Return whether an entry has that ID."""
        return any(number in numbers for numbers in self.values())


Lookup = Reference | Vocabulary
"""A question that planning may need answered besides the live objects."""

LivePart = LiveRecord | Objects | Unreadable

PartAddress = tuple[Target, str, str]
"""Target, section and part."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """The facts of the inventory about the live objects of a part that history proves.

    Attributes:
        let_go: the objects that are no longer declared, by ID, each with the commit that declared it.
        renamed: the IDs of the objects that were renamed on the service, by identity of their declared names.
        exchanged: the IDs of the objects that exchange names, by identity of the names that they are to have.
        unproved: by identity of the declared name, the reason for which an object in `renamed` may be another one, or
            for which it is not known which object of an exchange is which.
    """

    let_go: Mapping[int, str] = field(default_factory=dict)
    renamed: Mapping[Key, int] = field(default_factory=dict)
    exchanged: Mapping[Key, int] = field(default_factory=dict)
    unproved: Mapping[Key, str] = field(default_factory=dict)


NOTHING_RECORDED = Recorded()


@dataclass(frozen=True, slots=True)
class LiveState:
    """The declared parts as the service shows them, and the IDs that were looked up.

    Attributes:
        parts: by target, section and part: a `LiveRecord` for a singleton, `Objects` for a collection.
        ids: numeric IDs by reference; paths in lower case.
        read_at: the time of the reading, by the service's clock.
        names: the names of the lists that were looked up.
        absent: by `Target.identity`, the targets of which nothing was read, since they will be created, or have an
            obstacle; their parts are empty.
        archives: the paths of the existing groups that documents create from archives, which may still arrive, by
            `Target.identity`.
        recorded: the facts of the inventory about the objects of each part.
    """

    parts: Mapping[PartAddress, LivePart]
    ids: Mapping[Reference, int | Obstacle]
    read_at: datetime = field(default_factory=lambda: clock.now())  # noqa: PLW0108 - tests set the clock
    names: Mapping[Vocabulary, Known | Obstacle] = field(default_factory=dict)
    absent: Mapping[Identity, ToCreate | Obstacle] = field(default_factory=dict)
    archives: Mapping[Identity, str] = field(default_factory=dict)
    recorded: Mapping[PartAddress, Recorded] = field(default_factory=dict)

    def created(self, level: Level, path: str) -> ToCreate | None:
        """Return the creation of the target with a path; None if it is not created."""
        absent_target = self.absent.get((level, path.casefold()))
        return absent_target if isinstance(absent_target, ToCreate) else None

    def unread(self, *sections: Section) -> dict[PartAddress, Unreadable]:
        """Return the declared parts of some sections that could not be read."""
        places = [(section.target, section.kind, part) for section in sections for part in section.wanted]
        return {place: part for place in places if isinstance(part := self.parts[place], Unreadable)}

    def shows_nothing_of(self, target: DesiredTarget) -> bool:
        """Return whether all declared parts of a target are absent, or not visible."""
        parts = [
            self.parts[section.target, section.kind, part] for section in target.sections for part in section.wanted
        ]
        return bool(parts) and all(isinstance(part, Unreadable) and part.absent for part in parts)
