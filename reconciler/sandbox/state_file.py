"""States from and to files: what `--state`, `GET /-/state` and `PUT /-/state` carry.

A file may leave out almost everything. What it only refers to is made up, private and empty: the parent groups of
a project, and projects and groups that an allowlist names by an ID nobody has.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .errors import StateError
from .reading import Fields, Reading, moment, stamp
from .routes import sections
from .state import (
    DIALECTS,
    ROLES,
    SEED,
    SWITCHES,
    TOKEN_KINDS,
    VISIBILITIES,
    Group,
    Owner,
    Project,
    Section,
    State,
    Token,
    User,
)

_INSTANCE = ("dialect", "now", "url", "version", "revision")
_USER = ("id", "username", "name", "admin", "bot", "emails", "tokens", "created_at")
_GROUP = ("id", "path", "name", "visibility", "archived", "description", "created_at", "members")
_PROJECT = (*_GROUP, "last_activity_at", "default_branch", "topics", "renamed_from", *SWITCHES)


def read_state(source: Mapping[str, Any] | Path, dialect: str | None = None) -> State:
    """A state from a mapping, or from a JSON or YAML file; a dialect given here wins over the state's own.

    Raises:
        StateError: naming the file, or the place in the state, and what is wrong there.
    """
    if not isinstance(source, Path):
        return load(source, dialect)
    try:
        text = source.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise StateError(f"{source}: cannot be read: {error}") from None
    try:
        return load(_parse(text, source), dialect)
    except StateError as error:
        raise StateError(f"{source}: {error}") from None


def load(value: Any, dialect: str | None = None) -> State:
    """A state from what a file holds, in that dialect if one is given. Raises `StateError`."""
    top = Reading(value, "").fields("instance", "users", "groups", "projects")
    state = State()
    owners: list[tuple[Owner, Fields]] = [(state.instance, _load_instance(state, top["instance"], dialect))]
    users, groups, projects = (list(top[name].items()) for name in ("users", "groups", "projects"))
    keys = {"users": _known(_USER, "user"), "groups": _known(_GROUP, "group")}
    keys["projects"] = _known(_PROJECT, "project")
    for sort, readings in (("users", users), ("groups", groups), ("projects", projects)):
        _take_numbers(state, sort, [reading.fields(*keys[sort]) for reading in readings])
    owners += [_load_user(state, reading.fields(*keys["users"])) for reading in users]
    owners += [_load_group(state, reading.fields(*keys["groups"])) for reading in groups]
    owners += [_load_project(state, reading.fields(*keys["projects"])) for reading in projects]
    _load_sections(state, owners)
    for numbers in state.numbers.values():
        numbers.settle()
    return state


def dump(state: State) -> dict[str, Any]:
    """The whole state as `load` reads it, IDs and token values included."""
    instance = state.instance
    return {
        "instance": {
            "dialect": instance.dialect,
            "now": stamp(state.stands_at) if state.stands_at else None,
            "url": instance.url,
            "version": instance.version,
            "revision": instance.revision,
            **_dump_sections("instance", instance),
        },
        "users": [_dump_user(user) for user in state.users.values()],
        "groups": [_dump_group(group) for group in state.groups.values()],
        "projects": [_dump_project(project) for project in state.projects.values()],
    }


def _parse(text: str, source: Path) -> Any:
    if source.suffix == ".json":
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise StateError(f"is not JSON: {error}") from None
    import yaml  # noqa: PLC0415 - only a state in YAML needs it

    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise StateError(f"is not YAML: {error}") from None


def _known(keys: tuple[str, ...], on: str) -> tuple[str, ...]:
    return (*keys, *(section.name for section in sections() if section.on == on))


def _take_numbers(state: State, sort: str, owners: list[Fields]) -> None:
    """Note every given ID before the first one is given out."""
    numbered = [section.name for section in sections() if section.numbered and f"{section.on}s" == sort]
    for fields in owners:
        state.number(sort).take(fields["id"])
        for name in numbered:
            for item in fields[name].items():
                if isinstance(item.value, Mapping):
                    state.number(name).take(Reading(item.value.get("id"), f"{item.place}.id"))


def _load_instance(state: State, reading: Reading, dialect: str | None) -> Fields:
    fields = reading.fields(*_known(_INSTANCE, "instance"))
    instance = state.instance
    instance.dialect = dialect or fields["dialect"].choice(DIALECTS, "spec")
    instance.url = fields["url"].optional_text()
    instance.version = fields["version"].text(instance.version)
    instance.revision = fields["revision"].text(instance.revision)
    now = fields["now"].optional_time()
    state.stands_at = moment(now) if now else None
    return fields


def _load_user(state: State, fields: Fields) -> tuple[User, Fields]:
    username = fields["username"].text()
    if username.lower() in state.users_by_name:
        raise fields["username"].fault(f"the user {username!r} is given twice")
    user = User(
        id=fields["id"].optional_integer() or state.number("users").give(),
        username=username,
        name=fields["name"].text(username.capitalize()),
        admin=fields["admin"].boolean(False),
        bot=fields["bot"].boolean(False),
        emails=[item.text() for item in fields["emails"].items()] or [f"{username}@example.com"],
        created_at=fields["created_at"].optional_time() or SEED,
    )
    state.users[user.id] = state.users_by_name[username.lower()] = user
    for item in fields["tokens"].items():
        _load_token(state, user, item)
    return user, fields


def _load_token(state: State, user: User, reading: Reading) -> None:
    if isinstance(reading.value, str):
        reading = Reading({"token": reading.value}, reading.place)
    fields = reading.fields("token", "id", "name", "scopes", "created_at", "expires_at", "revoked", "kind")
    token = Token(
        value=fields["token"].text(),
        id=fields["id"].optional_integer() or len(state.tokens) + 1,
        name=fields["name"].text(f"{user.username} {len(user.tokens) + 1}"),
        scopes=[item.text() for item in fields["scopes"].items()] or ["api"],
        created_at=fields["created_at"].optional_time() or SEED,
        expires_at=fields["expires_at"].optional_date(),
        revoked=fields["revoked"].boolean(False),
        kind=fields["kind"].choice(TOKEN_KINDS, "personal"),
    )
    if token.value in state.tokens:
        raise fields["token"].fault("the same token is given twice")
    user.tokens.append(token)
    state.tokens[token.value] = (user, token)


def _load_group(state: State, fields: Fields) -> tuple[Group, Fields]:
    path = fields["path"].text()
    parent_path, _, last = path.rpartition("/")
    parent = state.groups_by_path.get(parent_path.lower())
    if parent_path and parent is None:
        raise fields["path"].fault(f"its parent {parent_path!r} must come before it")
    group = Group(
        id=fields["id"].optional_integer() or state.number("groups").give(),
        path=path,
        name=fields["name"].text(last),
        visibility=fields["visibility"].choice(VISIBILITIES, "private"),
        archived=fields["archived"].boolean(False),
        description=fields["description"].optional_text() or "",
        created_at=fields["created_at"].optional_time() or SEED,
        parent=parent,
        members=_load_members(state, fields["members"]),
    )
    _claim_path(state, path, fields["path"])
    state.groups[group.id] = state.groups_by_path[path.lower()] = group
    return group, fields


def _load_project(state: State, fields: Fields) -> tuple[Project, Fields]:
    path = fields["path"].text()
    namespace, _, last = path.rpartition("/")
    if not namespace:
        raise fields["path"].fault("must be a full path, namespace included")
    created = fields["created_at"].optional_time() or SEED
    user = state.users_by_name.get(namespace.lower())
    project = Project(
        id=fields["id"].optional_integer() or state.number("projects").give(),
        path=path,
        name=fields["name"].text(last),
        visibility=fields["visibility"].choice(VISIBILITIES, "private"),
        archived=fields["archived"].boolean(False),
        description=fields["description"].optional_text(),
        created_at=created,
        last_activity_at=fields["last_activity_at"].optional_time() or created,
        default_branch=fields["default_branch"].text("main"),
        topics=[item.text() for item in fields["topics"].items()],
        renamed_from=[item.text() for item in fields["renamed_from"].items()],
        switches={name: fields[name].boolean(True) for name in SWITCHES},
        group=None if user else state.implied_group(namespace),
        namespace_user=user,
        members=_load_members(state, fields["members"]),
    )
    _claim_path(state, path, fields["path"])
    state.projects[project.id] = state.projects_by_path[path.lower()] = project
    state.moved.update((old.lower(), project) for old in project.renamed_from)
    return project, fields


def _claim_path(state: State, path: str, reading: Reading) -> None:
    for taken in (state.users_by_name, state.groups_by_path, state.projects_by_path):
        if path.lower() in taken:
            raise reading.fault(f"the path {path!r} is taken")


def _load_members(state: State, reading: Reading) -> dict[str, str]:
    members = {}
    for item in reading.items():
        fields = item.fields("user", "role")
        user = state.user_named(fields["user"])
        members[user.username] = fields["role"].choice(ROLES, "")
    return members


def _load_sections(state: State, owners: list[tuple[Owner, Fields]]) -> None:
    for owner, fields in owners:
        for section in _sections_of(owner):
            owner.sections[section.name] = section.load(fields[section.name], state, owner)
    implied: list[Owner] = [*state.groups.values(), *state.projects.values()]
    for owner in implied:
        if not owner.sections:
            for section in _sections_of(owner):
                owner.sections[section.name] = section.load(Reading(None, section.name), state, owner)


def _sections_of(owner: Owner) -> list[Section]:
    return [section for section in sections() if section.on == type(owner).__name__.lower()]


def _dump_sections(on: str, owner: Owner) -> dict[str, Any]:
    kept = {section.name: section.dump(owner.sections[section.name]) for section in sections() if section.on == on}
    return {name: value for name, value in kept.items() if value is not None}


def _dump_user(user: User) -> dict[str, Any]:
    return {
        "id": user.id,
        "username": user.username,
        "name": user.name,
        "admin": user.admin,
        "bot": user.bot,
        "emails": list(user.emails),
        "created_at": user.created_at,
        "tokens": [
            {
                "token": token.value,
                "id": token.id,
                "name": token.name,
                "scopes": list(token.scopes),
                "created_at": token.created_at,
                "expires_at": token.expires_at,
                "revoked": token.revoked,
                "kind": token.kind,
            }
            for token in user.tokens
        ],
        **_dump_sections("user", user),
    }


def _dump_group(group: Group) -> dict[str, Any]:
    return {**_dump_place(group), **_dump_sections("group", group)}


def _dump_project(project: Project) -> dict[str, Any]:
    return {
        **_dump_place(project),
        "last_activity_at": project.last_activity_at,
        "default_branch": project.default_branch,
        "topics": list(project.topics),
        "renamed_from": list(project.renamed_from),
        **project.switches,
        **_dump_sections("project", project),
    }


def _dump_place(place: Group | Project) -> dict[str, Any]:
    return {
        "id": place.id,
        "path": place.path,
        "name": place.name,
        "visibility": place.visibility,
        "archived": place.archived,
        "description": place.description,
        "created_at": place.created_at,
        "members": [{"user": name, "role": role} for name, role in place.members.items()],
    }
