"""`reconciler render`."""

from typing import TYPE_CHECKING, Any

import click

from reconciler.cli.options import MANIFESTS, SELECTION, VERBOSITY, Given, options
from reconciler.cli.session import Session

if TYPE_CHECKING:
    from reconciler.manifests import Manifests
    from reconciler.state import Target


@click.command(epilog="Example: reconciler render manifests --target acme/payments/api")
@options(MANIFESTS, SELECTION, VERBOSITY)
def render(given: Given) -> int:
    """Print the effective desired state: every target with its profiles merged in, as YAML that validates."""
    from reconciler.manifests.plain import write_yaml

    session = Session(given)
    manifests = session.manifests()
    targets = session.select(manifests.desired).targets
    click.echo(write_yaml(_document(target, manifests) for target in targets), nl=False)
    return 0


def _document(target: "Target", manifests: "Manifests") -> dict[str, Any]:
    declared = {section.kind for section in target.sections}
    spec = manifests.effective(target.scope)
    if "prune" in spec:
        spec["prune"] = [name for name in spec["prune"] if name in declared]
    metadata: dict[str, Any] = {}
    if target.scope.ref is not None:
        metadata["id" if isinstance(target.scope.ref, int) else "path"] = target.scope.ref
    if target.labels:
        metadata["labels"] = dict(target.labels)
    return {
        "apiVersion": "reconciler/v1",
        "kind": target.scope.level.capitalize(),
        **({"metadata": metadata} if metadata else {}),
        "spec": {name: value for name, value in spec.items() if name in declared or (name == "prune" and value)},
    }
