"""Acceptance: manifests that agree with what is live, so that the plan is empty.

`accept` is a pure function: manifests, plan and live state in; out come `Acceptance.texts`, the whole new text of each
file that changes or is new, by path as the manifests name it, and `before`, their present texts.
`cli.accept` reads what it takes. The command writes the texts (`files.write_texts`); a merge request can
commit the same texts instead, each as an update if it is in `before`, else as a creation. `refused` is what stays of
the plan.
"""

from reconciler.accept.acceptance import accept
from reconciler.accept.differences import Acceptance, Drift, ManifestFiles
from reconciler.accept.excepting import Deferral, accept_until

__all__ = ["Acceptance", "Deferral", "Drift", "ManifestFiles", "accept", "accept_until"]
