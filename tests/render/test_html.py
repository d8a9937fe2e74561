"""The HTML file, without a browser: what stands in it, that it loads nothing, and that no string breaks out."""

import json
import re
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import example, given

from reconciler.document.document import BaselineShare, RunDocument
from reconciler.document.guard import Limits
from reconciler.document.links import Links, Places
from reconciler.document.style import Style
from reconciler.model.item import (
    RUN_ENDED,
    Create,
    Delete,
    Finding,
    Status,
    Update,
    not_applicable_at,
    problem_at,
    unmanaged_at,
)
from reconciler.model.plan import Plan, TargetPlan
from reconciler.model.protocols import Json
from reconciler.model.shards import Shard
from reconciler.model.targets import Address, Level, Target
from reconciler.reports import render_plan, render_report
from tests.building import READ, SectionPlan, noted, sections_of, target_plan, with_sections
from tests.cli_runner import BREAK
from tests.render.fleets import fleet, interrupted
from tests.render.hostile import EVIL, evil, hostile
from tests.render.many import carried_out, many
from tests.render.plans import patiently, saved_plans
from tests.render.samples import API, LIB, about, done, sample, saved_plan, tree

EACH = Style(group_by="target")
"""Each change is a card of its own."""


LEFT = ("unmanaged", "excepted", "unfit")
"""The kinds of cards of what is left alone."""


def data_of(page: str) -> dict[str, Any]:
    """Return what the page's script reads."""
    (text,) = re.findall(r'<script type="application/json" id="data">(.*)</script>', page)
    data: dict[str, Any] = json.loads(text)
    return data


def cards_of(page: str, *, kind: str = "") -> list[dict[str, Any]]:
    """Return the cards, without the names that links have for them."""
    cards = [each for each in data_of(page)["cards"] if each["kind"].startswith(kind)]
    return [{key: value for key, value in card.items() if key != "id"} for card in cards]


def verdict_of(page: str) -> list[str]:
    """Return the headline, the advice, and the notes."""
    verdict = page[page.index("<header") : page.index('<ul class="tiles"')]
    return re.findall(r"<(?:h1|p|p class=\"advice\"|code)>(.*?)</", verdict)


def tiles_of(page: str) -> dict[str, str]:
    """Return the numbers below the headline."""
    found = re.findall(r'data-kind="(\w+)"><span class="number">([\d,]+)<', page)
    return dict(found)


def test_a_page_begins_with_a_verdict_and_numbers() -> None:
    page = render_plan(sample(), "html")
    assert page[page.index("<title>") : page.index("</title>")] == (
        "<title>Plan: 1 to create, 2 to update, 1 to delete, 1 problem"
    )
    assert page[page.index("<header") : page.index("<noscript>")].replace(BREAK, "") == (
        """\
<header class="verdict" data-tone="care">
<p class="crumbs"><strong>reconciler</strong> <span>Plan</span> <span>https://git.example.com/api/v4</span> <time datetime="2026-12-01T12:00:00Z">2026-12-01T12:00:00Z</time></p>
<h1>Deletes 1 object in 1 project; 1 problem</h1>
<p class="reach"><span class="name">Reaches</span> 1 of 2 projects</p>
<p class="advice">Review the deletions first. Not all of a deleted object can be restored.</p>
<ul class="tiles" aria-label="Numbers">
<li><span class="tile" data-kind="delete"><span class="number">1</span> <span class="word"><span class="sign" aria-hidden="true">\u2212</span> Deletions</span></span></li>
<li><span class="tile" data-kind="problem"><span class="number">1</span> <span class="word"><span class="sign" aria-hidden="true">!</span> Problems</span></span></li>
<li><span class="tile" data-kind="create"><span class="number">1</span> <span class="word"><span class="sign" aria-hidden="true">+</span> Creations</span></span></li>
<li><span class="tile" data-kind="update"><span class="number">2</span> <span class="word"><span class="sign" aria-hidden="true">~</span> Updates</span></span></li>
<li><span class="tile" data-kind="unmanaged"><span class="number">3</span> <span class="word"><span class="sign" aria-hidden="true">?</span> Unmanaged</span></span></li>
</ul>
</header>
<main>
<section id="decisions" tabindex="-1" aria-label="Decisions">
"""
    )
    about = page[page.index('<section class="numbers"') : page.index("</main>")].replace(BREAK, "")
    rows = re.findall(r"<tr>.*?</tr>", about)
    assert [re.sub("(<[^>]+>)+", "|", row).strip("|") for row in rows] == [
        "section|+| |create|~| |update|\u2212| |delete|!| |problems",
        "approval_settings|0|1|0|1",
        "milestones|1|1|0|0",
        "trigger_tokens|0|0|1|0",
        "all|1|2|1|1",
    ]
    assert re.findall("<p>(.*)</p>", about) == [
        "Compared the manifests with https://git.example.com/api/v4 as read at 2026-12-01T12:00:00Z.",
        "4 writes to apply; 8 requests were made to plan. 3 unmanaged.",
    ]


