"""Find the commit whose manifests equal those that were read: a plan and the inventory name it. See `committed`."""

from collections.abc import Iterator
from pathlib import Path

from reconciler import CONFIGURATION
from reconciler.errors import ConfigurationError
from reconciler.manifests import Inputs, Manifests
from reconciler.memory.snapshot import Snapshot, equals_object, snapshot


def committed(inputs: Inputs, manifests: Manifests) -> str:
    """Return the checked-out commit if its manifests equal those that were read, else an empty text.

    The values of `--set` and `--env`, which are in no file, are not compared.
    """
    try:
        head = snapshot("HEAD", inputs.paths[0])
        return "" if any(_different(head, inputs, manifests)) else head.commit
    except ConfigurationError:
        return ""


def _different(head: Snapshot, inputs: Inputs, manifests: Manifests) -> Iterator[str]:
    """Yield the manifests, settings and files of values that differ from those of a commit, or exist on one side only.

    Archives are compared if git tracks them.
    """
    objects = head.manifests(inputs.paths)
    yield from (name for name in manifests.files if not equals_object(name, objects.get(name, "")))
    yield from objects.keys() - {*manifests.files}
    configuration = Path(CONFIGURATION)
    if head.file(configuration) != (configuration.read_bytes() if configuration.is_file() else None):
        yield CONFIGURATION
    yield from (name for name in inputs.values_files if head.file(Path(name)) != Path(name).read_bytes())
    creations = (target.creation for target in manifests.desired.targets if target.creation)
    archives = {creation.archive.file: head.object(creation.archive.file) for creation in creations if creation.archive}
    yield from (str(file) for file, then in archives.items() if then and not equals_object(str(file), then))
