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
    others = Address(manifests.desired.targets[0].target, "epics", "epics", "epic", "p0")
    assert manifests.origin(others) == ""
    places = [f"{name}.yaml:{5 if number % 2 else 4}" for number, name in enumerate(names)]
    assert origins == places * PROJECTS
    assert sorted(parses.values()) == [1] * PROFILES


def test_advice_is_located_when_it_is_shown(folder: Folder, parses: Counter[str]) -> None:
    group = "apiVersion: reconciler/v1\nkind: Group\nmetadata: {path: acme}\n"
    folder.put("acme.yaml", f"{group}spec: {{approval_settings: {{allow_author_approval: false}}}}\n")
    for number in range(PROJECTS):
        spec = "{job_token_scope: {projects: []}, approval_settings: {allow_author_approval: true}}"
        head = f"apiVersion: reconciler/v1\nkind: Project\nmetadata: {{path: acme/a{number}}}\n"
        folder.put(f"a{number:02}.yaml", f"{head}spec: {spec}\n")
    manifests = folder.read()
    assert (manifests.warnings, parses) == ((), {})
    advice = manifests.advice
    assert [(each.path, each.line, each.column, each.message[:32]) for each in advice] == [
        (f"a{number:02}.yaml", 4, *place)
        for number in range(PROJECTS)
        for place in ((36, "an empty list removes only what "), (84, "group acme locks it at false (ac"))
    ]
    assert advice[1].message == "group acme locks it at false (acme.yaml:4): change it there or leave it out"
