"""States: read from files and mappings, dumped to mappings, and the errors of invalid ones."""

import json
from collections.abc import Iterator
from copy import deepcopy
from datetime import UTC, date, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest

from reconciler.sandbox import StateError, running
from reconciler.sandbox.routes import sections
from reconciler.sandbox.state_file import dump, load, read_state

from .sandbox_client import CREATED, SandboxClient, a_service

SEED = "2026-01-01T00:00:00.000Z"


def test_absent_values_have_defaults_and_ids_are_assigned_in_order() -> None:
    state = {
        "users": [{"username": "ada"}],
        "groups": [{"path": "acme"}],
        "projects": [{"path": "acme/b"}, {"path": "acme/a"}],
    }
    found = dump(load(state))
    assert core(found["instance"]) == {
        "dialect": "spec",
        "now": None,
        "url": None,
        "version": "18.9.0-ee",
        "revision": "5a0d6b0c1f2",
        "licensed": True,
        "admin_mode": False,
        "throttle_authenticated_api_enabled": False,
        "throttle_authenticated_api_requests_per_period": 7200,
        "throttle_authenticated_api_period_in_seconds": 3600,
    }
    assert [core(user) for user in found["users"]] == [
        {
            "id": 1,
            "username": "ada",
            "name": "Ada",
            "admin": False,
            "bot": False,
            "blocked": False,
            "can_create_group": True,
            "emails": ["ada@example.com"],
            "created_at": SEED,
            "tokens": [],
        }
    ]
    assert [core(group) for group in found["groups"]] == [
        {
            "id": 1,
            "path": "acme",
            "name": "acme",
            "visibility": "private",
            "archived": False,
            "marked_for_deletion_on": None,
            "description": None,
            "created_at": SEED,
            "members": [],
            "renamed_from": [],
        }
    ]
    assert [core(project) for project in found["projects"]] == [a_plain_project(1, "b"), a_plain_project(2, "a")]


def core(record: dict[str, Any]) -> dict[str, Any]:
    """The keys that are not the section of a kind."""
    kinds = {section.name for section in sections()}
    return {name: value for name, value in record.items() if name not in kinds}


def a_plain_project(number: int, name: str) -> dict[str, Any]:
    """A project with defaults only."""
    return {
        "id": number,
        "path": f"acme/{name}",
        "name": name,
        "visibility": "private",
        "archived": False,
        "description": None,
        "created_at": SEED,
        "members": [],
        "last_activity_at": SEED,
        "default_branch": "main",
        "empty_repo": False,
        "topics": [],
        "renamed_from": [],
        "repository_enabled": True,
        "container_registry_enabled": True,
        "packages_enabled": True,
        "builds_enabled": True,
        "issues_enabled": True,
        "merge_requests_enabled": True,
        "invited_groups": [],
        "ci_pipeline_variables_minimum_override_role": "developer",
        "marked_for_deletion_on": None,
    }


def test_nothing_is_a_state_too() -> None:
    assert dump(load({}))["projects"] == []
    assert dump(load(None)) == dump(load({"projects": None}))


def test_given_ids_are_kept_and_the_others_go_round_them() -> None:
    milestones = [{"title": "a"}, {"title": "b", "id": 1}, {"title": "c"}]
    state = load({"projects": [{"path": "g/a"}, {"id": 1, "path": "g/b", "milestones": milestones}]})
    assert [project.id for project in state.projects.values()] == [2, 1]
    assert [each["id"] for each in dump(state)["projects"][1]["milestones"]] == [2, 1, 3]


def test_the_id_of_a_deleted_item_stays_unused(service: SandboxClient) -> None:
    service.given(a_service(web={"milestones": [{"id": 9, "title": "a"}]}))
    service.ask("DELETE /projects/100/milestones/9")
    assert service.ask("POST /projects/100/milestones", {"title": "b"})[1]["id"] == 10


def test_a_dumped_state_loads_unchanged(service: SandboxClient, tmp_path: Path) -> None:
    service.given(a_full_state())
    service.ask("POST /projects/100/triggers", {"description": "new"})
    before = service.sandbox.state()
    assert service.given(json.loads(json.dumps(before))).sandbox.state() == before
    path = tmp_path / "state.json"
    path.write_text(json.dumps(before))
    assert dump(read_state(path)) == before


