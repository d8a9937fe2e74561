"""The log of applies: each `Apply` is a commit of the inventory's branch.

`Apply.message` writes the text of the commit, and `read_apply` reads it; `branch` stores it, and `log` shows it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pydantic import AwareDatetime, NonNegativeInt

from reconciler.memory.absence import SHORT_SHA_LENGTH
from reconciler.memory.inventory import COMMIT_SHA, is_web_address

SUBJECT = re.compile(r"apply: (.{1,200}?)(?: \([0-9a-f]{7,64}\))?")
COUNT = re.compile(r"([0-9]{1,9}) (created|updated|deleted)")
TRAILER = re.compile(r"([A-Z][a-z]{1,20}): (.{1,2000})")
IDENTITY = re.compile(r"(.{0,500}) <(.{0,500})> ([0-9]{1,11}) [+-][0-9]{4}")
EXIT_CODE = re.compile(r"[0-9]{1,3}")
MOST_READ = 20_000
"""Characters that are read of a commit."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Apply:
    """One apply."""

    id: str = ""
    """The full ID of its commit on the inventory's branch; `revert` takes the beginning of it."""
    when: AwareDatetime = EPOCH
    """When it ended, UTC."""
    author: str = ""
    """The name of who started it; empty if unknown."""
    author_email: str = ""
    """The e-mail address of who started it; empty if unknown."""
    committer: str = ""
    """The name of who stored it; empty if unknown."""
    counts: Mapping[str, NonNegativeInt] = field(default_factory=dict)
    """How many objects were created, updated and deleted; without zeros."""
    manifests: str = ""
    """The full ID of the manifests' commit; empty if they were not as committed."""
    service: str = ""
    """The URL of the service."""
    result: int | None = None
    """The exit code; null if unknown."""
    job: str = ""
    """The URL of the CI job; empty outside of one."""
    canary: str = ""
    """The targets that were applied first, as a canary; empty without one."""
    reverts: str = ""
    """The apply that this one undoes: its full ID, or the name of its report; empty if it is no revert."""

    @property
    def message(self) -> str:
        """What its commit says: the subject, and the trailers."""
        done = ", ".join(f"{number} {verb}" for verb, number in self.counts.items() if number)
        commit = f" ({self.manifests[:SHORT_SHA_LENGTH]})" if self.manifests else ""
        trailers = {
            "Manifests": self.manifests,
            "Service": self.service,
            "Result": "" if self.result is None else str(self.result),
            "Job": self.job,
            "Canary": self.canary,
            "Reverts": self.reverts,
        }
        lines = "".join(f"{name}: {' '.join(value.split())}\n" for name, value in trailers.items() if value)
        return f"apply: {done or 'nothing changed'}{commit}\n\n{lines}"


@dataclass(frozen=True, slots=True)
class KilledRun:
    """A run that was killed while it wrote."""

    began_at: AwareDatetime
    """When it began, UTC."""
    manifests: str = ""
    """The full ID of the manifests' commit; empty if they were not as committed."""
    reverts: str = ""
    """The apply that it was to undo: its full ID, or the name of its report; empty if it is no revert."""


def read_apply(name: str, commit: str) -> Apply:
    """Return an apply from the ID and the text of its commit; a missing or malformed value is empty.

    Everyone who can push to the branch can write such a text.
    """
    head, _, message = commit[:MOST_READ].partition("\n\n")
    # Of two headers of one name the first counts: in reversed order, it overwrites the second.
    headers = dict(line.partition(" ")[::2] for line in reversed(head.split("\n")))
    author, email, when = _identity(headers.get("author", ""))
    committer, _, stored = _identity(headers.get("committer", ""))
    subject, *lines = message.split("\n")
    trailers = {trailer[1]: trailer[2] for line in lines if (trailer := TRAILER.fullmatch(line))}
    done = SUBJECT.fullmatch(subject)
    result, manifests = trailers.get("Result", ""), trailers.get("Manifests", "")
    return Apply(
        id=name,
        when=when or stored or EPOCH,
        author=author,
        author_email=email,
        committer=committer,
        counts={verb: int(number) for number, verb in COUNT.findall(done[1])} if done else {},
        manifests=manifests if COMMIT_SHA.fullmatch(manifests) else "",
        service=_web_address(trailers.get("Service", "")),
        result=int(result) if EXIT_CODE.fullmatch(result) else None,
        job=_web_address(trailers.get("Job", "")),
        canary=trailers.get("Canary", ""),
        reverts=trailers.get("Reverts", ""),
    )


def latest(log: Sequence[Apply], killed: Sequence[KilledRun] = ()) -> str:
    """Return the apply that `revert --last` undoes: the latest that is no revert, or the one of an unfinished revert.

    A revert that failed or was killed is finished before an older apply is undone. The text is empty without any apply.
    """
    if killed and killed[0].reverts:
        return killed[0].reverts
    if log and log[0].reverts and log[0].result != 0:
        return log[0].reverts
    return next((apply.id for apply in log if not apply.reverts), "")


def latest_change(log: Sequence[Apply]) -> str:
    """Return the latest apply that changed something, is no revert and was not reverted; empty if there is none."""
    reverted = {apply.reverts for apply in log}
    return next((apply.id for apply in log if apply.counts and not apply.reverts and apply.id not in reverted), "")


def named(log: Sequence[Apply], name: str) -> list[Apply]:
    """Return the applies whose ID begins with a text."""
    return [apply for apply in log if name and apply.id.startswith(name.lower())]


def short(name: str) -> str:
    """Return the short name of an apply: the beginning of its ID, or the whole name of a report."""
    return name[:SHORT_SHA_LENGTH] if COMMIT_SHA.fullmatch(name) else name


def revert_words(name: str) -> list[str]:
    """Return the words of the command that plans to undo an apply; none without an apply."""
    return ["reconciler", "revert", short(name)] if name else []


def _web_address(text: str) -> str:
    return text if is_web_address(text) else ""


def _identity(text: str) -> tuple[str, str, datetime | None]:
    """Return the name, the e-mail address and the time of an author or committer."""
    parts = IDENTITY.fullmatch(text)
    if parts is None:
        return "", "", None
    return parts[1], parts[2], datetime.fromtimestamp(int(parts[3]), UTC)
