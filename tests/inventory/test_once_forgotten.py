"""Changes that were reviewed, and that a mark on the last applied commit once forgot: each is done, or planned again."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.inventory.checkout import Checkout

SICK = "manifests/sick.yaml"
DONE = ["project acme/api", '  - milestone "b"                             done']


@pytest.fixture
def applied(user: Checkout) -> Checkout:
    """A user who has applied two milestones."""
    user.milestones("a", "b")
    user.commit("first")
    assert user.apply()[0] == 0
    return user


def day(days: int) -> str:
    return (datetime.now(UTC) + timedelta(days=days)).date().isoformat()


@pytest.mark.untraced
def test_a_reviewed_deletion_is_carried_out_though_another_project_is_sick(user: Checkout) -> None:
    user.milestones("a", "b")
    user.milestones("x", path="acme/none", name=SICK)
    user.commit("first")
    sick = user.apply()
    assert sick[0] == 3
    user.milestones("a")
    user.commit("second")
    deletion = '  - milestone "b"     removed from the manifests since <first>'
    code, lines = user.plan("--since HEAD~1")
    assert (code, lines[:2]) == (0, ["project acme/api", deletion])
    code, lines = user.plan("--allow-problems")
    assert (code, lines[:2]) == (0, ["project acme/api", deletion])
    code, lines = user.apply("--allow-problems")
    assert (code, lines[:2]) == (0, DONE)
    assert (user.live(), user.listed()) == (["a"], ["project 100 a <first>"])


def test_a_list_that_cannot_be_stored_is_told_and_the_review_shows_what_that_means(clone: Checkout) -> None:
    hook = clone.remote / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho You may not push. >&2\nexit 1\n")
    hook.chmod(0o755)
    clone.milestones("a", "b")
    clone.commit("first")
    code, lines = clone.apply()
    assert (code, lines[:3]) == (
        3,
        [
            "project acme/api",
            '  + milestone "a"                             done',
            '  + milestone "b"                             done',
        ],
    )
    assert "You may not push." in lines[-1]
    assert "run apply again" in lines[-1]
    clone.milestones("a")
    clone.commit("second")
    stays = "1 object is no longer declared; no inventory knows it: it stays"
    assert stays in clone.plan("--since HEAD~1")[1]
    clone.milestones()
    clone.commit("none")
    stay = "2 objects are no longer declared; no inventory knows them: they stay"
    assert stay in clone.plan("--since HEAD~2")[1]
    hook.unlink()
    clone.milestones("a", "b")
    clone.commit("third")
    assert clone.apply()[0] == 0
    clone.milestones("a")
    clone.commit("fourth")
    assert clone.apply() == (0, DONE)


@pytest.mark.untraced
def test_a_saved_plan_forgets_no_deletion(applied: Checkout) -> None:
    applied.milestones("a")
    applied.commit("second")
    applied.milestones("x", path="acme/lib", name="manifests/lib.yaml")
    applied.commit("third")
    applied.plan("--target acme/lib --out ../plan.json")
    assert applied.apply("--plan ../plan.json")[0] == 0
    assert applied.listed() == ["project 100 a <first>", "project 100 b <first>", "project 101 x <third>"]
    applied.plan("--out ../plan.json")
    assert applied.apply("--plan ../plan.json") == (0, DONE)
    assert (applied.live(), applied.listed()) == (["a"], ["project 100 a <first>", "project 101 x <third>"])


@pytest.mark.untraced
@pytest.mark.parametrize("since", ["", "--since applied"])
def test_a_deletion_that_an_exception_holds_back_comes_after_its_end(applied: Checkout, since: str) -> None:
    exceptions = ", exceptions: [{{section: milestones, item: b, until: {}, reason: A demo}}]"
    applied.declare("{milestones: {a: {}}}", more=exceptions.format(day(1)))
    applied.commit("second")
    held = f'  = milestone "b"                             not deleted, excepted until {day(1)}: A demo'
    code, lines = applied.plan(f"{since} -v")
    assert (code, lines[:2]) == (0, ["project acme/api", held])
    code, lines = applied.plan(since)
    assert (code, lines[0]) == (0, f"1 excepted until {day(1)} at the earliest (-v shows them)")
    assert applied.apply(since)[0] == 0
    assert (applied.live(), applied.listed()) == (["a", "b"], ["project 100 a <first>", "project 100 b <first>"])
    applied.declare("{milestones: {a: {}}}", more=exceptions.format(day(-1)))
    applied.commit("third")
    code, lines = applied.apply(since)
    assert (code, lines[:2]) == (0, DONE)
    assert (applied.live(), applied.listed()) == (["a"], ["project 100 a <first>"])


@pytest.mark.untraced
def test_a_retry_does_not_pass_for_an_apply_of_what_was_merged_since(applied: Checkout) -> None:
    applied.milestones("a")
    applied.commit("second")
    applied.cli.sandbox.set_faults(["status=403,method=DELETE,match=/milestones"])
    assert applied.apply("--report json=../report.json")[0] == 3
    applied.cli.sandbox.set_faults([])
    applied.milestones("a", "q")
    applied.commit("third")
    assert applied.apply("--retry-failed ../report.json") == (0, DONE)
    assert applied.plan("--since applied") == (0, ["project acme/api", '  + milestone "q"'])
    assert applied.apply("--since applied")[0] == 0
    assert applied.plan("--since applied") == (0, [])


SET = """\
apiVersion: reconciler/v1
kind: ProjectSet
metadata: {{name: all}}
select: {{group: acme, include: [acme/api]}}
spec: {{trigger_tokens: {spec}}}
"""


@pytest.mark.untraced
@pytest.mark.parametrize("since", ["", "--since applied"])
def test_a_deletion_that_was_not_applicable_comes_when_it_is(user: Checkout, since: str) -> None:
    user.write("manifests/set.yaml", SET.format(spec="{t: {}, u: {}}"))
    user.commit("first")
    assert user.apply("--tokens-to ../tokens.jsonl")[0] == 0
    user.change(lambda project: project.update(builds_enabled=False))
    user.write("manifests/set.yaml", SET.format(spec="{t: {}}"))
    user.commit("second")
    assert user.apply(since) == (0, [])
    assert user.listed() == ["project 100 t <first>", "project 100 u <first>"]
    user.change(lambda project: project.update(builds_enabled=True))
    assert user.apply(since) == (0, ["project acme/api", '  - trigger token "u"                         done'])
    assert user.listed() == ["project 100 t <first>"]


TEMPLATE = """\
apiVersion: reconciler/v1
kind: Project
metadata: {path: acme/api}
spec: {approval_settings: {allow_author_approval: {{ lax }}}}
"""


@pytest.mark.untraced
def test_a_change_of_reconciler_yaml_alone_is_shown_to_its_reviewer(user: Checkout) -> None:
    user.write("manifests/project.yaml.j2", TEMPLATE)
    user.write("strict.yaml", "lax: false\n")
    user.write("lax.yaml", "lax: true\n")
    user.write("reconciler.yaml", "values: strict.yaml\n")
    user.commit("first")
    assert user.apply()[0] == 0
    user.write("reconciler.yaml", "values: lax.yaml\n")
    user.commit("second")
    line = "  ~ approval settings                         allow_author_approval: false -> true, loosens"
    shown = ["Loosens protection:", "project acme/api", line]
    for since in ("HEAD~1", "applied"):
        assert user.plan(f"--since {since}") == (0, shown)
    assert user.apply()[0] == 0
    assert user.plan("--since applied") == (0, [])


@pytest.mark.untraced
def test_a_folder_that_enters_or_leaves_the_paths_is_planned(user: Checkout) -> None:
    user.write("reconciler.yaml", "paths: [manifests]\n")
    user.milestones("a")
    user.milestones("x", path="acme/lib", name="more/lib.yaml")
    user.commit("first")
    assert user.apply()[0] == 0
    user.write("reconciler.yaml", "paths: [manifests, more]\n")
    user.commit("second")
    for since in ("HEAD~1", "applied"):
        assert user.plan(f"--since {since}") == (0, ["project acme/lib", '  + milestone "x"'])
    assert user.apply("--since applied")[0] == 0
    user.write("reconciler.yaml", "paths: [manifests]\n")
    user.commit("third")
    assert user.plan("--since applied") == (0, ["1 project is no longer declared; its 1 object stays"])
    assert user.live("acme/lib") == ["x"]


@pytest.mark.untraced
def test_what_only_time_changes_comes_up(user: Checkout) -> None:
    """The list names the day on which time alone changes what is wanted; that day is made to be today."""
    exception = f", exceptions: [{{section: milestones, item: a, until: {day(20)}, reason: A demo}}]"
    user.declare("{milestones: {a: {}, b: {}}}", more=exception)
    user.declare("{trigger_tokens: {t: {rotate_after: 90d}}}", "acme/lib", "manifests/lib.yaml")
    created = "apiVersion: reconciler/v1\nkind: Project\nmetadata: {path: acme/made}\ncreate: {}\n"
    user.write("manifests/made.yaml", f"{created}spec: {{trigger_tokens: {{t: {{rotate_after: 30d}}}}}}\n")
    user.commit("first")
    assert user.apply("--tokens-to ../tokens.jsonl")[0] == 0
    again = {line["path"]: line.get("again") for line in user.inventory() if "path" in line}
    assert again == {"acme/api": day(21), "acme/lib": day(90), "acme/made": day(30)}
    assert user.plan("--since applied") == (0, [])
    born = (datetime.now(UTC) - timedelta(days=91)).isoformat()
    user.change(lambda project: project["trigger_tokens"][0].update(created_at=born), "acme/lib")
    user.forge(lambda lines: [line.update(again=day(0)) for line in lines if "path" in line])
    code, lines = user.apply("--since applied --tokens-to ../tokens.jsonl")
    assert code == 0
    assert "project acme/lib" in lines
    assert user.live("acme/lib", "trigger_tokens", "description") == ["t", "t"]


@pytest.mark.untraced
def test_an_uncommitted_reconciler_yaml_is_no_commit(user: Checkout) -> None:
    user.milestones("a", "b")
    user.commit("first")
    user.write("reconciler.yaml", "concurrency: 4\n")
    assert user.apply()[0] == 0
    assert (user.applied(), user.listed()) == ("", ["project 100 a", "project 100 b"])
    user.milestones("a")
    user.commit("second")
    stays = "1 object no longer declared stays: the manifests that declared it were never committed"
    assert user.plan() == (0, [stays])
    assert user.apply() == (0, [stays])
    assert (user.applied(), user.listed()) == ("<second>", ["project 100 a <second>", "project 100 b"])


@pytest.mark.untraced
@pytest.mark.parametrize("since", ["", "--since HEAD~1", "--since applied"])
def test_keys_without_names_are_never_deleted_by_absence(user: Checkout, since: str) -> None:
    def keys() -> list[int]:
        return [key["id"] for key in user.cli.sandbox.state()["projects"][0]["error_tracking_client_keys"]]

    spec = "{{error_tracking_client_keys: {{count: {}}}{}}}"
    user.declare(spec.format(2, ""))
    user.commit("first")
    assert user.apply("--tokens-to ../tokens.jsonl")[0] == 0
    both = keys()
    assert (len(both), user.listed()) == (2, [])
    user.declare(spec.format(1, ""))
    user.commit("second")
    assert user.apply(since) == (0, [])
    assert keys() == both
    user.declare(spec.format(1, ", prune: [error_tracking_client_keys]"))
    user.commit("third")
    assert user.apply(since)[0] == 0
    assert keys() == both[1:]


@pytest.mark.untraced
def test_a_reverted_apply_is_planned_until_its_commit_is_reverted_too(user: Checkout) -> None:
    user.milestones("a")
    user.commit("first")
    assert user.apply()[0] == 0
    user.milestones("a", "b")
    user.commit("second")
    assert user.apply()[0] == 0
    code, lines = user.run("revert --last --yes")
    assert (code, lines[:2]) == (0, DONE)
    assert "The manifests still declare what this revert undid: revert their commit too." in lines
    assert (user.live(), user.listed()) == (["a"], ["project 100 a <first>"])
    for since in ("", "--since applied"):
        assert user.plan(since) == (0, ["project acme/api", '  + milestone "b"'])
    user.git.git("revert", "--no-edit", "HEAD")
    assert user.apply() == (0, [])
    assert (user.live(), user.listed()) == (["a"], ["project 100 a <first>"])
    assert user.plan("--since applied") == (0, [])


@pytest.mark.untraced
def test_a_change_of_a_killed_run_is_planned_until_it_is_done(applied: Checkout) -> None:
    """Only the service was changed: the list knows nothing of it, and plans it again."""
    applied.milestones("a", "c")
    applied.commit("second")
    applied.change(lambda project: project["milestones"].append({"title": "c"}))
    for since in ("", "--since applied"):
        code, lines = applied.plan(since)
        assert (code, lines[0], lines[1][:17]) == (0, "project acme/api", '  - milestone "b"')
    assert applied.apply("--since applied") == (0, DONE)
    assert applied.listed() == ["project 100 a <first>", "project 100 c <second>"]
