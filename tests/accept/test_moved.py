"""`accept` of projects that have moved: their new paths in documents and sets, and the live values with them."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli_runner import CliRunner

MOVED = "project acme/old has moved to acme/api (ID 100)\n"

SETS = """\
# The set of some projects
apiVersion: reconciler/v1
kind: ProjectSet
metadata: {name: some}
select:
  projects:
    - acme/web
    - Acme/Old  # the gateway
    - acme/lib
spec:
  milestones: {b: {}}
---
apiVersion: reconciler/v1
kind: ProjectSet
metadata: {name: others}
select: {projects: [acme/old, acme/lib, acme/api]}  # both names
spec:
  trigger_tokens: {}
"""

OWN = """\
apiVersion: reconciler/v1
kind: Project
metadata:
  path: "acme/old"   # the gateway
  exceptions:
    - {section: milestones, item: b, until: 2999-01-01, reason: x}
spec:
  milestones:
    "{name} 1":
      state: active
"""


ALONE = OWN.replace(
    """  exceptions:
    - {section: milestones, item: b, until: 2999-01-01, reason: x}
""",
    "",
)


@pytest.fixture(autouse=True)
def _service(cli_runner: CliRunner) -> None:
    serve(cli_runner, renamed_from=["acme/old"], milestones=[{"title": "api 1", "state": "closed"}])


def serve(cli_runner: CliRunner, **changes: Any) -> None:
    """Serve projects that have what the sets declare, `acme/api` with changes."""
    cli_runner.service(**changes)
    state = cli_runner.sandbox.state()
    for project in state["projects"][1:]:
        project["milestones"] = [{"title": "b"}]
    cli_runner.sandbox.replace_state(state)


def files(cli_runner: CliRunner) -> dict[str, str]:
    """Return the texts of the manifests, by name."""
    folder = Path(cli_runner.folder / "manifests")
    return {path.relative_to(folder).as_posix(): path.read_text() for path in sorted(folder.rglob("*.yaml*"))}


@pytest.mark.parametrize("target", ["", "--target acme/old"])
def test_the_new_path_is_written_wherever_documents_have_the_former_one(cli_runner: CliRunner, target: str) -> None:
    cli_runner.write("manifests/sets.yaml", SETS)
    cli_runner.write("manifests/own.yaml", OWN)
    done = cli_runner(f"accept {target}")
    assert (done.code, done.out, done.err) == (
        0,
        "manifests/own.yaml\nmanifests/sets.yaml\n",
        f"{MOVED}2 differences accepted; 2 files written.\n",
    )
    assert files(cli_runner) == {
        "own.yaml": OWN.replace('"acme/old"', "acme/api").replace("state: active", "state: closed"),
        "sets.yaml": SETS.replace("Acme/Old", "acme/api").replace(
            "[acme/old, acme/lib, acme/api]", "[acme/lib, acme/api]"
        ),
    }
    done = cli_runner("plan --detailed-exitcode")
    assert (done.code, done.err) == (0, "")


@pytest.mark.parametrize("target", ["", "--target acme/gateway", "--target acme/api"])
def test_the_project_may_be_one_that_a_set_discovers(cli_runner: CliRunner, target: str) -> None:
    serve(cli_runner, path="acme/gateway", renamed_from=["acme/api"])
    cli_runner.write(
        "manifests/set.yaml",
        "apiVersion: reconciler/v1\nkind: ProjectSet\nmetadata: {name: all}\n"
        "select: {group: acme, include: ['acme/*'], exclude: ['*/lib', '*/web']}\n"
        "spec: {milestones: {'{name} 1': {}}}\n",
    )
    cli_runner.project("{milestones: {a: {}}}", name="manifests/acme/api.yaml")
    done = cli_runner(f"accept {target}")
    assert (done.code, done.out, done.err) == (
        0,
        "manifests/acme/api.yaml\nmanifests/set.yaml\n",
        "project acme/api has moved to acme/gateway (ID 100)\n3 differences accepted; 2 files written.\n",
    )
    assert files(cli_runner)["acme/api.yaml"] == (
        "apiVersion: reconciler/v1\nkind: Project\nmetadata: {path: acme/gateway}\n"
    )
    assert cli_runner("plan --detailed-exitcode").code == 0


def test_a_document_that_has_only_exceptions_gets_the_new_path(cli_runner: CliRunner) -> None:
    serve(cli_runner, path="acme/gateway", renamed_from=["acme/api"], archived=True)
    cli_runner.write(
        "manifests/set.yaml",
        "apiVersion: reconciler/v1\nkind: ProjectSet\nmetadata: {name: all}\n"
        "select: {group: acme, exclude: ['**/cli']}\nspec: {milestones: {b: {}}}\n",
    )
    only = OWN.replace("acme/old", "acme/api").partition("  milestones:")[0].replace("spec:", "spec: {}")
    cli_runner.write("manifests/own.yaml", only)
    done = cli_runner("accept")
    assert (done.code, done.out) == (0, "manifests/own.yaml\n")
    assert files(cli_runner)["own.yaml"] == only.replace('"acme/api"', "acme/gateway")
    assert "former path" not in cli_runner("plan").out


def test_exceptions_are_written_beside_the_new_path(cli_runner: CliRunner) -> None:
    cli_runner.write("manifests/own.yaml", ALONE)
    done = cli_runner("accept --until 2999-01-01 --reason OPS-12")
    assert (done.code, done.err) == (0, f"{MOVED}2 differences excepted until 2999-01-01; 1 file written.\n")
    assert files(cli_runner)["own.yaml"].splitlines()[3:6] == [
        "  path: acme/api   # the gateway",
        "  exceptions:",
        "    - {section: milestones, item: api 1, fields: [state], until: 2999-01-01, reason: OPS-12}",
    ]
    assert cli_runner("plan --detailed-exitcode").code == 0


def test_only_locks_are_no_paths(cli_runner: CliRunner) -> None:
    cli_runner.write("manifests/own.yaml", ALONE)
    done = cli_runner("accept --until 2999-01-01 --reason OPS-12 --only-locks")
    assert (done.code, done.err) == (0, f"{MOVED}0 differences excepted until 2999-01-01; 0 files written.\n")
    assert files(cli_runner) == {"own.yaml": ALONE}


def test_another_project_of_a_list_that_has_moved_too_keeps_its_former_path(cli_runner: CliRunner) -> None:
    serve(cli_runner, path="acme/gateway", renamed_from=["acme/api"])
    state = cli_runner.sandbox.state()
    state["projects"][1] |= {"path": "acme/books", "renamed_from": ["acme/lib"]}
    cli_runner.sandbox.replace_state(state)
    sets = (
        "apiVersion: reconciler/v1\nkind: ProjectSet\nmetadata: {name: listed}\n"
        "select: {projects: [acme/api, acme/lib]}\nspec: {milestones: {b: {}}}\n---\n"
        "apiVersion: reconciler/v1\nkind: ProjectSet\nmetadata: {name: all}\n"
        "select: {group: acme}\nspec: {milestones: {b: {}}}\n"
    )
    cli_runner.write("manifests/sets.yaml", sets)
    lib = "apiVersion: reconciler/v1\nkind: Project\nmetadata: {path: acme/lib}\nspec: {milestones: {b: {state: closed}}}\n"
    cli_runner.write("manifests/lib.yaml", lib)
    assert cli_runner("accept --target acme/books").code == 0
    assert files(cli_runner) == {
        "lib.yaml": lib.replace("acme/lib", "acme/books").replace("closed", "active"),
        "sets.yaml": sets.replace("acme/lib", "acme/books"),
    }


def test_a_former_path_in_a_template_is_told(cli_runner: CliRunner) -> None:
    cli_runner.write("manifests/own.yaml", OWN)
    cli_runner.write("manifests/sets.yaml.j2", SETS)
    done = cli_runner("accept")
    refused = "not accepted: project acme/api: declared by its former path"
    assert (done.code, done.out, done.err) == (
        3,
        "manifests/own.yaml\n",
        f"{MOVED}{refused} Acme/Old (manifests/sets.yaml.j2:8), in a template; change it there\n"
        f"{refused} acme/old (manifests/sets.yaml.j2:16), in a template; change it there\n"
        "1 difference accepted; 1 file written.\n",
    )
    written = OWN.replace('"acme/old"', "acme/api").replace("state: active", "state: closed")
    assert files(cli_runner) == {"own.yaml": written, "sets.yaml.j2": SETS}


def test_a_file_that_cannot_be_written_keeps_its_former_paths(cli_runner: CliRunner) -> None:
    odd = (
        ALONE.partition("  milestones:")[0] + "  milestones:\n    ? api 1\n    # see: above\n    : null\n    b: null\n"
    )
    cli_runner.write("manifests/own.yaml", odd)
    done = cli_runner("accept")
    lost = "whose layout would be lost; change it there"
    assert (done.code, done.err) == (
        3,
        f"{MOVED}not accepted: project acme/api: declared by its former path acme/old (manifests/own.yaml:4), {lost}\n"
        f'not accepted: project acme/api: milestone "api 1": declared at manifests/own.yaml:7, {lost}\n'
        "0 differences accepted; 0 files written.\n",
    )
    assert files(cli_runner) == {"own.yaml": odd}


def test_a_project_that_two_documents_declare_keeps_both(cli_runner: CliRunner) -> None:
    cli_runner.write("manifests/own.yaml", ALONE)
    cli_runner.project("{milestones: {c: {}}}")
    before = files(cli_runner)
    done = cli_runner("accept")
    assert (done.code, done.err) == (
        1,
        f"{MOVED}"
        "not accepted: project acme/api: is declared by its former path acme/old too (manifests/own.yaml:1): correct that path "
        "first (manifests/project.yaml:1)\n"
        "not accepted: project acme/old: moved to acme/api (ID 100), which is declared too (manifests/project.yaml:1): correct "
        "this path first (manifests/own.yaml:1)\n"
        "0 differences accepted; 0 files written.\n",
    )
    assert files(cli_runner) == before


def test_a_project_that_is_to_be_deleted_is_not_followed(cli_runner: CliRunner) -> None:
    doomed = "acme/api-deletion_scheduled-100"
    serve(cli_runner, path=doomed, renamed_from=["acme/old"], marked_for_deletion_on="2026-11-20")
    cli_runner.write("manifests/own.yaml", ALONE)
    done = cli_runner("accept")
    assert (done.code, done.err) == (
        1,
        f"project acme/old is to be deleted, as {doomed} (ID 100)\n"
        f"not accepted: project acme/old: scheduled for deletion since 2026-11-20, and called {doomed} (ID 100) until then; "
        "restore it, or remove it from the manifests (manifests/own.yaml:1)\n0 differences accepted; 0 files written.\n",
    )
    assert files(cli_runner) == {"own.yaml": ALONE}


def test_names_that_spell_the_former_path_are_as_live_names_are(cli_runner: CliRunner) -> None:
    rule = {
        "repository_path_pattern": "acme/old/prod*",
        "minimum_access_level_for_push": "maintainer",
        "minimum_access_level_for_delete": None,
    }
    serve(cli_runner, renamed_from=["acme/old"], container_repository_protection_rules=[rule])
    level = "{minimum_access_level_for_push: owner}"
    document = (
        "apiVersion: reconciler/v1\nkind: Project\nmetadata: {{path: {}}}\nspec:\n"
        "  container_repository_protection_rules:\n    acme/old/prod*: {}\n"
    )
    cli_runner.write("manifests/own.yaml", document.format("acme/old", level))
    cli_runner("accept")
    assert files(cli_runner) == {"own.yaml": document.format("acme/api", level.replace("owner", "maintainer"))}
