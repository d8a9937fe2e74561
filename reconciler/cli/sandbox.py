"""`reconciler sandbox`."""

from pathlib import Path

import click


@click.command(epilog="Example: reconciler sandbox --state state.yaml --port 8080")
@click.option("--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="0 takes a free one.")
@click.option(
    "--state",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="State to start from, YAML or JSON; without it, the demo's.",
)
@click.option("--latency", type=click.IntRange(0), default=0, metavar="MS", help="Delay every answer.")
@click.option("--rate-limit", metavar="N/SECONDS", help="Answer 429 beyond this rate.")
@click.option("--fail", "faults", multiple=True, metavar="SPEC", help="Inject a fault; repeatable.")
def sandbox(port: int, state: Path | None, latency: int, rate_limit: str | None, faults: tuple[str, ...]) -> int:
    """Serve a pretend hosting service on this machine, to rehearse on. Ctrl-C ends it."""
    from reconciler.demo import STATE
    from reconciler.errors import ConfigurationError
    from reconciler.sandbox import SandboxError, serve

    try:
        serve(
            state or STATE,
            port=port,
            latency_ms=latency,
            rate_limit=rate_limit,
            faults=faults,
            ready=lambda url: click.echo(f"Serving {url}; tokens are in the state file. Ctrl-C ends it.", err=True),
        )
    except SandboxError as error:
        raise ConfigurationError(str(error)) from error
    except OSError as error:
        raise ConfigurationError(f"port {port}: {error.strerror}") from error
    return 0
