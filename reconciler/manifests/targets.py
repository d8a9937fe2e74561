"""Merge each target from its documents, and check it by itself.

Begin with `merge_targets`. A `Composition` has the documents of one target, and `_merge` turns it into a
`MergedTarget`.
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import groupby
from types import MappingProxyType

from reconciler.manifests.declared import clashing_names
from reconciler.manifests.diagnostics import Diagnostic, Diagnostics, Place, sentence
from reconciler.manifests.exceptions import read_exceptions
from reconciler.manifests.index import Index
from reconciler.manifests.layers import (
    DEFAULT_BRANCH,
    MOST_FILLED,
    PRUNE,
    UNMANAGED,
    DeclaredSet,
    DeclaredTarget,
    Layer,
    LetGo,
    Placeholders,
    SectionSpecs,
    Stack,
    level_error,
    placeholder_values,
    stacked,
    unbranched,
)
from reconciler.manifests.locks import broken_locks, differences, lock_on
from reconciler.manifests.merged import MergedTarget
from reconciler.manifests.project_sets import (
    REPOSITORY,
    Discovered,
    Member,
    Shown,
    by_group,
    candidates,
    chosen,
    idle,
    no_default_branch,
    projects_by_path,
)
from reconciler.manifests.sources import Steps
from reconciler.manifests.trace import Declaration, find, traced
from reconciler.manifests.validation import check_alone, check_section
from reconciler.model.exceptions import DeclaredException
from reconciler.model.obstacle import Obstacle
from reconciler.model.state import DesiredTarget, Listed, Section
from reconciler.model.targets import Identity, Key, Level, Target
from reconciler.model.wording import counted, unknown

USUAL_NAME = "main"
"""The name that new default branches have."""


@dataclass(slots=True)
class Composition:
    """The documents of one target.

    Attributes:
        target: the target as its own document names it, or as a set names the project.
        path: the full path; None for the user and the instance, and while only an ID is known.
        member: the entry of the project in a list of projects; None where no list was read.
        parts: the sets that select the target, by priority, then its own document. Each has its layers: its profiles
            first, then itself. Profiles are missing that do not exist, or do not fit the target.
        asked: the default branch, or the obstacle to knowing it, if the record of the project was read; else None.
    """

    target: Target
    path: str | None
    member: Member | None
    parts: list[tuple[DeclaredTarget | DeclaredSet, tuple[Layer, ...]]] = field(default_factory=list)
    asked: str | Obstacle | None = None

    @property
    def own(self) -> DeclaredTarget | None:
        """Its own document, if it has one."""
        last, _ = self.parts[-1]
        return last if isinstance(last, DeclaredTarget) else None

    @property
    def sets(self) -> list[tuple[DeclaredSet, tuple[Layer, ...]]]:
        """The parts that are sets."""
        return [(last, layers) for last, layers in self.parts if isinstance(last, DeclaredSet)]

    @property
    def former_paths(self) -> Mapping[str, str]:
        """The paths by which its documents still name it, since it has moved; by place."""
        return {
            part.document.find(steps).line: path
            for part, _ in self.parts
            for steps, path in part.document.former.items()
            if isinstance(part, DeclaredTarget)
            or part.select.projects[steps[-1]].casefold() == str(self.path).casefold()
        }

    @property
    def default_branch(self) -> str | Obstacle:
        """The name of the default branch, or the obstacle to knowing it."""
        member = self.member
        if self.asked is not None or member is None:
            return self.asked or Obstacle(self.target.address, "its default branch is not known yet")
        return member.default_branch or no_default_branch(self.target, is_off=REPOSITORY in member.off)

    @property
    def names_default_branch(self) -> bool:
        """Whether a layer has `{default_branch}`."""
        return any(DEFAULT_BRANCH in layer.placeholders for _, layers in self.parts for layer in layers)

    @property
    def values(self) -> Placeholders | None:
        """The values of the placeholders; None if one is used and the path is not known."""
        layers = [layer for _, layers in self.parts for layer in layers]
        if self.nameless and any(layer.placeholders.keys() - {DEFAULT_BRANCH} for layer in layers):
            return None
        values, branch = placeholder_values(self.path), self.default_branch
        if self.target.level is not Level.PROJECT or not self.names_default_branch:
            return unbranched(values)
        return {**values, DEFAULT_BRANCH: branch} if isinstance(branch, str) else values

    @property
    def nameless(self) -> bool:
        """Whether only the ID of the target is known."""
        return self.path is None and isinstance(self.target.ref, int)


def merge_targets(
    index: Index, knowledge: Shown, diagnostics: Diagnostics, *, only: Set[Identity] | None = None
) -> dict[Identity, MergedTarget]:
    """Compose, merge and check each target by itself; return the good ones by identity, in the order of the targets.

    A document that names a project by its ID and a set that discovers the project compose one target. A target whose
    layers have not changed is taken from `Index.merged`.

    Args:
        index: all documents.
        knowledge: the facts about targets that the service has shown.
        diagnostics: takes the errors and warnings.
        only: the targets to merge, by `Target.identity`; None for all.

    Raises:
        KeyError: a group is missing from what is shown.
    """
    compared: set[tuple[int | str, ...]] = set()
    targets: dict[Identity, MergedTarget] = {}
    compositions = _compose(index, knowledge, diagnostics, only)
    for composition in compositions:
        merged = _merge(composition, index, diagnostics, compared)
        if merged is not None:
            for diagnostic in merged.diagnostics:
                diagnostics.add(diagnostic, merged.stack)
            desired = _desired(composition, merged, index, knowledge.discovered, diagnostics)
            targets[desired.target.identity] = replace(merged, desired=desired)
    for layer, diagnostic in _other_branches(compositions, targets) if only is None and knowledge.discovered else ():
        diagnostics.add(diagnostic, layer.document)
    # targets are reused only without errors: a reused target would not report its errors again
    if not diagnostics.errors:
        index.merged |= targets
    return targets


def _other_branches(
    compositions: Iterable[Composition], merged_targets: Mapping[Identity, MergedTarget]
) -> Iterator[tuple[Layer, Diagnostic]]:
    """Yield a warning about each name in a set that is the default branch of some of its projects, and not of others.

    A project does not count if another name in the section, such as a wildcard, matches its default branch.
    """
    usual: set[tuple[Layer, str, str]] = set()
    others: dict[tuple[Layer, str, str], list[str]] = {}
    for composition in compositions:
        branch, merged = composition.default_branch, merged_targets.get(composition.target.identity)
        if merged is None or not isinstance(branch, str):
            continue
        for _, layers in composition.sets:
            for layer, section, name in _branch_names(layers, merged.stack.specs):
                usual |= {(layer, section, branch)}
                rules = merged.stack.specs[section].kind.in_effect
                names = merged.stack.sections.get(section, ())
                if rules is None or not any(rules.matches(key, branch) for key in names):
                    others.setdefault((layer, section, name), []).append(f"{composition.path} ({branch})")
    for (layer, section, name), projects in others.items():
        if name == USUAL_NAME or (layer, section, name) in usual:
            have = "has" if len(projects) == 1 else "have"
            finding = f"{counted(len(projects), 'project')} {have} another default branch, such as {projects[0]}"
            message = f"{finding}: write `{{{DEFAULT_BRANCH}}}`"
            yield layer, Diagnostic(("spec", section, name), message, "warning", at_key=True)


def _branch_names(layers: Iterable[Layer], specs: SectionSpecs) -> Iterator[tuple[Layer, str, str]]:
    """Yield the names of single branches that layers declare objects for, each with the layer and the section."""
    for layer in layers:
        for section, declared in layer.sections.items():
            names = declared if isinstance(declared, dict) and specs[section].names_branch() else {}
            for name in names:
                if declared[name] is not None and not set("*{") & set(name):
                    yield layer, section, name


def _compose(index: Index, knowledge: Shown, diagnostics: Diagnostics, only: Set[Identity] | None) -> list[Composition]:
    """Return the documents of each target, in the order of the targets; see `merge_targets`."""
    discovered, paths, branches = knowledge
    listed = projects_by_path(discovered)
    known = {**paths, **{Target(Level.PROJECT, each.id): each.path for each in listed.values()}}

    def composed(target: Target, target_path: str | None) -> Composition:
        target_path = target.ref if isinstance(target.ref, str) else target_path
        member = listed.get(target_path.casefold()) if target_path else None
        return Composition(target, target_path, member, asked=branches.get(target.identity))

    documents = index.targets if only is None else {name: index.targets[name] for name in only & index.targets.keys()}
    targets = {name: composed(own.target, known.get(own.target)) for name, own in documents.items()}
    others = _unlisted_candidates(documents.values(), targets.values(), discovered, listed) if index.sets else {}
    # by title too: the result must not depend on the order of files
    for declared in sorted(index.sets.values(), key=lambda each: (each.priority, each.title)):
        layers, errors = _with_profiles(declared, None, index)
        offered = candidates(declared.select, discovered, others)
        selected = chosen(declared.select, offered)
        for diagnostic in (*errors, *idle(declared, offered, selected, discovered)):
            diagnostics.add(diagnostic, declared.document)
        # a listed set may spell one project in two ways
        for path in {path.casefold(): path for path in selected}.values():
            target = Target(Level.PROJECT, path)
            if only is None or target.identity in only:
                member = listed.get(path.casefold(), Member(path))
                # the document of a project may name it by ID
                by_number = targets.get(Target(Level.PROJECT, member.id).identity)
                composition = targets.get(target.identity) or by_number or composed(target, path)
                targets.setdefault(composition.target.identity, composition).parts.append((declared, layers))
    for name, own in documents.items():
        layers, errors = _with_profiles(own, targets[name], index)
        targets[name].parts.append((own, layers))
        if own.exceptions and isinstance(own.target.ref, str) and own.target.level is Level.PROJECT:
            errors += _unlisted(own, targets[name], index, discovered)
        for diagnostic in errors:
            diagnostics.add(diagnostic, own.document)
    return sorted(targets.values(), key=lambda composition: composition.target.order)


def _unlisted_candidates(
    declared_targets: Iterable[DeclaredTarget],
    compositions: Iterable[Composition],
    discovered: Discovered | None,
    members_by_path: Mapping[str, Member],
) -> Mapping[str, Sequence[str]]:
    """Return by group the projects with documents that sets may select though no list shows them; see `candidates`.

    Before the discovery, these are all; afterwards, those that are created if they do not exist.
    """
    if discovered is None:
        return by_group((each.path for each in compositions if each.target.level is Level.PROJECT and each.path), str)
    creating = (
        str(each.target.ref) for each in declared_targets if each.creation and each.target.level is Level.PROJECT
    )
    archived = {path for path, each in members_by_path.items() if each.archived}
    return by_group((path for path in creating if path.casefold() not in archived), str)


def _unlisted(
    declared_target: DeclaredTarget, composition: Composition, index: Index, discovered: Discovered | None
) -> Iterator[Diagnostic]:
    """Yield a warning about a document that has only exceptions, for a project that the list of its group lacks.

    No request is sent for such a project, so that no later stage would notice that the project does not exist.
    """
    path = str(declared_target.target.ref)
    lists = [
        group
        for group, projects in (discovered or {}).items()
        if path.casefold().startswith(f"{group}/".casefold()) and not isinstance(projects, Obstacle)
    ]
    is_read = any(layer.sections for _, layers in composition.parts for layer in layers)
    is_found = declared_target.creation or declared_target.document.former
    if lists and composition.member is None and not is_read and not is_found:
        archived = "" if lists[-1] in index.groups_with_archived else "archived, "
        fate = f"it may have been {archived}moved, renamed or deleted"
        message = f"group {lists[-1]} lists no project {path}: {fate}; correct the path, or remove this document"
        yield Diagnostic(("metadata", "path"), message, "warning")


def _with_profiles(
    declared_document: DeclaredTarget | DeclaredSet, composition: Composition | None, index: Index
) -> tuple[tuple[Layer, ...], list[Diagnostic]]:
    """Return the layers of a document, its profiles first, and an error for each profile that cannot be used.

    Args:
        declared_document: the document.
        composition: the target that the layers have to fit; None for a set, whose projects all have paths.
        index: all documents.
    """
    layers: list[Layer] = []
    diagnostics: list[Diagnostic] = []
    for number, name in enumerate(declared_document.profiles):
        steps = ("metadata", "profiles", number)
        layer = index.profiles.get(name)
        if layer and layer.placeholders and composition and (lacking := _lacking(layer, composition)):
            location = layer.document.find(layer.placeholders[lacking][0])
            message = (
                f"{layer.title} uses `{{{lacking}}}` ({location}), and {_why_lacking(composition.target, lacking)}"
            )
            diagnostics.append(Diagnostic(steps, message))
        elif layer:
            layers.append(layer)
        elif index.whole:
            diagnostics.append(Diagnostic(steps, unknown("profile", name, index.profiles)))
    if declared_document.placeholders and composition and (lacking := _lacking(declared_document, composition)):
        message = (
            f"{_why_lacking(composition.target, lacking)}; a literal `{{{lacking}}}` is written `{{{{{lacking}}}}}`"
        )
        diagnostics.append(Diagnostic(declared_document.placeholders[lacking][0], message))
    return (*layers, declared_document), diagnostics


def _lacking(layer: Layer, composition: Composition) -> str:
    """Return a placeholder of a layer that has no value in a target; empty if there is none."""
    if composition.nameless:
        return ""
    is_project = composition.target.level is Level.PROJECT
    values = {*placeholder_values(composition.path), *([DEFAULT_BRANCH] if is_project else [])}
    return next((use for use in layer.placeholders if use not in values), "")


def _why_lacking(target: Target, placeholder: str) -> str:
    if placeholder == DEFAULT_BRANCH:
        return f"{'the ' if target.ref is None else ''}{target} has no default branch"
    return f"the {target} has no path" if target.ref is None else f"{target} has no namespace"


def _merge(
    composition: Composition, index: Index, diagnostics: Diagnostics, compared: set[tuple[int | str, ...]]
) -> MergedTarget | None:
    """Return the merged target; None if a layer cannot be filled in, or a profile is missing."""
    target = composition.target
    layers = tuple(layer for _, layers in composition.parts for layer in layers)
    values = composition.values
    before = index.merged.get(target.identity)
    if before and (before.stack.target, before.stack.layers, before.stack.values) == (target, layers, values):
        return before
    if not _is_mergeable(composition, layers, values, index, diagnostics):
        return None
    whole = stacked(target, layers, index.specs, values, layers[-1].unmanaged, let_go=layers[-1].let_go)
    errors = [*_errors(composition.sets, whole, index, compared)]
    is_sound = bool(whole.let_go) and not any((*_declared_beside(whole), *broken_locks(whole)))
    remarks = [*_remarks_about_let_go(whole, complete=not composition.nameless)] if is_sound else []
    sections = tuple(_sections(whole, remarks))
    contradictions: dict[str, Obstacle] = {}
    if DEFAULT_BRANCH in (values or {}) and composition.names_default_branch:
        # An error that only the name of the default branch causes is a problem of this project alone: a Maintainer who
        # renames the branch must not stop the plans of all projects.
        objects = _of_default_branch(whole)
        wrong = [(place, each) for place, each, _ in (*errors, *((whole, each, None) for each in remarks))]
        for place, each in wrong:
            if each.severity == "error" and _object_at(whole, each.steps) in objects:
                reason = f"the default branch is {composition.default_branch}; {sentence(each, place)}"
                contradictions.setdefault(str(each.steps[1]), Obstacle(target.address, reason))
        errors = [error for error in errors if _object_at(whole, error[1].steps) not in objects]
        remarks = [each for each in remarks if each.severity != "error" or _object_at(whole, each.steps) not in objects]
        sections = tuple(_as_written(whole.unnamed, sections, contradictions))
    for place, error, by in errors:
        diagnostics.add(error, place, by)
    return MergedTarget(DesiredTarget(target, sections), whole, tuple(remarks), contradictions)


def _of_default_branch(stack: Stack) -> Set[tuple[str, Key]]:
    """Return the section and the name of each object that a layer declares with `{default_branch}`."""
    uses = [steps for layer in stack.layers for steps in layer.placeholders.get(DEFAULT_BRANCH, ())]
    return {named for steps in uses if (named := _object_at(stack, steps)) is not None}


def _object_at(stack: Stack, steps: Steps) -> tuple[str, Key] | None:
    """Return the section and the name of the object at some steps of a document; None where there is none."""
    match steps:
        case ("spec", str(section), str(key), *_) if section in stack.specs:
            return section, stack.specs[section].normalize_key(key, stack.values)
    return None


def _as_written(unnamed: Stack, sections: Sequence[Section], contradicted: Container[str]) -> Iterator[Section]:
    """Yield the sections of a target, each with its form before the default branch was filled in.

    Of a contradicted section, only this form is yielded.
    """
    written, named = (
        {section.kind: section for section in _sections(unnamed, [])},
        {each.kind: each for each in sections},
    )
    for name in unnamed.sections:
        before = written.get(name, Section(unnamed.target, name, {}))
        if name in contradicted:
            yield before
        elif name in named:
            yield named[name] if named[name] == before else replace(named[name], written=before)


def _errors(
    sets: Sequence[tuple[DeclaredSet, tuple[Layer, ...]]],
    stack: Stack,
    index: Index,
    compared: set[tuple[int | str, ...]],
) -> Iterator[tuple[Place, Diagnostic, Target | None]]:
    """Yield the errors of a target's layers, each with its place, and with the target if the error is its alone."""
    for diagnostic in _declared_beside(stack):
        yield stack.layers[-1].document, diagnostic, stack.target
    for layer in stack.layers:
        # The sections of a target's own document were checked against its level when the document was read.
        for diagnostic, by in _misfits(layer, stack) if layer.title or layer.placeholders else ():
            yield layer.document, diagnostic, by
    for layer, error in broken_locks(stack) if stack.has_locks else ():
        if index.binds(stack.target, error.steps):
            yield layer.document, error.below("spec"), stack.target
    for wanted, conflict in _set_conflicts(sets, stack, compared) if len(sets) > 1 else ():
        yield wanted, conflict, None


