"""The test of a kind, ours or another package's: its whole life on the sandbox, in both of its dialects.

See `check_kind`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from json import dumps
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

from pydantic import TypeAdapter

from reconciler.edit.sections import export_target
from reconciler.edit.targets import ResolvedTarget
from reconciler.engine.apply import ApplyOptions, apply_plan
from reconciler.engine.compare.revert import PROMOTED, Reversal
from reconciler.engine.plan import draw_plan
from reconciler.engine.read import read_live, read_part
from reconciler.errors import Stopped
from reconciler.manifests import Inputs, read_manifests
from reconciler.model.diff import become, fields_of, only, without
from reconciler.model.direction import compare_field
from reconciler.model.endpoints import Collection, as_json
from reconciler.model.item import Change, Delete, Status, Update
from reconciler.model.kind import Kind
from reconciler.model.plan import Plan, TargetPlan
from reconciler.model.protocols import Json, Request
from reconciler.model.resource import POLICIES, LiveRecord, Objects, Resource, Wanted
from reconciler.model.state import DesiredState, DesiredTarget, Section
from reconciler.model.targets import Key, Level, Target
from reconciler.sandbox import Sandbox, running
from reconciler.sandbox.routes import routes
from reconciler.service import Client

CHECK_TOKEN = "check-token"  # noqa: S105 - of the sandbox only

ODD: Sequence[Json] = (None, True, 7, "text", [], [[]], {}, {"id": "7"}, {"id": 7})
"""Undocumented responses, which must not end a run with an exception."""


def check_kind(
    kind: Kind, example: Path, route: ModuleType, *, state: Mapping[str, Any] | None = None, token: str = CHECK_TOKEN
) -> None:
    """Test the life of a kind on the sandbox, in both of its dialects.

    The example is applied, reverted, applied again, exported and read again. Then its objects are renamed, deleted,
    created with the fields that a creation needs and updated to the example, and pruned. Each step makes exactly the
    requests that its plan shows, reads nothing twice, and is complete. An object that is replaced under cover stays
    under it in a run that ends after any request, and the next run ends the replacement.

    Args:
        kind: the kind.
        example: a manifest of the kind's section alone, at every level and for every part that it has, whose values
            differ from the service's defaults.
        route: the module that plays the service's side. The sandbox finds the module by itself: one of ours in its
            folder, that of a package through the entry point group `reconciler.sandbox_routes`.
        state: of the sandbox, in the form of a state file; by default the targets of the example without any objects.
        token: of a user of that state.

    Raises:
        AssertionError: with the step that went wrong, and how.
    """
    _check_declaration(kind)
    _expect(set(route.ROUTES) <= set(routes()), f"the sandbox does not serve {route.__name__}: install the package")
    targets = read_manifests(Inputs([example], {kind.name: kind})).desired.targets
    sections = tuple(section for target in targets for section in target.sections)
    levels = {section.target.level for section in sections}
    _expect(levels == {*kind.models}, f"{example} must have targets of these levels: {', '.join(sorted(kind.models))}")
    declared = {name for section in sections for name in section.wanted}
    missing = [part.name for part in kind.parts if part.name not in declared]
    _expect(not missing, f"{example} must declare {', '.join(missing)} too")
    for section in sections:
        _check_directions(section)
    for dialect in ("spec", "deployed"):
        given = dict(state or _state_of(sections))
        given["instance"] = {**given.get("instance", {}), "dialect": dialect}
        with running(given) as sandbox, Client(sandbox.api_url, token) as client:
            _Life(kind, sandbox, client, dialect).lead(sections)


def _expect(truth: object, otherwise: str) -> None:
    if not truth:
        raise AssertionError(otherwise)


def _check_declaration(kind: Kind) -> None:
    """Check that the kind documents itself, and that its parts fit together."""
    for model in kind.models.values():
        of_fields = isinstance(model, type) and issubclass(model, Resource)
        item: Any = model if of_fields else _item_of(model)
        base = item if of_fields else kind.parts[0].model
        _expect(item and issubclass(item, base), f"{kind.name} must be a dict[str, {base.__name__} | None]")
        for name, field in item.model_fields.items():
            _expect(field.description, f"{item.__name__}.{name} needs a description")
            _expect(field.examples, f"{item.__name__}.{name} needs examples")
        _check_directed(item)
    names, paths = [part.name for part in kind.parts], [part.suffix for part in kind.parts]
    _expect(kind.split or names == [kind.name], f"the only part of {kind.name} must have its name, not {names[0]}")
    _expect(len({*names}) == len({*paths}) == len(names), f"two parts of {kind.name} have one name or path")
    for level, reader in kind.needs.readers.items():
        is_lower = level in kind.needs.roles and reader < kind.needs.roles[level]
        _expect(is_lower, f"the role to read {kind.name} in a {level} must be lower than that to write it")
    for part in kind.parts:
        _check_directed(part.model)
        rules = _fields_named(part) if isinstance(part, Collection) else set()
        strange = ", ".join(sorted(rules - part.model.model_fields.keys()))
        _expect(not strange, f"{part.name} has rules for fields that {part.model.__name__} lacks: {strange}")


def _check_directed(model: type[Resource]) -> None:
    """Check that the fields with a direction are fields that are compared."""
    strange = ", ".join(sorted(model.directions.keys() - (model.model_fields.keys() - POLICIES)))
    _expect(not strange, f"{model.__name__} has directions for fields that it lacks: {strange}")


def _check_directions(section: Section) -> None:
    """Check that the declared values can be compared, each with the default, and that each is as strict as itself."""
    for wanted in section.wanted.values():
        items = [wanted] if isinstance(wanted, Resource) else [item for item in wanted.values() if item]
        for item in items:
            model, declared = type(item), as_json(item)
            default = as_json(model.model_construct({*model.model_fields}))
            for name in model.directions.keys() & declared.keys():
                value, direction = declared[name], model.directions[name]
                compare_field(model.directions, name, declared, default)
                is_as_strict = value is None or direction.is_as_strict(value, value)
                _expect(is_as_strict, f"{model.__name__}.{name}: {value!r} must be as strict as itself")


def _fields_named(part: Collection) -> set[str]:
    writes = part.writes
    relations = part.relations
    named = {*relations.entries, *relations.refers, *relations.named}
    keepers = {writes.keepers} - {""}
    return {*writes.required, *writes.immutable, *writes.defaults, *named, *keepers}


def _item_of(section_type: Any) -> Any:
    """Return the type of the items of a `dict[str, ITEM | None]`; None where the model is something else."""
    item: Any = next((choice for value in get_args(section_type)[1:] for choice in get_args(value)), None)
    return item if isinstance(item, type) and section_type == dict[str, item | None] else None


def _state_of(sections: Sequence[Section]) -> dict[str, Any]:
    """Return a state with the targets, all owned by the user behind the token."""
    state: dict[str, Any] = {"users": [{"username": "checker", "tokens": [CHECK_TOKEN]}]}
    for level in (Level.GROUP, Level.PROJECT):
        state[f"{level}s"] = [
            {"path": section.target.ref, "members": [{"user": "checker", "role": "owner"}]}
            for section in sections
            if section.target.level is level
        ]
    return state


class _Life:
    """The life of a kind in one dialect."""

    def __init__(self, kind: Kind, sandbox: Sandbox, client: Client, dialect: str) -> None:
        self.kind, self.sandbox, self.client, self.dialect = kind, sandbox, client, dialect
        self.kinds = {kind.name: kind}
        self.step = ""
        self.done: list[TargetPlan] = []

    def lead(self, sections: Sequence[Section]) -> None:
        """Run all steps."""
        before = self.shown(sections)
        changed = {change.address.target for change in self.settle("apply the example", *sections)}
        same = [str(section.target) for section in sections if section.target not in changed]
        self.expect(not same, f"the example changes nothing of {', '.join(same)}: give it other values")
        self.revert(before, sections)
        self.settle("apply the example again", *sections)
        self.export(sections)
        self.meet_odd_responses(sections)
        part = self.kind.parts[0]
        for section in sections:
            if isinstance(part, Collection) and not self.kind.split:
                self.live_objects(section, part)
            elif self.kind.prunable:
                empty = self.kind.wanted(self.kind.models[section.target.level](), prune=True)
                self.settle("prune", replace(section, wanted=empty, prune=True))

    def live_objects(self, section: Section, part: Collection) -> None:
        """Rename, delete, create, update and prune the objects of a section."""
        self.step = "rename"
        declared: Any = section.wanted[part.name]
        given = {name: without(item, ["renamed_from"]) for name, item in declared.items() if item}
        items = {name: item for name, item in given.items() if _is_whole(item, part, name)}
        self.expect(items, "the example has no object that could be created")
        renamable = items.keys() - part.names.fixed if part.writes.update else set()
        others = {name: self.another(part, section.target, name) for name in items if name in renamable}

        def settle(step_name: str, declaration: Wanted, *, prune: bool = False) -> list[type[Change]]:
            wanted_parts = {part.name: declaration}
            return [
                type(change) for change in self.settle(step_name, replace(section, wanted=wanted_parts, prune=prune))
            ]

        done = settle("rename", {others[name]: _renamed(part.referring(items[name], others), name) for name in others})
        self.expect(done == [Update] * len(others), "the plan is not one update for each object")
        done = settle("delete", dict.fromkeys(others.get(name, name) for name in items))
        self.expect(done == [Delete] * len(items), "the plan is not one deletion for each object")
        if part.writes.create is None:
            return
        bare = {name: _needed(item, part, name) for name, item in items.items()}
        settle("create", bare)
        for number in (1, 2, 3) if part.writes.cover else ():
            self.end_after(number, replace(section, wanted={part.name: items}))
            settle(f"replace, after a run that ended after {number} requests", items, prune=True)
            settle("replace back", bare)
        settle("update", items)
        if not part.deletion.prunable:
            return
        done = settle("prune", {}, prune=True)
        self.expect(done.count(Delete) >= len(items), "the plan does not delete each object")

    def end_after(self, number: int, section: Section) -> None:
        """Replace objects in a run that ends after some requests; check that each stays protected."""
        self.step = f"replace, and end after {number} requests"
        service: Any = _Ending(self.client, number)
        before = sum(map(len, self.shown([section]).values()))
        plan = draw_plan(_desired([section]), service, self.kinds)
        apply_plan(plan, service, self.kinds, ApplyOptions(verify=False))
        after = sum(map(len, self.shown([section]).values()))
        self.expect(after >= before, "something is left without cover")

    def another(self, part: Collection, target: Target, name: Key) -> Key:
        """Return another valid name."""
        tried = [f"{name}-2", f"{name}2", f"2{name}"]
        fine = [name for name in tried if not part.name_error(name) and not part.names.warning(target, name)]
        self.expect(fine, f"no other name like {name!r} is valid: tried {', '.join(tried)}")
        return fine[0]

    def revert(self, names_before: Mapping[tuple[Target, str], list[str]], sections: Sequence[Section]) -> None:
        """Check that a revert restores the state before the apply, except for promotions and uncreatable parts."""
        self.step = "revert"
        reversal = Reversal(self.done, self.kinds, digest="")
        back = draw_plan(reversal.applied_state, self.client, self.kinds, make=reversal.plan)
        uncreatable = {
            part.name for part in self.kind.parts if isinstance(part, Collection) and part.writes.create is None
        }
        lost = {
            (problem.address.target, problem.address.part)
            for problem in back.problems
            if problem.address.part in uncreatable or problem.reason == PROMOTED
        }
        apply_plan(back, self.client, self.kinds, ApplyOptions(deliver=lambda *_: None))
        after = self.shown(sections)
        different = [
            f"{part} of {target}"
            for target, part in names_before.keys() - lost
            if names_before[target, part] != after[target, part]
        ]
        self.expect(not different, f"not as before the apply: {', '.join(sorted(different))}")

    def shown(self, sections: Sequence[Section]) -> dict[tuple[Target, str], list[str]]:
        """Return the live fields of each part, without the IDs of objects."""
        live = read_live(_desired(sections), self.client, self.kinds)
        return {
            (target, part): sorted(
                f"{sorted(map(str, record.names))} {sorted(fields_of(record.resource).items())}"
                for record in (part_read.own if isinstance(part_read, Objects) else (part_read,))
                if isinstance(record, LiveRecord)
            )
            for (target, _, part), part_read in live.parts.items()
        }

    def settle(self, step_name: str, *sections: Section) -> list[Change]:
        """Plan and apply; check that all is done as planned, and that no change remains. Return the changes."""
        self.step = step_name
        self.sandbox.clear_log()
        plan = self.plan(sections)
        reads = self.requests()
        self.expect(len({*reads}) == len(reads), f"planning reads something twice: {', '.join(reads)}")
        options = ApplyOptions(deliver=lambda *_: None)
        self.done = list(apply_plan(plan, self.client, self.kinds, options))
        failed = [
            f"{outcome.change.address.name or outcome.change.address.title}: {outcome.status.words}: {outcome.reason}"
            for target in self.done
            for outcome in target.outcomes
            if outcome.status is not Status.DONE
        ]
        self.expect(not failed, "; ".join(failed))
        writes = [line for line in self.requests() if not line.startswith("GET ")]
        shown = [str(request) for target in self.done for change in target.changes for request in change.requests]
        self.expect(len(writes) == len(shown), f"writes {', '.join(writes)} instead of {', '.join(shown)}")
        self.check_no_changes(sections)
        return list(plan.changes)

    def export(self, sections: Sequence[Section]) -> None:
        """Check that an export, read again, leads to no change."""
        self.step = "export"
        live = read_live(_desired(sections), self.client, self.kinds)
        again = []
        for section in sections:
            spec = export_target(ResolvedTarget(section.target, None), live, self.kinds).spec
            self.expect(self.kind.name in spec, f"nothing of {section.target} is exported")
            value = TypeAdapter(self.kind.models[section.target.level]).validate_json(dumps(spec[self.kind.name]))
            again.append(replace(section, wanted=self.kind.wanted(value, prune=False), prune=False))
        self.check_no_changes(again)

    def meet_odd_responses(self, sections: Sequence[Section]) -> None:
        """Read responses that are not as documented: an error of a kind's code would end a run."""
        self.step = "read odd responses"
        for section in sections:
            for part in self.kind.parts:
                for response in ODD:
                    reader: Any = _Odd(response)
                    read_part(reader, part, section.target, section.wanted.get(part.name, {}))

    def check_no_changes(self, sections: Sequence[Section]) -> None:
        """Check that a plan is empty."""
        left = [
            f"{type(change).__name__.lower()} {change.address.name or change.address.title}"
            for change in self.plan(sections).changes
        ]
        self.expect(not left, f"a second plan has changes: {', '.join(left)}")

    def plan(self, sections: Sequence[Section]) -> Plan:
        """Return a plan, and check that it has no problems."""
        plan = draw_plan(_desired(sections), self.client, self.kinds)
        problems = [f"{problem.address.name or problem.address.title}: {problem.reason}" for problem in plan.problems]
        self.expect(not problems, f"the plan has problems: {'; '.join(problems)}")
        return plan

    def requests(self) -> list[str]:
        """Return the requests since the last time."""
        lines = [f"{entry['method']} {entry['target']}" for entry in self.sandbox.log()]
        self.sandbox.clear_log()
        return lines

    def expect(self, truth: object, otherwise: str) -> None:
        """Raise if a condition does not hold."""
        _expect(truth, f"{self.kind.name}, {self.step} ({self.dialect} dialect): {otherwise}")


