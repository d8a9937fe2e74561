"""What an apply writes into the inventory, and what it refuses by it, through the command line."""

from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.document.stored import load_plan, save
from reconciler.kinds import all_kinds
from reconciler.memory.apply_log import Apply
from reconciler.memory.clone import clone_of
from reconciler.memory.inventory import ObjectLine, TargetLine
from reconciler.memory.store import INVENTORY_BRANCH, Store, Stored, open_place
from tests.cli_runner import CliRunner
from tests.fleet.repository import Repository, repository

API = "project 100"


class User:
    """A user whose folder is a repository, with a plan that says what it records."""

    def __init__(self, cli_runner: CliRunner) -> None:
        self.run = cli_runner
        self.git: Repository = repository(cli_runner.folder)
        cli_runner.write(".git/info/exclude", "*.json\n")

    def stored(self) -> Stored:
        with open_place(self.git.folder, INVENTORY_BRANCH, None) as place:
            return Store(
                place, self.run.sandbox.api_url.removesuffix("/api/v4"), ["milestones", "trigger_tokens"]
            ).read()

    def subject(self) -> str:
        return self.git.git("log", "-1", "--format=%B", INVENTORY_BRANCH)

    def plan(self, *absences: ObjectLine, commit: str) -> None:
        """Save a plan whose deletions of some objects are by absence, as the list at a commit would have it."""
        assert self.run("plan --out plan.json --allow-deletes 9").code == 0
        saved = load_plan(Path("plan.json").read_text(), all_kinds())
        assert saved.inventory is not None
        basis = replace(saved.inventory, commit=commit, absent=tuple(line.key for line in absences))
        Path("plan.json").write_text(save(replace(saved, inventory=basis)))


@pytest.fixture
def user(cli_runner: CliRunner) -> User:
    cli_runner.service(milestones=[{"id": 1, "title": "old"}, {"id": 2, "title": "gone"}])
    cli_runner.project("{milestones: {new: {}, old: {}}}")
    return User(cli_runner)


def line(name: str, number: int, at: str) -> ObjectLine:
    return ObjectLine(API, "milestones", "milestones", name, number, at)


@pytest.mark.untraced
def test_an_apply_records_what_is_live_and_a_revert_takes_it_back(user: User) -> None:
    commit = user.git.commit()
    assert user.run("plan --out plan.json").code == 0
    done = user.run("apply --plan plan.json --yes --report json=applied.json")
    assert (done.code, done.err) == (0, "")
    stored = user.stored().inventory
    (created,) = (number for *_, number in stored.objects if number > 2)
    (digest,) = (target.digest for target in load_plan(Path("plan.json").read_text(), all_kinds()).targets)
    assert stored.targets == {API: TargetLine(API, "acme/api", digest)}
    assert [*stored.objects.values()] == [line("new", created, commit), line("old", 1, commit)]
    assert stored.applied == commit
    assert user.subject().startswith(f"apply: 1 created ({commit[:7]})\n\nManifests: {commit}\nService: http")
    ((apply, path),) = clone_of(user.git.folder).reports.items()
    assert path.read_text() == Path("applied.json").read_text()
    assert path.stat().st_mode & 0o777 == 0o600
    back = user.run("revert --last --yes")
    assert (back.code, back.err) == (
        0, "The manifests still declare what this revert undid: revert their commit too.\n"
    )  # fmt: skip
    assert f"Reverts: {apply}" in user.subject()
    stored = user.stored().inventory
    assert stored.targets == {API: TargetLine(API, "acme/api")}
    assert [*stored.objects.values()] == [line("old", 1, commit)]
    assert user.run("log").out.count("\n") == 3


