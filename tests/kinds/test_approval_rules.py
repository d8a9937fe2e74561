"""Approval rules: names sent as IDs, and nothing that the service would drop without a word, or widen."""

import json
import re
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any

import pytest
import yaml

from reconciler.document.stored import load_plan, save
from reconciler.engine.apply import ApplyOptions, apply_plan
from reconciler.kinds.approval_rules import trace
from reconciler.model.audit import AuditEvent
from reconciler.model.item import Delete, Update, sentences
from reconciler.model.plan import Plan
from reconciler.model.protocols import Json, Request
from reconciler.model.state import Section
from reconciler.service import Client, Policy
from tests.building import ACME, API, KINDS, LIB, section
from tests.cli_runner import CliRunner
from tests.engine_driver import EngineDriver, failures
from tests.fleet.repository import repository
from tests.items import findings_of
from tests.render.samples import saved_plan, spoilt, tree
from tests.states import a_small_service

RULES = "projects/acme%2Fapi/approval_rules"
BRANCHES = "projects/acme%2Fapi/protected_branches"
MEMBERS = "GET projects/acme%2Fapi/members/all?per_page=100&page=1"
LISTED = f"GET {RULES}?per_page=100&page=1"


def rules(value: dict[str, Any], target: Any = API, *, prune: bool = False) -> Section:
    return section("approval_rules", value, target, prune=prune)


def branches(value: dict[str, Any], target: Any = API) -> Section:
    return section("protected_branches", value, target)


def service(engine: EngineDriver, *live: dict[str, Any], **more: Any) -> None:
    """Give the project these rules; it protects `main` (ID 1) and `old` (ID 2), its top-level group `stable` (ID 9)."""
    state = a_small_service(engine.sandbox.state()["instance"]["dialect"])
    state["users"] += [{"id": 4, "username": "Eve", "name": "Eve"}, {"id": 5, "username": "max", "tokens": ["max"]}]
    state["groups"] += [{"id": 20, "path": "partners"}, {"id": 21, "path": "hidden"}]
    state["groups"][0]["protected_branches"] = [{"id": 9, "name": "stable"}]
    state["projects"][0] |= {
        "approval_rules": list(live),
        "protected_branches": [{"id": 1, "name": "main"}, {"id": 2, "name": "old"}],
        "members": [{"user": "Eve", "role": "developer"}],
        **more,
    }
    engine.sandbox.replace_state(state)


def sent(line: str) -> tuple[str, Any]:
    """Return a request and its body."""
    request, _, body = line.partition(" {")
    return request, json.loads("{" + body) if body else None


def shown(engine: EngineDriver) -> dict[str, Mapping[str, Any]]:
    """Return the rules of the project by name."""
    return {rule["name"]: rule for rule in engine.sandbox.state()["projects"][0].get("approval_rules", [])}


@pytest.mark.untraced
def test_names_are_sent_as_ids_and_what_is_left_out_stays(engine: EngineDriver) -> None:
    service(engine)
    wanted: dict[str, Any] = {"approvals_required": 2, "users": ["eve", "BOB", "bob"], "groups": ["Acme/Tools"]}
    (create,) = engine.step(rules({"Security": {**wanted, "branches": ["main"]}}))
    assert sent(create) == (
        f"POST {RULES}",
        {
            "name": "Security",
            "rule_type": "regular",
            "approvals_required": 2,
            "user_ids": [3, 4],
            "group_ids": [11],
            "protected_branch_ids": [1],
            "applies_to_all_protected_branches": False,
        },
    )
    assert engine.step(rules({"Security": {"users": ["EVE"]}})) == [f'PUT {RULES}/1 {{"user_ids": [4]}}']
    assert engine.step(rules({"Security": {"approvals_required": 1}})) == [f'PUT {RULES}/1 {{"approvals_required": 1}}']
    assert engine.step(rules({"Safety": {"renamed_from": "Security", "branches": "protected"}})) == [
        f'PUT {RULES}/1 {{"applies_to_all_protected_branches": true, "name": "Safety"}}'
    ]
    assert engine.step(rules({"Safety": {"branches": "any", "groups": []}})) == [
        f'PUT {RULES}/1 {{"group_ids": [], "protected_branch_ids": [], "applies_to_all_protected_branches": false}}'
    ]
    assert engine.step(rules({}, prune=True)) == [f"DELETE {RULES}/1"]


def test_members_and_branches_are_listed_once_and_only_for_names_that_nothing_shows(engine: EngineDriver) -> None:
    service(engine, {"id": 7, "name": "a", "users": ["Eve"], "protected_branch_ids": [1]}, {"id": 8, "name": "b"})
    engine.plan(rules({"a": {"users": ["eve"], "branches": ["main"], "approvals_required": 3}}))
    assert engine.requests() == [LISTED]
    both: dict[str, Any] = {"users": ["eve", "bob"], "groups": ["acme/tools"], "branches": ["main", "old"]}
    engine.plan(rules({"a": both, "b": both}), rules({"c": {**both, "approvals_required": 0}}, LIB))
    assert sorted(engine.requests()) == [
        "GET groups/acme%2Ftools?with_projects=false",
        *(
            f"GET projects/acme%2F{name}/{each}"
            for name in ("api", "lib")
            for each in (
                "approval_rules?per_page=100&page=1",
                "members/all?per_page=100&page=1",
                "protected_branches?per_page=100&page=1",
            )
        ),
    ]
    engine.plan(branches({"main": {}}), rules({"a": {"branches": ["old", "stable"]}}))
    assert engine.requests() == [f"GET {BRANCHES}?per_page=100&page=1", LISTED]


