"""Sequences of commits and applies that a list of what was applied could be misled by: each of them by name."""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tests.fleet.repository import Repository
from tests.inventory.checkout import Checkout
from tests.inventory.killing import Killed, mortal
from tests.items import said

SET = """\
apiVersion: reconciler/v1
kind: ProjectSet
metadata: {name: tools}
select: {group: acme/tools}
spec: {milestones: {s: {}}}
"""


def test_a_checkout_that_is_behind_deletes_nothing_that_others_have_just_applied(clone: Checkout) -> None:
    clone.milestones("a")
    clone.commit("first")
    clone.git.git("push", "--quiet", "origin", "main")
    other = clone.clone("bob")
    clone.milestones("a", "b")
    clone.commit("second")
    clone.git.git("push", "--quiet", "origin", "main")
    assert clone.apply()[0] == 0
    stays = "1 object no longer declared stays: declared at <second>, which this branch does not contain"
    newer = "newer manifests were applied, <second>: run `git pull`, or a new pipeline"
    assert other.plan() == (0, [f"apply will not delete what is no longer declared: {newer}", stays])
    assert other.apply() == (0, [stays, f"{newer}; this apply may set back what they changed"])
    assert (other.live(), other.listed()) == (
        ["a", "b"],
        ["project 100 a <first>", "project 100 b <second>"],
    )
    other.git.git("pull", "--quiet")
    assert other.plan() == (0, [])
    other.milestones("a")
    other.commit("third")
    assert other.apply() == (0, ["project acme/api", '  - milestone "b"                             done'])
    assert (other.live(), other.listed()) == (["a"], ["project 100 a <first>"])


@pytest.mark.untraced
@pytest.mark.parametrize("options", ["--values three.yaml", "--set x=1", "--env HOME", "manifests/project.yaml.j2"])
def test_a_run_with_other_inputs_than_the_repository_says_deletes_nothing(user: Checkout, options: str) -> None:
    user.write("reconciler.yaml", "values: one.yaml\n")
    for name, titles in {"one": "ab", "two": "a", "three": "a"}.items():
        user.write(f"{name}.yaml", f"titles: {titles}\n")
    user.declare(
        "{milestones: { {% for title in titles %}{{ title }}: {}, {% endfor %} }}", name="manifests/project.yaml.j2"
    )
    user.milestones("x", path="acme/lib", name="manifests/lib.yaml")
    user.commit("first")
    assert user.apply()[0] == 0
    user.write("reconciler.yaml", "values: two.yaml\nset: {}\n")
    user.commit("second")
    stays = "1 object no longer declared stays: "
    done = user.plan(options)
    assert (done[0], [line[: len(stays)] for line in done[1]]) == (0, [stays])
    assert user.apply(options) == done
    assert user.listed() == ["project 100 a <first>", "project 100 b <first>", "project 101 x <first>"]
    assert user.apply("./manifests") == (0, ["project acme/api", '  - milestone "b"                             done'])


@pytest.mark.untraced
def test_the_values_that_the_repository_sets_are_no_other_inputs(user: Checkout) -> None:
    user.write("reconciler.yaml", "set: {titles: ab}\n")
    user.declare(
        "{milestones: { {% for title in titles %}{{ title }}: {}, {% endfor %} }}", name="manifests/project.yaml.j2"
    )
    user.commit("first")
    assert user.apply()[0] == 0
    user.write("reconciler.yaml", "set: {titles: a}\n")
    user.commit("second")
    deleted = ["project acme/api", '  - milestone "b"     removed from the manifests since <first>']
    assert user.plan() == (0, deleted)
    assert user.plan("--set titles=a") == (0, deleted)
    assert user.plan("--set titles=b")[1][-1].endswith("other inputs than reconciler.yaml: --set")
    assert user.plan("--since HEAD~1") == (0, deleted)


