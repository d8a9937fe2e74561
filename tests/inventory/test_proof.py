"""The proof that a commit declared an object: by its own manifests, each commit read once."""

import logging
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.manifests import Member, read_manifests
from reconciler.memory.inventory import ObjectLine
from reconciler.memory.proof import Proof
from reconciler.model.targets import Identity, Level, Target
from tests.inventory.conftest import Folder
from tests.inventory.test_absence import milestone
from tests.inventory.test_revision import CONFIGURATION, NOW

SET = "apiVersion: reconciler/v1\nkind: ProjectSet\nmetadata: {name: all}\nselect: {group: acme}\nspec: {milestones: {s: {}}}\n"


def called(target: str) -> set[Identity]:
    """Return the project 7 by its ID and by its path, and others by nothing."""
    names = [Target(Level.PROJECT, 7), Target(Level.PROJECT, "acme/api")]
    return {name.identity for name in names} if target == "project 7" else set()


def proof() -> Proof:
    present = read_manifests(NOW)
    return Proof(Path(), NOW, present, {"acme": [Member("acme/api")]}, {Target(Level.PROJECT, 7): "acme/api"}, called)


def at(commit: str, name: str, target: str = "project 7") -> ObjectLine:
    return replace(milestone(1, name, commit), target=target)


def test_a_commit_proves_what_its_manifests_declare(folder: Folder, caplog: pytest.LogCaptureFixture) -> None:
    folder.project("manifests/a.yaml", "{milestones: {a: {}, gone: null}}")
    folder.write("manifests/set.yaml", SET)
    first = folder.git.commit()
    folder.project("manifests/a.yaml", "{milestones: {'{name}': {}}}", "7")
    named = (folder.git.folder / "manifests" / "a.yaml").read_text().replace("path: 7", "id: 7")
    folder.write("manifests/a.yaml", named)
    second = folder.git.commit()
    (folder.git.folder / "manifests" / "set.yaml").unlink()
    folder.project("manifests/a.yaml", "{milestones: {b: {}}}")
    third = folder.git.commit()
    its = proof()
    assert its.declares(at(first, "a"))
    assert its.declares(at(first, "s"))
    assert not its.declares(at(first, "gone"))
    assert not its.declares(at(first, "a", "project 8"))
    assert its.declares(at(second, "api"))
    assert not its.declares(at(second, "a"))
    assert not its.declares(at(third, "s"))
    assert caplog.messages == []


@pytest.mark.parametrize("name", ["path: acme/api", "id: 7"])
def test_a_set_of_a_group_that_nobody_lists_any_more_proves_what_it_declared(folder: Folder, name: str) -> None:
    folder.write("manifests/set.yaml", SET)
    first = folder.git.commit()
    (folder.git.folder / "manifests" / "set.yaml").unlink()
    document = f"apiVersion: reconciler/v1\nkind: Project\nmetadata: {{{name}}}\nspec: {{milestones: {{}}}}\n"
    folder.write(
        "manifests/a.yaml", document + "---\n" + document.replace("Project", "Group").replace(name, "path: acme")
    )
    folder.git.commit()
    its = replace(proof(), discovered={})
    assert its.declares(at(first, "s"))
    assert not its.declares(at(first, "s", "project 8"))


def test_what_cannot_be_read_proves_nothing_and_is_told_once(folder: Folder, caplog: pytest.LogCaptureFixture) -> None:
    folder.project("manifests/a.yaml", "{milestones: {a: {}}}")
    folder.project("manifests/b.yaml", "{milestones: [", "acme/web")
    partly = folder.git.commit()
    folder.project("manifests/b.yaml", "{milestones: {}}", "acme/web")
    folder.write(CONFIGURATION, "[")
    broken = folder.git.commit()
    (folder.git.folder / CONFIGURATION).unlink()
    its = proof()
    with caplog.at_level(logging.WARNING, "reconciler"):
        assert its.declares(at(partly, "a"))
        assert not its.declares(at(broken, "a"))
        assert not its.declares(at(broken, "b"))
    first, second = caplog.messages
    assert first.startswith(f"{partly}: files with errors there are left out: manifests/b.yaml\n")
    assert second.startswith(
        f"the manifests at {broken[:7]} cannot be read, and nothing is deleted that only they declared\n"
    )
