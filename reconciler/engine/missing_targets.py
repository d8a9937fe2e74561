"""The stage that finds out which targets do not exist yet, and how imports into others are going."""

import logging
import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType

from reconciler.engine.causes import refuse_unless_api, the_other
from reconciler.engine.crew import ask_each
from reconciler.engine.existence import (
    Answer,
    Answers,
    There,
    find_existing,
    obstacle,
)
from reconciler.engine.imports import ImportState, ask_import
from reconciler.engine.records import is_the_other
from reconciler.engine.survey import Added, FleetSurvey, Survey
from reconciler.errors import ServiceError
from reconciler.manifests import Member
from reconciler.model.creation import TOP_LEVEL, VISIBILITIES, Creation, Namespace, ToCreate
from reconciler.model.obstacle import Obstacle
from reconciler.model.state import DesiredTarget, LiveState, Lookup, Reference
from reconciler.model.targets import Identity, Level, Target

LOG = logging.getLogger(__name__)

NO_OBSTACLES: Mapping[Identity, Obstacle] = MappingProxyType({})

NOT_ASKED = There(0)
"""The answer about a target that was not asked for."""


def missing_targets(run: Survey) -> Added:
    """Ask which targets are there, of those to be planned that may be created; and how imports into them are going.

    Raises:
        ConfigurationError: nothing is found, because the URL is not that of an API.
        ServiceError: one that `read.ENDS_A_RUN`.
    """
    creating = [target for target in run.desired.targets if target.creation is not None]
    names = {target.target.identity for target in creating}
    numbers = {name: run.live.ids.get(Reference(name[0], str(name[1]))) for name in names}
    listed: dict[Identity, Answer] = {name: There(id_) for name, id_ in numbers.items() if isinstance(id_, int)}
    known = {**listed, **run.answers}
    answers = find_existing((target.target for target in creating), run.reader, known, created=names)
    if creating and not any(isinstance(answer, There) for answer in answers.values()):
        refuse_unless_api(run.reader, run.api_url)
    imports = _ask_imports(run, creating, answers)
    _tell_left_out(imports)
    absent = find_absent(run.desired.targets, run.whole.targets, answers)
    taken = _ask_others(run, absent, answers)
    absent = find_absent(run.desired.targets, run.whole.targets, answers, taken) if taken else absent
    there = {name: answer for name, answer in answers.items() if isinstance(answer, There)}
    ids = {Reference(level, str(path)): place.id for (level, path), place in there.items() if not place.personal}
    running = (target for target, state in imports.items() if isinstance(state, ImportState) and state.is_running)
    return {
        "answers": answers,
        "live": replace(run.live, absent=absent | _not_imported(imports), ids={**run.live.ids, **ids}),
        "importing": frozenset(running),
    }


def archived_projects(run: FleetSurvey) -> Added:
    """Compose archived projects again that documents create: sets select them as if they were to be created.

    Before they were asked for, nobody knew that they are archived, since no list shows them.
    """
    archived = tuple(
        Member(str(path), archived=True, id=answer.id)
        for (_, path), answer in run.answers.items()
        if isinstance(answer, There) and answer.archived
    )
    if not archived:
        return {}
    manifests = run.manifests
    if manifests.index.groups:
        listed = {group: run.discovery.groups[group] for group in manifests.index.groups}
        manifests = manifests.with_discovered({**listed, "": archived}, run.discovery.paths)
    names = {Target(Level.PROJECT, member.path).identity for member in archived}
    again = {target.target.identity: target for target in manifests.desired.targets if target.target.identity in names}

    def corrected(declared: DesiredTarget) -> DesiredTarget:
        kinds = {section.kind for section in declared.sections}
        own = again.get(declared.target.identity, declared)
        return replace(own, sections=tuple(section for section in own.sections if section.kind in kinds))

    targets = tuple(map(corrected, run.desired.targets))
    return {"manifests": manifests, "desired": replace(run.desired, targets=targets)}


def _ask_others(
    run: Survey, absent: Mapping[Identity, ToCreate | Obstacle], answers: Answers
) -> dict[Identity, Obstacle]:
    """Ask whether a group has the path of a project that is to be created, or a project that of a group.

    Nobody can have it in a group that is to be created itself; the namespace of a user holds no groups.
    """
    parents = {
        name: answers.get((Level.GROUP, to_create.namespace.path.casefold()))
        for name, to_create in absent.items()
        if isinstance(to_create, ToCreate)
    }
    inside = [Target(*name) for name, parent in parents.items() if isinstance(parent, There) and not parent.personal]
    taken = ask_each(is_the_other, inside, run.reader)
    return {target.identity: the_other(target) for target, is_taken in taken.items() if is_taken}


