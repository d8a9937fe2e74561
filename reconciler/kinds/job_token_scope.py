"""The CI job token scope of a project: the switch, and the allowlists of projects and of groups (spec 4.2)."""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar
from urllib.parse import unquote, urlsplit

from pydantic import Field

from reconciler.model.audit import AuditEvent, Traced
from reconciler.model.direction import FEWER, TRUE, Directions
from reconciler.model.endpoints import Access, Collection, Existing, Names, Singleton, Writes
from reconciler.model.foreign_keys import Alias, ForeignKeys
from reconciler.model.kind import Kind, Needs, ReadSection, Role
from reconciler.model.protocols import Json
from reconciler.model.resource import LiveRecord, Resource, Wanted
from reconciler.model.targets import Key, Level, Target

GLOB = re.compile(r"[*?\[\]]")

NOTED = re.compile(r"secure_ci_job_token_(?P<what>project|group)_(?P<done>added|removed)")
"""The name of an audit event about an entry."""
EVENT_ENTRY = re.compile(r"(?:Project|Group) (?P<path>\S+) was (?:added|removed) ")
"""The beginning of its sentence."""

Entry = Annotated[str, Field(min_length=1)] | Annotated[int, Field(gt=0)]


class JobTokenScope(Resource):
    """The projects whose CI jobs may access this project with their job token."""

    foreign_keys: ClassVar[ForeignKeys] = {
        **dict.fromkeys(
            (
                "inbound_enabled",
                "limit_access_to_this_project",
                "inbound_job_token_scope_enabled",
                "ci_inbound_job_token_scope_enabled",
            ),
            Alias("enabled"),
        ),
        **dict.fromkeys(
            ("outbound_enabled", "job_token_scope_enabled", "ci_job_token_scope_enabled"),
            "the limit for this project's own jobs is not managed: `enabled` limits the jobs of others",
        ),
        "allowlist": "the two lists belong in the section itself: `projects` and `groups`",
        **dict.fromkeys(("target_project_ids", "target_project_id", "project_allowlist"), Alias("projects")),
        **dict.fromkeys(("target_group_ids", "target_group_id", "groups_allowlist"), Alias("groups")),
    }

    directions: ClassVar[Directions] = {"enabled": TRUE, "projects": FEWER, "groups": FEWER}

    enabled: bool = Field(
        default=True,
        description="Limit access to the projects and groups on the two allowlists. If false, any project has access.",
        examples=[True],
    )
    projects: list[Entry] = Field(
        default=[],
        description="Projects whose jobs have access, as full paths or numeric IDs. The project itself always has it.",
        examples=[["acme/payments/lib", 1234]],
    )
    groups: list[Entry] = Field(
        default=[],
        description="Groups whose projects' jobs have access, as full paths or numeric IDs.",
        examples=[["acme/platform"]],
    )


class Switch(Resource):
    """The switch of the limit."""

    directions: ClassVar[Directions] = {"enabled": TRUE}

    enabled: bool = True


SWITCHES = {enabled: Switch(enabled=enabled) for enabled in (False, True)}


class Allowed(Resource):
    """An entry of an allowlist, without fields."""

    admits: ClassVar[bool] = True


ALLOWED = Allowed()


def split(token_scope: JobTokenScope, prune: bool) -> Mapping[str, Wanted]:
    """Return the declared parts; an empty section that is pruned declares both lists to be empty."""
    parts: dict[str, Wanted] = {}
    declared = token_scope.model_fields_set or ({"projects", "groups"} if prune else set())
    if "enabled" in declared:
        parts["enabled"] = SWITCHES[token_scope.enabled]
    if "projects" in declared:
        parts["projects"] = dict.fromkeys(token_scope.projects, ALLOWED)
    if "groups" in declared:
        parts["groups"] = dict.fromkeys(token_scope.groups, ALLOWED)
    return parts


def decode_project(entry: Json) -> LiveRecord:
    """Read an entry, which may be the project itself."""
    path = entry.get("path_with_namespace")
    return LiveRecord(ALLOWED, names=(path, entry["id"]) if isinstance(path, str) else (entry["id"],))


