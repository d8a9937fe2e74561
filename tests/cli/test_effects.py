"""What a change means for protection: whether it loosens, tightens, both, or neither; in effect, not on paper."""

import json
from typing import Any

import pytest

from reconciler.document.checksum import with_checksum
from tests.cli_runner import CliRunner
from tests.items import Shape, changes_of
from tests.states import a_small_service

NOBODY, DEVELOPERS, MAINTAINERS = ([{"access_level": level}] for level in (0, 30, 40))


def rule(number: int, name: str, push: Any = MAINTAINERS, merge: Any = MAINTAINERS, **more: Any) -> dict[str, Any]:
    """Return a rule of the service for branches."""
    return {"id": number, "name": name, "push_access_levels": push, "merge_access_levels": merge, **more}


def effects(document: Shape) -> dict[str, str | None]:
    """Return the effect of each change by the name of its object, or its section."""
    return {
        f"{item['action']} {item['name'] or item['section']}": item.get("effect")
        for item in changes_of(document)
        if item["section"]
    }


def planned(cli_runner: CliRunner, options: str = "") -> Shape:
    """Return the JSON of a plan."""
    done = cli_runner(f"plan --report json=plan.json --allow-deletes 99 {options}")
    assert done.code == 0, done.out + done.err
    document: Shape = json.loads((cli_runner.folder / "plan.json").read_text())
    return document


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("live", "spec", "expected"),
    [
        pytest.param(
            {"merge_request_approval_settings": {"allow_author_approval": True, "retain_approvals_on_push": False}},
            "{approval_settings: {allow_author_approval: false, retain_approvals_on_push: true}}",
            {"update approval_settings": "both"},
            id="settings",
        ),
        pytest.param(
            {"approval_rules": [{"id": 1, "rule_type": "any_approver", "name": "All", "approvals_required": 2}]},
            "{approval_rules: {any_approver: {approvals_required: 1}, Security: {approvals_required: 2, users: [ada, bob]}}}",
            {"create Security": "tightens", "update any_approver": "loosens"},
            id="nothing is set off",
        ),
        pytest.param(
            {"approval_rules": [{"id": 1, "name": "Two", "users": ["ada", "bob"], "approvals_required": 1}]},
            "{approval_rules: {Two: {approvals_required: 1, users: [ada]}}}",
            {"update Two": "tightens"},
            id="fewer approvers",
        ),
        pytest.param(
            {"approval_rules": [{"id": 1, "name": "Two", "users": ["ada", "bob"], "approvals_required": 2}]},
            "{approval_rules: {Two: {approvals_required: 2, users: [ada]}}}",
            {"update Two": "loosens"},
            id="fewer approvers than are needed",
        ),
        pytest.param(
            {"approval_rules": [{"id": 1, "name": "Two", "users": ["ada", "bob"], "approvals_required": 2}]},
            "{approval_rules: {Two: {approvals_required: 3, users: [ada, bob]}}}",
            {"update Two": "both"},
            id="more than there are approvers",
        ),
        pytest.param(
            {"approval_rules": [{"id": 1, "rule_type": "any_approver", "name": "All", "approvals_required": 0}]},
            "{approval_rules: {any_approver: {approvals_required: 1, branches: protected}}}",
            {"update any_approver": "tightens"},
            id="an optional rule demands nothing of any branch",
        ),
        pytest.param(
            {"approval_rules": [{"id": 1, "rule_type": "any_approver", "name": "All", "approvals_required": 0}]},
            "{approval_rules: {any_approver: null, Later: {approvals_required: 0, users: [ada]}}}",
            {"delete any_approver": None, "create Later": None},
            id="optional rules come and go",
        ),
        pytest.param(
            {"approval_rules": [{"id": 1, "name": "Tools", "group_ids": [10], "approvals_required": 1}]},
            "{approval_rules: {Tools: {approvals_required: 9, groups: [acme]}}}",
            {"update Tools": "both"},
            id="more than the group has members",
        ),
        pytest.param(
            {"approval_rules": [{"id": 1, "name": "Tools", "group_ids": [10], "approvals_required": 9}]},
            "{approval_rules: {Tools: {approvals_required: 1, groups: [acme]}}}",
            {"update Tools": "both"},
            id="as many as the group has members",
        ),
        pytest.param(
            {"approval_rules": [{"id": 1, "name": "Two", "users": ["ada", "bob"], "approvals_required": 2}]},
            "{approval_rules: {Three: {renamed_from: Two, approvals_required: 2}}}",
            {"update Three": None},
            id="a rename",
        ),
        pytest.param(
            {"approval_rules": [{"id": 1, "name": "Two", "users": ["ada", "bob"], "approvals_required": 2}]},
            "{approval_rules: {Two: null}}",
            {"delete Two": "loosens"},
            id="a rule goes",
        ),
        pytest.param(
            {"protected_tags": [{"name": "v*", "create_access_levels": MAINTAINERS}]},
            '{protected_tags: {"v*": {allowed_to_create: [{user: ada}]}, "w*": {allowed_to_create: [developer]}}}',
            {"create w*": "tightens", "update v*": "both"},
            id="tags",
        ),
        pytest.param(
            {"job_token_scope": {"inbound_enabled": True, "project_allowlist": [101], "group_allowlist": []}},
            "{prune: [job_token_scope], job_token_scope: {enabled: false, projects: [acme/web]}}",
            {"update job_token_scope": "loosens", "create acme/web": "loosens", "delete acme/lib": "tightens"},
            id="allowlists",
        ),
        pytest.param(
            {"trigger_tokens": [{"description": "old", "owner": "ada"}]},
            "{trigger_tokens: {old: null, new: {}}}",
            {"create new": "loosens", "delete old": "tightens"},
            id="tokens",
        ),
        pytest.param(
            {"trigger_tokens": [{"description": "old", "owner": "ada", "created_at": "2020-01-01T00:00:00Z"}]},
            "{trigger_tokens: {old: {rotate_after: 90d}}}",
            {"create old": None},
            id="a rotation",
        ),
        pytest.param(
            {
                "trigger_tokens": [
                    {"description": "old", "owner": "ada", "created_at": "2020-01-01T00:00:00Z"},
                    {"description": "old", "owner": "ada", "created_at": "2026-11-01T00:00:00Z"},
                ]
            },
            "{trigger_tokens: {old: {rotate_after: 9000d}}}",
            {"delete old": None},
            id="the end of a rotation",
        ),
        pytest.param(
            {"milestones": [{"id": 1, "title": "old"}]},
            "{milestones: {old: {state: closed}, new: {}}}",
            {"update old": None, "create new": None},
            id="what protects nothing",
        ),
    ],
)
def test_the_effect_of_each_change(cli_runner: CliRunner, live: Any, spec: str, expected: dict[str, str]) -> None:
    cli_runner.service(**live)
    cli_runner.project(spec)
    document = planned(cli_runner)
    assert effects(document) == expected
    numbers = {word: sum(effect in (word, "both") for effect in expected.values()) for word in ("loosens", "tightens")}
    assert {word: document["summary"][word] for word in numbers} == numbers


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("live", "of_group", "spec", "expected"),
    [
        pytest.param([], [], "{main: {allowed_to_push: [developer]}}", {"create main": "tightens"}, id="first"),
        pytest.param([rule(1, "main")], [], "{main: null}", {"delete main": "loosens"}, id="last"),
        pytest.param(
            [rule(1, "main"), rule(2, "ma*", DEVELOPERS, DEVELOPERS)],
            [],
            "{main: {allowed_to_push: [], allowed_to_merge: [maintainer]}}",
            {"update main": None},
            id="a looser wildcard decides",
        ),
        pytest.param(
            [rule(1, "main"), rule(2, "ma*", DEVELOPERS, DEVELOPERS)], [], "{main: null}", {"delete main": None},
            id="a rule goes beside a looser one",
        ),
        pytest.param(
            [rule(1, "main", DEVELOPERS), rule(2, "ma*")], [], "{main: null}", {"delete main": None},
            id="a rule goes beside a stricter one",
        ),
        pytest.param(
            [rule(1, "main"), rule(2, "ma*", DEVELOPERS)], [], '{"ma*": null}', {"delete ma*": "loosens"},
            id="other branches lose their rule",
        ),
        pytest.param(
            [rule(1, "main", NOBODY, NOBODY)],
            [],
            '{"ma*": {allowed_to_push: [developer], allowed_to_merge: [developer]}}',
            {"create ma*": "both"},
            id="a looser wildcard comes",
        ),
        pytest.param(
            [rule(1, "main")], [], '{main: null, "ma*": {allowed_to_push: [maintainer], allowed_to_merge: []}}',
            {"create ma*": "tightens", "delete main": None},
            id="a wildcard takes over",
        ),
        pytest.param(
            [rule(1, "main", DEVELOPERS), rule(2, "ma*", DEVELOPERS)],
            [],
            '{main: {allowed_to_push: []}, "ma*": {allowed_to_push: [maintainer]}}',
            {"update main": "tightens", "update ma*": "tightens"},
            id="both become stricter",
        ),
        pytest.param(
            [rule(1, "main", NOBODY, NOBODY), rule(2, "ma*", DEVELOPERS, NOBODY)],
            [],
            '{main: {allowed_to_push: [maintainer]}, "ma*": {allowed_to_push: []}}',
            {"update main": None, "update ma*": "tightens"},
            id="what another change does is not its own",
        ),
        pytest.param(
            [rule(1, "main", MAINTAINERS, NOBODY)],
            [],
            "{main: {allowed_to_merge: [maintainer]}}",
            {"update main": None},
            id="who may push may merge",
        ),
        pytest.param(
            [rule(1, "main"), rule(2, "ma*", allow_force_push=True)],
            [],
            "{main: {allow_force_push: true, code_owner_approval_required: true}}",
            {"update main": "tightens"},
            id="another rule allows force pushes already",
        ),
        pytest.param(
            [rule(1, "main"), rule(2, "ma*", code_owner_approval_required=True)],
            [],
            "{main: {allow_force_push: true, code_owner_approval_required: false}}",
            {"update main": "loosens"},
            id="another rule asks for code owners",
        ),
        pytest.param(
            [rule(1, "main")],
            [],
            "{main: {allowed_to_unprotect: [admin]}}",
            {"update main": "tightens"},
            id="who may unprotect is of each rule",
        ),
        pytest.param(
            [rule(1, "main")],
            [rule(2, "m*", DEVELOPERS, DEVELOPERS)],
            "{main: {allowed_to_push: [developer]}}",
            {"update main": None},
            id="a rule of the group decides",
        ),
        pytest.param(
            [rule(1, "old")],
            [],
            "{new: {renamed_from: old, allowed_to_push: [maintainer]}}",
            {"update new": None},
            id="a rename",
        ),
        pytest.param(
            [rule(1, "old")],
            [],
            "{new: {renamed_from: old, allowed_to_push: [developer]}}",
            {"update new": "loosens"},
            id="a rename and a looser list",
        ),
        pytest.param(
            [rule(1, "main", [{"user": "bob"}])],
            [],
            '{main: null, "m*": {allowed_to_push: [{user: bob}], allowed_to_merge: [maintainer]}}',
            {"create m*": "tightens", "delete main": None},
            id="a number and a name are one",
        ),
    ],
)  # fmt: skip
def test_rules_of_branches_count_as_they_hold_together(
    cli_runner: CliRunner, live: Any, of_group: Any, spec: str, expected: dict[str, str]
) -> None:
    state = a_small_service("deployed")
    state["groups"][0]["protected_branches"] = of_group
    state["projects"][0] |= {"protected_branches": live, "default_branch": "trunk"}
    cli_runner.sandbox.replace_state(state)
    cli_runner.project(f"{{protected_branches: {spec}}}")
    assert effects(planned(cli_runner)) == expected


