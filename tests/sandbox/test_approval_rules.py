"""Approval rules, as production has them; most answers are compared with recorded ones too."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from .sandbox_client import WEB, Answer, SandboxClient, a_service

RULES = f"{WEB}/approval_rules"
FORBIDDEN = (403, {"message": "403 Forbidden"})
NOT_FOUND = (404, {"message": "404 Not found"})
ONE = {"approval_rules": [{"id": 7, "name": "QA", "approvals_required": 1, "users": ["dev"]}]}


@pytest.fixture
def acme(service: SandboxClient, dialect: str) -> SandboxClient:
    """The small service, in each dialect; `web` has one rule."""
    return service.given(a_service(dialect, web=ONE))


def post(service: SandboxClient, name: str | None, required: Any = 1, /, user: str = "max", **sent: Any) -> Answer:
    return service.ask(f"POST {RULES}", {"name": name, "approvals_required": required, **sent}, user=user)


def put(service: SandboxClient, number: int = 7, /, user: str = "max", **sent: Any) -> Answer:
    return service.ask(f"PUT {RULES}/{number}", sent, user=user)


def approvers(answer: Answer) -> tuple[list[str], list[int], bool]:
    """Return the users and the groups of a rule, and whether it has groups that the caller cannot see."""
    rule = answer[1]
    users, groups = [each["username"] for each in rule["users"]], [each["id"] for each in rule["groups"]]
    return users, groups, rule["contains_hidden_groups"]


def branches(answer: Answer) -> list[str]:
    return [each["name"] for each in answer[1]["protected_branches"]]


def wrong(**reasons: str) -> Answer:
    return 400, {"message": {name: [reason] for name, reason in reasons.items()}}


def test_a_rule_lives(acme: SandboxClient, dialect: str) -> None:
    made = post(acme, "Security", 2, user_ids=[4])
    assert made[0] == 201
    shown = {name: made[1][name] for name in ("id", "rule_type", "approvals_required", "report_type")}
    assert shown == {"id": 8, "rule_type": "regular", "approvals_required": 2, "report_type": None}
    assert put(acme, 8) == (200, made[1])
    assert put(acme, 8, approvals_required=0, name=" Security ")[1]["name"] == " Security "
    assert acme.ask(f"GET {RULES}/8")[1]["approvals_required"] == 0
    assert acme.ask(f"PATCH {RULES}/8", {})[0] == (404 if dialect == "deployed" else 405)
    assert acme.ask(f"DELETE {RULES}/8", If_Unmodified_Since="Thu, 01 Jan 1970 00:00:00 GMT")[0] == 412
    assert acme.ask(f"DELETE {RULES}/8") == (204, None)
    assert acme.ask(f"DELETE {RULES}/8") == put(acme, 8) == NOT_FOUND


def test_a_rule_without_approvers_is_for_any_approver_and_there_is_one(acme: SandboxClient) -> None:
    assert post(acme, "Whatever")[1]["rule_type"] == "any_approver"
    exists = wrong(rule_type="any-approver for the project already exists")
    assert post(acme, "Second", user_ids=[], usernames="") == post(acme, "x", rule_type="any_approver") == exists
    assert post(acme, "Nobody", rule_type="regular")[1]["rule_type"] == "regular"
    assert put(acme, 8, name="Renamed", user_ids=[4], rule_type="regular")[1]["rule_type"] == "any_approver"
    assert [each["name"] for each in acme.ask(f"GET {RULES}")[1]] == ["Renamed", "QA", "Nobody"]


@pytest.mark.untraced
def test_six_creations_at_once_are_six_rules_but_one_for_any_approver(acme: SandboxClient) -> None:
    def at_once(**sent: Any) -> list[int]:
        acme.sandbox.set_faults(["race,method=POST,together=6"])
        with ThreadPoolExecutor(6) as pool:
            return sorted(pool.map(lambda _: post(acme, "race", **sent)[0], range(6)))

    assert at_once(user_ids=[4]) == [201] * 6
    assert at_once() == [201, 400, 400, 400, 400, 400]


def test_unknown_approvers_are_dropped(acme: SandboxClient) -> None:
    nobody: tuple[list[str], list[int], bool] = ([], [], False)
    assert approvers(post(acme, "a", user_ids=[7, 99])) == nobody
    assert approvers(post(acme, "b", user_ids="4,6", usernames=["max", "DEV", "nobody"])) == (
        ["dev", "gus", "max"],
        [],
        False,
    )
    assert approvers(put(acme, usernames=["DEV"])) == nobody
    assert approvers(put(acme, users=[6])) == (["gus"], [], False)
    nothing: tuple[Any, ...] = ([], "", None)
    for cleared in nothing:
        put(acme, user_ids=[4])
        assert approvers(put(acme, user_ids=cleared)) == nobody


def test_a_user_who_leaves_is_no_approver(acme: SandboxClient) -> None:
    acme.ask(f"DELETE {WEB}/members/4")
    assert approvers(acme.ask(f"GET {RULES}/7")) == ([], [], False)


def test_groups_that_the_caller_cannot_see_are_hidden_and_kept(service: SandboxClient, dialect: str) -> None:
    state = a_service(dialect, web=ONE)
    state["groups"][2]["members"].append({"user": "ada", "role": "reporter"})
    service.given(state)
    assert approvers(put(service, group_ids=[12])) == (["dev"], [], False)
    assert approvers(put(service, user="ada", group_ids=[12, 99])) == (["dev"], [12], False)
    assert approvers(put(service, group_ids=[10])) == (["dev"], [10], True)
    seen = service.ask(f"GET {RULES}/7")
    assert approvers(seen) == (["dev"], [12, 10], False)
    assert [each["username"] for each in seen[1]["eligible_approvers"]] == ["ada", "dev", "eve"]
    assert approvers(put(service, groups=[], remove_hidden_groups=True)) == (["dev"], [], False)
    assert approvers(service.ask(f"GET {RULES}/7")) == (["dev"], [], False)


def test_without_branches_a_rule_holds_for_all(service: SandboxClient, dialect: str) -> None:
    own = {"protected_branches": [{"id": 1, "name": "main"}, {"id": 2, "name": "release/*"}]}
    above = {"protected_branches": [{"id": 3, "name": "group"}]}
    elsewhere = {"protected_branches": [{"id": 4, "name": "far"}]}
    service.given(a_service(dialect, web={**ONE, **own}, acme=above, far=elsewhere))
    assert branches(put(service, protected_branch_ids=[2, 3])) == ["release/*", "group"]
    assert branches(put(service, protected_branch_ids=[4, 99])) == []
    put(service, protected_branch_ids=[2])
    everywhere = put(service, applies_to_all_protected_branches=True)
    assert (branches(everywhere), everywhere[1]["applies_to_all_protected_branches"]) == (
        ["main", "release/*", "group"],
        True,
    )
    assert branches(put(service, applies_to_all_protected_branches=False)) == ["release/*"]
    unexpected = (500, {"message": "500 Internal Server Error"})
    assert put(service, applies_to_all_protected_branches=None) == unexpected
    assert post(service, "x", applies_to_all_protected_branches=None) == unexpected
    service.ask(f"DELETE {WEB}/protected_branches/release%2F%2A")
    assert branches(service.ask(f"GET {RULES}/7")) == []


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("name", "required", "sent", "answer"),
    [
        ("QA", 1, {"user_ids": [4]}, wrong(name="has already been taken")),
        ("", 1, {"user_ids": [4]}, wrong(name="can't be blank")),
        (None, 1, {"user_ids": [4]}, wrong(name="can't be blank")),
        ("x" * 1025, 1, {"user_ids": [4]}, wrong(name="is too long (maximum is 1024 characters)")),
        ("a", 101, {"user_ids": [4]}, wrong(approvals_required="must be less than or equal to 100")),
        ("a", -1, {"user_ids": [4]}, wrong(approvals_required="must be greater than or equal to 0")),
        ("a", None, {"user_ids": [4]}, wrong(approvals_required="is not a number")),
        ("a", 1, {"rule_type": "report_approver"}, wrong(report_type="can't be blank")),
        (
            "a",
            1,
            {"rule_type": "report_approver", "report_type": "code_coverage"},
            wrong(report_type="code_coverage only supports Coverage-Check name"),
        ),
        (
            "Coverage-Check",
            1,
            {"user_ids": [4]},
            wrong(name="Coverage-Check is reserved for code_coverage report type"),
        ),
        ("a", 1, {"user_ids": [4], "scanners": ["bogus"]}, wrong(scanners="is not included in the list")),
        ("a", 1, {"rule_type": "bogus"}, (500, {"message": "500 Internal Server Error"})),
    ],
)
def test_a_rule_must_be_valid(
    acme: SandboxClient, name: str | None, required: int | None, sent: dict[str, Any], answer: Answer
) -> None:
    assert post(acme, name, required, **sent) == answer
    assert post(acme, "qa", user_ids=[4])[0] == post(acme, " QA ", user_ids=[4])[0] == 201


def test_a_name_is_taken_once_among_rules_of_one_type(acme: SandboxClient) -> None:
    assert post(acme, "QA")[0] == 201
    coverage = {"rule_type": "report_approver", "report_type": "code_coverage"}
    assert post(acme, "Coverage-Check", **coverage)[1]["report_type"] == "code_coverage"
    assert post(acme, "Coverage-Check", **coverage) == wrong(name="has already been taken")
    assert put(acme, 8, approvals_required=None) == wrong(approvals_required="is not a number")
    assert put(acme, name=None) == wrong(name="can't be blank")


def test_rules_of_code_owners_are_not_listed(acme: SandboxClient) -> None:
    assert post(acme, "owners", rule_type="code_owner")[0] == 201
    assert [each["name"] for each in acme.ask(f"GET {RULES}")[1]] == ["QA"]
    assert acme.ask(f"GET {RULES}/8")[1]["rule_type"] == "code_owner"


def test_roles(acme: SandboxClient) -> None:
    asked = [acme.ask(f"GET {RULES}", user=user)[0] for user in ("max", "dev", "pia", "gus", "eve", None)]
    assert asked == [200, 200, 403, 403, 404, 401]
    assert post(acme, "x", user="dev") == put(acme, user="dev") == FORBIDDEN


@pytest.mark.parametrize("off", [{"archived": True}, {"merge_requests_enabled": False}])
def test_archived_or_without_merge_requests_rules_are_for_maintainers(
    service: SandboxClient, dialect: str, off: dict[str, bool]
) -> None:
    service.given(a_service(dialect, web={**ONE, **off}))
    assert service.ask(f"GET {RULES}", user="dev") == FORBIDDEN
    assert [service.ask(f"GET {RULES}", user="max")[0], post(service, "x")[0], put(service)[0]] == [200, 201, 200]


def test_a_public_projects_rules_are_for_everybody_with_a_token(service: SandboxClient, dialect: str) -> None:
    service.given(a_service(dialect, web={**ONE, "visibility": "public"}, acme={"visibility": "public"}))
    assert [service.ask(f"GET {RULES}", user=user)[0] for user in ("eve", None)] == [200, 401]


def test_the_instance_may_forbid_changes(service: SandboxClient, dialect: str) -> None:
    state = a_service(dialect, web=ONE)
    settings = {"allow_overrides_to_approver_list_per_merge_request": False}
    state["instance"]["merge_request_approval_settings"] = settings
    service.given(state)
    assert post(service, "x") == put(service) == service.ask(f"DELETE {RULES}/7") == FORBIDDEN
    assert service.ask(f"GET {RULES}")[0] == 200
    assert put(service, user="root", approvals_required=3)[1]["approvals_required"] == 3


def test_without_a_licence_there_are_none(service: SandboxClient, dialect: str) -> None:
    state = a_service(dialect, web=ONE)
    state["instance"]["licensed"] = False
    service.given(state)
    assert service.ask(f"GET {RULES}") == post(service, "x") == FORBIDDEN


def test_groups_have_none(acme: SandboxClient) -> None:
    absent = (404, {"message": "404 Not Found"})
    lines = ("GET /groups/acme/approval_rules", "POST /groups/acme/approval_rules", "PUT /groups/acme/approval_rules/1")
    assert [acme.ask(line, {}) for line in lines] == [absent] * 3
    assert acme.ask(lines[0], user="eve") == (404, {"message": "404 Group Not Found"})


def test_the_audit_tells_who_changed_what(service: SandboxClient, dialect: str) -> None:
    branches = {"protected_branches": [{"id": 1, "name": "main"}, {"id": 2, "name": "rel"}]}
    service.given(a_service(dialect, web={**ONE, **branches}))
    put(service, name="QB", approvals_required=2, user_ids=[6], applies_to_all_protected_branches=True)
    put(service, applies_to_all_protected_branches=False, protected_branch_ids=[1, 2])
    put(service, protected_branch_ids=[])
    post(service, "G", group_ids=[10], protected_branch_ids=[2])
    service.ask(f"DELETE {RULES}/7")
    events = reversed(service.ask(f"GET {WEB}/audit_events")[1])
    assert [(each["event_name"], each["details"]["custom_message"]) for each in events] == [
        ("update_approval_rules", "Added User Gus to approval group on QB rule"),
        ("update_approval_rules", "Removed User Dev from approval group on QB rule"),
        ("update_approval_rules", "Changed number of required approvals from 1 to 2"),
        ("update_approval_rules", "Changed name from QA to QB"),
        ("update_approval_rules", "Changed target branch to all protected branches"),
        ("update_approval_rules", "Changed target branch to main, rel branches"),
        ("update_approval_rules", "Changed target branch to all branches"),
        ("approval_rule_created", "Added approval rule with number of required approvals of 1"),
        ("approval_rule_created", "Added Group acme to approval group on G rule"),
        ("update_approval_rules", "Changed target branch to rel branch"),
        ("approval_rule_deleted", "Deleted approval rule"),
    ]
