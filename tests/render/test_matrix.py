"""The matrix of targets by sections, by itself in a real browser: mouse, keyboard, screen reader, many and hostile names."""

import json
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from tests.render.browser import DESKTOP, PHONE, Browser
from tests.render.hostile import EVIL

STATES = ["in order", "changes", "problem", "excepted", "not applicable", "unmanaged", "not declared"]
SECTIONS = ["approval_settings", "milestones"]
SMALL = {
    "user": "06",
    "group acme": "60",
    "project acme/payments/api": "12",
    "project acme/payments/lib": "01",
    "project acme/payments/web": "35",
    "project acme/tools/deep/cli": "04",
    "project 12": "00",
}
NAMES = "[role=rowheader] bdi"


def matrix_of(
    chromium: Browser,
    folder: Path,
    rows: dict[str, str],
    size: tuple[int, int] = DESKTOP,
    sections: Sequence[str] = SECTIONS,
) -> None:
    """Show a page with nothing but a matrix, whose choices are kept."""
    html = resources.files("reconciler.reports") / "html"
    files = {name: (html / name).read_text("utf-8") for name in ("page.css", "matrix.css", "elements.js", "matrix.js")}
    data = {"targets": [*rows], "sections": sections, "states": STATES, "cells": "".join(rows.values())}
    text = json.dumps(data).replace("<", "\\u003c")
    file = folder / "matrix.html"
    file.write_text(
        f"<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'><title>m</title>"
        f"<style>{files['page.css']}</style><style>{files['matrix.css']}</style><main><div id=here></div></main>"
        f"<script>{files['elements.js']}</script><script>{files['matrix.js']}</script><script>window.chosen = []; window.matrix = "
        f"createMatrix(document.getElementById('here'), {text}, (choice) => chosen.push(choice));</script>",
        encoding="utf-8",
    )
    width, height = size
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": size == PHONE}
    chromium.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    chromium.emulate("")
    chromium.driver.get(file.as_uri())


def press(chromium: Browser, *keys: str) -> None:
    for key in keys:
        ActionChains(chromium.driver).send_keys(key).perform()


def choices(chromium: Browser) -> list[Any]:
    """Return what was chosen since it was last asked: group, target, section and state."""
    names = ("group", "target", "section", "state")
    return [[choice[name] for name in names] for choice in chromium.run("return chosen.splice(0)")]


def focused(chromium: Browser) -> str:
    return str(
        chromium.run("return (document.activeElement.querySelector('.aside') ?? document.activeElement).textContent")
    )


def click(chromium: Browser, selector: str, number: int = 0) -> None:
    chromium.run("document.querySelectorAll(arguments[0])[arguments[1]].click()", selector, number)


def test_groups_are_a_tree_that_shows_the_worst_below(chromium: Browser, tmp_path: Path) -> None:
    matrix_of(chromium, tmp_path, SMALL)
    heard = (
        "return [...document.querySelectorAll('[role=row][aria-level]')].map((row) => [row.getAttribute('aria-level'), "
        "row.getAttribute('aria-expanded'), row.querySelector('bdi').textContent, "
        "...[...row.querySelectorAll('[role=gridcell]')].map((cell) => cell.querySelector('.aside').textContent)])"
    )
    assert chromium.run(heard) == [
        [
            "1",
            "true",
            "acme",
            "1 changes, 1 excepted, 2 in order, 1 not declared",
            "1 problem, 1 changes, 1 not applicable, 1 unmanaged, 1 in order",
        ],
        ["2", None, "(itself)", "not declared", "in order"],
        ["2", "true", "payments", "1 changes, 1 excepted, 1 in order", "1 problem, 1 changes, 1 unmanaged"],
        ["3", None, "api", "changes", "problem"],
        ["3", None, "lib", "in order", "changes"],
        ["3", None, "web", "excepted", "unmanaged"],
        ["2", "true", "tools/deep", "1 in order", "1 not applicable"],
        ["3", None, "cli", "in order", "not applicable"],
        ["1", None, "project 12", "in order", "in order"],
        ["1", None, "user", "in order", "not declared"],
    ]
    assert chromium.run("return [...document.querySelectorAll('.matrix-count')].map((each) => each.dataset.text)") == [
        "~\u20091",
        "=\u20091",
        "!\u20091",
        "~\u20091",
        *("~\u20091", "=\u20091", "!\u20091", "~\u20091"),
        "\u2713\u20091",
        "\u2013\u20091",
    ]
    assert [text.split() for text in chromium.texts(".matrix-chip")] == [
        ["deletions", "0"],
        ["problem", "1"],
        ["changes", "2"],
        ["excepted", "1"],
        ["not", "applicable", "1"],
        ["unmanaged", "1"],
        ["in", "order", "6"],
        ["not", "declared", "2"],
    ]
    assert chromium.texts(".matrix-status") == ["7 targets"]
    assert chromium.run("return document.querySelector('[role=treegrid]').getAttribute('aria-rowcount')") == "11"
    assert chromium.complaints() == []


