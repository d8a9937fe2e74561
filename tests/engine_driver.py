"""Driving the engine step by step, with the exact requests that each step makes on the sandbox."""

import json
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, Self

from reconciler.engine.apply import ApplyOptions, NoWriteLog, Stop, WriteLog, apply_plan
from reconciler.engine.plan import draw_plan
from reconciler.model.endpoints import Collection
from reconciler.model.item import Create, Delete, Status, Update
from reconciler.model.plan import Plan, TargetPlan
from reconciler.model.state import Section
from reconciler.model.targets import Address
from reconciler.sandbox import Sandbox
from reconciler.service import Client
from tests.building import KINDS, desired
from tests.service.clock import SwiftClock

PREFIX = "/api/v4/"

SECRET_PARTS = {
    kind.name: part
    for kind in KINDS.values()
    for part in kind.parts
    if isinstance(part, Collection) and part.secret_field
}


class EngineDriver:
    """The real client against the sandbox, over a socket.

    Attributes:
        tokens: the values of created tokens that were delivered, by name.
    """

    def __init__(self, sandbox: Sandbox, state: Mapping[str, Any], client: Client | None = None) -> None:
        self.sandbox = sandbox
        sandbox.replace_state(state)
        self.client = client or Client(sandbox.api_url, "ada-token", clock=SwiftClock())
        self.tokens: dict[object, str] = {}
        self._at_first = self._with_secrets()
        self.write_log: WriteLog = NoWriteLog()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.client.__exit__()

    def plan(self, *sections: Section) -> Plan:
        """Make a plan, and assert that it made only GET requests."""
        self.sandbox.clear_log()
        plan = draw_plan(desired(*sections), self.client, KINDS)
        assert {entry["method"] for entry in self.sandbox.log()} <= {"GET"}
        return plan

    def apply(self, plan: Plan, *, recheck: bool = False, verify: bool = True) -> list[TargetPlan]:
        """Apply a plan."""
        self.sandbox.clear_log()
        terms = ApplyOptions(
            verify=verify, recheck=recheck, deliver=self.deliver, stop=Stop(), write_log=self.write_log
        )
        return list(apply_plan(plan, self.client, KINDS, terms))

    def step(self, *sections: Section) -> list[str]:
        """Plan and apply; assert that all changes were made and that a second plan is empty; return the writes."""
        outcomes = self.apply(self.plan(*sections))
        writes = self.writes()
        undone = [each for target in outcomes for each in target.outcomes if each.status is not Status.DONE]
        assert undone == []
        again = self.plan(*sections)
        assert list(again.changes) == []
        assert list(again.problems) == []
        return writes

    def requests(self) -> list[str]:
        """Every request since the log was cleared."""
        return [_line(entry) for entry in self.sandbox.log()]

    def writes(self) -> list[str]:
        """Every write since the log was cleared."""
        return [_line(entry) for entry in self.sandbox.log() if entry["method"] != "GET"]

    def problems(self, *sections: Section) -> list[str]:
        """Return the problems of a plan."""
        return [f"{each.address.title}.{each.field}: {each.reason}" for each in self.plan(*sections).problems]

    def changes(self, *sections: Section) -> list[str]:
        """Return the changes of a plan, one line each."""
        signs = {Create: "+", Update: "~", Delete: "-"}
        return [
            f"{signs[type(each)]} {each.address.title} {each.address.name}" for each in self.plan(*sections).changes
        ]

    def created_secrets(self) -> Iterator[tuple[str, str]]:
        """Yield each token that was not there in the beginning, by what reports call it, and its value."""
        with Client(self.sandbox.api_url, "ada-token", clock=SwiftClock()) as client:
            for (number, section), ids in self._with_secrets().items():
                part = SECRET_PARTS[section]
                listed = sorted(client.pages(f"projects/{number}/{part.suffix}"), key=lambda entry: int(entry["id"]))
                for place, entry in enumerate(listed, start=1):
                    if entry["id"] in ids - self._at_first.get((number, section), set()):
                        yield f"{part.title} {entry.get(part.key, place)}", entry[part.secret_field]

    def _with_secrets(self) -> dict[tuple[int, str], set[int]]:
        """The IDs of all tokens, by the ID of their project and their section."""
        return {
            (project["id"], section): {each["id"] for each in project[section]}
            for project in self.sandbox.state().get("projects", [])
            for section in SECRET_PARTS
            if project.get(section)
        }

    def deliver(self, address: Address, value: str) -> None:
        """Take the value of a created token."""
        self.tokens[address.name] = value


def failures(outcomes: list[TargetPlan]) -> list[str]:
    """Return the changes that were not made, and why."""
    return [
        f"{each.status.words}: {each.change.address.title} {each.change.address.name}: {each.reason}"
        for target in outcomes
        for each in target.outcomes
        if each.status is not Status.DONE
    ]


def _line(entry: Mapping[str, Any]) -> str:
    body = "" if entry["body"] is None else " " + json.dumps(entry["body"])
    return f"{entry['method']} {entry['target'].removeprefix(PREFIX)}{body}"
