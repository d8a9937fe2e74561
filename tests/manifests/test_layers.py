"""What profiles and a target's own document come to together."""

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reconciler.errors import ManifestErrors
from reconciler.manifests.layers import fill, literal, placeholder_values
from reconciler.manifests.locks import lock_on
from reconciler.model.targets import Level, Target
from tests.manifests.conftest import Folder


def profile(name: str, spec: str) -> str:
    return f"---\napiVersion: reconciler/v1\nkind: Profile\nmetadata: {{name: {name}}}\nspec:\n{spec}"


def project(spec: str, profiles: str = "", path: str = "acme/api") -> str:
    metadata = f"{{path: {path}, profiles: [{profiles}]}}"
    return f"---\napiVersion: reconciler/v1\nkind: Project\nmetadata: {metadata}\nspec:\n{spec or '  {}'}"


def merged(folder: Folder, *documents: str) -> dict[str, Any]:
    folder.put("a.yaml", "\n".join(documents))
    read = folder.read()
    return read.of(read.desired.targets[0].target).spec


def test_mappings_merge_key_by_key_and_the_later_layer_wins(folder: Folder) -> None:
    assert merged(
        folder,
        profile("one", "  notification_settings: {level: custom, events: {new_issue: true, new_note: true}}"),
        profile("two", "  notification_settings: {events: {new_note: false}}\n  trigger_tokens: {nightly: {}}"),
        project("  notification_settings: {events: {new_epic: true}}", "one, two"),
    ) == {
        "notification_settings": {
            "level": "custom",
            "events": {"new_issue": True, "new_note": False, "new_epic": True},
        },
        "trigger_tokens": {"nightly": {}},
    }


def test_the_order_of_profiles_is_theirs_in_the_document(folder: Folder) -> None:
    one = profile("one", "  milestones: {a: {state: closed}}")
    two = profile("two", "  milestones: {a: {state: active}}")
    assert merged(folder, one, two, project("", "one, two")) == {"milestones": {"a": {"state": "active"}}}
    assert merged(folder, one, two, project("", "two, one")) == {"milestones": {"a": {"state": "closed"}}}


def test_allowlists_unite_and_other_lists_are_replaced(folder: Folder) -> None:
    assert merged(
        folder,
        profile(
            "one",
            "  prune: [job_token_scope, milestones]\n"
            "  milestones: {a: {renamed_from: [x, y]}}\n"
            "  job_token_scope: {projects: [acme/lib, 7], groups: [acme]}",
        ),
        project(
            "  prune: [job_token_scope]\n"
            "  milestones: {a: {renamed_from: [z]}}\n"
            "  job_token_scope: {projects: [7, acme/web], enabled: true}",
            "one",
        ),
    ) == {
        "prune": ["job_token_scope"],
        "job_token_scope": {"projects": ["acme/lib", 7, "acme/web"], "groups": ["acme"], "enabled": True},
        "milestones": {"a": {"renamed_from": ["z"]}},
    }


def test_nothing_pruned_is_said_by_an_empty_list(folder: Folder) -> None:
    base = profile("base", "  prune: [milestones]\n  milestones: {}")
    assert merged(folder, base, project("", "base")) == {"prune": ["milestones"], "milestones": {}}
    assert merged(folder, base, project("  prune: []", "base")) == {"milestones": {}}


def test_a_level_other_than_custom_drops_the_events_of_the_layers_beneath(folder: Folder) -> None:
    base = profile("base", "  notification_settings: {level: custom, events: {new_issue: true}}")
    quiet = profile("quiet", "  notification_settings: {level: mention}")
    again = project("  notification_settings: {level: custom, events: {new_note: true}}", "base, quiet")
    assert merged(folder, base, project("  notification_settings: {level: watch}", "base")) == {
        "notification_settings": {"level": "watch"}
    }
    assert merged(folder, base, quiet, again) == {
        "notification_settings": {"level": "custom", "events": {"new_note": True}}
    }
    assert merged(folder, base, project("  notification_settings: {level: custom}", "base")) == {
        "notification_settings": {"level": "custom", "events": {"new_issue": True}}
    }


def test_null_replaces_an_item_and_a_mapping_replaces_null(folder: Folder) -> None:
    assert merged(
        folder,
        profile("one", "  milestones: {a: {state: closed}, b: null, c: {description: x, due_date: 2026-12-01}}"),
        project("  milestones: {a: null, b: {state: active}, c: {due_date: null}}", "one"),
    ) == {"milestones": {"a": None, "b": {"state": "active"}, "c": {"description": "x", "due_date": None}}}


