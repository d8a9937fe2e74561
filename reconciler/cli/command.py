"""The decorator of a command: its own options, the options that it shares, and what a job of GitLab CI adds.

Begin with `command`.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import fields
from functools import wraps
from inspect import signature
from typing import Any

import click

from reconciler.cli.help import Command, records
from reconciler.cli.job import prepared
from reconciler.cli.logs import start_log
from reconciler.cli.options import FILE, MANIFESTS, OPTIONS, VERBOSITY, OptionGroup


class SharingCommand(Command):
    """A command whose `--help` lists its own options first, then shared options under headings, messages last."""

    def __init__(self, *arguments: Any, option_groups: Sequence[OptionGroup], writes: str, **attributes: Any) -> None:
        super().__init__(*arguments, **attributes)
        self.writes = writes
        self.groups = {group: group.options for group in (*option_groups, VERBOSITY)}
        if MANIFESTS in self.groups:
            self.params.append(click.Argument(["paths"], nargs=-1, type=FILE))
        self.params += [option for options in self.groups.values() for option in options]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the command line; each error knows the command, so that its message has the example of the command."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            raise

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under their headings."""
        shared = [option for options in self.groups.values() for option in options]
        own = [each for each in self.get_params(ctx) if isinstance(each, click.Option) and each not in shared]
        sections = {"Options": own}
        for group, options in self.groups.items():
            sections[group.heading] = [*sections.get(group.heading, []), *options]
        for heading, options in sections.items():
            with formatter.section(heading):
                formatter.write_dl(records(ctx, options))


def command(
    *groups: OptionGroup,
    command_name: str | None = None,
    weekly: str = "",
    writes: str = "",
    job: str = "",
    epilog: str,
) -> Callable[[Callable[..., int]], SharingCommand]:
    """Make a command of a function, with groups of shared options, in the order in which help lists them.

    The function takes the classes of `OPTIONS` that it has a parameter for, the command's own options by name, and, if
    `job` is given, `job` as well.

    Args:
        groups: the shared options.
        command_name: of the command, if not that of the function.
        weekly: the options that `-h` shows, separated by spaces; the command's own if left out.
        writes: the subject whose formats help offers, see `reports.check_format`; all formats if left out.
        job: what the command does by itself in a job of GitLab CI, see `job.prepared`; nothing if left out.
        epilog: an example, which ends the help.
    """

    def make(function: Callable[..., int]) -> SharingCommand:
        parameters = signature(function).parameters
        own = {name for name in parameters if name not in OPTIONS}

        @wraps(function)
        def called(**values: Any) -> int:
            shared = {name: _taken(options, values, own) for name, options in OPTIONS.items()}
            start_log(shared["output"])
            if job:
                shared["output"], shared["selection"], values["job"] = prepared(
                    job, shared["output"], shared["selection"], shared["connection"], values
                )
            return function(**{name: value for name, value in shared.items() if name in parameters}, **values)

        options = {"option_groups": groups, "weekly": weekly.split(), "writes": writes}
        return click.command(command_name, cls=SharingCommand, **options, epilog=epilog)(called)

    return make


def _taken(options: type, option_values: dict[str, Any], own: Collection[str]) -> Any:
    """Return the options of a class, taken out of the values of the command line; the command's own options stay."""
    names = [field.name for field in fields(options) if field.name in option_values and field.name not in own]
    return options(**{name: option_values.pop(name) for name in names})
