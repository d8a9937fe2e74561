"""YAML files that are no manifests: the configuration, values for templates, and what `render` writes."""

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reconciler.errors import ManifestErrors
from reconciler.manifests.sources import open_source, read_mapping
from reconciler.manifests.yaml_emitter import (
    STANDARD,
    Indents,
    behind_key,
    block,
    inline,
    write_document,
    write_yaml,
)
from reconciler.manifests.yaml_reader import read_positions
from tests.manifests.conftest import Folder


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a: 1\nb: {c: [yes]}\n", {"a": 1, "b": {"c": ["yes"]}}), ("", {}), ("# nothing\n", {}), ("{}", {})],
)
def test_one_mapping_is_read(text: str, expected: object, folder: Folder) -> None:
    folder.put("values.yaml", text)
    assert read_mapping(open_source("values.yaml")) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- 1", "values.yaml: must hold one mapping of names to values"),
        ("a: 1\n---\nb: 1", "values.yaml: must hold one mapping of names to values"),
        ("a: 1\na: 2", "values.yaml:2:1: `a` is given twice; first on line 1, column 1\n    a: 2\n    ^"),
        ("\0", "values.yaml: is not text: it holds null bytes"),
    ],
)
def test_anything_else_is_told_apart(text: str, expected: str, folder: Folder) -> None:
    folder.put("values.yaml", text)
    with pytest.raises(ManifestErrors) as caught:
        read_mapping(open_source("values.yaml"))
    assert str(caught.value) == expected


@pytest.mark.parametrize("compact", [False, True])
def test_what_is_written_is_read_back_the_same(compact: bool) -> None:
    documents: list[dict[str, Any]] = [
        {"kind": "User", "spec": {"milestones": {"2026.10": None, "yes": {"description": "a: b # c\n\n  d"}}}},
        {
            "prune": ["a", "b"],
            "dates": ["2026-12-01", "0o7", "~", "{path}", 12, True],
            "empty": {},
            "mixed": [["a", {"b": []}, "c"]],
            "long": "x y " * 100,
        },
    ]
    written = write_yaml(documents, compact=compact)
    assert [root.value for root in read_positions(written).roots] == documents


@pytest.mark.untraced
@settings(deadline=None)
@given(st.text() | st.text("abny10eo~_-.:#é\n\t ", max_size=12), st.integers(1, 6), st.integers(0, 6))
@example("on", 2, 2)
@example("1e3", 2, 2)
@example("0o7", 2, 2)
@example("~", 2, 2)
@example("<<", 2, 2)
@example("", 2, 2)
@example("---", 2, 2)
@example("2026-01-01", 2, 2)
@example("one\n\n  two\n", 2, 0)
@example("a tab\tand # no comment: \N{PARTY POPPER} \ufeff \x85", 2, 2)
@example("k" * 2000, 2, 2)
@example("\U000e0001" * 127, 2, 2)
def test_every_text_is_read_back_wherever_it_is_written(text: str, mapping: int, dash: int) -> None:
    value: dict[str, Any] = {text: [text, {text: text}], f"{text} ": {text: {text: text}}, f" {text}": text}
    indents = Indents(mapping, dash)
    first, below = behind_key(value, 1, indents)
    document = {"metadata": value}
    wanted = {
        write_yaml([value, value]): [value, value],
        write_yaml([value], compact=True): [value],
        write_document(document): [document],
        block(value, 3, indents): [value],
        block([value, text], 3, indents): [[value, text]],
        f" key: {first}\n{below}": [{"key": value}],
        f"- {inline(value)}\n- {inline(text)}": [[value, text]],
    }
    read = {written: read_positions(written) for written in wanted}
    assert {written: [root.value for root in found.roots] for written, found in read.items()} == wanted
    assert [found.errors for found in read.values() if found.errors] == []


def test_brackets_have_no_spaces_before_them() -> None:
    value = [[{"a": [[1, {"b": [{}]}], {}]}], {"c": [[]]}]
    one, other = "[{a: [[1, {b: [{}]}], {}]}]", "{c: [[]]}"
    assert inline(value) == f"[{one}, {other}]"
    assert write_yaml([{"k": {"l": value}}]) == f"k:\n  l:\n    - {one}\n    - {other}\n"
    assert block(value, 0, Indents(1, 4)) == f"- {one}\n- {other}\n"
    assert block({"l": value}, 0, Indents(4, 0)) == f"l:\n- {one}\n- {other}\n"


