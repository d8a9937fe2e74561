"""What the planner gets."""

import hashlib
from datetime import date
from typing import Any

import pytest

from reconciler import manifests
from reconciler.kinds.approval_settings import ApprovalSettings
from reconciler.kinds.container_repository_protection_rules import ProtectionRule
from reconciler.kinds.job_token_scope import Allowed, Switch
from reconciler.kinds.milestones import Milestone
from reconciler.kinds.notification_settings import NotificationSettings, UserNotificationSettings
from reconciler.kinds.trigger_tokens import TriggerToken
from reconciler.model.resource import Resource
from reconciler.model.state import DesiredTarget, Section
from reconciler.model.targets import Key, Level, Target
from tests.manifests.conftest import Folder

EXAMPLE = """\
# the example of the contract
apiVersion: reconciler/v1
kind: Project
metadata:
  path: acme/payments/api
  labels: {team: payments}
spec:
  prune: [job_token_scope]
  trigger_tokens:
    nightly-build: {}
    legacy-integration: null
  notification_settings:
    level: custom
    events: {failed_pipeline: true, new_issue: false}
  approval_settings:
    allow_author_approval: false
    selective_code_owner_removals: true
  container_repository_protection_rules:
    acme/payments/api/prod*:
      minimum_access_level_for_push: maintainer
      minimum_access_level_for_delete: admin
  job_token_scope:
    enabled: true
    projects: [acme/payments/lib, 1234]
    groups: [acme/platform]
  milestones:
    "2026.12":
      description: December release
      start_date: 2026-12-01
      due_date: 2026-12-31
      state: active
    "2026.11": {state: closed, renamed_from: "Nov 2026"}
"""


def test_the_example_of_the_contract(folder: Folder) -> None:
    folder.write(a_yaml=EXAMPLE)
    target = Target(Level.PROJECT, "acme/payments/api")
    rule = ProtectionRule(minimum_access_level_for_push="maintainer", minimum_access_level_for_delete="admin")
    december = Milestone(
        description="December release", start_date=date(2026, 12, 1), due_date=date(2026, 12, 31), state="active"
    )
    november = Milestone(state="closed", renamed_from=("Nov 2026",))
    lists: dict[str, Any] = {
        "enabled": Switch(enabled=True),
        "projects": {"acme/payments/lib": Allowed(), 1234: Allowed()},
        "groups": {"acme/platform": Allowed()},
    }
    events = NotificationSettings(level="custom", events={"failed_pipeline": True, "new_issue": False})
    approvals = ApprovalSettings(allow_author_approval=False, selective_code_owner_removals=True)
    tokens: dict[Key, Resource | None] = {"nightly-build": TriggerToken(), "legacy-integration": None}
    read = folder.read()
    assert read.desired.targets == (
        DesiredTarget(
            target,
            (
                Section(target, "notification_settings", {"notification_settings": events}),
                Section(target, "approval_settings", {"approval_settings": approvals}),
                Section(
                    target,
                    "container_repository_protection_rules",
                    {"container_repository_protection_rules": {"acme/payments/api/prod*": rule}},
                ),
                Section(target, "job_token_scope", lists, prune=True),
                Section(target, "milestones", {"milestones": {"2026.12": december, "2026.11": november}}),
                Section(target, "trigger_tokens", {"trigger_tokens": tokens}),
            ),
            "a.yaml:2",
            {"team": "payments"},
        ),
    )
    assert read.warnings == ()
    approved = read.desired.targets[0].sections[1].wanted["approval_settings"]
    assert isinstance(approved, ApprovalSettings)
    assert approved.model_fields_set == {"allow_author_approval", "selective_code_owner_removals"}


