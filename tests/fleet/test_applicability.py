"""Sections that projects cannot have: left out and counted in sets, a problem elsewhere, and no request is made."""

import json

import pytest

from tests.cli_runner import CliRunner
from tests.items import by_target, findings_of
from tests.states import a_small_service

SET = """\
apiVersion: reconciler/v1
kind: ProjectSet
metadata: {name: all}
select: {group: acme, archived: true}
spec:
  container_repository_protection_rules: {"{path}/x*": {minimum_access_level_for_push: admin}}
  milestones: {v1: {}}
  trigger_tokens: {gone: null}
"""

HEAD = "apiVersion: reconciler/v1\nkind: Project\n"

OFF = {
    "issues_enabled": False,
    "merge_requests_enabled": False,
    "builds_enabled": False,
    "container_registry_enabled": False,
}

SECTIONS = ("container_repository_protection_rules", "milestones", "trigger_tokens")


def _unmanaged(section: str) -> str:
    return f"write `unmanaged: [{section}]` in its own document"


@pytest.fixture
def fleet(cli_runner: CliRunner, dialect: str) -> CliRunner:
    """A set of an archived project, one with everything off, one with half of it off, and a healthy one."""
    state = a_small_service(dialect)
    state["projects"][0] |= {"archived": True, "milestones": [{"title": "v1"}]}
    state["projects"][1] |= OFF
    state["projects"][2] |= {"issues_enabled": False}
    cli_runner.sandbox.replace_state(state)
    cli_runner.write("manifests/set.yaml", SET)
    return cli_runner


def archive(runner: CliRunner, *, is_archived: bool) -> None:
    """Archive a project, or the reverse."""
    state = runner.sandbox.state()
    state["projects"][0]["archived"] = is_archived
    runner.sandbox.replace_state(state)


def asked(runner: CliRunner, project: str) -> list[str]:
    """Return the requests about a project."""
    name = project.replace("/", "%2F")
    return [f"{each['method']} {each['target']}" for each in runner.sandbox.log() if f"/{name}" in each["target"]]


@pytest.mark.untraced
def test_a_set_leaves_out_what_its_projects_cannot_have_and_asks_for_none_of_it(fleet: CliRunner) -> None:
    fleet.sandbox.clear_log()
    planned = fleet("plan")
    assert planned.code == 0
    assert planned.out.splitlines()[-1].startswith("Plan: 4 to create, 2 tightening, 6 not applicable. ")
    assert "acme/api" not in planned.out
    assert [asked(fleet, project) for project in ("acme/api", "acme/lib")] == [[], []]
    off = "switched off in the project: "
    shown = [line.strip() for line in fleet("plan", "--verbose").out.splitlines() if "applicable  " in line]
    assert shown == [
        "? container_repository_protection_rules is not applicable  the project is archived",
        "? milestones is not applicable              the project is archived",
        "? trigger_tokens is not applicable          the project is archived",
        f"? container_repository_protection_rules is not applicable  {off}the container registry",
        f"? milestones is not applicable              {off}issues and merge requests",
        f"? trigger_tokens is not applicable          {off}CI/CD",
    ]


@pytest.mark.untraced
def test_all_formats_and_the_report_count_what_is_not_applicable(fleet: CliRunner) -> None:
    content = json.loads(fleet("plan --format json --out plan.json").out)
    assert content["summary"]["not_applicable"] == 6
    (archived,) = content["targets"][:1]
    left_out = by_target(content, findings_of(content, "not_applicable"))[archived["ref"]]
    assert [*archived["sections"]] == [*SECTIONS]
    assert [(each["section"], each["reason"]) for each in left_out] == [
        (name, "the project is archived") for name in SECTIONS
    ]
    assert " requests were made to plan. 6 not applicable.\n" in fleet("plan --format markdown").out
    assert " requests were made to plan. 6 not applicable.</p>" in fleet("plan --format html").out
    assert "milestones is not applicable: the project is archived\n" in fleet("plan --format junit").out
    line = 'reconciler_plan_not_applicable_sections{level="project",group="acme",section="milestones"} 2\n'
    assert line in fleet("plan --format prometheus").out
    applied = fleet("apply --plan plan.json --yes --report json=report.json")
    assert (applied.code, "\nApplied: 4 created, 2 tightening, 6 not applicable. " in applied.out) == (0, True)
    assert json.loads((fleet.folder / "report.json").read_text())["summary"]["not_applicable"] == 6
    assert (fleet("drift").code, fleet("drift").out) == (0, "")


