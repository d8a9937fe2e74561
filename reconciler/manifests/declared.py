"""Turn one document into a layer: a target, a set, or a profile, without the parts that have errors of form.

Begin with `declare`. The layer has the sections of the document's spec, `prune`, `unmanaged`, and the placeholders.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any

from pydantic import ValidationError

from reconciler.manifests.creation import CREATE_KEY, Surroundings, read_creation
from reconciler.manifests.diagnostics import WRITTEN, Diagnostic
from reconciler.manifests.documents import (
    API_VERSION,
    DOCUMENTS,
    LEVEL_OF,
    LEVELS_OF,
    AnyDocument,
    GroupDocument,
    ProfileDocument,
    ProjectDocument,
    ProjectSetDocument,
    TargetMetadata,
    metadata_keys,
)
from reconciler.manifests.layers import (
    ALL,
    AT_LEAST,
    DEFAULT_BRANCH,
    LOCKS,
    NAMES,
    NO_SECTIONS,
    PATH_NAMES,
    PRUNE,
    UNMANAGED,
    DeclaredSet,
    DeclaredTarget,
    Layer,
    LetGo,
    Placeholders,
    SectionSpec,
    SectionSpecs,
    braces,
    has_placeholder,
    level_error,
    misspelt_placeholder,
    placeholder_values,
    placeholders_in,
    unknown_section,
)
from reconciler.manifests.locks import restriction_errors
from reconciler.manifests.sources import Document, Steps
from reconciler.manifests.validation import check_alone, diagnose
from reconciler.model.targets import LEVELS, Key, Level, Target
from reconciler.model.wording import KNOWN_ARE, listed, unknown

EXCEPTIONS = "exceptions"
BESIDE_SPEC = {("metadata", "labels"), ("metadata", LOCKS), ("metadata", AT_LEAST)}
"""Mappings that are dropped if they have errors, so that the remaining document can still be read."""

IMPLIED_KEYS = {"path": {"name", "select"}, "id": {"name", "select"}, "select": {"select"}}
"""By misplaced key of `metadata`, the required keys whose absence follows from the mistake."""


def declare(
    document: Document, specs: SectionSpecs, surroundings: Surroundings
) -> tuple[Layer | None, list[Diagnostic]]:
    """Return a document as a layer, and its errors and warnings.

    The layer lacks the parts that have errors; it is None if no part of the document can be used.
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
            # once more without the faulty parts: a document with one wrong label still declares its target, so that
            # fewer errors are mere consequences
            form = model.model_validate(_without_faults(document.value, faults))
    # A target's own document is checked after it is merged: its profiles and sets may have the keys that it lacks.
    alone = form is None or kind not in LEVEL_OF
    layer, more = _read_spec(document, specs, _form(form, _faulty_exceptions(faults)), alone=alone)
    target = layer.target if isinstance(layer, DeclaredTarget) else None
    values = placeholder_values(target.ref if target and isinstance(target.ref, str) else None)
    if CREATE_KEY in document.value and model in {GroupDocument, ProjectDocument} and not layer.overfilled(values):
        create = form.create if target and CREATE_KEY in form.model_fields_set else None
        creation, errors = read_creation(document, LEVEL_OF[str(kind)], create, diagnostics, surroundings)
        more += errors
        layer = replace(layer, creation=creation) if isinstance(layer, DeclaredTarget) else layer
    return (None if form is None else layer), diagnostics + more


