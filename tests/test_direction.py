"""The stricter of two values, by field: a table for each sort of direction, and for each kind."""

from typing import Any

import pytest

from reconciler.model.direction import (
    ENTRIES,
    FALSE,
    FEWER,
    LEVEL,
    MORE,
    TRUE,
    WIDER,
    Direction,
    Strictness,
    by_number,
    compare_field,
)
from reconciler.model.endpoints import Collection
from reconciler.model.entries import Numbers
from tests.building import KINDS

STRICTER, EQUAL, LOOSER, INCOMPARABLE = Strictness

MIRRORED = {STRICTER: LOOSER, LOOSER: STRICTER, EQUAL: EQUAL, INCOMPARABLE: INCOMPARABLE}


@pytest.mark.parametrize(
    ("direction", "this", "that", "strictness"),
    [
        (TRUE, True, False, STRICTER),
        (TRUE, True, True, EQUAL),
        (TRUE, False, None, STRICTER),
        (TRUE, True, "sometimes", INCOMPARABLE),
        (FALSE, False, True, STRICTER),
        (FALSE, False, False, EQUAL),
        (FALSE, None, None, EQUAL),
        (FALSE, True, None, STRICTER),
        (FALSE, 0, True, INCOMPARABLE),
        (MORE, 2, 1, STRICTER),
        (MORE, 2, 2, EQUAL),
        (MORE, 0, None, STRICTER),
        (MORE, 2, "a list", INCOMPARABLE),
        (MORE, True, 0, INCOMPARABLE),
        (LEVEL, "admin", "owner", STRICTER),
        (LEVEL, "admin", "maintainer", STRICTER),
        (LEVEL, "owner", "maintainer", STRICTER),
        (LEVEL, "owner", "owner", EQUAL),
        (LEVEL, "maintainer", None, STRICTER),
        (LEVEL, "maintainer", "auditor", INCOMPARABLE),
        (ENTRIES, [], ["admin"], STRICTER),
        (ENTRIES, [], [], EQUAL),
        (ENTRIES, ["admin"], ["maintainer"], STRICTER),
        (ENTRIES, ["maintainer"], ["developer"], STRICTER),
        (ENTRIES, ["developer", "maintainer"], ["developer"], EQUAL),
        (ENTRIES, [{"user": "ada"}], [{"user": "ada"}, "admin"], STRICTER),
        (ENTRIES, [{"user": "Ada"}], [{"user": "ada"}], EQUAL),
        (ENTRIES, [{"user": "ada"}], [{"user": "bob"}], INCOMPARABLE),
        (ENTRIES, [{"user": "ada"}], ["developer"], INCOMPARABLE),
        (ENTRIES, [{"group": "acme"}], [{"user": "acme"}], INCOMPARABLE),
        (ENTRIES, ["admin"], [{"user": "ada"}], INCOMPARABLE),
        (ENTRIES, [{"deploy_key": "release"}], [{"deploy_key": "Release"}], INCOMPARABLE),
        (ENTRIES, ["level 20"], ["developer"], INCOMPARABLE),
        (ENTRIES, ["maintainer", "level 20"], ["level 20", "developer"], STRICTER),
        (ENTRIES, ["maintainer"], "a list", INCOMPARABLE),
        (ENTRIES, ["developer"], None, STRICTER),
        (FEWER, ["acme/a"], ["acme/a", "acme/b"], STRICTER),
        (FEWER, [], ["acme/a"], STRICTER),
        (FEWER, ["acme/a", "acme/b"], ["acme/b", "acme/a"], EQUAL),
        (FEWER, ["acme/a"], ["acme/b"], INCOMPARABLE),
        (FEWER, ["acme/a"], "a list", INCOMPARABLE),
        (WIDER, "any", "protected", STRICTER),
        (WIDER, "any", ["main"], STRICTER),
        (WIDER, "any", "any", EQUAL),
        (WIDER, "protected", ["main"], STRICTER),
        (WIDER, "protected", "protected", EQUAL),
        (WIDER, ["main", "release/*"], ["main"], STRICTER),
        (WIDER, ["main", "dev"], ["dev", "main"], EQUAL),
        (WIDER, ["main"], ["dev"], INCOMPARABLE),
        (WIDER, ["main"], "some", INCOMPARABLE),
        (WIDER, "any", "some", INCOMPARABLE),
    ],
)
def test_two_values_are_compared_both_ways(direction: Direction, this: Any, that: Any, strictness: Strictness) -> None:
    there_and_back = direction.compare(this, that), direction.compare(that, this)
    assert there_and_back == (strictness, MIRRORED[strictness])


