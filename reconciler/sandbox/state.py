"""The state of the sandbox: users, groups, projects, and roles. Begin with `SandboxState`.

The section of a kind is a field of its owner, under the kind's name. Modules in `routes/` declare sections; this module
names no kind.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Generic, Literal, Self, TypeVar

from pydantic import Field, ValidationInfo, field_validator, model_validator

from .records import SEED, Date, GroupId, IdSequence, Record, StoredItem, Time, Username, loading, moment, stamp

I = TypeVar("I", bound=StoredItem)  # noqa: E741 - an item
T = TypeVar("T")
Role = Literal["guest", "planner", "reporter", "developer", "maintainer", "owner"]
Dialect = Literal["spec", "deployed"]
Visibility = Literal["private", "internal", "public"]
Level = Literal["instance", "user", "group", "project"]
_PERSONAL = 1_000_000_000
"""Added to the ID of a user for that of their namespace, which groups have IDs in common with."""
GUEST, PLANNER, REPORTER, DEVELOPER, MAINTAINER, OWNER, ADMIN = 10, 15, 20, 30, 40, 50, 60
ROLES: dict[Role, int] = {
    "guest": GUEST,
    "planner": PLANNER,
    "reporter": REPORTER,
    "developer": DEVELOPER,
    "maintainer": MAINTAINER,
    "owner": OWNER,
}


class Instance(Record):
    """The service as a whole. Its clock is real; with `now`, the clock starts there and advances a second per write.

    Attributes:
        licensed: whether its licence has the features of the paid tiers.
        admin_mode: whether administrators need a token with the scope `admin_mode` for their rights.
    """

    dialect: Dialect = "spec"
    now: Time | None = None
    url: str | None = None
    version: str = "18.9.0-ee"
    revision: str = "5a0d6b0c1f2"
    licensed: bool = True
    admin_mode: bool = False
    throttle_authenticated_api_enabled: bool = False
    throttle_authenticated_api_requests_per_period: Annotated[int, Field(gt=0)] = 7200
    throttle_authenticated_api_period_in_seconds: Annotated[int, Field(gt=0)] = 3600

    @property
    def throttle(self) -> tuple[int, int] | None:
        """How many requests a user may send in how many seconds, if that is limited."""
        if not self.throttle_authenticated_api_enabled:
            return None
        return self.throttle_authenticated_api_requests_per_period, self.throttle_authenticated_api_period_in_seconds

    @property
    def enterprise(self) -> bool:
        """Whether the service has the code of the paid editions."""
        return self.version.endswith("-ee")


class AccessToken(Record):
    """An access token of a user: `personal` (also that of a bot), `oauth`, or `job` for that of a CI job.

    A state file may give only the value.
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


class User(StoredItem):
    """A user with tokens; a bot if made for a token, or for a service's account."""

    username: str
    name: str = ""
    admin: bool = False
    bot: bool = False
    blocked: bool = False
    can_create_group: bool = True
    emails: list[str] = Field(default_factory=list, validate_default=True)
    created_at: Time = SEED
    tokens: list[AccessToken] = Field(default_factory=list)

    @property
    def namespace_id(self) -> int:
        """The ID of the personal namespace."""
        return _PERSONAL + self.id

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


class MemberRole(Record):
    """A user's role in a group or project.

    Lists show a new member at once, and rules know the member only after a job of the service: so often is the member
    still refused or dropped.
    """

    user: Username
    role: Role
    unsettled: int = Field(default=0, ge=0, le=99)


class Invitation(Record):
    """A group whose members are members of a project too, with at most that role."""

    group_id: GroupId
    role: Role


class GroupOrProject(StoredItem):
    """A group or a project; `path` is its full path."""

    path: str
    name: str = ""
    visibility: Visibility = "private"
    archived: bool = False
    marked_for_deletion_on: str | None = None
    created_at: Time = SEED
    members: list[MemberRole] = Field(default_factory=list)

    @property
    def slug(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]

    @property
    def parent_path(self) -> str:
        """The path of the namespace; empty for a top-level group."""
        return self.path.rpartition("/")[0]

    @field_validator("path")
    @classmethod
    def _claim(cls, path: str, info: ValidationInfo) -> str:
        state, key = loading(info), path.lower()
        if key in state.users_by_name or key in state.groups_by_path or key in state.projects_by_path:
            raise ValueError(f"the path {path!r} is taken")
        return path

    @property
    def owners(self) -> list[MemberRole]:
        """Its direct members with that role."""
        return [member for member in self.members if member.role == "owner"]

    def role_of(self, user: "User") -> int:
        """Return the user's role as a direct member, as a number; 0 for none."""
        return max((ROLES[member.role] for member in self.members if member.user == user.username), default=0)


