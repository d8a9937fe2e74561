"""No external token is ever shown or kept, whatever the service says of it."""

import json
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

import pytest

from tests.between import Between, Passing, between
from tests.cli_runner import CliRunner, Ended
from tests.states import a_small_service

pytestmark = pytest.mark.untraced

GITHUB = 'ghost & "<quick>" \\brown fox/jumps'
BITBUCKET = f"{GITHUB}-and more of it"
TRIGGER = "0123456789abcdef-old-trigger-token"
"""Tokens that no pattern recognises, one the beginning of another, with characters that texts write in several ways."""

FORMATS = ("html", "json", "junit", "markdown", "prometheus", "text")

MANIFEST = """\
apiVersion: reconciler/v1
kind: Project
metadata: {path: acme/copy}
create: {import: {github: {repo_id: 42, token_env: GITHUB_TOKEN}}}
spec: {milestones: {one: {}}}
---
apiVersion: reconciler/v1
kind: Project
metadata: {path: acme/lint}
create:
  import:
    bitbucket_server:
      {url: "https://bitbucket.example.com", username: ci, project: TOOLS, repo: lint, token_env: BITBUCKET_TOKEN}
"""


def written(secret: str) -> set[str]:
    """Return what would give a secret away: its ends, as texts, JSON, HTML and addresses write them."""
    as_json = json.dumps(secret)[1:-1]
    for_scripts = as_json.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    as_html = secret.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    forms = {secret, as_json, for_scripts, as_html, as_html.replace('"', "&#34;"), quote(secret, safe="")}
    return {end for form in (*forms, quote_plus(secret), quote(secret)) for end in (form[:12], form[-12:])}


class Leaks:
    """Everything that commands show and write, searched for secrets."""

    def __init__(self, cli_runner: CliRunner) -> None:
        self._cli_runner = cli_runner
        self._forms = {form for secret in (GITHUB, BITBUCKET, TRIGGER) for form in written(secret)}

    def run(self, line: str) -> Ended:
        """Run a command, and look for secrets in what it has shown and written, and in the log of the service."""
        done = self._cli_runner(line)
        places = {
            "stdout": done.out,
            "stderr": done.err,
            "the log of the sandbox": json.dumps(self._cli_runner.sandbox.log()),
        }
        for file in self._cli_runner.folder.rglob("*"):
            if file.is_file():
                places[file.name] = file.read_text(errors="replace")
        found = [(place, form) for place, text in places.items() for form in self._forms if form in text]
        assert found == [], line
        return done


def service(**imports: object) -> dict[str, object]:
    """Return the small service, which imports from everywhere."""
    state = a_small_service("deployed")
    state["instance"] |= {"import_sources": ["github", "bitbucket_server"], "imports": {"per_minute": 0, **imports}}
    return state