def test_the_mouse_chooses_and_takes_back(chromium: Browser, tmp_path: Path) -> None:
    matrix_of(chromium, tmp_path, SMALL)
    click(chromium, "[role=rowheader]", 2)
    click(chromium, "[data-row='2'] [role=gridcell]", 1)
    click(chromium, "[data-row='3'] [role=gridcell]", 0)
    assert chromium.texts("[aria-selected=true]") == ["approval_settings", "changes"]
    click(chromium, "[data-row='3'] [role=gridcell]", 0)
    click(chromium, ".matrix-section", 1)
    click(chromium, ".matrix-chip", 2)
    assert chromium.texts(NAMES) == ["acme", "payments", "lib"]
    assert chromium.texts(".matrix-status") == ["1 of 7 targets"]
    click(chromium, ".matrix-section", 1)
    assert chromium.texts(NAMES) == ["acme", "payments", "api", "lib"]
    click(chromium, ".matrix-chip", 2)
    assert choices(chromium) == [
        ["acme/payments", None, None, None],
        ["acme/payments", None, "milestones", None],
        [None, "project acme/payments/api", "approval_settings", None],
        [None, None, None, None],
        [None, None, "milestones", None],
        [None, None, "milestones", "changes"],
        [None, None, None, "changes"],
        [None, None, None, None],
    ]
    click(chromium, ".matrix-twisty", 0)
    assert chromium.texts(NAMES) == ["acme", "project 12", "user"]
    click(chromium, ".matrix-buttons button", 0)
    assert len(chromium.texts(NAMES)) == 10
    click(chromium, ".matrix-buttons button", 1)
    click(chromium, "[role=rowheader]", 0)
    assert chromium.texts(NAMES) == ["acme", "(itself)", "payments", "tools/deep", "project 12", "user"]
    click(chromium, "[role=columnheader]", 0)
    assert choices(chromium) == [["acme", None, None, None]]


def test_a_group_without_a_row_of_its_own_is_one_all_the_same(chromium: Browser, tmp_path: Path) -> None:
    matrix_of(chromium, tmp_path, SMALL)
    chromium.run("matrix.show({ group: 'acme/tools' })")
    assert chromium.texts(".matrix-body .matrix-row:not(.is-dim) bdi") == ["tools/deep", "cli"]
    assert [text for text in chromium.texts(".matrix-total") if text != "0"] == ["1", "1"]
    chromium.run("matrix.show({ group: '12' })")
    assert chromium.texts(".matrix-body .matrix-row:not(.is-dim) bdi") == []


def test_the_keyboard_reaches_every_cell(chromium: Browser, tmp_path: Path) -> None:
    matrix_of(chromium, tmp_path, SMALL)
    chromium.run("document.querySelector('[role=treegrid] [tabindex=\"0\"]').focus()")
    for key, heard in [
        (Keys.ARROW_DOWN, "(itself)"),
        (Keys.ARROW_DOWN, "payments3"),
        (Keys.ARROW_LEFT, "payments3"),  # closed
        (Keys.ARROW_DOWN, "tools/deep1"),
        (Keys.ARROW_UP, "payments3"),
        (Keys.ARROW_RIGHT, "payments3"),  # open
        (Keys.ARROW_RIGHT, "1 changes, 1 excepted, 1 in order"),
        (Keys.ARROW_DOWN, "changes"),
        (Keys.END, "problem"),
        (Keys.ARROW_RIGHT, "problem"),
        (Keys.HOME, "api"),
        (Keys.ARROW_LEFT, "payments3"),
        (Keys.PAGE_DOWN, "user"),
        (Keys.PAGE_UP, "(itself)"),
        (Keys.PAGE_UP, "acme5"),
        (Keys.ARROW_UP, "Target"),
        (Keys.END, "milestones"),
    ]:
        press(chromium, key)
        assert focused(chromium) == heard, key
    press(chromium, Keys.ENTER)
    ActionChains(chromium.driver).key_down(Keys.CONTROL).send_keys(Keys.END).key_up(Keys.CONTROL).perform()
    assert focused(chromium) == "not declared"
    press(chromium, Keys.SPACE)
    ActionChains(chromium.driver).key_down(Keys.CONTROL).send_keys(Keys.HOME).key_up(Keys.CONTROL).perform()
    press(chromium, Keys.HOME, Keys.SPACE)
    assert chromium.texts(NAMES) == ["acme", "project 12", "user"]
    press(chromium, Keys.ENTER, "x")
    assert choices(chromium) == [
        [None, None, "milestones", None],
        [None, "user", "milestones", None],
        ["acme", None, None, None],
    ]
    press(chromium, Keys.TAB)
    assert chromium.run("return document.activeElement === document.body") is True