@pytest.mark.untraced
def test_what_a_pruned_section_deletes_does_not_stay(user: Checkout) -> None:
    """Such a deletion needs no proof, and none is missed."""
    user.milestones("a", "b")
    user.commit("first")
    assert user.apply()[0] == 0
    user.declare("{prune: [milestones], milestones: {a: {}}}")
    assert user.plan("--set x=1") == (0, ["project acme/api", '  - milestone "b"'])
    assert user.apply("--set x=1") == (0, ["project acme/api", '  - milestone "b"                             done'])


@pytest.mark.untraced
def test_a_renamed_milestone_is_renamed_or_created_and_deleted(user: Checkout) -> None:
    user.milestones("v1", "a")
    user.commit("first")
    assert user.apply()[0] == 0
    user.declare("{milestones: {v2: {renamed_from: v1}, a: {}}}")
    user.commit("second")
    assert user.apply() == (0, ["project acme/api", '  ~ milestone "v2"                            done'])
    assert user.listed() == ["project 100 a <first>", "project 100 v2 <second>"]
    user.milestones("v3", "a")
    user.commit("third")
    assert user.plan() == (
        0,
        [
            "project acme/api",
            '  + milestone "v3"',
            '  - milestone "v2"     removed from the manifests since <second>',
            'milestone "v3" looks like a rename: add renamed_from: "v2" at manifests/project.yaml:4',
        ],
    )
    assert user.apply()[0] == 0
    assert (user.live(), user.listed()) == (["a", "v3"], ["project 100 a <first>", "project 100 v3 <third>"])


@pytest.mark.untraced
def test_a_milestone_that_cannot_be_renamed_keeps_its_line(user: Checkout) -> None:
    """Somebody has made a milestone of the new name, so that both stay; only the former one is ours."""
    user.milestones("c")
    user.commit("first")
    assert user.apply()[0] == 0
    user.change(lambda project: project["milestones"].append({"title": "a"}))
    user.declare("{milestones: {a: {renamed_from: c}}}")
    user.commit("second")
    assert (user.apply()[0], user.live(), user.listed()) == (3, ["a", "c"], ["project 100 c <first>"])
    user.milestones()
    user.commit("third")
    assert user.apply() == (0, ["project acme/api", '  - milestone "c"                             done'])
    assert (user.live(), user.listed()) == (["a"], [])


@pytest.mark.untraced
def test_a_milestone_that_somebody_renamed_on_the_service_stays(user: Checkout) -> None:
    user.milestones("a", "b")
    user.commit("first")
    assert user.apply()[0] == 0
    user.change(lambda project: project["milestones"][1].update(title="theirs"))
    user.milestones("a")
    user.commit("second")
    stays = "1 object no longer declared stays: the service shows the object by another name"
    assert user.plan() == (0, [stays])
    assert user.apply() == (0, [stays])
    assert user.live() == ["a", "theirs"]


@pytest.mark.untraced
def test_a_token_and_its_successor_are_both_ours_during_the_grace(user: Checkout) -> None:
    user.declare("{trigger_tokens: {deploy: {rotate_after: 90d}}}")
    user.commit("first")
    assert user.apply("--tokens-to ../tokens.jsonl")[0] == 0
    born = (datetime.now(UTC) - timedelta(days=100)).isoformat()
    user.change(lambda project: project["trigger_tokens"][0].update(created_at=born))
    assert user.apply("--tokens-to ../tokens.jsonl --grace 7d")[0] == 0
    assert user.live(section="trigger_tokens", name="description") == ["deploy", "deploy"]
    assert user.listed() == ["project 100 deploy <first>", "project 100 deploy <first>"]
    code, [stays] = user.apply("--grace 7d")
    assert (code, stays.partition(":")[0]) == (0, "1 rotated token beside a successor")
    assert user.apply("--since applied --grace 7d") == (0, [])
    user.declare("{trigger_tokens: {}}")
    user.commit("second")
    assert user.apply("--grace 7d") == (
        0,
        ["project acme/api", *['  - trigger token "deploy"                    done'] * 2],
    )
    assert (user.live(section="trigger_tokens", name="description"), user.listed()) == ([], [])