def _ask_imports(
    run: Survey, creating: Iterable[DesiredTarget], answers: Answers
) -> Mapping[Target, ImportState | ServiceError]:
    """Ask how the imports into the projects that are there are going."""
    imported = {
        target.target: os.environ.get(target.creation.source.token_env, "").strip()
        for target in creating
        if target.creation is not None and target.creation.source and isinstance(answers[target.target.identity], There)
    }
    # The reason of a failure may repeat the token that the import was begun with.
    tokens = [token for token in imported.values() if token]
    return ask_each(partial(ask_import, secrets=tokens), imported, run.reader)


def _not_imported(imports: Mapping[Target, ImportState | ServiceError]) -> dict[Identity, ToCreate | Obstacle]:
    """Return the targets of which nothing is planned: their imports have failed, or nobody knows."""
    causes: dict[Identity, ToCreate | Obstacle] = {}
    for target, state in imports.items():
        if isinstance(state, ServiceError):
            causes[target.identity] = Obstacle(target.address, f"whether it has been imported is not known: {state}")
        elif state.obstacle is not None:
            causes[target.identity] = state.obstacle
    return causes


def _tell_left_out(imports: Mapping[Target, ImportState | ServiceError]) -> None:
    """Tell which imports have finished without some objects: the run that began one may have ended before."""
    lossy = [
        (target, state.left_out)
        for target, state in imports.items()
        if isinstance(state, ImportState) and state.left_out
    ]
    for target, left_out in lossy:
        LOG.debug("the import of %s has left out %s", target, left_out)
    if lossy:
        others = f" and {len(lossy) - 1} more" if len(lossy) > 1 else ""
        LOG.info(
            "The import of %s%s has left something out (--verbose shows what); once you have checked the project, "
            "remove `import` from its manifest",
            lossy[0][0],
            others,
        )


def look_up_absent(run: Survey, live: LiveState, missing: Iterable[Lookup]) -> dict[Reference, int | Obstacle]:
    """Return the IDs of targets that are created by some manifest or below a new group; or that they do not exist.

    Args:
        run: what is wanted.
        live: tells what does not exist.
        missing: what is to be looked up; the rest of it is left to others.

    Raises:
        ServiceError: one that `read.ENDS_A_RUN`.
    """
    creations = {target.target.identity: target for target in run.whole.targets if target.creation is not None}
    ids: dict[Reference, int | Obstacle] = {}
    asked: dict[Identity, Reference] = {}
    references = [lookup for lookup in missing if isinstance(lookup, Reference)] if creations else []
    spared = _spared_by_section(run.desired.targets) if references else frozenset()
    for reference in sorted(references, key=lambda reference: (reference.level, reference.path)):
        target = Target(reference.level, reference.path)
        standing = live.absent.get(target.identity)
        group = next((above for above in target.groups_above if live.created(Level.GROUP, above)), None)
        if isinstance(standing, Obstacle):
            ids[reference] = standing
        elif target.identity in creations and group is None:
            asked[target.identity] = reference
        elif group is not None:
            ids[reference] = _missing(target, creations, spared)
    doubtful = [creations[name].target for name in asked]
    for name, answer in find_existing(doubtful, run.reader, {}, created=()).items():
        match answer:
            case There(id=number):
                ids[asked[name]] = number
            case None:
                ids[asked[name]] = _missing(creations[name].target, creations, spared)
            case error:
                ids[asked[name]] = Obstacle(creations[name].target.address, f"cannot be read: {error}")
    return ids


def find_absent(
    targets: Iterable[DesiredTarget],
    whole: Iterable[DesiredTarget],
    answers: Answers,
    taken: Mapping[Identity, Obstacle] = NO_OBSTACLES,
) -> dict[Identity, ToCreate | Obstacle]:
    """Return by `Target.identity` the targets of which nothing can be read: to be created, or a problem.

    Args:
        targets: what is to be planned.
        whole: all targets that the manifests declare.
        answers: which targets are there.
        taken: the targets that cannot be created, since a group or project has the path.
    """
    if not answers:
        return {}
    creations = {target.target.identity: target for target in whole if target.creation is not None}
    absent: dict[Identity, ToCreate | Obstacle] = {}
    targets = tuple(targets)
    spared = _spared_by_section(targets)
    wanted = [
        target for target in targets if isinstance(target.target.ref, str) and (target.sections or target.creation)
    ]
    for target in sorted(wanted, key=lambda target: str(target.target.ref).count("/")):
        standing = taken.get(target.target.identity) or _standing(target, answers, absent, creations, spared)
        if standing is not None:
            absent[target.target.identity] = standing
    return absent


