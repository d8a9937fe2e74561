"""Targets that a run creates: the order, the exact requests, and what depends on whom."""

from reconciler.apply import TargetOutcome
from tests.building import section
from tests.engine_driver import EngineDriver, failures
from tests.trust.creating import new, plan_of

SPEC = {
    "milestones": {"1.0": {"due_date": "2026-12-01"}, "2.0": {}},
    "job_token_scope": {"enabled": False},
}

LIST = "GET projects/acme%2FNEW%2FSUB%2Fapi/milestones?include_ancestors=true&per_page=100&page=1"


def ids(outcomes: list[TargetOutcome]) -> dict[str, int | None]:
    """Return the IDs of the targets that were created."""
    return {
        str(each.change.address.target): each.created.id if each.created else None
        for target in outcomes
        for each in target.outcomes
        if not each.change.address.section
    }


def test_groups_come_before_their_projects_and_all_before_what_is_declared(engine: EngineDriver) -> None:
    plan = plan_of(
        new("acme/api2", spec={"milestones": {"1.0": {}}}, parent=10),
        new("acme/NEW", parent=10),
        new("acme/NEW/SUB"),
        new("acme/NEW/SUB/api", spec=SPEC),
    )
    outcomes = engine.apply(plan)
    assert failures(outcomes) == []
    assert engine.requests() == [
        "GET groups/acme%2FNEW?with_projects=false",
        'POST groups {"name": "X", "path": "NEW", "parent_id": 10, "visibility": "private"}',
        "GET groups/acme%2FNEW%2FSUB?with_projects=false",
        'POST groups {"name": "X", "path": "SUB", "parent_id": 12, "visibility": "private"}',
        "GET projects/acme%2FNEW%2FSUB%2Fapi",
        'POST projects {"name": "X", "path": "api", "namespace_id": 13, "visibility": "private"}',
        "GET projects/acme%2Fapi2",
        'POST projects {"name": "X", "path": "api2", "namespace_id": 10, "visibility": "private"}',
        LIST,
        'POST projects/acme%2FNEW%2FSUB%2Fapi/milestones {"title": "1.0", "due_date": "2026-12-01"}',
        'POST projects/acme%2FNEW%2FSUB%2Fapi/milestones {"title": "2.0"}',
        "GET projects/acme%2FNEW%2FSUB%2Fapi/job_token_scope",
        'PATCH projects/acme%2FNEW%2FSUB%2Fapi/job_token_scope {"enabled": false}',
        LIST,
        "GET projects/acme%2FNEW%2FSUB%2Fapi/job_token_scope",
        "GET projects/acme%2Fapi2/milestones?include_ancestors=true&per_page=100&page=1",
        'POST projects/acme%2Fapi2/milestones {"title": "1.0"}',
        "GET projects/acme%2Fapi2/milestones?include_ancestors=true&per_page=100&page=1",
    ]
    assert ids(outcomes) == {
        "group acme/NEW": 12,
        "group acme/NEW/SUB": 13,
        "project acme/NEW/SUB/api": 104,
        "project acme/api2": 105,
    }
    assert [*engine.plan(section("milestones", SPEC["milestones"], plan.targets[2].target)).changes] == []
