"""`accept` on a service: what it writes, what it prints, and how it ends."""

from typing import Any

import pytest

from reconciler.manifests.sources import open_source, read_mapping
from tests.building import KINDS
from tests.cli_runner import CliRunner
from tests.conftest import EXAMPLES
from tests.states import a_small_service

SEVEN = ("api", "lib", "web", "cli", "docs", "ops", "sdk")

FLEET = """apiVersion: reconciler/v1
kind: Group
metadata: {path: acme}
spec:
  approval_settings:
    allow_author_approval: true
---
apiVersion: reconciler/v1
kind: Profile
metadata: {name: baseline}
spec:
  approval_settings:
    allow_author_approval: false  # the auditors want this
    retain_approvals_on_push: true
---
apiVersion: reconciler/v1
kind: ProjectSet
metadata:
  name: services
  profiles: [baseline]
select:
  group: acme
  include: ["acme/*"]
spec:
  milestones:
    "2026.12":
      due_date: 2026-12-31
"""


MISSPELT = """\
apiVersion: reconciler/v1
kind: Project
metadata: {path: acme/api}
spec:
  approval_settings: {allow_author_approval: false}
  milestones: {"2026.12": {description: "of {pat}"}}
"""


@pytest.fixture
def seven(cli_runner: CliRunner) -> CliRunner:
    """A group of seven projects that agree with the manifests."""
    assert FLEET.count("\n") == 27
    cli_runner.write("manifests/fleet.yaml", FLEET)
    with_allow(cli_runner, {})
    assert cli_runner("apply --yes").code == 0
    return cli_runner


def with_allow(cli_runner: CliRunner, values: dict[str, bool]) -> None:
    """Give each project its milestone, and settings that some of them have otherwise."""
    state: dict[str, Any] = {
        "instance": {"enforce_job_token_allowlist": False, "dialect": "deployed"},
        "users": [{"id": 2, "username": "ada", "tokens": ["ada-token"], "emails": ["ada@example.com"]}],
        "groups": [{"id": 10, "path": "acme", "members": [{"user": "ada", "role": "owner"}]}],
        "projects": [
            {
                "id": 100 + number,
                "path": f"acme/{name}",
                "merge_request_approval_settings": {
                    "allow_author_approval": values.get(name, False),
                    "retain_approvals_on_push": True,
                },
                "milestones": [{"id": 1000 + number, "title": "2026.12", "due_date": "2026-12-31"}],
            }
            for number, name in enumerate(SEVEN)
        ],
    }
    cli_runner.sandbox.replace_state(state)


@pytest.mark.untraced
def test_one_boolean_of_one_project_becomes_a_document_of_six_lines(seven: CliRunner) -> None:
    with_allow(seven, {"api": True})
    ended = seven("accept")
    assert (ended.code, ended.out) == (0, "manifests/acme/api.yaml\n")
    assert (seven.folder / "manifests/fleet.yaml").read_text() == FLEET
    assert (seven.folder / "manifests/acme/api.yaml").read_text() == (
        "apiVersion: reconciler/v1\n"
        "kind: Project\n"
        "metadata: {path: acme/api}\n"
        "spec:\n"
        "  approval_settings:\n"
        "    allow_author_approval: true\n"
    )
    assert seven("plan --detailed-exitcode").code == 0


@pytest.mark.untraced
def test_the_same_boolean_of_all_seven_is_one_line_of_the_profile(seven: CliRunner) -> None:
    with_allow(seven, dict.fromkeys(SEVEN, True))
    assert seven("accept --diff --target acme/api").out.startswith("--- /dev/null\n+++ b/manifests/acme/api.yaml\n")
    assert seven("accept --diff").out == (
        "--- a/manifests/fleet.yaml\n"
        "+++ b/manifests/fleet.yaml\n"
        "@@ -10,7 +10,7 @@\n"
        " metadata: {name: baseline}\n"
        " spec:\n"
        "   approval_settings:\n"
        "-    allow_author_approval: false  # the auditors want this\n"
        "+    allow_author_approval: true  # the auditors want this\n"
        "     retain_approvals_on_push: true\n"
        " ---\n"
        " apiVersion: reconciler/v1\n"
    )
    assert (seven.folder / "manifests/fleet.yaml").read_text() == FLEET
    assert seven("accept --diff --detailed-exitcode").code == 2
    assert seven("accept").out == "manifests/fleet.yaml\n"
    assert seven("plan --detailed-exitcode").code == 0
    assert seven("accept --diff --detailed-exitcode").code == 0


