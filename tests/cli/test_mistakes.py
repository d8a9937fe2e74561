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


def answered(case: str, cli_runner: CliRunner) -> str:
    """Take the steps of a case, and return them with the answers that came."""
    sections = listed(["prune", *KINDS])
    address = cli_runner.sandbox.api_url.removesuffix("/api/v4")
    port = int(address.rpartition(":")[2])
    words = {address: "<service>", f"{port}": "<port>", f"{port + 1}": "<port + 1>", sections: "<all sections>"}
    steps = []
    for step in STEP.split(case)[1:]:
        first, _, rest = step.partition("\n")
        if first.startswith("@"):
            cli_runner.write(first.removeprefix("@ "), rest)
            steps.append(step)
        elif first.startswith("!"):
            cli_runner.sandbox.set_faults([first.removeprefix("! ")])
            steps.append(step)
        else:
            line = first.removeprefix("$ ")
            for written, word in words.items():
                line = line.replace(word, written)
            done = cli_runner(line)
            text = f"{done.out}{done.err}"
            for written, word in words.items():
                text = text.replace(written, word)
            steps.append(f"{first}\n{text}[{done.code}]\n")
    return "".join(steps).rstrip("\n")


@pytest.mark.parametrize(("title", "case"), CASES, ids=[title for title, _ in CASES])
def test_the_answer_to_a_mistake(title: str, case: str, cli_runner: CliRunner) -> None:
    assert answered(case, cli_runner) == case.rstrip("\n"), title
