"""Sets over groups: one list per group, the IDs in it, and the messages if a group cannot be listed."""

from collections.abc import Callable
from typing import Any

import pytest

from reconciler.engine.discovery import GroupListing, discover
from reconciler.engine.read import TRY_AGAIN
from reconciler.errors import NotFound, ServerFailure, Unauthorized
from reconciler.manifests import Member
from reconciler.manifests.project_sets import NO_SUCH_GROUP
from reconciler.model.obstacle import Obstacle
from reconciler.model.state import Reference
from reconciler.model.targets import Level, Target
from reconciler.service import Client
from tests.answering import Answering
from tests.canned import answer, canned
from tests.cli_runner import CliRunner
from tests.states import a_small_service

SETS = """\
apiVersion: reconciler/v1
kind: ProjectSet
metadata: {name: all}
select: {group: acme}
spec:
  milestones: {"{name} 1": {}}
---
apiVersion: reconciler/v1
kind: ProjectSet
metadata: {name: tools}
select: {group: acme/tools}
spec:
  milestones: {tools: {}}
---
apiVersion: reconciler/v1
kind: ProjectSet
metadata: {name: again}
select: {group: Acme, include: ["*/lib"]}
spec:
  job_token_scope: {projects: [acme/api]}
"""

PLAN = """\
Loosens protection:
project acme/lib
  + allowlisted project "acme/api"            loosens     manifests/sets.yaml:20
All else:
3 projects                                                           (acme/api, acme/lib and 1 more)
  + milestone "<name> 1"     manifests/sets.yaml:6
project acme/tools/cli
  + milestone "tools"     manifests/sets.yaml:13
Plan: 5 to create, 1 loosening. 5 writes to apply; 6 requests were made to plan.
"""


def reads(cli_runner: CliRunner) -> list[str]:
    return sorted(entry["target"].removeprefix("/api/v4/").partition("?")[0] for entry in cli_runner.sandbox.log())


def archived(cli_runner: CliRunner) -> None:
    """Archive `acme/web`."""
    state = a_small_service("deployed")
    state["projects"][2]["archived"] = True
    cli_runner.sandbox.replace_state(state)


@pytest.mark.untraced
def test_each_group_is_listed_once_and_the_ids_it_brings_need_not_be_asked_for(cli_runner: CliRunner) -> None:
    archived(cli_runner)
    cli_runner.write("manifests/sets.yaml", SETS)
    cli_runner.sandbox.clear_log()
    done = cli_runner("plan")
    assert (done.code, done.out, done.err) == (0, PLAN, "")
    assert reads(cli_runner) == [
        "groups/acme%2Ftools/projects",
        "groups/acme/projects",
        "projects/acme%2Fapi/milestones",
        "projects/acme%2Flib/job_token_scope/allowlist",
        "projects/acme%2Flib/milestones",
        "projects/acme%2Ftools%2Fcli/milestones",
    ]
    (listed,) = [
        entry["target"] for entry in cli_runner.sandbox.log() if entry["target"].startswith("/api/v4/groups/acme/")
    ]
    assert listed.startswith(
        "/api/v4/groups/acme/projects?include_subgroups=true&with_shared=false&archived=false&order_by=id&sort=asc"
    )
    assert cli_runner("apply --yes").out.endswith("\nApplied: 5 created, 1 loosening. 15 requests made.\n")
    assert cli_runner("plan").out.startswith("No changes: 3 targets are in order. ")


def test_archived_projects_are_listed_only_if_a_set_asks_for_them(cli_runner: CliRunner) -> None:
    archived(cli_runner)
    cli_runner.write("manifests/sets.yaml", SETS.replace("{group: acme/tools}", "{group: ACME, archived: true}"))
    cli_runner.sandbox.clear_log()
    done = cli_runner("plan")
    assert "1 not applicable" in done.out
    assert [entry["target"] for entry in cli_runner.sandbox.log() if "archived=" in entry["target"]] == []
    assert sum(target.startswith("groups/") for target in reads(cli_runner)) == 1


@pytest.mark.untraced
def test_lists_of_many_projects_are_followed_to_their_end(cli_runner: CliRunner) -> None:
    state = a_small_service("deployed")
    state["projects"] = [{"id": 1000 + number, "path": f"acme/p{number}"} for number in range(250)]
    cli_runner.sandbox.replace_state(state)
    cli_runner.write("manifests/sets.yaml", SETS.partition("---")[0])
    cli_runner.sandbox.clear_log()
    assert "\nPlan: 250 to create. " in cli_runner("plan").out
    assert sum(target.startswith("groups/") for target in reads(cli_runner)) == 3


