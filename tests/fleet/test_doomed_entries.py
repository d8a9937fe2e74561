"""Entries for groups whose deletion is scheduled: said where the group's record is read anyway, and no problem."""

import json
import re
from html import unescape

import pytest

from tests.cli_runner import CliRunner
from tests.items import findings_of
from tests.states import a_small_service

TOLD = "has been scheduled for deletion since 2026-11-20; name another group, or restore it"

SPEC = """
  job_token_scope: {enabled: true, groups: [acme/old]}
  protected_branches: {main: {allowed_to_merge: [developer, {group: acme/old}]}}
  approval_rules:
    a: {approvals_required: 1, groups: [acme, acme/old]}
    b: null
"""

SENTENCES = [
    f'allowlisted group "acme/old": {TOLD}',
    f'protected branch "main": allowed_to_merge: group acme/old {TOLD}',
    f'approval rule "a": groups: group acme/old {TOLD}',
]

REMARKS = f"""\
  ? allowlisted group "acme/old"              {TOLD}     manifests/project.yaml:5
  ? protected branch "main"                   allowed_to_merge: group acme/old {TOLD}     manifests/project.yaml:6
  ? approval rule "a"                         groups: group acme/old {TOLD}     manifests/project.yaml:8
"""

CHANGES = """\
Loosens protection:
project acme/api
  + allowlisted group "acme/old"              loosens     manifests/project.yaml:5
All else:
project acme/api
  + protected branch "main"                   allowed_to_merge: developer, group acme/old, allowed_to_push: maintainer, \
by default, allowed_to_unprotect: maintainer, by default, tightens     manifests/project.yaml:6
  + approval rule "a"                         approvals_required: 1, groups: acme, acme/old, branches: any, by default, \
tightens     manifests/project.yaml:8
"""

COST = "Plan: 3 to create, 1 loosening, 2 tightening. 3 writes to apply; 7 requests were made to plan.\n"

SECTIONS = [
    "GET projects/acme%2Fapi/approval_rules?per_page=100&page=1",
    "GET projects/acme%2Fapi/job_token_scope",
    "GET projects/acme%2Fapi/job_token_scope/groups_allowlist?per_page=100&page=1",
    "GET projects/acme%2Fapi/protected_branches?per_page=100&page=1",
]

ASKED = [
    "GET groups/acme%2Fold?with_projects=false",
    "GET groups/acme?with_projects=false",
    "GET projects/acme%2Fapi",
    *SECTIONS,
]

NOTE = f"""\
## Loosens 1 project, tightens 1. Plan: 3 to create, 1 loosening, 2 tightening

| section | create | update | delete | problems |
|---|---:|---:|---:|---:|
| `approval_rules` | 1 | 0 | 0 | 0 |
| `job_token_scope` | 1 | 0 | 0 | 0 |
| `protected_branches` | 1 | 0 | 0 | 0 |

3 writes to apply; 7 requests were made to plan.
Read from `URL` at TIME.

`project acme/api: {SENTENCES[0]}`

`project acme/api: {SENTENCES[1]}`

`project acme/api: {SENTENCES[2]}`

### Loosens protection

<details open>
<summary><code>project acme/api</code>: 1 to create</summary>

```diff
+ allowlisted group "acme/old"
!     loosens
```

</details>

### All else

<details open>
<summary><code>project acme/api</code>: 2 to create</summary>

```diff
+ protected branch "main"
+     allowed_to_merge: developer, group acme/old
+     allowed_to_push: maintainer, by default, allowed_to_unprotect: maintainer, by default
!     tightens
+ approval rule "a"
+     approvals_required: 1
+     groups: acme, acme/old
+     branches: any, by default
!     tightens
```

</details>
"""

JUNIT = f"""\
<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="1" failures="0" errors="0" time="0.000">
  <testsuite name="reconciler plan" tests="1" failures="0" errors="0" time="0.000" timestamp="TIME">
    <testcase classname="reconciler.project" name="project acme/api" file="manifests/project.yaml">
      <system-out>{SENTENCES[0]}
{SENTENCES[1]}
{SENTENCES[2]}</system-out>
    </testcase>
  </testsuite>
</testsuites>
"""


def finding(section: str, title: str, name: str, reason: str, line: int, field: str | None = None) -> dict[str, object]:
    """Return a finding as a document has it."""
    return {
        "target": "project acme/api", "section": section, "title": title, "name": name, "finding": "doomed",
        "field": field, "reason": reason, "fix": "name another group, or restore it",
        "origin": f"manifests/project.yaml:{line}",
    }  # fmt: skip


SINCE = "has been scheduled for deletion since 2026-11-20"
FINDINGS = [
    {**finding("job_token_scope", "allowlisted group", "acme/old", SINCE, 5), "part": "groups"},
    finding(
        "protected_branches",
        "protected branch",
        "main",
        f"allowed_to_merge: group acme/old {SINCE}",
        6,
        "allowed_to_merge",
    ),
    finding("approval_rules", "approval rule", "a", f"groups: group acme/old {SINCE}", 8, "groups"),
]


