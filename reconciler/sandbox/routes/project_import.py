"""Imports of projects from GitHub and Bitbucket Server (spec section 4.1), and their progress.

The section `imports` of the instance has the repositories of the other hosts, and the course of an import. No clock
drives an import: it goes on each time a client looks at it. At its end, the project has the content of the repository.
Only the limit of imports a minute goes by the clock, that of the service.

Differences: production has no source enabled until an administrator enables it; its import from Bitbucket Server makes
missing groups, and takes the project to the caller's own namespace if it cannot.
"""

from collections.abc import Callable
from contextlib import suppress
from ipaddress import ip_address
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, field_serializer, model_validator

from ..answers import Answer, Refusal, refused
from ..call import Call, Insertion, Route
from ..parameters import integer, mapping, read, text
from ..records import Record
from ..state import MAINTAINER, Group, Project, SandboxState, StateSection, User
from .instance import namespace_path, show_basic_project
from .milestones import MILESTONES, MilestoneRecord
from .places import add_missing_groups, may_create, wrong_project

_Source = Literal["github", "bitbucket_server"]
_Status = Literal["scheduled", "started", "finished", "failed", "canceled"]
FINAL = ("finished", "failed", "canceled")
_TOO_MANY = "This endpoint has been requested too many times. Try again later."
_NO_NAMESPACE = "Namespace or group to import repository into does not exist."
_NO_ACCESS = (
    "Your GitHub personal access token does not have read access to the repository. Please use a classic GitHub "
    "personal access token with the `repo` scope. Fine-grained tokens are not supported."
)
_ASK = "Ask a maintainer to check the import status for more details."
_STRATEGY = text("timeout_strategy", values=("optimistic", "pessimistic"))
_GITHUB = (
    text("personal_access_token", required=True),
    integer("repo_id", required=True),
    text("target_namespace", required=True, blank=False),
    text("new_name"),
    text("github_hostname"),
    mapping("optional_stages"),
    _STRATEGY,
    integer("pagination_limit", values=tuple(range(1, 101))),
)
_BITBUCKET = (
    *(text(f"bitbucket_server_{name}", required=True) for name in ("url", "username")),
    text("personal_access_token", required=True),
    *(text(f"bitbucket_server_{name}", required=True) for name in ("project", "repo")),
    *(text(name) for name in ("new_name", "target_namespace", "new_namespace")),
    _STRATEGY,
)


class Holding(Record):
    """The content of a repository, in the form of a project of a state."""

    milestones: list[MilestoneRecord] = Field(default_factory=list)

    @field_serializer("milestones")
    def _unnumbered(self, items: list[MilestoneRecord]) -> list[dict[str, Any]]:
        return [item.model_dump(exclude={"id", "iid"}) for item in items]


class FailedRelation(Record):
    """An error of an import that goes on without the object: with the name of its relation, or of the failed step."""

    relation_name: str | None = None
    source: str | None = None
    exception_class: str = "ActiveRecord::RecordInvalid"
    exception_message: str = "Validation failed"


class Course(Record):
    """How an import goes.

    Attributes:
        looks: how many looks there are before the import ends.
        fails: its error, if it fails; empty for an error that the service does not give.
        endless: whether it never ends.
        holds: the content of the project once the import has finished.
        left_out: how many objects of a sort, such as `issue`, GitHub has and the project does not get.
        failed_relations: its errors, once it has ended.
    """

    looks: Annotated[int, Field(ge=0)] = 0
    fails: str | None = None
    endless: bool = False
    holds: Holding = Field(default_factory=Holding)
    left_out: dict[str, Annotated[int, Field(ge=1)]] = Field(default_factory=dict)
    failed_relations: list[FailedRelation] = Field(default_factory=list)


class RemoteRepository(Course):
    """A repository on another host: by its ID at GitHub, or as `PROJECT/repository` on a Bitbucket Server."""

    github: int | None = None
    bitbucket_server: str | None = None
    name: str = ""
    private: bool = True

    @model_validator(mode="after")
    def _of_one_host(self) -> Self:
        if (self.github is None) == (self.bitbucket_server is None):
            raise ValueError("must have either github or bitbucket_server")
        key = self.bitbucket_server or f"octo/repository-{self.github}"
        self.name = self.name or key
        return self

    @property
    def host(self) -> _Source:
        """The host of the repository."""
        return "github" if self.bitbucket_server is None else "bitbucket_server"

    @property
    def slug(self) -> str:
        """The last part of its name."""
        return self.name.rpartition("/")[2]


