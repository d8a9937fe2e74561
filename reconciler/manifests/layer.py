"""The spec of one document, read as a layer: its sections, what it prunes and leaves alone, and its placeholders."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from reconciler.manifests.creation import CREATE_KEY
from reconciler.manifests.diagnostics import Diagnostic
from reconciler.manifests.documents import DOCUMENTS, LEVEL_OF, AnyDocument, levels_of, metadata_keys
from reconciler.manifests.sources import Document, Steps
from reconciler.manifests.stack.layers import Layer
from reconciler.manifests.stack.locks import ALL, idle_locks
from reconciler.manifests.stack.placeholders import (
    Placeholders,
    braces,
    has_placeholder,
    misspelt_placeholder,
    placeholders_in,
)
from reconciler.manifests.stack.sections import (
    NO_SECTIONS,
    PRUNE,
    UNMANAGED,
    SectionSpec,
    SectionSpecs,
    level_error,
    unknown_section,
)
from reconciler.manifests.validation import check_alone
from reconciler.model.targets import LEVELS, Level
from reconciler.model.wording import KNOWN_ARE, listed

EXCEPTIONS = "exceptions"
NO_LOCKS: Mapping[str, Any] = MappingProxyType({})


def read_layer(
    document: Document, specs: SectionSpecs, title: str = "", *, alone: bool = True, locks: Mapping[str, Any] = NO_LOCKS
) -> tuple[Layer, list[Diagnostic]]:
    """Return a document's spec, a mapping, as a layer without what cannot be merged, and its errors and warnings.

    Args:
        document: the document.
        specs: of all sections.
        title: of the layer, for messages; empty for a target's own document.
        alone: whether no target will check its sections.
        locks: as written.
    """
    spec, kind = document.value.get("spec", {}), document.value["kind"]
    levels = levels_of(kind)
    names = [name for name in spec if name not in {PRUNE, UNMANAGED}]
    errors = {name: _section_error(name, spec[name], levels, DOCUMENTS[kind], specs) for name in names}
    diagnostics = [Diagnostic(("spec", name), error, at_key=True) for name, error in errors.items() if error]
    sections = {name: spec[name] for name, error in errors.items() if not error}
    prune, faulty = _read_prune(spec[PRUNE], specs) if PRUNE in spec else (None, [])
    diagnostics += [*faulty, *(idle_locks(locks, sections, prune, specs) if locks else ())]
    unmanaged, faulty = _read_unmanaged(spec, levels, document, specs) if UNMANAGED in spec else (NO_SECTIONS, [])
    diagnostics += faulty
    normalized = {name: specs[name].normalize(value, None) for name, value in sections.items()}
    for name, value in sections.items():
        if isinstance(value, dict) and len(normalized[name]) < len(value):
            diagnostics += clashing_names(document, specs[name], value, None)
        if alone:
            diagnostics += check_alone(specs[name], value, levels)
    texts = [*braces(sections, ("spec",))]
    placeholders, misspelt = _placeholders((*texts, *(() if alone else _texts_beside(document.value))))
    diagnostics += misspelt
    waits = any(has_placeholder(text) for text, *_ in texts)
    normal = None if waits else normalized
    return Layer(document, title, sections, prune, placeholders, normal, locks, unmanaged), diagnostics


def _texts_beside(document: Mapping[str, Any]) -> Iterator[tuple[str, Steps, bool]]:
    """Yield the texts with braces that stand beside the spec of a target's own document; see `braces`."""
    yield from braces(document.get("metadata", {}).get(EXCEPTIONS, []), ("metadata", EXCEPTIONS))
    yield from braces(document.get(CREATE_KEY, {}), (CREATE_KEY,))


def _placeholders(texts: Iterable[tuple[str, Steps, bool]]) -> tuple[dict[str, list[Steps]], list[Diagnostic]]:
    """Return the steps to the uses of each placeholder in some texts, and a warning for each misspelt one."""
    uses: dict[str, list[Steps]] = {}
    misspelt: list[Diagnostic] = []
    for text, steps, at_key in texts:
        for name in placeholders_in(text):
            uses.setdefault(name, []).append(steps)
        message = misspelt_placeholder(text)
        if message:
            misspelt.append(Diagnostic(steps, message, "warning", at_key))
    return uses, misspelt


