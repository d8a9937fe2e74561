"""Project sets: which projects they are about, and what becomes of projects that several have a say in."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from reconciler.errors import ManifestErrors
from reconciler.manifests import Member
from reconciler.model.globs import Globs
from reconciler.model.targets import Level, Target
from reconciler.model.wording import listed
from tests.manifests.conftest import KINDS, Folder

SERVICES = """\
apiVersion: reconciler/v1
kind: ProjectSet
metadata: {name: services, priority: 10, profiles: [base], labels: {tier: one, team: core}}
select:
  group: acme
  include: ["acme/services/**", "acme/*"]
  exclude: ["acme/services/legacy-*"]
spec:
  approval_settings: {allow_author_approval: false, retain_approvals_on_push: true}
  job_token_scope: {projects: ["{namespace}/lib"]}
---
apiVersion: reconciler/v1
kind: Profile
metadata: {name: base}
spec:
  milestones: {"{name} 1": {description: from the profile}}
  approval_settings: {allow_author_approval: true}
"""

FEW = """\
apiVersion: reconciler/v1
kind: ProjectSet
metadata: {name: few}
select: {projects: [acme/services/api, other/x, Other/X]}
spec:
  prune: [job_token_scope]
  approval_settings: {allow_author_approval: true}
  job_token_scope: {projects: [acme/few]}
"""

API = """\
apiVersion: reconciler/v1
kind: Project
metadata: {path: acme/Services/API, labels: {team: payments}}
spec:
  milestones: {"API 1": null}
