"""A declared rule that another rule undermines: who may push by it is not who may push in truth."""

import json
from typing import Any

import pytest

from tests.cli_runner import CliRunner
from tests.items import Shape, findings_of
from tests.states import a_small_service

NOBODY, DEVELOPERS, MAINTAINERS = ([{"access_level": level}] for level in (0, 30, 40))


def rule(number: int, name: str, push: Any = MAINTAINERS, merge: Any = MAINTAINERS, **more: Any) -> dict[str, Any]:
    """Return a rule of the service for branches."""
    return {"id": number, "name": name, "push_access_levels": push, "merge_access_levels": merge, **more}


def service(cli_runner: CliRunner, *live: dict[str, Any], of_group: Any = ()) -> None:
    """Give the project and its group these rules."""
    state = a_small_service("deployed")
    state["groups"][0]["protected_branches"] = list(of_group)
    state["projects"][0] |= {"protected_branches": list(live), "default_branch": "trunk"}
    cli_runner.sandbox.replace_state(state)


def undermined(cli_runner: CliRunner) -> list[str]:
    """Return what a plan says of rules that others undermine."""
    return said(cli_runner, "undermined")


def said(cli_runner: CliRunner, finding_code: str) -> list[str]:
    """Return the findings of a code of a plan without problems."""
    done = cli_runner("plan --format json")
    assert done.code == 0, done.err
    document: Shape = json.loads(done.out)
    return [f"{finding['name']}: {finding['reason']}" for finding in findings_of(document, finding_code)]


@pytest.mark.parametrize(
    ("live", "of_group", "spec", "expected"),
    [
        pytest.param(
            [rule(2, "ma*", DEVELOPERS, DEVELOPERS)],
            [],
            "{main: {allowed_to_push: [], allowed_to_merge: [maintainer]}}",
            ["main: nobody may push, but `ma*` (not declared) lets Developers"],
            id="not declared",
        ),
        pytest.param(
            [],
            [],
            '{main: {allowed_to_push: [maintainer], allowed_to_merge: []}, "m*": {allowed_to_push: [developer, {user: bob}]}}',
            ["main: only Maintainers may push, but `m*` lets Developers and user bob"],
            id="declared",
        ),
        pytest.param(
            [rule(1, "main", NOBODY, NOBODY)],
            [rule(2, "m*", NOBODY, DEVELOPERS)],
            "{main: {}}",
            ["main: nobody may merge, but `m*` (a group above) lets Developers"],
            id="of the group",
        ),
        pytest.param(
            [rule(1, "main", NOBODY, NOBODY), rule(2, "*", NOBODY, NOBODY, allow_force_push=True)],
            [],
            "{main: {allow_force_push: false}}",
            ["main: nobody may rewrite the history, but `*` (not declared) allows it"],
            id="force pushes",
        ),
        pytest.param(
            [rule(1, "main", DEVELOPERS), rule(2, "ma*"), rule(3, "other", DEVELOPERS)],
            [],
            "{main: {}, gone: null}",
            [],
            id="stricter rules, and others",
        ),
        pytest.param(
            [rule(1, "main"), rule(2, "ma*", DEVELOPERS)], [], '{main: {}, "ma*": null}', [], id="a rule that goes"
        ),
    ],
)  # fmt: skip
def test_a_plan_names_the_rule_that_undermines_another(
    cli_runner: CliRunner, live: Any, of_group: Any, spec: str, expected: list[str]
) -> None:
    service(cli_runner, *live, of_group=of_group)
    cli_runner.project(f"{{protected_branches: {spec}}}")
    assert undermined(cli_runner) == expected


