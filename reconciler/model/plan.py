"""A plan, as a value: what would be changed and by which requests, what cannot be, and what stays as it is.

It is complete: every change carries its requests, so its cost is known before it starts, and what cannot be done is
in it as a problem. `planner` makes it, `apply` carries it out.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from reconciler.model.diff import AsRead, Fields
from reconciler.model.protocols import Request
from reconciler.model.state import Section
from reconciler.model.targets import Address, Key, Target


@dataclass(frozen=True, slots=True)
class Create:
    """An object that does not exist and will.

    Attributes:
        after: the declared fields.
        target_id: the numeric ID of the target the object refers to, where it refers to one.
        replaces_ids: the IDs of the live objects of the same name, where it is to succeed them.
        delivers: whether the answer holds a secret, which is to be delivered.
        former_names: the declared former names, where nothing has one of them: there is nothing to rename.
    """

    address: Address
    after: Fields
    requests: tuple[Request, ...]
    target_id: int | None = None
    replaces_ids: tuple[int, ...] = ()
    delivers: bool = False
    former_names: tuple[Key, ...] = ()


@dataclass(frozen=True, slots=True)
class Update:
    """An object, or a settings section, some of whose fields will change.

    Attributes:
        before: the fields that will change, as they are.
        after: the same fields, as they will be.
        read: the whole object, as it was read.
        renamed_from: its name before, or None where the name stays.
        hint: why the service may refuse it; empty where nothing speaks for that.
    """

    address: Address
    before: Fields
    after: Fields
    requests: tuple[Request, ...]
    read: AsRead
    renamed_from: Key | None = None
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Delete:
    """An object that exists and will not.

    Attributes:
        before: all its fields.
        read: the whole object, as it was read.
        successor_id: the ID of the object that has succeeded it, whose secret is delivered before this one is deleted;
            None where none has.
    """

    address: Address
    before: Fields
    requests: tuple[Request, ...]
    read: AsRead
    successor_id: int | None = None


Change = Create | Update | Delete


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wanted that cannot be planned; it holds up nothing but itself.

    Attributes:
        reason: what is wrong, or the cause of it.
        field: the field it is about, or None for the whole object.
        remedy: what to do about it; empty where the reason says it.
        origin: `path:line` of what cannot be planned; empty if unknown.
    """

    address: Address
    reason: str
    field: str | None = None
    remedy: str = ""
    origin: str = ""


@dataclass(frozen=True, slots=True)
class Unmanaged:
    """A live object that no manifest mentions, which stays as it is.

    Attributes:
        id: its numeric ID, where it has one.
        grants_access: whether somebody or something may do something because of it.
        owner: the username of its owner, if known.
        last_used: when it was last used, as the service says it, if known.
    """

    address: Address
    id: int | None = None
    grants_access: bool = False
    owner: str | None = None
    last_used: str | None = None


@dataclass(frozen=True, slots=True)
class SectionPlan:
    """What will happen to one section of one target.

    Attributes:
        section: its name.
        found: how many objects it held when it was read.
        changes: creates, then updates, then deletes, so that nothing is ever unprotected in between.
        unmanaged: live objects that no manifest mentions, which stay as they are.
    """

    section: str
    found: int = 0
    changes: tuple[Change, ...] = ()
    problems: tuple[Problem, ...] = ()
    unmanaged: tuple[Unmanaged, ...] = ()


@dataclass(frozen=True, slots=True)
class TargetPlan:
    """What will happen to one target.

    Attributes:
        origin: `path:line` of the target's manifest.
    """

    target: Target
    sections: tuple[SectionPlan, ...]
    origin: str = ""

    @property
    def changes(self) -> Iterator[Change]:
        """All changes, in the order in which they are carried out."""
        return (change for section in self.sections for change in section.changes)

    @property
    def problems(self) -> Iterator[Problem]:
        """All problems."""
        return (problem for section in self.sections for problem in section.problems)

    @property
    def unmanaged(self) -> Iterator[Unmanaged]:
        """All live objects that stay as they are because no manifest mentions them."""
        return (each for section in self.sections for each in section.unmanaged)

    def with_origins(self, origin: Callable[[Address, str | None], str]) -> "TargetPlan":
        """Return the plan with each problem told where it comes from, as far as that is known; else from the target."""
        return replace(
            self,
            sections=tuple(
                replace(
                    section,
                    problems=tuple(
                        replace(each, origin=origin(each.address, each.field) or self.origin)
                        for each in section.problems
                    ),
                )
                for section in self.sections
            ),
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """What will happen to all targets.

    Attributes:
        targets: users, then groups, then projects.
        dependent: sections to be read and planned again after the groups above them were changed.
        whole: sections whose change sends fields that nobody declared: read and planned again right before it. A saved
            plan is without them, for what it changes is read again anyway, and must not have moved.
    """

    targets: tuple[TargetPlan, ...]
    dependent: tuple[Section, ...] = ()
    whole: tuple[Section, ...] = field(default=(), compare=False)

    @property
    def changes(self) -> Iterator[Change]:
        """All changes of all targets."""
        return (change for target in self.targets for change in target.changes)

    @property
    def problems(self) -> Iterator[Problem]:
        """All problems of all targets."""
        return (problem for target in self.targets for problem in target.problems)

    @property
    def unmanaged(self) -> Iterator[Unmanaged]:
        """All unmanaged objects of all targets."""
        return (each for target in self.targets for each in target.unmanaged)

    @property
    def cost(self) -> int:
        """How many requests the changes take."""
        return sum(len(change.requests) for change in self.changes)
