"""Conventions that hold because a test says so."""

import ast
import re
import tomllib
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

from reconciler.model import endpoints

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "reconciler").rglob("*.py"))
EVERYTHING = [*SOURCES, *sorted((ROOT / "tests").rglob("*.py"))]

ALLOWED_PRAGMAS = 2
"""Lines that no test can reach, each with its reason: one more is a decision, not an accident."""


def lines_with(pattern: str, files: list[Path]) -> list[str]:
    found = re.compile(pattern)
    return [line for file in files for line in file.read_text().splitlines() if found.search(line)]


def test_what_coverage_passes_over_is_counted_and_has_its_reason() -> None:
    passed_over = lines_with(r"#\s*pragma: no", SOURCES)
    assert len(passed_over) == ALLOWED_PRAGMAS, passed_over
    assert [line for line in passed_over if not re.search(r"pragma: no \w+ - \w+", line)] == []


def test_nothing_is_left_out_of_coverage() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["coverage"]
    assert "omit" not in settings["run"]
    assert settings["report"]["fail_under"] == 100


def test_every_silenced_complaint_has_its_reason() -> None:
    marker = r"#\s*(type: ignore|noqa)"
    reason = r"#\s*(type: ignore\[[\w-]+\]|noqa: [A-Z0-9, ]+)\s*(#|-)\s*\w+"
    silenced = lines_with(marker, EVERYTHING)
    assert [line.strip() for line in silenced if "marker =" not in line and not re.search(reason, line)] == []


@pytest.mark.untraced
def test_every_module_begins_by_saying_its_place() -> None:
    assert [str(file) for file in SOURCES if not ast.get_docstring(ast.parse(file.read_text()))] == []


CLAUSE = re.compile(r"(Return|Yield|Say|Tell|Note)s? (what|why|how|who|whose|where|when|which|as far|as much)\b")
"""The beginning of a docstring that has a clause where a noun belongs."""


@pytest.mark.untraced
def test_no_docstring_begins_with_a_clause() -> None:
    functions = (node for file in SOURCES for node in ast.walk(ast.parse(file.read_text())))
    first_lines = [
        (node.name, (ast.get_docstring(node) or "").partition("\n")[0])
        for node in functions
        if isinstance(node, ast.FunctionDef)
    ]
    assert [line for line in first_lines if CLAUSE.match(line[1])] == []


def test_no_module_is_named_for_nothing() -> None:
    nameless = {"utils", "util", "helpers", "common", "base", "manager", "models", "misc"}
    assert [str(file) for file in SOURCES if file.stem in nameless] == []


@pytest.mark.untraced
def test_nothing_is_left_for_later() -> None:
    words = "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X"])
    assert lines_with(rf"\b({words})\b", EVERYTHING) == []


def test_nothing_pretends_to_be_something_else() -> None:
    assert lines_with("unittest" + r"\.mock|Magic" + "Mock", EVERYTHING) == []


def test_the_readme_has_one_line_that_runs_the_checks() -> None:
    lines = [line for line in (ROOT / "README.md").read_text().splitlines() if line.endswith("./check")]
    assert len(lines) == 1
    assert "grep -m 1" in (ROOT / ".ci" / "run").read_text()


MOST_FIELDS = 16
"""What one can still take in at a glance; more is another capability."""


def test_an_endpoint_and_each_capability_of_it_can_be_taken_in_at_a_glance() -> None:
    defined = [value for value in vars(endpoints).values() if getattr(value, "__module__", "") == endpoints.__name__]
    values = [value for value in defined if isinstance(value, type) and is_dataclass(value)]
    assert {"Collection", "Names", "Singleton", "Writes"} <= {value.__name__ for value in values}
    assert {value.__name__: len(fields(value)) for value in values if len(fields(value)) > MOST_FIELDS} == {}


MOST_NAMELESS = 102
"""How many variables are called `each` or `found`, which name nothing: the figure may fall, and never rise."""

NAMED = (
    "accept",
    "doctor",
    "document",
    "engine",
    "export",
    "kinds",
    "memory",
    "model",
    "reports",
    "sandbox",
    "schema",
    "service",
    "system",
)
"""The folders whose variables all have a noun; `found` is there a field alone, which plans and kinds show."""


def nameless(file: Path) -> int:
    """Return how many variables and parameters of a module are called `each` or `found`."""
    nodes = list(ast.walk(ast.parse(file.read_text())))
    names = [node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    names += [node.arg for node in nodes if isinstance(node, ast.arg)]
    names += [node.name for node in nodes if isinstance(node, ast.MatchAs) and node.name]
    return sum(name in {"each", "found"} for name in names)


@pytest.mark.untraced
def test_variables_are_named_by_their_nouns() -> None:
    counts = {file.relative_to(ROOT / "reconciler"): nameless(file) for file in SOURCES}
    assert sum(counts.values()) <= MOST_NAMELESS
    assert sum(count for file, count in counts.items() if file.parts[0] in NAMED) <= 5


@pytest.mark.untraced
def test_no_two_classes_share_a_name() -> None:
    classes = [
        node.name
        for file in SOURCES
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ClassDef)
    ]
    assert {name for name in classes if classes.count(name) > 1} == set()


@pytest.mark.parametrize(
    ("page", "heading"),
    [("CONTRIBUTING.md", "### Where do I change what"), ("docs/explanation/design.md", "## The concepts")],
)
def test_the_files_that_contributors_are_sent_to_exist(page: str, heading: str) -> None:
    section = (ROOT / page).read_text().partition(heading)[2].partition("\n## ")[0]
    paths = [path for path in re.findall(r"`([\w/]+\.(?:py|txt))`", section) if "KIND" not in path]
    assert len(paths) > 15
    assert [path for path in paths if not any((ROOT / top / path).exists() for top in ("", "reconciler"))] == []
