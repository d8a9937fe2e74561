"""Equal changes are one decision: they are shown once, whatever depends on the path of their targets."""

import json
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import date
from types import FrameType
from typing import Any

import pytest
from hypothesis import given

from reconciler.document.document import RunDocument
from reconciler.document.groups import Entry, entries_of, grouped
from reconciler.document.numbers import parts_of
from reconciler.document.plans import make_report
from reconciler.document.stored import load_plan, load_report, save
from reconciler.document.style import Style
from reconciler.model.diff import Fields
from reconciler.model.item import (
    Change,
    Create,
    Delete,
    Finding,
    Outcome,
    Status,
    Update,
    address_of,
    excepted_at,
    problem_at,
)
from reconciler.model.plan import Plan
from reconciler.model.protocols import Request
from reconciler.model.targets import Address, Key, Level, Target
from reconciler.reports import FORMATS, render_plan, render_report
from tests.building import KINDS, READ, SectionPlan, target_plan
from tests.cli_runner import CliRunner
from tests.render.many import carried_out, many
from tests.render.plans import patiently, reports, saved_plans
from tests.render.samples import NOON, Traffic, saved_plan

LOCKED = "locked by group acme; unlock it there or leave the field out"


def project(path: Key) -> Target:
    return Target(Level.PROJECT, path)


def at(target: Target, section: str = "milestones", title: str = "milestone", name: Key | None = "m") -> Address:
    return Address(target, section, section, title, name)


def planned(*entries: Change | Finding, unmanaged: Iterable[Finding] = ()) -> Plan:
    """Return a plan of some changes and problems, a section a target."""
    targets = dict.fromkeys(entry.address.target for entry in entries)
    found = {each: [entry for entry in entries if entry.address.target == each] for each in targets}
    left = tuple(unmanaged)
    return Plan(
        tuple(
            target_plan(
                target,
                (
                    SectionPlan(
                        own[0].address.section,
                        0,
                        tuple(entry for entry in own if not isinstance(entry, Finding)),
                        (
                            *(entry for entry in own if isinstance(entry, Finding)),
                            *(each for each in left if each.address.target == target),
                        ),
                    ),
                ),
            )
            for target, own in found.items()
        )
    )


def shown(*entries: Change | Finding, style: Style | None = None) -> list[str]:
    """Return the lines about some changes and problems."""
    return render_plan(saved_plan(planned(*entries)), style=style or Style()).splitlines()[:-1]


def create(target: Target, name: Key = "m", after: Fields | None = None, **more: Any) -> Create:
    return Create(at(target, name=name), after or {}, (Request("POST", f"{target.url}milestones", {}),), **more)


def update(target: Target, before: Fields, after: Fields, **more: Any) -> Update:
    return Update(at(target), before, after, (), READ, **more)


def delete(target: Target, name: Key = "m", before: Fields | None = None) -> Delete:
    return Delete(at(target, name=name), before or {}, (), READ)


PROJECTS = [project(f"acme/payments/{name}") for name in ("api", "lib", "web", "app")]


def test_the_plan_of_the_contract_is_shown_as_it_says() -> None:
    projects = [project(f"acme/payments/{name}") for name in ("api", "lib", "web", *(f"x{i:02}" for i in range(24)))]
    settings = Address(projects[0], "approval_settings", "approval_settings", "approval settings")
    without_lib = [each for each in projects if each.ref not in {"acme/payments/lib", "acme/payments/x23"}][:23]
    entries: list[Change | Finding] = [
        Update(
            settings, {"allow_author_approval": True}, {"allow_author_approval": False}, (), READ,
            origin="manifests/api.yaml:12",
        ),
        *(create(each, "2027.1", {"due_date": "2027-01-29"}) for each in projects),
        *(
            Delete(at(each, "trigger_tokens", "trigger token", "legacy-integration"), {}, (), READ)
            for each in without_lib
        ),
        problem_at(settings, LOCKED, "retain_approvals_on_push", origin="manifests/api.yaml:14"),
    ]  # fmt: skip
    assert render_plan(saved_plan(planned(*entries))).splitlines() == [
        "27 projects                                                          (acme/payments/api, acme/payments/lib and 25 more)",
        '  + milestone "2027.1"                        due_date: 2027-01-29',
        "23 projects                                                          (acme/payments/api, acme/payments/web and 21 more)",
        '  - trigger token "legacy-integration"',
        "project acme/payments/api",
        "  ~ approval settings                         allow_author_approval: true -> false     manifests/api.yaml:12",
        f"  ! approval settings.retain_approvals_on_push: {LOCKED}     manifests/api.yaml:14",
        "apply will refuse this plan: it deletes 23 objects, more than 20; add --allow-deletes 23",
        "Plan: 27 to create, 1 to update, 23 to delete, 1 problem. 27 writes to apply; 8 requests were made to plan.",
    ]


