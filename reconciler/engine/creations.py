"""The targets that do not exist yet, and the imports into existing targets. Begin with `find_absent`."""

import logging
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType

from reconciler.engine.crew import ask_each
from reconciler.engine.imports import ImportState, ask_import
from reconciler.engine.roster import Answer, Answers, ExistingTarget, Roster, has_other_level, missing_group
from reconciler.engine.run import Remark
from reconciler.engine.why import refuse_unless_api, wrong_level_obstacle
from reconciler.errors import ServiceError
from reconciler.manifests import Manifests, Member
from reconciler.manifests.project_sets import Discovered
from reconciler.model.creation import TOP_LEVEL, VISIBILITIES, Creation, Namespace, ToCreate
from reconciler.model.obstacle import Obstacle
from reconciler.model.plan import Plan
from reconciler.model.state import DesiredState, DesiredTarget, Reference
from reconciler.model.targets import Identity, Level, Target

NOT_ASKED = ExistingTarget(0)
"""The answer for a target that was not looked up."""

AbsentTarget = ToCreate | Obstacle
"""The creation of a target that does not exist, or the obstacle that prevents planning it."""


@dataclass(frozen=True, slots=True)
class Existence:
    """The targets that do not exist, and the imports into existing targets.

    Attributes:
        created: the creations, by `Target.identity`.
        obstacles: the targets of which nothing can be planned, by `Target.identity`.
        importing: the targets with a running import.
        omissions: the objects that a finished import has left out, in words, by target.
    """

    created: Mapping[Identity, ToCreate]
    obstacles: Mapping[Identity, Obstacle]
    importing: frozenset[Target] = frozenset()
    omissions: Mapping[Target, str] = field(default_factory=dict)


def find_absent(
    targets: Iterable[DesiredTarget],
    declared_targets: Iterable[DesiredTarget],
    roster: Roster,
    project_ids: Mapping[Reference, int],
    api_url: str = "",
) -> Existence:
    """Look up which of the targets that may be created exist, and the state of imports into them.

    Args:
        targets: what is to be planned.
        declared_targets: all targets that the manifests declare.
        roster: the service.
        project_ids: the numeric IDs of the projects that lists have shown.
        api_url: of the service, to check if no target exists; empty to skip the check.

    Raises:
        ConfigurationError: nothing exists, because the URL is not that of an API.
        ServiceError: an error of `read.ENDS_A_RUN`.
    """
    creating = [target for target in targets if target.creation is not None]
    if not (creating or roster.answers):
        return Existence({}, {})
    names = {target.target.identity for target in creating}
    numbers = {name: project_ids.get(Reference(name[0], str(name[1]))) for name in names}
    listed: dict[Identity, Answer] = {
        name: ExistingTarget(number) for name, number in numbers.items() if number is not None
    }
    answers = roster.find((target.target for target in creating), to_create=names, known_answers=listed)
    # Where nothing exists, the URL may be that of a web page: all targets would be planned as new ones.
    if creating and not any(isinstance(answer, ExistingTarget) for answer in answers.values()):
        refuse_unless_api(roster, api_url)
    imports = _ask_imports(roster, creating)
    declared_targets = tuple(declared_targets)
    absent = absent_targets_of(targets, declared_targets, answers)
    # The service refuses a path that the other level has only when it is created: asked before, so that the plan shows
    # it.
    taken = _ask_other_levels(roster, absent)
    absent = absent_targets_of(targets, declared_targets, answers, taken) if taken else absent
    states = {target: state for target, state in imports.items() if isinstance(state, ImportState)}
    return Existence(
        {name: absent_target for name, absent_target in absent.items() if isinstance(absent_target, ToCreate)},
        {name: absent_target for name, absent_target in absent.items() if isinstance(absent_target, Obstacle)}
        | _not_imported(imports),
        frozenset(target for target, state in states.items() if state.is_running),
        {target: state.omissions for target, state in states.items() if state.omissions},
    )


def with_archived(
    manifests: Manifests, desired: DesiredState, discovered: Discovered, paths: Mapping[Target, str], answers: Answers
) -> tuple[Manifests, DesiredState]:
    """Recompute archived projects that a document creates; sets had treated them as new.

    Lists do not show archived projects, so that only their own records, read since, show that they exist.

    Args:
        manifests: with the members of groups.
        desired: the part of the manifests to plan.
        discovered: the members of groups.
        paths: the full paths of targets that are declared by ID.
        answers: the existing targets.
    """
    archived = tuple(
        Member(str(path), archived=True, id=answer.id)
        for (_, path), answer in answers.items()
        if isinstance(answer, ExistingTarget) and answer.archived
    )
    if not archived:
        return manifests, desired
    if manifests.index.groups:
        listed = {group: discovered[group] for group in manifests.index.groups}
        manifests = manifests.with_discovered({**listed, "": archived}, paths)
    return manifests, as_now_declared(
        desired, manifests, {Target(Level.PROJECT, member.path).identity for member in archived}
    )


