"""The HTML file as a browser shows it: cards, filters, links, keys, on a desktop and a phone, large and hostile."""

from dataclasses import replace
from itertools import product
from pathlib import Path
from urllib.parse import quote

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

from reconciler.document.links import Links, Places
from reconciler.document.style import Style
from reconciler.model.plan import Plan
from reconciler.model.targets import Level
from reconciler.reports import render_plan, render_report
from tests.render.browser import DESKTOP, PHONE, Browser
from tests.render.creations import WEB, creations
from tests.render.fleets import fleet, interrupted
from tests.render.hostile import EVIL, hostile
from tests.render.many import carried_out, many
from tests.render.samples import sample, saved_plan
from tests.render.test_html import allowed

CARD = "#list .card"
TITLES = f"{CARD} .title"

EACH = Style(group_by="target")
"""Each change is a card of its own."""


def written(folder: Path, page: str) -> Path:
    file = folder / "report.html"
    file.write_text(page, encoding="utf-8")
    return file


def click(window: Browser, selector: str) -> None:
    window.driver.find_element(By.CSS_SELECTOR, selector).click()


def typed(window: Browser, text: str) -> str:
    """Type into the search, and return how much is shown then."""
    field = window.driver.find_element(By.ID, "text")
    field.clear()
    field.send_keys(text)
    return window.texts("#shown")[0]


def test_a_page_shows_its_cards_and_complains_of_nothing(chromium: Browser, tmp_path: Path) -> None:
    chromium.open(written(tmp_path, render_plan(sample(), "html")))
    assert chromium.texts("h1, #list h2, #list h3 button") == [
        "Deletes 1 object in 1 project; 1 problem",
        "Deletions 1 project",
        '\u2212Delete trigger token "legacy-integration"project acme/payments/api',
        "Problems 1 project",
        "!approval settings.retain_approvals_on_push: locked by group acme; unlock it there or leave the field out"
        "project acme/payments/api",
        "Creations 1 project",
        '+Create milestone "2026.12"project acme/payments/api',
        "Updates 2 changes in 1 project",
        "~Update approval settingsproject acme/payments/api",
        '~Update milestone "2026.11"project acme/payments/api',
        "Unmanaged 3 objects in 2 projects",
        "?3 unmanaged milestones3 objects in 2 projects",
    ]
    assert [each.strip() for each in chromium.texts(f"{CARD} .brief")] == [
        "due_date: 2026-12-31",
        "allow_author_approval: true → false",
        "name: Nov 2026 → 2026.11 state: active → closed",
    ]
    assert chromium.texts("#shown") == ["6 cards shown"]
    assert chromium.complaints() == []
    assert chromium.loaded() == []


def test_a_card_opens_into_its_values_and_targets(chromium: Browser, tmp_path: Path) -> None:
    chromium.open(written(tmp_path, render_plan(many(20), "html")))
    assert chromium.texts(f"{CARD} .inside") == [""] * 6
    for number in (1, 3, 4):
        chromium.run(f"document.querySelectorAll('{CARD} h3 button')[{number - 1}].click()")
    assert chromium.texts("table.fields:first-child thead th") == [
        *("Field", "Before", "Field", "Before", "After", "Field", "Before", "After")
    ]
    milestone = "[data-kind=update] + .card"
    assert chromium.texts(f"{milestone} table.fields td") == [
        "2026-02-27",
        "2026-02-28",
        "Release 2.\n- fast\n- small\n",
        "Release 2.\n- fast\n- tiny\n",
    ]
    marked = [chromium.texts(f"{milestone} table.fields {tag}") for tag in ("del", "ins")]
    assert marked == [["27", "small"], ["28", "tiny"]]
    assert chromium.texts(f"{milestone} .targets li") == [
        "project acme/team-0/service-0",
        "project globex/team-1/service-1",
        "project initech/team-2/service-2",
        "project acme/team-3/service-3",
    ]
    chromium.run(f"document.querySelector('{milestone} h3 button').click()")
    assert chromium.run(f"return document.querySelector('{milestone} .inside').hidden") is True


