"""`reconciler sandbox`."""

from pathlib import Path

import click


@click.command(
    epilog="Examples: reconciler sandbox --state state.yaml;  reconciler sandbox --generate 300 --dialect deployed"
)
@click.option("--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="0 takes a free one.")
@click.option(
    "--state",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="State to start from, YAML or JSON; without it, the demo's.",
)
@click.option(
    "--generate",
    type=click.IntRange(1, 20_000),
    metavar="N",
    help="Start from N made-up projects in subgroups of acme instead; the token is ada-token.",
)
@click.option("--seed", type=int, metavar="N", help="Generate other projects; the same seed gives the same ones.")
@click.option(
    "--dialect",
    type=click.Choice(["spec", "deployed"]),
    help="Answer as the specification says, or as deployed servers do; wins over the state's own.",
)
@click.option("--latency", type=click.IntRange(0), default=0, metavar="MS", help="Delay every answer.")
@click.option("--rate-limit", metavar="N/SECONDS", help="Answer 429 beyond this rate.")
@click.option("--fail", "faults", multiple=True, metavar="SPEC", help="Inject a fault; repeatable.")
def sandbox(
    *,
    port: int,
    state: Path | None,
    generate: int | None,
    seed: int | None,
    dialect: str | None,
    latency: int,
    rate_limit: str | None,
    faults: tuple[str, ...],
) -> int:
    """Serve a pretend hosting service on this machine, to rehearse on. Ctrl-C ends it."""
    from reconciler import sandbox as service
    from reconciler.demo import STATE
    from reconciler.errors import ConfigurationError, UsageError

    if generate and state:
        raise UsageError("sandbox takes --state or --generate, not both")
    if seed is not None and not generate:
        raise UsageError("--seed needs --generate N")
    tokens = "the token is ada-token" if generate else "tokens are in the state file"
    try:
        service.serve(
            service.generate(generate, seed or 0) if generate else state or STATE,
            port=port,
            latency_ms=latency,
            rate_limit=rate_limit,
            faults=faults,
            dialect=dialect,
            ready=lambda url: click.echo(f"Serving {url}; {tokens}. Ctrl-C ends it.", err=True),
        )
    except service.SandboxError as error:
        raise ConfigurationError(str(error)) from error
    except OSError as error:
        raise ConfigurationError(f"port {port}: {error.strerror}") from error
    return 0
