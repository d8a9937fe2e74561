"""The models of a state file: strict pydantic models, the types of their fields, and messages for their errors.

Endpoints read and change the same models, and a dump writes the models out again. Begin with `Record` and `StoredItem`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Annotated, Any, ClassVar, Self, TypeVar, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

M = TypeVar("M", bound=BaseModel)
SEED = "2026-01-01T00:00:00.000Z"
"""The time of creation where a state file gives none."""


def moment(text: str) -> datetime:
    """Return the moment of an ISO 8601 text; a text without an offset is UTC. Raises `ValueError`."""
    when = datetime.fromisoformat(text)
    try:
        return when.astimezone(UTC) if when.tzinfo else when.replace(tzinfo=UTC)
    except OverflowError as error:
        raise ValueError(error) from None


def stamp(when: datetime) -> str:
    """Return `YYYY-MM-DDTHH:MM:SS.mmmZ`, the form in which moments are kept, since the form sorts as text."""
    return when.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def _read_date(value: Any) -> str:
    try:
        return (value if type(value) is date else date.fromisoformat(value)).isoformat()
    except (TypeError, ValueError):
        raise ValueError(f"must be a date like 2026-12-31, not {value!r}") from None


def _read_time(value: Any) -> str:
    try:
        return stamp(moment(value.isoformat() if isinstance(value, date) else value))
    except (TypeError, ValueError):
        raise ValueError(f"must be a time like 2026-12-31T23:59:59Z, not {value!r}") from None


def each_once(name: str) -> Callable[[list[M]], list[M]]:
    """Return a validator for lists in which no two records have the same value of that field."""

    def validate(records: list[M]) -> list[M]:
        values: set[Any] = set()
        for record in records:
            value = getattr(record, name)
            if value in values:
                raise ValueError(f"the {name} {value!r} is given twice")
            values.add(value)
        return records

    return validate


def loading(info: ValidationInfo) -> Any:
    """Return the `SandboxState` into which the file is loaded: the context of the validation."""
    return info.context


def _known_user(name: str, info: ValidationInfo) -> str:
    if info.context is None:
        return name
    user = loading(info).users_by_name.get(name.lower())
    if user is None:
        raise ValueError(f"there is no user {name!r}")
    return str(user.username)


def _user_referred_to(name: str, info: ValidationInfo) -> str:
    user = loading(info).users_by_name.get(name.lower())
    return str(user.username if user else loading(info).referred_users.setdefault(name.lower(), name))


def _project_referred_to(number: int, info: ValidationInfo) -> int:
    loading(info).referred_projects.add(number)
    return number


def _group_referred_to(number: int, info: ValidationInfo) -> int:
    loading(info).referred_groups.add(number)
    return number


Date = Annotated[str, BeforeValidator(_read_date)]
"""A plain date as `YYYY-MM-DD`."""
Time = Annotated[str, BeforeValidator(_read_time)]
"""A moment as `YYYY-MM-DDTHH:MM:SS.mmmZ`; a plain date is its midnight."""
Username = Annotated[str, AfterValidator(_known_user)]
"""The username of a user of the state."""
AnyUsername = Annotated[str, AfterValidator(_user_referred_to)]
"""The username of a user; a user that the file does not describe is made up."""
ProjectId = Annotated[int, Field(gt=0), AfterValidator(_project_referred_to)]
"""The ID of a project; a project that the file does not describe is made up."""
GroupId = Annotated[int, Field(gt=0), AfterValidator(_group_referred_to)]
"""The ID of a group; a group that the file does not describe is made up."""


class Record(BaseModel):
    """A mapping of a state file. Null means the default, like an absent key."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        return {name: inner for name, inner in value.items() if inner is not None or name not in cls.model_fields}


