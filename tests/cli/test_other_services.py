"""Commands on services that answer otherwise than the sandbox does: what they say, and what they never show."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.between import Between, Passing, between
from tests.desk import Desk

SECRET = "glptt-1234567890abcdef"


@pytest.fixture
def service(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Iterator[Between]:
    """A service that answers as the sandbox does, until a test alters its answers."""
    with between(desk.sandbox.api_url) as server:
        monkeypatch.setenv("RECONCILER_API_URL", server.api_url)
        yield server


def test_no_part_of_a_record_is_shown_as_an_error(desk: Desk, service: Between) -> None:
    def refuse(passing: Passing) -> None:
        if passing.request.startswith("POST "):
            passing.status = 403
            passing.json = {"id": 1, "description": "nightly", "token": SECRET, "owner": {"username": "ada"}}

    service.alter = refuse
    desk.project("{trigger_tokens: {nightly: {}}}")
    ended = desk("apply --yes --tokens-to tokens --journal journal --report json=report.json")
    assert ended.code == 3
    assert "POST projects/acme%2Fapi/triggers: 403 Forbidden" in ended.out
    written = "".join(path.read_text() for path in desk.folder.iterdir() if path.is_file())
    assert SECRET not in ended.out + ended.err + written


def at(suffix: str, change: Callable[[Any], Any]) -> Callable[[Passing], None]:
    """Return what changes the value of each success at a path of this end."""

    def alter(passing: Passing) -> None:
        if passing.request.partition("?")[0].endswith(suffix) and passing.status == 200:
            passing.json = change(passing.json)

    return alter


def test_a_setting_that_an_older_server_lacks_spoils_nothing_but_itself(desk: Desk, service: Between) -> None:
    late = "require_reauthentication_to_approve"
    service.alter = at("approval_setting", lambda all_: {name: each for name, each in all_.items() if name != late})
    desk.project("{approval_settings: {allow_author_approval: true, require_reauthentication_to_approve: true}}")
    ended = desk("apply --yes")
    assert (ended.code, ended.err) == (3, "")
    assert f"{late}: this server does not have this setting; leave it out" in ended.out
    [write] = service.writes
    assert ('"allow_author_approval":true' in write, late in write) == (True, False)
    desk.project("{approval_settings: {allow_author_approval: true}}")
    assert desk("plan --detailed-exitcode").code == 0


def test_no_setting_at_all_is_no_record_of_settings(desk: Desk, service: Between) -> None:
    service.alter = at("approval_setting", lambda _: {"status": "ok"})
    desk.project("{approval_settings: {allow_author_approval: false}}")
    ended = desk("plan")
    assert ended.code == 3
    assert "the answer is not what the specification promises: 'allow_author_approval' is missing" in ended.out


@pytest.mark.parametrize(
    ("entry", "shown"),
    [
        ({"value": "sometimes", "locked": False}, "sometimes"),
        ({"value": {"token": SECRET}}, "an object"),
        ([SECRET], "a list"),
    ],
    ids=["another value", "an object", "a list"],
)
def test_a_value_that_nobody_knows_is_a_value_to_show(desk: Desk, service: Between, entry: Any, shown: str) -> None:
    service.alter = at("approval_setting", lambda all_: all_ | {"allow_author_approval": entry})
    desk.project("{approval_settings: {allow_committer_approval: true}}")
    assert desk("plan").code == 0
    desk.project("{approval_settings: {allow_author_approval: true}}")
    ended = desk("plan --detailed-exitcode")
    assert ended.code == 2
    assert f"allow_author_approval: {shown} -> true" in ended.out.replace('"', "")
    assert SECRET not in ended.out


def test_a_value_that_nobody_knows_stays_where_the_record_is_written_whole(desk: Desk, service: Between) -> None:
    odd = {"allow_author_approval": {"value": "sometimes"}, "retain_approvals_on_push": {"value": [SECRET]}}
    service.alter = at("approval_setting", lambda all_: all_ | odd)
    desk.project("{approval_settings: {allow_committer_approval: false}}")
    desk("apply --yes")
    [write] = service.writes
    assert '"allow_author_approval":"sometimes"' in write
    assert "retain_approvals_on_push" not in write


RULES = "registry/protection/repository/rules"
PUSH, DELETE = "minimum_access_level_for_push", "minimum_access_level_for_delete"


def test_a_rule_of_an_unknown_level_can_be_declared_changed_and_exported(desk: Desk, service: Between) -> None:
    levels = {PUSH: "maintainer", DELETE: None}
    desk.service(
        container_repository_protection_rules=[
            {"repository_path_pattern": "acme/api/a", **levels},
            {"repository_path_pattern": "acme/api/b", **levels},
        ]
    )
    service.alter = at(RULES, lambda rules: [{**rule, PUSH: "security_officer"} for rule in rules])
    rules = f'{{"acme/api/a": {{{DELETE}: null}}, "acme/api/b": {{{PUSH}: admin}}}}'
    desk.project(f"{{prune: [container_repository_protection_rules], container_repository_protection_rules: {rules}}}")
    ended = desk("plan")
    assert ended.code == 0
    assert [" ".join(line.split()) for line in ended.out.splitlines()[:2]] == [
        "project acme/api",
        f'~ protection rule "acme/api/b" {PUSH}: security_officer -> admin',
    ]
    exported = desk("export --project acme/api --section container_repository_protection_rules -o out")
    assert f'{PUSH} of protection rule "acme/api/a" of project acme/api is left out' in exported.err
    assert desk("plan out --detailed-exitcode").code == 0
    service.requests.clear()
    desk("apply --yes")
    assert service.writes == [f'PATCH projects/acme%2Fapi/{RULES}/2 {{"{PUSH}":"admin"}}']


def test_events_that_are_never_shown_are_told_once_and_written_with_the_level(desk: Desk, service: Between) -> None:
    service.alter = at("notification_settings", lambda settings: {"level": settings["level"]})
    events = "{notification_settings: {level: custom, events: {new_issue: true, new_note: false}}}"
    desk.project(events)
    desk.project(events, "acme/lib", "manifests/lib.yaml")
    ended = desk("apply --yes")
    assert ended.code == 0, ended
    body = '{"new_issue":true,"new_note":false,"level":"custom"}'
    assert sorted(service.writes) == [
        f"PUT projects/acme%2F{name}/notification_settings {body}" for name in ("api", "lib")
    ]
    service.requests.clear()
    ended = desk("plan --detailed-exitcode")
    assert (ended.code, ended.err) == (
        0,
        "notification_settings.events of project acme/api and 1 more cannot be compared: this server does "
        "not show them; they are written when level changes, or with --force-events\n",
    )
    assert desk("export --project acme/api -o out").code == 0
    service.requests.clear()
    assert desk("apply --yes --force-events --target acme/api").code == 0
    assert service.writes == ['PUT projects/acme%2Fapi/notification_settings {"new_issue":true,"new_note":false}']
    ended = desk("apply --plan x --force-events")
    assert (ended.code, ended.err) == (
        64,
        "reconciler: apply carries out a saved plan as it is; --force-events goes with the plan that is saved\n",
    )


def test_records_that_are_not_served_are_named_as_what_is_missing(desk: Desk, service: Between) -> None:
    def hide(passing: Passing) -> None:
        if passing.request.partition("?")[0] in ("GET projects/acme%2Fapi", "GET groups/acme%2Ftools", "GET user"):
            passing.status = 404
            passing.json = {"error": "404 Not Found"}

    service.alter = hide
    desk.project("{job_token_scope: {groups: [acme/tools, 10]}}")
    user = "apiVersion: reconciler/v1\nkind: User\nspec: {notification_settings: %s}\n"
    desk.write("manifests/user.yaml", user % "{level: watch, notification_email: null}")
    hidden = "not found, not visible to this token, or not served by this server"
    ended = desk("plan")
    assert (ended.code, [" ".join(line.split()) for line in ended.out.splitlines()[:-1]]) == (
        3,
        [
            "user",
            "~ notification settings level: participating -> watch",
            "! notification settings.notification_email: null is the primary address, which this server does not tell: "
            "write the address instead (GET user: 404 Not Found) manifests/user.yaml:3",
            "project acme/api",
            f'! allowlisted group "acme/tools": {hidden} (GET groups/acme%2Ftools: 404 Not Found); correct the path, or '
            "use a token that can see it manifests/project.yaml:4",
            f"! allowlisted group 10: writing here takes the numeric ID of project acme/api: {hidden} (GET "
            "projects/acme%2Fapi: 404 Not Found); declare it by `id` instead of `path` manifests/project.yaml:4",
        ],
    )


def test_rules_of_before_a_rename_are_declared_changed_kept_and_exported(desk: Desk, service: Between) -> None:
    patterns = ("acme/old/app*", "acme/api/Img*", "acme/api/tmp*")
    desk.service(
        container_repository_protection_rules=[
            {"repository_path_pattern": pattern, PUSH: "maintainer", DELETE: "owner"} for pattern in patterns
        ]
    )
    rules = f'{{"acme/old/app*": {{{PUSH}: maintainer}}, "acme/api/Img*": {{{PUSH}: admin}}}}'
    desk.project(f"{{prune: [container_repository_protection_rules], container_repository_protection_rules: {rules}}}")
    ended = desk("apply --yes --allow-deletes 1")
    assert ended.code == 0, ended
    assert service.writes == [
        f'PATCH projects/acme%2Fapi/{RULES}/2 {{"{PUSH}":"admin"}}',
        f"DELETE projects/acme%2Fapi/{RULES}/3",
    ]
    assert (
        desk("export --project acme/api --section container_repository_protection_rules -o out").err
        == "1 target exported; 1 file written.\n"
    )
    assert [pattern in (desk.folder / "out/acme/api.yaml").read_text() for pattern in patterns] == [True, True, False]
    assert desk("plan out --detailed-exitcode").code == 0


def test_what_an_object_lacks_or_shows_otherwise_spoils_nothing_but_itself(desk: Desk, service: Between) -> None:
    desk.service(
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
    desk.project(
        '{milestones: {"1": {description: d, state: closed, due_date: 2026-12-31}}, prune: [job_token_scope], '
        "trigger_tokens: {nightly: {rotate_after: 1d}}, job_token_scope: {projects: [acme/lib], groups: [acme/tools]}}"
    )
    ended = desk("plan")
    assert [" ".join(line.split()) for line in ended.out.splitlines()[1:-1]] == [
        '~ milestone "1" description: none -> d, due_date: 7 -> 2026-12-31',
        '! milestone "1".state: this server does not have this setting; leave it out manifests/project.yaml:4',
        '! trigger token "nightly": the service does not tell how old it is, so it cannot be rotated '
        "manifests/project.yaml:4",
    ]
