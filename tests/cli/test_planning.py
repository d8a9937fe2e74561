"""`validate`, `render`, `plan`, `drift`: their output and exit codes, and that they cannot write."""

import json
import os
from pathlib import Path

import pytest

from reconciler.document.checksum import with_checksum
from tests.cli_runner import BREAK, CliRunner
from tests.conftest import EXAMPLES
from tests.items import changes_of, findings_of

SPEC = """
  prune: [job_token_scope]
  job_token_scope: {enabled: true, projects: [acme/lib]}
  milestones:
    "1": {due_date: 2026-12-31}
    old: null
  approval_settings: {allow_author_approval: true}
"""

PLAN = """\
Loosens protection:
project acme/api
  ~ approval settings                         allow_author_approval: false -> true, loosens     manifests/project.yaml:10
All else:
project acme/api
  + milestone "1"                             due_date: 2026-12-31     manifests/project.yaml:8
  - allowlisted project "acme/web"            tightens     manifests/project.yaml:5
  - milestone "old"     manifests/project.yaml:9
Plan: 1 to create, 1 to update, 2 to delete, 1 loosening, 1 tightening, 1 unmanaged. 4 writes to apply; 5 requests were made to plan.
"""


@pytest.fixture(autouse=True)
def _service(cli_runner: CliRunner) -> None:
    cli_runner.service(
        milestones=[{"title": "old"}, {"title": "mine"}],
        job_token_scope={"inbound_enabled": True, "project_allowlist": [101, 102]},
    )
    cli_runner.project(SPEC)


def test_a_plan_is_printed_and_nothing_is_written(cli_runner: CliRunner) -> None:
    cli_runner.sandbox.clear_log()
    done = cli_runner("plan")
    assert (done.code, done.out, done.err) == (0, PLAN, "")
    assert [entry["method"] for entry in cli_runner.sandbox.log()] == ["GET"] * 5


def test_a_plan_can_tell_by_its_exit_code_that_changes_are_pending(cli_runner: CliRunner) -> None:
    assert cli_runner("plan --detailed-exitcode").code == 2
    cli_runner.project("{milestones: {mine: {}}}")
    assert cli_runner("plan --detailed-exitcode").code == 0


@pytest.mark.untraced
def test_drift_exits_with_2_and_is_quiet_when_in_order(cli_runner: CliRunner) -> None:
    done = cli_runner("drift --report json=drift.json")
    assert (done.code, done.out, done.err) == (2, PLAN, "")
    cli_runner.project("{milestones: {mine: {}}}")
    done = cli_runner("drift --report json=drift.json")
    assert (done.code, done.out, done.err) == (0, "", "")
    assert json.loads(Path("drift.json").read_text())["summary"]["create"] == 0
    assert json.loads(cli_runner("drift --format json").out)["format"] == "reconciler.plan/v4"


def test_a_problem_is_never_success(cli_runner: CliRunner) -> None:
    cli_runner.service(archived=True)
    cli_runner.project("{trigger_tokens: {a: {}}, approval_settings: {allow_author_approval: true}}")
    planned = cli_runner("plan")
    assert (planned.code, planned.err) == (3, "")
    assert "  ! trigger_tokens: cannot be read: the project is archived; unarchive it, or " in planned.out
    assert cli_runner("drift").code == 2


