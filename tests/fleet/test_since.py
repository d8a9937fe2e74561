"""`--since`: only targets that differ are planned, and objects no longer declared are deleted. On real repositories."""

import json
import os

import pytest

from tests.cli_runner import CliRunner
from tests.fleet.repository import Repository

PROFILE = """\
apiVersion: reconciler/v1
kind: Profile
metadata: {{name: base}}
spec: {{milestones: {spec}}}
"""

USING = """\
apiVersion: reconciler/v1
kind: Project
metadata: {path: acme/api, profiles: [base]}
"""

NOTHING = "Plan: 0 to create, 0 to update, 0 to delete, 0 problems, 0 unmanaged. 0 writes to apply; 0 requests were made to plan.\n"


def requests(cli_runner: CliRunner) -> list[str]:
    return sorted(entry["target"].removeprefix("/api/v4/").partition("?")[0] for entry in cli_runner.sandbox.log())


def test_only_what_has_changed_is_planned_and_asked_for(cli_runner: CliRunner, git: Repository) -> None:
    cli_runner.project("{milestones: {a: {}}}")
    cli_runner.project("{milestones: {b: {}}}", "acme/lib", "manifests/lib.yaml")
    git.commit()
    cli_runner.project("{milestones: {b: {}, c: {}}}", "acme/lib", "manifests/lib.yaml")
    cli_runner.sandbox.clear_log()
    done = cli_runner("plan --since HEAD")
    assert (done.code, done.err) == (0, "")
    assert done.out == (
        'project acme/lib\n  + milestone "b"     manifests/lib.yaml:4\n  + milestone "c"     manifests/lib.yaml:4\n'
        "Plan: 2 to create, 0 to update, 0 to delete, 0 problems, 0 unmanaged. 2 writes to apply; 1 request was made to plan.\n"
    )
    assert requests(cli_runner) == ["projects/acme%2Flib/milestones"]
    assert 'project acme/api\n  + milestone "a"\n' in cli_runner("plan --since HEAD --all --out all.json").changes
    assert json.loads((cli_runner.folder / "all.json").read_text())["narrowed"] is False
    assert cli_runner("plan --since HEAD --exclude acme/lib").out == NOTHING


def test_where_nothing_has_changed_there_is_nothing_to_do_and_nobody_is_asked(
    cli_runner: CliRunner, git: Repository
) -> None:
    cli_runner.project("{milestones: {a: {}}}")
    git.commit()
    cli_runner.write(
        "manifests/project.yaml", "# a comment\n" + (cli_runner.folder / "manifests/project.yaml").read_text()
    )
    for line in ("plan --since HEAD", "plan --since HEAD --target acme/api", "plan --since HEAD --section milestones"):
        done = cli_runner(line)
        assert (done.code, done.out, done.err) == (0, NOTHING, "")
    assert cli_runner("plan --since HEAD --target acme/none").code == 64
    assert cli_runner("drift --since HEAD").code == 0
    assert cli_runner("drift").code == 2


def test_a_changed_profile_touches_all_who_use_it(cli_runner: CliRunner, git: Repository) -> None:
    cli_runner.write("manifests/base.yaml", PROFILE.format(spec="{a: {}}"))
    cli_runner.write("manifests/api.yaml", USING)
    cli_runner.write("manifests/lib.yaml", USING.replace("acme/api", "acme/lib"))
    cli_runner.project("{milestones: {a: {}}}", "acme/web", "manifests/web.yaml")
    git.commit()
    cli_runner.write("manifests/base.yaml", PROFILE.format(spec="{b: {}}"))
    done = cli_runner("plan --since HEAD")
    assert done.out == (
        'project acme/api\n  + milestone "b"     manifests/base.yaml:4\nproject acme/lib\n  + milestone "b"     manifests/base.yaml:4\n'
        "Plan: 2 to create, 0 to update, 0 to delete, 0 problems, 0 unmanaged. 2 writes to apply; 2 requests were made to plan.\n"
    )


def test_what_has_not_changed_still_has_its_say(cli_runner: CliRunner, git: Repository) -> None:
    cli_runner.service(milestones=[{"title": "api 1"}, {"title": "a"}])
    cli_runner.write("manifests/base.yaml", PROFILE.format(spec="{a: {}}"))
    cli_runner.write("manifests/set.yaml", SET)
    cli_runner.write("manifests/api.yaml", USING)
    git.commit()
    git.git("rm", "--quiet", "manifests/api.yaml")
    assert cli_runner("plan --since HEAD").changes.startswith(
        'project acme/api\n  - milestone "a"\nPlan: 0 to create, 0 to update, 1 to delete, 0 problems, 0 unmanaged. '
    )