def test_the_cards_stand_in_the_page_as_data_the_biggest_risk_first() -> None:
    page = render_plan(sample(), "html")
    data = data_of(page)
    assert [data[key] for key in ("targets", "sections", "texts")] == [
        ["project acme/payments/api", "project acme/payments/lib"],
        ["trigger_tokens", "approval_settings", "milestones"],
        ["", 'milestone "Someday", ID 32', 'milestone "Old", ID 42', 'milestone "Older", ID 43'],
    ]
    assert cards_of(page) == [
        {
            "kind": "delete",
            "title": 'Delete trigger token "legacy-integration"',
            "sections": [0],
            "losses": [
                "no use of it is recorded",
                "its value no longer starts pipelines, and cannot be restored",
            ],
            "requests": "DELETE projects/acme%2Fpayments%2Fapi/triggers/71",
            "rows": [[0, 0, 0, 0, 0, 0]],
        },
        {
            "kind": "problem",
            "title": "approval settings.retain_approvals_on_push: locked by group acme; "
            "unlock it there or leave the field out",
            "sections": [1],
            "rows": [[0, 1, 0, 0, 0, 0]],
        },
        {
            "kind": "create",
            "title": 'Create milestone "2026.12"',
            "sections": [2],
            "fields": [["due_date", None, "2026-12-31"]],
            "requests": "POST projects/acme%2Fpayments%2Fapi/milestones",
            "rows": [[0, 2, 0, 0, 0, 0]],
        },
        {
            "kind": "update",
            "title": "Update approval settings",
            "sections": [1],
            "fields": [["allow_author_approval", "true", "false"]],
            "requests": "PUT projects/acme%2Fpayments%2Fapi/merge_request_approval_setting",
            "rows": [[0, 1, 0, 0, 0, 0]],
        },
        {
            "kind": "update",
            "title": 'Update milestone "2026.11"',
            "sections": [2],
            "fields": [["name", "Nov 2026", "2026.11"], ["state", "active", "closed"]],
            "requests": "PUT projects/acme%2Fpayments%2Fapi/milestones/31",
            "rows": [[0, 2, 0, 0, 0, 0]],
        },
        {
            "kind": "unmanaged",
            "title": "3 unmanaged milestones",
            "sections": [2],
            "rows": [[0, 2, 1, 0, 0, 0], [1, 2, 2, 0, 0, 0], [1, 2, 3, 0, 0, 0]],
        },
    ]
    assert data["kinds"]["delete"] == {
        "name": "delete",
        "sign": "\u2212",
        "heading": "Deletions",
        "state": "deletions",
    }
    assert data["matrix"] == {
        "targets": ["project acme/payments/api", "project acme/payments/lib"],
        "sections": ["trigger_tokens", "approval_settings", "milestones"],
        "states": [
            "deletions",
            "problem",
            "changes",
            "excepted",
            "not applicable",
            "unmanaged",
            "in order",
            "not declared",
        ],
        "cells": "012775",
    }


