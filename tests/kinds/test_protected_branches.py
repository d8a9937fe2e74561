"""Protected branches: entries by name, merged by ID; rules of groups that are found by a part of their name."""

import json
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.document.stored import load_plan, save
from reconciler.engine.apply import ApplyOptions, apply_plan
from reconciler.engine.apply.agree import PLAN_WAS_EDITED
from reconciler.engine.read import read_part
from reconciler.kinds.protected_branches import trace
from reconciler.model.audit import AuditEvent, Traced
from reconciler.model.item import Create, Delete, sentences
from reconciler.model.protocols import Json, Request
from reconciler.model.resource import Objects
from reconciler.model.state import Section, Unreadable
from reconciler.model.targets import Target
from reconciler.model.wording import counted
from reconciler.sandbox import Sandbox
from reconciler.service import Client
from tests.answering import Answering
from tests.between import Passing, between
from tests.building import ACME, API, KINDS, section
from tests.cli_runner import CliRunner
from tests.engine_driver import EngineDriver, failures
from tests.items import findings_of
from tests.render.samples import saved_plan, spoilt, tree
from tests.service.clock import SwiftClock
from tests.states import a_small_service

RULES = "projects/acme%2Fapi/protected_branches"
OF_GROUP = "groups/acme/protected_branches"


def branches(value: dict[str, Any], target: Any = API, *, prune: bool = False) -> Section:
    return section("protected_branches", value, target, prune=prune)


def service(
    engine: EngineDriver, *rules: dict[str, Any], of_group: tuple[dict[str, Any], ...] = (), **more: Any
) -> None:
    """Give the project these rules."""
    state = a_small_service(engine.sandbox.state()["instance"]["dialect"])
    state["users"] += [{"id": 4, "username": "Eve", "name": "Eve"}, {"id": 5, "username": "max"}]
    state["projects"][0] |= {
        "protected_branches": list(rules),
        "members": [{"user": "Eve", "role": "developer"}],
        **more,
    }
    state["groups"][0]["protected_branches"] = list(of_group)
    engine.sandbox.replace_state(state)


def sent(line: str) -> tuple[str, Any]:
    """Return a request and its body."""
    request, _, body = line.partition(" {")
    return request, json.loads("{" + body) if body else None


def levels(*numbers: int, **subject: Any) -> list[dict[str, Any]]:
    return [{"id": number, "access_level": number % 100} for number in numbers] + ([subject] if subject else [])


@pytest.mark.untraced
def test_a_list_is_sent_with_its_entries_by_id_and_what_is_left_out_stays(engine: EngineDriver) -> None:
    wanted: dict[str, Any] = {"allowed_to_push": ["maintainer", {"user": "eve"}], "allowed_to_merge": []}
    service(engine)
    (create,) = engine.step(branches({"release/*": wanted}))
    assert sent(create) == (
        f"POST {RULES}",
        {
            "name": "release/*",
            "allowed_to_push": [{"access_level": 40}, {"user_id": 4}],
            "allowed_to_merge": [{"access_level": 0}],
        },
    )
    wanted = {"allowed_to_push": ["developer", {"user": "EVE"}, "developer"], "allowed_to_merge": ["admin"]}
    (update,) = engine.step(branches({"release/*": wanted}))
    assert sent(update) == (
        f"PATCH {RULES}/release%2F%2A",
        {
            "allowed_to_push": [{"id": 1, "_destroy": True}, {"access_level": 30}],
            "allowed_to_merge": [{"access_level": 60}],
        },
    )
    assert engine.step(branches({"release/*": {"allowed_to_unprotect": ["maintainer"]}})) == []
    assert engine.step(branches({"release/*": {"allow_force_push": True}})) == [
        f'PATCH {RULES}/release%2F%2A {{"allow_force_push": true}}'
    ]
    assert engine.step(branches({}, prune=True)) == [f"DELETE {RULES}/release%2F%2A"]


def test_a_saved_plan_is_stale_whose_entries_were_made_anew_and_edited_if_it_removes_others(
    engine: EngineDriver,
) -> None:
    service(engine, {"name": "main", "push_access_levels": [{"id": 7, "access_level": 40}]})
    plan = engine.plan(branches({"main": {"allowed_to_push": ["developer"]}}))
    service(engine, {"name": "main", "push_access_levels": [{"id": 8, "access_level": 40}]})
    assert failures(engine.apply(plan, recheck=True)) == [
        "stale: protected branch main: it has changed since the plan was made: the entries of its lists have other IDs; "
        "make the plan again"
    ]

    def edit(saved: Any) -> None:
        (change,) = saved["items"]
        change["requests"][0]["body"]["allowed_to_push"] = [{"id": 8, "_destroy": True}]

    edited = tree(load_plan(spoilt(save(saved_plan(plan)), edit), KINDS))
    assert failures(engine.apply(edited, recheck=True)) == [f"stale: protected branch main: {PLAN_WAS_EDITED}"]
    assert engine.writes() == []


