"""The user behind the token, who is asked for only where the service has refused something."""

from collections.abc import Mapping
from dataclasses import dataclass

from reconciler.engine.read import answer_or_error
from reconciler.errors import Forbidden
from reconciler.model.protocols import Json, Reader

OWNER = "user"
TOKEN = "personal_access_tokens/self"  # noqa: S105 - a path
FOR_ADMINISTRATORS = "keys/0"
"""A record that never exists, and that only administrators may ask for: 404 for them, 403 for everybody else."""


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
        """Why an administrator is refused what administrators may do; empty if that is not so."""
        lacking = "is an administrator, but the token lacks the scope admin_mode, and the service uses Admin Mode"
        return f"{self} {lacking}" if self.lacks_admin_mode else ""


UNKNOWN_CALLER = Caller()
ADMIN_MODE = "use a token that has the scope admin_mode too"
"""The remedy for an administrator's `shortfall`."""


def ask_caller(reader: Reader) -> Caller:
    """Ask who is behind the token: one request a run, and two more for an administrator.

    Raises:
        ServiceError: one that `ENDS_A_RUN`.
    """
    owner = _record(reader, OWNER)
    return caller_of(owner, _record(reader, TOKEN) if owner.get("is_admin") is True else {}, reader)


def caller_of(owner: Mapping[str, Json], token: Mapping[str, Json], reader: Reader) -> Caller:
    """Return the user of a record and of that of the token; one request tells whether an administrator lacks a scope.

    Raises:
        ServiceError: one that `ENDS_A_RUN`.
    """
    name, number, scopes = owner.get("username"), owner.get("id"), token.get("scopes")
    admin = owner.get("is_admin") is True
    doubtful = admin and isinstance(scopes, list) and "admin_mode" not in scopes
    lacking = doubtful and isinstance(answer_or_error(lambda: reader.recall(FOR_ADMINISTRATORS)), Forbidden)
    return Caller(
        name if isinstance(name, str) else None,
        number if type(number) is int else None,
        admin=admin and not lacking,
        lacks_admin_mode=lacking,
    )


def _record(reader: Reader, path: str) -> Mapping[str, Json]:
    answer = answer_or_error(lambda: reader.recall(path))
    return answer if isinstance(answer, dict) else {}
