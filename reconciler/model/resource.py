"""The fields of an object, declared or live, in one canonical form so that `!=` is the whole comparison.

Begin with `Resource`, which a kind's models extend, and `LiveRecord`, an object as the service shows it.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from types import MappingProxyType
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema

from reconciler.model.direction import Directions
from reconciler.model.entries import EntryRow
from reconciler.model.foreign_keys import ForeignKeys
from reconciler.model.protocols import Json
from reconciler.model.targets import Key


class Resource(BaseModel):
    """The fields of one object or settings record.

    `model_fields_set` is what a manifest declares; nothing else is compared or sent. A field whose value is a mapping
    is compared key by key, and only the declared keys count.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)

    foreign_keys: ClassVar[ForeignKeys] = MappingProxyType({})
    """Keys of the service's API and of other tools, each with the field that it stands for, or with a message."""

    directions: ClassVar[Directions] = MappingProxyType({})
    """The fields that protect something, each with the direction in which its values become stricter."""

    admits: ClassVar[bool] = False
    """Whether an object lets somebody in, so that protection is looser with it than without it."""

    @classmethod
    def is_moot(cls, _name: str, _live_fields: Mapping[str, Json]) -> bool:
        """Return whether a minimum of a field has no effect beside the other fields of an object, as JSON."""
        return False

    def errors(self) -> Iterator[tuple[str, str]]:
        """Yield `(field, message)` for each rule across fields that the declared fields break.

        It is called for declared fields, and by the planner for the future fields of an object.
        """
        yield from ()

    def warnings(self) -> Iterator[tuple[str, str]]:
        """Yield `(field, message)` for each combination of declared fields that some servers refuse: a warning."""
        yield from ()


def _as_tuple(raw: object) -> object:
    if isinstance(raw, str):
        return (raw,)
    return tuple(raw) if isinstance(raw, list) else raw


OldNames = Annotated[tuple[str, ...], BeforeValidator(_as_tuple, json_schema_input_type=str | list[str])]


class Item(Resource):
    """A resource that is one object of a collection and may have had other names before."""

    renamed_from: OldNames = Field(
        default=(),
        description="The former name, or a list of them: makes a rename one update instead of a delete and a create.",
        examples=["Nov 2026"],
    )


SECONDS_PER_UNIT = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
LONGEST_DURATION = timedelta(days=36_500)
"""Nobody means a longer one, and arithmetic with dates would fail."""


def read_duration(raw: object, *, units: str = "dhms", example: str = "24h") -> timedelta:
    """Return the duration of a text such as `24h`, in manifests, options and settings alike.

    Raises:
        ValueError: not a duration, or too long; the message has the correction.
    """
    written = re.fullmatch(f"([0-9]+)([{units}])", raw) if isinstance(raw, str) else None
    if written is None:
        raise ValueError(
            f"a duration is a number followed by {', '.join(units[:-1])} or {units[-1]}, such as {example}"
        )
    digits = written[1].lstrip("0")
    if len(digits) > 10 or int(digits or 0) * SECONDS_PER_UNIT[written[2]] > LONGEST_DURATION.total_seconds():
        raise ValueError(f"a duration is at most {LONGEST_DURATION.days}d")
    return timedelta(seconds=int(digits or 0) * SECONDS_PER_UNIT[written[2]])


def written_duration(duration: timedelta) -> str:
    """Return a duration as `read_duration` reads it, such as 24h or 90d."""
    seconds = int(duration.total_seconds())
    unit = next((unit for unit, size in SECONDS_PER_UNIT.items() if seconds > size and not seconds % size), "s")
    return f"{seconds // SECONDS_PER_UNIT[unit]}{unit}"


def _as_age(raw: object) -> object:
    age = raw if isinstance(raw, timedelta) else read_duration(raw, units="dhm", example="90d")
    if not age:
        raise ValueError("an age is more than nothing, such as 90d")
    return age


Duration = Annotated[
    timedelta,
    BeforeValidator(_as_age),
    WithJsonSchema({"type": "string", "pattern": "^0*[1-9][0-9]*[dhm]$"}),
]


class Rotated(Item):
    """An item that can be succeeded by a new item of the same name, since names are not unique."""

    rotate_after: Duration | None = Field(
        default=None,
        description="The age, such as 90d, at which a successor is created and delivered. The old one is deleted by a "
        "later run, once the successor has reached the age that `--grace` says, 24h by default.",
        examples=["90d"],
    )


class Promoted(Item):
    """An item of a group that may be created by promoting an object of one of its projects."""

    promote: bool = Field(
        default=False,
        description="If the group has none of this name and a project directly in it has one, make it the group's: the "
        "one of the project with the lowest ID is promoted. Afterwards it makes no difference.",
        examples=[True],
    )


POLICIES = frozenset({"renamed_from", "rotate_after", "promote"})
"""Fields that say how to get somewhere, not what should be there: they are not compared and not sent."""

Wanted = Resource | Mapping[Key, Resource | None]
"""The declaration of one part: of a singleton its fields, of a collection its items (None: must not exist)."""


NO_VALUES: Mapping[str, Any] = {}
"""Plain, since pydantic writes no proxies."""


def _nothing() -> Mapping[Any, Any]:
    """Return the same empty mapping for all objects: a fleet has many."""
    return NO_VALUES


