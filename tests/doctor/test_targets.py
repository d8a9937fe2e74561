"""Whether each section of each target can be read and written, and the obstacles."""

import json
from datetime import timedelta

import pytest

from reconciler.engine.read import UNEXPECTED
from reconciler.schema import schema_of
from tests.building import KINDS
from tests.canned import answer, canned
from tests.cli_runner import CliRunner
from tests.doctor.conftest import FRONT, TODAY, Patient
from tests.items import changes_of
from tests.test_schemas import faults

ASKED = ["personal_access_tokens/self", "version", "user"]
MILESTONES = "milestones?include_ancestors=true"
RULES = "container_repository_protection_rules"
ALL = (
    "notification_settings: {{level: watch}}, approval_settings: {{allow_author_approval: false}}, "
    + RULES
    + ": {{{path}/x*: {{minimum_access_level_for_push: maintainer}}}}, job_token_scope: {{enabled: true}}, "
    "milestones: {{one: {{}}}}, trigger_tokens: {{nightly: {{}}}}"
)
"""Every section that a project has."""
TAKES = "this needs the role {} and an edition with this feature (Premium or Ultimate); otherwise leave the section out"
NOT_LICENSED = "read: no, write: no: not in this edition, or no right to it (403 Forbidden)"
FEW = "Measured: N ms per response, 1 request at once."


def of(path: str, *parts: str) -> list[str]:
    """Return the requests for these parts of a project."""
    return [f"projects/{path.replace('/', '%2F')}/{part}" for part in parts]


def parts_of(path: str) -> list[str]:
    """Return the requests for all parts."""
    parts = "notification_settings merge_request_approval_setting registry/protection/repository/rules job_token_scope"
    return of(path, *parts.split(), MILESTONES, "triggers")


def told(done_out: str) -> list[str]:
    """Return the output about the targets, without service, token and numbers."""
    lines = done_out.splitlines()
    assert lines[: len(FRONT)] == FRONT
    assert lines[-2].startswith("Doctor: ")
    assert lines[-1].endswith(FEW)
    return lines[len(FRONT) : -2]


def test_all_is_well_for_whoever_may_do_it_all(patient: Patient) -> None:
    patient.project("acme/api", ALL.format(path="acme/api"))
    patient.group("path: acme", "approval_settings: {allow_author_approval: true}")
    done = patient.examine()
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        *FRONT,
        "group acme",
        "  ok       approval_settings                         read: yes, write: yes",
        "project acme/api",
        "  ok       notification_settings                     read: yes, write: yes",
        "  ok       approval_settings                         read: yes, write: yes",
        "  ok       container_repository_protection_rules     read: yes, write: yes",
        "  ok       job_token_scope                           read: yes, write: yes",
        "  ok       milestones                                read: yes, write: yes",
        "  ok       trigger_tokens                            read: yes, write: yes",
        "Doctor: 0 errors, 0 warnings, 0 unknown.",
        f"A plan: 7 requests, less than a second. Applying it: 4 changes by 9 requests more, less than a second. {FEW}",
    ]
    record = of("acme/api", "")[0].rstrip("/")
    group = "groups/acme/merge_request_approval_setting"
    assert patient.requests() == [*ASKED, group, *parts_of("acme/api"), record]


@pytest.mark.untraced
def test_the_estimate_is_what_plan_and_apply_then_take(patient: Patient) -> None:
    patient.project("acme/api", "job_token_scope: {projects: [acme/lib, acme/web]}, milestones: {one: {state: closed}}")
    patient.project("acme/lib", "trigger_tokens: {nightly: {}}, milestones: {one: {}, two: {}}")
    costs = json.loads(patient.examine("--format", "json").out)["costs"]
    patient.cli_runner.sandbox.clear_log()
    patient.cli_runner("plan manifests --out plan.json")
    planned = len(patient.cli_runner.sandbox.log())
    patient.begin()
    patient.cli_runner("apply manifests --yes --tokens-to tokens")
    assert (costs["plan"]["requests"], costs["changes"]) == (planned, 6)
    assert costs["apply"]["requests"] == len(patient.cli_runner.sandbox.log()) - planned


