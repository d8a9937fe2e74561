"""The HTML file as a browser shows it: on a desktop and a phone, by mouse and keyboard, large and hostile."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

from reconciler.model.plan import Plan
from reconciler.render import Style, render_plan, render_report
from tests.render.browser import DESKTOP, PHONE, Browser, browser
from tests.render.hostile import EVIL, hostile
from tests.render.many import carried_out, many
from tests.render.samples import sample, saved_plan

ROW = "#list .row"
LABELS = f"{ROW} .label"

EACH = Style(group_by="target")
"""Each change is a row of its own."""


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as window:
        yield window


def written(folder: Path, page: str) -> Path:
    file = folder / "report.html"
    file.write_text(page, encoding="utf-8")
    return file


def test_a_page_shows_its_changes_and_complains_of_nothing(chromium: Browser, tmp_path: Path) -> None:
    chromium.open(written(tmp_path, render_plan(sample(), "html")))
    assert chromium.texts("h1, h2") == [
        "Plan: 1 to create, 2 to update, 1 to delete, 1 problem",
        "1 problem",
        "By section",
        "Changes",
    ]
    assert chromium.texts(f"{ROW} summary > span:not(.brief)") == [
        *("update", "approval settings", "project acme/payments/api"),
        *("create", 'milestone "2026.12"', "project acme/payments/api"),
        *("update", 'milestone "2026.11"', "project acme/payments/api"),
        *("delete", 'trigger token "legacy-integration"', "project acme/payments/api"),
    ]
    assert chromium.texts(f"{ROW} .brief") == [
        "allow_author_approval: true → false",
        "due_date: 2026-12-31",
        "name: Nov 2026 → 2026.11, state: active → closed",
        "",
    ]
    assert chromium.texts("#shown") == ["4 shown"]
    assert chromium.complaints() == []
    assert chromium.run("return performance.getEntriesByType('resource').length") == 0


def test_what_differs_is_marked_on_both_sides(chromium: Browser, tmp_path: Path) -> None:
    chromium.open(written(tmp_path, render_plan(many(5), "html", EACH)))
    chromium.wait_for("return document.querySelectorAll('table.fields').length === 5")
    third = f"{ROW}:nth-child(3) .fields"
    assert chromium.texts(f"{third} th") == ["Field", "Before", "After", "due_date", "description"]
    assert chromium.texts(f"{third} td") == [
        "2026-02-27",
        "2026-02-28",
        "Release 2.\n- fast\n- small\n",
        "Release 2.\n- fast\n- tiny\n",
    ]
    assert (chromium.texts(f"{third} del"), chromium.texts(f"{third} ins")) == (["27", "small"], ["28", "tiny"])
    assert chromium.texts(f"{ROW}:nth-child(2) .fields th") == ["Field", "After", "due_date", "description"]
    assert chromium.texts(f"{ROW}:nth-child(5) .fields th") == ["Field", "Before", "description"]


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
    chromium.wait_for("return document.querySelectorAll('table.fields').length === 3")
    first = f"{ROW}:first-child .fields"
    assert chromium.texts(f"{first} td") == [before, after]
    assert (chromium.texts(f"{first} del"), chromium.texts(f"{first} ins")) == (gone, come)


def test_the_list_is_filtered_and_sorted(chromium: Browser, tmp_path: Path) -> None:
    chromium.open(written(tmp_path, render_report(carried_out(many(20), 10), "html", EACH)))

    def choose(name: str, option: str) -> list[str]:
        Select(chromium.driver.find_element(By.ID, name)).select_by_visible_text(option)
        return chromium.texts(f"{ROW} .action")

    assert choose("action", "delete") == ["delete"] * 4
    assert choose("target", "project globex/team-1/service-1") == ["delete"]
    assert chromium.texts("#shown") == ["1 of 20 shown"]
    chromium.driver.find_element(By.ID, "reset").click()
    chromium.wait_for("return document.getElementById('shown').textContent === '20 shown'")
    assert choose("order", "action") == ["create"] * 4 + ["update"] * 12 + ["delete"] * 4
    chromium.driver.find_element(By.ID, "turn").click()
    assert chromium.texts(f"{ROW} .action") == ["delete"] * 4 + ["update"] * 12 + ["create"] * 4
    choose("order", "text")
    assert chromium.texts(LABELS)[0] == 'trigger token "legacy-integration"'
    choose("order", "target")
    assert chromium.texts(f"{ROW} .target")[0] == "project initech/team-2/service-2"
    choose("order", "section")
    assert chromium.texts(LABELS)[0] == 'trigger token "legacy-integration"'
    assert choose("status", "failed") == ["update", "update"]
    assert chromium.texts(f"{LABELS} .status") == ["failed", "failed"]
    assert choose("section", "milestones") == []
    assert chromium.texts("#shown") == ["0 of 20 shown"]


def test_a_group_is_found_by_each_of_its_targets_and_names_them_all(chromium: Browser, tmp_path: Path) -> None:
    chromium.open(written(tmp_path, render_plan(many(20), "html")))
    assert chromium.texts(f"{ROW} .target") == ["4 targets"] * 5
    chromium.driver.find_element(By.ID, "text").send_keys("service-3 legacy")
    chromium.wait_for("return document.getElementById('shown').textContent === '1 of 5 shown'")
    Select(chromium.driver.find_element(By.ID, "target")).select_by_visible_text("project globex/team-1/service-1")
    assert chromium.texts("#shown") == ["1 of 5 shown"]
    assert chromium.texts(f"{ROW} .targets") == [
        "project acme/team-0/service-0, project globex/team-1/service-1, project initech/team-2/service-2, "
        "project acme/team-3/service-3"
    ]


def test_all_words_that_are_typed_are_looked_for_everywhere(chromium: Browser, tmp_path: Path) -> None:
    chromium.open(written(tmp_path, render_plan(many(1000), "html", EACH)))
    chromium.driver.find_element(By.ID, "text").send_keys("INITECH 2026-03-27 service-11")
    chromium.wait_for("return document.getElementById('shown').textContent.includes('of')")
    assert chromium.texts("#shown") == ["5 of 1000 shown"]
    assert chromium.texts(f"{ROW} .target") == [
        f"project initech/team-{number % 17}/service-{number}" for number in (11, 110, 113, 116, 119)
    ]


def test_a_section_of_the_summary_leads_to_its_changes(chromium: Browser, tmp_path: Path) -> None:
    chromium.open(written(tmp_path, render_plan(many(20), "html", EACH)))
    chromium.driver.find_element(By.CSS_SELECTOR, "[data-section=trigger_tokens] button").click()
    assert chromium.texts("#shown") == ["4 of 20 shown"]
    assert chromium.run("return document.activeElement.id") == "changes"


def test_everything_can_be_reached_by_keyboard(chromium: Browser, tmp_path: Path) -> None:
    chromium.open(written(tmp_path, render_plan(many(30), "html", EACH)))
    press(chromium, Keys.TAB)
    assert focused(chromium) == "Skip to the changes"
    press(chromium, Keys.ENTER, *[Keys.TAB] * 8)
    assert focused(chromium) == "Reset"
    press(chromium, Keys.TAB)
    assert focused(chromium).startswith("update")
    press(chromium, Keys.ENTER)
    chromium.wait_for("return document.querySelectorAll('table.fields').length === 1")
    press(chromium, Keys.TAB, Keys.SPACE)
    chromium.wait_for("return document.querySelectorAll('table.fields').length === 2")


def press(window: Browser, *keys: str) -> None:
    ActionChains(window.driver).send_keys(*keys).perform()


def focused(window: Browser) -> str:
    return str(window.run("return document.activeElement.textContent"))


def test_a_screen_reader_hears_what_every_control_is(chromium: Browser, tmp_path: Path) -> None:
    chromium.open(written(tmp_path, render_report(carried_out(many(10)), "html")))
    nodes = chromium.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    heard = [heard_of(node) for node in nodes if not node["ignored"]]
    assert [name for role, name in heard if role in ("searchbox", "combobox")] == [
        *("Text", "Target", "Section", "Action", "Result", "Order"),
    ]
    assert {name for role, name in heard if role == "button"} == {
        *("approval_settings", "milestones", "trigger_tokens", "Reverse", "Close all", "Reset"),
    }
    roles = [role for role, _ in heard]
    assert {"banner", "main", "search", "status", "columnheader", "rowheader", "list", "listitem"} <= set(roles)
    assert roles.count("listitem") == 10 + 1
    assert chromium.run("return document.documentElement.lang") == "en"


def heard_of(node: dict[str, Any]) -> tuple[str, str]:
    return node["role"]["value"], node.get("name", {}).get("value", "")


@pytest.mark.parametrize("dark", [False, True])
def test_text_is_easy_to_tell_from_its_background(chromium: Browser, tmp_path: Path, dark: bool) -> None:
    chromium.open(written(tmp_path, render_report(carried_out(many(10, 1)), "html")), look="dark" if dark else "light")
    paper = luminance(chromium, "--paper")
    assert (paper < 0.1) is dark
    names = ("--ink", "--faint", "--create", "--update", "--delete", "--problems", "--unfinished")
    for text, ground in [
        *product(names, ("--paper",)),
        ("--faint", "--panel"),
        ("--ink", "--gone"),
        ("--ink", "--come"),
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


@pytest.mark.parametrize("size", [PHONE, (320, 640), DESKTOP])
def test_nothing_is_wider_than_the_window(chromium: Browser, tmp_path: Path, size: tuple[int, int]) -> None:
    chromium.open(written(tmp_path, render_report(carried_out(hostile("x" * 300), 2), "html")), size)
    chromium.wait_for("return document.querySelectorAll('table.fields').length === 3")
    assert chromium.run("return document.documentElement.scrollWidth") == size[0]


def test_no_string_becomes_markup_or_script(chromium: Browser, tmp_path: Path) -> None:
    saved = hostile(EVIL + "</script><script>document.title = 'owned'</script><img src=x onerror=\"document.title=1\">")
    chromium.open(written(tmp_path, render_report(carried_out(saved, 2), "html")))
    chromium.wait_for("return document.querySelectorAll('table.fields').length === 3")
    assert chromium.run("return document.title").startswith("Applied: ")
    assert chromium.run("return document.images.length + document.links.length + document.scripts.length") == 3
    assert chromium.complaints() == []


def test_the_policy_forbids_other_scripts_and_every_connection(chromium: Browser, tmp_path: Path) -> None:
    spoilt = render_plan(sample(), "html").replace("</body>", "<script>document.title = 'owned'</script></body>")
    chromium.open(written(tmp_path, spoilt))
    chromium.run("return fetch('https://example.com').catch(() => null)")
    assert chromium.run("return document.title").startswith("Plan: ")
    complaints = chromium.complaints()
    assert any("inline script" in each for each in complaints), complaints
    assert any("example.com" in each and "Content Security Policy" in each for each in complaints), complaints


def test_five_thousand_changes_stay_smooth(chromium: Browser, tmp_path: Path) -> None:
    chromium.open(written(tmp_path, render_plan(many(5000), "html", EACH)))
    assert chromium.run("return document.querySelectorAll(arguments[0]).length", ROW) == 5000
    chromium.run("""
        window.longest = 0;
        new PerformanceObserver((seen) => {
          for (const task of seen.getEntries()) window.longest = Math.max(window.longest, task.duration);
        }).observe({ entryTypes: ["longtask"] });
        const order = document.getElementById("order");
        order.value = "target";
        order.dispatchEvent(new Event("change"));
    """)
    chromium.wait_for("return document.querySelectorAll('#list .row').length === 5000")
    chromium.driver.find_element(By.ID, "text").send_keys("service-999")
    chromium.wait_for("return document.getElementById('shown').textContent === '5 of 5000 shown'")
    assert chromium.run("return window.longest") < 1000  # ms; a tenth of it on a machine that is not busy


def test_what_is_printed_is_open_and_closed_again(chromium: Browser, tmp_path: Path) -> None:
    chromium.open(written(tmp_path, render_plan(many(100, problems=20), "html", EACH)))
    count = (
        "return [document.querySelectorAll('details[open]').length, document.querySelectorAll('table.fields').length]"
    )
    assert chromium.run(count) == [0, 0]
    chromium.run("dispatchEvent(new Event('beforeprint'))")
    assert chromium.run(count) == [101, 100]
    chromium.run("dispatchEvent(new Event('afterprint'))")
    assert chromium.run(count) == [0, 100]


def test_a_page_without_changes_has_no_controls(chromium: Browser, tmp_path: Path) -> None:
    chromium.open(written(tmp_path, render_plan(saved_plan(Plan(())), "html")))
    assert chromium.texts("#shown") == ["There is nothing to change."]
    assert chromium.run("return document.getElementById('controls').checkVisibility()") is False
