"""An index of all documents, each spec as a layer, and the layers of each target."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from functools import partial
from itertools import product
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError

from reconciler.manifests.creation import CREATE_KEY, OWN_SURROUNDINGS, Surroundings, errors_beside, read_creation
from reconciler.manifests.diagnostics import OTHER_FILE_MARK, Diagnostic, Diagnostics
from reconciler.manifests.documents import (
    API_VERSION,
    DOCUMENTS,
    LEVEL_OF,
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
from reconciler.manifests.project_sets import (
    Discovered,
    Member,
    by_group,
    candidates,
    chosen,
    groups_around,
    idle,
    projects_by_path,
)
from reconciler.manifests.sources import TEMPLATE, Document, Source, Steps
from reconciler.manifests.stack.layers import MOST_FILLED, Contribution, Layer, Stack
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
from reconciler.manifests.stack.trace import find
from reconciler.manifests.validation import check_alone, diagnose
from reconciler.model.creation import Creation
from reconciler.model.diff import quoted
from reconciler.model.state import Listed
from reconciler.model.targets import LEVELS, Identity, Level, Target
from reconciler.model.wording import listed, unknown

STANDS_FOR = {"path": {"name", "select"}, "id": {"name", "select"}, "select": {"select"}}
"""Required keys of a profile or set that people believe to have given, by the key that they misplaced in `metadata`."""

NO_LOCKS: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class DeclaredTarget:
    """A user, group or project that has a document of its own."""

    target: Target
    metadata: UserMetadata
    layer: Layer
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
    today: date = field(default_factory=lambda: datetime.now(UTC).date())
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
        found: dict[str, set[str]] = {group.casefold(): set() for group in named}
        inside = by_group(found, str)

        def declare(names: Iterable[str], layer: Layer, groups: Iterable[str]) -> None:
            layers = [layer, *(self.profiles[name] for name in names if name in self.profiles)]
            for group in groups:
                found[group].update(section for each in layers for section in each.sections)

        for own in self.targets.values() if named else ():
            if own.target.level is Level.PROJECT and own.target.ref is not None:
                ref = own.target.ref
                declare(own.metadata.profiles, own.layer, groups_around(ref, found) if isinstance(ref, str) else found)
        for each in self.sets.values() if named else ():
            select = each.select
            below = inside.get(select.group.casefold(), ())
            paths = [select.group] if select.group else select.projects
            around = {group for path in paths for group in groups_around(path, found)}
            declare(each.metadata.profiles, each.layer, {*below, *around})
        return {group: frozenset(found[group.casefold()]) for group in sorted(named)}

    def without(self, documents: Collection[Document]) -> "Index":
        """Return an index of all documents but some."""
        return Index(
            self.specs,
            {name: each for name, each in self.profiles.items() if each.document not in documents},
            {name: each for name, each in self.targets.items() if each.layer.document not in documents},
            {name: each for name, each in self.sets.items() if each.layer.document not in documents},
            around=self.around,
        )

    def add(self, document: Document) -> list[Diagnostic]:
        """Add a document and return its errors and warnings; a document with a faulty envelope is not added."""
        kind = document.value.get("kind") if isinstance(document.value, dict) else None
        model = DOCUMENTS.get(kind) if isinstance(kind, str) else None
        if model is None:
            self.whole = False
            return [_unknown_kind(document.value)]
        try:
            declared: Any = model.model_validate(document.value)
        except ValidationError as error:
            self.whole = False
            found = [
                self._about_place(each, model) for each in _without_consequences(diagnose(error, document.value, model))
            ]
            if CREATE_KEY in document.value and model in {GroupDocument, ProjectDocument}:
                found += errors_beside(document, LEVEL_OF[str(kind)], found, self.around)
            spec = document.value.get("spec")
            return found + self._layer(document, str(kind), "", spec)[1] if isinstance(spec, dict) else found
        match declared:
            case ProfileDocument():
                return self._add_profile(document, declared)
            case ProjectSetDocument():
                return self._add_set(document, declared)
        return self._add_target(document, declared)

    def _about_place(self, found: Diagnostic, model: type[AnyDocument]) -> Diagnostic:
        """Say so if an unknown key of a document belongs under `spec` or `metadata`."""
        key = found.steps[-1] if found.at_key and len(found.steps) == 1 else None
        if key in {PRUNE, UNMANAGED, *self.specs}:
            return replace(found, message=f"`{key}` belongs under `spec`")
        return replace(found, message=f"`{key}` belongs under `metadata`") if key in metadata_keys(model) else found

    def _add_profile(self, document: Document, declared: ProfileDocument) -> list[Diagnostic]:
        name = declared.metadata.name
        layer, found = self._layer(
            document, declared.kind, f"profile {name}", declared.spec, locks=declared.metadata.locks
        )
        first = self.profiles.setdefault(name, layer)
        return found if first is layer else [*found, _second(("metadata", "name"), first, f"profile `{name}`")]

    def _add_set(self, document: Document, declared: ProjectSetDocument) -> list[Diagnostic]:
        name = declared.metadata.name
        layer, found = self._layer(document, declared.kind, f"set {name}", declared.spec, locks=declared.metadata.locks)
        first = self.sets.setdefault(name, DeclaredSet(declared.metadata, declared.select, layer)).layer
        return found if first is layer else [*found, _second(("metadata", "name"), first, f"set `{name}`")]

    def _add_target(self, document: Document, declared: TargetDocument) -> list[Diagnostic]:
        metadata = declared.metadata
        target = Target(LEVEL_OF[declared.kind])
        steps: Steps = ("kind",)
        if isinstance(metadata, TargetMetadata):
            target = Target(target.level, metadata.path or metadata.id)
            steps = ("metadata", "path" if metadata.path else "id")
        beside = [
            *braces(document.value.get("metadata", {}).get("exceptions", []), ("metadata", "exceptions")),
            *braces(document.value.get(CREATE_KEY, {}), (CREATE_KEY,)),
        ]
        layer, found = self._layer(document, declared.kind, "", declared.spec, alone=False, beside=beside)
        creation = None
        path = target.ref if isinstance(target.ref, str) else None
        too_long = overfilled(layer, placeholder_values(path))
        if too_long:
            found.append(too_long)
        elif isinstance(declared, GroupDocument | ProjectDocument) and CREATE_KEY in declared.model_fields_set:
            creation, errors = read_creation(document, target, declared.create, self.around)
            found += errors
        first = self.targets.setdefault(target.identity, DeclaredTarget(target, metadata, layer, creation)).layer
        return found if first is layer else [*found, _second(steps, first, str(target))]

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
        found = [Diagnostic(("spec", name), error, at_key=True) for name, error in errors.items() if error]
        sections = {name: spec[name] for name, error in errors.items() if not error}
        prune, faulty = _read_prune(spec[PRUNE], self.specs) if PRUNE in spec else (None, [])
        found += [*faulty, *(idle_locks(locks, sections, prune, self.specs) if locks else ())]
        unmanaged, faulty = self._unmanaged(spec, levels, document) if UNMANAGED in spec else (NO_SECTIONS, [])
        found += faulty
        texts = list(braces(sections, ("spec",)))
        placeholders: dict[str, Steps] = {}
        uses: Counter[str] = Counter()
        for text, steps, at_key in (*texts, *beside):
            used = placeholders_in(text)
            placeholders = dict.fromkeys(used, steps) | placeholders
            uses.update(used)
            message = misspelt_placeholder(text)
            if message:
                found.append(Diagnostic(steps, message, "warning", at_key))
        normalized = {name: self.specs[name].normalize(value, None) for name, value in sections.items()}
        for name, value in sections.items():
            if isinstance(value, dict) and len(normalized[name]) < len(value):
                found += clashing_names(document, self.specs[name], value, None)
            if alone:
                found += check_alone(self.specs[name], value, levels)
        waits = any(has_placeholder(text) for text, *_ in texts)
        normal = None if waits else normalized
        return Layer(document, title, sections, prune, placeholders, normal, locks, uses, unmanaged), found

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
            names, found = frozenset(possible), list[Diagnostic]()
        elif isinstance(written, list):
            errors = [self._unmanaged_error(name, levels[0], possible) for name in written]
            found = [Diagnostic((*above, index), error) for index, error in enumerate(errors) if error]
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
        found += [Diagnostic(steps, message, at_key=at_key) for steps, at_key in twice]
        return names - spec.keys(), found

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


def _without_consequences(found: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Leave out missing keys for which a misplaced one stands: its message says where it belongs."""
    misplaced = (each.steps[-1] for each in found if each.code == "extra_forbidden" and each.steps[:1] == ("metadata",))
    implied = {name for key in misplaced for name in STANDS_FOR.get(key, ())}
    return [each for each in found if each.code != "missing" or each.value not in implied]


