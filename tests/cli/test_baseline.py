"""`drift --baseline`: only what is new counts; everything else is one line."""

import json
from pathlib import Path

import pytest

from tests.cli_runner import CliRunner

SPEC = '{milestones: {"1": {due_date: 2026-12-31}, "2": {state: closed}, gone: null}, trigger_tokens: {}}'


@pytest.fixture(autouse=True)
def _service(cli_runner: CliRunner) -> None:
    """A project in which three things differ, one of them a second time in another project."""
    cli_runner.service(milestones=[{"title": "2"}, {"title": "gone"}])
    cli_runner.project(SPEC)


def change(cli_runner: CliRunner, path: str, **fields: object) -> None:
    """Play somebody who changes a project by hand."""
    state = cli_runner.sandbox.state()
    next(each for each in state["projects"] if each["path"] == path).update(fields)
    cli_runner.sandbox.replace_state(state)


@pytest.mark.untraced
def test_only_what_is_new_counts_and_the_rest_is_one_line(cli_runner: CliRunner) -> None:
    assert cli_runner("drift --report json=first.json").code == 2
    cli_runner.sandbox.clear_log()
    done = cli_runner("drift --baseline first.json --report json=second.json --report markdown=drift.md")
    assert (done.code, done.out, done.err) == (0, "Nothing new: 3 changes as in the baseline.\n", "")
    assert [each["method"] for each in cli_runner.sandbox.log()] == ["GET"] * 2
    made = "2 requests were made to plan.\nRead from "
    assert Path("drift.md").read_text().startswith(f"## Nothing new: 3 changes as in the baseline\n\n{made}")
    first, second = (json.loads(Path(file).read_text()) for file in ("first.json", "second.json"))
    assert (first["targets"], first["summary"]) == (second["targets"], second["summary"])
    assert cli_runner("drift --baseline first.json --quiet").out == ""
    assert json.loads(cli_runner("drift --baseline first.json --format json").out)["summary"] == first["summary"]

    change(cli_runner, "acme/api", milestones=[{"title": "2", "id": 1}, {"title": "1", "due_date": "2027-01-01"}])
    done = cli_runner("drift --baseline second.json --report terraform-report=tf.json --report json=third.json")
    assert (done.code, done.err) == (2, "")
    assert done.out == (
        "project acme/api\n"
        '  ~ milestone "1"                             due_date: 2027-01-01 -> 2026-12-31     manifests/project.yaml:4\n'
        "1 change as in the baseline\n"
        "New: 1 to update. 1 write to apply; 2 requests were made to "
        "plan.\n"
    )
    assert Path("tf.json").read_text() == '{"create": 0, "update": 1, "delete": 0}\n'
    assert json.loads(Path("third.json").read_text())["summary"]["update"] == 2
    assert cli_runner("drift --baseline third.json").out == "Nothing new: 2 changes as in the baseline.\n"

    change(cli_runner, "acme/api", milestones=[{"title": "2", "id": 1}, {"title": "1", "due_date": "2027-01-02"}])
    assert cli_runner("drift --baseline third.json").code == 2, "a value that has moved once more is new"


@pytest.mark.untraced
def test_problems_count_like_changes_do(cli_runner: CliRunner) -> None:
    change(cli_runner, "acme/api", builds_enabled=False)
    cli_runner.project('{milestones: {"1": {}}, trigger_tokens: {a: {}}}')
    assert cli_runner("drift --report json=first.json").code == 2
    done = cli_runner("drift --baseline first.json")
    assert (done.code, done.out) == (
        0,
        "Nothing new: 1 change as in the baseline, 1 problem and 2 unmanaged objects.\n",
    )
    cli_runner.project('{milestones: {"2": {}}, trigger_tokens: {a: {}}}')
    done = cli_runner("drift --baseline first.json")
    assert (done.code, done.out) == (0, "Nothing new: 1 problem as in the baseline, and 1 unmanaged object.\n")
    change(cli_runner, "acme/api", issues_enabled=False, merge_requests_enabled=False)
    done = cli_runner("drift --baseline first.json")
    assert (done.code, done.out.splitlines()[0]) == (3, "project acme/api")
    assert done.out.splitlines()[2].startswith("1 problem as in the baseline")
    assert cli_runner("drift --baseline first.json --allow-problems").code == 0


@pytest.mark.untraced
def test_unmanaged_objects_are_told_once_and_no_drift(cli_runner: CliRunner) -> None:
    tokens = [{"description": name, "id": number, "owner": "ada"} for number, name in enumerate("aabc", 70)]
    cli_runner.service(trigger_tokens=tokens, milestones=[{"title": "old"}])
    grants = (
        "4 unmanaged objects grant access: 4 in trigger_tokens; declare them, or write prune: [trigger_tokens] to delete "
        'them; 2 have the name of another (such as trigger token "a" of project acme/api), and cannot be declared: '
        "rename or delete such objects on the service\n"
    )
    first = cli_runner("drift --report json=first.json").out
    assert (grants in first, ", 5 unmanaged. " in first) == (True, True)
    done = cli_runner("drift --baseline first.json")
    assert (done.code, done.out) == (0, "Nothing new: 2 changes as in the baseline, and 5 unmanaged objects.\n")

    change(cli_runner, "acme/api", trigger_tokens=[*tokens[1:], {"description": "a", "id": 80, "owner": "ada"}])
    done = cli_runner("drift --baseline first.json --report json=second.json")
    another = "1 unmanaged object grants access: 1 in trigger_tokens; declare it, or write prune: [trigger_tokens] to delete it\n"
    assert (done.code, done.out) == (
        0,
        f"Nothing new: 2 changes as in the baseline, and 4 unmanaged objects.\n{another}",
    )
    assert cli_runner("drift --baseline first.json --quiet").out == ""
    assert (
        cli_runner("drift --baseline second.json").out
        == "Nothing new: 2 changes as in the baseline, and 5 unmanaged objects.\n"
    )
    cli_runner.project(SPEC.replace("gone", "never"))
    cli_runner.project("{milestones: {new: {}}}", "acme/lib", "manifests/lib.yaml")
    done = cli_runner("drift --baseline first.json")
    assert (done.code, done.out) == (
        2,
        "project acme/lib\n"
        '  + milestone "new"     manifests/lib.yaml:4\n'
        "2 changes as in the baseline, and 4 unmanaged objects\n"
        "1 unmanaged object grants access: 1 in trigger_tokens; declare it, or write prune: [trigger_tokens] to delete it\n"
        "New: 1 to create, 1 unmanaged. 1 write to apply; 4 requests were made to "
        "plan.\n",
    )
    cli_runner.project(SPEC)
    (cli_runner.folder / "manifests/lib.yaml").unlink()
    cli_runner.project('{milestones: {"old": {}}, trigger_tokens: {}}')
    assert cli_runner("drift --baseline first.json").out == another
    assert cli_runner("drift --baseline second.json").out == ""