def _is_mergeable(
    composition: Composition,
    layers: Sequence[Layer],
    values: Placeholders | None,
    index: Index,
    diagnostics: Diagnostics,
) -> bool:
    """Return whether all profiles exist, and no layer's placeholders expand to too much text."""
    too_long = {layer: name for layer in layers if (name := layer.overfilled(values))}
    for layer, name in too_long.items():
        message = f"the placeholders of this document expand to more than {MOST_FILLED // 1024 // 1024} MiB: use fewer"
        diagnostics.add(Diagnostic(layer.placeholders[name][0], message), layer.document)
    is_whole = all(len(part) > len(last.profiles) for last, part in composition.parts)
    if composition.own and not (too_long or is_whole):
        # The own document is checked by itself, since its layers cannot be merged.
        for name, section in composition.own.sections.items():
            for diagnostic in check_alone(index.specs[name], section, (composition.target.level,)):
                diagnostics.add(diagnostic, composition.own.document)
    return is_whole and not too_long


def _misfits(layer: Layer, stack: Stack) -> Iterator[tuple[Diagnostic, Target | None]]:
    """Yield errors about sections that the target's level does not have, and about names that are equal once filled in.

    Errors about the level concern the target alone, and are yielded with the target.
    """
    for name, value in layer.sections.items():
        if name in stack.unmanaged:
            continue
        error = level_error(name, stack.target.level, stack.specs) if layer.title else None
        if error:
            yield Diagnostic(("spec", name), error, at_key=True), stack.target
        elif layer.placeholders:
            clashing = clashing_names(layer.document, stack.specs[name], value, stack.values)
            yield from ((diagnostic, None) for diagnostic in clashing)


