"""The life of every section: created, found in order, drifted, changed, deleted, pruned, exported."""

import json
from collections.abc import Container
from pathlib import Path

import pytest

from tests.acceptance.installation import Installation, World, nothing, without

pytestmark = pytest.mark.untraced
"""Others cover the same lines; tracing would take as long as the tests."""

LONG, SHORT = "ü" * 255, "ß" * 255
CREATED = f"""
kind: Instance
spec:
  service_accounts:
    acme-bot: {{name: Übung 計画 🚀, email: acme-bot@example.com}}
---
kind: User
spec:
  notification_settings: {{level: mention}}
---
kind: Group
metadata: {{path: acme}}
spec:
  notification_settings: {{level: watch}}
  approval_settings: {{allow_committer_approval: true, allow_author_approval: true, retain_approvals_on_push: true}}
  epics:
    {LONG}: {{}}
    Épopée 計画 🚀: {{description: "<b>& more</b>", start_date: 2027-01-01, parent: {LONG}}}
---
kind: Project
metadata: {{path: acme/sub/api}}
spec:
  notification_settings: {{level: custom, events: {{failed_pipeline: false, new_issue: true}}}}
  approval_settings: {{allow_committer_approval: false}}
  container_repository_protection_rules:
    "{{path}}/prod*": {{minimum_access_level_for_push: maintainer}}
    "{{path}}/dev*": {{minimum_access_level_for_delete: owner}}
  job_token_scope:
    enabled: true
    projects: [acme/sub/lib]
    groups: [acme/sub]
  milestones:
    {LONG}: {{due_date: 2027-01-31}}
    "Straße & <br> 計画 🚀": {{description: "{LONG}", start_date: 2027-01-01, state: closed}}
  trigger_tokens:
    {LONG}: {{}}
    nightly 🚀: {{}}
  error_tracking_client_keys: {{count: 1}}
"""

CHANGED = f"""
kind: Instance
spec:
  service_accounts:
    acme-bot: {{name: Renamed}}
---
kind: User
spec:
  notification_settings: {{level: participating}}
---
kind: Group
metadata: {{path: acme}}
spec:
  notification_settings: {{level: disabled}}
  approval_settings: {{allow_committer_approval: true, allow_author_approval: true, retain_approvals_on_push: false}}
  epics:
    {SHORT}: {{renamed_from: {LONG}, state: closed}}
    Épopée 計画 🚀: {{description: null, start_date: null, parent: null}}
---
kind: Project
metadata: {{path: acme/sub/api}}
spec:
  notification_settings: {{level: custom, events: {{failed_pipeline: true, new_issue: true}}}}
  approval_settings: {{allow_committer_approval: true}}
  container_repository_protection_rules:
    "{{path}}/prod*": {{minimum_access_level_for_push: admin}}
    "{{path}}/dev*": null
  job_token_scope:
    enabled: true
    projects: [acme/sub/lib]
    groups: [acme]
  milestones:
    {SHORT}: {{renamed_from: {LONG}, due_date: null}}
    "Straße & <br> 計画 🚀": {{description: null, start_date: 2027-01-02, state: active}}
  trigger_tokens:
    {SHORT}: {{renamed_from: {LONG}}}
    nightly 🚀: null
  error_tracking_client_keys: {{count: 2}}
"""

PRUNED = """
kind: Instance
spec:
  service_accounts: {acme-bot: null}
---
kind: Group
metadata: {path: acme}
spec:
  prune: [epics]
  epics: {}
---
kind: Project
metadata: {path: acme/sub/api}
spec:
  prune: [container_repository_protection_rules, job_token_scope, milestones, trigger_tokens, error_tracking_client_keys]
  container_repository_protection_rules: {}
  job_token_scope: {projects: [], groups: []}
  milestones: {}
  trigger_tokens: {}
  error_tracking_client_keys: {count: 0}
"""


def meddle(world: World, lacks: Container[str]) -> None:
    """Change by hand what the manifests declare."""
    at = f"projects/{world.ids['sub/api']}"
    world.value("PUT", "notification_settings", {"level": "watch"})
    world.value("PUT", f"groups/{world.ids['']}/notification_settings", {"level": "global"})
    world.value("PUT", f"{at}/notification_settings", {"new_issue": False})
    if "approval_settings" not in lacks:
        world.value("PUT", f"{at}/merge_request_approval_setting", {"allow_committer_approval": True})
    rules = f"{at}/registry/protection/repository/rules"
    for rule in () if "container_repository_protection_rules" in lacks else world.value("GET", rules):
        world.value(
            "PATCH",
            f"{rules}/{rule['id']}",
            {"minimum_access_level_for_push": "owner"},
        )
    world.value("DELETE", f"{at}/job_token_scope/allowlist/{world.ids['sub/lib']}")
    for milestone in world.value("GET", f"{at}/milestones"):
        world.value("PUT", f"{at}/milestones/{milestone['id']}", {"description": "by hand"})
    (trigger, *_) = world.value("GET", f"{at}/triggers")
    world.value("DELETE", f"{at}/triggers/{trigger['id']}")
    epics = f"groups/{world.ids['']}/epics"
    for epic in () if "epics" in lacks else world.value("GET", epics):
        world.value("PUT", f"{epics}/{epic['iid']}", {"description": "by hand"})