def test_a_set_may_take_it_for_a_problem(fleet: CliRunner) -> None:
    fleet.write("manifests/set.yaml", SET.replace("archived: true", "archived: true, not_applicable: problem"))
    fleet.sandbox.clear_log()
    planned = fleet("plan")
    assert planned.code == 3
    shown = [line.strip() for line in planned.out.splitlines() if "  ! " in line]
    off, registry = "switched off in the project: ", "container_repository_protection_rules"
    assert shown == [
        f"! container_repository_protection_rules: the project is archived; unarchive it, or {_unmanaged(registry)}     manifests/set.yaml:6",
        f"! trigger_tokens: the project is archived; unarchive it, or {_unmanaged('trigger_tokens')}     "
        "manifests/set.yaml:8",
        f"! container_repository_protection_rules: {off}the container registry; switch the container registry on, or {_unmanaged(registry)}"
        "     manifests/set.yaml:6",
        f"! milestones: {off}issues and merge requests; switch issues and merge requests on, or "
        f"{_unmanaged('milestones')}     manifests/set.yaml:7",
        f"! trigger_tokens: {off}CI/CD; switch CI/CD on, or {_unmanaged('trigger_tokens')}     manifests/set.yaml:8",
    ]
    assert asked(fleet, "acme/api") == [
        "GET /api/v4/projects/acme%2Fapi/milestones?include_ancestors=true&per_page=100&page=1"
    ]
    assert asked(fleet, "acme/lib") == []


@pytest.mark.untraced
def test_who_asks_for_a_section_decides(fleet: CliRunner) -> None:
    def problems() -> tuple[int, int, list[str]]:
        planned = fleet("plan --format json")
        content = json.loads(planned.out)
        remedies = [f"{each['title']}: {each['fix']}" for each in findings_of(content, "problem")]
        return planned.code, content["summary"]["not_applicable"], remedies

    off = "apiVersion: reconciler/v1\nkind: Project\nmetadata: {id: 101%s}\n"
    fleet.write("manifests/lib.yaml", off % "")
    assert problems() == (0, 6, [])
    fleet.write("manifests/lib.yaml", off % "" + "spec: {milestones: {v1: {}}}\n")
    switch = "milestone: switch issues and merge requests on, or "
    assert problems() == (3, 5, [f"{switch}leave the section out"])
    profile = "---\napiVersion: reconciler/v1\nkind: Profile\nmetadata: {name: base}\nspec: {milestones: {v1: {}}}\n"
    fleet.write("manifests/lib.yaml", off % ", profiles: [base]" + profile)
    assert problems() == (3, 5, [switch + _unmanaged("milestones")])
    assert _unmanaged("milestones") in fleet("doctor").out
    fleet.write("manifests/lib.yaml", off % ", profiles: [base]" + "spec: {unmanaged: [milestones]}\n" + profile)
    assert problems() == (0, 5, [])
    fleet.project("{milestones: {v1: {description: New}}}")
    assert problems() == (3, 4, ["milestone: unarchive it, or leave the section out"])


def test_without_a_list_the_refusal_names_the_same_way_out(fleet: CliRunner) -> None:
    profile = "apiVersion: reconciler/v1\nkind: Profile\nmetadata: {name: base}\nspec: {trigger_tokens: {gone: null}}\n"
    fleet.write("manifests/set.yaml", profile)
    project = "apiVersion: reconciler/v1\nkind: Project\nmetadata: {path: acme/lib, profiles: [base]}\n"
    fleet.write("manifests/lib.yaml", project)
    assert f"switch CI/CD on, or {_unmanaged('trigger_tokens')}" in fleet("plan").out
    assert f"switch CI/CD on, or {_unmanaged('trigger_tokens')}" in fleet("doctor").out
    fleet.write("manifests/lib.yaml", project + "spec: {trigger_tokens: {}}\n")
    assert "switch CI/CD on, or leave the section out" in fleet("plan").out


def test_of_two_sets_that_declare_a_section_one_suffices_for_a_problem(fleet: CliRunner) -> None:
    strict = SET.replace("name: all", "name: strict, priority: 1").replace("archived: true", "not_applicable: problem")
    fleet.write("manifests/strict.yaml", strict.partition("spec:")[0] + "spec: {milestones: {v1: {}}}\n")
    planned = fleet("plan --target acme/lib --verbose").out
    assert [line.split(":")[0].split("  ")[1] for line in planned.splitlines()[1:-1]] == [
        "! milestones",
        "? container_repository_protection_rules is not applicable",
        "? trigger_tokens is not applicable",
    ]


