"""`export` on the command line: into an empty folder, again, and over manifests that people wrote."""

from pathlib import Path

import pytest

from tests.cli_runner import CliRunner

WRITTEN = """\
# Kept by the payments team.
apiVersion: reconciler/v1
kind: Project
metadata: {path: acme/api}   # the API
spec:
  milestones:
    # the next one
    soon: {due_date: 2026-01-01}
    gone: {}   # was here
  job_token_scope:
    projects:
      - acme/lib   # first
      - acme/gone
---
apiVersion: reconciler/v1
kind: Profile
metadata: {name: other}
spec: {}
"""


@pytest.fixture(autouse=True)
def _service(cli_runner: CliRunner) -> None:
    cli_runner.service(
        milestones=[{"title": "soon", "due_date": "2026-12-31"}, {"title": 'a: "b"\n'}, {"title": "1.10"}],
        job_token_scope={"inbound_enabled": True, "project_allowlist": [101, 102]},
        trigger_tokens=[{"description": "t", "owner": "ada"}, {"description": "t", "owner": "ada"}],
    )


@pytest.mark.untraced
def test_what_is_exported_plans_empty_and_is_the_same_again(cli_runner: CliRunner) -> None:
    done = cli_runner("export --group acme --user -o out")
    assert done.code == 0
    assert sorted(done.out.split()) == sorted(str(path) for path in Path("out").rglob("*.yaml"))
    texts = {path: path.read_text() for path in Path("out").rglob("*.yaml")}
    assert cli_runner("drift out").code == 0
    assert cli_runner("export --group acme --user -o out").out == ""
    assert {path: path.read_text() for path in Path("out").rglob("*.yaml")} == texts


@pytest.mark.untraced
def test_what_people_wrote_is_updated_in_place_and_keeps_its_comments(cli_runner: CliRunner) -> None:
    file = cli_runner.write("out/payments.yaml", WRITTEN)
    done = cli_runner("export --project acme/api -o out")
    assert (done.code, done.out) == (0, "out/payments.yaml\n")
    text = file.read_text()
    assert "# Kept by the payments team." in text
    assert "# the next one" in text
    assert "# first" in text
    assert "gone" not in text
    assert "kind: Profile" in text
    assert "trigger_tokens" not in text
    assert cli_runner("drift out").code == 0


def test_nothing_asked_for_and_nothing_known_are_wrong_command_lines(cli_runner: CliRunner) -> None:
    assert (
        cli_runner("export -o out").err
        == "reconciler: nothing to export: give --group, --project, --user or --instance\n"
    )
    wrong = cli_runner("export --user -o out --section nonsense")
    assert (wrong.code, wrong.err.startswith("reconciler: unknown section `nonsense`; known are ")) == (64, True)


def test_what_cannot_be_read_at_all_is_no_success(cli_runner: CliRunner) -> None:
    done = cli_runner("export --project acme/none -o out")
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        "reconciler: GET projects/acme%2Fnone: 404 Project Not Found: no such project, or not visible to this token; "
        "correct the path, or use a token that can see it\n"
    )


def test_editors_find_the_schema_of_each_document_that_is_written(cli_runner: CliRunner) -> None:
    assert cli_runner("export --project acme/api --section milestones -o out").code == 0
    without = Path("out/acme/api.yaml").read_text()
    assert cli_runner("schema --write schemas").code == 0
    assert cli_runner("export --group acme --section milestones -o there").code == 0
    assert Path("there/acme/tools/cli.yaml").read_text().splitlines()[0] == (
        "# yaml-language-server: $schema=../../../schemas/manifest.schema.json"
    )
    line = "# yaml-language-server: $schema=../../schemas/manifest.schema.json\n"
    assert Path("there/acme/api.yaml").read_text() == line + without
    other = "apiVersion: reconciler/v1\nkind: Project\nmetadata: {path: acme/%s}\n"
    own = "# yaml-language-server: $schema=../elsewhere.json\n"
    cli_runner.write("mixed/acme/api.yaml", own + other % "lib")
    cli_runner.write("mixed/acme/web.yaml", other % "gone")
    assert cli_runner("export --project acme/api --project acme/web --section milestones -o mixed").code == 0
    assert Path("mixed/acme/api.yaml").read_text() == own + other % "lib" + "---\n" + own + without
    assert "yaml-language-server" not in Path("mixed/acme/web.yaml").read_text()


@pytest.mark.untraced
def test_the_way_to_the_schema_stays_when_a_document_is_updated(cli_runner: CliRunner) -> None:
    line = "# yaml-language-server: $schema=../schemas/manifest.schema.json\n"
    document = "apiVersion: reconciler/v1\nkind: Project\nmetadata: {path: acme/%s}\nspec:\n  milestones:\n    soon: {due_date: %s}\n"
    first = line + document.replace("soon", "none") % ("lib", "2026-01-01")
    file = cli_runner.write("out/two.yaml", f"{first}---\n{line}{document % ('api', '2026-01-01')}")
    assert cli_runner("export --project acme/api -o out").code == 0
    assert file.read_text().startswith(f"{first}---\n{line}{document % ('api', '2026-12-31')}")


