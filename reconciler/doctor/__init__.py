"""The doctor: whether token, service and manifests are ready, and what runs will cost.

It is handed a `Reader`, which has no write methods.
"""

from reconciler.doctor.credentials import check_service
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
from reconciler.doctor.targets import CheckContext, check_targets

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
    "check_service",
    "check_targets",
    "diagnosis_content",
    "estimate",
]
