"""A security team protects 80 projects with three default branches by one baseline; every number of every output.

The test counts by itself, from the state of the service and the two sentences of the baseline, and shares no code with
what it tests.
"""

import csv
import json
import re
from collections import Counter
from collections.abc import Iterable
from html import unescape
from typing import Any, NamedTuple

import pytest

from reconciler.model.protocols import Request
from reconciler.service import Client
from tests.cli_runner import CliRunner, Ended
from tests.fleet.repository import Repository

pytestmark = pytest.mark.untraced

TEAMS = {"apps": 24, "data": 20, "pay": 16, "labs": 12, "old": 8}
DEVELOPER, MAINTAINER, ADMIN, NOBODY = 30, 40, 60, 0

BASELINE = """\
apiVersion: reconciler/v1
kind: ProjectSet
metadata:
  name: baseline
  at_least: {approval_rules: [any_approver], protected_branches: ["{default_branch}"], approval_settings: all}
select: {group: acme}
spec:
  approval_rules: {any_approver: {approvals_required: 1}}
  protected_branches: {"{default_branch}": {allowed_to_push: [], allowed_to_merge: [maintainer], allow_force_push: false}}
  approval_settings: {allow_author_approval: false}
"""
STRICTER = """\
---
apiVersion: reconciler/v1
kind: ProjectSet
metadata: {name: pay, priority: 10, labels: {team: pay}}
select: {group: acme/pay}
spec:
  approval_rules: {any_approver: {approvals_required: 2}}
  protected_branches: {"{default_branch}": {allowed_to_merge: [admin]}}
  trigger_tokens: {}
"""
TEAM = """\
---
apiVersion: reconciler/v1
kind: ProjectSet
metadata: {{name: {team}, priority: 10, labels: {{team: {team}}}}}
select: {{group: acme/{team}}}
spec: {{}}
"""
REPORTS = ("html", "markdown", "fleet", "audit", "json", "prometheus", "junit", "terraform-report")
ALL_REPORTS = " ".join(f"--report {name}=reports/{name}" for name in REPORTS)

Plain = dict[str, Any]


def fleet() -> Plain:
    """Return the state of 80 projects in five teams; each seventh differs from each fifth in another way."""
    places = [f"acme/{team}/{team}-{number + 1:02}" for team, size in TEAMS.items() for number in range(size)]
    return {
        "instance": {"dialect": "deployed", "licensed": True, "enforce_job_token_allowlist": False},
        "users": [
            {"id": 2, "username": "ada", "tokens": ["ada-token"]},
            {"id": 3, "username": "mona", "tokens": ["mona-token"]},
            {"id": 4, "username": "bob"},
        ],
        "groups": [
            {
                "id": 10,
                "path": "acme",
                "members": [{"user": name, "role": "owner"} for name in ("ada", "mona", "bob")],
            },
            *({"id": number, "path": f"acme/{team}"} for number, team in enumerate(TEAMS, start=11)),
        ],
        "projects": [_project(number, path) for number, path in enumerate(places)],
    }


def _project(number: int, path: str) -> Plain:
    branch = ("main", "main", "main", "master", "master", "trunk")[number % 6]
    own = (_rule(branch), _rule(branch, NOBODY), _rule(branch, DEVELOPER, DEVELOPER, force=number % 8 == 2), None)
    rules = [own[number % 4], _rule("release/*") if number % 10 == 7 else None]
    rules += [_rule(f"{branch[:2]}*", DEVELOPER)] if number % 16 == 9 else []
    anybody = {"name": "All Members", "rule_type": "any_approver", "approvals_required": number % 3}
    return {
        "id": 100 + number,
        "path": path,
        "default_branch": branch,
        "archived": path in ("acme/old/old-01", "acme/old/old-02"),
        "protected_branches": [rule for rule in rules if rule],
        "approval_rules": [anybody] if number % 3 else [],
        "merge_request_approval_settings": {"allow_author_approval": number % 5 == 0},
        "trigger_tokens": [{"description": "nightly", "owner": "bob"}] if number % 9 == 0 else [],
    }


def _rule(name: str, push: int = MAINTAINER, merge: int = MAINTAINER, *, force: bool = False) -> Plain:
    levels = {"push_access_levels": [{"access_level": push}], "merge_access_levels": [{"access_level": merge}]}
    return {"name": name, **levels, "allow_force_push": force}


class Expected(NamedTuple):
    """A change, as the test counts it."""

    path: str
    section: str
    action: str
    effect: str | None

    @property
    def team(self) -> str:
        """The team of its project."""
        return self.path.split("/")[1]