@pytest.mark.untraced
def test_a_killed_run_makes_nothing_ours_and_the_next_one_does(user: Checkout) -> None:
    user.declare("{milestones: {a: {}, b: {}}, trigger_tokens: {t: {}, u: {}}}")
    user.commit("first")
    line = [sys.executable, "-m", "reconciler", "apply", "--yes", "--tokens-command", "sh -c 'kill -9 $PPID'"]
    assert subprocess.run(line, cwd=user.git.folder, capture_output=True, check=False).returncode == -signal.SIGKILL
    assert user.inventory() == []
    created = user.live(section="trigger_tokens", name="description")
    assert len(created) == 1
    user.declare("{milestones: {}, trigger_tokens: {t: {}, u: {}}}")
    user.commit("second")
    assert user.apply("--tokens-to ../tokens.jsonl")[0] == 0
    assert user.listed() == ["project 100 t <second>", "project 100 u <second>"]
    user.declare("{milestones: {}, trigger_tokens: {}}")
    user.commit("third")
    assert user.apply()[0] == 0
    assert user.live(section="trigger_tokens", name="description") == []


@pytest.mark.untraced
def test_a_plan_is_stale_once_somebody_has_declared_again_what_it_deletes(clone: Checkout) -> None:
    clone.milestones("a", "b")
    clone.commit("first")
    assert clone.apply()[0] == 0
    clone.milestones("a")
    clone.commit("second")
    clone.git.git("push", "--quiet", "origin", "main")
    assert clone.plan("--out ../plan.json") == (
        0,
        ["project acme/api", '  - milestone "b"     removed from the manifests since <first>'],
    )
    other = clone.clone("bob")
    other.milestones("a", "b")
    other.commit("third")
    assert other.apply() == (0, [])
    newer = (
        "manifests that this clone lacks were applied, <third>: run `git fetch origin <third>`, once they are pushed"
    )
    assert clone.apply("--plan ../plan.json") == (
        3,
        [
            "project acme/api",
            f'  - milestone "b"                             stale: {newer}',
            f"{newer}; this apply may set back what they changed",
        ],
    )
    assert (clone.live(), clone.listed()) == (["a", "b"], ["project 100 a <first>", "project 100 b <first>"])


@pytest.mark.untraced
def test_a_plan_is_stale_once_the_list_no_longer_has_what_it_deletes(user: Checkout) -> None:
    user.milestones("a", "b")
    user.commit("first")
    assert user.apply()[0] == 0
    user.milestones("a")
    user.commit("second")
    assert user.plan("--out ../plan.json")[0] == 0
    user.forge(lambda lines: lines.pop())
    assert user.apply("--plan ../plan.json") == (
        3,
        [
            "project acme/api",
            '  - milestone "b"                             stale: the inventory no longer lists it: plan again',
        ],
    )
    assert user.live() == ["a", "b"]


@pytest.mark.untraced
def test_a_plan_that_is_applied_without_a_checkout_deletes_nothing_by_absence(user: Checkout) -> None:
    user.milestones("a", "b")
    user.commit("first")
    assert user.apply()[0] == 0
    user.milestones("a", "c")
    user.commit("second")
    assert user.plan("--out ../plan.json")[0] == 0
    elsewhere = replace(user, git=Repository(user.git.folder.parent))
    code, lines = elsewhere.apply("--plan plan.json")
    stale = (
        "stale: no longer declared, and deleted only in a checkout of the manifests' repository, where the inventory can be "
        "read"
    )
    assert (code, lines) == (
        3,
        [
            "project acme/api",
            '  + milestone "c"                             done',
            f'  - milestone "b"                             {stale}',
        ],
    )
    assert user.live() == ["a", "b", "c"]