def _declared_beside(stack: Stack) -> Iterator[Diagnostic]:
    """Yield an error for each object that the target's own document both declares and leaves alone."""
    own = stack.layers[-1]
    for each in stack.let_go:
        for declaration in _declaring(own, each, stack):
            place = own.document.find(("spec", *each.steps))
            message = f"this is declared here and {UNMANAGED} at {place}: one of the two has to go"
            at_key = stack.specs[each.section].items is not None
            yield Diagnostic(("spec", *declaration.steps), message, at_key=at_key)


def _declaring(layer: Layer, let_go: LetGo, stack: Stack) -> Iterator[Declaration]:
    """Yield the declarations by which a layer declares an object that is left alone."""
    spec = stack.specs[let_go.section]
    declared = traced(layer, spec, stack.values) if let_go.section in layer.sections else {}
    name = stack.released[let_go.section][let_go.part][let_go.name]
    for steps, declaration in declared.items():
        is_item = steps[1:] == (name,)
        is_entry = steps[1:2] == (let_go.part,) and len(steps) == 3 and declaration.value == name
        if is_item or is_entry:
            yield declaration


def _remarks_about_let_go(stack: Stack, *, complete: bool) -> Iterator[Diagnostic]:
    """Yield advice about each object that is left alone: whether its line in `unmanaged` is still needed.

    Args:
        stack: the layers of the target.
        complete: whether these are all of its layers; if not, a set that is not known yet may declare the object.
    """
    for each in stack.let_go:
        steps: Steps = ("spec", *each.steps)
        if each.section in stack.prune:
            place = find(stack, (PRUNE, stack.prune.index(each.section)))[1].line
            yield Diagnostic(steps, f"keep this line: {each.section} is pruned ({place})", "advice")
        elif declared := [found for layer in stack.layers[:-1] for found in _declaring(layer, each, stack)]:
            yield Diagnostic(steps, f"keep this line: {declared[0]} declares this object", "advice")
        elif complete and not stack.awaits_default_branch(each.section):
            message = "once an apply has released this object, this line may go: no profile and no set declares it"
            yield Diagnostic(steps, message, "advice")


