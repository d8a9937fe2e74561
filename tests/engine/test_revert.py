"""The way back from an apply: the state is as it was before, and what others changed since stays and is a problem."""

import copy
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import product
from typing import Any

import pytest
from hypothesis import Phase, given, settings

from reconciler.document.document import RunDocument
from reconciler.document.plans import make_report
from reconciler.document.stored import load_plan, load_report, save
from reconciler.engine.compare.revert import Reversal
from reconciler.engine.plan import draw_plan
from reconciler.engine.read import read_part
from reconciler.model.diff import AsRead, fields_of
from reconciler.model.item import Change, Create, Delete, Outcome, Status, Update
from reconciler.model.plan import Plan, TargetPlan
from reconciler.model.resource import LiveRecord, Objects
from reconciler.model.state import Section
from reconciler.model.targets import Address, Level, Target
from reconciler.sandbox import Sandbox
from tests.building import ACME, API, KINDS, LIB, USER, SectionPlan, live, section, target_plan
from tests.engine_driver import EngineDriver, failures
from tests.inventory.killing import Killed, mortal
from tests.render.samples import approvals, saved_plan, tree
from tests.states import a_small_service
from tests.test_fewest_calls import (
    DELETE,
    KEYS,
    PUSH,
    RULES,
    SCOPE,
    STATES_OF_ALL,
    WANTED_OF_ALL,
    Plain,
    declared,
    found_in,
    service,
    thorough,
    without_both_names,
)
from tests.trust import all_writes
from tests.trust.test_fault_matrix import FAULTS


def report_of(engine: EngineDriver, plan: Plan, outcomes: Sequence[TargetPlan]) -> RunDocument:
    """Return the report of an apply, as it is read from a file."""
    report = make_report(saved_plan(plan), outcomes, datetime.now(UTC), engine.client.traffic)
    return load_report(save(report), KINDS)


def planned_back(engine: EngineDriver, report: RunDocument) -> Plan:
    """Return the plan of the way back."""
    engine.sandbox.clear_log()
    reversal = Reversal(tree(report).targets, KINDS, "digest")
    return draw_plan(reversal.applied_state, engine.client, KINDS, make=reversal.plan)


def problems(plan: Plan) -> list[str]:
    """Return the problems of a plan."""
    return [f"{each.address.name or each.address.title}.{each.field}: {each.reason}" for each in plan.problems]


@pytest.fixture(params=[pytest.param(True, marks=pytest.mark.untraced), False], ids=["verified", "not verified"])
def verify(request: pytest.FixtureRequest) -> bool:
    """Whether the apply read again what it had changed."""
    return bool(request.param)


def undoable(state: dict[str, Any]) -> dict[str, Any]:
    """Return a state in which nothing is there to be promoted, which could not be undone."""
    next(each for each in state["projects"] if each["path"] == "partners/shop")["milestones"] = []
    return state


def shown(engine: EngineDriver, state: dict[str, Any], *kinds: str) -> list[tuple[str, str, list[Any]]]:
    """Return all that the service shows of all its targets, of some kinds or of all, without the IDs of objects."""
    targets = [Target(Level.INSTANCE), USER]
    targets += [Target(Level(level), each["path"]) for level in ("group", "project") for each in state[f"{level}s"]]
    found = []
    for target in targets:
        for kind in (KINDS[name] for name in kinds or KINDS):
            for part in kind.parts if target.level in kind.models else ():
                live = read_part(engine.client, part, target, {})
                objects = live.own if isinstance(live, Objects) else (live,) if isinstance(live, LiveRecord) else ()
                fields = [(sorted(map(str, each.names)), fields_of(each.resource)) for each in objects]
                found.append((str(target), part.name, sorted(fields, key=str)))
    return found


def visible(state: dict[int, Plain]) -> dict[int, Plain]:
    """Return a state without the events that the service does not show."""
    for project in state.values():
        if project["notification_settings"]["level"] != "custom":
            project["notification_settings"]["events"] = None
    return state


