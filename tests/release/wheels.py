"""Wheels of what is installed here, so that pip can set up an empty environment without an index."""

import re
import zipfile
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement


def pack_wheels(requirements: Iterable[str], folder: Path) -> None:
    """Write a wheel of each distribution that the requirements need, directly or indirectly."""
    folder.mkdir()
    for found in _needed(requirements):
        _pack(found, folder)


def _needed(requirements: Iterable[str]) -> Iterator[Distribution]:
    waiting = [Requirement(each) for each in requirements]
    seen = set()
    while waiting:
        requirement = waiting.pop()
        name = _normal(requirement.name)
        if name in seen:
            continue
        seen.add(name)
        found = distribution(name)
        yield found
        inner = [Requirement(each) for each in found.requires or ()]
        waiting += [each for each in inner if not each.marker or _applies(each, requirement.extras)]


def _applies(requirement: Requirement, extras: Iterable[str]) -> bool:
    return any(requirement.marker and requirement.marker.evaluate({"extra": extra}) for extra in ["", *extras])


def _pack(found: Distribution, folder: Path) -> None:
    tag = re.search(r"^Tag: (\S+)$", found.read_text("WHEEL") or "", re.MULTILINE)
    assert tag, found.name
    home = Path(str(found.locate_file("")))
    files = [str(file) for file in found.files or ()]
    kept = [file for file in files if not re.search(r"^\.\.|__pycache__|/(RECORD|INSTALLER|REQUESTED)$", file)]
    record = next(file for file in files if file.endswith("/RECORD"))
    with zipfile.ZipFile(folder / f"{_normal(found.name)}-{found.version}-{tag[1]}.whl", "w") as wheel:
        for file in kept:
            wheel.write(home / file, file)
        wheel.writestr(record, "".join(f"{file},,\n" for file in [*kept, record]))


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "_", name).lower()
