"""A real browser, without a window: Debian's Chromium, driven by selenium."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.wait import WebDriverWait

DESKTOP = 1280, 900
PHONE = 390, 844

MISSING = "the HTML report is looked at in a real browser: apt-get install -y chromium chromium-driver"


class Browser:
    """One window."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def open(self, file: Path, size: tuple[int, int] = DESKTOP, *, dark: bool = False) -> None:
        """Show a page and wait until its list is complete."""
        width, height = size
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": size == PHONE}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        self.driver.get(file.as_uri())
        self.wait_for(COMPLETE)

    def run(self, script: str, *arguments: object) -> Any:
        """Return what a script returns."""
        return self.driver.execute_script(script, *arguments)

    def wait_for(self, script: str) -> None:
        """Wait until a script returns something true."""
        WebDriverWait(self.driver, 30, 0.02).until(lambda driver: driver.execute_script(script), script)

    def texts(self, selector: str) -> list[str]:
        """Return the text of each element that a selector finds."""
        found = self.run(
            "return [...document.querySelectorAll(arguments[0])].map((each) => each.textContent)", selector
        )
        return [str(text) for text in found]

    def complaints(self) -> list[str]:
        """Return what the console says since it was last asked, such as what the page's policy forbade."""
        return [entry["message"] for entry in self.driver.get_log("browser")]  # type: ignore[no-untyped-call] # selenium says nothing of it


COMPLETE = """
const shown = document.getElementById("shown").textContent;
return !/^[0-9]/.test(shown) || document.querySelectorAll("#list .row").length === parseInt(shown);
"""


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """Start a browser; skip the test where there is none."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not driver:
        pytest.skip(MISSING)
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    switches = ["headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", "disable-background-networking"]
    for switch in [*switches, "hide-scrollbars", "host-resolver-rules=MAP * ~NOTFOUND", f"user-data-dir={profile}"]:
        options.add_argument(f"--{switch}")
    window = webdriver.Chrome(options=options, service=Service(driver))
    try:
        yield Browser(window)
    finally:
        window.quit()