def test_who_is_unknown_no_member_or_invisible_is_a_problem_before_anything_is_written(engine: EngineDriver) -> None:
    service(engine)
    wanted = {"approvals_required": 1, "users": ["eve", "max", "nobody"], "groups": ["acme/none"], "branches": ["nope"]}
    plan = engine.plan(rules({"Security": wanted, "Lead": {"approvals_required": 1, "users": ["bob"]}}))
    assert [f"{each.field}: {each.reason}" for each in plan.problems] == [
        'users: the project has no member "max", or none that this token can see',
        'users: the project has no member "nobody", or none that this token can see',
        "groups: not found, not visible to this token, or not served by this server (group acme/none: 404 Group Not "
        "Found)",
        'branches: no rule in protected_branches has the name "nope"',
    ]
    engine.apply(plan)
    assert [sent(line)[1]["name"] for line in engine.writes()] == ["Lead"]


def test_a_rule_is_as_it_was_where_one_of_its_names_is_unknown(engine: EngineDriver) -> None:
    """The service would take the rest of a list for the whole, and no known branch for all branches."""
    service(engine, {"id": 7, "name": "a", "users": ["Eve"], "protected_branch_ids": [1]})
    plan = engine.plan(rules({"a": {"users": ["bob", "max"], "branches": ["nope"], "approvals_required": 5}}))
    assert [each.field for each in plan.problems] == ["users", "branches"]
    engine.apply(plan)
    assert engine.writes() == [f'PUT {RULES}/7 {{"approvals_required": 5}}']


def test_branches_of_a_project_without_a_repository_are_a_problem(engine: EngineDriver) -> None:
    service(engine, repository_enabled=False)
    (problem,) = engine.plan(rules({"any_approver": {"approvals_required": 1, "branches": ["stable"]}})).problems
    assert (problem.field, problem.reason, problem.fix) == (
        "branches",
        f"cannot be checked: GET {BRANCHES}: 403 Forbidden",
        "switch the repository on if it is off, or leave `branches` out",
    )


@pytest.mark.parametrize("status", [403, 404])
def test_members_that_cannot_be_listed_are_a_problem(engine: EngineDriver, status: int) -> None:
    service(engine)
    engine.sandbox.set_faults([{"kind": "status", "status": status, "match": "members/all"}])
    (problem,) = engine.problems(rules({"a": {"approvals_required": 1, "users": ["bob"]}}))
    assert problem.startswith("approval rule.users: cannot be checked: ")


def test_whoever_leaves_meanwhile_makes_the_change_dropped(engine: EngineDriver) -> None:
    service(engine)
    plan = engine.plan(rules({"a": {"approvals_required": 1, "users": ["eve", "bob"], "branches": ["main"]}}))
    engine.client.send(Request("DELETE", "projects/acme%2Fapi/members/4"))
    engine.client.send(Request("DELETE", f"{BRANCHES}/main"))
    assert failures(engine.apply(plan)) == [
        "dropped by the service: approval rule a: the service kept its own users (without eve), branches"
    ]


@pytest.mark.untraced
def test_branches_of_the_same_run_come_first_and_go_by_the_ids_they_get(engine: EngineDriver) -> None:
    service(engine)
    wanted = {"approvals_required": 1, "users": ["bob"], "branches": ["release/*", "stable", "main"]}
    sections = branches({"release/*": {}, "main": {"allow_force_push": True}}), rules({"a": wanted})
    plan = engine.plan(*sections)
    create = next(change for change in plan.changes if change.address.section == "approval_rules")
    placeholder = {"created": "release/*", "section": "protected_branches"}
    assert dict(create.requests[0].body or {})["protected_branch_ids"] == [1, placeholder, 9]
    writes = [sent(line) for line in engine.step(*sections)]
    assert [request for request, _ in writes] == [f"POST {BRANCHES}", f"PATCH {BRANCHES}/main", f"POST {RULES}"]
    assert writes[-1][1]["protected_branch_ids"] == [1, 10, 9]


TOP = section("protected_branches", {"next": {}}, ACME)
NEXT = rules({"a": {"approvals_required": 1, "users": ["bob"], "branches": ["next", "main"]}})


@pytest.mark.untraced
@pytest.mark.parametrize("is_saved", [False, True])
def test_branches_that_the_same_run_protects_in_the_top_level_group_go_by_the_ids_they_get(
    engine: EngineDriver, is_saved: bool
) -> None:
    service(engine)
    plan = saved(engine, TOP, NEXT) if is_saved else engine.plan(TOP, NEXT)
    assert list(plan.problems) == []
    assert failures(engine.apply(plan, recheck=is_saved)) == []
    group, rule = [sent(line) for line in engine.writes()]
    assert (group[0], rule[0]) == ("POST groups/acme/protected_branches", f"POST {RULES}")
    assert sorted(rule[1]["protected_branch_ids"]) == [1, 10]
    again = engine.plan(TOP, NEXT)
    assert (list(again.changes), list(again.problems)) == ([], [])
    if is_saved:
        engine.client.send(Request("DELETE", f"{RULES}/1"))
        assert failures(engine.apply(plan, recheck=True)) == []


@pytest.mark.parametrize("is_saved", [False, True])
def test_a_rule_waits_for_a_branch_of_the_group_that_is_not_created(engine: EngineDriver, is_saved: bool) -> None:
    service(engine)
    engine.sandbox.set_faults([{"kind": "status", "status": 422, "method": "POST", "match": "groups/"}])
    plan = saved(engine, TOP, NEXT) if is_saved else engine.plan(TOP, NEXT)
    _, rule = failures(engine.apply(plan, recheck=is_saved))
    assert rule == (
        'stale: approval rule a: "next" of group acme was not created, and this refers to it'
        if is_saved
        else 'failed: approval rule a: protected branch "next" was not created, and this refers to it'
    )
    assert shown(engine) == {}


