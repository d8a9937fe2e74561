"""The pipelines of a project: its variables, branch, environment, components and images. See `check_pipeline`."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from urllib.parse import quote

from reconciler.document.diagnosis import DoctorFinding, Verdict
from reconciler.errors import NotFound, ServiceError
from reconciler.model.protocols import Json, Reader

COMPONENT = re.compile(r"component: *[\"']?[^\s/]+/(?P<project>[\w./-]+)/[\w-]+@(?P<version>[^\s\"']+)")
IMAGE = re.compile(r"image: *[\"']?\$CI_REGISTRY/(?P<project>[\w./-]+):(?P<version>[^\s\"']+)")

WHERE = "Settings > CI/CD > Variables"

PUSH_TOKEN = "RECONCILER_PUSH_TOKEN"  # noqa: S105 - the name of a variable


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable that the jobs need.

    Attributes:
        name: its name.
        protected: whether only jobs of protected branches may have it.
        without: the consequence of its absence; empty if that is an error.
    """

    name: str
    protected: bool
    without: str = ""


VARIABLES = (
    Variable("RECONCILER_TOKEN", protected=True),
    Variable("RECONCILER_READ_TOKEN", protected=False, without="merge requests are not planned"),
    Variable("RECONCILER_NOTE_TOKEN", protected=False, without="no note is posted, and no issue kept"),
)


@dataclass(frozen=True, slots=True)
class PipelineProject:
    """The project of the pipelines.

    Attributes:
        path: its full path.
        configuration: the text of its `.gitlab-ci.yml`; empty if there is none.
        branch: the branch of the inventory; empty if there is no inventory.
        environment: the environment of the deploying jobs.
        known: the names of environment variables of this process: in a job, they include the variables of the job.
    """

    path: str
    configuration: str
    branch: str
    environment: str
    known: Collection[str] = ()


def check_pipeline(reader: Reader, pipeline_project: PipelineProject) -> tuple[DoctorFinding, ...]:
    """Check the needs of the pipelines of a project, by one request each."""
    return tuple(_findings(reader, pipeline_project))


def check_inventory(reader: Reader, project: str, branch: str) -> Iterator[DoctorFinding]:
    """Yield a warning if everybody who may push can change the inventory.

    No warning if the branch does not exist yet, or the token does not see the project.
    """
    shown = _ask(reader.get, f"projects/{quote(project, safe='')}/repository/branches/{quote(branch, safe='')}")
    if isinstance(shown, dict) and shown.get("protected") is False:
        reason = (
            f"the branch {branch} of {project} is not protected: who may push can hide changes from --since applied"
        )
        remedy = "protect it under Settings > Repository > Protected branches, with nobody allowed to force-push"
        yield DoctorFinding(Verdict.WARNING, "inventory", reason, remedy)


def _findings(reader: Reader, pipeline_project: PipelineProject) -> Iterator[DoctorFinding]:
    path = f"projects/{quote(pipeline_project.path, safe='')}"
    record = _ask(reader.get, path)
    if isinstance(record, ServiceError):
        yield DoctorFinding(
            Verdict.ERROR, "project", f"{pipeline_project.path}: {record}", "name a project that the token can see"
        )
        return
    listed = _ask(reader.pages, f"{path}/variables")
    variables = {variable.get("key"): variable for variable in listed} if isinstance(listed, list) else None
    if variables is None:
        yield DoctorFinding(Verdict.UNKNOWN, "variables", f"not shown: {listed}", "a Maintainer's token can see them")
    for variable in VARIABLES:
        yield _variable(variable, variables, pipeline_project.known)
    if pipeline_project.branch:
        names = {*pipeline_project.known, *(variables or ())}
        yield _push(names, record, all_known=variables is not None)
        yield _branch(reader, path, pipeline_project.branch)
    yield _pipeline_variables(record.get("ci_pipeline_variables_minimum_override_role"))
    environment = _ask(reader.get, f"{path}/protected_environments/{quote(pipeline_project.environment, safe='')}")
    yield _environment(environment, pipeline_project.environment)
    yield from _components_and_images(reader, pipeline_project.configuration)


def _variable(variable: Variable, variables: dict[str, Json] | None, known: Iterable[str]) -> DoctorFinding:
    """Return a finding about a variable: whether it is set, for the right jobs only."""
    record = (variables or {}).get(variable.name)
    if record is not None:
        return _protection(variable, record)
    if variable.name in known:
        return DoctorFinding(Verdict.OK, variable.name, "set")
    if variables is None:
        return DoctorFinding(Verdict.UNKNOWN, variable.name, "not set here; jobs of other branches may have it")
    verdict = Verdict.WARNING if variable.without else Verdict.ERROR
    reason = f"not set in the project{f': {variable.without}' if variable.without else ''}"
    return DoctorFinding(verdict, variable.name, reason, f"add it under {WHERE}, or in a group above")


def _protection(variable: Variable, variable_record: Json) -> DoctorFinding:
    """Return a finding about a variable of the project: whether the right jobs get it, masked."""
    if bool(variable_record.get("protected")) != variable.protected:
        reason, remedy = "protected: merge requests do not get it", "take the protection off"
        if variable.protected:
            reason, remedy = "not protected: everybody who can push a branch can read it", "protect it"
        return DoctorFinding(Verdict.WARNING, variable.name, reason, remedy)
    if not variable_record.get("masked"):
        return DoctorFinding(Verdict.WARNING, variable.name, "not masked: a log could show it", "mask it")
    return DoctorFinding(
        Verdict.OK, variable.name, f"set, {'protected' if variable.protected else 'not protected'}, masked"
    )


