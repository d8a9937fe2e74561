"""`--since REV`: only targets that differ are planned, and nothing is deleted by it. On real repositories."""

import json

import pytest

from tests.cli_runner import CliRunner
from tests.fleet.repository import Repository
from tests.states import a_small_service

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

NOTHING = "Nothing to do: no target was looked at. 0 requests were made to plan.\n"


def requests(cli_runner: CliRunner) -> list[str]:
    return sorted(entry["target"].removeprefix("/api/v4/").partition("?")[0] for entry in cli_runner.sandbox.log())


@pytest.mark.untraced
def test_only_what_has_changed_is_planned_and_asked_for(cli_runner: CliRunner, git: Repository) -> None:
    cli_runner.project("{milestones: {a: {}}}")
    cli_runner.project("{milestones: {b: {}}}", "acme/lib", "manifests/lib.yaml")
    git.commit()
    cli_runner.project("{milestones: {b: {}, c: {}}}", "acme/lib", "manifests/lib.yaml")
    cli_runner.sandbox.clear_log()
    done = cli_runner("plan --since HEAD")
    assert (done.code, done.err) == (0, "")
    assert done.out == (
        'project acme/lib\n  + milestone "c"     manifests/lib.yaml:4\n'
        "Not of this change: 1 project differs already (1 merged and not applied)\n"
        'project acme/lib\n  + milestone "b"     manifests/lib.yaml:4\n'
        "Plan: 1 to create, 1 not of this change. "
        "2 writes to apply; 2 requests were made to plan.\n"
    )
    assert requests(cli_runner) == ["projects/acme%2Flib", "projects/acme%2Flib/milestones"]
    assert 'project acme/api\n  + milestone "a"\n' in cli_runner("plan --since HEAD --all --out all.json").changes
    assert json.loads((cli_runner.folder / "all.json").read_text())["narrowed"] is False
    assert cli_runner("plan --since HEAD --exclude acme/lib").out == NOTHING


@pytest.mark.untraced
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
    assert cli_runner("plan --since HEAD --target acme/none").code == 1
    assert cli_runner("drift --since HEAD").code == 0
    assert cli_runner("drift").code == 2


@pytest.mark.untraced
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
        "Plan: 2 to create. 2 writes to apply; 4 requests were made to plan.\n"
    )


@pytest.mark.untraced
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
    assert cli_runner("plan --since HEAD").out == NOTHING.replace(": no target was", " in the 2 targets")


@pytest.mark.untraced
def test_a_rename_is_no_deletion(cli_runner: CliRunner, git: Repository) -> None:
    cli_runner.service(milestones=[{"title": "old"}])
    cli_runner.project("{milestones: {old: {}}}")
    git.commit()
    cli_runner.project("{milestones: {new: {renamed_from: old}}}")
    assert cli_runner("plan --since HEAD").changes.startswith(
        'project acme/api\n  ~ milestone "new"                           renamed from "old"\nPlan: 1 to update. '
    )


@pytest.mark.untraced
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
        "Plan: 2 to create. 2 writes to apply; 4 requests were made to plan.\n"
    )


SET = """\
apiVersion: reconciler/v1
kind: ProjectSet
metadata: {name: all}
select: {group: acme}
spec: {milestones: {"{name} 1": {}}}
"""


@pytest.mark.untraced
def test_a_changed_set_touches_the_projects_it_is_about(cli_runner: CliRunner, git: Repository) -> None:
    cli_runner.write("manifests/set.yaml", SET.replace("group: acme", "group: acme, archived: true"))
    git.commit()
    cli_runner.write("manifests/set.yaml", SET.replace("group: acme", "group: acme, exclude: ['**/api']"))
    assert cli_runner("plan --since HEAD").out == NOTHING.replace("0 requests were", "1 request was")
    cli_runner.write("manifests/set.yaml", SET.replace(" 1", " 2"))
    assert "Plan: 4 to create" in cli_runner("plan --since HEAD").out
    cli_runner.project("{milestones: {}}")
    git.git("rm", "--quiet", "--cached", "manifests/set.yaml")
    (cli_runner.folder / "manifests/set.yaml").unlink()
    done = cli_runner("plan --since HEAD")
    assert (done.out, done.err) == ("Nothing to do in the 1 target looked at. 2 requests were made to plan.\n", "")