def test_layers_of_sets_and_documents_merge_strictly_in_their_order(folder: Folder) -> None:
    assert merged(
        folder,
        "apiVersion: reconciler/v1\nkind: ProjectSet\nmetadata: {name: all}\nselect: {projects: [acme/api]}\n"
        "spec: {milestones: {a: {state: closed}}, notification_settings: {level: custom, events: {new_note: true}}}\n",
        profile("clean", "  milestones: {a: null}\n  notification_settings: {level: watch}"),
        project(
            "  milestones: {a: {description: x}}\n  notification_settings: {level: custom, events: {new_issue: true}}",
            "clean",
        ),
    ) == {
        "notification_settings": {"level": "custom", "events": {"new_issue": True}},
        "milestones": {"a": {"description": "x"}},
    }


def test_two_spellings_of_a_name_are_one_item_across_layers(folder: Folder) -> None:
    assert merged(
        folder,
        profile("one", '  milestones: {" 2026 ": {state: closed, renamed_from: " Old "}}'),
        project("  milestones: {'2026': {description: x}}", "one"),
    ) == {"milestones": {"2026": {"state": "closed", "renamed_from": "Old", "description": "x"}}}


def test_placeholders_stand_for_the_target(folder: Folder) -> None:
    assert merged(
        folder,
        profile(
            "base",
            "  milestones:\n"
            '    "{name} of {namespace}": {description: "{{path}} is {path}", renamed_from: ["{name}", "{x }"], state: active}\n'
            '    "{{}}}": null\n'
            "  container_repository_protection_rules:\n"
            '    "{path}/prod*": {renamed_from: "{path}/old*", minimum_access_level_for_push: owner}\n'
            '    "{path}/gone*": null\n'
            '  job_token_scope: {projects: ["{namespace}/lib", 3], enabled: true}\n'
            "  approval_settings: {allow_author_approval: true}\n",
        ),
        project("", "base", path="Acme/Tools/API"),
    ) == {
        "approval_settings": {"allow_author_approval": True},
        "container_repository_protection_rules": {
            "acme/tools/api/prod*": {"renamed_from": "acme/tools/api/old*", "minimum_access_level_for_push": "owner"},
            "acme/tools/api/gone*": None,
        },
        "job_token_scope": {"projects": ["Acme/Tools/lib", 3], "enabled": True},
        "milestones": {
            "API of Acme/Tools": {
                "description": "{path} is Acme/Tools/API",
                "renamed_from": ["API", "{x }"],
                "state": "active",
            },
            "{{}}}": None,
        },
    }


def test_a_literal_placeholder_loses_its_second_braces_and_all_other_braces_stay(folder: Folder) -> None:
    base = profile(
        "base", '  milestones: {"{{name}}": {description: "{{ {x} }"}}\n  job_token_scope: {projects: [3]}\n'
    )
    assert merged(folder, base, project("", "base")) == {
        "job_token_scope": {"projects": [3]},
        "milestones": {"{name}": {"description": "{{ {x} }"}},
    }


def test_placeholders_in_a_target_s_own_document_are_filled_in_too(folder: Folder) -> None:
    spec = """\
  milestones: {"{name} 1": {description: "{{path}} is {path} {"}}
  container_repository_protection_rules: {"{path}/prod*": {minimum_access_level_for_push: owner}}
  job_token_scope: {projects: ["{namespace}/lib"]}
"""
    expected = {
        "container_repository_protection_rules": {"acme/api/prod*": {"minimum_access_level_for_push": "owner"}},
        "job_token_scope": {"projects": ["acme/lib"]},
        "milestones": {"API 1": {"description": "{path} is acme/API {"}},
    }
    assert merged(folder, project(spec, path="acme/API")) == expected
    read = folder.read()
    assert read.of(read.desired.targets[0].target).explain("milestones.API 1") == [
        ("a.yaml:6", {"description": "{path} is acme/API {"})
    ]


def test_names_that_are_the_same_once_filled_in_are_so_in_a_target_s_own_document_too(folder: Folder) -> None:
    folder.put("a.yaml", project('  milestones: {"{name}": {}, api: {}}'))
    assert folder.faults() == (
        "a.yaml:6:30: `api` and `{name}` (a.yaml:6:16) are one and the same name\n"
        '      milestones: {"{name}": {}, api: {}}\n'
        "                                 ^"
    )


BY_ID = """\
apiVersion: reconciler/v1
kind: Project
metadata: {id: 7, profiles: [base]}
spec:
  milestones: {"{name} 1": {due_date: "{name}"}}
  container_repository_protection_rules: {"{path}/prod*": {minimum_access_level_for_push: owner}}
"""