def a_full_state() -> dict[str, Any]:
    """A state in which every section has something."""
    state = a_service(
        "deployed",
        acme={
            "merge_request_approval_settings": {"allow_author_approval": False},
            "milestones": [{"title": "G"}],
            "notification_settings": {"ada": {"level": "custom", "events": {"new_note": True, "new_issue": None}}},
        },
        web={
            "renamed_from": ["acme/old"],
            "milestones": [{"title": "1.0", "due_date": "2026-12-31", "iid": 4, "created_at": CREATED}],
            "trigger_tokens": [{"description": "x", "owner": "ada", "expires_at": "2026-12-31", "last_used": SEED}],
            "container_repository_protection_rules": [
                {"repository_path_pattern": "acme/web/*", "minimum_access_level_for_delete": "admin"}
            ],
            "job_token_scope": {"project_allowlist": [101], "group_allowlist": [11]},
        },
    )
    state["users"][1] |= {
        "bot": True,
        "tokens": ["ada-token", {"token": "two", "revoked": True, "scopes": ["read_api"], "kind": "oauth"}],
    }
    return state


def test_a_file_is_yaml_or_json(tmp_path: Path) -> None:
    text = (
        "projects:\n- path: g/p\n  created_at: 2026-01-02\n  milestones:\n"
        "  - {title: '1.0', due_date: 2026-12-31, created_at: 2026-01-02T03:04:05Z, updated_at: 2026-01-02 03:04:05}\n"
    )
    path = tmp_path / "state.yaml"
    path.write_text(text)
    project = dump(read_state(path))["projects"][0]
    milestone = project["milestones"][0]
    assert (project["created_at"], milestone["due_date"]) == ("2026-01-02T00:00:00.000Z", "2026-12-31")
    assert milestone["created_at"] == milestone["updated_at"] == "2026-01-02T03:04:05.000Z"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("gone.yaml", None, "cannot be read"),
        ("binary.yaml", b"\xff\xfe\xff", "cannot be read"),
        ("broken.json", b"{", "is not JSON"),
        ("deep.json", b"[" * 100_000, "is not JSON"),
        ("broken.yaml", b"a: [", "is not YAML"),
        ("deep.yaml", b"[" * 800, "is not YAML"),
        ("date.yaml", b"a: 2026-13-45", "is not YAML"),
        ("list.yaml", b"- a", "must be a mapping, not a list"),
        ("key.yaml", b"project: []", "unknown key 'project'; known are instance, users, groups, projects"),
    ],
)
def test_an_invalid_file_is_named(tmp_path: Path, name: str, content: bytes | None, message: str) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(StateError) as caught:
        read_state(path)
    assert str(caught.value).startswith(f"{path}: {message}")


