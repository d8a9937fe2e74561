"""Projects that have moved: read at their new path, reported, and not written to without --follow-moved."""

from typing import Any

import pytest

from reconciler.model.protocols import Request
from reconciler.service import Client
from tests.between import Passing, between
from tests.cli_runner import CliRunner

TOLD = "project acme/old has moved to acme/api (ID 100)\n"
ADVICE = "write the new path there (`accept` does), or add --follow-moved"


@pytest.fixture(autouse=True)
def _service(cli_runner: CliRunner) -> None:
    cli_runner.service(renamed_from=["acme/old"])
    cli_runner.project("{milestones: {a: {}}}", "acme/old")


def test_a_project_that_has_moved_is_a_problem_that_tells_its_new_path(cli_runner: CliRunner) -> None:
    done = cli_runner("plan")
    assert (done.code, done.err) == (3, TOLD)
    assert done.out == (
        "project acme/api\n"
        f"  ! project acme/api: declared by its former path acme/old (manifests/project.yaml:3); {ADVICE}"
        "     manifests/project.yaml:1\n"
        "Plan: 1 problem. 2 requests were made to plan.\n"
    )


def test_it_costs_one_request_more_than_its_sections(cli_runner: CliRunner) -> None:
    cli_runner.project("{milestones: {}, trigger_tokens: {}, protected_tags: {}}", "acme/old")
    cli_runner.sandbox.clear_log()
    done = cli_runner("plan --concurrency 8")
    paths = sorted(each["target"].removeprefix("/api/v4/").partition("?")[0] for each in cli_runner.sandbox.log())
    assert len(paths) <= 4
    assert [path for path in paths if not path.startswith("projects/acme%2Fold/")] == ["projects/100"]
    assert done.out.count("declared by its former path acme/old") == 1
    cli_runner.sandbox.clear_log()
    cli_runner("plan --concurrency 1")
    assert len(cli_runner.sandbox.log()) == 2


def test_it_is_written_to_where_it_is_now_only_when_that_is_asked_for(cli_runner: CliRunner) -> None:
    assert cli_runner("apply --yes").code == 3
    assert cli_runner.sandbox.state()["projects"][0]["milestones"] == []
    done = cli_runner("apply --yes --follow-moved")
    assert (done.code, done.err) == (0, TOLD)
    assert [each["title"] for each in cli_runner.sandbox.state()["projects"][0]["milestones"]] == ["a"]


def test_a_place_that_cannot_be_read_is_told_by_its_number(cli_runner: CliRunner) -> None:
    cli_runner.sandbox.set_faults([{"kind": "not-json", "match": "/projects/100", "method": "GET"}])
    done = cli_runner("plan")
    assert (done.code, done.err) == (3, "project acme/old has moved to ID 100\n")
    assert "project acme/old: moved to ID 100; use its new path in the manifest, or add --follow-moved" in done.out
    followed = cli_runner("plan --follow-moved")
    assert (followed.code, followed.err) == (3, "project acme/old has moved to ID 100\n")
    assert followed.out.startswith("project acme/old\n  ! milestones: cannot be read: ")