def test_each_command_says_it_and_nothing_fails_for_it(cli_runner: CliRunner) -> None:
    sentence = "nobody may push, but `ma*` (not declared) lets Developers"
    service(cli_runner, rule(1, "main", NOBODY, NOBODY), rule(2, "ma*", DEVELOPERS, DEVELOPERS))
    cli_runner.project("{protected_branches: {main: {allowed_to_push: [], allowed_to_merge: []}}}")
    expected = (
        f'project acme/api\n  ? protected branch "main"                   {sentence}     manifests/project.yaml:4\n'
    )
    order = "No changes: 1 target is in order, 1 unmanaged. 1 request was made to plan.\n"
    for command in ("plan --report html=plan.html --report fleet=fleet.html --report markdown=plan.md", "drift"):
        done = cli_runner(command)
        assert (done.code, done.out) == (0, expected + order)
    for page in ("plan.html", "fleet.html", "plan.md"):
        assert "nobody may push, but" in (cli_runner.folder / page).read_text()
    done = cli_runner("doctor")
    assert (done.code, sentence in done.out) == (0, True)
    done = cli_runner("validate")
    assert (done.code, "may push" in done.out) == (0, False)


def test_validate_knows_what_is_declared(cli_runner: CliRunner) -> None:
    cli_runner.project(
        '{protected_branches: {main: {allowed_to_push: []}, "ma*": {allowed_to_push: [developer]}, "m*": {}}}'
    )
    done = cli_runner("validate")
    assert (done.code, done.out.splitlines()[0]) == (
        0,
        "manifests/project.yaml:4:29: warning: `main`: nobody may push, but `ma*` lets Developers",
    )


GROUP_RULES = """\
apiVersion: reconciler/v1
kind: Group
metadata: {path: acme}
spec:
  protected_branches:
    main: {allowed_to_push: [], allowed_to_merge: [maintainer]}
    "rel*": {allowed_to_push: [developer]}
    gone: null
"""

RULES_OF_A_SET = """\
apiVersion: reconciler/v1
kind: ProjectSet
metadata: {name: all}
select: {projects: [acme/lib, acme/web]}
spec:
  protected_branches:
    main: {allowed_to_push: [], allowed_to_merge: [maintainer], allow_force_push: true}
    "release/2": {allowed_to_push: [maintainer]}
"""

ACROSS_DOCUMENTS = """\
manifests/project.yaml:4:29: warning: `main` (group acme, manifests/group.yaml:6): nobody may push, but `main` lets Developers
manifests/project.yaml:4:67: warning: `release/1`: only Maintainers may push, but `rel*` (group acme, manifests/group.yaml:7) lets Developers
manifests/set.yaml:8:5: warning: `release/2`: only Maintainers may push, but `rel*` (group acme, manifests/group.yaml:7) lets Developers (for project acme/lib)
"""


def test_validate_compares_the_rules_of_projects_with_those_of_their_group(cli_runner: CliRunner) -> None:
    """Each rule of either is compared with those of the other; a line of a set is named once, for its first project."""
    cli_runner.write("manifests/group.yaml", GROUP_RULES)
    cli_runner.write("manifests/set.yaml", RULES_OF_A_SET)
    cli_runner.project(
        '{protected_branches: {main: {allowed_to_push: [developer]}, "release/1": {allowed_to_push: [maintainer]}, x: {}}}'
    )
    done = cli_runner("validate")
    warnings = [line for line in done.out.splitlines() if "warning: " in line]
    assert (done.code, warnings) == (0, ACROSS_DOCUMENTS.splitlines())


