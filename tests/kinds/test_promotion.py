"""Milestones of groups, and the promotion of a project's milestone to one of its group."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

import pytest

from reconciler.document.plans import make_report
from reconciler.document.stored import load_plan, load_report, save
from reconciler.engine.apply.journal import Intent, Interrupted
from reconciler.engine.apply.settle import recover
from reconciler.engine.compare.revert import Reversal
from reconciler.engine.plan import draw_plan
from reconciler.engine.read import read_part
from reconciler.errors import PlanRefused
from reconciler.kinds.milestones import MILESTONES, complete
from reconciler.model.endpoints import Reading
from reconciler.model.exceptions import DeclaredException
from reconciler.model.item import sentences
from reconciler.model.plan import Plan
from reconciler.model.protocols import Json, Request
from reconciler.model.resource import Objects
from reconciler.model.state import DesiredState, DesiredTarget, Section
from reconciler.model.targets import Level, Target
from reconciler.service import Client
from tests.answering import Answering
from tests.building import ACME, API, KINDS, LIB, section
from tests.engine_driver import EngineDriver, failures
from tests.items import changes_of
from tests.kinds.out_of_band import group_in, rewriting
from tests.render.samples import saved_plan, spoilt, tree

TOOLS = Target(Level.GROUP, "acme/tools")
CLI = Target(Level.PROJECT, "acme/tools/cli")
URL = "groups/acme/milestones"
AROUND = "include_ancestors=true&include_descendants=true"
LIST = f"GET {URL}?{AROUND}&per_page=100&page=1"


def given(engine: EngineDriver, **milestones: Sequence[Mapping[str, Any]]) -> None:
    """Let groups and projects, by the last part of their paths, have these milestones and no others."""
    with rewriting(engine) as state:
        for place in (*state["groups"], *state["projects"]):
            place["milestones"] = list(milestones.get(place["path"].rpartition("/")[2], ()))


def titles(engine: EngineDriver) -> dict[str, list[str]]:
    """Return by path the titles of all milestones, of those that are not active with their state."""
    state = engine.sandbox.state()
    return {
        place["path"]: [
            each["title"] + (f" ({each['state']})" if each["state"] != "active" else "") for each in place["milestones"]
        ]
        for place in (*state["groups"], *state["projects"])
        if place["milestones"]
    }


def of_acme(milestones: Any, *, prune: bool = False) -> Section:
    return section("milestones", milestones, ACME, prune=prune)


def told(plan: Plan) -> list[str]:
    """Return the problems of a plan, with their remedies."""
    return [f"{each.address.target} {each.address.name}: {each.reason}; {each.fix}" for each in plan.problems]


def test_the_life_of_a_groups_milestone(engine: EngineDriver) -> None:
    given(engine, acme=[{"id": 7, "title": "old"}, {"id": 8, "title": "own"}], tools=[{"id": 9, "title": "below"}])
    wanted = of_acme({"1.0": {"due_date": "2026-02-01", "state": "closed", "promote": True}, "new": {}})
    plan = engine.plan(wanted)
    assert engine.requests() == [LIST]
    assert [each.address.name for each in plan.findings_of("unmanaged")] == ["old", "own"]
    assert engine.step(wanted) == [
        f'POST {URL} {{"title": "1.0", "due_date": "2026-02-01"}}',
        f'PUT {URL}/10 {{"state_event": "close"}}',
        f'POST {URL} {{"title": "new"}}',
    ]
    renamed = of_acme({"1.0": {"state": "active"}, "newer": {"renamed_from": "new"}, "own": None})
    assert engine.step(renamed) == [
        f'PUT {URL}/10 {{"state_event": "activate"}}',
        f'PUT {URL}/11 {{"title": "newer"}}',
        f"DELETE {URL}/8",
    ]
    assert engine.step(of_acme({"newer": {}}, prune=True)) == [f"DELETE {URL}/10", f"DELETE {URL}/7"]
    assert titles(engine) == {"acme": ["newer"], "acme/tools": ["below"]}


def test_a_projects_milestone_becomes_the_groups(engine: EngineDriver, dialect: str) -> None:
    given(
        engine,
        web=[{"id": 3, "title": "1.0", "description": "web's"}],
        api=[{"id": 5, "title": "1.0", "description": "api's", "state": "closed"}, {"id": 6, "title": "2.0"}],
        lib=[{"id": 4, "title": "2.0"}],
    )
    wanted = of_acme({"1.0": {"promote": True, "due_date": "2026-02-01"}, "2.0": {"promote": True}})
    plan = engine.plan(wanted)
    assert engine.requests() == [LIST]
    assert ["; ".join(sentences(each, "hint")) for each in plan.changes] == [
        "promoted from project acme/api; also takes the place of the one of project acme/web",
        "promoted from project acme/api; also takes the place of the one of project acme/lib",
    ]
    assert failures(engine.apply(plan)) == []
    looked = [LIST] if dialect == "deployed" else []
    assert engine.requests() == [
        "POST projects/100/milestones/5/promote",
        *looked,
        f'PUT {URL}/7 {{"due_date": "2026-02-01", "state_event": "close"}}',
        "POST projects/100/milestones/6/promote",
        LIST,
    ]
    assert titles(engine) == {"acme": ["1.0 (closed)", "2.0"]}
    assert group_in(engine.sandbox.state())["milestones"][0]["description"] == "api's"
    assert engine.step(wanted) == []
    assert engine.requests() == [LIST]


@pytest.mark.parametrize(("declared", "prune"), [({}, True), ({"1.0": None}, False)])
def test_what_a_group_takes_over_is_not_deleted_below_even_if_its_promotion_fails(
    engine: EngineDriver, declared: Any, prune: bool
) -> None:
    given(engine, api=[{"id": 5, "title": "1.0"}])
    plan = engine.plan(of_acme({"1.0": {"promote": True}}), section("milestones", declared, prune=prune))
    engine.sandbox.set_faults([{"kind": "status", "status": 403, "method": "POST", "match": "promote"}])
    assert len(failures(engine.apply(plan))) == 1
    assert engine.writes() == ["POST projects/100/milestones/5/promote"]
    assert titles(engine) == {"acme/api": ["1.0"]}


def test_a_closed_milestone_is_active_once_promoted(engine: EngineDriver) -> None:
    given(engine, api=[{"id": number, "title": f"{number}.0", "state": "closed"} for number in (1, 2)])
    assert engine.step(
        of_acme({f"{n}.0": {"promote": True, "state": s} for n, s in ((1, "active"), (2, "closed"))})
    ) == [
        "POST projects/100/milestones/1/promote",
        "POST projects/100/milestones/2/promote",
        f'PUT {URL}/4 {{"state_event": "close"}}',
    ]


def test_a_title_that_others_have_is_a_problem_and_nothing_is_written(engine: EngineDriver) -> None:
    given(
        engine,
        acme=[{"title": "top"}, {"title": "old"}],
        api=[
            {"title": "direct"},
            {"title": "both"},
            {"title": "renamed"},
            {"title": "dated", "start_date": "2026-03-01"},
        ],
        lib=[{"title": "direct"}],
        web=[{"title": "direct"}],
        tools=[{"title": "sub"}],
        cli=[{"title": "both"}, {"title": "deep"}],
    )
    plan = engine.plan(
        of_acme(
            {
                "direct": {},
                "both": {"promote": True},
                "sub": {"promote": True},
                "deep": {},
                "dated": {"promote": True, "due_date": "2026-02-01"},
                "renamed": {"renamed_from": "old"},
            }
        ),
        section("milestones", {"top": {}, "deep": {"promote": True}}, TOOLS),
    )
    below, another = (
        "which must be unique in a group and everything below it",
        "leave it out here, or choose another name",
    )
    promote = "declare `promote: true` to make it the group's, or choose another name"
    assert told(plan) == [
        f"group acme both: project acme/tools/cli already uses this name, {below}; {another}",
        f"group acme deep: project acme/tools/cli already uses this name, {below}; {another}",
        f"group acme direct: project acme/api (and 2 more) already uses this name, {below}; {promote}",
        f"group acme sub: group acme/tools already uses this name, {below}; {another}",
        "group acme dated: due_date must be after start_date, which is 2026-03-01; ",
        f"group acme renamed: project acme/api already uses this name, {below}; {promote}",
        f"group acme/tools top: group acme already uses this name, {below}; {another}",
    ]
    assert [(each.address.target, each.address.name) for each in plan.changes] == [(TOOLS, "deep")]


def test_what_a_plan_gives_the_group_no_target_below_may_declare(engine: EngineDriver) -> None:
    given(engine, acme=[{"id": 1, "title": "old"}], api=[{"id": 2, "title": "1.0"}, {"id": 3, "title": "gone"}])
    plan = engine.plan(
        of_acme({"1.0": {"promote": True}, "new": {}, "newer": {"renamed_from": "old"}, "gone": {"promote": True}}),
        section("milestones", {"new": {}}, TOOLS),
        section("milestones", {"1.0": {}, "new": {"state": "closed"}, "newer": {}, "gone": None, "own": {}}),
        section("milestones", {"new": {}}, CLI),
    )
    reason = "this plan uses the name in group acme, and it must be unique in a group and everything below it; "
    reason += "leave it out here, or choose another name"
    assert told(plan) == [
        f"group acme/tools new: {reason}",
        f"project acme/api new: {reason}",
        f"project acme/api newer: {reason}",
        f"project acme/api 1.0: {reason}",
        f"project acme/tools/cli new: {reason}",
    ]
    assert failures(engine.apply(plan)) == []
    assert titles(engine) == {"acme": ["newer", "new", "1.0", "gone"], "acme/api": ["own"]}


def test_a_rename_and_a_promotion_exclude_each_other(engine: EngineDriver) -> None:
    given(engine, acme=[{"id": 1, "title": "a"}], api=[{"id": 2, "title": "b"}, {"id": 3, "title": "c"}])
    both = of_acme({"b": {"renamed_from": "a", "promote": True}})
    assert told(engine.plan(both)) == ['group acme b: both this name and the former "a" are live; delete one of them; ']
    assert engine.step(of_acme({"c": {"renamed_from": "x", "promote": True}})) == [
        "POST projects/100/milestones/3/promote"
    ]
    # A former name is one of the group's: nothing of a project is renamed.
    assert engine.step(of_acme({"d": {"renamed_from": "b", "promote": True}})) == [f'POST {URL} {{"title": "d"}}']


def test_an_exception_holds_a_promotion_back(engine: EngineDriver) -> None:
    given(engine, api=[{"id": 2, "title": "1.0"}, {"id": 3, "title": "2.0"}])
    wanted = of_acme({"1.0": {"promote": True, "due_date": "2026-02-01"}, "2.0": {"promote": True}})
    until = date(2999, 1, 1)
    excepted = (
        DeclaredException("milestones", until, "later", "1.0"),
        DeclaredException("milestones", until, "later", "2.0", ("promote",)),
    )
    state = DesiredState((DesiredTarget(ACME, (wanted,), exceptions=excepted),), "digest")
    plan = draw_plan(state, engine.client, KINDS)
    assert list(plan.changes) == []
    assert [(each.address.name, each.data["action"]) for each in plan.findings_of("excepted")] == [
        ("1.0", "update"),
        ("2.0", "update"),
    ]
    assert told(plan) == [
        "group acme 2.0: project acme/api already uses this name, which must be unique in a group and everything below it; an exception holds back "
        "promote: except the whole object, or end the exception"
    ]


@pytest.mark.untraced
@pytest.mark.parametrize("fault", ["reset-before", "reset-after", "truncate"])
def test_a_promotion_whose_answer_is_lost_is_looked_for_before_it_is_sent_again(
    engine: EngineDriver, fault: str
) -> None:
    given(engine, api=[{"id": 5, "title": "1.0", "description": "api's"}])
    plan = engine.plan(of_acme({"1.0": {"promote": True, "due_date": "2026-02-01"}}))
    engine.sandbox.set_faults([{"kind": fault, "method": "POST", "match": "promote", "times": 1}])
    assert failures(engine.apply(plan)) == []
    sent = 2 if fault == "reset-before" else 1
    assert engine.writes() == [
        *["POST projects/100/milestones/5/promote"] * sent,
        f'PUT {URL}/6 {{"due_date": "2026-02-01"}}',
    ]
    assert titles(engine) == {"acme": ["1.0"]}


def test_a_plan_is_stale_once_others_have_the_title_or_somebody_has_promoted_it(engine: EngineDriver) -> None:
    given(engine, api=[{"id": 5, "title": "1.0"}, {"id": 6, "title": "2.0"}], web=[{"id": 7, "title": "3.0"}])
    wanted = of_acme({title: {"promote": True} for title in ("1.0", "2.0", "3.0", "4.0")})
    saved = load_plan(save(saved_plan(engine.plan(wanted))), KINDS)
    with Client(engine.sandbox.api_url, "ada-token") as ada:
        ada.send(Request("POST", "projects/101/milestones", {"title": "1.0"}))
        ada.send(Request("POST", "projects/100/milestones/6/promote"))
        ada.send(Request("POST", "projects/102/milestones", {"title": "4.0"}))
    assert failures(engine.apply(tree(saved), recheck=True)) == [
        "stale: milestone 4.0: it cannot be planned: project acme/web already uses this name, which must be unique in a group and everything below it",
        "stale: milestone 1.0: it has changed since the plan was made: places below: + project acme/lib",
    ]  # 2.0 is as wanted
    assert titles(engine)["acme"] == ["2.0", "3.0"]


def test_a_promotion_that_another_user_has_made_at_the_same_time_is_theirs(engine: EngineDriver) -> None:
    given(engine, api=[{"id": 5, "title": "1.0"}])
    plan = engine.plan(of_acme({"1.0": {"promote": True}}))
    with Client(engine.sandbox.api_url, "bob-token") as bob:
        bob.send(Request("POST", "projects/100/milestones/5/promote"))
    assert failures(engine.apply(plan)) == ["stale: milestone 1.0: somebody else made the same change at the same time"]
    assert titles(engine) == {"acme": ["1.0"]}


def test_no_saved_plan_promotes_what_it_does_not_show(engine: EngineDriver) -> None:
    given(engine, api=[{"id": 5, "title": "1.0"}], web=[{"id": 6, "title": "2.0"}])
    whole = saved_plan(engine.plan(of_acme({"1.0": {"promote": True}})))

    def edited(**changes: Any) -> Plan:
        def edit(plan: Any) -> None:
            (change,) = changes_of(plan)
            change["requests"][0] |= {name: changes[name] for name in changes.keys() & {"path", "body"}}
            change["read"] |= {name: changes[name] for name in changes.keys() & {"below"}}
            if changes.get("notes") == []:
                del change["notes"]

        return tree(load_plan(spoilt(save(whole), edit), KINDS))

    for elsewhere in (
        "projects/100/milestones/6/promote",
        "projects/100/milestones/5",
        "projects/x/milestones/5/promote",
    ):
        with pytest.raises(PlanRefused, match="does not lead to milestone of 'group acme'"):
            edited(path=elsewhere)
    with pytest.raises(PlanRefused, match="does not lead to milestone of 'group acme'"):
        edited(below=[])
    forged = "the saved plan was edited: its requests do not match the changes it shows; make the plan again"
    body: dict[str, Any] = {"x": 1}
    notes: list[Any] = []
    for changes in ({"path": "projects/102/milestones/5/promote"}, {"notes": notes}, {"body": body}):
        assert failures(engine.apply(edited(**changes), recheck=True)) == [f"stale: milestone 1.0: {forged}"]
    (moved,) = failures(engine.apply(edited(below=["project acme/lib"]), recheck=True))
    assert moved.startswith("stale: milestone 1.0: it has changed since the plan was made: places below: ")
    assert engine.writes() == []


@pytest.mark.untraced
def test_a_promotion_cannot_be_undone(engine: EngineDriver) -> None:
    given(engine, api=[{"id": 5, "title": "1.0"}])
    plan = engine.plan(of_acme({"1.0": {"promote": True, "due_date": "2026-02-01"}, "new": {}}))
    report = make_report(saved_plan(plan), engine.apply(plan), datetime.now(UTC), engine.client.traffic)
    reversal = Reversal(tree(load_report(save(report), KINDS)).targets, KINDS, "digest")
    back = draw_plan(reversal.applied_state, engine.client, KINDS, make=reversal.plan)
    assert told(back) == ["group acme 1.0: a promotion cannot be undone; it stays as it is"]
    assert failures(engine.apply(back)) == []
    assert titles(engine) == {"acme": ["1.0"]}


def test_a_journal_tells_whether_a_promotion_was_carried_out(engine: EngineDriver) -> None:
    given(engine, api=[{"id": 5, "title": "1.0"}])
    (change,) = engine.plan(of_acme({"1.0": {"promote": True, "due_date": "2026-02-01"}})).changes
    noted = tuple(Intent.model_validate_json(Intent.of(change, each).model_dump_json()) for each in change.requests)

    def found() -> list[str]:
        return [each.verdict for each in recover(Interrupted("", None, 0, noted), engine.client, KINDS, None)]

    assert found() == ["it did not succeed"] * 2
    engine.client.send(change.requests[0])
    assert found() == ["it succeeded", "it did not succeed"]
    engine.client.send(Request("PUT", f"{URL}/6", change.requests[1].body))
    assert found() == ["it succeeded"] * 2


RECORDS: Mapping[str, Json] = {
    "groups/10": {"full_path": "Acme"},
    "groups/11": {"full_path": "acme/tools"},
    "projects/77": {"path_with_namespace": "far/shared"},
    "projects/100": {"path_with_namespace": "acme/api"},
    "projects/103": {"path_with_namespace": "acme/tools/cli"},
}


class Records(Answering):
    """A reader of records that keeps what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def get(self, path: str) -> Json:
        self.asked.append(path)
        return RECORDS[path]


