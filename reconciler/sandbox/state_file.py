"""States from and to files, for `--state`, `GET /-/state` and `PUT /-/state`. Begin with `read_state` and `dump`.

A file may leave out almost everything. Groups and projects to which it only refers are made up, private and empty: the
parent groups of a project, and the targets of an allowlist. So are the users in its protection and approval rules.
"""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pydantic import Field, ValidationError, create_model

from .answers import StateError
from .records import CountedItem, IdSequence, Record, StoredItem, first_error
from .routes import sections
from .state import Dialect, Group, Instance, Level, Owner, Project, SandboxState, User

M = TypeVar("M", bound=Record)
I = TypeVar("I", bound=StoredItem)  # noqa: E741 - an item


class _Models(NamedTuple):
    """The models of a state file, with the sections of every kind as fields."""

    file: type[Record]
    instance: type[Instance]
    user: type[User]
    group: type[Group]
    project: type[Project]


def read_state(source: Mapping[str, Any] | Path, dialect: Dialect | None = None) -> SandboxState:
    """Return a state from a mapping, or from a JSON or YAML file; a dialect given here overrides the state's own.

    Raises:
        StateError: with the file, or the place in the state, and the error there.
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


def load(value: Any, dialect: Dialect | None = None) -> SandboxState:
    """Return a state from the content of a file, in that dialect if one is given. Raises `StateError`."""
    models = _models()
    state = SandboxState(models.user, models.group, models.project)
    try:
        file: Any = models.file.model_validate({} if value is None else value, context=state)
    except ValidationError as error:
        raise StateError(first_error(models.file, error)) from None
    state.instance = file.instance
    if dialect:
        state.instance.dialect = dialect
    state.users.update(_numbered(state, file.users))
    names = sorted(state.referred_users.values())
    made_up = [models.user.model_validate({"username": name}, context=state) for name in names]
    state.users.update(_numbered(state, made_up))
    state.groups.update(_numbered(state, file.groups))
    state.projects.update(_numbered(state, file.projects))
    for project in file.projects:
        state.moved.update((old.lower(), project) for old in project.renamed_from)
        if project.parent_path.lower() not in state.users_by_name:
            _make_up_group(state, project.parent_path)
    for number in sorted(state.referred_projects - state.projects.keys()):
        _make_up_group(state, "unlisted")
        path = f"unlisted/project-{number}"
        state.projects[number] = models.project.model_validate({"id": number, "path": path}, context=state)
    for number in sorted(state.referred_groups - state.groups.keys()):
        state.groups[number] = models.group.model_validate({"id": number, "path": f"unlisted-{number}"}, context=state)
    owners: list[Owner] = [state.instance, *state.users.values(), *state.groups.values(), *state.projects.values()]
    for owner in owners:
        _number_sections(state, owner)
    state.settle()
    return state


def dump(state: SandboxState) -> dict[str, Any]:
    """Return the whole state as `load` reads it, with IDs and token values."""
    return {
        "instance": state.instance.model_dump(),
        "users": [user.model_dump() for user in state.users.values()],
        "groups": [group.model_dump() for group in state.groups.values()],
        "projects": [project.model_dump() for project in state.projects.values()],
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


@cache
def _models() -> _Models:
    instance, user = _with_sections(Instance, "instance"), _with_sections(User, "user")
    group, project = _with_sections(Group, "group"), _with_sections(Project, "project")
    fields: Any = {
        "instance": (instance, Field(default_factory=instance)),
        "users": (list[user], []),  # type: ignore[valid-type]  # known at run time
        "groups": (list[group], []),  # type: ignore[valid-type]  # known at run time
        "projects": (list[project], []),  # type: ignore[valid-type]  # known at run time
    }
    return _Models(create_model("StateFile", __base__=Record, **fields), instance, user, group, project)


def _with_sections(model: type[M], level: Level) -> type[M]:
    fields: Any = {section.name: (section.type, section.default) for section in sections() if level in section.on}
    return create_model(model.__name__, __base__=model, __module__=model.__module__, **fields)


def _numbered(state: SandboxState, items: Sequence[I]) -> dict[int, I]:
    """Return the items by ID, after assigning the missing IDs."""
    for item in items:
        item.id = item.id or state.numbers(type(item)).give()
        item.complete()
        for parts in item.parts():
            _numbered(state, parts)
    return {item.id: item for item in items}


def _number_sections(state: SandboxState, owner: Owner) -> None:
    """Assign the missing IDs of the items in its sections, and their numbers within the owner."""
    fields = vars(owner)
    for data in [fields[section.name] for section in sections() if fields.get(section.name)]:
        items = [item for item in data if isinstance(item, StoredItem)] if isinstance(data, list) else []
        _numbered(state, items)
        counted = [item for item in items if isinstance(item, CountedItem)]
        if counted:
            _count(state.numbers(type(counted[0]), getattr(owner, "path", "")), counted)


def _count(numbers: IdSequence, items: Sequence[CountedItem]) -> None:
    for item in items:
        if item.iid:
            numbers.take(item.iid)
    numbers.settle()
    for item in items:
        item.iid = item.iid or numbers.give()


def _make_up_group(state: SandboxState, path: str) -> None:
    """Make up the group of that path, and its parents, unless the file describes it."""
    if path.lower() in state.groups_by_path:
        return
    parent = path.rpartition("/")[0]
    if parent:
        _make_up_group(state, parent)
    group = _models().group.model_validate({"path": path}, context=state)
    state.groups.update(_numbered(state, [group]))
