"""Acceptance: manifests that agree with what is live, so that the plan is empty. Pure; `cli.accept` reads and writes.

`accept` returns texts by file: those that `cli.accept` writes, and that a merge request can hold instead.
"""

from reconciler.accept.acceptance import Acceptance, Drift, ManifestFiles, accept

__all__ = ["Acceptance", "Drift", "ManifestFiles", "accept"]