def test_nothing_loosens_inside_a_new_project_and_an_entry_elsewhere_does(cli_runner: CliRunner) -> None:
    cli_runner.project("{job_token_scope: {projects: [acme/fresh]}}")
    cli_runner.write(
        "manifests/new.yaml",
        "apiVersion: reconciler/v1\nkind: Project\nmetadata: {path: acme/fresh}\ncreate: {name: New}\n"
        "spec: {trigger_tokens: {nightly: {}}, protected_tags: {v*: {allowed_to_create: []}}}\n",
    )
    document = planned(cli_runner)
    assert effects(document) == {"create nightly": None, "create v*": "tightens", "create acme/fresh": "loosens"}


def test_a_saved_plan_keeps_its_effects_and_one_of_before_has_none(cli_runner: CliRunner) -> None:
    cli_runner.service(trigger_tokens=[{"description": "old", "owner": "ada"}])
    cli_runner.project("{trigger_tokens: {old: null}, protected_tags: {v*: {allowed_to_create: []}}}")
    expected = {"create v*": "tightens", "delete old": "tightens"}
    assert cli_runner("plan --out plan.json").code == 0
    assert effects(json.loads(cli_runner("show plan.json --format json").out)) == expected
    content = json.loads((cli_runner.folder / "plan.json").read_text())
    del content["checksum"], content["summary"]["loosens"], content["summary"]["tightens"]
    for change in changes_of(content):
        del change["effect"]
    cli_runner.write("before.json", with_checksum(content))
    assert effects(json.loads(cli_runner("show before.json --format json").out)) == dict.fromkeys(expected)
    assert cli_runner("apply --plan plan.json --yes --report json=report.json").code == 0
    report = json.loads((cli_runner.folder / "report.json").read_text())
    assert (effects(report), report["summary"]["tightens"]) == (expected, 2)