def test_a_long_list_of_targets_can_be_scrolled_by_keyboard(chromium: Browser, tmp_path: Path) -> None:
    chromium.open(written(tmp_path, render_plan(many(120), "html")))
    chromium.run(OPEN_ALL)
    assert chromium.run("const list = document.querySelector('.targets'); return list.scrollHeight > list.clientHeight")
    assert chromium.obstacles() == []


def test_a_prune_of_many_projects_opens_into_names_and_targets(chromium: Browser, tmp_path: Path) -> None:
    plan = saved_plan(Plan(tuple(allowed(f"acme/p{n}", "acme/old", f"acme/own-{n}", found=2) for n in range(400))))
    chromium.open(written(tmp_path, render_plan(plan, "html")))
    assert chromium.texts(f"{TITLES}, {CARD} .count, {CARD} .places") == [
        "prune at sets.yaml:12 empties job_token_scope of 400 projects: 800 allowed projects",
        "800 changes in 400 projects",
        'allowed project "acme/old", allowed project "acme/own-0", allowed project "acme/own-1" and 398 more',
        "acme/p0, acme/p1, acme/p2 …",
    ]
    click(chromium, f"{CARD} h3 button")
    assert chromium.texts(".groups summary")[:2] == [
        'allowed project "acme/old" 400 projects',
        'allowed project "acme/own-0" acme/p0',
    ]
    assert chromium.texts(".inside > .more") == ["Show 351 of 351 more"]
    click(chromium, ".inside > .more")
    assert chromium.focused() == 'allowed project "acme/own-49" acme/p49'
    chromium.run("document.querySelector('.groups summary').click()")
    chromium.wait_for("return document.querySelectorAll('.groups .targets li').length === 50")
    assert chromium.texts(".groups .targets li")[0] == "project acme/p0"
    assert [chip.split() for chip in chromium.texts("#matrix .matrix-chip:not([hidden])")] == [["deletions", "400"]]
    assert typed(chromium, "own-7") == "1 card shown"
    assert chromium.texts(f"{CARD} h3 .count") == ["11 projects of 800 changes in 400 projects"]
    assert chromium.obstacles() == []


@pytest.mark.parametrize(
    ("before", "after", "gone", "come"),
    [
        ("a b c d", "a x c d", ["b"], ["x"]),
        ("a b c d e", "a x c y e", ["b", "d"], ["x", "y"]),
        ("same", "same and more", [], [" and more"]),
        ("x x x", "x", [" x x"], []),
        ("one\ntwo", "one\n2", ["two"], ["2"]),
        ("größer", "grosser", ["größer"], ["grosser"]),
        ("a 🎉 b", "a 🎈 b", ["🎉"], ["🎈"]),
        ("a " * 400 + "z", "b " * 400 + "y", [("a " * 400 + "z")], [("b " * 400 + "y")]),
    ],
)
def test_words_are_compared(
    chromium: Browser, tmp_path: Path, before: str, after: str, gone: list[str], come: list[str]
) -> None:
    page = render_plan(sample(), "html").replace('"true","false"', f'"{before}","{after}"'.replace("\n", "\\n"))
    chromium.open(written(tmp_path, page))
    click(chromium, "[data-kind=update] h3 button")
    assert chromium.texts(".fields td") == [before, after]
    assert (chromium.texts(".fields del"), chromium.texts(".fields ins")) == (gone, come)


def test_a_search_finds_what_has_all_words_in_the_card_or_in_its_targets(chromium: Browser, tmp_path: Path) -> None:
    chromium.open(written(tmp_path, render_plan(many(1000), "html")))
    assert typed(chromium, "INITECH 2026-03-27 service-11") == "1 of 6 cards shown"
    assert chromium.texts(f"{CARD} .count") == ["5 projects of 200 projects"]
    click(chromium, f"{CARD} h3 button")
    assert chromium.texts(f"{CARD} .targets li") == [
        f"project initech/team-{number % 17}/service-{number}" for number in (11, 110, 113, 116, 119)
    ]
    assert typed(chromium, "nowhere") == "No card matches the filters. There are 6 cards without the filters."
    chromium.press(Keys.ESCAPE)
    assert chromium.texts("#shown") == ["6 cards shown"]


