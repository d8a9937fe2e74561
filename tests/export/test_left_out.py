"""An export leaves out, with a warning, what it cannot read or no manifest can declare; the rest plans empty."""

from pathlib import Path

import pytest

from reconciler.edit.export import run_export
from reconciler.edit.read import read_all
from reconciler.edit.targets import ExportRequest
from reconciler.errors import BadAnswer
from reconciler.model.endpoints import Collection
from reconciler.model.progress import Progress
from reconciler.model.targets import Level, Target
from reconciler.sandbox import Sandbox
from reconciler.service import Client
from tests.building import KINDS
from tests.canned import answer, canned
from tests.cli_runner import CliRunner
from tests.export.exporting import client_of, contents
from tests.service.connecting import connected
from tests.states import a_small_service


def warnings(cli_runner: CliRunner, line: str) -> list[str]:
    """Export, check that the rest plans empty, and return the warnings."""
    done = cli_runner(f"export {line} -o out")
    assert done.code == 0
    assert cli_runner("drift out").code == 0
    return done.err.splitlines()[:-1]


@pytest.mark.untraced
def test_a_name_that_two_have_and_dates_that_contradict_each_other(cli_runner: CliRunner) -> None:
    cli_runner.service(
        milestones=[{"title": "1", "start_date": "2026-05-01", "due_date": "2026-01-01"}],
        trigger_tokens=[*[{"description": "t", "owner": "ada"}] * 2, {"description": "bob's", "owner": "bob"}],
    )
    assert warnings(cli_runner, "--project acme/api --section milestones --section trigger_tokens") == [
        'due_date of milestone "1" of project acme/api is left out: due_date must be after start_date, which is '
        "2026-05-01",
        'trigger token "t" of project acme/api is left out: 2 objects have this name (IDs 1, 2); expected one; rename or delete the others',
    ]
    assert Path("out/acme/api.yaml").read_text() == (
        """\
apiVersion: reconciler/v1
kind: Project
metadata:
  path: acme/api
spec:
  milestones:
    "1":
      description: null
      start_date: 2026-05-01
      state: active
  trigger_tokens:
    "bob's": {}
"""
    )


@pytest.mark.untraced
def test_a_pruned_section_of_which_something_is_left_out_is_pruned_no_more(cli_runner: CliRunner) -> None:
    """Otherwise, a plan would delete what the manifest cannot declare."""
    cli_runner.service(trigger_tokens=[{"description": "t", "owner": "ada"}, {"description": "t", "owner": "ada"}])
    file = cli_runner.write(
        "out/x.yaml",
        "apiVersion: reconciler/v1\nkind: Project\nmetadata: {path: acme/api}\n"
        "spec: {trigger_tokens: {}, milestones: {}, prune: [trigger_tokens, milestones]}\n",
    )
    warnings(cli_runner, "--project acme/api")
    assert file.read_text().endswith("spec: {trigger_tokens: {}, milestones: {}, prune: [milestones]}\n")


def test_a_name_that_no_manifest_takes_is_left_out(cli_runner: CliRunner) -> None:
    cli_runner.service(trigger_tokens=[{"description": "", "owner": "ada"}, {"description": "fine", "owner": "ada"}])
    assert warnings(cli_runner, "--project acme/api --section trigger_tokens") == [
        'trigger token "" (ID 1) of project acme/api is left out: a description must not be blank'
    ]


@pytest.mark.untraced
def test_a_section_that_cannot_be_read_is_told_once(cli_runner: CliRunner) -> None:
    cli_runner.service(container_registry_enabled=False)
    assert warnings(cli_runner, "--project acme/api") == [
        f"{section} of project acme/api is left out: cannot be read: switched off in the project: the container "
        "registry; switch the container registry on, or leave the section out"
        for section in ("container_repository_protection_rules", "container_tag_protection_rules")
    ]
    assert "container_" not in Path("out/acme/api.yaml").read_text()


