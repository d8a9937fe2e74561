"""Groups that a run makes of archives: the upload, and the waiting for what the service never reports."""

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from reconciler.engine.apply import Application, ApplyOptions, Stop
from reconciler.model.creation import Archive, Creation, Visibility
from reconciler.model.plan import Plan
from reconciler.model.protocols import Request
from reconciler.sandbox import Sandbox
from reconciler.service import Client
from tests.between import Passing, between
from tests.building import KINDS, SectionPlan, with_sections
from tests.canned import answer, canned
from tests.engine_driver import EngineDriver
from tests.service.clock import SwiftClock
from tests.states import a_small_service
from tests.trust.creating import applied, new, plan_of, results

FILE = Path("team.tar.gz")
WATCH: dict[str, Any] = {"notification_settings": {"level": "watch"}}
TEMPLATE: dict[str, Any] = {
    "id": 20,
    "path": "template",
    "visibility": "internal",
    "members": [{"user": "ada", "role": "owner"}],
    "labels": [{"name": "bug", "color": "#ff0000"}],
}
LARGE = TEMPLATE | {
    "labels": [{"name": f"label {number}", "color": "#ff0000"} for number in range(20)],
    "milestones": [{"title": "of the archive", "iid": 1}],
}
"""With its subgroup 24 things: with as many looks, each brings one."""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def with_archive(engine: EngineDriver, template: dict[str, Any] = TEMPLATE, **instance: Any) -> None:
    """Have an archive of a group with a subgroup, and a service that imports it in some pieces."""
    state = engine.sandbox.state()
    below = [{"id": 21, "path": "template/SUB", "labels": TEMPLATE["labels"]}]
    state["groups"] += [template, *(below if template["path"] == "template" else ())]
    state["instance"] |= {"group_imports": {"looks": 3}, **instance}
    engine.sandbox.replace_state(state)
    engine.client.send(Request("POST", f"groups/{template['path']}/export"))
    with FILE.open("wb") as file:
        engine.client.download(f"groups/{template['path']}/export/download", lambda _headers: file.write)


def from_archive(visibility: Visibility | None = None) -> Creation:
    """Return the creation of a group of the archive."""
    return Creation("New", visibility, Archive(FILE, sha256(FILE.read_bytes()).hexdigest()))


@pytest.mark.untraced
def test_a_group_of_an_archive_goes_on_when_two_looks_at_it_agree(engine: EngineDriver) -> None:
    with_archive(engine)
    wanted = (
        new("acme/NEW", from_archive(), **WATCH),
        new("acme/NEW/SUB", **WATCH),
        new("acme/NEW/SUB/api", milestones={"1.0": {}}),
    )
    outcomes = applied(engine, plan_of(engine, *wanted), recheck=True)
    look = [
        "GET groups/acme%2FNEW/descendant_groups?per_page=100&page=1",
        "GET groups/acme%2FNEW/labels?include_ancestor_groups=false&include_descendant_groups=true&per_page=100&page=1",
        "GET groups/acme%2FNEW/milestones?include_descendants=true&per_page=100&page=1",
        "GET groups/acme%2FNEW/epics?per_page=100&page=1",
    ]
    size = FILE.stat().st_size
    settings = "groups/acme%2FNEW/notification_settings"
    settings_below = "groups/acme%2FNEW%2FSUB/notification_settings"
    milestones = "projects/acme%2FNEW%2FSUB%2Fapi/milestones"
    assert engine.requests() == [
        "GET groups/acme%2FNEW?with_projects=false",
        "GET groups/acme?with_projects=false",
        'POST groups/import {"name": "New", "path": "NEW", "parent_id": "10", "file": {"file": "archive.tar.gz", "bytes": '
        f"{size}}}}}",
        "GET groups/acme%2FNEW?with_projects=false",
        *look * 5,
        "GET groups/acme%2FNEW%2FSUB?with_projects=false",  # it came with the archive, so it is not stale
        "GET projects/acme%2FNEW%2FSUB%2Fapi",
        'POST projects {"name": "X", "path": "api", "namespace_id": 23, "visibility": "private"}',
        f"GET {settings}",
        f'PUT {settings} {{"level": "watch"}}',
        f"GET {settings}",
        f"GET {settings_below}",
        f'PUT {settings_below} {{"level": "watch"}}',
        f"GET {settings_below}",
        f"GET {milestones}?include_ancestors=true&per_page=100&page=1",
        f'POST {milestones} {{"title": "1.0"}}',
        f"GET {milestones}?include_ancestors=true&per_page=100&page=1",
    ]
    assert results(outcomes) == [
        "group acme/NEW done ID 22",
        "group acme/NEW notification settings done",
        "group acme/NEW/SUB notification settings done",
        "project acme/NEW/SUB/api done ID 104",
        "project acme/NEW/SUB/api milestone 1.0 done",
    ]
    assert [*engine.client.traffic.waited.values()] == [1 + 2 + 4 + 8]
    assert [*plan_of(engine, *wanted).changes] == []


