"""What was renamed on the service by hand: the inventory knows it by its ID, and a plan gives it its name back."""

from typing import Any

import pytest

from reconciler.memory.store import INVENTORY_BRANCH
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
    log = [
        f"{entry['method']} {entry['target'].removeprefix('/api/v4/')}"
        for entry in user.cli.sandbox.log()
        if entry["method"] != "GET"
    ]
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
    by_hand = "somebody renamed it on the service"
    defaults = "allowed_to_merge: maintainer, by default, allowed_to_unprotect: maintainer, by default"
    assert user.plan() == (
        0,
        [
            "project acme/api",
            f'  + protected branch "main"                   allowed_to_push: maintainer, {defaults}; the one that was '
            'applied is "trunk" now, and stays: somebody renamed it on the service, tightens',
            # The service knows tags by their names alone: to it, and to everybody, this is another object.
            '  + protected tag "v*"                        allowed_to_create: maintainer, tightens',
            f'  ~ protection rule "acme/api/prod*"          renamed from "acme/api/live*", {by_hand}',
            f'  ~ milestone "2027.1"                        renamed from "January", {by_hand}',
            f'  ~ trigger token "nightly"                   renamed from "night", {by_hand}',
            f'  ~ tag protection rule "^v"                  renamed from "^w", {by_hand}',
            f'  ~ package protection rule "npm:@acme/*"     renamed from "npm:@acme/lib", {by_hand}',
            f'  ~ approval rule "Security"                  renamed from "Safety", {by_hand}',
        ],
    )
    assert writes(user) == []
    assert user.apply("--quiet") == (0, [])
    assert writes(user) == [
        "PATCH projects/acme%2Fapi/registry/protection/repository/rules/1",
        "PUT projects/acme%2Fapi/milestones/1",
        "PUT projects/acme%2Fapi/triggers/1",
        "PATCH projects/acme%2Fapi/registry/protection/tag/rules/1",
        "PATCH projects/acme%2Fapi/packages/protection/rules/1",
        "POST projects/acme%2Fapi/protected_branches",
        "POST projects/acme%2Fapi/protected_tags",
        "PUT projects/acme%2Fapi/approval_rules/1",
    ]
    assert user.plan() == (0, [])


def one(user: Checkout, spec: str = "{milestones: {a: {}}}", title: str = "b") -> Checkout:
    """Declare a milestone, apply it, and rename it by hand."""
    user.declare(spec)
    user.commit("first")
    assert user.apply("--quiet") == (0, [])
    renamed(user, milestones=title)
    user.cli.sandbox.clear_log()
    return user


def test_accept_takes_the_new_name_over_and_the_object_stays_ours(user: Checkout) -> None:
    one(user, "{milestones: {a: {description: kept}}}")
    assert user.run("accept") == (0, ["manifests/project.yaml", "1 difference accepted; 1 file written."])
    assert (
        (user.git.folder / "manifests/project.yaml")
        .read_text()
        .endswith("spec: {milestones: {b: {description: kept}}}\n")
    )
    assert user.plan() == (0, [])
    user.commit("second")
    assert user.apply("--quiet") == (0, [])
    assert user.listed() == ["project 100 b <second>"]
    assert (writes(user), user.live()) == ([], ["b"])


def test_of_an_item_of_a_set_accept_writes_the_new_name_for_that_project_alone(user: Checkout) -> None:
    user.write(
        "manifests/set.yaml",
        "apiVersion: reconciler/v1\nkind: ProjectSet\nmetadata: {name: all}\n"
        "select: {projects: [acme/api, acme/other]}\nspec: {milestones: {a: {}}}\n",
    )
    state = user.cli.sandbox.state()
    state["projects"].append({"path": "acme/other", "members": state["projects"][0]["members"]})
    user.cli.sandbox.replace_state(state)
    user.commit("first")
    assert user.apply("--quiet") == (0, [])
    renamed(user, milestones="b")
    assert user.run("accept") == (0, ["manifests/acme/api.yaml", "1 difference accepted; 1 file written."])
    assert (user.git.folder / "manifests/acme/api.yaml").read_text().endswith("milestones:\n    a: null\n    b: {}\n")
    assert user.plan() == (0, [])


