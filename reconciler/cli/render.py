"""`reconciler render`."""

import click

from reconciler.cli.options import MANIFESTS, VERBOSITY, Given, options
from reconciler.cli.session import Session


@click.command(epilog="Example: reconciler render manifests --target acme/payments/api")
@options(MANIFESTS, VERBOSITY)
@click.option("--target", metavar="PATH", help="Only the target of this path or ID; `user` for the user.")
@click.option("--explain", metavar="FIELD", help="Tell which file:line each layer's value of a field came from.")
def render(given: Given, target: str | None, explain: str | None) -> int:
    """Print the effective desired state: every target with profiles merged in, as YAML."""
    from reconciler.manifests import write_yaml

    manifests = Session(given).manifests()
    ...
    return 0
