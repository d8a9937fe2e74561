"""An index of all documents, each spec as a layer, and the layers of each target."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import count
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError

from reconciler.manifests.creation import CREATE_KEY, OWN_SURROUNDINGS, Surroundings, errors_beside, read_creation
from reconciler.manifests.diagnostics import Diagnostic, Diagnostics
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
    levels_of,
    metadata_keys,
)
from reconciler.manifests.project_sets import by_group, chosen, groups_around
from reconciler.manifests.sources import TEMPLATE, Document, Source, Steps
from reconciler.manifests.stack.layers import Layer
from reconciler.manifests.stack.locks import ALL, idle_locks
from reconciler.manifests.stack.placeholders import (
    Placeholders,
    braces,
    has_placeholder,
    misspelt_placeholder,
    placeholder_values,
    placeholders_in,
)
from reconciler.manifests.stack.sections import NO_SECTIONS, PRUNE, UNMANAGED, SectionSpec, SectionSpecs, level_error
from reconciler.manifests.validation import check_alone, diagnose
from reconciler.model.creation import Creation
from reconciler.model.targets import LEVELS, Key, Level, Target
from reconciler.model.wording import listed, unknown
from reconciler.system import clock

STANDS_FOR = {"path": {"name", "select"}, "id": {"name", "select"}, "select": {"select"}}
"""Required keys of a profile or set that people believe to have given, by the key that they misplaced in `metadata`."""


EXCEPTIONS = "exceptions"
NO_LOCKS: Mapping[str, Any] = MappingProxyType({})


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


@dataclass(slots=True)
class Index:
    """All documents: profiles and sets by name, targets by `Target.identity`.

    `whole` is False if a document could not be read, and so a profile that is missing may be in there. `today` is in
    UTC: exceptions end. `locks_bind` is False if a broken lock is no error: `accept --until` mends those.
    """

    specs: SectionSpecs
    profiles: dict[str, Layer] = field(default_factory=dict)
    targets: dict[Any, DeclaredTarget] = field(default_factory=dict)
    sets: dict[str, DeclaredSet] = field(default_factory=dict)
    whole: bool = True
    today: date = field(default_factory=clock.today)
    around: Surroundings = OWN_SURROUNDINGS
    locks_bind: bool = True

    @property
    def documents(self) -> Iterator[Document]:
        """All documents: profiles first, then those of targets, then sets."""
        yield from (layer.document for layer in self.profiles.values())
        yield from (each.layer.document for each in self.targets.values())
        yield from (each.layer.document for each in self.sets.values())

    @property
    def sources(self) -> dict[str, Source]:
        """The files that hold documents, by path."""
        return {document.source.path: document.source for document in self.documents}

    @property
    def documents_by_file(self) -> dict[str, tuple[Document, ...]]:
        """The documents of each file that is no template, as they were read: what they say depends on nothing else."""
        files: dict[str, list[Document]] = {}
        for document in sorted(self.documents, key=lambda document: document.number):
            if not document.source.path.endswith(TEMPLATE):
                files.setdefault(document.source.path, []).append(document)
        return {path: tuple(documents) for path, documents in files.items()}

    @property
    def counts(self) -> dict[str, int]:
        """The number of documents of each sort of which there are any."""
        numbers = dict(Counter(str(declared.target.level) for declared in self.targets.values()))
        ordered = {level.value: numbers.get(level.value, 0) for level in LEVELS}
        ordered |= {"set": len(self.sets), "profile": len(self.profiles)}
        return {sort: number for sort, number in ordered.items() if number}

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups to discover the projects of, sorted, as the sets name them."""
        return tuple(sorted({declared.select.group for declared in self.sets.values() if declared.select.group}))

    @property
    def groups_with_archived(self) -> frozenset[str]:
        """The groups of which a set selects archived projects too."""
        selected = (declared.select for declared in self.sets.values())
        return frozenset(select.group for select in selected if select.group and select.archived)

    def perhaps_archived(self, paths: Iterable[str]) -> frozenset[str]:
        """Return those of some projects, in lower case, that sets leave out and no list shows if they are archived.

        Archived projects are listed only for a group of which a set selects them.

        Args:
            paths: of projects that no list shows.
        """
        listed = self.groups_with_archived
        selected = (declared.select for declared in self.sets.values())
        hiding = [select for select in selected if select.group and select.group not in listed]
        folded = {path.casefold() for path in paths}
        return frozenset(
            path
            for select in hiding
            for path in chosen(select, (each for each in folded if each.startswith(f"{select.group}/".casefold())))
        )

    @property
    def sections_below(self) -> dict[str, frozenset[str]]:
        """By group, as of `groups`, the sections that projects below it may declare, by all documents about them."""
        named = {each.select.group for each in self.sets.values() if each.select.group}
        sections: dict[str, set[str]] = {group.casefold(): set() for group in named}
        inside = by_group(sections, str)

        def declare(names: Iterable[str], layer: Layer, groups: Iterable[str]) -> None:
            layers = [layer, *(self.profiles[name] for name in names if name in self.profiles)]
            for group in groups:
                sections[group].update(section for each in layers for section in each.sections)

        for own in self.targets.values() if named else ():
            if own.target.level is Level.PROJECT and own.target.ref is not None:
                ref = own.target.ref
                declare(
                    own.metadata.profiles, own.layer, groups_around(ref, sections) if isinstance(ref, str) else sections
                )
        for declared in self.sets.values() if named else ():
            select = declared.select
            below = inside.get(select.group.casefold(), ())
            paths = [select.group] if select.group else select.projects
            around = {group for path in paths for group in groups_around(path, sections)}
            declare(declared.metadata.profiles, declared.layer, {*below, *around})
        return {group: frozenset(sections[group.casefold()]) for group in sorted(named)}

    def without(self, documents: Collection[Document]) -> "Index":
        """Return an index of all documents but some."""
        return Index(
            self.specs,
            {name: each for name, each in self.profiles.items() if each.document not in documents},
            {name: each for name, each in self.targets.items() if each.layer.document not in documents},
            {name: each for name, each in self.sets.items() if each.layer.document not in documents},
            around=self.around,
        )

    def extend(self, documents: Iterable[Document], diagnostics: Diagnostics) -> None:
        """Add documents, and what is wrong with them; of one with faults, what does not depend on them."""
        for document in documents:
            for diagnostic in self._add(document):
                diagnostics.add(document, diagnostic)

    def _add(self, document: Document) -> list[Diagnostic]:
        """Add a document and return its errors and warnings."""
        kind = document.value.get("kind") if isinstance(document.value, dict) else None
        model = DOCUMENTS.get(kind) if isinstance(kind, str) else None
        if model is None:
            self.whole = False
            return [_unknown_kind(document.value)]
        faults: list[Diagnostic] = []
        diagnostics: list[Diagnostic] = []
        declared: Any = None
        try:
            declared = model.model_validate(document.value)
        except ValidationError as error:
            faults = diagnose(error, document.value, model)
            diagnostics = [self._about_place(fault, model) for fault in _without_consequences(faults)]
            with suppress(ValidationError):
                declared = model.model_validate(_without_faults(document.value, faults))
            creates = declared is not None and CREATE_KEY in declared.model_fields_set
            if CREATE_KEY in document.value and model in {GroupDocument, ProjectDocument} and not creates:
                diagnostics += errors_beside(document, LEVEL_OF[str(kind)], diagnostics, self.around)
        match declared:
            case None:
                self.whole = False
                spec = document.value.get("spec")
                return diagnostics + (self._layer(document, str(kind), "", spec)[1] if isinstance(spec, dict) else [])
            case ProfileDocument():
                return diagnostics + self._add_profile(document, declared)
            case ProjectSetDocument():
                return diagnostics + self._add_set(document, declared)
        return diagnostics + self._add_target(document, declared, _faulty_exceptions(faults))

    def _about_place(self, diagnostic: Diagnostic, model: type[AnyDocument]) -> Diagnostic:
        """Say so if an unknown key of a document belongs under `spec` or `metadata`."""
        key = diagnostic.steps[-1] if diagnostic.at_key and len(diagnostic.steps) == 1 else None
        if key in {PRUNE, UNMANAGED, *self.specs}:
            return replace(diagnostic, message=f"`{key}` belongs under `spec`")
        return (
            replace(diagnostic, message=f"`{key}` belongs under `metadata`")
            if key in metadata_keys(model)
            else diagnostic
        )

    def _add_profile(self, document: Document, declared: ProfileDocument) -> list[Diagnostic]:
        name = declared.metadata.name
        layer, diagnostics = self._layer(
            document, declared.kind, f"profile {name}", declared.spec, locks=declared.metadata.locks
        )
        first = self.profiles.setdefault(name, layer)
        return (
            diagnostics if first is layer else [*diagnostics, _second(("metadata", "name"), first, f"profile `{name}`")]
        )

    def _add_set(self, document: Document, declared: ProjectSetDocument) -> list[Diagnostic]:
        name = declared.metadata.name
        layer, diagnostics = self._layer(
            document, declared.kind, f"set {name}", declared.spec, locks=declared.metadata.locks
        )
        first = self.sets.setdefault(name, DeclaredSet(declared.metadata, declared.select, layer)).layer
        return diagnostics if first is layer else [*diagnostics, _second(("metadata", "name"), first, f"set `{name}`")]

    def _add_target(
        self, document: Document, declared: TargetDocument, faulty_exceptions: Collection[Key]
    ) -> list[Diagnostic]:
        metadata = declared.metadata
        numbers = (number for number in count() if number not in faulty_exceptions)
        exceptions = dict(zip(numbers, metadata.exceptions, strict=False))
        target = Target(LEVEL_OF[declared.kind])
        steps: Steps = ("kind",)
        if isinstance(metadata, TargetMetadata):
            target = Target(target.level, metadata.path or metadata.id)
            steps = ("metadata", "path" if metadata.path else "id")
        beside = [
            *braces(document.value.get("metadata", {}).get("exceptions", []), ("metadata", "exceptions")),
            *braces(document.value.get(CREATE_KEY, {}), (CREATE_KEY,)),
        ]
        layer, diagnostics = self._layer(document, declared.kind, "", declared.spec, alone=False, beside=beside)
        creation = None
        path = target.ref if isinstance(target.ref, str) else None
        if (
            isinstance(declared, GroupDocument | ProjectDocument)
            and CREATE_KEY in declared.model_fields_set
            and layer.overfilled(placeholder_values(path)) is None
        ):
            creation, errors = read_creation(document, target, declared.create, self.around)
            diagnostics += errors
        own = DeclaredTarget(target, metadata, layer, exceptions, creation)
        first = self.targets.setdefault(target.identity, own).layer
        return diagnostics if first is layer else [*diagnostics, _second(steps, first, str(target))]

    def _layer(
        self,
        document: Document,
        kind: str,
        title: str,
        spec: Mapping[str, Any],
        *,
        alone: bool = True,
        locks: Mapping[str, Any] = NO_LOCKS,
        beside: Sequence[tuple[str, Steps, bool]] = (),
    ) -> tuple[Layer, list[Diagnostic]]:
        """Return a spec as a layer, without the sections that cannot be merged, and its errors and warnings.

        Args:
            document: the document of the spec.
            kind: of the document.
            title: of the layer, for messages; empty for a target's own document.
            spec: as written.
            alone: whether no target will check its sections.
            locks: as written.
            beside: texts outside of the spec that may hold placeholders, as of `braces`.
        """
        levels = levels_of(kind)
        model = DOCUMENTS[kind]
        errors = {
            name: self._section_error(name, value, levels, model)
            for name, value in spec.items()
            if name not in {PRUNE, UNMANAGED}
        }
        diagnostics = [Diagnostic(("spec", name), error, at_key=True) for name, error in errors.items() if error]
        sections = {name: spec[name] for name, error in errors.items() if not error}
        prune, faulty = _read_prune(spec[PRUNE], self.specs) if PRUNE in spec else (None, [])
        diagnostics += [*faulty, *(idle_locks(locks, sections, prune, self.specs) if locks else ())]
        unmanaged, faulty = self._unmanaged(spec, levels, document) if UNMANAGED in spec else (NO_SECTIONS, [])
        diagnostics += faulty
        texts = list(braces(sections, ("spec",)))
        placeholders: dict[str, list[Steps]] = {}
        for text, steps, at_key in (*texts, *beside):
            for name in placeholders_in(text):
                placeholders.setdefault(name, []).append(steps)
            message = misspelt_placeholder(text)
            if message:
                diagnostics.append(Diagnostic(steps, message, "warning", at_key))
        normalized = {name: self.specs[name].normalize(value, None) for name, value in sections.items()}
        for name, value in sections.items():
            if isinstance(value, dict) and len(normalized[name]) < len(value):
                diagnostics += clashing_names(document, self.specs[name], value, None)
            if alone:
                diagnostics += check_alone(self.specs[name], value, levels)
        waits = any(has_placeholder(text) for text, *_ in texts)
        normal = None if waits else normalized
        return Layer(document, title, sections, prune, placeholders, normal, locks, unmanaged), diagnostics

    def _unmanaged(
        self, spec: Mapping[str, Any], levels: tuple[Level, ...], document: Document
    ) -> tuple[frozenset[str], list[Diagnostic]]:
        """Return the sections that a document leaves alone, and the errors."""
        above: Steps = ("spec", UNMANAGED)
        if document.value["kind"] not in LEVEL_OF:
            owners = listed(level.document_kind for level in LEVELS)
            message = f"`{UNMANAGED}` belongs to {owners}, each for itself: leave the sections out here"
            return NO_SECTIONS, [Diagnostic(above, message, at_key=True)]
        written, possible = spec[UNMANAGED], [name for name in self.specs if levels[0] in self.specs[name].kind.models]
        if written == ALL:
            names, diagnostics = frozenset(possible), list[Diagnostic]()
        elif isinstance(written, list):
            errors = [self._unmanaged_error(name, levels[0], possible) for name in written]
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

    def _unmanaged_error(self, name: Any, level: Level, possible: Sequence[str]) -> str | None:
        if not isinstance(name, str):
            return f"{UNMANAGED} lists the names of sections: {listed(possible)}"
        return level_error(name, level, self.specs) if name in self.specs else unknown("section", name, possible)

    def _section_error(self, name: str, value: Any, levels: tuple[Level, ...], model: type[AnyDocument]) -> str | None:
        if name == CREATE_KEY or (name not in self.specs and name in model.model_fields):
            return f"`{name}` stands beside `spec`, not in it"
        if name not in self.specs:
            if name in metadata_keys(model):
                return f"`{name}` belongs under `metadata`"
            message = unknown("section", name, [PRUNE, UNMANAGED, *self.specs])
            return message if message.endswith("?") else f"{message}; if a package adds it, install that package here"
        error = level_error(name, levels[0], self.specs) if len(levels) == 1 else None
        if error is None and value is None:
            advice = ": leave it out" + (
                ", or write `{}` and list it in `prune` if nothing may exist there"
                if self.specs[name].kind.prunable
                else ""
            )
            return f"{name} has no value{advice}"
        return error


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


def _second(steps: Steps, first: Layer, what: str) -> Diagnostic:
    return Diagnostic(steps, f"{what} is already declared at {first.document.find(steps)}")


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
        return unknown("section", name, prunable)
    return f"{name} cannot be pruned; prunable are {listed(prunable)}"
