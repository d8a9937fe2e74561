"""In a CI job, nothing that a merge request names is read outside of the checkout, and no line of it is shown."""

import gzip

import pytest

from tests.cli_runner import CliRunner
from tests.fleet.repository import repository

SECRET = "hunter2-hunter2"
LINES = {
    "NETRC": f"machine git login ada password {SECRET}\n",
    "KEY": f"{{ {SECRET}: [\n",
    "VALUES": f"password: {SECRET}\n",
}
LEADS_OUT = (
    "is a link, or behind one, that leads out of the checkout: a CI job reads nothing there; commit the file itself"
)
PROJECT = "apiVersion: reconciler/v1\nkind: Project\nmetadata: {path: acme/api}\nspec: {milestones: {'%s': {}}}\n"


@pytest.fixture
def job(cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    """A user in the checkout of a CI job, beside which lie files with secrets."""
    for name, text in LINES.items():
        cli_runner.write(f"../proj.tmp/{name}", text)
        cli_runner.write(f"../proj.tmp/{name}.yaml", text)
    cli_runner.write("manifests/project.yaml", PROJECT % "a")
    repository(cli_runner.folder).commit()
    monkeypatch.setenv("CI", "true")
    return cli_runner


def refused(job: CliRunner, command: str, error: str) -> None:
    done = job(command)
    said = done.out + done.err
    assert done.code == 1
    assert said in (f"reconciler: {error}\n", f"{error}\n", f"{error}\nNot valid: 1 error.\n")
    assert SECRET not in said


@pytest.mark.parametrize("name", LINES)
def test_what_the_configuration_names_lies_in_the_checkout(job: CliRunner, name: str) -> None:
    path = f"../proj.tmp/{name}"
    for key, remedy in (("paths", "as PATHS"), ("values", "by --values")):
        job.write("reconciler.yaml", f"{key}: [manifests, {path}]\n")
        for command in ("validate", "plan manifests", "doctor"):
            refused(
                job,
                command,
                f"reconciler.yaml: {key}: {path} lies outside of the checkout, and a merge request can change that file; "
                f"move it into the checkout, or name it {remedy} in the job's script instead",
            )


@pytest.mark.parametrize("name", LINES)
def test_what_links_lead_to_lies_in_the_checkout(job: CliRunner, name: str) -> None:
    outside = job.folder.parent / "proj.tmp"
    config, link = job.folder / "reconciler.yaml", job.folder / "manifests/link.yaml"
    config.symlink_to(outside / name)
    refused(job, "validate", f"reconciler.yaml: cannot be read: {LEADS_OUT}")
    config.unlink()
    for ending in ("yaml", "yaml.j2"):
        link = job.folder / f"manifests/link.{ending}"
        link.symlink_to(outside / name)
        for command in ("validate", "plan", f"plan manifests/link.{ending}", "plan --since HEAD"):
            refused(job, command, f"manifests/link.{ending}: cannot be read: {LEADS_OUT}")
        link.unlink()
    link = job.folder / "manifests/folder"
    link.symlink_to(outside)
    refused(job, "validate", f"manifests/folder: cannot be read: {LEADS_OUT}")
    refused(job, f"validate manifests/folder/{name}", f"manifests/folder/{name}: cannot be read: {LEADS_OUT}")
    link.unlink()
    (job.folder / "v.yaml").symlink_to(outside / name)
    refused(job, "validate --values v.yaml", f"v.yaml: cannot be read: {LEADS_OUT}")
    job.write("reconciler.yaml", "values: v.yaml\n")
    assert "reconciler.yaml: values: v.yaml lies outside of the checkout" in job("validate").err
    config.unlink()
    (job.folder / "manifests/.hidden.yaml").symlink_to(outside / name)
    assert job("validate").code == 0


def test_an_archive_lies_in_the_checkout(job: CliRunner) -> None:
    group = "apiVersion: reconciler/v1\nkind: Group\nmetadata: {path: acme/team}\ncreate: {from_archive: %s}\n"
    (job.folder.parent / "proj.tmp/a.tar.gz").write_bytes(gzip.compress(SECRET.encode()))
    (job.folder / "manifests/link.tar.gz").symlink_to(job.folder.parent / "proj.tmp/a.tar.gz")
    for written, path in (
        ("../../proj.tmp/a.tar.gz", "../proj.tmp/a.tar.gz"),
        ("link.tar.gz", "manifests/link.tar.gz"),
    ):
        job.write("manifests/group.yaml", group % written)
        assert f"{path} lies outside of the checkout: a CI job reads nothing there" in job("validate").out


def test_the_job_s_script_may_name_files_outside_of_the_checkout(
    job: CliRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    job.write("../elsewhere/a.yaml.j2", PROJECT.replace("acme/api", "acme/new") % "{{ password }}")
    (job.folder.parent / "elsewhere/b.yaml").symlink_to(job.write("../further/b.yaml", PROJECT % "b"))
    job.write("link-target/c.yaml", PROJECT.replace("acme/api", "acme/web") % "c")
    (job.folder / "manifests/link.yaml").symlink_to("../link-target/c.yaml")
    outside = job("validate ../elsewhere/a.yaml.j2 manifests/link.yaml --values ../proj.tmp/VALUES")
    assert (outside.code, outside.err) == (0, "")
    assert job("validate ../elsewhere/b.yaml").code == 0
    job.write("reconciler.yaml", "paths: ../elsewhere/b.yaml\n")
    monkeypatch.delenv("CI")
    assert job("validate").code == 0


def test_what_git_keeps_in_the_checkout_counts_as_outside(job: CliRunner) -> None:
    (job.folder / "manifests/link.yaml").symlink_to("../.git/config")
    refused(job, "validate", f"manifests/link.yaml: cannot be read: {LEADS_OUT}")
