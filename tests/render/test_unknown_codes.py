"""A document may say what this version does not know: it is read, and shown by its sentence, as whatever is new here.

A row of the table is all that a new code needs: what it says is in each format, with what to do.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from html import unescape
from typing import cast

import pytest

from reconciler.document.document import RunDocument
from reconciler.document.stored import load_plan, load_report, save
from reconciler.document.style import Style
from reconciler.model.codes import CODES, Code
from reconciler.model.item import Change, Finding, Item, Note, Outcome, change_in, target_of
from reconciler.model.targets import Address
from reconciler.reports import render_plan, render_report
from tests.building import KINDS
from tests.cli_runner import BREAK
from tests.render.creations import became, creations
from tests.render.many import carried_out, many
from tests.render.samples import done, sample

DOCUMENTS: Mapping[str, Callable[[], RunDocument]] = {
    "a plan": sample,
    "creations": creations,
    "a large plan": lambda: many(8),
    "a report": done,
    "a report of creations": became,
    "a large report": lambda: carried_out(many(8)),
}

ABOUT_A_CHANGE = "is a change on the eve of a holiday"
ABOUT_AN_OBJECT = "is looked at by nobody"
ABOUT_A_TARGET = "has a new neighbour"
ABOUT_THE_RUN = "the moon was full"
WHAT_TO_DO = "wait for a better day"


def told(document: RunDocument) -> RunDocument:
    """Say something with a code that this version does not know: of a change, an object, a target and the run."""
    target = target_of(next(item for item in document.items if change_in(item) is not None))
    seen = next(seen for seen in document.targets if seen.target == target)
    section = [*seen.sections][-1]
    findings = (
        Finding(
            Address(target, section, section, "thing", "one"), "later", ABOUT_AN_OBJECT, WHAT_TO_DO, data={"any": [1]}
        ),
        Finding(Address(target, section, section, section), "later", ABOUT_A_TARGET, WHAT_TO_DO),
        Finding(None, "later", ABOUT_THE_RUN, WHAT_TO_DO),
    )
    return replace(document, items=(*map(noted, document.items), *findings), tree=None)


def noted(item: Item) -> Item:
    """Say something of each change."""
    if isinstance(item, Outcome):
        return replace(item, change=with_more(item.change))
    return with_more(item) if isinstance(item, Change) else item


def with_more(change: Change) -> Change:
    """Say something of a change."""
    return replace(change, notes=(*change.notes, Note("later", ABOUT_A_CHANGE, {"any": [1]})))


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_with_unknown_codes_is_read(name: str) -> None:
    document = told(DOCUMENTS[name]())
    load = load_plan if document.is_plan else load_report
    assert load(save(document), KINDS) == document


@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.parametrize("form", ["text", "markdown", "html", "junit"])
@pytest.mark.parametrize("row", [None, Code("novelty", "~", "has", counted="new")])
def test_what_has_no_form_of_its_own_is_shown_by_its_sentence_and_what_to_do(
    name: str, form: str, row: Code | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if row is not None:
        monkeypatch.setitem(cast("dict[str, Code]", CODES), "later", row)
    document = told(DOCUMENTS[name]())
    render = render_plan if document.is_plan else render_report
    shown = " ".join(unescape(render(document, form, Style())).replace(BREAK, "").split())
    sentences = [ABOUT_AN_OBJECT, ABOUT_A_TARGET, ABOUT_THE_RUN]
    lost = [sentence for sentence in sentences if not re.search(rf"{sentence}; {WHAT_TO_DO}", shown)]
    lost += [ABOUT_A_CHANGE] if document.is_plan and ABOUT_A_CHANGE not in shown else []
    assert lost == []
