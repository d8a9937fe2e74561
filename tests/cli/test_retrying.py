"""`--retry-failed` and `--journal` on the command line."""

from pathlib import Path

import pytest

from reconciler.engine.apply.journal import Journal
from tests.cli_runner import CliRunner, Ended
from tests.limits import no_file_longer_than


@pytest.fixture(autouse=True)
def _service(cli_runner: CliRunner) -> None:
    cli_runner.project("{milestones: {a: {}, taken: {}}, trigger_tokens: {t: {}}}")


def take(cli_runner: CliRunner, *titles: str) -> None:
    state = cli_runner.sandbox.state()
    state["groups"][0]["milestones"] = [{"title": title} for title in titles]
    cli_runner.sandbox.replace_state(state)


@pytest.mark.untraced
def test_only_what_failed_is_planned_and_applied_again(cli_runner: CliRunner) -> None:
    assert cli_runner("plan --out plan.json").code == 0
    take(cli_runner, "taken")
    assert cli_runner("apply --plan plan.json --yes --tokens-to tokens --report json=report.json").code == 3
    take(cli_runner)
    cli_runner.project("{milestones: {a: {description: changed since}, taken: {}, new: {}}, trigger_tokens: {t: {}}}")
    cli_runner.sandbox.clear_log()
    planned = cli_runner("plan --retry-failed report.json")
    assert planned.code == 0
    assert planned.out == (
        'project acme/api\n  + milestone "taken"     manifests/project.yaml:4\n'
        "Plan: 1 to create. 1 write to apply; 2 requests were made to plan.\n"
    )
    assert [entry["target"].partition("?")[0] for entry in cli_runner.sandbox.log()] == [
        "/api/v4/projects/acme%2Fapi/milestones",
        "/api/v4/projects/acme%2Fapi",
    ]
    assert cli_runner("apply --yes --retry-failed report.json").code == 0
    titles = [each["title"] for each in cli_runner.sandbox.state()["projects"][0]["milestones"]]
    assert sorted(titles) == ["a", "taken"]


def test_a_report_of_which_nothing_failed_leaves_nothing_to_plan(cli_runner: CliRunner) -> None:
    assert cli_runner("apply --yes --tokens-to tokens --report json=report.json").code == 0
    done = cli_runner("apply --yes --retry-failed report.json")
    assert (done.code, done.err) == (0, "Nothing failed in report.json.\n")


def test_a_report_that_is_none_is_refused(cli_runner: CliRunner) -> None:
    assert (
        cli_runner("plan --retry-failed none.json").err
        == "reconciler: none.json: No such file or directory; check the path\n"
    )
    cli_runner.write("report.json", "{}")
    assert cli_runner("plan --retry-failed report.json").code == 1


def test_a_saved_plan_is_carried_out_whole(cli_runner: CliRunner) -> None:
    done = cli_runner("apply --plan plan.json --section milestones")
    assert (done.code, done.err) == (
        64,
        "reconciler: --plan does not go with options that select targets or sections; give them when the plan is made\n",
    )


def test_a_configured_folder_does_not_stand_in_the_way_of_a_saved_plan(cli_runner: CliRunner) -> None:
    cli_runner.write("reconciler.yaml", "paths: [manifests]\n")
    assert cli_runner("plan --out plan.json").code == 0
    assert cli_runner("apply --plan plan.json --yes --tokens-to tokens").code == 0


def test_a_journal_of_runs_that_ended_says_nothing_and_keeps_no_secret(cli_runner: CliRunner) -> None:
    assert cli_runner("apply --yes --tokens-to tokens --journal journal").err == ""
    assert cli_runner("apply --yes --journal journal").err == ""
    text = Path("journal").read_text()
    assert text.count('"event": "begin"') == text.count('"event": "end"') == 2
    assert text.count('"event": "intent"') == text.count('"status": "done"') == 3
    assert Path("journal").stat().st_mode & 0o777 == 0o600
    assert "glptt" not in text
    assert "ada-token" not in text


def test_a_journal_that_cannot_be_kept_is_refused_before_anything_is_written(cli_runner: CliRunner) -> None:
    cli_runner.sandbox.clear_log()
    done = cli_runner("apply --yes --tokens-to tokens --journal none/journal")
    assert (done.code, done.out, done.err) == (1, "", "reconciler: none/journal: No such file or directory\n")
    assert cli_runner.sandbox.log() == []


def cut_off(cli_runner: CliRunner, line: str, *, writes: int) -> None:
    """End an apply after so many writes, as a kill would."""
    assert cli_runner(line).code == 0
    lines = Path("journal").read_text().splitlines(keepends=True)
    last = [each for each in lines if '"intent"' in each][writes - 1]
    Path("journal").write_text("".join(lines[: lines.index(last) + 1]))


def test_a_narrowed_run_settles_what_another_left_by_looking_for_it(cli_runner: CliRunner) -> None:
    cut_off(cli_runner, "apply --yes --tokens-to tokens --journal journal", writes=2)
    state = cli_runner.sandbox.state()
    state["projects"][0]["milestones"] = [{"title": "a"}]
    cli_runner.sandbox.replace_state(state)
    done = cli_runner("apply --yes --section trigger_tokens --journal journal")
    assert done.code == 0
    assert done.err.splitlines()[1:] == [
        "Unconfirmed write POST projects/acme%2Fapi/milestones (project acme/api, 'taken'): it did not succeed."
    ]


