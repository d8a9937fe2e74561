"""The manifests of a revision: whole, with its own `reconciler.yaml`, and without reading twice what is the same now."""

from pathlib import Path

import pytest

from reconciler.errors import ManifestErrors
from reconciler.manifests import Inputs, Member, read_manifests
from reconciler.memory.effective import digest_of
from reconciler.memory.revision import Revision
from tests.building import KINDS
from tests.inventory.conftest import Folder

CONFIGURATION = "reconciler.yaml"


def declared(revision: Revision) -> dict[str, list[str]]:
    """Return the milestones of each target."""
    return {
        str(target.target): sorted(str(name) for section in target.sections for name in section.wanted["milestones"])
        for target in revision.manifests.desired.targets
    }


NOW = Inputs([Path("manifests")], KINDS)


@pytest.mark.untraced
@pytest.mark.parametrize("shared", [True, False])
def test_a_revision_is_read_with_its_own_configuration(folder: Folder, shared: bool) -> None:
    """Paths and values are those of that time, and so is what templates lead to."""
    folder.write(CONFIGURATION, "paths: [fleet, more]\nvalues: strict.yaml\nset: {stage: then, number: 1}\nenv: []\n")
    folder.write("strict.yaml", "name: strict\n")
    folder.project("fleet/a.yaml.j2", "{milestones: {'{{ name }} {{ stage }}': {}}}")
    folder.project("more/b.yaml", "{milestones: {b: {}}}", "acme/web")
    folder.git.commit()
    folder.write(CONFIGURATION, "paths: more\nvalues: lax.yaml\n")
    folder.write("lax.yaml", "name: lax\n")
    folder.write("strict.yaml", "name: changed\n")
    folder.git.commit()
    now = Inputs([Path("more")], KINDS, ["lax.yaml"], {"stage": "now"})
    revision = folder.then("HEAD~1", now, shared=shared)
    assert declared(revision) == {"project acme/api": ["strict then"], "project acme/web": ["b"]}
    assert revision.warnings == ()
    options = folder.then("HEAD~1", now, given=("paths", "values", "set", "env"), shared=shared)
    assert declared(options) == {"project acme/web": ["b"]}
    origins = [target.origin for target in options.manifests.desired.targets]
    assert origins == ["more/b.yaml:1" if shared else "HEAD~1:more/b.yaml:1"]


def test_a_revision_without_configuration_has_the_usual_paths(folder: Folder) -> None:
    folder.project("manifests/a.yaml", "{milestones: {a: {}}}")
    folder.project("other/b.yaml", "{milestones: {b: {}}}", "acme/web")
    folder.git.commit()
    assert declared(folder.then("HEAD", NOW)) == {"project acme/api": ["a"]}


def test_a_file_that_has_changed_is_read_as_it_was(folder: Folder) -> None:
    folder.project("manifests/a.yaml", "{milestones: {a: {}, b: {}}}")
    folder.git.commit()
    folder.project("manifests/a.yaml", "{milestones: {a: {}}}")
    assert declared(folder.then("HEAD", NOW)) == {"project acme/api": ["a", "b"]}


def test_a_configuration_that_was_not_valid_leaves_it_unknown_what_was_declared(folder: Folder) -> None:
    folder.write(CONFIGURATION, "paths: [")
    folder.project("manifests/a.yaml", "{milestones: {a: {}}}")
    folder.git.commit()
    with pytest.raises(ManifestErrors, match=r"HEAD:reconciler\.yaml:1"):
        folder.then("HEAD", NOW)


