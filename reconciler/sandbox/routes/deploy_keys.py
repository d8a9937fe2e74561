"""The deploy keys that are enabled in a project, as far as protection rules refer to them.

The spec does not define these endpoints; they follow production servers. A key is enabled in one project only.
"""

from typing import Any

from ..call import Call
from ..collection import RouteCollection
from ..parameters import boolean, text
from ..records import SEED, StoredItem, Time
from ..ref_access import KEYS
from ..state import Project


class DeployKey(StoredItem):
    """A key; with `can_push` it may write."""

    title: str
    key: str = ""
    can_push: bool = False
    created_at: Time = SEED


class _DeployKeys(RouteCollection[DeployKey]):
    """A project's keys."""

    def show(self, call: Call, owner: Project, item: DeployKey) -> dict[str, Any]:
        """Return the record of a key."""
        return {
            **super().show(call, owner, item),
            "expires_at": None,
            "last_used_at": None,
            "usage_type": "auth_and_signing",
        }


DEPLOY_KEYS = _DeployKeys(
    KEYS,
    DeployKey,
    "/projects/:id/deploy_keys",
    part="key_id",
    new=(text("title", required=True), text("key", required=True), boolean("can_push")),
    changes=(text("title"), boolean("can_push")),
)
SECTIONS = (DEPLOY_KEYS.section,)
ROUTES = DEPLOY_KEYS.routes("list")