def test_a_rule_waits_for_a_branch_that_is_not_created(engine: EngineDriver) -> None:
    service(engine)
    engine.sandbox.set_faults([{"kind": "status", "status": 422, "method": "POST", "match": "protected_branches"}])
    wanted = {"approvals_required": 1, "users": ["bob"], "branches": ["new"]}
    outcomes = failures(engine.apply(engine.plan(branches({"new": {}}), rules({"a": wanted}))))
    assert outcomes[1] == ('failed: approval rule a: protected branch "new" was not created, and this refers to it')
    assert shown(engine) == {}


@pytest.mark.untraced
def test_a_plan_says_what_a_deleted_branch_makes_of_rules(engine: EngineDriver) -> None:
    service(
        engine,
        {"id": 6, "name": "all", "applies_to_all_protected_branches": True, "protected_branch_ids": [2]},
        {"id": 7, "name": "a", "users": ["Eve"], "protected_branch_ids": [2]},
        {"id": 8, "name": "b", "users": ["Eve"], "protected_branch_ids": [1, 2]},
    )
    told = 'the approval rule "a" applies to all branches then'
    gone = branches({"old": None})
    losses = [_losses(engine, gone, rules({"a": {}})), _losses(engine, gone, rules({"a": {"approvals_required": 2}}))]
    assert losses == [[told], [told]]
    update = next(each for each in engine.plan(gone, rules({"a": {"approvals_required": 2}})).changes)
    assert isinstance(update, Delete)
    *_, update = engine.plan(gone, rules({"a": {"approvals_required": 2}})).changes
    assert isinstance(update, Update)
    assert "; ".join(sentences(update, "hint")) == "its branches are deleted: it applies to all branches then"
    assert _widened(engine.plan(gone, rules({"a": {"approvals_required": 2}}))) == []
    assert _widened(engine.plan(gone, rules({"a": {}}))) == [("a", "; ".join(sentences(update, "hint")))]
    assert _widened(engine.plan(gone, rules({}))) == [("a", "; ".join(sentences(update, "hint")))]
    assert _widened(engine.plan(gone, rules({"a": None}))) == []
    assert _losses(engine, gone) == ["each approval rule for it alone applies to all branches then"]
    assert _losses(engine, branches({"main": None}), rules({})) == []
    for kept in ("old", "nope"):
        plan = engine.plan(gone, rules({"a": {"branches": [kept], "approvals_required": 1}}))
        assert [f"{each.address.name}: {each.reason}" for each in plan.problems] == [
            'old: is kept: without it the approval rule "a", whose branches are a problem here, applies to all branches then',
            'a: this plan deletes "old"' if kept == "old" else 'a: no rule in protected_branches has the name "nope"',
        ]
        assert [change.address.name for change in plan.changes] == ["a"]
    assert engine.problems(gone, rules({"c": {"branches": ["old"], "approvals_required": 1, "users": ["eve"]}})) == [
        'approval rule.branches: this plan deletes "old"'
    ]


def test_a_plan_says_what_a_branch_of_the_top_level_group_that_is_deleted_makes_of_rules(engine: EngineDriver) -> None:
    service(engine, {"id": 7, "name": "a", "users": ["Eve"], "protected_branch_ids": [9]}, {"id": 8, "name": "b"})
    gone = section("protected_branches", {"stable": None}, ACME)
    plan = engine.plan(gone, rules({"a": {}}))
    assert _widened(plan) == [("a", "its branches are deleted: it applies to all branches then")]
    assert [sentences(change, "loss")[1:] for change in plan.changes if isinstance(change, Delete)] == [
        ("each approval rule for it alone applies to all branches then",)
    ]
    assert engine.problems(gone, rules({"b": {"branches": ["stable"]}})) == [
        'approval rule.branches: this plan deletes "stable"'
    ]


@pytest.mark.untraced
def test_a_branch_of_the_top_level_group_is_kept_for_a_rule_that_is_declared_for_it(engine: EngineDriver) -> None:
    service(engine, {"id": 7, "name": "a", "users": ["Eve"], "protected_branch_ids": [9]}, {"id": 8, "name": "b"})
    more: dict[str, Any] = {"stable": None, "next": None, "main": {}}
    state = engine.sandbox.state()
    state["groups"][0]["protected_branches"] += [{"id": 8, "name": "next"}]
    engine.sandbox.replace_state(state)
    wanted = rules({"a": {"branches": ["stable"]}}), rules({"any_approver": {"approvals_required": 1}}, LIB)
    plan = engine.plan(section("protected_branches", more, ACME), section("milestones", {}, ACME), *wanted)
    assert [f"{each.address.target}, {each.address.name}: {each.reason}" for each in plan.problems] == [
        'group acme, stable: is kept: without it the approval rule "a", whose branches are a problem here, applies to '
        "all branches then (project acme/api)",
        'project acme/api, a: this plan deletes "stable"',
    ]
    engine.apply(plan)
    assert [line.split(" {")[0] for line in engine.writes()] == [
        "POST groups/acme/protected_branches",
        "POST projects/acme%2Flib/approval_rules",
        "DELETE groups/acme/protected_branches/next",
    ]


def _widened(plan: Plan) -> list[tuple[Any, str]]:
    said = (finding for target in plan.targets for finding in target.findings if finding.code == "widened")
    return [(finding.where.name, finding.reason) for finding in said if finding.where]


