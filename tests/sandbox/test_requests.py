"""Rules for every request: tokens, paths, parameters, pages, errors (spec sections 1, 5, 7, 8)."""

from typing import Any

import httpx
import pytest

from .sandbox_client import HOST, WEB, SandboxClient, a_service

UNAUTHORIZED = (401, {"message": "401 Unauthorized"})
MILESTONES = {"milestones": [{"title": str(number)} for number in range(1, 46)]}


def with_tokens(*tokens: Any) -> dict[str, Any]:
    """A service in which ada has those tokens."""
    state = a_service()
    state["users"][1]["tokens"] = [{"token": "ada-token", **token} for token in tokens]
    return state


def test_without_a_token_or_with_a_wrong_one_nobody_is_let_in(service: SandboxClient) -> None:
    service.given(a_service())
    assert service.ask("GET /user", user=None) == UNAUTHORIZED
    assert service.ask("GET /user", user="wrong") == UNAUTHORIZED
    assert service.ask("GET /user", user=None, Authorization="Basic ada-token") == UNAUTHORIZED


def test_a_token_is_taken_from_either_header_and_from_the_query(service: SandboxClient) -> None:
    service.given(a_service())
    assert service.ask("GET /user", user=None, Authorization="Bearer ada-token")[1]["id"] == 2
    assert service.ask("GET /user?private_token=ada-token", user=None)[1]["id"] == 2
    assert service.ask("GET /user?access_token=ada-token", user=None)[1]["id"] == 2


def test_an_expired_and_a_revoked_token_say_what_they_are(service: SandboxClient) -> None:
    service.given(with_tokens({"expires_at": "2026-03-01"}))
    expired = "Token is expired. You can either do re-authorization or token refresh."
    assert service.ask("GET /user") == (401, {"error": "invalid_token", "error_description": expired})
    service.given(with_tokens({"revoked": True}))
    revoked = "Token was revoked. You have to re-authorize from the user."
    assert service.ask("GET /user") == (401, {"error": "invalid_token", "error_description": revoked})


def test_a_token_for_reading_does_not_write(service: SandboxClient) -> None:
    service.given(with_tokens({"scopes": ["read_api"]}))
    assert service.ask("GET /notification_settings")[0] == 200
    body = {
        "error": "insufficient_scope",
        "error_description": "The request requires higher privileges than provided by the access token.",
        "scope": "api",
    }
    assert service.ask("PUT /notification_settings", {"level": "watch"}) == (403, body)


def test_a_narrow_token_knows_its_user_and_itself(service: SandboxClient) -> None:
    service.given(with_tokens({"scopes": ["read_user"]}))
    lines = ("GET /user", "GET /version", "GET /personal_access_tokens/self", f"GET {WEB}")
    assert [service.ask(line)[0] for line in lines] == [200, 200, 200, 403]


def test_a_path_that_is_none_is_not_found(service: SandboxClient) -> None:
    service.given(a_service())
    unknown = (404, {"error": "404 Not Found"})
    for path in ("/nothing", "/projects/acme/web", "/nothing/", "", "/projects/100/milestones/1/2/3"):
        assert service.ask(f"GET {path}") == unknown
    assert service.control("GET /elsewhere").json() == {"error": "404 Not Found"}


def test_a_method_a_path_does_not_have_is_not_allowed_and_in_production_not_found(service: SandboxClient) -> None:
    service.given(a_service())
    response = service.response("POST /projects/100/job_token_scope")
    assert (response.status_code, response.json()) == (405, {"error": "405 Not Allowed"})
    assert response.headers["allow"] == "GET, PATCH"
    service.given(a_service("deployed"))
    assert service.ask("POST /projects/100/job_token_scope") == (404, {"error": "404 Not Found"})


def test_a_head_is_a_get_without_a_body(service: SandboxClient) -> None:
    service.given(with_tokens({"scopes": ["read_api"]}))
    response = service.response("HEAD /user")
    assert (response.status_code, response.content) == (200, b"")


def test_a_project_without_a_namespace_is_not_found(service: SandboxClient) -> None:
    service.given(a_service())
    for key in ("web", "999", "9" * 30, "%C2%B2"):
        assert service.ask(f"GET /projects/{key}") == (404, {"message": "404 Project Not Found"})


def test_a_moved_project_is_pointed_at_and_not_written(service: SandboxClient) -> None:
    service.given(a_service(web={"renamed_from": ["acme/old"]}))
    response = service.response("GET /projects/Acme%2FOld/milestones?search=a/b&page=2")
    location = f"{HOST}/api/v4/projects/100/milestones?search=a/b&page=2"
    assert (response.status_code, response.headers["location"]) == (301, location)
    assert response.json() == f"This resource has been moved permanently to {location}"
    assert service.response("GET /projects/acme%2Fold").headers["location"] == f"{HOST}/api/v4/projects/100"
    body = {"message": "Non GET methods are not allowed for moved projects"}
    assert service.ask("PATCH /projects/acme%2Fold/job_token_scope", {"enabled": True}) == (405, body)
    assert service.ask("GET /projects/acme%2Fold", user="eve") == (404, {"message": "404 Project Not Found"})