@pytest.mark.untraced
def test_two_of_a_name_are_not_one_of_it(cli_runner: CliRunner) -> None:
    """An object that was deleted and came back is another one, and so is a second one of its name."""
    token = {"description": "legacy", "id": 71, "owner": "ada"}
    cli_runner.service(trigger_tokens=[token])
    cli_runner.project("{trigger_tokens: {legacy: null}}")
    assert cli_runner("drift --report json=first.json").code == 2
    assert cli_runner("drift --baseline first.json").code == 0
    change(cli_runner, "acme/api", trigger_tokens=[token | {"id": 72}])
    assert cli_runner("drift --baseline first.json").code == 2
    change(cli_runner, "acme/api", trigger_tokens=[token, token | {"id": 72}])
    done = cli_runner("drift --baseline first.json")
    assert (done.code, done.out.count("legacy"), "1 change as in the baseline" in done.out) == (2, 1, True)


def test_without_the_file_everything_is_new_and_a_broken_one_is_an_error(cli_runner: CliRunner) -> None:
    done = cli_runner("drift --baseline none.json")
    assert (done.code, done.err) == (
        2,
        "none.json does not exist; without a baseline everything is new: check the path, or write it: reconciler drift "
        "--report json=none.json\n",
    )
    assert done.out.splitlines()[-1].startswith("Plan: 1 to create, 1 to update, 1 to delete")
    cli_runner.sandbox.clear_log()
    cli_runner.write("broken.json", "{")
    assert (done := cli_runner("drift --baseline broken.json")).code == 1
    write = "plan --out FILE and drift --report json=FILE write one"
    assert done.err == f"reconciler: broken.json: not a saved plan: line 1, column 2 is not JSON; {write}\n"
    assert cli_runner("drift --baseline manifests").err == "reconciler: manifests: Is a directory; name a file in it\n"
    assert cli_runner.sandbox.log() == []
    cli_runner("drift --report json=first.json")
    assert (done := cli_runner("drift --baseline first.json --report json=first.json")).code == 64
    assert "--baseline and --report json name the same file: first.json" in done.err


@pytest.mark.parametrize("version", [1, 2, 3])
def test_with_a_baseline_of_an_older_format_everything_is_new(cli_runner: CliRunner, version: int) -> None:
    assert cli_runner("drift --report json=first.json").code == 2
    text = Path("first.json").read_text()
    cli_runner.write("first.json", text.replace("reconciler.plan/v4", f"reconciler.plan/v{version}"))
    done = cli_runner("drift --quiet --baseline first.json")
    older = "first.json was written by an older reconciler; without a baseline everything is new\n"
    assert (done.code, done.err) == (2, older)
    assert done.out.splitlines()[-1].startswith("Plan: 1 to create, 1 to update, 1 to delete")
    cli_runner.write("first.json", text.replace("reconciler.plan/v4", "reconciler.plan/v5"))
    assert "was made by a newer reconciler" in cli_runner("drift --baseline first.json").err


def test_a_baseline_of_another_service_is_refused(cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    cli_runner("drift --report json=first.json")
    here = cli_runner.sandbox.api_url
    monkeypatch.setenv("RECONCILER_API_URL", there := here.replace("127.0.0.1", "localhost"))
    done = cli_runner("drift --baseline first.json")
    assert (done.code, done.err) == (
        1,
        f"reconciler: first.json: the baseline is about '{here}', and this is '{there}'\n",
    )


def test_a_likely_rename_is_told_once(cli_runner: CliRunner) -> None:
    cli_runner.service(milestones=[{"title": "Nov 2026"}])
    cli_runner.project('{prune: [milestones], milestones: {"nov-2026": {}}}')
    assert "looks like a rename" in cli_runner("drift --report json=first.json").out
    assert "looks like a rename" not in cli_runner("drift --baseline first.json --format markdown").out
    cli_runner.service(milestones=[{"title": "NOV 2026", "id": 9}])
    assert "looks like a rename" not in cli_runner("drift --baseline first.json").out
    cli_runner.project('{prune: [milestones], milestones: {"nov_2026": {}}}')
    assert "looks like a rename" in cli_runner("drift --baseline first.json").out


def test_a_plan_in_order_is_silent_and_so_is_what_was_known_and_is_gone(cli_runner: CliRunner) -> None:
    cli_runner("drift --report json=first.json")
    cli_runner("apply --yes")
    done = cli_runner("drift --baseline first.json")
    assert (done.code, done.out, done.err) == (0, "", "")
