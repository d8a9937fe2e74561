"""What must hold for every kind there is, and for every kind there will be."""

import json
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from reconciler.engine.read import read_part
from reconciler.errors import NotFound, ServiceError
from reconciler.model.diff import as_read, differences, fields_of
from reconciler.model.endpoints import Collection, Singleton
from reconciler.model.kind import Part
from reconciler.model.protocols import Json, Reader
from reconciler.model.resource import Item, LiveRecord, Objects, Resource
from reconciler.model.state import LivePart, Unreadable
from reconciler.model.targets import Key, Level, Target
from reconciler.sandbox import Sandbox
from reconciler.testing import check_kind
from tests.answering import Answering
from tests.building import KINDS
from tests.conftest import EXAMPLES
from tests.engine_driver import EngineDriver
from tests.trust.all_writes import service, wanted

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "reconciler"

EVERY_KIND = sorted(KINDS)

Recording = dict[str, Json]
"""By path, what was answered."""


def test_every_kind_has_a_route_a_test_and_an_example() -> None:
    places = ["reconciler/sandbox/routes/{}.py", "tests/kinds/test_{}.py", "examples/{}.yaml"]
    files = [place.format(name) for name in EVERY_KIND for place in places]
    assert [file for file in files if not (ROOT / file).is_file()] == []


def test_every_kind_has_the_name_of_its_module() -> None:
    modules = {path.stem for path in (PACKAGE / "kinds").glob("*.py")} - {"__init__"}
    assert set(EVERY_KIND) == modules


@pytest.mark.parametrize("name", EVERY_KIND)
def test_every_kind_names_the_section_of_the_specification_that_its_module_names(name: str) -> None:
    first_line = (PACKAGE / "kinds" / f"{name}.py").read_text().partition("\n")[0]
    assert re.findall(r"\(spec (.+)\)", first_line) == ([KINDS[name].spec] if KINDS[name].spec else [])


def models(name: str) -> Iterator[type[Resource]]:
    """The types of a kind's sections, or of their items."""
    for model in KINDS[name].models.values():
        if isinstance(model, type) and issubclass(model, Resource):
            yield model
        else:
            (item, _) = get_args(get_args(model)[1])
            assert issubclass(item, Item)
            yield item


def scopes(name: str) -> tuple[Target, ...]:
    """The targets of the example of a kind."""
    return tuple(section.target for section in wanted(name))


@pytest.mark.parametrize("name", EVERY_KIND)
def test_every_kind_goes_through_its_life(name: str) -> None:
    route = import_module(f"reconciler.sandbox.routes.{name}")
    check_kind(KINDS[name], EXAMPLES / f"{name}.yaml", route, state=service(), token="ada-token")


class Alike(Answering):
    """A reader that answers every request with the same JSON, and every list with one such entry."""

    def __init__(self, answer: Json) -> None:
        self.answer = answer

    def get(self, path: str) -> Json:
        assert path
        return self.answer

    def pages(self, path: str, *, whole: bool = False) -> list[Json]:
        del whole
        return [self.get(path)]


class Replaying(Answering):
    """A reader that answers from a recording: by path, a JSON value."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording

    def get(self, path: str) -> Json:
        if path not in self.recording:
            raise NotFound(f"GET {path}", "404 Not Found")
        return self.recording[path]


class Recorder(Answering):
    """A reader that keeps what another one was answered."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.recording: Recording = {}

    def get(self, path: str) -> Json:
        return self.recording.setdefault(path, self.reader.get(path))

    def pages(self, path: str, *, whole: bool = False) -> list[Json]:
        return list(self.recording.setdefault(path, self.reader.pages(path, whole=whole)))


NUMBERS = {"acme/payments/api": 100, "acme/payments/lib": 101}


def reached(part: Part, target: Target) -> Target:
    """The target as the path of a part names it: where that takes a number, by that."""
    by_number = isinstance(part, Collection) and part.listing.needs_numeric_id
    return Target(target.level, NUMBERS[str(target.ref)]) if by_number else target


PLACES = [
    (kind.name, reached(part, target), part)
    for kind in KINDS.values()
    if (EXAMPLES / f"{kind.name}.yaml").is_file()
    for target in scopes(kind.name)
    for part in kind.parts
]
PARTS = [pytest.param(part, target, id=f"{target.level}-{name}-{part.name}") for name, target, part in PLACES]
COLLECTIONS = [
    pytest.param(part, target, id=part.name)
    for _, target, part in PLACES
    if isinstance(part, Collection) and part.id_field
]
"""Those whose objects have IDs."""


@pytest.fixture(scope="module", params=["spec", "deployed"])
def recordings(shared_sandbox: Sandbox, request: pytest.FixtureRequest) -> dict[str, Recording]:
    """By part, all answers that reading it takes where the example of its kind was applied."""
    found: dict[str, Recording] = {}
    for kind in KINDS.values():
        with EngineDriver(shared_sandbox, service(request.param)) as engine:
            engine.step(*wanted(kind.name))
            for part in kind.parts:
                recorder = Recorder(engine.client)
                for target in scopes(kind.name):
                    read_part(recorder, part, reached(part, target), all_fields(part))
                found[part.name] = recorder.recording
    return found


def all_fields(part: Part) -> dict[str, Json]:
    """A declaration of all fields there are, as null: whatever can be read for it, is."""
    kinds = [kind for kind in KINDS.values() if part in kind.parts]
    return dict.fromkeys(name for kind in kinds for model in models(kind.name) for name in model.model_fields)


