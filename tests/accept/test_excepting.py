"""`accept --until`: differences become exceptions, also those that a new lock brings to an old fleet."""

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.cli_runner import CliRunner

UNTIL = "accept --until 2099-03-01 --reason OPS-12"

SCOPE = {"project_allowlist": [99]}

LOCKED = """\
apiVersion: reconciler/v1
kind: Profile
metadata:
  name: baseline
  locks: {approval_settings: [allow_author_approval], job_token_scope: [projects]}
spec:
  approval_settings: {allow_author_approval: false}
  job_token_scope: {projects: [acme/lib]}
---
apiVersion: reconciler/v1
kind: ProjectSet
metadata: {name: all, profiles: [baseline]}
select: {group: acme}
spec: {}
"""

OWN = """\
apiVersion: reconciler/v1
kind: Project
metadata: {path: acme/p%d}
spec:
  # Settled with the team.
  approval_settings: {allow_author_approval: true, retain_approvals_on_push: true}
"""


def fleet(cli_runner: CliRunner, number: int, **more: Any) -> None:
    """Give the service a group with projects whose authors may approve, and a library."""
    live = {"allow_author_approval": True, "retain_approvals_on_push": True}
    projects = [
        {"id": 100 + each, "path": f"acme/p{each}", "merge_request_approval_settings": live, **more}
        for each in range(number)
    ]
    settled = {"allow_author_approval": False}
    lib = {"id": 99, "path": "acme/lib", "merge_request_approval_settings": settled, "job_token_scope": SCOPE}
    cli_runner.sandbox.replace_state(
        {
            "instance": {"enforce_job_token_allowlist": False, "dialect": "deployed"},
            "users": [{"id": 2, "username": "ada", "tokens": ["ada-token"], "emails": ["ada@example.com"]}],
            "groups": [{"id": 10, "path": "acme", "members": [{"user": "ada", "role": "owner"}]}],
            "projects": [lib, *projects],
        }
    )


@pytest.mark.untraced
def test_a_new_lock_is_brought_into_an_old_fleet_by_one_command(cli_runner: CliRunner) -> None:
    fleet(cli_runner, 30, job_token_scope=SCOPE)
    cli_runner.write("manifests/baseline.yaml", LOCKED)
    for number in range(30):
        cli_runner.write(f"manifests/p{number}.yaml", OWN % number)
    refused = cli_runner("validate")
    assert refused.code == 1
    assert refused.out.count("allow_author_approval is locked to false by profile baseline") == 1
    assert refused.out.count("the same at manifests/p") == 29
    assert refused.out.count("reconciler accept --until DAY --reason TEXT --only-locks") == 1
    assert cli_runner("accept").code == 1

    done = cli_runner(UNTIL)
    assert (done.code, done.err.splitlines()[-1]) == (0, "30 differences excepted until 2099-03-01; 30 files written.")
    assert (
        (cli_runner.folder / "manifests/p7.yaml").read_text()
        == """\
apiVersion: reconciler/v1
kind: Project
metadata:
  path: acme/p7
  exceptions:
    - {section: approval_settings, fields: [allow_author_approval], until: 2099-03-01, reason: OPS-12}
spec:
  # Settled with the team.
  approval_settings: {retain_approvals_on_push: true}
"""
    )
    named = (
        "manifests/p0.yaml:6:7: warning: this exception covers approval_settings.allow_author_approval, locked by profile "
        "baseline (manifests/baseline.yaml:5:31); the same at 29 other places, which -v shows\n"
    )
    valid = cli_runner("validate")
    assert (valid.code, valid.out.count("warning: "), valid.out[: len(named)]) == (0, 1, named)
    assert cli_runner("validate -v").out.count("warning: ") == 30
    planned = cli_runner("plan --detailed-exitcode")
    assert (planned.code, planned.err, "30 excepted" in planned.out) == (0, "", True)
    assert (cli_runner(UNTIL).out, cli_runner(UNTIL).code) == ("", 0)

    today = datetime.now(UTC).date()
    for number in range(30):
        file = cli_runner.folder / f"manifests/p{number}.yaml"
        file.write_text(file.read_text().replace("2099-03-01", str(today)))
    ends = f"manifests/p0.yaml:6:76: warning: this exception expires on {today}: its differences will be changes afterwards; "
    planned = cli_runner("plan")
    assert (planned.err.count("warning: "), planned.err[: len(ends)]) == (1, ends)
    assert cli_runner("plan -v").err.count("warning: ") == 30