class Group(GroupOrProject):
    """A group. Its old path does not lead to it: groups do not redirect."""

    description: str | None = None
    renamed_from: list[str] = Field(default_factory=list)

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


class Project(GroupOrProject):
    """A project, in a group or in a user's personal namespace.

    A state file may leave out the content of its repository.
    """

    description: str | None = None
    last_activity_at: Time = ""
    default_branch: str = "main"
    empty_repo: bool = False
    topics: list[str] = Field(default_factory=list)
    renamed_from: list[str] = Field(default_factory=list)
    repository_enabled: bool = True
    container_registry_enabled: bool = True
    packages_enabled: bool = True
    builds_enabled: bool = True
    issues_enabled: bool = True
    merge_requests_enabled: bool = True
    invited_groups: list[Invitation] = Field(default_factory=list)
    ci_pipeline_variables_minimum_override_role: Literal["developer", "maintainer", "owner", "no_one_allowed"] = (
        "developer"
    )

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


Owner = Instance | User | GroupOrProject


@dataclass(frozen=True, slots=True)
class StateSection(Generic[T]):
    """The data of one kind on an owner.

    Attributes:
        name: its key in the state file.
        on: the levels of its owners.
        type: its type as a pydantic field: a `Record`, a list of `StoredItem`s, ...
        default: its value if the state file gives none; copied for each owner.
    """

    name: str
    on: tuple[Level, ...]
    type: Any
    default: T

    def of(self, owner: Owner) -> T:
        """Return the owner's data."""
        data: T = getattr(owner, self.name)
        return data

    def put(self, owner: Owner, value: T) -> None:
        """Replace the owner's data."""
        setattr(owner, self.name, value)


