"""Who may stand in rules of branches, of tags and of approvals: what the service refuses is a problem of the plan."""

import json
from typing import Any

import pytest

from reconciler.model.state import Section
from tests.building import section
from tests.cli_runner import CliRunner
from tests.engine_driver import EngineDriver, failures
from tests.items import changes_of
from tests.states import a_small_service

PROJECT = "projects/acme%2Fapi"
MEMBERS = f"GET {PROJECT}/members/all?per_page=100&page=1"
INVITED = f"GET {PROJECT}/groups?with_shared=true&shared_min_access_level=30&per_page=100&page=1"


def branches(value: dict[str, Any], *, prune: bool = False) -> Section:
    return section("protected_branches", value, prune=prune)


def tags(value: dict[str, Any]) -> Section:
    return section("protected_tags", value)


def rules(value: dict[str, Any]) -> Section:
    return section("approval_rules", value)


def service(engine: EngineDriver, **project: Any) -> None:
    """Give the project these fields; eve is a member, max is none, and ada cannot see the group `hidden`."""
    state = a_small_service(engine.sandbox.state()["instance"]["dialect"])
    state["users"] += [{"id": 4, "username": "Eve", "name": "Eve"}, {"id": 5, "username": "max"}]
    state["groups"] += [{"id": 21, "path": "hidden"}, {"id": 22, "path": "partners", "members": [ADA_IS_GUEST]}]
    state["projects"][0] |= {"members": [{"user": "Eve", "role": "developer"}], **project}
    engine.sandbox.replace_state(state)


ADA_IS_GUEST = {"user": "ada", "role": "guest"}


def sent(line: str) -> Any:
    """Return the body of a request."""
    return json.loads("{" + line.partition(" {")[2])


def told(engine: EngineDriver, *sections: Section) -> list[str]:
    """Return the problems of a plan, and assert that an apply of it writes nothing."""
    plan = engine.plan(*sections)
    lines = [f"{each.address.title} {each.address.name}, {each.field}: {each.reason}" for each in plan.problems]
    engine.apply(plan)
    assert engine.writes() == []
    return lines


def test_who_is_no_member_is_a_problem_in_every_list_by_one_list_of_members(engine: EngineDriver) -> None:
    service(engine)
    wanted = [{"user": "max"}, {"user": 5}, {"user": "eve"}]
    sections = (
        branches({"main": {"allowed_to_push": wanted, "allowed_to_merge": wanted}}),
        tags({"v*": {"allowed_to_create": wanted}}),
        rules({"a": {"approvals_required": 1, "users": ["max", "eve"]}}),
    )
    engine.plan(*sections)
    assert engine.requests().count(MEMBERS) == 1
    assert not [line for line in engine.requests() if "users?" in line]
    lacking = [
        f"the project has no member {who}, or none that this token can see" for who in ('"max"', "with the ID 5")
    ]
    assert told(engine, *sections) == [
        *(
            f"protected branch main, {name}: {each}"
            for name in ("allowed_to_push", "allowed_to_merge")
            for each in lacking
        ),
        *(f"protected tag v*, allowed_to_create: {each}" for each in lacking),
        f"approval rule a, users: {lacking[0]}",
    ]


def test_nobody_is_listed_where_nobody_comes(engine: EngineDriver) -> None:
    """Who has left stays in a tag's rule and in the list of those who may unprotect, and disturbs nothing there."""
    left = {"id": 1, "access_level": 40, "user": "max"}
    ours = {"id": 2, "access_level": 40, "user": "ada"}
    service(
        engine,
        protected_branches=[{"id": 1, "name": "main", "unprotect_access_levels": [left, ours]}],
        protected_tags=[{"name": "v*", "create_access_levels": [left]}],
    )
    main = {"allowed_to_unprotect": [{"user": "max"}, {"user": "ada"}], "allow_force_push": True}
    plan = engine.plan(branches({"main": main}), tags({"v*": {"allowed_to_create": [{"user": 5}]}}))
    assert not [line for line in engine.requests() if "members" in line]
    assert failures(engine.apply(plan)) == []
    assert engine.writes() == [f'PATCH {PROJECT}/protected_branches/main {{"allow_force_push": true}}']


