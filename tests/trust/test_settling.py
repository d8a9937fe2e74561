"""Doubts and how they are settled, one by one."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from reconciler.engine.apply import ApplyOptions, Stop, TokenSink, apply_plan, recover
from reconciler.engine.apply.journal import Intent, Interrupted
from reconciler.engine.apply.reread import collection_of
from reconciler.errors import AnswerLost, OutputFailed, Stopped, Unauthorized, WaitTooLong
from reconciler.model.diff import AsRead
from reconciler.model.item import Change, Create, Delete, Update
from reconciler.model.protocols import Json, Method, Request
from reconciler.model.state import Section
from reconciler.model.targets import Address
from reconciler.sandbox import Sandbox
from reconciler.service import Client
from tests.building import ACME, API, KINDS, LIB, section
from tests.engine_driver import EngineDriver, failures
from tests.service.clock import SwiftClock
from tests.states import a_small_service

TOKENS = section("trigger_tokens", {"t": {}})
URL = "projects/acme%2Fapi/triggers"


class Meddled(Client):
    """A client whose writes go through somebody's hands, who is given the real sending."""

    def __init__(self, api_url: str, meddle: Callable[[Request, Callable[[], Json]], Json]) -> None:
        super().__init__(api_url, "ada-token", clock=SwiftClock())
        self.meddle = meddle

    def send(self, request: Request, **more: Any) -> Json:
        return self.meddle(request, lambda: super(Meddled, self).send(request, **more))


def applied(
    sandbox: Sandbox, meddle: Callable[[Request, Callable[[], Json]], Json], *sections: Section, **project: Any
) -> tuple[EngineDriver, list[str]]:
    state = a_small_service("deployed")
    state["projects"][0] |= project
    with EngineDriver(sandbox, state, Meddled(sandbox.api_url, meddle)) as engine:
        return engine, failures(engine.apply(engine.plan(*sections)))


def archive(sandbox: Sandbox) -> None:
    state = sandbox.state()
    state["projects"][0]["archived"] = True
    sandbox.replace_state(state)


def lost(request: Request) -> AnswerLost:
    return AnswerLost(str(request), "the response was lost: reset")


def test_a_creation_whose_fate_cannot_be_read_is_reported_by_name(sandbox: Sandbox) -> None:
    def meddle(request: Request, send: Callable[[], Json]) -> Json:
        send()
        archive(sandbox)
        raise lost(request)

    engine, told = applied(sandbox, meddle, TOKENS)
    assert told == [
        f"failed: trigger token t: POST {URL}: the response was lost: reset; checking whether it succeeded: "
        f"GET {URL}: 403 Forbidden"
    ]
    assert engine.tokens == {}


def test_a_creation_beside_another_new_one_of_the_same_name_is_reported_by_name(sandbox: Sandbox) -> None:
    def meddle(request: Request, send: Callable[[], Json]) -> Json:
        send()
        send()
        raise lost(request)

    _, told = applied(sandbox, meddle, TOKENS)
    assert told == [
        f"failed: trigger token t: POST {URL}: the response was lost: reset; and 2 new objects have this name now; "
        "a token exists whose value was not delivered: delete it"
    ]


def test_what_somebody_else_has_just_created_is_not_taken_for_ours(sandbox: Sandbox) -> None:
    def meddle(request: Request, send: Callable[[], Json]) -> Json:
        if not sandbox.state()["projects"][0]["trigger_tokens"]:
            with Client(sandbox.api_url, "bob-token") as bob:
                bob.send(request)
            raise lost(request)
        return send()

    engine, told = applied(sandbox, meddle, TOKENS)
    assert told == [
        "failed: trigger token t: somebody else created the same object at the same time, ID 1; this run's, ID 2, was deleted "
        "again; the delivered value is void"
    ]
    assert [each["owner"] for each in sandbox.state()["projects"][0]["trigger_tokens"]] == ["bob"]
    assert list(engine.tokens) == ["t"]


def at_once(sandbox: Sandbox, token: str) -> Callable[[Request, Callable[[], Json]], Json]:
    """Let a user create the same right before each creation."""

    def meddle(request: Request, send: Callable[[], Json]) -> Json:
        if request.method == "POST":
            with Client(sandbox.api_url, token) as other:
                other.send(request)
        return send()

    return meddle


