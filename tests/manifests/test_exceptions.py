"""Exceptions as manifests declare them: what they are about, and what is doubtful about them."""

from datetime import date

from reconciler.model.exceptions import DeclaredException
from reconciler.model.targets import Level, Target
from tests.manifests.conftest import Folder

BASE = """\
apiVersion: reconciler/v1
kind: Profile
metadata:
  name: base
  locks:
    approval_settings: [allow_author_approval]
    job_token_scope: [projects, enabled]
    milestones: [v1, gone, prune]
    notification_settings: [level, events.new_note]
spec:
  prune: []
  approval_settings: {allow_author_approval: false}
  job_token_scope: {projects: [acme/lib], enabled: true}
  milestones: {v1: {state: active}, gone: null}
  notification_settings: {level: custom, events: {new_note: true}}
---
"""

PROJECT = """\
apiVersion: reconciler/v1
kind: Project
metadata:
  path: acme/api
  profiles: [base]
  exceptions:
"""


def said(folder: Folder, *exceptions: str) -> list[str]:
    """Return the warnings and the advice about some exceptions, each with its line from 0 and its column."""
    lines = [f"    - {{{each}, until: 2999-01-01, reason: x}}\n" for each in exceptions]
    folder.put(
        "a.yaml", f"{BASE}{PROJECT}{''.join(lines)}spec: {{approval_settings: {{allow_committer_approval: false}}}}\n"
    )
    read = folder.read()
    first = BASE.count("\n") + PROJECT.count("\n") + 1
    return [f"{each.line - first}:{each.column} {each.message}" for each in sorted((*read.warnings, *read.advice))]


def test_an_exception_for_what_is_locked_is_named_with_the_lock(folder: Folder) -> None:
    assert said(
        folder,
        "section: approval_settings",
        "section: approval_settings, fields: [allow_committer_approval]",
        "section: job_token_scope, item: acme/lib",
        "section: job_token_scope, fields: [enabled]",
        "section: milestones, item: v1, fields: [state]",
        "section: milestones, item: gone",
        "section: milestones",
        "section: notification_settings, fields: [events]",
        "section: notification_settings, fields: [events.new_note]",
    ) == [
        "0:7 this exception covers approval_settings.allow_author_approval, locked by profile base (a.yaml:6:25)",
        "2:7 this exception covers job_token_scope.projects, locked by profile base (a.yaml:7:23)",
        "3:7 this exception covers job_token_scope.enabled, locked by profile base (a.yaml:7:33)",
        "4:7 this exception covers milestones.v1, locked by profile base (a.yaml:8:18)",
        "5:7 this exception covers milestones.gone, locked by profile base (a.yaml:8:22)",
        "6:7 this exception covers milestones.v1, locked by profile base (a.yaml:8:18) and milestones.gone, locked by "
        "profile base (a.yaml:8:22)",
        "7:7 this exception covers notification_settings.events.new_note, locked by profile base (a.yaml:9:36)",
        "8:7 this exception covers notification_settings.events.new_note, locked by profile base (a.yaml:9:36)",
    ]


def test_an_exception_for_what_is_not_declared_has_no_effect(folder: Folder) -> None:
    assert said(
        folder,
        "section: trigger_tokens",
        "section: milestones, item: other",
        "section: milestones, item: v1, fields: [due_date]",
        "section: job_token_scope, item: 7",
        "section: approval_settings, fields: [allow_committer_approval, retain_approvals_on_push]",
        "section: milestones, fields: [start_date]",
    ) == [
        "0:17 trigger_tokens is not declared: this exception has no effect",
        "1:35 `other` is not declared: this exception has no effect unless the inventory lists it",
        "2:48 `due_date` is not declared: this exception has no effect",
        "3:40 `7` is not declared: this exception has no effect unless the inventory lists it",
        "4:71 `retain_approvals_on_push` is not declared: this exception has no effect",
        "5:38 `start_date` is not declared: this exception has no effect",
    ]


