"""The life of every rule of protection, and of approval: created, found in order, weakened by hand, changed, pruned."""

from collections.abc import Container
from pathlib import Path

import pytest

from tests.acceptance.installation import DEVELOPER, Installation, World, nothing, without

pytestmark = pytest.mark.untraced
"""Others cover the same lines; tracing would take as long as the tests."""

CREATED = """
kind: Group
metadata: {path: acme}
spec:
  protected_branches:
    stable: {allowed_to_push: [], allow_force_push: false}
---
kind: Project
metadata: {path: acme/app}
spec:
  protected_branches:
    main: {allowed_to_push: [maintainer], allowed_to_merge: [developer], allow_force_push: false}
    "release/*": {allowed_to_push: []}
  protected_tags:
    "v*": {allowed_to_create: [maintainer]}
    "計画-*": {allowed_to_create: []}
  container_tag_protection_rules:
    "^v[0-9]+": {minimum_access_level_for_push: maintainer, minimum_access_level_for_delete: owner}
    "^latest$": {minimum_access_level_for_push: owner, minimum_access_level_for_delete: owner}
  package_protection_rules:
    "npm:@acme/*": {minimum_access_level_for_push: maintainer}
    "pypi:acme-*": {minimum_access_level_for_push: owner}
  approval_rules:
    any_approver: {approvals_required: 1}
    Sécurité 🚀: {approvals_required: 1, users: [acme-dev], branches: [main]}
"""

CHANGED = """
kind: Group
metadata: {path: acme}
spec:
  protected_branches:
    stable: {allowed_to_push: [maintainer], allowed_to_merge: [maintainer]}
---
kind: Project
metadata: {path: acme/app}
spec:
  protected_branches:
    main: {allowed_to_push: [], allowed_to_merge: [developer, maintainer], allow_force_push: false}
    "release/*": null
  protected_tags:
    "v*": {allowed_to_create: []}
    "計画-*": null
  container_tag_protection_rules:
    "^v[0-9]+": {minimum_access_level_for_push: owner, minimum_access_level_for_delete: owner}
    "^latest$": null
  package_protection_rules:
    "npm:@acme/*": {minimum_access_level_for_push: owner}
    "pypi:acme-*": null
  approval_rules:
    any_approver: null
    Sécurité 🚀: {approvals_required: 2, users: [acme-dev, acme-owner], branches: protected}
"""

PRUNED = """
kind: Group
metadata: {path: acme}
spec: {prune: [protected_branches], protected_branches: {}}
---
kind: Project
metadata: {path: acme/app}
spec:
  prune: [protected_branches, protected_tags, container_tag_protection_rules, package_protection_rules, approval_rules]
  protected_branches: {}
  protected_tags: {}
  container_tag_protection_rules: {}
  package_protection_rules: {}
  approval_rules: {}
"""


def weaken(world: World, lacks: Container[str]) -> None:
    """Change by hand what the manifests declare."""
    app = f"projects/{world.ids['app']}"
    world.value("PATCH", f"{app}/protected_branches/main", {"allow_force_push": True})
    world.value("DELETE", f"{app}/protected_branches/release%2F%2A")
    world.value("PATCH", f"groups/{world.ids['']}/protected_branches/stable", {"allow_force_push": True})
    world.value("DELETE", f"{app}/protected_tags/v%2A")
    world.value("POST", f"{app}/protected_tags", {"name": "v*", "create_access_level": DEVELOPER})
    rules = {"container_tag_protection_rules": "registry/protection/tag/rules", "": "packages/protection/rules"}
    for path in (path for section, path in rules.items() if section not in lacks):
        (rule,) = (each for each in world.value("GET", f"{app}/{path}") if "v[0-9]" in str(each) or "@" in str(each))
        world.value("PATCH", f"{app}/{path}/{rule['id']}", {"minimum_access_level_for_push": "admin"})
    for rule in () if "approval_rules" in lacks else world.value("GET", f"{app}/approval_rules"):
        world.value("PUT", f"{app}/approval_rules/{rule['id']}", {"approvals_required": 0})


def look_for_a_registry(world: World) -> None:
    """Find out whether rules for tags of images can be made: not where the registry cannot be reached."""
    rules = f"projects/{world.ids['app']}/registry/protection/tag/rules"
    levels = {f"minimum_access_level_for_{done}": "maintainer" for done in ("push", "delete")}
    answer = world.ask("POST", rules, {"tag_name_pattern": "look", **levels})
    if answer.is_success:
        world.value("DELETE", f"{rules}/{answer.json()['id']}")
    elif "container_tag_protection_rules" not in world.installation.lacks:
        world.lacks.append("container_tag_protection_rules")
        world.installation.remarks.append(f"it takes no rule for tags of images ({answer.status_code}): not looked at")


