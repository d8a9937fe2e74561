"""What tests ask of the JSON of a plan or a report."""

from typing import Any

Shape = dict[str, Any]


def changes_of(document: Shape, *sections: str) -> list[Shape]:
    """Return the changes, planned or carried out; those of some sections, if any are named."""
    return [
        item
        for item in document["items"]
        if item.get("action", "keep") != "keep" and (not sections or item["section"] in sections)
    ]


def findings_of(document: Shape, code: str) -> list[Shape]:
    """Return the findings of a code."""
    return [item for item in document["items"] if item.get("finding") == code]


def said(document: Shape, code: str) -> list[str]:
    """Return the sentences of the findings of a code."""
    return [finding["reason"] for finding in findings_of(document, code)]


def note_of(change: Shape, code: str) -> Shape:
    """Return the data of the note of a code; nothing if the change has none."""
    return next((note["data"] for note in change.get("notes", ()) if note["code"] == code), {})


def by_target(document: Shape, items: list[Shape]) -> dict[Any, list[Shape]]:
    """Return some items by the path or the number of their target, nothing for targets without any."""
    named = {target["target"]: target["ref"] for target in document["targets"]}
    return {ref: [item for item in items if item["target"] == target] for target, ref in named.items()}