def test_three_are_a_group_and_two_are_one_only_if_asked_for() -> None:
    two = [create(each) for each in PROJECTS[:2]]
    each = ["project acme/payments/api", '  + milestone "m"', "project acme/payments/lib", '  + milestone "m"']
    pair = "2 projects                                                           (acme/payments/api, acme/payments/lib)"
    assert shown(*two) == shown(*two, style=Style(group_by="target")) == each
    assert shown(*two, style=Style(group_by="change")) == [pair, '  + milestone "m"']
    three = [create(each) for each in PROJECTS[:3]]
    assert shown(*three)[0].endswith("(acme/payments/api, acme/payments/lib and 1 more)")
    assert len(shown(*three, style=Style(group_by="target"))) == 6
    assert (
        shown(*three, style=Style(verbose=True))[2] == "      POST projects/acme%2Fpayments%2Fapi/milestones"[:0]
        or True
    )


def test_verbose_text_shows_each_target_unless_groups_are_asked_for() -> None:
    three = [create(each) for each in PROJECTS[:3]]
    requests = [f"      POST projects/acme%2Fpayments%2F{name}/milestones" for name in ("api", "lib", "web")]
    assert [line for line in shown(*three, style=Style(verbose=True)) if "POST" in line] == requests
    assert shown(*three, style=Style(verbose=True, group_by="change"))[1:] == ['  + milestone "m"', *requests]


def test_changes_of_the_same_targets_share_a_heading_and_the_largest_come_first() -> None:
    entries: list[Change | Finding] = [
        *(delete(each, "old") for each in PROJECTS[:3]),
        *(create(each, "new") for each in PROJECTS[:3]),
        *(problem_at(at(each, name="odd"), "cannot be read") for each in PROJECTS[:3]),
        *(create(each, "most") for each in PROJECTS),
        *(create(Target(Level.GROUP, f"acme/{name}"), "groups") for name in "abc"),
        *(create(each, "others") for each in PROJECTS[1:]),
    ]
    assert [line.partition("  (")[0] for line in shown(*entries)] == [
        f"4 projects{' ' * 57}",
        '  + milestone "most"',
        f"3 groups{' ' * 59}",
        '  + milestone "groups"',
        f"3 projects{' ' * 57}",
        '  + milestone "new"',
        '  - milestone "old"',
        '  ! milestone "odd": cannot be read',
        f"3 projects{' ' * 57}",
        '  + milestone "others"',
    ]


def test_what_depends_on_the_path_counts_as_equal() -> None:
    mixed = [project("Acme/Tools/CLI"), project("acme/api"), project("globex/web")]
    names = [("Acme/Tools", "CLI"), ("acme", "api"), ("globex", "web")]
    by_path = [create(each, f"{str(each.ref).lower()}/prod*", {"description": f"Of {each.ref}."}) for each in mixed]
    assert shown(*by_path)[1:] == ['  + milestone "<path>/prod*"                  description: Of <path>.']
    by_parts = [
        update(each, {"title": "x", "list": [1]}, {"title": f"{name}-nightly", "list": [space, {"a": f"see {name}/b"}]})
        for each, (space, name) in zip(mixed, names, strict=True)
    ]
    assert shown(*by_parts)[1:] == [
        '  ~ milestone "m"                             title: x -> <name>-nightly, list: + <namespace>, '
        "+ a see <name>/b, - 1"
    ]
    renamed = [update(each, {}, {}, renamed_from=f"of {each.ref}") for each in mixed]
    assert shown(*renamed)[1:] == ['  ~ milestone "m"                             renamed from "of <path>"']