def test_groups_of_then_that_cannot_be_listed_leave_nobody_out(cli_runner: CliRunner, git: Repository) -> None:
    """A project below such a group may have been in its set; one of a group that is gone was in none."""
    cli_runner.write("manifests/set.yaml", SET)
    cli_runner.write(
        "manifests/gone.yaml", SET.replace("name: all", "name: gone").replace("group: acme", "group: gone")
    )
    cli_runner.project("{milestones: {b: {}}}")
    cli_runner.project("{milestones: {b: {}}}", "other/lib", "manifests/lib.yaml")
    git.commit()
    git.git("rm", "--quiet", "manifests/set.yaml", "manifests/gone.yaml")
    cli_runner.sandbox.set_faults(["status=403,match=groups/acme/projects"])
    done = cli_runner("plan --since HEAD")
    assert (done.code, done.err) == (0, "")
    assert done.changes.startswith(
        "Not of this change: 1 project differs already (1 merged and not applied)\n"
        'project acme/api\n  + milestone "b"\nPlan: nothing to change, 1 not of this change. '
    )


@pytest.mark.untraced
@pytest.mark.parametrize("dialect", ["deployed", "spec"])
def test_nothing_is_deleted_because_only_the_revision_declares_it(
    cli_runner: CliRunner, git: Repository, dialect: str
) -> None:
    state = a_small_service(dialect)
    state["projects"][0] |= {"milestones": [{"title": "ours"}, {"title": "kept"}]}
    cli_runner.sandbox.replace_state(state)
    cli_runner.project("{milestones: {ours: {}, kept: {}}, trigger_tokens: {gone: {}}}")
    cli_runner.project("{milestones: {b: {}}}", "acme/lib", "manifests/lib.yaml")
    cli_runner.project("{milestones: {c: {}}}", "acme/web", "manifests/web.yaml")
    git.commit()
    cli_runner.project("{milestones: {kept: {}}}")
    git.git("rm", "--quiet", "manifests/lib.yaml")
    cli_runner.sandbox.clear_log()
    done = cli_runner("plan --since HEAD")
    assert (done.code, done.err) == (0, "")
    assert done.out == "Nothing to do in the 1 target looked at, 1 unmanaged. 1 request was made to plan.\n"
    assert requests(cli_runner) == ["projects/acme%2Fapi/milestones"]
    assert cli_runner("plan --since HEAD -v").out.splitlines()[:2] == [
        "project acme/api",
        '  ? milestone "ours" is unmanaged             ID 1',
    ]
    cli_runner.project("{prune: [milestones], milestones: {kept: {}}}")
    assert cli_runner("plan --since HEAD").changes.startswith('project acme/api\n  - milestone "ours"\nPlan: ')


@pytest.mark.untraced
def test_a_target_that_is_called_otherwise_is_planned(cli_runner: CliRunner, git: Repository) -> None:
    """Nobody is asked whether it is the same."""
    cli_runner.project("{milestones: {a: {}}}")
    git.commit()
    text = (cli_runner.folder / "manifests/project.yaml").read_text()
    cli_runner.write("manifests/project.yaml", text.replace("path: acme/api", "path: Acme/API"))
    assert cli_runner("plan --since HEAD").out == NOTHING
    cli_runner.write("manifests/project.yaml", text.replace("path: acme/api", "id: 100"))
    assert 'project 100\n  + milestone "a"\n' in cli_runner("plan --since HEAD").changes
    numbered = "{milestones: {'{name}': {}}}"
    cli_runner.write(
        "manifests/project.yaml", text.replace("path: acme/api", "id: 100").replace("{milestones: {a: {}}}", numbered)
    )
    git.commit()
    assert cli_runner("plan --since HEAD").out == NOTHING.replace("0 requests were", "1 request was")
    cli_runner.sandbox.set_faults(["status=403,match=projects/100"])
    out = cli_runner("plan --since HEAD").out
    assert out.count("its manifest uses `{path}`, `{name}` or `{namespace}`; give `path` instead of `id`") == 1


TEMPLATE = """\
apiVersion: reconciler/v1
kind: Project
metadata: {path: acme/api}
spec: {milestones: {'{{ title }}': {}}}
"""