@pytest.mark.untraced
def test_archived_projects_that_a_set_left_out_are_counted_where_the_list_shows_them(fleet: CliRunner) -> None:
    fleet.write("manifests/set.yaml", SET.replace("archived: true", "archived: false"))
    one = SET.replace("name: all", "name: one").replace("archived: true", "archived: true, include: [acme/web]")
    fleet.write("manifests/one.yaml", one)
    left_out = ", 3 not applicable, 1 archived project left out. "
    assert left_out in fleet("plan --out plan.json").out
    assert left_out in fleet("show plan.json").out
    assert left_out in fleet("drift").out
    for command in ("plan", "drift"):
        assert json.loads(fleet(f"{command} --format json").out)["archived"] == 1
    assert "\nDoctor: 0 errors, 0 warnings, 0 unknown, 1 archived project left out.\n" in fleet("doctor").out
    assert json.loads(fleet("doctor --format json").out)["archived"] == 1
    for number in (1, 2):
        assert fleet(f"plan --shard {number}/2 --out {number}.json").code == 0
    assert left_out in fleet("merge 1.json 2.json").out
    fleet.write("manifests/one.yaml", one.replace("archived: true, ", ""))
    assert "archived" not in fleet("plan").out


@pytest.mark.untraced
def test_the_doctor_says_nothing_of_what_is_left_out_and_names_what_is_a_problem(fleet: CliRunner) -> None:
    assert "acme/lib" not in fleet("doctor").out
    fleet.write("manifests/set.yaml", SET.replace("archived: true", "not_applicable: problem"))
    assert "read: no, write: no: switched off in the project: CI/CD; " in fleet("doctor").out


def test_an_archived_project_that_no_list_shows_is_a_problem_of_the_plan(fleet: CliRunner) -> None:
    fleet.write("manifests/set.yaml", "")
    fleet.project("{milestones: {v1: null, v2: {}}, approval_settings: {allow_author_approval: true}}")
    fleet.sandbox.clear_log()
    planned = fleet("plan --out plan.json")
    assert planned.code == 3
    assert [line for line in planned.out.splitlines() if "milestone" in line] == [
        "  ! milestones: the project is archived; unarchive it, or leave the section out     manifests/project.yaml:4",
    ]
    record = "GET /api/v4/projects/acme%2Fapi"
    settings = "/api/v4/projects/acme%2Fapi/merge_request_approval_setting"
    lists = f"{record}/milestones?include_ancestors=true&per_page=100&page=1"
    assert sorted(asked(fleet, "acme/api")) == [record, f"GET {settings}", lists]
    fleet.sandbox.clear_log()
    assert fleet("apply --yes --plan plan.json").code == 3
    assert asked(fleet, "acme/api") == [f"GET {settings}", f"PUT {settings}", f"GET {settings}"]


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("spec", "requests"),
    [
        ("{milestones: {v1: {state: active}}}", 0),  # nothing is to be changed
        ("{approval_settings: {allow_author_approval: true}}", 0),  # nor would the change be refused
        ("{milestones: {v2: {}}, protected_branches: {main: {}}}", 1),
        ("{milestones: {v2: {}}, trigger_tokens: {ci: {}}}", 1),  # one request explains what could not be read, too
        ("{milestones: {v2: {}}, error_tracking_client_keys: {count: 1}}", 1),  # the record has the number of the path
    ],
)
def test_a_project_is_asked_for_itself_once_where_an_archived_one_refuses_changes(
    fleet: CliRunner, spec: str, requests: int
) -> None:
    fleet.write("manifests/set.yaml", "")
    fleet.project(spec)
    fleet.sandbox.clear_log()
    planned = fleet("plan")
    assert asked(fleet, "acme/api").count("GET /api/v4/projects/acme%2Fapi") == requests
    assert ("the project is archived" in planned.out, planned.code) == (requests > 0, 3 if requests else 0)


def test_nothing_is_asked_of_a_project_that_is_known_not_to_be_archived(fleet: CliRunner) -> None:
    """A list shows one of them, another shows a section that no archived project does, and one is to be created."""
    some = SET.replace("archived: true", "include: [acme/web]").partition("spec:")[0]
    fleet.write("manifests/set.yaml", f"{some}spec: {{notification_settings: {{level: watch}}}}\n")
    fleet.project("{milestones: {v2: {}}}", "acme/web", "manifests/web.yaml")
    fleet.project("{milestones: {v2: {}}, trigger_tokens: {ci: {}}}", "acme/tools/cli", "manifests/cli.yaml")
    fleet.write(
        "manifests/next.yaml",
        f"{HEAD}metadata: {{path: acme/next}}\ncreate: {{}}\nspec: {{milestones: {{v2: {{}}}}}}\n",
    )
    fleet.sandbox.clear_log()
    assert fleet("plan --exclude acme/api").code == 0
    records = [f"GET /api/v4/projects/{path}" for path in ("acme%2Fweb", "acme%2Ftools%2Fcli", "acme%2Fnext")]
    log = [f"{each['method']} {each['target']}" for each in fleet.sandbox.log()]
    assert [log.count(record) for record in records] == [0, 0, 1]


