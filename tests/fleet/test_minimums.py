"""Minimums: what is stricter on the service stays, whatever is planned, saved, applied, accepted and exported."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconciler.model.protocols import Request
from reconciler.model.state import Section
from reconciler.model.targets import Level, Target
from reconciler.sandbox import Sandbox
from reconciler.service import Client
from tests.building import section
from tests.cli_runner import CliRunner
from tests.engine_driver import EngineDriver
from tests.states import a_small_service

API = Target(Level.PROJECT, "acme/api")
ACME = Target(Level.GROUP, "acme")

BASELINE = """\
apiVersion: reconciler/v1
kind: ProjectSet
metadata:
  name: baseline
  at_least: {approval_rules: [any_approver], approval_settings: all, job_token_scope: all, protected_branches: [main]}
select: {group: acme, include: ["acme/*"]}
spec:
  approval_rules: {any_approver: {approvals_required: 1}}
  approval_settings: {allow_author_approval: false, selective_code_owner_removals: true}
  job_token_scope: {enabled: true, projects: [acme/lib, acme/web]}
  protected_branches:
    main: {allowed_to_push: [], allowed_to_merge: [maintainer, {user: ada}], allow_force_push: false}
"""


def at_least(declared: Section, fields: Mapping[Any, set[str]]) -> Section:
    return replace(declared, at_least={name: frozenset(named) for name, named in fields.items()})


def branch(push: int, *merge: Mapping[str, Any], force: bool = False) -> dict[str, Any]:
    return {
        "name": "main",
        "push_access_levels": [{"access_level": push}],
        "merge_access_levels": [*merge],
        "allow_force_push": force,
    }


def any_approver(number: int) -> dict[str, Any]:
    return {"id": 50 + number, "name": "All Members", "rule_type": "any_approver", "approvals_required": number}


def fleet(cli_runner: CliRunner) -> None:
    """A project that is stricter than the baseline, a looser one, and one without rules."""
    state = a_small_service("deployed")
    stricter, looser, bare, _ = state["projects"]
    stricter |= {
        "approval_rules": [any_approver(2)],
        "merge_request_approval_settings": {"allow_author_approval": False, "retain_approvals_on_push": False},
        "job_token_scope": {"inbound_enabled": True, "project_allowlist": [101]},
        "protected_branches": [branch(0, {"user": "ada"})],
    }
    looser |= {
        "approval_rules": [any_approver(0)],
        "merge_request_approval_settings": {"allow_author_approval": True, "retain_approvals_on_push": True},
        "job_token_scope": {"inbound_enabled": False},
        "protected_branches": [branch(40, {"access_level": 30}, force=True)],
    }
    bare["merge_request_approval_settings"] = {"retain_approvals_on_push": False}
    state["projects"] = [stricter, looser, bare]
    cli_runner.sandbox.replace_state(state)
    cli_runner.write("manifests/baseline.yaml", BASELINE)


PLANNED = """\
Loosens protection:
project acme/lib
  ~ protected branch "main"                   allowed_to_push: maintainer -> nobody, allowed_to_merge: + maintainer, + user ada, - developer, allow_force_push: true -> false, at least so, loosens and tightens
All else:
project acme/lib
  ~ approval settings                         allow_author_approval: true -> false, selective_code_owner_removals: false -> true, at least so, tightens
  ~ job token scope                           enabled: false -> true, at least true, tightens
  ~ approval rule "any_approver"              approvals_required: 0 -> 1, at least 1, tightens
project acme/web
  + protected branch "main"                   allowed_to_push: nobody, allowed_to_merge: maintainer, user ada, allow_force_push: false, allowed_to_unprotect: maintainer, by default, at least so, tightens
  + approval rule "any_approver"              approvals_required: 1, branches: any, by default, at least 1, tightens