@pytest.mark.parametrize(
    "of_group",
    [
        pytest.param([], id="before they are there"),
        pytest.param([rule(8, "main", NOBODY), rule(9, "rel*", DEVELOPERS)], id="once they are there"),
        pytest.param([rule(8, "main", NOBODY), rule(9, "old*", DEVELOPERS)], id="beside one that nobody declares"),
    ],
)
def test_a_plan_compares_the_rules_of_projects_with_those_that_their_group_will_have(
    cli_runner: CliRunner, of_group: Any
) -> None:
    """The rules of projects count that are made by hand too."""
    by_hand = rule(3, "mai*", DEVELOPERS)
    service(cli_runner, rule(1, "old1"), rule(2, "release/1"), by_hand, of_group=of_group)
    cli_runner.write("manifests/group.yaml", GROUP_RULES)
    cli_runner.project(
        '{protected_branches: {main: {allowed_to_push: [developer]}, old1: {}, "release/1": {allowed_to_push: [maintainer]}}}'
    )
    old = "old1: only Maintainers may push, but `old*` (group acme, not declared) lets Developers"
    assert undermined(cli_runner) == [
        *([old] if "old*" in str(of_group) else []),
        "release/1: only Maintainers may push, but `rel*` (group acme) lets Developers",
        "mai*: `main` (group acme): nobody may push, but `mai*` (not declared) lets Developers",
        "main: `main` (group acme): nobody may push, but `main` lets Developers",
    ]


def test_a_rule_of_the_group_that_the_plan_deletes_undermines_nothing(cli_runner: CliRunner) -> None:
    service(cli_runner, rule(1, "main"), of_group=[rule(2, "m*", DEVELOPERS)])
    cli_runner.project("{protected_branches: {main: {}}}")
    assert undermined(cli_runner) == ["main: only Maintainers may push, but `m*` (a group above) lets Developers"]
    cli_runner.write("manifests/group.yaml", GROUP_RULES[: GROUP_RULES.index("    main")] + '    "m*": null\n')
    assert undermined(cli_runner) == []


def test_nothing_is_said_of_rules_that_cannot_be_read(cli_runner: CliRunner) -> None:
    service(cli_runner)
    cli_runner.project('{protected_branches: {main: {allowed_to_push: []}, "ma*": {allowed_to_push: [developer]}}}')
    cli_runner.sandbox.set_faults(["status=403,match=/protected_branches"])
    done = cli_runner("plan")
    assert (done.code, "nobody may push" in done.out) == (3, False)


CLOSED = "nobody may push or merge: list a role in `allowed_to_merge`, unless the branch is to stay as it is"


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("live", "of_group", "spec", "expected"),
    [
        pytest.param([], [], "{main: {allowed_to_push: [], allowed_to_merge: []}}", [f"main: {CLOSED}"], id="new"),
        pytest.param([rule(1, "main", NOBODY, NOBODY)], [], "{main: {}}", [f"main: {CLOSED}"], id="live"),
        pytest.param(
            [rule(1, "main", NOBODY, NOBODY)], [], "{main: {allowed_to_merge: [maintainer]}}", [], id="opened by the plan"
        ),
        pytest.param(
            [rule(1, "main", NOBODY, NOBODY), rule(2, "ma*")],
            [],
            '{main: {}, "ma*": null}',
            [f"main: {CLOSED}"],
            id="closed by a deletion",
        ),
        pytest.param([rule(1, "main", NOBODY, NOBODY)], [rule(2, "m*", NOBODY)], "{main: {}}", [], id="the group's"),
        pytest.param(
            [rule(1, "*", NOBODY, NOBODY), rule(2, "main", NOBODY)], [], '{"*": {}}', [], id="a pattern for the others"
        ),
        pytest.param([rule(1, "main", NOBODY)], [], "{main: {}}", [], id="merges alone"),
        pytest.param([rule(1, "main", MAINTAINERS, NOBODY)], [], "{main: {}}", [], id="pushes alone"),
        pytest.param(
            [rule(1, "main", NOBODY, NOBODY)],
            [rule(2, "m*", NOBODY, NOBODY)],
            "{main: {}}",
            [f"main: {CLOSED}"],
            id="the group's lets nobody in either",
        ),
    ],
)  # fmt: skip
def test_a_plan_names_a_rule_by_which_nobody_may_push_or_merge(
    cli_runner: CliRunner, live: Any, of_group: Any, spec: str, expected: list[str]
) -> None:
    service(cli_runner, *live, of_group=of_group)
    cli_runner.project(f"{{protected_branches: {spec}}}")
    assert said(cli_runner, "closed") == expected