def _push(variable_names: Collection[str], project_record: Json, *, all_known: bool) -> DoctorFinding:
    """Return a finding on the token that pushes the inventory."""
    if PUSH_TOKEN in variable_names:
        return DoctorFinding(Verdict.OK, "push", f"with {PUSH_TOKEN}")
    allowed = project_record.get("ci_push_repository_for_job_token_allowed")
    if allowed:
        return DoctorFinding(Verdict.OK, "push", "with the job token")
    remedy = f"set {PUSH_TOKEN}, or allow the job token to push under Settings > CI/CD > Job token permissions"
    reason = "only if RECONCILER_TOKEN may write to this repository: no other token may push the inventory"
    return DoctorFinding(Verdict.WARNING if all_known and allowed is False else Verdict.UNKNOWN, "push", reason, remedy)


def _pipeline_variables(minimum_role: Json) -> DoctorFinding:
    """Return a finding on the role that may set variables of pipelines, and so see the tokens."""
    if minimum_role == "developer":
        reason = "every Developer may set any, such as RECONCILER_API_URL, which decides who gets the token"
        remedy = f"allow only Maintainers, as the minimum role for pipeline variables, under {WHERE}"
        return DoctorFinding(Verdict.WARNING, "pipeline variables", reason, remedy)
    if not isinstance(minimum_role, str):
        return DoctorFinding(
            Verdict.UNKNOWN, "pipeline variables", "who may set them is not shown", "a Maintainer sees it"
        )
    who = "nobody" if minimum_role == "no_one_allowed" else f"only the role {minimum_role} and above"
    return DoctorFinding(Verdict.OK, "pipeline variables", f"{who} may set them")


def _branch(reader: Reader, path: str, branch: str) -> DoctorFinding:
    """Return a finding on the protection of the branch, by a wildcard or by a rule of a group too."""
    # the record of the branch counts rules of groups too; before the first apply there is no branch, only the rules
    shown = _ask(reader.get, f"{path}/repository/branches/{quote(branch, safe='')}")
    listed = _ask(reader.pages, f"{path}/protected_branches")
    rules = [rule for rule in listed if _covers(rule, branch)] if isinstance(listed, list) else []
    if isinstance(shown, NotFound):
        shown = listed if isinstance(listed, ServiceError) else {"protected": bool(rules)}
    if isinstance(shown, ServiceError):
        return DoctorFinding(Verdict.UNKNOWN, "branch", f"{branch}: {shown}")
    if shown.get("protected") is False:
        remedy = "protect it under Settings > Repository > Protected branches: see templates/README.md"
        reason = f"{branch} is not protected: everybody who may push can hide changes from plan"
        return DoctorFinding(Verdict.WARNING, "branch", reason, remedy)
    if any(rule.get("allow_force_push") for rule in rules):
        return DoctorFinding(Verdict.WARNING, "branch", f"{branch} may be force-pushed", "forbid that")
    return DoctorFinding(Verdict.OK, "branch", f"{branch} is protected")


def _covers(rule: Json, branch: str) -> bool:
    """Return whether a rule is about a branch; `*` in its name matches any text."""
    name = str(rule.get("name"))
    return re.fullmatch(".*".join(map(re.escape, name.split("*"))), branch) is not None


def _environment(response_or_error: Json | ServiceError, environment: str) -> DoctorFinding:
    match response_or_error:
        case NotFound():
            reason = f"{environment} is not protected: everybody who may merge may start apply"
            return DoctorFinding(
                Verdict.WARNING, "environment", reason, "protect it, where the edition has that (Premium)"
            )
        case ServiceError():
            return DoctorFinding(Verdict.UNKNOWN, "environment", f"{environment}: {response_or_error}")
    return DoctorFinding(Verdict.OK, "environment", f"{environment} is protected")


def _components_and_images(reader: Reader, configuration: str) -> Iterator[DoctorFinding]:
    """Yield a finding for each component and each image that a configuration names: whether its version exists."""
    components = dict.fromkeys(COMPONENT.findall(configuration))
    if not components:
        reason = "no .gitlab-ci.yml here names a component of this service"
        yield DoctorFinding(Verdict.UNKNOWN, "component", reason, "reconciler init writes one")
    for project, version in components:
        tag = _ask(reader.get, f"projects/{quote(project, safe='')}/repository/tags/{quote(version, safe='')}")
        yield _published("component", f"tag {version}", project, tag, is_there=True)
    for project, version in dict.fromkeys(IMAGE.findall(configuration)):
        listed = _ask(reader.pages, f"projects/{quote(project, safe='')}/registry/repositories?tags=true")
        images = listed if isinstance(listed, list) else []
        tags = {tag.get("name") for image in images for tag in image.get("tags", ())}
        yield _published("image", f"image {version}", project, listed, is_there=version in tags)


def _published(check_name: str, name: str, project: str, version_response: object, *, is_there: bool) -> DoctorFinding:
    """Return a finding on a version, by the service's response."""
    if isinstance(version_response, ServiceError) and not isinstance(version_response, NotFound):
        return DoctorFinding(Verdict.UNKNOWN, check_name, f"{project}: {version_response}")
    if isinstance(version_response, NotFound) or not is_there:
        remedy = "push its tag there, so that the pipeline of that project publishes it"
        return DoctorFinding(Verdict.ERROR, check_name, f"{project} has no {name}, or the token cannot see it", remedy)
    return DoctorFinding(Verdict.OK, check_name, f"{project} has the {name}")


def _ask(ask: Callable[[str], Json], path: str) -> Json | ServiceError:
    try:
        return ask(path)
    except ServiceError as error:
        return error
