"""Plans and reports of a whole fleet, of a chosen number of projects: what the pages must show well.

Most projects are in order in most sections. The rest has everything that a page tells of: changes that many projects
have in common and changes of one project alone, deletions, problems, exceptions, sections that are not applicable,
and unmanaged objects.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date, timedelta
from functools import cache

from reconciler.document.document import RunDocument
from reconciler.document.plans import make_report
from reconciler.model.diff import AsRead, Fields
from reconciler.model.item import (
    RESULT_UNKNOWN,
    RUN_ENDED,
    Change,
    Create,
    Delete,
    Outcome,
    Status,
    Update,
    excepted_at,
    not_applicable_at,
    problem_at,
    unmanaged_at,
)
from reconciler.model.plan import Plan, TargetPlan
from reconciler.model.protocols import Request
from reconciler.model.targets import Address, Key, Level, Target
from reconciler.reports.history import History, with_run
from tests.building import SectionPlan, noted, target_plan
from tests.render.samples import NOON, Traffic, about, saved_plan, tree

GROUPS = ("payments", "platform", "platform/tools", "web", "web/shop", "web/shop/checkout", "data/lake", "mobile")
NAMES = ("api", "ledger", "worker", "lib", "docs", "gateway", "search")
SINGULAR = {
    "container_repository_protection_rules": "protection rule",
    "job_token_scope": "allowed project",
    "milestones": "milestone",
    "trigger_tokens": "trigger token",
}


LOSSES = {
    "job_token_scope": ("its CI jobs lose access with their job token",),
    "milestones": ("its issues and merge requests lose it; the service does not report how many these are",),
    "trigger_tokens": ("last used 2025-03-04", "its value no longer starts pipelines, and cannot be restored"),
}
"""What is lost with an object of a section, as the kinds say it."""


@cache
def fleet(projects: int) -> RunDocument:
    """Return a plan for one group and so many projects in its subgroups."""
    planned = sorted(map(_planned, range(projects)), key=lambda each: each.target.order)
    return replace(saved_plan(Plan((_group(), *planned))), narrowed=False)


@cache
def applied(projects: int) -> RunDocument:
    """Return the report of the plan, of which a few changes failed, were dropped, stale or skipped."""
    endings = {
        3: (Status.FAILED, "PUT {path}: 403 Forbidden; Maintainer is needed"),
        11: (Status.DROPPED, "the service kept 2026-12-31"),
        17: (Status.STALE, "due_date is 2027-03-01 now; it was 2026-12-31 when the plan was made"),
        23: (Status.SKIPPED, "the project is archived"),
    }

    def outcome(change: Change, number: int) -> Outcome:
        status, reason = endings.get(number % 40, (Status.DONE, ""))
        return Outcome(change, status, reason.format(path=change.requests[0].path))

    return _report(projects, outcome)


@cache
def interrupted(projects: int) -> RunDocument:
    """Return the report of an apply that ended after a third: one change is in doubt, the rest was not begun."""
    third = sum(1 for _ in fleet(projects).changes) // 3

    def outcome(change: Change, number: int) -> Outcome:
        if number < third:
            return Outcome(change, Status.DONE)
        if number == third:
            return Outcome(change, Status.FAILED, RESULT_UNKNOWN, unconfirmed=True)
        return Outcome(change, Status.SKIPPED, RUN_ENDED)

    return _report(projects, outcome)


DAYS = 64, 40, 25, 12, 6, 3, 1, 0
"""How many days ago the runs of the history were."""


@cache
def history(projects: int) -> History:
    """Return the history that ends with the plan: the more days ago a run was, the fewer targets differed."""
    saved, known = fleet(projects), None
    for number, days in enumerate(DAYS):
        one_in = len(DAYS) - number
        targets = (each if place % one_in == 0 else _quiet(each) for place, each in enumerate(tree(saved).targets))
        known = with_run(known, about(replace(saved, created_at=NOON - timedelta(days=days)), targets))
    assert known is not None
    return known


def _quiet(target: TargetPlan) -> TargetPlan:
    """Return what happens to a target that is in order."""
    return replace(target, items=())


def _report(projects: int, outcome: Callable[[Change, int], Outcome]) -> RunDocument:
    numbers = iter(range(10**6))
    saved = fleet(projects)
    outcomes = [
        target.with_outcomes([outcome(change, next(numbers)) for change in target.changes])
        for target in tree(saved).targets
    ]
    return make_report(saved, outcomes, NOON, Traffic(projects * 6, projects * 2), NOON + timedelta(minutes=4))


def _group() -> TargetPlan:
    """Return what happens to the group: nothing."""
    sections = SectionPlan("approval_settings", 1), SectionPlan("milestones", 3)
    return target_plan(Target(Level.GROUP, "acme"), sections, "manifests/acme.yaml:1")


def _planned(number: int) -> TargetPlan:
    """Return what happens to one project. Those of mobile declare neither tokens nor who may use them."""
    again = number // (len(GROUPS) * len(NAMES))
    name = f"{NAMES[number % len(NAMES)]}{f'-{again + 1}' if again else ''}"
    project = Target(Level.PROJECT, f"acme/{GROUPS[number % len(GROUPS)]}/{name}")
    sections: tuple[SectionPlan, ...] = (
        _approvals(project, number),
        _rules(project, number),
        _job_tokens(project, number),
        _milestones(project, number),
        _triggers(project, number),
    )
    if number % len(GROUPS) == GROUPS.index("mobile"):
        sections = tuple(each for each in sections if each.section not in ("job_token_scope", "trigger_tokens"))
    return target_plan(project, sections, f"manifests/{project.ref}.yaml:1")


def _approvals(project: Target, number: int) -> SectionPlan:
    at = Address(project, "approval_settings", "approval_settings", "approval settings")
    fields: dict[str, tuple[bool, bool]] = {}
    if number % 3 == 0:
        fields["allow_author_approval"] = True, False
    if number % 100 == 9:
        fields["require_password_to_approve"] = False, True
    origin = "manifests/profiles/baseline.yaml:12"
    problems = (
        problem_at(
            at, "locked by group acme/web", "retain_approvals_on_push", "unlock it there or leave it out", origin
        ),
    )
    return SectionPlan(
        "approval_settings",
        1,
        (_updated(at, fields, "merge_request_approval_setting", origin),) if fields else (),
        problems if number % 25 == 4 else (),
    )


def _rules(project: Target, number: int) -> SectionPlan:
    section = "container_repository_protection_rules"
    if number % 8 == 7:
        return SectionPlan(section).saying(
            not_applicable_at(project, section, "the container registry is switched off")
        )
    at = _at(project, section, f"{project.ref}/prod*")
    after = {"minimum_access_level_for_push": "maintainer", "minimum_access_level_for_delete": "admin"}
    url = f"{project.url}registry/protection/repository/rules"
    if number % 50 == 12:
        return SectionPlan(section, 1, (_created(at, after, url, "manifests/profiles/baseline.yaml:20"),))
    return SectionPlan(section, 1)


def _job_tokens(project: Target, number: int) -> SectionPlan:
    section = "job_token_scope"
    url = f"{project.url}job_token_scope/allowlist"
    changes: list[Change] = []
    if number % 10 == 1:
        lib = _at(project, section, "acme/platform/lib", "projects")
        changes.append(_created(lib, {}, url, "manifests/sets/services.yaml:18"))
    if number % 90 == 5:
        gone = _at(project, section, "acme/legacy/scripts", "projects")
        changes.append(_deleted(gone, 800 + number, {}, url, "manifests/sets/services.yaml:16"))
    left = (unmanaged_at(_at(project, section, "acme/legacy/tools", "projects"), 77, grants_access=True),)
    return SectionPlan(section, 4, tuple(changes), left if number % 20 == 6 else ())


def _milestones(project: Target, number: int) -> SectionPlan:
    url = f"{project.url}milestones"
    if number % 200 == 150:
        reason = "cannot be read: 403 Forbidden; Reporter is needed, and the token has Guest"
        problem = problem_at(
            Address(project, "milestones", "milestones", "milestones"),
            reason,
            fix="give the token's user the role Reporter in the project",
            origin="manifests/profiles/baseline.yaml:30",
        )
        return SectionPlan("milestones", 0, (), (problem,))
    changes: list[Change] = []
    if number % 2 == 0:
        after = {
            "due_date": "2027-01-29",
            "description": "Everything for the new provider.\n\n- rate limits\n- refunds",
        }
        changes.append(
            _created(_at(project, "milestones", "2027.1"), after, url, "manifests/profiles/baseline.yaml:31")
        )
    if number % 5 == 2:
        train = f"Release train {number}"
        fields = {"due_date": ("2026-12-31", f"2027-01-{1 + number % 28:02}"), "description": (train, f"{train}, late")}
        at = _at(project, "milestones", "2026.12")
        changes.append(_updated(at, fields, "milestones/31", f"manifests/{project.ref}.yaml:9"))
    if number % 40 == 8:
        lost = {"state": "active", "due_date": "2026-11-30", "description": "The last release of the old provider."}
        gone = _at(project, "milestones", f"Sprint {number // 40}")
        changes.append(_deleted(gone, 300 + number, lost, url, f"manifests/{project.ref}.yaml:14"))
    excepted = excepted_at(
        _at(project, "milestones", "2026.12"),
        "update",
        {"due_date": "2027-02-26"},
        {"due_date": "2026-12-31"},
        until=date(2027, 3, 1),
        reason="Release is being re-planned, OPS-12",
        origin=f"manifests/{project.ref}.yaml:5",
    )
    return SectionPlan("milestones", 6, tuple(changes), (excepted,) if number % 60 == 13 else ())


def _triggers(project: Target, number: int) -> SectionPlan:
    gone = _at(project, "trigger_tokens", "legacy-integration")
    deleted = _deleted(
        gone,
        900 + number,
        {"owner": "ada", "last_used": "2025-03-04T10:00:00Z"},
        f"{project.url}triggers",
        "manifests/profiles/baseline.yaml:44",
    )
    left = unmanaged_at(_at(project, "trigger_tokens", "nightly"), 71, True, "brian", "2026-11-30T03:00:00Z")
    return SectionPlan("trigger_tokens", 2, (deleted,) if number % 30 == 0 else (), (left,) * (number % 45 == 2))


def _at(project: Target, section: str, name: Key, part: str = "") -> Address:
    return Address(project, section, part or section, SINGULAR[section], name)


def _created(at: Address, after: Fields, url: str, origin: str) -> Create:
    return Create(at, after, (Request("POST", url, dict(after)),), origin=origin)


def _updated(at: Address, fields: Mapping[str, tuple[object, object]], url: str, origin: str) -> Update:
    before = {name: values[0] for name, values in fields.items()}
    after = {name: values[1] for name, values in fields.items()}
    request = Request("PUT", f"{at.target.url}{url}", after)
    return Update(at, before, after, (request,), AsRead(31, (at.name or "",), before, {}), origin=origin)


def _deleted(at: Address, number: int, fields: Fields, url: str, origin: str) -> Delete:
    requests = (Request("DELETE", f"{url}/{number}"),)
    read = AsRead(number, (at.name or "",), fields, {})
    return Delete(at, fields, requests, read, notes=noted(losses=LOSSES[at.section]), origin=origin)
