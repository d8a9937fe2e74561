"""The component `gitops`: a project's whole life in its pipelines, each line of each job run as it stands."""

import json
import shutil
from pathlib import Path

import pytest

from tests.fleet.repository import Repository
from tests.gitops.conftest import CONFIGURATION, HOST, ZEROS, Project
from tests.gitops.pipeline import NO_FILES, Color, Pipeline

pytestmark = pytest.mark.untraced

MANIFEST = """\
apiVersion: reconciler/v1
kind: Project
metadata: {path: acme/%s}
spec: {milestones: %s}
"""
NOTHING = '{"create": 0, "update": 0, "delete": 0}\n'
NAMES = ("validate", "plan", "drift", "review", "apply")
VALIDATE, PLAN, DRIFT, REVIEW, APPLY = (f"reconciler-{name}" for name in NAMES)


def manifest(path: str, milestones: str) -> str:
    return MANIFEST % (path, milestones)


@pytest.fixture(autouse=True)
def _component(project: Project) -> None:
    project.uses("gitops")
    project.variables["RECONCILER_NOTE_TOKEN"] = "note-token"


def test_the_component_has_these_jobs(project: Project) -> None:
    assert list(project.jobs) == [VALIDATE, PLAN, REVIEW, APPLY, DRIFT]


def settled(project: Project, milestones: str = '{"1.0": {due_date: 2026-12-31}}', *more: dict[str, str]) -> str:
    """Commit manifests that the service already agrees with; return the commit."""
    state = project.sandbox.state()
    state["projects"][0]["milestones"] = [{"title": "1.0", "due_date": "2026-12-31"}, *more]
    project.sandbox.replace_state(state)
    return project.commits(api=manifest("api", milestones))


def configured(project: Project, line: str) -> None:
    """Add a line to `reconciler.yaml`."""
    (project.repository.folder / "reconciler.yaml").write_text(f"{CONFIGURATION}{line}\n")
    project.repository.commit()


def applying(pipeline: Pipeline) -> Pipeline:
    """Return the pipeline that applies what a pipeline has planned."""
    assert pipeline.run(REVIEW) == [0]
    return pipeline.child(APPLY)


def apply_all(project: Project) -> None:
    """Run a pipeline of the default branch from beginning to end."""
    pipeline = project.on_main()
    assert pipeline.run(PLAN) == [0]
    assert applying(pipeline).run(APPLY) == [0]
    project.writes()


def somebody(project: Project, **fields: str) -> None:
    """Change the milestone by hand."""
    state = project.sandbox.state()
    state["projects"][0]["milestones"][0] |= fields
    project.sandbox.replace_state(state)


def test_a_merge_request_is_planned_reviewed_merged_and_applied(project: Project) -> None:
    first = settled(project, '{"1.0": {due_date: 2026-12-31}, "2.0": {}}', {"title": "2.0"})
    apply_all(project)
    assert project.applied() == first
    assert project.owned() == [("project 100", "milestones", "1.0"), ("project 100", "milestones", "2.0")]
    project.repository.git("checkout", "--quiet", "-b", "change")
    project.commits(api=manifest("api", "{1.0: {}}"))
    pipeline = project.in_merge_request(first)
    assert pipeline.run(VALIDATE, PLAN) == [1, 1]
    [fault] = json.loads(pipeline.ran[VALIDATE][0].reports["codequality"])
    assert fault["location"] == {"path": "manifests/api.yaml", "lines": {"begin": 4}}
    commit = project.repository.git("rev-parse", "HEAD")[:8]
    failed = f"**No plan of {commit}.** [The job]({HOST}/-/jobs/1) failed; its log says why."
    assert project.notes() == [("notes", failed)]

    project.commits(api=manifest("api", '{"1.0": {due_date: 2026-12-18}, "3.0": {}}'))
    pipeline = project.in_merge_request(first)
    assert pipeline.run(VALIDATE, PLAN) == [0, 0]
    assert pipeline.ran[VALIDATE][0].reports == {"codequality": "[]\n"}
    assert pipeline.ran[PLAN][0].reports == {"terraform": '{"create": 1, "update": 1, "delete": 1}\n'}
    [(author, text)] = project.notes()
    assert (author, text.partition("\n")[0]) == ("notes", "## Plan: 1 to create, 1 to update, 1 to delete")
    assert project.writes() == []

    project.repository.git("checkout", "--quiet", "main")
    project.repository.git("merge", "--quiet", "--no-ff", "--message", "Merge", "change")
    pipeline = project.on_main()
    assert pipeline.run(VALIDATE, PLAN) == [0, 0]
    child = applying(pipeline)
    assert project.writes() == []
    assert child.run(APPLY) == [0]
    [apply] = child.ran[APPLY]
    assert project.writes() == [
        "POST projects/acme%2Fapi/milestones",
        "PUT projects/acme%2Fapi/milestones/1",
        "DELETE projects/acme%2Fapi/milestones/2",
    ]
    assert set(apply.artifacts) == {f".reconciler/{name}" for name in ("report.json", "report.html", "junit.xml")}
    assert 'failures="0"' in apply.reports["junit"]
    assert project.applied() == project.repository.git("rev-parse", "HEAD")
    assert project.owned() == [("project 100", "milestones", "1.0"), ("project 100", "milestones", "3.0")]