def test_a_plan_shows_a_rule_that_a_deleted_branch_widens(cli_runner: CliRunner) -> None:
    cli_runner.service(
        protected_branches=[{"id": 2, "name": "old"}],
        approval_rules=[{"id": 7, "name": "a", "group_ids": [11], "protected_branch_ids": [2]}],
    )
    cli_runner.project("{protected_branches: {old: null}, approval_rules: {}}")
    assert cli_runner("plan").out == PLANNED
    assert 'approval rule "a"' not in cli_runner("plan --quiet").out
    widened = "of project acme/api: its branches are deleted: it applies to all branches then"
    assert f'**`approval rule "a" {widened}`**\n' in cli_runner("plan --format markdown").out
    assert "its branches are deleted: it applies to all branches then</p>" in cli_runner("plan --format html").out
    repository(cli_runner.folder).commit()
    cli_runner.project("{protected_branches: {old: null, new: {}}, approval_rules: {}}")
    change = cli_runner("plan --since HEAD --only-change --no-inventory").out
    assert ('protected branch "new"' in change, 'approval rule "a"' in change) == (True, False)


def test_a_rule_that_the_baseline_has_widened_too_is_not_told_again(cli_runner: CliRunner) -> None:
    cli_runner.service(
        protected_branches=[{"id": 2, "name": "old"}],
        approval_rules=[{"id": 7, "name": "a", "group_ids": [11], "protected_branch_ids": [2]}],
    )
    cli_runner.project("{protected_branches: {old: null}, approval_rules: {}}")
    assert 'approval rule "a"' in cli_runner("drift --report json=before.json").out
    cli_runner.project("{protected_branches: {old: null, new: {}}, approval_rules: {}}")
    news = cli_runner("drift --baseline before.json").out
    assert ('protected branch "new"' in news, 'approval rule "a"' in news) == (True, False)
    assert 'approval rule "a"' not in cli_runner("drift --baseline before.json --format markdown").out


def _losses(engine: EngineDriver, *sections: Section) -> list[str]:
    """Return what the plan says of the deletion of a branch, beside what it always says."""
    delete = next(each for each in engine.plan(*sections).changes if isinstance(each, Delete))
    return [*sentences(delete, "loss")][1:]


def test_a_renamed_branch_takes_its_rules_along_if_they_say_so(engine: EngineDriver) -> None:
    service(engine, {"id": 7, "name": "a", "users": ["Eve"], "protected_branch_ids": [2]})
    renamed = branches({"new": {"renamed_from": "old"}})
    (update,) = engine.plan(renamed, rules({"a": {}})).changes
    assert isinstance(update, Update)
    assert "; ".join(sentences(update, "hint")) == 'the approval rule "a" applies to all branches then'
    both = renamed, rules({"a": {"branches": ["new"]}})
    update, _ = engine.plan(*both).changes
    assert isinstance(update, Update)
    assert "; ".join(sentences(update, "hint")) == ""
    assert engine.step(*both)[1:] == [
        f'PUT {RULES}/7 {{"protected_branch_ids": [10], "applies_to_all_protected_branches": false}}',
        "DELETE projects/acme%2Fapi/protected_branches/old",
    ]


def saved(engine: EngineDriver, *sections: Section) -> Any:
    """Return a plan as it comes from its file."""
    text = save(saved_plan(engine.plan(*sections)))
    return tree(load_plan(text, KINDS))


@pytest.mark.untraced
def test_a_saved_plan_deletes_a_branch_and_moves_its_rules(engine: EngineDriver) -> None:
    service(engine, {"id": 7, "name": "a", "users": ["Eve"], "protected_branch_ids": [2]})
    wanted = {"a": {"branches": ["main", "new"], "users": ["eve", "bob"]}, "any_approver": {"approvals_required": 1}}
    sections = branches({"old": None, "new": {}}), rules(wanted)
    plan = saved(engine, *sections)
    assert failures(engine.apply(plan, recheck=True)) == []
    assert failures(engine.apply(plan, recheck=True)) == []
    assert engine.writes() == []
    assert list(engine.plan(*sections).changes) == []


def test_a_saved_plan_that_was_edited_is_not_applied(engine: EngineDriver) -> None:
    service(engine)
    plan = engine.plan(rules({"a": {"approvals_required": 1, "users": ["eve"]}}))

    def edit(saved: Any) -> None:
        (change,) = saved["items"]
        change["requests"][0]["body"]["user_ids"] = [2]

    edited = tree(load_plan(spoilt(save(saved_plan(plan)), edit), KINDS))
    (outcome,) = failures(engine.apply(edited, recheck=True))
    assert outcome.startswith("stale: approval rule a: the saved plan was edited")


@pytest.mark.untraced
def test_the_rule_for_any_approver_is_known_by_its_type(engine: EngineDriver) -> None:
    service(engine, {"id": 7, "name": "Everyone", "rule_type": "any_approver", "approvals_required": 1})
    assert engine.step(rules({"any_approver": {"approvals_required": 1}}, prune=True)) == []
    assert engine.step(rules({"any_approver": {"approvals_required": 2, "branches": ["main"]}})) == [
        f'PUT {RULES}/7 {{"approvals_required": 2, "protected_branch_ids": [1], '
        '"applies_to_all_protected_branches": false}'
    ]
    assert engine.step(rules({}, prune=True)) == [f"DELETE {RULES}/7"]
    (create,) = engine.step(rules({"any_approver": {"approvals_required": 1}}))
    assert sent(create)[1] == {"name": "All Members", "rule_type": "any_approver", "approvals_required": 1}


def test_a_live_rule_is_not_turned_into_the_one_for_any_approver(engine: EngineDriver) -> None:
    service(engine, {"id": 7, "name": "QA", "users": ["Eve"]})
    assert engine.problems(rules({"any_approver": {"renamed_from": "QA"}})) == ["approval rule.None: cannot be renamed"]


