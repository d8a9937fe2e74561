"""What an apply will record in the inventory, as a saved plan keeps it."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from typing import Annotated

from pydantic import PlainSerializer, PlainValidator, TypeAdapter, ValidationInfo

from reconciler.errors import InventoryUnreadable, PlanRefused
from reconciler.model.inventory import ObjectLine, inventory_text, read_inventory
from reconciler.model.protocols import Json
from reconciler.model.targets import Key
from reconciler.model.upkeep import Applied, PartAfter, Prospect, TargetAfter


@dataclass(frozen=True, slots=True)
class KeptName:
    """An object that is wanted."""

    name: Key
    """Its name."""
    ids: tuple[int, ...]
    """The IDs of the live objects that it stands for."""


@dataclass(frozen=True, slots=True)
class KeptPart:
    """A declared collection, as it was read."""

    target: str
    """Level and numeric ID of the target."""
    section: str
    """The section's name."""
    part: str
    """Which of the section's endpoints; the section's name if there is only one."""
    wanted: tuple[KeptName, ...]
    """The objects that are wanted."""
    listed: tuple[int, ...] | None
    """The IDs of all live objects; null where the list is not whole."""


@dataclass(frozen=True, slots=True)
class KeptTarget:
    """A target, as it was read."""

    target: str
    """Level and numeric ID."""
    path: str
    """Its full path; empty for the instance and the user."""
    digest: str
    """The digest of its effective spec."""
    again: date | None
    """The first day (UTC) on which time alone changes what is wanted; null if none does."""
    done: bool
    """Whether nothing is missing but the changes of the plan."""


@dataclass(frozen=True, slots=True)
class KeptObject:
    """An object of the inventory that the plan deletes, since it is no longer declared."""

    target: str
    """Level and numeric ID of the target."""
    section: str
    """The section's name."""
    part: str
    """Which of the section's endpoints; the section's name if there is only one."""
    name: Key
    """Its name when it was declared."""
    id: int
    """Its own ID."""
    at: str
    """The commit that declared it."""


@dataclass(frozen=True, slots=True)
class KeptProspect:
    """The inventory after an apply of the plan, as far as it is known before its first change."""

    commit: str
    """The commit of the manifests; empty if they are not as committed."""
    whole: bool
    """Whether the plan is about all that the manifests declare, with the inputs of `reconciler.yaml`."""
    backwards: bool
    """Whether newer manifests were applied before."""
    declared: dict[str, tuple[str, ...]]
    """By target, all collections that the manifests declare, as `section/part`."""
    unknown: tuple[str, ...]
    """The targets of which that is not known."""
    released: dict[str, tuple[str, ...]]
    """By target, the sections that `unmanaged` leaves alone."""
    targets: tuple[KeptTarget, ...]
    """The selected targets."""
    parts: tuple[KeptPart, ...]
    """Their collections that were read."""
    absences: tuple[KeptObject, ...]
    """The objects that the plan deletes, since they are no longer declared."""
    seen: tuple[str, ...]
    """The lines of the inventory that the plan was made from: an apply takes all other lines for newer ones."""


def _kept(prospect: Prospect) -> KeptProspect:
    run = prospect.run
    return KeptProspect(
        run.commit,
        run.whole,
        run.backwards,
        _by_target((target, f"{section}/{part}") for target, section, part in run.declared),
        tuple(sorted(run.unknown)),
        _by_target(run.released),
        tuple(KeptTarget(after.target, after.path, after.digest, after.again, after.done) for after in run.targets),
        tuple(
            KeptPart(
                part.target,
                part.section,
                part.part,
                tuple(KeptName(name, tuple(sorted(numbers))) for name, numbers in part.wanted.items()),
                None if part.listed is None else tuple(sorted(part.listed)),
            )
            for part in run.parts
        ),
        tuple(
            KeptObject(line.target, line.section, line.part, line.name, line.id, line.at) for line in prospect.absences
        ),
        tuple(inventory_text(prospect.seen).removesuffix("\n").split("\n")),
    )


def _by_target(pairs: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    names: dict[str, tuple[str, ...]] = {}
    for target, name in sorted(pairs):
        names[target] = (*names.get(target, ()), name)
    return names


def _from_kept(content: Json, info: ValidationInfo) -> Prospect:
    """Return what `_kept` turned into JSON; the context of the validation is all kinds."""
    kept = TypeAdapter(KeptProspect).validate_python(content)
    try:
        seen, _ = read_inventory("\n".join(kept.seen), info.context or {})
    except InventoryUnreadable as error:
        raise PlanRefused(f"the saved plan is damaged: the inventory in it cannot be read: {error.reason}") from error
    run = Applied(
        kept.commit,
        tuple(
            PartAfter(
                part.target,
                part.section,
                part.part,
                {wanted.name: wanted.ids for wanted in part.wanted},
                listed=part.listed,
            )
            for part in kept.parts
        ),
        tuple(
            TargetAfter(target.target, target.path, target.digest, target.again, target.done) for target in kept.targets
        ),
        kept.whole,
        frozenset(
            (target, section, part)
            for target, names in kept.declared.items()
            for section, _, part in (name.partition("/") for name in names)
        ),
        frozenset(kept.unknown),
        frozenset((target, section) for target, sections in kept.released.items() for section in sections),
        kept.backwards,
    )
    absences = tuple(
        ObjectLine(line.target, line.section, line.part, line.name, line.id, line.at) for line in kept.absences
    )
    return Prospect(run, seen, absences)


SavedProspect = Annotated[Prospect, PlainValidator(_from_kept), PlainSerializer(_kept, return_type=KeptProspect)]
