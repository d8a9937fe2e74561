"""How a file is laid out: indented as it was, and line by line as it was wherever nothing changes. Pure."""

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from ruamel.yaml.comments import CommentedMap, CommentedSeq


class Indents(NamedTuple):
    """How many columns what a mapping holds stands to the right of its keys: mappings, and the dashes of lists."""

    mapping: int = 2
    dash: int = 2


STANDARD = Indents()
"""How new files are laid out."""


class _Chunk(NamedTuple):
    """Lines that belong together: as they stood, as the same is written anew, and as it is written when changed."""

    stood: Sequence[str]
    same: Sequence[str]
    changed: Sequence[str]


def indents_of(trees: Sequence[Any]) -> Indents:
    """Return how the first mapping and the first list below a key are indented."""
    found: dict[type, int] = {}
    for tree in trees:
        for kind, columns in _indented(tree):
            found.setdefault(kind, columns)
    return Indents(found.get(CommentedMap, STANDARD.mapping), found.get(CommentedSeq, STANDARD.dash))


def keep_lines(stood: str, same: str, changed: str) -> str:
    """Return a changed text in which every line that did not change is as it stood.

    Args:
        stood: the text as people wrote it.
        same: what a writer that knows nothing of layout makes of it.
        changed: what that writer makes of it when it is changed.
    """
    if same == stood:
        return changed
    chunks = _chunks(_lines(stood), _lines(same), _lines(changed))
    return "".join(f"{line}\n" for chunk in chunks for line in _merged(chunk))


def _indented(tree: Any) -> Iterator[tuple[type, int]]:
    """Yield the type of each value that stands on lines of its own below a key, and how far it is indented."""
    if not isinstance(tree, CommentedMap) or tree.fa.flow_style():
        return
    for value in tree.values():
        if isinstance(value, CommentedMap | CommentedSeq) and value and not value.fa.flow_style():
            yield type(value), value.lc.col - tree.lc.col
            yield from _indented(value)


def _chunks(stood: list[str], same: list[str], changed: list[str]) -> Iterator[_Chunk]:
    """Cut the three texts where all of them agree but for blanks."""
    places = _matches(_bare(same), _bare(stood))
    kept = _matches(same, changed)
    a, b, c = 0, 0, 0
    for number in [number for number in range(len(same)) if number in places and number in kept]:
        yield _Chunk(stood[a : places[number]], same[b:number], changed[c : kept[number]])
        a, b, c = places[number] + 1, number + 1, kept[number] + 1
        yield _Chunk(stood[a - 1 : a], same[number:b], same[number:b])
    yield _Chunk(stood[a:], same[b:], changed[c:])


def _matches(one: Sequence[str], other: Sequence[str]) -> dict[int, int]:
    """Return which lines are the same in both, by their numbers."""
    blocks = SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks()
    return {block.a + step: block.b + step for block in blocks for step in range(block.size)}


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n")


def _bare(lines: Sequence[str]) -> list[str]:
    return ["".join(line.split()) for line in lines]


def _merged(chunk: _Chunk) -> Sequence[str]:
    """Return the lines of a chunk; those around what changes, which the writer does not write at all, stay too."""
    if chunk.same == chunk.changed:
        return chunk.stood
    if not chunk.same:
        return [*chunk.changed, *chunk.stood]
    found = sorted(_matches(_bare(chunk.same), _bare(chunk.stood)).values())
    if not found:
        return chunk.changed
    return [*chunk.stood[: found[0]], *chunk.changed, *chunk.stood[found[-1] + 1 :]]