def test_the_apply_of_a_plan_without_an_inventory_is_in_the_log(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITLAB_CI", "true")
    monkeypatch.setenv("GITLAB_USER_NAME", "Mona")
    monkeypatch.setenv("CI_JOB_URL", "https://gitlab.example.com/-/jobs/1")
    assert user.run("plan --no-inventory --out plan.json").code == 0
    assert user.run("apply --plan plan.json --yes").code == 0
    assert not user.stored().inventory.objects
    shown = user.run("log").out.splitlines()
    assert len(shown) == 2
    assert shown[1].endswith("UTC  Mona  1 created             https://gitlab.example.com/-/jobs/1")


def test_an_apply_without_changes_and_without_new_lines_is_not_recorded(user: User) -> None:
    user.git.commit()
    assert user.run("apply --yes").code == 0
    before = user.stored()
    assert user.run("apply --yes").code == 0
    assert user.stored() == before


@pytest.mark.untraced
def test_a_deletion_by_absence_is_stale_once_the_list_has_changed(user: User) -> None:
    user.run.project("{milestones: {old: {}, gone: null}}")
    commit = user.git.commit()
    gone = line("gone", 2, commit)
    user.plan(gone, commit=commit)
    done = user.run("apply --plan plan.json --yes")
    assert done.code == 3
    assert '- milestone "gone"                          stale: the inventory no longer lists it: plan again' in done.out
    newer = user.git.commit("newer")
    record(user, newer, gone)
    user.git.git("checkout", "--quiet", commit)
    done = user.run("apply --plan plan.json --yes")
    assert (done.code, f"stale: newer manifests were applied, {newer[:7]}: run `git pull`" in done.out) == (3, True)
    assert user.stored().inventory.objects[gone.key] == gone
    record(user, commit, gone)
    done = user.run("apply --plan plan.json --yes")
    assert (done.code, "1 deleted" in done.out) == (0, True)
    assert gone.key not in user.stored().inventory.objects


def record(user: User, applied: str, *lines: ObjectLine) -> None:
    """Let another apply store a list."""
    with open_place(user.git.folder, INVENTORY_BRANCH, None) as place:
        store = Store(place, user.run.sandbox.api_url.removesuffix("/api/v4"), ["milestones"])
        apply = Apply(manifests=applied, service=store.service, result=0)
        objects = {each.key: each for each in lines}
        store.write(store.read(), lambda list_: replace(list_, applied=applied, objects=objects), apply)


def test_elsewhere_nothing_is_deleted_by_absence_and_the_rest_is_done(user: User) -> None:
    user.run.project("{milestones: {new: {}, old: {}, gone: null}}")
    commit = user.git.commit()
    user.plan(line("gone", 2, commit), commit=commit)
    (user.git.folder / ".git").rename(user.git.folder / "moved")
    done = user.run("apply --plan plan.json --yes")
    assert done.code == 3
    assert "stale: no longer declared, and deleted only in a checkout of the manifests' repository" in done.out
    assert "\nApplied: 1 created, 1 stale. " in done.out


def test_a_list_that_cannot_be_stored_makes_the_exit_code_3(user: User) -> None:
    user.git.commit()
    lock = user.git.folder / ".git" / "refs" / "heads" / "reconciler" / "applied.lock"
    lock.parent.mkdir()
    lock.touch()
    done = user.run("apply --yes")
    assert (done.code, "1 created" in done.out) == (3, True)
    assert "reconciler: the inventory could not be stored: " in done.err
    assert "what this apply created is not known as ours" in done.err
    lock.unlink()


def test_the_merged_plans_of_shards_record_what_each_of_them_records(user: User) -> None:
    user.run.project("{milestones: {there: {}}}", "acme/lib", "manifests/lib.yaml")
    commit = user.git.commit()
    digests = set[str]()
    for number in "12":
        assert user.run(f"plan --shard {number}/2 --out {number}.json").code == 0
        digests |= {target.digest for target in load_plan(Path(f"{number}.json").read_text(), all_kinds()).targets}
    assert user.run("merge 1.json 2.json --out whole.json").code == 0
    assert user.run("apply --plan whole.json --yes").code == 0
    assert {line.digest for line in user.stored().inventory.targets.values()} == digests
    assert len(digests) == 2
    assert user.run("plan --no-inventory --shard 2/2 --out 2.json").code == 0
    assert user.run("plan --no-inventory --shard 1/2 --out 1.json").code == 0
    assert user.run("merge 1.json 2.json --out whole.json").code == 0
    assert load_plan(Path("whole.json").read_text(), all_kinds()).inventory is None
    for number in "12":
        assert user.run(f"plan --shard {number}/2 --report json={number}.json").code == 0
    assert user.run("merge 1.json 2.json --out whole.json").code == 0
    applies = load_plan(Path("whole.json").read_text(), all_kinds()).applies or ()
    assert [apply.manifests for apply in applies] == [commit]


def test_a_list_that_cannot_be_read_keeps_a_revert_from_writing(user: User) -> None:
    user.git.commit()
    assert user.run("apply --yes --no-inventory --report json=applied.json").code == 0
    user.git.git("branch", INVENTORY_BRANCH)
    user.run.sandbox.clear_log()
    done = user.run("revert applied.json --yes")
    assert (done.code, done.out, user.run.sandbox.log()) == (1, "", [])
    assert f"the branch {INVENTORY_BRANCH} contains other files than inventory.jsonl" in done.err
    assert user.run("revert applied.json --yes --no-inventory").code == 0


@pytest.mark.untraced
def test_a_target_of_which_only_the_path_is_known_is_asked_for_its_number_once(user: User) -> None:
    user.run.project("{trigger_tokens: {nightly: {}}}")
    commit = user.git.commit()
    assert user.run("apply --yes --tokens-to tokens").code == 0
    stored = user.stored().inventory
    ((key, nightly),) = stored.objects.items()
    assert (key[:2], nightly.name, nightly.at) == ((API, "trigger_tokens"), "nightly", commit)
    assert [each["target"] for each in user.run.sandbox.log()][-1] == "/api/v4/projects/acme%2Fapi"
    user.run.sandbox.clear_log()
    user.run.project("{trigger_tokens: {}}")
    user.git.commit("none")
    assert user.run("apply --yes").code == 0
    assert not user.stored().inventory.objects
    assert "/api/v4/projects/acme%2Fapi" not in [each["target"] for each in user.run.sandbox.log()]


def test_what_nothing_verifies_is_recorded_though_the_list_was_read_before(user: User) -> None:
    user.run.project("{trigger_tokens: {nightly: {}}}")
    user.git.commit()
    assert user.run("apply --yes --no-verify --tokens-to tokens").code == 0
    assert [each.name for each in user.stored().inventory.objects.values()] == ["nightly"]


@pytest.mark.untraced
def test_a_target_that_is_only_tried_again_and_declared_no_more_keeps_what_is_listed(user: User) -> None:
    user.git.commit()
    user.run.sandbox.set_faults(["status=403,method=POST,match=/milestones"])
    assert user.run("apply --yes --report json=failed.json").code == 3
    user.run.sandbox.set_faults([])
    before = user.stored().inventory
    user.run.project("{milestones: {there: {}}}", "acme/lib")
    user.git.commit("without")
    tried = user.run("apply --yes --retry-failed failed.json")
    now = user.stored().inventory
    assert (tried.code, now.objects, now.targets) == (3, before.objects, before.targets)


@pytest.mark.untraced
def test_a_target_whose_number_cannot_be_read_waits_for_a_later_run(user: User) -> None:
    user.run.project("{trigger_tokens: {nightly: {}}}")
    user.git.commit()
    user.run.sandbox.set_faults([{"kind": "status", "status": 403, "method": "GET", "match": "acme%2Fapi", "nth": 4}])
    assert user.run("apply --yes --tokens-to tokens").code == 0
    assert (user.stored().inventory.objects, user.stored().inventory.targets) == ({}, {})


@pytest.mark.untraced
def test_an_old_plan_deletes_nothing_that_newer_manifests_declare_again(user: User) -> None:
    user.run.project("{milestones: {new: {}, old: {}}}")
    user.git.commit()
    assert user.run("apply --yes").code == 0
    user.run.project("{milestones: {old: {}}}")
    user.git.commit("without")
    assert user.run("plan --out plan.json").changes.startswith('project acme/api\n  - milestone "new"')
    user.run.project("{milestones: {new: {}, old: {}}}")
    again = user.git.commit("again")
    user.run.sandbox.clear_log()
    assert user.run("apply --yes").code == 0
    assert {each["method"] for each in user.run.sandbox.log()} == {"GET"}
    done = user.run("apply --plan plan.json --yes")
    assert (done.code, f"stale: newer manifests were applied, {again[:7]}: run `git pull`" in done.out) == (3, True)
