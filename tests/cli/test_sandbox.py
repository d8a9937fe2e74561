"""`sandbox`, `schema` and `demo`."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
import yaml

from reconciler.sandbox import generate
from tests.cli_runner import CliRunner
from tests.conftest import EXAMPLES

STORY = Path(__file__).with_name("demo.txt")


@pytest.mark.processes
def test_the_sandbox_serves_until_ctrl_c(cli_runner: CliRunner) -> None:
    cli_runner.write("state.yaml", "users: [{username: eve, tokens: [eve-token]}]\n")
    line = [sys.executable, "-m", "reconciler", "sandbox", "--port", "0", "--state", "state.yaml", "--workers", "1"]
    process = subprocess.Popen(line, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    said = process.stderr.readline()
    url = re.findall(r"http://\S+?(?=;)", said)[0]
    assert said == f"Serving {url}; tokens are in state.yaml. Ctrl-C ends it.\n"
    answer = httpx.get(f"{url}/user", headers={"PRIVATE-TOKEN": "eve-token"})
    assert answer.json()["username"] == "eve"
    assert answer.elapsed.total_seconds() >= 0.06
    process.send_signal(signal.SIGINT)
    assert (process.wait(), process.stderr.read()) == (0, "")
    process.stderr.close()


@pytest.mark.untraced
def test_the_sandbox_serves_a_fleet_of_any_size_in_either_dialect(cli_runner: CliRunner) -> None:
    line = [sys.executable, "-m", "reconciler", "sandbox", "--port", "0", "--generate", "12", "--seed", "7"]
    line += ["--workers", "2", "--cost", "0"]
    with subprocess.Popen([*line, "--dialect", "deployed"], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = process.stderr.readline()
        url = re.findall(r"http://\S+?(?=;)", said)[0]
        assert said == f"Serving {url}; the token is ada-token. Ctrl-C ends it.\n"
        state = httpx.get(url.replace("/api/v4", "/-/state")).json()
        process.send_signal(signal.SIGINT)
    assert (state["instance"]["dialect"], len(state["projects"])) == ("deployed", 12)
    cli_runner.sandbox.replace_state({**generate(12, 7), "instance": state["instance"]})
    assert state == cli_runner.sandbox.state()


@pytest.mark.untraced
@pytest.mark.parametrize("dialect", ["spec", "deployed"])
def test_a_made_up_fleet_can_be_exported_and_is_then_as_declared(cli_runner: CliRunner, dialect: str) -> None:
    fleet = generate(12, 7)
    cli_runner.sandbox.replace_state({**fleet, "instance": {**fleet["instance"], "dialect": dialect}})
    assert cli_runner("export --group acme -o manifests").code == 0
    done = cli_runner("plan manifests --detailed-exitcode")
    assert (
        done.code,
        "\nNo changes: 13 targets are in order, 2 unmanaged, 4 lists with entries that this token cannot see. "
        in done.out,
    ) == (0, True)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("--state state.yaml --generate 3", "sandbox takes --state or --generate, not both"),
        ("--seed 3", "--seed needs --generate N"),
    ],
)
def test_options_of_a_made_up_fleet_are_checked(cli_runner: CliRunner, options: str, reason: str) -> None:
    done = cli_runner(f"sandbox --port 0 {options}")
    assert (done.code, done.out, done.err) == (64, "", f"reconciler: {reason}\n")


def test_a_state_that_is_none_is_refused(cli_runner: CliRunner) -> None:
    cli_runner.write("state.yaml", "users: 3\n")
    done = cli_runner("sandbox --port 0 --state state.yaml")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("reconciler: state.yaml: users")


def test_a_port_that_is_taken_is_named(cli_runner: CliRunner) -> None:
    port = cli_runner.sandbox.base_url.rpartition(":")[2]
    done = cli_runner(f"sandbox --port {port}")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"reconciler: --port {port}: in use")


@pytest.mark.untraced
def test_schemas_are_printed_one_or_all_or_written(cli_runner: CliRunner) -> None:
    everything = json.loads(cli_runner("schema").out)
    assert json.loads(cli_runner("schema plan").out) == everything["plan.schema.json"]
    assert cli_runner("schema --write schemas").out == ""
    assert {file.name: json.loads(file.read_text()) for file in Path("schemas").iterdir()} == everything


def test_the_demo_tells_its_whole_story(cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "CI": "true",
        "GITLAB_CI": "true",
        "CI_API_V4_URL": "https://gitlab.example.com/api/v4",
    }.items():
        monkeypatch.setenv(name, value)  # it takes no notice of the job that runs it
    os.environ["RECONCILER_CONCURRENCY"] = "4"
    done = cli_runner("demo")
    assert os.environ.pop("RECONCILER_CONCURRENCY") == "4"
    assert (done.code, done.err) == (0, "")
    assert done.out == STORY.read_text()


@pytest.mark.untraced
def test_every_example_can_be_planned_applied_and_is_in_order_then(cli_runner: CliRunner) -> None:
    for example in sorted([*EXAMPLES.glob("*.yaml"), EXAMPLES / "acme"]):
        if example.name == "state.yaml":
            continue
        cli_runner.sandbox.replace_state(yaml.safe_load((EXAMPLES / "state.yaml").read_text()))
        assert cli_runner(f"drift {example}").code == 2, example
        assert cli_runner(f"apply {example} --yes --tokens-to tokens").code == 0, example
        assert cli_runner(f"drift {example}").code == 0, example
