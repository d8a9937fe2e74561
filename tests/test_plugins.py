"""Kinds of other people's packages: found by entry points, and refused with the package's name where they are broken."""

from pathlib import Path

import pytest

from reconciler.kinds import all_kinds
from tests.cli_runner import CliRunner

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
