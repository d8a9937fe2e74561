"""Audit events: who changed what on the service, as far as it notes that (deployed behaviour, audit events)."""

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
        author: the name of the user behind the token, as people see it; of a project's token, that of its bot.
        time: with a time zone.
        target_id: the ID of what was changed, or None.
        details: all that the service tells.
        entity: the type and the ID of the group, project or user in which it was changed, such as `("Project", 7)`.
        path: its full path at that time; empty if unknown.
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
        field: the field that it changed; None for a whole object.
        value: what the field is since then; in a list, None stands for an entry that the event names by what people
            call it, and no response does.
        names: what the object is called, if any.
        removed: whether the object is gone since then.
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
    """Read an event; None if it is not as expected, for nothing is guessed."""
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