def test_targets_come_in_their_own_order(folder: Folder) -> None:
    folder.write(
        a_yaml="""\
apiVersion: reconciler/v1
kind: Project
metadata: {id: 7}
---
apiVersion: reconciler/v1
kind: Project
metadata: {path: b/c}
---
apiVersion: reconciler/v1
kind: Project
metadata: {path: a/z}
---
apiVersion: reconciler/v1
kind: Group
metadata: {path: z}
---
apiVersion: reconciler/v1
kind: User
spec: {notification_settings: {notification_email: null}}
"""
    )
    read = folder.read()
    assert [str(target.target) for target in read.desired.targets] == [
        "user",
        "group z",
        "project a/z",
        "project b/c",
        "project 7",
    ]
    (section,) = read.desired.targets[0].sections
    assert section.wanted == {"notification_settings": UserNotificationSettings(notification_email=None)}
    assert read.desired.targets[1].sections == ()


def test_a_pruned_section_may_be_empty(folder: Folder) -> None:
    folder.write(
        a_yaml=EXAMPLE.partition("spec:")[0]
        + "spec: {prune: [milestones, job_token_scope], milestones: {}, job_token_scope: {}}"
    )
    target = Target(Level.PROJECT, "acme/payments/api")
    assert folder.read().desired.targets[0].sections == (
        Section(target, "job_token_scope", {"projects": {}, "groups": {}}, prune=True),
        Section(target, "milestones", {"milestones": {}}, prune=True),
    )


def test_the_digest_is_that_of_what_is_to_be_true_wherever_it_is_written(folder: Folder) -> None:
    folder.write(a_yaml=EXAMPLE)
    digest = folder.read().desired.digest
    assert len(digest) == len(hashlib.sha256().hexdigest())
    spec = EXAMPLE.partition("spec:\n")[2]
    folder.write(
        a_yaml="apiVersion: reconciler/v1\nkind: Profile\nmetadata: {name: all}\nspec:\n"
        + spec.replace("[acme/payments/lib, 1234]", "[1234]").replace("acme/payments/api/prod*", "'{path}/prod*'"),
        b_yaml="apiVersion: reconciler/v1\nkind: Project\nmetadata: {path: acme/payments/api, profiles: [all]}\n"
        "spec: {job_token_scope: {projects: [acme/payments/lib]}}\n",
    )
    assert folder.read().desired.digest == digest
    folder.write(
        a_yaml=EXAMPLE.replace("nightly-build: {}", "nightly-build: null"),
        b_yaml="apiVersion: reconciler/v1\nkind: User",
    )
    assert folder.read().desired.digest != digest


@pytest.mark.parametrize(("retain", "doubtful"), [("false", True), ("true", False)])
def test_settings_that_some_servers_refuse_are_a_warning(retain: str, doubtful: bool, folder: Folder) -> None:
    settings = f"{{selective_code_owner_removals: true, retain_approvals_on_push: {retain}}}"
    folder.write(
        a_yaml=f"apiVersion: reconciler/v1\nkind: Group\nmetadata: {{path: acme}}\nspec:\n  approval_settings: {settings}\n"
    )
    read = folder.read()
    assert [str(warning).splitlines()[0][:17] for warning in read.warnings] == (
        ["a.yaml:5:54: warn"] if doubtful else []
    )
    assert len(read.desired.targets) == 1


def test_what_is_effective_stands_in_the_order_of_the_sections(folder: Folder) -> None:
    folder.write(a_yaml=EXAMPLE)
    read = folder.read()
    target = Target(Level.PROJECT, "ACME/payments/API")
    assert list(read.of(target).spec) == [
        "prune",
        "notification_settings",
        "approval_settings",
        "container_repository_protection_rules",
        "job_token_scope",
        "milestones",
        "trigger_tokens",
    ]
    assert list(read.of(target).spec["milestones"]) == ["2026.12", "2026.11"]
    assert read.of(target).spec["prune"] == ["job_token_scope"]
    with pytest.raises(KeyError):
        read.of(Target(Level.USER))


def test_the_package_offers_what_it_lists_and_nothing_else() -> None:
    assert [name for name in manifests.__all__ if not hasattr(manifests, name)] == []
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        manifests.nothing  # noqa: B018 - that is what is tested
