"""Sections that a plan cannot read: the cause, the remedy, the manifest's line, and the requests that finding out takes."""

import json
import re
from typing import Any

import pytest

from tests.between import Passing, between
from tests.cli_runner import CliRunner, Ended
from tests.engine_driver import PREFIX
from tests.states import a_small_service

RULE = "container_repository_protection_rules"
DOCUMENT = "apiVersion: reconciler/v1\nkind: {kind}\nmetadata: {{{metadata}}}\nspec:\n{spec}"
NOBODY = "the token's owner"


@pytest.fixture
def state() -> dict[str, Any]:
    """The small service, where bob's role does not come from a group."""
    state = a_small_service("deployed")
    state["groups"][0]["members"] = [{"user": "ada", "role": "owner"}]
    return state


def planned(
    cli_runner: CliRunner, state: dict[str, Any], *documents: tuple[str, str, str], command: str = "plan"
) -> Ended:
    """Plan these documents, each a kind, its metadata and its sections, as bob."""
    cli_runner.sandbox.replace_state(state)
    texts = [
        DOCUMENT.format(kind=kind, metadata=metadata, spec="".join(f"  {each}\n" for each in sections.split("; ")))
        for kind, metadata, sections in documents
    ]
    cli_runner.write("manifests/all.yaml", "---\n".join(texts))
    cli_runner.sandbox.clear_log()
    return cli_runner(f"{command} --concurrency 1")


MILESTONES = "milestones?include_ancestors=true"


def requests(cli_runner: CliRunner) -> list[str]:
    """Return the requests, in order, without the number of their page."""
    return [
        re.sub(r"[?&]per_page=100&page=1$", "", each["target"].removeprefix(PREFIX))
        for each in cli_runner.sandbox.log()
    ]


def problems(done: Ended) -> list[str]:
    """Return the lines about problems."""
    return [line.removeprefix("  ! ") for line in done.out.splitlines() if line.startswith("  ! ")]


