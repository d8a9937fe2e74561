"""`reconciler validate`."""

from functools import partial

import click

from reconciler.cli.options import MANIFESTS, OUTPUT, Given, options
from reconciler.cli.outputs import check_outputs
from reconciler.cli.session import Session


@click.command(epilog="Example: reconciler validate manifests")
@options(MANIFESTS, OUTPUT)
def validate(given: Given) -> int:
    """Check manifests without the service, and tell every error at once.

    PATHS are files and folders; without any, the folder `manifests`.
    """
    from reconciler.errors import ManifestErrors
    from reconciler.render import render_validation

    check_outputs(given, "validation")
    session = Session(given)
    try:
        manifests = session.read_manifests()
    except ManifestErrors as errors:
        session.write_result(partial(render_validation, errors.faults, {}))
        return errors.exit_code
    faults = sorted((*manifests.warnings, *manifests.advice))
    session.write_result(partial(render_validation, faults, manifests.documents))
    return 0
