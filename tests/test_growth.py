"""Nothing grows faster than the work: with four times as many objects, no function has more than its share to do.

The worlds have every sort of change in one target, and in many. Each command runs on both sizes; see `operations`.
"""

import json
from collections.abc import Callable
from functools import partial
from shutil import rmtree
from typing import Any

import pytest

from tests.cli_runner import CliRunner
from tests.operations import Operations, count, grown
from tests.states import a_small_service

pytestmark = pytest.mark.untraced
"""Others cover the same lines; tracing would take as long as the tests."""

FEW, MANY = 5, 20

Plain = dict[str, Any]
World = Callable[[int], tuple[list[Plain], Plain]]


def document(kind: str, spec: Plain, *, select: Plain | None = None, **metadata: Any) -> Plain:
    """Return a manifest."""
    whole = {"apiVersion": "reconciler/v1", "kind": kind, "metadata": metadata, "spec": spec}
    return whole if select is None else {**whole, "select": select}


def one_target(number: int) -> tuple[list[Plain], Plain]:
    """Return the manifests of few targets, with sections in which so many objects of each sort change, and a state."""
    each = range(number)
    milestones = {
        **{f"update {k}": {"description": f"new {k}"} for k in each},
        **{f"create {k}": {"due_date": "2026-12-01"} for k in each},
        **{f"name {k}": {"renamed_from": f"former {k}", "due_date": "2026-12-01"} for k in each},
        **{f"excepted {k}": {"description": f"as wanted {k}"} for k in each},
        **{f"Release-{k}-A": {"description": f"alike {k}"} for k in each},
    }
    exceptions = [
        {"section": "milestones", "item": f"excepted {k}", "until": "2999-01-01", "reason": f"for {k}"} for k in each
    ]
    profile = {
        "container_repository_protection_rules": {
            f"{{path}}/image-{k}*": {"minimum_access_level_for_push": "owner"} for k in each
        }
    }
    documents = [
        document("Profile", profile, name="rules", locks={"container_repository_protection_rules": "all"}),
        document(
            "Project",
            {
                "prune": ["milestones", "job_token_scope", "trigger_tokens"],
                "milestones": milestones,
                "job_token_scope": {"projects": [f"acme/Listed-{k}" for k in each] + [f"acme/more-{k}" for k in each]},
                "trigger_tokens": {f"token {k}": {"rotate_after": "30d"} for k in each},
            },
            path="acme/api",
            profiles=["rules"],
            exceptions=exceptions,
        ),
        document("Project", {"milestones": {"only": {}}, "trigger_tokens": {"only": {}}}, path="acme/lib"),
        document(
            "Group",
            {
                "prune": ["epics"],
                "epics": {
                    "top": {},
                    **{f"new {k}": {"parent": "top"} for k in each},
                    **{f"epic {k}": {"description": f"new {k}", "parent": f"new {k}"} for k in each},
                },
            },
            path="acme",
        ),
    ]
    state = a_small_service("deployed")
    state["projects"][0] |= {
        "milestones": [
            *({"title": f"update {k}", "description": "old"} for k in each),
            *({"title": f"former {k}"} for k in each),
            *({"title": f"excepted {k}", "description": "as it is"} for k in each),
            *({"title": f"release {k} a", "description": f"alike {k}"} for k in each),
            *({"title": f"going {k} away", "description": f"gone {k}"} for k in each),
        ],
        "job_token_scope": {
            "inbound_enabled": True,
            "project_allowlist": [1000 + k for k in each] + [3000 + k for k in each],
        },
        "container_repository_protection_rules": [
            {"repository_path_pattern": f"acme/api/image-{k}*", "minimum_access_level_for_push": "maintainer"}
            for k in each
        ],
        "trigger_tokens": [
            *({"description": f"token {k}", "owner": "ada", "created_at": "2026-01-01T00:00:00Z"} for k in each),
            *({"description": f"token {k}", "owner": "ada"} for k in each),
            *({"description": f"gone {k}", "owner": "ada"} for k in each),
        ],
    }
    state["projects"][1] |= {
        "milestones": [{"title": f"unmanaged {k}"} for k in each],
        "trigger_tokens": [{"description": f"unmanaged {k}", "owner": "ada"} for k in each],
    }
    others = {"listed": 1000, "more": 2000, "unlisted": 3000}
    state["projects"] += [{"id": first + k, "path": f"acme/{name}-{k}"} for name, first in others.items() for k in each]
    state["groups"][0]["epics"] = [
        *({"title": f"epic {k}", "description": "old"} for k in each),
        *({"title": f"gone {k}"} for k in each),
    ]
    return documents, state


