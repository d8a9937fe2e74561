"""`drift --restored`: what was changed on the service and put back, in what manifests declare, by its audit events."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from reconciler.document.plans import plan_of, with_plan
from reconciler.document.stored import load_plan
from reconciler.model.protocols import Request
from reconciler.service import Client
from tests.building import KINDS
from tests.canned import answer, canned
from tests.cli_runner import CliRunner
from tests.fleet.test_authors import LIST, NOON, SETTINGS, WHEN, as_mona, audits, fleet
from tests.items import findings_of

BRANCHES = "projects/100/protected_branches"


def as_ada(cli_runner: CliRunner, *requests: tuple[Any, str, Any]) -> None:
    with Client(cli_runner.sandbox.api_url, "ada-token") as client:
        for method, path, body in requests:
            client.send(Request(method, path, body))
    cli_runner.sandbox.clear_log()


MANIFESTS = """\
apiVersion: reconciler/v1
kind: Project
metadata: {path: acme/api}
spec:
  prune: [job_token_scope]
  approval_settings: {retain_approvals_on_push: true}
  job_token_scope: {projects: [acme/lib], groups: []}
  protected_branches: {main: {allow_force_push: false}, old: null}
---
apiVersion: reconciler/v1
kind: Project
metadata: {path: acme/lib}
spec: {approval_settings: {retain_approvals_on_push: true}}
---
apiVersion: reconciler/v1
kind: Project
metadata: {path: acme/web}
spec: {milestones: {}}
"""


def in_order(cli_runner: CliRunner, role: str = "owner") -> None:
    """Three projects as the manifests declare them."""
    fleet(cli_runner, role)
    cli_runner.write("manifests/all.yaml", MANIFESTS)
    as_ada(cli_runner, ("POST", BRANCHES, {"name": "main"}))


def round_trips(cli_runner: CliRunner) -> None:
    """Mona changes this and that, and Ada puts it back, but for one setting; what nobody declares counts for nothing."""
    as_mona(
        cli_runner,
        ("PUT", SETTINGS, {"retain_approvals_on_push": False, "allow_committer_approval": True}),
        ("DELETE", f"{LIST}/allowlist/101", None),
        ("POST", f"{LIST}/allowlist", {"target_project_id": 102}),
        ("PATCH", f"{BRANCHES}/main", {"allow_force_push": True}),
        ("POST", BRANCHES, {"name": "old"}),
        ("PUT", SETTINGS.replace("100", "101"), {"retain_approvals_on_push": False}),
    )
    as_ada(
        cli_runner,
        ("PUT", SETTINGS, {"retain_approvals_on_push": True, "allow_committer_approval": False}),
        ("POST", f"{LIST}/allowlist", {"target_project_id": 101}),
        ("DELETE", f"{LIST}/allowlist/102", None),
        ("PATCH", f"{BRANCHES}/main", {"allow_force_push": False}),
        ("DELETE", f"{BRANCHES}/old", None),
    )


BY, BACK = f"by Mona Lee, {WHEN}", f"by Ada, {WHEN}"
DAY = f"{NOON:%Y-%m-%d}"
TOLD = f"""\
Changed and put back since {DAY} 00:00 UTC: 5
project acme/api
  = approval settings                         retain_approvals_on_push: true -> false {BY}; back {BACK}
  = allowlisted project "acme/lib"            removed {BY}; back {BACK}
  = allowlisted project "acme/web"            added {BY}; removed again {BACK}
  = protected branch "main"                   allow_force_push: false -> true {BY}; back {BACK}
  = protected branch "old"                    added {BY}; removed again {BACK}