def test_plan_and_doctor_say_that_nobody_may_merge_and_a_silent_drift_stays_silent(cli_runner: CliRunner) -> None:
    service(cli_runner, rule(1, "main", NOBODY, NOBODY))
    cli_runner.project("{protected_branches: {main: {allowed_to_push: [], allowed_to_merge: []}}}")
    assert cli_runner("doctor").out.count(CLOSED) == 1
    done = cli_runner("plan")
    assert (done.code, done.out.count(CLOSED)) == (0, 1), done.out
    done = cli_runner("drift")
    assert (done.code, done.out) == (0, "")


def test_drift_says_that_an_approval_rule_is_approved_by_itself(cli_runner: CliRunner) -> None:
    """Nobody changes a rule or a manifest, and the rule protects nothing any more: its last approver is blocked."""
    state = a_small_service("deployed")
    state["projects"][0]["approval_rules"] = [{"id": 1, "name": "Two", "users": ["bob"], "approvals_required": 1}]
    cli_runner.sandbox.replace_state(state)
    cli_runner.project("{approval_rules: {Two: {approvals_required: 1, users: [bob]}}}")
    done = cli_runner("drift")
    assert (done.code, done.out) == (0, "")
    state["users"][2]["blocked"] = True
    cli_runner.sandbox.replace_state(state)
    done = cli_runner("drift")
    assert (done.code, done.out) == (0, cli_runner("plan").out)
    assert 'approval rule "Two"' in done.out
    assert cli_runner("drift --quiet").out == ""


def test_a_rule_whose_people_are_all_blocked_lets_nobody_in(cli_runner: CliRunner) -> None:
    cli_runner.project("{protected_branches: {main: {allowed_to_push: [], allowed_to_merge: [{user: bob}]}}}")
    state = a_small_service("deployed")
    cli_runner.sandbox.replace_state(state)
    assert said(cli_runner, "closed") == []
    state["users"][2]["blocked"] = True
    cli_runner.sandbox.replace_state(state)
    assert said(cli_runner, "closed") == [f"main: {CLOSED}"]


def test_nothing_is_said_of_a_group_since_its_projects_may_let_people_in(cli_runner: CliRunner) -> None:
    service(cli_runner, of_group=[rule(2, "main", NOBODY, NOBODY)])
    cli_runner.write(
        "manifests/group.yaml",
        "apiVersion: reconciler/v1\nkind: Group\nmetadata: {path: acme}\nspec: {protected_branches: {main: {}}}\n",
    )
    assert said(cli_runner, "closed") == []


EQUAL_FINDINGS = """\
3 projects                                                           (acme/api, acme/lib and 1 more)
  ? protected branch "z"                      nobody may push or merge: list a role in `allowed_to_merge`, unless the branch is to stay as it is     manifests/set.yaml:5
  ? protected branch "a"                      nobody may push, but `a*` (not declared) lets Developers     manifests/set.yaml:5
No changes: 3 targets are in order, 3 unmanaged. 3 requests were made to plan.
"""


def test_equal_findings_of_several_projects_are_said_once(cli_runner: CliRunner) -> None:
    state = a_small_service("deployed")
    for number, project in enumerate(state["projects"][:3]):
        project["protected_branches"] = [
            rule(10 * number + 1, "a", NOBODY),
            rule(10 * number + 2, "a*", DEVELOPERS),
            rule(10 * number + 3, "z", NOBODY, NOBODY),
        ]
    cli_runner.sandbox.replace_state(state)
    cli_runner.write(
        "manifests/set.yaml",
        "apiVersion: reconciler/v1\nkind: ProjectSet\nmetadata: {name: all}\n"
        "select: {projects: [acme/api, acme/lib, acme/web]}\nspec: {protected_branches: {a: {}, z: {}}}\n",
    )
    assert cli_runner("plan").out == EQUAL_FINDINGS