def test_a_path_taken_again_is_the_new_project(service: SandboxClient) -> None:
    service.given(a_service(web={"renamed_from": ["acme/team/lib"]}))
    assert service.ask("GET /projects/acme%2Fteam%2Flib")[1]["id"] == 101


def test_parameters_are_read_from_json_forms_and_the_query(service: SandboxClient) -> None:
    service.given(a_service())
    url, headers = f"{service.sandbox.api_url}{WEB}/milestones", {"PRIVATE-TOKEN": "ada-token"}
    made = [
        httpx.post(url, json={"title": "a"}, headers=headers),
        httpx.post(url, data={"title": "b"}, headers=headers),
        httpx.post(url, params={"title": "c"}, headers=headers),
    ]
    assert [each.json()["title"] for each in made] == ["a", "b", "c"]
    assert [entry["body"] for entry in service.sandbox.log()] == [{"title": "a"}, None, None]


def test_fields_with_brackets_are_lists_and_mappings(service: SandboxClient) -> None:
    service.given(a_service(web={**MILESTONES, "trigger_tokens": [{"token": "glptt-secret", "owner": "ada"}]}))
    query = "?iids=9&iids[]=1&iids[]=2"
    assert len(service.ask(f"GET {WEB}/milestones{query}")[1]) == 2
    run = f"POST {WEB}/trigger/pipeline?ref=main&token=glptt-secret&variables[A]=b&variables[C]=d"
    assert service.ask(run, user=None)[0] == 201


@pytest.mark.parametrize(("sent", "stored"), [(7, "7"), (True, "true"), (False, "false")])
def test_other_values_become_strings(service: SandboxClient, sent: Any, stored: str) -> None:
    service.given(a_service())
    assert service.ask(f"POST {WEB}/milestones", {"title": sent})[1]["title"] == stored


@pytest.mark.parametrize(
    ("word", "enabled"), [("1", True), ("ON", True), ("yes", True), ("0", False), ("off", False), ("F", False)]
)
def test_words_for_true_and_false_are_understood(service: SandboxClient, word: str, enabled: bool) -> None:
    service.given(a_service())
    assert service.ask(f"PATCH {WEB}/job_token_scope", {"enabled": word}) == (204, None)
    assert service.ask(f"GET {WEB}/job_token_scope")[1]["inbound_enabled"] is enabled


def test_json_that_is_none_is_refused_and_json_that_is_no_object_is_ignored(service: SandboxClient) -> None:
    service.given(a_service())
    headers = {"PRIVATE-TOKEN": "ada-token", "Content-Type": "application/json"}
    url = f"{service.sandbox.api_url}/notification_settings"
    for content in (b"{", b"\xff", b"[" * 100_000):
        response = httpx.put(url, content=content, headers=headers)
        assert (response.status_code, response.json()) == (400, {"error": "Invalid JSON format"})
    for text in (b"\\ud800", b"\\u0000"):
        response = httpx.put(url, content=b'{"level": ["%s", 1]}' % text, headers=headers)
        assert (response.status_code, response.headers["content-type"], response.text) == (
            400,
            "text/plain",
            "Bad Request",
        )
    assert httpx.put(url, content=b'["\\u00e9"]', headers=headers).status_code == 200
    assert [entry["body"] for entry in service.sandbox.log()] == [None, None, None, None, None, ["é"]]


def test_a_body_of_another_type_is_refused(service: SandboxClient) -> None:
    service.given(a_service())
    url = f"{service.sandbox.api_url}/notification_settings"
    for type_ in ("text/plain", ""):
        headers = {"PRIVATE-TOKEN": "ada-token", "Content-Type": type_}
        response = httpx.put(url, content=b"level=watch", headers=headers)
        error = f"The provided content-type '{type_}' is not supported."
        assert (response.status_code, response.json()) == (415, {"error": error})


def test_the_case_of_the_type_of_a_body_does_not_matter(service: SandboxClient) -> None:
    service.given(a_service())
    url = f"{service.sandbox.api_url}/notification_settings"
    for type_, body in (
        ("APPLICATION/JSON", b'{"level": "watch"}'),
        ("Application/X-WWW-Form-URLEncoded", b"level=watch"),
    ):
        headers = {"PRIVATE-TOKEN": "ada-token", "Content-Type": type_}
        assert httpx.put(url, content=body, headers=headers).json()["level"] == "watch"
    assert [entry["body"] for entry in service.sandbox.log()] == [{"level": "watch"}, None]


def test_a_slash_at_the_end_of_a_path_is_ignored(service: SandboxClient, dialect: str) -> None:
    service.given(a_service(dialect))
    assert service.ask("GET /user/")[0] == 200
    assert service.ask("GET /user//")[0] == 404


