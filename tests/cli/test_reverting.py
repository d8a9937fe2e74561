"""`revert` on the command line: the way back from an apply, planned, saved, and carried out."""

import json
from pathlib import Path
from typing import Any

import pytest

from reconciler.document.checksum import with_checksum
from tests.cli_runner import CliRunner
from tests.trust.all_writes import essence

SPEC = """
  prune: [milestones]
  notification_settings: {level: mention}
  approval_settings: {allow_author_approval: true}
  milestones: {new: {}, renamed: {renamed_from: old, state: closed}, other: null}
  trigger_tokens: {deploy: {}, legacy: null}
  job_token_scope: {enabled: false, projects: [acme/lib]}
"""

PLANNED = """\
Loosens protection:
project acme/api
  + trigger token "legacy"                    created again with a new ID, without its former value, loosens
All else:
project acme/api
  + milestone "other"                         due_date: 2027-01-31, state: active, created again with a new ID, without its issues and merge requests
  ~ notification settings                     level: mention -> global
  ~ approval settings                         allow_author_approval: true -> false, tightens
  ~ job token scope                           enabled: false -> true, tightens
  ~ milestone "old"                           renamed from "renamed", state: closed -> active
  - allowlisted project "acme/lib"            tightens
  - milestone "new"
  - trigger token "deploy"                    tightens
This is the way back from the apply applied.json: reconciler revert applied.json --yes
apply may delete up to 3 objects: --allow-deletes 3
apply will refuse this plan: it creates 1 trigger token, whose value is shown only once; add --tokens-to FILE or --tokens-command CMD
Way back: 2 to create, 4 to update, 3 to delete, 1 loosening, 4 tightening. 9 writes to apply; 6 requests were made to plan.
"""

CHANGED_SINCE = """\
Loosens protection:
project acme/api
  + trigger token "legacy"                    created again with a new ID, without its former value, loosens
All else:
project acme/api
  ~ approval settings                         allow_author_approval: true -> false, tightens
  - allowlisted project "acme/lib"            tightens
  ! notification settings.level: has changed since the apply: mention -> watch; it stays as it is
  ! milestone "new": has changed since the apply, and is not deleted: description: none -> theirs; it stays as it is
  ! milestone "renamed": was renamed since the apply, to "theirs"; it stays as it is
  ! milestone "other": exists again, with other values: description: none -> theirs, due_date: 2027-01-31 -> none; it stays as it is
This is the way back from the apply applied.json: reconciler revert applied.json --yes
apply will refuse this plan: it creates 1 trigger token, whose value is shown only once; add --tokens-to FILE or --tokens-command CMD
Way back: 1 to create, 1 to update, 1 to delete, 1 loosening, 2 tightening, 4 problems. 3 writes to apply; 6 requests were made to plan.
"""


def before(cli_runner: CliRunner) -> None:
    """Give the project something to change, rename and delete."""
    cli_runner.service(
        milestones=[
            {"id": 1, "title": "old", "description": "kept"},
            {"id": 2, "title": "other", "due_date": "2027-01-31"},
        ],
        trigger_tokens=[{"id": 3, "description": "legacy", "owner": "ada"}],
        job_token_scope={"inbound_enabled": True, "project_allowlist": [], "group_allowlist": []},
        notification_settings={"ada": {"level": "global"}},
        merge_request_approval_settings={"allow_author_approval": False},
    )


@pytest.fixture(autouse=True)
def _applied(cli_runner: CliRunner) -> None:
    before(cli_runner)
    cli_runner.project(SPEC)
    assert cli_runner("apply --yes --tokens-to tokens --report json=applied.json").code == 0


def project(cli_runner: CliRunner) -> dict[str, Any]:
    found: dict[str, Any] = cli_runner.sandbox.state()["projects"][0]
    return found


