"""Formats of results: one module each, which returns a string and prints nothing. Begin with `render_plan`.

A format's module has one or more of the functions `plan`, `report`, `comparison`, `validation` and `diagnosis`. A
module is imported only for its own format, so that a command loads neither jinja2 nor XML without need.
"""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from reconciler.document.style import PLAIN_STYLE, Style
from reconciler.errors import LocatedDiagnostic, UsageError

if TYPE_CHECKING:
    from reconciler.document.compare import Comparison
    from reconciler.document.document import RunDocument

FORMATS = ("codequality", "fleet", "html", "json", "junit", "markdown", "prometheus", "terraform-report", "text")
"""The formats; each but `text` has a module of its name in this package."""

COMMANDS_OF = {
    "plan": "plan and drift",
    "report": "apply and revert",
    "comparison": "show --since",
    "validation": "validate",
    "diagnosis": "doctor",
}
"""The commands that write a result."""


def render_plan(saved: "RunDocument", format_: str = "text", style: Style = PLAIN_STYLE) -> str:
    """Return a plan in a format; see `check_format`."""
    return _renderer("plan", format_)(saved, style)


def render_report(report: "RunDocument", format_: str = "text", style: Style = PLAIN_STYLE) -> str:
    """Return the report of an apply in a format; see `check_format`."""
    return _renderer("report", format_)(report, style)


def render_comparison(comparison: "Comparison", format_: str = "text", style: Style = PLAIN_STYLE) -> str:
    """Return the differences of two plans or reports in a format; see `check_format`."""
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


def render_diagnosis(diagnosis: object, format_: str = "text", style: Style = PLAIN_STYLE) -> str:
    """Return the doctor's findings in a format; see `check_format`."""
    return _renderer("diagnosis", format_)(diagnosis, style)


def check_format(result: str, format_: str) -> None:
    """Check that a format is for a `plan`, a `report`, a `comparison`, a `validation` or a `diagnosis`.

    Raises:
        UsageError: there is no such format, or the format is for other results.
    """
    _renderer(result, format_)


def formats_of(result: str) -> list[str]:
    """Return the formats of a kind of result; see `check_format`."""
    return [name for name in FORMATS if _function(name, result)]


def _renderer(result: str, format_: str) -> Callable[..., str]:
    if format_ not in FORMATS:
        raise UsageError(f"no format {format_}; there are {', '.join(FORMATS)}")
    render = _function(format_, result)
    if render is None:
        owners = ", ".join(commands for own, commands in COMMANDS_OF.items() if _function(format_, own))
        known = ", ".join(formats_of(result))
        raise UsageError(f"{format_} is a format of {owners}, not of {COMMANDS_OF[result]}, which has {known}")
    return render


def _function(format_: str, result: str) -> Callable[..., str] | None:
    module = "reconciler.text" if format_ == "text" else f"{__name__}.{format_.replace('-', '_')}"
    return getattr(import_module(module), result, None)
