"""Change and drift apart: why each difference of a plan is there. On real repositories, with an inventory."""

import json

import pytest

from tests.cli_runner import CliRunner
from tests.fleet.repository import Repository
from tests.items import changes_of, note_of

SETTINGS = "approval_settings: {{allow_author_approval: {}, allow_committer_approval: {}}}"


def sources(cli_runner: CliRunner, line: str) -> dict[str, str | None]:
    """Run a command and return the source of each change, by its name, or by its field."""
    done = cli_runner(f"{line} --format json")
    assert done.err == ""
    changes = changes_of(json.loads(done.out))
    return {change["name"] or "+".join(change["after"]): note_of(change, "source").get("source") for change in changes}


@pytest.mark.untraced
def test_each_field_tells_whether_it_is_of_the_change(cli_runner: CliRunner, git: Repository) -> None:
    """An update is of the change if one of its fields is."""
    cli_runner.project("{milestones: {a: {}, b: {description: x}, c: {}}, trigger_tokens: {old: null}}")
    git.commit()
    assert cli_runner("apply --yes").code == 0
    state = cli_runner.sandbox.state()
    state["projects"][0]["milestones"] = [
        {"title": "b", "description": "by hand"},
        {"title": "c", "description": "by hand"},
        {"title": "gone"},
    ]
    state["projects"][0]["trigger_tokens"] = [{"description": "old"}]
    cli_runner.sandbox.replace_state(state)
    cli_runner.project(
        "{milestones: {a: {}, b: {description: x}, c: {description: y, due_date: 2027-01-01}, d: {}, gone: null},"
        " trigger_tokens: {old: null}}"
    )
    cli_runner.sandbox.clear_log()
    assert sources(cli_runner, "plan --since HEAD") == {
        "a": "service", "b": "service", "c": "change", "d": "change", "gone": "change", "old": "service",
    }  # fmt: skip
    assert len(cli_runner.sandbox.log()) == 2


@pytest.mark.untraced
def test_the_inventory_tells_what_was_merged_and_not_applied(cli_runner: CliRunner, git: Repository) -> None:
    cli_runner.project("{milestones: {a: {}}}")
    git.commit()
    assert cli_runner("apply --yes").code == 0
    cli_runner.project("{milestones: {a: {}, b: {}}}")
    git.commit("merged, and not applied")
    assert sources(cli_runner, "drift") == {"b": "pending"}
    assert "\n1 project differs (1 merged and not applied)\nPlan: 1 to create" in cli_runner("drift").changes
    cli_runner.project("{milestones: {a: {}, b: {}, c: {}}}")
    assert sources(cli_runner, "plan --since HEAD") == {"b": "pending", "c": "change"}
    assert sources(cli_runner, "plan --since HEAD~1") == {"b": "change", "c": "change"}
    assert sources(cli_runner, "plan --since HEAD --no-inventory") == {"b": None, "c": "change"}
    cli_runner.project("{milestones: {d: {}}}", "acme/lib", "manifests/lib.yaml")
    assert sources(cli_runner, "drift --target acme/lib") == {"d": "pending"}


@pytest.mark.untraced
def test_drift_beside_a_merged_change_of_the_same_project_is_told_apart(cli_runner: CliRunner, git: Repository) -> None:
    """Whether a difference is merged and not applied, the manifests of the last apply tell."""
    cli_runner.project("{milestones: {a: {description: x}, b: {description: x}, gone: {}}}")
    git.commit()
    assert cli_runner("apply --yes").code == 0
    state = cli_runner.sandbox.state()
    state["projects"][0]["milestones"][0]["description"] = "by hand"
    cli_runner.sandbox.replace_state(state)
    cli_runner.project("{milestones: {a: {description: x}, b: {description: y}, c: {}}}")
    git.commit("merged, and not applied")
    cli_runner.sandbox.clear_log()
    assert sources(cli_runner, "drift") == {"a": "service", "b": "pending", "c": "pending", "gone": "pending"}
    requests = [request["target"] for request in cli_runner.sandbox.log()]
    assert set(sources(cli_runner, "drift --no-inventory").values()) == {None}
    assert [request["target"] for request in cli_runner.sandbox.log()] == requests * 2
    cli_runner.project("{milestones: {a: {description: x}, b: {description: z}, c: {}}}")
    assert sources(cli_runner, "plan --since HEAD") == {
        "a": "service", "b": "change", "c": "pending", "gone": "pending"
    }  # fmt: skip


@pytest.mark.untraced
def test_a_project_that_the_last_apply_left_out_is_not_applied(cli_runner: CliRunner, git: Repository) -> None:
    """The manifests of that apply are newer than what was applied there."""
    cli_runner.project("{milestones: {a: {}}}")
    git.commit()
    assert cli_runner("apply --yes").code == 0
    cli_runner.project("{milestones: {a: {}, b: {}}}")
    cli_runner.project("{milestones: {a: {}}}", "acme/lib", "manifests/lib.yaml")
    git.commit()
    assert cli_runner("apply --yes --target acme/lib").code == 0
    cli_runner.service(milestones=[])
    assert sources(cli_runner, "drift --target acme/api") == {"a": "pending", "b": "pending"}