def test_a_profile_may_stand_in_another_file_than_before(cli_runner: CliRunner, git: Repository) -> None:
    cli_runner.write("manifests/api.yaml", f"{PROFILE.format(spec='{a: {}}')}---\n{USING}")
    cli_runner.write("manifests/lib.yaml", USING.replace("acme/api", "acme/lib"))
    git.commit()
    cli_runner.write("manifests/api.yaml", USING)
    cli_runner.write("manifests/base.yaml", PROFILE.format(spec="{a: {}}"))
    assert cli_runner("plan --since HEAD").out == NOTHING
    cli_runner.write("manifests/api.yaml", USING.replace(", profiles: [base]", ""))
    cli_runner.write("manifests/lib.yaml", USING.replace("acme/api, profiles: [base]", "acme/lib"))
    git.git("rm", "--quiet", "--cached", "-r", "manifests")
    (cli_runner.folder / "manifests/base.yaml").unlink()
    assert "2 requests were made to plan" in cli_runner("plan --since HEAD").out


def test_what_was_declared_twice_and_is_declared_once_is_kept(cli_runner: CliRunner, git: Repository) -> None:
    cli_runner.service(milestones=[{"title": "a"}, {"title": "b"}])
    cli_runner.project("{milestones: {a: {}, b: {}}}")
    text = (cli_runner.folder / "manifests/project.yaml").read_text()
    cli_runner.write("manifests/number.yaml", text.replace("path: acme/api", "id: 100").replace(", b: {}", ""))
    git.commit()
    git.git("rm", "--quiet", "manifests/project.yaml")
    assert cli_runner("plan --since HEAD").changes.startswith(
        'project 100\n  - milestone "b"\nPlan: 0 to create, 0 to update, 1 '
    )


def test_what_was_declared_and_is_not_any_more_is_deleted_and_nothing_else(
    cli_runner: CliRunner, git: Repository
) -> None:
    cli_runner.service(
        milestones=[{"title": "ours"}, {"title": "theirs"}, {"title": "kept"}],
        trigger_tokens=[{"description": "ours", "owner": "ada"}, {"description": "theirs", "owner": "ada"}],
        job_token_scope={"inbound_enabled": True, "project_allowlist": [101, 102], "group_allowlist": [10]},
    )
    cli_runner.project(
        """
  milestones: {ours: {}, kept: {}, absent: null, Gone: {}}
  trigger_tokens: {ours: {}}
  approval_settings: {allow_author_approval: true}
  job_token_scope: {projects: [acme/lib], groups: [acme]}
"""
    )
    git.commit()
    cli_runner.project("{milestones: {kept: {}}, job_token_scope: {enabled: true, projects: [102]}}")
    done = cli_runner("plan --since HEAD")
    assert (done.code, done.err) == (0, "")
    assert done.out == (
        "project acme/api\n"
        '  - allowlisted project "acme/lib"     manifests/project.yaml:4\n'
        '  - allowlisted group "acme"     manifests/project.yaml:4\n'
        '  - milestone "ours"     manifests/project.yaml:4\n'
        '  - trigger token "ours"\n'
        "1 unmanaged object grants access: 1 in trigger_tokens; declare it, or write prune: [trigger_tokens] to delete it\n"
        "Plan: 0 to create, 0 to update, 4 to delete, 0 problems, 2 unmanaged. 4 writes to apply; 5 requests were made to plan.\n"
    )
    assert cli_runner("apply --since HEAD --yes").code == 0
    assert "0 to delete" in cli_runner("plan --since HEAD").out


def test_pruning_stays_with_what_is_declared(cli_runner: CliRunner, git: Repository) -> None:
    cli_runner.service(
        job_token_scope={"inbound_enabled": True, "project_allowlist": [101, 102], "group_allowlist": [10, 11]}
    )
    cli_runner.project("{job_token_scope: {projects: [acme/lib, acme/web], groups: [acme/tools]}}")
    git.commit()
    cli_runner.project("{prune: [job_token_scope], job_token_scope: {projects: [acme/lib]}}")
    assert cli_runner("plan --since HEAD").out == (
        "project acme/api\n"
        '  - allowlisted project "acme/web"     manifests/project.yaml:4\n'
        '  - allowlisted group "acme/tools"     manifests/project.yaml:4\n'
        "1 unmanaged object grants access: 1 in job_token_scope; declare it, or write prune: [job_token_scope] to delete it\n"
        "Plan: 0 to create, 0 to update, 2 to delete, 0 problems, 1 unmanaged. 2 writes to apply; 2 requests were made to plan.\n"
    )


def test_a_rename_is_no_deletion(cli_runner: CliRunner, git: Repository) -> None:
    cli_runner.service(milestones=[{"title": "old"}])
    cli_runner.project("{milestones: {old: {}}}")
    git.commit()
    cli_runner.project("{milestones: {new: {renamed_from: old}}}")
    assert cli_runner("plan --since HEAD").changes.startswith(
        'project acme/api\n  ~ milestone "new"                           renamed from "old"\nPlan: 0 to create, 1 to update, 0 '
    )


