"""What does not exist yet: asked before groups are listed, and for what is to be planned. Nothing here can write."""

import logging
import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

from reconciler.errors import ServiceError
from reconciler.fleet.causes import refuse_unless_api
from reconciler.live.existence import (
    Answer,
    Answers,
    There,
    find_existing,
    obstacle,
)
from reconciler.live.imports import ImportState, ask_import
from reconciler.live.read import ask_each
from reconciler.manifests import Member
from reconciler.manifests.project_sets import NO_SUCH_GROUP
from reconciler.model.creation import TOP_LEVEL, VISIBILITIES, Creation, Namespace, ToCreate
from reconciler.model.obstacle import Obstacle
from reconciler.model.protocols import Concurrency, Reader
from reconciler.model.state import DesiredState, DesiredTarget, LiveState, Lookup, Reference
from reconciler.model.targets import Identity, Level, Target

LOG = logging.getLogger(__name__)

HERE = There(0)
"""The answer about a target that was not asked for."""


@dataclass(frozen=True, slots=True)
class Absent:
    """What is known of the targets that manifests may create.

    Attributes:
        targets: see `LiveState.absent`.
        ids: the numeric IDs of those that are there, and of what others are in.
        importing: those that an import is filling at the moment.
        archived: the projects among them that are there and archived, which lists of projects need not show.
    """

    targets: Mapping[Identity, ToCreate | Obstacle] = field(default_factory=dict)
    ids: Mapping[Reference, int] = field(default_factory=dict)
    importing: frozenset[Target] = frozenset()
    archived: tuple[Member, ...] = ()


def find_groups(
    groups: Collection[str],
    creating: Iterable[DesiredTarget],
    selected: Iterable[DesiredTarget],
    reader: Reader,
    concurrency: Concurrency,
) -> Answers:
    """Ask which groups are there before they are listed, as far as the manifests create them or groups above them.

    Args:
        groups: to be listed.
        creating: the targets that the manifests create.
        selected: those of them that the run is about: nothing else above the groups is asked for.
        reader: the service.
        concurrency: how many requests at once.

    Raises:
        ServiceError: one that `live.ENDS_A_RUN`.
    """
    listed = {Target(Level.GROUP, group).identity for group in groups}
    above = {(Level.GROUP, path) for group in groups for path in Target(Level.GROUP, group).groups_above}
    needed = {each.target.identity for each in selected}
    around = listed | (above & needed)
    wanted = [each.target for each in creating if each.target.identity in around]
    return find_existing(wanted, reader, concurrency, {}, created=needed)


def missing_groups(
    groups: Iterable[str], creating: Iterable[DesiredTarget], found: Answers
) -> dict[str, tuple[()] | Obstacle]:
    """Return the groups that cannot be listed since they do not exist: no projects where the manifests create one."""
    created = {each.target.identity for each in creating}
    missing: dict[str, tuple[()] | Obstacle] = {}
    for group in groups:
        target = Target(Level.GROUP, group)
        if found.get(target.identity, _above(target, found)) is None:
            reason = f"group {group} does not exist yet, and no manifest creates it"
            obstacle = Obstacle(target.address, reason, cause=NO_SUCH_GROUP)
            missing[group] = () if target.identity in created else obstacle
    return missing


def _above(target: Target, found: Answers) -> There | ServiceError | None:
    """Return the answer about the groups above a target."""
    above = obstacle(target, found)
    return HERE if above is None else above[1]


def look_for(
    desired: DesiredState,
    whole: DesiredState,
    reader: Reader,
    concurrency: Concurrency,
    *,
    ids: Mapping[Reference, int],
    known: Answers,
    api_url: str,
) -> Absent:
    """Ask which targets are there, of those to be planned that may be created; and how imports into them are going.

    Args:
        desired: the targets of this plan.
        whole: all that the manifests declare.
        reader: the service.
        concurrency: how many requests at once.
        ids: the numeric IDs of projects that were listed, and so are there.
        known: the answers so far.
        api_url: of the service, to be doubted where nothing at all is found there.

    Raises:
        ConfigurationError: nothing is found, because the URL is not that of an API.
        ServiceError: one that `live.ENDS_A_RUN`.
    """
    creating = [each for each in desired.targets if each.creation is not None]
    numbers = {(reference.level, reference.path): number for reference, number in ids.items()} if creating else {}
    names = {each.target.identity for each in creating}
    listed: dict[Identity, Answer] = {name: There(numbers[name]) for name in names if name in numbers}
    found = find_existing((each.target for each in creating), reader, concurrency, {**listed, **known}, created=names)
    if creating and not any(isinstance(answer, There) for answer in found.values()):
        refuse_unless_api(reader, api_url)
    imports = _ask_imports(creating, found, reader, concurrency)
    _tell_left_out(imports)
    return Absent(
        find_absent(desired.targets, whole.targets, found) | _not_imported(imports),
        {
            Reference(level, str(path)): answer.id
            for (level, path), answer in found.items()
            if isinstance(answer, There) and not answer.personal
        },
        frozenset(target for target, state in imports.items() if isinstance(state, ImportState) and state.is_running),
        tuple(
            Member(str(path), archived=True, id=answer.id)
            for (_, path), answer in found.items()
            if isinstance(answer, There) and answer.archived
        ),
    )


