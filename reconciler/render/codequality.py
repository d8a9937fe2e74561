"""Faults of the manifests, and problems of a plan, as a code quality report, which shows each beside its line."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from posixpath import normpath

from reconciler.documents.plan_file import SavedPlan
from reconciler.errors import LocatedDiagnostic
from reconciler.render import Style
from reconciler.render.wording import problem_text
from reconciler.system.terminal import escaped

LINE = re.compile(r":\d+(:\d+)?\b")
"""The place in a file that a message refers to."""

SEVERITIES = {"error": "critical", "warning": "minor"}


def validation(faults: Sequence[LocatedDiagnostic], _documents: Mapping[str, int], _style: Style) -> str:
    """Return an issue for each fault.

    Its fingerprint stays when lines are moved, so that a merge request tells new faults from old ones; of faults of
    one file that read alike, each has its own.
    """
    return _issues(faults)


def plan(saved: SavedPlan, _style: Style) -> str:
    """Return an issue for each problem, at its origin, and for each reason why `apply` will refuse the plan.

    Such a reason stands at the first target that would change.
    """
    first = next((target.origin for target in saved.plan.targets if any(target.changes)), "")
    refused = [_fault(first, f"apply will refuse this plan: {reason}") for reason in saved.refusals]
    problems = [_fault(each.origin, f"{each.address.target}: {problem_text(each)}") for each in saved.plan.problems]
    return _issues([*problems, *refused])


def _fault(origin: str, message: str) -> LocatedDiagnostic:
    path, _, line = origin.rpartition(":")
    if not path or not line.isdecimal():
        path, line = origin, "0"
    return LocatedDiagnostic(path, int(line), 0, message)


def _issues(faults: Iterable[LocatedDiagnostic]) -> str:
    seen = Counter[tuple[str, str]]()
    issues = []
    for fault in faults:
        path, text = escaped(normpath(fault.path)), LINE.sub("", fault.message)
        seen[path, text] += 1
        issues.append(
            {
                "description": escaped(fault.message),
                "check_name": f"reconciler-{fault.severity}",
                "fingerprint": sha256(json.dumps([path, text, str(seen[path, text])]).encode()).hexdigest(),
                "severity": SEVERITIES[fault.severity],
                "location": {"path": path, "lines": {"begin": max(1, fault.line)}},
            }
        )
    return json.dumps(issues, indent=2) + "\n"