@pytest.fixture
def leaks(cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> Leaks:
    """The commands of somebody who imports, with all tokens in the environment."""
    monkeypatch.setenv("GITHUB_TOKEN", GITHUB)
    monkeypatch.setenv("BITBUCKET_TOKEN", BITBUCKET)
    monkeypatch.setenv("RECONCILER_TRIGGER_TOKEN", TRIGGER)
    cli_runner.write("manifests/all.yaml", MANIFEST)
    return Leaks(cli_runner)


@pytest.fixture
def relay(cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> Iterator[Between]:
    """A service behind a relay, which may alter its answers."""
    with between(cli_runner.sandbox.api_url) as relay:
        monkeypatch.setenv("RECONCILER_API_URL", relay.api_url)
        yield relay


def reports(ending: str) -> str:
    return " ".join(f"--report {name}={ending}.{name}" for name in FORMATS)


APPLY = f"apply --yes -vv --wait 0s --journal journal {reports('applied')}"


@pytest.mark.parametrize(
    ("status", "log"), [(401, "json"), (403, "text"), (422, "json"), (422, "text"), (500, "text"), (302, "json")]
)
def test_a_service_that_repeats_a_token_in_its_refusal(
    cli_runner: CliRunner, leaks: Leaks, relay: Between, status: int, log: str
) -> None:
    cli_runner.sandbox.replace_state(service())

    def repeat(passing: Passing) -> None:
        if passing.request.startswith("POST import/"):
            token = json.loads(passing.sent)["personal_access_token"]
            words = f"{'x' * 470} no: {token}" if log == "json" else f"{token} no, '{quote(token)}'"
            passing.status = status
            passing.json = {"message": words, "errors": {"base": [token]}}
            passing.body = passing.body.replace(b"&", b"\\u0026").replace(b"<", b"\\u003c").replace(b">", b"\\u003e")
            passing.headers |= {"x-request-id": quote(token), "location": f"https://x/{quote(token)}?{quote(token)}"}

    relay.alter = repeat
    leaks.run(f"plan --out plan.json {reports('planned')} --log-format {log} -v")
    assert leaks.run(f"{APPLY} --plan plan.json --log-format {log}").code == (0 if status == 500 else 3)
    leaks.run(f"{APPLY} --log-format {log}")
    leaks.run("doctor -v")


def test_an_import_that_fails_with_a_token_in_its_reason(cli_runner: CliRunner, leaks: Leaks) -> None:
    repositories = [
        {"github": 42, "fails": f"bad credentials: {GITHUB} is not a token"},
        {"bitbucket_server": "TOOLS/lint", "fails": f"{'x' * 480} {BITBUCKET}"},
    ]
    cli_runner.sandbox.replace_state(service(repositories=repositories))
    done = leaks.run(APPLY)
    assert (done.code, done.out.count("[a secret]")) == (3, 2)
    for line in (f"plan -v {reports('planned')}", "drift", "doctor -v", "accept --diff", f"{APPLY} --log-format json"):
        leaks.run(line)


def test_an_import_that_leaves_something_out_with_a_token_in_its_errors(cli_runner: CliRunner, leaks: Leaks) -> None:
    error = {"relation_name": BITBUCKET, "exception_message": f"{'x' * 480} {BITBUCKET}"}
    repositories = [
        {"github": 42, "left_out": {GITHUB: 2}, "failed_relations": [{"source": GITHUB, "exception_message": GITHUB}]},
        {"bitbucket_server": "TOOLS/lint", "failed_relations": [error]},
    ]
    cli_runner.sandbox.replace_state(service(repositories=repositories))
    done = leaks.run(APPLY)
    assert (done.code, done.out.count("has left out")) == (0, 2)
    leaks.run("plan -v")


def test_a_service_that_names_what_it_makes_by_a_token(cli_runner: CliRunner, leaks: Leaks, relay: Between) -> None:
    cli_runner.sandbox.replace_state(service())

    def repeat(passing: Passing) -> None:
        if passing.request.startswith("POST import/"):
            token = json.loads(passing.sent)["personal_access_token"]
            record = passing.json
            names = [name for name, value in record.items() if isinstance(value, str)]
            passing.json = record | dict.fromkeys((*names, "full_path", "path_with_namespace", "web_url"), token)

    relay.alter = repeat
    assert leaks.run(APPLY).code == 3


def test_a_pipeline_that_does_not_start(cli_runner: CliRunner, leaks: Leaks, relay: Between) -> None:
    cli_runner.write(
        "manifests/all.yaml",
        "apiVersion: reconciler/v1\nkind: Group\nmetadata: {path: acme}\nspec: {milestones: {one: {}}}\n",
    )

    def repeat(passing: Passing) -> None:
        if "trigger/pipeline" in passing.request:
            passing.status = 400
            passing.json = {"message": {"base": [f"no trigger {TRIGGER}"]}, "error": TRIGGER}

    relay.alter = repeat
    done = leaks.run(f"{APPLY} --trigger acme/api@main")
    assert (done.code, "trigger" in done.err) == (0, True)


def test_a_variable_whose_bytes_are_no_text(
    cli_runner: CliRunner, leaks: Leaks, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli_runner.sandbox.replace_state(service())
    monkeypatch.setenv("GITHUB_TOKEN", f"{GITHUB}\udcff\udcfe")
    assert leaks.run(APPLY).code == 3
