"""Faults of the manifests as a merge request's code quality report, which shows each beside its line."""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import sha256
from posixpath import normpath

from reconciler.errors import Fault
from reconciler.render import Style
from reconciler.terminal import escaped

LINE = re.compile(r":\d+(:\d+)?\b")
"""Where in a file something else is that a message speaks of."""

SEVERITIES = {"error": "critical", "warning": "minor"}


def validation(faults: Sequence[Fault], _documents: Mapping[str, int], _style: Style) -> str:
    """Return an issue for each fault.

    Its fingerprint stays when lines are moved, so that a merge request tells new faults from old ones; of faults of
    one file that read alike, each has its own.
    """
    seen = Counter[tuple[str, str]]()
    issues = []
    for fault in faults:
        path, said = escaped(normpath(fault.path)), LINE.sub("", fault.message)
        seen[path, said] += 1
        issues.append(
            {
                "description": escaped(fault.message),
                "check_name": f"reconciler-{fault.severity}",
                "fingerprint": _digest(path, said, str(seen[path, said])),
                "severity": SEVERITIES[fault.severity],
                "location": {"path": path, "lines": {"begin": max(1, fault.line)}},
            }
        )
    return json.dumps(issues, indent=2) + "\n"


def _digest(*parts: str) -> str:
    return sha256(json.dumps(parts).encode()).hexdigest()
