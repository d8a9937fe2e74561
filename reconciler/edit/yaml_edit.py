"""YAML texts, changed in place: only the text of values that differ is replaced.

A text is parsed into nodes that have their positions, by the parser of the manifests, and a change is a list of
replaced spans, whose new text comes from `yaml_emitter`. Comments, order, quotes and layout of everything else are
kept. Begin with `written`.

The round trip of ruamel.yaml cannot promise that. It writes the whole text anew: spaces within a line, line breaks
within a text and uneven indents change where nothing else does. It attaches a comment to the value above it, and
removes the two together. Code that restores such lines and comments is longer than the code that edits spans.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from pathlib import Path
from typing import Any, Self

import yaml

from reconciler.errors import OutputFailed
from reconciler.manifests.sources import Document, Source
from reconciler.manifests.yaml_emitter import STANDARD, Indents, behind_key, block, has_entries, inline
from reconciler.manifests.yaml_reader import LOADER

NEXT = "---\n"


def same(one: Any, other: Any) -> bool:
    """Whether two plain values are equal, types and order included."""
    return json.dumps(one) == json.dumps(other)


class RenamedKey(str):
    """A key, or an entry of a list, that replaces another, and keeps its comment and its place.

    Attributes:
        former: the replaced one.
    """

    __slots__ = ("former",)
    former: str

    def __new__(cls, name: str, former: str) -> Self:
        """Make a key that replaces another."""
        key = super().__new__(cls, name)
        key.former = former
        return key


class LayoutLost(OutputFailed):
    """A file has a layout that an update in place would destroy.

    Attributes:
        path: the file.
    """

    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path}: cannot update in place without touching unrelated lines; nothing was written: export into "
            "another folder and compare the two"
        )
        self.path = path


def written(
    existing: Mapping[str, str],
    changed: Mapping[Document, Any],
    added: Iterable[tuple[str, Any]],
    write: Callable[[str, str, Any], str],
) -> dict[Path, str]:
    """Return the texts of the files that change, sorted by path.

    Args:
        existing: the texts of the existing files, by path.
        changed: the new values of documents.
        added: the files of further documents, each with its value.
        write: returns the text of a further document; it gets the path, the text before it, and the value.

    Raises:
        LayoutLost: see there.
        OutputFailed: a further document cannot be added to a file.
    """
    changes: dict[str, dict[int, Any]] = {}
    for document, value in changed.items():
        changes.setdefault(document.source.path, {})[document.number] = value
    texts = {path: updated_text(Source(path, existing[path]), values) for path, values in changes.items()}
    for path, value in added:
        before = texts.get(path, existing.get(path, ""))
        texts[path] = appended_text(Source(path, before), write(path, before, value))
    return {Path(path): texts[path] for path in sorted(texts)}


def updated_text(source: Source, changed_documents: Mapping[int, Any]) -> str:
    """Return the text of a file with changed documents, which is read again to check the values.

    Args:
        source: the file as it is.
        changed_documents: the new plain values, by number of document.

    Raises:
        LayoutLost: see there.
    """
    unix = source.text.replace("\r\n", "\n")
    values = source.read().values
    wanted = [changed_documents.get(number, value) for number, value in enumerate(values)]
    text = edited_text(unix, values, changed_documents)
    text = text if unix.endswith("\n") else text.removesuffix("\n")
    reading = Source(source.path, text).read()
    if not reading.errors and reading.values == wanted:
        return text.replace("\n", "\r\n") if unix != source.text else text
    raise LayoutLost(source.path)


def appended_text(source: Source, new_text: str) -> str:
    r"""Return the text of a file with further documents at its end, in its line breaks.

    Blank lines at the end go, but where they belong to a value (`|+`).

    Args:
        source: the file as it is; an empty one gets the new text alone.
        new_text: the text of the documents, with `\n` as line break.

    Raises:
        OutputFailed: a value that is there would change, since the file ends without a line break.
    """
    if not source.text:
        return new_text
    ends = "\r\n" if "\r\n" in source.text else "\n"
    wanted = source.read().values
    behind = f"{NEXT}{new_text}".replace("\n", ends)
    for text in (source.text.rstrip("\r\n") + ends, source.text):
        if Source(source.path, f"{text}{NEXT}").read().values == wanted:
            return text + behind
    raise OutputFailed(
        f"{source.path}: no document can be written behind the last one without changing it; nothing was written: end "
        "the file with a line break"
    )


def edited_text(text: str, old_documents: Sequence[Any], changed_documents: Mapping[int, Any]) -> str:
    r"""Return a text with changed documents.

    Odd but valid layouts may lead to a text with other values: the caller has to read it again.

    Args:
        text: the documents as they are, with `\n` as line break.
        old_documents: their plain values.
        changed_documents: the new plain values, by number of document.
    """
    text = text if text.endswith("\n") else f"{text}\n"
    events = yaml.parse(text, Loader=LOADER)
    roots = [_parse(event, events, text) for event in events if isinstance(event, yaml.NodeEvent)]
    roots = [root for root in roots if root.start < root.end]
    editor = _Editor(text, _indents_of(roots))
    for number, value in changed_documents.items():
        editor.edit(roots[number], old_documents[number], value)
    for number, root in enumerate(roots):
        editor.expand_aliases(root, old_documents[number])
    pieces, copied = [], 0
    # The sort is stable: texts for one index keep the order in which they were added.
    for start, end, new in sorted(editor.edits, key=lambda edit: edit[:2]):
        pieces += [text[copied:start], new]
        copied = end
    return "".join([*pieces, text[copied:]])


@dataclass(slots=True)
class _Node:
    """A value, and its position.

    Attributes:
        start: the index of its first character.
        end: the index after its last character; of a block collection, after its last value.
        column: of its first character, from 0.
        is_block: whether it is a collection without brackets.
        anchor: its anchor, or the anchor that an alias refers to.
        is_alias: whether it is an alias.
        keys: of a mapping, in order.
        values: of a mapping or a list, in order.
    """

    start: int
    end: int
    column: int
    is_block: bool = False
    anchor: str | None = None
    is_alias: bool = False
    keys: "list[_Node]" = field(default_factory=list)
    values: "list[_Node]" = field(default_factory=list)


def _parse(event: Any, events: Iterator[Any], text: str) -> _Node:
    """Return the node that begins with an event, whose further events are taken from `events`."""
    start, is_alias = event.start_mark, isinstance(event, yaml.AliasEvent)
    node = _Node(start.index, event.end_mark.index, start.column, anchor=event.anchor, is_alias=is_alias)
    if isinstance(event, yaml.ScalarEvent) and event.style in ("|", ">"):
        # the parser counts the line breaks after a text in `|` to it
        node.end = node.start + len(text[node.start : node.end].rstrip())
    elif isinstance(event, yaml.CollectionStartEvent):
        children = []
        while not isinstance(inner := next(events), yaml.CollectionEndEvent):
            children.append(_parse(inner, events, text))
        closing: Any = inner.end_mark
        node.is_block = not event.flow_style
        # the parser ends a block at the next token, behind the comments between them
        node.end = children[-1].end if node.is_block else closing.index
        is_mapping = isinstance(event, yaml.MappingStartEvent)
        node.keys, node.values = (children[::2], children[1::2]) if is_mapping else ([], children)
    return node


def _indents_of(roots: Sequence[_Node]) -> Indents:
    """Return the indents of the first mapping and the first list below a key."""
    indents: dict[bool, int] = {}
    for root in roots:
        for is_mapping, columns in _indented(root):
            indents.setdefault(is_mapping, columns)
    return Indents(indents.get(True, STANDARD.mapping), indents.get(False, STANDARD.dash))


def _indented(node: _Node) -> Iterator[tuple[bool, int]]:
    """Yield for each block below a key whether it is a mapping, and how far it is indented."""
    for value in node.values if node.keys else ():
        if value.is_block:
            yield bool(value.keys), value.column - node.column
            yield from _indented(value)


@dataclass(slots=True)
class _Editor:
    """Collects the changes of a text.

    Attributes:
        text: the text before.
        indents: of added lines.
        edits: start and end of a span, and its new text; texts for one index keep this order.
    """

    text: str
    indents: Indents
    edits: list[tuple[int, int, str]] = field(default_factory=list)

    def edit(self, node: _Node, old_value: Any, new_value: Any) -> None:
        """Change a collection that is empty neither before nor after: new keys and entries come last.

        An entry of a list is kept, removed or renamed, and never changed otherwise.
        """
        renamed = {key.former: key for key in new_value if isinstance(key, RenamedKey)}
        kept = (
            _kept(old_value, new_value)
            if isinstance(new_value, list)
            else [key in new_value or key in renamed for key in old_value]
        )
        new = new_value[sum(kept) :] if isinstance(new_value, list) else _new_keys(old_value, new_value)
        for entry, entry_node in zip(old_value, node.values, strict=True) if isinstance(new_value, list) else ():
            if isinstance(entry, str) and entry in renamed:
                self.edits.append((entry_node.start, entry_node.end, inline(str(renamed[entry]))))
        if isinstance(new_value, dict):
            for key, key_node, value in zip(old_value, node.keys, node.values, strict=True):
                name = renamed.get(key, key)
                if name is not key:
                    self.edits.append((key_node.start, key_node.end, inline(str(name))))
                if name in new_value and not same(old_value[key], new_value[name]):
                    colon = self.text.find(":", key_node.end, value.end)
                    if colon < 0:  # as in {key}
                        self.edits.append((value.end, value.end, ":"))
                    self._change(colon + 1 if colon >= 0 else value.end, node, value, old_value[key], new_value[name])
        spans = _spans(node)
        if node.is_block:
            self._remove_lines(span for span, stays in zip(spans, kept, strict=True) if not stays)
            self._insert_lines(node.end, block(new, node.column, self.indents))
        else:
            self._edit_flow(node, spans, kept, inline(new)[1:-1])

    def expand_aliases(self, node: _Node, value: Any) -> None:
        """Replace each alias of a document whose anchor is removed by the value of the anchor."""
        nodes = [(inner, inner_value) for inner, inner_value in _walk(node, value) if inner.anchor]
        gone = {inner.anchor for inner, _ in nodes if not inner.is_alias and self._is_gone(inner)}
        for inner, inner_value in nodes:
            if inner.is_alias and inner.anchor in gone and not self._is_gone(inner):
                self.edits.append((inner.start, inner.end, inline(inner_value)))

    def _change(self, start: int, parent: _Node, node: _Node, old_value: Any, new_value: Any) -> None:
        """Change the value of a key, whose colon ends at `start`."""
        unfolds = parent.is_block and not node.is_block and _outgrows(old_value, new_value)
        if _only_comes_and_goes(old_value, new_value) and not node.anchor and not unfolds:
            self.edit(node, old_value, new_value)
            return
        head, body = behind_key(new_value, parent.column, self.indents) if parent.is_block else (inline(new_value), "")
        if node.is_block and not node.anchor:
            self.edits.append((start, start, f" {head}" if head else ""))
            if new_value in ({}, []):  # keeps the comments between the entries
                self._remove_lines(_spans(node))
            else:
                self.edits.append((self._line(node.start), self._next_line(node.end), body))
        else:
            keeps_spaces = head and node.start < node.end
            self.edits.append((node.start, node.end, head) if keeps_spaces else (start, node.end, head and f" {head}"))
            self._insert_lines(node.end, body)

    def _edit_flow(self, node: _Node, spans: list[tuple[int, int]], keep_flags: list[bool], new_text: str) -> None:
        """Remove entries between brackets, with their commas, and append new ones."""
        if not any(keep_flags):
            self.edits.append((node.start + 1, node.end - 1, new_text))
            return
        last = 0
        for number, (start, end) in enumerate(spans):
            if keep_flags[number]:
                last = end
            elif last:
                self.edits.append((spans[number - 1][1], end, ""))
            else:
                self.edits.append((start, spans[number + 1][0], ""))
        if new_text:
            self.edits.append((last, last, f", {new_text}"))

    def _remove_lines(self, spans: Iterable[tuple[int, int]]) -> None:
        """Remove the lines of entries of a block."""
        self.edits += [(self._line(start), self._next_line(end), "") for start, end in spans]

    def _insert_lines(self, end: int, text: str) -> None:
        """Insert lines behind the line on which a value ends."""
        if text:
            after = self._next_line(end)
            self.edits.append((after, after, text))

    def _line(self, index: int) -> int:
        return self.text.rfind("\n", 0, index) + 1

    def _next_line(self, index: int) -> int:
        return self.text.index("\n", index) + 1

    def _is_gone(self, node: _Node) -> bool:
        return any(start <= node.start < end for start, end, _ in self.edits)


def _spans(node: _Node) -> list[tuple[int, int]]:
    """Return the span of each entry of a mapping or a list."""
    starts = [key.start for key in node.keys] or [value.start for value in node.values]
    return list(zip(starts, (value.end for value in node.values), strict=True))


def _new_keys(old_mapping: Mapping[str, Any], new_mapping: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of a mapping that are added to it."""
    return {
        key: value for key, value in new_mapping.items() if key not in old_mapping and not isinstance(key, RenamedKey)
    }


