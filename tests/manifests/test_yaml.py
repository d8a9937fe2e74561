"""YAML as manifests know it: 1.2, bounded, and with everything wrong at its place."""

import math
from io import StringIO
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from reconciler.manifests import yaml_reader
from reconciler.manifests.sources import Document, Source
from reconciler.manifests.yaml_reader import Position, read_plain
from reconciler.manifests.yaml_reader import read_positions as read_all

SCALARS = {
    "": None,
    "~": None,
    "null": None,
    "NULL": None,
    "nUll": "nUll",
    "true": True,
    "False": False,
    "TRUE": True,
    "yes": "yes",
    "no": "no",
    "on": "on",
    "Off": "Off",
    "y": "y",
    "2026-12-01": "2026-12-01",
    "2026.12": 2026.12,
    "12:30:45": "12:30:45",
    "1_000": "1_000",
    "0b1": "0b1",
    "-12": -12,
    "-0o7": "-0o7",
    ".5": 0.5,
    "5.": 5.0,
    "-1.5e3": -1500.0,
    "1e3": 1000.0,
    ".inf": math.inf,
    "-.INF": -math.inf,
    "+.Inf": math.inf,
    "-": ["-"],
    "--": "--",
    "1.2.3": "1.2.3",
    "nightly-build": "nightly-build",
    "=": "=",
    "'12'": "12",
    '"true"': "true",
    "! 12": "12",
    "!!str 12": "12",
    "!!int 16": 16,
    "!!float 3": 3.0,
    "!!float .5": 0.5,
    "!!bool true": True,
    "!!null ''": None,
    "!!null ~": None,
    "!!map {a: 1}": {"a": 1},
    "!!seq [1]": [1],
}


@pytest.mark.parametrize("written", SCALARS)
def test_what_a_scalar_means(written: str) -> None:
    text = "- -\n" if written == "-" else f"- {written}\n"
    expected = [[None]] if written == "-" else [SCALARS[written]]
    found = read_all(text)
    assert (found.errors, found.roots[0].value) == ((), expected)
    assert type(found.roots[0].value[0]) is type(expected[0])
    assert read_plain(text) in (None, found.roots)


def test_not_a_number() -> None:
    (root,) = read_plain("a: .nan") or ()
    assert math.isnan(root.value["a"])


FLAWS = {
    "a: !!int x": "1:4 the tag `!!int` does not fit this value",
    "a: !!int true": "1:4 the tag `!!int` does not fit this value",
    "a: !!bool 1": "1:4 the tag `!!bool` does not fit this value",
    "a: !!timestamp 2026-12-01": "1:4 unknown tag `!!timestamp`: manifests are plain YAML, leave the tag out",
    "a: !!map x": "1:4 unknown tag `!!map`: manifests are plain YAML, leave the tag out",
    "a: !!seq {}": "1:4 unknown tag `!!seq`: manifests are plain YAML, leave the tag out",
    "a: !x []": "1:4 unknown tag `!x`: manifests are plain YAML, leave the tag out",
    "a: !x!y z": "1:4 unknown tag: manifests are plain YAML, leave the tag out",
    "a: &x [*x]": "1:8 the alias `*x` is part of the value that it stands for",
    "a: *x": "1:4 the alias `*x` has no anchor `&x` before it",
    "a: &x 1\n---\nb: *x": "3:4 the alias `*x` has no anchor `&x` before it",
    "a: " + "1" * 301: "1:4 a number of more than 300 characters: quote it if it is meant as text",
    **{
        f"a: {number}": f"1:4 `{number}` is not a number in plain decimal: leave out leading zeros, `+` and prefixes such "
        "as `0x`, or quote it if it is meant as text"
        for number in ("017", "-017", "+12", "0o17", "0x1F")
    },
    "0012: 1": "1:1 `0012` is not a number in plain decimal: leave out leading zeros, `+` and prefixes such as `0x`, or "
    "quote it if it is meant as text",
    "[x]: 1": "1:1 a key must be text: quote it if the bracket is part of it",
    "a: &x []\n*x : 1": "2:1 a key must be text: quote it if the bracket is part of it",
    "a: &x 12\n*x : 1": "2:1 `12` is a number, and a key must be text: quote it",
    "a: [": "1:5 a value is missing here, or a bracket is not closed",
    "a: {b: c": "1:9 the mapping begun on line 1 is not closed: `}` is missing, or a comma",
    "- [a\nb: 1": "2:2 the list begun on line 1 is not closed: `]` is missing, or a comma",
    "a: b: c": "1:5 a colon is not allowed here: quote the text it is in, or check the indentation",
    "a:\n\t- b": "2:1 a tab may not indent: use spaces",
    "a: @x": "1:4 a value may not begin with @ : quote it",
    "- a\nb: c": "2:1 an entry `- ...` was expected here: check the indentation of the list begun on line 1",
    "a: 'x": "1:6 the quoted text begun on line 1 is not closed",
    'a: "x\n---\n': "2:1 the quoted text begun on line 1 is not closed",
    'a: "\\q"': "1:5 unknown escape: use single quotes, or write `\\\\` for a backslash",
    'a: "\\xzz"': "1:7 this escape needs more hexadecimal digits",
    'a: "\\ud800"': "1:7 this escape is not a character",
    "%YAML 2.0\n---\na": "1:1 manifests are YAML 1.2: leave the %YAML line out",
    "%FOO\n---\na": "1:5 `%` begins a directive: quote the text if it is meant as text",
    "a: *": "1:5 `*` begins an alias: quote the text if it is meant as text",
    "a: & b": "1:5 `&` begins an anchor: quote the text if it is meant as text",
    "a: 1\n...\nb: 1": "3:1 this does not continue what is before it: check the indentation",
    "a: 1\nb": "2:2 a key needs a colon and a space behind it; or check the indentation",
    "a: >x\n b": "1:5 text behind `|` or `>` begins on the next line",
    "a:\n  b: 1\n c: 2": "3:2 a key and a colon were expected here: "
    "check the indentation of the mapping begun on line 1",
    "a: - b": "1:4 a list entry `- ...` is not allowed here: put it on its own line",
    "ä: \x1b": "1:4 the character U+001B is not allowed in YAML: leave it out",
    "a: \r\n- \x07": "2:3 the character U+0007 is not allowed in YAML: leave it out",
    "a: \ud800": "1:4 the character U+D800 is not allowed in YAML: leave it out",
    "%TAG ! tag:x,2000:\n%TAG ! tag:y,2000:\n---\na": "2:1 not YAML: found duplicate %TAG directive",
}


