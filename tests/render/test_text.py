"""Plans, reports and validations as people read them."""

from dataclasses import replace
from datetime import date
from itertools import groupby
from unicodedata import category

import pytest
from hypothesis import given

from reconciler.document.document import RunDocument
from reconciler.document.guard import Limits
from reconciler.document.style import Style
from reconciler.document.wording import access_notes, deletions_text, excepted_note, guard_notes, rename_notes
from reconciler.errors import LocatedDiagnostic
from reconciler.model.item import (
    Change,
    Create,
    Delete,
    Status,
    Update,
    excepted_at,
    problem_at,
    target_of,
    unmanaged_at,
)
from reconciler.model.plan import Plan
from reconciler.model.protocols import Json
from reconciler.model.targets import Address, Level, Target
from reconciler.reports import render_plan, render_report, render_validation
from tests.building import READ, SectionPlan, noted, target_plan
from tests.render.plans import patiently, saved_plans
from tests.render.samples import API, LIB, done, sample, saved_plan, tree

NUMBERS = "Plan: 1 to create, 2 to update, 1 to delete, 1 problem, 3 unmanaged. 4 writes to apply; 8 requests were made to plan."


def test_a_plan_is_one_line_a_change_grouped_by_target() -> None:
    assert render_plan(sample()) == (
        "project acme/payments/api\n"
        '  + milestone "2026.12"                       due_date: 2026-12-31\n'
        "  ~ approval settings                         allow_author_approval: true -> false\n"
        '  ~ milestone "2026.11"                       renamed from "Nov 2026", state: active -> closed\n'
        '  - trigger token "legacy-integration"\n'
        "  ! approval settings.retain_approvals_on_push: locked by group acme; unlock it there or leave the field out\n"
        f"{NUMBERS}\n"
    )


def test_a_verbose_plan_names_requests_and_what_stays() -> None:
    assert render_plan(sample(), style=Style(verbose=True)) == (
        "project acme/payments/api\n"
        '  + milestone "2026.12"                       due_date: 2026-12-31\n'
        "      POST projects/acme%2Fpayments%2Fapi/milestones\n"
        "  ~ approval settings                         allow_author_approval: true -> false\n"
        "      PUT projects/acme%2Fpayments%2Fapi/merge_request_approval_setting\n"
        '  ~ milestone "2026.11"                       renamed from "Nov 2026", state: active -> closed\n'
        "      PUT projects/acme%2Fpayments%2Fapi/milestones/31\n"
        '  - trigger token "legacy-integration"\n'
        "      no use of it is recorded\n"
        "      its value no longer starts pipelines, and cannot be restored\n"
        "      DELETE projects/acme%2Fpayments%2Fapi/triggers/71\n"
        "  ! approval settings.retain_approvals_on_push: locked by group acme; unlock it there or leave the field out\n"
        '  ? milestone "Someday" is unmanaged          ID 32\n'
        "project acme/payments/lib\n"
        '  ? milestone "Old" is unmanaged              ID 42\n'
        '  ? milestone "Older" is unmanaged            ID 43\n'
        f"{NUMBERS}\n"
    )


def test_where_a_person_is_asked_deletions_stand_together_at_the_end() -> None:
    lines = render_plan(sample(), style=Style(deletions_last=True)).splitlines()
    assert lines[0] == "project acme/payments/api"
    assert lines[-3].startswith("  ! approval settings.retain_approvals_on_push")
    assert lines[-2:] == ['  - trigger token "legacy-integration"', NUMBERS]
    third = Target(Level.PROJECT, "acme/payments/web")
    names = {API: ["a", "b"], LIB: ["a"], third: ["a"]}
    gone = [
        Delete(Address(each, "milestones", "milestones", "milestone", name), {}, (), READ)
        for each in names
        for name in names[each]
    ]
    new = Create(Address(API, "milestones", "milestones", "milestone", "new"), {}, ())
    changes: list[Change] = [new, *gone]
    own = {each: tuple(change for change in changes if change.address.target == each) for each in names}
    targets = (target_plan(each, (SectionPlan("milestones", changes=found),)) for each, found in own.items())
    saved = saved_plan(Plan(tuple(targets)))
    assert render_plan(saved, style=Style(deletions_last=True)).splitlines()[:-1] == [
        "project acme/payments/api",
        '  + milestone "new"',
        "3 projects                                                           (acme/payments/api, acme/payments/lib and 1 more)",
        '  - milestone "a"',
        "project acme/payments/api",
        '  - milestone "b"',
    ]
    assert deletions_text(saved.changes) == "deletes 4 objects in 3 projects"
    of_a_group = replace(gone[0], address=replace(gone[0].address, target=Target(Level.GROUP, "acme")))
    assert deletions_text([gone[1], of_a_group]) == "deletes 2 objects in 1 group and 1 project"
    assert deletions_text([]) == ""