@pytest.mark.parametrize("dialect", [pytest.param("spec", marks=pytest.mark.untraced), "deployed"], indirect=True)
def test_all_that_the_examples_change_is_changed_back(sandbox: Sandbox, dialect: str, verify: bool) -> None:
    with EngineDriver(sandbox, undoable(all_writes.service(dialect))) as engine:
        before = shown(engine, sandbox.state())
        plan = engine.plan(*all_writes.everything())
        outcomes = engine.apply(plan, verify=verify)
        assert failures(outcomes) == []
        report = report_of(engine, plan, outcomes)
        still = [each for each in problems(planned_back(engine, report)) if each.startswith("mirror-bot")]
        fading = not verify and dialect == "deployed"
        assert still == ["mirror-bot.None: is still there: the service deletes such objects in the background"] * fading
        after = shown(engine, sandbox.state())
        back = planned_back(engine, report)
        assert problems(back) == [
            "00u7.None: does not exist, and this API cannot create one: provision the user with the identity provider, "
            "or leave the identity out"
        ]
        undone = engine.apply(back)
        assert failures(undone) == []
        now = shown(engine, sandbox.state())
        (lost,) = [each for each in before if each not in now]
        assert lost[:2] == ("group acme", "scim_identities")
        again = planned_back(engine, report)
        assert (list(again.changes), problems(again)) == ([], problems(back))
        forth = planned_back(engine, report_of(engine, back, undone))
        assert problems(forth) == []
        assert failures(engine.apply(forth)) == []
        assert shown(engine, sandbox.state()) == after


@pytest.mark.untraced
@settings(thorough, max_examples=10)
@given(live=STATES_OF_ALL, wanted=WANTED_OF_ALL)
def test_whatever_an_apply_does_is_undone_and_done_again(
    sandbox: Sandbox, dialect: str, live: dict[int, Plain], wanted: dict[int, Plain]
) -> None:
    wanted = copy.deepcopy(wanted)
    without_both_names(live, wanted)
    with EngineDriver(sandbox, service(live, dialect)) as engine:
        before = visible(found_in(sandbox.state()))
        plan = engine.plan(*declared(wanted))
        outcomes = engine.apply(plan)
        after = visible(found_in(sandbox.state()))
        report = report_of(engine, plan, outcomes)
        back = planned_back(engine, report)
        assert problems(back) == []
        undone = engine.apply(back)
        assert failures(undone) == []
        assert visible(found_in(sandbox.state())) == before
        again = planned_back(engine, report)
        assert (list(again.changes), problems(again)) == ([], [])
        forth = planned_back(engine, report_of(engine, back, undone))
        assert problems(forth) == []
        assert failures(engine.apply(forth)) == []
        assert visible(found_in(sandbox.state())) == after


def without_renames(wanted: dict[int, Plain], *left_out: str) -> dict[int, Plain]:
    """Return what is declared, less renames and some sections."""
    wanted = {number: {k: v for k, v in each.items() if k not in left_out} for number, each in wanted.items()}
    for sections in wanted.values():
        sections["prune"] = sections["prune"] - {*left_out}
        for items in (sections.get(name, {}) for name in ("milestones", RULES, "trigger_tokens")):
            for item in items.values():
                (item or {}).pop("renamed_from", None)
    return wanted


class Expected:
    """What must be there in the end, by what was there before an apply, after it, and after somebody else's."""

    def __init__(self) -> None:
        self.conflicts: list[str] = []

    def fields(self, name: str, before: Plain, after: Plain, theirs: Plain) -> Plain:
        """Return the fields of an object that was there all the time."""
        changed = [each for each in after if before[each] != after[each]]
        self.conflicts += [f"{name}.{each}" for each in changed if theirs[each] not in (after[each], before[each])]
        return {each: before[each] if theirs[each] == after[each] else theirs[each] for each in after}

    def objects(self, before: Plain, after: Plain, theirs: Plain) -> Plain:
        """Return the objects of a collection."""
        found = {}
        for name in {*before, *after, *theirs}:
            was, left, now = before.get(name), after.get(name), theirs.get(name)
            if left is None and was is not None and now is None:
                found[name] = was
            elif now is not None and was is not None and left is not None:
                found[name] = self.fields(name, was, left, now)
            elif now is not None and (left is None or was is not None or now != left):
                found[name] = now
            if (now is None and was is not None and left is not None and was != left) or (
                now is not None and was != left and None in (was, left) and now not in (was, left)
            ):
                self.conflicts.append(str(name))
        return found

    def project(self, before: Plain, after: Plain, theirs: Plain) -> Plain:
        """Return a whole project."""

        def members(name: str) -> set[int]:
            was, left, now = (set[int](each[SCOPE][name]) for each in (before, after, theirs))
            return (now - (left - was)) | (was - left)

        names = [{*each["trigger_tokens"]} for each in (before, after, theirs)]
        tokens = (names[2] - (names[1] - names[0])) | (names[0] - names[1])
        return {
            "milestones": self.objects(before["milestones"], after["milestones"], theirs["milestones"]),
            RULES: self.objects(before[RULES], after[RULES], theirs[RULES]),
            "trigger_tokens": {name: {} for name in tokens},
            KEYS: before[KEYS],
            SCOPE: {
                **self.fields("scope", *({"enabled": each[SCOPE]["enabled"]} for each in (before, after, theirs))),
                "projects": members("projects"),
                "groups": members("groups"),
            },
            "approval_settings": self.fields(
                "approvals", *(each["approval_settings"] for each in (before, after, theirs))
            ),
            "notification_settings": before["notification_settings"],
        }


