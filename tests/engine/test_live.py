"""Reading live state through a reader that answers from memory."""

import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Barrier, Event, Lock, get_ident

import pytest

from reconciler.engine.crew import side_by_side
from reconciler.engine.lookups import look_up, look_up_names
from reconciler.engine.read import read_live
from reconciler.errors import Forbidden, Moved, NotFound, ServiceError, Unauthorized, Unreachable
from reconciler.model.obstacle import Obstacle
from reconciler.model.protocols import Json
from reconciler.model.state import Reference, Vocabulary
from reconciler.model.targets import Level
from reconciler.service import Client
from tests.answering import Answering
from tests.building import API, KINDS, desired, section
from tests.canned import answer, canned

LIB = Reference(Level.PROJECT, "acme/lib")
GROUP = Reference(Level.GROUP, "acme")


@dataclass
class Memory(Answering):
    """A service that answers from memory and remembers what it was asked."""

    answers: Mapping[str, Json]
    asked: list[str] = field(default_factory=list)

    def get(self, path: str) -> Json:
        self.asked.append(path)
        answer = self.answers[path]
        if isinstance(answer, ServiceError):
            raise answer
        return answer


def test_numbers_are_asked_for_once_each() -> None:
    reader = Memory({"projects/acme%2Flib": {"id": 8}, "groups/acme?with_projects=false": {"id": 10}})
    assert look_up([LIB, GROUP, LIB], reader) == {GROUP: 10, LIB: 8}
    assert reader.asked == ["groups/acme?with_projects=false", "projects/acme%2Flib"]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Moved("GET x", "redirected to https://h/projects/7", 301), "moved: redirected to https://h/projects/7"),
        (Forbidden("GET x", "403 Forbidden", 403), "GET x: 403 Forbidden"),
        ({}, "GET projects/acme%2Flib: unexpected response: the body does not have the documented structure"),
        ([], "GET projects/acme%2Flib: unexpected response: the body does not have the documented structure"),
        ({"id": "7"}, "GET projects/acme%2Flib: unexpected response: the body does not have the documented structure"),
        ({"id": 1.5}, "GET projects/acme%2Flib: unexpected response: the body does not have the documented structure"),
    ],
)
def test_a_number_that_cannot_be_had_is_unknown_with_its_reason(answer: Json, reason: str) -> None:
    assert look_up([LIB], Memory({"projects/acme%2Flib": answer})) == {LIB: Obstacle(LIB.target.address, reason)}


def test_a_path_that_is_not_there_is_asked_for_among_the_others_once() -> None:
    gone = NotFound("GET x", "404 Project Not Found", 404)
    answers: dict[str, Json] = {
        "projects/acme%2Flib": gone,
        "groups/acme%2Flib?with_projects=false": gone,
        "groups/acme?with_projects=false": gone,
        "user": {"username": "ada"},
    }
    hidden = "not found, not visible to this token, or not served by this server (%s: 404 Project Not Found)"
    elsewhere = "correct the path, or use a token that can see it"
    assert look_up([LIB, GROUP], Memory(answers)) == {
        LIB: Obstacle(LIB.target.address, hidden % "project acme/lib", elsewhere),
        GROUP: Obstacle(GROUP.target.address, hidden % "group acme", elsewhere),
    }
    answers["groups/acme%2Flib?with_projects=false"] = {"id": 3}
    wrong = Obstacle(LIB.target.address, "this is a group, not a project", "list it under `groups`")
    assert look_up([LIB], Memory(answers)) == {LIB: wrong}


@pytest.mark.parametrize("error", [Unauthorized("GET x", "401"), Unreachable("GET x", "refused")], ids=repr)
def test_without_token_or_service_nothing_is_read(error: ServiceError) -> None:
    with pytest.raises(type(error)):
        look_up([LIB], Memory({"projects/acme%2Flib": error}))
    wanted = desired(section("milestones", {}), section("trigger_tokens", {}))
    with pytest.raises(type(error)):
        read_live(
            wanted,
            Memory({f"{API.url}milestones?include_ancestors=true": error, f"{API.url}triggers": error}),
            KINDS,
        )


def test_results_keep_the_order_of_their_tasks_and_the_first_error_drops_the_rest() -> None:
    begun: list[int] = []
    released = Event()

    def work(task: int) -> int:
        begun.append(task)
        if task == 0:
            released.wait()
        if task == 2:
            released.set()
        if task == 5:
            raise ValueError("five")
        return task

    assert side_by_side(work, [0, 1, 2, 3], lambda: 2) == [0, 1, 2, 3]
    begun.clear()
    with pytest.raises(ValueError, match="five"):
        side_by_side(work, [5, *range(6, 500)], lambda: 1)
    assert len(begun) < 494


def test_a_signal_that_another_thread_receives_ends_the_waiting() -> None:
    never = Event()

    def work(_: int) -> None:
        signal.pthread_kill(get_ident(), signal.SIGINT)  # the main thread sleeps on, as after a signal that comes early
        never.wait()

    try:
        with pytest.raises(KeyboardInterrupt):
            side_by_side(work, [1], lambda: 1)
    finally:
        never.set()


def test_the_number_of_tasks_under_way_follows_what_is_allowed() -> None:
    allowed, under_way, most_later = 1, 0, 0
    meeting, counting = Barrier(3), Lock()

    def work(task: int) -> int:
        nonlocal allowed, under_way, most_later
        if task == 0:
            allowed = 3
        elif task <= 3:
            meeting.wait(10)
            allowed = 1
        else:
            with counting:
                under_way += 1
                most_later = max(most_later, under_way)
            with counting:
                under_way -= 1
        return task

    assert side_by_side(work, range(20), lambda: allowed) == [*range(20)]
    assert most_later == 1


def test_names_of_a_list_are_those_that_are_text() -> None:
    entries = '[{"name": "a", "id": 1}, {"name": "a", "id": 2}, {"name": 7, "id": 3}, "b", {"name": "c", "id": "4"}]'
    with canned(answer("200 OK", entries)) as server, Client(server.api_url, "ada-token") as client:
        assert look_up_names(Vocabulary(API, "labels"), client) == {"a": (1, 2), "c": ()}