def test_a_group_that_has_moved_is_treated_like_a_project(
    cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def redirect(passing: Passing) -> None:
        method, _, path = passing.request.partition(" ")
        if path.startswith(("groups/acme%2Fold/", "groups/acme%2Fold?")):
            passing.status = 301 if method == "GET" else 405
            passing.headers = {"location": f"/api/v4/{path.replace('acme%2Fold', '11')}"}

    (cli_runner.folder / "manifests/project.yaml").unlink()
    manifest = "apiVersion: reconciler/v1\nkind: Group\nmetadata: {path: acme/old}\n"
    cli_runner.write("manifests/group.yaml", manifest + "spec: {notification_settings: {level: watch}}\n")
    with between(cli_runner.sandbox.api_url) as service:
        service.alter = redirect
        monkeypatch.setenv("RECONCILER_API_URL", service.api_url)
        done = cli_runner("apply --yes")
        assert (done.code, done.err) == (3, "group acme/old has moved to acme/tools (ID 11)\n")
        assert "group acme/tools: declared by its former path acme/old (manifests/group.yaml:3)" in done.out
        assert service.writes == []
        done = cli_runner("apply --yes --follow-moved")
        assert (done.code, service.writes) == (0, ['PUT groups/acme%2Ftools/notification_settings {"level":"watch"}'])
        assert cli_runner("plan --detailed-exitcode --follow-moved").code == 0


@pytest.mark.untraced
@pytest.mark.parametrize("follow", ["", "--follow-moved"])
def test_a_project_that_is_to_be_deleted_is_never_written_to(cli_runner: CliRunner, follow: str) -> None:
    doomed = "acme/api-deletion_scheduled-100"
    cli_runner.service(path=doomed, renamed_from=["acme/api"], marked_for_deletion_on="2026-11-20")
    cli_runner.project("{milestones: {a: {}}}")
    cli_runner.write(
        "manifests/set.yaml",
        "apiVersion: reconciler/v1\nkind: ProjectSet\nmetadata: {name: all}\n"
        "select: {group: acme, include: ['acme/api*'], archived: true}\nspec: {milestones: {b: {}}}\n",
    )
    done = cli_runner(f"apply --yes {follow}")
    assert (done.code, done.err.splitlines(keepends=True)[-1]) == (
        3,
        f"project acme/api is to be deleted, as {doomed} (ID 100)\n",
    )
    assert done.out.startswith(
        "project acme/api\n"
        f"  ! project acme/api: scheduled for deletion since 2026-11-20, and called {doomed} (ID 100) until then; "
        "restore it, or remove it from the manifests     manifests/project.yaml:1\nApplied: 1 problem. "
    )
    assert f"scheduled for deletion since 2026-11-20, and called {doomed}" in cli_runner(f"doctor {follow}").out
    assert cli_runner.sandbox.state()["projects"][0]["milestones"] == []


@pytest.mark.untraced
@pytest.mark.parametrize("follow", ["", "--follow-moved"])
def test_nothing_in_a_group_that_is_to_be_deleted_is_written_to(cli_runner: CliRunner, follow: str) -> None:
    with Client(cli_runner.sandbox.api_url, "ada-token") as ada:
        ada.send(Request("DELETE", "groups/11"))
    (cli_runner.folder / "manifests/project.yaml").unlink()
    cli_runner.write(
        "manifests/set.yaml",
        "apiVersion: reconciler/v1\nkind: ProjectSet\nmetadata: {name: all}\n"
        "select: {group: acme, exclude: [acme/api, acme/lib]}\nspec: {milestones: {b: {}}}\n",
    )
    allowed = "{job_token_scope: {projects: [acme/tools/cli]}}"
    cli_runner.project(allowed, "acme/api", "manifests/api.yaml")
    cli_runner.project("{milestones: {a: {}}}", "acme/tools/cli", "manifests/cli.yaml")
    cli_runner.write(
        "manifests/group.yaml",
        "apiVersion: reconciler/v1\nkind: Group\nmetadata: {path: acme/tools}\nspec: {milestones: {c: {}}}\n",
    )
    done = cli_runner(f"apply --yes {follow}")
    doomed = "acme/tools-deletion_scheduled-11/cli (ID 103)"
    assert (done.code, done.err) == (3, f"project acme/tools/cli is to be deleted, as {doomed}\n")
    assert [line.partition("     manifests/")[0] for line in done.out.splitlines()] == [
        "group acme/tools",
        "  ! group acme/tools: not found, or not visible to ada; correct it in the manifest, make ada a member, "
        "or create it: `create: {}` in its document; a group whose deletion is scheduled has another path",
        "project acme/api",
        f'  ! allowlisted project "acme/tools/cli": scheduled for deletion, and called {doomed} until then; restore it, or '
        "remove the entry",
        "project acme/tools/cli",
        f"  ! project acme/tools/cli: scheduled for deletion with its group, and called {doomed} until then; restore it, or "
        "remove it from the manifests",
        "project acme/web",
        '  + milestone "b"                             done',
        f"Applied: 1 created, 3 problems. {11 if follow else 10} requests made.",
    ]
    [cli] = [each for each in cli_runner.sandbox.state()["projects"] if each["id"] == 103]
    assert cli["milestones"] == []


LISTED = """\
apiVersion: reconciler/v1
kind: ProjectSet
metadata: {name: some}
select:
  projects:
    - acme/lib
    - Acme/Old
spec: {milestones: {b: {}}}
"""


def test_a_project_that_a_set_lists_is_told_at_its_line_in_the_list(cli_runner: CliRunner) -> None:
    (cli_runner.folder / "manifests/project.yaml").unlink()
    cli_runner.write("manifests/set.yaml", LISTED)
    done = cli_runner("plan")
    assert (done.code, done.out) == (
        3,
        "project acme/api\n  ! project acme/api: declared by its former path Acme/Old (manifests/set.yaml:7); "
        f"{ADVICE}     manifests/set.yaml:7\n"
        'project acme/lib\n  + milestone "b"     manifests/set.yaml:8\n'
        "Plan: 1 to create, 1 problem. 1 write to apply; 4 requests were made to plan.\n",
    )


def test_a_project_that_a_set_lists_is_followed(cli_runner: CliRunner) -> None:
    (cli_runner.folder / "manifests/project.yaml").unlink()
    cli_runner.write("manifests/set.yaml", LISTED)
    assert cli_runner("apply --yes --follow-moved").code == 0
    api, lib, *_ = cli_runner.sandbox.state()["projects"]
    assert [[each["title"] for each in project["milestones"]] for project in (api, lib)] == [["b"], ["b"]]
    assert cli_runner("plan --detailed-exitcode --follow-moved").code == 0


OWN = """\
apiVersion: reconciler/v1
kind: Project
metadata:
  path: acme/api
  exceptions:
    - {section: milestones, item: v1, until: 2999-01-01, reason: x}
    - {section: milestones, until: 2999-01-01, reason: x}
spec: {trigger_tokens: {a: null}}
"""

ONLY_EXCEPTIONS = OWN.replace("{trigger_tokens: {a: null}}", "{}")

ALL = """\
apiVersion: reconciler/v1
kind: ProjectSet
metadata: {name: all}
select: {group: acme, exclude: ["*/lib", "*/web", "**/cli"]}
spec: {milestones: {v1: {}}}
"""

WITH_ARCHIVED = """\
---
apiVersion: reconciler/v1
kind: ProjectSet
metadata: {name: archived too}
select: {group: acme, include: ["*/lib"], archived: true}
spec: {milestones: {}}
"""

LISTS_NONE = (
    "manifests/project.yaml:4:9: warning: group acme lists no project acme/api: it may have been {}; correct the path, or "
    "remove this document\n      path: acme/api\n            ^\n"
)


def test_exceptions_of_a_project_that_has_moved_are_not_told(cli_runner: CliRunner) -> None:
    cli_runner.service(path="acme/gateway", renamed_from=["acme/api"])
    cli_runner.write("manifests/set.yaml", ALL)
    cli_runner.write("manifests/project.yaml", OWN)
    done = cli_runner("plan")
    assert (done.code, done.out, done.err) == (
        3,
        "project acme/gateway\n  ! project acme/gateway: declared by its former path acme/api (manifests/project.yaml:4); "
        f"{ADVICE}     manifests/project.yaml:1\n"
        "Plan: 1 problem. 4 requests were made to plan.\n",
        "project acme/api has moved to acme/gateway (ID 100)\n",
    )


LIB = 'project acme/lib\n  + milestone "v1"     manifests/set.yaml:5\n'


@pytest.mark.parametrize("changes", [{"path": "partners/gateway"}, {"archived": True}], ids=["gone", "archived"])
def test_a_document_with_only_exceptions_for_a_project_that_its_group_does_not_list(
    cli_runner: CliRunner, changes: dict[str, Any]
) -> None:
    cli_runner.service(**changes)
    cli_runner.write("manifests/set.yaml", ALL.replace('"*/lib", ', ""))
    cli_runner.write("manifests/project.yaml", ONLY_EXCEPTIONS)
    cli_runner.sandbox.clear_log()
    done = cli_runner("plan")
    assert (done.code, done.out, done.err) == (
        0,
        f"{LIB}Plan: 1 to create. 1 write to apply; 3 requests were made to plan.\n",
        LISTS_NONE.format("archived, moved, renamed or deleted"),
    )
    cli_runner.write("manifests/set.yaml", ALL.replace('"*/lib", ', "") + WITH_ARCHIVED)
    known = cli_runner("plan")
    told = "" if "archived" in changes else LISTS_NONE.format("moved, renamed or deleted")
    assert (known.code, known.err) == (0, told)


@pytest.mark.parametrize("path", ["acme/gateway", "acme/tools/api"])
@pytest.mark.parametrize("archived", [False, True])
def test_a_document_with_only_exceptions_for_a_project_that_has_moved(
    cli_runner: CliRunner, path: str, *, archived: bool
) -> None:
    cli_runner.service(path=path, renamed_from=["acme/api"], archived=archived)
    cli_runner.write("manifests/set.yaml", ALL.replace('"*/lib", ', ""))
    cli_runner.write("manifests/project.yaml", ONLY_EXCEPTIONS)
    done = cli_runner("plan")
    assert (done.code, done.out, done.err) == (
        3,
        "".join(
            sorted(
                [
                    LIB,
                    f"project {path}\n  ! project {path}: declared by its former path acme/api (manifests/project.yaml:4); "
                    f"{ADVICE}     manifests/project.yaml:1\n",
                ]
            )
        )
        + "Plan: 1 to create, 1 problem. 1 write to apply; 4 requests were made to plan.\n",
        f"project acme/api has moved to {path} (ID 100)\n",
    )


def test_a_document_with_only_exceptions_for_a_project_that_is_to_be_deleted(cli_runner: CliRunner) -> None:
    doomed = "acme/api-deletion_scheduled-100"
    cli_runner.service(path=doomed, renamed_from=["acme/api"], marked_for_deletion_on="2026-11-20")
    cli_runner.write("manifests/set.yaml", ALL.replace('"*/lib", ', ""))
    cli_runner.write("manifests/project.yaml", ONLY_EXCEPTIONS)
    done = cli_runner("plan --follow-moved")
    assert (done.code, done.out) == (
        3,
        f"project acme/api\n  ! project acme/api: scheduled for deletion since 2026-11-20, and called {doomed} (ID 100) "
        f"until then; restore it, or remove it from the manifests     manifests/project.yaml:1\n{LIB}"
        "Plan: 1 to create, 1 problem. 1 write to apply; 4 requests were made to plan.\n",
    )
    assert done.err.splitlines()[0] == f"project acme/api is to be deleted, as {doomed} (ID 100)"


def test_exceptions_of_a_project_whose_group_cannot_be_listed_are_not_told(cli_runner: CliRunner) -> None:
    cli_runner.write("manifests/set.yaml", ALL)
    cli_runner.write("manifests/project.yaml", ONLY_EXCEPTIONS)
    cli_runner.sandbox.set_faults([{"kind": "not-json", "match": "/groups/acme/projects", "method": "GET"}])
    done = cli_runner("plan")
    assert (done.code, done.err) == (3, "")
    assert done.out.startswith("group acme\n  ! group acme: the projects of group acme cannot be listed (")


def test_exceptions_of_a_project_named_by_its_id_are_told_once_its_sets_are_known(cli_runner: CliRunner) -> None:
    typing_error = "    - {section: milestones, item: v2, until: 2999-01-01, reason: x}\n"
    by_id = ONLY_EXCEPTIONS.replace("path: acme/api", "id: 100").replace("spec", f"{typing_error}spec")
    cli_runner.write("manifests/set.yaml", ALL)
    cli_runner.write("manifests/project.yaml", by_id)
    assert cli_runner("validate").err == ""
    assert cli_runner("plan").err == (
        "manifests/project.yaml:8:35: warning: `v2` is not declared: this exception has no effect unless the inventory "
        "lists it\n" + typing_error.replace("    -", "        -") + f"{' ' * 38}^\n"
    )


def test_the_group_of_a_project_that_is_to_be_created_need_not_list_it(cli_runner: CliRunner) -> None:
    fresh = ONLY_EXCEPTIONS.replace("acme/api", "acme/fresh").replace("spec:", "create: {}\nspec:")
    cli_runner.write("manifests/project.yaml", fresh)
    cli_runner.write("manifests/set.yaml", ALL)
    assert cli_runner("plan").err == ""
    cli_runner.write("manifests/set.yaml", ALL.replace("exclude: [", "exclude: [acme/fresh, "))
    has_no_effect = "warning: milestones is not declared: this exception has no effect\n"
    assert cli_runner("plan").err == (
        f"manifests/project.yaml:6:17: {has_no_effect}"
        "        - {section: milestones, item: v1, until: 2999-01-01, reason: x}\n                    ^\n"
        f"manifests/project.yaml:7:17: {has_no_effect}"
        "        - {section: milestones, until: 2999-01-01, reason: x}\n                    ^\n"
    )


WANTED = """\
apiVersion: reconciler/v1
kind: ProjectSet
metadata: {name: wanted}
select: {group: acme, include: ["acme/*", "acme/tools/*"], exclude: ["*/lib", "*/web", "**/cli"]}
spec:
  milestones: {"{name} 1": {state: closed}}
"""
DEVIATES = "{milestones: {'{name} 1': {state: active}}}"


@pytest.mark.parametrize("target", ["", "--target acme/api", "--target acme/gateway", "--section milestones"])
@pytest.mark.parametrize("command", ["plan", "drift"])
def test_whatever_selects_it_it_is_one_problem(cli_runner: CliRunner, command: str, target: str) -> None:
    cli_runner.service(path="acme/gateway", renamed_from=["acme/api"])
    cli_runner.write("manifests/set.yaml", WANTED)
    cli_runner.project(DEVIATES)
    done = cli_runner(f"{command} {target}")
    assert (done.code, done.out.rpartition("Plan: ")[0], done.err) == (
        3,
        "project acme/gateway\n  ! project acme/gateway: declared by its former path acme/api (manifests/project.yaml:3); "
        f"{ADVICE}     manifests/project.yaml:1\n",
        "project acme/api has moved to acme/gateway (ID 100)\n",
    )
    assert cli_runner(f"{command} --exclude acme/api").code == 0


@pytest.mark.parametrize("target", ["", "--target acme/api", "--target acme/gateway"])
def test_it_is_followed_with_all_that_its_sets_and_its_document_declare(cli_runner: CliRunner, target: str) -> None:
    cli_runner.service(path="acme/gateway", renamed_from=["acme/api"])
    cli_runner.write("manifests/set.yaml", WANTED)
    cli_runner.project(DEVIATES)
    done = cli_runner(f"apply --yes --follow-moved {target}")
    assert (done.code, done.err) == (0, "project acme/api has moved to acme/gateway (ID 100)\n")
    (milestone,) = cli_runner.sandbox.state()["projects"][0]["milestones"]
    assert (milestone["title"], milestone["state"]) == ("gateway 1", "active")
    assert cli_runner("plan --detailed-exitcode --follow-moved").code == 0


@pytest.mark.parametrize("number", [1, 2])
def test_a_shard_that_plans_it_by_its_set_knows_its_document(cli_runner: CliRunner, number: int) -> None:
    cli_runner.service(path="acme/gateway", renamed_from=["acme/api"])
    cli_runner.write("manifests/set.yaml", WANTED)
    cli_runner.project(DEVIATES)
    told = "project acme/gateway: declared by its former path acme/api" in cli_runner(f"plan --shard {number}/2").out
    cli_runner.service(renamed_from=["acme/old"])
    assert ("project acme/api\n" in cli_runner(f"plan --shard {number}/2").out) is told


def test_a_move_that_leads_to_errors_is_a_problem_of_its_project_alone(cli_runner: CliRunner) -> None:
    cli_runner.service(path="acme/gateway", renamed_from=["acme/api"])
    state = cli_runner.sandbox.state()
    state["projects"][1] |= {"path": "acme/books", "renamed_from": ["acme/lib"]}
    cli_runner.sandbox.replace_state(state)
    locked = WANTED.replace("name: wanted", "name: wanted, locks: {milestones: all}").replace(
        '"acme/*"', "acme/gateway"
    )
    cli_runner.write("manifests/set.yaml", locked)
    cli_runner.project(DEVIATES)
    cli_runner.project("{milestones: {a: {}}}", "acme/lib", "manifests/lib.yaml")
    for follow in ("", "--follow-moved"):
        done = cli_runner(f"plan {follow}")
        assert done.code == 3
        lines = [line.partition("     manifests")[0] for line in done.out.splitlines() if not line.startswith("Plan")]
        books = [
            "  ! project acme/books: declared by its former path acme/lib (manifests/lib.yaml:3); " + ADVICE,
            '  + milestone "a"',
        ]
        assert lines == [
            "project acme/api",
            "  ! project acme/api: moved to acme/gateway (ID 100), which is declared too (manifests/set.yaml:1): correct this "
            "path first",
            "project acme/books",
            books[bool(follow)],
            "project acme/gateway",
            "  ! project acme/gateway: is declared by its former path acme/api too (manifests/project.yaml:1): correct that "
            "path first",
        ]


def test_a_glob_for_a_project_that_has_moved_is_to_be_corrected(cli_runner: CliRunner) -> None:
    cli_runner.service(path="acme/gateway", renamed_from=["acme/api"])
    only = ALL.replace('exclude: ["*/lib", "*/web", "**/cli"]', "include: [acme/api, acme/lib]")
    cli_runner.write("manifests/set.yaml", only)
    cli_runner.project("{trigger_tokens: {a: null}}")
    done = cli_runner("plan")
    assert (done.code, done.out, done.err) == (
        3,
        "project acme/gateway\n  ! project acme/gateway: declared by its former path acme/api (manifests/project.yaml:3); "
        f'{ADVICE}     manifests/project.yaml:1\nproject acme/lib\n  + milestone "v1"     manifests/set.yaml:5\n'
        "Plan: 1 to create, 1 problem. 1 write to apply; 4 requests were made to plan.\n",
        "manifests/set.yaml:4:33: warning: `acme/api` includes no project: correct or remove it; there are acme/gateway, "
        "acme/lib, acme/web, ...\n    select: {group: acme, include: [acme/api, acme/lib]}\n"
        "                                    ^\nproject acme/api has moved to acme/gateway (ID 100)\n",
    )


def test_a_set_whose_projects_are_all_archived_is_not_warned_of(cli_runner: CliRunner) -> None:
    cli_runner.service(archived=True)
    (cli_runner.folder / "manifests/project.yaml").unlink()
    cli_runner.write("manifests/set.yaml", ALL + WITH_ARCHIVED)
    assert cli_runner("plan").err == ""
    cli_runner.write("manifests/set.yaml", ALL.replace("exclude:", "include: [acme/api], exclude:") + WITH_ARCHIVED)
    assert cli_runner("plan").err == ""


def test_a_project_that_is_to_be_deleted_is_told_once_though_it_has_two_documents(cli_runner: CliRunner) -> None:
    doomed = "acme/api-deletion_scheduled-100"
    cli_runner.service(path=doomed, renamed_from=["acme/old"], marked_for_deletion_on="2026-11-20")
    by_id = "apiVersion: reconciler/v1\nkind: Project\nmetadata: {id: 100}\nspec: {milestones: {b: {}}}\n"
    cli_runner.write("manifests/id.yaml", by_id)
    done = cli_runner("plan --follow-moved")
    assert done.code == 3
    assert [line.partition(";")[0] for line in done.out.splitlines() if line.startswith("  ! project acme/old")] == [
        f"  ! project acme/old: scheduled for deletion since 2026-11-20, and called {doomed} (ID 100) until then"
    ]
