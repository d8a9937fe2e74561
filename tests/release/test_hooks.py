"""The hooks for pre-commit, run as pre-commit runs them: the entry, its arguments, then the files if it passes any."""

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.release.conftest import ROOT, Release

pytestmark = pytest.mark.untraced

HOOKS: dict[str, dict[str, Any]] = {
    hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
}

PROFILE = "apiVersion: reconciler/v1\nkind: Profile\nmetadata: {name: baseline}\nspec: {milestones: {one: {}}}\n"
PROJECT = "apiVersion: reconciler/v1\nkind: Project\nmetadata: {path: a/b, profiles: [baseline]}\n"


def committed(
    release: Release, hook: dict[str, Any], folder: Path, *files: str, arguments: list[str] | None = None
) -> "subprocess.CompletedProcess[str] | None":
    """Run a hook on a commit of some files; return None if the hook ignores them."""
    concerned = [file for file in files if re.search(hook["files"], file)]
    if not concerned:
        return None
    program, *line = shlex.split(hook["entry"])
    assert program == "reconciler"
    more = hook.get("args", []) if arguments is None else arguments
    return release(program, *line, *more, *(concerned if hook.get("pass_filenames", True) else []), cwd=folder)


def test_the_hooks_are_those_that_are_promised() -> None:
    assert list(HOOKS) == ["reconciler-validate", "reconciler-schema"]
    for hook in HOOKS.values():
        assert {"id", "name", "description", "entry", "language", "files"} <= set(hook)
        assert hook["language"] == "python"
        assert hook["id"] in (ROOT / ".pre-commit-hooks.yaml").read_text().partition("\n\n")[0]


@pytest.fixture
def manifests(tmp_path: Path) -> Path:
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "profile.yaml").write_text(PROFILE)
    (tmp_path / "manifests" / "project.yaml").write_text(PROJECT)
    return tmp_path


def test_a_manifest_is_checked_together_with_the_others(release: Release, manifests: Path) -> None:
    """The committed file names a profile in another file."""
    done = committed(release, HOOKS["reconciler-validate"], manifests, "manifests/project.yaml")
    assert done is not None
    assert (done.returncode, done.stdout, done.stderr) == (0, "Valid: 2 documents: 1 project, 1 profile.\n", "")


def test_a_fault_of_a_manifest_fails_the_commit_at_its_place(release: Release, manifests: Path) -> None:
    (manifests / "manifests" / "profile.yaml").write_text(PROFILE.replace("milestones", "milestone"))
    done = committed(release, HOOKS["reconciler-validate"], manifests, "manifests/profile.yaml")
    assert done is not None
    assert done.returncode == 1
    assert "manifests/profile.yaml:4:8: unknown section `milestone`; did you mean `milestones`?" in done.stdout


def test_the_manifests_may_lie_elsewhere(release: Release, manifests: Path) -> None:
    (manifests / "manifests").rename(manifests / "settings")
    hook = HOOKS["reconciler-validate"]
    done = committed(release, hook, manifests, "settings/project.yaml", arguments=["settings"])
    assert done is not None
    assert done.returncode == 0
    (manifests / "reconciler.yaml").write_text("paths: settings\n")
    done = committed(release, hook, manifests, "reconciler.yaml")
    assert done is not None
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("file", "concerns"),
    [
        ("manifests/a.yaml", ["reconciler-validate"]),
        ("manifests/a.yml", ["reconciler-validate"]),
        ("manifests/a.yaml.j2", ["reconciler-validate"]),
        ("reconciler.yaml", ["reconciler-validate"]),
        ("README.md", []),
        ("schemas/manifest.schema.json", ["reconciler-schema"]),
        (".pre-commit-config.yaml", ["reconciler-validate", "reconciler-schema"]),
    ],
)
def test_a_hook_runs_for_the_files_that_concern_it(file: str, concerns: list[str]) -> None:
    assert [name for name, hook in HOOKS.items() if re.search(hook["files"], file)] == concerns


def test_copies_of_schemas_are_checked_when_the_version_changes(release: Release, tmp_path: Path) -> None:
    """Here one copy; that the installed tool finds all of them current, another test proves."""
    hook = HOOKS["reconciler-schema"]
    (tmp_path / "schemas").mkdir()
    copy = tmp_path / "schemas" / "manifest.schema.json"
    shutil.copy(ROOT / "schemas" / copy.name, copy)
    done = committed(release, hook, tmp_path, ".pre-commit-config.yaml")
    assert done is not None
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    copy.write_text(json.dumps(json.loads(copy.read_text()) | {"title": "of former times"}))
    done = committed(release, hook, tmp_path, "schemas/manifest.schema.json")
    assert done is not None
    assert done.returncode == 1
    assert "schemas/manifest.schema.json; renew them with: reconciler schema --write schemas" in done.stderr
    (tmp_path / "schemas").rename(tmp_path / "editor")
    done = committed(release, hook, tmp_path, "editor/manifest.schema.json", arguments=["editor"])
    assert done is not None
    assert "renew them with: reconciler schema --write editor" in done.stderr
