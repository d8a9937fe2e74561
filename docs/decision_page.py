"""The picture of the decision page: `python -m docs.decision_page` takes it, in a real browser.

A page does not look the same in every version of a browser, so a new picture says nothing of the old one. Beside the
picture stands the digest of the page that it shows, which changes with the page's templates, styles and scripts.
"""

from base64 import b64decode
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

from reconciler.reports import render_plan
from tests.render.browser import browser
from tests.render.fleets import fleet

FOLDER = Path(__file__).parent
PICTURE = FOLDER / "decision-page.webp"
DIGEST = FOLDER / "decision-page.sha256"

PROJECTS = 24
SIZE = 1280, 1060


def the_page() -> str:
    """Return the page."""
    return render_plan(fleet(PROJECTS), "html")


def digest(page: str) -> str:
    """Return what stands beside the picture of a page."""
    return f"{sha256(page.encode()).hexdigest()}\n"


def picture(page: str) -> bytes:
    """Return the picture of a page, as WebP."""
    with TemporaryDirectory() as folder, browser(Path(folder, "profile")) as window:
        file = Path(folder, "page.html")
        file.write_text(page, encoding="utf-8")
        window.open(file, SIZE)
        options = {"format": "webp", "quality": 90}
        return b64decode(window.driver.execute_cdp_cmd("Page.captureScreenshot", options)["data"])


if __name__ == "__main__":
    shown = the_page()
    PICTURE.write_bytes(picture(shown))
    DIGEST.write_text(digest(shown), encoding="utf-8")
