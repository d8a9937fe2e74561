"""A state of the sandbox for rehearsals: the live state, the groups above it, and no secret. See `sandbox_state`.

The sandbox shares no code with the client: kinds write their part of a state, and this module writes the targets.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from json import dumps
from typing import Any

from reconciler.edit.read import LiveSnapshot
from reconciler.edit.sections import entries_of
from reconciler.edit.targets import ResolvedTarget
from reconciler.engine.read import UNEXPECTED
from reconciler.errors import BadAnswer
from reconciler.model.endpoints import Collection, Named
from reconciler.model.kind import Kind, Kinds, ReadSection
from reconciler.model.protocols import Json, Reader
from reconciler.model.resource import LiveRecord, Objects
from reconciler.model.state import Unreadable
from reconciler.model.targets import Level, Target

REHEARSAL_TOKEN = "rehearsal"  # noqa: S105 - made up, for the sandbox only
INSTANCE = "instance"
EMAILS = "emails"
DIALECT = "dialect"
MEMBERS = "members"

Paths = dict[str, int | None]
"""Full paths, each with the numeric ID, or None if it is unknown."""


def sandbox_state(snapshot: LiveSnapshot, reader: Reader, kinds: Kinds) -> str:
    """Return a state, as JSON, on which a plan leads to the same changes as on the service.

    The user behind the token owns everything in it. Unreadable sections have the sandbox's defaults.

    Raises:
        ServiceError: the service does not return the user.
    """
    username, emails = _user(reader.get("user"))
    own: dict[str, Any] = {}
    instance: dict[str, Any] = {DIALECT: _dialect(snapshot, kinds)}
    contents: dict[tuple[Level, str], dict[str, Any]] = {}
    for resolved in snapshot.targets:
        content: dict[str, Any] = {}
        for kind in kinds.values():
            content |= _section(kind, resolved, snapshot, username)
        instance |= content.pop(INSTANCE, {})
        emails += content.pop(EMAILS, [])
        if resolved.target.level is Level.INSTANCE:
            instance |= content
        elif resolved.target.level is Level.USER:
            own = content
        else:
            contents[resolved.target.level, _path(resolved).casefold()] = content
    subjects = [*_subjects(snapshot, kinds)]
    people = {subject.name.casefold() for subject in subjects if subject.who == "user"} - {username.casefold()}
    others = [{"username": name} for name in sorted(people)]
    for resolved in snapshot.targets:
        if resolved.target.level is Level.PROJECT:
            here = [subject for subject in subjects if subject.target == resolved.target]
            contents[Level.PROJECT, _path(resolved).casefold()] |= _memberships(here, username)
    user = {"username": username, "tokens": [REHEARSAL_TOKEN], EMAILS: list(dict.fromkeys(emails)), **own}
    places = {
        level: [
            {"path": path, **({"id": number} if number else {}), MEMBERS: [{"user": username, "role": "owner"}]}
            | contents.get((level, path.casefold()), {})
            for path, number in paths.items()
        ]
        for level, paths in _places(snapshot, kinds, username, subjects).items()
    }
    state = {INSTANCE: instance, "users": [user, *others]} | {f"{level}s": owners for level, owners in places.items()}
    return dumps(state, indent=1, ensure_ascii=False) + "\n"


def _user(answer: Json) -> tuple[str, list[str]]:
    match answer:
        case {"username": str(name), "email": str(address)}:
            return name, [address]
    raise BadAnswer("GET user", UNEXPECTED)


def _section(kind: Kind, resolved: ResolvedTarget, snapshot: LiveSnapshot, username: str) -> Mapping[str, Json]:
    """Return the live part of a section, as the kind writes it into a state."""
    parts: dict[str, tuple[LiveRecord, ...]] = {}
    for part in kind.parts:
        match part, snapshot.live.parts.get((resolved.target, kind.name, part.name), Unreadable("")):
            case Collection(), Objects(own=live):
                entries = entries_of(part, live, resolved)
                parts[part.name] = tuple(record for record in entries if not part.name_error(record.names[0]))
            case _, LiveRecord() as record:
                parts[part.name] = (record,)
    return kind.sandbox_section(ReadSection(resolved.target.level, username, parts)) if parts else {}


def _dialect(snapshot: LiveSnapshot, kinds: Kinds) -> str:
    """Return the dialect of the service: in `deployed`, the allowlist of a project always has the project itself."""
    lists = [
        any(
            part.identity(name) in (resolved.target.identity[1], resolved.id)
            for record in live
            for name in record.names
        )
        for resolved, level, part, live in _lists(snapshot, kinds)
        if level is resolved.target.level
    ]
    return "deployed" if all(lists) else "spec"


def _lists(
    snapshot: LiveSnapshot, kinds: Kinds
) -> Iterator[tuple[ResolvedTarget, Level, Collection, tuple[LiveRecord, ...]]]:
    """Yield the lists of other targets: the target with the list, the level of its entries, the part, its objects."""
    for resolved in snapshot.targets:
        for kind in kinds.values():
            for part in kind.parts:
                live = snapshot.live.parts.get((resolved.target, kind.name, part.name))
                if isinstance(part, Collection) and part.names.level and isinstance(live, Objects):
                    yield resolved, part.names.level, part, live.own


@dataclass(frozen=True, slots=True)
class _Subject:
    """A user, group or deploy key that a rule of a target names.

    Attributes:
        target: the target.
        who: `user`, `group` or `deploy_key`.
        name: username, full path or title.
        number: the ID.
        is_entry: whether it is an entry of a list; an approver is not.
    """

    target: Target
    who: str
    name: str
    number: int | None
    is_entry: bool


def _subjects(snapshot: LiveSnapshot, kinds: Kinds) -> Iterator[_Subject]:
    """Yield all subjects that rules name, if their names are known."""
    for (target, section, name), live in snapshot.live.parts.items():
        part = kinds[section].part(name)
        if not (isinstance(part, Collection) and isinstance(live, Objects)):
            continue
        for record in live.own:
            for field, rows in record.entries.items():
                named = part.relations.named.get(field)
                for row in rows:
                    if named is None:
                        who, subject = row.identity
                        number = row.number
                    else:
                        who, subject, number = _sort_of(named), row.shown, row.id
                    if who in ("user", "group", "deploy_key") and isinstance(subject, str):
                        yield _Subject(target, who, subject, number, named is None)


def _sort_of(named: Named) -> str:
    """Return the sort of names in a field: members, groups, or objects of another section."""
    if named.section:
        return named.section
    return "user" if named.within else "group"


def _memberships(subjects: Sequence[_Subject], username: str) -> dict[str, Any]:
    """Return the members, invitations and keys that a project's rules name: without them, the service drops entries."""
    people = sorted({subject.name.casefold() for subject in subjects if subject.who == "user"} - {username.casefold()})
    groups = sorted(
        {subject.number for subject in subjects if subject.is_entry and subject.who == "group" and subject.number}
    )
    keys = {subject.number: subject.name for subject in subjects if subject.who == "deploy_key"}
    memberships: dict[str, Any] = {
        MEMBERS: [{"user": username, "role": "owner"}, *({"user": name, "role": "developer"} for name in people)],
        "invited_groups": [{"group_id": number, "role": "developer"} for number in groups],
        "enabled_deploy_keys": [{"id": number, "title": title, "can_push": True} for number, title in keys.items()],
    }
    return {name: value for name, value in memberships.items() if value}