class ImportRecords(Record):
    """The content of the other hosts, and the course of imports.

    Attributes:
        tokens: the tokens that the other hosts accept; null for any token.
        repositories: the repositories of the other hosts; null for any repository, whose import is empty then.
        per_minute: how many imports from GitHub a user may ask for; 0 for any number.
    """

    tokens: list[str] | None = None
    repositories: list[RemoteRepository] | None = None
    per_minute: Annotated[int, Field(ge=0)] = 6

    def find(self, source: _Source, key: int | str) -> RemoteRepository | None:
        """Return the repository of that ID or path."""
        if self.repositories is None:
            return RemoteRepository.model_validate({source: key})
        return next((repository for repository in self.repositories if getattr(repository, source) == key), None)

    def accepts(self, token: str) -> bool:
        """Whether the other hosts accept that token."""
        return self.tokens is None or token in self.tokens


class ProjectImport(Course):
    """The import that made this project; it has ended, unless a state says otherwise."""

    type: _Source
    source: str
    status: _Status = "finished"


IMPORTS = StateSection("imports", ("instance",), ImportRecords, ImportRecords())
SOURCES: StateSection[list[str] | None] = StateSection("import_sources", ("instance",), list[str] | None, None)
IMPORTED: StateSection[ProjectImport | None] = StateSection("imported", ("project",), ProjectImport | None, None)


def enabled_sources(state: SandboxState) -> list[str]:
    """Return the enabled import sources: by default all in the spec, and none in production."""
    given = SOURCES.of(state.instance)
    return ([] if state.deployed else ["github", "bitbucket_server"]) if given is None else given


def import_github(call: Call) -> Insertion:
    """`POST /import/github`: refusals are under `errors`; the source is checked last but one."""
    sent = read(call, *_GITHUB)
    user, state = call.caller(), call.state
    settings = IMPORTS.of(state.instance)
    if not state.within_limit("imports", user, settings.per_minute):
        raise _errors(429, _TOO_MANY)
    host = sent.get("github_hostname")
    if host and _is_local(host):
        raise _errors(400, f"Invalid URL: {host}")
    namespace = state.namespace_at(_plain(state, sent["target_namespace"]))
    if namespace is None:
        raise _errors(422, _NO_NAMESPACE)
    if not _may_import(state, user, namespace):
        raise _errors(422, "You are not allowed to import projects in this namespace.")
    if not settings.accepts(sent["personal_access_token"]):
        raise _errors(422, _NO_ACCESS)
    repository = settings.find("github", sent["repo_id"])
    if repository is None:
        raise _errors(422, 'Import failed because of a GitHub error: {"message": "Not Found"} (HTTP 404)')
    return _insertion(call, repository, namespace, sent.get("new_name") or repository.slug, _errors)


def import_bitbucket_server(call: Call) -> Insertion:
    """`POST /import/bitbucket_server`: refusals are under `error` in the message."""
    sent = read(call, *_BITBUCKET)
    user, state = call.caller(), call.state
    settings = IMPORTS.of(state.instance)
    if _is_local(sent["bitbucket_server_url"]):
        raise _message(400, f"Invalid URL: {sent['bitbucket_server_url']}")
    namespace = _bitbucket_namespace(call, user, sent)
    if not _may_import(state, user, namespace):
        raise _message(401, "You don't have permissions to import this project")
    key = f"{sent['bitbucket_server_project']}/{sent['bitbucket_server_repo']}"
    failed = "Import failed due to a BitBucket Server error: Error"
    if not settings.accepts(sent["personal_access_token"]):
        raise _message(400, f"{failed} 401: Authentication failed. Please check your credentials and try again.")
    repository = settings.find("bitbucket_server", key)
    if repository is None:
        raise _message(400, f"{failed} 404: Repository {key} does not exist.")
    return _insertion(call, repository, namespace, sent.get("new_name") or repository.slug, _message)


def get_import(call: Call) -> Answer:
    """`GET /projects/:id/import`: the progress; each look takes the import further."""
    project = call.visible_project()
    progress = IMPORTED.of(project)
    if progress and progress.status not in FINAL and not (progress.looks or progress.endless):
        _end(call, project, progress)
    answer = Answer(200, _show_progress(call, project, progress))
    if progress and progress.status not in FINAL:
        progress.looks, progress.status = max(progress.looks - 1, 0), "started"
    return answer


def _end(call: Call, project: Project, progress: ProjectImport) -> None:
    progress.status = "finished" if progress.fails is None else "failed"
    for milestone in progress.holds.milestones if progress.fails is None else ():
        MILESTONES.add(call, project, milestone.model_copy())
    call.changed = False  # by the import, not by the request


