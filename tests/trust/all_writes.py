"""Something of every kind to do, so that every sort of write happens, and what must be true afterwards."""

from typing import Any

from reconciler.model.state import Section
from reconciler.model.targets import Level, Target
from tests.building import ACME, USER, section
from tests.states import a_small_service

LIB = Target(Level.PROJECT, "acme/lib")


def service(dialect: str = "deployed") -> dict[str, Any]:
    """Return a state in which everything wanted below is still to be done."""
    state = a_small_service(dialect)
    state["projects"][0] |= {
        "milestones": [{"title": "old"}, {"title": "former"}, {"title": "kept"}],
        "trigger_tokens": [
            {"description": "old", "owner": "ada"},
            {"description": "former", "owner": "ada"},
            {"description": "kept", "owner": "bob"},
        ],
        "container_repository_protection_rules": [
            {"repository_path_pattern": "acme/api/old", "minimum_access_level_for_push": "owner"},
            {"repository_path_pattern": "acme/api/former", "minimum_access_level_for_push": "owner"},
            {"repository_path_pattern": "acme/api/kept", "minimum_access_level_for_push": "owner"},
        ],
        "job_token_scope": {"inbound_enabled": False, "project_allowlist": [103], "group_allowlist": [11]},
    }
    return state


def wanted() -> list[Section]:
    """Return sections whose plan holds every kind of write."""
    push = {"minimum_access_level_for_push": "maintainer"}
    return [
        section("notification_settings", {"level": "mention", "notification_email": "ops@example.com"}, USER),
        section("notification_settings", {"level": "watch"}, ACME),
        section("approval_settings", {"allow_author_approval": False, "allow_committer_approval": False}, ACME),
        section("notification_settings", {"level": "custom", "events": {"new_issue": True}}),
        section("approval_settings", {"allow_overrides_to_approver_list_per_merge_request": False}),
        section(
            "container_repository_protection_rules",
            {"acme/api/new": push, "acme/api/now": push | {"renamed_from": "acme/api/former"}, "acme/api/old": None},
        ),
        section("job_token_scope", {"enabled": True, "projects": ["acme/lib", 102], "groups": [10]}, prune=True),
        section(
            "milestones",
            {"new": {"state": "closed"}, "now": {"renamed_from": "former", "description": "d"}, "old": None},
        ),
        section("trigger_tokens", {"new": {}, "newer": {}, "now": {"renamed_from": "former"}, "old": None}),
        section("milestones", {"new": {}}, LIB),
    ]


def essence(state: dict[str, Any]) -> dict[str, Any]:
    """Return what of a state matters, without IDs, times and token values."""
    projects = {}
    for project in state["projects"]:
        target = project.get("job_token_scope", {})
        approvals = project.get("merge_request_approval_settings") or {}
        projects[project["path"]] = {
            "milestones": sorted(
                (each["title"], each["state"], each.get("description")) for each in project.get("milestones", [])
            ),
            "trigger_tokens": sorted(
                (each["description"], each["owner"]) for each in project.get("trigger_tokens", [])
            ),
            "rules": sorted(
                (each["repository_path_pattern"], each["minimum_access_level_for_push"])
                for each in project.get("container_repository_protection_rules", [])
            ),
            "scope": [
                target.get("inbound_enabled"),
                sorted(target.get("project_allowlist", [])),
                sorted(target.get("group_allowlist", [])),
            ],
            "approvals": {name: value for name, value in approvals.items() if name.startswith("allow")},
            "notifications": project.get("notification_settings", {}),
        }
    users = {user["username"]: user.get("notification_settings") for user in state["users"]}
    groups = {
        group["path"]: [group.get("notification_settings"), group.get("merge_request_approval_settings")]
        for group in state["groups"]
    }
    return {"projects": projects, "users": users, "groups": groups}
