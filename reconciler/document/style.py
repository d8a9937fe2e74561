"""How much of a document is shown, and how: the options of a command that concern its formats."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # help and completion know styles, and import no documents
    from reconciler.document.document import RunDocument
    from reconciler.document.links import Links


@dataclass(frozen=True, slots=True)
class Style:
    """How much is shown, and how; each format ignores the options that it has no use for.

    Attributes:
        colour: whether ANSI colours are welcome.
        verbose: whether unmanaged objects, deleted fields, and requests are shown.
        quiet: whether only problems, unfinished changes, and the last line are shown.
        width: columns at which lines are folded; None for lines of any length.
        deletions_last: whether deletions are together at the end.
        group_by: `target` shows each target, `change` groups equal changes of two or more targets; None for a default.
        links: returns the links of a plan or a report; None for none. See `links.links_of`.
    """

    colour: bool = False
    verbose: bool = False
    quiet: bool = False
    width: int | None = None
    deletions_last: bool = False
    group_by: str | None = None
    links: "Callable[[RunDocument], Links] | None" = None


PLAIN_STYLE = Style()
"""For files and other programs."""


def links_of(document: "RunDocument", style: Style) -> "Links":
    """Return the links of a plan or a report in the given style."""
    from reconciler.document.links import NOWHERE, Links  # noqa: PLC0415 - as above

    return style.links(document) if style.links else Links(document, NOWHERE)
