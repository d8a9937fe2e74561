"""The applies of a repository's manifests, read from the commits of the inventory's branch."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from reconciler.errors import InventoryUnreadable
from reconciler.gitops.branch import Repository
from reconciler.gitops.cut_off import CutOff
from reconciler.gitops.remotes import Person
from reconciler.model.absence import SHORT_SHA_LENGTH
from reconciler.model.inventory import COMMIT_SHA

SUBJECT = re.compile(r"apply: (.*?)(?: \([0-9a-f]{7,}\))?")
COUNT = re.compile(r"([0-9]+) ([a-z]+)")
TRAILER = re.compile(r"([A-Z][a-z]+): (.*)")
IDENTITY = re.compile(r"(.*) <(.*)> ([0-9]+) [+-][0-9]{4}")


@dataclass(frozen=True, slots=True)
class Apply:
    """One apply.

    Attributes:
        id: the full ID of its commit on the branch.
        when: its end.
        author: who started it.
        committer: who stored it.
        counts: how many objects were changed, such as `{"created": 3}`; empty if none was.
        manifests: the full ID of the commit that was applied; empty if there was none.
        service: its URL.
        result: the exit code; None if it is not known.
        job: the URL of the CI job; empty outside of one.
        canary: as the run recorded it; empty without a canary.
        reverts: what this one undoes: the full ID of an apply, or the name of its report; empty if it is no revert.
    """

    id: str
    when: datetime
    author: Person
    committer: Person
    counts: Mapping[str, int] = field(default_factory=dict)
    manifests: str = ""
    service: str = ""
    result: int | None = None
    job: str = ""
    canary: str = ""
    reverts: str = ""


def applies(repository: Repository, commit: str, most: int) -> tuple[Apply, ...]:
    """Return the last applies, the latest first.

    Args:
        repository: the one that has the branch, or has fetched so many of its commits.
        commit: the branch's last one.
        most: how many at most.

    Raises:
        InventoryUnreadable: a commit cannot be read.
    """
    listing = repository.run(["rev-list", "--first-parent", f"--max-count={most}", commit, "--"])
    names = listing.stdout.decode().split()
    return tuple(_apply(name, _text(repository, name)) for name in names)


def latest(log: Sequence[Apply], killed: Sequence[CutOff] = ()) -> str:
    """Return what `revert --last` undoes: the latest apply that is no revert, or what an unfinished revert was undoing.

    A revert that is not done, or was killed, is finished before anything else is undone. The text is empty if there is
    nothing.
    """
    if killed and killed[0].reverts:
        return killed[0].reverts
    if log and log[0].reverts and log[0].result != 0:
        return log[0].reverts
    return next((apply.id for apply in log if not apply.reverts), "")


def named(log: Sequence[Apply], name: str) -> list[Apply]:
    """Return the applies whose ID begins with a text."""
    return [apply for apply in log if name and apply.id.startswith(name.lower())]


def short(name: str) -> str:
    """Return what names an apply, short: the beginning of its ID, or the whole name of a report."""
    return name[:SHORT_SHA_LENGTH] if COMMIT_SHA.fullmatch(name) else name


def revert_words(name: str) -> list[str]:
    """Return the words of the command that plans the way back from an apply; none without one."""
    return ["reconciler", "revert", short(name)] if name else []


def _text(repository: Repository, name: str) -> str:
    done = repository.run(["cat-file", "commit", name])
    if done.returncode:
        raise InventoryUnreadable(f"commit {name} of its branch cannot be read", "check the repository with git fsck")
    return done.stdout.decode(errors="replace")


def _apply(name: str, commit: str) -> Apply:
    """Return an apply from the text of its commit; whatever it does not say is empty."""
    head, _, message = commit.partition("\n\n")
    headers = dict(line.partition(" ")[::2] for line in reversed(head.split("\n")))
    author, when = _identity(headers.get("author", ""))
    committer, stored = _identity(headers.get("committer", ""))
    subject, *lines = message.split("\n")
    trailers = {trailer[1]: trailer[2] for line in lines if (trailer := TRAILER.fullmatch(line))}
    done = SUBJECT.fullmatch(subject)
    counts = {verb: int(number) for number, verb in COUNT.findall(done[1])} if done else {}
    result = trailers.get("Result", "")
    return Apply(
        name,
        when or stored or datetime.fromtimestamp(0, UTC),
        author,
        committer,
        counts,
        trailers.get("Manifests", ""),
        trailers.get("Service", ""),
        int(result) if result.isdecimal() and result.isascii() else None,
        trailers.get("Job", ""),
        trailers.get("Canary", ""),
        trailers.get("Reverts", ""),
    )


def _identity(text: str) -> tuple[Person, datetime | None]:
    parts = IDENTITY.fullmatch(text)
    if parts is None or len(parts[3]) > 11:
        return Person("", ""), None
    return Person(parts[1], parts[2]), datetime.fromtimestamp(int(parts[3]), UTC)
