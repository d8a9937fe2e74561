"""Saved plans and reports, read from the files that a command names: `read_plan` and `read_report`."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.cli.settings import read_file
from reconciler.errors import PlanRefused

if TYPE_CHECKING:
    from reconciler.document.document import RunDocument


def read_plan(file: Path) -> "RunDocument":
    """Return the plan in a file.

    Raises:
        ConfigurationError: the file cannot be read.
        PlanRefused: the file has no plan, or an edited plan; the message names the file.
    """
    from reconciler.document.stored import load_plan
    from reconciler.kinds import all_kinds

    with naming_document(file):
        return load_plan(read_file(file), all_kinds())


def read_report(file: Path) -> "RunDocument":
    """Return the report of an apply in a file; errors are as of `read_plan`."""
    from reconciler.document.stored import load_report
    from reconciler.kinds import all_kinds

    with naming_document(file):
        return load_report(read_file(file), all_kinds())


@contextmanager
def naming_document(file: Path) -> Iterator[None]:
    """Name the file in the errors about its document."""
    try:
        yield
    except PlanRefused as error:
        raise type(error)(f"{file}: {error}") from error
