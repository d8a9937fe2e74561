"""YAML texts of several documents, changed in place: values that differ change, comments, order and layout stay.

ruamel reads a text into trees and writes them; every plain scalar is text to it, so that it is written as it was read.
`edit_tree` changes a tree from one plain value to another, and `keep_lines` restores the lines that ruamel only laid
out anew.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from io import StringIO
from typing import Any, NamedTuple

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import CommentMark, YAMLError
from ruamel.yaml.resolver import VersionedResolver
from ruamel.yaml.scalarstring import (
    DoubleQuotedScalarString,
    FoldedScalarString,
    LiteralScalarString,
    PlainScalarString,
)
from ruamel.yaml.tokens import CommentToken

from reconciler.manifests.yaml_reader import resolve

WIDEST = 1_000_000
"""Columns: no line is ever folded."""


class Indents(NamedTuple):
    """How many columns mappings, and the dashes of lists, are indented below their key."""

    mapping: int = 2
    dash: int = 2


STANDARD = Indents()
"""The layout of new files."""


def same(one: Any, other: Any) -> bool:
    """Whether two plain values are equal, types and order included."""
    return json.dumps(one) == json.dumps(other)


def new_text(document: dict[str, Any]) -> str:
    """Return the YAML text of a new document."""
    return _write([_node(document)], STANDARD)


def edited_texts(text: str, before: Sequence[Any], changes: Mapping[int, Any]) -> tuple[str, ...]:
    """Return the ways to write some documents with changes, the best first, empty if ruamel cannot change them.

    Whether such a text has the wanted values is for the caller to check.

    Args:
        text: the documents as they are, with Unix line breaks.
        before: their plain values.
        changes: the new plain values, by number of document.
    """
    try:
        trees = [tree for tree in _yaml(STANDARD).load_all(text) if tree]
        indents = _indents_of(trees)
        unchanged = _write(trees, indents)
        for number, value in changes.items():
            edit_tree(trees[number], before[number], value)
        changed = _write(trees, indents)
    except (YAMLError, LookupError, TypeError, AttributeError):
        return ()
    return keep_lines(text, unchanged, changed), changed


class _TextOnly(VersionedResolver):
    """Takes every plain scalar for text, so that it is written again as it was."""

    @property
    def versioned_resolver(self) -> dict[Any, Any]:
        """No scalar is anything else than text."""
        return {}


def _yaml(indents: Indents) -> YAML:
    yaml = YAML(typ="rt")
    yaml.Resolver = _TextOnly
    yaml.preserve_quotes = True
    yaml.allow_duplicate_keys = True
    yaml.indent(mapping=indents.mapping, sequence=indents.dash + 2, offset=indents.dash)
    yaml.width = WIDEST
    return yaml


def _write(trees: Sequence[Any], indents: Indents) -> str:
    text = StringIO()
    _yaml(indents).dump_all(trees, text)
    return text.getvalue()


def _indents_of(trees: Sequence[Any]) -> Indents:
    """Return how the first mapping and the first list below a key are indented."""
    found: dict[type, int] = {}
    for tree in trees:
        for kind, columns in _indented(tree):
            found.setdefault(kind, columns)
    return Indents(found.get(CommentedMap, STANDARD.mapping), found.get(CommentedSeq, STANDARD.dash))


def _indented(tree: Any) -> Iterator[tuple[type, int]]:
    """Yield the type of each value on lines of its own below a key, and how far it is indented."""
    if not isinstance(tree, CommentedMap) or tree.fa.flow_style():
        return
    for value in tree.values():
        if isinstance(value, CommentedMap | CommentedSeq) and value and not value.fa.flow_style():
            yield type(value), value.lc.col - tree.lc.col
            yield from _indented(value)


def edit_tree(tree: CommentedMap, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Change a tree from one plain value to another.

    Removed keys leave the comments around them; new keys come last. A value that an anchor shares with others is
    replaced where it changes and nowhere else.
    """
    for key, value in after.items():
        if key not in before:
            _append_key(tree, key, value)
        elif not same(before[key], value):
            _change(tree, key, before[key], value)
    for key in [key for key in before if key not in after]:
        _remove_key(tree, key)


