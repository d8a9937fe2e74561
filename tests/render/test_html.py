"""The HTML file, without a browser: what stands in it, that it loads nothing, and that no string breaks out."""

import json
import re
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from typing import Any

from hypothesis import example, given

from reconciler.apply import Status
from reconciler.documents.plan_file import SavedPlan
from reconciler.model.plan import Create, Delete, Plan, Problem, SectionPlan, TargetPlan, Update
from reconciler.model.protocols import Json
from reconciler.model.targets import Address
from reconciler.render import Style, render_plan, render_report
from tests.building import READ
from tests.render.hostile import EVIL, evil, hostile
from tests.render.many import carried_out, many
from tests.render.plans import patiently, saved_plans
from tests.render.samples import API, done, sample, saved_plan

EACH = Style(group_by="target")
"""Each change is a row of its own."""


def data_of(page: str) -> dict[str, Any]:
    """Return what the page's script reads."""
    (text,) = re.findall(r'<script type="application/json" id="data">(.*)</script>', page)
    data: dict[str, Any] = json.loads(text)
    return data


def body_of(page: str) -> str:
    """Return what stands in the page before the changes."""
    return page[page.index("<header>") : page.index('<section id="changes"')]


def test_a_page_begins_with_the_plan_in_a_line_problems_and_numbers() -> None:
    assert body_of(render_plan(sample(), "html")) == (
        """\
<header>
<h1>Plan: 1 to create, 2 to update, 1 to delete, 1 problem</h1>
<p>Read from https://git.example.com/api/v4 at 2026-12-01T12:00:00Z.</p>
<p>4 writes to apply; 8 requests were made to plan. 3 unmanaged objects.</p>
</header>
<main>
<section class="troubles">
<h2>1 problem</h2>
<ul>
<li><span class="target">project acme/payments/api</span> <span class="what">approval settings.retain_approvals_on_push</span> <span class="why">locked by group acme; unlock it there or leave the field out</span></li>
</ul>
</section>
<section class="numbers">
<h2>By section</h2>
<div class="scroll" tabindex="0" role="region" aria-label="Numbers by section">
<table>
<thead><tr><th scope="col">section</th><th scope="col"><span class="sign create" aria-hidden="true">+</span> <span class="word">create</span></th><th scope="col"><span class="sign update" aria-hidden="true">~</span> <span class="word">update</span></th><th scope="col"><span class="sign delete" aria-hidden="true">\u2212</span> <span class="word">delete</span></th><th scope="col"><span class="sign problems" aria-hidden="true">!</span> <span class="word">problems</span></th><td class="chart"></td></tr></thead>
<tbody>
<tr><th scope="row" data-section="approval_settings">approval_settings</th><td class="zero">0</td><td>1</td><td class="zero">0</td><td>1</td><td class="chart"><svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true"><rect class="update" x="0.00" width="50.00" height="8"/><rect class="problems" x="50.00" width="50.00" height="8"/></svg></td></tr>
<tr><th scope="row" data-section="milestones">milestones</th><td>1</td><td>1</td><td class="zero">0</td><td class="zero">0</td><td class="chart"><svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true"><rect class="create" x="0.00" width="50.00" height="8"/><rect class="update" x="50.00" width="50.00" height="8"/></svg></td></tr>
<tr><th scope="row" data-section="trigger_tokens">trigger_tokens</th><td class="zero">0</td><td class="zero">0</td><td>1</td><td class="zero">0</td><td class="chart"><svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true"><rect class="delete" x="0.00" width="50.00" height="8"/></svg></td></tr>
</tbody>
<tfoot><tr><th scope="row">all</th><td>1</td><td>2</td><td>1</td><td>1</td><td class="chart"></td></tr></tfoot>
</table>
</div>
</section>
"""
    )


def test_the_changes_stand_in_the_page_as_data() -> None:
    assert data_of(render_plan(sample(), "html")) == {
        "targets": ["project acme/payments/api"],
        "sections": ["approval_settings", "milestones", "trigger_tokens"],
        "rows": [
            [
                [0],
                0,
                "update",
                "approval settings",
                [["allow_author_approval", "true", "false"]],
                ["PUT projects/acme%2Fpayments%2Fapi/merge_request_approval_setting"],
                "",
                "",
            ],
            [
                [0],
                1,
                "create",
                'milestone "2026.12"',
                [["due_date", None, "2026-12-31"]],
                ["POST projects/acme%2Fpayments%2Fapi/milestones"],
                "",
                "",
            ],
            [
                [0],
                1,
                "update",
                'milestone "2026.11"',
                [["name", "Nov 2026", "2026.11"], ["state", "active", "closed"]],
                ["PUT projects/acme%2Fpayments%2Fapi/milestones/31"],
                "",
                "",
            ],
            [
                [0],
                2,
                "delete",
                'trigger token "legacy-integration"',
                [],
                ["DELETE projects/acme%2Fpayments%2Fapi/triggers/71"],
                "",
                "",
            ],
        ],
    }


