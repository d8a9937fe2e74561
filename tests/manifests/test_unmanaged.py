"""Sections that a target leaves alone: behind the merge, nobody declares them."""

from operator import itemgetter

import pytest

from reconciler.kinds import all_kinds
from reconciler.memory.effective import digest_of
from reconciler.model.targets import Level, Target
from tests.cli_runner import CliRunner
from tests.manifests.conftest import Folder
from tests.states import a_small_service

API = Target(Level.PROJECT, "acme/api")

PROFILE = """\
apiVersion: reconciler/v1
kind: Profile
metadata: {name: base}
spec:
  prune: [milestones, job_token_scope]
  milestones: {"1.0": {}}
  job_token_scope: {projects: [acme/lib]}
---
"""

PRUNING = """\
apiVersion: reconciler/v1
kind: Profile
metadata: {name: base}
spec: {prune: [milestones], milestones: {"1.0": {}}}
"""

SETS = """\
apiVersion: reconciler/v1
kind: ProjectSet
metadata: {name: one}
select: {projects: [acme/api, acme/web]}
spec: {milestones: {"1.0": {state: active}}, trigger_tokens: {nightly: {}}}
---
apiVersion: reconciler/v1
kind: ProjectSet
metadata: {name: two}
select: {projects: [acme/api]}
spec: {milestones: {"1.0": {state: closed}}}
---
"""

OWN = """\
apiVersion: reconciler/v1
kind: Project
metadata: {path: acme/api, profiles: [base]}
spec:
  unmanaged: %s
"""


def test_a_section_is_left_alone_whatever_is_declared_and_however_sets_disagree(folder: Folder) -> None:
    folder.put("a.yaml", PROFILE + SETS + OWN % "[trigger_tokens, milestones]")
    read = folder.read()
    (target,) = [each for each in read.desired.targets if each.target == API]
    assert [(section.kind, section.prune) for section in target.sections] == [("job_token_scope", True)]
    assert target.unmanaged == {"milestones", "trigger_tokens"}
    assert read.of(API).spec == {
        "prune": ["job_token_scope"],
        "unmanaged": ["trigger_tokens", "milestones"],
        "job_token_scope": {"projects": ["acme/lib"]},
    }
    assert read.of(API).explain("prune") == [("a.yaml:5", ["milestones", "job_token_scope"])]
    assert read.of(API).explain(("prune", 0)) == [("a.yaml:5", "job_token_scope")]
    assert read.of(API).explain(("unmanaged", 1)) == [("a.yaml:25", "milestones")]
    folder.put("a.yaml", PROFILE + SETS + OWN % "[trigger_tokens]")
    assert "set two and set one (a.yaml:13:36) have the same priority, 0, and disagree here" in folder.faults()


def test_all_stands_for_every_section_and_what_is_left_alone_changes_the_digests(folder: Folder) -> None:
    digests = []
    for unmanaged in ("[]", "[milestones]", "all"):
        folder.put("a.yaml", PROFILE + OWN % unmanaged)
        read = folder.read()
        digests += [digest_of(read.desired.targets[0]), read.desired.digest]
    assert len({*digests}) == 6
    assert read.desired.targets[0].sections == ()
    assert read.desired.targets[0].unmanaged == {
        kind.name for kind in all_kinds().values() if Level.PROJECT in kind.models
    }
    assert read.of(API).spec == {"unmanaged": "all"}


def test_what_an_unmanaged_section_would_be_is_not_checked(folder: Folder) -> None:
    clash = 'spec: {milestones: {"{name}": {}, api: {}}}\n'
    text = PROFILE.partition("spec:")[0] + clash + "---\n"
    folder.put("a.yaml", text + OWN % "[]")
    assert "`api` and `{name}` (a.yaml:4:21) are one and the same name" in folder.faults()
    folder.put("a.yaml", text + OWN % "all")
    assert folder.read().desired.targets[0].sections == ()


@pytest.fixture
def fleet(cli_runner: CliRunner) -> CliRunner:
    """A profile for three projects, one of which leaves its milestones alone."""
    state = a_small_service("spec")
    for project in state["projects"]:
        project["milestones"] = [{"id": project["id"], "title": "1.0"}, {"id": project["id"] + 500, "title": "old"}]
    cli_runner.sandbox.replace_state(state)
    cli_runner.write("manifests/base.yaml", PRUNING)
    for name in ("web", "lib"):
        own = OWN.replace("acme/api", f"acme/{name}").partition("spec:")[0]
        cli_runner.write(f"manifests/{name}.yaml", own)
    cli_runner.write("manifests/api.yaml", OWN % "[milestones]")
    return cli_runner


