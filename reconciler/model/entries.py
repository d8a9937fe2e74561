"""Entries of lists that allow something: each is a role, or names a user, a group or a deploy key.

Begin with `Subject`, an entry of a manifest, and `EntryRow`, an entry of the service.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_serializer

from reconciler.model.protocols import Json
from reconciler.model.wording import short

Role = Literal["developer", "maintainer", "admin"]

ROLES: Mapping[int, Role] = {30: "developer", 40: "maintainer", 60: "admin"}
NOBODY = 0
"""The access level of an entry that means nobody: beside others it makes no difference."""

Who = Literal["user", "group", "deploy_key"]

SUBJECT_KEYS: tuple[Who, ...] = ("user", "group", "deploy_key")


@dataclass(frozen=True, slots=True)
class EntryList:
    """The list of all subjects that an entry of one kind may name: the service refuses others.

    Attributes:
        suffix: the path of the list below the target's; empty if the target's own record has the list.
        key: the field of the list with the name.
        unknown: the reason for which a name is not in the list, with `{}`.
        remedy: the fix.
        unfit: the reason for which a listed name cannot be used in a rule, with `{}` for the name, and for the cause;
            empty if the service accepts it.
        cure: the fix for `unfit`.
        id_key: the field of the list with the ID.
        within: the field of the record that has the list; empty if the response is the list.
        is_inherited: whether the list of a new project has the entries of the list of its group.
    """

    suffix: str
    key: str
    unknown: str
    remedy: str
    unfit: str = ""
    cure: str = ""
    id_key: str = "id"
    within: str = ""
    is_inherited: bool = False


ROSTERS: Mapping[Who, EntryList] = {
    "user": EntryList(
        "members/all",
        "username",
        "the project has no member {}, or none that this token can see",
        "add the user to the project, or correct the username",
        is_inherited=True,
    ),
    "group": EntryList(
        "",
        "group_full_path",
        "group {} is not invited to the project",
        "invite it with the role Developer or more; of the groups above the project, name roles instead",
        "group {} is {}",
        "invite it with the role Developer or more",
        id_key="group_id",
        within="shared_with_groups",
    ),
    "deploy_key": EntryList(
        "deploy_keys",
        "title",
        "no such deploy key is enabled: {}",
        "enable it, or correct the title",
        "deploy key {} is {}",
        "let it write (`can_push`)",
    ),
}

INVITED = "groups?with_shared=true&shared_min_access_level=30"
"""The path of the list of the groups above a project and of all that are invited with Developer or more.

The project's own record leaves out those that the token cannot see; this list names them.
"""

ENTRY_IDS: Mapping[str, Who] = {f"{who}_id": who for who in SUBJECT_KEYS}
"""By the key of the service's API, that of an entry."""

AN_ENTRY = (
    "an entry is a role (developer, maintainer or admin), or one of {user: NAME}, {group: PATH} and {deploy_key: TITLE}"
)


NO_ONE = "nobody is the empty list: []"
"""The message about a word for nobody: "No one" is the value of most push rules on the service's own pages."""

FOREIGN_ROLES: Mapping[object, str] = {
    0: NO_ONE,
    "nobody": NO_ONE,
    "none": NO_ONE,
    "no access": NO_ONE,
    "no one": NO_ONE,
    "no_access": NO_ONE,
    "no_one": NO_ONE,
    "noone": NO_ONE,
    50: "an owner may do all that a maintainer may: write `maintainer`",
    "owner": "an owner may do all that a maintainer may: write `maintainer`",
    "admins": "`admins` is the role `admin`",
    "administrator": "`administrator` is the role `admin`",
    "developers": "`developers` is the role `developer`",
    "developers + maintainers": "that is the role `developer`: every higher role may too",
    "maintainers": "`maintainers` is the role `maintainer`",
    **dict.fromkeys(("guest", "planner", "reporter", 10, 15, 20), "the service takes no role below `developer`"),
}
"""By a word or a number of people, in lower case, what to write instead of it among entries."""

Number = Annotated[int, Field(gt=0)]
"""An ID of the service."""