def _form(form: Any, faulty_exceptions: frozenset[Key]) -> Callable[..., Layer]:
    """Return a function that makes the layer of a document from the parts of its spec.

    Args:
        form: the validated document, without the exceptions that have errors; None if the form is wrong.
        faulty_exceptions: the positions of those exceptions.
    """
    match form:
        case None:
            return partial(Layer, title="")
        case ProfileDocument(metadata=metadata):
            title = f"profile {metadata.name}"
            return partial(Layer, title=title, locks=metadata.locks, at_least=metadata.at_least)
        case ProjectSetDocument(metadata=metadata, select=select):
            make: Callable[..., Layer] = partial(DeclaredSet, title=f"set {metadata.name}", locks=metadata.locks)
            make = partial(make, at_least=metadata.at_least, select=select, priority=metadata.priority)
        case _:
            metadata = form.metadata
            ref = (metadata.path or metadata.id) if isinstance(metadata, TargetMetadata) else None
            # The positions are those in the document, since messages name the place of an exception.
            numbers = (number for number in count() if number not in faulty_exceptions)
            exceptions = dict(zip(numbers, metadata.exceptions, strict=False))
            target = Target(LEVEL_OF[form.kind], ref)
            make = partial(DeclaredTarget, title="", target=target, exceptions=exceptions, creation=None)
    return partial(make, profiles=metadata.profiles, labels=metadata.labels)


def _read_spec(
    document: Document, specs: SectionSpecs, make: Callable[..., Layer], *, alone: bool
) -> tuple[Layer, list[Diagnostic]]:
    """Return a document as a layer without the sections that cannot be merged, and the errors and warnings of its spec.

    Args:
        document: the document.
        specs: of all sections.
        make: see `_form`.
        alone: whether the sections are checked here, since the check of a target does not cover them.
    """
    spec, kind = document.value.get("spec", {}), document.value["kind"]
    spec, levels = spec if isinstance(spec, dict) else {}, LEVELS_OF[kind]
    names = [name for name in spec if name not in {PRUNE, UNMANAGED}]
    errors = {name: _section_error(name, spec[name], levels, DOCUMENTS[kind], specs) for name in names}
    diagnostics = [Diagnostic(("spec", name), error, at_key=True) for name, error in errors.items() if error]
    sections = {name: spec[name] for name, error in errors.items() if not error}
    prune, faulty = _read_prune(spec[PRUNE], specs) if PRUNE in spec else (None, [])
    diagnostics += faulty
    unmanaged, faulty = _read_unmanaged(spec, levels, document, specs) if UNMANAGED in spec else (NO_SECTIONS, [])
    let_go, faults = _read_let_go(spec, levels[0], specs) if UNMANAGED in spec and kind in LEVEL_OF else ((), [])
    diagnostics += [*faulty, *faults]
    normalized = {name: specs[name].normalize(value, None) for name, value in sections.items()}
    for name, value in sections.items():
        if isinstance(value, dict) and len(normalized[name]) < len(value):
            diagnostics += clashing_names(document, specs[name], value, None)
        if alone:
            diagnostics += check_alone(specs[name], value, levels)
    texts = [*braces(sections, ("spec",))]
    waits = any(has_placeholder(text) for text, *_ in texts)
    if not alone:
        texts += braces(spec.get(UNMANAGED, []), ("spec", UNMANAGED))
        texts += braces(document.value.get("metadata", {}).get(EXCEPTIONS, []), ("metadata", EXCEPTIONS))
        texts += braces(document.value.get(CREATE_KEY, {}), (CREATE_KEY,))
    uses: dict[str, list[Steps]] = {}
    for text, steps, at_key in texts:
        names_branch = _names_branch(document, specs, steps)
        for name in placeholders_in(text):
            if name != DEFAULT_BRANCH or names_branch:
                uses.setdefault(name, []).append(steps)
            else:
                diagnostics.append(Diagnostic(steps, _no_branch(specs), "warning", at_key))
        misspelt = misspelt_placeholder(text, NAMES if names_branch else PATH_NAMES)
        diagnostics += [Diagnostic(steps, misspelt, "warning", at_key)] if misspelt else []
    layer = make(
        document=document,
        sections=sections,
        prune=prune,
        placeholders=uses,
        normalized=None if waits else normalized,
        unmanaged=unmanaged,
        let_go=let_go,
    )
    return layer, [*diagnostics, *restriction_errors(layer, specs)]


