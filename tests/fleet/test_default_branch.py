"""`{default_branch}`: each project's own, filled in by what lists and records show, and never a reason to delete."""

from typing import Any

import pytest

from reconciler.model.protocols import Request
from reconciler.service import Client
from tests.cli_runner import CliRunner
from tests.fleet.repository import Repository
from tests.states import a_small_service

SET = """\
apiVersion: reconciler/v1
kind: ProjectSet
metadata: {name: all}
select: {group: acme}
spec:
  protected_branches:
    "{default_branch}": {allowed_to_push: [], allow_force_push: false}
  approval_rules:
    Security: {approvals_required: 1, users: [ada], branches: ["{default_branch}"]}
"""

DOCUMENT = """\
apiVersion: reconciler/v1
kind: Project
metadata: {path: acme/api}
spec:
  protected_branches: {"{default_branch}": {allow_force_push: false}}
"""

NEW = """\
apiVersion: reconciler/v1
kind: Project
metadata: {path: acme/fresh}
create: {visibility: private}
"""

LIST = (
    "GET groups/acme/projects?include_subgroups=true&with_shared=false&archived=false&order_by=id&sort=asc"
    "&per_page=100&page=1"
)
BRANCHES = {"acme/api": "main", "acme/lib": "trunk", "acme/web": "master", "acme/tools/cli": "main"}
PUSH = "allowed_to_push: maintainer, by default"
DEFAULTS = "allowed_to_merge: maintainer, by default, allowed_to_unprotect: maintainer, by default, tightens"
BY_SET = f"allowed_to_push: nobody, allow_force_push: false, {DEFAULTS}     manifests/set.yaml:7\n"


def projects(cli_runner: CliRunner, **changes: dict[str, Any]) -> None:
    """Give the service projects with three default branches, and some further fields by the project's last word."""
    state = a_small_service("deployed")
    for project in state["projects"]:
        name = project["path"].rpartition("/")[2]
        project |= {"default_branch": BRANCHES[project["path"]], **changes.get(name, {})}
    state["users"].append({"id": 9, "username": "gus", "tokens": ["gus-token"]})
    state["groups"][0]["members"].append({"user": "gus", "role": "guest"})
    cli_runner.sandbox.replace_state(state)


def rename(cli_runner: CliRunner, branch: str, number: int = 0) -> None:
    """Give a project another default branch, as the service does: no rule changes."""
    with Client(cli_runner.sandbox.api_url, "ada-token") as client:
        client.send(Request("PUT", f"projects/{100 + number}", {"default_branch": branch}))


def rules(cli_runner: CliRunner, number: int = 0) -> list[str]:
    """Return the protected branches of a project."""
    return [rule["name"] for rule in cli_runner.sandbox.state()["projects"][number].get("protected_branches", [])]


def requests(cli_runner: CliRunner) -> list[str]:
    """Return the requests since the log was cleared, those for a project's branches in short."""
    log = [f"{each['method']} {each['target'].removeprefix('/api/v4/')}" for each in cli_runner.sandbox.log()]
    cli_runner.sandbox.clear_log()
    return sorted(each.replace("?per_page=100&page=1", "").replace("%2F", "/") for each in log)


def rule(name: str, declared: str) -> str:
    """Return the line of a new rule."""
    what = f'protected branch "{name}"'
    return f"  + {what:<42}{declared}"


def approval(branch: str) -> str:
    """Return the line of a new approval rule."""
    what = 'approval rule "Security"'
    return f"  + {what:<42}approvals_required: 1, users: ada, branches: {branch}, tightens     manifests/set.yaml:9\n"