def test_a_record_is_asked_for_only_where_it_would_tell_something(patient: Patient) -> None:
    patient.project("acme/api", "job_token_scope: {enabled: true}, trigger_tokens: {nightly: {}}")
    patient.examine()
    assert patient.requests() == [*ASKED, *of("acme/api", "job_token_scope", "triggers")]


def test_a_role_that_does_not_suffice_is_told(patient: Patient) -> None:
    patient.state["groups"][0]["members"] = []
    patient.project("acme/api", ALL.format(path="acme/api"), members=[{"user": "ada", "role": "maintainer"}])
    patient.project("acme/lib", ALL.format(path="acme/lib"), members=[{"user": "ada", "role": "reporter"}])
    patient.project("acme/web", "milestones: {one: {}}", members=[{"user": "ada", "role": "guest"}])
    done = patient.examine()
    assert done.code == 3
    lacking = "read: no, write: no: ada is Reporter there, and Maintainer is needed; make ada Maintainer"
    assert told(done.out) == [
        "project acme/api",
        "  ok       notification_settings                     read: yes, write: yes",
        "  ok       approval_settings                         read: yes, write: yes",
        "  ok       container_repository_protection_rules     read: yes, write: yes",
        "  ok       job_token_scope                           read: yes, write: yes",
        "  ok       milestones                                read: yes, write: yes",
        "  ok       trigger_tokens                            read: yes, write: yes",
        "project acme/lib",
        "  ok       notification_settings                     read: yes, write: yes",
        f"  error    approval_settings                         {lacking}",
        f"  error    container_repository_protection_rules     {lacking}",
        f"  error    job_token_scope                           {lacking}",
        "  ok       milestones                                read: yes, write: yes",
        f"  error    trigger_tokens                            {lacking}",
        "project acme/web",
        "  error    milestones                                read: yes, write: no: ada is Guest there, and Planner is needed; make ada Planner",
    ]
    assert "Doctor: 5 errors, 0 warnings, 0 unknown." in done.out
    records = ["projects/acme%2Fapi", "projects/acme%2Flib", "projects/acme%2Fweb"]
    reads = [*parts_of("acme/api"), *parts_of("acme/lib"), *of("acme/web", MILESTONES)]
    assert patient.requests() == [*ASKED, *reads, *records]


def test_a_role_that_is_not_told_is_unknown_and_no_error(patient: Patient) -> None:
    patient.state["groups"][0]["members"] = []
    patient.project("acme/api", "milestones: {one: {}}", visibility="public")
    done = patient.examine()
    assert done.code == 0
    assert told(done.out) == [
        "project acme/api",
        "  unknown  milestones                                read: yes, write: unknown: the role of ada is not reported; Planner is needed",
    ]


@pytest.mark.parametrize("user", ["root", "own"])
def test_administrators_and_owners_of_a_namespace_need_no_membership(patient: Patient, user: str) -> None:
    patient.state["users"][1]["admin"] = user == "root"
    path = "acme/api" if user == "root" else "ada/own"
    patient.state["groups"][0]["members"] = []
    patient.state["projects"].append({"id": 200, "path": "ada/own"})
    patient.project(path, "milestones: {one: {}}")
    done = patient.examine()
    assert done.code == 0
    assert "  ok       milestones                                read: yes, write: yes" in done.out.splitlines()


ODDITIES = {
    "acme/plain": {},
    "acme/archived": {"archived": True},
    "acme/no-registry": {"container_registry_enabled": False},
    "acme/no-ci": {"builds_enabled": False},
    "acme/no-work": {"issues_enabled": False, "merge_requests_enabled": False},
}