def test_filters_come_from_numbers_sections_and_the_address_and_can_be_removed(
    chromium: Browser, tmp_path: Path
) -> None:
    file = written(tmp_path, render_report(interrupted(10), "html"))
    chromium.open(file)
    total = len(chromium.texts(CARD))
    click(chromium, ".tile[data-kind=skipped]")
    assert len(chromium.texts(CARD)) == 1
    assert chromium.texts(".tile[aria-pressed=true] .word") == ["» Skipped"]
    Select(chromium.driver.find_element(By.ID, "section")).select_by_visible_text("milestones")
    assert " of " in chromium.texts(f"{CARD} .count")[0]
    assert chromium.texts("#chosen button") == ["Skipped \u00d7", "section milestones \u00d7"]
    chromium.wait_for("return location.hash === '#kind=skipped&section=milestones'")
    for _ in range(2):
        click(chromium, "#chosen button")
    assert chromium.texts("#shown") == [f"{total} cards shown"]
    click(chromium, "th[data-section=milestones] button")
    assert chromium.texts("#chosen button") == ["section milestones \u00d7"]
    assert chromium.run("return document.activeElement.id") == "decisions"
    for fragment, found in {
        "group=acme/web&kind=skipped": "acme/web/",
        "target=project%20acme/payments/api": "acme/payments/api",
        "kind=none&state=problem&q=unlock": "acme/web",
    }.items():
        chromium.open(file, fragment=fragment)
        for button in chromium.driver.find_elements(By.CSS_SELECTOR, f"{CARD} h3 button"):
            button.click()
        assert all(found in each for each in chromium.texts(f"{CARD} .target")), fragment
        assert 0 < len(chromium.texts(CARD)) < total, fragment
    chromium.open(file, fragment="state=in%20order&group=nowhere")
    assert chromium.texts("#shown") == [f"No card matches the filters. There are {total} cards without the filters."]


def test_links_and_commands_are_copied(chromium: Browser, tmp_path: Path) -> None:
    file = written(tmp_path, render_plan(replace(many(20), narrowed=False), "html"))
    chromium.open(file)
    assert chromium.copied("#copy-command") == "reconciler apply"
    click(chromium, "[data-kind=update] h3 button")
    assert chromium.copied("[data-kind=update] .actions button:last-of-type") == (
        "reconciler apply --target acme/team-0/service-0 --target globex/team-1/service-1 "
        "--target initech/team-2/service-2 --target acme/team-3/service-3 --section approval_settings"
    )
    assert chromium.texts(".actions code") == [chromium.clipboard]
    chromium.driver.find_element(By.ID, "text").send_keys("globex")
    assert chromium.copied("#copy-command") == (
        "reconciler apply --target globex/team-1/service-1 --section approval_settings --section milestones "
        "--section trigger_tokens"
    )
    click(chromium, "#copy-link")
    assert chromium.texts("#said") == ["Copied"]
    link = chromium.clipboard
    assert link.startswith(f"{file.as_uri()}#q=globex&card=")
    chromium.open(file, fragment=link.partition("#")[2])
    assert chromium.texts(f"{CARD} .inside .target") == ["project globex/team-1/service-1"]
    assert chromium.focused() == "~Update approval settings1 project of 4 projects"
    chromium.open(written(tmp_path, render_plan(replace(many(100), narrowed=False), "html")), fragment="q=legacy")
    click(chromium, "#copy-command")
    assert chromium.clipboard == (
        "reconciler apply --target 'acme/**' --target 'globex/**' --target 'initech/**' --section trigger_tokens"
    )
    file = written(tmp_path, render_report(carried_out(many(100), 4), "html"))
    for fragment, command in {
        "": "apply --retry-failed report.json",
        "group=acme": "apply --retry-failed report.json --target 'acme/**' --section approval_settings "
        "--section milestones --section trigger_tokens",
        "group=acme/team-0&kind=created": "plan --target acme/team-0/service-0 --section milestones",
    }.items():
        chromium.open(file, fragment=fragment)
        click(chromium, "#copy-command")
        assert chromium.clipboard == f"reconciler {command}"
    chromium.open(written(tmp_path, render_plan(replace(many(5), narrowed=True), "html")))
    click(chromium, "#copy-command")
    assert chromium.clipboard.startswith("reconciler apply --target acme/team-0/service-0 --section ")
    back = replace(many(100), narrowed=False, reverts="my report.json")
    for page, fragment, command in [
        (render_plan(back, "html"), "", "--yes"),
        (
            render_plan(back, "html"),
            "group=acme/team-0&kind=update",
            "--yes --target acme/team-0/service-0 --section approval_settings --section milestones",
        ),
        (render_report(carried_out(back), "html"), "", "--yes"),
    ]:
        chromium.open(written(tmp_path, page), fragment=fragment)
        click(chromium, "#copy-command")
        assert chromium.clipboard == f"reconciler revert 'my report.json' {command}"
    chromium.open(written(tmp_path, render_plan(many(5), "html")))
    click(chromium, f"{CARD} h3 button")
    assert chromium.texts(".actions button") == ["Copy link"]
    assert chromium.run("return document.getElementById('copy-command').hidden") is True


