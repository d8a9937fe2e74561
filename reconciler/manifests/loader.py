"""The manifests as the rest of the tool sees them."""

import gc
import hashlib
import json
import os
from collections import Counter
from collections.abc import Collection, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce
from itertools import groupby
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from reconciler.errors import LocatedDiagnostic, ManifestErrors
from reconciler.manifests.diagnostics import Diagnostics
from reconciler.manifests.documents import DeclaredTarget, Index, complain_of_clashes, fault_of_level
from reconciler.manifests.layers import (
    Effective,
    Layer,
    SectionSpec,
    SectionSpecs,
    effective,
    field_path,
    literal,
    object_path,
    origins,
    section_specs,
)
from reconciler.manifests.project_sets import (
    Composition,
    Contribution,
    Discovered,
    Member,
    contributions,
    disagreements,
)
from reconciler.manifests.sources import (
    Document,
    Source,
    Steps,
    Unreadable,
    as_text,
    fault,
    holds_manifest,
    read_text,
    search,
    why_passed_over,
)
from reconciler.manifests.validation import check_alone, checked, complain
from reconciler.model.kind import Kinds
from reconciler.model.state import DesiredState, DesiredTarget, Section
from reconciler.model.targets import LEVELS, Address, Level, Target
from reconciler.system.terminal import escaped

if TYPE_CHECKING:
    from reconciler.manifests.templates import Templates

Identity = Hashable
"""See `Target.identity`."""

