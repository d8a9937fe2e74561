"""The life of a milestone."""

from collections.abc import Mapping

import pytest
from pydantic import ValidationError

from reconciler.kinds.milestones import MILESTONES
from reconciler.model.item import sentences
from reconciler.model.protocols import Request
from reconciler.service import Client
from tests.building import section
from tests.engine_driver import EngineDriver, failures
from tests.kinds.out_of_band import group_in, project_in, rewriting

URL = "projects/acme%2Fapi/milestones"
PROJECT = "GET projects/acme%2Fapi"


def put(engine: EngineDriver, *milestones: Mapping[str, object]) -> None:
    """Let the project have these milestones and no others."""
    with rewriting(engine) as state:
        project_in(state)["milestones"] = list(milestones)


def titles(engine: EngineDriver) -> list[str]:
    return [each["title"] for each in project_in(engine.sandbox.state())["milestones"]]


@pytest.mark.untraced
def test_the_life_of_a_milestone(engine: EngineDriver) -> None:
    def step(value: object, *, prune: bool = False) -> list[str]:
        return engine.step(section("milestones", value, prune=prune))

    assert step({"1.0": {"description": "First", "start_date": "2026-01-01", "due_date": "2026-02-01"}, "0.9": {}}) == [
        f'POST {URL} {{"title": "0.9"}}',
        f'POST {URL} {{"title": "1.0", "description": "First", "start_date": "2026-01-01", "due_date": "2026-02-01"}}',
    ]
    assert step({"1.0": {"due_date": "2026-03-01", "state": "closed"}}) == [
        f'PUT {URL}/2 {{"due_date": "2026-03-01", "state_event": "close"}}'
    ]
    assert step({"1.0": {"description": None, "start_date": None, "state": "active"}}) == [
        f'PUT {URL}/2 {{"description": null, "start_date": null, "state_event": "activate"}}'
    ]
    assert step({"1.0.0": {"renamed_from": ["1.0", "one"]}}) == [f'PUT {URL}/2 {{"title": "1.0.0"}}']
    assert step({"1.0.0": None}) == [f"DELETE {URL}/2"]
    assert step({}, prune=True) == [f"DELETE {URL}/1"]


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("fields", "sent"),
    [
        ({"description": "Two"}, '{"description": "Two"}'),
        ({"description": None}, '{"description": null}'),
        ({"description": ""}, '{"description": null}'),
        ({"start_date": "2026-01-02"}, '{"start_date": "2026-01-02"}'),
        ({"start_date": None}, '{"start_date": null}'),
        ({"due_date": "2026-02-02"}, '{"due_date": "2026-02-02"}'),
        ({"due_date": None}, '{"due_date": null}'),
        ({"state": "closed"}, '{"state_event": "close"}'),
    ],
)
def test_each_field_is_updated_alone_and_the_rest_stays(
    engine: EngineDriver, fields: dict[str, object], sent: str
) -> None:
    before = {"title": "1.0", "description": "One", "start_date": "2026-01-01", "due_date": "2026-02-01"}
    put(engine, {"id": 7, **before})
    assert engine.step(section("milestones", {"1.0": fields})) == [f"PUT {URL}/7 {sent}"]
    after = project_in(engine.sandbox.state())["milestones"][0]
    expected = {"state": "active"} | before | {name: value or None for name, value in fields.items()}
    assert {name: after[name] for name in expected} == expected


def test_a_milestone_created_closed_takes_two_requests(engine: EngineDriver) -> None:
    assert engine.step(section("milestones", {"done": {"state": "closed", "description": ""}})) == [
        f'POST {URL} {{"title": "done"}}',
        f'PUT {URL}/1 {{"state_event": "close"}}',
    ]


def test_an_empty_item_is_content_with_whatever_milestone_there_is(engine: EngineDriver) -> None:
    put(engine, {"title": "1.0", "description": "kept", "due_date": "2026-02-01", "state": "closed"})
    assert engine.step(section("milestones", {"1.0": {}})) == []
    assert engine.step(section("milestones", {"1.1": {}})) == [f'POST {URL} {{"title": "1.1"}}']


def test_what_must_not_exist_and_does_not_is_in_order(engine: EngineDriver) -> None:
    assert engine.step(section("milestones", {"1.0": None})) == []


def test_a_plan_reads_the_list_once_and_asks_whether_the_project_is_archived_before_it_changes_any(
    engine: EngineDriver,
) -> None:
    read = f"GET {URL}?include_ancestors=true&per_page=100&page=1"
    engine.plan(section("milestones", {"1.0": None}))
    assert engine.requests() == [read]
    engine.plan(section("milestones", {"1.0": {}}))
    assert engine.requests() == [read, PROJECT]