@pytest.fixture(autouse=True)
def _service(cli_runner: CliRunner) -> None:
    serve(cli_runner)
    cli_runner.project(SPEC)


def serve(cli_runner: CliRunner, path: str = "acme/old", day: str | None = "2026-11-20") -> None:
    """Give the sandbox a group whose deletion is scheduled; not every service renames such a group."""
    state = a_small_service("deployed")
    state["groups"].append({"id": 12, "path": path, "marked_for_deletion_on": day})
    state["projects"][0]["invited_groups"] = [{"group_id": 12, "role": "developer"}]
    cli_runner.sandbox.replace_state(state)
    cli_runner.sandbox.clear_log()


def asked(cli_runner: CliRunner) -> list[str]:
    """Return what was asked since the last call."""
    log = cli_runner.sandbox.log()
    cli_runner.sandbox.clear_log()
    return sorted(f"{each['method']} {each['target'].removeprefix('/api/v4/')}" for each in log)


def written(cli_runner: CliRunner, name: str) -> str:
    """Return what a file says, without what differs from run to run."""
    text = (cli_runner.folder / name).read_text().replace(cli_runner.sandbox.api_url, "URL")
    return re.sub(r"\d{4}-\d\d-\d\dT[\d:]+Z", "TIME", text)


def test_a_plan_says_which_entries_will_be_gone_and_asks_for_nothing_more(cli_runner: CliRunner) -> None:
    done = cli_runner("plan --report markdown=note.md --report html=page.html --out plan.json")
    assert (done.code, done.err, asked(cli_runner)) == (0, "", ASKED)
    assert done.out == CHANGES + REMARKS + COST
    assert written(cli_runner, "note.md") == NOTE
    (notes,) = re.findall(r'<ul class="notes">\n(.*?)\n</ul>', written(cli_runner, "page.html"), re.DOTALL)
    assert unescape(re.sub("<[^>]+>", "", notes)).splitlines() == [f"project acme/api: {said}" for said in SENTENCES]
    document = json.loads((cli_runner.folder / "plan.json").read_text())
    assert findings_of(document, "doomed") == FINDINGS
    done = cli_runner("apply --yes --plan plan.json")
    assert (done.code, done.err) == (0, "")
    assert done.out == (
        "project acme/api\n"
        '  + allowlisted group "acme/old"              done\n'
        '  + protected branch "main"                   done\n'
        '  + approval rule "a"                         done\n'
        f"{REMARKS}Applied: 3 created, 1 loosening, 2 tightening. 14 requests made.\n"
    )


def test_without_a_scheduled_deletion_the_same_is_asked_and_nothing_said(cli_runner: CliRunner) -> None:
    serve(cli_runner, day=None)
    assert (cli_runner("plan").out, asked(cli_runner)) == (CHANGES + COST, ASKED)


@pytest.mark.untraced
def test_what_is_in_order_is_no_drift_and_no_failure_whatever_will_be_gone(cli_runner: CliRunner) -> None:
    cli_runner("apply --yes")
    cli_runner.sandbox.clear_log()
    done = cli_runner("plan --report junit=tests.xml")
    assert done.out == f"project acme/api\n{REMARKS}No changes: 1 target is in order. 5 requests were made to plan.\n"
    assert (done.code, asked(cli_runner)) == (0, ["GET groups/12?with_projects=false", *SECTIONS])
    assert written(cli_runner, "tests.xml") == JUNIT
    assert cli_runner("plan --detailed-exitcode").code == cli_runner("drift").code == 0


@pytest.mark.untraced
def test_nobody_asks_for_the_group_of_an_entry_that_is_there(cli_runner: CliRunner) -> None:
    cli_runner.project("{job_token_scope: {groups: [acme/old]}}")
    assert cli_runner("apply --yes").code == 0
    cli_runner.sandbox.clear_log()
    assert cli_runner("plan").out == "No changes: 1 target is in order. 1 request was made to plan.\n"
    assert asked(cli_runner) == SECTIONS[2:3]


def test_a_group_that_was_renamed_for_its_deletion_stays_a_problem(cli_runner: CliRunner) -> None:
    serve(cli_runner, "acme/old-deletion_scheduled-12")
    cli_runner.project("{job_token_scope: {groups: [acme/old-deletion_scheduled-12]}}")
    done = cli_runner("plan")
    assert done.code == 3
    assert done.out == (
        "project acme/api\n"
        '  ! allowlisted group "acme/old-deletion_scheduled-12": scheduled for deletion, and called '
        "acme/old-deletion_scheduled-12 (ID 12) until then; restore it, or remove the entry     manifests/project.yaml:4\n"
        "Plan: 1 problem. 2 requests were made to plan.\n"
    )