@pytest.mark.parametrize("section", ["milestones: {a: {}}", "prune: [milestones], milestones: {a: {}}"])
def test_without_proof_nothing_is_renamed_created_or_deleted(user: Checkout, section: str) -> None:
    user.declare(f"{{{section}}}")
    user.commit("nothing else")
    user.declare(f"{{{section}, trigger_tokens: {{}}}}")  # not committed
    assert user.apply("--quiet")[0] == 0
    renamed(user, milestones="b")
    user.cli.sandbox.clear_log()
    user.commit("first")
    problem = (
        '  ! milestone "a": seems to be "b" now (ID 1), renamed on the service, which is not certain: the manifests that '
        "declared it were never committed; rename it back there, or declare it by its new name"
    )
    assert user.plan() == (3, ["project acme/api", problem])
    assert user.apply("--quiet") == (3, ["project acme/api", problem])
    assert (writes(user), user.live()) == ([], ["b"])
    # Either way out is found by whoever reads the problem.
    user.declare("{milestones: {b: {}}}")
    assert user.plan() == (0, [])


def test_a_name_that_is_live_or_declared_wins_over_an_id(user: Checkout) -> None:
    one(user)
    user.change(lambda project: project["milestones"].append({"title": "a"}))
    assert user.plan() == (0, [])
    user.change(lambda project: project["milestones"].pop())
    user.milestones("a", "b")
    assert user.plan() == (0, ["project acme/api", '  + milestone "a"'])


def test_a_saved_plan_renames_only_what_the_inventory_still_lists(user: Checkout) -> None:
    one(user)
    assert user.plan("--quiet --out ../plan.json") == (0, [])
    user.forge(lambda lines: lines.pop())
    assert user.apply("--plan ../plan.json --quiet") == (
        3,
        [
            "project acme/api",
            '  ~ milestone "a"                             stale: the inventory no longer lists it: plan again',
        ],
    )
    assert (writes(user), user.live()) == ([], ["b"])


def test_of_several_objects_that_had_the_name_none_is_taken_for_the_renamed_one(user: Checkout) -> None:
    one(user)
    user.change(lambda project: project["milestones"].append({"title": "c", "id": 7}))
    user.forge(lambda lines: lines.append({**lines[-1], "id": 7}))
    problem = (
        '  ! milestone "a": seems to be "c" now (ID 7), renamed on the service, which is not certain: the inventory '
        "lists several of that name; rename it back there, or declare it by its new name"
    )
    assert user.plan() == (3, ["project acme/api", problem])


def test_names_that_move_on_by_one_are_freed_one_after_the_other_also_by_a_saved_plan(user: Checkout) -> None:
    user.declare('{milestones: {"1": {}, "2": {}, "3": {}}}')
    user.commit("first")
    assert user.apply("--quiet") == (0, [])
    ids = {milestone["title"]: milestone["id"] for milestone in user.cli.sandbox.state()["projects"][0]["milestones"]}
    user.declare('{milestones: {"2": {renamed_from: "1"}, "3": {renamed_from: "2"}, "4": {renamed_from: "3"}}}')
    user.commit("second")
    assert user.plan("--out ../plan.json") == (
        0,
        [
            "project acme/api",
            '  ~ milestone "4"                             renamed from "3"',
            '  ~ milestone "3"                             renamed from "2"',
            '  ~ milestone "2"                             renamed from "1"',
        ],
    )
    user.cli.sandbox.clear_log()
    assert user.apply("--plan ../plan.json --quiet") == (0, [])
    assert writes(user) == [f"PUT projects/acme%2Fapi/milestones/{ids[title]}" for title in "321"]
    assert user.plan() == (0, [])
    assert user.apply("--quiet") == (0, [])
    assert user.listed() == [f"project 100 {title} <second>" for title in "234"]
    # Without a list, what is there is adopted by its own name.
    user.git.git("branch", "--quiet", "-D", INVENTORY_BRANCH)
    assert user.apply("--quiet") == (0, [])
    assert user.listed() == [f"project 100 {title} <second>" for title in "234"]
