"""The parts that a command adds by itself in a job of GitLab CI, so that each job is one line of script.

- `validate`, `plan`, `drift`, `apply` and `merge` write their reports below `.reconciler`, where the job's artifacts
  are; but formats that the command line asks for go to the file that it names.
- In a job with `parallel`, they handle their part of the targets, and write that part alone, for a job that merges all.
- In the pipeline of a merge request, `plan` is about the differences of the merge request; elsewhere, about the
  differences since the last apply.
- In the pipeline of a merge request, a whole plan is posted as a note, and so is the failure to make a plan. - On the
default branch, a whole plan comes with the pipeline that applies the plan. - `drift` has the last report of the job as
its baseline, and keeps an issue if `reconciler.yaml` says so. - The history of a fleet page is kept in a git ref of the
project.

Only the note, the issue and the ref are written on the service, and never with the token for the managed settings.
Begin with `prepared`.
"""

import json
import logging
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reconciler.cli.exit_codes import ExitCode
from reconciler.cli.options import ConnectionOptions, Job, OutputOptions, SelectionOptions
from reconciler.cli.outputs import FLEET, history_of
from reconciler.cli.settings import configured, may_be_plain, read_file, trusted
from reconciler.errors import ConfigurationError, InventoryUnreadable, ReconcilerError
from reconciler.system.checkout import tracked
from reconciler.system.files import naming, save

if TYPE_CHECKING:
    from reconciler.document.document import RunDocument

LOG = logging.getLogger("reconciler")

FOLDER = Path(".reconciler")

PLAN, DRIFT, REPORT, VALIDATION = "plan", "drift", "report", "validation"

MERGE, SHOW = "merge", "show"
"""What takes the reports of other jobs."""

FILES: Mapping[str, Mapping[str, str]] = {
    VALIDATION: {"codequality": "codequality.json"},
    PLAN: {"json": "plan.json", "html": "plan.html", "terraform-report": "tfplan.json"},
    DRIFT: {"json": "drift.json", "html": "drift.html", "prometheus": "reconciler.prom", "junit": "junit.xml"},
    REPORT: {"json": "report.json", "html": "report.html", "junit": "junit.xml"},
}
"""The files below `FOLDER` by the subject and the format of a report."""

EMPTY_REPORTS: Mapping[str, str] = {"codequality": "[]\n", "junit": "<testsuites/>\n"}
"""Reports until there are better ones: without any, the log of a job that fails would end with errors about them."""

LAST_DRIFT = FOLDER / FILES[DRIFT]["json"]
"""The baseline that stands for the last report of the job: its cache has that where the next one is written."""

BASELINE = FOLDER / "baseline.json"
"""Where the last report makes room for the next one."""

PIPELINE = FOLDER / "apply.yml"

PLAN_MADE = {ExitCode.IN_ORDER, ExitCode.CHANGES_PENDING, ExitCode.IN_PART}
"""The exit codes of commands that have made a plan."""


def in_job() -> bool:
    """Whether this is a job of GitLab CI."""
    return bool(os.environ.get("CI") and os.environ.get("GITLAB_CI"))


def part() -> str | None:
    """Return the part of the targets that a job with `parallel` handles, such as `2/5`; None in another job."""
    number, total = os.environ.get("CI_NODE_INDEX"), os.environ.get("CI_NODE_TOTAL")
    return f"{number}/{total}" if in_job() and number and total else None


