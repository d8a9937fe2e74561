"""Notes for merge requests: what they say, what fits, and that no string of others' becomes Markdown, HTML or more."""

import re
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import example, given
from markdown_it import MarkdownIt
from markdown_it.token import Token

from reconciler.document.document import RunDocument, with_findings
from reconciler.document.style import Style
from reconciler.document.wording import widening_notes
from reconciler.errors import LocatedDiagnostic
from reconciler.model.item import Finding, Status, problem_at
from reconciler.model.plan import Plan
from reconciler.model.targets import Address
from reconciler.reports import render_plan, render_report, render_validation
from reconciler.reports.markdown import MAX_NOTE_LENGTH, NoteBlock, code, fitted
from tests.building import SectionPlan, target_plan
from tests.render.hostile import EVIL, evil, hostile
from tests.render.many import carried_out, many
from tests.render.plans import patiently, reports, saved_plans
from tests.render.samples import API, EMPTY, about, done, sample, saved_plan

EACH = Style(group_by="target")


def test_a_plan_begins_with_numbers_and_problems() -> None:
    assert render_plan(sample(), "markdown") == (
        """\
## Plan: 1 to create, 2 to update, 1 to delete, 1 problem

| section | create | update | delete | problems |
|---|---:|---:|---:|---:|
| `approval_settings` | 0 | 1 | 0 | 1 |
| `milestones` | 1 | 1 | 0 | 0 |
| `trigger_tokens` | 0 | 0 | 1 | 0 |

4 writes to apply; 8 requests were made to plan. 3 unmanaged.
Read from `https://git.example.com/api/v4` at 2026-12-01T12:00:00Z.

### 1 problem

- `project acme/payments/api`: `approval settings.retain_approvals_on_push: locked by group acme; unlock it there or leave the field out`

<details open>
<summary><code>project acme/payments/api</code>: 1 to create, 2 to update, 1 to delete</summary>

```diff
+ milestone "2026.12"
+     due_date: 2026-12-31
~ approval settings
-     allow_author_approval: true
+     allow_author_approval: false
~ milestone "2026.11"
-     name: "Nov 2026"
+     name: "2026.11"
-     state: active
+     state: closed
- trigger token "legacy-integration"
-     no use of it is recorded
-     its value no longer starts pipelines, and cannot be restored
```

</details>
"""
    )


def test_a_plan_without_changes_says_so() -> None:
    saved = replace(about(EMPTY, [target_plan(API, ())]), requests_made=1)
    assert render_plan(saved, "markdown") == (
        """\
## No changes: 1 target is in order

1 request was made to plan.
Read from `https://git.example.com/api/v4` at 2026-12-01T12:00:00Z.
"""
    )


def test_many_changes_are_shown_by_a_click() -> None:
    assert render_plan(many(10), "markdown").count("<details open>\n") == 2
    assert render_plan(many(15), "markdown", EACH).count("<details>\n") == 3


def test_a_report_begins_with_what_is_not_done() -> None:
    report = done((Status.DROPPED, "the service kept its own level"), (Status.FAILED, ""))
    assert render_report(report, "markdown") == (
        """\
## Applied: 1 updated, 1 deleted, 1 failed, 1 dropped by the service, 1 problem

| section | created | updated | deleted | unfinished | problems |
|---|---:|---:|---:|---:|---:|
| `approval_settings` | 0 | 0 | 0 | 1 | 1 |
| `milestones` | 0 | 1 | 0 | 1 | 0 |
| `trigger_tokens` | 0 | 0 | 1 | 0 | 0 |

15 requests made.
Written to `https://git.example.com/api/v4` from 2026-12-01T12:00:00Z to 2026-12-01T12:01:00Z.

### 2 unfinished changes

- `project acme/payments/api`: create `milestone "2026.12"`: failed
- `project acme/payments/api`: update `approval settings`: dropped by the service: `the service kept its own level`

### 1 problem

- `project acme/payments/api`: `approval settings.retain_approvals_on_push: locked by group acme; unlock it there or leave the field out`

<details>
<summary><code>project acme/payments/api</code>: 1 updated, 1 deleted</summary>

```diff
~ milestone "2026.11"
-     name: "Nov 2026"
+     name: "2026.11"
-     state: active
+     state: closed
- trigger token "legacy-integration"
-     no use of it is recorded
-     its value no longer starts pipelines, and cannot be restored
```

</details>
"""
    )


def test_a_report_of_nothing_says_so() -> None:
    empty = carried_out(saved_plan(Plan(())))
    assert render_report(empty, "markdown").startswith("## Applied: nothing to change\n\n4,900 requests made.\n")
    waited = replace(empty, requests=replace(empty.made, waited={"the rate limit": 61.24, "a retry": 0.04, "`x`": 1}))
    assert "\n4,900 requests made; waited `61.2 s for the rate limit`, `` 1.0 s for `x` ``.\n" in render_report(
        waited, "markdown"
    )