def assert_sound(live: LivePart, part: Part) -> None:
    """Whatever was answered, what comes of it can be planned with."""
    if isinstance(live, Unreadable):
        assert live.reason
        return
    assert isinstance(live, LiveRecord if isinstance(part, Singleton) else Objects)
    for found in [live] if isinstance(live, LiveRecord) else live.own:
        assert differences(found.resource, found) == ({}, {})
        assert all(is_number(number) for number in (found.id, found.owner_id) if number is not None)
        assert all(isinstance(name, str) or is_number(name) for name in found.names)
        assert bool(found.names) is part.is_collection
        read = as_read(found)
        json.dumps([read.id, read.names, dict(read.fields), dict(read.read_only)], allow_nan=False)
        json.dumps([dict(fields_of(found.resource)), dict(found.unknown)], allow_nan=False)


def is_number(value: Key) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


@pytest.mark.untraced
@pytest.mark.parametrize(("part", "target"), PARTS)
def test_what_the_sandbox_answers_is_read(part: Part, target: Target, recordings: dict[str, Recording]) -> None:
    live = read_part(Replaying(recordings[part.name]), part, target, all_fields(part))
    assert live != Objects()
    assert not isinstance(live, Unreadable)
    assert_sound(live, part)


WORTH = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
    st.sampled_from(["1", "custom", "closed", "2026-12-31", "https://h/groups/a", "https://[", "/../"]),
)

ANYTHING = st.recursive(
    WORTH,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)),
    max_leaves=8,
)

patiently = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.untraced
@pytest.mark.parametrize(("part", "target"), PARTS)
@given(answer=ANYTHING)
@example(answer=None)
@example(answer=[])
@example(answer={})
@settings(patiently, max_examples=20)
def test_any_answer_is_read_or_is_unreadable(part: Part, target: Target, answer: Json) -> None:
    for declared in ({}, all_fields(part)):
        assert_sound(read_part(Alike(answer), part, target, declared), part)


@st.composite
def nearly(draw: st.DrawFn, answer: Json) -> Json:
    """An answer that is right save in one place; a list stays a list."""
    if not isinstance(answer, list):
        return altered(draw, answer)
    place = draw(st.sampled_from(range(len(answer))))
    return [altered(draw, entry) if number == place else entry for number, entry in enumerate(answer)]


def altered(draw: st.DrawFn, value: Json) -> Json:
    """The same with one thing within it replaced or left out."""
    deeper = bool(value) and isinstance(value, dict | list) and draw(st.integers(0, 7)) > 0
    if not deeper:
        return draw(ANYTHING)
    copy = value.copy()
    place = draw(st.sampled_from(sorted(copy) if isinstance(copy, dict) else range(len(copy))))
    if draw(st.integers(0, 7)) == 0:
        del copy[place]
    else:
        copy[place] = altered(draw, copy[place])
    return copy


@pytest.mark.untraced
@pytest.mark.parametrize(("part", "target"), PARTS)
@given(data=st.data())
@settings(patiently, max_examples=10)
def test_an_answer_that_is_nearly_right_is_read_or_is_unreadable(
    part: Part, target: Target, recordings: dict[str, Recording], data: st.DataObject
) -> None:
    recording = {path: data.draw(nearly(answer)) for path, answer in recordings[part.name].items()}
    assert_sound(read_part(Replaying(recording), part, target, all_fields(part)), part)


@pytest.mark.untraced
@pytest.mark.parametrize("number", [1e999, float("nan"), 1.5, "1", "1/../2", [1], {}, ""], ids=repr)
@pytest.mark.parametrize(("part", "target"), COLLECTIONS)
def test_a_number_that_is_none_makes_an_answer_unreadable(
    part: Collection, target: Target, recordings: dict[str, Recording], number: Json
) -> None:
    answer = recordings[part.name][part.path(target)]
    right = next(
        entry for entry in answer if isinstance(live := read_part(Alike(entry), part, target, {}), Objects) and live.own
    )
    assert read_part(Alike(right | {part.id_field: number}), part, target, {}) == Unreadable(
        f"GET {target.url}{part.suffix}: unexpected response: the body does not have the documented structure"
    )
    live = read_part(Alike(right | {f"{target.level}_id": number}), part, target, {})
    assert isinstance(live, Objects)
    assert [record.owner_id for record in live.own] == [None]


class Failing(Answering):
    """A reader that is told no."""

    def get(self, path: str) -> Json:
        raise ServiceError(f"GET {path}", "418 no")


@pytest.mark.parametrize("record", [[], {}, {"id": "100"}, {"id": True}], ids=repr)
def test_a_target_that_does_not_tell_its_number_leaves_what_takes_it_unreadable(record: Json) -> None:
    kind = KINDS["error_tracking_client_keys"]
    live = read_part(Alike(record), kind.part("keys"), Target(Level.PROJECT, "acme/api"), {})
    assert live == Unreadable(
        "GET projects/acme%2Fapi: unexpected response: the body does not have the documented structure"
    )


@pytest.mark.untraced
@pytest.mark.parametrize(("part", "target"), PARTS)
def test_a_refusal_makes_a_part_unreadable_and_says_which(part: Part, target: Target) -> None:
    live = read_part(Failing(), part, target, {})
    assert live == Unreadable(f"GET {part.path(target)}: 418 no")
