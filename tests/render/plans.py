"""Plans and reports as hypothesis makes them up: any text, any fields, every kind, and targets that are created."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from reconciler.document.document import RunDocument, with_findings
from reconciler.document.guard import Limits
from reconciler.document.plans import make_report, rename, with_plan
from reconciler.engine.compare.renames import RenameHint
from reconciler.model.creation import IMPORT_ROUTES, Archive, Creation, Import, Namespace, Visibility, creation_of
from reconciler.model.diff import AsRead, Fields
from reconciler.model.endpoints import Collection
from reconciler.model.exceptions import DeclaredException
from reconciler.model.item import (
    ACTIONS,
    Action,
    Change,
    Create,
    Delete,
    Finding,
    Keep,
    Outcome,
    Status,
    Update,
    excepted_at,
    not_applicable_at,
    problem_at,
    unmanaged_at,
)
from reconciler.model.kind import Kind, Part
from reconciler.model.plan import Plan, TargetPlan
from reconciler.model.protocols import Json, Method, Request
from reconciler.model.targets import PATHLESS, Address, Key, Level, Target
from tests.building import KINDS, SectionPlan, noted, target_plan
from tests.render.samples import Traffic, tree

Found = TypeVar("Found")

patiently = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""For tests that may run on a busy machine."""