def test_everything_can_be_done_by_keyboard(chromium: Browser, tmp_path: Path) -> None:
    chromium.open(written(tmp_path, render_plan(many(40 * 5), "html", EACH)))
    chromium.press(Keys.TAB)
    assert chromium.focused() == "Skip to the decisions"
    chromium.press(*"jjk")
    assert chromium.focused() == '\u2212Delete trigger token "legacy-integration"project acme/team-0/service-0'
    chromium.press(Keys.ENTER)
    assert chromium.texts(f"{CARD} .inside .target") == ["project acme/team-0/service-0"]
    chromium.press(Keys.ESCAPE)
    assert chromium.run("return document.activeElement.getAttribute('aria-expanded')") == "false"
    chromium.press("?")
    assert chromium.run("return document.getElementById('help').open") is True
    chromium.press(Keys.ESCAPE, *"j" * 41)
    assert chromium.focused() == '+Create milestone "2026.01"project globex/team-1/service-1'
    chromium.press("/", *"service-39")
    assert chromium.run("return document.activeElement.id") == "text"
    assert chromium.texts("#shown") == ["6 of 201 cards shown"]
    chromium.press(Keys.ESCAPE, "?", Keys.SPACE, Keys.ESCAPE)
    chromium.press("/")
    assert chromium.run("return document.activeElement.id") != "text"


def test_rows_link_to_the_service_and_to_the_manifests(chromium: Browser, tmp_path: Path) -> None:
    places = Places(
        web_url="https://git.example.com",
        repository_url="https://git.example.com/acme/it",
        commit="a" * 40,
        root="/",
        folder="/",
        pages={"approval_settings": {Level.PROJECT: "{target}/-/settings"}},
    )
    style = Style(links=lambda document: Links(document, places))
    file = written(tmp_path, render_plan(fleet(10), "html", style))
    chromium.open(file, PHONE, fragment="q=author&section=approval_settings")
    click(chromium, f"{CARD} h3 button")
    click(chromium, ".groups summary")
    chromium.wait_for("return document.querySelector('.targets .target') !== null")
    found = chromium.run(
        "return [...document.querySelectorAll('.inside a')].map((each) => [each.textContent, each.href])"
    )
    path = chromium.texts(".targets .target")[0].removeprefix("project ")
    assert found[:2] == [
        [f"project {path}", f"https://git.example.com/{path}"],
        ["Open page", f"https://git.example.com/{path}/-/settings"],
    ]
    assert found[-1][1].startswith(f"https://git.example.com/acme/it/-/blob/{'a' * 40}/manifests/")
    chromium.wait_for("return location.hash.includes('card=')")
    before = chromium.fragment
    click(chromium, "#see-fleet")
    assert chromium.run("return document.getElementById('fleet').getBoundingClientRect().top < innerHeight")
    chromium.run("document.querySelector('.skip').click()")
    assert chromium.fragment == before
    assert chromium.run("return document.activeElement.id") == "decisions"