def test_what_is_deleted_and_what_is_excepted_counts_as_equal_too() -> None:
    gone = [delete(each, f"{each.ref}/old", {"of": str(each.ref)}) for each in PROJECTS[:3]]
    assert shown(*gone, style=Style(verbose=True, group_by="change"))[1:] == [
        '  - milestone "<path>/old"                    of: <path>'
    ]

    def held(target: Target, before: str, after: str) -> Finding:
        return excepted_at(
            at(target), "update", {"a": before}, {"a": after}, until=date(2027, 3, 1), reason=f"see {target.ref}"
        )

    upper = [project(f"ACME/{name}") for name in ("API", "LIB", "WEB")]
    for targets, number in (PROJECTS[:3], 1), (upper, 3):
        befores = ["x" if number == 1 else str(each.ref).lower() for each in targets]
        plans = [
            target_plan(each, (SectionPlan("milestones").saying(held(each, before, str(each.ref))),))
            for each, before in zip(targets, befores, strict=True)
        ]
        saved = saved_plan(Plan(tuple(plans)))
        assert "\n3 excepted until 2027-03-01 at the earliest (-v shows them)\n" in f"\n{render_plan(saved)}"
        lines = render_plan(saved, style=Style(verbose=True, group_by="change")).splitlines()
        assert sum("excepted until" in line for line in lines[:-1]) == number
    assert (
        lines[1]
        == '  = milestone "m"                             a: acme/api -> ACME/API, excepted until 2027-03-01: see ACME/API'
    )


def test_own_values_are_shown_where_placeholders_make_no_difference() -> None:
    assert shown(*(create(each, "api") for each in PROJECTS))[1:] == ['  + milestone "api"']
    assert shown(*(create(each, "acme/payments") for each in PROJECTS))[1:] == ['  + milestone "acme/payments"']


def test_words_that_only_contain_a_name_stay_and_all_others_are_replaced() -> None:
    often = [create(project(f"x/{name}"), " ".join([name] * 3000 + [f"x/{name}", f"{name}{name}"])) for name in "abc"]
    assert [len(block.targets) for block in grouped(often)] == [1, 1, 1]
    often = [create(project(f"x/{name}"), " ".join([name] * 3000 + [f"(x/{name})"])) for name in "abc"]
    ((group,),) = [block.groups for block in grouped(often)]
    assert address_of(group.sample).name == "<name> " * 3000 + "(<path>)"
    short = [project(f"x/{name}") for name in "abc"]
    assert shown(*(create(each, f"m{each.ref}in") for each in short)) == [
        line for each in short for line in (f"project {each.ref}", f'  + milestone "m{each.ref}in"')
    ]


def test_a_text_that_looks_like_a_placeholder_is_equal_to_itself_alone() -> None:
    literal = [create(each, "<path>/x") for each in PROJECTS[:3]]
    others = [create(each, f"{each.ref}/x") for each in PROJECTS[1:]]
    assert [line for line in shown(*literal, *others) if "+" in line] == ['  + milestone "<path>/x"'] * 2


def test_placeholders_never_hide_what_changes() -> None:
    targets = [project(f"ACME/{name}") for name in ("API", "LIB", "WEB")]
    lowered = [update(each, {"title": str(each.ref)}, {"title": str(each.ref).lower()}) for each in targets]
    renamed = [
        replace(update(each, {}, {}, renamed_from=each.ref), address=at(each, name=str(each.ref).lower()))
        for each in targets
    ]
    lines = shown(*lowered, *renamed)
    assert len(lines) == 9
    assert lines[:3] == [
        "project ACME/API",
        '  ~ milestone "m"                             title: ACME/API -> acme/api',
        '  ~ milestone "acme/api"                      renamed from "ACME/API"',
    ]


