"""The revert of an apply: each change is undone, if its object is unchanged since. `Reversal.plan` is the entry. Pure.

This module finds the live object of each change and its former values; the ordinary planner plans the changes.
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from reconciler.engine.compare.collections import plan_matches
from reconciler.engine.compare.matching import Matches, NamedObjects, Pair
from reconciler.engine.compare.objects import plan_settings
from reconciler.engine.compare.obstacles import with_obstacles
from reconciler.engine.compare.part import DeclaredPart
from reconciler.engine.compare.planner import NO_PLAN, PartPlanners, make_plan
from reconciler.engine.compare.references import with_sent_names
from reconciler.model.diff import Fields, as_before, fields_of, quoted, restorable
from reconciler.model.endpoints import STATE, Collection, Singleton
from reconciler.model.item import Create, Delete, Finding, Outcome, Update, hints
from reconciler.model.kind import Kind, Kinds, Part
from reconciler.model.obstacle import Obstacle
from reconciler.model.plan import Plan, Step, TargetPlan
from reconciler.model.protocols import Json
from reconciler.model.resource import POLICIES, Item, LiveRecord, Resource, Wanted
from reconciler.model.state import DesiredState, DesiredTarget, LiveState, PartAddress, Section
from reconciler.model.targets import Key, Target
from reconciler.model.values import steps

Sort = TypeVar("Sort")

KEPT_AS_IS = "it stays as it is"
CREATION_KEPT = "created by the apply, and never deleted by reconciler: delete it yourself if nobody needs it"
FORMER_VALUE_UNKNOWN = "its former value is unknown, because it was planned before the target existed"
PROMOTED = "a promotion cannot be undone"
NOT_SHOWN = "its former value is unknown, because this server does not show it"


class Reversal:
    """The revert of an apply.

    Args:
        target_plans: with the outcomes of their changes.
        kinds: all kinds.
        digest: of the report.

    Attributes:
        applied_state: the result of the apply as a desired state, which decides what is read, and how.
    """

    def __init__(self, target_plans: Iterable[TargetPlan], kinds: Kinds, digest: str) -> None:
        self._kinds = kinds
        self._objects: dict[PartAddress, list[Outcome]] = {}
        self._found: dict[tuple[Target, str], int] = {}
        self._created: dict[Target, Obstacle] = {}
        origins: dict[Target, str] = {}
        for plan in target_plans:
            outcomes = [outcome for outcome in plan.outcomes if outcome.may_be_done]
            for where in {(plan.target, outcome.change.address.section): None for outcome in outcomes}:
                self._found[where] = self._found.get(where, 0) + (plan.sections[where[1]] or 0)
            for outcome in outcomes:
                address = outcome.change.address
                origins.setdefault(plan.target, plan.origin)
                self._objects.setdefault((plan.target, address.section, address.part), []).append(outcome)
                if not address.section:
                    self._created[plan.target] = Obstacle(plan.target.address, CREATION_KEPT)
        self._settings = {
            (target, kind, part): outcome.change
            for (target, kind, part), outcomes in self._objects.items()
            for outcome in outcomes
            if isinstance(outcome.change, Update) and not kinds[kind].part(part).is_collection
        }
        targets = (DesiredTarget(target, tuple(self._sections(target)), origins[target]) for target in origins)
        self.applied_state = DesiredState(tuple(sorted(targets, key=lambda target: target.target.order)), digest)

    def plan(self, applied_state: DesiredState, live: LiveState, kinds: Kinds, previous_plan: Plan = NO_PLAN) -> Plan:
        """Plan the revert; see `make_plan`.

        Args:
            applied_state: `Reversal.applied_state`, or some targets and sections of it.
            live: the live state.
            kinds: all kinds.
            previous_plan: see `make_plan`.
        """
        targets = (
            replace(target, sections=tuple(self._with_former_settings(section, live) for section in target.sections))
            for target in applied_state.targets
        )
        before = replace(applied_state, targets=tuple(targets))
        planners = PartPlanners(self._plan_settings, self._plan_collection)
        return with_obstacles(make_plan(before, live, kinds, previous_plan, planners), self._created.values(), kinds)

    def _sections(self, target: Target) -> Iterator[Section]:
        for name, kind in self._kinds.items():
            declarations = {part.name: self._applied_part(target, kind, part) for part in kind.parts}
            wanted = {part: declaration for part, declaration in declarations.items() if declaration is not None}
            if wanted:
                yield Section(target, name, wanted)

    def _applied_part(self, target: Target, kind: Kind, part: Part) -> Wanted | None:
        """Return the state of a part after the apply; None if the apply changed nothing there."""
        place = target, kind.name, part.name
        if place in self._settings:
            model = part.model if kind.split else kind.models[target.level]
            return restorable(model, self._settings[place].after)[0]
        changes = [outcome.change for outcome in self._objects.get(place, ())]
        resources = {
            change.address.name: None if isinstance(change, Delete) else restorable(part.model, change.after)[0]
            for change in changes
            if change.address.name is not None
        }
        return resources or None

    def _with_former_settings(self, section: Section, live: LiveState) -> Section:
        """Return a section with its settings before the apply."""
        wanted = dict(section.wanted)
        for name in wanted:
            part, record = self._kinds[section.kind].part(name), live.parts[section.target, section.kind, name]
            if isinstance(part, Singleton) and isinstance(record, LiveRecord):
                at = DeclaredPart(section, part, live)
                wanted[name] = former_values(at, None, self._settings[at.place], record)[0]
        return replace(section, wanted=wanted)

    def _plan_settings(self, at: DeclaredPart[Singleton], wanted: Resource, record: LiveRecord) -> list[Step]:
        _, problems = former_values(at, None, self._settings[at.place], record)
        return [*problems, *plan_settings(at, wanted, record)]

    def _plan_collection(
        self, at: DeclaredPart[Collection], _applied_part: Mapping[Key, Resource | None], live: Sequence[LiveRecord]
    ) -> list[Step]:
        return _Objects(at, self._objects[at.place], live, self._found[at.place[:2]]).plan()


def former_values(
    at: DeclaredPart[Any], name: Key | None, update: Update, record: LiveRecord
) -> tuple[Resource, list[Finding]]:
    """Return the former values of an object's fields that are unchanged since an update, and the problems of others.

    Fields that the service no longer shows because of the update are among them.
    """
    record = _with_applied_names(record, update)
    live = {**fields_of(record.resource), **record.unknown}
    back: dict[str, Json] = {}
    problems = []
    for field, applied in update.after.items():
        was, now = update.before.get(field), live.get(field)
        if field not in update.before:
            problems.append(at.problem(name, FORMER_VALUE_UNKNOWN, field=field))
        elif field not in update.read.fields:
            if _root(field) in record.unshown:
                problems.append(at.problem(name, NOT_SHOWN, field=field))
        # Only an unchanged value is restored: anybody who changed it since has the last word.
        elif now == applied and field in live:
            back[field] = was
        elif now != was:
            changed = ", ".join(steps({field: applied}, {field: now})).removeprefix(f"{field}: ")
            problems.append(
                replace(at.problem(name, f"has changed since the apply: {changed}", KEPT_AS_IS), field=field)
            )
    if back and not problems:
        back |= {field: value for field, value in update.read.fields.items() if field not in live}
    wanted, others = restorable(type(record.resource), back)
    problems += [at.problem(name, _not_known(value), field=field) for field, value in others.items()]
    return wanted, problems


def _not_known(value: Json) -> str:
    return f"its former value {quoted(value)} is not known to this version"


class _Objects:
    """The revert of the objects of one collection. Each step yields decisions or problems."""

    def __init__(
        self, at: DeclaredPart[Collection], outcomes: Sequence[Outcome], live: Sequence[LiveRecord], found_before: int
    ) -> None:
        self.at, self.part, self.live, self.found_before = at, at.part, live, found_before
        self.created = [outcome for outcome in outcomes if isinstance(outcome.change, Create)]
        self.updated = [outcome.change for outcome in outcomes if isinstance(outcome.change, Update)]
        self.deleted = [outcome.change for outcome in outcomes if isinstance(outcome.change, Delete)]
        self.deleted = [change for change in self.deleted if not _is_cover(self.part, change)]
        self.made = {outcome.created.id for outcome in self.created if outcome.created}
        self.former_names = {
            update.address.name: update.renamed_from
            for update in self.updated
            if update.renamed_from is not None and update.address.name is not None
        }
        self.now = NamedObjects(self.part, live)
        for change in self.updated if self.part.writes.cover else ():
            if self._object(change.read.id, change.address.name) is None:
                # It was replaced, and refused: its deletion is all that was done.
                address = replace(change.address, name=change.read.names[0])
                self.deleted.append(Delete(address, change.read.fields, (), change.read))
        lost = {id(change.read) for change in self.deleted}
        self.updated = [change for change in self.updated if id(change.read) not in lost]

    def plan(self) -> list[Step]:
        """Plan the creation of deleted objects, the former values of updated ones, and the deletion of created ones."""
        created = [*self._unchanged_creations()]
        updated = [*self._restored_updates(_only(LiveRecord, created))]
        unreferred = [*self._unreferenced(_only(LiveRecord, created), _only(Pair, updated))]
        deleted = [*self._deletions_to_undo()]
        problems = _only(Finding, [*created, *updated, *unreferred, *deleted])

        missing = {change.address.name: change for change in _only(Delete, deleted) if change.address.name is not None}
        present = {
            name: self._referring(restorable(self.part.model, change.before)[0]) for name, change in missing.items()
        }
        problems += [problem for name, change in missing.items() for problem in _unknown(self.at, name, change)]
        ids = {name: change.read.id for name, change in missing.items() if self.part.names.level and change.read.id}

        pairs, unwanted = _only(Pair, [*updated, *deleted]), _only(LiveRecord, unreferred)
        unwanted += self._covers({*present, *(pair.name for pair in pairs)})
        matches = Matches(tuple(pairs), present, unwanted=tuple(unwanted))
        return [*problems, *(self._recreated(step, missing) for step in plan_matches(self.at, matches, self.live, ids))]

    def _covers(self, restored_names: set[Key]) -> list[LiveRecord]:
        """Return the covers of some objects."""
        cover = self.part.writes.cover
        return [
            record
            for name in restored_names
            if cover
            for record in self.now.named(cover.name(name))
            if cover.covered(record)
        ]

    def _recreated(self, step: Step, deletions_by_name: Mapping[Key, Delete]) -> Step:
        """Return a step; a creation gets the notes of the deleted object that it recreates."""
        if not isinstance(step, Create) or step.address.name is None:
            return step
        namesakes = () if self.part.names.unique else self.now.named(step.address.name)
        ids = tuple(namesake.id for namesake in namesakes if namesake.id)
        own = tuple(note for note in step.notes if note.code != "hint")
        return replace(
            step, replaces_ids=ids, notes=(*own, *hints(_hint(self.part, deletions_by_name[step.address.name])))
        )

    def _object(self, number: int | None, name: Key | None) -> LiveRecord | None:
        """Return an object by its ID, or the object recreated under its name, unless it holds a secret."""
        namesakes = [] if self.part.secret_field else self.now.named(name)
        return self.now.by_id.get(number) or (namesakes[0] if len(namesakes) == 1 else None)

    def _unchanged_creations(self) -> Iterator[LiveRecord | Finding]:
        """Yield the created objects that are unchanged since."""
        for outcome in self.created:
            change, created, name = outcome.change, outcome.created, outcome.change.address.name
            candidates = self._made_by(outcome)
            if len(candidates) > 1:
                reason = "several objects have this name, and the report does not tell which is new"
                yield self.at.problem(name, reason, KEPT_AS_IS)
                continue
            for record in candidates:
                after = change.after if isinstance(change, Create) else {}
                moved = _moved(created.fields, as_before(record, created)) if created else _moved(after, record)
                if issubclass(self.part.model, Item) and not self.now.has_name(record, name):
                    renamed = f"was renamed since the apply, to {quoted(record.names[0])}, and is not deleted"
                    yield self.at.problem(name, renamed, KEPT_AS_IS)
                elif moved:
                    yield self.at.problem(name, f"has changed since the apply, and is not deleted: {moved}", KEPT_AS_IS)
                else:
                    yield record

    def _made_by(self, outcome: Outcome) -> list[LiveRecord]:
        """Return the objects that a creation may have made; several, if the report lacks the ID."""
        change, name = outcome.change, outcome.change.address.name
        if outcome.created is not None:
            record = self._object(outcome.created.id, name)
            return [] if record is None else [record]
        before = change.replaces_ids if isinstance(change, Create) else ()
        return [namesake for namesake in self.now.named(name) if namesake.ours and namesake.id not in before]

    def _restored_updates(self, unwanted: Iterable[LiveRecord]) -> Iterator[Pair | Finding]:
        """Yield updated objects with their former names and fields.

        Args:
            unwanted: the objects that are deleted, so that their names are free.
        """
        freed = set() if self.part.names.unique else {id(record) for record in unwanted}
        freed |= self._given_up(freed)
        for change in self.updated:
            name = change.address.name
            record = self._object(change.read.id, name)
            if change.read.below:
                yield self.at.problem(name, PROMOTED, KEPT_AS_IS)
            elif record is None:
                yield self.at.problem(name, "no longer exists, so that its former values cannot be restored")
            else:
                yield from self._restored_update(change, record, freed)

    def _given_up(self, freed: Container[int]) -> set[int]:
        """Return the objects that get their former names back, and free others' by that.

        Args:
            freed: the objects whose names are free anyway.
        """
        back = {
            id(record): update.renamed_from
            for update in self.updated
            if update.renamed_from is not None
            and (record := self._object(update.read.id, update.address.name)) is not None
            and self.now.has_name(record, update.address.name)
        }
        # an object that keeps its name blocks the object that had it before, and so on
        while blocked := {
            number
            for number, former in back.items()
            if any(id(other) not in back and id(other) not in freed for other in self.now.named(former))
        }:
            back = {number: former for number, former in back.items() if number not in blocked}
        return {*back}

    def _restored_update(self, update: Update, record: LiveRecord, freed: Container[int]) -> Iterator[Pair | Finding]:
        name, present, former = update.address.name, record.names[0], update.renamed_from
        now = None
        if former is not None and not self.now.has_name(record, former):
            taken = [namesake for namesake in self.now.named(former) if id(namesake) not in freed]
            if not self.now.has_name(record, name):
                yield self.at.problem(name, f"was renamed since the apply, to {quoted(present)}", KEPT_AS_IS)
            elif taken:
                yield self.at.problem(name, f"its former name {quoted(former)} is taken", KEPT_AS_IS)
            else:
                present, now = former, present
        wanted, problems = former_values(self.at, name, update, record)
        yield from problems
        if wanted.model_fields_set or now is not None:
            yield Pair(present, self._referring(wanted), record, now)

    def _unreferenced(self, unwanted: Iterable[LiveRecord], updates: Iterable[Pair]) -> Iterator[LiveRecord | Finding]:
        """Yield created objects, except those to which kept objects refer: these are kept too."""
        deleted = {id(record): record for record in unwanted}
        kept = [record for record in self.live if id(record) not in deleted]
        back = {id(pair.record): pair.wanted.model_fields_set for pair in updates}
        by_reference: dict[Key | None, list[int]] = {}
        for record in deleted.values():
            for key in self.now.identities(record.names) | ({record.id} if record.id else set()):
                by_reference.setdefault(key, []).append(id(record))
        while kept and self.part.relations.refers:
            referring = {
                value: record.names[0]
                for record in kept
                for field in {*self.part.relations.refers} - back.get(id(record), set())
                if (value := getattr(record.resource, field)) is not None
            }
            referred = {number: key for key in referring for number in by_reference.get(key, ()) if number in deleted}
            kept = [deleted.pop(number) for number in referred]
            for record, key in zip(kept, referred.values(), strict=True):
                reason = f"is not deleted, because {self.part.title} {quoted(referring[key])} refers to it"
                yield self.at.problem(record.names[0], reason, KEPT_AS_IS)
        yield from deleted.values()

    def _deletions_to_undo(self) -> Iterator[Delete | Pair | Finding]:
        """Yield the deletions of objects to create again, each under the name that the object will have.

        With them come pairs of objects that a killed revert has created again, and not closed yet.
        """
        named = [(name, deletion) for deletion in self.deleted if (name := deletion.address.name)]
        gone = [(name, deletion) for name, deletion in named if deletion.read.id not in self.now.by_id]
        if self.part.deletion.fades and len(gone) < len(named):
            reason = "is still there: the service deletes such objects in the background"
            for name in dict(named).keys() - dict(gone).keys():
                yield self.at.problem(name, reason, "revert again later")
        if self.part.names.arrange:
            yield from self._last_deletions([deletion for _, deletion in gone])
            return
        names: set[Key] = set()
        for name, change in gone:
            created_again = self._created_again(change)
            if created_again is not None:
                moved = _moved(change.before, created_again)
                if _is_half_made(self.part, change, created_again):
                    wanted, _ = restorable(self.part.model, {STATE: change.before[STATE]})
                    yield Pair(name, wanted, created_again, None)
                elif moved:
                    yield self.at.problem(name, f"exists again, with other values: {moved}", KEPT_AS_IS)
            elif self.part.identity(name) in names:
                yield self.at.problem(name, "was deleted more than once, and is created again only once")
            else:
                names.add(self.part.identity(name))
                yield change

    def _last_deletions(self, gone: Sequence[Delete]) -> Iterator[Delete]:
        """Yield the deletions of numbered objects, less as many as were created again since."""
        created = sum(outcome.created is not None and outcome.created.id in self.now.by_id for outcome in self.created)
        again = len(self.live) - (self.found_before - len(gone) + created)
        for place, change in enumerate(gone[max(0, again) :], start=1):
            yield replace(change, address=replace(change.address, name=str(len(self.live) + place)))

    def _created_again(self, deletion: Delete) -> LiveRecord | None:
        """Return the object that was created since under the name of a deleted one.

        Where names need not be unique, it is new: the service counts its IDs up, and the apply knows what it made.
        """
        namesakes = self.now.named(deletion.address.name)
        if not self.part.names.unique:
            new = [namesake for namesake in namesakes if namesake.ours and (namesake.id or 0) > (deletion.read.id or 0)]
            namesakes = [
                namesake for namesake in new if namesake.id != deletion.successor_id and namesake.id not in self.made
            ]
        return namesakes[0] if namesakes else None

    def _referring(self, wanted: Resource) -> Resource:
        """Return a resource that refers to other objects by their former names."""
        return self.part.referring(wanted, self.former_names)


def _is_cover(part: Collection, deletion: Delete) -> bool:
    """Return whether a deleted object was a cover that a run had left behind, which a revert does not restore."""
    cover, name = part.writes.cover, deletion.address.name
    return cover is not None and name is not None and cover.is_one(name, restorable(part.model, deletion.before)[0])


def _is_half_made(part: Collection, deletion: Delete, record: LiveRecord) -> bool:
    """Return whether a killed revert has created an object and not closed it."""
    initial, *others = part.writes.events or (None,)
    return deletion.before.get(STATE) in others and not _moved({**deletion.before, STATE: initial}, record)


def _unknown(at: DeclaredPart[Collection], name: Key, deletion: Delete) -> Iterator[Finding]:
    """Yield the fields of a deleted object with values that this version does not know."""
    for field, value in deletion.read.fields.items():
        if field not in deletion.before:
            yield at.problem(name, _not_known(value), field=field)


def _hint(part: Collection, deletion: Delete) -> str:
    """Return a hint: the properties that an object loses when it is created again."""
    if part.names.level is not None:
        return ""
    fields = {_root(name) for name in deletion.read.fields}
    unshown = [name for name in part.model.model_fields if name not in fields | POLICIES]
    lost = [part.deletion.lost] if part.deletion.lost else []
    if part.secret_field and "renamed_from" in deletion.read.read_only:
        lost.append("its owner, who is another user")
    lost += [f"its {name}, which this server does not show" for name in unshown]
    return f"created again with a new ID{', without ' if lost else ''}{' and '.join(lost)}"


def _only(sort: type[Sort], results: Iterable[object]) -> list[Sort]:
    """Return the results of one type."""
    return [result for result in results if isinstance(result, sort)]


def _moved(applied: Fields, record: LiveRecord) -> str:
    """Return the fields that have changed since the apply, as `state: active -> closed`; empty if none has."""
    live = {**fields_of(record.resource), **record.unknown}
    moved = {name: was for name, was in applied.items() if live.get(name) != was and _root(name) not in record.unshown}
    return ", ".join(steps(moved, {name: live.get(name) for name in moved}))


def _with_applied_names(record: LiveRecord, update: Update) -> LiveRecord:
    """Return an object with its entries called as in the change that has left it: another token sees other names."""
    read = replace(update.read, fields={**update.read.fields, **update.after})
    return as_before(with_sent_names(record, update), read) if record.entries else record


def _root(field: str) -> str:
    return field.partition(".")[0]
