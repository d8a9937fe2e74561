"""`apply`: what it asks, refuses, does and reports."""

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.cli_runner import CliRunner

MILESTONES = "{milestones: {a: {}, b: {}, old: null}}"

REPORT = """\
project acme/api
  + milestone "a"                             done
  + milestone "b"                             done
  - milestone "old"                           done
Applied: 2 created, 1 deleted. \
6 requests made.
"""


@pytest.fixture(autouse=True)
def _service(cli_runner: CliRunner) -> None:
    cli_runner.service(milestones=[{"title": "old"}])
    cli_runner.project(MILESTONES)


def writes(cli_runner: CliRunner) -> list[str]:
    log = cli_runner.sandbox.log()
    return [f"{entry['method']} {entry['target'].rpartition('/')[2]}" for entry in log if entry["method"] != "GET"]


@pytest.mark.untraced
def test_a_plan_is_carried_out_and_verified_and_then_there_is_nothing_to_do(cli_runner: CliRunner) -> None:
    done = cli_runner("apply --yes")
    assert (done.code, done.out, done.err) == (0, REPORT, "")
    again = cli_runner("apply")
    assert (again.code, again.err) == (0, "")
    assert again.out == "Applied: nothing to change. 1 request made.\n"


def test_what_was_changed_need_not_be_read_again(cli_runner: CliRunner) -> None:
    assert cli_runner("apply --yes --no-verify").out.endswith("5 requests made.\n")


