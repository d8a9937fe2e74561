"""Targets that are created, in every format, and what is known before they are there."""

import json
from dataclasses import replace
from typing import Any

from reconciler.document.compare import compare, fingerprints_of, new_in
from reconciler.document.document import RunDocument
from reconciler.document.links import Links, Places
from reconciler.document.style import Style
from reconciler.model.item import Create, Status, target_of
from reconciler.model.targets import Target
from reconciler.reports import render_comparison, render_plan, render_report
from reconciler.reports.coverage import State, matrix
from tests.building import sections_of, with_sections
from tests.render.creations import API, DIGEST, TEAM, TOOLS, WEB, became, creations
from tests.render.samples import LIB, about, tree

TEXT = f"""\
group acme/new-team
  + group acme/new-team (name: New Team, visibility: private)     manifests/team.yaml:1
group acme/new-team/tools
  + group acme/new-team/tools (name: Tools, from_archive: templates/team.tar.gz, sha256: {DIGEST})     \
manifests/team.yaml:5
project acme/new-team/api
  + project acme/new-team/api (name: api, import.github.repo_id: 5, import.github.token_env: GITHUB_TOKEN)     \
manifests/team.yaml:9
  + allowlisted project "acme/new-team/web"
  + milestone "2027.1"                        due_date: 2027-01-29
  ~ approval settings                         allow_author_approval: false
project acme/new-team/web
  + project acme/new-team/web (name: web, visibility: private)     manifests/team.yaml:13
  + milestone "2027.1"                        due_date: 2027-01-29
Plan: 7 to create, 1 to update. 8 writes to apply; 8 requests were made to plan.
"""

REFUSED = "group acme/new-team could not be created"

FAILED = f"""\
2 projects                                                           (acme/new-team/api, acme/new-team/web)
  + project <path>                            skipped: {REFUSED}
  + milestone "2027.1"                        skipped: {REFUSED}
group acme/new-team
  + group acme/new-team                       failed: POST groups: 403 Forbidden
group acme/new-team/tools
  + group acme/new-team/tools                 skipped: {REFUSED}
project acme/new-team/api
  + allowlisted project "acme/new-team/web"   skipped: {REFUSED}
  ~ approval settings                         skipped: {REFUSED}
Applied: 1 failed, 7 skipped. \
15 requests made.
"""

LOWERED = "visibility: asked for internal, the service made it private"


def alike() -> RunDocument:
    """Return the plan with two projects that are created in the same way."""
    saved = creations()
    web = tree(saved).targets[3]
    lib = Target(WEB.level, "acme/new-team/lib")
    (create, *_) = web.changes
    assert isinstance(create, Create)
    made = replace(create, address=lib.address, after={**create.after, "name": "lib"})
    section = replace(sections_of(web)[0], changes=(made,))
    return about(saved, (web, with_sections(replace(web, target=lib), [section])))


def test_text_shows_targets_like_other_objects_and_only_what_unknown_settings_will_be() -> None:
    saved = creations()
    assert render_plan(saved) == TEXT
    verbose = render_plan(saved, style=Style(verbose=True)).splitlines()
    assert [line.strip() for line in verbose if line.startswith("      ")][:4] == [
        "POST groups",
        "POST groups/import",
        "POST import/github",
        "POST projects/acme%2Fnew-team%2Fapi/job_token_scope/allowlist",
    ]
    assert f"sha256: {DIGEST})" in "".join(verbose)
    assert render_plan(alike(), style=Style(group_by="change")).splitlines()[:2] == [
        "2 projects                                                           (acme/new-team/web, acme/new-team/lib)",
        "  + project <path> (name: <name>, visibility: private)     manifests/team.yaml:13",
    ]


def test_a_report_says_whose_failure_it_was() -> None:
    skipped = (Status.SKIPPED, REFUSED)
    failed = became(
        **{"new-team": (Status.FAILED, "POST groups: 403 Forbidden")}, tools=skipped, api=skipped, web=skipped
    )
    assert render_report(failed, style=Style(group_by="change")) == FAILED
    (refused, skipped_all) = cards(render_report(failed, "html"))
    assert refused["title"] == "Create group acme/new-team: POST groups: 403 Forbidden"
    assert skipped_all["title"] == f"Skipped: {REFUSED}"
    assert len(skipped_all["rows"]) == 7
    lowered = became(web=(Status.DROPPED, LOWERED))
    assert f"  + project acme/new-team/web                 dropped by the service: {LOWERED}\n" in render_report(
        lowered
    )
    assert "`project acme/new-team/web`: dropped by the service: `visibility: asked" in render_report(
        lowered, "markdown"
    )