"""


def test_what_was_changed_and_put_back_is_told_with_one_request_per_target(cli_runner: CliRunner) -> None:
    in_order(cli_runner)
    round_trips(cli_runner)
    done = cli_runner(
        f"drift --restored --who --after {DAY} "
        "--report json=drift.json --report markdown=note.md --report html=page.html"
    )
    assert (done.code, done.err) == (2, "")
    one_list, *each_target = audits(cli_runner)  # the first is refused: this token is no administrator's
    assert one_list.startswith("audit_events?created_after=")
    assert each_target == [
        "projects/acme%2Fapi/audit_events?per_page=100",
        "projects/acme%2Flib/audit_events?per_page=100",
    ]
    difference, _, rest = done.out.partition("Changed and put back")
    assert f"retain_approvals_on_push: false -> true, tightened on the service {BY}" in difference
    assert f"Changed and put back{rest}".startswith(TOLD)
    report = json.loads(Path("drift.json").read_text())
    restored = findings_of(report, "restored")[0]
    assert restored == {
        "target": "project acme/api", "section": "approval_settings", "title": "approval settings", "name": None,
        "finding": "restored", "field": "retain_approvals_on_push", "reason": "was changed and put back", "fix": "",
        "data": {
            "before": True, "meanwhile": False,
            "changed_by": {"name": "Mona Lee", "time": restored["data"]["changed_by"]["time"]},
            "restored_by": {"name": "Ada", "time": restored["data"]["restored_by"]["time"]},
        },
        "origin": "",
    }  # fmt: skip
    assert report["restored_since"] == f"{DAY}T00:00:00Z"
    note = Path("note.md").read_text()
    assert f"### Changed and put back since {DAY} 00:00 UTC: 5\n\n- `project acme/api`: `approval settings: " in note
    assert note.count(f"; back {BACK}") == 3
    assert Path("page.html").read_text().count(f"; back {BACK}") >= 3
    assert note == cli_runner("show drift.json --format markdown").out
    saved = load_plan(Path("drift.json").read_text(), KINDS)
    assert with_plan(saved, plan_of(saved)).items == saved.items


def test_the_chat_and_the_issue_carry_who_and_what_was_put_back(
    cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_order(cli_runner)
    round_trips(cli_runner)
    with canned(answer("200 OK", "ok")) as chat:
        monkeypatch.setenv("RECONCILER_NOTIFY", chat.api_url)
        assert cli_runner(f"drift --restored --who --after {DAY} --report json=was.json").code == 2
        as_ada(cli_runner, ("PUT", SETTINGS.replace("100", "101"), {"retain_approvals_on_push": True}))
        assert cli_runner(f"drift --restored --after {DAY} --report json=drift.json").code == 0
        assert cli_runner("drift").code == 0
    messages = [json.loads(request.partition("\r\n\r\n")[2])["text"].splitlines()[1:] for request in chat.requests]
    put_back = f"Changed and put back since {DAY} 00:00 UTC: "
    assert messages == [
        [
            "Drift: 1 project tightened on the service. Plan: 1 to update, 1 tightened on the service",
            "In project acme/lib",
            "Changed by Mona Lee (1)",
            f"{put_back}5 in project acme/api",
        ],
        ["In order", f"{put_back}6 in project acme/api, project acme/lib"],
    ]
    monkeypatch.setenv("RECONCILER_NOTE_TOKEN", "mona-token")
    for report in ("was.json", "drift.json"):
        assert cli_runner(f"issue {report} --project acme/web").code == 0
    (issue,) = cli_runner.sandbox.state()["projects"][2]["issues"]
    assert issue["state"] == "closed"
    assert f"there are no problems.**\n\n### {put_back}6\n\n- " in issue["description"]


def test_an_administrator_reads_one_list(cli_runner: CliRunner) -> None:
    in_order(cli_runner)
    state = cli_runner.sandbox.state()
    state["users"][0]["admin"] = True
    state["instance"]["now"] = NOON.isoformat()
    cli_runner.sandbox.replace_state(state)
    as_ada(cli_runner, ("PUT", SETTINGS, {"retain_approvals_on_push": True}))
    round_trips(cli_runner)
    done = cli_runner(f"drift --restored --after {DAY}")
    assert TOLD in done.out
    assert len(audits(cli_runner)) == 1


@pytest.mark.untraced
def test_in_order_the_exit_code_is_0_and_without_a_round_trip_nothing_is_said(cli_runner: CliRunner) -> None:
    in_order(cli_runner)
    assert cli_runner("drift --report json=before.json").code == 0
    done = cli_runner("drift --restored --baseline before.json")
    assert (done.code, done.out) == (0, "")
    later = (NOON + timedelta(days=1)).isoformat()
    state = cli_runner.sandbox.state()
    state["instance"]["now"] = later
    cli_runner.sandbox.replace_state(state)
    round_trips(cli_runner)
    as_ada(cli_runner, ("PUT", SETTINGS.replace("100", "101"), {"retain_approvals_on_push": True}))
    done = cli_runner("drift --restored --after 7d --target acme/lib")
    assert done.code == 0
    assert "put back since" in done.out
    assert audits(cli_runner) == ["projects/acme%2Flib/audit_events?per_page=100"]


def test_what_is_older_is_not_told_and_what_cannot_be_read_is_one_line(cli_runner: CliRunner) -> None:
    in_order(cli_runner)
    round_trips(cli_runner)
    assert "put back" not in cli_runner("drift --restored --after 1h").out
    state = cli_runner.sandbox.state()
    state["instance"]["licensed"] = False
    cli_runner.sandbox.replace_state(state)
    cli_runner.write(
        "manifests/all.yaml",
        MANIFESTS.replace("approval_settings", "milestones").replace("{retain_approvals_on_push: true}", "{}"),
    )
    done = cli_runner(f"drift --restored --after {DAY}")
    assert done.code == 0
    assert done.err == (
        "who changed 1 target is not known: 403 Forbidden; audit events need a licence (Premium or Ultimate) and the "
        "role Maintainer in a project, Owner in a group\n"
    )


def test_what_still_differs_was_not_put_back(cli_runner: CliRunner) -> None:
    in_order(cli_runner)
    round_trips(cli_runner)
    as_mona(
        cli_runner,
        ("DELETE", f"{LIST}/allowlist/101", None),
        ("PATCH", f"{BRANCHES}/main", {"allow_force_push": True}),
    )
    out = cli_runner(f"drift --restored --after {DAY}").out
    assert "Plan: 1 to create, 2 to update" in out
    assert f"Changed and put back since {DAY} 00:00 UTC: 3\n" in out
    assert 'acme/lib"            removed' not in out


def test_an_edition_without_events_is_told_once_for_all_targets(cli_runner: CliRunner) -> None:
    fleet(cli_runner, "owner", version="18.9.0")
    project = "---\napiVersion: reconciler/v1\nkind: Project\nmetadata: {path: acme/%s}\nspec: {job_token_scope: {}}\n"
    cli_runner.write("manifests/all.yaml", "".join(project % name for name in ("api", "lib")))
    done = cli_runner(f"drift --restored --after {DAY}")
    assert (done.code, done.out) == (0, "")
    assert done.err.startswith("who changed 2 targets is not known: 404 Not Found; audit events need a licence")
    assert len(audits(cli_runner)) == 1


def test_only_the_newest_events_of_a_target_count_and_a_line_says_so(cli_runner: CliRunner) -> None:
    in_order(cli_runner)
    as_mona(cli_runner, *(("PUT", SETTINGS, {"retain_approvals_on_push": number % 2 == 1}) for number in range(100)))
    done = cli_runner(f"drift --restored --after {DAY} --target acme/api")
    assert (done.code, done.err) == (
        0,
        "of 1 target, such as project acme/api, only the newest 100 audit events are read\n",
    )
    assert f"since {DAY} 00:00 UTC: 50\n" in done.out


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("--after 7d", "--after goes with --restored"),
        ("--restored", "--restored goes with --baseline FILE or --after TIME, such as --after 7d"),
        ("--restored --after soon", "--after takes a day, such as 2026-11-20, or a duration, such as 7d; not soon"),
        ("--restored --after 2999-01-01", "--after 2999-01-01 is in the future"),
    ],
)
def test_since_when_is_asked_for(cli_runner: CliRunner, options: str, told: str) -> None:
    in_order(cli_runner)
    done = cli_runner(f"drift {options}")
    assert (done.code, done.out) == (64, "")
    assert told in done.err


@pytest.mark.untraced
def test_what_was_created_was_not_put_back_and_a_word_that_no_response_has_is_no_claim(cli_runner: CliRunner) -> None:
    fleet(cli_runner, "owner")
    cli_runner.write(
        "manifests/all.yaml",
        "apiVersion: reconciler/v1\nkind: Project\nmetadata: {path: acme/api}\nspec: {protected_branches: "
        "{rel: {allow_force_push: false, allowed_to_push: [maintainer], allowed_to_merge: [maintainer]}}}\n",
    )
    as_mona(cli_runner, ("POST", BRANCHES, {"name": "rel", "allow_force_push": True, "push_access_level": 40}))
    as_ada(
        cli_runner,
        ("PATCH", f"{BRANCHES}/rel", {"allow_force_push": False}),
    )
    done = cli_runner(f"drift --restored --after {DAY}")
    assert (done.code, done.out) == (0, "")
    as_mona(cli_runner, ("PATCH", f"{BRANCHES}/rel", {"allowed_to_push": [{"user_id": 3}]}))
    with Client(cli_runner.sandbox.api_url, "ada-token") as client:
        levels = client.get(f"{BRANCHES}/rel")["push_access_levels"]
    [mona] = [level["id"] for level in levels if level["user_id"] == 3]
    as_ada(cli_runner, ("PATCH", f"{BRANCHES}/rel", {"allowed_to_push": [{"id": mona, "_destroy": True}]}))
    done = cli_runner(f"drift --restored --after {DAY}")
    assert (done.code, done.out) == (0, "")
    as_mona(cli_runner, ("PATCH", f"{BRANCHES}/rel", {"allow_force_push": True}))
    as_ada(cli_runner, ("PATCH", f"{BRANCHES}/rel", {"allow_force_push": False}))
    assert cli_runner(f"drift --restored --after {DAY}").out.startswith(
        f"Changed and put back since {DAY} 00:00 UTC: 1\nproject acme/api\n"
        f'  = protected branch "rel"                    allow_force_push: false -> true {BY}; back {BACK}\n'
    )