def as_now_declared(desired: DesiredState, manifests: Manifests, identities: Collection[Identity]) -> DesiredState:
    """Return the state to plan with some targets, by `Target.identity`, as the manifests declare them by now."""
    now = {
        target.target.identity: target for target in manifests.desired.targets if target.target.identity in identities
    }

    def corrected(declared: DesiredTarget) -> DesiredTarget:
        kinds = {section.kind for section in declared.sections}
        own = now.get(declared.target.identity, declared)
        return replace(own, sections=tuple(section for section in own.sections if section.kind in kinds))

    return replace(desired, targets=tuple(map(corrected, desired.targets)))


def with_imports(plan: Plan, importing: frozenset[Target]) -> Plan:
    """Return a plan that marks the targets with a running import."""
    if not importing:
        return plan
    targets = (replace(target, importing=True) if target.target in importing else target for target in plan.targets)
    return replace(plan, targets=tuple(targets))


def omission_remarks(omissions: Mapping[Target, str]) -> Iterator[Remark]:
    """Yield log messages about objects that imports have left out; the run that began them may have ended before."""
    for target, omitted in omissions.items():
        yield logging.DEBUG, f"the import of {target} has left out {omitted}"
    if omissions:
        others = f" and {len(omissions) - 1} more" if len(omissions) > 1 else ""
        yield (
            logging.INFO,
            f"The import of {next(iter(omissions))}{others} has left something out (--verbose shows what); once you "
            "have checked the project, remove `import` from its manifest",
        )


def _ask_other_levels(roster: Roster, absent: Mapping[Identity, AbsentTarget]) -> dict[Identity, Obstacle]:
    """Look up whether a group has the path of a project to be created, or the reverse.

    The path is free in a group that is to be created itself, and in the namespace of a user, which holds no groups.
    """
    parents = {
        name: roster.answers.get((Level.GROUP, to_create.namespace.path.casefold()))
        for name, to_create in absent.items()
        if isinstance(to_create, ToCreate)
    }
    inside = [
        Target(*name) for name, parent in parents.items() if isinstance(parent, ExistingTarget) and not parent.personal
    ]
    taken = ask_each(has_other_level, inside, roster)
    return {target.identity: wrong_level_obstacle(target) for target, is_taken in taken.items() if is_taken}


def _ask_imports(roster: Roster, creating: Iterable[DesiredTarget]) -> Mapping[Target, ImportState | ServiceError]:
    """Read the state of the imports into projects that exist."""
    imported = {
        target.target: os.environ.get(target.creation.source.token_env, "").strip()
        for target in creating
        if target.creation is not None
        and target.creation.source
        and isinstance(roster.answers[target.target.identity], ExistingTarget)
    }
    # The reason of a failure may repeat the token that the import was begun with.
    tokens = [token for token in imported.values() if token]
    return ask_each(partial(ask_import, secrets=tokens), imported, roster)


def _not_imported(imports: Mapping[Target, ImportState | ServiceError]) -> dict[Identity, Obstacle]:
    """Return the obstacles of targets whose import has failed, or has an unknown state."""
    causes: dict[Identity, Obstacle] = {}
    for target, state in imports.items():
        if isinstance(state, ServiceError):
            causes[target.identity] = Obstacle(target.address, f"whether it has been imported is not known: {state}")
        elif state.obstacle is not None:
            causes[target.identity] = state.obstacle
    return causes


def absent_targets_of(
    targets: Iterable[DesiredTarget],
    declared_targets: Iterable[DesiredTarget],
    answers: Answers,
    taken: Mapping[Identity, Obstacle] = MappingProxyType({}),
) -> dict[Identity, AbsentTarget]:
    """Return the targets that do not exist, by `Target.identity`: each with its creation or an obstacle.

    Args:
        targets: what is to be planned.
        declared_targets: all targets that the manifests declare.
        answers: the existing targets.
        taken: the obstacles of targets whose path belongs to a target of the other level.
    """
    creations = {target.target.identity: target for target in declared_targets if target.creation is not None}
    absent: dict[Identity, AbsentTarget] = {}
    skipped_creations = without_creation(targets)
    wanted = [
        target for target in targets if isinstance(target.target.ref, str) and (target.sections or target.creation)
    ]
    # Groups come before their subgroups and projects, which need the result for the group.
    for target in sorted(wanted, key=lambda target: str(target.target.ref).count("/")):
        absent_target = taken.get(target.target.identity) or _absent_target(
            target, answers, absent, creations, skipped_creations
        )
        if absent_target is not None:
            absent[target.target.identity] = absent_target
    return absent