@pytest.mark.untraced
def test_a_shallow_clone_deletes_nothing_until_it_has_the_history(clone: Checkout) -> None:
    clone.milestones("a", "b")
    clone.commit("first")
    assert clone.apply()[0] == 0
    clone.milestones("a")
    clone.commit("second")
    clone.git.git("push", "--quiet", "origin", "main")
    shallow = clone.clone("bob", "--depth=1")
    stays = "1 object no longer declared stays: declared at <first>, which is not in this clone: fetch the history"
    assert shallow.plan() == (0, [stays])
    assert shallow.apply() == (0, [stays])
    assert (shallow.live(), shallow.listed()) == (["a", "b"], ["project 100 a <second>", "project 100 b <first>"])
    shallow.git.git("fetch", "--quiet", "--unshallow")
    assert shallow.apply() == (0, ["project acme/api", '  - milestone "b"                             done'])
    assert (shallow.live(), shallow.listed()) == (["a"], ["project 100 a <second>"])


@pytest.mark.untraced
def test_a_squash_makes_ours_what_it_declares_and_nothing_else(user: Checkout) -> None:
    user.milestones("a")
    user.commit("first")
    user.git.git("switch", "--quiet", "--create", "feature")
    user.milestones("a", "b", "c")
    user.commit("feature")
    assert user.apply()[0] == 0
    user.git.git("switch", "--quiet", "main")
    user.milestones("a", "b")
    user.commit("squash")
    stays = "1 object no longer declared stays: declared at <feature>, which this branch does not contain"
    assert user.plan() == (0, [stays])
    assert user.apply() == (0, [stays])
    assert user.listed() == ["project 100 a <squash>", "project 100 b <squash>", "project 100 c <feature>"]
    user.milestones("a")
    user.commit("last")
    assert user.apply() == (0, ["project acme/api", '  - milestone "b"                             done', stays])
    assert user.live() == ["a", "c"]


@pytest.mark.untraced
def test_a_forged_line_deletes_nothing_that_reviewed_manifests_never_declared(user: Checkout) -> None:
    user.milestones("a")
    user.commit("first")
    assert user.apply()[0] == 0
    user.change(lambda project: project["milestones"].append({"id": 999, "title": "theirs"}))
    line = {"target": "project 100", "section": "milestones", "name": "theirs", "id": 999, "at": 0}
    user.forge(lambda lines: lines.append(line))
    stays = "1 object no longer declared stays: the manifests at <first> do not declare it"
    assert user.plan() == (0, [stays])
    number = next(
        item["id"] for item in user.cli.sandbox.state()["projects"][0]["milestones"] if item["title"] == "theirs"
    )
    user.forge(lambda lines: lines.append({**line, "name": "a", "id": number}))
    assert user.apply()[0] == 0
    assert user.live() == ["a", "theirs"]


@pytest.mark.untraced
def test_leaving_never_deletes_and_an_empty_section_does(user: Checkout) -> None:
    for name in ("api", "lib", "web"):
        user.declare(
            "{milestones: {a: {}}, job_token_scope: {projects: [acme/tools/cli]}}",
            f"acme/{name}",
            f"manifests/{name}.yaml",
        )
    user.write("manifests/set.yaml", SET)
    user.commit("first")
    assert user.apply()[0] == 0
    user.declare("{job_token_scope: {projects: []}}", "acme/api", "manifests/api.yaml")
    (user.git.folder / "manifests" / "lib.yaml").unlink()
    (user.git.folder / "manifests" / "set.yaml").unlink()
    user.declare("{milestones: {}, job_token_scope: {enabled: true}}", "acme/web", "manifests/web.yaml")
    user.commit("second")
    left = [
        "2 projects are no longer declared; their 3 objects stay",
        "job_token_scope.projects of 1 project is no longer declared; its 1 object stays "
        "(`job_token_scope: {projects: []}` deletes it)",
        "milestones of 1 project is no longer declared; its 1 object stays (`milestones: {}` deletes it)",
    ]
    assert user.plan() == (
        0,
        [
            "project acme/api",
            '  - allowlisted project "acme/tools/cli"      tightens     removed from the manifests since <first>',
            "project acme/web",
            '  - milestone "a"     removed from the manifests since <first>',
            *left,
        ],
    )
    assert user.apply()[0] == 0
    assert user.listed() == []
    assert [user.live(f"acme/{name}") for name in ("api", "lib", "web", "tools/cli")] == [["a"], ["a"], [], ["s"]]
    user.declare("{milestones: {}}", "acme/api", "manifests/api.yaml")
    assert user.apply() == (0, [])