def test_whoever_has_left_is_a_problem_where_a_rule_is_made_anew(engine: EngineDriver) -> None:
    left = {"id": 1, "access_level": 40, "user": "max"}
    ours = {"id": 2, "access_level": 40, "user": "ada"}
    service(
        engine,
        protected_branches=[{"id": 1, "name": "main", "unprotect_access_levels": [left, ours]}],
        protected_tags=[{"name": "v*", "create_access_levels": [left]}],
    )
    reason = 'the project has no member "max", or none that this token can see'
    both = (
        branches({"trunk": {"renamed_from": "main"}}),
        tags({"v*": {"allowed_to_create": ["developer", {"user": "max"}]}}),
    )
    assert told(engine, *both) == [
        f"protected branch trunk, allowed_to_unprotect: {reason}",
        f"protected tag v*, allowed_to_create: {reason}",
    ]
    assert len(engine.step(tags({"v*": {"allowed_to_create": ["developer", {"user": "eve"}]}}))) == 4


def test_a_group_must_be_invited_with_developer_or_more(engine: EngineDriver) -> None:
    invited = [
        {"group_id": 11, "role": "developer"},
        {"group_id": 22, "role": "reporter"},
        {"group_id": 21, "role": "owner"},
    ]
    service(engine, invited_groups=invited)
    names = ["acme/tools", "partners", "acme", "nothing"]
    assert told(engine, branches({"main": {"allowed_to_push": [{"group": name} for name in names]}})) == [
        'protected branch main, allowed_to_push: group "acme" is not invited to the project',
        'protected branch main, allowed_to_push: group "nothing" is not invited to the project',
        'protected branch main, allowed_to_push: group "partners" is invited with less than Developer',
    ]
    assert told(engine, tags({"v*": {"allowed_to_create": [{"group": 10}, {"group": 22}]}})) == [
        "protected tag v*, allowed_to_create: group with the ID 10 is not invited to the project",
        "protected tag v*, allowed_to_create: group with the ID 22 is invited with less than Developer",
    ]
    (create,) = engine.step(branches({"main": {"allowed_to_push": [{"group": "acme/tools"}, {"group": "hidden"}]}}))
    assert sent(create)["allowed_to_push"] == [{"group_id": 11}, {"group_id": 21}]
    assert engine.step(branches({"main": {"allowed_to_push": [{"group": 21}, {"group": 11}]}})) == []
    engine.sandbox.set_faults([{"kind": "status", "status": 403, "match": "groups?with_shared"}])
    assert engine.problems(tags({"v*": {"allowed_to_create": [{"group": "hidden"}]}})) == [
        'protected tag.allowed_to_create: group "hidden" is not invited to the project'
    ]


def test_a_key_must_be_enabled_and_may_write(engine: EngineDriver) -> None:
    keys = [{"id": 5, "title": "release", "can_push": True}, {"id": 6, "title": "reads"}]
    service(engine, enabled_deploy_keys=keys)
    wanted = [{"deploy_key": key} for key in (5, 7, "reads", "none")]
    assert told(engine, tags({"v*": {"allowed_to_create": wanted}})) == [
        'protected tag v*, allowed_to_create: no such deploy key is enabled: "none"',
        'protected tag v*, allowed_to_create: deploy key "reads" is read-only',
        "protected tag v*, allowed_to_create: no such deploy key is enabled: with the ID 7",
    ]