"""

ACME = [
    Member("acme/services/api"),
    Member("acme/services/deep/web"),
    Member("acme/services/legacy-x"),
    Member("acme/services/old", archived=True),
    Member("acme/top"),
    Member("acme/other/y"),
]


def scopes(targets: object) -> list[str]:
    return [str(target.target) for target in targets]  # type: ignore[attr-defined]  # targets of any sort


def test_a_set_of_listed_projects_needs_nobody_to_be_asked(folder: Folder) -> None:
    folder.write(few_yaml=FEW)
    read = folder.read()
    assert read.index.groups == ()
    assert [(str(target.target), target.origin) for target in read.desired.targets] == [
        ("project Other/X", "few.yaml:4"),
        ("project acme/services/api", "few.yaml:4"),
    ]
    assert read.of(read.desired.targets[0].target).spec == {
        "prune": ["job_token_scope"],
        "approval_settings": {"allow_author_approval": True},
        "job_token_scope": {"projects": ["acme/few"]},
    }


def test_layers_by_priority_then_the_project_itself(folder: Folder) -> None:
    folder.write(services_yaml=SERVICES, few_yaml=FEW, api_yaml=API)
    read = folder.read()
    assert read.index.groups == ("acme",)
    read = read.with_discovered({"acme": ACME})
    assert [(str(target.target), target.origin, dict(target.labels)) for target in read.desired.targets] == [
        ("project Other/X", "few.yaml:4", {}),
        ("project acme/Services/API", "api.yaml:1", {"tier": "one", "team": "payments"}),
        ("project acme/services/deep/web", "services.yaml:1", {"tier": "one", "team": "core"}),
        ("project acme/top", "services.yaml:1", {"tier": "one", "team": "core"}),
    ]
    api = Target(Level.PROJECT, "acme/services/api")
    assert read.of(api).spec == {
        "prune": ["job_token_scope"],
        "approval_settings": {"allow_author_approval": False, "retain_approvals_on_push": True},
        "job_token_scope": {"projects": ["acme/few", "acme/Services/lib"]},
        "milestones": {"API 1": None},
    }
    assert read.of(api).explain("approval_settings.allow_author_approval") == [
        ("few.yaml:7", True),
        ("services.yaml:17", True),
        ("services.yaml:9", False),
    ]
    assert read.of(Target(Level.PROJECT, "acme/services/deep/web")).spec == {
        "approval_settings": {"allow_author_approval": False, "retain_approvals_on_push": True},
        "job_token_scope": {"projects": ["acme/services/deep/lib"]},
        "milestones": {"web 1": {"description": "from the profile"}},
    }


def test_before_the_discovery_a_group_is_taken_to_hold_the_projects_that_have_documents(folder: Folder) -> None:
    elsewhere = API.replace("acme/Services/API", "acmeish/services/api")
    needs_numeric_id = API.replace("path: acme/Services/API", "id: 12")
    group = "apiVersion: reconciler/v1\nkind: Group\nmetadata: {path: acme/services}\n"
    folder.write(services_yaml=SERVICES, api_yaml="---\n".join([API, elsewhere, needs_numeric_id, group]))
    read = folder.read()
    assert read.warnings == ()
    assert {str(target.target): list(read.of(target.target).spec) for target in read.desired.targets} == {
        "group acme/services": [],
        "project acme/Services/API": ["approval_settings", "job_token_scope", "milestones"],
        "project acmeish/services/api": ["milestones"],
        "project 12": ["milestones"],
    }


def test_archived_projects_are_in_a_set_that_asks_for_them(folder: Folder) -> None:
    folder.write(services_yaml=SERVICES.replace("group: acme", "group: acme\n  archived: true"))
    read = folder.read().with_discovered({"acme": ACME})
    assert "project acme/services/old" in scopes(read.desired.targets)


def test_a_set_that_matches_nothing_is_doubtful(folder: Folder) -> None:
    folder.write(services_yaml=SERVICES)
    assert folder.read().warnings == ()
    assert [str(warning) for warning in folder.read().with_discovered({"acme": ACME[-1:]}).warnings] == [
        "services.yaml:6:13: warning: `acme/services/**` includes no project: correct or remove it; there are acme/other/y\n"
        '      include: ["acme/services/**", "acme/*"]\n                ^',
        "services.yaml:6:33: warning: `acme/*` includes no project: correct or remove it; there are acme/other/y\n"
        '      include: ["acme/services/**", "acme/*"]\n                                    ^',
    ]
    assert [warning.message for warning in folder.read().with_discovered({"acme": []}).warnings] == [
        "set services matches no project: correct `select`, or remove the set"
    ]
    folder.write(services_yaml=FEW.replace("}\nspec", ", exclude: ['**']}\nspec"))
    assert [warning.message for warning in folder.read().warnings] == [
        "set few matches no project: correct `select`, or remove the set"
    ]


def test_what_shows_only_once_the_projects_are_known(folder: Folder) -> None:
    folder.write(services_yaml=SERVICES, few_yaml=FEW.replace("name: few", "name: few, priority: 10"))
    read = folder.read()
    with pytest.raises(ManifestErrors) as caught:
        read.with_discovered({"acme": ACME})
    assert str(caught.value) == (
        "services.yaml:9:46: set services and set few (few.yaml:7:46) have the same priority, 10, and disagree here: "
        "give one of them a higher priority (for project acme/services/api)\n"
        "      approval_settings: {allow_author_approval: false, retain_approvals_on_push: true}\n"
        "                                                 ^"
    )
    with pytest.raises(KeyError):
        read.with_discovered({"other": []})


def test_sets_of_equal_priority_that_agree_are_fine_in_any_order(folder: Folder) -> None:
    documents = [FEW, FEW.replace("name: few", "name: more").replace("acme/few", "acme/more")]
    folder.write(a_yaml="---\n".join(documents))
    one = folder.read()
    folder.write(a_yaml="---\n".join(reversed(documents)))
    other = folder.read()
    api = Target(Level.PROJECT, "acme/services/api")
    assert one.of(api).spec == other.of(api).spec
    assert one.of(api).spec["job_token_scope"] == {"projects": ["acme/few", "acme/more"]}
    assert one.desired.digest == other.desired.digest


def test_sets_of_equal_priority_of_which_one_drops_what_the_other_says_disagree(folder: Folder) -> None:
    events, level = "{events: {new_issue: true}}", "{level: watch}"
    head = "apiVersion: reconciler/v1\nkind: ProjectSet\nmetadata: {name: NAME}\nselect: {projects: [acme/api]}\n"
    folder.write(
        a_yaml=head.replace("NAME", "a") + f"spec: {{notification_settings: {events}}}\n",
        b_yaml=head.replace("NAME", "b") + f"spec: {{notification_settings: {level}}}\n",
        c_yaml=head.replace("NAME", "c") + "spec: {milestones: []}\n",
        d_yaml=head.replace("NAME", "d") + "spec: {milestones: []}\n",
    )
    said = folder.faults()
    assert said.splitlines()[0] == (
        "b.yaml:5:31: set b and set a (a.yaml:5:31) have the same priority, 0, and disagree here: "
        "give one of them a higher priority (for project acme/api)"
    )


@pytest.mark.untraced
@pytest.mark.parametrize("name", ["a", "{name}"])
def test_many_sets_of_equal_priority_cost_no_more_than_many_comparisons(name: str, folder: Folder) -> None:
    comparisons = 0

    def beneath(lower: Mapping[str, Any], _upper: Mapping[str, Any]) -> Mapping[str, Any]:
        nonlocal comparisons
        comparisons += 1
        return lower

    counting = {**KINDS, "milestones": replace(KINDS["milestones"], remainder=beneath)}
    sets, projects = 30, 10
    paths = ", ".join(f"acme/p{number}" for number in range(projects))
    folder.write(
        a_yaml="---\n".join(
            f"apiVersion: reconciler/v1\nkind: ProjectSet\nmetadata: {{name: s{number}}}\n"
            f'select: {{projects: [{paths}]}}\nspec: {{milestones: {{"{name}": {{state: active}}, m{number}: {{}}}}}}\n'
            for number in range(sets)
        )
    )
    read = folder.read(kinds=counting)
    assert len(read.of(Target(Level.PROJECT, "acme/p1")).spec["milestones"]) == sets + 1
    assert comparisons <= 4 * sets * projects, "pair by pair it would be ten times as many"


def test_a_set_with_a_missing_profile_says_so_once_and_nothing_of_its_projects(folder: Folder) -> None:
    folder.write(
        a_yaml=FEW.replace("name: few", "name: few, profiles: [base]"),
        b_yaml=API.replace("Services", "services").replace("spec:", "spec:\n  prune: [trigger_tokens]\n  wiki: {}"),
    )
    assert [line for line in folder.faults().splitlines() if not line.startswith(" ")] == [
        "a.yaml:3:34: unknown profile `base`; there is none",
        f"b.yaml:6:3: unknown section `wiki`; known are {listed(['prune', 'unmanaged', *KINDS])}; if a package adds it, install that package here",
    ]


@pytest.mark.parametrize(
    ("glob", "path", "expected"),
    [
        ("**", "a/b/c", True),
        ("a/**", "a/b/c", True),
        ("a/**", "a/b", True),
        ("A/**", "a", True),
        ("a/**", "ab/c", False),
        ("a/*", "a/b", True),
        ("a/*", "a/b/c", False),
        ("**/c", "a/b/c", True),
        ("a/**/c", "a/c", True),
        ("a/**/c", "a/b/b/c", True),
        ("a/**/c", "a/b/b/d", False),
        ("**/**/c", "c/c", True),
        ("b/**", "a/b", False),
        ("A/B-?", "a/b-1", True),
        ("a/b-[0-9]", "a/b-1", True),
        ("a/b", "a/b/c", False),
        ("a/b/c", "a/b", False),
        ("a/legacy-*", "a/legacy-", True),
        ("a*", "a/b", False),
    ],
)
def test_which_paths_a_glob_matches(glob: str, path: str, expected: bool) -> None:
    assert Globs([glob]).match(path) == expected


def test_once_groups_are_listed_only_what_other_documents_are_about_is_merged_again(folder: Folder) -> None:
    number = API.replace("path: acme/Services/API", "id: 7")
    api_yaml = f"{API}  container_repository_protection_rules: {{acme/services/api/*: {{}}}}\n"
    folder.write(services_yaml=SERVICES, api_yaml=api_yaml, number_yaml=number)
    read = folder.read()
    api, seven = Target(Level.PROJECT, "acme/Services/API"), Target(Level.PROJECT, 7)
    known = read.with_discovered({"acme": [*ACME, Member("acme/services/seven", id=7)]})
    assert known.of(api).stack is read.of(api).stack
    assert (len(read.of(seven).stack.layers), len(known.of(seven).stack.layers)) == (1, 3)
    assert [(each.place, each.message.partition(":")[0]) for each in read.warnings] == [
        ("api.yaml:6:43", "a rule without a level cannot be created where it does not exist yet")
    ]
    assert known.warnings == read.warnings
    again = known.with_discovered({"acme": [*ACME, Member("acme/services/seven", id=7), Member("acme/new")]})
    new = {str(target.target) for target in again.desired.targets if again.of(target.target).stack not in known.stacks}
    assert new == {"project acme/new"}