def test_the_rule_about_test_coverage_is_left_alone(engine: EngineDriver) -> None:
    coverage = {"name": "Coverage-Check", "rule_type": "report_approver", "report_type": "code_coverage"}
    service(engine, {"id": 7, **coverage, "users": ["Eve"]})
    plan = engine.plan(rules({}, prune=True))
    assert (list(plan.changes), list(plan.findings_of("unmanaged"))) == ([], [])


def test_groups_that_the_token_cannot_see_stay(engine: EngineDriver) -> None:
    service(engine, {"id": 7, "name": "a", "users": ["Eve"], "group_ids": [11, 21]})
    assert engine.step(rules({"a": {"groups": ["acme/tools"]}})) == []
    assert engine.step(rules({"a": {"groups": ["acme"]}})) == [f'PUT {RULES}/7 {{"group_ids": [10]}}']
    assert shown(engine)["a"]["group_ids"] == [21, 10]


def test_a_plan_counts_the_lists_with_groups_that_the_token_cannot_see(cli_runner: CliRunner) -> None:
    state = a_small_service("deployed")
    state["groups"] += [{"id": 21, "path": "hidden"}]
    hidden = [{"id": number, "name": name, "group_ids": [21]} for number, name in enumerate("abc", start=7)]
    state["projects"][0]["approval_rules"] = [*hidden, {"id": 10, "name": "d", "group_ids": [11]}]
    cli_runner.sandbox.replace_state(state)
    cli_runner.project("{approval_rules: {a: {approvals_required: 1, groups: [acme/tools]}, b: null}}")
    done = cli_runner("plan -v")
    lines = [line for line in done.out.splitlines() if line.endswith("cannot see")]
    assert lines == [
        f'  = approval rule "{name}" keeps groups{" " * 12}that this token cannot see' for name in ("a", "c")
    ]
    assert "2 unmanaged, 2 lists with entries that this token cannot see." in done.out
    document = json.loads(cli_runner("plan --format json").out)
    assert findings_of(document, "hidden") == [
        {
            "target": "project acme/api",
            "section": "approval_rules",
            "title": "approval rule",
            "name": name,
            "finding": "hidden",
            "field": "groups",
            "reason": "keeps groups that this token cannot see",
            "fix": "",
            "origin": "",
        }
        for name in ("a", "c")
    ]


def test_a_rule_that_nobody_could_approve_is_not_created(engine: EngineDriver) -> None:
    service(engine)
    (problem,) = engine.problems(rules({"a": {"approvals_required": 1}}))
    assert problem.startswith("approval rule.users: cannot be created: a rule without users and groups has nobody")


UNFULFILLED = """\
Loosens protection:
project acme/api
  ~ approval rule "Ops"                       approvals_required: 1 -> 3, loosens and tightens     manifests/project.yaml:4
  ~ approval rule "Swapped"                   users: + bob, - eve, loosens and tightens     manifests/project.yaml:4
All else:
project acme/api
  + approval rule "New"                       approvals_required: 2, users: bob, branches: any, by default, tightens     manifests/project.yaml:4
  + approval rule "Team"                      approvals_required: 9, groups: acme/tools, branches: any, by default, tightens     manifests/project.yaml:4
  + approval rule "any_approver"              approvals_required: 50, branches: any, by default, tightens     manifests/project.yaml:4
  ? approval rule "Security"                  needs 1 approval, and none of its approvers can approve (blocked or gone: eve): the service approves such a rule by itself; name more people, or require fewer approvals     manifests/project.yaml:4
  ? approval rule "Ops"                       needs 3 approvals, and only 1 of its approvers can approve (blocked or gone: eve): the service approves such a rule by itself; name more people, or require fewer approvals     manifests/project.yaml:4
  ? approval rule "New"                       needs 2 approvals, and only 1 of its approvers can approve: the service approves such a rule by itself; name more people, or require fewer approvals     manifests/project.yaml:4
Plan: 3 to create, 2 to update, 2 loosening, 5 tightening, 1 unmanaged. 5 writes to apply; 3 requests were made to plan.
"""


def test_a_rule_that_nobody_can_fulfil_is_told_since_the_service_approves_it_by_itself(cli_runner: CliRunner) -> None:
    """Nothing is asked for it: the list shows who can approve."""
    state = a_small_service("deployed")
    state["users"].append({"id": 4, "username": "Eve", "name": "Eve", "blocked": True})
    state["projects"][0] |= {
        "members": [{"user": "Eve", "role": "developer"}, {"user": "bob", "role": "developer"}],
        "approval_rules": [
            {"id": 7, "name": "Security", "users": ["Eve"], "approvals_required": 1},
            {"id": 8, "name": "Ops", "users": ["bob", "Eve"], "group_ids": [11], "approvals_required": 1},
            {"id": 9, "name": "Swapped", "users": ["Eve"], "approvals_required": 1},
            {"id": 10, "name": "not declared", "users": ["Eve"], "approvals_required": 1},
        ],
    }
    cli_runner.sandbox.replace_state(state)
    cli_runner.project(
        "{approval_rules: {Security: {approvals_required: 1}, Ops: {approvals_required: 3}, Swapped: {users: [bob]}, "
        "New: {approvals_required: 2, users: [bob]}, Team: {approvals_required: 9, groups: [acme/tools]}, gone: null, "
        "any_approver: {approvals_required: 50}}}"
    )
    assert cli_runner("plan").out == UNFULFILLED
    cli_runner.project("{approval_rules: {Security: {approvals_required: 1}}}")
    assert (cli_runner("drift").code, cli_runner("drift --quiet").out) == (0, "")
    assert cli_runner("apply --yes --quiet").out == "Applied: nothing to change. 1 request made.\n"


