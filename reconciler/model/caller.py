"""The user behind the token, as a value: the engine reads it, and plans and the diagnosis explain refusals by it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Caller:
    """The user behind the token, as far as known.

    Attributes:
        name: the username; None if unknown.
        number: the numeric ID; None if unknown.
        admin: whether the token lets an administrator act as one; false if unknown.
        lacks_admin_mode: whether the user is an administrator whose token cannot act as one, since it lacks the scope
            `admin_mode` and the service uses Admin Mode.
        enterprise: whether the service has the code of the paid editions; None if unknown.
    """

    name: str | None = None
    number: int | None = None
    admin: bool = False
    lacks_admin_mode: bool = False
    enterprise: bool | None = None

    def __str__(self) -> str:
        """The username, or words for it."""
        return self.name or "the token's owner"

    @property
    def shortfall(self) -> str:
        """The reason why an administrator is refused administrators' requests; empty if there is none."""
        lacking = "is an administrator, but the token lacks the scope admin_mode, and the service uses Admin Mode"
        return f"{self} {lacking}" if self.lacks_admin_mode else ""


UNKNOWN_CALLER = Caller()