def test_what_no_manifest_mentions_is_reported_and_not_touched(engine: EngineDriver) -> None:
    put(engine, {"title": "b"}, {"title": "a"}, {"title": "1.0"})
    before = engine.sandbox.state()
    wanted = section("milestones", {"1.0": {}})
    assert [each.address.name for each in engine.plan(wanted).findings_of("unmanaged")] == ["a", "b"]
    assert engine.step(wanted) == []
    assert engine.sandbox.state() == before


def test_pruning_deletes_what_is_not_listed_after_all_else(engine: EngineDriver) -> None:
    put(engine, {"id": 1, "title": "old"}, {"id": 2, "title": "1.0"}, {"id": 3, "title": "older"})
    assert engine.step(section("milestones", {"1.0": {"state": "closed"}, "1.1": {}}, prune=True)) == [
        f'POST {URL} {{"title": "1.1"}}',
        f'PUT {URL}/2 {{"state_event": "close"}}',
        f"DELETE {URL}/1",
        f"DELETE {URL}/3",
    ]
    assert titles(engine) == ["1.0", "1.1"]


@pytest.mark.untraced
@pytest.mark.parametrize("old", ["1.0", ["1.0"], ["0.9", "1.0"]], ids=str)
def test_a_rename_keeps_the_milestone_and_is_done_once(engine: EngineDriver, old: object) -> None:
    put(engine, {"id": 5, "title": "1.0", "description": "kept"})
    wanted = section("milestones", {"2.0": {"renamed_from": old, "state": "closed"}}, prune=True)
    assert engine.step(wanted) == [f'PUT {URL}/5 {{"state_event": "close", "title": "2.0"}}']
    assert engine.step(wanted) == []
    assert titles(engine) == ["2.0"]


def test_a_rename_of_what_is_not_there_creates(engine: EngineDriver) -> None:
    assert engine.step(section("milestones", {"2.0": {"renamed_from": "1.0", "due_date": "2026-02-01"}})) == [
        f'POST {URL} {{"title": "2.0", "due_date": "2026-02-01"}}'
    ]


def test_a_rename_whose_both_names_are_live_is_a_problem_and_touches_neither(engine: EngineDriver) -> None:
    put(engine, {"title": "1.0"}, {"title": "2.0"})
    wanted = section("milestones", {"2.0": {"renamed_from": "1.0", "state": "closed"}, "3.0": {}}, prune=True)
    assert engine.problems(wanted) == [
        'milestone.None: both this name and the former "1.0" are live; delete one of them'
    ]
    assert engine.changes(wanted) == ["+ milestone 3.0"]


def test_two_live_milestones_of_one_title_are_a_problem(engine: EngineDriver) -> None:
    put(engine, {"id": 4, "title": "1.0"}, {"id": 3, "title": "1.0"})
    assert engine.problems(section("milestones", {"1.0": {"state": "closed"}})) == [
        "milestone.None: 2 objects have this name (IDs 3, 4); expected one"
    ]
    assert engine.problems(section("milestones", {"2.0": {"renamed_from": "1.0"}})) == [
        'milestone.None: 2 objects have the former name "1.0" (IDs 3, 4); expected one'
    ]
    assert engine.step(section("milestones", {"1.0": None})) == [f"DELETE {URL}/3", f"DELETE {URL}/4"]


def test_a_due_date_that_does_not_go_with_the_live_start_date_is_a_problem(engine: EngineDriver) -> None:
    put(engine, {"id": 1, "title": "a", "start_date": "2026-02-01"}, {"id": 2, "title": "b", "due_date": "2026-02-01"})
    wanted = section("milestones", {"a": {"due_date": "2026-02-01"}, "b": {"start_date": "2026-03-01"}})
    assert engine.problems(wanted) == [
        "milestone.due_date: due_date must be after start_date, which is 2026-02-01",
        "milestone.due_date: due_date must be after start_date, which is 2026-03-01",
    ]
    assert engine.changes(wanted) == []


def test_dates_that_clash_are_moved_together(engine: EngineDriver) -> None:
    put(engine, {"id": 1, "title": "a", "start_date": "2026-01-01", "due_date": "2026-02-01"})
    wanted = section("milestones", {"a": {"start_date": "2026-03-01", "due_date": "2026-04-01"}})
    assert engine.step(wanted) == [f'PUT {URL}/1 {{"start_date": "2026-03-01", "due_date": "2026-04-01"}}']


