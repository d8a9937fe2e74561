"""Plans and reports as hypothesis makes them up: any text, any fields, every kind, and targets that are created."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from reconciler.apply import Outcome, Status
from reconciler.document.document import RunDocument, saying
from reconciler.document.guard import Limits
from reconciler.document.tree import make_report, rename, with_plan
from reconciler.model.creation import IMPORT_ROUTES, Archive, Creation, Import, Namespace, Visibility, creation_of
from reconciler.model.diff import AsRead, Fields
from reconciler.model.endpoints import Collection
from reconciler.model.exceptions import DeclaredException
from reconciler.model.item import (
    ACTIONS,
    Change,
    Create,
    Delete,
    Finding,
    Update,
    excepted_at,
    not_applicable_at,
    problem_at,
    unmanaged_at,
)
from reconciler.model.kind import Kind, Part
from reconciler.model.plan import (
    Plan,
    SectionPlan,
    TargetPlan,
)
from reconciler.model.protocols import Json, Method, Request
from reconciler.model.state import Section
from reconciler.model.targets import PATHLESS, Address, Key, Level, Target
from reconciler.planning.renames import RenameHint
from tests.building import KINDS, noted, section
from tests.render.samples import Traffic, tree

patiently = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""For tests that may run on a busy machine."""

texts = st.text(max_size=12)
numbers = st.integers(1, 10**12)
names: st.SearchStrategy[Key] = texts | numbers
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
    st.none() | numbers,
    st.lists(names, max_size=2).map(tuple),
    fields,
    st.dictionaries(texts, texts, max_size=2),
)


@st.composite
def scopes(draw: st.DrawFn, level: Level | None = None) -> Target:
    """A user, a group or a project, by path or by number."""
    chosen = level or draw(st.sampled_from(Level))
    return Target(chosen, None if chosen in PATHLESS else draw(names.filter(bool)))


hints = st.builds(
    RenameHint, texts, texts, texts, st.lists(texts, min_size=1, max_size=2).map(tuple), texts, st.integers(1, 10**6)
)


@st.composite
def requests(draw: st.DrawFn, scope: Target, part: Part) -> Request:
    """A write to a part of a target."""
    below = draw(st.sampled_from(["", "/7", "/{id}"]))
    target = scope.url
    if isinstance(scope.ref, str) and draw(st.booleans()):
        target = f"{scope.level}s/{draw(numbers)}/"
    return Request(draw(methods), f"{target}{part.suffix}{below}", draw(st.none() | fields))


@st.composite
def changes(draw: st.DrawFn, target: Target, kind: Kind) -> Change:
    """A change to a section of a target."""
    part = draw(st.sampled_from(kind.parts))
    address = Address(target, kind.name, part.name, part.title, draw(st.none() | names))
    sent = tuple(draw(st.lists(requests(target, part), max_size=2)))
    match draw(st.sampled_from([Create, Update, Delete])):
        case action if action is Create:
            delivers = isinstance(part, Collection) and bool(part.secret_field)
            former = tuple(draw(st.lists(names, max_size=2)))
            target_id = draw(st.none() | numbers)
            return Create(address, draw(fields), sent, target_id, delivers=delivers, notes=noted(former=former))
        case action if action is Update:
            old, new = draw(fields), draw(fields)
            return Update(address, old, new, sent, draw(reads), draw(st.none() | names), noted(page=draw(texts)))
        case _:
            losses = tuple(draw(st.lists(texts, max_size=2)))
            return Delete(
                address,
                draw(fields),
                sent,
                draw(reads),
                draw(st.none() | numbers),
                noted(losses=losses, page=draw(texts)),
            )


def _inherited(address: Address) -> st.SearchStrategy[Finding]:
    return texts.map(
        lambda holder: Finding(address, "inherited", f"is inherited from {holder}", data={"holder": holder})
    )