@pytest.mark.untraced
def test_templates_are_given_the_values_of_their_time(cli_runner: CliRunner, git: Repository) -> None:
    cli_runner.write("manifests/project.yaml.j2", TEMPLATE)
    cli_runner.write("values.yaml", "title: one\n")
    git.commit()
    planned = 'project acme/api\n  + milestone "{}"\nPlan: 1 to create'
    cli_runner.write("values.yaml", "title: two\n")
    assert cli_runner("plan --since HEAD --values values.yaml").changes.startswith(planned.format("two"))
    assert cli_runner("plan --since HEAD --set title=three").changes == NOTHING, "it holds for both"
    cli_runner.write("new.yaml", "title: four\n")
    assert cli_runner("plan --since HEAD --values new.yaml").changes == NOTHING


@pytest.mark.untraced
def test_a_change_of_the_configuration_alone_is_a_change(cli_runner: CliRunner, git: Repository) -> None:
    """Other values, a folder that enters the paths and one that leaves them: `reconciler.yaml` is that of its time."""
    cli_runner.service(milestones=[{"title": "strict"}])
    cli_runner.write("manifests/project.yaml.j2", TEMPLATE)
    cli_runner.project("{milestones: {b: {}}}", "acme/lib", "more/lib.yaml")
    cli_runner.project("{milestones: {c: {}}}", "acme/web", "less/web.yaml")
    cli_runner.write("strict.yaml", "title: strict\n")
    cli_runner.write("lax.yaml", "title: lax\n")
    cli_runner.write("reconciler.yaml", "values: strict.yaml\npaths: [manifests, less]\n")
    git.commit()
    assert cli_runner("plan --since HEAD").out == NOTHING
    cli_runner.write("reconciler.yaml", "values: lax.yaml\npaths: [manifests, more]\n")
    assert cli_runner("plan --since HEAD").changes.startswith(
        'project acme/api\n  + milestone "lax"\nproject acme/lib\n  + milestone "b"\nPlan: 2 to create, 1 unmanaged. '
    )
    git.commit()
    assert cli_runner("plan --since HEAD").out == NOTHING
    assert "2 to create" in cli_runner("plan --since HEAD~1").out
    assert cli_runner("plan manifests --values lax.yaml --since HEAD~1").changes == NOTHING, "options hold for both"


def test_a_configuration_that_was_not_valid_is_an_error(cli_runner: CliRunner, git: Repository) -> None:
    cli_runner.project("{milestones: {a: {}}}")
    cli_runner.write("reconciler.yaml", "paths: [\n")
    git.commit()
    (cli_runner.folder / "reconciler.yaml").unlink()
    done = cli_runner("plan --since HEAD")
    assert (done.code, done.out) == (1, "")
    assert "HEAD:reconciler.yaml:1:" in done.err


@pytest.mark.untraced
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
    assert "2 not of this change. 4 writes" in cli_runner("plan --since HEAD~2").out


