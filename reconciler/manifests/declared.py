"""What a document declares: a target, a set, or a profile, as far as its form is right."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from pydantic import ValidationError

from reconciler.manifests.creation import CREATE_KEY, Surroundings, errors_beside, read_creation
from reconciler.manifests.diagnostics import Diagnostic
from reconciler.manifests.documents import (
    API_VERSION,
    DOCUMENTS,
    LEVEL_OF,
    AcceptedDeviation,
    AnyDocument,
    GroupDocument,
    ProfileDocument,
    ProjectDocument,
    ProjectSetDocument,
    Selection,
    SetMetadata,
    TargetDocument,
    TargetMetadata,
    UserMetadata,
    metadata_keys,
)
from reconciler.manifests.layer import EXCEPTIONS, read_layer
from reconciler.manifests.sources import Document
from reconciler.manifests.stack.layers import Layer
from reconciler.manifests.stack.placeholders import placeholder_values
from reconciler.manifests.stack.sections import PRUNE, UNMANAGED, SectionSpecs
from reconciler.manifests.validation import diagnose
from reconciler.model.creation import Creation
from reconciler.model.targets import Key, Target
from reconciler.model.wording import listed, unknown

STANDS_FOR = {"path": {"name", "select"}, "id": {"name", "select"}, "select": {"select"}}
"""Required keys of a profile or set that people believe to have given, by the key that they misplaced in `metadata`."""


@dataclass(frozen=True, slots=True)
class DeclaredTarget:
    """A user, group or project that has a document of its own; its exceptions by their positions there."""

    target: Target
    metadata: UserMetadata
    layer: Layer
    exceptions: Mapping[int, AcceptedDeviation]
    creation: Creation | None = None


@dataclass(frozen=True, slots=True)
class DeclaredSet:
    """A set of projects."""

    metadata: SetMetadata
    select: Selection
    layer: Layer


Declared = DeclaredTarget | DeclaredSet | Layer
"""What a document declares; of a profile, its layer."""


def declare(document: Document, specs: SectionSpecs, around: Surroundings) -> tuple[Declared | None, list[Diagnostic]]:
    """Return what a document declares, and its errors and warnings.

    Of a document with faults, that is what does not depend on them; None if everything does.
    """
    kind = document.value.get("kind") if isinstance(document.value, dict) else None
    model = DOCUMENTS.get(kind) if isinstance(kind, str) else None
    if model is None:
        return None, [_unknown_kind(document.value)]
    faults: list[Diagnostic] = []
    diagnostics: list[Diagnostic] = []
    form: Any = None
    try:
        form = model.model_validate(document.value)
    except ValidationError as error:
        faults = diagnose(error, document.value, model)
        diagnostics = [_about_place(fault, model, specs) for fault in _without_consequences(faults)]
        with suppress(ValidationError):
            form = model.model_validate(_without_faults(document.value, faults))
        creates = form is not None and CREATE_KEY in form.model_fields_set
        if CREATE_KEY in document.value and model in {GroupDocument, ProjectDocument} and not creates:
            diagnostics += errors_beside(document, LEVEL_OF[str(kind)], diagnostics, around)
    declared: Declared | None = None
    match form:
        case None:
            more = read_layer(document, specs)[1] if isinstance(document.value.get("spec"), dict) else []
        case ProfileDocument(metadata=metadata):
            declared, more = read_layer(document, specs, f"profile {metadata.name}", locks=metadata.locks)
        case ProjectSetDocument(metadata=metadata, select=select):
            layer, more = read_layer(document, specs, f"set {metadata.name}", locks=metadata.locks)
            declared = DeclaredSet(metadata, select, layer)
        case _:
            declared, more = _target(document, form, _faulty_exceptions(faults), specs, around)
    return declared, diagnostics + more


def _target(
    document: Document,
    form: TargetDocument,
    faulty_exceptions: Collection[Key],
    specs: SectionSpecs,
    around: Surroundings,
) -> tuple[DeclaredTarget, list[Diagnostic]]:
    """Return the target of a document, and what is wrong with its spec and its creation."""
    metadata = form.metadata
    numbers = (number for number in count() if number not in faulty_exceptions)
    exceptions = dict(zip(numbers, metadata.exceptions, strict=False))
    target = Target(LEVEL_OF[form.kind])
    if isinstance(metadata, TargetMetadata):
        target = Target(target.level, metadata.path or metadata.id)
    layer, diagnostics = read_layer(document, specs, alone=False)
    creation = None
    if (
        isinstance(form, GroupDocument | ProjectDocument)
        and CREATE_KEY in form.model_fields_set
        and layer.overfilled(placeholder_values(target.ref if isinstance(target.ref, str) else None)) is None
    ):
        creation, errors = read_creation(document, target, form.create, around)
        diagnostics += errors
    return DeclaredTarget(target, metadata, layer, exceptions, creation), diagnostics


def _about_place(diagnostic: Diagnostic, model: type[AnyDocument], specs: SectionSpecs) -> Diagnostic:
    """Say so if an unknown key of a document belongs under `spec` or `metadata`."""
    key = diagnostic.steps[-1] if diagnostic.at_key and len(diagnostic.steps) == 1 else None
    if key in {PRUNE, UNMANAGED, *specs}:
        return replace(diagnostic, message=f"`{key}` belongs under `spec`")
    return (
        replace(diagnostic, message=f"`{key}` belongs under `metadata`") if key in metadata_keys(model) else diagnostic
    )


def _without_faults(document: Mapping[str, Any], faults: Sequence[Diagnostic]) -> Mapping[str, Any]:
    """Return a document without what has faults, as far as nothing else depends on that."""
    metadata = document.get("metadata")
    kept = dict(metadata) if isinstance(metadata, dict) else {}
    rest = {**document, "metadata": kept} if kept else dict(document)
    faulty = _faulty_exceptions(faults)
    if faulty:
        kept[EXCEPTIONS] = [exception for number, exception in enumerate(kept[EXCEPTIONS]) if number not in faulty]
    for steps in (fault.steps for fault in faults):
        if steps[:1] == (CREATE_KEY,):
            rest.pop(CREATE_KEY, None)
        elif steps == ("metadata", EXCEPTIONS) or steps[:2] in {("metadata", "labels"), ("metadata", "locks")}:
            kept.pop(str(steps[1]), None)
    return rest


def _faulty_exceptions(faults: Sequence[Diagnostic]) -> frozenset[Key]:
    """Return the positions of the exceptions that have faults."""
    inside = [fault.steps[2:3] for fault in faults if fault.steps[:2] == ("metadata", EXCEPTIONS)]
    return frozenset(position for steps in inside for position in steps)


def _without_consequences(diagnostics: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Leave out missing keys for which a misplaced one stands: its message says where it belongs."""
    unknown_keys = [each.steps for each in diagnostics if each.code == "extra_forbidden"]
    misplaced = [steps[-1] for steps in unknown_keys if steps[:1] == ("metadata",)]
    implied = {name for key in misplaced for name in STANDS_FOR.get(key, ())}
    return [each for each in diagnostics if each.code != "missing" or each.value not in implied]


def _unknown_kind(value: Any) -> Diagnostic:
    kinds = listed(DOCUMENTS, "or")
    if not isinstance(value, dict):
        what = "a list" if isinstance(value, list) else "a single value"
        return Diagnostic((), f"a manifest is a mapping with apiVersion, kind, metadata and spec, not {what}")
    if "kind" in value:
        kind = value["kind"]
        is_word = isinstance(kind, str) and kind
        return Diagnostic(("kind",), unknown("kind", kind, DOCUMENTS) if is_word else f"must be one of {kinds}")
    if "apiVersion" in value:
        return Diagnostic((), f"the key `kind` is missing: {kinds}")
    return Diagnostic((), f"not a manifest: apiVersion ({API_VERSION}) and kind ({kinds}) are missing")
