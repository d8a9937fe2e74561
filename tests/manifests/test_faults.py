"""Every wrong manifest is told what is wrong with it, where, and what would be right: the table is in `faults.txt`."""

from pathlib import Path

import pytest

from reconciler.model.targets import Level
from reconciler.model.wording import listed
from tests.building import KINDS
from tests.manifests.conftest import Folder

SECTIONS = {
    "<all kinds>": listed(KINDS),
    "<all sections>": listed(["prune", "unmanaged", *KINDS]),
    "<prunable sections>": listed(kind.name for kind in KINDS.values() if kind.prunable),
    "<sections of projects>": listed(kind.name for kind in KINDS.values() if Level.PROJECT in kind.models),
    "<sections of groups>": listed(kind.name for kind in KINDS.values() if Level.GROUP in kind.models),
}
"""What stands in the table for lists of sections, which grow with each kind."""

CASES = [
    case.partition("\n")[::2]
    for case in Path(__file__).with_name("faults.txt").read_text().removeprefix("=== ").split("\n\n=== ")
]


@pytest.mark.parametrize(("title", "case"), CASES, ids=[title for title, _ in CASES])
def test_what_is_said_of(title: str, case: str, folder: Folder) -> None:
    manifest, _, expected = case.partition(">>>\n")
    folder.put("a.yaml", manifest)
    for name, sections in SECTIONS.items():
        expected = expected.replace(name, sections)
    assert folder.faults("a.yaml") == expected.rstrip("\n"), title
