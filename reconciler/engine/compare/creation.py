"""The planning of targets that do not exist yet: `as_created`, and the targets that a change `needs`. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from reconciler.model.creation import ToCreate, creation_of
from reconciler.model.endpoints import OWNER, Collection
from reconciler.model.item import Change, Finding, Item, Update
from reconciler.model.kind import Kinds
from reconciler.model.obstacle import Obstacle
from reconciler.model.plan import Plan, TargetPlan
from reconciler.model.protocols import Json
from reconciler.model.resource import LiveRecord, Objects
from reconciler.model.state import DesiredState, DesiredTarget, LivePart, PartAddress
from reconciler.model.targets import Identity, Level, Target


def needs(change: Change) -> Iterator[str]:
    """Yield the targets that must exist before a change can be made, such as `group acme/new-team`, in lower case.

    These are its own target, unless it creates that, the groups above, and those whose IDs its requests refer to.
    """
    target = change.address.target
    others = [name for request in change.requests for name in references(request.body)]
    for name in [str(target), *others]:
        # A creation does not need its own target.
        if name != str(target) or change.address.section:
            yield name.casefold()
        _, _, path = name.partition(" ")
        while path := path.rpartition("/")[0]:
            yield f"group {path}".casefold()


def references(body: Json) -> Iterator[str]:
    """Yield the targets whose IDs a body still lacks, such as `group acme/new-team`."""
    match body:
        case {"id_of": str() as name}:
            yield name
        case dict():
            yield from (name for value in body.values() for name in references(value))
        case list():
            yield from (name for value in body for name in references(value))


def owners(creation_body: Mapping[str, Json] | None) -> Iterator[str]:
    """Yield the groups, such as `group acme`, whose objects a body names before the same run has created them."""
    for value in (creation_body or {}).values():
        if isinstance(value, list):
            yield from (str(entry[OWNER]) for entry in value if isinstance(entry, dict) and OWNER in entry)


def variables_of(planned: TargetPlan) -> Iterator[str]:
    """Yield the environment variables that the creation of a target reads."""
    imports = planned.creation.after.get("import", {}) if planned.creation else {}
    yield from (fields["token_env"] for fields in imports.values())


def existing(desired: DesiredState, absent: Mapping[Identity, ToCreate | Obstacle]) -> DesiredState:
    """Return the desired state without targets that do not exist."""
    return replace(desired, targets=tuple(target for target in desired.targets if target.target.identity not in absent))


def empty_parts(targets: Iterable[DesiredTarget], kinds: Kinds) -> Iterator[tuple[PartAddress, LivePart]]:
    """Yield the declared parts of targets that do not exist: no objects, and settings without a known field."""
    for target in targets:
        for section in target.sections:
            for name in section.wanted:
                part = kinds[section.kind].part(name)
                nothing = Objects() if isinstance(part, Collection) else LiveRecord(part.model.model_construct())
                yield (target.target, section.kind, name), nothing


def as_created(planned: TargetPlan, to_create: ToCreate) -> TargetPlan:
    """Return the plan of a target with its creation; its sections were planned against nothing."""
    creation = creation_of(planned.target, to_create.creation, to_create.namespace)
    return replace(
        planned,
        sections={"": 0, **planned.sections},
        items=(creation, *map(_unread, planned.items)),
        importing=to_create.creation.source is not None,
    )


def from_archives(
    targets: Iterable[DesiredTarget], absent: Mapping[Identity, ToCreate | Obstacle]
) -> dict[Identity, str]:
    """Return the paths of existing groups that documents create from archives, by `Target.identity`.

    The service never reports whether an archive has arrived.
    """
    return {
        target.target.identity: str(target.target.ref)
        for target in targets
        if target.creation is not None and target.creation.archive is not None and target.target.identity not in absent
    }


def archive_containing(target: Target, archives: Mapping[Identity, str]) -> str:
    """Return the nearest group from an archive that contains a group, or is it; empty if there is none."""
    above = [(Level.GROUP, path) for path in reversed(target.groups_above)]
    return next((archives[identity] for identity in [target.identity, *above] if identity in archives), "")


def with_arrivals(plan: Plan, archives: Mapping[Identity, str]) -> Plan:
    """Return a plan that marks the groups in which the archives of earlier runs may still arrive.

    An archive that finds a subgroup or a milestone of the same name leaves out its own, so that nothing is created
    beside it.
    """

    def arriving(planned: TargetPlan) -> str:
        if planned.target.level is not Level.GROUP or all(change.action != "create" for change in planned.changes):
            return ""
        return archive_containing(planned.target, archives)

    return replace(plan, targets=tuple(replace(target, arriving=arriving(target)) for target in plan.targets))


def _unread(item: Item) -> Item:
    """Return an item without former values, since its target does not exist."""
    if isinstance(item, Update):
        return replace(item, before={})
    if isinstance(item, Finding) and item.code == "excepted":
        return replace(item, data={**item.data, "before": {}})
    return item
