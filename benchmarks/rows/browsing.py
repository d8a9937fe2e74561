"""The HTML pages in a real browser: how long they take to open, and to show what a filter leaves."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from statistics import median

from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.running import Failed
from reconciler.reports import render_plan
from reconciler.reports.fleet import page
from tests.render.browser import MISSING, Browser, browser, found
from tests.render.fleets import fleet, history

PAGES: Mapping[str, Callable[[int], str]] = {
    "decision page": lambda projects: render_plan(fleet(projects), "html"),
    "fleet page": lambda projects: page(fleet(projects), history(projects)),
}

WORDS = ("service-0", "milestone 2027", "mobile/", "legacy", "train 7")
"""What is typed into the search, one after the other: it leaves nearly all, some, and nearly nothing."""

CLICKED = (
    ".tile",
    "th[data-section] button",
    "#matrix [role=rowheader]",
    "#matrix .matrix-chip",
    "#matrix .matrix-section",
)
"""What filters by a click; the last one of each that the page shows, which is clicked a second time to take it back."""

WATCH = """
let changed = 0;
new MutationObserver(() => { changed = performance.now(); })
  .observe(document, { subtree: true, childList: true, characterData: true, attributes: true });
// The moment after the next frame was laid out and painted.
const frame = () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(() => resolve(performance.now()))));
const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

// Milliseconds of the page's clock at the first frame after which the page does not change any more.
window.settled = async () => {
  let shown = await frame();
  for (let quiet = 0; quiet < 10; quiet += 1) {
    const before = changed;
    await pause(30);
    if (before === changed) continue;
    quiet = 0;
    shown = await frame();
  }
  return shown;
};
window.opened = new Promise((resolve) => addEventListener("load", () => settled().then(resolve)));
"""
"""Runs in each page before its own script."""

OPENED = """
const painted = performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0;
return Math.max(await window.opened, painted);
"""

TYPED = """
const box = document.querySelector("#text, .matrix-search");
box.focus();
box.value = args[0];
const began = performance.now();
box.dispatchEvent(new InputEvent("input", { bubbles: true }));
return (await settled()) - began;
"""

CLICK = """
const those = [...document.querySelectorAll(args[0])].filter((each) => !each.disabled);
const began = performance.now();
those.at(-1)?.click();
return (await settled()) - began;
"""


def browsing(bench: Bench) -> list[Figure]:
    """Open each page several times, and filter it in each way, of which the slowest counts.

    Raises:
        Failed: Chromium is not installed.
    """
    if found() is None:
        raise Failed(MISSING)
    with browser(bench.folder / "profile") as window:
        window.driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
        window.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})
        return [
            figure
            for name in PAGES
            for projects in bench.sizes.browsed
            for figure in _measured(window, bench, name, projects)
        ]


def _measured(window: Browser, bench: Bench, name: str, projects: int) -> list[Figure]:
    file = bench.folder / f"{name}-{projects}.html"
    file.write_text(PAGES[name](projects), encoding="utf-8")
    opened: list[float] = []
    filtered: dict[str, list[float]] = defaultdict(list)
    busy: dict[str, list[float]] = defaultdict(list)

    def measure(way: str, script: str, argument: str) -> None:
        before = _worked(window)
        filtered[way].append(window.run_later(script, argument))
        busy[way].append(_worked(window) - before)

    for _ in range(bench.sizes.repeat):
        window.open(file)
        opened.append(window.run_later(OPENED) / 1000)
        for word in (*WORDS, ""):
            measure(f"{word!r} typed", TYPED, word)
        for selector in CLICKED:
            for way in ("a click on {}", "another click on {}"):
                measure(way.format(selector), CLICK, selector)
    slowest = max(filtered, key=lambda way: median(filtered[way]))
    about = (
        f"Chromium {window.driver.capabilities['browserVersion']} without a window; {name} for {projects:,} projects: "
        f"{file.stat().st_size / 1e6:.2f} MB, the slowest filter is {slowest}, for which "
        f"the page's thread works {median(busy[slowest]):.0f} ms"
    )
    return [
        Figure(f"{name}, {projects:,} projects, opens", tuple(opened), "s", 1, about=about),
        Figure(f"{name}, {projects:,} projects, filters", tuple(filtered[slowest]), "ms", 100, about=about),
    ]


def _worked(window: Browser) -> float:
    """Return the CPU time that the page's thread has taken, in milliseconds."""
    found = window.driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return 1000 * sum(float(each["value"]) for each in found if each["name"] == "TaskDuration")
