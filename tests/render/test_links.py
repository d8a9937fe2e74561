"""Links of reports: where they lead, and that there is none where nobody says where."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from reconciler.document.document import RunDocument
from reconciler.document.links import NOWHERE, Links, Places
from reconciler.document.plans import make_report
from reconciler.document.stored import load_plan, load_report, save
from reconciler.document.style import Style, links_of
from reconciler.engine.compare.planner import make_plan
from reconciler.model.item import Delete, Finding, Outcome, Status, Update, page_of
from reconciler.model.targets import Level, Target
from reconciler.reports import render_plan, render_report
from tests.building import KINDS, desired, live, noted, section, target_plan
from tests.render.samples import API, EMPTY, LIB, NOON, Traffic, about, done, milestone, sample, saved_plan, tree

GROUP = Target(Level.GROUP, "acme/the team")
NUMBERED = Target(Level.PROJECT, 12)
GITLAB = "https://gitlab.example.com"
SHA = "5f2c" * 10

JOB = {
    "CI_API_V4_URL": f"{GITLAB}/api/v4",
    "CI_SERVER_URL": GITLAB,
    "CI_PROJECT_URL": f"{GITLAB}/acme/settings",
    "CI_COMMIT_SHA": SHA,
    "CI_PIPELINE_URL": f"{GITLAB}/acme/settings/-/pipelines/9",
    "CI_MERGE_REQUEST_PROJECT_URL": f"{GITLAB}/acme/settings",
    "CI_MERGE_REQUEST_IID": "4",
}
"""The variables of a job on the service whose settings are managed."""


def places(environment: Mapping[str, str], **settings: Any) -> Places:
    return Places.of(environment, settings, KINDS, root="/srv/settings", folder="/srv/settings/fleet")


def links(environment: Mapping[str, str], saved: RunDocument = EMPTY, **settings: Any) -> Links:
    return Links(replace(saved, service=f"{GITLAB}/api/v4/"), places(environment, **settings))


def test_a_job_knows_where_everything_is() -> None:
    found = links(JOB)
    assert found.pipeline == f"{GITLAB}/acme/settings/-/pipelines/9"
    assert found.merge_request == f"{GITLAB}/acme/settings/-/merge_requests/4"
    assert found.target(API) == f"{GITLAB}/acme/payments/api"
    assert found.target(GROUP) == f"{GITLAB}/groups/acme/the%20team"
    assert found.settings(GROUP, "epics") == f"{GITLAB}/groups/acme/the%20team/-/epics"
    assert (
        found.origin("manifests/a b.yaml:12") == f"{GITLAB}/acme/settings/-/blob/{SHA}/fleet/manifests/a%20b.yaml#L12"
    )
    assert found.origin("/srv/settings/fleet/x.yaml:1") == f"{GITLAB}/acme/settings/-/blob/{SHA}/fleet/x.yaml#L1"


def test_each_section_has_its_page_at_each_level() -> None:
    targets = {Level.INSTANCE: Target(Level.INSTANCE), Level.USER: Target(Level.USER), Level.GROUP: GROUP}
    missing = {
        (kind.name, level)
        for kind in KINDS.values()
        for level in kind.models
        if links(JOB).settings(targets.get(level, API), kind.name) is None
    }
    assert missing == set()
    assert links(JOB).settings(API, "job_token_scope") == (
        f"{GITLAB}/acme/payments/api/-/settings/ci_cd#js-token-access"
    )
    assert links(JOB).settings(Target(Level.USER), "notification_settings") == f"{GITLAB}/-/profile/notifications"
    assert links(JOB).settings(API, "no_such_section") is None
    assert links(JOB).settings(API, "") is None


def test_without_a_job_the_configuration_tells_and_the_plan_its_commit() -> None:
    saved = replace(EMPTY, commit="ab" * 20)
    found = links({}, saved, web_url=f"{GITLAB}/", repository_url=f"{GITLAB}/acme/settings/")
    assert found.target(LIB) == f"{GITLAB}/acme/payments/lib"
    assert found.origin("x.yaml:3") == f"{GITLAB}/acme/settings/-/blob/{'ab' * 20}/fleet/x.yaml#L3"
    assert (found.pipeline, found.merge_request) == (None, None)
    report = load_report(save(make_report(saved, [], NOON, Traffic(0, 0))), KINDS)
    assert Links(report, places(JOB)).origin("x.yaml:3") == found.origin("x.yaml:3")
    assert links(JOB, saved).origin("x.yaml:3") == f"{GITLAB}/acme/settings/-/blob/{'ab' * 20}/fleet/x.yaml#L3"


def test_a_job_of_another_service_does_not_know_where_the_projects_are() -> None:
    elsewhere = JOB | {
        "CI_API_V4_URL": "https://other.example.com/api/v4",
        "CI_SERVER_URL": "https://other.example.com",
    }
    assert links(elsewhere).target(API) is None
    assert links(elsewhere, web_url=GITLAB).target(API) == f"{GITLAB}/acme/payments/api"
    assert links(JOB, web_url="https://evil.example.com").target(API) == f"{GITLAB}/acme/payments/api"
    assert links(JOB, repository_url="https://evil.example.com").origin("x.yaml:3") is not None
    assert str(links(JOB, repository_url="https://evil.example.com").origin("x.yaml:3")).startswith(GITLAB)


def test_where_nothing_tells_there_is_no_link() -> None:
    found = links({})
    assert found.target(API) is None
    assert found.settings(API, "milestones") is None
    assert found.origin("x.yaml:3") is None
    for origin in ("", "x.yaml", "x.yaml:", ":3", "x.yaml:3 and 2 more", "../../elsewhere.yaml:3"):
        assert links(JOB).origin(origin) is None
    assert links({name: JOB[name] for name in JOB if name != "CI_COMMIT_SHA"}).origin("x.yaml:3") is None
    assert links(JOB | {"CI_COMMIT_SHA": "main"}).origin("x.yaml:3") is None


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "ftp://gitlab.example.com",
        "https://user:secret@gitlab.example.com",
        'https://gitlab.example.com/"onclick="x',
        "https://gitlab.example.com/a)b",
        "https://gitlab.example.com/a b",
        "https://",
    ],
)
def test_an_address_that_is_not_plainly_one_of_the_web_is_none(url: str) -> None:
    found = links({**dict.fromkeys(JOB, url), "CI_API_V4_URL": JOB["CI_API_V4_URL"], "CI_COMMIT_SHA": SHA})
    assert (found.target(API), found.origin("x.yaml:1"), found.pipeline, found.merge_request) == (None,) * 4


def test_what_is_known_only_by_its_id_has_the_pages_that_need_no_path() -> None:
    found = links(JOB)
    assert found.target(NUMBERED) == f"{GITLAB}/projects/12"
    assert found.target(Target(Level.GROUP, 12)) is None
    assert found.settings(NUMBERED, "milestones") is None
    assert found.settings(NUMBERED, "notification_settings") == f"{GITLAB}/-/profile/notifications"
    known = links(JOB, about(EMPTY, [target_plan(NUMBERED, (), path="acme/numbered")]))
    assert known.target(NUMBERED) == f"{GITLAB}/acme/numbered"
    assert known.settings(NUMBERED, "milestones") == f"{GITLAB}/acme/numbered/-/milestones"


def test_an_object_has_its_page_until_it_is_deleted() -> None:
    entries = [{**milestone(31, "a"), "iid": 3}, {**milestone(32, "b"), "iid": 4}, milestone(33, "c")]
    wanted = desired(section("milestones", {"a": {"state": "closed"}, "b": None, "c": None, "d": {}}, API))
    plan = make_plan(wanted, live({(API, "milestones", "milestones"): entries}), KINDS)
    saved = load_plan(save(saved_plan(plan)), KINDS)
    create, update, deleted, unnumbered = saved.changes
    assert isinstance(update, Update)
    assert isinstance(deleted, Delete)
    assert (page_of(update), page_of(deleted)) == ("-/milestones/3", "-/milestones/4")
    found = links(JOB)
    pages = f"{GITLAB}/acme/payments/api/-/milestones"
    assert found.object(update) == f"{pages}/3"
    assert found.object(Outcome(update, Status.DONE)) == f"{pages}/3"
    assert found.object(deleted) == found.object(Outcome(deleted, Status.FAILED)) == f"{pages}/4"
    assert found.object(Outcome(deleted, Status.DONE)) is None
    assert found.object(create) is None
    assert found.object(unnumbered) is None
    assert found.object(Finding(update.address, "problem", "locked")) is None
    assert found.object(replace(update, notes=noted(page="../../../evil"))) is None
    assert Links(EMPTY, NOWHERE).object(update) is None


def test_markdown_links_to_the_project_the_line_and_the_pipeline() -> None:
    style = Style(links=lambda document: Links(document, places(JOB, web_url=GITLAB)))
    saved = sample()
    first, *others = tree(saved).targets
    saved = about(saved, (first.with_origins(lambda *_: "manifests/api.yaml:7"), *others))
    text = render_plan(saved, "markdown", style)
    project = f"[`project acme/payments/api`]({GITLAB}/acme/payments/api)"
    line = f"[`manifests/api.yaml:7`]({GITLAB}/acme/settings/-/blob/{SHA}/fleet/manifests/api.yaml#L7)"
    assert f"- {project}: `approval settings" in text
    assert f" ({line})\n" in text
    assert f"\n\n{project}\n\n```diff\n" in text
    assert f" by [the pipeline]({JOB['CI_PIPELINE_URL']}).\n" in text
    report = render_report(done((Status.FAILED, "400")), "markdown", style)
    assert f"- {project}: " in report
    assert f" by [the pipeline]({JOB['CI_PIPELINE_URL']}).\n" in report
    assert "](" not in render_plan(saved, "markdown") + render_report(done(), "markdown")


def test_a_style_without_links_has_none() -> None:
    assert links_of(EMPTY, Style()).target(API) is None