def expected_changes(projects: Iterable[Plain]) -> list[Expected]:
    """Return what is looser than the baseline, by the numbers of the state alone."""
    changes = []
    for project in projects:
        path, branch, is_pay = project["path"], project["default_branch"], "/pay/" in project["path"]
        required = max((rule["approvals_required"] for rule in project["approval_rules"]), default=None)
        if (required or 0) < (2 if is_pay else 1):
            action = "create" if required is None else "update"
            changes.append(Expected(path, "approval_rules", action, "tightens"))
        if project["merge_request_approval_settings"]["allow_author_approval"]:
            changes.append(Expected(path, "approval_settings", "update", "tightens"))
        rules = {rule["name"]: rule for rule in project["protected_branches"]}
        # Whoever may push by the wildcard may merge too: no other rule has an effect.
        effect = None if f"{branch[:2]}*" in rules else "tightens"
        own = rules.get(branch)
        if own is None:
            changes.append(Expected(path, "protected_branches", "create", effect))
        elif (
            own["push_access_levels"] != [{"access_level": NOBODY}]
            or own["merge_access_levels"][0]["access_level"] < (ADMIN if is_pay else MAINTAINER)
            or own["allow_force_push"]
        ):
            changes.append(Expected(path, "protected_branches", "update", effect))
    return changes


class Numbers(NamedTuple):
    """The numbers that all outputs of a plan must have."""

    changes: list[Expected]
    excepted: list[Expected]
    unmanaged: Counter[str]

    def of(self, **fields: str) -> int:
        """Return how many changes have these fields."""
        return sum(all(getattr(each, name) == value for name, value in fields.items()) for each in self.changes)

    @property
    def paths(self) -> set[str]:
        """The projects with changes."""
        return {each.path for each in self.changes}


def report(cli_runner: CliRunner, name: str) -> str:
    return (cli_runner.folder / "reports" / name).read_text()


def flat(page: str) -> str:
    """Return the text of a page: without its tags, scripts and styles."""
    text = re.sub(r"<(script|style).*?</\1>", "", page, flags=re.DOTALL)
    text = text.replace('<span class="break"></span>', "")
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", text)))


def check_reports(cli_runner: CliRunner, projects: list[Plain], numbers: Numbers, *, by_hand: bool = False) -> None:
    """Compare each number of the reports of a plan with the numbers that were counted.

    Args:
        cli_runner: has them in its folder.
        projects: those that are not archived.
        numbers: as counted.
        by_hand: whether all changes undo what somebody loosened by hand: they have a tile of their own.
    """
    create, update = numbers.of(action="create"), numbers.of(action="update")
    # the document, and what counts for merge requests and dashboards
    document = json.loads(report(cli_runner, "json"))
    assert document["summary"] == {
        "create": create,
        "update": update,
        "delete": 0,
        "loosens": 0,
        "tightens": numbers.of(effect="tightens"),
        "problems": 0,
        "unmanaged": numbers.unmanaged.total(),
        "not_applicable": 0,
        "excepted": len(numbers.excepted),
        "not_of_change": None,
    }
    found = [
        Expected(item["target"].removeprefix("project "), item["section"], item["action"], item.get("effect"))
        for item in document["items"]
        if item.get("action") in ("create", "update", "delete")
    ]
    assert sorted(map(str, found)) == sorted(map(str, numbers.changes))
    assert json.loads(report(cli_runner, "terraform-report")) == {"create": create, "update": update, "delete": 0}
    suite = f'<testsuite name="reconciler plan" tests="{len(projects)}" failures="{len(numbers.paths)}" errors="0" '
    assert suite in report(cli_runner, "junit")
    assert report(cli_runner, "junit").count("<failure ") == len(numbers.paths)
    metrics = re.findall(
        r'plan_changes\{level="project",group="acme",section="(\w+)",action="(\w+)"\} (\d+)',
        report(cli_runner, "prometheus"),
    )
    for section, action, number in metrics:
        assert int(number) == numbers.of(section=section, action=action), (section, action)
    assert sum(int(number) for *_, number in metrics) == len(numbers.changes)
    effects = re.findall(
        r'plan_protection_changes\{level="project",group="acme",section="\w+",effect="(\w+)"\} (\d+)',
        report(cli_runner, "prometheus"),
    )
    found_effects = Counter[str]()
    for effect, number in effects:
        found_effects[effect] += int(number)
    assert +found_effects == {"loosened" if by_hand else "tightens": numbers.of(effect="tightens")}
    # the table of the note
    sections = sorted({each.section for each in numbers.changes})
    for section in sections:
        cells = (
            numbers.of(section=section, action="create"),
            numbers.of(section=section, action="update"),
            0,
            0,
        )
        row = f"| `{section}` | {' | '.join(map(str, cells))} |\n"
        assert row in report(cli_runner, "markdown")
    # the tiles of the decision page
    tiles = dict(re.findall(r'data-kind="(\w+)"><span class="number">([\d,]+)<', report(cli_runner, "html")))
    wanted = {"unmanaged": numbers.unmanaged.total(), "excepted": len(numbers.excepted)}
    wanted = {kind: number for kind, number in wanted.items() if number}
    wanted |= {"loosens": update, "update": 0} if by_hand else {"update": update}
    wanted |= {"delete": 0, "create": create}
    assert {kind: int(number) for kind, number in tiles.items()} == wanted
    # the fleet page: by team, and what each section lacks
    fleet_page = flat(report(cli_runner, "fleet"))
    in_order = len(projects) - len(numbers.paths)
    share = 1000 * in_order // len(projects) / 10
    assert f"{share:g} % of {len(projects)} projects in order" in fleet_page.replace("\u00a0", " ")
    for team in TEAMS:
        own = [project for project in projects if f"/{team}/" in project["path"]]
        differing = {path for path in numbers.paths if f"/{team}/" in path}
        percent = 1000 * (len(own) - len(differing)) // len(own) / 10
        row = f" {team} {percent:g} % {len(own) - len(differing)} of {len(own)} {numbers.of(team=team)} 0 "
        assert row in fleet_page.replace("\u00a0", " "), row
    # the tables of an audit
    rows = {name: table(cli_runner, name) for name in ("access", "exceptions")}
    assert len(rows["access"]) == numbers.unmanaged["trigger_tokens"]
    assert {row["owner"] for row in rows["access"]} == {"bob"}
    excepted = [(row["target"].removeprefix("project "), row["section"]) for row in rows["exceptions"]]
    assert sorted(excepted) == sorted((each.path, each.section) for each in numbers.excepted)