@pytest.mark.untraced
def test_a_set_means_the_default_branch_of_each_project_and_asks_for_nothing_more(cli_runner: CliRunner) -> None:
    projects(cli_runner)
    cli_runner.write("manifests/set.yaml", SET)
    assert cli_runner("validate").out == "Valid: 1 document: 1 set.\n"
    assert '    "{default_branch}":\n' in cli_runner("render --target acme/api").out
    requests(cli_runner)
    done = cli_runner("plan")
    paths = ("acme/api", "acme/lib", "acme/tools/cli", "acme/web")
    assert (done.code, done.err) == (0, "")
    assert done.out == (
        "".join(f"project {path}\n{rule(BRANCHES[path], BY_SET)}{approval(BRANCHES[path])}" for path in paths)
        + "Plan: 8 to create, 8 tightening. 8 writes to apply; 13 requests were made to plan.\n"
    )
    asked = [f"GET projects/{path}/{what}" for path in paths for what in ("approval_rules", "protected_branches")]
    members = [f"GET projects/{path}/members/all" for path in paths]
    assert requests(cli_runner) == sorted(
        [LIST.replace("&per_page=100&page=1", "&per_page=100&page=1"), *asked, *members]
    )
    assert cli_runner("apply --yes").code == 0
    assert [rules(cli_runner, number) for number in range(4)] == [["main"], ["trunk"], ["master"], ["main"]]
    assert cli_runner("plan").out == "No changes: 4 targets are in order. 9 requests were made to plan.\n"


@pytest.mark.parametrize(("ref", "name"), [("path: acme/api", "acme/api"), ("id: 100", "100")])
def test_a_document_costs_the_record_of_its_project_once(cli_runner: CliRunner, ref: str, name: str) -> None:
    projects(cli_runner)
    cli_runner.write("manifests/a.yaml", DOCUMENT.replace("path: acme/api", ref).replace('": {allow', '": &a {allow'))
    requests(cli_runner)
    done = cli_runner("plan")
    line = rule("main", f"allow_force_push: false, {PUSH}, {DEFAULTS}     manifests/a.yaml:5\n")
    ends = "Plan: 1 to create, 1 tightening. 1 write to apply; 2 requests were made to plan.\n"
    assert (done.code, done.out) == (0, f"project {name}\n{line}{ends}")
    # whether the project is archived needs the same record
    assert requests(cli_runner) == [f"GET projects/{name}", f"GET projects/{name}/protected_branches"]
    cli_runner("plan --section milestones")
    cli_runner("plan --exclude acme/* --section protected_branches")
    assert f"GET projects/{name}" not in requests(cli_runner) or name == "100"


def test_a_set_that_lists_projects_costs_the_record_of_each(cli_runner: CliRunner) -> None:
    projects(cli_runner)
    cli_runner.write("manifests/set.yaml", SET.replace("group: acme", "projects: [acme/lib]"))
    requests(cli_runner)
    assert cli_runner("plan --section protected_branches").out == (
        f"project acme/lib\n{rule('trunk', BY_SET)}Plan: 1 to create, 1 tightening. 1 write to apply; 2 requests were made to plan.\n"
    )
    assert requests(cli_runner) == ["GET projects/acme/lib", "GET projects/acme/lib/protected_branches"]


def test_it_and_the_name_that_it_has_are_one_item_of_several_layers(cli_runner: CliRunner) -> None:
    projects(cli_runner)
    cli_runner.write("manifests/set.yaml", SET)
    cli_runner.write("manifests/a.yaml", DOCUMENT.replace("{default_branch}", "main").replace("false", "true"))
    done = cli_runner("plan --target acme/api --section protected_branches")
    declared = f"allowed_to_push: nobody, allow_force_push: true, {DEFAULTS}     manifests/a.yaml:5\n"
    assert done.out.splitlines(keepends=True)[1] == rule("main", declared)


def test_a_project_without_a_repository_has_none(cli_runner: CliRunner) -> None:
    """By a set the section is not applicable, also where nothing but the branch needs the repository."""
    projects(cli_runner, api={"repository_enabled": False}, lib={"repository_enabled": False}, web={"archived": True})
    only = SET.replace("  protected_branches:\n", "").replace(
        '    "{default_branch}": {allowed_to_push: [], allow_force_push: false}\n', ""
    )
    cli_runner.write("manifests/set.yaml", only)
    cli_runner.write(
        "manifests/lib.yaml", DOCUMENT.replace("acme/api", "acme/lib").split("spec")[0] + only[only.index("spec") :]
    )
    done = cli_runner("plan -v")
    told = "it has no default branch: its repository is switched off"
    assert done.code == 3
    assert done.out.startswith(
        f"project acme/api\n  ? {'approval_rules is not applicable':<42}{told}\n"
        f"project acme/lib\n  ! approval_rules: {told}; switch it on     manifests/lib.yaml:5\n"
        f"project acme/tools/cli\n"
    )
    assert "acme/web" not in done.out


