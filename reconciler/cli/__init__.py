"""The command line: connects the parts and speaks to a person. Commands import what they need when they run."""

import sys
import traceback
from collections.abc import Sequence

import click

from reconciler import __version__
from reconciler.cli.apply import apply
from reconciler.cli.demo import demo
from reconciler.cli.drift import drift
from reconciler.cli.export import export
from reconciler.cli.merge import merge_plans, merge_reports
from reconciler.cli.plan import plan
from reconciler.cli.render import render
from reconciler.cli.sandbox import sandbox
from reconciler.cli.schema import schema
from reconciler.cli.settings import read_configuration
from reconciler.cli.show import show
from reconciler.cli.validate import validate
from reconciler.errors import ReconcilerError, UsageError


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Start with: reconciler demo. Exit codes: 0 in order, 1 error, 2 changes pending, 3 some changes failed, "
    "64 wrong command line.",
)
@click.version_option(__version__, prog_name="reconciler")
@click.pass_context
def cli(context: click.Context) -> None:
    """Keep the settings of many projects as your YAML manifests say.

    Reads manifests, compares them with the hosting service, and makes the fewest changes that bring the two
    together. Configuration comes from flags, then the environment (RECONCILER_API_URL, RECONCILER_TOKEN, ...),
    then reconciler.yaml in the working directory.
    """
    given = read_configuration()
    context.default_map = dict.fromkeys(cli.commands, given)


for command in (validate, render, plan, apply, drift, export, show, merge_plans, merge_reports, schema, sandbox, demo):
    cli.add_command(command)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with a code of the users' contract."""
    sys.exit(run(list(sys.argv[1:] if arguments is None else arguments)))


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code; whatever goes wrong is told on stderr."""
    try:
        code = cli.main(arguments, prog_name="reconciler", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return UsageError.exit_code if isinstance(error, click.UsageError) else 1
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted.", err=True)
        return 1
    except ReconcilerError as error:
        click.echo(f"reconciler: {error}", err=True)
        _trace(error, arguments)
        return error.exit_code
    except Exception as error:  # noqa: BLE001  # the last resort: a bug of ours
        click.echo(f"reconciler: internal error: {type(error).__name__}; -vv shows where", err=True)
        _trace(error, arguments)
        return 1
    return code if isinstance(code, int) else 0


def _trace(error: Exception, arguments: list[str]) -> None:
    """Show where it happened, if asked; frames hold no values, so no secret either."""
    if "-vv" in arguments or arguments.count("-v") > 1:
        click.echo("".join(traceback.format_tb(error.__traceback__)), err=True)
