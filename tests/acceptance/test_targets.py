"""What stands above a target, what became of it, and what the service refuses there."""

import re

import pytest

from tests.acceptance.installation import LICENSED, World, without

pytestmark = pytest.mark.untraced
"""Others cover the same lines; tracing would take as long as the tests."""

APPROVALS = {
    "allow_author_approval": False,
    "allow_committer_approval": True,
    "allow_overrides_to_approver_list_per_merge_request": True,
    "retain_approvals_on_push": True,
}


def test_locks_and_names_are_inherited_over_three_levels(world: World) -> None:
    world.group("sub")
    world.group("sub/team")
    world.project("sub/team/app")
    top = f"groups/{world.ids['']}"
    world.ask("PUT", f"{top}/merge_request_approval_setting", APPROVALS)  # refused where it is not licensed
    world.value("POST", f"{top}/milestones", {"title": "1.0"})
    world.write(
        "manifests/all.yaml",
        """
kind: Group
metadata: {path: acme/sub}
spec:
  approval_settings: {allow_author_approval: true}
---
kind: Project
metadata: {path: acme/sub/team/app}
spec:
  approval_settings: {allow_author_approval: true, allow_committer_approval: false}
  milestones: {"1.0": {}, "1.1": {}}
  job_token_scope: {groups: [acme, acme/sub]}
""",
    )
    world.expect("plan", 3, PLAN_BELOW_LOCKS)
    world.expect("apply --yes", 3, APPLIED_BELOW_LOCKS)


def test_the_service_refuses_in_its_own_words(world: World) -> None:
    app = f"projects/{world.project('app')}"
    other = world.user("other")
    world.value("POST", "projects", {"path": "far"}, other.token)
    world.write(
        "manifests/all.yaml",
        """
kind: User
spec:
  notification_settings: {notification_email: nobody@example.org}
---
kind: Project
metadata: {path: acme/app}
spec:
  approval_settings: {selective_code_owner_removals: true, retain_approvals_on_push: false}
  container_repository_protection_rules:
    elsewhere/prod*: {minimum_access_level_for_push: maintainer}
    "{path}/ok": {minimum_access_level_for_push: maintainer}
  job_token_scope: {projects: [acme-other/far]}
""",
    )
    asked = [
        ("", "PUT", "notification_settings", {"notification_email": "nobody@example.org"}),
        (
            "container_repository_protection_rules",
            "POST",
            f"{app}/registry/protection/repository/rules",
            {"repository_path_pattern": "elsewhere/prod*", "minimum_access_level_for_push": "maintainer"},
        ),
        (
            "approval_settings",
            "PUT",
            f"{app}/merge_request_approval_setting",
            {"selective_code_owner_removals": True, "retain_approvals_on_push": False},
        ),
    ]
    done = world.run("apply --yes")
    assert done.code == 3
    for section, method, path, body in asked:
        if section in world.installation.lacks:
            continue
        answer = world.ask(method, path, body)
        sentence = re.findall(r"[\w'][^\"\[\]{}]{15,}", answer.text)[-1]
        (line,) = [line for line in done.lines if sentence in line]
        assert f"{answer.status_code} " in line
    assert [line for line in done.lines if "acme-other/far" in line] == [UNKNOWN_ENTRY]


def test_targets_that_are_renamed_archived_switched_off_or_of_others(world: World) -> None:
    world.group("sub")
    world.group("old")
    for name in ("plain", "archived", "registry", "pipelines", "issues", "gone"):
        world.project(f"sub/{name}")
    world.project("old/moved")
    world.value("POST", f"projects/{world.ids['sub/archived']}/archive")
    switched = {"registry": ["container_registry"], "pipelines": ["builds"], "issues": ["issues", "merge_requests"]}
    for name, switches in switched.items():
        world.value(
            "PUT",
            f"projects/{world.ids[f'sub/{name}']}",
            {f"{each}_access_level": "disabled" for each in switches},
        )
    world.value("PUT", f"groups/{world.ids['old']}", {"path": "renamed"})
    deleted = world.ask("DELETE", f"projects/{world.ids['sub/gone']}")
    other = world.user("other")
    world.value("POST", "projects", {"path": "far"}, other.token)
    spec = """
  milestones: {a: {}}
  trigger_tokens: {t: {}}
  container_repository_protection_rules: {"{path}/p*": {minimum_access_level_for_push: maintainer}}
"""
    world.write(
        "manifests/all.yaml",
        f"""
kind: ProjectSet
metadata: {{name: all}}
select: {{group: acme/sub, exclude: [acme/sub/gone*], archived: true}}
spec: {spec}
---
kind: Project
metadata: {{path: acme/old/moved}}
spec: {{milestones: {{a: {{}}}}}}
---
kind: Group
metadata: {{path: acme/old}}
spec: {{notification_settings: {{level: watch}}}}
---
kind: Project
metadata: {{path: acme-other/far}}
spec: {{milestones: {{a: {{}}}}}}
""",
    )
    world.expect("apply --yes --tokens-to tokens", 3, APPLIED_WHERE_APPLICABLE)
    world.expect("apply --yes --tokens-to tokens --follow-moved --target acme/old/moved", 0, APPLIED_AS_MOVED)
    world.expect("plan -v --exclude acme/old/** --exclude acme-other/**", 0, NOT_APPLICABLE)
    if not deleted.is_success:
        world.installation.remarks.append(f"it cannot delete a project now ({deleted.status_code}): not looked at")
        return
    world.write("manifests/all.yaml", "kind: Project\nmetadata: {path: acme/sub/gone}\nspec: {milestones: {a: {}}}")
    world.expect("apply --yes --follow-moved", 3, SCHEDULED)