def test_a_service_without_such_lists_is_met_with_advice(cli_runner: CliRunner) -> None:
    cli_runner.write("manifests/sets.yaml", SETS.partition("---")[0])
    with canned(answer("404 Not Found", '{"error": "404 Not Found"}')) as server:
        done = cli_runner(f"plan --api-url {server.api_url}")
    assert done.code == 3
    assert "if the service cannot list the projects of any group, list them here, as `projects` instead" in done.out


def test_a_set_that_matches_nothing_is_warned_of_once(cli_runner: CliRunner) -> None:
    cli_runner.write(
        "manifests/sets.yaml",
        SETS.replace('["*/lib"]', '["*/none"]')
        + "---\napiVersion: reconciler/v1\nkind: ProjectSet\nmetadata: {name: few}\nselect: {projects: [a/b], exclude: ['**']}\n",
    )
    done = cli_runner("plan")
    assert done.code == 0
    assert [line.partition("warning: ")[2] for line in done.err.splitlines() if "warning" in line] == [
        "set few matches no project: correct `select`, or remove the set",
        "`*/none` includes no project: correct or remove it; there are acme/api, acme/lib, acme/web, ...",
    ]


class Lists(Answering):
    """A service that answers each list with something, or raises it."""

    def __init__(self, found: Any) -> None:
        self.found = found

    def get(self, path: str) -> Any:
        assert path in {"projects/a%2Fb", "user"}
        assert type(self.found) is NotFound
        raise self.found

    def pages(self, path: str, *, whole: bool = False) -> list[Any]:
        del whole
        return self.gather(path, list)

    def gather(self, path: str, keep: Callable[[list[Any]], list[Any]], _spread: Any = None) -> list[Any]:
        assert path.startswith("groups/a%2Fb/projects?")
        if isinstance(self.found, Exception):
            raise self.found
        return keep(list(self.found))


def test_what_is_found_are_paths_and_ids() -> None:
    found = discover(
        {"a/B": GroupListing(archived=True), "A/b": GroupListing()},
        Lists([{"id": 1, "path_with_namespace": "A/b/C", "archived": True}]),
    )
    assert found.groups == dict.fromkeys(("a/B", "A/b"), (Member("A/b/C", archived=True, id=1),))
    assert found.ids == {Reference(Level.PROJECT, "a/b/c"): 1}


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (ServerFailure("GET x", "503 Service Unavailable", 503), "503 Service Unavailable"),
        ([{"id": 1}], "unexpected response: the body does not have the documented structure"),
        (
            [{"id": "1", "path_with_namespace": "a/b/c"}],
            "unexpected response: the body does not have the documented structure",
        ),
        ([{"id": 1, "path_with_namespace": 2}], "unexpected response: the body does not have the documented structure"),
        ([1], "unexpected response: the body does not have the documented structure"),
    ],
)
def test_a_list_nobody_can_use_is_hidden_with_its_reason(found: Any, reason: str) -> None:
    where = Target(Level.GROUP, "a/b").address
    said = f"the projects of group a/b cannot be listed (GET groups/a%2Fb/projects: {reason})"
    assert discover({"a/b": GroupListing()}, Lists(found)).groups == {"a/b": Obstacle(where, said, TRY_AGAIN)}


def test_a_group_that_is_not_there_is_hidden_and_a_wrong_token_ends_it_all() -> None:
    hidden = discover({"a/b": GroupListing()}, Lists(NotFound("GET x", "404 Not Found", 404))).groups["a/b"]
    assert isinstance(hidden, Obstacle)
    assert hidden.cause == NO_SUCH_GROUP
    with pytest.raises(Unauthorized):
        discover({"a/b": GroupListing()}, Lists(Unauthorized("GET x", "401", 401)))


def test_where_the_list_is_silent_every_section_counts_as_applicable() -> None:
    silent = '{"id": 1, "path_with_namespace": "acme/a"}'
    telling = '{"id": 2, "path_with_namespace": "acme/b", "builds_access_level": "disabled", "issues_enabled": false}'
    off = frozenset({"builds_access_level", "issues_enabled"})
    with (
        canned(answer("200 OK", f"[{silent}, {telling}]", x_next_page="")) as server,
        Client(server.api_url, "t") as client,
    ):
        found = discover({"acme": GroupListing(True, off | {"merge_requests_enabled"})}, client)
    assert found.groups == {"acme": (Member("acme/a", id=1), Member("acme/b", id=2, off=off))}


