"""A group becomes one set with one profile, and documents only for what deviates."""

from pathlib import Path
from typing import Any

import pytest

from reconciler.sandbox import generate
from tests.cli_runner import CliRunner
from tests.export.exporting import contents
from tests.states import a_small_service

RULES = "container_repository_protection_rules"
HEAD = "apiVersion: reconciler/v1\nkind: Project\nmetadata: {path: %s}\nspec:\n"


def project(number: int, path: str, **others: Any) -> dict[str, Any]:
    """Return a project like all others, except for some contents."""
    name = path.rpartition("/")[2]
    return {
        "id": number,
        "path": path,
        "milestones": [
            {"title": "2027.1", "due_date": "2027-01-29", "description": f"Release of {path}"},
            {"title": "{name}"},
        ],
        "trigger_tokens": [{"description": f"deploy-{name}", "owner": "ada"}],
        RULES: [{"repository_path_pattern": f"{path}/prod*", "minimum_access_level_for_push": "owner"}],
        "job_token_scope": {"inbound_enabled": True, "group_allowlist": [10], "project_allowlist": [100]},
        **others,
    }


def service(dialect: str, *projects: dict[str, Any]) -> dict[str, Any]:
    """Return a state with projects that share nearly everything, and some more."""
    groups = {"group_allowlist": [], "project_allowlist": [100], "inbound_enabled": True}
    alike = [project(100 + number, f"acme/tools/p{number}") for number in range(4)]
    odd = [
        project(110, "acme/web", notification_settings={"ada": {"level": "watch"}}, trigger_tokens=[]),
        project(111, "acme/lib", job_token_scope=groups),
        project(112, "acme/old", archived=True),
        project(113, "acme/more", milestones=[{"title": "2027.1", "due_date": "2027-02-26"}]),
    ]
    return a_small_service(dialect) | {"projects": [*alike, *odd, *projects]}


@pytest.mark.untraced
def test_what_projects_share_is_said_once_and_the_rest_where_it_differs(cli_runner: CliRunner, dialect: str) -> None:
    cli_runner.sandbox.replace_state(service(dialect))
    sections = f"--section milestones --section trigger_tokens --section {RULES} --section job_token_scope"
    done = cli_runner(f"export --group acme --as-set -o out {sections} --section notification_settings")
    assert done.code == 0
    assert done.err == "8 targets exported; 6 files written; 1 archived project left out.\n"
    assert contents(Path("out")) == {
        "acme.yaml": "apiVersion: reconciler/v1\nkind: Group\nmetadata: {path: acme}\nspec:\n"
        "  notification_settings: {level: global}\n  milestones: {}\n",
        "acme.profile.yaml": """\
apiVersion: reconciler/v1
kind: Profile
metadata: {name: acme}
spec:
  notification_settings: {level: global}
  container_repository_protection_rules:
    "{path}/prod*": {minimum_access_level_for_push: owner, minimum_access_level_for_delete: null}
  job_token_scope: {enabled: true, projects: [acme/tools/p0], groups: [acme]}
  milestones:
    "2027.1": {description: "Release of {path}", due_date: 2027-01-29}
    "{{name}}": {}
  trigger_tokens: {"deploy-{name}": {}}
""",
        "acme.set.yaml": """\
apiVersion: reconciler/v1
kind: ProjectSet
metadata: {name: acme, profiles: [acme]}
select: {group: acme, exclude: [acme/lib]}
""",
        "acme/lib.yaml": HEAD % "acme/lib"
        + """\
  notification_settings: {level: global}
  container_repository_protection_rules:
    acme/lib/prod*: {minimum_access_level_for_push: owner, minimum_access_level_for_delete: null}
  job_token_scope: {enabled: true, projects: [acme/tools/p0]}
  milestones:
    "2027.1": {description: Release of acme/lib, due_date: 2027-01-29}
    "{{name}}": {}
  trigger_tokens: {deploy-lib: {}}
""",
        "acme/more.yaml": HEAD % "acme/more"
        + """\
  milestones:
    "2027.1": {description: null, due_date: 2027-02-26}
    "{{name}}": null
""",
        "acme/web.yaml": HEAD % "acme/web"
        + """\
  notification_settings: {level: watch}
  trigger_tokens: {"deploy-{name}": null}
""",
    }
    drift = cli_runner("drift out")
    assert (drift.code, drift.out) == (0, "")
    assert "reach itself" not in drift.err  # p0 is on the list of all, and of itself
    before = contents(Path("out"))
    assert cli_runner(f"export --group acme --as-set -o out {sections} --section notification_settings").out == ""
    assert contents(Path("out")) == before


