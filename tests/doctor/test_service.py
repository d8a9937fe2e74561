"""Findings about the service and the token; a response that rules everything else out is the last one."""

import json
import socket
import ssl
from datetime import date, timedelta
from typing import Any

import httpx
import pytest

from reconciler.doctor import DoctorFinding, check_service
from reconciler.errors import AnswerLost, ConnectionFailure, NotFound, Unauthorized, Unreachable
from reconciler.model.protocols import Json
from reconciler.sandbox import Sandbox
from tests.answering import Answering
from tests.canned import answer, canned
from tests.cli_runner import CliRunner
from tests.doctor.conftest import FRONT, TODAY, Patient
from tests.service.connecting import connected
from tests.service.test_connection import LOOPBACK, secured

ASKED = ["personal_access_tokens/self", "version", "user"]
REACHED = "  ok       reachable                                 yes"
NEW = "make a new one with the scope api, and set RECONCILER_TOKEN or --token-file"


def test_without_manifests_only_service_and_token_are_told(patient: Patient) -> None:
    done = patient.examine()
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [*FRONT, "Doctor: 0 errors, 0 warnings, 0 unknown."]
    assert patient.requests() == ASKED


def test_a_folder_that_is_named_must_be_there(patient: Patient) -> None:
    done = patient.examine("elsewhere")
    assert (done.code, done.out.splitlines()) == (
        1,
        [
            *FRONT,
            "manifests",
            "  error    manifests                                 not valid: 1 error; reconciler validate lists the errors",
            "Doctor: 1 error, 0 warnings, 0 unknown.",
        ],
    )


def test_manifests_that_are_wrong_are_counted(patient: Patient) -> None:
    patient.documents.append("kind: Nothing\n---\nkind: Less\n")
    done = patient.examine()
    errors = patient.cli_runner("validate").out.splitlines()[-1]
    assert errors == "Not valid: 2 errors."
    assert (
        "  error    manifests                                 not valid: 2 errors; reconciler validate lists"
        in done.out
    )


@pytest.mark.parametrize(("days", "verdict"), [(15, "ok     "), (14, "warning"), (1, "warning")])
def test_a_token_that_expires_soon_is_warned_of(patient: Patient, days: int, verdict: str) -> None:
    expiry = TODAY + timedelta(days)
    patient.token(expires_at=f"{expiry}")
    done = patient.examine()
    remedy = "" if days == 15 else "; renew it in time"
    plural = "" if days == 1 else "s"
    assert done.code == 0
    assert (
        done.out.splitlines()[6]
        == f"  {verdict}  expiry                                    {expiry}, in {days} day{plural}{remedy}"
    )


@pytest.mark.parametrize(
    ("token", "said"),
    [
        ({"expires_at": "2020-01-01"}, "401 Token is expired. You can either do re-authorization or token refresh"),
        ({"revoked": True}, "401 Token was revoked. You have to re-authorize from the user"),
        ({"token": "another"}, "401 Unauthorized"),
    ],
)
def test_a_token_that_is_refused_is_told_after_one_request(patient: Patient, token: Any, said: str) -> None:
    patient.token(**token)
    patient.project("acme/api", "milestones: {one: {}}")
    done = patient.examine()
    assert (done.code, done.out.splitlines()) == (
        1,
        [
            "service URL",
            REACHED,
            "token",
            f"  error    token                                     refused: {said}; {NEW}",
            "Doctor: 1 error, 0 warnings, 0 unknown.",
        ],
    )
    assert patient.requests() == ASKED[:1]


def test_a_token_of_oauth_does_not_describe_itself(patient: Patient) -> None:
    patient.token(kind="oauth")
    patient.project("acme/api", "trigger_tokens: {n: {}}")
    done = patient.examine()
    assert done.code == 0
    assert done.out.splitlines()[3:-2] == [
        "token",
        "  ok       token                                     OAuth token of ada",
        "  unknown  scopes                                    not reported",
        "  unknown  expiry                                    not reported",
        "project acme/api",
        "  unknown  trigger_tokens                            read: yes, write: unknown: the token's scopes are unknown",
    ]


