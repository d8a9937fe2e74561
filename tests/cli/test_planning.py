"""`validate`, `render`, `plan`, `drift`: what they print, how they end, and that they cannot write."""

import json
import os
from pathlib import Path

import pytest

from reconciler.documents.checksum import seal
from tests.conftest import EXAMPLES
from tests.desk import Desk

SPEC = """
  prune: [job_token_scope]
  job_token_scope: {enabled: true, projects: [acme/lib]}
  milestones:
    "1": {due_date: 2026-12-31}
    old: null
  approval_settings: {allow_author_approval: true}
"""

PLAN = """\
project acme/api
  + milestone "1"                             due_date: 2026-12-31
  ~ approval settings                         allow_author_approval: false -> true
  - allowlisted project "acme/web"
  - milestone "old"
Plan: 1 to create, 1 to update, 2 to delete, 0 problems, 1 unmanaged. 4 writes to apply; 4 requests were made to plan.
"""


@pytest.fixture(autouse=True)
def _service(desk: Desk) -> None:
    desk.service(
        milestones=[{"title": "old"}, {"title": "mine"}],
        job_token_scope={"inbound_enabled": True, "project_allowlist": [101, 102]},
    )
    desk.project(SPEC)


def test_a_plan_is_printed_and_nothing_is_written(desk: Desk) -> None:
    desk.sandbox.clear_log()
    done = desk("plan")
    assert (done.code, done.out, done.err) == (0, PLAN, "")
    assert [entry["method"] for entry in desk.sandbox.log()] == ["GET"] * 4


def test_a_plan_can_tell_by_its_exit_code_that_changes_are_pending(desk: Desk) -> None:
    assert desk("plan --detailed-exitcode").code == 2
    desk.project("{milestones: {mine: {}}}")
    assert desk("plan --detailed-exitcode").code == 0


def test_drift_exits_with_2_and_is_quiet_when_in_order(desk: Desk) -> None:
    done = desk("drift --report json=drift.json")
    assert (done.code, done.out, done.err) == (2, PLAN, "")
    desk.project("{milestones: {mine: {}}}")
    done = desk("drift --report json=drift.json")
    assert (done.code, done.out, done.err) == (0, "", "")
    assert json.loads(Path("drift.json").read_text())["summary"]["create"] == 0
    assert json.loads(desk("drift --format json").out)["format"] == "reconciler.plan/v2"


def test_a_problem_is_never_success(desk: Desk) -> None:
    desk.service(archived=True)
    desk.project("{trigger_tokens: {a: {}}, milestones: {b: {}}}")
    planned = desk("plan")
    assert (planned.code, planned.err) == (3, "")
    assert "  ! trigger token: cannot be read: the project is archived; unarchive it, or " in planned.out
    assert desk("drift").code == 2


def test_what_grants_access_and_is_not_managed_is_more_than_a_number(desk: Desk) -> None:
    scope = {"inbound_enabled": True, "project_allowlist": [101, 102], "group_allowlist": [11]}
    tokens = [{"description": "old", "id": 71, "owner": "bob", "last_used": "2026-01-02T03:04:05Z"}]
    desk.service(job_token_scope=scope, trigger_tokens=tokens, milestones=[{"title": "a", "id": 5}])
    desk.project("{job_token_scope: {projects: [acme/lib], groups: []}, trigger_tokens: {}, milestones: {}}")
    doors = (
        "3 unmanaged objects grant access: 2 in job_token_scope, 1 in trigger_tokens; declare them, or write "
        "prune: [job_token_scope, trigger_tokens] to delete them"
    )
    done = desk("plan --report markdown=note.md --report html=plan.html --report json=plan.json")
    assert (done.code, done.out.splitlines()[0]) == (0, doors)
    assert f"**`{doors}`**\n" in Path("note.md").read_text()
    assert f"<p>{doors}</p>" in Path("plan.html").read_text()
    assert desk("plan --quiet").out.count("\n") == 1
    verbose = desk("plan -v").out.splitlines()
    assert verbose[:-2] == [
        "project acme/api",
        '  ? allowlisted project "acme/web" is unmanaged  ID 102',
        '  ? allowlisted group "acme/tools" is unmanaged  ID 11',
        '  ? milestone "a" is unmanaged                ID 5',
        '  ? trigger token "old" is unmanaged          ID 71, owner bob, last used 2026-01-02T03:04:05.000Z',
    ]
    assert desk("show plan.json -v").out.splitlines() == verbose
    sections = json.loads(Path("plan.json").read_text())["targets"][0]["sections"]
    assert sections[-1]["unmanaged"] == [
        {
            "part": "trigger_tokens",
            "title": "trigger token",
            "name": "old",
            "id": 71,
            "grants_access": True,
            "owner": "bob",
            "last_used": "2026-01-02T03:04:05.000Z",
        }
    ]


