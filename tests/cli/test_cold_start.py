"""The modules that a command imports before it does anything."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.untraced

HEAVY = {
    "asyncio",
    "deepdiff",
    "httpx",
    "importlib.metadata",
    "jinja2",
    "pydantic",
    "reconciler.engine",
    "rich",
    "ruamel.yaml",
    "starlette",
    "uvicorn",
    "yaml",
}


def imported(*arguments: str) -> set[str]:
    """Return the heavy modules that a command imports in a process of its own."""
    script = (
        "import sys\nfrom reconciler.cli import run\n"
        f"run({list(arguments)!r})\nprint('MODULES', *sorted(set(sys.modules) & {HEAVY!r}))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.rpartition("MODULES")[2].split())


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["plan", "--help"]], ids=" ".join)
def test_what_needs_no_work_imports_nothing_heavy(arguments: list[str]) -> None:
    assert imported(*arguments) == set()


def test_validating_needs_neither_the_service_nor_the_engine_nor_templates() -> None:
    assert imported("validate", "examples/acme") == {"importlib.metadata", "pydantic", "yaml"}
