"""Options that several commands share. Each can come from a flag, then the environment, then `reconciler.yaml`.

There is a class for each heading of `--help`; its fields are the options, each described once, as a value and as a
flag. An option that a command does not take has its default. Begin with `OptionGroup`, then `SourceOptions`.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
from click.shell_completion import CompletionItem

from reconciler.cli import suggestions
from reconciler.reports import FORMATS, formats_of

if TYPE_CHECKING:
    from reconciler.document.document import RunDocument

AUTO: Literal["auto"] = "auto"

DEFAULT_PATHS = ("manifests",)

FILE = click.Path(path_type=str)


PAIRS = {"FORMAT=FILE": "html=plan.html", "KEY=VALUE": "team=payments"}
"""An example of each form of a value that is a pair."""


def _pair(
    _context: click.Context, parameter: click.Parameter, pairs_given: tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    """Split each `key=value`."""
    pairs = [each.partition("=") for each in pairs_given]
    wrong = [each for each, (key, sign, _) in zip(pairs_given, pairs, strict=True) if not (sign and key)]
    if wrong:
        example = PAIRS[str(parameter.metavar)]
        raise click.BadParameter(f"takes {parameter.metavar}, such as {example}; not {wrong[0]}")
    return tuple((key, value) for key, _, value in pairs)


@dataclass(frozen=True, slots=True)
class Job:
    """The parts that a job of GitLab CI adds to a command; see `cli.job`.

    Attributes:
        keeping: returns the context in which results are written: it keeps the histories of fleet pages.
        publish: announces a plan that was written.
        part: the part of the targets that the job handles, such as `2/5`; None for all of them.
        last_drift: the file with the report of the last run of this job; None if nothing is compared with it.
    """

    keeping: Callable[[], AbstractContextManager[None]]
    publish: "Callable[[RunDocument], None]"
    part: str | None = None
    last_drift: Path | None = None


class InFlight(click.IntRange):
    """A number of requests in flight, or `auto`."""

    name = "number, nor auto"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return `auto` as it is, and a number as an int."""
        return value if value == AUTO else super().convert(value, param, ctx)

    def shell_complete(self, _ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return `auto` if the text may be its beginning."""
        return [CompletionItem(AUTO)] * AUTO.startswith(incomplete)


class Format(click.Choice[str]):
    """A format.

    Help and completion offer the formats that the command writes, and its own check explains all others.
    """

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """Return the formats of the command, as help shows them."""
        del param
        return f"[{'|'.join(_formats(ctx))}]"

    def shell_complete(self, ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the formats of the command that begin with a text."""
        return [CompletionItem(name) for name in _formats(ctx) if name.startswith(incomplete)]


def _formats(context: click.Context) -> Sequence[str]:
    subject = getattr(context.command, "writes", "")
    return formats_of(subject) if subject else FORMATS


@dataclass(frozen=True, slots=True, eq=False)
class OptionGroup:
    """Options that commands take together; its methods describe an option, as a field of a class of options.

    Attributes:
        heading: `--help` lists the options under it.
        environment: whether options with a value can be set by a variable, such as RECONCILER_API_URL.
    """

    heading: str
    environment: bool = False

    def value(self, flag: str, metavar: str | None, words: str, default: object = None, **settings: Any) -> Any:
        """Describe an option with a value."""
        settings |= {"metavar": metavar, "help": words, "default": default, "show_default": bool(default)}
        return field(default=default, metadata={"group": self, "flag": flag, "settings": settings})

    def values(self, flag: str, metavar: str, words: str, **settings: Any) -> Any:
        """Describe an option that may be repeated."""
        settings |= {"metavar": metavar, "help": words, "multiple": True}
        return field(default=(), metadata={"group": self, "flag": flag, "settings": settings})

    def flag(self, flag: str, words: str) -> Any:
        """Describe an option without a value."""
        settings = {"is_flag": True, "help": words}
        return field(default=False, metadata={"group": self, "flag": flag, "settings": settings})

    @property
    def options(self) -> list[click.Option]:
        """The options of this group."""
        every = (field for options in OPTIONS.values() for field in fields(options))
        own = [field for field in every if field.metadata.get("group") is self]
        return [self._option(field.name, **field.metadata) for field in own]

    def _option(self, name: str, flag: str, settings: Mapping[str, Any], **_: Any) -> click.Option:
        takes_value = "metavar" in settings and not settings.keys() & {"multiple", "count"}
        variable = f"RECONCILER_{name.upper()}" if self.environment and takes_value else None
        return click.Option([*flag.split(), name], **{"envvar": variable, **settings})


MANIFESTS = OptionGroup("Manifests")
PLACES = OptionGroup("Selection")
SELECTION = OptionGroup("Selection")
FLEET = OptionGroup("Selection")
FORCE = OptionGroup("Plan")
ROTATION = OptionGroup("Plan", environment=True)
INVENTORY = OptionGroup("Plan")
LIMITS = OptionGroup("Plan", environment=True)
CONNECTION = OptionGroup("Service", environment=True)
SERVICE = OptionGroup("Service", environment=True)
OUTPUT = OptionGroup("Output", environment=True)
VERBOSITY = OptionGroup("Output", environment=True)
PROBLEMS = OptionGroup("Output")
NOTICE = OptionGroup("Output", environment=True)

RUN = (MANIFESTS, PLACES, SELECTION, FLEET, CONNECTION, SERVICE, OUTPUT)
"""The options of every command that reads manifests and live state."""


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The files of the manifests, and the values that their templates read."""

    paths: tuple[str, ...] = ()

    values: tuple[str, ...] = MANIFESTS.values(
        "--values", "FILE", "YAML file of values for templates (*.yaml.j2); repeatable, later files win.", type=FILE
    )
    set: tuple[tuple[str, str], ...] = MANIFESTS.values(
        "--set", "KEY=VALUE", "One value for templates; repeatable.", callback=_pair
    )
    env: tuple[str, ...] = MANIFESTS.values(
        "--env",
        "NAME",
        "Let templates read this environment variable as env.NAME; repeatable.  [env: RECONCILER_ENV, several]",
        envvar="RECONCILER_ENV",
    )

    @property
    def roots(self) -> list[Path]:
        """The files and folders in which manifests are searched."""
        return [Path(path) for path in self.paths or DEFAULT_PATHS]


@dataclass(frozen=True, slots=True)
class SelectionOptions:
    """The part of the manifests that a run is about."""

    targets: tuple[str, ...] = PLACES.values(
        "--target",
        "PATH",
        "Only targets whose path, or the word instance or user, matches this glob; repeatable. acme/* is directly in "
        "acme, acme/** is acme and all below it.",
        shell_complete=suggestions.targets,
    )
    excluded: tuple[str, ...] = PLACES.values(
        "--exclude",
        "PATH",
        "Leave out targets that this glob matches; repeatable, wins over --target.",
        shell_complete=suggestions.targets,
    )
    sections: tuple[str, ...] = PLACES.values(
        "--section", "NAME", "Only this section; repeatable.", shell_complete=suggestions.sections
    )
    labels: tuple[tuple[str, str], ...] = SELECTION.values(
        "--selector", "KEY=VALUE", "Only targets with this label; repeatable, all must match.", callback=_pair
    )

    retry_failed: str | None = FLEET.value(
        "--retry-failed", "REPORT", "Retry the unfinished changes of a previous apply (its JSON report).", type=FILE
    )
    since: str | None = FLEET.value(
        "--since",
        "REV",
        "Only targets whose manifests changed since this git revision; with `applied`, since they were applied.",
        shell_complete=suggestions.revisions,
    )
    everything: bool = FLEET.flag("--all", "With --since: all targets, changed or not.")
    only_change: bool = FLEET.flag(
        "--only-change", "With --since REV: leave out differences that are not of this change."
    )
    shard: str | None = FLEET.value(
        "--shard", "I/N", "Only part I of N of the targets, for N parallel jobs.  [env: CI_NODE_INDEX, CI_NODE_TOTAL]"
    )

    @property
    def narrowed(self) -> bool:
        """Whether the run is about some targets or sections alone, because the options select them."""
        return any((self.targets, self.excluded, self.labels, self.sections, self.retry_failed, self.only_change))


@dataclass(frozen=True, slots=True)
class PlanningOptions:
    """How a plan is made, and how much it may do."""

    force_events: bool = FORCE.flag("--force-events", "Always write notification events that the server does not show.")
    grace: str = ROTATION.value("--grace", "TIME", "Delete a rotated token once its successor is this old.", "24h")
    no_inventory: bool = INVENTORY.flag("--no-inventory", "Neither read nor write the inventory of what was applied.")
    allow_deletes: int | None = LIMITS.value("--allow-deletes", "N", "Allow up to N deletions.", type=click.IntRange(0))
    max_changes: int | None = LIMITS.value(
        "--max-changes", "N", "Refuse a plan of more than N changes.", type=click.IntRange(0)
    )
    max_loosening: int | None = LIMITS.value(
        "--max-loosening", "N", "Refuse a plan of which more than N changes loosen protection.", type=click.IntRange(0)
    )


@dataclass(frozen=True, slots=True)
class ConnectionOptions:
    """The service, the token, and how requests are sent."""

    api_url: str | None = CONNECTION.value(
        "--api-url", "URL", "The service's full API URL, such as https://host/api/v4.  [env: RECONCILER_API_URL]"
    )
    token_file: str | None = CONNECTION.value(
        "--token-file",
        "FILE",
        "File that holds the token and that only its owner can write; or set RECONCILER_TOKEN.",
        type=FILE,
    )
    ca_file: str | None = CONNECTION.value(
        "--ca-file", "FILE", "CA certificates to trust instead of the system's.", type=FILE
    )
    insecure_http: bool = CONNECTION.flag("--insecure-http", "Allow a plain-http URL to a host other than this one.")
    concurrency: int | Literal["auto"] = SERVICE.value(
        "--concurrency",
        "N",
        "At most N requests in flight, up to 64; auto finds how many the service can handle, up to 32.",
        AUTO,
        type=InFlight(1, 64),
    )
    rate: str | None = SERVICE.value("--rate", "N/SECONDS", "Send at most N requests in SECONDS seconds.")
    max_wait: str = SERVICE.value("--max-wait", "TIME", "End the run if the service asks for a longer wait.", "5m")
    follow_moved: bool = SERVICE.flag(
        "--follow-moved", "Write to a group or project that has moved, as if documents had its new path."
    )


@dataclass(frozen=True, slots=True)
class OutputOptions:
    """The files and streams of results and messages, and their form."""

    format: str = OUTPUT.value("--format", None, "Format of the result on stdout.", "text", type=Format(FORMATS))
    reports: tuple[tuple[str, str], ...] = OUTPUT.values(
        "--report",
        "FORMAT=FILE",
        "Write the result to FILE too; repeatable.",
        callback=_pair,
        shell_complete=suggestions.reports,
    )
    color: str = OUTPUT.value(
        "--color",
        None,
        "Colour the text on a terminal (auto), everywhere, or nowhere.",
        "auto",
        type=click.Choice(["auto", "always", "never"]),
    )
    verbose: int = VERBOSITY.value(
        "-v --verbose", None, "Show each request and more detail; -vv adds tracebacks.", 0, count=True
    )
    quiet: bool = VERBOSITY.flag("-q --quiet", "Show only the result and errors.")
    log_format: str = VERBOSITY.value(
        "--log-format", None, "Format of progress and warnings on stderr.", "text", type=click.Choice(["text", "json"])
    )
    notify: str | None = NOTICE.value(
        "--notify", "URL", "Post a message to this webhook of a chat. The URL is a secret.  [env: RECONCILER_NOTIFY]"
    )
    group_by: str | None = PROBLEMS.value(
        "--group-by",
        None,
        "Show each target by itself, or group changes that two or more targets share; by default, that three or more "
        "share.",
        type=click.Choice(["target", "change"]),
    )
    allow_problems: bool = PROBLEMS.flag("--allow-problems", "Exit with 0 instead of 3 if there are problems.")

    @property
    def formats(self) -> frozenset[str]:
        """The formats of the result, on stdout and in files."""
        return frozenset((self.format, *(name for name, _ in self.reports)))


OPTIONS: Mapping[str, type] = {
    "sources": SourceOptions,
    "selection": SelectionOptions,
    "planning": PlanningOptions,
    "connection": ConnectionOptions,
    "output": OutputOptions,
}
"""The classes of options by the name of the parameter of a command that takes them."""
