"""The exact traffic of the main commands on the example group, pinned.

The cassettes are recorded against the sandbox, with one worker so that the order is fixed, and played back without it:

    RECORD=1 python -m pytest tests/test_cassettes.py
"""

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import vcr
import yaml

from reconciler.model.protocols import Begin
from reconciler.service.connection import Connection
from reconciler.service.responses import Response
from tests.cli_runner import CliRunner
from tests.conftest import EXAMPLES

CASSETTES = Path(__file__).parent / "cassettes"
RECORD = "RECORD" in os.environ
NOWHERE = "http://127.0.0.1:9/api/v4"
SECRET = re.compile(r'("token": ?")[^"]*')

STEPS = {
    "validate": "validate",
    "plan": "plan --concurrency 1",
    "apply": "apply --concurrency 1 --yes --tokens-to tokens",
    "plan-again": "plan --concurrency 1",
}


def without_secrets(response: dict[str, Any]) -> dict[str, Any]:
    body = response["body"]["string"]
    response["body"]["string"] = SECRET.sub(r"\1glptt-withheld", body.decode()).encode()
    response["headers"] = {name: value for name, value in response["headers"].items() if name.lower() in KEPT}
    return response


KEPT = {"content-type", "x-next-page", "x-page", "x-per-page", "x-total", "x-total-pages"}


@contextmanager
def cassette(step: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Record or play back what goes over the connections: vcrpy itself patches only what httpx brings along."""
    if RECORD:
        (CASSETTES / f"{step}.yaml").unlink(missing_ok=True)
    recorder = vcr.VCR(
        cassette_library_dir=str(CASSETTES),
        record_mode=vcr.mode.ALL if RECORD else vcr.mode.NONE,
        match_on=["method", "path", "query", "body"],
        filter_headers=["private-token", "user-agent", "host"],
        before_record_response=without_secrets,
    )
    exchange = Connection.exchange

    def taped(
        self: Connection, method: str, path: str, headers: Mapping[str, str], body: Any, begin: Begin | None
    ) -> Response:
        content = b"" if body is None else json.dumps(body).encode()
        request = vcr.request.Request(method, f"{NOWHERE}/{path}", content, dict(headers))
        if RECORD:
            sent = exchange(self, method, path, headers, body, begin)
            shown = {name: [value] for name, value in sent.headers.items()}
            status = {"code": sent.status, "message": sent.phrase}
            tape.append(request, {"status": status, "headers": shown, "body": {"string": sent.body}})
            return sent
        played = tape.play_response(request)
        received = {name.lower(): values[0] for name, values in played["headers"].items()}
        return Response(played["status"]["code"], played["status"]["message"], received, played["body"]["string"])

    with recorder.use_cassette(f"{step}.yaml") as tape, monkeypatch.context() as patch:
        patch.setattr(Connection, "exchange", taped)
        yield tape


@pytest.mark.untraced
def test_the_traffic_of_the_main_commands_is_as_it_was(cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    cli_runner.sandbox.replace_state(yaml.safe_load((EXAMPLES / "state.yaml").read_text()))
    requests, outputs = {}, {}
    for step, line in STEPS.items():
        with cassette(step, monkeypatch) as tape:
            done = cli_runner(
                f"{line} {EXAMPLES / 'acme'}", *([] if RECORD or step == "validate" else ["--api-url", NOWHERE])
            )
            assert RECORD or tape.all_played or not len(tape)
            requests[step] = len(tape)
        assert (done.code, done.err) == (0, "")
        outputs[step] = done.out
    assert requests == {"validate": 0, "plan": 26, "apply": 26 + 2 + 24 + 23, "plan-again": 22}
    assert outputs["validate"] == "Valid: 5 documents: 1 group, 3 projects, 1 profile.\n"
    assert outputs["plan"].endswith("26 requests were made to plan.\n")
    assert "No changes: 4 targets are in order" in outputs["plan-again"]


def test_no_cassette_holds_a_secret() -> None:
    for file in CASSETTES.iterdir():
        text = file.read_text()
        assert "ada-token" not in text
        assert "rivate-" not in text
        assert set(re.findall(r"glptt-[\w-]+", text)) <= {"glptt-withheld"}
        assert json.dumps("PRIVATE-TOKEN") not in text
