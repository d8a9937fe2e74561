"""What a run itself creates, renames or removes counts in every check: one apply, or a problem before anything is written.

Each cell of the table names the stories below, in `STORIES` (one apply, then an empty plan) and `PROBLEMS`, and tests
elsewhere.

| | a group | a branch rule | a membership | a milestone's name |
|---|---|---|---|---|
| creates | `test_a_new_group_takes_the_place_of_another`; `test_entries`: named in an approval rule and an allowlist, and as an
  entry, which takes an invitation; `test_planning_creations` | "created ..."; `test_approval_rules`: in the project, in
  the top-level group, in a new one | `test_members_of_the_group_may_stand_in_rules_of_its_new_project`; `test_entries`:
  in a new group | `test_promotion`: a name that a group gets is taken below it |
| renames | (1) | "renamed ..."; `test_approval_rules`: a rule moves along with the branch that it names | (2) |
  "renamed ...", "promoted ..." |
| removes | (1) `test_a_new_group_takes_the_place_of_another` | "removed ...", "moved ..."; `test_approval_rules` | (2) |
  "removed ...", "moved ..."; `test_promotion`: what a group takes over is not deleted below |

1. No kind renames or deletes a group: its entry in an allowlist is what goes. `test_doomed_entries` has groups that
   somebody deletes, `test_moved` those that somebody moves.
2. No kind manages members or invitations: they change by other hands, as in `test_entries`. A membership ends with its
   service account: `test_a_rule_names_no_member_whom_the_run_deletes_or_renames`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from reconciler.document.stored import load_plan, save
from reconciler.model.plan import Plan
from reconciler.model.state import Section
from reconciler.model.targets import Level, Target
from tests.building import ACME, API, KINDS, section
from tests.cli_runner import CliRunner
from tests.engine_driver import PREFIX, EngineDriver, failures
from tests.kinds.out_of_band import user_in
from tests.render.samples import saved_plan, tree
from tests.states import a_small_service

TOOLS = Target(Level.GROUP, "acme/tools")
CLI = Target(Level.PROJECT, "acme/tools/cli")

Fields = Mapping[str, Any]


def branches(value: Fields, target: Target = API) -> Section:
    return section("protected_branches", value, target)


def rules(value: Fields) -> Section:
    return section("approval_rules", value)


def milestones(value: Fields, target: Target = API) -> Section:
    return section("milestones", value, target)


def named(*branch_names: str) -> Section:
    """Return a new approval rule for some branches."""
    return rules({"b": {"approvals_required": 1, "users": ["bob"], "branches": branch_names}})


def protecting(**ids: int) -> Fields:
    return {"protected_branches": [{"id": number, "name": name} for name, number in ids.items()]}


def planning(**ids: int) -> Fields:
    return {"milestones": [{"id": number, "title": title} for title, number in ids.items()]}


RULE: Fields = {"id": 7, "name": "a", "group_ids": [11]}

FOR_OLD: Fields = {**protecting(main=1, old=2), "approval_rules": [{**RULE, "protected_branch_ids": [2]}]}
"""A project whose approval rule is for its branch `old`."""

FOR_STABLE: Fields = {**protecting(main=1), "approval_rules": [{**RULE, "protected_branch_ids": [9]}]}
"""One whose approval rule is for the branch `stable` of its top-level group."""

STABLE = protecting(stable=9)

UNIQUE = "must be unique in a group and everything below it"

OF_BRANCHES = ("projects/acme%2Fapi/approval_rules", "projects/acme%2Fapi/protected_branches")

TOP_BRANCHES = "groups/acme/protected_branches"

OF_API = "projects/acme%2Fapi/milestones?include_ancestors=true"

OF_CLI = "projects/acme%2Ftools%2Fcli/milestones?include_ancestors=true"

OF_ACME = "groups/acme/milestones?include_ancestors=true&include_descendants=true"

OF_TOOLS = "groups/acme%2Ftools/milestones?include_ancestors=true&include_descendants=true"


@dataclass(frozen=True)
class Story:
    """One apply.

    Attributes:
        given: what groups and projects hold, by path.
        sections: what is declared.
        writes: of the apply: methods and paths below `projects/acme%2Fapi` or as they are, with the IDs of branches.
        read: the lists that the next plan reads.
    """

    given: Mapping[str, Fields]
    sections: tuple[Section, ...]
    writes: tuple[str, ...]
    read: tuple[str, ...]


def sent(engine: EngineDriver) -> tuple[str, ...]:
    """Return the writes: names and IDs, without the fields that a rule of branches is copied with."""
    lines = (line.replace("projects/acme%2Fapi/", "") for line in engine.writes())
    return tuple(line.partition(', "allowed_to_push"')[0].replace(REST, "") for line in lines)


REST = ', "applies_to_all_protected_branches": false'
"""The end of what is sent for the branches of an approval rule."""

NEW_RULE = 'POST approval_rules {"name": "b", "rule_type": "regular", "approvals_required": 1, "user_ids": [3], '

STORIES: Mapping[str, Story] = {
    "created in the group under a name that the project has": Story(
        {"acme/api": FOR_OLD},
        (branches({"main": {}}, ACME), named("main")),
        (
            f'POST {TOP_BRANCHES} {{"name": "main"}}',
            NEW_RULE + '"protected_branch_ids": [1, 3]}',
        ),
        (TOP_BRANCHES, OF_BRANCHES[0]),
    ),
    "created in the group under the name that a rule of the project has": Story(
        {"acme/api": FOR_OLD},
        (branches({"old": {}}, ACME), rules({"a": {"branches": ["main", "old"]}})),
        (f'POST {TOP_BRANCHES} {{"name": "old"}}', 'PUT approval_rules/7 {"protected_branch_ids": [1, 2]}'),
        (TOP_BRANCHES, OF_BRANCHES[0]),
    ),
    "created in both": Story(
        {"acme/api": FOR_OLD},
        (branches({"new": {}}, ACME), branches({"new": {}}), rules({"a": {"branches": ["new", "old"]}})),
        (
            f'POST {TOP_BRANCHES} {{"name": "new"}}',
            'POST protected_branches {"name": "new"}',
            'PUT approval_rules/7 {"protected_branch_ids": [4, 2]}',
        ),
        (TOP_BRANCHES, *OF_BRANCHES),
    ),
    "renamed in the project": Story(
        {"acme/api": FOR_OLD},
        (branches({"new": {"renamed_from": "old"}}), rules({"a": {"branches": ["new"]}})),
        (
            'POST protected_branches {"name": "new"',
            'PUT approval_rules/7 {"protected_branch_ids": [3]}',
            "DELETE protected_branches/old",
        ),
        OF_BRANCHES,
    ),
    "renamed in the group": Story(
        {"acme": STABLE, "acme/api": FOR_STABLE},
        (branches({"next": {"renamed_from": "stable"}}, ACME), rules({"a": {"branches": ["next"]}})),
        (
            f'POST {TOP_BRANCHES} {{"name": "next"',
            'PUT approval_rules/7 {"protected_branch_ids": [10]}',
            f"DELETE {TOP_BRANCHES}/stable",
        ),
        (TOP_BRANCHES, OF_BRANCHES[0]),
    ),
    "renamed in the group to a name that the project has": Story(
        {"acme": STABLE, "acme/api": protecting(main=1)},
        (branches({"main": {"renamed_from": "stable"}}, ACME), named("main")),
        (
            f'POST {TOP_BRANCHES} {{"name": "main"',
            NEW_RULE + '"protected_branch_ids": [1, 10]}',
            f"DELETE {TOP_BRANCHES}/stable",
        ),
        (TOP_BRANCHES, OF_BRANCHES[0]),
    ),
    "renamed in the group to a name that the project gives up": Story(
        {"acme": STABLE, "acme/api": protecting(main=1)},
        (branches({"main": {"renamed_from": "stable"}}, ACME), branches({"main": None}), named("main")),
        (
            f'POST {TOP_BRANCHES} {{"name": "main"',
            NEW_RULE + '"protected_branch_ids": [10]}',
            "DELETE protected_branches/main",
            f"DELETE {TOP_BRANCHES}/stable",
        ),
        (TOP_BRANCHES, *OF_BRANCHES),
    ),
    "moved up into the group, for a new rule": Story(
        {"acme/api": protecting(main=1, old=2)},
        (branches({"old": {}}, ACME), branches({"old": None}), named("old")),
        (
            f'POST {TOP_BRANCHES} {{"name": "old"}}',
            NEW_RULE + '"protected_branch_ids": [3]}',
            "DELETE protected_branches/old",
        ),
        (TOP_BRANCHES, *OF_BRANCHES),
    ),
    "moved up into the group, for a rule whose list changes": Story(
        {"acme/api": FOR_OLD},
        (branches({"old": {}}, ACME), branches({"old": None}), rules({"a": {"branches": ["old", "main"]}})),
        (
            f'POST {TOP_BRANCHES} {{"name": "old"}}',
            'PUT approval_rules/7 {"protected_branch_ids": [1, 3]}',
            "DELETE protected_branches/old",
        ),
        (TOP_BRANCHES, *OF_BRANCHES),
    ),
    "moved down into the project, for a new rule": Story(
        {"acme": STABLE, "acme/api": protecting(main=1)},
        (branches({"stable": None}, ACME), branches({"stable": {}}), named("stable")),
        (
            'POST protected_branches {"name": "stable"}',
            NEW_RULE + '"protected_branch_ids": [10]}',
            f"DELETE {TOP_BRANCHES}/stable",
        ),
        (TOP_BRANCHES, *OF_BRANCHES),
    ),
    "removed in the group, and the project has the name too": Story(
        {"acme": protecting(old=9), "acme/api": FOR_OLD},
        (branches({"old": None}, ACME), branches({"main": {}}), rules({"a": {"branches": ["old"]}})),
        (f"DELETE {TOP_BRANCHES}/old",),
        (TOP_BRANCHES, *OF_BRANCHES),
    ),
    "a milestone moved down into the project": Story(
        {"acme": planning(M=1)},
        (milestones({"M": None}, ACME), milestones({"M": {}})),
        ("DELETE groups/acme/milestones/1", 'POST milestones {"title": "M"}'),
        (OF_ACME, OF_API),
    ),
    "a milestone renamed in the group, and its name created in the project": Story(
        {"acme": planning(M=1)},
        (milestones({"N": {"renamed_from": "M"}}, ACME), milestones({"M": {}})),
        ('PUT groups/acme/milestones/1 {"title": "N"}', 'POST milestones {"title": "M"}'),
        (OF_ACME, OF_API),
    ),
    "a milestone removed in the group, and one of the project renamed to it": Story(
        {"acme": planning(M=1), "acme/api": planning(N=2)},
        (milestones({"M": None}, ACME), milestones({"M": {"renamed_from": "N"}})),
        ("DELETE groups/acme/milestones/1", 'PUT milestones/2 {"title": "M"}'),
        (OF_ACME, OF_API),
    ),
    "a milestone removed in a subgroup, and created in its project": Story(
        {"acme/tools": planning(M=1)},
        (milestones({"M": None}, TOOLS), milestones({"M": {}}, CLI)),
        ("DELETE groups/acme%2Ftools/milestones/1", 'POST projects/acme%2Ftools%2Fcli/milestones {"title": "M"}'),
        (OF_TOOLS, OF_CLI),
    ),
    "a milestone promoted, and that of the group moved down": Story(
        {"acme": planning(M=1), "acme/api": planning(N=2)},
        (milestones({"M": None, "N": {"promote": True}}, ACME), milestones({"M": {}, "N": None})),
        (
            "POST projects/100/milestones/2/promote",
            "DELETE groups/acme/milestones/1",
            'POST milestones {"title": "M"}',
        ),
        (OF_ACME, OF_API),
    ),
}


def given(engine: EngineDriver, places: Mapping[str, Fields]) -> None:
    """Let groups and projects hold these objects and no others."""
    state = a_small_service(engine.sandbox.state()["instance"]["dialect"])
    for place in (*state["groups"], *state["projects"]):
        place.update(places.get(place["path"], {}))
    engine.sandbox.replace_state(state)


def planned(engine: EngineDriver, sections: tuple[Section, ...], *, is_saved: bool) -> Plan:
    """Return a plan; as it comes from its file if it is saved."""
    plan = engine.plan(*sections)
    return tree(load_plan(save(saved_plan(plan)), KINDS)) if is_saved else plan


@pytest.mark.untraced
@pytest.mark.parametrize("is_saved", [False, True], ids=["fresh", "saved"])
@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)
def test_one_apply_does_all(engine: EngineDriver, story: Story, *, is_saved: bool) -> None:
    given(engine, story.given)
    plan = planned(engine, story.sections, is_saved=is_saved)
    assert list(plan.problems) == []
    assert failures(engine.apply(plan, recheck=is_saved)) == []
    assert sent(engine) == story.writes
    again = engine.plan(*story.sections)
    assert (list(again.changes), list(again.problems)) == ([], [])
    assert sorted(engine.requests()) == sorted(f"GET {_paged(path)}per_page=100&page=1" for path in story.read)


def _paged(path: str) -> str:
    return f"{path}&" if "?" in path else f"{path}?"


@dataclass(frozen=True)
class Refused:
    """What cannot be done in one apply.

    Attributes:
        given, sections: see `Story`.
        problems: of the plan.
        writes: of what is applied all the same.
    """

    given: Mapping[str, Fields]
    sections: tuple[Section, ...]
    problems: tuple[str, ...]
    writes: tuple[str, ...] = ()


KEPT = 'is kept: without it the approval rule "a", whose branches are a problem here, applies to all branches then'

CHOOSE = "leave it out here, or choose another name"

PROMOTE = "declare `promote: true` to make it the group's, or choose another name"

PROBLEMS: Mapping[str, Refused] = {
    "renamed in the project, named as before": Refused(
        {"acme/api": FOR_OLD},
        (branches({"new": {"renamed_from": "old"}}), rules({"a": {"branches": ["old"]}})),
        (
            f"project acme/api new: {KEPT}; solve that problem first",
            'project acme/api a: this plan deletes "old"; declare another one, or leave that one',
        ),
    ),
    "renamed in the group, named as before": Refused(
        {"acme": STABLE, "acme/api": FOR_STABLE},
        (branches({"next": {"renamed_from": "stable"}}, ACME), rules({"a": {"branches": ["stable"]}})),
        (
            f"group acme next: {KEPT} (project acme/api); solve that problem first",
            'project acme/api a: this plan deletes "stable"; declare another one, or leave that one',
        ),
    ),
    "moved up into the group, for a rule that stays": Refused(
        {"acme/api": FOR_OLD},
        (branches({"old": {}}, ACME), branches({"old": None}), rules({"a": {"branches": ["old"]}})),
        (
            f"project acme/api old: {KEPT}; solve that problem first",
            'project acme/api a: this plan deletes "old"; declare another one, or leave that one',
        ),
        (f'POST {TOP_BRANCHES} {{"name": "old"}}',),
    ),
    "moved down into the project, for a rule that stays": Refused(
        {"acme": STABLE, "acme/api": FOR_STABLE},
        (branches({"stable": None}, ACME), branches({"stable": {}}), rules({"a": {"branches": ["stable"]}})),
        (
            f"group acme stable: {KEPT} (project acme/api); solve that problem first",
            'project acme/api a: this plan deletes "stable"; declare another one, or leave that one',
        ),
        ('POST protected_branches {"name": "stable"}',),
    ),
    "a milestone moved up into the group": Refused(
        {"acme/api": planning(M=1)},
        (milestones({"M": {}}, ACME), milestones({"M": None})),
        (f"group acme M: project acme/api already uses this name, which {UNIQUE}; {PROMOTE}",),
        ("DELETE milestones/1",),
    ),
    "a milestone renamed in the project, and its name created in the group": Refused(
        {"acme/api": planning(M=1)},
        (milestones({"M": {}}, ACME), milestones({"N": {"renamed_from": "M"}})),
        (f"group acme M: project acme/api already uses this name, which {UNIQUE}; {PROMOTE}",),
        ('PUT milestones/1 {"title": "N"}',),
    ),
    "two milestones that swap their names": Refused(
        {"acme": planning(M=1), "acme/api": planning(N=2)},
        (milestones({"N": {"renamed_from": "M"}}, ACME), milestones({"M": {"renamed_from": "N"}})),
        (
            f"group acme N: project acme/api already uses this name, which {UNIQUE}; {PROMOTE}",
            f"project acme/api M: group acme already uses this name, which {UNIQUE}; {CHOOSE}",
        ),
    ),
    "a milestone removed in the group, and created in a subgroup beside it": Refused(
        {"acme": planning(M=1)},
        (milestones({"M": None}, ACME), milestones({"M": {}}, TOOLS)),
        (f"group acme/tools M: group acme already uses this name, which {UNIQUE}; {CHOOSE}",),
        ("DELETE groups/acme/milestones/1",),
    ),
    "a milestone promoted, and renamed in its project": Refused(
        {"acme/api": planning(M=1)},
        (milestones({"M": {"promote": True}}, ACME), milestones({"N": {"renamed_from": "M"}})),
        (
            'project acme/api N: group acme takes over "M" in this plan, which leaves none to rename; leave '
            "`renamed_from` out",
        ),
        ("POST projects/100/milestones/1/promote",),
    ),
    "a milestone promoted, and its name given elsewhere": Refused(
        {"acme/api": planning(M=1), "acme/tools/cli": planning(N=2)},
        (milestones({"M": {"promote": True}}, ACME), milestones({"M": {"renamed_from": "N"}}, CLI)),
        (f"project acme/tools/cli M: this plan uses the name in group acme, and it {UNIQUE}; {CHOOSE}",),
        ("POST projects/100/milestones/1/promote",),
    ),
    "a milestone renamed, and its name declared beside it": Refused(
        {"acme/api": planning(M=1)},
        (milestones({"M": {"state": "closed"}, "N": {"renamed_from": "M"}}),),
        (
            'project acme/api N: the former name "M" is that of another declared one; leave it out of `renamed_from`, '
            "or leave that one out",
        ),
        ('PUT milestones/1 {"state_event": "close"}',),
    ),
}


@pytest.mark.parametrize("is_saved", [False, True], ids=["fresh", "saved"])
@pytest.mark.parametrize("refused", PROBLEMS.values(), ids=PROBLEMS)
def test_a_plan_says_what_one_apply_cannot_do(engine: EngineDriver, refused: Refused, *, is_saved: bool) -> None:
    given(engine, refused.given)
    plan = planned(engine, refused.sections, is_saved=is_saved)
    told = (f"{each.address.target} {each.address.name}: {each.reason}; {each.fix}" for each in plan.problems)
    # By the specification, a milestone has no address, which would show the path of its group.
    assert tuple(line.replace("group 10", "group acme") for line in told) == refused.problems
    assert failures(engine.apply(plan, recheck=is_saved)) == []
    assert sent(engine) == refused.writes


@pytest.mark.parametrize("is_saved", [False, True], ids=["fresh", "saved"])
@pytest.mark.parametrize("dialect", ["deployed"], indirect=True)
def test_a_name_that_a_group_keeps_after_all_is_not_given(engine: EngineDriver, *, is_saved: bool) -> None:
    given(engine, {"acme": planning(M=1)})
    plan = planned(engine, (milestones({"M": None}, ACME), milestones({"M": {}})), is_saved=is_saved)
    engine.sandbox.set_faults([{"kind": "status", "status": 403, "method": "DELETE"}])
    _, creation = failures(engine.apply(plan, recheck=is_saved))
    assert creation == (
        f"stale: milestone M: it cannot be planned: group acme already uses this name, which {UNIQUE}"
        if is_saved
        else 'failed: milestone M: POST projects/acme%2Fapi/milestones: 400 Failed to create milestone {:title=>["already '
        'being used for another group or project milestone."]}'
    )


BY_BOT: Fields = {
    "invited_groups": [{"group_id": 20, "role": "developer"}],
    "protected_branches": [
        {"id": 1, "name": "main", "merge_access_levels": [{"id": 1, "access_level": 30, "user": "bot"}]},
        {"id": 2, "name": "old", "push_access_levels": [{"id": 2, "access_level": 30, "user": "bot"}]},
    ],
}
"""A project whose branch rules name a service account, which is a member by an invited group."""

LACKING = "the project has no member {}, or none that this token can see; add the user to the project, or correct the username"

ROBOT = '"robot"'


@pytest.mark.parametrize("is_saved", [False, True], ids=["fresh", "saved"])
@pytest.mark.parametrize(
    ("accounts", "reason"),
    [
        ({"bot": None}, 'this plan deletes the service account "bot"; leave it out, or keep it'),
        (
            {"robot": {"renamed_from": "bot"}},
            'this plan renames the service account "bot" to "robot"; apply that first, and name it by its new name then',
        ),
    ],
    ids=["deleted", "renamed"],
)
def test_a_rule_names_no_member_whom_the_run_deletes_or_renames(
    engine: EngineDriver, accounts: Fields, reason: str, *, is_saved: bool
) -> None:
    """The service forgets whom it deletes, and shows whom it renames by the new name: no plan would be empty then."""
    state = a_small_service(engine.sandbox.state()["instance"]["dialect"])
    user_in(state)["admin"] = True
    # In the sandbox, accounts are no users: one of the same name is the member.
    state["users"].append({"id": 901, "username": "bot"})
    state["instance"]["service_accounts"] = [{"id": 900, "username": "bot", "name": "Bot", "email": "bot@example.org"}]
    state["groups"].append({"id": 20, "path": "bots", "members": [{"user": "bot", "role": "developer"}]})
    state["projects"][0] |= BY_BOT
    engine.sandbox.replace_state(state)
    sections = (
        section("service_accounts", accounts, Target(Level.INSTANCE)),
        branches(
            {
                "main": {"allowed_to_merge": [{"user": "bot"}]},
                "new": {"renamed_from": "old"},
                "robots": {"allowed_to_merge": [{"user": "bob"}, {"user": "robot"}]},
                "number": {"allowed_to_merge": [{"user": 900}]},
                "people": {"allowed_to_merge": [{"user": "bob"}, "maintainer"]},
            }
        ),
        rules({"a": {"approvals_required": 1, "users": ["bob", "bot"], "branches": ["main"]}}),
    )
    plan = planned(engine, sections, is_saved=is_saved)
    told = [
        f"{each.address.title} {each.address.name}, {each.field}: {each.reason}; {each.fix}" for each in plan.problems
    ]
    is_deleted = "bot" in accounts
    assert sorted(told) == sorted(
        [
            f"protected branch main, allowed_to_merge: {reason}",
            f"protected branch new, allowed_to_push: {reason}",
            f"protected branch number, allowed_to_merge: {reason if is_deleted else LACKING.format('with the ID 900')}",
            f"protected branch robots, allowed_to_merge: {LACKING.format(ROBOT) if is_deleted else reason}",
            f"approval rule a, users: {reason}",
        ]
    )
    assert failures(engine.apply(plan, recheck=is_saved)) == []
    assert [line.partition(" {")[0] for line in engine.writes()] == [
        "DELETE users/900" if is_deleted else "PATCH service_accounts/900",
        "POST projects/acme%2Fapi/protected_branches",
    ]


OTHER_TEAM = """\
apiVersion: reconciler/v1
kind: Group
metadata: {path: acme/team}
create: {}
---
apiVersion: reconciler/v1
kind: Project
metadata: {path: acme/api}
spec:
  prune: [job_token_scope]
  job_token_scope: {groups: [acme/team]}
  approval_rules: {a: {groups: [acme/team]}, b: {approvals_required: 1, groups: [acme/tools]}}