def test_a_verbose_plan_shows_whole_values() -> None:
    old, new = "x" * 100, "x" * 99 + "y"
    at = Address(API, "milestones", "milestones", "milestone", "a")
    update = Update(at, {"description": old, "list": ["z" * 90]}, {"description": new, "list": ["z" * 91]}, (), READ)
    changes = (Create(at, {"description": old}, ()), update, Delete(at, {"description": old}, (), READ))
    held = excepted_at(at, "update", {"description": old}, {"description": new}, until=date(2100, 1, 1), reason="later")
    plan = Plan((target_plan(API, (SectionPlan("milestones", 0, changes, (held,)),)),))
    text = render_plan(saved_plan(plan), style=Style(verbose=True))
    assert text.count(old) == 4
    assert text.count(new) == 2
    assert text.count("z" * 91) == 2
    assert "…" not in text
    assert "x" * 65 not in (short := render_plan(saved_plan(plan)))
    assert "1 excepted until 2100-01-01 at the earliest (-v shows them)\n" in short
    assert "until 2100" not in render_plan(saved_plan(plan), style=Style(quiet=True))


def test_the_summary_is_coloured_where_it_is_about_something() -> None:
    last = render_plan(sample(), style=Style(colour=True)).splitlines()[-1]
    assert last == (
        "\x1b[1mPlan:\x1b[0m \x1b[32m1 to create\x1b[0m, \x1b[33m2 to update\x1b[0m, \x1b[31m1 to delete\x1b[0m, "
        "\x1b[1;35m1 problem\x1b[0m, 3 unmanaged. 4 writes to apply; 8 requests were made to plan."
    )
    narrow = render_plan(sample(), style=Style(colour=True, width=40)).splitlines()
    assert narrow[-3:-1] == [
        "\x1b[1mPlan:\x1b[0m \x1b[32m1 to create\x1b[0m, \x1b[33m2 to update\x1b[0m, \x1b[31m1 to\x1b[0m",
        "\x1b[31mdelete\x1b[0m, \x1b[1;35m1 problem\x1b[0m, 3 unmanaged. 4 writes",
    ]
    refused = render_plan(replace(sample(), limits=Limits(max_changes=1)), style=Style(colour=True)).splitlines()
    assert refused[-2].startswith("\x1b[1;31mapply will refuse this plan: ")
    report = render_report(done((Status.FAILED, "400"), (Status.STALE, "moved")), style=Style(colour=True))
    assert [line[line.index("\x1b[0m  ") :].partition("  \x1b")[2] for line in report.splitlines()[1:3]] == [
        "[1;33mstale: moved\x1b[0m",
        "[1;31mfailed: 400\x1b[0m",
    ]
    assert report.splitlines()[3].endswith("\x1b[0m                       done")
    assert report.splitlines()[-1] == (
        "\x1b[1mApplied:\x1b[0m \x1b[33m1 updated\x1b[0m, \x1b[31m1 deleted\x1b[0m, \x1b[1;31m1 failed\x1b[0m, "
        "\x1b[1;33m1 stale\x1b[0m, \x1b[1;35m1 problem\x1b[0m. 15 requests made."
    )


