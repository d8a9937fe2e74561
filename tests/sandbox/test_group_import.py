"""Imports of groups from archives that the sandbox has made: who may, what arrives, and when."""

import gzip
from typing import Any

import httpx
import pytest

from .sandbox_client import Answer, SandboxClient, a_service

DAY = "2026-12-31"


@pytest.fixture
def acme(service: SandboxClient, dialect: str) -> SandboxClient:
    """The small service, in each dialect, with something in its groups, and an archive of acme a minute."""
    holding = {
        "visibility": "internal",
        "description": "All of it",
        "labels": [{"name": "bug"}, {"name": "idea"}],
        "milestones": [{"title": "1.0", "due_date": DAY}],
        "epics": [{"id": 7, "title": "Big"}, {"id": 8, "title": "Part", "parent_id": 7, "labels": ["bug"]}],
    }
    state = a_service(dialect, acme=holding, team={"milestones": [{"title": "2.0"}], "visibility": "internal"})
    state["groups"][1]["members"] = [{"user": "max", "role": "developer"}]
    state["groups"] += [{"id": 20, "path": "open", "visibility": "public", "members": state["groups"][0]["members"]}]
    state["instance"]["group_exports"] = {"downloads_per_minute": 0}
    return service.given(state)


def archive(acme: SandboxClient) -> bytes:
    assert acme.ask("POST /groups/acme/export")[0] == 202
    return acme.response("GET /groups/acme/export/download").content


def settings(acme: SandboxClient, **values: Any) -> None:
    state = acme.sandbox.state()
    state["instance"].update(values)
    acme.given(state)


def upload(
    acme: SandboxClient, content: bytes | None, user: str = "ada", file: str = "a.tar.gz", **fields: Any
) -> Answer:
    sent = {name: str(each) for name, each in {"name": "Copy", "path": "copy", **fields}.items() if each is not None}
    files = {"file": (file, content)} if content is not None else {"other": ("", b"")}
    response = acme.post("/groups/import", user, data=sent, files=files)
    return response.status_code, response.json() if "json" in response.headers["content-type"] else response.text


def counts(acme: SandboxClient, group: str = "copy") -> dict[str, str]:
    names = ("subgroups", "labels", "milestones", "epics")
    return {name: acme.response(f"GET /groups/{group}/{name}?per_page=1").headers["x-total"] for name in names}


@pytest.mark.untraced
def test_a_group_arrives_at_once(acme: SandboxClient, dialect: str) -> None:
    assert upload(acme, archive(acme), parent_id=20) == (202, {"message": "202 Accepted"})
    assert acme.sandbox.log()[-1]["body"] == {
        "name": "Copy",
        "path": "copy",
        "parent_id": "20",
        "file": {"file": "a.tar.gz", "bytes": len(archive(acme))},
    }
    made = acme.ask("GET /groups/open%2Fcopy")[1]
    assert (made["name"], made["description"]) == ("Copy", "All of it")
    assert made["visibility"] == ("internal" if dialect == "deployed" else "public")
    assert counts(acme, "open%2Fcopy") == {"subgroups": "1", "labels": "2", "milestones": "1", "epics": "2"}
    big, part = sorted(acme.ask("GET /groups/open%2Fcopy/epics")[1], key=lambda epic: epic["iid"])
    assert (part["title"], part["parent_id"], part["labels"]) == ("Part", big["id"], ["bug"])
    assert big["id"] not in (7, 8)
    assert acme.ask("GET /groups/open%2Fcopy/milestones")[1][0]["due_date"] == DAY
    below = acme.ask("GET /groups/open/descendant_groups")[1]
    assert [each["full_path"] for each in below] == ["open/copy", "open/copy/team"]
    assert acme.ask("GET /groups/open%2Fcopy%2Fteam/milestones", user="max")[1][0]["title"] == "2.0"
    assert acme.ask("GET /groups/open%2Fcopy/projects?include_subgroups=true")[1] == []


