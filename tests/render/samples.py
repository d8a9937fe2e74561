"""The plan of the users' contract, made by the planner, and ways to spoil what was saved of it."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from reconciler.document.checksum import with_checksum
from reconciler.document.document import RunDocument
from reconciler.document.plans import make_report, plan_of, with_plan
from reconciler.engine.compare.planner import make_plan
from reconciler.model.item import Outcome, Status
from reconciler.model.plan import Plan, TargetPlan
from reconciler.model.targets import Level, Target
from tests.building import KINDS, desired, live, section

API = Target(Level.PROJECT, "acme/payments/api")
LIB = Target(Level.PROJECT, "acme/payments/lib")
NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
SECRET = "6be9f1a2c4e84a0c9b"  # the service shows its whole value to its owner

EMPTY = RunDocument(
    service="https://git.example.com/api/v4",
    created_at=NOON,
    tool_version="0.1.0",
    manifests_digest="5f2c",
    requests_made=8,
    targets=(),
)


def saved_plan(plan: Plan, empty: RunDocument = EMPTY) -> RunDocument:
    """Return a plan as it is saved, with the particulars of an empty one."""
    return with_plan(empty, plan)


def tree(document: RunDocument) -> Plan:
    """Return the plan of a document as the engine takes it."""
    return plan_of(document)


def about(document: RunDocument, targets: Iterable[TargetPlan]) -> RunDocument:
    """Return a document about other targets."""
    return with_plan(document, replace(tree(document), targets=tuple(targets)))


def sample() -> RunDocument:
    """Return a plan that creates, updates, renames and deletes, has a problem and leaves things alone."""
    wanted = desired(
        section("approval_settings", {"allow_author_approval": False, "retain_approvals_on_push": True}, API),
        section("milestones", MILESTONES, API),
        section("trigger_tokens", {"legacy-integration": None}, API),
        section("milestones", {"2026.12": {}}, LIB),
    )
    found = live(
        {
            (API, "approval_settings", "approval_settings"): approvals(),
            (API, "milestones", "milestones"): [milestone(31, "Nov 2026"), milestone(32, "Someday")],
            (API, "trigger_tokens", "trigger_tokens"): [
                {"id": 71, "description": "legacy-integration", "token": SECRET, "owner": {"id": 2}}
            ],
            (LIB, "milestones", "milestones"): [milestone(41, "2026.12"), milestone(42, "Old"), milestone(43, "Older")],
        }
    )
    plan = make_plan(wanted, found, KINDS)
    return saved_plan(plan)


def done(*statuses: tuple[Status, str]) -> RunDocument:
    """Return the report of the sample: its changes done, but for the statuses given to the first of them."""
    saved = sample()
    changes = list(saved.changes)
    became = [*statuses, *[(Status.DONE, "")] * (len(changes) - len(statuses))]
    outcomes = [Outcome(change, *each) for change, each in zip(changes, became, strict=True)]
    traffic = Traffic(reads=11, writes=4)
    return make_report(saved, [tree(saved).targets[0].with_outcomes(outcomes)], NOON, traffic, NOON + MINUTE)


@dataclass
class Traffic:
    """The requests of a run."""

    reads: int
    writes: int
    waited: dict[str, float] = field(default_factory=dict)


MILESTONES = {
    "2026.12": {"due_date": "2026-12-31"},
    "2026.11": {"state": "closed", "renamed_from": "Nov 2026"},
}


def milestone(number: int, title: str) -> dict[str, Any]:
    """Return an open milestone as the service lists it."""
    return {"id": number, "title": title, "description": None, "start_date": None, "due_date": None, "state": "active"}


def approvals() -> dict[str, Any]:
    """Return approval settings of which a group has locked one."""
    free = {"value": True, "locked": False, "inherited_from": None}
    names = KINDS["approval_settings"].models[Level.PROJECT].model_fields
    return dict.fromkeys(names, free) | {
        "retain_approvals_on_push": {"value": False, "locked": True, "inherited_from": "group"},
        "selective_code_owner_removals": {"value": False, "locked": False, "inherited_from": None},
    }


def spoilt(text: str, spoil: Callable[[dict[str, Any]], object]) -> str:
    """Return a document that was changed and with a new checksum, as somebody would who knows how."""
    content = json.loads(text)
    del content["checksum"]
    spoil(content)
    return with_checksum(content)