# Strategies are made once, here: to make one takes longer than to draw from it.
texts = st.text(max_size=12)
numbers = st.integers(1, 10**12)
names: st.SearchStrategy[Key] = texts | numbers
few = st.integers(0, 2)
maybe_text, maybe_number, maybe_name = st.none() | texts, st.none() | numbers, st.none() | names
some_texts: st.SearchStrategy[tuple[str, ...]] = st.lists(texts, max_size=2).map(tuple)
some_names: st.SearchStrategy[tuple[Key, ...]] = st.lists(names, max_size=2).map(tuple)
moments = st.datetimes(datetime(2020, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - they must be naive

methods: st.SearchStrategy[Method] = st.sampled_from(["POST", "PUT", "PATCH", "DELETE"])

json_values: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
fields: st.SearchStrategy[Fields] = st.dictionaries(texts, json_values, max_size=3)
reads = st.builds(
    AsRead,
    maybe_number,
    some_names,
    fields,
    st.dictionaries(texts, texts, max_size=2),
)


levels, references = st.sampled_from(Level), names.filter(bool)


@st.composite
def scopes(draw: st.DrawFn, level: Level | None = None) -> Target:
    """A user, a group or a project, by path or by number."""
    chosen = level or draw(levels)
    return Target(chosen, None if chosen in PATHLESS else draw(references))


hints = st.builds(
    RenameHint, texts, texts, texts, st.lists(texts, min_size=1, max_size=2).map(tuple), texts, st.integers(1, 10**6)
)


belows, booleans, maybe_fields = st.sampled_from(["", "/7", "/{id}"]), st.booleans(), st.none() | fields


def request(draw: st.DrawFn, scope: Target, part: Part) -> Request:
    """A write to a part of a target."""
    below = draw(belows)
    target = scope.url
    if isinstance(scope.ref, str) and draw(booleans):
        target = f"{scope.level}s/{draw(numbers)}/"
    return Request(draw(methods), f"{target}{part.suffix}{below}", draw(maybe_fields))


PARTS = {kind.name: st.sampled_from(kind.parts) for kind in KINDS.values()}
kinds_of = {level: st.sampled_from([each for each in KINDS.values() if level in each.models]) for level in Level}
actions = st.sampled_from([Create, Update, Delete])


def change(draw: st.DrawFn, target: Target, kind: Kind) -> Change:
    """A change to a section of a target."""
    part = draw(PARTS[kind.name])
    address = Address(target, kind.name, part.name, part.title, draw(maybe_name))
    sent = tuple(request(draw, target, part) for _ in range(draw(few)))
    match draw(actions):
        case action if action is Create:
            delivers = isinstance(part, Collection) and bool(part.secret_field)
            former = draw(some_names)
            target_id = draw(maybe_number)
            return Create(address, draw(fields), sent, target_id, delivers=delivers, notes=noted(former=former))
        case action if action is Update:
            old, new = draw(fields), draw(fields)
            return Update(address, old, new, sent, draw(reads), draw(maybe_name), noted(page=draw(texts)))
        case _:
            losses = draw(some_texts)
            return Delete(
                address,
                draw(fields),
                sent,
                draw(reads),
                draw(maybe_number),
                noted(losses=losses, page=draw(texts)),
            )


def some(*parts: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    """Up to two tuples: what an address has below its section, and some more."""
    return st.lists(st.tuples(st.tuples(texts, texts, maybe_name), *parts), max_size=2)


numbers_of_objects, change_counts = st.integers(0, 300), st.integers(0, 3)
some_problems, some_told = some(texts, maybe_text), some(texts)
some_unmanaged = some(maybe_number, booleans, maybe_text, maybe_text)
some_excepted = some(st.none() | st.sampled_from(ACTIONS), fields, fields, st.dates(), texts, texts)


maybe_reason = st.lists(texts, max_size=1)


def _excepted(where: Address, action: Action | None, before: Fields, after: Fields, *rest: Any) -> Finding:
    until, reason, origin = rest
    return excepted_at(where, action, before, after, until=until, reason=reason, origin=origin)


def _widened(where: Address, reason: str) -> Finding:
    return Finding(where, "widened", reason)


def _inherited(where: Address, holder: str) -> Finding:
    return Finding(where, "inherited", f"is inherited from {holder}", data={"holder": holder})


def _hidden(where: Address, field: str) -> Finding:
    return Finding(where, "hidden", f"keeps {field} that this token cannot see", field=field)


def section_plan(draw: st.DrawFn, target: Target, kind: Kind) -> SectionPlan:
    """What will happen to a section of a target."""

    def all_of(type_: Callable[..., Found], rows: st.SearchStrategy[list[Any]]) -> tuple[Found, ...]:
        return tuple(type_(Address(target, kind.name, *names), *rest) for names, *rest in draw(rows))

    return SectionPlan(
        kind.name,
        draw(numbers_of_objects),
        tuple(change(draw, target, kind) for _ in range(draw(change_counts))),
        (
            *all_of(problem_at, some_problems),
            *all_of(_excepted, some_excepted),
            *all_of(unmanaged_at, some_unmanaged),
            *(not_applicable_at(target, kind.name, text) for text in draw(maybe_reason)),
            *all_of(_widened, some_told),
            *all_of(_inherited, some_told),
            *all_of(_hidden, some_told),
        ),
    )


visibilities: st.SearchStrategy[Visibility] = st.sampled_from(["private", "internal", "public"])


created_levels, paths = st.sampled_from([Level.GROUP, Level.PROJECT]), texts.filter(bool)
archives = st.none() | st.builds(Archive, texts.map(Path), texts)
parameters = st.dictionaries(texts.filter(lambda name: name != "token_env"), json_values, max_size=2)
sources = st.none() | st.builds(Import, st.sampled_from([*IMPORT_ROUTES]), texts, parameters)
last_steps = texts.filter(lambda name: "/" not in name)
maybe_visibility = st.none() | visibilities


@st.composite
def creations(draw: st.DrawFn) -> SectionPlan:
    """The creation of a group or a project."""
    level, path = draw(created_levels), draw(paths)
    namespace = Namespace(path, draw(maybe_number), draw(visibilities))
    creation = Creation(
        draw(texts),
        draw(maybe_visibility),
        draw(archives) if level is Level.GROUP else None,
        draw(sources) if level is Level.PROJECT else None,
    )
    target = Target(level, f"{path}/{draw(last_steps)}")
    return SectionPlan("", changes=(creation_of(target, creation, namespace),))


some_created, any_scope = st.lists(creations(), max_size=1), scopes()
some_exceptions = st.lists(
    st.builds(DeclaredException, texts, st.dates(), texts, maybe_name, some_texts, texts), max_size=2
).map(tuple)
some_kinds = {level: st.lists(each, max_size=2, unique_by=lambda kind: kind.name) for level, each in kinds_of.items()}


@st.composite
def target_plans(draw: st.DrawFn) -> TargetPlan:
    """What will happen to a target."""
    created = draw(some_created)
    target = created[0].changes[0].address.target if created else draw(any_scope)
    return target_plan(
        target,
        (*created, *(section_plan(draw, target, kind) for kind in draw(some_kinds[target.level]))),
        draw(texts),
        exceptions=draw(some_exceptions),
    )


SETTINGS = KINDS["approval_settings"]
some_settings = st.dictionaries(st.sampled_from(sorted(SETTINGS.models[Level.PROJECT].model_fields)), booleans)
projects = scopes(Level.PROJECT)


@st.composite
def dependents(draw: st.DrawFn) -> Keep:
    """Settings that will be planned again."""
    address = Address(draw(projects), SETTINGS.name, SETTINGS.name, SETTINGS.name)
    return Keep(address, after=draw(some_settings))


some_targets = st.lists(target_plans(), max_size=3, unique_by=lambda target: str(target.target))
some_dependents = st.lists(dependents(), max_size=2, unique_by=lambda keep: keep.address.target)
some_hints, requests_made = st.lists(hints, max_size=2), st.integers(0, 10**6)
some_limits = st.builds(Limits, maybe_number, maybe_number)


@st.composite
def saved_plans(draw: st.DrawFn) -> RunDocument:
    """A plan of up to three targets and its header."""
    targets = draw(some_targets)
    again = {keep.address.target: keep for keep in draw(some_dependents)}
    empty = RunDocument(
        service=draw(texts),
        created_at=draw(moments),
        tool_version=draw(texts),
        manifests_digest=draw(texts),
        requests_made=draw(requests_made),
        limits=draw(some_limits),
    )
    plan = Plan(
        tuple(
            target.adding(again[target.target])
            if target.target in again and SETTINGS.name in target.sections
            else target
            for target in targets
        )
    )
    return with_findings(with_plan(empty, plan), *map(rename, draw(some_hints)))


any_plan, statuses = saved_plans(), st.sampled_from(Status)


@st.composite
def reports(draw: st.DrawFn) -> RunDocument:
    """What became of a plan, of which some targets were never begun."""
    saved = draw(any_plan)
    begun = [target for target in tree(saved).targets if draw(booleans)]
    outcomes = [
        target.with_outcomes(tuple(Outcome(change, draw(statuses), draw(texts)) for change in target.changes))
        for target in begun
    ]
    started = draw(moments)
    return make_report(saved, outcomes, started, Traffic(3, 4), started + timedelta(minutes=1))
