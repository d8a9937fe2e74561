"""Plans to and from disk: nothing is lost, nothing secret is kept, and nothing doubtful is read."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import given

from reconciler.document.checksum import with_checksum
from reconciler.document.document import PastApply, RunDocument, refuse_unless_current, with_findings
from reconciler.document.stored import load_plan, load_report, save
from reconciler.engine.apply.prepare import declared_again
from reconciler.errors import PlanRefused
from reconciler.memory.inventory import Inventory, ObjectLine, TargetLine, UnknownLine
from reconciler.memory.projection import Basis
from reconciler.model.creation import Creation, Import, Namespace, creation_in, creation_of
from reconciler.model.item import Finding, Keep
from reconciler.model.plan import Plan
from reconciler.model.protocols import Request
from reconciler.model.resource import Resource
from reconciler.model.state import Section
from reconciler.model.targets import Address
from tests.building import KINDS, section, target_plan
from tests.render.creations import API as PROJECT
from tests.render.creations import became, creations
from tests.render.plans import patiently, saved_plans
from tests.render.samples import API, EMPTY, NOON, SECRET, done, sample, saved_plan, spoilt, tree

NO_PART = "damaged, or made by another reconciler, or with a package that is not installed here: no section has the name '{}' and a part '{}'"

KEPT = {
    "target": "project acme/payments/api",
    "section": "milestones",
    "part": "boards",
    "title": "x",
    "name": "a",
    "action": "keep",
    "id": 1,
}

Spoil = Callable[[dict[str, Any]], object]

WRITE = "plan --out FILE and drift --report json=FILE write one"


@pytest.mark.untraced
@patiently
@given(saved_plans())
def test_what_is_saved_is_what_is_read(saved: RunDocument) -> None:
    assert load_plan(save(saved), KINDS) == saved


def test_the_same_plan_is_the_same_text() -> None:
    assert save(sample()) == save(sample())


def test_a_saved_plan_keeps_what_its_apply_records_in_the_inventory() -> None:
    """A path of an allowlist that looks like a number stays another name than a number."""
    old = ObjectLine("project 7", "milestones", "milestones", "0.9", 30, "2b" * 20)
    entry = ObjectLine("project 7", "job_token_scope", "groups", 8, 8, "1a" * 20)
    seen = Inventory(
        "https://gitlab.example.com",
        "2b" * 20,
        {"project 7": TargetLine("project 7", "acme/api", "1:8a")},
        {old.key: old, entry.key: entry},
        (UnknownLine("project 7", '{"target": "project 7", "section": "later", "name": "\u2028"}', "1a" * 20),),
    )
    basis = Basis(
        seen=seen,
        commit="1a" * 20,
        absent=(old.key,),
        missing=(entry.key,),
        declared={"group 7": ("milestones/milestones",), "project 7": ("job_token_scope/groups",)},
        released={"project 7": ("epics", "milestones")},
        unknown=("project 8",),
    )
    apply = PastApply("9f" * 20, NOON, "Mona", {"created": 3}, "1a" * 20, None, "", "", "")
    remarks = ("1 object no longer declared stays",)
    judged = tuple(replace(target, digest="1:9f", again=date(2027, 3, 2), done=True) for target in sample().targets)
    kept = Keep(Address(API, "milestones", "milestones", "milestone", "1.0"), 31)
    saved = replace(sample(), inventory=basis, applies=(apply,), targets=judged, items=(kept, *sample().items))
    saved = with_findings(saved, Finding(None, "stays", *remarks))
    text = save(saved)
    assert load_plan(text, KINDS) == saved
    with pytest.raises(PlanRefused, match="was edited"):
        load_plan(text.replace('"id": 31', '"id": 32'), KINDS)
    content = json.loads(text)
    del content["checksum"]
    for first, reason in (
        ("{}", "is damaged: the inventory in it cannot be read: its first line is malformed"),
        (None, "inventory"),
    ):
        content["inventory"]["seen"][0] = first
        with pytest.raises(PlanRefused, match=reason):
            load_plan(with_checksum(content), KINDS)


def test_a_saved_plan_is_a_document_that_programs_can_read() -> None:
    content = json.loads(save(sample()))
    assert len(content.pop("checksum")) == 64
    project = "projects/acme%2Fpayments%2Fapi"
    api = {"target": "project acme/payments/api"}
    settings = {**api, "section": "approval_settings", "title": "approval settings", "name": None}
    milestone = {**api, "section": "milestones", "title": "milestone"}
    own = KINDS["approval_settings"].models[API.level].model_fields
    assert content == {
        "format": "reconciler.plan/v4",
        "service": "https://git.example.com/api/v4",
        "created_at": "2026-12-01T12:00:00Z",
        "tool_version": "0.1.0",
        "manifests_digest": "5f2c",
        "commit": None,
        "requests_made": 8,
        "shard": None,
        "narrowed": None,
        "since": "",
        "restored_since": None,
        "reverts": "",
        "limits": {"allow_deletes": None, "max_changes": None, "max_loosening": None},
        "archived": 0,
        "inventory": None,
        "applies": None,
        "started_at": None,
        "finished_at": None,
        "requests": None,
        "canary": None,
        "summary": {
            "create": 1,
            "update": 2,
            "delete": 1,
            "loosens": 0,
            "tightens": 0,
            "problems": 1,
            "unmanaged": 3,
            "not_applicable": 0,
            "excepted": 0,
            "not_of_change": None,
        },
        "refusals": [],
        "targets": [
            {
                "target": "project acme/payments/api",
                "level": "project",
                "ref": "acme/payments/api",
                "id": None,
                "labels": {},
                "origin": "",
                "sections": {"approval_settings": 0, "milestones": 2, "trigger_tokens": 1},
            },
            {
                "target": "project acme/payments/lib",
                "level": "project",
                "ref": "acme/payments/lib",
                "id": None,
                "labels": {},
                "origin": "",
                "sections": {"milestones": 3},
            },
        ],
        "items": [
            {
                **settings,
                "action": "update",
                "before": {"allow_author_approval": True},
                "after": {"allow_author_approval": False},
                "id": None,
                "renamed_from": None,
                "read": {
                    "names": [],
                    "fields": {name: name != "retain_approvals_on_push" for name in own}
                    | {"selective_code_owner_removals": False},
                    "read_only": {
                        "retain_approvals_on_push": "locked by group acme; unlock it there or leave the field out"
                    },
                },
                "requests": [
                    {
                        "method": "PUT",
                        "path": f"{project}/merge_request_approval_setting",
                        "body": {
                            "allow_author_approval": False,
                            "allow_committer_approval": True,
                            "allow_overrides_to_approver_list_per_merge_request": True,
                            "selective_code_owner_removals": False,
                            "require_reauthentication_to_approve": True,
                        },
                    }
                ],
                "origin": "",
            },
            {
                **settings,
                "finding": "problem",
                "field": "retain_approvals_on_push",
                "reason": "locked by group acme; unlock it there or leave the field out",
                "fix": "",
                "origin": "",
            },
            {
                **milestone,
                "name": "2026.12",
                "action": "create",
                "after": {"due_date": "2026-12-31"},
                "requests": [
                    {
                        "method": "POST",
                        "path": f"{project}/milestones",
                        "body": {"title": "2026.12", "due_date": "2026-12-31"},
                    }
                ],
                "origin": "",
            },
            {
                **milestone,
                "name": "2026.11",
                "action": "update",
                "before": {"state": "active"},
                "after": {"state": "closed"},
                "id": 31,
                "renamed_from": "Nov 2026",
                "read": {
                    "names": ["Nov 2026"],
                    "fields": {"description": None, "start_date": None, "due_date": None, "state": "active"},
                },
                "requests": [
                    {
                        "method": "PUT",
                        "path": f"{project}/milestones/31",
                        "body": {"state_event": "close", "title": "2026.11"},
                    }
                ],
                "origin": "",
            },
            unmanaged({**milestone, "name": "Someday"}, 32),
            {
                **api,
                "section": "trigger_tokens",
                "title": "trigger token",
                "name": "legacy-integration",
                "action": "delete",
                "before": {},
                "id": 71,
                "read": {"names": ["legacy-integration"], "fields": {}},
                "requests": [{"method": "DELETE", "path": f"{project}/triggers/71", "body": None}],
                "notes": [
                    {"code": "loss", "reason": "no use of it is recorded"},
                    {"code": "loss", "reason": "its value no longer starts pipelines, and cannot be restored"},
                ],
                "origin": "",
            },
            unmanaged({**milestone, "target": "project acme/payments/lib", "name": "Old"}, 42),
            unmanaged({**milestone, "target": "project acme/payments/lib", "name": "Older"}, 43),
        ],
    }


def unmanaged(address: dict[str, Any], number: int) -> dict[str, Any]:
    """The item of an unmanaged milestone."""
    return {
        **address,
        "finding": "unmanaged",
        "field": None,
        "reason": f"is unmanaged: ID {number}",
        "fix": "",
        "data": {"id": number, "grants_access": False, "owner": None, "last_used": None},
        "origin": "",
    }


def test_no_secret_is_kept() -> None:
    text = save(sample())
    assert "legacy-integration" in text
    assert SECRET not in text
    assert SECRET[:4] not in text


def test_a_plan_may_be_formatted_anew_but_not_edited() -> None:
    text = save(sample())
    assert load_plan(json.dumps(json.loads(text), sort_keys=True), KINDS) == sample()
    assert refusal(text.replace("2026-12-31", "2026-12-30")) == (
        "the saved plan was edited after it was saved: its checksum does not match; make it again"
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("project acme\n", f"not a saved plan: line 1, column 1 is not JSON; {WRITE}"),
        (
            '{"format": "reconciler.plan/v4",\n "service": }',
            f"not a saved plan: line 2, column 13 is not JSON; {WRITE}",
        ),
        ("", f"not a saved plan: line 1, column 1 is not JSON; {WRITE}"),
        ('{"format": "reconciler.plan/v4", "service": NaN}', f"not a saved plan: not JSON that can be read; {WRITE}"),
        ("[" * 200_000, f"not a saved plan: not JSON that can be read; {WRITE}"),
        ("[]", f"not a saved plan: the JSON is not an object; {WRITE}"),
        ("{}", f"not a saved plan: it does not say that its format is reconciler.plan/v4; {WRITE}"),
        ('{"format": 1}', f"not a saved plan: it does not say that its format is reconciler.plan/v4; {WRITE}"),
        ('{"format": "plan"}', f"not a saved plan: it does not say that its format is reconciler.plan/v4; {WRITE}"),
        (
            '{"format": "reconciler.plan/v10"}',
            "the saved plan was made by a newer reconciler: its format is reconciler.plan/v10, not reconciler.plan/v4; "
            "update this one",
        ),
        (
            '{"format": "reconciler.plan/v3"}',
            "the saved plan was made by an older reconciler: its format is reconciler.plan/v3, not reconciler.plan/v4; "
            "make it again",
        ),
        (
            '{"format": "reconciler.validation/v1"}',
            f"not a saved plan but a validation: its format is reconciler.validation/v1; {WRITE}",
        ),
        (
            '{"format": "reconciler.dream/v1"}',
            f"not a saved plan but something else: its format is reconciler.dream/v1; {WRITE}",
        ),
        ('{"format": "reconciler.plan/v4"}', "the saved plan has no checksum; make it again"),
    ],
)
def test_what_is_no_saved_plan_is_called_what_it_is(text: str, words: str) -> None:
    assert refusal(text) == words


def test_a_report_is_no_plan() -> None:
    assert refusal(save(done())) == f"not a saved plan but an apply report: its format is reconciler.report/v4; {WRITE}"


def test_no_depth_of_nesting_is_too_much() -> None:
    for depth in range(20, 1200, 20):
        nested = '{"format": "reconciler.plan/v4", "checksum": "", "targets": ' + "[" * depth + "]" * depth + "}"
        assert refusal(nested) in {
            "the saved plan was edited after it was saved: its checksum does not match; make it again",
            f"not a saved plan: not JSON that can be read; {WRITE}",
        }


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda plan: plan.pop("service"), "service is missing"),
        (lambda plan: plan.update(token="x"), "token is not known here"),
        (lambda plan: plan.update({"\x1b]0;": 1}), "['\\x1b]0;'] is not known here"),
        (lambda plan: plan.update(targets={}), "targets should be a list"),
        (lambda plan: plan.update(requests_made="8"), "requests_made should be a number"),
        (lambda plan: plan.update(requests_made=-1), "requests_made input should be greater than or equal to 0"),
        (lambda plan: plan.update(created_at="2026-12-01T12:00:00"), "created_at input should have timezone info"),
        (lambda plan: first(plan).pop("action"), "items[2] has neither an action nor a finding"),
        (lambda plan: first(plan).update(action="merge"), "items[2] has neither an action nor a finding"),
        (lambda plan: plan["items"][1].pop("finding"), "items[1] has neither an action nor a finding"),
        (lambda plan: plan["items"].insert(0, "an item"), "items[0] has neither an action nor a finding"),
        (lambda plan: plan["items"][1].pop("reason"), "items[1].reason is missing"),
        (lambda plan: first(plan).update(name=[]), "items[2].name should be a string; "
         "items[2].name should be a number"),
        (lambda plan: first(plan)["requests"][0].pop("path"),
         "items[2].requests[0].path is missing"),
        (lambda plan: first(plan)["requests"][0].update(method="GET"),
         "items[2].requests[0].method input should be 'POST', 'PUT', 'PATCH' or 'DELETE'"),
        (lambda plan: plan["summary"].update(delete=0), "summary.delete should be 1"),
        (lambda plan: plan.pop("summary"), "summary is missing"),
        (lambda plan: plan["targets"][0].update(ref=[]),
         "targets[0].ref should be a string; targets[0].ref should be a number"),
        (lambda plan: first(plan).update(delivers=True), "items[2].delivers is not known here"),
    ],
)  # fmt: skip
def test_a_damaged_plan_is_refused_with_the_place(spoil: Spoil, words: str) -> None:
    assert refusal(spoilt(save(sample()), spoil)) == f"the saved plan is damaged: {words}"


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda plan: first(plan).update(outcome={"status": "done", "reason": ""}), "items[2] has an outcome"),
        (lambda plan: first(plan).update(target=None), "items[2] is about no target"),
        (lambda plan: first(plan).update(target="project acme/other"), "items[2].target is not among the targets"),
        (lambda plan: plan["targets"][0]["sections"].pop("milestones"), "items[2].section is not among those of its target"),
        (lambda plan: plan["targets"].append(plan["targets"][0]), "two targets are 'project acme/payments/api'"),
        (lambda plan: plan["items"][4]["data"].pop("owner"), "items[4]: the data of 'unmanaged' are invalid"),
        (lambda plan: first(plan).update(notes=[{"code": "page", "reason": "", "data": {"page": 1}}]),
         "items[2]: the data of 'page' are invalid"),
        (lambda plan: first(plan).update(notes=[{"code": "changed_by", "reason": "", "data": {"name": "Mona",
         "time": "2026-12-01T10:00:00"}}]), "items[2]: the data of 'changed_by' are invalid"),
    ],
)  # fmt: skip
def test_items_that_no_plan_has_are_refused(spoil: Spoil, words: str) -> None:
    assert refusal(spoilt(save(sample()), spoil)) == f"damaged: {words}"


def test_a_plan_is_read_without_the_keys_that_an_older_version_may_not_have_had() -> None:
    def forget(plan: dict[str, Any]) -> None:
        del plan["refusals"], plan["shard"], plan["canary"], plan["applies"]
        del plan["summary"]["problems"], plan["summary"]["excepted"]

    assert load_plan(spoilt(save(sample()), forget), KINDS) == sample()


@pytest.mark.untraced
@pytest.mark.parametrize(
    "path",
    [
        "",
        "user",
        "projects",
        "projects/acme%2Fpayments%2Fapi",
        "projects/acme%2Fpayments%2Fapi/hooks",
        "projects/acme%2Fpayments%2Fapi/milestones/",
        "projects/acme%2Fpayments%2Fapi/milestones/../hooks",
        "projects/acme%2Fpayments%2Fapi/milestones/%2e%2e/hooks",
        "projects/acme%2Fpayments%2Fapi/milestones/31?title=x",
        "projects/acme%2Fpayments%2Fapi/milestones/31#",
        "projects/acme%2Fpayments%2Fapi/milestones/31\n",
        "projects/acme%2Fpayments%2Fapi/milestonesX",
        "projects/acme%2Fpayments%2Flib/milestones",
        "projects/../projects/acme%2Fpayments%2Fapi/milestones",
        "groups/12/milestones",
        "projects/x/milestones",
        "/projects/acme%2Fpayments%2Fapi/milestones",
        "//evil.example/projects/12/milestones",
        "https://evil.example/projects/12/milestones",
        "notification_settings",
    ],
)
def test_a_request_that_leads_elsewhere_is_refused(path: str) -> None:
    text = spoilt(save(sample()), lambda plan: first(plan)["requests"][0].update(path=path))
    assert refusal(text) == f"damaged: POST {path!r} does not lead to milestone of 'project acme/payments/api'"


@pytest.mark.parametrize("path", ["projects/12/milestones", "projects/acme%2Fpayments%2Fapi/milestones/{id}"])
def test_a_request_may_name_its_project_by_number_and_an_object_that_is_still_to_be_created(path: str) -> None:
    text = spoilt(save(sample()), lambda plan: first(plan)["requests"][0].update(path=path))
    assert [change.requests[0].path for change in tree(load_plan(text, KINDS)).changes][1] == path


def of_no_section(plan: dict[str, Any]) -> None:
    """Make milestones objects of a section that does not exist."""
    plan["targets"][0]["sections"]["hooks"] = 2
    first(plan).update(section="hooks")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (
            lambda plan: plan["targets"][0].update(level="user"),
            "damaged: 'project acme/payments/api' is no target of the level user",
        ),
        (
            lambda plan: plan["targets"][0].update(ref=None),
            "damaged: 'project acme/payments/api' is no target of the level project",
        ),
        (of_no_section, NO_PART.format("hooks", "hooks")),
        (lambda plan: plan["items"].append(KEPT), NO_PART.format("milestones", "boards")),
        (lambda plan: first(plan).update(part="boards"), NO_PART.format("milestones", "boards")),
    ],
)
def test_a_plan_for_what_is_not_there_is_refused(spoil: Spoil, words: str) -> None:
    assert refusal(spoilt(save(sample()), spoil)) == words


def created(plan: dict[str, Any], number: int) -> dict[str, Any]:
    """Return the creation of a target of `creations`."""
    named = plan["targets"][number]["target"]
    return next(item for item in plan["items"] if (item["target"], item["section"]) == (named, ""))


def renamed(plan: dict[str, Any], **changed: Any) -> None:
    """Make the last target of `creations` another one, wherever it is named."""
    own = plan["targets"][3]
    former = own["target"]
    own.update(changed)
    for each in (own, *(item for item in plan["items"] if item["target"] == former)):
        each["target"] = f"{own['level']} {own['ref']}"


@pytest.mark.parametrize(
    "spoil",
    [
        lambda plan: created(plan, 0)["requests"][0].update(path="users"),
        lambda plan: created(plan, 0)["requests"][0]["body"].update(path="other"),
        lambda plan: created(plan, 0)["requests"][0]["body"].update(parent_id="3"),
        lambda plan: created(plan, 0)["requests"][0]["body"].update(avatar="x"),
        lambda plan: (created(plan, 0).update(requests=[]), plan["summary"].update(requests=7)),
        lambda plan: created(plan, 0).update(name="acme/other"),
        lambda plan: created(plan, 0)["after"].update(visibility="secret"),
        lambda plan: created(plan, 0)["after"].pop("visibility"),
        lambda plan: created(plan, 0)["after"].update({"import": created(plan, 2)["after"]["import"]}),
        lambda plan: created(plan, 1)["requests"][0]["body"]["file"].update(file="/etc/passwd"),
        lambda plan: created(plan, 2)["requests"][0]["body"].update(personal_access_token={"variable": "OTHER"}),
        lambda plan: created(plan, 2)["requests"][0].update(path="import/gitea"),
        lambda plan: created(plan, 2)["after"].update({"import": {"gitea": {"token_env": "T"}}}),
        lambda plan: created(plan, 2)["after"].update({"import": "github"}),
        lambda plan: created(plan, 3)["requests"][0]["body"].update(namespace_id={"id_of": "group acme/other"}),
        lambda plan: renamed(plan, ref="web"),
        lambda plan: renamed(plan, ref=7),
        lambda plan: renamed(plan, level="group"),
        lambda plan: created(plan, 3)["after"].update(from_archive="x.gz", sha256=""),
        lambda plan: plan["items"][3].update(section=""),
    ],
)
def test_a_creation_that_nobody_would_plan_is_refused(spoil: Spoil) -> None:
    saved = save(creations())
    assert load_plan(saved, KINDS) == creations()
    assert re.fullmatch("damaged: no creation of '.*' is planned like this", refusal(spoilt(saved, spoil)))


def test_an_import_is_shown_in_the_words_of_manifests_and_sent_in_those_of_the_service() -> None:
    fields = {"timeout_strategy": "optimistic", "url": "https://b", "username": "ada", "project": "PAY", "repo": "api"}
    creation = Creation("api", source=Import("bitbucket_server", "T", fields))
    planned = creation_of(PROJECT, creation, Namespace("acme/new-team"))
    sent = {
        **{name if name == "timeout_strategy" else f"bitbucket_server_{name}": fields[name] for name in fields},
        "personal_access_token": {"variable": "T"},
        "new_name": "api",
        "target_namespace": "acme/new-team",
    }
    assert planned.after == {"name": "api", "import": {"bitbucket_server": {**fields, "token_env": "T"}}}
    assert planned.requests == (Request("POST", "import/bitbucket_server", sent),)
    assert creation_in(planned.after) == creation
    # A plan of an earlier version shows them as they are sent, and is applied exactly.
    former = {key: value for key, value in sent.items() if key in fields or "server" in key} | {"token_env": "T"}

    def earlier(plan: dict[str, Any]) -> None:
        created(plan, 2)["after"]["import"] = {"bitbucket_server": former}
        created(plan, 2)["requests"] = [{"method": "POST", "path": "import/bitbucket_server", "body": sent}]

    loaded = tree(load_plan(spoilt(save(creations()), earlier), KINDS)).targets[2].creation
    assert loaded is not None
    assert (loaded.after["import"], loaded.requests) == ({"bitbucket_server": former}, planned.requests)


def test_a_report_of_creations_is_read_and_checked_too() -> None:
    saved = save(became())
    assert load_report(saved, KINDS) == became()

    def forged(report: dict[str, Any]) -> None:
        report["items"][0]["requests"][0]["path"] = "projects"

    with pytest.raises(PlanRefused, match="no creation of 'group acme/new-team' is planned like this"):
        load_report(spoilt(saved, forged), KINDS)


def test_sections_that_will_be_planned_again_come_back_as_they_were() -> None:
    again = section("approval_settings", {"allow_author_approval": False}, API)
    saved = planned_again(again)
    assert json.loads(save(saved))["items"] == [
        {
            "target": "project acme/payments/api",
            "section": "approval_settings",
            "title": "approval_settings",
            "name": None,
            "action": "keep",
            "after": {"allow_author_approval": False},
        }
    ]
    loaded = load_plan(save(saved), KINDS)
    assert loaded == saved
    (target,) = (target for target in tree(loaded).targets if target.target == API)
    assert declared_again(target, KINDS) == {"approval_settings": again}


def test_an_object_that_is_in_order_is_kept_without_a_change() -> None:
    kept = Keep(Address(API, "milestones", "milestones", "milestone", "2026.12"), 41)
    saved = replace(sample(), items=(*sample().items, kept))
    assert json.loads(save(saved))["items"][-1] == {
        "target": "project acme/payments/api",
        "section": "milestones",
        "title": "milestone",
        "name": "2026.12",
        "action": "keep",
        "id": 41,
    }
    loaded = load_plan(save(saved), KINDS)
    assert loaded == saved
    assert [*tree(loaded).changes] == [*tree(sample()).changes]


def of_the_user(plan: dict[str, Any]) -> None:
    """Make settings of a project the user's."""
    plan["targets"][0].update(target="user", level="user", ref=None)
    plan["items"][0].update(target="user")