def _ask_imports(
    creating: Iterable[DesiredTarget], found: Answers, reader: Reader, concurrency: Concurrency
) -> Mapping[Target, ImportState | ServiceError]:
    """Ask how the imports into the projects that are there are going."""
    imported = {
        each.target: os.environ.get(each.creation.source.token_env, "").strip()
        for each in creating
        if each.creation is not None and each.creation.source and isinstance(found[each.target.identity], There)
    }
    # The reason of a failure may repeat the token that the import was begun with.
    tokens = [token for token in imported.values() if token]
    return ask_each(partial(ask_import, reader=reader, secrets=tokens), imported, concurrency)


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
    found = [
        (target, state.left_out)
        for target, state in imports.items()
        if isinstance(state, ImportState) and state.left_out
    ]
    for target, left_out in found:
        LOG.debug("the import of %s has left out %s", target, left_out)
    if found:
        others = f" and {len(found) - 1} more" if len(found) > 1 else ""
        LOG.info(
            "The import of %s%s has left something out (--verbose shows what); once you have checked the project, "
            "remove `import` from its manifest",
            found[0][0],
            others,
        )


def look_up_absent(
    missing: Iterable[Lookup],
    live: LiveState,
    reader: Reader,
    concurrency: Concurrency,
    *,
    targets: Iterable[DesiredTarget],
    whole: Iterable[DesiredTarget],
) -> dict[Reference, int | Obstacle]:
    """Return the IDs of targets that are created by some manifest or below a new group; or that they do not exist.

    Args:
        missing: what is to be looked up; the rest of it is left to others.
        live: tells what does not exist.
        reader: the service.
        concurrency: how many requests at once.
        targets: what is to be planned.
        whole: all targets that the manifests declare.

    Raises:
        ServiceError: one that `live.ENDS_A_RUN`.
    """
    creations = {each.target.identity: each for each in whole if each.creation is not None}
    found: dict[Reference, int | Obstacle] = {}
    asked: dict[Identity, Reference] = {}
    references = [each for each in missing if isinstance(each, Reference)] if creations else []
    spared = _spared_by_section(targets) if references else frozenset()
    for each in sorted(references, key=lambda reference: (reference.level, reference.path)):
        target = Target(each.level, each.path)
        standing = live.absent.get(target.identity)
        group = next((above for above in target.groups_above if live.created(Level.GROUP, above)), None)
        if isinstance(standing, Obstacle):
            found[each] = standing
        elif target.identity in creations and group is None:
            asked[target.identity] = each
        elif group is not None:
            found[each] = _missing(target, creations, spared)
    doubtful = [creations[name].target for name in asked]
    for name, answer in find_existing(doubtful, reader, concurrency, {}, created=()).items():
        match answer:
            case There(id=number):
                found[asked[name]] = number
            case None:
                found[asked[name]] = _missing(creations[name].target, creations, spared)
            case error:
                found[asked[name]] = Obstacle(creations[name].target.address, f"cannot be read: {error}")
    return found


def find_absent(
    targets: Iterable[DesiredTarget], whole: Iterable[DesiredTarget], found: Answers
) -> dict[Identity, ToCreate | Obstacle]:
    """Return by `Target.identity` the targets of which nothing can be read: to be created, or a problem.

    Args:
        targets: what is to be planned.
        whole: all targets that the manifests declare.
        found: which targets are there.
    """
    if not found:
        return {}
    creations = {each.target.identity: each for each in whole if each.creation is not None}
    absent: dict[Identity, ToCreate | Obstacle] = {}
    targets = tuple(targets)
    spared = _spared_by_section(targets)
    wanted = [each for each in targets if isinstance(each.target.ref, str) and (each.sections or each.creation)]
    for each in sorted(wanted, key=lambda each: str(each.target.ref).count("/")):
        standing = _standing(each, found, absent, creations, spared)
        if standing is not None:
            absent[each.target.identity] = standing
    return absent


def _standing(
    declared: DesiredTarget,
    found: Answers,
    absent: Mapping[Identity, ToCreate | Obstacle],
    creations: Mapping[Identity, DesiredTarget],
    spared: Collection[Identity],
) -> ToCreate | Obstacle | None:
    """Return how a target is to be created, or why it cannot be planned; None where it is there."""
    target, creation = declared.target, declared.creation
    group, answer = obstacle(target, found) or ("", found.get(target.identity, HERE))
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
    namespace = _namespace(target, found, absent, creations, spared)
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
    found: Answers,
    absent: Mapping[Identity, ToCreate | Obstacle],
    creations: Mapping[Identity, DesiredTarget],
    spared: Collection[Identity],
) -> Namespace | Obstacle:
    """Return where a target is created, or why it cannot be."""
    path = target.parent
    if not path:
        return TOP_LEVEL
    parent = Target(Level.GROUP, path)
    match found.get(parent.identity), absent.get(parent.identity):
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
    return frozenset(each.target.identity for each in targets if not each.sections and each.creation is None)


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