def test_manifests_may_be_renamed_moved_and_split(cli_runner: CliRunner, git: Repository) -> None:
    cli_runner.project("{milestones: {a: {}}}")
    cli_runner.project("{milestones: {b: {}}}", "acme/lib", "manifests/lib.yaml")
    git.commit()
    text = (cli_runner.folder / "manifests/project.yaml").read_text()
    cli_runner.write(
        "manifests/deep/er/all.yml", f"{text}---\n{(cli_runner.folder / 'manifests/lib.yaml').read_text()}"
    )
    git.git("rm", "--quiet", "-r", "manifests/project.yaml", "manifests/lib.yaml")
    git.commit()
    assert cli_runner("plan --since HEAD~1").out == NOTHING
    assert cli_runner("plan manifests/deep --since HEAD~1").out == (
        'project acme/api\n  + milestone "a"     manifests/deep/er/all.yml:4\nproject acme/lib\n  + milestone "b"     manifests/deep/er/all.yml:9\n'
        "Plan: 2 to create, 0 to update, 0 to delete, 0 problems, 0 unmanaged. 2 writes to apply; 2 requests were made to plan.\n"
    )


def test_all_that_a_removed_target_declared_is_deleted_and_the_guard_counts_it(
    cli_runner: CliRunner, git: Repository
) -> None:
    titles = [f"m{number:02}" for number in range(21)]
    cli_runner.service(milestones=[{"title": title} for title in [*titles, "theirs"]])
    cli_runner.project(
        f"{{milestones: {{{', '.join(f'{title}: {{}}' for title in titles)}}}, approval_settings: {{}}}}"
    )
    cli_runner.project("{milestones: {b: {}}}", "acme/lib", "manifests/lib.yaml")
    git.commit()
    git.git("rm", "--quiet", "manifests/project.yaml")
    cli_runner.sandbox.clear_log()
    done = cli_runner("plan --since HEAD -v")
    assert done.code == 0
    assert '  - milestone "m20"' in done.out
    assert "Plan: 0 to create, 0 to update, 21 to delete, 0 problems, 1 unmanaged. " in done.out
    assert requests(cli_runner) == ["projects/acme%2Fapi", "projects/acme%2Fapi/milestones"]
    refused = cli_runner("apply --since HEAD --yes")
    assert refused.code == 1
    assert refused.err == (
        "reconciler: the plan is refused, and nothing was changed: it deletes 21 of the 22 milestones of project acme/api; "
        "add --allow-deletes 21\nit deletes 21 objects, more than 20; add --allow-deletes 21\n"
    )
    assert cli_runner("apply --since HEAD --yes --allow-deletes 21").code == 0
    assert "HEAD:manifests/project.yaml:1" in cli_runner("plan --since HEAD --format json").out


def test_a_removed_target_that_is_gone_is_no_problem(cli_runner: CliRunner, git: Repository) -> None:
    cli_runner.project("{milestones: {a: {}}}", "acme/gone")
    cli_runner.project("{milestones: {b: {}}}", "acme/lib", "manifests/lib.yaml")
    cli_runner.write(
        "manifests/others.yaml",
        "apiVersion: reconciler/v1\nkind: User\nspec: {notification_settings: {level: watch}}\n---\n"
        "apiVersion: reconciler/v1\nkind: Group\nmetadata: {path: acme}\nspec: {notification_settings: {level: watch}}\n",
    )
    git.commit()
    git.git("rm", "--quiet", "manifests/project.yaml", "manifests/others.yaml")
    done = cli_runner("plan --since HEAD")
    assert (done.code, done.out) == (0, NOTHING.replace("0 requests were", "2 requests were"))


@pytest.mark.parametrize(
    ("then", "now"),
    [("path: acme/api", "id: 100"), ("id: 100", "path: Acme/API"), ("path: acme/old", "path: acme/api")],
)
def test_a_target_called_otherwise_is_the_same_target(
    cli_runner: CliRunner, git: Repository, then: str, now: str
) -> None:
    cli_runner.service(milestones=[{"title": "a"}, {"title": "b"}], renamed_from=["acme/old"])
    text = "apiVersion: reconciler/v1\nkind: Project\nmetadata: {%s}\nspec: {milestones: %s}\n"
    cli_runner.write("manifests/project.yaml", text % (then, "{a: {}, b: {}}"))
    git.commit()
    cli_runner.write("manifests/project.yaml", text % (now, "{a: {}}"))
    name = now.partition(": ")[2]
    assert cli_runner("plan --since HEAD").changes.startswith(
        f'project {name}\n  - milestone "b"\nPlan: 0 to create, 0 to update, 1 to delete, 0 problems, 0 unmanaged. '
    )
    cli_runner.write("manifests/project.yaml", text % (now, "{a: {}, b: {}}"))
    assert cli_runner("plan --since HEAD").changes.startswith(
        "Plan: 0 to create, 0 to update, 0 to delete, 0 problems, 0 "
    )


SET = """\
apiVersion: reconciler/v1
kind: ProjectSet
metadata: {name: all}
select: {group: acme}
spec: {milestones: {"{name} 1": {}}}
"""