def test_nothing_of_it_is_read_planned_counted_or_checked(fleet: CliRunner) -> None:
    fleet.sandbox.clear_log()
    planned = fleet("plan --target acme/api")
    assert (planned.code, planned.out) == (
        0,
        "Nothing to do in the 1 target looked at. 0 requests were made to plan.\n",
    )
    assert fleet.sandbox.log() == []
    assert fleet("validate").out == "Valid: 4 documents: 3 projects, 1 profile.\n"
    assert "milestones" not in fleet("doctor --target acme/api").out
    assert fleet("plan --target acme/web").out.splitlines()[:2] == [
        "project acme/web",
        '  - milestone "old"     manifests/base.yaml:4',
    ]


def test_render_shows_and_explains_it(fleet: CliRunner) -> None:
    rendered = fleet("render --target acme/api").out
    assert rendered == (
        "apiVersion: reconciler/v1\nkind: Project\nmetadata:\n  path: acme/api\nspec:\n  unmanaged:\n    - milestones\n"
    )
    assert fleet("render --explain unmanaged").out == (
        'project acme/api: unmanaged\n  * manifests/api.yaml:5  ["milestones"]\n'
    )
    assert fleet("render --explain milestones.1.0 --target acme/api").out == (
        "project acme/api: milestones.1.0\n  unmanaged by manifests/api.yaml:5\n"
    )
    assert fleet("render --explain milestones.9.0 --target acme/web").code == 64


def test_accept_and_export_write_nothing_into_it(fleet: CliRunner) -> None:
    accepted = fleet("accept")
    assert (accepted.code, accepted.err) == (0, "2 differences accepted; 1 file written.\n")
    base, own = (fleet.folder / "manifests" / name for name in ("base.yaml", "api.yaml"))
    assert base.read_text() == PRUNING.replace('{"1.0": {}}', '{"1.0": {}, old: {}}')
    assert own.read_text() == OWN % "[milestones]"
    assert fleet("export --project acme/api --output manifests --section milestones").code == 0
    assert own.read_text() == OWN % "[milestones]"


@pytest.mark.untraced
def test_the_origin_of_a_deletion_by_prune_is_where_the_section_is_pruned(cli_runner: CliRunner) -> None:
    scope = {"project_allowlist": [101], "inbound_enabled": True}
    cli_runner.service(milestones=[{"title": "old"}], job_token_scope=scope)
    cli_runner.write("manifests/base.yaml", PROFILE.replace("[acme/lib]", "[]").removesuffix("---\n"))
    own = "spec: {milestones: {own: {}}, job_token_scope: {projects: [acme/web]}}\n"
    cli_runner.write("manifests/own.yaml", OWN.partition("spec:")[0] + own)
    assert cli_runner("plan").out.splitlines()[:-1] == [
        "Loosens protection:",
        "project acme/api",
        '  + allowlisted project "acme/web"            loosens     manifests/own.yaml:4',
        "All else:",
        "project acme/api",
        '  + milestone "1.0"     manifests/base.yaml:6',
        '  + milestone "own"     manifests/own.yaml:4',
        '  - allowlisted project "acme/lib"            tightens     manifests/base.yaml:5',
        '  - milestone "old"     manifests/base.yaml:5',
    ]


def test_accept_leaves_a_locked_section_that_is_unmanaged_to_the_reader(cli_runner: CliRunner) -> None:
    locked = PRUNING.replace("name: base", "name: base, locks: {milestones: all}")
    cli_runner.write("manifests/base.yaml", locked)
    own = cli_runner.write("manifests/own.yaml", OWN % "[milestones]")
    done = cli_runner("accept --until 2999-01-01 --reason Later")
    assert (done.code, done.out, own.read_text()) == (1, "", OWN % "[milestones]")
    assert (
        "manifests/own.yaml:5:15: milestones is locked by profile base (manifests/base.yaml:3:32): take it" in done.err
    )


ITEMS = """\
apiVersion: reconciler/v1
kind: ProjectSet
metadata: {name: one}
select: {projects: [acme/api, acme/web]}
spec:
  prune: [trigger_tokens]
  milestones: {"1.0": {state: active}, "2.0": {renamed_from: [Two]}, "3.0": {}}
  trigger_tokens: {nightly: {}}
  job_token_scope: {enabled: true, projects: [acme/lib, acme/web]}
---
apiVersion: reconciler/v1
kind: ProjectSet
metadata: {name: two}
select: {projects: [acme/api]}
spec: {milestones: {"1.0": {state: closed}}}
---
"""

