"""The fleet page: what it says, what it says without a script, and as a browser shows it."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html import unescape
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

from reconciler.document.document import PastApply, RunDocument
from reconciler.document.links import Links, Places
from reconciler.document.style import Style
from reconciler.model.exceptions import DeclaredException
from reconciler.model.item import (
    Change,
    ChangedBy,
    Create,
    Delete,
    Finding,
    Update,
    not_applicable_at,
    problem_at,
    with_note,
)
from reconciler.model.plan import TargetPlan
from reconciler.model.shards import Shard
from reconciler.model.targets import Address, Key, Level, Target
from reconciler.reports import render_plan
from reconciler.reports.coverage import Matrix, Share, matrix
from reconciler.reports.fleet import page
from reconciler.reports.fleet_page import (
    Division,
    EndingException,
    FleetPage,
    SectionAges,
    SectionCoverage,
    Task,
    Team,
    fleet_page,
)
from reconciler.reports.history import History, PastRun, with_run
from tests.building import KINDS, READ, SectionPlan, sections_of, target_plan, with_sections
from tests.render.browser import DESKTOP, PHONE, Browser
from tests.render.fleets import fleet, history
from tests.render.hostile import EVIL, hostile
from tests.render.samples import EMPTY, NOON, about, tree

DAY = timedelta(days=1)
LIST = "#list > li"
NO_LABELS: Mapping[str, str] = MappingProxyType({})


def planned(
    level: Level,
    ref: Key | None,
    sections: dict[str, str],
    path: str | None = None,
    labels: Mapping[str, str] = NO_LABELS,
) -> TargetPlan:
    """Return a target whose sections differ as the letters say: create, update, delete, problem, not applicable, fine."""
    target = Target(level, ref)
    found = []
    for name, letter in sections.items():
        address = Address(target, name, name, name.removesuffix("s"), "1.0")
        differing: dict[str, Change] = {
            "c": Create(address, {"due_date": "2026-12-31"}, ()),
            "u": Update(address, {"state": "closed"}, {"state": "active"}, (), READ),
            "d": Delete(address, {"state": "closed"}, (), READ),
        }
        changes = [differing[letter]] if letter in differing else []
        problems = [problem_at(address, "403 Forbidden", fix="ask an owner")] if letter == "p" else []
        unfit = [not_applicable_at(target, name, "it has no repository")] if letter == "n" else []
        found.append(SectionPlan(name, 1, tuple(changes), (*problems, *unfit)))
    return target_plan(target, tuple(found), path=path, labels=labels)


def run(days: float, *targets: TargetPlan, narrowed: bool = False) -> RunDocument:
    return replace(about(EMPTY, targets), created_at=NOON + days * DAY, narrowed=narrowed)


API = planned(Level.PROJECT, "acme/web/api", {"milestones": "c", "tokens": "d"})
LIB = planned(Level.PROJECT, "acme/web/lib", {"milestones": "c"})
CLI = planned(Level.PROJECT, "acme/tools/cli", {"milestones": "c", "tokens": "n"})
ACME = planned(Level.GROUP, "acme", {"tokens": "p"})


def known(*runs: RunDocument) -> History:
    history: History | None = None
    for each in runs:
        history = with_run(history, each)
    assert history
    return history


def shown(last: RunDocument, *before: RunDocument) -> str:
    return page(last, known(*before, last))


def excepted(target: TargetPlan, *exceptions: DeclaredException) -> TargetPlan:
    return replace(target, exceptions=exceptions)


WEB, TOOLS = {"team": "web"}, {"team": "tools", "tier": "gold"}
LABELLED = (
    ACME,
    replace(CLI, labels=TOOLS),
    planned(Level.PROJECT, "acme/tools/quiet", {"milestones": "-"}, labels=TOOLS),
    replace(API, labels=WEB),
    replace(LIB, labels=WEB),
    planned(Level.PROJECT, 7, {"milestones": "-"}, "acme/web/seven"),
)
TODAY = NOON.date() + 40 * DAY
PLANNED = DeclaredException("milestones", TODAY + 9 * DAY, "re-planned, OPS-12", "1.0", ("due_date",), "sets.yaml:5")
OVER = DeclaredException("tokens", TODAY - 3 * DAY, "", origin="sets.yaml:9")
LATER = DeclaredException("tokens", TODAY + 31 * DAY, "migration")
APPLIES = (
    PastApply("9f" * 20, NOON, "Mona", {"created": 3}, "1a" * 20, 3, "https://git.example.com/job/7", "tier=gold", ""),
    PastApply("8e" * 20, NOON - DAY, "", {}, "", 0, "javascript:alert(1)", "", "7d" * 20),
)
FLEET = replace(
    run(40, *LABELLED[:2], excepted(LABELLED[2], OVER, LATER), *(excepted(each, PLANNED) for each in LABELLED[3:5])),
    applies=APPLIES,
)
FLEET = about(FLEET, (*tree(FLEET).targets, LABELLED[5]))
PAST = (run(0, API, CLI, LABELLED[5]), run(10, API, narrowed=True), run(38, API, CLI, LIB, *LABELLED[2:3]))
PLACES = Places(
    web_url="https://git.example.com",
    repository_url="https://git.example.com/acme/settings",
    commit="ab" * 20,
    root="/r",
    folder="/r",
)
LINKED = Style(links=lambda document: Links(document, PLACES))


def test_the_page_is_computed_once() -> None:
    history = known(*PAST, FLEET)
    view = fleet_page(FLEET, history)
    api, lib, cli, quiet, seven, acme = (
        *(each.target for each in (API, LIB, CLI)),
        *(LABELLED[each].target for each in (2, 5, 0)),
    )
    first, third, now = (NOON + days * DAY for days in (0, 38, 40))
    assert [(each.since, each.kind, each.section, each.targets, each.number) for each in view.differences] == [
        (first, "create", "milestones", (cli, api), 2),
        (first, "delete", "tokens", (api,), 1),
        (third, "create", "milestones", (lib,), 1),
        (now, "problem", "tokens", (acme,), 1),
    ]
    web = Team("web", Share(0, 2), 3, 0, first)
    runs = (PastRun(first, 3, True, 3, 0, 3, 1), PastRun(third, 4, True, 4, 0, 4, 1), PastRun(now, 6, True, 4, 1, 5, 2))
    groups = {api: "acme/web", lib: "acme/web", seven: "acme/web", cli: "acme/tools", quiet: "acme/tools", acme: "acme"}
    assert replace(view, differences=(), matrix=Matrix((), ())) == FleetPage(
        share=Share(2, 5),
        counts=Level.PROJECT,
        affected=4,
        trend=runs,
        earlier=runs[0],
        tasks=(
            Task("problem", 1, (acme,), "ask an owner"),
            Task("change", 4, (cli, api, lib)),
            Task("ended", 1, (quiet,), day=OVER.until),
            Task("ending", 2, (api, lib), day=PLANNED.until),
        ),
        divisions=(
            Division(
                "team",
                (
                    web,
                    Team("tools", Share(1, 2), 1, 0, first),
                    Team("", Share(1, 1), 0, 1, now),
                ),
                {api: "web", lib: "web", cli: "tools", quiet: "tools", seven: "", acme: ""},
            ),
            Division(
                "tier",
                (Team("gold", Share(1, 2), 1, 0, first), Team("", Share(1, 3), 3, 1, first)),
                {**dict.fromkeys((api, lib, seven, acme), ""), cli: "gold", quiet: "gold"},
            ),
            Division(
                "",
                (
                    Team("acme/web", Share(1, 3), 3, 0, first),
                    Team("acme/tools", Share(1, 2), 1, 0, first),
                    Team("acme", Share(0, 0), 0, 1, now),
                ),
                groups,
            ),
        ),
        ages=(SectionAges("milestones", (0, 0, 1, 0, 2), first), SectionAges("tokens", (1, 0, 0, 0, 1), first)),
        differences=(),
        exceptions=(EndingException(OVER, (quiet,), -3), EndingException(PLANNED, (api, lib), 9)),
        applies=APPLIES,
        coverage=(
            SectionCoverage("milestones", 5, 5, {"team": (), "tier": (), "": ()}),
            SectionCoverage(
                "tokens",
                2,
                5,
                {
                    "team": (("tools", 1), ("web", 1), ("", 1)),
                    "tier": (("", 2), ("gold", 1)),
                    "": (("acme/web", 2), ("acme/tools", 1)),
                },
            ),
        ),
        matrix=Matrix((), ()),
    )
    assert view.matrix == matrix(FLEET)


def lines(html: str, start: str, end: str = "</section>") -> list[str]:
    """Return the texts of a part of the page: one for each row, entry, heading or paragraph."""
    part = html.partition(start)[2].partition(end)[0]
    found = re.split(
        r"</(?:tr|li|h1|h2|caption|figcaption|label|p)>|<p(?=[ >])",
        re.sub(r"<option.*?</option>|<title>.*?</title>", "", part),
    )
    told = (unescape(re.sub("<[^>]*>", "", re.sub(r"</t[hd]>|</time>|</p>|<summary>", " ", each))) for each in found)
    texts = (re.sub(r'^ ?(class="[a-z]+")?( data-[a-z]+="[0-9]+")?>', "", " ".join(each.split())) for each in told)
    return [text.strip() for text in texts if text.strip()]


def test_the_page_says_it_without_a_script() -> None:
    html = page(FLEET, known(*PAST, FLEET), LINKED)
    assert "<title>40\u00a0% of 5 projects in order</title>" in html
    assert lines(html, "</p>", "</header>") == [
        "40 % of 5 projects in order",
        "4 changes and 1 problem in 4 of 6 targets",
        "Up from 33.3 % on 2026-12-01. 1 new and 0 gone since the run before, 2027-01-08 12:00 UTC.",
        "100 % 20 % 2026-12-01 in order 2027-01-10",
        "What to do",
        "Fix 1 problem in 1 group. Most frequent fix: ask an owner.",
        "Decide on 4 changes in 3 projects: apply makes them, accept changes the manifests instead. reconciler apply Copy",
        "Remove 1 exception in 1 project: the first ended on 2027-01-07.",
        "Renew or resolve 2 exceptions in 2 projects: the first ends on 2027-01-19.",
    ]
    assert re.findall(r'<polyline points="(.*?) "/>', html) == ["0.00,83.38 95.00,93.75 100.00,75.00"]
    assert lines(html, 'id="teams-title">') == [
        *("By team", "Teams by"),
        *("By team", "team in order projects changes problems oldest"),
        "web 0 % 0 of 2 3 0 2026-12-01",
        "tools 50 % 1 of 2 1 0 2026-12-01",
        "no team 100 % 1 of 1 0 1 2027-01-10",
        *("By tier", "tier in order projects changes problems oldest"),
        "gold 50 % 1 of 2 1 0 2026-12-01",
        "no tier 33.3 % 1 of 3 3 1 2026-12-01",
        *("By group", "group in order projects changes problems oldest"),
        "acme/web 33.3 % 1 of 3 3 0 2026-12-01",
        "acme/tools 50 % 1 of 2 1 0 2026-12-01",
        "acme \u2013 \u2013 0 1 2027-01-10",
    ]
    assert lines(html, 'id="ages-title">') == [
        "Age of drift",
        "section new \u2264 1 day \u2264 7 days \u2264 30 days older oldest",
        "milestones 0 0 1 0 2 2026-12-01",
        "tokens 1 0 0 0 1 2026-12-01",
    ]
    assert lines(html, 'id="exceptions-title">') == [
        "Exceptions that end within 30 days",
        "2027-01-07 ended 3 days ago",
        "tokens",
        "project acme/tools/quiet",
        "2027-01-19 in 9 days",
        'milestones "1.0": due_date',
        "re-planned, OPS-12",
        "project acme/web/api, project acme/web/lib",
    ]
    assert lines(html, 'id="applies-title">') == [
        "Last applies",
        "2026-12-01 12:00 UTC 9f9f9f9f",
        "Mona: 3 created",
        "manifests 1a1a1a1, canary tier=gold, exit code 3, job",
        "2026-11-30 12:00 UTC 8e8e8e8e",
        "unknown: nothing changed",
        "reverts 7d7d7d7",
    ]
    assert lines(html, 'id="coverage-title">') == [
        "Coverage",
        "How many targets declare a section, of those that can have it.",
        "milestones",
        "5 of 5",
        "tokens",
        "2 of 5",
        "missing by team: tools 1, web 1 and no team 1",
        "missing by tier: no tier 2 and gold 1",
        "missing by group: acme/web 2 and acme/tools 1",
    ]
    assert lines(html, 'id="list"', "</ul>") == [
        "2026-12-01",
        'create milestone "1.0"',
        "due_date: 2026-12-31",
        "project acme/tools/cli, project acme/web/api",
        "2026-12-01",
        'delete token "1.0"',
        "state: closed",
        "project acme/web/api",
        "2027-01-08",
        'create milestone "1.0"',
        "due_date: 2026-12-31",
        "project acme/web/lib",
        "2027-01-10",
        'problem token "1.0"',
        "403 Forbidden; ask an owner",
        "group acme",
    ]
    assert lines(html, "Numbers of 4 runs</h2>") == [
        "run in order targets changes problems",
        "2027-01-10 12:00 UTC 40 % of 5 6 4 1",
        "2027-01-08 12:00 UTC 25 % of 4 4 4 0",
        "2026-12-11 12:00 UTC (in part) 0 % of 1 1 3 0",
        "2026-12-01 12:00 UTC 33.3 % of 3 3 3 0",
    ]


def test_every_target_leads_to_its_page_or_else_to_its_manifest() -> None:
    def linked(places: Places, plan: RunDocument = FLEET) -> list[str]:
        html = page(plan, known(plan), Style(links=lambda document: Links(document, places)))
        data = json.loads(re.findall(r'id="data">(.*?)</script>', html)[0])
        written = re.findall(r'<(?:a href="([^"]*)"|bdi)>(?:project|group) ', html)
        return [*dict.fromkeys([*written, *data["pages"], *data["matrix"]["pages"]])]

    web, settings = PLACES.web_url, PLACES.repository_url
    assert linked(PLACES) == [
        f"{web}/acme/tools/quiet",
        *(f"{web}/acme/web/{name}" for name in ("api", "lib")),
        f"{web}/acme/tools/cli",
        f"{web}/groups/acme",
        f"{web}/acme/web/seven",
    ]
    placed = replace(FLEET, targets=tuple(replace(each, origin="sets.yaml:3") for each in FLEET.targets))
    assert linked(replace(PLACES, web_url=""), placed) == [f"{settings}/-/blob/{'ab' * 20}/sets.yaml#L3"]
    assert linked(Places(), placed) == ["", None]
    html = page(FLEET, known(FLEET), LINKED)
    assert re.findall(r'<a href="([^"]*)"', html.partition('id="applies"')[2].partition("</section>")[0]) == [
        f"{settings}/-/commit/{'1a' * 20}",
        "https://git.example.com/job/7",
    ]
    assert f'<a href="{settings}/-/blob/{"ab" * 20}/sets.yaml#L5">milestones' in html
    places = Places(pipeline="https://git.example.com/acme/settings/-/pipelines/9")
    html = page(FLEET, known(FLEET), Style(links=lambda document: Links(document, places)))
    assert '<a href="https://git.example.com/acme/settings/-/pipelines/9">Pipeline</a>' in html


def test_what_was_merged_and_what_was_changed_on_the_service_are_two_things_to_do() -> None:
    (section, *_) = sections_of(API)
    pending, changed = (
        with_sections(API, [replace(section, changes=(with_note(section.changes[0], "source", {"source": source}),))])
        for source in ("pending", "service")
    )
    changed = replace(changed, target=LIB.target)
    html = shown(run(0, pending, changed, CLI, ACME))
    assert lines(html, "What to do</h2>") == [
        "Fix 1 problem in 1 group. Most frequent fix: ask an owner.",
        "Apply 1 change in 1 project: merged and not applied. reconciler apply Copy",
        "Decide on 1 change in 1 project, changed on the service: apply puts it back, accept keeps it. "
        "reconciler accept --diff Copy",
        "Decide on 1 change in 1 project: apply makes it, accept changes the manifests instead. reconciler apply Copy",
    ]


def test_what_has_nothing_to_tell_says_so() -> None:
    calm = planned(Level.PROJECT, "acme/api", {"milestones": "-"})
    html = shown(run(2, calm), run(0, calm), run(1, calm))
    for text in (
        "<h1><strong>100\u00a0%</strong> of 1 project in order</h1>",
        'data-tone="calm"',
        "<p>Nothing: the service is as the manifests declare.</p>",
        "<p>Nothing differs.</p>",
        "<p>None.</p>",
        "<p>This run did not read the log of applies. <code>reconciler log</code> shows it.</p>",
    ):
        assert text in html
    assert lines(html, "</h1>", "</div>") == [
        "As on 2026-12-01. Nothing new and nothing gone since the run before, 2026-12-02 12:00 UTC."
    ]
    assert "<p>No apply is recorded yet.</p>" in shown(replace(run(0, calm), applies=()))
    assert lines(shown(run(0, calm)), "</h1>", "</div>") == ["The trend begins with the next run of the whole fleet."]
    assert "<svg" not in shown(run(0, calm)).partition("<main>")[0]
    assert "<h1>No target</h1>" in shown(run(0))
    assert "of 2 targets in order" in shown(run(0, planned(Level.USER, None, {"milestones": "-"}), ACME))
    assert "of 1 group in order" in shown(run(0, ACME))
    nowhere = shown(run(0, planned(Level.PROJECT, "acme/api", {"milestones": "n"})))
    assert lines(nowhere, 'id="coverage-title">')[2:] == ["milestones", "applicable nowhere"]


def test_the_trend_compares_with_a_week_ago() -> None:
    calm = planned(Level.PROJECT, "acme/web/api", {"milestones": "-"})
    for runs, words in (
        ([run(0, API), run(1 / 24, calm)], "Up from 0\u00a0% at 2026-12-01 12:00 UTC."),
        ([run(0, calm), run(1, calm), run(8, API)], "Down from 100\u00a0% on 2026-12-02."),
        ([run(0, calm), run(6, API)], "Down from 100\u00a0% on 2026-12-01."),
    ):
        html = shown(runs[-1], *runs[:-1])
        assert f'<p class="advice">{words}' in html.replace('<span class="date">', "").replace("</span>", "")


def test_a_part_of_the_fleet_is_called_a_part() -> None:
    html = shown(run(1, LIB, narrowed=True), run(0, API, CLI, LIB))
    assert lines(html, "</p>", "<section")[:2] == [
        "0 % of 1 project in order",
        "1 change in 1 of 1 target; 3 differences not looked at",
    ]
    note = (
        "the numbers, the matrix and the coverage are about these 1 target. Differences elsewhere are listed as a run"
    )
    assert f"This run looked at some targets or sections: {note} last saw them." in html
    assert lines(html, 'id="list"', "</ul>") == [
        *("2026-12-01", "unseen 2 differences", "last seen 2026-12-01 12:00 UTC"),
        "project acme/tools/cli, project acme/web/api",
        *("2026-12-01", 'create milestone "1.0"', "due_date: 2026-12-31", "project acme/web/lib"),
        *("2026-12-01", "unseen 1 difference", "last seen 2026-12-01 12:00 UTC", "project acme/web/api"),
    ]
    sharded = lines(shown(replace(run(0, API), shard=Shard(2, 3))), '<ul class="notes">', "</ul>")
    assert sharded[0].startswith("This run looked at shard 2/3: the numbers")
    same = shown(run(0, API, narrowed=True), run(0, API, LIB))
    assert "unseen 1 difference" in lines(same, 'id="list"', "</ul>")
    for minutes, age in ((5, "less than an hour old"), (60, "1 hour old"), (300, "5 hours old")):
        later = replace(run(0, API), created_at=NOON + timedelta(minutes=minutes))
        assert f'"{age}",1,' in shown(later, run(0, API))


def test_long_lists_show_the_worst_first_and_count_the_rest() -> None:
    soon = TODAY + DAY
    targets = [
        excepted(
            planned(Level.PROJECT, f"group-{number:02}/p{each}", {"milestones": "u" if number == 20 else "-"}),
            DeclaredException("milestones", soon, f"OPS-{number}" if number < 7 else "all"),
        )
        for number in range(28)
        for each in range(1 + number % 2)
    ]
    html = shown(run(40, *targets))
    teams = lines(html, 'id="teams-title">')
    assert (len(teams), teams[4], teams[-1]) == (
        30,
        "group-20 0 % 0 of 1 1 0 2027-01-10",
        "3 more 100 % 5 of 5 0 0 \u2013",
    )
    exceptions = lines(html, 'id="exceptions-title">')
    assert exceptions[-9:] == [
        *("2 more", "2027-01-11 in 1 day", "milestones", "OPS-6", "project group-06/p0"),
        *("2027-01-11 in 1 day", "milestones", "all"),
        "project group-07/p0, project group-07/p1, project group-08/p0 and 29 more",
    ]


def test_the_page_says_who_changed_something_and_what_was_put_back() -> None:
    mona = ChangedBy("mona", datetime(2026, 11, 22, 14, 2, tzinfo=UTC))
    ada = ChangedBy("<b>Ada", datetime(2026, 11, 23, 8, 30, tzinfo=UTC))
    changes, tokens = sections_of(API)
    change = with_note(changes.changes[0], "changed_by", mona.data)
    scope = Address(API.target, "job_token_scope", "job_token_scope", "job token scope")
    entry = Address(API.target, "job_token_scope", "projects", "allowlisted project", "acme/lib")

    def put_back(*, before: bool, by: ChangedBy, restored_by: ChangedBy) -> Mapping[str, Any]:
        people = {"changed_by": by.data, "restored_by": restored_by.data}
        return {"before": before, "meanwhile": not before, **people}

    restored = (
        Finding(scope, "restored", "", field="enabled", data=put_back(before=True, by=mona, restored_by=ada)),
        Finding(entry, "restored", "", data=put_back(before=False, by=mona, restored_by=mona)),
    )
    back = SectionPlan("job_token_scope", 1, findings=restored)
    api = with_sections(API, (replace(changes, changes=(change,)), tokens, back))
    saved = replace(run(0, api, CLI), restored_since=NOON - 7 * DAY)
    html = page(saved, known(saved), LINKED)
    details = [(row[7], row[8]) for row in json.loads(re.findall(r'id="data">(.*?)</script>', html)[0])["rows"]]
    assert details == [
        ('milestone "1.0"', "due_date: 2026-12-31, by mona, 2026-11-22 14:02 UTC (1 of 2)"),
        ('token "1.0"', "state: closed"),
    ]
    assert lines(html, 'aria-labelledby="restored-title">') == [
        "Changed and put back since 2026-11-24 12:00 UTC: 2",
        "back since 2026-11-23",
        "job token scope",
        "enabled: true -> false by mona, 2026-11-22 14:02 UTC; back by <b>Ada, 2026-11-23 08:30 UTC",
        "project acme/web/api",
        "back since 2026-11-22",
        'allowlisted project "acme/lib"',
        "added by mona, 2026-11-22 14:02 UTC; removed again by mona, 2026-11-22 14:02 UTC",
        "project acme/web/api",
    ]
    assert "put back" not in shown(run(0, API)).partition("<main>")[2].partition("<script")[0]


def test_no_string_becomes_markup() -> None:
    saved = hostile(EVIL)
    evil = DeclaredException(EVIL, TODAY, EVIL, EVIL, (EVIL,), EVIL)
    apply = PastApply(EVIL, NOON, EVIL, {EVIL: 1}, EVIL, 1, EVIL, EVIL, EVIL)
    targets = tuple(replace(each, labels={EVIL: EVIL}, exceptions=(evil,)) for each in saved.targets)
    html = render_plan(replace(saved, targets=targets, applies=(apply,), created_at=NOON + 40 * DAY), "fleet", LINKED)
    assert "<img" not in html
    assert "javascript:y" not in "".join(re.findall('href="[^"]*"', html))
    assert json.loads(re.findall(r'id="data">(.*?)</script>', html)[0])["rows"]


def opened(chromium: Browser, folder: Path, html: str, fragment: str = "", **view: Any) -> None:
    file = folder / "fleet.html"
    file.write_text(html, encoding="utf-8")
    chromium.open(file, fragment=fragment, **view)


def rows(chromium: Browser) -> list[list[str]]:
    found: list[list[str]] = chromium.run(
        "return [...document.querySelectorAll(arguments[0])].map((row) => [row.querySelector('.name').textContent, "
        "row.querySelector('.where').firstChild.textContent])",
        LIST,
    )
    return found


EVERYTHING = [
    ['milestone "1.0"', "2 projects"],
    ['token "1.0"', "project acme/web/api"],
    ['milestone "1.0"', "project acme/web/lib"],
    ['token "1.0"', "group acme"],
]
"""What the list shows of the fleet."""


def test_teams_sections_ages_and_the_matrix_filter_the_differences(chromium: Browser, tmp_path: Path) -> None:
    html = page(FLEET, known(*PAST, FLEET), LINKED)
    opened(chromium, tmp_path, html)
    assert chromium.run("return document.querySelector('#list a').href") == "https://git.example.com/acme/web/api"
    assert rows(chromium) == EVERYTHING
    assert chromium.texts("#shown") == ["5 differences"]
    assert chromium.texts("#list .age") == ["40 days old", "40 days old", "2 days old", "new"]
    seen = "return [...document.querySelectorAll(arguments[0])].filter((each) => each.checkVisibility()).map((each) => each.textContent)"
    assert chromium.run(seen, ".teams th[scope=row]") == ["web", "tools", "no team"]
    assert chromium.run(seen, ".lacking") == ["missing by team: tools 1, web 1 and no team 1"]

    def click(selector: str, number: int) -> list[list[str]]:
        chromium.run("document.querySelectorAll(arguments[0])[arguments[1]].click()", selector, number)
        return rows(chromium)

    assert click("th[data-team] button", 0) == [['milestone "1.0"', "project acme/web/api"], *EVERYTHING[1:3]]
    assert chromium.texts("#shown") == ["3 of 5 differences"]
    chromium.wait_for("return location.hash === '#team=web'")
    assert click("th[data-section] button", 1) == [EVERYTHING[1]]
    assert click("th[data-team] button", 0) == [EVERYTHING[1], EVERYTHING[3]]
    assert click(".matrix-chip", 0) == [EVERYTHING[1]]
    assert click(".matrix-chip", 1) == [EVERYTHING[3]]
    chromium.wait_for("return location.hash === '#section=tokens&state=problem'")
    assert click("#all", 0) == EVERYTHING
    chromium.wait_for("return location.hash === ''")
    assert not chromium.run("return document.getElementById('all').checkVisibility()")
    Select(chromium.driver.find_element(By.ID, "age")).select_by_visible_text("older")
    assert rows(chromium) == EVERYTHING[:2]
    Select(chromium.driver.find_element(By.ID, "age")).select_by_visible_text("any")
    Select(chromium.driver.find_element(By.ID, "section")).select_by_visible_text("milestones")
    assert rows(chromium) == [EVERYTHING[0], EVERYTHING[2]]
    Select(chromium.driver.find_element(By.ID, "by")).select_by_visible_text("group")
    assert chromium.run(seen, ".teams th[scope=row]") == ["acme/web", "acme/tools", "acme"]
    Select(chromium.driver.find_element(By.ID, "team")).select_by_visible_text("acme/tools")
    assert rows(chromium) == [['milestone "1.0"', "project acme/tools/cli"]]
    chromium.wait_for("return location.hash === '#by=group&team=acme%2Ftools&section=milestones'")
    assert chromium.complaints() == []


def test_a_link_leads_to_what_it_names(chromium: Browser, tmp_path: Path) -> None:
    html = page(FLEET, known(*PAST, FLEET), LINKED)
    opened(chromium, tmp_path, html, "group=acme%2Ftools&age=older&q=1.0")
    assert rows(chromium) == [['milestone "1.0"', "project acme/tools/cli"]]
    assert chromium.texts("#shown") == ["1 of 5 differences"]
    assert chromium.texts("[aria-selected=true] bdi") == ["tools"]
    chromium.run("location.hash = 'target=project acme/web/lib&age=never&by=nobody'")
    chromium.wait_for("return document.querySelector('#list').textContent.includes('acme/web/lib')")
    assert rows(chromium) == [EVERYTHING[2]]
    chromium.run("location.hash = 'by=tier&team=gold&section=milestones'")
    chromium.wait_for("return document.querySelector('#list').textContent.includes('acme/tools/cli')")
    assert rows(chromium) == [['milestone "1.0"', "project acme/tools/cli"]]
    assert chromium.run("return document.querySelector('.matrix-link').href") == "https://git.example.com/groups/acme"

    opened(chromium, tmp_path, html)
    lib = f"{LIST}:nth-child(3) .acts button"
    chromium.driver.find_element(By.CSS_SELECTOR, f"{lib}:first-child").click()
    assert chromium.clipboard == "reconciler plan --target acme/web/lib --section milestones"
    chromium.driver.find_element(By.CSS_SELECTOR, "[data-copy]").click()
    assert chromium.clipboard == "reconciler apply"
    chromium.driver.find_element(By.CSS_SELECTOR, f"{lib}:last-child").click()
    opened(chromium, tmp_path, html, chromium.clipboard.partition("#")[2])
    assert "acme/web/lib" in chromium.focused()
    chromium.driver.find_element(By.ID, "text").send_keys("tools")
    chromium.driver.find_element(By.ID, "copy-link").click()
    assert chromium.clipboard == f"{(tmp_path / 'fleet.html').as_uri()}#q=tools"


def test_keys_search_and_go_from_one_difference_to_the_next(chromium: Browser, tmp_path: Path) -> None:
    opened(chromium, tmp_path, page(FLEET, known(*PAST, FLEET), LINKED))
    chromium.press("j", "j", "k")
    assert "2 projects" in chromium.focused()
    chromium.press(Keys.ENTER)
    chromium.wait_for("return document.querySelectorAll('#list details li').length === 2")
    assert chromium.texts("#list details li") == ["project acme/tools/cli", "project acme/web/api"]
    chromium.press(Keys.ESCAPE)
    assert chromium.run("return document.querySelector('#list details').open") is False
    chromium.press("/", "lib")
    assert rows(chromium) == [EVERYTHING[2]]
    chromium.press(Keys.ESCAPE)
    assert rows(chromium) == EVERYTHING
    chromium.press("k")
    assert "2 projects" in chromium.focused()
    chromium.press("?")
    assert chromium.run("return document.getElementById('help').open") is True
    chromium.press(Keys.ESCAPE)
    chromium.run("document.getElementById('keys').checked = false")
    chromium.press("j")
    assert "2 projects" in chromium.focused() or chromium.run("return document.activeElement === document.body")


def test_long_lists_are_shown_in_parts(chromium: Browser, tmp_path: Path) -> None:
    targets = [planned(Level.PROJECT, f"acme/p{number}", {f"section_{number}": "u"}) for number in range(130)]
    opened(chromium, tmp_path, shown(run(0, *targets)))
    assert len(rows(chromium)) == 40
    for _ in range(3):
        chromium.driver.find_element(By.ID, "more").click()
    assert len(rows(chromium)) == 130
    assert not chromium.run("return document.getElementById('more').checkVisibility()")
    opened(chromium, tmp_path, shown(run(0)))
    assert not chromium.run("return document.getElementById('controls').checkVisibility()")


BROKEN = """
const found = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
const range = document.createRange();
while (walker.nextNode()) {
  const { parentElement, textContent } = walker.currentNode;
  if (!parentElement.checkVisibility() || parentElement.closest("script, code, option, .fields, .brief, .aside")) continue;
  for (const word of textContent.matchAll(/[\\p{L}\\p{N}.]+/gu)) {
    range.setStart(walker.currentNode, word.index);
    range.setEnd(walker.currentNode, word.index + word[0].length);
    if (new Set([...range.getClientRects()].map((each) => Math.round(each.top))).size > 1) found.push(word[0]);
  }
}
return found;
"""
"""Returns the words that stand on two lines; values may be longer than a line."""

CUT = """
const isCut = (each) => {
  const { overflowX, overflowY } = getComputedStyle(each);
  return (overflowX !== "visible" && each.scrollWidth > each.clientWidth + 1) || each.getBoundingClientRect().right > innerWidth + 1
    || (["hidden", "clip"].includes(overflowY) && each.scrollHeight > each.clientHeight + 1);
};
return [...document.body.querySelectorAll("*")]
  .filter((each) => each.checkVisibility() && !each.closest(".aside, .skip, svg, caption, thead") && isCut(each))
  .map((each) => `${each.tagName} ${each.className}`);
