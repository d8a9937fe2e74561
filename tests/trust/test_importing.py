"""Projects that a run imports: the waiting, its ends, and the tokens for other services."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from reconciler.engine.apply import Application, ApplyOptions, FailureLimit, Stop
from reconciler.model.creation import Creation, Import
from reconciler.sandbox import Sandbox
from reconciler.service import Client
from tests.between import Passing, between, unaltered
from tests.building import KINDS
from tests.engine_driver import EngineDriver
from tests.service.clock import SwiftClock
from tests.states import a_small_service
from tests.trust.creating import applied, from_github, new, plan_of, results

SECRET = "ghp_0123456789abcdef"
REPOSITORIES = [
    {"github": 42, "looks": 2, "holds": {"milestones": [{"title": "1.0"}]}},
    {"github": 43, "fails": f"no access with {SECRET} to https://me:{SECRET[4:]}@github.example.com/x"},
    {"github": 44, "endless": True},
    {"bitbucket_server": "TOOLS/lint"},
]
TWO: dict[str, Any] = {"milestones": {"1.0": {"due_date": "2026-12-01"}, "2.0": {}}}
LIST = "milestones?include_ancestors=true&per_page=100&page=1"


@pytest.fixture(autouse=True)
def _token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", f" {SECRET} ")
    monkeypatch.delenv("UNSET", raising=False)


def with_imports(engine: EngineDriver, **imports: Any) -> None:
    """Enable imports, and let the other hosts have the repositories."""
    state = engine.sandbox.state()
    given = {"tokens": [SECRET], "repositories": REPOSITORIES, **imports}
    state["instance"] |= {"import_sources": ["github", "bitbucket_server"], "imports": given}
    engine.sandbox.replace_state(state)


@contextmanager
def meddled(
    sandbox: Sandbox, alter: Callable[[Passing], None] = unaltered
) -> Iterator[tuple[EngineDriver, SwiftClock]]:
    """Yield an engine whose answers are altered, and its clock."""
    clock = SwiftClock()
    with between(sandbox.api_url) as service:
        client = Client(service.api_url, "ada-token", clock=clock)
        with EngineDriver(sandbox, a_small_service("deployed"), client) as engine:
            with_imports(engine)
            service.alter = alter
            yield engine, clock


@pytest.mark.untraced
def test_imports_go_on_side_by_side_while_everything_else_is_applied(engine: EngineDriver) -> None:
    with_imports(engine)
    bitbucket = Import("bitbucket_server", "GITHUB_TOKEN", {
        "url": "https://bitbucket.example.com", "username": "me", "project": "TOOLS", "repo": "lint",
    })  # fmt: skip
    wanted = (
        new("acme/a", from_github(42), **TWO),
        new("acme/b", Creation("b", source=bitbucket)),
        new("acme/lib", None, job_token_scope={"projects": ["acme/a"]}),
    )
    outcomes = applied(engine, plan_of(engine, *wanted))
    assert [each for each in engine.requests() if SECRET in each] == []
    assert [each.partition(" {")[0] for each in engine.requests()] == [
        "GET projects/acme%2Fa",
        "POST import/github",
        "GET projects/acme%2Fb",
        "POST import/bitbucket_server",
        "POST projects/101/job_token_scope/allowlist",
        "GET projects/acme%2Flib/job_token_scope/allowlist?per_page=100&page=1",
        "GET projects/acme%2Fa/import",
        "GET projects/acme%2Fb/import",
        "GET projects/acme%2Fa/import",
        "GET projects/acme%2Fa/import",
        f"GET projects/acme%2Fa/{LIST}",
        "POST projects/acme%2Fa/milestones",
        "PUT projects/acme%2Fa/milestones/1",
        f"GET projects/acme%2Fa/{LIST}",
    ]
    assert results(outcomes) == [
        "project acme/a done ID 104",
        "project acme/a milestone 2.0 done",
        "project acme/a milestone 1.0 done",
        "project acme/b done ID 105",
        "project acme/lib allowlisted project acme/a done",
    ]
    assert {str(reason): seconds for reason, seconds in engine.client.traffic.waited.items()} == {
        "creation or import by the service": 6  # 2 s and 4 s
    }
    assert [*plan_of(engine, *wanted).changes] == []


def test_an_import_that_fails_is_a_failure_with_its_reason_but_without_a_token(engine: EngineDriver) -> None:
    with_imports(engine)
    wanted = new("acme/a", from_github(43), **TWO)
    why = "its import failed: no access with [a secret] to https://[a secret]@github.example.com/x; delete"
    assert results(applied(engine, plan_of(engine, wanted))) == [
        f"project acme/a failed ID 104 (maybe done): {why} the project, and apply again",
        "project acme/a milestone 1.0 skipped: the import of project acme/a did not succeed",
        "project acme/a milestone 2.0 skipped: the import of project acme/a did not succeed",
    ]
    limit = FailureLimit("1", planned_count=3)
    stop = Stop()
    applied(engine, plan_of(engine, new("acme/b", from_github(43))), failures=limit, stop=stop)
    assert stop.pause_reason == "--max-failures 1 was reached"
    (problem,) = plan_of(engine, wanted).problems
    assert problem.reason == why.removesuffix("; delete")


def test_what_an_import_leaves_out_is_told_and_is_no_failure(
    engine: EngineDriver, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "reconciler")
    errors: list[dict[str, Any]] = [
        {"source": "Gitlab::GithubImport::Importer::NoteImporter", "exception_message": f"no access with {SECRET}"},
        {"relation_name": "issues", "exception_message": "Validation failed: Title is too long"},
        {"exception_message": "", "exception_class": "RuntimeError"},
        {"relation_name": "labels", "exception_message": "timeout"},
    ]
    kept = {"github": 42, "looks": 1, "holds": {"milestones": [{"title": "1.0"}]}}
    lossy = {"failed_relations": errors, "left_out": {"issue": 2, "pull_request_review": 1}}
    failing = {"fails": "", "failed_relations": errors[3:]}
    with_imports(
        engine, repositories=[kept | lossy, {"github": 43} | failing, {"github": 44, "left_out": {"milestone": 1}}]
    )
    wanted = new("acme/a", from_github(42), **TWO)
    other = new("acme/b", from_github(44))
    application = Application(plan_of(engine, wanted, other), engine.client, KINDS, ApplyOptions())
    application.run()
    told = (
        "issue (2 of 2), pull request review (1 of 1); 4 errors: NoteImporter: no access with [a secret], issues: Validation "
        "failed: Title is too long, unknown place: RuntimeError and 1 more"
    )
    assert results(application.outcomes) == [
        "project acme/a done ID 104",
        "project acme/a milestone 2.0 done",
        "project acme/a milestone 1.0 done",
        "project acme/b done ID 105",
    ]
    end = "; compare the project with its source"
    assert sorted(application.imports.omissions) == [
        f"the import of project acme/a has left out {told}{end}",
        f"the import of project acme/b has left out milestone (1 of 1){end}",
    ]
    assert application.imports.unfinished == []
    # whoever does not see the end of that run is told by the next plan, in one line
    caplog.clear()
    assert [*plan_of(engine, wanted, other).changes] == []
    hint = "(--verbose shows what); once you have checked the project, remove `import` from its manifest"
    logged = [message for message in caplog.messages if "import of" in message]
    assert logged == [
        f"the import of project acme/a has left out {told}",
        "the import of project acme/b has left out milestone (1 of 1)",
        f"The import of project acme/a and 1 more has left something out {hint}",
    ]
    plan_of(engine, other)
    assert caplog.messages[-1] == f"The import of project acme/b has left something out {hint}"
    # where the service gives no reason for a failure, its errors are one
    assert results(applied(engine, plan_of(engine, new("acme/c", from_github(43))))) == [
        "project acme/c failed ID 106 (maybe done): its import failed: labels: timeout; delete the project, and apply again"
    ]


@pytest.mark.untraced
def test_what_goes_on_when_the_time_is_over_goes_on_with_the_same_command(engine: EngineDriver) -> None:
    with_imports(engine)
    wanted = (new("acme/a", from_github(44), **TWO), new("acme/b", from_github(44)))
    application = Application(plan_of(engine, *wanted), engine.client, KINDS, ApplyOptions(wait=3600))
    application.run()
    a, b = (
        f"the import of project acme/{name} still runs after 1h; the service goes on with it, and the same command goes on "
        "from there"
        for name in "ab"
    )
    assert results(application.outcomes) == [
        "project acme/a done ID 104",
        f"project acme/a milestone 1.0 skipped: {a}",
        f"project acme/a milestone 2.0 skipped: {a}",
        "project acme/b done ID 105",
    ]
    assert application.imports.unfinished == [a, b]
    assert [*engine.client.traffic.waited.values()] == [3600]
    state = engine.sandbox.state()
    state["projects"][-2]["imported"] |= {"endless": False, "looks": 1}
    engine.sandbox.replace_state(state)
    assert results(applied(engine, plan_of(engine, *wanted))) == [
        "project acme/a milestone 1.0 done",
        "project acme/a milestone 2.0 done",
    ]
    assert results(applied(engine, plan_of(engine, *wanted))) == []


def test_where_there_is_no_token_nothing_is_sent(engine: EngineDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    with_imports(engine)
    monkeypatch.setenv("EMPTY", " ")
    monkeypatch.setenv("BYTES", "ghp_\udce4")
    monkeypatch.setenv("RECONCILER_TOKEN", "ada-token")
    monkeypatch.setenv("COPY", "ada-token")
    monkeypatch.setenv("FILE_TOKEN", "token-of-a-file")
    names = ("BYTES", "COPY", "EMPTY", "FILE_TOKEN", "RECONCILER_TOKEN", "UNSET")
    wanted = [
        new(f"acme/{name.lower()}", Creation("x", source=Import("github", name, {"repo_id": 42}))) for name in names
    ]
    outcomes = applied(engine, plan_of(engine, *wanted), own_tokens={"token-of-a-file"})
    own = "holds a token of reconciler, which goes to no other service"
    unset = "is not set; it must hold the token for the import"
    assert results(outcomes) == [
        "project acme/bytes failed: the environment variable BYTES holds bytes that no token has",
        f"project acme/copy failed: the environment variable COPY {own}",
        f"project acme/empty failed: the environment variable EMPTY {unset}",
        f"project acme/file_token failed: the environment variable FILE_TOKEN {own}",
        f"project acme/reconciler_token failed: the environment variable RECONCILER_TOKEN {own}",
        f"project acme/unset failed: the environment variable UNSET {unset}",
    ]
    assert engine.writes() == []


@pytest.mark.untraced
def test_refusals_of_imports_name_cause_and_fix(engine: EngineDriver) -> None:
    def refused(number: int) -> list[str]:
        return results(applied(engine, plan_of(engine, new("acme/a", from_github(number)))))

    with_imports(engine, tokens=["another"])
    assert refused(42) == [
        "project acme/a failed: POST import/github: 422 Your GitHub personal access token does not have read access to the "
        "repository. Please use a classic GitHub personal access token with the `repo` scope. Fine-grained tokens are not "
        "supported; check the token in GITHUB_TOKEN, and `repo_id`"
    ]
    with_imports(engine)
    assert refused(99) == [
        'project acme/a failed: POST import/github: 422 Import failed because of a GitHub error: {"message": "Not Found"} '
        "(HTTP 404); check `repo_id`, and what the token in GITHUB_TOKEN may read"
    ]
    elsewhere = {"url": "https://bitbucket.example.com", "username": "ada", "project": "TOOLS", "repo": "x"}
    missing = Creation("a", source=Import("bitbucket_server", "GITHUB_TOKEN", elsewhere))
    assert results(applied(engine, plan_of(engine, new("acme/a", missing)))) == [
        "project acme/a failed: POST import/bitbucket_server: 400 Import failed due to a BitBucket Server error: Error 404: "
        "Repository TOOLS/x does not exist; check `url`, `project` and `repo`, and what the token in GITHUB_TOKEN may read"
    ]
    state = engine.sandbox.state()
    state["instance"]["import_sources"] = []
    engine.sandbox.replace_state(state)
    assert refused(42) == [
        "project acme/a failed: POST import/github: 403 github import source is disabled; an administrator must enable this "
        "import source (`import_sources` in the settings)"
    ]


def test_a_401_to_an_import_ends_no_run_and_errors_repeat_no_token(sandbox: Sandbox) -> None:
    def refuse(passing: Passing) -> None:
        if passing.status == 401:
            passing.json = {"message": f"401 no permission: {passing.sent.decode()}"}

    with meddled(sandbox, refuse) as (engine, _):
        plan = plan_of(engine, new("acme/a", from_github(42)), new("acme/b"))
        sandbox.set_faults([{"kind": "status", "status": 401, "match": "import/"}])
        assert results(applied(engine, plan)) == [
            'project acme/a failed: POST import/github: 401 no permission: {"repo_id":42,"personal_access_token":"[a '
            'secret]","new_name":"a","target_namespace":"acme"}; check the token in GITHUB_TOKEN, and what it may read',
            "project acme/b done ID 104",
        ]


@pytest.mark.untraced
def test_more_imports_than_the_service_takes_in_a_minute_are_asked_for_later_and_hold_up_nothing(
    sandbox: Sandbox, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "reconciler.engine.apply")

    def refuse(passing: Passing) -> None:
        if passing.status == 429:
            passing.headers["retry-after"] = "200"  # of this endpoint alone: the run does not wait for it

    with meddled(sandbox, refuse) as (engine, clock):
        wanted = (
            new("acme/a", from_github(42)),
            new("acme/b", from_github(42), job_token_scope={"projects": ["acme/c"]}),
            new("acme/c", from_github(42)),
            new("acme/d", milestones={"1.0": {}}),
            new("acme/lib", None, job_token_scope={"projects": ["acme/c"]}),
        )
        plan = plan_of(engine, *wanted)
        sandbox.set_faults([{"kind": "status", "status": 429, "method": "POST", "match": "import/", "times": 3}])
        assert results(applied(engine, plan)) == [
            "project acme/a done ID 105",
            "project acme/b done ID 106",
            "project acme/b allowlisted project acme/c done",
            "project acme/c done ID 107",
            "project acme/d done ID 104",
            "project acme/d milestone 1.0 done",
            "project acme/lib allowlisted project acme/c done",
        ]
        assert [each.partition(" {")[0] for each in engine.writes()] == [
            "POST import/github",
            "POST projects",
            "POST projects/acme%2Fd/milestones",
            *["POST import/github"] * 5,
            *[f"POST projects/{number}/job_token_scope/allowlist" for number in (101, 106)],
        ]
        assert clock.waits == [2, 4, 8, 16, *[30] * 7]
    told = "The service takes only some imports a minute; the others are asked for again every 60 s"
    assert caplog.messages.count(told) == 1


def test_an_import_that_the_service_never_takes_is_waited_for_no_longer_than_asked(sandbox: Sandbox) -> None:
    with meddled(sandbox) as (engine, clock):
        wanted = (
            new("acme/a", from_github(42), **TWO),
            new("acme/b", from_github(42)),
            new("acme/lib", None, job_token_scope={"projects": ["acme/a", "acme/web"]}),
        )
        plan = plan_of(engine, *wanted)
        sandbox.set_faults([{"kind": "status", "status": 429, "method": "POST", "match": "import/"}])
        assert results(applied(engine, plan, wait=150)) == [
            "project acme/a failed: POST import/github: 429 This endpoint has been requested too many times. Try again later; "
            "the service has refused it for 150s: apply again later",
            "project acme/a milestone 1.0 skipped: project acme/a was not created",
            "project acme/a milestone 2.0 skipped: project acme/a was not created",
            "project acme/b skipped: the service has taken no further import for 150s; apply again later",
            "project acme/lib allowlisted project acme/a skipped: project acme/a was not created",
            "project acme/lib allowlisted project acme/web done",
        ]
        assert sum(clock.waits) == 150
        assert len([each for each in engine.writes() if each.startswith("POST import/")]) == 3


def test_a_signal_ends_the_waiting_for_an_import_that_is_yet_to_be_asked_for(sandbox: Sandbox) -> None:
    def stop(passing: Passing) -> None:
        if passing.status == 429:
            engine.client.stop.set()

    with meddled(sandbox, stop) as (engine, _):
        plan = plan_of(engine, new("acme/a", from_github(42), **TWO))
        sandbox.set_faults([{"kind": "status", "status": 429, "method": "POST", "match": "import/"}])
        assert results(applied(engine, plan, stop=Stop(engine.client.stop))) == [
            "project acme/a skipped: the run ended before this change",
            "project acme/a milestone 1.0 skipped: the run ended before this change",
            "project acme/a milestone 2.0 skipped: the run ended before this change",
        ]


def test_an_import_that_has_ended_goes_on_though_one_that_it_refers_to_was_never_taken(engine: EngineDriver) -> None:
    with_imports(engine)
    fields = {"url": "https://bitbucket.example.com", "username": "me", "project": "TOOLS", "repo": "lint"}
    bitbucket = Creation("a", source=Import("bitbucket_server", "GITHUB_TOKEN", fields))
    scope = {"projects": ["acme/b", "acme/web"]}
    plan = plan_of(engine, new("acme/a", bitbucket, job_token_scope=scope), new("acme/b", from_github(42)))
    engine.sandbox.set_faults([{"kind": "status", "status": 429, "match": "import/github"}])
    assert results(applied(engine, plan, wait=60)) == [
        "project acme/a done ID 104",
        "project acme/a allowlisted project acme/web done",
        "project acme/a allowlisted project acme/b skipped: project acme/b was not created",
        "project acme/b failed: POST import/github: 429 This endpoint has been requested too many times. Try again later; "
        "the service has refused it for 1m: apply again later",
    ]


def test_an_import_that_goes_elsewhere_is_a_failure_that_names_the_place(sandbox: Sandbox) -> None:
    def elsewhere(passing: Passing) -> None:
        if passing.request.startswith("POST import/"):
            passing.json = {**passing.json, "full_path": "/gitlab/ada/a"}

    with meddled(sandbox, elsewhere) as (engine, _):
        assert results(applied(engine, plan_of(engine, new("acme/a", from_github(42), **TWO)))) == [
            "project acme/a failed ID 104 (maybe done): it went to gitlab/ada/a (ID 104): this is where the service puts an "
            "import that it cannot put into group acme; delete it there, and see that the group exists and takes imports",
            "project acme/a milestone 1.0 skipped: project acme/a was not created",
            "project acme/a milestone 2.0 skipped: project acme/a was not created",
        ]


def test_an_import_whose_answer_is_lost_is_gone_on_with(engine: EngineDriver) -> None:
    with_imports(engine)
    plan = plan_of(engine, new("acme/a", from_github(42), **TWO))
    engine.sandbox.set_faults([{"kind": "reset-after", "method": "POST", "match": "import/"}])
    assert results(applied(engine, plan)) == [
        "project acme/a done ID 104",
        "project acme/a milestone 2.0 done",
        "project acme/a milestone 1.0 done",
    ]
    assert engine.writes()[1:] == [
        'POST projects/acme%2Fa/milestones {"title": "2.0"}',
        'PUT projects/acme%2Fa/milestones/1 {"due_date": "2026-12-01"}',
    ]


@pytest.mark.untraced
def test_an_import_that_somebody_else_has_begun_is_waited_for(engine: EngineDriver) -> None:
    with_imports(engine)
    wanted = new("acme/a", from_github(42), **TWO)
    imported, plain = plan_of(engine, wanted), plan_of(engine, new("acme/b", from_github(42), **TWO))
    applied(engine, plan_of(engine, replace(wanted, sections=())))
    assert results(applied(engine, imported)) == [
        "project acme/a milestone 2.0 done",
        "project acme/a milestone 1.0 done",
    ]
    # a project that nobody imports is there at once
    applied(engine, plan_of(engine, new("acme/b")))
    assert results(applied(engine, plain)) == [
        "project acme/b milestone 1.0 done",
        "project acme/b milestone 2.0 done",
    ]


def test_an_import_of_an_earlier_run_is_waited_for(engine: EngineDriver) -> None:
    with_imports(engine)
    wanted = new("acme/a", from_github(42), milestones={"1.0": {"due_date": "2026-12-01"}, "old": None})
    first = Application(plan_of(engine, replace(wanted, sections=())), engine.client, KINDS, ApplyOptions(wait=0))
    first.run()
    state = engine.sandbox.state()
    state["projects"][-1]["milestones"] = [{"title": "old"}, {"title": "gone"}]
    engine.sandbox.replace_state(state)
    wanted = new("acme/a", from_github(42), milestones={"1.0": {"due_date": "2026-12-01"}, "old": None, "gone": None})
    plan = plan_of(engine, wanted)
    assert [type(each).__name__ for each in plan.changes] == ["Create", "Delete", "Delete"]
    state = engine.sandbox.state()
    state["projects"][-1]["milestones"] = [{"title": "old", "id": 1}]
    engine.sandbox.replace_state(state)
    # what the import brings is updated; what was to be deleted is, unless it has changed
    moved = 'it has changed since the plan was made: object name: gone -> "1.0"'
    assert results(applied(engine, plan, recheck=True)) == [
        "project acme/a milestone 1.0 done",
        f"project acme/a milestone gone stale: {moved}",
        "project acme/a milestone old done",
    ]
    # one that fails meanwhile is no creation of this run
    state = engine.sandbox.state()
    going_on = {"type": "github", "source": "x/y", "status": "scheduled", "looks": 2, "fails": "too large"}
    state["projects"][-1]["imported"] = going_on
    engine.sandbox.replace_state(state)
    plan = plan_of(engine, new("acme/a", from_github(42), milestones={"3.0": {}}))
    assert results(applied(engine, plan)) == [
        "project acme/a milestone 3.0 skipped: the import of project acme/a did not succeed"
    ]


def test_a_signal_ends_the_waiting_and_leaves_a_true_report(sandbox: Sandbox) -> None:
    looks = 0

    def look(passing: Passing) -> None:
        nonlocal looks
        looks += passing.request.startswith("GET") and passing.request.endswith("/import")
        if looks == 2:
            engine.client.stop.set()
            passing.status, passing.headers["retry-after"] = 429, "9"

    with meddled(sandbox, look) as (engine, _):
        plan = plan_of(engine, new("acme/a", from_github(44), **TWO))
        assert results(applied(engine, plan, stop=Stop(engine.client.stop))) == [
            "project acme/a done ID 104",
            "project acme/a milestone 1.0 skipped: the run ended before this change",
            "project acme/a milestone 2.0 skipped: the run ended before this change",
        ]
    assert looks == 2


def test_an_import_that_cannot_be_watched_is_a_failure(sandbox: Sandbox) -> None:
    answers: list[tuple[int, Any]] = [
        (404, {}),
        (200, []),
        *[(429, {})] * 6,
        (200, {"import_status": "none"}),  # not begun yet
        (200, {"import_status": "started", "failed_relations": {}, "stats": []}),
        (403, {"message": "403 Forbidden"}),
    ]

    def forbid(passing: Passing) -> None:
        if passing.request.endswith("/import"):
            passing.status, passing.json = answers.pop(0)

    with meddled(sandbox, forbid) as (engine, _):
        plan = plan_of(engine, new("acme/a", from_github(42)), new("acme/b", from_github(42)))
        assert results(applied(engine, plan)) == [
            "project acme/a failed ID 104 (maybe done): its import cannot be watched: GET projects/acme%2Fa/import: 403 "
            "Forbidden",
            "project acme/b done ID 105",  # what is no record of an import is that of no import that goes on
        ]