def test_the_matrix_and_the_filters_are_one(chromium: Browser, tmp_path: Path) -> None:
    chromium.open(written(tmp_path, render_plan(fleet(10), "html")))
    chromium.run(
        "[...document.querySelectorAll('#matrix .matrix-chip')].find((each) => each.textContent.includes('problem')).click()"
    )
    assert chromium.texts("#chosen button") == ["state problem \u00d7"]
    assert set(chromium.texts("#list h2")) == {"Problems 1 project"}
    click(chromium, "#chosen button")
    assert chromium.texts("#matrix [aria-pressed=true]") == []


def test_what_is_about_a_target_stands_with_each_of_its_sections(chromium: Browser, tmp_path: Path) -> None:
    file = written(tmp_path, render_plan(creations(), "html"))
    chromium.open(file, fragment=f"target={quote(str(WEB))}&section=milestones")
    assert chromium.texts(f"{CARD} h3 .title") == ['Create milestone "2027.1"', f"Create {WEB}"]
    chromium.open(file, fragment="section=approval_settings")
    assert chromium.texts(f"{CARD} h3 .title") == ["Update approval settings"]


def test_a_screen_reader_hears_headings_counts_and_states(chromium: Browser, tmp_path: Path) -> None:
    chromium.open(written(tmp_path, render_report(carried_out(many(10)), "html")))
    heard = chromium.heard()
    assert {name for role, name in heard if role == "heading"} == {
        "9 of 10 changes are done",
        "Failed 1 project",
        "Update approval settings: PUT projects/7/milestones/3: 500 Internal Server Error "
        "project acme/team-0/service-0",
        "Deleted 2 projects",
        'Deleted trigger token "legacy-integration" 2 projects',
        "Created 2 projects",
        'Created milestone "2026.01" 2 projects',
        "Updated 5 changes in 2 projects",
        'Updated milestone "2026.02" 2 projects',
        'Updated milestone "2026.03" 2 projects',
        "Updated approval settings project globex/team-1/service-1",
        *("Unmanaged 2 projects", "2 unmanaged milestones 2 projects"),
        *("Fleet", "By section", "About"),
    }
    roles = [role for role, _ in heard]
    assert {"banner", "main", "search", "status", "columnheader", "rowheader", "region"} <= set(roles)


@pytest.mark.parametrize("look", ["light", "dark"])
def test_text_is_easy_to_tell_from_its_background(chromium: Browser, tmp_path: Path, look: str) -> None:
    chromium.open(written(tmp_path, render_report(carried_out(many(10, 1)), "html")), look=look)
    assert (luminance(chromium, "--paper") < 0.1) is (look == "dark")
    kinds = ("create", "update", "delete", "problems", "unfinished")
    for text, ground in [
        *product(("--ink", "--faint", *(f"--{kind}" for kind in kinds)), ("--paper", "--canvas")),
        *((f"--{kind}", f"--{kind}-ground") for kind in kinds),
        *product(("--ink",), (*(f"--{kind}-ground" for kind in kinds), "--gone", "--come")),
        ("--faint", "--panel"),
    ]:
        lighter, darker = sorted((luminance(chromium, text), luminance(chromium, ground)), reverse=True)
        assert (lighter + 0.05) / (darker + 0.05) >= 4.5, (text, ground)


