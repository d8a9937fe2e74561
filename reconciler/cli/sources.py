"""The manifests of a run, as its options name and select them, and the warnings about them.

Begin with `inputs_of` and `select`.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from reconciler.cli.options import OutputOptions, SelectionOptions, SourceOptions
from reconciler.cli.settings import given_outside, template_variables
from reconciler.errors import LocatedDiagnostic, UsageError

if TYPE_CHECKING:
    from reconciler.engine.compare.selection import RunSelection
    from reconciler.manifests import Inputs, Manifests
    from reconciler.memory.revision import Revision
    from reconciler.model.state import DesiredState

LOG = logging.getLogger("reconciler")


def inputs_of(sources: SourceOptions, secrets: Callable[[], Collection[str]]) -> "Inputs":
    """Return the sources of the manifests.

    Args:
        sources: the options.
        secrets: returns our own secrets, which no template may show.

    Raises:
        ConfigurationError: see `template_variables`.
    """
    from reconciler.kinds import all_kinds
    from reconciler.manifests import Inputs

    variables = template_variables(sources, secrets)
    return Inputs(sources.roots, all_kinds(), sources.values, dict(sources.set), variables, secrets)


def revision(name: str, inputs: "Inputs", present: "Manifests") -> "Revision":
    """Read the manifests of a git revision whole; warn if HEAD does not descend from the revision.

    Args:
        name: of the revision, as the user gives it.
        inputs: the sources of now.
        present: the manifests of now.

    Raises:
        ManifestErrors: its `reconciler.yaml` is not valid.
        ConfigurationError: the revision cannot be read.
        UsageError: the name is not valid.
    """
    from reconciler.memory.revision import read_revision
    from reconciler.memory.snapshot import snapshot

    then = snapshot(name, inputs.paths[0])
    parted = then.parted()
    if parted is not None:
        remedy = f"; to leave it out, use the common ancestor: --since {parted}" if parted else ""
        LOG.warning(
            "--since %s: this revision is not an ancestor of the checked-out commit; what changed there since the "
            "two parted counts as changed here%s",
            name,
            remedy,
        )
    return read_revision(then, inputs, present, given=given_outside("paths", "values", "set", "env"))


def select(desired: "DesiredState", selection: SelectionOptions) -> "DesiredState":
    """Return the part of a state that the options select; warn of oddities.

    Raises:
        NothingSelected: no target has a selected path or label.
        UsageError: there is no such section, or no target declares it.
    """
    from reconciler.engine.compare import selection as selecting

    check_sections(selection.sections)
    chosen = run_selection(selection)
    selected = selecting.select(desired, chosen)
    warn(selecting.exclusion_warnings(chosen, desired))
    return selected


def run_selection(selection: SelectionOptions) -> "RunSelection":
    """Return the selected targets and sections."""
    from reconciler.engine.compare.selection import RunSelection
    from reconciler.model.globs import Globs

    return RunSelection(Globs(selection.targets), Globs(selection.excluded), selection.labels, selection.sections)


def check_sections(names: Iterable[str]) -> None:
    """Refuse an unknown `--section`.

    Raises:
        UsageError: there is no such section.
    """
    from reconciler.kinds import all_kinds
    from reconciler.model.kind import unknown_kind

    kinds = all_kinds()
    for name in names:
        if name not in kinds:
            raise UsageError(unknown_kind(name, kinds.values(), kinds))


def warn(warnings: Iterable[object]) -> None:
    """Log warnings."""
    for warning in warnings:
        LOG.warning("%s", warning)


def warn_of_manifests(warnings: Sequence[LocatedDiagnostic], output: OutputOptions) -> None:
    """Log warnings about manifests; unless verbose, all warnings with the same message as one."""
    if warnings:
        from reconciler.document.wording import warned_once

        warn(warnings if output.verbose else warned_once(warnings))
