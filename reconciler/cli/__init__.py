"""The command line: connects the parts and speaks to a person. Commands import what they need when they run."""

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module

import click

from reconciler import __version__
from reconciler.cli.exit_codes import ExitCode, of_signal
from reconciler.cli.outputs import let_go, open_stderr, open_streams, report_error, write_stderr
from reconciler.cli.signals import heeding, signal_of
from reconciler.errors import ReconcilerError, UsageError

COMMANDS: Mapping[str, str] = {
    "validate": "manifests",
    "render": "manifests",
    "plan": "plan",
    "apply": "apply",
    "drift": "plan",
    "export": "export",
    "show": "documents",
    "merge-plans": "documents",
    "merge-reports": "documents",
    "note": "note",
    "schema": "editors",
    "doctor": "doctor",
    "completion": "editors",
    "sandbox": "sandbox",
    "demo": "sandbox",
}
"""The commands, and the module that each is in."""


class Commands(click.Group):
    """The commands; the module of one is imported when it is asked for, so that the others do not slow it down."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return their names."""
        del ctx
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return one of them."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(
            import_module(f"reconciler.cli.{COMMANDS[cmd_name]}"), cmd_name.replace("-", "_")
        )
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is asked for; one that is not there is told with what may be meant.

        Raises:
            UsageError: there is no such command.
        """
        if args[0] not in COMMANDS and not ctx.resilient_parsing:
            from difflib import get_close_matches

            guess = next((f"; did you mean '{name}'?" for name in get_close_matches(args[0], COMMANDS, 1)), ".")
            raise click.UsageError(f"No such command '{args[0]}'{guess}", ctx)
        return super().resolve_command(ctx, args)


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Start with: reconciler demo. Exit codes: 0 in order, 1 error, 2 changes pending, 3 done in part or "
    "problems, 64 wrong command line, 128+N ended by signal N.",
)
@click.version_option(__version__, prog_name="reconciler")
@click.pass_context
def cli(context: click.Context) -> None:
    """Keep the settings of many projects as your YAML manifests say.

    Reads manifests, compares them with the hosting service, and makes the fewest changes that bring the two
    together. Configuration comes from flags, then the environment (RECONCILER_API_URL, RECONCILER_TOKEN, ...),
    then reconciler.yaml in the working directory.
    """
    from reconciler.cli.options import SHARED
    from reconciler.cli.settings import read_configuration

    name = str(context.invoked_subcommand)
    command = cli.get_command(context, name)
    if command is not None and any(parameter.name in SHARED for parameter in command.params):
        context.default_map = {name: read_configuration()}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with a code of the users' contract."""
    open_stderr()
    for stream in open_streams():
        stream.reconfigure(errors="backslashreplace")
    code = run(list(sys.argv[1:] if arguments is None else arguments))
    let_go()
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code; whatever goes wrong is told on stderr."""
    with heeding():
        return _run(arguments)


def _run(arguments: list[str]) -> int:
    try:
        code = cli.main(arguments, prog_name="reconciler", standalone_mode=False)
    except click.ClickException as error:
        with suppress(OSError):
            error.show()
        return UsageError.exit_code if isinstance(error, click.UsageError) else 1
    except (click.Abort, KeyboardInterrupt) as error:
        write_stderr("Interrupted.")
        number = signal_of(error)
        return ExitCode.ERROR if number is None else of_signal(number)
    except ReconcilerError as error:
        report_error(error)
        _trace(error, arguments)
        return error.exit_code
    except Exception as error:  # noqa: BLE001  # the last resort: a bug of ours
        write_stderr(f"reconciler: internal error: {type(error).__name__}; -vv shows where")
        _trace(error, arguments)
        return 1
    return int(code) if isinstance(code, int) else 0


def _trace(error: Exception, arguments: list[str]) -> None:
    """Show where it happened, if asked; frames hold no values, so no secret either."""
    import traceback

    if "-vv" in arguments or arguments.count("-v") > 1:
        write_stderr("".join(traceback.format_tb(error.__traceback__)))