@pytest.mark.untraced
def test_an_apply_is_reverted_as_planned(cli_runner: CliRunner) -> None:
    cli_runner.sandbox.clear_log()
    planned = cli_runner("revert applied.json --out back.json --allow-deletes 3")
    assert (planned.code, planned.err) == (0, "")
    assert planned.out == PLANNED
    assert all(entry["method"] == "GET" for entry in cli_runner.sandbox.log())
    assert cli_runner("revert applied.json --detailed-exitcode").code == 2
    applied = cli_runner("apply --plan back.json --yes --tokens-to tokens")
    assert (applied.code, applied.err) == (
        0,
        "The manifests still declare what this revert undid: revert their commit too.\n",
    )
    found = essence(project(cli_runner))
    before(cli_runner)
    assert found == essence(project(cli_runner))
    tokens = [json.loads(line) for line in Path("tokens").read_text().splitlines()]
    assert [each["description"] for each in tokens] == ["deploy", "legacy"]


@pytest.mark.untraced
def test_a_revert_is_reverted_by_its_own_report(cli_runner: CliRunner) -> None:
    after = essence(project(cli_runner))
    done = cli_runner("revert applied.json --yes --tokens-to tokens --report json=back.json --journal journal")
    assert (done.code, done.out.splitlines()[-1]) == (
        0,
        "Reverted: 2 created, 4 updated, 3 deleted, 1 loosening, 4 tightening. 23 requests made.",
    )
    assert essence(project(cli_runner)) != after
    assert cli_runner("revert applied.json --detailed-exitcode").code == 0
    assert cli_runner("revert back.json --yes --tokens-to tokens").code == 0
    assert essence(project(cli_runner)) == after


def test_what_others_changed_since_stays_and_is_a_problem(cli_runner: CliRunner) -> None:
    state = cli_runner.sandbox.state()
    found = state["projects"][0]
    titles = {each["title"]: each for each in found["milestones"]}
    titles["new"]["description"] = "theirs"
    titles["renamed"] |= {"title": "theirs", "state": "active"}
    found["notification_settings"] = {"ada": {"level": "watch"}}
    found["milestones"].append({"id": 99, "title": "other", "description": "theirs"})
    found["merge_request_approval_settings"] |= {"allow_committer_approval": True}
    found["trigger_tokens"] = []
    found["job_token_scope"] |= {"inbound_enabled": True, "project_allowlist": [101, 102]}
    cli_runner.sandbox.replace_state(state)
    planned = cli_runner("revert applied.json")
    assert (planned.code, planned.err) == (3, "")
    assert planned.out == CHANGED_SINCE


def test_only_some_of_it_is_reverted(cli_runner: CliRunner) -> None:
    planned = cli_runner("revert applied.json --section milestones")
    assert planned.out.splitlines()[-1].startswith("Way back: 1 to create, 1 to update, 1 to delete")
    left_out = cli_runner("revert applied.json --exclude acme/*")
    assert (left_out.code, left_out.err) == (0, "nothing is selected: --exclude leaves out every target\n")


@pytest.mark.parametrize(
    ("line", "code", "error"),
    [
        ("revert applied.json --yes --out back.json", 64, "--yes carries out the plan; --out and --detailed-exitcode go without it"),
        ("revert applied.json --yes --tokens-to a --tokens-command b", 64, "revert takes --tokens-to or --tokens-command, not both"),
        ("revert applied.json --report json=applied.json", 64, "REPORT and --report json name the same file: applied.json"),
    ],
)  # fmt: skip
def test_what_cannot_be_reverted_is_refused(cli_runner: CliRunner, line: str, code: int, error: str) -> None:
    done = cli_runner(line)
    assert (done.code, done.out, done.err) == (code, "", f"reconciler: {error}\n")


def test_a_way_back_that_is_refused_is_shown(cli_runner: CliRunner) -> None:
    done = cli_runner("revert applied.json --yes")
    refused = "it creates 1 trigger token, whose value is shown only once; add --tokens-to FILE or --tokens-command CMD"
    assert (done.code, done.out) == (1, "")
    shown = PLANNED.replace("apply may delete up to 3 objects: --allow-deletes 3\n", "")
    assert done.err == f"{shown}reconciler: the plan is refused, and nothing was changed: {refused}\n"