@pytest.mark.untraced
@pytest.mark.parametrize("kind", ["protected_branches", "protected_tags"])
def test_a_number_and_the_name_that_it_has_are_one_entry(engine: EngineDriver, kind: str) -> None:
    keys = [{"id": 5, "title": "release", "can_push": True}, {"id": 6, "title": "release", "can_push": True}]
    service(engine, enabled_deploy_keys=keys, invited_groups=[{"group_id": 11, "role": "developer"}])
    field = "allowed_to_push" if kind == "protected_branches" else "allowed_to_create"
    by_name = [{"user": "bob"}, {"group": "acme/tools"}]
    by_number = [{"user": 3}, {"group": 11}, {"deploy_key": 6}]

    def rule(*entries: Any) -> Section:
        return section(kind, {"v*": {field: entries}})

    (create,) = engine.step(rule("developer", *by_number, *by_name))
    assert sent(create)[field] == [{"access_level": 30}, {"deploy_key_id": 6}, {"group_id": 11}, {"user_id": 3}]
    assert engine.step(rule("developer", *by_number)) == []
    assert engine.step(rule("developer", {"deploy_key": "release"}, *by_name)) == []
    assert engine.step(rule("developer", {"deploy_key": 6}, {"user": 3}, {"group": "acme/tools"})) == []
    writes = engine.step(rule(*by_number))
    assert len(writes) == (1 if kind == "protected_branches" else 4)
    if kind == "protected_branches":
        assert [sorted(entry) for entry in sent(writes[0])[field]] == [["_destroy", "id"]]
    engine.step(rule({"user": 3}, {"deploy_key": 6}, {"deploy_key": 5}))
    assert engine.step(rule({"user": "bob"}, {"deploy_key": 5})) != []
    assert engine.step(rule({"user": 3}, {"deploy_key": 5})) == []


@pytest.mark.untraced
def test_a_plan_tells_of_a_blocked_user_who_comes(cli_runner: CliRunner) -> None:
    state = a_small_service("deployed")
    state["users"][2]["blocked"] = True
    cli_runner.sandbox.replace_state(state)
    cli_runner.project(
        "{protected_branches: {main: {allowed_to_push: [{user: bob}]}}, protected_tags: {v: {allowed_to_create: "
        "[{user: 3}]}}, approval_rules: {a: {approvals_required: 1, users: [bob]}}}"
    )
    done = cli_runner("plan")
    for words in ("allowed_to_push: bob", "allowed_to_create: 3", "users: bob"):
        assert f"{words} is blocked, and counts for nothing until that ends" in done.out
    assert cli_runner("apply --yes").code == 0
    assert cli_runner("plan --detailed-exitcode").code == 0


def test_a_saved_plan_holds_although_somebody_was_blocked_since(cli_runner: CliRunner) -> None:
    cli_runner.service(protected_branches=[{"id": 1, "name": "main"}])
    cli_runner.project("{protected_branches: {main: {allowed_to_push: [{user: bob}]}}}")
    assert cli_runner("plan --out plan.json").code == 0
    state = cli_runner.sandbox.state()
    state["users"][2]["blocked"] = True
    cli_runner.sandbox.replace_state(state)
    done = cli_runner("apply --plan plan.json --yes")
    assert (done.code, "1 updated" in done.out) == (0, True), done.out + done.err


NEW_TEAM = """\
apiVersion: reconciler/v1
kind: Group
metadata: {path: acme/team}
create: {}
---
apiVersion: reconciler/v1
kind: Project
metadata: {path: acme/api}
spec:
  job_token_scope: {groups: [acme/team]}
  approval_rules: {a: {approvals_required: 1, users: [bob], groups: [acme/team, acme/tools]}}
"""


@pytest.mark.untraced
@pytest.mark.parametrize("saved", [False, True])
def test_a_rule_may_name_a_group_that_the_same_run_creates(cli_runner: CliRunner, *, saved: bool) -> None:
    cli_runner.service()
    cli_runner.write("manifests/a.yaml", NEW_TEAM)
    if saved:
        assert cli_runner("plan --out plan.json").code == 0
    done = cli_runner("apply --plan plan.json --yes" if saved else "apply --yes")
    assert (done.code, "3 created" in done.out) == (0, True), done.out + done.err
    (rule,) = cli_runner.sandbox.state()["projects"][0]["approval_rules"]
    assert len(rule["group_ids"]) == 2
    assert cli_runner("plan --detailed-exitcode").code == 0


