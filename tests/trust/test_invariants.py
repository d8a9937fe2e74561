"""What holds after every single request of an apply, and when somebody else writes at the same time."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from reconciler.model.protocols import Json, Request
from reconciler.model.targets import Level, Target
from reconciler.sandbox import Sandbox
from reconciler.service import Client
from tests.building import ACME, API, USER, section
from tests.engine_driver import EngineDriver, failures
from tests.service.clock import SwiftClock
from tests.states import a_small_service

ON, OFF = {"inbound_enabled": True}, {"inbound_enabled": False}


class Watched(Client):
    """A client that lets somebody look, or interfere, right before and after each write."""

    def __init__(self, api_url: str, before: Callable[[Request], None], after: Callable[[], None]) -> None:
        super().__init__(api_url, "ada-token", clock=SwiftClock())
        self.before, self.after = before, after

    def send(self, request: Request, **more: Any) -> Json:
        self.before(request)
        answer = super().send(request, **more)
        self.after()
        return answer


@contextmanager
def watched(
    sandbox: Sandbox,
    project: dict[str, Any],
    before: Callable[[Request], None] = lambda _request: None,
    after: Callable[[], None] = lambda: None,
) -> Iterator[EngineDriver]:
    """A story whose writes are watched, on the small service with some fields of `acme/api` changed."""
    state = a_small_service("deployed")
    state["projects"][0] |= project
    with EngineDriver(sandbox, state, Watched(sandbox.api_url, before, after)) as engine:
        yield engine


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("live", "wanted"),
    [
        (OFF | {"project_allowlist": [103]}, {"enabled": True, "projects": [101, 102], "groups": [11]}),
        (ON | {"project_allowlist": [101, 103]}, {"enabled": True, "projects": [102, 101], "groups": []}),
        (ON | {"project_allowlist": [101], "group_allowlist": [11]}, {"enabled": False, "projects": [], "groups": []}),
    ],
    ids=["switching on", "replacing", "switching off"],
)
def test_nobody_who_has_access_before_and_after_is_ever_cut_off(
    sandbox: Sandbox, live: dict[str, Any], wanted: dict[str, Any]
) -> None:
    def with_access() -> set[int]:
        target = sandbox.state()["projects"][0]["job_token_scope"]
        return set(target["project_allowlist"]) if target["inbound_enabled"] else {101, 102, 103}

    moments: list[set[int]] = []
    with watched(sandbox, {"job_token_scope": live}, after=lambda: moments.append(with_access())) as engine:
        first = with_access()
        assert failures(engine.apply(engine.plan(section("job_token_scope", wanted, prune=True)))) == []
        assert len(moments) >= 2
        assert all(moment >= first & moments[-1] for moment in moments)


def test_an_image_that_is_protected_before_and_after_is_always_protected(sandbox: Sandbox) -> None:
    owner = {"minimum_access_level_for_push": "owner"}
    rules = [{"repository_path_pattern": f"acme/api/{name}"} | owner for name in ("a", "b")]
    moments: list[set[str]] = []

    def look() -> None:
        live = sandbox.state()["projects"][0]["container_repository_protection_rules"]
        moments.append({each["repository_path_pattern"] for each in live if each["minimum_access_level_for_push"]})

    with watched(sandbox, {"container_repository_protection_rules": rules}, after=look) as engine:
        wanted = {"acme/api/*": owner, "acme/api/c": owner | {"renamed_from": "acme/api/b"}}
        plan = engine.plan(section("container_repository_protection_rules", wanted, prune=True))
        assert failures(engine.apply(plan)) == []
    assert moments == [
        {"acme/api/*", "acme/api/a", "acme/api/b"},
        {"acme/api/*", "acme/api/a", "acme/api/c"},
        {"acme/api/*", "acme/api/c"},
    ]


RULE = {"id": 1, "name": "QA", "approvals_required": 1, "users": ["ada"]}
OLD = {"id": 7, "name": "old"}
QA = {"approvals_required": 1, "users": ["ada"]}


def holds_for_all(sandbox: Sandbox) -> bool:
    """Return whether the approval rule of `acme/api` names no branch rule that is there."""
    state = sandbox.state()
    rules = [*state["projects"][0]["protected_branches"], *state["groups"][0].get("protected_branches", [])]
    known = {rule["id"] for rule in rules}
    return any(known.isdisjoint(rule["protected_branch_ids"]) for rule in state["projects"][0]["approval_rules"])


@pytest.mark.untraced
@pytest.mark.parametrize("recheck", [False, True], ids=["fresh", "saved"])
@pytest.mark.parametrize(
    ("branches", "rule", "order"),
    [
        (
            {"new": {"renamed_from": "old"}},
            QA | {"branches": ["new"]},
            ["POST branches", "PUT rule", "DELETE branches"],
        ),
        ({"new": {}, "old": None}, QA | {"branches": ["new"]}, ["POST branches", "PUT rule", "DELETE branches"]),
        ({"old": None}, None, ["DELETE rule", "DELETE branches"]),
    ],
    ids=["renamed", "replaced", "deleted with it"],
)
@pytest.mark.parametrize("of_group", [False, True], ids=["of the project", "of the group"])
def test_an_approval_rule_for_a_branch_never_holds_for_all(
    sandbox: Sandbox,
    of_group: bool,
    branches: dict[str, Any],
    rule: dict[str, Any] | None,
    order: list[str],
    recheck: bool,
) -> None:
    words = {"protected_branches": "branches", "approval_rules": "rule"}
    sent: list[str] = []
    moments: list[bool] = []

    def before(request: Request) -> None:
        sent.append(f"{request.method} {words[request.path.split('/')[2]]}")

    project = {
        "approval_rules": [RULE | {"protected_branch_ids": [7]}],
        "protected_branches": [] if of_group else [OLD],
    }
    with watched(sandbox, project, before, lambda: moments.append(holds_for_all(sandbox))) as engine:
        state = sandbox.state()
        state["groups"][0]["protected_branches"] = [OLD] if of_group else []
        sandbox.replace_state(state)
        wanted = [
            section("protected_branches", branches, ACME if of_group else API),
            section("approval_rules", {"QA": rule}),
        ]
        plan = engine.plan(*wanted)
        assert failures(engine.apply(plan, recheck=recheck)) == []
        assert list(engine.plan(*wanted).changes) == []
    assert sent == order
    assert moments == [False] * len(order)


@pytest.mark.parametrize("of_group", [False, True], ids=["of the project", "of the group"])
@pytest.mark.parametrize(
    ("branches", "end"),
    [
        ({"new": {"renamed_from": "old"}}, "failed: protected branch new"),
        ({"new": {}, "old": None}, "skipped: protected branch old"),
    ],
    ids=["renamed", "replaced"],
)
def test_a_branch_rule_stays_as_long_as_an_approval_rule_names_it(
    sandbox: Sandbox, branches: dict[str, Any], end: str, of_group: bool
) -> None:
    project = {
        "approval_rules": [RULE | {"protected_branch_ids": [7]}],
        "protected_branches": [] if of_group else [OLD],
    }
    with watched(sandbox, project) as engine:
        state = sandbox.state()
        state["groups"][0]["protected_branches"] = [OLD] if of_group else []
        sandbox.replace_state(state)
        wanted = [
            section("protected_branches", branches, ACME if of_group else API),
            section("approval_rules", {"QA": QA | {"branches": ["new"]}}),
        ]
        plan = engine.plan(*wanted)
        sandbox.set_faults([{"kind": "status", "status": 403, "method": "PUT", "match": "approval_rules"}])
        undone = failures(engine.apply(plan))
        assert f'{end}: the approval rule "QA" still names it, because it was not updated' in undone
        assert len(undone) == 2
        assert not holds_for_all(sandbox)
        sandbox.set_faults([])
        assert failures(engine.apply(engine.plan(*wanted))) == []
        assert not holds_for_all(sandbox)


def test_no_project_setting_is_written_before_its_group_has_let_it_go(sandbox: Sandbox) -> None:
    state = a_small_service("deployed")
    names = ["allow_author_approval", "allow_committer_approval", "allow_overrides_to_approver_list_per_merge_request"]
    state["groups"][0]["merge_request_approval_settings"] = dict.fromkeys([*names, "retain_approvals_on_push"], False)
    with EngineDriver(sandbox, state) as engine:
        group = section("approval_settings", {"allow_author_approval": True}, ACME)
        project = section("approval_settings", {"allow_author_approval": True})
        plan = engine.plan(group, project)
        assert [str(problem.reason) for problem in plan.problems] == [
            "locked by group acme; unlock it there or leave the field out"
        ]
        outcomes = engine.apply(plan)
        assert failures(outcomes) == []
        assert [problem for target in outcomes for problem in target.problems] == []
        assert [request.partition(" {")[0] for request in engine.requests()] == [
            "GET groups/acme/merge_request_approval_setting",
            "PUT groups/acme/merge_request_approval_setting",
            "GET groups/acme/merge_request_approval_setting",
            "GET projects/acme%2Fapi/merge_request_approval_setting",
            "PUT projects/acme%2Fapi/merge_request_approval_setting",
            "GET projects/acme%2Fapi/merge_request_approval_setting",
        ]


def test_what_another_writer_does_meanwhile_outside_our_fields_is_not_lost(sandbox: Sandbox) -> None:
    theirs: list[str] = []

    def interfere(request: Request) -> None:
        """Before each of our writes, somebody else writes to the same objects and beside them."""
        state = sandbox.state()
        project = state["projects"][0]
        theirs.append(str(request))
        for milestone in project["milestones"]:
            milestone["description"] = f"theirs {len(theirs)}"
        project["milestones"].append({"title": f"theirs {len(theirs)}"})
        project["trigger_tokens"].append({"description": "theirs", "owner": "bob"})
        sandbox.replace_state(state)

    live = {"milestones": [{"title": "a"}, {"title": "b"}], "trigger_tokens": [{"description": "old", "owner": "ada"}]}
    with watched(sandbox, live, before=interfere) as engine:
        wanted = {"a": {"due_date": "2026-12-31"}, "b": {"state": "closed"}, "c": {}}
        plan = engine.plan(section("milestones", wanted), section("trigger_tokens", {"old": None}))
        assert failures(engine.apply(plan)) == []
    project = sandbox.state()["projects"][0]
    milestones = {each["title"]: each for each in project["milestones"]}
    assert len(theirs) == 4
    assert (milestones["a"]["due_date"], milestones["a"]["description"]) == ("2026-12-31", "theirs 4")
    assert (milestones["b"]["state"], milestones["b"]["description"]) == ("closed", "theirs 4")
    assert sorted(title for title in milestones if title.startswith("theirs")) == [f"theirs {n}" for n in (1, 2, 3, 4)]
    assert [each["description"] for each in project["trigger_tokens"]] == ["theirs"] * 4


def test_what_another_writer_creates_first_as_wanted_is_told_as_theirs(sandbox: Sandbox) -> None:
    def interfere(_request: Request) -> None:
        state = sandbox.state()
        state["projects"][0]["milestones"] = [{"title": "a"}]
        sandbox.replace_state(state)

    with watched(sandbox, {}, before=interfere) as engine:
        outcomes = engine.apply(engine.plan(section("milestones", {"a": {}})))
    assert failures(outcomes) == ["stale: milestone a: somebody else made the same change at the same time"]
    assert len(sandbox.state()["projects"][0]["milestones"]) == 1


@pytest.mark.parametrize("elsewhere", [API, Target(Level.PROJECT, "acme/lib")], ids=str)
def test_what_another_writer_creates_first_is_neither_doubled_nor_undone(sandbox: Sandbox, elsewhere: Target) -> None:
    def interfere(_request: Request) -> None:
        state = sandbox.state()
        for project in state["projects"]:
            if project["path"] == elsewhere.ref and not project["milestones"]:
                project["milestones"] = [{"title": "a", "description": "theirs"}]
        sandbox.replace_state(state)

    with watched(sandbox, {}, before=interfere) as engine:
        outcomes = engine.apply(engine.plan(section("milestones", {"a": {"description": "ours"}})))
    milestones = [each for project in sandbox.state()["projects"] for each in project["milestones"]]
    if elsewhere == API:
        assert [(each["title"], each["description"]) for each in milestones] == [("a", "theirs")]
        assert failures(outcomes) == [
            "failed: milestone a: POST projects/acme%2Fapi/milestones: 400 Failed to create milestone "
            '{:title=>["already being used for another group or project milestone."]}'
        ]
    else:
        assert failures(outcomes) == []
        assert sorted(each["description"] for each in milestones) == ["ours", "theirs"]


def test_a_saved_plan_is_not_stale_for_what_was_read_beside_it(sandbox: Sandbox) -> None:
    with EngineDriver(sandbox, a_small_service("deployed")) as engine:
        plan = engine.plan(section("notification_settings", {"level": "watch", "notification_email": None}, USER))
        assert failures(engine.apply(plan, recheck=True)) == []
