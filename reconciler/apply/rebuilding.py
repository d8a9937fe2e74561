"""A change of a saved plan made anew from what it shows and from what is read: a plan is not a credential."""

from collections.abc import Callable
from dataclasses import replace

from pydantic import ValidationError

from reconciler.model.diff import differences, fields_of, resource_of
from reconciler.model.endpoints import Collection, Existing, New, Singleton
from reconciler.model.kind import Part
from reconciler.model.plan import Change, Create, Delete, Update
from reconciler.model.resource import Found, Resource
from reconciler.model.state import Reference
from reconciler.planning.parts import identity

NumberOf = Callable[[Reference], int]

EDITED = "the saved plan was edited: it would do something else than it shows; make it again"


def forgery(change: Change, part: Part, found: Found | None, number_of: NumberOf) -> str:
    """Say why a change is not the one that planning it from what it shows would come to; empty where it is.

    Args:
        change: of a saved plan; its object has not moved.
        part: where the object is.
        found: the object as it was read; None where it is to be created.
        number_of: returns the numeric ID of a path, or raises `LookupError`.
    """
    try:
        path, target_id = _path(change, part, number_of), _target_id(change, part, number_of)
    except LookupError as error:
        return f"cannot be checked: {error}"
    try:
        anew = _made_anew(change, part, found, path, target_id)
    except (ValidationError, TypeError):
        return EDITED
    return "" if anew is not None and anew == change else EDITED


def _path(change: Change, part: Part, number_of: NumberOf) -> str:
    """The part's path for writes."""
    target = change.address.target
    if isinstance(part, Collection) and part.needs_numeric_id and isinstance(target.ref, str):
        return f"{target.level}s/{number_of(Reference(target.level, target.ref.casefold()))}/{part.suffix}"
    return target.url + part.suffix


def _target_id(change: Change, part: Part, number_of: NumberOf) -> int | None:
    """The ID of the target that the name of a new object refers to."""
    name = change.address.name
    if not (isinstance(part, Collection) and part.key_level and isinstance(change, Create)):
        return None
    return number_of(Reference(part.key_level, name.casefold())) if isinstance(name, str) else name


def _made_anew(change: Change, part: Part, found: Found | None, path: str, target_id: int | None) -> Change | None:
    shown = replace(change.address, title=part.title)
    if (shown.name is None) != isinstance(part, Singleton):
        return None
    name = "" if shown.name is None else shown.name
    match change, part, found:
        case Create(), Collection(), None:
            wanted = resource_of(part.model, change.after)
            requests = part.create(New(part, shown.target, path, name, wanted, target_id))
            return replace(change, address=shown, after=fields_of(wanted), requests=requests, target_id=target_id)
        case Update(), Singleton(), Found():
            wanted = resource_of(type(found.resource), change.after)
            before, after = differences(wanted, _all_shown(found))
            return Update(shown, before, after, part.update(shown.target, wanted, found), change.read, hint=change.hint)
        case Update(), Collection(update=update), Found() if update is not None:
            wanted = resource_of(type(found.resource), change.after)
            before, after = differences(wanted, _all_shown(found))
            known = identity(part, name) in {identity(part, each) for each in found.names}
            former = None if known else found.names[0]
            requests = update(Existing(part, shown.target, path, name, wanted, found))
            return Update(shown, before, after, requests, change.read, former, change.hint)
        case Delete(), Collection(), Found():
            named = replace(shown, name=found.names[0])
            removal = Existing(part, shown.target, path, name, Resource(), found)
            return replace(change, address=named, before=fields_of(found.resource), requests=part.delete(removal))
    return None


def _all_shown(found: Found) -> Found:
    """Let fields that are not shown count as different: they were forced, or go along with another field."""
    return replace(found, unshown={})