"""
"""Returns what does not have its whole width, or is cut at its end."""


@pytest.mark.untraced
def test_nothing_is_cut_or_broken_within_a_word(chromium: Browser, tmp_path: Path) -> None:
    """Of all sections, a narrow matrix shows some, and is moved for the others."""
    everything = planned(Level.PROJECT, "acme/web/shop/checkout/gateway", dict.fromkeys(KINDS, "u"))
    for widths, html in (
        ((360, 768, 1024, 1280, 2560), page(fleet(400), history(400), LINKED)),
        ((360, 768, 1024, 1280, 2560), render_plan(fleet(400), "html", LINKED)),
        ((1024, 1280, 2560), shown(run(0, everything))),
    ):
        for width in widths:
            opened(chromium, tmp_path, html, size=(width, 900))
            assert (chromium.run(BROKEN), chromium.run(CUT)) == ([], []), width


@pytest.mark.untraced
def test_a_page_with_everything_is_easy_to_use_for_everybody(chromium: Browser, tmp_path: Path) -> None:
    html = page(FLEET, known(*PAST, FLEET), LINKED)
    for size, look in product((DESKTOP, PHONE), ("light", "dark")):
        opened(chromium, tmp_path, html, size=size, look=look)
        assert chromium.obstacles() == [], (size, look)
    chromium.emulate("print")
    assert chromium.obstacles() == []