@dataclass(frozen=True, slots=True)
class LiveRecord:
    """One object, or one settings record, as the service shows it.

    Attributes:
        resource: its fields; all fields that the service shows are set.
        names: its names: a title; or a path and an ID. The first is the one to show. Empty for a settings record.
        id: its own numeric ID, if it has one.
        path_id: its name in paths, if that is not its ID; URL-encoded.
        iid: its number within its target, if the response has it.
        owner_id: the numeric ID of the project it belongs to, if the response has it.
        created_at: the time of its creation, if the response has it.
        updated_at: the time of its last change, as the service writes it, if the response has it.
        ours: whether it belongs to the user behind the token; False if it has a secret that is not shown completely.
        owner: the username of its owner, if the response has it and it matters.
        last_used: the time of its last use, as the service writes it, if the response has it.
        read_only: fields that cannot be changed, each with the reason; a key of a mapping field as `field.key`.
        unknown: fields that have a value this version does not know, each with that value as it can be shown.
        unshown: fields that the service accepts and does not show, each with the field that is written with them: they
            are not compared.
        shown: the fields before the response was completed, if it was; None if that makes no difference.
        entries: by field, the rows of `Relations.entries`, and those of `Relations.named`, each with its name.
        eligible: the usernames of the users who can approve at present, as the service reports them; None if it does
            not.
        below: the targets below the read one that have the object instead; a promotion turns one of these objects into
            one of the read target. The record is that of the first, whose ID is `owner_id`. Empty for the target's own
            object.
    """

    resource: Resource
    names: tuple[Key, ...] = ()
    id: int | None = None
    path_id: str | None = None
    iid: int | None = None
    owner_id: int | None = None
    created_at: datetime | None = None
    updated_at: str | None = None
    ours: bool = True
    owner: str | None = None
    last_used: str | None = None
    read_only: Mapping[str, str] = field(default_factory=_nothing)
    unknown: Mapping[str, Any] = field(default_factory=_nothing)
    unshown: Mapping[str, str] = field(default_factory=_nothing)
    shown: Mapping[str, Any] | None = None
    eligible: frozenset[str] | None = None
    below: tuple[str, ...] = ()
    entries: Mapping[str, tuple[EntryRow, ...]] = field(default_factory=_nothing)


@dataclass(frozen=True, slots=True)
class Holder:
    """The group or project that owns an object which another target's list shows too.

    Attributes:
        name: such as `group acme`.
        is_below: whether it is below the target, else above.
        promotes: its numeric ID, if its object can be promoted to the target; else None.
    """

    name: str
    is_below: bool = False
    promotes: int | None = None


@dataclass(frozen=True, slots=True)
class Objects:
    """The objects in the list of a collection.

    Attributes:
        own: the objects of the target itself.
        taken: the owner of another object that blocks a name for the target, by name (see `Collection.identity`).
        promotable: by name, the object that can be promoted: only the targets of its `below` have that name.
        inherited: the objects of targets above that apply too, beside the target's own of the same name.
        hidden: own objects with a field of which the token cannot see all entries, each with that field.
        target_id: the target's own numeric ID, if it was needed for the list.
    """

    own: tuple[LiveRecord, ...] = ()
    taken: Mapping[Key, Holder] = field(default_factory=dict)
    promotable: Mapping[Key, LiveRecord] = field(default_factory=dict)
    inherited: tuple[tuple[LiveRecord, Holder], ...] = ()
    hidden: tuple[tuple[LiveRecord, str], ...] = ()
    target_id: int | None = field(default=None, compare=False)


NOT_HERE = "this server does not have this setting; leave it out"
"""Why a field is read-only that this service does not show and others do."""


MOST_SHARED = 1024
"""How many values are remembered that are made of equal contents, as most of a fleet are."""


@dataclass(frozen=True, slots=True)
class Content:
    """A content by its text, so that contents of equal text are validated once.

    Attributes:
        value: the content.
        text: its text, which distinguishes contents that are equal to Python, such as `1` and `True`.
    """

    value: Any = field(compare=False)
    text: str = field(init=False)

    def __post_init__(self) -> None:
        """Compute the text."""
        object.__setattr__(self, "text", repr(self.value))


@lru_cache(maxsize=MOST_SHARED)
def _validated(model: type[Resource], shown_values: Content) -> Resource:
    return model.model_validate(shown_values.value)


def recognized(model: type[Resource], values: Mapping[str, Any]) -> tuple[Resource, dict[str, Any]]:
    """Split the values in a response into fields that the model knows, and other values in a form that can be shown."""
    try:
        return _validated(model, Content(values)), {}
    except ValidationError as error:
        places = {tuple(map(str, detail["loc"][:2])) for detail in error.errors(include_url=False, include_input=False)}
    known, unknown = dict(values), {}
    for name, *keys in sorted(places):
        value = known.pop(name, None)
        if keys and isinstance(value, dict):
            known[name] = {key: inner for key, inner in value.items() if key != keys[0]}
            unknown[f"{name}.{keys[0]}"] = _as_shown(value.get(keys[0]))
        else:
            unknown[name] = _as_shown(value)
    return model.model_validate(known), unknown


def name_shown(value: Any) -> str:
    """Return the name of an object.

    Raises:
        TypeError: the value is no name, so that the object could not be identified.
    """
    if not isinstance(value, str | int):
        raise TypeError(value)
    return str(value)


def number_shown(value: Any) -> int | None:
    """Return a valid ID; None if the service shows none, or another value."""
    return value if type(value) is int else None


A_LIST, AN_OBJECT = "a list", "an object"
"""How unknown values are shown that may hold anything, secrets too."""


def _as_shown(value: Any) -> Any:
    if isinstance(value, list):
        return A_LIST
    return AN_OBJECT if isinstance(value, dict) else value
