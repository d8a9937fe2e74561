"""Turning results into text: one module per format, strings out, nothing printed.

A format's module has one or more of the functions `plan`, `report`, `comparison`, `validation` and `diagnosis`. Nothing
is imported before it is needed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from reconciler.errors import LocatedDiagnostic, UsageError

if TYPE_CHECKING:
    from reconciler.doctor import Diagnosis
    from reconciler.document.compare import Comparison
    from reconciler.document.document import RunDocument
    from reconciler.render.links import Links

FORMATS = ("codequality", "fleet", "html", "json", "junit", "markdown", "prometheus", "terraform-report", "text")
"""Each has a module of its name in this package."""

WEB_ADDRESS = r"https?://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:[0-9]+)?(/[A-Za-z0-9._~%/+-]*)?"
"""What reports link to: nothing in it means anything to Markdown or HTML, and it holds no password."""


@dataclass(frozen=True, slots=True)
class Style:
    """How much is shown, and how; a format uses what concerns it.

    Attributes:
        colour: whether ANSI colours are welcome.
        verbose: whether unmanaged objects, deleted fields, and requests are shown.
        quiet: whether only problems, unfinished changes, and the last line are shown.
        width: columns at which lines are folded; None for lines of any length.
        deletions_last: whether deletions stand together at the end.
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


COMMANDS_OF = {
    "plan": "plan and drift",
    "report": "apply and revert",
    "comparison": "show --since",
    "validation": "validate",
    "diagnosis": "doctor",
}
"""The commands that write a subject."""

PLAIN_STYLE = Style()
"""For files and other programs."""


def render_plan(saved: "RunDocument", format_: str = "text", style: Style = PLAIN_STYLE) -> str:
    """Return a plan in a format; see `check_format`."""
    return _renderer("plan", format_)(saved, style)


def render_report(report: "RunDocument", format_: str = "text", style: Style = PLAIN_STYLE) -> str:
    """Return the report of an apply in a format; see `check_format`."""
    return _renderer("report", format_)(report, style)


def render_comparison(comparison: "Comparison", format_: str = "text", style: Style = PLAIN_STYLE) -> str:
    """Return what has changed between two plans or reports in a format; see `check_format`."""
    return _renderer("comparison", format_)(comparison, style)


def render_validation(
    diagnostics: Sequence[LocatedDiagnostic],
    documents: Mapping[str, int],
    format_: str = "text",
    style: Style = PLAIN_STYLE,
) -> str:
    """Return the errors and warnings of the manifests in a format; see `check_format`.

    Args:
        diagnostics: errors and warnings.
        documents: how many documents there are of each kind, see `Manifests.documents`; empty if unknown.
        format_: the format.
        style: how much is shown.
    """
    return _renderer("validation", format_)(diagnostics, documents, style)


def render_diagnosis(diagnosis: "Diagnosis", format_: str = "text", style: Style = PLAIN_STYLE) -> str:
    """Return the doctor's findings in a format; see `check_format`."""
    return _renderer("diagnosis", format_)(diagnosis, style)


def check_format(subject: str, format_: str) -> None:
    """Check that a format is for a `plan`, a `report`, a `comparison`, a `validation` or a `diagnosis`.

    Raises:
        UsageError: there is no such format, or it is not for that.
    """
    _renderer(subject, format_)


def formats_of(subject: str) -> list[str]:
    """Return the formats of a subject; see `check_format`."""
    return [name for name in FORMATS if _function(name, subject)]


def _renderer(subject: str, format_: str) -> Callable[..., str]:
    if format_ not in FORMATS:
        raise UsageError(f"no format {format_}; there are {', '.join(FORMATS)}")
    render = _function(format_, subject)
    if render is None:
        owners = ", ".join(commands for own, commands in COMMANDS_OF.items() if _function(format_, own))
        known = ", ".join(formats_of(subject))
        raise UsageError(f"{format_} is a format of {owners}, not of {COMMANDS_OF[subject]}, which has {known}")
    return render


def _function(format_: str, subject: str) -> Callable[..., str] | None:
    return getattr(import_module(f"{__name__}.{format_.replace('-', '_')}"), subject, None)
