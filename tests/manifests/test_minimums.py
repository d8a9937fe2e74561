"""Minimums of several layers: the strictest holds, whatever the order."""

from itertools import permutations

import pytest

from reconciler.model.targets import Level, Target
from tests.manifests.conftest import Folder

API = Target(Level.PROJECT, "acme/api")

LAYERS = {
    "strict": """\
metadata: {name: strict, at_least: {approval_rules: all, approval_settings: all, job_token_scope: [projects]}}
spec:
  approval_rules: {any_approver: {approvals_required: 3}, Security: {approvals_required: 1, users: [ada]}}
  approval_settings: {allow_author_approval: false}
  job_token_scope: {projects: [acme/lib]}
""",
    "lax": """\
metadata: {name: lax, at_least: {approval_rules: all, approval_settings: [allow_author_approval], job_token_scope: all}}
spec:
  approval_rules: {any_approver: {approvals_required: 1}, Security: {users: [ada, bob], branches: protected}}
  approval_settings: {allow_author_approval: true, allow_committer_approval: true}
  job_token_scope: {projects: [acme/lib, acme/web]}
""",
    "locking": """\
metadata:
  name: locking
  locks: {approval_rules: [Security], job_token_scope: [projects]}
  at_least: {approval_rules: [any_approver]}
spec:
  approval_rules: {any_approver: {approvals_required: 2}, Security: {approvals_required: 1, users: [ada], branches: any}}
  job_token_scope: {projects: []}
""",
}

MERGED = {
    "approval_settings": {"allow_author_approval": False, "allow_committer_approval": True},
    "job_token_scope": {"projects": []},
    "approval_rules": {
        "any_approver": {"approvals_required": 3},
        "Security": {"approvals_required": 1, "users": ["ada"], "branches": "any"},
    },
}


@pytest.mark.parametrize("order", [*permutations(LAYERS)], ids=" ".join)
def test_the_strictest_of_several_minimums_holds(folder: Folder, order: tuple[str, ...]) -> None:
    profiles = (f"apiVersion: reconciler/v1\nkind: Profile\n{text}---\n" for text in LAYERS.values())
    own = f"apiVersion: reconciler/v1\nkind: Project\nmetadata: {{path: acme/api, profiles: [{', '.join(order)}]}}\n"
    folder.put("a.yaml", f"{''.join(profiles)}{own}spec: {{approval_rules: {{Security: {{approvals_required: 1}}}}}}\n")
    merged = folder.read().of(API)
    assert merged.spec == MERGED
    assert {section.kind: section.at_least for section in merged.desired.sections} == {
        "approval_settings": {None: {"allow_author_approval"}},
        "job_token_scope": {},
        "approval_rules": {"any_approver": {"approvals_required"}},
    }

    def held(*path: str) -> str:
        (remark,) = merged.remarks(path)
        return remark.partition(" (")[0]

    assert held("approval_rules", "any_approver", "approvals_required") == "a minimum in profile strict"
    assert held("approval_settings", "allow_author_approval") == "a minimum in profile strict"
    assert held("approval_rules", "Security", "users") == "locked by profile locking"
    assert held("job_token_scope", "projects") == "locked by profile locking"
    shown = [value for _, value in merged.explain(("approval_rules", "any_approver", "approvals_required"))]
    assert (shown[-1], sorted(shown)) == (3, [1, 2, 3])


SETS = """\
apiVersion: reconciler/v1
kind: ProjectSet
metadata: {name: one, at_least: {approval_rules: all}}
select: {projects: [acme/api]}
spec: {approval_rules: {any_approver: {approvals_required: 2}}}
---
apiVersion: reconciler/v1
kind: ProjectSet
metadata: {name: two, at_least: {approval_rules: all}}
select: {projects: [acme/api]}
spec: {approval_rules: {any_approver: {approvals_required: 1}}}
"""


def test_minimums_of_sets_of_one_priority_join_and_change_the_digest(folder: Folder) -> None:
    folder.put("a.yaml", SETS)
    read = folder.read()
    assert read.of(API).spec == {"approval_rules": {"any_approver": {"approvals_required": 2}}}
    only = SETS.partition("---")[0]
    folder.put("a.yaml", only)
    assert folder.read().desired.digest == read.desired.digest
    folder.put("a.yaml", only.replace(", at_least: {approval_rules: all}", ""))
    assert folder.read().desired.digest != read.desired.digest


@pytest.mark.parametrize(("hold", "told"), [("at_least", 0), ("locks", 1)])
def test_a_minimum_that_a_group_locks_more_strictly_is_no_contradiction(folder: Folder, hold: str, told: int) -> None:
    folder.put(
        "a.yaml",
        f"""\
apiVersion: reconciler/v1
kind: Group
metadata: {{path: acme}}
spec: {{approval_settings: {{retain_approvals_on_push: false}}}}
---
apiVersion: reconciler/v1
kind: Profile
metadata: {{name: base, {hold}: {{approval_settings: all}}}}
spec: {{approval_settings: {{retain_approvals_on_push: true}}}}
---
apiVersion: reconciler/v1
kind: Project
metadata: {{path: acme/api, profiles: [base]}}
spec: {{}}
""",
    )
    assert len(folder.read().advice) == told