@pytest.mark.untraced
@pytest.mark.parametrize("kind", [name for name in KINDS if (EXAMPLES / f"{name}.yaml").is_file()])
def test_what_the_example_of_a_kind_declares_otherwise_is_accepted(
    cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch, dialect: str, kind: str
) -> None:
    state = read_mapping(open_source(str(EXAMPLES / "state.yaml")))
    cli_runner.sandbox.replace_state({**state, "instance": {**state["instance"], "dialect": dialect}})
    monkeypatch.setenv("RECONCILER_TOKEN", "root-token")
    cli_runner.write("manifests/example.yaml", (EXAMPLES / f"{kind}.yaml").read_text())
    asked = [requests_of(cli_runner, line) for line in ("plan", "accept --diff")]
    assert asked[0] == asked[1]
    assert cli_runner("accept").code == 0
    assert cli_runner("plan --detailed-exitcode").code == 0
    assert cli_runner("accept").out == ""
    assert {each["method"] for each in cli_runner.sandbox.log()} == {"GET"}


def requests_of(cli_runner: CliRunner, line: str) -> list[str]:
    """Return the requests that a command makes, in no order."""
    cli_runner.sandbox.clear_log()
    cli_runner(line)
    return sorted(f"{each['method']} {each['target']}" for each in cli_runner.sandbox.log())


LOCKED = """apiVersion: reconciler/v1
kind: Profile
metadata:
  name: baseline
  locks: {approval_settings: [allow_author_approval], milestones: [m1]}
spec:
  approval_settings: {allow_author_approval: false, retain_approvals_on_push: true}
  milestones: {m1: {state: active, renamed_from: m0}, m2: {state: active}}
---
apiVersion: reconciler/v1
kind: Project
metadata: {path: acme/api, profiles: [baseline]}
spec: {}
"""
TEMPLATE = """apiVersion: reconciler/v1
kind: Project
metadata: {path: acme/lib}
spec: {milestones: {m1: {state: active}}, job_token_scope: {projects: [acme/api]}}
"""


@pytest.mark.untraced
def test_a_document_with_a_warning_is_changed_like_any_other(seven: CliRunner) -> None:
    seven.write("manifests/api.yaml", MISSPELT)
    with_allow(seven, {"api": True})
    state = seven.sandbox.state()
    next(each for each in state["projects"] if each["path"] == "acme/api")["milestones"][0]["description"] = "of {pat}"
    seven.sandbox.replace_state(state)
    assert seven("accept").out == "manifests/api.yaml\n"
    assert (seven.folder / "manifests/api.yaml").read_text() == MISSPELT.replace("false", "true")


@pytest.mark.untraced
def test_what_a_lock_or_a_template_holds_is_told(cli_runner: CliRunner) -> None:
    cli_runner.write("manifests/locked.yaml", LOCKED)
    cli_runner.write("manifests/lib.yaml.j2", TEMPLATE)
    cli_runner.service(merge_request_approval_settings={"allow_author_approval": True})
    ended = cli_runner("accept")
    assert (ended.code, ended.out) == (3, "manifests/locked.yaml\n")
    assert (
        ended.err
        == """\
not accepted: project acme/api: approval settings.allow_author_approval: locked by profile baseline (manifests/locked.yaml:5:31): change it there
not accepted: project acme/api: milestone "m1": locked by profile baseline (manifests/locked.yaml:5:68): change it there
not accepted: project acme/lib: allowlisted project "acme/api": declared at manifests/lib.yaml.j2:4, in a template; change it there
not accepted: project acme/lib: milestone "m1": declared at manifests/lib.yaml.j2:4, in a template; change it there
2 differences accepted; 1 file written.
"""
    )
    changed = LOCKED.replace("approvals_on_push: true", "approvals_on_push: false").replace(
        ", m2: {state: active}}", "}"
    )
    assert (cli_runner.folder / "manifests/locked.yaml").read_text() == changed


