"""`reconciler init`."""

import logging
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING

import click

from reconciler import CONFIGURATION
from reconciler.cli.command import command
from reconciler.cli.exit_codes import of_targets
from reconciler.cli.options import CONNECTION, SERVICE, ConnectionOptions, OutputOptions
from reconciler.cli.progress import watched
from reconciler.cli.scaffold import COMPONENTS
from reconciler.cli.settings import checked_api_url, connected
from reconciler.cli.sources import warn
from reconciler.cli.stdout import write_stdout

if TYPE_CHECKING:
    from reconciler.edit.export import ExportResult

LOG = logging.getLogger("reconciler")

MANIFESTS_FOLDER = Path("manifests")

NEW_PROJECT = ", with the URL of an empty project that will hold this repository"


@command(CONNECTION, SERVICE, epilog="Example: reconciler init --group acme")
@click.option(
    "--group",
    "groups",
    multiple=True,
    metavar="GROUP",
    help="Write the manifests of this group, as export --as-set does; repeatable.",
)
@click.option(
    "--components",
    default=COMPONENTS,
    show_default=True,
    metavar="PROJECT",
    help="Project that holds the CI/CD components and the image of the jobs.",
)
@click.option("--image", metavar="IMAGE", help="Image of the jobs, if it is not in the registry of that project.")
def init(
    *,
    connection: ConnectionOptions,
    output: OutputOptions,
    groups: tuple[str, ...],
    components: str,
    image: str | None,
) -> int:
    """Set up a repository of manifests in this folder.

    Writes reconciler.yaml, a pipeline (.gitlab-ci.yml), hooks for pre-commit, schemas for editors, and a .gitignore for
    tokens, plans and reports. With --group, also the manifests that export --as-set -o manifests writes; their plan is
    empty. init-left-out.md lists the sections and objects that were left out. The last lines of the output are what to
    do next.

    Leaves files that exist alone, and names them. Writes nothing outside of this folder, nor through a link. Exits with
    3 if a file or a part of a group is missing, and with 1 if nothing was written.
    """
    from reconciler.cli.scaffold import FIRST, LEFT_OUT_FILE, PIPELINE_FILE, Pieces, left_out_text, scaffold
    from reconciler.edit.left_out import causes
    from reconciler.kinds import all_kinds
    from reconciler.model.wording import counted
    from reconciler.reports.markdown import code
    from reconciler.schema import editor_schemas
    from reconciler.system.files import A_LINK, is_linked, save_inside

    here = Path()
    exported = _export(connection, output, groups) if groups else None
    api_url = checked_api_url(connection) if connection.api_url else None
    pieces = Pieces(components, image)
    texts = scaffold(api_url, pieces) | editor_schemas(all_kinds())
    shared = [*causes(exported.left_out)] if exported else []
    if exported is not None:
        texts |= exported.texts
    elif not MANIFESTS_FOLDER.exists():
        texts[MANIFESTS_FOLDER / "baseline.yaml"] = FIRST
    if shared:
        texts[LEFT_OUT_FILE] = left_out_text((code(str(each)), each.lines) for each in shared)
    linked = [path for path in texts if not os.path.lexists(path) and is_linked(path, [here])]
    kept = [path for path in texts if os.path.lexists(path)] + [*(exported.kept if exported else ())]
    new = {path: text for path, text in texts.items() if path not in {*linked, *kept}}
    save_inside(here, new)
    warn(exported.warnings if exported else ())
    warn(f"{path} exists and is left as it is" for path in sorted(kept))
    warn(f"{path}: {A_LINK}; it is not written" for path in sorted(linked))
    write_stdout("".join(f"{line}\n" for line in _by_folder(new)))
    targets = "" if exported is None else f"{counted(exported.targets, 'target')} exported; "
    archived = f"; {counted(exported.archived, 'archived project')} left out" if exported and exported.archived else ""
    LOG.info("%s", f"{targets}{counted(len(new), 'file')} written{archived}.")
    if shared:
        LOG.info("%s", f"Not in the manifests, one by one in {LEFT_OUT_FILE}:")
        for cause in shared:
            LOG.info("%s", f"  {cause}")
    if PIPELINE_FILE in new:
        LOG.info("%s", "Before the first pipeline, these must be on the service that runs it:")
        LOG.info("%s", f"  the component  {pieces.component}")
        LOG.info("%s", f"  the image      {pieces.image}")
    if new:
        _log_next_steps(groups, shared=Path(CONFIGURATION) in new)
    return of_targets(complete=not linked and (exported is None or exported.whole), any_target=new)


def _by_folder(file_paths: Iterable[Path]) -> Iterator[str]:
    """Yield each file at the top, then a line for each folder there, with the number of its files."""
    from reconciler.model.wording import counted

    numbers: dict[str, int] = {}
    for path in sorted(file_paths):
        if len(path.parts) == 1:
            yield str(path)
        else:
            numbers[path.parts[0]] = numbers.get(path.parts[0], 0) + 1
    yield from (f"{folder}/: {counted(number, 'file')}" for folder, number in numbers.items())


def _log_next_steps(groups: tuple[str, ...], *, shared: bool) -> None:
    """Log the next steps.

    Args:
        groups: whose manifests were written.
        shared: whether the new configuration says that the inventory is kept on the remote `origin`.
    """
    from reconciler.memory.remotes import has_remote
    from reconciler.system.processes import repository

    top = repository(Path())
    lacks_remote = shared and (top is None or (which("git") is not None and not has_remote(top, "origin")))
    LOG.info("%s", f"Next{NEW_PROJECT if lacks_remote else ''}:")
    if not groups:
        LOG.info("%s", "  reconciler export --group GROUP --as-set -o manifests")
    start = f"{'' if top else 'git init && '}{'git remote add origin URL && ' if lacks_remote else ''}"
    LOG.info("%s", f'  {start}git add . && git commit --message "The settings as they are"')
    LOG.info("%s", "  reconciler plan")


def _export(connection: ConnectionOptions, output: OutputOptions, groups: tuple[str, ...]) -> "ExportResult":
    from reconciler.edit.export import Layout, draw_export
    from reconciler.edit.targets import ExportRequest
    from reconciler.kinds import all_kinds

    with connected(connection) as client, watched(client.traffic, output) as progress:
        return draw_export(
            ExportRequest(groups),
            client,
            all_kinds(),
            folder=MANIFESTS_FOLDER,
            layout=Layout(as_set=True),
            keep_existing=True,
            progress=progress,
        )
