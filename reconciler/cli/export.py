"""`reconciler export`: the options; `reconciler.edit.export` reads the service and writes the manifests."""

import logging
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.cli import suggestions
from reconciler.cli.command import command
from reconciler.cli.exit_codes import of_targets
from reconciler.cli.options import CONNECTION, SERVICE, ConnectionOptions, OutputOptions
from reconciler.cli.progress import watched
from reconciler.cli.settings import connected
from reconciler.cli.sources import check_sections, warn
from reconciler.cli.stdout import write_stdout
from reconciler.errors import UsageError

if TYPE_CHECKING:
    from reconciler.edit.export import ExportResult

LOG = logging.getLogger("reconciler")


def _name(_context: click.Context, _parameter: click.Parameter, profile_name: str | None) -> str | None:
    """Return the name of a profile; refuse a name that is no name of a file."""
    if profile_name is not None and not (
        profile_name.isascii() and profile_name.replace("-", "").replace("_", "").isalnum()
    ):
        raise click.BadParameter("takes a name of letters, digits, - and _")
    return profile_name


@command(
    CONNECTION,
    SERVICE,
    weekly="--group --project --user --output --as-set --prune --section",
    epilog="Examples: reconciler export --group acme --hoist -o manifests;  reconciler export --project acme/api "
    "--user --section milestones -o manifests",
)
@click.option(
    "--group", "groups", multiple=True, metavar="GROUP", help="Export a group and all projects below it; repeatable."
)
@click.option("--project", "project_paths", multiple=True, metavar="PROJECT", help="Export a project; repeatable.")
@click.option("--instance", is_flag=True, help="Export the settings of the whole instance; needs an administrator.")
@click.option("--user", is_flag=True, help="Export the settings of the token's user.")
@click.option(
    "-o",
    "--output",
    "folder",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Folder for the manifests; existing ones are updated in place.",
)
@click.option(
    "--state",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Also write a state for `sandbox --state`, to rehearse on; its token is `rehearsal`.",
)
@click.option(
    "--section",
    "section_names",
    multiple=True,
    metavar="NAME",
    shell_complete=suggestions.sections,
    help="Only this section; repeatable.",
)
@click.option(
    "--hoist",
    "profile",
    is_flag=False,
    flag_value="baseline",
    metavar="[NAME]",
    callback=_name,
    help="Move settings shared by at least 80 % of the newly exported projects into DIR/profiles/NAME.yaml (default: "
    "baseline).",
)
@click.option(
    "--as-set",
    is_flag=True,
    help="Write the projects of each group as one set with one profile, and documents only for what deviates.",
)
@click.option(
    "--all-fields", is_flag=True, help="With --as-set: also write fields of items that have the service's default."
)
@click.option(
    "--prune",
    is_flag=True,
    help="With --as-set: make the written sections authoritative: apply deletes all other objects.",
)
def export(
    *,
    connection: ConnectionOptions,
    output: OutputOptions,
    groups: tuple[str, ...],
    project_paths: tuple[str, ...],
    instance: bool,
    user: bool,
    folder: Path,
    section_names: tuple[str, ...],
    profile: str | None,
    as_set: bool,
    all_fields: bool,
    prune: bool,
    state: Path | None,
) -> int:
    """Write live settings as manifests that plan empty.

    Each target gets a document, such as DIR/acme/api.yaml. A document that exists is updated in place: fields that it
    declares get their live values, deleted items are removed, new ones appended; comments and order stay. Values
    that a lock holds or an exception accepts stay. Sections that it does not declare are added only if --section names
    them.

    With --as-set, a profile has what most projects share, with {path} and {name} for their own names. A project that
    deviates gets a document for the rest; one that does not fit the profile is excluded from the set. Later exports
    keep profile and set.

    Leaves out, with a warning, what cannot be read or declared, such as two trigger tokens of one description. Never
    writes secrets. Exits with 3 if some targets could not be read, and with 1 if none could.
    """
    from reconciler.edit.export import Layout, run_export
    from reconciler.edit.targets import ExportRequest
    from reconciler.kinds import all_kinds
    from reconciler.model.targets import Level

    pathless = tuple(level for level, wanted in ((Level.INSTANCE, instance), (Level.USER, user)) if wanted)
    if not (groups or project_paths or pathless):
        raise UsageError("nothing to export: give --group, --project, --user or --instance")
    for name in project_paths:
        if "/" not in name and not name.isdecimal():
            example = "a project's full path begins with its group or user, such as"
            raise UsageError(f"--project {name}: {example} acme/{name}; a group is --group {name}")
    if as_set and not groups:
        raise UsageError("--as-set needs --group")
    if as_set and profile:
        raise UsageError("--as-set and --hoist exclude each other")
    if (all_fields or prune) and not as_set:
        raise UsageError(f"{'--all-fields' if all_fields else '--prune'} needs --as-set")
    check_sections(section_names)
    asked = ExportRequest(groups, project_paths, pathless, section_names)
    with connected(connection) as client, watched(client.traffic, output) as progress:
        done = run_export(
            asked,
            client,
            all_kinds(),
            folder=folder,
            layout=Layout(profile, as_set, all_fields, prune),
            state=state,
            progress=progress,
        )
    _write_summary(done)
    return of_targets(complete=done.whole, any_target=done.targets)


def _write_summary(done: "ExportResult") -> None:
    """Warn of what was left out, and write the names of the files that were written to stdout."""
    from reconciler.edit.left_out import causes
    from reconciler.model.wording import counted

    warn(causes(each for each in done.left_out if not each.sort))
    warn(each for each in done.left_out if each.sort)
    warn(done.warnings)
    write_stdout("".join(f"{path}\n" for path in done.written))
    archived = f"; {counted(done.archived, 'archived project')} left out" if done.archived else ""
    LOG.info(
        "%s exported; %s written%s.", counted(done.targets, "target"), counted(len(done.written), "file"), archived
    )
