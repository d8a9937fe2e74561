"""`reconciler log`, and which of its applies `reconciler revert` undoes."""

import logging
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.cli.command import command
from reconciler.cli.inventory import last_applies
from reconciler.cli.options import CONNECTION, ConnectionOptions
from reconciler.cli.stdout import write_stdout
from reconciler.errors import ConfigurationError, UsageError
from reconciler.memory.inventory import COMMIT_SHA

if TYPE_CHECKING:
    from reconciler.memory.apply_log import Apply, KilledRun

LOG = logging.getLogger("reconciler")

DEPTH = 100
"""In how many of the last applies `revert` looks for one."""
MAX_LISTED_APPLIES = 10
SHA_PREFIX = re.compile("[0-9a-fA-F]{4,64}")
"""How `revert` takes an apply of the log: the beginning of its ID."""


@command(CONNECTION, epilog="Example: reconciler log -n 3")
@click.option(
    "-n",
    "number",
    type=click.IntRange(1),
    default=MAX_LISTED_APPLIES,
    metavar="N",
    show_default=True,
    help="Show N applies at most.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Format of the result on stdout.",
)
def log(*, connection: ConnectionOptions, number: int, form: str) -> int:
    """List the last applies. Read-only.

    Shows when each ended, who started it, how many objects changed, the commit of its manifests, and its job. `revert`
    takes the ID in the first column. Runs of this clone that were killed come first, until another run ends.
    """
    from reconciler.reports.log import log_json, log_text

    applies = last_applies(connection, number)
    killed = _killed()
    write_stdout(log_json(applies, killed) if form == "json" else log_text(applies, killed))
    return 0


@dataclass(frozen=True, slots=True)
class ChosenApply:
    """An apply to revert.

    Attributes:
        file: its JSON report.
        name: its full ID in the log; the name of the file if the command names a file.
        logged: its entry in the log; None if the log has no entry.
    """

    file: Path
    name: str
    logged: "Apply | None" = None


def chosen(connection: ConnectionOptions, named: str | None, *, last: bool) -> ChosenApply:
    """Return the apply that `revert` undoes.

    Args:
        connection: the options.
        named: the report, or the beginning of the ID of an apply.
        last: whether the latest apply is meant.

    Raises:
        ConfigurationError: there is no such apply, or its report is not in this clone.
    """
    if named is not None and not SHA_PREFIX.fullmatch(named):
        return ChosenApply(Path(named), named)
    applies = last_applies(connection, DEPTH)
    return _latest(applies) if last else _named(applies, str(named))


def list_reports(form: str, connection: ConnectionOptions) -> None:
    """Write the last applies to stdout, and which of them can be reverted here.

    Raises:
        UsageError: the log has no such format.
    """
    from reconciler.memory.clone import current_clone
    from reconciler.reports.log import log_json, log_text

    if form not in ("text", "json"):
        raise UsageError(f"without REPORT or SHA, revert lists the applies, as text or json; not {form}")
    applies = last_applies(connection, MAX_LISTED_APPLIES)
    if form == "json":
        write_stdout(log_json(applies, _killed()))
        return
    clone = current_clone()
    at_hand = clone.reports.keys() if clone else ()
    write_stdout(log_text(applies, _killed(), at_hand) + (HOW if applies else ""))


HOW = """\
`reconciler revert ID` shows the way back from an apply whose report is at hand. For any other apply, download the JSON
report from the artifacts of its job, then: reconciler revert REPORT
"""


def _latest(applies: "tuple[Apply, ...]") -> ChosenApply:
    from reconciler.memory.apply_log import latest, latest_change, short

    killed = _killed()
    name = latest(applies, killed)
    if name and not COMMIT_SHA.fullmatch(name):
        # Whoever can push writes what the log says, and no file is read because of that.
        raise ConfigurationError(
            "the last revert is not finished, and was made from a report: give that report again, or the ID of an "
            "apply in `reconciler log`"
        )
    if not name:
        raise ConfigurationError("no apply to revert is recorded; with its JSON report: reconciler revert REPORT")
    if killed and not killed[0].reverts:
        LOG.warning(
            "a later apply, which began at %s, was killed and has no report: to undo that, apply again, revert its "
            "commit, and apply",
            f"{killed[0].began_at:%Y-%m-%d %H:%M} UTC",
        )
    change = latest_change(applies)
    if any(apply.id == name and not apply.counts for apply in applies):
        before = f"; the latest that did, and was not reverted: reconciler revert {short(change)}" if change else ""
        LOG.warning("the apply %s changed nothing%s", short(name), before)
    return _at_hand(name, applies)


def _named(applies: "tuple[Apply, ...]", name: str) -> ChosenApply:
    """Return the apply with an ID that begins with a text; old applies count too if this clone has their report.

    A file comes after the applies: a commit can bring a file of any name, and `./NAME` names the file.
    """
    from reconciler.memory.apply_log import named
    from reconciler.memory.clone import current_clone

    clone = current_clone()
    ids = {apply.id for apply in named(applies, name)}
    ids |= {apply for apply in (clone.reports if clone else ()) if apply.startswith(name.lower())}
    if not ids and Path(name).exists():
        return ChosenApply(Path(name), name)
    if not ids:
        raise ConfigurationError(
            f"no recorded apply begins with {name}, and there is no such file; see `reconciler log`"
        )
    if len(ids) > 1:
        raise ConfigurationError(f"{len(ids)} recorded applies begin with {name}; give more of the ID")
    return _at_hand(ids.pop(), applies)


def _at_hand(name: str, applies: "tuple[Apply, ...]") -> ChosenApply:
    """Return an apply whose report this clone has.

    Raises:
        ConfigurationError: the clone does not have the report; the message says which clone may.
    """
    from reconciler.memory.apply_log import short
    from reconciler.memory.clone import current_clone

    clone = current_clone()
    file = clone.report_of(name) if clone else None
    logged = next((apply for apply in applies if apply.id == name), None)
    if file is not None:
        return ChosenApply(file, name, logged)
    raise ConfigurationError(
        f"the report of the apply {short(name)} is not in this clone; look for its JSON report {_where(logged)}, then: "
        "reconciler revert REPORT"
    )


def _where(logged: "Apply | None") -> str:
    """Return the place of an apply's report: the artifacts of its job, or the clone where it ran."""
    from reconciler.memory.clone import report_name

    if logged is None:
        return "where that apply ran"
    if logged.job:
        return f"among the artifacts of {logged.job}"
    return f"in the clone of {logged.author}, at .git/reconciler/reports/{report_name(logged.id, logged.when)}"


def _killed() -> "list[KilledRun]":
    """Return the runs of this clone that were killed since the last run that came to its end."""
    from reconciler.memory.clone import current_clone

    clone = current_clone()
    return clone.killed if clone else []