def test_what_a_removed_set_declared_is_deleted_in_every_project_it_was_about(
    cli_runner: CliRunner, git: Repository
) -> None:
    cli_runner.service(milestones=[{"title": "api 1"}])
    cli_runner.write("manifests/set.yaml", SET)
    cli_runner.project("{milestones: {b: {}}}", "acme/lib", "manifests/lib.yaml")
    git.commit()
    git.git("rm", "--quiet", "manifests/set.yaml")
    cli_runner.sandbox.clear_log()
    assert cli_runner("plan --since HEAD").out == (
        'project acme/api\n  - milestone "api 1"\nproject acme/lib\n  + milestone "b"     manifests/lib.yaml:4\n'
        "Plan: 1 to create, 0 to update, 1 to delete, 0 problems, 0 unmanaged. 2 writes to apply; 5 requests were made to plan.\n"
    )
    assert requests(cli_runner) == [
        "groups/acme/projects",
        "projects/acme%2Fapi/milestones",
        "projects/acme%2Flib/milestones",
        "projects/acme%2Ftools%2Fcli/milestones",
        "projects/acme%2Fweb/milestones",
    ]


def test_a_changed_set_touches_the_projects_it_is_about(cli_runner: CliRunner, git: Repository) -> None:
    cli_runner.write("manifests/set.yaml", SET.replace("group: acme", "group: acme, archived: true"))
    git.commit()
    cli_runner.write("manifests/set.yaml", SET.replace("group: acme", "group: acme, exclude: ['**/api']"))
    assert cli_runner("plan --since HEAD").out == NOTHING.replace("0 requests were", "2 requests were")
    cli_runner.write("manifests/set.yaml", SET.replace(" 1", " 2"))
    assert "Plan: 4 to create" in cli_runner("plan --since HEAD").out


def test_the_group_of_a_removed_set_may_be_gone(cli_runner: CliRunner, git: Repository) -> None:
    cli_runner.write("manifests/set.yaml", SET.replace("acme", "gone"))
    cli_runner.project("{milestones: {b: {}}}")
    git.commit()
    git.git("rm", "--quiet", "manifests/set.yaml")
    done = cli_runner("plan --since HEAD")
    assert (done.code, done.out, done.err) == (0, NOTHING.replace("0 requests were", "1 request was"), "")


def test_a_group_of_then_that_cannot_be_listed_now_is_not_taken_for_empty(
    cli_runner: CliRunner, git: Repository
) -> None:
    cli_runner.write("manifests/set.yaml", SET)
    cli_runner.project("{milestones: {b: {}}}")
    git.commit()
    git.git("rm", "--quiet", "manifests/set.yaml")
    cli_runner.sandbox.set_faults(["status=403,match=groups/acme/projects"])
    done = cli_runner("plan --since HEAD")
    assert (done.code, done.err) == (3, "")
    assert done.out.startswith(
        "group acme\n  ! group acme: the projects of group acme cannot be listed (GET groups/acme/projects: 403 "
        "Forbidden)     HEAD:manifests/set.yaml:4\nPlan: 0 to create, 0 to update, 0 to delete, 1 problem, 0 unmanaged."
    )


@pytest.mark.untraced
def test_templates_are_given_the_values_of_their_time(cli_runner: CliRunner, git: Repository) -> None:
    cli_runner.service(milestones=[{"title": "one"}])
    cli_runner.write(
        "manifests/project.yaml.j2",
        "apiVersion: reconciler/v1\nkind: Project\nmetadata: {path: acme/api}\nspec: {milestones: {'{{ title }}': {}}}\n",
    )
    cli_runner.write("values.yaml", "title: one\n")
    git.commit()
    cli_runner.write("values.yaml", "title: two\n")
    assert cli_runner("plan --since HEAD --values values.yaml").changes.startswith(
        'project acme/api\n  + milestone "two"\n  - milestone "one"\n'
    )
    assert cli_runner("plan --since HEAD --set title=three").changes.startswith("Plan: 0 to create")
    cli_runner.write("new.yaml", "title: four\n")
    assert cli_runner("plan --since HEAD --values new.yaml").changes.startswith("Plan: 0 to create")


def test_a_merge_costs_what_it_brought(cli_runner: CliRunner, git: Repository) -> None:
    cli_runner.project("{milestones: {a: {}}}")
    cli_runner.project("{milestones: {b: {}}}", "acme/lib", "manifests/lib.yaml")
    git.commit()
    git.git("checkout", "--quiet", "-b", "feature")
    cli_runner.project("{milestones: {a: {}, feature: {}}}")
    git.commit()
    git.git("checkout", "--quiet", "main")
    cli_runner.project("{milestones: {b: {}, main: {}}}", "acme/lib", "manifests/lib.yaml")
    git.commit()
    git.git("merge", "--quiet", "--no-edit", "feature")
    brought_by_feature = cli_runner("plan --since HEAD^1")
    assert (brought_by_feature.code, brought_by_feature.err) == (0, "")
    assert "project acme/api\n" in brought_by_feature.out
    assert "project acme/lib\n" not in brought_by_feature.out
    assert "project acme/lib\n" in cli_runner("plan --since HEAD^2").out
    assert "Plan: 4 to create" in cli_runner("plan --since HEAD~2").out


