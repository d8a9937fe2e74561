"""Notification settings of the user behind the token: overall, in one group, in one project (spec 4.17)."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import AfterValidator, Field

from reconciler.errors import BadAnswer, Forbidden, NotFound
from reconciler.model.diff import fields_of
from reconciler.model.endpoints import Reading, Singleton
from reconciler.model.foreign_keys import Alias, ForeignKeys
from reconciler.model.kind import Kind, ReadSection
from reconciler.model.protocols import Json
from reconciler.model.resource import LiveRecord, Resource, recognized
from reconciler.model.targets import Level, Target

EventName = Literal[
    "approver",
    "change_reviewer_merge_request",
    "close_issue",
    "close_merge_request",
    "failed_pipeline",
    "fixed_pipeline",
    "issue_due",
    "merge_merge_request",
    "merge_when_pipeline_succeeds",
    "moved_project",
    "new_epic",
    "new_issue",
    "new_merge_request",
    "new_note",
    "new_release",
    "push_to_merge_request",
    "reassign_issue",
    "reassign_merge_request",
    "reopen_issue",
    "reopen_merge_request",
    "service_account_failed_pipeline",
    "service_account_fixed_pipeline",
    "service_account_success_pipeline",
    "success_pipeline",
]
EVENT_NAMES: tuple[EventName, ...] = get_args(EventName)

ON_BY_DEFAULT = frozenset({"failed_pipeline", "fixed_pipeline", "moved_project"})


def _effective(switches: dict[EventName, bool | None]) -> dict[EventName, bool]:
    """Return switches without nulls, which are the service's defaults: on for a few events, off for all others."""
    return {name: name in ON_BY_DEFAULT if value is None else value for name, value in switches.items()}


class NotificationSettings(Resource):
    """Notifications of the user behind the token in one group or project."""

    foreign_keys: ClassVar[ForeignKeys] = {
        "notification_level": Alias("level"),
        **{name: f"events belong in `events`: `events: {{{name}: true}}`" for name in EVENT_NAMES},
    }

    level: Literal["disabled", "participating", "watch", "global", "mention", "custom"] = Field(
        default="global",
        description="Notifications that the user behind the token receives: none (`disabled`), about mentions "
        "(`mention`), about threads they take part in (`participating`), all (`watch`), those in `events` (`custom`), "
        "or as set one level up (`global`). Any level but `custom` drops the events of the profiles and sets beneath.",
        examples=["custom"],
    )
    events: Annotated[dict[EventName, bool | None], AfterValidator(_effective)] = Field(
        default={},
        description="Single events, on or off. Needs `level: custom`. Null: the service's default.",
        examples=[{"failed_pipeline": True, "new_issue": False}],
    )

    def errors(self) -> Iterator[tuple[str, str]]:
        """The service uses and shows events only at the level `custom`."""
        if self.events and self.level != "custom":
            yield (
                "events",
                "`events` need `level: custom` beside them; the service ignores them at other levels",
            )


class UserNotificationSettings(NotificationSettings):
    """Notifications of the user behind the token wherever no group or project says otherwise."""

    level: Literal["disabled", "participating", "watch", "global", "mention", "custom"] = Field(
        default="participating",
        description="Notifications that the user receives: none (`disabled`), about mentions (`mention`), about "
        "threads they take part in (`participating`), all (`watch`), or those in `events` (`custom`).",
        examples=["participating"],
    )
    notification_email: str | None = Field(
        default=None,
        min_length=1,
        description="One of the user's verified addresses. Null: the primary address.",
        examples=["ada@example.com"],
    )


