"""The pipeline that `apply --trigger` starts."""

import logging
import os
from typing import TYPE_CHECKING

from reconciler.cli.exit_codes import signals_handled
from reconciler.cli.options import ConnectionOptions, OutputOptions
from reconciler.cli.settings import trusted
from reconciler.errors import NotFound, ServiceError, UsageError
from reconciler.model.wording import advised

if TYPE_CHECKING:
    from reconciler.service.pipelines import PipelineTrigger

LOG = logging.getLogger("reconciler")

TRIGGER_TOKEN = "RECONCILER_TRIGGER_TOKEN"  # noqa: S105 - the name of a variable
REPORT = "RECONCILER_REPORT"
"""The variable of a started pipeline that names the JSON report."""
INVALID_INPUT = 422
"""The status where a pipeline does not take one of its inputs: the service keeps a pipeline that has failed."""


def pipeline_of(trigger: str | None, inputs: tuple[str, ...]) -> "PipelineTrigger | None":
    """Return the pipeline to start afterwards; None without the option.

    Args:
        trigger: the option `--trigger`.
        inputs: of the pipeline.

    Raises:
        UsageError: the option is written wrong, or there is no token for it.
    """
    if trigger is None:
        if inputs:
            raise UsageError("--trigger-input goes with --trigger")
        return None
    from reconciler.service.pipelines import PipelineTrigger

    return PipelineTrigger.read(trigger, inputs, os.environ.get(TRIGGER_TOKEN, "").strip())


def start(pipeline: "PipelineTrigger", api_url: str, connection: ConnectionOptions, output: OutputOptions) -> None:
    """Start the pipeline, and report if that fails: the result stays. --quiet does not hide a missing pipeline."""
    reports = [path for format_, path in output.reports if format_ == "json"]
    failure = ""
    try:
        with signals_handled(grace_signals=1):
            variables = {REPORT: reports[0]} if reports else {}
            ca_file, besides = trusted(connection)
            page = pipeline.start(api_url, variables, ca_file=ca_file, besides=besides)
    except ServiceError as error:
        failure = _not_started(pipeline, error)
    if failure:
        LOG.error("%s", failure)
    else:
        LOG.info("A pipeline was started in %s%s", pipeline.project, page and f": {page}")


def _not_started(pipeline: "PipelineTrigger", error: ServiceError) -> str:
    """Return the message about a pipeline that could not be started."""
    from reconciler.service.policy import is_in_doubt

    began, remedy = "no pipeline was started", ""
    if is_in_doubt(error, None):
        began = "it is unknown whether a pipeline was started"
    elif isinstance(error, NotFound):
        where = f"there is no such project, it has no branch or tag {pipeline.ref}"
        remedy = f"{where}, or {TRIGGER_TOKEN} holds no trigger token of it"
    elif error.status == INVALID_INPUT:
        began, remedy = "no pipeline runs", "the service may have left a failed pipeline there"
    return f"{began} in {pipeline.project}: {advised(str(error), remedy)}"
