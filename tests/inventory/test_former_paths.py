"""Former paths: the list alone proves nothing, since whoever can push writes what it says; its number does."""

from typing import Any

import pytest

from tests.inventory.checkout import Checkout

STAYS = "1 object no longer declared stays: the manifests at <first> do not declare it"


def renamed(user: Checkout, old: str, new: str) -> None:
    user.change(lambda project: project.update(path=new, renamed_from=[old]), old)


def forge(user: Checkout, path: str, name: str) -> None:
    """Say of a milestone of acme/lib that another project, at a path, declared it."""
    (number,) = [item["id"] for project in user.cli.sandbox.state()["projects"] for item in project.get("milestones", ()) if project["path"] == "acme/lib"]  # fmt: skip

    def change(lines: list[dict[str, Any]]) -> None:
        lines[:] = [line for line in lines if line.get("target") != "project 101"]
        lines[0]["commits"] = {"0": next(commit for commit, called in user.commits.items() if called == "first")}
        lines.append({"target": "project 101", "path": path})
        lines.append({"target": "project 101", "section": "milestones", "name": name, "id": number, "at": 0})

    user.forge(change)


def asked(user: Checkout) -> list[str]:
    """Return the records of projects that the last command asked for."""
    targets = [entry["target"] for entry in user.cli.sandbox.log()]
    user.cli.sandbox.clear_log()
    return [target for target in targets if target.startswith("/api/v4/projects/acme%2F") and target.count("/") == 4]


@pytest.mark.untraced
def test_the_former_path_of_a_project_proves_what_it_declared_if_the_service_redirects_it(user: Checkout) -> None:
    user.milestones("a", "b")
    user.commit("first")
    assert user.apply()[0] == 0
    renamed(user, "acme/api", "acme/new")
    user.milestones("a", path="acme/new")
    user.commit("second")
    user.cli.sandbox.clear_log()
    deletion = ["project acme/new", '  - milestone "b"     removed from the manifests since <first>']
    assert user.plan() == (0, deletion)
    assert asked(user) == ["/api/v4/projects/acme%2Fapi"]
    assert user.apply()[0] == 0
    assert (user.live("acme/new"), user.listed()) == (["a"], ["project 100 a <second>"])


@pytest.mark.parametrize("declared", [True, False])
def test_the_path_of_another_project_proves_nothing(user: Checkout, *, declared: bool) -> None:
    """Neither one that a document or a line has, nor one that the service shows to be another project's."""
    user.milestones("b")
    user.milestones(path="acme/lib", name="manifests/lib.yaml")
    user.commit("first")
    assert user.apply()[0] == 0
    user.change(lambda project: project.update(milestones=[{"title": "b"}]), "acme/lib")
    if not declared:
        (user.git.folder / "manifests/project.yaml").unlink()
        user.commit("second")
        assert user.apply()[0] == 0
    forge(user, "acme/api", "b")
    user.cli.sandbox.clear_log()
    assert user.plan() == (0, [STAYS])
    assert asked(user) == ([] if declared else ["/api/v4/projects/acme%2Fapi"])
    assert user.apply()[1] == [STAYS]
    assert user.live("acme/lib") == ["b"]


@pytest.mark.untraced
def test_a_project_that_is_gone_proves_nothing_for_another(user: Checkout) -> None:
    user.milestones("b")
    user.milestones(path="acme/lib", name="manifests/lib.yaml")
    user.commit("first")
    assert user.apply()[0] == 0
    user.change(lambda project: project.update(milestones=[{"title": "b"}]), "acme/lib")
    renamed(user, "acme/api", "acme/new")
    user.change(lambda project: project.update(renamed_from=[]), "acme/new")
    (user.git.folder / "manifests/project.yaml").unlink()
    user.commit("second")
    assert user.apply()[0] == 0
    forge(user, "acme/api", "b")
    assert user.plan() == (0, [STAYS])


@pytest.mark.untraced
def test_the_former_path_of_a_group_leads_nowhere_and_proves_what_it_declared(user: Checkout) -> None:
    document = "apiVersion: reconciler/v1\nkind: Group\nmetadata: {{path: {}}}\nspec: {{milestones: {{{}}}}}\n"
    state = user.cli.sandbox.state()
    state["groups"].append({"path": "acme/old"})
    user.cli.sandbox.replace_state(state)
    user.write("manifests/group.yaml", document.format("acme/old", "a: {}, b: {}"))
    user.commit("first")
    assert user.apply()[0] == 0
    state = user.cli.sandbox.state()
    next(group for group in state["groups"] if group["path"] == "acme/old")["path"] = "acme/new"
    user.cli.sandbox.replace_state(state)
    user.write("manifests/group.yaml", document.format("acme/new", "a: {}"))
    user.commit("second")
    assert user.apply() == (0, ["group acme/new", '  - milestone "b"                             done'])


@pytest.mark.untraced
def test_the_list_keeps_what_a_project_has_that_is_declared_by_its_former_path(user: Checkout) -> None:
    user.milestones("a", "b")
    user.commit("first")
    assert user.apply()[0] == 0
    renamed(user, "acme/api", "acme/new")
    moved = "project acme/api has moved to acme/new (ID 100)"
    problem = (
        "  ! project acme/new: declared by its former path acme/api (manifests/project.yaml:3); write the new path there "
        "(`accept` does), or add --follow-moved"
    )
    assert user.apply() == (3, ["project acme/new", problem, moved])
    assert user.listed() == ["project 100 a <first>", "project 100 b <first>"]
    assert user.plan("--follow-moved") == (0, [moved])
    user.milestones("a")
    user.commit("second")
    deletion = ["project acme/new", '  - milestone "b"     removed from the manifests since <first>', moved]
    assert user.plan("--follow-moved") == (0, deletion)
    assert user.run("accept") == (
        0,
        ["manifests/project.yaml", moved, "2 differences accepted; 1 file written."],
    )
    user.commit("third")
    assert user.plan() == (0, [])


@pytest.mark.untraced
def test_a_project_that_was_followed_proves_what_it_declared_by_its_former_path(user: Checkout) -> None:
    user.milestones("a", "b")
    user.commit("first")
    renamed(user, "acme/api", "acme/new")
    moved = "project acme/api has moved to acme/new (ID 100)"
    assert user.apply("--follow-moved")[0] == 0
    assert [line["path"] for line in user.inventory() if "path" in line] == ["acme/api"]
    user.milestones("a")
    user.commit("second")
    deletion = ["project acme/new", '  - milestone "b"     removed from the manifests since <first>']
    assert user.plan("--follow-moved") == (0, [*deletion, moved])
    user.milestones("a", path="acme/new")
    user.commit("third")
    assert user.plan() == (0, deletion)
