"""Routes of other people's packages, found by the entry point group `reconciler.sandbox_routes`."""

import subprocess
import sys
from pathlib import Path

import pytest

from reconciler.sandbox import SandboxError
from reconciler.sandbox.routes import modules

STICKERS = '''
from reconciler.sandbox.collection import RouteCollection
from reconciler.sandbox.parameters import boolean, text
from reconciler.sandbox.records import CountedItem, StoredItem


class Sticker(CountedItem):
    """Something on a group."""

    name: str
    shiny: bool = False


class Banner(StoredItem):
    """Something on the instance."""

    words: str


STICKERS = RouteCollection(
    "stickers",
    Sticker,
    "/groups/:id/stickers",
    part="sticker_id",
    new=(text("name", required=True), boolean("shiny")),
    changes=(boolean("shiny"),),
)
BANNERS = RouteCollection("banners", Banner, "/banners", new=(text("words", required=True),), changes=(text("words"),))
BADGES = RouteCollection("badges", StoredItem, "/projects/:id/badges")
SECTIONS = (STICKERS.section, BANNERS.section, BADGES.section)
ROUTES = (*STICKERS.routes(), *BANNERS.routes("list", "create", "update"), *BADGES.routes("list"))
'''
STORY = """
import httpx
from reconciler.sandbox import running

stickers = [{"name": "a", "iid": 4}, {"name": "b"}]
state = {
    "instance": {"now": "2026-03-01", "banners": [{"words": "hello"}]},
    "users": [{"username": "ada", "tokens": ["a"]}, {"username": "root", "admin": True, "tokens": ["r"]}],
    "groups": [{"path": "acme", "members": [{"user": "ada", "role": "owner"}], "stickers": stickers}],
    "projects": [{"path": "acme/web", "badges": [{"id": 7}]}],
}
with running(state) as sandbox:
    for token, method, path, body in (
        ("a", "GET", "groups/acme/stickers?per_page=1", None),
        ("a", "POST", "groups/acme/stickers", {"name": "c"}),
        ("a", "PUT", "groups/acme/stickers/3", {"shiny": True}),
        ("a", "DELETE", "groups/acme/stickers/1", None),
        ("a", "GET", "groups/acme/stickers/1", None),
        ("a", "GET", "banners", None),
        ("r", "POST", "banners", {"words": "bye"}),
        ("r", "PUT", "banners/1", {"words": "hi"}),
        ("a", "GET", "projects/acme%2Fweb/badges", None),
    ):
        headers = {"private-token": token}
        print(httpx.request(method, f"{sandbox.api_url}/{path}", json=body, headers=headers).text)
    kept = sandbox.state()
    print([sticker["iid"] for sticker in kept["groups"][0]["stickers"]], kept["instance"]["banners"])
"""
TOLD = """
[{"id":1,"created_at":"2026-01-01T00:00:00Z","updated_at":"2026-01-01T00:00:00Z","iid":4,"name":"a","shiny":false}]
{"id":3,"created_at":"2026-03-01T00:00:01Z","updated_at":"2026-03-01T00:00:01Z","iid":6,"name":"c","shiny":false}
{"id":3,"created_at":"2026-03-01T00:00:01Z","updated_at":"2026-03-01T00:00:02Z","iid":6,"name":"c","shiny":true}

{"message":"404 Not found"}
{"message":"403 Forbidden"}
{"id":2,"words":"bye"}
{"id":1,"words":"hi"}
[{"id":7}]
[5, 6] [{'id': 1, 'words': 'hi'}, {'id': 2, 'words': 'bye'}]
"""


def install(folder: Path, code: str) -> None:
    """Install a package into the folder."""
    (folder / "stickers_of_theirs.py").write_text(code)
    about = folder / "stickers-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: reconciler-stickers\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[reconciler.sandbox_routes]\nstickers = stickers_of_theirs\n")


@pytest.mark.processes
def test_a_package_brings_a_section_and_its_endpoints(tmp_path: Path) -> None:
    install(tmp_path, STICKERS)
    story = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{STORY}"
    done = subprocess.run([sys.executable, "-c", story], capture_output=True, text=True, check=False)
    assert (done.stderr, done.stdout) == ("", TOLD.lstrip())


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("raise RuntimeError('no luck')", "RuntimeError: no luck"),
        ("", "AttributeError: module 'stickers_of_theirs' has no attribute 'ROUTES'"),
        ("from reconciler.sandbox.routes.milestones import ROUTES, SECTIONS", "another module keeps milestones"),
    ],
)
def test_a_package_that_is_broken_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, reason: str
) -> None:
    install(tmp_path, code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "stickers_of_theirs", raising=False)
    with pytest.raises(SandboxError) as caught:
        modules.__wrapped__()
    assert str(caught.value) == (
        f"package reconciler-stickers 1.0: sandbox routes stickers cannot be used: {reason}; update or uninstall the package"
    )