def test_a_revision_that_is_no_ancestor_is_taken_as_it_is_with_a_warning(
    cli_runner: CliRunner, git: Repository
) -> None:
    cli_runner.project("{milestones: {a: {}}}")
    parted = git.commit()
    git.git("checkout", "--quiet", "-b", "feature")
    git.git("checkout", "--quiet", "main")
    cli_runner.project("{milestones: {a: {}, main: {}}}")
    git.commit()
    git.git("checkout", "--quiet", "feature")
    done = cli_runner("plan --since main")
    assert '  + milestone "a"     manifests/project.yaml:4\n' in done.out
    assert done.err == (
        "--since main: this revision is not an ancestor of the checked-out commit; what changed there since the two "
        f"parted counts as changed here; to leave it out, use the common ancestor: --since {parted}\n"
    )
    assert cli_runner(f"plan --since {parted}").out == NOTHING
    git.git("checkout", "--quiet", "--orphan", "elsewhere")
    git.commit("elsewhere")
    assert cli_runner("plan --since main").err == (
        "--since main: this revision is not an ancestor of the checked-out commit; what changed there since the two "
        "parted counts as changed here\n"
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


@pytest.mark.untraced
def test_what_was_not_valid_then_is_left_out(cli_runner: CliRunner, git: Repository) -> None:
    cli_runner.service(milestones=[{"title": "a"}, {"title": "b"}])
    cli_runner.project("{milestones: {a: {}, b: {}}, milestone: {}}")
    cli_runner.project("{milestones: {c: {}}}", "acme/lib", "manifests/lib.yaml")
    git.commit()
    cli_runner.project("{milestones: {a: {}, d: {}}}")
    code, out, err = left_out(cli_runner, "plan --since HEAD")
    assert (code, out) == (
        0,
        'project acme/api\n  + milestone "d"\n'
        "Plan: 1 to create, 1 unmanaged. 1 write to apply; 2 requests were made to plan.\n",
    )
    assert err == [
        "--since HEAD: files with errors there are left out: manifests/project.yaml",
        "HEAD:manifests/project.yaml:4:36: unknown section `milestone`; did you mean `milestones`?",
    ]


@pytest.mark.untraced
def test_what_depends_on_a_profile_that_was_not_valid_is_left_out_too(cli_runner: CliRunner, git: Repository) -> None:
    cli_runner.service(milestones=[{"title": "a"}, {"title": "b"}])
    cli_runner.write("manifests/base.yaml", PROFILE.format(spec="{a: {}, b: {stat: closed}}"))
    cli_runner.write("manifests/api.yaml", USING)
    git.commit()
    cli_runner.write("manifests/base.yaml", PROFILE.format(spec="{a: {}}"))
    code, out, err = left_out(cli_runner, "plan --since HEAD")
    assert (code, out.count(" - ")) == (0, 0)
    assert err == [
        "--since HEAD: files with errors there are left out: manifests/base.yaml",
        "HEAD:manifests/base.yaml:4:32: unknown key `stat`; did you mean `state`?",
        "--since HEAD: files with errors there are left out: manifests/api.yaml",
        "manifests/api.yaml:3:39: unknown profile `base`; there is none",
    ]


def test_sets_that_turn_out_to_have_disagreed_are_left_out(cli_runner: CliRunner, git: Repository) -> None:
    cli_runner.service(milestones=[{"title": "x"}])
    for name, state in (("one", "active"), ("two", "closed")):
        text = SET.replace("name: all", f"name: {name}").replace('{"{name} 1": {}}', f"{{x: {{state: {state}}}}}")
        cli_runner.write(f"manifests/{name}.yaml", text)
    git.commit()
    git.git("rm", "--quiet", "manifests/two.yaml")
    code, out, err = left_out(cli_runner, "plan --since HEAD")
    assert (code, out) == (0, NOTHING.replace("0 requests were", "1 request was"))
    assert err[0] == "--since HEAD: files with errors there are left out: manifests/two.yaml"


@pytest.mark.untraced
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
        out.startswith('project acme/api\n  + milestone "two"\nPlan: 1 to create, 1 unmanaged. '),
    ) == (0, True)
    assert err == [
        "--since HEAD: the values for templates are not valid there; no template is read",
        "values.yaml:1:8: the list begun on line 1 is not closed: `]` is missing, or a comma",
    ]


def test_a_deletion_that_failed_is_never_forgotten(cli_runner: CliRunner, git: Repository) -> None:
    """The manifests prune no more when it is retried, and the `--since` of the next commit does not know of it."""
    cli_runner.service(milestones=[{"title": "a"}, {"title": "b"}])
    cli_runner.project("{prune: [milestones], milestones: {b: {}}}")
    cli_runner.project("{trigger_tokens: {t: null}}", "acme/lib", "manifests/lib.yaml")
    state = cli_runner.sandbox.state()
    state["projects"][1]["trigger_tokens"] = [{"description": "t", "owner": "ada"}]
    cli_runner.sandbox.replace_state(state)
    first = git.commit()
    cli_runner.sandbox.set_faults([{"kind": "status", "status": 403, "method": "DELETE"}])
    assert cli_runner("apply --yes --report json=report.json").code == 3
    cli_runner.sandbox.set_faults([])
    again = cli_runner("plan --retry-failed report.json")
    assert (again.code, "2 to delete" in again.out) == (0, True)

    cli_runner.project("{milestones: {b: {}}}")
    (cli_runner.folder / "manifests/lib.yaml").unlink()
    git.commit()
    said = "not done before and no longer declared: it stays"
    one = f'project acme/api\n  ! milestone "a": {said}     manifests/project.yaml:4\n'
    both = f'{one}project acme/lib\n  ! trigger token "t": {said}\n'
    for line, told in {
        "plan --out plan.json": both,
        "apply --yes": both,
        "drift": both,
        f"plan --since {first}": both,
        "plan --target acme/api": one,
        "plan --section milestones": one,
    }.items():
        done = cli_runner(f"{line} --retry-failed report.json")
        assert (done.code, done.out.partition("Plan: ")[0].partition("Applied: ")[0]) == (3, told)
    shards = [cli_runner(f"plan --shard {number}/2 --retry-failed report.json").out for number in (1, 2)]
    assert [sum(text.count(title) for text in shards) for title in ('milestone "a"', 'trigger token "t"')] == [1, 1]
    assert cli_runner("show plan.json").code == 3
    assert cli_runner("plan --selector team=core --retry-failed report.json").code == 0