def test_a_revision_that_is_no_ancestor_is_taken_as_it_is_with_a_warning(
    cli_runner: CliRunner, git: Repository
) -> None:
    cli_runner.service(milestones=[{"title": "main"}])
    cli_runner.project("{milestones: {a: {}}}")
    parted = git.commit()
    git.git("checkout", "--quiet", "-b", "feature")
    git.git("checkout", "--quiet", "main")
    cli_runner.project("{milestones: {a: {}, main: {}}}")
    git.commit()
    git.git("checkout", "--quiet", "feature")
    done = cli_runner("plan --since main")
    assert '  - milestone "main"     manifests/project.yaml:4\n' in done.out
    assert done.err == (
        "--since main: this revision is not an ancestor of the checked-out commit; anything declared there since the "
        f"two parted counts as removed; to keep it, use the common ancestor: --since {parted}\n"
    )
    assert cli_runner(f"plan --since {parted}").out == NOTHING
    git.git("checkout", "--quiet", "--orphan", "elsewhere")
    git.commit("elsewhere")
    assert cli_runner("plan --since main").err == (
        "--since main: this revision is not an ancestor of the checked-out commit; anything declared there since the "
        "two parted counts as removed\n"
    )


def test_all_without_since_is_no_sense(cli_runner: CliRunner) -> None:
    done = cli_runner("plan --all")
    assert (done.code, done.err) == (
        64,
        "reconciler: --all goes with --since; without it, all targets are planned anyway\n",
    )


def left_out(cli_runner: CliRunner, line: str) -> tuple[int, str, list[str]]:
    done = cli_runner(line)
    return done.code, done.changes, [each for each in done.err.splitlines() if not each.startswith(" ")]


NOT_DELETED = "; objects declared only there are not deleted"


def test_what_was_not_valid_then_is_left_out_and_nothing_of_it_is_deleted(
    cli_runner: CliRunner, git: Repository
) -> None:
    cli_runner.service(milestones=[{"title": "a"}, {"title": "b"}])
    cli_runner.project("{milestones: {a: {}, b: {}}, milestone: {}}")
    cli_runner.project("{milestones: {c: {}}}", "acme/lib", "manifests/lib.yaml")
    git.commit()
    cli_runner.project("{milestones: {a: {}, d: {}}}")
    code, out, err = left_out(cli_runner, "plan --since HEAD")
    assert (code, out) == (
        0,
        'project acme/api\n  + milestone "d"\n'
        "Plan: 1 to create, 0 to update, 0 to delete, 0 problems, 1 unmanaged. 1 write to apply; 1 request was made to plan.\n",
    )
    assert err == [
        f"--since HEAD: files with errors at that revision are left out: manifests/project.yaml{NOT_DELETED}",
        "HEAD:manifests/project.yaml:4:36: unknown section `milestone`; did you mean `milestones`?",
    ]


def test_what_depends_on_a_profile_that_was_not_valid_is_left_out_too(cli_runner: CliRunner, git: Repository) -> None:
    cli_runner.service(milestones=[{"title": "a"}, {"title": "b"}])
    cli_runner.write("manifests/base.yaml", PROFILE.format(spec="{a: {}, b: {stat: closed}}"))
    cli_runner.write("manifests/api.yaml", USING)
    git.commit()
    cli_runner.write("manifests/base.yaml", PROFILE.format(spec="{a: {}}"))
    code, out, err = left_out(cli_runner, "plan --since HEAD")
    assert (code, out.count(" - ")) == (0, 0)
    assert err == [
        f"--since HEAD: files with errors at that revision are left out: manifests/base.yaml{NOT_DELETED}",
        "HEAD:manifests/base.yaml:4:32: unknown key `stat`; did you mean `state`?",
        f"--since HEAD: files with errors at that revision are left out: manifests/api.yaml{NOT_DELETED}",
        "HEAD:manifests/api.yaml:3:39: unknown profile `base`; there is none",
    ]


def test_sets_that_turn_out_to_have_disagreed_are_left_out(cli_runner: CliRunner, git: Repository) -> None:
    cli_runner.service(milestones=[{"title": "x"}])
    for name, state in (("one", "active"), ("two", "closed")):
        text = SET.replace("name: all", f"name: {name}").replace('{"{name} 1": {}}', f"{{x: {{state: {state}}}}}")
        cli_runner.write(f"manifests/{name}.yaml", text)
    git.commit()
    git.git("rm", "--quiet", "manifests/two.yaml")
    code, out, err = left_out(cli_runner, "plan --since HEAD")
    assert (code, "0 to delete" in out) == (0, True)
    assert err[0] == f"--since HEAD: files with errors at that revision are left out: manifests/two.yaml{NOT_DELETED}"