@pytest.mark.parametrize("text", FLAWS)
def test_what_is_wrong_with_a_text(text: str) -> None:
    found = read_all(text)
    assert [f"{error.line}:{error.column} {error.message}" for error in found.errors] == [FLAWS[text]]
    assert read_plain(text) is None


def test_what_stands_before_the_break_is_still_read() -> None:
    found = read_all("a: 1\na: 2\n---\nb: !x 1\n---\nc: [\n")
    assert [root.value for root in found.roots] == [{"a": 2}, {"b": "1"}]
    assert [error.message for error in found.errors] == [
        "`a` is given twice; first on line 1, column 1",
        "unknown tag `!x`: manifests are plain YAML, leave the tag out",
        "a value is missing here, or a bracket is not closed",
    ]
    assert not found.whole
    assert read_all("a: 1\na: 2\n").whole


def test_aliases_stand_for_what_they_name() -> None:
    found = read_all("a: &x {b: &y [1]}\nc: *x\nd: *y\ne: &y 2\nf: *y\n&k g: *k\n")
    assert found.errors == ()
    assert found.roots[0].value == {"a": {"b": [1]}, "c": {"b": [1]}, "d": [1], "e": 2, "f": 2, "g": "g"}


def test_places_are_counted_in_characters_from_one() -> None:
    found = read_all("# ä\nä: [ö, 'é']\nempty:\n---\n- x\n")
    mapping, entries = found.roots
    assert (mapping.line, entries.line) == (2, 5)
    assert found.positions[id(mapping.value)] == {
        "ä": (Position(2, 1), Position(2, 4)),
        "empty": (Position(3, 1), Position(3, 1, "")),
    }
    assert found.positions[id(mapping.value["ä"])] == {
        0: (Position(2, 5, "ö"), Position(2, 5, "ö")),
        1: (Position(2, 8, "é"), Position(2, 8, "é")),
    }


def test_what_is_not_written_is_where_it_would_be() -> None:
    document = Document(Source("a.yaml", "a:\n  b: [1]\n"), 0, 1, {"a": {"b": [1]}})
    assert [str(document.find(path)) for path in [(), ("x",), ("a", "x"), ("a", "b", 7), ("a", "b", 0, "x")]] == [
        "a.yaml:1:1",
        "a.yaml:1:1",
        "a.yaml:1:1",
        "a.yaml:2:3",
        "a.yaml:2:7",
    ]


