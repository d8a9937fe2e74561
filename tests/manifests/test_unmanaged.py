"""Sections that a target leaves alone: behind the merge, nobody declares them."""

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
    assert read.of(API).beneath.sections == {"job_token_scope": {"projects": ["acme/lib"]}}
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
    assert cli_runner("plan").out.splitlines()[1:-1] == [
        '  + allowlisted project "acme/web"     manifests/own.yaml:4',
        '  + milestone "1.0"     manifests/base.yaml:6',
        '  + milestone "own"     manifests/own.yaml:4',
        '  - allowlisted project "acme/lib"     manifests/base.yaml:5',
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
