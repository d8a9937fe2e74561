"""The command line: connects the parts and speaks to a person. Begin with `run`, then with the module of a command.

The module of a command and what it needs are imported when the command runs, so that all other commands start fast.
"""

import gc
import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import click

from reconciler import __version__, built_from
from reconciler.cli.exit_codes import ExitCode, of_signal, signal_of, signals_handled
from reconciler.cli.help import HELP_OPTION, first_example, short_option, text_option, write_text
from reconciler.cli.logs import warn_after_error
from reconciler.cli.outputs import discard_unwritten, open_stderr, open_streams, report_error, write_stderr
from reconciler.errors import ReconcilerError, UsageError
from reconciler.system.secrets import concealed

GROUPS: Mapping[str, Mapping[str, str]] = {
    "Every day": {
        "validate": "manifests",
        "plan": "plan",
        "apply": "apply",
        "drift": "plan",
        "accept": "accept",
        "revert": "apply",
        "log": "applies",
    },
    "Setting up": {"init": "init", "export": "export", "doctor": "setup", "demo": "sandbox"},
    "In pipelines": {"show": "documents", "note": "note", "issue": "note", "merge": "documents"},
    "More": {
        "render": "manifests",
        "backup": "backup",
        "sandbox": "sandbox",
        "schema": "setup",
        "completion": "setup",
    },
}
"""The commands under the headings of `--help`, each with the module that it is in."""

EVERYDAY_GROUPS = ("Every day", "Setting up")
"""The headings whose commands `-h` explains; it names the others."""

COMMANDS: Mapping[str, str] = {name: module for group in GROUPS.values() for name, module in group.items()}

OBJECTS_PER_COLLECTION = 100_000
"""How many new objects make the garbage collector look for circles.

Nearly all objects that a command makes stay until its end: with Python's own number, the collector takes a sixth of the
time of reading a large fleet.
"""