def test_the_life_of_every_section(installation: Installation, tmp_path: Path) -> None:
    with installation.world(tmp_path, admin=True) as world:
        world.group("sub")
        world.project("sub/api")
        world.project("sub/lib")
        lacks = installation.lacks
        world.write("manifests/all.yaml", without(CREATED, lacks))
        world.expect("apply --yes --tokens-to tokens", 0, APPLIED)
        values = [each["token"] for each in map(json.loads, (tmp_path / "tokens").read_text().splitlines())]
        api = f"projects/{world.ids['sub/api']}"
        live = [each["token"] for each in world.value("GET", f"{api}/triggers")]
        live += [each["sentry_dsn"] for each in world.value("GET", f"{api}/error_tracking/client_keys")]
        assert sorted(values) == sorted(live)
        titles = {each["title"]: each["description"] for each in world.value("GET", f"{api}/milestones")}
        assert titles == {LONG: None, "Straße & <br> 計画 🚀": LONG}
        world.expect("plan --detailed-exitcode", 0, nothing(15))
        meddle(world, lacks)
        world.expect("drift", 2, DRIFT)
        world.write("manifests/all.yaml", without(CHANGED, lacks))
        world.expect("apply --yes --tokens-to tokens", 0, APPLIED_CHANGES)
        world.expect("plan --detailed-exitcode", 0, UNMANAGED + nothing(15))
        assert world.run("export --user --group acme -o out").code == 0
        world.expect("plan out --detailed-exitcode", 0, nothing(30))
        world.write("manifests/all.yaml", without(PRUNED, lacks))
        world.expect("apply --yes --allow-deletes 20", 0, APPLIED_DELETIONS)
        world.expect("plan --exclude instance --detailed-exitcode", 0, nothing(8))


APPLIED = f"""
instance
+ service account "acme-bot" done
user
~ notification settings done
group acme
+ epic "{LONG}" done
+ epic "Épopée 計画 🚀" done
~ notification settings done
project acme/sub/api
+ protection rule "acme/sub/api/dev*" done
+ protection rule "acme/sub/api/prod*" done
+ allowlisted project "acme/sub/lib" done
+ allowlisted group "acme/sub" done
+ milestone "Straße & <br> 計画 🚀" done
+ milestone "{LONG}" done
+ trigger token "nightly 🚀" done
+ trigger token "{LONG}" done
+ error tracking client key "1" done
~ notification settings done
~ approval settings done
Applied: 12 created, 4 updated, 5 loosening, 3 tightening. 50 requests made.
"""
DRIFT = """
Loosens protection:
project acme/sub/api
+ allowlisted project "acme/sub/lib" loosens
+ trigger token "nightly 🚀" loosens
~ protection rule "acme/sub/api/prod*" minimum_access_level_for_push: owner -> maintainer, loosens
All else:
user
~ notification settings level: watch -> mention
group acme
~ notification settings level: global -> watch
~ epic "Épopée 計画 🚀" description: by hand -> <b>& more</b>
project acme/sub/api
~ notification settings events.new_issue: false -> true
~ approval settings allow_committer_approval: true -> false, tightens
~ milestone "Straße & <br> 計画 🚀" description: by hand -> "üüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüü…"
apply will refuse this plan: it creates 1 trigger token, whose value is shown only once; add --tokens-to FILE or --tokens-command CMD
Plan: 2 to create, 7 to update, 3 loosening, 1 tightening. 9 writes to apply; 16 requests were made to plan.
"""
APPLIED_CHANGES = f"""
instance
~ service account "acme-bot" done
user
~ notification settings done
group acme
~ notification settings done
~ approval settings done
~ epic "Épopée 計画 🚀" done
~ epic "{SHORT}" done
project acme/sub/api
+ allowlisted project "acme/sub/lib" done
+ allowlisted group "acme" done
+ error tracking client key "2" done
~ notification settings done
~ protection rule "acme/sub/api/prod*" done
~ milestone "Straße & <br> 計画 🚀" done
~ milestone "{SHORT}" done
~ trigger token "{SHORT}" done
- protection rule "acme/sub/api/dev*" done
Applied: 3 created, 11 updated, 1 deleted, 3 loosening, 2 tightening. 47 requests made.
"""
APPLIED_DELETIONS = f"""
instance
- service account "acme-bot" done
group acme
- epic "Épopée 計画 🚀" done
- epic "{SHORT}" done
project acme/sub/api
- protection rule "acme/sub/api/prod*" done
- allowlisted project "acme/sub/lib" done
- allowlisted group "acme" done
- allowlisted group "acme/sub" done
- milestone "Straße & <br> 計画 🚀" done
- milestone "{SHORT}" done
- trigger token "{SHORT}" done
- error tracking client key "1" done
- error tracking client key "2" done
Applied: 12 deleted, 1 loosening, 5 tightening. 29 requests made.
"""
UNMANAGED = "1 unmanaged object grants access: 1 in job_token_scope; declare it, or write prune: [job_token_scope] to delete it\n"
