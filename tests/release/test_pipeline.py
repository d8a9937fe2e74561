"""The pipeline of this project: its scripts run as runners write them, with stand-ins for what builds and publishes."""

import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler import __version__
from tests.gitops.pipeline import Form
from tests.release.conftest import ROOT

PIPELINE: dict[str, Any] = yaml.safe_load((ROOT / ".gitlab-ci.yml").read_text())
JOBS = {name: job for name, job in PIPELINE.items() if "stage" in job}
TAG = f"v{__version__}"

STAND_IN = """\
#!/usr/bin/env bash
echo "$(basename "$0") $*" >> "$CALLS"
test "$(basename "$0") $*" != "$FAILING" || exit 7
case "$(basename "$0") $*" in
  "python .ci/"*) exec "$REAL_PYTHON" "$@" ;;
  "python -m venv "*) mkdir -p "$3/bin" && cp "$STAND_IN" "$3/bin/pip" && cp "$STAND_IN" "$3/bin/reconciler" ;;
  "python -m build") mkdir -p dist && touch dist/it-1.tar.gz dist/it-1-py3-none-any.whl ;;
  "buildah inspect"*) echo sha256:1234 ;;
  "buildah from"*) echo reconciler-working ;;
  "buildah pull --quiet"*) echo 5678 ;;
esac
"""

LOGIN = "buildah login --username ci-user --password-stdin registry.example.com"

CALLS = {
    "build-packages": [
        f"python .ci/release.py {TAG}",
        "pip install --quiet build twine",
        "python -m build",
        "twine check --strict dist/it-1-py3-none-any.whl dist/it-1.tar.gz",
        "python -m venv build/empty",
        "pip install --quiet dist/it-1-py3-none-any.whl",
        "reconciler --version",
        "reconciler demo",
    ],
    "build-image": [
        "buildah pull docker.io/library/python:3.13-slim",
        "buildah inspect --type image --format {{.FromImageDigest}} docker.io/library/python:3.13-slim",
        "buildah build --tag reconciler --build-arg PYTHON_IMAGE=docker.io/library/python "
        "--build-arg PYTHON_DIGEST=sha256:1234 --build-arg COMMIT=1a2b3c4d5e6f "
        f"--label org.opencontainers.image.version={TAG} "
        "--label org.opencontainers.image.source=https://gitlab.example.com/tools/reconciler .",
        "buildah from reconciler",
        "buildah run reconciler-working -- reconciler --version",
        "buildah run reconciler-working -- reconciler demo",
        "buildah images --format The image has {{.Size}}. reconciler",
        "buildah push reconciler oci-archive:image.tar",
    ],
    "publish-image": [
        LOGIN,
        "buildah pull --quiet oci-archive:image.tar",
        f"buildah push 5678 docker://registry.example.com/tools/reconciler:{__version__}",
    ],
    "publish-packages": [
        "pip install --quiet twine",
        "twine upload --non-interactive dist/it-1-py3-none-any.whl dist/it-1.tar.gz",
    ],
}
"""What each job runs."""


