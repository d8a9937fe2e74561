"""Each page in every look: light, dark and forced colours, on a desktop and a phone, of 10 and of 1,000 projects.

The page of an apply that was interrupted is that of a report with a few more words: it needs not be large.
"""

import os
from collections.abc import Callable
from hashlib import sha256
from itertools import product
from pathlib import Path

import pytest

from reconciler.reports import render_plan, render_report
from reconciler.reports.fleet import page
from tests.render.browser import AXE, AXE_DIGEST, LOOKS, SIZES, Browser
from tests.render.fleets import applied, fleet, history, interrupted
from tests.render.hostile import NAMES, hostile
from tests.render.many import carried_out

pytestmark = pytest.mark.untraced
"""Others cover the same lines; tracing would take as long as the tests."""

PAGES: dict[str, Callable[[int], str]] = {
    "plan": lambda projects: render_plan(fleet(projects), "html"),
    "report": lambda projects: render_report(applied(projects), "html"),
    "interrupted": lambda projects: render_report(interrupted(projects), "html"),
    "fleet": lambda projects: page(fleet(projects), history(projects)),
}

View = tuple[str, str]
"""A device and a look."""

FITS = "return [document.documentElement.scrollWidth, innerWidth]"


@pytest.fixture
def gallery(tmp_path: Path) -> Path:
    """Where screenshots go: to `$RECONCILER_SCREENSHOTS`, if that is set."""
    folder = Path(os.environ.get("RECONCILER_SCREENSHOTS", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


SMALL = 10, [*product(SIZES, LOOKS)], [("desktop", "light"), ("phone", "dark")]
LARGE = 1000, [("desktop", "light"), ("phone", "forced")], list[View]()


@pytest.mark.parametrize(
    ("name", "projects", "views", "searched"),
    [*((name, *SMALL) for name in PAGES), *((name, *LARGE) for name in PAGES if name != "interrupted")],
)
def test_a_page_looks_right(
    chromium: Browser, tmp_path: Path, gallery: Path, name: str, projects: int, views: list[View], searched: list[View]
) -> None:
    file = tmp_path / "page.html"
    file.write_text(PAGES[name](projects), encoding="utf-8")
    opened = ""
    for device, look in views:
        if device != opened:
            chromium.open(file, SIZES[device], look)
            opened = device
        chromium.emulate("", look)
        assert chromium.driver.save_screenshot(str(gallery / f"{name}-{projects}-{device}-{look}.png"))
        assert chromium.run(FITS) == [SIZES[device][0]] * 2
        assert chromium.loaded() == []
        if (device, look) in searched:
            assert chromium.obstacles() == []
    assert chromium.complaints() == []


SHAPE = "return [...document.body.querySelectorAll('*')].map((each) => `${each.tagName} ${each.className}`)"


TORN = """
const plain = [...document.querySelectorAll("time, .crumbs strong, .count")].filter((each) => each.textContent.length < 30);
return plain.filter((each) => each.getClientRects().length > 1).map((each) => each.textContent);
"""
"""Returns short texts that stand in several places: names beside them, in another direction of writing, tore them."""


def test_hostile_names_change_nothing(chromium: Browser, tmp_path: Path, gallery: Path) -> None:
    file = tmp_path / "page.html"
    shapes: dict[str, list[str]] = {}
    for kind, name in {"plain": "plain", **NAMES}.items():
        file.write_text(render_report(carried_out(hostile(name), 2), "html"), encoding="utf-8")
        for device, size in SIZES.items():
            chromium.open(file, size)
            chromium.driver.save_screenshot(str(gallery / f"hostile-{kind}-{device}.png"))
            assert chromium.run(FITS) == [size[0], size[0]], kind
            assert chromium.loaded() == [], kind
            assert device == "phone" or chromium.run(TORN) == [], kind
        shapes[kind] = chromium.run(SHAPE)
        assert shapes[kind] == shapes["plain"], kind
    assert chromium.obstacles() == []
    assert chromium.complaints() == []


def test_axe_core_is_what_its_publisher_distributes() -> None:
    if not AXE.exists():
        pytest.skip("axe-core is in the repository, and not in the sdist")
    assert sha256(AXE.read_bytes()).hexdigest() == AXE_DIGEST
    assert AXE.read_text(encoding="utf-8").startswith("/*! axe v4.14.1\n")
    assert "axe-core) 4.14.1," in (AXE.parent / "README.md").read_text(encoding="utf-8")