def test_a_rule_does_not_become_one_that_nobody_could_approve(engine: EngineDriver) -> None:
    """A group that the token cannot see may approve."""
    live = [{"id": number, "name": name, "users": ["Eve"]} for number, name in enumerate("ab", start=7)]
    service(engine, *live, {"id": 9, "name": "c", "users": ["Eve"], "group_ids": [21]}, {"id": 10, "name": "d"})
    nobody: dict[str, Any] = {"users": [], "approvals_required": 2}
    plan = engine.plan(rules({"a": nobody, "b": {"groups": [], **nobody}, "c": nobody, "d": nobody}))
    assert [f"{each.address.name}.{each.field}: {each.reason}" for each in plan.problems] == [
        f"{name}.users: a rule without users and groups has nobody who could approve: name some, or declare "
        "`any_approver` instead"
        for name in "ab"
    ]
    engine.apply(plan)
    assert [line.partition(" {")[0] for line in engine.writes()] == [f"PUT {RULES}/9", f"PUT {RULES}/10"]


def test_two_rules_of_one_name_are_a_problem_with_their_ids(engine: EngineDriver) -> None:
    service(engine, {"id": 7, "name": "a"}, {"id": 9, "name": "a"}, {"id": 10, "name": "A"})
    assert engine.problems(rules({"a": {"approvals_required": 1}})) == [
        "approval rule.None: 2 objects have this name (IDs 7, 9); expected one"
    ]


def test_a_creation_whose_answer_is_lost_is_looked_for(engine: EngineDriver) -> None:
    service(engine)
    engine.sandbox.set_faults([{"kind": "reset-after", "method": "POST", "times": 1}])
    assert len(engine.step(rules({"a": {"approvals_required": 1, "users": ["eve"]}}))) == 1


@pytest.mark.parametrize(("section", "needed"), [("approval_rules", "Reporter"), ("protected_branches", "Planner")])
def test_whose_role_does_not_suffice_to_read_is_told_which_does(
    cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch, section: str, needed: str
) -> None:
    monkeypatch.setenv("RECONCILER_TOKEN", "eve-token")
    state = a_small_service("deployed")
    state["users"].append({"id": 4, "username": "eve", "tokens": ["eve-token"]})
    state["projects"][0]["members"] = [{"user": "eve", "role": "guest"}]
    cli_runner.sandbox.replace_state(state)
    cli_runner.project(f"{{{section}: {{}}}}")
    (problem, _) = cli_runner("plan").out.splitlines()[1:]
    assert problem == (
        f"  ! {section}: cannot be read: the token's owner is Guest there, and {needed} is needed; make the token's owner "
        f"{needed}     manifests/project.yaml:4"
    )


class Counting(Client):
    """A client that notes how many writes to each path are under way at once."""

    def __init__(self, url: str) -> None:
        super().__init__(url, "ada-token", policy=Policy(concurrency=8))
        self.under_way = Counter[str]()
        self.most = Counter[str]()
        self._lock = Lock()

    def send(self, request: Request, **more: Any) -> Json:
        """Send a request, and count it meanwhile."""
        with self._lock:
            self.under_way[request.path] += 1
            self.most[request.path] = max(self.most[request.path], self.under_way[request.path])
        try:
            return super().send(request, **more)
        finally:
            with self._lock:
                self.under_way[request.path] -= 1


@pytest.mark.untraced
def test_rules_of_one_project_are_created_one_after_the_other(engine: EngineDriver) -> None:
    """No index keeps their names unique: a creation is looked for before the next one is sent."""
    service(engine)
    wanted = {name: {"approvals_required": 1, "groups": ["acme/tools"]} for name in "abcd"}
    plan = engine.plan(rules(wanted), rules(wanted, LIB))
    engine.sandbox.set_faults([{"kind": "slow", "seconds": 0.02, "method": "POST"}])
    with Counting(engine.sandbox.api_url) as client:
        assert failures(apply_plan(plan, client, KINDS, ApplyOptions())) == []
    assert client.most == {RULES: 1, RULES.replace("api", "lib"): 1}


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("wanted", "ends"),
    [
        (
            {"a": {"approvals_required": 1, "groups": ["acme/tools"]}},
            "failed: approval rule a: somebody else created the same object at the same time, ID 1; this run's, ID 2, was "
            "deleted again",
        ),
        (
            {"any_approver": {"approvals_required": 1}},
            "stale: approval rule any_approver: somebody else made the same change at the same time",
        ),
    ],
)
def test_a_rule_that_somebody_creates_at_once_is_left_to_them(
    engine: EngineDriver, wanted: dict[str, Any], ends: str
) -> None:
    service(engine)
    plan = engine.plan(rules(wanted))
    engine.sandbox.set_faults([{"kind": "race", "method": "POST", "match": "approval_rules"}])
    with ThreadPoolExecutor() as pool, Client(engine.sandbox.api_url, "ada-token") as other:
        runs = [*pool.map(lambda client: apply_plan(plan, client, KINDS, ApplyOptions()), (engine.client, other))]
    assert [line for outcomes in runs for line in failures(outcomes)] == [ends]
    assert len(shown(engine)) == 1
    engine.sandbox.set_faults([])
    again = engine.plan(rules(wanted))
    assert (list(again.changes), list(again.problems)) == ([], [])


