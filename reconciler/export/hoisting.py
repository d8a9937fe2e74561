"""Documents that leave to a profile what most projects share, and say only the rest."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from reconciler.errors import ManifestErrors
from reconciler.export.checking import disagreements
from reconciler.export.documents import tree, write
from reconciler.export.envelope import document_of
from reconciler.export.sections import Exported, Spec
from reconciler.export.sharing import profile_document, shared
from reconciler.export.targets import Known
from reconciler.export.updating import PRUNE, Written, update
from reconciler.manifests.layers import SectionSpecs, literal, normalize, placeholder_values, section_specs
from reconciler.model.kind import Kinds
from reconciler.model.state import LiveState, Unreadable

SHARE = 0.8
"""The part of the projects that must have something for it to be shared."""


@dataclass(frozen=True, slots=True)
class SharedProfile:
    """What becomes of some projects that share a profile.

    Attributes:
        profile: its spec; empty where there is nothing to share.
        documents: by project, its document; of one that would not come to what was read, without the profile.
    """

    profile: Spec
    documents: Mapping[Known, dict[str, Any]]


def hoist(
    name: str, projects: Sequence[Exported], live: LiveState, kinds: Kinds, profile: Spec | None = None
) -> SharedProfile:
    """Return the profile of some projects, and what is left of them.

    Args:
        name: of the profile.
        projects: those that have no documents yet.
        live: what was read.
        kinds: all kinds.
        profile: the spec of the profile where there is one already.
    """
    shapes = section_specs(kinds)
    spec = shared(projects, shapes, SHARE) if profile is None else profile
    documents = {}
    for project in projects:
        slim = _slim(name, spec, project, live, shapes) if spec else None
        if slim is None or not _agrees(profile_document(name, spec), slim, project.known, live, kinds):
            slim = document_of(project.known.target, literal(project.spec))
        documents[project.known] = slim
    used = any("profiles" in document["metadata"] for document in documents.values())
    return SharedProfile(spec if used else {}, documents)


def _slim(name: str, profile: Spec, project: Exported, live: LiveState, shapes: SectionSpecs) -> dict[str, Any] | None:
    """Return a project's document above the profile; None where the profile does not suit it."""
    target = project.known.target
    sections = [section for section in profile if section != PRUNE]
    addresses = [(target, section, part.name) for section in sections for part in shapes[section].kind.parts]
    if any(isinstance(live.parts.get(address, Unreadable("")), Unreadable) for address in addresses):
        return None
    values = placeholder_values(project.known.path)
    beneath = {section: normalize(shapes[section], profile[section], values) for section in sections}
    written = Written({}, beneath, tuple(profile.get(PRUNE, ())), adding=tuple(shapes), whole=True, values=values)
    try:
        return document_of(target, update(written, project, live, shapes), [name])
    except ValidationError:
        return None


def _agrees(profile: dict[str, Any], document: dict[str, Any], known: Known, live: LiveState, kinds: Kinds) -> bool:
    texts = {Path("profile"): write([tree(profile)]), Path("project"): write([tree(document)])}
    try:
        return not any(disagreements(texts, [known], live, kinds))
    except ManifestErrors:
        return False
