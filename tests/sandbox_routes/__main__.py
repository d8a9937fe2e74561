"""Serve a state with these endpoints too, as `reconciler sandbox` does without: `python -m tests.sandbox_routes FILE`."""

import sys
from pathlib import Path

from reconciler.sandbox import serve

from . import ROUTES


def _announce(url: str) -> None:
    sys.stderr.write(f"{url}\n")


serve(Path(sys.argv[1]), port=0, dialect="deployed", routes=ROUTES, ready=_announce)
