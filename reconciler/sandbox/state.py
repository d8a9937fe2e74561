"""What the sandbox remembers: users, groups, projects, and who may do what with them.

Sections of a kind (its milestones, its rules, ...) hang on their owners under the kind's own name and are declared
by that kind's module in `routes/`; this module knows none of them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, Literal, Self, TypeVar

from pydantic import Field, ValidationInfo, field_validator, model_validator

from .records import SEED, Date, Item, Numbers, Record, Time, Username, loading, stamp

T = TypeVar("T")
Role = Literal["guest", "planner", "reporter", "developer", "maintainer", "owner"]
Dialect = Literal["spec", "deployed"]
Visibility = Literal["private", "internal", "public"]
Level = Literal["instance", "user", "group", "project"]
GUEST, PLANNER, REPORTER, DEVELOPER, MAINTAINER, OWNER, ADMIN = 10, 15, 20, 30, 40, 50, 60
ROLES: dict[str, int] = {
    "guest": GUEST,
    "planner": PLANNER,
    "reporter": REPORTER,
    "developer": DEVELOPER,
    "maintainer": MAINTAINER,
    "owner": OWNER,
}


class Instance(Record):
    """The service as a whole; where `now` is given, its clock stands there but for a second each write."""

    dialect: Dialect = "spec"
    now: Time | None = None
    url: str | None = None
    version: str = "18.9.0-ee"
    revision: str = "5a0d6b0c1f2"

    @property
    def enterprise(self) -> bool:
        """Whether it has the code of the paid editions."""
        return self.version.endswith("-ee")


class Token(Record):
    """An access token of a user: `personal` (those of bots too), `oauth`, or `job` for that of a CI job.

    A state file may give its value alone.
    """

    token: str
    id: int = 0
    name: str = ""
    scopes: list[str] = Field(default_factory=lambda: ["api"])
    created_at: Time = SEED
    expires_at: Date | None = None
    revoked: bool = False
    kind: Literal["personal", "oauth", "job"] = "personal"

    @model_validator(mode="before")
    @classmethod
    def _from_value(cls, value: Any) -> Any:
        return {"token": value} if isinstance(value, str) else value

    @field_validator("token")
    @classmethod
    def _only_one(cls, value: str, info: ValidationInfo) -> str:
        if value in loading(info).tokens:
            raise ValueError("the same token is given twice")
        return value

    @model_validator(mode="after")
    def _register(self, info: ValidationInfo) -> Self:
        self.id = self.id or len(loading(info).tokens) + 1
        loading(info).tokens[self.token] = self
        return self


class User(Item):
    """Someone with tokens; a bot where they were made for a token, or are a service's account."""

    username: str
    name: str = ""
    admin: bool = False
    bot: bool = False
    emails: list[str] = Field(default_factory=list, validate_default=True)
    created_at: Time = SEED
    tokens: list[Token] = Field(default_factory=list)

    @field_validator("username")
    @classmethod
    def _only_one(cls, username: str, info: ValidationInfo) -> str:
        if username.lower() in loading(info).users_by_name:
            raise ValueError(f"the user {username!r} is given twice")
        return username

    @field_validator("emails")
    @classmethod
    def _have_one(cls, emails: list[str], info: ValidationInfo) -> list[str]:
        return emails or [f"{info.data.get('username')}@example.com"]

    @model_validator(mode="after")
    def _register(self, info: ValidationInfo) -> Self:
        self.name = self.name or self.username.capitalize()
        loading(info).users_by_name[self.username.lower()] = self
        for position, token in enumerate(self.tokens, start=1):
            token.name = token.name or f"{self.username} {position}"
            loading(info).users_by_token[token.token] = self
        return self


class Member(Record):
    """A user's role in a group or project."""

    user: Username
    role: Role