def test_with_verbose_unmanaged_objects_and_requests_are_named(desk: Desk) -> None:
    done = desk("plan -v")
    assert '"mine"' in done.out
    assert "DELETE projects/100/job_token_scope/allowlist/102" in done.out
    assert "GET projects/acme%2Fapi/milestones 200, " in done.err


def test_a_plan_says_where_there_is_nothing_to_rename(desk: Desk) -> None:
    desk.service(milestones=[{"title": "live"}, {"title": "old"}])
    desk.project(
        "{milestones: {one: {renamed_from: oen, description: d}, two: {renamed_from: [a, b]}, live: {renamed_from: gone}, "
        "new: {renamed_from: [old, older]}}}"
    )
    said = (
        "project acme/api\n"
        '  + milestone "one"                           description: d, nothing named "oen" to rename\n'
        '  + milestone "two"                           nothing named "a" or "b" to rename\n'
        '  ~ milestone "new"                           renamed from "old"\n'
    )
    total = "Plan: 2 to create, 1 to update, 0 to delete, 0 problems, 0 unmanaged. "
    planned = desk("plan --out plan.json")
    assert (planned.code, planned.out) == (0, f"{said}{total}3 writes to apply; 1 request was made to plan.\n")
    assert desk("show plan.json").out.startswith(said)
    assert (
        '+ milestone "two"\n+     nothing named "a" or "b" to rename\n' in desk("show plan.json --format markdown").out
    )
    assert (
        '["renamed_from",null,"nothing named \\"a\\" or \\"b\\" to rename"]' in desk("show plan.json --format html").out
    )
    assert desk("apply --plan plan.json --yes").code == 0
    assert desk("plan").out == (
        "Plan: 0 to create, 0 to update, 0 to delete, 0 problems, 0 unmanaged. 0 writes to apply; 1 request was made to plan.\n"
    )


def test_the_log_can_be_json(desk: Desk) -> None:
    lines = [json.loads(line) for line in desk("plan -v --log-format json").err.splitlines()]
    assert [line["level"] for line in lines] == ["debug"] * 4
    assert lines[0]["message"].startswith("GET projects/acme%2Fapi/")


def test_a_plan_is_saved_and_shown_again(desk: Desk) -> None:
    done = desk("plan --out plan.json --format json")
    saved = Path("plan.json").read_text()
    assert done.out == saved
    assert desk("show plan.json").out == PLAN
    assert desk("show plan.json --format json").out == saved


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{}", "reconciler: not a saved plan"),
        ("[]", "reconciler: not a saved plan"),
        ("[" * 100000, "reconciler: not a saved plan"),
        ("\x00", "reconciler: not a saved plan"),
    ],
)
def test_what_is_no_plan_cannot_be_shown(desk: Desk, text: str, said: str) -> None:
    desk.write("plan.json", text)
    done = desk("show plan.json")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(said)


def test_a_file_of_any_name_comes_out_of_a_saved_plan_as_it_went_in(desk: Desk) -> None:
    (desk.folder / "manifests/project.yaml").rename(os.fsdecode(b"manifests/\xff\x1b[31m.yaml"))
    assert desk("plan --out plan.json").code == 0
    assert json.loads(Path("plan.json").read_text())["targets"][0]["origin"] == "manifests/\\udcff\\u001b[31m.yaml:1"
    assert desk("show plan.json").out == PLAN
    assert desk("apply --plan plan.json --yes --format json").code == 0


def test_words_of_a_crafted_plan_do_not_steer_the_terminal(desk: Desk) -> None:
    assert desk("plan --out plan.json").code == 0
    content = json.loads(Path("plan.json").read_text())
    del content["seal"]
    content["targets"][0]["sections"][0]["changes"][0]["action"] = "\x1b[31mcreate\u202e ##vso[task.complete]"
    desk.write("plan.json", seal(content))
    done = desk("show plan.json")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("reconciler: the saved plan is damaged: ")
    assert not {"\x1b", "\u202e"} & set(done.err)
    assert "##vso[" not in done.err


def test_files_that_cannot_be_read_or_written_are_named(desk: Desk) -> None:
    assert desk("show none.json").err == "reconciler: none.json: No such file or directory\n"
    Path("binary.json").write_bytes(b"\xff")
    assert desk("show binary.json").err == "reconciler: binary.json: not a text file\n"
    assert "nonsense" in desk("plan --report nonsense=file").err