def test_templates_whose_values_were_not_valid_are_left_out(cli_runner: CliRunner, git: Repository) -> None:
    cli_runner.service(milestones=[{"title": "one"}])
    cli_runner.write(
        "manifests/project.yaml.j2", USING.replace(", profiles: [base]", "") + "spec: {milestones: {'{{ t }}': {}}}\n"
    )
    cli_runner.project("{milestones: {b: {}}}", "acme/lib", "manifests/lib.yaml")
    cli_runner.write("values.yaml", "t: [one\n")
    git.commit()
    cli_runner.write("values.yaml", "t: two\n")
    code, out, err = left_out(cli_runner, "plan --since HEAD --values values.yaml")
    assert (
        code,
        out.startswith('project acme/api\n  + milestone "two"\nPlan: 1 to create, 0 to update, 0 to delete'),
    ) == (0, True)
    assert err == [
        f"--since HEAD: the values for templates are not valid at that revision; all templates are left out{NOT_DELETED}",
        "values.yaml:1:8: the list begun on line 1 is not closed: `]` is missing, or a comma",
    ]


@pytest.mark.parametrize("there", ["path: acme/api", "path: Acme/API", "id: 100"])
def test_what_has_moved_to_manifests_that_are_not_read_is_a_problem_and_not_deleted(
    cli_runner: CliRunner, git: Repository, there: str
) -> None:
    cli_runner.service(milestones=[{"title": "a"}, {"title": "b"}, {"title": "c"}])
    cli_runner.project("{milestones: {a: {}, b: {}, c: {}}}", name="manifests/one/api.yaml")
    cli_runner.project("{milestones: {b: {}}}", "acme/lib", "manifests/one/lib.yaml")
    git.commit()
    text = (
        (cli_runner.folder / "manifests/one/api.yaml")
        .read_text()
        .replace(", c: {}", "")
        .replace("path: acme/api", there)
    )
    cli_runner.write("manifests/two/api.yaml", text)
    git.git("rm", "--quiet", "manifests/one/api.yaml")
    done = cli_runner("plan manifests/one --since HEAD")
    assert (done.code, done.err) == (3, "")
    assert done.out == (
        "project acme/api\n"
        '  - milestone "c"\n'
        "  ! project acme/api: 2 objects no longer declared in PATHS, and not deleted because manifests/two/api.yaml:4 "
        "may still declare them: add that to PATHS, or remove them there too     HEAD:manifests/one/api.yaml:1\n"
        "Plan: 0 to create, 0 to update, 1 to delete, 1 problem, 2 unmanaged. 1 write to apply; 2 requests were made to plan.\n"
    )
    assert cli_runner("plan --since HEAD").out.count("!") == 0


@pytest.mark.parametrize("name", ["x.yml.j2", "x.YAML", ".x/api.yaml", ".x/deep/api.yml", ".api.yaml"])
def test_a_manifest_renamed_to_what_is_not_read_is_told_and_nothing_is_deleted(
    cli_runner: CliRunner, git: Repository, name: str
) -> None:
    cli_runner.service(milestones=[{"title": "a"}])
    cli_runner.project("{milestones: {a: {}}}")
    cli_runner.project("{milestones: {b: {}}}", "acme/lib", "manifests/lib.yaml")
    git.commit()
    cli_runner.write(f"manifests/{name}", (cli_runner.folder / "manifests/project.yaml").read_text())
    (cli_runner.folder / "manifests/project.yaml").unlink()
    cli_runner.write("manifests/.hidden.yaml", "another: file\n")
    os.mkfifo(cli_runner.folder / "manifests/pipe.YAML")
    (cli_runner.folder / "manifests/unreadable.YAML").symlink_to("/proc/self/mem")
    why = (
        "its name, or that of a folder, begins with a dot"
        if name.startswith(".")
        else "its name does not end in .yaml, .yml or .yaml.j2"
    )
    warning = f"manifests/{name}: warning: this manifest is not read, because {why}: rename it\n"
    done = cli_runner("plan --since HEAD")
    assert (done.code, done.err) == (3, warning)
    assert done.out.startswith(
        "project acme/api\n"
        f"  ! project acme/api: 1 object no longer declared in PATHS, and not deleted because manifests/{name}:4 may "
        "still declare it: add that to PATHS, or remove it there too     HEAD:manifests/"
    )
    assert warning in cli_runner("validate").out


def test_what_a_set_declares_that_is_not_read_is_kept_and_nothing_else(cli_runner: CliRunner, git: Repository) -> None:
    cli_runner.service(milestones=[{"title": "api 1"}, {"title": "b"}])
    cli_runner.write("manifests/one/set.yaml", SET)
    cli_runner.project("{milestones: {b: {}}}", name="manifests/one/api.yaml")
    git.commit()
    cli_runner.write("manifests/two/set.yaml", (cli_runner.folder / "manifests/one/set.yaml").read_text())
    git.git("rm", "--quiet", "manifests/one/set.yaml")
    cli_runner.project("{milestones: {}}", name="manifests/one/api.yaml")
    out = cli_runner("plan manifests/one --since HEAD --group-by target").out
    assert '  - milestone "b"     manifests/one/api.yaml:4\n  ! project acme/api: 1 object' in out
    assert "manifests/two/set.yaml:5 may still declare it" in out
    assert "1 to delete" in out


