"""The record of a project or a group, as far as it explains what may be read and written there.

Of a project, the service tells what role somebody has by membership of it and of the groups above it; what comes from
a group that was invited, it does not tell (deployed behaviour, section 7.8). Of a group, it tells no role at all.
"""

from dataclasses import dataclass

from reconciler.address import Level, Scope
from reconciler.doctor.findings import Token
from reconciler.errors import ServiceError
from reconciler.kind import Role
from reconciler.live import ENDS_A_RUN
from reconciler.wire import Json, Reader


@dataclass(frozen=True, slots=True)
class Place:
    """What the record says.

    Attributes:
        role: of whoever the token belongs to, as the service counts; None where it is not told.
        archived: whether it is; None where that is not told.
        off: the keys of what is switched off.
        nested: whether a group has a group above it; None where that is not told.
    """

    role: int | None = None
    archived: bool | None = None
    off: frozenset[str] = frozenset()
    nested: bool | None = None


def read_place(scope: Scope, reader: Reader, token: Token) -> Place | ServiceError:
    """Ask for the record of a project or a group, and return it, or why there is none.

    Raises:
        ServiceError: one that `live.ENDS_A_RUN`.
    """
    query = "?with_projects=false" if scope.level is Level.GROUP else ""
    try:
        record = reader.get(scope.url.rstrip("/") + query)
    except ENDS_A_RUN:
        raise
    except ServiceError as error:
        return error
    if not isinstance(record, dict):
        return Place()
    archived = record.get("archived")
    return Place(
        role=_role(record, token),
        archived=archived if isinstance(archived, bool) else None,
        off=frozenset(key for key, value in record.items() if value is False or value == "disabled"),
        nested=record["parent_id"] is not None if "parent_id" in record else None,
    )


def role_name(role: int) -> str:
    """Return what the service calls a role."""
    return Role(role).name.capitalize() if role in set(Role) else f"of access level {role}"


def _role(record: Json, token: Token) -> int | None:
    """Administrators may do everything, and so may users in their own namespace."""
    match record.get("namespace"):
        case {"kind": "user", "full_path": str(path)} if path == token.owner:
            return Role.OWNER
    if token.admin:
        return Role.OWNER
    permissions = record.get("permissions")
    told = permissions.values() if isinstance(permissions, dict) else ()
    levels = [each["access_level"] for each in told if isinstance(each, dict) and type(each.get("access_level")) is int]
    return max(levels, default=None)