def test_the_token_of_a_ci_job_is_told(patient: Patient) -> None:
    patient.token(kind="job")
    done = patient.examine()
    said = "a CI job token, which may read none of this"
    remedy = "use a personal, project or group access token instead of CI_JOB_TOKEN"
    assert done.code == 1
    assert done.out.splitlines()[1:4] == [
        REACHED,
        "token",
        f"  error    token                                     {said}; {remedy}",
    ]
    assert patient.requests() == ASKED[:2]


@pytest.mark.parametrize(
    ("username", "said"),
    [
        ("project_100_bot_5f3a", "project access token"),
        ("group_10_bot", "group access token"),
        ("service_account_group_10_5f3a", "access token of a service account"),
    ],
)
def test_bots_have_tokens_too(patient: Patient, username: str, said: str) -> None:
    patient.state["users"][1] |= {"username": username, "bot": True}
    patient.state["groups"] = patient.state["projects"] = []
    done = patient.examine()
    assert done.out.splitlines()[4] == f'  ok       token                                     {said} "ci" of {username}'


def test_administrators_are_told_as_such(patient: Patient) -> None:
    patient.state["users"][1]["admin"] = True
    done = patient.examine()
    assert done.out.splitlines()[4].endswith('personal access token "ci" of ada, an administrator')


def test_scopes_that_do_not_suffice_are_told_before_anything_is_read(patient: Patient) -> None:
    patient.token(scopes=["read_repository"])
    patient.project("acme/api", "milestones: {one: {}}")
    done = patient.examine()
    assert done.code == 1
    version, token, _, scopes, expiry = done.out.splitlines()[2:7]
    assert version.startswith("  unknown  version                                   not reported: GET version: 403 ")
    assert (token, expiry) == ("token", "  ok       expiry                                    never")
    assert scopes == f"  error    scopes                                    read_repository: not enough to read; {NEW}"
    assert patient.requests() == ASKED


def test_a_run_that_is_cut_off_is_told(patient: Patient) -> None:
    patient.project("acme/api", "milestones: {one: {}}")
    patient.begin()
    patient.cli_runner.sandbox.set_faults(["status=401,match=milestones"])
    done = patient.ask()
    assert done.code == 1
    (line,) = done.out.splitlines()[len(FRONT) + 1 : -1]
    assert line.startswith(
        "  error    targets                                   not all could be checked: GET projects/acme%2Fapi/milestones: 401"
    )
    assert line.endswith("; try again later")


# Faults of a URL.


def said_of(cli_runner: CliRunner, url: str, *more: str) -> str:
    """Return the only error, found without a retry."""
    done = cli_runner("doctor --insecure-http --api-url", url, *more)
    assert (done.code, done.err) == (1, "")
    *lines, verdict, last = done.out.splitlines()
    assert verdict.startswith("  error    ")
    assert last in ("Doctor: 1 error, 0 warnings, 0 unknown.", "Doctor: 1 error, 1 warning, 0 unknown.")
    assert lines[0] == f"service {url}"
    about, _, said = verdict.removeprefix("  error    ").partition(" ")
    return f"{about}: {said.strip()}"


def test_a_port_where_nobody_listens(cli_runner: CliRunner) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/api/v4"
        assert said_of(cli_runner, url) == (
            f"reachable: connection refused: {url} cannot be reached: Connection refused; "
            "nothing listens at that host and port: check the port"
        )


