"""Deletions of what is no longer declared, on values: the service shows less than it should, or other objects."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.errors import Forbidden, NotFound, ServiceError, Unauthorized
from reconciler.gitops.compare import compare
from reconciler.live.records import current_names
from reconciler.model.obstacle import Obstacle
from reconciler.model.plan import Create, Delete, Plan
from reconciler.model.state import DesiredState, Reference, Vocabulary
from reconciler.model.targets import Level, Target
from reconciler.planning.planner import make_plan
from tests.building import ACME, API, KINDS, USER, desired, live, section
from tests.render.plans import patiently
from tests.render.samples import milestone

SCOPE, PROJECTS, GROUPS = "job_token_scope", "projects", "groups"
LIB = Target(Level.PROJECT, "acme/lib")


def planned(
    then: DesiredState, now: DesiredState, answers: dict[Any, Any], ids: dict[Reference, int | Obstacle] | None = None
) -> tuple[Plan, frozenset[Reference | Vocabulary]]:
    return make_plan(compare(now, then, KINDS).desired, live(answers, ids), KINDS)


def said(plan: Plan) -> list[str]:
    return [f"{type(each).__name__} {each.address.name}" for each in plan.changes] + [
        f"Problem {each.address.name}" for each in plan.problems
    ]


def entry(number: int, path: str) -> dict[str, Any]:
    return {"id": number, "path_with_namespace": path}


def test_an_entry_by_path_and_the_same_by_id_are_one() -> None:
    listed = {(API, SCOPE, PROJECTS): [entry(7, "acme/lib"), entry(8, "acme/web")]}
    then = desired(section(SCOPE, {"projects": ["acme/lib", 8]}))
    now = desired(section(SCOPE, {"projects": [7, "Acme/Web"]}))
    plan, missing = planned(then, now, listed)
    assert (said(plan), missing) == ([], frozenset())


def test_an_entry_that_is_gone_is_not_asked_for() -> None:
    plan, missing = planned(
        desired(section(SCOPE, {"projects": ["acme/gone"]})),
        desired(section(SCOPE, {"projects": []})),
        {(API, SCOPE, PROJECTS): [entry(7, "acme/lib")]},
    )
    assert (said(plan), missing, len(list(plan.unmanaged))) == ([], frozenset(), 1)


def test_nothing_is_removed_while_a_wanted_entry_may_be_the_same_under_another_name() -> None:
    then = desired(section(SCOPE, {"projects": ["acme/lib"]}))
    now = desired(section(SCOPE, {"projects": ["acme/library"]}))
    listed = {(API, SCOPE, PROJECTS): [entry(7, "acme/lib")]}
    library = Reference(Level.PROJECT, "acme/library")
    assert planned(then, now, listed)[1] == {library}
    plan, _ = planned(then, now, listed, {library: Obstacle(library.target.address, "moved")})
    assert said(plan) == ["Problem acme/library"]


def test_a_group_that_the_service_shows_only_by_its_number_is_asked_for() -> None:
    then = desired(section(SCOPE, {"groups": ["acme/tools", "acme/gone"]}))
    now = desired(section(SCOPE, {"groups": []}))
    numbers = {Reference(Level.PROJECT, "acme/api"): 1}
    listed = {(API, SCOPE, GROUPS): [{"id": 11}, {"id": 12}]}
    tools, gone = Reference(Level.GROUP, "acme/tools"), Reference(Level.GROUP, "acme/gone")
    assert planned(then, now, listed, {**numbers})[1] == {tools, gone}
    plan, _ = planned(then, now, listed, {**numbers, tools: 11, gone: Obstacle(gone.target.address, "no such group")})
    assert said(plan) == ["Delete 11"]


def test_targets_that_lost_all_keep_their_order_and_settings_are_just_let_go() -> None:
    then = desired(
        section("notification_settings", {"level": "watch"}, USER),
        section("approval_settings", {"allow_author_approval": True}, ACME),
        section("milestones", {"a": {}, "b": None}, LIB),
        section("milestones", {"c": None}),
    )
    now = desired(section("milestones", {"z": {}}, Target(Level.PROJECT, "acme/zoo")))
    compared = compare(now, then, KINDS)
    assert [(str(each.target), [dict(s.wanted) for s in each.sections]) for each in compared.desired.targets] == [
        ("project acme/lib", [{"milestones": {"a": None}}]),
        ("project acme/zoo", [dict(now.targets[0].sections[0].wanted)]),
    ]
    assert {str(target) for target in compared.changed} == {"project acme/lib", "project acme/zoo"}
    assert compared.desired.grace == timedelta()
    assert compared.narrowed(compared.desired) == compared.desired


titles = st.sets(st.sampled_from("abcdef"))


@patiently
@given(then=titles, now=st.none() | titles, found=titles, prune=st.booleans())
def test_only_what_was_ours_goes(then: set[str], now: set[str] | None, found: set[str], prune: bool) -> None:
    before = desired(section("milestones", {title: {} for title in then}))
    present = () if now is None else [section("milestones", {title: {} for title in now}, prune=prune)]
    after = replace(before, targets=(replace(before.targets[0], sections=tuple(present)),))
    listed = [milestone(number, title) for number, title in enumerate(sorted(found), 1)]
    plan, _ = planned(before, after, {(API, "milestones", "milestones"): listed})
    names = {type_: {c.address.name for c in plan.changes if isinstance(c, type_)} for type_ in (Create, Delete)}
    wanted = now or set()
    gone = found - wanted if prune and now is not None else then & found - wanted
    assert names == {Create: wanted - found, Delete: gone}
    asked = now is not None or then
    assert {each.address.name for each in plan.unmanaged} == (found - wanted - gone if asked else set())


def test_two_that_have_become_one_lose_what_both_had() -> None:
    number = Target(Level.PROJECT, 7)
    then = desired(section("milestones", {"a": {}, "b": {}}, LIB), section("milestones", {"b": {}, "c": {}}, number))
    now = desired(section("milestones", {"b": {}}, number))
    compared = compare(now, then, KINDS, {LIB.identity: number.identity})
    (target,) = compared.desired.targets
    assert [sorted(dict(each.wanted)["milestones"]) for each in target.sections] == [["a", "b", "c"]]


class Present:
    """A service that answers each path with something, or raises it."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.asked: list[str] = []

    def get(self, path: str) -> Any:
        self.asked.append(path)
        found = self.answers[path.partition("?")[0].rpartition("%2F")[2].rpartition("/")[2]]
        if isinstance(found, ServiceError):
            raise found
        return found

    def pages(self, path: str) -> list[Any]:
        raise AssertionError(path)