def test_what_is_not_accepted_is_not_counted(cli_runner: CliRunner) -> None:
    cli_runner.service(builds_enabled=False)
    cli_runner.project("{trigger_tokens: {deploy: {}, release: {}}, milestones: {m: {}}}")
    profile = "apiVersion: reconciler/v1\nkind: Profile\nmetadata: {name: all}\nspec: {}\n---\n"
    select = (
        "apiVersion: reconciler/v1\nkind: ProjectSet\nmetadata: {name: all, profiles: [all]}\nselect: {group: acme}\n"
    )
    cli_runner.write("manifests/set.yaml", profile + select)
    assert (
        cli_runner("accept").err
        == """\
not accepted: project acme/api: trigger_tokens: switched off in the project: CI/CD; switch CI/CD on, or leave the section out
1 difference accepted; 1 file written.
"""
    )


def test_what_cannot_be_read_or_declared_is_told_and_all_else_accepted(cli_runner: CliRunner) -> None:
    cli_runner.service(
        container_registry_enabled=False,
        milestones=[{"id": 1, "title": "2027.1"}, {"id": 2, "title": "Q1"}, {"id": 3, "title": "Q2"}],
        trigger_tokens=[
            {"id": 1, "description": "old", "owner": "ada", "created_at": "2020-01-01T00:00:00Z"},
            {"id": 2, "description": "twin", "owner": "ada"},
            {"id": 3, "description": "twin", "owner": "ada"},
            {"id": 4, "description": "", "owner": "ada"},
        ],
    )
    spec = """
  prune: [trigger_tokens]
  container_repository_protection_rules: {}
  trigger_tokens: {old: {rotate_after: 90d}}
  milestones: {"2027.1": {renamed_from: [Q1, Q3], state: closed}, "2027.2": {renamed_from: [Q2]}}
  job_token_scope: {projects: [acme/nowhere]}"""
    cli_runner.project(spec)
    cli_runner.project("{milestones: {m: {}}}", "acme/gone", "manifests/gone.yaml")
    ended = cli_runner("accept")
    assert (ended.code, ended.out) == (3, "manifests/project.yaml\n")
    assert (
        ended.err
        == """\
not accepted: project acme/gone: not found, or not visible to ada; correct it in the manifest, make ada a member, or create it: `create: {}` in its document (manifests/gone.yaml:1)
not accepted: project acme/api: container_repository_protection_rules: cannot be read: switched off in the project: the container registry; switch the container registry on, or leave the section out
not accepted: project acme/api: trigger token "old": a rotation is due, which `apply` carries out
not accepted: project acme/api: trigger token "": a description must not be blank
not accepted: project acme/api: trigger token "twin": 2 objects have this name
3 differences accepted; 1 file written.
"""
    )
    assert (
        (cli_runner.folder / "manifests/project.yaml").read_text().partition("spec: ")[2]
        == """
  prune: [trigger_tokens]
  container_repository_protection_rules: {}
  trigger_tokens: {old: {rotate_after: 90d}}
  milestones: {"2027.1": {state: active}, Q2: {}}
"""
    )


def test_without_a_target_that_can_be_read_nothing_is_done(cli_runner: CliRunner) -> None:
    cli_runner.project("{milestones: {m: {}}}", "acme/gone", "manifests/gone.yaml")
    cli_runner.project("{milestones: {m: {}}}", "acme/api")
    assert cli_runner("accept --target acme/gone").code == 1
    assert cli_runner("accept --section milestones --exclude acme/gone").out == "manifests/project.yaml\n"
    assert cli_runner("accept --detailed-exitcode").err == "reconciler: --detailed-exitcode goes with --diff\n"


DRIFTED = "apiVersion: reconciler/v1\nkind: Project\nmetadata: {path: acme/%s}\nspec: {milestones: {m: {}}}\n"


