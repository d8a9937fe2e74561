"""Plans and reports of a chosen size, to see how outputs grow."""

from datetime import timedelta

from reconciler.document.document import RunDocument
from reconciler.document.plans import make_report
from reconciler.model.item import Change, Create, Delete, Outcome, Status, Update, problem_at, unmanaged_at
from reconciler.model.plan import Plan, TargetPlan
from reconciler.model.protocols import Request
from reconciler.model.targets import Address, Level, Target
from tests.building import READ, SectionPlan, target_plan
from tests.render.samples import NOON, Traffic, saved_plan, tree

EACH = 5
"""How many changes a target has."""


def many(number: int, problems: int = 0) -> RunDocument:
    """Return a plan of that many changes, to several fields each, and of problems, both in targets of several groups."""
    targets = tuple(target(each, problems) for each in range(number // EACH))
    return saved_plan(Plan(targets))


def carried_out(saved: RunDocument, every: int = 10) -> RunDocument:
    """Return the report of a plan of which one change in `every` failed."""
    numbered = iter(range(10**6))
    outcomes = [
        each.with_outcomes(
            tuple(
                Outcome(change, Status.DONE)
                if next(numbered) % every
                else Outcome(change, Status.FAILED, "PUT projects/7/milestones/3: 500 Internal Server Error")
                for change in each.changes
            ),
        )
        for each in tree(saved).targets
    ]
    return make_report(saved, outcomes, NOON, Traffic(900, 4000), NOON + timedelta(minutes=4))


def target(number: int, problems: int) -> TargetPlan:
    """Return what happens to one project."""
    target = Target(Level.PROJECT, f"{['acme', 'globex', 'initech'][number % 3]}/team-{number % 17}/service-{number}")
    milestones = tuple(milestone(target, each) for each in range(EACH - 2))
    settings = Address(target, "approval_settings", "approval_settings", "approval settings")
    flags = Update(
        settings,
        {"allow_author_approval": True, "require_password_to_approve": False},
        {"allow_author_approval": False, "require_password_to_approve": True},
        (Request("PUT", f"{target.url}merge_request_approval_setting", {}),),
        READ,
    )
    read_only = (
        (
            problem_at(
                settings, "locked by group acme; unlock it there or leave the field out", "retain_approvals_on_push"
            ),
        )
        if number < problems
        else ()
    )
    token = Address(target, "trigger_tokens", "trigger_tokens", "trigger token", "legacy-integration")
    gone = Delete(token, {"description": "legacy-integration"}, (Request("DELETE", f"{target.url}triggers/71"),), READ)
    return target_plan(
        target,
        (
            SectionPlan("approval_settings", 1, (flags,), read_only),
            SectionPlan("milestones", 5, milestones, (unmanaged_at(milestone(target, 9).address),)),
            SectionPlan("trigger_tokens", 1, (gone,)),
        ),
        "manifests/projects.yaml:3",
    )


def milestone(target: Target, number: int) -> Change:
    """Return what happens to one milestone: the first is created, the others change."""
    address = Address(target, "milestones", "milestones", "milestone", f"2026.{number + 1:02}")
    after = {"due_date": f"2026-{number + 1:02}-28", "description": f"Release {number + 1}.\n- fast\n- tiny\n"}
    if not number:
        return Create(address, after, (Request("POST", f"{target.url}milestones", after),))
    before = {"due_date": f"2026-{number + 1:02}-27", "description": f"Release {number + 1}.\n- fast\n- small\n"}
    return Update(address, before, after, (Request("PUT", f"{target.url}milestones/{number}", after),), READ)
