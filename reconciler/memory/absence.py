"""The inventory in planning: which of its objects are no longer declared, and which were renamed by hand. Pure.

The list finds, and history proves: nothing is deleted, and no name is given back, whose declaration no commit below
HEAD shows.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from types import MappingProxyType

from reconciler.memory.inventory import Inventory, ObjectKey, ObjectLine
from reconciler.model import endpoints
from reconciler.model.kind import Kinds, Part
from reconciler.model.renames import circles, former_names
from reconciler.model.resource import Objects, Resource
from reconciler.model.state import DesiredState, DesiredTarget, LivePart, Section
from reconciler.model.targets import Identity, Key
from reconciler.model.wording import counted

SHORT_SHA_LENGTH = 7
"""Characters of a commit's ID in messages."""

RENAMED = "the service shows the object by another name"
SEVERAL = "the inventory lists several of that name"
UNLISTED = "the section could not be listed whole"
WITHHELD = "apply will not delete "
UNCOMMITTED = "the manifests that declared it were never committed"
OTHER_BRANCH = "it was declared as that of the default branch, which is another one now"

NO_IDS: Mapping[Key, int] = MappingProxyType({})
NOTHING_LET_GO: Mapping[ObjectKey, bool] = MappingProxyType({})


class CommitPosition(Enum):
    """The position of a commit in the history of the checkout."""

    CONTAINED = auto()
    """HEAD, or one of its ancestors."""
    AHEAD = auto()
    """A descendant of HEAD."""
    ELSEWHERE = auto()
    """On another branch."""
    UNKNOWN = auto()
    """Not in this clone."""
    CUT_OFF = auto()
    """Not in this clone, which is shallow."""


@dataclass(frozen=True, slots=True)
class LastApplied:
    """The commit whose manifests were applied last, by the list.

    Attributes:
        commit: its full ID; empty if there was none.
        position: its position in the history of the manifests that are applied now.
        remote: the name of the remote that the inventory lives on; empty if it lives in this repository.
    """

    commit: str
    position: CommitPosition
    remote: str = ""

    @property
    def may_be_newer(self) -> bool:
        """Whether it is ahead, or not known to be anywhere else: then it stays what was applied last."""
        return self.position in (CommitPosition.AHEAD, CommitPosition.UNKNOWN, CommitPosition.CUT_OFF)

    @property
    def obstacle(self) -> str:
        """Why nothing is deleted by absence, and what to do; empty if it may be."""
        name = self.commit[:SHORT_SHA_LENGTH]
        match self.position:
            case CommitPosition.CONTAINED:
                return ""
            case CommitPosition.AHEAD:
                return f"newer manifests were applied, {name}: run `git pull`, or a new pipeline"
            case CommitPosition.ELSEWHERE:
                return f"manifests of another branch were applied, {name}: apply these, then plan again"
            case CommitPosition.UNKNOWN:
                fetch = f"git fetch {self.remote} {self.commit}"
                return f"manifests that this clone lacks were applied, {name}: run `{fetch}`, once they are pushed"
            case _:
                fetch = f"git fetch --unshallow {self.remote}".rstrip()
                return f"manifests that this clone lacks were applied, {name}: run `{fetch}`"


@dataclass(frozen=True, slots=True)
class PartNow:
    """A collection that the manifests declare for a target, and its live objects.

    Attributes:
        target: as the inventory names it.
        section: the section's name.
        part: which of the section's endpoints.
        live: the canonical names of each live object, by ID; None if the list is not whole.
        names: the canonical form of all declared and former names, and of those that a document leaves alone.
        wanted: the canonical names of the objects that must exist, by each of their names; a name that is declared is
            no other object's former one.
        circles: the canonical names of objects that exchange names, each before its former name.
        declared: the IDs of the live objects that a declared or a former name stands for.
        identity: returns the canonical form of a name.
        by_id: whether an object is known by its ID alone, as an entry of an allowlist is.
    """

    target: str
    section: str
    part: str
    live: Mapping[int, frozenset[Key]] | None
    names: Collection[Key]
    wanted: Mapping[Key, Key] = field(default_factory=dict)
    circles: tuple[tuple[Key, ...], ...] = ()
    declared: frozenset[int] = frozenset()
    identity: Callable[[Key], Key] = lambda name: name
    by_id: bool = False


