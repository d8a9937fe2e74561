"""`init`: an empty folder becomes a repository of manifests; files that exist are left alone."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from reconciler import __version__
from reconciler.sandbox import generate
from tests.cli_runner import CliRunner
from tests.export.exporting import contents
from tests.fleet.repository import repository

ROOT = Path(__file__).parent.parent.parent

SCAFFOLD = [
    ".gitignore",
    ".gitlab-ci.yml",
    ".pre-commit-config.yaml",
    ".vscode/settings.json",
    "manifests/baseline.yaml",
    "reconciler.yaml",
    "schemas/config.schema.json",
    "schemas/manifest.schema.json",
]

NEW_PROJECT = "Next, with the URL of an empty project that will hold this repository:"

COMMIT = 'git init && git remote add origin URL && git add . && git commit --message "The settings as they are"'

SWITCHED_OFF = "switched off in the project: CI/CD; switch CI/CD on, or leave the section out"

MUST_BE_THERE = [
    "Before the first pipeline, these must be on the service that runs it:",
    f"  the component  $CI_SERVER_FQDN/tools/reconciler/gitops@v{__version__}",
    f"  the image      $CI_REGISTRY/tools/reconciler:{__version__}",
]


@pytest.fixture(autouse=True)
def _empty_folder(cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    cli_runner.service(milestones=[{"title": "1.0"}])
    Path("repository").mkdir()
    monkeypatch.chdir("repository")


def test_an_empty_folder_becomes_a_valid_repository_without_a_service(
    cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RECONCILER_API_URL")
    monkeypatch.delenv("RECONCILER_TOKEN")
    done = cli_runner("init")
    assert done.code == 0
    assert done.out.splitlines() == [
        ".gitignore",
        ".gitlab-ci.yml",
        ".pre-commit-config.yaml",
        "reconciler.yaml",
        ".vscode/: 1 file",
        "manifests/: 1 file",
        "schemas/: 2 files",
    ]
    assert done.err.splitlines() == [
        "8 files written.",
        *MUST_BE_THERE,
        NEW_PROJECT,
        "  reconciler export --group GROUP --as-set -o manifests",
        f"  {COMMIT}",
        "  reconciler plan",
    ]
    assert [line.rpartition(" ")[2] in contents(Path())[".gitlab-ci.yml"] for line in MUST_BE_THERE[1:]] == [True, True]
    assert sorted(contents(Path())) == SCAFFOLD
    assert cli_runner("validate").out == "Valid: 1 document: 1 profile.\n"
    assert cli_runner("schema --check schemas").code == 0
    files = contents(Path())
    assert files["reconciler.yaml"].splitlines()[1:6] == [
        "# api_url: https://gitlab.example.com/api/v4",
        "paths: manifests",
        "# Each apply records the objects that these manifests created or declare, on the branch reconciler/applied.",
        "# An item that is removed from them later is deleted.",
        "inventory: {remote: origin}",
    ]
    _, _, undecided = files["reconciler.yaml"].partition("Worth deciding")
    keys = [line.removeprefix("# ").partition(":")[0] for line in undecided.splitlines()[1:]]
    assert keys == ["tokens_command", "baseline", "issue", "allow_problems", "concurrency", "rate", "values"]
    cli_runner.write(
        "repository/reconciler.yaml", "".join(line.removeprefix("# ") + "\n" for line in undecided.splitlines()[1:])
    )
    values = cli_runner.write("repository/values.yaml", "{}\n")
    assert cli_runner("validate").code == 0
    values.unlink()
    cli_runner.write("repository/reconciler.yaml", files["reconciler.yaml"])
    assert set(json.loads(files[".vscode/settings.json"])["yaml.schemas"]) == set(SCAFFOLD[6:])
    again = cli_runner("init")
    assert (again.code, again.out) == (0, "")
    assert again.err.splitlines() == [
        *(f"{name} exists and is left as it is" for name in SCAFFOLD if name != "manifests/baseline.yaml"),
        "0 files written.",
    ]
    assert contents(Path()) == files


@pytest.mark.untraced
def test_with_a_group_the_manifests_are_what_export_writes_and_plan_empty(cli_runner: CliRunner, dialect: str) -> None:
    state = cli_runner.sandbox.state()
    state["instance"]["dialect"] = dialect
    state["projects"].append({"id": 900, "path": "acme/old", "archived": True})
    cli_runner.sandbox.replace_state(state)
    done = cli_runner("init --group acme --components platform/reconciler")
    assert done.code == 0
    assert "5 targets exported; 11 files written; 1 archived project left out.\n" in done.err
    files = contents(Path())
    assert (
        f"api_url: {cli_runner.sandbox.api_url}\n".replace("http:", '"http:').replace("v4\n", 'v4"\n')
        in (files["reconciler.yaml"])
    )
    assert f"$CI_SERVER_FQDN/platform/reconciler/gitops@v{__version__}\n" in files[".gitlab-ci.yml"]
    assert f'image: "$CI_REGISTRY/platform/reconciler:{__version__}"\n' in files[".gitlab-ci.yml"]
    drift = cli_runner("drift")
    assert (drift.code, drift.out) == (0, "")
    assert cli_runner("export --group acme --as-set -o ../elsewhere/manifests").code == 0
    assert contents(Path("../elsewhere/manifests")) == contents(Path("manifests"))


def test_several_groups_are_what_export_writes_of_them(cli_runner: CliRunner) -> None:
    state = cli_runner.sandbox.state()
    days = {"created_at": "2024-02-01T08:00:00.000Z", "updated_at": "2025-09-01T08:00:00.000Z"}
    partners = {
        "id": 20,
        "path": "partners",
        "members": [{"user": "ada", "role": "owner"}],
        "epics": [{"title": "Roadmap"}, {"title": "Roadmap", **days}],
    }
    state["groups"].append(partners)
    double = [
        {"description": "t", "created_at": "2025-03-01T08:00:00.000Z", "last_used": "2026-01-02T08:00:00.000Z"},
        {"description": "t", "created_at": "2025-04-01T08:00:00.000Z"},
        {"description": " ", "created_at": "2025-05-01T08:00:00.000Z"},
    ]
    state["projects"] += [
        {"id": 200, "path": "partners/shop", "builds_enabled": False},
        {"id": 201, "path": "partners/till", "trigger_tokens": [{**each, "owner": "ada"} for each in double]},
    ]
    cli_runner.sandbox.replace_state(state)
    repository(Path("../origin"))
    repository(Path()).git("remote", "add", "origin", "../origin")
    done = cli_runner("init --group acme --group partners")
    assert done.code == 0
    assert done.err.splitlines()[1:] == [
        "Not in the manifests, one by one in init-left-out.md:",
        "  trigger_tokens of project partners/shop is left out: cannot be read: switched off in the project: CI/CD; switch "
        "CI/CD on, or leave the section out",
        "  1 epic of group partners: several of one name, where a manifest declares one: rename or delete the others, "
        "then export again",
        "  1 trigger token of project partners/till: a description must not be blank",
        "  1 trigger token of project partners/till: several of one name, where a manifest declares one: rename or delete "
        "the others, then export again",
        *MUST_BE_THERE,
        "Next:",
        '  git add . && git commit --message "The settings as they are"',
        "  reconciler plan",
    ]
    assert (
        contents(Path())["init-left-out.md"]
        == f"""\
