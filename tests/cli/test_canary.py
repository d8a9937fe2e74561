"""`apply --canary` and `--max-failures`: how a run over a fleet ends early, and what it leaves alone."""

import json
import re
from datetime import datetime
from pathlib import Path

import pytest

from reconciler.engine.apply import FailureLimit, Stop
from tests.cli_runner import CliRunner
from tests.items import by_target, changes_of
from tests.states import a_small_service

FLEET = {"api": "", "lib": "", "web": ", labels: {tier: canary}"}


@pytest.fixture(autouse=True)
def _fleet(cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three projects with a milestone each to create; the last in order is the canary. Retries wait for nothing."""
    monkeypatch.setattr("reconciler.service.client.backoff", lambda *_: 0.0)
    for name, labels in FLEET.items():
        cli_runner.write(
            f"manifests/{name}.yaml",
            f"apiVersion: reconciler/v1\nkind: Project\nmetadata: {{path: acme/{name}{labels}}}\n"
            "spec: {milestones: {v1: {}, v2: {}}}\n",
        )


def writes(cli_runner: CliRunner) -> list[str]:
    log = cli_runner.sandbox.log()
    return [
        f"{entry['method']} {entry['target'].removeprefix('/api/v4/').partition('?')[0]}"
        for entry in log
        if entry["method"] != "GET"
    ]


def created(name: str) -> list[str]:
    return [f"POST projects/acme%2F{name}/milestones"] * 2


STOPPED = "canary: 1 project, 2 changes, not in order; all else is skipped\n"
GOING_ON = "canary: 1 project, 2 changes, verified; going on\n"


def without_time(text: str) -> str:
    """Return what is told of a canary without how long it took."""
    return re.sub(r" after [0-9]+ s;", ";", text)


SKIPPED = """\
project acme/api
  + milestone "v1"                            skipped: the canary is not in order: project acme/web
  + milestone "v2"                            skipped: the canary is not in order: project acme/web
project acme/lib
  + milestone "v1"                            skipped: the canary is not in order: project acme/web
  + milestone "v2"                            skipped: the canary is not in order: project acme/web
"""


@pytest.mark.untraced
@pytest.mark.parametrize("dialect", ["deployed", "spec"])
@pytest.mark.parametrize("selector", ["tier=canary", "ACME/w*"])
def test_the_canary_comes_first_and_the_rest_only_if_it_is_in_order(
    cli_runner: CliRunner, selector: str, dialect: str
) -> None:
    cli_runner.sandbox.replace_state(a_small_service(dialect))
    cli_runner.sandbox.clear_log()
    done = cli_runner(f"apply --yes --concurrency 1 --canary {selector}")
    assert (done.code, done.err) == (0, "")
    assert writes(cli_runner) == [*created("web"), *created("api"), *created("lib")]
    requests = len(cli_runner.sandbox.log())

    cli_runner.sandbox.replace_state(a_small_service(dialect))
    cli_runner.sandbox.clear_log()
    assert cli_runner("apply --yes --concurrency 1").code == 0
    assert requests == len(cli_runner.sandbox.log())
    assert cli_runner(f"apply --yes --canary {selector}").code == 0


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("fault", "found"),
    [
        ("status=403,method=POST,match=acme%2Fweb,nth=2", "failed: POST projects/acme%2Fweb/milestones: 403 Forbidden"),
        ("status=500,method=GET,match=acme%2Fweb,nth=3", "failed: applied, but cannot be verified: "),
    ],
)
def test_a_change_of_the_canary_that_is_not_done_and_verified_ends_the_run(
    cli_runner: CliRunner, fault: str, found: str
) -> None:
    cli_runner.sandbox.set_faults([fault + (",times=9" if "GET" in fault else "")])
    done = cli_runner("apply --yes --canary tier=canary --report json=report.json --journal journal.jsonl")
    assert done.code == 3
    assert f"{STOPPED}{SKIPPED}Applied: " in without_time(done.out)
    assert found in done.out
    assert done.err.splitlines()[-1] == (
        "the run ended before all changes: the canary is not in order: project acme/web"
    )
    assert writes(cli_runner) == created("web")
    intents = [line for line in Path("journal.jsonl").read_text().splitlines() if '"intent"' in line]
    assert len(intents) == 2

    # what was skipped is carried out by the next run, as what failed
    cli_runner.sandbox.set_faults([])
    again = cli_runner("apply --yes --retry-failed report.json --canary tier=canary")
    assert again.code == 0
    assert cli_runner("drift").code == 0


@pytest.mark.untraced
def test_a_problem_of_the_canary_ends_the_run_too_though_all_else_of_it_is_done(cli_runner: CliRunner) -> None:
    cli_runner.sandbox.set_faults(["status=403,method=GET,match=acme%2Fweb"])
    done = cli_runner("apply --yes --canary acme/web")
    assert (done.code, writes(cli_runner)) == (1, [])
    assert f"{STOPPED.replace('2 changes', '0 changes')}{SKIPPED}Applied: " in without_time(done.out)
    assert "\nApplied: 4 skipped, 1 problem. " in done.out
    assert cli_runner("apply --yes --canary acme/web --allow-problems").code == 1
    both = cli_runner("apply --yes --canary acme/[lw]*")
    assert (both.code, writes(cli_runner)) == (3, created("lib"))
    cli_runner.sandbox.set_faults(["status=403,method=GET,match=milestones"])
    assert "the canary is not in order: project acme/api and 2 more\n" in cli_runner("apply --yes --canary **").err


def test_a_canary_that_nobody_is_or_that_cannot_be_verified_is_refused(cli_runner: CliRunner) -> None:
    done = cli_runner("apply --yes --canary tier=canaries")
    assert (done.code, done.out, done.err, writes(cli_runner)) == (
        1,
        "",
        "reconciler: nothing was changed: in the plan, --canary tier=canaries matches nobody: the labels there are: tier=canary\n",
        [],
    )
    cli_runner.sandbox.clear_log()
    refused = cli_runner("apply --yes --canary acme/web --no-verify")
    assert (refused.code, refused.err) == (
        64,
        "reconciler: --canary does not go with --no-verify: only what was verified shows that all is well\n",
    )
    assert cli_runner("apply --yes --canary =canary").code == 64
    assert cli_runner("apply --yes --canary", "").code == 64
    assert cli_runner.sandbox.log() == []


@pytest.mark.untraced
def test_a_saved_plan_knows_labels_and_paths(cli_runner: CliRunner) -> None:
    cli_runner.write(
        "manifests/set.yaml",
        "apiVersion: reconciler/v1\nkind: ProjectSet\nmetadata: {name: all, labels: {stage: early}}\n"
        "select: {group: acme, include: [acme/l*]}\nspec: {milestones: {v1: {}}}\n",
    )
    cli_runner.write(
        "manifests/lib.yaml",
        "apiVersion: reconciler/v1\nkind: Project\nmetadata: {id: 101}\nspec: {milestones: {v2: {}}}\n",
    )
    assert cli_runner("plan --out plan.json").code == 0
    saved = json.loads(Path("plan.json").read_text())
    assert [(each["ref"], each.get("path"), each["labels"]) for each in saved["targets"]] == [
        ("acme/api", None, {}),
        ("acme/web", None, {"tier": "canary"}),
        (101, "acme/lib", {"stage": "early"}),
    ]
    cli_runner.sandbox.set_faults(["status=403,method=POST,match=101"])
    for selector in ("stage=early", "acme/l?b", "101"):
        done = cli_runner(f"apply --plan plan.json --yes --canary {selector}")
        assert (done.code, "4 skipped" in done.out) == (3, True)
    assert set(writes(cli_runner)) == {"POST projects/101/milestones"}


def test_the_canary_shows_itself_in_every_format(cli_runner: CliRunner) -> None:
    files = "--report json=report.json --report markdown=note.md --report html=page.html --journal journal.jsonl"
    done = cli_runner(f"apply --yes --canary tier=canary {files}")
    created = '  + milestone "v1"                            done\n  + milestone "v2"                            done\n'
    assert without_time(done.out).splitlines(keepends=True)[:-1] == [
        *f"project acme/web\n{created}{GOING_ON}project acme/api\n{created}project acme/lib\n{created}".splitlines(True)
    ]
    report = json.loads(Path("report.json").read_text())
    canary = report["canary"]
    times = [report["started_at"], canary.pop("started_at"), canary.pop("finished_at"), report["finished_at"]]
    assert times == sorted(times, key=datetime.fromisoformat)
    assert canary == {"selector": "tier=canary", "targets": ["project acme/web"], "changes": 2, "result": "verified"}
    note = without_time(Path("note.md").read_text())
    assert f"**`{GOING_ON.strip()}`**" in note
    assert note.index("project acme/web") < note.index("project acme/api")
    events = [json.loads(line) for line in Path("journal.jsonl").read_text().splitlines()]
    assert [(each["event"], each.get("in_order")) for each in events] == [
        ("begin", None),
        *[("intent", None), ("result", None)] * 2,
        ("canary", True),
        *[(each["event"], None) for each in events[6:-1]],
        ("end", None),
    ]
    page = Path("page.html").read_text()
    assert without_time(page).count(GOING_ON.strip()) == 1
    assert page.count("Canary: Created milestone") == 4  # two cards, and a list for readers without scripts

    # a report that is shown later says the same
    shown = cli_runner("show report.json")
    assert without_time(shown.out).splitlines()[:4] == without_time(done.out).splitlines()[:4]


def test_the_canaries_of_shards_are_one_in_the_merged_report(cli_runner: CliRunner) -> None:
    cli_runner.sandbox.set_faults(["status=403,method=POST,match=acme%2Fapi"])
    for number in (1, 2):
        cli_runner(f"apply --yes --canary acme/* --shard {number}/2 --report json=part{number}.json")
    merged = cli_runner("merge part1.json part2.json")
    assert "canary: 3 projects, 6 changes, not in order; all else is skipped\n" in without_time(merged.out)


APPROVALS = """\
apiVersion: reconciler/v1
kind: Group
metadata: {path: acme, labels: {tier: GROUP}}
spec: {approval_settings: {allow_author_approval: false}}
---
apiVersion: reconciler/v1
kind: Project
metadata: {path: acme/web, labels: {tier: canary}}
spec: {approval_settings: {allow_author_approval: false}, milestones: {v1: {}}}
"""

GROUP = "groups/acme/merge_request_approval_setting"
WEB = "projects/acme%2Fweb/"


OF_GROUP = [f"{method} {GROUP}" for method in ("GET", "PUT", "GET")]
OF_WEB = [f"{method} {WEB}milestones" for method in ("POST", "GET")]
AGAIN = [f"GET {WEB}merge_request_approval_setting"]
GROUP_DONE = "group acme\n  ~ approval settings                         done\n"
WEB_DONE = 'project acme/web\n  + milestone "v1"                            done\n'
BOTH = "canary: 1 group, 1 project, 2 changes, verified; going on\n"


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("tier", "requests", "told"),
    [
        ("canary", [*OF_GROUP, *AGAIN, *OF_WEB], f"{GROUP_DONE}{WEB_DONE}{BOTH}"),
        ("other", [*OF_WEB, *OF_GROUP, *AGAIN], f"{WEB_DONE}{GOING_ON.replace('2 changes', '1 change')}{GROUP_DONE}"),
    ],
)
def test_settings_of_the_canary_that_depend_on_a_group_are_looked_at_after_the_group(
    cli_runner: CliRunner, tier: str, requests: list[str], told: str
) -> None:
    state = a_small_service("deployed")
    state["projects"][2]["merge_request_approval_settings"] = {"allow_author_approval": False}
    cli_runner.sandbox.replace_state(state)
    for name in FLEET:
        Path(f"manifests/{name}.yaml").unlink()
    cli_runner.write("manifests/web.yaml", APPROVALS.replace("GROUP", tier))
    cli_runner.sandbox.clear_log()
    done = cli_runner("apply --yes --concurrency 1 --canary tier=canary")
    assert (done.code, done.err) == (0, "")
    assert without_time(done.out) == f"{told}Applied: 1 created, 1 updated, 1 tightening. 10 requests made.\n"
    log = [f"{each['method']} {each['target'].removeprefix('/api/v4/')}" for each in cli_runner.sandbox.log()]
    assert [line.partition("?")[0] for line in log[4:]] == requests


def test_settings_that_a_group_still_locks_are_a_problem_of_the_canary(cli_runner: CliRunner) -> None:
    state = a_small_service("deployed")
    state["groups"][0]["merge_request_approval_settings"] = {"allow_author_approval": False}
    cli_runner.sandbox.replace_state(state)
    cli_runner.write("manifests/web.yaml", APPROVALS.replace("approval: false", "approval: true"))
    done = cli_runner("apply --yes --canary tier=canary")
    assert (done.code, writes(cli_runner)) == (3, created("web")[:1])
    assert "skipped: the canary is not in order: project acme/web" in done.out
    assert done.out.count("locked by group acme") == 1


def test_so_many_failures_end_the_run_and_nothing_else_is_begun(cli_runner: CliRunner) -> None:
    cli_runner.sandbox.set_faults(["status=400,method=POST,match=acme%2F"])
    done = cli_runner("apply --yes --concurrency 1 --max-failures 3")
    assert (done.code, done.err) == (3, "the run ended before all changes: --max-failures 3 was reached\n")
    assert (
        done.out
        == """\
project acme/api
  + milestone "v1"                            failed: POST projects/acme%2Fapi/milestones: 400 Bad Request
  + milestone "v2"                            failed: POST projects/acme%2Fapi/milestones: 400 Bad Request
project acme/lib
  + milestone "v1"                            failed: POST projects/acme%2Flib/milestones: 400 Bad Request
  + milestone "v2"                            skipped: --max-failures 3 was reached
project acme/web
  + milestone "v1"                            skipped: --max-failures 3 was reached
  + milestone "v2"                            skipped: --max-failures 3 was reached
Applied: 3 failed, 3 skipped. \
11 requests made.
"""
    )
    cli_runner.sandbox.clear_log()
    share = cli_runner("apply --yes --concurrency 1 --max-failures 20%")
    assert share.err == "the run ended before all changes: --max-failures 20%, 2 of 6 changes, was reached\n"
    assert (share.code, len(writes(cli_runner))) == (3, 2)


def test_what_has_moved_since_the_plan_counts_as_a_failure(cli_runner: CliRunner) -> None:
    for file in (cli_runner.folder / "manifests").iterdir():
        file.write_text(file.read_text().replace("v1: {}, v2: {}", "v1: {description: a}, v2: {description: a}"))
    assert cli_runner("plan --out plan.json").code == 0
    state = cli_runner.sandbox.state()
    for project in state["projects"][:2]:
        project["milestones"] = [{"title": "v1"}, {"title": "v2"}]
    cli_runner.sandbox.replace_state(state)
    done = cli_runner("apply --plan plan.json --yes --concurrency 1 --max-failures 3")
    assert done.code == 3
    assert "\nApplied: 3 stale, 3 skipped. " in done.out
    assert writes(cli_runner) == []


CHANGED = """\
apiVersion: reconciler/v1
kind: Project
metadata: {path: acme/api}
spec: {milestones: {v1: {description: a}, v2: {description: b}}}
"""


def change_two(cli_runner: CliRunner, fault: str) -> None:
    """Let two milestones of the first project be updated, and each update meet a fault."""
    cli_runner.service(milestones=[{"title": "v1"}, {"title": "v2"}])
    cli_runner.write("manifests/api.yaml", CHANGED)
    cli_runner.sandbox.set_faults([f"{fault},method=PUT"])


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("verify", "counts"), [("", "Applied: 4 created, 2 updated. "), ("--no-verify", "Applied: 1 failed, 5 skipped. ")]
)
def test_a_change_whose_answer_was_lost_counts_only_if_nothing_shows_that_it_was_carried_out(
    cli_runner: CliRunner, verify: str, counts: str
) -> None:
    change_two(cli_runner, "reset-after")
    assert counts in cli_runner(f"apply --yes --concurrency 1 --max-failures 1 {verify}").out


def test_what_the_service_drops_counts_as_soon_as_it_is_known(cli_runner: CliRunner) -> None:
    change_two(cli_runner, "status=200")
    done = cli_runner("apply --yes --concurrency 1 --max-failures 2")
    assert done.code == 3
    assert "\nApplied: 4 skipped, 2 dropped by the service. " in done.out


def test_what_is_in_flight_at_the_last_failure_finishes(cli_runner: CliRunner) -> None:
    slow = [f"slow,seconds=1,method=POST,match=acme%2F{name}" for name in ("lib", "web")]
    faults = ["slow,seconds=0.3,method=POST,match=acme%2Fapi,nth=1", "status=403,method=POST,match=acme%2Fapi", *slow]
    cli_runner.sandbox.set_faults(faults)
    report = json.loads(cli_runner("apply --yes --concurrency 3 --max-failures 1 --format json").out)
    assert [
        (ref, [each["outcome"]["status"] for each in own]) for ref, own in by_target(report, changes_of(report)).items()
    ] == [
        ("acme/api", ["done", "failed"]),
        ("acme/lib", ["done", "skipped"]),
        ("acme/web", ["done", "skipped"]),
    ]


def test_the_first_reason_to_end_a_run_is_told() -> None:
    stop = Stop()
    stop.cancel("a signal")
    stop.pause("the canary")
    assert (stop.reason, stop.pause_reason) == ("a signal", "")
    stop = Stop()
    stop.pause("the canary")
    stop.pause("too many failures")
    stop.cancel("a signal")
    assert (stop.reason, stop.pause_reason, stop.event.is_set()) == ("the canary", "the canary", True)


@pytest.mark.parametrize("wrong", ["0", "0%", "101%", "-1", "1.5", "half", "%"])
def test_a_limit_is_a_number_or_a_percentage(cli_runner: CliRunner, wrong: str) -> None:
    done = cli_runner("apply --yes --max-failures", wrong)
    assert (done.code, done.err.splitlines()[-1]) == (
        64,
        f"reconciler: --max-failures takes a number from 1, or a percentage such as 10%; not {wrong}",
    )
    assert writes(cli_runner) == []


@pytest.mark.parametrize(
    ("text", "planned", "number"), [("10%", 0, 1), ("10%", 10, 1), ("10%", 11, 2), ("100%", 7, 7), ("12", 3, 12)]
)
def test_a_percentage_is_of_the_planned_changes_and_rounded_up(text: str, planned: int, number: int) -> None:
    assert FailureLimit(text, planned).number == number


def test_a_group_that_protects_a_branch_for_the_sake_of_the_canary_goes_along(cli_runner: CliRunner) -> None:
    """Without it, the approval rule of the canary would name a branch that nobody protects."""
    rule = "any_approver: {approvals_required: 1, branches: [next]}"
    cli_runner.write("manifests/lib.yaml", _document("Project", "acme/lib", "approval_rules: {" + rule + "}"))
    cli_runner.write("manifests/acme.yaml", _document("Group", "acme", "protected_branches: {next: {}}"))
    cli_runner.sandbox.clear_log()
    done = cli_runner("apply --yes --concurrency 1 --canary acme/lib")
    assert (done.code, done.err) == (0, "")
    assert writes(cli_runner) == [
        "POST groups/acme/protected_branches",
        "POST projects/acme%2Flib/approval_rules",
        *created("api"),
        *created("web"),
    ]
    assert without_time("".join(re.findall("canary: .*\n", done.out))) == (
        "canary: 1 group, 1 project, 2 changes, verified; going on\n"
    )


def _document(kind: str, path: str, spec: str) -> str:
    return f"apiVersion: reconciler/v1\nkind: {kind}\nmetadata: {{path: {path}}}\nspec: {{{spec}}}\n"


def test_a_group_that_gives_up_a_name_for_the_sake_of_the_canary_goes_along(cli_runner: CliRunner) -> None:
    """Without it, the service would refuse the canary's milestone: the group still had one of this name."""
    state = cli_runner.sandbox.state()
    state["groups"][0]["milestones"] = [{"id": 1, "title": "M"}]
    cli_runner.sandbox.replace_state(state)
    cli_runner.write("manifests/lib.yaml", _document("Project", "acme/lib", "milestones: {M: {}, x: {}}"))
    cli_runner.write("manifests/acme.yaml", _document("Group", "acme", "milestones: {N: {renamed_from: M}}"))
    cli_runner.sandbox.clear_log()
    done = cli_runner("apply --yes --concurrency 1 --canary acme/lib")
    assert (done.code, done.err) == (0, "")
    assert writes(cli_runner) == [
        "PUT groups/acme/milestones/1",
        *["POST projects/acme%2Flib/milestones"] * 2,
        *created("api"),
        *created("web"),
    ]


@pytest.mark.untraced
@pytest.mark.parametrize("is_refused", [False, True])
def test_a_canary_deletes_last_what_projects_outside_of_it_name(cli_runner: CliRunner, is_refused: bool) -> None:
    """The branch rule of the group goes once no approval rule is for it alone, or stays."""
    state = a_small_service("deployed")
    state["groups"][0]["protected_branches"] = [{"id": 7, "name": "old"}]
    rule = {"id": 1, "name": "QA", "approvals_required": 1, "users": ["ada"], "protected_branch_ids": [7]}
    state["projects"][0]["approval_rules"] = [rule]
    cli_runner.sandbox.replace_state(state)
    for name in FLEET:
        (cli_runner.folder / f"manifests/{name}.yaml").unlink()
    cli_runner.write(
        "manifests/acme.yaml",
        "apiVersion: reconciler/v1\nkind: Group\nmetadata: {path: acme}\n"
        "spec: {protected_branches: {old: null, new: {}}}\n",
    )
    cli_runner.project("{approval_rules: {QA: {approvals_required: 1, users: [ada], branches: [new]}}}")
    if is_refused:
        cli_runner.sandbox.set_faults([{"kind": "status", "status": 500, "method": "PUT", "times": 99}])
    cli_runner.sandbox.clear_log()
    done = cli_runner("apply --yes --canary acme --max-failures 1")
    create, *updates = writes(cli_runner)
    assert create == "POST groups/acme/protected_branches"
    assert without_time(done.out).count("canary: 1 group, 2 changes, verified; going on\n") == 1
    if is_refused:
        assert {*updates} == {"PUT projects/acme%2Fapi/approval_rules/1"}
        assert '  - protected branch "old"                    skipped: --max-failures 1 was reached\n' in done.changes
        assert done.code == 3
    else:
        assert updates == ["PUT projects/acme%2Fapi/approval_rules/1", "DELETE groups/acme/protected_branches/old"]
        assert (done.code, cli_runner("plan --detailed-exitcode").code) == (0, 0)