def test_a_plan_that_does_nothing_leaves_nothing_for_anybody_to_start(project: Project) -> None:
    first = settled(project)
    pipeline = project.on_main()
    assert pipeline.run(PLAN) == [0]
    child = applying(pipeline)
    assert (child.jobs[APPLY]["when"], child.jobs[APPLY]["tags"]) == ("on_success", ["docker"])
    assert "environment" not in child.jobs[APPLY]  # whoever may merge may not be allowed to deploy
    assert child.run(APPLY) == [0]
    assert project.applied() == first
    assert project.owned() == [("project 100", "milestones", "1.0")]
    project.commits(api=manifest("api", '{"1.0": {due_date: 2026-12-18}}'))
    pipeline = project.on_main()
    assert pipeline.run(PLAN) == [0]
    child = applying(pipeline)
    assert (child.jobs[APPLY]["when"], child.jobs[APPLY]["allow_failure"]) == ("manual", False)
    assert child.jobs[APPLY]["environment"] == {"name": "reconciler"}
    assert not child.is_cancelled_by_a_push()
    assert project.writes() == []
    project.uses("gitops", apply="auto")
    pipeline = project.on_main(CI_RUNNER_TAGS="docker, linux")
    assert pipeline.run(PLAN) == [0]
    child = applying(pipeline)
    assert (child.jobs[APPLY]["when"], child.jobs[APPLY]["tags"]) == ("on_success", ["docker", "linux"])
    assert child.jobs[APPLY]["environment"] == {"name": "reconciler"}


def test_no_variable_of_a_pipeline_chooses_what_runs_with_the_token(project: Project) -> None:
    """Whoever may run a pipeline by hand sets variables, which come before those of its jobs."""
    chosen = {"RECONCILER_IMAGE": "mine:1", "RECONCILER_ENVIRONMENT": "open", "RECONCILER_APPLY": "auto"}
    for component, jobs in (("gitops", [PLAN, REVIEW]), ("gitops-sharded", [PLAN, REVIEW])):
        project.commits(api=manifest("api", '{"1.0": {due_date: 2026-12-18}}'))
        project.uses(component, image="$CI_REGISTRY/tools/reconciler:1", environment="our settings")
        pipeline = project.on_main(**chosen)
        assert set(pipeline.run(*jobs)) == {0}
        child = pipeline.child(APPLY)
        [first] = [job for job in child.jobs.values() if job.get("environment") == {"name": "our settings"}][:1]
        assert (first["image"]["name"], first["when"]) == ("$CI_REGISTRY/tools/reconciler:1", "manual")


def test_what_was_never_applied_comes_up_again(project: Project) -> None:
    settled(project, '{"1.0": {due_date: 2026-12-31}, "2.0": {}}', {"title": "2.0"})
    apply_all(project)
    project.commits(api=manifest("api", '{"1.0": {due_date: 2026-12-31}}'))  # nobody starts the apply of this one
    last = project.commits(lib=manifest("lib", '{"1.0": {}}'))
    pipeline = project.on_main()
    assert pipeline.run(PLAN) == [0]
    assert pipeline.ran[PLAN][0].reports["terraform"] == '{"create": 1, "update": 0, "delete": 1}\n'
    assert applying(pipeline).run(APPLY) == [0]
    assert project.applied() == last