def test_an_archive_without_anything_has_arrived_after_some_looks(engine: EngineDriver) -> None:
    with_archive(engine, {"id": 20, "path": "empty", "members": TEMPLATE["members"]})
    outcomes = applied(engine, plan_of(engine, new("acme/NEW", from_archive(), **WATCH)))
    assert results(outcomes) == ["group acme/NEW done ID 21", "group acme/NEW notification settings done"]
    assert [*engine.client.traffic.waited.values()] == [1 + 2 + 4 + 8 + 16]


def test_what_is_below_waits_for_the_next_run_when_the_time_is_over(engine: EngineDriver) -> None:
    with_archive(engine)
    wanted = (new("acme/NEW", from_archive(), **WATCH), new("acme/NEW/SUB"), new("acme/NEW/api"))
    plan = plan_of(engine, *wanted)
    engine.sandbox.set_faults([{"kind": "status", "status": 404, "match": "acme%2FNEW/"}])
    application = Application(plan, engine.client, KINDS, ApplyOptions(wait=0))
    application.run()
    why = (
        "the archive of group acme/NEW is still arriving after 0s; the service goes on with it, and the same command goes on "
        "from there"
    )
    assert results(application.outcomes) == [
        "group acme/NEW done ID 22",
        f"group acme/NEW notification settings skipped: {why}",
        f"group acme/NEW/SUB skipped: {why}",
        f"project acme/NEW/api skipped: {why}",
    ]
    assert application.imports.unfinished == [why]


@pytest.mark.untraced
@pytest.mark.parametrize(("recheck", "result"), [(False, "done"), (True, "stale: it exists now")])
def test_an_archive_that_an_earlier_run_did_not_wait_for_is_waited_for_where_something_is_created(
    engine: EngineDriver, recheck: bool, result: str
) -> None:
    with_archive(engine, LARGE, group_imports={"looks": 24})
    group = new("acme/NEW", from_archive(), milestones={"of the archive": {"description": "ours"}})
    below = new("acme/NEW/SUB", milestones={"2.0": {}})
    applied(engine, plan_of(engine, group), wait=0)
    why = (
        "the archive of group acme/NEW is still arriving after 0s; the service goes on with it, and the same command goes on "
        "from there"
    )
    plan = plan_of(engine, below, besides=[group])
    assert results(applied(engine, plan, wait=0)) == [
        f"group acme/NEW/SUB skipped: {why}",
        f"group acme/NEW/SUB milestone 2.0 skipped: {why}",
    ]
    assert engine.writes() == []
    plan = plan_of(engine, group, below)
    assert results(applied(engine, plan, recheck=recheck)) == [
        f"group acme/NEW milestone of the archive {result}",
        "group acme/NEW/SUB milestone 2.0 done",  # SUB came with the archive
    ]
    (sub,) = [each for each in engine.sandbox.state()["groups"] if each["path"] == "acme/NEW/SUB"]
    assert [each["name"] for each in sub["labels"]] == ["bug"]
    applied(engine, plan_of(engine, group, below))
    assert [*plan_of(engine, group, below).changes] == []
    assert [each["description"] for each in engine.sandbox.state()["groups"][-2]["milestones"]] == ["ours"]


def test_a_signal_ends_the_waiting_for_an_archive(sandbox: Sandbox) -> None:
    def stop(passing: Passing) -> None:
        if "descendant_groups" in passing.request:
            engine.client.stop.set()

    with between(sandbox.api_url) as service:
        client = Client(service.api_url, "ada-token", clock=SwiftClock())
        with EngineDriver(sandbox, a_small_service("deployed"), client) as engine:
            with_archive(engine)
            plan = plan_of(engine, new("acme/NEW", from_archive(), **WATCH), new("acme/NEW/api"))
            service.alter = stop
            assert results(applied(engine, plan, stop=Stop(client.stop))) == [
                "group acme/NEW done ID 22",
                "group acme/NEW notification settings skipped: the run ended before this change",
                "project acme/NEW/api skipped: the run ended before this change",
            ]


def test_the_visibility_of_an_archive_is_compared_when_it_has_arrived(engine: EngineDriver, dialect: str) -> None:
    with_archive(engine)
    made = {"spec": "private", "deployed": "internal"}[dialect]
    assert results(applied(engine, plan_of(engine, new("NEW", from_archive("public"))))) == [
        f"group NEW dropped by the service ID 22: visibility: asked for public, the service made it {made}"
    ]