def _sections(stack: Stack, section_diagnostics: list[Diagnostic]) -> Iterator[Section]:
    """Yield the sections of a target that have no errors; collect the errors and the advice about all of them."""
    target = stack.target
    for name in stack.sections:
        spec, pruned = stack.specs[name], name in stack.prune
        section, problems = check_section(stack, spec, target)
        section_diagnostics += problems
        if section is not None:
            own = not stack.layers[-1].title and name in stack.layers[-1].sections
            wanted, released = spec.kind.wanted(section, prune=pruned), stack.released.get(name, {})
            yield Section(target, name, wanted, pruned, own, stack.minimums(name), released=released)
    for number, name in enumerate(stack.prune):
        if name and not any(name in layer.document.value.get("spec", {}) for layer in stack.layers):
            undeclared = f"{name} is to be pruned but not declared: write `{name}: {{}}` if nothing may exist there"
            message = level_error(name, target.level, stack.specs) or undeclared
            section_diagnostics.append(Diagnostic(("spec", PRUNE, number), message))


def _desired(
    composition: Composition,
    merged: MergedTarget,
    index: Index,
    discovered: Discovered | None,
    diagnostics: Diagnostics,
) -> DesiredTarget:
    """Return a target as the planner gets it: with its checked sections, and with all that its documents say of it."""
    own, member, target = composition.own, composition.member, composition.target
    exceptions: tuple[DeclaredException, ...] = ()
    if own is not None and own.exceptions:
        if discovered is None:
            # Before the discovery, sets of groups apply to each documented path below; of an ID, the path is unknown.
            complete = not (target.level is Level.PROJECT and composition.nameless and index.groups)
        else:
            # Afterwards, they apply to listed projects: one that has moved, is archived, or was deleted has lost them.
            complete = member is not None and not member.archived
        exceptions, problems = read_exceptions(own.exceptions, merged.stack, index.today, complete=complete)
        for problem in problems:
            diagnostics.add(problem, own.document)
    skips = [(last.select.not_applicable == "skip", layers) for last, layers in composition.sets]
    skipping = {name for skip, layers in skips if skip for layer in layers for name in layer.sections}
    strict = [layers for skip, layers in skips if not skip] + ([composition.parts[-1][1]] if own else [])
    skipping -= {name for layers in strict for layer in layers for name in layer.sections}
    return DesiredTarget(
        target,
        merged.desired.sections,
        origin=_origin(composition),
        labels=MappingProxyType({name: label for last, _ in composition.parts for name, label in last.labels.items()}),
        path=composition.path,
        former_paths=composition.former_paths,
        exceptions=exceptions,
        listed=Listed(member.archived, member.off) if member and (member.archived or member.off) else None,
        creation=own.creation if own else None,
        unmanaged=merged.stack.unmanaged,
        skipped=_shared(frozenset(skipping)),
        unplannable=merged.contradictions or _waiting(composition, merged.stack),
    )