def test_a_run_can_be_narrowed(desk: Desk) -> None:
    desk.write(
        "manifests/lib.yaml",
        "apiVersion: reconciler/v1\nkind: Project\nmetadata: {path: acme/lib, labels: {team: core}}\n"
        "spec: {milestones: {a: {}}, trigger_tokens: {b: {}}}\n",
    )
    only_milestones = (
        'project acme/lib\n  + milestone "a"\n'
        "Plan: 1 to create, 0 to update, 0 to delete, 0 problems, 0 unmanaged. 1 write to apply; 1 request was made to plan.\n"
    )
    assert desk("plan --selector team=core --section milestones").out == only_milestones
    assert desk("plan --target acme/l* --section milestones").out == only_milestones
    wrong = desk("plan --section milestone")
    assert (wrong.code, wrong.err.splitlines()[-1]) == (
        64,
        "reconciler: no section milestone; there are notification_settings, approval_settings, "
        "container_repository_protection_rules, job_token_scope, milestones, trigger_tokens",
    )
    assert desk("plan --target nobody").code == 64
    assert desk("plan --selector team=nobody").code == 64
    for command in ("plan", "drift", "apply --yes", "render"):
        assert desk(f"{command} --section job_token_scope --target acme/lib").code == 0
        undeclared = desk(f"{command} --section milestones --section notification_settings")
        assert (undeclared.code, undeclared.out, undeclared.err) == (
            64,
            "",
            "reconciler: no target declares notification_settings; declared are: approval_settings, job_token_scope, "
            "milestones, trigger_tokens\n",
        )


def test_eight_requests_are_in_flight_when_the_service_is_slow(desk: Desk) -> None:
    desk.project("{milestones: {}, trigger_tokens: {}, approval_settings: {}, notification_settings: {}}")
    desk.project(
        "{milestones: {}, trigger_tokens: {}, approval_settings: {}, notification_settings: {}}",
        "acme/lib",
        "manifests/l.yaml",
    )
    desk.sandbox.clear_log()
    desk.sandbox.set_latency(400)
    assert desk("plan --concurrency 8").code == 0
    assert desk.sandbox.peak_in_flight() == 8


def test_wrong_manifests_are_all_told_at_once_with_their_places(desk: Desk) -> None:
    desk.write(
        "manifests/a.yaml",
        "apiVersion: reconciler/v1\nkind: Project\nmetadata: {path: acme/a}\nspec: {milestone: {}}\n",
    )
    desk.write("manifests/b.yaml", "")
    done = desk("validate")
    assert (done.code, done.err) == (1, "")
    assert "manifests/a.yaml:4:8: " in done.out
    assert "manifests/b.yaml: " in done.out
    planned = desk("plan")
    assert (planned.code, planned.out) == (1, "")
    assert "manifests/a.yaml:4:8: " in planned.err
    assert json.loads(desk("validate --format json").out)["valid"] is False


def test_valid_manifests_are_said_to_be_valid_and_doubts_are_warnings(desk: Desk) -> None:
    desk.project("{milestones: {a: {}}}")
    assert desk("validate").out == "Valid: 1 document: 1 project.\n"
    desk.project("{approval_settings: {retain_approvals_on_push: false, selective_code_owner_removals: true}}")
    done = desk("validate")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("manifests/project.yaml:4:")
    assert done.out.endswith("\nValid: 1 document: 1 project; 1 warning.\n")
    assert desk("plan -q").err == ""
    assert "warning" in desk("plan").err


def test_an_empty_allowlist_that_is_not_pruned_is_warned_of_where_manifests_are_validated(desk: Desk) -> None:
    desk.project("{job_token_scope: {projects: []}}")
    done = desk("validate")
    assert (done.code, done.out) == (
        0,
        """\
manifests/project.yaml:4:36: warning: an empty list removes nothing: entries that are there stay; write `prune: [job_token_scope]` if nobody is to have access, or leave the list out
    spec: {job_token_scope: {projects: []}}
                                       ^
Valid: 1 document: 1 project; 1 warning.
""",
    )
    assert desk("plan").err == ""


def test_without_manifests_the_default_folder_is_named(desk: Desk) -> None:
    desk.write("elsewhere.yaml", "")
    (desk.folder / "manifests/project.yaml").unlink()
    done = desk("plan")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("reconciler: manifests: ")