def test_a_group_that_the_same_run_creates_is_invited_by_nobody_yet(cli_runner: CliRunner) -> None:
    cli_runner.service()
    branch = "  protected_branches: {main: {allowed_to_push: [{group: acme/team}]}}\n"
    cli_runner.write("manifests/a.yaml", NEW_TEAM + branch)
    done = cli_runner("plan")
    assert done.code == 3, done.out
    assert 'allowed_to_push: group "acme/team" is not invited to the project; invite it' in done.out
    assert "1 problem" in done.out


NEW_PROJECT = """\
apiVersion: reconciler/v1
kind: Group
metadata: {path: fresh}
create: {}
---
apiVersion: reconciler/v1
kind: Project
metadata: {path: fresh/api}
create: {}
spec: {protected_branches: {main: {allowed_to_push: [%s]}}}
"""


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("entry", "code"), [("{user: ada}", 0), ("{user: 2}", 0), ("{user: bob}", 3), ("{group: acme}", 3)]
)
def test_a_new_project_in_a_new_group_has_one_member(cli_runner: CliRunner, entry: str, code: int) -> None:
    cli_runner.service()
    cli_runner.write("manifests/a.yaml", NEW_PROJECT % entry)
    assert cli_runner("plan").code == code
    if not code:
        assert cli_runner("apply --yes").code == 0
        assert cli_runner("plan --detailed-exitcode").code == 0


def test_a_problem_that_follows_from_another_says_so(cli_runner: CliRunner) -> None:
    cli_runner.service()
    cli_runner.project(
        '{protected_branches: {"release/*": {allowed_to_push: [{user: nobody}]}}, '
        'approval_rules: {a: {approvals_required: 1, users: [bob], branches: ["release/*"]}}}'
    )
    done = cli_runner("plan")
    assert (
        '"release/*" cannot be created in protected_branches, because of a problem of its own; solve that one'
        in done.out
    )
    assert "declare it there" not in done.out
    narrowed = cli_runner("plan --section approval_rules")
    assert (
        "declare it there, or correct the name; if it is declared, include protected_branches in the run"
        in narrowed.out
    )


def just_added(times: int) -> dict[str, Any]:
    return {"members": [{"user": "Eve", "role": "developer", "unsettled": times}]}


NEW_MEMBER = (
    branches({"main": {"allowed_to_push": [{"user": "eve"}]}, "old": {}}),
    tags({"v*": {"allowed_to_create": [{"user": "eve"}]}}),
    rules({"a": {"approvals_required": 1, "users": ["bob", "eve"]}, "b": {"approvals_required": 2, "users": ["bob"]}}),
)


def test_members_who_were_added_a_moment_ago_are_tried_once_more(engine: EngineDriver) -> None:
    live = {"protected_tags": [{"name": "v*"}], "approval_rules": [{"id": 7, "name": "b", "users": ["Eve"]}]}
    service(engine, **just_added(3), **live)
    outcomes = engine.apply(engine.plan(*NEW_MEMBER))
    assert failures(outcomes) == []
    told = {(o.change.address.name, o.reason) for target in outcomes for o in target.outcomes if o.reason}
    words = "at the second attempt, since the service knows new members after a moment"
    assert told == {(name, words) for name in ("main", "v*", "a")}
    rule = "approval_rules/8"
    assert [line.split(" {")[0].replace(PROJECT, "") for line in engine.writes()][-6:] == [
        "POST /protected_branches",
        "POST /protected_tags",
        "DELETE /protected_tags/v%2A",
        "POST /protected_tags",
        "DELETE /protected_tags/v%2A%2A%2A%2A",
        f"PUT /{rule}",
    ]
    again = engine.plan(*NEW_MEMBER)
    assert (list(again.changes), list(again.problems)) == ([], [])


@pytest.mark.untraced
def test_the_second_try_is_the_last_one(engine: EngineDriver) -> None:
    service(engine, **just_added(20))
    lines = failures(engine.apply(engine.plan(*NEW_MEMBER)))
    assert [line.partition(" (")[0] for line in lines] == [
        f"failed: protected branch main: POST {PROJECT}/protected_branches: 422 Push access levels user is not a member of "
        "the project",
        f"failed: protected tag v*: POST {PROJECT}/protected_tags: 422 Create access levels user is not a member of the "
        "project",
        "dropped by the service: approval rule a: the service kept its own users",
    ]
    mains = [line for line in engine.writes() if '"name": "main"' in line]
    assert len(mains) == 2


