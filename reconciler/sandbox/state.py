"""What the sandbox remembers: users, groups, projects, and who may do what with them.

Sections of a kind (its milestones, its rules, ...) hang on their owners under the kind's own name and are
loaded and dumped by that kind's module in `routes/`; this module knows none of them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from .numbers import Numbers
from .reading import Reading, stamp

GUEST, PLANNER, REPORTER, DEVELOPER, MAINTAINER, OWNER, ADMIN = 10, 15, 20, 30, 40, 50, 60
ROLES = {
    "guest": GUEST,
    "planner": PLANNER,
    "reporter": REPORTER,
    "developer": DEVELOPER,
    "maintainer": MAINTAINER,
    "owner": OWNER,
}
DIALECTS = ("spec", "deployed")
TOKEN_KINDS = ("personal", "oauth", "job")
VISIBILITIES = ("private", "internal", "public")
SWITCHES = ("container_registry_enabled", "builds_enabled", "issues_enabled", "merge_requests_enabled")
SEED = "2026-01-01T00:00:00.000Z"


@dataclass(slots=True, eq=False)
class Token:
    """An access token of a user: `personal` (those of bots too), `oauth`, or `job` for that of a CI job."""

    value: str
    id: int
    name: str
    scopes: list[str]
    created_at: str
    expires_at: str | None = None
    revoked: bool = False
    kind: str = "personal"


@dataclass(slots=True, eq=False)
class User:
    """Someone with tokens; a bot where they were made for a token, or are a service's account."""

    id: int
    username: str
    name: str
    admin: bool
    emails: list[str]
    created_at: str
    bot: bool = False
    tokens: list[Token] = field(default_factory=list)
    sections: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Group:
    """A group; `path` is its full path."""

    id: int
    path: str
    name: str
    created_at: str = SEED
    visibility: str = "private"
    archived: bool = False
    description: str = ""
    parent: "Group | None" = None
    members: dict[str, str] = field(default_factory=dict)
    sections: dict[str, Any] = field(default_factory=dict)

    def chain(self) -> Iterator["Group"]:
        """This group, its parent, and so on up to the root."""
        group: Group | None = self
        while group is not None:
            yield group
            group = group.parent


@dataclass(slots=True, eq=False)
class Project:
    """A project; `group` is None in a personal namespace, `namespace_user` is None elsewhere."""

    id: int
    path: str
    name: str
    group: Group | None
    namespace_user: User | None = None
    created_at: str = SEED
    last_activity_at: str = SEED
    visibility: str = "private"
    archived: bool = False
    description: str | None = None
    default_branch: str = "main"
    topics: list[str] = field(default_factory=list)
    renamed_from: list[str] = field(default_factory=list)
    switches: dict[str, bool] = field(default_factory=lambda: dict.fromkeys(SWITCHES, True))
    members: dict[str, str] = field(default_factory=dict)
    sections: dict[str, Any] = field(default_factory=dict)

    def groups(self) -> Iterator[Group]:
        """The group it is in, that group's parent, and so on up to the root."""
        return self.group.chain() if self.group else iter(())

    def is_archived(self) -> bool:
        """Whether it, or a group above it, is archived."""
        return self.archived or any(group.archived for group in self.groups())


@dataclass(slots=True)
class Instance:
    """The service as a whole."""

    dialect: str = "spec"
    url: str | None = None
    version: str = "18.9.0-ee"
    revision: str = "5a0d6b0c1f2"
    sections: dict[str, Any] = field(default_factory=dict)

    @property
    def enterprise(self) -> bool:
        """Whether it has the code of the paid editions."""
        return self.version.endswith("-ee")


Owner = Instance | User | Group | Project


@dataclass(frozen=True, slots=True)
class Section:
    """What one kind keeps on an owner, and how it stands in a state file.

    Attributes:
        name: its key in the state file and in `sections`.
        on: what kind of owner it hangs on.
        load: makes it from the state file's value, which is null where nothing was given.
        dump: the state file's value again; None leaves the key out.
        numbered: whether it is a list of things with an `id` that is unique in the whole service.
    """

    name: str
    on: Literal["instance", "user", "group", "project"]
    load: "Callable[[Reading, State, Any], Any]"
    dump: Callable[[Any], Any]
    numbered: bool = False


