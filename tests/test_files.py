"""A file is written whole or not at all, and nothing else is touched."""

import os
import stat
from pathlib import Path

import pytest

from reconciler.errors import OutputFailed
from reconciler.system.files import is_linked, save, save_all
from tests.limits import no_file_longer_than


def everything(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_file_is_replaced_and_keeps_its_mode_and_folders_are_made(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        save(tmp_path / "a/b/new", "one\n")
    finally:
        os.umask(before)
    file = tmp_path / "a/b/new"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    file.chmod(0o604)
    number = file.stat().st_ino
    save(file, "two\n")
    assert (stat.S_IMODE(file.stat().st_mode), file.stat().st_ino == number) == (0o604, False)
    assert everything(tmp_path) == {"a/b/new": "two\n"}


def test_of_several_files_none_is_written_if_one_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").mkdir()
    (tmp_path / "c").write_text("file")
    for path, reason in (("b.yaml", "Is a directory"), ("c/d", "File exists"), ("x" * 256, "File name too long")):
        with pytest.raises(OutputFailed, match=f"{path}: {reason}"):
            save_all({tmp_path / "a": "new", tmp_path / path: "new", tmp_path / "e": "new"})
        assert everything(tmp_path) == {"c": "file"}


def test_a_link_is_replaced_and_what_it_leads_to_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "plan.json").symlink_to("precious")
    (tmp_path / ".plan.json.partial").symlink_to("precious")
    save(tmp_path / "plan.json", "plan")
    assert not (tmp_path / "plan.json").is_symlink()
    assert everything(tmp_path) == {".plan.json.partial": "precious", "plan.json": "plan", "precious": "precious"}


def test_devices_and_pipes_are_written_to_as_they_are(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    save(pipe, "through\n")
    assert os.read(reader, 100) == b"through\n"
    os.close(reader)
    save(Path("/dev/null"), "away")
    assert pipe.is_fifo()
    assert Path("/dev/null").is_char_device()
    with pytest.raises(OutputFailed, match=r"^/dev/full: No space left on device$"):
        save(Path("/dev/full"), "anything")


def test_an_open_file_is_appended_to_by_its_handle(tmp_path: Path) -> None:
    """As `/dev/stdout` is one where standard output goes to a file."""
    file = tmp_path / "out"
    with file.open("w") as out:
        out.write("before\n")
        out.flush()
        save(Path(f"/proc/self/fd/{out.fileno()}"), "after\n")
    assert everything(tmp_path) == {"out": "before\nafter\n"}


def test_a_disk_that_is_full_leaves_what_was_there_and_nothing_else(tmp_path: Path) -> None:
    save(tmp_path / "report", "whole\n")
    with no_file_longer_than(1000), pytest.raises(OutputFailed, match=r"report: File too large$"):
        save(tmp_path / "report", "x" * 2000)
    assert everything(tmp_path) == {"report": "whole\n"}


def test_what_cannot_be_a_file_is_named(tmp_path: Path) -> None:
    save(tmp_path / "file", "")
    for name, said in {"file/below": "File exists", ".": "Is a directory", "x" * 300: "File name too long"}.items():
        with pytest.raises(OutputFailed) as raised:
            save(tmp_path / name, "text")
        assert str(raised.value) == f"{tmp_path / name}: {said}"
    assert everything(tmp_path) == {"file": ""}


def test_a_file_without_a_root_counts_as_linked(tmp_path: Path) -> None:
    assert is_linked(tmp_path / "elsewhere" / "file", [tmp_path / "here"])
    assert not is_linked(tmp_path / "here" / "file", [tmp_path / "here"])