def test_administrators_act_as_others_with_a_token_for_that(service: SandboxClient, dialect: str) -> None:
    state = a_service(dialect)
    state["users"][0]["tokens"] = [{"token": "root-token"}, {"token": "sudo-token", "scopes": ["api", "sudo"]}]
    service.given(state)
    assert service.ask("GET /user?sudo=2", user="sudo")[1]["username"] == "ada"
    assert service.ask("GET /user", user="sudo", Sudo="Max")[1]["username"] == "max"
    refused = {"message": "403 Forbidden - Must be admin to use sudo"}
    assert service.ask("GET /user?sudo=max") == (403, refused)
    lacking = {
        "error": "insufficient_scope",
        "error_description": "The request requires higher privileges than provided by the access token.",
        "scope": "sudo",
    }
    assert service.ask("GET /user", user="root", Sudo="ada") == (403, lacking)
    unknown = {"message": "404 User with ID or username 'nobody' Not Found"}
    assert service.ask("GET /user", user="sudo", Sudo="nobody") == (404, unknown)


def test_a_list_has_twenty_on_a_page_and_headers_that_lead_on(service: SandboxClient) -> None:
    service.given(a_service(web=MILESTONES))
    response = service.response(f"GET {WEB}/milestones?state=active&page=2&private_token=ada-token")
    assert len(response.json()) == 20
    paging = {name: value for name, value in response.headers.items() if name.startswith("x-")}
    base = f"{HOST}/api/v4{WEB}/milestones?state=active&"
    assert paging == {
        "x-request-id": "sandbox-000001",
        "x-page": "2",
        "x-per-page": "20",
        "x-next-page": "3",
        "x-prev-page": "1",
        "x-total": "45",
        "x-total-pages": "3",
    }
    assert response.headers["link"] == (
        f'<{base}page=1&per_page=20>; rel="prev", <{base}page=3&per_page=20>; rel="next", '
        f'<{base}page=1&per_page=20>; rel="first", <{base}page=3&per_page=20>; rel="last"'
    )


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("query", "shown", "page", "size", "following"),
    [
        ("", 20, "1", "20", "2"),
        ("?page=3", 5, "3", "20", ""),
        ("?page=9", 0, "9", "20", ""),
        ("?page=0", 20, "1", "20", "2"),
        ("?page=-1&per_page=-1", 20, "1", "20", "2"),
        ("?per_page=1000", 45, "1", "100", ""),
        ("?per_page=&page=", 20, "1", "20", "2"),
    ],
)
def test_pages_are_clamped(
    service: SandboxClient, query: str, shown: int, page: str, size: str, following: str
) -> None:
    service.given(a_service(web=MILESTONES))
    response = service.response(f"GET {WEB}/milestones{query}")
    headers = [response.headers[name] for name in ("x-page", "x-per-page", "x-next-page")]
    assert (len(response.json()), headers) == (shown, [page, size, following])


@pytest.mark.parametrize(
    ("query", "body"),
    [
        ("?per_page=0", {"error": "per_page has a value not allowed"}),
        ("?per_page=many&page=x", {"error": "page is invalid, per_page is invalid"}),
    ],
)
def test_a_page_of_nothing_is_refused(service: SandboxClient, query: str, body: Any) -> None:
    service.given(a_service("deployed"))
    assert service.ask(f"GET {WEB}/milestones{query}") == (400, body)


def test_past_the_last_page_nothing_leads_back(service: SandboxClient) -> None:
    service.given(a_service(web=MILESTONES))
    headers = service.response(f"GET {WEB}/milestones?page=9").headers
    assert (headers["x-prev-page"], headers["x-next-page"], 'rel="prev"' in headers["link"]) == ("", "", False)


@pytest.mark.parametrize(
    "path",
    [
        "/groups/acme/projects",
        f"{WEB}/milestones",
        f"{WEB}/milestones/1/issues",
        f"{WEB}/triggers",
        f"{WEB}/registry/protection/repository/rules",
        f"{WEB}/job_token_scope/allowlist",
        f"{WEB}/job_token_scope/groups_allowlist",
        f"{WEB}/merge_requests/1/notes",
    ],
)
def test_pages_are_checked_before_who_may_see_what(service: SandboxClient, path: str) -> None:
    service.given(a_service())
    assert service.ask(f"GET {path}?page=x", user="eve") == (400, {"message": {"page": ["is invalid"]}})
    assert service.ask(f"GET {path}?page=x", user=None) == (401, {"message": "401 Unauthorized"})


def test_an_empty_list_has_one_page(service: SandboxClient) -> None:
    service.given(a_service())
    response = service.response(f"GET {WEB}/milestones")
    assert (response.json(), response.headers["x-total"], response.headers["x-total-pages"]) == ([], "0", "1")


def test_missing_attributes_are_reported_together(service: SandboxClient) -> None:
    service.given(a_service())
    body = {"message": '400 (Bad request) "ref, token" not given'}
    assert service.ask(f"POST {WEB}/trigger/pipeline") == (400, body)
