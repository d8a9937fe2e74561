"""Where the values of created tokens go."""

import json
import stat
import sys
from pathlib import Path

import pytest

from reconciler.address import Address
from reconciler.delivery import TokenCommand, TokenFile
from reconciler.errors import OutputFailed
from tests.building import API

TOKEN = Address(API, "trigger_tokens", "trigger_tokens", "trigger token", "nightly")
LINE = {"target": "project acme/api", "description": "nightly", "token": "glptt-1"}


def test_tokens_are_appended_to_a_file_that_only_its_owner_reads(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    deliver = TokenFile(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text() == ""
    deliver(TOKEN, "glptt-1")
    deliver(TOKEN, "glptt-2")
    assert [json.loads(line) for line in file.read_text().splitlines()] == [LINE, LINE | {"token": "glptt-2"}]


def test_a_file_that_others_may_read_is_refused_before_anything_is_created(tmp_path: Path) -> None:
    file = tmp_path / "tok ens"
    file.touch(mode=0o644)
    with pytest.raises(OutputFailed) as raised:
        TokenFile(file)
    assert str(raised.value) == f"{file} may be read by others; first: chmod 600 '{file}'"


def test_a_file_that_cannot_be_written_is_refused_before_anything_is_created(tmp_path: Path) -> None:
    with pytest.raises(OutputFailed) as raised:
        TokenFile(tmp_path / "none" / "tokens")
    assert str(raised.value) == f"{tmp_path}/none/tokens: No such file or directory"


def test_a_command_gets_one_line_on_its_standard_input(tmp_path: Path) -> None:
    script = f"import sys; open({str(tmp_path / 'got')!r}, 'a').write(sys.stdin.read())"
    TokenCommand(f'{sys.executable} -c "{script}"')(TOKEN, "glptt-1")
    assert json.loads((tmp_path / "got").read_text()) == LINE


def test_a_command_that_fails_says_so_without_the_token() -> None:
    with pytest.raises(OutputFailed) as raised:
        TokenCommand("sh -c 'cat; exit 3'")(TOKEN, "glptt-1")
    assert str(raised.value) == "sh ended with exit code 3"


def test_a_command_that_is_not_there_says_so() -> None:
    with pytest.raises(OutputFailed) as raised:
        TokenCommand("/no/such/command --now")(TOKEN, "glptt-1")
    assert str(raised.value) == "/no/such/command: No such file or directory"


def test_a_command_that_does_not_end_is_given_up() -> None:
    with pytest.raises(OutputFailed) as raised:
        TokenCommand("sleep 30", seconds=0.05)(TOKEN, "glptt-1")
    assert str(raised.value) == "sleep did not end within 0.05 s"


@pytest.mark.parametrize("command", ["", "  ", "'unclosed"])
def test_a_command_without_words_is_refused_before_anything_is_created(command: str) -> None:
    with pytest.raises(OutputFailed) as raised:
        TokenCommand(command)
    assert str(raised.value) == f"not a command: {command}"