def test_a_target_that_cannot_be_seen_is_a_problem_of_the_whole_target() -> None:
    gone = problem_at(Address(API, "", "", "project", "acme/payments/api"), "not found, or not visible to this token")
    plan = Plan((target_plan(API, (SectionPlan("").saying(gone),)),))
    assert "\n| whole target | 0 | 0 | 0 | 1 |\n" in render_plan(saved_plan(plan), "markdown")


ERROR = LocatedDiagnostic("a.yaml", 3, 5, "unknown key `enabeld`; did you mean `enabled`?", "    enabeld: true")
WARNING = LocatedDiagnostic("0.yaml", 0, 0, "is empty", severity="warning")


def test_a_validation_tells_errors_first_by_file() -> None:
    assert render_validation([WARNING, ERROR], {}, "markdown") == (
        """\
## Not valid: 1 error, 1 warning

<details open>
<summary><code>a.yaml</code>: 1 error</summary>

```text
error 3:5: unknown key `enabeld`; did you mean `enabled`?
  |     enabeld: true
  |     ^
```

</details>

<details>
<summary><code>0.yaml</code>: 1 warning</summary>

```text
warning: is empty
```

</details>
"""
    )


def test_what_is_valid_is_counted() -> None:
    assert render_validation([], {"project": 2}, "markdown") == "## Valid: 2 documents: 2 projects\n"
    assert render_validation([WARNING], {"project": 2}, "markdown").startswith("## Valid: 1 warning\n\n<details>\n")


def test_equal_changes_of_a_large_fleet_are_a_short_note() -> None:
    plan = many(3335, problems=560)
    first = ", ".join(f"`{seen.target.ref}`" for seen in plan.targets[:50])
    assert render_plan(plan, "markdown") == (
        f"""\
## Plan: 667 to create, 2,001 to update, 667 to delete, 560 problems

**`apply will refuse this plan: it deletes 667 objects, more than 20; add --allow-deletes 667`**

| section | create | update | delete | problems |
|---|---:|---:|---:|---:|
| `approval_settings` | 0 | 667 | 0 | 560 |
| `milestones` | 667 | 1334 | 0 | 0 |
| `trigger_tokens` | 0 | 0 | 667 | 0 |

3,335 writes to apply; 8 requests were made to plan. 667 unmanaged.
Read from `https://git.example.com/api/v4` at 2026-12-01T12:00:00Z.

### 560 problems

- 560 projects (`acme/team-0/service-0, globex/team-1/service-1 and 558 more`): `approval settings.retain_approvals_on_push: locked by group acme; unlock it there or leave the field out`
  <details><summary>50 of 560</summary>

  {first} and 510 more: `--group-by target` shows each

  </details>

<details open>
<summary>667 projects (<code>acme/team-0/service-0&#44; globex/team-1/service-1 and 665 more</code>), each: 1 to create, 3 to update, 1 to delete</summary>

{first} and 617 more: `--group-by target` shows each

```diff
+ milestone "2026.01"
+     due_date: 2026-01-28
+     description: "Release 1.\\n- fast\\n- tiny\\n"
~ approval settings
-     allow_author_approval: true
+     allow_author_approval: false
-     require_password_to_approve: false
+     require_password_to_approve: true
~ milestone "2026.02"
-     due_date: 2026-02-27
+     due_date: 2026-02-28
-     description: "Release 2.\\n- fast\\n- small\\n"
+     description: "Release 2.\\n- fast\\n- tiny\\n"
~ milestone "2026.03"
-     due_date: 2026-03-27
+     due_date: 2026-03-28
-     description: "Release 3.\\n- fast\\n- small\\n"
+     description: "Release 3.\\n- fast\\n- tiny\\n"
- trigger token "legacy-integration"
-     description: legacy-integration
```

</details>
"""
    )
    note = render_report(carried_out(plan, every=2), "markdown")
    assert note.count("\n") < 200
    assert (
        '- 333 projects (`globex/team-1/service-1, acme/team-3/service-3 and 331 more`): create `milestone "2026.01"`: '
        "failed: `PUT projects/7/milestones/3: 500 Internal Server Error`\n"
    ) in note


@pytest.mark.untraced
def test_a_note_that_is_too_long_counts_exactly_what_it_leaves_out() -> None:
    note = render_plan(many(5000, problems=9), "markdown", EACH)
    (left_out,) = re.findall(r"\*\*Shortened: ([\d,]+) of 5,000 changes left out here\.\*\*", note)
    shown = len(re.findall(r'^[-+~] [a-z ]+(?: ".*")?$', note, re.MULTILINE))
    assert (shown + int(left_out.replace(",", "")), note.count("\n- `")) == (5000, 9)
    assert MAX_NOTE_LENGTH * 0.98 < len(note) <= MAX_NOTE_LENGTH
    assert note.endswith("```\n\n</details>\n")


@pytest.mark.untraced
def test_when_not_even_the_problems_fit_no_change_is_shown() -> None:
    note = render_report(carried_out(many(5000, problems=1000), every=2), "markdown", EACH)
    (failures,) = re.findall(r"\*\*Shortened: ([\d,]+) of 2,500 unfinished changes, 1,000 of 1,000 problems, ", note)
    assert note.count("\n- `") + int(failures.replace(",", "")) == 2500
    assert "2,500 of 2,500 changes left out here.** The other reports of this run have all of it.\n\n### 2,500" in note
    assert "<details" not in note
    assert len(note) <= MAX_NOTE_LENGTH


