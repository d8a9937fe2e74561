"""Error tracking client keys of a project (spec section 4.6): a creation has no parameters, and there are no updates.

Production shows the whole key in every list, and answers a deletion with the deleted key.
"""

from hashlib import sha256
from typing import Any

from ..answers import Answer, refused
from ..call import Call
from ..collection import RouteCollection
from ..records import StoredItem
from ..state import Project


class ClientKeyRecord(StoredItem):
    """A key; its value follows from its ID."""

    active: bool = True


class _Keys(RouteCollection[ClientKeyRecord]):
    def owner(self, call: Call) -> Project:
        """Return the project, which the specification's dialect knows by its number only."""
        if not call.state.deployed and not call.parts["id"].isdecimal():
            raise refused(404, "404 Project Not Found")
        return call.project(self.role)

    def delete(self, call: Call) -> Answer:
        """Answer with the deleted key."""
        owner = self.owner(call)
        item = self.find(call, owner, self.key(call))
        self.remove(call, owner, item)
        return Answer(200, self.show(call, owner, item))

    def show(self, call: Call, owner: Project, item: ClientKeyRecord) -> dict[str, Any]:
        """Return the record as production sends it; in the specification, its value is missing."""
        value = "glet_" + sha256(f"client key {item.id}".encode()).hexdigest()[:32]
        host = call.url.partition("://")[2]
        return {
            "id": item.id,
            "active": item.active,
            "public_key": value,
            "sentry_dsn": f"https://{value}@{host}/errortracking/api/v1/projects/{owner.id}",
        }


KEYS = _Keys("error_tracking_client_keys", ClientKeyRecord, "/projects/:id/error_tracking/client_keys", part="key_id")
SECTIONS = (KEYS.section,)
ROUTES = KEYS.routes("list", "create", "delete")