@pytest.mark.untraced
@pytest.mark.parametrize("role", ["guest", "planner", "reporter", "developer", "maintainer", "owner"])
def test_what_is_said_can_be_written_is_written_and_what_cannot_is_not(patient: Patient, role: str) -> None:
    patient.state["groups"][0]["members"] = []
    changes = ALL.replace("allow_author_approval: false", "allow_author_approval: true")
    changes = changes.replace("enabled: true", "projects: [42]")
    for number, (path, oddity) in enumerate(ODDITIES.items(), start=200):
        member = {"members": [{"user": "ada", "role": role}]}
        patient.state["projects"].append({"id": number, "path": path, **member, **oddity})
        patient.project(path, changes.format(path=path))
    patient.state["projects"].append({"id": 42, "path": "acme/friend", "visibility": "public"})
    foretold = {
        (target["ref"], section["section"]): section["write"]
        for target in json.loads(patient.examine("--format", "json").out)["targets"]
        for section in target["sections"]
    }
    patient.cli_runner("apply manifests --yes --no-verify --tokens-to tokens --report json=report.json")
    report = json.loads((patient.cli_runner.folder / "report.json").read_text())
    done = {
        (target["ref"], section): [
            change["outcome"]["status"]
            for change in changes_of(report, section)
            if change["target"] == target["target"]
        ]
        == ["done"]
        for target in report["targets"]
        for section in target["sections"]
    }
    assert len(foretold) == 6 * len(ODDITIES)
    assert set(foretold.values()) <= {"yes", "no"}
    assert {place for place, write in foretold.items() if write == "yes"} == {place for place, it in done.items() if it}


def test_an_archived_project_is_told_for_the_sections_it_closes(patient: Patient) -> None:
    patient.project("acme/api", ALL.format(path="acme/api"), archived=True)
    done = patient.examine()
    assert done.code == 3
    why = "the project is archived; unarchive it, or leave the section out"
    assert told(done.out) == [
        "project acme/api",
        "  ok       notification_settings                     read: yes, write: yes",
        "  ok       approval_settings                         read: yes, write: yes",
        f"  error    container_repository_protection_rules     read: no, write: no: {why}",
        "  ok       job_token_scope                           read: yes, write: yes",
        f"  error    milestones                                read: yes, write: no: {why}",
        f"  error    trigger_tokens                            read: no, write: no: {why}",
    ]


def test_what_is_switched_off_is_told(patient: Patient) -> None:
    off = {"container_registry_enabled": False, "builds_enabled": False}
    off |= {"issues_enabled": False, "merge_requests_enabled": False}
    patient.project("acme/api", ALL.format(path="acme/api"), **off)
    done = patient.examine()
    assert done.code == 3
    no = "read: no, write: no: switched off in the project:"
    assert told(done.out) == [
        "project acme/api",
        "  ok       notification_settings                     read: yes, write: yes",
        "  ok       approval_settings                         read: yes, write: yes",
        f"  error    container_repository_protection_rules     {no} the container registry; switch the container registry on, or leave the section out",
        "  ok       job_token_scope                           read: yes, write: yes",
        f"  error    milestones                                {no} issues and merge requests; switch issues and merge requests on, or leave the section out",
        f"  error    trigger_tokens                            {no} CI/CD; switch CI/CD on, or leave the section out",
    ]


def test_a_path_that_is_wrong_is_told_once_and_asked_for_once(patient: Patient) -> None:
    patient.project("acme/nope", ALL.format(path="acme/nope"))
    patient.group("path: nowhere", "approval_settings: {allow_author_approval: true}")
    done = patient.examine()
    assert done.code == 3
    said = "not found, or not visible to ada; correct it in the manifest, make ada a member, or create it: `create: {}` in its document"
    assert told(done.out) == [
        "group nowhere",
        f"  error    group                                     {said}; a group whose deletion is scheduled has another path",
        "project acme/nope",
        f"  error    project                                   {said}",
    ]
    group, other = "groups/nowhere/merge_request_approval_setting", "groups/acme%2Fnope?with_projects=false"
    assert patient.requests() == [*ASKED, group, *parts_of("acme/nope"), other]


def test_what_a_group_has_locked_is_told(patient: Patient) -> None:
    patient.state["groups"][0]["merge_request_approval_settings"] = {"allow_author_approval": False}
    patient.project("acme/api", "approval_settings: {allow_author_approval: true}")
    done = patient.examine()
    assert done.code == 3
    assert told(done.out) == [
        "project acme/api",
        "  ok       approval_settings                         read: yes, write: yes",
        "  error    approval settings.allow_author_approval   locked by group acme; unlock it there or leave the field out",
    ]


