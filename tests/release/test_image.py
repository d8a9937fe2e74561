"""The Dockerfile's promises. The fixture `release` has run the steps that build and install the wheel."""

import os
import re
import tomllib
from pathlib import Path

import pytest

from tests.fleet.repository import repository
from tests.release.conftest import ROOT, STEPS, Release

TEXT = (ROOT / "Dockerfile").read_text()


def values(name: str) -> list[str]:
    return re.findall(rf"^{name} (.*)$", TEXT.replace("\\\n", ""), re.MULTILINE)


def test_both_stages_begin_with_one_base_image_that_is_pinned_by_its_digest() -> None:
    assert values("FROM") == ["${PYTHON_IMAGE}@${PYTHON_DIGEST} AS build", "${PYTHON_IMAGE}@${PYTHON_DIGEST}"]
    image, digest, *commits = values("ARG")
    assert commits == ["COMMIT", "COMMIT"]
    assert 'org.opencontainers.image.revision="$COMMIT"' in values("LABEL")[0]
    version = image.removeprefix("PYTHON_IMAGE=python:").removesuffix("-slim")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f"Programming Language :: Python :: {version}" in project["classifiers"]
    assert digest == f"PYTHON_DIGEST=sha256:{'0' * 64}"


def test_the_image_is_a_command_of_nobody_in_particular() -> None:
    assert (values("ENTRYPOINT"), values("CMD"), values("USER")) == (
        ['["reconciler"]'],
        ['["--help"]'],
        ["10001:10001"],
    )


def test_no_cache_is_left_in_the_image() -> None:
    assert len(STEPS) == 3
    assert [step for step in STEPS if "pip" in step.split() and "--no-cache-dir" not in step] == []
    assert [
        step for step in values("RUN") if step not in STEPS and not step.endswith("rm -rf /var/lib/apt/lists/*")
    ] == []
    assert values("COPY") == [". .", "--from=build /opt/reconciler /opt/reconciler"]


def test_nothing_is_in_the_image_but_the_tool_and_what_it_needs(release: Release) -> None:
    names = {file.name.partition("-")[0] for file in release.installed.rglob("*.dist-info")}
    assert {"click", "httpx", "pydantic", "reconciler"} <= names
    assert names & {"hatchling", "pip", "pytest"} == set()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_git_reads_a_checkout_that_belongs_to_another_user(release: Release, tmp_path: Path) -> None:
    repo = repository(tmp_path)
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "a.yaml").write_text("apiVersion: reconciler/v1\nkind: Project\nmetadata: {path: a/b}\n")
    repo.commit()
    for path in (tmp_path, tmp_path / ".git"):
        os.chown(path, 65534, 65534)
    service = {"RECONCILER_API_URL": "http://127.0.0.1:9/api/v4", "RECONCILER_TOKEN": "none"}
    line = ["reconciler", "plan", "manifests", "--since", "HEAD"]
    refused = release(*line, cwd=tmp_path, **service, GIT_CONFIG_GLOBAL="/dev/null")
    assert "dubious ownership" in refused.stderr
    of_the_image = dict(re.findall(r'(GIT_CONFIG_\w+)="([^"]*)"', values("ENV")[0]))
    done = release(*line, cwd=tmp_path, **service, **of_the_image, GIT_CONFIG_GLOBAL="/dev/null")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Nothing to do: no target was looked at." in done.stdout