def prepared(
    command: str,
    output: OutputOptions,
    selection: SelectionOptions,
    connection: ConnectionOptions,
    own: dict[str, Any],
) -> tuple[OutputOptions, SelectionOptions, Job | None]:
    """Return the options of a command as the job changes them: with its reports, its part, and its baseline.

    Args:
        command: the subject of its reports, a key of `FILES`; or `merge`, whose files decide the subject.
        output: the options.
        selection: likewise.
        connection: likewise.
        own: the other options by name; a baseline that makes room for the next report is replaced.
    """
    if not in_job():
        return output, selection, None
    if command == SHOW:
        return output, selection, Job(partial(keeping_history, output, connection), _publish_nothing)
    reads = [value for value in (*own.values(), *own.get("files", ())) if isinstance(value, Path)]
    reads += [Path(selection.retry_failed)] if selection.retry_failed else []
    subject = _merged(own["files"]) if command == MERGE else command
    if command == PLAN:
        selection = _since(selection)
    if command in (PLAN, DRIFT):
        selection = replace(selection, shard=selection.shard or part())
    is_baseline = command == DRIFT and own["baseline"] == LAST_DRIFT
    last = FOLDER / _files(DRIFT)["json"]
    output = _reporting(
        output, subject, [*(read for read in reads if not is_baseline), *([last] if is_baseline else [])]
    )
    if is_baseline:
        own["baseline"] = BASELINE
        with naming(last):
            if last.exists():
                last.replace(BASELINE)
    publish: Callable[[RunDocument], None] = _publish_nothing
    if subject == PLAN:
        publish = partial(_publish_plan, output, connection, len(own.get("files", ())) or 1)
    elif subject == DRIFT:
        publish = partial(keep_issue, connection)
    last_drift = BASELINE if is_baseline else None
    return output, selection, Job(partial(keeping_history, output, connection), publish, part(), last_drift)


def _merged(files: Sequence[Path]) -> str:
    """Return the subject of the files that are merged."""
    if any(map(is_report_file, files)):
        return REPORT
    return DRIFT if all(file.name.startswith(DRIFT) for file in files) else PLAN


def _since(selection: SelectionOptions) -> SelectionOptions:
    """Return the options of `plan` with the subject of its pipeline."""
    if selection.since is not None:
        return selection
    target = os.environ.get("CI_MERGE_REQUEST_TARGET_BRANCH_SHA")  # only in pipelines of merged results
    base = target or os.environ.get("CI_MERGE_REQUEST_DIFF_BASE_SHA") or "applied"
    since = os.environ.get("RECONCILER_SINCE") or base
    is_none = not since.strip("0")  # such as CI_COMMIT_BEFORE_SHA of a pipeline that somebody started
    return replace(selection, since=None if is_none else since, everything=selection.everything and not is_none)


def _reporting(output: OutputOptions, subject: str, reads: Collection[Path] = ()) -> OutputOptions:
    """Return the options of a command with the reports of the job; older files of these reports are removed.

    Nothing that is committed stays in their folder: it would be in the artifacts of this job, as if the job had made
    it.

    Args:
        output: the options.
        subject: the subject of the reports, a key of `FILES`.
        reads: files that the command reads.
    """
    _unlink_below(FOLDER)
    _remove_committed()
    for own in {FOLDER / file for file in _files(subject).values()} - {*reads}:
        with naming(own):
            own.unlink(missing_ok=True)
    taken = {format_ for format_, _ in output.reports}
    files = [(format_, FOLDER / file) for format_, file in _files(subject).items() if format_ not in taken]
    for format_, file in files:
        if format_ in EMPTY_REPORTS:
            save(file, EMPTY_REPORTS[format_])
    return replace(output, reports=(*output.reports, *((format_, str(file)) for format_, file in files)))


def is_report_file(file: Path) -> bool:
    """Return whether a file says that it is the report of an apply; not if it cannot be read."""
    from reconciler.document.stored import is_report

    with suppress(ReconcilerError):
        return is_report(read_file(file))
    return False


def _publish_nothing(_document: "RunDocument") -> None:
    pass


def _publish_plan(output: OutputOptions, connection: ConnectionOptions, part_count: int, saved: "RunDocument") -> None:
    """Write the pipeline that applies a plan, and post a whole plan on the merge request of this pipeline."""
    from reconciler.cli.results import plain_style
    from reconciler.reports import render_plan

    write_pipeline(saved, part_count)
    if _merge_request():
        _post_note(connection, render_plan(saved, "markdown", plain_style(output)))


def post_failure(code: int) -> None:
    """Post that a command has made no plan, if that is so: a note must not show the plan of an older commit."""
    if code in PLAN_MADE or not _merge_request():
        return
    commit, page = os.environ.get("CI_COMMIT_SHORT_SHA", ""), os.environ.get("CI_JOB_URL", "")
    _post_note(ConnectionOptions(), f"**No plan of {commit}.** [The job]({page}) failed; its log says why.")