def test_blanks_around_a_title_are_not_part_of_it(engine: EngineDriver) -> None:
    assert engine.step(section("milestones", {" 1.0 ": {}})) == [f'POST {URL} {{"title": "1.0"}}']
    assert titles(engine) == ["1.0"]
    assert engine.step(section("milestones", {" 1.0": {"state": "closed"}}, prune=True)) == [
        f'PUT {URL}/1 {{"state_event": "close"}}'
    ]
    assert engine.step(section("milestones", {"2.0 ": {"renamed_from": " 1.0"}})) == [f'PUT {URL}/1 {{"title": "2.0"}}']


def test_titles_are_compared_with_regard_to_case(engine: EngineDriver) -> None:
    put(engine, {"title": "beta"})
    assert engine.step(section("milestones", {"Beta": {}})) == [f'POST {URL} {{"title": "Beta"}}']
    assert titles(engine) == ["beta", "Beta"]


def test_a_title_must_not_be_blank() -> None:
    assert MILESTONES.name_error(" \t") == "a title must not be blank"
    assert MILESTONES.name_error("1.0") is None


def test_a_date_is_a_day_of_the_calendar() -> None:
    for impossible in ("2026-02-30", "2026-13-01", "0000-01-01"):
        with pytest.raises(ValidationError, match=f"not a day of the calendar: {impossible}"):
            section("milestones", {"1.0": {"due_date": impossible}})
    others: list[object] = ["2026-2-3", "20260203", "2026-W01-1", "2026-02-03T00:00", "tomorrow", "", 20260203]
    for other in others:
        with pytest.raises(ValidationError, match="valid date"):
            section("milestones", {"1.0": {"due_date": other}})


@pytest.mark.parametrize("description", [False, 0, [], {}], ids=repr)
def test_a_description_is_a_text_or_null(description: object) -> None:
    with pytest.raises(ValidationError, match="valid string"):
        section("milestones", {"1.0": {"description": description}})


@pytest.mark.untraced
def test_more_than_a_page_of_milestones_is_read_page_by_page(engine: EngineDriver) -> None:
    put(engine, *({"id": number, "title": f"m{number:03}"} for number in range(1, 206)))
    wanted = section("milestones", {f"m{number:03}": {} for number in range(1, 205)}, prune=True)
    assert engine.changes(wanted) == ["- milestone m205"]
    pages = [f"GET {URL}?include_ancestors=true&per_page=100&page={page}" for page in (1, 2, 3)]
    assert engine.requests() == [*pages, PROJECT]
    assert engine.step(wanted) == [f"DELETE {URL}/205"]


def test_exactly_one_page_of_milestones_takes_one_read(engine: EngineDriver) -> None:
    put(engine, *({"title": f"m{number:03}"} for number in range(100)))
    assert len(list(engine.plan(section("milestones", {})).findings_of("unmanaged"))) == 100
    assert engine.requests() == [f"GET {URL}?include_ancestors=true&per_page=100&page=1"]


def test_a_title_that_a_group_above_has_is_a_problem_of_the_plan(engine: EngineDriver, dialect: str) -> None:
    put(engine, {"id": 3, "title": "old"}, {"id": 4, "title": "0.9"})
    with rewriting(engine) as state:
        group_in(state)["milestones"] = [{"title": "1.0"}, {"title": "2.0"}]
        group = f"group {'acme' if dialect == 'deployed' else group_in(state)['id']}"
    wanted = section("milestones", {" 1.0": {}, "1.1": {}, "2.0": {"renamed_from": "old"}}, prune=True)
    plan = engine.plan(wanted)
    assert engine.requests() == [f"GET {URL}?include_ancestors=true&per_page=100&page=1", PROJECT]
    reason = "already uses this name, which must be unique in a group and everything below it; leave it out here, or choose another name"
    assert [f"{each.address.name}: {each.reason}; {each.fix}" for each in plan.problems] == [
        f" 1.0: {group} {reason}",
        f"2.0: {group} {reason}",
    ]
    assert [(target.sections, target.findings_of("unmanaged")) for target in plan.targets] == [({"milestones": 2}, ())]
    engine.apply(plan)
    assert engine.writes() == [f'POST {URL} {{"title": "1.1"}}', f"DELETE {URL}/4"]