@pytest.mark.untraced
def test_a_changed_exception_touches_its_target(cli_runner: CliRunner, git: Repository) -> None:
    def declare(until: str, reason: str) -> None:
        exception = f"{{section: milestones, item: a, until: {until}, reason: {reason}}}"
        metadata = f"metadata: {{path: acme/api, exceptions: [{exception}]}}"
        text = f"apiVersion: reconciler/v1\nkind: Project\n{metadata}\nspec: {{milestones: {{a: {{}}}}}}\n"
        cli_runner.write("manifests/project.yaml", text)

    declare("2999-01-01", "Later")
    git.commit()
    declare("2999-01-01", "Never")
    assert cli_runner("plan --since HEAD").out == NOTHING, "a reason changes nothing"
    declare("2998-01-01", "Never")
    assert cli_runner("plan --since HEAD -v").out.splitlines()[1:2] == [
        '  = milestone "a"                             not created, excepted until 2998-01-01: Never     '
        "manifests/project.yaml:3"
    ]
    assert cli_runner("plan --since HEAD").out == (
        "1 excepted until 2998-01-01 at the earliest (-v shows them)\n"
        "Nothing to do in the 1 target looked at, 1 excepted. 1 request was made to plan.\n"
    )


@pytest.mark.untraced
def test_a_canary_that_no_commit_touches_is_among_all_targets(cli_runner: CliRunner, git: Repository) -> None:
    cli_runner.project("{milestones: {a: {}}}")
    cli_runner.project("{milestones: {b: {}}}", "acme/lib", "manifests/lib.yaml")
    assert cli_runner("apply --yes").code == 0
    git.commit()
    assert (
        cli_runner("apply --yes --since HEAD --canary acme/api").out == "Applied: nothing to change. 0 requests made.\n"
    )
    cli_runner.project("{milestones: {b: {}, c: {}}}", "acme/lib", "manifests/lib.yaml")
    refused = cli_runner("apply --yes --since HEAD --canary acme/api")
    assert (refused.code, refused.err) == (
        1,
        "reconciler: nothing was changed: in the plan, --canary acme/api matches nobody: the most similar path is acme/lib\n",
    )
    assert cli_runner("apply --yes --since HEAD --all --canary acme/api").code == 0
    assert cli_runner("drift").code == 0


@pytest.mark.untraced
def test_files_that_have_not_changed_are_checked_too(cli_runner: CliRunner, git: Repository) -> None:
    cli_runner.project("{milestones: {a: {}}}")
    cli_runner.project("{milestone: {}}", "acme/lib", "manifests/lib.yaml")
    git.commit()
    done = cli_runner("plan --since HEAD")
    assert (done.code, done.out) == (1, "")
    assert done.err == cli_runner("plan").err
    cli_runner.project("{milestones: {}}", "acme/lib", "manifests/lib.yaml")
    digests = []
    for line in ("plan --since HEAD", "plan"):
        assert cli_runner(f"{line} --out plan.json").code == 0
        digests.append(json.loads((cli_runner.folder / "plan.json").read_text())["manifests_digest"])
    assert digests[0] == digests[1], "it is of what is declared, not of the files that were read"
