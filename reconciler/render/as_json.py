"""JSON for programs: the documents that are saved, the faults of the manifests, and what the doctor found."""

import json
from collections.abc import Mapping, Sequence

from reconciler.doctor import Diagnosis, diagnosis_content
from reconciler.documents.plan_file import SavedPlan, save_plan
from reconciler.documents.report import Report, save_report
from reconciler.errors import LocatedDiagnostic
from reconciler.model.targets import Level
from reconciler.render import Style


def plan(saved: SavedPlan, _style: Style) -> str:
    """Return the saved plan, which `apply --plan` takes."""
    return save_plan(saved)


def report(done: Report, _style: Style) -> str:
    """Return the apply report, as it is saved."""
    return save_report(done)


def validation(faults: Sequence[LocatedDiagnostic], documents: Mapping[str, int], _style: Style) -> str:
    """Return the faults of the manifests, errors and warnings, by place."""
    content = {
        "format": "reconciler.validation/v1",
        "valid": all(fault.severity != "error" for fault in faults),
        "faults": [
            {
                "path": fault.path,
                "line": fault.line,
                "column": fault.column,
                "severity": fault.severity,
                "message": fault.message,
            }
            for fault in faults
        ],
        "documents": dict(documents),
        "targets": sum(documents.get(level, 0) for level in Level),
    }
    return json.dumps(content, indent=2) + "\n"


def diagnosis(found: Diagnosis, _style: Style) -> str:
    """Return what the doctor found."""
    return json.dumps(diagnosis_content(found), indent=2) + "\n"