def test_half_of_a_character_is_written_as_an_escape_that_is_refused() -> None:
    written = write_yaml([{"a": "\ud800"}])
    assert written == 'a: "\\uD800"\n'
    assert [error.message for error in read_positions(written).errors] == ["this escape is not a character"]


def test_a_key_that_no_parser_would_find_before_its_colon_follows_a_question_mark() -> None:
    assert write_yaml([{"k" * 998: {"a": 1}, "k" * 999: {"a": 1}}]) == (
        f'"{"k" * 998}":\n  a: 1\n? "{"k" * 999}"\n: a: 1\n'
    )


def test_compact_text_has_short_collections_on_one_line_and_many_switches_like_text() -> None:
    switches = {f"switch_number_{number}": number % 2 == 0 for number in range(12)}
    document: dict[str, Any] = {
        "spec": {
            "short": {"a": 1, "b": [], "c": {}, "d": ["p", "q"]},
            "nested": {"a": {"b": {"c": 1}}},
            "long": {"text": "word " * 20, "more": "word " * 10},
            "lines": {"text": "one\ntwo\n"},
            "entries": [f"acme/a-project-with-a-name-{number}" for number in range(5)],
            "switches": switches,
        }
    }
    written = write_yaml([document], compact=True)
    assert (
        written
        == f"""\
spec:
  short: {{a: 1, b: [], c: {{}}, d: [p, q]}}
  nested:
    a:
      b: {{c: 1}}
  long:
    text: "{"word " * 20}"
    more: "{"word " * 10}"
  lines:
    text: |
      one
      two
  entries:
    - acme/a-project-with-a-name-0
    - acme/a-project-with-a-name-1
    - acme/a-project-with-a-name-2
    - acme/a-project-with-a-name-3
    - acme/a-project-with-a-name-4
  switches: {{switch_number_0: true, switch_number_1: false, switch_number_2: true, switch_number_3: false,
    switch_number_4: true, switch_number_5: false, switch_number_6: true, switch_number_7: false,
    switch_number_8: true, switch_number_9: false, switch_number_10: true, switch_number_11: false}}
"""
    )
    assert [root.value for root in read_positions(written).roots] == [document]


def test_what_could_steer_a_terminal_is_written_as_an_escape() -> None:
    documents: list[dict[str, Any]] = [
        {"a\u202eb": ["\x1b[2J", "\U000e0001", "\u2028", "\ufeff", "caf\u00e9", "a\nb\tc"]}
    ]
    written = write_yaml(documents)
    assert written.replace("\n", "").isprintable()
    assert '"a\\u202Eb":\n  - "\\e[2J"\n  - "\\U000E0001"\n' in written
    assert "- caf\u00e9\n" in written
    assert block(documents[0], 0, STANDARD) == written
    assert [root.value for root in read_positions(written).roots] == documents


LAYOUT = f"""\
a:
  simple text: feature/*
  "yes": "on"
  "2026-12-01": 2026-12-01
  "12:30": "12:30"
  lines: |
    one

    two
  open: |-
    one
    two
  "two\\nlines": " one\\ntwo"
  {"k" * 100}: "{"word " * 40}"
  "{"k" * 101}": ""
  list:
    - one
    - "one\\ntwo"
    - {{b: [1, 0.5, {{c: null}}], d: {{}}}}
  empty: []
"""


def test_the_layout_depends_on_the_values_only() -> None:
    document = {
        "a": {
            "simple text": "feature/*",
            "yes": "on",
            "2026-12-01": "2026-12-01",
            "12:30": "12:30",
            "lines": "one\n\ntwo\n",
            "open": "one\ntwo",
            "two\nlines": " one\ntwo",
            "k" * 100: "word " * 40,
            "k" * 101: "",
            "list": ["one", "one\ntwo", {"b": [1, 0.5, {"c": None}], "d": {}}],
            "empty": [],
        }
    }
    shared = document["a"]
    assert write_yaml([document]) == LAYOUT
    assert block(document, 0, STANDARD) == LAYOUT  # as in a file that exists
    assert write_yaml([{"a": shared}, {"a": shared}]) == f"{LAYOUT}---\n{LAYOUT}"
    assert [root.value for root in read_positions(LAYOUT).roots] == [document]