def _names_branch(document: Document, specs: SectionSpecs, steps: Steps) -> bool:
    """Return whether `{default_branch}` has a meaning at some steps of a section, an exception or `unmanaged`."""
    match steps:
        case ("spec", "unmanaged", int(), str(section), *_):
            return section in specs and specs[section].names_branch()
        case ("spec", str(section), _, str(field), *_):
            return specs[section].names_branch(field)
        case ("spec", str(section), *_):
            return specs[section].names_branch()
        case ("metadata", "exceptions", int(number), "item"):
            section = document.value["metadata"][EXCEPTIONS][number].get("section")
            return isinstance(section, str) and section in specs and specs[section].names_branch()
    return False


def _no_branch(specs: SectionSpecs) -> str:
    """Return the warning about `{default_branch}` where it has no meaning."""
    whole = [name for name, spec in specs.items() if spec.names_branch()]
    fields = [f"{name}.{field}" for name, spec in specs.items() for field in sorted(spec.kind.branch_fields or ())]
    return f"`{{{DEFAULT_BRANCH}}}` has a meaning only in {listed([*whole, *fields])}, and stays as it is here"


def _section_error(
    name: str, value: Any, levels: tuple[Level, ...], model: type[AnyDocument], specs: SectionSpecs
) -> str | None:
    """Return the reason for which a section cannot be merged; None if it can."""
    if name == CREATE_KEY or (name not in specs and name in model.model_fields):
        return f"`{name}` belongs beside `spec`, not in it"
    if name not in specs:
        if name in metadata_keys(model):
            return f"`{name}` belongs under `metadata`"
        message = unknown_section(name, specs, [PRUNE, UNMANAGED, *specs])
        return f"{message}; if a package adds it, install that package here" if KNOWN_ARE in message else message
    error = level_error(name, levels[0], specs) if len(levels) == 1 else None
    if error is None and value is None:
        advice = ": leave it out" + (
            ", or write `{}` if none of yours may exist there, with `prune` if nothing may"
            if specs[name].kind.prunable
            else ""
        )
        return f"{name} has no value{advice}"
    return error


def _read_prune(prune: Any, specs: SectionSpecs) -> tuple[list[str], list[Diagnostic]]:
    """Return the sections to prune, with empty text in place of each wrong one, and the errors."""
    if not isinstance(prune, list):
        return [], [Diagnostic(("spec", PRUNE), "prune must be a list of sections: `prune: [milestones]`")]
    prunable = [section for section, spec in specs.items() if spec.kind.prunable]
    message = f"cannot be pruned; prunable are {listed(prunable)}"
    return _listed_sections(PRUNE, dict(enumerate(prune)), prunable, specs, lambda name: f"{name} {message}")


def _listed_sections(
    key: str,
    written_names: Mapping[int, Any],
    possible: Sequence[str],
    specs: SectionSpecs,
    impossible: Callable[[str], str | None],
) -> tuple[list[str], list[Diagnostic]]:
    """Return the sections in a list of names, with empty text in place of each wrong one, and the errors.

    Args:
        key: the key of the list.
        written_names: the entries of the list, each by its index.
        possible: the sections that the list may name.
        specs: of all sections.
        impossible: returns the error of a section that the list may not name.
    """
    diagnostics: list[Diagnostic] = []
    for index, name in written_names.items():
        error = None
        if not isinstance(name, str):
            error = f"{key} lists the names of sections: {listed(possible)}"
        elif name not in possible:
            error = impossible(name) if name in specs else unknown_section(name, specs, possible)
        diagnostics += [Diagnostic(("spec", key, index), error)] if error else []
    wrong = {diagnostic.steps[-1] for diagnostic in diagnostics}
    return ["" if index in wrong else name for index, name in written_names.items()], diagnostics