def test_without_a_terminal_nothing_is_applied_unasked(cli_runner: CliRunner) -> None:
    done = cli_runner("apply")
    assert (done.code, done.out) == (64, "")
    assert done.err == ("reconciler: apply asks before it changes anything, and there is no terminal; add --yes\n")
    assert writes(cli_runner) == []


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A terminal as standard input; the value is the end a person types at."""
    person, program = pty.openpty()
    with os.fdopen(program, "r") as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        yield person
    os.close(person)


@pytest.mark.untraced
def test_on_a_terminal_it_shows_the_plan_and_asks(cli_runner: CliRunner, terminal: int) -> None:
    os.write(terminal, b"n\n")
    refused = cli_runner("apply")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err == (
        'project acme/api\n  + milestone "a"     manifests/project.yaml:4\n  + milestone "b"     manifests/project.yaml:4\n  - milestone "old"     manifests/project.yaml:4\n'
        "Plan: 2 to create, 1 to delete. 3 writes to apply; 2 requests were made to plan.\n"
        "Apply this plan? [y/N]: Interrupted.\n"
    )
    assert writes(cli_runner) == []
    os.write(terminal, b"y\n")
    assert cli_runner("apply").out == REPORT


def test_a_long_plan_asks_once_more_before_it_deletes(
    cli_runner: CliRunner, terminal: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LINES", "4")
    monkeypatch.setenv("COLUMNS", "80")
    os.write(terminal, b"y\nn\n")
    refused = cli_runner("apply")
    asked = (
        "Apply this plan? [y/N]: This plan is longer than the screen, and deletes 1 object in 1 project. Delete them? "
        "[y/N]: "
    )
    assert (refused.code, refused.err[-len(asked) - 13 :]) == (1, f"{asked}Interrupted.\n")
    assert writes(cli_runner) == []
    os.write(terminal, b"y\ny\n")
    assert cli_runner("apply").out == REPORT
    cli_runner.project("{milestones: {c: {}, d: {}, e: {}, f: {}}}")
    os.write(terminal, b"y\n")
    assert cli_runner("apply").code == 0, "what deletes nothing asks once"


def test_colour_is_for_terminals_unless_it_is_wanted_or_not(
    cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_coloured(line: str = "plan") -> bool:
        return "\x1b[32m" in cli_runner(line).out

    assert not is_coloured()
    assert is_coloured("plan --color always")
    monkeypatch.setenv("FORCE_COLOR", "0")
    assert not is_coloured()
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert is_coloured()
    assert not is_coloured("plan --color never")
    monkeypatch.setenv("NO_COLOR", "1")
    assert not is_coloured()
    assert is_coloured("plan --color always")


@pytest.mark.untraced
def test_a_saved_plan_is_carried_out_once(cli_runner: CliRunner) -> None:
    assert cli_runner("plan --out plan.json").code == 0
    done = cli_runner("apply --plan plan.json --yes --report json=report.json")
    assert (done.code, done.err) == (0, "")
    report = REPORT.replace("6 requests", "5 requests")
    assert done.out == report
    assert cli_runner("show report.json").out == report
    again = cli_runner("apply --plan plan.json --yes")
    before = REPORT.replace("6 requests", "1 request").replace(" done\n", " done: by an earlier run\n")
    assert (again.code, again.out) == (0, before)


def test_a_red_apply_in_ci_that_is_tried_again_does_what_is_left_and_names_the_way(
    cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    cli_runner.project("{milestones: {a: {}, b: {}, c: {}, old: null}, trigger_tokens: {deploy: {}}}")
    assert cli_runner("plan --out plan.json").code == 0
    apply = "apply --plan plan.json --yes --tokens-to tokens.jsonl"
    cli_runner.sandbox.set_faults(["status=403,method=POST,match=/milestones,nth=2"])
    red = cli_runner(apply)
    assert red.code == 3
    way = "run a new pipeline: this job, retried, applies the same plan, and refuses what has changed since"
    assert red.err.splitlines()[-1].endswith(way)
    cli_runner.sandbox.set_faults([])
    cli_runner.sandbox.clear_log()
    retried = cli_runner(apply)
    assert (retried.code, way in retried.err) == (0, False)
    assert writes(cli_runner) == ["POST milestones"]
    assert len((cli_runner.folder / "tokens.jsonl").read_text().splitlines()) == 1
    # what no longer is as wanted is refused, and an expired token is no change of the service
    cli_runner.service(milestones=[{"title": "a", "state": "closed"}])
    cli_runner.sandbox.set_faults(["status=401"])
    expired = cli_runner(apply)
    told = "skipped: the service refuses the token: 401 Unauthorized; the token is wrong, expired or revoked: make a new one"
    assert (expired.code, "stale:" in expired.out, expired.out.count(told)) == (1, False, 5)
    assert "RECONCILER_TOKEN" in expired.out


def test_a_token_that_exists_and_cannot_be_delivered_again_is_a_failure(cli_runner: CliRunner) -> None:
    cli_runner.project("{trigger_tokens: {deploy: {}}}")
    assert cli_runner("plan --out plan.json").code == 0
    assert cli_runner("apply --plan plan.json --yes --tokens-to tokens.jsonl").code == 0
    again = cli_runner("apply --plan plan.json --yes --tokens-command false")
    assert again.code == 1
    assert "failed: it exists now, and its value could not be delivered: " in again.out


def test_only_what_has_moved_since_is_refused(cli_runner: CliRunner) -> None:
    cli_runner.project(
        "{milestones: {new: {renamed_from: old}, a: {}}, approval_settings: {allow_author_approval: true}}"
    )
    assert cli_runner("plan --out plan.json").code == 0
    cli_runner.service(milestones=[{"title": "old", "description": "touched"}])
    done = cli_runner("apply --plan plan.json --yes")
    assert done.code == 3
    assert '  + milestone "a"                             done\n' in done.out
    assert "  ~ approval settings                         done\n" in done.out
    moved = "stale: it has changed since the plan was made: description: none -> touched"
    assert f'  ~ milestone "new"                           {moved}\n' in done.out
    assert writes(cli_runner) == ["PUT merge_request_approval_setting", "POST milestones"]


def test_a_rename_onto_a_name_that_is_taken_by_now_is_refused(cli_runner: CliRunner) -> None:
    cli_runner.project("{milestones: {new: {renamed_from: old}}}")
    assert cli_runner("plan --out plan.json").code == 0
    cli_runner.service(milestones=[{"title": "old"}, {"title": "new"}])
    assert "stale: its new name is taken now" in cli_runner("apply --plan plan.json --yes").out


def test_what_cannot_be_read_again_is_refused(cli_runner: CliRunner) -> None:
    cli_runner.project("{trigger_tokens: {old: null}}")
    cli_runner.service(trigger_tokens=[{"description": "old", "owner": "ada"}])
    assert cli_runner("plan --out plan.json").code == 0
    cli_runner.service(archived=True)
    done = cli_runner("apply --plan plan.json --yes")
    assert done.code == 3
    assert "stale: cannot be read again: GET projects/acme%2Fapi/triggers: 403 Forbidden" in done.out


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--max-age 0m", "older than"),
        ("--api-url http://127.0.0.1:9/api/v4", "make a plan for this service, or apply it there"),
    ],
)
def test_a_plan_that_is_too_old_or_for_another_service_is_refused(cli_runner: CliRunner, line: str, said: str) -> None:
    cli_runner("plan --out plan.json")
    done = cli_runner(f"apply --plan plan.json --yes {line}")
    assert (done.code, done.out) == (1, "")
    assert said in done.err
    assert writes(cli_runner) == []


@pytest.mark.untraced
@pytest.mark.parametrize("age", ["24", "h", "1.5h", "-1h", "\N{ARABIC-INDIC DIGIT THREE}d", ""])
def test_an_age_that_is_none_is_a_wrong_command_line(cli_runner: CliRunner, age: str) -> None:
    cli_runner("plan --out plan.json")
    done = cli_runner("apply --plan plan.json --yes --max-age", age)
    assert done.code == 64
    assert f"--max-age: a duration is a number followed by d, h, m or s, such as 24h; not {age}" in done.err


@pytest.mark.parametrize("option", ["--max-age", "--max-wait", "--grace"])
def test_a_duration_beyond_all_dates_is_a_wrong_command_line(cli_runner: CliRunner, option: str) -> None:
    cli_runner("plan --out plan.json")
    done = cli_runner(f"apply --plan plan.json --yes {option} 99999999999999999999d")
    assert (done.code, done.out) == (64, "")
    assert f"{option}: a duration is at most 36500d; not 99999999999999999999d" in done.err


@pytest.mark.untraced
def test_losing_much_must_be_meant(cli_runner: CliRunner) -> None:
    cli_runner.service(milestones=[{"title": f"m{number}"} for number in range(12)])
    cli_runner.project("{prune: [milestones], milestones: {m0: {}}}")
    cli_runner("plan --out plan.json")
    for command in ("apply --yes", "apply --yes --plan plan.json"):
        planned, done = cli_runner("plan").out, cli_runner(command)
        assert (done.code, done.out) == (1, "")
        assert done.err == planned + (
            "reconciler: the plan is refused, and nothing was changed: it deletes 11 of 12 entries of milestones of "
            "project acme/api; add --allow-deletes 11\n"
        )
        assert planned.startswith('project acme/api\n  - milestone "m1" ')
        refusal = done.err.splitlines()[-1]
        assert cli_runner(f"{command} --quiet").err.splitlines() == [refusal]
        assert len(cli_runner(f"{command} --log-format json").err.splitlines()) == 1
    assert writes(cli_runner) == []
    assert cli_runner("apply --yes --allow-deletes 11 --max-changes 10").code == 1
    assert cli_runner("apply --yes --allow-deletes 11 --max-changes 11").code == 0


def test_a_stale_change_stops_nothing_but_itself(cli_runner: CliRunner) -> None:
    cli_runner.project("{milestones: {taken: {}, a: {}}}")
    assert cli_runner("plan --out plan.json").code == 0
    state = cli_runner.sandbox.state()
    state["groups"][0]["milestones"] = [{"title": "taken"}]
    cli_runner.sandbox.replace_state(state)
    done = cli_runner("apply --plan plan.json --yes")
    assert (done.code, done.err) == (3, "")
    assert done.out == (
        "project acme/api\n"
        '  + milestone "a"                             done\n'
        '  + milestone "taken"                         stale: it cannot be planned: group acme already uses this name, '
        "which must be unique in a group and everything below it\n"
        "Applied: 1 created, 1 stale. "
        "3 requests made.\n"
    )


TOKENS = "{trigger_tokens: {t1: {}, t2: {}}}"


def live_tokens(cli_runner: CliRunner) -> dict[str, str]:
    tokens = cli_runner.sandbox.state()["projects"][0]["trigger_tokens"]
    return {token["description"]: token["token"] for token in tokens}


def test_tokens_are_not_created_without_a_place_for_their_values(cli_runner: CliRunner) -> None:
    cli_runner.project(TOKENS)
    done = cli_runner("apply --yes")
    assert (done.code, done.out) == (1, "")
    assert done.err == cli_runner("plan").out + (
        "reconciler: the plan is refused, and nothing was changed: it creates 2 trigger tokens, whose value is shown only "
        "once; add --tokens-to FILE or --tokens-command CMD\n"
    )
    assert writes(cli_runner) == []


def test_a_rotated_token_stays_as_long_as_its_grace_and_the_plan_says_until_when(cli_runner: CliRunner) -> None:
    born = (datetime.now(UTC) - timedelta(days=400)).isoformat()
    cli_runner.project("{trigger_tokens: {nightly: {rotate_after: 90d}}}")
    cli_runner.service(trigger_tokens=[{"description": "nightly", "owner": "ada", "created_at": born}])
    due = "the old one has reached the age of 90d, and"
    for options, end in (("", "stays until this one is 24h old"), (" --grace 0m", "goes with the next run")):
        assert f"{due} {end}\n" in cli_runner(f"plan{options}").changes
    assert cli_runner("apply --yes --tokens-to tokens.jsonl").code == 0
    made = max(token["created_at"] for token in cli_runner.sandbox.state()["projects"][0]["trigger_tokens"])
    until = datetime.fromisoformat(made) + timedelta(hours=24)
    for command in ("apply --yes", "plan"):
        told, _, last = cli_runner(command).out.partition("\n")
        assert told == f"1 rotated token beside a successor: a run after {until:%Y-%m-%d %H:%M} UTC deletes it"
        assert last.startswith(
            "Applied: nothing to change. " if command == "apply --yes" else "No changes: 1 target is "
        )
    done = cli_runner("drift")
    assert (done.code, done.out) == (0, "")
    cli_runner.write("reconciler.yaml", "grace: 0m\n")
    assert "1 to delete" in cli_runner("plan").out
    assert cli_runner("drift").code == 2
    assert "\nNo changes: 1 target is in order. " in cli_runner("plan --grace 7d").out
    assert cli_runner("drift --grace 7d").code == 0
    assert cli_runner("plan --grace soon").code == 64
    done = cli_runner("apply --yes --tokens-to tokens.jsonl")
    assert (done.code, "1 deleted" in done.out) == (0, True)
    live = cli_runner.sandbox.state()["projects"][0]["trigger_tokens"]
    assert [token["created_at"] == born for token in live] == [False]
    cli_runner.service(
        trigger_tokens=[{"description": "nightly", "owner": "ada", "created_at": born} for _ in range(3)]
    )
    cli_runner.write("reconciler.yaml", "grace: 500d\n")
    assert "2 rotated tokens beside a successor: runs after " in cli_runner("plan").out


def test_rotated_tokens_are_not_deleted_without_a_place_for_the_values_of_their_successors(
    cli_runner: CliRunner,
) -> None:
    cli_runner.project("{trigger_tokens: {a: {rotate_after: 9d}, b: {rotate_after: 9d}}}")
    now = datetime.now(UTC)
    tokens = [(name, now - timedelta(days=age)) for name in "ab" for age in (2, 3)]
    cli_runner.service(
        trigger_tokens=[{"description": a, "owner": "ada", "created_at": at.isoformat()} for a, at in tokens]
    )
    done = cli_runner("apply --yes")
    assert (done.code, done.out) == (1, "")
    assert done.err == cli_runner("plan").out + (
        "reconciler: the plan is refused, and nothing was changed: it deletes 2 rotated trigger tokens, whose successor's "
        "value is delivered first; add --tokens-to FILE or --tokens-command CMD\n"
    )
    assert writes(cli_runner) == []
    assert cli_runner("apply --yes --tokens-to tokens").code == 0
    delivered = [json.loads(line) for line in Path("tokens").read_text().splitlines()]
    assert {each["description"]: each["token"] for each in delivered} == live_tokens(cli_runner)


def test_token_values_go_to_their_file_and_nowhere_else(cli_runner: CliRunner) -> None:
    cli_runner.project(TOKENS)
    done = cli_runner("apply --yes -v --tokens-to tokens --report json=report.json")
    assert done.code == 0
    lines = [json.loads(line) for line in Path("tokens").read_text().splitlines()]
    assert {line["description"]: line["token"] for line in lines} == live_tokens(cli_runner)
    everything = done.out + done.err + Path("report.json").read_text()
    assert not [value for value in [*live_tokens(cli_runner).values(), "ada-token"] if value in everything]


def test_a_token_that_cannot_be_delivered_is_deleted_again_and_no_more_is_created(cli_runner: CliRunner) -> None:
    cli_runner.project(TOKENS)
    done = cli_runner("apply --yes --tokens-command", "false")
    assert done.code == 3
    assert (
        '  + trigger token "t1"                        failed: false ended with exit code 1; the undelivered token '
        in done.out
    )
    assert "was deleted again\n" in done.out
    assert (
        '  + trigger token "t2"                        skipped: a token could not be delivered, so the run was ended\n'
        in done.out
    )
    assert live_tokens(cli_runner) == {}


@pytest.mark.untraced
def test_an_undelivered_token_that_cannot_be_deleted_is_named(cli_runner: CliRunner) -> None:
    cli_runner.project(TOKENS)
    cli_runner.write(
        "archive.py",
        f"""