def test_a_group_that_cannot_be_compared_when_its_archive_has_arrived_was_created_all_the_same(
    engine: EngineDriver,
) -> None:
    with_archive(engine)
    plan = plan_of(engine, new("NEW", from_archive("public")), new("NEW/SUB"))
    engine.sandbox.set_faults([{"kind": "status", "status": 403, "match": "groups/NEW?", "nth": 3, "times": 1}])
    assert results(applied(engine, plan)) == [
        "group NEW failed ID 22 (maybe done): applied, but cannot be verified: GET groups/NEW: 403 Forbidden"
    ]
    assert [*plan_of(engine, new("NEW", from_archive("public")), new("NEW/SUB")).changes] == []


def test_only_the_archive_of_the_plan_is_sent(engine: EngineDriver) -> None:
    with_archive(engine)
    plan = plan_of(engine, new("acme/NEW", from_archive()))
    FILE.write_bytes(b"\x1f\x8b another")
    assert results(applied(engine, plan)) == [
        "group acme/NEW failed: team.tar.gz is not the archive of the plan: its SHA-256 differs; plan again"
    ]
    FILE.unlink()
    assert results(applied(engine, plan)) == ["group acme/NEW failed: team.tar.gz: No such file or directory"]
    assert engine.writes() == []


def test_refusals_of_archives_name_cause_and_fix(sandbox: Sandbox) -> None:
    with EngineDriver(sandbox, a_small_service("deployed")) as engine:
        with_archive(engine, max_import_size=1)
        plan = plan_of(engine, new("acme/NEW", from_archive()))
        FILE.write_bytes(FILE.read_bytes() + bytes(2**20))
        large = plan_of(engine, new("acme/NEW", from_archive()))
        assert results(applied(engine, large)) == [
            "group acme/NEW failed: POST groups/import: 413 Request Entity Too Large; the archive is larger than the "
            "service allows (`max_import_size`)"
        ]
    missing = answer("400 Bad Request", '{"message": "400 Bad request - file is missing"}')
    with canned(*[answer("404 Not Found", "{}"), missing, answer("404 Not Found", "{}")]) as service:
        client = Client(service.api_url, "some-token", clock=SwiftClock())
        with client:
            FILE.write_bytes(b"content")
            (creation,) = [each.creation for each in plan.targets]
            assert creation is not None
            after = {**creation.after, "sha256": sha256(FILE.read_bytes()).hexdigest()}
            target = with_sections(plan.targets[0], [SectionPlan("", changes=(replace(creation, after=after),))])
            application = Application(Plan((target,)), client, KINDS, ApplyOptions())
            application.run()
    assert results(application.outcomes) == [
        "group acme/NEW failed: POST groups/import: 400 Bad request - file is missing; the URL leads past the service's "
        "front proxy, which takes uploads: use its public URL"
    ]
    assert 'name="file"; filename="archive.tar.gz"' in service.requests[1]


def test_an_upload_whose_answer_is_lost_is_looked_for(engine: EngineDriver) -> None:
    with_archive(engine)
    plan = plan_of(engine, new("acme/NEW", from_archive(), **WATCH))
    engine.sandbox.set_faults([{"kind": "reset-after", "method": "POST", "nth": 1}])
    assert results(applied(engine, plan)) == ["group acme/NEW done ID 22", "group acme/NEW notification settings done"]
    assert len(engine.writes()) == 2


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ({"status": 404}, "it was accepted, and the group cannot be read"),
        ({"status": 403}, "it was accepted; GET groups/acme%2FNEW: 403 Forbidden"),
    ],
)
def test_a_group_that_cannot_be_read_may_be_there_all_the_same(
    engine: EngineDriver, fault: dict[str, Any], why: str
) -> None:
    with_archive(engine)
    plan = plan_of(engine, new("acme/NEW", from_archive(), **WATCH))
    engine.sandbox.set_faults([{"kind": "status", "match": "acme%2FNEW?", "nth": 2, "times": 99, **fault}])
    first, second = results(applied(engine, plan))
    assert first.startswith(f"group acme/NEW failed (maybe done): POST groups/import: {why}")
    assert second == "group acme/NEW notification settings skipped: group acme/NEW was not created"
    assert len(engine.writes()) == 1


def test_an_archive_of_any_size_takes_no_memory() -> None:
    with FILE.open("wb") as file:
        file.truncate(64 * 2**20)
    with swallowing() as url, Client(url, "t") as client, FILE.open("rb") as file:
        file.read(5)  # it is sent from its beginning
        tracemalloc.start()
        answered = client.send(Request("POST", "groups/import", {"name": "New", "parent_id": 10}), file=file)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert answered > 64 * 2**20
    assert peak < 2**20


@contextmanager
def swallowing() -> Iterator[str]:
    """Serve uploads: each is answered with its length."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            left = length = int(self.headers["content-length"])
            while left:
                left -= len(self.rfile.read1(min(left, 2**16)))
            content = str(length).encode()
            self.send_response(202)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()
