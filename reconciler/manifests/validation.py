"""Whether a value is what it should be."""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from reconciler.manifests.diagnostics import Diagnostics
from reconciler.manifests.layers import OLD_NAMES, Effective, SectionSpec, has_placeholder
from reconciler.manifests.sources import Steps
from reconciler.model.resource import Resource
from reconciler.model.targets import Level, Target
from reconciler.model.wording import closest, listed, short, unknown

EXPECTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "none_required": "null",
    "date_type": "a day, YYYY-MM-DD",
    **dict.fromkeys(("dict_type", "mapping_type", "model_type", "model_attributes_type"), "a mapping"),
    **dict.fromkeys(("list_type", "tuple_type", "set_type", "frozen_set_type"), "a list"),
}
"""By the type of the error, what a value of another type should have been."""

RULES = {
    "greater_than": "must be greater than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "too_short": "must have at least {min_length} entries",
    "too_long": "must have at most {max_length} entries",
    "string_pattern_mismatch": "must match the pattern {pattern}",
}
"""By the type of the error, the rule a value of the right type breaks."""

SYNONYMS = {"open": "active", "opened": "active", "reopened": "active", "close": "closed"}
"""What people write for a value, because other things of the service call it so."""

TRUTHS = {"yes": "true", "on": "true", "true": "true", "no": "false", "off": "false", "false": "false"}
QUOTED = re.compile(r"'([^']*)'")
NOT_NULL = ", not null; to leave it alone, leave it out"


def complaint(errors: list[Mapping[str, Any]], value: Any, text: str | None, *, entry: bool = False) -> str:
    """Say what pydantic's diagnostics about one value come to.

    Args:
        errors: all it says of the value; of a value that may be of several types, something for each.
        value: what was read.
        text: how the value was written, if it is a scalar.
        entry: whether it is an entry of a list.
    """
    rules = [error for error in errors if error["type"] not in EXPECTED]
    if rules:
        return _broken(rules[0], value)
    expected = list(dict.fromkeys(EXPECTED[error["type"]] for error in errors))
    if value is None and entry:
        return f"must be {listed(expected, 'or')}, not null"
    return _mistaken(expected, value, short(str(value) if text is None else text))


def allowed_values(error: Mapping[str, Any]) -> list[str]:
    """Return the values that an enumeration has."""
    expected = str(error["ctx"]["expected"])
    return QUOTED.findall(expected) or [expected]


def _broken(error: Mapping[str, Any], value: Any) -> str:
    context = error.get("ctx", {})
    match error["type"]:
        case "literal_error":
            allowed = allowed_values(error)
            guess = (SYNONYMS.get(value) or closest(value, allowed)) if isinstance(value, str) else None
            guess = guess if guess in allowed else None
            hint = f"; did you mean `{guess}`?" if guess and len(allowed) > 1 else ""
            hint = NOT_NULL if value is None else hint
            return f"must be {'one of ' if len(allowed) > 1 else ''}{listed(allowed, 'or')}{hint}"
        case "value_error":
            return str(context["error"])
        case "string_too_short" | "too_short" if context["min_length"] == 1:
            return "must not be empty"
        case rule if rule in RULES:
            return RULES[rule].format_map(context)
    return str(error["msg"])


def _mistaken(expected: list[str], value: Any, text: str) -> str:  # noqa: PLR0911 - a table of cases
    message = f"must be {listed(expected, 'or')}"
    match value:
        case dict():
            return f"{message}, not a mapping"
        case list():
            hint = ": write `key: value`, without dashes or brackets" if "a mapping" in expected else ""
            return f"{message}, not a list{hint}"
        case None:
            return message + NOT_NULL
        case bool() | int() | float() if expected == ["text"]:
            what = "true or false" if isinstance(value, bool) else "a number"
            return f"{message}: `{text}` is {what}, quote it"
        case "true" | "false" if "true or false" in expected:
            return f"{message}: leave the quotes out"
        case str() if "true or false" in expected and value.lower() in TRUTHS:
            return f"{message}: `{text}` is text, write {TRUTHS[value.lower()]}"
        case str() if "a whole number" in expected and value.isdecimal():
            return f"{message}: leave the quotes out"
        case str() if "a list" in expected:
            return f"{message}: [{text}]"
    return f"{message}, not `{text}`"


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

    path: Steps
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


def fields_at(type_: Any, path: Steps) -> tuple[str, ...]:
    """Return the keys that may be given in the mapping at a path of a value of a type."""
    return tuple(dict.fromkeys(name for model in _models_at(type_, path) for name in model.model_fields))


