"""SCIM identities of a group (spec section 4.12): listed, renamed and unlinked by its owners; no endpoint creates any.

Identities are looked up without regard to case, and the list has no pages.
"""

from typing import Annotated, Any

from pydantic import Field

from ..answers import refused
from ..call import Call, Route
from ..collection import RouteCollection
from ..parameters import text
from ..records import StoredItem
from ..state import OWNER, Group


class IdentityRecord(StoredItem):
    """The link between an account of the identity provider and a user."""

    user_id: Annotated[int, Field(gt=0)]
    extern_uid: str
    active: bool = True


class _Identities(RouteCollection[IdentityRecord]):
    def key(self, call: Call) -> str:
        """Return the external UID."""
        return call.parts[self.part].lower()

    def find(self, call: Call, owner: Group, key: str) -> IdentityRecord:
        """Return the identity of that UID; else 404."""
        for item in self.items(call, owner):
            if item.extern_uid.lower() == key:
                return item
        raise refused(404, "404 Identity Not Found")

    def check(self, call: Call, owner: Group, wanted: IdentityRecord, before: IdentityRecord | None) -> None:
        """Refuse an external UID that is blank, or taken in the group."""
        if not wanted.extern_uid.strip():
            raise refused(400, "Extern uid can't be blank")
        taken = {item.extern_uid.lower() for item in self.items(call, owner) if item is not before}
        if wanted.extern_uid.lower() in taken:
            raise refused(400, "Extern uid has already been taken")

    def show(self, call: Call, owner: Group, item: IdentityRecord) -> dict[str, Any]:
        """Return the record (spec section 2)."""
        return {"extern_uid": item.extern_uid, "user_id": item.user_id, "active": item.active}


IDENTITIES = _Identities(
    "scim_identities",
    IdentityRecord,
    "/groups/:id/scim",
    part="uid",
    key="extern_uid",
    role=OWNER,
    pages="never",
    changes=(text("extern_uid", required=True),),
)
SECTIONS = (IDENTITIES.section,)
ROUTES = (
    Route("GET", "/groups/:id/scim/identities", IDENTITIES.list_items),
    *IDENTITIES.routes("get", "update", "delete", update="PATCH"),
)