def test_without_the_manifests_of_the_last_apply_all_of_a_changed_project_is_to_be_applied(
    cli_runner: CliRunner, git: Repository
) -> None:
    cli_runner.project("{milestones: {a: {}}}")
    git.commit()
    assert cli_runner("apply --yes").code == 0
    cli_runner.project("{milestones: {a: {}, b: {}}}")
    git.commit()
    cli_runner.service(milestones=[])
    assert sources(cli_runner, "drift") == {"a": "service", "b": "pending"}
    blob = git.git("rev-parse", "HEAD~1:manifests/project.yaml")
    (git.folder / f".git/objects/{blob[:2]}/{blob[2:]}").unlink()
    assert sources(cli_runner, "drift") == {"a": "pending", "b": "pending"}


@pytest.mark.untraced
@pytest.mark.parametrize("is_behind", [True, False])
def test_a_checkout_that_is_behind_does_not_tell_what_was_not_applied(
    cli_runner: CliRunner, git: Repository, is_behind: bool
) -> None:
    cli_runner.project("{milestones: {a: {}}}")
    old = git.commit()
    cli_runner.project("{milestones: {}}")
    git.commit()
    assert cli_runner("apply --yes").code == 0
    git.git("checkout", "--quiet", old if is_behind else "main")
    cli_runner.project("{milestones: {a: {}}}")
    assert sources(cli_runner, "drift") == {"a": None if is_behind else "pending"}


@pytest.mark.untraced
def test_an_apply_that_was_not_complete_tells_nothing(cli_runner: CliRunner, git: Repository) -> None:
    cli_runner.project("{milestones: {a: {}}, trigger_tokens: {t: null}}")
    git.commit()
    cli_runner.sandbox.set_faults(["status=403,match=triggers"])
    assert cli_runner("apply --yes").code == 3
    state = cli_runner.sandbox.state()
    state["projects"][0]["milestones"] = []
    cli_runner.sandbox.replace_state(state)
    assert sources(cli_runner, "drift") == {"a": None}


def test_what_a_change_creates_is_of_the_change_with_all_below(cli_runner: CliRunner, git: Repository) -> None:
    document = "apiVersion: reconciler/v1\nkind: Project\nmetadata: {path: acme/fresh}\n"
    cli_runner.write("manifests/new.yaml", f"{document}spec: {{milestones: {{a: {{}}}}}}\n")
    git.commit()
    cli_runner.write("manifests/new.yaml", f"{document}create: {{}}\nspec: {{milestones: {{a: {{}}}}}}\n")
    assert sources(cli_runner, "plan --since HEAD") == {"acme/fresh": "change", "a": "change"}
    git.commit()
    cli_runner.write("manifests/new.yaml", f"{document}create: {{}}\nspec: {{milestones: {{a: {{}}, b: {{}}}}}}\n")
    assert sources(cli_runner, "plan --since HEAD") == {"acme/fresh": "pending", "a": "pending", "b": "change"}
    assert sources(cli_runner, "plan --since HEAD --only-change") == {"acme/fresh": "pending", "b": "change"}
    cli_runner.write(
        "manifests/new.yaml", f"{document}create: {{name: Other}}\nspec: {{milestones: {{a: {{}}, b: {{}}}}}}\n"
    )
    assert sources(cli_runner, "plan --since HEAD") == {"acme/fresh": "change", "a": "pending", "b": "change"}


def test_renames_and_other_parts_are_of_the_change(cli_runner: CliRunner, git: Repository) -> None:
    cli_runner.service(milestones=[{"title": "old"}])
    cli_runner.project("{milestones: {new: {}}, job_token_scope: {enabled: true}}")
    git.commit()
    cli_runner.project("{milestones: {new: {renamed_from: old}}, job_token_scope: {projects: [acme/lib]}}")
    assert sources(cli_runner, "plan --since HEAD") == {"new": "change", "acme/lib": "change"}


@pytest.mark.untraced
def test_only_the_change_is_planned_and_applied(cli_runner: CliRunner, git: Repository) -> None:
    cli_runner.project("{milestones: {a: {}}}")
    git.commit()
    cli_runner.project("{milestones: {a: {}, b: {}}}")
    planned = json.loads(cli_runner("plan --since HEAD --format json").out)
    of_the_change = [each for each in changes_of(planned) if note_of(each, "source") == {"source": "change"}]
    assert (planned["summary"]["create"], [len(each["requests"]) for each in of_the_change]) == (1, [1])
    assert planned["summary"]["not_of_change"] == {
        "create": 1, "update": 0, "delete": 0, "loosens": 0, "tightens": 0, "problems": 0, "unmanaged": 0,
        "not_applicable": 0, "excepted": 0,
    }  # fmt: skip
    done = json.loads(cli_runner("plan --since HEAD --only-change --format json").out)
    assert done["summary"]["not_of_change"]["create"] == 0
    assert (done["narrowed"], done["commit"]) == (True, None)
    assert cli_runner("apply --since HEAD --only-change --yes").code == 0
    assert sources(cli_runner, "drift") == {"a": None}
    assert json.loads(cli_runner("plan --format json").out)["summary"]["not_of_change"] is None