def test_what_is_rendered_is_the_same_desired_state(desk: Desk) -> None:
    rendered = desk(f"render {EXAMPLES / 'acme'}")
    assert (rendered.code, rendered.err) == (0, "")
    desk.write("rendered.yaml", rendered.out)
    assert desk("render rendered.yaml").out == rendered.out
    one = desk(f"render {EXAMPLES / 'acme'} --target acme/payments/web --section job_token_scope")
    assert one.out == (
        "apiVersion: reconciler/v1\nkind: Project\nmetadata:\n  path: acme/payments/web\n  labels:\n    team: payments\n"
        "spec:\n  job_token_scope:\n    enabled: true\n    groups:\n      - acme/platform\n    projects:\n      - partners/shop\n"
    )


def test_users_and_targets_known_by_number_are_rendered_too(desk: Desk) -> None:
    desk.write(
        "manifests/project.yaml",
        "apiVersion: reconciler/v1\nkind: User\nspec:\n  notification_settings:\n    level: watch\n"
        "---\napiVersion: reconciler/v1\nkind: Project\nmetadata:\n  id: 7\nspec:\n  prune:\n    - milestones\n"
        "  milestones: {}\n",
    )
    assert desk("render").out == (desk.folder / "manifests/project.yaml").read_text()


def test_templates_get_their_values_from_files_and_the_command_line(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RELEASE", "3")
    desk.write("values.yaml", "first: '1'\nsecond: wrong\n")
    desk.write(
        "t/p.yaml.j2",
        "apiVersion: reconciler/v1\nkind: Project\nmetadata: {path: acme/api}\n"
        "spec: {milestones: {'{{ first }}.{{ second }}.{{ env.RELEASE }}': {}}}\n",
    )
    assert "1.2.3: {}" in desk("render t --values values.yaml --set second=2 --env RELEASE").out


WRONG_TOKEN = (
    "reconciler: GET projects/acme%2Fapi/milestones: 401 Unauthorized; the token is wrong, expired or revoked: make a new "
    "one with the scope api, and set RECONCILER_TOKEN or --token-file\n"
)


@pytest.mark.parametrize(
    ("token", "code", "said"),
    [
        ("wrong", 1, WRONG_TOKEN),
        ("root-token", 0, ""),
    ],
)
def test_a_wrong_token_ends_the_run_at_once(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, token: str, code: int, said: str
) -> None:
    monkeypatch.setenv("RECONCILER_TOKEN", token)
    desk.project("{milestones: {}}")
    done = desk("plan")
    assert (done.code, done.err) == (code, said)


def test_what_a_token_may_not_see_is_a_problem_each(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECONCILER_TOKEN", "bob-token")
    desk.write(
        "manifests/group.yaml",
        "apiVersion: reconciler/v1\nkind: Group\nmetadata: {path: acme}\nspec: {approval_settings: {}}\n",
    )
    desk.project("{milestones: {}}")
    desk.project("{milestones: {}}", "acme/none", "manifests/none.yaml")
    done = desk("plan")
    assert (done.code, done.err) == (3, "")
    assert done.out == (
        "group acme\n"
        "  ! approval settings: cannot be read: GET groups/acme/merge_request_approval_setting: 403 Forbidden; it takes the "
        "role Owner and an edition with this feature (Premium or Ultimate)  manifests/group.yaml:4\n"
        "project acme/none\n"
        '  ! project "acme/none": not found, or not visible to the token\'s owner; correct it in the manifest, or make the '
        "token's owner a member  manifests/none.yaml:1\n"
        "Plan: 0 to create, 0 to update, 0 to delete, 2 problems, 2 unmanaged. 0 writes to apply; 4 requests were made to plan.\n"
    )


def test_a_pair_that_the_service_would_refuse_is_told_with_the_values_that_are_live(desk: Desk) -> None:
    live = {"retain_approvals_on_push": True, "selective_code_owner_removals": True}
    desk.service(merge_request_approval_settings=live)
    desk.project("{approval_settings: {retain_approvals_on_push: false}}")
    hint = "the service refuses `selective_code_owner_removals: true` with `retain_approvals_on_push: false`"
    assert desk("validate").out.startswith("Valid: ")
    done = desk("plan --out plan.json")
    assert (done.code, done.err) == (0, "")
    assert f"retain_approvals_on_push: true -> false, {hint}: set " in done.out
    assert desk("show plan.json").out == done.out
    assert f"!     {hint}" in desk("plan --format markdown").out
    assert hint in desk("plan --format html").out
    assert desk("apply --plan plan.json --yes").code == 3
