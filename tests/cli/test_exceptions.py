"""Exceptions: deviations that a document accepts for a while are reported and counted, and never written."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.cli_runner import BREAK, CliRunner, Ended
from tests.items import findings_of
from tests.states import a_small_service

WRITES = ["POST", "PUT", "PATCH", "DELETE"]

MANIFEST = """\
apiVersion: reconciler/v1
kind: Project
metadata:
  path: acme/api
  exceptions:
    - {section: milestones, item: "2026.12", until: 2999-03-01, reason: "{name} is being re-planned, OPS-12"}
    - {section: milestones, item: Nov 2026, fields: [due_date], until: 2999-03-01, reason: The date is open}
    - {section: milestones, item: Someday, until: 2999-03-01, reason: Under review}
    - {section: trigger_tokens, item: legacy, until: 2999-03-01, reason: A partner uses it}
    - {section: job_token_scope, item: 101, until: 2999-03-01, reason: Until lib has moved}
    - {section: job_token_scope, item: ACME/web, until: 2999-03-01, reason: Until web has moved}
    - {section: job_token_scope, fields: [groups], until: 2999-03-01, reason: Groups come later}
    - {section: approval_settings, fields: [allow_author_approval], until: 2999-03-01, reason: A small team}
    - {section: container_repository_protection_rules, item: "{path}/tmp*", until: 2999-03-01, reason: A migration}
    - {section: notification_settings, until: 2999-03-01, reason: On leave}
spec:
  prune: [milestones, job_token_scope, container_repository_protection_rules]
  notification_settings: {level: watch}
  approval_settings: {allow_author_approval: true, allow_committer_approval: false}
  container_repository_protection_rules: {}
  job_token_scope: {enabled: true, projects: [acme/web], groups: [acme]}
  milestones:
    "2026.12": {}
    Nov 2026: {description: Other, due_date: 2026-12-02, state: closed}
  trigger_tokens: {legacy: null}
"""

LEFT = {
    "milestones": [
        {"id": 1, "title": "Nov 2026", "due_date": "2026-11-30"},
        {"id": 2, "title": "Someday"},
        {"id": 3, "title": "Old"},
    ],
    "trigger_tokens": [{"id": 1, "description": "legacy", "owner": "ada"}],
    "job_token_scope": {"inbound_enabled": False, "project_allowlist": [101], "group_allowlist": []},
    "container_repository_protection_rules": [
        {"id": 1, "repository_path_pattern": "acme/api/tmp*", "minimum_access_level_for_push": "owner"},
    ],
}

HELD = """\
  = notification settings                     level: global -> watch, excepted until 2999-03-01: On leave     manifests/api.yaml:15
  = approval settings                         allow_author_approval: false -> true, excepted until 2999-03-01: A small team     manifests/api.yaml:13
  = protection rule "acme/api/tmp*"           not deleted, excepted until 2999-03-01: A migration     manifests/api.yaml:14
  = allowlisted project "acme/web"            not created, excepted until 2999-03-01: Until web has moved     manifests/api.yaml:11
  = allowlisted project "acme/lib"            not deleted, excepted until 2999-03-01: Until lib has moved     manifests/api.yaml:10
  = allowlisted group "acme"                  not created, excepted until 2999-03-01: Groups come later     manifests/api.yaml:12
  = milestone "2026.12"                       not created, excepted until 2999-03-01: api is being re-planned, OPS-12     manifests/api.yaml:6
  = milestone "Nov 2026"                      due_date: 2026-11-30 -> 2026-12-02, excepted until 2999-03-01: The date is open     manifests/api.yaml:7
  = milestone "Someday"                       not deleted, excepted until 2999-03-01: Under review     manifests/api.yaml:8
  = trigger token "legacy"                    not deleted, excepted until 2999-03-01: A partner uses it     manifests/api.yaml:9
