"""Audit events: who changed what on the service, if the service records it (deployed behaviour, audit events).

`engine.audit` reads events with `read_event`; each kind finds its own changes in them (`Kind.trace`).
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from reconciler.model.protocols import Json
from reconciler.model.targets import Key


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """One event.

    Attributes:
        name: such as `secure_ci_job_token_group_added`.
        author: the display name of the user behind the token; for a project's token, that of its bot.
        time: with a time zone.
        target_id: the ID of the changed object, or None.
        details: the further fields of the event.
        entity: the type and the ID of the group, project or user in which it was changed, such as `("Project", 7)`.
        path: the full path of the entity at that time; empty if unknown.
    """

    name: str
    author: str
    time: datetime
    target_id: int | None
    details: Mapping[str, Json]
    entity: tuple[str, int] = ("", 0)
    path: str = ""


@dataclass(frozen=True, slots=True)
class Traced:
    """One change of an event.

    Attributes:
        part: of the section.
        field: the changed field; None for a whole object.
        value: the value of the field after the change; in a list, None is an entry that the event shows by its display
            name alone, which no response has.
        names: the names of the object, if it has any.
        removed: whether the object was removed.
    """

    part: str
    field: str | None = None
    value: Json = None
    names: tuple[Key, ...] = ()
    removed: bool = False

    def is_still_set(self, value: Json) -> bool:
        """Return whether a field still has the value that the event set."""
        if isinstance(self.value, list) and isinstance(value, list) and len(self.value) == len(value):
            return all(entry is None or entry in value for entry in self.value)
        return bool(self.value == value)


Trace = Callable[[AuditEvent], Iterable[Traced]]
"""Takes an event, and yields what it did to the section; nothing if it is about something else."""


def read_event(answer: Json) -> AuditEvent | None:
    """Read an event; None if it does not have the expected form: nothing is guessed."""
    match answer:
        case {
            "event_name": str(name),
            "created_at": str(time),
            "details": {"author_name": str(author)},
        }:
            try:
                moment = datetime.fromisoformat(time)
            except ValueError:
                return None
            number = answer["details"].get("target_id")
            if moment.tzinfo is None or not author:
                return None
            details, entity = answer["details"], (str(answer.get("entity_type", "")), answer.get("entity_id", 0))
            own = number if isinstance(number, int) else None
            return AuditEvent(name, author, moment, own, details, entity, str(details.get("entity_path", "")))
    return None