def test_what_grants_access_and_is_not_managed_is_more_than_a_number(cli_runner: CliRunner) -> None:
    target = {"inbound_enabled": True, "project_allowlist": [101, 102], "group_allowlist": [11]}
    tokens = [{"description": "old", "id": 71, "owner": "bob", "last_used": "2026-01-02T03:04:05Z"}]
    cli_runner.service(job_token_scope=target, trigger_tokens=tokens, milestones=[{"title": "a", "id": 5}])
    cli_runner.project("{job_token_scope: {projects: [acme/lib], groups: []}, trigger_tokens: {}, milestones: {}}")
    doors = (
        "3 unmanaged objects grant access: 2 in job_token_scope, 1 in trigger_tokens; declare them, or write "
        "prune: [job_token_scope, trigger_tokens] to delete them"
    )
    done = cli_runner("plan --report markdown=note.md --report html=plan.html --report json=plan.json")
    assert (done.code, done.out.splitlines()[0]) == (0, doors)
    assert f"**`{doors}`**\n" in Path("note.md").read_text()
    assert f"<p>{doors}</p>" in Path("plan.html").read_text().replace(BREAK, "")
    assert cli_runner("plan --quiet").out.count("\n") == 1
    verbose = cli_runner("plan -v").out.splitlines()
    assert verbose[:-2] == [
        "project acme/api",
        '  ? allowlisted project "acme/web" is unmanaged  ID 102',
        '  ? allowlisted group "acme/tools" is unmanaged  ID 11',
        '  ? milestone "a" is unmanaged                ID 5',
        '  ? trigger token "old" is unmanaged          ID 71, owner bob, last used 2026-01-02T03:04:05.000Z',
    ]
    assert cli_runner("show plan.json -v").out.splitlines() == verbose
    assert findings_of(json.loads(Path("plan.json").read_text()), "unmanaged")[-1] == {
        "target": "project acme/api",
        "section": "trigger_tokens",
        "title": "trigger token",
        "name": "old",
        "finding": "unmanaged",
        "field": None,
        "reason": "is unmanaged: ID 71, owner bob, last used 2026-01-02T03:04:05.000Z",
        "fix": "",
        "data": {"id": 71, "grants_access": True, "owner": "bob", "last_used": "2026-01-02T03:04:05.000Z"},
        "origin": "",
    }


def test_with_verbose_unmanaged_objects_and_requests_are_named(cli_runner: CliRunner) -> None:
    done = cli_runner("plan -v")
    assert '"mine"' in done.out
    assert "DELETE projects/100/job_token_scope/allowlist/102" in done.out
    assert "GET projects/acme%2Fapi/milestones 200, " in done.err


@pytest.mark.untraced
def test_a_plan_says_where_there_is_nothing_to_rename(cli_runner: CliRunner) -> None:
    cli_runner.service(milestones=[{"title": "live"}, {"title": "old"}])
    cli_runner.project(
        "{milestones: {one: {renamed_from: oen, description: d}, two: {renamed_from: [a, b]}, live: {renamed_from: gone}, "
        "new: {renamed_from: [old, older]}}}"
    )
    said = (
        "project acme/api\n"
        '  + milestone "one"                           description: d, nothing named "oen" to rename     manifests/project.yaml:4\n'
        '  + milestone "two"                           nothing named "a" or "b" to rename     manifests/project.yaml:4\n'
        '  ~ milestone "new"                           renamed from "old"     manifests/project.yaml:4\n'
    )
    total = "Plan: 2 to create, 1 to update. "
    planned = cli_runner("plan --out plan.json")
    assert (planned.code, planned.out) == (0, f"{said}{total}3 writes to apply; 2 requests were made to plan.\n")
    assert cli_runner("show plan.json").out.startswith(said)
    assert (
        '+ milestone "two"\n+     nothing named "a" or "b" to rename\n'
        in cli_runner("show plan.json --format markdown").out
    )
    assert (
        '["renamed_from",null,"nothing named \\"a\\" or \\"b\\" to rename"]'
        in cli_runner("show plan.json --format html").out
    )
    assert cli_runner("apply --plan plan.json --yes").code == 0
    assert cli_runner("plan").out == "No changes: 1 target is in order. 1 request was made to plan.\n"


def test_a_narrowed_plan_without_changes_says_what_stays(cli_runner: CliRunner) -> None:
    cli_runner.service(milestones=[{"title": "old"}, {"title": "done"}])
    cli_runner.project("{milestones: {done: {}}}")
    done = "Nothing to do in the 1 target looked at, 1 unmanaged. 1 request was made to plan.\n"
    assert cli_runner("plan --target acme/api").out == done
    assert cli_runner("plan --section milestones").out == done
    note = cli_runner("plan --target acme/api --format markdown").out
    assert note.startswith("## Nothing to do in the 1 target looked at, 1 unmanaged\n\n1 request was made to plan.\n")


