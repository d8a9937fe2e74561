"""Runs that meet somebody else, are killed, or come back to a saved plan; and the rotation of tokens."""

import json
import signal
from collections.abc import Callable
from contextlib import ExitStack
from threading import Barrier, Event

import pytest

from tests.acceptance.installation import World
from tests.between import Passing, between

pytestmark = pytest.mark.untraced
"""Others cover the same lines; tracing would take as long as the tests."""

WAIT = 120
"""Seconds for which a held answer waits at most."""


def values(world: World, file: str = "tokens") -> list[str]:
    """Return the values that were delivered to a file."""
    path = world.folder / file
    return [json.loads(line)["token"] for line in path.read_text().splitlines()] if path.exists() else []


def triggers(world: World) -> list[str]:
    """Return the values of the trigger tokens of `app`, the oldest first."""
    return [each["token"] for each in world.value("GET", f"projects/{world.ids['app']}/triggers")]


def test_a_saved_plan_does_what_has_not_moved_since(world: World) -> None:
    at = f"projects/{world.project('app')}/milestones"
    ids = {title: world.value("POST", at, {"title": title})["id"] for title in ("a", "b", "c")}
    world.write(
        "manifests/all.yaml",
        """
kind: Project
metadata: {path: acme/app}
spec:
  milestones: {a: {description: new}, b: {description: new}, c: null, d: {}}
  job_token_scope: {groups: [acme]}
""",
    )
    world.expect("plan --out plan.json", 0, PLANNED)
    world.value("PUT", f"{at}/{ids['b']}", {"description": "by hand"})
    world.value("PUT", f"{at}/{ids['c']}", {"due_date": "2027-01-01"})
    world.value("POST", at, {"title": "d"})
    world.expect("apply --plan plan.json --yes", 3, STALE)
    live = {each["title"]: each["description"] for each in world.value("GET", at)}
    assert live == {"a": "new", "b": "by hand", "c": None, "d": None}


def test_a_run_that_is_killed_before_the_answer_is_made_good_by_the_next(world: World) -> None:
    world.project("app")
    world.write(
        "manifests/all.yaml",
        """
kind: Project
metadata: {path: acme/app}
spec: {milestones: {a: {}}, trigger_tokens: {nightly: {}}}
""",
    )
    arrived, killed = Event(), Event()

    def hold(passing: Passing) -> None:
        if passing.request.startswith("POST ") and passing.request.endswith("/triggers"):
            arrived.set()
            killed.wait(WAIT)

    with between(world.installation.api_url) as relay:
        relay.alter = hold
        process = world.start("apply --yes --journal journal --tokens-to tokens", api_url=relay.api_url)
        assert arrived.wait(WAIT)
        process.send_signal(signal.SIGKILL)
        assert world.end(process).code == -signal.SIGKILL
        killed.set()
        assert (len(triggers(world)), values(world)) == (1, [])
        again = "apply --yes --journal journal --tokens-to tokens"
        done = world.run(again, api_url=relay.api_url)
    assert done.code == 0
    assert "Unconfirmed write POST projects/acme%2Fapp/triggers (project acme/app, 'nightly'): it succeeded" in done.err
    assert triggers(world) == values(world)
    assert values(world)[0] not in (world.folder / "journal").read_text()
    assert world.run("plan --detailed-exitcode").code == 0


def test_two_applies_at_once_make_each_thing_once(world: World) -> None:
    app = world.project("app")
    world.write(
        "manifests/all.yaml",
        """
kind: Project
metadata: {path: acme/app}
spec:
  milestones: {a: {}}
  trigger_tokens: {nightly: {}}
""",
    )
    meeting = Barrier(2, timeout=WAIT)

    def meet_at_the_look_before_the_creation() -> Callable[[Passing], None]:
        readings = iter((False, True))

        def hold(passing: Passing) -> None:
            if passing.request.startswith(f"GET projects/{world.at('app')}/triggers") and next(readings, False):
                meeting.wait()

        return hold

    with ExitStack() as stack:
        processes = []
        for number in (1, 2):
            relay = stack.enter_context(between(world.installation.api_url))
            relay.alter = meet_at_the_look_before_the_creation()
            processes.append(world.start(f"apply --yes --tokens-to tokens{number}", api_url=relay.api_url))
        ended = [world.end(process) for process in processes]
    (token,) = triggers(world)
    assert [each["title"] for each in world.value("GET", f"projects/{app}/milestones")] == ["a"]
    (winner,) = [each for each in ended if '+ trigger token "nightly" done' in each.lines]
    (loser,) = [each for each in ended if each is not winner]
    assert (loser.code, "somebody else created the same object at the same time" in loser.out) == (3, True)
    assert values(world, f"tokens{ended.index(winner) + 1}") == [token]
    assert values(world, f"tokens{ended.index(loser) + 1}") not in ([], [token])
    assert world.run("plan --detailed-exitcode").code == 0


def test_a_token_is_rotated_and_the_old_one_goes_when_the_new_one_is_delivered(aging_world: World) -> None:
    world = aging_world
    world.project("app")
    world.write(
        "manifests/all.yaml",
        """
kind: Project
metadata: {path: acme/app}
spec: {trigger_tokens: {nightly: {rotate_after: 1m}}}
""",
    )
    world.expect("apply --yes --tokens-to tokens", 0, CREATED)
    world.let_pass(61)
    world.expect("apply --yes", 1, "")
    world.expect("apply --yes --tokens-to tokens", 0, CREATED.replace(", 1 loosening", ""))  # a successor means nothing
    old, new = values(world)
    assert triggers(world) == [old, new]
    assert "1 rotated token beside a successor: a run after " in world.run("apply --yes --tokens-to tokens").out
    assert triggers(world) == [old, new]
    world.expect("apply --yes --tokens-to tokens --grace 0s", 0, DELETED)
    assert (triggers(world), values(world)) == ([new], [old, new])


PLANNED = """
Loosens protection:
project acme/app
+ allowlisted group "acme" loosens
All else:
project acme/app
+ milestone "d"
~ milestone "a" description: none -> new
~ milestone "b" description: none -> new
- milestone "c"
Plan: 2 to create, 2 to update, 1 to delete, 1 loosening. 5 writes to apply; 4 requests were made to plan.
"""
STALE = """
project acme/app
+ allowlisted group "acme" done
+ milestone "d" done: by an earlier run
~ milestone "a" done
~ milestone "b" stale: it has changed since the plan was made: description: none -> by hand
- milestone "c" stale: it has changed since the plan was made: due_date: none -> 2027-01-01
Applied: 2 created, 1 updated, 1 loosening, 2 stale. 8 requests made.
"""
CREATED = """
project acme/app
+ trigger token "nightly" done
Applied: 1 created, 1 loosening. 4 requests made.
"""
DELETED = """
project acme/app
- trigger token "nightly" done
Applied: 1 deleted. 4 requests made.
"""
