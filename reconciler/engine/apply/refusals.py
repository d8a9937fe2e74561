"""Reasons and remedies of refused writes: `Refusals` for sections, `creation_failure` for groups and projects."""

import re

from reconciler.engine.apply.options import Stop
from reconciler.engine.apply.reread import collection_of
from reconciler.engine.why import (
    FORBIDDEN,
    NO_RECORD,
    ProjectRecord,
    RefusedAccess,
    ask_caller,
    read_membership,
    read_record,
    write_obstacle,
)
from reconciler.errors import Forbidden, Refused, ServiceError
from reconciler.model.caller import UNKNOWN_CALLER
from reconciler.model.item import Change, Create
from reconciler.model.kind import Archived, Kinds
from reconciler.model.obstacle import Obstacle
from reconciler.model.protocols import Service
from reconciler.model.targets import Level, Target
from reconciler.model.wording import advised

TAKEN_MESSAGE = "has already been taken"
"""A part of the message that refuses a creation because another object has the name."""

FULL_MESSAGE = "Maximum number of"
"""A part of the message that refuses a creation because the limit is reached."""

# Most refusals are 400 or 422, and only the text tells them apart (GitLab 18.9). The first part that a message contains
# counts.
REMEDIES = {
    "import source is disabled": "an administrator must enable this import source (`import_sources` in the settings)",
    "has already been taken": "another user, group or project has this path or name: choose another",
    "reserved name": "choose another path",
    "is not allowed since the parent": "`visibility` must not exceed that of the group above",
    "not have read access to the repository": "check the token in {variable}, and `repo_id`",
    "Authentication failed": "check the token in {variable}, and the user it belongs to",
    "GitHub error": "check `repo_id`, and what the token in {variable} may read",
    "BitBucket Server error": "check `url`, `project` and `repo`, and what the token in {variable} may read",
    "is not valid": "{parent} does not exist, or this token may not create projects there",
    "undefined method": "{parent} does not exist",
    "does not exist": "create {parent} first, or add `create` to its manifest",
    "not allowed to import": "this token needs the role Maintainer in {parent}",
    "archive (ending in": "name a file that a service has exported",
    "file is missing": "the URL leads past the service's front proxy, which takes uploads: use its public URL",
    "file is invalid": "the URL leads past the service's front proxy, which takes uploads: use its public URL",
}
"""The remedy for each known part of a refusal's message."""

BY_STATUS = {
    401: "check the token in {variable}, and what it may read",
    404: "{parent} does not exist, or is not visible to this token",
    413: "the archive is larger than the service allows (`max_import_size`)",
}
"""The remedy for each status, where the message is unknown."""

# GitLab prints a Ruby hash: `Failed to save group {:path=>["has already been taken"]}` (deployed behaviour, section g
# 7).
_TAKEN = re.compile(r':(\w+)=>\["([^"\]]*)"\]')


class Refusals:
    """The reasons why one target refuses changes. Each cause is requested once.

    Attributes:
        closed: the reason for each section that the target refuses as a whole.
    """

    def __init__(self, target: Target, service: Service, kinds: Kinds, stop: Stop) -> None:
        self._target, self._service, self._kinds, self._stop = target, service, kinds, stop
        self._record: ProjectRecord | None = None
        self.closed: dict[str, str] = {}

    def why(self, change: Change, error: ServiceError) -> str:
        """Return the reason of a failed change, with the remedy; a refusal may close the whole section."""
        section = change.address.section
        if isinstance(error, Refused) and isinstance(change, Create) and TAKEN_MESSAGE in error.reason:
            return advised(str(error), collection_of(change.address, self._kinds).names.taken)
        if isinstance(error, Refused) and isinstance(change, Create) and FULL_MESSAGE in error.reason:
            return advised(str(error), collection_of(change.address, self._kinds).listing.hides)
        if not isinstance(error, Forbidden) or self._stop.reason:
            return advised(str(error), error.remedy)
        obstacle, barrier = self._cause(section), self._kinds[section].needs.barrier
        if not obstacle.reason:
            return advised(str(error), obstacle.remedy)
        if barrier is None or barrier.is_whole or obstacle.reason != barrier.reason:
            self.closed[section] = obstacle.reason
        return f"{advised(obstacle.reason, obstacle.remedy)} ({error})"

    def _cause(self, section: str) -> Obstacle:
        """Return the obstacle to writing a section.

        A plan does not read the caller's role: the first refusal in a project takes one request for the cause. If that
        does not show the role, as in a group, the user behind the token is looked up too, once a run.
        """
        needs, caller = self._kinds[section].needs, UNKNOWN_CALLER
        try:
            if self._record is None and (needs.archived is not Archived.OPEN or needs.barrier):
                if self._target.level is Level.GROUP:
                    caller = ask_caller(self._service)
                    record = read_membership(self._target, self._service, caller)
                else:
                    record = read_record(self._target, self._service, UNKNOWN_CALLER)
                self._record = record if isinstance(record, ProjectRecord) else NO_RECORD
            if self._record is None or self._record.role is None:
                caller = ask_caller(self._service)
        except ServiceError as ending:
            self._stop.after(ending)
        record = self._record or NO_RECORD
        return write_obstacle(
            RefusedAccess(self._target.address, needs, record, caller, writing=True, status=FORBIDDEN)
        )


def creation_failure(target: Target, variable: str, error: ServiceError) -> str:
    """Return the reason why a group or project was not created, with the remedy.

    Args:
        target: the group or project.
        variable: the environment variable with the token for the import; empty for none.
        error: of the request.
    """
    parent = str(target.ref).rpartition("/")[0]
    parent = f"group {parent}" if parent else ""
    words = _TAKEN.sub(r"\1: \2", str(error)) if isinstance(error, Refused) else str(error)
    remedy = next((remedy for known, remedy in REMEDIES.items() if known in words), "")
    remedy = remedy or error.remedy or BY_STATUS.get(error.status or 0, "")
    if not remedy and isinstance(error, Forbidden):
        where = f"in {parent}" if parent else "at the top level, where a service may allow none by its API"
        remedy = f"this token may not create {target.level}s {where}"
    return advised(words, remedy.format(variable=variable, parent=parent))
