"""Writes to one target are sent one after another: a real service answers those that overlap with 409 or 500."""

from collections import Counter
from threading import Lock
from typing import Any

import pytest

from reconciler.engine.apply import ApplyOptions, Stop, apply_plan
from reconciler.engine.plan import draw_plan
from reconciler.model.protocols import Json, Request
from reconciler.model.state import Section
from reconciler.model.targets import Level, Target
from reconciler.sandbox import Sandbox
from reconciler.service import Client, Policy
from tests.building import ACME, KINDS, desired, section
from tests.states import a_small_service

PROJECTS = {100: "acme/api", 101: "acme/lib", 102: "acme/web", 103: "acme/tools/cli"}
BY_ID = {f"projects/{number}": Target(Level.PROJECT, path).url.strip("/") for number, path in PROJECTS.items()}


class Watched(Client):
    """A client that counts the writes in flight, by target."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.in_flight = Counter[str]()
        self.most = Counter[str]()
        self._counting = Lock()

    def send(self, request: Request, **more: Any) -> Json:
        target = "/".join(request.path.split("/")[:2])
        target = BY_ID.get(target, target)
        with self._counting:
            self.in_flight[target] += 1
            self.most |= self.in_flight
        try:
            return super().send(request, **more)
        finally:
            with self._counting:
                self.in_flight[target] -= 1


def wanted(target: Target) -> list[Section]:
    sections = [
        section("notification_settings", {"level": "watch"}, target),
        section("approval_settings", {"allow_author_approval": True}, target),
    ]
    if target.level is Level.PROJECT:
        items = {f"m{number}": {"state": "closed"} for number in range(3)}
        sections.append(section("milestones", items, target))
        sections.append(section("job_token_scope", {"projects": [100, 101, 102, 103], "groups": [10, 11]}, target))
    return sections


@pytest.mark.untraced
def test_no_two_writes_to_one_target_are_in_flight_at_once(sandbox: Sandbox, dialect: str) -> None:
    sandbox.replace_state(a_small_service(dialect))
    projects = [Target(Level.PROJECT, path) for path in PROJECTS.values()]
    with Watched(sandbox.api_url, "ada-token", policy=Policy(concurrency=16)) as client:
        whole = desired(*(each for target in (ACME, *projects) for each in wanted(target)))
        plan = draw_plan(whole, client, KINDS)
        sandbox.set_latency(5)
        options = ApplyOptions(deliver=lambda *_: None, stop=Stop())
        outcomes = list(apply_plan(plan, client, KINDS, options))
    assert len(outcomes) == 5
    assert client.most == Counter(each.url.strip("/") for each in (ACME, *projects))
