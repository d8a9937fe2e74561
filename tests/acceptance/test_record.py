"""A recording made by `record.py` plays, and has no secrets."""

import sys
from pathlib import Path

import pytest

from reconciler.sandbox import Sandbox
from tests.acceptance.record import Scrubber, record
from tests.acceptance.taped import SERVICE, exchanges, tape_at
from tests.states import a_small_service

CLIENT = """
import httpx, sys
url = sys.argv[1]
for user in ("ada", "bob"):
    client = httpx.Client(base_url=url, headers={"private-token": f"{user}-token"})
    client.get("user")
    client.post("projects/acme%2Fapi/triggers", json={"description": "mail to ops@corp.test"})
    client.get("projects/acme%2Fapi/triggers?per_page=100")
"""


@pytest.mark.untraced
def test_a_recording_of_any_client_plays_and_has_no_secrets(sandbox: Sandbox, tmp_path: Path) -> None:
    state = a_small_service("deployed")
    state["users"][1]["emails"] = ["ada@corp.test"]
    sandbox.replace_state(state)
    file = tmp_path / "tape.yaml"
    assert record(file, sandbox.api_url, [sys.executable, "-c", CLIENT, "{url}"]) == 0
    tape = list(exchanges(tape_at(file)))
    assert [(each.who, each.method, each.target, each.status) for each in tape] == [
        (user, method, target, status)
        for user in ("ada", "bob")
        for method, target, status in (
            ("GET", "user", 200),
            ("POST", "projects/acme%2Fapi/triggers", 201),
            ("GET", "projects/acme%2Fapi/triggers?per_page=100", 200),
        )
    ]
    assert tape[0].value["email"] == "user-1@example.com"
    values = [token["token"] for token in sandbox.state()["projects"][0]["trigger_tokens"]]
    (trigger,) = tape[2].value
    assert trigger["token"] == values[0][:10] + "0" * (len(values[0]) - 10)
    assert trigger["description"] == "mail to user-2@example.com"
    assert tape[2].headers["link"].startswith(f"<{SERVICE}/api/v4/projects/acme%2Fapi/triggers?page=1")
    text = file.read_text()
    assert [each for each in ("ada-token", "corp.test", "127.0.0.1", *values) if each in text] == []


@pytest.mark.parametrize(
    ("said", "recorded"),
    [
        ('{"runners_token":"GR1348941abcdefghijklmnop","a":1}', '{"runners_token":"GR1348941abcd000000000000","a":1}'),
        ('{"token":"KaXS"}', '{"token":"KaXS"}'),
        ('{"password":"correct horse"}', '{"password":"corr000000000"}'),
        (
            '{"sentry_dsn":"http://glet_0123456789abcdef@localhost:8080/1"}',
            '{"sentry_dsn":"http://glet_0123000000000000@host-1.example.com/1"}',
        ),
        ('{"last_used_ips":["10.1.2.3"]}', '{"last_used_ips":["192.0.2.1"]}'),
        ('{"avatar_url":"https://secure.gravatar.com/avatar/5?s=80"}', f'{{"avatar_url":"{SERVICE}/avatar.png"}}'),
        ("git@git.corp:acme/api.git", "git@gitlab.example.com:acme/api.git"),
        ("ssh://git.corp:22/x registry.git.corp:5005/y", "ssh://gitlab.example.com/x gitlab.example.com/y"),
        ('{"email":"a@b.example.com"}', '{"email":"a@b.example.com"}'),
    ],
)
def test_what_is_replaced(said: str, recorded: str) -> None:
    assert Scrubber("https://git.corp").body(said.encode()) == recorded


def test_a_token_for_another_service_is_in_no_text() -> None:
    scrubber = Scrubber("https://git.corp")
    sent = '{"repo_id":1,"personal_access_token":"quick-fox"}'
    assert scrubber.sent(sent.encode()) == sent.replace("quick-fox", "000000000")
    assert scrubber.body(b'{"message":"quick-fox may not"}') == '{"message":"000000000 may not"}'
    assert scrubber.sent(b'--x\r\nContent-Disposition: form-data; name="file"\r\n\r\n\x1f\x8b--x--') == ""
