"""Recordings of GitLab EE 18.9: the client understands every answer, and the sandbox answers alike.

`recordings/README.md` says how they came about.
"""

import json
import re
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from reconciler.errors import ServiceError
from reconciler.model.protocols import Request
from reconciler.sandbox import Sandbox
from reconciler.service.client import Client
from reconciler.service.policy import Policy
from tests.acceptance.comparing import lacking
from tests.acceptance.protections import NAMES as PROTECTIONS
from tests.acceptance.replaying import Replayed, record_of, value_of
from tests.acceptance.taped import API, NAMES, Exchange, NotRecorded, TapedTransport, exchanges, tape_of
from tests.service.clock import SwiftClock

LARGE_RECORDS = {"projects", "groups", "archive", "unarchive", "user", "approval_rules"}
"""They have a hundred keys, or hold such records; the sandbox has those that say who and where something is, and what is switched on."""

LACKING = {
    "epics": {
        *(
            "_links",
            "author",
            "color",
            "downvotes",
            "due_date_from_milestones",
            "end_date",
            "imported",
            "imported_from",
        ),
        *("start_date_from_milestones", "subscribed", "text_color", "upvotes", "web_edit_url", "work_item_id"),
    },
    "labels": {"description_html", "subscribed", "text_color"},
    "deploy_keys": {"fingerprint", "fingerprint_sha256"},
    "members": {"created_at", "created_by", "email"},
    "service_accounts": {"unconfirmed_email"},  # it waits for a confirmation only where a setting asks for one
}
"""The keys that the sandbox leaves out, by the kind of record. No client of ours reads them."""

LACKS_ALL = {
    "epics": {"epics", "labels"},
    "protected-branches-changes": {"deploy_keys", "members"},
    "service-accounts": {"service_accounts"},
}
"""The recordings in which it leaves out all of them, by the kind of record."""

SETTING = "a setting of the instance was changed meanwhile"
NOT_SERVED = "no client of the sandbox asks for it"

EXPLAINED: dict[str, dict[range | tuple[int, ...], str]] = {
    "approval-rules-changes": {(58, 59): NOT_SERVED},
    "approval-settings": {range(52, 55): SETTING},
    "container-tag-immutable-rules": {(1, 2, 3, 4, 7, 15, 16): "GraphQL is not served"},
    "epics": {
        (10,): "the scopes of AI agents are not served",
        (16, 18): "labels are replaced as a whole, never added or removed one by one",
        (24,): "colours are not served",
        range(33, 37): "parents are set by `parent_id`, not by lists of children",
        (37, 46): "the epic has no child here, and may become confidential",
        (51,): SETTING,
    },
    "error-tracking-client-keys": {(15,): NOT_SERVED},
    "fleet-apply": {(124,): "the group had to be public for a public project"},
    "fleet-plan": {(124,): "the group had to be public for a public project"},
    "free-edition": {(18, 19, 23, 24, 25): NOT_SERVED},
    "group-approval-rules": {
        (*range(10), 12): "rules of groups are behind a flag that is off",
    },
    "job-token-scope": {(47,): SETTING},
    "groups-and-projects": {
        (20,): "everybody's access to a new project is there at once",
        (24, 25): "labels are not served",
        (33,): "an export is made sooner",
    },
    "pages": {(12,): NOT_SERVED},
    "protected-branches-locked-out": {(12,): NOT_SERVED},
    "protections-public-and-personal": {
        (8, 19, 30, 40, 45): NOT_SERVED,
        (24,): "users have no pictures",
        (29, 38): "the audit does not tell what is created, and tells less of the settings of groups",
    },
    "rate-limit": {(3, 4, 6, 8, 9): SETTING},
    "scim-identities": {(0,): "the identities were made after this answer", (19,): NOT_SERVED},
    "service-accounts": {
        range(26, 48): "accounts of groups are not served",
        (49,): NOT_SERVED,
    },
    "tokens-and-paths": {
        (2, 3): "tokens of a state file have no expiry and are never in use",
        (29,): "nothing is answered with 304",
    },
}
"""The answers that differ, by recording and number, with the reason."""

RATE_LIMIT_RECORDED = datetime(2026, 11, 22, 5, 41, 30, tzinfo=UTC)
"""The limits in `rate-limit` end soon after."""

TRACED = {
    *("approval-rules", "group-protected-branches", "milestones", "package-protection-rules"),
    *("protected-branches-changes", "protected-tags", "protections-public-and-personal", "service-accounts"),
}
"""The recordings that come to lines of the sandbox to which nothing else comes."""