def test_what_a_plan_could_not_do_is_told_too(patient: Patient) -> None:
    twins = [{"description": "nightly", "id": 7}, {"description": "nightly", "id": 8}]
    patient.project(
        "acme/api", "trigger_tokens: {nightly: {}}, job_token_scope: {projects: [77]}", trigger_tokens=twins
    )
    patient.begin()
    plan = patient.cli_runner("plan manifests").out
    problems = [line.strip(" !") for line in plan.splitlines() if line.startswith("  ! ")]
    told_too = [line for line in told(patient.ask().out) if "error" in line]
    assert len(problems) == len(told_too) > 0
    for problem, line in zip(problems, told_too, strict=True):
        assert problem.partition(": ")[2].partition("  ")[0] in line


def test_groups_below_others_have_no_approval_settings(patient: Patient) -> None:
    patient.group("path: acme/tools", "approval_settings: {allow_author_approval: true}")
    patient.group("id: 11", "approval_settings: {allow_author_approval: true}")
    done = patient.examine()
    said = "  error    approval_settings                         read: no, write: no: only groups at the top have these settings; declare them there"
    assert told(done.out) == ["group acme/tools", said, "group 11", said]
    reads = ["groups/acme%2Ftools/merge_request_approval_setting", "groups/11/merge_request_approval_setting"]
    assert patient.requests() == [*ASKED, *reads, "groups/11?with_projects=false"]


def test_a_group_at_the_top_that_refuses_says_what_it_takes(patient: Patient) -> None:
    patient.state["groups"][0]["members"] = [{"user": "ada", "role": "maintainer"}]
    patient.group("path: acme", "approval_settings: {allow_author_approval: true}")
    assert told(patient.examine().out) == [
        "group acme",
        f"  error    approval_settings                         {NOT_LICENSED}; {TAKES.format('Owner')}",
    ]