def test_entries_that_mean_the_same_are_equal_on_both_sides(engine: EngineDriver) -> None:
    rule = {
        "name": "main",
        "push_access_levels": levels(140, 240, 100),
        "merge_access_levels": [{"id": 7, "access_level": 30, "user": "Eve"}, {"id": 8, "access_level": 0}],
        "unprotect_access_levels": [],
    }
    service(engine, rule)
    same = {"allowed_to_push": ["maintainer"], "allowed_to_merge": [{"user": "eve"}]}
    assert engine.step(branches({"main": same})) == []
    (nobody,) = engine.step(branches({"main": {"allowed_to_push": []}}))
    assert sent(nobody)[1] == {"allowed_to_push": [{"id": 140, "_destroy": True}, {"id": 240, "_destroy": True}]}
    assert engine.step(branches({"main": {"allowed_to_unprotect": ["maintainer"]}})) == []


def test_all_who_come_take_one_list_of_members_and_the_record_of_the_project(engine: EngineDriver) -> None:
    invited: Any = {"invited_groups": [{"group_id": 11, "role": "developer"}]}
    rule = {"name": "main", "push_access_levels": [{"id": 1, "access_level": 40, "user": "Eve"}]}
    service(engine, rule, {**rule, "name": "old", "push_access_levels": levels(240)}, **invited)
    wanted = {"allowed_to_push": [{"user": "eve"}], "allowed_to_merge": [{"user": "bob"}, {"group": "Acme/Tools"}]}
    engine.plan(branches({"main": wanted, "old": wanted, "new": wanted}))
    assert engine.requests() == [
        f"GET {RULES}?per_page=100&page=1",
        "GET users/4",
        "GET projects/acme%2Fapi",
        "GET projects/acme%2Fapi/members/all?per_page=100&page=1",
    ]
    assert len(engine.step(branches({"main": wanted, "old": wanted, "new": wanted}))) == 3


def test_a_key_is_named_by_its_title(engine: EngineDriver) -> None:
    keys = [{"id": number, "title": title, "can_push": True} for number, title in enumerate(["a", "b", "b"], start=1)]
    service(engine, enabled_deploy_keys=keys)
    (create,) = engine.step(branches({"main": {"allowed_to_push": [{"deploy_key": "a"}]}}))
    assert sent(create)[1]["allowed_to_push"] == [{"deploy_key_id": 1}]
    wanted = {"allowed_to_push": [{"deploy_key": "b"}, {"deploy_key": "c"}, {"deploy_key": "a"}]}
    assert engine.problems(branches({"main": wanted})) == [
        'protected branch.allowed_to_push: 2 deploy keys have this title: "b"',
        'protected branch.allowed_to_push: no such deploy key is enabled: "c"',
    ]


def test_whom_nobody_knows_is_a_problem_before_anything_is_written(engine: EngineDriver) -> None:
    service(engine)
    wanted = {"allowed_to_push": [{"user": "nobody"}], "allowed_to_merge": [{"group": "acme/none"}]}
    assert engine.problems(branches({"main": wanted}))[0] == (
        'protected branch.allowed_to_push: the project has no member "nobody", or none that this token can see'
    )
    assert failures(engine.apply(engine.plan(branches({"main": wanted})))) == []
    assert engine.writes() == []


def test_who_cannot_be_seen_stays_a_number(engine: EngineDriver) -> None:
    rule = {"name": "main", "push_access_levels": [{"id": 1, "access_level": 40, "user": "Eve"}]}
    service(engine, rule)
    engine.sandbox.set_faults([{"kind": "status", "status": 404, "match": "/users/4"}])
    assert engine.step(branches({"main": {"allowed_to_push": [{"user": 4}]}})) == []


def test_who_can_be_seen_has_a_name(engine: EngineDriver) -> None:
    service(engine, {"name": "main", "push_access_levels": [{"id": 1, "access_level": 40, "user": "Eve"}]})
    plan = engine.plan(branches({"main": {"allowed_to_push": ["admin"]}}))
    assert [change.read.fields["allowed_to_push"] for change in plan.changes if not isinstance(change, Create)] == [
        [{"user": "eve"}]
    ]


def test_a_rename_protects_before_it_unprotects(engine: EngineDriver) -> None:
    rule = {
        "name": "main",
        "push_access_levels": [{"id": 1, "access_level": 40, "user": "Eve"}],
        "merge_access_levels": levels(240),
        "unprotect_access_levels": levels(340),
        "allow_force_push": True,
    }
    service(engine, rule)
    create, delete = engine.step(branches({"trunk": {"renamed_from": "main", "allow_force_push": False}}))
    assert sent(create) == (
        f"POST {RULES}",
        {
            "name": "trunk",
            "allowed_to_push": [{"user_id": 4}],
            "allowed_to_merge": [{"access_level": 40}],
            "allowed_to_unprotect": [{"access_level": 40}],
            "allow_force_push": False,
            "code_owner_approval_required": False,
        },
    )
    assert delete == f"DELETE {RULES}/main"