def _read_unmanaged(
    raw_spec: Mapping[str, Any], levels: tuple[Level, ...], document: Document, specs: SectionSpecs
) -> tuple[frozenset[str], list[Diagnostic]]:
    """Return the sections that a document leaves alone, and the errors."""
    above: Steps = ("spec", UNMANAGED)
    if document.value["kind"] not in LEVEL_OF:
        owners = listed(level.document_kind for level in LEVELS)
        message = f"`{UNMANAGED}` belongs to {owners}, each for itself: leave the sections out here"
        return NO_SECTIONS, [Diagnostic(above, message, at_key=True)]
    (level,), written = levels, raw_spec[UNMANAGED]
    possible = [name for name in specs if level in specs[name].kind.models]
    if written != ALL and not isinstance(written, list):
        example = f"`{UNMANAGED}: [{written if written in possible else possible[0]}]`"
        return NO_SECTIONS, [Diagnostic(above, f"{UNMANAGED} must be a list of sections, or `all`: {example}")]
    entries = enumerate(possible if written == ALL else written)
    listing = {index: entry for index, entry in entries if not isinstance(entry, dict)}
    named, diagnostics = _listed_sections(
        UNMANAGED, listing, possible, specs, lambda name: level_error(name, level, specs)
    )
    names, pruned = frozenset(named) - {""}, raw_spec.get(PRUNE, ())
    twice: list[tuple[Steps, bool]] = [(("spec", name), True) for name in raw_spec if name in names]
    if isinstance(pruned, list):
        twice += [(("spec", PRUNE, index), False) for index, name in enumerate(pruned) if name in list(names)]
    place = document.find(above, at_key=True)
    message = f"this section is declared here and {UNMANAGED} at {place}: one of the two has to go"
    diagnostics += [Diagnostic(steps, message, at_key=at_key) for steps, at_key in twice]
    return names - raw_spec.keys(), diagnostics


def _read_let_go(
    raw_spec: Mapping[str, Any], level: Level, specs: SectionSpecs
) -> tuple[tuple[LetGo, ...], list[Diagnostic]]:
    """Return the single objects that a document leaves alone, and the errors; `{milestones: [Beta]}` names one."""
    written = raw_spec[UNMANAGED]
    possible = [name for name in specs if level in specs[name].kind.models]
    let_go: list[LetGo] = []
    diagnostics: list[Diagnostic] = []
    for index, entry in enumerate(written if isinstance(written, list) else ()):
        for name, value in entry.items() if isinstance(entry, dict) else ():
            steps: Steps = (UNMANAGED, index, name)
            if name not in possible:
                message = level_error(name, level, specs) if name in specs else unknown_section(name, specs, possible)
                diagnostics.append(Diagnostic(("spec", *steps), str(message), at_key=True))
                continue
            for found in _let_go_names(specs[name], steps, value):
                diagnostics += [found] if isinstance(found, Diagnostic) else []
                let_go += [found] if isinstance(found, LetGo) else []
    return tuple(let_go), diagnostics


def _let_go_names(spec: SectionSpec, steps: Steps, value: Any) -> Iterator[LetGo | Diagnostic]:
    """Yield the objects of a section that a document leaves alone, and the errors."""
    name = spec.kind.name
    lists = {part: listing for part, listing in spec.lists.items() if listing.names.level is not None}
    if spec.items is None and (not isinstance(value, dict) or not lists or value.keys() - lists.keys()):
        form = " or ".join(f"`{{{name}: {{{part}: [...]}}}}`" for part in lists)
        message = f"write {form}" if form else f"{name} has no items: write `{name}` to leave it alone"
        yield Diagnostic(("spec", *steps), message, at_key=True)
        return
    named = [((*steps, part), lists[part], names) for part, names in value.items()] if spec.items is None else []
    for above, collection, names in named or ([(steps, spec.items, value)] if spec.items else []):
        if not isinstance(names, list):
            yield Diagnostic(("spec", *above), f"{above[-1]} must be a list of names here: `{above[-1]}: [NAME]`")
            continue
        for number, item in enumerate(names):
            is_number = isinstance(item, int) and not isinstance(item, bool)
            if isinstance(item, str) or (is_number and collection.names.level is not None):
                error = None if has_placeholder(item) else collection.name_error(item)
            else:
                error = f"must be text: `{WRITTEN}` is not text, quote it"
            if error:
                yield Diagnostic(("spec", *above, number), error, value=item)
            else:
                yield LetGo((*above, number), name, collection.name, item)