def planned(
    *changes: Create | Update | Delete, problems: tuple[Finding, ...] = (), limits: Limits | None = None
) -> str:
    """Return the page of a plan for one project."""
    section = SectionPlan("milestones", 1, changes, problems)
    return render_plan(replace(saved_plan(Plan((target_plan(API, (section,)),))), limits=limits or Limits()), "html")


AT = Address(API, "milestones", "milestones", "milestone", "x")
NEW, CHANGED, GONE = Create(AT, {"a": 1}, ()), Update(AT, {"a": 1}, {"a": 2}, (), READ), Delete(AT, {"a": 1}, (), READ)
LOCKED = problem_at(AT, "locked by group acme", fix="unlock it there")


@pytest.mark.parametrize(
    ("page", "tone", "said"),
    [
        (planned(), "calm", ["No changes: 1 target is in order", "The service is as the manifests declare."]),
        (
            planned(problems=(LOCKED,)),
            "care",
            [
                "Nothing to change, but 1 problem",
                "Some declared settings cannot be planned. Their cards say why, and how to fix that.",
            ],
        ),
        (
            planned(NEW, CHANGED),
            "go",
            ["Creates 1 object and updates 1 object, deletes nothing", "No problems. Ready to apply."],
        ),
        (
            planned(NEW, problems=(LOCKED,)),
            "care",
            [
                "Creates 1 object, deletes nothing; 1 problem",
                "The changes can be applied. The problems hold up nothing else.",
            ],
        ),
        (
            planned(NEW, limits=Limits(max_changes=0)),
            "stop",
            [
                "Refused: creates 1 object, deletes nothing",
                "Nothing is changed until this is resolved.",
                "apply will refuse this plan: it makes 1 change, more than --max-changes 0",
            ],
        ),
        (
            planned(GONE, limits=Limits(allow_deletes=3)),
            "care",
            [
                "Deletes 1 object in 1 project",
                "Review the deletions first. Not all of a deleted object can be restored.",
                "apply may delete up to 3 objects: --allow-deletes 3",
            ],
        ),
    ],
    ids=["calm", "problem", "go", "problem and change", "refused", "deletion"],
)
def test_the_verdict_on_a_plan(page: str, tone: str, said: list[str]) -> None:
    assert f'data-tone="{tone}">' in page
    assert verdict_of(page) == said


def test_deletions_are_counted_by_level() -> None:
    group = Target(Level.GROUP, "acme")
    there = Delete(replace(AT, target=group), {}, (), READ)
    targets = (target_plan(group, (SectionPlan("milestones", 1, (there,)),)),)
    own = target_plan(API, (SectionPlan("milestones", 1, (GONE,)),))
    page = render_plan(saved_plan(Plan((*targets, own))), "html")
    assert verdict_of(page)[0] == "Deletes 2 objects in 1 group and 1 project"


def without_problems(report: RunDocument) -> RunDocument:
    items = (item for item in report.items if not (isinstance(item, Finding) and item.code == "problem"))
    return replace(report, items=tuple(items))


RETRY = "reconciler apply --retry-failed report.json"


@pytest.mark.parametrize(
    ("report", "tone", "said"),
    [
        (
            done(),
            "care",
            ["All 4 changes are done; 1 problem", "The problems are declared settings that could not be planned."],
        ),
        (
            replace(done(), targets=(), items=()),
            "calm",
            ["Nothing to change", "Nothing was written."],
        ),
        (
            done((Status.FAILED, "no"), (Status.SKIPPED, RUN_ENDED)),
            "care",
            [
                "Interrupted: 2 of 4 changes are done; 1 problem",
                "2 changes not done. To go on, with the JSON report of this run:",
                RETRY,
            ],
        ),
        (
            done(*[(Status.FAILED, "no")] * 4),
            "stop",
            [
                "0 of 4 changes are done; 1 problem",
                "4 changes not done. To go on, with the JSON report of this run:",
                RETRY,
            ],
        ),
        (
            done(*[(Status.FAILED, "no")] * 3),
            "care",
            [
                "1 of 4 changes is done; 1 problem",
                "3 changes not done. To go on, with the JSON report of this run:",
                RETRY,
            ],
        ),
        (without_problems(done()), "go", ["All 4 changes are done", "Nothing is left to do."]),
    ],
    ids=["problem", "empty", "interrupted", "failed", "in part", "done"],
)
def test_the_verdict_on_an_apply(report: RunDocument, tone: str, said: list[str]) -> None:
    page = render_report(report, "html")
    assert f'data-tone="{tone}">' in page
    assert verdict_of(page) == said