class State:
    """Everything, with the indexes that answer quickly."""

    def __init__(self) -> None:
        self.instance = Instance()
        self.stands_at: datetime | None = None
        self.users: dict[int, User] = {}
        self.groups: dict[int, Group] = {}
        self.projects: dict[int, Project] = {}
        self.users_by_name: dict[str, User] = {}
        self.tokens: dict[str, tuple[User, Token]] = {}
        self.groups_by_path: dict[str, Group] = {}
        self.projects_by_path: dict[str, Project] = {}
        self.moved: dict[str, Project] = {}
        self.numbers: dict[str, Numbers] = {}
        self._access: dict[tuple[User, Group | Project], int] = {}
        self._reach: dict[User, set[Group]] = {}

    @property
    def deployed(self) -> bool:
        """Whether it speaks as production servers do where those differ from the spec."""
        return self.instance.dialect == "deployed"

    def number(self, sort: str) -> Numbers:
        """Where the IDs of this sort of thing come from."""
        return self.numbers.setdefault(sort, Numbers())

    @property
    def now(self) -> datetime:
        """The time of day; where the state file says `now`, that, and a second for each write since."""
        return self.stands_at or datetime.now(UTC)

    def tick(self) -> str:
        """Say what time it is, after the second that a write takes where the clock stands."""
        if self.stands_at:
            self.stands_at += timedelta(seconds=1)
        return stamp(self.now)

    def today(self) -> str:
        """The date, `YYYY-MM-DD`."""
        return self.now.date().isoformat()

    def show_time(self, text: str | None) -> str | None:
        """A kept moment as answers carry it: whole seconds in the spec (section 1), milliseconds in production."""
        return text if text is None or self.deployed else text[:19] + "Z"

    def find_project(self, key: str) -> Project | None:
        """By ID when all digits, else by full path without regard to case."""
        return self.projects_by_path.get(key.lower()) if _is_path(key) else self.projects.get(int(key))

    def find_group(self, key: str) -> Group | None:
        """By ID when all digits, else by full path without regard to case."""
        return self.groups_by_path.get(key.lower()) if _is_path(key) else self.groups.get(int(key))

    def user_named(self, reading: Reading) -> User:
        """The user a state file names; raises `StateError` when there is none."""
        user = self.users_by_name.get(reading.text().lower())
        if user is None:
            raise reading.fault(f"there is no user {reading.value!r}")
        return user

    def implied_group(self, path: str) -> Group:
        """The group of that full path, made up with its parents where nothing describes it."""
        found = self.groups_by_path.get(path.lower())
        if found is None:
            parent, _, last = path.rpartition("/")
            above = self.implied_group(parent) if parent else None
            number = self.number("groups").give()
            found = Group(number, path, last, parent=above)
            self.groups[number] = self.groups_by_path[path.lower()] = found
        return found

    def implied_project_numbered(self, number: int) -> Project:
        """The project of that ID, made up where nothing describes it."""
        found = self.projects.get(number)
        if found is None:
            name = f"project-{number}"
            found = Project(number, f"unlisted/{name}", name, self.implied_group("unlisted"))
            self.projects[number] = self.projects_by_path[found.path] = found
            self.number("projects").note(number)
        return found

    def implied_group_numbered(self, number: int) -> Group:
        """The group of that ID, made up where nothing describes it."""
        found = self.groups.get(number)
        if found is None:
            found = Group(number, f"unlisted-{number}", f"unlisted-{number}")
            self.groups[number] = self.groups_by_path[found.path] = found
            self.number("groups").note(number)
        return found

    def access(self, user: User | None, place: Group | Project) -> int:
        """The user's role there as a number, inherited ones included; 0 for none."""
        if user is None:
            return 0
        known = self._access.get((user, place))
        if known is None:
            known = self._access[user, place] = _access(user, place)
        return known

    def visible(self, user: User | None, place: Group | Project) -> bool:
        """Whether the user may know of it: public, internal, a member there or, for groups, anywhere below."""
        if place.visibility == "public" or (user is not None and place.visibility == "internal"):
            return True
        if self.access(user, place):
            return True
        return user is not None and isinstance(place, Group) and place in self._reachable(user)

    def _reachable(self, user: User) -> set[Group]:
        if user not in self._reach:
            below: list[Group | Project] = [*self.groups.values(), *self.projects.values()]
            self._reach[user] = {
                group for place in below if user.username in place.members for group in _groups_above(place)
            }
        return self._reach[user]


def _is_path(key: str) -> bool:
    return not (key.isascii() and key.isdigit() and len(key) < 20)


def role_among(members: dict[str, str], user: User) -> int:
    """The user's role among those members as a number; 0 for none."""
    return ROLES.get(members.get(user.username, ""), 0)


def _access(user: User, place: Group | Project) -> int:
    if user.admin:
        return ADMIN
    if isinstance(place, Project) and place.namespace_user is user:
        return OWNER
    inherited = (role_among(group.members, user) for group in _groups_above(place))
    return max(role_among(place.members, user), *inherited, 0)


def _groups_above(place: Group | Project) -> Iterator[Group]:
    return place.groups() if isinstance(place, Project) else place.chain()