@dataclass(frozen=True, slots=True)
class ExchangedObject:
    """An object of the inventory whose name another object gets, since some exchange theirs.

    Attributes:
        line: of the inventory, from before the exchange, or after it.
        name: the canonical name of the line.
        former: the canonical former name of the item with the line's name.
        following: the canonical name of the item that has the line's name as its former one.
    """

    line: ObjectLine
    name: Key
    former: Key
    following: Key


@dataclass(frozen=True, slots=True)
class KeptObject:
    """An object of the inventory that is live, and that the plan neither deletes nor renames.

    Attributes:
        line: of the inventory.
        reason: why.
    """

    line: ObjectLine
    reason: str


@dataclass(frozen=True, slots=True)
class AbsenceDecision:
    """Objects of the inventory, divided by whether history proves their lines.

    Attributes:
        proved: the objects whose lines it proves, in the order of the inventory: they may be deleted, or renamed back.
        kept: the others.
    """

    proved: tuple[ObjectLine, ...]
    kept: tuple[KeptObject, ...]


def part_now(
    target_name: str,
    section: Section,
    collection: endpoints.Collection,
    live_part: LivePart,
    ids: Mapping[Key, int] = NO_IDS,
) -> PartNow:
    """Return a declared collection with its live objects.

    Args:
        target_name: as the inventory names it.
        section: what is declared.
        collection: the collection.
        live_part: what was read of it.
        ids: by canonical name, the IDs of the groups or projects that names refer to, as far as they were looked up.
    """
    declared = section.wanted[collection.name]
    items = {} if isinstance(declared, Resource) else declared
    former = (old for resource in items.values() for old in getattr(resource, "renamed_from", ()))
    released = section.released.get(collection.name, ())  # what a document leaves alone is protected as if declared
    names = {collection.identity(name) for name in (*items, *former, *released)}
    wanted = (
        {} if isinstance(declared, Resource) else _wanted(collection, declared, set(map(collection.identity, released)))
    )
    unlisted = PartNow(target_name, section.kind, collection.name, None, names, identity=collection.identity)
    if isinstance(declared, Resource) or not isinstance(live_part, Objects):
        return unlisted
    shown = {
        record.id: frozenset(map(collection.identity, record.names))
        for record in live_part.own
        if record.id is not None and not record.below
    }
    numbers = {ids[name] for name in names if name in ids}
    known = frozenset().union(*shown.values()) | ids.keys()
    if (
        collection.names.level
        and any(isinstance(name, str) and name not in known for name in names)
        and _has_nameless(shown)
    ):
        return unlisted  # a declared path may be any of these
    claimed = frozenset(number for number, called in shown.items() if called & names or number in numbers)
    return PartNow(
        target_name,
        section.kind,
        collection.name,
        shown,
        names,
        wanted,
        tuple(circles(former_names(items, collection.identity))) if collection.names.exchangeable else (),
        claimed,
        collection.identity,
        collection.names.level is not None,
    )


def absent(
    inventory: Inventory, part_states: Iterable[PartNow], renamed_keys: Collection[ObjectKey] = ()
) -> tuple[tuple[ObjectLine, ...], tuple[KeptObject, ...]]:
    """Return the listed objects that are live and no longer declared in a section that is, and those that stay.

    An object with a declared name or ID is neither, nor is one that is no longer live.

    Args:
        inventory: the list.
        part_states: the declared collections.
        renamed_keys: the objects that were renamed on the service: see `renamed_by_hand`.
    """
    lines, candidates, kept = _by_part(inventory), [], []
    for part in part_states:
        for line in lines.get((part.target, part.section, part.part), ()):
            if part.live is None:
                if part.identity(line.name) not in part.names:
                    kept.append(KeptObject(line, UNLISTED))
            elif line.id not in part.live or line.id in part.declared or line.key in renamed_keys:
                continue
            elif part.by_id or part.identity(line.name) in part.live[line.id]:
                candidates.append(line)
            elif part.identity(line.name) not in part.wanted:
                kept.append(KeptObject(line, RENAMED))
    return tuple(candidates), tuple(kept)


