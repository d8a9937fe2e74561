"""Commands on services that answer differently from the sandbox: what they print, and what they never show."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.between import Between, Passing, between
from tests.cli_runner import CliRunner

SECRET = "glptt-1234567890abcdef"


@pytest.fixture
def service(cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> Iterator[Between]:
    """A service that answers as the sandbox does, until a test alters its answers."""
    with between(cli_runner.sandbox.api_url) as server:
        monkeypatch.setenv("RECONCILER_API_URL", server.api_url)
        yield server


def test_no_part_of_a_record_is_shown_as_an_error(cli_runner: CliRunner, service: Between) -> None:
    def refuse(passing: Passing) -> None:
        if passing.request.startswith("POST "):
            passing.status = 403
            passing.json = {"id": 1, "description": "nightly", "token": SECRET, "owner": {"username": "ada"}}

    service.alter = refuse
    cli_runner.project("{trigger_tokens: {nightly: {}}}")
    ended = cli_runner("apply --yes --tokens-to tokens --journal journal --report json=report.json")
    assert ended.code == 3
    assert "POST projects/acme%2Fapi/triggers: 403 Forbidden" in ended.out
    written = "".join(path.read_text() for path in cli_runner.folder.iterdir() if path.is_file())
    assert SECRET not in ended.out + ended.err + written


def at(suffix: str, change: Callable[[Any], Any]) -> Callable[[Passing], None]:
    """Return what changes the value of each success at a path of this end."""

    def alter(passing: Passing) -> None:
        if passing.request.partition("?")[0].endswith(suffix) and passing.status == 200:
            passing.json = change(passing.json)

    return alter


def test_a_setting_that_an_older_server_lacks_spoils_nothing_but_itself(
    cli_runner: CliRunner, service: Between
) -> None:
    late = "require_reauthentication_to_approve"
    service.alter = at("approval_setting", lambda all_: {name: each for name, each in all_.items() if name != late})
    cli_runner.project("{approval_settings: {allow_author_approval: true, require_reauthentication_to_approve: true}}")
    ended = cli_runner("apply --yes")
    assert (ended.code, ended.err) == (3, "")
    assert f"{late}: this server does not have this setting; leave it out" in ended.out
    [write] = service.writes
    assert ('"allow_author_approval":true' in write, late in write) == (True, False)
    cli_runner.project("{approval_settings: {allow_author_approval: true}}")
    assert cli_runner("plan --detailed-exitcode").code == 0


def test_no_setting_at_all_is_no_record_of_settings(cli_runner: CliRunner, service: Between) -> None:
    service.alter = at("approval_setting", lambda _: {"status": "ok"})
    cli_runner.project("{approval_settings: {allow_author_approval: false}}")
    ended = cli_runner("plan")
    assert ended.code == 3
    assert "unexpected response: 'allow_author_approval' is missing" in ended.out


@pytest.mark.parametrize(
    ("entry", "shown"),
    [
        ({"value": "sometimes", "locked": False}, "sometimes"),
        ({"value": {"token": SECRET}}, "an object"),
        ([SECRET], "a list"),
    ],
    ids=["another value", "an object", "a list"],
)
def test_a_value_that_nobody_knows_is_a_value_to_show(
    cli_runner: CliRunner, service: Between, entry: Any, shown: str
) -> None:
    service.alter = at("approval_setting", lambda all_: all_ | {"allow_author_approval": entry})
    cli_runner.project("{approval_settings: {allow_committer_approval: true}}")
    assert cli_runner("plan").code == 0
    cli_runner.project("{approval_settings: {allow_author_approval: true}}")
    ended = cli_runner("plan --detailed-exitcode")
    assert ended.code == 2
    assert f"allow_author_approval: {shown} -> true" in ended.out.replace('"', "")
    assert SECRET not in ended.out


def test_a_value_that_nobody_knows_stays_where_the_record_is_written_whole(
    cli_runner: CliRunner, service: Between
) -> None:
    odd = {"allow_author_approval": {"value": "sometimes"}, "retain_approvals_on_push": {"value": [SECRET]}}
    service.alter = at("approval_setting", lambda all_: all_ | odd)
    cli_runner.project("{approval_settings: {allow_committer_approval: false}}")
    cli_runner("apply --yes")
    [write] = service.writes
    assert '"allow_author_approval":"sometimes"' in write
    assert "retain_approvals_on_push" not in write


RULES = "registry/protection/repository/rules"
PUSH, DELETE = "minimum_access_level_for_push", "minimum_access_level_for_delete"


@pytest.mark.untraced
def test_a_rule_of_an_unknown_level_can_be_declared_changed_and_exported(
    cli_runner: CliRunner, service: Between
) -> None:
    levels = {PUSH: "maintainer", DELETE: None}
    cli_runner.service(
        container_repository_protection_rules=[
            {"repository_path_pattern": "acme/api/a", **levels},
            {"repository_path_pattern": "acme/api/b", **levels},
        ]
    )
    service.alter = at(RULES, lambda rules: [{**rule, PUSH: "security_officer"} for rule in rules])
    rules = f'{{"acme/api/a": {{{DELETE}: null}}, "acme/api/b": {{{PUSH}: admin}}}}'
    cli_runner.project(
        f"{{prune: [container_repository_protection_rules], container_repository_protection_rules: {rules}}}"
    )
    ended = cli_runner("plan")
    assert ended.code == 0
    assert [" ".join(line.split()) for line in ended.out.splitlines()[:3]] == [
        "Loosens protection:",
        "project acme/api",
        f'~ protection rule "acme/api/b" {PUSH}: security_officer -> admin, loosens and tightens '
        "manifests/project.yaml:4",
    ]
    exported = cli_runner("export --project acme/api --section container_repository_protection_rules -o out")
    assert f'{PUSH} of protection rule "acme/api/a" of project acme/api is left out' in exported.err
    assert cli_runner("plan out --detailed-exitcode").code == 0
    service.requests.clear()
    cli_runner("apply --yes")
    assert service.writes == [f'PATCH projects/acme%2Fapi/{RULES}/2 {{"{PUSH}":"admin"}}']


def test_events_that_are_never_shown_are_told_once_and_written_with_the_level(
    cli_runner: CliRunner, service: Between
) -> None:
    service.alter = at("notification_settings", lambda settings: {"level": settings["level"]})
    events = "{notification_settings: {level: custom, events: {new_issue: true, new_note: false}}}"
    cli_runner.project(events)
    cli_runner.project(events, "acme/lib", "manifests/lib.yaml")
    ended = cli_runner("apply --yes")
    assert ended.code == 0, ended
    body = '{"new_issue":true,"new_note":false,"level":"custom"}'
    assert sorted(service.writes) == [
        f"PUT projects/acme%2F{name}/notification_settings {body}" for name in ("api", "lib")
    ]
    service.requests.clear()
    ended = cli_runner("plan --detailed-exitcode")
    assert (ended.code, ended.err) == (
        0,
        "notification_settings.events of project acme/api and 1 more cannot be compared: this server does "
        "not show them; they are written when level changes, or with --force-events\n",
    )
    assert cli_runner("export --project acme/api -o out").code == 0
    service.requests.clear()
    assert cli_runner("apply --yes --force-events --target acme/api").code == 0
    assert service.writes == ['PUT projects/acme%2Fapi/notification_settings {"new_issue":true,"new_note":false}']
    ended = cli_runner("apply --plan x --force-events")
    assert (ended.code, ended.err) == (
        64,
        "reconciler: --force-events does not go with --plan; give it when the plan is made\n",
    )


def test_records_that_are_not_served_are_named_as_what_is_missing(cli_runner: CliRunner, service: Between) -> None:
    def hide(passing: Passing) -> None:
        if passing.request.partition("?")[0] in ("GET projects/acme%2Fapi", "GET groups/acme%2Ftools", "GET user"):
            passing.status = 404
            passing.json = {"error": "404 Not Found"}

    service.alter = hide
    cli_runner.project("{job_token_scope: {groups: [acme/tools, 10]}}")
    user = "apiVersion: reconciler/v1\nkind: User\nspec: {notification_settings: %s}\n"
    cli_runner.write("manifests/user.yaml", user % "{level: watch, notification_email: null}")
    hidden = "not found, not visible to this token, or not served by this server"
    ended = cli_runner("plan")
    assert (ended.code, [" ".join(line.split()) for line in ended.out.splitlines()[:-1]]) == (
        3,
        [
            "user",
            "~ notification settings level: participating -> watch manifests/user.yaml:3",
            "! notification settings.notification_email: null is the primary address, which this server does not show: "
            "write the address instead (GET user: 404 Not Found) manifests/user.yaml:3",
            "project acme/api",
            f'! allowlisted group "acme/tools": {hidden} (group acme/tools: 404 Not Found); correct the path, or '
            "use a token that can see it manifests/project.yaml:4",
            f"! allowlisted group 10: writing here takes the numeric ID of project acme/api: {hidden} "
            "(project acme/api: 404 Not Found); declare it by `id` instead of `path` manifests/project.yaml:4",
        ],
    )


@pytest.mark.untraced
def test_rules_of_before_a_rename_are_declared_changed_kept_and_exported(
    cli_runner: CliRunner, service: Between
) -> None:
    patterns = ("acme/old/app*", "acme/api/Img*", "acme/api/tmp*")
    cli_runner.service(
        container_repository_protection_rules=[
            {"repository_path_pattern": pattern, PUSH: "maintainer", DELETE: "owner"} for pattern in patterns
        ]
    )
    rules = f'{{"acme/old/app*": {{{PUSH}: maintainer}}, "acme/api/Img*": {{{PUSH}: admin}}}}'
    cli_runner.project(
        f"{{prune: [container_repository_protection_rules], container_repository_protection_rules: {rules}}}"
    )
    ended = cli_runner("apply --yes --allow-deletes 1")
    assert ended.code == 0, ended
    assert service.writes == [
        f'PATCH projects/acme%2Fapi/{RULES}/2 {{"{PUSH}":"admin"}}',
        f"DELETE projects/acme%2Fapi/{RULES}/3",
    ]
    assert (
        cli_runner("export --project acme/api --section container_repository_protection_rules -o out").err
        == "1 target exported; 1 file written.\n"
    )
    assert [pattern in (cli_runner.folder / "out/acme/api.yaml").read_text() for pattern in patterns] == [
        True,
        True,
        False,
    ]
    assert cli_runner("plan out --detailed-exitcode").code == 0


def test_what_an_object_lacks_or_shows_otherwise_spoils_nothing_but_itself(
    cli_runner: CliRunner, service: Between
) -> None:
    cli_runner.service(
        milestones=[{"title": "1"}],
        trigger_tokens=[{"description": "nightly", "owner": "ada"}],
        job_token_scope={"inbound_enabled": True, "project_allowlist": [101], "group_allowlist": [11]},
    )

    def alter(passing: Passing) -> None:
        at("milestones", lambda all_: [{"id": each["id"], "title": each["title"], "due_date": 7} for each in all_])(
            passing
        )
        at("triggers", lambda all_: [{**each, "created_at": "soon", "last_used": {}} for each in all_])(passing)
        at("allowlist", lambda all_: [{"id": each["id"], "new": []} for each in all_])(passing)

    service.alter = alter
    cli_runner.project(
        '{milestones: {"1": {description: d, state: closed, due_date: 2026-12-31}}, prune: [job_token_scope], '
        "trigger_tokens: {nightly: {rotate_after: 1d}}, job_token_scope: {projects: [acme/lib], groups: [acme/tools]}}"
    )
    ended = cli_runner("plan")
    assert [" ".join(line.split()) for line in ended.out.splitlines()[1:-1]] == [
        '~ milestone "1" description: none -> d, due_date: 7 -> 2026-12-31 manifests/project.yaml:4',
        '! milestone "1".state: this server does not have this setting; leave it out manifests/project.yaml:4',
        '! trigger token "nightly": cannot be rotated: the service does not report its age manifests/project.yaml:4',
    ]