def _waiting(composition: Composition, stack: Stack) -> dict[str, Obstacle]:
    """Return the obstacle of each section that uses `{default_branch}` while the branch is unknown."""
    branch = composition.default_branch
    if isinstance(branch, str) or not composition.names_default_branch:
        return {}
    places = [(layer.document, steps) for layer in stack.layers for steps in layer.placeholders.get(DEFAULT_BRANCH, ())]
    names = {
        steps[1] if steps[0] == "spec" else document.value["metadata"]["exceptions"][steps[2]]["section"]
        for document, steps in places
    }
    return {name: branch for name in stack.sections if name in names}


def _origin(composition: Composition) -> str:
    """Return the place of a target in its topmost document: of a set, in its list of projects; else its beginning."""
    last, _ = composition.parts[-1]
    number = _numbers(last).get(composition.target.identity) if isinstance(last, DeclaredSet) else None
    return last.document.origin if number is None else last.document.find(("select", "projects", number)).line


@lru_cache(maxsize=256)
def _numbers(declared_set: DeclaredSet) -> Mapping[Identity, int]:
    """Return the positions of the projects that a set lists, by `Target.identity`."""
    return {Target(Level.PROJECT, path).identity: number for number, path in enumerate(declared_set.select.projects)}


@lru_cache(maxsize=256)
def _shared(equal_names: frozenset[str]) -> frozenset[str]:
    """Return one object for all equal sets: a fleet has few different ones, and thousands of targets."""
    return equal_names


