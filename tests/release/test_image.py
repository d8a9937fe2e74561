"""The Dockerfile: what it promises, and that its own steps make a working tool."""

import json
import os
import re
import tomllib
from pathlib import Path

import pytest

from tests.fleet.repository import repository
from tests.release.conftest import ROOT, Release
from tests.release.image import allowed, instructions_of, pairs
from tests.release.test_package import files_of_wheel

TEXT = (ROOT / "Dockerfile").read_text()
INSTRUCTIONS = instructions_of(TEXT)


def values(name: str) -> list[str]:
    return [each.value for each in INSTRUCTIONS if each.name == name]


def test_both_stages_begin_with_one_base_image_that_is_pinned_by_its_digest() -> None:
    assert values("FROM") == ["${PYTHON_IMAGE}@${PYTHON_DIGEST} AS build", "${PYTHON_IMAGE}@${PYTHON_DIGEST}"]
    image, digest = values("ARG")
    assert re.fullmatch(r"PYTHON_IMAGE=python:3\.\d+-slim", image)
    assert digest == f"PYTHON_DIGEST=sha256:{'0' * 64}"
    assert "--build-arg PYTHON_DIGEST=sha256:" in TEXT


def test_the_base_image_has_a_python_that_is_supported() -> None:
    version = values("ARG")[0].removeprefix("PYTHON_IMAGE=python:").removesuffix("-slim")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f"Programming Language :: Python :: {version}" in project["classifiers"]


def test_the_image_is_a_command_of_nobody_in_particular() -> None:
    assert json.loads(values("ENTRYPOINT")[0]) == ["reconciler"]
    assert json.loads(values("CMD")[0]) == ["--help"]
    assert values("USER") == ["10001:10001"]
    assert values("HEALTHCHECK") == ["NONE"]
    assert [each.name for each in INSTRUCTIONS][-5:] == ["USER", "WORKDIR", "HEALTHCHECK", "ENTRYPOINT", "CMD"]
    assert pairs(values("LABEL")[0])["org.opencontainers.image.licenses"] == "MIT"


def test_no_cache_is_left_in_the_image() -> None:
    for command in values("RUN"):
        assert "pip" not in command.split() or "--no-cache-dir" in command, command
        assert "apt-get" not in command or command.endswith("&& rm -rf /var/lib/apt/lists/*"), command
    assert values("COPY") == [". .", "--from=build /opt/reconciler /opt/reconciler"]


def test_only_what_the_wheel_is_made_of_is_sent_to_the_build() -> None:
    sent = set(allowed(ROOT))
    assert {file.parts[0] for file in sent} == {"LICENSE", "README.md", "pyproject.toml", "reconciler"}
    assert [file for file in sent if file.suffix == ".pyc"] == []


def test_every_step_but_one_has_been_carried_out(release: Release) -> None:
    assert release.image.not_run() == [
        "apt-get update && apt-get install --yes --no-install-recommends git && rm -rf /var/lib/apt/lists/*"
    ]
    (wheel,) = (release.image.root / "wheels").iterdir()
    assert files_of_wheel(wheel) == files_of_wheel(release.wheel)


def test_nothing_is_in_the_image_but_the_tool_and_what_it_needs(release: Release) -> None:
    installed = release.image.root / "opt" / "reconciler"
    assert list((installed / "bin").glob("pip*")) == []
    names = {file.name.partition("-")[0] for file in installed.rglob("*.dist-info")}
    assert {"click", "httpx", "pydantic", "reconciler"} <= names
    assert names & {"hatchling", "pip", "pytest"} == set()


def test_the_image_explains_itself(release: Release, tmp_path: Path) -> None:
    done = release.image(*json.loads(values("CMD")[0]), cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Usage: reconciler [OPTIONS] COMMAND")


def test_a_ci_job_with_an_empty_entry_point_finds_the_tool(release: Release, tmp_path: Path) -> None:
    assert 'entrypoint: [""]' in TEXT
    shell = type(release.image)(
        release.image.root,
        ROOT,
        [each for each in INSTRUCTIONS if each.name != "ENTRYPOINT"] + instructions_of('ENTRYPOINT ["sh", "-c"]'),
        release.image.environment,
    )
    done = shell("reconciler --version", cwd=tmp_path)
    assert (done.returncode, done.stdout.partition(",")[0]) == (0, "reconciler")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_git_reads_a_checkout_that_belongs_to_another_user(release: Release, tmp_path: Path) -> None:
    repo = repository(tmp_path)
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "a.yaml").write_text("apiVersion: reconciler/v1\nkind: Project\nmetadata: {path: a/b}\n")
    repo.commit()
    service = {"RECONCILER_API_URL": "http://127.0.0.1:9/api/v4", "RECONCILER_TOKEN": "none"}
    for path in (tmp_path, tmp_path / ".git"):
        os.chown(path, 65534, 65534)
    different = {"GIT_CONFIG_GLOBAL": "/dev/null"}
    line = ["plan", "manifests", "--since", "HEAD"]
    without = {"GIT_CONFIG_COUNT": "0"}
    refused = release.image(*line, cwd=tmp_path, **service, **different, **without)
    assert "dubious ownership" in refused.stderr
    done = release.image(*line, cwd=tmp_path, **service, **different)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Plan: 0 to create")