def _standing(
    declared: DesiredTarget,
    answers: Answers,
    absent: Mapping[Identity, ToCreate | Obstacle],
    creations: Mapping[Identity, DesiredTarget],
    spared: Collection[Identity],
) -> ToCreate | Obstacle | None:
    """Return how a target is to be created, or why it cannot be planned; None where it is there."""
    target, creation = declared.target, declared.creation
    group, answer = obstacle(target, answers) or ("", answers.get(target.identity, NOT_ASKED))
    if isinstance(answer, There):
        return None
    if isinstance(answer, ServiceError):
        return Obstacle(target.address, f"cannot be read: {answer}")
    if creation is None and target.identity in creations:
        return _missing(target, creations, spared)
    if creation is None:
        missing = f"group {group} does not exist yet" if group else "not found, or not visible to this token"
        reason = f"{missing}, and no manifest creates this {target.level}"
        return Obstacle(target.address, reason, "declare `create`, or correct the path")
    namespace = _namespace(target, answers, absent, creations, spared)
    if isinstance(namespace, Obstacle):
        return namespace
    above = absent.get((Level.GROUP, namespace.path.casefold()))
    of_archive = isinstance(above, ToCreate) and above.creation.archive is not None
    return _invisible(target, creation, namespace, limited=not of_archive) or ToCreate(creation, namespace)


def _invisible(target: Target, creation: Creation, namespace: Namespace, *, limited: bool) -> Obstacle | None:
    """Return that a visibility is not known, or that the service refuses it.

    Args:
        target: what is created.
        creation: how.
        namespace: where.
        limited: whether the visibility of the namespace is known to be the greatest there.
    """
    wanted, greatest = creation.visibility, namespace.visibility
    if creation.source is not None or creation.archive is not None or not namespace.path:
        return None
    if wanted is None and greatest is None:
        reason = f"the service does not show the visibility of group {namespace.path}"
        return Obstacle(target.address, reason, "declare `visibility`")
    refuses = target.level is Level.GROUP and limited and wanted is not None and greatest is not None
    if refuses and VISIBILITIES.index(wanted) > VISIBILITIES.index(greatest):
        reason = f"the service refuses `{wanted}` in group {namespace.path}, which is {greatest}"
        return Obstacle(target.address, reason, "correct `visibility`, or leave it out")
    return None


def _namespace(
    target: Target,
    answers: Answers,
    absent: Mapping[Identity, ToCreate | Obstacle],
    creations: Mapping[Identity, DesiredTarget],
    spared: Collection[Identity],
) -> Namespace | Obstacle:
    """Return where a target is created, or why it cannot be."""
    path = target.parent
    if not path:
        return TOP_LEVEL
    parent = Target(Level.GROUP, path)
    match answers.get(parent.identity), absent.get(parent.identity):
        case There() as there, _:
            return _in_existing(target, there)
        case _, ToCreate(creation=above, namespace=namespace):
            # An archive brings a visibility of its own, which nobody knows yet: private is never too much.
            return Namespace(path, None, above.visibility or ("private" if above.archive else namespace.visibility))
        case _, Obstacle():
            return Obstacle(target.address, f"{parent} cannot be created")
    return _missing(parent, creations, spared)


def _in_existing(target: Target, there: There) -> Namespace | Obstacle:
    """Return a namespace that exists, or why the target cannot be created in it."""
    path = target.parent
    if there.moved_to:
        return Obstacle(
            target.address, f"group {path} has moved to {there.moved_to}", "use its new path in the manifest"
        )
    if there.personal and target.level is Level.GROUP:
        reason = f"{path} is the namespace of a user, which holds no groups"
        return Obstacle(target.address, reason, "correct the path")
    return Namespace(path, there.id, there.visibility)


def _spared_by_section(targets: Iterable[DesiredTarget]) -> frozenset[Identity]:
    """Return the targets of which `--section` leaves nothing, not even the creation; other narrowings drop targets."""
    return frozenset(target.target.identity for target in targets if not target.sections and target.creation is None)


def _missing(target: Target, creations: Mapping[Identity, DesiredTarget], spared: Collection[Identity]) -> Obstacle:
    """Return that a target is missing, which some document may create."""
    declared = creations.get(target.identity)
    if declared is not None:
        by_section = target.identity in spared
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