@pytest.mark.untraced
@settings(thorough, max_examples=10, phases=[Phase.explicit, Phase.generate])
@given(live=STATES_OF_ALL, wanted=WANTED_OF_ALL, theirs=WANTED_OF_ALL)
def test_whatever_others_change_since_stays_and_is_told(
    sandbox: Sandbox, dialect: str, live: dict[int, Plain], wanted: dict[int, Plain], theirs: dict[int, Plain]
) -> None:
    wanted = without_renames(copy.deepcopy(wanted), KEYS)
    theirs = without_renames(copy.deepcopy(theirs), KEYS, "notification_settings")
    with EngineDriver(sandbox, service(live, dialect)) as engine:
        before = visible(found_in(sandbox.state()))
        plan = engine.plan(*declared(wanted))
        outcomes = engine.apply(plan)
        after = visible(found_in(sandbox.state()))
        assert failures(engine.apply(engine.plan(*declared(theirs)))) == []
        now = visible(found_in(sandbox.state()))
        back = planned_back(engine, report_of(engine, plan, outcomes))
        saved = load_plan(save(saved_plan(back)), KINDS)
        assert failures(engine.apply(tree(saved), recheck=True)) == []
        expected = Expected()
        wanted_now = {number: expected.project(before[number], after[number], now[number]) for number in before}
        assert visible(found_in(sandbox.state())) == wanted_now
        assert bool(problems(back)) == bool(expected.conflicts), (problems(back), expected.conflicts)


def epics(engine: EngineDriver) -> list[tuple[str, str | None, str]]:
    """Return the epics of the group: title, title of the parent, state."""
    found = engine.sandbox.state()["groups"][0]["epics"]
    names = {each["id"]: each["title"] for each in found}
    return sorted((each["title"], names.get(each["parent_id"]), each["state"]) for each in found)


@pytest.mark.untraced
def test_epics_get_back_their_parents_and_names(sandbox: Sandbox, dialect: str) -> None:
    state = a_small_service(dialect)
    state["groups"][0]["epics"] = [
        {"id": 1, "title": "Roadmap"},
        {"id": 2, "title": "Child", "parent_id": 1},
        {"id": 3, "title": "Gone", "parent_id": 1},
        {"id": 4, "title": "Grandchild", "parent_id": 3},
    ]
    with EngineDriver(sandbox, state) as engine:
        before = epics(engine)
        wanted = {
            "Plan": {"renamed_from": "Roadmap", "state": "closed"},
            "New": {"parent": "Plan"},
            "Child": {"parent": "New"},
            "Grandchild": {"parent": None},
            "Gone": None,
        }
        plan = engine.plan(section("epics", wanted, ACME))
        outcomes = engine.apply(plan)
        assert failures(outcomes) == []
        after = epics(engine)
        report = report_of(engine, plan, outcomes)
        back = planned_back(engine, report)
        assert problems(back) == []
        undone = engine.apply(back)
        assert failures(undone) == []
        assert epics(engine) == before
        forth = planned_back(engine, report_of(engine, back, undone))
        assert failures(engine.apply(forth)) == []
        assert epics(engine) == after


