"""Objects that are no longer declared: which are deleted, why the others stay, and what has left."""

from dataclasses import replace
from typing import Any

from reconciler.memory.absence import (
    CommitPosition,
    KeptObject,
    LastApplied,
    PartNow,
    absent,
    decide,
    departures,
    is_declared,
    part_now,
    reasons,
    stale_absences,
    undeclared,
)
from reconciler.memory.inventory import Inventory, ObjectLine, TargetLine
from reconciler.model.endpoints import Collection
from reconciler.model.state import Unreadable
from reconciler.model.targets import Level, Target
from tests.building import API, KINDS, desired, live, section
from tests.inventory.test_text import FIRST, SECOND, SERVICE


def milestone(id_: int, name: str, at: str = FIRST, target: str = "project 7") -> ObjectLine:
    return ObjectLine(target, "milestones", "milestones", name, id_, at)


def token(id_: int, name: str, target: str = "project 7") -> ObjectLine:
    return ObjectLine(target, "trigger_tokens", "trigger_tokens", name, id_, FIRST)


def allowed(id_: int, name: str | int, part: str = "projects") -> ObjectLine:
    return ObjectLine("project 7", "job_token_scope", part, name, id_, FIRST)


def listed(*lines: ObjectLine, applied: str = SECOND) -> Inventory:
    return Inventory(SERVICE, applied, objects={line.key: line for line in lines})


def now(kind: str, value: Any, answer: Any, part: str = "", **more: Any) -> PartNow:
    """Return what is declared and live of one collection of project 7."""
    name = part or kind
    collection = KINDS[kind].part(name)
    assert isinstance(collection, Collection)
    state = live({(API, kind, name): answer})
    return part_now("project 7", section(kind, value), collection, state.parts[API, kind, name], **more)


def shown(id_: int, title: str) -> dict[str, Any]:
    return {"id": id_, "iid": id_, "title": title, "state": "active", "project_id": 7}


def test_what_is_listed_live_and_no_longer_declared_is_a_candidate() -> None:
    answer = [shown(1, "kept"), shown(2, "dropped"), shown(3, "old"), shown(4, "stranger"), shown(5, "new name")]
    lines = [
        milestone(1, "kept"),
        milestone(2, "dropped"),
        milestone(3, "old"),
        milestone(5, "5"),
        milestone(6, "gone"),
    ]
    part = now("milestones", {"kept": {}, "new": {"renamed_from": "old"}, "never": None}, answer)
    assert absent(listed(*lines, token(2, "dropped")), [part]) == (
        (milestone(2, "dropped"),),
        (KeptObject(milestone(5, "5"), "the service shows the object by another name"),),
    )


def test_nothing_is_a_candidate_where_the_list_is_not_whole() -> None:
    part = now("milestones", {"kept": {}, "new": {"renamed_from": "old"}}, Unreadable("GET ...: 403"))
    declared = milestone(3, "kept"), milestone(4, "old")
    candidates, stays = absent(listed(milestone(2, "b"), milestone(1, "a"), *declared), [part])
    assert candidates == ()
    assert reasons(stays) == ["2 objects no longer declared stay: the section could not be listed whole"]


def test_an_allowlist_entry_is_known_by_its_id() -> None:
    """A project that was renamed is the same entry, whichever of its names is declared."""
    entries = [{"id": 30, "path_with_namespace": "acme/renamed"}, {"id": 31, "path_with_namespace": "acme/lib"}]
    lines = listed(allowed(30, "acme/old"), allowed(31, "acme/lib"), allowed(32, "acme/gone"))
    declared = {"projects": ["acme/lib"]}
    assert absent(lines, [now("job_token_scope", declared, entries, "projects")])[0] == (allowed(30, "acme/old"),)
    found = now("job_token_scope", {"projects": ["acme/lib", "acme/old"]}, entries, "projects", ids={"acme/old": 30})
    assert absent(lines, [found]) == ((), ())


def test_an_entry_shown_without_a_path_stays_while_a_declared_path_may_be_it() -> None:
    lines = listed(allowed(40, "acme/tools", "groups"))
    declared = {"groups": ["acme/Ops"]}
    unresolved = now("job_token_scope", declared, [{"id": 40}], "groups")
    assert absent(lines, [unresolved])[1] == (
        KeptObject(allowed(40, "acme/tools", "groups"), "the section could not be listed whole"),
    )
    resolved = now("job_token_scope", declared, [{"id": 40}], "groups", ids={"acme/ops": 41})
    assert absent(lines, [resolved])[0] == (allowed(40, "acme/tools", "groups"),)


def test_history_decides() -> None:
    commits = {standing: f"{number}" * 40 for number, standing in enumerate(CommitPosition, 1)}
    lines = [milestone(number, "a", at) for number, at in enumerate([*commits.values(), ""], 1)]
    positions = {commit: standing for standing, commit in commits.items()}
    lines.append(milestone(9, "forged", commits[CommitPosition.CONTAINED]))
    verdict = decide(lines, positions, lambda line: line.name == "a")
    assert verdict.proved == (lines[0],)
    assert reasons(verdict.kept) == [
        "1 object no longer declared stays: declared at 2222222, which this branch does not contain",
        "1 object no longer declared stays: declared at 3333333, which this branch does not contain",
        "1 object no longer declared stays: declared at 4444444, which this branch does not contain",
        "1 object no longer declared stays: declared at 5555555, which is not in this clone: fetch the history",
        "1 object no longer declared stays: the manifests at 1111111 do not declare it",
        "1 object no longer declared stays: the manifests that declared it were never committed",
    ]


