"""Where ruamel keeps comments, and how they stay where they are when what stands around them comes and goes.

ruamel hangs the lines between two keys on the last scalar before them, so that they would go with it, or would stand
before what is put behind it.
"""

from typing import Any

from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import CommentMark
from ruamel.yaml.scalarstring import FoldedScalarString, LiteralScalarString
from ruamel.yaml.tokens import CommentToken

Leaf = tuple[Any, Any]
"""A container, and the key or index in it of a value that holds no others on lines of their own."""

BLOCK_SCALARS = (LiteralScalarString, FoldedScalarString)


def last_leaf(container: Any, key: Any) -> Leaf:
    """Return the value that is written last of all that a value holds."""
    value = container[key]
    while isinstance(value, CommentedMap | CommentedSeq) and value and not value.fa.flow_style():
        container, key = value, next(reversed(value)) if isinstance(value, CommentedMap) else len(value) - 1
        value = container[key]
    return container, key


def take_lines_after(leaf: Leaf) -> str:
    """Remove the lines of comments and the blank lines between a leaf and what comes next, and return them."""
    container, key = leaf
    slots = container.ca.items.get(key)
    token = slots[_slot(container)] if slots else None
    if not isinstance(token, CommentToken):
        return ""
    if isinstance(container[key], BLOCK_SCALARS):
        replaces_ids, lines = "", " " * token.start_mark.column + token.value
    else:
        replaces_ids, _, lines = token.value.partition("\n")
    slots[_slot(container)] = CommentToken(replaces_ids + "\n", token.start_mark, None) if replaces_ids else None
    return str(lines)


def put_lines_after(leaf: Leaf, lines: str) -> None:
    """Put lines of comments and blank lines between a leaf and what comes next, behind those that are there."""
    if not lines:
        return
    container, key = leaf
    slots = container.ca.items.setdefault(key, [None, None, None, None])
    token = slots[_slot(container)]
    if isinstance(token, CommentToken):
        slots[_slot(container)] = CommentToken(token.value + lines, token.start_mark, None)
    else:
        start = "" if isinstance(container[key], BLOCK_SCALARS) else "\n"
        slots[_slot(container)] = CommentToken(start + lines, CommentMark(0), None)


def put_lines_before(container: CommentedMap | CommentedSeq, key: Any, lines: str) -> None:
    """Put lines of comments and blank lines before a key, before those that are there."""
    if lines:
        slots = container.ca.items.setdefault(key, [None, None, None, None])
        slots[1] = [CommentToken(lines, CommentMark(0), None), *(slots[1] or [])]


def _slot(container: Any) -> int:
    return 2 if isinstance(container, CommentedMap) else 0
