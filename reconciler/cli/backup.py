"""`reconciler backup`."""

import logging
from pathlib import Path

import click

from reconciler.cli.command import command
from reconciler.cli.options import CONNECTION, SERVICE, ConnectionOptions
from reconciler.cli.settings import connected, duration
from reconciler.cli.stdout import write_stdout
from reconciler.errors import Forbidden, NotFound

LOG = logging.getLogger("reconciler")


@command(CONNECTION, SERVICE, epilog="Example: reconciler backup --group acme --to acme.tar.gz --wait 2h")
@click.option("--group", required=True, metavar="GROUP", help="The group; needs the token of an owner.")
@click.option(
    "--to",
    "file",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="File for the archive, mode 0600; an existing one is replaced.",
)
@click.option("--wait", default="30m", metavar="TIME", show_default=True, help="Wait this long for the export.")
def backup(*, connection: ConnectionOptions, group: str, file: Path, wait: str) -> int:
    """Save the service's own export of a group to a file.

    Requests an export, and looks for the archive after 2, 5 and 15 seconds, then every 61 seconds, since the service
    may allow one look a minute. The file appears whole or not at all; without an archive, the exit code is 1.

    --wait is about the export; --max-wait about a service that asks all requests to come back later.
    """
    from reconciler.engine.roster import has_other_level
    from reconciler.engine.why import path_remedy
    from reconciler.model.targets import Level, Target
    from reconciler.model.wording import counted
    from reconciler.service.backup import PAUSE, back_up

    seconds = duration("--wait", wait).total_seconds()
    if file.suffix != ".gz":
        LOG.warning("the archive is compressed: a name that ends in .tar.gz says so, and group imports need it")
    pauses: list[float] = []

    with connected(connection) as client:

        def pause(span: float) -> bool:
            pauses.append(span)
            if len(pauses) == 2:
                LOG.info("The archive is not ready; looking again, later every %s s, for %s at most.", PAUSE, wait)
            return client.stop.wait(span)

        try:
            done = back_up(group, file, client, seconds=seconds, pause=pause)
        except NotFound as error:
            target = Target(Level.GROUP, group)
            error.remedy = f"no such group, or not visible to this token; {path_remedy(target, client)}"
            if has_other_level(target, client):
                error.remedy = "this is a project, and only groups are backed up: name the group that it is in"
            raise
        except Forbidden as error:
            error.remedy = error.remedy or f"an export takes the role Owner in group {group}"
            raise
    made = f", exported {done.exported_at:%Y-%m-%d %H:%M:%S %Z}" if done.exported_at else ""
    doubt = "" if done.is_new else "; it may be the archive of an earlier export"
    write_stdout(f"{file}: {counted(done.size, 'byte')}, SHA-256 {done.digest}{made}{doubt}\n")
    return 0