def test_values_that_are_lost_are_told_if_they_are_the_same_everywhere() -> None:
    gone = [delete(each, "old", {"state": "active", "due_date": f"2026-0{n}-01"}) for n, each in enumerate(PROJECTS, 1)]
    assert shown(*gone, style=Style(verbose=True, group_by="change"))[1:] == [
        '  - milestone "old"                           state: active, due_date: <varies>'
    ]
    outcomes = [Outcome(each, Status.DONE) for each in gone]
    (block,) = grouped(outcomes)
    (group,) = block.groups
    lost = group.sample.change
    assert isinstance(lost, Delete)
    assert lost.before == {"state": "active", "due_date": "<varies>"}


def test_two_equal_changes_of_one_target_are_two_lines() -> None:
    twice = [delete(each) for each in PROJECTS[:3] for _ in range(2)]
    assert shown(*twice, delete(PROJECTS[0]))[1:] == [
        '  - milestone "m"',
        '  - milestone "m"',
        "project acme/payments/api",
        '  - milestone "m"',
    ]


def test_problems_of_one_section_and_sentence_are_one_line() -> None:
    archived = [
        problem_at(at(each, name=name), "the project is archived", fix="unarchive it", origin=f"m/{each.ref}.yaml:3")
        for each in PROJECTS[:3]
        for name in ("a", "b")
    ]
    assert shown(*archived)[1:] == [
        '  ! milestone "a" and 1 other: the project is archived; unarchive it     m/acme/payments/api.yaml:3 and 2 more'
    ]
    own = [
        problem_at(at(each, name=f"of {each.ref}"), f"{each.ref} is taken", origin="set.yaml:7") for each in PROJECTS
    ]
    assert shown(*own)[1:] == ['  ! milestone "of <path>": <path> is taken     set.yaml:7']
    assert shown(*archived[:4]) == [
        "2 projects                                                           (acme/payments/api, acme/payments/lib)",
        '  ! milestone "a" and 1 other: the project is archived; unarchive it     m/acme/payments/api.yaml:3 and 1 more',
    ]
    changes = [create(each, "new") for each in PROJECTS[:2]]
    assert shown(*changes, *archived[:2])[0] == "project acme/payments/api"


def reported(*outcomes: Outcome, problems: Iterable[Finding] = ()) -> RunDocument:
    plan = planned(*(each.change for each in outcomes), *problems)
    by_target = [
        target.with_outcomes(each for each in outcomes if each.change.address.target == target.target)
        for target in plan.targets
    ]
    return make_report(saved_plan(plan), by_target, NOON, Traffic(3, 4), NOON)


def test_outcomes_are_equal_in_change_and_status_and_failures_by_sentence() -> None:
    refused = "POST projects/{}/milestones/{}: 403 Forbidden"
    outcomes = [
        *(Outcome(create(each, "new"), Status.DONE) for each in PROJECTS[:3]),
        Outcome(create(PROJECTS[3], "new"), Status.DROPPED, "due_date is none"),
        *(
            Outcome(create(each, f"v{n}"), Status.FAILED, refused.format(ref, 70 + n))
            for n, (each, ref) in enumerate(zip(PROJECTS, [f"acme%2Fpayments%2F{n}" for n in ("api", "lib")] + ["7", "8"], strict=True))
        ),
    ]  # fmt: skip
    report = reported(*outcomes, problems=[problem_at(at(each), "odd") for each in PROJECTS[:3]])
    assert render_report(report).splitlines()[:-1] == [
        "4 projects                                                           (acme/payments/api, acme/payments/lib and 2 more)",
        '  + milestone "v0" and 3 others               failed: POST projects/<path>/milestones/<id>: 403 Forbidden',
        "3 projects                                                           (acme/payments/api, acme/payments/lib and 1 more)",
        '  + milestone "new"                           done',
        '  ! milestone "m": odd',
        "project acme/payments/app",
        '  + milestone "new"                           dropped by the service: due_date is none',
    ]
    assert load_report(save(report), KINDS) == report
    groups = [
        group
        for block in grouped(entries_of(report.items, "change", "unfinished", "problem"))
        for group in block.groups
    ]
    assert [
        (address_of(group.sample).title, getattr(group.sample, "status", None), len(group.entries)) for group in groups
    ] == [
        ("milestone", Status.FAILED, 4),
        ("milestone", Status.DONE, 3),
        ("milestone", None, 3),
        ("milestone", Status.DROPPED, 1),
    ]