"""

NEW_PROJECT = """\
apiVersion: reconciler/v1
kind: Project
metadata: {path: acme/tools/fresh}
create: {}
spec:
  protected_branches: {main: {allowed_to_merge: [{user: bob}]}}
  protected_tags: {v*: {allowed_to_create: [{user: ada}]}}
  approval_rules: {a: {approvals_required: 1, users: [ada, bob], branches: [main]}}
"""


def applied(cli_runner: CliRunner, *, is_saved: bool) -> tuple[list[str], list[str]]:
    """Apply the manifests until nothing is left; return the writes, and the requests of a second plan, sorted."""
    if is_saved:
        assert cli_runner("plan --out plan.json").code == 0
    cli_runner.sandbox.clear_log()
    done = cli_runner("apply --plan plan.json --yes" if is_saved else "apply --yes")
    assert (done.code, done.err) == (0, ""), done.out + done.err
    writes = [line for line in _requests(cli_runner) if not line.startswith("GET")]
    cli_runner.sandbox.clear_log()
    again = cli_runner("plan --detailed-exitcode")
    assert (again.code, again.err) == (0, ""), again.out + again.err
    return writes, sorted(_requests(cli_runner))


def _requests(cli_runner: CliRunner) -> list[str]:
    return [
        f"{each['method']} {each['target'].removeprefix(PREFIX)}"
        + (f" {json.dumps(each['body'])}" if each["body"] else "")
        for each in cli_runner.sandbox.log()
    ]


@pytest.mark.untraced
@pytest.mark.parametrize("is_saved", [False, True], ids=["fresh", "saved"])
def test_a_new_group_takes_the_place_of_another(cli_runner: CliRunner, *, is_saved: bool) -> None:
    cli_runner.service(job_token_scope={"group_allowlist": [11]}, approval_rules=[RULE])
    cli_runner.write("manifests/a.yaml", OTHER_TEAM)
    writes, read = applied(cli_runner, is_saved=is_saved)
    assert writes == [
        'POST groups {"name": "team", "path": "team", "parent_id": 10, "visibility": "private"}',
        'POST projects/100/job_token_scope/groups_allowlist {"target_group_id": 12}',
        "DELETE projects/100/job_token_scope/groups_allowlist/11",
        'POST projects/acme%2Fapi/approval_rules {"name": "b", "rule_type": "regular", "approvals_required": 1, '
        '"group_ids": [11]}',
        'PUT projects/acme%2Fapi/approval_rules/7 {"group_ids": [12]}',
    ]
    assert read == [
        "GET groups/acme%2Fteam?with_projects=false",
        "GET projects/acme%2Fapi/approval_rules?per_page=100&page=1",
        "GET projects/acme%2Fapi/job_token_scope/groups_allowlist?per_page=100&page=1",
    ]


@pytest.mark.untraced
@pytest.mark.parametrize("is_saved", [False, True], ids=["fresh", "saved"])
def test_members_of_the_group_may_stand_in_rules_of_its_new_project(cli_runner: CliRunner, *, is_saved: bool) -> None:
    cli_runner.service()
    cli_runner.write("manifests/a.yaml", NEW_PROJECT)
    writes, read = applied(cli_runner, is_saved=is_saved)
    fresh = "projects/acme%2Ftools%2Ffresh"
    assert writes == [
        'POST projects {"name": "fresh", "path": "fresh", "namespace_id": 11, "visibility": "private"}',
        f'POST {fresh}/protected_branches {{"name": "main", "allowed_to_merge": [{{"user_id": 3}}]}}',
        f'POST {fresh}/protected_tags {{"name": "v*", "allowed_to_create": [{{"user_id": 2}}]}}',
        f'POST {fresh}/approval_rules {{"name": "a", "rule_type": "regular", "approvals_required": 1, "user_ids": [2, 3], '
        '"protected_branch_ids": [1], "applies_to_all_protected_branches": false}',
    ]
    assert read == [
        f"GET {fresh}",
        *(
            f"GET {fresh}/{name}?per_page=100&page=1"
            for name in ("approval_rules", "protected_branches", "protected_tags")
        ),
        "GET users/2",
        "GET users/3",
    ]