def test_a_declaration_outside_of_the_branchs_past_deletes_nothing(project: Project) -> None:
    settled(project, "{}", {"title": "2.0"})
    project.repository.git("checkout", "--quiet", "-b", "elsewhere")
    elsewhere = project.commits(api=manifest("api", '{"2.0": {}}'))
    apply_all(project)
    project.repository.git("checkout", "--quiet", "main")
    pipeline = project.on_main()
    assert pipeline.run(PLAN) == [0]
    assert pipeline.ran[PLAN][0].reports["terraform"] == NOTHING
    assert f"declared at {elsewhere[:7]}, which this branch does not contain" in pipeline.ran[PLAN][0].log


def test_the_push_token_comes_before_that_of_the_job_which_only_fetches(project: Project) -> None:
    project.protected["RECONCILER_PUSH_TOKEN"] = "glpat-push"
    project.server.tokens.add("glpat-push")
    project.server.readers.add("glcbt-job-token")
    settled(project)
    pipeline = project.on_main()
    assert pipeline.run(PLAN) == [0]
    assert project.server.users() == ["fetch gitlab-ci-token:glcbt-job-token"]
    assert applying(pipeline).run(APPLY) == [0]
    assert project.server.users()[-1] == "push reconciler:glpat-push"


def test_where_no_token_may_push_the_apply_counts_and_the_next_plan_covers_it_again(project: Project) -> None:
    project.server.readers.add("glcbt-job-token")
    settled(project)
    somebody(project, due_date="2027-01-31")
    pipeline = project.on_main()
    assert pipeline.run(PLAN) == [0]
    child = applying(pipeline)
    assert child.run(APPLY) == [3]
    assert project.writes() == ["PUT projects/acme%2Fapi/milestones/1"]
    assert "the inventory could not be stored: with CI_JOB_TOKEN: " in child.ran[APPLY][0].log
    assert project.inventory() == []
    pipeline = project.on_main()
    assert pipeline.run(PLAN) == [0]
    assert pipeline.ran[PLAN][0].reports["terraform"] == NOTHING


def test_what_was_pushed_alone_is_planned_if_a_variable_says_so(project: Project) -> None:
    settled(project, '{"1.0": {due_date: 2026-12-31}, "2.0": {}}', {"title": "2.0"})
    apply_all(project)
    project.commits(lib=manifest("lib", '{"1.0": {}}'))
    before = project.commits(web=manifest("web", "{}"))
    project.commits(api=manifest("api", '{"1.0": {due_date: 2026-12-31}}'))
    pipeline = project.on_main(RECONCILER_SINCE=before)
    assert pipeline.run(PLAN) == [0]
    assert pipeline.ran[PLAN][0].reports["terraform"] == '{"create": 0, "update": 0, "delete": 1}\n'
    pipeline = project.on_main(RECONCILER_SINCE=ZEROS)  # the commit before a pipeline that somebody starts
    assert pipeline.run(PLAN) == [0]
    assert pipeline.ran[PLAN][0].reports["terraform"] == '{"create": 1, "update": 0, "delete": 1}\n'


def test_links_that_a_merge_request_commits_are_neither_followed_nor_posted(project: Project, tmp_path: Path) -> None:
    base = project.commits(api=manifest("api", '{"1.0": {}}'))
    secret = tmp_path / "secret.md"
    secret.write_text("glpat-secret")
    folder = project.repository.folder / ".reconciler"
    folder.mkdir()
    (folder / "note.md").symlink_to(secret)
    project.commits(api="nonsense")
    assert project.in_merge_request(base).run(PLAN) == [1]
    [(_, text)] = project.notes()
    assert text.startswith("**No plan of ")
    shutil.rmtree(folder)
    folder.symlink_to(tmp_path)
    (tmp_path / "note.md").write_text("glpat-secret")
    project.commits(api=manifest("api", '{"1.0": {}, "2.0": {}}'))
    assert project.in_merge_request(base).run(PLAN) == [0]
    [(_, text)] = project.notes()
    assert text.startswith("## Plan: ")
    assert [(tmp_path / name).read_text() for name in ("secret.md", "note.md")] == ["glpat-secret"] * 2


def test_what_somebody_changes_after_the_plan_is_refused_and_fails_the_job(project: Project) -> None:
    settled(project)
    apply_all(project)
    project.commits(api=manifest("api", '{"1.0": {due_date: 2026-12-18}, "2.0": {}}'))
    pipeline = project.on_main()
    assert pipeline.run(PLAN) == [0]
    child = applying(pipeline)
    somebody(project, due_date="2027-01-31")
    assert child.run(APPLY) == [3]
    [apply] = child.ran[APPLY]
    assert project.writes() == ["POST projects/acme%2Fapi/milestones"]
    assert json.loads(apply.artifacts[".reconciler/report.json"])["summary"]["stale"] == 1
    pipeline = project.on_main()
    assert pipeline.run(PLAN) == [0]
    assert pipeline.ran[PLAN][0].reports["terraform"] == '{"create": 0, "update": 1, "delete": 0}\n'


