"""Fixtures: one browser for a whole test process."""

from collections.abc import Iterator

import pytest

from tests.render.browser import Browser, browser


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A window, in which each test opens its own page; without Chromium, the test is skipped."""
    with browser(tmp_path_factory.mktemp("profile")) as window:
        yield window
