"""Templates: what they are given, what they may not do, and that errors name the template's own line."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import reconciler.manifests
from reconciler.errors import ConfigurationError, ManifestErrors
from reconciler.manifests.templates import Templates
from tests.manifests.conftest import Folder

pytestmark = pytest.mark.processes

HEAD = "apiVersion: reconciler/v1\nkind: Project\nmetadata: {path: acme/api}\nspec:\n"


def test_a_template_renders_to_documents(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.put(
        "fleet.yaml.j2",
        """\
{% for name in services %}
---
apiVersion: reconciler/v1
kind: Project
metadata: {path: acme/{{ name }}}
spec:
  milestones:
    "{{ release.name }}": {description: {{ env.CI_COMMIT | tojson }}}
{% endfor %}
""",
    )
    monkeypatch.setenv("CI_COMMIT", "abc: 123")
    folder.put("user.yaml.j2", "apiVersion: reconciler/v1\nkind: User\n")
    read = folder.read(values={"services": ["api", "web"], "release": {"name": "2026.12"}}, env_names=("CI_COMMIT",))
    assert [(str(target.target), target.origin) for target in read.desired.targets] == [
        ("user", "user.yaml.j2"),
        ("project acme/api", "fleet.yaml.j2"),
        ("project acme/web", "fleet.yaml.j2"),
    ]
    web = read.desired.targets[2].target
    assert read.of(web).spec == {"milestones": {"2026.12": {"description": "abc: 123"}}}
    assert read.of(web).explain("milestones.2026.12.description") == [("fleet.yaml.j2:8", "abc: 123")]


FAULTS = {
    "an undefined name": (
        HEAD + "  milestones:\n    {{ release }}: {}\n",
        "t.yaml.j2:6:5: `release` is not defined: give it by --values or --set\n        {{ release }}: {}\n        ^",
    ),
    "an attribute that is not there": (
        "{{ name.first }}",
        "text has no `first`; --set gives text only: give lists and mappings by --values\n    {{ name.first }}\n    ^",
    ),
    "an attribute within a macro": (
        "{% macro m() %}\n  {{ nobody }}\n{% endmacro %}\n\n{{ m() }}",
        "t.yaml.j2:2:3: `nobody` is not defined: give it by --values or --set\n      {{ nobody }}\n      ^",
    ),
    "a variable that is not named": (
        "x: {{ env.HOME }}",
        "the environment variable HOME may not be read: name it by --env HOME\n    x: {{ env.HOME }}\n    ^",
    ),
    "a variable that is not set": (
        "x: {{ env.NOT_SET }}",
        "the environment variable NOT_SET is not set\n    x: {{ env.NOT_SET }}\n    ^",
    ),
    "syntax": (
        "x: 1\n{% if %}",
        "t.yaml.j2:2:1: template syntax: Expected an expression, got 'end of statement block'\n    {% if %}\n    ^",
    ),
    "loading": (
        "{% include 'other.yaml' %}",
        "a template cannot load other files\n    {% include 'other.yaml' %}\n    ^",
    ),
    "importing": ("{% import '/etc/passwd' as x %}", "a template cannot load other files"),
    "extending": ("{% extends 'x' %}", "a template cannot load other files"),
    "the insides of Python": (
        "{{ name.__class__.__mro__ }}",
        "not allowed in a template: access to attribute '__class__' of 'str' object is unsafe.",
    ),
    "a large range": (
        "{% for i in range(1000000000000) %}x{% endfor %}",
        "range() gives more than 1,000,000 numbers",
    ),
    "many ranges": (
        "{% for i in range(9000) %}{% for j in range(9000) %}{% endfor %}{% endfor %}",
        "range() gives more than 1,000,000 numbers",
    ),
    "output without end": (
        "{% for i in range(900) %}{% for j in range(900) %}0123456789{% endfor %}{% endfor %}",
        "t.yaml.j2: renders to more than 5 MiB",
    ),
    "a long text": ("{{ 'x' * 10000000000 }}", "`*` gives more than 5,242,880 characters"),
    "a long text the other way round": ("{{ 10000000000 * [1] }}", "`*` gives more than 5,242,880 characters"),
    "a large number": ("{{ 9 ** (9 ** 9) }}", "`**` takes whole numbers, and an exponent from 0 to 64"),
    "a wide field": ("{{ '%999999999d' % 1 }}", "`%` is for numbers: use the filter `format` for text"),
    "an exception": ("{{ 1 / 0 }}", "division by zero\n    {{ 1 / 0 }}\n    ^"),
    "a wordless exception": ("{{ [].pop(0, 1, 2) }}", "pop expected at most 1 argument, got 3"),
    "depth": ("{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}", "t.yaml.j2: the template is nested too deep"),
    "a wide text": (
        "a: 1\n{{ 'x' | center(10000000000) }}",
        "t.yaml.j2:2:1: the template is nested too deep, or takes more than 512 MiB of memory\n    {{ 'x' |",
    ),
    "a list that doubles": (
        "{% set l = [1] %}{% for i in range(60) %}{{ l.extend(l) or '' }}{% endfor %}",
        "t.yaml.j2:1:1: the template is nested too deep, or takes more than 512 MiB of memory",
    ),
    "no chance": ("{{ [1, 2] | random }}{{ lipsum() }}", "template syntax: No filter named 'random'."),
}


def test_what_is_said_of_each_fault(folder: Folder) -> None:
    for number, (template, _) in enumerate(FAULTS.values()):
        folder.put(f"{number}/t.yaml.j2", template)
    with pytest.raises(ManifestErrors) as caught:
        folder.read(values={"name": "Ada"}, env_names=("NOT_SET",))
    said: dict[str, str] = {}
    for fault in caught.value.diagnostics:
        said[fault.path] = f"{said.get(fault.path, '')}{fault}\n"
    wrong = {
        case: said.get(f"{number}/t.yaml.j2")
        for number, (case, (_, expected)) in enumerate(FAULTS.items())
        if expected not in said.get(f"{number}/t.yaml.j2", "")
    }
    assert wrong == {}


def test_what_operators_may_do(folder: Folder) -> None:
    folder.put(
        "t.yaml.j2", HEAD + "  milestones: {'{{ 'ab' * 2 }} {{ 2 ** 10 }} {{ 7 % 4 }} {{ 3 * 4 }} {{ 1.5 * 2 }}': {}}"
    )
    read = folder.read()
    assert read.of(read.desired.targets[0].target).spec == {"milestones": {"abab 1024 3 12 3.0": {}}}


def test_a_fault_in_what_was_rendered_names_the_template_s_own_line(folder: Folder) -> None:
    folder.put(
        "t.yaml.j2",
        """\
{% for name in ["api", "web"] -%}
---
apiVersion: reconciler/v1
kind: Project
metadata: {path: acme/{{ name }}}
spec:
  milestones:
  {%- for title in range(2) %}
    m{{ title }}: {stat: closed}
  {%- endfor %}
{% endfor %}
""",
    )
    expected = (
        f"t.yaml.j2:9:10: unknown key `stat`; did you mean `state`? (line {line} of what the template renders to)\n"
        f"        m{title}: {{stat: closed}}\n             ^"
        for line, title in ((7, 0), (8, 1), (15, 0), (16, 1))
    )
    assert folder.faults() == "\n".join(sorted(expected))


def test_yaml_that_is_wrong_once_rendered_names_the_line_too(folder: Folder) -> None:
    folder.put("t.yaml.j2", "{# one\n   comment #}\na: [\n")
    said = "t.yaml.j2:3:5: a value is missing here, or a bracket is not closed (line 2 of what the template renders to)"
    assert folder.faults() == f"{said}\n    a: [\n        ^"


def test_where_marks_would_change_what_is_rendered_the_rendered_line_is_named(folder: Folder) -> None:
    folder.put("t.yaml.j2", "{% set text %}abc{% endset %}\n'{{ text | length }}': [\n")
    said = "t.yaml.j2:2:7: a value is missing here, or a bracket is not closed (line 2 of what the template renders to)"
    assert folder.faults() == f"{said}\n    '3': [\n          ^"


def test_marks_that_would_make_rendering_fail_are_done_without(folder: Folder) -> None:
    folder.put("t.yaml.j2", "{% set a %}x{% endset %}{% if a != 'x' %}{{ nobody }}{% endif %}\na: [\n")
    assert folder.faults().startswith("t.yaml.j2:2:5: a value is missing here")


def test_what_comes_first_out_of_an_expression_has_no_line_of_its_own(folder: Folder) -> None:
    folder.put("t.yaml.j2", "{{ '- [' }}")
    assert folder.faults().startswith("t.yaml.j2:1:4: a value is missing here")


def test_the_value_of_an_environment_variable_is_never_shown(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TITLE", "glpat-secret")
    monkeypatch.setenv("TINY", "abc")
    folder.put(
        "t.yaml.j2",
        HEAD + "  milestones: {a: {state: {{ env.TITLE }}, description: {{ env.TINY }}, x: {{ env.TITLE }}}}",
    )
    said = folder.faults(env_names=("TITLE", "TINY"))
    assert "secret" not in said
    assert said.splitlines()[1] == "      milestones: {a: {state: ************, description: abc, x: ************}}"
    monkeypatch.setenv("KEY", "-----BEGIN-----\nglpat-secret-2\n")
    folder.put("t.yaml.j2", "a: |\n  {{ env.KEY | indent }}: [\n b: 1\n")
    assert "glpat" not in folder.faults(env_names=("TITLE", "KEY"))
    folder.put("t.yaml.j2", HEAD + "  {{ env.TITLE }}: {}")
    assert folder.faults(env_names=("TITLE",)).startswith("t.yaml.j2:5:3: unknown section `************`; known are")


def test_text_that_yaml_cannot_hold(folder: Folder) -> None:
    folder.put("t.yaml.j2", "a: {{ text }}")
    said = folder.faults(values={"text": "\ud800\x1b"})
    assert said.splitlines()[0].startswith("t.yaml.j2:1:4: the character U+D800 is not allowed in YAML: leave it out")
    assert "\x1b" not in said


def test_a_value_called_env_may_not_hide_the_environment(folder: Folder) -> None:
    folder.put("t.yaml.j2", HEAD + "  milestones: {'{{ env }}': {}}")
    read = folder.read(values={"env": "production"})
    assert read.of(read.desired.targets[0].target).spec == {"milestones": {"production": {}}}
    with pytest.raises(ConfigurationError, match="a template value may not be called `env` beside --env"):
        folder.read(values={"env": "production"}, env_names=("HOME",))


@pytest.mark.untraced
def test_models_are_imported_only_for_manifests() -> None:
    program = "import sys, reconciler.manifests.sources; print('pydantic' in sys.modules)"
    path = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=path)
    assert done.stdout == "False\n"
    with pytest.raises(AttributeError, match=r"module 'reconciler.manifests' has no attribute 'nothing'"):
        _ = reconciler.manifests.nothing


@pytest.mark.untraced
def test_templates_are_rendered_by_another_process(folder: Folder) -> None:
    folder.put("a.yaml", HEAD + "  milestones: {}")
    folder.put("b.yaml.j2", "apiVersion: reconciler/v1\nkind: User")
    program = (
        "import sys; from pathlib import Path; from reconciler.kinds import all_kinds\n"
        "from reconciler.manifests import Inputs, read_manifests\n"
        "for file in ('a.yaml', 'b.yaml.j2'):\n"
        "    read_manifests(Inputs([Path(file)], all_kinds()))\n"
        "    print('subprocess' in sys.modules, 'jinja2' in sys.modules)"
    )
    path = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=path)
    assert done.stdout == "False False\nTrue False\n"


def test_that_process_imports_nothing_from_the_working_directory(folder: Folder) -> None:
    for name in ("jinja2", "reconciler", "json", "sitecustomize"):
        folder.put(f"{name}/__init__.py", "open('imported', 'w')")
    folder.put("t.yaml.j2", "apiVersion: reconciler/v1\nkind: User")
    assert len(folder.read("t.yaml.j2").desired.targets) == 1
    assert not Path("imported").exists()


COMPARING = (
    "{% set ns = namespace(a=[1], b=[1]) %}"
    "{% for i in range(60) %}{% set ns.a = [ns.a, ns.a] %}{% set ns.b = [ns.b, ns.b] %}{% endfor %}{{ ns.a == ns.b }}"
)
LOOPING = "a: 1\n{% for i in range(900000) %}\n  {% for j in l %}{% for k in l %}{% endfor %}{% endfor %}{% endfor %}"
"""It is on its last line practically always."""


@pytest.fixture
def templates() -> Iterator[Templates]:
    made = Templates({"l": [*range(1000)]}, (), seconds=1)
    yield made
    made.close()


def refusal(templates: Templates, text: str) -> str:
    with pytest.raises(ManifestErrors) as caught:
        templates.source("t.yaml.j2", text)
    return str(caught.value)


def test_a_template_gets_so_much_time_and_the_next_one_as_much(templates: Templates) -> None:
    said = "takes more than 1 s of processor time"
    assert (
        refusal(templates, LOOPING)
        == f"t.yaml.j2:3:3: {said}\n      {{% for j in l %}}{{% for k in l %}}{{% endfor %}}{{% endfor %}}{{% endfor %}}\n      ^"
    )
    templates.close()
    assert refusal(templates, COMPARING) == f"t.yaml.j2: {said}"
    assert templates.source("t.yaml.j2", "{{ l | length }}").text == "1000"


def test_where_the_process_is_killed_the_template_is_refused(templates: Templates) -> None:
    """As the operating system does where memory is short."""
    templates.source("t.yaml.j2", "a: b")
    assert templates._process is not None
    os.kill(templates._process.pid, signal.SIGKILL)
    said = "ended the process that renders it (exit code -9): it may take too much memory"
    assert refusal(templates, "a: b") == f"t.yaml.j2: {said}"
    assert templates.source("t.yaml.j2", "{{ l | length }}").text == "1000"


def test_what_a_template_does_to_its_values_is_its_own_affair(templates: Templates) -> None:
    texts = [templates.source("t.yaml.j2", "{{ l.append(1) }}{{ l | length }}").text for _ in range(2)]
    assert texts == ["None1001", "None1001"]


def test_a_template_can_be_interrupted() -> None:
    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    templates = Templates({"l": [*range(1000)]}, ())
    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(KeyboardInterrupt):
            templates.source("t.yaml.j2", LOOPING)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert templates.source("t.yaml.j2", "{{ l | length }}").text == "1000"
    templates.close()


def test_places_are_known_after_the_process_has_ended(templates: Templates) -> None:
    source = templates.source("t.yaml.j2", "{# one\n #}a: b")
    templates.close()
    assert source.own_line is not None
    assert source.own_line(1, 1) == 2