def test_files_with_errors_are_left_out_with_a_warning(folder: Folder) -> None:
    """A file that is the same now may lack what only the present has, such as a profile."""
    folder.project("manifests/broken.yaml", "{milestones: [", "acme/lib")
    folder.project("manifests/good.yaml", "{milestones: {a: {}}}", "acme/web")
    user = "apiVersion: reconciler/v1\nkind: Project\nmetadata: {path: acme/api, profiles: [new]}\nspec: {}\n"
    folder.write("manifests/user.yaml", user)
    folder.git.commit()
    folder.project("manifests/broken.yaml", "{milestones: {}}", "acme/lib")
    profile = "apiVersion: reconciler/v1\nkind: Profile\nmetadata: {name: new}\nspec: {milestones: {n: {}}}\n"
    folder.write("manifests/profile.yaml", profile)
    revision = folder.then("HEAD", NOW)
    assert declared(revision) == {"project acme/web": ["a"]}
    first, *more = revision.warnings
    assert first.startswith("HEAD: files with errors there are left out: manifests/broken.yaml")
    assert "manifests/user.yaml" in "".join([first, *more])


def test_templates_without_valid_values_are_left_out(folder: Folder) -> None:
    folder.write(CONFIGURATION, "values: values.yaml\n")
    folder.write("values.yaml", "[")
    folder.project("manifests/a.yaml.j2", "{milestones: {a: {}}}")
    folder.project("manifests/b.yaml", "{milestones: {b: {}}}", "acme/web")
    folder.git.commit()
    folder.write("values.yaml", "")
    revision = folder.then("HEAD", NOW)
    assert declared(revision) == {"project acme/web": ["b"]}
    assert revision.warnings[0].startswith("HEAD: the values for templates are not valid there; no template is read\n")


@pytest.mark.untraced
def test_no_template_of_a_revision_reads_a_token(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STAGE", "eu")
    monkeypatch.setenv("COPY", "a-long-token")
    monkeypatch.setenv("RECONCILER_TOKEN", "a-long-token")
    folder.write(CONFIGURATION, "env: [STAGE, COPY]\n")
    folder.project("manifests/a.yaml.j2", "{milestones: {'{{ env.STAGE }}{{ env.COPY }}': {}}}")
    folder.project("manifests/b.yaml.j2", "{milestones: {'{{ env.STAGE }}': {}}}", "acme/web")
    folder.git.commit()
    revision = folder.then("HEAD", NOW, shared=False)
    assert revision.inputs.env_names == ["STAGE"]
    assert declared(revision) == {"project acme/web": ["eu"]}
    assert "a-long-token" not in "".join(revision.warnings)


def test_sets_are_applied_once_their_groups_are_listed(folder: Folder) -> None:
    chosen = "apiVersion: reconciler/v1\nkind: ProjectSet\nmetadata: {name: %s}\nselect: {group: acme}\nspec: {milestones: {x: {due_date: %s}}}\n"
    folder.write("manifests/set.yaml", chosen % ("all", "2026-12-01"))
    folder.git.commit()
    revision = folder.then("HEAD", NOW).with_discovered({"acme": [Member("acme/api"), Member("acme/web")]}, {})
    assert declared(revision) == {"project acme/api": ["x"], "project acme/web": ["x"]}
    folder.write("manifests/other.yaml", chosen % ("other", "2026-12-02"))
    folder.git.commit()
    (folder.git.folder / "manifests" / "other.yaml").unlink()
    clashing = folder.then("HEAD", NOW).with_discovered({"acme": [Member("acme/api")]}, {})
    assert declared(clashing) == {"project acme/api": ["x"]}
    (warning,) = clashing.warnings
    assert warning.startswith("HEAD: files with errors there are left out: manifests/")


def test_an_archive_that_was_another_then_makes_another_creation(folder: Folder) -> None:
    group = "apiVersion: reconciler/v1\nkind: Group\nmetadata: {path: acme/team}\ncreate: {from_archive: team.gz}\n"
    folder.write("manifests/group.yaml", group)
    folder.write("manifests/team.gz", "1")
    folder.git.commit()
    present = read_manifests(NOW).desired.targets[0]
    assert digest_of(folder.then("HEAD", NOW).manifests.desired.targets[0]) == digest_of(present)
    folder.write("manifests/team.gz", "2")
    changed = read_manifests(NOW).desired.targets[0]
    assert digest_of(folder.then("HEAD", NOW).manifests.desired.targets[0]) != digest_of(changed)
