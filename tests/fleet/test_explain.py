"""`render --explain`: which file:line sets a field."""

import pytest

from tests.cli_runner import CliRunner

LAYERS = """\
apiVersion: reconciler/v1
kind: Profile
metadata: {name: base}
spec:
  approval_settings:
    allow_author_approval: true
  job_token_scope:
    projects: [acme/lib]
  milestones:
    "2026.12": {description: "a\\tb"}
---
apiVersion: reconciler/v1
kind: ProjectSet
metadata: {name: all, profiles: [base]}
select: {group: acme}
spec:
  prune: [milestones]
  approval_settings: {allow_author_approval: true}
  job_token_scope: {projects: [acme/web]}
"""


@pytest.fixture(autouse=True)
def _layers(cli_runner: CliRunner) -> None:
    cli_runner.write("manifests/base.yaml", LAYERS)
    cli_runner.project("{approval_settings: {allow_author_approval: false}}")


def test_the_layers_of_a_field_lowest_first_and_the_winner_marked(cli_runner: CliRunner) -> None:
    done = cli_runner("render --target acme/api --explain approval_settings.allow_author_approval")
    assert (done.code, done.err) == (0, "")
    assert done.out == (
        "project acme/api: approval_settings.allow_author_approval\n"
        "    manifests/base.yaml:6     true\n"
        "    manifests/base.yaml:18    true\n"
        "  * manifests/project.yaml:4  false\n"
    )


def test_layers_that_unite_all_count(cli_runner: CliRunner) -> None:
    assert cli_runner("render --explain job_token_scope.projects").out == (
        "project acme/api: job_token_scope.projects\n"
        '  * manifests/base.yaml:8   ["acme/lib"]\n'
        '  * manifests/base.yaml:19  ["acme/web"]\n'
    )


def test_keys_may_hold_dots_and_whole_sections_can_be_explained(cli_runner: CliRunner) -> None:
    assert cli_runner("render --explain milestones.2026.12.description").out == (
        'project acme/api: milestones.2026.12.description\n  * manifests/base.yaml:10  "a\\tb"\n'
    )
    assert cli_runner("render --explain prune").out == (
        'project acme/api: prune\n  * manifests/base.yaml:17  ["milestones"]\n'
    )


def test_a_project_that_only_a_set_is_about_can_be_named_and_nobody_is_asked(
    cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RECONCILER_API_URL")
    assert cli_runner("render --target Acme/new/project --explain approval_settings.allow_author_approval").out == (
        "project Acme/new/project: approval_settings.allow_author_approval\n"
        "    manifests/base.yaml:6   true\n"
        "  * manifests/base.yaml:18  true\n"
    )
    assert cli_runner("render --target acme/new --section approval_settings").out == (
        "apiVersion: reconciler/v1\nkind: Project\nmetadata:\n  path: acme/new\n"
        "spec:\n  approval_settings:\n    allow_author_approval: true\n"
    )
    assert cli_runner("render --target other/new").code == 1
    assert cli_runner("render --target acme/n*").code == 1


def test_where_there_are_only_sets_it_is_said_how_to_see_a_project(cli_runner: CliRunner) -> None:
    cli_runner.write(
        "only/set.yaml",
        "apiVersion: reconciler/v1\nkind: ProjectSet\nmetadata: {name: all}\nselect: {group: acme}\n"
        "spec: {milestones: {a: {}}}\n",
    )
    done = cli_runner("render only")
    assert (done.code, done.out, done.err) == (
        0,
        "",
        "Only sets were read, for projects of acme; to see one, name it in full: --target GROUP/PROJECT\n",
    )
    assert cli_runner("validate only").out == "Valid: 1 document: 1 set.\n"
    assert cli_runner("render only --quiet").err == ""


def test_a_field_that_nobody_sets(cli_runner: CliRunner) -> None:
    done = cli_runner("render --explain approval_settings.nonsense")
    assert (done.code, done.out) == (64, "")
    assert done.err == "reconciler: no manifest sets approval_settings.nonsense for the selected targets\n"


OF_GROUP = """\
apiVersion: reconciler/v1
kind: Group
metadata: {path: acme}
spec:
  protected_branches: {main: {}, "release/1.0": {}, old: null}
"""


def test_rules_that_the_documents_of_groups_above_declare_are_named_where_they_hold_too(cli_runner: CliRunner) -> None:
    """`render` asks nothing of the service: `plan --verbose` names those that no document declares."""
    cli_runner.write("manifests/group.yaml", OF_GROUP)
    cli_runner.project("{protected_branches: {main: {allow_force_push: false}}}")
    main, release = (
        f'  also holds here: "{name}" of group acme (manifests/group.yaml:5)\n' for name in ("main", "release/1.0")
    )
    assert cli_runner("render --target acme/api --explain protected_branches").out == (
        'project acme/api: protected_branches\n  * manifests/project.yaml:4  {"main": {"allow_force_push": false}}\n'
        f"{main}{release}"
    )
    assert cli_runner("render --target acme/api --explain protected_branches.main.allow_force_push").out == (
        f"project acme/api: protected_branches.main.allow_force_push\n  * manifests/project.yaml:4  false\n{main}"
    )
    assert cli_runner("render --target acme/api --explain protected_branches.release/1.0").out == (
        f"project acme/api: protected_branches.release/1.0\n{release}"
    )