def test_the_log_can_be_json(cli_runner: CliRunner) -> None:
    lines = [json.loads(line) for line in cli_runner("plan -v --log-format json").err.splitlines()]
    assert {line["level"] for line in lines} == {"debug"}
    asked = [line["message"] for line in lines if line["message"].startswith("GET ")]
    assert len(asked) == 5
    assert asked[0].startswith("GET projects/acme%2Fapi/")


def test_a_plan_is_saved_and_shown_again(cli_runner: CliRunner) -> None:
    done = cli_runner("plan --out plan.json --format json")
    saved = Path("plan.json").read_text()
    assert done.out == saved
    assert cli_runner("show plan.json").out == PLAN
    assert cli_runner("show plan.json --format json").out == saved


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{}", "reconciler: plan.json: not a saved plan"),
        ("[]", "reconciler: plan.json: not a saved plan"),
        ("[" * 100000, "reconciler: plan.json: not a saved plan"),
        ("\x00", "reconciler: plan.json: not a saved plan"),
    ],
)
def test_what_is_no_plan_cannot_be_shown(cli_runner: CliRunner, text: str, said: str) -> None:
    cli_runner.write("plan.json", text)
    done = cli_runner("show plan.json")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(said)


def test_a_file_of_any_name_comes_out_of_a_saved_plan_as_it_went_in(cli_runner: CliRunner) -> None:
    (cli_runner.folder / "manifests/project.yaml").rename(os.fsdecode(b"manifests/\xff\x1b[31m.yaml"))
    assert cli_runner("plan --out plan.json").code == 0
    assert json.loads(Path("plan.json").read_text())["targets"][0]["origin"] == "manifests/\\udcff\\u001b[31m.yaml:1"
    assert cli_runner("show plan.json").out == PLAN.replace("project.yaml", "\\udcff\\u001b[31m.yaml")
    assert cli_runner("apply --plan plan.json --yes --format json").code == 0


def test_words_of_a_crafted_plan_do_not_steer_the_terminal(cli_runner: CliRunner) -> None:
    assert cli_runner("plan --out plan.json").code == 0
    content = json.loads(Path("plan.json").read_text())
    del content["checksum"]
    changes_of(content)[0]["action"] = "\x1b[31mcreate\u202e ##vso[task.complete]"
    cli_runner.write("plan.json", with_checksum(content))
    done = cli_runner("show plan.json")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("reconciler: plan.json: the saved plan is damaged: ")
    assert not {"\x1b", "\u202e"} & set(done.err)
    assert "##vso[" not in done.err


def test_files_that_cannot_be_read_or_written_are_named(cli_runner: CliRunner) -> None:
    assert cli_runner("show none.json").err == "reconciler: none.json: No such file or directory; check the path\n"
    Path("binary.json").write_bytes(b"\xff")
    assert cli_runner("show binary.json").err == "reconciler: binary.json: not a text file\n"
    assert "nonsense" in cli_runner("plan --report nonsense=file").err


def test_a_run_can_be_narrowed(cli_runner: CliRunner) -> None:
    cli_runner.write(
        "manifests/lib.yaml",
        "apiVersion: reconciler/v1\nkind: Project\nmetadata: {path: acme/lib, labels: {team: core}}\n"
        "spec: {milestones: {a: {}}, trigger_tokens: {b: {}}}\n",
    )
    only_milestones = (
        'project acme/lib\n  + milestone "a"     manifests/lib.yaml:4\n'
        "Plan: 1 to create. 1 write to apply; 2 requests were made to plan.\n"
    )
    assert cli_runner("plan --selector team=core --section milestones").out == only_milestones
    assert cli_runner("plan --target acme/l* --section milestones").out == only_milestones
    wrong = cli_runner("plan --section milestone")
    assert (wrong.code, wrong.err.splitlines()[-1]) == (
        64,
        "reconciler: unknown section `milestone`; did you mean `milestones`?",
    )
    without = cli_runner("plan --exclude ACME/a* --exclude acme/none --section milestones")
    assert (without.out, without.err) == (only_milestones, "--exclude acme/none matches no target\n")
    assert cli_runner("apply --plan plan.json --exclude acme/lib").code == 64
    for command in ("plan", "drift", "apply --yes", "render"):
        assert cli_runner(f"{command} --section job_token_scope --target acme/lib").code == 0
        undeclared = cli_runner(f"{command} --section milestones --section notification_settings")
        assert (undeclared.code, undeclared.out, undeclared.err) == (
            64,
            "",
            "reconciler: no target declares notification_settings; declared are: approval_settings, job_token_scope, "
            "milestones, trigger_tokens\n",
        )