@pytest.mark.untraced
def test_another_host_that_the_checkout_names_gets_nothing(clone: Checkout) -> None:
    other = clone.git.folder.parent / "other.git"
    clone.git.git("init", "--quiet", "--bare", str(other))
    for name in ("insteadOf", "pushInsteadOf"):
        clone.git.git("config", f"url.{other.as_uri()}.{name}", clone.remote.as_uri())
    clone.git.git("config", "remote.origin.pushurl", other.as_uri())
    clone.milestones("a")
    clone.commit("first")
    assert clone.apply()[0] == 0
    assert clone.listed() == ["project 100 a <first>"]
    assert Repository(other).git("for-each-ref") == ""


@pytest.mark.untraced
@pytest.mark.parametrize("options", [True, False])
def test_a_server_may_take_no_options_of_a_push(clone: Checkout, *, options: bool) -> None:
    server = Repository(clone.remote)
    server.git("config", "receive.advertisePushOptions", str(options).lower())
    hook = clone.remote / "hooks" / "post-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text('#!/bin/sh\necho "$GIT_PUSH_OPTION_0" >>pushed\n')
    hook.chmod(0o755)
    clone.milestones("a")
    clone.commit("first")
    assert clone.apply() == (0, ["project acme/api", '  + milestone "a"                             done'])
    assert clone.listed() == ["project 100 a <first>"]
    assert (clone.remote / "pushed").read_text() == ("ci.skip\n" if options else "\n")


@pytest.mark.untraced
def test_two_applies_at_the_same_time_lose_no_line(clone: Checkout) -> None:
    """The other apply stores its list while ours is pushed: git refuses ours, and ours is made on top of it."""
    clone.milestones("a")
    clone.commit("first")
    clone.git.git("push", "--quiet", "origin", "main")
    other = clone.clone("bob")
    other.milestones("b", path="acme/lib", name="manifests/lib.yaml")
    other.commit("second")
    command = (
        f"env -i PATH='{os.environ['PATH']}' RECONCILER_API_URL={clone.cli.sandbox.api_url} RECONCILER_TOKEN=ada-token"
    )
    hook = clone.remote / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(
        "#!/bin/sh\nmkdir once 2>/dev/null || exit 0\n"
        f"cd {other.git.folder} && {command} {sys.executable} -m reconciler apply --yes >&2\n"
    )
    hook.chmod(0o755)
    assert clone.apply() == (0, ["project acme/api", '  + milestone "a"                             done'])
    assert clone.listed() == ["project 100 a <second>", "project 101 b <second>"]
    assert len(Repository(clone.remote).git("log", "--format=%h", "reconciler/applied").splitlines()) == 2


@pytest.mark.untraced
def test_a_line_that_is_newer_than_a_saved_plan_is_kept(clone: Checkout) -> None:
    """The plan knows which lines there were: an object that its lists lack may have been created since then."""
    clone.milestones("a", "x")
    clone.commit("first")
    clone.git.git("push", "--quiet", "origin", "main")
    behind = clone.clone("bob")
    clone.milestones("a", "b")
    clone.commit("second")
    assert clone.plan("--out ../plan.json")[0] == 0
    assert behind.apply()[0] == 0
    assert clone.apply("--plan ../plan.json")[0] == 0
    assert clone.listed() == ["project 100 a <first>", "project 100 b <second>", "project 100 x <first>"]
    assert "digest" not in next(line for line in clone.inventory() if line.get("path") == "acme/api")
    assert clone.apply() == (0, ["project acme/api", '  - milestone "x"                             done'])