class _Ending:
    """A service that takes some requests, and then no more."""

    def __init__(self, client: Client, write_count: int) -> None:
        self._client, self._writes = client, write_count

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def send(self, request: Request, **more: Any) -> Json:
        """Carry out a write, unless so many were carried out already."""
        self._writes -= 1
        if self._writes < 0:
            raise Stopped(str(request), "the run has ended")
        return self._client.send(request, **more)


class _Odd:
    """A reader that answers everything with one response."""

    def __init__(self, odd_response: Json) -> None:
        self.response = odd_response

    def get(self, path: str) -> Json:
        """Return the response to any path."""
        del path
        return self.response

    recall = get

    def pages(self, path: str, *, whole: bool = False) -> list[Json]:
        """Return the response as the only entry of a list."""
        del whole
        return [self.get(path)]


def _desired(sections: Iterable[Section]) -> DesiredState:
    targets = {section.target: DesiredTarget(section.target, (section,)) for section in sections}
    return DesiredState(tuple(targets.values()), digest="")


def _renamed(item: Resource, name: Key) -> Resource:
    return item.model_copy(update={"renamed_from": (name,)})


def _needed(item: Resource, part: Collection, name: Key) -> Resource:
    """Return the fields that a creation needs; all fields if these alone make no object."""
    needed = only(item, [*part.writes.required, *part.writes.immutable])
    return needed if _is_whole(needed, part, name) else item


def _is_whole(item: Resource, part: Collection, name: Key) -> bool:
    """Return whether the fields are enough for a new object."""
    return not [*become(type(item)(), item).errors(), *part.names.rules(name, item, True)]
