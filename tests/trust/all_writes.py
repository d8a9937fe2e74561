"""The examples as work to do: together they hold every sort of write of every kind, in the state that goes with them."""

import json
from copy import deepcopy
from functools import cache
from typing import Any

import yaml

from reconciler.manifests import Inputs, read_manifests
from reconciler.model.state import Section
from reconciler.sandbox import Sandbox
from tests.building import KINDS
from tests.conftest import EXAMPLES
from tests.engine_driver import PREFIX, EngineDriver, failures

MADE_ANEW = ("id", "iid", "token", "created_at", "updated_at", "closed_at", "now")
"""Fields whose values differ from run to run, or with what was created and deleted in between."""


def service(dialect: str = "deployed") -> dict[str, Any]:
    """Return a state in which everything that the examples declare is still to be done."""
    state = deepcopy(_state())
    state["instance"]["dialect"] = dialect
    return state


@cache
def _state() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((EXAMPLES / "state.yaml").read_text())
    return found


@cache
def wanted(kind: str) -> tuple[Section, ...]:
    """Return what the example of a kind declares."""
    targets = read_manifests(Inputs([EXAMPLES / f"{kind}.yaml"], KINDS)).desired.targets
    return tuple(section for target in targets for section in target.sections)


def everything() -> list[Section]:
    """Return what all examples declare."""
    return [section for kind in KINDS for section in wanted(kind)]


def undisturbed(sandbox: Sandbox, *sections: Section) -> tuple[list[tuple[str, str]], Any]:
    """Apply sections; return the method and path of each write, and the essence of the result."""
    with EngineDriver(sandbox, service()) as engine:
        assert failures(engine.apply(engine.plan(*sections))) == []
        log = sandbox.log()
        result = essence(sandbox.state())
    return [(each["method"], each["target"].removeprefix(PREFIX)) for each in log if each["method"] != "GET"], result


def essence(value: Any) -> Any:
    """Return a state without what each run makes anew; the order of a list means nothing."""
    match value:
        case dict():
            return {name: essence(inner) for name, inner in value.items() if name not in MADE_ANEW}
        case list():
            return sorted(map(essence, value), key=lambda each: json.dumps(each, sort_keys=True, default=str))
    return value
