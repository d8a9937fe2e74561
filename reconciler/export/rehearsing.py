"""A state of the sandbox, to rehearse on: what was read, the groups around it, and no secret.

The sandbox shares no code with the rest: what its states look like is said by the kinds, and for the targets here.
"""

from collections.abc import Iterator, Mapping
from json import dumps
from typing import Any

from reconciler.errors import BadAnswer
from reconciler.export.sections import entries_of
from reconciler.export.sight import LiveSnapshot
from reconciler.export.targets import Known
from reconciler.live.read import UNEXPECTED
from reconciler.model.endpoints import Collection
from reconciler.model.kind import Kind, Kinds, Rehearsed
from reconciler.model.protocols import Json, Reader
from reconciler.model.resource import Found
from reconciler.model.state import Unreadable
from reconciler.model.targets import Level, Target
from reconciler.planning.parts import identity

TOKEN = "rehearsal"  # noqa: S105 - made up, for the sandbox only
INSTANCE = "instance"
EMAILS = "emails"
DIALECT = "dialect"

Paths = dict[str, int | None]
"""Full paths, with numeric IDs where those are known."""


def rehearsal(sight: LiveSnapshot, reader: Reader, kinds: Kinds) -> str:
    """Return a state, as JSON, on which a plan comes to what it comes to on the service.

    The user behind the token owns all of it, and only that user's notifications are in it. What could not be read has
    the sandbox's defaults.

    Raises:
        ServiceError: the service does not say who the user is.
    """
    username, emails = _user(reader.get("user"))
    own: dict[str, Any] = {}
    instance: dict[str, Any] = {DIALECT: _dialect(sight, kinds)}
    contents: dict[tuple[Level, str], dict[str, Any]] = {}
    for known in sight.targets:
        content: dict[str, Any] = {}
        for kind in kinds.values():
            content |= _section(kind, known, sight, username)
        instance |= content.pop(INSTANCE, {})
        emails += content.pop(EMAILS, [])
        if known.target.level is Level.USER:
            own = content
        else:
            contents[known.target.level, _path(known).casefold()] = content
    user = {"username": username, "tokens": [TOKEN], EMAILS: list(dict.fromkeys(emails)), **own}
    places = {
        level: [
            {"path": path, **({"id": number} if number else {}), "members": [{"user": username, "role": "owner"}]}
            | contents.get((level, path.casefold()), {})
            for path, number in paths.items()
        ]
        for level, paths in _places(sight, kinds, username).items()
    }
    state = {INSTANCE: instance, "users": [user]} | {f"{level}s": found for level, found in places.items()}
    return dumps(state, indent=1, ensure_ascii=False) + "\n"


def _user(answer: Json) -> tuple[str, list[str]]:
    match answer:
        case {"username": str(name), "email": str(address)}:
            return name, [address]
    raise BadAnswer("GET user", UNEXPECTED)


def _section(kind: Kind, known: Known, sight: LiveSnapshot, username: str) -> Mapping[str, Json]:
    """Return what was read of a section, as the kind writes it into a state."""
    parts: dict[str, tuple[Found, ...]] = {}
    for part in kind.parts:
        match part, sight.live.parts.get((known.target, kind.name, part.name), Unreadable("")):
            case Collection(), tuple() as live:
                entries = entries_of(part, live, known)
                parts[part.name] = tuple(found for found in entries if not part.name_error(found.names[0]))
            case _, Found() as found:
                parts[part.name] = (found,)
    return kind.rehearsed(Rehearsed(known.target.level, username, parts)) if parts else {}


def _dialect(sight: LiveSnapshot, kinds: Kinds) -> str:
    """Tell the two ways of the service apart: in production, a list of projects always holds the project itself."""
    lists = [
        any(identity(part, name) in (known.target.identity[1], known.number) for found in live for name in found.names)
        for known, level, part, live in _lists(sight, kinds)
        if level is known.target.level
    ]
    return "deployed" if all(lists) else "spec"


def _lists(sight: LiveSnapshot, kinds: Kinds) -> Iterator[tuple[Known, Level, Collection, tuple[Found, ...]]]:
    """Yield the lists of other targets: whose, of which level, and what was read of them."""
    for known in sight.targets:
        for kind in kinds.values():
            for part in kind.parts:
                live = sight.live.parts.get((known.target, kind.name, part.name))
                if isinstance(part, Collection) and part.key_level and isinstance(live, tuple):
                    yield known, part.key_level, part, live


def _places(sight: LiveSnapshot, kinds: Kinds, username: str) -> dict[Level, Paths]:
    """Return the groups and projects that were exported, or are on lists, or stand around those; parents first."""
    found: dict[Level, Paths] = {Level.GROUP: {}, Level.PROJECT: {}}
    for known in sight.targets:
        if known.target.level in found:
            found[known.target.level][_path(known)] = known.number
    for _, level, _, live in _lists(sight, kinds):
        for each in live:
            found[level].setdefault(_path(Known(Target(level, each.names[0]), each.id)), each.id)
    above: Paths = {}
    for path in (*found[Level.GROUP], *(path.rpartition("/")[0] for path in found[Level.PROJECT])):
        steps = path.split("/")
        above |= {"/".join(steps[:depth]): None for depth in range(1, len(steps) + 1)}
    above.pop(username, None)
    groups = above | found[Level.GROUP]
    return {Level.GROUP: {path: groups[path] for path in sorted(groups)}, Level.PROJECT: found[Level.PROJECT]}


def _path(known: Known) -> str:
    """Return the path of a target, made up where only its number is known."""
    if isinstance(known.target.ref, str):
        return known.target.ref
    return f"unlisted/project-{known.number}" if known.target.level is Level.PROJECT else f"unlisted-{known.number}"
