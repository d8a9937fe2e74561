"""Which groups and projects are there: each asked for once, from the top down, and nothing below what is missing."""

from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from urllib.parse import quote

from reconciler.engine.crew import ask_each
from reconciler.engine.read import answer_or_error
from reconciler.engine.records import fetch_record
from reconciler.errors import NotFound, ServiceError
from reconciler.model.creation import VISIBILITIES, Visibility
from reconciler.model.protocols import Json, Reader
from reconciler.model.targets import Identity, Level, Target


@dataclass(frozen=True, slots=True)
class There:
    """A group or a project that exists, or the namespace of a user.

    Attributes:
        id: numeric ID.
        visibility: None if unknown.
        personal: whether it is the namespace of a user.
        archived: whether it is a project that was archived, as far as it was asked for itself.
        moved_to: its full path, if it has moved from where it was asked for; else empty.
    """

    id: int
    visibility: Visibility | None = None
    personal: bool = False
    archived: bool = False
    moved_to: str = ""


Answer = There | ServiceError | None
"""The group or project; None if it is missing; the error if the service did not say."""

Answers = Mapping[Identity, Answer]
"""By `Target.identity`."""


def obstacle(target: Target, answers: Answers) -> tuple[str, ServiceError | None] | None:
    """Return the nearest group above a target that is not there, and the error if that is not known; None if all are.

    Groups that were not asked for count as there.
    """
    asked = (group for group in reversed(target.groups_above) if (Level.GROUP, group) in answers)
    nearest = next(asked, None)
    answer = None if nearest is None else answers[Level.GROUP, nearest]
    return None if nearest is None or isinstance(answer, There) else (nearest, answer)


def find_existing(
    targets: Iterable[Target],
    reader: Reader,
    known: Answers,
    *,
    created: Container[Identity],
) -> dict[Identity, Answer]:
    """Return the answers so far, and whether these targets are there.

    It takes one request for each target, unless a group above it is missing; and one for the group right above missing
    targets, unless that is among the targets: its ID and its visibility are needed. As long as such a group may be
    missing itself, only one of the targets in it is asked for.

    Args:
        targets: by path.
        reader: the service.
        known: the answers so far.
        created: those of the targets that are created if they are missing, for which their groups are asked for.

    Raises:
        ServiceError: one that `ENDS_A_RUN`.
    """
    existing = dict(known)
    waiting = {target.identity: target for target in targets if target.identity not in existing}
    for_projects = {target.parent.casefold() for target in waiting.values() if target.level is Level.PROJECT}
    tried: set[str] = set()
    while waiting:
        for identity, target in [*waiting.items()]:
            above = obstacle(target, existing)
            if above is not None:
                _, existing[identity] = above
                del waiting[identity]
        asked = [*_next(waiting, existing, tried)]
        answers = ask_each(_ask, asked, reader)
        for target, answer in answers.items():
            existing[target.identity] = answer
            del waiting[target.identity]
        inside = [target for target in asked if "/" in str(target.ref)]
        tried |= {target.groups_above[-1] for target in inside}
        missing = [target for target in inside if answers[target] is None and target.identity in created]
        parents = [Target(Level.GROUP, target.parent) for target in missing]
        needed = {group.identity: group for group in parents if group.identity not in existing}
        namespaces = ask_each(partial(_ask_namespace, for_projects=for_projects), needed.values(), reader)
        existing |= {group.identity: answer for group, answer in namespaces.items()}
    return existing


def _next(waiting: Mapping[Identity, Target], answers: Answers, tried: Collection[str]) -> Iterator[Target]:
    """Yield the targets that can be asked for now: nothing above them waits, and their parents are not in doubt."""
    doubtful: set[str] = set()
    for target in waiting.values():
        above = target.groups_above
        if any((Level.GROUP, group) in waiting for group in above):
            continue
        parent = above[-1] if above else ""
        if parent in doubtful:
            continue
        if parent and (Level.GROUP, parent) not in answers and parent not in tried:
            doubtful.add(parent)
        yield target


def _ask(target: Target, reader: Reader) -> Answer:
    answer = answer_or_error(lambda: _there(target, reader))
    return None if isinstance(answer, NotFound) else answer


def _there(target: Target, reader: Reader) -> There:
    record = fetch_record(target, reader)
    stays = record.path.casefold() == str(target.ref).casefold()
    is_archived = target.level is Level.PROJECT and record.fields.get("archived") is True
    return There(record.id, _visibility(record.fields), archived=is_archived, moved_to="" if stays else record.path)


def _visibility(record: Mapping[str, Json]) -> Visibility | None:
    shown = record.get("visibility")
    return next((visibility for visibility in VISIBILITIES if visibility == shown), None)


def _ask_namespace(group: Target, reader: Reader, for_projects: Collection[str]) -> Answer:
    """Ask for a group; a project may be in the namespace of a user instead."""
    answer = _ask(group, reader)
    path = str(group.ref)
    if answer is not None or "/" in path or path.casefold() not in for_projects:
        return answer
    namespace = answer_or_error(lambda: reader.get(f"namespaces/{quote(path, safe='')}"))
    match namespace:
        case {"id": int(number), "kind": "user"}:
            return There(number, "private", personal=True)
    return namespace if isinstance(namespace, ServiceError) and not isinstance(namespace, NotFound) else None