def keep_issue(connection: ConnectionOptions, saved: "RunDocument") -> None:
    """Keep the issue about drift in the job's project, if `reconciler.yaml` has `issue`: one for all shards."""
    from reconciler.cli.kept import ISSUE, job_client, keeping, kept_issue

    if not saved.is_part and "issue" in configured():
        with keeping(ISSUE), job_client(connection, ISSUE) as client:
            LOG.info("%s", kept_issue(client, os.environ.get("CI_PROJECT_ID", ""), DRIFT, saved))


def write_pipeline(saved: "RunDocument", part_count: int = 1) -> None:
    """Write the pipeline that applies a whole plan of the default branch, if the job names the image for it.

    Args:
        saved: the plan.
        part_count: how many jobs apply it, side by side.
    """
    image, branch = os.environ.get("RECONCILER_IMAGE"), os.environ.get("CI_COMMIT_BRANCH")
    # the plan of a part is merged by a later job, which writes the pipeline
    if image and part() is None and branch and branch == os.environ.get("CI_DEFAULT_BRANCH"):
        save(PIPELINE, json.dumps(apply_pipeline(image, part_count, is_empty=not any(saved.changes)), indent=2) + "\n")


def apply_pipeline(image: str, part_count: int, *, is_empty: bool) -> Mapping[str, Any]:
    """Return the pipeline that applies a plan. The next push does not cancel it while it waits for a person.

    A plan that does nothing has nothing for a person to start, and deploys to no environment: its pipeline only keeps
    the inventory, which everybody who may merge can do.
    """
    environment = os.environ.get("RECONCILER_ENVIRONMENT") or "reconciler"
    at_once = is_empty or os.environ.get("RECONCILER_APPLY") == "auto"
    start = {"when": "on_success" if at_once else "manual", "allow_failure": False}
    deploys = {} if is_empty else {"environment": {"name": environment}}
    review = {"pipeline": "$PARENT_PIPELINE_ID", "job": "reconciler-review"}
    # Runners before 18.11.4 and 19.0.2 end a job with 1 where its command fails; only `exit` keeps the command's code.
    apply = {
        "script": ["reconciler apply --plan .reconciler/plan.json --yes --allow-problems || exit $?"],
        "artifacts": _artifacts(),
    }
    whole = {
        "workflow": {"auto_cancel": {"on_new_commit": "none"}},
        "default": {"image": {"name": image, "entrypoint": [""]}, **_tags()},
        "variables": {"GIT_DEPTH": "0"},
    }
    if part_count == 1:
        alone = {"stage": "deploy", "needs": [review], **start, **deploys, "resource_group": environment, **apply}
        return whole | {"reconciler-apply": alone | {"artifacts": _artifacts("junit.xml")}}
    return whole | {
        "reconciler-approve": {
            "stage": "build",
            "needs": [review],
            **start,
            **deploys,
            "script": ["reconciler show .reconciler/plan.json --allow-problems || exit $?"],
        },
        "reconciler-apply": {
            "stage": "test",
            "parallel": part_count,
            "needs": [review, {"job": "reconciler-approve", "artifacts": False}],
            # Whoever starts reconciler-approve deploys; these take the variables of the environment.
            **({} if is_empty else {"environment": {"name": environment, "action": "access"}}),
            # Parts run side by side; the same part of two pipelines does not.
            "resource_group": f"{environment}-$CI_NODE_INDEX",
            **apply,
        },
        "reconciler-report": {
            "stage": "deploy",
            "needs": ["reconciler-apply"],
            "when": "always",
            "script": ["reconciler merge .reconciler/report-*.json --allow-problems || exit $?"],
            "artifacts": _artifacts("junit.xml"),
        },
    }


