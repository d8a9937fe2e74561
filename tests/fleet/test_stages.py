"""Each stage of a survey alone: what it asks the service, and what it adds to what is known."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from reconciler.engine.causes import causes
from reconciler.engine.compare.selection import RunSelection
from reconciler.engine.discover import discover
from reconciler.engine.existence import There
from reconciler.engine.final_plan import obstructed
from reconciler.engine.lacking_sections import inapplicable_sections, lacking_sections
from reconciler.engine.lookups import look_up
from reconciler.engine.missing_targets import archived_projects, missing_targets
from reconciler.engine.moved_targets import moved_targets
from reconciler.engine.narrow import divide, select
from reconciler.engine.reading import read
from reconciler.engine.since import compare
from reconciler.engine.stages import CHECK_STAGES, GIVEN, STAGES, survey
from reconciler.engine.survey import Added, FleetSurvey, Scope
from reconciler.engine.twins import twins
from reconciler.errors import InventoryUnreadable
from reconciler.gitops.inventory import NO_INVENTORY, OpenInventory, Stored
from reconciler.gitops.revision import Revision
from reconciler.gitops.snapshot import Snapshot
from reconciler.manifests import Inputs, read_contents
from reconciler.model.globs import Globs
from reconciler.model.inventory import Inventory
from reconciler.model.shards import Shard
from reconciler.model.state import Reference
from reconciler.model.targets import Level
from tests.building import KINDS
from tests.engine_driver import EngineDriver
from tests.states import a_small_service

HEADER = "apiVersion: reconciler/v1\nkind: "
SET = (
    f"{HEADER}ProjectSet\nmetadata: {{name: all}}\nselect: {{group: acme/tools}}\nspec: {{milestones: {{v1: {{}}}}}}\n"
)


def document(kind: str, metadata: str, more: str = "spec: {milestones: {v1: {}}}") -> str:
    """Return a document."""
    return f"{HEADER}{kind}\nmetadata: {{{metadata}}}\n{more}\n"


def survey_of(engine: EngineDriver, *documents: str, scope: Scope | None = None) -> FleetSurvey:
    """Return what is known before the first request."""
    manifests = read_contents({"fleet.yaml": "---\n".join(documents).encode()}, KINDS)
    engine.sandbox.clear_log()
    return FleetSurvey(engine.client, KINDS, manifests.desired, manifests, scope=scope or Scope())


def after(run: FleetSurvey, *stages: Callable[[FleetSurvey], Added]) -> FleetSurvey:
    """Return what is known after some stages."""
    return survey(run, stages)


def planned(run: FleetSurvey) -> list[str]:
    """Return the targets to be planned, each with its sections."""
    return [" ".join([str(each.target), *(section.kind for section in each.sections)]) for each in run.desired.targets]


def told(run: FleetSurvey) -> list[str]:
    """Return the obstacles."""
    return [f"{each.where.target} {each.where.section}: {each.effect}: {each.reason}" for each in run.obstacles]


def state_with(engine: EngineDriver, dialect: str, number: int, **changes: Any) -> None:
    """Give the sandbox its small service, with one project changed."""
    state = a_small_service(dialect)
    state["projects"][number] |= changes
    engine.sandbox.replace_state(state)


def test_the_story_is_read_from_the_list() -> None:
    assert [stage.__name__ for stage in STAGES] == [
        "discover",
        "compare",
        "select",
        "divide",
        "missing_targets",
        "archived_projects",
        "lacking_sections",
        "read",
        "moved_targets",
        "absences",
        "causes",
        "look_up",
        "moved_targets",
        "twins",
        "archived_targets",
        "obstructed",
        "unreadable_inventory",
        "sources",
        "audit",
        "narrow_plan",
        "origins",
        "hints",
    ]
    assert [stage.__name__ for stage in CHECK_STAGES if stage not in STAGES] == ["inapplicable_sections"]
    assert [stage.__name__ for stage in GIVEN] == [
        "read",
        "moved_targets",
        "causes",
        "look_up",
        "moved_targets",
        "twins",
        "archived_targets",
        "obstructed",
    ]


def test_a_stage_leaves_what_it_is_given_as_it_was(engine: EngineDriver) -> None:
    run = survey_of(engine, SET, document("Project", "path: acme/api"))
    before = replace(run)
    assert planned(survey(run, STAGES)) == ["project acme/api milestones", "project acme/tools/cli milestones"]
    assert run == before


def test_discover_lists_each_group_once_and_applies_the_sets(engine: EngineDriver) -> None:
    run = after(survey_of(engine, SET), discover)
    assert run.live.ids == {Reference(Level.PROJECT, "acme/tools/cli"): 103}
    assert [str(each.target) for each in run.manifests.desired.targets] == ["project acme/tools/cli"]
    (listed,) = engine.requests()
    assert listed.startswith("GET groups/acme%2Ftools/projects?")


def test_discover_tells_that_a_path_is_not_known(engine: EngineDriver) -> None:
    by_id = document("Project", "id: 999", 'spec: {milestones: {v1: {description: "{path}"}}}')
    (obstacle,) = after(survey_of(engine, by_id), discover).obstacles
    assert obstacle.effect == "read only"
    assert obstacle.reason.startswith("the path of project 999 is not known (not found")


def test_compare_without_another_revision_asks_for_nothing(engine: EngineDriver) -> None:
    run = survey_of(engine, document("Project", "path: acme/api"))
    assert compare(run) == {}
    assert engine.requests() == []


def test_compare_says_what_stays_for_want_of_an_inventory(engine: EngineDriver) -> None:
    def compared(items: str, inventory: OpenInventory = NO_INVENTORY) -> tuple[list[str], tuple[str, ...]]:
        run = survey_of(engine, document("Project", "path: acme/api", f"spec: {{milestones: {items}}}"))
        added = compare(replace(run, past=past, inventory=inventory))
        return [str(target) for target in added["changed"]], added.get("inventory", inventory).lines

    then = document("Project", "path: acme/api", "spec: {milestones: {v1: {}, v2: {}}}")
    manifests = read_contents({"fleet.yaml": then.encode()}, KINDS)
    past = Revision(Snapshot("HEAD", Path(), ""), Inputs([], KINDS), manifests, (), {}, None)
    changed = ["project acme/api"]
    said = "1 object is no longer declared; no inventory knows it: it stays"
    assert compared("{v1: {}}") == (changed, (said,))
    assert compared("{v1: {}}", OpenInventory(Stored("", Inventory("")), lines=("None yet.",))) == (
        changed,
        ("None yet.", said),
    )
    assert compared("{}") == (changed, ("2 objects are no longer declared; no inventory knows them: they stay",))
    assert compared("{v2: {}, v1: {}}") == ([], ())
    for known in (
        OpenInventory(Stored("1a2b", Inventory(""))),
        OpenInventory(error=InventoryUnreadable("no", "right")),
    ):
        assert compared("{}", known) == (changed, ())


def test_select_and_divide_narrow_what_is_planned_and_not_what_is_known(engine: EngineDriver) -> None:
    documents = [document("Project", f"path: acme/{name}") for name in ("api", "lib", "web")]
    scope = Scope(RunSelection(excluded=Globs(("acme/web",))))
    run = after(survey_of(engine, *documents, scope=scope), select)
    assert planned(run) == ["project acme/api milestones", "project acme/lib milestones"]
    assert len(run.whole.targets) == 3
    assert divide(run) == {}
    shards = [after(replace(run, scope=replace(scope, shard=Shard(number, 2))), divide) for number in (1, 2)]
    assert sorted(each for shard in shards for each in planned(shard)) == planned(run)
    assert engine.requests() == []


def test_select_holds_back_what_an_unlisted_group_may_hold(engine: EngineDriver) -> None:
    hidden = SET.replace("acme/tools", "acme/gone")
    run = after(survey_of(engine, hidden, document("Project", "path: acme/gone/cli")), discover, compare, select)
    assert planned(run) == ["group acme/gone", "project acme/gone/cli"]
    assert [(str(each.where.target), each.reason.partition(",")[0]) for each in run.obstacles] == [
        ("project acme/gone/cli", "its sets are unknown"),
        ("group acme/gone", run.obstacles[1].reason.partition(",")[0]),
    ]


def test_missing_targets_asks_for_what_may_be_created(engine: EngineDriver) -> None:
    new = document("Project", "path: acme/fresh", "create: {}\nspec: {milestones: {v1: {}}}")
    run = after(survey_of(engine, new, document("Project", "path: acme/api")), missing_targets)
    assert [*run.live.absent] == [(Level.PROJECT, "acme/fresh")]
    assert run.live.ids == {Reference(Level.GROUP, "acme"): 10}
    there = ["GET groups/acme?with_projects=false", "GET groups/acme%2Ffresh?with_projects=false"]
    assert engine.requests() == ["GET projects/acme%2Ffresh", *there]


def test_archived_projects_leaves_documents_alone_that_no_set_touches(engine: EngineDriver, dialect: str) -> None:
    state_with(engine, dialect, 0, archived=True)
    created = document("Project", "path: acme/api", "create: {}\nspec: {milestones: {v1: {}}}")
    run = after(survey_of(engine, created), missing_targets)
    assert [name for name, there in run.answers.items() if isinstance(there, There) and there.archived] == [
        (Level.PROJECT, "acme/api")
    ]
    assert planned(after(run, archived_projects)) == planned(run) == ["project acme/api milestones"]


def test_lacking_sections_are_left_out_and_told(engine: EngineDriver, dialect: str) -> None:
    off = {"issues_enabled": False, "merge_requests_enabled": False}
    state_with(engine, dialect, 3, **off)
    own = document("Project", "path: acme/tools/cli", "spec: {milestones: {v2: {}}}")
    for documents, effect, checked in (
        ((SET,), "not applicable", "project acme/tools/cli"),
        ((SET, own), "problem", "project acme/tools/cli milestones"),
    ):
        run = after(survey_of(engine, *documents), discover, compare, select)
        lacking = after(run, lacking_sections)
        assert planned(lacking) == ["project acme/tools/cli"]
        assert [each.partition(": switched off")[0] for each in told(lacking)] == [
            f"project acme/tools/cli milestones: {effect}"
        ]
        assert planned(after(run, inapplicable_sections)) == [checked]


def test_read_reads_what_is_left_and_causes_explains_what_it_could_not(engine: EngineDriver) -> None:
    run = after(survey_of(engine, document("Project", "path: acme/gone")), read)
    (part,) = run.live.parts.values()
    assert len(engine.requests()) == 1
    explained = after(run, causes)
    (unread,) = explained.live.unread(*explained.desired.targets[0].sections).values()
    assert unread.cause is not None
    assert unread.cause.reason == "not found, or not visible to ada"
    assert unread == part
    there = after(survey_of(engine, document("Project", "path: acme/api")), read)
    assert causes(there) == {}


def test_look_up_plans_until_nothing_is_missing(engine: EngineDriver) -> None:
    scope = "spec: {job_token_scope: {projects: [acme/lib]}}"
    run = after(survey_of(engine, document("Project", "path: acme/api", scope)), read)
    engine.sandbox.clear_log()
    made = after(run, look_up)
    assert "GET projects/acme%2Flib" in engine.requests()
    assert [each.address.name for each in made.planned.changes] == ["acme/lib"]
    assert made.live.ids[Reference(Level.PROJECT, "acme/lib")] == 101


def test_moved_targets_and_twins_are_not_changed(engine: EngineDriver, dialect: str) -> None:
    state_with(engine, dialect, 0, renamed_from=["acme/old"])
    old, new = (document("Project", f"path: acme/{name}") for name in ("old", "api"))
    run = after(survey_of(engine, old, new), read, look_up)
    assert len([*run.planned.changes]) == 2
    moved = after(run, moved_targets)
    assert told(moved) == ["project acme/old : read only: moved to acme/api (ID 100)"]
    both = after(moved, twins)
    assert [str(each.where.target) for each in both.obstacles] == ["project acme/old", "project acme/api"]
    assert [*after(both, obstructed).plan.changes] == []
    followed = after(replace(run, follow_moved=True), moved_targets)
    assert (followed.obstacles, [*followed.moved.values()]) == ((), [*moved.moved.values()])