def test_a_project_of_a_document_without_a_repository_has_none(cli_runner: CliRunner) -> None:
    projects(cli_runner, api={"repository_enabled": False})
    cli_runner.write("manifests/a.yaml", DOCUMENT)
    requests(cli_runner)
    done = cli_runner("plan")
    told = "it has no default branch: its repository is switched off; switch it on"
    ends = "Plan: 1 problem. 1 request was made to plan.\n"
    assert (done.code, done.out) == (
        3,
        f"project acme/api\n  ! protected_branches: {told}     manifests/a.yaml:5\n{ends}",
    )
    assert requests(cli_runner) == ["GET projects/acme/api"]
    checked = cli_runner("doctor")
    assert "switched off in the project: the repository" in checked.out
    assert "{default_branch}" not in checked.out


def test_guests_do_not_see_it(cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    projects(cli_runner)
    cli_runner.write("manifests/set.yaml", SET)
    cli_runner.write("manifests/a.yaml", DOCUMENT.replace("acme/api", "partners/x"))
    monkeypatch.setenv("RECONCILER_TOKEN", "gus-token")
    done = cli_runner("plan --target acme/lib --section protected_branches")
    told = "its default branch is not shown to this token: that takes the role Reporter there; use the token of a Reporter or more"
    assert (done.code, done.out) == (
        3,
        f"project acme/lib\n  ! protected_branches: {told}     manifests/set.yaml:6\n"
        "Plan: 1 problem. 1 request was made to plan.\n",
    )
    missing = cli_runner("plan --target partners/x")
    assert missing.out == (
        "project partners/x\n  ! protected_branches: its default branch is not known (not found, not visible to this token, or not "
        "served by this server (project partners/x: 404 Project Not Found))     manifests/a.yaml:5\n"
        "Plan: 1 problem. 2 requests were made to plan.\n"
    )


def test_a_new_project_has_none_yet(cli_runner: CliRunner) -> None:
    """Its rules come with the next plan: nobody knows before how its first branch will be called."""
    projects(cli_runner)
    cli_runner.write("manifests/set.yaml", SET)
    cli_runner.write("manifests/new.yaml", NEW)
    done = cli_runner("plan -v --target acme/fresh")
    told = "this run creates the project, and its default branch is known afterwards"
    assert done.code == 0
    assert f"  ? {'protected_branches is not applicable':<42}{told}\n" in done.out
    assert cli_runner("apply --yes --target acme/fresh").code == 0
    again = cli_runner("plan --target acme/fresh")
    assert rule("main", BY_SET) in again.out
    cli_runner.write("manifests/new.yaml", NEW.replace("fresh", "later") + DOCUMENT[DOCUMENT.index("spec") :])
    own = cli_runner("plan --target acme/later")
    assert own.code == 3
    assert f"  ! protected_branches: {told}; plan again then     manifests/new.yaml:6\n" in own.out


def test_an_archived_project_that_no_list_shows_is_asked_for_once(cli_runner: CliRunner) -> None:
    projects(cli_runner, api={"archived": True})
    cli_runner.write("manifests/set.yaml", SET)
    cli_runner.write("manifests/a.yaml", DOCUMENT.replace("spec:", "create: {}\nspec:"))
    requests(cli_runner)
    done = cli_runner("plan --target acme/api")
    assert done.out.startswith("project acme/api\n  ! protected_branches: the project is archived; unarchive it")
    assert requests(cli_runner).count("GET projects/acme/api") == 1


def test_in_an_empty_project_there_may_be_no_such_branch(cli_runner: CliRunner) -> None:
    """The service shows the name that the first branch is expected to have; a rule for it may come before."""
    projects(cli_runner, api={"empty_repo": True})
    cli_runner.write("manifests/a.yaml", DOCUMENT)
    assert cli_runner("apply --yes").code == 0
    assert rules(cli_runner) == ["main"]


def test_what_contradicts_its_name_is_a_problem_of_that_project_alone(cli_runner: CliRunner) -> None:
    projects(cli_runner)
    both = SET.replace("  approval_rules", "    main: {allow_force_push: true}\n  approval_rules")
    cli_runner.write("manifests/set.yaml", both)
    assert cli_runner("validate").code == 0
    done = cli_runner("plan --section protected_branches")
    same = "`main` and `{default_branch}` (manifests/set.yaml:7:5) are one and the same name"
    problem = (
        f"  ! protected_branches: the default branch is main; manifests/set.yaml:8:5: {same}     manifests/set.yaml:6\n"
    )
    main = rule("main", f"allow_force_push: true, {PUSH}, {DEFAULTS}     manifests/set.yaml:8\n")
    assert done.code == 3
    many = f"{'2 projects':<69}(acme/api, acme/tools/cli)\n"
    assert done.out == (
        f"{many}{problem}project acme/lib\n{main}{rule('trunk', BY_SET)}"
        f"project acme/web\n{main}{rule('master', BY_SET)}"
        "Plan: 4 to create, 4 tightening, 2 problems. 4 writes to apply; 3 requests were made to plan.\n"
    )
    checked = cli_runner("doctor --target acme/api")
    assert "the default branch is main; manifests/set.yaml:8:5:" in checked.out


def test_a_lock_holds_the_branch_of_that_name(cli_runner: CliRunner) -> None:
    projects(cli_runner)
    locked = SET.replace("{name: all}", '{name: all, locks: {protected_branches: ["{default_branch}"]}}')
    cli_runner.write("manifests/set.yaml", locked)
    own = DOCUMENT.replace("{default_branch}", "main")
    cli_runner.write("manifests/a.yaml", own)
    assert cli_runner("plan --target acme/api").code == 0
    cli_runner.write("manifests/a.yaml", own.replace("false", "true"))
    done = cli_runner("plan --section protected_branches")
    lock = "protected_branches.main is locked"
    assert done.code == 3
    assert (
        f"project acme/api\n  ! protected_branches: the default branch is main; manifests/a.yaml:5:51: {lock} by set all (manifests/set.yaml:3:52): repeat"
        in done.out
    )
    assert "problem. 3 writes" in done.out
    cli_runner.write("manifests/a.yaml", own.replace("main", "{default_branch}").replace("false", "true"))
    broken = cli_runner("plan")
    assert broken.code == 1
    assert "protected_branches.{default_branch} is locked by set all" in broken.err


def test_sets_of_one_priority_that_come_to_disagree_are_a_problem_there(cli_runner: CliRunner) -> None:
    projects(cli_runner)
    cli_runner.write("manifests/set.yaml", SET)
    cli_runner.write(
        "manifests/z.yaml",
        SET.replace("name: all", "name: more")
        .replace("{default_branch}", "trunk")
        .replace("push: false", "push: true"),
    )
    done = cli_runner("plan --section protected_branches")
    assert done.code == 3
    assert "project acme/lib\n  ! protected_branches: the default branch is trunk; manifests/" in done.out
    assert "have the same priority, 0, and disagree here" in done.out
    assert "1 problem." in done.out


def test_exceptions_match_after_it_is_filled_in(cli_runner: CliRunner) -> None:
    projects(cli_runner)
    cli_runner.write("manifests/set.yaml", SET)
    until = "until: 2999-01-01, reason: later"
    exception = f'exceptions: [{{section: protected_branches, item: "{{default_branch}}", {until}}}]'
    cli_runner.write(
        "manifests/a.yaml", f"apiVersion: reconciler/v1\nkind: Project\nmetadata: {{path: acme/api, {exception}}}\n"
    )
    done = cli_runner("plan -v --target acme/api --section protected_branches")
    assert 'protected branch "main"' in done.out
    assert "excepted until 2999-01-01: later" in done.out


def test_an_exception_for_the_default_branch_is_written_as_the_rule_is_declared(cli_runner: CliRunner) -> None:
    """It holds for the next default branch too. Of two fields, the plan counts one change, and so does `accept`."""
    loose = {"push_access_levels": [{"access_level": 30}], "allow_force_push": True}
    projects(cli_runner, api={"protected_branches": [{"name": name, **loose} for name in ("main", "next")]})
    cli_runner.write("manifests/set.yaml", SET)
    chosen = "--target acme/api --section protected_branches"
    assert "Plan: 1 to update, " in cli_runner(f"plan {chosen}").out
    accepted = cli_runner(f"accept --until 2999-01-01 {chosen} --reason later")
    assert (accepted.code, accepted.err) == (0, "1 difference excepted until 2999-01-01; 1 file written.\n")
    about = 'item: "{default_branch}", fields: [allowed_to_push, allow_force_push]'
    exception = f"{{section: protected_branches, {about}, until: 2999-01-01, reason: later}}"
    assert (cli_runner.folder / "manifests/acme/api.yaml").read_text() == (
        f"apiVersion: reconciler/v1\nkind: Project\nmetadata:\n  path: acme/api\n  exceptions:\n    - {exception}\n"
    )
    for branch in ("main", "next"):
        rename(cli_runner, branch)
        assert ", 1 excepted. " in cli_runner(f"plan {chosen}").out
    assert cli_runner("validate").err == ""


def test_an_exception_may_name_the_default_branch_by_its_name(cli_runner: CliRunner) -> None:
    """No command warns of it; of another name, those that know the branch do."""
    projects(cli_runner, api={"protected_branches": [{"name": "main", "push_access_levels": [{"access_level": 30}]}]})
    cli_runner.write("manifests/set.yaml", SET)
    exception = "{section: protected_branches, item: main, fields: [allowed_to_push], until: 2999-01-01, reason: later}"
    document = (
        f"apiVersion: reconciler/v1\nkind: Project\nmetadata:\n  path: acme/api\n  exceptions:\n    - {exception}\n"
    )
    cli_runner.write("manifests/acme/api.yaml", document)
    for command in ("validate", "plan --section protected_branches"):
        done = cli_runner(command)
        assert (done.code, done.err) == (0, "")
    assert done.out.endswith("1 excepted. 3 writes to apply; 5 requests were made to plan.\n")
    cli_runner.write("manifests/acme/api.yaml", document.replace("item: main", "item: trunk"))
    assert cli_runner("validate").err == ""
    done = cli_runner("plan --section protected_branches")
    assert "manifests/acme/api.yaml:6:43: warning: `trunk` is not declared: this exception has no effect" in done.err


def test_no_line_may_go_that_leaves_alone_what_may_be_the_default_branch(cli_runner: CliRunner) -> None:
    """Without the line, the set's rule would hold; offline, nobody knows whether it is the one of that name."""
    document = (
        "apiVersion: reconciler/v1\nkind: Project\nmetadata: {path: acme/api}\nspec: {unmanaged: [{%s: [main]}]}\n"
    )
    cli_runner.write("manifests/set.yaml", SET)
    cli_runner.write("manifests/a.yaml", document % "protected_branches")
    assert cli_runner("validate").out == "Valid: 2 documents: 1 project, 1 set.\n"
    cli_runner.write("manifests/a.yaml", document % "approval_rules")
    assert "this line may go: no profile and no set declares it" in cli_runner("validate").out


@pytest.mark.untraced
def test_another_default_branch_gets_a_rule_and_the_former_one_stays(cli_runner: CliRunner, git: Repository) -> None:
    projects(cli_runner)
    cli_runner.write("manifests/a.yaml", DOCUMENT)
    first = git.commit()
    assert cli_runner("apply --yes").code == 0
    rename(cli_runner, "next")
    stays = (
        "1 object no longer declared stays: it was declared as that of the default branch, which is another one now\n"
    )
    new = rule("next", f"allow_force_push: false, {PUSH}, {DEFAULTS}     manifests/a.yaml:5\n")
    done = cli_runner("plan")
    assert done.out == (
        f"project acme/api\n{new}{stays}Plan: 1 to create, 1 tightening, 1 unmanaged. 1 write to apply; 2 requests were made to plan.\n"
    )
    assert cli_runner("apply --yes").code == 0
    assert rules(cli_runner) == ["main", "next"]
    # the manifests let go of it: what is called so now is deleted, by history; the former one stays
    cli_runner.write("manifests/a.yaml", DOCUMENT.replace('{"{default_branch}": {allow_force_push: false}}', "{}"))
    done = cli_runner("plan")
    assert f"removed from the manifests since {first[:7]}" in done.out
    assert stays in done.out
    assert cli_runner("apply --yes").code == 0
    assert rules(cli_runner) == ["main"]


def test_digests_are_of_the_text_before_it_is_filled_in(cli_runner: CliRunner, git: Repository) -> None:
    """The name belongs to the service: where it changes, no document has changed, so `--since` plans nothing."""
    projects(cli_runner)
    cli_runner.write("manifests/a.yaml", DOCUMENT)
    git.commit()
    assert cli_runner("apply --yes").code == 0
    rename(cli_runner, "next")
    requests(cli_runner)
    nothing = "Nothing to do: no target was looked at. 0 requests were made to plan.\n"
    assert cli_runner("plan --since HEAD").out == nothing
    assert cli_runner("plan --since applied").out.endswith(nothing)
    assert requests(cli_runner) == []
    cli_runner.write("manifests/a.yaml", DOCUMENT.replace("{default_branch}", "next"))
    assert rule("next", "").split("allow")[0].rstrip() in cli_runner("plan --since applied").out


def test_what_was_declared_by_it_is_no_difference_of_the_change(cli_runner: CliRunner, git: Repository) -> None:
    projects(cli_runner)
    cli_runner.write("manifests/a.yaml", DOCUMENT)
    git.commit()
    cli_runner.write("manifests/a.yaml", DOCUMENT.replace("}}\n", '}, "v*": {}}\n'))
    done = cli_runner("plan --since HEAD")
    assert (
        "Plan: 1 to create, 1 tightening, 1 not of this change. 2 writes to apply; 2 requests were made to plan.\n"
        in done.out
    )


def test_a_saved_plan_holds_the_name_that_it_shows(cli_runner: CliRunner) -> None:
    projects(cli_runner)
    cli_runner.write("manifests/a.yaml", DOCUMENT)
    assert cli_runner("plan --out plan.json").code == 0
    rename(cli_runner, "next")
    assert cli_runner("apply --plan plan.json --yes").code == 0
    assert rules(cli_runner) == ["main"]


def test_a_set_that_names_the_default_branch_of_some_is_warned_of_the_others(cli_runner: CliRunner) -> None:
    projects(cli_runner)
    named = SET[: SET.index("  approval")].replace("{default_branch}", "main")
    cli_runner.write("manifests/set.yaml", named)
    others = "2 projects have another default branch, such as acme/lib (trunk): write `{default_branch}`\n"
    line = '        "main": {allowed_to_push: [], allow_force_push: false}\n        ^\n'
    assert cli_runner("validate").err == ""
    assert cli_runner("plan").err == f"manifests/set.yaml:7:5: warning: {others}{line}"
    # another name there may stand for it; a set may also name a branch that is nobody's default branch
    cli_runner.write("manifests/set.yaml", f'{named}    "tr*": {{}}\n    stable: {{}}\n    master: null\n')
    one = "1 project has another default branch, such as acme/web (master): write `{default_branch}`\n"
    assert one not in cli_runner("plan").err
    cli_runner.write("manifests/set.yaml", f'{named}    "tr*": {{}}\n    stable: {{}}\n')
    assert cli_runner("plan").err == f"manifests/set.yaml:7:5: warning: {one}{line}"
    cli_runner.write("manifests/set.yaml", named.replace('"main"', "trunk"))
    assert "3 projects have another default branch, such as acme/api (main)" in cli_runner("plan").err
    cli_runner.write("manifests/set.yaml", named.replace('"main"', "stable"))
    assert cli_runner("plan").err == ""


@pytest.mark.untraced
def test_what_is_exported_as_a_set_protects_the_default_branch_of_each_project(cli_runner: CliRunner) -> None:
    projects(cli_runner)
    state = cli_runner.sandbox.state()
    for project in state["projects"]:
        project["protected_branches"] = [{"name": project["default_branch"], "allow_force_push": False}]
        project["approval_rules"] = [
            {"name": "Security", "rule_type": "regular", "approvals_required": 1, "users": ["ada"]}
        ]
    state["projects"][2]["protected_branches"][0]["allow_force_push"] = True
    cli_runner.sandbox.replace_state(state)
    done = cli_runner("export --group acme --as-set -o manifests --section protected_branches")
    assert (done.code, sorted(done.out.splitlines())) == (
        0,
        [f"manifests/acme{end}.yaml" for end in (".profile", ".set", "", "/web")],
    )
    declared = '  protected_branches:\n    "{default_branch}":\n'
    assert declared in (cli_runner.folder / "manifests/acme.profile.yaml").read_text()
    assert (
        '    "{default_branch}": {allow_force_push: true}\n'
        in (cli_runner.folder / "manifests/acme/web.yaml").read_text()
    )
    assert cli_runner("plan").out == "No changes: 5 targets are in order. 6 requests were made to plan.\n"
    # the folder is read again, with what is known by then
    again = cli_runner("export --group acme --as-set -o manifests --section protected_branches")
    assert (again.code, again.out) == (0, "")
    one = cli_runner("export --project acme/web -o manifests --section protected_branches")
    assert (one.code, one.out) == (0, "")


@pytest.mark.untraced
def test_a_minimum_holds_the_branch_of_that_name(cli_runner: CliRunner, git: Repository) -> None:
    projects(cli_runner)
    at_least = '{name: all, at_least: {protected_branches: ["{default_branch}"]}}'
    cli_runner.write("manifests/set.yaml", SET.replace("{name: all}", at_least))
    own = DOCUMENT.replace("{default_branch}", "main").replace("false", "true")
    cli_runner.write("manifests/a.yaml", own)
    done = cli_runner("plan --section protected_branches")
    assert done.code == 3
    assert "project acme/api\n  ! protected_branches: the default branch is main; manifests/a.yaml:5:" in done.out
    assert "set all (manifests/set.yaml:3:" in done.out
    assert "Plan: 3 to create, 3 tightening, 1 problem." in done.out
    cli_runner.write("manifests/a.yaml", own.replace("allow_force_push: true", "code_owner_approval_required: true"))
    git.commit()
    assert cli_runner("apply --yes").code == 0
    rename(cli_runner, "next", number=1)
    assert cli_runner("plan --since applied").out.startswith("Nothing to do")


def test_what_is_wrong_whatever_its_name_is_an_error(cli_runner: CliRunner) -> None:
    projects(cli_runner)
    late = "  milestones: {v1: {start_date: 2026-12-02, due_date: 2026-12-01}}\n"
    cli_runner.write("manifests/set.yaml", SET + late)
    done = cli_runner("plan")
    assert (done.code, done.out) == (1, "")
    assert "manifests/set.yaml:10:" in done.err
    cli_runner.write(
        "manifests/set.yaml", SET.replace("  approval", '    "release/*": {allow_force_push: true}\n  approval')
    )
    cli_runner.write(
        "manifests/z.yaml", SET.replace("name: all", "name: more").replace("{default_branch}", "release/*")
    )
    done = cli_runner("plan --section protected_branches")
    assert (done.code, done.out) == (1, "")
    assert "have the same priority, 0, and disagree here" in done.err


def test_a_former_default_branch_does_not_look_like_a_rename(cli_runner: CliRunner) -> None:
    projects(cli_runner, api={"protected_branches": [{"name": "mains"}]})
    pruned = SET[: SET.index("  approval")].replace("spec:", "spec:\n  prune: [protected_branches]")
    cli_runner.write("manifests/set.yaml", pruned.replace("{default_branch}", "main"))
    assert "looks like a rename" in cli_runner("plan --target acme/api").out
    cli_runner.write("manifests/set.yaml", pruned)
    done = cli_runner("plan --target acme/api")
    assert '- protected branch "mains"' in done.out
    assert "looks like a rename" not in done.out