def test_a_report_begins_with_what_is_unfinished() -> None:
    report = done((Status.DROPPED, "the service kept its own level"), (Status.FAILED, ""))
    page = render_report(replace(report, requests=replace(report.made, waited={"the rate limit": 2})), "html")
    assert "<title>Applied: 1 updated, 1 deleted, 1 failed, 1 dropped by the service, 1 problem</title>" in page
    assert "<p>15 requests made. Waited 2.0 s for the rate limit.</p>" in page
    assert tiles_of(page) == {
        "failed": "1",
        "dropped": "1",
        "problem": "1",
        "deleted": "1",
        "created": "0",
        "updated": "1",
        "unmanaged": "3",
    }
    assert [card["title"] for card in cards_of(page)] == [
        'Create milestone "2026.12"',
        "Update approval settings: the service kept its own level",
        "approval settings.retain_approvals_on_push: locked by group acme; unlock it there or leave the field out",
        'Deleted trigger token "legacy-integration"',
        'Updated milestone "2026.11"',
        "3 unmanaged milestones",
    ]


def test_one_reason_is_one_card_whatever_is_not_done_for_it() -> None:
    page = render_report(interrupted(10), "html")
    kinds = [card["kind"] for card in cards_of(page)]
    order = ["deleted", "created", "updated", "failed", "dropped", "stale", "skipped", "problem", *LEFT]
    assert kinds == sorted(kinds, key=order.index)
    assert {"created", "failed", "skipped"} <= set(kinds)
    (skipped,) = cards_of(page, kind="skipped")
    data = data_of(page)
    number = len(skipped["rows"])
    assert skipped["title"] == f"Skipped: {RUN_ENDED}"
    shown = {(data["sections"][section], data["texts"][about]) for _, section, about, *_ in skipped["rows"]}
    assert ("approval_settings", "update approval settings") in shown
    (failed,) = cards_of(page, kind="failed")
    assert "the result is unknown" in failed["title"]
    each = cards_of(render_report(interrupted(10), "html", EACH), kind="skipped")
    assert [len(card["rows"]) for card in each] == [1] * number


def test_values_that_differ_between_targets_are_not_shown_as_those_of_all() -> None:
    alike = many(10)
    one, two = tree(alike).targets
    settings, *others = sections_of(two)
    (change,) = settings.changes
    assert isinstance(change, Update)
    changed = replace(settings, changes=(replace(change, after={**change.after, "allow_author_approval": True}),))
    different = about(alike, (one, with_sections(two, (changed, *others))))
    for saved, shown in ((alike, True), (different, False)):
        (card,) = cards_of(render_report(carried_out(saved, 5), "html"), kind="failed")
        assert card["title"].startswith("Update approval settings: PUT projects/7/milestones/3: 500 ")
        assert (len(card["rows"]), "fields" in card) == (2, shown)


def test_losses_of_all_deletions_are_those_of_the_card_and_others_those_of_the_target() -> None:
    def gone(path: str, *losses: str) -> TargetPlan:
        target = Target(Level.PROJECT, path)
        change = Delete(replace(AT, target=target), {}, (), READ, notes=noted(losses=losses))
        return target_plan(target, (SectionPlan("milestones", 1, (change,)),))

    page = render_plan(
        saved_plan(Plan((gone("a/b", "<b>it</b> is gone", "3 issues"), gone("a/c", "<b>it</b> is gone")))), "html"
    )
    (card,), texts = cards_of(page), data_of(page)["texts"]
    assert card["losses"] == ["<b>it</b> is gone", "3 issues (1 of 2)"]
    assert [texts[row[4]] for row in card["rows"]] == ["3 issues", ""]