def test_files_are_written_whole_or_not_at_all_and_never_through_a_link(
    cli_runner: CliRunner,
) -> None:
    api = cli_runner.write("manifests/acme/api.yaml", "")
    api.write_bytes(b"\xef\xbb\xbf" + (DRIFTED % "api").replace("\n", "\r\n").encode())
    outside = cli_runner.write("outside/lib.yaml", DRIFTED % "lib")
    (cli_runner.folder / "manifests/lib.yaml").symlink_to(outside)
    (cli_runner.folder / "manifests/more").symlink_to(cli_runner.write("elsewhere/web.yaml", DRIFTED % "web").parent)
    ended = cli_runner("accept")
    assert (ended.code, ended.out) == (3, "manifests/acme/api.yaml\n")
    assert ended.err.splitlines()[:2] == [
        'not accepted: project acme/lib: milestone "m": declared at manifests/lib.yaml:4, behind a symbolic link; change it there',
        'not accepted: project acme/web: milestone "m": declared at manifests/more/web.yaml:4, behind a symbolic link; change it there',
    ]
    assert cli_runner("accept").out == ""
    now = (DRIFTED % "api").replace("{m: {}}", "{}").replace("\n", "\r\n")
    assert api.read_bytes() == b"\xef\xbb\xbf" + now.encode()
    assert outside.read_text() == DRIFTED % "lib"


def test_a_new_document_never_takes_the_place_of_something_else(cli_runner: CliRunner) -> None:
    shared = """apiVersion: reconciler/v1
kind: ProjectSet
metadata: {name: all}
select: {projects: [acme/api, acme/lib]}
spec: {milestones: {m: {}}}
"""
    manifest = cli_runner.write("manifests/sets/all.yaml", shared)
    cli_runner.service(milestones=[{"id": 1, "title": "m"}])
    place = cli_runner.write("manifests/acme/lib.yaml/stays", "")
    ended = cli_runner("accept manifests")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.endswith("manifests/acme/lib.yaml: Is a directory\n")
    place.unlink()
    place.parent.rmdir()
    place.parent.write_text("# nothing\n")
    ended = cli_runner("accept manifests")
    assert ended.err.endswith(
        "manifests/acme/lib.yaml exists, where a new document would be created; nothing was written\n"
    )
    place.parent.unlink()
    place.parent.parent.rmdir()
    (cli_runner.folder / "elsewhere").mkdir()
    place.parent.parent.symlink_to(cli_runner.folder / "elsewhere")
    ended = cli_runner("accept manifests")
    assert ended.err.endswith(
        "manifests/acme/lib.yaml: a symbolic link leads there: change the file that it leads to; nothing was written\n"
    )
    place.parent.parent.unlink()
    assert manifest.read_text() == shared
    own = "apiVersion: reconciler/v1\nkind: Project\nmetadata: {path: acme/lib}\nspec:\n  milestones:\n    m: null\n"
    assert cli_runner("accept manifests/sets/all.yaml").out == "manifests/sets/all.yaml\n"
    assert manifest.read_text() == f"{shared}---\n{own}"
    manifest.write_bytes(shared.replace("\n", "\r\n").encode())
    assert cli_runner("accept manifests/sets/all.yaml").code == 0
    assert manifest.read_bytes() == f"{shared}---\n{own}".replace("\n", "\r\n").encode()
    manifest.write_text(shared)
    assert cli_runner("accept manifests").out == "manifests/acme/lib.yaml\n"
    assert place.parent.read_text() == own


def test_a_new_document_leaves_the_line_breaks_that_the_one_before_ends_with(cli_runner: CliRunner) -> None:
    text = """apiVersion: reconciler/v1
kind: ProjectSet
metadata: {name: all}
select: {projects: [acme/api, acme/lib]}
spec:
  milestones:
    m:
      due_date: 2026-12-31
      description: |+
        kept

"""
    dated = [{"title": "m", "due_date": "2026-12-31", "description": "kept\n\n"}]
    cli_runner.service(milestones=[{**dated[0], "due_date": "2027-01-31"}])
    state = cli_runner.sandbox.state()
    state["projects"][1]["milestones"] = dated
    cli_runner.sandbox.replace_state(state)
    manifest = cli_runner.write("all.yaml", text)
    assert cli_runner("accept all.yaml").out == "all.yaml\n"
    assert manifest.read_text().startswith(f"{text}---\napiVersion: reconciler/v1\nkind: Project\n")
    assert cli_runner("drift all.yaml").code == 0


