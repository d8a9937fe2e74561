"""`--notify`: one message to a chat, which never changes the result, and a URL that nobody sees."""

import json
import sys
from collections.abc import Iterator

import pytest

from reconciler.errors import ConfigurationError, ServiceError
from reconciler.service.webhook import Webhook
from tests.canned import Canned, answer, canned
from tests.cli_runner import CliRunner, Ended

SECRET = "T0123/B4567/s3cr3t"


@pytest.fixture
def chat(cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> Iterator[Canned]:
    """A chat, whose webhook the environment names; and a project in which something differs."""
    monkeypatch.delenv("CI_JOB_URL", raising=False)
    cli_runner.project('{milestones: {"1": {}, gone: null}}')
    cli_runner.service(milestones=[{"title": "gone"}])
    with canned(answer("200 OK", "ok")) as server:
        monkeypatch.setenv("RECONCILER_NOTIFY", server.api_url.replace("/api/v4", f"/{SECRET}?sig=a%2Fb"))
        yield server


def texts(chat: Canned) -> list[list[str]]:
    """Return the lines of each message so far, without the first, which names the service, and forget them."""
    found = [json.loads(request.partition("\r\n\r\n")[2]) for request in chat.requests]
    chat.requests.clear()
    assert all(list(each) == ["text"] for each in found)
    return [each["text"].splitlines()[1:] for each in found]


def secretless(done: Ended) -> Ended:
    """Return how a command ended, and check that no output holds the URL of the webhook."""
    assert "s3cr3t" not in done.out + done.err
    assert "sig=" not in done.out + done.err
    return done


def test_what_a_chat_gets(cli_runner: CliRunner, chat: Canned, monkeypatch: pytest.MonkeyPatch) -> None:
    done = secretless(cli_runner("plan -v --max-changes 1"))
    assert done.code == 0
    head, _, body = chat.requests[0].partition("\r\n\r\n")
    assert head.startswith(f"POST /{SECRET}?sig=a%2Fb HTTP/1.1\r\n")
    assert "ada-token" not in head + body
    assert json.loads(body)["text"].splitlines()[0] == f"reconciler, {cli_runner.sandbox.api_url}"
    assert texts(chat) == [
        [
            "Plan: 1 to create, 1 to delete",
            "In project acme/api",
            "apply will refuse this plan: it makes 2 changes, more than --max-changes 1",
        ]
    ]
    cli_runner.sandbox.set_faults(["status=403,method=DELETE,times=1"])
    monkeypatch.setenv("CI_JOB_URL", "https://gitlab.example.com/acme/ops/-/jobs/7")
    assert cli_runner("apply --yes").code == 3
    assert cli_runner("apply --yes").code == 0
    assert cli_runner("apply --yes").code == 0
    job = "https://gitlab.example.com/acme/ops/-/jobs/7"
    assert texts(chat) == [
        ["Applied: 1 created, 1 failed", "Not done, or a problem, in project acme/api", job],
        ["Applied: 1 deleted", job],
        ["Applied: nothing to change", job],
    ]


@pytest.mark.untraced
def test_drift_notifies_only_if_the_state_has_changed(cli_runner: CliRunner, chat: Canned) -> None:
    drift = "drift --baseline known.json --report json=today.json"
    assert cli_runner(drift).code == 2
    assert texts(chat) == [["Drift: Plan: 1 to create, 1 to delete", "In project acme/api"]]
    (cli_runner.folder / "today.json").rename(cli_runner.folder / "known.json")
    assert cli_runner(drift).code == 0
    assert texts(chat) == []
    cli_runner.project('{milestones: {"1": {}, "2": {}}}')
    assert cli_runner(drift).code == 2
    assert texts(chat) == [
        [
            "Drift: New: 1 to create",
            "In project acme/api",
            "1 change as in the baseline",
            "1 difference of the baseline gone",
        ]
    ]
    cli_runner.project('{milestones: {"gone": {}}}')
    assert cli_runner(drift).code == 0
    assert texts(chat) == [["In order again", "2 differences of the baseline gone"]]
    assert cli_runner("drift").code == 0
    assert texts(chat) == []


@pytest.mark.untraced
def test_what_a_run_does_not_look_at_is_not_gone(cli_runner: CliRunner, chat: Canned) -> None:
    cli_runner.project("{milestones: {a: {}}, trigger_tokens: {t: {}}}", "acme/lib", "manifests/lib.yaml")
    assert cli_runner("drift --report json=known.json").code == 2
    texts(chat)
    for narrow in (
        "--target acme/api",
        "--shard 1/2",
        "--section milestones",
        "--target acme/lib --section milestones",
    ):
        assert cli_runner(f"drift --baseline known.json {narrow}").code == 0
    assert texts(chat) == []


def test_many_targets_are_counted_and_names_mean_nothing_to_a_chat(cli_runner: CliRunner, chat: Canned) -> None:
    for number in range(12):
        cli_runner.project("{milestones: {a: {}}}", f"acme/<!here>-{number}", f"manifests/{number}.yaml")
    assert cli_runner("plan").code == 3
    assert texts(chat) == [
        [
            "Plan: 1 to create, 1 to delete, 12 problems",
            "In "
            + ", ".join(f"project acme/??here?-{number}" for number in (0, 1, 10, 11, *range(2, 8)))
            + " and 3 more",
        ]
    ]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (answer("404 Not Found", "no_team"), "404 Not Found"),
        (answer("302 Found", location="http://127.0.0.1:1/elsewhere"), "302 Found, and redirects are not followed"),
        (b"", "the response was lost: Server disconnected without sending a response."),
        (answer("200 OK", b"x" * 2**21), "the response is larger than 1 MiB"),
    ],
)
def test_a_bad_answer_is_told_and_changes_nothing(cli_runner: CliRunner, chat: Canned, said: bytes, told: str) -> None:
    chat.answers[:] = [said]
    for command, code in (("plan", 0), ("drift", 2), ("apply --yes --quiet", 0)):
        done = secretless(cli_runner(command))
        assert (done.code, done.err) == (code, f"127.0.0.1 was not notified: {told}\n")
    assert len(chat.requests) == 3


