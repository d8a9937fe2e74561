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


THIRD_MEANINGS = {
    "change": "a change of a plan: `Change`, or the types of it that a function takes",
    "context": "a command line's; `CheckContext` of the doctor's checks; and of Jinja, whose method is overridden",
    "event": "an audit event; `Any` in kinds' `trace`; and of YAML, whose method is overridden",
    "record": "a live object, or the service's JSON; and of `logging`, whose method is overridden",
    "request": "the words for a request, or the request; and of httpx, whose method is overridden",
    "schema": "of pydantic, whose methods are overridden: a type for each",
    "stream": "a connection, or a terminal; and of Jinja, whose method is overridden",
}
"""The parameter names with more than two meanings, each with the reason; every other name has one or two."""

CONTAINERS = {"Collection", "Container", "Iterable", "Iterator", "Sequence", "Set", "Some", "frozenset", "list", "set"}
"""Types that say the same about a parameter: it has several of something. `tuple` does so with an ellipsis."""


def types_of(annotation: ast.expr) -> frozenset[str]:
    """Return the members of a union in one spelling, without `None`: quotes, and the sort of container, say nothing."""
    match annotation:
        case ast.Constant(value=text):
            return types_of(ast.parse(str(text), mode="eval").body) if text else frozenset()
        case ast.BinOp(left=left, right=right):
            return types_of(left) | types_of(right)
        case ast.Subscript(value=ast.Name(id=base), slice=argument) if base in CONTAINERS:
            return frozenset({f"several {' | '.join(sorted(types_of(argument)))}"})
        case ast.Subscript(value=ast.Name(id="tuple"), slice=ast.Tuple(elts=[item, ast.Constant(value=end)])) if (
            end is ...
        ):
            return frozenset({f"several {' | '.join(sorted(types_of(item)))}"})
        case ast.Subscript(value=ast.Name(id=base)) if base not in {"Callable", "Mapping", "dict", "tuple", "type"}:
            return frozenset({base})
    return frozenset({re.sub(r"^dict\b", "Mapping", ast.unparse(annotation))})


def meanings(annotations: list[ast.expr]) -> set[frozenset[str]]:
    """Return the different types that a name is annotated with; a union of these is no further one."""
    unions = {types_of(annotation) for annotation in annotations}
    single = {member for union in unions if len(union) == 1 for member in union}
    return {union for union in unions if len(union) == 1 or not union <= single}


def test_spellings_of_one_type_are_one_meaning() -> None:
    spellings = [
        "'Plan'",
        "Plan | None",
        "Iterable[Plan]",
        "tuple[Plan, ...]",
        "list['Plan'] | None",
        "DeclaredPart[Plan]",
    ]
    spellings += ["DeclaredPart[Any]", "Plan | DeclaredPart[Part]", "dict[str, Plan]", "Mapping[str, Plan]"]
    annotations = [ast.parse(spelling, mode="eval").body for spelling in spellings]
    assert meanings(annotations) == {
        frozenset({"Plan"}),
        frozenset({"several Plan"}),
        frozenset({"DeclaredPart"}),
        frozenset({"Mapping[str, Plan]"}),
    }
    (pair,) = meanings([ast.parse("tuple[str, int]", mode="eval").body])
    assert pair == {"tuple[str, int]"}
    assert meanings([ast.parse("str | int", mode="eval").body]) == {frozenset({"str", "int"})}


@pytest.mark.untraced
def test_a_parameter_name_has_at_most_two_meanings() -> None:
    annotations: dict[str, list[ast.expr]] = {}
    for file in SOURCES:
        if "sandbox" in file.parts:  # it shares no word with the package on purpose
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef):
                for parameter in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
                    if parameter.annotation is not None:
                        annotations.setdefault(parameter.arg, []).append(parameter.annotation)
    more = {name: found for name, types in annotations.items() if len(found := meanings(types)) > 2}
    assert more.keys() == THIRD_MEANINGS.keys(), {name: more[name] for name in more.keys() - THIRD_MEANINGS.keys()}


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
