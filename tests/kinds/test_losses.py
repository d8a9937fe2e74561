"""What is lost with a deleted object of each kind, as far as the list of the service tells. No request is made."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from reconciler.document.groups import entries_of, grouped
from reconciler.document.stored import load_plan, save
from reconciler.document.style import Style
from reconciler.engine.compare.planner import make_plan
from reconciler.model.endpoints import Collection, Deletion
from reconciler.model.item import Delete, sentences
from reconciler.model.kind import Kind, Part
from reconciler.model.resource import Objects
from reconciler.model.state import Reference
from reconciler.model.targets import Level, Target
from reconciler.reports import render_plan
from tests.building import ACME, API, KINDS, desired, live, section
from tests.render.samples import saved_plan

INSTANCE = Target(Level.INSTANCE)
OURS = "6be9f1a2c4e84a0c9b"

JOBS = "lose access with their job token, unless the limit is off or"
USELESS = "its value no longer starts pipelines, and cannot be restored"

LOST: Mapping[str, tuple[Target, Any, list[dict[str, Any]], list[str]]] = {
    "milestones": (
        API,
        {"a": None},
        [{"id": 1, "title": "a", "state": "active"}],
        ["its issues and merge requests lose it; the service does not report how many these are"],
    ),
    "trigger_tokens": (
        API,
        {"a": None},
        [{"id": 1, "description": "a", "token": OURS, "last_used": "2026-11-20T08:00:00.000Z"}],
        ["last used 2026-11-20", USELESS],
    ),
    "projects": (
        API,
        {"projects": []},
        [{"id": 7, "path_with_namespace": "acme/lib"}],
        [f"its CI jobs {JOBS} one of its groups is allowlisted"],
    ),
    "groups": (
        API,
        {"groups": []},
        [{"id": 7, "web_url": "https://h/groups/acme"}],
        [f"the CI jobs of all its projects {JOBS} another entry allows them"],
    ),
    "container_repository_protection_rules": (
        API,
        {"acme/api/*": None},
        [
            {
                "id": 1,
                "repository_path_pattern": "acme/api/*",
                "minimum_access_level_for_push": "maintainer",
                "minimum_access_level_for_delete": None,
            }
        ],
        ["pushing no longer takes the role maintainer, unless another rule says so"],
    ),
    "keys": (
        API,
        {"count": 0},
        [{"id": 1, "place": "1", "sentry_dsn": "https://k@h/1"}],
        ["applications that report errors to its address are refused, and the address cannot be restored"],
    ),
    "epics": (
        ACME,
        {"a": None},
        [{"id": 1, "iid": 1, "title": "a"}, {"id": 2, "iid": 2, "title": "b", "parent_id": 1}],
        [
            "its issues and child epics lose it, and its comments are deleted",
            "child epics in this group: 1; before GitLab 16.11, they are deleted too",
        ],
    ),
    "scim_identities": (
        ACME,
        {"a": None},
        [{"user_id": 9, "extern_uid": "a"}],
        ["the identity provider no longer manages the user with ID 9; only it can link the user again"],
    ),
    "service_accounts": (
        INSTANCE,
        {"a": None},
        [{"id": 1, "username": "a", "name": "A"}],
        ["its tokens stop working, its memberships end, and its contributions move to the ghost user"],
    ),
}
"""Of each of the first kinds, by part: the target, what is declared, what is live, and what is lost."""


def planned(kind: Kind, part: Part, target: Target, declared: Any, answer: list[dict[str, Any]]) -> list[Delete]:
    """Return the deletions of a plan."""
    assert isinstance(part, Collection)
    objects = Objects(part.with_names(tuple(part.read(target, entry) for entry in answer)))
    state = live({(target, kind.name, part.name): objects}, {Reference(Level.PROJECT, "acme/api"): 1})
    plan = make_plan(desired(section(kind.name, declared, target, prune=kind.prunable)), state, {kind.name: kind})
    return [each for each in plan.changes if isinstance(each, Delete)]


@pytest.mark.parametrize("name", LOST)
def test_a_deletion_knows_what_is_lost(name: str) -> None:
    target, declared, answer, lost = LOST[name]
    kind, part = next((kind, part) for kind in KINDS.values() for part in kind.parts if part.name == name)
    first, *_ = planned(kind, part, target, declared, answer)
    assert list(sentences(first, "loss")) == lost


def test_a_token_of_another_user_and_one_that_a_successor_replaced_say_so() -> None:
    kind = KINDS["trigger_tokens"]
    (part,) = kind.parts
    owned = {"id": 1, "description": "a", "token": "6be9", "owner": {"username": "ada"}}
    (anothers,) = planned(kind, part, API, {"a": None}, [owned])
    (hidden,) = planned(kind, part, API, {"a": None}, [{**owned, "owner": None}])
    assert sentences(anothers, "loss") == ("no use of it is recorded", "it belongs to ada", USELESS)
    assert sentences(hidden, "loss") == ("no use of it is recorded", "it belongs to another user", USELESS)
    old, new = (
        {"id": number, "description": "a", "token": OURS, "created_at": f"2026-11-{number}T00:00:00Z"}
        for number in (10, 11)
    )
    (rotated,) = planned(kind, part, API, {"a": {"rotate_after": "36500d"}}, [old, new])
    assert sentences(rotated, "loss") == ("no use of it is recorded", USELESS, "its successor has the ID 11")


def test_a_kind_that_says_only_what_does_not_come_back_says_that() -> None:
    kind = KINDS["milestones"]
    part = Collection("milestones", kind.parts[0].model, title="milestone", deletion=Deletion(lost="its comments"))
    entry = {"id": 1, "title": "a", "description": None, "state": "active"}
    (change,) = planned(replace(kind, parts=(part,)), part, API, {"a": None}, [entry])
    assert sentences(change, "loss") == ("cannot be restored: its comments",)
    part = replace(part, deletion=Deletion())
    (change,) = planned(replace(kind, parts=(part,)), part, API, {"a": None}, [entry])
    assert sentences(change, "loss") == ()


DAYS = ["2026-11-20", "2026-11-20", "2026-11-20", "2026-11-19", "2026-11-19", "2026-11-18", "2026-11-17", None]


def test_equal_deletions_say_what_is_lost_in_how_many() -> None:
    targets = [Target(Level.PROJECT, f"acme/p{number}") for number, _ in enumerate(DAYS)]
    name = "trigger_tokens"
    found = {
        (target, name, name): [{"id": 1, "description": "a", "token": OURS, "last_used": day}]
        for target, day in zip(targets, DAYS, strict=True)
    }
    plan = make_plan(desired(*(section(name, {"a": None}, target) for target in targets)), live(found), KINDS)
    saved = load_plan(save(saved_plan(plan)), KINDS)
    lost = (
        USELESS,
        "last used 2026-11-20 (3 of 8)",
        "last used 2026-11-19 (2 of 8)",
        "last used 2026-11-18 (1 of 8)",
        "and 2 others",
    )
    ((group,),) = (block.groups for block in grouped(entries_of(saved.items, "change")))
    assert isinstance(group.sample, Delete)
    assert sentences(group.sample, "loss") == lost
    assert render_plan(saved, "text", Style(verbose=True, group_by="change")).splitlines()[1:8] == [
        '  - trigger token "a"',
        *(f"      {each}" for each in lost),
        "      DELETE projects/acme%2Fp0/triggers/1",
    ]
    assert "".join(f"-     {each}\n" for each in lost) in render_plan(saved, "markdown")
    assert "last used" not in render_plan(saved)