@pytest.mark.parametrize(
    ("manifests", "expected"),
    [
        pytest.param(
            "kind: Project\nmetadata: {path: acme/api}\nspec: {approval_settings: {allow_author_approval: false}}\n",
            {"update approval_settings": ("tightens", "manifests/all.yaml:4")},
            id="settings that are written whole",
        ),
        pytest.param(
            "kind: Group\nmetadata: {path: acme}\nspec: {approval_settings: {allow_committer_approval: false}}\n---\n"
            "apiVersion: reconciler/v1\n"
            "kind: Project\nmetadata: {path: acme/api}\nspec: {approval_settings: {allow_author_approval: false}}\n",
            {"update approval_settings": ("tightens", "manifests/all.yaml:9")},
            id="settings below a group that is changed first",
        ),
        pytest.param(
            "kind: Project\nmetadata: {path: acme/fresh}\ncreate: {name: fresh}\n"
            "spec: {protected_branches: {main: {allowed_to_push: []}}, trigger_tokens: {nightly: {}}}\n",
            {
                "create main": ("tightens", "manifests/all.yaml:5"),
                "create nightly": (None, "manifests/all.yaml:5"),
            },
            id="a new project",
        ),
    ],
)
def test_what_is_planned_again_keeps_its_effect_and_its_place(
    cli_runner: CliRunner, manifests: str, expected: dict[str, tuple[str | None, str]]
) -> None:
    """An apply reads some sections again before it writes them; its report says what the plan said."""
    cli_runner.service(merge_request_approval_settings={"allow_author_approval": True})
    cli_runner.write("manifests/all.yaml", f"apiVersion: reconciler/v1\n{manifests}")
    done = cli_runner("apply --yes --no-inventory --tokens-to tokens.jsonl --report json=report.json")
    assert done.code == 0, done.out + done.err
    report = json.loads((cli_runner.folder / "report.json").read_text())
    found = {
        f"{item['action']} {item['name'] or item['section']}": (item.get("effect"), item["origin"])
        for item in changes_of(report)
        if item["section"] and item["target"].startswith("project ")
    }
    assert found == expected
    tightening = [item for item in changes_of(report) if item.get("effect") == "tightens"]
    assert report["summary"]["tightens"] == len(tightening)


def test_a_report_counts_the_effects_of_what_was_done_alone(cli_runner: CliRunner) -> None:
    cli_runner.service(protected_branches=[rule(1, "main", DEVELOPERS), rule(2, "next", DEVELOPERS)])
    cli_runner.project("{protected_branches: {main: {allowed_to_push: []}, next: {allowed_to_push: []}}}")
    assert cli_runner("plan --out plan.json").code == 0
    cli_runner.service(protected_branches=[rule(1, "main", DEVELOPERS), rule(2, "next", MAINTAINERS)])
    reports = " ".join(f"--report {name}={name}" for name in ("json", "markdown", "html"))
    done = cli_runner(f"apply --plan plan.json --yes {reports}")
    counts = "Applied: 1 updated, 1 tightening, 1 stale"
    assert (done.code, counts in done.out) == (3, True), done.out
    assert f"\n## {counts}\n" in f"\n{(cli_runner.folder / 'markdown').read_text()}"
    assert "1 of 2 changes is done, 1 tightening" in (cli_runner.folder / "html").read_text()
    summary = json.loads((cli_runner.folder / "json").read_text())["summary"]
    assert {word: number for word, number in summary.items() if number} == {"updated": 1, "stale": 1, "tightens": 1}