@st.composite
def section_plans(draw: st.DrawFn, target: Target) -> SectionPlan:
    """What will happen to a section of a target."""
    kind = draw(st.sampled_from([each for each in KINDS.values() if target.level in each.models]))

    def addresses() -> st.SearchStrategy[Address]:
        return st.builds(Address, st.just(target), st.just(kind.name), texts, texts, st.none() | names)

    words = st.none() | texts
    excepted = st.builds(
        excepted_at,
        addresses(),
        st.none() | st.sampled_from(ACTIONS),
        fields,
        fields,
        until=st.dates(),
        reason=texts,
        origin=texts,
    )
    unmanaged = st.builds(unmanaged_at, addresses(), st.none() | numbers, st.booleans(), words, words)
    problems = st.builds(problem_at, addresses(), texts, st.none() | texts)
    left_out = st.builds(not_applicable_at, st.just(target), st.just(kind.name), texts)
    return SectionPlan(
        kind.name,
        draw(st.integers(0, 300)),
        tuple(draw(st.lists(changes(target, kind), max_size=3))),
        (
            *draw(st.lists(problems, max_size=2)),
            *draw(st.lists(excepted, max_size=2)),
            *draw(st.lists(unmanaged, max_size=2)),
            *draw(st.lists(left_out, max_size=1)),
            *draw(st.lists(st.builds(Finding, addresses(), st.just("widened"), texts), max_size=2)),
            *draw(st.lists(addresses().flatmap(_inherited), max_size=2)),
            *draw(st.lists(st.builds(Finding, addresses(), st.just("hidden"), texts, field=texts), max_size=2)),
        ),
    )


visibilities: st.SearchStrategy[Visibility] = st.sampled_from(["private", "internal", "public"])


@st.composite
def creations(draw: st.DrawFn) -> SectionPlan:
    """The creation of a group or a project."""
    level, path = draw(st.sampled_from([Level.GROUP, Level.PROJECT])), draw(texts.filter(bool))
    namespace = Namespace(path, draw(st.none() | numbers), draw(visibilities))
    archives = st.builds(Archive, texts.map(Path), texts)
    given = st.dictionaries(texts.filter(lambda name: name != "token_env"), json_values, max_size=2)
    source = st.builds(Import, st.sampled_from([*IMPORT_ROUTES]), texts, given)
    creation = Creation(
        draw(texts),
        draw(st.none() | visibilities),
        draw(st.none() | archives) if level is Level.GROUP else None,
        draw(st.none() | source) if level is Level.PROJECT else None,
    )
    target = Target(level, f"{path}/{draw(texts.filter(lambda name: '/' not in name))}")
    return SectionPlan("", changes=(creation_of(target, creation, namespace),))


@st.composite
def target_plans(draw: st.DrawFn) -> TargetPlan:
    """What will happen to a target."""
    created = draw(st.lists(creations(), max_size=1))
    target = created[0].changes[0].address.target if created else draw(scopes())
    exceptions = st.builds(
        DeclaredException, texts, st.dates(), texts, st.none() | names, st.lists(texts, max_size=2).map(tuple), texts
    )
    return TargetPlan(
        target,
        (*created, *draw(st.lists(section_plans(target), max_size=2, unique_by=lambda own: own.section))),
        draw(texts),
        tuple(draw(st.lists(exceptions, max_size=2))),
    )


@st.composite
def dependents(draw: st.DrawFn) -> Section:
    """Settings that will be planned again."""
    kind = KINDS["approval_settings"]
    known = kind.models[Level.PROJECT].model_fields
    wanted = draw(st.dictionaries(st.sampled_from(sorted(known)), st.booleans()))
    return section(kind.name, wanted, draw(scopes(Level.PROJECT)))


@st.composite
def saved_plans(draw: st.DrawFn) -> RunDocument:
    """A plan of up to three targets and its header."""
    targets = draw(st.lists(target_plans(), max_size=3, unique_by=lambda target: str(target.target)))
    places = {(target.target, own.section) for target in targets for own in target.sections}
    again = draw(st.lists(dependents(), max_size=2, unique_by=lambda own: own.target))
    empty = RunDocument(
        service=draw(texts),
        created_at=draw(moments),
        tool_version=draw(texts),
        manifests_digest=draw(texts),
        requests_made=draw(st.integers(0, 10**6)),
        limits=draw(st.builds(Limits, st.none() | numbers, st.none() | numbers)),
    )
    plan = Plan(tuple(targets), tuple(own for own in again if (own.target, own.kind) in places))
    return saying(with_plan(empty, plan), *map(rename, draw(st.lists(hints, max_size=2))))


@st.composite
def reports(draw: st.DrawFn) -> RunDocument:
    """What became of a plan, of which some targets were never begun."""
    saved = draw(saved_plans())
    begun = [target for target in tree(saved).targets if draw(st.booleans())]
    outcomes = [
        target.with_outcomes(
            tuple(Outcome(change, draw(st.sampled_from(Status)), draw(texts)) for change in target.changes)
        )
        for target in begun
    ]
    started = draw(moments)
    return make_report(saved, outcomes, started, Traffic(3, 4), started + timedelta(minutes=1))
