"""Every fault at every write: after at most three runs all is as wanted, nothing is doubled, lost or touched."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from reconciler.model.plan import TargetPlan
from reconciler.model.state import Section
from reconciler.sandbox import Sandbox
from tests.building import KINDS
from tests.engine_driver import EngineDriver, failures
from tests.trust.all_writes import essence, everything, service, undisturbed, wanted

pytestmark = pytest.mark.untraced
"""Others cover the same lines; tracing would take as long as the tests."""

FAULTS: dict[str, dict[str, Any]] = {
    "408": {"kind": "status", "status": 408},
    "409": {"kind": "status", "status": 409},
    "429": {"kind": "status", "status": 429, "retry_after": 0},
    "500": {"kind": "status", "status": 500},
    "502": {"kind": "html"},
    "503": {"kind": "status", "status": 503},
    "503 retry": {"kind": "status", "status": 503, "retry_after": 0},
    "504": {"kind": "status", "status": 504},
    "redirect": {"kind": "redirect"},
    "reset before": {"kind": "reset-before"},
    "reset after": {"kind": "reset-after"},
    "hang after": {"kind": "hang-after", "seconds": 0.01},
    "truncated": {"kind": "truncate"},
    "not json": {"kind": "not-json"},
    "slow": {"kind": "slow", "seconds": 0.01},
}
UNLIKE = ("409", "500", "503 retry", "redirect", "reset before", "reset after", "not json")
"""One fault for each way in which a write fails for what has sent it: refused; in doubt, with a status or without one; sent
again by the client; led elsewhere; carried out, with its answer lost or unreadable. The client makes the others the same."""
ALL = "trigger_tokens"
"""The kind that meets each fault: it has secrets, and requests that must not be sent twice."""
LASTING = (ALL, "protected_branches")
"""Kinds that meet faults that last: together they have all methods."""
RUNS = 3


def each_write(writes: list[tuple[str, str]]) -> list[dict[str, Any]]:
    """Return a filter for each of some writes that singles it out."""
    filters = []
    for index, (method, path) in enumerate(writes):
        earlier = [each for each in writes[:index] if each[0] == method and path in each[1]]
        filters.append({"method": method, "match": path, "nth": len(earlier) + 1})
    return filters


def runs(
    sandbox: Sandbox, sections: list[Section], fault: dict[str, Any]
) -> Iterator[tuple[EngineDriver, list[TargetPlan]]]:
    """Apply until nothing is left to do, at most three times; only the first run is disturbed."""
    with EngineDriver(sandbox, service()) as engine:
        for run in range(RUNS):
            plan = engine.plan(*sections)
            if run and not any(plan.changes) and not any(plan.problems):
                return
            sandbox.set_faults([] if run else [fault])
            yield engine, engine.apply(plan)
        sandbox.set_faults([])
        last = engine.plan(*sections)
        assert (list(last.changes), list(last.problems)) == ([], [])


def assert_nothing_is_lost(sandbox: Sandbox, sections: list[Section], fault: dict[str, Any], result: Any) -> None:
    done = list(runs(sandbox, sections, fault))
    told = "\n".join(line for _, outcomes in done for line in failures(outcomes))
    engine = done[0][0]
    assert essence(sandbox.state()) == result
    for title, secret in engine.created_secrets():
        assert secret in engine.tokens.values() or title in told


@pytest.mark.parametrize(
    ("kind", "lasting"),
    [*((kind, False) for kind in KINDS), *((kind, True) for kind in LASTING)],
    ids=[*KINDS, *(f"{kind} throughout the run" for kind in LASTING)],
)
def test_whatever_goes_wrong_at_whichever_write_nothing_is_lost(
    sandbox: Sandbox, kind: str, lasting: bool, record_property: Callable[[str, object], None]
) -> None:
    sections = list(wanted(kind))
    writes, result = undisturbed(sandbox, *sections)
    every = (
        [{"method": method, "match": path} for method, path in dict.fromkeys(writes)] if lasting else each_write(writes)
    )
    faults = FAULTS if kind == ALL else UNLIKE
    for name in faults:
        for chosen in every:
            assert_nothing_is_lost(sandbox, sections, FAULTS[name] | chosen, result)
    record_property("combinations of faults and writes survived", len(faults) * len(every))


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("name", ["500", "reset after"])
def test_whatever_goes_wrong_in_one_section_the_others_are_applied(sandbox: Sandbox, name: str, method: str) -> None:
    writes, result = undisturbed(sandbox, *everything())
    assert method in dict(writes)
    assert_nothing_is_lost(sandbox, everything(), FAULTS[name] | {"method": method}, result)
