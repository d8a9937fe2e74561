"""`plan` of what does not exist yet: what is asked, what is planned, and what cannot be."""

import json
from typing import Any
from urllib.parse import unquote

import pytest

from tests.between import Passing, between
from tests.canned import answer, canned
from tests.cli_runner import CliRunner, Ended
from tests.items import by_target, changes_of
from tests.states import a_small_service


def write(cli_runner: CliRunner, *documents: str, name: str = "manifests/all.yaml") -> None:
    """Write documents, each a kind with a path, or with other metadata in braces, and then its other keys in lines."""
    texts = []
    for document in documents:
        head, *lines = document.split("\n")
        kind, metadata = head.split(" ", 1)
        about = metadata if metadata.startswith("{") else f"{{path: {metadata}}}"
        texts.append("\n".join(["apiVersion: reconciler/v1", f"kind: {kind}", f"metadata: {about}", *lines, ""]))
    cli_runner.write(name, "---\n".join(texts))


def plan(cli_runner: CliRunner, line: str = "plan", *more: str) -> tuple[Ended, list[str]]:
    """Return how a command ended, and what it asked for."""
    cli_runner.sandbox.clear_log()
    done = cli_runner(f"{line} --concurrency 1 --group-by target", *more)
    log = cli_runner.sandbox.log()
    assert {entry["method"] for entry in log} <= {"GET"}
    return done, [unquote(entry["target"].removeprefix("/api/v4/").partition("?")[0]) for entry in log]


def service(cli_runner: CliRunner, dialect: str, **changes: Any) -> None:
    """Give the sandbox its small service."""
    state = a_small_service(dialect)
    cli_runner.sandbox.replace_state(state | {"instance": state["instance"] | changes.pop("instance", {})} | changes)


TEAM = "Group acme/team\ncreate: {name: New Team}"
API = "Project acme/team/api\ncreate: {}\nspec: {milestones: {one: {}}}"


PLAN = """\
group acme/team
  + group acme/team (name: New Team, visibility: private)     manifests/all.yaml:4
  ! approval_settings: only groups at the top have these settings; declare them there     manifests/all.yaml:6
group acme/team/tools
  + group acme/team/tools (name: tools, visibility: private)     manifests/all.yaml:11
  + epic "Roadmap"     manifests/all.yaml:13
  + epic "Part"                               parent: Roadmap, state: closed     manifests/all.yaml:13
group ada/own
  ! group ada/own: ada is the namespace of a user, which holds no groups; correct the path     manifests/all.yaml:38
project acme/team/lib
  + project acme/team/lib (name: lib, import.github.repo_id: 5, import.github.token_env: GITHUB_TOKEN)\
     manifests/all.yaml:30
project acme/team/tools/cli
  + project acme/team/tools/cli (name: cli, visibility: internal)     manifests/all.yaml:18
  + allowlisted project "acme/Team/lib"     manifests/all.yaml:22
  + allowlisted project "acme/lib"     manifests/all.yaml:22
  + allowlisted group "acme/team"     manifests/all.yaml:22
  + milestone "a"                             nothing named "b" to rename     manifests/all.yaml:21
  + trigger token "nightly"     manifests/all.yaml:24
  + error tracking client key "1"     manifests/all.yaml:25
  + error tracking client key "2"     manifests/all.yaml:25
  ~ approval settings                         allow_author_approval: true, allow_committer_approval: true     manifests/all.yaml:23
  ! allowlisted project "acme/team/web": project acme/team/web does not exist, or is not visible to this token, and \
this run does not create it; declare project acme/team/web with `create`, or correct the path     manifests/all.yaml:22
project ada/notes
  + project ada/notes (name: notes, visibility: private)     manifests/all.yaml:35
  ~ notification settings                     level: watch     manifests/all.yaml:36
apply will refuse this plan: it creates 1 trigger token and 2 error tracking client keys, whose value is shown only \
once; add --tokens-to FILE or --tokens-command CMD
Plan: 14 to create, 2 to update, 3 problems. 17 writes to apply; 8 requests were made to plan.
"""