def renamed_by_hand(
    inventory: Inventory, part_states: Iterable[PartNow]
) -> tuple[dict[ObjectKey, Key], dict[ObjectKey, Key]]:
    """Return the listed objects that somebody has renamed on the service, and those of which there are several.

    These are live by a name that nothing declares, and their own is declared, and not live. Each is given by its key,
    with the canonical name of the item that declares it.
    """
    lines, single, several = _by_part(inventory), dict[ObjectKey, Key](), dict[ObjectKey, Key]()
    for part in part_states:
        renamed = _renamed(part, lines.get((part.target, part.section, part.part), ()))
        numbers = Counter(renamed.values())
        for key, name in renamed.items():
            (single if numbers[name] == 1 else several)[key] = name
    return single, several


def _by_part(inventory: Inventory) -> Mapping[tuple[str, str, str], Sequence[ObjectLine]]:
    lines: dict[tuple[str, str, str], list[ObjectLine]] = {}
    for line in inventory.objects.values():
        lines.setdefault(line.key[:3], []).append(line)
    return lines


def _renamed(part_state: PartNow, lines: Iterable[ObjectLine]) -> dict[ObjectKey, Key]:
    """Return those of a part's objects whose name is declared and not live, each with the name of its item."""
    live, wanted = part_state.live, part_state.wanted
    if live is None or part_state.by_id:
        return {}
    # Most objects have their own names: then no other name is looked at.
    others = [line for line in lines if line.id in live and line.id not in part_state.declared]
    named = {line.key: wanted[name] for line in others if (name := part_state.identity(line.name)) in wanted}
    in_order = {wanted[name] for names in live.values() for name in names & wanted.keys()} if named else set()
    in_circles = {name for circle in part_state.circles for name in circle}
    return {key: name for key, name in named.items() if name not in in_order | in_circles}


def exchanging(inventory: Inventory, part_states: Iterable[PartNow]) -> Iterator[tuple[ExchangedObject, ...]]:
    """Yield the objects of each circle in which names are exchanged.

    A circle is left out unless the list knows each of its names once, and all these objects are live.
    """
    lines = _by_part(inventory)
    for part in part_states:
        listed = lines.get((part.target, part.section, part.part), ()) if part.circles else ()
        named = [(part.identity(line.name), line) for line in listed if part.live and line.id in part.live]
        for circle in part.circles:
            former = dict(zip(circle, circle[1:] + circle[:1], strict=True))
            following = {old: name for name, old in former.items()}
            lines_by_name = [(name, line) for name, line in named if name in former]
            if Counter(name for name, _ in lines_by_name) == Counter(circle):
                yield tuple(ExchangedObject(line, name, former[name], following[name]) for name, line in lines_by_name)


def decide(
    candidates: Iterable[ObjectLine],
    positions: Mapping[str, CommitPosition],
    declares: Callable[[ObjectLine], bool],
    obstacle: str = "",
) -> AbsenceDecision:
    """Divide objects into those that history proves, and kept ones with their reasons.

    Args:
        candidates: as of `absent`, or `renamed_by_hand`.
        positions: of the commits that the candidates name.
        declares: whether the manifests at the commit of a line, which HEAD contains, declare its object; see
            `is_declared`.
        obstacle: why this run deletes nothing by the list, such as other inputs than those of `reconciler.yaml`; empty
            if it may.
    """
    proved, kept = [], []
    for line in candidates:
        reason = obstacle or not_contained(line, positions)
        if not reason and not declares(line):
            reason = not_declared(line)
        if reason:
            kept.append(KeptObject(line, reason))
        else:
            proved.append(line)
    return AbsenceDecision(tuple(proved), tuple(kept))


def not_declared(object_line: ObjectLine) -> str:
    """Return the reason to keep an object that history does not prove."""
    return f"the manifests at {object_line.at[:SHORT_SHA_LENGTH]} do not declare it"


def is_declared(
    object_line: ObjectLine,
    called: Collection[Identity],
    then: DesiredState,
    kinds: Kinds,
    *,
    as_written: bool = False,
    former_name: Key | None = None,
) -> bool:
    """Return whether manifests declare an object.

    Args:
        object_line: of the inventory.
        called: all that the target is known as: its ID, and its paths.
        then: the manifests.
        kinds: all kinds.
        as_written: whether the name counts as it is before `{default_branch}` is filled in.
        former_name: the canonical former name that it must be declared with; None for any, or none.
    """
    kind = kinds.get(object_line.section)
    part = next((candidate for candidate in kind.parts if candidate.name == object_line.part), None) if kind else None
    if not isinstance(part, endpoints.Collection):
        return False
    return any(
        resource is not None
        and part.identity(name) == part.identity(object_line.name)
        and (former_name is None or former_name in map(part.identity, getattr(resource, "renamed_from", ())))
        for target in then.targets
        if target.target.identity in called
        for name, resource in _declared(target, object_line, as_written=as_written)
    )