# Live, and not in the manifests

## `trigger_tokens of project partners/shop is left out: cannot be read: {SWITCHED_OFF}`

    trigger_tokens of project partners/shop is left out: cannot be read: {SWITCHED_OFF}

## `1 epic of group partners: several of one name, where a manifest declares one: rename or delete the others, then \
export again`

    epic "Roadmap" of group partners is left out: 2 objects have this name (IDs 1, 2); expected one; rename or delete the \
others
      ID 1: created 2026-01-01
      ID 2: created 2024-02-01, last changed 2025-09-01

## `1 trigger token of project partners/till: a description must not be blank`

    trigger token " " (ID 3) of project partners/till is left out: a description must not be blank
      ID 3: of ada, created 2025-05-01, no use of it is recorded

## `1 trigger token of project partners/till: several of one name, where a manifest declares one: rename or delete the \
others, then export again`

    trigger token "t" of project partners/till is left out: 2 objects have this name (IDs 1, 2); expected one; rename or \
delete the others
      ID 1: of ada, created 2025-03-01, last used 2026-01-02
      ID 2: of ada, created 2025-04-01, no use of it is recorded
"""
    )
    drift = cli_runner("drift")
    assert (drift.code, drift.out) == (0, "")
    assert cli_runner("export --group acme --group partners --as-set -o ../elsewhere/manifests").code == 0
    assert contents(Path("../elsewhere/manifests")) == contents(Path("manifests"))
    assert {"acme.set.yaml", "partners.set.yaml", "partners.yaml"} <= {*contents(Path("manifests"))}


@pytest.mark.untraced
def test_the_next_steps_lead_from_an_empty_folder_to_an_empty_plan(cli_runner: CliRunner) -> None:
    assert cli_runner("init --group acme").err.splitlines()[-6:] == [
        *MUST_BE_THERE,
        NEW_PROJECT,
        f"  {COMMIT}",
        "  reconciler plan",
    ]
    before = cli_runner("plan --detailed-exitcode")
    assert (before.code, before.err) == (0, "")
    git = repository(Path())
    git.commit("The settings as they are")
    lacking = cli_runner("plan")
    assert (lacking.code, lacking.err) == (0, "")
    assert lacking.out.splitlines()[0] == (
        "There is no inventory yet, since this repository has no remote: `git remote add origin URL` before the first "
        "apply."
    )
    assert cli_runner("log").out == "No apply is recorded yet.\n"
    assert cli_runner("apply --yes").err == (
        f"reconciler: inventory: remote: {Path().resolve()} has no remote 'origin': add it (git remote add origin URL), "
        "or name one that `git remote` lists; without `remote`, the inventory is kept in this clone alone; or go on "
        "without an inventory: --no-inventory\n"
    )
    assert cli_runner("plan --detailed-exitcode --no-inventory").out == before.out
    git.git("init", "--quiet", "--bare", "../origin.git")
    git.git("remote", "add", "origin", "../origin.git")
    planned = cli_runner("plan --detailed-exitcode")
    assert (planned.code, planned.err) == (0, "")
    assert planned.out.startswith("There is no inventory yet. ")
    assert cli_runner("apply --yes").code == 0
    assert git.git("ls-remote", "origin").endswith("\trefs/heads/reconciler/applied")


@pytest.mark.untraced
def test_a_repository_that_says_where_its_inventory_is_needs_no_remote_for_it(
    cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("reconciler.yaml").write_text("inventory: false\n")
    assert cli_runner("init --group acme").err.splitlines()[-3] == "Next:"
    Path("reconciler.yaml").unlink()
    Path(".gitignore").unlink()
    repository(Path())
    monkeypatch.setenv("PATH", "")
    assert cli_runner("init --group acme").err.splitlines()[-3] == "Next:", "without git, nobody knows the remotes"


@pytest.mark.untraced
def test_a_messy_fleet_is_told_in_numbers_and_what_is_written_is_warned_of_by_no_command(
    cli_runner: CliRunner,
) -> None:
    cli_runner.sandbox.replace_state(generate(40, 0))
    done = cli_runner("init --group acme")
    assert done.code == 0
    assert done.out.splitlines()[5:] == [".vscode/: 1 file", "manifests/: 41 files", "schemas/: 2 files"]
    assert done.err.splitlines() == [
        "39 targets exported; 49 files written; 2 archived projects left out.",
        "Not in the manifests, one by one in init-left-out.md:",
        *(
            f"  {section} of 4 projects is left out: cannot be read: switched off in the project: the container "
            "registry; switch the container registry on, or leave the section out"
            for section in ("container_repository_protection_rules", "container_tag_protection_rules")
        ),
        "  trigger_tokens of 2 projects is left out: cannot be read: switched off in the project: CI/CD; switch CI/CD "
        "on, or leave the section out",
        "  5 trigger tokens of 4 projects: several of one name, where a manifest declares one: rename or delete the "
        "others, then export again",
        *MUST_BE_THERE,
        NEW_PROJECT,
        f"  {COMMIT}",
        "  reconciler plan",
    ]
    details = contents(Path())["init-left-out.md"].splitlines()
    assert [line for line in details if "ui-34" in line or "IDs 38" in line] == [
        *(
            f"    {section} of project acme/search-4/ui-34 is left out: cannot be read: switched off in the project: the "
            "container registry; switch the container registry on, or leave the section out"
            for section in ("container_repository_protection_rules", "container_tag_protection_rules")
        ),
        '    trigger token "release" of project acme/shipping-3/api-38 is left out: 2 objects have this name (IDs 38, 41); '
        "expected one; rename or delete the others",
    ]
    validated = cli_runner("validate")
    assert (validated.code, validated.out, validated.err) == (
        0,
        "Valid: 41 documents: 1 group, 38 projects, 1 set, 1 profile.\n",
        "",
    )
    for command in ("plan", "drift", "doctor"):
        assert "warning" not in cli_runner(command).err


@pytest.mark.untraced
def test_files_that_exist_are_left_alone_and_named_and_the_rest_is_written(cli_runner: CliRunner) -> None:
    mine = {
        ".gitlab-ci.yml": "mine: {script: [make]}\n",
        "manifests/acme/api.yaml": "apiVersion: reconciler/v1\nkind: Project\nmetadata: {path: acme/api}\n"
        "spec: {milestones: {gone: {}}}\n",
    }
    for name, text in mine.items():
        cli_runner.write(f"repository/{name}", text)
    done = cli_runner("init --group acme")
    assert done.code == 0
    assert [line for line in done.err.splitlines() if "exists" in line] == [
        f"{name} exists and is left as it is" for name in mine
    ]
    assert "project acme/api: a plan would still create milestone" in done.err
    files = contents(Path())
    assert {name: files[name] for name in mine} == mine
    assert "exclude: [acme/api]" in files["manifests/acme.set.yaml"]


@pytest.mark.untraced
def test_nothing_is_written_through_a_link_nor_outside(cli_runner: CliRunner, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    Path("schemas").symlink_to(outside)
    Path("manifests").symlink_to(outside)
    Path(".gitlab-ci.yml").symlink_to(outside / "ci.yml")
    done = cli_runner("init --group acme")
    assert done.code == 3
    link = "a symbolic link leads there: change the file that it leads to; it is not written"
    assert f"schemas/manifest.schema.json: {link}\n" in done.err
    assert f"manifests/acme.yaml: {link}\n" in done.err
    assert ".gitlab-ci.yml exists and is left as it is\n" in done.err
    assert done.out.splitlines() == [".gitignore", ".pre-commit-config.yaml", "reconciler.yaml", ".vscode/: 1 file"]
    assert [*outside.iterdir()] == []


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--group acme/nowhere", "no such group"),
        ("--api-url https://me:secret@example.com/api/v4", "--api-url holds a token or a password"),
    ],
)
def test_where_the_service_refuses_nothing_is_written(cli_runner: CliRunner, line: str, message: str) -> None:
    done = cli_runner(f"init {line}")
    assert (done.code, done.out) == (1, "")
    assert message in done.err
    assert "secret" not in done.err
    assert [*Path().iterdir()] == []


@pytest.mark.untraced
def test_what_commands_write_where_the_pages_and_pipelines_say_is_not_committed_by_accident(
    cli_runner: CliRunner,
) -> None:
    assert cli_runner("init").code == 0
    pages = [*ROOT.glob("docs/**/*.md"), *ROOT.glob("templates/*.yml"), ROOT / "README.md"]
    options = re.compile(r"(?:--report [a-z-]+=|--out |--tokens-to |--journal )((?!/|DIR|FILE)[\w./-]*\w)")
    written = {name for page in pages for name in options.findall(page.read_text())}
    written -= {
        "audit",
        "back.json",
        "known.json",
        "last.json",
        "reverted.json",
        "saves",
        "today.json",
    }  # words of one page each
    assert {"plan.json", "note.md", "public/index.html", "reconciler.prom", "tokens.jsonl"} <= written
    for name in sorted(written):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).touch()
    subprocess.run(["git", "init", "--quiet"], check=True)
    listed = subprocess.run(
        ["git", "ls-files", "--others", "--exclude-standard"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert written.intersection(listed.stdout.splitlines()) == set()