def test_a_quiet_plan_tells_problems_and_numbers() -> None:
    assert render_plan(sample(), style=Style(quiet=True)) == (
        f"project acme/payments/api\n  ! approval settings.retain_approvals_on_push: locked by group acme; unlock it there or leave the field out\n{NUMBERS}\n"
    )


def test_what_is_too_wide_for_a_terminal_stands_below_its_label() -> None:
    assert render_plan(sample(), style=Style(width=76)) == (
        "project acme/payments/api\n"
        '  + milestone "2026.12"                       due_date: 2026-12-31\n'
        "  ~ approval settings\n"
        "        allow_author_approval: true -> false\n"
        '  ~ milestone "2026.11"\n'
        '        renamed from "Nov 2026"\n'
        "        state: active -> closed\n"
        '  - trigger token "legacy-integration"\n'
        "  ! approval settings.retain_approvals_on_push: locked by group acme; unlock\n"
        "    it there or leave the field out\n"
        "Plan: 1 to create, 2 to update, 1 to delete, 1 problem, 3 unmanaged. 4\n"
        "writes to apply; 8 requests were made to plan.\n"
    )


def test_a_problem_that_is_too_wide_goes_on_below_itself_in_its_colour() -> None:
    narrow = render_plan(sample(), style=Style(width=40, quiet=True, colour=True))
    assert narrow.splitlines()[1:3] == [
        "  \x1b[1;35m! approval\x1b[0m",
        "    \x1b[1;35msettings.retain_approvals_on_push:\x1b[0m",
    ]


@pytest.mark.untraced
def test_no_line_is_wider_than_the_terminal_unless_a_word_is() -> None:
    for width in range(80, 200, 10):
        for text in (
            render_plan(sample(), style=Style(width=width, verbose=True)),
            render_report(done((Status.FAILED, "400: " + "no " * 80)), style=Style(width=width)),
        ):
            assert max(map(len, text.splitlines())) <= width


def test_colour_repeats_what_the_markers_say() -> None:
    coloured = render_plan(sample(), style=Style(colour=True, verbose=True))
    assert coloured.splitlines()[:13] == [
        "\x1b[1mproject acme/payments/api\x1b[0m",
        '  \x1b[32m+ milestone "2026.12"\x1b[0m                       due_date: 2026-12-31',
        "      POST projects/acme%2Fpayments%2Fapi/milestones",
        "  \x1b[33m~ approval settings\x1b[0m                         allow_author_approval: true -> false",
        "      PUT projects/acme%2Fpayments%2Fapi/merge_request_approval_setting",
        '  \x1b[33m~ milestone "2026.11"\x1b[0m                       renamed from "Nov 2026", state: active -> closed',
        "      PUT projects/acme%2Fpayments%2Fapi/milestones/31",
        '  \x1b[31m- trigger token "legacy-integration"\x1b[0m',
        "      no use of it is recorded",
        "      its value no longer starts pipelines, and cannot be restored",
        "      DELETE projects/acme%2Fpayments%2Fapi/triggers/71",
        "  \x1b[1;35m! approval settings.retain_approvals_on_push: locked by group acme; unlock it there or leave the field out\x1b[0m",
        '  \x1b[2m? milestone "Someday" is unmanaged\x1b[0m          ID 32',
    ]


def test_a_plan_without_changes_is_one_line() -> None:
    assert render_plan(saved_plan(Plan((target_plan(API, ()),)))) == (
        "No changes: 1 target is in order. 8 requests were made to plan.\n"
    )


def test_one_request_is_one_request() -> None:
    created = Create(address("milestone", "x"), {}, next(sample().changes).requests)
    text = render_plan(replace(saved_plan(plan_of(created)), requests_made=1))
    assert text.endswith("\nPlan: 1 to create. 1 write to apply; 1 request was made to plan.\n")


