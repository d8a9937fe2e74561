"""YAML texts of several documents, read as ruamel trees and written back, every scalar as it was written."""

from collections.abc import Iterable
from io import StringIO
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.resolver import VersionedResolver

from reconciler.export.layout import STANDARD, Indents
from reconciler.export.scalars import node

WIDEST = 1_000_000
"""Columns: no line is ever folded."""


def parse(text: str) -> list[Any]:
    """Return the documents of a text, in which every scalar is text.

    Raises:
        YAMLError: ruamel cannot read it.
    """
    return list(_yaml().load_all(text))


def write(trees: Iterable[Any], indents: Indents = STANDARD) -> str:
    """Return the text of some documents; what was parsed and not changed is written as it was, comments and all."""
    text = StringIO()
    _yaml(indents).dump_all(trees, text)
    return text.getvalue()


def tree(document: dict[str, Any]) -> CommentedMap:
    """Return the tree of a new document."""
    made = node(document)
    assert isinstance(made, CommentedMap)  # noqa: S101 - a document is a mapping
    return made


class _TextOnly(VersionedResolver):
    """Takes every plain scalar for text, so that it is written again as it was."""

    @property
    def versioned_resolver(self) -> dict[Any, Any]:
        """No scalar is anything else than text."""
        return {}


def _yaml(indents: Indents = STANDARD) -> YAML:
    yaml = YAML(typ="rt")
    yaml.Resolver = _TextOnly
    yaml.preserve_quotes = True
    yaml.allow_duplicate_keys = True
    yaml.indent(mapping=indents.mapping, sequence=indents.dash + 2, offset=indents.dash)
    yaml.width = WIDEST
    return yaml