def _set_conflicts(
    sets: Sequence[tuple[DeclaredSet, tuple[Layer, ...]]], stack: Stack, compared: set[tuple[int | str, ...]]
) -> Iterator[tuple[Stack, Diagnostic]]:
    """Yield an error for each value that two sets of equal priority set differently: nothing may depend on file order.

    Each set is compared with all before it, merged. Sets without placeholders are compared for the first of their
    common targets only, by `compared`, so that many sets cost no more than many comparisons.
    """
    for priority, group in groupby(sets, key=lambda part: part[0].priority):
        equals = [layers for _, layers in group]
        let_go = (f"{each.section}/{each.part}/{each.name!r}" for each in stack.let_go)
        key: tuple[int | str, ...] = (*map(id, equals), *sorted(stack.unmanaged), *let_go)
        if len(equals) == 1 or key in compared:
            continue
        if not any(layer.placeholders for layers in equals for layer in layers):
            compared.add(key)
        before = stack.of(*equals[0])
        for layers in equals[1:]:
            wanted = stack.of(*layers)
            for steps in _disagreements(before, wanted):
                if _are_joined(before, wanted, steps):
                    continue
                layer, location = find(before, steps)
                other = next(each for each in equals if layer in each)
                message = (
                    f"{layers[-1].title} and {other[-1].title} ({location}) have the same priority, "
                    f"{priority}, and disagree here: give one of them a higher priority"
                )
                yield wanted, Diagnostic(("spec", *steps), message)
            before = before.under(*layers)


