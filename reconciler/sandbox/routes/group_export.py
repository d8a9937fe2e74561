"""The export of a group to an archive (spec 4.14): requested, ready some time later, and gone with the next export.

An archive has the members, milestones, labels and epics that the sandbox knows of the group and of its subgroups;
projects are in no archive. Nothing shows that an export has failed: the archive never comes.
"""

import gzip
import json
from dataclasses import dataclass
from datetime import datetime
from email.utils import format_datetime
from hashlib import md5
from time import monotonic
from typing import Annotated

from pydantic import Field

from ..answers import Answer, Refusal, refused
from ..call import Call, Route
from ..records import Record, moment
from ..state import OWNER, Group, SandboxState, StateSection

MINUTE = 60
ARCHIVED = ("path", "name", "description", "visibility", "members", "labels", "milestones", "epics")
"""What an archive holds of each group."""


class GroupExports(Record):
    """How the instance exports groups.

    Attributes:
        looks: how many vain looks there are before an archive is ready.
        fails: whether no export ever succeeds.
        per_minute: how many exports a user may ask for; 0 for any number.
        downloads_per_minute: of each user and group, vain ones included; 0 for any number.
    """

    looks: Annotated[int, Field(ge=0)] = 0
    fails: bool = False
    per_minute: Annotated[int, Field(ge=0)] = 6
    downloads_per_minute: Annotated[int, Field(ge=0)] = 1


@dataclass
class Export:
    """The latest export of a user and group.

    Attributes:
        at: the time of the request, by the clock of the service.
        archive: its content.
        looks: how many more looks are vain.
        downloads: the times of the looks within the last minute.
    """

    at: datetime
    archive: bytes
    looks: int
    downloads: list[float]


EXPORTS = StateSection("group_exports", ("instance",), GroupExports, GroupExports())


def export(call: Call) -> Answer:
    """`POST /groups/:id/export`: the archive of the former export goes."""
    group, settings = call.group(OWNER), EXPORTS.of(call.state.instance)
    if not call.state.within_limit("group exports", call.caller(), settings.per_minute):
        raise _too_many()
    former: Export | None = call.state.jobs.get(_key(call, group))
    downloads = former.downloads if former else []
    at = moment(call.state.tick())
    call.state.jobs[_key(call, group)] = Export(at, _archive(call.state, group), settings.looks, downloads)
    call.changed = True
    return Answer(202, {"message": "202 Accepted"})


def download(call: Call) -> Answer:
    """`GET /groups/:id/export/download`."""
    group = call.group(OWNER)
    settings = EXPORTS.of(call.state.instance)
    job: Export | None = call.state.jobs.get(_key(call, group))
    if job is None:
        raise refused(404, "404 Not found or has expired")
    job.downloads = [moment for moment in job.downloads if moment > monotonic() - MINUTE]
    if settings.downloads_per_minute and len(job.downloads) >= settings.downloads_per_minute:
        raise _too_many()
    job.downloads.append(monotonic())
    if settings.fails or job.looks:
        job.looks = max(job.looks - 1, 0)
        raise refused(404, "The group export file is not available yet")
    headers = [
        ("etag", f'"{md5(job.archive, usedforsecurity=False).hexdigest()}"'),
        ("last-modified", format_datetime(job.at, usegmt=True)),
    ]
    return Answer(200, job.archive, headers, content_type="application/octet-stream")


def _too_many() -> Refusal:
    body = {"message": {"error": "This endpoint has been requested too many times. Try again later."}}
    return Refusal(429, body, [("retry-after", str(MINUTE))])


def _key(call: Call, group: Group) -> tuple[str, int, int]:
    return "group export", call.caller().id, group.id


def _archive(state: SandboxState, group: Group) -> bytes:
    """Return a group and all groups below it, packed, with paths relative to the group above it."""
    cut = len(group.path) - len(group.slug)
    shown = [
        {**group_below.model_dump(include=set(ARCHIVED)), "path": group_below.path[cut:]}
        for group_below in state.below(group)
        if isinstance(group_below, Group)
    ]
    return gzip.compress(json.dumps({"groups": shown}).encode(), mtime=0)


SECTIONS = (EXPORTS,)
ROUTES = (
    Route("POST", "/groups/:id/export", export),
    Route("GET", "/groups/:id/export/download", download),
)
