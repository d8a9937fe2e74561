"""Pipeline trigger tokens: spec section 4.8, and how production differs."""

from typing import Any

import pytest

from .sandbox_client import CREATED, HOST, WEB, SandboxClient, a_service

TRIGGERS = f"{WEB}/triggers"
FORBIDDEN = (403, {"message": "403 Forbidden"})
GONE = (404, {"message": "404 Not found"})
BOTH = pytest.mark.parametrize("dialect", ["spec", "deployed"])
SECRET = "glptt-1234567890"
OURS = {"trigger_tokens": [{"id": 5, "description": "nightly", "owner": "ada", "token": SECRET}]}


def user(number: int, username: str, dialect: str = "spec") -> dict[str, Any]:
    """The record of an owner."""
    return {
        "id": number,
        "username": username,
        "public_email": "" if dialect == "spec" else None,
        "name": username.capitalize(),
        "state": "active",
        "locked": False,
        "avatar_url": f"{HOST}/avatar.png",
        "web_url": f"{HOST}/{username}",
    }


NIGHTLY = {
    "id": 5,
    "description": "nightly",
    "created_at": CREATED,
    "updated_at": CREATED,
    "last_used": None,
    "token": SECRET,
    "owner": user(2, "ada"),
}


def test_the_record_of_a_token_has_an_expiry_in_production_only(service: SandboxClient) -> None:
    service.given(a_service(web=OURS))
    assert service.ask(f"GET {TRIGGERS}") == (200, [NIGHTLY])
    service.given(a_service("deployed", web=OURS))
    times = {name: CREATED.replace("Z", ".000Z") for name in ("created_at", "updated_at")}
    assert service.ask(f"GET {TRIGGERS}/5") == (
        200,
        {**NIGHTLY, **times, "expires_at": None, "owner": user(2, "ada", "deployed")},
    )


@BOTH
def test_a_token_lives(service: SandboxClient, dialect: str) -> None:
    service.given(a_service(dialect))
    status, made = service.ask(f"POST {TRIGGERS}", {"description": "nightly"})
    assert (status, made["id"], made["description"], made["token"][:6], len(made["token"])) == (
        201,
        1,
        "nightly",
        "glptt-",
        46,
    )
    assert service.ask(f"GET {TRIGGERS}") == (200, [made])
    status, renamed = service.ask(f"PUT {TRIGGERS}/1", {"description": "daily"})
    assert (status, renamed) == (200, {**made, "description": "daily", "updated_at": renamed["updated_at"]})
    assert renamed["updated_at"] > made["updated_at"]
    assert service.ask(f"PUT {TRIGGERS}/1", {"description": "daily"}) == (200, renamed)
    assert service.ask(f"DELETE {TRIGGERS}/1") == (204, None)
    assert [service.ask(f"{method} {TRIGGERS}/1") for method in ("GET", "PUT", "DELETE")] == [GONE] * 3
    assert service.changes()[:6] == [True, False, True, False, True, False]


@pytest.mark.parametrize(("dialect", "for_root"), [("spec", "1234"), ("deployed", SECRET)])
def test_a_token_is_whole_for_its_owner_and_in_production_for_administrators(
    service: SandboxClient, dialect: str, for_root: str
) -> None:
    service.given(a_service(dialect, web=OURS))
    seen = {name: service.ask(f"GET {TRIGGERS}", user=name)[1][0]["token"] for name in ("ada", "root", "max")}
    assert seen == {"ada": SECRET, "root": for_root, "max": "1234"}


@BOTH
def test_only_its_owner_and_administrators_change_a_token_every_maintainer_deletes_it(
    service: SandboxClient, dialect: str
) -> None:
    service.given(a_service(dialect, web=OURS))
    refused = {"message": "403 Forbidden - The current user is not authorized to update the pipeline trigger token"}
    assert service.ask(f"PUT {TRIGGERS}/5", {"description": "x"}, user="max") == (403, refused)
    assert service.ask(f"PUT {TRIGGERS}/5", {"description": "x"}, user="root")[0] == 200
    assert service.ask(f"DELETE {TRIGGERS}/5", user="max") == (204, None)


def test_by_the_spec_a_description_is_a_string(service: SandboxClient) -> None:
    service.given(a_service(web=OURS))
    refused = (400, {"message": {"description": ["is invalid"]}})
    assert service.ask(f"POST {TRIGGERS}", {"description": None}) == refused
    assert service.ask(f"PUT {TRIGGERS}/5", {"description": None}) == refused


def test_descriptions_need_not_differ_nor_say_anything(service: SandboxClient) -> None:
    service.given(a_service("deployed"))
    for description in ("x", "x", "", None):
        assert service.ask(f"POST {TRIGGERS}", {"description": description})[0] == 201
    shown = [entry["description"] for entry in service.ask(f"GET {TRIGGERS}")[1]]
    assert shown == ["x", "x", "", None]


