"""The omissions of an export with their reasons: in full, or in one line for all that share a cause. See `LeftOut`.

Pure.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from reconciler.model.targets import Target
from reconciler.model.wording import counted

EVERYTHING = "everything"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A live section, object or field that no manifest declares.

    Attributes:
        what: its name, such as `milestone "1"` or `trigger_tokens`; empty for all sections of the target.
        target: the target that has it.
        why: the reason.
        sort: the word for an object, or for the object of an omitted field, such as `milestone`; empty for sections.
        cause: the reason in words that are equal for all objects with this reason; empty if `why` is in such words.
        objects: a line of facts for each object, if that helps to choose among them.
    """

    what: str
    target: Target
    why: str
    sort: str = ""
    cause: str = ""
    objects: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the whole sentence."""
        if self.sort:
            return f"{self.what} of {self.target} is left out: {self.why}"
        return f"{self.what or EVERYTHING} of {self.target} is left out: {self.why}"

    @property
    def shared(self) -> str:
        """The cause; requests have `<path>` for the path of the target."""
        return self.cause or self.why.replace(f"s/{quote(str(self.target.ref), safe='')}", "s/<path>")


@dataclass(frozen=True, slots=True)
class Cause:
    """All omissions with one cause."""

    entries: Sequence[LeftOut]

    def __str__(self) -> str:
        """Return one line, with the number of targets if they are several."""
        first = self.entries[0]
        targets = list(dict.fromkeys(entry.target for entry in self.entries))
        where = str(first.target) if len(targets) == 1 else counted(len(targets), str(first.target.level))
        if first.sort:
            return f"{counted(len(self.entries), first.sort)} of {where}: {first.shared}"
        why = first.why if len(targets) == 1 else first.shared
        return f"{first.what or EVERYTHING} of {where} is left out: {why}"

    @property
    def lines(self) -> Iterator[str]:
        """The sentence about each omission, followed by the facts about its objects."""
        for entry in self.entries:
            yield str(entry)
            yield from (f"  {known}" for known in entry.objects)


def causes(left_out: Iterable[LeftOut]) -> Iterator[Cause]:
    """Yield the causes of omissions: of sections, then of objects, in the order of the targets."""
    by_cause: dict[object, list[LeftOut]] = {}
    for entry in left_out:
        name = "" if entry.sort else entry.what
        by_cause.setdefault((entry.target.level, entry.sort, name, entry.shared), []).append(entry)
    yield from map(Cause, sorted(by_cause.values(), key=lambda entries: bool(entries[0].sort)))
