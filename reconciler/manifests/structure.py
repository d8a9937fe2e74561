"""The form of a value: pydantic's verdict, brought to the keys and values it is about."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from reconciler.manifests.words import EXPECTED, allowed_values, complaint, unknown

Path = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Misfit:
    """What is wrong with one value, or with a key.

    Attributes:
        path: of the value; of a missing key, of the mapping that lacks it.
        key: whether the key is meant.
        errors: what pydantic says.
        value: what stands there.
        words: what is wrong, where pydantic's errors need no wording by the value.
    """

    path: Path
    key: bool
    errors: tuple[Mapping[str, Any], ...]
    value: Any
    words: str = ""

    def message(self, text: str | None) -> str:
        """Say it, given how the value is written."""
        entry = bool(self.path) and isinstance(self.path[-1], int)
        return self.words or complaint(list(self.errors), self.value, text, entry=entry)


def misfits(error: ValidationError, value: Any, type_: Any) -> list[Misfit]:
    """Return what is wrong with the parts of a value; what pydantic says of one part several times, as one."""
    found = []
    for details in error.errors(include_url=False):
        path, key = _target(details["loc"], value)
        found.append((path, key, details["loc"] if details["type"] == "missing" else (), details))
    found.sort(key=lambda entry: [str(step) for step in entry[0]])
    result = []
    for (path, key, _), group in groupby(found, key=lambda entry: entry[:3]):
        errors = tuple(details for *_, details in group)
        result.append(_misfit(path, key, errors, value, type_))
    beyond = {misfit.path[:length] for misfit in result for length in range(len(misfit.path))}
    return [misfit for misfit in result if misfit.path not in beyond or not _is_about_form(misfit)]


def _is_about_form(misfit: Misfit) -> bool:
    """Whether a value is merely not of some form: of no interest where it is nearly right in another."""
    return all(error["type"] in {*EXPECTED, "extra_forbidden"} for error in misfit.errors)


def fields_at(type_: Any, path: Path) -> tuple[str, ...]:
    """Return the keys that may be given in the mapping at a path of a value of a type."""
    return tuple(dict.fromkeys(name for model in _models_at(type_, path) for name in model.model_fields))


def misplaced_at(type_: Any, path: Path) -> Mapping[str, str]:
    """Return what to say of keys that do not belong in the mapping at a path, and that people write there."""
    return {key: words for model in _models_at(type_, path) for key, words in getattr(model, "misplaced", {}).items()}


def _misfit(path: Path, key: bool, errors: tuple[Mapping[str, Any], ...], value: Any, type_: Any) -> Misfit:
    *_, last = (None, *path)
    match errors[0]["type"]:
        case "literal_error" if key:
            return Misfit(path, True, errors, last, unknown("key", str(last), allowed_values(errors[0])))
        case "extra_forbidden":
            words = misplaced_at(type_, path[:-1]).get(str(last))
            return Misfit(path, True, errors, value, words or unknown("key", str(last), fields_at(type_, path[:-1])))
        case "missing":
            return Misfit(path, True, errors, value, f"the key `{errors[0]['loc'][-1]}` is missing")
    here = value
    for step in path:
        here = here[step]
    return Misfit(path, key, errors, last if key else here)


def _target(location: tuple[int | str, ...], value: Any) -> tuple[Path, bool]:
    """Return the path of what pydantic complains of, and whether it is the key; names of alternatives are left out."""
    path: list[Any] = []
    for step in location:
        if step in value if isinstance(value, dict) else isinstance(value, list) and isinstance(step, int):
            path.append(step)
            value = value[step]
    return tuple(path), location[-1:] == ("[key]",)


def _models_at(type_: Any, path: Path) -> Iterator[type[BaseModel]]:
    for alternative in _alternatives(type_):
        if isinstance(alternative, type) and issubclass(alternative, BaseModel):
            if not path:
                yield alternative
            elif path[0] in alternative.model_fields:
                yield from _models_at(alternative.model_fields[path[0]].annotation, path[1:])
        elif path and get_args(alternative):
            yield from _models_at(get_args(alternative)[-1], path[1:])


def _alternatives(type_: Any) -> Iterator[Any]:
    origin = get_origin(type_)
    if origin is Annotated:
        yield from _alternatives(get_args(type_)[0])
    elif origin in {Union, UnionType}:
        for alternative in get_args(type_):
            yield from _alternatives(alternative)
    else:
        yield type_