def test_what_forbids_changes_is_said_at_the_first_refusal(engine: EngineDriver) -> None:
    service(engine)
    state = engine.sandbox.state()
    state["instance"]["merge_request_approval_settings"] = {"allow_overrides_to_approver_list_per_merge_request": False}
    engine.sandbox.replace_state(state)
    wanted = {name: {"approvals_required": 1, "users": ["eve"]} for name in "abc"}
    reason = "the service's administrators or a security policy forbid changes of approval rules"
    remedy = "let an administrator allow them in the instance's settings of merge request approvals"
    assert failures(engine.apply(engine.plan(rules(wanted)))) == [
        f"failed: approval rule a: {reason}; {remedy} (POST {RULES}: 403 Forbidden)",
        f"skipped: approval rule b: {reason}",
        f"skipped: approval rule c: {reason}",
    ]
    assert engine.requests() == [LISTED, f"POST {RULES} {json.dumps(BODY)}", "GET projects/acme%2Fapi"]


PLANNED = """\
Loosens protection:
project acme/api
  - protected branch "old"                    loosens     manifests/project.yaml:4
All else:
project acme/api
  ~ approval rule "a"                         its branches are deleted: it applies to all branches then
Plan: 1 to delete, 1 loosening, 1 unmanaged. 1 write to apply; 3 requests were made to plan.
"""

BODY = {"name": "a", "rule_type": "regular", "approvals_required": 1, "user_ids": [4]}


@pytest.mark.untraced
def test_a_lock_is_told_once_with_the_number_of_targets(cli_runner: CliRunner) -> None:
    state = a_small_service("deployed")
    state["instance"]["merge_request_approval_settings"] = {"allow_overrides_to_approver_list_per_merge_request": False}
    cli_runner.sandbox.replace_state(state)
    anybody = "approval_rules: {any_approver: {approvals_required: 1}}"
    declared = "apiVersion: reconciler/v1\nkind: ProjectSet\nmetadata: {name: all}\nselect: {group: acme}\nspec: "
    cli_runner.write("manifests/set.yaml", f"{declared}{{{anybody}}}\n")
    done = cli_runner("apply --yes --no-inventory")
    assert done.code == 3
    heading, line, _ = done.out.splitlines()[-3:]
    assert heading.split() == ["4", "projects", "(acme/api,", "acme/lib", "and", "2", "more)"]
    assert line.startswith('  + approval rule "any_approver"              failed: the service\'s administrators or a ')


@pytest.mark.untraced
def test_an_edition_without_approval_rules_is_a_problem(engine: EngineDriver) -> None:
    service(engine)
    state = engine.sandbox.state()
    state["instance"]["licensed"] = False
    engine.sandbox.replace_state(state)
    (problem,) = engine.problems(rules({"any_approver": {"approvals_required": 1}}))
    assert "403 Forbidden" in problem


PROJECT = "{{apiVersion: reconciler/v1, kind: Project, metadata: {{path: {}}}, create: {{}}, spec: {}}}"
NEW = (
    "{protected_branches: {release: {}}, approval_rules: {a: {approvals_required: 1, users: [bob], "
    "branches: [release, stable]}}}"
)


@pytest.mark.untraced
@pytest.mark.parametrize("path", ["acme/fresh", "acme/team/fresh"])
def test_a_new_project_has_its_rules_by_the_run_that_creates_it(cli_runner: CliRunner, path: str) -> None:
    state = a_small_service("deployed")
    state["groups"][0]["protected_branches"] = [{"id": 9, "name": "stable"}]
    cli_runner.sandbox.replace_state(state)
    cli_runner.write("manifests/a.yaml", PROJECT.format(path, NEW))
    if path.count("/") > 1:
        cli_runner.write("manifests/b.yaml", PROJECT.format("acme/team", "{}").replace("Project", "Group"))
    done = cli_runner("apply --yes")
    assert done.code == 0, done.out + done.err
    (project,) = (each for each in cli_runner.sandbox.state()["projects"] if each["path"] == path)
    assert project["approval_rules"][0]["protected_branch_ids"] == [10, 9]
    assert cli_runner("plan --detailed-exitcode").code == 0


def test_branches_of_a_new_project_in_a_new_group_are_those_it_creates(cli_runner: CliRunner) -> None:
    cli_runner.write("manifests/a.yaml", PROJECT.format("fresh/one", NEW))
    cli_runner.write("manifests/b.yaml", PROJECT.format("fresh", "{}").replace("Project", "Group"))
    done = cli_runner("plan")
    assert 'branches: no rule in protected_branches has the name "stable"' in done.out, done.out + done.err
    assert 'users: the project has no member "bob"' in done.out


def test_a_new_project_names_a_branch_of_the_new_group_it_comes_into(cli_runner: CliRunner) -> None:
    rule = "{approval_rules: {any_approver: {approvals_required: 1, branches: [stable]}}}"
    cli_runner.write("manifests/a.yaml", PROJECT.format("fresh/one", rule))
    group = PROJECT.format("fresh", "{protected_branches: {stable: {}}}").replace("Project", "Group")
    cli_runner.write("manifests/b.yaml", group)
    done = cli_runner("apply --yes")
    assert done.code == 0, done.out + done.err
    assert cli_runner("plan --detailed-exitcode").code == 0


ERRORS = {
    "{a: {approvals_required: 101}}": "must be at most 100",
    "{a: {branches: []}}": "an empty list would mean all branches",
    "{a: {branches: some}}": "must be one of any or protected",
    "{a: {branches: [2026]}}": "a branch is text: quote it",
    "{a: {users: [7]}}": "a name is text: quote `7`",
    "{a: {users: [[ada]]}}": "a name is text",
    "{a: {users: ada}}": "must be a list: [ada]",
    "{any_approver: {users: [ada]}}": "`any_approver` takes any approver",
    "{any_approver: {renamed_from: a}}": "`any_approver` is another sort of approval rule, which is never renamed",
    "{a: {renamed_from: any_approver}}": "`any_approver` is another sort of approval rule, which is never renamed",
    "{Coverage-Check: {}}": "`Coverage-Check` is reserved",
    "{a: {rule_type: regular}}": "the key tells the type",
}


