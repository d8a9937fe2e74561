"""Options that several commands share. Each can come from a flag, then the environment, then `reconciler.yaml`."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from typing import Any

import click

from reconciler.cli import suggestions
from reconciler.render import FORMATS

Command = Callable[..., int | None]
Decorator = Callable[[Command], Command]


def _pair(_context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Take `key=value` apart."""
    pairs = [(key, value) for key, found, value in (each.partition("=") for each in values) if found and key]
    if len(pairs) < len(values):
        raise click.BadParameter(f"takes {parameter.metavar}")
    return tuple(pairs)


DEFAULT_PATHS = ("manifests",)

VERBOSITY: list[Decorator] = [
    click.option("-v", "--verbose", count=True, help="Tell more; twice: with tracebacks of errors."),
    click.option("-q", "--quiet", is_flag=True, help="Tell nothing but the result and errors."),
    click.option(
        "--log-format",
        type=click.Choice(["text", "json"]),
        default="text",
        envvar="RECONCILER_LOG_FORMAT",
        show_default=True,
        help="How progress and warnings are written to stderr.",
    ),
]

OUTPUT: list[Decorator] = [
    click.option(
        "--format",
        "format_",
        type=click.Choice(FORMATS),
        default="text",
        envvar="RECONCILER_FORMAT",
        show_default=True,
        help="How the result is written to stdout.",
    ),
    click.option(
        "--report",
        "reports",
        multiple=True,
        metavar="FORMAT=FILE",
        callback=_pair,
        shell_complete=suggestions.reports,
        help="Write the result to a file too; repeatable.",
    ),
    *VERBOSITY,
]

PROBLEMS: list[Decorator] = [
    click.option("--allow-problems", is_flag=True, help="Exit with 0 instead of 3 for problems."),
]

LIMITS: list[Decorator] = [
    click.option("--allow-deletes", type=click.IntRange(0), metavar="N", help="Allow up to N deletions."),
    click.option("--max-changes", type=click.IntRange(0), metavar="N", help="Refuse a plan of more than N changes."),
]

MANIFESTS: list[Decorator] = [
    click.argument("paths", nargs=-1, type=click.Path(path_type=str)),
    click.option(
        "--values",
        "values_files",
        multiple=True,
        type=click.Path(path_type=str),
        metavar="FILE",
        help="Values for templates (*.yaml.j2), a YAML mapping; repeatable, later ones win.",
    ),
    click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="KEY=VALUE",
        callback=_pair,
        help="One value for templates; repeatable.",
    ),
    click.option(
        "--env",
        "environment",
        multiple=True,
        metavar="NAME",
        help="Let templates read this environment variable as env.NAME; repeatable.",
    ),
]

SELECTION: list[Decorator] = [
    click.option(
        "--target",
        "targets",
        multiple=True,
        metavar="PATH",
        shell_complete=suggestions.targets,
        help="Only targets whose path matches this glob; repeatable.",
    ),
    click.option(
        "--selector",
        "labels",
        multiple=True,
        metavar="KEY=VALUE",
        callback=_pair,
        help="Only targets with this label; repeatable, all must match.",
    ),
    click.option(
        "--retry-failed",
        type=click.Path(path_type=str),
        metavar="REPORT",
        help="Only what a former apply did not do, by its report in JSON.",
    ),
    click.option(
        "--section",
        "sections",
        multiple=True,
        metavar="NAME",
        shell_complete=suggestions.sections,
        help="Only this section; repeatable.",
    ),
]

FLEET: list[Decorator] = [
    click.option(
        "--since",
        metavar="REV",
        shell_complete=suggestions.revisions,
        help="Only targets whose effective manifests differ from those at this git revision; what these declared and "
        "the present ones do not is deleted.",
    ),
    click.option("--all", "everything", is_flag=True, help="With --since: all targets, whether they differ or not."),
    click.option(
        "--shard",
        metavar="I/N",
        help="Only this part of the targets, for N jobs side by side.  [env: CI_NODE_INDEX, CI_NODE_TOTAL]",
    ),
]

FORCE: list[Decorator] = [
    click.option(
        "--force-events", is_flag=True, help="Write notification events that the server does not show, at each run."
    ),
]

CONNECTION: list[Decorator] = [
    click.option(
        "--api-url",
        envvar="RECONCILER_API_URL",
        metavar="URL",
        help="The service's whole API URL, such as https://host/api/v4.  [env: RECONCILER_API_URL]",
    ),
    click.option(
        "--token-file",
        envvar="RECONCILER_TOKEN_FILE",
        type=click.Path(path_type=str),
        metavar="FILE",
        help="A file that holds the token and that nobody else may write; or set RECONCILER_TOKEN.",
    ),
    click.option(
        "--ca-file",
        envvar="RECONCILER_CA_FILE",
        type=click.Path(path_type=str),
        metavar="FILE",
        help="Certificates to trust instead of the system's.",
    ),
    click.option("--insecure-http", is_flag=True, help="Allow a plain-http URL to a host other than this one."),
]

SERVICE: list[Decorator] = [
    *CONNECTION,
    click.option(
        "--concurrency",
        type=click.IntRange(1, 64),
        default=8,
        envvar="RECONCILER_CONCURRENCY",
        show_default=True,
        help="How many requests at once.",
    ),
    click.option(
        "--rate",
        envvar="RECONCILER_RATE",
        metavar="N/SECONDS",
        help="Send no more than N requests in so many seconds.",
    ),
    click.option(
        "--max-wait",
        default="5m",
        envvar="RECONCILER_MAX_WAIT",
        metavar="TIME",
        show_default=True,
        help="End the run where the service asks for a longer wait.",
    ),
    click.option("--follow-moved", is_flag=True, help="Write to a group or project that has moved, where it is now."),
]


@dataclass(frozen=True, slots=True)
class Given:
    """The values of the shared options; those a command does not take have their defaults."""

    paths: tuple[str, ...] = ()
    values_files: tuple[str, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    environment: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    sections: tuple[str, ...] = ()
    retry_failed: str | None = None
    since: str | None = None
    everything: bool = False
    shard: str | None = None
    force_events: bool = False
    api_url: str | None = None
    token_file: str | None = None
    ca_file: str | None = None
    insecure_http: bool = False
    concurrency: int = 8
    rate: str | None = None
    max_wait: str = "5m"
    follow_moved: bool = False
    format_: str = "text"
    reports: tuple[tuple[str, str], ...] = ()
    allow_problems: bool = False
    verbose: int = 0
    quiet: bool = False
    log_format: str = "text"
    allow_deletes: int | None = None
    max_changes: int | None = None


SHARED = tuple(field.name for field in fields(Given))


def options(*groups: list[Decorator]) -> Decorator:
    """Add groups of options to a command, in the order in which help lists them.

    The command is called with their values as one `Given`, and with its own options by name.
    """

    def add(command: Command) -> Command:
        @wraps(command)
        def called(**values: Any) -> int | None:
            shared = {name: values.pop(name) for name in SHARED if name in values}
            return command(Given(**shared), **values)

        decorated: Command = called
        for option in reversed([each for group in groups for each in group]):
            decorated = option(decorated)
        return decorated

    return add