def test_a_line_that_others_have_written_since_a_plan_was_saved_stays_as_it_is(clone: Checkout) -> None:
    clone.change(lambda project: project["milestones"].append({"title": "b"}))
    clone.milestones("a")
    clone.commit("first")
    clone.git.git("push", "--quiet", "origin", "main")
    other = clone.clone("bob")
    clone.milestones("a", "b")
    clone.commit("second")
    assert clone.plan("--out ../plan.json")[0] == 0
    other.milestones("b")
    other.commit("third")
    assert other.apply() == (0, [])
    assert clone.apply("--plan ../plan.json")[0] == 0
    assert clone.listed() == ["project 100 a <second>", "project 100 b <third>"]


@pytest.mark.untraced
def test_a_saved_plan_that_changes_nothing_by_now_is_not_recorded(user: Checkout) -> None:
    user.milestones("a")
    user.commit("first")
    assert user.plan("--out ../plan.json")[0] == 0
    assert user.apply()[0] == 0
    user.change(lambda project: project["milestones"][0].update(description="theirs"))
    before = user.git.git("rev-parse", "reconciler/applied")
    assert user.plan("--out ../same.json")[0] == 0
    assert user.apply("--plan ../same.json") == (0, [])
    assert user.git.git("rev-parse", "reconciler/applied") == before


@pytest.mark.untraced
@pytest.mark.parametrize("options", ["", "--quiet", "--verbose", "--plan ../plan.json", "--section milestones"])
def test_an_apply_says_what_stays_as_its_plan_does(user: Checkout, options: str) -> None:
    user.milestones("a", "b")
    user.milestones("x", path="acme/lib", name="manifests/lib.yaml")
    user.commit("first")
    done = user.apply()
    assert done == (0, [*done[1][:3], "project acme/lib", '  + milestone "x"                             done'])
    user.change(lambda project: project["milestones"][1].update(title="theirs"))
    user.milestones("a")
    (user.git.folder / "manifests" / "lib.yaml").unlink()
    user.commit("second")
    stays = [
        "1 object no longer declared stays: the service shows the object by another name",
        "1 project is no longer declared; its 1 object stays",
    ]
    assert user.plan("--out ../plan.json") == (0, stays)
    reports = " ".join(f"--report {form}=../report.{form}" for form in ("json", "markdown", "html"))
    code, lines = user.apply(f"{options} {reports}")
    assert (code, [line for line in lines if "stays" in line]) == (0, stays)
    folder = user.git.folder.parent
    assert said(json.loads((folder / "report.json").read_text()), "stays") == stays
    for form in ("markdown", "html"):
        text = (folder / f"report.{form}").read_text()
        assert all(stay in text for stay in stays)


def test_a_revert_that_is_killed_before_it_closes_a_milestone_closes_it_when_it_is_finished(
    user: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    user.declare("{milestones: {a: {state: closed}}}")
    user.commit("first")
    assert user.apply()[0] == 0
    user.declare("{milestones: {}}")
    user.commit("second")
    assert user.apply()[0] == 0
    with mortal(monkeypatch, 1), suppress(Killed):
        user.run("revert --last --yes")
    done = ["project acme/api", '  ~ milestone "a"                             done']
    assert user.run("revert --last --yes")[1][:2] == done
    (milestone,) = user.cli.sandbox.state()["projects"][0]["milestones"]
    assert (milestone["title"], milestone["state"]) == ("a", "closed")


@pytest.mark.untraced
def test_a_revert_is_in_the_log_and_leaves_no_digest_of_what_it_has_undone(
    user: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a run that was killed has undone it before: what is declared is to be done again."""
    user.milestones("a")
    user.commit("first")
    assert user.apply()[0] == 0
    user.milestones("a", "b")
    user.commit("second")
    assert user.apply()[0] == 0
    with mortal(monkeypatch, 1), suppress(Killed):
        user.run("revert --last --yes")
    assert user.live() == ["a"]
    assert user.run("revert --last --yes")[0] == 0
    assert user.plan("--since applied") == (0, ["project acme/api", '  + milestone "b"'])
    _, (_, reverted, applied, *_) = user.run("log")
    assert applied.split()[-1] == "<second>"
    assert reverted.split()[-3:] == ["<second>", "reverts", applied.split()[0]]