def test_a_creation_says_what_the_service_adds(engine: EngineDriver) -> None:
    service(engine)
    (create,) = engine.plan(branches({"main": {"allowed_to_push": []}})).changes
    assert isinstance(create, Create)
    assert (
        "; ".join(sentences(create, "hint"))
        == "allowed_to_merge: maintainer, by default, allowed_to_unprotect: maintainer, by default"
    )


def test_the_rules_of_a_group_are_not_those_of_its_projects(engine: EngineDriver) -> None:
    service(engine, {"name": "main", "merge_access_levels": levels(140)}, of_group=({"name": "release/*"},))
    assert engine.step(branches({"main": {}}, prune=True)) == []
    (create,) = engine.step(branches({"main": {}, "release/*": {"allow_force_push": True}}, prune=True))
    assert sent(create)[0] == f"POST {RULES}"


def test_a_plan_names_the_rules_of_groups_above(cli_runner: CliRunner) -> None:
    state = a_small_service("deployed")
    state["groups"][0]["protected_branches"] = [{"id": 1, "name": "main"}, {"id": 2, "name": "release/*"}]
    state["projects"][0]["protected_branches"] = [{"id": 3, "name": "main"}, {"id": 4, "name": "old"}]
    cli_runner.sandbox.replace_state(state)
    cli_runner.project("{protected_branches: {main: {}}}")
    done = cli_runner("plan -v")
    assert done.out == (
        "project acme/api\n"
        '  ? protected branch "old" is unmanaged       ID 4\n'
        '  = protected branch "main" is inherited      from a group above\n'
        '  = protected branch "release/*" is inherited  from a group above\n'
        "No changes: 1 target is in order, 1 unmanaged. 1 request was made to plan.\n"
    )
    assert "inherited" not in cli_runner("plan").out
    assert findings_of(json.loads(cli_runner("plan --format json").out), "inherited") == [
        {
            "target": "project acme/api",
            "section": "protected_branches",
            "title": "protected branch",
            "name": name,
            "finding": "inherited",
            "field": None,
            "reason": "is inherited from a group above",
            "fix": "",
            "data": {"holder": "a group above"},
            "origin": "",
        }
        for name in ("main", "release/*")
    ]


def test_two_rules_of_one_name_are_a_problem_with_their_ids(engine: EngineDriver) -> None:
    service(engine, {"id": 7, "name": "main"}, {"id": 9, "name": "main"})
    named = ["protected branch.None: 2 objects have this name (IDs 7, 9); expected one"]
    assert engine.problems(branches({"main": {"allow_force_push": True}})) == named
    for unwanted in (branches({"main": None}), branches({}, prune=True)):
        assert engine.problems(unwanted) == named
        engine.apply(engine.plan(unwanted))
        assert engine.writes() == []


def applied_at_once(engine: EngineDriver, *sections: Section, applies: int = 2) -> list[str]:
    """Apply the same several times at the same time, so that each creation of a rule meets the others."""
    plan = engine.plan(*sections)
    engine.sandbox.set_faults(
        [
            {"kind": "race", "method": "POST", "match": match, "together": applies}
            for match in ("protected_branches", "approval_rules")
        ]
    )
    with ExitStack() as clients, ThreadPoolExecutor() as pool:
        each = [clients.enter_context(Client(engine.sandbox.api_url, "ada-token")) for _ in range(applies)]
        runs = [*pool.map(lambda client: apply_plan(plan, client, KINDS, ApplyOptions()), each)]
    engine.sandbox.set_faults([])
    return [line for outcomes in runs for line in failures(outcomes)]


@pytest.mark.untraced
@pytest.mark.parametrize(("target", "owners"), [(API, "projects"), (ACME, "groups")], ids=["project", "group"])
def test_of_two_applies_at_once_one_rule_stays_and_the_next_plan_is_empty(
    engine: EngineDriver, target: Target, owners: str
) -> None:
    service(engine)
    wanted = branches({"main": {}}, target)
    assert applied_at_once(engine, wanted) == []
    (rule,) = engine.sandbox.state()[owners][0]["protected_branches"]
    assert rule["id"] == 2
    again = engine.plan(wanted)
    assert (list(again.changes), list(again.problems)) == ([], [])