@pytest.mark.parametrize(
    ("ref", "address", "asked"),
    [
        ("acme", "https://h/{}/-/milestones/1", ["projects/77"]),
        (10, "https://h/{}/-/milestones/1", ["groups/10", "projects/77"]),
        ("acme", "https://h/gitlab/{}/-/milestones/1", ["projects/100", "projects/77", "projects/103"]),
        ("acme", "", ["groups/10", "groups/11", "projects/100", "projects/77", "projects/103"]),
    ],
)
def test_whose_a_milestone_is_its_address_says_or_a_record_does(ref: str | int, address: str, asked: list[str]) -> None:
    def entry(title: str, path: str, **owner: int) -> dict[str, Json]:
        place = f"groups/{path}" if "group_id" in owner else path
        return {
            "id": 1,
            "title": title,
            "state": "active",
            "web_url": address.format(place) if address else None,
            **owner,
        }

    answer = [
        entry("own", "acme", group_id=10),
        entry("own", "acme/api", project_id=100),
        entry("sub", "acme/tools", group_id=11),
        entry("direct", "acme/api", project_id=100),
        entry("far", "far/shared", project_id=77),
        entry("deep", "acme/tools/cli", project_id=103),
        entry("nobody's", "acme/api", project_id=100),
    ]
    reader = Records()
    wanted: dict[str, Json] = {"own": {}, "sub ": {}, "direct": {}, "far": {}, "deep": {}, "nobody's": None}
    target = Target(Level.GROUP, ref)
    objects = MILESTONES.objects(target, complete(Reading(reader, target, answer, wanted)))
    assert [record.names for record in objects.own] == [("own",)]
    assert {name: (holder.name, holder.is_below) for name, holder in objects.taken.items()} == {
        "sub": ("group acme/tools", True),
        "deep": ("project acme/tools/cli", True),
    }
    assert {name: (found.below, found.owner_id) for name, found in objects.promotable.items()} == {
        "direct": (("project acme/api",), 100)
    }
    assert reader.asked == asked


def test_a_group_known_by_its_id_reads_and_promotes_alike(engine: EngineDriver) -> None:
    given(engine, acme=[{"title": "own"}], api=[{"id": 5, "title": "1.0"}])
    wanted = section("milestones", {"1.0": {"promote": True}, "own": {}}, Target(Level.GROUP, 10))
    assert engine.step(wanted) == ["POST projects/100/milestones/5/promote"]
    live = read_part(engine.client, MILESTONES, Target(Level.GROUP, 10), {})
    assert isinstance(live, Objects)
    assert [record.names for record in live.own] == [("1.0",), ("own",)]
    assert engine.plan(wanted, section("milestones", {"x": {}}, LIB), section("milestones", {"y": {}}, API)).cost == 2