class Subject(BaseModel):
    """A user, a group or a deploy key, by name; by numeric ID where the token cannot see the name."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)

    user: str | Number | None = Field(default=None, description="The username.", examples=["ada"])
    group: str | Number | None = Field(default=None, description="The full path.", examples=["acme/leads"])
    deploy_key: str | Number | None = Field(default=None, description="The title.", examples=["release"])

    @model_serializer
    def named(self) -> dict[str, str | int]:
        """Return the subject under its key, such as `{"user": "ada"}`."""
        return {who: name for who in SUBJECT_KEYS if (name := getattr(self, who)) is not None}

    @property
    def identity(self) -> tuple[Who, str | int]:
        """The identity of the subject; usernames and paths ignore case."""
        ((who, name),) = ((who, name) for who in SUBJECT_KEYS if (name := getattr(self, who)) is not None)
        return who, name.casefold() if isinstance(name, str) and who != "deploy_key" else name


def _as_tuple(raw: object) -> object:
    if not isinstance(raw, list | tuple):
        return raw
    for entry in raw:
        is_one = (
            isinstance(entry, dict)
            and len(entry) == 1
            and {*entry} <= {*SUBJECT_KEYS}
            and not _is_blank(*entry.values())
        )
        if not (is_one or isinstance(entry, Subject) or entry in ROLES.values()):
            raise ValueError(_entry_advice(entry))
    return tuple(raw)


def _entry_advice(raw: object) -> str:
    """Return the fault of an entry; for one in the words of the service's API, the spelling to write."""
    if not isinstance(raw, dict):
        return _role_advice(raw)
    if len(raw) != 1:
        return AN_ENTRY
    ((key, value),) = raw.items()
    if key in ENTRY_IDS and type(value) is int:
        return f"`{key}: {value}` is `{{{ENTRY_IDS[key]}: {value}}}` here"
    role = ROLES.get(value) if type(value) is int else value
    is_role = key == "access_level" and role in ROLES.values()
    if is_role:
        return f"`access_level: {value}` is the entry `{role}` here"
    return _role_advice(value) if key == "access_level" else AN_ENTRY


def _role_advice(raw: object) -> str:
    """Return the message about a value that is no role: the entry to write, if the value is a common word for one."""
    if type(raw) is int:
        return f"`{raw}` is the role `{ROLES[raw]}`" if raw in ROLES else FOREIGN_ROLES.get(raw, AN_ENTRY)
    if not isinstance(raw, str):
        return AN_ENTRY
    word, name = " ".join(raw.lower().split()), short(raw[1:].strip())
    if word in LEVELS:
        return f"roles are in lower case: `{word}`"
    if raw.startswith("@") and name:
        return f"a user is an entry of its own: {{user: {name}}}; a group: {{group: {name}}}"
    return FOREIGN_ROLES.get(word, AN_ENTRY)


def _is_blank(raw_name: object) -> bool:
    return raw_name is None or (isinstance(raw_name, str) and not raw_name.strip())


def _canonical(roles_and_subjects: tuple[Role | Subject, ...]) -> tuple[Role | Subject, ...]:
    """Return entries in one order, each once, with names in their canonical spelling."""
    plain = {entry if isinstance(entry, str) else Subject(**dict([entry.identity])) for entry in roles_and_subjects}
    return tuple(sorted(plain, key=lambda entry: _place(entry if isinstance(entry, str) else entry.named())))


def _place(entry: Json) -> tuple[bool, str]:
    """Return the sort key of an entry, given as JSON: roles come first."""
    return (False, entry) if isinstance(entry, str) else (True, json.dumps(entry))


Entries = Annotated[
    tuple[Role | Subject, ...],
    BeforeValidator(_as_tuple, json_schema_input_type=list[Role | Subject]),
    AfterValidator(_canonical),
]
"""A list of entries in canonical form; the empty list means nobody."""


@dataclass(frozen=True, slots=True)
class EntryRow:
    """An entry as the service stores it.

    Attributes:
        id: of the entry, which changes each time that it is added.
        shown: the entry as a manifest has it; None for one that allows nobody.
        number: the ID of the user, group or deploy key; None for a role.
    """

    id: int
    shown: Json
    number: int | None = None

    @property
    def identity(self) -> tuple[str, Json]:
        """The identity, equal to that of an equal entry of a manifest."""
        return next(iter(self.shown.items())) if isinstance(self.shown, dict) else ("role", self.shown)

    @property
    def spellings(self) -> set[tuple[str, Json]]:
        """The identities of manifest entries that may mean this row: by the number and by the name of its subject."""
        who, name = self.identity
        return {(who, name)} if self.number is None else {(who, name), (who, self.number)}

    @property
    def sandbox_entry(self) -> Json:
        """The entry in a state of the sandbox; None for a user whose name is hidden."""
        who, name = self.identity
        if who == "role":
            return {"access_level": LEVELS.get(name, NOBODY)}
        if who == "user":
            return {"user": name} if isinstance(name, str) else None
        return {f"{who}_id": self.number}


def rows_of(shown: Json) -> tuple[EntryRow, ...]:
    """Parse the entries of a list. For a user, a group or a key, the access level has no meaning.

    Raises:
        AttributeError, LookupError, TypeError: an entry has another structure.
    """
    return tuple(_row(entry) for entry in shown)


