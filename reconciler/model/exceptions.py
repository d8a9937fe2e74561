"""An exception: a deviation that the document of a target accepts for a while. Pure."""

from dataclasses import dataclass, field
from datetime import date, timedelta

from reconciler.model.targets import Key

EXPIRES_SOON = timedelta(days=14)
"""How long before its end an exception is warned of."""


@dataclass(frozen=True, slots=True)
class DeclaredException:
    """A deviation that the document of a target accepts for a while."""

    section: str
    """The section's name."""
    until: date
    """The last day, UTC."""
    reason: str
    """Why the deviation is accepted."""
    item: Key | None = None
    """The name of an object; null for the whole section."""
    fields: tuple[str, ...] = ()
    """The excepted fields; none for all of them, and for creations and deletions."""
    origin: str = field(default="", compare=False)
    """Where the manifests declare it, as path:line."""
    written_item: Key | None = field(default=None, compare=False)
    """The name of the object before `{default_branch}` is filled in; null if that is the same."""

    def is_over(self, today: date) -> bool:
        """Return whether its last day has passed."""
        return self.until < today

    def ends_soon(self, today: date) -> bool:
        """Return whether it will expire within two weeks."""
        return today <= self.until <= today + EXPIRES_SOON
