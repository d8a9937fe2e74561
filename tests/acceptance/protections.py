"""The recordings about rules of protection, and what was done to the service around them, without a request.

`NAMES` are the recordings that begin with `protections.json`.
"""

from collections.abc import Callable
from typing import Any

State = dict[str, Any]
Change = Callable[[State], None]


def project_in(state: State, name: str) -> Any:
    """Return the project of a state that has that name."""
    return next(project for project in state["projects"] if project["name"] == name)


def with_project(number: int, group: int, path: str, name: str, **section: Any) -> Change:
    """Return a change that adds a project with its group."""

    def change(state: State) -> None:
        members = [{"user": "facts-owner", "role": "owner"}, {"user": "facts-maintainer", "role": "maintainer"}]
        state["groups"].append({"id": group, "path": path, "name": "Facts sa 1", "members": members})
        state["projects"].append({"id": number, "path": f"{path}/{name}", **section})

    return change


def race(state: State) -> None:
    """Add what six creations at once make."""
    project_in(state, "branches-b1")["protected_branches"] += [
        {"name": "race", "unprotect_access_levels": [{"access_level": 40}]} for _ in range(6)
    ]


def many(state: State) -> None:
    """Add 103 rules."""
    project_in(state, "many1")["protected_branches"] += [
        {"name": f"b{number:03}", "unprotect_access_levels": [{"access_level": 40}]} for number in range(103)
    ]


def tag_race(state: State) -> None:
    """Add what is left of six creations of a tag's rule at once."""
    tags = project_in(state, "tags1")["protected_tags"]
    tags.append({"id": tags[-1]["id"] + 1, "name": "race"})


def registry(*, has_api: bool) -> Change:
    """Return a change that says whether the container registry has an API."""

    def change(state: State) -> None:
        state["instance"]["container_registry_api"] = has_api

    return change


def without_three_tag_rules(state: State) -> None:
    """Remove the rules with the IDs 3, 4 and 5."""
    project = project_in(state, "registry1")
    rules = project["container_tag_protection_rules"]
    project["container_tag_protection_rules"] = [rule for rule in rules if rule["id"] not in (3, 4, 5)]


def immutable_rule(state: State) -> None:
    """Add what was made by GraphQL."""
    project_in(state, "immutable1")["container_tag_protection_rules"] = [{"id": 18, "tag_name_pattern": "im.*"}]


def package_flag(*, on: bool) -> Change:
    """Return a change that says whether packages have levels to delete."""

    def change(state: State) -> None:
        state["instance"]["packages_protected_packages_delete"] = on

    return change


def with_more_rules(state: State) -> None:
    """Add the group and the project of `group-protected-branches`."""
    members = [{"user": f"facts-{name}", "role": name} for name in ("owner", "maintainer", "developer", "guest")]
    branches = [{"id": 36, "name": "release/*", "unprotect_access_levels": [{"access_level": 40}]}]
    branches += [{"id": 37 + number, "name": f"rule{number}"} for number in range(9)]
    state["groups"] += [
        {"id": 35, "path": "facts-own1", "name": "Facts own 1", "members": members, "protected_branches": branches},
        {"id": 36, "path": "facts-own1/sub", "name": "sub"},
    ]
    state["projects"].append({"id": 11, "path": "facts-own1/sub/one", "name": "one"})


def owner_in_the_other_group(state: State) -> None:
    """Make the owner a member of the group that the others cannot see."""
    group = next(group for group in state["groups"] if group["path"] == "facts-other")
    group["members"].append({"user": "facts-owner", "role": "reporter"})


def without_licence(state: State) -> None:
    """Withhold every licensed feature, and add the user who was asked."""
    state["instance"] |= {"licensed": False, "default_branch_protection_looks": 1}
    user = {"id": 27, "username": "facts-free", "name": "Facts Free", "emails": ["facts-free@example.com"]}
    state["users"].append({**user, "tokens": ["free-token"]})


def approvals_may_change(*, may: bool) -> Change:
    """Return a change that says whether the instance lets projects change their approvers."""

    def change(state: State) -> None:
        settings = state["instance"].setdefault("merge_request_approval_settings", {})
        settings["allow_overrides_to_approver_list_per_merge_request"] = may

    return change


def approval_race(state: State) -> None:
    """Put the rules of two races in the place of those that are gone."""
    project_in(state, "rules-b1")["approval_rules"] += [
        {"id": 1001, "name": "race", "approvals_required": 1, "users": ["facts-developer"]},
        {"id": 1002, "name": "anyrace", "approvals_required": 1, "rule_type": "any_approver"},
    ]


BEFORE: dict[str, Change] = {
    "approval-rules-changes": owner_in_the_other_group,
    "approval-rules-more": with_more_rules,
    "free-edition": without_licence,
    "group-approval-rules": with_more_rules,
    "container-tag-protection-rules": registry(has_api=False),
    "package-protection-rules-delete": package_flag(on=True),
    "protected-branches-archived": with_project(
        33, 49, "facts-sa1", "authors1", protected_branches=[{"id": 70, "name": "main"}]
    ),
}
"""What a recording finds there beside what `protections.json` has."""

MEANWHILE: dict[str, dict[int, Change]] = {
    "approval-rules-changes": {55: approval_race, 72: with_more_rules},
    "approval-rules-more": {7: approvals_may_change(may=False), 11: approvals_may_change(may=True)},
    "container-tag-immutable-rules": {5: immutable_rule},
    "container-tag-protection-rules": {
        3: registry(has_api=True),
        14: without_three_tag_rules,
        57: registry(has_api=False),
    },
    "package-protection-rules-delete": {4: package_flag(on=False)},
    "protected-branches-changes": {76: race},
    "protected-branches-pages": {1: many},
    "protected-tags": {43: tag_race},
}
"""What was done before the request of that number."""

NAMES = {
    "approval-rules",
    "approval-rules-changes",
    "approval-rules-more",
    "free-edition",
    "group-approval-rules",
    "protections-public-and-personal",
    "container-tag-immutable-rules",
    "container-tag-protection-rules",
    "group-protected-branches",
    "group-protected-branches-names",
    "package-protection-rules",
    "package-protection-rules-delete",
    "protected-branches",
    "protected-branches-archived",
    "protected-branches-changes",
    "protected-branches-locked-out",
    "protected-branches-pages",
    "protected-tags",
}