def test_labels_tell_what_kind_of_name_a_name_is() -> None:
    assert lines_of(
        Create(address("allowlisted project", "acme/payments/lib"), {}, ()),
        Create(address("allowlisted project", 1234), {}, ()),
        Create(address("protection rule", "acme/payments/api/a-very-long-repository-name*"), {"level": "owner"}, ()),
    ) == [
        '  + allowlisted project "acme/payments/lib"',
        "  + allowlisted project 1234",
        '  + protection rule "acme/payments/api/a-very-long-repository-name*"  level: owner',
    ]


def test_a_target_that_cannot_be_seen_is_a_problem() -> None:
    gone = problem_at(Address(API, "", "", "project", "acme/payments/api"), "not found, or not visible to this token")
    plan = Plan((target_plan(API, (SectionPlan("").saying(gone),)),))
    assert render_plan(saved_plan(plan)).splitlines()[:2] == [
        "project acme/payments/api",
        "  ! project acme/payments/api: not found, or not visible to this token",
    ]


def test_what_a_deletion_loses_is_told_to_those_who_ask() -> None:
    deleted = Delete(address("milestone", "x"), {"state": "closed", "due_date": None, "description": "Old"}, (), READ)
    assert lines_of(deleted) == ['  - milestone "x"']
    assert lines_of(deleted, verbose=True) == [
        '  - milestone "x"                             state: closed, description: Old'
    ]


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (True, "true"),
        (7, "7"),
        (None, "none"),
        ("2026-12-31", "2026-12-31"),
        ("December release", "December release"),
        ("it's here", "it's here"),
        ("größer", "größer"),
        ("", '""'),
        (" blank ", '" blank "'),
        ("true", '"true"'),
        ("None", '"None"'),
        ("2026.12", '"2026.12"'),
        ("-1e5", '"-1e5"'),
        ("[1]", '"[1]"'),
        ("{x}", '"{x}"'),
        ("a, b", '"a, b"'),
        ("a -> b", '"a -> b"'),
        ('say "x"', '"say \\"x\\""'),
        ("one\ntwo\t\r", '"one\\ntwo\\t\\r"'),
        ("\x1b[31mred\x9b0m\x7f", '"\\u001b[31mred\\u009b0m\\u007f"'),
        ("abc\u202edef\u2066\ufeff", '"abc\\u202edef\\u2066\\ufeff"'),
        ("a\u2028b\u2029", '"a\\u2028b\\u2029"'),
        ("\ue000\U000e0041", '"\\ue000\\udb40\\udc41"'),
        ("\ud800", '"\\ud800"'),
        ("##vso[x]##[y]###[z] ## z", '"#\\u0023vso[x]#\\u0023[y]##\\u0023[z] ## z"'),
        ("x" * 64, "x" * 64),
        ("x" * 65, '"' + "x" * 63 + '…"'),
        (["b", 1], "b, 1"),
        ({"a": {"\u202e": None}}, "a: \\u202e: none"),
    ],
)
def test_values_are_plain_where_nobody_can_mistake_them(value: Json, shown: str) -> None:
    changed = Update(address("milestone", "x"), {"field": "before"}, {"field": value}, (), READ)
    (line,) = lines_of(changed)
    (hinted,) = lines_of(replace(changed, notes=noted(hint="the service may refuse this")))
    assert hinted == f"{line}, the service may refuse this"
    assert line == f'  ~ milestone "x"                             field: before -> {shown}'


def test_long_texts_are_shown_where_they_differ() -> None:
    before = "The December release, with all that the team has finished since the November release, no more."
    assert details({"description": before}, {"description": before.replace("no more", "and a gift")}) == (
        'description: "…er release, no more." -> "…er release, and a gift."'
    )
    assert details({"description": before}, {"description": before.replace("December", "May")}) == (
        'description: "The December release, with all that the team has finished since…" -> '
        '"The May release, with all that the team has finished since the …"'
    )


