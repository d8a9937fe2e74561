"""Shards: every target is in exactly one, whatever other targets there are, with the groups above it."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.document.checksum import with_checksum
from reconciler.document.document import Requests
from reconciler.document.merge import merge_reports
from reconciler.engine.compare.selection import plan_in_shard, read_shard, share
from reconciler.errors import UsageError
from reconciler.model.creation import Creation, Namespace, creation_of
from reconciler.model.plan import Plan
from reconciler.model.shards import Shard
from reconciler.model.state import DesiredState
from reconciler.model.targets import Key, Level, Target
from tests.building import KINDS, USER, SectionPlan, desired, section, target_plan
from tests.cli_runner import CliRunner
from tests.fleet.repository import repository
from tests.render.plans import patiently
from tests.render.samples import done


def fleet(*refs: tuple[Level, Key, bool]) -> DesiredState:
    """Targets, each with approval settings or only with notification settings."""
    return desired(
        *(
            section("approval_settings" if inheriting else "notification_settings", {}, Target(level, ref))
            for level, ref, inheriting in refs
        )
    )


def projects(number: int) -> list[tuple[Level, Key, bool]]:
    return [(Level.PROJECT, f"acme/p{each}", False) for each in range(number)]


def shards(state: DesiredState, total: int) -> dict[str, int]:
    """Return the shard of each target, which must be in one only."""
    parts = [share(state, state, Shard(number, total), KINDS) for number in range(1, total + 1)]
    found = [(str(target.target), number) for number, part in enumerate(parts, 1) for target in part.targets]
    assert sorted(name for name, _ in found) == sorted(str(target.target) for target in state.targets)
    assert all(part.digest == state.digest for part in parts)
    return dict(found)


paths = st.lists(st.sampled_from(["a", "b", "c"]), min_size=2, max_size=4).map("/".join)
targets = st.one_of(
    st.tuples(st.just(Level.GROUP), st.one_of(paths, st.integers(1, 3)), st.booleans()),
    st.tuples(st.just(Level.PROJECT), st.one_of(paths, st.integers(1, 3)), st.booleans()),
)


@patiently
@given(st.lists(targets, unique_by=lambda each: each[:2], max_size=12), st.integers(1, 5))
def test_every_target_is_in_one_shard_with_all_groups_that_may_decide_over_it(
    refs: list[tuple[Level, Key, bool]], total: int
) -> None:
    found = shards(fleet(*refs), total)
    groups = [ref for level, ref, inheriting in refs if level is Level.GROUP and inheriting]
    for level, ref, inheriting in refs:
        for group in groups if level is Level.PROJECT and inheriting else []:
            if isinstance(ref, int) or isinstance(group, int) or ref.startswith(f"{group}/"):
                assert found[f"project {ref}"] == found[f"group {group}"]


created = st.tuples(st.sampled_from([Level.GROUP, Level.PROJECT]), paths, st.booleans(), st.booleans())


@pytest.mark.untraced
@patiently
@given(st.lists(created, unique_by=lambda each: each[:2], max_size=12), st.integers(2, 5))
def test_what_is_created_is_in_the_shard_of_the_group_that_it_is_created_in(
    given_targets: list[tuple[Level, str, bool, bool]], total: int
) -> None:
    state = fleet(*(each[:3] for each in given_targets))
    new = {Target(level, path) for level, path, _, is_created in given_targets if is_created}
    state = replace(
        state,
        targets=tuple(replace(each, creation=Creation("x") if each.target in new else None) for each in state.targets),
    )
    found = shards(state, total)
    for each in new:
        for above in new:
            if above.level is Level.GROUP and str(each.ref).startswith(f"{above.ref}/"):
                assert found[str(each)] == found[str(above)]
    heirs = [(level, path) for level, path, inherits, _ in given_targets if inherits]
    for level, path in heirs:
        for level_above, group in heirs:
            if level is Level.PROJECT and level_above is Level.GROUP and path.startswith(f"{group}/"):
                assert found[f"project {path}"] == found[f"group {group}"]


@pytest.mark.untraced
@patiently
@given(st.integers(1, 8))
def test_nothing_moves_when_targets_are_added_and_little_when_shards_are(total: int) -> None:
    before = shards(fleet(*projects(60)), total)
    after = shards(fleet(*projects(90)), total)
    assert {name: after[name] for name in before} == before
    more = shards(fleet(*projects(60)), total + 1)
    assert {number for name, number in more.items() if number != before[name]} <= {total + 1}


def test_a_shard_of_a_saved_plan_creates_groups_with_all_that_is_in_them() -> None:
    group, others = Target(Level.GROUP, "acme"), [Target(Level.PROJECT, f"acme/p{each}") for each in range(9)]
    plan = Plan(
        tuple(
            target_plan(target, (SectionPlan("", changes=(creation_of(target, Creation("x"), Namespace()),)),))
            for target in (group, *others)
        )
    )
    sizes = [len(plan_in_shard(plan, Shard(number, 4), KINDS).targets) for number in (1, 2, 3, 4)]
    assert sorted(sizes) == [0, 0, 0, 10]


@pytest.mark.untraced
def test_shards_are_about_equal() -> None:
    sizes = Counter(shards(fleet(*projects(2000)), 8).values())
    assert sorted(sizes) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert min(sizes.values()) > 200
    assert max(sizes.values()) < 300


def test_where_a_target_goes_is_the_same_for_good() -> None:
    state = fleet((Level.GROUP, "Acme", True), (Level.PROJECT, "acme/api", True), *projects(4))
    state = desired(*(s for t in state.targets for s in t.sections), section("notification_settings", {}, USER))
    assert shards(state, 5) == {
        "group Acme": 1,
        "project acme/api": 1,
        "project acme/p0": 5,
        "project acme/p1": 3,
        "project acme/p2": 3,
        "project acme/p3": 1,
        "user": 3,
    }


def test_what_a_run_is_narrowed_to_stays_where_it_was() -> None:
    whole = fleet((Level.GROUP, "acme", True), *((Level.PROJECT, f"acme/p{each}", True) for each in range(20)))
    (number,) = set(shards(whole, 7).values())
    part = DesiredState(whole.targets[5:8], whole.digest)
    assert share(part, whole, Shard(number, 7), KINDS).targets == part.targets


@pytest.mark.parametrize("text", ["", "1", "0/2", "3/2", "1/0", "-1/2", "1/2/3", "a/b", " 1/2", "1/2\n"])
def test_what_is_no_shard_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        read_shard(text)


MANIFESTS = "".join(
    f"---\napiVersion: reconciler/v1\nkind: Project\nmetadata: {{path: acme/{name}}}\nspec: {{milestones: {{m: {{}}}}}}\n"
    for name in ("api", "lib", "web", "tools/cli")
)


TOGETHER = [
    "4 projects                                                           (acme/api, acme/lib and 2 more)",
    '  + milestone "m"                             done',
]


@pytest.mark.untraced
def test_plans_of_shards_are_put_together_and_applied_as_one(
    cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli_runner.write("manifests/all.yaml", MANIFESTS)
    whole = cli_runner("plan").out
    monkeypatch.setenv("CI_NODE_TOTAL", "3")
    sizes = []
    for number in (1, 2, 3):
        monkeypatch.setenv("CI_NODE_INDEX", str(number))
        done = cli_runner(f"plan --out plan-{number}.json --format json")
        assert done.code == 0
        sizes.append(json.loads(done.out)["summary"]["create"])
    assert (sum(sizes), sorted(sizes)) == (4, [0, 1, 3])
    merged = cli_runner("merge plan-3.json plan-1.json plan-2.json --out plan.json")
    assert (merged.code, merged.out, merged.err) == (0, whole, "")
    assert cli_runner("show plan.json").out == whole
    assert cli_runner("apply --plan plan.json --yes").out.splitlines()[:2] == TOGETHER
    monkeypatch.setenv("CI_NODE_INDEX", "1")
    assert cli_runner("plan --shard 1/1").out.startswith("No changes in shard 1/1: 4 targets are in order. ")


@pytest.mark.untraced
def test_reports_of_shards_are_put_together(cli_runner: CliRunner) -> None:
    cli_runner.write("manifests/all.yaml", MANIFESTS)
    for number in (1, 2, 3):
        assert cli_runner(f"apply --yes --shard {number}/3 --report json=report-{number}.json").code == 0
    merged = cli_runner("merge report-3.json report-2.json report-1.json --out report.json")
    assert (merged.code, merged.err) == (0, "")
    assert merged.out.splitlines() == [
        *TOGETHER,
        "Applied: 4 created. 16 requests made.",
    ]
    assert cli_runner("show report.json").out == merged.out
    parts = [json.loads(Path(f"report-{number}.json").read_text()) for number in (1, 2, 3)]
    report = json.loads(Path("report.json").read_text())
    assert report["started_at"] == min(part["started_at"] for part in parts)
    assert report["finished_at"] == max(part["finished_at"] for part in parts)


def test_waits_add_up_by_reason() -> None:
    one = replace(done(), requests=Requests(3, 4, {"rate limit": 1.25, "retry": 0.5}))
    other = replace(done(), requests=Requests(3, 4, {"rate limit": 2.0}), targets=(), items=())
    assert merge_reports({"a": one, "b": other}).requests == Requests(6, 8, {"rate limit": 3.2, "retry": 0.5})


def test_what_are_no_parts_of_one_whole_is_refused(cli_runner: CliRunner) -> None:
    cli_runner.write("manifests/all.yaml", MANIFESTS)
    cli_runner("apply --yes --report json=a.json --shard 1/3")
    cli_runner("plan --out 1.json --shard 1/3")
    cli_runner("plan --out 2.json --shard 2/3")
    cli_runner("plan --out again.json")
    cli_runner("plan --out copy.json")
    cli_runner("plan --out half.json --shard 1/2")
    cli_runner.project("{milestones: {}}", "acme/more")
    cli_runner("plan --out other.json")
    assert cli_runner("merge again.json again.json copy.json").err == (
        "reconciler: cannot merge: project acme/api is in again.json and in copy.json\n"
    )
    assert cli_runner("merge 1.json 2.json again.json").err == (
        "reconciler: cannot merge: 1.json and again.json come from runs with different shard counts\n"
    )
    assert cli_runner("merge 1.json half.json").err == (
        "reconciler: cannot merge: 1.json and half.json come from runs with different shard counts\n"
    )
    assert cli_runner("merge 2.json").err == "reconciler: cannot merge: missing shard 1/3, 3/3\n"
    assert cli_runner("merge a.json").err == "reconciler: cannot merge: missing shard 2/3, 3/3\n"
    assert cli_runner("merge 1.json other.json").err == (
        "reconciler: cannot merge: 1.json and other.json come from runs with different manifests\n"
    )
    assert cli_runner("merge 1.json 1.json --parts 2").err == "reconciler: --parts 2: there is 1: 1.json, 1.json\n"
    assert cli_runner("merge a.json b.json --parts 1").err == "reconciler: --parts 1: there are 2: a.json, b.json\n"
    assert cli_runner("merge again.json --parts 1").code == 0
    assert cli_runner("merge 1.json a.json").err == (
        "reconciler: a.json is an apply report, and 1.json is not; merge plans, or reports\n"
    )
    assert cli_runner("merge").code == 64
    assert cli_runner("merge none.json").code == 1
    assert cli_runner("plan --shard 4/3").err == (
        "reconciler: --shard takes I/N with I from 1 to N, such as 2/5; not 4/3\n"
    )
    assert cli_runner("apply --plan 1.json --shard 1/3").code == 64
    assert cli_runner("apply --plan 1.json --since HEAD").code == 64


def resealed(file: str, **changed: object) -> str:
    """Return the text of a document with other values, and the checksum that belongs to them."""
    content = json.loads(Path(file).read_text())
    content.pop("checksum")
    return with_checksum(content | changed)


def test_a_part_that_does_not_fit_is_refused_by_its_name_whatever_its_checksum(cli_runner: CliRunner) -> None:
    cli_runner.write("manifests/all.yaml", MANIFESTS)
    for number in (1, 2):
        cli_runner(f"plan --shard {number}/2 --out plan-{number}.json")
        cli_runner(f"apply --yes --shard {number}/2 --report json=report-{number}.json")
    for kind, times in (("plan", ["created_at"]), ("report", ["started_at", "finished_at"])):
        cli_runner.write(f"{kind}-x.json", resealed(f"{kind}-2.json"))
        assert cli_runner(f"merge {kind}-1.json {kind}-2.json {kind}-x.json").err == (
            f"reconciler: cannot merge: {kind}-2.json and {kind}-x.json are both shard 2/2\n"
        )
        cli_runner.write(f"{kind}-x.json", resealed(f"{kind}-2.json", commit="ab" * 20))
        assert cli_runner(f"merge {kind}-1.json {kind}-x.json").err == (
            f"reconciler: cannot merge: {kind}-1.json and {kind}-x.json come from runs with different commits\n"
        )
        cli_runner.write(f"{kind}-x.json", resealed(f"{kind}-2.json", **dict.fromkeys(times, "2099-01-01T00:00:00Z")))
        assert cli_runner(f"merge {kind}-1.json {kind}-x.json").err.startswith(
            f"reconciler: {kind}-x.json: the {kind} was made in the future, at 2099-01-01T00:00:00Z, and it is "
        )


def test_a_part_that_is_committed_is_refused_and_so_is_one_behind_what_is_committed(
    cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli_runner.write("manifests/all.yaml", MANIFESTS)
    cli_runner("plan --shard 1/2 --out parts/plan-1.json")
    cli_runner("plan --shard 2/2 --out other/plan-2.json")
    assert cli_runner("merge parts/plan-1.json other/plan-2.json").code == 0
    made = repository(cli_runner.folder)
    Path("link").symlink_to("parts")
    made.git("add", "other/plan-2.json", "link")
    refused = "is committed, and whoever may push can write that; name files that this pipeline or machine has made\n"
    for parts, named in (
        ("parts/plan-1.json other", "other/plan-2.json"),
        ("link/plan-1.json other", "link/plan-1.json"),
    ):
        assert cli_runner(f"merge {parts}/plan-2.json").err == f"reconciler: cannot merge: {named} {refused}"
    Path(".git/index").write_text("nonsense")
    done = cli_runner("merge parts/plan-1.json other/plan-2.json")
    assert done.code == 1
    assert done.err.startswith("reconciler: which files are committed is not known: ")
    monkeypatch.setenv("PATH", "")
    assert cli_runner("merge parts/plan-1.json other/plan-2.json").err == (
        "reconciler: which files are committed is not known: git is not installed here\n"
    )


@pytest.mark.untraced
def test_problems_and_failures_of_parts_are_those_of_the_whole(cli_runner: CliRunner) -> None:
    cli_runner.write("manifests/all.yaml", MANIFESTS.replace("acme/lib", "acme/none"))
    for number in (1, 2):
        cli_runner(f"apply --yes --shard {number}/2 --report json=r{number}.json")
        cli_runner(f"plan --shard {number}/2 --out p{number}.json")
    assert cli_runner("merge p1.json p2.json").code == 3
    merged = cli_runner("merge r1.json r2.json --format json")
    assert (merged.code, json.loads(merged.out)["summary"]["problems"]) == (3, 1)


def test_every_format_names_the_shard_and_a_job_is_told_where_that_came_from(
    cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli_runner.write("manifests/all.yaml", MANIFESTS)
    files = " ".join(f"--report {name}={name}" for name in ("json", "markdown", "html", "junit", "prometheus"))
    last = "Plan for shard 1/3: 3 to create. 3 writes to apply; 6 requests were made to plan."
    for command in (f"plan --shard 1/3 {files}", "drift --shard 1/3"):
        done = cli_runner(command)
        assert (done.out.splitlines()[-1], done.err) == (last, "")
    named = {
        "json": '"shard": {\n    "number": 1,\n    "total": 3\n  }',
        "markdown": "## Plan for shard 1/3: 3 to create\n",
        "html": "<title>Plan for shard 1/3: 3 to create</title>",
        "junit": '<testsuite name="reconciler plan, shard 1/3" ',
        "prometheus": 'reconciler_plan_shard{shard="1/3"} 1\n',
    }
    assert [name for name, words in named.items() if words not in Path(name).read_text()] == []
    monkeypatch.setenv("CI_NODE_INDEX", "1")
    monkeypatch.setenv("CI_NODE_TOTAL", "3")
    warned = "only shard 1/3 of the targets, as CI_NODE_INDEX and CI_NODE_TOTAL say; for all targets add --shard 1/1\n"
    for command in ("plan", "drift"):
        done = cli_runner(command)
        assert (done.out.splitlines()[-1], done.err) == (last, warned)
    assert cli_runner("plan --shard 1/3").err == ""
    done = cli_runner(f"apply --yes {files}")
    assert (done.out.splitlines()[-1], done.err) == (
        "Applied shard 1/3: 3 created. 12 requests made.",
        warned,
    )
    named |= {
        "markdown": "## Applied shard 1/3: 3 created\n",
        "html": "<title>Applied shard 1/3: 3 created</title>",
        "junit": '<testsuite name="reconciler apply, shard 1/3" ',
        "prometheus": 'reconciler_apply_shard{shard="1/3"} 1\n',
    }
    assert [name for name, words in named.items() if words not in Path(name).read_text()] == []
    monkeypatch.setenv("CI_NODE_TOTAL", "1")
    assert cli_runner("plan").err == ""