def test_a_report_begins_with_what_is_unfinished() -> None:
    report = done((Status.DROPPED, "the service kept its own level"), (Status.FAILED, ""))
    page = render_report(replace(report, requests=replace(report.requests, waited={"the rate limit": 2})), "html")
    assert body_of(page).startswith(
        """\
<header>
<h1>Applied: 1 updated, 1 deleted, 1 failed, 1 dropped by the service, 1 problem</h1>
<p>Written to https://git.example.com/api/v4 from 2026-12-01T12:00:00Z to 2026-12-01T12:01:00Z.</p>
<p>15 requests made. Waited 2.0 s for the rate limit.</p>
</header>
<main>
<section class="troubles">
<h2>2 unfinished changes</h2>
<ul>
<li><span class="target">project acme/payments/api</span> <span class="what">update approval settings</span> <span class="why">dropped by the service: the service kept its own level</span></li>
<li><span class="target">project acme/payments/api</span> <span class="what">create milestone &#34;2026.12&#34;</span> <span class="why">failed</span></li>
</ul>
</section>
<section class="troubles">
<h2>1 problem</h2>
"""
    )
    assert [row[6:] for row in data_of(page)["rows"]] == [
        ["dropped by the service", "the service kept its own level"],
        ["failed", ""],
        ["done", ""],
        ["done", ""],
    ]


def test_many_problems_are_shown_by_a_click() -> None:
    page = render_plan(many(100, problems=15), "html", EACH)
    first, rest = page.split("<details>\n<summary>5 more</summary>\n")
    assert (first.count('<li><span class="target">'), rest.count('<li><span class="target">')) == (10, 5)


def test_a_plan_without_changes_is_a_page_too() -> None:
    assert body_of(render_plan(saved_plan(Plan(())), "html")) == (
        """\
<header>
<h1>Plan: nothing to change</h1>
<p>Read from https://git.example.com/api/v4 at 2026-12-01T12:00:00Z.</p>
<p>0 writes to apply; 8 requests were made to plan. 0 unmanaged objects.</p>
</header>
<main>
"""
    )


def test_a_target_that_cannot_be_seen_has_a_line_of_its_own() -> None:
    gone = Problem(Address(API, "", "", "project", "acme/payments/api"), "not found, or not visible to this token")
    plan = Plan((TargetPlan(API, (SectionPlan("", problems=(gone,)),)),))
    assert 'data-section="">whole target</th>' in render_plan(saved_plan(plan), "html")


def fields(before: dict[str, Json], after: dict[str, Json]) -> list[list[str | None]]:
    """What the page shows of an update."""
    address = Address(API, "milestones", "milestones", "milestone", "x")
    section = SectionPlan("milestones", 1, (Update(address, before, after, (), READ),))
    rows = data_of(render_plan(saved_plan(Plan((TargetPlan(API, (section,)),))), "html"))["rows"]
    return list(rows[0][4])


def test_values_are_shown_whole_and_without_special_characters() -> None:
    before = {"a": None, "b": "one\ntwo\u202e\n", "c": ["x"], "d": ""}
    assert fields(before, {"a": 1, "b": "one", "c": [], "d": "none"}) == [
        ["a", "none", "1"],
        ["b", "one\ntwo\\u202e\n", "one"],
        ["c", '[\n  "x"\n]', "[]"],
        ["d", '""', "none"],
    ]


def test_a_creation_says_what_the_service_will_not_restore() -> None:
    address = Address(API, "milestones", "milestones", "milestone", "x")
    section = SectionPlan("milestones", 0, (Create(address, {"state": "active"}, (), hint="none of its issues <b>"),))
    rows = data_of(render_plan(saved_plan(Plan((TargetPlan(API, (section,)),))), "html"))["rows"]
    assert rows[0][4] == [["state", None, "active"], ["hint", None, "none of its issues <b>"]]