def test_a_title_that_a_group_takes_meanwhile_is_refused(engine: EngineDriver, dialect: str) -> None:
    put(engine, {"id": 3, "title": "1.0"})
    plan = engine.plan(section("milestones", {"1.1": {}, "2.0": {"renamed_from": "1.0"}, "3.0": {}}))
    with rewriting(engine) as state:
        group_in(state)["milestones"] = [{"title": "1.1"}, {"title": "2.0"}]
    taken = "already being used for another group or project milestone."
    shown = f"title: {taken}" if dialect == "spec" else f'Failed to {{}} milestone {{{{:title=>["{taken}"]}}}}'
    assert failures(engine.apply(plan)) == [
        f"failed: milestone 1.1: POST {URL}: 400 {shown.format('create')}",
        f"failed: milestone 2.0: PUT {URL}/3: 400 {shown.format('update')}",
    ]
    assert titles(engine) == ["1.0", "3.0"]


def test_a_title_is_another_where_the_service_keeps_the_difference(engine: EngineDriver) -> None:
    """The service takes blanks off, and leaves a no-break space where it is."""
    put(engine, {"id": 1, "title": "\u00a01.0"}, {"id": 2, "title": "rc"}, {"id": 3, "title": "2.0"})
    wanted = section("milestones", {"1.0": {}, "RC": {}, "\t2.0\n": {}})
    hints = {change.address.name: "; ".join(sentences(change, "hint")) for change in engine.plan(wanted).changes}
    alike = "already exists, and differs only in blanks, capitals or characters that look alike"
    assert hints == {"1.0": f"'\\xa01.0' {alike}", "RC": f"'rc' {alike}"}
    engine.step(wanted)
    assert titles(engine) == ["\u00a01.0", "rc", "2.0", "1.0", "RC"]
    assert engine.changes(wanted) == []


def test_an_archived_project_shows_its_milestones_and_refuses_to_change_them(engine: EngineDriver) -> None:
    put(engine, {"id": 1, "title": "1.0"}, {"id": 2, "title": "0.9"})
    wanted = section("milestones", {"1.0": {"state": "closed"}, "1.1": {}, "0.9": None})
    plan = engine.plan(wanted)
    with rewriting(engine) as state:
        project_in(state)["archived"] = True
    assert engine.problems(section("milestones", {"1.0": {}})) == []
    assert engine.problems(wanted) == ["milestone.None: the project is archived"]
    assert engine.changes(wanted) == []
    assert failures(engine.apply(plan)) == [
        "failed: milestone 1.1: the project is archived; unarchive it, or leave the section out "
        f"(POST {URL}: 403 Forbidden)",
        "skipped: milestone 1.0: the project is archived",
        "skipped: milestone 0.9: the project is archived",
    ]
    assert engine.requests() == [f'POST {URL} {{"title": "1.1"}}', PROJECT]


def test_a_refusal_in_spite_of_the_role_is_said_to_be_one(engine: EngineDriver) -> None:
    plan = engine.plan(section("milestones", {"1.0": {}}))
    engine.sandbox.set_faults([{"kind": "status", "status": 403, "method": "POST"}])
    assert failures(engine.apply(plan)) == [
        f"failed: milestone 1.0: POST {URL}: 403 Forbidden; the token's owner is Owner there, which suffices: "
        "ask who administers the service what forbids it"
    ]
    assert engine.requests() == [f'POST {URL} {{"title": "1.0"}}', PROJECT]


def test_without_issues_and_merge_requests_milestones_cannot_be_read(engine: EngineDriver) -> None:
    with rewriting(engine) as state:
        project_in(state).update(issues_enabled=False, merge_requests_enabled=False)
    wanted = section("milestones", {"1.0": {}})
    assert engine.problems(wanted) == [
        "milestone.None: cannot be read: switched off in the project: issues and merge requests"
    ]
    assert engine.changes(wanted) == []


def test_what_another_writer_created_after_the_plan_is_told_as_theirs_and_what_they_deleted_is_done(
    engine: EngineDriver,
) -> None:
    put(engine, {"id": 1, "title": "a"}, {"id": 2, "title": "b"})
    plan = engine.plan(section("milestones", {"a": {"state": "closed"}, "b": None, "c": {}, "d": {}}))
    with Client(engine.sandbox.api_url, "bob-token") as bob:
        bob.send(Request("DELETE", f"{URL}/1"))
        bob.send(Request("DELETE", f"{URL}/2"))
        bob.send(Request("POST", URL, {"title": "c"}))
    assert failures(engine.apply(plan)) == [
        "stale: milestone c: somebody else made the same change at the same time",
        f"failed: milestone a: PUT {URL}/1: 404 Not found",
    ]
    assert titles(engine) == ["c", "d"]
