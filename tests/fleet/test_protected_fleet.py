"""The owner of 40 messy projects protects `main` everywhere; somebody weakens it by hand, and is found out."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.model.protocols import Request
from reconciler.sandbox import generate
from reconciler.service import Client
from tests.cli_runner import CliRunner

pytestmark = pytest.mark.untraced

BASELINE = """\
apiVersion: reconciler/v1
kind: Profile
metadata:
  name: protected
  locks: {protected_branches: [main]}
spec:
  protected_branches:
    main: {allowed_to_push: [maintainer], allowed_to_merge: [maintainer], allow_force_push: false}
---
apiVersion: reconciler/v1
kind: ProjectSet
metadata: {name: protected, priority: 10, profiles: [protected]}
select: {group: acme}
"""
ODD = "acme/checkout-1/worker-35"
EXCEPTION = {
    "section": "protected_branches",
    "item": "main",
    "until": "2999-12-31",
    "reason": "Bots push here, OPS-7",
}


def fleet(cli_runner: CliRunner) -> list[dict[str, Any]]:
    """A fleet that a second owner looks after too; one of its projects lets developers push."""
    state = generate(40, 0)
    state["users"].append({"id": 30, "username": "mallory", "name": "Mallory", "tokens": ["mallory-token"]})
    state["groups"][1]["members"].append({"user": "mallory", "role": "owner"})
    assert state["groups"][1]["path"] == "acme"
    odd = next(project for project in state["projects"] if project["path"] == ODD)
    odd["protected_branches"] = [{"name": "main", "push_access_levels": [{"access_level": 30}]}]
    cli_runner.sandbox.replace_state(state)
    return [project for project in state["projects"] if not project["archived"]]


def test_the_owner_of_forty_messy_projects_protects_them(cli_runner: CliRunner) -> None:
    projects = fleet(cli_runner)
    assert cli_runner("init --group acme").code == 0
    planned = cli_runner("plan --detailed-exitcode")
    assert planned.code == 0, planned.out + planned.err
    assert "\nNo changes: 39 targets are in order, " in planned.out

    # the baseline is locked; what the projects' own documents say otherwise is an error with both places
    cli_runner.write("manifests/protected.yaml", BASELINE)
    refused = cli_runner("validate")
    assert refused.code == 1
    assert "protected.yaml" in refused.err + refused.out
    for file in Path("manifests/acme").rglob("*.yaml"):
        file.write_text(without_main(file.read_text()))
    validated = cli_runner("validate")
    assert validated.code == 0, validated.out + validated.err

    # one exception
    document = Path(f"manifests/{ODD}.yaml")
    odd = yaml.safe_load(document.read_text())
    odd["metadata"]["exceptions"] = [EXCEPTION]
    document.write_text(yaml.safe_dump(odd, sort_keys=False))
    planned = cli_runner("plan -v")
    assert planned.code == 0, planned.out + planned.err
    assert "excepted until 2999-12-31: Bots push here, OPS-7" in planned.out
    applied = cli_runner("apply --yes")
    assert applied.code == 0, applied.out + applied.err
    assert cli_runner("drift").code == 0
    mains = [rule for project in live(cli_runner) for rule in project["protected_branches"] if rule["name"] == "main"]
    assert len(mains) == len(projects)

    # somebody weakens it by hand
    weak, gone = (project["path"].replace("/", "%2F") for project in projects[:2])
    with Client(cli_runner.sandbox.api_url, "mallory-token") as client:
        (rule,) = (each for each in client.pages(f"projects/{weak}/protected_branches") if each["name"] == "main")
        entry = rule["push_access_levels"][0]["id"]
        change = {"allowed_to_push": [{"id": entry, "access_level": 30}], "allow_force_push": True}
        client.send(Request("PATCH", f"projects/{weak}/protected_branches/main", change))
        client.send(Request("DELETE", f"projects/{gone}/protected_branches/main"))
    drift = cli_runner("drift --who")
    assert drift.code == 2
    lines = [line for line in drift.out.splitlines() if "main" in line and "excepted" not in line]
    assert len(lines) == 2
    assert all("by Mallory" in line for line in lines), drift.out

    assert cli_runner("apply --yes").code == 0
    assert cli_runner("drift").code == 0


def live(cli_runner: CliRunner) -> list[dict[str, Any]]:
    return [project for project in cli_runner.sandbox.state()["projects"] if not project.get("archived")]


def without_main(text: str) -> str:
    """Return a document that says nothing of the rule for `main`."""
    document = yaml.safe_load(text)
    rules = document["spec"].get("protected_branches", {})
    rules.pop("main", None)
    rules.pop("{default_branch}", None)  # as `init` writes it
    if not rules:
        document["spec"].pop("protected_branches", None)
    return yaml.safe_dump(document, sort_keys=False)