def test_a_chat_that_cannot_be_reached(cli_runner: CliRunner, chat: Canned, monkeypatch: pytest.MonkeyPatch) -> None:
    del chat
    done = secretless(cli_runner(f"plan --notify http://127.0.0.1:1/{SECRET}"))
    assert (done.code, done.err) == (
        0,
        "127.0.0.1 was not notified: http://127.0.0.1:1 cannot be reached: Connection refused\n",
    )
    done = secretless(cli_runner(f"plan --notify http://127.0.0.1:1/a//{SECRET}"))
    assert done.err == "127.0.0.1 was not notified: the request cannot be sent: its path may lead elsewhere\n"
    monkeypatch.setenv("no_proxy", "")
    monkeypatch.setenv("https_proxy", "socks5://127.0.0.1:1")
    monkeypatch.setitem(sys.modules, "socksio", None)
    done = secretless(cli_runner(f"plan --notify https://hooks.example.com/{SECRET}"))
    assert done.err == "hooks.example.com was not notified: the proxy of the environment cannot be used\n"


@pytest.mark.parametrize(
    "url",
    [
        "hooks.example.com",
        "ftp://x/s3cr3t",
        "https:///s3cr3t",
        "https://s3cr3t:x@host/",
        "https://[s3cr3t",
        "https://x/ä",
    ],
)
def test_a_url_that_is_none_is_refused_before_anything_is_requested(cli_runner: CliRunner, url: str) -> None:
    cli_runner.sandbox.clear_log()
    done = secretless(cli_runner("drift --notify", url))
    assert done.code == 64
    assert "--notify takes the URL of a webhook, such as https://hooks.example.com/services/..." in done.err
    assert cli_runner.sandbox.log() == []


def test_the_url_is_protected_like_a_token(
    cli_runner: CliRunner, chat: Canned, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = secretless(cli_runner(f"apply --yes --notify http://hooks.example.com/{SECRET}"))
    assert done.code == 64
    assert "--notify: http would send the URL, which is a secret, unprotected; use https" in done.err
    done = secretless(cli_runner("validate --env RECONCILER_NOTIFY"))
    assert "templates may not read the environment variable RECONCILER_NOTIFY" in done.err
    monkeypatch.setenv("HOOK", chat.api_url)
    done = cli_runner(f"plan --env HOOK --notify {chat.api_url}")
    assert "templates may not read the environment variable HOOK" in done.err
    cli_runner.write("reconciler.yaml", "notify: https://hooks.example.com/x\n")
    assert "unknown key `notify`" in cli_runner("plan").err
    assert chat.requests == []


def test_certificates_are_trusted_beside_those_of_the_system(cli_runner: CliRunner) -> None:
    cli_runner.write("none.pem", "")
    with pytest.raises(ConfigurationError, match="holds no certificates"):
        Webhook("https://127.0.0.1:1/x", ca_file="none.pem")
    with pytest.raises(ConfigurationError, match=r"missing\.pem: No such file or directory"):
        Webhook("https://127.0.0.1:1/x", ca_file="missing.pem")
    with pytest.raises(ServiceError, match="cannot be reached"):
        Webhook("https://127.0.0.1:1/x", ca_file=None).post("text")
    assert Webhook("http://chat.example.com/x", insecure_http=True, ca_file="none.pem").host == "chat.example.com"
