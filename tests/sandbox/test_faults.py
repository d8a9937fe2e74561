"""Faults: the effect of each on a request and its answer, and the requests to which it applies."""

from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import httpx
import pytest

from reconciler.sandbox import Fault, FaultError, parse_fault
from reconciler.sandbox.faults import read_fault

from .sandbox_client import WEB, SandboxClient, a_service

PUT = f"PUT {WEB}/notification_settings"
WATCH = {"level": "watch"}


def struck(service: SandboxClient, *faults: Any) -> None:
    """A new service with those faults."""
    service.given(a_service()).sandbox.set_faults(faults)


def level(service: SandboxClient) -> str:
    """The present settings, read without faults."""
    service.sandbox.set_faults([])
    return str(service.ask(f"GET {WEB}/notification_settings")[1]["level"])


@pytest.mark.parametrize(
    ("fault", "status", "headers", "body"),
    [
        ("status=503,retry_after=2", 503, {"retry-after": "2"}, '{"message":"503 Service Unavailable"}'),
        ("status=409", 409, {}, '{"message":"409 Conflict: Resource lock"}'),
        (
            "status=429",
            429,
            {},
            '{"message":{"error":"This endpoint has been requested too many times. Try again later."}}',
        ),
        ("status", 503, {}, '{"message":"503 Service Unavailable"}'),
        (
            "html",
            502,
            {"content-type": "text/html"},
            "<html><body><center><h1>502 Bad Gateway</h1></center></body></html>\n",
        ),
        ("redirect", 302, {"location": "https://elsewhere.example.com/"}, ""),
        ("kind=redirect,status=308", 308, {"location": "https://elsewhere.example.com/"}, ""),
    ],
)
def test_an_answer_instead_of_the_service_carries_nothing_out(
    service: SandboxClient, fault: str, status: int, headers: dict[str, str], body: str
) -> None:
    struck(service, fault)
    response = service.response(PUT, WATCH)
    assert (response.status_code, response.text) == (status, body)
    assert headers.items() <= dict(response.headers).items()
    logged = [(entry["body"], entry["status"], entry["changed"]) for entry in service.sandbox.log()]
    assert logged == [(WATCH, status, False)]
    assert level(service) == "global"


@pytest.mark.parametrize(("fault", "after"), [("reset-before", "global"), ("reset-after", "watch")])
def test_a_reset_happens_before_or_after_the_request_is_carried_out(
    service: SandboxClient, fault: str, after: str
) -> None:
    struck(service, fault)
    with pytest.raises(httpx.ReadError):
        service.ask(PUT, WATCH)
    assert [(entry["status"], entry["changed"]) for entry in service.sandbox.log()] == [(None, after == "watch")]
    assert level(service) == after


def test_a_hang_carries_out_the_request_and_sends_nothing(service: SandboxClient) -> None:
    struck(service, "hang-after")
    with httpx.Client(timeout=0.2) as client, pytest.raises(httpx.ReadTimeout):
        client.put(
            f"{service.sandbox.api_url}{WEB}/notification_settings",
            json=WATCH,
            headers={"PRIVATE-TOKEN": "ada-token"},
        )
    assert level(service) == "watch"


def test_a_hang_closes_the_connection_after_its_timeout(service: SandboxClient) -> None:
    struck(service, "hang-after,seconds=0.05")
    with pytest.raises(httpx.HTTPError):
        service.ask(PUT, WATCH)
    assert level(service) == "watch"


def test_a_truncated_body_is_half_of_what_was_promised(service: SandboxClient) -> None:
    struck(service, "truncate")
    with pytest.raises(httpx.RemoteProtocolError, match="without sending complete message body"):
        service.ask(PUT, WATCH)
    assert service.sandbox.log()[0]["status"] == 200
    assert level(service) == "watch"