def test_of_two_applies_at_once_an_approval_rule_names_the_branch_rule_that_stays(engine: EngineDriver) -> None:
    other = {"id": 20, "name": "x", "users": ["Eve"], "applies_to_all_protected_branches": True}
    service(engine, approval_rules=[other])
    qa = {"QA": {"approvals_required": 1, "users": ["eve"], "branches": ["main"]}}
    wanted = branches({"main": {}}), section("approval_rules", qa)
    (deleted,) = applied_at_once(engine, *wanted)
    # The later run's rule is deleted again; or it has lost the branch meanwhile, with the rule that was its own.
    lost = "dropped by the service: approval rule QA: the service kept its own branches"
    assert re.fullmatch(rf"failed: approval rule QA: .* this run's, ID 22, was deleted again|{lost}", deleted)
    project = engine.sandbox.state()["projects"][0]
    assert [rule["id"] for rule in project["protected_branches"]] == [2]
    assert [rule["protected_branch_ids"] for rule in project["approval_rules"] if rule["name"] == "QA"] == [[2]]
    again = engine.plan(*wanted)
    assert (list(again.changes), list(again.problems)) == ([], [])


@pytest.mark.untraced
def test_where_approvals_are_not_to_be_had_one_rule_stays_too(engine: EngineDriver) -> None:
    service(engine)
    state = engine.sandbox.state()
    state["instance"]["licensed"] = False
    engine.sandbox.replace_state(state)
    assert applied_at_once(engine, branches({"main": {}})) == []
    assert len(engine.sandbox.state()["projects"][0]["protected_branches"]) == 1


class Crowded(Client):
    """A client at whose creation of a rule others have created the same."""

    rules: Sequence[dict[str, Any]] = ()
    """Approval rules that come with them."""

    def __init__(self, sandbox: Sandbox, others: dict[int, str], faults: list[dict[str, Any]]) -> None:
        super().__init__(sandbox.api_url, "ada-token", clock=SwiftClock())
        self.sandbox, self.others, self.faults = sandbox, others, faults

    def send(self, request: Request, **more: Any) -> Json:
        answer = super().send(request, **more)
        if request.method == "POST":
            state = self.sandbox.state()
            owner = state["projects" if request.path.startswith("projects") else "groups"][0]
            owner["protected_branches"] += [{"id": number, "name": name} for number, name in self.others.items()]
            state["projects"][0] |= {"approval_rules": [*self.rules]} if self.rules else {}
            self.sandbox.replace_state(state)
            self.sandbox.set_faults(self.faults)
        return answer


@pytest.mark.parametrize(("target", "owners"), [(API, "projects"), (ACME, "groups")], ids=["project", "group"])
def test_what_names_the_rule_of_another_run_names_this_run_s_before_that_one_goes(
    engine: EngineDriver, target: Target, owners: str
) -> None:
    service(engine, {"id": 7, "name": "x"})
    plan = engine.plan(branches({"main": {}}, target))
    with Crowded(engine.sandbox, {1: "main"}, []) as client:
        client.rules = [{"id": 30, "name": "QA", "users": ["eve"], "protected_branch_ids": [1, 7]}]
        assert failures(list(apply_plan(plan, client, KINDS, ApplyOptions()))) == []
    state = engine.sandbox.state()
    assert {rule["id"] for rule in state[owners][0]["protected_branches"]} - {7} == {8}
    assert [sorted(rule["protected_branch_ids"]) for rule in state["projects"][0]["approval_rules"]] == [[7, 8]]
    writes = [line for line in engine.requests() if not line.startswith("GET")]
    of_project = "projects/acme%2Fapi" if target == API else "projects/100"
    now = '{"protected_branch_ids": [8, 7], "applies_to_all_protected_branches": false}'
    assert writes == [f"PUT {of_project}/approval_rules/30 {now}", f"DELETE {target.url}protected_branches/main"]


@pytest.mark.parametrize(
    ("target", "others", "faults", "told"),
    [
        (API, {1: "main", 2: "main"}, [], ": delete one of them"),
        (ACME, {1: "main", 2: "main"}, [], ": delete one of them"),
        (ACME, {1: "Mainline", 2: "main"}, [], ": delete one of them"),
        (
            API,
            {1: "main"},
            [{"kind": "status", "status": 403, "method": "DELETE"}],
            f", because the other could not be deleted: DELETE {RULES}/main: 403 Forbidden",
        ),
        (
            API,
            {1: "main"},
            [{"kind": "status", "status": 500, "method": "GET", "match": "approval_rules", "times": 99}],
            f", because the other could not be deleted: GET {RULES.replace('protected_branches', 'approval_rules')}: "
            "500 Internal Server Error",
        ),
        (
            ACME,
            {1: "main"},
            [{"kind": "status", "status": 403, "method": "GET", "match": "groups/acme/projects"}],
            ", because the other could not be deleted: GET groups/acme/projects: 403 Forbidden",
        ),
    ],
    ids=[
        "of three",
        "of three of a group",
        "a part of another name in a group",
        "not allowed",
        "unknown what names it",
        "unknown where it is named",
    ],
)
def test_rules_made_at_once_are_named_where_it_is_not_certain_which_would_go(
    engine: EngineDriver, target: Target, others: dict[int, str], faults: list[dict[str, Any]], told: str
) -> None:
    service(engine, {"id": 7, "name": "x"}, of_group=({"id": 8, "name": "xx"},))
    plan = engine.plan(branches({"main": {}}, target))
    with Crowded(engine.sandbox, others, faults) as client:
        (failed,) = failures(list(apply_plan(plan, client, KINDS, ApplyOptions())))
    engine.sandbox.set_faults([])
    assert failed == (
        "failed: protected branch main: somebody else created the same object at the same time, ID "
        f"{min(number for number, name in others.items() if name == 'main')}; this run's, ID 9, is still there{told}"
    )
    assert len(engine.problems(branches({"main": {}}, target))) == 1


