"""Service accounts, SCIM identities and client keys through the command line: from shards to a plan that is out of date."""

import json
from pathlib import Path
from typing import Any

import pytest

from reconciler.document.checksum import with_checksum
from tests.cli_runner import CliRunner
from tests.fleet.repository import repository
from tests.items import changes_of
from tests.states import a_small_service

EXAMPLES = Path(__file__).parents[2] / "examples"
INSTANCE = "{{apiVersion: reconciler/v1, kind: Instance, spec: {{service_accounts: {}}}}}\n"

PLANNED = """\
Loosens protection:
instance
  + service account "deploy-bot"              name: Deploy bot, email: deploy-bot@example.com, loosens     manifests/service_accounts.yaml:6
All else:
instance
  ~ service account "release-bot"             name: Releases -> Release bot     manifests/service_accounts.yaml:7
  - service account "mirror-bot"              tightens     manifests/service_accounts.yaml:8
group acme
  ~ SCIM identity "00u2-new"                  renamed from "00u2"     manifests/scim_identities.yaml:7
  - SCIM identity "00u7"     manifests/scim_identities.yaml:8
project acme/api
  + error tracking client key "2"     manifests/error_tracking_client_keys.yaml:6
project acme/lib
  - error tracking client key "1"     manifests/error_tracking_client_keys.yaml:13
apply will refuse this plan: it creates 1 error tracking client key, whose value is shown only once; add --tokens-to FILE or --tokens-command CMD
Plan: 2 to create, 2 to update, 3 to delete, 1 loosening, 1 tightening. 7 writes to apply; 6 requests were made to plan.
"""

AGAIN = """\
instance
  + service account "deploy-bot"              {}
  ~ service account "release-bot"             done: by an earlier run
  - service account "mirror-bot"              done: by an earlier run
group acme
  ~ SCIM identity "00u2-new"                  done: by an earlier run
  - SCIM identity "00u7"                      done: by an earlier run
project acme/api
  + error tracking client key "2"             done: by an earlier run
project acme/lib
  - error tracking client key "1"             done: by an earlier run
"""


@pytest.fixture(autouse=True)
def _service(cli_runner: CliRunner, dialect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The examples' manifests, on a service of which the token's owner is an administrator."""
    monkeypatch.setenv("RECONCILER_TOKEN", "root-token")
    state = a_small_service(dialect)
    state["instance"]["service_accounts"] = [
        {"id": 900, "username": "release-bot", "name": "Releases"},
        {"id": 901, "username": "mirror-bot", "name": "Mirror bot"},
    ]
    state["groups"][0]["scim_identities"] = [{"user_id": 2, "extern_uid": "00u2"}, {"user_id": 3, "extern_uid": "00u7"}]
    state["projects"][0]["error_tracking_client_keys"] = [{"id": 1}]
    state["projects"][1]["error_tracking_client_keys"] = [{"id": 2}, {"id": 3}]
    cli_runner.sandbox.replace_state(state)
    for name in ("service_accounts", "scim_identities", "error_tracking_client_keys"):
        text = (EXAMPLES / f"{name}.yaml").read_text().replace("acme/payments/", "acme/")
        cli_runner.write(f"manifests/{name}.yaml", text)


@pytest.mark.untraced
def test_a_plan_from_shards_is_shown_applied_and_then_as_wanted(cli_runner: CliRunner, dialect: str) -> None:
    for number in (1, 2):
        assert cli_runner(f"plan --shard {number}/2 --out {number}.json").code == 0
    done = cli_runner("merge 1.json 2.json --out plan.json")
    assert (done.code, done.out) == (0, PLANNED)
    markdown = cli_runner("show plan.json --format markdown").out
    assert "<summary><code>instance</code>: 1 to update, 1 to delete</summary>" in markdown
    assert '"targets":["instance","group acme",' in cli_runner("show plan.json --format html").out
    assert cli_runner("apply --plan plan.json --yes").code == 1
    done = cli_runner("apply --plan plan.json --yes --tokens-to keys.jsonl --report json=report.json")
    assert (done.code, done.err) == (0, "")
    assert (
        done.out.splitlines()[-1]
        == "Applied: 2 created, 2 updated, 3 deleted, 1 loosening, 1 tightening. 17 requests made."
    )
    (line,) = (cli_runner.folder / "keys.jsonl").read_text().splitlines()
    delivered = json.loads(line)
    address = delivered.pop("token")
    assert delivered == {
        "target": "project acme/api",
        "section": "error_tracking_client_keys",
        "description": "2",
    }
    assert address.startswith("https://glet_")
    assert address[8:45] not in done.out + (cli_runner.folder / "report.json").read_text()
    again = cli_runner("apply --plan plan.json --yes --tokens-to keys.jsonl")
    # by the spec, the list does not show the field `email`, so that it may differ
    code, bot = (0, "done: by an earlier run") if dialect == "deployed" else (3, "stale: it exists now")
    assert (again.code, again.out.partition("Applied")[0]) == (code, AGAIN.format(bot))
    assert (cli_runner.folder / "keys.jsonl").read_text().splitlines() == [line]
    assert cli_runner("drift").code == 0


EDITS: list[dict[str, Any]] = [
    {"body": {"username": "deploy-bot", "admin": True}},
    {"path": "service_accounts/901"},
    {"path": "users/1"},
    {"body": {"extern_uid": "00u3"}},
    {"path": "groups/acme/scim/00u2"},
    {"path": "projects/101/error_tracking/client_keys"},
    {"path": "projects/101/error_tracking/client_keys/3"},
]
"""Of the requests of a plan's changes, one each."""


@pytest.mark.untraced
def test_an_edited_plan_is_refused_although_its_checksum_fits(cli_runner: CliRunner) -> None:
    assert cli_runner("plan --out plan.json").code == 0
    content = json.loads((cli_runner.folder / "plan.json").read_text())
    del content["checksum"]
    for change, edit in zip(changes_of(content), EDITS, strict=True):
        change["requests"][0] |= edit
    cli_runner.write("plan.json", with_checksum(content))
    before = cli_runner.sandbox.state()
    done = cli_runner("apply --plan plan.json --yes --tokens-to keys.jsonl")
    assert done.out.count("stale: the saved plan was edited: its requests do not match the changes it shows") == len(
        EDITS
    )
    assert (done.code, cli_runner.sandbox.state()) == (3, before)


NO_LIST = "There is no inventory yet. Until the first apply, removing an object from the manifests does not delete it."


@pytest.mark.untraced
def test_instance_names_the_target_also_where_a_revision_is_compared(cli_runner: CliRunner) -> None:
    repository(cli_runner.folder).commit()
    cli_runner.write("manifests/service_accounts.yaml", INSTANCE.format("{new-bot: {}}"))
    done = cli_runner("plan --since HEAD --target instance")
    assert done.out.splitlines()[:5] == [
        "Loosens protection:",
        "instance",
        '  + service account "new-bot"                 loosens     manifests/service_accounts.yaml:1',
        NO_LIST,
        "Plan: 1 to create, 1 loosening, 2 unmanaged. 1 write to apply; 1 request was made to plan.",
    ]
    (cli_runner.folder / "manifests/service_accounts.yaml").unlink()
    assert cli_runner("plan --since HEAD").out == (
        f"{NO_LIST}\nNothing to do: no target was looked at. 0 requests were made to plan.\n"
    )