def test_of_very_long_values_the_part_is_shown_in_which_they_differ() -> None:
    ((_, before, after),) = fields({"a": "x" * 20_000 + "y"}, {"a": "x" * 20_000 + "z" * 20_000})
    assert before == "…" + "x" * 100 + "y"
    assert after == "…" + "x" * 100 + "z" * 9900 + "…"
    assert fields({"a": "x" * 20_000}, {"a": "y"}) == [["a", "x" * 10_000 + "…", "y"]]


def test_what_is_none_is_not_shown_of_what_is_created_and_deleted() -> None:
    address = Address(API, "milestones", "milestones", "milestone", "x")
    changes = Create(address, {"a": None, "b": 1}, ()), Delete(address, {"a": None, "b": 1}, (), READ)
    plan = Plan((TargetPlan(API, (SectionPlan("milestones", 1, changes),)),))
    rows = data_of(render_plan(saved_plan(plan), "html"))["rows"]
    assert [row[4] for row in rows] == [[["b", None, "1"]], [["b", "1", None]]]


class Reader(HTMLParser):
    """Reads a page as a browser does: its elements and the content of its scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.scripts: list[str] = []
        self.styles: list[str] = []
        self.attributes: set[str] = set()
        self.policy = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        if ("http-equiv", "Content-Security-Policy") in attrs:
            self.policy = dict(attrs)["content"] or ""

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1] in ("script", "style") and data.strip():
            (self.scripts if self.tags[-1] == "script" else self.styles).append(data)


def test_the_page_loads_nothing_and_runs_only_its_own_script() -> None:
    page = Reader(render_plan(sample(), "html"))

    def digest(text: str) -> str:
        return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"

    # what follows the last script is no script
    (style,), (_, script) = page.styles, page.scripts[:2]
    assert page.policy == (
        f"default-src 'none'; style-src {digest(style)}; script-src {digest(script)}; "
        "base-uri 'none'; form-action 'none'"
    )
    assert page.attributes.isdisjoint({"src", "style", "action", "onclick", "onload", "onerror"})
    assert set(page.tags).isdisjoint({"img", "link", "iframe", "object", "base"})


@patiently
@given(evil)
@example(EVIL)
@example("</script><script>alert(1)</script><!-- &amp; ]]>")
def test_no_string_breaks_out(text: str) -> None:
    plain, saved = hostile("plain"), hostile(text)
    for page, harmless in [
        (render_plan(saved, "html"), render_plan(plain, "html")),
        (render_report(carried_out(saved, 2), "html"), render_report(carried_out(plain, 2), "html")),
    ]:
        assert Reader(page).tags == Reader(harmless).tags
        assert not re.search("[<>&]", page[page.index('id="data">') + 10 :].partition("</script>")[0])
        assert len(data_of(page)["rows"]) == 3


@patiently
@given(saved_plans())
def test_every_change_is_in_the_page(saved: SavedPlan) -> None:
    page = render_plan(saved, "html")
    assert len(data_of(page)["rows"]) == sum(1 for _ in saved.plan.changes)
    listed = [*saved.plan.problems, *saved.plan.excepted]
    assert page.count('<li><span class="target">') == len(listed)


def test_equal_changes_failures_and_problems_are_one_row_with_all_their_targets() -> None:
    page = render_plan(many(20, problems=4), "html")
    data = data_of(page)
    assert [(row[0], row[2], row[3]) for row in data["rows"]] == [
        ([0, 1, 2, 3], "create", 'milestone "2026.01"'),
        ([0, 1, 2, 3], "update", "approval settings"),
        ([0, 1, 2, 3], "update", 'milestone "2026.02"'),
        ([0, 1, 2, 3], "update", 'milestone "2026.03"'),
        ([0, 1, 2, 3], "delete", 'trigger token "legacy-integration"'),
    ]
    assert data["targets"][1:3] == ["project globex/team-1/service-1", "project initech/team-2/service-2"]
    assert data["rows"][0][5] == ["4 requests, such as POST projects/acme%2Fteam-0%2Fservice-0/milestones"]
    assert "<h2>4 problems</h2>" in page
    assert (
        '<span class="target">4 projects (acme/team-0/service-0, globex/team-1/service-1 and 2 more)</span> '
        '<span class="what">approval settings.retain_approvals_on_push</span>'
    ) in page
    page = render_report(carried_out(many(40), 2), "html")
    assert "<h2>20 unfinished changes</h2>" in page
    failed = [row for row in data_of(page)["rows"] if row[6] == "failed"]
    assert [(len(row[0]), row[3], row[4]) for row in failed][:1] == [(8, 'milestone "2026.02" and 1 other', [])]