def overfilled(layer: Layer, values: Placeholders | None) -> Diagnostic | None:
    """Return an error if the placeholders of a document come to too much text in a target."""
    name = layer.overfilled(values)
    if name is None:
        return None
    message = f"the placeholders of this document come to more than {MOST_FILLED // 1024 // 1024} MiB: use fewer"
    return Diagnostic(layer.placeholders[name], message)


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
    found = [Diagnostic((*steps, index), error) for index, error in enumerate(errors) if error]
    return ["" if error else name for name, error in zip(prune, errors, strict=True)], found


def _prune_error(name: Any, specs: SectionSpecs) -> str | None:
    prunable = [section for section, spec in specs.items() if spec.kind.prunable]
    if not isinstance(name, str):
        return f"prune lists the names of sections: {listed(prunable)}"
    if name in prunable:
        return None
    if name not in specs:
        return unknown("section", name, prunable)
    return f"{name} cannot be pruned; prunable are {listed(prunable)}"


@dataclass(frozen=True, slots=True)
class Composition:
    """The documents of one target, lowest first.

    Attributes:
        target: as its own document names it, if it has one.
        path: its full path; None for the user, and if only an ID is known.
        parts: the sets that select it, by priority, then its own document.
        member: what a list of projects shows of it; None where none was read.
    """

    target: Target
    path: str | None
    parts: list[Contribution] = field(default_factory=list)
    member: Member | None = None

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The layers of all parts, lowest first."""
        return tuple(layer for part in self.parts for layer in part.layers)

    @property
    def values(self) -> Placeholders | None:
        """The values of placeholders; None if there are placeholders and the path is not known yet."""
        waits = self.nameless and any(layer.placeholders for layer in self.layers)
        return None if waits else placeholder_values(self.path)

    @property
    def nameless(self) -> bool:
        """Whether only the ID of the target is known."""
        return self.path is None and isinstance(self.target.ref, int)

    @property
    def listed(self) -> Listed | None:
        """What a list of projects shows to be archived or off.

        A section is skipped if only sets and their profiles declare it, and all these sets skip it.
        """
        if self.member is None or not (self.member.archived or self.member.off):
            return None
        declared = {name for layer in self.layers for name in layer.sections}
        strict = {name for part in self.parts if not part.skips for layer in part.layers for name in layer.sections}
        return Listed(self.member.archived, self.member.off, frozenset(declared - strict))


def compose(
    index: Index,
    discovered: Discovered | None,
    paths: Mapping[Target, str],
    diagnostics: Diagnostics,
    *,
    only: Set[Identity] | None = None,
) -> list[Composition]:
    """Return the documents of each target, in the order of the targets.

    A document that names a project by its ID and a set that discovers the project compose one target.

    Args:
        index: all documents.
        discovered: the projects of groups; None before the discovery.
        paths: the known full paths of targets named by ID.
        diagnostics: takes the errors and warnings.
        only: the targets to compose, by `Target.identity`; None for all.

    Raises:
        KeyError: a group is missing from `discovered`.
    """
    there = projects_by_path(discovered)
    known = {**paths, **{Target(Level.PROJECT, each.id): each.path for each in there.values()}}
    documents = index.targets if only is None else {name: index.targets[name] for name in only & index.targets.keys()}
    targets: dict[Any, Composition] = {
        identity: _composition(each.target, known.get(each.target), there) for identity, each in documents.items()
    }
    projects = [each.path for each in targets.values() if each.target.level is Level.PROJECT and each.path]
    documented = by_group(projects, str)
    archived = {path for path, each in there.items() if each.archived}
    creating = (each.target for each in documents.values() if each.creation and each.target.level is Level.PROJECT)
    created = by_group([str(each.ref) for each in creating if str(each.ref).casefold() not in archived], str)
    for declared in sorted(index.sets.values(), key=lambda each: (each.metadata.priority, each.metadata.name)):
        document, metadata = declared.layer.document, declared.metadata
        layers, missing = _profiles(metadata.profiles, None, index)
        whole = len(layers) == len(metadata.profiles)
        skips = declared.select.not_applicable == "skip"
        contribution = Contribution((*layers, declared.layer), whole, metadata.labels, metadata.priority, skips)
        offered = candidates(declared.select, discovered, documented, created)
        selected = chosen(declared.select, offered)
        for found in (*missing, *idle(declared.layer.title, declared.select, offered, selected, discovered)):
            diagnostics.add(document, found)
        for folded, path in {path.casefold(): path for path in selected}.items():
            target = Target(Level.PROJECT, path)
            member = there.get(folded, Member(path))
            if only is not None and target.identity not in only:
                continue
            by_number = targets.get(Target(Level.PROJECT, member.id).identity)
            composition = targets.get(target.identity) or by_number or _composition(target, path, there)
            targets.setdefault(composition.target.identity, composition).parts.append(contribution)
    for identity, own in documents.items():
        composition = targets[identity]
        layers, missing = _profiles(own.metadata.profiles, composition, index)
        for found in (*missing, *_unfillable(own.layer, composition)):
            diagnostics.add(own.layer.document, found)
        whole = len(layers) == len(own.metadata.profiles)
        composition.parts.append(Contribution((*layers, own.layer), whole, own.metadata.labels))
    return sorted(targets.values(), key=lambda each: each.target.order)


def _composition(target: Target, path: str | None, there: Mapping[str, Member]) -> Composition:
    """Return a target without documents yet."""
    path = target.ref if isinstance(target.ref, str) else path
    return Composition(target, path, member=there.get(path.casefold()) if path else None)


def _profiles(
    names: Sequence[str], composition: Composition | None, index: Index
) -> tuple[list[Layer], list[Diagnostic]]:
    """Return the layers of some profiles, and an error for each that is missing or does not fit the target.

    The composition is None for a set: all its targets have paths.
    """
    layers: list[Layer] = []
    found: list[Diagnostic] = []
    for number, name in enumerate(names):
        steps = ("metadata", "profiles", number)
        layer = index.profiles.get(name)
        if layer and composition and (lacking := _lacking(layer, composition)):
            location = layer.document.find(layer.placeholders[lacking])
            message = f"{layer.title} uses `{{{lacking}}}` ({location}), and {_why_lacking(composition)}"
            found.append(Diagnostic(steps, message))
        elif layer:
            layers.append(layer)
        elif index.whole:
            found.append(Diagnostic(steps, unknown("profile", name, index.profiles)))
    return layers, found


def _unfillable(own: Layer, composition: Composition) -> Iterator[Diagnostic]:
    """Yield an error if a placeholder in a target's own document has no value."""
    lacking = _lacking(own, composition)
    if lacking:
        message = f"{_why_lacking(composition)}; a literal `{{{lacking}}}` is written `{{{{{lacking}}}}}`"
        yield Diagnostic(own.placeholders[lacking], message)