def table(cli_runner: CliRunner, name: str) -> list[dict[str, str]]:
    """Return a table of an audit."""
    return [*csv.DictReader(report(cli_runner, f"audit/{name}.csv").splitlines())]


def last_line(done: Ended) -> str:
    return done.out.splitlines()[-1]


def test_one_baseline_for_eighty_projects_with_three_default_branches(cli_runner: CliRunner, git: Repository) -> None:
    state = fleet()
    cli_runner.sandbox.replace_state(state)
    projects = [project for project in state["projects"] if not project["archived"]]
    teams = "".join(TEAM.format(team=team) for team in TEAMS if team != "pay")
    cli_runner.write("manifests/baseline.yaml", BASELINE + STRICTER + teams)
    git.commit("The baseline")
    assert cli_runner("validate").out == "Valid: 6 documents: 6 sets.\n"

    unmanaged = Counter(
        protected_branches=sum(len(names(project) - {project["default_branch"]}) for project in projects),
        trigger_tokens=sum(len(project["trigger_tokens"]) for project in projects if "/pay/" in project["path"]),
    )
    changes = expected_changes(projects)
    labs = [each for each in changes if each.team == "labs"]
    numbers = Numbers([each for each in changes if each.team != "labs"], labs, unmanaged)
    create, update = numbers.of(action="create"), numbers.of(action="update")
    tightens = numbers.of(effect="tightens")

    # one team is looser for a while
    accepted = cli_runner("accept --until 2999-12-31 --target acme/labs/**", "--reason", "Prototypes, OPS-9")
    assert accepted.code == 0, accepted.err
    assert accepted.out.splitlines() == [f"manifests/{path}.yaml" for path in sorted({each.path for each in labs})]
    git.commit("Except labs")

    # what is looser than the baseline is planned, and what is stricter stays
    planned = cli_runner(f"plan --out plan.json {ALL_REPORTS}")
    assert (planned.code, planned.err) == (0, "")
    requests = f"{requests_of_a_plan(projects)} requests were made to plan."
    assert last_line(planned) == (
        f"Plan: {create} to create, {update} to update, {tightens} tightening, {unmanaged.total()} unmanaged, "
        f"{len(labs)} excepted. {create + update} writes to apply; {requests}"
    )
    check_reports(cli_runner, projects, numbers)
    headline = f"Tightens {len({each.path for each in numbers.changes if each.effect})} projects"
    assert report(cli_runner, "markdown").startswith(f"## {headline}. Plan: {create} to create, {update} to update, ")
    card = json.loads(report(cli_runner, "html").partition('id="data">')[2].partition("</script>")[0])["cards"][0]
    assert card["fields"] == [
        ["approvals_required", None, "1"],
        ["note", None, "branches: any, by default"],
        ["minimum", None, "at least 1"],
        ["effect", None, "tightens"],
    ]
    assert f"<h1>{headline}; creates {create} objects and updates {update} objects, deletes nothing</h1>" in (
        report(cli_runner, "html")
    )
    document = json.loads(report(cli_runner, "json"))
    declared = ("create", "update", "keep", "excepted")
    rules = {
        (item["target"], item["name"])
        for item in document["items"]
        if item["section"] == "protected_branches" and (item.get("action") or item["finding"]) in declared
    }
    assert Counter(name for _, name in rules) == Counter(project["default_branch"] for project in projects)
    undermined = [item["target"] for item in document["items"] if item.get("finding") == "undermined"]
    assert undermined == [
        f"project {project['path']}" for project in projects if f"{project['default_branch'][:2]}*" in names(project)
    ]
    exceptions = table(cli_runner, "exceptions")
    assert {(row["until"], row["reason"], row["committed by"]) for row in exceptions} == {
        ("2999-12-31", "Prototypes, OPS-9", "Ada")
    }

    # the apply did what the plan said, in numbers too
    applied = cli_runner(
        "apply --plan plan.json --yes --report json=reports/applied.json --report html=reports/applied.html"
    )
    assert applied.code == 0, applied.err
    assert last_line(applied).startswith(
        f"Applied: {create} created, {update} updated, {tightens} tightening, {len(labs)} excepted. "
    )
    summary = json.loads(report(cli_runner, "applied.json"))["summary"]
    assert {name: number for name, number in summary.items() if number} == {
        "created": create,
        "updated": update,
        "tightens": tightens,
        "unmanaged": unmanaged.total(),
        "excepted": len(labs),
    }
    tiles = dict(re.findall(r'data-kind="(\w+)"><span class="number">(\d+)<', report(cli_runner, "applied.html")))
    assert {kind: int(number) for kind, number in tiles.items()} == {
        "deleted": 0,
        "created": create,
        "updated": update,
        "unmanaged": unmanaged.total(),
        "excepted": len(labs),
    }
    log = cli_runner("log").out.splitlines()
    assert (len(log), f"  {create} created, {update} updated  " in log[1]) == (3, True)

    # mona lets herself force pushes, in one project of each default branch
    weak = [
        next(p for p in projects if p["default_branch"] == name and "/apps/" in p["path"]) for name in ("main", "trunk")
    ]
    with Client(cli_runner.sandbox.api_url, "mona-token") as client:
        for project in weak:
            path = f"projects/{project['id']}/protected_branches/{project['default_branch']}"
            client.send(Request("PATCH", path, {"allow_force_push": True}))
    drift = cli_runner(f"drift --who {ALL_REPORTS}")
    assert (drift.code, drift.err) == (2, "")
    by_hand = [Expected(project["path"], "protected_branches", "update", "tightens") for project in weak]
    check_reports(cli_runner, projects, Numbers(by_hand, labs, unmanaged), by_hand=True)
    assert "Apply tightens again what was loosened on the service; accept keeps it." in report(cli_runner, "html")
    assert "</span> Loosened on the service</span>" in report(cli_runner, "html")
    first, _, rest = drift.out.partition("All else:\n")
    label = 'protected branch "{}"'
    assert re.sub(r"by Mona, [-\d]+ [:\d]+ UTC +\S+", "by Mona", first) == "Loosened on the service:\n" + "".join(
        f"project {project['path']}\n  ~ {label.format(project['default_branch']):<42}"
        "allow_force_push: true -> false, at least false, loosened on the service by Mona\n"
        for project in weak
    )
    assert "2 projects differ (2 changed on the service)\n" in rest
    assert last_line(drift) == (
        f"Plan: 2 to update, 2 loosened on the service, {unmanaged.total()} unmanaged, {len(labs)} excepted. "
        f"2 writes to apply; {requests_of_a_plan(projects) + len(weak)} requests were made to plan."
    )
    assert report(cli_runner, "markdown").startswith(
        "## 2 projects loosened on the service. Plan: 2 to update, 2 loosened on the service\n"
    )


def names(project: Plain) -> set[str]:
    """Return the names of a project's rules of branches."""
    return {rule["name"] for rule in project["protected_branches"]}


def requests_of_a_plan(projects: list[Plain]) -> int:
    """Return the requests: the lists of the six groups, three sections of each project, and tokens in one team."""
    return 6 + 3 * len(projects) + TEAMS["pay"]