def test_a_put_without_description_changes_nothing_by_the_spec_and_takes_it_away_in_production(
    service: SandboxClient,
) -> None:
    service.given(a_service(web=OURS))
    assert service.ask(f"PUT {TRIGGERS}/5") == (200, NIGHTLY)
    service.given(a_service("deployed", web=OURS))
    assert service.ask(f"PUT {TRIGGERS}/5", {"expires_at": "2026-12-31"})[1]["description"] is None


@pytest.mark.parametrize(
    ("dialect", "body"),
    [
        ("spec", {"message": '400 (Bad request) "description" not given'}),
        ("deployed", {"error": "description is missing"}),
    ],
)
def test_a_token_must_be_described(service: SandboxClient, dialect: str, body: Any) -> None:
    service.given(a_service(dialect))
    assert service.ask(f"POST {TRIGGERS}", {}) == (400, body)


def test_the_spec_knows_no_expiry(service: SandboxClient) -> None:
    service.given(a_service())
    status, made = service.ask(f"POST {TRIGGERS}", {"description": "x", "expires_at": "nonsense"})
    assert (status, "expires_at" in made) == (201, False)


def test_production_takes_an_expiry_of_less_than_a_year(service: SandboxClient) -> None:
    service.given(a_service("deployed"))
    status, made = service.ask(f"POST {TRIGGERS}", {"description": "x", "expires_at": "2026-12-31T10:00:00+02:00"})
    assert (status, made["expires_at"]) == (201, "2026-12-31T08:00:00.000Z")
    late = '400 Bad request - {"expires_at":["must be before 2027-03-01"]}'
    sent = {"description": "x", "expires_at": "2027-03-01"}
    assert service.ask(f"POST {TRIGGERS}", sent) == (400, {"message": late})
    sent["expires_at"] = "nonsense"
    assert service.ask(f"POST {TRIGGERS}", sent) == (400, {"error": "expires_at is invalid"})
    sent["expires_at"] = ""
    assert service.ask(f"POST {TRIGGERS}", sent)[0] == 201


def test_a_token_that_has_expired_is_made_and_gone(service: SandboxClient) -> None:
    service.given(a_service("deployed"))
    sent = {"description": "x", "expires_at": "2026-02-28"}
    assert service.ask(f"POST {TRIGGERS}", sent)[0] == 201
    assert service.ask(f"GET {TRIGGERS}") == (200, [])
    assert service.ask(f"GET {TRIGGERS}/1") == GONE


@BOTH
@pytest.mark.parametrize("off", [{"archived": True}, {"builds_enabled": False}])
def test_archived_or_without_builds_there_are_no_tokens(
    service: SandboxClient, dialect: str, off: dict[str, bool]
) -> None:
    service.given(a_service(dialect, web={**OURS, **off}))
    for line in (f"GET {TRIGGERS}", f"GET {TRIGGERS}/5", f"PUT {TRIGGERS}/5", f"DELETE {TRIGGERS}/5"):
        assert service.ask(line) == FORBIDDEN


@BOTH
def test_maintainers_alone_use_tokens_and_a_put_refuses_an_unknown_token_first(
    service: SandboxClient, dialect: str
) -> None:
    service.given(a_service(dialect, web=OURS))
    assert service.ask(f"GET {TRIGGERS}", user="dev") == FORBIDDEN
    assert service.ask(f"PUT {TRIGGERS}/6", user="dev") == GONE
    assert service.ask(f"PUT {TRIGGERS}/5", user="dev") == FORBIDDEN
    assert service.ask(f"DELETE {TRIGGERS}/6", user="dev") == FORBIDDEN


def test_in_production_parameters_are_checked_before_the_token(service: SandboxClient) -> None:
    service.given(a_service("deployed"))
    assert service.ask(f"POST {TRIGGERS}", {}, user=None) == (400, {"error": "description is missing"})
    assert service.ask(f"GET {TRIGGERS}/x", user="nobody") == (400, {"error": "trigger_id is invalid"})


def test_what_has_changed_since_is_not_touched(service: SandboxClient) -> None:
    long_ago = "Thu, 01 Jan 1970 00:00:00 GMT"
    denied = (412, {"message": "412 Precondition Failed"})
    service.given(a_service(web=OURS))
    assert service.ask(f"PUT {TRIGGERS}/5", {}, If_Unmodified_Since=long_ago) == denied
    assert service.ask(f"DELETE {TRIGGERS}/5", If_Unmodified_Since=long_ago) == denied


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("since", "status"),
    [
        ("2026-02-01T00:00:00Z", 412),
        ("2026-02-01", 412),
        ("Sun, 01 Feb 2026 00:00:00 -0000", 412),
        ("2026-02-03T01:00:00+01:00", 204),
        ("yesterday", 204),
    ],
)
@BOTH
def test_a_token_that_was_changed_since_a_day_in_either_form_is_not_deleted(
    service: SandboxClient, dialect: str, since: str, status: int
) -> None:
    service.given(a_service(dialect, web={"trigger_tokens": [{"id": 5, "updated_at": "2026-02-03"}]}))
    assert service.ask(f"DELETE {TRIGGERS}/5", If_Unmodified_Since=since)[0] == status


