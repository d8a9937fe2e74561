"""The life of an epic of a group, and of its references to labels and to other epics."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from pydantic import ValidationError

from reconciler.document.stored import load_plan, save
from reconciler.kinds.epics import EPICS
from tests.building import ACME, KINDS, section
from tests.cli_runner import CliRunner
from tests.engine_driver import EngineDriver, failures
from tests.items import changes_of
from tests.kinds.out_of_band import group_in, rewriting, speaking_with
from tests.render.samples import saved_plan, spoilt, tree

URL = "groups/acme/epics"
LIST = f"GET {URL}?include_descendant_groups=false&order_by=created_at&sort=asc&per_page=100&page=1"
LABELS = "GET groups/acme/labels?include_ancestor_groups=true&only_group_labels=true&per_page=100&page=1"


def wanted(value: object, *, prune: bool = False) -> Any:
    return section("epics", value, ACME, prune=prune)


def put(engine: EngineDriver, *epics: Mapping[str, object], labels: tuple[str, ...] = ()) -> None:
    """Let the group have these epics and labels and no others."""
    with rewriting(engine) as state:
        group_in(state)["epics"] = list(epics)
        group_in(state)["labels"] = [{"name": name} for name in labels]


def live(engine: EngineDriver, title: str) -> dict[str, Any]:
    """The epic of that title."""
    return next(each for each in group_in(engine.sandbox.state())["epics"] if each["title"] == title)


@pytest.mark.untraced
def test_the_life_of_an_epic(engine: EngineDriver) -> None:
    put(engine, labels=("roadmap", "new"))
    assert engine.step(
        wanted(
            {
                "A child": {"parent": "Roadmap", "labels": ["roadmap", "new "], "confidential": True},
                "Roadmap": {"description": "All of it", "start_date": "2027-01-01", "confidential": True},
            }
        )
    ) == [
        f'POST {URL} {{"title": "Roadmap", "description": "All of it", "confidential": true, '
        '"start_date_fixed": "2027-01-01", "start_date_is_fixed": true}',
        f'POST {URL} {{"title": "A child", "labels": "new,roadmap", "confidential": true, "parent_id": 1}}',
    ]
    assert engine.step(wanted({"Roadmap": {"due_date": "2027-12-31", "state": "closed", "description": ""}})) == [
        f'PUT {URL}/1 {{"description": null, "state_event": "close", "start_date_fixed": "2027-01-01", '
        '"start_date_is_fixed": true, "due_date_fixed": "2027-12-31", "due_date_is_fixed": true}'
    ]
    assert engine.step(wanted({"Roadmap": {"start_date": None, "due_date": None, "state": "opened"}})) == [
        f'PUT {URL}/1 {{"state_event": "reopen", "start_date_fixed": null, "start_date_is_fixed": false, '
        '"due_date_fixed": null, "due_date_is_fixed": false}'
    ]
    assert engine.step(wanted({"A child": {"labels": []}})) == [f'PUT {URL}/2 {{"labels": ""}}']
    assert engine.step(wanted({"A child": {"parent": None, "state": "closed"}})) == [
        f"DELETE {URL}/1/epics/2",
        f'PUT {URL}/2 {{"state_event": "close"}}',
    ]
    assert engine.step(wanted({"Child": {"renamed_from": "A child", "parent": 1}})) == [
        f'PUT {URL}/2 {{"parent_id": 1, "title": "Child"}}'
    ]
    assert engine.step(wanted({"Child": {"parent": None}})) == [f"DELETE {URL}/1/epics/2"]
    assert engine.step(wanted({"Child": None})) == [f"DELETE {URL}/2"]
    assert engine.step(wanted({}, prune=True)) == [f"DELETE {URL}/1"]


def test_an_epic_that_is_created_closed_takes_two_requests(engine: EngineDriver) -> None:
    put(engine, {"id": 70, "title": "Other"})
    assert engine.step(wanted({"Done": {"state": "closed"}})) == [
        f'POST {URL} {{"title": "Done"}}',
        f'PUT {URL}/2 {{"state_event": "close"}}',
    ]


def test_an_epic_whose_parent_is_renamed_keeps_it(engine: EngineDriver) -> None:
    put(engine, {"id": 50, "title": "Roadmap"}, {"id": 51, "title": "Child", "parent_id": 50})
    assert engine.step(wanted({"Plan": {"renamed_from": "Roadmap"}, "Child": {"parent": "Plan"}})) == [
        f'PUT {URL}/1 {{"title": "Plan"}}'
    ]
    assert engine.step(wanted({"Child": {"parent": 50}})) == []


def test_a_saved_plan_may_refer_to_what_it_creates_and_renames(engine: EngineDriver) -> None:
    epics = [{"id": 50, "title": "Roadmap"}, {"id": 51, "title": "Child"}, {"id": 52, "title": "Other"}]
    put(engine, *epics, labels=("new",))
    plan = engine.plan(
        wanted(
            {
                "Above": {"labels": ["new"]},
                "Child": {"parent": "Above"},
                "Plan": {"renamed_from": "Roadmap"},
                "Other": {"parent": "Plan"},
            }
        )
    )
    text = save(saved_plan(plan))
    assert failures(engine.apply(tree(load_plan(text, KINDS)), recheck=True)) == []
    assert engine.writes() == [
        f'POST {URL} {{"title": "Above", "labels": "new"}}',
        f'PUT {URL}/1 {{"title": "Plan"}}',
        f'PUT {URL}/2 {{"parent_id": 53}}',
        f'PUT {URL}/3 {{"parent_id": 50}}',
    ]
    assert engine.requests().count(LABELS) == 1


@pytest.mark.parametrize("parent_id", [50, {"created": "Plan"}])
def test_an_edited_reference_is_refused(engine: EngineDriver, parent_id: object) -> None:
    put(engine, {"id": 50, "title": "Roadmap"}, {"id": 51, "title": "Child"}, {"id": 52, "title": "Other"})
    text = save(saved_plan(engine.plan(wanted({"Child": {"parent": "Other"}}))))

    def edit(plan: dict[str, Any]) -> None:
        changes_of(plan)[0]["requests"][0]["body"] = {"parent_id": parent_id}

    told = failures(engine.apply(tree(load_plan(spoilt(text, edit), KINDS)), recheck=True))
    assert [each.partition(": the saved plan was edited")[0] for each in told] == ["stale: epic Child"]
    assert engine.writes() == []


def test_labels_of_a_saved_plan_that_cannot_be_checked_are_not_written(engine: EngineDriver) -> None:
    put(engine, labels=("new",))
    plan = engine.plan(wanted({"Roadmap": {"labels": ["new"]}}))
    for status, reason in (
        (500, "stale: epic Roadmap: it cannot be planned: cannot be checked: GET groups/acme/labels"),
        (401, "skipped: epic Roadmap: the service refuses the token: 401 Unauthorized"),
    ):
        engine.sandbox.set_faults([{"kind": "status", "status": status, "match": "/labels"}])
        (told,) = failures(engine.apply(plan, recheck=True))
        engine.sandbox.set_faults([])
        assert told.startswith(reason)


def test_a_child_of_what_could_not_be_created_is_not_created(engine: EngineDriver) -> None:
    put(engine, {"id": 51, "title": "Child"})
    plan = engine.plan(wanted({"Above": {}, "Below": {"parent": "Above"}, "Child": {"parent": "Above"}}))
    engine.sandbox.set_faults([{"kind": "status", "status": 422, "method": "POST", "nth": 1}])
    told = failures(engine.apply(plan))
    engine.sandbox.set_faults([])
    assert told[1:] == [
        'failed: epic Below: epic "Above" was not created, and this refers to it',
        'failed: epic Child: epic "Above" was not created, and this refers to it',
    ]


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"New": {"parent": "Nowhere"}}, 'no epic "Nowhere" exists, and this plan does not create one first'),
        ({"Child": {"parent": "Nowhere"}}, 'no epic "Nowhere" exists, and this plan does not create one first'),
        ({"Child": {"parent": "Twice"}}, '2 objects have the name "Twice" (IDs 52, 53); expected one'),
        ({"Child": {"parent": "Other"}, "Other": None}, 'this plan deletes the epic "Other"'),
        ({"Child": {"labels": ["knwon", "known"]}}, 'unknown name "knwon"'),
        ({"New": {"labels": ["b", "a"]}}, 'unknown names "a", "b"'),
    ],
)
def test_what_is_not_there_is_a_problem_that_names_it(
    engine: EngineDriver, value: dict[str, Any], problem: str
) -> None:
    twins = [{"id": number, "title": "Twice"} for number in (52, 53)]
    put(engine, {"id": 51, "title": "Child"}, *twins, {"id": 54, "title": "Other"}, labels=("known",))
    field = "labels" if "labels" in next(iter(value.values())) else "parent"
    assert engine.problems(wanted(value)) == [f"epic.{field}: {problem}"]
    assert [each for each in engine.changes(wanted(value)) if not each.startswith("-")] == []


def test_those_that_would_be_above_each_other_are_problems(engine: EngineDriver) -> None:
    value = {"A": {"parent": "B"}, "B": {"parent": "A"}, "C": {}}
    assert engine.problems(wanted(value)) == [
        "epic.parent: would refer to itself: A > B > A",
        "epic.parent: would refer to itself: B > A > B",
    ]
    assert engine.changes(wanted(value)) == ["+ epic C"]
    put(engine, {"id": 50, "title": "Above"}, {"id": 51, "title": "Below", "parent_id": 50})
    assert engine.problems(wanted({"Above": {"parent": "Below"}})) == [
        "epic.parent: would refer to itself: Above > Below > Above"
    ]


def test_two_epics_change_places(engine: EngineDriver) -> None:
    put(engine, {"id": 50, "title": "Above"}, {"id": 51, "title": "Below", "parent_id": 50})
    plan = engine.plan(wanted({"Above": {"parent": "Below"}, "Below": {"parent": None}}))
    assert failures(engine.apply(plan, recheck=True)) == []
    assert engine.writes() == [f"DELETE {URL}/1/epics/51", f'PUT {URL}/1 {{"parent_id": 51}}']


def test_two_live_epics_of_one_title_are_a_problem_and_referred_to_by_id(engine: EngineDriver) -> None:
    twins = [{"id": number, "title": "Twice"} for number in (52, 53)]
    put(engine, {"id": 51, "title": "Child", "parent_id": 52}, *twins)
    assert engine.problems(wanted({"Twice": {}})) == ["epic.None: 2 objects have this name (IDs 52, 53); expected one"]
    assert engine.step(wanted({"Child": {"parent": 53}})) == [f'PUT {URL}/1 {{"parent_id": 53}}']


def test_labels_are_looked_up_only_where_no_epic_has_them(engine: EngineDriver) -> None:
    put(engine, {"title": "Roadmap", "labels": ["a", "b"]}, {"title": "Other"}, labels=("a", "b", "c"))
    engine.plan(wanted({"Roadmap": {"labels": ["b", "a"]}, "Other": {"labels": ["b"]}}))
    assert engine.requests() == [LIST]
    engine.plan(wanted({"Other": {"labels": ["c"]}, "New": {"labels": ["c"]}}))
    assert engine.requests() == [LIST, LABELS]
    engine.sandbox.set_faults([{"kind": "status", "status": 403, "match": "/labels"}])
    problems = engine.problems(wanted({"Other": {"labels": ["c"]}}))
    engine.sandbox.set_faults([])
    assert problems == ["epic.labels: cannot be checked: GET groups/acme/labels: 403 Forbidden"]


def test_a_parent_in_another_group_is_named_by_its_id_and_removed_there(engine: EngineDriver) -> None:
    put(engine, {"id": 51, "title": "Child", "parent_id": 60})
    with rewriting(engine) as state:
        group_in(state, "acme/tools")["epics"] = [{"id": 60, "title": "Tools"}]
    assert engine.changes(wanted({"Child": {"parent": 60}})) == []
    assert engine.problems(wanted({"Child": {"parent": None}})) == [
        "epic.parent: its parent, the epic with ID 60, is in another group: remove it there"
    ]


def test_what_is_hidden_goes_from_below_and_what_is_shown_from_above(engine: EngineDriver) -> None:
    put(engine, {"id": 50, "title": "Above"}, {"id": 51, "title": "Below", "parent_id": 50})
    for confidential, order in ((True, [2, 1]), (False, [1, 2])):
        sent = f'{{"confidential": {json.dumps(confidential)}}}'
        fields = {"confidential": confidential}
        assert engine.step(wanted({"Above": fields, "Below": fields})) == [f"PUT {URL}/{iid} {sent}" for iid in order]


def test_what_the_service_drops_is_not_done(engine: EngineDriver) -> None:
    put(engine, {"id": 50, "title": "Above"}, {"id": 51, "title": "Below", "parent_id": 50})
    plan = engine.plan(wanted({"Above": {"confidential": True}, "New": {"parent": 999}}))
    expected = ["dropped by the service: epic Above: the service kept its own confidential"]
    expected.insert(0, "dropped by the service: epic New: the service kept its own parent")
    assert failures(engine.apply(plan)) == expected


@pytest.mark.parametrize("dialect", ["spec"], indirect=True)
def test_dates_that_only_editors_see_are_a_problem_for_others(engine: EngineDriver) -> None:
    put(engine, {"title": "Roadmap", "start_date": "2027-01-01", "start_date_is_fixed": True})
    with rewriting(engine) as state:
        group_in(state)["members"][1]["role"] = "guest"
    with speaking_with(engine, "bob-token"):
        assert engine.problems(wanted({"Roadmap": {"start_date": "2027-02-01"}})) == [
            "epic.start_date: only users who may edit epics can see this: make the token's owner a Planner"
        ]


def test_fields_that_a_server_does_not_show_cannot_be_written() -> None:
    found = EPICS.read(ACME, {"id": 1, "iid": 1, "title": "Roadmap"})
    assert sorted(found.read_only) == ["confidential", "due_date", "labels", "start_date", "state"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"description": "text\n/close\nmore"}, "a line that starts with /close is a quick action"),
        ({"description": "x" * 1_048_577}, "at most 1048576 characters"),
        ({"labels": ["a,b"]}, 'a label must not be blank or contain a comma: "a,b"'),
        ({"labels": [" "]}, "a label must not be blank"),
        ({"labels": [2027]}, 'a label is text: write "2027" in quotes'),
        ({"labels": [None]}, "a label is text"),
        ({"parent": " "}, "a title must not be blank; null means no parent"),
        ({"labels": "a"}, "valid tuple"),
        ({"start_date": "2027-02-30"}, "not a day of the calendar: 2027-02-30"),
        ({"start_date": "soon"}, "valid date"),
        ({"title": "x"}, "not permitted"),
    ],
)
def test_what_cannot_be_is_refused(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        wanted({"Roadmap": fields})


def test_an_epic_does_not_end_before_it_starts(engine: EngineDriver) -> None:
    assert engine.problems(wanted({"Roadmap": {"start_date": "2027-02-01", "due_date": "2027-01-31"}})) == [
        "epic.due_date: cannot be created: due_date must not be before start_date, which is 2027-02-01"
    ]


def test_an_export_of_a_group_and_a_rehearsal_of_it(cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    state = cli_runner.sandbox.state()
    group_in(state)["labels"] = [{"name": "roadmap"}]
    group_in(state)["epics"] = [
        {"id": 50, "iid": 4, "title": "Roadmap", "labels": ["roadmap"], "start_date": "2027-01-01"},
        {"id": 51, "title": "Child", "parent_id": 50, "due_date": "2027-12-31", "due_date_is_fixed": True},
    ]
    cli_runner.sandbox.replace_state(state)
    assert cli_runner("export --group acme --section epics -o out --state state.json").code == 0
    text = (cli_runner.folder / "out/acme.yaml").read_text()
    assert "      due_date: 2027-12-31\n      parent: Roadmap\n" in text
    assert "      start_date: null\n" in text
    cli_runner.sandbox.replace_state(json.loads((cli_runner.folder / "state.json").read_text()))
    assert [each["iid"] for each in group_in(cli_runner.sandbox.state())["epics"]] == [5, 4]
    monkeypatch.setenv("RECONCILER_TOKEN", "rehearsal")
    in_order = "No changes: 1 target is in order. 1 request was made to plan.\n"
    assert cli_runner("plan out").out == in_order
