"""The planner on plain values: what is changed, what is left, what cannot be done."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from reconciler.engine.compare.planner import make_plan
from reconciler.model.endpoints import Collection
from reconciler.model.item import Create, Delete, Keep, Update
from reconciler.model.obstacle import Obstacle
from reconciler.model.plan import Plan
from reconciler.model.state import Reference, Section, Unreadable
from reconciler.model.targets import Level, Target
from tests.building import ACME, API, KINDS, LIB, USER, desired, live, section

MILESTONES = (API, "milestones", "milestones")
TOKENS = (API, "trigger_tokens", "trigger_tokens")
PROJECTS = (API, "job_token_scope", "projects")
GROUPS = (API, "job_token_scope", "groups")
RULES = (API, "container_repository_protection_rules", "container_repository_protection_rules")
APPROVALS = (API, "approval_settings", "approval_settings")


def milestone(number: int, title: str, **fields: object) -> dict[str, object]:
    return {
        "id": number,
        "title": title,
        "state": "active",
        "description": None,
        "due_date": None,
        "project_id": 7,
    } | fields


def token(number: int, description: str | None, value: str = "glptt-whole") -> dict[str, object]:
    return {"id": number, "description": description, "token": value}


def approvals(**entries: object) -> dict[str, object]:
    names = KINDS["approval_settings"].models[Level.PROJECT].model_fields
    return {name: {"value": False, "locked": False, "inherited_from": None} for name in names} | entries


def listed(plan: Plan) -> list[str]:
    """One line a change, problem and unmanaged object, each with its requests."""
    lines = []
    for change in plan.changes:
        sign = {Create: "+", Update: "~", Delete: "-"}[type(change)]
        bodies = [f"{request} {dict(request.body or {})}" for request in change.requests]
        lines.append(f"{sign} {change.address.title} {change.address.name}: {'; '.join(bodies)}")
    lines += [f"! {each.address.title} {each.address.name} {each.field}: {each.reason}" for each in plan.problems]
    return lines + [f"? {each.address.title} {each.address.name}" for each in plan.findings_of("unmanaged")]


def planned(answers: dict[tuple[Target, str, str], object], *sections: Section, **ids: int | Obstacle) -> list[str]:
    references = {
        Reference(Level(name.split("_")[0]), name.split("_", 1)[1].replace("_", "/")): ids[name] for name in ids
    }
    plan = make_plan(desired(*sections), live(answers, references), KINDS)
    needed = sorted(f"needs {each.level} {each.path}" for each in plan.lookups if isinstance(each, Reference))
    assert len(needed) == len(plan.lookups)
    return listed(plan) + needed


def test_creates_come_before_updates_and_updates_before_deletes() -> None:
    wanted = section("milestones", {"c": {"due_date": "2026-12-31"}, "b": {"state": "closed"}, "a": None})
    assert planned({MILESTONES: [milestone(1, "a"), milestone(2, "b"), milestone(3, "z")]}, wanted) == [
        "+ milestone c: POST projects/acme%2Fapi/milestones {'title': 'c', 'due_date': '2026-12-31'}",
        "~ milestone b: PUT projects/acme%2Fapi/milestones/2 {'state_event': 'close'}",
        "- milestone a: DELETE projects/acme%2Fapi/milestones/1 {}",
        "? milestone z",
    ]


def test_only_declared_fields_count() -> None:
    wanted = section("milestones", {"a": {}, "b": {"description": ""}})
    live_ones = [milestone(1, "a", description="kept", due_date="2026-01-01"), milestone(2, "b", description=None)]
    assert planned({MILESTONES: live_ones}, wanted) == []


def test_null_clears_a_field() -> None:
    wanted = section("milestones", {"a": {"due_date": None, "description": None}})
    assert planned({MILESTONES: [milestone(1, "a", due_date="2026-01-01")]}, wanted) == [
        "~ milestone a: PUT projects/acme%2Fapi/milestones/1 {'due_date': None}"
    ]


def test_a_milestone_created_closed_takes_two_requests_and_its_change_counts_both() -> None:
    wanted = section("milestones", {"a": {"state": "closed"}})
    assert planned({MILESTONES: []}, wanted) == [
        "+ milestone a: POST projects/acme%2Fapi/milestones {'title': 'a'}; "
        "PUT projects/acme%2Fapi/milestones/{id} {'state_event': 'close'}"
    ]


def test_pruning_deletes_what_is_not_listed_and_nothing_else() -> None:
    wanted = section("milestones", {"a": {}}, prune=True)
    assert planned({MILESTONES: [milestone(1, "a"), milestone(2, "b"), milestone(3, "c")]}, wanted) == [
        "- milestone b: DELETE projects/acme%2Fapi/milestones/2 {}",
        "- milestone c: DELETE projects/acme%2Fapi/milestones/3 {}",
    ]


def test_a_rename_is_one_update_and_keeps_the_object() -> None:
    wanted = section("milestones", {"new": {"renamed_from": ["older", "old"], "state": "closed"}}, prune=True)
    assert planned({MILESTONES: [milestone(4, "old")]}, wanted) == [
        "~ milestone new: PUT projects/acme%2Fapi/milestones/4 {'state_event': 'close', 'title': 'new'}"
    ]


def test_what_is_renamed_is_not_deleted_under_its_old_name() -> None:
    wanted = section("milestones", {"a": None, "new": {"renamed_from": "a"}})
    assert planned({MILESTONES: [milestone(4, "a")]}, wanted) == [
        "~ milestone new: PUT projects/acme%2Fapi/milestones/4 {'title': 'new'}"
    ]


def test_a_rename_whose_both_names_are_live_is_a_problem_and_deletes_neither() -> None:
    wanted = section("milestones", {"new": {"renamed_from": "old"}}, prune=True)
    assert planned({MILESTONES: [milestone(4, "old"), milestone(5, "new")]}, wanted) == [
        '! milestone new None: both this name and the former "old" are live; delete one of them'
    ]


def test_a_rename_from_a_name_that_two_objects_have_is_a_problem() -> None:
    wanted = section("milestones", {"new": {"renamed_from": "old"}})
    assert planned({MILESTONES: [milestone(4, "old"), milestone(5, "old")]}, wanted) == [
        '! milestone new None: 2 objects have the former name "old" (IDs 4, 5); expected one'
    ]


def test_a_rename_without_either_name_live_creates() -> None:
    wanted = section("trigger_tokens", {"new": {"renamed_from": "old"}})
    assert planned({TOKENS: []}, wanted) == [
        "+ trigger token new: POST projects/acme%2Fapi/triggers {'description': 'new'}"
    ]


def test_two_live_tokens_of_one_wanted_description_are_a_problem() -> None:
    wanted = section("trigger_tokens", {"nightly": {}})
    assert planned({TOKENS: [token(2, "nightly"), token(1, "nightly")]}, wanted) == [
        "! trigger token nightly None: 2 objects have this name (IDs 1, 2); expected one"
    ]


def test_all_live_tokens_of_a_description_that_must_not_exist_are_deleted() -> None:
    wanted = section("trigger_tokens", {"old": None})
    assert planned({TOKENS: [token(2, "old"), token(1, "old"), token(3, None)]}, wanted) == [
        "- trigger token old: DELETE projects/acme%2Fapi/triggers/1 {}",
        "- trigger token old: DELETE projects/acme%2Fapi/triggers/2 {}",
        "? trigger token ",
    ]


def test_only_a_token_shown_whole_can_be_renamed() -> None:
    wanted = section("trigger_tokens", {"new": {"renamed_from": "old"}})
    assert planned({TOKENS: [token(1, "old")]}, wanted) == [
        "~ trigger token new: PUT projects/acme%2Fapi/triggers/1 {'description': 'new'}"
    ]
    assert planned({TOKENS: [token(1, "old", "3f0c")]}, wanted) == [
        "! trigger token new None: the trigger token belongs to another user, and only its owner or an administrator may rename it"
    ]


def test_a_rule_that_would_lose_its_last_protection_is_a_problem() -> None:
    wanted = section("container_repository_protection_rules", {"acme/api/a": {"minimum_access_level_for_push": None}})
    rule = {"id": 1, "repository_path_pattern": "acme/api/a", "minimum_access_level_for_push": "owner"}
    assert planned({RULES: [rule]}, wanted) == [
        "! protection rule acme/api/a minimum_access_level_for_push: a protection rule needs at least one of "
        "minimum_access_level_for_push and minimum_access_level_for_delete; to have no such rule, write null in its place"
    ]


def test_a_rule_without_levels_can_only_be_found_never_created() -> None:
    wanted = section("container_repository_protection_rules", {"acme/api/a": {}})
    assert planned({RULES: []}, wanted) == [
        "! protection rule acme/api/a minimum_access_level_for_push: cannot be created: a protection rule needs at least "
        "one of minimum_access_level_for_push and minimum_access_level_for_delete; to have no such rule, write null in its "
        "place"
    ]


def test_dates_are_checked_against_those_that_stay() -> None:
    wanted = section("milestones", {"a": {"due_date": "2026-01-01"}})
    assert planned({MILESTONES: [milestone(1, "a", start_date="2026-01-01")]}, wanted) == [
        "! milestone a due_date: due_date must be after start_date, which is 2026-01-01"
    ]


MILESTONE = KINDS["milestones"].part("milestones")
assert isinstance(MILESTONE, Collection)
RELEASE_WRITES = replace(MILESTONE.writes, required=("due_date",), immutable=("start_date",))
RELEASES = replace(MILESTONE, writes=RELEASE_WRITES)
RELEASE_KIND = {"milestones": replace(KINDS["milestones"], parts=(RELEASES,))}


def releases(wanted: Mapping[str, object], *found: dict[str, object], prune: bool = False) -> list[str]:
    """Plan milestones as if a creation needed a due date, and nothing could change a start date."""
    plan = make_plan(desired(section("milestones", wanted, prune=prune)), live({MILESTONES: list(found)}), RELEASE_KIND)
    return listed(plan)


def test_a_creation_that_lacks_a_required_field_is_a_problem() -> None:
    assert releases({"a": {}, "b": {"due_date": None}, "c": {"due_date": "2026-12-31"}}, milestone(1, "d")) == [
        "+ milestone c: POST projects/acme%2Fapi/milestones {'title': 'c', 'due_date': '2026-12-31'}",
        "! milestone a due_date: needs `due_date` to be created",
        "! milestone b due_date: needs `due_date` to be created",
        "? milestone d",
    ]
    assert releases({"a": {}}, milestone(1, "a")) == []


def test_an_immutable_field_that_differs_is_a_problem_and_the_others_are_planned() -> None:
    wanted: dict[str, object] = {"start_date": "2026-12-01", "state": "closed"}
    found = milestone(1, "a", start_date="2026-11-01")
    update = "~ milestone {}: PUT projects/acme%2Fapi/milestones/1 {{'state_event': 'close'{}}}"
    problem = '! milestone {} start_date: cannot be changed once created: "2026-11-01" -> "2026-12-01"'
    assert releases({"a": wanted}, found) == [update.format("a", ""), problem.format("a")]
    assert releases({"a": wanted | {"start_date": "2026-11-01"}}, found) == [update.format("a", "")]
    renamed = {"b": wanted | {"renamed_from": "a"}}
    assert releases(renamed, found) == [update.format("b", ", 'title': 'b'"), problem.format("b")]


def test_objects_that_no_request_updates_are_neither_changed_nor_renamed() -> None:
    part = replace(RELEASES, writes=replace(RELEASE_WRITES, update=None))
    kinds = {"milestones": replace(KINDS["milestones"], parts=(part,))}
    wanted = section("milestones", {"a": {"state": "closed"}, "b": {"renamed_from": "c"}, "d": {}})
    found = live({MILESTONES: [milestone(1, "a"), milestone(2, "c"), milestone(3, "d")]})
    assert listed(make_plan(desired(wanted), found, kinds)) == [
        '! milestone a state: cannot be changed once created: "active" -> "closed"',
        "! milestone b None: cannot be renamed",
    ]


def test_the_remedy_for_an_immutable_field_fits_the_declaration() -> None:
    def remedy(wanted: Mapping[str, object], *, prune: bool = False) -> list[str]:
        state = desired(section("milestones", wanted, prune=prune))
        found = live({MILESTONES: [milestone(1, "a", start_date="2026-11-01")]})
        return [problem.fix for problem in make_plan(state, found, RELEASE_KIND).problems]

    wanted = {"start_date": "2026-12-01"}
    assert remedy({"a": wanted}) == [
        "to replace the object, declare a new name and set this one to null; or delete it first"
    ]
    assert remedy({"a": wanted}, prune=True) == [
        "to replace the object, declare it under a new name, and this one is pruned; or delete it first"
    ]
    assert remedy({"b": wanted | {"renamed_from": "a"}}) == [
        "leave out `renamed_from` to create a new object; the former is deleted if an apply has recorded it"
    ]


def test_approval_settings_are_written_whole_save_what_is_locked() -> None:
    read_only = {"value": False, "locked": True, "inherited_from": "group"}
    answer = approvals(allow_committer_approval=read_only, selective_code_owner_removals=read_only)
    wanted = section("approval_settings", {"allow_author_approval": True, "allow_committer_approval": True})
    assert planned({APPROVALS: answer}, wanted) == [
        "~ approval settings None: PUT projects/acme%2Fapi/merge_request_approval_setting {'allow_author_approval': True, "
        "'allow_overrides_to_approver_list_per_merge_request': False, 'retain_approvals_on_push': False, "
        "'require_reauthentication_to_approve': False, 'selective_code_owner_removals': False}",
        "! approval settings None allow_committer_approval: locked by group acme; unlock it there or leave the field out",
    ]


def test_a_locked_setting_that_is_as_wanted_is_no_problem() -> None:
    read_only = {"value": False, "locked": True, "inherited_from": None}
    wanted = section("approval_settings", {"allow_author_approval": False})
    assert planned({APPROVALS: approvals(allow_author_approval=read_only)}, wanted) == []


def test_an_unreadable_section_plans_nothing_and_says_so_once() -> None:
    wanted = section("job_token_scope", {"enabled": True, "projects": [1]}), section("milestones", {"a": {}})
    unreadable = Unreadable("GET x: 403 Forbidden")
    answers = {(API, "job_token_scope", "enabled"): unreadable, PROJECTS: unreadable, MILESTONES: [milestone(1, "a")]}
    assert planned(answers, *wanted) == ["! job token scope None None: cannot be read: GET x: 403 Forbidden"]


def test_a_target_of_which_nothing_is_found_is_one_problem() -> None:
    wanted = section("trigger_tokens", {"b": {}}), section("milestones", {"a": {}})
    gone = Unreadable("GET x: 404 Project Not Found", absent=True)
    assert planned({TOKENS: gone, MILESTONES: gone}, *wanted) == [
        "! project acme/api None: not found, or not visible to this token (GET x: 404 Project Not Found)"
    ]


def entry(number: int, path: str) -> dict[str, object]:
    return {"id": number, "path_with_namespace": path}


def test_the_project_itself_is_no_entry_of_its_allowlist_and_tells_its_number() -> None:
    wanted = section("job_token_scope", {"projects": ["acme/lib", "Acme/Api"]}, prune=True)
    assert planned({PROJECTS: [entry(7, "acme/api"), entry(9, "acme/other")]}, wanted, project_acme_lib=8) == [
        "+ allowlisted project acme/lib: POST projects/7/job_token_scope/allowlist {'target_project_id': 8}",
        "- allowlisted project acme/other: DELETE projects/7/job_token_scope/allowlist/9 {}",
    ]


def test_numbers_that_are_not_known_yet_are_asked_for_and_hold_back_only_what_needs_them() -> None:
    wanted = section("job_token_scope", {"projects": ["acme/lib", "acme/seen", 4, 5], "groups": ["acme"]})
    answers: dict[tuple[Target, str, str], object] = {PROJECTS: [entry(3, "ACME/Seen"), entry(4, "x/y")], GROUPS: []}
    assert planned(answers, wanted) == ["needs group acme", "needs project acme/api", "needs project acme/lib"]


def test_a_target_known_by_its_number_needs_no_lookup() -> None:
    target = Target(Level.PROJECT, 7)
    wanted = section("job_token_scope", {"projects": [7, 5]}, target)
    assert planned({(target, "job_token_scope", "projects"): []}, wanted) == [
        "+ allowlisted project 5: POST projects/7/job_token_scope/allowlist {'target_project_id': 5}"
    ]


@pytest.mark.parametrize("name", ["acme/api", "ACME/Api", 7])
@pytest.mark.parametrize("target", [API, Target(Level.PROJECT, 7)], ids=str)
def test_the_project_itself_is_never_added_however_it_is_called(target: Target, name: object) -> None:
    wanted = section("job_token_scope", {"projects": [name]}, target)
    assert planned({(target, "job_token_scope", "projects"): []}, wanted, project_acme_api=7) == []


def test_one_project_given_by_path_and_by_number_is_added_once() -> None:
    wanted = section("job_token_scope", {"projects": ["acme/lib", 8]})
    assert planned({PROJECTS: [entry(7, "acme/api")]}, wanted, project_acme_lib=8) == [
        "+ allowlisted project acme/lib: POST projects/7/job_token_scope/allowlist {'target_project_id': 8}"
    ]


def test_an_unknown_path_is_a_problem_and_keeps_all_entries_for_any_may_be_it() -> None:
    wanted = section("job_token_scope", {"groups": ["acme/gone"]}, prune=True)
    groups = [{"id": 1, "name": "a"}, {"id": 2, "web_url": "https://h/groups/acme/b"}]
    answers: dict[tuple[Target, str, str], object] = {GROUPS: groups}
    assert planned(
        answers,
        wanted,
        group_acme_gone=Obstacle(Target(Level.GROUP, "acme/gone").address, "no such group"),
        project_acme_api=7,
    ) == [
        "! allowlisted group acme/gone None: no such group",
        "? allowlisted group 1",
        "? allowlisted group acme/b",
    ]


def test_a_group_whose_path_is_not_shown_is_recognised_by_its_number() -> None:
    wanted = section("job_token_scope", {"groups": ["acme"]})
    assert planned({GROUPS: [{"id": 10, "name": "acme"}]}, wanted, group_acme=10) == []


def test_a_project_whose_own_number_cannot_be_had_is_a_problem() -> None:
    wanted = section("job_token_scope", {"groups": [1]}, prune=True)
    assert planned({GROUPS: [{"id": 2}]}, wanted, project_acme_api=Obstacle(API.address, "no such project")) == [
        f"! allowlisted group {number} None: writing here takes the numeric ID of project acme/api: no such project"
        for number in (1, 2)
    ]


def test_an_update_whose_path_needs_a_number_waits_for_it() -> None:
    kinds = {
        "milestones": replace(
            KINDS["milestones"], parts=(replace(RELEASES, writes=replace(RELEASE_WRITES, needs_numeric_id=True)),)
        )
    }
    wanted = desired(section("milestones", {"a": {"state": "closed"}}))
    found = milestone(1, "a") | {"project_id": None}
    waiting = make_plan(wanted, live({MILESTONES: [found]}), kinds)
    assert waiting.lookups == {Reference(Level.PROJECT, "acme/api")}
    plan = make_plan(wanted, live({MILESTONES: [found]}, {Reference(Level.PROJECT, "acme/api"): 7}), kinds)
    assert listed(plan) == ["~ milestone a: PUT projects/7/milestones/1 {'state_event': 'close'}"]


def test_a_target_that_needs_no_lookup_is_planned_once_unless_a_group_needs_one() -> None:
    needing = section("epics", {"e": {"labels": ["new"]}}, ACME), section("job_token_scope", {"projects": ["acme/x"]})
    groups: dict[tuple[Target, str, str], object] = {(ACME, "epics", "epics"): []}
    lib: dict[tuple[Target, str, str], object] = {(LIB, "milestones", "milestones"): [], PROJECTS: []}
    wanted = section("milestones", {"a": {}}, LIB)
    everything = desired(*needing, wanted), live({**groups, **lib}), KINDS
    with_group = make_plan(*everything)
    assert len(with_group.lookups) == 2
    again = make_plan(*everything, with_group)
    assert [target is before for target, before in zip(again.targets, with_group.targets, strict=True)] == [False] * 3
    first = make_plan(desired(needing[1], wanted), live(lib), KINDS)
    assert len(first.lookups) == 1
    ids: dict[Reference, int | Obstacle] = {
        Reference(Level.PROJECT, path): number for path, number in (("acme/x", 8), ("acme/api", 7))
    }
    second = make_plan(desired(needing[1], wanted), live(lib, ids), KINDS, first)
    assert (second.lookups, second.targets[1] is first.targets[1]) == (frozenset(), True)
    assert [change.address.name for change in second.changes] == ["acme/x", "a"]


def test_an_empty_section_that_is_pruned_wants_both_lists_empty() -> None:
    wanted = section("job_token_scope", {}, prune=True)
    assert planned({PROJECTS: [entry(7, "acme/api"), entry(8, "acme/b")], GROUPS: [{"id": 2}]}, wanted) == [
        "- allowlisted project acme/b: DELETE projects/7/job_token_scope/allowlist/8 {}",
        "- allowlisted group 2: DELETE projects/7/job_token_scope/groups_allowlist/2 {}",
    ]


NOTIFICATIONS = (API, "notification_settings", "notification_settings")


@pytest.mark.parametrize(
    "answer",
    [
        {
            "level": "custom",
            "events": {"failed_pipeline": None, "new_issue": True, "new_note": None, "unheard_of": True},
        },
        {"level": "custom", "failed_pipeline": True, "new_issue": True, "new_note": False},
    ],
    ids=["nested", "flat"],
)
def test_events_are_compared_nested_or_flat_and_null_is_the_default(answer: dict[str, object]) -> None:
    events = {"failed_pipeline": True, "new_issue": None, "new_note": False, "new_epic": True}
    wanted = section("notification_settings", {"level": "custom", "events": events})
    assert planned({NOTIFICATIONS: answer}, wanted) == [
        "~ notification settings None: PUT projects/acme%2Fapi/notification_settings {'new_issue': False}",
        "! notification settings None events.new_epic: this service has no such event here",
    ]


def test_events_that_are_hidden_at_another_level_are_sent_with_the_level() -> None:
    wanted = section("notification_settings", {"level": "custom", "events": {"new_issue": False}})
    assert planned({NOTIFICATIONS: {"level": "global"}}, wanted) == [
        "~ notification settings None: PUT projects/acme%2Fapi/notification_settings {'new_issue': False, 'level': 'custom'}"
    ]


def test_leaving_the_level_custom_does_not_stumble_over_the_events() -> None:
    wanted = section("notification_settings", {"level": "global"})
    assert planned({NOTIFICATIONS: {"level": "custom", "events": {"new_issue": True}}}, wanted) == [
        "~ notification settings None: PUT projects/acme%2Fapi/notification_settings {'level': 'global'}"
    ]


def test_an_address_is_cleared_by_an_empty_string() -> None:
    wanted = section("notification_settings", {"notification_email": None}, USER)
    address = (USER, "notification_settings", "notification_settings")
    answer = {"level": "watch", "notification_email": "b@example.com", "primary_email": "a@example.com"}
    assert planned({address: answer}, wanted) == [
        "~ notification settings None: PUT notification_settings {'notification_email': ''}"
    ]
    assert planned({address: answer | {"notification_email": "a@example.com"}}, wanted) == []


def test_project_approvals_below_a_changed_group_are_to_be_planned_again() -> None:
    elsewhere, numbered = Target(Level.PROJECT, "other/web"), Target(Level.PROJECT, 12)
    targets = [ACME, API, elsewhere, numbered]
    wanted = [section("approval_settings", {"allow_author_approval": True}, target) for target in targets]
    wanted.append(section("milestones", {}))
    answers = {(target, "approval_settings", "approval_settings"): approvals() for target in targets}
    plan = make_plan(desired(*wanted), live({**answers, MILESTONES: []}), KINDS)
    assert [target.target for target in plan.targets for item in target.items if isinstance(item, Keep)] == [
        API,
        numbered,
    ]
    assert plan.cost == 4


NOW = datetime(2026, 11, 21, tzinfo=UTC)


def born(number: int, days_ago: float, **more: object) -> dict[str, object]:
    return token(number, "deploy") | {"created_at": (NOW - timedelta(days=days_ago)).isoformat()} | more


def rotated(*entries: dict[str, object], grace: timedelta = timedelta()) -> list[str]:
    wanted = desired(section("trigger_tokens", {"deploy": {"rotate_after": "90d"}}))
    found = replace(live({TOKENS: list(entries)}), read_at=NOW)
    plan = make_plan(replace(wanted, grace=grace), found, KINDS)
    succeeded = [change for change in plan.changes if isinstance(change, Delete)]
    return listed(plan) + [f"{each.requests[0].path[-1]} after {each.successor_id}" for each in succeeded]


CREATION = "+ trigger token deploy: POST projects/acme%2Fapi/triggers {'description': 'deploy'}"
DELETION = "- trigger token deploy: DELETE projects/acme%2Fapi/triggers/{} {{}}"


def test_a_token_is_rotated_when_its_time_has_come_and_not_before() -> None:
    assert rotated() == [CREATION]
    assert rotated(born(1, 89.9)) == []
    assert rotated(born(1, 90)) == [CREATION]


def test_a_succeeded_token_goes_in_a_later_run_and_never_before_its_successor_is_settled() -> None:
    deletion = [DELETION.format(1), "1 after 2"]
    assert rotated(born(1, 91), born(2, 0.1)) == deletion
    assert rotated(born(1, 91), born(2, 0.1), grace=timedelta(hours=3)) == []
    assert rotated(born(1, 200), born(2, 91)) == [CREATION, *deletion]


def test_of_tokens_born_at_one_moment_the_later_number_stays() -> None:
    assert rotated(born(2, 1), born(1, 1)) == [DELETION.format(1), "1 after 2"]


def test_a_token_of_another_user_neither_succeeds_nor_is_succeeded() -> None:
    def problem(number: str, ids: str, rest: str) -> str:
        return f"! trigger token deploy None: {number} objects have this name (IDs {ids}); expected one{rest}"

    replaces_ids = "; ID 2 belongs to another user"
    assert rotated(born(1, 1), born(2, 0, token="glpt")) == [problem("2", "1, 2", replaces_ids)]
    assert rotated(born(1, 1), born(2, 99, token="glpt"), born(3, 99)) == [
        DELETION.format(3),
        problem("3", "1, 2, 3", replaces_ids),
        "3 after 1",
    ]
    assert rotated(born(1, 99), born(2, 99, token="glpt")) == [CREATION, problem("2", "1, 2", replaces_ids)]
    assert rotated(born(1, 99), born(2, 99, token="glpt"), born(3, 0, token="glpt"))[-1:] == [
        problem("3", "1, 2, 3", "; IDs 2, 3 belong to other users")
    ]
    assert rotated(born(1, 99, token="glpt"), born(2, 1, token="glpt")) == [problem("2", "1, 2", "")]


def test_a_token_of_another_user_cannot_be_rotated_when_its_time_has_come() -> None:
    assert rotated(born(1, 89, token="glpt")) == []
    assert rotated(token(1, "deploy", "glpt")) == []
    assert rotated(born(1, 90, token="glpt")) == [
        "! trigger token deploy None: due for rotation, but it belongs to another user; its owner can rotate it, "
        "or delete it and the next run creates a new one"
    ]


def test_what_a_successor_stands_beside_is_remembered() -> None:
    wanted = desired(section("trigger_tokens", {"deploy": {"rotate_after": "90d"}}))
    plan = make_plan(wanted, replace(live({TOKENS: [born(4, 91)]}), read_at=NOW), KINDS)
    assert [change.replaces_ids for change in plan.changes if isinstance(change, Create)] == [(4,)]


def test_a_token_of_unknown_age_cannot_be_rotated() -> None:
    assert rotated(token(1, "deploy")) == [
        "! trigger token deploy None: cannot be rotated: the service does not report its age"
    ]


def test_a_rotated_token_whose_former_name_is_live_too_is_a_problem() -> None:
    wanted = section("trigger_tokens", {"deploy": {"rotate_after": "90d", "renamed_from": "nightly"}}, prune=True)
    assert planned({TOKENS: [born(1, 1), token(2, "nightly")]}, wanted) == [
        '! trigger token deploy None: both this name and the former "nightly" are live; delete one of them'
    ]


def test_a_settings_section_that_would_contradict_itself_is_a_problem() -> None:
    wanted = section("notification_settings", {"events": {"new_issue": True}})
    assert planned({NOTIFICATIONS: {"level": "watch"}}, wanted) == [
        "! notification settings None events: `events` need `level: custom` beside them; the service ignores them at other levels"
    ]