def _row(fields: Mapping[str, Json]) -> EntryRow:
    number = fields["id"]
    if type(number) is not int:
        raise TypeError(number)
    for who in SUBJECT_KEYS:
        subject = fields.get(f"{who}_id")
        if subject is not None:
            if type(subject) is not int:
                raise TypeError(subject)
            # Of a key the service shows the title; of users and groups, names that no path or request knows.
            name = fields.get("access_level_description") if who == "deploy_key" else subject
            return EntryRow(number, {who: name if isinstance(name, str | int) else subject}, subject)
    level = fields["access_level"]
    return EntryRow(number, None if level == NOBODY else ROLES.get(level, f"level {level}"))


WORDS: Mapping[Who, str] = {"user": "user", "group": "group", "deploy_key": "deploy key"}


def word(entry_subject: Subject) -> str:
    """Return an entry in words: `user ada`, `deploy key release`."""
    return " ".join(f"{WORDS[who]} {name}" for who in SUBJECT_KEYS if (name := getattr(entry_subject, who)) is not None)


LEVELS: Mapping[str, int] = {role: level for level, role in ROLES.items()}

Numbers = Mapping[tuple[str, str | int], int]
"""The IDs of users, groups and keys by `Subject.identity`."""


def sent(role_or_subject: Role | Subject, numbers: Numbers) -> dict[str, Json]:
    """Return an entry as requests have it."""
    if isinstance(role_or_subject, str):
        return {"access_level": LEVELS[role_or_subject]}
    who, name = role_or_subject.identity
    return {f"{who}_id": name if isinstance(name, int) else numbers[who, name]}


def created(roles_and_subjects: Sequence[Role | Subject], numbers: Numbers) -> list[dict[str, Any]]:
    """Return a list for a creation; for an empty one, the entry for nobody, since the service would use its default."""
    return _each_once(sent(entry, numbers) for entry in roles_and_subjects) or [{"access_level": NOBODY}]


def merged(
    roles_and_subjects: Sequence[Role | Subject], rows: Sequence[EntryRow], numbers: Numbers
) -> list[dict[str, Any]]:
    """Return a list for an update: it adds the entries without an ID, and removes marked entries.

    All other entries are kept.
    """
    wanted = {("role", entry) if isinstance(entry, str) else entry.identity: entry for entry in roles_and_subjects}
    kept = [row for row in rows if not row.spellings.isdisjoint(wanted)]
    removed = [{"id": row.id, "_destroy": True} for row in rows if row.shown is not None and row not in kept]
    present = {spelling for row in kept for spelling in row.spellings}
    return [*removed, *_each_once(sent(entry, numbers) for key, entry in wanted.items() if key not in present)]


def _each_once(json_entries: Iterable[Json]) -> list[Json]:
    """Return entries without repetitions: the service would keep both, or refuse them."""
    once: list[Json] = []
    for entry in json_entries:
        once += [] if entry in once else [entry]
    return once


def called_as(declared_entries: Sequence[Json], rows: Sequence[EntryRow], shown: Json) -> Json:
    """Return the live entries, spelled as in a declared list: a subject's ID and its name are one entry.

    Args:
        declared_entries: the list, as JSON.
        rows: the live entries.
        shown: the live entries as JSON, with the spellings of the service.
    """
    words = [(who, called) for entry in declared_entries if isinstance(entry, dict) for who, called in entry.items()]
    if not any(isinstance(called, int) for _, called in words):
        return shown
    entries: list[Json] = []
    for row in rows:
        meant = [{who: called} for who, called in words if (who, called) in row.spellings]
        entries += meant or ([] if row.shown is None else [row.shown])
    return sorted(_each_once(entries), key=_place)


def called_before(rows: Sequence[EntryRow], listed: Sequence[Json], numbers: Numbers) -> tuple[EntryRow, ...]:
    """Return rows, spelled as in an earlier reading, possibly by a token that sees other names.

    Args:
        rows: the live entries.
        listed: the list, as JSON.
        numbers: the IDs of the subjects in the list; they are used if the present token sees only a number.
    """
    words = {word for entry in listed if isinstance(entry, dict) for word in entry.items()}
    return tuple(
        replace(row, shown={who: row.number}) if (who := row.identity[0], row.number) in words else row
        for row in named_by(rows, numbers)
    )


def named_by(rows: Sequence[EntryRow], numbers: Numbers) -> tuple[EntryRow, ...]:
    """Return rows with names for subjects of which only the number is shown."""
    names = {(who, number): called for (who, called), number in numbers.items() if isinstance(called, str)}
    return tuple(
        replace(row, shown={row.identity[0]: names[row.identity]}) if row.identity in names else row for row in rows
    )