def test_what_is_left_alone_has_cards_too() -> None:
    def own(target: Target, *objects: Finding) -> TargetPlan:
        sections = (
            SectionPlan("milestones", 1, (), objects),
            SectionPlan("epics").saying(not_applicable_at(target, "epics", "it is <archived>")),
        )
        return target_plan(target, sections)

    token = Address(API, "trigger_tokens", "trigger_tokens", "trigger token", "old")
    door = unmanaged_at(token, 7, grants_access=True, owner="<bob>", last_used="2026-01-02")
    other = replace(door, where=replace(token, target=LIB))
    one = cards_of(render_plan(saved_plan(Plan((own(API, door), own(LIB)))), "html"))
    assert [(card["title"], card.get("remedy"), len(card["rows"])) for card in one] == [
        (
            "1 unmanaged trigger token grants access",
            "declare it, or write prune: [trigger_tokens] to delete it",
            1,
        ),
        ("epics: it is <archived>", None, 2),
    ]
    page = render_plan(saved_plan(Plan((own(API, door, unmanaged_at(AT)), own(LIB, other)))), "html", EACH)
    texts = data_of(page)["texts"]
    assert [(card["title"], [texts[row[2]] for row in card["rows"]]) for card in cards_of(page)] == [
        (
            "2 unmanaged trigger tokens grant access",
            ['trigger token "old", ID 7, owner <bob>, last used 2026-01-02'] * 2,
        ),
        ("1 unmanaged milestone", ['milestone "x"']),
        ("epics: it is <archived>", [""]),
        ("epics: it is <archived>", [""]),
    ]


def test_a_command_names_each_target_unless_the_plan_is_about_all() -> None:
    saved = many(5)
    pages = [
        saved,
        replace(saved, narrowed=True),
        replace(saved, narrowed=False),
        replace(saved, narrowed=False, shard=Shard(1, 2)),
        replace(saved, narrowed=False, known=BaselineShare(1, 0)),
    ]
    found = [data_of(render_plan(page, "html"))["commands"] for page in pages]
    assert found == ["none", "narrow", "wide", "narrow", "narrow"]
    assert data_of(render_report(carried_out(saved), "html"))["commands"] == "retry"


def allowed(path: str, *names: str, found: int, place: str = "sets.yaml:12") -> TargetPlan:
    """Return what happens to a project whose allowlist loses some of its entries."""
    target = Target(Level.PROJECT, path)
    at = Address(target, "job_token_scope", "projects", "allowed project")
    gone = (Delete(replace(at, name=name), {}, (), READ, origin=place) for name in names)
    return target_plan(target, (SectionPlan("job_token_scope", found, tuple(gone)),))


def test_what_one_place_asks_of_many_targets_is_one_card() -> None:
    emptied = [allowed(f"acme/p{number}", "acme/old", f"acme/own-{number}", found=2) for number in range(400)]
    alone = allowed("acme/q", "acme/old", found=2, place="q.yaml:3")
    plan = saved_plan(Plan((*emptied, alone)))
    page = render_plan(plan, "html")
    first, second = cards_of(page)
    assert first["title"] == "prune at sets.yaml:12 empties job_token_scope of 400 projects: 800 allowed projects"
    assert [group["title"] for group in first["groups"][:2]] == [
        'Delete allowed project "acme/old"',
        'Delete allowed project "acme/own-0"',
    ]
    assert (len(first["groups"]), len(first["rows"]), first["rows"][400][6]) == (401, 800, 1)
    assert data_of(page)["texts"][first["place"]] == "sets.yaml:12"
    assert (second["title"], len(second["rows"])) == ('Delete allowed project "acme/old"', 1)
    assert '<span class="name">Reaches</span> 401 of 401 projects, all</p>' in page
    done = next(card for card in cards_of(render_report(carried_out(plan), "html")) if card["kind"] == "deleted")
    assert done["title"] == "prune at sets.yaml:12 deleted 720 allowed projects in job_token_scope of 400 projects"
    some = [replace(each, sections=dict.fromkeys(each.sections, 3)) for each in emptied[:2]]
    titles = [card["title"] for card in cards_of(render_plan(saved_plan(Plan(tuple(some))), "html"))]
    assert titles == ["prune at sets.yaml:12 deletes 4 allowed projects in job_token_scope of 2 projects"]
    assert len(cards_of(render_plan(saved_plan(Plan(tuple(some))), "html", Style(group_by="target")))) == 4


