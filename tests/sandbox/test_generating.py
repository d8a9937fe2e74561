"""Fleets drawn by a seed: they load in both dialects, are repeatable, and resemble real ones."""

import pytest

from reconciler.sandbox import generate
from reconciler.sandbox.state_file import dump, load


@pytest.mark.untraced
@pytest.mark.parametrize("projects", [1, 9, 300])
def test_there_are_as_many_projects_as_asked_for_and_the_same_each_time(projects: int) -> None:
    state = generate(projects, 7)
    assert len(state["projects"]) == len({each["path"] for each in state["projects"]}) == projects
    assert state == generate(projects, 7) != generate(projects, 8)
    assert [dump(load(state, dialect))["instance"]["dialect"] for dialect in ("spec", "deployed")] == [
        "spec",
        "deployed",
    ]


def test_a_big_fleet_has_what_real_ones_have() -> None:
    state = generate(300, 0)
    projects = state["projects"]
    assert {each["path"].partition("/")[0] for each in state["groups"] + projects} == {"acme", "vault"}
    assert {each["path"].count("/") for each in state["groups"]} == {0, 1, 2, 3}
    odd = {
        name: sum(bool(each[name]) for each in projects)
        for name in (
            "archived",
            "renamed_from",
            "trigger_tokens",
            "milestones",
            "notification_settings",
            "protected_branches",
            "protected_tags",
            "package_protection_rules",
            "container_tag_protection_rules",
            "approval_rules",
        )
    }
    assert all(0 < count < 300 for count in odd.values()), odd
    for switch in ("container_registry_enabled", "builds_enabled", "issues_enabled"):
        assert {each[switch] for each in projects} == {True, False}
    owners = {token["owner"] for each in projects for token in each["trigger_tokens"]}
    assert owners == {"ada", "bob", "carla", "deploy-bot"}
    twice = [
        each
        for each in projects
        if len(tokens := [t["description"] for t in each["trigger_tokens"]]) > len(set(tokens))
    ]
    assert 0 < len(twice) < 60