def _lacking(layer: Layer, composition: Composition) -> str | None:
    """Return a placeholder of a layer that has no value in a target."""
    values = placeholder_values(composition.path)
    return None if composition.nameless else next((use for use in layer.placeholders if use not in values), None)


def _why_lacking(composition: Composition) -> str:
    if composition.target.ref is None:
        return f"the {composition.target} has no path"
    return f"{composition.target} has no namespace"


@dataclass(frozen=True, slots=True)
class _Evidence:
    """The place that shows the level of a path: of the path itself, or of a project inside."""

    level: Level
    document: Document
    steps: Steps
    inside: str = ""

    def __str__(self) -> str:
        location = self.document.find(self.steps)
        return f"project {self.inside} is in it, see {location}" if self.inside else f"see {location}"


PathLevels = Mapping[str, _Evidence]
"""The paths of groups and of projects in the documents, in lower case: no path is both."""


def path_levels(index: Index, diagnostics: Diagnostics) -> PathLevels:
    """Return the levels of the paths in the documents; a group used as a project is an error."""
    levels: dict[str, _Evidence] = {}
    projects: list[tuple[str, Document, Steps]] = []
    for each in index.targets.values():
        if isinstance(each.target.ref, str):
            document, steps = each.layer.document, ("metadata", "path")
            if each.target.level is Level.GROUP:
                levels.setdefault(each.target.ref.casefold(), _Evidence(Level.GROUP, document, steps))
            else:
                projects.append((each.target.ref, document, steps))
    for declared in index.sets.values():
        document, select = declared.layer.document, declared.select
        if select.group:
            levels.setdefault(select.group.casefold(), _Evidence(Level.GROUP, document, ("select", "group")))
        projects += [(path, document, ("select", "projects", number)) for number, path in enumerate(select.projects)]
    for path, document, steps in projects:
        above = path.casefold().rpartition("/")[0]
        while above and above not in levels:
            levels[above] = _Evidence(Level.GROUP, document, steps, path)
            above = above.rpartition("/")[0]
    for path, document, steps in projects:
        error = _level_conflict(path, Level.PROJECT, levels)
        if error:
            diagnostics.add(document, Diagnostic(steps, f"{error}: give the full path of a project"))
        levels.setdefault(path.casefold(), _Evidence(Level.PROJECT, document, steps))
    return levels