def test_what_targets_are_called_now_is_asked_once_and_only_where_it_is_not_known() -> None:
    service = Present(
        api={"id": 1, "path_with_namespace": "acme/moved"},
        gone=NotFound("GET x", "404", 404),
        locked=Forbidden("GET x", "403", 403),
        odd={"id": 1, "path_with_namespace": None},
        acme={"id": 10, "full_path": "Acme"},
    )
    project = [Target(Level.PROJECT, f"acme/{name}") for name in ("api", "gone", "locked", "odd", "lib")]
    scopes = [USER, ACME, *project, Target(Level.PROJECT, 7), Target(Level.PROJECT, 1)]
    service.answers["1"] = service.answers["api"]
    names = current_names(scopes, service, 1, {Reference(Level.PROJECT, "acme/lib"): 7})
    assert [sorted((str(level), str(ref)) for level, ref in names[target]) for target in scopes] == [
        [("user", "None")],
        [("group", "10"), ("group", "acme")],
        [("project", "1"), ("project", "acme/api"), ("project", "acme/moved")],
        [],
        [("project", "acme/locked")],
        [("project", "acme/odd")],
        [("project", "7"), ("project", "acme/lib")],
        [("project", "7"), ("project", "acme/lib")],
        [("project", "1"), ("project", "acme/moved")],
    ]
    assert service.asked == [
        "groups/acme?with_projects=false",
        "projects/acme%2Fapi",
        "projects/acme%2Fgone",
        "projects/acme%2Flocked",
        "projects/acme%2Fodd",
        "projects/1",
    ]


def test_a_wrong_token_ends_it() -> None:
    with pytest.raises(Unauthorized):
        current_names([API], Present(api=Unauthorized("GET x", "401", 401)), 1, {})
