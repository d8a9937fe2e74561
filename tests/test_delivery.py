"""Where the values of created tokens go."""

import json
import os
import stat
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.engine.apply.sinks import TokenCommand, TokenFile
from reconciler.errors import OutputFailed
from reconciler.model.targets import Address
from tests.building import API
from tests.limits import no_file_longer_than

TOKEN = Address(API, "trigger_tokens", "trigger_tokens", "trigger token", "nightly")
LINE = {"target": "project acme/api", "section": "trigger_tokens", "description": "nightly", "token": "glptt-1"}


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


def unfit(file: Path) -> str:
    """Why a file is refused before anything is created, and that nothing happened to it."""
    mode = file.lstat().st_mode
    with pytest.raises(OutputFailed) as raised:
        TokenFile(file)
    assert file.lstat().st_mode == mode
    return str(raised.value)


def test_a_file_that_cannot_be_written_is_refused_before_anything_is_created(tmp_path: Path) -> None:
    with pytest.raises(OutputFailed) as raised:
        TokenFile(tmp_path / "none" / "tokens")
    assert str(raised.value) == f"{tmp_path}/none/tokens: No such file or directory"


def test_a_link_a_device_and_a_pipe_are_refused_and_stay_as_they_are(tmp_path: Path) -> None:
    file, link, pipe = tmp_path / "file", tmp_path / "link", tmp_path / "pipe"
    file.touch(0o600)
    link.symlink_to(file)
    os.mkfifo(pipe, 0o600)
    assert unfit(link) == f"{link} is a symbolic link; name the file itself"
    for odd in (pipe, Path("/dev/null")):
        assert unfit(odd) == f"{odd} is not a regular file; name one, or use --tokens-command"
    assert file.read_text() == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_is_refused_though_root_could_write_it(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.touch(0o600)
    os.chown(file, 65534, 65534)
    assert unfit(file) == f"{file} belongs to another user; name a file of your own"


def test_a_disk_that_is_full_leaves_no_half_line(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    deliver = TokenFile(file)
    deliver(TOKEN, "glptt-1")
    before = file.read_text()
    with no_file_longer_than(len(before) + 20), pytest.raises(OutputFailed) as raised:
        deliver(TOKEN, "glptt-2")
    assert str(raised.value) == f"{file}: File too large"
    assert file.read_text() == before
    deliver(TOKEN, "glptt-2")
    assert [json.loads(line)["token"] for line in file.read_text().splitlines()] == ["glptt-1", "glptt-2"]


def test_a_line_that_a_kill_cut_in_two_does_not_swallow_the_next_token(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    deliver = TokenFile(file)
    deliver(TOKEN, "glptt-1")
    os.truncate(file, file.stat().st_size - 5)
    deliver(TOKEN, "glptt-2")
    assert json.loads(file.read_text().splitlines()[-1]) == LINE | {"token": "glptt-2"}


def test_a_token_that_is_the_last_of_its_name_is_not_written_again(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    deliver = TokenFile(file)
    other = replace(TOKEN, name="weekly")
    for address, value in [(TOKEN, "glptt-1"), (TOKEN, "glptt-2"), (other, "glptt-3")]:
        deliver(address, value)
    file.write_text(file.read_text() + "[]\n")
    before = file.read_text()
    deliver(TOKEN, "glptt-2")
    assert file.read_text() == before
    deliver(TOKEN, "glptt-1")
    deliver(other, "glptt-1")
    assert file.read_text().startswith(before)
    assert [json.loads(line) for line in file.read_text()[len(before) :].splitlines()] == [
        LINE,
        LINE | {"description": "weekly"},
    ]


def test_a_command_gets_one_line_on_its_standard_input(tmp_path: Path) -> None:
    script = f"import sys; open({str(tmp_path / 'got')!r}, 'a').write(sys.stdin.read())"
    TokenCommand(f'{sys.executable} -c "{script}"')(TOKEN, "glptt-1")
    assert json.loads((tmp_path / "got").read_text()) == LINE


def test_a_command_gets_none_of_our_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RECONCILER_TOKEN", "RECONCILER_NOTE_TOKEN", "RECONCILER_TRIGGER_TOKEN"):
        monkeypatch.setenv(name, f"{name.lower()}-value")
    monkeypatch.setenv("COPY", "reconciler_note_token-value\n")
    monkeypatch.setenv("OF_FILE", "file-token")
    monkeypatch.setenv("VAULT_ADDR", "https://vault")
    TokenCommand(f"sh -c 'env > {tmp_path}/seen'", {"file-token"})(TOKEN, "glptt-1")
    seen = (tmp_path / "seen").read_text().splitlines()
    assert "VAULT_ADDR=https://vault" in seen
    assert [line for line in seen if "_TOKEN=" in line or line.endswith(("-value", "file-token"))] == []


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
