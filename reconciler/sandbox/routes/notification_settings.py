"""Notification settings (spec sections 4.17 and 6): of the user behind the token, also in groups and projects.

Differences: the spec's record has its events flat, production's nested, with more events, null if never set.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, Field, ValidationInfo

from ..answers import Answer, refused
from ..call import Call, Route, find_project
from ..parameters import boolean, read, text
from ..records import Record, Username
from ..state import Level, StateSection, User

NotificationLevel = Literal["disabled", "participating", "watch", "global", "mention", "custom"]
LEVELS = get_args(NotificationLevel)
SPEC_EVENTS = (
    "new_note",
    "new_issue",
    "reopen_issue",
    "close_issue",
    "reassign_issue",
    "issue_due",
    "new_merge_request",
    "push_to_merge_request",
    "reopen_merge_request",
    "close_merge_request",
    "reassign_merge_request",
    "merge_merge_request",
    "failed_pipeline",
    "fixed_pipeline",
    "success_pipeline",
    "moved_project",
    "merge_when_pipeline_succeeds",
    "new_epic",
)
_EVERYWHERE = (
    "new_release",
    *SPEC_EVENTS[:11],
    "change_reviewer_merge_request",
    *SPEC_EVENTS[11:17],
)
_ACCOUNTS = (
    "service_account_failed_pipeline",
    "service_account_success_pipeline",
    "service_account_fixed_pipeline",
)
DEPLOYED_EVENTS = {
    "user": (*_EVERYWHERE, "new_epic", "approver", *_ACCOUNTS),
    "group": (*_EVERYWHERE, "new_epic", *_ACCOUNTS),
    "project": (*_EVERYWHERE, "approver", *_ACCOUNTS),
}
_NEVER_NULL = {
    "moved_project": True,
    "merge_when_pipeline_succeeds": False,
    "approver": False,
    **dict.fromkeys(_ACCOUNTS, False),
}
_ON_UNLESS_SET = frozenset({"failed_pipeline", "fixed_pipeline"})
_SPEC = tuple(boolean(name) for name in SPEC_EVENTS)
_DEPLOYED = {place: tuple(boolean(name) for name in names) for place, names in DEPLOYED_EVENTS.items()}


def _known(events: dict[str, bool | None]) -> dict[str, bool | None]:
    return {name: value for name, value in events.items() if value is not None}


class Setting(Record):
    """A user's settings in a group or project; events that were never set are not in `events`."""

    level: NotificationLevel = "global"
    events: Annotated[dict[str, bool | None], AfterValidator(_known)] = Field(default_factory=dict)


class OwnSetting(Setting):
    """A user's global settings."""

    level: NotificationLevel = "participating"
    notification_email: str | None = None


def _to_own_address(setting: OwnSetting, info: ValidationInfo) -> OwnSetting:
    email = setting.notification_email
    if email is not None and email not in info.data.get("emails", ()):
        raise ValueError(f"notification_email {email!r} is none of the user's emails")
    return setting


OWN = StateSection(
    "notification_settings", ("user",), Annotated[OwnSetting, AfterValidator(_to_own_address)], OwnSetting()
)
IN_PLACES: StateSection[dict[str, Setting]] = StateSection(
    "notification_settings", ("group", "project"), dict[Username, Setting], {}
)
SECTIONS = (OWN, IN_PLACES)


def get(call: Call) -> Answer:
    """`GET /notification_settings`, and the same in a group or project: the caller's settings."""
    user = call.caller()
    return Answer(200, _show(call, _kept(call).get(user.username, Setting()), user))


def put(call: Call) -> Answer:
    """`PUT` likewise; an invalid address is refused after all else is saved."""
    level = _level(call)
    own = [text("notification_email")] if level == "user" else []
    sent = read(call, text("level"), *own, *(_DEPLOYED[level] if call.state.deployed else _SPEC))
    user, kept = call.caller(), _kept(call)
    setting = kept.get(user.username, Setting())
    _update(call, setting, sent)
    if isinstance(setting, OwnSetting) and sent.get("notification_email") is not None:
        _set_email(call, user, setting, sent["notification_email"])
    if call.changed:
        kept[user.username] = setting
    return Answer(200, _show(call, setting, user))


def _level(call: Call) -> Level:
    return "user" if call.level == "instance" else call.level


def _kept(call: Call) -> dict[str, Setting]:
    """Return all users' settings of that place; unlike other writes, a `PUT` accepts the former path of a project."""
    match _level(call):
        case "user":
            return {call.caller().username: OWN.of(call.caller())}
        case "group":
            return IN_PLACES.of(call.visible_group())
    moved = call.state.moved.get(call.parts["id"].lower()) if call.method == "PUT" else None
    return IN_PLACES.of(find_project(call, str(moved.id) if moved else call.parts["id"]))


def _update(call: Call, setting: Setting, sent: Mapping[str, Any]) -> None:
    """Save level and events together; events are kept whatever the level."""
    level = sent.get("level", setting.level)
    if not level:
        raise refused(400, {"level": ["can't be blank"]})
    if level not in LEVELS:
        wrong = f"{level!r} is not a valid level" if call.state.deployed else {"level": ["is not a valid level"]}
        raise refused(400, wrong)
    events = dict(setting.events)
    for name, value in sent.items():
        if name in ("level", "notification_email"):
            continue
        if value is None and name in _NEVER_NULL:
            raise refused(500, "500 Internal Server Error")
        events.pop(name, None)
        if value is not None:
            events[name] = value
    if (level, events) != (setting.level, setting.events):
        setting.level, setting.events = level, events
        call.changed = True


def _set_email(call: Call, user: User, setting: OwnSetting, email: str) -> None:
    if email and email not in user.emails:
        raise refused(400, {"notification_email": ["must be an email you have verified"]})
    if (email or None) != setting.notification_email:
        setting.notification_email = email or None
        call.changed = True


def _show(call: Call, setting: Setting, user: User) -> dict[str, Any]:
    record: dict[str, Any] = {"level": setting.level}
    if isinstance(setting, OwnSetting):
        record["notification_email"] = setting.notification_email or user.emails[0]
    if setting.level != "custom":
        return record
    if call.state.deployed:
        names = DEPLOYED_EVENTS[_level(call)]
        record["events"] = {name: setting.events.get(name, _NEVER_NULL.get(name)) for name in names}
    else:
        record.update({name: setting.events.get(name, _default(name)) for name in SPEC_EVENTS})
    return record


def _default(name: str) -> bool:
    return name in _ON_UNLESS_SET or _NEVER_NULL.get(name, False)


ROUTES = tuple(
    Route(method, f"{place}/notification_settings", serve)
    for place in ("", "/groups/:id", "/projects/:id")
    for method, serve in (("GET", get), ("PUT", put))
)