def test_a_part_of_the_manifests_is_refused_before_anything_is_requested(cli_runner: CliRunner) -> None:
    """The profile is of all teams; read with one of them, it seems to be of that team alone."""
    begin = "apiVersion: reconciler/v1\nkind: "
    base = f"{begin}Profile\nmetadata: {{name: base}}\nspec: {{milestones: {{m: {{due_date: 2026-12-31}}}}}}\n"
    cli_runner.write("manifests/base.yaml", base)
    cli_runner.write(
        "manifests/sets/all.yaml", f"{begin}ProjectSet\nmetadata: {{name: all}}\nselect: {{group: acme}}\n"
    )
    team = "{begin}Project\nmetadata: {{path: acme/{name}, profiles: [base]}}\n"
    for name in ("api", "lib", "web"):
        cli_runner.write(f"manifests/team-{name}/{name}.yaml", team.format(begin=begin, name=name))
    cli_runner.service(milestones=[{"id": 1, "title": "m", "due_date": "2027-01-31"}])
    cli_runner.sandbox.clear_log()
    remedy = "narrow it with --target instead"

    def refused(line: str) -> str:
        done = cli_runner(line)
        assert (done.code, done.out) == (64, "")
        assert cli_runner.sandbox.log() == []
        return done.err

    assert refused("accept manifests/base.yaml manifests/team-api") == (
        "reconciler: accept needs all manifests, since other targets may share the values; PATHS leave out 3 files of "
        f"manifests, such as manifests/sets/all.yaml; {remedy}\n"
    )
    for option in ("--diff", "--merge-request acme/settings", "--target acme/api"):
        refused(f"accept manifests/sets {option}")
    cli_runner.write("reconciler.yaml", "paths: [manifests/base.yaml, manifests/team-api, manifests/team-lib]\n")
    assert refused("accept ./manifests/team-api manifests/base.yaml").endswith(
        "PATHS leave out 1 file of manifests/base.yaml, manifests/team-api and manifests/team-lib, such as "
        f"manifests/team-lib/lib.yaml; {remedy}\n"
    )
    cli_runner.write("reconciler.yaml", "paths: manifests\n")

    # all of them by other names, more than all, and those of another place
    whole = "accept {} --diff --target acme/api".format
    expected = cli_runner("accept --diff --target acme/api").out
    assert expected.startswith("--- a/manifests/team-api/api.yaml\n")
    every = "manifests/base.yaml manifests/sets manifests/team-api manifests/team-lib manifests/team-web"
    assert cli_runner(whole(every)).out == expected
    cli_runner.write("elsewhere/api.yaml", team.format(begin=begin, name="api").replace(", profiles: [base]", ""))
    assert cli_runner(whole("elsewhere")).code == 0
    assert "project acme/api is already declared at" in cli_runner(whole("manifests elsewhere")).err


UNFIT = """apiVersion: reconciler/v1
kind: ProjectSet
metadata: {name: all}
select: {group: acme}
spec:
  approval_settings: {allow_author_approval: true}
  trigger_tokens: {gone: null}
"""
EXCEPTED = """---
apiVersion: reconciler/v1
kind: Project
metadata:
  path: acme/web
  exceptions:
    - {section: approval_settings, fields: [allow_author_approval], until: 2099-01-01, reason: OPS-12}
spec: {approval_settings: {retain_approvals_on_push: true}}
"""


def test_projects_without_a_section_agree_to_it_and_excepted_ones_do_not(cli_runner: CliRunner) -> None:
    state = a_small_service("deployed")
    state["projects"][0] |= {"builds_enabled": False}
    for project in state["projects"][1:]:
        project["trigger_tokens"] = [{"id": project["id"], "description": "gone", "owner": "ada"}]
    cli_runner.sandbox.replace_state(state)
    manifest = cli_runner.write("manifests/all.yaml", UNFIT)
    assert cli_runner("accept").code == 0
    accepted = UNFIT.replace("author_approval: true", "author_approval: false").replace("null", "{}")
    assert manifest.read_text() == accepted
    manifest.write_text(UNFIT + EXCEPTED)
    ended = cli_runner("accept")
    assert (ended.code, ended.out, ended.err) == (
        0,
        "manifests/acme/api.yaml\nmanifests/acme/lib.yaml\nmanifests/acme/tools/cli.yaml\nmanifests/all.yaml\n",
        "7 differences accepted; 4 files written.\n",
    )
    accepted = (UNFIT + EXCEPTED).replace("null", "{}").replace("on_push: true", "on_push: false")
    assert manifest.read_text() == accepted
    assert "\nNo changes: 4 targets are in order, 1 not applicable, 1 excepted. " in cli_runner("plan").out


