"""The sandbox on its socket: start, stop, overlapping requests, and the control endpoints."""

import os
import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from threading import Thread
from time import perf_counter
from typing import Any

import httpx
import pytest

from reconciler.sandbox import FaultError, Sandbox, StateError, running, serve
from reconciler.sandbox.state_file import read_state

from .sandbox_client import WEB, SandboxClient, a_service

TOKEN = {"PRIVATE-TOKEN": "ada-token"}


def test_a_sandbox_runs_as_long_as_its_block() -> None:
    with running(a_service()) as sandbox:
        assert httpx.get(f"{sandbox.api_url}/user", headers=TOKEN).json()["id"] == 2
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{sandbox.api_url}/user")


def test_it_stops_with_an_open_connection_and_a_request_in_flight() -> None:
    with httpx.Client(headers=TOKEN) as idle, httpx.Client(headers=TOKEN) as busy, ThreadPoolExecutor(1) as pool:
        with running(a_service(), faults=["hang-after,match=/version"]) as sandbox:
            assert idle.get(f"{sandbox.api_url}/user").status_code == 200
            hanging = pool.submit(busy.get, f"{sandbox.api_url}/version", timeout=30)
            while not any(entry["target"] == "/api/v4/version" for entry in sandbox.log()):
                pass
        assert isinstance(hanging.exception(), httpx.RemoteProtocolError | httpx.ReadError)


def test_it_stops_although_an_answer_is_delayed() -> None:
    started = perf_counter()
    with httpx.Client(headers=TOKEN) as busy, ThreadPoolExecutor(1) as pool:
        with running(a_service(), latency_ms=30_000) as sandbox:
            waiting = pool.submit(busy.get, f"{sandbox.api_url}/user", timeout=30)
            while not sandbox.log():
                pass
        assert isinstance(waiting.exception(), httpx.RemoteProtocolError | httpx.ReadError)
    assert perf_counter() - started < 10


def test_it_takes_the_port_it_is_given_and_no_port_that_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(OSError, match="in use"), running({}, port=port):
            pass
    with running({}, port=port) as sandbox:
        assert sandbox.base_url == f"http://127.0.0.1:{port}"


def test_it_serves_in_the_foreground_until_interrupted() -> None:
    """An ignored signal, like SIGHUP under `nohup`, ends nothing."""
    answers: list[int] = []

    def interrupt(api_url: str) -> None:
        os.kill(os.getpid(), signal.SIGHUP)
        answers.append(httpx.get(f"{api_url}/user", headers=TOKEN).status_code)
        os.kill(os.getpid(), signal.SIGINT)

    def ready(api_url: str) -> None:
        Thread(target=interrupt, args=[api_url]).start()

    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        serve(a_service(), port=0, ready=ready, faults=["status=503,nth=9"], rate_limit="100/60")
    finally:
        signal.signal(signal.SIGHUP, before)
    assert answers == [200]


def test_a_dialect_that_was_given_outlasts_the_state() -> None:
    sandbox = Sandbox(read_state(a_service(), "deployed"), dialect="deployed")
    sandbox.replace_state(a_service())
    assert sandbox.state()["instance"]["dialect"] == "deployed"


def test_a_fault_that_cannot_be_understood_does_not_start() -> None:
    with pytest.raises(FaultError), running({}, faults=["explode"]):
        pass
    with pytest.raises(FaultError), running({}, rate_limit="often"):
        pass


def test_the_latency_delays_every_answer(service: SandboxClient) -> None:
    service.given(a_service()).sandbox.set_latency(200)
    assert service.response("GET /user").elapsed.total_seconds() >= 0.2


def test_requests_wait_for_a_worker_and_take_its_time(service: SandboxClient) -> None:
    sandbox = service.given(a_service()).sandbox
    sandbox.set_workers(1, 40)
    began = perf_counter()
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda _: service.ask("GET /user"), range(3)))
    assert perf_counter() - began >= 3 * 0.04


@pytest.mark.parametrize(
    ("request_", "cost"),
    [
        ("GET /version", 0.1),
        ("GET /user", 1),
        ("GET /projects/100/job_token_scope/allowlist", 2),
        ("GET /groups/acme/projects", 0.47),
        ("GET /groups/acme/projects?simple=true", 0.18),
        ("PUT /projects/100/merge_request_approval_setting", 6),
    ],
)
def test_routes_cost_in_the_proportions_of_production(service: SandboxClient, request_: str, cost: float) -> None:
    service.given(a_service()).sandbox.set_workers(None, 20)
    answer = service.response(request_, {} if request_.startswith("PUT") else None)
    assert answer.elapsed.total_seconds() >= 0.02 * cost


