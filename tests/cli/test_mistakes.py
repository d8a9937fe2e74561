"""Each mistake that people make is answered with its place, its cause and its remedy: the table is in `mistakes.txt`."""

import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.model.wording import listed
from tests.building import KINDS
from tests.cli_runner import CliRunner
from tests.fleet.repository import NOBODY

CASES = [
    case.partition("\n")[::2] for case in Path(__file__).with_name("mistakes.txt").read_text().split("\n\n=== ")[1:]
]
STEP = re.compile(r"^(?=[@$!~] )", re.MULTILINE)
SETTING = re.compile(r"([A-Z_]+)=(.*)")


class Person:
    """Someone who takes the steps of a case."""

    def __init__(self, cli_runner: CliRunner) -> None:
        self.cli_runner = cli_runner
        address = cli_runner.sandbox.api_url.removesuffix("/api/v4")
        port = int(address.rpartition(":")[2])
        self.words = {
            listed(["prune", "unmanaged", *KINDS]): "<all sections>",
            address: "<service>",
            f"{port + 1}": "<port + 1>",
            f"{port}": "<port>",
            str(cli_runner.folder): "<folder>",
        }

    def take(self, step: str) -> str:
        """Take a step, and return it with the answer that came."""
        first, _, rest = step.partition("\n")
        sign, line = first[0], first[2:]
        if sign == "@":
            self.cli_runner.write(line, rest)
        elif sign == "!":
            self.cli_runner.sandbox.set_faults([line])
        elif sign == "~":
            self.change(yaml.safe_load(line))
        else:
            return f"{first}\n{self.run(line)}"
        return step

    def change(self, changes: dict[str, Any]) -> None:
        """Change fields of groups and projects by their paths, of users by their names, or of the instance."""
        state = self.cli_runner.sandbox.state()
        records = {
            each.get("path", each.get("username")): each
            for key in ("users", "groups", "projects")
            for each in state[key]
        }
        for name, fields in changes.items():
            (state["instance"] if name == "instance" else records[name]).update(fields)
        self.cli_runner.sandbox.replace_state(state)

    def run(self, line: str) -> str:
        """Run a command, and return what it wrote, and its exit code."""
        for text, word in self.words.items():
            line = line.replace(word, text)
        words = shlex.split(line)
        with pytest.MonkeyPatch.context() as environment:
            while setting := SETTING.fullmatch(words[0]):
                environment.setenv(*setting.groups())
                del words[0]
            if words[0] == "git":
                subprocess.run(words, env={**os.environ, **NOBODY}, check=True, capture_output=True)
                return ""
            assert words[0] == "reconciler"
            done = self.cli_runner("", *words[1:])
        text = f"{done.out}{done.err}"
        for written, word in self.words.items():
            text = text.replace(written, word)
        return f"{text}[{done.code}]\n"


def answered(case: str, cli_runner: CliRunner) -> str:
    """Take the steps of a case, and return them with the answers that came."""
    person = Person(cli_runner)
    return "".join(person.take(step) for step in STEP.split(case)[1:]).rstrip("\n")


@pytest.mark.parametrize(("title", "case"), CASES, ids=[title for title, _ in CASES])
def test_the_answer_to_a_mistake(title: str, case: str, cli_runner: CliRunner) -> None:
    assert answered(case, cli_runner) == case.rstrip("\n"), title