def test_one_line_that_makes_objects_of_different_names_or_values_is_one_card() -> None:
    def due(path: str, *dates: str) -> TargetPlan:
        target = Target(Level.PROJECT, path)
        at = Address(target, "milestones", "milestones", "milestone")
        made = (Create(replace(at, name=f"m{day}"), {"due_date": day}, (), origin="set.yaml:7") for day in dates)
        moved = Update(replace(at, name="m"), {"due_date": dates[0]}, {"due_date": "x"}, (), READ, origin="set.yaml:9")
        return target_plan(target, (SectionPlan("milestones", 0, (*made, moved)),))

    page = render_plan(saved_plan(Plan((due("a/b", "1", "2"), due("a/c", "3")))), "html")
    assert [(card["title"], [group["fields"] for group in card["groups"]]) for card in cards_of(page)] == [
        ("Create 3 milestones", [[["due_date", None, "1"]], [["due_date", None, "2"]], [["due_date", None, "3"]]]),
        ('Update milestone "m"', [[["due_date", "1", "x"]], [["due_date", "3", "x"]]]),
    ]


def test_a_page_of_a_revert_has_the_commands_of_a_revert() -> None:
    back = replace(many(5), reverts="1a2b3c4d" * 5, narrowed=False)
    for saved, width in ((back, "wide"), (replace(back, narrowed=True), "narrow")):
        data = data_of(render_plan(saved, "html"))
        assert (data["commands"], data["revert"]) == (width, ["reconciler", "revert", "1a2b3c4"])
    done = data_of(render_report(replace(carried_out(back), reverts="my report.json"), "html"))
    assert (done["commands"], done["revert"]) == ("wide", ["reconciler", "revert", "my report.json"])
    nothing = render_plan(replace(back, targets=(), items=()), "html")
    assert "The service is as before that apply." in nothing
    assert "<h1>Revert of the apply 1a2b3c4: nothing to change</h1>" in nothing
    safe = replace(
        saved_plan(Plan((target_plan(API, (SectionPlan("milestones", 1, (CHANGED,)),)),))), reverts="1a2b3c4d" * 5
    )
    for page, headline, command in (
        (render_plan(safe, "html"), "updates 1 object, deletes nothing", "reconciler revert 1a2b3c4 --yes"),
        (
            render_report(replace(carried_out(safe), reverts="1a2b3c4d" * 5), "html"),
            "the change is not done",
            "reconciler revert 1a2b3c4 --yes",
        ),
    ):
        assert f"<h1>Revert of the apply 1a2b3c4: {headline}</h1>" in page
        assert re.findall('data-copy="(.*?)"', page) == ([command] if command else [])


def test_links_lead_to_the_service_the_manifests_and_the_pipeline() -> None:
    origin = "manifests/<b>.yaml:12"
    section = SectionPlan("milestones", 1, (replace(CHANGED, origin=origin, notes=noted(page="-/milestones/1")), GONE))
    saved = saved_plan(Plan((target_plan(API, (section,)),)))
    style = Style(links=lambda document: Links(document, PLACES))
    page = render_plan(saved, "html", style)
    data = data_of(page)
    assert data["pages"] == {"project acme/payments/api": "https://git.example.com/acme/payments/api"}
    assert data["lines"] == {origin: f"https://git.example.com/acme/it/-/blob/{'a' * 40}/manifests/%3Cb%3E.yaml#L12"}
    assert [data["texts"][card["rows"][0][5]] for card in data["cards"]] == [
        "https://git.example.com/acme/payments/api/-/all",
        "https://git.example.com/acme/payments/api/-/milestones/1",
    ]
    assert re.findall("<a href=.*?</a>", page) == [
        '<a href="https://git.example.com/acme/it/-/merge_requests/4">!4 Empty the allowlists</a>',
        f'<a href="https://git.example.com/acme/it/-/commit/{"a" * 40}">aaaaaaa Prune &lt;all&gt;</a>',
        '<a href="https://git.example.com/acme/it/-/pipelines/9">#9</a>',
    ]
    assert "<dt>Author</dt> <dd>Ada Lovelace</dd>" in page
    since = render_plan(replace(saved, since="main", commit="b" * 40), "html")
    assert f"Compared the manifests of bbbbbbb with {saved.service} as read at 2026-12-01T12:00:00Z, and" in since
    assert " and with the manifests at main.</p>" in since
    plain = render_plan(saved, "html")
    assert (data_of(plain)["pages"], data_of(plain)["lines"], "<a href=" in plain) == ({}, {}, False)