DELETE, LOOK = f"DELETE {OF_GROUP}/main", f"GET {OF_GROUP}?per_page=100&page=1"
BUSY = {"kind": "status", "status": 503, "method": "DELETE", "retry_after": 1}


@pytest.mark.parametrize(
    ("faults", "requests", "told"),
    [
        ([{**BUSY, "times": 1}], [DELETE, LOOK, DELETE, LOOK], []),
        (
            [{**BUSY, "times": 99}],
            [DELETE, LOOK, DELETE, LOOK, DELETE],
            [f"failed: protected branch main: {DELETE}: 503 Service Unavailable"],
        ),
        (
            [{**BUSY, "times": 1}, {"kind": "status", "status": 403, "method": "GET"}],
            [DELETE, LOOK],
            [f"failed: protected branch main: {DELETE}: 503 Service Unavailable"],
        ),
    ],
    ids=["once", "always", "nothing to see"],
)
def test_a_deletion_by_name_is_not_sent_again_without_looking(
    engine: EngineDriver, faults: list[dict[str, Any]], requests: list[str], told: list[str]
) -> None:
    """The service takes a part of a name for the name: the second would delete another rule."""
    service(engine, of_group=({"id": 1, "name": "main"}, {"id": 2, "name": "mainline"}))
    plan = engine.plan(branches({"main": None}, ACME))
    engine.sandbox.set_faults(faults)
    assert failures(engine.apply(plan)) == told
    assert engine.requests() == requests


def test_a_deletion_that_was_carried_out_though_the_answer_asks_to_come_back_is_done(engine: EngineDriver) -> None:
    service(engine, of_group=({"id": 1, "name": "main"}, {"id": 2, "name": "mainline"}))
    plan = engine.plan(branches({"main": None}, ACME))

    def overloaded(passing: Passing) -> None:
        if passing.request.startswith("DELETE"):
            passing.status, passing.headers["retry-after"] = 503, "1"

    with between(engine.sandbox.api_url) as relay:
        relay.alter = overloaded
        engine.sandbox.clear_log()
        with Client(relay.api_url, "ada-token", clock=SwiftClock()) as client:
            assert failures(list(apply_plan(plan, client, KINDS, ApplyOptions()))) == []
    assert engine.requests() == [DELETE, LOOK, LOOK]
    assert [rule["name"] for rule in engine.sandbox.state()["groups"][0]["protected_branches"]] == ["mainline"]


def test_a_default_branch_that_is_protected_late_is_adopted(engine: EngineDriver) -> None:
    service(engine)
    plan = engine.plan(branches({"main": {"allow_force_push": True}}))
    service(engine, {"id": 1, "name": "main", "unprotect_access_levels": []})
    assert failures(engine.apply(plan)) == ["stale: protected branch main: it exists now"]


def test_what_the_edition_lacks_is_dropped_or_refused(engine: EngineDriver) -> None:
    service(engine)
    state = engine.sandbox.state()
    state["instance"]["licensed"] = False
    engine.sandbox.replace_state(state)
    plan = engine.plan(
        branches({"a": {"code_owner_approval_required": True}, "b": {"allowed_to_push": [{"user": "eve"}]}})
    )
    dropped, refused = failures(engine.apply(plan))
    assert (
        dropped == "dropped by the service: protected branch a: the service kept its own code_owner_approval_required"
    )
    assert "Push access levels user must be blank" in refused