def test_another_manifest_of_a_target_that_is_still_declared_is_a_copy(cli_runner: CliRunner, git: Repository) -> None:
    cli_runner.service(milestones=[{"title": "a"}])
    cli_runner.project("{milestones: {a: {}}}")
    cli_runner.write("examples/api.yaml", (cli_runner.folder / "manifests/project.yaml").read_text())
    git.commit()
    cli_runner.project("{milestones: {}}")
    assert cli_runner("plan --since HEAD").changes.startswith('project acme/api\n  - milestone "a"\nPlan: ')


def test_manifests_that_cannot_be_read_may_declare_what_they_mention(cli_runner: CliRunner, git: Repository) -> None:
    cli_runner.service(milestones=[{"title": "a"}])
    cli_runner.project("{milestones: {a: {}}}", name="manifests/one/api.yaml")
    cli_runner.project("{milestones: {b: {}}}", "acme/lib", "manifests/one/lib.yaml")
    cli_runner.write("notes.yaml", "apiVersion: reconciler/v1 [\n")
    git.commit()
    text = (cli_runner.folder / "manifests/one/api.yaml").read_text()
    git.git("rm", "--quiet", "manifests/one/api.yaml")
    cli_runner.write("manifests/two/api.yaml", text.replace("spec:", "spec: ["))
    out = cli_runner("plan manifests/one --since HEAD --group-by target").out
    assert "not deleted because manifests/two/api.yaml may still declare it" in out
    cli_runner.write("manifests/two/api.yaml", text.replace("spec:", "spec: [").replace("acme/api", "acme/other"))
    assert '  - milestone "a"\n' in cli_runner("plan manifests/one --since HEAD").out


def test_where_paths_held_nothing_then_what_stood_elsewhere_is_told(cli_runner: CliRunner, git: Repository) -> None:
    cli_runner.project("{milestones: {a: {}}}")
    cli_runner.project("{milestones: {b: {}}}", "acme/lib", "manifests/stays.yaml")
    cli_runner.write("other.yaml", "a: file\n")
    git.commit()
    git.git("mv", "manifests/project.yaml", "settings.yaml")
    (cli_runner.folder / "other.yaml").unlink()
    done = cli_runner("plan settings.yaml --since HEAD")
    assert done.code == 0
    assert done.err == (
        "--since HEAD: settings.yaml held no manifests at that revision, and these manifests no longer exist: "
        f"manifests/project.yaml{NOT_DELETED}; to compare both, name a folder that contains both places\n"
    )
    assert cli_runner("plan manifests settings.yaml --since HEAD").err == ""
    assert cli_runner("plan manifests/stays.yaml --since HEAD").err == ""
    git.git("mv", "manifests", "renamed")
    assert cli_runner("plan renamed --since HEAD").err.endswith(
        "; to compare both, name a folder that contains both places\n"
    )
    assert "both places" not in cli_runner("plan . --since HEAD").err


def test_a_deletion_that_failed_is_never_forgotten(cli_runner: CliRunner, git: Repository) -> None:
    """The next `--since` does not know of it, and without one no manifest does."""
    cli_runner.service(milestones=[{"title": "a"}, {"title": "b"}])
    cli_runner.project("{milestones: {a: {}, b: {}}}")
    cli_runner.project("{trigger_tokens: {t: {}}}", "acme/lib", "manifests/lib.yaml")
    first = git.commit()
    cli_runner.project("{milestones: {b: {}}}")
    (cli_runner.folder / "manifests/lib.yaml").unlink()
    state = cli_runner.sandbox.state()
    state["projects"][1]["trigger_tokens"] = [{"description": "t", "owner": "ada"}]
    cli_runner.sandbox.replace_state(state)
    second = git.commit()
    cli_runner.sandbox.set_faults([{"kind": "status", "status": 403, "method": "DELETE"}])
    assert cli_runner(f"apply --yes --since {first} --report json=report.json").code == 3
    cli_runner.sandbox.set_faults([])
    said = "not done before and no longer declared; to delete it, repeat the --since of that run"
    one = f'project acme/api\n  ! milestone "a": {said}     manifests/project.yaml:4\n'
    both = f'{one}project acme/lib\n  ! trigger token "t": {said}\n'
    for line, told in {
        "plan --out plan.json": both,
        "apply --yes": both,
        "drift": both,
        "plan --target acme/api": one,
        "plan --section milestones": one,
    }.items():
        done = cli_runner(f"{line} --retry-failed report.json")
        assert (done.code, done.out.partition("Plan: ")[0].partition("Applied: ")[0]) == (3, told)
    shards = [cli_runner(f"plan --shard {number}/2 --retry-failed report.json").out for number in (1, 2)]
    assert [sum(text.count(title) for text in shards) for title in ('milestone "a"', 'trigger token "t"')] == [1, 1]
    assert cli_runner("show plan.json").code == 3
    assert cli_runner(f"plan --since {second} --retry-failed report.json").code == 3
    assert cli_runner("plan --selector team=core --retry-failed report.json").code == 0
    done = cli_runner(f"apply --yes --since {first} --retry-failed report.json")
    assert (done.code, "2 deleted" in done.out) == (0, True)
    again = cli_runner(f"apply --yes --since {first} --retry-failed report.json")
    assert (again.code, again.changes.startswith("Applied: 0 created, 0 updated, 0 deleted; ")) == (0, True)