def decode_group(entry: Json) -> LiveRecord:
    """Read an entry: its path is only in its web address, below `/groups/`, and some servers send no address."""
    address = entry.get("web_url")
    _, separator, path = urlsplit(address if isinstance(address, str) else "").path.partition("/groups/")
    return LiveRecord(ALLOWED, names=(unquote(path), entry["id"]) if separator else (entry["id"],))


def entry_error(name: Key) -> str | None:
    """Return the reason why no project or group can have this path (deployed behaviour, section 7.6)."""
    if isinstance(name, str) and GLOB.search(name):
        return "an allowlist takes no globs: name each project, or allow the whole group under `groups`"
    if isinstance(name, str) and (name != name.strip("/") or "//" in name):
        return "an entry is a full path such as acme/payments/lib, without a slash at either end"
    return None


def project_warning(target: Target, name: Key) -> str | None:
    """Return a warning about a project's own entry, which can be neither added nor removed."""
    itself = Target(Level.PROJECT, name).identity == target.identity
    return "a project may always reach itself: leave this entry out" if itself else None


def project_losses(_old: Existing) -> Iterator[str]:
    """Yield the loss, with a condition: the other list, and the switch, may still let the jobs in."""
    yield "its CI jobs lose access with their job token, unless the limit is off or one of its groups is allowlisted"


def group_losses(_old: Existing) -> Iterator[str]:
    """Yield the loss, with the condition of a project's entry."""
    yield (
        "the CI jobs of all its projects lose access with their job token, unless the limit is off or another entry "
        "allows them"
    )


# GitLab shows the effective value: where the instance enforces the limit, as 18.9 does by default, it is always on.
ENABLED = Singleton(
    name="enabled",
    title="job token scope",
    suffix="job_token_scope",
    model=Switch,
    shown_as={"enabled": "inbound_enabled"},
    method="PATCH",
)

# GitLab 18.9 answers 400 to a path in POST and DELETE of an entry. An entry is never deleted and added again: it may
# have finer permissions, which the REST API neither shows nor sets.
PROJECTS = Collection(
    "projects",
    Allowed,
    title="allowlisted project",
    suffix="job_token_scope/allowlist",
    key="target_project_id",
    decode=decode_project,
    names=Names(error=entry_error, warning=project_warning, level=Level.PROJECT),
    writes=Writes(update=None, needs_numeric_id=True),
    access=Access(),
    losses=project_losses,
)

GROUPS = Collection(
    "groups",
    Allowed,
    title="allowlisted group",
    suffix="job_token_scope/groups_allowlist",
    key="target_group_id",
    decode=decode_group,
    names=Names(error=entry_error, level=Level.GROUP),
    writes=Writes(update=None, needs_numeric_id=True),
    access=Access(),
    losses=group_losses,
)


def trace(event: AuditEvent) -> Iterator[Traced]:
    """Yield the entry that an event has added or removed; of the switch, the service notes nothing."""
    noted = NOTED.fullmatch(event.name)
    moved = EVENT_ENTRY.match(str(event.details.get("custom_message")))
    if noted and moved and event.target_id is not None:
        names = (moved["path"], event.target_id)
        yield Traced(f"{noted['what']}s", names=names, removed=noted["done"] == "removed")


def to_sandbox(read: ReadSection) -> Mapping[str, Json]:
    """Return the switch, and both lists by ID. The service does not show whether the instance enforces the limit."""
    return {
        "instance": {"enforce_job_token_allowlist": False},
        "job_token_scope": {
            "inbound_enabled": read.fields("enabled").get("enabled"),
            "project_allowlist": read.numbers("projects"),
            "group_allowlist": read.numbers("groups"),
        },
    }


KIND = Kind(
    name="job_token_scope",
    foreign_names=("project_job_token_scope", "project_job_token_scopes", "job_token_scopes", "ci_job_token_scope"),
    summary="Access of CI jobs to a project with their job token: the limit and its two allowlists.",
    spec="4.2",
    models={Level.PROJECT: JobTokenScope},
    parts=(ENABLED, PROJECTS, GROUPS),
    split=split,
    order=4,
    to_sandbox=to_sandbox,
    trace=trace,
    needs=Needs(roles={Level.PROJECT: Role.MAINTAINER}),
    pages={Level.PROJECT: "{target}/-/settings/ci_cd#js-token-access"},
)