def test_documents_with_nothing_in_them_are_left_out() -> None:
    text = "---\n# nothing\n---\na: 1\n...\n---\n--- ~\n"
    assert [(root.value, root.line) for root in read_plain(text) or ()] == [({"a": 1}, 4), (None, 7)]
    assert read_all(text).roots == read_plain(text)
    assert read_plain("# nothing\n") == ()


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? ", "&a [", "!!seq ["])
def test_depth_is_refused_before_it_is_built(opening: str) -> None:
    found = read_all(opening * 30_000)
    assert any(error.message == "nested more than 64 deep" for error in found.errors) or opening == "? "
    assert found.errors
    assert read_plain(opening * 30_000) is None


def test_sixty_four_levels_are_fine() -> None:
    assert read_plain("[" * 64 + "]" * 64) == read_all("[" * 64 + "]" * 64).roots
    assert read_all("[" * 64 + "]" * 64).errors == ()
    assert read_all("[" * 65 + "]" * 65).errors[0].column == 65


def test_a_billion_laughs_are_refused_before_they_are_built() -> None:
    lines = ["a0: &a0 [" + ", ".join(["lol"] * 10) + "]"]
    lines += [f"a{n}: &a{n} [" + ", ".join([f"*a{n - 1}"] * 10) + "]" for n in range(1, 10)]
    found = read_all("\n".join(lines))
    assert [(error.line, error.message) for error in found.errors] == [
        (4, "the aliases expand to more than 10,000 values")
    ]


@pytest.mark.untraced
def test_ten_thousand_aliases_are_fine_and_one_more_is_not() -> None:
    assert read_all("- &x 1\n" + "- *x\n" * 10_000).errors == ()
    assert read_all("- &x 1\n" + "- *x\n" * 10_001).errors[0].line == 10_002


PLAIN_TEXT = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Cn", "Co", "Zl", "Zp")), max_size=20)
WORDS = st.sampled_from(
    ["yes", "2026.12", "0o7", "~", "<<", "- a", "a: b", "2026-12-01", "null", "'", "12", "-1", ".inf", "0x1F"]
)


def _values(text: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    return st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | text,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4),
        max_leaves=12,
    )


@pytest.mark.untraced
@settings(deadline=None)
@given(_values(PLAIN_TEXT | WORDS))
def test_what_pyyaml_writes_is_read_back(value: Any) -> None:
    text = yaml.dump(value, allow_unicode=True, Dumper=_Writer)
    (root,) = read_all(text).roots
    assert root.value == value
    assert read_plain(text) in (None, (root,))


class _Writer(yaml.SafeDumper):
    """Quotes all text, and writes no anchors: what plain text means differs between YAML 1.1 and 1.2."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - the base class says what is asked
        return True


_Writer.add_representer(str, lambda writer, text: writer.represent_scalar("tag:yaml.org,2002:str", text, style='"'))
_Writer.add_representer(
    float, lambda writer, number: writer.represent_scalar("tag:yaml.org,2002:float", _plain(number))
)


def _plain(number: float) -> str:
    return {math.inf: ".inf", -math.inf: "-.inf"}.get(number, repr(number))


PIECES = ["- ", ": ", ", ", "&x ", "*x", "!!str ", "!x", "? ", "---\n", "...\n", "<<", "2026.12", "  "]
SNIPPETS = st.lists(st.sampled_from([*"ab:[]{}'\"#|>%1~\\@`\n\t\r\x85\x1b\ud800é", *PIECES]), max_size=25).map("".join)


@pytest.mark.untraced
@settings(deadline=None)
@given(SNIPPETS | st.text(max_size=40))
@example("a: [\n")
def test_any_text_is_read_or_told_what_is_wrong(text: str) -> None:
    found = read_all(text)
    plain = read_plain(text)
    assert plain is None or (found.errors == () and repr(plain) == repr(found.roots))
    assert found.whole or found.errors
    for error in found.errors:
        assert error.line >= 1
        assert error.column >= 1
        assert error.message


@pytest.mark.untraced
@settings(deadline=None)
@given(_values(st.text("abny ~_-é\n", max_size=12) | WORDS.filter(lambda word: word != "<<")))
def test_what_another_reader_of_yaml_1_2_reads_is_read_alike(value: Any) -> None:
    ruamel = YAML(typ="safe", pure=True)
    ruamel.width = 10_000  # it does not read every key that it folds
    text = StringIO()
    ruamel.dump(value, text)
    found = read_all(text.getvalue())
    assert [root.value for root in found.roots] == [ruamel.load(text.getvalue())]
    assert found.errors == ()


@pytest.fixture
def without_libyaml(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyYAML as it is where it was built without libyaml."""
    monkeypatch.setattr(yaml_reader, "LOADER", yaml.SafeLoader)


@pytest.mark.untraced
@pytest.mark.usefixtures("without_libyaml")
@pytest.mark.parametrize("text", FLAWS)
def test_the_same_is_wrong_without_libyaml(text: str) -> None:
    places = [f"{error.line}:{error.message.startswith('not YAML')}" for error in read_all(text).errors]
    assert places == ([] if "%FOO" in text else [f"{FLAWS[text].split(':')[0]}:{'%TAG' in text}"])


@pytest.mark.usefixtures("without_libyaml")
def test_without_libyaml_everything_is_read_thoroughly() -> None:
    assert read_plain("a: 1") is None
    assert read_all("a: [1, {b: null}]").roots[0].value == {"a": [1, {"b": None}]}
    assert read_all("[" * 30_000).errors[0].message == "nested more than 64 deep"
    assert read_all('a: "\\ud800"').errors[0].message == "an escape in this text is not a character"