class SandboxState:
    """The whole state, with indexes. While a file is loaded, its models register themselves here.

    Attributes:
        jobs: the jobs in the background, which no file has: by sort, user and group.
        arrivals: by the ID of a group, the function that brings more of an import whenever a client looks.
        events: the events of the service's audit, the oldest first; no file has them either.
    """

    def __init__(self, user: type[User] = User, group: type[Group] = Group, project: type[Project] = Project) -> None:
        self._user, self._group, self._project = user, group, project
        self.instance = Instance()
        self.users: dict[int, User] = {}
        self.groups: dict[int, Group] = {}
        self.projects: dict[int, Project] = {}
        self.users_by_name: dict[str, User] = {}
        self.users_by_token: dict[str, User] = {}
        self.tokens: dict[str, AccessToken] = {}
        self.groups_by_path: dict[str, Group] = {}
        self.projects_by_path: dict[str, Project] = {}
        self.moved: dict[str, Project] = {}
        self.referred_users: dict[str, str] = {}
        self.referred_groups: set[int] = set()
        self.referred_projects: set[int] = set()
        self.jobs: dict[tuple[str, int, int], Any] = {}
        self.arrivals: dict[int, Callable[[Any], None]] = {}
        self.events: list[Any] = []
        self._numbers: dict[tuple[str, str, str], IdSequence] = {}
        self._access: dict[tuple[str, bool, str], int] = {}
        self._reach: dict[str, set[str]] = {}

    @property
    def deployed(self) -> bool:
        """Whether the service behaves like production servers where their behaviour differs from the spec."""
        return self.instance.dialect == "deployed"

    def numbers(self, sort: type[StoredItem], within: str = "") -> IdSequence:
        """Return the source of IDs for a class of items; `within` a path, for numbers within that project or group."""
        sort = sort.counted_with or sort
        return self._numbers.setdefault((sort.__module__, sort.__name__, within), IdSequence())

    def settle(self) -> None:
        """End the load: assign only IDs above every ID so far from now on."""
        for numbers in self._numbers.values():
            numbers.settle()

    @property
    def now(self) -> datetime:
        """The time of the service's clock."""
        return moment(self.instance.now) if self.instance.now else datetime.now(UTC)

    def tick(self) -> str:
        """Return the time of a write; a clock that is not real advances a second."""
        if self.instance.now:
            self.instance.now = stamp(self.now + timedelta(seconds=1))
        return stamp(self.now)

    def within_limit(self, sort: str, user: User, per_minute: int) -> bool:
        """Count a request; return whether the user is within the limit of that sort for the minute; 0 for any number.

        As in production, a refused request counts too, and the next minute begins on the full minute of the clock.
        """
        self.tick()
        minute = self.now.replace(second=0, microsecond=0)
        counted, number = self.jobs.get((sort, user.id, 0), (minute, 0))
        number = number + 1 if counted == minute else 1
        self.jobs[sort, user.id, 0] = minute, number
        return not per_minute or number <= per_minute

    def today(self) -> str:
        """Return the date, `YYYY-MM-DD`."""
        return self.now.date().isoformat()

    def show_time(self, text: str | None) -> str | None:
        """Return a moment in the form of answers: whole seconds in the spec (section 1), milliseconds in production."""
        return text if text is None or self.deployed else text[:19] + "Z"

    def user(self, username: str) -> User:
        """Return the user of a name that a model has checked."""
        return self.users_by_name[username.lower()]

    def find_project(self, key: str) -> Project | None:
        """Return the project with that ID, if all are digits, else with that full path, ignoring case."""
        return self.projects_by_path.get(key.lower()) if _is_path(key) else self.projects.get(int(key))

    def find_group(self, key: str) -> Group | None:
        """Return the group with that ID, if all are digits, else with that full path, ignoring case."""
        return self.groups_by_path.get(key.lower()) if _is_path(key) else self.groups.get(int(key))

    def find_namespace(self, key: str) -> Group | User | None:
        """Return the group, or the user with a personal namespace, of that ID or path, ignoring case."""
        if _is_path(key):
            return self.namespace_at(key)
        return self.groups.get(int(key)) or self.users.get(int(key) - _PERSONAL)

    def namespace_at(self, path: str) -> Group | User | None:
        """Return the group, or the user with a personal namespace, of that full path, ignoring case."""
        return self.groups_by_path.get(path.lower()) or self.users_by_name.get(path.lower())

    def groups_above(self, place: GroupOrProject) -> Iterator[Group]:
        """Yield the group of a project, or the group itself, then its parent, up to the root."""
        path = place.path if isinstance(place, Group) else place.parent_path
        while group := self.groups_by_path.get(path.lower()):
            yield group
            path = group.parent_path

    def group_of(self, project: Project) -> Group | None:
        """Return the group of a project; None in a personal namespace."""
        return self.groups_by_path.get(project.parent_path.lower())

    def is_archived(self, place: GroupOrProject) -> bool:
        """Whether the place or a group above is archived."""
        return place.archived or any(group.archived for group in self.groups_above(place))

    def access(self, user: User | None, place: GroupOrProject) -> int:
        """Return the user's role as a number, including inherited roles; 0 for none."""
        if user is None:
            return 0
        key = (user.username, user.admin, place.path)
        if key not in self._access:
            self._access[key] = self._find_access(user, place)
        return self._access[key]

    def membership(self, user: User, place: GroupOrProject) -> int:
        """Return the user's role as a member, inherited or of an invited group; 0 for none, for administrators too."""
        if isinstance(place, Project) and place.parent_path.lower() == user.username.lower():
            return OWNER
        own = max(above.role_of(user) for above in (place, *self.groups_above(place)))
        return max(own, *(min(role, self.membership(user, group)) for group, role in self.invited_to(place)), 0)

    def has_settled(self, user: User, place: GroupOrProject) -> bool:
        """Whether rules know a member already; each look that comes too early brings that moment nearer."""
        for above in (place, *self.groups_above(place)):
            for member in above.members:
                if member.user == user.username and member.unsettled:
                    member.unsettled -= 1
                    return False
        return True

    def invited_to(self, place: GroupOrProject) -> list[tuple[Group, int]]:
        """Return the groups that are invited to a project, each with the highest role that its members have there."""
        invitations = place.invited_groups if isinstance(place, Project) else []
        return [
            (self.groups[invitation.group_id], ROLES[invitation.role])
            for invitation in invitations
            if invitation.group_id in self.groups
        ]

    def visible(self, user: User | None, place: GroupOrProject) -> bool:
        """Whether the user can see the place: public, internal, a member of it or, for groups, of anything below."""
        if place.visibility == "public" or (user is not None and place.visibility == "internal"):
            return True
        if self.access(user, place):
            return True
        return user is not None and isinstance(place, Group) and place.path in self._reachable(user)

    def add_user(self, values: dict[str, Any]) -> User:
        """Add a user with these values, which have been checked."""
        return self._add(self.users, self._user, values)

    def add_group(self, values: dict[str, Any]) -> Group:
        """Add a group with these values, which have been checked."""
        return self._add(self.groups, self._group, values)

    def add_project(self, values: dict[str, Any]) -> Project:
        """Add a project with these values, which have been checked."""
        return self._add(self.projects, self._project, values)

    def move(self, place: GroupOrProject, path: str) -> None:
        """Give a place and all its content another path: projects are still found at the old path, groups not."""
        start, renamed = len(place.path), {}
        for below in self.below(place):
            index: dict[str, Any] = self.groups_by_path if isinstance(below, Group) else self.projects_by_path
            del index[below.path.lower()]
            if isinstance(below, Project):
                below.renamed_from = [*below.renamed_from, below.path]
                self.moved[below.path.lower()] = below
            renamed[below.path] = below.path = path + below.path[start:]
            index[below.path.lower()] = below
        self._numbers = {
            (module, name, renamed.get(within, within)): numbers
            for (module, name, within), numbers in self._numbers.items()
        }
        self.forget_access()

    def below(self, place: GroupOrProject) -> list[GroupOrProject]:
        """Return the place, and all its content."""
        return [inner for inner in self._places() if f"{inner.path}/".lower().startswith(f"{place.path}/".lower())]

    def remove(self, place: GroupOrProject) -> None:
        """Remove a place, and all its content."""
        for inner in self.below(place):
            if isinstance(inner, Project):
                del self.projects[inner.id], self.projects_by_path[inner.path.lower()]
                self.moved = {old: project for old, project in self.moved.items() if project is not inner}
            else:
                del self.groups[inner.id], self.groups_by_path[inner.path.lower()]
        self.forget_access()

    def remove_user(self, user: User, sections: Iterable["StateSection[Any]"]) -> None:
        """Remove a user, their tokens, memberships and projects, and their data in these sections everywhere."""
        for project in [
            project for project in self.projects.values() if project.parent_path.lower() == user.username.lower()
        ]:
            self.remove(project)
        for place in self._places():
            place.members = [member for member in place.members if member.user != user.username]
            for section in sections:
                _forget(user.username, getattr(place, section.name, None))
        for token in user.tokens:
            del self.tokens[token.token], self.users_by_token[token.token]
        del self.users[user.id], self.users_by_name[user.username.lower()]
        self.forget_access()

    def forget_access(self) -> None:
        """Clear the cached roles: members or places have changed."""
        self._access.clear()
        self._reach.clear()

    def _places(self) -> list[GroupOrProject]:
        return [*self.groups.values(), *self.projects.values()]

    def _add(self, items: dict[int, I], sort: type[I], values: dict[str, Any]) -> I:
        item = sort.model_validate({**values, "created_at": self.tick()}, context=self)
        item.id = self.numbers(sort).give()
        items[item.id] = item
        self.forget_access()
        return item

    def _find_access(self, user: User, place: GroupOrProject) -> int:
        return ADMIN if user.admin else self.membership(user, place)

    def _reachable(self, user: User) -> set[str]:
        """Return the paths of the groups in or below which the user is a member."""
        if user.username not in self._reach:
            self._reach[user.username] = {
                group.path for place in self._places() if place.role_of(user) for group in self.groups_above(place)
            }
        return self._reach[user.username]


def _forget(username: str, data: Any) -> None:
    """Remove a user's data from a section: by their name, or as owner or author."""
    if isinstance(data, dict):
        data.pop(username, None)
    elif isinstance(data, list):
        data[:] = [item for item in data if username not in (getattr(item, "owner", ""), getattr(item, "author", ""))]


def _is_path(key: str) -> bool:
    return not (key.isascii() and key.isdigit() and len(key) < 20)