PLACES = Places(
    web_url="https://git.example.com",
    repository_url="https://git.example.com/acme/it",
    commit="a" * 40,
    root="/r",
    folder="/r",
    pipeline="https://git.example.com/acme/it/-/pipelines/9",
    merge_request="https://git.example.com/acme/it/-/merge_requests/4",
    captions={"title": "Empty the allowlists", "message": "Prune <all>", "author": "Ada Lovelace <ada@example.com>"},
    pages={"milestones": {Level.PROJECT: "{target}/-/all"}},
)


def test_a_link_leads_to_the_same_decision_on_another_day() -> None:
    def ids(page: str) -> dict[str, str]:
        return {card["id"]: card["title"] for card in data_of(page)["cards"]}

    one, two = ids(render_plan(fleet(10), "html")), ids(render_plan(fleet(11), "html"))
    assert {key: title for key, title in two.items() if key in one} == one
    assert len(ids(render_plan(fleet(10), "html", EACH))) == len(data_of(render_plan(fleet(10), "html", EACH))["cards"])


def test_without_script_the_cards_are_a_list_of_some() -> None:
    page = render_plan(many(120), "html", EACH)
    assert page.count("\n<li>Update ") + page.count("\n<li>Create ") + page.count("\n<li>Delete ") == 100
    assert "<p>21 more.</p>" in page
    small = render_plan(planned_with_remedy(), "html")
    assert "<li>milestone &#34;x&#34;: locked by group acme; unlock it there (1)</li>" in small
    assert " more.</p>" not in small
    assert (
        "<ul>" not in render_plan(saved_plan(Plan(())), "html").partition("<noscript>")[2].partition("</noscript>")[0]
    )


def planned_with_remedy() -> RunDocument:
    return saved_plan(Plan((target_plan(API, (SectionPlan("milestones", 1, (), (LOCKED,)),)),)))


def test_a_target_that_cannot_be_seen_has_a_line_of_its_own() -> None:
    gone = problem_at(Address(API, "", "", "project", "acme/payments/api"), "not found, or not visible to this token")
    plan = Plan((target_plan(API, (SectionPlan("").saying(gone),)),))
    assert 'data-section="">whole target</th>' in render_plan(saved_plan(plan), "html")


def fields(before: dict[str, Json], after: dict[str, Json]) -> list[list[str | None]]:
    """What the page shows of an update."""
    address = Address(API, "milestones", "milestones", "milestone", "x")
    section = SectionPlan("milestones", 1, (Update(address, before, after, (), READ),))
    (card,) = cards_of(render_plan(saved_plan(Plan((target_plan(API, (section,)),))), "html"))
    return list(card["fields"])


def test_values_are_shown_whole_and_without_special_characters() -> None:
    before = {"a": None, "b": "one\ntwo\u202e\n", "c": ["x"], "d": ""}
    assert fields(before, {"a": 1, "b": "one", "c": [], "d": "none"}) == [
        ["a", "none", "1"],
        ["b", "one\ntwo\\u202e\n", "one"],
        ["c", "x", "none"],
        ["d", '""', "none"],
    ]


