"""An apply that is cut off at any request: the next run converges, and the journal tells what was in doubt."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reconciler.engine.apply import recover
from reconciler.engine.apply.journal import Journal
from reconciler.model.protocols import Json, Request
from reconciler.sandbox import Sandbox
from reconciler.service import Client
from tests.building import KINDS
from tests.cli_runner import CliRunner
from tests.engine_driver import EngineDriver, failures
from tests.service.clock import SwiftClock
from tests.trust.all_writes import essence, service, undisturbed, wanted

pytestmark = pytest.mark.untraced


class Killed(BaseException):
    """What nothing catches, as nothing catches SIGKILL."""


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


VERDICTS = {"before": "it did not succeed", "after": "it succeeded"}


@pytest.mark.parametrize("moment", VERDICTS)
@pytest.mark.parametrize("kind", KINDS)
def test_killed_at_any_request_the_next_run_converges(
    sandbox: Sandbox, tmp_path: Path, kind: str, moment: str, record_property: Callable[[str, object], None]
) -> None:
    sections = wanted(kind)
    writes, result = undisturbed(sandbox, *sections)
    for write in range(1, len(writes) + 1):
        file = tmp_path / f"{write}.jsonl"
        with EngineDriver(sandbox, service(), Mortal(sandbox.api_url, moment, write)) as engine:
            plan = engine.plan(*sections)
            several = {change.address for change in plan.changes if len(change.requests) > 1}
            with (
                pytest.raises(Killed),
                Journal(file) as journal,
                journal.run(sandbox.api_url, "digest") as engine.write_log,
            ):
                engine.apply(plan)
            delivered = dict(engine.tokens)
        with Client(sandbox.api_url, "ada-token") as client, Journal(file) as journal:
            engine.client = client
            assert journal.interrupted is not None
            assert journal.interrupted.done == write - 1
            found, *_ = recover(journal.interrupted, client, KINDS, engine.deliver)
            assert found.verdict.startswith(VERDICTS[moment]) or found.intent.change.address in several
            with journal.run(sandbox.api_url, "digest") as engine.write_log:
                assert failures(engine.apply(engine.plan(*sections))) == []
        with Journal(file) as journal:
            assert journal.interrupted is None
        assert essence(sandbox.state()) == result
        assert set(engine.tokens.values()) == {secret for _, secret in engine.created_secrets()}
        assert delivered.items() <= engine.tokens.items()
    record_property("kills at request boundaries survived", len(writes))


def test_a_process_that_is_really_killed_leaves_a_journal_for_the_next_one(cli_runner: CliRunner) -> None:
    cli_runner.project("{trigger_tokens: {t1: {}, t2: {}}, milestones: {a: {}}}")
    os.mkfifo("gate")
    line = [sys.executable, "-m", "reconciler", "apply", "--yes", "--journal", "journal"]
    line += ["--tokens-command", "sh -c 'cat >/dev/null; echo waiting >&2; read x <gate'"]
    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "waiting\n"
        process.send_signal(signal.SIGKILL)
        Path("gate").write_text("\n")
    done = cli_runner("apply --yes --journal journal --tokens-to tokens")
    assert (done.code, done.out.count("done")) == (0, 1)
    first, second = done.err.splitlines()
    assert first.startswith("The run that began at ")
    assert first.endswith(" was cut off: 1 write certainly succeeded, 1 write left unconfirmed.")
    assert second == (
        "Unconfirmed write POST projects/acme%2Fapi/triggers (project acme/api, 't1'): it succeeded, and its value was "
        "delivered now."
    )
    lines = Path("tokens").read_text()
    tokens = cli_runner.sandbox.state()["projects"][0]["trigger_tokens"]
    assert [each["description"] for each in tokens if each["token"] in lines] == ["t1", "t2"]
    assert not [each for each in tokens if each["token"] in Path("journal").read_text()]
