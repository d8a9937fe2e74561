"""A refusal of apply is announced by plan, in every format; a permission is saved in the plan that is reviewed."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.cli_runner import BREAK, CliRunner
from tests.states import a_small_service

PRUNED = "{prune: [milestones], milestones: {}}"
FORMATS = ("json", "markdown", "html", "terraform-report", "junit", "codequality", "prometheus")


def written(cli_runner: CliRunner) -> list[str]:
    """Return the deletions, by project."""
    log = cli_runner.sandbox.log()
    return [entry["target"].split("/")[4] for entry in log if entry["method"] == "DELETE"]


def holding(cli_runner: CliRunner, number: int, *projects: int) -> None:
    """Give projects of the state so many milestones, by index."""
    state = a_small_service("deployed")
    for each in projects:
        state["projects"][each]["milestones"] = [{"title": f"m{title}"} for title in range(number)]
    cli_runner.sandbox.replace_state(state)


@pytest.mark.untraced
def test_a_permission_of_the_repository_counts_until_its_last_day(cli_runner: CliRunner) -> None:
    holding(cli_runner, 12, 0)
    cli_runner.project(PRUNED)
    today, refusal = datetime.now(UTC).date(), "apply will refuse this plan: it deletes 12 "
    cli_runner.write("reconciler.yaml", f"allow_deletes: {{count: 12, until: {today - timedelta(days=1)}}}\n")
    ended = cli_runner("plan")
    assert refusal in ended.out
    assert ended.err == (
        f"reconciler.yaml: allow_deletes ended on {today - timedelta(days=1)} and no longer counts; remove it, or set a later "
        "day\n"
    )
    cli_runner.write("reconciler.yaml", f"allow_deletes: {{count: 11, until: {today + timedelta(days=1)}}}\n")
    assert f"{refusal}objects, more than --allow-deletes 11; add --allow-deletes 12" in cli_runner("plan").out
    assert refusal not in cli_runner("plan --allow-deletes 12 --out reviewed.json").out
    cli_runner.write("reconciler.yaml", f"allow_deletes: {{count: 12, until: {today + timedelta(days=1)}}}\n")
    planned = cli_runner("plan --out plan.json")
    assert (refusal in planned.out, json.loads(Path("plan.json").read_text())["limits"]["allow_deletes"]) == (False, 12)
    # a flag wins, and so does the permission of a plan that was reviewed
    assert cli_runner("apply --plan plan.json --yes --allow-deletes 3").code == 1
    cli_runner.write("reconciler.yaml", f"allow_deletes: {{count: 2, until: {today + timedelta(days=1)}}}\n")
    assert written(cli_runner) == []
    assert cli_runner("apply --plan reviewed.json --yes").code == 0
    assert len(written(cli_runner)) == 12


def test_a_permission_that_is_written_wrong_is_refused_at_its_place(cli_runner: CliRunner) -> None:
    cli_runner.write("reconciler.yaml", "allow_deletes:\n  count: many\n  until: soon\n  by: me\n")
    done = cli_runner("plan")
    assert (done.code, [line.partition(": ")[0] for line in done.err.splitlines()]) == (
        1,
        ["reconciler", "reconciler.yaml:3:10", "reconciler.yaml:4:3"],
    )
    assert "reconciler.yaml:2:10: `allow_deletes` " in done.err
    assert "must be a day, such as 2026-12-01" in done.err


def test_a_plan_says_in_every_format_that_apply_will_refuse_it(cli_runner: CliRunner) -> None:
    holding(cli_runner, 12, 0)
    cli_runner.project("{prune: [milestones], milestones: {}, trigger_tokens: {nightly: {}}}")
    files = " ".join(f"--report {name}={name}" for name in FORMATS)
    done = cli_runner(f"plan --max-changes 9 --out plan.json {files}")
    reasons = [
        "it makes 13 changes, more than --max-changes 9",
        "it deletes 12 of 12 entries of milestones of project acme/api; add --allow-deletes 12",
        "it creates 1 trigger token, whose value is shown only once; add --tokens-to FILE or --tokens-command CMD",
    ]
    said = [f"apply will refuse this plan: {reason}" for reason in reasons]
    assert (done.code, done.out.splitlines()[-4:-1], done.err) == (0, said, "")
    texts = {name: Path(name).read_text() for name in FORMATS}
    assert json.loads(texts["json"])["refusals"] == reasons
    assert [line for line in said if f"**`{line}`**\n" not in texts["markdown"]] == []
    assert [line for line in said if f"<p>{line}</p>" not in texts["html"].replace(BREAK, "")] == []
    assert texts["terraform-report"] == '{"create": 1, "update": 0, "delete": 12}\n'
    errors = "\n".join(reasons)
    assert (
        f'name="apply will refuse this plan">\n      <error message="3 reasons" type="error">{errors}</error>'
        in (texts["junit"])
    )
    assert [issue["description"] for issue in json.loads(texts["codequality"])] == said
    assert [issue["location"] for issue in json.loads(texts["codequality"])] == [
        {"path": "manifests/project.yaml", "lines": {"begin": 1}}
    ] * 3
    assert "\nreconciler_plan_refusals 3\n" in texts["prometheus"]
    refused = cli_runner("apply --plan plan.json --yes --quiet")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err == "reconciler: the plan is refused, and nothing was changed: " + "\n".join(reasons) + "\n"
    assert written(cli_runner) == []
    assert cli_runner("show plan.json").out == done.out


@pytest.mark.untraced
def test_what_a_plan_allows_is_shown_in_it_and_apply_goes_by_it(cli_runner: CliRunner) -> None:
    holding(cli_runner, 12, 0)
    cli_runner.project(PRUNED)
    files = " ".join(f"--report {name}={name}" for name in ("markdown", "html"))
    done = cli_runner(f"plan --allow-deletes 12 --out plan.json --quiet {files}")
    allowed = "apply may delete up to 12 objects: --allow-deletes 12"
    assert done.out.splitlines()[0] == allowed
    assert "refuse" not in done.out
    assert f"**`{allowed}`**\n" in Path("markdown").read_text()
    assert f"<p>{allowed}</p>" in Path("html").read_text()
    assert json.loads(Path("plan.json").read_text())["limits"] == {
        "allow_deletes": 12,
        "max_changes": None,
        "max_loosening": None,
    }
    assert "more than --allow-deletes 11; add" in cli_runner("apply --plan plan.json --yes --allow-deletes 11").err
    assert written(cli_runner) == []
    assert cli_runner("apply --plan plan.json --yes").code == 0
    assert len(written(cli_runner)) == 12


@pytest.mark.untraced
def test_shards_of_a_merged_plan_are_guarded_together(cli_runner: CliRunner) -> None:
    holding(cli_runner, 9, 0, 1, 2, 3)
    for name in ("acme/api", "acme/lib", "acme/web", "acme/tools/cli"):
        cli_runner.project(PRUNED, name, f"manifests/{name}.yaml")
    for number in (1, 2, 3):
        cli_runner(f"plan --shard {number}/3 --out plan-{number}.json")
    reason = "it deletes 27 objects, more than 20; add --allow-deletes 27"
    parts = [json.loads(Path(f"plan-{number}.json").read_text()) for number in (1, 2, 3)]
    assert [(part["summary"]["delete"], part["refusals"]) for part in parts] == [
        (27, [reason]),
        (
            9,
            [
                "it deletes 9 objects, more than 6, which is this shard's part of 20; merge all plans, or add --allow-deletes 9"
            ],
        ),
        (0, []),
    ]
    assert cli_runner("apply --plan plan-2.json --yes").code == 1
    merged = cli_runner("merge plan-1.json plan-2.json plan-3.json --out plan.json --quiet")
    whole = "it deletes 36 objects, more than 20; add --allow-deletes 36"
    assert merged.out.splitlines()[0] == f"apply will refuse this plan: {whole}"
    for number in (1, 2, 3):
        refused = cli_runner(f"apply --plan plan.json --shard {number}/3 --yes --quiet")
        assert (refused.code, refused.err) == (
            1,
            f"reconciler: the plan is refused, and nothing was changed: {whole}\n",
        )
    assert written(cli_runner) == []
    cli_runner("merge plan-1.json plan-2.json plan-3.json --out plan.json --allow-deletes 36")
    for number, projects in ((1, ["acme%2Fapi", "acme%2Flib", "acme%2Ftools%2Fcli"]), (2, ["acme%2Fweb"]), (3, [])):
        cli_runner.sandbox.clear_log()
        done = cli_runner(f"apply --plan plan.json --shard {number}/3 --yes --report json=report-{number}.json")
        assert (done.code, done.err) == (0, "")
        deleted = f"{9 * len(projects)} deleted" if projects else "nothing to change"
        assert f"Applied shard {number}/3: {deleted}. " in done.out
        assert sorted(set(written(cli_runner))) == projects
    assert "\nApplied: 36 deleted. " in cli_runner("merge report-1.json report-2.json report-3.json").out
    again = cli_runner("apply --plan plan-1.json --shard 1/3 --yes --allow-deletes 27")
    assert (again.code, again.err) == (
        64,
        "reconciler: plan-1.json is the plan of shard 1/3 alone; merge the plans of all shards\n",
    )