def test_a_creation_says_what_the_service_will_not_restore() -> None:
    address = Address(API, "milestones", "milestones", "milestone", "x")
    section = SectionPlan(
        "milestones", 0, (Create(address, {"state": "active"}, (), notes=noted(hint="none of its issues <b>")),)
    )
    (card,) = cards_of(render_plan(saved_plan(Plan((target_plan(API, (section,)),))), "html"))
    assert card["fields"] == [["state", None, "active"], ["note", None, "none of its issues <b>"]]


def test_of_very_long_values_the_part_is_shown_in_which_they_differ() -> None:
    ((_, before, after),) = fields({"a": "x" * 20_000 + "y"}, {"a": "x" * 20_000 + "z" * 20_000})
    assert before == "…" + "x" * 100 + "y"
    assert after == "…" + "x" * 100 + "z" * 9900 + "…"
    assert fields({"a": "x" * 20_000}, {"a": "y"}) == [["a", "x" * 10_000 + "…", "y"]]


def test_what_is_none_is_not_shown_of_what_is_created_and_deleted() -> None:
    address = Address(API, "milestones", "milestones", "milestone", "x")
    changes = Create(address, {"a": None, "b": 1}, ()), Delete(address, {"a": None, "b": 1}, (), READ)
    plan = Plan((target_plan(API, (SectionPlan("milestones", 1, changes),)),))
    cards = cards_of(render_plan(saved_plan(plan), "html"))
    assert [card["fields"] for card in cards] == [[["b", "1", None]], [["b", None, "1"]]]


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

    styles, (_, *scripts) = page.styles, page.scripts
    assert page.policy == (
        f"default-src 'none'; style-src {' '.join(map(digest, styles))}; script-src {' '.join(map(digest, scripts))}; "
        "base-uri 'none'; form-action 'none'"
    )
    assert page.attributes.isdisjoint({"src", "style", "action", "onclick", "onload", "onerror"})
    assert set(page.tags).isdisjoint({"img", "link", "iframe", "object", "base"})


@pytest.mark.untraced
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
        assert Reader(page.replace(BREAK, "")).tags == Reader(harmless.replace(BREAK, "")).tags
        assert not re.search("[<>&]", page[page.index('id="data">') + 10 :].partition("</script>")[0])
        assert sum(len(card["rows"]) for card in data_of(page)["cards"]) == 5


@pytest.mark.untraced
@patiently
@given(saved_plans())
def test_every_change_is_in_the_page(saved: RunDocument) -> None:
    plan = tree(saved)
    number = sum(1 for each in (plan.changes, plan.problems, plan.findings_of("excepted")) for _ in each)
    for style in (EACH, Style()):
        cards = [
            each
            for each in data_of(render_plan(saved, "html", style))["cards"]
            if each["kind"] not in ("unmanaged", "unfit")
        ]
        assert sum(len(card["rows"]) for card in cards) == number
        assert len({card["id"] for card in cards}) == len(cards)
        assert style is not EACH or len(cards) == number


def test_equal_changes_failures_and_problems_are_one_card_with_all_their_targets() -> None:
    page = render_plan(many(20, problems=4), "html")
    data = data_of(page)
    assert [(card["title"], [row[0] for row in card["rows"]]) for card in data["cards"][:6]] == [
        ('Delete trigger token "legacy-integration"', [0, 1, 2, 3]),
        (
            "approval settings.retain_approvals_on_push: locked by group acme; unlock it there or leave the field out",
            [0, 1, 2, 3],
        ),
        ('Create milestone "2026.01"', [0, 1, 2, 3]),
        ("Update approval settings", [0, 1, 2, 3]),
        ('Update milestone "2026.02"', [0, 1, 2, 3]),
        ('Update milestone "2026.03"', [0, 1, 2, 3]),
    ]
    assert data["targets"][1:3] == ["project globex/team-1/service-1", "project initech/team-2/service-2"]
    assert data["cards"][2]["requests"] == "4 requests, such as POST projects/acme%2Fteam-0%2Fservice-0/milestones"
    page = render_report(carried_out(many(40), 2), "html")
    assert [(card["title"], len(card["rows"]), "fields" in card) for card in cards_of(page, kind="failed")] == [
        ("Failed: 500 Internal Server Error", 20, False)
    ]