def test_a_choice_made_elsewhere_is_shown(chromium: Browser, tmp_path: Path) -> None:
    many = {f"project acme/team-{number % 40}/service-{number}": "01" for number in range(5000)}
    matrix_of(chromium, tmp_path, many)
    assert len(chromium.texts(NAMES)) < 60
    chromium.run("matrix.show({ target: 'project acme/team-39/service-4999' })")
    marked = (
        "const [one] = document.querySelectorAll('[aria-selected=true]'); const place = one.getBoundingClientRect(); "
        "const view = document.querySelector('.matrix-scroll').getBoundingClientRect(); "
        "return [one.textContent, place.top > view.top, place.bottom < view.bottom, one.parentNode.getAttribute('aria-rowindex')]"
    )
    assert chromium.run(marked) == ["service-4999", True, True, "167"]
    chromium.run("matrix.show({ group: 'acme/team-7' })")
    assert chromium.run(marked)[:3] == ["team-7125", True, True]
    chromium.run("matrix.show({ group: 'acme/nowhere', section: 'unknown', state: 'unknown' })")
    assert chromium.texts("[aria-selected=true]") == []
    chromium.run("matrix.show({ section: 'milestones', state: 'changes' })")
    assert chromium.texts("[aria-pressed=true] .matrix-total") == ["5,000"]
    chromium.run(
        "const search = document.querySelector('.matrix-search'); search.value = 'TEAM-32 99'; search.dispatchEvent(new Event('input'))"
    )
    assert chromium.texts(".matrix-status") == ["5 of 5,000 targets"]
    assert chromium.texts(NAMES) == ["acme", "team-32", *(f"service-{number}992" for number in ("", 1, 2, 3, 4))]
    chromium.run(
        "const search = document.querySelector('.matrix-search'); search.value = 'none'; search.dispatchEvent(new Event('input'))"
    )
    assert chromium.texts(".matrix-empty:not([hidden])") == ["No target matches."]
    assert choices(chromium) == []


def test_the_focus_stays_on_a_row_that_is_scrolled_away(chromium: Browser, tmp_path: Path) -> None:
    matrix_of(chromium, tmp_path, {f"project acme/service-{number}": "00" for number in range(1000)})
    chromium.run("document.querySelector('[role=treegrid] [tabindex=\"0\"]').focus()")
    chromium.run("document.querySelector('.matrix-scroll').scrollTop = 9000")
    chromium.wait_for("return document.querySelectorAll('[data-row]')[1].dataset.row > 200")
    assert focused(chromium) == "acme1,000"
    chromium.run("dispatchEvent(new Event('beforeprint'))")
    assert len(chromium.texts(NAMES)) == 100
    chromium.run("dispatchEvent(new Event('afterprint'))")
    assert len(chromium.texts(NAMES)) < 60


@pytest.mark.parametrize("size", [PHONE, DESKTOP])
def test_hostile_names_change_nothing(chromium: Browser, tmp_path: Path, size: tuple[int, int]) -> None:
    names = [
        EVIL,
        "<img src=x onerror='document.title=1'>",
        "x" * 255,
        "\N{PARTY POPPER}",
        "__proto__",
        "constructor",
        "</script>",
    ]
    rows = {f"project {name}/{name}": "1" * 12 for name in names if "/" not in name} | {
        "project toString/valueOf": "0" * 12
    }
    matrix_of(chromium, tmp_path, rows, size, [f"section_{number}" for number in range(10)] + ["__proto__", "<b>"])
    assert chromium.run("return document.documentElement.scrollWidth") == size[0]
    assert chromium.run("return [document.title, document.images.length, document.querySelectorAll('b').length]") == [
        "m",
        0,
        0,
    ]
    assert len(chromium.texts(NAMES)) == 2 * len(rows)
    assert chromium.complaints() == []