"""
FOLDED = "10 excepted until 2999-03-01 at the earliest (-v shows them)"


@pytest.fixture
def prepared(cli_runner: CliRunner, dialect: str) -> CliRunner:
    """A project that deviates in many ways, each excepted, and in some that are not."""
    state = a_small_service(dialect)
    state["projects"][0] |= LEFT
    cli_runner.sandbox.replace_state(state)
    cli_runner.write("manifests/api.yaml", MANIFEST)
    return cli_runner


def excepted(runner: CliRunner, metadata: str, spec: str) -> None:
    """Write the manifest of a project with exceptions."""
    text = f"apiVersion: reconciler/v1\nkind: Project\nmetadata: {{path: acme/api, exceptions: [{metadata}]}}\n"
    runner.write("manifests/api.yaml", f"{text}spec: {spec}\n")


def writes(runner: CliRunner) -> list[str]:
    """Return the writes that were made, in order."""
    return [f"{each['method']} {each['body']}" for each in runner.sandbox.log() if each["method"] in WRITES]


def summary(runner: CliRunner, command: str = "plan --format json") -> dict[str, Any]:
    """Return the numbers of a plan."""
    numbers: dict[str, Any] = json.loads(runner(command).out)["summary"]
    return numbers


@pytest.mark.untraced
def test_excepted_changes_are_reported_and_never_written_and_all_else_is(prepared: CliRunner) -> None:
    planned = prepared("plan --out plan.json")
    assert (planned.code, planned.err) == (0, "")
    assert planned.out == (
        "project acme/api\n"
        "  ~ approval settings                         allow_committer_approval: true -> false, tightens     manifests/api.yaml:19\n"
        "  ~ job token scope                           enabled: false -> true, tightens     manifests/api.yaml:21\n"
        '  ~ milestone "Nov 2026"                      description: none -> Other, state: active -> closed     manifests/api.yaml:24\n'
        '  - milestone "Old"     manifests/api.yaml:17\n'
        f"{FOLDED}\n"
        "Plan: 3 to update, 1 to delete, 2 tightening, 10 excepted. 4 writes to apply; 8 requests were made to plan.\n"
    )
    assert HELD in prepared("show plan.json -v").out
    prepared.sandbox.clear_log()
    applied = prepared("apply --plan plan.json --yes --report json=report.json")
    assert applied.code == 0
    assert applied.out.endswith("  done\nApplied: 3 updated, 1 deleted, 2 tightening, 10 excepted. 10 requests made.\n")
    assert HELD in prepared("show report.json -v").out
    whole, *others = writes(prepared)
    assert whole.startswith("PUT {'allow_author_approval': False, 'allow_committer_approval': False, ")
    assert others == [
        "PATCH {'enabled': True}",
        "PUT {'description': 'Other', 'state_event': 'close'}",
        "DELETE None",
    ]
    quiet = prepared("drift")
    assert (quiet.code, quiet.out, quiet.err) == (0, "", "")
    in_order = "No changes: 1 target is in order, 10 excepted. 8 requests were made to plan.\n"
    assert prepared("plan").out == f"{FOLDED}\n{in_order}"
    assert prepared("plan --quiet").out == in_order
    assert HELD in prepared("plan -v").out
    assert summary(prepared)["excepted"] == 10


def test_an_exception_that_has_expired_holds_nothing_back_and_is_warned_of(prepared: CliRunner) -> None:
    prepared.write(
        "manifests/api.yaml", MANIFEST.replace("2999-03-01, reason: A partner", "2020-03-01, reason: A partner")
    )
    warning = (
        "manifests/api.yaml:9:54: warning: this exception expired on 2020-03-01: its differences are changes again; "
    )
    for line in ("validate", "plan", "drift"):
        ended = prepared(line)
        assert (warning in ended.out + ended.err, ended.code) == (True, {"drift": 2}.get(line, 0))
    assert '  - trigger token "legacy"                    tightens     manifests/api.yaml:25\n' in prepared("plan").out
    assert "**`1 exception has expired: manifests/api.yaml:9`**" in prepared("plan --format markdown").out
    metrics = prepared("plan --format prometheus").out
    assert 'reconciler_plan_exceptions{level="project",group="acme",state="expired"} 1\n' in metrics
    assert 'reconciler_plan_exceptions{level="project",group="acme",state="active"} 9\n' in metrics
    assert 'reconciler_plan_exceptions{level="project",group="acme",state="expiring"} 0\n' in metrics
    assert 'reconciler_plan_excepted_changes{level="project",group="acme",section="milestones"} 3\n' in metrics


@pytest.mark.parametrize("days", [0, 14])
def test_an_exception_is_warned_of_two_weeks_before_it_expires(
    cli_runner: CliRunner, days: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = datetime(2026, 11, 30, 23, 59, 59, tzinfo=UTC)
    monkeypatch.setattr("reconciler.system.clock.now", lambda: now)
    state = a_small_service("deployed")
    state["instance"]["now"] = now.isoformat()
    cli_runner.sandbox.replace_state(state)
    until = now.date() + timedelta(days=days)
    exception = f"{{section: milestones, item: v1, until: {until}, reason: Later}}"
    excepted(cli_runner, exception, "{milestones: {v1: {}}}")
    warning = f"warning: this exception expires on {until}: its differences will be changes afterwards"
    assert [warning in said(cli_runner(line)) for line in ("validate", "plan", "drift")] == [True] * 3
    assert summary(cli_runner)["excepted"] == 1
    assert 'group="acme",state="expiring"} 1\n' in cli_runner("plan --format prometheus").out
    excepted(cli_runner, f"{exception}, {exception.replace('v1', 'v2')}", "{milestones: {v1: {}, v2: {}}}")
    page = cli_runner("plan --format html").out.replace(BREAK, "")
    assert "<p>2 exceptions expire within two weeks, such as manifests/api.yaml:3</p>" in page
    excepted(cli_runner, exception.replace(str(until), str(until + timedelta(days=15))), "{milestones: {v1: {}}}")
    assert "warning" not in said(cli_runner("validate"))


def said(ended: Ended) -> str:
    """Return all that a command said."""
    return ended.out + ended.err


@pytest.mark.untraced
def test_every_format_shows_what_is_excepted(prepared: CliRunner) -> None:
    assert (
        '- `project acme/api`: `milestone "2026.12", not created`: '
        "`excepted until 2999-03-01: api is being re-planned, OPS-12` (`manifests/api.yaml:6`)\n"
    ) in prepared("plan --format markdown").out
    assert " requests were made to plan. 10 excepted.\n" in prepared("plan --format markdown").out
    page = prepared("plan --format html").out
    assert 'data-kind="excepted"><span class="number">10</span>' in page
    assert (
        '"title":"milestone \\"Someday\\", not deleted","sections":[0],'
        '"reason":"excepted until 2999-03-01: Under review"'
    ) in page
    assert (
        'milestone "Someday", not deleted, excepted until 2999-03-01: Under review\n'
        in prepared("plan --format junit").out
    )
    assert prepared("plan --format codequality").out == "[]\n"


def test_something_that_cannot_be_planned_may_be_excepted_too(cli_runner: CliRunner) -> None:
    cli_runner.service(milestones=[{"id": 1, "title": "twice"}, {"id": 2, "title": "twice"}])
    spec = "{milestones: {twice: {}}, job_token_scope: {projects: [acme/gone]}}"
    exceptions = (
        "{section: milestones, item: twice, until: 2999-01-01, reason: Clean-up},"
        "{section: job_token_scope, item: acme/gone, until: 2999-01-01, reason: Not yet there}"
    )
    excepted(cli_runner, exceptions, spec)
    planned = cli_runner("plan -v")
    assert (planned.code, planned.out.splitlines()[1:3]) == (
        0,
        [
            '  = allowlisted project "acme/gone"           not created, excepted until 2999-01-01: Not yet there     manifests/api.yaml:3',
            '  = milestone "twice"                         excepted until 2999-01-01: Clean-up     manifests/api.yaml:3',
        ],
    )
    excepted(cli_runner, "", spec)
    assert (cli_runner("plan").code, summary(cli_runner)["problems"]) == (3, 2)


COMMUNITY = {"dialect": "deployed", "version": "18.9.0"}

SET = """\
apiVersion: reconciler/v1
kind: ProjectSet
metadata: {name: all}
select: {group: acme, include: [acme/api]}
spec: {}
"""


@pytest.mark.untraced
@pytest.mark.parametrize("is_listed", [True, False])
@pytest.mark.parametrize("about", ["", "item: nightly, "])
def test_a_section_that_is_switched_off_may_be_excepted(cli_runner: CliRunner, about: str, *, is_listed: bool) -> None:
    cli_runner.service(builds_enabled=False)
    cli_runner.write("manifests/set.yaml", SET if is_listed else "")
    exception = "{section: trigger_tokens, %suntil: %s, reason: No CI yet}"
    spec = "{trigger_tokens: {nightly: {}}, milestones: {v1: {}}}"
    excepted(cli_runner, exception % (about, "2999-01-01"), spec)
    planned = cli_runner("plan")
    assert (planned.code, planned.out.splitlines()[:-1]) == (
        0,
        [
            "project acme/api",
            '  + milestone "v1"     manifests/api.yaml:4',
            "1 excepted until 2999-01-01 at the earliest (-v shows them)",
        ],
    )
    held = (
        "  = trigger_tokens                            excepted until 2999-01-01: No CI yet     manifests/api.yaml:3\n"
    )
    assert held in cli_runner("plan -v").out
    assert planned.out.splitlines()[-1].startswith("Plan: 1 to create, 1 excepted. ")
    assert cli_runner("doctor").code == 0
    assert cli_runner("apply --yes").code == 0
    assert cli_runner("drift").code == 0
    excepted(cli_runner, exception % (about, "2026-01-01"), spec)
    assert "! trigger_tokens: " in cli_runner("plan").out
    excepted(cli_runner, exception % ("item: other, ", "2999-01-01"), spec)
    assert "! trigger_tokens: " in cli_runner("plan").out


def test_a_section_that_the_edition_lacks_may_be_excepted_as_a_whole_or_field_by_field(cli_runner: CliRunner) -> None:
    cli_runner.sandbox.replace_state(a_small_service("deployed") | {"instance": COMMUNITY})
    exception = "{section: approval_settings, %suntil: 2999-01-01, reason: Premium is ordered}"
    spec = "{approval_settings: {allow_author_approval: true, allow_committer_approval: true}}"
    both = "fields: [allow_author_approval, allow_committer_approval], "
    for about in ("", both):
        excepted(cli_runner, exception % about, spec)
        planned = cli_runner("plan -v")
        assert (planned.code, planned.out.splitlines()[:-1]) == (
            0,
            [
                "project acme/api",
                "  = approval_settings                         excepted until 2999-01-01: Premium is ordered     "
                "manifests/api.yaml:3",
            ],
        )
        assert cli_runner("doctor").code == 0
    excepted(cli_runner, exception % "fields: [allow_author_approval], ", spec)
    assert cli_runner("plan").code == 3


def test_a_field_that_a_group_locks_may_be_excepted(cli_runner: CliRunner, dialect: str) -> None:
    state = a_small_service(dialect)
    state["groups"][0]["merge_request_approval_settings"] = {"allow_author_approval": False}
    cli_runner.sandbox.replace_state(state)
    exceptions = "{section: approval_settings, fields: [allow_author_approval], until: 2999-01-01, reason: Until acme}"
    excepted(cli_runner, exceptions, "{approval_settings: {allow_author_approval: true}}")
    planned = cli_runner("plan -v")
    assert (planned.code, planned.out.splitlines()[1]) == (
        0,
        "  = approval settings                         allow_author_approval, excepted until 2999-01-01: Until acme     "
        "manifests/api.yaml:3",
    )
    (shown,) = findings_of(json.loads(cli_runner("plan --format json").out), "excepted")
    assert shown["data"]["action"] is None


def test_a_new_object_is_created_without_its_excepted_fields(cli_runner: CliRunner) -> None:
    exceptions = "{section: milestones, fields: [due_date], until: 2999-01-01, reason: Dates are open}"
    excepted(cli_runner, exceptions, "{milestones: {v1: {due_date: 2026-12-02, description: First}}}")
    assert cli_runner("apply --yes").code == 0
    assert [(each["title"], each["due_date"], each["description"]) for each in milestones(cli_runner)] == [
        ("v1", None, "First")
    ]
    assert (cli_runner("drift").code, summary(cli_runner)["excepted"]) == (0, 1)


def test_an_excepted_field_that_does_not_differ_is_not_counted(cli_runner: CliRunner) -> None:
    cli_runner.service(milestones=[{"id": 1, "title": "v1", "due_date": "2026-12-02"}])
    exceptions = "{section: milestones, fields: [due_date], until: 2999-01-01, reason: Dates are open}"
    excepted(cli_runner, exceptions, "{milestones: {v1: {due_date: 2026-12-02, description: First}}}")
    numbers = summary(cli_runner)
    assert (numbers["update"], numbers["excepted"]) == (1, 0)


def milestones(runner: CliRunner) -> list[dict[str, Any]]:
    """Return the milestones of the project."""
    found: list[dict[str, Any]] = runner.sandbox.state()["projects"][0]["milestones"]
    return found


def test_a_rest_that_would_be_wrong_without_the_excepted_field_is_a_problem_that_says_so(cli_runner: CliRunner) -> None:
    cli_runner.service(milestones=[{"id": 1, "title": "v1", "due_date": "2026-11-30"}])
    exceptions = "{section: milestones, item: v1, fields: [due_date], until: 2999-01-01, reason: Open}"
    excepted(cli_runner, exceptions, "{milestones: {v1: {start_date: 2026-12-01, due_date: 2026-12-31}}}")
    planned = cli_runner("plan -v")
    assert (planned.code, planned.out.splitlines()[1:3]) == (
        3,
        [
            '  ! milestone "v1".due_date: due_date must be after start_date, which is 2026-12-01; an exception holds '
            "back due_date: except the whole object, or end the exception     manifests/api.yaml:4",
            '  = milestone "v1"                            start_date: none -> 2026-12-01, due_date: 2026-11-30 -> '
            "2026-12-31, excepted until 2999-01-01: Open     manifests/api.yaml:3",
        ],
    )


@pytest.mark.untraced
def test_settings_that_are_planned_again_after_their_group_keep_their_excepted_fields(
    cli_runner: CliRunner, dialect: str
) -> None:
    cli_runner.sandbox.replace_state(a_small_service(dialect))
    cli_runner.write(
        "manifests/group.yaml",
        "apiVersion: reconciler/v1\nkind: Group\nmetadata: {path: acme}\n"
        "spec: {approval_settings: {allow_committer_approval: false}}\n",
    )
    exceptions = "{section: approval_settings, fields: [allow_author_approval], until: 2999-01-01, reason: Small}"
    spec = "{approval_settings: {allow_author_approval: true, require_reauthentication_to_approve: true}}"
    excepted(cli_runner, exceptions, spec)
    for line in ("apply --yes", "plan --out plan.json", "apply --plan plan.json --yes"):
        ended = cli_runner(line)
        assert (ended.code, ", 1 excepted. " in ended.out) == (0, True), line
    shown = findings_of(json.loads(cli_runner("plan --format json").out), "excepted")
    assert [(each["data"]["before"], each["data"]["after"]) for each in shown] == [
        ({"allow_author_approval": False}, {"allow_author_approval": True})
    ]
    excepted(cli_runner, exceptions.replace("fields: [allow_author_approval], ", ""), spec)
    assert cli_runner("apply --yes").code == 0


def test_nothing_is_asked_for_only_because_of_what_is_held_back(cli_runner: CliRunner, dialect: str) -> None:
    cli_runner.sandbox.replace_state(a_small_service(dialect))
    excepted(
        cli_runner,
        "{section: job_token_scope, until: 2999-01-01, reason: Later}",
        "{prune: [job_token_scope], job_token_scope: {projects: [acme/web], groups: []}}",
    )
    cli_runner.sandbox.clear_log()
    assert '  = allowlisted project "acme/web"            not created, ' in cli_runner("plan -v").out
    assert len(cli_runner.sandbox.log()) == 2


def test_a_retry_is_about_what_failed_alone(prepared: CliRunner) -> None:
    prepared.sandbox.set_faults(["status=400,method=PATCH"])
    assert prepared("apply --yes --report json=report.json").code == 3
    prepared.sandbox.set_faults([])
    again = prepared("apply --yes --retry-failed report.json")
    assert (again.code, "excepted" in again.out, "job token scope" in again.out) == (0, False, True)