def web(**more: Any) -> dict[str, Any]:
    """A state with one project of the given keys."""
    return {"users": [{"username": "ada"}], "projects": [{"path": "acme/web", **more}]}


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"projects": {}}, "projects: must be a list, not a mapping"),
        ({"projects": [7]}, "projects[0]: must be a mapping, not the int 7"),
        ({"projects": [{}]}, "projects[0].path: is missing"),
        ({"projects": [{"path": "web"}]}, "projects[0].path: must be a full path, namespace included"),
        ({"projects": [{"path": "a/b"}, {"path": "A/B"}]}, "projects[1].path: the path 'A/B' is taken"),
        ({"groups": [{"path": "a"}, {"path": "A"}]}, "groups[1].path: the path 'A' is taken"),
        ({"groups": [{"path": "a/b"}]}, "groups[0].path: its parent 'a' must come before it"),
        ({"users": [{"username": "a"}, {"username": "A"}]}, "users[1].username: the user 'A' is given twice"),
        (
            {"users": [{"username": "a", "tokens": ["x", "x"]}]},
            "users[0].tokens[1].token: the same token is given twice",
        ),
        (
            {"users": [{"username": "a", "notification_settings": {"notification_email": "x@y"}}]},
            "users[0].notification_settings: notification_email 'x@y' is none of the user's emails",
        ),
        ({"instance": {"dialect": "latin"}}, "instance.dialect: must be 'spec' or 'deployed', not 'latin'"),
        (web(id=0), "projects[0].id: must be above 0, not 0"),
        (web(id=True), "projects[0].id: must be a whole number, not true or false"),
        (web(archived="no"), "projects[0].archived: must be true or false, not a string"),
        (web(members=[{"user": "eve", "role": "guest"}]), "projects[0].members[0].user: there is no user 'eve'"),
        (
            web(members=[{"user": "ada", "role": "boss"}]),
            "projects[0].members[0].role: must be 'guest', 'planner', 'reporter', 'developer', 'maintainer' or 'owner', "
            "not 'boss'",
        ),
        (
            web(milestones=[{"title": 1.0}]),
            "projects[0].milestones[0].title: must be a string, not the float 1.0; quote it",
        ),
        (
            web(milestones=[{"title": "a", "created_at": "9999-12-31T23:59:59-23:00"}]),
            "projects[0].milestones[0].created_at: must be a time like 2026-12-31T23:59:59Z, "
            "not '9999-12-31T23:59:59-23:00'",
        ),
        (web(milestones=[{"title": ["a"]}]), "projects[0].milestones[0].title: must be a string, not a list"),
        (web(milestones=[{"title": " "}]), "projects[0].milestones[0].title: can't be blank"),
        (
            web(milestones=[{"title": "a", "due_date": "soon"}]),
            "projects[0].milestones[0].due_date: must be a date like 2026-12-31, not 'soon'",
        ),
        (
            web(milestones=[{"title": "a", "created_at": 7}]),
            "projects[0].milestones[0].created_at: must be a time like 2026-12-31T23:59:59Z, not 7",
        ),
        (
            web(milestones=[{"title": "a", "id": 3}, {"title": "b", "id": 3}]),
            "projects[0].milestones[1].id: the ID 3 is given twice",
        ),
        (web(milestones=["a"]), "projects[0].milestones[0]: must be a mapping, not a string"),
        (web(notification_settings=[]), "projects[0].notification_settings: must be a mapping, not a list"),
        (
            web(notification_settings={"eve": {}}),
            "projects[0].notification_settings.eve: there is no user 'eve'",
        ),
        (
            web(job_token_scope={"project_allowlist": [None]}),
            "projects[0].job_token_scope.project_allowlist[0]: must be a whole number, not null",
        ),
        (
            web(container_repository_protection_rules=[{"repository_path_pattern": "x"}]),
            "projects[0].container_repository_protection_rules[0]: needs a level for push or for delete",
        ),
        (
            web(
                container_repository_protection_rules=[
                    {"repository_path_pattern": "x", "minimum_access_level_for_push": "owner"},
                    {"repository_path_pattern": "x", "minimum_access_level_for_push": "admin"},
                ]
            ),
            "projects[0].container_repository_protection_rules: the repository_path_pattern 'x' is given twice",
        ),
    ],
)
def test_an_error_names_its_place(state: dict[str, Any], message: str) -> None:
    with pytest.raises(StateError) as caught:
        load(state)
    assert str(caught.value) == message


ODD: tuple[Any, ...] = (
    *(
        None,
        True,
        0,
        -1,
        7,
        1.5,
        10**30,
        "",
        "x",
        "ada",
        "owner",
        b"x",
        (1,),
        [],
        [[]],
        [None],
        {},
        {1: 2},
        {"id": "7"},
    ),
    *("0001-01-01T00:00:00+23:59", date(2026, 1, 1), datetime(1, 1, 1)),  # noqa: DTZ001 - as YAML reads it
)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to each value within a state."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in entries:
        yield (*path, key)
        yield from places(inner, (*path, key))