@pytest.mark.parametrize("room", [1, 2])
def test_of_two_of_ours_the_value_of_the_one_that_stays_is_delivered_last(sandbox: Sandbox, room: int) -> None:
    delivered: list[str] = []

    def deliver(_address: Address, value: str) -> None:
        if len(delivered) == room:
            raise OutputFailed("the disk is full")
        delivered.append(value)

    meddled = Meddled(sandbox.api_url, at_once(sandbox, "ada-token"))
    with EngineDriver(sandbox, a_small_service("deployed"), meddled) as engine:
        terms = ApplyOptions(deliver=deliver)
        told = failures(list(apply_plan(engine.plan(TOKENS), engine.client, KINDS, terms)))
    assert told == [
        "failed: trigger token t: somebody else created the same object at the same time, ID 1; this run's, ID 2, was deleted "
        f"again; the delivered value is void{', and the value of the other was delivered' * (room == 2)}"
    ]
    live = [each["token"] for each in sandbox.state()["projects"][0]["trigger_tokens"]]
    assert (delivered[1:] == live) is (room == 2)


def test_a_successor_has_no_rival_in_a_token_of_another_user(sandbox: Sandbox) -> None:
    due = {"id": 1, "description": "t", "owner": "ada", "created_at": "2020-01-01T00:00:00Z"}
    rotated = section("trigger_tokens", {"t": {"rotate_after": "90d"}})
    engine, told = applied(sandbox, at_once(sandbox, "bob-token"), rotated, trigger_tokens=[due])
    assert told == []
    tokens = sandbox.state()["projects"][0]["trigger_tokens"]
    assert [each["owner"] for each in tokens] == ["ada", "bob", "ada"]
    assert engine.tokens == {"t": tokens[2]["token"]}


def test_a_creation_that_is_lost_every_time_is_given_up(sandbox: Sandbox) -> None:
    tries = []

    def meddle(request: Request, _send: Callable[[], Json]) -> Json:
        tries.append(request)
        raise lost(request)

    _, told = applied(sandbox, meddle, TOKENS)
    assert told == [f"failed: trigger token t: POST {URL}: the response was lost: reset"]
    assert len(tries) == 3


def test_a_creation_that_is_carried_out_late_is_ours_although_its_repetition_is_refused(sandbox: Sandbox) -> None:
    tries = []

    def meddle(request: Request, send: Callable[[], Json]) -> Json:
        tries.append(request)
        if len(tries) == 1:
            raise lost(request)
        send()
        return send()

    _, told = applied(sandbox, meddle, section("milestones", {"a": {}}))
    assert told == []
    assert [each["title"] for each in sandbox.state()["projects"][0]["milestones"]] == ["a"]
    assert len(tries) == 2


@pytest.mark.parametrize("odd", [[], {}, {"id": "7", "token": "glptt"}, {"id": 7, "token": None}])
def test_an_odd_answer_to_a_creation_is_settled_by_reading(sandbox: Sandbox, odd: Json) -> None:
    def meddle(_request: Request, send: Callable[[], Json]) -> Json:
        send()
        return odd

    engine, told = applied(sandbox, meddle, TOKENS)
    assert told == []
    assert list(engine.tokens.values()) == [each["token"] for each in sandbox.state()["projects"][0]["trigger_tokens"]]


def test_an_odd_answer_matters_only_where_something_is_needed_of_it(sandbox: Sandbox) -> None:
    def meddle(_request: Request, send: Callable[[], Json]) -> Json:
        send()
        return "odd"

    engine, told = applied(sandbox, meddle, section("milestones", {"a": {}}))
    assert told == []
    assert len(engine.writes()) == 1


def test_a_change_whose_answer_was_lost_is_done_if_the_service_shows_it(sandbox: Sandbox) -> None:
    def meddle(request: Request, send: Callable[[], Json]) -> Json:
        send()
        raise lost(request)

    wanted = section("milestones", {"a": None, "b": {"state": "closed"}})
    _, told = applied(sandbox, meddle, wanted, milestones=[{"title": "a"}, {"title": "b"}])
    assert told == []


def test_a_change_that_cannot_be_verified_is_not_called_done(sandbox: Sandbox) -> None:
    def meddle(_request: Request, send: Callable[[], Json]) -> Json:
        answer = send()
        archive(sandbox)
        return answer

    _, told = applied(sandbox, meddle, TOKENS)
    assert told == [f"failed: trigger token t: applied, but cannot be verified: GET {URL}: 403 Forbidden"]


def test_of_two_that_were_made_at_once_the_elder_stays(sandbox: Sandbox) -> None:
    def meddle(request: Request, send: Callable[[], Json]) -> Json:
        answer = send()
        with Client(sandbox.api_url, "bob-token") as bob:
            bob.send(request)
        return answer

    engine, told = applied(sandbox, meddle, TOKENS)
    assert told == []
    assert [each["owner"] for each in sandbox.state()["projects"][0]["trigger_tokens"]] == ["ada", "bob"]
    assert list(engine.tokens) == ["t"]


