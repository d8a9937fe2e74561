"""Every wrong manifest is told what is wrong with it, where, and what would be right: the table is in `faults.txt`."""

from pathlib import Path

import pytest

from tests.manifests.conftest import Folder

CASES = [
    case.partition("\n")[::2]
    for case in Path(__file__).with_name("faults.txt").read_text().removeprefix("=== ").split("\n\n=== ")
]


@pytest.mark.parametrize(("title", "case"), CASES, ids=[title for title, _ in CASES])
def test_what_is_said_of(title: str, case: str, folder: Folder) -> None:
    manifest, _, expected = case.partition(">>>\n")
    folder.put("a.yaml", manifest)
    assert folder.faults("a.yaml") == expected.rstrip("\n"), title