def _change(tree: CommentedMap, key: str, before: Any, after: Any) -> None:
    child = tree[key]
    shared = getattr(child, "anchor", None) is not None and child.anchor.value is not None
    if not shared and after and before and isinstance(child, CommentedMap) and isinstance(after, dict):
        edit_tree(child, before, after)
    elif not shared and after and before and isinstance(child, CommentedSeq) and isinstance(after, list):
        _edit_list(child, before, after)
    else:
        lines = "" if shared else _take_lines_after(_last_leaf(tree, key))
        tree[key] = _node(after)
        _put_lines_after(_last_leaf(tree, key), lines)


def _edit_list(tree: CommentedSeq, before: list[Any], after: list[Any]) -> None:
    """Remove and append entries."""
    kept = [entry for entry in before if entry in after]
    for entry in after[len(kept) :]:
        lines = _take_lines_after((tree, len(tree) - 1))
        tree.append(_node(entry))
        _put_lines_after((tree, len(tree) - 1), lines)
    for index in range(len(before) - 1, -1, -1):
        if before[index] not in kept:
            lines = _take_lines_after((tree, index))
            del tree[index]
            if index:
                _put_lines_after((tree, index - 1), lines)
            else:
                _put_lines_before(tree, 0, lines)


def _remove_key(tree: CommentedMap, key: str) -> None:
    keys = list(tree)
    index = keys.index(key)
    lines = _take_lines_after(_last_leaf(tree, key))
    del tree[key]
    tree.ca.items.pop(key, None)
    if index:
        _put_lines_after(_last_leaf(tree, keys[index - 1]), lines)
    else:
        _put_lines_before(tree, keys[1], lines)


def _append_key(tree: CommentedMap, key: str, value: Any) -> None:
    lines = _take_lines_after(_last_leaf(tree, next(reversed(tree))))
    tree[_key_node(key)] = _node(value)
    _put_lines_after(_last_leaf(tree, key), lines)


# Comments. ruamel hangs the lines between two keys on the last scalar before them: they would be removed with it, or
# would stand before what is appended behind it.

Leaf = tuple[Any, Any]
"""A container, and the key or index in it of a value that holds no others on lines of their own."""

BLOCK_SCALARS = (LiteralScalarString, FoldedScalarString)


def _last_leaf(container: Any, key: Any) -> Leaf:
    """Return the value that is written last of all that a value holds."""
    value = container[key]
    while isinstance(value, CommentedMap | CommentedSeq) and value and not value.fa.flow_style():
        container, key = value, next(reversed(value)) if isinstance(value, CommentedMap) else len(value) - 1
        value = container[key]
    return container, key


def _take_lines_after(leaf: Leaf) -> str:
    """Remove the lines of comments and the blank lines after a leaf, and return them."""
    container, key = leaf
    slots, slot = container.ca.items.get(key), _slot(container)
    token = slots[slot] if slots else None
    if not isinstance(token, CommentToken):
        return ""
    if isinstance(container[key], BLOCK_SCALARS):
        own, lines = "", " " * token.start_mark.column + token.value
    else:
        own, _, lines = token.value.partition("\n")
    slots[slot] = CommentToken(own + "\n", token.start_mark, None) if own else None
    return str(lines)


def _put_lines_after(leaf: Leaf, lines: str) -> None:
    """Put lines of comments and blank lines after a leaf, behind those that are there."""
    if not lines:
        return
    container, key = leaf
    slots, slot = container.ca.items.setdefault(key, [None, None, None, None]), _slot(container)
    token = slots[slot]
    if isinstance(token, CommentToken):
        slots[slot] = CommentToken(token.value + lines, token.start_mark, None)
    else:
        start = "" if isinstance(container[key], BLOCK_SCALARS) else "\n"
        slots[slot] = CommentToken(start + lines, CommentMark(0), None)


def _put_lines_before(container: CommentedMap | CommentedSeq, key: Any, lines: str) -> None:
    """Put lines of comments and blank lines before a key, before those that are there."""
    if lines:
        slots = container.ca.items.setdefault(key, [None, None, None, None])
        slots[1] = [CommentToken(lines, CommentMark(0), None), *(slots[1] or [])]