def test_where_there_is_no_body_to_truncate_the_connection_is_reset(service: SandboxClient) -> None:
    struck(service, "truncate")
    with pytest.raises(httpx.ReadError):
        service.ask(f"PATCH {WEB}/job_token_scope", {"enabled": True})


def test_a_body_that_is_not_json_has_the_status_and_headers_of_the_answer(service: SandboxClient) -> None:
    struck(service, "not-json")
    response = service.response(PUT, WATCH)
    assert (response.status_code, response.headers["content-type"]) == (200, "application/json")
    assert response.text == "<!-- this is not JSON -->"
    assert service.ask(f"PATCH {WEB}/job_token_scope", {"enabled": True}) == (204, None)
    assert level(service) == "watch"


def test_a_slow_answer_is_an_answer(service: SandboxClient) -> None:
    struck(service, "slow,seconds=0.3")
    response = service.response(PUT, WATCH)
    assert (response.json(), response.elapsed.total_seconds() >= 0.3) == (WATCH, True)
    assert Fault("slow").delay == 1


RULES = f"{WEB}/registry/protection/repository/rules"
RULE = {"repository_path_pattern": "acme/web/*", "minimum_access_level_for_push": "owner"}


def at_once(service: SandboxClient, *asked: tuple[str, Any]) -> list[tuple[int, Any]]:
    """Return the answers to these requests, all sent before the first is answered, in the order of arrival."""
    service.sandbox.clear_log()
    with ThreadPoolExecutor(len(asked)) as pool:
        answers = []
        for line, body in asked:
            answers.append(pool.submit(service.ask, line, body))
            while len(service.sandbox.log()) < len(answers) and wait(answers[-1:], timeout=0.001).not_done:
                pass
    return [answer.result() for answer in answers]


@pytest.mark.parametrize(
    ("path", "body", "then", "kept"),
    [
        (f"{WEB}/milestones", {"title": "v1"}, 201, 2),
        (f"{WEB}/triggers", {"description": "nightly"}, 201, 2),
        (RULES, RULE, 422, 1),
        (f"{WEB}/job_token_scope/allowlist", {"target_project_id": 101}, 409, 1),
        (f"{WEB}/job_token_scope/groups_allowlist", {"target_group_id": 11}, 409, 1),
    ],
)
def test_in_a_race_both_creations_are_checked_before_one_is_inserted(
    service: SandboxClient, path: str, body: Any, then: int, kept: int
) -> None:
    struck(service, "race,method=POST")
    answers = at_once(service, (f"POST {path}", body), (f"POST {path}", body))
    assert [status for status, _ in answers] == [201, then]
    logged = [(entry["body"], entry["status"], entry["changed"]) for entry in service.sandbox.log()]
    assert logged == [(body, 201, True), (body, then, kept == 2)]
    assert len(service.ask(f"GET {path}")[1]) == kept


def test_a_race_is_run_by_creations_at_one_path_that_passed_their_checks(service: SandboxClient) -> None:
    struck(service, "race,match=/projects/,together=3,seconds=30")
    title = {"title": "v1"}
    assert service.ask(f"POST {WEB}/milestones", {"title": ""})[0] == 400
    assert service.ask(f"PUT {WEB}/notification_settings", WATCH)[0] == 200
    lines = [f"POST {WEB}/milestones", "POST /projects/101/milestones"]
    answers = at_once(service, *((line, title) for line in lines * 3))
    assert [(status, body["project_id"], body["iid"]) for status, body in answers] == [
        (201, project, iid) for iid in (1, 2, 3) for project in (100, 101)
    ]


def test_a_race_without_a_competitor_ends_after_its_timeout(service: SandboxClient) -> None:
    struck(service, "race,seconds=0.05")
    assert service.ask(f"POST {WEB}/milestones", {"title": "v1"})[0] == 201
    assert service.ask(f"POST {WEB}/milestones", {"title": "v1"})[0] == 400


def statuses(service: SandboxClient, *lines: str) -> list[int]:
    """The statuses of these requests."""
    return [service.ask(line)[0] for line in lines]