APPROVALS = "approval_settings: {allow_author_approval: true}"
SET = """\
apiVersion: reconciler/v1
kind: ProjectSet
metadata: {name: %s, profiles: [%s]}
select: {%s}
spec: {%s}
---
"""
PROFILE = "apiVersion: reconciler/v1\nkind: Profile\nmetadata: {name: %s}\nspec: {%s}\n---\n"
PROJECT = "apiVersion: reconciler/v1\nkind: Project\nmetadata: {%s}\nspec: {%s}\n---\n"
TELLING = "milestones: {}"


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("more", "line", "simple"),
    [
        ("", "plan", True),
        (PROFILE % ("quiet", APPROVALS), "plan", True),
        (PROFILE % ("base", TELLING) + SET % ("b", "base", "group: acme/tools", APPROVALS), "plan", False),
        (SET % ("b", "", "group: acme/tools", TELLING), "plan", False),
        (SET % ("b", "", "group: acme/tools", TELLING), "plan --section approval_settings", True),
        (SET % ("b", "", "group: acme/tools, archived: true", APPROVALS), "plan", True),
        (SET % ("b", "", "projects: [acme/web]", TELLING), "plan", False),
        (SET % ("b", "", "projects: [other/web]", TELLING), "plan", True),
        (PROJECT % ("path: acme/api", TELLING), "plan", False),
        (PROJECT % ("path: acme/api", TELLING), "plan --section approval_settings", True),
        (PROJECT % ("path: other/api", TELLING), "plan", True),
        (PROJECT % ("id: 103", TELLING), "plan", False),
    ],
)
def test_a_group_is_asked_for_whole_records_only_if_a_section_below_it_may_be_not_applicable(
    cli_runner: CliRunner, more: str, line: str, *, simple: bool
) -> None:
    cli_runner.write("manifests/sets.yaml", SET % ("a", "", "group: acme", APPROVALS) + more)
    cli_runner.sandbox.clear_log()
    cli_runner(line)
    listed = {entry["target"].partition("?")[0]: entry["target"] for entry in cli_runner.sandbox.log()}
    assert ("simple=true&archived=false" in listed["/api/v4/groups/acme/projects"]) is simple


UNLISTED = """\
3 projects                                                           (acme/api, acme/lib and 1 more)
  + milestone "a"     manifests/sets.yaml:5
group acme/tools
  ! group acme/tools: the projects of group acme/tools cannot be listed (GET groups/acme%2Ftools/projects: 403 \
Forbidden); use a token of a member of the group     manifests/sets.yaml:10
project acme/tools/cli
  ! project acme/tools/cli: its sets are unknown, because the projects of group acme/tools cannot be listed     \
manifests/cli.yaml:1
Plan: 3 to create, 2 problems. 3 writes to apply; 6 requests were made to plan.
"""


def test_one_group_that_fails_holds_up_only_what_depends_on_it(cli_runner: CliRunner, dialect: str) -> None:
    state = a_small_service(dialect)
    state["projects"][3]["milestones"] = [{"title": "of a set or not"}]
    cli_runner.sandbox.replace_state(state)
    sets = SET % ("all", "", "group: acme", "milestones: {a: {}}")
    cli_runner.write("manifests/sets.yaml", sets + SET % ("tools", "base", "group: acme/tools", TELLING))
    cli_runner.write("manifests/base.yaml", PROFILE % ("base", "notification_settings: {level: watch}"))
    cli_runner.write("manifests/cli.yaml", PROJECT % ("path: acme/tools/cli", "prune: [milestones], milestones: {}"))
    cli_runner.sandbox.set_faults(["status=403,match=groups/acme%2Ftools"])
    planned = cli_runner("plan")
    assert (planned.code, planned.out, planned.err) == (3, UNLISTED, "")
    assert cli_runner("plan --section trigger_tokens").out.startswith("group acme/tools\n  ! ")
    shards = [cli_runner(f"plan --shard {number}/2").out.count("! group") for number in (1, 2)]
    assert sorted(shards) == [0, 1]
    checked = cli_runner("doctor")
    assert (checked.code, "manifests/sets.yaml:10: the projects of group acme/tools cannot" in checked.out) == (3, True)
    assert (cli_runner("apply --yes").code, len(cli_runner.sandbox.state()["projects"][3]["milestones"])) == (3, 1)
    assert cli_runner("drift").code == 3
    api = PROJECT.replace("metadata: {%s}", "metadata: {%s, profiles: [base]}") % ("path: acme/api", APPROVALS)
    cli_runner.write("manifests/api.yaml", api)
    accepted = cli_runner("accept")
    assert (accepted.code, accepted.err.count("not accepted: ")) == (3, 2)
    assert "level: watch" in (cli_runner.folder / "manifests/base.yaml").read_text()
    assert "level: global" in (cli_runner.folder / "manifests/api.yaml").read_text()