def _slot(container: Any) -> int:
    return 2 if isinstance(container, CommentedMap) else 0


SIMPLE = re.compile(r"[A-Za-z_/][A-Za-z0-9_./*-]*( [A-Za-z0-9_./*-]+)*")
"""Text that needs no quotes: no reader of YAML takes it for something else."""

WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
"""Words that YAML 1.1 reads as booleans or null."""

DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
"""A value that needs no quotes: manifests are YAML 1.2, in which a day is text."""

LINES = re.compile(
    r"[^\s\x00-\x1f\x7f-\xa0\u2028\u2029\ufeff\ud800-\udfff][^\x00-\x09\x0b-\x1f\x7f-\xa0\u2028\u2029\ufeff]*"
)
"""Text of several lines that can be written as it is, below a `|`."""

LONGEST_PLAIN = 100


def _node(value: Any) -> Any:
    """Return a value as ruamel writes it under a resolver that knows text only."""
    match value:
        case dict():
            return CommentedMap({_key_node(key): _node(inner) for key, inner in value.items()})
        case list():
            return CommentedSeq([_node(inner) for inner in value])
        case bool() | None:
            return PlainScalarString({True: "true", False: "false", None: "null"}[value])
        case str() if not _is_simple(value) and not DAY.fullmatch(value):
            fits = "\n" in value and LINES.fullmatch(value) and not re.search(r"[ \t]\n|\n\n$|[ \t]$", value)
            return LiteralScalarString(value) if fits else DoubleQuotedScalarString(value)
    return PlainScalarString(value)


def _key_node(key: str) -> Any:
    """Return the key of a mapping, which is never written on several lines."""
    return key if _is_simple(key) else DoubleQuotedScalarString(key)


def _is_simple(text: str) -> bool:
    return (
        len(text) <= LONGEST_PLAIN
        and SIMPLE.fullmatch(text) is not None
        and text.lower() not in WORDS
        and resolve(text) == text
    )


class _Chunk(NamedTuple):
    """Lines that belong together: as people wrote them, as ruamel writes the same, and as it writes them changed."""

    written: Sequence[str]
    same: Sequence[str]
    changed: Sequence[str]


def keep_lines(written: str, same: str, changed: str) -> str:
    """Return a changed text in which every line that did not change is as it was written.

    Args:
        written: the text as people wrote it.
        same: the same text as ruamel writes it.
        changed: the changed text as ruamel writes it.
    """
    if same == written:
        return changed
    chunks = _chunks(_lines(written), _lines(same), _lines(changed))
    return "".join(f"{line}\n" for chunk in chunks for line in _merged(chunk))


def _chunks(written: list[str], same: list[str], changed: list[str]) -> Iterator[_Chunk]:
    """Cut the three texts wherever all of them agree but for blanks."""
    places = _matches(_bare(same), _bare(written))
    kept = _matches(same, changed)
    a, b, c = 0, 0, 0
    for number in [number for number in range(len(same)) if number in places and number in kept]:
        yield _Chunk(written[a : places[number]], same[b:number], changed[c : kept[number]])
        a, b, c = places[number] + 1, number + 1, kept[number] + 1
        yield _Chunk(written[a - 1 : a], same[number:b], same[number:b])
    yield _Chunk(written[a:], same[b:], changed[c:])


def _merged(chunk: _Chunk) -> Sequence[str]:
    """Return the lines of a chunk; lines around a change that ruamel does not write at all stay too."""
    if chunk.same == chunk.changed:
        return chunk.written
    if not chunk.same:
        return [*chunk.changed, *chunk.written]
    found = sorted(_matches(_bare(chunk.same), _bare(chunk.written)).values())
    if not found:
        return chunk.changed
    return [*chunk.written[: found[0]], *chunk.changed, *chunk.written[found[-1] + 1 :]]


def _matches(one: Sequence[str], other: Sequence[str]) -> dict[int, int]:
    """Return which lines are the same in both, by their numbers."""
    blocks = SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks()
    return {block.a + step: block.b + step for block in blocks for step in range(block.size)}


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n")


def _bare(lines: Sequence[str]) -> list[str]:
    return ["".join(line.split()) for line in lines]