def test_the_instance_says_that_it_takes_an_administrator(patient: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    patient.documents.append("apiVersion: reconciler/v1\nkind: Instance\nspec: {service_accounts: {}}\n")
    refused = (
        f"  error    service_accounts                          {NOT_LICENSED}; "
        "this needs an administrator's token (with the scope admin_mode if the service uses admin mode) and an edition "
        "with this feature (Premium or Ultimate); otherwise leave the section out"
    )
    assert told(patient.examine().out) == ["instance", refused]
    monkeypatch.setenv("RECONCILER_TOKEN", "root-token")
    fine = "  ok       service_accounts                          read: yes, write: yes"
    assert fine in patient.ask().out.splitlines()


def test_an_edition_without_the_feature_is_told(patient: Patient, dialect: str) -> None:
    patient.state["instance"]["version"] = "18.9.0"
    patient.project("acme/api", "approval_settings: {allow_author_approval: true}")
    done = patient.examine()
    why = "the Community Edition has no such settings; leave the section out"
    said = {
        "deployed": f"  error    approval_settings                         read: no, write: no: {why}",
        "spec": "  ok       approval_settings                         read: yes, write: yes",
    }
    lines = done.out.splitlines()
    assert lines[2] == "  ok       version                                   18.9.0, Community Edition"
    assert lines[7:9] == ["project acme/api", said[dialect]]


def test_a_feature_that_is_not_licensed_is_guessed_at_only_as_a_remedy(patient: Patient) -> None:
    patient.project("acme/api", "approval_settings: {allow_author_approval: true}")
    patient.begin()
    patient.cli_runner.sandbox.set_faults(["status=403,match=approval"])
    (_, said) = told(patient.ask().out)
    assert said == f"  error    approval_settings                         {NOT_LICENSED}; {TAKES.format('Maintainer')}"


GROUP = "epics: {Payments: {}}"
EPICS = "  {}  epics                                     read: yes, write: {}"
REQUIRED = "ada is {} there, and Planner is needed; make ada Planner"


@pytest.mark.parametrize(
    ("role", "line"),
    [
        ("owner", EPICS.format("ok     ", "yes")),
        ("maintainer", EPICS.format("ok     ", "yes")),
        ("guest", EPICS.format("error  ", f"no: {REQUIRED.format('Guest')}")),
        (None, EPICS.format("error  ", f"no: {REQUIRED.format('no member')}")),
    ],
)
def test_the_role_in_a_group_is_that_of_its_member(patient: Patient, role: str | None, line: str) -> None:
    acme, tools = patient.state["groups"]
    acme |= {"members": [{"user": "ada", "role": role}] if role else [], "visibility": "public"}
    tools["visibility"] = "public"
    patient.group("path: acme", GROUP)
    patient.group("path: acme/tools", GROUP)
    assert told(patient.examine().out) == ["group acme", line, "group acme/tools", line]
    assert patient.requests()[-2:] == ["groups/acme/members/all/2", "groups/acme%2Ftools/members/all/2"]


def test_an_administrator_needs_no_membership_of_a_group(patient: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECONCILER_TOKEN", "root-token")
    patient.group("path: acme", GROUP)
    assert patient.examine().out.splitlines()[7:9] == ["group acme", EPICS.format("ok     ", "yes")]
    assert not any("members" in request for request in patient.requests())


def test_a_membership_that_is_refused_is_unknown(patient: Patient) -> None:
    patient.group("path: acme", GROUP)
    patient.begin()
    patient.cli_runner.sandbox.set_faults(["status=403,match=members"])
    refused = "unknown: the role in the group cannot be read: GET groups/acme/members/all/2: 403 Forbidden"
    assert told(patient.ask().out) == ["group acme", EPICS.format("unknown", refused)]


def test_a_section_that_is_out_of_order_is_told_as_such(patient: Patient) -> None:
    patient.project("acme/api", "milestones: {one: {}}, notification_settings: {level: watch}")
    patient.begin()
    patient.cli_runner.sandbox.set_faults(["not-json,match=milestones", "status=404,match=notification"])
    said = told(patient.ask().out)
    assert said == [
        "project acme/api",
        "  error    notification_settings                     read: no, write: no: GET projects/acme%2Fapi/notification_settings: 404 Not Found; check whether the service supports this section",
        "  error    milestones                                read: no, write: no: GET projects/acme%2Fapi/milestones: the response is not JSON (200, application/json); try again; if it fails again, check the logs of the service",
    ]


def test_a_record_that_is_refused_leaves_it_unknown(patient: Patient) -> None:
    patient.project("acme/api", "milestones: {one: {}}")
    patient.begin()
    patient.cli_runner.sandbox.set_faults(["status=403,match=projects/acme%2Fapi,nth=2"])
    done = patient.ask()
    assert done.code == 0
    assert told(done.out)[1].startswith(
        "  unknown  milestones                                read: yes, write: unknown: the project's record cannot be read: GET projects/acme%2Fapi: 403"
    )


def test_a_server_without_records_of_projects_hides_no_project(patient: Patient) -> None:
    patient.project("acme/api", "milestones: {one: {}}")
    patient.begin()
    patient.cli_runner.sandbox.set_faults(["status=404,match=projects/acme%2Fapi,nth=2"])
    done = patient.ask()
    assert (done.code, told(done.out)) == (
        0,
        [
            "project acme/api",
            "  unknown  milestones                                read: yes, write: unknown: the project's record cannot be read: GET projects/acme%2Fapi: 404 Not Found",
        ],
    )


def test_a_record_that_ends_the_run_is_told(patient: Patient) -> None:
    patient.project("acme/api", "milestones: {one: {}}")
    patient.begin()
    patient.cli_runner.sandbox.set_faults(["status=401,match=projects/acme%2Fapi,nth=2"])
    done = patient.ask()
    assert done.code == 1
    assert "not all could be checked: GET projects/acme%2Fapi: 401" in done.out


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ([], f"the project's record cannot be read: GET projects/acme%2Fapi: {UNEXPECTED}"),
        ({"permissions": None}, "the role of ada is not reported; Planner is needed"),
        ({"permissions": {"a": 1, "b": {}}}, "the role of ada is not reported; Planner is needed"),
        ({"permissions": {"a": {"access_level": 30}}}, "the service does not report whether the project is archived"),
    ],
)
def test_a_record_that_tells_less_leaves_it_unknown(cli_runner: CliRunner, record: object, said: str) -> None:
    cli_runner.project("{milestones: {one: {}}}")
    user, version = {"username": "ada", "bot": False}, {"version": "1.0"}
    answers = [{"scopes": ["api"], "expires_at": None}, version, user, [], record]
    with canned(*(answer("200 OK", json.dumps(each)) for each in answers)) as server:
        done = cli_runner("doctor --concurrency 1 --api-url", server.api_url)
    assert done.code == 0
    assert (
        f"  unknown  milestones                                read: yes, write: unknown: {said}"
        in done.out.splitlines()
    )