@pytest.mark.untraced
def test_a_project_that_is_archived_after_its_plan_is_found_out_by_the_first_refusal(fleet: CliRunner) -> None:
    fleet.write("manifests/set.yaml", "")
    fleet.project("{milestones: {v1: null, v2: {}, v3: {}}, approval_settings: {allow_author_approval: true}}")
    archive(fleet, is_archived=False)
    assert fleet("plan --out plan.json").code == 0
    archive(fleet, is_archived=True)
    fleet.sandbox.clear_log()
    applied = fleet("apply --yes --plan plan.json")
    assert applied.code == 3
    assert [line for line in applied.out.splitlines() if "milestone" in line] == [
        '  + milestone "v2"                            failed: the project is archived; unarchive it, or leave the section '
        "out (POST projects/acme%2Fapi/milestones: 403 Forbidden)",
        '  + milestone "v3"                            skipped: the project is archived',
        '  - milestone "v1"                            skipped: the project is archived',
    ]
    assert asked(fleet, "acme/api").count("GET /api/v4/projects/acme%2Fapi") == 1


@pytest.mark.parametrize("status", [501, 401])
def test_a_refusal_whose_cause_cannot_be_asked_for_stays_as_it_is(fleet: CliRunner, status: int) -> None:
    fleet.write("manifests/set.yaml", "")
    fleet.project("{milestones: {v2: {}, v3: {}}}")
    fleet.sandbox.set_faults(
        ["status=501,method=GET,match=acme%2Fapi,nth=2", f"status={status},method=GET,match=acme%2Fapi,nth=3"]
    )
    applied = fleet("apply --yes --no-verify")
    refused = "failed: POST projects/acme%2Fapi/milestones: 403 Forbidden; this needs the role Planner\n"
    assert (applied.code, applied.out.count(refused)) == (3, {501: 2, 401: 1}[status])
    assert ("skipped: the service refuses the token" in applied.out) == (status == 401)


@pytest.mark.parametrize("archived", ["", ", archived: true"])
def test_a_set_of_listed_projects_leaves_out_the_same(fleet: CliRunner, archived: str) -> None:
    """No list shows that they are archived or what is off: the service's refusals and one record each tell."""
    listed = SET.replace(
        "{group: acme, archived: true}", f"{{projects: [acme/api, acme/lib, acme/tools/cli]{archived}}}"
    )
    fleet.write("manifests/set.yaml", listed.replace("{v1: {}}", "{v2: {}}"))
    planned = fleet("plan --verbose")
    assert planned.out.splitlines()[-1].startswith("Plan: 2 to create, 1 tightening, 6 not applicable. "), planned.out
    off = "switched off in the project: "
    assert [line.strip() for line in planned.out.splitlines() if "applicable  " in line] == [
        "? container_repository_protection_rules is not applicable  the project is archived",
        "? milestones is not applicable              the project is archived",
        "? trigger_tokens is not applicable          the project is archived",
        f"? container_repository_protection_rules is not applicable  {off}the container registry",
        f"? milestones is not applicable              {off}issues and merge requests",
        f"? trigger_tokens is not applicable          {off}CI/CD",
    ]
    applied = fleet("apply --yes")
    assert (applied.code, "\nApplied: 2 created, 1 tightening, 6 not applicable. " in applied.out) == (0, True)
    assert fleet("drift").code == 0

    # what the project's own document declares is still a problem
    fleet.write("manifests/api.yaml", f"{HEAD}metadata: {{path: acme/api}}\nspec: {{milestones: {{v2: {{}}}}}}\n")
    strict = fleet("plan")
    assert (strict.code, "\nPlan: 1 problem, 1 unmanaged, 5 not applicable. " in strict.out) == (3, True)
    fleet.write("manifests/api.yaml", "")
    fleet.write("manifests/set.yaml", listed.replace("select: {", "select: {not_applicable: problem, "))
    done = fleet("plan")
    assert (done.code, "not applicable" in done.out, done.out.count("  ! ")) == (3, False, 5)