PLAN_BELOW_LOCKS = """
Loosens protection:
project acme/sub/team/app
+ allowlisted group "acme" loosens
+ allowlisted group "acme/sub" loosens
All else:
group acme/sub
! approval_settings: cannot be read: only groups at the top have these settings; declare them there
project acme/sub/team/app
+ milestone "1.1"
~ approval settings allow_committer_approval: true -> false, tightens
! approval settings.allow_author_approval: locked by group acme; unlock it there or leave the field out
! milestone "1.0": group acme already uses this name, which must be unique in a group and everything below it; leave it out here, or choose another name
Plan: 3 to create, 1 to update, 2 loosening, 1 tightening, 3 problems. 4 writes to apply; 7 requests were made to plan.
"""
APPLIED_BELOW_LOCKS = """
group acme/sub
! approval_settings: cannot be read: only groups at the top have these settings; declare them there
project acme/sub/team/app
+ allowlisted group "acme" done
+ allowlisted group "acme/sub" done
+ milestone "1.1" done
~ approval settings done
! approval settings.allow_author_approval: locked by group acme; unlock it there or leave the field out
! milestone "1.0": group acme already uses this name, which must be unique in a group and everything below it; leave it out here, or choose another name
Applied: 3 created, 1 updated, 2 loosening, 1 tightening, 3 problems. 15 requests made.
"""
UNKNOWN_ENTRY = (
    '! allowlisted project "acme-other/far": not found, not visible to this token, or not served by this server '
    "(project acme-other/far: 404 Project Not Found); correct the path, or use a token that can see it"
)
APPLIED_WHERE_APPLICABLE = """
3 projects (acme/sub/issues, acme/sub/pipelines and 1 more)
+ protection rule "<path>/p*" done
3 projects (acme/sub/issues, acme/sub/plain and 1 more)
+ trigger token "t" done
3 projects (acme/sub/pipelines, acme/sub/plain and 1 more)
+ milestone "a" done
group acme/old
! group acme/old: not found, or not visible to acme-owner; correct it in the manifest, make acme-owner a member, or create it: `create: {}` in its document; a group whose deletion is scheduled has another path
project acme-other/far
! project acme-other/far: not found, or not visible to acme-owner; correct it in the manifest, make acme-owner a member, or create it: `create: {}` in its document
project acme/renamed/moved
! project acme/renamed/moved: declared by its former path acme/old/moved (manifests/all.yaml:12); write the new path there (`accept` does), or add --follow-moved
Applied: 9 created, 3 loosening, 3 tightening, 3 problems, 6 not applicable. 38 requests made.
"""
APPLIED_AS_MOVED = """
project acme/renamed/moved
+ milestone "a" done
Applied: 1 created. 7 requests made.
"""
NOT_APPLICABLE = """
project acme/sub/archived
? container_repository_protection_rules is not applicable the project is archived
? milestones is not applicable the project is archived
? trigger_tokens is not applicable the project is archived
project acme/sub/issues
? milestones is not applicable switched off in the project: issues and merge requests
project acme/sub/pipelines
? trigger_tokens is not applicable switched off in the project: CI/CD
project acme/sub/registry
? container_repository_protection_rules is not applicable switched off in the project: the container registry
Nothing to do, 6 not applicable. 10 requests were made to plan.
"""
SCHEDULED = """
project acme/sub/gone
! project acme/sub/gone: scheduled for deletion since N, and called acme/sub/gone-deletion_scheduled-N (ID N) until then; restore it, or remove it from the manifests
Applied: 1 problem. 3 requests made.
"""


def test_what_the_installation_lacks_is_said(world: World) -> None:
    world.project("app")
    lacks = world.installation.lacks
    world.write(
        "manifests/all.yaml",
        without(LICENSED_ONLY, [name for name in LICENSED if name not in lacks])
        or "kind: Profile\nmetadata: {name: none}",
    )
    done = world.run("plan", token=world.installation.token)
    problems = [line for line in done.lines if line.startswith("! ")]
    assert (done.code, len(problems)) == (3 if lacks else 0, len(lacks))
    assert [line for line in problems if "cannot be read: " not in line] == []


LICENSED_ONLY = """
kind: Instance
spec: {service_accounts: {}}
---
kind: Group
metadata: {path: acme}
spec: {epics: {}}
---
kind: Project
metadata: {path: acme/app}
spec:
  approval_settings: {allow_author_approval: true}
  container_repository_protection_rules: {}
  container_tag_protection_rules: {}
  approval_rules: {}
"""