def test_a_group_s_rule_that_the_service_takes_for_another_is_not_touched(engine: EngineDriver) -> None:
    service(
        engine, of_group=({"id": 1, "name": "maintenance"}, {"id": 2, "name": "main"}, {"id": 3, "name": "99 release"})
    )
    wanted = {"main": {"allow_force_push": True}, "TEN": {}, "maintenance": {"allow_force_push": True}}
    plan = engine.plan(branches(wanted, ACME, prune=True))
    assert [f"{each.address.name}: {each.reason}" for each in plan.problems] == [
        'TEN: the service looks for a part of the name, and takes this for "maintenance" (ID 1)',
        'main: the service looks for a part of the name, and takes this for "maintenance" (ID 1)',
    ]
    engine.apply(plan)
    assert engine.writes() == [
        f'PATCH {OF_GROUP}/maintenance {{"allow_force_push": true}}',
        f"DELETE {OF_GROUP}/99%20release",
    ]


def test_a_deletion_that_would_take_another_rule_of_a_group_is_a_problem(engine: EngineDriver) -> None:
    service(engine, of_group=({"id": 1, "name": "maintenance"}, {"id": 2, "name": "main"}))
    plan = engine.plan(branches({"main": None, "maintenance": {}}, ACME))
    assert [f"{each.address.name}: {each.reason}" for each in plan.problems] == [
        'main: the service looks for a part of the name, and takes this for "maintenance" (ID 1)'
    ]
    engine.apply(plan)
    assert engine.writes() == []


def test_shorter_names_are_created_before_longer_ones_that_contain_them(engine: EngineDriver) -> None:
    service(engine)
    writes = engine.step(branches({"a-main": {}, "main": {}, '"x': {}, "ma": {}}, ACME))
    assert [sent(line)[1]["name"] for line in writes] == ['"x', "ma", "main", "a-main"]


@pytest.mark.untraced
@pytest.mark.parametrize(("kind", "done"), [("reset-after", True), ("reset-before", False)])
def test_no_request_is_sent_again_whose_answer_is_lost(engine: EngineDriver, kind: str, *, done: bool) -> None:
    """The second DELETE of one name would take another rule; what came of the first, the list tells."""
    service(engine, of_group=({"id": 1, "name": "main"}, {"id": 2, "name": "mainline"}))
    for method, wanted in (("DELETE", {"main": None}), ("POST", {"trunk": {}})):
        engine.sandbox.set_faults([{"kind": kind, "method": method, "times": 1}])
        outcomes = engine.apply(engine.plan(branches(wanted, ACME)))
        assert [line.split()[0] for line in engine.writes()] == [method]
        assert len(failures(outcomes)) == (not done)
        assert [each.unconfirmed for target in outcomes for each in target.outcomes] == [not done]


def test_errors_of_manifests_say_what_is_wrong_with_entries(cli_runner: CliRunner) -> None:
    cli_runner.project("{protected_branches: {main: {allowed_to_unprotect: [], allowed_to_merge: [{deploy_key: a}]}}}")
    done = cli_runner("validate")
    assert "an empty list would not mean nobody, but any Maintainer" in done.err + done.out
    assert "a deploy key can push and do nothing else" in done.err + done.out


NO_ENTRIES = [{"id": "7"}, {"id": 7}, {"id": 7, "user_id": "8"}, {"id": 7, "group_id": [8]}, 7]


@pytest.mark.parametrize("shown", [*({"push_access_levels": [entry]} for entry in NO_ENTRIES), {}])
def test_a_rule_that_is_none_makes_the_rules_unreadable(shown: Any) -> None:
    class Telling(Answering):
        def pages(self, path: str, *, whole: bool = False) -> list[Any]:
            del whole
            assert path == RULES
            return [{"id": 1, "name": "main", **shown}]

    live = read_part(Telling(), KINDS["protected_branches"].parts[0], API, {})
    reason = f"GET {RULES}: unexpected response"
    assert isinstance(live, Unreadable)
    assert live.reason.startswith(reason)


@pytest.mark.parametrize("record", [{"username": ""}, {"username": " "}, {"username": 7}, {}, []], ids=repr)
def test_a_record_without_a_name_leaves_the_entry_its_number(record: Any) -> None:
    class Telling(Answering):
        def get(self, path: str) -> Any:
            assert path == "users/8"
            return record

        def pages(self, path: str, *, whole: bool = False) -> list[Any]:
            del whole
            assert path == RULES
            return [{"id": 1, "name": "main", "push_access_levels": [{"id": 7, "access_level": 40, "user_id": 8}]}]

    live = read_part(Telling(), KINDS["protected_branches"].parts[0], API, {})
    assert isinstance(live, Objects)
    assert [record.resource.model_dump()["allowed_to_push"] for record in live.own] == [({"user": 8},)]


def test_members_that_cannot_be_listed_are_a_problem(engine: EngineDriver) -> None:
    service(engine)
    engine.sandbox.set_faults([{"kind": "status", "status": 403, "match": "members/all"}])
    assert engine.problems(branches({"main": {"allowed_to_push": [{"user": "bob"}]}})) == [
        "protected branch.allowed_to_push: cannot be checked: GET projects/acme%2Fapi/members/all: 403 Forbidden"
    ]


