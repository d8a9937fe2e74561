"""Groups and projects that manifests create: from nothing, from archives and by import, and what the service refuses."""

import re
from typing import Any

import httpx
import pytest

from tests.acceptance.installation import DEVELOPER, World, nothing

pytestmark = pytest.mark.untraced
"""Others cover the same lines; tracing would take as long as the tests."""

EXPORT = "5m"
"""For how long the archive of a group is waited for."""


def test_groups_and_projects_from_nothing(world: World) -> None:
    world.write(
        "manifests/all.yaml",
        """
kind: Group
metadata: {path: acme/one}
create: {name: Übung 計画}
spec: {notification_settings: {level: watch}, milestones: {"2027": {due_date: 2027-12-31}}}
---
kind: Group
metadata: {path: acme/one/deep}
create: {}
---
kind: Project
metadata: {path: acme/one/deep/api}
create: {name: Übung}
spec:
  job_token_scope: {projects: [acme/one/loud], groups: [acme/one/deep]}
---
kind: Project
metadata: {path: acme/one/loud}
create: {visibility: public}
---
kind: ProjectSet
metadata: {name: all}
select: {group: acme/one}
spec: {milestones: {"1.0": {}}, trigger_tokens: {nightly: {}}}
""",
    )
    world.expect("plan --out plan.json", 0, PLANNED)
    world.group("one")
    world.expect("apply --plan plan.json --yes --tokens-to tokens", 3, STALE)
    assert world.ask("GET", f"groups/{world.at('one/deep')}").status_code == httpx.codes.NOT_FOUND
    world.expect("apply --yes --tokens-to tokens", 3, CREATED)
    made = [world.value("GET", f"projects/{world.at(f'one/{path}')}") for path in ("deep/api", "loud")]
    assert [(each["name"], each["visibility"]) for each in made] == [("Übung", "private"), ("loud", "private")]
    world.expect("plan --detailed-exitcode", 0, nothing(11))


def test_what_the_service_refuses_to_create(world: World) -> None:
    member = world.user("member")
    world.value("POST", f"groups/{world.ids['']}/members", {"user_id": member.id, "access_level": DEVELOPER})
    world.group("held")
    world.project("taken")
    world.write(
        "manifests/all.yaml",
        """
kind: Group
metadata: {path: acme/taken}
create: {}
---
kind: Project
metadata: {path: acme/taken/below}
create: {}
spec: {milestones: {a: {}}}
---
kind: Project
metadata: {path: acme/held}
create: {}
spec: {milestones: {a: {}}}
---
kind: Group
metadata: {path: acme/loud}
create: {visibility: public}
---
kind: Project
metadata: {path: acme/nowhere/app}
create: {}
---
kind: Project
metadata: {path: acme/app}
create: {}
spec: {milestones: {a: {}}}
""",
    )
    world.expect("apply --yes --exclude acme/nowhere/* --exclude acme/held", 3, BY_A_DEVELOPER, token=member.token)
    # others may see a project that the member has made only once the service's jobs have run
    world.expect("apply --yes --exclude acme/app", 3, REFUSED)


def test_a_group_from_the_archive_of_another(world: World) -> None:
    for path in ("template", "template/sub"):
        world.value("POST", f"groups/{world.group(path)}/milestones", {"title": f"of {path}"})
    world.write(
        "manifests/all.yaml",
        """
kind: Group
metadata: {path: acme/copy}
create: {from_archive: ../template.tar.gz}
spec: {milestones: {of template: {due_date: 2027-12-31}, of nobody: {}}}
""",
    )
    file = world.folder / "template.tar.gz"
    files = {"file": ("x.tar.gz", b"")}
    # with a parent that is not there, nothing can be created
    answer = httpx.post(
        f"{world.installation.api_url}/groups/import",
        data={"name": "x", "path": "x", "parent_id": "999999999"},
        files=files,
        headers={"private-token": world.owner.token},
        timeout=120,
    )
    complete = answer.status_code == httpx.codes.NOT_FOUND
    done = world.run(f"backup --group acme/template --to template.tar.gz --wait {EXPORT if complete else '1s'}")
    if complete:
        assert (done.code, done.out.split()[:3]) == (0, ["template.tar.gz:", f"{file.stat().st_size:,}", "bytes,"])
        done = world.run("apply --yes")
        assert (done.code, done.lines[:-1]) == (0, COPIED)  # how often it is looked for is up to the service's jobs
        subgroup = world.value("GET", f"groups/{world.at('copy/sub')}/milestones")
        assert [each["title"] for each in subgroup] == ["of template/sub"]
        world.expect("plan --detailed-exitcode", 0, nothing(2))
        return
    world.installation.remarks.append(f"it takes no archives ({answer.status_code} {answer.text}): its words are told")
    assert (done.code, done.out, file.exists()) == (1, "", False)
    assert "no new archive after" in done.err
    file.write_bytes(b"")
    done = world.run("apply --yes")
    (line,) = [line for line in done.lines if "group acme/copy failed" in line]
    assert (done.code, answer.json()["error"] in line) == (3, True)