def _places(snapshot: LiveSnapshot, kinds: Kinds, username: str, subjects: Iterable[_Subject]) -> dict[Level, Paths]:
    """Return the exported groups and projects, those in lists and rules, and the groups above; parents first."""
    paths: dict[Level, Paths] = {Level.GROUP: {}, Level.PROJECT: {}}
    for resolved in snapshot.targets:
        if resolved.target.level in paths:
            paths[resolved.target.level][_path(resolved)] = resolved.id
    for _, level, _, live in _lists(snapshot, kinds):
        for record in live:
            paths[level].setdefault(_path(ResolvedTarget(Target(level, record.names[0]), record.id)), record.id)
    above: Paths = {}
    for path in (*paths[Level.GROUP], *(path.rpartition("/")[0] for path in paths[Level.PROJECT])):
        steps = path.split("/")
        above |= {"/".join(steps[:depth]): None for depth in range(1, len(steps) + 1)}
    # the namespace of a user is no group
    above.pop(username, None)
    groups = above | paths[Level.GROUP]
    spelt = {path.casefold(): path for path in groups}
    for subject in subjects:
        if subject.who == "group":
            steps = subject.name.split("/")
            for depth in range(1, len(steps) + 1):
                path = "/".join(steps[:depth])
                path = spelt.setdefault(path.casefold(), path)
                number = subject.number if depth == len(steps) else None
                groups[path] = groups.get(path) or number
    return {Level.GROUP: {path: groups[path] for path in sorted(groups)}, Level.PROJECT: paths[Level.PROJECT]}


def _path(resolved: ResolvedTarget) -> str:
    """Return the path of a target; an invented one if only its ID is known."""
    if resolved.path is not None:
        return resolved.path
    return f"unlisted/project-{resolved.id}" if resolved.target.level is Level.PROJECT else f"unlisted-{resolved.id}"