def test_a_younger_one_that_cannot_be_deleted_again_is_named(sandbox: Sandbox) -> None:
    def meddle(request: Request, send: Callable[[], Json]) -> Json:
        if request.method == "DELETE":
            raise lost(request)
        with Client(sandbox.api_url, "bob-token") as bob:
            bob.send(request)
        return send()

    _, told = applied(sandbox, meddle, TOKENS)
    assert told == [
        "failed: trigger token t: somebody else created the same object at the same time, ID 1; this run's, ID 2, could not be "
        f"deleted again and should be: DELETE {URL}/2: the response was lost: reset; the delivered value is void"
    ]


def test_a_younger_epic_is_deleted_by_its_number_in_the_group(sandbox: Sandbox) -> None:
    def meddle(request: Request, send: Callable[[], Json]) -> Json:
        if request.method == "POST":
            with Client(sandbox.api_url, "bob-token") as bob:
                bob.send(request)
        return send()

    state = a_small_service("deployed")
    state["groups"][0]["epics"] = [{"id": 50, "title": "Other"}]
    with EngineDriver(sandbox, state, Meddled(sandbox.api_url, meddle)) as engine:
        assert failures(engine.apply(engine.plan(section("epics", {"Roadmap": {}}, ACME)))) == [
            "failed: epic Roadmap: somebody else created the same object at the same time, ID 51; this run's, ID 52, "
            "was deleted again"
        ]
        assert engine.writes()[-1] == "DELETE groups/acme/epics/3"


def test_an_epic_whose_creation_is_answered_oddly_is_found_for_what_refers_to_it(sandbox: Sandbox) -> None:
    def meddle(request: Request, send: Callable[[], Json]) -> Json:
        answer = send()
        return {} if request.method == "POST" else answer

    state = a_small_service("deployed")
    with EngineDriver(sandbox, state, Meddled(sandbox.api_url, meddle)) as engine:
        value = {"Roadmap": {"state": "closed"}, "Child": {"parent": "Roadmap"}}
        assert failures(engine.apply(engine.plan(section("epics", value, ACME)))) == []
        assert engine.writes() == [
            'POST groups/acme/epics {"title": "Roadmap"}',
            'PUT groups/acme/epics/1 {"state_event": "close"}',
            'POST groups/acme/epics {"title": "Child", "parent_id": 1}',
        ]


REFUSED_TOKEN = (
    "the service refuses the token: 401 Unauthorized; the token is wrong, expired or revoked: make a new one with the scope "
    "api, and set RECONCILER_TOKEN or --token-file"
)


def test_a_refused_token_ends_the_run_and_nothing_more_is_asked(sandbox: Sandbox) -> None:
    def meddle(_request: Request, send: Callable[[], Json]) -> Json:
        answer = send()
        sandbox.set_faults([{"kind": "status", "status": 401}])
        return answer

    milestones = section("milestones", {"a": {}, "b": {}, "c": {}})
    engine, told = applied(sandbox, meddle, milestones, TOKENS, section("milestones", {"a": {}}, LIB))
    refused = "the service refuses the token"
    assert told == [
        f"failed: milestone a: applied, but cannot be verified: {refused}",
        f"failed: milestone b: POST projects/acme%2Fapi/milestones: 401 Unauthorized; {Unauthorized.remedy}",
        f"skipped: milestone c: {refused}",
        f"skipped: trigger token t: {refused}",
        f"skipped: milestone a: {refused}",
    ]
    assert engine.requests() == [
        'POST projects/acme%2Fapi/milestones {"title": "a"}',
        'POST projects/acme%2Fapi/milestones {"title": "b"}',
    ]


def test_a_token_that_is_refused_when_it_looks_ends_the_run_too(sandbox: Sandbox) -> None:
    with EngineDriver(sandbox, a_small_service("deployed")) as engine:
        plan = engine.plan(TOKENS, section("milestones", {"a": {}}, LIB))
        sandbox.set_faults([{"kind": "status", "status": 401}])
        assert failures(engine.apply(plan)) == [
            f"skipped: trigger token t: {REFUSED_TOKEN}",
            f"skipped: milestone a: {REFUSED_TOKEN}",
        ]
        assert engine.requests() == [f"GET {URL}?per_page=100&page=1"]


