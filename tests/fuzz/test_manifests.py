"""Mutated manifests, wherever they are read: validated, rendered and planned, or told what is wrong with them."""

import json
from pathlib import Path
from random import Random

import pytest

from reconciler.manifests.yaml_reader import read_positions
from reconciler.reports import FORMATS
from tests.cli_runner import CliRunner
from tests.fuzz.manifests import MUTATIONS
from tests.fuzz.mutating import controls, draw, garbled, mutated
from tests.states import a_small_service

pytestmark = pytest.mark.untraced
"""Others cover the same lines; tracing would take as long as the tests."""

SHARED = """\
apiVersion: reconciler/v1
kind: Profile
metadata: {name: base}
spec:
  notification_settings: {level: custom, events: {new_issue: true}}
  milestones: {"{name} 1": {due_date: 2026-12-31, description: "of {path}"}}
---
apiVersion: reconciler/v1
kind: ProjectSet
metadata: {name: all, profiles: [base], priority: 1, labels: {team: core}}
select: {group: acme, include: ["acme/*"], exclude: ["acme/w?b"]}
spec:
  container_repository_protection_rules: {"{path}/prod*": {minimum_access_level_for_push: maintainer}}
  trigger_tokens: {nightly: {rotate_after: 90d}}
"""
OWN = """\
apiVersion: reconciler/v1
kind: User
spec: {notification_settings: {level: mention, notification_email: ops@example.com}}
---
apiVersion: reconciler/v1
kind: Group
metadata: {path: acme}
spec: {approval_settings: {allow_author_approval: false}}
---
apiVersion: reconciler/v1
kind: Project
metadata: {id: 100, profiles: [base]}
spec:
  prune: [job_token_scope, milestones]
  job_token_scope: {enabled: true, projects: [acme/lib, 103, "{namespace}/web"], groups: [acme]}
  milestones: {"2026.12": {renamed_from: ["2026", Dec], state: closed}, gone: null, "{{path}} {": &a {state: active}, b: *a}
  approval_settings: {selective_code_owner_removals: true, retain_approvals_on_push: false}
"""
TEMPLATE = """\
{% for name in names.split() %}
---
apiVersion: reconciler/v1
kind: Project
metadata: {path: acme/{{ name }}}
spec: {milestones: {"{{ env.STAGE | upper }}": {description: {{ name | tojson }}}}}
{% endfor %}
"""
SECRETS = ("ada-token", "bob-token", "root-token", "glptt-")


@pytest.mark.parametrize(("seed", "template"), [(1, False), (2, False), (3, True)])
def test_mutated_manifests_are_carried_out_or_told_what_is_wrong(
    cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch, seed: int, template: bool
) -> None:
    monkeypatch.setenv("STAGE", "test")
    state = a_small_service("deployed")
    state["projects"][0]["trigger_tokens"] = [{"description": "nightly", "owner": "ada", "token": "glptt-secret-1"}]
    cli_runner.sandbox.replace_state(state)
    chance, valid = draw(seed), 0
    for _ in range(3 if template else 10):
        texts = {"manifests/shared.yaml": SHARED, "manifests/own.yaml": OWN}
        if template:
            texts["manifests/more.yaml.j2"] = TEMPLATE
        for name in chance.sample(sorted(texts), 1):
            texts[name] = _mutated(texts[name], chance) if name.endswith(".yaml") else _slightly(texts[name], chance)
        for name, text in texts.items():
            path = cli_runner.write(name, "")
            path.write_bytes(text.encode("utf-8", "surrogateescape"))
        format_ = chance.choice(sorted(set(FORMATS) - {"codequality"}))
        given = "--env STAGE --set names=lib"
        lines = (f"validate {given} --format {chance.choice(('text', 'json', 'codequality'))}", f"render {given}")
        for line in (
            *lines,
            f"plan {given} --format {format_} --out plan.json",
            f"render {given} --explain milestones",
        ):
            done = cli_runner(line)
            saved = Path("plan.json").read_text() if Path("plan.json").exists() else ""
            assert done.code in (0, 1, 3, 64), (line, texts)
            assert "internal error" not in done.err, (done.err, texts)
            assert not controls(done.out + done.err + saved), (line, texts)
            assert not [secret for secret in SECRETS if secret in done.out + done.err + saved], (line, texts)
            valid += line.startswith("plan") and done.code in (0, 3)
    assert valid


def _mutated(text: str, chance: Random) -> str:
    """Return manifests with something done to their values, to some of their text, or to much of it."""
    if chance.random() < 0.3:
        return chance.choice((_slightly, garbled))(text, chance)
    documents = [root.value for root in read_positions(text).roots]
    place = chance.randrange(len(documents))
    documents[place] = mutated(documents[place], chance)
    return "\n---\n".join(json.dumps(document, indent=1) for document in documents)


def _slightly(text: str, chance: Random) -> str:
    """Do one thing to the bytes of a text."""
    data = bytearray(text.encode())
    chance.choice(MUTATIONS)(data, chance)
    return data.decode("utf-8", "surrogateescape")