def luminance(window: Browser, variable: str) -> float:
    """Return how bright a colour is, as WCAG defines it."""
    script = "return getComputedStyle(document.documentElement).getPropertyValue(arguments[0]).trim()"
    digits = str(window.run(script, variable)).removeprefix("#")
    digits = digits if len(digits) == 6 else "".join(each * 2 for each in digits)
    parts = [int(digits[each : each + 2], 16) / 255 for each in (0, 2, 4)]
    red, green, blue = (each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


OPEN_ALL = f"for (const each of document.querySelectorAll('{CARD} h3 button')) each.click()"


@pytest.mark.parametrize("size", [PHONE, (320, 640), DESKTOP])
def test_nothing_is_wider_than_the_window(chromium: Browser, tmp_path: Path, size: tuple[int, int]) -> None:
    chromium.open(written(tmp_path, render_report(carried_out(hostile("x" * 300), 2), "html")), size)
    chromium.run(OPEN_ALL)
    assert chromium.run("return document.documentElement.scrollWidth") == size[0]


def test_no_string_becomes_markup_or_script(chromium: Browser, tmp_path: Path) -> None:
    saved = hostile(EVIL + "</script><script>document.title = 'owned'</script><img src=x onerror=\"document.title=1\">")
    chromium.open(written(tmp_path, render_plan(replace(saved, narrowed=True), "html")))
    chromium.run(OPEN_ALL)
    click(chromium, ".actions button:last-of-type")
    assert chromium.clipboard.startswith("reconciler apply --target '`</code>")
    assert chromium.run("return document.title").startswith("Plan: ")
    assert chromium.run("return document.images.length + document.links.length") == 1
    assert chromium.complaints() == []


def test_the_policy_forbids_other_scripts_and_every_connection(chromium: Browser, tmp_path: Path) -> None:
    spoilt = render_plan(sample(), "html").replace("</body>", "<script>document.title = 'owned'</script></body>")
    chromium.open(written(tmp_path, spoilt))
    chromium.run("return fetch('https://example.com').catch(() => null)")
    assert chromium.run("return document.title").startswith("Plan: ")
    complaints = chromium.complaints()
    assert any("inline script" in each for each in complaints), complaints
    assert any("example.com" in each and "Content Security Policy" in each for each in complaints), complaints


def test_a_large_page_builds_only_what_is_looked_at(chromium: Browser, tmp_path: Path) -> None:
    chromium.open(written(tmp_path, render_plan(many(1000), "html")))
    click(chromium, f"{CARD} h3 button")
    assert len(chromium.texts(".targets li")) == 50
    click(chromium, ".inside .more")
    assert len(chromium.texts(".targets li")) == 200
    assert chromium.run("return document.activeElement === document.querySelectorAll('.targets li')[50]")
    file = written(tmp_path, render_plan(many(1000), "html", EACH))
    chromium.open(file)
    assert len(chromium.texts(CARD)) == 30
    assert chromium.texts("#more") == ["Show more: 971 cards left"]
    chromium.run("document.getElementById('more').scrollIntoView()")
    chromium.wait_for(f"return document.querySelectorAll('{CARD}').length > 30")
    last = chromium.run("return JSON.parse(document.getElementById('data').textContent).cards.at(-1).id")
    chromium.open(file, fragment=f"card={last}")
    assert chromium.run("return document.activeElement.id") == f"open-{last}"


def test_paper_shows_cards_and_counts(chromium: Browser, tmp_path: Path) -> None:
    chromium.open(written(tmp_path, render_plan(many(1000), "html", EACH)))
    chromium.run(OPEN_ALL)
    chromium.emulate("print")
    seen = "return [...document.querySelectorAll(arguments[0])].filter((each) => each.checkVisibility()).length"
    assert chromium.run(seen, ".targets li, #controls, .status button, #fleet") == 0
    assert chromium.run(seen, f"{CARD} h3") == 30
    assert chromium.run(seen, ".tile, .numbers table") == 5
    assert chromium.pages_printed() < 25


def test_a_page_without_cards_has_no_controls(chromium: Browser, tmp_path: Path) -> None:
    chromium.open(written(tmp_path, render_plan(saved_plan(Plan(())), "html")))
    assert chromium.texts("#shown") == ["There is nothing to decide."]
    assert chromium.run("return document.getElementById('controls').checkVisibility()") is False