@pytest.mark.untraced
def test_a_project_that_cannot_have_a_section_is_in_the_set_unless_it_deviates(
    cli_runner: CliRunner, dialect: str
) -> None:
    bare = project(120, "acme/bare", container_registry_enabled=False)
    both = project(121, "acme/both", container_registry_enabled=False, milestones=[])
    cli_runner.sandbox.replace_state(service(dialect, bare, both))
    asked = f"export --group acme --as-set -o out --section milestones --section {RULES}"
    assert cli_runner(asked).code == 0
    files = contents(Path("out"))
    assert '"{path}/prod*"' in files["acme.profile.yaml"]
    assert "exclude: [acme/both]" in files["acme.set.yaml"]
    assert files["acme/both.yaml"] == HEAD.removesuffix("\n") % "acme/both" + " {milestones: {}}\n"
    assert "acme/bare.yaml" not in files
    drift = cli_runner("drift out")
    assert (drift.code, drift.out) == (0, "")
    assert cli_runner("plan out --quiet").out.startswith("No changes: 10 targets are in order, 1 not applicable. ")
    assert cli_runner(asked).out == ""


def lines(folder: str) -> int:
    return sum(text.count("\n") for text in contents(Path(folder)).values())


@pytest.mark.untraced
def test_a_messy_group_of_forty_projects_takes_two_fifths_of_the_lines(cli_runner: CliRunner) -> None:
    state = generate(40, 0)
    state["instance"]["dialect"] = "deployed"
    cli_runner.sandbox.replace_state(state)
    assert cli_runner("export --group acme --hoist -o hoisted").code == 0
    for folder, prune, share in (("out", "", 0.43), ("pruned", "--prune", 0.46)):
        assert cli_runner(f"export --group acme --as-set -o {folder} {prune}").code == 0
        assert lines(folder) <= share * lines("hoisted")
        drift = cli_runner(f"drift {folder}")
        assert (drift.code, drift.out) == (0, "")
        before = contents(Path(folder))
        assert cli_runner(f"export --group acme --as-set -o {folder} {prune}").out == ""
        assert contents(Path(folder)) == before


@pytest.mark.untraced
def test_what_a_set_prunes_is_deleted_and_what_no_manifest_can_declare_is_not(cli_runner: CliRunner) -> None:
    twice = [{"description": "t", "owner": "ada"}, {"description": "t", "owner": "ada"}]
    state = service("deployed", project(114, "acme/api", trigger_tokens=twice))
    cli_runner.sandbox.replace_state(state)
    asked = "export --group acme --as-set --prune -o out --section milestones --section trigger_tokens"
    assert cli_runner(asked).code == 0
    files = contents(Path("out"))
    assert files["acme.profile.yaml"].splitlines()[4] == "  prune: [milestones, trigger_tokens]"
    assert files["acme/api.yaml"].startswith(HEAD % "acme/api" + "  prune: [milestones]\n")
    assert cli_runner("drift out").code == 0
    for each in state["projects"]:
        each["milestones"] = [*each["milestones"], {"title": "by hand"}]
    cli_runner.sandbox.replace_state(state)
    plan = cli_runner("plan out --quiet")
    assert plan.out.startswith("Plan: 8 to delete, 2 unmanaged. ")


@pytest.mark.untraced
def test_what_all_but_one_have_is_in_the_profile_even_if_no_manifest_can_say_it_of_the_one(
    cli_runner: CliRunner,
) -> None:
    alike = {"milestones": [{"title": "1", "due_date": "2026-05-01"}], "trigger_tokens": [{"description": "t"}]}
    token = {"description": "t", "owner": "ada"}
    twice = {"id": 300, "path": "acme/twice", "trigger_tokens": [token, token], "milestones": alike["milestones"]}
    contradictory = [{"title": "1", "start_date": "2026-06-01", "due_date": "2026-05-01"}]
    odd = {"id": 301, "path": "acme/odd", "trigger_tokens": [token], "milestones": contradictory}
    many = [
        {"id": 200 + number, "path": f"acme/p{number}", "milestones": alike["milestones"], "trigger_tokens": [token]}
        for number in range(20)
    ]
    cli_runner.sandbox.replace_state(a_small_service("deployed") | {"projects": [*many, twice, odd]})
    asked = "export --group acme --as-set -o out --section milestones --section trigger_tokens"
    assert cli_runner(asked).code == 0
    files = contents(Path("out"))
    assert [*files] == ["acme/odd.yaml", "acme/twice.yaml", "acme.profile.yaml", "acme.set.yaml", "acme.yaml"]
    assert files["acme.profile.yaml"].endswith(
        '  milestones:\n    "1": {due_date: 2026-05-01}\n  trigger_tokens: {t: {}}\n'
    )
    assert "exclude: [acme/odd, acme/twice]" in files["acme.set.yaml"]
    drift = cli_runner("drift out")
    assert (drift.code, drift.out) == (0, "")