def test_placeholders_of_a_target_given_by_id_wait_until_its_path_is_known(folder: Folder) -> None:
    seven = Target(Level.PROJECT, 7)
    base = profile("base", '  trigger_tokens: {"{path}": {}}\n  job_token_scope: {projects: ["{namespace}/lib"]}\n')
    folder.write(a_yaml=f"{base}\n---\n{BY_ID.replace('due_date', 'description')}")
    read = folder.read()
    assert read.pathless == (seven,)
    assert list(read.of(seven).spec["milestones"]) == ["{name} 1"]
    known = read.with_discovered({}, {seven: "Acme/API"})
    assert (known.pathless, known.desired.targets[0].path) == ((), "Acme/API")
    assert known.of(seven).spec == {
        "container_repository_protection_rules": {"acme/api/prod*": {"minimum_access_level_for_push": "owner"}},
        "job_token_scope": {"projects": ["Acme/lib"]},
        "milestones": {"API 1": {"description": "API"}},
        "trigger_tokens": {"Acme/API": {}},
    }
    folder.write(a_yaml=f"{base}\n---\n{BY_ID}")
    with pytest.raises(ManifestErrors, match=r"must be a day, YYYY-MM-DD, not `\{name\}`"):
        folder.read().with_discovered({}, {seven: "Acme/API"})


def test_what_is_doubtful_about_a_name_waits_for_the_path_that_it_holds(folder: Folder) -> None:
    seven = Target(Level.PROJECT, 7)
    folder.put(
        "a.yaml", BY_ID.replace(", profiles: [base]", "").replace("prod*", "Prod*").replace("due_date", "description")
    )
    read = folder.read()
    assert read.warnings == ()
    assert [each.message for each in read.with_discovered({}, {seven: "acme/api"}).warnings] == [
        "GitLab takes new patterns in lower case only: acme/api/prod*"
    ]


def test_what_does_not_wait_for_a_path_is_told_at_once(folder: Folder) -> None:
    folder.put("a.yaml", BY_ID.replace(", profiles: [base]", "").replace("owner", "nobody"))
    assert folder.faults() == (
        "a.yaml:6:91: must be one of maintainer, owner or admin\n"
        '      container_repository_protection_rules: {"{path}/prod*": {minimum_access_level_for_push: nobody}}\n'
        "                                                                                              ^"
    )


def test_a_target_given_by_id_without_placeholders_waits_for_nothing(folder: Folder) -> None:
    folder.put("a.yaml", project('  milestones: {"{{name}}": {}}').replace("path: acme/api", "id: 7"))
    read = folder.read()
    assert read.pathless == ()
    assert read.of(Target(Level.PROJECT, 7)).spec == {"milestones": {"{name}": {}}}


def test_a_profile_without_placeholders_suits_everybody(folder: Folder) -> None:
    folder.put(
        "a.yaml",
        profile("base", "  notification_settings: {level: watch}")
        + "\n---\napiVersion: reconciler/v1\nkind: User\nmetadata: {profiles: [base], labels: {who: me}}"
        + "\n---\napiVersion: reconciler/v1\nkind: Group\nmetadata: {id: 12, profiles: [base]}"
        + "\n---\napiVersion: reconciler/v1\nkind: Project\nmetadata: {id: 7, profiles: [base]}",
    )
    read = folder.read()
    assert [(str(target.target), dict(target.labels)) for target in read.desired.targets] == [
        ("user", {"who": "me"}),
        ("group 12", {}),
        ("project 7", {}),
    ]
    for target in read.desired.targets:
        assert read.of(target.target).spec == {"notification_settings": {"level": "watch"}}


PARTS = st.lists(st.sampled_from([*"{}aP", "path", "name", "namespace", "{path}", "{{name}}"])).map("".join)


@pytest.mark.untraced
@settings(deadline=None)
@given(PARTS, PARTS)
@example("{{{", "}}}")
def test_what_is_written_as_literal_comes_out_as_meant(before: str, after: str) -> None:
    values = placeholder_values("acme/Web")
    for text in (before, f"{before}path{after}"):
        assert fill(literal(text), values) == text
        assert fill(literal(text), values, in_lower_case=True) == text
        assert literal({text: [text, 1]}) == {literal(text): [literal(text), 1]}