@contextmanager
def keeping_history(output: OutputOptions, connection: ConnectionOptions) -> Iterator[None]:
    """Fetch the histories of the fleet pages that this block writes, and push them when the block ends.

    A history that exists before the fetch is kept by somebody else.

    Raises:
        ConfigurationError: the histories cannot be fetched; with new histories the old ones would be lost.
    """
    from reconciler.memory import remotes

    files = [history_of(Path(file)) for format_, file in output.reports if format_ == FLEET]
    for file in files:
        _unlink_below(file.parent)
    files = [file for file in files if not file.exists()]
    if not (files and in_job() and remotes.in_job(os.environ)):
        yield
        return
    from reconciler.memory.exchange import exchange
    from reconciler.reports.histories import REF, Histories

    try:
        remote = remotes.job_remote(
            os.environ,
            api_url="",
            api_token="",
            ca_file=trusted(connection)[0] or "",
            may_be_plain=may_be_plain(connection),
        )
    except ConfigurationError as error:
        LOG.warning("no history is kept: %s", error)
        yield
        return
    with exchange(remote) as repository:
        histories = Histories(repository)
        try:
            texts = histories.fetch()
        except InventoryUnreadable as error:
            raise ConfigurationError(f"the history at {REF} cannot be fetched: {error.reason}") from error
        for file in files:
            if file.name in texts:
                save(file, texts[file.name])
            else:
                LOG.info("There is no history at %s, so this page begins one.", REF)
        yield
        failure = histories.push({file.name: file.read_text(encoding="utf-8") for file in files})
        if failure:
            LOG.error("the history could not be kept, so the next page does not know this run: %s", failure)


def _files(subject: str) -> Mapping[str, str]:
    """Return the files of this job by their formats: in a job with `parallel`, the files of its part alone."""
    if part() is None or "json" not in FILES[subject]:
        return FILES[subject]
    return {"json": f"{subject}-{os.environ['CI_NODE_INDEX']}.json"}


def _unlink_below(folder: Path) -> None:
    """Make a folder without links: a committed link would redirect the files that are written and kept.

    Raises:
        OutputFailed: the folder cannot be made.
    """
    if not in_job() or folder.is_absolute() or ".." in folder.parts:
        return
    for path in (*reversed(folder.parents), folder):
        with naming(path):
            if path.is_symlink():
                path.unlink()
            path.mkdir(exist_ok=True)
    with naming(folder):
        for path in folder.iterdir() if folder != Path() else ():
            if path.is_symlink():
                path.unlink()


def _remove_committed() -> None:
    """Remove the files that git tracks below the folder: whoever may push a branch can write them."""
    try:
        committed = tracked(sorted(FOLDER.rglob("*")))
    except ConfigurationError as error:
        LOG.debug("%s", error)  # without git there is no inventory either, and `merge` refuses
        return
    for path in committed:
        if path.is_symlink() or not path.is_dir():
            LOG.warning("%s is committed, and a job takes nothing from there: git rm --cached %s", path, path)
            with naming(path):
                path.unlink()


def _merge_request() -> bool:
    """Whether a whole plan of this job is for a merge request."""
    return in_job() and part() is None and bool(os.environ.get("CI_MERGE_REQUEST_IID"))


def _post_note(connection: ConnectionOptions, text: str) -> None:
    """Post or update the note of this job; a failure goes to the log, and not into the exit code."""
    from reconciler.cli.kept import NOTE, job_client, keeping, merge_request
    from reconciler.reports.note import post_note as post

    with keeping(NOTE):
        project = os.environ.get("CI_MERGE_REQUEST_PROJECT_ID")
        place = merge_request(project, int(os.environ["CI_MERGE_REQUEST_IID"]))
        name = os.environ.get("CI_JOB_NAME", "reconciler")
        with job_client(connection, NOTE) as client:
            LOG.info("Note %s %s: %s", name, post(client, place, name, text), place)


def _artifacts(junit: str = "") -> Mapping[str, Any]:
    """Return the artifacts of a job that applies."""
    # A report holds former values, which not everybody who sees the job may see.
    kept = {"when": "always", "access": "developer", "expire_in": "1 week", "paths": [f"{FOLDER}/report*"]}
    if not junit:
        return kept
    return kept | {"paths": [f"{FOLDER}/report*", f"{FOLDER}/{junit}"], "reports": {"junit": f"{FOLDER}/{junit}"}}


def _tags() -> Mapping[str, list[str]]:
    """Return the tags of this runner, which some versions write as a JSON array, and others separated by commas."""
    names = [name.strip(' "') for name in os.environ.get("CI_RUNNER_TAGS", "").strip("[]").split(",")]
    return {"tags": names} if all(names) else {}