def test_several_are_called_branches() -> None:
    title = KINDS["protected_branches"].parts[0].title
    assert [counted(number, title) for number in (1, 2)] == ["1 protected branch", "2 protected branches"]


def test_a_new_project_is_protected_by_the_run_that_creates_it(cli_runner: CliRunner) -> None:
    rule = "{protected_branches: {main: {allowed_to_push: [{user: bob}]}}}"
    cli_runner.write("manifests/a.yaml", PROJECT.format(rule))
    done = cli_runner("apply --yes")
    assert (done.code, "2 created" in done.out) == (0, True), done.out + done.err
    assert cli_runner("plan --detailed-exitcode").code == 0


PROJECT = "{{apiVersion: reconciler/v1, kind: Project, metadata: {{path: acme/fresh}}, create: {{}}, spec: {}}}"


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("level", "entry", "reason"),
    [
        ("Group", "{user: ada}", "the rule of a group holds roles only"),
        (
            "Group",
            "{user: ada, group: acme}",
            "an entry is a role (developer, maintainer or admin), or one of {user: NAME}",
        ),
        ("Group", "owner", "an owner may do all that a maintainer may: write `maintainer`"),
        ("Group", "7", "must be a list"),
        ("Group", "[maintainer]", "an entry is a role (developer, maintainer or admin), or one of {user: NAME}"),
    ],
)
def test_an_entry_that_no_rule_can_hold_is_an_error(cli_runner: CliRunner, level: str, entry: str, reason: str) -> None:
    document = "{{apiVersion: reconciler/v1, kind: {}, metadata: {{path: acme}}, spec: {{protected_branches: {}}}}}"
    entry = f"[{entry}]" if entry != "7" else entry
    cli_runner.write("manifests/a.yaml", document.format(level, f"{{main: {{allowed_to_push: {entry}}}}}"))
    done = cli_runner("validate")
    assert (done.code, reason in done.err + done.out) == (1, True), done.err + done.out


RECORDINGS = Path(__file__).parents[1] / "acceptance" / "recordings"
FAST = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
OF_RULES = re.compile("/protected_(branches|tags)([/?]|$)")


@pytest.mark.untraced
@pytest.mark.parametrize("file", sorted(file.name for file in RECORDINGS.glob("*protected-*.yaml")))
def test_every_rule_that_the_service_has_shown_is_read_whole(file: str) -> None:
    read = 0
    for recorded in FAST((RECORDINGS / file).read_text()).get_single_data()["interactions"]:
        kind = OF_RULES.search(recorded["request"]["uri"])
        if kind is None or recorded["response"]["status"]["code"] not in (200, 201):
            continue
        (part,) = KINDS[f"protected_{kind[1]}"].parts
        answer = json.loads(recorded["response"]["body"]["string"])
        for entry in answer if isinstance(answer, list) else [answer]:
            found = part.read(API, entry)
            assert (dict(found.unknown), dict(found.read_only)) == ({}, {})
            read += 1
    assert read


def test_a_rule_that_only_others_may_change_is_a_problem_of_the_plan(engine: EngineDriver) -> None:
    def kept(name: str, *users: str, **more: Any) -> dict[str, Any]:
        return {"name": name, "unprotect_access_levels": [{"access_level": 40, "user": user} for user in users], **more}

    role = {"name": "role", "unprotect_access_levels": [{"access_level": 60}]}
    mixed = kept("mixed", "Eve")
    mixed["unprotect_access_levels"] += role["unprotect_access_levels"]
    service(engine, kept("theirs", "Eve", "max"), kept("ours", "Eve", "ada"), kept("same", "Eve"), role, mixed)
    wanted: dict[str, Any] = {name: {"allow_force_push": True} for name in ("theirs", "ours", "role", "mixed")}
    more = {
        "same": {},
        "new": {"allowed_to_unprotect": [{"user": "eve"}]},
        "mine": {"allowed_to_unprotect": [{"user": "ada"}]},
        "admins": {"allowed_to_unprotect": ["admin"]},
    }
    plan = engine.plan(branches({**wanted, **more}))
    assert engine.requests().count("GET user") == 1
    reason = "only eve, max may change this rule, by allowed_to_unprotect: not even an owner or an administrator"
    assert sorted(f"{each.address.name}: {each.reason}" for each in plan.problems) == [
        f"new: {reason.replace('eve, max', 'eve')}",
        f"theirs: {reason}",
    ]
    assert engine.problems(branches({"same": None})) == [f"protected branch.None: {reason.replace('eve, max', 'eve')}"]
    assert engine.problems(branches({"same": {}})) == []
    assert "GET user" not in engine.requests()
    told = "allowed_to_unprotect names administrators, and this token does not belong to one: the service may refuse it"
    hints = {
        change.address.name: "; ".join(sentences(change, "hint"))
        for change in plan.changes
        if not isinstance(change, Delete)
    }
    assert [hints[name].endswith(told) for name in ("role", "mixed", "admins", "ours")] == [True, True, True, False]
    engine.apply(plan)
    assert f"PATCH {RULES}/ours" in [sent(line)[0] for line in engine.writes()]
    (deletion,) = engine.plan(branches({"role": None})).changes
    assert isinstance(deletion, Delete)
    assert sentences(deletion, "loss")[0] == told