def test_a_section_of_the_wrong_form_in_one_layer_does_not_hide_the_others(folder: Folder) -> None:
    folder.put("a.yaml", profile("base", "  milestones: [a]") + "\n" + project("  milestones: {a: {stat: x}}", "base"))
    said = [line for line in folder.faults().splitlines() if not line.startswith(" ")]
    assert said == [
        "a.yaml:6:15: must be a mapping, not a list: write `key: value`, without dashes or brackets",
        "a.yaml:12:20: unknown key `stat`; did you mean `state`?",
    ]


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("milestones.2026.12.state", [("a.yaml:6", "closed"), ("a.yaml:16", "active")]),
        ("milestones.2026.12", [("a.yaml:6", {"state": "closed"}), ("a.yaml:16", {"state": "active"})]),
        (("milestones", "2026.12", "state"), [("a.yaml:6", "closed"), ("a.yaml:16", "active")]),
        ("milestones.api.description", [("a.yaml:8", "of acme/api")]),
        ("milestones.gone.state", [("a.yaml:16", "active")]),
        ("milestones.2026", []),
        ("milestones.2026.12.nothing", []),
        ("milestones.2026.12.state.deeper", []),
        ("", []),
        ("prune", [("a.yaml:14", ["job_token_scope"])]),
        ("job_token_scope.projects", [("a.yaml:9", ["acme/lib"]), ("a.yaml:17", ["acme/web"])]),
        (("prune", 0), [("a.yaml:14", "job_token_scope")]),
        (("prune", 1), []),
        (("job_token_scope", "projects", 1), [("a.yaml:17", "acme/web")]),
    ],
)
def test_who_has_a_say_in_a_field(field: Any, expected: list[tuple[str, Any]], folder: Folder) -> None:
    folder.put(
        "a.yaml",
        """\
apiVersion: reconciler/v1
kind: Profile
metadata: {name: base}
spec:
  milestones:
    "2026.12": {state: closed}
    gone: null
    "{name}": {description: "of {path}"}
  job_token_scope: {projects: [acme/lib]}
---
apiVersion: reconciler/v1
kind: Project
metadata: {path: acme/api, profiles: [base]}
spec: {prune: [job_token_scope],
  milestones: {
    " 2026.12": {state: active}, gone: {state: active}},
  job_token_scope: {projects: [acme/web]}}
""",
    )
    read = folder.read()
    assert read.of(Target(Level.PROJECT, "ACME/api")).explain(field) == expected
    with pytest.raises(KeyError):
        read.of(Target(Level.PROJECT, "acme/web")).explain(field)


def test_a_lock_lets_later_layers_repeat_its_value_and_declare_more(folder: Folder) -> None:
    folder.put(
        "a.yaml",
        """\
apiVersion: reconciler/v1
kind: Profile
metadata: {name: below}
spec: {job_token_scope: {projects: [acme/lib]}, milestones: {gone: {}}}
---
apiVersion: reconciler/v1
kind: Profile
metadata:
  name: base
  locks:
    approval_settings: [allow_author_approval]
    job_token_scope: all
    milestones: ["{path} ends", gone, prune]
    trigger_tokens: [prune]
spec:
  prune: [milestones, trigger_tokens]
  approval_settings: {allow_author_approval: false, allow_committer_approval: false}
  job_token_scope: {projects: [acme/lib, acme/web]}
  milestones: {"{path} ends": {state: active}, gone: null}
---
apiVersion: reconciler/v1
kind: Project
metadata: {path: acme/api, profiles: [below, base]}
spec:
  prune: [milestones, trigger_tokens]
  trigger_tokens: {}
  approval_settings: {allow_author_approval: false, allow_committer_approval: true}
  job_token_scope: {enabled: true, projects: [acme/web]}
  milestones: {"{path} ends": {state: active, due_date: 2027-01-31}, other: {}}
""",
    )
    read = folder.read()
    project = Target(Level.PROJECT, "acme/api")

    def held(*steps: str) -> str:
        return str(lock_on(read.of(project).stack, steps))

    assert held("approval_settings", "allow_author_approval") == "profile base (a.yaml:11:25)"
    assert held("approval_settings", "allow_committer_approval") == "None"
    assert held("job_token_scope", "projects") == "profile base (a.yaml:12:5)"
    assert held("job_token_scope", "enabled") == "None"
    assert held("milestones", "acme/api ends") == "profile base (a.yaml:13:18)"
    assert held("milestones", "acme/api ends", "state") == "profile base (a.yaml:13:18)"
    assert held("milestones", "acme/api ends", "due_date") == "None"
    assert held("milestones", "gone") == "profile base (a.yaml:13:33)"
    assert held("milestones", "other") == "None"
    assert held("notification_settings") == "None"