def test_a_name_that_nobody_knows(cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> object:
        raise socket.gaierror(-2, "Name or service not known")

    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    assert said_of(cli_runner, "https://gitlba.example.com/api/v4") == (
        "reachable: no such host: https://gitlba.example.com/api/v4 cannot be reached: "
        "Name or service not known; "
        "check the host name for a typo, and whether this machine can resolve it"
    )


@pytest.mark.untraced
def test_a_certificate_that_nobody_knows(cli_runner: CliRunner) -> None:
    with secured() as url:
        assert said_of(cli_runner, url) == (
            f"reachable: no secure connection: {url} cannot be trusted: self-signed certificate; name the "
            "certificate of a private authority with --ca-file"
        )
        assert said_of(cli_runner, url, "--ca-file", str(LOOPBACK)) == (
            "api: not an API: GET version: the response has no version; check the URL: another server, or a proxy, answers there"
        )


def test_a_port_that_does_not_speak_https(cli_runner: CliRunner, sandbox: Sandbox) -> None:
    said = said_of(cli_runner, sandbox.api_url.replace("http:", "https:"))
    assert said.startswith("reachable: no secure connection: ")
    assert said.endswith("; check whether the service speaks https at that port")


def test_a_server_of_pages(cli_runner: CliRunner) -> None:
    page = answer("200 OK", "<html>Sign in</html>", content_type="text/html")
    with canned(page) as server:
        assert said_of(cli_runner, server.api_url) == (
            "api: not an API: the response is not JSON (200, text/html); "
            f"try {server.api_url.replace('http:', 'https:')}"
        )
        assert len(server.requests) == 1
        host = server.api_url.removesuffix("/api/v4")
        for path in ("", "/gitlab", "/gitlab/api", "/gitlab/api/v3"):
            right = f"{host}{path.removesuffix('/v3').removesuffix('/api')}/api/v4"
            top = f", or {host}/api/v4 if that is the page of a group or project" if path else ""
            assert said_of(cli_runner, f"{host}{path}").endswith(f"; the URL must end in /api/v4: try {right}{top}")


def test_a_path_that_is_not_that_of_the_api(cli_runner: CliRunner, sandbox: Sandbox) -> None:
    url = f"{sandbox.base_url}/api/v3"
    assert said_of(cli_runner, url) == (
        f"api: not an API: GET version: 404 Not Found; the URL must end in /api/v4: try {sandbox.base_url}/api/v4"
    )
    targets = [entry["target"] for entry in sandbox.log()]
    assert targets == ["/api/v3/personal_access_tokens/self", "/api/v3/version"]


def test_a_server_that_wants_https(cli_runner: CliRunner) -> None:
    with canned(answer("400 Bad Request", "<html>http to an https port</html>", content_type="text/html")) as server:
        assert said_of(cli_runner, server.api_url) == (
            f"api: not an API: GET version: 400 Bad Request; try {server.api_url.replace('http:', 'https:')}"
        )
    with canned(answer("301 Moved", location="https://gitlab.example.com/api/v4/version")) as server:
        assert said_of(cli_runner, server.api_url) == (
            "api: redirected to https://gitlab.example.com/api/v4/version; "
            "set the URL to the target of the redirect, ending in /api/v4"
        )


def test_a_port_for_https_that_is_spoken_to_without(cli_runner: CliRunner) -> None:
    with secured() as url:
        said = said_of(cli_runner, url.replace("https:", "http:"))
    assert said.startswith("api: not usable now: GET personal_access_tokens/self: the response was lost: ")
    assert said.endswith(f"; try {url}")


def test_a_service_that_goes_silent() -> None:
    error = AnswerLost("GET personal_access_tokens/self", "the answer was lost")
    (finding,) = check_service(Telling(token=error), "https://host.test/api/v4", lambda: TODAY).findings
    assert (finding.said, finding.remedy) == (f"not usable now: {error}", "try again later")


def test_a_service_that_is_down_is_told_after_one_more_try(cli_runner: CliRunner) -> None:
    with canned(answer("502 Bad Gateway", "<html>", content_type="text/html")) as server:
        assert said_of(cli_runner, server.api_url) == (
            "api: not usable now: GET personal_access_tokens/self: 502 Bad Gateway; try again later"
        )
        assert len(server.requests) == 2


def test_a_token_that_goes_over_plain_http_is_warned_of(cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = OSError(socket.EAI_AGAIN, "no")
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: (_ for _ in ()).throw(refused))
    monkeypatch.setenv("no_proxy", "*")
    done = cli_runner("doctor --insecure-http --api-url http://gitlab.example.com/api/v4")
    assert done.code == 1
    warning = "  warning  url                                       plain http: anyone on the network path can read the token; use https"
    assert done.out.splitlines()[1] == warning
    assert "no connection: " in done.out


@pytest.mark.parametrize(
    ("error", "cause", "failure"),
    [
        (httpx.ConnectTimeout("slow"), None, ConnectionFailure.TIMEOUT),
        (httpx.ProxyError("403 no"), None, ConnectionFailure.PROXY),
        (httpx.ConnectError("tls"), ssl.SSLError(1, "wrong version"), ConnectionFailure.TLS),
        (httpx.ConnectError("other"), OSError(113, "no route"), ConnectionFailure.OTHER),
    ],
    ids=str,
)
def test_what_lies_beneath_tells_what_kept_a_connection_from_being_made(
    error: Exception, cause: Exception | None, failure: ConnectionFailure
) -> None:
    def refuse(_request: httpx.Request) -> httpx.Response:
        raise error from cause

    transport = httpx.MockTransport(refuse)
    with connected("http://127.0.0.1:1/api/v4", connect=lambda *_: transport, first_tries=1) as client:
        with pytest.raises(Unreachable) as raised:
            client.get("x")
    assert raised.value.failure is failure


# Facts that a service may report or leave out.


class Telling(Answering):
    """A service that answers this."""

    def __init__(self, **answers: Json) -> None:
        self.answers: dict[str, Json] = {"token": {}, "version": {"version": "1.0"}, "user": {}} | answers

    def get(self, path: str) -> Json:
        found = self.answers[path.replace("personal_access_tokens/self", "token")]
        if isinstance(found, Exception):
            raise found
        return found


def tokens_lines(**answers: Json) -> list[str]:
    """Return the findings about the token."""
    front = check_service(Telling(**answers), "https://host.test/api/v4", lambda: date(2026, 1, 1))
    return [line(finding) for finding in front.token.findings]


def line(finding: DoctorFinding) -> str:
    return f"{finding.verdict} {finding.about}: {finding.said}"


def test_what_is_not_told_is_unknown() -> None:
    nobody = "token of unknown type of an unknown user"
    unknown = [f"unknown token: {nobody}", "unknown scopes: not reported", "unknown expiry: not reported"]
    old = NotFound("GET personal_access_tokens/self", "404", 404)
    assert tokens_lines() == unknown
    assert tokens_lines(token=old, user=old) == unknown
    assert tokens_lines(token=[], user=[]) == unknown
    assert tokens_lines(token={"scopes": [1], "expires_at": "soon"}, user={"username": 5, "bot": "no"}) == unknown
    assert tokens_lines(token={"expires_at": 5}) == unknown


def test_a_scope_that_is_new_allows_nobody_knows_what() -> None:
    assert tokens_lines(token={"scopes": ["granular"]})[1] == "unknown scopes: granular: not known to this version"
    assert (
        tokens_lines(token={"scopes": ["granular", "api"]})[1]
        == "ok scopes: granular, api: enough to read and to write"
    )
    assert tokens_lines(token={"scopes": []})[1] == "error scopes: none: not enough to read"


def test_a_token_that_says_it_is_over_is_believed() -> None:
    user = {"username": "ada", "bot": False}
    for over in ({"revoked": True}, {"active": False}):
        assert (
            tokens_lines(token=over, user=user)[0]
            == "error token: personal access token of ada, which is no longer active"
        )
    assert tokens_lines(token={"expires_at": "2026-01-01"})[2] == "error expiry: expired on 2026-01-01"


def test_a_version_may_be_kept_back() -> None:
    def said(**answers: Json) -> list[str]:
        front = check_service(Telling(**answers), "https://host.test/api/v4", lambda: date(2026, 1, 1))
        return [line(finding) for finding in front.findings]

    assert said() == ["ok reachable: yes", "ok version: 1.0, edition not reported"]
    gone = NotFound("GET version", "404", 404)
    assert said(version=gone) == ["ok reachable: yes", f"unknown version: not reported: {gone}"]
    assert said(version=[]) == ["error api: not an API: GET version: the response has no version"]


def test_who_is_refused_a_version_is_refused() -> None:
    gone, refused = NotFound("GET self", "404", 404), Unauthorized("GET version", "401 Unauthorized", 401)
    assert tokens_lines(token=gone, version=refused) == ["error token: refused: 401 Unauthorized"]


def test_json_is_as_complete_where_the_service_cannot_be_used(cli_runner: CliRunner) -> None:
    with canned(answer("200 OK", "<html>", content_type="text/html")) as server:
        found = json.loads(cli_runner("doctor --format json --api-url", server.api_url).out)
    assert (found["targets"], found["costs"], found["service"]["version"]) == ([], None, None)
    assert found["counts"] == {"ok": 0, "warning": 0, "unknown": 0, "error": 1}