def test_drift_is_a_warning_and_what_cannot_be_told_a_failure(project: Project) -> None:
    settled(project)
    pipeline = project.on_main("schedule")
    assert pipeline.run(DRIFT) == [0]
    somebody(project, due_date="2027-01-31")
    assert pipeline.run(DRIFT) == [2]
    [drift] = pipeline.ran[DRIFT]
    assert pipeline.color(DRIFT) is Color.ORANGE
    assert 'failures="1"' in drift.reports["junit"]
    assert (
        'reconciler_plan_changes{level="project",group="acme",section="milestones",action="update"} 1'
        in drift.artifacts[".reconciler/reconciler.prom"]
    )
    names = ("drift.json", "drift.html", "reconciler.prom", "junit.xml")
    assert set(drift.artifacts) == {f".reconciler/{name}" for name in names}
    project.variables["RECONCILER_READ_TOKEN"] = "taken-back"
    pipeline = project.on_main("schedule")
    assert (pipeline.run(DRIFT), pipeline.color(DRIFT)) == ([1], Color.RED)
    assert NO_FILES not in pipeline.ran[DRIFT][0].log
    assert project.writes() == []


def test_with_an_issue_drift_is_told_there(project: Project) -> None:
    configured(project, "issue: {}")
    settled(project)
    somebody(project, due_date="2027-01-31")
    pipeline = project.on_main("schedule")
    assert pipeline.run(DRIFT) == [2]
    assert "Issue drift opened" in pipeline.ran[DRIFT][0].log


def test_jobs_of_one_line_make_a_pipeline_of_ones_own(project: Project) -> None:
    before = settled(project)
    kept = {"when": "always", "paths": [".reconciler"]}
    jobs = {"check": "validate", "plan": "plan", "apply": "apply --plan .reconciler/plan.json --yes", "watch": "drift"}
    project.jobs = {
        name: {
            "needs": ["plan"] if name == "apply" else [],
            "variables": {"GIT_DEPTH": "0"},
            "script": [f"reconciler {line} || exit $?"],
            "artifacts": kept,
        }
        for name, line in jobs.items()
    }
    project.commits(api=manifest("api", '{"1.0": {due_date: 2026-12-18}}'))
    assert project.in_merge_request(before).run("check", "plan") == [0, 0]
    pipeline = project.on_main()
    assert pipeline.run("check", "plan", "apply") == [0, 0, 0]
    assert set(pipeline.ran["plan"][0].artifacts) == {
        f".reconciler/{name}" for name in ("plan.json", "plan.html", "tfplan.json")
    }
    assert project.writes() == ["PUT projects/acme%2Fapi/milestones/1"]
    assert project.applied() == project.repository.git("rev-parse", "HEAD")
    assert project.on_main("schedule").run("watch") == [0]


def test_with_a_baseline_drift_is_a_warning_once(project: Project) -> None:
    configured(project, "baseline: .reconciler/drift.json")
    settled(project)
    somebody(project, due_date="2027-01-31")
    assert project.on_main("schedule").run(DRIFT) == [2]
    pipeline = project.on_main("schedule")
    assert pipeline.run(DRIFT) == [0]
    assert "1 change as in the baseline" in pipeline.ran[DRIFT][0].log
    somebody(project, due_date="2027-02-28")
    assert project.on_main("schedule").run(DRIFT) == [2]


