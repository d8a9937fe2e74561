"""`reconciler validate` and `reconciler render`: the commands that only read manifests."""

import json
import logging
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from reconciler.cli.command import command
from reconciler.cli.options import (
    MANIFESTS,
    OUTPUT,
    PLACES,
    SELECTION,
    ConnectionOptions,
    Job,
    OutputOptions,
    SelectionOptions,
    SourceOptions,
)
from reconciler.cli.outputs import check_outputs
from reconciler.cli.results import write_result
from reconciler.cli.settings import tokens_of
from reconciler.cli.sources import inputs_of, select, warn_of_manifests
from reconciler.cli.stdout import write_stdout
from reconciler.errors import UsageError
from reconciler.system.secrets import concealed

if TYPE_CHECKING:
    from reconciler.manifests import Inputs, Manifests
    from reconciler.model.state import DesiredTarget


LOG = logging.getLogger("reconciler")


@command(
    MANIFESTS,
    OUTPUT,
    weekly="--values --set --format --report",
    writes="validation",
    job="validation",
    epilog="Example: reconciler validate manifests",
)
def validate(*, sources: SourceOptions, output: OutputOptions, job: Job | None) -> int:
    """Check manifests offline and report every error at once.

    PATHS are files and folders; the default is the folder `manifests`. In a job of GitLab CI, writes
    .reconciler/codequality.json too.
    """
    from reconciler.errors import ManifestErrors
    from reconciler.manifests import read_manifests
    from reconciler.reports import render_validation

    check_outputs("validation", output, sources=sources)
    try:
        manifests = read_manifests(_inputs(sources))
    except ManifestErrors as errors:
        diagnostics = [replace(each, path=concealed(each.path)) for each in errors.diagnostics]
        write_result(partial(render_validation, diagnostics, {}), output, job=job)
        return errors.exit_code
    diagnostics = sorted((*manifests.warnings, *manifests.advice))
    write_result(partial(render_validation, diagnostics, manifests.index.counts), output, job=job)
    return 0


@command(
    MANIFESTS,
    PLACES,
    SELECTION,
    weekly="--target --explain",
    epilog="Examples: reconciler render manifests --target acme/payments/api;  reconciler render --target acme/api "
    "--explain approval_settings.allow_author_approval",
)
@click.option(
    "--explain",
    metavar="FIELD",
    help="Show which file:line sets this field, such as milestones.2026.12.state, lowest layer first.",
)
def render(*, sources: SourceOptions, selection: SelectionOptions, output: OutputOptions, explain: str | None) -> int:
    """Print the effective manifest of each target as YAML.

    Merges profiles and sets in; the result is a valid manifest. Does not ask the service which projects a group has:
    shows projects with a document of their own, and those that --target names in full.
    """
    from reconciler.manifests import read_manifests
    from reconciler.manifests.yaml_emitter import write_yaml

    read = read_manifests(_inputs(sources))
    warn_of_manifests(read.warnings, output)
    manifests = _with_named(read, selection.targets)
    targets = select(manifests.desired, selection).targets
    if not targets and manifests.index.groups:
        groups = ", ".join(manifests.index.groups)
        LOG.info("Only sets were read, for projects of %s; to see one, name it in full: --target GROUP/PROJECT", groups)
    if explain is None:
        write_stdout(write_yaml(_document(target, manifests) for target in targets))
    else:
        write_stdout(_explained(targets, manifests, explain))
    return 0


def _inputs(sources: SourceOptions) -> "Inputs":
    """Return the sources of the manifests; our token is a secret even if nothing asks the service."""
    return inputs_of(sources, partial(tokens_of, ConnectionOptions()))


def _with_named(manifests: "Manifests", target_patterns: tuple[str, ...]) -> "Manifests":
    """Add the projects that are named in full to the groups that their paths begin with."""
    from reconciler.manifests import Member
    from reconciler.model.targets import Level

    named = [target for target in target_patterns if "/" in target and not set(target) & set("*?[]")]
    if not (manifests.index.groups and named):
        return manifests
    documented = [str(each.target.ref) for each in manifests.desired.targets if each.target.level is Level.PROJECT]
    paths = dict.fromkeys([*documented, *named])
    return manifests.with_discovered(
        {
            group: [Member(path) for path in paths if path.casefold().startswith(f"{group.casefold()}/")]
            for group in manifests.index.groups
        }
    )


def _explained(desired_targets: "Iterable[DesiredTarget]", manifests: "Manifests", field: str) -> str:
    """Return the layers that set a field of each target.

    Raises:
        UsageError: no manifest sets the field.
    """
    explained = "".join(_explanation(target, manifests, field) for target in desired_targets)
    if not explained:
        raise UsageError(f"no manifest sets {field} for the selected targets")
    return explained


def _explanation(target: "DesiredTarget", manifests: "Manifests", field: str) -> str:
    """Return the layers that set a field, lowest first, with `*` before the winner, or before all merged layers."""
    from functools import reduce
    from operator import getitem

    from reconciler.manifests.trace import field_path
    from reconciler.system.terminal import escaped

    merged = manifests.of(target.target)
    path = field_path(field, merged.spec)
    inherited = [f"  {escaped(each)}" for each in manifests.inherited(target.target, field)]
    lines = [escaped(f"{target.target}: {field}")]
    if not path:
        place = merged.unmanaged(field)
        lines += [f"  unmanaged by {escaped(place)}"] if place else []
        lines += inherited
        return "\n".join(lines) + "\n" if place or inherited else ""
    effective: Any = reduce(getitem, path, merged.spec)
    origins = merged.explain(path)
    width = max(len(place) for place, _ in origins)
    for number, (place, value) in enumerate(origins, 1):
        wins = origins[-1][1] != effective or number == len(origins)
        lines.append(f"  {'*' if wins else ' '} {place:{width}}  {escaped(json.dumps(value, ensure_ascii=False))}")
    lines += [f"  {escaped(each)}" for each in merged.remarks(path)]
    lines += inherited
    return "\n".join(lines) + "\n"


def _document(target: "DesiredTarget", manifests: "Manifests") -> dict[str, Any]:
    from reconciler.manifests.creation import as_written

    declared = {section.kind for section in target.sections}
    spec = manifests.of(target.target).as_written
    if "prune" in spec:
        spec["prune"] = [name for name in spec["prune"] if name in declared]
    metadata: dict[str, Any] = {}
    if target.target.ref is not None:
        metadata["id" if isinstance(target.target.ref, int) else "path"] = target.target.ref
    if target.labels:
        metadata["labels"] = dict(target.labels)
    creation = target.creation
    create = {"create": as_written(creation, str(target.target.ref).rpartition("/")[2])} if creation else {}
    return {
        "apiVersion": "reconciler/v1",
        "kind": target.target.level.capitalize(),
        **({"metadata": metadata} if metadata else {}),
        **create,
        "spec": {
            name: value
            for name, value in spec.items()
            if name in declared or (name == "prune" and value) or name == "unmanaged"
        },
    }