class StoredItem(Record):
    """A numbered item; `id` is unique among all items of its class in the service, and 0 until it is assigned.

    Attributes:
        counted_with: another class, if the IDs are unique among the items of both.
    """

    counted_with: ClassVar["type[StoredItem] | None"] = None

    id: Annotated[int, Field(gt=0)] = 0

    @field_validator("id")
    @classmethod
    def _take(cls, number: int, info: ValidationInfo) -> int:
        """Reserve an ID that the state file gives."""
        if info.context and not loading(info).numbers(cls).take(number):
            raise ValueError(f"the ID {number} is given twice")
        return number

    def complete(self) -> None:
        """Fill in values that depend on the ID, once the ID is assigned."""

    def parts(self) -> Iterator[Sequence["StoredItem"]]:
        """Yield the lists of numbered items within this item."""
        for name in type(self).model_fields:
            value = getattr(self, name)
            if isinstance(value, list) and value and isinstance(value[0], StoredItem):
                yield value

    def replace_with(self, other: Self) -> None:
        """Copy every value of the other item."""
        for name in type(self).model_fields:
            setattr(self, name, getattr(other, name))


class DatedItem(StoredItem):
    """An item with the times of its creation and its last change."""

    created_at: Time = SEED
    updated_at: Time = ""

    @model_validator(mode="after")
    def _date(self) -> Self:
        self.updated_at = self.updated_at or self.created_at
        return self


class CountedItem(DatedItem):
    """An item that also has a number within its project or group."""

    iid: Annotated[int, Field(gt=0)] = 0


class IdSequence:
    """Assigns the IDs of one class of items, in order, and never an ID twice."""

    __slots__ = ("_next", "_taken")

    def __init__(self) -> None:
        self._taken: set[int] = set()
        self._next = 1

    def take(self, number: int) -> bool:
        """Reserve an ID; return whether it was free."""
        free = number not in self._taken
        self._taken.add(number)
        return free

    def give(self) -> int:
        """Return the next free ID."""
        while self._next in self._taken:
            self._next += 1
        self._next += 1
        return self._next - 1

    def settle(self) -> None:
        """Assign only IDs above every ID so far from now on: the ID of a deleted item stays unused."""
        self._next = max(self._taken | {self._next - 1}) + 1


_MESSAGES = {
    "missing": "is missing",
    "string_type": "must be a string, not {found}",
    "bool_type": "must be true or false, not {found}",
    "list_type": "must be a list, not {found}",
    "dict_type": "must be a mapping, not {found}",
    "model_type": "must be a mapping, not {found}",
    "int_type": "must be a whole number, not {found}",
    "greater_than": "must be above {gt}, not {input!r}",
    "literal_error": "must be {expected}, not {input!r}",
    "value_error": "{error}",
    "extra_forbidden": "unknown key {key!r}; known are {known}",
    "invalid_key": "unknown key {key!r}; known are {known}",
}
_FOUND = {dict: "a mapping", list: "a list", str: "a string", bool: "true or false", type(None): "null"}


def first_error(model: type[BaseModel], error: ValidationError) -> str:
    """Return the first error with its place: `projects[3].milestones[0].title: is missing`."""
    first = error.errors()[0]
    steps = [step for step in first["loc"] if step != "[key]"]
    key = steps.pop() if first["type"] in ("extra_forbidden", "invalid_key") else None
    place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).removeprefix(".")
    value = first["input"]
    message = _MESSAGES.get(first["type"], first["msg"]).format(
        **first.get("ctx", {}),
        input=value,
        found=_FOUND.get(type(value), f"the {type(value).__name__} {value!r}"),
        key=key,
        known=", ".join(_model_at(model, steps).model_fields),
    )
    hint = "; quote it" if first["type"] == "string_type" and isinstance(value, int | float | date) else ""
    return f"{place}: {message}{hint}" if place else message


def _model_at(model: type[BaseModel], steps: list[int | str]) -> type[BaseModel]:
    for step in steps:
        if step in model.model_fields:
            model = _model_in(model.model_fields[str(step)].annotation) or model
    return model


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """Return the model within `list[Annotated[Model, ...]] | None` and the like."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for inner in get_args(annotation) if (model := _model_in(inner))), None)