@pytest.fixture(autouse=True)
def _bob(cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECONCILER_API_URL", cli_runner.sandbox.api_url)
    monkeypatch.setenv("RECONCILER_TOKEN", "bob-token")


def test_a_plan_says_the_cause_the_remedy_and_the_line_for_one_request_a_target(
    cli_runner: CliRunner, state: dict[str, Any]
) -> None:
    state["projects"][0] |= {"members": [{"user": "bob", "role": "maintainer"}], "archived": True}
    state["projects"][1] |= {"members": [{"user": "bob", "role": "maintainer"}], "builds_enabled": False}
    state["projects"][2] |= {"members": [{"user": "bob", "role": "developer"}]}
    state["projects"].append({"id": 104, "path": "acme/docs", "members": [{"user": "bob", "role": "guest"}]})
    state["groups"][1]["members"] = [{"user": "bob", "role": "guest"}]
    done = planned(
        cli_runner,
        state,
        ("Project", "path: acme/api", "notification_settings: {level: global}; trigger_tokens: {nightly: {}}"),
        ("Project", "path: acme/lib", "trigger_tokens: {nightly: {}}; job_token_scope: {enabled: true}"),
        ("Project", "path: acme/web", "job_token_scope: {enabled: true}; approval_settings: {}; milestones: {}"),
        ("Project", "path: acme/tools", "milestones: {}"),
        ("Project", "path: acme/nope", "milestones: {}"),
        ("Project", "id: 11", "milestones: {}"),
        ("Project", "id: 999", "milestones: {}"),
        ("Group", "path: acme/docs", "approval_settings: {}"),
        ("Group", "path: nope", "approval_settings: {}"),
    )
    lacking = f"{NOBODY} is Developer there, and Maintainer is needed; make {NOBODY} Maintainer"
    invisible = "correct it in the manifest, or make bob a member"
    nowhere = "correct it in the manifest, make bob a member, or create it: `create: {}` in its document"
    assert (done.code, done.err) == (3, "")
    assert problems(done) == [
        "group acme/docs: this is a project, not a group; declare it with `kind: Project`     manifests/all.yaml:47",
        f"group nope: not found, not visible to bob, or not in this edition; {nowhere}; a group whose deletion is scheduled has another path     manifests/all.yaml:53",
        "trigger_tokens: cannot be read: the project is archived; unarchive it, or leave the section out     manifests/all.yaml:6",
        "trigger_tokens: cannot be read: switched off in the project: CI/CD; switch CI/CD on, or leave the section out     "
        "manifests/all.yaml:12",
        f"project acme/nope: not found, or not visible to bob; {nowhere}     manifests/all.yaml:29",
        "project acme/tools: this is a group, not a project; declare it with `kind: Group`     manifests/all.yaml:23",
        f"approval_settings: cannot be read: {lacking}     manifests/all.yaml:20",
        f"job_token_scope: cannot be read: {lacking}     manifests/all.yaml:19",
        "project 11: this is the ID of a group, not the ID of a project; declare it with `kind: Group`     manifests/all.yaml:35",
        f"project 999: not found, or not visible to bob; {invisible}     manifests/all.yaml:41",
    ]
    assert requests(cli_runner)[13:] == [
        "projects/acme%2Fdocs",
        "user",
        "projects/acme%2Fapi",
        "groups/acme%2Fnope?with_projects=false",
        "projects/acme%2Fweb",
        "groups/11?with_projects=false",
        "groups/999?with_projects=false",
        "projects/acme%2Flib",
    ]


def fleet(sections: str, *names: str, kind: str = "Project") -> list[tuple[str, str, str]]:
    """Many projects of one group with the same manifest."""
    return [(kind, f"path: acme/{name}", sections) for name in names]


def test_what_is_the_same_for_projects_of_a_group_is_asked_for_once(
    cli_runner: CliRunner, state: dict[str, Any]
) -> None:
    state["groups"][0]["members"].append({"user": "bob", "role": "developer"})
    done = planned(cli_runner, state, *fleet("job_token_scope: {enabled: true}", "api", "lib", "web"))
    assert done.out.splitlines()[:2] == [
        "3 projects                                                           (acme/api, acme/lib and 1 more)",
        f"  ! job_token_scope: cannot be read: {NOBODY} is Developer there, and Maintainer is needed; make {NOBODY} "
        "Maintainer     manifests/all.yaml:5 and 2 more",
    ]
    assert requests(cli_runner)[3:] == ["projects/acme%2Fapi"]
    names = ("old-a", "old-b", "old-c")
    done = planned(cli_runner, state, *fleet("milestones: {}", "api", *names))
    assert problems(done) == [
        "project <path>: not found in acme, or not visible to bob; correct it in the manifest, make bob a "
        "member, or create it: `create: {}` in its document     manifests/all.yaml:7 and 2 more"
    ]
    assert requests(cli_runner)[4:] == ["user", "groups/acme?with_projects=false"]
    done = planned(cli_runner, state, *fleet("milestones: {}", "api"), *fleet("milestones: {}", "x/a", "x/b", "x/c"))
    assert problems(done) == [
        "project <path>: not found, and group acme/x is not visible to bob either; correct the path in the "
        "manifest, or make bob a member of the group     manifests/all.yaml:7 and 2 more"
    ]
    assert requests(cli_runner)[4:] == ["user", "groups/acme%2Fx?with_projects=false"]


def test_what_holds_for_one_project_alone_is_asked_for_each(cli_runner: CliRunner, state: dict[str, Any]) -> None:
    state["groups"][0]["members"].append({"user": "bob", "role": "maintainer"})
    state["projects"][0]["archived"] = True
    state["projects"][1]["builds_enabled"] = False
    done = planned(cli_runner, state, *fleet("trigger_tokens: {nightly: {}}", "api", "lib"))
    assert [line.partition(";")[0] for line in problems(done)] == [
        "trigger_tokens: cannot be read: the project is archived",
        "trigger_tokens: cannot be read: switched off in the project: CI/CD",
    ]
    assert requests(cli_runner)[2:] == ["projects/acme%2Fapi", "projects/acme%2Flib"]


def test_a_token_that_sees_nothing_is_told_once(cli_runner: CliRunner, state: dict[str, Any]) -> None:
    done = planned(
        cli_runner,
        state,
        *fleet("milestones: {}", "api", "lib", "web"),
        ("Group", "path: acme", "approval_settings: {}"),
    )
    assert (done.code, done.out, done.err) == (
        1,
        "",
        "reconciler: none of the 4 targets is visible to bob: check the token and the service\n",
    )
    assert requests(cli_runner)[4:] == ["user"]
    cli_runner.sandbox.set_faults(["status=403,match=user"])
    assert f"is visible to {NOBODY}:" in cli_runner("drift").err
    cli_runner.sandbox.set_faults(["status=401,match=user"])
    assert cli_runner("drift").err.startswith("reconciler: GET user: 401")


def test_an_edition_without_the_settings_is_asked_for_once(cli_runner: CliRunner, state: dict[str, Any]) -> None:
    state["instance"]["version"] = "18.9.0"
    state["groups"][0]["members"].append({"user": "bob", "role": "maintainer"})
    done = planned(cli_runner, state, *fleet("approval_settings: {}", "api", "lib", "web"))
    assert problems(done) == [
        "approval_settings: cannot be read: the Community Edition has no such settings; leave the section out     "
        "manifests/all.yaml:5 and 2 more"
    ]
    assert requests(cli_runner)[3:] == ["version"]


def test_a_url_without_the_api_is_an_error_if_nothing_was_found_there(
    cli_runner: CliRunner, state: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = cli_runner.sandbox.api_url.removesuffix("/api/v4")
    for url in (root, f"{root}/", f"{root}/api", f"{root}/api/v3/"):
        monkeypatch.setenv("RECONCILER_API_URL", url)
        done = planned(cli_runner, state, *fleet("milestones: {}", "api"))
        assert (done.code, done.out, done.err) == (
            1,
            "",
            f"reconciler: {url.rstrip('/')}: nothing was found there, and no API answers: the URL must end in /api/v4: try "
            f"{root}/api/v4\n",
        )
        assert [each.rpartition("/")[2] for each in requests(cli_runner)] == [MILESTONES, "version"]


RENEW = "make a new one with the scope api, and set RECONCILER_TOKEN or --token-file"


@pytest.mark.parametrize(
    ("token", "said"),
    [
        (
            {"expires_at": "2020-01-01"},
            "401 Token is expired. You can either do re-authorization or token refresh; the token is wrong, expired or revoked",
        ),
        (
            {"revoked": True},
            "401 Token was revoked. You have to re-authorize from the user; the token is wrong, expired or revoked",
        ),
        (
            {"scopes": ["read_user"]},
            "403 The request requires higher privileges than provided by the access token; the token's scopes do not "
            "suffice (plan and drift take read_api, apply takes api)",
        ),
    ],
    ids=["expired", "revoked", "scope"],
)
def test_a_token_that_will_not_do_ends_the_run_with_what_to_do(
    cli_runner: CliRunner, state: dict[str, Any], token: dict[str, Any], said: str
) -> None:
    state["users"][2]["tokens"] = [{"token": "bob-token", **token}]
    done = planned(cli_runner, state, *fleet("milestones: {}", "api"))
    assert (done.code, done.out) == (1, "")
    assert done.err == f"reconciler: GET projects/acme%2Fapi/milestones: {said}: {RENEW}\n"
    assert len(requests(cli_runner)) == 1


def test_entries_of_an_allowlist_that_are_none_are_told_with_their_line(
    cli_runner: CliRunner, state: dict[str, Any]
) -> None:
    state["groups"][0]["members"].append({"user": "bob", "role": "maintainer"})
    target = "job_token_scope: {projects: [acme/web, acme/tools, acme/nope], groups: [acme/lib, nope]}"
    done = planned(cli_runner, state, *fleet(target, "api"))
    hidden = "not found, not visible to this token, or not served by this server"
    elsewhere = "correct the path, or use a token that can see it     manifests/all.yaml:5"
    assert problems(done) == [
        f'allowlisted project "acme/nope": {hidden} (project acme/nope: 404 Project Not Found); {elsewhere}',
        'allowlisted project "acme/tools": this is a group, not a project; list it under `groups`     manifests/all.yaml:5',
        'allowlisted group "acme/lib": this is a project, not a group; list it under `projects`     manifests/all.yaml:5',
        f'allowlisted group "nope": {hidden} (group nope: 404 Group Not Found); {elsewhere}',
    ]


def test_settings_that_a_whole_group_is_refused_are_asked_about_once(
    cli_runner: CliRunner, state: dict[str, Any]
) -> None:
    state["groups"][0]["members"].append({"user": "bob", "role": "maintainer"})
    documents = fleet("approval_settings: {}", "api", "lib", "web")
    planned(cli_runner, state, *documents)
    cli_runner.sandbox.set_faults(["status=403,match=approval"])
    cli_runner.sandbox.clear_log()
    assert problems(cli_runner("plan --concurrency 1")) == [
        "approval_settings: cannot be read: not in this edition, or no right to it (403 Forbidden); this needs the role "
        "Maintainer and an edition with this feature (Premium or Ultimate); otherwise leave the section out     "
        "manifests/all.yaml:5 and 2 more"
    ]
    assert requests(cli_runner)[3:] == ["projects/acme%2Fapi"]


def test_the_role_in_a_group_is_asked_for_where_its_settings_are_refused(
    cli_runner: CliRunner, state: dict[str, Any]
) -> None:
    state["groups"][0]["members"].append({"user": "bob", "role": "maintainer"})
    done = planned(cli_runner, state, ("Group", "path: acme", "approval_settings: {}; milestones: {}"))
    words = "bob is Maintainer there, and Owner is needed; make bob Owner"
    assert problems(done) == [f"approval_settings: cannot be read: {words}     manifests/all.yaml:5"]
    assert requests(cli_runner)[2:] == ["user", "groups/acme/members/all/3"]
    told = cli_runner("doctor").out
    assert "bob is Maintainer there, and Owner is needed" in " ".join(told.split())


LACKING = "root is an administrator, but the token lacks the scope admin_mode, and the service uses Admin Mode"
SCOPE = "use a token that has the scope admin_mode too"
OF_ROOT = ["user", "personal_access_tokens/self", "keys/0"]


@pytest.fixture
def powerless(state: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The tokens of an administrator, of which the one in use lacks the scope that the service asks for."""
    monkeypatch.setenv("RECONCILER_TOKEN", "root-token")
    state["instance"]["admin_mode"] = True
    tokens: list[dict[str, Any]] = [{"token": "root-token", "scopes": ["api"]}]
    state["users"][0]["tokens"] = tokens
    return tokens


@pytest.mark.usefixtures("powerless")
def test_an_administrator_without_admin_mode_is_one_cause_in_every_command(
    cli_runner: CliRunner, state: dict[str, Any]
) -> None:
    state["projects"][2]["visibility"] = "public"
    documents = (
        *fleet("milestones: {a: {}}", "api"),
        *fleet("job_token_scope: {enabled: true}; milestones: {a: {}}", "web"),
        ("Instance", "", "service_accounts: {}"),
    )
    done = planned(cli_runner, state, *documents)
    assert problems(done) == [
        f"service_accounts: cannot be read: {LACKING}; {SCOPE}     manifests/all.yaml:18",
        f"project acme/api: not found, or hidden: {LACKING}; {SCOPE}, or correct it in the manifest     manifests/all.yaml:1",
        f"job_token_scope: cannot be read: {LACKING}; {SCOPE}     manifests/all.yaml:11",
    ]
    asked = requests(cli_runner)
    assert [asked.count(path) for path in OF_ROOT] == [1, 1, 1]
    done = cli_runner("doctor --verbose")
    assert (done.code, done.out.count(LACKING), done.out.count(SCOPE)) == (3, 5, 5)
    assert (
        f"  warning  scopes                                    api: enough only where root is a member: {LACKING}; {SCOPE}"
        in done.out
    )
    refused = f"  error    milestones                                read: yes, write: no: {LACKING}; {SCOPE}"
    assert refused in done.out.splitlines()
    done = cli_runner("apply --yes --target acme/web --section milestones")
    assert f'milestone "a"                             failed: {LACKING}; {SCOPE} (POST ' in done.out
    assert f"{LACKING}: {SCOPE}, or correct the path" in cli_runner("export --group acme -o out").err
    select = "apiVersion: reconciler/v1\nkind: ProjectSet\nmetadata: {name: a}\nselect: {group: acme}\nspec: {milestones: {a: {}}}\n"
    cli_runner.write("manifests/all.yaml", select)
    assert f"{LACKING}: {SCOPE}, or correct the group" in cli_runner("plan").out
    done = planned(cli_runner, state, *fleet("milestones: {}", "a", "b", "c"), *fleet("milestones: {}", "web"))
    assert problems(done) == [
        f"project <path>: not found, and group acme is hidden too: {LACKING}; {SCOPE}, or correct the path in the "
        "manifest     manifests/all.yaml:1 and 2 more"
    ]


def test_of_an_administrator_no_role_is_said_to_be_missing(cli_runner: CliRunner, state: dict[str, Any]) -> None:
    documents = [("Group", "path: acme", "milestones: {a: {}}")]
    next(user for user in state["users"] if user["username"] == "bob")["admin"] = True
    planned(cli_runner, state, *documents)
    cli_runner.sandbox.set_faults([{"kind": "status", "status": 403, "method": "POST"}])
    done = cli_runner("apply --yes")
    refused = "POST groups/acme/milestones: 403 Forbidden; this needs the role Planner"
    assert f'milestone "a"                             failed: {refused}\n' in done.out
    faults = [{"kind": "status", "status": 403, "method": "POST"}, {"kind": "status", "status": 403, "match": "/user"}]
    cli_runner.sandbox.set_faults(faults)
    assert f'milestone "a"                             failed: {refused}\n' in cli_runner("apply --yes").out


def test_an_administrator_who_sees_nothing_is_told_of_admin_mode_where_the_service_has_it(
    cli_runner: CliRunner, state: dict[str, Any], powerless: list[dict[str, Any]]
) -> None:
    documents = fleet("milestones: {}", "one", "two", "three")
    none = "reconciler: none of the 3 targets is visible to root"
    assert planned(cli_runner, state, *documents).err == f"{none}: {LACKING}; {SCOPE}\n"
    assert requests(cli_runner)[3:] == OF_ROOT
    state["instance"]["admin_mode"] = False
    assert planned(cli_runner, state, *documents).err == f"{none}: check the token and the service\n"
    assert requests(cli_runner)[3:] == OF_ROOT
    powerless[0]["scopes"].append("admin_mode")
    assert planned(cli_runner, state, *documents).err == f"{none}: check the token and the service\n"
    assert requests(cli_runner)[3:] == OF_ROOT[:2]


@pytest.mark.parametrize("dialect", ["deployed", "spec"])
def test_a_blocked_account_ends_the_run_at_the_first_refusal(
    cli_runner: CliRunner, state: dict[str, Any], dialect: str
) -> None:
    state["instance"]["dialect"] = dialect
    state["users"][2]["blocked"] = True
    said = "403 Forbidden - Your account has been blocked"
    remedy = "every request of the token's owner is refused: ask an administrator, or use a token of another user"
    done = planned(cli_runner, state, *fleet("milestones: {a: {}}", "api", "lib", "web"))
    assert (done.code, done.out) == (1, "")
    assert done.err == f"reconciler: GET projects/acme%2Fapi/milestones: {said}; {remedy}\n"
    assert requests(cli_runner) == [f"projects/acme%2Fapi/{MILESTONES}", "user"]
    assert (
        f"  error    token                                     refused: {said}; {remedy}\n" in cli_runner("doctor").out
    )


def test_a_refusal_with_an_explanation_ends_nothing_if_others_are_answered(
    cli_runner: CliRunner, state: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def explain(passing: Passing) -> None:
        if "/milestones" in passing.request:
            passing.status, passing.body = 403, b'{"message": "403 Forbidden - Not on a Sunday."}'

    state["groups"][0]["members"].append({"user": "bob", "role": "maintainer"})
    planned(cli_runner, state, *fleet("milestones: {a: {}}", "api", "lib", "web"))
    with between(cli_runner.sandbox.api_url) as service:
        service.alter = explain
        monkeypatch.setenv("RECONCILER_API_URL", service.api_url)
        cli_runner.sandbox.clear_log()
        done = cli_runner("plan --concurrency 1")
    assert (done.code, done.out.count("Not on a Sunday;")) == (3, 1)
    assert requests(cli_runner).count("user") == 1


def test_a_plan_has_the_words_of_the_doctor(cli_runner: CliRunner, state: dict[str, Any]) -> None:
    maintainer = {"members": [{"user": "bob", "role": "maintainer"}]}
    state["projects"][0] |= maintainer | {"archived": True, "builds_enabled": False}
    state["projects"][1] |= {"members": [{"user": "bob", "role": "developer"}]}
    state["projects"][2] |= maintainer | {"issues_enabled": False, "merge_requests_enabled": False}
    state["groups"][1] |= {"members": [{"user": "bob", "role": "owner"}]}
    tokens = "trigger_tokens: {nightly: {}}; approval_settings: {}; milestones: {}"
    done = planned(
        cli_runner,
        state,
        *fleet(tokens, "api", "lib", "web", "none"),
        ("Group", "path: acme/tools", "approval_settings: {}"),
        ("Group", "path: acme/tools/cli", "notification_settings: {level: watch}"),
    )
    plan = problems(done)
    doctor = json.loads(cli_runner("doctor --read-only --format json").out)
    told = {
        f"{each['said']}; {each['remedy']}".replace("bob is", f"{NOBODY} is").replace(
            "make bob Main", f"make {NOBODY} Main"
        )
        for target in doctor["targets"]
        for each in (*target["findings"], *target["sections"])
        if each["verdict"] == "error" and each["said"]
    }
    assert len(told) == 6
    assert {words for words in told if not any(words in problem for problem in plan)} == set()