def test_what_cannot_be_read_again_is_not_tried_again(engine: EngineDriver) -> None:
    service(engine, **just_added(1))
    plan = engine.plan(NEW_MEMBER[0])
    engine.sandbox.set_faults([{"kind": "status", "status": 403, "match": "members/all"}])
    assert len(failures(engine.apply(plan))) == 1
    service(engine, **just_added(1))
    plan = engine.plan(NEW_MEMBER[0])
    engine.sandbox.set_faults([{"kind": "status", "status": 401, "method": "POST", "nth": 2, "times": 9}])
    assert len(failures(engine.apply(plan))) == 2
    assert len(engine.writes()) == 2


def test_who_comes_with_an_archive_is_asked_for_by_name(cli_runner: CliRunner) -> None:
    cli_runner.service()
    cli_runner.write("team.tar.gz", "")
    group = NEW_PROJECT.replace("fresh", "acme/team").replace("create: {}", "create: {from_archive: ../team.tar.gz}", 1)
    cli_runner.write("manifests/a.yaml", group % "{user: bob}, {user: 77}, {user: nobody}")
    done = cli_runner("plan")
    assert (done.code, "no user has the username nobody" in done.out, "1 problem" in done.out) == (3, True, True), done
    cli_runner.sandbox.set_faults([{"kind": "status", "status": 403, "match": "users?username=nobody"}])
    done = cli_runner("plan")
    assert (done.code, "GET users: 403 Forbidden" in done.out, "1 problem" in done.out) == (3, True, True), done


def seen_by_root_alone(cli_runner: CliRunner, group: int = 21) -> None:
    """Let rules name a group that ada cannot see, as the administrator root can."""
    state = a_small_service("deployed")
    state["groups"][0]["members"] += [{"user": "root", "role": "maintainer"}]
    state["groups"] += [{"id": 21, "path": "hidden"}, {"id": 22, "path": "others"}]
    levels = [{"id": 1, "access_level": 40}, {"id": 2, "access_level": 40, "group_id": group}]
    state["projects"][0] |= {
        "invited_groups": [{"group_id": each, "role": "developer"} for each in (21, 22)],
        "protected_branches": [{"id": 1, "name": "main", "push_access_levels": levels}],
        "protected_tags": [{"name": "v*", "create_access_levels": levels}],
    }
    cli_runner.sandbox.replace_state(state)


ONE_ENTRY = {
    "not in the list": "protected_branches: {main: {allow_force_push: true}}",
    "by name": "protected_branches: {main: {allow_force_push: true, allowed_to_push: [maintainer, {group: hidden}]}}",
    "by number": "protected_branches: {main: {allow_force_push: true, allowed_to_push: [maintainer, {group: 21}]}}",
    "beside it, by name": "protected_branches: {main: {allowed_to_push: [developer, {group: hidden}]}}",
    "beside it, by number": "protected_branches: {main: {allowed_to_push: [developer, {group: 21}]}}",
    "removed": "protected_branches: {main: {allowed_to_push: [maintainer]}}",
    "replaced": "protected_tags: {v*: {allowed_to_create: [developer, {group: hidden}]}}",
    "renamed, replaced": "protected_tags: {w*: {renamed_from: v*}}",
    "renamed": "protected_branches: {trunk: {renamed_from: main}}",
    "deleted": "protected_tags: {v*: null}",
}


