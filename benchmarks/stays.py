"""Count the stays that a value makes on its way through the house, all of them through the command line.

    python -m benchmarks.stays             # four ways, and what reads a service
    python -m benchmarks.stays --list      # with the module of each stay, in their order

A value stays in a module while one function after the other of it is given the value, be it alone or inside something
else: within the text of a file, a mapping, a plan, a client. Where it comes back to a module, that is another stay.
`sys.setprofile` sees the calls, and the sandbox says when a request has come. These are counts, so that they are the
same on every machine.
"""

import ast
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from datetime import date
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

import reconciler
from reconciler.cli import run
from reconciler.sandbox import Sandbox, running

TOKEN = "ada-token"  # noqa: S105 - the sandbox's, which guards nothing
GOOD, BAD, LIVE = "2031-07-19", "19.07.2031", "as-it-is-live"
MANIFEST = """\
apiVersion: reconciler/v1
kind: Project
metadata: {{path: acme/api}}
spec:
  milestones:
    "2031.7": {{due_date: {date}}}
    "2030.1": {{description: as it is declared}}
"""
STATE: Mapping[str, Any] = {
    "users": [{"id": 1, "username": "ada", "tokens": [TOKEN]}],
    "groups": [{"id": 10, "path": "acme", "members": [{"user": "ada", "role": "owner"}]}],
    "projects": [{"id": 100, "path": "acme/api", "milestones": [{"title": "2030.1", "description": LIVE}]}],
}
GENERATED = "<string>"
"""Where the functions are that dataclasses generate: they only store."""
DEEPEST = 8
"""How deep within other values one is looked for."""
BOTH = ({"reader", "service", "client"}, "concurrency")
"""The parameters of a function that asks a service for many things."""


def ways() -> dict[str, list[str]]:
    """Return the modules in which each value stays, in the order of its stays."""
    return {
        "a due date, from its file to the request": _passed(GOOD, "apply --yes", has_ended=_has_written),
        "a live value, from the response to its line": _passed(LIVE, "plan"),
        "a bad date, from its file to the error": _passed(BAD, "plan", given=BAD),
        "a token, from its variable to the header": _passed(TOKEN, "plan", has_ended=_has_read),
    }


def askers() -> list[str]:
    """Return the functions that take both a reader of the service and a number of requests at once."""
    folder = Path(reconciler.__file__).parent
    names = []
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                arguments = {each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
                if BOTH[1] in arguments and not arguments.isdisjoint(BOTH[0]):
                    names.append(f"{path.relative_to(folder).with_suffix('').as_posix().replace('/', '.')}.{node.name}")
    return names


def _has_written(sandbox: Sandbox) -> bool:
    return any(entry["method"] == "POST" for entry in sandbox.log())


def _has_read(sandbox: Sandbox) -> bool:
    return bool(sandbox.log())


def _never(_sandbox: Sandbox) -> bool:
    return False


def _passed(
    value: str,
    line: str,
    *,
    given: str = GOOD,
    has_ended: Callable[[Sandbox], bool] = _never,
) -> list[str]:
    """Run a command and return the modules in which a value stays."""
    with running(STATE) as sandbox, TemporaryDirectory(prefix="benchmarks-") as folder, chdir(folder):
        manifests = Path("manifests")
        manifests.mkdir()
        (manifests / "api.yaml").write_text(MANIFEST.format(date=given), encoding="utf-8")
        before = {**os.environ}
        os.environ.update({"RECONCILER_API_URL": sandbox.api_url, "RECONCILER_TOKEN": TOKEN})
        try:
            with (
                redirect_stdout(StringIO()) as out,
                redirect_stderr(StringIO()) as err,
                _watching(value, lambda: has_ended(sandbox)) as stays,
            ):
                code = run([*line.split(), "--concurrency", "1"])
        finally:
            os.environ.clear()
            os.environ.update(before)
        if has_ended is _never and value not in out.getvalue() + err.getvalue():
            raise SystemExit(f"{line} exits with {code} and does not show {value}: {err.getvalue()}")
        return stays


@contextmanager
def _watching(text: str, has_ended: Callable[[], bool]) -> Iterator[list[str]]:
    stays: list[str] = []

    def watch(frame: FrameType, event: str, _: object) -> None:
        module = str(frame.f_globals.get("__name__"))
        if event != "call" or not module.startswith("reconciler.") or ".sandbox" in module:
            return
        if frame.f_code.co_filename == GENERATED or stays[-1:] == [module] or has_ended():
            return
        sys.setprofile(None)
        if any(_holds(value, text) for value in frame.f_locals.values()):
            stays.append(module)
        sys.setprofile(watch)

    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        yield stays
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
    """Print all counts."""
    for what, stays in ways().items():
        sys.stdout.write(f"{what}: {len(stays)} stays in {len({*stays})} modules\n")
        if "--list" in sys.argv:
            sys.stdout.write("".join(f"    {name}\n" for name in stays))
    sys.stdout.write(f"functions that take both a reader and a concurrency: {len(askers())}\n")


if __name__ == "__main__":
    main()
