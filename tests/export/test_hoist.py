"""Settings that most projects share move to a profile; the rest stays in the document of each project."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli_runner import CliRunner
from tests.export.exporting import contents
from tests.states import a_small_service

RULES = "container_repository_protection_rules"
ALIKE = {
    "milestones": [{"title": "1.0", "due_date": "2026-12-31"}, {"title": "{name} {x}", "description": "{{path}}"}],
    "job_token_scope": {"inbound_enabled": True, "group_allowlist": [10, 11]},
}


def service(cli_runner: CliRunner, **others: dict[str, Any]) -> None:
    """Set up projects that share everything except the contents given by name; `odd` exists only if given."""
    state = a_small_service("deployed")
    state["projects"].append({"id": 104, "path": "acme/more"})
    for project in state["projects"]:
        name = project["path"].rpartition("/")[2]
        rule = {"repository_path_pattern": f"{project['path']}/prod*", "minimum_access_level_for_push": "owner"}
        project |= {**ALIKE, RULES: [rule], **others.get(name, {})}
    if "odd" in others:
        state["projects"].append({"id": 777, "path": "acme/odd path"} | others["odd"])
    cli_runner.sandbox.replace_state(state)


def hoisted(cli_runner: CliRunner, *sections: str, line: str = "--hoist") -> dict[str, str]:
    """Export with a profile, check that it plans empty and repeats itself, and return the files."""
    asked = " ".join(f"--section {section}" for section in sections)
    done = cli_runner(f"export --group acme -o out {line} {asked}")
    assert done.code == 0
    files = dict(contents(Path("out")))
    drift = cli_runner("drift out")
    assert (drift.code, drift.out) == (0, "")
    assert cli_runner(f"export --group acme -o out {line} {asked}").out == ""
    return files


def document(path: str, spec: str, profile: str = "baseline") -> str:
    envelope = f"apiVersion: reconciler/v1\nkind: Project\nmetadata:\n  path: {path}\n"
    return f"{envelope}  profiles:\n    - {profile}\nspec:{spec}"


@pytest.mark.untraced
def test_what_all_share_is_said_once_with_placeholders_for_their_paths(cli_runner: CliRunner) -> None:
    service(cli_runner)
    files = hoisted(cli_runner, "milestones", RULES, "job_token_scope", line="--hoist=common")
    assert files.pop("profiles/common.yaml") == (
        """\
apiVersion: reconciler/v1
kind: Profile
metadata:
  name: common
spec:
  container_repository_protection_rules:
    "{path}/prod*":
      minimum_access_level_for_push: owner
      minimum_access_level_for_delete: null
  job_token_scope:
    enabled: true
    groups:
      - acme
      - acme/tools
  milestones:
    "1.0":
      description: null
      start_date: null
      due_date: 2026-12-31
      state: active
    "{{name}} {x}":
      description: "{{{path}}}"
      start_date: null
      due_date: null
      state: active
"""
    )
    assert files.pop("acme.yaml").endswith("spec:\n  milestones: {}\n")
    assert files == {
        f"{path}.yaml": document(path, " {}\n", "common")
        for path in ("acme/api", "acme/lib", "acme/more", "acme/tools/cli", "acme/web")
    }


def test_one_of_five_may_differ_and_says_how(cli_runner: CliRunner) -> None:
    service(cli_runner, web={"milestones": [{"title": "1.0", "due_date": "2027-01-31"}, {"title": "webs"}]})
    files = hoisted(cli_runner, "milestones")
    assert files["acme/api.yaml"] == document("acme/api", " {}\n")
    assert files["acme/web.yaml"] == document(
        "acme/web",
        """
  milestones:
    "1.0":
      due_date: 2027-01-31
    "{{name}} {x}": null
    webs:
      description: null
      start_date: null
      due_date: null
      state: active