LET_GO = "[{milestones: ['1.0', Two, Other], trigger_tokens: ['{name}']}, {job_token_scope: {projects: [Acme/Lib], groups: [9]}}]"


def test_single_objects_are_left_alone_whatever_is_declared_and_however_sets_disagree(folder: Folder) -> None:
    own = (OWN % LET_GO).replace(", profiles: [base]", "")
    folder.put("a.yaml", ITEMS + own)
    read = folder.read()
    (target,) = [each for each in read.desired.targets if each.target == API]
    assert {section.kind: section.released for section in target.sections} == {
        "milestones": {"milestones": {"1.0": "1.0", "2.0": "2.0", "Two": "2.0", "Other": None}},
        "job_token_scope": {"projects": {"acme/lib": "acme/lib"}, "groups": {9: None}},
        "trigger_tokens": {"trigger_tokens": {"api": None}},
    }
    assert read.of(API).spec == {
        "prune": ["trigger_tokens"],
        "unmanaged": [
            {"milestones": ["1.0", "Two", "Other"], "trigger_tokens": ["api"]},
            {"job_token_scope": {"projects": ["Acme/Lib"], "groups": [9]}},
        ],
        "job_token_scope": {"enabled": True, "projects": ["acme/web"]},
        "milestones": {"3.0": {}},
        "trigger_tokens": {"nightly": {}},
    }
    assert read.of(API).explain(("unmanaged", 0)) == [("a.yaml:21", read.of(API).spec["unmanaged"][0])]
    folder.put("a.yaml", ITEMS + own.replace("'1.0', ", ""))
    assert "set two and set one (a.yaml:7:31) have the same priority, 0, and disagree here" in folder.faults()


def test_what_is_left_alone_changes_the_digests(folder: Folder) -> None:
    digests = []
    for unmanaged in ("[]", "[{milestones: [Beta]}]", "[{milestones: [Beta, Gamma]}]"):
        folder.put("a.yaml", PROFILE + OWN % unmanaged)
        read = folder.read()
        digests += [digest_of(read.desired.targets[0]), read.desired.digest]
    assert len({*digests}) == 6


def test_render_explains_and_validate_tells_which_single_object_has_to_stay_named(cli_runner: CliRunner) -> None:
    own = (OWN % LET_GO).replace(", profiles: [base]", "")
    cli_runner.write("manifests/a.yaml", ITEMS.partition("---\n")[0] + "---\n" + own)
    told = [line for line in cli_runner("validate").out.splitlines() if ": warning: " in line]
    assert told == [
        "manifests/a.yaml:15:29: warning: keep this line: set one (manifests/a.yaml:7) declares this object",
        "manifests/a.yaml:15:36: warning: keep this line: set one (manifests/a.yaml:7) declares this object",
        "manifests/a.yaml:15:41: warning: once an apply has released this object, this line may go: no profile and no "
        "set declares it",
        "manifests/a.yaml:15:66: warning: keep this line: trigger_tokens is pruned (manifests/a.yaml:6)",
        "manifests/a.yaml:15:108: warning: keep this line: set one (manifests/a.yaml:9) declares this object",
        "manifests/a.yaml:15:128: warning: once an apply has released this object, this line may go: no profile and no "
        "set declares it",
    ]
    explained = "project acme/api: %s\n  unmanaged by manifests/a.yaml:15\n"
    for field in ("milestones.1.0", "milestones.1.0.state", "job_token_scope.projects.acme/lib"):
        assert cli_runner(f"render --explain {field} --target acme/api").out == explained % field
    for field in ("milestones.9", "nothing"):
        assert cli_runner(f"render --explain {field} --target acme/api").code == 64


RULES = """\
apiVersion: reconciler/v1
kind: Profile
metadata: {name: base}
spec:
  prune: [protected_branches, milestones]
  protected_branches: {}
  approval_rules: {Security: {approvals_required: 1, users: [ada], branches: [release]}}
  milestones: {"1.0": {}}
---
"""