def test_what_was_not_sent_because_of_a_wait_that_is_too_long_is_skipped(sandbox: Sandbox) -> None:
    clock = SwiftClock()
    client = Client(sandbox.api_url, "ada-token", clock=clock)
    with EngineDriver(sandbox, a_small_service("deployed"), client) as engine:
        plan = engine.plan(section("milestones", {"a": {}, "b": {}}), section("milestones", {"a": {}}, LIB))
        sandbox.set_faults([{"kind": "status", "status": 503, "retry_after": 900, "method": "POST"}])
        sandbox.clear_log()
        terms = ApplyOptions(stop=Stop(client.stop))
        first, *others = failures(apply_plan(plan, client, KINDS, terms))
        assert len(engine.writes()) == 1
        why = 'service unavailable ("503 Service Unavailable"): retry at 2026-10-10 12:15:00 UTC, in 900 s; --max-wait is 300 s'
        assert first == f"failed: milestone a: POST projects/acme%2Fapi/milestones: {why}"
        assert others == [f"skipped: milestone b: {why}", f"skipped: milestone a: {why}"]


def test_a_wait_that_is_too_long_ends_the_run_and_says_when_to_come_back(sandbox: Sandbox) -> None:
    def meddle(request: Request, _send: Callable[[], Json]) -> Json:
        raise WaitTooLong(str(request), "come back at 2026-11-21T12:00:00Z", datetime(2026, 11, 21, 12, tzinfo=UTC))

    _, told = applied(sandbox, meddle, section("milestones", {"a": {}, "b": {}}))
    assert told == [
        "failed: milestone a: POST projects/acme%2Fapi/milestones: come back at 2026-11-21T12:00:00Z",
        "skipped: milestone b: come back at 2026-11-21T12:00:00Z",
    ]


def test_what_was_still_waiting_when_the_run_ended_is_skipped(sandbox: Sandbox) -> None:
    def meddle(request: Request, _send: Callable[[], Json]) -> Json:
        raise Stopped(str(request), "the run was ended while this waited")

    _, told = applied(sandbox, meddle, section("milestones", {"a": {}}))
    assert told == ["skipped: milestone a: the run ended before this change"]


def test_a_run_that_is_to_end_plans_nothing_again(sandbox: Sandbox) -> None:
    with EngineDriver(sandbox, a_small_service("deployed")) as engine:
        group = section("approval_settings", {"allow_author_approval": False}, ACME)
        plan = engine.plan(group, section("approval_settings", {"allow_committer_approval": False}))
        stop = Stop()
        stop.cancel("enough")
        stop.cancel("later reasons do not count")
        terms = ApplyOptions(deliver=None, stop=stop)
        engine.sandbox.clear_log()
        assert failures(list(apply_plan(plan, engine.client, KINDS, terms))) == [
            "skipped: approval settings None: enough",
            "skipped: approval settings None: enough",
        ]
        assert engine.requests() == []


def test_without_a_place_for_its_value_a_token_does_not_stay(sandbox: Sandbox) -> None:
    with EngineDriver(sandbox, a_small_service("deployed")) as engine:
        plan = engine.plan(TOKENS)
        terms = ApplyOptions(deliver=None)
        [told] = failures(list(apply_plan(plan, engine.client, KINDS, terms)))
        assert told.startswith("failed: trigger token t: no token sink is configured; the undelivered token ")
        assert sandbox.state()["projects"][0]["trigger_tokens"] == []


def test_a_service_that_is_gone_is_a_failure_of_each_change_and_of_nothing_else(sandbox: Sandbox) -> None:
    with EngineDriver(sandbox, a_small_service("deployed")) as engine:
        plan = engine.plan(section("milestones", {"a": {}}))
        with engine.client, Client("http://127.0.0.1:9/api/v4", "ada-token", clock=SwiftClock()) as nowhere:
            engine.client = nowhere
            [told] = failures(engine.apply(plan, recheck=True))
    assert told.startswith(
        "stale: milestone a: cannot be read again: GET projects/acme%2Fapi/milestones: http://127.0.0.1:9"
    )


def left(*intents: Intent) -> Interrupted:
    return Interrupted("the service", "2026-11-21", 3, intents)


def intent(change: Change, request: str) -> Intent:
    method, _, path = request.partition(" ")
    return Intent.of(change, Request(cast("Method", method), path))


def recovered(engine: EngineDriver, *intents: Intent, deliver: TokenSink | None = None) -> list[str]:
    """What is said of each unconfirmed write, and whether it stays in the journal."""
    found = recover(left(*intents), engine.client, KINDS, deliver)
    return [f"{each}{'' if each.settled else ' (stays)'}" for each in found]