def test_all_that_a_team_will_have_is_planned_against_nothing(
    cli_runner: CliRunner, dialect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GITHUB_TOKEN", raising=False)
    service(cli_runner, dialect)
    write(
        cli_runner,
        "Group acme/team\ncreate: {name: New Team}\nspec:\n  approval_settings: {allow_author_approval: false}",
        "Group acme/team/tools\ncreate: {}\nspec:\n  epics: {Roadmap: {}, Part: {parent: Roadmap, state: closed}}",
        "Project acme/team/tools/cli\ncreate: {visibility: internal}\nspec:\n  prune: [milestones]\n"
        "  milestones: {a: {renamed_from: b}, gone: null}\n"
        "  job_token_scope: {projects: [acme/Team/lib, acme/team/web, acme/lib], groups: [acme/team]}\n"
        "  approval_settings: {allow_author_approval: true, allow_committer_approval: true}\n"
        "  trigger_tokens: {nightly: {rotate_after: 90d}}\n  error_tracking_client_keys: {count: 2}",
        "Project acme/team/lib\ncreate: {import: {github: {repo_id: 5, token_env: GITHUB_TOKEN}}}",
        "Project ada/notes\ncreate: {}\nspec: {notification_settings: {level: watch}}",
        "Group ada/own\ncreate: {}",
    )
    done, asked = plan(cli_runner, "plan --out plan.json")
    assert asked == [
        *("groups/acme/team", "groups/ada/own", "groups/acme", "groups/ada", "namespaces/ada", "projects/ada/notes"),
        *("projects/acme/team", "projects/acme/lib"),
    ]
    unset = "GITHUB_TOKEN is not set or empty, and the import of project acme/team/lib needs it\n"
    assert (done.code, done.out, done.err) == (3, PLAN, unset)
    saved = json.loads((cli_runner.folder / "plan.json").read_text())
    assert all(item.get("action") != "keep" for item in saved["items"])
    assert [each["ref"] for each in saved["targets"] if each.get("importing")] == ["acme/team/lib"]
    changes = [
        (ref, change["section"], change) for ref, own in by_target(saved, changes_of(saved)).items() for change in own
    ]
    assert {json.dumps(change["before"]) for _, _, change in changes if change["action"] == "update"} == {"{}"}
    requests = [
        (request["method"], unquote(request["path"]), request["body"])
        for ref, section, change in changes
        for request in change["requests"]
        if not section or section in ("job_token_scope", "milestones")
    ]
    team, cli = {"id_of": "group acme/team"}, "projects/acme/team/tools/cli"
    assert requests == [
        ("POST", "groups", {"name": "New Team", "path": "team", "parent_id": 10, "visibility": "private"}),
        ("POST", "groups", {"name": "tools", "path": "tools", "parent_id": team, "visibility": "private"}),
        (
            "POST",
            "import/github",
            {
                "repo_id": 5,
                "personal_access_token": {"variable": "GITHUB_TOKEN"},
                "new_name": "lib",
                "target_namespace": "acme/team",
            },
        ),
        (
            "POST",
            "projects",
            {
                "name": "cli",
                "path": "cli",
                "namespace_id": {"id_of": "group acme/team/tools"},
                "visibility": "internal",
            },
        ),
        ("POST", f"{cli}/job_token_scope/allowlist", {"target_project_id": {"id_of": "project acme/Team/lib"}}),
        ("POST", f"{cli}/job_token_scope/allowlist", {"target_project_id": 101}),
        ("POST", f"{cli}/job_token_scope/groups_allowlist", {"target_group_id": {"id_of": "group acme/team"}}),
        ("POST", f"{cli}/milestones", {"title": "a"}),
        (
            "POST",
            "projects",
            {"name": "notes", "path": "notes", "namespace_id": 1_000_000_002, "visibility": "private"},
        ),
    ]
    monkeypatch.setenv("GITHUB_TOKEN", "gh-secret")
    drift, _ = plan(cli_runner, "drift")
    limited, _ = plan(cli_runner, "plan --max-changes 3 --detailed-exitcode")
    assert (drift.code, drift.err, limited.code, limited.err) == (2, "", 2, "")
    assert "it makes 16 changes, more than --max-changes 3" in limited.out
    assert "gh-secret" not in drift.out + limited.out


def told(done: Ended) -> list[str]:
    """Return what a plan says of problems and creations, without places and fields."""
    assert done.code in (0, 3)
    lines = [line.strip().split("     ")[0] for line in done.out.splitlines() if line.startswith(("  ! ", "  + "))]
    return [line.split(" (name")[0] for line in lines]


def test_only_a_404_means_that_something_is_missing(cli_runner: CliRunner, dialect: str) -> None:
    service(cli_runner, dialect)
    write(cli_runner, TEAM, API, "Project acme/web\ncreate: {}")
    cli_runner.sandbox.set_faults(["status=403,match=groups/acme%2Fteam", "status=403,match=projects/acme%2Fweb"])
    done, asked = plan(cli_runner)
    assert asked == ["groups/acme/team", "projects/acme/web"]
    assert told(done) == [
        "! group acme/team: cannot be read: GET groups/acme%2Fteam: 403 Forbidden",
        "! project acme/team/api: cannot be read: GET groups/acme%2Fteam: 403 Forbidden",
        "! project acme/web: cannot be read: GET projects/acme%2Fweb: 403 Forbidden",
    ]
    service(cli_runner, dialect)
    cli_runner.sandbox.set_faults(["status=403,match=groups/acme?", "status=403,match=namespaces"])
    write(cli_runner, TEAM, "Project nobody/web\ncreate: {}", "Project acme/team/web\ncreate: {}")
    done, asked = plan(cli_runner)
    assert asked == ["groups/acme/team", "projects/nobody/web", "groups/acme", "groups/nobody", "namespaces/nobody"]
    assert told(done) == [
        "! group acme/team: cannot be read: GET groups/acme: 403 Forbidden",
        "! project acme/team/web: group acme/team cannot be created",
        "! project nobody/web: cannot be read: GET namespaces/nobody: 403 Forbidden",
    ]


def test_a_parent_that_nothing_creates_is_asked_for_once(cli_runner: CliRunner, dialect: str) -> None:
    service(cli_runner, dialect)
    missing = (
        "group nobody/team does not exist, or is not visible to this token, and this run does not create it; declare group "
        "nobody/team with `create`, or correct the path"
    )
    write(cli_runner, *(f"Project nobody/team/{name}\ncreate: {{}}" for name in ("api", "lib")))
    done, asked = plan(cli_runner)
    assert asked == ["projects/nobody/team/api", "groups/nobody/team"]
    assert told(done) == [f"! project nobody/team/{name}: {missing}" for name in ("api", "lib")]


def test_what_nothing_creates_below_a_group_that_is_created_is_a_problem(cli_runner: CliRunner, dialect: str) -> None:
    service(cli_runner, dialect)
    write(
        cli_runner,
        TEAM,
        "Project acme/team/tools/cli\ncreate: {}",
        "Project acme/team/web\nspec: {milestones: {x: {}}}",
        "Project acme/team/none",
        "Group apart\nspec: {notification_settings: {level: watch}}",
        "Project apart/web\ncreate: {}",
        "ProjectSet {name: named}\nselect: {projects: [acme/team/lib]}\nspec: {milestones: {x: {}}}",
        "ProjectSet {name: unlisted}\nselect: {group: acme/team/deep}\nspec: {milestones: {x: {}}}",
        "ProjectSet {name: listed}\nselect: {group: acme/team}\nspec: {milestones: {y: {}}}",
    )
    done, asked = plan(cli_runner)
    asked_apart = ["projects/apart/web", "groups/apart", "namespaces/apart"]
    assert asked == ["groups/acme/team", "groups/acme", *asked_apart, "projects/acme/team"]
    tools = (
        "group acme/team/tools does not exist, or is not visible to this token, and this run does not create it; declare "
        "group acme/team/tools with `create`, or correct the path"
    )
    nothing = "group acme/team does not exist yet, and no manifest creates this project; declare `create`, or correct the path"
    assert told(done) == [
        "+ group acme/team",
        "! group acme/team/deep: group acme/team/deep does not exist yet, and no manifest creates it; correct the group, or "
        "add `create: {}` to its document",
        "! group apart: not found, or not visible to this token, and no manifest creates this group; declare `create`, "
        "or correct the path",
        f"! project acme/team/lib: {nothing}",
        f"! project acme/team/tools/cli: {tools}",
        f"! project acme/team/web: {nothing}",
        "! project apart/web: group apart cannot be created",
    ]


@pytest.mark.untraced
@pytest.mark.parametrize("line", ["--target acme/team/*", "--exclude acme/team"])
def test_a_creation_that_a_narrowing_leaves_out_is_named(cli_runner: CliRunner, dialect: str, line: str) -> None:
    service(cli_runner, dialect)
    members = "ProjectSet {name: set}\nselect: {group: acme/team}\nspec: {milestones: {y: {}}}"
    write(cli_runner, TEAM, API, members, "Project acme/api\nspec: {trigger_tokens: {}}")
    left_out = "group acme/team does not exist, and this run leaves out its creation (manifests/all.yaml:1)"
    done, asked = plan(cli_runner, f"plan {line}")
    assert [each for each in asked if "triggers" not in each] == ["groups/acme/team"]
    assert told(done) == [
        f"! project acme/team/api: {left_out}; include group acme/team in the run, or plan again once it exists"
    ]


def test_a_creation_that_the_sections_leave_out_is_named(cli_runner: CliRunner, dialect: str) -> None:
    service(cli_runner, dialect)
    scope = "spec: {job_token_scope: {projects: [acme/team/api, acme/tool], groups: [acme/team]}}"
    write(cli_runner, TEAM, API, "Project acme/tool\ncreate: {}", f"Project acme/api\n{scope}")

    def left_out(target: str, line: int) -> str:
        reason = f"{target} does not exist, and `--section` leaves out its creation (manifests/all.yaml:{line})"
        return f"{reason}; run without `--section`"

    done, asked = plan(cli_runner, "plan --section milestones")
    assert told(done) == [f"! project acme/team/api: {left_out('group acme/team', 1)}"]
    assert asked == ["projects/acme/team/api", "groups/acme/team"]
    done, _ = plan(cli_runner, "plan --section job_token_scope")
    assert told(done) == [
        f'! allowlisted project "acme/team/api": {left_out("project acme/team/api", 6)}',
        f'! allowlisted project "acme/tool": {left_out("project acme/tool", 12)}',
        f'! allowlisted group "acme/team": {left_out("group acme/team", 1)}',
    ]


def test_what_is_missing_and_not_selected_is_no_problem(cli_runner: CliRunner, dialect: str) -> None:
    service(cli_runner, dialect)
    members = "ProjectSet {name: set}\nselect: {group: acme/team}\nspec: {milestones: {y: {}}}"
    write(cli_runner, TEAM, API, members, "Project acme/api\nspec: {milestones: {x: {}}}")
    done, asked = plan(cli_runner, "plan --target acme/api")
    assert (done.code, asked) == (0, ["groups/acme/team", "projects/acme/api/milestones", "projects/acme/api"])
    assert told(done) == ['+ milestone "x"']


IMPORTED = "create: {import: {github: {repo_id: 42, token_env: GITHUB_TOKEN}}}\nspec: {milestones: {x: {}}}"


def test_an_import_that_has_failed_is_a_problem_and_one_that_runs_is_waited_for(
    cli_runner: CliRunner, dialect: str
) -> None:
    state = a_small_service(dialect)
    imports: dict[str, dict[str, Any]] = {
        "failed": {"status": "failed", "fails": "too large"},
        "canceled": {"status": "canceled"},
        "runs": {"status": "started", "looks": 9},
        "done": {"status": "finished"},
    }
    state["projects"] = [
        {"id": 200 + number, "path": f"acme/{name}", "imported": {"type": "github", "source": "octo/api", **how}}
        for number, (name, how) in enumerate(imports.items())
    ] + [{"id": 210, "path": "acme/plain"}, {"id": 211, "path": "acme/sick"}]
    cli_runner.sandbox.replace_state(state)
    cli_runner.sandbox.set_faults(["status=404,match=projects/acme%2Fsick/import"])
    write(cli_runner, *(f"Project acme/{name}\n{IMPORTED}" for name in (*imports, "plain", "sick")))
    done, asked = plan(cli_runner, "plan --out plan.json")
    names = sorted((*imports, "plain", "sick"))
    assert asked == [
        *(f"projects/acme/{name}" for name in names),
        *(f"projects/acme/{name}/import" for name in names),
        *(f"projects/acme/{name}/milestones" for name in ("done", "plain", "runs")),
    ]
    assert (done.code, done.err) == (3, "")
    assert told(done) == [
        "! project acme/canceled: its import was canceled; delete it and apply again",
        '+ milestone "x"',
        "! project acme/failed: its import failed: too large; delete it and apply again",
        '+ milestone "x"',
        '+ milestone "x"',
        "! project acme/sick: whether it has been imported is not known: GET projects/acme%2Fsick/import: 404 Not Found",
    ]
    saved = json.loads((cli_runner.folder / "plan.json").read_text())
    assert [each["ref"] for each in saved["targets"] if each.get("importing")] == ["acme/runs"]


def test_a_variable_that_is_not_set_is_warned_of_once(cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "")
    write(cli_runner, *(f"Project acme/{name}\n{IMPORTED}" for name in ("api", "one", "other", "third")))
    done, _ = plan(cli_runner)
    assert done.err == "GITHUB_TOKEN is not set or empty, and the import of project acme/one and 2 more needs it\n"


def test_exceptions_hold_back_what_they_name_in_new_projects_too(cli_runner: CliRunner) -> None:
    excepted = "{section: %s, until: 2099-12-31, reason: later}"
    exceptions = ", ".join(excepted % each for each in ("milestones, item: b", "approval_settings"))
    write(
        cli_runner,
        f"Project {{path: acme/fresh, exceptions: [{exceptions}]}}\ncreate: {{}}\nspec:\n"
        "  milestones: {a: {}, b: {}}\n  approval_settings: {allow_author_approval: false}",
    )
    done, _ = plan(cli_runner)
    until = "excepted until 2099-12-31: later     manifests/all.yaml:3"
    assert done.out.splitlines()[2:-1] == [
        '  + milestone "a"     manifests/all.yaml:6',
        "2 excepted until 2099-12-31 at the earliest (-v shows them)",
    ]
    verbose = cli_runner("plan -v").out.splitlines()
    assert [line for line in verbose if line.startswith("  = ")] == [
        f"  = approval settings                         allow_author_approval: false, {until}",
        f'  = milestone "b"                             not created, {until}',
    ]


def test_labels_of_new_epics_are_those_of_the_groups_above(cli_runner: CliRunner, dialect: str) -> None:
    state = a_small_service(dialect)
    state["groups"][0]["labels"] = [{"name": "roadmap"}]
    cli_runner.sandbox.replace_state(state)
    epics = "create: {}\nspec: {epics: {Plan: {labels: [roadmap%s]}}}"
    write(
        cli_runner,
        TEAM,
        f"Group acme/team/deep\n{epics % ''}",
        f"Group acme/team/wrong\n{epics % ', strange'}",
        f"Group apart\n{epics % ', strange'}",
    )
    done, asked = plan(cli_runner)
    assert asked == ["groups/acme/team", "groups/apart", "groups/acme", "projects/acme/team", "groups/acme/labels"]
    advice = "correct it, or create it first"
    assert told(done) == [
        "+ group acme/team",
        "+ group acme/team/deep",
        '+ epic "Plan"',
        "+ group acme/team/wrong",
        f'! epic "Plan".labels: unknown name "strange"; {advice}',
        "+ group apart",
        f'! epic "Plan".labels: unknown names "roadmap", "strange"; {advice}',
    ]


def test_a_project_that_has_moved_is_not_missing(cli_runner: CliRunner, dialect: str) -> None:
    state = a_small_service(dialect)
    state["projects"][0]["renamed_from"] = ["acme/old"]
    cli_runner.sandbox.replace_state(state)
    write(cli_runner, "Project acme/old\ncreate: {}\nspec: {milestones: {x: {}}}")
    done, _ = plan(cli_runner)
    advice = "write the new path there (`accept` does), or add --follow-moved"
    assert told(done) == [f"! project acme/api: declared by its former path acme/old (manifests/all.yaml:3); {advice}"]


def test_nothing_is_created_in_a_group_that_has_moved(cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    def redirect(passing: Passing) -> None:
        if passing.request.startswith("GET groups/acme%2Fold?"):
            passing.status, passing.headers = 301, {"location": "/api/v4/groups/11?with_projects=false"}

    write(cli_runner, "Project acme/old/web\ncreate: {}")
    with between(cli_runner.sandbox.api_url) as proxy:
        proxy.alter = redirect
        monkeypatch.setenv("RECONCILER_API_URL", proxy.api_url)
        done = cli_runner("plan --follow-moved")
    moved = "group acme/old has moved to acme/tools; use its new path in the manifest"
    assert told(done) == [f"! project acme/old/web: {moved}"]


def test_where_nothing_is_found_the_url_is_doubted(cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECONCILER_API_URL", cli_runner.sandbox.api_url.removesuffix("/api/v4"))
    write(cli_runner, TEAM, API)
    done = cli_runner("plan")
    assert (done.code, done.out) == (1, "")
    assert "nothing was found there, and no API answers: the URL must end in /api/v4: try" in done.err


def test_the_visibility_of_a_parent_must_be_shown(cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    write(cli_runner, API)
    with canned(
        answer("404 Not Found", "{}"), answer("200 OK", '{"id": 7, "full_path": "acme/team", "visibility": "secret"}')
    ) as server:
        monkeypatch.setenv("RECONCILER_API_URL", server.api_url)
        done = cli_runner("plan")
    reason = "the service does not show the visibility of group acme/team; declare `visibility`"
    assert told(done) == [f"! project acme/team/api: {reason}"]


def test_two_documents_of_one_target_are_told_apart_without_asking_for_what_is_missing(
    cli_runner: CliRunner, dialect: str
) -> None:
    service(cli_runner, dialect)
    write(cli_runner, TEAM, API, "Project {id: 100}\nspec: {milestones: {x: {}}}")
    done, asked = plan(cli_runner)
    assert asked == ["groups/acme/team", "groups/acme", "projects/acme/team", "projects/100/milestones", "projects/100"]
    assert told(done) == ["+ group acme/team", "+ project acme/team/api", '+ milestone "one"', '+ milestone "x"']
    write(cli_runner, "Project acme/api\ncreate: {}\nspec: {milestones: {x: {}}}", "Project {id: 100}")
    done, asked = plan(cli_runner)
    assert asked == ["projects/acme/api", "projects/acme/api/milestones"]
    assert told(done)[0].startswith("! project acme/api: is the same project as project 100 (")


@pytest.mark.untraced
def test_what_is_created_in_a_group_from_an_archive_is_private_and_may_have_its_labels(cli_runner: CliRunner) -> None:
    state = a_small_service("deployed")
    state["groups"][0]["visibility"] = "public"
    cli_runner.sandbox.replace_state(state)
    (cli_runner.folder / "team.tar.gz").write_bytes(b"whatever")
    write(
        cli_runner,
        "Group acme/team\ncreate: {from_archive: ../team.tar.gz}\nspec: {epics: {Plan: {labels: [of the archive]}}}",
        "Group acme/team/deep\ncreate: {}\nspec: {epics: {Plan: {labels: [of the archive]}}}",
        "Group acme/other\ncreate: {}",
        "Group acme/other/deep\ncreate: {visibility: internal}",
        "Project acme/other/deep/api\ncreate: {}",
    )
    done, asked = plan(cli_runner, "plan --format json")
    others = ["projects/acme/other", "projects/acme/team"]
    assert asked == ["groups/acme/other", "groups/acme", "groups/acme/team", *others]
    planned = json.loads(done.out)
    created = {
        ref: own[0]["after"].get("visibility") for ref, own in by_target(planned, changes_of(planned, "")).items()
    }
    assert created == {
        "acme/other": "public",
        "acme/other/deep": "internal",
        "acme/team": None,
        "acme/team/deep": "private",
        "acme/other/deep/api": "internal",
    }
    # in the next run, the archive may still be arriving
    state["groups"] += [{"id": 20, "path": "acme/team"}, {"id": 21, "path": "acme/team/deep"}]
    cli_runner.sandbox.replace_state(state)
    done, _ = plan(cli_runner)
    arrived = "plan again once the archive of group acme/team has arrived"
    assert [line for line in told(done) if line.startswith("!")] == [
        f'! epic "Plan".labels: unknown name "of the archive"; correct it, or {arrived}'
    ] * 2


def test_the_doctor_asks_nothing_about_what_is_missing(cli_runner: CliRunner, dialect: str) -> None:
    service(cli_runner, dialect)
    write(cli_runner, TEAM, API, "Project acme/team/web\nspec: {trigger_tokens: {}}")
    cli_runner.sandbox.clear_log()
    done = cli_runner("doctor --verbose --concurrency 1")
    asked = [unquote(entry["target"].removeprefix("/api/v4/").partition("?")[0]) for entry in cli_runner.sandbox.log()]
    missing = ["groups/acme/team", "groups/acme", "projects/acme/team"]
    assert asked == ["personal_access_tokens/self", "version", "user", *missing]
    told = done.out[done.out.index("group acme/team\n") : done.out.index("Doctor: ")]
    assert told == (
        "group acme/team\n"
        "  ok       group                                     does not exist yet: apply creates it\n"
        "project acme/team/api\n"
        "  ok       project                                   does not exist yet: apply creates it\n"
        "  ok       milestones                                read: not asked, write: not asked\n"
        "project acme/team/web\n"
        "  error    project                                   group acme/team does not exist yet, and no manifest creates "
        "this project; declare `create`, or correct the path\n"
    )


@pytest.mark.untraced
def test_what_a_failed_creation_held_up_is_planned_again(cli_runner: CliRunner, dialect: str) -> None:
    service(cli_runner, dialect)
    write(cli_runner, TEAM, API, "Project acme/api\nspec: {milestones: {x: {}}}")
    cli_runner.sandbox.set_faults(["status=403,method=POST,match=groups"])
    assert cli_runner("apply --yes --concurrency 1 --report json=report.json").code == 3
    cli_runner.sandbox.set_faults([])
    done, asked = plan(cli_runner, "plan --retry-failed report.json")
    assert asked == ["groups/acme/team", "groups/acme", "projects/acme/team"]
    again = ["+ group acme/team", "+ project acme/team/api", '+ milestone "one"']
    assert (done.code, told(done)) == (0, again)
    narrowed, _ = plan(cli_runner, "plan --retry-failed report.json --target acme/team")
    assert (narrowed.code, told(narrowed)) == (0, again[:1])
    assert cli_runner("apply --yes --concurrency 1").code == 0
    done, asked = plan(cli_runner, "plan --retry-failed report.json")
    assert (done.code, told(done)) == (0, [])
    assert asked == ["groups/acme/team", "projects/acme/team/api", "projects/acme/team/api/milestones"]


def test_what_is_gone_before_a_retry_is_not_said_to_be_created_by_nobody(cli_runner: CliRunner, dialect: str) -> None:
    service(cli_runner, dialect)
    write(cli_runner, TEAM, API, "Project acme/team/lib\ncreate: {}")
    cli_runner.sandbox.set_faults(
        ["status=403,method=POST,match=milestones", "status=403,method=POST,match=projects,nth=2"]
    )
    assert cli_runner("apply --yes --concurrency 1 --report json=report.json").code == 3
    service(cli_runner, dialect)
    cli_runner.sandbox.set_faults([])
    done, _ = plan(cli_runner, "plan --retry-failed report.json")
    assert told(done) == [
        "! project acme/team/api: project acme/team/api does not exist, and this run leaves out its creation "
        "(manifests/all.yaml:6); include project acme/team/api in the run, or plan again once it exists",
        "! project acme/team/lib: group acme/team does not exist, and this run leaves out its creation "
        "(manifests/all.yaml:1); include group acme/team in the run, or plan again once it exists",
    ]


def test_a_canary_takes_along_what_is_created_for_its_sake(cli_runner: CliRunner, dialect: str) -> None:
    service(cli_runner, dialect)
    write(
        cli_runner,
        "Project acme/about\ncreate: {}",
        TEAM,
        "Project acme/team/api\ncreate: {}\nspec: {job_token_scope: {projects: [acme/team/lib, acme/lib]}}",
        "Project acme/team/lib\ncreate: {}",
        "Project acme/team/web\ncreate: {}",
    )
    cli_runner.sandbox.clear_log()
    assert cli_runner("apply --yes --concurrency 1 --canary acme/team/api").code == 0
    posted = [entry["body"] for entry in cli_runner.sandbox.log() if entry["method"] == "POST"]
    names = [body.get("path") or body["target_project_id"] for body in posted]
    assert names == ["team", "api", "lib", 101, 105, "about", "web"]


def test_references_to_what_this_run_does_not_create_are_problems_in_the_same_words(
    cli_runner: CliRunner, dialect: str
) -> None:
    service(cli_runner, dialect)
    paths = ["team/lib", "team/web", "gone/lib", "apart", "web", "sick"]
    listed = ", ".join(f"acme/{path}" for path in paths)
    write(
        cli_runner,
        TEAM,
        *(f"Project acme/{path}\ncreate: {{}}" for path in paths),
        f"Project acme/api\nspec: {{job_token_scope: {{projects: [{listed}]}}}}",
    )
    cli_runner.sandbox.set_faults(["status=403,match=projects/acme%2Fsick"])
    left = [f"--exclude acme/{path}" for path in ("team/web", "apart", "sick", "web")]
    done, asked = plan(cli_runner, f"plan {' '.join(left)}")
    assert asked == [
        *("groups/acme/team", "projects/acme/gone/lib", "groups/acme", "groups/acme/gone", "projects/acme/team"),
        "projects/acme/api/job_token_scope/allowlist",
        *("projects/acme/apart", "projects/acme/sick", "projects/acme/web"),
        *(["projects/acme/api"] if dialect == "spec" else []),
    ]
    gone = "group acme/gone does not exist, or is not visible to this token, and this run does not create it; declare "

    def left_out(path: str, line: int) -> str:
        reason = f"project {path} does not exist, and this run leaves out its creation (manifests/all.yaml:{line})"
        return (
            f'! allowlisted project "{path}": {reason}; include project {path} in the run, or plan again once it exists'
        )

    assert sorted(told(done)) == sorted(
        [
            "+ group acme/team",
            "+ project acme/team/lib",
            f"! project acme/gone/lib: {gone}group acme/gone with `create`, or correct the path",
            '+ allowlisted project "acme/team/lib"',
            '+ allowlisted project "acme/web"',
            left_out("acme/apart", 21),
            f'! allowlisted project "acme/gone/lib": {gone}group acme/gone with `create`, or correct the path',
            '! allowlisted project "acme/sick": cannot be read: GET projects/acme%2Fsick: 403 Forbidden',
            left_out("acme/team/web", 11),
        ]
    )


def test_a_group_that_is_more_visible_than_the_one_around_it_is_a_problem(cli_runner: CliRunner) -> None:
    service(cli_runner, "deployed")
    (cli_runner.folder / "team.tar.gz").write_bytes(b"whatever")
    write(
        cli_runner,
        "Group acme/team\ncreate: {visibility: internal}",
        "Group acme/tools2\ncreate: {visibility: private}",
        "Group acme/tools2/deep\ncreate: {visibility: public}",
        "Group acme/wide\ncreate: {from_archive: ../team.tar.gz, visibility: public}",
        "Group acme/arch\ncreate: {from_archive: ../team.tar.gz}",
        "Group acme/arch/deep\ncreate: {visibility: internal}",
        "Project acme/shown\ncreate: {visibility: public}",
        "Group apart\ncreate: {visibility: public}",
    )
    done, _ = plan(cli_runner)
    refused = "the service refuses `{}` in group {}, which is private; correct `visibility`, or leave it out".format
    assert told(done) == [
        "+ group acme/arch",
        "+ group acme/arch/deep",
        f"! group acme/team: {refused('internal', 'acme')}",
        "+ group acme/tools2",
        f"! group acme/tools2/deep: {refused('public', 'acme/tools2')}",
        "+ group acme/wide",
        "+ group apart",
        "+ project acme/shown",
    ]


def test_a_set_leaves_out_an_archived_project_that_a_document_would_create(cli_runner: CliRunner, dialect: str) -> None:
    archived = [
        {"id": number, "path": path, "archived": True} for number, path in ((200, "acme/old"), (201, "acme/own"))
    ]
    projects = [*a_small_service(dialect)["projects"], *archived]
    projects[3] = {**projects[3], "archived": True}
    service(cli_runner, dialect, projects=projects)
    documents = [
        "ProjectSet {name: all}\nselect: {group: acme}\nspec: {milestones: {all: {}}}",
        "Project acme/old\ncreate: {}",
        "Project acme/own\ncreate: {}\nspec: {approval_settings: {allow_author_approval: true}, milestones: {own: {}}}",
        "Project acme/fresh\ncreate: {}",
    ]
    write(cli_runner, *documents)
    done, asked = plan(cli_runner, "plan --exclude acme/lib")
    assert done.out.splitlines()[:-1] == [
        "Loosens protection:",
        "project acme/own",
        "  ~ approval settings                         allow_author_approval: false -> true, loosens     manifests/all.yaml:16",
        "All else:",
        "project acme/api",
        '  + milestone "all"     manifests/all.yaml:5',
        "project acme/fresh",
        "  + project acme/fresh (name: fresh, visibility: private)     manifests/all.yaml:21",
        '  + milestone "all"     manifests/all.yaml:5',
        "project acme/own",
        "  ! milestones: the project is archived; unarchive it, or leave the section out     manifests/all.yaml:16",
        "project acme/web",
        '  + milestone "all"     manifests/all.yaml:5',
    ]
    assert asked == [
        *("groups/acme/projects", "projects/acme/fresh", "groups/acme", "projects/acme/old", "projects/acme/own"),
        "groups/acme/fresh",
        *("projects/acme/api/milestones", "projects/acme/own/merge_request_approval_setting"),
        *("projects/acme/own/milestones", "projects/acme/web/milestones"),
    ]
    # another set's list shows that one is archived
    tools = "ProjectSet {name: tools}\nselect: {group: acme/tools, archived: true}\nspec: {approval_settings: {}}"
    write(cli_runner, *documents[:1], tools, "Project acme/tools/cli\ncreate: {}")
    done, asked = plan(cli_runner, "plan --exclude acme/lib")
    assert [line for line in done.out.splitlines() if line.startswith("project")] == [
        "project acme/api",
        "project acme/web",
    ]
    assert "projects/acme/tools/cli" not in asked
    # without sets, nothing is declared otherwise; the record that was asked for shows that it is archived
    write(cli_runner, documents[2])
    done, asked = plan(cli_runner)
    assert done.out.splitlines()[:-1] == [
        "Loosens protection:",
        "project acme/own",
        "  ~ approval settings                         allow_author_approval: false -> true, loosens     manifests/all.yaml:5",
        "All else:",
        "project acme/own",
        "  ! milestones: the project is archived; unarchive it, or leave the section out     manifests/all.yaml:5",
    ]
    assert asked == [
        *("projects/acme/own", "projects/acme/own/merge_request_approval_setting", "projects/acme/own/milestones"),
    ]


def test_a_path_that_a_group_or_a_project_has_already_is_not_created(cli_runner: CliRunner, dialect: str) -> None:
    service(cli_runner, dialect)
    documents = ["Project acme/tools\ncreate: {}\nspec: {milestones: {x: {}}}", "Group acme/API\ncreate: {}"]
    write(cli_runner, *documents, "Group acme/api/deep\ncreate: {}")
    done, asked = plan(cli_runner)
    assert (done.code, told(done)) == (
        3,
        [
            "! group acme/API: this is a project, not a group; declare it with `kind: Project`",
            "! group acme/api/deep: group acme/api cannot be created",
            "! project acme/tools: this is a group, not a project; declare it with `kind: Group`",
        ],
    )
    assert asked == ["groups/acme/API", "groups/acme", "projects/acme/tools", "projects/acme/api", "groups/acme/tools"]


def test_a_subgroup_that_is_created_gets_no_settings_that_only_groups_at_the_top_have(cli_runner: CliRunner) -> None:
    service(cli_runner, "spec")
    approvals = "spec: {approval_settings: {allow_author_approval: true}}"
    exception = "exceptions: [{section: approval_settings, until: 2999-01-01, reason: Soon at the top}]"
    held = f"Group {{path: acme/held, {exception}}}\ncreate: {{}}\n{approvals}"
    write(cli_runner, f"{TEAM}\n{approvals}", f"Group apart\ncreate: {{}}\n{approvals}", held)
    done, _ = plan(cli_runner)
    assert (done.code, done.out.splitlines()[:-1]) == (
        3,
        [
            "group acme/held",
            "  + group acme/held (name: held, visibility: private)     manifests/all.yaml:16",
            "group acme/team",
            "  + group acme/team (name: New Team, visibility: private)     manifests/all.yaml:4",
            "  ! approval_settings: only groups at the top have these settings; declare them there     "
            "manifests/all.yaml:5",
            "group apart",
            "  + group apart (name: apart, visibility: private)     manifests/all.yaml:10",
            "  ~ approval settings                         allow_author_approval: true     manifests/all.yaml:11",
            "1 excepted until 2999-01-01 at the earliest (-v shows them)",
        ],
    )
    held = "  = approval_settings                         excepted until 2999-01-01: Soon at the top     manifests/all.yaml:15\n"
    assert held in cli_runner("plan -v").out
