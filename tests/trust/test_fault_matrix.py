"""Every fault at every write: after at most three runs all is as wanted, nothing is doubled, lost or touched."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from reconciler.apply import TargetOutcome
from reconciler.sandbox import Sandbox
from tests.engine_driver import PREFIX, EngineDriver, failures
from tests.trust.all_writes import essence, service, wanted

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
RUNS = 3


def undisturbed(sandbox: Sandbox) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the filters that single out each write of an apply, and what the apply comes to."""
    with EngineDriver(sandbox, service()) as engine:
        assert failures(engine.apply(engine.plan(*wanted()))) == []
        log = sandbox.log()
        result = essence(sandbox.state())
    writes = [(entry["method"], entry["target"].removeprefix(PREFIX)) for entry in log if entry["method"] != "GET"]
    filters = []
    for index, (method, path) in enumerate(writes):
        earlier = [each for each in writes[:index] if each[0] == method and path in each[1]]
        filters.append({"method": method, "match": path, "nth": len(earlier) + 1})
    return filters, result


def runs(sandbox: Sandbox, fault: dict[str, Any]) -> Iterator[tuple[EngineDriver, list[TargetOutcome]]]:
    """Apply until nothing is left to do, at most three times; only the first run is disturbed."""
    with EngineDriver(sandbox, service()) as engine:
        for run in range(RUNS):
            plan = engine.plan(*wanted())
            if run and not any(plan.changes) and not any(plan.problems):
                return
            sandbox.set_faults([] if run else [fault])
            yield engine, engine.apply(plan)
        sandbox.set_faults([])
        last = engine.plan(*wanted())
        assert (list(last.changes), list(last.problems)) == ([], [])


def assert_nothing_is_lost(engine: EngineDriver, result: dict[str, Any], told: str) -> None:
    state = engine.sandbox.state()
    assert essence(state) == result
    for token in state["projects"][0]["trigger_tokens"]:
        if token["description"] in ("new", "newer"):
            assert token["token"] in engine.tokens.values() or f"trigger token {token['description']}" in told


@pytest.mark.parametrize("lasting", [False, True], ids=["once", "throughout the run"])
@pytest.mark.parametrize("name", FAULTS)
def test_whatever_goes_wrong_at_whichever_write_nothing_is_lost(
    sandbox: Sandbox, name: str, lasting: bool, record_property: Callable[[str, object], None]
) -> None:
    filters, result = undisturbed(sandbox)
    assert len(filters) == 23
    for chosen in filters:
        fault = FAULTS[name] | chosen
        if lasting:
            del fault["nth"]
        done = list(runs(sandbox, fault))
        told = "\n".join(line for _, outcomes in done for line in failures(outcomes))
        assert_nothing_is_lost(done[0][0], result, told)
    record_property("combinations of faults and writes survived", len(filters))
