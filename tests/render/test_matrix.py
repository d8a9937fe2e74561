"""The matrix of targets by sections, by itself in a real browser: mouse, keyboard, screen reader, many and hostile names."""

import json
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from tests.render.browser import DESKTOP, PHONE, Browser, browser
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


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as window:
        yield window


def matrix_of(
    window: Browser,
    folder: Path,
    rows: dict[str, str],
    size: tuple[int, int] = DESKTOP,
    sections: Sequence[str] = SECTIONS,
) -> None:
    """Show a page with nothing but a matrix, whose choices are kept."""
    html = resources.files("reconciler.render") / "html"
    files = {name: (html / name).read_text("utf-8") for name in ("page.css", "matrix.css", "matrix.js")}
    data = {"targets": [*rows], "sections": sections, "states": STATES, "cells": "".join(rows.values())}
    text = json.dumps(data).replace("<", "\\u003c")
    file = folder / "matrix.html"
    file.write_text(
        f"<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'><title>m</title>"
        f"<style>{files['page.css']}</style><style>{files['matrix.css']}</style><main><div id=here></div></main>"
        f"<script>{files['matrix.js']}</script><script>window.chosen = []; window.matrix = "
        f"createMatrix(document.getElementById('here'), {text}, (choice) => chosen.push(choice));</script>",
        encoding="utf-8",
    )
    width, height = size
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": size == PHONE}
    window.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    window.driver.get(file.as_uri())


def press(window: Browser, *keys: str) -> None:
    for key in keys:
        ActionChains(window.driver).send_keys(key).perform()


def choices(window: Browser) -> list[Any]:
    """Return what was chosen since it was last asked: group, target, section and state."""
    names = ("group", "target", "section", "state")
    return [[choice[name] for name in names] for choice in window.run("return chosen.splice(0)")]


def focused(window: Browser) -> str:
    return str(
        window.run("return (document.activeElement.querySelector('.aside') ?? document.activeElement).textContent")
    )


def click(window: Browser, selector: str, number: int = 0) -> None:
    window.run("document.querySelectorAll(arguments[0])[arguments[1]].click()", selector, number)


