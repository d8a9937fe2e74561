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


BEFORE: dict[str, Change] = {
    "container-tag-protection-rules": registry(has_api=False),
    "package-protection-rules-delete": package_flag(on=True),
    "protected-branches-archived": with_project(
        33, 49, "facts-sa1", "authors1", protected_branches=[{"id": 70, "name": "main"}]
    ),
}
"""What a recording finds there beside what `protections.json` has."""

MEANWHILE: dict[str, dict[int, Change]] = {
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
