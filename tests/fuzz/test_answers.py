"""Commands against a service whose answers are mutated: no internal error, no hang, nothing on the terminal that acts,
no secret anywhere. One seed is one service; `-k "seed-7"` repeats it.
"""

import unicodedata
from collections.abc import Iterator

import pytest

from tests.between import Between, between
from tests.cli_runner import CliRunner
from tests.fuzz.answers import SECRET, Mad
from tests.states import a_small_service

pytestmark = pytest.mark.untraced
"""Others cover the same lines; tracing would take as long as the tests."""

SEEDS = range(14)
FORMATS = ("text", "json", "markdown", "html", "junit", "prometheus", "terraform-report")
COMMANDS = (
    "plan --format {format}",
    "apply --yes --tokens-to tokens --journal journal --report json=report.json --allow-deletes 9 --force-events",
    "doctor -v",
    "export --group acme --user -o out",
)
MANIFESTS = """\
apiVersion: reconciler/v1
kind: User
spec: {notification_settings: {level: custom, events: {new_issue: true}, notification_email: null}}
---
apiVersion: reconciler/v1
kind: Group
metadata: {path: acme}
spec:
  notification_settings: {level: watch}
  approval_settings: {allow_author_approval: true}
---
apiVersion: reconciler/v1
kind: ProjectSet
metadata: {name: all}
select: {group: acme}
spec:
  prune: [milestones, trigger_tokens, container_repository_protection_rules, job_token_scope]
  notification_settings: {level: custom, events: {new_note: false}}
  approval_settings: {allow_author_approval: true, retain_approvals_on_push: false}
  container_repository_protection_rules:
    "{path}/a*": {minimum_access_level_for_push: owner}
  job_token_scope: {enabled: true, projects: [acme/lib, acme/web], groups: [acme/tools, 10]}
  milestones:
    "1": {due_date: 2026-12-31, state: closed}
    "2": {description: two, renamed_from: old}
  trigger_tokens: {nightly: {rotate_after: 1d}, gone: null}
"""


@pytest.fixture
def service(cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> Iterator[Between]:
    """A service with something of everything, and manifests that want all of it otherwise."""
    state = a_small_service("deployed")
    for project in state["projects"]:
        project |= {
            "milestones": [{"title": "1"}, {"title": "old"}, {"title": "3", "start_date": "2026-01-01"}],
            "trigger_tokens": [{"description": name, "owner": "ada"} for name in ("nightly", "gone", "other")],
            "container_repository_protection_rules": [
                {"repository_path_pattern": f"{project['path']}/{name}", "minimum_access_level_for_push": "maintainer"}
                for name in ("a*", "b")
            ],
            "job_token_scope": {"inbound_enabled": False, "project_allowlist": [101, 103], "group_allowlist": [10]},
        }
    cli_runner.sandbox.replace_state(state)
    cli_runner.write("manifests/all.yaml", MANIFESTS)
    with between(cli_runner.sandbox.api_url) as server:
        monkeypatch.setenv("RECONCILER_API_URL", server.api_url)
        monkeypatch.setenv("RECONCILER_CONCURRENCY", "1")  # answers come in the same order each time
        yield server


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: f"seed-{seed}")
def test_no_answer_makes_a_command_fail_in_any_way_but_its_own(
    cli_runner: CliRunner, service: Between, seed: int
) -> None:
    service.alter = Mad(seed)
    shown = ""
    for command in COMMANDS[seed % 2 :: 2]:
        ended = cli_runner(command.format(format=FORMATS[seed // 2 % len(FORMATS)]))
        assert ended.code in (0, 1, 2, 3), (command, ended)
        assert "internal error" not in ended.err, (command, ended)
        assert acting(ended.out + ended.err) == "", (command, ended)
        assert len(service.requests) < 2000
        shown += ended.out + ended.err
    values = {SECRET, "ada-token", *(each["token"] for each in tokens(cli_runner))}
    written = [path for path in cli_runner.folder.rglob("*") if path.is_file() and path.name != "tokens"]
    shown += "".join(path.read_text(encoding="utf-8") for path in written)
    assert {value for value in values if value in shown} == set()


def acting(output: str) -> str:
    """What of an output a terminal acts on, or shows in another order."""
    return "".join(each for each in output if unicodedata.category(each) in ("Cc", "Cf", "Zl", "Zp") and each != "\n")


def tokens(cli_runner: CliRunner) -> list[dict[str, str]]:
    """The tokens that the service has by now."""
    return [each for project in cli_runner.sandbox.state()["projects"] for each in project["trigger_tokens"]]