def test_eight_requests_are_in_flight_when_the_service_is_slow(cli_runner: CliRunner) -> None:
    cli_runner.project("{milestones: {}, trigger_tokens: {}, approval_settings: {}, notification_settings: {}}")
    cli_runner.project(
        "{milestones: {}, trigger_tokens: {}, approval_settings: {}, notification_settings: {}}",
        "acme/lib",
        "manifests/l.yaml",
    )
    cli_runner.sandbox.clear_log()
    cli_runner.sandbox.set_latency(400)
    assert cli_runner("plan --concurrency 8").code == 0
    assert cli_runner.sandbox.peak_in_flight() == 8


def test_wrong_manifests_are_all_told_at_once_with_their_places(cli_runner: CliRunner) -> None:
    cli_runner.write(
        "manifests/a.yaml",
        "apiVersion: reconciler/v1\nkind: Project\nmetadata: {path: acme/a}\nspec: {milestone: {}}\n",
    )
    cli_runner.write("manifests/b.yaml", "")
    done = cli_runner("validate")
    assert (done.code, done.err) == (1, "")
    assert "manifests/a.yaml:4:8: " in done.out
    assert "manifests/b.yaml: " in done.out
    planned = cli_runner("plan")
    assert (planned.code, planned.out) == (1, "")
    assert "manifests/a.yaml:4:8: " in planned.err
    assert json.loads(cli_runner("validate --format json").out)["valid"] is False


def test_valid_manifests_are_said_to_be_valid_and_doubts_are_warnings(cli_runner: CliRunner) -> None:
    cli_runner.project("{milestones: {a: {}}}")
    assert cli_runner("validate").out == "Valid: 1 document: 1 project.\n"
    cli_runner.project("{approval_settings: {retain_approvals_on_push: false, selective_code_owner_removals: true}}")
    done = cli_runner("validate")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("manifests/project.yaml:4:")
    assert done.out.endswith("\nValid: 1 document: 1 project; 1 warning.\n")
    assert cli_runner("plan -q").err == ""
    assert "warning" in cli_runner("plan").err


def test_an_empty_allowlist_that_is_not_pruned_is_warned_of_where_manifests_are_validated(
    cli_runner: CliRunner,
) -> None:
    cli_runner.project("{job_token_scope: {projects: []}}")
    done = cli_runner("validate")
    assert (done.code, done.out) == (
        0,
        """\
manifests/project.yaml:4:36: warning: an empty list removes only what an apply of these manifests has recorded; write `prune: [job_token_scope]` if nobody is to have access, or leave the list out
    spec: {job_token_scope: {projects: []}}
                                       ^
Valid: 1 document: 1 project; 1 warning.
""",
    )
    assert cli_runner("plan").err == ""


def test_without_manifests_the_default_folder_is_named(cli_runner: CliRunner) -> None:
    cli_runner.write("elsewhere.yaml", "")
    (cli_runner.folder / "manifests/project.yaml").unlink()
    done = cli_runner("plan")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("reconciler: manifests: ")


def test_what_is_rendered_is_the_same_desired_state(cli_runner: CliRunner) -> None:
    rendered = cli_runner(f"render {EXAMPLES / 'acme'}")
    assert (rendered.code, rendered.err) == (0, "")
    cli_runner.write("rendered.yaml", rendered.out)
    assert cli_runner("render rendered.yaml").out == rendered.out
    one = cli_runner(f"render {EXAMPLES / 'acme'} --target acme/payments/web --section job_token_scope")
    assert one.out == (
        "apiVersion: reconciler/v1\nkind: Project\nmetadata:\n  path: acme/payments/web\n  labels:\n    team: payments\n"
        "spec:\n  job_token_scope:\n    enabled: true\n    groups:\n      - acme/platform\n    projects:\n      - partners/shop\n"
    )


