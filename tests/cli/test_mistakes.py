"""Each mistake that people make is answered with its place, its cause and its remedy: the table is in `mistakes.txt`."""

import re
from pathlib import Path

import pytest

from reconciler.model.wording import listed
from tests.building import KINDS
from tests.cli_runner import CliRunner

CASES = [
    case.partition("\n")[::2]
    for case in Path(__file__).with_name("mistakes.txt").read_text().removeprefix("=== ").split("\n\n=== ")
]
STEP = re.compile(r"^(?=[@$!] )", re.MULTILINE)


@pytest.mark.parametrize(("title", "case"), CASES, ids=[title for title, _ in CASES])
def test_the_answer_to_a_mistake(title: str, case: str, cli_runner: CliRunner) -> None:
    sections = listed(["prune", *KINDS])
    address = cli_runner.sandbox.api_url.removesuffix("/api/v4")
    port = int(address.rpartition(":")[2])
    words = {address: "<service>", f"{port}": "<port>", f"{port + 1}": "<port + 1>", sections: "<all sections>"}
    answered = []
    for step in STEP.split(case)[1:]:
        first, _, rest = step.partition("\n")
        if first.startswith("@"):
            cli_runner.write(first.removeprefix("@ "), rest)
            answered.append(step)
        elif first.startswith("!"):
            cli_runner.sandbox.set_faults([first.removeprefix("! ")])
            answered.append(step)
        else:
            line = first.removeprefix("$ ")
            for written, word in words.items():
                line = line.replace(word, written)
            done = cli_runner(line)
            text = f"{done.out}{done.err}"
            for written, word in words.items():
                text = text.replace(written, word)
            answered.append(f"{first}\n{text}[{done.code}]\n")
    assert "".join(answered).rstrip("\n") == case.rstrip("\n"), title
