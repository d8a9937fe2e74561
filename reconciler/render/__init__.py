"""Turning results into text: one module a format, strings out, nothing printed.

A format is a module of this package: `text`, or `as_json` for `json`, whose name Python's library has taken. It has
one or more of the functions `plan`, `report`, `validation` and `diagnosis`. Modules that begin with an underscore are
no formats. Nothing is imported before it is needed.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType
from typing import TYPE_CHECKING

from reconciler.errors import LocatedDiagnostic, UsageError

if TYPE_CHECKING:
    from reconciler.doctor import Diagnosis
    from reconciler.documents.plan_file import SavedPlan
    from reconciler.documents.report import Report


@dataclass(frozen=True, slots=True)
class Style:
    """How much is said, and how; a format heeds what concerns it.

    Attributes:
        colour: whether ANSI colours are welcome.
        verbose: whether unmanaged objects, what is deleted, and requests are named.
        quiet: whether only problems, what is not done, and the last line are wanted.
        width: how many columns there are, where longer lines would be broken anywhere; None where lines may be long.
    """

    colour: bool = False
    verbose: bool = False
    quiet: bool = False
    width: int | None = None


PLAIN = Style()
"""As a file or another program wants it."""


def _formats() -> Iterator[tuple[str, str]]:
    for module in iter_modules(__path__):
        if not module.name.startswith("_"):
            yield module.name.removeprefix("as_").replace("_", "-"), f"{__name__}.{module.name}"


FORMATS = MappingProxyType(dict(sorted(_formats())))
"""The name of each format's module, by the name of the format."""


def render_plan(saved: "SavedPlan", format_: str = "text", style: Style = PLAIN) -> str:
    """Return a plan in a format.

    Raises:
        UsageError: there is no such format, or it is not for plans.
    """
    return _render("plan", format_, saved, style)


def render_report(report: "Report", format_: str = "text", style: Style = PLAIN) -> str:
    """Return the report of an apply in a format.

    Raises:
        UsageError: there is no such format, or it is not for reports.
    """
    return _render("report", format_, report, style)


def render_validation(
    faults: Sequence[LocatedDiagnostic], documents: Mapping[str, int], format_: str = "text", style: Style = PLAIN
) -> str:
    """Return the faults of the manifests in a format.

    Args:
        faults: errors and warnings.
        documents: how many documents there are of each sort, see `Manifests.documents`; nothing where that is unknown.

    Raises:
        UsageError: there is no such format, or it is not for validations.
    """
    return _render("validation", format_, tuple(faults), documents, style)


def render_diagnosis(found: "Diagnosis", format_: str = "text", style: Style = PLAIN) -> str:
    """Return what the doctor found in a format.

    Raises:
        UsageError: there is no such format, or it is not for diagnoses.
    """
    return _render("diagnosis", format_, found, style)


def check_format(subject: str, format_: str) -> None:
    """See that a format is for a `plan`, a `report`, a `validation` or a `diagnosis`.

    Raises:
        UsageError: there is no such format, or it is not for that.
    """
    _renderer(subject, format_)


def _render(subject: str, format_: str, *arguments: object) -> str:
    return str(_renderer(subject, format_)(*arguments))


def _renderer(subject: str, format_: str) -> Callable[..., object]:
    if format_ not in FORMATS:
        raise UsageError(f"no format {format_}; there are {', '.join(FORMATS)}")
    render: Callable[..., object] | None = getattr(import_module(FORMATS[format_]), subject, None)
    if render is None:
        raise UsageError(f"the format {format_} is not for a {subject}")
    return render
