"""The doctor: whether token, service and manifests go together, found out by reading alone, and what runs will cost.

It is handed a `Reader`, so that it cannot write.
"""

from reconciler.doctor.credentials import look_at_service
from reconciler.doctor.estimates import chains_of_apply, estimate
from reconciler.doctor.findings import (
    Access,
    Costs,
    Diagnosis,
    Estimate,
    Finding,
    SectionState,
    ServiceCheck,
    TargetState,
    Verdict,
    diagnosis_content,
)
from reconciler.doctor.targets import CheckContext, look_at_targets

__all__ = [
    "Access",
    "CheckContext",
    "Costs",
    "Diagnosis",
    "Estimate",
    "Finding",
    "SectionState",
    "ServiceCheck",
    "TargetState",
    "Verdict",
    "chains_of_apply",
    "diagnosis_content",
    "estimate",
    "look_at_service",
    "look_at_targets",
]