class Commands(click.Group):
    """The commands; a module is imported only when its command is used, so that all other commands start fast."""

    def __init__(self, *arguments: Any, **attributes: Any) -> None:
        super().__init__(*arguments, **attributes)
        self.params += (
            text_option(
                ["--version"],
                lambda _: f"reconciler, version {__version__} ({built_from()})",
                "Show the version and exit.",
            ),
            short_option(self.short_help_text, "Show the everyday commands and exit."),
        )

    def get_help_option(self, ctx: click.Context) -> click.Option:
        """Return the option `--help`."""
        del ctx
        return HELP_OPTION

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        del ctx
        return sorted(COMMANDS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands under their headings."""
        for heading in GROUPS:
            self._format_group(ctx, formatter, heading)

    def _format_group(self, ctx: click.Context, formatter: click.HelpFormatter, heading: str) -> None:
        limit = formatter.width - 6 - max(map(len, COMMANDS))
        commands = ((name, self.get_command(ctx, name)) for name in GROUPS[heading])
        with formatter.section(heading):
            formatter.write_dl([(name, command.get_short_help_str(limit)) for name, command in commands if command])

    def short_help_text(self, context: click.Context) -> str:
        """Return the text of `-h`: the everyday commands, and the names of all other commands."""
        formatter = context.make_formatter()
        self.format_usage(context, formatter)
        write_text(formatter, (self.help or "").partition("\n\n")[0])
        for heading in EVERYDAY_GROUPS:
            self._format_group(context, formatter, heading)
        formatter.write_paragraph()
        formatter.write_dl(
            [(f"{heading}:", ", ".join(GROUPS[heading])) for heading in GROUPS if heading not in EVERYDAY_GROUPS]
        )
        formatter.write_paragraph()
        formatter.write(
            "Begin with: reconciler demo\n"
            "A command's everyday options: reconciler COMMAND -h\n"
            "Everything: reconciler --help"
        )
        return formatter.getvalue()

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command by its name; None for an unknown name."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"reconciler.cli.{COMMANDS[cmd_name]}")
        command: click.Command = getattr(module, cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that was named.

        Raises:
            UsageError: there is no such command; the message suggests a similar name.
        """
        if args[0] not in COMMANDS and not ctx.resilient_parsing:
            from reconciler.cli.foreign_words import foreign_command
            from reconciler.model.wording import unknown

            raise foreign_command(args[0], ctx) or click.UsageError(unknown("command", args[0], COMMANDS), ctx)
        return super().resolve_command(ctx, args)


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["--help"], "max_content_width": 100},
    epilog="Exit codes: 0 in order, 1 error, 2 changes pending, 3 done in part or problems, 64 wrong command line, "
    "128+N ended by signal N. Start with: reconciler demo",
)
@click.pass_context
def cli(context: click.Context) -> None:
    """Manage the settings of hundreds of GitLab projects as code.

    Reads YAML manifests, compares them with the service, and makes the fewest changes that bring the service in line.
    Configuration comes from flags, then the environment (RECONCILER_API_URL, RECONCILER_TOKEN, ...), then
    reconciler.yaml in the working directory.
    """
    from reconciler.cli.command import SharingCommand
    from reconciler.cli.settings import read_configuration

    name = str(context.invoked_subcommand)
    if isinstance(cli.get_command(context, name), SharingCommand):
        context.default_map = {name: read_configuration()}


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and exit with a code of the users' contract."""
    gc.set_threshold(OBJECTS_PER_COLLECTION)
    open_stderr()
    for stream in open_streams():
        stream.reconfigure(errors="backslashreplace")
    code = run(list(sys.argv[1:] if argv is None else argv))
    discard_unwritten()
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code; errors go to stderr."""
    with signals_handled():
        try:
            code = _run(arguments)
        finally:
            warn_after_error()
        if code and arguments[:1] and os.environ.get("GITLAB_CI"):
            from reconciler.cli.documents import plans
            from reconciler.cli.job import post_failure

            if plans(*arguments):
                post_failure(code)
        return code


def _run(arguments: list[str]) -> int:
    try:
        code = cli.main(arguments, prog_name="reconciler", standalone_mode=False)
    except click.ClickException as error:
        write_stderr(_usage(error, arguments))
        return UsageError.exit_code if isinstance(error, click.UsageError) else 1
    except (click.Abort, KeyboardInterrupt) as error:
        write_stderr("Interrupted.")
        number = signal_of(error)
        return ExitCode.ERROR if number is None else of_signal(number)
    except ReconcilerError as error:
        report_error(error)
        _trace(error, arguments)
        return error.exit_code
    except MemoryError as error:
        write_stderr("reconciler: out of memory: give fewer PATHS or targets, or run on a machine with more memory")
        _trace(error, arguments)
        return 1
    except Exception as error:  # noqa: BLE001  # the last resort: a bug of ours
        write_stderr(f"reconciler: internal error: {type(error).__name__}; -vv shows where")
        _trace(error, arguments)
        return 1
    return int(code) if isinstance(code, int) else 0


def _usage(usage_error: click.ClickException, arguments: Sequence[str]) -> str:
    """Return the message for a wrong command line, with an example of the command and the page that has more."""
    if isinstance(usage_error, click.exceptions.NoArgsIsHelpError):
        return cli.short_help_text(usage_error.ctx)
    message = usage_error.format_message().removesuffix(".").replace("a valid integer range", "a whole number")
    message = _unknown_option(usage_error, arguments) if isinstance(usage_error, click.NoSuchOption) else message
    context = usage_error.ctx if isinstance(usage_error, click.UsageError) else None
    command, path = (context.command, context.command_path) if context else (cli, "reconciler")
    example = "" if command is cli else first_example(command)
    shown = f"\nExample: {example}" if example else ""
    return concealed(f"reconciler: {message[:1].lower()}{message[1:]}{shown}\nAll options: {path} --help")


def _unknown_option(no_such_option: click.NoSuchOption, arguments: Sequence[str]) -> str:
    """Return that an option is unknown, with the option that was meant or the commands that have the option."""
    from reconciler.cli.foreign_words import FOREIGN_OPTIONS, single_dash
    from reconciler.model.wording import closest

    name, context = no_such_option.option_name, no_such_option.ctx
    options = [option for parameter in (context.command.params if context else []) for option in parameter.opts]
    long = single_dash(name, arguments, options)
    if long:
        return long
    if name in FOREIGN_OPTIONS:
        return f"unknown option `{name}`; {FOREIGN_OPTIONS[name]}"
    known = [option.removeprefix("--") for option in (*options, *FOREIGN_OPTIONS)]
    meant = closest(name.lstrip("-"), dict.fromkeys(known), most=None)
    hint = f"; did you mean `--{meant}`?" if meant else ""
    if f"--{meant}" in FOREIGN_OPTIONS and f"--{meant}" not in options:
        hint = f", like `--{meant}`; {FOREIGN_OPTIONS[f'--{meant}']}"
    return _of_another_command(no_such_option) or f"unknown option `{name}`{hint}"


def _of_another_command(no_such_option: click.NoSuchOption) -> str:
    """Return that other commands have an option, or that the option comes before its command.

    Empty if no command has it.
    """
    context = no_such_option.ctx or click.Context(cli)
    commands = {name: cli.get_command(context, name) for name in COMMANDS}
    owners = [
        name
        for name, command in commands.items()
        if command is not None and any(no_such_option.option_name in parameter.opts for parameter in command.params)
    ]
    owner_names = ", ".join(owners)
    if context.parent is None and owners:
        return f"{no_such_option.option_name} is an option of {owner_names}: write options after the command"
    return f"{no_such_option.option_name} is an option of {owner_names}, not of {context.info_name}" if owners else ""


def _trace(error: Exception, arguments: list[str]) -> None:
    """Show the traceback with `-vv`: it has no values, and so no secret either."""
    import traceback

    if "-vv" in arguments or arguments.count("-v") > 1:
        write_stderr("".join(traceback.format_tb(error.__traceback__)))