def _kept(old_list: Sequence[Any], new_list: Sequence[Any]) -> list[bool]:
    """Return for each entry of a list whether another list has it too."""
    written = {json.dumps(_former(entry), sort_keys=True) for entry in new_list}
    return [json.dumps(entry, sort_keys=True) in written for entry in old_list]


def _only_comes_and_goes(old_value: Any, new_value: Any) -> bool:
    """Whether `_Editor.edit` can change a value: both are mappings, or lists whose new entries come last."""
    match old_value, new_value:
        case (dict(), dict()) if old_value and new_value:
            return True
        case ([_, *_], [_, *_]):
            kept = list(compress(old_value, _kept(old_value, new_value)))
            return list(map(_former, new_value[: len(kept)])) == kept
    return False


def _former(value: Any) -> Any:
    """Return an entry of a list as it was."""
    return value.former if isinstance(value, RenamedKey) else value


def _outgrows(old_value: Any, new_value: Any) -> bool:
    """Whether a mapping gets a list of mappings, for which one line would be too long."""
    return (
        isinstance(old_value, dict)
        and isinstance(new_value, dict)
        and has_entries(new_value)
        and not has_entries(old_value)
    )


def _walk(node: _Node, value: Any) -> Iterator[tuple[_Node, Any]]:
    """Yield a node and all nodes within it, each with its plain value."""
    yield node, value
    if node.values:
        for inner, inner_value in zip(node.values, value.values() if node.keys else value, strict=True):
            yield from _walk(inner, inner_value)