class Place(Item):
    """A group or a project; `path` is its full path."""

    path: str
    name: str = ""
    visibility: Visibility = "private"
    archived: bool = False
    created_at: Time = SEED
    members: list[Member] = Field(default_factory=list)

    @property
    def slug(self) -> str:
        """The last part of its path."""
        return self.path.rpartition("/")[2]

    @property
    def parent_path(self) -> str:
        """The path of the namespace it is in; empty for a top-level group."""
        return self.path.rpartition("/")[0]

    @field_validator("path")
    @classmethod
    def _claim(cls, path: str, info: ValidationInfo) -> str:
        state, key = loading(info), path.lower()
        if key in state.users_by_name or key in state.groups_by_path or key in state.projects_by_path:
            raise ValueError(f"the path {path!r} is taken")
        return path

    def role_of(self, user: "User") -> int:
        """The user's role as a member of just this place, as a number; 0 for none."""
        return max((ROLES[member.role] for member in self.members if member.user == user.username), default=0)


class Group(Place):
    """A group."""

    description: str = ""

    @field_validator("path")
    @classmethod
    def _follow_parent(cls, path: str, info: ValidationInfo) -> str:
        parent = path.rpartition("/")[0]
        if parent and parent.lower() not in loading(info).groups_by_path:
            raise ValueError(f"its parent {parent!r} must come before it")
        return path

    @model_validator(mode="after")
    def _register(self, info: ValidationInfo) -> Self:
        self.name = self.name or self.slug
        loading(info).groups_by_path[self.path.lower()] = self
        return self


class Project(Place):
    """A project, in a group or in a user's personal namespace."""

    description: str | None = None
    last_activity_at: Time = ""
    default_branch: str = "main"
    topics: list[str] = Field(default_factory=list)
    renamed_from: list[str] = Field(default_factory=list)
    container_registry_enabled: bool = True
    builds_enabled: bool = True
    issues_enabled: bool = True
    merge_requests_enabled: bool = True

    @field_validator("path")
    @classmethod
    def _have_namespace(cls, path: str) -> str:
        if "/" not in path:
            raise ValueError("must be a full path, namespace included")
        return path

    @model_validator(mode="after")
    def _register(self, info: ValidationInfo) -> Self:
        self.name = self.name or self.slug
        self.last_activity_at = self.last_activity_at or self.created_at
        loading(info).projects_by_path[self.path.lower()] = self
        return self


Owner = Instance | User | Place


@dataclass(frozen=True, slots=True)
class Section(Generic[T]):
    """What one kind keeps on an owner.

    Attributes:
        name: its key in the state file.
        on: what it hangs on; more than one level where groups and projects have the same.
        type: its type as a pydantic field: a `Record`, a list of `Item`s, ...
        default: its value where the state file gives none, or a function that makes one.
    """

    name: str
    on: tuple[Level, ...]
    type: Any
    default: "T | Callable[[], T]"

    def of(self, owner: Owner) -> T:
        """What the owner has."""
        found: T = getattr(owner, self.name)
        return found

    def put(self, owner: Owner, value: T) -> None:
        """Let the owner have this instead."""
        setattr(owner, self.name, value)


