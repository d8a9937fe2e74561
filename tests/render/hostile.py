"""Strings that try to be more than text: Markdown, HTML, mentions, quick actions, terminal and CI commands."""

from dataclasses import replace

from hypothesis import strategies as st

from reconciler.documents.plan_file import SavedPlan
from reconciler.model.plan import Change, Create, Delete, Problem, SectionPlan, TargetPlan, Unmanaged, Update
from reconciler.model.targets import Address, Level, Target
from tests.building import READ
from tests.render.samples import EMPTY

EVIL = (
    "`</code></summary></details><img src=x onerror=alert(1)> [x](javascript:y) https://a.example @all\n/close\n```\n"
    "| *b* _i_ ~~s~~ :tada: !1 #2 $`x`$ &#64; \x1b]0;x\x07\u202e <!-- \\"
)
evil = st.lists(st.sampled_from([*EVIL.split(" "), "\n", " ", "``", "\\"]), max_size=6).map("".join) | st.just(EVIL)


def hostile(text: str) -> SavedPlan:
    """A plan in which every string is another's."""
    target = Target(Level.PROJECT, text or "x")
    address = Address(target, text, text, text, text)
    changes: tuple[Change, ...] = (
        Create(address, {text: text, "list": [text]}, ()),
        Update(
            address, {text: text, "n": {"a": text}}, {text: f"{text}!", "n": {"a": "", text: 1}}, (), READ, text, text
        ),
        Delete(address, {text: text}, (), READ),
    )
    section = SectionPlan(
        text, 1, changes, (Problem(address, text, text, text, text),), (Unmanaged(address, 1, True, text, text),)
    )
    targets = (TargetPlan(target, (section,), text),)
    return replace(EMPTY, service=text, tool_version=text, manifests_digest=text, requests_made=1, targets=targets)