def _are_joined(lower_stack: Stack, upper_stack: Stack, steps: Steps) -> bool:
    """Return whether a field is a minimum of two sets, or of one and locked by the other: the order does not matter."""
    locks = [lock_on(stack, steps) for stack in (lower_stack, upper_stack)]
    return all(locks) and any(lock and lock.is_minimum for lock in locks)


def _disagreements(lower_stack: Stack, upper_stack: Stack) -> Iterator[Steps]:
    """Yield the steps to each value that two sets set differently, or of which one drops what the other sets."""
    if upper_stack.sets_prune and lower_stack.sets_prune and set(lower_stack.prune) != set(upper_stack.prune):
        yield (PRUNE,)
    for name in lower_stack.sections.keys() & upper_stack.sections.keys():
        spec, mine, theirs = lower_stack.specs[name], lower_stack.sections[name], upper_stack.sections[name]
        if not isinstance(mine, dict) or not isinstance(theirs, dict):
            yield from differences((name,), mine, theirs)
            continue
        # Only the keys of the later set are compared: the sets before it, merged, may have many more.
        ordered = {key: mine[key] for key in theirs if key in mine and not spec.merges_as_set(key)}
        different = list(differences((name,), ordered, theirs))
        displaces = spec.kind.remainder(mine, theirs) != mine or spec.kind.remainder(theirs, mine) != theirs
        yield from different or ([(name,)] if displaces else [])