def misplaced_at(type_: Any, path: Steps) -> Mapping[str, str]:
    """Return what to say of keys that do not belong in the mapping at a path, and that people write there."""
    return {key: words for model in _models_at(type_, path) for key, words in getattr(model, "misplaced", {}).items()}


def _misfit(path: Steps, key: bool, errors: tuple[Mapping[str, Any], ...], value: Any, type_: Any) -> Misfit:
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


def _target(location: tuple[int | str, ...], value: Any) -> tuple[Steps, bool]:
    """Return the path of what pydantic complains of, and whether it is the key; names of alternatives are left out."""
    path: list[Any] = []
    for step in location:
        if step in value if isinstance(value, dict) else isinstance(value, list) and isinstance(step, int):
            path.append(step)
            value = value[step]
    return tuple(path), location[-1:] == ("[key]",)


def _models_at(type_: Any, path: Steps) -> Iterator[type[BaseModel]]:
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


def checked(effective: Effective, shape: SectionSpec, target: Target, diagnostics: Diagnostics) -> Any:
    """Return a section of a target as its model; None, with diagnostics, where it is not what it should be.

    Where placeholders wait for a path to be known, what depends on them is left alone.
    """
    name = shape.kind.name
    value = effective.sections[name]
    type_ = shape.kind.models[target.level]
    fine = True
    waits = effective.values is None
    for path, key, message in _faults_of_names(shape, value):
        if waits and any(has_placeholder(step) for step in path):
            continue
        fine = False
        complain(effective, path, message, diagnostics, key=key)
    try:
        section = shape.check[target.level](value)
    except ValidationError as error:
        for misfit in misfits(error, value, type_):
            if not (waits and _has_placeholder(misfit)):
                _complain_of(effective, (name,), misfit, diagnostics, _owners(misfit, shape))
        return None
    for path, message, severity in _remarks(name, section):
        fine &= severity != "error"
        complain(effective, path, message, diagnostics, severity=severity)
    for path, key, message in _doubts_of_names(shape, target, value):
        if not (waits and has_placeholder(path[-1])):
            complain(effective, path, message, diagnostics, key=key, severity="warning")
    for path, message in _empty_lists(shape, value) if name not in effective.prune else ():
        complain(effective, path, message, diagnostics, severity="advice")
    return section if fine else None


def check_alone(effective: Effective, levels: tuple[Level, ...], diagnostics: Diagnostics) -> None:
    """Check the form of the sections of a layer that is not a whole, or not that of a known target.

    What only a target can tell is left to the targets: what placeholders come to, missing keys, rules across fields. Of
    several levels at which a section may be declared, the one it fits best counts.
    """
    for name, value in effective.sections.items():
        shape = effective.shapes[name]
        verdicts = [_verdict(shape, level, value) for level in levels if level in shape.check]
        for misfit in min(reversed(verdicts), key=_weight, default=[]):
            _complain_of(effective, (name,), misfit, diagnostics)


def complain(
    whole: Effective, path: Steps, message: str, diagnostics: Diagnostics, *, key: bool = False, severity: str = "error"
) -> None:
    """Note what is wrong at a path of the merged spec, at its place in the layer that brought it."""
    layer, place = whole.find(path, key=key)
    if whole.target and layer.title:
        message += f" (for {whole.target})"
    diagnostics.add(place, message, whole.target or layer.document, severity)


def _complain_of(
    effective: Effective, prefix: Steps, misfit: Misfit, diagnostics: Diagnostics, instead: str | None = None
) -> None:
    _, place = effective.find(prefix + misfit.path, key=misfit.key)
    message = instead or misfit.message(place.position.text)
    complain(effective, prefix + misfit.path, message, diagnostics, key=misfit.key)


def _owners(misfit: Misfit, shape: SectionSpec) -> str | None:
    """Say to which levels a key belongs that is unknown only here."""
    if misfit.errors[0]["type"] != "extra_forbidden":
        return None
    *before, key = misfit.path
    models = shape.kind.models.items()
    owners = [level.document_kind for level, model in models if key in fields_at(model, tuple(before))]
    return f"`{key}` belongs to {listed(owners)}" if owners else None


def _verdict(shape: SectionSpec, level: Level, value: Any) -> list[Misfit]:
    try:
        shape.check[level](value)
    except ValidationError as error:
        return [misfit for misfit in misfits(error, value, shape.kind.models[level]) if not _depends_on_target(misfit)]
    return []