def test_a_value_that_no_two_have_is_not_in_the_profile(cli_runner: CliRunner) -> None:
    projects = [
        {"id": 200 + number, "path": f"acme/p{number}", "notification_settings": {"ada": {"level": level}}}
        for number, level in enumerate(("watch", "mention", "disabled"))
    ]
    cli_runner.sandbox.replace_state(a_small_service("deployed") | {"projects": projects})
    assert (
        cli_runner("export --group acme --as-set -o out --section notification_settings --section milestones").code == 0
    )
    files = contents(Path("out"))
    assert files["acme.profile.yaml"].endswith("spec: {milestones: {}}\n")
    assert files["acme/p0.yaml"].endswith("spec:\n  notification_settings: {level: watch}\n")


def test_nothing_is_written_through_a_link(cli_runner: CliRunner, tmp_path: Path) -> None:
    cli_runner.sandbox.replace_state(service("deployed"))
    outside = tmp_path / "outside"
    outside.mkdir()
    Path("out").mkdir()
    Path("out/acme").symlink_to(outside)
    done = cli_runner("export --group acme -o out --section milestones")
    assert (done.code, done.out) == (1, "")
    assert "a symbolic link leads there: change the file that it leads to; nothing was written" in done.err
    assert [*outside.iterdir()] == []
    assert [*Path("out").iterdir()] == [Path("out/acme")]


@pytest.mark.untraced
def test_all_fields_are_written_if_that_is_asked_for(cli_runner: CliRunner) -> None:
    cli_runner.sandbox.replace_state(service("deployed"))
    assert cli_runner("export --group acme --as-set --all-fields -o out --section milestones").code == 0
    assert (
        '    "{{name}}": {description: null, start_date: null, due_date: null, state: active}\n'
        in (contents(Path("out"))["acme.profile.yaml"])
    )


def test_later_exports_keep_profile_and_set_and_let_projects_deviate_or_leave(cli_runner: CliRunner) -> None:
    cli_runner.sandbox.replace_state(service("deployed"))
    asked = f"export --group acme --as-set -o out --section milestones --section {RULES} --section job_token_scope"
    assert cli_runner(asked).code == 0
    before = contents(Path("out"))
    new = project(120, "acme/new", milestones=[])
    state = service("deployed", new)
    by_path = {each["path"]: each for each in state["projects"]}
    by_path["acme/tools/p1"]["milestones"] = []
    by_path["acme/tools/p2"]["job_token_scope"] = {"inbound_enabled": True}
    by_path["acme/more"]["job_token_scope"] = {"inbound_enabled": False}
    cli_runner.sandbox.replace_state(state)
    assert cli_runner(asked).code == 0
    files = contents(Path("out"))
    assert {name for name in files if files[name] != before.get(name)} == {
        "acme/more.yaml",
        "acme/new.yaml",
        "acme/tools/p1.yaml",
        "acme/tools/p2.yaml",
        "acme.set.yaml",
    }
    gone = '  milestones: {"2027.1": null, "{{name}}": null}\n'
    assert files["acme/new.yaml"] == HEAD % "acme/new" + gone
    assert files["acme/tools/p1.yaml"] == HEAD % "acme/tools/p1" + gone
    assert files["acme.set.yaml"].endswith("exclude: [acme/lib, acme/more, acme/tools/p2]}\n")
    drift = cli_runner("drift out")
    assert (drift.code, drift.out) == (0, "")