def test_an_epic_to_which_somebody_refers_since_is_not_deleted(engine: EngineDriver) -> None:
    plan = engine.plan(section("epics", {"New": {}, "Below": {"parent": "New"}}, ACME))
    report = report_of(engine, plan, engine.apply(plan))
    engine.step(section("epics", {"Theirs": {"parent": "Below"}}, ACME))
    back = planned_back(engine, report)
    assert (list(back.changes), problems(back)) == (
        [],
        [
            'Below.None: is not deleted, because epic "Theirs" refers to it',
            'New.None: is not deleted, because epic "Below" refers to it',
        ],
    )


@pytest.mark.untraced
def test_a_group_comes_before_the_projects_that_inherit_from_it(sandbox: Sandbox) -> None:
    state = a_small_service("deployed")
    state["groups"][0]["merge_request_approval_settings"] = {"allow_author_approval": True}
    state["projects"][0]["merge_request_approval_settings"] = {"allow_author_approval": False}
    with EngineDriver(sandbox, state) as engine:
        before = shown(engine, sandbox.state())
        group = section("approval_settings", {"allow_author_approval": False, "retain_approvals_on_push": True}, ACME)
        project = section("approval_settings", {"allow_committer_approval": True}, LIB)
        plan = engine.plan(group, project)
        outcomes = engine.apply(plan)
        report = report_of(engine, plan, outcomes)
        back = planned_back(engine, report)
        assert problems(back) == []
        assert failures(engine.apply(back)) == []
        assert shown(engine, sandbox.state()) == before


def test_a_section_of_which_nothing_was_done_is_not_looked_at(engine: EngineDriver) -> None:
    plan = engine.plan(section("milestones", {"a": {}}), section("trigger_tokens", {"t": {}}))
    engine.sandbox.set_faults([{"kind": "status", "status": 400, "method": "POST", "match": "milestones"}])
    report = report_of(engine, plan, engine.apply(plan))
    engine.sandbox.set_faults([])
    back = planned_back(engine, report)
    assert [(change.action, change.address.name) for change in back.changes] == [("delete", "t")]
    assert not any("milestones" in request for request in engine.requests())


@pytest.mark.untraced
def test_client_keys_are_created_again_and_only_once(engine: EngineDriver) -> None:
    keys = "error_tracking_client_keys"
    engine.step(section(keys, {"count": 4}))
    plan = engine.plan(section(keys, {"count": 1}, prune=True))
    report = report_of(engine, plan, engine.apply(plan))
    engine.tokens.clear()
    back = planned_back(engine, report)
    assert [(each.action, each.address.name) for each in back.changes] == [
        ("create", "2"),
        ("create", "3"),
        ("create", "4"),
    ]
    assert failures(engine.apply(back)) == []
    assert list(engine.tokens) == ["2", "3", "4"]
    assert list(planned_back(engine, report).changes) == []


def test_of_two_tokens_of_one_name_one_is_created_again(engine: EngineDriver) -> None:
    state = engine.sandbox.state()
    state["projects"][0]["trigger_tokens"] = [{"id": n, "description": "t", "owner": "ada"} for n in (7, 8)]
    engine.sandbox.replace_state(state)
    plan = engine.plan(section("trigger_tokens", {"t": None}))
    report = report_of(engine, plan, engine.apply(plan))
    back = planned_back(engine, report)
    assert problems(back) == ["t.None: was deleted more than once, and is created again only once"]
    assert [each.action for each in back.changes] == ["create"]
    assert failures(engine.apply(back)) == []
    again = planned_back(engine, report)
    assert (list(again.changes), problems(again)) == ([], [])


def undone(engine: EngineDriver, wanted: Section, then: Section, *, verify: bool = True) -> tuple[list[str], list[str]]:
    """Apply a section, then another one as somebody else; return the changes and problems of the first's way back."""
    plan = engine.plan(wanted)
    report = report_of(engine, plan, engine.apply(plan, verify=verify))
    assert failures(engine.apply(engine.plan(then))) == []
    back = planned_back(engine, report)
    return [f"{each.action} {each.address.name}" for each in back.changes], problems(back)


