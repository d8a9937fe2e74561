"""Building the engine's values from plain data, the way manifests and answers would."""

from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter

from reconciler.kinds import all_kinds
from reconciler.live.read import learn_ids
from reconciler.model.diff import AsRead
from reconciler.model.kind import Kinds
from reconciler.model.state import DesiredState, LivePart, LiveState, Reference, Section, Target, Unknown
from reconciler.model.targets import Level, Scope

KINDS: Kinds = all_kinds()

API = Scope(Level.PROJECT, "acme/api")
ACME = Scope(Level.GROUP, "acme")
USER = Scope(Level.USER)

READ = AsRead(1, ("x",), {}, {})
"""What was read of an object, where a test does not care."""


def section(kind: str, value: Any, scope: Scope = API, *, prune: bool = False) -> Section:
    """Return a declared section of a target."""
    checked = TypeAdapter(KINDS[kind].models[scope.level]).validate_python(value)
    return Section(scope, kind, KINDS[kind].split(checked, prune), prune)


def desired(*sections: Section) -> DesiredState:
    """Return the desired state of all targets of some sections."""
    scopes = dict.fromkeys(each.scope for each in sections)
    targets = [Target(scope, tuple(each for each in sections if each.scope == scope)) for scope in scopes]
    return DesiredState(tuple(targets), "digest")


def live(
    answers: Mapping[tuple[Scope, str, str], Any], ids: Mapping[Reference, int | Unknown] | None = None
) -> LiveState:
    """Return live state decoded from the service's answers; what is no JSON is taken as it is."""
    parts: dict[tuple[Scope, str, str], LivePart] = {}
    for (scope, kind, name), answer in answers.items():
        part = KINDS[kind].part(name)
        match answer:
            case dict():
                parts[scope, kind, name] = part.decode(scope, answer)
            case list():
                parts[scope, kind, name] = tuple(part.decode(scope, entry) for entry in answer)
            case _:
                parts[scope, kind, name] = answer
    return LiveState(parts, {**learn_ids(parts, KINDS), **(ids or {})})
