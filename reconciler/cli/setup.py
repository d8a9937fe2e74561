"""`reconciler doctor`, `schema` and `completion`: setting up, for people, editors and shells."""

import os
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.cli import suggestions
from reconciler.cli.command import command
from reconciler.cli.exit_codes import of_targets
from reconciler.cli.help import Command
from reconciler.cli.inventory import API, branch_on
from reconciler.cli.job import in_job
from reconciler.cli.options import (
    DEFAULT_PATHS,
    RUN,
    ConnectionOptions,
    OutputOptions,
    PlanningOptions,
    SelectionOptions,
    SourceOptions,
)
from reconciler.cli.outputs import check_outputs
from reconciler.cli.results import write_result
from reconciler.cli.settings import configured, connected, reading_token, tokens_of
from reconciler.cli.sources import inputs_of
from reconciler.cli.stdout import write_stdout

if TYPE_CHECKING:
    from reconciler.doctor import Diagnosis, PipelineProject, ServiceCheck
    from reconciler.engine.run import Run
    from reconciler.service import Client


@command(
    *RUN,
    weekly="--read-only --pipeline --target --section --verbose",
    writes="diagnosis",
    epilog="Example: reconciler doctor manifests --format json",
)
@click.option("--read-only", is_flag=True, help="Check only the access that `plan` and `drift` need.")
@click.option(
    "--pipeline", is_flag=True, help="Check what the pipelines of this repository's project need, and no targets."
)
def doctor(
    *,
    sources: SourceOptions,
    selection: SelectionOptions,
    connection: ConnectionOptions,
    output: OutputOptions,
    read_only: bool,
    pipeline: bool,
) -> int:
    """Check that token, service and manifests are ready. Read-only.

    Reports the token's type, owner, scopes and expiry, the service's version, and for every section whether it is
    readable and writable, with a fix for each obstacle; `unknown` means that the service does not say. Estimates the
    requests and the time of a plan and of its apply. Without manifests, checks token and service only.

    Exits with 3 if a section cannot be read or written, and with 1 if no target can be checked.

    With --pipeline, checks the variables of the project, the branch of the inventory and who may push it, the
    environment, and the component and image that .gitlab-ci.yml names. The project is that of the job, elsewhere that
    of the remote `origin`. A Maintainer's token sees everything.
    """
    from reconciler.reports import render_diagnosis

    check_outputs("diagnosis", output, sources=sources, connection=connection)
    if pipeline:
        diagnosis = _check_pipeline(connection)
    else:
        diagnosis = _check(sources, selection, connection, output, read_only=read_only)
    write_result(partial(render_diagnosis, diagnosis), output)
    return of_targets(complete=not diagnosis.counts.error, any_target=diagnosis.targets or diagnosis.pipeline)


def _check(
    sources: SourceOptions,
    selection: SelectionOptions,
    connection: ConnectionOptions,
    output: OutputOptions,
    *,
    read_only: bool,
) -> "Diagnosis":
    """Check service and token and, if both are usable, the targets; these checks wait longer for a slow service."""
    from reconciler.cli.planning import run_of
    from reconciler.cli.settings import exposes_token
    from reconciler.doctor import Diagnosis, DoctorFinding, Verdict, check_service
    from reconciler.errors import ManifestErrors, ServiceError
    from reconciler.model.wording import counted

    with connected(connection, brisk=True, only_reads=read_only) as client:
        url = client.api_url
        service = check_service(client, url, lambda: client.now().date(), exposed=exposes_token(url))
    if not service.usable or not (sources.paths or Path(*DEFAULT_PATHS).exists()):
        return Diagnosis(service)
    inputs = inputs_of(sources, partial(tokens_of, connection))
    try:
        with (
            connected(connection, only_reads=read_only) as client,
            run_of(client, inputs, selection, PlanningOptions(), output) as run,
        ):
            return _check_targets(run, client, service, connection.rate, read_only=read_only)
    except ManifestErrors as errors:
        number = sum(diagnostic.severity == "error" for diagnostic in errors.diagnostics)
        text = f"not valid: {counted(number, 'error')}"
        finding = DoctorFinding(Verdict.ERROR, "manifests", text, "reconciler validate lists the errors")
    except ServiceError as error:
        finding = DoctorFinding(Verdict.ERROR, "targets", f"not all could be checked: {error}", "try again later")
    return Diagnosis(service, manifests=(finding,))


def _check_pipeline(connection: ConnectionOptions) -> "Diagnosis":
    """Check service and token and, if both are usable, what the pipelines of the project need."""
    from reconciler.cli.settings import exposes_token
    from reconciler.doctor import Diagnosis, check_pipeline, check_read_token, check_service

    project = _pipeline_project()
    with connected(connection, brisk=True) as client:
        url, exposed = client.api_url, exposes_token(client.api_url)
        service = check_service(client, url, lambda: client.now().date(), exposed=exposed)
        findings = check_pipeline(client, project) if service.usable else ()
    reading = reading_token()
    if reading is not None and service.usable:
        with connected(connection, brisk=True, only_reads=True) as client:
            read = check_service(client, url, lambda: client.now().date(), exposed=exposed)
        findings = (*findings, *check_read_token(read))
    return Diagnosis(service, pipeline=findings)