def _absent_target(
    declared: DesiredTarget,
    answers: Answers,
    absent: Mapping[Identity, AbsentTarget],
    creations: Mapping[Identity, DesiredTarget],
    skipped_creations: Collection[Identity],
) -> AbsentTarget | None:
    """Return the creation or the obstacle of a target; None if it exists."""
    target, creation = declared.target, declared.creation
    group, answer = missing_group(target, answers) or ("", answers.get(target.identity, NOT_ASKED))
    if isinstance(answer, ExistingTarget):
        return None
    if isinstance(answer, ServiceError):
        return Obstacle(target.address, f"cannot be read: {answer}")
    if creation is None and target.identity in creations:
        return missing_target_obstacle(target, creations, skipped_creations)
    if creation is None:
        missing = f"group {group} does not exist yet" if group else "not found, or not visible to this token"
        reason = f"{missing}, and no manifest creates this {target.level}"
        return Obstacle(target.address, reason, "declare `create`, or correct the path")
    namespace = _namespace(target, answers, absent, creations, skipped_creations)
    if isinstance(namespace, Obstacle):
        return namespace
    above = absent.get((Level.GROUP, namespace.path.casefold()))
    of_archive = isinstance(above, ToCreate) and above.creation.archive is not None
    return _invisible(target, creation, namespace, limited=not of_archive) or ToCreate(creation, namespace)


def _invisible(target: Target, creation: Creation, namespace: Namespace, *, limited: bool) -> Obstacle | None:
    """Return an obstacle if the visibility of a new target is unknown, or refused by the service.

    Args:
        target: the new target.
        creation: its declaration.
        namespace: the group it is created in.
        limited: whether the visibility of the namespace is known to be the upper bound.
    """
    wanted, greatest = creation.visibility, namespace.visibility
    if creation.source is not None or creation.archive is not None or not namespace.path:
        return None
    if wanted is None and greatest is None:
        reason = f"the service does not show the visibility of group {namespace.path}"
        return Obstacle(target.address, reason, "declare `visibility`")
    # GitLab refuses a group that is more visible than its parent, and lowers such a project without a word (deployed
    # behaviour, sections g 11 and g 15): for a project, only the apply shows it.
    refuses = target.level is Level.GROUP and limited and wanted is not None and greatest is not None
    if refuses and VISIBILITIES.index(wanted) > VISIBILITIES.index(greatest):
        reason = f"the service refuses `{wanted}` in group {namespace.path}, which is {greatest}"
        return Obstacle(target.address, reason, "correct `visibility`, or leave it out")
    return None


def _namespace(
    target: Target,
    answers: Answers,
    absent: Mapping[Identity, AbsentTarget],
    creations: Mapping[Identity, DesiredTarget],
    skipped_creations: Collection[Identity],
) -> Namespace | Obstacle:
    """Return the namespace that a target is created in, or the obstacle to creating it."""
    path = target.parent
    if not path:
        return TOP_LEVEL
    parent = Target(Level.GROUP, path)
    match answers.get(parent.identity), absent.get(parent.identity):
        case ExistingTarget() as existing_parent, _:
            return _in_existing(target, existing_parent)
        case _, ToCreate(creation=above, namespace=namespace):
            # An archive brings its own visibility, which is unknown until it arrives: private never shows too much.
            return Namespace(path, None, above.visibility or ("private" if above.archive else namespace.visibility))
        case _, Obstacle():
            return Obstacle(target.address, f"{parent} cannot be created")
    return missing_target_obstacle(parent, creations, skipped_creations)


def _in_existing(target: Target, existing_parent: ExistingTarget) -> Namespace | Obstacle:
    """Return an existing namespace, or the obstacle to creating the target in it."""
    path = target.parent
    if existing_parent.moved_to:
        return Obstacle(
            target.address, f"group {path} has moved to {existing_parent.moved_to}", "use its new path in the manifest"
        )
    if existing_parent.personal and target.level is Level.GROUP:
        reason = f"{path} is the namespace of a user, which holds no groups"
        return Obstacle(target.address, reason, "correct the path")
    return Namespace(path, existing_parent.id, existing_parent.visibility)


def without_creation(targets: Iterable[DesiredTarget]) -> frozenset[Identity]:
    """Return the targets that `--section` leaves without sections and without their creation."""
    return frozenset(target.target.identity for target in targets if not target.sections and target.creation is None)


def missing_target_obstacle(
    target: Target, creations: Mapping[Identity, DesiredTarget], skipped_creations: Collection[Identity]
) -> Obstacle:
    """Return the obstacle of a missing target that some document may create."""
    declared = creations.get(target.identity)
    if declared is not None:
        by_section = target.identity in skipped_creations
        narrowing, remedy = (
            ("`--section`", "run without `--section`")
            if by_section
            else ("this run", f"include {target} in the run, or plan again once it exists")
        )
        reason = f"{target} does not exist, and {narrowing} leaves out its creation ({declared.origin})"
        return Obstacle(target.address, reason, remedy)
    return Obstacle(
        target.address,
        f"{target} does not exist, or is not visible to this token, and this run does not create it",
        f"declare {target} with `create`, or correct the path",
    )
