"""Options that several commands share. Each can come from a flag, then the environment, then `reconciler.yaml`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from typing import Any

import click

from reconciler.cli import suggestions
from reconciler.render import FORMATS

DEFAULT_PATHS = ("manifests",)


@dataclass(frozen=True, slots=True)
class OptionGroup:
    """Options that belong together.

    Attributes:
        heading: that `--help` lists them under.
    """

    heading: str
    parameters: Sequence[click.Parameter]


def _pair(_context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Split each `key=value`."""
    pairs = [(key, value) for key, found, value in (each.partition("=") for each in values) if found and key]
    if len(pairs) < len(values):
        raise click.BadParameter(f"takes {parameter.metavar}")
    return tuple(pairs)


VERBOSITY = OptionGroup(
    "Output",
    [
        click.Option(["-v", "--verbose"], count=True, help="Show each request and more detail; -vv adds tracebacks."),
        click.Option(["-q", "--quiet"], is_flag=True, help="Show only the result and errors."),
        click.Option(
            ["--log-format"],
            type=click.Choice(["text", "json"]),
            default="text",
            envvar="RECONCILER_LOG_FORMAT",
            show_default=True,
            help="Format of progress and warnings on stderr.",
        ),
    ],
)

OUTPUT = OptionGroup(
    "Output",
    [
        click.Option(
            ["--format", "format_"],
            type=click.Choice(FORMATS),
            default="text",
            envvar="RECONCILER_FORMAT",
            show_default=True,
            help="Format of the result on stdout.",
        ),
        click.Option(
            ["--report", "reports"],
            multiple=True,
            metavar="FORMAT=FILE",
            callback=_pair,
            shell_complete=suggestions.reports,
            help="Write the result to FILE too; repeatable.",
        ),
        *VERBOSITY.parameters,
    ],
)

PROBLEMS = OptionGroup(
    "Output",
    [click.Option(["--allow-problems"], is_flag=True, help="Exit with 0 instead of 3 if there are problems.")],
)

LIMITS = OptionGroup(
    "Plan",
    [
        click.Option(["--allow-deletes"], type=click.IntRange(0), metavar="N", help="Allow up to N deletions."),
        click.Option(
            ["--max-changes"], type=click.IntRange(0), metavar="N", help="Refuse a plan of more than N changes."
        ),
    ],
)

FORCE = OptionGroup(
    "Plan",
    [
        click.Option(
            ["--force-events"],
            is_flag=True,
            help="Always write notification events that the server does not show.",
        )
    ],
)

MANIFESTS = OptionGroup(
    "Manifests",
    [
        click.Argument(["paths"], nargs=-1, type=click.Path(path_type=str)),
        click.Option(
            ["--values", "values_files"],
            multiple=True,
            type=click.Path(path_type=str),
            metavar="FILE",
            help="YAML file of values for templates (*.yaml.j2); repeatable, later files win.",
        ),
        click.Option(
            ["--set", "settings"],
            multiple=True,
            metavar="KEY=VALUE",
            callback=_pair,
            help="One value for templates; repeatable.",
        ),
        click.Option(
            ["--env", "environment"],
            multiple=True,
            metavar="NAME",
            help="Let templates read this environment variable as env.NAME; repeatable.",
        ),
    ],
)

SELECTION = OptionGroup(
    "Selection",
    [
        click.Option(
            ["--target", "targets"],
            multiple=True,
            metavar="PATH",
            shell_complete=suggestions.targets,
            help="Only targets whose path matches this glob; repeatable.",
        ),
        click.Option(
            ["--selector", "labels"],
            multiple=True,
            metavar="KEY=VALUE",
            callback=_pair,
            help="Only targets with this label; repeatable, all must match.",
        ),
        click.Option(
            ["--retry-failed"],
            type=click.Path(path_type=str),
            metavar="REPORT",
            help="Retry the unfinished changes of a previous apply (its JSON report).",
        ),
        click.Option(
            ["--section", "sections"],
            multiple=True,
            metavar="NAME",
            shell_complete=suggestions.sections,
            help="Only this section; repeatable.",
        ),
    ],
)

