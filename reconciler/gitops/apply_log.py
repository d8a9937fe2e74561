"""The applies of a repository's manifests, as commits of the inventory's branch tell them, and as `log` shows them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pydantic import AwareDatetime, NonNegativeInt

from reconciler.model.absence import SHORT_SHA_LENGTH
from reconciler.model.inventory import COMMIT_SHA

SUBJECT = re.compile(r"apply: (.*?)(?: \([0-9a-f]{7,}\))?")
COUNT = re.compile(r"([0-9]+) ([a-z]+)")
TRAILER = re.compile(r"([A-Z][a-z]+): (.*)")
IDENTITY = re.compile(r"(.*) <(.*)> ([0-9]+) [+-][0-9]{4}")
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
    """Return an apply from the ID and the text of its commit; whatever that does not say is empty."""
    head, _, message = commit.partition("\n\n")
    headers = dict(line.partition(" ")[::2] for line in reversed(head.split("\n")))
    author, email, when = _identity(headers.get("author", ""))
    committer, _, stored = _identity(headers.get("committer", ""))
    subject, *lines = message.split("\n")
    trailers = {trailer[1]: trailer[2] for line in lines if (trailer := TRAILER.fullmatch(line))}
    done = SUBJECT.fullmatch(subject)
    result = trailers.get("Result", "")
    return Apply(
        id=name,
        when=when or stored or EPOCH,
        author=author,
        author_email=email,
        committer=committer,
        counts={verb: int(number) for number, verb in COUNT.findall(done[1])} if done else {},
        manifests=trailers.get("Manifests", ""),
        service=trailers.get("Service", ""),
        result=int(result) if result.isdecimal() and result.isascii() else None,
        job=trailers.get("Job", ""),
        canary=trailers.get("Canary", ""),
        reverts=trailers.get("Reverts", ""),
    )


def latest(log: Sequence[Apply], killed: Sequence[KilledRun] = ()) -> str:
    """Return what `revert --last` undoes: the latest apply that is no revert, or what an unfinished revert was undoing.

    A revert that is not done, or was killed, is finished before anything else is undone. The text is empty if there is
    nothing.
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
    """Return what names an apply, short: the beginning of its ID, or the whole name of a report."""
    return name[:SHORT_SHA_LENGTH] if COMMIT_SHA.fullmatch(name) else name


def revert_words(name: str) -> list[str]:
    """Return the words of the command that plans the way back from an apply; none without one."""
    return ["reconciler", "revert", short(name)] if name else []


def _identity(text: str) -> tuple[str, str, datetime | None]:
    """Return the name, the e-mail address and the time of an author or committer."""
    parts = IDENTITY.fullmatch(text)
    if parts is None or len(parts[3]) > 11:
        return "", "", None
    return parts[1], parts[2], datetime.fromtimestamp(int(parts[3]), UTC)