def _insertion(
    call: Call, repository: RemoteRepository, namespace: Group | User, name: str, refuse: Callable[[int, Any], Refusal]
) -> Insertion:
    """Refuse a source that is not enabled; return the function that makes the project, if its name is free."""
    state = call.state
    if repository.host not in enabled_sources(state):
        raise refuse(403, [f"{repository.host} import source is disabled"])
    path = f"{namespace_path(namespace)}/{name}"

    def insert() -> Answer:
        wrong = wrong_project(state, path, name)
        if wrong:
            raise refuse(
                422, ", ".join(f"{_human(key)} {reason}" for key, reasons in wrong.items() for reason in reasons)
            )
        project = state.add_project({"path": path, "name": name})
        if isinstance(namespace, Group) and not repository.private:
            project.visibility = namespace.visibility
        course = {field: getattr(repository, field) for field in Course.model_fields}
        progress = ProjectImport(type=repository.host, source=repository.name, status="scheduled", **course)
        IMPORTED.put(project, progress)
        call.changed = True
        return Answer(201, show_import(call, project, progress))

    return insert


def _is_local(url: str) -> bool:
    """Whether production servers send no request to a URL: it is no web address, or an address within their network."""
    with suppress(ValueError):
        parts = urlsplit(url)
        if parts.scheme in ("http", "https") and parts.hostname not in (None, "localhost"):
            with suppress(ValueError):
                return not ip_address(str(parts.hostname)).is_global
            return False
    return True


def _plain(state: SandboxState, path: str) -> str:
    """Return a path in the form of a group's path: by the spec, `/acme/team` is a path too."""
    return path if state.deployed else path.strip("/")


def _bitbucket_namespace(call: Call, user: User, sent: dict[str, Any]) -> Group | User:
    """Return the requested namespace; in production make its groups, or take the caller's own namespace."""
    state = call.state
    path = sent.get("target_namespace") or (state.deployed and sent.get("new_namespace")) or user.username
    namespace = state.namespace_at(_plain(state, path))
    if namespace is None and not state.deployed:
        raise _message(422, _NO_NAMESPACE)
    return namespace or add_missing_groups(call, path) or user


def _may_import(state: SandboxState, user: User, namespace: Group | User) -> bool:
    """Whether the user may import there: a bot has no projects of its own, and an archived group takes no projects."""
    if isinstance(namespace, User):
        return may_create(state, user, namespace, MAINTAINER) and not namespace.bot
    return may_create(state, user, namespace, MAINTAINER) and not state.is_archived(namespace)


def show_import(call: Call, project: Project, progress: ProjectImport) -> dict[str, Any]:
    """Return the imported project (spec section 2); paths in it are those of addresses."""
    basic = show_basic_project(call, project)
    absolute = progress.source.startswith(("http://", "https://"))
    return {
        "id": project.id,
        "name": project.name,
        "full_path": f"/{project.path}",
        "full_name": basic["name_with_namespace"],
        "refs_url": f"/{project.path}/refs",
        **({"forked": False} if call.state.deployed else {}),
        "import_source": progress.source,
        "import_status": progress.status,
        "human_import_status_name": progress.status,
        "provider_link": progress.source if absolute else f"/{progress.source}",
        "relation_type": None,
        **({} if call.state.deployed else {"import_warning": None}),
    }


def _show_progress(call: Call, project: Project, progress: ProjectImport | None) -> dict[str, Any]:
    basic = show_basic_project(call, project)
    names = ("id", "description", "name", "name_with_namespace", "path", "path_with_namespace", "created_at")
    record = {
        **{name: basic[name] for name in names},
        "import_status": progress.status if progress else "none",
        "import_type": progress.type if progress else None,
        "correlation_id": f"{project.id:032x}" if progress else None,
        "failed_relations": [],
        "import_error": None,
        "stats": None,
    }
    if progress and progress.status == "failed" and progress.fails:
        is_maintainer = call.state.access(call.user, project) >= MAINTAINER
        record["import_error"] = progress.fails if is_maintainer else _ASK
    if progress and progress.type == "github":
        imported = {"milestone": len(progress.holds.milestones)}
        fetched = {**imported, **{name: imported.get(name, 0) + number for name, number in progress.left_out.items()}}
        record["stats"] = {
            "fetched": fetched if progress.status != "scheduled" else {},
            "imported": imported if progress.status == "finished" else {},
        }
    if progress and progress.status in FINAL:
        at = basic["created_at"]
        record["failed_relations"] = [
            {"id": number, "created_at": at, **relation.model_dump(), "line_number": None}
            for number, relation in enumerate(progress.failed_relations, start=1)
        ]
    return record


def _human(name: str) -> str:
    """Return the name of an attribute as a sentence begins with it."""
    return name.replace(".", " ").replace("_", " ").capitalize()


def _errors(status: int, reason: Any) -> Refusal:
    return Refusal(status, {"errors": reason})


def _message(status: int, reason: Any) -> Refusal:
    return refused(status, {"error": reason})


SECTIONS = (IMPORTS, SOURCES, IMPORTED)
ROUTES = (
    Route("POST", "/import/github", import_github),
    Route("POST", "/import/bitbucket_server", import_bitbucket_server),
    Route("GET", "/projects/:id/import", get_import),
)