def test_what_cannot_be_settled_stays_in_the_journal_and_in_the_exit_code(cli_runner: CliRunner) -> None:
    cut_off(cli_runner, "apply --yes --tokens-to tokens --journal journal", writes=3)
    state = cli_runner.sandbox.state()
    cli_runner.sandbox.replace_state(
        state | {"projects": [state["projects"][0] | {"archived": True}, *state["projects"][1:]]}
    )
    write = "Unconfirmed write POST projects/acme%2Fapi/triggers (project acme/api, 't'): "
    lines = [
        f"{write}unknown; it could not be checked: GET projects/acme%2Fapi/triggers: 403 Forbidden.",
        f"{write}it succeeded, and its value is not delivered: add --tokens-to FILE or --tokens-command CMD.",
        f"{write}it succeeded, and its value was delivered now.",
    ]
    done = cli_runner("apply --yes --section milestones --journal journal")
    assert (done.code, done.err.splitlines()[1:]) == (1, lines[:1])
    cli_runner.sandbox.replace_state(state)
    earlier = "Earlier runs with this journal: 1 write left unconfirmed."
    done = cli_runner("apply --yes --section milestones --journal journal")
    assert (done.code, done.err.splitlines()) == (1, [earlier, lines[1]])
    Path("tokens").unlink()
    done = cli_runner("apply --yes --section milestones --journal journal --tokens-to tokens")
    assert (done.code, done.err.splitlines()) == (0, [earlier, lines[2]])
    assert cli_runner.sandbox.state()["projects"][0]["trigger_tokens"][0]["token"] in Path("tokens").read_text()
    assert cli_runner("apply --yes --journal journal").err == ""


def test_a_journal_of_another_service_is_refused(cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    cut_off(cli_runner, "apply --yes --tokens-to tokens --journal journal", writes=1)
    here = cli_runner.sandbox.api_url
    monkeypatch.setenv("RECONCILER_API_URL", here.replace("127.0.0.1", "localhost"))
    done = cli_runner("apply --yes --journal journal")
    assert (done.code, done.out) == (1, "")
    assert done.err.splitlines()[1:] == [
        f"reconciler: journal holds unconfirmed writes to {here}; run there first, or name another journal"
    ]


def test_a_journal_that_another_run_uses_is_refused_before_anything_is_requested(cli_runner: CliRunner) -> None:
    cli_runner.sandbox.clear_log()
    with Journal(Path("journal")):
        done = cli_runner("apply --yes --tokens-to tokens --journal journal")
    assert (done.code, done.out, done.err) == (
        1,
        "",
        "reconciler: journal is in use by another run (Resource temporarily unavailable); wait for its end, or name "
        "another journal\n",
    )
    assert cli_runner.sandbox.log() == []


def apply_with_room(cli_runner: CliRunner, line: str, *, writes: int) -> Ended:
    """Apply on a disk that is full after so many intents in the journal."""
    state = cli_runner.sandbox.state()
    cut_off(cli_runner, "apply --yes --journal journal --tokens-to tokens", writes=writes)
    size = Path("journal").stat().st_size
    Path("journal").unlink()
    cli_runner.sandbox.replace_state(state)
    with no_file_longer_than(size + 5):
        return cli_runner(line)


@pytest.mark.untraced
def test_a_disk_that_fills_up_under_the_journal_ends_the_run_and_loses_no_result(cli_runner: CliRunner) -> None:
    cli_runner.project("{milestones: {a: {}, b: {}, c: {}, d: {}}}")
    done = apply_with_room(cli_runner, "apply --yes --journal journal", writes=2)
    assert done.out == (
        "project acme/api\n"
        '  + milestone "a"                             done\n'
        '  + milestone "b"                             done\n'
        '  + milestone "c"                             failed: journal: File too large\n'
        '  + milestone "d"                             skipped: the journal could not be written, so the run was ended\n'
        "Applied: 2 created, 1 failed, 1 skipped. "
        "5 requests made.\n"
    )
    told = (
        "reconciler: journal: File too large; the journal is incomplete, and the next run with it confirms the rest\n"
    )
    assert (done.code, done.err) == (3, told)
    done = cli_runner("apply --yes --journal journal")
    assert (done.code, done.out.count(" done\n")) == (0, 2)
    assert done.err.splitlines()[1:] == [
        "Unconfirmed write POST projects/acme%2Fapi/milestones (project acme/api, 'b'): it succeeded."
    ]
    cli_runner.project("{milestones: {last: {}}}")
    Path("journal").unlink()
    done = apply_with_room(cli_runner, "apply --yes --journal journal", writes=1)
    assert (done.code, done.out.count(" done\n"), done.err) == (3, 1, told)


def test_an_undelivered_token_is_deleted_again_also_where_the_journal_is_full(cli_runner: CliRunner) -> None:
    cli_runner.project("{trigger_tokens: {t: {}}}")
    done = apply_with_room(cli_runner, "apply --yes --tokens-command false --journal journal", writes=1)
    assert "failed: false ended with exit code 1; the undelivered token 1 was deleted again\n" in done.out
    assert done.code == 3
    assert cli_runner.sandbox.state()["projects"][0]["trigger_tokens"] == []
