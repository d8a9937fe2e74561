"""A text changed in place has the wanted values, and its comments stay."""

from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from reconciler.edit.yaml_edit import appended_text, edited_text, updated_text
from reconciler.errors import OutputFailed
from reconciler.manifests.sources import Source
from reconciler.manifests.yaml_emitter import write_yaml
from tests.export.lives import TEXTS

KEYS = st.sampled_from(["a", "b", "c d", "1.0", "yes"]) | TEXTS
SCALARS = st.none() | st.booleans() | st.integers() | TEXTS
VALUES = st.recursive(
    SCALARS | st.lists(st.sampled_from("abcdef") | TEXTS, unique=True),
    lambda inner: st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
DOCUMENTS = st.dictionaries(KEYS, VALUES, min_size=1, max_size=4)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(before=DOCUMENTS, after=DOCUMENTS, other=DOCUMENTS)
@example(before={"a": ["b", "c"]}, after={"a": ["c", "b"]}, other={"a": ["c", {"b": []}]})
def test_whatever_changes_comes_to_the_wanted_values(
    before: dict[str, Any], after: dict[str, Any], other: dict[str, Any]
) -> None:
    text = f"# first\n{write_yaml([before])}# between\n---\n{write_yaml([other])}# last\n"
    assert values(text) == [before, other]
    changed = edited_text(text, [before, other], {0: after})
    assert values(changed) == [after, other]
    assert [line for line in changed.splitlines() if line.startswith("# ")] == ["# first", "# between", "# last"]


def test_what_comes_between_brackets_is_written_on_their_line() -> None:
    text = "a: [x]  # list\nb: {c: y}\n"
    wanted = {"a": ["x", {"d": ["two words", []]}], "b": {"c": "y", "e": ["one\ntwo"]}}
    changed = edited_text(text, [{"a": ["x"], "b": {"c": "y"}}], {0: wanted})
    assert changed == 'a: [x, {d: [two words, []]}]  # list\nb: {c: y, e: ["one\\ntwo"]}\n'


def test_comments_between_entries_outlive_them() -> None:
    text = "a:\n  # one\n  b: {}\n  # two\n  c: {}\n  # three\nd: [x]\n"
    changed = edited_text(text, [{"a": {"b": {}, "c": {}}, "d": ["x"]}], {0: {"a": {}, "d": ["x"]}})
    assert changed == "a: {}\n  # one\n  # two\n  # three\nd: [x]\n"


def test_entries_are_not_compared_each_with_each() -> None:
    class Entry(str):
        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            comparisons.append(self)
            return str(self) == other

    comparisons: list[str] = []
    before = [Entry(f"acme/{number}") for number in range(200)]
    changed = edited_text(write_yaml([{"a": before}]), [{"a": before}], {0: {"a": before[1::2]}})
    assert values(changed) == [{"a": before[1::2]}]
    assert len(comparisons) < 1000


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_last_line_ends_as_it_did(end: str) -> None:
    text = f"a: b{end or chr(10)}c: d{end}"
    assert updated_text(Source("file", text), {0: {"a": "x", "c": "d"}}) == text.replace("b", "x")


def values(text: str) -> list[Any]:
    reading = Source("file", text).read()
    assert reading.errors == ()
    return reading.values


@pytest.mark.untraced
@pytest.mark.parametrize("ends", ["\n", "\r\n"], ids=["unix", "windows"])
@pytest.mark.parametrize(
    ("before", "kept"),
    [
        ("", ""),
        ("# only a comment\n\n", "# only a comment\n---\n"),
        ("a: b\n\n\n", "a: b\n---\n"),
        ("a: b", "a: b\n---\n"),
        ("a: b\n...\n\n", "a: b\n...\n---\n"),
        ("a: |\n  b\n\n", "a: |\n  b\n---\n"),
        ("a: |+\n  b\n\n\n", "a: |+\n  b\n\n\n---\n"),
        ("a: >+\n  b\n\n", "a: >+\n  b\n\n---\n"),
        ("a: |+\n\n\n", "a: |+\n\n\n---\n"),
    ],
)
def test_a_further_document_changes_no_value_of_the_others(before: str, kept: str, ends: str) -> None:
    source = Source("file", before.replace("\n", ends))
    text = appended_text(source, "x: y\n")
    assert text == f"{kept}x: y\n".replace("\n", ends if "\n" in before else "\n")
    assert values(text)[:-1] == source.read().values


def test_a_text_that_ends_in_the_middle_of_a_line_takes_no_further_document() -> None:
    for text in ("a: |\n  b", "a: |+\n  b"):
        with pytest.raises(OutputFailed, match=r"^file: no document can be written behind the last one"):
            appended_text(Source("file", text), "x: y\n")
