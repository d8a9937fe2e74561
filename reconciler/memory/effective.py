"""The digest of a target's effective spec, and the day on which time alone changes the spec. Pure.

`digest_of` lets a run skip targets that are applied already; `again_on` ends that on the day of a rotation, or of the
end of an exception.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, date, datetime, timedelta
from typing import Any

from reconciler.model.endpoints import Collection
from reconciler.model.exceptions import DeclaredException
from reconciler.model.resource import LiveRecord, Resource, Rotated, Wanted
from reconciler.model.state import DesiredTarget, Section
from reconciler.model.targets import Key

SCHEME = 1
"""The version of the digest: another number makes all digests different."""


def digest_of(target: DesiredTarget) -> str:
    """Return a digest of the effective spec of a target, such as `1:9f86d0...`.

    It covers the declared sections, `prune`, `unmanaged`, exceptions without their reasons, and creation; not the order
    in which documents and layers declare them. The placeholder `{default_branch}` counts as written: the name of the
    branch comes from the service.

    Args:
        target: with all its other placeholders filled in.
    """
    exceptions = sorted(
        [
            exception.section,
            exception.until.isoformat(),
            str(item := exception.item if exception.written_item is None else exception.written_item),
            type(item).__name__,
            *sorted(exception.fields),
        ]
        for exception in target.exceptions
    )
    # as written: renaming a default branch is no change of the manifests
    sections = [section.written or section for section in target.sections]
    content = {
        "sections": {section.kind: _section(section) for section in sections},
        "prune": sorted(section.kind for section in sections if section.prune),
        "unmanaged": sorted(target.unmanaged),
        "exceptions": exceptions,
        "creation": _creation(target),
        **_let_go(target),
    }
    minimums = {section.kind: section.minimums for section in sections if section.at_least}
    # only if there are any, so that old digests stay valid
    content |= {"at_least": minimums} if minimums else {}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), default=str)
    return f"{SCHEME}:{hashlib.sha256(text.encode()).hexdigest()}"


def _let_go(target: DesiredTarget) -> dict[str, Any]:
    """Return the single objects that a document leaves alone.

    An empty mapping without any, so that old digests stay valid.
    """
    let_go = [
        [section.kind, part, str(name), type(name).__name__]
        for section in target.sections
        for part, names in section.released.items()
        for name in names
    ]
    return {"let_go": sorted(let_go)} if let_go else {}


def again_on(exceptions: Sequence[DeclaredException], due: Iterable[datetime], today: date) -> date | None:
    """Return the first day (UTC) on which time alone changes the spec of a target; None if there is no such day.

    Args:
        exceptions: of the target.
        due: the times of its rotations and of the deletions of predecessors; see `due_moments`.
        today: the day of the run, UTC.
    """
    days = [exception.until + timedelta(days=1) for exception in exceptions if not exception.is_over(today)]
    days += [moment.astimezone(UTC).date() for moment in due]
    return min(days, default=None)


def due_moments(
    section: Section, part: Collection, live: Sequence[LiveRecord], grace: timedelta, now: datetime
) -> Iterator[datetime]:
    """Yield the times of each token's next rotation, and of the deletion of its predecessors.

    Args:
        section: the declared section.
        part: its collection.
        live: its objects before the run's changes.
        grace: the age of a successor at which its predecessors are deleted.
        now: the moment of the run, at which tokens that are missing are created.
    """
    for births, age in _rotations(section, part, live, now):
        yield max(births) + age
        if len(births) > 1:
            yield max(births) + grace


def ends_of_grace(
    section: Section, part: Collection, live: Sequence[LiveRecord], grace: timedelta, now: datetime
) -> Iterator[datetime]:
    """Yield, for each token that is kept beside its successor, the end of its grace period; see `due_moments`."""
    for births, _ in _rotations(section, part, live, now):
        if max(now - max(births), timedelta()) < grace:  # as the planner counts: an age is never negative
            yield from [max(births) + grace] * (len(births) - 1)


def _rotations(
    section: Section, part: Collection, live: Sequence[LiveRecord], now: datetime
) -> Iterator[tuple[list[datetime], timedelta]]:
    """Yield, for each name, the creation times of its tokens, and the age at which they are rotated."""
    wanted = section.wanted[part.name]
    ours: dict[Key, list[datetime | None]] = {}
    for record in live:
        if record.ours:
            for name in {part.identity(name) for name in record.names}:
                ours.setdefault(name, []).append(record.created_at)
    for name, resource in () if isinstance(wanted, Resource) else wanted.items():
        if isinstance(resource, Rotated) and resource.rotate_after:
            accepted = {part.identity(spelling) for spelling in (name, *getattr(resource, "renamed_from", ()))}
            known = [born for spelling in accepted for born in ours.get(spelling, ())] or [now]
            births = [born for born in known if born]
            if births:
                yield births, resource.rotate_after


def _section(section: Section) -> dict[str, Any]:
    return {name: _part(wanted) for name, wanted in section.wanted.items()}


def _part(declaration: Wanted) -> Any:
    """Return a part as JSON; the type of a name counts, since `7` is a path and 7 is an ID."""
    if isinstance(declaration, Resource):
        return _fields(declaration)
    items = [
        [str(name), type(name).__name__, None if item is None else _fields(item)] for name, item in declaration.items()
    ]
    return sorted(items, key=lambda item: (item[0], item[1]))


def _fields(resource: Resource) -> dict[str, Any]:
    return resource.model_dump(mode="json", include=set(resource.model_fields_set))


def _creation(target: DesiredTarget) -> Any:
    """Return a creation as JSON; of an archive, only the content counts, not the path."""
    creation = target.creation
    if creation is None:
        return None
    # the same archive at another path creates the same group
    archive = creation.archive.digest if creation.archive else None
    return [creation.name, creation.visibility, archive, creation.source and asdict(creation.source)]