def _pipeline_project() -> "PipelineProject":
    """Return the project of this job, elsewhere that of the remote `origin`.

    Raises:
        ConfigurationError: there is no such project.
    """
    from reconciler.doctor import PipelineProject
    from reconciler.errors import ConfigurationError
    from reconciler.memory.remotes import checkout_remote
    from reconciler.memory.store import INVENTORY_BRANCH
    from reconciler.system.processes import repository

    path, top = os.environ.get("CI_PROJECT_PATH", ""), repository(Path())
    if not path and top is not None:
        address = checkout_remote(top, "origin").url
        path = re.sub(r"^(\w+://[^/]*/|[^/:]+:)", "", address).strip("/").removesuffix(".git")
    if not path:
        raise ConfigurationError("--pipeline: no project: run this in the checkout of the manifests, or in its CI job")
    inventory = configured().get("inventory", {})
    configuration = Path(".gitlab-ci.yml")
    return PipelineProject(
        path,
        configuration.read_text(encoding="utf-8", errors="replace") if configuration.is_file() else "",
        "" if inventory is False else inventory.get("branch", INVENTORY_BRANCH),
        os.environ.get("RECONCILER_ENVIRONMENT") or "reconciler",
        frozenset(name for name, value in os.environ.items() if in_job() and value),
    )


def _check_targets(
    run: "Run", client: "Client", service_check: "ServiceCheck", rate: str | None, *, read_only: bool
) -> "Diagnosis":
    """Read the targets, and check what the token may do with them; nothing is written."""
    from reconciler.doctor import Diagnosis, check_inventory, check_lists, check_targets, context_of, costs_of
    from reconciler.engine.plan import checked
    from reconciler.engine.rules import archived_check_requests
    from reconciler.service import Rate

    read = checked(run)
    reads = client.traffic.requests - client.traffic.retries + archived_check_requests(read)
    context = context_of(read, service_check, read_only=read_only)
    targets = check_targets(context)
    limit = Rate.parse(rate) if rate else None
    interval = limit.seconds / limit.requests if limit else 0.0
    costs = costs_of(
        context, reads, latency=client.traffic.latency, concurrency=client.concurrency(), interval=interval
    )
    place = branch_on(client.api_url.removesuffix(API))
    findings = (*check_lists(read.declared.manifests), *(check_inventory(client, *place) if place else ()))
    archived = len(read.archived_left_out)
    return Diagnosis(service_check, targets=targets, costs=costs, manifests=findings, archived=archived)


@click.command(cls=Command, epilog="Examples: reconciler schema manifest;  reconciler schema --write schemas")
@click.argument("schema_name", metavar="[NAME]", required=False, shell_complete=suggestions.schemas)
@click.option(
    "--write",
    "schema_folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write all schemas into DIR.",
)
@click.option(
    "--check",
    "copies",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Exit with 1 if a copy in DIR is not of this version.",
)
def schema(schema_name: str | None, schema_folder: Path | None, copies: Path | None) -> int:
    """Print the JSON Schemas of manifests and outputs.

    NAME prints one schema, such as config. Editors with the YAML language server use a copy that a document names:

        # yaml-language-server: $schema=../schemas/manifest.schema.json

    --check skips schemas that have no copy in DIR.
    """
    import json

    from reconciler.errors import UsageError
    from reconciler.kinds import all_kinds
    from reconciler.model.wording import unknown
    from reconciler.schema import NAMES, all_schemas, check_schemas, schema_of, write_schemas

    if sum(each is not None for each in (schema_name, schema_folder, copies)) > 1:
        raise UsageError("schema takes one of NAME, --write and --check")
    if copies is not None:
        check_schemas(copies, all_kinds())
        return 0
    if schema_folder is not None:
        write_schemas(schema_folder, all_kinds())
        return 0
    if schema_name is not None and schema_name not in NAMES:
        raise UsageError(unknown("schema", schema_name, NAMES))
    chosen = all_schemas(all_kinds()) if schema_name is None else schema_of(schema_name, all_kinds())
    write_stdout(json.dumps(chosen, indent=2, ensure_ascii=False) + "\n")
    return 0


@click.command(cls=Command, epilog="Example: reconciler completion bash")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> int:
    """Print the script for shell completion.

    \b
    bash (4.4 or newer), in ~/.bashrc:
        eval "$(reconciler completion bash)"
    zsh, in ~/.zshrc, after compinit:
        eval "$(reconciler completion zsh)"
    fish, in ~/.config/fish/config.fish:
        reconciler completion fish | source

    It completes commands, options, and the values of --section, --format, --report, --since, --target and --exclude.
    """  # noqa: D301 - click reads the backspace, which keeps the lines apart
    from click.shell_completion import BashComplete, FishComplete, ZshComplete

    shells = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}
    root = click.get_current_context().find_root().command
    write_stdout(shells[shell](root, {}, "reconciler", "_RECONCILER_COMPLETE").source() + "\n")
    return 0
