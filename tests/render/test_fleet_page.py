"""The fleet page: what it says without a script, and as a browser shows it."""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from selenium.webdriver.common.by import By
from selenium.webdriver.support.select import Select

from reconciler.documents.history import History, with_run
from reconciler.documents.plan_file import SavedPlan
from reconciler.model.plan import Change, ChangedBy, Create, Delete, Problem, Restored, SectionPlan, TargetPlan, Update
from reconciler.model.targets import Address, Key, Level, Target
from reconciler.planning.selection import Shard
from reconciler.render import Style, render_plan
from reconciler.render.fleet import page
from reconciler.render.links import Links, Places
from tests.building import READ
from tests.render.browser import Browser
from tests.render.hostile import EVIL, hostile
from tests.render.samples import EMPTY, NOON

DAY = timedelta(days=1)
LIST = "#list tr"


def planned(level: Level, ref: Key | None, sections: dict[str, str], path: str | None = None) -> TargetPlan:
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
        problems = [Problem(address, "403 Forbidden", remedy="ask an owner")] if letter == "p" else []
        fit = "it has no repository" if letter == "n" else ""
        found.append(SectionPlan(name, 1, tuple(changes), tuple(problems), not_applicable=fit))
    return TargetPlan(target, tuple(found), path=path)


def run(days: float, *targets: TargetPlan, narrowed: bool = False) -> SavedPlan:
    return replace(EMPTY, created_at=NOON + days * DAY, targets=targets, narrowed=narrowed)


API = planned(Level.PROJECT, "acme/web/api", {"milestones": "c", "tokens": "d"})
LIB = planned(Level.PROJECT, "acme/web/lib", {"milestones": "c"})
CLI = planned(Level.PROJECT, "acme/tools/cli", {"milestones": "c", "tokens": "n"})
ACME = planned(Level.GROUP, "acme", {"tokens": "p"})


def shown(found: SavedPlan, *before: SavedPlan) -> str:
    history: History | None = None
    for each in (*before, found):
        history = with_run(history, each)
    assert history
    return page(found, history)


def texts(html: str, part: str) -> list[list[str]]:
    """Return the texts of the cells of each row of the table in a section."""
    section = html.partition(f'id="{part}-title"')[2].partition("</section>")[0]
    cells = (
        re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)
        for row in re.findall(r"<tr.*?</tr>", section, re.DOTALL)
    )
    return [[" ".join(re.sub("<[^>]+>", "", cell).split()) for cell in row] for row in cells]


def test_a_page_counts_ages_coverage_and_runs() -> None:
    user = planned(Level.USER, None, {"milestones": "-"})
    numbered = planned(Level.PROJECT, 7, {"milestones": "-"}, "acme/web/seven")
    html = shown(run(40, ACME, API, CLI, LIB, numbered, user), run(0, API, CLI), run(38, API, CLI, LIB))
    assert "<h1>4 changes and 1 problem in 4 of 6 targets</h1>" in html
    assert (
        '<p class="advice">The oldest difference is 40 days old: milestone &#34;1.0&#34;, since 2026-12-01. '
        "1 new and 0 gone since the run before, 2027-01-08 12:00 UTC.</p>"
    ) in html
    assert "Up: 3 differences on 2026-12-01, 5 now, in 3 runs." in html
    assert texts(html, "trend") == [
        ["run", "targets", "changes", "problems"],
        ["2027-01-10 12:00 UTC", "6", "4", "1"],
        ["2027-01-08 12:00 UTC", "3", "4", "0"],
        ["2026-12-01 12:00 UTC", "2", "3", "0"],
    ]
    assert re.findall(r'class="changes" x="\d+" y="([\d.]+)" width="8" height="([\d.]+)"', html) == [
        ("40.00", "60.00"),
        ("20.00", "80.00"),
        ("20.00", "80.00"),
    ]
    assert texts(html, "ages") == [
        ["section", "new", "\u2264 1 day", "\u2264 7 days", "\u2264 30 days", "older", "oldest"],
        ["milestones", "0", "0", "1", "0", "2", "2026-12-01"],
        ["tokens", "1", "0", "0", "0", "1", "2026-12-01"],
    ]
    assert texts(html, "coverage") == [
        ["group", "targets", "milestones", "tokens"],
        ["all targets", "6", "5 of 6", "2 of 5"],
        ["acme", "1", "0 of 1", "1 of 1"],
        ["acme/tools", "1", "1 of 1", "&ndash;"],
        ["acme/web", "3", "3 of 3", "1 of 3"],
        ["user", "1", "1 of 1", "0 of 1"],
    ]
    assert texts(html, "drift")[1:] == [
        ["2026-12-01", "create milestone &#34;1.0&#34;", "project acme/web/api and 1 more"],
        ["2026-12-01", "delete token &#34;1.0&#34;", "project acme/web/api"],
        ["2027-01-08", "create milestone &#34;1.0&#34;", "project acme/web/lib"],
        ["2027-01-10", "problem token &#34;1.0&#34;", "group acme"],
    ]