def test_a_changed_exception_touches_its_target_and_holds_back_a_loss(cli_runner: CliRunner, git: Repository) -> None:
    def declare(exceptions: str, spec: str) -> None:
        metadata = f"metadata: {{path: acme/api, exceptions: [{exceptions}]}}"
        text = f"apiVersion: reconciler/v1\nkind: Project\n{metadata}\nspec: {spec}\n"
        cli_runner.write("manifests/project.yaml", text)

    exception = "{section: milestones, item: a, until: 2999-01-01, reason: Later}"
    declare("", "{milestones: {a: {}, b: {}}}")
    assert cli_runner("apply --yes").code == 0
    git.commit()
    declare(exception, "{milestones: {b: {}}}")
    planned = cli_runner("plan --since HEAD")
    assert planned.out.splitlines()[1:2] == [
        '  = milestone "a"                             not deleted, excepted until 2999-01-01: Later     '
        "manifests/project.yaml:3"
    ]
    assert (
        "manifests/project.yaml:3:69: warning: `a` is not declared: this exception has no effect without --since"
        in planned.err
    )
    git.commit()
    assert cli_runner("plan --since HEAD").out == NOTHING
    declare("", "{milestones: {b: {}}}")
    assert "1 unmanaged. 0 writes to apply; 1 request was made to plan." in cli_runner("plan --since HEAD").out


def test_a_canary_that_no_commit_touches_is_among_all_targets(cli_runner: CliRunner, git: Repository) -> None:
    cli_runner.project("{milestones: {a: {}}}")
    cli_runner.project("{milestones: {b: {}}}", "acme/lib", "manifests/lib.yaml")
    assert cli_runner("apply --yes").code == 0
    git.commit()
    assert cli_runner("apply --yes --since HEAD --canary acme/api").out.startswith("Applied: 0 created")
    cli_runner.project("{milestones: {b: {}, c: {}}}", "acme/lib", "manifests/lib.yaml")
    refused = cli_runner("apply --yes --since HEAD --canary acme/api")
    assert (refused.code, refused.err) == (
        1,
        "reconciler: nothing was changed: in the plan, --canary acme/api matches nobody: the most similar path is acme/lib\n",
    )
    assert cli_runner("apply --yes --since HEAD --all --canary acme/api").code == 0
    assert cli_runner("drift").code == 0


def test_a_file_that_has_not_changed_is_read_only_if_it_matters(cli_runner: CliRunner, git: Repository) -> None:
    broken = "apiVersion: reconciler/v1\nkind: Project\nmetadata: {path: acme/%s}\nspec: {milestone: {}}\n"
    cli_runner.project("{milestones: {a: {}}}")
    cli_runner.write("manifests/lib.yaml", broken % "lib")
    cli_runner.write("manifests/second.yaml", broken % "api")
    git.commit()
    assert cli_runner("plan --since HEAD").out == NOTHING
    cli_runner.project("{job_token_scope: {projects: [acme/web]}}")
    errors = {line: cli_runner(line) for line in ("plan --since HEAD", "validate")}
    assert "manifests/second.yaml:3:18: project acme/api is already declared at " in errors["plan --since HEAD"].err
    assert [(each.out + each.err).count("unknown section `milestone`") for each in errors.values()] == [1, 2]
    (cli_runner.folder / "manifests/second.yaml").unlink()
    git.commit()
    cli_runner.project("{job_token_scope: {projects: [acme/web]}, milestones: {}}")
    done = cli_runner("plan --since HEAD --out plan.json")
    assert (done.code, done.err) == (0, "")
    assert done.changes.startswith('project acme/api\n  + allowlisted project "acme/web"\n')
    digest = json.loads((cli_runner.folder / "plan.json").read_text())["manifests_digest"]
    cli_runner.write("manifests/lib.yaml", f"# a comment\n{broken % 'lib'}")
    assert cli_runner("plan --since HEAD").code == 1
    git.commit()
    assert cli_runner("plan --since HEAD --report json=later.json").out == NOTHING
    later = json.loads((cli_runner.folder / "later.json").read_text())
    assert (later["manifests_digest"] == digest, later["commit"]) == (False, git.git("rev-parse", "HEAD"))
    assert later["narrowed"] is True
    assert cli_runner("apply --plan plan.json --yes").code == 0


def test_a_name_that_may_be_written_otherwise_takes_all_files(cli_runner: CliRunner, git: Repository) -> None:
    cli_runner.project("{milestones: {a: {}}}")
    cli_runner.write("manifests/clock.yaml", "apiVersion: reconciler/v1\nkind: Project [")
    git.commit()
    cli_runner.project("{milestones: {b: {}}}", "acme/o'clock")
    assert "manifests/clock.yaml:2:" in cli_runner("plan --since HEAD").err
