"""A run that creates groups and projects, cut off or disturbed at each write: the next one ends in the same state."""

from pathlib import Path
from typing import Any

import pytest

from reconciler.engine.apply import recover
from reconciler.engine.apply.journal import Intent, Interrupted, Journal
from reconciler.model.creation import Creation
from reconciler.model.protocols import Json, Request
from reconciler.model.state import DesiredTarget
from reconciler.sandbox import Sandbox
from reconciler.service import Client
from tests.building import KINDS
from tests.engine_driver import EngineDriver
from tests.service.clock import SwiftClock
from tests.states import a_small_service
from tests.trust.all_writes import essence
from tests.trust.creating import applied, from_github, new, plan_of, results
from tests.trust.test_archives import LARGE, from_archive, with_archive
from tests.trust.test_crash import VERDICTS, Killed
from tests.trust.test_fault_matrix import FAULTS, RUNS
from tests.trust.test_importing import REPOSITORIES, SECRET


class Mortal(Client):
    """A client whose process is killed at a certain write, before or after the service has carried it out."""

    def __init__(self, api_url: str, moment: str, write: int) -> None:
        super().__init__(api_url, "ada-token", clock=SwiftClock())
        self.moment, self.left = moment, write

    def send(self, request: Request, **more: Any) -> Json:
        self.left -= 1
        if self.left < 0 or (self.left == 0 and self.moment == "before"):
            raise Killed
        answer = super().send(request, **more)
        if self.left == 0:
            raise Killed
        return answer


def prepared(engine: EngineDriver) -> tuple[DesiredTarget, ...]:
    """Return all that can be created, for a service that has what it is made of."""
    with_archive(
        engine,
        LARGE,
        group_imports={"looks": 24},
        imports={"tokens": [SECRET], "repositories": REPOSITORIES},
        import_sources=["github"],
    )
    return (
        new("acme/NEW", from_archive(), notification_settings={"level": "watch"}),
        new("acme/NEW/SUB", Creation("SUB")),  # comes with the archive
        new("acme/NEW/SUB/own", milestones={"1.0": {}}, trigger_tokens={"t": {}}),
        new("acme/EMPTY"),
        new("acme/EMPTY/a", from_github(42), milestones={"1.0": {"due_date": "2026-12-01"}}),
        new("acme/lib", None, job_token_scope={"projects": ["acme/EMPTY/a", "acme/NEW/SUB/own"]}),
    )


@pytest.fixture(autouse=True)
def _surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GITHUB_TOKEN", SECRET)


def outcome(sandbox: Sandbox) -> Any:
    """Return the essence of a state; the IDs of projects depend on the order in which they are created."""
    state = sandbox.state()
    paths = {each["id"]: each["path"] for each in state["projects"]}
    for project in state["projects"]:
        del project["last_activity_at"]
        scope = project.get("job_token_scope", {})
        scope["project_allowlist"] = sorted(paths[number] for number in scope.get("project_allowlist", ()))
    return essence(state)


def undisturbed(sandbox: Sandbox) -> tuple[list[dict[str, Any]], Any]:
    """Return the writes of a run, and the essence of its result."""
    with EngineDriver(sandbox, a_small_service("deployed")) as engine:
        wanted = prepared(engine)
        applied(engine, plan_of(engine, *wanted))
        writes = [each for each in sandbox.log() if each["method"] != "GET"]
        assert [*plan_of(engine, *wanted).changes] == []
        return writes, outcome(sandbox)


@pytest.mark.parametrize("moment", [pytest.param("before", marks=pytest.mark.untraced), "after"])
def test_killed_at_any_write_the_next_run_creates_nothing_twice(sandbox: Sandbox, tmp_path: Path, moment: str) -> None:
    writes, result = undisturbed(sandbox)
    assert len(writes) == 10
    for write in range(1, len(writes) + 1):
        file = tmp_path / f"{write}.jsonl"
        with EngineDriver(sandbox, a_small_service("deployed")) as engine:
            wanted = prepared(engine)
            plan = plan_of(engine, *wanted)
            engine.client.__exit__()
            engine.client = Mortal(sandbox.api_url, moment, write)
            with (
                pytest.raises(Killed),
                Journal(file) as journal,
                journal.run(sandbox.api_url, "digest") as engine.write_log,
            ):
                applied(engine, plan)
        assert SECRET not in file.read_text()
        with Client(sandbox.api_url, "ada-token", clock=SwiftClock()) as client, Journal(file) as journal:
            engine.client = client
            assert journal.interrupted is not None
            assert journal.interrupted.done == write - 1
            (found,) = recover(journal.interrupted, client, KINDS, engine.deliver)
            assert found.verdict.startswith(VERDICTS[moment])
            with journal.run(sandbox.api_url, "digest") as engine.write_log:
                done = results(applied(engine, plan_of(engine, *wanted)))
                assert [each for each in done if " done" not in each] == []
        assert outcome(sandbox) == result


@pytest.mark.untraced
@pytest.mark.parametrize(("name", "lasting"), [("500", False), ("504", True), ("reset after", True)])
def test_whatever_goes_wrong_at_whichever_creation_nothing_is_created_twice(
    sandbox: Sandbox, name: str, lasting: bool
) -> None:
    writes, result = undisturbed(sandbox)
    places = ["/groups/import", "/groups", "/import/github", "/projects"]
    assert {each["target"].removeprefix("/api/v4") for each in writes[:4]} == {*places}
    for place in places:
        with EngineDriver(sandbox, a_small_service("deployed")) as engine:
            wanted = prepared(engine)
            plan = plan_of(engine, *wanted)
            sandbox.set_faults([FAULTS[name] | {"method": "POST", "match": place} | ({} if lasting else {"nth": 1})])
            for _ in range(RUNS):
                applied(engine, plan)
                sandbox.set_faults([])
                plan = plan_of(engine, *wanted)
            assert [*plan.changes] == []
            assert outcome(sandbox) == result


def test_a_creation_of_an_earlier_run_that_cannot_be_looked_for_stays_in_doubt(engine: EngineDriver) -> None:
    (change,) = plan_of(engine, new("acme/NEW")).changes
    left = Interrupted("", None, 0, (Intent.of(change, change.requests[0]),))
    assert [str(each) for each in recover(left, engine.client, KINDS, None)] == [
        "Unconfirmed write POST groups (group acme/NEW, 'acme/NEW'): it did not succeed."
    ]
    engine.sandbox.set_faults([{"kind": "status", "status": 403}])
    (found,) = recover(left, engine.client, KINDS, None)
    assert (found.verdict, found.settled) == (
        "unknown; it could not be checked: GET groups/acme%2FNEW: 403 Forbidden",
        False,
    )