def of_other_section(plan: dict[str, Any]) -> None:
    """Make settings those of a section that does not exist."""
    plan["targets"][0].update(sections={"hooks": 0})
    plan["items"][0].update(section="hooks")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (of_other_section, "no project has a section 'hooks'"),
        (of_the_user, "no user has a section 'approval_settings'"),
        (
            lambda plan: plan["items"][0].update(after={"x": 1}),
            "the approval_settings of 'project acme/payments/api' are not valid",
        ),
        (lambda plan: plan["items"][0].update(prune=False), "items[0].prune is not known here"),
        (lambda plan: plan["items"][0].update(prune="no"), "items[0].prune input should be a valid boolean"),
        (lambda plan: plan["items"][0].update(prune=None), "items[0].prune input should be a valid boolean"),
    ],
)
def test_sections_that_could_not_be_planned_again_are_refused(spoil: Spoil, words: str) -> None:
    saved = save(planned_again(section("approval_settings", {}, API)))
    assert refusal(spoilt(saved, spoil)).removeprefix("the saved plan is ").removeprefix("damaged: ") == words


def planned_again(own: Section) -> RunDocument:
    """A plan that only plans a section again."""
    (wanted,) = own.wanted.values()
    assert isinstance(wanted, Resource)
    keep = Keep(
        Address(own.target, own.kind, own.kind, own.kind),
        after=wanted.model_dump(mode="json", include=wanted.model_fields_set),
        prune=own.prune,
    )
    return saved_plan(Plan((target_plan(own.target).adding(keep),)))