@pytest.mark.parametrize(("limit", "shown"), [(2035, 2), (2034, 1), (1535, 1), (1534, 0)])
def test_a_note_may_have_just_so_many_characters(limit: int, shown: int) -> None:
    blocks = [NoteBlock("thing", ("x" * 999 + "\n", "x" * 999 + "\n"), "#"), NoteBlock("other", (), "#")]
    note = fitted(blocks, limit, title="h" * 23)
    assert note.count("x\n") == shown
    assert (f"**Shortened: {2 - shown} of 2 things left out here.**" in note) is (shown < 2)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "`plain`"),
        ("", "` `"),
        ("a`b``c", "```a`b``c```"),
        ("`", "`` ` ``"),
        (" x", "`  x `"),
        ("@all", "`@all`"),
        ("x" * 301, f"`{'x' * 299}…`"),
        ("a\n/close", "`a\\n/close`"),
        ("##vso[x]", "`#\\u0023vso[x]`"),
    ],
)
def test_code_is_code_whatever_it_holds(text: str, shown: str) -> None:
    assert code(text) == shown


RENDERER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
MARKUP = {"inline", "fence", "html_block", "heading", "paragraph", "table", "thead", "tbody", "tr", "th", "td"}
LISTS = {"bullet_list", "list_item"}
PLAIN = re.compile(r"[\w ,.:;()-]*")
HTML = re.compile(
    r"<details( open)?>\n<summary>(<code>([\w ./-]|&#\d+;|…)*</code>: [\w ,]+"
    r"|[\d,]+ excepted until [\d-]+ at the earliest)</summary>\n|<details><summary>(all|50 of) [\d,]+</summary>\n|</details>\n"
)


def assert_harmless(note: str) -> None:
    """Nothing but what we write ourselves is Markdown; all else is code, and no line begins with it."""
    for token in RENDERER.parse(note):
        assert token.type.removesuffix("_open").removesuffix("_close") in MARKUP | LISTS, token
        if token.type == "html_block":
            assert HTML.fullmatch(token.content), token.content
        for child in token.children or []:
            assert_plain(child)
    assert [line for line in note.split("\n") if re.match(r"\s*(/|@|##\w*\[|::)", line)] == []
    assert "\x1b" not in note
    assert "\u202e" not in note


def assert_plain(token: Token) -> None:
    assert token.type in {"text", "code_inline", "softbreak", "strong_open", "strong_close"}, token
    if token.type == "text":
        assert PLAIN.fullmatch(token.content), token.content


@pytest.mark.untraced
@patiently
@given(evil)
@example(EVIL)
def test_no_string_is_more_than_text(text: str) -> None:
    saved = hostile(text)
    assert_harmless(render_plan(saved, "markdown"))
    assert_harmless(render_report(carried_out(saved, 2), "markdown"))
    fault = LocatedDiagnostic(text, 3, 2, text, text)
    assert_harmless(render_validation([fault, LocatedDiagnostic(text, 0, 0, text, "", "warning")], {}, "markdown"))


@pytest.mark.untraced
@patiently
@given(saved_plans(), reports())
def test_whatever_the_plan_the_note_is_harmless(saved: RunDocument, report: RunDocument) -> None:
    assert_harmless(render_plan(saved, "markdown"))
    assert_harmless(render_report(report, "markdown"))


def test_every_string_is_shown_as_it_is() -> None:
    tokens = RENDERER.parse(render_plan(hostile("a`b|*c*"), "markdown"))
    codes = {child.content for token in tokens for child in token.children or [] if child.type == "code_inline"}
    assert codes == {
        "a`b\\u007c*c*",
        "a`b|*c*",
        "project a`b|*c*",
        'a`b|*c* "a`b|*c*".a`b|*c*: a`b|*c*; a`b|*c*',
        "1 unmanaged object grants access: 1 in a`b|*c*; declare it, or write prune: [a`b|*c*] to delete it",
    }


def test_groups_are_in_the_order_of_the_plan() -> None:
    names = re.findall("service-([0-9]+)<", render_plan(many(100), "markdown", EACH))
    assert all(int(one) + 1 == int(next_) for one, next_ in pairwise(names))


def test_of_many_objects_that_hold_for_more_five_are_named() -> None:
    at = [Address(API, "approval_rules", "approval_rules", "approval rule", f"r{number}") for number in range(7)]
    widened = [Finding(address, "widened", "it applies to all branches then") for address in at]
    plans = (with_findings(EMPTY, *widened[:number]) for number in (5, 6, 7))
    first, second, third = ([*widening_notes(plan)] for plan in plans)
    assert first[4:] == ['approval rule "r4" of project acme/payments/api: it applies to all branches then']
    assert (second[5:], third[5:]) == (
        ["1 more object will apply more widely"],
        ["2 more objects will apply more widely"],
    )