def test_a_created_token_goes_where_the_command_puts_it_and_nowhere_else(project: Project, tmp_path: Path) -> None:
    project.commits(api=manifest("api", "{}").replace("{milestones: {}}", "{trigger_tokens: {nightly: {}}}"))
    pipeline = project.on_main()
    assert pipeline.run(PLAN) == [0]
    child = applying(pipeline)
    assert child.run(APPLY) == [1]
    assert "the plan is refused" in child.ran[APPLY][0].log
    assert NO_FILES not in child.ran[APPLY][0].log
    assert project.writes() == []
    vault = tmp_path / "the vault"
    project.protected["VAULT_PASSWORD"] = "correct-horse"
    command = f'sh -c \'cat >> "{vault}"; echo "$VAULT_PASSWORD" > "{tmp_path}/used"\''
    configured(project, f"tokens_command: {json.dumps(command)}")
    pipeline = project.on_main()
    assert pipeline.run(PLAN) == [0]
    child = applying(pipeline)
    assert set(child.jobs[APPLY]["variables"]) == {"GIT_DEPTH"}  # the service shows them
    assert child.run(APPLY) == [0]
    assert (tmp_path / "used").read_text() == "correct-horse\n"
    [apply] = child.ran[APPLY]
    value = json.loads(vault.read_text())["token"]
    assert value in str(project.sandbox.state())
    assert value not in apply.everything


def test_a_merge_request_without_a_token_for_notes_is_planned_all_the_same(project: Project) -> None:
    first = settled(project)
    project.commits(api=manifest("api", '{"1.0": {}, "2.0": {}}'))
    del project.variables["RECONCILER_NOTE_TOKEN"]
    pipeline = project.in_merge_request(first)
    assert pipeline.run(PLAN) == [0]
    [plan] = pipeline.ran[PLAN]
    assert "No note posted: no token (CI job tokens may not comment" in plan.log
    assert project.notes() == []


def test_a_sick_project_is_noted_and_neither_stops_the_others_nor_hides_drift(project: Project) -> None:
    first = settled(project)
    project.commits(web=manifest("nowhere", '{"1.0": {}}'), lib=manifest("lib", '{"1.0": {}}'))
    pipeline = project.in_merge_request(first)
    assert (pipeline.run(PLAN), pipeline.color(PLAN)) == ([3], Color.ORANGE)
    [(_, text)] = project.notes()
    assert "1 problem" in text
    assert "acme/nowhere" in text
    pipeline = project.on_main(before=first)
    assert pipeline.run(PLAN) == [3]
    child = applying(pipeline)
    assert child.run(APPLY) == [0]
    assert project.writes() == ["POST projects/acme%2Flib/milestones"]
    assert "1 problem" in child.ran[APPLY][0].log
    assert ("project 101", "milestones", "1.0") in project.owned()
    configured(project, "allow_problems: true")
    assert project.in_merge_request(first).run(PLAN) == [0]
    configured(project, "")
    pipeline = project.on_main("schedule")
    assert (pipeline.run(DRIFT), pipeline.color(DRIFT)) == ([3], Color.ORANGE)
    somebody(project, due_date="2027-01-31")
    assert pipeline.run(DRIFT) == [2]
    [drift] = pipeline.ran[DRIFT]
    assert "Plan: 1 to update, 1 problem." in drift.log


def merged_elsewhere(repository: Repository) -> tuple[str, str]:
    """Return the base of a branch, and the head of the target branch, which has moved on."""
    base = repository.git("rev-parse", "HEAD")
    lib = repository.folder / "manifests" / "lib.yaml"
    lib.write_text(manifest("lib", '{"1.0": {}}'))
    return base, repository.commit()


def test_of_a_merged_result_only_what_the_merge_request_changes_is_planned(project: Project) -> None:
    settled(project)
    base, target = merged_elsewhere(project.repository)
    project.commits(api=manifest("api", '{"1.0": {due_date: 2026-12-18}}'))
    pipeline = project.in_merge_request(base, CI_MERGE_REQUEST_TARGET_BRANCH_SHA=target)
    assert pipeline.run(PLAN) == [0]
    assert pipeline.ran[PLAN][0].reports["terraform"] == '{"create": 0, "update": 1, "delete": 0}\n'


def test_many_deletions_need_the_word_of_whoever_starts_the_job(project: Project) -> None:
    titles = [f"1.{number}" for number in range(10)]
    state = project.sandbox.state()
    state["projects"][0]["milestones"] = [{"title": title} for title in titles]
    project.sandbox.replace_state(state)
    project.commits(api=manifest("api", json.dumps({title: {} for title in titles})))
    apply_all(project)
    project.commits(api=manifest("api", json.dumps({title: {} for title in titles[:5]})))
    pipeline = project.on_main()
    assert pipeline.run(PLAN) == [0]
    child = applying(pipeline)
    assert child.run(APPLY) == [1]
    assert project.writes() == []
    assert child.run(APPLY, RECONCILER_ALLOW_DELETES="5") == [0]
    assert len(project.writes()) == 5