def test_the_inside_of_nested_values_is_told_place_by_place() -> None:
    before = {"rules": [{"name": "a", "level": 1}, {"name": "b"}], "gone": "not present"}
    after = {"rules": [{"name": "a", "level": 2}], "new": "x\u202e"}
    assert details({"policy": before}, {"policy": after}) == (
        'policy.gone: not present -> none, policy.new: none -> "x\\u202e", policy.rules[0].level: 1 -> 2, '
        "policy.rules[1]: name: b -> none"
    )
    assert details({"policy": None}, {"policy": [1]}) == "policy: none -> 1"


def test_the_lines_of_a_text_that_change_are_told_to_those_who_ask() -> None:
    before, after = "Goals\n- fast\n- small\n", "Goals\n- fast\n- \x1b[1mtiny"
    changed = Update(
        address("milestone", "x"), {"description": before, "n": 1}, {"description": after, "n": 2}, (), READ
    )
    assert lines_of(changed, verbose=True) == [
        '  ~ milestone "x"                             '
        'description: "Goals\\n- fast\\n- small\\n" -> "Goals\\n- fast\\n- \\u001b[1mtiny", n: 1 -> 2',
        "      description - - small",
        "      description + - \\u001b[1mtiny",
    ]


def test_nothing_that_is_read_can_steer_a_terminal() -> None:
    evil = "\x1b]0;owned\x07\n\u202e"
    quoted = "\\u001b]0;owned\\u0007\\n\\u202e"
    target = Target(Level.PROJECT, f"acme/{evil}")
    name = Address(target, "milestones", "milestones", evil, evil)
    section = SectionPlan(
        "x",
        0,
        (Create(name, {evil: evil}, ()),),
        (problem_at(name, evil, evil, evil, evil), unmanaged_at(name, 7, True, evil, evil)),
    )
    text = render_plan(saved_plan(Plan((target_plan(target, (section,)),))), style=Style(verbose=True))
    assert text.splitlines()[:5] == [
        f"project acme/{quoted}",
        f'  + {quoted} "{quoted}"  {quoted}: "{quoted}"',
        f'  ! {quoted} "{quoted}".{quoted}: {quoted}; {quoted}     {quoted}',
        f'  ? {quoted} "{quoted}" is unmanaged  ID 7, owner {quoted}, last used {quoted}',
        "1 unmanaged object grants access: 1 in milestones; declare it, or write prune: [milestones] to delete it",
    ]


@pytest.mark.untraced
@patiently
@given(saved_plans())
def test_whatever_the_plan_there_is_a_line_for_each_change_and_no_special_character(saved: RunDocument) -> None:
    text = render_plan(saved)
    widened = {target: [*found] for target, found in groupby(saved.findings("widened"), target_of)}
    lines = [[*each.changes, *each.problems, *widened.get(each.target, ())] for each in tree(saved).targets]
    shown = [own for own in lines if own]
    entries = [entry for own in lines for entry in own]
    notes = [*rename_notes(saved), *guard_notes(saved), *access_notes(saved), *filter(None, [excepted_note(saved)])]
    assert text.count("\n") == len(shown) + len(entries) + len(notes) + 1
    assert {category(each) for each in text.replace("\n", "")}.isdisjoint({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})


def test_a_report_tells_what_became_of_each_change() -> None:
    report = done((Status.DROPPED, "the service kept its own level"), (Status.FAILED, "POST x: 400\x1b"))
    numbers = "Applied: 1 updated, 1 deleted, 1 failed, 1 dropped by the service, 1 problem. 15 requests made.\n"
    assert render_report(report) == (
        "project acme/payments/api\n"
        '  + milestone "2026.12"                       failed: POST x: 400\\u001b\n'
        "  ~ approval settings                         dropped by the service: the service kept its own level\n"
        '  ~ milestone "2026.11"                       done\n'
        '  - trigger token "legacy-integration"        done\n'
        "  ! approval settings.retain_approvals_on_push: locked by group acme; unlock it there or leave the field out\n"
        + numbers
    )
    assert render_report(report, style=Style(quiet=True)) == (
        "project acme/payments/api\n"
        '  + milestone "2026.12"                       failed: POST x: 400\\u001b\n'
        "  ~ approval settings                         dropped by the service: the service kept its own level\n"
        "  ! approval settings.retain_approvals_on_push: locked by group acme; unlock it there or leave the field out\n"
        + numbers
    )
    assert render_report(report, style=Style(verbose=True)).splitlines()[1:3] == [
        '  + milestone "2026.12"                       failed: POST x: 400\\u001b',
        "      POST projects/acme%2Fpayments%2Fapi/milestones",
    ]


