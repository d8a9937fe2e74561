"""The sources of the configuration, and what is refused."""

import json
import os
from pathlib import Path

import certifi
import click
import pytest

from reconciler.cli import cli
from reconciler.cli.options import ConnectionOptions, InFlight
from reconciler.cli.settings import open_client
from reconciler.configuration import Configuration
from reconciler.schema import schema_of
from tests.building import KINDS
from tests.canned import answer, canned
from tests.cli_runner import CliRunner
from tests.fleet.repository import repository

PLANNED = "No changes: 1 target is in order. 1 request was made to plan.\n"


@pytest.fixture(autouse=True)
def _manifest(cli_runner: CliRunner) -> None:
    cli_runner.project("{milestones: {}}")


def test_flags_win_over_the_environment_and_that_over_the_file(
    cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = cli_runner.sandbox.api_url
    nothing = answer("200 OK", "[]")
    with canned(nothing) as in_file, canned(nothing) as in_environment:
        cli_runner.write("reconciler.yaml", f"api_url: {in_file.api_url}\nformat: text\npaths: manifests\n")
        monkeypatch.setenv("RECONCILER_API_URL", in_environment.api_url)
        assert cli_runner(f"plan --api-url {url}").out == PLANNED
        assert (len(in_environment.requests), len(in_file.requests)) == (0, 0)
        assert cli_runner("plan").out == PLANNED
        assert (len(in_environment.requests), len(in_file.requests)) == (1, 0)
        monkeypatch.delenv("RECONCILER_API_URL")
        assert cli_runner("plan").out == PLANNED
        assert (len(in_environment.requests), len(in_file.requests)) == (1, 1)


def test_in_a_ci_job_the_service_is_known(cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RECONCILER_API_URL")
    monkeypatch.setenv("CI_API_V4_URL", cli_runner.sandbox.api_url)
    assert cli_runner("plan").out == PLANNED


@pytest.mark.parametrize("command", ["plan", "apply --yes", "drift", "doctor", "export --user -o out"])
def test_in_a_ci_job_the_checkout_does_not_decide_who_gets_the_token(
    cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.delenv("RECONCILER_API_URL")
    monkeypatch.setenv("CI_API_V4_URL", "https://git.example.com/api/v4")
    with canned(answer("401 Unauthorized")) as elsewhere:
        cli_runner.write("reconciler.yaml", f"api_url: {elsewhere.api_url}\n")
        done = cli_runner(command)
        assert (done.code, done.out, done.err) == (
            1,
            "",
            f"reconciler: reconciler.yaml: api_url {elsewhere.api_url} is not the service of this CI job "
            "(https://git.example.com/api/v4), and a merge request can change that file; if it is meant, set "
            "RECONCILER_API_URL in the CI/CD settings, or give --api-url\n",
        )
        cli_runner.write("reconciler.yaml", "api_url: https://GIT.example.com:443/other/api/v4\nca_file: ca.pem\n")
        assert cli_runner(command).err == (
            "reconciler: reconciler.yaml: ca_file is not accepted in a CI job, where a merge request can change that "
            "file; set RECONCILER_CA_FILE in the CI/CD settings, or give --ca-file\n"
        )
    assert elsewhere.requests == []


def test_in_a_ci_job_flags_and_variables_may_name_another_service(
    cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI_API_V4_URL", "https://git.example.com/api/v4")
    cli_runner.write("reconciler.yaml", f"api_url: {cli_runner.sandbox.api_url}\nca_file: none.pem\n")
    ca_file = ("--ca-file", certifi.where())
    assert cli_runner("plan", *ca_file).out == PLANNED
    monkeypatch.delenv("RECONCILER_API_URL")
    assert cli_runner("plan", "--api-url", cli_runner.sandbox.api_url, *ca_file).out == PLANNED
    monkeypatch.setenv("CI_API_V4_URL", cli_runner.sandbox.api_url)
    monkeypatch.setenv("RECONCILER_CA_FILE", certifi.where())
    assert cli_runner("plan").out == PLANNED


TEMPLATE = """\
apiVersion: reconciler/v1
kind: Project
metadata: {path: acme/api}
spec: {milestones: {'{{ env.%s }}': {}}}
"""


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("RECONCILER_TOKEN", None),
        ("RECONCILER_NOTE_TOKEN", "note-token"),
        ("RECONCILER_READ_TOKEN", "reading"),
        ("RECONCILER_TRIGGER_TOKEN", None),
        ("COPY", "ada-token"),
        ("URL", "https://ada:ada-token@host"),
        ("OF_FILE", "file-token\n"),
    ],
)
def test_no_template_reads_a_token_of_ours(
    cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch, name: str, value: str | None
) -> None:
    cli_runner.write("manifests/project.yaml", "").unlink()
    cli_runner.write("manifests/project.yaml.j2", TEMPLATE % name)
    cli_runner.write("token", "file-token\n").chmod(0o600)
    if value is not None:
        monkeypatch.setenv(name, value)
    refused = (
        f"reconciler: templates may not read the environment variable {name}: it holds a token of reconciler, and plans "
        "show what templates read; remove it from --env, or from env in reconciler.yaml\n"
    )
    file = ("--token-file", "token") if name == "OF_FILE" else ()
    done = cli_runner("plan --env", name, *file)
    assert (done.code, done.out, done.err) == (1, "", refused)
    cli_runner.write("reconciler.yaml", f"env: {name}\n")
    repository(cli_runner.folder).commit()
    for command in ("plan", "plan --since HEAD", "drift", "apply --yes"):
        done = cli_runner(command, *file)
        assert (done.code, done.out, done.err) == (1, "", refused)
    if not file:
        assert [cli_runner(command).err for command in ("validate", "render", "doctor")] == [refused] * 3


def test_in_a_ci_job_the_repository_does_not_decide_which_variables_templates_read(
    cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli_runner.write("manifests/project.yaml", "").unlink()
    cli_runner.write("manifests/project.yaml.j2", TEMPLATE % "VAULT_PASSWORD")
    cli_runner.write("reconciler.yaml", "env: [VAULT_PASSWORD, STAGE]\n")
    monkeypatch.setenv("VAULT_PASSWORD", "correct-horse")
    repository(cli_runner.folder).commit()
    assert '+ milestone "correct-horse"' in cli_runner("plan").out
    monkeypatch.setenv("CI", "true")
    for command in ("validate", "render", "plan", "plan --since HEAD", "drift", "apply --yes"):
        done = cli_runner(command)
        assert (done.code, done.out, done.err) == (
            1,
            "",
            "reconciler: reconciler.yaml: env is not accepted in a CI job, where a merge request can change that file, "
            "and plans show what templates read; set RECONCILER_ENV to 'VAULT_PASSWORD STAGE' in the CI/CD settings, or "
            "give --env\n",
        )
    cli_runner.write("reconciler.yaml", "")
    cli_runner.write("manifests/project.yaml.j2", TEMPLATE % "VAULT_PASSWORD" + "\n")
    done = cli_runner("plan --since HEAD")  # its reconciler.yaml names the variable
    assert "correct-horse" not in done.out + done.err
    assert (
        "the environment variable VAULT_PASSWORD may not be read: name it by --env VAULT_PASSWORD"
        in done.out + done.err
    )
    monkeypatch.setenv("RECONCILER_ENV", "STAGE VAULT_PASSWORD")
    assert '+ milestone "correct-horse"' in cli_runner("plan").out
    assert "Nothing to do: no target was looked at. " in cli_runner("plan --since HEAD").out
    monkeypatch.delenv("RECONCILER_ENV")
    assert '+ milestone "correct-horse"' in cli_runner("plan --env VAULT_PASSWORD").out


@pytest.mark.parametrize("suffix", [".yaml", ".yaml.j2"])
def test_a_link_to_the_token_shows_nothing_of_it(
    cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    """A commit can add a link to the token file among the manifests, since CI jobs keep it at known paths."""
    cli_runner.write("../job/token", "ada-token\n").chmod(0o600)
    (cli_runner.folder / f"manifests/link{suffix}").symlink_to(cli_runner.folder.parent / "job/token")
    for variable, file in (
        ("RECONCILER_TOKEN", None),
        ("RECONCILER_TOKEN_FILE", cli_runner.folder.parent / "job/token"),
    ):
        monkeypatch.setenv(variable, str(file) if file else "ada-token")
        for line in ("plan", "validate", "validate --format json", "plan --log-format json"):
            done = cli_runner(line)
            assert done.code == 1
            assert "a manifest is a mapping" in done.out + done.err
            assert "ada-token" not in done.out + done.err
        monkeypatch.delenv("RECONCILER_TOKEN", raising=False)
    monkeypatch.setenv("RECONCILER_TOKEN_FILE", "/proc/self/mem")
    assert "a manifest is a mapping" in cli_runner("validate").out


@pytest.mark.untraced
def test_other_variables_are_read(cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    cli_runner.write("manifests/project.yaml.j2", TEMPLATE.replace("acme/api", "acme/lib") % "TITLE")
    cli_runner.write("token", "ada-token").chmod(0o600)
    for name, value in {"TITLE": "one", "EMPTY": ""}.items():
        monkeypatch.setenv(name, value)
    reading, writing = os.pipe()
    os.write(writing, b"ada-token")
    os.close(writing)
    for file in ("token", f"/dev/fd/{reading}"):
        assert '+ milestone "one"' in cli_runner(f"plan --env TITLE --env EMPTY --token-file {file}").out
    os.close(reading)


def test_a_token_in_the_environment_comes_before_the_file_that_the_configuration_names(cli_runner: CliRunner) -> None:
    cli_runner.write("token", "wrong").chmod(0o600)
    cli_runner.write("reconciler.yaml", "token_file: token\n")
    assert cli_runner("plan").out == PLANNED
    assert cli_runner("plan --token-file token").code == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tokn_file: x\n", "reconciler.yaml:1:1: unknown key `tokn_file`; did you mean `token_file`?"),
        (
            "format: text\nallow_deletes:\n  count: 5\n",
            "reconciler.yaml:2:1: the key `until` is missing, such as `until: 2026-12-01`",
        ),
        (
            "zzz: x\n",
            "reconciler.yaml:1:1: unknown key `zzz`; known are api_url, token_file, ca_file, insecure_http, paths, values, "
            "set, env, concurrency, rate, max_wait, max_age, grace, format, log_format, allow_deletes, max_loosening, allow_problems, "
            "baseline, tokens_to, tokens_command, web_url, repository_url, inventory and issue",
        ),
        (
            "paths: x\ntoken: glpat-secret\n",
            "reconciler.yaml:2:1: a token does not belong here; set RECONCILER_TOKEN or token_file",
        ),
        ("- 1\n", "reconciler.yaml: must hold one mapping of names to values"),
        ("paths: [a\n", "reconciler.yaml:1:10: the list begun on line 1 is not closed: `]` is missing, or a comma"),
        ("token: 'glpat-secret\n", "reconciler.yaml:1:21: the quoted text begun on line 1 is not closed"),
        *[
            (
                f"concurrency: {text}\n",
                "reconciler.yaml:1:14: `concurrency` must be auto, or a whole number from 1 to 64, without quotes",
            )
            for text in ("99", "'8'", "true", "fast")
        ],
        (
            "insecure_http: yes\n",
            "reconciler.yaml:1:16: `insecure_http` must be true or false: `yes` is text, write true",
        ),
        ("api_url:\n", "reconciler.yaml:1:1: `api_url` must be text, not null; to leave it alone, leave it out"),
        ("api_url: ''\n", "reconciler.yaml:1:10: `api_url` must not be empty"),
        (
            "web_url: javascript:alert(1)\n",
            "reconciler.yaml:1:10: `web_url` must be a web address, such as https://gitlab.example.com",
        ),
        (
            "max_wait: 5\n",
            "reconciler.yaml:1:11: `max_wait` is wrong: a duration is a number followed by d, h, m or s, such as 24h",
        ),
        ("max_age: 36501d\n", "reconciler.yaml:1:10: `max_age` is wrong: a duration is at most 36500d"),
        ("rate: often\n", "reconciler.yaml:1:7: `rate` must be N/SECONDS, such as 600/60"),
        (
            "format: markdwon\n",
            "reconciler.yaml:1:9: `format` must be one of codequality, fleet, html, json, junit, markdown, prometheus, terraform-report or "
            "text; did you mean `markdown`?",
        ),
        (
            "format: [text]\n",
            "reconciler.yaml:1:9: `format` must be one of codequality, fleet, html, json, junit, markdown, prometheus, terraform-report or "
            "text",
        ),
        (
            "inventory: {branch: main, remot: x}\n",
            "reconciler.yaml:1:21: `inventory` must be the name of a branch below reconciler/, such as reconciler/applied\n"
            "reconciler.yaml:1:27: unknown key `remot`; did you mean `remote`?",
        ),
        ("inventory: {remote: ''}\n", "reconciler.yaml:1:21: `inventory` must not be empty"),
        ("inventory: true\n", "reconciler.yaml:1:12: `inventory` must be a mapping, or false"),
        ("paths: {a: b}\n", "reconciler.yaml:1:8: `paths` must be text or a list, not a mapping"),
        ("paths: [a, 1]\n", "reconciler.yaml:1:12: `paths` must be text: `1` is a number, quote it"),
        ("set: [a=b]\n", "reconciler.yaml:1:6: `set` must be a mapping such as `{stage: live}`, not a list"),
        ("set: {quarter: 1}\n", "reconciler.yaml:1:16: `set` must be text: `1` is a number, quote it"),
        ("set: {a=b: c}\n", "reconciler.yaml:1:7: must be the name of a value, without `=`"),
        ("1: x\n", "reconciler.yaml:1:1: `1` is a number, and a key must be text: quote it"),
        (
            "rate: x\nconcurency: 8\n",
            "reconciler.yaml:1:7: `rate` must be N/SECONDS, such as 600/60\n"
            "reconciler.yaml:2:1: unknown key `concurency`; did you mean `concurrency`?",
        ),
    ],
)
def test_a_wrong_configuration_file_is_refused_with_every_place_and_no_line_of_it(
    cli_runner: CliRunner, text: str, said: str
) -> None:
    cli_runner.write("reconciler.yaml", text)
    done = cli_runner("plan")
    assert (done.code, done.out, done.err) == (1, "", f"reconciler: {said}\n")


def test_every_key_of_the_configuration_but_places_is_an_option_of_some_command_or_a_command() -> None:
    names = {parameter.name for command in commands().values() for parameter in command.params} | set(commands())
    assert set(Configuration.model_fields) - names == {"web_url", "repository_url", "inventory"}


def test_the_configuration_allows_what_the_options_allow() -> None:
    options = {parameter.name: parameter.type for parameter in commands()["plan"].params}
    bounds, formats, logs = options["concurrency"], options["format"], options["log_format"]
    schema = schema_of("config", KINDS)["properties"]
    word, numbers = schema["concurrency"]["anyOf"]
    assert isinstance(bounds, InFlight)
    assert bounds.convert(word["const"], None, None) == "auto"
    assert (bounds.min, bounds.max) == (numbers["minimum"], numbers["maximum"])
    assert isinstance(formats, click.Choice)
    assert list(formats.choices) == schema["format"]["enum"]
    assert isinstance(logs, click.Choice)
    assert list(logs.choices) == schema["log_format"]["enum"]


def commands() -> dict[str, click.Command]:
    context = click.Context(cli)
    found = {name: cli.get_command(context, name) for name in cli.list_commands(context)}
    return {name: command for name, command in found.items() if command}


def test_how_a_repository_asks_its_service_is_decided_once(cli_runner: CliRunner) -> None:
    cli_runner.project("{milestones: {}}", "acme/none")
    cli_runner.write("reconciler.yaml", "concurrency: 1\nallow_problems: true\n")
    done = cli_runner("plan")
    assert (done.code, "1 problem" in done.out) == (0, True)
    for line, said in (
        (
            "rate: 0/60",
            "reconciler: --rate both numbers must be above zero, and the seconds no more than a day: '0/60'\n",
        ),
        ("ca_file: none.pem", "reconciler: none.pem: No such file or directory\n"),
        (
            "concurrency: 0",
            "reconciler: reconciler.yaml:1:14: `concurrency` must be auto, or a whole number from 1 to 64, without quotes\n",
        ),
    ):
        cli_runner.write("reconciler.yaml", line + "\n")
        done = cli_runner("plan --api-url https://127.0.0.1:1/api/v4")
        assert (done.out, done.err) == ("", said)


def test_templates_get_what_the_configuration_gives_them(
    cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli_runner.write(
        "reconciler.yaml", "paths: templates\nvalues: values.yaml\nset: {project: acme/api}\nenv: [STAGE]\n"
    )
    cli_runner.write("values.yaml", "project: acme/web\n")
    monkeypatch.setenv("STAGE", "live")
    cli_runner.write(
        "templates/project.yaml.j2",
        "apiVersion: reconciler/v1\nkind: Project\nmetadata: {path: {{ project }}}\n"
        "spec: {milestones: {'{{ env.STAGE }}': {}}}\n",
    )
    assert '+ milestone "live"' in cli_runner("plan").out
    assert "project acme/lib\n" in cli_runner("plan --set project=acme/lib").out
    cli_runner.write("reconciler.yaml", "paths: templates\nvalues: values.yaml\nenv: [STAGE]\n")
    cli_runner.write("other.yaml", "project: acme/lib\n")
    assert "project acme/lib\n" in cli_runner("plan --values other.yaml").out


def test_a_flag_for_created_tokens_wins_over_the_file_of_the_configuration(cli_runner: CliRunner) -> None:
    cli_runner.project("{trigger_tokens: {nightly: {}}}")
    cli_runner.write("reconciler.yaml", "tokens_to: tokens.jsonl\n")
    assert cli_runner("apply --yes --tokens-command", "tee by-command").code == 0
    assert [(cli_runner.folder / name).exists() for name in ("by-command", "tokens.jsonl")] == [True, False]
    cli_runner.write("reconciler.yaml", "tokens_command: tee not-here\n")
    cli_runner.project("{trigger_tokens: {weekly: {}}}")
    assert cli_runner("apply --yes --tokens-to tokens.jsonl").code == 0
    assert [(cli_runner.folder / name).exists() for name in ("not-here", "tokens.jsonl")] == [False, True]


def test_the_configuration_names_one_way_for_created_tokens(cli_runner: CliRunner) -> None:
    cli_runner.write("reconciler.yaml", "tokens_to: a\ntokens_command: b\n")
    done = cli_runner("apply --yes")
    assert (done.code, done.err) == (64, "reconciler: apply takes --tokens-to or --tokens-command, not both\n")


def test_what_needs_no_configuration_works_beside_a_wrong_one(cli_runner: CliRunner) -> None:
    cli_runner.write("reconciler.yaml", "nonsense")
    done = cli_runner("schema config")
    assert (done.code, done.err) == (0, "")
    assert json.loads(done.out) == schema_of("config", KINDS)


def test_an_empty_configuration_file_says_nothing(cli_runner: CliRunner) -> None:
    cli_runner.write("reconciler.yaml", "# nothing yet\n")
    assert cli_runner("plan").out == PLANNED


NO_URL = "RECONCILER_API_URL or --api-url is not the URL of an API, such as https://host/api/v4"
WITH_SECRET = (
    "RECONCILER_API_URL or --api-url holds a token or a password; it must be the URL alone, such as https://host/api/v4"
)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (None, "no service: set RECONCILER_API_URL or --api-url, such as https://host/api/v4"),
        ("ftp://host/api", "not the URL of an API: host; such as https://host/api/v4"),
        ("host/api/v4", NO_URL),
        ("https://[host/api/v4", NO_URL),
        ("https://ada:glpat-secret@host/api/v4", WITH_SECRET),
        ("https://:an-older-token@host/api/v4", WITH_SECRET),
        ("https://host/api/v4?private_token=glpat", "not the URL of an API: host; such as https://host/api/v4"),
        (
            "http://host/api/v4",
            "http://host would send the token unprotected; use https, or --insecure-http if that is meant",
        ),
        (
            "http://192.0.2.1/api/v4",
            "http://192.0.2.1 would send the token unprotected; use https, or --insecure-http if that is meant",
        ),
    ],
)
def test_an_address_that_is_none_or_not_safe_is_refused(
    cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch, url: str | None, said: str
) -> None:
    monkeypatch.delenv("RECONCILER_API_URL")
    if url is not None:
        monkeypatch.setenv("RECONCILER_API_URL", url)
    done = cli_runner("plan")
    assert (done.code, done.out, done.err) == (1, "", f"reconciler: {said}\n")


def test_plain_http_to_another_host_can_be_allowed() -> None:
    with open_client(ConnectionOptions(api_url="http://reconciler.invalid/api/v4", insecure_http=True)) as client:
        assert client.api_url == "http://reconciler.invalid/api/v4"


def test_loopback_needs_no_protection(cli_runner: CliRunner) -> None:
    url = cli_runner.sandbox.api_url.replace("127.0.0.1", "localhost")
    assert cli_runner(f"plan --api-url {url}").out == PLANNED


NO_TOKEN_FILE = (
    "the token file cannot be read: No such file or directory; --token-file and RECONCILER_TOKEN_FILE take the path of a "
    "file, never the token: in GitLab, give the CI/CD variable the type File"
)


@pytest.mark.untraced
@pytest.mark.parametrize(
    "secret",
    [
        "glpat-aBcDeFgHiJkLmNoPqRsT",
        "glptt-0123456789abcdef0123456789abcdef01234567",
        "gldt-aBcDeFgHiJkLmNoPqRsT",
        "glpat-aBcDeFgHiJkLmNoPqRsT.01.0w1abcdef",
        "GR1348941aBcDeFgHiJkLmNoPqRsT",
        "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhZGEifQ.c2lnbmF0dXJl",
        "https://ada:a-password@example.com/acme/settings.git",
        "an0lder-token-w1thout-prefix",
    ],
)
def test_a_token_in_the_place_of_something_else_is_not_shown(
    cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch, secret: str
) -> None:
    """CI/CD variables get the wrong type or the wrong name, and the log of a job is read by many."""
    known = "w1thout" not in secret
    shown = secret.split("@", maxsplit=1)[0].removeprefix("https://").removeprefix("ada:")

    def said(line: str, *more: str) -> str:
        done = cli_runner(line, *more)
        assert done.code in (0, 1, 64)
        assert shown.lower() not in (done.out + done.err).lower(), (line, done)
        return done.err

    with monkeypatch.context() as swapped:
        swapped.delenv("RECONCILER_TOKEN")
        for line in ("plan", "apply --yes", "export --user -o out", "doctor"):
            assert said(f"{line} --token-file", secret) == f"reconciler: {NO_TOKEN_FILE}\n"
        swapped.setenv("RECONCILER_TOKEN_FILE", secret)
        assert said("plan") == f"reconciler: {NO_TOKEN_FILE}\n"
    with monkeypatch.context() as swapped:
        swapped.setenv("RECONCILER_TOKEN", cli_runner.sandbox.api_url)
        for url in (secret, f"https://{secret}") if known else (secret,):
            swapped.setenv("RECONCILER_API_URL", url)
            assert said("plan") in (f"reconciler: {NO_URL}\n", f"reconciler: {WITH_SECRET}\n")
            swapped.setenv("CI_API_V4_URL", "https://git.example.com/api/v4")
            said("note report.md --project acme/api --merge-request 1")
            swapped.delenv("CI_API_V4_URL")
    if not known:
        monkeypatch.setenv("RECONCILER_TOKEN", secret)
    for option in ["ca-file", "values", "format", "since", "rate", "max-wait", "shard", "target", "section"]:
        said("plan", f"--{option}", secret)
        said("plan", f"--{option}={secret}")
    for line in ("plan", "validate", "validate --format json", "show", "revert", "schema", "render"):
        said(line, secret)
        said(line, f"folder/{secret}.yaml")
    said(secret)
    said("schema", "--check", secret)
    cli_runner.write("reconciler.yaml", f"values: {secret}\n")
    said("plan")


def test_a_name_that_only_begins_like_a_token_is_shown(cli_runner: CliRunner) -> None:
    line = "show global-baseline/gltf-models-of-2026.json"
    assert (
        cli_runner(line).err
        == "reconciler: global-baseline/gltf-models-of-2026.json: No such file or directory; check the path\n"
    )


def test_the_token_may_come_from_a_file_that_nobody_else_writes(
    cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RECONCILER_TOKEN")
    file = cli_runner.write("token", "ada-token\n")
    for mode, warned in (
        (0o600, ""),
        (0o440, "others may read token; if that is not meant: chmod 600 token\n"),
        (0o644, "others may read token; if that is not meant: chmod 600 token\n"),
    ):
        file.chmod(mode)
        done = cli_runner("plan --token-file token")
        assert (done.code, done.out, done.err) == (0, PLANNED, warned)
        assert cli_runner("plan --token-file token --quiet").err == ""
    for mode in (0o620, 0o602):
        file.chmod(mode)
        done = cli_runner("plan --token-file token")
        assert (done.code, done.err) == (1, "reconciler: others may write to token; first: chmod go-w token\n")


def test_a_token_file_that_is_missing_or_not_text_is_refused(cli_runner: CliRunner) -> None:
    assert cli_runner("plan --token-file none").err == f"reconciler: {NO_TOKEN_FILE}\n"
    binary = Path("binary")
    binary.write_bytes(b"\xff\xfe")
    binary.chmod(0o600)
    assert cli_runner("plan --token-file binary").err == "reconciler: binary: not a text file\n"


@pytest.mark.parametrize(
    ("token", "said"),
    [
        ("", "no token: set RECONCILER_TOKEN or --token-file"),
        ("glpat secret", "the token is empty, or holds blanks or characters that no token has"),
        ("glpät", "the token is empty, or holds blanks or characters that no token has"),
        ("gl\x1bpat", "the token is empty, or holds blanks or characters that no token has"),
    ],
)
def test_a_token_that_is_none_is_refused_without_being_shown(
    cli_runner: CliRunner, monkeypatch: pytest.MonkeyPatch, token: str, said: str
) -> None:
    monkeypatch.setenv("RECONCILER_TOKEN", token)
    done = cli_runner("plan")
    assert (done.code, done.out, done.err) == (1, "", f"reconciler: {said}\n")


def test_certificates_can_be_given(cli_runner: CliRunner) -> None:
    done = cli_runner("plan --api-url https://127.0.0.1:9/api/v4 --ca-file none.pem")
    assert (done.code, done.err) == (1, "reconciler: none.pem: No such file or directory\n")
    cli_runner.write("empty.pem", "nothing")
    done = cli_runner("plan --api-url https://127.0.0.1:9/api/v4 --ca-file empty.pem")
    assert (done.code, done.err) == (1, "reconciler: empty.pem: holds no certificates\n")
    with open_client(ConnectionOptions(api_url="https://127.0.0.1:9/api/v4", ca_file=certifi.where())) as client:
        assert client.api_url == "https://127.0.0.1:9/api/v4"


def test_a_service_that_cannot_be_reached_is_named_in_the_end(cli_runner: CliRunner) -> None:
    done = cli_runner("plan --api-url http://127.0.0.1:9/api/v4")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(
        "reconciler: GET projects/acme%2Fapi/milestones: http://127.0.0.1:9/api/v4 cannot be reached: "
    )


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (
            answer("200 OK", "<html>Sign in</html>", content_type="text/html"),
            "cannot be read: GET projects/acme%2Fapi/milestones: the response is not JSON (200, text/html)",
        ),
        (
            answer("200 OK", "[{"),
            "cannot be read: GET projects/acme%2Fapi/milestones: the response is not JSON (200, application/json)",
        ),
        (
            answer("200 OK", '[{"id": 1, "state": "active"}]'),
            "cannot be read: GET projects/acme%2Fapi/milestones: unexpected response: 'title' is missing",
        ),
        (
            answer("200 OK", "[1]"),
            "cannot be read: GET projects/acme%2Fapi/milestones: unexpected response: "
            "the body does not have the documented structure",
        ),
        (
            answer("301 Moved Permanently", location="https://h/api/v4/projects/7/milestones"),
            "cannot be read: GET projects/acme%2Fapi/milestones: redirected to https://h/api/v4/projects/7/milestones",
        ),
    ],
    ids=["html", "broken", "missing", "shape", "moved"],
)
def test_an_answer_nobody_can_plan_on_is_a_problem_that_names_the_request(
    cli_runner: CliRunner, raw: bytes, said: str
) -> None:
    with canned(raw) as server:
        done = cli_runner(f"plan --api-url {server.api_url}")
    assert done.code == 3
    remedy = "try again; if it fails again, check the logs of the service"
    assert f"  ! milestones: {said}; {remedy}     manifests/project.yaml:4\n" in done.out
    assert done.err == ""