def cards(page: str) -> list[dict[str, Any]]:
    """Return the cards of a page."""
    text = page.partition('id="data">')[2].partition("</script>")[0]
    found: list[dict[str, Any]] = json.loads(text)["cards"]
    return found


def test_markdown_and_pages_show_what_a_setting_will_be_and_not_what_it_was() -> None:
    note = render_plan(creations(), "markdown")
    assert "+     import.github.token_env: GITHUB_TOKEN\n" in note
    assert "\n~ approval settings\n+     allow_author_approval: false\n" in note
    assert "| whole target | 4 | 0 | 0 | 0 |" in note
    found = {each["title"]: each.get("fields") for each in cards(render_plan(creations(), "html"))}
    assert found == {
        'Create milestone "2027.1"': [["due_date", None, "2027-01-29"]],
        "Create group acme/new-team": [["name", None, "New Team"], ["visibility", None, "private"]],
        "Create group acme/new-team/tools": [
            ["name", None, "Tools"],
            ["from_archive", None, "templates/team.tar.gz"],
            ["sha256", None, DIGEST],
        ],
        "Create project acme/new-team/api": [
            ["name", None, "api"],
            ["import.github.repo_id", None, "5"],
            ["import.github.token_env", None, "GITHUB_TOKEN"],
        ],
        'Create allowlisted project "acme/new-team/web"': None,
        "Create project acme/new-team/web": [["name", None, "web"], ["visibility", None, "private"]],
        "Update approval settings": [["allow_author_approval", None, "false"]],
    }


def test_tests_and_widgets_count_targets_as_objects() -> None:
    assert "4 objects to change" in render_plan(creations(), "junit")
    assert "create project acme/new-team/api, name: api, import.github.repo_id: 5" in render_plan(creations(), "junit")
    assert json.loads(render_plan(creations(), "terraform-report")) == {"create": 7, "update": 1, "delete": 0}
    series = 'reconciler_plan_changes{level="group",group="acme",section="",action="create"} 2\n'
    assert series in render_plan(creations(), "prometheus")


def test_only_what_exists_has_a_page() -> None:
    places = Places(web_url="https://git.example.com", pages={"milestones": {API.level: "{target}/-/milestones"}})
    before = Links(creations(), places)
    assert [before.target(each) for each in (TEAM, TOOLS, API, WEB)] == [None] * 4
    assert before.settings(API, "milestones") is None
    assert before.target(LIB) == "https://git.example.com/acme/payments/lib"
    done = Links(became(api=(Status.SKIPPED, REFUSED)), places)
    assert done.target(API) is None
    assert done.settings(WEB, "milestones") == "https://git.example.com/acme/new-team/web/-/milestones"


def test_each_section_of_a_target_that_is_to_be_created_changes() -> None:
    sections = ("approval_settings", "job_token_scope", "milestones")
    planned = matrix(creations())
    assert planned.sections == sections
    change, none = State.CHANGES, State.NOT_DECLARED
    assert {row.target: row.states for row in planned.rows} == {
        TEAM: (none, none, none),
        TOOLS: (none, none, none),
        API: (change, change, change),
        WEB: (none, none, change),
    }
    known = new_in(creations(), fingerprints_of(creations()))
    assert [row.states for row in matrix(known).rows] == [row.states for row in planned.rows]
    done = {row.target: row.states[2] for row in matrix(became(api=(Status.STALE, "somebody was faster"))).rows}
    assert (done[API], done[WEB]) == (State.CHANGES, State.IN_ORDER)
    refused = {row.target: row.states for row in matrix(became(api=(Status.FAILED, "403"))).rows}
    assert refused[API] == (State.PROBLEM,) * 3


def test_two_plans_differ_in_what_is_created() -> None:
    old = creations()
    new = replace(old, items=tuple(item for item in old.items if target_of(item) != WEB))
    text = render_comparison(compare(old, new))
    assert text.splitlines()[:3] == [
        "project acme/new-team/web",
        "  gone      + project acme/new-team/web  name: web, visibility: private",
        '  gone      + milestone "2027.1"  due_date: 2027-01-29',
    ]
    assert "  new       ~ approval settings  allow_author_approval: false\n" in render_comparison(
        compare(replace(old, targets=(), items=()), old)
    )