PROOF = Path(__file__).parent.parent.parent / "docs" / "explanation" / "proof.md"

UNTRACED = pytest.mark.untraced
ONCE = Policy(tries=1, first_tries=1)


def ask(client: Client, exchange: Exchange) -> Any:
    """Send a recorded request by the client, and return the value of the answer."""
    if exchange.method == "GET":
        return client.get(exchange.target)
    body = json.loads(exchange.sent) if exchange.sent else None
    return client.send(Request(exchange.method, exchange.target, body))  # type: ignore[arg-type]  # a cassette holds any


def can_be_sent(exchange: Exchange) -> bool:
    """Whether the client would ever send such a request: to this API, with a token, and with JSON."""
    with suppress(ValueError):
        json.loads(exchange.sent or b"null")
        return exchange.who is not None and "://" not in exchange.target
    return False


def a_client(transport: TapedTransport) -> Client:
    return Client(API, "a-token", policy=ONCE, clock=SwiftClock(RATE_LIMIT_RECORDED), connect=lambda *_: transport)


@pytest.mark.untraced
@pytest.mark.parametrize("name", NAMES)
def test_the_client_understands_what_the_service_answers(name: str) -> None:
    tape = tape_of(name)
    transport = TapedTransport(tape)
    client = a_client(transport)
    asked = 0
    for exchange in exchanges(tape):
        if not can_be_sent(exchange):
            transport.skip()
            continue
        asked += 1
        if exchange.status < 300:
            assert ask(client, exchange) == (exchange.value if exchange.body else None), exchange
            continue
        if exchange.status == 301:
            with pytest.raises(NotRecorded, match=f"^{re.escape(exchange.headers['location'])}$"):
                ask(client, exchange)
            client = a_client(transport)  # this one remembers that the project has moved
            continue
        with pytest.raises(ServiceError) as caught:
            ask(client, exchange)
        assert caught.value.status == exchange.status, exchange
        assert all(text in caught.value.reason for text in sentences(exchange.value)), exchange
        if exchange.status == 429:
            client = a_client(transport)  # this one waits for the time that the service told
    assert asked


def sentences(value: Any) -> list[str]:
    """Return the sentences of an error that people should read."""
    match value:
        case str():
            return [value.strip()]
        case list():
            return [text for each in value for text in sentences(each)]
        case {"error_description": text}:
            return [text]
        case dict():
            return [text for each in value.values() for text in sentences(each)]
    return []


@pytest.mark.parametrize("name", [pytest.param(each, marks=() if each in TRACED else UNTRACED) for each in NAMES])
def test_the_sandbox_answers_as_the_service_does_and_lacks_few_keys(name: str, sandbox: Sandbox) -> None:
    replayed = Replayed(sandbox, name)
    differing = {}
    lacks: dict[str, set[str]] = {}
    with httpx.Client(base_url=sandbox.api_url, headers={"content-type": "application/json"}) as client:
        for exchange, response in replayed.answers(client):
            if found := replayed.compare(exchange, response):
                differing[exchange.number] = found
            if response.status_code == exchange.status < 300:
                keys = lacking(exchange.value, value_of(response))
                lacks.setdefault(record_of(exchange.target), set()).update(keys)
    explained = EXPLAINED.get(name, {})
    expected = {number for numbers in explained for number in numbers}
    assert {number: found for number, found in differing.items() if number not in expected} == {}
    assert expected <= differing.keys(), "no longer differs"
    shown = {record: keys for record, keys in lacks.items() if record not in LARGE_RECORDS}
    assert {record: keys for record, keys in shown.items() if not keys <= LACKING.get(record, set())} == {}
    all_of_them = LACKS_ALL.get(name, set())
    assert {record: shown[record] for record in all_of_them} == {record: LACKING[record] for record in all_of_them}


@pytest.mark.untraced
def test_the_page_says_how_many_answers_differ() -> None:
    asked = {name: len(list(exchanges(tape_of(name)))) for name in PROTECTIONS}
    differing = sum(len(answers) for name in asked for answers in EXPLAINED.get(name, {}))
    words = " ".join(PROOF.read_text().split())
    assert (
        f"Its {sum(asked.values())} answers about protection rules are recorded too, in {len(asked)} recordings"
        in words
    )
    assert f"the sandbox answers {sum(asked.values()) - differing} of them alike" in words


def test_each_key_that_the_sandbox_lacks_is_lacking_somewhere() -> None:
    assert sorted(record for records in LACKS_ALL.values() for record in records) == sorted(LACKING)
    assert LACKS_ALL.keys() <= {*NAMES}