class State:
    """Everything, with the indexes that answer quickly. While a file is loaded, its models register themselves here."""

    def __init__(self) -> None:
        self.instance = Instance()
        self.stands_at: datetime | None = None
        self.users: dict[int, User] = {}
        self.groups: dict[int, Group] = {}
        self.projects: dict[int, Project] = {}
        self.users_by_name: dict[str, User] = {}
        self.users_by_token: dict[str, User] = {}
        self.tokens: dict[str, Token] = {}
        self.groups_by_path: dict[str, Group] = {}
        self.projects_by_path: dict[str, Project] = {}
        self.moved: dict[str, Project] = {}
        self.referred_groups: set[int] = set()
        self.referred_projects: set[int] = set()
        self._numbers: dict[tuple[str, str, str], Numbers] = {}
        self._access: dict[tuple[str, str], int] = {}
        self._reach: dict[str, set[str]] = {}

    @property
    def deployed(self) -> bool:
        """Whether it speaks as production servers do where those differ from the spec."""
        return self.instance.dialect == "deployed"

    def numbers(self, sort: type[Item], within: str = "") -> Numbers:
        """Where the IDs of this sort of thing come from; `within` a path, where each place counts its own."""
        return self._numbers.setdefault((sort.__module__, sort.__name__, within), Numbers())

    def settle(self) -> None:
        """All is loaded: from now on only IDs above every ID so far are given."""
        for numbers in self._numbers.values():
            numbers.settle()

    @property
    def now(self) -> datetime:
        """The time of day; where the state file says `now`, that, and a second for each write since."""
        return self.stands_at or datetime.now(UTC)

    def tick(self) -> str:
        """Say what time it is, after the second that a write takes where the clock stands."""
        if self.stands_at:
            self.stands_at += timedelta(seconds=1)
            self.instance.now = stamp(self.stands_at)
        return stamp(self.now)

    def today(self) -> str:
        """The date, `YYYY-MM-DD`."""
        return self.now.date().isoformat()

    def show_time(self, text: str | None) -> str | None:
        """A kept moment as answers carry it: whole seconds in the spec (section 1), milliseconds in production."""
        return text if text is None or self.deployed else text[:19] + "Z"

    def user(self, username: str) -> User:
        """The user of that name, who is there: models have checked it."""
        return self.users_by_name[username.lower()]

    def find_project(self, key: str) -> Project | None:
        """By ID when all digits, else by full path without regard to case."""
        return self.projects_by_path.get(key.lower()) if _is_path(key) else self.projects.get(int(key))

    def find_group(self, key: str) -> Group | None:
        """By ID when all digits, else by full path without regard to case."""
        return self.groups_by_path.get(key.lower()) if _is_path(key) else self.groups.get(int(key))

    def groups_above(self, place: Place) -> Iterator[Group]:
        """The group that a project is in, or the group itself, its parent, and so on up to the root."""
        path = place.path if isinstance(place, Group) else place.parent_path
        while group := self.groups_by_path.get(path.lower()):
            yield group
            path = group.parent_path

    def group_of(self, project: Project) -> Group | None:
        """The group a project is in; None in a personal namespace."""
        return self.groups_by_path.get(project.parent_path.lower())

    def is_archived(self, place: Place) -> bool:
        """Whether it, or a group above it, is archived."""
        return place.archived or any(group.archived for group in self.groups_above(place))

    def access(self, user: User | None, place: Place) -> int:
        """The user's role there as a number, inherited ones included; 0 for none."""
        if user is None:
            return 0
        key = (user.username, place.path)
        if key not in self._access:
            self._access[key] = self._find_access(user, place)
        return self._access[key]

    def visible(self, user: User | None, place: Place) -> bool:
        """Whether the user may know of it: public, internal, a member there or, for groups, anywhere below."""
        if place.visibility == "public" or (user is not None and place.visibility == "internal"):
            return True
        if self.access(user, place):
            return True
        return user is not None and isinstance(place, Group) and place.path in self._reachable(user)

    def _find_access(self, user: User, place: Place) -> int:
        if user.admin:
            return ADMIN
        if isinstance(place, Project) and place.parent_path.lower() == user.username.lower():
            return OWNER
        return max(each.role_of(user) for each in (place, *self.groups_above(place)))

    def _reachable(self, user: User) -> set[str]:
        """The paths of the groups in or below which the user is a member."""
        if user.username not in self._reach:
            places: list[Place] = [*self.groups.values(), *self.projects.values()]
            self._reach[user.username] = {
                group.path for place in places if place.role_of(user) for group in self.groups_above(place)
            }
        return self._reach[user.username]


def _is_path(key: str) -> bool:
    return not (key.isascii() and key.isdigit() and len(key) < 20)