@pytest.mark.untraced
def test_of_a_selection_only_its_own_locks_count(cli_runner: CliRunner) -> None:
    """The others are for their own teams to mend: a template that breaks one, and a section that is not looked at."""
    fleet(cli_runner, 4, job_token_scope=SCOPE)
    cli_runner.write("manifests/baseline.yaml", LOCKED)
    for number in range(3):
        own = (OWN % number) + "  job_token_scope: {projects: [acme/p0]}\n"
        cli_runner.write(f"manifests/p{number}.yaml", own)
    cli_runner.write("manifests/p3.yaml.j2", OWN % 3)
    narrowed = cli_runner(f"{UNTIL} --target acme/p1 --section approval_settings")
    assert (narrowed.code, narrowed.out) == (0, "manifests/p1.yaml\n")
    assert narrowed.err.splitlines()[-1] == "1 difference excepted until 2099-03-01; 1 file written."
    left = [line.partition(":")[0] for line in cli_runner("validate -v").out.splitlines() if " is locked " in line]
    assert left == [
        f"manifests/{name}" for name in ("p0.yaml", "p0.yaml", "p1.yaml", "p2.yaml", "p2.yaml", "p3.yaml.j2")
    ]
    whole = cli_runner(UNTIL)
    errors = [line for line in whole.err.splitlines() if " is locked " in line]
    assert (whole.code, whole.out, len(errors)) == (1, "", 1)
    assert errors[0].startswith(
        "reconciler: manifests/p3.yaml.j2:6:46: approval_settings.allow_author_approval is locked "
    )


def test_where_a_lock_is_all_that_is_new_nothing_else_is_excepted(cli_runner: CliRunner) -> None:
    live = {"job_token_scope": SCOPE | {"inbound_enabled": False}, "milestones": [{"title": "by hand"}]}
    fleet(cli_runner, 3, **live)
    more = "  milestones: {old: {state: closed}, kept: {description: ours}}\n  trigger_tokens: {t: {}}\n"
    locked = LOCKED.replace("[projects]}", "[projects], milestones: [kept, old], notification_settings: [events]}")
    locked = locked.replace("spec:\n", "spec:\n  milestones: {kept: {description: theirs}, old: {state: active}}\n", 1)
    cli_runner.write(
        "manifests/baseline.yaml",
        locked.replace(
            "[acme/lib]}\n", "[acme/lib]}\n  notification_settings: {level: custom, events: {new_note: true}}\n", 1
        ),
    )
    cli_runner.write("manifests/p0.yaml", OWN % 0 + more)
    cli_runner.write("manifests/p1.yaml", OWN % 1 + "  job_token_scope: {enabled: true, projects: [acme/p0]}\n")
    events = "  notification_settings: {events: {new_note: false}}\n"
    cli_runner.write(
        "manifests/p2.yaml", (OWN % 2).replace("  approval", "  milestones: {mine: {}}\n  approval") + events
    )
    done = cli_runner(f"{UNTIL} --only-locks")
    assert (done.code, done.err) == (0, "6 differences excepted until 2099-03-01; 3 files written.\n")
    assert cli_runner("validate").code == 0
    planned = cli_runner("plan -v").changes.splitlines()
    assert [line.partition(", excepted")[0] for line in planned if line.startswith("  = ")] == [
        "  = approval settings                         allow_author_approval: true -> false",
        '  = milestone "kept"                          not created',
        '  = milestone "old"                           not created',
        "  = approval settings                         allow_author_approval: true -> false",
        "  = notification settings                     events.new_note: none -> true",
        "  = approval settings                         allow_author_approval: true -> false",
    ]
    assert planned[-1].startswith("Plan: 8 to create, 5 to update, 1 loosening, 1 tightening, 3 unmanaged, 6 excepted.")


DIFFERING = """\
apiVersion: reconciler/v1
kind: ProjectSet
metadata: {name: all}
select: {group: acme}
spec:
  prune: [job_token_scope, trigger_tokens]
  approval_settings: {allow_author_approval: true, retain_approvals_on_push: true}
  job_token_scope: {enabled: false, projects: [acme/p1]}
  milestones:
    planned: {due_date: 2099-01-31, description: new}
    missing: {}
  trigger_tokens: {}
---
apiVersion: reconciler/v1
kind: Project
metadata:
  path: acme/p0
  exceptions:
    # Ended long ago.
    - {section: milestones, item: planned, fields: [due_date], until: 2020-01-01, reason: OPS-1}
spec: {milestones: {renamed: {renamed_from: old}}}
"""


