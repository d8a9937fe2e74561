"""Whether what is to be true of a target makes sense: form, names, and the rules across fields."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any
from unicodedata import normalize

from pydantic import ValidationError

from reconciler.manifests.complaints import Complaints
from reconciler.manifests.documents import KIND_OF
from reconciler.manifests.layers import Effective, Path
from reconciler.manifests.placeholders import has_placeholder
from reconciler.manifests.shapes import OLD_NAMES, Shape
from reconciler.manifests.structure import Misfit, fields_at, misfits
from reconciler.manifests.words import listed
from reconciler.model.resource import Resource
from reconciler.model.targets import Level, Target


def checked(effective: Effective, shape: Shape, target: Target, complaints: Complaints) -> Any:
    """Return a section of a target as its model; None, with complaints, where it is not what it should be.

    Where placeholders wait for a path to be known, what depends on them is left alone.
    """
    name = shape.kind.name
    value = effective.sections[name]
    type_ = shape.kind.models[target.level]
    fine = True
    waits = effective.values is None
    for path, key, message in _faults_of_names(shape, target, value):
        if waits and any(has_placeholder(step) for step in path):
            continue
        fine = False
        complain(effective, path, message, complaints, key=key)
    try:
        section = shape.check[target.level](value)
    except ValidationError as error:
        for misfit in misfits(error, value, type_):
            if not (waits and _has_placeholder(misfit)):
                _complain_of(effective, (name,), misfit, complaints, _owners(misfit, shape))
        return None
    for path, message, severity in _remarks(name, section):
        fine &= severity != "error"
        complain(effective, path, message, complaints, severity=severity)
    for path, key, message in _doubts_of_names(shape, target, value):
        if not (waits and has_placeholder(path[-1])):
            complain(effective, path, message, complaints, key=key, severity="warning")
    for path, message in _empty_lists(shape, value) if name not in effective.prune else ():
        complain(effective, path, message, complaints, severity="advice")
    return section if fine else None


def check_alone(effective: Effective, levels: tuple[Level, ...], complaints: Complaints) -> None:
    """Check the form of the sections of a layer that is not a whole, or not that of a known target.

    What only a target can tell is left to the targets: what placeholders come to, missing keys, rules across fields. Of
    several levels at which a section may be declared, the one it fits best counts.
    """
    for name, value in effective.sections.items():
        shape = effective.shapes[name]
        verdicts = [_verdict(shape, level, value) for level in levels if level in shape.check]
        for misfit in min(reversed(verdicts), key=_weight, default=[]):
            _complain_of(effective, (name,), misfit, complaints)


def complain(
    whole: Effective, path: Path, message: str, complaints: Complaints, *, key: bool = False, severity: str = "error"
) -> None:
    """Note what is wrong at a path of the merged spec, at its place in the layer that brought it."""
    layer, place = whole.find(path, key=key)
    if whole.target and layer.title:
        message += f" (for {whole.target})"
    complaints.add(place, message, whole.target or layer.document, severity)


def _complain_of(
    effective: Effective, prefix: Path, misfit: Misfit, complaints: Complaints, instead: str | None = None
) -> None:
    _, place = effective.find(prefix + misfit.path, key=misfit.key)
    message = instead or misfit.message(place.spot.text)
    complain(effective, prefix + misfit.path, message, complaints, key=misfit.key)


def _owners(misfit: Misfit, shape: Shape) -> str | None:
    """Say to which levels a key belongs that is unknown only here."""
    if misfit.errors[0]["type"] != "extra_forbidden":
        return None
    *before, key = misfit.path
    models = shape.kind.models.items()
    owners = [KIND_OF[level] for level, model in models if key in fields_at(model, tuple(before))]
    return f"`{key}` belongs to {listed(owners)}" if owners else None


def _verdict(shape: Shape, level: Level, value: Any) -> list[Misfit]:
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


def _faults_of_names(shape: Shape, target: Target, value: Any) -> Iterator[tuple[Path, bool, str]]:
    """Yield what is wrong with names, each with its path and whether it is a key; what is no name is passed over."""
    name = shape.kind.name
    if not isinstance(value, dict):
        return
    if shape.items:
        for key in value:
            fault = shape.items.key_error(target, key)
            if fault:
                yield (name, key), True, fault
        yield from _faults_of_old_names(name, value)
        return
    for field in shape.lists.keys() & value.keys():
        for index, entry in enumerate(value[field] if isinstance(value[field], list) else ()):
            fault = shape.lists[field].key_error(target, entry) if isinstance(entry, str | int) else None
            if fault:
                yield (name, field, index), False, fault


def _doubts_of_names(shape: Shape, target: Target, value: Any) -> Iterator[tuple[Path, bool, str]]:
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


def _lookalikes(shape: Shape, items: Mapping[str, Any]) -> Iterator[tuple[Path, bool, str]]:
    """Yield names that look the same and are not, for they are composed of other characters."""
    first: dict[str, str] = {}
    for key in items:
        if not key.isascii() and first.setdefault(normalize("NFC", key), key) != key:
            message = (
                f"`{key}` looks the same as another name here and is composed of other characters (Unicode NFC, NFD)"
            )
            yield (shape.kind.name, key), True, message


def _empty_lists(shape: Shape, value: Any) -> Iterator[tuple[Path, str]]:
    """Yield the lists of what has access that are empty and read as if nobody had."""
    name = shape.kind.name
    for field in shape.lists.keys() & value.keys():
        if value[field] == []:
            yield (
                (name, field),
                f"an empty list removes nothing: entries that are there stay; write `prune: [{name}]` if nobody is to "
                "have access, or leave the list out",
            )


def _faults_of_old_names(name: str, items: Mapping[str, Any]) -> Iterator[tuple[Path, bool, str]]:
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


def _remarks(name: str, section: Resource | Mapping[str, Resource | None]) -> Iterator[tuple[Path, str, str]]:
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