def test_a_token_may_have_lost_its_owner(service: SandboxClient) -> None:
    service.given(a_service(web={"trigger_tokens": [{"id": 5, "token": "glptt-abcdefgh"}]}))
    status, (shown,) = service.ask(f"GET {TRIGGERS}")
    assert (status, shown["token"], shown["owner"], shown["description"]) == (200, "abcd", None, None)


RUN = "/projects/100/trigger/pipeline"


def test_a_trigger_token_runs_a_pipeline_without_any_other_credential(service: SandboxClient) -> None:
    service.given(a_service(web=OURS))
    sent = {"ref": "main", "token": SECRET, "variables": {"A": "b"}}
    status, made = service.ask(f"POST {RUN}", sent, user=None)
    assert (status, made["id"], made["status"], made["source"], made["user"]) == (
        201,
        1,
        "created",
        "trigger",
        user(2, "ada"),
    )
    assert made["detailed_status"] == {
        "icon": "status_created",
        "text": "Created",
        "label": "created",
        "group": "created",
        "tooltip": "created",
        "has_details": True,
        "details_path": "/acme/web/-/pipelines/1",
        "illustration": None,
        "favicon": "/assets/ci_favicons/favicon_status_created.png",
    }
    assert service.ask(f"GET {TRIGGERS}/5")[1]["last_used"] == "2026-03-01T00:00:01Z"
    assert SECRET not in str(service.sandbox.log())


@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        ({"token": SECRET}, (400, {"message": '400 (Bad request) "ref" not given'})),
        ({"token": "wrong", "ref": "main"}, (404, {"message": "404 Not Found"})),
        ({"token": SECRET, "ref": "gone"}, (400, {"message": {"base": ["Reference not found"]}})),
        (
            {"token": SECRET, "ref": "main", "variables": {"A": 1}},
            (400, {"message": "variables needs to be a map of key-valued strings"}),
        ),
        (
            {"token": "wrong", "ref": "main", "variables": "A"},
            (400, {"message": {"variables": ["is invalid"]}}),
        ),
    ],
)
def test_what_cannot_run_is_refused(service: SandboxClient, sent: Any, answer: Any) -> None:
    service.given(a_service(web=OURS))
    assert service.ask(f"POST {RUN}", sent, user=None) == answer


def test_a_wrong_token_does_not_tell_whether_the_project_exists(service: SandboxClient) -> None:
    service.given(a_service())
    sent = {"token": "wrong", "ref": "main"}
    hook = service.ask(f"POST {RUN}", sent, X_Gitlab_Event="Pipeline Hook")
    assert hook == (403, {"message": "403 Forbidden"})
    assert service.ask("POST /projects/999/trigger/pipeline", sent) == (404, {"message": "404 Not Found"})


def test_a_token_runs_nothing_where_its_owner_is_gone_or_sees_nothing_or_may_not(service: SandboxClient) -> None:
    lost = [{"token": "of nobody"}, {"token": "of eve", "owner": "eve"}, {"token": "of gus", "owner": "gus"}]
    service.given(a_service(web={"trigger_tokens": lost}))
    answers = [service.ask(f"POST {RUN}", {"ref": "main", "token": each["token"]}, user=None) for each in lost]
    missing = (404, {"message": "404 Not Found"})
    assert answers == [
        missing,
        missing,
        (400, {"message": {"base": ["Insufficient permissions to create a new pipeline"]}}),
    ]


def test_a_job_runs_a_pipeline_with_its_own_token_while_it_lasts(service: SandboxClient) -> None:
    state = a_service()
    state["users"][3]["tokens"] += [
        {"token": "job", "kind": "job"},
        {"token": "over", "kind": "job", "expires_at": "2026-02-28"},
        {"token": "cancelled", "kind": "job", "revoked": True},
    ]
    service.given(state)

    def run(token: str) -> tuple[int, Any]:
        return service.ask(f"POST {RUN}", {"ref": "main", "token": token}, user=None)

    status, made = run("job")
    assert (status, made["source"], made["user"]) == (201, "pipeline", user(4, "dev"))
    assert [run(token) for token in ("over", "cancelled")] == [(401, {"message": "401 Unauthorized"})] * 2
    assert run("dev-token") == (404, {"message": "404 Not Found"})


def test_a_credential_in_a_query_is_not_logged(service: SandboxClient) -> None:
    service.given(a_service(web=OURS))
    assert service.ask(f"POST {RUN}?ref=main&token={SECRET}", user=None)[0] == 201
    assert service.sandbox.log()[0]["target"] == f"/api/v4{RUN}?ref=main&token=[REDACTED]"


def test_the_ref_may_stand_in_the_path(service: SandboxClient, dialect: str) -> None:
    service.given(
        a_service(dialect, web={"trigger_tokens": [{"description": "t", "owner": "ada", "token": "glptt-1"}]})
    )
    run = "POST /projects/100/ref/%s/trigger/pipeline"
    status, started = service.ask(run % "main", {"token": "glptt-1"}, user=None)
    assert (status, started["ref"]) == (201, "main")
    assert service.ask(run % "a%2Fb", {"token": "glptt-1"}, user=None)[0] == 400
    assert service.ask(run % "main", {"token": "glptt-2"}, user=None)[0] == 404