def test_runs_of_one_day_are_told_apart_by_their_time() -> None:
    html = shown(run(1 / 24, API), run(0, API, CLI))
    assert "Down: 3 differences at 2026-12-01 12:00 UTC, 2 now, in 2 runs." in html
    assert texts(html, "ages")[1] == ["milestones", "0", "1", "0", "0", "0", "2026-12-01"]


def test_a_run_lists_what_another_one_of_the_same_second_saw_elsewhere() -> None:
    html = shown(run(0, API, narrowed=True), run(0, API, LIB))
    assert texts(html, "drift")[1:] == [
        ["2026-12-01", "unseen 1 difference", "project acme/web/lib"],
        ["2026-12-01", "create milestone &#34;1.0&#34;", "project acme/web/api"],
        ["2026-12-01", "delete token &#34;1.0&#34;", "project acme/web/api"],
    ]


def test_a_page_of_many_groups_shows_the_largest() -> None:
    targets = [
        planned(Level.PROJECT, f"group-{number:02}/p{each}", {"milestones": "-"})
        for number in range(28)
        for each in range(1 + number % 2)
    ]
    rows = texts(shown(run(0, *targets)), "coverage")
    assert (len(rows), rows[1][:2], rows[-1][:2]) == (28, ["all targets", "42"], ["3 more groups", "3"])


def test_what_has_nothing_to_tell_says_so() -> None:
    calm = planned(Level.PROJECT, "acme/api", {"milestones": "-"})
    html = shown(run(2, calm), run(0, calm), run(1, calm))
    for text in (
        "<h1>1 target in order</h1>",
        'data-tone="calm"',
        "The service is as the manifests declare. Nothing new and nothing gone since the run before, 2026-12-02 12:00 UTC.",
        "Nothing differed in 3 runs, since 2026-12-01.",
        "<p>Nothing differs.</p>",
    ):
        assert text in html
    assert "<svg" not in html
    assert "All differences are new.</p>" in shown(run(0, API))
    assert "<h1>No target</h1>" in shown(run(0))
    assert "Down: 2 differences on" in shown(run(1, calm), run(0, API))
    assert "As before: 2 differences on" in shown(run(1, API), run(0, API))


def test_a_part_of_the_fleet_is_called_a_part() -> None:
    html = shown(run(1, LIB, narrowed=True), run(0, API, CLI, LIB))
    assert "<h1>1 change in 1 of 1 target, 3 differences not looked at</h1>" in html
    assert "This run looked at some targets or sections: the matrix and the coverage show these 1 target." in html
    assert texts(html, "drift")[1:] == [
        ["2026-12-01", "unseen 2 differences", "project acme/tools/cli and 1 more"],
        ["2026-12-01", "unseen 1 difference", "project acme/web/api"],
        ["2026-12-01", "create milestone &#34;1.0&#34;", "project acme/web/lib"],
    ]
    assert "This run looked at shard 2/3: the" in shown(replace(run(0, API), shard=Shard(2, 3)))
    for minutes, age in ((5, "less than an hour old"), (60, "1 hour old"), (300, "5 hours old")):
        later = replace(run(0, API), created_at=NOON + timedelta(minutes=minutes))
        assert f"The oldest difference is {age}: " in shown(later, run(0, API))


def test_the_page_says_who_changed_something_and_what_was_put_back() -> None:
    mona = ChangedBy("mona", datetime(2026, 11, 22, 14, 2, tzinfo=UTC))
    ada = ChangedBy("<b>Ada", datetime(2026, 11, 23, 8, 30, tzinfo=UTC))
    changes, tokens = API.sections
    change = replace(changes.changes[0], changed_by=mona)
    scope = Address(API.target, "job_token_scope", "job_token_scope", "job token scope")
    entry = Address(API.target, "job_token_scope", "projects", "allowlisted project", "acme/lib")
    restored = (
        Restored(scope, "enabled", before=True, meanwhile=False, changed_by=mona, restored_by=ada),
        Restored(entry, None, before=False, meanwhile=True, changed_by=mona, restored_by=mona),
    )
    back = SectionPlan("job_token_scope", 1, restored=restored)
    api = replace(API, sections=(replace(changes, changes=(change,)), tokens, back))
    saved = replace(run(0, api, CLI), restored_since=NOON - 7 * DAY)
    html = shown(saved)
    details = [(row[6], row[7]) for row in json.loads(re.findall(r'id="data">(.*?)</script>', html)[0])["rows"]]
    assert details == [
        ('milestone "1.0"', "due_date: 2026-12-31, by mona, 2026-11-22 14:02 UTC (1 of 2)"),
        ('token "1.0"', "state: closed"),
    ]
    assert '<h2 id="restored-title">Changed and put back since 2026-11-24 12:00 UTC: 2</h2>' in html
    assert texts(html, "restored") == [
        ["back since", "difference", "where"],
        [
            "2026-11-23",
            "job token scope enabled: true -&gt; false by mona, 2026-11-22 14:02 UTC; back by &lt;b&gt;Ada, 2026-11-23 08:30 UTC",
            "project acme/web/api",
        ],
        [
            "2026-11-22",
            "allowlisted project &#34;acme/lib&#34; added by mona, 2026-11-22 14:02 UTC; removed again by mona, 2026-11-22 14:02 UTC",
            "project acme/web/api",
        ],
    ]
    places = Places(web_url="https://git.example.com")
    linked = render_plan(saved, "fleet", Style(links=lambda document: Links(document, places)))
    assert linked.count('<td><a href="https://git.example.com/acme/web/api">project acme/web/api</a></td>') == 2
    assert "put back" not in shown(run(0, API)).partition("<main>")[2].partition("<script")[0]


