"""A real browser, without a window: Debian's Chromium, driven by selenium."""

import json
import shutil
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

DESKTOP = 1280, 900
PHONE = 390, 844
SIZES = {"desktop": DESKTOP, "phone": PHONE}

LOOKS = {
    "light": {"prefers-color-scheme": "light", "forced-colors": "none"},
    "dark": {"prefers-color-scheme": "dark", "forced-colors": "none"},
    "forced": {"prefers-color-scheme": "dark", "forced-colors": "active"},
}
"""What a page is told of the colours that a person wants. Forced ones are those of the system, and no others."""

MISSING = "the HTML report is looked at in a real browser: apt-get install -y chromium chromium-driver"

AXE = Path(__file__).parent / "axe" / "axe.min.js"
AXE_DIGEST = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c"
"""SHA-256 of the file, as the npm package of the version that its README names has it."""


class Browser:
    """One window."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def open(
        self,
        file: Path,
        size: tuple[int, int] = DESKTOP,
        look: str = "light",
        *,
        fragment: str = "",
    ) -> None:
        """Show a page, with that fragment in its URL, and wait until it is complete."""
        width, height = size
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": size == PHONE}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        self.emulate("", look)
        address = file.as_uri()
        if fragment and self.driver.current_url.partition("#")[0] == address:
            self.driver.get("about:blank")  # else a page that differs only in its fragment would not be loaded again
        self.driver.get(address + (f"#{fragment}" if fragment else ""))
        self.wait_for(COMPLETE)

    def emulate(self, media: str, look: str = "light") -> None:
        """Let the page believe that it is printed (`print`) or shown (empty), in some colours."""
        features = [{"name": name, "value": value} for name, value in LOOKS[look].items()]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})

    def run(self, script: str, *arguments: object) -> Any:
        """Return what a script returns."""
        return self.driver.execute_script(script, *arguments)

    def run_later(self, script: str, *arguments: object) -> Any:
        """Return what the promise of a script leads to."""
        wrapped = "const done = arguments[arguments.length - 1]; (async (...args) => {%s})(...arguments).then(done)"
        return self.driver.execute_async_script(wrapped % script, *arguments)

    def wait_for(self, script: str, *arguments: object) -> None:
        """Wait until a script returns something true."""
        WebDriverWait(self.driver, 10, 0.02).until(lambda driver: driver.execute_script(script, *arguments), script)

    def texts(self, selector: str) -> list[str]:
        """Return the text of each element that a selector finds."""
        found = self.run(
            "return [...document.querySelectorAll(arguments[0])].map((each) => each.textContent)", selector
        )
        return [str(text) for text in found]

    def press(self, *keys: str) -> None:
        """Press keys, one after the other."""
        ActionChains(self.driver, duration=0).send_keys(*keys).perform()

    def focused(self) -> str:
        """Return the text of what has the focus."""
        return str(self.run("return document.activeElement.textContent"))

    @property
    def fragment(self) -> str:
        """What stands behind the `#` of the page's address."""
        return str(self.run("return location.hash")).removeprefix("#")

    @property
    def clipboard(self) -> str:
        """The text that was copied."""
        granted = {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
        self.driver.execute_cdp_cmd("Browser.grantPermissions", granted)
        return str(self.run_later("return navigator.clipboard.readText()"))

    def copied(self, selector: str) -> str:
        """Click on what copies something, and return the text once it is copied."""
        assert self.clipboard is not None  # which lets this page use it
        self.run_later("await navigator.clipboard.writeText('')")
        self.driver.find_element(By.CSS_SELECTOR, selector).click()
        wait = "let text; while (!(text = await navigator.clipboard.readText())) await new Promise((next) => "
        return str(self.run_later(f"{wait}setTimeout(next)); return text"))

    def heard(self) -> list[tuple[str, str]]:
        """Return the role and the name of each node that a screen reader hears, in its order."""
        nodes = self.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
        return [
            (str(node["role"]["value"]), str(node.get("name", {}).get("value", "")))
            for node in nodes
            if not node["ignored"]
        ]

    def complaints(self) -> list[str]:
        """Return what the console says since it was last asked, such as what the page's policy forbade."""
        return [entry["message"] for entry in self.driver.get_log("browser")]  # type: ignore[no-untyped-call] # selenium says nothing of it

    def loaded(self) -> list[str]:
        """Return the address of everything that the page has loaded, itself aside."""
        return list(self.run("return performance.getEntriesByType('resource').map((each) => each.name)"))

    def obstacles(self) -> list[str]:
        """Return the rules of axe-core that the page violates, each with the places; skip the test where it is not."""
        if not AXE.exists():
            pytest.skip("axe-core is in the repository, and not in the sdist")
        self.run(AXE.read_text(encoding="utf-8"))
        found = self.run_later(
            "return (await axe.run({ resultTypes: ['violations'], rules: { 'target-size': { enabled: true } } })).violations"
        )
        return [
            f"{each['id']}: {each['help']}: {json.dumps(node['target'])} {node['failureSummary']}"
            for each in found
            for node in each["nodes"]
        ]

    def pages_printed(self) -> int:
        """Return how many sheets of paper the page takes."""
        pdf = b64decode(self.driver.execute_cdp_cmd("Page.printToPDF", {})["data"])
        return pdf.count(b"/Type /Page\n")


COMPLETE = "return document.readyState === 'complete' && document.getElementById('shown').textContent !== ''"


def found() -> tuple[str, str] | None:
    """Return where Chromium and its driver are; None where they are not installed."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    return (chromium, driver) if chromium and driver else None


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """Start a browser; skip the test where there is none."""
    places = found()
    if places is None:
        pytest.skip(MISSING)
    options = webdriver.ChromeOptions()
    options.binary_location = places[0]
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    switches = ["headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", "disable-background-networking"]
    for switch in [*switches, "hide-scrollbars", "host-resolver-rules=MAP * ~NOTFOUND", f"user-data-dir={profile}"]:
        options.add_argument(f"--{switch}")
    window = webdriver.Chrome(options=options, service=Service(places[1]))
    try:
        yield Browser(window)
    finally:
        window.quit()