def test_who_the_token_is_may_stay_unknown(engine: EngineDriver) -> None:
    service(engine, {"name": "main", "unprotect_access_levels": [{"access_level": 40, "user": "Eve"}]})
    engine.sandbox.set_faults([{"kind": "status", "status": 403, "match": "/user"}])
    plan = engine.plan(branches({"main": {"allow_force_push": True}}))
    assert list(plan.problems) == []
    (refused,) = failures(engine.apply(plan))
    assert refused == (
        "failed: protected branch main: `allowed_to_unprotect` of the rule names neither the token's user nor a role "
        "that suffices, or a security policy holds the rule; use the token of somebody whom the rule names, or exempt "
        f"the branch from the policy (PATCH {RULES}/main: 403 Forbidden)"
    )


def test_a_role_that_does_not_suffice_for_one_rule_holds_up_no_other(engine: EngineDriver) -> None:
    role = {"unprotect_access_levels": [{"access_level": 60}]}
    service(engine, {"name": "a", **role}, {"name": "b"})
    changed = {name: {"allow_force_push": True} for name in "ab"}
    assert [line.split(":")[:2] for line in failures(engine.apply(engine.plan(branches(changed))))] == [
        ["failed", " protected branch a"]
    ]


def event(name: str, **details: Any) -> AuditEvent:
    return AuditEvent(name, "Mona", datetime.now(UTC), 55, {"target_details": "main", **details})


MADE = {"push_access_levels": ["No one"], "merge_access_levels": ["Maintainers", "Eve"], "allow_force_push": True}
UPDATED = "protected_branch_updated"
EVENTS = [
    (event("protected_branch_removed", **MADE), [(None, None, True)]),
    (
        event("protected_branch_created", **MADE),
        [
            (None, None, False),
            ("allow_force_push", True, False),
            ("allowed_to_push", [], False),
            ("allowed_to_merge", ["maintainer", None], False),
        ],
    ),
    (event("protected_branch_allow_force_push_updated", to="false"), [("allow_force_push", False, False)]),
    (
        event(UPDATED, change="allowed to push and merge", to='["Developers + Maintainers", "No one"]'),
        [("allowed_to_push", ["developer"], False)],
    ),
    (event(UPDATED, change="allowed to merge", to="damaged"), []),
    (event(UPDATED, change="something else", to="[]"), []),
]


@pytest.mark.parametrize(("happened", "traced"), EVENTS)
def test_events_tell_what_they_did_to_a_branch_rule(happened: AuditEvent, traced: list[tuple[Any, ...]]) -> None:
    told = list(trace(happened))
    assert [(each.field, each.value, each.removed) for each in told] == traced
    assert {each.names for each in told} <= {("main", 55)}


def test_a_list_is_as_an_event_left_it_if_all_its_roles_are_and_it_is_as_long() -> None:
    left = Traced("protected_branches", "allowed_to_push", ["maintainer", None])
    assert left.is_still_set(["maintainer", {"user": "eve"}])
    assert not left.is_still_set(["maintainer"])
    assert not left.is_still_set(["developer", {"user": "eve"}])
    assert not left.is_still_set(None)


@pytest.mark.untraced
def test_rules_of_an_archive_are_read_only_and_without_a_repository_there_are_none(engine: EngineDriver) -> None:
    """A rule with a role for those who may change it is locked while nobody may push."""
    entry = {"id": 240, "access_level": 40}
    rule = {"id": 1, "name": "main", "unprotect_access_levels": [entry]}
    wanted = branches({"main": {"allow_force_push": True}, "new": {}})
    service(engine, rule)
    plan = engine.plan(wanted)
    service(engine, rule, archived=True)
    assert engine.step(branches({"main": {}})) == []
    assert engine.problems(wanted) == ["protected branch.None: the project is archived"]
    refused = failures(engine.apply(plan))
    assert [line.partition(" (POST")[0] for line in refused] == [
        "failed: protected branch new: the project is archived; unarchive it, or leave the section out",
        "skipped: protected branch main: the project is archived",
    ]
    assert [rule["name"] for rule in engine.sandbox.state()["projects"][0]["protected_branches"]] == ["main"]
    service(engine, repository_enabled=False)
    assert engine.problems(branches({"main": {}})) == [
        "protected branch.None: cannot be read: switched off in the project: the repository"
    ]