def test_in_a_pruned_section_an_exception_may_keep_what_is_not_declared(folder: Folder) -> None:
    folder.put(
        "a.yaml",
        f"{PROJECT.replace('profiles: [base]', 'labels: {}')}"
        "    - {section: milestones, item: other, until: 2999-01-01, reason: x}\n"
        "spec: {prune: [milestones], milestones: {}}\n",
    )
    read = folder.read()
    assert (read.warnings, read.advice) == ((), ())


def test_placeholders_are_filled_in_and_names_are_as_the_section_has_them(folder: Folder) -> None:
    folder.put(
        "a.yaml",
        """\
apiVersion: reconciler/v1
kind: Project
metadata:
  id: 7
  exceptions:
    - {section: container_repository_protection_rules, item: "{path}/x*", until: 2999-01-01, reason: "{name} {{name}}"}
    - {section: milestones, item: " v1 ", fields: [state], until: 2999-01-01, reason: y}
    - {section: job_token_scope, item: 12, until: 2999-01-01, reason: z}
spec:
  milestones: {v1: {state: active}}
  job_token_scope: {projects: [12]}
  container_repository_protection_rules: {"{path}/x*": {minimum_access_level_for_push: admin}}
""",
    )
    seven, end = Target(Level.PROJECT, 7), date(2999, 1, 1)
    read = folder.read()
    assert (read.pathless, read.warnings, read.advice) == ((seven,), (), ())
    (target,) = read.with_discovered(None, {seven: "acme/Api"}).desired.targets
    rules = "container_repository_protection_rules"
    assert target.exceptions == (
        DeclaredException(rules, end, "Api {name}", "acme/api/x*", (), "a.yaml:6"),
        DeclaredException("milestones", end, "y", "v1", ("state",), "a.yaml:7"),
        DeclaredException("job_token_scope", end, "z", 12, (), "a.yaml:8"),
    )
    assert [each.origin for each in target.exceptions] == ["a.yaml:6", "a.yaml:7", "a.yaml:8"]


def test_exceptions_are_part_of_the_digest(folder: Folder) -> None:
    text = PROJECT.replace("profiles: [base]", "labels: {}")
    digests = []
    for until in ("2999-01-01", "2999-01-02"):
        exception = f"    - {{section: milestones, until: {until}, reason: x}}\n"
        folder.put("a.yaml", f"{text}{exception}spec: {{milestones: {{}}}}\n")
        digests.append(folder.read().desired.digest)
    assert len({*digests}) == 2


def test_what_is_locked_or_excepted_is_told_beside_the_layers_of_a_field(folder: Folder) -> None:
    exceptions = [
        "section: approval_settings, fields: [allow_author_approval]",
        "section: milestones, item: v1, fields: [state]",
        "section: notification_settings, fields: [events]",
        "section: job_token_scope, item: acme/lib",
    ]
    said(folder, *exceptions)
    read, target = folder.read(), Target(Level.PROJECT, "acme/api")

    def remarks(*path: str) -> list[str]:
        return read.of(target).remarks(path)

    lines = [f"excepted until 2999-01-01: x (a.yaml:{number})" for number in range(23, 27)]
    assert remarks("approval_settings", "allow_author_approval") == ["locked by profile base (a.yaml:6:25)", lines[0]]
    assert remarks("approval_settings", "allow_committer_approval") == []
    assert remarks("milestones") == [lines[1]]
    assert remarks("milestones", "v1") == ["locked by profile base (a.yaml:8:18)", lines[1]]
    assert remarks("milestones", "v1", "state") == ["locked by profile base (a.yaml:8:18)", lines[1]]
    assert remarks("milestones", "gone") == ["locked by profile base (a.yaml:8:22)"]
    assert remarks("notification_settings", "events", "new_note") == ["locked by profile base (a.yaml:9:36)", lines[2]]
    assert remarks("job_token_scope", "projects") == ["locked by profile base (a.yaml:7:23)", lines[3]]
    assert remarks("prune") == []
