"""Code quality (`artifacts:reports:codequality`): faults of manifests, and problems of a plan, each at its line."""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from posixpath import normpath

from reconciler.document.document import RunDocument
from reconciler.document.style import Style
from reconciler.document.wording import problem_text, rename_notes
from reconciler.errors import LocatedDiagnostic
from reconciler.model.item import change_in, target_of
from reconciler.system.terminal import escaped

LINE = re.compile(r":\d+(:\d+)?\b")
"""The place in a file that a message refers to."""

SEVERITIES = {"error": "critical", "warning": "minor"}


def validation(diagnostics: Sequence[LocatedDiagnostic], _documents: Mapping[str, int], _style: Style) -> str:
    """Return an issue for each diagnostic.

    The fingerprint of an issue leaves out its line: GitLab compares the fingerprints of both branches, and a moved line
    must not make an old issue new.
    """
    return _issues(diagnostics)


def plan(saved: RunDocument, _style: Style) -> str:
    """Return an issue for each problem and possible rename, at its origin, and for each reason why `apply` refuses it.

    Such a reason has the place of the first target that would change.
    """
    changing = {target_of(item) for item in saved.items if change_in(item)}
    first = next((seen.origin for seen in saved.targets if seen.target in changing), "")
    refused = [_at_origin(first, f"apply will refuse this plan: {reason}") for reason in saved.refusals]
    problems = [
        _at_origin(problem.origin, f"{target_of(problem)}: {problem_text(problem)}")
        for problem in saved.findings("problem")
    ]
    renames = [
        replace(_at_origin(rename.origin, note), severity="warning")
        for rename, note in zip(saved.findings("rename"), rename_notes(saved), strict=True)
    ]
    return _issues([*problems, *refused, *renames])


def _at_origin(origin: str, message: str) -> LocatedDiagnostic:
    path, _, line = origin.rpartition(":")
    if not path or not line.isdecimal():
        path, line = origin, "0"
    return LocatedDiagnostic(path, int(line), 0, message)


def _issues(diagnostics: Sequence[LocatedDiagnostic]) -> str:
    seen = Counter[tuple[str, str]]()
    issues = []
    for diagnostic in diagnostics:
        path, text = escaped(normpath(diagnostic.path)), LINE.sub("", diagnostic.message)
        # issues of one file with the same text are numbered: each needs a fingerprint of its own
        seen[path, text] += 1
        issues.append(
            {
                "description": escaped(diagnostic.message),
                "check_name": f"reconciler-{diagnostic.severity}",
                "fingerprint": sha256(json.dumps([path, text, str(seen[path, text])]).encode()).hexdigest(),
                "severity": SEVERITIES[diagnostic.severity],
                "location": {"path": path, "lines": {"begin": max(1, diagnostic.line)}},
            }
        )
    return json.dumps(issues, indent=2) + "\n"
