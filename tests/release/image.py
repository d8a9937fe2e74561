"""The Dockerfile, read and carried out in a folder: the same commands, without a container engine."""

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

PLACES = ("/opt", "/src", "/wheels")
"""The folders that the image's own steps write to."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction of a Dockerfile."""

    name: str
    value: str


@dataclass
class Image:
    """A folder that stands for the root of the image.

    Attributes:
        root: the folder.
        context: what the image is built from.
        instructions: those of the Dockerfile.
        environment: variables as the base image has them.
    """

    root: Path
    context: Path
    instructions: list[Instruction]
    environment: dict[str, str]

    def build(self) -> None:
        """Carry out the instructions that do not change the machine."""
        here = self.root
        for instruction in self.instructions:
            match instruction:
                case Instruction("WORKDIR", folder) if folder in PLACES:
                    here = Path(self._inside(folder))
                    here.mkdir(parents=True)
                case Instruction("COPY", ". ."):
                    copy_context(self.context, here)
                case Instruction("RUN", command) if command not in self.not_run():
                    done = self._process(["/bin/sh", "-ec", self._inside(command)], here, self.environment)
                    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"

    def not_run(self) -> list[str]:
        """Return the steps that would change the machine."""
        return [each.value for each in self.instructions if each.name == "RUN" and each.value.startswith("apt-get ")]

    def last(self, name: str) -> str:
        """Return the last instruction of a name, which is the one that counts."""
        return [each.value for each in self.instructions if each.name == name][-1]

    def __call__(self, *arguments: str, cwd: Path, **more: str) -> "subprocess.CompletedProcess[str]":
        """Run what a container would run, in a folder."""
        line = [*json.loads(self.last("ENTRYPOINT")), *arguments]
        return self._process(line, cwd, self.inner_environment() | more)

    def inner_environment(self) -> dict[str, str]:
        """Return the variables of a container."""
        path = self.environment["PATH"].partition(os.pathsep)[2]
        given = {name: self._inside(text.replace("$PATH", path)) for name, text in pairs(self.last("ENV")).items()}
        return self.environment | given

    def _process(self, line: list[str], cwd: Path, environment: dict[str, str]) -> "subprocess.CompletedProcess[str]":
        program = shutil.which(line[0], path=environment["PATH"])
        assert program, line
        return subprocess.run(
            [program, *line[1:]], cwd=cwd, env=environment, capture_output=True, text=True, check=False
        )

    def _inside(self, text: str) -> str:
        """Return a text with the image's folders where they are here."""
        return re.sub(rf"(?<![\w./-])({'|'.join(PLACES)})\b", rf"{self.root}\1", text)


def instructions_of(text: str) -> list[Instruction]:
    """Return the instructions of a Dockerfile, each on one line."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [
        Instruction(name, re.sub(r" +", " ", value))
        for name, _, value in (line.partition(" ") for line in joined.splitlines() if line)
    ]


def pairs(value: str) -> dict[str, str]:
    """Return what `NAME="value" ...` says."""
    return dict(word.split("=", 1) for word in shlex.split(value))


def copy_context(context: Path, destination: Path) -> None:
    """Copy what .dockerignore lets in."""
    for file in allowed(context):
        target = destination / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(context / file, target)


def allowed(context: Path) -> Iterator[Path]:
    """Yield the files that .dockerignore lets in: its later lines win, as Docker has it."""
    lines = [line for line in (context / ".dockerignore").read_text().splitlines() if line and line[0] != "#"]
    assert lines[0] == "*"
    tops = [line[1:] for line in lines if line[0] == "!"]
    never = [line.removeprefix("**/") for line in lines[1:] if line[0] != "!"]
    for top in tops:
        for folder, names, files in os.walk(context / top):
            names[:] = [name for name in names if not any(fnmatch(name, pattern) for pattern in never)]
            yield from (Path(folder, file).relative_to(context) for file in files)
        if (context / top).is_file():
            yield Path(top)