def decode(target: Target, answer: Json) -> LiveRecord:
    """Read the record, whose events are flat booleans (spec section 2) or an object shown only at `custom`.

    A known event that a `custom` record does not show cannot be set there: the service ignores such a parameter. If
    it shows no event at all (the answers of spec section 4.17, word for word), it is unknown which are on.
    """
    events = answer.get("events", answer)
    events = {name: events[name] for name in EVENT_NAMES if name in events} if isinstance(events, dict) else {}
    fields: dict[str, Json] = {"level": answer["level"]}
    read_only: dict[str, str] = {}
    custom = answer["level"] == "custom"
    if custom and events:
        fields["events"] = events
        read_only = {
            f"events.{name}": "this service has no such event here" for name in EVENT_NAMES if name not in events
        }
    unshown = {"events": "level"} if custom and not events else {}
    if target.level is not Level.USER:
        settings, unknown = recognized(NotificationSettings, fields)
        return LiveRecord(settings, read_only=read_only, unknown=unknown, unshown=unshown)
    email = answer.get("notification_email")
    whole = fields | {"notification_email": None if email == answer.get("primary_email") else email}
    if "primary_unknown" in answer:
        read_only["notification_email"] = answer["primary_unknown"]
    settings, unknown = recognized(UserNotificationSettings, whole)
    shown = {**fields_of(settings), "notification_email": email}
    return LiveRecord(settings, read_only=read_only, unknown=unknown, unshown=unshown, shown=shown)


PRIMARY_UNKNOWN = "null is the primary address, which this server does not show: write the address instead"


def complete(reading: Reading) -> Json:
    """Fetch the primary address where it is wanted: the service never shows that the address is unset."""
    answer = reading.answer
    if reading.wanted.get("notification_email", "") is not None or not isinstance(answer, dict):
        return answer
    try:
        user = reading.reader.get("user")
    except (BadAnswer, Forbidden, NotFound) as error:
        return answer | {"primary_unknown": f"{PRIMARY_UNKNOWN} ({error})"}
    match user:
        case {"email": str(address)}:
            return answer | {"primary_email": address}
    return answer | {"primary_unknown": f"{PRIMARY_UNKNOWN} (GET user: the response has no email)"}


def body(wanted: Resource, record: LiveRecord) -> Mapping[str, Json]:
    """Return the fields that differ, events as flat booleans. An empty string clears the address; null does not."""
    changed: dict[str, Json] = {}
    for name in sorted(wanted.model_fields_set):
        value, before = getattr(wanted, name), getattr(record.resource, name)
        if name == "events":
            # Never null: GitLab 18.9 answers it with 500 for `moved_project`, which looks like a passing failure.
            changed |= {event: on for event, on in sorted(value.items()) if before.get(event) != on}
        else:
            changed[name] = "" if value is None else value
    return changed


def remainder(lower: Mapping[str, Any], upper: Mapping[str, Any]) -> Mapping[str, Any]:
    """Drop the events of a lower layer where the upper layer sets another level than `custom`."""
    keeps = upper.get("level", "custom") == "custom"
    return lower if keeps else {name: value for name, value in lower.items() if name != "events"}


SETTINGS = Singleton(
    name="notification_settings",
    title="notification settings",
    suffix="notification_settings",
    model=NotificationSettings,
    decode=decode,
    body=body,
    complete=complete,
)


def to_sandbox(read: ReadSection) -> Mapping[str, Json]:
    """Return the settings of the user, or of the user in a group or project. The shown events decide the dialect."""
    settings = read.fields("notification_settings")
    events = settings.get("events", {})
    instance = {"instance": {"dialect": "deployed" if "new_release" in events else "spec"}} if events else {}
    if read.level is not Level.USER:
        return {"notification_settings": {read.username: settings}, **instance}
    address = settings.get("notification_email")
    return {"notification_settings": settings, "emails": [address] if address else [], **instance}


KIND = Kind(
    name="notification_settings",
    foreign_names=(
        "notifications",
        "project_level_notifications",
        "group_level_notifications",
        "global_level_notifications",
    ),
    summary="Notifications of the user behind the token: everywhere (`User`), in a group, or in a project.",
    spec="4.17",
    models={
        Level.USER: UserNotificationSettings,
        Level.GROUP: NotificationSettings,
        Level.PROJECT: NotificationSettings,
    },
    parts=(SETTINGS,),
    order=1,
    remainder=remainder,
    to_sandbox=to_sandbox,
    pages=dict.fromkeys((Level.USER, Level.GROUP, Level.PROJECT), "-/profile/notifications"),
)
