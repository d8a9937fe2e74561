"""Every page works as printed: its lines are run as they stand, in order, in one folder, against sandboxes."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from reconciler.sandbox import Sandbox
from tests.docs.pages import PAGES, ROOT, SHELL, SHOWN, Block, blocks, steps
from tests.docs.shell import CHECKOUT, Shell

pytestmark = pytest.mark.untraced

NOT_RUN = 8
"""The number of blocks that no test runs; each has its reason on the page."""

HOW_TO = ROOT / "docs" / "how-to"
REHEARSAL = HOW_TO / "rehearse.md"
TUTORIAL, STORY = ROOT / "docs" / "tutorial.md", ROOT / "docs" / "fleet.md"

START = next(blocks(REHEARSAL))
"""The lines that start a fresh sandbox."""

EVERYTHING = [block for page in PAGES for block in blocks(page)]


@pytest.fixture
def shell(tmp_path: Path, sandbox: Sandbox, program: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    """The shell of one page."""
    with Shell(tmp_path, sandbox, program, monkeypatch) as shell:
        yield shell


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_says_is_what_comes_and_the_page_cleans_up(page: Path, shell: Shell, tmp_path: Path) -> None:
    if begins_afresh(page):
        shell.do(START)
    for block in blocks(page):
        shell.do(block)
    if page.parent == HOW_TO or page in (TUTORIAL, STORY):
        text = page.read_text(encoding="utf-8") + (REHEARSAL.read_text(encoding="utf-8") if begins_afresh(page) else "")
        left = [each.name for each in tmp_path.iterdir() if each.name not in CHECKOUT]
        assert [name for name in left if f"rm -r ~/{name}`" not in text] == []


def begins_afresh(page: Path) -> bool:
    """Whether a page says that it begins in a fresh sandbox."""
    return "rehearse.md#follow-a-page).\n" in page.read_text(encoding="utf-8")


def test_every_page_with_steps_to_follow_says_where_it_begins() -> None:
    folders = [HOW_TO, ROOT / "examples"]
    followed = [
        page for page in PAGES if any(page.is_relative_to(each) for each in folders) and any(map(runs, blocks(page)))
    ]
    assert [page for page in followed if page != REHEARSAL] == [page for page in PAGES if begins_afresh(page)]


def runs(block: Block) -> bool:
    return block.language in SHELL and not block.not_run


def test_what_is_not_run_is_counted_and_has_its_reason() -> None:
    passed_over = [f"{each.place}: {each.not_run}" for each in EVERYTHING if each.not_run]
    assert len(passed_over) == NOT_RUN, passed_over


def test_every_block_says_what_it_is() -> None:
    assert [each.place for each in EVERYTHING if each.language not in (*SHELL, *SHOWN)] == []
    assert [each.place for each in EVERYTHING if each.language == "cron" and not each.not_run] == []


def test_no_command_hides_where_it_is_not_run() -> None:
    hidden = [
        f"{each.place}: {line}"
        for each in EVERYTHING
        if each.language not in (*SHELL, "cron", "dockerfile", "yaml") and "docs/reference/" not in each.place
        for line in each.text.splitlines()
        if line.lstrip().startswith(("reconciler ", "$ ", "git ", "export "))
    ]
    assert hidden == []


def test_no_page_and_no_ready_pipeline_needs_more_than_six_options_in_one_command() -> None:
    lines = [step.line for block in EVERYTHING if block.language in SHELL for step in steps(block)]
    for file in (*ROOT.glob("templates/*.yml"), *ROOT.glob("examples/ci/*")):
        lines += file.read_text(encoding="utf-8").splitlines()
    commands = [command for line in lines for command in re.findall(r"reconciler [^|&]*", line)]
    assert len(commands) > 100
    assert [command for command in commands if len(re.findall(r" --?[a-z]", command)) > 6] == []


@pytest.mark.parametrize(
    "block", [each for each in EVERYTHING if each.language in ("yaml", "json")], ids=lambda it: it.place
)
def test_what_is_shown_can_be_read(block: Block) -> None:
    read = json.loads if block.language == "json" else lambda text: list(yaml.compose_all(text))
    assert read(block.text)


def test_a_line_that_fails_is_told_with_its_place(shell: Shell) -> None:
    with pytest.raises(AssertionError, match=r"page:3: \$ reconciler plan nowhere\n(.|\n)*\(exit code 1\)"):
        shell.do(Block("page:3", "bash", "reconciler plan nowhere\n"))
    with pytest.raises(AssertionError, match=r"page:3: \$ false\n\(exit code 1\)"):
        shell.do(Block("page:3", "console", "$ false\n"))


def test_a_code_that_is_stated_is_compared(shell: Shell) -> None:
    shell.do(Block("page:1", "console", "$ false\n$ echo $?\n1\n"))
    with pytest.raises(AssertionError, match="page:3"):
        shell.do(Block("page:3", "console", "$ false\n$ echo $?\n2\n"))


def test_an_output_that_differs_is_told(shell: Shell) -> None:
    with pytest.raises(AssertionError, match="page:3"):
        shell.do(Block("page:3", "console", "$ echo one\ntwo\n"))


def test_lines_that_go_on_are_put_together() -> None:
    assert [step.line for step in steps(Block("page:1", "bash", "# why\n\necho a \\\n  b\necho c\n"))] == [
        "echo a b",
        "echo c",
    ]
