"""A plan that creates targets, and what becomes of it."""

from pathlib import Path

from reconciler.document.document import RunDocument
from reconciler.document.plans import make_report
from reconciler.model.creation import Archive, Creation, Import, Namespace, creation_of
from reconciler.model.diff import AsRead
from reconciler.model.item import Change, Create, Outcome, Status, Update
from reconciler.model.plan import Plan, TargetPlan
from reconciler.model.protocols import Request
from reconciler.model.targets import Address, Level, Target
from tests.building import SectionPlan, target_plan
from tests.render.samples import MINUTE, NOON, Traffic, saved_plan, tree

DIGEST = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
TEAM = Target(Level.GROUP, "acme/new-team")
TOOLS = Target(Level.GROUP, "acme/new-team/tools")
API = Target(Level.PROJECT, "acme/new-team/api")
WEB = Target(Level.PROJECT, "acme/new-team/web")

GITHUB = Import("github", "GITHUB_TOKEN", {"repo_id": 5})


def creations() -> RunDocument:
    """Return a plan that creates two groups, one of them from an archive, and two projects, one of them by an import."""
    below = Namespace("acme/new-team", None, "private")
    origin = "manifests/team.yaml:{}".format
    team = Creation("New Team", "private", origin=origin(1))
    tools = Creation("Tools", archive=Archive(Path("templates/team.tar.gz"), DIGEST), origin=origin(5))
    path = f"{API.url}merge_request_approval_setting"
    settings = Address(API, "approval_settings", "approval_settings", "approval settings")
    listed = Address(API, "job_token_scope", "projects", "allowlisted project", "acme/new-team/web")
    allow = Request(
        "POST", f"{API.url}job_token_scope/allowlist", {"target_project_id": {"id_of": f"project {WEB.ref}"}}
    )
    approvals = Update(settings, {}, {"allow_author_approval": False}, (Request("PUT", path, {}),), NOTHING_READ)
    return saved_plan(
        Plan(
            (
                _planned(TEAM, creation_of(TEAM, team, Namespace("acme", 3, "internal"))),
                _planned(TOOLS, creation_of(TOOLS, tools, below)),
                _planned(
                    API,
                    creation_of(API, Creation("api", source=GITHUB, origin=origin(9)), below),
                    approvals,
                    Create(listed, {}, (allow,)),
                    _milestone(API),
                ),
                _planned(WEB, creation_of(WEB, Creation("web", origin=origin(13)), below), _milestone(WEB)),
            )
        )
    )


NOTHING_READ = AsRead(None, (), {}, {})


def became(**statuses: tuple[Status, str]) -> RunDocument:
    """Return the report of the plan.

    Args:
        statuses: of all changes of a target, by the last part of its path, or of its creation alone if that was dropped;
            others are done.
    """
    saved = creations()
    outcomes = [
        target.with_outcomes(Outcome(change, *_status(target, change, statuses)) for change in target.changes)
        for target in tree(saved).targets
    ]
    return make_report(saved, outcomes, NOON, Traffic(9, 6), NOON + MINUTE)


def _status(target: TargetPlan, change: Change, statuses: dict[str, tuple[Status, str]]) -> tuple[Status, str]:
    own = statuses.get(str(target.target.ref).rpartition("/")[2], (Status.DONE, ""))
    if own[0] is Status.DROPPED and change.address.section:
        return Status.DONE, ""
    return own


def _milestone(target: Target) -> Create:
    address = Address(target, "milestones", "milestones", "milestone", "2027.1")
    return Create(address, {"due_date": "2027-01-29"}, (Request("POST", f"{target.url}milestones", {}),))


def _planned(target: Target, *changes: Change) -> TargetPlan:
    names = dict.fromkeys(each.address.section for each in changes)
    return target_plan(
        target,
        tuple(SectionPlan(name, 0, tuple(e for e in changes if e.address.section == name)) for name in names),
        changes[0].origin,
    )