def test_a_group_arrives_in_parts(acme: SandboxClient, dialect: str) -> None:
    content = archive(acme)
    settings(acme, group_imports={"looks": 3})
    assert upload(acme, content)[0] == 202
    assert acme.ask("GET /groups/copy")[1]["visibility"] == "private"
    found = [[int(each) for each in counts(acme).values()] for _ in range(5)]
    assert found == [[0, 0, 0, 0], [0, 1, 0, 0], [0, 2, 1, 1], [1, 2, 1, 2], [1, 2, 1, 2]]
    assert acme.ask("GET /groups/copy")[1]["visibility"] == ("internal" if dialect == "deployed" else "private")
    assert acme.changes()[-20:] == [False] * 20

    # what is asked for while it is not there arrives too; what was made meanwhile stays
    assert upload(acme, content, path="next", name="Next")[0] == 202
    assert acme.ask("POST /groups/next/milestones", {"title": "2.0"})[0] == 201
    assert [acme.ask("GET /groups/next%2Fteam")[0] for _ in range(4)] == [404, 404, 404, 200]
    assert counts(acme, "next%2Fteam")["milestones"] == "0"
    assert upload(acme, content, path="third", name="Third")[0] == 202
    number = acme.ask("GET /groups/third")[1]["id"]
    for path, name in (("team", "mine"), ("other", "team")):
        assert acme.ask("POST /groups", {"path": path, "name": name, "parent_id": number})[0] == 201
    for title in ("bug", "idea"):
        assert acme.ask("POST /groups/third/milestones", {"title": title})[0] == 201
    assert [counts(acme, "third") for _ in range(4)][-1]["subgroups"] == "2"
    assert counts(acme, "third%2Fteam")["milestones"] == "0"


@pytest.mark.untraced
@pytest.mark.parametrize(
    "content", [b"", b"no archive", gzip.compress(b"{}", mtime=0), gzip.compress(b"x", mtime=0)[:-4]]
)
def test_nothing_arrives_of_what_is_no_archive(acme: SandboxClient, content: bytes) -> None:
    assert upload(acme, content)[0] == 202
    assert set(counts(acme).values()) == {"0"}


def test_an_import_that_fails_tells_nobody(acme: SandboxClient) -> None:
    content = archive(acme)
    settings(acme, group_imports={"fails": True})
    assert upload(acme, content)[0] == 202
    assert [set(counts(acme).values()) for _ in range(2)] == [{"0"}] * 2


def test_who_may_import_and_what(acme: SandboxClient, dialect: str) -> None:
    content = archive(acme)
    assert upload(acme, content, parent_id=99) == (404, {"message": "404 Group Not Found"})
    assert upload(acme, content, parent_id=12) == (404, {"message": "404 Group Not Found"})
    assert upload(acme, content, "max", parent_id=11) == (403, {"message": "403 Forbidden"})
    assert upload(acme, content, "none") == (401, {"message": "401 Unauthorized"})
    ending = "You need to upload a GitLab project export archive (ending in .gz)."
    assert upload(acme, content, file="a.tar") == (422, {"message": {"error": ending}})
    taken = '{"message": "Failed to save group {:path=>[\\"has already been taken\\"]}"}'
    assert upload(acme, content, path="ACME") == (400, httpx.Response(200, text=taken).json())
    assert upload(acme, None) == (
        (400, {"error": "file is missing"})
        if dialect == "deployed"
        else (400, {"message": '400 (Bad request) "file" not given'})
    )
    wrong = {"name": "x", "path": "xx", "file": "text"}
    assert acme.ask("POST /groups/import", wrong)[1] in (
        {"error": "file is invalid"},
        {"message": {"file": ["is invalid"]}},
    )
    assert acme.ask("PUT /application/settings", {"max_import_size": 1}, user="root")[1]["max_import_size"] == 1
    assert upload(acme, bytes(1_100_000)) == (413, "Request Entity Too Large\n")
    assert upload(acme, content)[0] == 202


def test_a_user_exports_six_times_a_minute(acme: SandboxClient) -> None:
    asked = [acme.ask(f"POST /groups/{path}/export") for path in ("far", *["acme", "open"] * 3, "acme")]
    assert [status for status, _ in asked] == [404, *[202] * 6, 429]
    message = {"error": "This endpoint has been requested too many times. Try again later."}
    assert asked[-1][1] == {"message": message}
    assert acme.ask("POST /groups/acme/export", user="root")[0] == 202


def test_a_form_of_any_cut(acme: SandboxClient) -> None:
    head = b'--b\r\nContent-Disposition: form-data; name="path"\r\n\r\ncut\r\n'
    file = b'--b\r\nContent-Disposition: form-data; name="file"; filename="x.gz"\r\n\r\n\r\n--c\r\n--b--\r\n'
    name = b'--b\r\nContent-Disposition: form-data; name="name"\r\n\r\n\xc3\xa4\r\n'
    whole = b"before" + b"\r\n" + head + name + file

    def send(body: bytes, content_type: str = 'multipart/form-data; boundary="b"') -> httpx.Response:
        parts = (body[index : index + 1] for index in range(len(body)))
        return acme.post("/groups/import", headers={"content-type": content_type}, content=parts)

    assert send(whole).status_code == 202
    assert acme.sandbox.log()[-1]["body"] == {"path": "cut", "name": "ä", "file": {"file": "x.gz", "bytes": 5}}
    assert [send(each).status_code for each in (whole[:-12], b"")] == [400, 400]
    assert acme.sandbox.log()[-2]["body"] == {"path": "cut", "name": "ä"}
    assert send(whole, "multipart/form-data").status_code == 400
