"""`reconciler demo`."""

import os
import shlex
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from shutil import copytree
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from reconciler.sandbox import Sandbox

SIGNALLED = 128
"""Above it, an exit code tells of a signal."""

TOKEN = "ada-token"  # noqa: S105  # of a pretend user of the pretend service


@click.command(epilog="Example: reconciler demo")
def demo() -> int:
    """Show the whole story on an embedded sandbox: validate, plan, apply, plan again, drift."""
    from reconciler.demo import MANIFESTS, STATE
    from reconciler.sandbox import running

    with running(STATE) as sandbox, TemporaryDirectory() as folder, chdir(folder), _environment(sandbox):
        copytree(MANIFESTS, "manifests")
        _say("A pretend hosting service is running in this process, with two groups and six projects.")
        _run("validate", 0)
        _run("plan --out plan.json", 0)
        _say("The plan is saved. Applying it reads again only what it will change.")
        _run("apply --plan plan.json --yes --tokens-to tokens.jsonl", 0)
        _say("Once more: there is nothing to do, and it costs only the reads to know it.")
        _run("plan", 0)
        _meddle(sandbox)
        _say("Meanwhile, somebody has changed two things by hand. Cron would find out:")
        _run("drift", 2)
        _run("apply --yes", 0)
        _run("drift", 0)
        _say("Quiet means in order. Your turn: reconciler --help")
    return 0


def _run(line: str, expected: int) -> None:
    """Run one command the way a user would type it.

    Raises:
        AssertionError: it ended otherwise than the story goes.
    """
    from reconciler.cli import run

    click.secho(f"\n$ reconciler {line}", bold=True)
    code = run(shlex.split(line))
    if code:
        click.echo(f"(exit code {code})")
    if code > SIGNALLED:
        raise KeyboardInterrupt
    if code != expected:
        raise AssertionError(f"reconciler {line} ended with {code} instead of {expected}")


def _say(text: str) -> None:
    click.echo(f"\n# {text}")


def _meddle(sandbox: "Sandbox") -> None:
    """Change something behind the tool's back, the way people do in the web interface."""
    state = sandbox.state()
    shop = next(project for project in state["projects"] if project["path"] == "orchard/shop")
    shop["milestones"] = [each for each in shop["milestones"] if each["title"] != "2026.12"]
    shop["job_token_scope"]["inbound_enabled"] = False
    sandbox.replace_state(state)


@contextmanager
def _environment(sandbox: "Sandbox") -> Iterator[None]:
    """Point the commands at the sandbox, and at nothing else."""
    before = {name: value for name, value in os.environ.items() if name.startswith("RECONCILER_")}
    for name in before:
        del os.environ[name]
    os.environ |= {"RECONCILER_API_URL": sandbox.api_url, "RECONCILER_TOKEN": TOKEN}
    try:
        yield
    finally:
        for name in [name for name in os.environ if name.startswith("RECONCILER_")]:
            del os.environ[name]
        os.environ |= before