@pytest.mark.untraced
def test_each_difference_has_an_exception_of_its_own_kind(cli_runner: CliRunner) -> None:
    live = {
        "job_token_scope": {**SCOPE, "inbound_enabled": True},
        "milestones": [{"title": "planned", "due_date": "2099-02-28", "description": "new"}, {"title": "old"}],
        "trigger_tokens": [{"description": "a", "owner": "ada"}],
    }
    fleet(cli_runner, 2, **live)
    cli_runner.write("manifests/all.yaml", DIFFERING)
    two = "--target acme/p0 --target acme/p1"
    shown = cli_runner(f"{UNTIL} --diff --detailed-exitcode {two}")
    assert (shown.code, shown.out) == (
        2,
        """\
--- /dev/null
+++ b/manifests/acme/p1.yaml
@@ -0,0 +1,10 @@
+apiVersion: reconciler/v1
+kind: Project
+metadata:
+  path: acme/p1
+  exceptions:
+    - {section: job_token_scope, fields: [enabled], until: 2099-03-01, reason: OPS-12}
+    - {section: job_token_scope, item: acme/lib, until: 2099-03-01, reason: OPS-12}
+    - {section: milestones, item: missing, until: 2099-03-01, reason: OPS-12}
+    - {section: milestones, item: planned, fields: [due_date], until: 2099-03-01, reason: OPS-12}
+    - {section: trigger_tokens, item: a, until: 2099-03-01, reason: OPS-12}
--- a/manifests/all.yaml
+++ b/manifests/all.yaml
@@ -17,5 +17,11 @@
   path: acme/p0
   exceptions:
     # Ended long ago.
-    - {section: milestones, item: planned, fields: [due_date], until: 2020-01-01, reason: OPS-1}
+    - {section: job_token_scope, item: acme/p1, until: 2099-03-01, reason: OPS-12}
+    - {section: job_token_scope, fields: [enabled], until: 2099-03-01, reason: OPS-12}
+    - {section: job_token_scope, item: acme/lib, until: 2099-03-01, reason: OPS-12}
+    - {section: milestones, item: missing, until: 2099-03-01, reason: OPS-12}
+    - {section: milestones, item: planned, fields: [due_date], until: 2099-03-01, reason: OPS-12}
+    - {section: milestones, item: renamed, until: 2099-03-01, reason: OPS-12}
+    - {section: trigger_tokens, item: a, until: 2099-03-01, reason: OPS-12}
 spec: {milestones: {renamed: {renamed_from: old}}}
""",
    )
    done = cli_runner(f"{UNTIL} {two}")
    assert (done.code, done.err.splitlines()[-1]) == (0, "12 differences excepted until 2099-03-01; 2 files written.")
    planned = cli_runner(f"plan --detailed-exitcode {two}")
    assert (planned.code, "12 excepted" in planned.out) == (0, True)


def test_what_cannot_be_excepted_is_told_and_what_is_wrong_stays_an_error(cli_runner: CliRunner) -> None:
    fleet(cli_runner, 4)
    cli_runner.sandbox.set_faults(["status=403,match=p2/merge_request_approval"])
    cli_runner.write(
        "manifests/p0.yaml.j2", (OWN % 0).replace("allow_author_approval: true", "allow_author_approval: false")
    )
    cli_runner.write("manifests/p1.yaml", (OWN % 1).replace("acme/p1}", "acme/fresh}\ncreate: {}"))
    cli_runner.write("manifests/p2.yaml", OWN % 2)
    odd = (OWN % 3).replace("metadata:", "? metadata\n# see: above\n:")
    cli_runner.write("manifests/p3.yaml", odd.replace("true, retain", "false, retain"))
    told = cli_runner(UNTIL)
    assert (told.code, told.out) == (3, "")
    assert [line for line in told.err.splitlines() if "not accepted" in line] == [
        "not accepted: project acme/fresh: does not exist, and `apply` creates it",
        "not accepted: project acme/p0: approval settings.allow_author_approval: its document is in manifests/p0.yaml.j2, in a "
        "template; write the exception there",
        "not accepted: project acme/p2: approval_settings: cannot be read: not in this edition, or no right to it (403 "
        "Forbidden); this needs the role Maintainer and an edition with this feature (Premium or Ultimate); otherwise "
        "leave the section out",
        "not accepted: project acme/p3: approval settings.allow_author_approval: its document is in manifests/p3.yaml, "
        "whose layout would be lost; write the exception there",
    ]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("accept --until 2099-03-01", "an exception needs both: --until DAY --reason TEXT"),
        ("accept --reason OPS-12", "an exception needs both: --until DAY --reason TEXT"),
        ("accept --only-locks", "--only-locks goes with --until DAY --reason TEXT"),
        ("accept --until soon --reason OPS-12", "--until takes a day, such as 2027-03-01, not soon"),
        ("accept --until 2020-03-01 --reason OPS-12", "--until 2020-03-01 is over: an exception that has ended"),
    ],
)
def test_an_exception_has_an_end_and_a_reason(line: str, told: str, cli_runner: CliRunner) -> None:
    refused = cli_runner(line)
    assert (refused.code, told in refused.err) == (64, True)


def test_a_lock_that_a_set_or_a_template_breaks_is_mended_there(cli_runner: CliRunner) -> None:
    fleet(cli_runner, 2)
    locked = LOCKED.replace("spec: {}", "spec: {approval_settings: {allow_author_approval: true}}")
    cli_runner.write("manifests/baseline.yaml", locked)
    cli_runner.write("manifests/p0.yaml", OWN % 0)
    refused = cli_runner(UNTIL)
    assert (refused.code, refused.out) == (1, "")
    assert "manifests/baseline.yaml:14:51:" in refused.err
    assert "manifests/p0.yaml" not in refused.err

    cli_runner.write("manifests/baseline.yaml", LOCKED)
    cli_runner.write("manifests/p1.yaml.j2", OWN % 1)
    refused = cli_runner(UNTIL)
    assert (refused.code, "manifests/p1.yaml.j2:6:" in refused.err, "p0" in refused.err) == (1, True, False)