class Checkout:
    """A checkout of this project with a section about its version in the changelog, and stand-ins."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.calls = folder / "calls"
        for name in ("python", "pip", "twine", "buildah"):
            path = folder / "bin" / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(STAND_IN)
            path.chmod(0o755)
        (folder / ".ci").mkdir()
        (folder / ".ci" / "release.py").write_text((ROOT / ".ci" / "release.py").read_text())
        (folder / "reconciler").mkdir()
        (folder / "reconciler" / "__init__.py").write_text((ROOT / "reconciler" / "__init__.py").read_text())
        self.changes(f"# Changes\n\n## {__version__} - 2026-11-24\n\n### Added\n\n- It.\n\n## 0.0.9\n\n- Before.\n")

    def changes(self, text: str) -> None:
        """Write the changelog."""
        (self.folder / "CHANGELOG.md").write_text(text)

    def run(self, name: str, form: Form, tag: str = TAG, failing: str = "none") -> "subprocess.CompletedProcess[str]":
        """Run the script of a job."""
        self.calls.write_text("")
        variables = {
            "PATH": f"{self.folder / 'bin'}:{os.defpath}",
            "CALLS": str(self.calls),
            "FAILING": failing,
            "REAL_PYTHON": sys.executable,
            "STAND_IN": str(self.folder / "bin" / "pip"),
            "CI_COMMIT_TAG": tag,
            "CI_COMMIT_SHA": "1a2b3c4d5e6f",
            "CI_PROJECT_URL": "https://gitlab.example.com/tools/reconciler",
            "CI_REGISTRY": "registry.example.com",
            "CI_REGISTRY_IMAGE": "registry.example.com/tools/reconciler",
            "CI_REGISTRY_USER": "ci-user",
            "CI_REGISTRY_PASSWORD": "registry-password",
            **{key: value for key, value in JOBS[name].get("variables", {}).items() if "$" not in value},
        }
        return subprocess.run(
            ["bash", "--noprofile", "--norc"],
            input=form.script(JOBS[name]["script"]),
            cwd=self.folder,
            env=variables,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


RESERVED = {"after_script", "before_script", "cache", "image", "include", "pages:deploy", "services", "variables"}
"""Keys at the top of a configuration that are no jobs."""


def test_a_branch_is_checked_and_a_tag_is_published_after_everything_was_built() -> None:
    assert not RESERVED & set(PIPELINE)
    assert PIPELINE["stages"] == ["check", "build", "publish", "release"]
    assert {name: job["stage"] for name, job in JOBS.items()} == {
        "check": "check",
        "build-packages": "build",
        "build-image": "build",
        "publish-image": "publish",
        "publish-packages": "publish",
        "release": "release",
    }
    [rule] = PIPELINE[".release"]["rules"]
    assert rule == {"if": r"$CI_COMMIT_TAG =~ /^v[0-9]+\.[0-9]+\.[0-9]+$/"}
    assert [name for name, job in JOBS.items() if job.get("extends") != ".release"] == ["check"]
    assert not [name for name, job in JOBS.items() if {"needs", "allow_failure", "when", "rules"} & set(job)]
    assert JOBS["check"]["script"] == ".ci/run"
    assert JOBS["release"]["release"]["description"] in JOBS["build-packages"]["artifacts"]["paths"]


@pytest.mark.untraced
@pytest.mark.parametrize("form", Form, ids=[form.name for form in Form])
def test_each_job_ends_with_its_first_failure(checkout: Checkout, form: Form) -> None:
    for name, calls in CALLS.items():
        done = checkout.run(name, form)
        assert (done.returncode, done.stderr) == (0, ""), name
        assert checkout.calls.read_text().splitlines() == calls
        assert "registry-password" not in checkout.calls.read_text() + done.stdout
        for number, call in enumerate(calls):
            assert checkout.run(name, form, failing=call).returncode != 0, call
            assert checkout.calls.read_text().splitlines() == calls[: number + 1]
    assert (checkout.folder / "notes.md").read_text() == "### Added\n\n- It.\n"


@pytest.mark.parametrize(
    ("tag", "changes", "said"),
    [
        ("v9.9.9", None, f"the tag v9.9.9 is not {TAG}, the version of reconciler/__init__.py\n"),
        (
            TAG,
            "# Changes\n\n## Unreleased\n\n- It.\n",
            f"CHANGELOG.md has no section {__version__}: rename Unreleased, and begin a new one\n",
        ),
        (
            TAG,
            f"# Changes\n\n## {__version__}\n\n## 0.0.9\n\n- Before.\n",
            f"CHANGELOG.md has no section {__version__}: rename Unreleased, and begin a new one\n",
        ),
    ],
)
def test_what_is_not_ready_is_refused_before_anything_is_built(
    checkout: Checkout, tag: str, changes: str | None, said: str
) -> None:
    if changes is not None:
        checkout.changes(changes)
    done = checkout.run("build-packages", Form.PIPED, tag)
    assert (done.returncode, done.stderr) == (1, said)
    assert checkout.calls.read_text() == f"python .ci/release.py {tag}\n"


def test_a_package_without_a_version_is_refused(checkout: Checkout) -> None:
    (checkout.folder / "reconciler" / "__init__.py").write_text("")
    assert "reconciler/__init__.py has no version" in checkout.run("build-packages", Form.PIPED).stderr


def test_the_changelog_of_this_project_is_one_that_the_script_reads() -> None:
    section = runpy.run_path(str(ROOT / ".ci" / "release.py"))["section"]
    assert section((ROOT / "CHANGELOG.md").read_text(), __version__).startswith("### Added")