def stale_absences(planned_keys: Iterable[ObjectKey], inventory: Inventory, last: LastApplied) -> dict[ObjectKey, str]:
    """Return the planned deletions by absence that must not be carried out any more, and why.

    Args:
        planned_keys: the objects that the plan deletes.
        inventory: as it is now, before the first write.
        last: what was applied last, by that list.
    """
    gone = "the inventory no longer lists it: plan again"
    stale = {key: last.obstacle or (gone if key not in inventory.objects else "") for key in planned_keys}
    return {key: why for key, why in stale.items() if why}


def withheld_remarks(deletion_count: int, last: LastApplied) -> list[str]:
    """Return the remarks about deletions by absence that the plan's own apply will refuse as stale."""
    if not last.obstacle or not (deletion_count or last.may_be_newer):
        return []
    objects = (
        "what is no longer declared"
        if not deletion_count
        else f"{counted(deletion_count, 'object')} no longer declared"
    )
    return [f"{WITHHELD}{objects}: {last.obstacle}"]


def reasons(kept_objects: Iterable[KeptObject]) -> list[str]:
    """Return a line for each reason, in alphabetical order."""
    numbers = Counter(kept_object.reason for kept_object in kept_objects)
    return [
        f"{counted(number, 'object')} no longer declared {'stays' if number == 1 else 'stay'}: {reason}"
        for reason, number in sorted(numbers.items())
    ]


def departures(
    inventory: Inventory,
    declared_parts: Collection[tuple[str, str, str]],
    released: Collection[tuple[str, str]] = (),
    single_objects: Mapping[ObjectKey, bool] = NOTHING_LET_GO,
    unknown: Collection[str] = (),
) -> list[str]:
    """Return a line for what has left: targets and sections that are no longer managed and keep their objects.

    Args:
        inventory: the list.
        declared_parts: target, section and part of all that the manifests declare, whatever the run selects.
        released: target and section of what the documents of targets leave alone.
        single_objects: the lines of single objects that they leave alone, each with whether they must go on saying so.
        unknown: the targets of which that is not known, such as archived members of sets, and members of groups that
            could not be listed.
    """
    present = {target for target, *_ in (*declared_parts, *released)}
    gone, lost = list[ObjectLine](), dict[tuple[str, str], list[ObjectLine]]()
    unmanaged_lines = dict[str, list[ObjectLine]]()
    single = dict[tuple[str, str, bool], list[ObjectLine]]()
    for key, line in inventory.objects.items():
        if key in single_objects:
            single.setdefault((line.section, line.part, single_objects[key]), []).append(line)
        elif (line.target, line.section) in released:
            unmanaged_lines.setdefault(line.section, []).append(line)
        elif line.target in present and line.key[:3] not in declared_parts:
            lost.setdefault((line.section, line.part), []).append(line)
        elif line.target not in present and line.target not in unknown:
            gone.append(line)
    return [
        *_gone(gone),
        *(_lost(section, part, lines) for (section, part), lines in sorted(lost.items())),
        *(
            f"{section} of {_owners(lines)} is unmanaged; its {_objects(lines)}"
            for section, lines in sorted(unmanaged_lines.items())
        ),
        *(_single(section, part, lines, stays=stays) for (section, part, stays), lines in sorted(single.items())),
    ]


def is_listed(collection: endpoints.Collection) -> bool:
    """Return whether the inventory has the objects of a collection."""
    return collection.deletion.prunable and not collection.names.arrange and collection.writes.create is not None


def undeclared(desired: DesiredState, then: DesiredState, kinds: Kinds) -> int:
    """Return the number of objects that left a section which is still declared.

    What is pruned now is deleted anyway, and does not count.
    """
    sections = {
        (target.target.identity, section.kind): section for target in desired.targets for section in target.sections
    }
    number = 0
    for target in then.targets:
        for before in target.sections:
            section = sections.get((target.target.identity, before.kind))
            if section is not None and not section.prune:
                number += sum(_undeclared(before, section, part) for part in kinds[before.kind].parts)
    return number