def test_groups_are_a_tree_that_shows_the_worst_below(window: Browser, tmp_path: Path) -> None:
    matrix_of(window, tmp_path, SMALL)
    heard = (
        "return [...document.querySelectorAll('[role=row][aria-level]')].map((row) => [row.getAttribute('aria-level'), "
        "row.getAttribute('aria-expanded'), row.querySelector('bdi').textContent, "
        "...[...row.querySelectorAll('[role=gridcell]')].map((cell) => cell.querySelector('.aside').textContent)])"
    )
    assert window.run(heard) == [
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
    assert window.run("return [...document.querySelectorAll('.matrix-count')].map((each) => each.dataset.text)") == [
        "~\u20091",
        "=\u20091",
        "!\u20091",
        "~\u20091",
        *("~\u20091", "=\u20091", "!\u20091", "~\u20091"),
        "\u2713\u20091",
        "\u2013\u20091",
    ]
    assert [text.split() for text in window.texts(".matrix-chip")] == [
        ["problem", "1"],
        ["changes", "2"],
        ["excepted", "1"],
        ["not", "applicable", "1"],
        ["unmanaged", "1"],
        ["in", "order", "6"],
        ["not", "declared", "2"],
    ]
    assert window.texts(".matrix-status") == ["7 targets"]
    assert window.run("return document.querySelector('[role=treegrid]').getAttribute('aria-rowcount')") == "11"
    assert window.complaints() == []


def test_the_mouse_chooses_and_takes_back(window: Browser, tmp_path: Path) -> None:
    matrix_of(window, tmp_path, SMALL)
    click(window, "[role=rowheader]", 2)
    click(window, "[data-row='2'] [role=gridcell]", 1)
    click(window, "[data-row='3'] [role=gridcell]", 0)
    assert window.texts("[aria-selected=true]") == ["approval_settings", "changes"]
    click(window, "[data-row='3'] [role=gridcell]", 0)
    click(window, ".matrix-section", 1)
    click(window, ".matrix-chip", 1)
    assert window.texts(NAMES) == ["acme", "payments", "lib"]
    assert window.texts(".matrix-status") == ["1 of 7 targets"]
    click(window, ".matrix-section", 1)
    assert window.texts(NAMES) == ["acme", "payments", "api", "lib"]
    click(window, ".matrix-chip", 1)
    assert choices(window) == [
        ["acme/payments", None, None, None],
        ["acme/payments", None, "milestones", None],
        [None, "project acme/payments/api", "approval_settings", None],
        [None, None, None, None],
        [None, None, "milestones", None],
        [None, None, "milestones", "changes"],
        [None, None, None, "changes"],
        [None, None, None, None],
    ]
    click(window, ".matrix-twisty", 0)
    assert window.texts(NAMES) == ["acme", "project 12", "user"]
    click(window, ".matrix-buttons button", 0)
    assert len(window.texts(NAMES)) == 10
    click(window, ".matrix-buttons button", 1)
    click(window, "[role=rowheader]", 0)
    assert window.texts(NAMES) == ["acme", "(itself)", "payments", "tools/deep", "project 12", "user"]
    click(window, "[role=columnheader]", 0)
    assert choices(window) == [["acme", None, None, None]]


def test_a_group_without_a_row_of_its_own_is_one_all_the_same(window: Browser, tmp_path: Path) -> None:
    matrix_of(window, tmp_path, SMALL)
    window.run("matrix.show({ group: 'acme/tools' })")
    assert window.texts(".matrix-body .matrix-row:not(.is-dim) bdi") == ["tools/deep", "cli"]
    assert [text for text in window.texts(".matrix-total") if text != "0"] == ["1", "1"]
    window.run("matrix.show({ group: '12' })")
    assert window.texts(".matrix-body .matrix-row:not(.is-dim) bdi") == []


def test_the_keyboard_reaches_every_cell(window: Browser, tmp_path: Path) -> None:
    matrix_of(window, tmp_path, SMALL)
    window.run("document.querySelector('[role=treegrid] [tabindex=\"0\"]').focus()")
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
        press(window, key)
        assert focused(window) == heard, key
    press(window, Keys.ENTER)
    ActionChains(window.driver).key_down(Keys.CONTROL).send_keys(Keys.END).key_up(Keys.CONTROL).perform()
    assert focused(window) == "not declared"
    press(window, Keys.SPACE)
    ActionChains(window.driver).key_down(Keys.CONTROL).send_keys(Keys.HOME).key_up(Keys.CONTROL).perform()
    press(window, Keys.HOME, Keys.SPACE)
    assert window.texts(NAMES) == ["acme", "project 12", "user"]
    press(window, Keys.ENTER, "x")
    assert choices(window) == [
        [None, None, "milestones", None],
        [None, "user", "milestones", None],
        ["acme", None, None, None],
    ]
    press(window, Keys.TAB)
    assert window.run("return document.activeElement === document.body") is True


def test_a_choice_made_elsewhere_is_shown(window: Browser, tmp_path: Path) -> None:
    many = {f"project acme/team-{number % 40}/service-{number}": "01" for number in range(5000)}
    matrix_of(window, tmp_path, many)
    assert len(window.texts(NAMES)) < 60
    window.run("matrix.show({ target: 'project acme/team-39/service-4999' })")
    marked = (
        "const [one] = document.querySelectorAll('[aria-selected=true]'); const place = one.getBoundingClientRect(); "
        "const view = document.querySelector('.matrix-scroll').getBoundingClientRect(); "
        "return [one.textContent, place.top > view.top, place.bottom < view.bottom, one.parentNode.getAttribute('aria-rowindex')]"
    )
    assert window.run(marked) == ["service-4999", True, True, "167"]
    window.run("matrix.show({ group: 'acme/team-7' })")
    assert window.run(marked)[:3] == ["team-7125", True, True]
    window.run("matrix.show({ group: 'acme/nowhere', section: 'unknown', state: 'unknown' })")
    assert window.texts("[aria-selected=true]") == []
    window.run("matrix.show({ section: 'milestones', state: 'changes' })")
    assert window.texts("[aria-pressed=true] .matrix-total") == ["5,000"]
    window.run(
        "const search = document.querySelector('.matrix-search'); search.value = 'TEAM-32 99'; search.dispatchEvent(new Event('input'))"
    )
    assert window.texts(".matrix-status") == ["5 of 5,000 targets"]
    assert window.texts(NAMES) == ["acme", "team-32", *(f"service-{number}992" for number in ("", 1, 2, 3, 4))]
    window.run(
        "const search = document.querySelector('.matrix-search'); search.value = 'none'; search.dispatchEvent(new Event('input'))"
    )
    assert window.texts(".matrix-empty:not([hidden])") == ["No target matches."]
    assert choices(window) == []


def test_the_focus_stays_on_a_row_that_is_scrolled_away(window: Browser, tmp_path: Path) -> None:
    matrix_of(window, tmp_path, {f"project acme/service-{number}": "00" for number in range(1000)})
    window.run("document.querySelector('[role=treegrid] [tabindex=\"0\"]').focus()")
    window.run("document.querySelector('.matrix-scroll').scrollTop = 9000")
    window.wait_for("return document.querySelectorAll('[data-row]')[1].dataset.row > 200")
    assert focused(window) == "acme1,000"
    window.run("dispatchEvent(new Event('beforeprint'))")
    assert len(window.texts(NAMES)) == 100
    window.run("dispatchEvent(new Event('afterprint'))")
    assert len(window.texts(NAMES)) < 60


@pytest.mark.parametrize("size", [PHONE, DESKTOP])
def test_hostile_names_change_nothing(window: Browser, tmp_path: Path, size: tuple[int, int]) -> None:
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
    matrix_of(window, tmp_path, rows, size, [f"section_{number}" for number in range(10)] + ["__proto__", "<b>"])
    assert window.run("return document.documentElement.scrollWidth") == size[0]
    assert window.run("return [document.title, document.images.length, document.querySelectorAll('b').length]") == [
        "m",
        0,
        0,
    ]
    assert len(window.texts(NAMES)) == 2 * len(rows)
    assert window.complaints() == []
