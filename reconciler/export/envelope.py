"""The envelope of a document: what it is about, before what it says."""

from typing import Any

from reconciler.manifests.documents import API_VERSION
from reconciler.model.targets import LEVELS, Target

LEVEL_OF = {level.document_kind: level for level in LEVELS}


def document_of(target: Target, spec: dict[str, Any], profiles: list[str] | None = None) -> dict[str, Any]:
    """Return the document of a target, given its spec as it is to be written."""
    metadata: dict[str, Any] = {}
    if target.ref is not None:
        metadata["id" if isinstance(target.ref, int) else "path"] = target.ref
    if profiles:
        metadata["profiles"] = profiles
    envelope = {"apiVersion": API_VERSION, "kind": target.level.document_kind}
    return {**envelope, **({"metadata": metadata} if metadata else {}), "spec": spec}


def target_of(document: Any) -> Target | None:
    """Return the target that a document read from a file is about; None for one of another kind, or a faulty one."""
    if not isinstance(document, dict) or document.get("kind") not in LEVEL_OF:
        return None
    metadata = document.get("metadata")
    given = metadata if isinstance(metadata, dict) else {}
    level = LEVEL_OF[document["kind"]]
    return Target(level, given.get("path") or given.get("id"))