def test_the_life_of_every_rule(installation: Installation, tmp_path: Path) -> None:
    with installation.world(tmp_path) as world:
        world.project("app")
        developer = {"user_id": world.user("dev").id, "access_level": DEVELOPER}
        world.value("POST", f"groups/{world.ids['']}/members", developer)
        look_for_a_registry(world)
        lacks = [*installation.lacks, *world.lacks]
        for manifests, applied, requests in ((CREATED, APPLIED, 6), (CHANGED, APPLIED_CHANGES, 6)):
            world.write("manifests/all.yaml", without(manifests, lacks))
            world.expect("apply --yes --allow-deletes 20", 0, applied)
            world.expect("plan --detailed-exitcode", 0, nothing(requests))
            if manifests is CREATED:
                weaken(world, lacks)
                world.expect("drift", 2, DRIFT)
                world.expect("apply --yes", 0, MENDED)
        assert world.run("export --group acme -o out").code == 0
        world.expect("plan out --detailed-exitcode", 0, nothing(17))
        world.write("manifests/all.yaml", without(PRUNED, lacks))
        world.expect("apply --yes --allow-deletes 20", 0, APPLIED_DELETIONS)
        world.expect("plan --detailed-exitcode", 0, nothing(6))


APPLIED = """
group acme
+ protected branch "stable" done
project acme/app
+ tag protection rule "^latest$" done
+ tag protection rule "^v[0-9]+" done
+ package protection rule "npm:@acme/*" done
+ package protection rule "pypi:acme-*" done
+ protected branch "main" done
+ protected branch "release/*" done
+ protected tag "v*" done
+ protected tag "計画-*" done
+ approval rule "Sécurité 🚀" done
+ approval rule "any_approver" done
Applied: 11 created, 11 tightening. 27 requests made.
"""
DRIFT = """
Loosens protection:
project acme/app
~ tag protection rule "^v[0-9]+" minimum_access_level_for_push: admin -> maintainer, loosens
~ package protection rule "npm:@acme/*" minimum_access_level_for_push: admin -> maintainer, loosens
All else:
group acme
~ protected branch "stable" allow_force_push: true -> false, tightens
project acme/app
+ protected branch "release/*" allowed_to_push: nobody, allowed_to_merge: maintainer, by default, allowed_to_unprotect: maintainer, by default, tightens
~ protected branch "main" allow_force_push: true -> false, tightens
~ protected tag "v*" allowed_to_create: + maintainer, - developer, tightens
~ approval rule "Sécurité 🚀" approvals_required: 0 -> 1, tightens
~ approval rule "any_approver" approvals_required: 0 -> 1, tightens
Plan: 1 to create, 7 to update, 2 loosening, 6 tightening. 11 writes to apply; 6 requests were made to plan.
"""
MENDED = """
group acme
~ protected branch "stable" done
project acme/app
+ protected branch "release/*" done
~ tag protection rule "^v[0-9]+" done
~ package protection rule "npm:@acme/*" done
~ protected branch "main" done
~ protected tag "v*" done
~ approval rule "Sécurité 🚀" done
~ approval rule "any_approver" done
Applied: 1 created, 7 updated, 2 loosening, 6 tightening. 24 requests made.
"""
APPLIED_CHANGES = """
group acme
~ protected branch "stable" done
project acme/app
~ tag protection rule "^v[0-9]+" done
~ package protection rule "npm:@acme/*" done
~ protected branch "main" done
~ protected tag "v*" done
~ approval rule "Sécurité 🚀" done
- tag protection rule "^latest$" done
- package protection rule "pypi:acme-*" done
- protected branch "release/*" done
- protected tag "計画-*" done
- approval rule "any_approver" done
Applied: 6 updated, 5 deleted, 7 loosening, 5 tightening. 27 requests made.
"""
APPLIED_DELETIONS = """
group acme
- protected branch "stable" done
project acme/app
- tag protection rule "^v[0-9]+" done
- package protection rule "npm:@acme/*" done
- protected branch "main" done
- protected tag "v*" done
- approval rule "Sécurité 🚀" done
Applied: 6 deleted, 6 loosening. 18 requests made.
"""
