"""Check the exceptions of documents against the declared sections, and give them the names that the planner uses.

Begin with `read_exceptions`, which `targets` calls for each merged target.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import date

from reconciler.manifests.diagnostics import Diagnostic
from reconciler.manifests.documents import AcceptedDeviation
from reconciler.manifests.layers import (
    OLD_NAMES,
    Stack,
    fill,
    level_error,
    unbranched,
    unknown_section,
    unnamed,
)
from reconciler.manifests.locks import Lock, locks_at, locks_of
from reconciler.manifests.sources import Steps
from reconciler.manifests.trace import object_path
from reconciler.model.endpoints import Collection
from reconciler.model.exceptions import EXPIRES_SOON, DeclaredException
from reconciler.model.foreign_keys import foreign_keys, unknown_key
from reconciler.model.targets import Key
from reconciler.model.wording import closest, listed

ABOVE: Steps = ("metadata", "exceptions")
NO_EFFECT = ": this exception has no effect"


def read_exceptions(
    written_exceptions: Mapping[int, AcceptedDeviation], stack: Stack, today: date | None, *, complete: bool
) -> tuple[tuple[DeclaredException, ...], list[Diagnostic]]:
    """Return the exceptions of a target's own document, and their errors and warnings.

    Args:
        written_exceptions: the exceptions as the document writes them, by their positions in its list.
        stack: the layers of the target.
        today: the day, UTC; None to skip the warnings about exceptions that end.
        complete: whether these are all layers of the target. If not, no warning says that an exception has no effect.
    """
    exceptions: list[DeclaredException] = []
    diagnostics: list[Diagnostic] = []
    for number, written in written_exceptions.items():
        errors = list(_errors(written, stack))
        if errors:
            diagnostics += [each.below(*ABOVE, number) for each in errors]
            continue
        exception = _read(written, stack, stack.layers[-1].document.find((*ABOVE, number)).line)
        exceptions.append(exception)
        idle = list(_idle(exception, stack)) if complete else []
        warnings = (*idle, *([] if idle else _locked(exception, stack)))
        diagnostics += [each.below(*ABOVE, number) for each in warnings]
        diagnostics += () if today is None else endings(number, exception.until, today)
    return tuple(exceptions), diagnostics


def exceptions_on(exceptions: Iterable[DeclaredException], stack: Stack, steps: Steps) -> Iterator[DeclaredException]:
    """Yield the exceptions that are about a value of a merged spec, or about a part of it."""
    name, *inner = steps
    for exception in exceptions:
        if exception.section != name:
            continue
        items = stack.specs[name].items
        field = ".".join(map(str, inner[1:] if items else inner))
        named = exception.item is None or items is None or not inner or _same(items, inner[0], exception.item)
        if named and (not field or not exception.fields or any(_overlap(field, other) for other in exception.fields)):
            yield exception


def _errors(written: AcceptedDeviation, stack: Stack) -> Iterator[Diagnostic]:
    """Yield the errors in the names of an exception."""
    level, name, item = stack.target.level, written.section, written.item
    specs = stack.specs
    wrong = level_error(name, level, specs) if name in specs else unknown_section(name, specs, specs)
    if wrong:
        yield Diagnostic(("section",), wrong)
        return
    spec = stack.specs[name]
    if item is not None and spec.items is None and not spec.lists:
        yield Diagnostic(("item",), f"{name} has no items: name `fields`, or leave this out")
    elif isinstance(item, int) and spec.items is not None:
        yield Diagnostic(("item",), f"must be text: `{item}` is a number, quote it")
    if item is not None and spec.lists and written.fields:
        yield Diagnostic(("fields",), "an entry of a list has no fields: leave this out")
        return
    model = spec.kind.models[level] if spec.items is None else spec.items.model
    known = [field for field in model.model_fields if field != OLD_NAMES]
    for number, field in enumerate(written.fields):
        if field.partition(".")[0] not in known:
            yield Diagnostic(("fields", number), unknown_key("field", field, None, known, foreign_keys(model)))


def _read(written: AcceptedDeviation, stack: Stack, origin: str) -> DeclaredException:
    """Return an exception with its placeholders filled in, and its item as the section names it."""
    spec, item, before = stack.specs[written.section], written.item, None
    if isinstance(item, str):
        # also as it is while the default branch is unknown: the digest must not change with the name of the branch
        before = spec.normalize_key(item, unnamed(stack.values))
        item = spec.normalize_key(item, stack.values)
    before = None if before == item else before
    reason = fill(written.reason, unbranched(stack.values))
    return DeclaredException(written.section, written.until, reason, item, tuple(written.fields), origin, before)


def _idle(exception: DeclaredException, stack: Stack) -> Iterator[Diagnostic]:
    """Yield a warning about an exception for an undeclared object or field.

    In a pruned section, undeclared objects may have exceptions too.
    """
    name, item = exception.section, exception.item
    if name not in stack.sections:
        yield Diagnostic(("section",), f"{name} is not declared{NO_EFFECT}", "warning")
    elif name not in stack.prune:
        names = _names(stack, name)
        # names in lists are paths, which ignore case
        folded = str if stack.specs[name].items else str.casefold
        if stack.awaits_default_branch(name):
            return  # any name may be that of the default branch
        if item is not None and folded(str(item)) not in map(folded, names):
            guess = closest(str(item), names)
            hint = f"; did you mean `{guess}`?" if guess else ""
            yield Diagnostic(
                ("item",), f"`{item}` is not declared{NO_EFFECT} unless the inventory lists it{hint}", "warning"
            )
            return
        for number, field in enumerate(exception.fields):
            if not _declares(stack, name, item, field):
                yield Diagnostic(("fields", number), f"`{field}` is not declared{NO_EFFECT}", "warning")


def _declares(stack: Stack, name: str, item_name: Key | None, field: str) -> bool:
    """Whether a section declares a field: of the named item, or of any item if no item is named."""
    section = stack.sections[name]
    is_of_items = stack.specs[name].items is not None
    items = [item_name] if item_name is not None or not is_of_items else [*section] if isinstance(section, dict) else []
    return any(
        len(object_path(stack, name, (), item, field)) > len(object_path(stack, name, (), item, None)) for item in items
    )


def _names(stack: Stack, name: str) -> list[str]:
    """Return the names of the objects that a section declares, of lists and mappings: anything else is an error."""
    spec, section = stack.specs[name], stack.sections[name]
    fields = [section.get(field) for field in spec.lists] if isinstance(section, dict) else []
    named = [section] if spec.items else fields
    return [str(each) for names in named if isinstance(names, list | dict) for each in names]


def _same(collection: Collection, name: Key, other_name: Key) -> bool:
    return collection.identity(name) == collection.identity(other_name)


def endings(number: int, until: date, today: date) -> Iterator[Diagnostic]:
    """Yield a warning about an exception that has expired, or will within two weeks.

    Args:
        number: its position in its document.
        until: its last day.
        today: the day, UTC.
    """
    if until < today:
        message = f"this exception expired on {until}: its differences are changes again; remove it"
        yield Diagnostic((*ABOVE, number, "until"), message, "warning")
    elif until <= today + EXPIRES_SOON:
        message = f"this exception expires on {until}: its differences will be changes afterwards"
        yield Diagnostic((*ABOVE, number, "until"), message, "warning")


def _locked(exception: DeclaredException, stack: Stack) -> Iterator[Diagnostic]:
    """Yield that an exception covers what a profile or a set locks; only `validate` shows that."""
    items = stack.specs[exception.section].items
    if items is None or exception.item is None:
        locks: Iterable[Lock] = locks_of(stack)
    else:
        locks = locks_at(stack, (exception.section, exception.item))
    covered = [lock for lock in locks if _covers(exception, lock, stack)]
    if covered:
        named = listed(f"{'.'.join(map(str, lock.steps))}, {lock.words}" for lock in covered)
        yield Diagnostic((), f"this exception covers {named}", "advice")


def _covers(exception: DeclaredException, lock: Lock, stack: Stack) -> bool:
    """Return whether an exception is about a locked value."""
    section, *inner = lock.steps
    if section != exception.section:
        return False
    spec, fields = stack.specs[section], exception.fields
    if spec.items is not None:
        named = exception.item in {None, inner[0]}
        locked_fields = lock.value if isinstance(lock.value, dict) else {}
        return named and (not fields or any(field.partition(".")[0] in locked_fields for field in fields))
    if exception.item is not None:
        return isinstance(lock.value, list)
    locked = ".".join(map(str, inner))
    return not fields or any(_overlap(field, locked) for field in fields)


def _overlap(field: str, other: str) -> bool:
    """Return whether two fields are the same, or one is a key of the other."""
    return f"{field}.".startswith(f"{other}.") or f"{other}.".startswith(f"{field}.")