@pytest.mark.untraced
def test_a_state_with_any_odd_value_is_refused_or_loads_again() -> None:
    state = a_full_state()
    state["projects"][0] |= {
        "merge_requests": [1],
        "merge_request_notes": [{"merge_request": 1, "author": "ada", "body": "x"}],
    }
    before = dump(load(state))
    draw = Random(0)  # noqa: S311 - repeatable
    ways = list(places(before))
    refused = 0
    for _ in range(150):
        changed = deepcopy(before)
        inner, (*way, last) = changed, draw.choice(ways)
        for key in way:
            inner = inner[key]
        inner[last] = draw.choice(ODD)
        try:
            after = dump(load(changed))
        except StateError:
            refused += 1
        else:
            assert dump(load(after)) == after
    assert 75 < refused < 150


def test_groups_and_projects_that_are_only_referred_to_are_made_up(service: SandboxClient) -> None:
    target = {"project_allowlist": [101, 55, 55], "group_allowlist": [66]}
    state = {
        "users": [{"username": "root", "admin": True, "tokens": ["root-token"]}],
        "projects": [
            {"id": 100, "path": "acme/payments/api", "job_token_scope": target},
            {"id": 101, "path": "acme/web", "job_token_scope": {"group_allowlist": [66]}},
        ],
    }
    after = service.given(state).sandbox.state()
    assert [(group["id"], group["path"]) for group in after["groups"]] == [
        (1, "acme"),
        (2, "acme/payments"),
        (3, "unlisted"),
        (66, "unlisted-66"),
    ]
    assert [(project["id"], project["path"]) for project in after["projects"]] == [
        (100, "acme/payments/api"),
        (101, "acme/web"),
        (55, "unlisted/project-55"),
    ]
    listed = service.ask("GET /projects/100/job_token_scope/allowlist", user="root")[1]
    assert [each["path_with_namespace"] for each in listed] == ["unlisted/project-55", "acme/web"]
    assert service.given(after).sandbox.state() == after


def test_the_example_of_the_design_loads() -> None:
    state = {
        "instance": {"enforce_job_token_allowlist": False},
        "users": [
            {
                "id": 1,
                "username": "root",
                "name": "Root",
                "admin": True,
                "tokens": ["root-token"],
                "emails": ["root@example.com"],
            },
            {"id": 2, "username": "ada", "name": "Ada", "tokens": ["ada-token"], "emails": ["ada@example.com"]},
        ],
        "groups": [{"id": 10, "path": "acme", "members": [{"user": "ada", "role": "owner"}]}],
        "projects": [
            {
                "id": 100,
                "path": "acme/payments/api",
                "job_token_scope": {"project_allowlist": [101], "group_allowlist": [10]},
                "milestones": [{"title": "1.0", "due_date": date(2026, 12, 31), "state": "active"}],
            }
        ],
    }
    assert list(load(state).groups_by_path) == ["acme", "acme/payments", "unlisted"]


@pytest.mark.parametrize("name", ["examples/state.yaml", "reconciler/demo/state.yaml"])
def test_a_shipped_state_loads_and_dumps_unchanged(name: str) -> None:
    before = dump(read_state(Path(__file__).parents[2] / name))
    assert dump(load(before)) == before
    assert len(before["projects"]) == 6


@pytest.mark.parametrize("text", ["2026-01-02T03:04:05", "2026-01-02T04:04:05+01:00"])
def test_a_moment_without_an_offset_is_utc(text: str) -> None:
    assert dump(load(web(created_at=text)))["projects"][0]["created_at"] == "2026-01-02T03:04:05.000Z"


def test_a_bad_state_does_not_start() -> None:
    with pytest.raises(StateError, match="unknown key 'x'"), running({"x": 1}):
        pass


def test_the_clock_is_real_unless_the_state_sets_it(service: SandboxClient) -> None:
    state = a_service()
    line, body = "POST /projects/100/triggers", {"description": "x"}
    made = [service.given(state).ask(line, body)[1]["created_at"]]
    del state["instance"]["now"]
    before = datetime.now(UTC).replace(microsecond=0)
    made.append(service.given(state).ask(line, body)[1]["created_at"])
    assert made[0] == "2026-03-01T00:00:01Z"
    assert before <= datetime.fromisoformat(made[1]) <= datetime.now(UTC)
    assert service.sandbox.state()["instance"]["now"] is None