@pytest.mark.parametrize(
    ("section", "field", "this", "that", "strictness"),
    [
        *(
            ("approval_settings", name, {name: False}, {name: True}, STRICTER)
            for name in (
                "allow_author_approval",
                "allow_committer_approval",
                "allow_overrides_to_approver_list_per_merge_request",
                "retain_approvals_on_push",
            )
        ),
        *(
            ("approval_settings", name, {name: True}, {name: False}, STRICTER)
            for name in ("selective_code_owner_removals", "require_reauthentication_to_approve")
        ),
        ("approval_rules", "approvals_required", {"approvals_required": 2}, {"approvals_required": 1}, STRICTER),
        ("approval_rules", "users", {"users": ["ada"]}, {"users": ["ada", "bob"]}, STRICTER),
        ("approval_rules", "users", {"users": []}, {"users": ["ada"]}, LOOSER),
        ("approval_rules", "users", {"users": [], "groups": []}, {"users": [], "groups": []}, EQUAL),
        (
            "approval_rules",
            "users",
            {"users": ["ada", "bob"], "approvals_required": 2},
            {"users": ["ada"], "approvals_required": 2},
            STRICTER,
        ),
        (
            "approval_rules",
            "groups",
            {"users": ["ada"], "groups": ["acme"], "approvals_required": 2},
            {"users": ["ada"], "groups": [], "approvals_required": 2},
            STRICTER,
        ),
        ("approval_rules", "users", {"users": [], "groups": ["acme"]}, {"users": ["ada"], "groups": []}, STRICTER),
        ("approval_rules", "groups", {"users": [], "groups": ["acme"]}, {"users": ["ada"], "groups": []}, LOOSER),
        ("approval_rules", "groups", {"users": [], "groups": []}, {"users": [], "groups": ["acme"]}, LOOSER),
        ("approval_rules", "branches", {"branches": "any"}, {"branches": ["main"]}, STRICTER),
        *(
            ("protected_branches", name, {name: []}, {name: ["maintainer"]}, STRICTER)
            for name in ("allowed_to_push", "allowed_to_merge", "allowed_to_unprotect")
        ),
        ("protected_branches", "allow_force_push", {"allow_force_push": False}, {"allow_force_push": True}, STRICTER),
        (
            "protected_branches",
            "code_owner_approval_required",
            {"code_owner_approval_required": True},
            {"code_owner_approval_required": False},
            STRICTER,
        ),
        ("protected_tags", "allowed_to_create", {"allowed_to_create": []}, {"allowed_to_create": ["admin"]}, STRICTER),
        *(
            (section, name, {name: "admin"}, {name: "maintainer"}, STRICTER)
            for section in (
                "container_repository_protection_rules",
                "container_tag_protection_rules",
                "package_protection_rules",
            )
            for name in ("minimum_access_level_for_push", "minimum_access_level_for_delete")
        ),
        ("job_token_scope", "enabled", {"enabled": True}, {"enabled": False}, STRICTER),
    ],
)
def test_every_field_of_a_protection_has_its_direction(
    section: str, field: str, this: dict[str, Any], that: dict[str, Any], strictness: Strictness
) -> None:
    directions = KINDS[section].parts[0].model.directions
    there_and_back = compare_field(directions, field, this, that), compare_field(directions, field, that, this)
    assert there_and_back == (strictness, MIRRORED[strictness])


def test_no_other_field_has_a_direction() -> None:
    directed = {
        name: sorted({field for part in kind.parts for field in part.model.directions})
        for name, kind in KINDS.items()
        if any(part.model.directions for part in kind.parts)
    }
    levels = ["minimum_access_level_for_delete", "minimum_access_level_for_push"]
    assert directed == {
        "approval_rules": ["approvals_required", "branches", "groups", "users"],
        "approval_settings": [
            "allow_author_approval",
            "allow_committer_approval",
            "allow_overrides_to_approver_list_per_merge_request",
            "require_reauthentication_to_approve",
            "retain_approvals_on_push",
            "selective_code_owner_removals",
        ],
        "container_repository_protection_rules": levels,
        "container_tag_protection_rules": levels,
        "job_token_scope": ["enabled"],
        "package_protection_rules": levels,
        "protected_branches": [
            "allow_force_push",
            "allowed_to_merge",
            "allowed_to_push",
            "allowed_to_unprotect",
            "code_owner_approval_required",
        ],
        "protected_tags": ["allowed_to_create"],
    }


def test_an_object_that_is_there_protects_or_lets_somebody_in() -> None:
    presence = {
        (name, part.name): strictness
        for name, kind in KINDS.items()
        for part in kind.parts
        if isinstance(part, Collection) and (strictness := kind.presence(part)) is not EQUAL
    }
    assert presence == {
        ("approval_rules", "approval_rules"): STRICTER,
        ("container_repository_protection_rules", "container_repository_protection_rules"): STRICTER,
        ("container_tag_protection_rules", "container_tag_protection_rules"): STRICTER,
        ("package_protection_rules", "package_protection_rules"): STRICTER,
        ("protected_branches", "protected_branches"): STRICTER,
        ("protected_tags", "protected_tags"): STRICTER,
        ("job_token_scope", "projects"): LOOSER,
        ("job_token_scope", "groups"): LOOSER,
        ("service_accounts", "service_accounts"): LOOSER,
        ("trigger_tokens", "trigger_tokens"): LOOSER,
    }
    assert KINDS["approval_settings"].presence(KINDS["approval_settings"].parts[0]) is EQUAL


def test_a_number_and_its_name_are_one_where_the_number_is_known() -> None:
    numbers: Numbers = {("user", "ada"): 7}
    named, numbered = [{"user": "ada"}, "admin", {"group": "acme"}], [{"user": 7}, "admin"]
    assert ENTRIES.compare(numbered, named) is INCOMPARABLE
    assert ENTRIES.compare(by_number(numbered, numbers), by_number(named, numbers)) is STRICTER
    assert by_number("a list", numbers) == "a list"
