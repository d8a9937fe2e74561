"""The story of a rule of each sort: adopted, locked, weakened by hand, excepted, accepted, reverted, pruned, forgotten."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.cli_runner import CliRunner, Ended
from tests.fleet.repository import repository
from tests.states import a_small_service

pytestmark = pytest.mark.untraced

Rules = Mapping[str, Mapping[str, Any]]

STRONG: Mapping[str, Rules] = {
    "protected_branches": {"main": {"allowed_to_push": [], "allowed_to_merge": ["maintainer", {"user": "bob"}]}},
    "protected_tags": {"v*": {"allowed_to_create": [{"user": "bob"}]}},
    "container_tag_protection_rules": {
        "^v": {"minimum_access_level_for_push": "owner", "minimum_access_level_for_delete": "admin"}
    },
    "package_protection_rules": {"npm:@acme/*": {"minimum_access_level_for_push": "owner"}},
    "approval_rules": {"Security": {"approvals_required": 2, "users": ["ada", "bob"], "groups": ["acme/tools"]}},
}

WEAK: Mapping[str, Rules] = {
    "protected_branches": {"main": {"allowed_to_push": ["developer"], "allowed_to_merge": ["developer"]}},
    "protected_tags": {"v*": {"allowed_to_create": ["developer"]}},
    "container_tag_protection_rules": {
        "^v": {"minimum_access_level_for_push": "maintainer", "minimum_access_level_for_delete": "maintainer"}
    },
    "package_protection_rules": {"npm:@acme/*": {"minimum_access_level_for_push": "maintainer"}},
    "approval_rules": {"Security": {"approvals_required": 0, "users": ["ada"], "groups": []}},
}

OTHER = {"npm:@acme/*": "npm:@other/*"}
"""By the name of a rule, another one of the same sort, if it is not just a longer name."""

LOCK = """\
apiVersion: reconciler/v1
kind: Profile
metadata: {{name: baseline, locks: {{{section}: {names}}}}}
spec: {spec}
---
apiVersion: reconciler/v1
kind: ProjectSet
metadata: {{name: all, profiles: [baseline]}}
select: {{group: acme, include: [acme/api]}}
spec: {{}}
"""


def done(ended: Ended) -> str:
    """Return what a command said that ended well."""
    assert ended.code == 0, ended.out + ended.err
    return ended.out


@pytest.mark.parametrize("section", STRONG)
def test_a_rule_is_kept_in_every_way_that_there_is(
    cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch, section: str
) -> None:
    state = a_small_service("deployed")
    state["users"].append({"id": 4, "username": "eve", "tokens": ["eve-token"]})
    state["groups"][0]["members"].append({"user": "eve", "role": "developer"})
    cli_runner.sandbox.replace_state(state)
    git = repository(cli_runner.folder)
    strong, weak = (json.dumps({section: rules[section]}) for rules in (STRONG, WEAK))
    (name,) = STRONG[section]

    def by_hand(spec: str) -> None:
        cli_runner.project(spec, name="elsewhere/api.yaml")
        done(cli_runner("apply elsewhere --yes --no-inventory"))

    # a group whose projects are alike becomes a set
    by_hand(strong)
    cli_runner.project(strong, "acme/lib", name="elsewhere/lib.yaml")
    done(cli_runner("apply elsewhere --yes --no-inventory"))
    (cli_runner.folder / "elsewhere/lib.yaml").unlink()
    done(cli_runner(f"export --group acme --as-set --section {section} -o manifests"))
    done(cli_runner("plan --detailed-exitcode"))
    for file in (cli_runner.folder / "manifests").rglob("*.yaml"):
        file.unlink()

    # a lock holds its fields
    cli_runner.write("manifests/lock.yaml", LOCK.format(section=section, names=json.dumps([name]), spec=strong))
    cli_runner.project(weak)
    refused = cli_runner("validate")
    assert (refused.code, "is locked" in refused.out) == (1, True), refused.out
    cli_runner.project("{}")
    git.commit()
    done(cli_runner("apply --yes"))
    assert cli_runner("drift").code == 0

    # somebody weakens the rule: accepted for a while, then put right
    by_hand(weak)
    assert cli_runner("drift").code == 2
    done(cli_runner("accept --until 2999-12-31 --reason OPS-7"))
    assert "excepted until 2999-12-31: OPS-7" in done(cli_runner("plan -v"))
    assert done(cli_runner("plan")).startswith(
        "1 excepted until 2999-12-31 at the earliest (-v shows them)\nNo changes: "
    )
    cli_runner.project("{}")
    done(cli_runner("apply --yes"))
    assert cli_runner("drift").code == 0

    # or accepted for good, once nothing locks it; the way back from an apply is the weak rule again
    (cli_runner.folder / "manifests/lock.yaml").unlink()
    cli_runner.project(strong)
    git.commit()
    by_hand(weak)
    done(cli_runner("accept"))
    done(cli_runner("plan --detailed-exitcode"))
    cli_runner.project(strong)
    git.commit()
    done(cli_runner("apply --yes --report json=applied.json"))
    done(cli_runner("revert applied.json --yes"))
    cli_runner.project(weak)
    assert cli_runner("drift").code == 0

    # what nobody manages may change
    cli_runner.project(f"{{unmanaged: [{section}]}}")
    by_hand(strong)
    assert cli_runner("drift").code == 0
    cli_runner.project(strong)
    assert cli_runner("drift").code == 0

    # a further rule is unmanaged, until prune names the section; what is no longer declared is deleted too
    other = OTHER.get(name, f"{name}x")
    by_hand(json.dumps({section: {other: WEAK[section][name]}}))
    assert f'"{other}" is unmanaged' in done(cli_runner("plan -v"))
    cli_runner.project(json.dumps({**json.loads(strong), "prune": [section]}))
    git.commit()
    assert f'"{other}"' in done(cli_runner("apply --yes --allow-deletes 1"))
    cli_runner.project(json.dumps({section: {**STRONG[section], other: STRONG[section][name]}}))
    git.commit()
    done(cli_runner("apply --yes"))
    cli_runner.project(strong)
    git.commit()
    assert f'"{other}"' in done(cli_runner("apply --yes --allow-deletes 1"))
    assert cli_runner("drift").code == 0

    # who may not write is told by doctor
    cli_runner.project(strong)
    monkeypatch.setenv("RECONCILER_TOKEN", "eve-token")
    told = cli_runner("doctor")
    assert told.code == 3
    assert "write: no: eve is Developer there, and Maintainer is needed; make eve Maintainer" in told.out