def test_what_aliases_stand_for_is_rendered_in_full(cli_runner: CliRunner) -> None:
    head = "apiVersion: reconciler/v1\nkind: Project\nmetadata: {path: acme/api}\nspec:\n"
    cli_runner.write(
        "manifests/project.yaml", f"{head}  milestones: {{a: {{state: active}}, b: &b {{state: closed}}, c: *b}}\n"
    )
    rendered = cli_runner("render").out.partition("spec:\n")[2]
    assert rendered == (
        "  milestones:\n    a:\n      state: active\n    b:\n      state: closed\n    c:\n      state: closed\n"
    )


def test_users_and_targets_known_by_number_are_rendered_too(cli_runner: CliRunner) -> None:
    cli_runner.write(
        "manifests/project.yaml",
        "apiVersion: reconciler/v1\nkind: User\nspec:\n  notification_settings:\n    level: watch\n"
        "---\napiVersion: reconciler/v1\nkind: Project\nmetadata:\n  id: 7\nspec:\n  prune:\n    - milestones\n"
        "  milestones: {}\n",
    )
    assert cli_runner("render").out == (cli_runner.folder / "manifests/project.yaml").read_text()


@pytest.mark.untraced
def test_templates_get_their_values_from_files_and_the_command_line(
    cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RELEASE", "3")
    cli_runner.write("values.yaml", "first: '1'\nsecond: wrong\n")
    cli_runner.write(
        "t/p.yaml.j2",
        "apiVersion: reconciler/v1\nkind: Project\nmetadata: {path: acme/api}\n"
        "spec: {milestones: {'{{ first }}.{{ second }}.{{ env.RELEASE }}': {}}}\n",
    )
    assert '"1.2.3": {}' in cli_runner("render t --values values.yaml --set second=2 --env RELEASE").out


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
    cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch, token: str, code: int, said: str
) -> None:
    monkeypatch.setenv("RECONCILER_TOKEN", token)
    cli_runner.project("{milestones: {}}")
    done = cli_runner("plan")
    assert (done.code, done.err) == (code, said)


def test_what_a_token_may_not_see_is_a_problem_each(cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECONCILER_TOKEN", "bob-token")
    cli_runner.write(
        "manifests/group.yaml",
        "apiVersion: reconciler/v1\nkind: Group\nmetadata: {path: acme}\nspec: {approval_settings: {}}\n",
    )
    cli_runner.project("{milestones: {}}")
    cli_runner.project("{milestones: {}}", "acme/none", "manifests/none.yaml")
    done = cli_runner("plan")
    assert (done.code, done.err) == (3, "")
    assert done.out == (
        "group acme\n"
        "  ! approval_settings: cannot be read: bob is Maintainer there, and Owner is needed; make bob Owner     "
        "manifests/group.yaml:4\n"
        "project acme/none\n"
        "  ! project acme/none: not found, or not visible to bob; correct it in the manifest, make bob a member, or "
        "create it: `create: {}` in its document     manifests/none.yaml:1\n"
        "Plan: 2 problems, 2 unmanaged. 6 requests were made to plan.\n"
    )


@pytest.mark.untraced
def test_a_pair_that_the_service_would_refuse_is_told_with_the_values_that_are_live(cli_runner: CliRunner) -> None:
    live = {"retain_approvals_on_push": True, "selective_code_owner_removals": True}
    cli_runner.service(merge_request_approval_settings=live)
    cli_runner.project("{approval_settings: {retain_approvals_on_push: false}}")
    hint = "the service refuses `selective_code_owner_removals: true` with `retain_approvals_on_push: false`"
    assert cli_runner("validate").out.startswith("Valid: ")
    done = cli_runner("plan --out plan.json")
    assert (done.code, done.err) == (0, "")
    assert f"retain_approvals_on_push: true -> false, {hint}: set " in done.out
    assert cli_runner("show plan.json").out == done.out
    assert f"!     {hint}" in cli_runner("plan --format markdown").out
    assert hint in cli_runner("plan --format html").out
    assert cli_runner("apply --plan plan.json --yes").code == 3