def _weight(verdict: list[Misfit]) -> tuple[int, int]:
    return len(verdict), sum(misfit.errors[0]["type"] == "extra_forbidden" for misfit in verdict)


def _depends_on_target(misfit: Misfit) -> bool:
    return misfit.errors[0]["type"] == "missing" or _has_placeholder(misfit)


def _has_placeholder(misfit: Misfit) -> bool:
    return has_placeholder(misfit.value) or (misfit.key and has_placeholder(misfit.path[-1]))


def _faults_of_names(shape: SectionSpec, value: Any) -> Iterator[tuple[Steps, bool, str]]:
    """Yield what is wrong with names, each with its path and whether it is a key; what is no name is passed over."""
    name = shape.kind.name
    if not isinstance(value, dict):
        return
    if shape.items:
        for key in value:
            fault = shape.items.name_error(key)
            if fault:
                yield (name, key), True, fault
        yield from _faults_of_old_names(name, value)
        return
    for field in shape.lists.keys() & value.keys():
        for index, entry in enumerate(value[field] if isinstance(value[field], list) else ()):
            fault = shape.lists[field].name_error(entry) if isinstance(entry, str | int) else None
            if fault:
                yield (name, field, index), False, fault


def _doubts_of_names(shape: SectionSpec, target: Target, value: Any) -> Iterator[tuple[Steps, bool, str]]:
    """Yield what some servers refuse about the names of what is to exist, as `_faults_of_names` does."""
    name = shape.kind.name
    if shape.items:
        for key, item in value.items():
            doubt = None if item is None else shape.items.key_warning(target, key)
            if doubt:
                yield (name, key), True, doubt
        yield from _lookalikes(shape, value)
    for field in shape.lists.keys() & value.keys():
        for index, entry in enumerate(value[field]):
            doubt = shape.lists[field].key_warning(target, entry)
            if doubt:
                yield (name, field, index), False, doubt


def _lookalikes(shape: SectionSpec, items: Mapping[str, Any]) -> Iterator[tuple[Steps, bool, str]]:
    """Yield names that look the same and are not, for they are composed of other characters."""
    first: dict[str, str] = {}
    for key in items:
        if not key.isascii() and first.setdefault(unicodedata.normalize("NFC", key), key) != key:
            message = (
                f"`{key}` looks the same as another name here and is composed of other characters (Unicode NFC, NFD)"
            )
            yield (shape.kind.name, key), True, message


def _empty_lists(shape: SectionSpec, value: Any) -> Iterator[tuple[Steps, str]]:
    """Yield the lists of what has access that are empty and read as if nobody had."""
    name = shape.kind.name
    for field in shape.lists.keys() & value.keys():
        if value[field] == []:
            yield (
                (name, field),
                f"an empty list removes nothing: entries that are there stay; write `prune: [{name}]` if nobody is to "
                "have access, or leave the list out",
            )


def _faults_of_old_names(name: str, items: Mapping[str, Any]) -> Iterator[tuple[Steps, bool, str]]:
    claimed: dict[str, str] = {}
    for key, item in items.items():
        if not isinstance(item, dict) or OLD_NAMES not in item:
            continue
        written = item[OLD_NAMES]
        for index, old in enumerate(written if isinstance(written, list) else [written]):
            path = (name, key, OLD_NAMES, index) if isinstance(written, list) else (name, key, OLD_NAMES)
            if not isinstance(old, str):
                continue
            if old == key:
                yield path, False, f"`{old}` cannot be renamed from itself: leave {OLD_NAMES} out"
            elif items.get(old) is not None:
                yield path, False, f"`{old}` is declared beside this: one of the two has to go"
            elif old in claimed:
                yield path, False, f"`{old}` is already what `{claimed[old]}` is renamed from"
            claimed.setdefault(old, key)


def _remarks(name: str, section: Resource | Mapping[str, Resource | None]) -> Iterator[tuple[Steps, str, str]]:
    """Yield the contradictions within the resources of a section, and the doubts, with their severity."""
    resources = {None: section} if isinstance(section, Resource) else section
    for key, resource in resources.items():
        if resource is None or _is_silent(resource.__class__):
            continue
        path = (name,) if key is None else (name, key)
        yield from (((*path, field), message, "error") for field, message in resource.errors())
        yield from (((*path, field), message, "warning") for field, message in resource.warnings())


@cache
def _is_silent(type_: type[Resource]) -> bool:
    return type_.errors is Resource.errors and type_.warnings is Resource.warnings