CREATING = """\
# one team
apiVersion: reconciler/v1
kind: Project
metadata: {path: acme/api}
create: {name: API, visibility: internal}  # it is there by now
spec:
  milestones:
    "1.0": {description: %s}
---
apiVersion: reconciler/v1
kind: Group
metadata: {path: acme/team}
create: {}
---
apiVersion: reconciler/v1
kind: Project
metadata: {path: acme/team/web}
create:
  import: {github: {repo_id: 5, token_env: GITHUB_TOKEN}}
spec:
  milestones:
    "1.0": {description: mine}
---
apiVersion: reconciler/v1
kind: ProjectSet
metadata: {name: team}
select: {projects: [acme/api, acme/team/web]}
spec: {milestones: {"2.0": {}}}
"""


def test_a_creation_is_told_and_stays_as_it_is_written(cli_runner: CliRunner) -> None:
    cli_runner.service(milestones=[{"title": "1.0", "description": "theirs"}, {"title": "2.0"}])
    file = cli_runner.write("manifests/team.yaml", CREATING % "mine")
    done = cli_runner("accept")
    assert (done.code, done.out) == (3, "manifests/team.yaml\n")
    assert done.err == (
        "not accepted: group acme/team and 1 more: does not exist, and `apply` creates it\n"
        "1 difference accepted; 1 file written.\n"
    )
    assert file.read_text() == CREATING % "theirs"


BASELINE = """\
apiVersion: reconciler/v1
kind: Profile
metadata: {name: base}
spec:
  milestones: {"1.0": {state: active}}
---
apiVersion: reconciler/v1
kind: ProjectSet
metadata: {name: all, profiles: [base]}
select: {projects: [acme/api, acme/lib, acme/web, partners/shop]}
"""
OWN = """\
apiVersion: reconciler/v1
kind: Project
metadata: {path: %s}
"""
SPEC = """\
spec:
  milestones:
    "1.0": null
"""


def test_what_is_accepted_leaves_nothing_empty_and_is_beside_the_documents_of_projects(cli_runner: CliRunner) -> None:
    state, closed = a_small_service("deployed"), {"acme/api", "partners/shop"}
    state["groups"].append({"id": 20, "path": "partners", "members": [{"user": "ada", "role": "owner"}]})
    state["projects"].append({"id": 120, "path": "partners/shop"})
    for each in state["projects"]:
        each["milestones"] = [{"title": "1.0", "state": "closed" if each["path"] in closed else "active"}]
    baseline = cli_runner.write("manifests/baseline/base.yaml", BASELINE)
    own = cli_runner.write("manifests/teams/acme/lib.yaml", OWN % "acme/lib" + SPEC)
    cli_runner.write("manifests/flat/web.yaml", OWN % "acme/tools/web" + "spec: {milestones: {}}\n")
    state["projects"].append({"id": 121, "path": "acme/tools/web"})
    cli_runner.sandbox.replace_state(state)
    done = cli_runner("accept")
    assert (done.code, done.out) == (
        0,
        "manifests/partners/shop.yaml\nmanifests/teams/acme/api.yaml\nmanifests/teams/acme/lib.yaml\n",
    )
    assert (cli_runner.folder / "manifests/teams/acme/api.yaml").read_text() == (
        OWN % "acme/api" + 'spec:\n  milestones:\n    "1.0":\n      state: closed\n'
    )
    assert (baseline.read_text(), own.read_text()) == (BASELINE, OWN % "acme/lib")
    assert cli_runner("plan --detailed-exitcode").code == 0
