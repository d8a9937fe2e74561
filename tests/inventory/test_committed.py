"""Whether the manifests of a run are just as the checked-out commit has them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.manifests import Inputs, read_manifests
from reconciler.memory.committed import committed
from tests.building import KINDS
from tests.inventory.conftest import Folder

INPUTS = Inputs([Path("manifests")], KINDS, ["values.yaml"])


def commit_of_manifests() -> str:
    return committed(INPUTS, read_manifests(INPUTS))


def a_changed_manifest(folder: Folder) -> None:
    folder.project("manifests/a.yaml", "{milestones: {b: {}}}")


def a_further_manifest(folder: Folder) -> None:
    folder.project("manifests/more.yaml", "{}", "acme/more")


def a_manifest_that_is_gone(folder: Folder) -> None:
    (folder.git.folder / "manifests/b.yaml").unlink()


def another_configuration(folder: Folder) -> None:
    folder.write("reconciler.yaml", "paths: [manifests]\n")


def no_configuration(folder: Folder) -> None:
    (folder.git.folder / "reconciler.yaml").unlink()


def other_values(folder: Folder) -> None:
    folder.write("values.yaml", "a: 2\n")


def another_archive(folder: Folder) -> None:
    folder.write("manifests/team.gz", "2")


@pytest.mark.parametrize(
    "change",
    [
        a_changed_manifest,
        a_further_manifest,
        a_manifest_that_is_gone,
        another_configuration,
        no_configuration,
        other_values,
        another_archive,
    ],
)
def test_a_commit_is_named_only_if_it_leads_to_what_was_read(folder: Folder, change: Callable[[Folder], None]) -> None:
    assert committed(Inputs([Path("manifests")], KINDS), read_manifests(Inputs([], KINDS))) == "", (
        "nothing was ever committed"
    )
    folder.project("manifests/a.yaml", "{milestones: {a: {}}}")
    folder.project("manifests/b.yaml", "{}", "acme/web")
    group = "apiVersion: reconciler/v1\nkind: Group\nmetadata: {path: acme}\ncreate: {from_archive: %s}\n"
    folder.write("manifests/group.yaml", group % "team.gz")
    folder.write("manifests/other.yaml", group.replace("acme", "other") % "kept.gz")
    folder.write("manifests/team.gz", "1")
    folder.write("manifests/kept.gz", "1")
    folder.write(".gitignore", "kept.gz\n")
    folder.write("reconciler.yaml", "paths: manifests\nvalues: values.yaml\n")
    folder.write("values.yaml", "a: 1\n")
    head = folder.git.commit()
    folder.write("notes.txt", "no manifest")
    folder.write("manifests/kept.gz", "2")
    assert commit_of_manifests() == head
    change(folder)
    assert commit_of_manifests() == ""
    folder.git.commit()
    assert commit_of_manifests() not in {"", head}
