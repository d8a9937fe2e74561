"""A declarative configuration reconciler for a source-code hosting service.

The flow: `manifests` are read, `engine` reads live state and plans, `document` keeps the plan, `reports` and `text`
show it, and `engine.apply` carries it out. `cli` connects these parts, and `kinds` says what there is to manage.
"""

from pathlib import Path

__version__ = "0.1.0"

CONFIGURATION = "reconciler.yaml"
"""The file in the working directory that holds settings of the command line; it is never a manifest."""

SCHEMAS = Path("schemas")
"""The folder of the schemas by which editors complete and explain manifests."""


def built_from() -> str:
    """Return the commit that this package was built from; `a checkout` where it was not built."""
    file = Path(__file__).parent / "COMMIT"
    return file.read_text(encoding="utf-8").strip() if file.exists() else "a checkout"