Plan: 2 to create, 4 to update, 1 loosening, 6 tightening."""


def writes(cli_runner: CliRunner) -> list[str]:
    return [
        f"{entry['method']} {entry['target'].removeprefix('/api/v4/')} {entry['body']}"
        for entry in cli_runner.sandbox.log()
        if entry["method"] != "GET"
    ]


@pytest.mark.untraced
def test_what_is_looser_is_raised_and_what_is_stricter_stays(cli_runner: CliRunner) -> None:
    fleet(cli_runner)
    planned = cli_runner("plan --out plan.json")
    assert (planned.code, planned.changes.partition(" 6 writes")[0]) == (0, PLANNED)
    assert cli_runner("show plan.json").changes.partition(" 6 writes")[0] == PLANNED

    cli_runner.sandbox.clear_log()
    applied = cli_runner("apply --yes --plan plan.json")
    assert applied.code == 0, applied.out + applied.err
    assert sorted(writes(cli_runner)) == WRITES
    planned = cli_runner("plan")
    assert "\nNo changes: 3 targets are in order. " in f"\n{planned.out}", planned.out
    assert cli_runner("drift").code == 0


WRITES = [
    "PATCH projects/acme%2Flib/job_token_scope {'enabled': True}",
    "PATCH projects/acme%2Flib/protected_branches/main {'allowed_to_push': [{'id': 2, '_destroy': True}], "
    "'allowed_to_merge': [{'id': 2, '_destroy': True}, {'access_level': 40}, {'user_id': 2}], "
    "'allow_force_push': False}",
    "POST projects/acme%2Fweb/approval_rules {'name': 'All Members', 'rule_type': 'any_approver', "
    "'approvals_required': 1}",
    "POST projects/acme%2Fweb/protected_branches {'name': 'main', 'allowed_to_push': [{'access_level': 0}], "
    "'allowed_to_merge': [{'access_level': 40}, {'user_id': 2}], 'allow_force_push': False}",
    "PUT projects/acme%2Flib/approval_rules/50 {'approvals_required': 1}",
    "PUT projects/acme%2Flib/merge_request_approval_setting {'allow_author_approval': False, "
    "'allow_committer_approval': True, 'allow_overrides_to_approver_list_per_merge_request': True, "
    "'retain_approvals_on_push': True, 'selective_code_owner_removals': True, "
    "'require_reauthentication_to_approve': False}",
]


def test_a_saved_plan_lowers_nothing_that_has_been_made_stricter(cli_runner: CliRunner) -> None:
    fleet(cli_runner)
    assert cli_runner("plan --out plan.json").code == 0
    with Client(cli_runner.sandbox.api_url, "ada-token") as client:
        client.send(Request("PUT", "projects/101/approval_rules/50", {"approvals_required": 3}))
        rule = {"name": "All Members", "rule_type": "any_approver", "approvals_required": 4}
        client.send(Request("POST", "projects/102/approval_rules", rule))
    cli_runner.sandbox.clear_log()
    applied = cli_runner("apply --yes --plan plan.json")
    assert (applied.code, [line for line in applied.out.splitlines() if "approval rule" in line]) == (
        0,
        [
            '  ~ approval rule "any_approver"              done: by an earlier run',
            '  + approval rule "any_approver"              done: by an earlier run',
        ],
    ), applied.out
    assert [line for line in writes(cli_runner) if "approval_rules" in line] == []
    assert "\nNo changes: " in f"\n{cli_runner('plan').out}"


def test_a_minimum_is_excepted_and_never_lowered(cli_runner: CliRunner) -> None:
    fleet(cli_runner)
    looser = "apiVersion: reconciler/v1\nkind: Project\nmetadata: {path: acme/lib}\nspec:\n"
    cli_runner.write("manifests/lib.yaml", f"{looser}  approval_rules: {{any_approver: {{approvals_required: 0}}}}\n")
    stricter = looser.replace("lib", "api")
    cli_runner.write("manifests/api.yaml", f"{stricter}  approval_rules: {{any_approver: {{approvals_required: 3}}}}\n")
    scope = "--section approval_rules --target acme/api --target acme/lib"
    assert cli_runner("validate").code == 1
    assert cli_runner(f"accept {scope}").code == 1
    done = cli_runner(f"accept {scope} --until 2099-01-01 --reason OPS-7 --only-locks")
    assert (done.code, done.out) == (0, "manifests/lib.yaml\n"), done.err
    written = (cli_runner.folder / "manifests/lib.yaml").read_text()
    assert written == (
        "apiVersion: reconciler/v1\nkind: Project\nmetadata:\n  path: acme/lib\n  exceptions:\n"
        "    - {section: approval_rules, item: any_approver, fields: [approvals_required], until: 2099-01-01, "
        "reason: OPS-7}\nspec:\n  approval_rules: {any_approver: {}}\n"
    )
    assert (
        "this exception covers approval_rules.any_approver, a minimum in set baseline (manifests/baseline.yaml:5:31)"
        in cli_runner("validate -v").out
    )
    # What a document adds to the minimum is its own: that may be lowered, as far as the minimum lets it.
    accepted = cli_runner("accept --section approval_rules --target acme/api")
    assert accepted.code == 0, accepted.err
    assert (cli_runner.folder / "manifests/api.yaml").read_text().endswith("{approvals_required: 2}}\n")
    refused = cli_runner("accept --section approval_settings --target acme/lib")
    assert (refused.code, refused.err.splitlines()[:2]) == (
        3,
        [
            "not accepted: project acme/lib: approval settings.allow_author_approval: a minimum in set baseline "
            "(manifests/baseline.yaml:5:46): change it there",
            "not accepted: project acme/lib: approval settings.selective_code_owner_removals: a minimum in set "
            "baseline (manifests/baseline.yaml:5:46): change it there",
        ],
    )
    missing = cli_runner("accept --section protected_branches --target acme/web")
    assert (missing.code, "a minimum in set baseline" in missing.err) == (3, True)


def test_an_export_writes_nothing_that_a_minimum_has_in_order(cli_runner: CliRunner) -> None:
    fleet(cli_runner)
    cli_runner.write(
        "manifests/api.yaml", "apiVersion: reconciler/v1\nkind: Project\nmetadata: {path: acme/api}\nspec: {}\n"
    )
    before = (cli_runner.folder / "manifests/api.yaml").read_text()
    done = cli_runner("export --project acme/api -o manifests")
    assert done.code == 0, done.err
    assert (cli_runner.folder / "manifests/api.yaml").read_text() == before


def test_accept_solves_a_problem_and_leaves_what_is_stricter(cli_runner: CliRunner) -> None:
    """A setting that a group locks is a problem, beside settings that are stricter than their minimums."""
    fleet(cli_runner)
    state = cli_runner.sandbox.state()
    state["groups"][0]["merge_request_approval_settings"] = {"allow_committer_approval": False}
    rule = {"id": 60, "name": "Security", "rule_type": "regular", "users": ["ada"], "approvals_required": 1}
    state["projects"][0]["approval_rules"].append(rule)
    cli_runner.sandbox.replace_state(state)
    minimum = BASELINE.replace("selective_code_owner_removals: true", "retain_approvals_on_push: true")
    minimum = minimum.replace("required: 1}}", "required: 1}, Security: {approvals_required: 0}}")
    cli_runner.write("manifests/baseline.yaml", minimum.replace("[any_approver]", "all"))
    own = "apiVersion: reconciler/v1\nkind: Project\nmetadata: {path: acme/api}\nspec:\n"
    settings = "  approval_settings: {allow_committer_approval: true}\n"
    rules = "  approval_rules: {Security: {users: [ada, zoe]}}\n"
    cli_runner.write("manifests/api.yaml", own + settings + rules)
    done = cli_runner("accept --target acme/api --section approval_settings --section approval_rules")
    assert done.code == 0, done.err
    assert (cli_runner.folder / "manifests/api.yaml").read_text() == (
        own + settings.replace("true", "false") + rules.replace(", zoe", "")
    )


def test_what_a_group_locks_is_as_strict_as_a_minimum(engine: EngineDriver) -> None:
    group = section("approval_settings", {"allow_author_approval": False, "retain_approvals_on_push": False}, ACME)
    wanted = {
        "allow_author_approval": True,
        "retain_approvals_on_push": True,
        "selective_code_owner_removals": True,
        "require_reauthentication_to_approve": False,
    }
    project = at_least(section("approval_settings", wanted), {None: {*wanted}})
    assert engine.problems(group, section("approval_settings", wanted)) != []
    assert engine.problems(group, project) == []
    assert engine.step(group, project) == [
        'PUT groups/acme/merge_request_approval_setting {"allow_author_approval": false, '
        '"allow_committer_approval": true, "allow_overrides_to_approver_list_per_merge_request": true, '
        '"retain_approvals_on_push": false, "selective_code_owner_removals": false, '
        '"require_reauthentication_to_approve": false}'
    ]


def test_what_a_group_lets_go_is_planned_again_with_the_minimum(engine: EngineDriver, dialect: str) -> None:
    state = a_small_service(dialect)
    state["groups"][0]["merge_request_approval_settings"] = {"allow_author_approval": False}
    mine = {"allow_author_approval": True, "retain_approvals_on_push": False}
    state["projects"][0]["merge_request_approval_settings"] = mine
    engine.sandbox.replace_state(state)
    group = section("approval_settings", {"allow_author_approval": True}, ACME)
    wanted = {"allow_author_approval": False, "retain_approvals_on_push": True}
    project = at_least(section("approval_settings", wanted), {None: {*wanted}})
    assert engine.step(group, project) == [
        'PUT groups/acme/merge_request_approval_setting {"allow_author_approval": true, '
        '"allow_committer_approval": true, "allow_overrides_to_approver_list_per_merge_request": true, '
        '"retain_approvals_on_push": true, "selective_code_owner_removals": false, '
        '"require_reauthentication_to_approve": false}',
        'PUT projects/acme%2Fapi/merge_request_approval_setting {"allow_author_approval": false, '
        '"allow_committer_approval": true, "allow_overrides_to_approver_list_per_merge_request": true, '
        '"retain_approvals_on_push": false, "selective_code_owner_removals": false, '
        '"require_reauthentication_to_approve": false}',
    ]


def test_a_saved_plan_knows_the_minimums_of_what_is_planned_again(cli_runner: CliRunner) -> None:
    fleet(cli_runner)
    group = "apiVersion: reconciler/v1\nkind: Group\nmetadata: {path: acme}\nspec:\n"
    cli_runner.write("manifests/acme.yaml", f"{group}  approval_settings: {{allow_committer_approval: false}}\n")
    minimum = BASELINE.replace("selective_code_owner_removals: true", "retain_approvals_on_push: true")
    cli_runner.write("manifests/baseline.yaml", minimum)
    scope = "--section approval_settings --target acme --target acme/api"
    assert cli_runner(f"plan {scope} --out plan.json").code == 0
    assert '"at_least":' in (cli_runner.folder / "plan.json").read_text()
    cli_runner.sandbox.clear_log()
    applied = cli_runner("apply --yes --plan plan.json")
    assert (applied.code, applied.out.partition("Applied")[0]) == (
        0,
        "group acme\n  ~ approval settings                         done\n",
    )
    assert [line.split()[1] for line in writes(cli_runner)] == ["groups/acme/merge_request_approval_setting"]


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("wanted", "rule", "expected"),
    [
        ({"users": ["ada", "bob"]}, {"users": ["ada"], "approvals_required": 1}, []),
        (
            {"users": ["ada", "bob"]},
            {"users": ["ada"], "approvals_required": 2},
            ['PUT projects/acme%2Fapi/approval_rules/7 {"user_ids": [2, 3]}'],
        ),
        (
            {"users": ["ada", "bob"], "approvals_required": 2},
            {"users": ["ada"], "approvals_required": 1},
            ['PUT projects/acme%2Fapi/approval_rules/7 {"approvals_required": 2, "user_ids": [2, 3]}'],
        ),
        ({"users": ["ada"], "groups": ["acme"]}, {"users": [], "group_ids": [10], "approvals_required": 2}, []),
        ({"branches": "protected"}, {"users": ["ada"], "approvals_required": 0}, []),
    ],
)
def test_fewer_approvers_are_stricter_while_they_are_enough(
    engine: EngineDriver, dialect: str, wanted: dict[str, Any], rule: dict[str, Any], expected: list[str]
) -> None:
    state = a_small_service(dialect)
    state["projects"][0]["approval_rules"] = [{"id": 7, "name": "Security", "rule_type": "regular", **rule}]
    engine.sandbox.replace_state(state)
    declared = at_least(section("approval_rules", {"Security": wanted}), {"Security": {*wanted}})
    assert engine.step(declared) == expected


def test_a_level_that_the_service_does_not_show_is_not_compared(engine: EngineDriver, dialect: str) -> None:
    state = a_small_service(dialect)
    rule = {"package_name_pattern": "@acme/*", "package_type": "npm", "minimum_access_level_for_push": "owner"}
    state["projects"][0]["package_protection_rules"] = [{"id": 7, **rule}]
    engine.sandbox.replace_state(state)
    wanted = {"minimum_access_level_for_push": "maintainer", "minimum_access_level_for_delete": "admin"}
    declared = at_least(section("package_protection_rules", {"npm:@acme/*": wanted}), {"npm:@acme/*": {*wanted}})
    assert engine.step(declared) == []


def test_a_rule_that_is_renamed_keeps_what_is_stricter(engine: EngineDriver, dialect: str) -> None:
    """Without an update for it, the service gets a new rule."""
    state = a_small_service(dialect)
    state["projects"][0]["protected_branches"] = [branch(0, {"access_level": 30})]
    engine.sandbox.replace_state(state)
    wanted = {"allowed_to_push": ["developer"], "allowed_to_merge": ["maintainer"]}
    declared = section("protected_branches", {"trunk": {"renamed_from": "main", **wanted}})
    assert engine.step(at_least(declared, {"trunk": {*wanted}})) == [
        'POST projects/acme%2Fapi/protected_branches {"name": "trunk", "allowed_to_push": [{"access_level": 0}], '
        '"allowed_to_merge": [{"access_level": 40}], "allowed_to_unprotect": [{"access_level": 40}], '
        '"allow_force_push": false, "code_owner_approval_required": false}',
        "DELETE projects/acme%2Fapi/protected_branches/main",
    ]


def test_a_field_without_a_direction_is_compared_as_ever(engine: EngineDriver) -> None:
    """Nobody can declare such a minimum, but a plan can be edited."""
    declared = at_least(section("milestones", {"a": {"description": "old"}}), {"a": {"description"}})
    assert engine.step(declared) == ['POST projects/acme%2Fapi/milestones {"title": "a", "description": "old"}']
    declared = at_least(section("milestones", {"a": {"description": "new"}}), {"a": {"description"}})
    assert engine.step(declared) == ['PUT projects/acme%2Fapi/milestones/1 {"description": "new"}']


LEVELS = st.lists(st.sampled_from([30, 40, 60]), max_size=2, unique=True)
ROLES = st.lists(st.sampled_from(["developer", "maintainer", "admin", {"user": "ada"}, {"user": 3}]), max_size=3)
WANTED = st.fixed_dictionaries(
    {}, optional={"allowed_to_push": ROLES, "allowed_to_merge": ROLES, "allow_force_push": st.booleans()}
)
SUBJECTS = {30: "developer", 40: "maintainer", 60: "admin"}


@pytest.mark.untraced
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(wanted=WANTED, push=LEVELS, merge=LEVELS, users=st.lists(st.sampled_from(["ada", "bob"]), unique=True))
def test_a_minimum_is_reached_by_one_apply_and_what_is_stricter_is_never_written(
    sandbox: Sandbox, wanted: dict[str, Any], push: list[int], merge: list[int], users: list[str]
) -> None:
    state = a_small_service("deployed")
    rule = branch(0)
    levels: list[dict[str, Any]] = [{"access_level": level} for level in merge]
    rule["merge_access_levels"] = levels + [{"user": name} for name in users]
    rule["push_access_levels"] = [{"access_level": level} for level in push] or [{"access_level": 0}]
    rule["merge_access_levels"] += [] if merge or users else [{"access_level": 0}]
    state["projects"][0]["protected_branches"] = [rule]
    declared = at_least(section("protected_branches", {"main": wanted}), {"main": {*wanted}})
    merging: list[Any] = [SUBJECTS[level] for level in merge]
    merging += [{"user": name} for name in users]
    roles = {"allowed_to_push": [SUBJECTS[level] for level in push], "allowed_to_merge": merging}
    with EngineDriver(sandbox, state) as engine:
        live = {name: value for name, value in roles.items() if name in wanted}
        looser = {name: [*value, "developer"] for name, value in live.items()}
        minimum = at_least(section("protected_branches", {"main": looser}), {"main": {*looser}})
        assert engine.step(minimum) == []
        engine.step(declared)