def clashing_names(
    document: Document, spec: SectionSpec, section_value: Any, values: Placeholders | None
) -> Iterator[Diagnostic]:
    """Yield the names in a section of a document that are the same once normalized."""
    above = ("spec", spec.kind.name)
    first: dict[Any, str] = {}
    for key in section_value if isinstance(section_value, dict) else ():
        name = spec.normalize_key(key, values)
        if name in first:
            location = document.find((*above, first[name]), at_key=True)
            message = f"`{key}` and `{first[name]}` ({location}) are one and the same name"
            yield Diagnostic((*above, key), message, at_key=True)
        first.setdefault(name, key)


def _about_place(diagnostic: Diagnostic, model: type[AnyDocument], specs: SectionSpecs) -> Diagnostic:
    """Replace the message about an unknown key if the key belongs under `spec` or `metadata`."""
    key = diagnostic.steps[-1] if diagnostic.at_key and len(diagnostic.steps) == 1 else None
    if key in {PRUNE, UNMANAGED, *specs}:
        return replace(diagnostic, message=f"`{key}` belongs under `spec`")
    return (
        replace(diagnostic, message=f"`{key}` belongs under `metadata`") if key in metadata_keys(model) else diagnostic
    )


def _without_faults(raw_document: Mapping[str, Any], faults: Sequence[Diagnostic]) -> Mapping[str, Any]:
    """Return a document without its faulty parts, where no other part depends on them."""
    metadata = raw_document.get("metadata")
    kept = dict(metadata) if isinstance(metadata, dict) else {}
    rest = {**raw_document, "metadata": kept} if kept else dict(raw_document)
    faulty = _faulty_exceptions(faults)
    if faulty:
        kept[EXCEPTIONS] = [exception for number, exception in enumerate(kept[EXCEPTIONS]) if number not in faulty]
    for steps in (fault.steps for fault in faults):
        if steps[:1] == (CREATE_KEY,):
            rest.pop(CREATE_KEY, None)
        elif steps == ("metadata", EXCEPTIONS) or steps[:2] in BESIDE_SPEC:
            kept.pop(str(steps[1]), None)
    return rest


def _faulty_exceptions(faults: Sequence[Diagnostic]) -> frozenset[Key]:
    """Return the positions of the exceptions that have faults."""
    inside = [fault.steps[2:3] for fault in faults if fault.steps[:2] == ("metadata", EXCEPTIONS)]
    return frozenset(position for steps in inside for position in steps)


def _without_consequences(faults: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Drop the errors about missing keys that follow from a misplaced key, which has an error of its own."""
    unknown_keys = [each.steps for each in faults if each.code == "extra_forbidden"]
    misplaced = [steps[-1] for steps in unknown_keys if steps[:1] == ("metadata",)]
    implied = {name for key in misplaced for name in IMPLIED_KEYS.get(key, ())}
    return [each for each in faults if each.code != "missing" or each.value not in implied]


def _unknown_kind(value: Any) -> Diagnostic:
    kinds = listed(DOCUMENTS, "or")
    if not isinstance(value, dict):
        shape = "a list" if isinstance(value, list) else "a single value"
        return Diagnostic((), f"a manifest is a mapping with apiVersion, kind, metadata and spec, not {shape}")
    if "kind" in value:
        kind = value["kind"]
        is_word = isinstance(kind, str) and kind
        return Diagnostic(("kind",), unknown("kind", kind, DOCUMENTS) if is_word else f"must be one of {kinds}")
    if "apiVersion" in value:
        return Diagnostic((), f"the key `kind` is missing: {kinds}")
    return Diagnostic((), f"not a manifest: apiVersion ({API_VERSION}) and kind ({kinds}) are missing")