def test_each_of_several_groups_becomes_a_set_unless_another_one_contains_it(cli_runner: CliRunner) -> None:
    state = service("deployed", project(120, "partners/shop"), project(121, "partners/till"))
    state["groups"].append({"id": 20, "path": "partners", "members": [{"user": "ada", "role": "owner"}]})
    cli_runner.sandbox.replace_state(state)
    sections = f"--section milestones --section trigger_tokens --section {RULES}"
    groups = "--group partners --group acme/tools --group acme"
    done = cli_runner(f"export {groups} --as-set -o out {sections}")
    assert (done.code, done.err) == (0, "12 targets exported; 9 files written; 1 archived project left out.\n")
    assert set(contents(Path("out"))) == {
        *("acme.yaml", "acme.profile.yaml", "acme.set.yaml", "acme/more.yaml", "acme/tools.yaml", "acme/web.yaml"),
        *("partners.yaml", "partners.profile.yaml", "partners.set.yaml"),
    }
    assert cli_runner("drift out").code == 0
    assert cli_runner(f"export {groups} --as-set -o out {sections}").out == ""


@pytest.mark.untraced
def test_a_project_whose_path_no_manifest_takes_is_not_in_the_set(cli_runner: CliRunner) -> None:
    cli_runner.sandbox.replace_state(service("deployed", {"id": 121, "path": "acme/odd path"}))
    assert cli_runner(f"export --group acme --as-set -o out --section {RULES}").code == 0
    files = contents(Path("out"))
    assert "exclude: [acme/odd path]" in files["acme.set.yaml"]
    assert "id: 121" in files["project-121.yaml"]
    assert cli_runner("drift out").code == 0


@pytest.mark.untraced
def test_projects_that_other_manifests_cover_are_not_in_the_set(cli_runner: CliRunner) -> None:
    cli_runner.sandbox.replace_state(service("deployed"))
    theirs = cli_runner.write(
        "out/theirs.yaml",
        "apiVersion: reconciler/v1\nkind: ProjectSet\nmetadata: {name: theirs}\n"
        "select: {projects: [acme/tools/p3]}\nspec: {milestones: {}}\n---\n"
        "apiVersion: reconciler/v1\nkind: Project\nmetadata: {path: acme/web}\nspec: {milestones: {}}\n",
    )
    assert cli_runner("export --group acme --as-set -o out --section milestones").code == 0
    files = contents(Path("out"))
    assert 'spec: {milestones: {"2027.1": {description: Release of acme/web,' in theirs.read_text()
    assert "exclude: [acme/tools/p3, acme/web]" in files["acme.set.yaml"]
    assert "2027.1" in files["acme/tools/p3.yaml"]
    assert cli_runner("drift out").code == 0


def test_a_profile_of_that_name_is_used_as_it_is(cli_runner: CliRunner) -> None:
    cli_runner.sandbox.replace_state(service("deployed"))
    profile = "apiVersion: reconciler/v1\nkind: Profile\nmetadata: {name: acme}\nspec: {milestones: {}}\n"
    cli_runner.write("out/p.yaml", profile)
    assert cli_runner("export --group acme --as-set -o out --section milestones").code == 0
    files = contents(Path("out"))
    assert files["p.yaml"] == profile
    assert "acme.set.yaml" in files
    assert "acme.profile.yaml" not in files
    assert "2027.1" in files["acme/tools/p3.yaml"]


def test_a_group_with_nothing_to_share_has_no_set(cli_runner: CliRunner) -> None:
    cli_runner.sandbox.replace_state(service("deployed"))
    assert cli_runner("export --group acme/tools --as-set -o out --section epics").code == 0
    assert [*contents(Path("out"))] == ["acme/tools.yaml"]
    cli_runner.sandbox.replace_state(a_small_service("deployed"))
    assert cli_runner("export --group acme/tools --user --as-set -o one").code == 0
    assert [*contents(Path("one"))] == ["acme/tools/cli.yaml", "acme/tools.yaml", "user.yaml"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--user --as-set", "--as-set needs --group"),
        ("--group a --as-set --hoist", "--as-set and --hoist exclude each other"),
        ("--group a --prune", "--prune needs --as-set"),
        ("--group a --all-fields", "--all-fields needs --as-set"),
    ],
)
def test_options_that_do_not_go_together_are_refused(cli_runner: CliRunner, line: str, message: str) -> None:
    done = cli_runner(f"export -o out {line}")
    assert (done.code, message in done.err) == (64, True)