def test_a_role_of_a_service_of_its_own_is_told_by_its_number(cli_runner: CliRunner) -> None:
    cli_runner.project("{milestones: {one: {}}}")
    record = {"archived": False, "permissions": {"project_access": {"access_level": 5}}}
    answers = [{"scopes": ["api"]}, {"version": "1.0"}, {"username": "ada"}, [], record]
    with canned(*(answer("200 OK", json.dumps(each)) for each in answers)) as server:
        done = cli_runner("doctor --concurrency 1 --api-url", server.api_url)
    assert "ada is of access level 5 there, and Planner is needed; make ada Planner" in done.out


def test_a_token_that_may_only_read_does_for_those_who_only_read(patient: Patient) -> None:
    patient.token(scopes=["read_api"])
    patient.project("acme/api", "milestones: {one: {}}, job_token_scope: {enabled: true}")
    done = patient.examine()
    why = "the token may only read; use one with the scope api, or add --read-only"
    scopes = "  warning  scopes                                    read_api: enough to read, not to write; plan and drift need no more; apply needs the scope api"
    assert done.code == 3
    assert done.out.splitlines()[5:10] == [
        scopes,
        "  ok       expiry                                    never",
        "project acme/api",
        f"  error    job_token_scope                           read: yes, write: no: {why}",
        f"  error    milestones                                read: yes, write: no: {why}",
    ]
    assert patient.requests() == [*ASKED, *of("acme/api", "job_token_scope", MILESTONES)]
    reading = patient.ask("--read-only")
    assert reading.code == 0
    assert reading.out.splitlines()[7:10] == [
        "project acme/api",
        "  ok       job_token_scope                           read: yes, write: not asked",
        "  ok       milestones                                read: yes, write: not asked",
    ]


def test_what_cannot_be_read_is_an_error_also_where_nothing_is_to_be_written(patient: Patient) -> None:
    patient.project("acme/api", "trigger_tokens: {nightly: {}}", archived=True)
    done = patient.examine("--read-only")
    why = "the project is archived; unarchive it, or leave the section out"
    assert (done.code, told(done.out)) == (
        3,
        ["project acme/api", f"  error    trigger_tokens                            read: no, write: not asked: {why}"],
    )


def test_a_project_that_has_moved_is_told_and_where_to(patient: Patient) -> None:
    """It is one error, however many sections are declared."""
    patient.project("old/api", "milestones: {one: {}}, trigger_tokens: {}")
    patient.state["projects"][0]["renamed_from"] = ["old/api"]
    done = patient.examine()
    assert "\nDoctor: 1 error, 0 warnings, 0 unknown.\n" in done.out
    where = (
        "declared by its former path old/api (manifests/all.yaml:3); write the new path there (`accept` does), or add "
        "--follow-moved"
    )
    assert (done.code, done.err) == (3, "project old/api has moved to acme/api (ID 100)\n")
    assert told(done.out) == ["project acme/api", f"  error    project                                   {where}"]
    following = patient.ask("--follow-moved")
    assert following.code == 0
    reading = patient.ask("--read-only")
    assert (reading.code, told(reading.out)) == (3, told(done.out))


def test_a_project_that_two_documents_declare_is_told_by_both_paths(patient: Patient) -> None:
    patient.project("old/api", "milestones: {one: {}}")
    patient.documents.append(patient.documents[0].replace("old/api", "acme/api"))
    patient.state["projects"][0]["renamed_from"] = ["old/api"]
    done = patient.examine()
    assert (done.code, told(done.out)) == (
        3,
        [
            "project acme/api",
            "  ok       milestones                                read: yes, write: yes",
            "project old/api",
            "  error    project                                   moved to acme/api (ID 100), which is declared too "
            "(manifests/all.yaml:6): correct this path first",
            "  error    milestones                                read: yes, write: no",
        ],
    )