def test_what_a_document_creates_stays_as_it_is_written(cli_runner: CliRunner) -> None:
    cli_runner.service(milestones=[{"title": "1.0", "description": "theirs"}])
    text = (
        "apiVersion: reconciler/v1\nkind: Project\nmetadata: {path: acme/api}\n"
        "create: {import: {github: {repo_id: 5, token_env: GITHUB_TOKEN}}}  # it was one\n"
        "spec:\n  milestones:\n    '1.0': {description: mine}\n"
        "---\napiVersion: reconciler/v1\nkind: Group\nmetadata: {path: acme/team}\ncreate: {from_archive: team.gz}\n"
    )
    cli_runner.write("manifests/all.yaml", text)
    assert cli_runner("export --group acme --section milestones --output manifests").code == 0
    files = {
        path.relative_to(cli_runner.folder / "manifests").as_posix(): path.read_text()
        for path in sorted((cli_runner.folder / "manifests").rglob("*.yaml"))
    }
    assert files.pop("all.yaml") == text.replace("mine", "theirs")
    assert not any("create" in each for each in files.values())


LONG = "a" * 252


def awkward(cli_runner: CliRunner) -> None:
    """A project with a long name, and a subgroup that is called like the file of a project."""
    state = cli_runner.sandbox.state()
    milestones = [{"title": "m", "due_date": "2026-12-31"}]
    owner = [{"user": "ada", "role": "owner"}]
    state["groups"] += [
        {"id": number, "path": f"acme/{path}", "members": owner}
        for number, path in ((90, "api.yaml"), (91, LONG + "bc"))
    ]
    paths = (f"acme/{LONG}", f"acme/{LONG}b", "acme/api.yaml/inner", f"acme/{LONG}bc/inner")
    state["projects"] += [
        {"id": 900 + number, "path": path, "milestones": milestones} for number, path in enumerate(paths)
    ]
    cli_runner.sandbox.replace_state(state)


def test_names_that_no_file_can_have_get_another(cli_runner: CliRunner) -> None:
    awkward(cli_runner)
    done = cli_runner("export --group acme -o out")
    assert done.code == 0
    written = [path.removeprefix("out/acme/") for path in done.out.split()]
    assert {"api.yaml", "api.yaml_/inner.yaml", f"{LONG}bc/inner.yaml"} < {*written}
    assert sorted(len(path) for path in written if path.startswith("aaa")) == [255, 255, 265]
    assert cli_runner("drift out").code == 0
    assert cli_runner("export --group acme -o out").out == ""
    for line in ("export --group acme --as-set -o set", "init --group acme"):
        assert cli_runner(line).code == 0
        assert cli_runner(f"drift {line.rpartition(' -o ')[2] if '-o' in line else 'manifests'}").code == 0


@pytest.mark.untraced
def test_what_deviates_is_accepted_into_files_that_can_be(cli_runner: CliRunner) -> None:
    awkward(cli_runner)
    cli_runner.write(
        "manifests/all.yaml",
        "apiVersion: reconciler/v1\nkind: ProjectSet\nmetadata: {name: all}\nselect: {group: acme}\n"
        "spec: {milestones: {m: {due_date: 2027-01-31}}}\n",
    )
    done = cli_runner("accept")
    assert done.code == 0
    written = {path.removeprefix("manifests/acme/") for path in done.out.split()}
    assert {"api.yaml", "api.yaml_/inner.yaml", f"{LONG}bc/inner.yaml"} < written
    assert cli_runner("drift").code == 0


def test_a_new_file_is_never_another_one_but_for_case(cli_runner: CliRunner) -> None:
    other = "apiVersion: reconciler/v1\nkind: Profile\nmetadata: {name: other}\nspec: {}\n"
    for folder in ("out", "manifests"):
        cli_runner.write(f"{folder}/acme/API.yaml", other)
        cli_runner.write(f"{folder}/acme/lib.yaml", other.replace("other", "lib"))
    assert cli_runner("export --project acme/api --project acme/lib -o out").out == (
        "out/acme/api-f1cb3b3e.yaml\nout/acme/lib.yaml\n"
    )
    cli_runner.write(
        "manifests/all.yaml",
        "apiVersion: reconciler/v1\nkind: ProjectSet\nmetadata: {name: all}\nselect: {projects: [acme/api, acme/lib]}\n"
        "spec: {milestones: {soon: {due_date: 2027-01-31}}}\n",
    )
    assert cli_runner("accept").out == "manifests/acme/api-f1cb3b3e.yaml\nmanifests/acme/lib.yaml\n"
    assert cli_runner("drift").code == 0
