"""Count the modules that a date passes: a due date from its file to the request, a bad one from its file to the error.

    python -m benchmarks.modules_passed

A module is passed when one of its functions is given the value or returns it, be it alone or inside something else:
within the file's text, a mapping, a plan. `sys.setprofile` sees the calls; the sandbox says when the request has come.
These are counts, so that they are the same on every machine.
"""

import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

from reconciler.apply import ApplyOptions, apply_plan
from reconciler.errors import ManifestErrors
from reconciler.kinds import all_kinds
from reconciler.manifests import read_manifests
from reconciler.planning.run import draw_plan
from reconciler.sandbox import running
from reconciler.service import Client

KINDS = all_kinds()

TOKEN = "ada-token"  # noqa: S105 - the sandbox's, which guards nothing
GOOD, BAD = "2031-07-19", "19.07.2031"
MANIFEST = """\
apiVersion: reconciler/v1
kind: Project
metadata: {{path: acme/api}}
spec:
  milestones:
    "2031.7": {{due_date: {date}}}
"""
STATE: Mapping[str, Any] = {
    "users": [{"id": 1, "username": "ada", "tokens": [TOKEN]}],
    "groups": [{"id": 10, "path": "acme", "members": [{"user": "ada", "role": "owner"}]}],
    "projects": [{"id": 100, "path": "acme/api"}],
}
GENERATED = "<string>"
"""Where the functions are that dataclasses generate: they only store."""
DEEPEST = 8
"""How deep within other values one is looked for."""


def modules_to_request() -> list[str]:
    """Return the modules that a milestone's due date passes on its way from the manifest to the request, in order."""
    with running(STATE) as sandbox, Client(sandbox.api_url, TOKEN) as client, _manifest(GOOD) as file:

        def is_sent() -> bool:
            return any(entry["method"] == "POST" for entry in sandbox.log())

        with _watching(GOOD, is_sent) as modules:
            manifests = read_manifests([file], KINDS)
            plan = draw_plan(manifests.desired, client, KINDS, concurrency=1)
            options = ApplyOptions(1, verify=False, deliver=lambda *_: None)
            list(apply_plan(plan, client, KINDS, options))
        return list(modules)


def modules_to_error() -> list[str]:
    """Return the modules that a bad date passes on its way from the manifest to the error that names it, in order."""
    with _manifest(BAD) as file, _watching(BAD, lambda: False) as modules, suppress(ManifestErrors):
        read_manifests([file], KINDS)
    return list(modules)


@contextmanager
def _manifest(text: str) -> Iterator[Path]:
    with TemporaryDirectory(prefix="benchmarks-") as folder:
        file = Path(folder) / "manifest.yaml"
        file.write_text(MANIFEST.format(date=text), encoding="utf-8")
        yield file


@contextmanager
def _watching(text: str, has_ended: Callable[[], bool]) -> Iterator[Mapping[str, None]]:
    modules: dict[str, None] = {}

    def watch(frame: FrameType, event: str, result: object) -> None:
        name = str(frame.f_globals.get("__name__"))
        if event not in {"call", "return"} or not name.startswith("reconciler.") or ".sandbox" in name:
            return
        if frame.f_code.co_filename == GENERATED or name in modules or has_ended():
            return
        sys.setprofile(None)
        values = frame.f_locals.values() if event == "call" else (result,)
        if any(_holds(value, text) for value in values):
            modules[name] = None
        sys.setprofile(watch)

    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        yield modules
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def _holds(value: object, text: str, depth: int = 0) -> bool:
    """Whether a value is the one looked for, or holds it."""
    if depth > DEEPEST or isinstance(value, type):
        return False
    match value:
        case str():
            return text in value
        case bytes():
            return text.encode() in value
        case date():
            return value.isoformat() == text
        case dict():
            inner = [*value, *value.values()]
        case list() | tuple() | set() | frozenset():
            inner = [*value]
        case _ if type(value).__module__.startswith("reconciler."):
            inner = [*_attributes(value)]
        case _:
            return False
    return any(_holds(each, text, depth + 1) for each in inner)


def _attributes(value: object) -> Iterator[object]:
    yield from getattr(value, "__dict__", {}).values()
    for type_ in type(value).__mro__:
        slots = type_.__dict__.get("__slots__", ())
        yield from (getattr(value, name) for name in slots if hasattr(value, name))


def main() -> None:
    """Print both ways."""
    for what, modules in {
        "a due date, to its request": modules_to_request(),
        "a bad date, to its error": modules_to_error(),
    }.items():
        sys.stdout.write(f"{what}: {len(modules)} modules\n" + "".join(f"    {name}\n" for name in modules))


if __name__ == "__main__":
    main()