def test_a_run_with_other_inputs_deletes_nothing_and_reads_no_history() -> None:
    verdict = decide(
        [milestone(1, "a"), milestone(2, "b")], {}, lambda _line: 1 / 0 > 0, "this run has values of its own"
    )
    assert verdict.proved == ()
    assert reasons(verdict.kept) == ["2 objects no longer declared stay: this run has values of its own"]


def test_manifests_declare_an_object_by_its_name_for_its_target() -> None:
    then = desired(
        section("milestones", {" 2026.12 ": {}, "never": None}),
        section("job_token_scope", {"enabled": True, "projects": ["acme/Lib"]}),
    )
    known = {API.identity}
    assert is_declared(milestone(1, "2026.12"), known, then, KINDS)
    assert is_declared(allowed(1, "Acme/lib"), known, then, KINDS)
    assert not is_declared(milestone(1, "2026.12"), set(), then, KINDS)
    assert not is_declared(milestone(1, "never"), known, then, KINDS)
    assert not is_declared(milestone(1, "another"), known, then, KINDS)
    assert not is_declared(allowed(1, "acme/lib", "groups"), known, then, KINDS)
    assert not is_declared(allowed(1, "enabled", "enabled"), known, then, KINDS)
    assert not is_declared(token(1, "2026.12"), known, then, KINDS)
    assert not is_declared(replace(token(1, "x"), section="webhooks"), known, then, KINDS)


def test_a_deletion_is_stale_once_its_line_is_gone_or_newer_manifests_were_applied() -> None:
    planned = [milestone(1, "a"), milestone(2, "b")]
    keys = [line.key for line in planned]
    inventory = listed(milestone(2, "b"))
    assert stale_absences(keys, inventory, LastApplied(SECOND, CommitPosition.CONTAINED)) == {
        planned[0].key: "the inventory no longer lists it: plan again"
    }
    newer = "newer manifests were applied, bbbbbbb: run `git pull`, or a new pipeline"
    ahead = LastApplied(SECOND, CommitPosition.AHEAD)
    assert stale_absences(keys, inventory, ahead) == dict.fromkeys(keys, newer)
    assert stale_absences(keys, listed(*planned), LastApplied("", CommitPosition.CONTAINED)) == {}


def test_what_has_left_is_counted() -> None:
    lines = [
        *(token(number, "a", f"project {number}") for number in range(1, 4)),
        milestone(4, "b", target="project 1"),
        milestone(9, "a", target="group 9"),
        milestone(5, "a"),
        milestone(6, "b"),
        token(7, "a"),
        allowed(8, "acme/lib"),
        milestone(10, "a", target="group 7"),
        milestone(11, "archived", target="project 11"),
    ]
    declared = {("project 7", "milestones", "milestones"), ("project 7", "job_token_scope", "groups")}
    inventory = replace(listed(*lines), targets={"group 7": TargetLine("group 7")})
    assert departures(inventory, declared, unknown={"project 11"}) == [
        "3 projects are no longer declared; their 4 objects stay",
        "2 groups are no longer declared; their 2 objects stay",
        "job_token_scope.projects of 1 project is no longer declared; its 1 object stays "
        "(`job_token_scope: {projects: []}` deletes it)",
        "trigger_tokens of 1 project is no longer declared; its 1 object stays (`trigger_tokens: {}` deletes it)",
    ]
    both = {("project 7", "x", "x"), ("group 7", "x", "x")}
    assert departures(listed(milestone(1, "a"), milestone(2, "a", target="group 7")), both) == [
        "milestones of 1 project and 1 group is no longer declared; its 2 objects stay (`milestones: {}` deletes them)"
    ]
    assert departures(listed(milestone(1, "a", target="group 5")), ()) == [
        "1 group is no longer declared; its 1 object stays"
    ]


def test_what_only_an_earlier_state_declares_is_counted_where_the_section_is_still_declared() -> None:
    lib = Target(Level.PROJECT, "acme/lib")
    then = desired(
        section("milestones", {"a": {}, "b": {}, "c": {}, "never": None}),
        section("trigger_tokens", {"t": {}}),
        section("job_token_scope", {"projects": ["acme/lib", "acme/web"], "groups": ["acme"], "enabled": True}),
        section("approval_settings", {"allow_author_approval": True}),
        section("milestones", {"a": {}}, lib),
    )
    now_declared = desired(
        section("milestones", {"new": {"renamed_from": "a"}, "b": None}),
        section("job_token_scope", {"projects": ["Acme/Web"], "enabled": True}),
        section("approval_settings", {"allow_author_approval": True}),
    )
    assert undeclared(now_declared, then, KINDS) == 2, "milestone c and project acme/lib"
    pruned = desired(section("milestones", {}, prune=True))
    assert undeclared(pruned, then, KINDS) == 0
    assert undeclared(then, then, KINDS) == 0
