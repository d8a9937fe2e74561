"""Stories of the decision page in a real browser, from the command that writes it to the command that is copied from it."""

import shlex
from pathlib import Path

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from reconciler.reports import render_plan
from tests.cli_runner import CliRunner
from tests.render.browser import PHONE, Browser
from tests.render.fleets import fleet

TITLES = "#list .card .title"
SET = """\
apiVersion: reconciler/v1
kind: ProjectSet
metadata: {name: all}
select: {projects: [acme/api, acme/lib, acme/web]}
spec:
  milestones: {"2027.1": {due_date: 2027-01-29}}
  trigger_tokens: {legacy: null}
---
apiVersion: reconciler/v1
kind: Project
metadata: {path: acme/tools/cli}
spec:
  milestones: {"2027.1": {due_date: 2027-02-26}}
"""


@pytest.fixture(scope="module")
def middle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of 500 projects."""
    file = tmp_path_factory.mktemp("pages") / "middle.html"
    file.write_text(render_plan(fleet(500), "html"), encoding="utf-8")
    return file


LINKS = """
for (const button of document.querySelectorAll("#list h3 button[aria-expanded=false]")) button.click();
return [...document.links].map((link) => link.href).filter((href) => !href.startsWith("file:"));
"""
"""Opens all cards, and returns where links lead outside of the page."""


def click(window: Browser, selector: str, number: int = 0) -> None:
    window.driver.find_elements(By.CSS_SELECTOR, selector)[number].click()


def copied(window: Browser, selector: str) -> list[str]:
    """Click on a button that copies a command, and return the command's words."""
    click(window, selector)
    window.wait_for("return document.getElementById('said').textContent === 'Copied'")
    return shlex.split(window.clipboard)


def test_a_copied_command_does_what_the_page_shows(chromium: Browser, cli_runner: CliRunner) -> None:
    cli_runner.write("manifests/all.yaml", SET)
    cli_runner.service(trigger_tokens=[{"id": 7, "description": "legacy", "owner": "ada", "token": "t" * 20}])
    page = cli_runner.folder / "page.html"
    assert cli_runner("plan --report html=page.html").code == 0
    chromium.open(page)
    everything = ['Delete trigger token "legacy"', 'Create milestone "2027.1"', 'Create milestone "2027.1"']
    assert chromium.texts(f"h1, {TITLES}") == ["Tightens 1 project; deletes 1 object in 1 project", *everything]
    # the larger card of the two creations, narrowed to one of its projects
    click(chromium, ".tile[data-kind=create]")
    chromium.driver.find_element(By.ID, "text").send_keys("lib")
    assert chromium.texts("#list .card .count") == ["1 project of 3 projects"]
    program, *words = copied(chromium, "#copy-command")
    assert (program, words) == ("reconciler", ["apply", "--target", "acme/lib", "--section", "milestones"])
    sandbox = cli_runner.sandbox
    sandbox.set_faults(["status=403,method=DELETE"])
    assert cli_runner(" ".join(words), "--yes").code == 0
    # what is left; the deletion fails
    cli_runner("apply --yes --report html=page.html --report json=report.json")
    sandbox.set_faults([])
    chromium.open(page)
    assert chromium.texts("h1, #list h2, .verdict .command code") == [
        "3 of 4 changes are done",
        "reconciler apply --retry-failed report.json",
        "Failed 1 project",
        "Created 3 projects",
    ]
    assert chromium.run(LINKS) == []
    cli_runner.write("reconciler.yaml", "web_url: https://gitlab.example.com\n")
    _, *words = copied(chromium, ".verdict [data-copy]")
    assert cli_runner(" ".join(words), "--yes", "--report", "html=page.html").code == 0
    chromium.open(page)
    assert chromium.texts(f"h1, {TITLES}") == ["The change is done, 1 tightening", 'Deleted trigger token "legacy"']
    assert chromium.run(LINKS) == [
        "https://gitlab.example.com/acme/api",
        "https://gitlab.example.com/acme/api/-/settings/ci_cd#js-pipeline-triggers",
    ]
    assert chromium.complaints() == []


def test_the_matrix_and_the_cards_show_one_and_the_same_filter(chromium: Browser, middle: Path) -> None:
    chromium.open(middle)
    seen = "#matrix [aria-selected=true], #matrix [aria-pressed=true], #chosen button, #shown"
    click(chromium, "#matrix [role=rowheader]", 6)
    assert chromium.texts(seen) == ["in group acme/web \u00d7", "46 of 125 cards shown", "web187"]
    click(chromium, "#matrix .matrix-section", chromium.texts("#matrix .matrix-section").index("milestones"))
    assert chromium.texts(seen) == ["section milestones \u00d7", "116 of 125 cards shown", "milestones"]
    click(chromium, "#matrix .matrix-chip", 1)
    narrowed = [
        "section milestones \u00d7",
        "state problem \u00d7",
        "1 of 125 cards shown",
        " problem 2",
        "milestones",
    ]
    assert chromium.texts(seen) == narrowed
    assert chromium.texts(f"#list h2, {TITLES}")[0] == "Problems 2 projects"
    chromium.wait_for("return location.hash.includes('state')")
    chromium.open(middle, fragment=chromium.fragment)
    assert chromium.texts(seen) == narrowed
    click(chromium, "#chosen button")
    assert chromium.texts(seen) == ["state problem \u00d7", "2 of 125 cards shown", " problem 22"]
    # a link of somebody else, to a target far down that has nothing to decide
    chromium.open(middle, fragment="target=project%20acme/web/search-3&section=milestones")
    assert chromium.texts(seen)[:3] == [
        *("project acme/web/search-3 \u00d7", "section milestones \u00d7"),
        "No card matches the filters. There are 125 cards without the filters.",
    ]
    chosen = "#matrix [aria-selected=true][role=gridcell]"
    assert chromium.texts(f"{chosen} .aside") == ["in order"]
    click(chromium, chosen)
    assert chromium.texts(seen) == ["125 cards shown"]


def test_what_nobody_would_write_into_an_address_does_no_harm(chromium: Browser, middle: Path) -> None:
    chromium.open(middle)
    whole = chromium.texts("#shown")
    for fragment in ("kind=__proto__&card=constructor", "%", "q=", "=&&card=x#y", "open"):
        chromium.open(middle, fragment=fragment)
        assert chromium.texts("#shown") == whole, fragment
    chromium.open(middle, fragment="target=%3Cimg%20src%3Dx%3E&section=toString&state=%22")
    assert chromium.texts("#chosen button") == ["<img src=x> \u00d7", "section toString \u00d7", 'state " \u00d7']
    for _ in range(3):
        click(chromium, "#chosen button")
    assert chromium.texts("#shown") == whole
    assert chromium.complaints() == []


def test_a_large_fleet_is_as_small_as_what_is_looked_at(chromium: Browser, tmp_path: Path) -> None:
    file = tmp_path / "large.html"
    file.write_text(render_plan(fleet(5000), "html"), encoding="utf-8")
    chromium.open(file, PHONE)
    nodes = "return document.querySelectorAll('*').length"
    assert chromium.run(nodes) < 2000
    chromium.press("/", *"web/shop/checkout author_approval")
    assert chromium.texts("#shown") == ["1 of 1,137 cards shown"]
    chromium.press(Keys.TAB, Keys.TAB, Keys.TAB)
    for button in chromium.driver.find_elements(By.CSS_SELECTOR, "#list h3 button"):
        button.click()
    assert chromium.run(nodes) < 2000
    chromium.press(Keys.ESCAPE)
