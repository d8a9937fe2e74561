"""`--since` and `create`: a document that appears or changes is planned, and nothing is deleted because one goes."""

import pytest

from tests.cli_runner import CliRunner
from tests.fleet.repository import Repository

HEAD = "apiVersion: reconciler/v1\nkind: "
GROUP = f"{HEAD}Group\nmetadata: {{path: acme/team}}\ncreate: {{from_archive: team.gz}}\n"
PROJECT = f"{HEAD}Project\nmetadata: {{path: acme/team/api}}\ncreate: {{}}\n"
Planned = tuple[int, list[str], list[str]]
"""The exit code, the targets with changes or problems, and the requests."""

NOTHING: Planned = (0, [], [])
CREATED: Planned = (0, ["group acme/team"], ["groups/acme%2Fteam", "groups/acme", "projects/acme%2Fteam"])


@pytest.mark.untraced
def test_the_creation_of_a_target_changes_with_its_document_and_its_archive(
    cli_runner: CliRunner, git: Repository
) -> None:
    def plan(*more: str) -> Planned:
        cli_runner.sandbox.clear_log()
        done = cli_runner("plan --since HEAD --group-by target", *more)
        asked = [entry["target"].removeprefix("/api/v4/").partition("?")[0] for entry in cli_runner.sandbox.log()]
        return done.code, [line for line in done.out.splitlines()[:-1] if not line.startswith(" ")], asked

    cli_runner.project("{milestones: {a: {}}}")
    cli_runner.write("manifests/team.gz", "1")
    git.commit()
    cli_runner.write("manifests/group.yaml", GROUP)
    assert plan() == CREATED
    assert plan("--section", "milestones") == NOTHING
    git.commit()
    assert plan() == NOTHING
    cli_runner.write("manifests/team.gz", "2")
    assert plan() == CREATED
    cli_runner.write("manifests/team.gz", "1")

    cli_runner.write("manifests/api.yaml", PROJECT)
    asked = ["projects/acme%2Fteam%2Fapi", "groups/acme%2Fteam"]
    assert plan() == (3, ["project acme/team/api"], asked)
    assert (
        "group acme/team does not exist, and this run leaves out its creation (manifests/group.yaml:1)"
        in cli_runner("plan --since HEAD").out
    )

    cli_runner.write(".gitignore", "*.gz")
    git.git("rm", "-q", "--cached", "manifests/team.gz")
    git.commit()
    assert plan() == CREATED, "git does not keep the archive, which may be another one now"
    (cli_runner.folder / "manifests/group.yaml").unlink()
    (cli_runner.folder / "manifests/api.yaml").unlink()
    assert plan() == NOTHING


UNCHANGED = "Nothing to do in the 1 target looked at. {} requests were made to plan.\n"


@pytest.mark.untraced
def test_a_document_that_goes_leaves_the_target_without_its_objects(cli_runner: CliRunner, git: Repository) -> None:
    cli_runner.project("{milestones: {'1.0': {}}}")
    file = cli_runner.folder / "manifests/project.yaml"
    file.write_text(file.read_text() + "create: {}\n")
    git.commit()
    cli_runner.service(milestones=[{"title": "1.0"}])
    file.write_text(file.read_text().replace("create: {}", "create: {name: other}"))
    assert cli_runner("plan --since HEAD --quiet").out == UNCHANGED.format(2)
    cli_runner.write("manifests/project.yaml", f"{HEAD}User\n")
    assert cli_runner("plan --since HEAD --quiet").out == UNCHANGED.format(0)
