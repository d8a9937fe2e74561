"""Kinds of other people's packages: found by entry points, and refused with the package's name where they are broken."""

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from reconciler.kinds import all_kinds
from tests.cli_runner import CliRunner
from tests.docs.pages import ROOT, blocks

PACKAGE = ROOT / "examples" / "plugin" / "reconciler-deploy-keys"
MANIFEST = PACKAGE / "deploy_keys.yaml"

GOOD = """
from reconciler.model.endpoints import Singleton
from reconciler.model.kind import Kind
from reconciler.model.resource import Resource
from reconciler.model.targets import Level

KIND = Kind("wiki", "The wiki.", {Level.PROJECT: Resource}, (Singleton("wiki", "wiki", "wiki", Resource),))
"""


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder from which packages are imported; what was found before is forgotten, and so is what is found here."""
    folder = tmp_path / "packages"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr("reconciler.kinds.all_kinds", all_kinds.__wrapped__)
    return folder


def install(packages: Path, entry: str, module: str = "", name: str = "acme_wiki") -> None:
    """Put a package there as pip would: a module, and what the package says of itself."""
    (packages / f"{name}.py").write_text(module)
    about = packages / f"{name}-1.2.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: 1.2\n")
    (about / "entry_points.txt").write_text(f"[reconciler.kinds]\n{entry}\n")


def test_the_kind_of_a_package_is_a_section_like_any_other(packages: Path, cli_runner: CliRunner) -> None:
    install(packages, "wiki = acme_wiki_0:KIND", GOOD, "acme_wiki_0")
    cli_runner.project("{wiki: {}}")
    assert cli_runner("validate").code == 0
    assert '"wiki"' in cli_runner("schema manifest").out


@pytest.mark.parametrize(
    ("entry", "module", "reason"),
    [
        (
            "wiki = acme_wiki_1:KIND",
            "import nothing_of_this_name",
            "ModuleNotFoundError: No module named 'nothing_of_this_name'",
        ),
        ("wiki = acme_wiki_2:KIND", "1 / 0", "ZeroDivisionError: division by zero"),
        ("wiki = acme_wiki_3:KIND", "", "AttributeError: module 'acme_wiki_3' has no attribute 'KIND'"),
        ("wiki = acme_wiki_4:KIND", "KIND = 7", "acme_wiki_4:KIND is not a Kind"),
        ("vicky = acme_wiki_5:KIND", GOOD, "the entry point must be named wiki, like the kind"),
        (
            "milestones = acme_wiki_6:KIND",
            GOOD.replace('"wiki", "The', '"milestones", "The'),
            "another kind has this name",
        ),
    ],
)
def test_a_broken_package_is_one_error_that_names_it(
    packages: Path, cli_runner: CliRunner, entry: str, module: str, reason: str
) -> None:
    section, _, place = entry.partition(" = ")
    install(packages, entry, module, place.partition(":")[0])
    cli_runner.project("{milestones: {}}")
    done = cli_runner("validate")
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        f"reconciler: package acme-wiki-{place[10]} 1.2: section {section} cannot be used: {reason}; "
        "update or uninstall the package\n"
    )


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment that has what this one has, and the package of the examples."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    (packages,) = (folder / "lib").glob("python*/site-packages")
    (packages / "beside.pth").write_text(f"{ROOT}\n{sysconfig.get_path('purelib')}\n")
    python = folder / "bin" / "python"
    options = ["--no-deps", "--no-index", "--no-build-isolation", "--disable-pip-version-check", "--quiet"]
    done([sys.executable, "-m", "pip", "--python", str(python), "install", *options, str(PACKAGE)], ROOT)
    return python


def done(line: list[str], folder: Path) -> str:
    """Run a command; return what it prints."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    ended = subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


STORY = """
import io, os, runpy, sys
from contextlib import redirect_stdout
from pathlib import Path
from reconciler.cli import run
from reconciler.sandbox import running

def story(state, token, *lines):
    with running(Path(state)) as sandbox:
        os.environ.update(RECONCILER_API_URL=sandbox.api_url, RECONCILER_TOKEN=token)
        for line in lines:
            command, _, wanted = line.partition(" | grep ")
            printed = io.StringIO()
            with redirect_stdout(printed):
                code = run(command.split())
            kept = [each + "\\n" for each in printed.getvalue().splitlines() if wanted in each]
            print(f"$ {line}\\n{''.join(kept)}({code})")

story(sys.argv[1], "ada-token", *sys.argv[3:])
story("state.yaml", "rehearsal", "plan manifest.yaml")
runpy.run_path(sys.argv[2])["test_the_life_of_a_deploy_key"]()
"""

TOLD = """\
$ validate manifest.yaml
Valid: 1 document: 1 project.
(0)
$ schema manifest | grep Deploy keys
                            "title": "Deploy keys",
              "title": "Deploy keys",
              "description": "Deploy keys of a project, by title.",
              "title": "Deploy keys",
              "description": "Deploy keys of a project, by title.",
              "title": "Deploy keys",
              "description": "Deploy keys of a project, by title.",
(0)
$ doctor manifest.yaml | grep deploy_keys
  ok       deploy_keys                               read: yes, write: yes (1 target)
(0)
$ plan manifest.yaml --out plan.json
Loosens protection:
project acme/payments/api
  + deploy key "Mirror"                       key: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGZl3oSXVMkEOhl8kB1nBIzRkyN…", can_push: true, loosens     manifest.yaml:8
  + deploy key "Production server"            key: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJuVlsH9c0gpY0KbPqbzwTJz0dY…", loosens     manifest.yaml:6
Plan: 2 to create, 2 loosening. 2 writes to apply; 1 request was made to plan.
(0)
$ apply --plan plan.json --yes
project acme/payments/api
  + deploy key "Mirror"                       done
  + deploy key "Production server"            done
Applied: 2 created, 2 loosening. 4 requests made.
(0)
$ plan manifest.yaml
No changes: 1 target is in order. 1 request was made to plan.
(0)
$ export --project acme/payments/api --section deploy_keys -o exported --state state.yaml
exported/acme/payments/api.yaml
(0)
$ drift exported
(0)
$ plan manifest.yaml
No changes: 1 target is in order. 1 request was made to plan.
(0)
"""


@pytest.mark.untraced
def test_an_installed_package_goes_from_its_manifest_to_a_second_empty_plan_and_passes_its_test(
    python: Path, tmp_path: Path
) -> None:
    (tmp_path / "manifest.yaml").write_text(MANIFEST.read_text())
    lines = [line.removeprefix("$ ") for line in TOLD.splitlines() if line.startswith("$ ")][:-1]
    files = [str(ROOT / "examples" / "state.yaml"), str(PACKAGE / "tests" / "test_deploy_keys.py")]
    assert done([str(python), "-c", STORY, *files, *lines], tmp_path) == TOLD


def test_the_page_shows_the_kind_as_it_is() -> None:
    page = ROOT / "docs" / "contributing" / "add-a-kind.md"
    shown = {block.title: block.text for block in blocks(page) if block.title}
    name = f"{PACKAGE.name}/reconciler_deploy_keys/__init__.py"
    assert shown == {name: (PACKAGE.parent / name).read_text()}