def test_requests_overlap_and_the_peak_is_known(service: SandboxClient) -> None:
    service.given(a_service()).sandbox.set_faults(["race,together=4"])
    with ThreadPoolExecutor(4) as pool:
        answers = list(
            pool.map(lambda _: service.ask("POST /projects/100/triggers", {"description": "x"})[0], range(4))
        )
    assert answers == [201] * 4
    assert max(entry["in_flight"] for entry in service.sandbox.log()) == 4
    assert service.sandbox.peak_in_flight() == 4
    service.sandbox.clear_log()
    assert (service.sandbox.log(), service.sandbox.peak_in_flight()) == ([], 0)


def test_the_log_has_every_request_and_no_token(service: SandboxClient) -> None:
    service.given(a_service())
    service.ask(f"PATCH {WEB}/job_token_scope?access_token=x&y", {"enabled": False, "private_token": "p", "l": [{}]})
    service.ask("GET /nowhere?t%6Fken=x")
    assert service.sandbox.log() == [
        {
            "method": "PATCH",
            "target": "/api/v4/projects/acme%2Fweb/job_token_scope?access_token=[REDACTED]&y",
            "body": {"enabled": False, "private_token": "[REDACTED]", "l": [{}]},
            "status": 204,
            "changed": True,
            "in_flight": 1,
        },
        {
            "method": "GET",
            "target": "/api/v4/nowhere?t%6Fken=[REDACTED]",
            "body": None,
            "status": 404,
            "changed": False,
            "in_flight": 1,
        },
    ]


def test_the_log_handed_out_is_a_copy(service: SandboxClient) -> None:
    service.given(a_service()).ask("GET /user")
    service.sandbox.log()[0]["status"] = 1
    assert service.sandbox.log()[0]["status"] == 200


def test_the_control_endpoints_serve_state_log_and_faults(service: SandboxClient) -> None:
    service.given(a_service())
    state = service.control("GET /-/state").json()
    assert state == service.sandbox.state()
    service.ask(f"PATCH {WEB}/job_token_scope", {"enabled": False})
    assert service.control("GET /-/log").json() == service.sandbox.log()
    assert service.control("DELETE /-/log").status_code == 204
    assert service.control("DELETE /-/state").status_code == 404
    assert service.control("GET /-/log").json() == []
    assert service.control("PUT /-/faults", ["status=500,times=1"]).status_code == 204
    assert [service.ask("GET /user")[0] for _ in range(2)] == [500, 200]
    assert service.control("PUT /-/state", state).status_code == 204
    assert service.sandbox.state() == state
    assert service.sandbox.log() == []


@pytest.mark.parametrize(
    ("line", "body", "message"),
    [
        ("PUT /-/state", {"x": 1}, "unknown key 'x'; known are instance, users, groups, projects"),
        ("PUT /-/faults", {"kind": "html"}, "faults must be a list"),
        ("PUT /-/faults", [7], "fault 7: must be a mapping or a string"),
    ],
)
def test_the_control_endpoints_refuse_invalid_input(service: SandboxClient, line: str, body: Any, message: str) -> None:
    before = service.given(a_service()).sandbox.state()
    response = service.control(line, body)
    assert (response.status_code, response.json()) == (400, {"message": message})
    assert service.sandbox.state() == before


def test_the_control_endpoints_refuse_invalid_json(service: SandboxClient) -> None:
    response = httpx.put(f"{service.sandbox.base_url}/-/state", content=b"{")
    assert response.status_code == 400


def test_another_state_begins_everything_again(service: SandboxClient) -> None:
    service.given(a_service())
    first = service.response(f"POST {WEB}/milestones", {"title": "a"})
    service.sandbox.set_faults(["status=500"])
    again = service.given(a_service()).response(f"POST {WEB}/milestones", {"title": "a"})
    assert (again.json(), again.headers) == (first.json(), first.headers)


def test_a_bad_state_changes_nothing(service: SandboxClient) -> None:
    before = service.given(a_service()).sandbox.state()
    with pytest.raises(StateError):
        service.sandbox.replace_state({"users": [{}]})
    assert service.sandbox.state() == before


def test_a_client_that_goes_before_its_body_is_sent_has_asked_nothing(service: SandboxClient) -> None:
    service.given(a_service())
    host, port = service.sandbox.base_url.removeprefix("http://").split(":")
    head = b"PUT /api/v4/notification_settings HTTP/1.1\r\nHost: x\r\nPRIVATE-TOKEN: ada-token\r\nContent-Length: 9\r\n\r\n{"
    with socket.create_connection((host, int(port))) as client:
        client.sendall(head)
        while service.sandbox.peak_in_flight() < 1:
            pass
    assert service.ask("GET /user")[0] == 200
    assert [entry["method"] for entry in service.sandbox.log()] == ["GET"]


def test_a_large_body_arrives_whole(service: SandboxClient) -> None:
    service.given(a_service())
    sent = {"title": "a", "description": "x" * 500_000}
    assert len(service.ask(f"POST {WEB}/milestones", sent)[1]["description"]) == 500_000
