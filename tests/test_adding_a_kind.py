"""Adding a kind takes four new files, a line in the changelog and what is generated, and no other edit."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

FILES = {
    "reconciler/kinds/badges.py": '''\
"""Badges of a project or a group, each known by its name, which need not be unique."""

from pydantic import Field

from reconciler.model.endpoints import Collection, Listing, Names, Reading, Writes
from reconciler.model.kind import Kind, Needs, Role
from reconciler.model.protocols import Json
from reconciler.model.resource import Item
from reconciler.model.targets import Level


class Badge(Item):
    """A picture with a link on the page of a project."""

    link_url: str = Field(default="", description="Where a click leads.", examples=["https://example.com/ci"])
    image_url: str = Field(default="", description="The picture.", examples=["https://example.com/ci.svg"])


def own(reading: Reading) -> Json:
    """The list of a project shows the badges of the groups above it too, each with its `kind`."""
    return [entry for entry in reading.answer if entry["kind"] == reading.target.level]


BADGES = Collection(
    "badges",
    Badge,
    title="badge",
    key="name",
    listing=Listing(complete=own),
    names=Names(unique=False),
    writes=Writes(required=("link_url", "image_url")),
)

KIND = Kind(
    name="badges",
    summary="Badges of a project or a group, by name.",
    models={Level.GROUP: dict[str, Badge | None], Level.PROJECT: dict[str, Badge | None]},
    parts=(BADGES,),
    needs=Needs(roles={Level.GROUP: Role.OWNER, Level.PROJECT: Role.MAINTAINER}),
)
''',
    "reconciler/sandbox/routes/badges.py": '''\
"""Badges: the list of a project shows those of the groups above it too."""

from typing import Any

from ..call import Call
from ..collection import RouteCollection
from ..parameters import text
from ..records import StoredItem
from ..state import MAINTAINER, OWNER, GroupOrProject, Project


class Badge(StoredItem):
    """One badge."""

    name: str | None = None
    link_url: str
    image_url: str


class _Badges(RouteCollection[Badge]):
    """The badges of a project, for its maintainers, or of a group, for its owners."""

    def owner(self, call: Call) -> GroupOrProject:
        """Return the owner in the path."""
        return call.project(MAINTAINER) if call.level == "project" else call.group(OWNER)

    def select(
        self, call: Call, owner: GroupOrProject, sent: dict[str, Any]
    ) -> list[tuple[GroupOrProject, Badge]]:
        """Return those of the owner, and of the groups above a project."""
        above = call.state.groups_above(owner) if call.level == "project" else ()
        return [*((each, item) for each in above for item in self.section.of(each)), *super().select(call, owner, sent)]

    def show(self, call: Call, owner: GroupOrProject, item: Badge) -> dict[str, Any]:
        """Return the record of a badge."""
        return {**super().show(call, owner, item), "kind": "project" if isinstance(owner, Project) else "group"}


WORDS = [text(name) for name in ("name", "link_url", "image_url")]
BADGES = _Badges("badges", Badge, "/projects/:id/badges", "/groups/:id/badges", new=WORDS, changes=WORDS)
SECTIONS = (BADGES.section,)
ROUTES = BADGES.routes()
''',
    "examples/badges.yaml": """\
# yaml-language-server: $schema=../schemas/manifest.schema.json
apiVersion: reconciler/v1
kind: Group
metadata: {path: acme}
spec:
  badges:                           # keyed by name
    CI: {link_url: https://example.com/ci, image_url: https://example.com/ci.svg}
---
# yaml-language-server: $schema=../schemas/manifest.schema.json
apiVersion: reconciler/v1
kind: Project
metadata: {path: acme/payments/api}
spec:
  badges:                           # keyed by name
    CI: {link_url: https://example.com/api, image_url: https://example.com/api.svg}
    Coverage: {link_url: https://example.com/coverage, image_url: https://example.com/coverage.svg}
""",
    "tests/kinds/test_badges.py": '''\
"""Badges: of those of the groups above nothing is changed, and they may have the same names."""

from tests.building import ACME, section
from tests.engine_driver import EngineDriver


def test_a_project_may_have_a_badge_of_the_name_that_a_group_above_has(engine: EngineDriver) -> None:
    badge = {"link_url": "https://example.com/ci", "image_url": "https://example.com/ci.svg"}
    (above,) = engine.step(section("badges", {"CI": badge}, ACME))
    assert above.startswith("POST groups/acme/badges")
    (below,) = engine.step(section("badges", {"CI": badge}))
    assert below.startswith("POST projects/acme%2Fapi/badges")
    assert engine.step(section("badges", {}, prune=True)) == ["DELETE projects/acme%2Fapi/badges/2"]
''',
}

TESTS = (
    "kinds/test_badges.py",
    "test_every_kind.py",
    "manifests/test_faults.py",
    "test_schemas.py",
    "docs/test_site.py",
)
OF_A_NEW_KIND = "badges or every_kind_has or exceptions or prun or up_to_date or examples or adding_a_kind_takes"
OF_A_NEW_KIND = f"({OF_A_NEW_KIND}) and not read_or_is_unreadable"
"""The tests that look at all kinds, as far as they concern one more, without those that draw its answers by chance."""


@pytest.mark.untraced
def test_a_new_kind_is_four_files_and_what_is_generated(tmp_path: Path) -> None:
    copy = tmp_path / "reconciler"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".[!c]*", "build", "screenshots"))
    for name, text in FILES.items():
        (copy / name).write_text(text)
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    tests = [f"tests/{file}" for file in TESTS]
    for line in (
        ["reconciler", "schema", "--write", "schemas"],
        ["docs"],
        ["pytest", "-q", "-x", "-p", "no:cacheprovider", *tests, "-k", OF_A_NEW_KIND],
    ):
        python = [sys.executable, "-m", *line]
        done = subprocess.run(python, cwd=copy, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
