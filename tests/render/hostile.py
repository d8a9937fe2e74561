"""Strings that try to be more than text: Markdown, HTML, mentions, quick actions, terminal and CI commands."""

from dataclasses import replace

from hypothesis import strategies as st

from reconciler.document.document import RunDocument
from reconciler.model.item import Change, Create, Delete, Update, problem_at, unmanaged_at
from reconciler.model.targets import Address, Level, Target
from tests.building import READ, SectionPlan, noted, target_plan
from tests.render.samples import EMPTY, about

EVIL = (
    "`</code></summary></details><img src=x onerror=alert(1)> [x](javascript:y) https://a.example @all\n/close\n```\n"
    "| *b* _i_ ~~s~~ :tada: !1 #2 $`x`$ &#64; \x1b]0;x\x07\u202e <!-- \\"
)
NAMES = {
    "markup": "<b>bold<img src=x onerror=\"document.title='owned'\">&amp;&#x3c; {{ 7 * 7 }} ${7} `x` ]]> <!--",
    "bidi": "\u202ereversed \u2066isolated \u200f\u05e2\u05d1\u05e8\u05d9\u05ea \u0627\u0644\u0639\u0631\u0628\u064a\u0629 123",
    "long": "W" * 255,
    "emoji": "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 \U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f \U0001f1ea\U0001f1fa e\u0301\u0323 z\u0300\u0301\u0302\u0303\u0304\u0305\u0306\u0307\u0308",
}
"""Names that a service may let people give, without a slash, which would make another path."""

evil = st.lists(st.sampled_from([*EVIL.split(" "), "\n", " ", "``", "\\"]), max_size=6).map("".join) | st.just(EVIL)


def hostile(text: str) -> RunDocument:
    """A plan in which every string is another's."""
    target = Target(Level.PROJECT, text or "x")
    address = Address(target, text, text, text, text)
    changes: tuple[Change, ...] = (
        Create(address, {text: text, "list": [text]}, ()),
        Update(
            address,
            {text: text, "n": {"a": text}},
            {text: f"{text}!", "n": {"a": "", text: 1}},
            (),
            READ,
            text,
            noted(hint=text),
        ),
        Delete(address, {text: text}, (), READ),
    )
    section = SectionPlan(
        text, 1, changes, (problem_at(address, text, text, text, text), unmanaged_at(address, 1, True, text, text))
    )
    targets = (target_plan(target, (section,), text),)
    empty = replace(EMPTY, service=text, tool_version=text, manifests_digest=text, requests_made=1)
    return about(empty, targets)