def test_what_is_planned_again_below_a_changed_group_stays_unless_its_own_change_is_left_out(
    cli_runner: CliRunner, git: Repository
) -> None:
    group = "apiVersion: reconciler/v1\nkind: Group\nmetadata: {path: acme}\nspec: {approval_settings: {allow_author_approval: %s}}\n"
    cli_runner.write("manifests/group.yaml", group % "true")
    cli_runner.project("{approval_settings: {allow_committer_approval: true}}")
    cli_runner.project("{approval_settings: {allow_committer_approval: false}}", "acme/lib", "manifests/lib.yaml")
    git.commit()
    cli_runner.write("manifests/group.yaml", group % "false")
    line = "plan --since HEAD --all --no-inventory --format json"
    assert [actions(cli_runner, f"{line}{only}") for only in ("", " --only-change")] == [
        ["update group acme", "keep project acme/api", "update project acme/lib", "keep project acme/lib"],
        ["update group acme", "keep project acme/api"],
    ]


def actions(cli_runner: CliRunner, line: str) -> list[str]:
    """Run a command and return what its items do, and where."""
    items = json.loads(cli_runner(line).out)["items"]
    return [f"{item['action']} {item['target']}" for item in items if "action" in item]


@pytest.mark.parametrize("options", ["", " --since applied"])
def test_only_change_takes_a_revision(cli_runner: CliRunner, options: str) -> None:
    cli_runner.project("{milestones: {a: {}}}")
    done = cli_runner(f"plan --only-change{options}")
    assert (done.code, done.out) == (64, "")
    assert "--only-change goes with --since REV, a git revision" in done.err


def test_the_texts_show_last_what_is_not_of_the_change(cli_runner: CliRunner, git: Repository) -> None:
    cli_runner.project("{milestones: {a: {}}}")
    git.commit()
    assert cli_runner("apply --yes").code == 0
    cli_runner.service(milestones=[])
    cli_runner.project("{milestones: {b: {}}}", "acme/lib", "manifests/lib.yaml")
    git.commit()
    cli_runner.project("{milestones: {a: {}, c: {}}}")
    cli_runner.project("{milestones: {b: {}, c: {}}}", "acme/lib", "manifests/lib.yaml")
    done = cli_runner(
        "plan --since HEAD --report markdown=plan.md --report terraform-report=widget.json --report html=plan.html"
    )
    assert (
        done.out
        == """\
project acme/api
  + milestone "c"     manifests/project.yaml:4
project acme/lib
  + milestone "c"     manifests/lib.yaml:4
Not of this change: 2 projects differ already (1 changed on the service, 1 merged and not applied)
Changed on the service:
project acme/api
  + milestone "a"     manifests/project.yaml:4
Merged and not applied:
project acme/lib
  + milestone "b"     manifests/lib.yaml:4
Plan: 2 to create, 2 not of this change. 4 writes to apply; 4 requests were made to plan.
"""
    )
    assert (
        cli_runner("plan --since HEAD --quiet").out
        == """\
Not of this change: 2 projects differ already (1 changed on the service, 1 merged and not applied)
Plan: 2 to create, 2 not of this change. 4 writes to apply; 4 requests were made to plan.
"""
    )
    note = (cli_runner.folder / "plan.md").read_text()
    assert note.startswith("## Plan: 2 to create\n\n| section | create |")
    assert "\n| `milestones` | 2 | 0 | 0 | 0 |\n" in note
    change, _, rest = note.partition("### Not of this change: 2 projects differ already (1 changed on the service, ")
    assert (change.count('+ milestone "c"'), change.count("<details open>")) == (2, 2)
    assert [line for line in rest.splitlines() if line.startswith(("Changed", "Merged", "+ "))] == [
        "Changed on the service:",
        '+ milestone "a"',
        "Merged and not applied:",
        '+ milestone "b"',
    ]
    page = (cli_runner.folder / "plan.html").read_text()
    for words in (
        "Creates 2 objects, deletes nothing; 2 changes not of this change",
        'Changed on the service: Create milestone \\"a\\"',
        'Merged and not applied: Create milestone \\"b\\"',
    ):
        assert words in page
    assert json.loads((cli_runner.folder / "widget.json").read_text()) == {"create": 2, "update": 0, "delete": 0}
