"""The sdist and the wheel: their files, their metadata, and that they work in an empty environment."""

import json
import re
import runpy
import subprocess
import tarfile
import tomllib
import zipfile
from collections.abc import Iterable
from email import message_from_bytes
from email.message import Message
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from trove_classifiers import classifiers as known_classifiers

from reconciler import __version__
from reconciler.document.stored import save
from reconciler.reports import FORMATS, render_plan
from reconciler.sandbox import Sandbox
from tests.fleet.repository import repository
from tests.release.conftest import ROOT, Release
from tests.render.samples import sample

pytestmark = pytest.mark.untraced

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
STEM = f"reconciler-{__version__}"


def files_of_wheel(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def files_of_sdist(sdist: Path) -> dict[str, bytes]:
    with tarfile.open(sdist) as archive:
        found = {each.name: archive.extractfile(each) for each in archive.getmembers() if each.isfile()}
        assert all(name.startswith(f"{STEM}/") for name in found)
        return {name.removeprefix(f"{STEM}/"): file.read() for name, file in found.items() if file}


def listed_by_git(*arguments: str) -> set[str]:
    try:
        done = subprocess.run(["git", "ls-files", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("what belongs to the repository is known to git, and git is not installed")
    if done.returncode:
        pytest.skip("what belongs to the repository is known to git, and this is not its checkout")
    return {name for name in done.stdout.splitlines() if (ROOT / name).is_file()}


@pytest.fixture(scope="module")
def metadata(release: Release) -> Message:
    return message_from_bytes(files_of_wheel(release.wheel)[f"{STEM}.dist-info/METADATA"])


def test_the_packages_are_called_by_the_one_version_there_is(release: Release, metadata: Message) -> None:
    assert (release.wheel.name, release.sdist.name) == (f"{STEM}-py3-none-any.whl", f"{STEM}.tar.gz")
    assert metadata["Version"] == __version__
    assert PROJECT["dynamic"] == ["version"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", __version__)


def test_the_wheel_is_the_package_and_nothing_else(release: Release) -> None:
    found = files_of_wheel(release.wheel)
    package = {name: content for name, content in found.items() if name.startswith("reconciler/")}
    source = files_of_sdist(release.sdist)
    assert package == {name: content for name, content in source.items() if name.startswith("reconciler/")}
    assert {"reconciler/py.typed", "reconciler/demo/state.yaml", "reconciler/reports/html/page.html"} <= set(package)
    assert {name.removeprefix(f"{STEM}.dist-info/") for name in found.keys() - package.keys()} == {
        *("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"),
    }


def test_the_sdist_is_the_repository_and_nothing_else(release: Release) -> None:
    found = set(files_of_sdist(release.sdist))
    tracked = {name for name in listed_by_git() if not name.startswith("tests/render/axe/")}  # has another licence
    assert tracked - found == set(), "name it under tool.hatch.build.targets.sdist in pyproject.toml"
    assert (
        found - tracked - {"PKG-INFO", "reconciler/COMMIT"} - listed_by_git("--others", "--exclude-standard") == set()
    )
    for place in ("reconciler", "tests", "examples", "schemas", "benchmarks"):
        assert any(name.startswith(f"{place}/") for name in found), place


def test_the_licence_goes_with_both(release: Release, metadata: Message) -> None:
    licence = (ROOT / "LICENSE").read_bytes()
    assert files_of_wheel(release.wheel)[f"{STEM}.dist-info/licenses/LICENSE"] == licence
    assert files_of_sdist(release.sdist)["LICENSE"] == licence
    assert (metadata["License-Expression"], metadata.get_all("License-File")) == ("MIT", ["LICENSE"])


def test_the_classifiers_exist_and_agree_with_the_rest(metadata: Message) -> None:
    found = metadata.get_all("Classifier", [])
    assert set(found) - set(known_classifiers) == set()
    assert [each for each in found if each.startswith("License ::")] == []  # says the licence expression
    supported = SpecifierSet(metadata["Requires-Python"])
    versions = re.findall(r"Python :: (3\.\d+)", "\n".join(found))
    assert versions
    assert [version for version in versions if version not in supported] == []
    assert f"{supported}" == f">={versions[0]}"
    assert "Typing :: Typed" in found


def test_the_wheel_asks_for_what_the_project_needs(metadata: Message) -> None:
    asked = [Requirement(each) for each in metadata.get_all("Requires-Dist", [])]
    needed = [Requirement(each) for each in PROJECT["dependencies"]]
    assert named(each for each in asked if not each.marker) == named(needed)
    assert (metadata["Summary"], metadata["Description-Content-Type"]) == (PROJECT["description"], "text/markdown")
    assert metadata.get_payload(decode=True) == (ROOT / "README.md").read_bytes()


def named(requirements: Iterable[Requirement]) -> dict[str, str]:
    return {canonicalize_name(each.name): str(each.specifier) for each in requirements}


def test_what_is_installed_is_the_wheel_and_not_this_checkout(release: Release, tmp_path: Path) -> None:
    done = release("python", "-c", "import reconciler; print(reconciler.__file__)", cwd=tmp_path)
    assert Path(done.stdout.strip()).is_relative_to(release.installed)


def test_the_installed_tool_tells_its_version(release: Release, tmp_path: Path) -> None:
    done = release("reconciler", "--version", cwd=tmp_path)
    commit = files_of_wheel(release.wheel)["reconciler/COMMIT"].decode().strip()
    assert (done.returncode, done.stdout, done.stderr) == (0, f"reconciler, version {__version__} ({commit})\n", "")
    listed_by_git()
    assert re.fullmatch(r"[0-9a-f]{40}(\+changes)?", commit)


def test_the_commit_is_that_of_the_checkout_or_one_that_a_variable_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit_of = runpy.run_path(str(ROOT / ".ci" / "build_hook.py"))["commit_of"]
    monkeypatch.setenv("SOURCE_COMMIT", "1a2b3c4d")
    assert commit_of(tmp_path) == "1a2b3c4d"
    monkeypatch.delenv("SOURCE_COMMIT")
    assert commit_of(tmp_path) == ""
    made = repository(tmp_path)
    assert commit_of(tmp_path) == ""
    (tmp_path / "file").write_text("")
    commit = made.commit()
    assert commit_of(tmp_path) == commit
    (tmp_path / "file").write_text("changed")
    assert commit_of(tmp_path) == f"{commit}+changes"


def test_the_installed_tool_tells_its_whole_story(release: Release, tmp_path: Path) -> None:
    done = release("reconciler", "demo", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (ROOT / "tests" / "cli" / "demo.txt").read_text()


def test_the_installed_tool_finds_the_examples_valid(release: Release) -> None:
    for example in ("acme", "fleet/manifests", "milestones.yaml"):
        done = release("reconciler", "validate", f"examples/{example}", cwd=ROOT)
        assert (done.returncode, done.stderr) == (0, ""), example


def test_the_installed_tool_has_the_schemas_of_the_repository(release: Release) -> None:
    done = release("reconciler", "schema", "--check", "schemas", cwd=ROOT)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    done = release("reconciler", "schema", "manifest", cwd=ROOT)
    assert json.loads(done.stdout) == json.loads((ROOT / "schemas" / "manifest.schema.json").read_text())


def test_the_installed_tool_writes_every_format(release: Release, tmp_path: Path) -> None:
    """Each has modules and templates of its own, which one process imports."""
    formats = [name for name in FORMATS if name not in {"codequality", "fleet"}]
    (tmp_path / "plan.json").write_text(save(sample()))
    reports = (word for name in formats for word in ("--report", f"{name}=written.{name}"))
    done = release("reconciler", "show", "plan.json", "--format", "fleet", *reports, "--allow-problems", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, render_plan(sample(), "fleet"), "")
    written = {name: (tmp_path / f"written.{name}").read_text() for name in formats}
    assert written == {name: render_plan(sample(), name) for name in formats}


def test_the_installed_tool_reads_a_template_and_a_service(release: Release, tmp_path: Path, sandbox: Sandbox) -> None:
    """Only some runs import HTTP, templates and the YAML writer."""
    sandbox.replace_state({"users": [{"username": "eve", "tokens": ["eve-token"]}]})
    (tmp_path / "one.yaml.j2").write_text(
        "apiVersion: reconciler/v1\nkind: User\nspec: {notification_settings: {level: {{ level }}}}\n"
    )
    service = {"RECONCILER_API_URL": sandbox.api_url, "RECONCILER_TOKEN": "eve-token"}
    done = release("reconciler", "drift", "one.yaml.j2", "--set", "level=mention", cwd=tmp_path, **service)
    assert (done.returncode, done.stderr) == (2, ""), done.stdout
    done = release("reconciler", "render", "one.yaml.j2", "--set", "level=mention", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "level: mention\n" in done.stdout