import httpx
url = "{cli_runner.sandbox.base_url}/-/state"
state = httpx.get(url).json()
state["projects"][0]["archived"] = True
httpx.put(url, json=state)
raise SystemExit(1)
""",
    )
    done = cli_runner("apply --yes --tokens-command", f"{sys.executable} archive.py")
    assert done.code == 3
    [(_, value)] = live_tokens(cli_runner).items()
    assert value not in done.out + done.err
    assert "could not be deleted again and should be: DELETE projects/acme%2Fapi/triggers/" in done.out


@pytest.mark.untraced
def test_of_two_applies_at_the_same_moment_each_object_stays_once(cli_runner: CliRunner) -> None:
    cli_runner.service()
    cli_runner.project("{milestones: {a: {}, b: {}}, trigger_tokens: {t: {}, u: {}}}")
    cli_runner.sandbox.set_faults([{"kind": "race", "method": "POST", "match": "acme"}])
    line = [sys.executable, "-m", "reconciler", "apply", "--yes", "--tokens-to"]
    runs = [subprocess.Popen([*line, f"tokens-{name}"], stdout=subprocess.PIPE, text=True) for name in "xy"]
    told = [run.communicate()[0] for run in runs]
    cli_runner.sandbox.set_faults([])
    project = cli_runner.sandbox.state()["projects"][0]
    assert sorted(each["title"] for each in project["milestones"]) == ["a", "b"]
    assert sorted(each["description"] for each in project["trigger_tokens"]) == ["t", "u"]
    assert sum(text.count(" done\n") for text in told) == 4
    assert sum(text.count("somebody else created the same object at the same time") for text in told) == 4
    codes = [0 if "failed: " not in text else 3 for text in told]
    assert [run.returncode for run in runs] == codes
    for run in "xy":
        delivered = [json.loads(line) for line in Path(f"tokens-{run}").read_text().splitlines()]
        assert {each["description"]: each["token"] for each in delivered} == live_tokens(cli_runner)
    assert cli_runner("plan").out == "No changes: 1 target is in order. 2 requests were made to plan.\n"