@pytest.mark.parametrize("written", ERRORS)
def test_errors_of_manifests_say_what_is_wrong_with_rules(cli_runner: CliRunner, written: str) -> None:
    cli_runner.project(f"{{approval_rules: {written}}}")
    done = cli_runner("validate")
    assert (done.code, ERRORS[written] in done.err + done.out) == (1, True), done.err + done.out


def test_a_rule_of_named_approvers_may_be_renamed(cli_runner: CliRunner) -> None:
    cli_runner.project("{approval_rules: {a: {renamed_from: b}}}")
    assert cli_runner("validate").code == 0


RECORDINGS = Path(__file__).parents[1] / "acceptance" / "recordings"
FAST = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@pytest.mark.parametrize("file", ["approval-rules", "approval-rules-changes", "approval-rules-more"])
def test_every_rule_that_the_service_has_shown_is_read_whole(file: str) -> None:
    (part,) = KINDS["approval_rules"].parts
    read = 0
    for recorded in FAST((RECORDINGS / f"{file}.yaml").read_text()).get_single_data()["interactions"]:
        status = recorded["response"]["status"]["code"]
        if not re.search("/projects/[0-9]+/approval_rules([/?]|$)", recorded["request"]["uri"]) or status not in (
            200,
            201,
        ):
            continue
        answer = json.loads(recorded["response"]["body"]["string"])
        for entry in answer if isinstance(answer, list) else [answer]:
            found = part.read(API, entry)
            assert (dict(found.unknown), dict(found.read_only)) == ({}, {})
            read += 1
    assert read


@pytest.mark.parametrize("entry", [{"username": 7, "id": 4}, {"username": "eve", "id": "4"}, {"id": 4}, 7])
def test_an_approver_that_is_none_makes_the_rules_unreadable(entry: Any) -> None:
    (part,) = KINDS["approval_rules"].parts
    with pytest.raises((AttributeError, LookupError, TypeError)):
        part.read(API, {"id": 1, "name": "a", "users": [entry], "groups": [], "protected_branches": []})


def test_groups_have_no_approval_rules() -> None:
    assert ACME.level not in KINDS["approval_rules"].models


@pytest.mark.untraced
def test_a_rehearsal_has_the_rules_with_their_approvers(cli_runner: CliRunner) -> None:
    state = a_small_service("deployed")
    anybody = {"id": 3, "name": "Everyone", "rule_type": "any_approver", "approvals_required": 1}
    security = {"id": 4, "name": "Security", "users": ["bob"], "group_ids": [11], "protected_branch_ids": [1]}
    state["projects"][0] |= {
        "protected_branches": [{"id": 1, "name": "main"}],
        "approval_rules": [anybody, security, {"id": 5, "name": "All", "applies_to_all_protected_branches": True}],
    }
    cli_runner.sandbox.replace_state(state)
    assert cli_runner("export --group acme -o out --state state.json").code == 0
    rehearsal = json.loads(Path("state.json").read_text())
    (api,) = (project for project in rehearsal["projects"] if project["path"] == "acme/api")
    assert api["members"] == [{"user": "ada", "role": "owner"}, {"user": "bob", "role": "developer"}]
    assert [rule["protected_branch_ids"] for rule in api["approval_rules"]] == [[1], [1], []]


def event(name: str, **details: Any) -> AuditEvent:
    return AuditEvent(name, "Mona", datetime.now(UTC), 29, {"target_details": "QA", **details})


EVENTS = [
    (event("approval_rule_deleted", custom_message="Deleted approval rule"), [(None, None, True)]),
    (
        event("approval_rule_created", custom_message="Added approval rule with number of required approvals of 1"),
        [(None, None, False), ("approvals_required", 1, False)],
    ),
    (
        event("update_approval_rules", custom_message="Changed number of required approvals from 1 to 2"),
        [("approvals_required", 2, False)],
    ),
    (
        event("update_approval_rules", custom_message="Changed target branch to all branches"),
        [("branches", "any", False)],
    ),
    (
        event("update_approval_rules", custom_message="Changed target branch to all protected branches"),
        [("branches", "protected", False)],
    ),
    (
        event("update_approval_rules", custom_message="Changed target branch to old, main branches"),
        [("branches", ["main", "old"], False)],
    ),
    (event("update_approval_rules", custom_message="Added User Eve to approval group on QA rule"), []),
    (event("project_archived", custom_message="Project archived"), []),
]


@pytest.mark.parametrize(("happened", "traced"), EVENTS)
def test_events_tell_what_they_did_to_a_rule(happened: AuditEvent, traced: list[tuple[Any, ...]]) -> None:
    told = list(trace(happened))
    assert [(each.field, each.value, each.removed) for each in told] == traced
    assert {each.names for each in told} <= {("QA", 29)}


@pytest.mark.untraced
@pytest.mark.parametrize("why", [{"archived": True}, {"merge_requests_enabled": False}])
def test_maintainers_change_the_rules_of_an_archive_and_where_merge_requests_are_off(
    engine: EngineDriver, why: dict[str, Any]
) -> None:
    service(engine, {"id": 7, "name": "a", "users": ["Eve"]}, **why)
    assert engine.step(rules({"a": {"approvals_required": 2}})) == [f'PUT {RULES}/7 {{"approvals_required": 2}}']
