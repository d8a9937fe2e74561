"""`reconciler sandbox` and `reconciler demo`: a pretend service on this machine, and a story with that service."""

import os
import shlex
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from errno import EADDRINUSE
from pathlib import Path
from shutil import copytree
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Literal

import click

from reconciler.cli.help import Command

if TYPE_CHECKING:
    from reconciler.sandbox import Sandbox


DEMO = Path(__file__).parent.parent / "demo"
DEMO_STATE = DEMO / "state.yaml"

LAST_PORT = 65_535

SMALL_READ = 60
"""Milliseconds that a real service computes for a small read."""

SIGNALLED = 128
"""Exit codes above it name a signal."""

DEFAULT_TOKEN = "ada-token"  # noqa: S105  # of a pretend user of the pretend service


@click.command(
    cls=Command,
    epilog="Examples: reconciler sandbox --state state.yaml;  reconciler sandbox --generate 300 --dialect deployed",
)
@click.option(
    "--port",
    type=click.IntRange(0, LAST_PORT),
    default=8080,
    metavar="N",
    show_default=True,
    help="Port to listen on; 0 takes a free one.",
)
@click.option(
    "--state",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="State to start from, YAML or JSON; the default is the demo's.",
)
@click.option(
    "--generate",
    type=click.IntRange(1, 20_000),
    metavar="N",
    help="Start with N generated projects in subgroups of acme; the token is ada-token.",
)
@click.option("--seed", type=int, metavar="N", help="Seed for --generate; the same seed gives the same projects.")
@click.option(
    "--dialect",
    type=click.Choice(["spec", "deployed"]),
    help="Behave as specified, or as deployed servers do; overrides the state's own.",
)
@click.option("--latency", type=click.IntRange(0), default=0, metavar="MS", help="Delay every answer.")
@click.option("--workers", type=click.IntRange(1), metavar="K", help="Work on K requests at once; others wait.")
@click.option(
    "--cost",
    type=click.IntRange(0),
    metavar="MS",
    help="Time of a small read; other requests take theirs in proportion. 60 with --workers.",
)
@click.option("--rate-limit", metavar="N/SECONDS", help="Answer 429 beyond this rate.")
@click.option("--fail", "fault_specs", multiple=True, metavar="SPEC", help="Inject a fault; repeatable.")
def sandbox(
    *,
    port: int,
    state: Path | None,
    generate: int | None,
    seed: int | None,
    dialect: Literal["spec", "deployed"] | None,
    latency: int,
    workers: int | None,
    cost: int | None,
    rate_limit: str | None,
    fault_specs: tuple[str, ...],
) -> int:
    """Serve an embedded GitLab-compatible service to rehearse on. Ctrl-C stops it."""
    from reconciler import sandbox as service
    from reconciler.errors import ConfigurationError, UsageError

    if generate and state:
        raise UsageError("sandbox takes --state or --generate, not both")
    if seed is not None and not generate:
        raise UsageError("--seed needs --generate N")
    tokens = f"tokens are in {state}" if state else f"the token is {DEFAULT_TOKEN}"
    try:
        service.serve(
            service.generate(generate, seed or 0) if generate else state or DEMO_STATE,
            port=port,
            latency_ms=latency,
            workers=workers,
            cost_ms=(SMALL_READ if workers else 0) if cost is None else cost,
            rate_limit=rate_limit,
            faults=fault_specs,
            dialect=dialect,
            ready=lambda url: click.echo(f"Serving {url}; {tokens}. Ctrl-C ends it.", err=True),
        )
    except service.SandboxError as error:
        raise ConfigurationError(str(error)) from error
    except OSError as error:
        raise ConfigurationError(_port_error(port, error)) from error
    return 0


def _port_error(port: int, os_error: OSError) -> str:
    """Return the error about a port that the sandbox cannot listen on."""
    in_use = "in use, perhaps by another sandbox of reconciler: stop that, or"
    reason = in_use if os_error.errno == EADDRINUSE else f"{os_error.strerror};"
    return f"--port {port}: {reason} take --port {port + 1 if port < LAST_PORT else 0}"


@click.command(cls=Command, epilog="Example: reconciler demo")
def demo() -> int:
    """Run through validate, plan, apply and drift on a sandbox."""
    from reconciler.sandbox import running

    with running(DEMO_STATE) as sandbox, TemporaryDirectory() as folder, chdir(folder), _environment(sandbox):
        copytree(DEMO / "manifests", "manifests")
        _print_remark("A pretend service runs in this process, with two groups and six projects.")
        _run("validate", 0)
        _run("plan --out plan.json", 0)
        _print_remark("The plan is saved. apply reads only what it will change once more.")
        _run("apply --plan plan.json --yes --tokens-to tokens.jsonl", 0)
        _print_remark("Once more: nothing is left to do. Only reads were needed to know it.")
        _run("plan", 0)
        _meddle(sandbox)
        _print_remark("Meanwhile, somebody changed two settings by hand. A scheduled drift check finds them:")
        _run("drift", 2)
        _run("apply --yes", 0)
        _run("drift", 0)
        _print_remark("No output means everything is in order. Your turn: reconciler --help")
    return 0


def _run(line: str, expected: int) -> None:
    """Run one command the way a user would type it.

    Raises:
        AssertionError: the command ended with another code.
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


def _print_remark(text: str) -> None:
    click.echo(f"\n# {text}")


def _meddle(sandbox: "Sandbox") -> None:
    """Change two settings without the tool, the way people do in the web interface."""
    state = sandbox.state()
    shop = next(project for project in state["projects"] if project["path"] == "orchard/shop")
    shop["milestones"] = [each for each in shop["milestones"] if each["title"] != "2026.12"]
    shop["job_token_scope"]["inbound_enabled"] = False
    sandbox.replace_state(state)


@contextmanager
def _environment(sandbox: "Sandbox") -> Iterator[None]:
    """Point the commands at the sandbox, and at nothing else; one request at a time, so that all counts repeat."""
    before = dict(os.environ)
    for name in before:
        if name == "CI" or name.startswith(("RECONCILER_", "CI_", "GITLAB_")):
            del os.environ[name]
    os.environ |= {
        "RECONCILER_API_URL": sandbox.api_url,
        "RECONCILER_TOKEN": DEFAULT_TOKEN,
        "RECONCILER_CONCURRENCY": "1",
    }
    try:
        yield
    finally:
        os.environ.clear()
        os.environ |= before