@pytest.mark.untraced
def test_what_several_projects_lack_is_told_once_for_each_cause(
    cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECONCILER_TOKEN", "bob-token")
    state = a_small_service("deployed")
    state["groups"][0]["members"][1]["role"] = "developer"
    state["projects"][0]["builds_enabled"] = False
    state["projects"] += [{"id": 104 + number, "path": f"acme/p{number}"} for number in range(3)]
    cli_runner.sandbox.replace_state(state)
    cli_runner.sandbox.set_faults(
        [f"status=403,method=GET,match=acme%2Fp{number}/notification_settings" for number in range(2)]
    )
    cli_runner.sandbox.clear_log()
    sections = "--section trigger_tokens --section milestones --section notification_settings"
    done = cli_runner(f"export --group acme {sections} -o out")
    lacking = "the token's owner is Developer there, and Maintainer is needed; make the token's owner Maintainer"
    assert done.code == 0
    assert done.err.splitlines()[:-1] == [
        "trigger_tokens of project acme/api is left out: cannot be read: switched off in the project: CI/CD; switch "
        "CI/CD on, or leave the section out",
        f"trigger_tokens of 6 projects is left out: cannot be read: {lacking}",
        "notification_settings of 2 projects is left out: cannot be read: GET projects/<path>/notification_settings: "
        "403 Forbidden; check whether the service supports this section",
    ]
    paths = [each["target"].removeprefix("/api/v4/projects/") for each in cli_runner.sandbox.log()]
    assert sorted(path for path in paths if path.startswith("acme") and "/" not in path) == [
        "acme%2Flib",
        "acme%2Fp0",
        "acme%2Fp1",
        "acme%2Ftools%2Fcli",
    ]


def test_a_target_of_which_nothing_can_be_read_is_no_success(
    cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECONCILER_TOKEN", "bob-token")
    cli_runner.service()
    done = cli_runner("export --group acme/tools -o out --section approval_settings")
    assert (done.code, done.out) == (3, "out/acme/tools/cli.yaml\n")
    assert done.err.splitlines()[0] == (
        "everything of group acme/tools is left out: cannot be read: only groups at the top have these settings; "
        "declare them there"
    )


def test_a_group_whose_projects_cannot_be_listed_is_exported_alone_and_no_success(cli_runner: CliRunner) -> None:
    cli_runner.service()
    cli_runner.sandbox.set_faults([{"kind": "status", "status": 404, "match": "groups/acme/projects"}])
    done = cli_runner("export --group acme -o out")
    assert (done.code, done.out) == (3, "out/acme.yaml\n")
    assert done.err.startswith("the projects of group acme cannot be listed (GET groups/acme/projects: 404 ")


def test_what_is_asked_for_twice_or_by_number_is_exported_once_under_its_own_name(cli_runner: CliRunner) -> None:
    cli_runner.service()
    cli_runner.sandbox.clear_log()
    done = cli_runner(
        "export --project 102 --project acme/WEB --project acme/WEB --user --section notification_settings -o out"
    )
    assert (done.code, done.out) == (0, "out/acme/web.yaml\nout/user.yaml\n")
    assert sorted(f"{entry['method']} {entry['target']}" for entry in cli_runner.sandbox.log()) == [
        "GET /api/v4/notification_settings",
        "GET /api/v4/projects/102",
        "GET /api/v4/projects/acme%2FWEB",
        "GET /api/v4/projects/acme%2Fweb/notification_settings",
        "GET /api/v4/user",
    ]


@pytest.mark.untraced
def test_an_export_reads_each_part_once_and_writes_nothing_to_the_service(cli_runner: CliRunner) -> None:
    cli_runner.service()
    cli_runner.sandbox.clear_log()
    assert cli_runner("export --group acme/tools -o out").code == 0
    group, project = Target(Level.GROUP, "acme/tools"), Target(Level.PROJECT, "acme/tools/cli")
    parts = [
        (target, part)
        for kind in KINDS.values()
        for target in (group, project)
        if target.level in kind.models
        for part in kind.parts
    ]
    numbered = Target(Level.PROJECT, 103)
    paths = [
        part.path(numbered if part.listing.needs_numeric_id else target)
        for target, part in parts
        if isinstance(part, Collection)
    ]
    read = [f"{path}{'&' if '?' in path else '?'}per_page=100&page=1" for path in paths]
    read += [part.path(target) for target, part in parts if not part.is_collection]
    read.append(f"{group.url.rstrip('/')}?with_projects=false")
    read.append(
        f"{group.url}projects?include_subgroups=true&with_shared=false&order_by=id&sort=asc&per_page=100&page=1"
    )
    log = sorted(f"{entry['method']} {entry['target']}" for entry in cli_runner.sandbox.log())
    assert log == sorted(f"GET /api/v4/{path}" for path in read)


def test_a_project_whose_path_no_manifest_takes_goes_by_its_number(sandbox: Sandbox, tmp_path: Path) -> None:
    state = a_small_service("deployed")
    state["projects"].append({"id": 777, "path": "acme/odd path"})
    with client_of(sandbox, state) as client:
        run_export(ExportRequest(projects=("777",), sections=("milestones",)), client, KINDS, folder=tmp_path)
    assert contents(tmp_path) == {
        "project-777.yaml": "apiVersion: reconciler/v1\nkind: Project\nmetadata:\n  id: 777\nspec:\n  milestones: {}\n"
    }


@pytest.mark.parametrize(
    "body", ["[]", "{}", '{"path_with_namespace": "acme/api"}', '{"id": "x", "path_with_namespace": "y"}']
)
def test_an_answer_that_does_not_say_what_a_project_is_called_ends_the_export(body: str, tmp_path: Path) -> None:
    with (
        canned(answer("200 OK", body)) as server,
        connected(server.api_url) as client,
        pytest.raises(BadAnswer) as raised,
    ):
        run_export(ExportRequest(projects=("acme/api",)), client, KINDS, folder=tmp_path)
    assert str(raised.value) == (
        "GET projects/acme%2Fapi: unexpected response: the body does not have the documented structure"
    )


@pytest.mark.untraced
def test_five_hundred_milestones_with_all_sorts_of_titles_come_back(sandbox: Sandbox, tmp_path: Path) -> None:
    odd = ["a: b", "it's", '"quoted"', "- list", "# no comment", "line\nbreak", "emoji \N{PARTY POPPER}", "1.10", "yes"]
    titles = [f"{odd[number % len(odd)]} {number}" for number in range(500)]
    state = a_small_service("deployed")
    state["projects"][0]["milestones"] = [{"title": title} for title in titles]
    with client_of(sandbox, state) as client:
        asked = ExportRequest(projects=("acme/api",), sections=("milestones",))
        run_export(asked, client, KINDS, folder=tmp_path)
        again = run_export(asked, client, KINDS, folder=tmp_path)
    assert (again.written, again.warnings) == ((), ())


@pytest.mark.untraced
def test_nothing_secret_is_written(cli_runner: CliRunner) -> None:
    cli_runner.service(
        trigger_tokens=[{"description": "mine", "owner": "ada"}, {"description": "bobs", "owner": "bob"}]
    )
    with Client(cli_runner.sandbox.api_url, "ada-token") as client:
        values = [entry["token"] for entry in client.pages("projects/acme%2Fapi/triggers")]
    done = cli_runner("export --group acme --user -o out --state state.json -v")
    written = "".join([done.out, done.err, Path("state.json").read_text(), *contents(Path("out")).values()])
    assert [value for value in [*values, "ada-token"] if value in written] == []
    assert len(values[0]) > 20


def test_an_export_tells_how_far_it_is(cli_runner: CliRunner) -> None:
    cli_runner.service()
    progress = Progress()
    with Client(cli_runner.sandbox.api_url, "ada-token") as client:
        asked = ExportRequest(groups=("acme",), sections=("milestones",))
        run_export(asked, client, KINDS, folder=cli_runner.folder / "out", progress=progress)
        assert (progress.stage, progress.done, progress.targets) == ("checking manifests", 0, 0)
        snapshot = read_all(asked, client, KINDS, progress)
    assert (
        (progress.stage, progress.done, progress.targets) == ("reading", 5, 5) == ("reading", 5, len(snapshot.targets))
    )