CREATED = Create(Address(API, "trigger_tokens", "trigger_tokens", "trigger token", "t"), {}, (), replaces_ids=(1,))
NOT_DELIVERED = f"Unconfirmed write POST {URL} (project acme/api, 't'): it succeeded, and its value is not delivered: "


def tokens(*owners: str, description: str = "t") -> list[dict[str, Any]]:
    """Tokens with the IDs 1, 2 and so on."""
    return [{"id": number, "description": description, "owner": owner} for number, owner in enumerate(owners, 1)]


def test_the_newest_value_of_ours_that_was_not_there_before_is_delivered(sandbox: Sandbox) -> None:
    def after(*owners: str) -> tuple[list[str], object]:
        with EngineDriver(sandbox, a_small_service("deployed")) as engine:
            state = sandbox.state()
            state["projects"][0]["trigger_tokens"] = tokens(*owners)
            sandbox.replace_state(state)
            told = recovered(engine, intent(CREATED, f"POST {URL}"), deliver=engine.deliver)
            values = {each["token"]: each["id"] for each in sandbox.state()["projects"][0]["trigger_tokens"]}
            return [each.partition(": ")[2] for each in told], values.get(engine.tokens.get("t", ""))

    done = "it succeeded, and its value was delivered now."
    assert after("ada", "ada") == ([done], 2)
    assert after("ada", "ada", "ada", "bob") == ([done], 3)
    assert after("ada", "bob") == (["it did not succeed."], None)
    assert after("ada") == (["it did not succeed."], None)


def test_a_value_that_cannot_be_delivered_stays_in_the_journal(sandbox: Sandbox) -> None:
    def fail(*_: object) -> None:
        raise OutputFailed("the disk is full")

    state = a_small_service("deployed")
    state["projects"][0]["trigger_tokens"] = tokens("ada", "ada")
    with EngineDriver(sandbox, state) as engine:
        made = intent(CREATED, f"POST {URL}")
        assert recovered(engine, made, deliver=fail) == [f"{NOT_DELIVERED}the disk is full. (stays)"]
        assert recovered(engine, made) == [f"{NOT_DELIVERED}add --tokens-to FILE or --tokens-command CMD. (stays)"]


def test_unconfirmed_writes_are_looked_for_with_one_reading_for_each_section(sandbox: Sandbox) -> None:
    milestone = Address(API, "milestones", "milestones", "milestone", "a")
    was = AsRead(7, ("a",), {}, {})
    state = a_small_service("deployed")
    state["projects"][0]["milestones"] = [{"id": 7, "title": "a", "description": "b"}]
    posted, put, deleted = (f"{line}projects/acme%2Fapi/milestones{end}" for line, end in METHODS)
    with EngineDriver(sandbox, state) as engine:
        sandbox.clear_log()
        told = recovered(
            engine,
            intent(Create(milestone, {"description": "b"}, ()), posted),
            intent(Create(replace(milestone, name="c"), {}, ()), posted),
            intent(Update(milestone, {}, {"description": "b"}, (), was), put),
            intent(Update(milestone, {}, {"description": "c"}, (), was), put),
            intent(Delete(milestone, {}, (), was), deleted),
            intent(Delete(milestone, {}, (), replace(was, id=8)), deleted.replace("7", "8")),
            intent(Create(replace(milestone, section="epics"), {}, ()), "POST epics"),
            intent(Create(replace(milestone, part="other"), {}, ()), "POST other"),
            intent(Create(milestone, {"description": "b", "field_of_another_version": 1}, ()), posted),
        )
        assert engine.requests() == ["GET projects/acme%2Fapi/milestones?include_ancestors=true&per_page=100&page=1"]
        archive(sandbox)
        assert recovered(engine, intent(CREATED, f"POST {URL}")) == [
            f"Unconfirmed write POST {URL} (project acme/api, 't'): unknown; it could not be checked: "
            f"GET {URL}: 403 Forbidden. (stays)"
        ]
    assert [each.partition("): ")[2] for each in told] == [
        "it succeeded.",
        "it did not succeed.",
        "it succeeded.",
        "it did not succeed.",
        "it did not succeed.",
        "it succeeded.",
        "unknown; this version has no such section. (stays)",
        "unknown; this version has no such section. (stays)",
        "unknown; this version makes no such change. (stays)",
    ]


METHODS = ("POST ", ""), ("PUT ", "/7"), ("DELETE ", "/7")


def test_nothing_can_be_created_where_there_are_only_settings() -> None:
    settings = Address(API, "approval_settings", "approval_settings", "approval settings")
    with pytest.raises(TypeError, match="nothing can be created in approval_settings"):
        collection_of(settings, KINDS)