def test_a_fault_applies_to_the_requests_it_names(service: SandboxClient) -> None:
    struck(service, "status=500,method=get,match=groups/acme")
    lines = ("GET /groups/acme", "PUT /groups/acme/notification_settings", "GET /user", "GET /groups/acme/projects")
    assert statuses(service, *lines) == [500, 200, 200, 500]


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("which", "expected"),
    [
        ("", [500] * 6),
        ("nth=2", [200, 500, 200, 200, 200, 200]),
        ("times=2", [500, 500, 200, 200, 200, 200]),
        ("nth=3,times=2", [200, 200, 500, 500, 200, 200]),
        ("probability=0", [200] * 6),
        ("probability=0.5,seed=1", [200, 500, 500, 200, 500, 200]),
        ("probability=0.5,seed=2", [500, 500, 200, 500, 200, 200]),
    ],
)
def test_a_fault_applies_to_the_nth_the_first_few_or_some_requests(
    service: SandboxClient, which: str, expected: list[int]
) -> None:
    for _ in range(2):
        struck(service, ",".join(filter(None, ["status=500", which])))
        assert statuses(service, *["GET /user"] * 6) == expected


def test_chance_does_not_depend_on_the_order_of_requests(service: SandboxClient) -> None:
    lines = [f"GET /projects/{number}" for number in range(100, 120)]
    struck(service, "status=500,probability=0.5,seed=3")
    forwards = dict(zip(lines, statuses(service, *lines), strict=True))
    struck(service, "status=500,probability=0.5,seed=3")
    backwards = dict(zip(lines[::-1], statuses(service, *lines[::-1]), strict=True))
    assert forwards == backwards
    assert set(forwards.values()) > {500}


def test_of_several_faults_the_first_applies_and_all_count(service: SandboxClient) -> None:
    struck(service, "status=500,nth=1", {"kind": "status", "status": 502, "nth": 2}, Fault("status", status=504))
    assert statuses(service, *["GET /user"] * 3) == [500, 502, 504]


def test_a_fault_is_written_on_one_line() -> None:
    assert parse_fault("status=503, retry_after=2, method=post, match=milestones, nth=1") == Fault(
        "status", status=503, retry_after=2, method="POST", match="milestones", nth=1
    )
    assert parse_fault("hang-after,seconds=1.5,times=3,probability=0.25,seed=7") == Fault(
        "hang-after", seconds=1.5, times=3, probability=0.25, seed=7
    )
    assert parse_fault("html,status=504") == parse_fault("status=504,kind=html") == Fault("html", status=504)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("", "fault '': the kind must be one of"),
        ("crash", "fault 'crash': the kind must be one of"),
        ("method=GET", "fault 'method=GET': the kind must be one of"),
        ("html,POST", "fault 'html,POST': 'POST' is not name=value"),
        ("html,verb=POST", "fault 'html,verb=POST': unknown name 'verb'; known are kind, status"),
        ("status=999", "fault 'status=999': status cannot be '999'"),
        ("html,nth=0", "fault 'html,nth=0': nth cannot be '0'"),
        ("html,probability=2", "fault 'html,probability=2': probability cannot be '2'"),
        ("slow,seconds=-1", "fault 'slow,seconds=-1': seconds cannot be '-1'"),
        ("race,together=0", "fault 'race,together=0': together cannot be '0'"),
        ("slow,seconds=soon", "fault 'slow,seconds=soon': seconds cannot be 'soon'"),
    ],
)
def test_an_invalid_fault_is_quoted(spec: str, message: str) -> None:
    with pytest.raises(FaultError) as caught:
        parse_fault(spec)
    assert str(caught.value).startswith(message)


def test_an_invalid_fault_in_a_mapping_is_quoted() -> None:
    with pytest.raises(FaultError, match="status cannot be 'soon'"):
        read_fault({"kind": "html", "status": "soon"})