def test_links_lead_where_ci_says() -> None:
    places = Places(web_url="https://git.example.com", pipeline="https://git.example.com/acme/settings/-/pipelines/9")
    html = render_plan(run(0, ACME, API), "fleet", Style(links=lambda document: Links(document, places)))
    assert '<a href="https://git.example.com/acme/settings/-/pipelines/9">Pipeline</a>' in html
    assert '"pages":["https://git.example.com/acme/web/api","https://git.example.com/groups/acme"]' in html
    assert "<a " not in shown(run(0, API)).partition("<header")[2]


def test_no_string_becomes_markup() -> None:
    html = render_plan(hostile(EVIL), "fleet")
    assert "<img" not in html
    assert json.loads(re.findall(r'id="data">(.*?)</script>', html)[0])["rows"]


def opened(chromium: Browser, folder: Path, html: str, fragment: str = "") -> None:
    file = folder / "fleet.html"
    file.write_text(html, encoding="utf-8")
    chromium.open(file, fragment=fragment)


def rows(chromium: Browser) -> list[list[str]]:
    found: list[list[str]] = chromium.run(
        "return [...document.querySelectorAll(arguments[0])].map((row) => [row.querySelector('.label').textContent, row.lastChild.textContent])",
        LIST,
    )
    return found


def test_the_matrix_and_the_ages_filter_the_differences(chromium: Browser, tmp_path: Path) -> None:
    html = shown(run(40, ACME, API, CLI, LIB), run(0, API, CLI), run(38, API, CLI, LIB))
    html = html.replace('"pages":[null,', '"pages":["https://git.example.com/acme/web/api",')
    opened(chromium, tmp_path, html)
    assert chromium.run("return document.querySelector('#list a').href") == "https://git.example.com/acme/web/api"
    everything = [
        ['milestone "1.0"', "2 projects"],
        ['token "1.0"', "project acme/web/api"],
        ['milestone "1.0"', "project acme/web/lib"],
        ['token "1.0"', "group acme"],
    ]
    assert rows(chromium) == everything
    assert chromium.texts("#shown") == ["5 differences"]
    assert chromium.texts(".age") == ["40 days old", "40 days old", "2 days old", "new"]

    chromium.driver.find_element(By.CSS_SELECTOR, f"{LIST} summary").click()
    chromium.wait_for("return document.querySelectorAll('#list li').length === 2")
    assert chromium.texts("#list li") == ["project acme/web/api", "project acme/tools/cli"]

    def click(selector: str, number: int) -> list[list[str]]:
        chromium.run("document.querySelectorAll(arguments[0])[arguments[1]].click()", selector, number)
        return rows(chromium)

    assert click(".matrix-section", 1) == [everything[1], everything[3]]
    assert (chromium.fragment, chromium.texts("#shown")) == ("section=tokens", ["2 of 5 differences"])
    assert click(".matrix-chip", 0) == [everything[1]]
    assert click(".matrix-chip", 1) == [everything[3]]
    assert chromium.fragment == "section=tokens&state=problem"
    chromium.driver.find_element(By.ID, "all").click()
    assert (rows(chromium), chromium.fragment) == (everything, "")
    assert not chromium.run("return document.getElementById('all').checkVisibility()")
    Select(chromium.driver.find_element(By.ID, "age")).select_by_visible_text("older")
    assert (rows(chromium), chromium.fragment) == (everything[:2], "age=older")
    assert chromium.complaints() == []

    opened(chromium, tmp_path, html, "group=acme%2Ftools&age=older")
    assert rows(chromium) == [['milestone "1.0"', "project acme/tools/cli"]]
    assert chromium.texts("#shown") == ["1 of 5 differences"]
    assert chromium.texts("[aria-selected=true] bdi") == ["tools"]
    chromium.run("location.hash = 'target=project acme/web/lib&age=never'")
    chromium.wait_for("return document.querySelector('#list').textContent.includes('acme/web/lib')")
    assert rows(chromium) == [everything[2]]
    assert chromium.obstacles() == []


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