@pytest.mark.untraced
@pytest.mark.parametrize("spec", ONE_ENTRY.values(), ids=ONE_ENTRY)
@pytest.mark.parametrize(("planner", "applier"), [("root", "ada"), ("ada", "root"), ("ada", "ada")])
def test_a_saved_plan_holds_although_another_token_sees_other_names(
    cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch, planner: str, applier: str, spec: str
) -> None:
    seen_by_root_alone(cli_runner)
    cli_runner.project(f"{{{spec}}}")
    monkeypatch.setenv("RECONCILER_TOKEN", f"{planner}-token")
    assert cli_runner("plan --out plan.json").code == 0
    (change,) = changes_of(json.loads((cli_runner.folder / "plan.json").read_text()))
    monkeypatch.setenv("RECONCILER_TOKEN", f"{applier}-token")
    cli_runner.sandbox.clear_log()
    done = cli_runner("apply --plan plan.json --yes")
    assert (done.code, done.err) == (0, ""), done.out
    writes = [(each["method"], each["body"]) for each in cli_runner.sandbox.log() if each["method"] != "GET"]
    assert writes == [(each["method"], each["body"]) for each in change["requests"]]
    assert cli_runner("plan --detailed-exitcode").code == 0


@pytest.mark.untraced
@pytest.mark.parametrize("spec", ONE_ENTRY.values(), ids=ONE_ENTRY)
@pytest.mark.parametrize(("applier", "reverter"), [("root", "ada"), ("ada", "root")])
def test_an_apply_is_reverted_although_another_token_sees_other_names(
    cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch, applier: str, reverter: str, spec: str
) -> None:
    seen_by_root_alone(cli_runner)
    before = rules_of(cli_runner)
    cli_runner.project(f"{{{spec}}}")
    monkeypatch.setenv("RECONCILER_TOKEN", f"{applier}-token")
    done = cli_runner("apply --yes --report json=applied.json")
    assert done.code == 0, done.out
    monkeypatch.setenv("RECONCILER_TOKEN", f"{reverter}-token")
    done = cli_runner("revert applied.json --yes")
    assert (done.code, rules_of(cli_runner)) == (0, before), done.out + done.err


def rules_of(cli_runner: CliRunner) -> Any:
    """Return who may do what by the rules of the project, whatever their IDs."""
    project = cli_runner.sandbox.state()["projects"][0]
    branches = {
        rule["name"]: (rule.get("allow_force_push", False), levels(rule["push_access_levels"]))
        for rule in project["protected_branches"]
    }
    tags = {rule["name"]: levels(rule["create_access_levels"]) for rule in project["protected_tags"]}
    return branches, tags


def levels(entries: list[dict[str, Any]]) -> list[str]:
    """Return whom entries name, without the IDs of these."""
    return sorted(str(entry.get("group_id") or entry.get("user") or entry["access_level"]) for entry in entries)


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("planner", "applier", "moved"),
    [("root", "ada", "+ group 22, - group hidden"), ("ada", "root", "+ group others, - group 21")],
)
def test_a_saved_plan_is_stale_once_another_entry_is_there_that_its_token_does_not_see(
    cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch, planner: str, applier: str, moved: str
) -> None:
    seen_by_root_alone(cli_runner)
    cli_runner.project("{protected_branches: {main: {allow_force_push: true}}}")
    monkeypatch.setenv("RECONCILER_TOKEN", f"{planner}-token")
    assert cli_runner("plan --out plan.json").code == 0
    seen_by_root_alone(cli_runner, 22)
    monkeypatch.setenv("RECONCILER_TOKEN", f"{applier}-token")
    done = cli_runner("apply --plan plan.json --yes")
    assert (done.code, done.out) == (
        3,
        "project acme/api\n"
        '  ~ protected branch "main"                   stale: it has changed since the plan was made: '
        f"allowed_to_push: {moved}\nApplied: 1 stale. 2 requests made.\n",
    )


def test_a_rule_that_every_maintainer_may_change_is_read_so_beside_a_list_with_names(engine: EngineDriver) -> None:
    levels = [{"id": 1, "access_level": 40, "user": "bob"}]
    service(engine, protected_branches=[{"id": 1, "name": "main", "push_access_levels": levels}])
    main = {"allowed_to_push": [{"user": "bob"}], "allowed_to_unprotect": ["maintainer"]}
    assert engine.step(branches({"main": main})) == []