def test_the_user_is_a_target_too_and_an_odd_record_explains_nothing(patient: Patient) -> None:
    patient.documents.append("apiVersion: reconciler/v1\nkind: User\nspec: {notification_settings: {level: watch}}\n")
    patient.begin()
    patient.cli_runner.sandbox.set_faults(["status=404,match=notification"])
    said = (
        "read: no, write: no: GET notification_settings: 404 Not Found; check whether the service supports this section"
    )
    assert told(patient.ask().out) == ["user", f"  error    notification_settings                     {said}"]


def test_only_what_is_asked_for_is_looked_at(patient: Patient) -> None:
    for path in ("acme/api", "acme/lib"):
        patient.project(path, "trigger_tokens: {nightly: {}}, job_token_scope: {enabled: true}")
    patient.examine("--target", "acme/lib", "--section", "trigger_tokens")
    assert patient.requests() == [*ASKED, *of("acme/lib", "triggers")]
    patient.cli_runner.sandbox.clear_log()
    patient.ask("--shard", "2/2", "--section", "trigger_tokens")
    assert patient.requests()[3:] in ([*of("acme/api", "triggers")], [*of("acme/lib", "triggers")], [])


def test_sets_are_looked_at_by_what_they_find(patient: Patient) -> None:
    patient.documents.append(
        "apiVersion: reconciler/v1\nkind: ProjectSet\nmetadata: {name: all}\nselect: {group: acme}\n"
        "spec: {job_token_scope: {enabled: true}}\n"
    )
    done = patient.examine()
    assert done.code == 0
    paths = ["acme/api", "acme/lib", "acme/tools/cli", "acme/web"]
    fine = "  ok       job_token_scope                           read: yes, write: yes"
    assert told(done.out) == [line for path in paths for line in (f"project {path}", fine)]
    listing, *reads = patient.requests()[3:]
    assert listing.startswith("groups/acme/projects?include_subgroups=true")
    assert reads == [request for path in paths for request in of(path, "job_token_scope")]
    assert "A plan: 5 requests" in done.out


def test_what_failed_before_can_be_looked_at_alone(patient: Patient) -> None:
    patient.project("acme/api", "milestones: {one: {}}, notification_settings: {level: watch}")
    patient.begin()
    patient.cli_runner.sandbox.set_faults(["status=403,method=POST"])
    assert patient.cli_runner("apply manifests --yes --report json=report.json").code == 3
    patient.cli_runner.sandbox.set_faults([])
    patient.cli_runner.sandbox.clear_log()
    patient.ask("--retry-failed", "report.json")
    assert patient.requests() == [*ASKED, *of("acme/api", MILESTONES), "projects/acme%2Fapi"]


def test_quiet_tells_only_what_is_not_well(patient: Patient) -> None:
    patient.token(expires_at=f"{TODAY + timedelta(1)}")
    patient.project("acme/api", "trigger_tokens: {nightly: {}}, notification_settings: {level: watch}", archived=True)
    done = patient.examine("--quiet")
    assert done.out.splitlines() == [
        "token",
        f"  warning  expiry                                    {TODAY + timedelta(1)}, in 1 day; renew it in time",
        "project acme/api",
        "  error    trigger_tokens                            read: no, write: no: the project is archived; unarchive it, or leave the section out",
        "Doctor: 1 error, 1 warning, 0 unknown.",
        f"A plan: 2 requests, less than a second. Applying it: 1 change by 2 requests more, less than a second. {FEW}",
    ]


