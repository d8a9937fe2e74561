"""Groups and projects that an apply creates: their objects are listed at its end, at no request but its own."""

import pytest

from reconciler.service import Client
from tests.inventory.checkout import Checkout
from tests.states import a_small_service

FRESH = """\
apiVersion: reconciler/v1
kind: Group
metadata: {path: acme/fresh}
create: {}
spec: {milestones: {q: {}}}
---
apiVersion: reconciler/v1
kind: Project
metadata: {path: acme/fresh/App}
create: {}
spec: {milestones: {a: {}}, job_token_scope: {projects: [acme/lib]}, trigger_tokens: {t: {}}}
"""
ARCHIVED = """\
apiVersion: reconciler/v1
kind: Group
metadata: {path: acme/team}
create: {from_archive: ../../team.tar.gz}
spec: {milestones: {late: {}, of the archive: {}}}
"""


@pytest.mark.untraced
@pytest.mark.parametrize("saved", [False, True])
def test_what_an_apply_creates_is_listed_at_its_end(user: Checkout, *, saved: bool) -> None:
    user.write("manifests/new.yaml", FRESH)
    user.commit("first")
    assert user.plan("--out ../plan.json")[0] == 0
    user.cli.sandbox.clear_log()
    assert user.apply(f"--tokens-to ../tokens {'--plan ../plan.json' * saved}")[0] == 0
    read_last = {entry["target"].partition("?")[0] for entry in user.cli.sandbox.log()[-3:]}
    assert read_last == {
        "/api/v4/projects/acme%2Ffresh%2FApp/job_token_scope/allowlist",
        "/api/v4/projects/acme%2Ffresh%2FApp/milestones",
        "/api/v4/projects/acme%2Ffresh%2FApp/triggers",
    }
    assert user.listed() == [
        "group 12 q <first>",
        "project 104 acme/lib <first>",
        "project 104 a <first>",
        "project 104 t <first>",
    ]
    assert user.plan("--since applied") == (0, [])


@pytest.mark.untraced
def test_what_came_with_the_archive_of_a_group_is_listed_too(user: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Client, "pause", lambda *_: None)
    state = a_small_service("deployed")
    milestones = [{"title": "of the archive"}, {"title": "theirs"}]
    state["groups"].append(
        {
            "id": 20,
            "path": "template",
            "members": [{"user": "ada", "role": "owner"}],
            "labels": [{"name": "bug", "color": "#ff0000"}],
            "milestones": milestones,
        }
    )
    state["instance"] |= {"group_imports": {"looks": 3}}
    user.cli.sandbox.replace_state(state)
    assert user.run("backup --group template --to ../team.tar.gz")[0] == 0
    user.write("manifests/team.yaml", ARCHIVED)
    user.commit("first")
    created = [line for line in user.apply()[1] if line.endswith("done")]
    assert created == [
        "  + group acme/team                           done",
        '  + milestone "late"                          done',
    ]
    assert user.listed() == ["group 21 late <first>", "group 21 of the archive <first>"]
    assert user.plan("--since applied") == (0, [])