FLEET = OptionGroup(
    "Selection",
    [
        click.Option(
            ["--since"],
            metavar="REV",
            shell_complete=suggestions.revisions,
            help="Only targets whose manifests changed since this git revision; objects no longer declared are "
            "deleted.",
        ),
        click.Option(["--all", "everything"], is_flag=True, help="With --since: all targets, changed or not."),
        click.Option(
            ["--shard"],
            metavar="I/N",
            help="Only part I of N of the targets, for N parallel jobs.  [env: CI_NODE_INDEX, CI_NODE_TOTAL]",
        ),
    ],
)

CONNECTION = OptionGroup(
    "Service",
    [
        click.Option(
            ["--api-url"],
            envvar="RECONCILER_API_URL",
            metavar="URL",
            help="The service's full API URL, such as https://host/api/v4.  [env: RECONCILER_API_URL]",
        ),
        click.Option(
            ["--token-file"],
            envvar="RECONCILER_TOKEN_FILE",
            type=click.Path(path_type=str),
            metavar="FILE",
            help="File that holds the token and that only its owner can write; or set RECONCILER_TOKEN.",
        ),
        click.Option(
            ["--ca-file"],
            envvar="RECONCILER_CA_FILE",
            type=click.Path(path_type=str),
            metavar="FILE",
            help="CA certificates to trust instead of the system's.",
        ),
        click.Option(["--insecure-http"], is_flag=True, help="Allow a plain-http URL to a host other than this one."),
    ],
)

SERVICE = OptionGroup(
    "Service",
    [
        *CONNECTION.parameters,
        click.Option(
            ["--concurrency"],
            type=click.IntRange(1, 64),
            default=8,
            envvar="RECONCILER_CONCURRENCY",
            show_default=True,
            help="Number of requests in flight at most.",
        ),
        click.Option(
            ["--rate"],
            envvar="RECONCILER_RATE",
            metavar="N/SECONDS",
            help="Send at most N requests in so many seconds.",
        ),
        click.Option(
            ["--max-wait"],
            default="5m",
            envvar="RECONCILER_MAX_WAIT",
            metavar="TIME",
            show_default=True,
            help="End the run if the service asks for a longer wait.",
        ),
        click.Option(
            ["--follow-moved"], is_flag=True, help="Write to a group or project that has moved, at its new path."
        ),
    ],
)


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


class SharingCommand(click.Command):
    """A command whose help lists its own options first, and then the shared ones under their headings."""

    def __init__(self, *arguments: Any, groups: Sequence[OptionGroup], **attributes: Any) -> None:
        super().__init__(*arguments, **attributes)
        self.groups = groups
        self.params += [parameter for group in groups for parameter in group.parameters]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options of the command."""
        headings = {parameter: group.heading for group in self.groups for parameter in group.parameters}
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if record is not None:
                sections.setdefault(headings.get(parameter, "Options"), []).append(record)
        for heading in sorted(sections, key=lambda heading: heading != "Options"):
            with formatter.section(heading):
                formatter.write_dl(sections[heading])


def command(
    *groups: OptionGroup, name: str | None = None, epilog: str
) -> Callable[[Callable[..., int]], SharingCommand]:
    """Make a command of a function, with groups of shared options, in the order in which help lists them.

    The function is called with their values as one `Given`, and with the command's own options by name.

    Args:
        groups: the shared options.
        name: of the command, if not that of the function.
        epilog: an example, which ends the help.
    """

    def make(function: Callable[..., int]) -> SharingCommand:
        @wraps(function)
        def called(**values: Any) -> int:
            shared = {name: values.pop(name) for name in SHARED if name in values}
            return function(Given(**shared), **values)

        return click.command(name, cls=SharingCommand, groups=groups, epilog=epilog)(called)

    return make
