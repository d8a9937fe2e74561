"""The life of a trigger token, whose value is delivered once and never seen again."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from reconciler.engine.apply import ApplyOptions, apply_plan
from reconciler.engine.read import read_part
from reconciler.errors import OutputFailed
from reconciler.kinds.trigger_tokens import TOKENS
from reconciler.model.protocols import Json, Request
from reconciler.model.resource import Objects
from reconciler.service import Client
from tests.answering import Answering
from tests.building import API, KINDS, section
from tests.engine_driver import EngineDriver, failures
from tests.kinds.out_of_band import project_in, rewriting, speaking_with

URL = "projects/acme%2Fapi/triggers"


def wanted(value: object, *, prune: bool = False) -> Any:
    return section("trigger_tokens", value, prune=prune)


def token(description: str | None, owner: str = "ada", **more: object) -> dict[str, object]:
    return {"description": description, "owner": owner, **more}


def put(engine: EngineDriver, *tokens: Mapping[str, object]) -> None:
    """Let the project have these tokens and no others."""
    with rewriting(engine) as state:
        project_in(state)["trigger_tokens"] = list(tokens)


def kept(engine: EngineDriver) -> list[tuple[int, str | None]]:
    """The IDs and descriptions of all tokens, expired ones too."""
    return [(each["id"], each["description"]) for each in project_in(engine.sandbox.state())["trigger_tokens"]]


def test_the_life_of_a_trigger_token(engine: EngineDriver) -> None:
    def step(value: object, *, prune: bool = False) -> list[str]:
        return engine.step(wanted(value, prune=prune))

    assert step({"nightly": {}, "deploy": {}}) == [
        f'POST {URL} {{"description": "deploy"}}',
        f'POST {URL} {{"description": "nightly"}}',
    ]
    assert step({"nightly": {}}) == []
    assert step({"nightly build": {"renamed_from": "nightly"}}) == [f'PUT {URL}/2 {{"description": "nightly build"}}']
    assert step({"nightly build": {"renamed_from": ["nightly"]}, "deploy": None}) == [f"DELETE {URL}/1"]
    assert step({}, prune=True) == [f"DELETE {URL}/2"]


def test_the_value_of_a_created_token_is_delivered_and_appears_nowhere_else(engine: EngineDriver) -> None:
    value = wanted({"nightly": {}, "deploy": {}})
    plan = engine.plan(value)
    outcomes = engine.apply(plan)
    again = engine.plan(value)
    values = {each["description"]: each["token"] for each in project_in(engine.sandbox.state())["trigger_tokens"]}
    assert engine.tokens == values
    assert sorted(values) == ["deploy", "nightly"]
    seen = repr((plan, outcomes, again, engine.sandbox.log()))
    for secret in values.values():
        assert secret.startswith("glptt-")
        assert secret not in seen
        assert secret.removeprefix("glptt-")[:10] not in seen


def test_a_rename_delivers_nothing(engine: EngineDriver) -> None:
    put(engine, token("old"))
    engine.step(wanted({"new": {"renamed_from": "old"}}))
    assert engine.tokens == {}


def test_the_value_of_a_live_token_is_not_kept(engine: EngineDriver) -> None:
    put(engine, token("nightly", token="glptt-0123456789"), token("other", owner="bob", token="glptt-9876543210"))
    plan = engine.plan(wanted({"nightly": None}, prune=True))
    assert len(list(plan.changes)) == 2
    assert "0123" not in repr(plan)
    assert "9876" not in repr(plan)


def test_a_plan_reads_the_list_once_and_nothing_else(engine: EngineDriver) -> None:
    engine.plan(wanted({"nightly": {}}))
    assert engine.requests() == [f"GET {URL}?per_page=100&page=1"]


def test_what_must_not_exist_and_does_not_is_in_order(engine: EngineDriver) -> None:
    assert engine.step(wanted({"nightly": None})) == []


@pytest.mark.parametrize("old", ["old", ["older", "old"]], ids=str)
def test_one_s_own_token_is_renamed_in_place(engine: EngineDriver, old: object) -> None:
    put(engine, token("old", id=7))
    value = wanted({"new": {"renamed_from": old}}, prune=True)
    assert engine.step(value) == [f'PUT {URL}/7 {{"description": "new"}}']
    assert engine.step(value) == []


def test_another_s_token_cannot_be_renamed_and_stays(engine: EngineDriver) -> None:
    put(engine, token("old", owner="bob", id=7))
    value = wanted({"new": {"renamed_from": "old"}}, prune=True)
    assert engine.problems(value) == [
        "trigger token.None: the trigger token belongs to another user, and only its owner or an administrator may rename it"
    ]
    assert engine.changes(value) == []


def test_a_token_without_an_owner_cannot_be_renamed_either(engine: EngineDriver) -> None:
    put(engine, {"description": "old"})
    assert len(engine.problems(wanted({"new": {"renamed_from": "old"}}))) == 1


def test_an_administrator_renames_another_s_token_where_it_is_shown_whole(engine: EngineDriver, dialect: str) -> None:
    put(engine, token("old", owner="bob", id=7))
    value = wanted({"new": {"renamed_from": "old"}})
    with speaking_with(engine, "root-token"):
        if dialect == "deployed":
            assert engine.step(value) == [f'PUT {URL}/7 {{"description": "new"}}']
        else:
            assert (engine.changes(value), len(engine.problems(value))) == ([], 1)


def test_another_s_token_is_content_with_its_name_and_can_be_deleted(engine: EngineDriver) -> None:
    put(engine, token("kept", owner="bob", id=7), token("old", owner="bob", id=8))
    assert engine.step(wanted({"kept": {}, "old": None})) == [f"DELETE {URL}/8"]
    assert engine.step(wanted({}, prune=True)) == [f"DELETE {URL}/7"]


def test_a_rename_of_what_is_not_there_creates(engine: EngineDriver) -> None:
    assert engine.step(wanted({"new": {"renamed_from": "old"}})) == [f'POST {URL} {{"description": "new"}}']


def test_a_rename_whose_both_names_are_live_is_a_problem_and_touches_neither(engine: EngineDriver) -> None:
    put(engine, token("old"), token("new"))
    value = wanted({"new": {"renamed_from": "old"}}, prune=True)
    assert engine.problems(value) == [
        'trigger token.None: both this name and the former "old" are live; delete one of them'
    ]
    assert engine.changes(value) == []


def test_several_tokens_of_one_description_are_a_problem_where_one_is_wanted(engine: EngineDriver) -> None:
    put(engine, token("nightly", id=2), token("nightly", id=1), token("deploy", id=3))
    values: list[object] = [{"nightly": {}}, {"new": {"renamed_from": "nightly"}}]
    for value in values:
        assert len(engine.problems(wanted(value))) == 1
        assert engine.changes(wanted(value)) == []
    assert engine.problems(wanted({"nightly": {}})) == [
        "trigger token.None: 2 objects have this name (IDs 1, 2); expected one"
    ]


def test_several_tokens_of_one_description_go_together(engine: EngineDriver) -> None:
    put(engine, token("nightly", id=2), token("nightly", id=1), token("deploy", id=3))
    assert engine.step(wanted({"nightly": None})) == [f"DELETE {URL}/1", f"DELETE {URL}/2"]
    put(engine, token("nightly", id=2), token("nightly", id=1), token("deploy", id=3))
    assert engine.step(wanted({"deploy": {}}, prune=True)) == [f"DELETE {URL}/1", f"DELETE {URL}/2"]


@pytest.mark.untraced
def test_a_token_that_has_expired_is_gone_and_is_created_again(engine: EngineDriver) -> None:
    put(engine, token("nightly", id=1, expires_at="2026-02-28"), token("deploy", id=2, expires_at="2999-12-31"))
    value = wanted({"nightly": {}, "deploy": {}}, prune=True)
    assert engine.step(value) == [f'POST {URL} {{"description": "nightly"}}']
    assert kept(engine) == [(1, "nightly"), (2, "deploy"), (3, "nightly")]


def test_a_token_that_expires_after_the_plan_is_deleted_and_cannot_be_renamed(engine: EngineDriver) -> None:
    put(
        engine,
        token("a", id=1, expires_at="2026-03-02"),
        token("b", id=2, expires_at="2026-03-02"),
    )
    with rewriting(engine) as state:
        state["instance"]["now"] = "2026-03-01"
    plan = engine.plan(wanted({"a": None, "c": {"renamed_from": "b"}}))
    with rewriting(engine) as state:
        state["instance"]["now"] = "2026-03-03"
    assert failures(engine.apply(plan)) == [
        f"failed: trigger token c: PUT {URL}/2: 404 Not found",
    ]


def test_tokens_without_a_description_are_not_managed_and_can_be_pruned(engine: EngineDriver) -> None:
    put(engine, token(None, id=1), token("", id=2), token("nightly", id=3))
    value = wanted({"nightly": {}})
    assert [each.address.name for each in engine.plan(value).findings_of("unmanaged")] == ["", ""]
    assert engine.step(value) == []
    assert kept(engine) == [(1, None), (2, ""), (3, "nightly")]
    assert engine.step(wanted({"nightly": {}}, prune=True)) == [f"DELETE {URL}/1", f"DELETE {URL}/2"]


def test_a_description_must_not_be_blank() -> None:
    assert TOKENS.name_error("  ") == "a description must not be blank"
    assert TOKENS.name_error("nightly") is None


def test_more_than_a_page_of_tokens_is_read_page_by_page(engine: EngineDriver) -> None:
    put(engine, *(token(f"t{number:03}", id=number) for number in range(1, 103)))
    value = wanted({f"t{number:03}": {} for number in range(1, 102)}, prune=True)
    assert engine.changes(value) == ["- trigger token t102"]
    assert engine.requests() == [f"GET {URL}?per_page=100&page={page}" for page in (1, 2)]
    assert engine.step(value) == [f"DELETE {URL}/102"]


@pytest.mark.parametrize("why", [{"builds_enabled": False}, {"archived": True}], ids=str)
def test_tokens_cannot_be_read_without_builds_or_in_an_archive(engine: EngineDriver, why: dict[str, bool]) -> None:
    cause = "the project is archived" if "archived" in why else "switched off in the project: CI/CD"
    put(engine, token("old"))
    with rewriting(engine) as state:
        project_in(state).update(why)
    value = wanted({"nightly": {}}, prune=True)
    assert engine.problems(value) == [f"trigger token.None: cannot be read: {cause}"]
    assert engine.changes(value) == []


def test_a_token_that_another_writer_made_after_the_plan_is_not_made_twice(engine: EngineDriver) -> None:
    value = wanted({"nightly": {}})
    plan = engine.plan(value)
    with Client(engine.sandbox.api_url, "bob-token") as bob:
        bob.send(Request("POST", URL, {"description": "nightly"}))
    assert failures(engine.apply(plan, recheck=True)) == ["stale: trigger token nightly: it exists now"]
    assert failures(engine.apply(plan)) == ["stale: trigger token nightly: it exists now"]
    assert engine.requests() == [f"GET {URL}?per_page=100&page=1"]
    assert engine.tokens == {}


ROTATED = {"nightly": {"rotate_after": "90d"}}
LIST = f"GET {URL}?per_page=100&page=1"


def put_due(engine: EngineDriver, *others: Mapping[str, object]) -> None:
    """Let the project have a token that is due for rotation, and others, of this moment if they do not say otherwise."""
    now = datetime.now(UTC)
    due = token("nightly", id=1, created_at=(now - timedelta(days=90, hours=1)).isoformat())
    put(engine, due, *({"created_at": now.isoformat(), **each} for each in others))
    with rewriting(engine) as state:
        state["instance"]["now"] = datetime.now(UTC).isoformat()


def value_of(engine: EngineDriver, number: int) -> str:
    tokens = project_in(engine.sandbox.state())["trigger_tokens"]
    return str(next(each["token"] for each in tokens if each["id"] == number))


def test_a_token_that_is_too_old_gets_a_successor_and_goes_in_a_later_run(engine: EngineDriver) -> None:
    put_due(engine)
    assert failures(engine.apply(engine.plan(wanted(ROTATED)))) == []
    assert engine.writes() == [f'POST {URL} {{"description": "nightly"}}']
    assert engine.tokens == {"nightly": value_of(engine, 2)}
    assert engine.step(wanted(ROTATED)) == [f"DELETE {URL}/1"]
    assert engine.step(wanted(ROTATED)) == []


def test_a_saved_plan_of_a_rotation_makes_one_successor_however_often_it_is_applied(engine: EngineDriver) -> None:
    put_due(engine)
    plan = engine.plan(wanted(ROTATED))
    assert failures(engine.apply(plan, recheck=True)) == []
    assert engine.writes() == [f'POST {URL} {{"description": "nightly"}}']
    value = value_of(engine, 2)
    assert engine.tokens == {"nightly": value}
    engine.tokens.clear()
    assert failures(engine.apply(plan, recheck=True)) == []
    assert engine.writes() == []
    assert engine.tokens == {"nightly": value}
    put_due(engine, token("nightly", id=2, owner="bob"))
    assert failures(engine.apply(plan, recheck=True)) == [
        "stale: trigger token nightly: it cannot be planned: 2 objects have this name (IDs 1, 2); expected one; ID 2 belongs "
        "to another user"
    ]
    assert engine.writes() == []


@pytest.mark.parametrize("recheck", [False, True])
def test_before_a_token_goes_the_newest_of_its_successors_is_delivered_for_one_reading(
    engine: EngineDriver, recheck: bool
) -> None:
    put_due(engine, token("nightly", id=2), token("nightly", id=3), token("weekly", id=4))
    plan = engine.plan(wanted(ROTATED))
    assert failures(engine.apply(plan, recheck=recheck, verify=False)) == []
    assert engine.requests() == [LIST, f"DELETE {URL}/1", f"DELETE {URL}/2"]
    assert engine.tokens == {"nightly": value_of(engine, 3)}
    assert value_of(engine, 3) not in repr(plan)


def test_a_successor_that_is_created_in_the_same_run_needs_no_reading(engine: EngineDriver) -> None:
    long_ago = (datetime.now(UTC) - timedelta(days=400)).isoformat()
    put_due(engine, token("nightly", id=2, created_at=long_ago))
    assert failures(engine.apply(engine.plan(wanted(ROTATED)), verify=False)) == []
    assert engine.requests()[-2:] == [f'POST {URL} {{"description": "nightly"}}', f"DELETE {URL}/2"]
    assert engine.tokens == {"nightly": value_of(engine, 3)}


def test_nothing_is_deleted_whose_successor_is_gone_or_cannot_be_read_by_now(engine: EngineDriver) -> None:
    put_due(engine, token("nightly", id=2))
    plan = engine.plan(wanted(ROTATED))
    engine.client.send(Request("DELETE", f"{URL}/2"))
    assert failures(engine.apply(plan)) == ["stale: trigger token nightly: its successor (ID 2) no longer exists"]
    with rewriting(engine) as state:
        project_in(state)["archived"] = True
    assert failures(engine.apply(plan)) == [
        "failed: trigger token nightly: the value of its successor could not be read for delivery: "
        f"GET {URL}: 403 Forbidden"
    ]
    assert kept(engine) == [(1, "nightly")]
    assert engine.tokens == {}


@pytest.mark.parametrize("broken", [False, True], ids=["no sink", "a sink that fails"])
def test_nothing_is_deleted_whose_successor_cannot_be_delivered(engine: EngineDriver, broken: bool) -> None:
    def fail(*_: object) -> None:
        raise OutputFailed("the disk is full")

    put_due(engine, token("nightly", id=2), token("weekly", id=4))
    plan = engine.plan(wanted({**ROTATED, "weekly": None}))
    terms = ApplyOptions(deliver=fail if broken else None)
    assert failures(list(apply_plan(plan, engine.client, KINDS, terms))) == [
        "failed: trigger token nightly: the value of its successor could not be delivered: "
        + ("the disk is full" if broken else "no token sink is configured"),
        "skipped: trigger token weekly: a token could not be delivered, so the run was ended",
    ]
    assert engine.writes() == []


@pytest.mark.parametrize(
    ("told", "meant"),
    [
        ("2026-03-01T10:00:00Z", datetime(2026, 3, 1, 10, tzinfo=UTC)),
        ("2026-03-01T10:00:00.123Z", datetime(2026, 3, 1, 10, 0, 0, 123000, tzinfo=UTC)),
        ("2026-03-01T12:00:00+02:00", datetime(2026, 3, 1, 10, tzinfo=UTC)),
        ("2026-03-01T10:00:00", datetime(2026, 3, 1, 10, tzinfo=UTC)),
        (None, None),
    ],
)
def test_a_token_tells_when_it_was_created(told: str | None, meant: datetime | None) -> None:
    assert TOKENS.read(API, {"id": 1, "description": "nightly", "created_at": told}).created_at == meant


@pytest.mark.parametrize("told", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00"])
def test_a_token_from_the_edge_of_time_is_read_like_any_other(told: str) -> None:
    reader = Telling({"id": 1, "description": "nightly", "created_at": told})
    tokens = read_part(reader, TOKENS, API, {})
    assert isinstance(tokens, Objects)
    assert [token.names for token in tokens.own] == [("nightly",)]


class Telling(Answering):
    """A reader whose lists have one entry."""

    def __init__(self, entry: Json) -> None:
        self.entry = entry

    def pages(self, path: str, *, whole: bool = False) -> list[Json]:
        del whole
        assert path == URL
        return [self.entry]