@pytest.mark.untraced
def test_a_report_about_another_service_is_refused(cli_runner: CliRunner) -> None:
    url = cli_runner.sandbox.api_url
    done = cli_runner(f"revert applied.json --api-url {url.replace('127.0.0.1', 'localhost')}")
    assert (done.code, done.out) == (1, "")
    assert "applied.json: the report is about" in done.err


@pytest.mark.untraced
def test_the_merged_reports_of_shards_are_reverted_at_once(cli_runner: CliRunner) -> None:
    before(cli_runner)
    cli_runner.project("{milestones: {new: {}}}")
    cli_runner.project("{milestones: {new: {}}}", "acme/lib", "manifests/lib.yaml")
    for number in (1, 2):
        assert cli_runner(f"apply --yes --shard {number}/2 --report json={number}.json").code == 0
    assert cli_runner("merge 1.json 2.json --out whole.json").code == 0
    done = cli_runner("revert whole.json --yes -q")
    assert done.out.splitlines()[-1].startswith("Reverted: 2 deleted. ")


@pytest.mark.untraced
def test_a_report_of_nothing_leaves_nothing_to_revert(cli_runner: CliRunner) -> None:
    assert cli_runner("apply --yes --report json=nothing.json").code == 0
    cli_runner.sandbox.clear_log()
    done = cli_runner("revert nothing.json --detailed-exitcode")
    assert (done.code, done.err, cli_runner.sandbox.log()) == (0, "", [])


@pytest.mark.untraced
def test_a_project_that_has_moved_is_not_written_to(cli_runner: CliRunner) -> None:
    state = cli_runner.sandbox.state()
    state["projects"][0] |= {"path": "acme/moved", "renamed_from": ["acme/api"]}
    cli_runner.sandbox.replace_state(state)
    planned = cli_runner("revert applied.json --section milestones")
    assert planned.code == 3
    assert "moved to acme/moved" in planned.out
    assert cli_runner("revert applied.json --section milestones --follow-moved").code == 0


def test_a_report_that_was_edited_is_refused(cli_runner: CliRunner) -> None:
    content = json.loads(Path("applied.json").read_text())
    content["targets"][0] |= {"target": "instance", "level": "instance", "ref": None}
    for item in content["items"]:
        item["target"] = "instance"
    Path("applied.json").write_text(json.dumps(content))
    assert "was edited after it was saved" in cli_runner("revert applied.json").err
    del content["checksum"]
    Path("applied.json").write_text(with_checksum(content))
    done = cli_runner("revert applied.json")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(
        "reconciler: applied.json: damaged, or made by another reconciler, or with a package that is not installed here: "
    )


@pytest.mark.untraced
def test_a_target_that_was_created_is_never_deleted(cli_runner: CliRunner) -> None:
    head = "apiVersion: reconciler/v1\nkind: Project\nmetadata: {path: acme/fresh}\n"
    cli_runner.write("manifests/project.yaml", f"{head}create: {{}}\nspec: {{milestones: {{a: {{}}}}}}\n")
    assert cli_runner("apply --yes --report json=created.json").code == 0
    done = cli_runner("revert created.json --yes")
    assert (done.code, done.out) == (
        3,
        "project acme/fresh\n"
        '  - milestone "a"                             done\n'
        "  ! project acme/fresh: created by the apply, and never deleted by reconciler: delete it yourself if nobody "
        "needs it\n"
        "This is a revert of the apply created.json; to finish it: reconciler revert created.json --yes\n"
        "Reverted: 1 deleted, 1 problem. "
        "4 requests made.\n",
    )
    (created,) = [each for each in cli_runner.sandbox.state()["projects"] if each["path"] == "acme/fresh"]
    assert created["milestones"] == []
    cli_runner.write("manifests/project.yaml", f"{head}create: {{}}\n")
    assert cli_runner("apply --yes --report json=none.json").code == 0
    assert cli_runner("revert created.json --yes --quiet").code == 3
