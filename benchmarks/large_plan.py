"""`python -m benchmarks.large_plan COUNT FORMAT [FILE]`: renders a plan of so many changes; prints CPU, characters.

Half of the changes are the same for all projects, half of them differ; one project in ten has a problem.
"""

import sys
from datetime import UTC, datetime
from pathlib import Path
from time import process_time

from reconciler.document.document import RunDocument
from reconciler.document.tree import with_plan
from reconciler.model.diff import AsRead
from reconciler.model.item import Change, Create, Delete, Update, problem_at
from reconciler.model.plan import Plan, TargetPlan
from reconciler.model.protocols import Request
from reconciler.model.targets import Address, Level, Target
from reconciler.reports import render_plan

EACH = 4
"""How many changes a project has."""


def large_plan(count: int) -> RunDocument:
    """Return a plan of so many changes."""
    empty = RunDocument(
        service="https://gitlab.example.com/api/v4",
        created_at=datetime(2026, 12, 1, tzinfo=UTC),
        tool_version="0",
        manifests_digest="",
        requests_made=count,
    )
    return with_plan(empty, Plan(tuple(map(_target, range(count // EACH)))))


def _target(number: int) -> TargetPlan:
    target = Target(Level.PROJECT, f"acme/team-{number % 40}/service-{number}")
    read = AsRead(number, ("2026.11",), {"state": "active", "due_date": None, "description": "The last one."}, {})
    path = f"{target.url}milestones"

    def at(name: str) -> Address:
        return Address(target, "milestones", "milestones", "milestone", name)

    def moved(name: str, day: int) -> Update:
        fields = {"due_date": f"2026-12-{day:02}", "description": f"Release {name} of {target.ref}.\n- {number}\n"}
        before = {"due_date": None, "description": None}
        return Update(at(name), before, fields, (Request("PUT", f"{path}/{number}", fields),), read)

    changes: tuple[Change, ...] = (
        Create(at("2027.1"), {"due_date": "2027-01-29"}, (Request("POST", path, {"title": "2027.1"}),)),
        moved("2026.12", 1 + number % 28),
        moved(f"Sprint {number}", 24),
        Delete(at("2026.11"), read.fields, (Request("DELETE", f"{path}/{number}"),), read),
    )
    problems = (
        () if number % 10 else (problem_at(at("x"), "locked by group acme; unlock it there", origin="set.yaml:9"),)
    )
    return TargetPlan(target, {"milestones": 5}, (*changes, *problems), f"manifests/{number}.yaml:1")


if __name__ == "__main__":
    plan = large_plan(int(sys.argv[1]))
    began = process_time()
    text = render_plan(plan, sys.argv[2])
    sys.stdout.write(f"{process_time() - began} {len(text)}\n")
    if sys.argv[3:]:
        Path(sys.argv[3]).write_text(text, encoding="utf-8")