def _undeclared(former_section: Section, section: Section, part: Part) -> int:
    then, wanted = former_section.wanted.get(part.name), section.wanted.get(part.name)
    if not isinstance(part, endpoints.Collection) or not is_listed(part):
        return 0
    if not isinstance(then, Mapping) or not isinstance(wanted, Mapping):
        return 0
    former = (old for resource in wanted.values() for old in getattr(resource, "renamed_from", ()))
    names = {part.identity(name) for name in (*wanted, *former, *section.released.get(part.name, ()))}
    return sum(part.identity(name) not in names for name, resource in then.items() if resource is not None)


def _wanted(
    collection: endpoints.Collection, items: Mapping[Key, Resource | None], left_alone: Collection[Key]
) -> dict[Key, Key]:
    """Return the canonical names of the objects that must exist, by each of their names; see `PartNow`."""
    present = {collection.identity(name): resource for name, resource in items.items() if resource is not None}
    wanted = {key: resource for key, resource in present.items() if key not in left_alone}
    former = {
        collection.identity(old): key
        for key, resource in wanted.items()
        for old in getattr(resource, "renamed_from", ())
    }
    return {**former, **{key: key for key in wanted}}


def _has_nameless(names_by_id: Mapping[int, frozenset[Key]]) -> bool:
    """Return whether an allowlist shows an entry by its ID alone."""
    return any(not any(isinstance(name, str) for name in names) for names in names_by_id.values())


def not_contained(object_line: ObjectLine, positions: Mapping[str, CommitPosition]) -> str:
    """Return the reason that the history of HEAD says nothing of an object; empty if it does."""
    if not object_line.at:
        return UNCOMMITTED
    match positions[object_line.at]:
        case CommitPosition.CONTAINED:
            return ""
        case CommitPosition.CUT_OFF:
            return f"declared at {object_line.at[:SHORT_SHA_LENGTH]}, which is not in this clone: fetch the history"
        case _:
            return f"declared at {object_line.at[:SHORT_SHA_LENGTH]}, which this branch does not contain"


def _declared(
    target: DesiredTarget, object_line: ObjectLine, *, as_written: bool
) -> Iterable[tuple[Key, Resource | None]]:
    sections = (section for section in target.sections if section.kind == object_line.section)
    wanted = (((as_written and section.written) or section).wanted.get(object_line.part) for section in sections)
    return [pair for part in wanted if part is not None and not isinstance(part, Resource) for pair in part.items()]


def _gone(lines: Sequence[ObjectLine]) -> Iterable[str]:
    levels = dict.fromkeys(line.target.partition(" ")[0] for line in lines)
    for level in levels:
        level_lines = [line for line in lines if line.target.partition(" ")[0] == level]
        targets = len({line.target for line in level_lines})
        verb, possessive = ("is", "its") if targets == 1 else ("are", "their")
        yield f"{counted(targets, level)} {verb} no longer declared; {possessive} {_objects(level_lines)}"


def _lost(section: str, part_name: str, lines: Sequence[ObjectLine]) -> str:
    name, remedy = (section, "{}") if part_name == section else (f"{section}.{part_name}", f"{{{part_name}: []}}")
    pronoun = "it" if len(lines) == 1 else "them"
    return (
        f"{name} of {_owners(lines)} is no longer declared; its {_objects(lines)} "
        f"(`{section}: {remedy}` deletes {pronoun})"
    )


def _single(section: str, part_name: str, lines: Sequence[ObjectLine], *, stays: bool) -> str:
    """Return the line about single objects that documents leave alone; see `departures`."""
    name = section if part_name == section else f"{section}.{part_name}"
    fate, pronoun = ("is unmanaged, and stays", "it") if len(lines) == 1 else ("are unmanaged, and stay", "them")
    until = f" as long as `unmanaged` names {pronoun}" if stays else f"; the next apply forgets {pronoun}"
    return f"{counted(len(lines), 'object')} in {name} of {_owners(lines)} {fate}{until}"


def _owners(lines: Sequence[ObjectLine]) -> str:
    levels = dict.fromkeys(line.target.partition(" ")[0] for line in lines)
    owners = [counted(len({line.target for line in lines if line.target.startswith(level)}), level) for level in levels]
    return " and ".join(owners)


def _objects(lines: Sequence[ObjectLine]) -> str:
    return f"{counted(len(lines), 'object')} {'stays' if len(lines) == 1 else 'stay'}"