ERROR = LocatedDiagnostic("a.yaml", 3, 5, "unknown key `enabeld`; did you mean `enabled`?", "    enabeld: true")
WARNING = LocatedDiagnostic("b.yaml", 0, 0, "is empty", severity="warning")


def test_a_deletion_that_failed_is_told_on_a_quiet_terminal_too() -> None:
    report = done(*[(Status.DONE, "")] * 3, (Status.FAILED, "403 Forbidden"))
    assert render_report(report, style=Style(quiet=True, deletions_last=True)).splitlines()[:-1] == [
        "project acme/payments/api",
        "  ! approval settings.retain_approvals_on_push: locked by group acme; unlock it there or leave the field out",
        '  - trigger token "legacy-integration"        failed: 403 Forbidden',
    ]


def test_faults_are_shown_with_the_line_and_a_caret() -> None:
    assert render_validation([ERROR, WARNING], {}) == (
        "a.yaml:3:5: unknown key `enabeld`; did you mean `enabled`?\n"
        "        enabeld: true\n"
        "        ^\n"
        "b.yaml: warning: is empty\n"
        "Not valid: 1 error, 1 warning.\n"
    )


def test_valid_manifests_are_counted() -> None:
    read = {"group": 1, "set": 2, "profile": 2}
    assert render_validation([WARNING], {"project": 1}) == (
        "b.yaml: warning: is empty\nValid: 1 document: 1 project; 1 warning.\n"
    )
    assert render_validation([], read) == "Valid: 5 documents: 1 group, 2 sets, 2 profiles.\n"
    assert render_validation([], {}) == "Valid: 0 documents.\n"
    assert render_validation([WARNING], {}, style=Style(quiet=True)) == "b.yaml: warning: is empty\n"


def test_a_caret_stands_below_its_column_even_behind_what_is_escaped() -> None:
    fault = LocatedDiagnostic("a\x1b.yaml", 1, 5, "odd\n", "\t\x1b  x")
    assert render_validation([fault], {}) == (
        "a\\u001b.yaml:1:5: odd\\n\n    \\t\\u001b  x\n              ^\nNot valid: 1 error.\n"
    )


def test_colour_marks_places_and_severities() -> None:
    assert render_validation([ERROR, WARNING], {}, style=Style(colour=True)) == (
        "\x1b[1ma.yaml:3:5\x1b[0m: unknown key `enabeld`; did you mean `enabled`?\n"
        "        enabeld: true\n"
        "        \x1b[1;31m^\x1b[0m\n"
        "\x1b[1mb.yaml\x1b[0m: \x1b[1;33mwarning\x1b[0m: is empty\n"
        "Not valid: 1 error, 1 warning.\n"
    )


def address(title: str, name: str | int) -> Address:
    """An object of a project."""
    return Address(API, "milestones", "milestones", title, name)


def plan_of(*changes: Change) -> Plan:
    """A plan of some changes to one project."""
    return Plan((target_plan(API, (SectionPlan("milestones", 0, changes),)),))


def lines_of(*changes: Change, verbose: bool = False) -> list[str]:
    """The lines of some changes, without the project above and the numbers below."""
    return render_plan(saved_plan(plan_of(*changes)), style=Style(verbose=verbose)).splitlines()[1:-1]


def details(before: dict[str, Json], after: dict[str, Json]) -> str:
    """What is said of an update."""
    (line,) = lines_of(Update(address("milestone", "x"), before, after, (), READ))
    return line.removeprefix('  ~ milestone "x"').strip()
