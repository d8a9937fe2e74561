"""A rotation that is killed again and again never loses the last token whose value is known, and leaves none over."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconciler.cli.journaling import open_journal
from reconciler.engine.apply import ApplyOptions, Stop, apply_plan
from reconciler.engine.apply.sinks import TokenFile
from reconciler.engine.plan import draw_plan
from reconciler.model.protocols import Json, Request
from reconciler.model.targets import Address
from reconciler.sandbox import Sandbox
from reconciler.service import Client
from tests.building import KINDS, desired, section
from tests.service.clock import SwiftClock
from tests.states import a_small_service

URL = "projects/acme%2Fapi/triggers"
DUE = timedelta(days=90, minutes=1)
WANTED = desired(section("trigger_tokens", {"deploy": {"rotate_after": "90d"}}))


class Killed(BaseException):
    """What nothing catches, as nothing catches SIGKILL."""


class NotAttempted:
    """Kills a run after so many of its steps; each request and each delivery is two: not yet done, and done."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def step(self) -> None:
        if not self.left:
            raise Killed
        self.left -= 1

    def around(self, work: Callable[[], Any]) -> Any:
        self.step()
        result = work()
        self.step()
        return result


class Mortal(Client):
    """A client of a run that has a fate, whose machine has a clock of its own."""

    def __init__(self, api_url: str, fate: NotAttempted, clock: SwiftClock) -> None:
        super().__init__(api_url, "ada-token", clock=clock)
        self.fate = fate

    def get(self, path: str) -> Json:
        return self.fate.around(lambda: super(Mortal, self).get(path))

    def pages(self, path: str, *, whole: bool = False) -> list[Json]:
        found: list[Json] = self.fate.around(lambda: super(Mortal, self).pages(path, whole=whole))
        return found

    def send(self, request: Request, **more: Any) -> Json:
        return self.fate.around(lambda: super(Mortal, self).send(request, **more))


@dataclass
class Rotation:
    """A token that is due, and runs on it.

    Attributes:
        folder: holds what the runs keep.
        journal: whether they keep one.
        ahead: how far the clock of their machine is ahead of the service's.
    """

    sandbox: Sandbox
    folder: Path
    journal: bool = False
    ahead: timedelta = timedelta()

    def begin(self, *others: dict[str, object]) -> None:
        """Let there be a token that is due and was delivered, besides others."""
        now = datetime.now(UTC)
        state = a_small_service("deployed")
        state["instance"]["now"] = now.isoformat()
        old = {"id": 7, "description": "deploy", "owner": "ada", "created_at": (now - DUE).isoformat()}
        state["projects"][0]["trigger_tokens"] = [old | {"token": "glptt-delivered"}, *others]
        self.sandbox.replace_state(state)
        self.file.unlink(missing_ok=True)
        (self.folder / "journal").unlink(missing_ok=True)
        TokenFile(self.file)(Address(WANTED.targets[0].target, "", "", "", "deploy"), "glptt-delivered")

    @property
    def file(self) -> Path:
        """Where values go."""
        return self.folder / "tokens"

    def tokens(self) -> list[dict[str, Any]]:
        """All live tokens."""
        found: list[dict[str, Any]] = self.sandbox.state()["projects"][0]["trigger_tokens"]
        return found

    def ours(self) -> list[str]:
        """The values of our tokens."""
        return [each["token"] for each in self.tokens() if each["owner"] == "ada"]

    def known(self) -> list[str]:
        """The values that were delivered, oldest first."""
        return [json.loads(line)["token"] for line in self.file.read_text().splitlines()]

    def run(self, steps: int = -1) -> bool:
        """Do what `apply` does; say whether it came to its end."""
        fate = NotAttempted(steps)
        sink = TokenFile(self.file)

        def deliver(address: Address, value: str) -> None:
            fate.around(lambda: sink(address, value))

        service_now = datetime.fromisoformat(self.sandbox.state()["instance"]["now"])
        try:
            clock = SwiftClock(service_now + self.ahead)
            file = self.folder / "journal" if self.journal else None
            with (
                Mortal(self.sandbox.api_url, fate, clock) as client,
                open_journal(file, client, KINDS, deliver) as journal,
            ):
                plan = draw_plan(WANTED, client, KINDS)
                with journal.run(client.api_url, "digest"):
                    terms = ApplyOptions(deliver=deliver, stop=Stop(), write_log=journal.log)
                    list(apply_plan(plan, client, KINDS, terms))
                assert not journal.failures
                return not journal.unsettled
        except Killed:
            return False

    def end(self) -> None:
        """Two runs that nobody kills: then one token is left, and it is the one that was delivered last."""
        assert self.run()
        assert self.run()
        [left] = self.ours()
        assert left == self.known()[-1] != "glptt-delivered"
        assert sum(value == left for value in self.known()) == 1


HOUR = timedelta(hours=1)
AROUND: dict[str, list[dict[str, object]]] = {
    "nobody else's": [],
    "an older one of another user": [{"owner": "bob", "created_at": "2020-01-01T00:00:00Z"}],
    "newer ones of others": [{"owner": "bob"}, {"owner": None}],
}


def others(around: str) -> list[dict[str, object]]:
    return [{"id": 3 * number, "description": "deploy", **each} for number, each in enumerate(AROUND[around], 1)]


@pytest.fixture
def rotation(sandbox: Sandbox, tmp_path: Path) -> Rotation:
    return Rotation(sandbox, tmp_path)


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("journal", "ahead"), [(False, HOUR), (True, -HOUR)], ids=["no journal, clock ahead", "a journal, clock behind"]
)
@pytest.mark.parametrize("around", AROUND)
def test_a_rotation_killed_at_any_step_loses_no_token_that_is_known(
    rotation: Rotation, journal: bool, around: str, ahead: timedelta, record_property: Callable[[str, object], None]
) -> None:
    rotation.ahead, rotation.journal = ahead, journal
    for run in (1, 2):
        steps = 0
        while True:
            rotation.begin(*others(around))
            for _ in range(run - 1):
                assert rotation.run()
            ended = rotation.run(steps)
            assert set(rotation.ours()) & set(rotation.known())
            rotation.end()
            assert len(rotation.tokens()) == 1 + len(others(around))
            if ended:
                break
            steps += 1
        assert steps > 6
        record_property("kills of a rotation survived", steps)


@pytest.mark.untraced
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    kills=st.lists(st.integers(0, 12), max_size=5),
    around=st.sampled_from(sorted(AROUND)),
    ahead=st.sampled_from([-HOUR, HOUR]),
    journal=st.booleans(),
)
def test_after_any_number_of_kills_a_known_token_lives_and_soon_no_other_does(
    rotation: Rotation, kills: list[int], around: str, ahead: timedelta, journal: bool
) -> None:
    rotation.ahead, rotation.journal = ahead, journal
    rotation.begin(*others(around))
    for steps in kills:
        rotation.run(steps)
        assert set(rotation.ours()) & set(rotation.known())
    rotation.end()
    assert len(rotation.tokens()) == 1 + len(others(around))
