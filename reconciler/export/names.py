"""What the files of exported manifests are called."""

from pathlib import Path

from reconciler import CONFIGURATION
from reconciler.model.targets import Target

"""Is never read as a manifest where it lies in the working directory."""


def file_of(folder: Path, target: Target) -> Path:
    """Return where a target that has no document yet gets one: `acme/api.yaml`, `project-12.yaml`, `user.yaml`.

    A file whose name begins with a dot would not be found again, and one called as the tool's configuration would not
    be read: those get a `_` before their names.
    """
    name = target.ref if isinstance(target.ref, str) else str(target).replace(" ", "-")
    *folders, last = (f"_{part}" if part.startswith(".") else part for part in name.split("/"))
    path = folder.joinpath(*folders, f"{last}.yaml")
    return path.with_name(f"_{path.name}") if path.resolve() == Path(CONFIGURATION).resolve() else path
