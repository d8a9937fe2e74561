"""A saved plan is not a credential: whoever edits it, and computes its checksum anew, cannot make it do what it does not show."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from reconciler.document.stored import load_plan, save
from reconciler.sandbox import Sandbox
from tests.building import ACME, KINDS, section
from tests.cli_runner import CliRunner
from tests.engine_driver import EngineDriver, failures
from tests.items import changes_of
from tests.render.samples import saved_plan, spoilt, tree
from tests.states import a_small_service
from tests.trust.all_writes import essence, everything, service
from tests.trust.test_settling import REFUSED_TOKEN

EDITED = "stale: the saved plan was edited: its requests do not match the changes it shows; make the plan again"

Change = dict[str, Any]


@pytest.fixture(autouse=True)
def _service(cli_runner: CliRunner) -> None:
    cli_runner.service(
        milestones=[{"id": 1, "title": "old"}, {"id": 2, "title": "kept"}],
        trigger_tokens=[
            {"id": 3, "description": "old", "owner": "ada"},
            {"id": 4, "description": "kept", "owner": "ada"},
        ],
    )
    cli_runner.project(
        "{approval_settings: {allow_author_approval: true}, job_token_scope: {groups: [acme/tools]}, "
        "milestones: {new: {}, old: {due_date: 2026-12-31}}, trigger_tokens: {old: null}}"
    )
    assert cli_runner("plan --out plan.json").code == 0


@pytest.mark.untraced
def test_a_plan_that_was_not_edited_is_carried_out(cli_runner: CliRunner) -> None:
    cli_runner.sandbox.clear_log()
    assert cli_runner("apply --plan plan.json --yes").code == 0
    assert [f"{each['method']} {each['target'].removeprefix('/api/v4/')}" for each in cli_runner.sandbox.log()][:5] == [
        "GET projects/acme%2Fapi/merge_request_approval_setting",
        "PUT projects/acme%2Fapi/merge_request_approval_setting",
        "GET projects/acme%2Fapi/job_token_scope/groups_allowlist?per_page=100&page=1",
        "GET groups/acme%2Ftools?with_projects=false",
        "GET projects/acme%2Fapi",
    ]


def at(section: str, action: str) -> Callable[[Any], Change]:
    """Find the change of that section and that action in a plan."""

    def find(plan: Any) -> Change:
        return next(change for change in changes_of(plan, section) if change["action"] == action)

    return find


def request(**changed: Any) -> Callable[[Change], object]:
    """Change the first request."""
    return lambda change: change["requests"][0].update(changed)


PROJECT = "projects/acme%2Fapi"
CREATION, UPDATE = at("milestones", "create"), at("milestones", "update")
SETTINGS, DELETION = at("approval_settings", "update"), at("trigger_tokens", "delete")
ENTRY = at("job_token_scope", "create")


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("find", "edit"),
    [
        (CREATION, request(path="projects/101/milestones")),
        (CREATION, request(method="DELETE", path=f"{PROJECT}/milestones/2", body=None)),
        (CREATION, request(body={"title": "new", "description": "hidden"})),
        (CREATION, lambda change: change.update(after={"due_date": "2026-12-31"})),
        (CREATION, lambda change: change.update(after={"due": "2026-12-31"})),
        (CREATION, lambda change: change.update(after={"due_date": "soon"})),
        (CREATION, lambda change: change.update(name="newer")),
        (CREATION, lambda change: change.update(title="trigger token")),
        (CREATION, lambda change: [change.update(name=None), request(body={"title": ""})(change)]),
        (UPDATE, request(path=f"{PROJECT}/milestones/2")),
        (UPDATE, request(body={"due_date": "2026-12-31", "state_event": "close"})),
        (UPDATE, lambda change: change.update(before={"due_date": "2026-12-30"})),
        (UPDATE, lambda change: change.update(name="other", renamed_from="old")),
        (SETTINGS, request(path="projects/101/merge_request_approval_setting")),
        (SETTINGS, request(body={"allow_author_approval": True, "allow_committer_approval": True})),
        (SETTINGS, lambda change: change.update(after={"allow_author_approval.x": True})),
        (SETTINGS, lambda change: change.update(name="acme/lib")),
        (DELETION, request(path=f"{PROJECT}/triggers/4")),
        (DELETION, lambda change: change.update(name="kept")),
        (DELETION, lambda change: change.update(before={"x": 1})),
        (ENTRY, request(path="projects/101/job_token_scope/groups_allowlist")),
        (ENTRY, lambda change: [change.update(target_id=10), request(body={"target_group_id": 10})(change)]),
        (ENTRY, lambda change: change.update(name=10)),
    ],
)
def test_an_edited_change_is_refused(
    cli_runner: CliRunner, find: Callable[[Any], Change], edit: Callable[[Change], object]
) -> None:
    file = Path("plan.json")
    file.write_text(spoilt(file.read_text(), lambda plan: edit(find(plan))))
    cli_runner.sandbox.clear_log()
    done = cli_runner("apply --plan plan.json --yes")
    assert (done.code, done.out.count(EDITED), done.out.count(" done\n")) == (3, 1, 4)
    assert len([each for each in cli_runner.sandbox.log() if each["method"] != "GET"]) == 4


@pytest.mark.untraced
def test_an_edited_change_that_breaks_a_rule_is_refused_with_the_rule(cli_runner: CliRunner) -> None:
    fields = {"start_date": "2026-02-02", "due_date": "2026-02-01"}
    file = Path("plan.json")
    file.write_text(spoilt(file.read_text(), lambda plan: CREATION(plan).update(after=fields)))
    done = cli_runner("apply --plan plan.json --yes")
    assert (done.code, done.out.count(" done\n")) == (3, 4)
    reason = "cannot be created: due_date must be after start_date, which is 2026-02-02"
    assert f"stale: it cannot be planned: {reason}\n" in done.out


def test_a_change_that_no_such_object_can_have_is_refused(cli_runner: CliRunner) -> None:
    def edit(plan: Any) -> None:
        change = SETTINGS(plan)
        del change["after"], change["renamed_from"]
        change.update(action="delete")
        plan["summary"].update(update=1, delete=2)

    file = Path("plan.json")
    file.write_text(spoilt(file.read_text(), edit))
    done = cli_runner("apply --plan plan.json --yes")
    assert (done.code, done.out.count(EDITED), done.out.count(" done\n")) == (3, 1, 4)


@pytest.mark.untraced
def test_what_cannot_be_checked_is_refused(cli_runner: CliRunner) -> None:
    state = cli_runner.sandbox.state()
    state["groups"] = [each for each in state["groups"] if each["path"] != "acme/tools"]
    state["projects"] = [each for each in state["projects"] if each["path"] != "acme/tools/cli"]
    cli_runner.sandbox.replace_state(state)
    done = cli_runner("apply --plan plan.json --yes")
    assert done.code == 3
    assert "stale: it cannot be planned: not found, not visible to this token, or not served" in done.out


@pytest.mark.untraced
def test_nothing_of_a_list_is_deleted_while_a_new_entry_is_not_known(cli_runner: CliRunner) -> None:
    cli_runner.service(job_token_scope={"group_allowlist": [10]})
    cli_runner.project("{prune: [job_token_scope], job_token_scope: {groups: [acme/tools]}}")
    assert cli_runner("plan --out plan.json").code == 0
    state = cli_runner.sandbox.state()
    state["groups"] = [each for each in state["groups"] if each["path"] != "acme/tools"]
    state["projects"] = [each for each in state["projects"] if each["path"] != "acme/tools/cli"]
    cli_runner.sandbox.replace_state(state)
    done = cli_runner("apply --plan plan.json --yes")
    reason = "stale: it cannot be planned: not found, not visible to this token, or not served"
    assert (done.code, done.out.count(reason), done.out.count("stale")) == (3, 2, 3)


@pytest.mark.untraced
def test_of_two_tokens_of_one_name_each_is_deleted_by_itself(cli_runner: CliRunner) -> None:
    tokens = [{"id": number, "description": "twin", "owner": "ada"} for number in (5, 6)]
    cli_runner.service(trigger_tokens=tokens)
    cli_runner.project("{trigger_tokens: {twin: null}}")
    assert cli_runner("plan --out plan.json").code == 0
    cli_runner.service(trigger_tokens=tokens[1:])
    cli_runner.sandbox.clear_log()
    done = cli_runner("apply --plan plan.json --yes")
    writes = [each["target"].rpartition("/")[2] for each in cli_runner.sandbox.log() if each["method"] == "DELETE"]
    assert (done.code, writes, done.out.count("done: by an earlier run")) == (0, ["6"], 1)


@pytest.mark.untraced
def test_every_sort_of_change_is_the_one_that_it_shows(sandbox: Sandbox, dialect: str) -> None:
    with EngineDriver(sandbox, service(dialect)) as engine:
        assert failures(engine.apply(engine.plan(*everything()))) == []
        result = essence(sandbox.state())
    with EngineDriver(sandbox, service(dialect)) as engine:
        saved = load_plan(save(saved_plan(engine.plan(*everything()))), KINDS)
        assert failures(engine.apply(tree(saved), recheck=True)) == []
        assert essence(sandbox.state()) == result


AUTHOR, COMMITTER = "allow_author_approval", "allow_committer_approval"


def after_a_group(
    sandbox: Sandbox, group: Mapping[str, bool], project: Mapping[str, bool], edit: Callable[[Any], object]
) -> list[str]:
    """Apply a saved plan of approval settings, edited; return the writes and what was not done."""
    with EngineDriver(sandbox, a_small_service("deployed")) as engine:
        engine.step(section("approval_settings", {AUTHOR: not group[AUTHOR]}, ACME))
        plan = engine.plan(section("approval_settings", group, ACME), section("approval_settings", project))
        saved = load_plan(spoilt(save(saved_plan(plan)), edit), KINDS)
        told = failures(engine.apply(tree(saved), recheck=True))
        return [*(write.partition("/merge")[0] for write in engine.writes()), *told]


@pytest.mark.untraced
def test_settings_below_a_changed_group_are_planned_again_to_do_what_the_saved_plan_shows(sandbox: Sandbox) -> None:
    assert after_a_group(sandbox, {AUTHOR: True}, {COMMITTER: False}, lambda _: None) == [
        "PUT groups/acme",
        "PUT projects/acme%2Fapi",
    ]


MORE = (
    "stale: approval settings None: it would do more than the saved plan shows, because a group above was changed; "
    "plan again"
)


@pytest.mark.untraced
def test_what_only_the_group_s_change_makes_possible_is_left_to_another_plan(sandbox: Sandbox) -> None:
    wanted = {AUTHOR: True, COMMITTER: False}
    assert after_a_group(sandbox, {AUTHOR: True}, wanted, lambda _: None) == ["PUT groups/acme", MORE]


def test_settings_that_are_planned_again_cannot_do_what_an_edited_plan_does_not_show(sandbox: Sandbox) -> None:
    def edit(plan: Any) -> None:
        (again,) = (item for item in plan["items"] if item["action"] == "keep")
        again["after"]["require_reauthentication_to_approve"] = True

    assert after_a_group(sandbox, {AUTHOR: True}, {COMMITTER: False}, edit) == ["PUT groups/acme", MORE]


def test_a_token_that_is_refused_while_a_plan_is_checked_ends_the_run(sandbox: Sandbox) -> None:
    with EngineDriver(sandbox, a_small_service("spec")) as engine:
        plan = engine.plan(section("job_token_scope", {"groups": ["acme/tools"]}), section("milestones", {"a": {}}))
        sandbox.set_faults([{"kind": "status", "status": 401, "match": "with_projects"}])
        assert failures(engine.apply(plan, recheck=True)) == [
            f"skipped: allowlisted group acme/tools: {REFUSED_TOKEN}",
            f"skipped: milestone a: {REFUSED_TOKEN}",
        ]
