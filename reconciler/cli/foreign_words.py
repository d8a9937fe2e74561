"""Commands and options of other tools, each with the words to write here; see `model.foreign_keys` for manifests.

A word of another tool is never taken for a word of ours: the same spelling may do something else.
"""

from collections.abc import Mapping, Sequence

import click

SEEING = "`reconciler plan` shows the changes, and cannot write"
CHECKING = "`reconciler validate` checks manifests, and `reconciler doctor` token and service"
DELETING = "no command deletes: the next apply deletes an item that left the manifests, or that is `null` there"
LISTING = "`reconciler render` prints the manifest of each target, and `reconciler drift` what differs"
APPLYING = "`reconciler apply` makes the changes of a plan"
READING = "every plan reads the service: there is nothing to refresh, and no state file"
SIGNING_IN = "the token is read from RECONCILER_TOKEN or --token-file, and defaults from reconciler.yaml"

FOREIGN_COMMANDS: Mapping[str, str] = {
    "adopt": "`reconciler init` and `reconciler export` write manifests of what exists; the next apply adopts it",
    "auth": SIGNING_IN,
    "check": CHECKING,
    "config": SIGNING_IN,
    "configure": SIGNING_IN,
    "delete": DELETING,
    "deploy": APPLYING,
    "destroy": DELETING,
    "diff": SEEING,
    "dry-run": SEEING,
    "fmt": "there is no formatter: the layout of YAML is yours, and `accept` and `export` keep it",
    "format": "there is no formatter: the layout of YAML is yours, and `accept` and `export` keep it",
    "get": LISTING,
    "help": "`reconciler --help` lists the commands, and `reconciler COMMAND --help` the options of one",
    "history": "`reconciler log` lists the applies",
    "import": "`reconciler init` and `reconciler export` write manifests of what exists; the next apply adopts it",
    "lint": CHECKING,
    "list": LISTING,
    "login": SIGNING_IN,
    "preview": SEEING,
    "refresh": READING,
    "rollback": "`reconciler revert` plans the way back from an apply",
    "run": APPLYING,
    "state": READING,
    "status": LISTING,
    "sync": APPLYING,
    "test": CHECKING,
    "undo": "`reconciler revert` plans the way back from an apply",
    "update": APPLYING,
    "verify": CHECKING,
    "version": "`reconciler --version` prints the version",
}
"""By word, where to go instead."""

MANIFESTS_FIRST = "manifests are arguments: reconciler plan manifests"
MACHINE_READABLE = "`--format json` prints JSON, `--report json=FILE` writes it too, and `plan --out FILE` saves a plan"
CONFIRMED = "`apply --yes` does not ask"
SELECTING = "`--target PATH`, `--section NAME` and `--selector KEY=VALUE` choose what a run is about"
OUR_TOKEN = "a token is never an argument, where others could read it: set RECONCILER_TOKEN, or give --token-file"  # noqa: S105 - a sentence
OUR_SERVICE = "`--api-url` names the service, such as https://host/api/v4"
CERTIFICATES = "certificates are always checked: --ca-file names those of your own authority"

FOREIGN_OPTIONS: Mapping[str, str] = {
    "--access-token": OUR_TOKEN,
    "--assume-yes": CONFIRMED,
    "--auto-approve": CONFIRMED,
    "--base-url": OUR_SERVICE,
    "--check": SEEING,
    "--config": "the configuration is reconciler.yaml in the working directory",
    "--debug": "`--verbose` shows each request, and `-vv` adds tracebacks",
    "--dry-run": SEEING,
    "--extra-vars": "`--set KEY=VALUE` sets a value of templates",
    "--file": MANIFESTS_FIRST,
    "--filename": MANIFESTS_FIRST,
    "--force": CONFIRMED,
    "--gitlab-url": OUR_SERVICE,
    "--group": SELECTING,
    "--host": OUR_SERVICE,
    "--ignore": "`--exclude PATH` leaves targets out",
    "--include": SELECTING,
    "--insecure": CERTIFICATES,
    "--json": MACHINE_READABLE,
    "--label": SELECTING,
    "--log-level": "`--verbose` shows each request, and `--quiet` the result alone",
    "--manifest": MANIFESTS_FIRST,
    "--manifests": MANIFESTS_FIRST,
    "--namespace": SELECTING,
    "--no-color": "`--color never` writes without colour",
    "--no-confirm": CONFIRMED,
    "--noop": SEEING,
    "--only": SELECTING,
    "--output": MACHINE_READABLE,
    "--parallel": "`--concurrency` bounds the requests in flight",
    "--parallelism": "`--concurrency` bounds the requests in flight",
    "--plan-only": SEEING,
    "--preview": SEEING,
    "--private-token": OUR_TOKEN,
    "--project": SELECTING,
    "--prune": "`prune: [SECTION]` in `spec` deletes what a manifest does not declare there",
    "--refresh": READING,
    "--refresh-only": READING,
    "--server": OUR_SERVICE,
    "--silent": "`--quiet` shows the result alone",
    "--skip": "`--exclude PATH` leaves targets out",
    "--skip-tls-verify": CERTIFICATES,
    "--state": READING,
    "--tags": SELECTING,
    "--threads": "`--concurrency` bounds the requests in flight",
    "--timeout": "`--max-wait` ends a run when the service asks for a longer pause",
    "--token": OUR_TOKEN,
    "--url": OUR_SERVICE,
    "--var": "`--set KEY=VALUE` sets a value of templates",
    "--var-file": "`--values FILE` reads values of templates",
    "--workers": "`--concurrency` bounds the requests in flight",
    "-f": MANIFESTS_FIRST,
    "-j": "`--concurrency` bounds the requests in flight",
    "-l": SELECTING,
    "-o": MACHINE_READABLE,
    "-y": CONFIRMED,
}
"""By option, what to write instead; a command that has the option takes it."""

FOREIGN_VARIABLES: Mapping[str, Sequence[str]] = {
    "RECONCILER_TOKEN": ("GITLAB_TOKEN", "GITLAB_PRIVATE_TOKEN", "GITLAB_ACCESS_TOKEN"),
    "RECONCILER_API_URL": ("GITLAB_URL", "GITLAB_BASE_URL", "GITLAB_API_URL", "GITLAB_HOST"),
}
"""By variable of ours, those of other tools for the same: none is read, since a token is meant for one tool."""


def not_read(variable: str, environment: Mapping[str, str]) -> str:
    """Return that a variable of another tool is set in place of ours; empty if no such variable is set."""
    foreign = next((name for name in FOREIGN_VARIABLES[variable] if environment.get(name)), None)
    return f"; {foreign} is set, and not read" if foreign else ""


def single_dash(option: str, arguments: Sequence[str], option_names: Sequence[str]) -> str:
    """Return that a long option takes two dashes, since `-target=x` is read as `-t`; empty if no long option was meant.

    Args:
        option: the option that the parser has read, such as `-t`.
        arguments: of the command.
        option_names: of the command.
    """
    words = (argument.partition("=")[0] for argument in arguments if argument.startswith(option))
    long = next((f"-{word}" for word in words if f"-{word}" in {*option_names, *FOREIGN_OPTIONS}), None)
    if long is None:
        return ""
    advice = FOREIGN_OPTIONS.get(long, "") if long not in option_names else f"an option has two dashes: {long}"
    return f"unknown option `{long[1:]}`; {advice}"


def foreign_command(name: str, context: click.Context) -> click.UsageError | None:
    """Return the error about a command of another tool; None for any other word."""
    advice = FOREIGN_COMMANDS.get(name)
    return click.UsageError(f"unknown command `{name}`; {advice}", context) if advice else None
