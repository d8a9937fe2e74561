"""Changing a ruamel tree from one plain value to another: only what differs, comments, order and anchors kept."""

import json
from collections.abc import Mapping
from typing import Any

from ruamel.yaml.comments import CommentedMap, CommentedSeq

from reconciler.export.comments import last_leaf, put_lines_after, put_lines_before, take_lines_after
from reconciler.export.scalars import key_node, node


def edit(tree: CommentedMap, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Make a tree that stands for one value stand for another.

    What is gone is removed; the comments around it stay. What is new comes last. What stands for several values, by an
    anchor, is replaced where it changes and nowhere else.
    """
    for key, value in after.items():
        if key not in before:
            _append_key(tree, key, value)
        elif not same(before[key], value):
            _change(tree, key, before[key], value)
    for key in [key for key in before if key not in after]:
        _remove_key(tree, key)


def same(one: Any, other: Any) -> bool:
    """Whether two plain values are equal, types and order included."""
    return json.dumps(one) == json.dumps(other)


def _change(tree: CommentedMap, key: str, before: Any, after: Any) -> None:
    child = tree[key]
    shared = getattr(child, "anchor", None) is not None and child.anchor.value is not None
    if not shared and after and before and isinstance(child, CommentedMap) and isinstance(after, dict):
        edit(child, before, after)
    elif not shared and after and before and isinstance(child, CommentedSeq) and isinstance(after, list):
        _edit_list(child, before, after)
    else:
        lines = "" if shared else take_lines_after(last_leaf(tree, key))
        tree[key] = node(after)
        put_lines_after(last_leaf(tree, key), lines)


def _edit_list(tree: CommentedSeq, before: list[Any], after: list[Any]) -> None:
    """Remove and append entries; a list that is in another order otherwise is written anew."""
    kept = [entry for entry in before if entry in after]
    for entry in after[len(kept) :]:
        lines = take_lines_after((tree, len(tree) - 1))
        tree.append(node(entry))
        put_lines_after((tree, len(tree) - 1), lines)
    for index in range(len(before) - 1, -1, -1):
        if before[index] not in kept:
            lines = take_lines_after((tree, index))
            del tree[index]
            if index:
                put_lines_after((tree, index - 1), lines)
            else:
                put_lines_before(tree, 0, lines)


def _remove_key(tree: CommentedMap, key: str) -> None:
    keys = list(tree)
    place = keys.index(key)
    lines = take_lines_after(last_leaf(tree, key))
    del tree[key]
    tree.ca.items.pop(key, None)
    if place:
        put_lines_after(last_leaf(tree, keys[place - 1]), lines)
    else:
        put_lines_before(tree, keys[1], lines)


def _append_key(tree: CommentedMap, key: str, value: Any) -> None:
    lines = take_lines_after(last_leaf(tree, next(reversed(tree))))
    tree[key_node(key)] = node(value)
    put_lines_after(last_leaf(tree, key), lines)