NO_VALUES: Mapping[str, Any] = MappingProxyType({})
NO_PATHS: Mapping[Target, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Assembled:
    """A target as the planner gets it, and how it came about."""

    target: DesiredTarget
    effective: Effective


@dataclass(frozen=True, slots=True)
class Manifests:
    """What the manifests declare, merged and free of faults.

    Attributes:
        desired: all targets. As long as groups are to be discovered, the sets that name them have a say only in
            projects with documents of their own.
        warnings: what is doubtful, sorted by place.
        advice: what only `validate` warns of, sorted by place.
        files: those read, as the user named them.
    """

    desired: DesiredState
    warnings: tuple[LocatedDiagnostic, ...]
    advice: tuple[LocatedDiagnostic, ...]
    files: tuple[str, ...]
    _index: Index = field(repr=False, compare=False)
    _assembled: Mapping[Any, Assembled] = field(repr=False, compare=False)

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups whose projects are to be discovered, sorted, as the sets name them."""
        selected = (declared.declared.select.group for declared in self._index.sets.values())
        return tuple(sorted({group for group in selected if group}))

    @property
    def groups_with_archived(self) -> frozenset[str]:
        """Those of `groups` of which a set asks for archived projects too."""
        selected = (declared.declared.select for declared in self._index.sets.values())
        return frozenset(select.group for select in selected if select.group and select.archived)

    @property
    def documents(self) -> dict[str, int]:
        """How many documents there are of each sort, those left out of which there are none."""
        numbers = dict(Counter(str(declared.target.level) for declared in self._index.targets.values()))
        ordered = {level.value: numbers.get(level.value, 0) for level in LEVELS}
        ordered |= {"set": len(self._index.sets), "profile": len(self._index.profiles)}
        return {sort: number for sort, number in ordered.items() if number}

    @property
    def shared_files(self) -> frozenset[str]:
        """Those of `files` that have a say in more than the targets they declare: they hold profiles or sets."""
        layers = [*self._index.profiles.values(), *(each.layer for each in self._index.sets.values())]
        return frozenset(layer.document.source.path for layer in layers)

    def declared_in(self, files: Container[str]) -> frozenset[Identity]:
        """Return the targets that have documents in some files, by `Target.identity`."""
        declared = self._index.targets.items()
        return frozenset(identity for identity, each in declared if each.layer.document.source.path in files)

    def declared(self, identity: Identity) -> DeclaredTarget | None:
        """Return the document of a target, None if it has none of its own."""
        return self._index.targets.get(identity)

    def profile(self, name: str) -> Layer | None:
        """Return the layer of a profile, None if there is none of that name."""
        return self._index.profiles.get(name)

    def beneath(self, target: Target) -> Effective:
        """Return what the profiles and sets beneath the document of a target declare.

        Raises:
            KeyError: no such target.
        """
        whole = self._assembled[target.identity].effective
        return effective(target, whole.layers[:-1], whole.shapes, whole.values)

    @property
    def pathless(self) -> tuple[Target, ...]:
        """The targets given by ID whose placeholders wait for their paths."""
        return tuple(each.target.target for each in self._assembled.values() if each.effective.values is None)

    def with_discovered(self, discovered: Discovered | None, paths: Mapping[Target, str] = NO_PATHS) -> "Manifests":
        """Return the manifests with the sets in force, and with placeholders filled in wherever a path is known.

        Args:
            discovered: for each of `groups` the projects below it; None if nobody has asked the service yet.
            paths: the full paths of targets that are given by ID, as far as they are known.

        Raises:
            ManifestErrors: what is wrong shows only now, such as two sets that disagree on a project, or a group whose
                projects cannot be listed.
            KeyError: a group is missing.
        """
        with _collector_paused():
            return _assembled_manifests(self._index, Diagnostics(), self.files, discovered, paths)

    def effective(self, target: Target) -> dict[str, Any]:
        """Return the merged spec of a target as plain data of its own.

        Raises:
            KeyError: no such target.
        """
        whole = self._assembled[target.identity].effective
        spec: dict[str, Any] = _copied({**({"prune": whole.prune} if whole.prune else {}), **whole.sections})
        return spec

    def as_written(self, target: Target) -> dict[str, Any]:
        """Return the merged spec of a target as a manifest of its own has to write it to come to the same.

        Raises:
            KeyError: no such target.
        """
        spec = self.effective(target)
        written: dict[str, Any] = spec if target in self.pathless else literal(spec)
        return written

    def origin(self, address: Address, field: str | None = None) -> str:
        """Return where an object, or a field of it, is asked for, as `path:line`; empty where no manifest does.

        Nothing is kept for it beforehand: only where something is wrong is anybody asked where it stands.
        """
        whole = self._assembled.get(address.target.identity)
        if whole is None or address.section not in whole.effective.sections:
            return ""
        section = whole.effective.sections[address.section]
        path = object_path(section, () if address.part == address.section else (address.part,), address.name, field)
        _, place = whole.effective.find((address.section, *path), key=True)
        return place.line

    def explain(self, target: Target, path: str | Sequence[str | int]) -> list[tuple[str, Any]]:
        """Return who has a say in a field of a target's spec, lowest layer first, as `path:line` and value.

        Args:
            target: the target.
            path: the keys from the spec downwards, as a sequence or joined by dots (keys may hold dots themselves).

        Returns:
            Nothing if the merged spec has no such field.

        Raises:
            KeyError: no such target.
        """
        found = field_path(path, self.effective(target)) if isinstance(path, str) else tuple(path)
        return list(origins(self._assembled[target.identity].effective, found)) if found else []


def read_manifests(
    paths: Sequence[Path],
    kinds: Kinds,
    *,
    values: Mapping[str, Any] = NO_VALUES,
    env_names: Sequence[str] = (),
    secrets: Collection[str] = (),
) -> Manifests:
    """Read, render, merge and check manifests.

    Args:
        paths: files, and folders to search.
        kinds: the sections there are.
        values: for templates.
        env_names: the environment variables that templates may read, as `env.NAME`.
        secrets: what is kept out of messages, wherever it comes from.

    Raises:
        ManifestErrors: with all faults of all files.
        ConfigurationError: a value is called `env` beside environment variables.
    """
    with _collector_paused(), Reader(Index(section_specs(kinds)), values, env_names, secrets) as reader:
        reader.search(paths)
        return _assembled_manifests(reader.index, reader.diagnostics, tuple(reader.files))


def read_contents(
    contents: Mapping[str, bytes], kinds: Kinds, *, values: Mapping[str, Any] = NO_VALUES, env_names: Sequence[str] = ()
) -> Manifests:
    """Do as `read_manifests` does, with files that are not on disk, such as those of another git revision.

    Args:
        contents: what is in each file, by its path; see `is_manifest`.
        kinds: the sections there are.
        values: for templates.
        env_names: the environment variables that templates may read, as `env.NAME`.

    Raises:
        ManifestErrors: with all faults of all files.
        ConfigurationError: a value is called `env` beside environment variables.
    """
    with _collector_paused(), Reader(Index(section_specs(kinds)), values, env_names) as reader:
        for path, content in contents.items():
            reader.read(path, content)
        return _assembled_manifests(reader.index, reader.diagnostics, tuple(reader.files))


def _assembled_manifests(
    index: Index,
    diagnostics: Diagnostics,
    files: tuple[str, ...],
    discovered: Discovered | None = None,
    paths: Mapping[Target, str] = NO_PATHS,
) -> Manifests:
    """Return the manifests that a index comes to.

    Raises:
        ManifestErrors: with all faults.
    """
    targets = assemble(contributions(index, discovered, paths, diagnostics), index, diagnostics)
    if diagnostics.errors:
        raise ManifestErrors(diagnostics.faults)
    by_identity = {each.target.target.identity: each for each in targets}
    return Manifests(desired_state(targets), diagnostics.warnings, diagnostics.advice, files, index, by_identity)


def _copied(value: Any) -> Any:
    """Copy a value; what aliases share is no longer shared."""
    if isinstance(value, dict):
        return {key: _copied(inner) for key, inner in value.items()}
    return [_copied(inner) for inner in value] if isinstance(value, list) else value


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Keep Python from looking for garbage: of a fleet's manifests nearly all stays, and to look costs a third more.

    What is there by then is not looked at later either; what nobody refers to any more is given back all the same.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if enabled:
            gc.enable()


CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


def assemble(compositions: list[Composition], index: Index, diagnostics: Diagnostics) -> tuple[Assembled, ...]:
    """Return the targets, with diagnostics of all that is wrong with them."""
    shapes, levels = index.shapes, levels_of(index, diagnostics)
    compared: set[tuple[int, ...]] = set()
    assembled = tuple(
        _assembled(each, shapes, compared, diagnostics) for each in compositions if _is_whole(each, shapes, diagnostics)
    )
    for each in assembled:
        for path, message in misplaced_references(each.effective, levels):
            complain(each.effective, path, message, diagnostics)
    return assembled


def desired_state(assembled: tuple[Assembled, ...]) -> DesiredState:
    """Return the targets with a digest that depends on nothing but what is to be true."""
    digest = hashlib.sha256()
    for each in assembled:
        digest.update(CANONICAL.encode(_canonical(each)).encode() + b"\n")
    return DesiredState(tuple(each.target for each in assembled), digest.hexdigest())


def _is_whole(target: Composition, shapes: SectionSpecs, diagnostics: Diagnostics) -> bool:
    """Whether no profile is missing; where one is, the target's own document is checked by itself."""
    if all(part.whole for part in target.parts):
        return True
    own = target.parts[-1]
    if own.priority is None:
        check_alone(effective(None, own.layers[-1:], shapes), (target.target.level,), diagnostics)
    return False


def _assembled(
    target: Composition, shapes: SectionSpecs, compared: set[tuple[int, ...]], diagnostics: Diagnostics
) -> Assembled:
    scope, parts, layers, values = target.target, target.parts, target.layers, target.values
    each = [effective(scope, part.layers, shapes, values) for part in parts]
    whole = reduce(Effective.under, each)
    for layer in layers:
        if layer.title or layer.placeholders:
            _check_shared(layer, whole, scope, diagnostics)
    if len(parts) > 2 or (len(parts) == 2 and parts[1].priority is not None):
        _check_sets(parts, each, compared, diagnostics)
    sections = []
    for name in whole.sections:
        section = checked(whole, shapes[name], scope, diagnostics)
        if section is not None:
            pruned = name in whole.prune
            sections.append(Section(scope, name, shapes[name].kind.wanted(section, prune=pruned), pruned))
    _check_prune(whole, diagnostics)
    labels = {name: value for part in parts for name, value in part.labels.items()}
    origin = layers[-1].document.origin
    return Assembled(DesiredTarget(scope, tuple(sections), origin, MappingProxyType(labels), target.path), whole)


def _check_shared(layer: Layer, whole: Effective, target: Target, diagnostics: Diagnostics) -> None:
    """Complain of sections of a layer that the target's level does not have, or whose names come to the same."""
    for name, value in layer.sections.items():
        shape = whole.shapes[name]
        fault = fault_of_level(name, target.level, whole.shapes)
        if fault:
            diagnostics.add(layer.document.find(("spec", name), key=True), f"{fault} (for {target})", target)
        elif layer.placeholders:
            complain_of_clashes(layer.document, shape, value, whole.values, diagnostics)


def _check_sets(
    parts: list[Contribution], each: list[Effective], compared: set[tuple[int, ...]], diagnostics: Diagnostics
) -> None:
    """Complain where two sets of equal priority want different things: nothing may depend on their order.

    Each is compared with what those before it come to together, and sets without placeholders only for the first of the
    targets that they have in common: many sets cost no more than many comparisons.
    """
    sets = [(part, wanted) for part, wanted in zip(parts, each, strict=True) if part.priority is not None]
    for _, group in groupby(sets, key=lambda pair: pair[0].priority):
        equals = list(group)
        key = tuple(id(part) for part, _ in equals)
        if key in compared:
            continue
        if not any(layer.placeholders for part, _ in equals for layer in part.layers):
            compared.add(key)
        before = equals[0][1]
        for other, wanted in equals[1:]:
            for path in disagreements(before, wanted):
                layer, place = before.find(path)
                one = next(part for part, _ in equals if layer in part.layers)
                message = (
                    f"{other.layers[-1].title} and {one.layers[-1].title} ({place}) have the same priority, "
                    f"{other.priority}, and disagree here: give one of them a higher priority"
                )
                complain(wanted, path, message, diagnostics)
            before = before.under(wanted)


def _check_prune(whole: Effective, diagnostics: Diagnostics) -> None:
    for index, name in enumerate(whole.prune):
        if name and not any(name in layer.document.value.get("spec", {}) for layer in whole.layers):
            message = f"{name} is to be pruned but not declared: write `{name}: {{}}` if nothing may exist there"
            complain(whole, ("prune", index), message, diagnostics)


def _canonical(each: Assembled) -> Any:
    whole = each.effective
    shapes = whole.shapes
    sections = {
        name: _unordered(shapes[name], section) if shapes[name].lists else section
        for name, section in whole.sections.items()
    }
    return [str(each.target.target), sections, sorted(whole.prune)]


def _unordered(shape: SectionSpec, section: Mapping[str, Any]) -> Mapping[str, Any]:
    return {key: sorted(value, key=str) if shape.merges_as_set(key) else value for key, value in section.items()}


@dataclass(frozen=True, slots=True)
class Evidence:
    """What shows of which level a path is.

    Attributes:
        document: where it is written.
        path: of the value there.
        inside: the path of a project in it; empty where the path itself is written.
    """

    document: Document
    path: Steps
    inside: str = ""

    def __str__(self) -> str:
        """A reason, with its place."""
        place = self.document.find(self.path)
        return f"project {self.inside} is in it, see {place}" if self.inside else f"see {place}"


@dataclass(slots=True)
class Levels:
    """The paths of groups and of projects, in lower case, each with what shows it."""

    groups: dict[str, Evidence] = field(default_factory=dict)
    projects: dict[str, Evidence] = field(default_factory=dict)

    def fault_of(self, path: str, level: Level) -> str | None:
        """Say that a path that is used as that of a group or a project is the path of the other."""
        others, what = (self.projects, "project") if level is Level.GROUP else (self.groups, "group")
        evidence = others.get(path.casefold())
        return None if evidence is None else f"{path} is a {what}, not a {level} ({evidence})"


def levels_of(index: Index, diagnostics: Diagnostics) -> Levels:
    """Return what the documents and sets say of paths; those that they take for projects wrongly are errors."""
    levels = Levels()
    named = list(_projects(index))
    for path, document, place in _groups(index):
        levels.groups.setdefault(path.casefold(), Evidence(document, place))
    for path, document, place in named:
        folded = path.casefold()
        above = folded.rpartition("/")[0]
        while above and above not in levels.groups:
            levels.groups[above] = Evidence(document, place, path)
            above = above.rpartition("/")[0]
    for path, document, place in named:
        fault = levels.fault_of(path, Level.PROJECT)
        if fault:
            diagnostics.add(document.find(place), f"{fault}: give the full path of a project", document)
        else:
            levels.projects.setdefault(path.casefold(), Evidence(document, place))
    return levels


def misplaced_references(whole: Effective, levels: Levels) -> Iterator[tuple[Steps, str]]:
    """Yield what is wrong with lists of groups that name projects, and the other way round."""
    for name, section in whole.sections.items():
        lists = whole.shapes[name].lists
        for part in lists.keys() & (section.keys() if isinstance(section, dict) else ()):
            level = lists[part].key_level
            for index, entry in enumerate(section[part] if level and isinstance(section[part], list) else ()):
                fault = levels.fault_of(entry, level) if level and isinstance(entry, str) else None
                if fault:
                    right = next(key for key, each in lists.items() if each.key_level not in {None, level})
                    yield (name, part, index), f"{fault}: list it under `{right}`"


def _groups(index: Index) -> Iterator[tuple[str, Document, Steps]]:
    for target in index.targets.values():
        if target.target.level is Level.GROUP and isinstance(target.target.ref, str):
            yield target.target.ref, target.layer.document, ("metadata", "path")
    for declared in index.sets.values():
        if declared.declared.select.group:
            yield declared.declared.select.group, declared.layer.document, ("select", "group")


def _projects(index: Index) -> Iterator[tuple[str, Document, Steps]]:
    for target in index.targets.values():
        if target.target.level is Level.PROJECT and isinstance(target.target.ref, str):
            yield target.target.ref, target.layer.document, ("metadata", "path")
    for declared in index.sets.values():
        for number, path in enumerate(declared.declared.select.projects):
            yield path, declared.layer.document, ("select", "projects", number)


TEMPLATE = ".j2"


@dataclass(slots=True)
class Reader:
    """Reads files one after the other; as a context manager, ends the process for templates after them.

    Attributes:
        index: what they declare.
        diagnostics: what is wrong with them.
        files: those read.
        values: for templates.
        env_names: the environment variables that templates may read.
        secrets: what is kept out of messages, though a link may lead to a file that holds it.
    """

    index: Index
    values: Mapping[str, Any]
    env_names: Sequence[str]
    secrets: Collection[str] = ()
    diagnostics: Diagnostics = field(default_factory=Diagnostics)
    files: list[str] = field(default_factory=list)
    _templates: "Templates | None" = None

    def __enter__(self) -> "Reader":
        return self

    def __exit__(self, *_error: object) -> None:
        if self._templates is not None:
            self._templates.close()

    def search(self, paths: Sequence[Path]) -> None:
        """Read all manifests at and below some paths."""
        found = search(paths)
        self.diagnostics.extend(found.faults)
        self.index.whole &= not found.faults
        self.diagnostics.extend(
            fault(path, 0, 0, why_passed_over(path), severity="warning") for path in found.passed_over
        )
        for path in found.files:
            self.read(path)

    def read(self, path: str, content: bytes | None = None) -> None:
        """Read a file, or its content if that is given."""
        self.files.append(path)
        try:
            source = self._source(path, read_text(path) if content is None else as_text(path, content))
        except Unreadable as error:
            self.diagnostics.extend([error.diagnostic])
            self.index.whole = False
        else:
            _add_documents(source, self.index, self.diagnostics)

    def _source(self, path: str, text: str) -> Source:
        if not path.endswith(TEMPLATE):
            return Source(path, text, tuple(self.secrets))
        if self._templates is None:
            from reconciler.manifests.templates import Templates  # noqa: PLC0415 - only templates need a process

            self._templates = Templates(self.values, self.env_names, secrets=self.secrets)
        return self._templates.source(path, text)


def _add_documents(source: Source, index: Index, diagnostics: Diagnostics) -> None:
    reading = source.read()
    diagnostics.extend(reading.errors)
    index.whole &= reading.whole
    if not reading.roots and not reading.errors and not source.own_line:
        diagnostics.extend([fault(source.path, 0, 0, "holds no document", severity="warning")])
    for number, root in enumerate(reading.roots):
        index.add(Document(source, number, root.line, root.value), diagnostics)


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """All manifests of a repository, also hidden and misnamed ones, as far as they can be read."""

    _assembled: Mapping[Any, Assembled]
    _others: frozenset[str]
    _broken: Mapping[str, str]

    def declared(self, target: Target) -> DesiredTarget | None:
        """Return a target with all that the repository declares of it."""
        found = self._assembled.get(target.identity)
        return None if found is None else found.target

    def place(self, target: Target, section: str) -> str:
        """Return where a section that is `declared` is declared outside of the named manifests, as `path:line`."""
        found = self._assembled[target.identity]
        places = [place for place, _ in origins(found.effective, (section,))]
        return next((each for each in reversed(places) if each.rpartition(":")[0] in self._others), found.target.origin)

    def mentioned(self, target: Target) -> str | None:
        """Return a file that cannot be read as a manifest and may declare a target, for it mentions it."""
        mention = str(target.level if target.ref is None else target.ref).casefold()
        return next((path for path, text in self._broken.items() if mention in text), None)


def read_elsewhere(
    top: Path,
    named: Sequence[str],
    targets: Iterable[Collection[Target]],
    kinds: Kinds,
    *,
    values: Mapping[str, Any],
    env_names: Sequence[str],
) -> Elsewhere:
    """Read all manifests of a repository.

    Args:
        top: the folder of the checkout.
        named: the files that the user named, which can be read.
        targets: those of interest, each by all its names. A set is about those whose path is below the set's group.
        kinds: the sections there are.
        values: for templates.
        env_names: the environment variables that templates may read.
    """
    found = search([Path(os.path.relpath(top))])
    known = {os.path.realpath(path) for path in named}
    files = [*filter(holds_manifest, found.files), *found.passed_over]
    others = [path for path in files if os.path.realpath(path) not in known]
    with Reader(Index(section_specs(kinds)), values, env_names) as reader:
        for path in (*named, *others):
            reader.read(path)
    groups = {each.declared.select.group for each in reader.index.sets.values()} - {""}
    named_by_path = [(names, target.ref) for names in targets for target in names if isinstance(target.ref, str)]
    paths = {target: path for names, path in named_by_path for target in names if isinstance(target.ref, int)}
    members = [Member(path) for _, path in named_by_path]
    below = {group: [each for each in members if _is_below(group, each.path)] for group in groups}
    composed = contributions(reader.index, below, paths, reader.diagnostics)
    assembled = assemble(composed, reader.index, reader.diagnostics)
    faulty = {fault.path for fault in reader.diagnostics.faults if fault.severity == "error"}
    broken = [path for path in others if escaped(path) in faulty]
    return Elsewhere(
        {each.target.target.identity: each for each in assembled},
        frozenset(escaped(path) for path in others),
        {path: Path(path).read_text(encoding="utf-8", errors="replace").casefold() for path in broken},
    )


def _is_below(group: str, path: str) -> bool:
    return path.casefold().startswith(f"{group.casefold()}/")