def test_objects_that_others_renamed_or_deleted_are_left_alone(engine: EngineDriver) -> None:
    engine.step(section("milestones", {"a": {}, "b": {}, "c": {}}))
    wanted = {"new": {}, "a2": {"renamed_from": "a"}, "b": {"description": "ours"}, "c2": {"renamed_from": "c"}}
    theirs = {"theirs": {"renamed_from": "new"}, "a": {}, "b": None, "c3": {"renamed_from": "c2"}}
    assert undone(engine, section("milestones", wanted), section("milestones", theirs)) == (
        [],
        [
            'new.None: was renamed since the apply, to "theirs", and is not deleted',
            'a2.None: its former name "a" is taken',
            "b.None: no longer exists, so that its former values cannot be restored",
            'c2.None: was renamed since the apply, to "c3"',
        ],
    )


@pytest.mark.untraced
def test_an_object_that_others_created_anew_under_its_name_is_taken_for_it(engine: EngineDriver) -> None:
    engine.step(section("milestones", {"a": {}}))
    plan = engine.plan(section("milestones", {"a": {"description": "ours"}, "b": {}}))
    report = report_of(engine, plan, engine.apply(plan))
    engine.step(section("milestones", {"a": None, "b": None}))
    engine.step(section("milestones", {"a": {"description": "ours"}, "b": {}}))
    back = planned_back(engine, report)
    assert [(each.action, each.address.name) for each in back.changes] == [("update", "a"), ("delete", "b")]


@pytest.mark.untraced
@pytest.mark.parametrize("target", [USER, ACME, API], ids=str)
def test_single_events_are_restored_at_every_level(engine: EngineDriver, target: Target) -> None:
    def settings(value: dict[str, Any]) -> Section:
        return section("notification_settings", value, target)

    engine.step(settings({"level": "custom", "events": {"new_note": True, "failed_pipeline": False}}))
    before = visible_settings(engine, target)
    for wanted in ({"level": "custom", "events": {"new_note": False, "new_issue": True}}, {"level": "watch"}):
        plan = engine.plan(settings(wanted))
        back = planned_back(engine, report_of(engine, plan, engine.apply(plan)))
        assert (problems(back), failures(engine.apply(back))) == ([], [])
        assert visible_settings(engine, target) == before


def visible_settings(engine: EngineDriver, target: Target) -> Plain:
    """Return the notification settings that the service has there."""
    found = read_part(engine.client, KINDS["notification_settings"].parts[0], target, {})
    assert isinstance(found, LiveRecord)
    return dict(fields_of(found.resource))


def test_the_settings_of_an_account_whose_address_is_not_shown_cannot_all_be_restored(sandbox: Sandbox) -> None:
    with EngineDriver(sandbox, all_writes.service("spec")) as engine:
        accounts = section(
            "service_accounts", {"release-bot": {"name": "R", "email": "r@example.com"}}, Target(Level.INSTANCE)
        )
        plan = engine.plan(accounts)
        back = planned_back(engine, report_of(engine, plan, engine.apply(plan)))
        assert problems(back) == [
            "release-bot.email: its former value is unknown, because this server does not show it"
        ]


READ_AS = AsRead(7, ("acme/api/*",), {PUSH: "auditor", DELETE: None}, {})


def done(target: Target, section: str, change: Change, *, found: int = 0) -> TargetPlan:
    """Return a target of which one change is done."""
    planned = SectionPlan(section, found, (change,), outcomes=(Outcome(change, Status.DONE),))
    return target_plan(target, (planned,))


def test_a_value_that_this_version_does_not_know_cannot_be_restored() -> None:
    """Of what was updated and of what was deleted."""
    place = (API, RULES, RULES)
    at = Address(API, RULES, RULES, "protection rule", "acme/api/*")
    update = Update(at, {PUSH: "auditor"}, {PUSH: "owner"}, (), READ_AS)
    delete = Delete(at, {DELETE: "admin"}, (), replace(READ_AS, fields={PUSH: "auditor", DELETE: "admin"}))
    answer = {"id": 7, "repository_path_pattern": "acme/api/*", PUSH: "owner", DELETE: None}
    for change, now in ((update, [answer]), (delete, [])):
        reversal = Reversal([done(API, RULES, change, found=1)], KINDS, "digest")
        plan = reversal.plan(reversal.applied_state, live({place: now}), KINDS)
        assert problems(plan) == [f'acme/api/*.{PUSH}: its former value "auditor" is not known to this version']
        assert [each.action for each in plan.changes] == ([] if now else ["create"])