def many_targets(number: int) -> tuple[list[Plain], Plain]:
    """Return the manifests of so many groups, sets, profiles and projects, and a state in which all of these change."""
    documents = []
    state = a_small_service("deployed")
    state["projects"] = []
    for k in range(number):
        group = f"team-{k}"
        shared = {"milestones": {f"of {k}": {"description": "of {path}"}, "same": {}}}
        own = {
            "prune": ["milestones"],
            "milestones": {"own": {"description": f"of {group}/api", "due_date": "2026-12-01"}},
            "approval_settings": {"allow_committer_approval": False},
            "job_token_scope": {"enabled": True, "projects": [f"{group}/lib"]},
            "notification_settings": {"level": "custom", "events": {"new_issue": True}},
            "container_repository_protection_rules": {"{path}/prod*": {"minimum_access_level_for_push": "owner"}},
            "trigger_tokens": {"ci": {}},
        }
        select = {"group": group, "include": [f"{group}/**", "*/api"], "exclude": [f"*/x-{k}/*", f"{group}/none"]}
        pair = {"projects": [f"{group}/api", f"team-{(k + 1) % number}/lib"]}
        documents += [
            document("Group", {"approval_settings": {"allow_author_approval": k % 2 == 0}}, path=group),
            document("Profile", shared, name=f"profile-{k}"),
            document("ProjectSet", {}, select=select, name=f"set-{k}", profiles=[f"profile-{k}"], priority=k % 3),
            document("ProjectSet", {"milestones": {f"every {k}": {}}}, select=pair, name=f"pair-{k}", priority=7),
            document("Project", own, path=f"{group}/api", labels={"team": f"t{k}"}),
        ]
        members = [{"user": "ada", "role": "owner"}]
        settings = {"allow_author_approval": True, "retain_approvals_on_push": k % 2 == 0}
        state["groups"].append({"id": 500 + k, "path": group, "members": members})
        state["projects"] += [
            {
                "id": 5000 + k,
                "path": f"{group}/api",
                "milestones": [{"title": "own"}, {"title": "gone"}, {"title": f"stray {k}"}],
                "merge_request_approval_settings": settings,
            },
            {"id": 9000 + k, "path": f"{group}/lib", "milestones": [{"title": "same"}]},
        ]
    return documents, state


def many_layers(number: int) -> tuple[list[Plain], Plain]:
    """Return the manifests of one project that so many sets select, and a state in which an item of each changes."""
    select = {"projects": ["acme/api"]}
    documents = [
        document("ProjectSet", {"milestones": {f"of {k}": {"state": "closed"}}}, select=select, name=f"set-{k}")
        for k in range(number)
    ]
    state = a_small_service("deployed")
    state["projects"][0]["milestones"] = [{"title": f"of {k}"} for k in range(number)]
    return documents, state


def one_file(number: int) -> tuple[list[Plain], Plain]:
    """Return the manifest of one project, and a state in which so many values and entries of it are others."""
    items = {f"item {k}": {"description": "old", "state": "closed"} for k in range(number)}
    listed = [f"acme/listed-{k}" for k in range(number)]
    spec = {"milestones": items, "job_token_scope": {"projects": listed}}
    state = a_small_service("deployed")
    state["projects"][0] |= {
        "milestones": [{"title": name, "description": "new"} for name in items],
        "job_token_scope": {"inbound_enabled": True, "project_allowlist": [1000 + k for k in range(0, number, 2)]},
    }
    state["projects"] += [{"id": 1000 + k, "path": path} for k, path in enumerate(listed)]
    return [document("Project", spec, path="acme/api")], state


APPLY = "apply --plan plan.json --yes --allow-deletes 999 --tokens-to tokens --journal journal --report json=done.json"
ONE_TARGET = [
    "plan manifests.yaml --out plan.json --concurrency 1 --format html",
    "drift manifests.yaml --baseline plan.json --concurrency 1",
    "accept copy --concurrency 1",
    "export --project acme/api --project acme/lib -o folder --concurrency 1",
    f"{APPLY} --max-failures 50% --concurrency 1",
    "revert done.json --out back.json --allow-deletes 999 --concurrency 1",
    "plan manifests.yaml --retry-failed done.json --concurrency 1",
    "show back.json --since plan.json",
]
MANY_TARGETS = [
    "render manifests.yaml",
    "plan manifests.yaml --out plan.json --concurrency 1",
    "show plan.json --format html",
    "show plan.json --format markdown",
    "merge plan.json --format json",
    "accept copy --concurrency 1",
    "export --group team-0 --group team-1 -o copy --concurrency 1",
    f"{APPLY} --concurrency 1",
    "revert done.json --concurrency 1",
]
MANY_LAYERS = [
    "plan manifests.yaml --concurrency 1",
    "accept copy --diff --concurrency 1",
]
ONE_FILE = ["export --project acme/api -o copy --concurrency 1"]
WORLDS = [
    (one_target, ONE_TARGET),
    (many_targets, MANY_TARGETS),
    (many_layers, MANY_LAYERS),
    (one_file, ONE_FILE),
]


@pytest.mark.parametrize(("world", "lines"), WORLDS)
def test_no_function_has_more_than_its_share_to_do(world: World, lines: list[str], cli_runner: CliRunner) -> None:
    few = measured(lines, world(FEW), cli_runner)
    many = measured(lines, world(MANY), cli_runner)
    assert {line: more for line in lines if (more := grown(few[line], many[line]))} == {}


def measured(lines: list[str], world: tuple[list[Plain], Plain], cli_runner: CliRunner) -> dict[str, Operations]:
    """Return the operations of each command in a world of its own."""
    documents, state = world
    text = "\n---\n".join(map(json.dumps, documents))
    for each in cli_runner.folder.iterdir():
        rmtree(each) if each.is_dir() else each.unlink()
    cli_runner.write("manifests.yaml", text)
    cli_runner.write("copy/manifests.yaml", text)
    cli_runner.sandbox.replace_state(state)
    codes: dict[str, int] = {}

    def run(line: str) -> None:
        codes[line] = cli_runner(line).code

    found = {line: count(partial(run, line)) for line in lines}
    assert {line: code for line, code in codes.items() if code not in {0, 2, 3}} == {}
    return found
