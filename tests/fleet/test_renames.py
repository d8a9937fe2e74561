"""Plans that delete an object and create a similar one: most often somebody has renamed it without `renamed_from`."""

import json
from pathlib import Path

import pytest

from tests.cli_runner import BREAK, CliRunner
from tests.fleet.repository import Repository
from tests.items import findings_of
from tests.states import a_small_service

PROFILE = """\
apiVersion: reconciler/v1
kind: Profile
metadata: {name: base}
spec:
  prune: [milestones, trigger_tokens, container_repository_protection_rules]
  milestones:
    "2027.1": {due_date: 2027-01-29}
  trigger_tokens: {nightly: {}}
  container_repository_protection_rules:
    "{path}/prod*": {minimum_access_level_for_push: maintainer}
"""

PROJECTS = ("acme/api", "acme/lib", "acme/web")


@pytest.mark.parametrize("dialect", ["deployed", "spec"])
def test_a_rename_in_a_profile_is_said_once_with_the_line_to_write(
    cli_runner: CliRunner, git: Repository, dialect: str
) -> None:
    cli_runner.sandbox.replace_state(a_small_service(dialect))
    cli_runner.write("manifests/base.yaml", PROFILE)
    for path in PROJECTS:
        name = path.rpartition("/")[2]
        text = f"apiVersion: reconciler/v1\nkind: Project\nmetadata: {{path: {path}, profiles: [base]}}\n"
        cli_runner.write(f"manifests/{name}.yaml", text)
    git.commit()
    assert cli_runner("apply --yes --tokens-to tokens --quiet").code == 0

    renamed = PROFILE.replace('"2027.1"', '"2027.01"').replace("nightly", "each-night").replace("prod", "prd")
    cli_runner.write("manifests/base.yaml", renamed)
    cli_runner.write(
        "manifests/lib.yaml",
        "apiVersion: reconciler/v1\nkind: Project\nmetadata: {path: acme/lib, profiles: [base]}\n"
        'spec: {milestones: {"2027.01": {description: of our own}}}\n',
    )
    done = cli_runner("plan --since HEAD --allow-deletes 9 --out plan.json")
    hints = [
        'milestone "2027.01" of 3 targets looks like a rename: add renamed_from: "2027.1" at manifests/base.yaml:7',
        'trigger token "each-night" of 3 targets looks like a rename: add renamed_from: "nightly" at manifests/base.yaml:8',
        'protection rule "{path}/prd*" of 3 targets looks like a rename: add renamed_from: '
        '"{path}/prod*" at manifests/base.yaml:10',
    ]
    assert done.code == 0
    assert done.out.splitlines()[-6:-3] == hints
    saved = json.loads(cli_runner("show plan.json --format json").out)
    renames = findings_of(saved, "rename")
    assert [each["data"]["renamed_from"] for each in renames] == [["2027.1"], ["nightly"], ["{path}/prod*"]]
    assert renames[2] == {
        "target": None,
        "section": "",
        "title": "",
        "name": None,
        "finding": "rename",
        "field": None,
        "reason": "looks like a rename",
        "fix": "",
        "data": {
            "section": "container_repository_protection_rules",
            "title": "protection rule",
            "name": "{path}/prd*",
            "renamed_from": ["{path}/prod*"],
            "targets": 3,
        },
        "origin": "manifests/base.yaml:10",
    }
    note = cli_runner("show plan.json --format markdown").out
    assert "### 3 possible renames\n\n" + "".join(f"- `{hint}`\n" for hint in hints) in note
    page = cli_runner("show plan.json --format html").out.replace(BREAK, "")
    assert "renamed_from: &#34;{path}/prod*&#34; at manifests/base.yaml:10" in page
    quality = json.loads(cli_runner("show plan.json --format codequality").out)
    assert [(each["description"], each["severity"], each["location"]["lines"]) for each in quality[1:]] == [
        (hint, "minor", {"begin": line}) for hint, line in zip(hints, (7, 8, 10), strict=True)
    ]

    # as the hints say
    cli_runner.write(
        "manifests/base.yaml",
        renamed.replace("{due_date", '{renamed_from: "2027.1", due_date')
        .replace("each-night: {}", 'each-night: {renamed_from: "nightly"}')
        .replace("{minimum", '{renamed_from: "{path}/prod*", minimum'),
    )
    done = cli_runner("plan --since HEAD")
    assert done.code == 0
    assert "looks like a rename" not in done.out
    assert "\nPlan: 9 to update. " in done.out


def test_the_hints_of_shards_are_one(cli_runner: CliRunner) -> None:
    cli_runner.service(milestones=[{"title": "2027.1"}])
    cli_runner.write(
        "manifests/set.yaml",
        "apiVersion: reconciler/v1\nkind: ProjectSet\nmetadata: {name: all}\n"
        "select: {projects: [acme/api, acme/web]}\nspec: {prune: [milestones], milestones: {'2027.01': {}}}\n",
    )
    state = cli_runner.sandbox.state()
    state["projects"][2]["milestones"] = [{"title": "2027-1"}]
    cli_runner.sandbox.replace_state(state)
    whole = cli_runner("plan")
    assert (
        'milestone "2027.01" of 2 targets looks like a rename: add renamed_from: ["2027-1", "2027.1"] '
        "at manifests/set.yaml:5\n" in whole.out
    )
    assert cli_runner("plan --shard 1/2 --out 1.json").code == 0
    assert cli_runner("plan --shard 2/2 --out 2.json").code == 0
    merged = cli_runner("merge 1.json 2.json --out plan.json")
    assert merged.out == whole.out
    parts = [len(findings_of(json.loads(Path(f"{number}.json").read_text()), "rename")) for number in (1, 2)]
    assert parts == [1, 1]


def test_no_advice_is_one_that_validate_refuses(cli_runner: CliRunner) -> None:
    """A regular approval rule is of another sort than that of any approver, which is never renamed."""
    rule = {"id": 1, "name": "Old", "rule_type": "regular", "approvals_required": 1, "users": ["ada"]}
    cli_runner.service(approval_rules=[rule])
    cli_runner.project("\n  prune: [approval_rules]\n  approval_rules: {any_approver: {approvals_required: 1}}")
    done = cli_runner("plan")
    assert (done.code, "looks like a rename" in done.out) == (0, False)
    cli_runner.project(
        "\n  prune: [approval_rules]\n  approval_rules: {Older: {approvals_required: 1, users: [ada], branches: any}}"
    )
    assert 'approval rule "Older" looks like a rename: add renamed_from: "Old" at manifests/project.yaml:6' in (
        cli_runner("plan").out
    )
    cli_runner.project(
        "\n  prune: [approval_rules]\n  approval_rules:\n    any_approver: {approvals_required: 1, renamed_from: Old}"
    )
    assert "`any_approver` is another sort of approval rule" in cli_runner("validate").out


def test_no_advice_names_what_another_item_is_renamed_from(cli_runner: CliRunner) -> None:
    cli_runner.service(milestones=[{"id": 1, "title": "v1.0"}, {"id": 2, "title": "Next"}])
    spec = "\n  prune: [milestones]\n  milestones:\n    v-1.0: {}\n    Next: {%s}"
    cli_runner.project(spec % "")
    assert 'milestone "v-1.0" looks like a rename: add renamed_from: "v1.0"' in cli_runner("plan").out
    cli_runner.project(spec % "renamed_from: v1.0")
    done = cli_runner("plan")
    assert ('+ milestone "v-1.0"' in done.out, "looks like a rename" in done.out) == (True, False)