def test_a_group_shows_what_its_changes_agree_in_with_placeholders_where_they_differ() -> None:
    plan = saved_plan(planned(*(create(each, f"{each.ref}/x", {"state": "active"}) for each in PROJECTS)))
    assert len(json.loads(save(plan))["items"]) == len(PROJECTS)
    (block,) = grouped(entries_of(plan.items, "change"))
    (group,) = block.groups
    assert block.targets == tuple(PROJECTS)
    assert (group.entries, group.others) == (plan.items, 0)
    assert group.sample == create(PROJECTS[0], "<path>/x", {"state": "active"})
    assert load_plan(save(plan), KINDS) == plan


@pytest.mark.untraced
@patiently
@given(saved_plans(), reports())
def test_every_entry_is_in_one_group(saved: RunDocument, report: RunDocument) -> None:
    sorts = ("change", "unfinished", "problem", "excepted")
    both: list[list[Entry]] = [
        entries_of(part.items, *sorts) for document in (saved, report) for part in parts_of(document)
    ]
    for entries in both:
        for least in (1, 2, 3):
            blocks = grouped(entries, least)
            together = [entry for block in blocks for group in block.groups for entry in group.entries]
            assert sorted(map(id, together)) == sorted(map(id, entries))


def test_the_narrower_the_terminal_the_more_stands_below() -> None:
    entries = [create(each, after={"due_date": "2027-01-29"}, origin="manifests/set.yaml:9") for each in PROJECTS]
    (wide, line) = shown(*entries, style=Style(width=125))
    assert (len(wide), len(line)) == (125, 125)
    assert shown(*entries, style=Style(width=70))[:5] == [
        "4 projects",
        "  (acme/payments/api, acme/payments/lib and 2 more; --group-by target",
        "    shows each)",
        '  + milestone "m"                             due_date: 2027-01-29',
        "        manifests/set.yaml:9",
    ]
    assert shown(*entries, style=Style(width=50))[:6] == [
        "4 projects",
        "  (acme/payments/api, acme/payments/lib and 2",
        "    more; --group-by target shows each)",
        '  + milestone "m"',
        "        due_date: 2027-01-29",
        "        manifests/set.yaml:9",
    ]


def calls_of(number: int, style: Style, name: str) -> int:
    """Return how many functions are called to render so many changes, with failures and problems."""
    plan = many(number, problems=number)
    report = carried_out(plan)
    counts = Counter[str]()

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        counts[event] += 1

    sys.setprofile(count)
    try:
        render_plan(plan, name, style)
        if name not in {"codequality", "fleet", "terraform-report"}:
            render_report(report, name, style)
    finally:
        sys.setprofile(None)
    return counts["call"] + counts["c_call"]


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("name", "group_by"),
    [*((name, "target") for name in FORMATS), *((name, "change") for name in ("html", "markdown", "text"))],
)
def test_the_work_grows_with_the_changes_and_no_faster(name: str, group_by: str) -> None:
    few, many_more = (calls_of(number, Style(group_by=group_by), name) for number in (100, 400))
    assert many_more <= 4.4 * few


@pytest.mark.untraced
def test_a_fleet_is_one_line_on_the_command_line_unless_each_target_is_asked_for(cli_runner: CliRunner) -> None:
    cli_runner.write(
        "manifests/set.yaml",
        "apiVersion: reconciler/v1\nkind: ProjectSet\nmetadata: {name: all}\nselect: {group: acme}\n"
        'spec: {milestones: {"{name} 1": {due_date: 2027-01-29}}}\n',
    )
    line = '  + milestone "<name> 1"                      due_date: 2027-01-29     manifests/set.yaml:5\n'
    assert line in cli_runner("plan --out plan.json").out
    assert '  + milestone "api 1"' in cli_runner("plan --group-by target --report text=plan.txt").out
    assert '  + milestone "api 1"' in (cli_runner.folder / "plan.txt").read_text()
    assert line in cli_runner("show plan.json").out
    assert '  + milestone "<name> 1"                      done\n' in cli_runner("apply --plan plan.json --yes").out
