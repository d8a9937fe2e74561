"""Notification settings (spec sections 4.17 and 6): of the user behind the token, also in groups and projects.

Differences: the spec's record carries its events flat, production's nested, with more of them, null where never set.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, Field, ValidationInfo

from ..call import Answer, Call, Route, find_project
from ..errors import refused
from ..parameters import Attribute, boolean, read, text
from ..records import Record, Username
from ..state import Group, Project, Section, State, User

Level = Literal["disabled", "participating", "watch", "global", "mention", "custom"]
LEVELS = get_args(Level)
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
    """One user's settings in a group or project; events never set are not in `events`."""

    level: Level = "global"
    events: Annotated[dict[str, bool | None], AfterValidator(_known)] = Field(default_factory=dict)


class OwnSetting(Setting):
    """A user's settings in general."""

    level: Level = "participating"
    notification_email: str | None = None


def _to_own_address(setting: OwnSetting, info: ValidationInfo) -> OwnSetting:
    email = setting.notification_email
    if email is not None and email not in info.data.get("emails", ()):
        raise ValueError(f"notification_email {email!r} is none of the user's emails")
    return setting


OWN = Section("notification_settings", ("user",), Annotated[OwnSetting, AfterValidator(_to_own_address)], OwnSetting())
IN_PLACES: Section[dict[str, Setting]] = Section(
    "notification_settings", ("group", "project"), dict[Username, Setting], {}
)
SECTIONS = (OWN, IN_PLACES)


def get_own(call: Call) -> Answer:
    """`GET /notification_settings`."""
    user = call.caller()
    return Answer(200, _show(call.state, "user", OWN.of(user), user))


def put_own(call: Call) -> Answer:
    """`PUT /notification_settings`: a bad address is refused after the rest was saved."""
    sent = read(call, text("level"), text("notification_email"), *_booleans(call.state, "user"))
    user = call.caller()
    setting = OWN.of(user)
    _update(call, setting, sent)
    email = sent.get("notification_email")
    if email is not None:
        _set_email(call, user, setting, email)
    return Answer(200, _show(call.state, "user", setting, user))


def get_group(call: Call) -> Answer:
    """`GET /groups/:id/notification_settings`."""
    return _get(call, "group", call.visible_group())


def put_group(call: Call) -> Answer:
    """`PUT /groups/:id/notification_settings`."""
    sent = read(call, text("level"), *_booleans(call.state, "group"))
    return _put(call, "group", call.visible_group(), sent)


def get_project(call: Call) -> Answer:
    """`GET /projects/:id/notification_settings`."""
    return _get(call, "project", call.visible_project())


def put_project(call: Call) -> Answer:
    """`PUT /projects/:id/notification_settings`: alone among writes it takes a project by its former path."""
    sent = read(call, text("level"), *_booleans(call.state, "project"))
    call.caller()
    moved = call.state.moved.get(call.parts["id"].lower())
    project = find_project(call, str(moved.id) if moved else call.parts["id"])
    return _put(call, "project", project, sent)


def _get(call: Call, place: str, where: Group | Project) -> Answer:
    user = call.caller()
    setting = IN_PLACES.of(where).get(user.username, Setting())
    return Answer(200, _show(call.state, place, setting, user))


def _put(call: Call, place: str, where: Group | Project, sent: Mapping[str, Any]) -> Answer:
    user = call.caller()
    settings = IN_PLACES.of(where)
    setting = settings.get(user.username, Setting())
    _update(call, setting, sent)
    if call.changed:
        settings[user.username] = setting
    return Answer(200, _show(call.state, place, setting, user))


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


def _booleans(state: State, place: str) -> tuple[Attribute, ...]:
    return _DEPLOYED[place] if state.deployed else _SPEC


def _show(state: State, place: str, setting: Setting, user: User) -> dict[str, Any]:
    record: dict[str, Any] = {"level": setting.level}
    if isinstance(setting, OwnSetting):
        record["notification_email"] = setting.notification_email or user.emails[0]
    if setting.level != "custom":
        return record
    if state.deployed:
        names = DEPLOYED_EVENTS[place]
        record["events"] = {name: setting.events.get(name, _NEVER_NULL.get(name)) for name in names}
    else:
        record.update({name: setting.events.get(name, _default(name)) for name in SPEC_EVENTS})
    return record


def _default(name: str) -> bool:
    return name in _ON_UNLESS_SET or _NEVER_NULL.get(name, False)


ROUTES = (
    Route("GET", "/notification_settings", get_own),
    Route("PUT", "/notification_settings", put_own),
    Route("GET", "/groups/:id/notification_settings", get_group),
    Route("PUT", "/groups/:id/notification_settings", put_group),
    Route("GET", "/projects/:id/notification_settings", get_project),
    Route("PUT", "/projects/:id/notification_settings", put_project),
)