def test_what_is_left_alone_is_read_and_stays_under_prune_and_counts_as_live(cli_runner: CliRunner) -> None:
    cli_runner.service(protected_branches=[{"name": "release"}], milestones=[{"title": "old"}, {"title": "new"}])
    own = "[{protected_branches: [release], milestones: [old, '1.0']}]"
    cli_runner.write("manifests/a.yaml", RULES + OWN % own)
    planned = cli_runner("plan --verbose")
    assert (planned.code, planned.changes.splitlines()[:-1]) == (
        0,
        [
            "project acme/api",
            '  + approval rule "Security"                  approvals_required: 1, users: ada, branches: release, tightens',
            "      POST projects/acme%2Fapi/approval_rules",
            '  - milestone "new"                           state: active',
            "      its issues and merge requests lose it; the service does not report how many these are",
            "      DELETE projects/acme%2Fapi/milestones/2",
        ],
    )
    cli_runner.sandbox.clear_log()
    assert cli_runner("apply --yes").code == 0
    written = [request for request in cli_runner.sandbox.log() if request["method"] != "GET"]
    assert [
        (request["method"], request["target"], request["body"]) for request in sorted(written, key=itemgetter("method"))
    ] == [
        ("DELETE", "/api/v4/projects/acme%2Fapi/milestones/2", None),
        (
            "POST",
            "/api/v4/projects/acme%2Fapi/approval_rules",
            {
                "name": "Security",
                "rule_type": "regular",
                "approvals_required": 1,
                "user_ids": [2],
                "protected_branch_ids": [1],
                "applies_to_all_protected_branches": False,
            },
        ),
    ]


def test_accept_and_export_write_nothing_of_what_is_left_alone(cli_runner: CliRunner) -> None:
    scope = {"project_allowlist": [101], "inbound_enabled": True}
    titles = ({"title": title} for title in ("1.0", "old", "new"))
    cli_runner.service(milestones=[*titles], job_token_scope=scope, trigger_tokens=[{"description": "own"}])
    cli_runner.write("manifests/base.yaml", PRUNING)
    left = "[{milestones: [old], trigger_tokens: [own], job_token_scope: {projects: [acme/lib]}}]"
    own = cli_runner.write("manifests/api.yaml", OWN % left)
    accepted = cli_runner("accept")
    assert (accepted.code, accepted.err) == (0, "1 difference accepted; 1 file written.\n")
    base = cli_runner.folder / "manifests" / "base.yaml"
    assert base.read_text() == PRUNING.replace('{"1.0": {}}', '{"1.0": {}, new: {}}')
    assert own.read_text() == OWN % left
    sections = "--section milestones --section trigger_tokens --section job_token_scope"
    exported = cli_runner(f"export --project acme/api --output manifests {sections}")
    assert (exported.code, exported.err) == (0, "1 target exported; 1 file written.\n")
    rest = "  job_token_scope:\n    enabled: true\n    projects: []\n"
    assert own.read_text() == (OWN % left) + rest + "  trigger_tokens: {}\n"
    assert "No changes: 1 target is in order" in cli_runner("plan").out


def test_nothing_is_advised_of_a_project_whose_sets_only_its_path_would_tell(cli_runner: CliRunner) -> None:
    group = ITEMS.partition("---\n")[0].replace("{projects: [acme/api, acme/web]}", "{group: acme}")
    own = (OWN % "[{milestones: [Other]}]").replace("path: acme/api, profiles: [base]", "id: 100")
    cli_runner.write("manifests/a.yaml", f"{group}---\n{own}")
    assert cli_runner("validate").out == "Valid: 2 documents: 1 project, 1 set.\n"
    cli_runner.write("manifests/a.yaml", f"{group}---\n{own.replace('Other', '1.0')}")
    cli_runner.service(milestones=[{"title": "1.0"}])
    assert '"1.0"' not in cli_runner("plan --target acme/api --section milestones").changes


DEFAULT = """\
apiVersion: reconciler/v1
kind: ProjectSet
metadata: {name: one}
select: {group: acme}
spec: {protected_branches: {"{default_branch}": {allowed_to_push: []}}}
---
"""


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ('"{default_branch}"', []),
        ("trunk", []),
        ("main", ['  ~ protected branch "trunk"                  allowed_to_push: maintainer -> nobody, tightens']),
    ],
)
def test_the_rule_of_the_default_branch_is_let_go_by_either_name(
    name: str, changes: list[str], cli_runner: CliRunner
) -> None:
    cli_runner.service(protected_branches=[{"name": "trunk"}], default_branch="trunk")
    own = (OWN % f"[{{protected_branches: [{name}]}}]").replace(", profiles: [base]", "")
    cli_runner.write("manifests/a.yaml", DEFAULT + own)
    planned = cli_runner("plan --target acme/api")
    assert (planned.code, planned.changes.splitlines()[1:-1]) == (0, changes)
    assert cli_runner("validate").code == 0