def _section_error(
    name: str, value: Any, levels: tuple[Level, ...], model: type[AnyDocument], specs: SectionSpecs
) -> str | None:
    """Return why a section cannot be merged."""
    if name == CREATE_KEY or (name not in specs and name in model.model_fields):
        return f"`{name}` stands beside `spec`, not in it"
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
    steps = ("spec", PRUNE)
    if not isinstance(prune, list):
        return [], [Diagnostic(steps, "prune must be a list of sections: `prune: [milestones]`")]
    errors = [_prune_error(name, specs) for name in prune]
    diagnostics = [Diagnostic((*steps, index), error) for index, error in enumerate(errors) if error]
    return ["" if error else name for name, error in zip(prune, errors, strict=True)], diagnostics


def _prune_error(name: Any, specs: SectionSpecs) -> str | None:
    prunable = [section for section, spec in specs.items() if spec.kind.prunable]
    if not isinstance(name, str):
        return f"prune lists the names of sections: {listed(prunable)}"
    if name in prunable:
        return None
    if name not in specs:
        return unknown_section(name, specs, prunable)
    return f"{name} cannot be pruned; prunable are {listed(prunable)}"


def _read_unmanaged(
    spec: Mapping[str, Any], levels: tuple[Level, ...], document: Document, specs: SectionSpecs
) -> tuple[frozenset[str], list[Diagnostic]]:
    """Return the sections that a document leaves alone, and the errors."""
    above: Steps = ("spec", UNMANAGED)
    if document.value["kind"] not in LEVEL_OF:
        owners = listed(level.document_kind for level in LEVELS)
        message = f"`{UNMANAGED}` belongs to {owners}, each for itself: leave the sections out here"
        return NO_SECTIONS, [Diagnostic(above, message, at_key=True)]
    written, possible = spec[UNMANAGED], [name for name in specs if levels[0] in specs[name].kind.models]
    if written == ALL:
        names, diagnostics = frozenset(possible), list[Diagnostic]()
    elif isinstance(written, list):
        errors = [_unmanaged_error(name, levels[0], possible, specs) for name in written]
        diagnostics = [Diagnostic((*above, index), error) for index, error in enumerate(errors) if error]
        names = frozenset(name for name, error in zip(written, errors, strict=True) if not error)
    else:
        example = f"`{UNMANAGED}: [{written if written in possible else possible[0]}]`"
        return NO_SECTIONS, [Diagnostic(above, f"{UNMANAGED} must be a list of sections, or `all`: {example}")]
    place = document.find(above, key=True)
    pruned = spec.get(PRUNE, ())
    twice: list[tuple[Steps, bool]] = [(("spec", name), True) for name in spec if name in names]
    if isinstance(pruned, list):
        twice += [(("spec", PRUNE, index), False) for index, name in enumerate(pruned) if name in list(names)]
    message = f"this section is declared here and {UNMANAGED} at {place}: one of the two has to go"
    diagnostics += [Diagnostic(steps, message, at_key=at_key) for steps, at_key in twice]
    return names - spec.keys(), diagnostics


def _unmanaged_error(name: Any, level: Level, possible: Sequence[str], specs: SectionSpecs) -> str | None:
    if not isinstance(name, str):
        return f"{UNMANAGED} lists the names of sections: {listed(possible)}"
    return level_error(name, level, specs) if name in specs else unknown_section(name, specs, possible)


def clashing_names(
    document: Document, spec: SectionSpec, section: Any, values: Placeholders | None
) -> Iterator[Diagnostic]:
    """Yield the names in a section of a document that are the same once normalized."""
    above = ("spec", spec.kind.name)
    first: dict[Any, str] = {}
    for key in section if isinstance(section, dict) else ():
        name = spec.normalize_key(key, values)
        if name in first:
            location = document.find((*above, first[name]), key=True)
            message = f"`{key}` and `{first[name]}` ({location}) are one and the same name"
            yield Diagnostic((*above, key), message, at_key=True)
        first.setdefault(name, key)