def test_a_target_that_was_created_stays_and_what_was_unknown_before_is_not_restored() -> None:
    place = (API, "approval_settings", "approval_settings")
    update = Update(Address(*place, "approval settings"), {}, {"allow_author_approval": False}, (), READ_AS)
    targets = [
        replace(done(API, "", Create(API.address, {"name": "api"}, ())), origin="api.yaml:1"),
        done(API, "approval_settings", update),
        done(LIB, "", Create(LIB.address, {"name": "lib"}, ())),
    ]
    reversal = Reversal(targets, KINDS, "digest")
    plan = reversal.plan(reversal.applied_state, live({place: approvals()}), KINDS)
    assert problems(plan) == [
        "approval settings.allow_author_approval: its former value is unknown, because it was planned before the target existed",
        *(
            f"{name}.None: created by the apply, and never deleted by reconciler: delete it yourself if nobody needs it"
            for name in ("acme/api", "acme/lib")
        ),
    ]
    assert not any(plan.changes)
    assert [each.origin for each in plan.targets] == ["api.yaml:1", ""]


def test_a_creation_whose_object_the_report_does_not_know_is_found_by_its_name() -> None:
    """So are those of reports of older versions."""
    place = (API, "trigger_tokens", "trigger_tokens")
    at = Address(API, "trigger_tokens", "trigger_tokens", "trigger token", "t")
    created = Create(at, {}, (), replaces_ids=(1,))
    reversal = Reversal([done(API, "trigger_tokens", created, found=1)], KINDS, "digest")

    def planned(*numbers: int) -> tuple[list[str], list[str]]:
        answers = [{"id": n, "description": "t", "token": f"glptt-{n}", "created_at": None} for n in numbers]
        plan = reversal.plan(reversal.applied_state, live({place: answers}), KINDS)
        return [str(request) for each in plan.changes for request in each.requests], problems(plan)

    assert planned(1) == ([], [])
    assert planned(1, 2) == (["DELETE projects/acme%2Fapi/triggers/2"], [])
    assert planned(1, 2, 3) == (
        [],
        ["t.None: several objects have this name, and the report does not tell which is new"],
    )


@pytest.mark.untraced
@pytest.mark.parametrize("name", ["503", "reset after"])
@pytest.mark.parametrize("kind", sorted({*KINDS} - {"scim_identities"}))
def test_whatever_went_wrong_what_was_done_is_undone(sandbox: Sandbox, kind: str, name: str) -> None:
    """Lasting faults, so that the answers of creations, updates and deletions stay lost."""
    sections = list(all_writes.wanted(kind))
    writes, _ = all_writes.undisturbed(sandbox, *sections)
    for method, path in dict.fromkeys(writes):
        with EngineDriver(sandbox, undoable(all_writes.service())) as engine:
            before = shown(engine, sandbox.state(), kind)
            plan = engine.plan(*sections)
            sandbox.set_faults([FAULTS[name] | {"method": method, "match": path}])
            outcomes = engine.apply(plan)
            sandbox.set_faults([])
            back = planned_back(engine, report_of(engine, plan, outcomes))
            told = [each for each in problems(back) if not each.endswith("deletes such objects in the background")]
            assert (told, failures(engine.apply(back))) == ([], [])
            assert shown(engine, sandbox.state(), kind) == before


@pytest.mark.untraced
@pytest.mark.parametrize("kind", sorted({*KINDS} - {"scim_identities"}))
def test_a_way_back_that_is_killed_at_any_write_is_finished_by_another(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    with EngineDriver(sandbox, undoable(all_writes.service())) as engine:
        before = shown(engine, sandbox.state(), kind)
        plan = engine.plan(*all_writes.wanted(kind))
        report = report_of(engine, plan, engine.apply(plan))
        after = sandbox.state()
        engine.apply(planned_back(engine, report))
        writes = sum(each["method"] != "GET" for each in sandbox.log())
    for kill, at_once in product(range(1, writes + 1), (False, True)):
        with EngineDriver(sandbox, after) as engine:
            back = planned_back(engine, report)
            with mortal(monkeypatch, kill, before=at_once), pytest.raises(Killed):
                engine.apply(back)
        with EngineDriver(sandbox, sandbox.state()) as engine:
            assert failures(engine.apply(planned_back(engine, report))) == []
            assert shown(engine, sandbox.state(), kind) == before, (kill, at_once)
