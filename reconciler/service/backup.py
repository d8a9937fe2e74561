"""The service's own export of a group (spec 4.14; deployed behaviour, section g), from the request to a file.

Begin with `back_up`. No endpoint shows when an export is ready, or that it has failed, and for a while the archive of
an earlier export is served: the time and the `ETag` of the archive show which one it is.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from itertools import chain, repeat
from pathlib import Path
from typing import Any, Protocol
from zlib import MAX_WBITS, decompressobj
from zlib import error as ZlibError  # noqa: N812 - its name in zlib says nothing

from reconciler.errors import AnswerLost, BadAnswer, NotFound, RateLimited, ServerFailure, ServiceError, Stopped
from reconciler.model.protocols import Begin, Json, Request
from reconciler.model.targets import Level, Target
from reconciler.service.responses import parse_date
from reconciler.system.files import replacing

PAUSE = 61
"""Seconds between two requests for the archive: GitLab allows one a minute, and counts those that get 404."""

EARLY = (2, 3, 10)
"""Seconds before the first requests, as long as the service allows them: most exports are ready after one or two.

No request is sent at once: if it got 404, it would use up the one of the first minute.
"""

NOT_YET = (AnswerLost, NotFound, RateLimited, ServerFailure)
"""The errors after which the archive is requested again."""

SKEW = timedelta(minutes=5)
"""The largest error of a storage's clock that is allowed for."""

GZIP = b"\x1f\x8b"
"""The first bytes of an archive."""


class Archives(Protocol):
    """The part of the service that a backup needs."""

    def send(self, request: Request) -> Json:
        """Carry out a write."""

    def download(self, path: str, begin: Begin) -> None:
        """Fetch a file of any size, once."""

    def now(self) -> datetime:
        """Return the time by the service's clock."""


# Unpacked in pieces, to check the archive: its content may be larger than the memory.
UNPACKED = 2**20
"""Bytes that are unpacked at once, to be checked and thrown away."""


@dataclass(slots=True)
class Members:
    """The members of a gzip file, one after the other, each with its checksum and length.

    Attributes:
        member: unpacks the last member so far.
        fault: the damage of the file; empty without any.
    """

    member: Any = None
    fault: str = ""

    @property
    def is_open(self) -> bool:
        """Whether the last member has not ended."""
        return self.member is not None and not self.member.eof

    def add(self, piece: bytes) -> None:
        """Check the next piece of the file."""
        is_pending = False
        while (piece or is_pending) and not self.fault:
            if not self.is_open:
                # Padding may follow.
                piece = piece if self.member is None else piece.lstrip(b"\0")
                if not piece:
                    return
                self.member = decompressobj(16 + MAX_WBITS)
            try:
                unpacked = self.member.decompress(piece, UNPACKED)
            except ZlibError as error:
                self.fault = str(error)
                return
            is_pending = self.is_open and len(unpacked) == UNPACKED
            piece = self.member.unconsumed_tail if self.is_open else self.member.unused_data


@dataclass(slots=True)
class Backup:
    """An archive.

    Attributes:
        exported_at: the time at which the service made it, if that is known.
        is_new: whether it is known to be of this export, and not of an earlier one.
        size: in bytes.
        head: its first bytes.
        sum: the checksum of its content.
        members: its members as a gzip file.
    """

    exported_at: datetime | None
    is_new: bool
    size: int = 0
    head: bytes = b""
    sum: Any = field(default_factory=sha256)
    members: Members = field(default_factory=Members)

    @property
    def digest(self) -> str:
        """SHA-256, hex."""
        return str(self.sum.hexdigest())

    def add(self, content: bytes) -> None:
        """Count a piece of the archive."""
        self.size += len(content)
        self.head = (self.head + content[: len(GZIP)])[: len(GZIP)]
        self.sum.update(content)
        self.members.add(content)


@dataclass(slots=True)
class ArchivePolls:
    """The requests for an archive, after its export was requested.

    Attributes:
        asked_at: the time at which the export was requested.
        vain: whether one of them got 404, so that a later archive is new.
        former: the `ETag` of an archive that may be of an earlier export; None before one was served.
        former_at: the time of that archive, if it is known.
    """

    asked_at: datetime
    vain: bool = False
    former: str | None = None
    former_at: datetime | None = None

    def archive_of(self, headers: Mapping[str, str]) -> Backup | None:
        """Return the archive of a response, if it is of the requested export, or may be."""
        tag, at = headers.get("etag", ""), parse_date(headers.get("last-modified", ""))
        is_other = self.former is not None and tag != self.former
        is_new = self.vain or is_other or (at is not None and at >= self.asked_at)
        is_old = not is_new and at is not None and at < self.asked_at - SKEW
        if is_old or (not is_new and self.former is None):
            self.former, self.former_at = tag, at
            return None
        return Backup(at, is_new)

    def poll(self, path: str, file: Path, archives: Archives) -> Backup | None:
        """Write the archive to a file if it is ready; return None if only an older one is served.

        Raises:
            ServiceError: there is no archive, or it is incomplete.
            OutputFailed: the file could not be written.
        """
        backup: Backup | None = None
        with ExitStack() as stack:

            def begin(headers: Mapping[str, str]) -> Callable[[bytes], object] | None:
                nonlocal backup
                backup = archive = self.archive_of(headers)
                if archive is None:
                    return None
                write = stack.enter_context(replacing(file))

                def take(content: bytes) -> None:
                    archive.add(content)
                    write(content)

                return take

            try:
                archives.download(path, begin)
            except NotFound:
                self.vain = True
                raise
            if backup is not None and backup.head != GZIP:
                raise BadAnswer(f"GET {path}", "the response is no archive")
            if backup is not None and (backup.members.is_open or backup.members.fault):
                raise AnswerLost(
                    f"GET {path}", f"the archive is not whole: {backup.members.fault or 'it ends too early'}"
                )
        return backup


def back_up(group: str, file: Path, archives: Archives, *, seconds: float, pause: Callable[[float], bool]) -> Backup:
    """Request an export of a group, wait for it, and write the complete archive to a file.

    Args:
        group: its path or numeric ID.
        file: gets the mode 0600.
        archives: the service.
        seconds: the longest wait.
        pause: waits for some seconds, and returns whether the run was stopped.

    Raises:
        ServiceError: the export was refused, or there is no archive in time.
        OutputFailed: the file could not be written.
    """
    url = Target(Level.GROUP, group).url
    path = f"{url}export/download"
    archives.send(Request("POST", f"{url}export"))
    polls = ArchivePolls(archives.now().replace(microsecond=0))
    pauses: Iterator[float] = chain(EARLY[1:], repeat(PAUSE))
    waited = min(EARLY[0], seconds)
    stopped = pause(waited)
    while not stopped:
        last = ""
        try:
            backup = polls.poll(path, file, archives)
            if backup is not None:
                return backup
        except NOT_YET as error:
            last = f": {error.reason}"
            pauses = repeat(PAUSE) if isinstance(error, RateLimited) else pauses
        next_pause = next(pauses)
        if waited + next_pause > seconds:
            old = polls.former_at and f"; the archive of {polls.former_at:%Y-%m-%d %H:%M:%S %Z} is still available"
            raise ServiceError(
                f"GET {path}",
                f"no new archive after {waited:g} s{last or old or ''}; the service reports a failed export by mail "
                "only: look there, or wait longer with --wait",
            )
        stopped = pause(next_pause)
        waited += next_pause
    raise Stopped(f"GET {path}", "the run was stopped before the archive was ready")