@pytest.mark.parametrize("api_url", ["https://git.example.com/api/v4", "HTTPS://Git.Example.com/api/v4/"])
@pytest.mark.parametrize("age", [timedelta(), timedelta(hours=24), -timedelta(minutes=5)])
def test_a_plan_for_this_service_is_current_for_a_day(api_url: str, age: timedelta) -> None:
    refuse_unless_current(sample(), api_url=api_url, now=NOON + age, max_age=timedelta(hours=24))


@pytest.mark.parametrize(
    ("api_url", "age", "max_age", "words"),
    [
        (
            "https://git.example.org/api/v4",
            timedelta(),
            timedelta(hours=24),
            "the plan is for 'https://git.example.com/api/v4', and this is 'https://git.example.org/api/v4': "
            "make a plan for this service, or apply it there",
        ),
        (
            EMPTY.service,
            timedelta(hours=30, minutes=1),
            timedelta(hours=24),
            "the plan was made at 2026-12-01T12:00:00Z, 30 hours ago, and plans older than 24 hours are refused: "
            "make a new one, or allow its age with --max-age",
        ),
        (
            EMPTY.service,
            timedelta(hours=1),
            timedelta(minutes=1),
            "the plan was made at 2026-12-01T12:00:00Z, 1 hour ago, and plans older than 1 minute are refused: "
            "make a new one, or allow its age with --max-age",
        ),
        (
            EMPTY.service,
            -timedelta(minutes=6),
            timedelta(hours=24),
            "the plan was made in the future, at 2026-12-01T12:00:00Z, and it is 2026-12-01T11:54:00Z: "
            "set the clock right",
        ),
    ],
)
def test_a_plan_that_is_not_current_is_refused(api_url: str, age: timedelta, max_age: timedelta, words: str) -> None:
    with pytest.raises(PlanRefused) as refused:
        refuse_unless_current(sample(), api_url=api_url, now=NOON + age, max_age=max_age)
    assert str(refused.value) == words


def first(plan: dict[str, Any]) -> Any:
    """The creation of the milestone."""
    return plan["items"][2]


def refusal(text: str) -> str:
    """What is said when a text is refused."""
    with pytest.raises(PlanRefused) as refused:
        load_plan(text, KINDS)
    return str(refused.value)
