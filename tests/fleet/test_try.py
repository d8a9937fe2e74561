from typing import Any
from tests.cli_runner import CliRunner
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
HEAD = "apiVersion: reconciler/v1\nkind: Project\n"
DOCUMENT = HEAD + """\
metadata: {path: acme/api}
spec:
  protected_branches: {"{default_branch}": {allow_force_push: false}}
"""

def requests(r): return [f"{e['method']} {e['target'].removeprefix('/api/v4/')}" for e in r.sandbox.log()]

def show(r, line):
    r.sandbox.clear_log()
    d = r(line)
    with open("/tmp/try_e.log", "a") as f: print("$", line, d.code, d.out, "ERR", d.err, requests(r), sep="\n", file=f)
    return d

def fleet(r):
    s = a_small_service("deployed")
    for p, b in zip(s["projects"], ["main", "trunk", "master", "main"]):
        p["default_branch"] = b
    r.sandbox.replace_state(s)
    return s

def test_set(cli_runner):
    fleet(cli_runner)
    cli_runner.write("manifests/set.yaml", SET)
    show(cli_runner, "validate")
    show(cli_runner, "render --target acme/api")
    show(cli_runner, "plan")
    show(cli_runner, "apply --yes")
    show(cli_runner, "plan")

def test_doc(cli_runner):
    fleet(cli_runner)
    cli_runner.write("manifests/a.yaml", DOCUMENT)
    show(cli_runner, "render")
    show(cli_runner, "plan -v")
    cli_runner.write("manifests/a.yaml", DOCUMENT.replace("path: acme/api", "id: 101").replace("}}\n", "}, main: {}}\n"))
    show(cli_runner, "plan -v")

def test_none(cli_runner):
    s = fleet(cli_runner)
    s["projects"][0]["repository_enabled"] = False
    s["projects"][1] |= {"visibility": "private", "members": []}
    s["users"].append({"id": 9, "username": "gus", "tokens": ["gus-token"]})
    s["groups"][0]["members"].append({"user": "gus", "role": "guest"})
    s["projects"][2]["archived"] = True
    cli_runner.sandbox.replace_state(s)
    cli_runner.write("manifests/set.yaml", SET)
    show(cli_runner, "plan -v")
    cli_runner.write("manifests/a.yaml", DOCUMENT)
    show(cli_runner, "plan -v")

def test_clash(cli_runner):
    fleet(cli_runner)
    cli_runner.write("manifests/set.yaml", SET.replace("  approval_rules", "    main: {allow_force_push: true}\n  approval_rules"))
    show(cli_runner, "plan -v")
    cli_runner.write("manifests/set.yaml", SET.replace("metadata: {name: all}", 'metadata: {name: all, locks: {protected_branches: ["{default_branch}"]}}'))
    cli_runner.write("manifests/a.yaml", DOCUMENT.replace("{default_branch}", "main").replace("false", "true"))
    show(cli_runner, "plan -v")
    cli_runner.write("manifests/a.yaml", DOCUMENT.replace("{default_branch}", "main"))
    show(cli_runner, "plan -v")