""",
    )


@pytest.mark.untraced
def test_two_of_five_are_too_many(cli_runner: CliRunner) -> None:
    other = {"milestones": [{"title": "2.0"}]}
    service(cli_runner, web=other, api=other)
    files = hoisted(cli_runner, "milestones")
    assert "profiles/baseline.yaml" not in files
    assert files["acme/web.yaml"].startswith(
        "apiVersion: reconciler/v1\nkind: Project\nmetadata:\n  path: acme/web\nspec:"
    )


@pytest.mark.untraced
def test_what_a_document_could_not_take_back_must_be_common_to_all(cli_runner: CliRunner) -> None:
    service(cli_runner, web={"job_token_scope": {"inbound_enabled": True, "group_allowlist": [10]}})
    files = hoisted(cli_runner, "job_token_scope")
    assert files["profiles/baseline.yaml"].endswith("    enabled: true\n    groups:\n      - acme\n")
    assert files["acme/api.yaml"].endswith("    groups:\n      - acme/tools\n")


@pytest.mark.untraced
def test_one_of_which_a_shared_section_cannot_be_read_stays_without_the_profile(cli_runner: CliRunner) -> None:
    service(cli_runner, web={"container_registry_enabled": False})
    done = cli_runner(f"export --group acme -o out --hoist --section milestones --section {RULES}")
    assert done.code == 0
    assert "container_repository_protection_rules of project acme/web is left out: cannot be read" in done.err
    files = contents(Path("out"))
    assert files["acme/web.yaml"].startswith(
        "apiVersion: reconciler/v1\nkind: Project\nmetadata:\n  path: acme/web\nspec:\n  milestones:\n"
    )
    assert [name for name, text in files.items() if "- baseline" in text] == [
        "acme/api.yaml",
        "acme/lib.yaml",
        "acme/more.yaml",
        "acme/tools/cli.yaml",
    ]
    assert cli_runner("drift out").code == 0


def test_settings_that_hold_settings_are_shared_one_by_one(cli_runner: CliRunner) -> None:
    def events(failed: bool) -> dict[str, Any]:
        level = {"level": "custom", "events": {"new_issue": True, "failed_pipeline": failed}}
        return {"notification_settings": {"ada": level}}

    service(cli_runner, api=events(True), lib=events(True), more=events(True), web=events(True), cli=events(False))
    files = hoisted(cli_runner, "notification_settings")
    assert "\n      failed_pipeline: true\n" in files["profiles/baseline.yaml"]
    assert files["acme/api.yaml"] == document("acme/api", " {}\n")
    assert files["acme/tools/cli.yaml"] == document(
        "acme/tools/cli", "\n  notification_settings:\n    events:\n      failed_pipeline: false\n"
    )


@pytest.mark.untraced
def test_a_pattern_that_is_not_below_the_project_is_shared_as_it_is(cli_runner: CliRunner) -> None:
    rule = {RULES: [{"repository_path_pattern": "acme/old/x*", "minimum_access_level_for_push": "owner"}]}
    service(cli_runner, api=rule, lib=rule, more=rule, web=rule, cli=rule)
    assert hoisted(cli_runner, RULES)["acme/api.yaml"]


@pytest.mark.untraced
def test_one_that_goes_by_its_number_has_no_path_to_fill_in(cli_runner: CliRunner) -> None:
    service(cli_runner, odd={RULES: []})
    files = hoisted(cli_runner, RULES)
    assert "{path}/prod*" in files["profiles/baseline.yaml"]
    assert "profiles" not in files["project-777.yaml"]


@pytest.mark.untraced
def test_a_profile_that_is_there_is_used_as_it_is(cli_runner: CliRunner) -> None:
    service(cli_runner)
    profile = cli_runner.write(
        "out/mine.yaml",
        "apiVersion: reconciler/v1\nkind: Profile\nmetadata: {name: baseline}\n"
        'spec: {milestones: {"1.0": {due_date: 2026-12-31}}}\n',
    )
    before = profile.read_text()
    files = hoisted(cli_runner, "milestones")
    assert files["mine.yaml"] == before
    assert files["acme/api.yaml"] == document(
        "acme/api",
        """
  milestones:
    "1.0":
      description: null
      start_date: null
      state: active
    "{{name}} {x}":
      description: "{{{path}}}"
      start_date: null
      due_date: null
      state: active
""",
    )


@pytest.mark.parametrize(
    ("section", "spec"),
    [
        ("job_token_scope", "{job_token_scope: {groups: [acme/none]}}"),
        ("notification_settings", "{notification_settings: {notification_email: ada@example.com}}"),
        ("milestones", "{milestones: {}, epics: {}}"),
    ],
    ids=["what a document cannot take back", "what only a user has", "what only a group has"],
)
def test_a_profile_that_does_not_go_with_what_is_live_is_left_alone(
    cli_runner: CliRunner, section: str, spec: str
) -> None:
    service(cli_runner)
    cli_runner.write(
        "out/x.yaml", f"apiVersion: reconciler/v1\nkind: Profile\nmetadata: {{name: baseline}}\nspec: {spec}\n"
    )
    files = hoisted(cli_runner, section)
    assert [name for name, text in files.items() if "- baseline" in text] == []


def test_a_profile_whose_names_come_to_the_same_for_one_project_is_left_alone_there(cli_runner: CliRunner) -> None:
    service(cli_runner)
    spec = '{milestones: {"{name}": null, api: null}}'
    cli_runner.write(
        "out/x.yaml", f"apiVersion: reconciler/v1\nkind: Profile\nmetadata: {{name: baseline}}\nspec: {spec}\n"
    )
    files = hoisted(cli_runner, "milestones")
    assert "- baseline" in files["acme/web.yaml"]
    assert "- baseline" not in files["acme/api.yaml"]


def test_a_profile_that_prunes_what_no_manifest_can_say_is_overruled(cli_runner: CliRunner) -> None:
    twice = {"trigger_tokens": [{"description": "t", "owner": "ada"}, {"description": "t", "owner": "ada"}]}
    service(cli_runner, api=twice)
    spec = "{trigger_tokens: {}, prune: [trigger_tokens]}"
    cli_runner.write(
        "out/x.yaml", f"apiVersion: reconciler/v1\nkind: Profile\nmetadata: {{name: baseline}}\nspec: {spec}\n"
    )
    files = hoisted(cli_runner, "trigger_tokens")
    assert files["acme/api.yaml"] == document("acme/api", "\n  prune: []\n")
    assert files["acme/lib.yaml"] == document("acme/lib", " {}\n")


@pytest.mark.untraced
def test_projects_that_have_documents_are_not_asked_to_share(cli_runner: CliRunner) -> None:
    service(cli_runner)
    text = "apiVersion: reconciler/v1\nkind: Project\nmetadata: {path: acme/api}\nspec: {}\n"
    cli_runner.write("out/own.yaml", text)
    files = hoisted(cli_runner, "job_token_scope")
    assert files["own.yaml"] != text
    assert "profiles" not in files["own.yaml"]
    assert "- baseline" in files["acme/web.yaml"]


@pytest.mark.parametrize("name", ["a/b", "ä", "a b", ""])
def test_the_name_of_a_profile_is_also_that_of_a_file(cli_runner: CliRunner, name: str) -> None:
    done = cli_runner("export --user -o out", "--hoist", name)
    assert done.code == 64
    assert "takes a name of letters, digits, - and _" in done.err
