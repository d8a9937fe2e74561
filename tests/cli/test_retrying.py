"""`--retry-failed` and `--journal` on the command line."""

from pathlib import Path

import pytest

from tests.desk import Desk


@pytest.fixture(autouse=True)
def _service(desk: Desk) -> None:
    desk.project("{milestones: {a: {}, taken: {}}, trigger_tokens: {t: {}}}")


def take(desk: Desk, *titles: str) -> None:
    state = desk.sandbox.state()
    state["groups"][0]["milestones"] = [{"title": title} for title in titles]
    desk.sandbox.replace_state(state)


def test_only_what_failed_is_planned_and_applied_again(desk: Desk) -> None:
    take(desk, "taken")
    assert desk("apply --yes --tokens-to tokens --report json=report.json").code == 3
    take(desk)
    desk.project("{milestones: {a: {description: changed since}, taken: {}, new: {}}, trigger_tokens: {t: {}}}")
    desk.sandbox.clear_log()
    planned = desk("plan --retry-failed report.json")
    assert planned.code == 0
    assert planned.out == (
        'project acme/api\n  + milestone "taken"\n'
        "Plan: 1 to create, 0 to update, 0 to delete, 0 problems, 0 unmanaged. 1 write to apply; 1 request was made to plan.\n"
    )
    assert [entry["target"].partition("?")[0] for entry in desk.sandbox.log()] == [
        "/api/v4/projects/acme%2Fapi/milestones"
    ]
    assert desk("apply --yes --retry-failed report.json").code == 0
    titles = [each["title"] for each in desk.sandbox.state()["projects"][0]["milestones"]]
    assert sorted(titles) == ["a", "taken"]


def test_a_report_of_which_nothing_failed_leaves_nothing_to_plan(desk: Desk) -> None:
    assert desk("apply --yes --tokens-to tokens --report json=report.json").code == 0
    done = desk("apply --yes --retry-failed report.json")
    assert (done.code, done.err) == (0, "Nothing failed in report.json.\n")


def test_a_report_that_is_none_is_refused(desk: Desk) -> None:
    assert desk("plan --retry-failed none.json").err == "reconciler: none.json: No such file or directory\n"
    desk.write("report.json", "{}")
    assert desk("plan --retry-failed report.json").code == 1


def test_a_saved_plan_is_carried_out_whole(desk: Desk) -> None:
    done = desk("apply --plan plan.json --section milestones")
    assert (done.code, done.err) == (
        64,
        "reconciler: apply carries out a saved plan whole; narrow it when it is made\n",
    )


def test_a_configured_folder_does_not_stand_in_the_way_of_a_saved_plan(desk: Desk) -> None:
    desk.write("reconciler.yaml", "paths: [manifests]\n")
    assert desk("plan --out plan.json").code == 0
    assert desk("apply --plan plan.json --yes --tokens-to tokens").code == 0


def test_a_journal_of_runs_that_ended_says_nothing_and_keeps_no_secret(desk: Desk) -> None:
    assert desk("apply --yes --tokens-to tokens --journal journal").err == ""
    assert desk("apply --yes --journal journal").err == ""
    text = Path("journal").read_text()
    assert text.count('"event": "begin"') == text.count('"event": "end"') == 2
    assert text.count('"event": "intent"') == text.count('"status": "done"') == 3
    assert Path("journal").stat().st_mode & 0o777 == 0o600
    assert "glptt" not in text
    assert "ada-token" not in text


def test_a_journal_that_cannot_be_kept_is_refused_before_anything_is_written(desk: Desk) -> None:
    desk.sandbox.clear_log()
    done = desk("apply --yes --tokens-to tokens --journal none/journal")
    assert (done.code, done.out, done.err) == (1, "", "reconciler: none/journal: No such file or directory\n")
    assert {entry["method"] for entry in desk.sandbox.log()} == {"GET"}
