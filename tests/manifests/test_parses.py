"""How often a file is parsed: nothing that grows with the fleet parses a file again for each target."""

from collections import Counter

import pytest

from reconciler.manifests import sources
from reconciler.manifests.yaml_reader import Positions, read_positions
from reconciler.model.targets import Address
from tests.manifests.conftest import Folder

PROJECTS = 30
PROFILES = 40


@pytest.fixture
def parses(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each text is parsed for the positions in it."""
    counts: Counter[str] = Counter()

    def counted(text: str) -> Positions:
        counts[text] += 1
        return read_positions(text)

    monkeypatch.setattr(sources, "read_positions", counted)
    return counts


def test_the_places_in_each_profile_and_set_are_found_once_however_many_there_are(
    folder: Folder, parses: Counter[str]
) -> None:
    names = [f"p{number}" for number in range(PROFILES)]
    for number, name in enumerate(names):
        kind = "kind: ProjectSet\nselect: {group: acme}" if number % 2 else "kind: Profile"
        spec = f"spec: {{milestones: {{{name}: {{}}}}}}\n"
        folder.put(f"{name}.yaml", f"apiVersion: reconciler/v1\n{kind}\nmetadata: {{name: {name}}}\n{spec}")
    for number in range(PROJECTS):
        metadata = f"{{path: acme/a{number}, profiles: [{', '.join(names[::2])}]}}"
        folder.put(f"a{number}.yaml", f"apiVersion: reconciler/v1\nkind: Project\nmetadata: {metadata}\nspec: {{}}\n")
    manifests = folder.read()
    origins = [
        manifests.origin(Address(each.target, "milestones", "milestones", "milestone", name))
        for each in manifests.desired.targets
        for name in names
    ]
    places = [f"{name}.yaml:{5 if number % 2 else 4}" for number, name in enumerate(names)]
    assert origins == places * PROJECTS
    assert sorted(parses.values()) == [1] * PROFILES