def test_imports_that_the_service_refuses(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCEPTANCE_IMPORT", secret := "ghp-not-to-be-shown")
    world.write(
        "manifests/all.yaml",
        """
kind: Project
metadata: {path: acme/app}
create: {import: {github: {repo_id: 42, token_env: ACCEPTANCE_IMPORT}}}
spec: {milestones: {a: {}}}
---
kind: Project
metadata: {path: acme/lint}
create:
  import:
    bitbucket_server:
      {url: "https://bitbucket.example.com", username: ada, token_env: ACCEPTANCE_IMPORT, project: TOOLS, repo: lint}
""",
    )
    done = world.run("apply --yes")
    assert (done.code, secret in done.out + done.err) == (3, False)
    assert '+ milestone "a" skipped: project acme/app was not created' in done.lines
    to = {"personal_access_token": secret, "target_namespace": world.name}
    server = {"url": "https://bitbucket.example.com", "username": "ada", "project": "TOOLS", "repo": "lint"}
    asked: dict[str, tuple[str, dict[str, Any]]] = {
        "app": ("import/github", {"repo_id": 42}),
        "lint": ("import/bitbucket_server", {f"bitbucket_server_{name}": value for name, value in server.items()}),
    }
    for name, (path, body) in asked.items():
        answer = world.ask("POST", path, {**to, **body, "new_name": name})
        (line,) = [line for line in done.lines if line.startswith(f"+ project acme/{name} failed: ")]
        if answer.is_server_error:
            world.installation.remarks.append(f"{path} is answered {answer.status_code}: its refusal was not compared")
            continue
        sentence = re.findall(r"[\w'][^\"\[\]{}]{15,}", answer.text)[-1].removesuffix(".")
        assert f"POST {path}: {answer.status_code} {sentence}" in line
        assert world.ask("GET", f"projects/{world.at(name)}").status_code == httpx.codes.NOT_FOUND


def test_a_milestone_of_projects_becomes_their_groups(world: World) -> None:
    world.group("sub")
    for path in ("app", "lib", "sub/far"):
        world.project(path)
    for path, title in (("lib", "1.0"), ("app", "1.0"), ("app", "1.1"), ("sub/far", "2.0")):
        world.value("POST", f"projects/{world.ids[path]}/milestones", {"title": title})
    world.write(
        "manifests/all.yaml",
        """
kind: Group
metadata: {path: acme}
spec:
  milestones:
    "1.0": {due_date: 2027-12-31, state: closed, promote: true}
    "1.1": {}
    "2.0": {promote: true}
    "3.0": {promote: true}
""",
    )
    world.expect("apply --yes", 3, PROMOTED)
    mine = world.value("GET", f"groups/{world.ids['']}/milestones?include_descendants=true")
    held = {(each["title"], each.get("group_id"), each["state"], each["due_date"]) for each in mine}
    group = world.ids[""]
    assert held == {
        ("1.0", group, "closed", "2027-12-31"),
        ("3.0", group, "active", None),
        ("1.1", None, "active", None),
        ("2.0", None, "active", None),
    }
    world.expect("plan", 3, NOT_PROMOTED)


PLANNED = """
group acme/one
+ group acme/one (name: Übung 計画, visibility: private)
+ milestone "2027" due_date: 2027-12-31
~ notification settings level: watch
group acme/one/deep
+ group acme/one/deep (name: deep, visibility: private)
project acme/one/deep/api
+ project acme/one/deep/api (name: Übung, visibility: private)
+ allowlisted project "acme/one/loud"
+ allowlisted group "acme/one/deep"
+ milestone "1.0"
+ trigger token "nightly"
project acme/one/loud
+ project acme/one/loud (name: loud, visibility: public)
+ milestone "1.0"
+ trigger token "nightly"
apply will refuse this plan: it creates 2 trigger tokens, whose value is shown only once; add --tokens-to FILE or --tokens-command CMD
Plan: 11 to create, 1 to update. 12 writes to apply; 3 requests were made to plan.
"""
EXISTS = "stale: group acme/one exists now (ID N); plan again"
STALE = f"""
group acme/one
+ group acme/one {EXISTS}
+ milestone "2027" {EXISTS}
~ notification settings {EXISTS}
group acme/one/deep
+ group acme/one/deep {EXISTS}
project acme/one/deep/api
+ project acme/one/deep/api {EXISTS}
+ allowlisted project "acme/one/loud" {EXISTS}
+ allowlisted group "acme/one/deep" {EXISTS}
+ milestone "1.0" {EXISTS}
+ trigger token "nightly" {EXISTS}
project acme/one/loud
+ project acme/one/loud {EXISTS}
+ milestone "1.0" {EXISTS}
+ trigger token "nightly" {EXISTS}
Applied: 12 stale. 1 request made.
"""
CREATED = """
group acme/one
+ milestone "2027" done
~ notification settings done
group acme/one/deep
+ group acme/one/deep done
project acme/one/deep/api
+ project acme/one/deep/api done
+ allowlisted project "acme/one/loud" done
+ allowlisted group "acme/one/deep" done
+ milestone "1.0" done
+ trigger token "nightly" done
project acme/one/loud
+ project acme/one/loud dropped by the service: visibility: asked for public, the service made it private
+ milestone "1.0" done
+ trigger token "nightly" done
Applied: 9 created, 1 updated, 1 dropped by the service. 36 requests made.
"""
TOO_VISIBLE = "! group acme/loud: the service refuses `public` in group acme, which is private; correct `visibility`, or leave it out"
BY_A_DEVELOPER = f"""
group acme/loud
{TOO_VISIBLE}
group acme/taken
! group acme/taken: this is a project, not a group; declare it with `kind: Project`
project acme/app
+ project acme/app done
+ milestone "a" done
project acme/taken/below
! project acme/taken/below: group acme/taken cannot be created
Applied: 2 created, 3 problems. 11 requests made.
"""
REFUSED = f"""
group acme/loud
{TOO_VISIBLE}
group acme/taken
! group acme/taken: this is a project, not a group; declare it with `kind: Project`
project acme/held
! project acme/held: this is a group, not a project; declare it with `kind: Group`
project acme/nowhere/app
! project acme/nowhere/app: group acme/nowhere does not exist, or is not visible to this token, and this run does not create it; declare group acme/nowhere with `create`, or correct the path
project acme/taken/below
! project acme/taken/below: group acme/taken cannot be created
Applied: 5 problems. 8 requests made.
"""
COPIED = [
    "group acme/copy",
    "+ group acme/copy done",
    '+ milestone "of nobody" done',
    '~ milestone "of template" done',
]
PROMOTED = """
group acme
+ milestone "3.0" done
~ milestone "1.0" done
! milestone "1.1": project acme/app already uses this name, which must be unique in a group and everything below it; declare `promote: true` to make it the group's, or choose another name
! milestone "2.0": project acme/sub/far already uses this name, which must be unique in a group and everything below it; leave it out here, or choose another name
Applied: 1 created, 1 updated, 2 problems. 6 requests made.
"""
NOT_PROMOTED = """
group acme
! milestone "1.1": project acme/app already uses this name, which must be unique in a group and everything below it; declare `promote: true` to make it the group's, or choose another name
! milestone "2.0": project acme/sub/far already uses this name, which must be unique in a group and everything below it; leave it out here, or choose another name
Plan: 2 problems. 1 request was made to plan.
"""
