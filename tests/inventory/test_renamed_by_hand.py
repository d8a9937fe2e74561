"""What was renamed on the service by hand: the inventory knows it by its ID, and a plan gives it its name back."""

from typing import Any

import pytest

from tests.inventory.checkout import Checkout

SPEC = """{
  milestones: {"2027.1": {description: x}},
  trigger_tokens: {nightly: {}},
  approval_rules: {Security: {approvals_required: 1, users: [ada]}},
  protected_branches: {main: {allowed_to_push: [maintainer]}},
  protected_tags: {"v*": {allowed_to_create: [maintainer]}},
  package_protection_rules: {"npm:@acme/*": {minimum_access_level_for_push: maintainer}},
  container_repository_protection_rules: {"acme/api/prod*": {minimum_access_level_for_push: maintainer}},
  container_tag_protection_rules: {
    "^v": {minimum_access_level_for_push: maintainer, minimum_access_level_for_delete: owner}
  }
}"""

NAMES = {
    "milestones": "title",
    "trigger_tokens": "description",
    "approval_rules": "name",
    "protected_branches": "name",
    "protected_tags": "name",
    "package_protection_rules": "package_name_pattern",
    "container_repository_protection_rules": "repository_path_pattern",
    "container_tag_protection_rules": "tag_name_pattern",
}
"""By section, the service's field that holds the name."""


def renamed(user: Checkout, **names: str) -> None:
    """Rename the first object of some sections by hand."""

    def rename(project: dict[str, Any]) -> None:
        for section, name in names.items():
            project[section][0][NAMES[section]] = name

    user.change(rename)


def writes(user: Checkout) -> list[str]:
    """Return the writes that the service was asked for, and forget them."""
    log = [f"{entry['method']} {entry['path']}" for entry in user.cli.sandbox.log() if entry["method"] != "GET"]
    user.cli.sandbox.clear_log()
    return log


def applied(user: Checkout) -> Checkout:
    """Declare everything, and apply it."""
    user.change(lambda project: project.update(members=[{"user": "ada", "role": "maintainer"}]))
    user.declare(SPEC)
    user.commit("first")
    assert user.apply("--tokens-to ../tokens.jsonl --quiet")[0] == 0
    user.cli.sandbox.clear_log()
    return user


def test_one_update_gives_each_object_its_name_back_and_a_second_object_is_made_of_none(user: Checkout) -> None:
    applied(user)
    renamed(
        user,
        milestones="January",
        trigger_tokens="night",
        approval_rules="Safety",
        protected_branches="trunk",
        protected_tags="w*",
        package_protection_rules="@acme/lib",
        container_repository_protection_rules="acme/api/live*",
        container_tag_protection_rules="^w",
    )
    listed = user.listed()
    assert user.plan("--verbose") == (0, [])
    assert user.apply("--verbose") == (0, [])
    assert writes(user) == []
    assert user.plan() == (0, [])
    assert user.listed() == listed