@pytest.mark.untraced
def test_json_is_as_its_schema_says_and_the_same_each_time(patient: Patient) -> None:
    patient.state["groups"][0]["merge_request_approval_settings"] = {"allow_author_approval": False}
    patient.project(
        "acme/api", "approval_settings: {allow_author_approval: true}, trigger_tokens: {n: {}}", archived=True
    )
    done = patient.examine("--format", "json", "--report", "text=doctor.txt")
    found = json.loads(done.out)
    assert faults(found, schema_of("diagnosis", KINDS)) == []
    assert json.loads(patient.ask("--format", "json").out) | {"costs": 0} == found | {"costs": 0}
    assert (patient.cli_runner.folder / "doctor.txt").read_text().endswith("at once.\n")
    expiry = f"{TODAY + timedelta(365)}"
    assert found.pop("costs").keys() == {"plan", "apply", "changes", "latency", "concurrency"}
    assert found == {
        "format": "reconciler.diagnosis/v1",
        "counts": {"ok": 6, "warning": 0, "unknown": 0, "error": 2},
        "archived": 0,
        "service": {
            "url": "URL",
            "version": "18.9.0-ee",
            "edition": "enterprise",
            "findings": [ok("reachable", "yes"), ok("version", "18.9.0-ee, Enterprise Edition")],
        },
        "token": {
            "kind": "personal",
            "owner": "ada",
            "scopes": ["api"],
            "expires_at": expiry,
            "reads": "yes",
            "writes": "yes",
            "findings": [
                ok("token", 'personal access token "ci" of ada'),
                ok("scopes", "api: enough to read and to write"),
                ok("expiry", f"{expiry}, in 365 days"),
            ],
        },
        "manifests": [],
        "pipeline": [],
        "targets": [
            {
                "level": "project",
                "ref": "acme/api",
                "origin": "manifests/all.yaml:1",
                "findings": [],
                "sections": [
                    {
                        "section": "approval_settings",
                        "verdict": "ok",
                        "read": "yes",
                        "write": "yes",
                        "said": "",
                        "remedy": "",
                        "findings": [
                            {
                                "verdict": "error",
                                "about": "approval settings.allow_author_approval",
                                "said": "locked by group acme; unlock it there or leave the field out",
                                "remedy": "",
                            }
                        ],
                    },
                    {
                        "section": "trigger_tokens",
                        "verdict": "error",
                        "read": "no",
                        "write": "no",
                        "said": "the project is archived",
                        "remedy": "unarchive it, or leave the section out",
                        "findings": [],
                    },
                ],
            }
        ],
    }


def ok(about: str, said: str) -> dict[str, str]:
    """Return a finding that is ok."""
    return {"verdict": "ok", "about": about, "said": said, "remedy": ""}


@pytest.mark.untraced
def test_what_is_well_is_a_line_for_each_section(patient: Patient) -> None:
    patient.group("path: acme", "approval_settings: {allow_author_approval: true}")
    for name in ("api", "lib", "web"):
        patient.project(f"acme/{name}", "milestones: {one: {}}, approval_settings: {allow_author_approval: true}")
    patient.begin()
    assert patient.glance() == [
        "sections",
        "  ok       approval_settings                         read: yes, write: yes (4 targets)",
        "  ok       milestones                                read: yes, write: yes (3 targets)",
    ]
    assert patient.ask("--quiet", detail="").out.count("\n") == 2


def test_what_is_wrong_alike_in_many_targets_is_told_once_and_the_rest_by_target(patient: Patient) -> None:
    for name in ("acme/api", "acme/lib", "acme/web", "acme/tools/cli"):
        patient.project(name, "milestones: {one: {}}, job_token_scope: {enabled: true}", archived=True)
    patient.state["projects"][2]["archived"] = False
    patient.state["projects"][2]["milestones"] = [{"title": "one"}, {"title": "one"}]
    patient.state["projects"][3]["merge_requests_enabled"] = patient.state["projects"][3]["issues_enabled"] = False
    patient.begin()
    patient.cli_runner.sandbox.set_faults(["status=501,match=job_token_scope"])
    archived = "read: yes, write: no: the project is archived; unarchive it, or leave the section out"
    off = "switched off in the project: issues and merge requests"
    assert patient.glance() == [
        "sections",
        "  ok       milestones                                read: yes, write: yes (1 target)",
        "4 projects (acme/api, acme/lib and 2 more)",
        "  error    job_token_scope                           read: no, write: no: GET projects/<path>/job_token_scope: "
        "501 Not Implemented; try again; if it fails again, check the logs of the service",
        "project acme/api",
        f"  error    milestones                                {archived}",
        "project acme/lib",
        f"  error    milestones                                {archived}",
        "project acme/tools/cli",
        f"  error    milestones                                read: no, write: no: {off}; switch issues and merge "
        "requests on, or leave the section out",
        "project acme/web",
        '  error    milestone "one"                           2 objects have this name (IDs 1, 2); expected one; rename or delete the others',
    ]