def misplaced_references(whole: Stack, levels: PathLevels) -> Iterator[Diagnostic]:
    """Yield an error for each project in a list of groups, and each group in a list of projects."""
    for steps, level, path in whole.references:
        error = _level_conflict(path, level, levels)
        if error:
            lists = whole.specs[steps[0]].lists
            right = next(key for key, each in lists.items() if each.names.level not in {None, level})
            yield Diagnostic(steps, f"{error}: list it under `{right}`")


def contradictions(whole: Stack, groups: Mapping[str, Stack]) -> Iterator[Diagnostic]:
    """Yield advice for each field of a project that a declared group above it locks at another value.

    Args:
        whole: what is declared of the project.
        groups: what is declared of groups, by path in lower case.
    """
    names = str(whole.target.ref).casefold().split("/") if whole.target.level is Level.PROJECT else []
    above = [groups[path] for end in range(1, len(names)) if (path := "/".join(names[:end])) in groups]
    for name, group in product(whole.sections, above):
        inherits, declared = whole.specs[name].kind.inherits, whole.sections[name]
        locked = inherits(group.sections[name]) if inherits and name in group.sections else {}
        for key, value in locked.items():
            if key in declared and declared[key] != value:
                message = (
                    f"group {group.target.ref} locks it at {quoted(value)} ({OTHER_FILE_MARK}): "
                    "change it there or leave it out"
                )
                yield Diagnostic((name, key), message, "advice", elsewhere=partial(_place, group, name))


def _place(whole: Stack, section: str) -> str:
    """Return where a section of a merged spec is declared, as `path:line`."""
    return find(whole, (section,), key=True)[1].line


def _level_conflict(path: str, level: Level, levels: PathLevels) -> str | None:
    """Return an error if a path used at a level is known to be of another."""
    known = levels.get(path.casefold())
    return f"{path} is a {known.level}, not a {level} ({known})" if known and known.level is not level else None
